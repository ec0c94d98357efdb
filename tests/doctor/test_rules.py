"""Rules about the first steps of a run, and dead units, on made-up data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.doctor.quantities.activations import Activation, kind_of
from glassgrad.doctor.record import MonitorData, Sample
from glassgrad.doctor.rules import RUN_RULES, apply
from glassgrad.doctor.run import Run


def named(sizes: Any, gradients: Any, updates: Any, first: int = 0) -> set[str]:
    """Return the findings about matrices with these norms, of shape (steps, matrices), and about nothing else."""
    samples = []
    for step, row in enumerate(zip(sizes, gradients, updates, strict=True), start=first):
        values = dict(zip(("parameter_norm", "gradient_norm", "update_norm"), map(np.array, row), strict=True))
        samples.append(Sample(step, values | {"rate": np.float64(0.1)}))
    shapes = {f"layer{at}": (4, 4) for at in range(len(sizes[0]))}
    run = Run(data=MonitorData.gather(1, shapes, {}, samples))
    return {f"{one.rule}: {one.threshold:g}" for one in apply(RUN_RULES, run)}


GROWTH = [1.0, 1.3, 1.5, 1.6, *[1.6] * 16]
"""The weights grow by 60 % in three steps and rest then; changes of 5 % of their size are what others make too."""


@pytest.mark.parametrize(("begun", "found"), [(0, {"rate unfit for the weights: 1.4"}), (100, set())])
def test_weights_that_the_first_steps_replace_are_told(begun: int, found: set[str]) -> None:
    sizes = [[size] * 2 for size in GROWTH]
    assert named(sizes, [[0.1] * 2] * 20, [[0.05] * 2] * 20, begun) == found


def test_weights_that_grow_as_usual_are_not() -> None:
    sizes = [[1 + 0.1 * step] * 2 for step in range(20)]
    assert named(sizes, [[0.1] * 2] * 20, [[0.05] * 2] * 20) == set()


@pytest.mark.parametrize(("steps", "low", "found"), [
    (4, 5e-6, {"vanishing gradient: 0.0001"}),  # too few samples to tell of the middle
    (4, 1e-4, set()),
    (20, 5e-6, {"vanishing gradient: 0.0001"}),  # only at first
    (20, 2e-5, set()),  # small at first, and not in the middle
])  # fmt: skip  # a table
def test_a_gradient_that_vanishes_in_the_first_step_alone_is_told(steps: int, low: float, found: set[str]) -> None:
    gradients = [[0.1 if step else low, 0.1, 0.1, 0.1] for step in range(steps)]
    assert named([[1.0] * 4] * steps, gradients, [[0.01] * 4] * steps) == found


@pytest.mark.parametrize("kind", ["ReLU", "GELU", "SiLU", "Mish", "Hardswish"])
def test_units_at_rest_are_dead_in_smooth_rectifiers_too(kind: str) -> None:
    function = getattr(gg.nn, kind)()
    entering = np.array([[-30.0, -30.0, -30.0, 1e-9], [-40.0, 0.5, -0.1, -1e-9]], np.float32)
    seen = Activation(kind_of(kind))
    seen.add(function(gg.tensor(entering)).numpy())
    alive = [False, True, kind != "ReLU", True]
    assert seen.alive is not None
    assert seen.alive.tolist() == alive
    assert seen.measure()["activation_dead"] == 1 - np.mean(alive)


def test_a_nan_is_no_unit_at_rest() -> None:
    seen = Activation(kind_of("GELU"))
    seen.add(np.array([[np.nan, 0.0]], np.float32))
    assert seen.alive is not None
    assert seen.alive.tolist() == [True, False]


def test_functions_without_a_rest_have_no_dead_units() -> None:
    assert all(kind_of(name) is None for name in ("LeakyReLU", "ELU", "Softplus"))
