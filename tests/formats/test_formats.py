"""Files of earlier versions load, and lead to the numbers that they led to then (docs/stability.md)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.cli import run
from glassgrad.compile.kept import files
from glassgrad.doctor.monitor import GradientMonitor
from glassgrad.train import load_weights
from glassgrad.train.kept.checkpoint import FORMAT, load_checkpoint, save_checkpoint
from glassgrad.train.kept.metrics import read_metrics
from glassgrad.train.kept.sessions import read_sessions
from tests.formats import recipe

HERE = Path(__file__).parent
VERSIONS = sorted(path.name for path in HERE.iterdir() if (path / "expected.json").exists())
TOLERANCE = 1e-4  # of losses after a few steps: another order of sums, nothing more

pytestmark = pytest.mark.parametrize("version", VERSIONS)


@pytest.fixture
def kept(version: str, tmp_path: Path) -> Path:
    """A copy of the files of a version: none of them is to change."""
    return Path(shutil.copytree(HERE / version, tmp_path / "kept"))


@pytest.fixture
def expected(kept: Path) -> Any:
    return json.loads((kept / "expected.json").read_text(encoding="utf-8"))


def same(found: Any, wanted: Any) -> None:
    """Compare kinds, dtypes and values, however deep."""
    assert type(found) is type(wanted), (found, wanted)
    if isinstance(wanted, gg.Tensor):
        assert (found.dtype, found.requires_grad) == (wanted.dtype, wanted.requires_grad)
        found, wanted = found.detach().numpy(), wanted.detach().numpy()
    if isinstance(wanted, np.ndarray):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        assert found.tobytes() == wanted.tobytes()
    elif isinstance(wanted, dict):
        assert list(found) == list(wanted)
        for key, value in wanted.items():
            same(found[key], value)
    elif isinstance(wanted, list | tuple):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            same(one, other)
    else:
        assert found == wanted


def test_there_are_files_of_a_version(version: str) -> None:
    assert (HERE / version / "checkpoint.safetensors").stat().st_size > 1_000
    assert json.loads((HERE / version / "expected.json").read_text(encoding="utf-8"))["version"] == version


def test_weights(kept: Path) -> None:
    wanted = {name: value.detach() for name, value in recipe.model().state_dict().items()}
    found = {name: value.detach() for name, value in gg.load(kept / "weights.safetensors").items()}
    same(dict(sorted(found.items())), dict(sorted(wanted.items())))  # the file has an order of its own
    model = recipe.model()
    model[0].weight.data.zero_()
    assert model.load_state_dict(gg.load(kept / "weights.safetensors"))
    same(model[0].weight.detach(), wanted["0.weight"])


def test_nested_data(kept: Path) -> None:
    found, wanted = gg.load(kept / "nested.safetensors"), recipe.nested()
    assert {name: value.shape for name, value in found.pop("model").items()} == {
        name: value.shape for name, value in wanted.pop("model").items()
    }
    same(found, wanted)


def test_a_checkpoint_goes_on(kept: Path, expected: Any) -> None:
    training = recipe.Training(kept / "checkpoint.safetensors")
    assert training.checkpoint.load() == recipe.VALUES
    np.testing.assert_allclose(training.steps(recipe.AFTER), expected["losses"], rtol=TOLERANCE)
    fresh = recipe.Training(kept / "none.safetensors")
    assert not np.allclose(fresh.steps(recipe.AFTER), expected["losses"], rtol=TOLERANCE)


def test_a_run_of_the_trainer_goes_on(kept: Path, expected: Any) -> None:
    before = read_metrics(kept / "trainer" / "metrics.jsonl")
    assert max(record["step"] for record in before) == recipe.BEFORE
    result = recipe.trainer(kept / "trainer").fit(resume=True)
    assert result.finished
    assert result.step == 20
    np.testing.assert_allclose(result.loss, expected["trainer"], rtol=TOLERANCE)
    assert load_weights(recipe.model(), kept / "trainer" / "model.safetensors")


def test_a_run_of_the_command_goes_on(kept: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.chdir(kept)
    assert read_sessions(kept / "moons")["sessions"][0]["versions"]["glassgrad"]
    assert run(["train", "moons", "--resume", "moons", "--steps", "30"]) == 0
    assert "going on at step 20" in capfd.readouterr().out
    assert read_metrics(kept / "moons" / "metrics.jsonl")[-1]["step"] == 30


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["runs", "."], "moons"),
        (["eval", "moons"], "accuracy"),
        (["predict", "moons", "0.5,-1"], "1"),
        (["report", "moons"], "report.html"),
        (["export", "moons", "--to", "numpy"], "model_numpy.py"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_run_of_the_command_is_read(
    kept: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any, arguments: list[str], shown: str
) -> None:
    monkeypatch.chdir(kept)
    code = run(arguments)
    out, err = capfd.readouterr()
    assert (code, err) == (0, "")
    assert shown in out


def test_a_record_of_a_monitor(kept: Path) -> None:
    record = GradientMonitor.load(kept / "moons" / "monitor.npz")
    assert len(record.steps) >= 4
    assert np.isfinite(record.total_norm).all()


def test_an_entry_of_the_cache_is_read_or_made_anew(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry of the format of today comes back whole, one of another format is no entry; neither is an error."""
    (kept / "cache").chmod(0o700)
    (kept / "cache" / "native").chmod(0o700)
    monkeypatch.setenv("GLASSGRAD_CACHE_DIR", str(kept / "cache"))
    assert files.read(recipe.ENTRY) in [None, (recipe.HEADER, recipe.CODE)]
    step = gg.compile(lambda x: (x * 3 + 1).tanh().sum(), backend="llvm")
    assert step(gg.zeros(5)).item() == pytest.approx(5 * np.tanh(1.0))


def forward(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Write a checkpoint as a later version would."""
    arrays, rest = load_checkpoint(path)
    save_checkpoint(path, arrays, rest)
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    entry = json.loads(header["__metadata__"]["glassgrad"])
    change(entry)
    header["__metadata__"]["glassgrad"] = json.dumps(entry)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])


def test_a_later_format_is_refused_by_its_number(kept: Path) -> None:
    path = kept / "checkpoint.safetensors"
    forward(path, lambda entry: entry.update(format=FORMAT + 1))
    with pytest.raises(errors.InputError, match=f"in format {FORMAT + 1}; this version reads up to format {FORMAT}"):
        recipe.Training(path).checkpoint.load()


@pytest.mark.parametrize("given", ["1", 0, True, 1.0, None])
def test_a_number_that_is_none_is_damage(kept: Path, given: object) -> None:
    path = kept / "checkpoint.safetensors"
    forward(path, lambda entry: entry.update(format=given))
    with pytest.raises(errors.InputError, match="damaged"):
        recipe.Training(path).checkpoint.load()


def test_an_entry_of_no_format_is_damage(kept: Path) -> None:
    path = kept / "checkpoint.safetensors"
    forward(path, lambda entry: entry.update(gormat=FORMAT))
    with pytest.raises(errors.InputError, match="damaged: it has an unknown entry 'gormat'"):
        recipe.Training(path).checkpoint.load()
