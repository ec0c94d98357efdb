"""Batches drawn at random: determined by seed and step, evenly spread, and cheap."""

from __future__ import annotations

import time
import timeit

import numpy as np
import pytest

from glassgrad.data import RandomBatches


def batches(batch: int = 32, seed: int = 1, size: int = 500) -> RandomBatches:
    inputs = np.arange(size * 3).reshape(size, 3)
    return RandomBatches(inputs, np.arange(size), batch, seed)


@pytest.mark.parametrize("batch", [1, 32, 100_000])
def test_a_step_has_the_same_batch_whatever_came_before(batch: int) -> None:
    steps = [0, 1, 5, 1_023, 1_024, 1_025, 40_000, 3, 0]
    jumping = batches(batch)
    for step in steps:
        fresh = batches(batch).at(step)[1]
        assert (jumping.at(step)[1] == fresh).all()
        assert fresh.shape == (batch,)


def test_inputs_and_targets_belong_together() -> None:
    inputs, targets = batches().at(17)
    assert (inputs[:, 0] == 3 * targets).all()
    assert inputs.shape == (32, 3)


def test_other_seeds_and_other_steps_give_other_batches() -> None:
    drawn = [batches(seed=seed).at(step)[1].tolist() for seed in (1, 2) for step in (0, 1, 1_024, 2_048)]
    assert len({tuple(entry) for entry in drawn}) == len(drawn)


def test_every_example_is_drawn_about_equally_often() -> None:
    source = batches(batch=100, size=50)
    counts = np.bincount(np.concatenate([source.at(step)[1] for step in range(2_000)]), minlength=50)
    expected = 100 * 2_000 / 50
    # Chi-squared with 49 degrees of freedom: beyond 100 with probability 2e-5.
    assert ((counts - expected) ** 2 / expected).sum() < 100


def test_a_batch_costs_little() -> None:
    source = batches(size=100_000)
    steps = iter(range(10**9))
    seconds = min(timeit.repeat(lambda: source.at(next(steps)), timer=time.thread_time, number=5_000, repeat=7)) / 5_000
    assert seconds < 10e-6  # of the processor; about 1.2 µs on an idle machine
