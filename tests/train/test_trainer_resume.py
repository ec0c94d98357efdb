"""Stopping, killing and resuming runs of `Trainer`: the result equals an undisturbed run bit for bit."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.errors import InputError, RunError
from glassgrad.train import Callback, RunState, load_weights, read_metrics
from glassgrad.train.kept.checkpoint import load_checkpoint
from glassgrad.utils.data import DataLoader
from tests.thinning import covering

from .fitting import assert_same, data, loader, net, stored, timeless, trainer, weights

pytestmark = pytest.mark.usefixtures("numpy_target")  # test_engines.py trains in native code

EVERYTHING: dict[str, Any] = {
    "accumulate": 2, "clip_norm": 0.5, "skip_nonfinite": True, "ema": 0.9, "loss_scale": 16.0, "patience": 50,
    "scheduler": lambda optimizer: optim.lr_scheduler.CosineAnnealingLR(optimizer, 12), "log_to": "jsonl,csv",
}  # fmt: skip  # a table


class Shuffled:
    """A user's own loader: any iterable, its order and its noise from the global generators."""

    def __init__(self) -> None:
        self.x, self.y = data()

    def __len__(self) -> int:
        return 6

    def __iter__(self) -> Iterator[Any]:
        order = list(range(60))
        random.shuffle(order)
        for at in range(0, 60, 10):
            rows = order[at : at + 10]
            yield self.x[rows] + 0.1 * np.random.standard_normal((10, 4)).astype(np.float32), self.y[rows]  # noqa: NPY002 - what users write


class Noisy:
    """A data set whose examples are random; in workers they depend on the batch."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> Any:
        x, y = data()
        return x[index] + np.random.standard_normal(4).astype(np.float32), y[index]  # noqa: NPY002 - as above


LOADERS: dict[str, Any] = {
    "memory": loader,
    "own generator": lambda: loader(generator=gg.Generator().manual_seed(9)),
    "users": Shuffled,
    "workers": lambda: DataLoader(Noisy(), batch_size=8, shuffle=True, num_workers=2),
}


@pytest.mark.parametrize(
    ("kind", "options"),
    covering(list(LOADERS), [{}, EVERYTHING]),
    ids=lambda one: one if isinstance(one, str) else "everything" if one else "plain",
)
def test_stopped_anywhere_and_resumed_is_as_never_stopped(kind: str, options: dict[str, Any], tmp_path: Path) -> None:
    def made(name: str) -> Any:
        random.seed(3)
        np.random.seed(4)  # noqa: NPY002 - the user's loader draws from it
        return trainer(train=LOADERS[kind](), run_dir=str(tmp_path / name), **options)

    whole = made("whole")
    expected = whole.fit()
    places = [[2, 3, 7], [1], [expected.step - 1], [expected.step // 3, expected.step // 3 + 1]]
    for stops in places[: 1 if kind == "workers" else None]:  # each run starts processes, which takes long
        for until in (*stops, None):
            parts = made("parts")
            found = parts.fit(resume=True, until=until)
            assert found.finished == (until is None)
        assert_same(parts.model, whole.model)
        assert timeless(found.records) == timeless(expected.records)
        assert found.best == expected.best
        for name, array in stored(tmp_path / "whole" / "model.safetensors").items():
            np.testing.assert_array_equal(stored(tmp_path / "parts" / "model.safetensors")[name], array)
        shutil.rmtree(tmp_path / "parts")


@pytest.mark.parametrize("options", [EVERYTHING, pytest.param({}, marks=pytest.mark.slow)], ids=["everything", "plain"])
def test_compiled_runs_resume_bit_for_bit(tmp_path: Path, options: dict[str, Any]) -> None:
    whole = trainer(engine="compiled", **{**options, "log_to": "jsonl"})
    whole.fit()
    for until in (5, None):
        parts = trainer(engine="compiled", run_dir=str(tmp_path), **options)
        parts.fit(resume=True, until=until)
    assert_same(parts.model, whole.model)


def test_a_pause_within_one_process_needs_no_directory() -> None:
    whole = trainer()
    whole.fit()
    parts = trainer()
    for until in (1, 8, 9, 20, None):
        parts.fit(until=until)
    assert_same(parts.model, whole.model)


def kills(folder: Path, moments: int, seed: int) -> list[int]:
    here = Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": f"{here}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, str(here / "killing.py"), str(folder), str(moments), str(seed)]
    process = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=500, check=False)
    assert process.returncode == 0, process.stderr
    wrong, early, within, late = map(int, process.stdout.split())
    assert wrong == 0, process.stderr
    return [early, within, late]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes to kill are forked")
def test_killed_at_random_moments_a_run_resumes_to_the_identical_end(tmp_path: Path) -> None:
    places = kills(tmp_path, 10, seed=1)
    assert sum(places) == 10


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes to kill are forked")
def test_killed_at_a_hundred_random_moments(tmp_path: Path) -> None:
    early, within, late = kills(tmp_path, 100, seed=2)
    assert early + within + late == 100
    assert within > 20  # most of the kills are to fall where they can do harm


def test_a_signal_saves_and_then_does_what_it_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Pressed(Callback):
        def on_step_end(self, run: RunState) -> None:
            if run.step == 5:
                os.kill(os.getpid(), signal.SIGINT)

    made = trainer(run_dir=str(tmp_path / "run"), callbacks=[Pressed()])
    with pytest.raises(KeyboardInterrupt):
        made.fit()
    assert "stopped after step 5; go on with fit(resume=True)" in capsys.readouterr().err
    whole = trainer()
    whole.fit()
    again = trainer(run_dir=str(tmp_path / "run"))
    assert again.fit(resume=True).finished
    assert_same(again.model, whole.model)


# --- disks that are full ----------------------------------------------------------------------------------


@pytest.mark.parametrize("victim", ["state.safetensors", "metrics.jsonl", "step-00000016.safetensors", "metrics.csv"])
def test_a_full_disk_keeps_the_last_checkpoint_and_the_log(
    victim: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    trainer(run_dir=str(run), log_to="jsonl,csv").fit(until=12)
    good = (run / "state.safetensors").read_bytes()
    write, fdopen = os.write, []

    def full(descriptor: int, content: Any) -> int:
        if victim in Path(f"/proc/self/fd/{descriptor}").readlink().name:
            fdopen.append(write(descriptor, bytes(content)[:7]))  # a part still fits
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, content)

    monkeypatch.setattr(os, "write", full)
    made = trainer(run_dir=str(run), log_to="jsonl,csv")
    if victim == "metrics.csv":
        made.metrics["new_column"] = lambda outputs, targets: 0.0  # the table is written anew
    with pytest.raises(RunError) as caught:
        made.fit(resume=True)
    monkeypatch.undo()
    assert fdopen
    assert str(caught.value).startswith(f"cannot save {run}: No space left on device; the checkpoint of step ")
    assert (run / "state.safetensors").read_bytes() == good
    assert [one["step"] for one in read_metrics(run / "metrics.jsonl")][:3] == [5, 8, 10]
    assert not list(run.glob("**/.*.tmp"))
    again, whole = trainer(run_dir=str(run), log_to="jsonl,csv"), None
    found = again.fit(resume=True)
    whole = trainer()
    expected = whole.fit()
    assert_same(again.model, whole.model)
    assert timeless(found.records) == timeless(expected.records)
    assert all(json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines())


# --- checkpoints that cannot be used ----------------------------------------------------------------------


@pytest.fixture
def run(tmp_path: Path) -> Path:
    trainer(run_dir=str(tmp_path / "run")).fit(until=10)
    return tmp_path / "run"


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.999])
def test_a_checkpoint_cut_short_is_named(run: Path, share: float) -> None:
    content = (run / "state.safetensors").read_bytes()
    (run / "state.safetensors").write_bytes(content[: int(len(content) * share)])
    made = trainer(run_dir=str(run))
    before = weights(made.model)
    with pytest.raises(InputError, match=r"state\.safetensors is damaged: it is cut short or not a safetensors file"):
        made.fit(resume=True)
    for name, array in before.items():
        np.testing.assert_array_equal(weights(made.model)[name], array)


def test_another_file_of_a_run_is_no_damaged_one(run: Path) -> None:
    with pytest.raises(InputError, match=r"metrics\.jsonl holds no weights; give the directory of a run"):
        load_checkpoint(run / "metrics.jsonl")


def test_a_changed_or_foreign_file_is_named(run: Path) -> None:
    state = run / "state.safetensors"
    content = bytearray(state.read_bytes())
    content[-3] ^= 1
    state.write_bytes(content)
    with pytest.raises(InputError, match="its checksum does not match its content"):
        trainer(run_dir=str(run)).fit(resume=True)
    from safetensors.numpy import save_file

    save_file({"0.weight": np.zeros((8, 4), np.float32)}, run / "foreign.safetensors")
    with pytest.raises(InputError, match=r"foreign\.safetensors was not written by glassgrad"):
        load_weights(net(), run / "foreign.safetensors")
    with pytest.raises(InputError, match=r"nowhere\.safetensors cannot be read"):
        load_weights(net(), run / "nowhere.safetensors")


def test_a_checkpoint_of_another_architecture_lists_what_differs(run: Path) -> None:
    other = lambda: nn.Sequential(nn.Linear(4, 9), nn.Tanh(), nn.Linear(9, 3, bias=False))
    made = trainer(run_dir=str(run), model=other)
    before = weights(made.model)
    expected = (
        r"holds another model; nothing was loaded\. Missing: 2\.weight\. Unexpected: 3\.bias, 3\.weight\. "
        r"Wrong shape: 0\.weight \(8, 4\) instead of \(9, 4\), 0\.bias \(8,\) instead of \(9,\)\."
    )
    with pytest.raises(InputError, match=expected):
        made.fit(resume=True)
    with pytest.raises(InputError, match=expected):
        load_weights(made.model, run / "model.safetensors")
    for name, array in before.items():
        np.testing.assert_array_equal(weights(made.model)[name], array)


def test_options_that_a_checkpoint_depends_on_cannot_change(run: Path) -> None:
    with pytest.raises(InputError, match="accumulate of a run cannot change: it began with 1, given 2"):
        trainer(run_dir=str(run), accumulate=2).fit(resume=True)
    sgd = lambda parameters: optim.SGD(parameters, lr=0.1)
    with pytest.raises(InputError, match="optimizer of a run cannot change: it began with AdamW, given SGD"):
        trainer(run_dir=str(run), make_optimizer=sgd).fit(resume=True)
    assert trainer(run_dir=str(run), epochs=4).fit(resume=True).step == 32  # longer is fine


def test_a_run_is_not_overwritten(run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"already holds a run; continue it with fit\(resume=True\)"):
        trainer(run_dir=str(run)).fit()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("do not lose")
    with pytest.raises(InputError, match="is not an empty directory"):
        trainer(run_dir=str(tmp_path / "mine")).fit()
