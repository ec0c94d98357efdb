"""A second thread touches memory while a step is compiled: all of its memory, nothing else, and never harmfully."""

from __future__ import annotations

import mmap
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn
from glassgrad.compile.native.ahead import LEAST, Ahead, free_bytes
from glassgrad.engine.memory import fresh

SIZE = 2 * LEAST


def held() -> int:
    """Bytes of memory that this process has been given."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def until(condition: Any, seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.002)
    return bool(condition())


needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not say what is held")


@needs_proc
def test_every_page_is_given_and_nothing_is_changed() -> None:
    # Memory from the system: what malloc keeps has been given already.
    zeros, values = np.frombuffer(mmap.mmap(-1, SIZE), np.uint8), np.arange(SIZE // 4, dtype=np.int32)
    before = held()
    with Ahead(cores=2, free=8 * SIZE) as early:
        assert early.touch([zeros, values])
        assert until(lambda: held() > before + 0.95 * SIZE)
    assert held() < before + 1.2 * SIZE
    assert not zeros.any()
    np.testing.assert_array_equal(values, np.arange(SIZE // 4, dtype=np.int32))


def test_memory_may_be_used_meanwhile_and_is_freed_afterwards() -> None:
    array = np.zeros(SIZE // 8, np.int64)
    gone = weakref.ref(array)
    with Ahead(cores=2, free=8 * SIZE) as early:
        assert early.touch([array])
        for _ in range(3):
            array += 1
        assert (array == 3).all()
    del array
    assert until(lambda: gone() is None)


@needs_proc
def test_the_thread_stops_with_the_statement() -> None:
    array = np.zeros(64 * SIZE, np.uint8)  # four gigabytes, of which the system gives what is written to
    gone = weakref.ref(array)
    before = held()
    with Ahead(cores=2, free=1 << 40) as early:
        assert early.touch([array])
    del array
    assert until(lambda: gone() is None)
    assert held() < before + 32 * SIZE


@pytest.mark.parametrize(
    ("cores", "free", "size"), [(1, 1 << 40, SIZE), (2, 2 * SIZE - 1, SIZE), (2, 1 << 40, LEAST - 1)]
)
def test_one_core_little_memory_and_small_steps_are_left_alone(cores: int, free: int, size: int) -> None:
    early = Ahead(cores, free)
    assert not early.touch([np.zeros(size, np.uint8)])
    assert early.touched == 0


def test_arrays_touched_before_count_as_taken() -> None:
    early = Ahead(2, 3 * SIZE)
    assert early.touch([np.zeros(SIZE, np.uint8)])
    assert not early.touch([np.zeros(SIZE, np.uint8)])


@needs_proc
def test_what_is_free_is_what_the_system_says() -> None:
    assert 0 < free_bytes() < 1 << 50


def test_the_state_that_a_trace_makes_is_remembered_and_nothing_else() -> None:
    fresh.taken()
    model = nn.Linear(600, 600)
    optimizer = gg.optim.Adam(model.parameters())

    def step(x: Any) -> None:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()

    gg.compile(step, backend="numpy", strict=True)(gg.ones(2, 600))
    moments = [optimizer.state[model.weight][name].array for name in ("exp_avg", "exp_avg_sq")]
    assert [id(array) for array in fresh.taken()] == [id(array) for array in moments]
    assert fresh.taken() == []
    optimizer.state.clear()
    step(gg.ones(2, 600))
    assert fresh.taken() == []
    gg.compile(step, backend="numpy", strict=True)(gg.ones(2, 600))
    assert fresh.taken() == []  # they have been written to


def test_a_step_runs_in_the_memory_that_was_touched_for_it() -> None:
    def step(x: Any) -> Any:
        y = x.exp()
        return (y / y.sum()).max()

    x = gg.full((LEAST // 4000, 1001), -8.0)
    compiled = gg.compile(step, threads=1, strict=True)
    found = [compiled(x).item() for _ in range(2)]
    assert compiled.stats.peak_bytes > LEAST
    assert compiled.program.step.memory.nbytes == compiled.stats.peak_bytes
    np.testing.assert_allclose(found, 1 / x.numel(), rtol=1e-5)
