"""`--monitor`: the run stays the same bit for bit, and its directory records the gradients."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.tasks import runner
from glassgrad.tasks.names import NAMES
from glassgrad.train.callbacks import Callback
from glassgrad.train.show.monitoring import Monitoring

PICTURES = {"gradient_flow.png", "gradient_histograms.png", "total_norm.png", "activations.png"}
NAMES_OPTIONS = ("train", "names", "--data", "words.txt", "--steps", 60, "--hidden", 16, "--log-every", 20)
RUNS = {
    "names-compiled": (*NAMES_OPTIONS, "--engine", "compiled"),
    "names-eager": (*NAMES_OPTIONS, "--engine", "eager"),
    "names-manual": (*NAMES_OPTIONS, "--engine", "manual"),
    "digits-cnn": ("train", "digits", "--model", "cnn", "--channels", 2, "--hidden", 8, "--batch", 500, "--epochs", 2),
}


@pytest.mark.parametrize("name", RUNS)
def test_weights_are_the_same_with_and_without(
    name: str, glassgrad: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glassgrad.cli.options.draw", lambda directory: [])  # the next test looks at the pictures
    assert glassgrad(*RUNS[name], "--out", "alone").code == 0
    result = glassgrad(*RUNS[name], "--out", "watched", "--monitor-every", 3)
    assert result.code == 0, result.err
    alone, watched = ((folder / run / "model.safetensors").read_bytes() for run in ("alone", "watched"))
    assert alone == watched
    data = gg.GradientMonitor.load(folder / "watched" / "monitor.npz")
    assert data.steps.tolist() == list(range(0, data.steps[-1] + 1, 3))
    assert len(data) >= 2
    assert np.isfinite(data.loss).all()
    assert (data.gradient_norm > 0).all()
    assert np.isfinite(data.update_norm).all()
    assert (data.update_norm.max(1) > 0).all()
    if "manual" in name:  # layers by hand take no hooks
        assert data.activations == ()
    else:
        assert np.isfinite(data.activation_dead if "digits" in name else data.activation_saturated).any()
    assert np.isnan(data.total_norm_clipped).all()


def test_the_directory_holds_the_record_and_four_pictures_and_the_end_says_so(
    glassgrad: Callable[..., Any], folder: Path
) -> None:
    result = glassgrad(*NAMES_OPTIONS, "--out", "run", "--monitor")
    found = {path.name for path in (folder / "run").iterdir()}
    assert PICTURES | {"monitor.npz"} <= found
    for name in PICTURES:
        assert f"run/{name}" in result.out
        assert (folder / "run" / name).read_bytes()[:4] == b"\x89PNG"
    data = gg.GradientMonitor.load(folder / "run" / "monitor.npz")
    assert data.every == 1  # 60 steps are fewer than 200 samples
    assert len(data) == 60
    assert data.parameters == (
        "embedding.weight",
        "hidden.weight",
        "hidden.bias",
        "norm.weight",
        "norm.bias",
        "output.weight",
        "output.bias",
    )
    assert "tanh before output" in data.activations


def test_every_engine_records_the_same(folder: Path) -> None:
    found = {}
    for engine in ("eager", "compiled", "manual"):
        options = {"data": "words.txt", "steps": 30, "hidden": 16, "engine": engine}
        runner.start(NAMES, options, None, folder / engine, [Monitoring(10)])
        found[engine] = gg.GradientMonitor.load(folder / engine / "monitor.npz")
    for engine in ("compiled", "manual"):
        assert found[engine].parameters == found["eager"].parameters
        for name in ("loss", "total_norm", "gradient_std", "gradient_abs_max", "parameter_norm", "update_norm"):
            here, there = getattr(found[engine], name), getattr(found["eager"], name)
            np.testing.assert_allclose(here, there, rtol=2e-3, atol=1e-6, err_msg=f"{engine} {name}")


def test_a_run_is_not_watched_unless_asked(glassgrad: Callable[..., Any], folder: Path) -> None:
    assert glassgrad(*NAMES_OPTIONS, "--out", "run").code == 0
    assert not {path.name for path in (folder / "run").iterdir()} & (PICTURES | {"monitor.npz"})


class Bomb(Callback):
    """Ends the process's part of the run in the middle of things, as a crash would."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, run: Any) -> None:
        if run.step == self.step:
            raise ZeroDivisionError


def test_a_run_that_crashed_and_went_on_has_the_record_of_an_unbroken_one(folder: Path) -> None:
    options = {"data": "words.txt", "steps": 60, "hidden": 16, "engine": "eager", "save_every": 1e-9}
    runner.start(NAMES, options, None, folder / "whole", [Monitoring(10)])
    whole = gg.GradientMonitor.load(folder / "whole" / "monitor.npz")
    assert whole.steps.tolist() == [0, 10, 20, 30, 40, 50]
    for at in (31, 40, 41, 42):
        run = folder / f"parts {at}"
        with pytest.raises(ZeroDivisionError):
            runner.start(NAMES, options, None, run, [Monitoring(10), Bomb(at)])
        runner.resume(NAMES, {}, run, [Monitoring(10)])
        parts = gg.GradientMonitor.load(run / "monitor.npz")
        for name, value in vars(whole).items():
            np.testing.assert_array_equal(value, getattr(parts, name), err_msg=f"{name}, stopped at {at}")


@pytest.mark.slow
def test_a_resumed_run_goes_on_being_watched_until_told_otherwise(glassgrad: Callable[..., Any], folder: Path) -> None:
    options = {"data": "words.txt", "steps": 60, "hidden": 16, "engine": "eager", "save_every": 1e-9}
    for name in ("on", "off"):
        with pytest.raises(ZeroDivisionError):
            runner.start(NAMES, options, None, folder / name, [Monitoring(10), Bomb(33)])
    assert glassgrad("train", "names", "--resume", "on").code == 0
    assert glassgrad("train", "names", "--resume", "off", "--no-monitor").code == 0
    assert gg.GradientMonitor.load(folder / "on" / "monitor.npz").steps.tolist() == [0, 10, 20, 30, 40, 50]
    assert gg.GradientMonitor.load(folder / "off" / "monitor.npz").steps[-1] <= 30
    assert (folder / "on" / "total_norm.png").exists()
    assert not (folder / "off" / "total_norm.png").exists()


@pytest.mark.usefixtures("real_pictures")
def test_a_run_that_diverges_is_drawn_too(glassgrad: Callable[..., Any], folder: Path) -> None:
    result = glassgrad(*NAMES_OPTIONS, "--rate", 1e3, "--weight-decay", 1e6, "--out", "run", "--monitor-every", 2)
    assert result.code == 1
    assert "the loss became" in result.err
    assert (folder / "run" / "gradient_flow.png").exists()
    assert len(gg.GradientMonitor.load(folder / "run" / "monitor.npz")) > 1


def test_options_that_make_no_sense(glassgrad: Callable[..., Any], folder: Path) -> None:
    result = glassgrad(*NAMES_OPTIONS, "--no-monitor", "--monitor-every", 3)
    assert (result.code, result.err) == (
        2,
        "error: --no-monitor and --monitor-every cannot be given together: nothing is watched\n",
    )
    result = glassgrad(*NAMES_OPTIONS, "--monitor-every", 0)
    assert result.code == 2
    assert "--monitor-every" in result.err
    assert not (folder / "runs").exists()
