"""`--dtype` of every `glassgrad train`: the dtype of the computation, of a resumed run, and refused cases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glassgrad import amp, errors
from glassgrad.tasks import task_kinds
from glassgrad.tasks.images import DIGITS
from glassgrad.tasks.names import NAMES, NamesTask
from glassgrad.tasks.options import DTYPES
from glassgrad.tasks.plane import MOONS
from glassgrad.tasks.text import TEXT
from glassgrad.train.config import command_line, rules
from glassgrad.train.kept.rundir import RunDirectory
from tests.tasks.stopping import check_stopping
from tests.tasks.test_engines import WORDS, losses

SMALL: dict[str, dict[str, Any]] = {
    "names": {"model": "mlp", "steps": 20},
    "gpt": {"model": "gpt", "embedding": 16, "heads": 2, "layers": 1, "dropout": 0.0, "steps": 20},
    "digits": {"model": "cnn", "channels": 2, "hidden": 16, "batch": 16},
    "moons": {"steps": 20},
    "text": {"context": 8, "width": 16, "heads": 2, "layers": 1, "steps": 20},
}


@pytest.fixture(autouse=True)
def units(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is rounded does not depend on the processor: these tests run on any."""
    monkeypatch.setattr(amp, "processor_multiplies", lambda: True)


def task_of(kind: str, folder: Path, dtype: str) -> Any:
    given = {**SMALL[kind], "dtype": dtype, "engine": "eager"}
    if kind in {"names", "gpt"}:
        return NamesTask(NAMES.configure([command_line(given)]), WORDS)
    if kind == "text":
        (folder / "book.txt").write_text("the cat sat on the mat, and the dog sat on the cat. " * 20)
        given["data"] = str(folder / "book.txt")
    found = {"digits": DIGITS, "moons": MOONS, "text": TEXT}[kind]
    return found.build(found.configure([command_line(given)]))


@pytest.mark.parametrize("kind", SMALL)
def test_the_dtype_is_that_of_the_steps(kind: str, tmp_path: Path) -> None:
    tasks = {dtype: task_of(kind, tmp_path, dtype) for dtype in DTYPES}
    found = {dtype: losses(task, 4) for dtype, task in tasks.items()}
    for dtype, task in tasks.items():
        kept = {str(array.dtype) for array in task.learner.weights().values() if array.dtype.kind == "f"}
        assert kept == {"float64" if dtype == "float64" else "float32"}
        assert task.learner.logits(task.batch_at(0)[0]).dtype == np.dtype(kept.pop())
    np.testing.assert_allclose(found["float64"], found["float32"], rtol=1e-4)
    np.testing.assert_allclose(found["bfloat16"], found["float32"], rtol=0.02)
    # Rounding shows, so it happened: more than float32's own, by a factor of 256 and more.
    assert np.abs(np.subtract(found["bfloat16"], found["float64"])).max() > 1e-5
    assert np.abs(np.subtract(found["float32"], found["float64"])).max() < 1e-5


@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_a_run_that_was_stopped_ends_like_one_that_was_not(dtype: str, tmp_path: Path) -> None:
    def make() -> Any:
        return MOONS.build(MOONS.configure([command_line({"steps": 30, "dtype": dtype, "eval_every": 30})]))

    check_stopping(make, tmp_path, (7, 19))


def test_every_task_has_it_and_a_run_of_before_is_float32(tmp_path: Path) -> None:
    for kind in task_kinds():
        assert rules(kind.config)["dtype"][1].choices == DTYPES
    before, now = task_of("moons", tmp_path, "float32"), task_of("moons", tmp_path, "bfloat16")
    facts = before.facts()
    del facts["config"]["dtype"]
    before.check(facts, RunDirectory(tmp_path))
    with pytest.raises(errors.InputError, match=r"dtype .* began with float32, given bfloat16"):
        now.check(facts, RunDirectory(tmp_path))


def test_by_hand_there_is_float32_only_and_a_table_has_no_products() -> None:
    with pytest.raises(errors.InputError, match="--dtype 'float64' is not possible with --engine manual"):
        MOONS.configure([command_line({"engine": "manual", "dtype": "float64"})])
    with pytest.raises(errors.InputError, match="--dtype 'bfloat16' is not possible with --engine manual"):
        NAMES.configure([command_line({"engine": "manual", "dtype": "bfloat16"})])
    with pytest.raises(errors.InputError, match="--dtype has no effect on the model 'bigram'"):
        NAMES.configure([command_line({"model": "bigram", "dtype": "bfloat16"})])
    assert MOONS.configure([command_line({"engine": "manual", "dtype": "float32"})]).dtype == "float32"
