"""The traceback that is shown for an error: the user's lines and the message."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

import glassgrad as gg
from glassgrad.errors import tracebacks
from glassgrad.errors.tracebacks import shortened

SCRIPT = """
import glassgrad as gg
net = gg.nn.Sequential(gg.nn.Linear(2, 3), gg.nn.Linear(4, 1))
def main():
    @gg.compile
    def step(x):
        return net(x).sum()
    step(gg.ones(5, 2))
main()
"""


def files(error: BaseException) -> list[str]:
    """Return the names of the functions that are shown of an error."""
    return [frame.name for frame in traceback.extract_tb(shortened(error))]


def shown(tmp_path: Path, full: str) -> list[str]:
    """Return what a script that fails prints."""
    (tmp_path / "script.py").write_text(SCRIPT)
    setting = {**os.environ, "GLASSGRAD_FULL_TRACEBACK": full}
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, env=setting, capture_output=True, text=True, check=False
    )
    return done.stderr.splitlines()


def test_a_script_prints_its_own_lines_and_the_message(tmp_path: Path) -> None:
    lines = shown(tmp_path, "")
    assert [line.strip() for line in lines if line.startswith("  File")] == [
        f'File "{tmp_path}/script.py", line 9, in <module>',
        f'File "{tmp_path}/script.py", line 8, in main',
        f'File "{tmp_path}/script.py", line 7, in step',
    ]
    assert sum("Traceback" in line for line in lines) == 1
    assert any(line.startswith("glassgrad.errors.kinds.ShapeError: matmul at script.py:7") for line in lines)


@pytest.mark.slow
def test_the_setting_shows_everything(tmp_path: Path) -> None:
    lines = shown(tmp_path, "1")
    assert sum("glassgrad/" in line for line in lines if line.startswith("  File")) > 5


def test_frames_of_the_library_are_left_out_wherever_they_stand() -> None:
    def loss(x):
        return gg.nn.Sequential(gg.nn.Identity(), Broken())(x)

    class Broken(gg.nn.Module):
        def forward(self, x):
            return x @ gg.ones(7, 7)

    with pytest.raises(gg.errors.ShapeError) as caught:
        gg.func.grad(loss)(gg.ones(3))
    name = test_frames_of_the_library_are_left_out_wherever_they_stand.__name__
    assert files(caught.value) == [name, "loss", "forward"]
    assert caught.value.__cause__ is None


def test_an_error_of_the_users_own_keeps_its_lines_and_its_cause() -> None:
    def inner(x):
        try:
            return {}[x]
        except KeyError as error:
            raise RuntimeError("mine") from error

    with pytest.raises(RuntimeError, match="mine") as caught:
        gg.func.vmap(inner)(gg.ones(3))
    assert files(caught.value)[1:] == ["inner"]
    assert isinstance(caught.value.__cause__, KeyError)


def test_an_error_that_nobody_meant_is_shown_whole() -> None:
    class Odd:
        shape = property(lambda self: self.nothing)

    with pytest.raises(AttributeError) as caught:
        gg.tensor([1.0]).reshape(Odd().shape)
    assert shortened(caught.value) is not None
    error = ZeroDivisionError("inside")
    try:
        exec(compile("1 / 0", gg.errors.__file__, "exec"), {})  # noqa: S102 - stands for a mistake of ours
    except ZeroDivisionError as raised:
        error = raised
    assert shortened(error) is error.__traceback__


def test_pytest_is_told_of_the_modules_that_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSGRAD_FULL_TRACEBACK", "0")
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setattr(tracebacks, "TOLD", {"told": True, "modules": 0})
    try:
        assert isinstance(gg.errors.DIM_OUT_OF_RANGE(dim=1, ndim=1, low=0, high=0, where=""), gg.errors.IndexRangeError)
        assert vars(sys.modules["glassgrad.engine.record"])["__tracebackhide__"]
        assert "__tracebackhide__" not in vars(sys.modules["glassgrad"])
    finally:
        for name in [name for name in sys.modules if name.startswith("glassgrad.")]:
            getattr(sys.modules[name], "__dict__", {}).pop("__tracebackhide__", None)


def test_an_error_that_is_its_own_cause_is_shown():
    first, second = ValueError("first"), ValueError("second")
    with pytest.raises(ValueError, match="first") as caught:
        raise first from second
    second.__cause__ = first
    assert files(caught.value) == ["test_an_error_that_is_its_own_cause_is_shown"]


def test_a_training_loop_of_the_library_is_left_out_too() -> None:
    model = gg.nn.Linear(2, 1)
    optimizer = gg.optim.SGD(model.parameters(), lr=0.1)

    def loss(outputs: gg.Tensor, targets: gg.Tensor) -> gg.Tensor:
        return outputs @ targets

    trainer = gg.train.Trainer(model, optimizer, loss, [(gg.ones(4, 2), gg.ones(3, 3))])
    with pytest.raises(gg.errors.ShapeError) as caught:
        trainer.fit()
    assert files(caught.value) == ["test_a_training_loop_of_the_library_is_left_out_too", "loss"]
    with pytest.raises(gg.errors.InputError) as wrong:
        gg.train.TrainingConfig(max_epochs=3)
    assert files(wrong.value) == ["test_a_training_loop_of_the_library_is_left_out_too"]
