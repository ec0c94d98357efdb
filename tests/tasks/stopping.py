"""A run that stops and resumes, for the tests of every task."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad.train.kept.rundir import RunDirectory
from glassgrad.train.loop import Loop
from glassgrad.train.show.display import PlainDisplay
from glassgrad.train.signals import StopSignals


def trained(make: Callable[[], Any], folder: Path, stops: tuple[int, ...] = ()) -> dict[str, Any]:
    """Return the weights at the end of a run that is stopped at some steps, each time gone on with by a new task."""
    folder.mkdir()
    run = RunDirectory(folder)
    for stop_at in (*stops, 10**9):
        task = make()
        loop, stop = Loop(task), StopSignals()
        if run.state.exists():
            loop.load(run)
        rate_at = task.rate_at

        def asking(step: int, stop_at: int = stop_at, rate_at: Any = rate_at, stop: Any = stop) -> float:
            if step == stop_at:
                stop.request()
            return float(rate_at(step))

        task.rate_at = asking
        loop.run(run, PlainDisplay(io.StringIO()), stop)
    weights: dict[str, Any] = task.learner.weights()
    return weights


def check_stopping(make: Callable[[], Any], folder: Path, stops: tuple[int, ...]) -> None:
    """Compare a run that was stopped with one that was not, bit for bit."""
    whole, parts = trained(make, folder / "whole"), trained(make, folder / "parts", stops)
    for name, array in whole.items():
        np.testing.assert_array_equal(parts[name], array, err_msg=name)
