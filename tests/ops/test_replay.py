"""Recorded NumPy calls that native code makes: the same bits, and NumPy wherever a record does not fit."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.ops.kernels import recording, replay
from glassgrad.ops.kernels.replay import Replay
from tests.ops.replays import FUNCTIONS, are_same, drawn, expect_same, is_native, labels, recorded

pytest.importorskip("llvmlite", reason="recorded calls are made by native code")
Array = Any
pytestmark = pytest.mark.usefixtures("at_once")


def moved(p: Array, g: Array, rate: float) -> None:
    p -= g * rate


def test_arrays_are_written_in_place() -> None:
    def make() -> tuple[Any, ...]:
        return drawn(4, 5), drawn(4, 5, seed=1), 0.125

    found = recorded(moved, make, written=(0,))
    assert is_native(found)
    p, g, _ = make()
    kept = p.copy()
    found.run(p, g, 0.5)  # numbers are arguments, not part of the record
    np.testing.assert_array_equal(p, kept - g * np.float32(0.5))
    column = np.zeros((4, 9), np.float32)[:, ::2]  # other strides
    found.run(column, g, 0.5)
    np.testing.assert_array_equal(column, -g * np.float32(0.5))
    for _ in range(3):
        found.run(column, g, 0.5)
    np.testing.assert_array_equal(column, -4 * (g * np.float32(0.5)))
    assert found.records == 2


@pytest.mark.parametrize(
    "args",
    [
        (drawn(3, 5), drawn(3, 5), 0.1),  # another shape
        (drawn(4, 5), drawn(5), 0.1),  # broadcast
        (drawn(4, 5, dtype=np.float64), drawn(4, 5, dtype=np.float64), 0.1),
        (drawn(5, 4).T, drawn(4, 5), 0.1),
        (drawn(4, 5)[::-1], drawn(4, 5), 0.1),
        (drawn(0, 5), drawn(0, 5), 0.1),
        (drawn(4, 5), drawn(4, 5), 2),
        (drawn(4, 5), drawn(4, 5), np.float64(0.5)),
        (drawn(4, 5), drawn(4, 5).astype(">f4"), 0.1),
        (drawn(4, 5), np.frombuffer(b"\0" + drawn(20).tobytes(), np.uint8)[1:].view(np.float32).reshape(4, 5), 0.1),
        (drawn(200, 300), drawn(200, 300), 0.1),
    ],
    ids=range(11),
)
def test_other_arguments_are_left_to_the_function(args: tuple[Any, ...]) -> None:
    found = recorded(moved, lambda: (drawn(4, 5), drawn(4, 5, seed=1), 0.125), written=(0,))
    assert is_native(found)
    p, g, rate = args
    expected = p.copy()
    for _ in range(4):
        moved(expected, g, rate)
        found.run(p, g, rate)
    np.testing.assert_array_equal(p, expected)


def test_arguments_that_share_memory() -> None:
    found = recorded(moved, lambda: (drawn(20), drawn(20, seed=1), 0.125), written=(0,))
    assert is_native(found)
    memory, other = drawn(40), drawn(40)
    moved(other[3:23], other[1:21], 0.5)
    found.run(memory[3:23], memory[1:21], 0.5)
    np.testing.assert_array_equal(memory, other)
    found.run(memory[:20], memory[:20], 1.0)
    np.testing.assert_array_equal(memory[:20], np.zeros(20, np.float32))


def test_wrong_calls_fail_as_the_function_does() -> None:
    found = recorded(moved, lambda: (drawn(4, 5), drawn(4, 5, seed=1), 0.125), written=(0,))
    p, g = drawn(4, 5), drawn(4, 5, seed=1)
    p.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        found.run(p, g, 0.5)
    with pytest.raises(TypeError):
        found.run(g)
    with pytest.raises(ValueError, match="broadcast"):
        found.run(drawn(4, 5), drawn(3, 5), 0.5)
    picked = recorded(lambda x, at: x.reshape(-1).take(at) * 2, lambda: (drawn(4, 5), labels(6, 20)))
    assert is_native(picked)
    with pytest.raises(IndexError):
        picked.run(drawn(4, 5), np.array([0, 1, 2, 3, 4, 20]))


# --- what NumPy warns of ------------------------------------------------------------------------------


def test_numpy_warns_and_computes_once() -> None:
    found = recorded(moved, lambda: (drawn(4), drawn(4, seed=1), 0.125), written=(0,))
    assert is_native(found)
    p, g = np.full(4, -3e38, np.float32), np.array([1, 2, 3, 3e38], np.float32)
    with pytest.warns(RuntimeWarning, match="overflow"):
        found.run(p, g, 1.0)
    np.testing.assert_array_equal(p[:3], np.full(3, -3e38, np.float32))
    assert p[3] == -np.inf
    with pytest.warns(RuntimeWarning, match="overflow encountered in cast|overflow"):
        found.run(drawn(4), drawn(4), 1e39)
    with np.errstate(all="ignore"):
        found.run(drawn(4), drawn(4), 1e39)


def test_numpys_treatment_of_errors_holds() -> None:
    found = recorded(lambda x, y: x / y + 1, lambda: (drawn(4), drawn(4, seed=1)))
    assert is_native(found)
    x, zeros = np.ones(4, np.float32), np.zeros(4, np.float32)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        found.run(x, zeros)
    with np.errstate(divide="ignore"):
        assert np.isinf(found.run(x, zeros)).all()
    tiny = np.full(4, 1e-30, np.float32)
    with np.errstate(under="raise"), pytest.raises(FloatingPointError):
        found.run(tiny, 1 / tiny)
    assert not (found.run(tiny, 1 / tiny) - 1).any()


# --- what is not recorded -----------------------------------------------------------------------------


def reads_a_number(x: Array) -> Array:
    return x * float(x[0])


def decides(x: Array) -> Array:
    return x * 2 if x[0] > 0 else x * 3


def searches(x: Array) -> Array:
    return x * x.argmax()


def sums(x: Array) -> Array:
    return x * x.sum()


def adds_up(x: Array) -> Array:
    return x + np.cumsum(x)


def returns_a_view(x: Array) -> Array:
    return (x * 2)[1:]


def returns_its_argument(x: Array) -> tuple[Array, Array]:
    return x, x * 2


def writes_to_its_argument(x: Array) -> Array:
    x *= 1.5
    return x + 1


def copies(x: Array) -> Array:
    return x * np.array(x, np.float64).astype(x.dtype)


def mends(x: Array) -> Array:
    y = np.asarray(x * 2)
    y[y < -70] = 0
    return y


def looks_ahead(x: Array) -> Array:
    return x * 2 if np.asarray(x * 1)[0] < 0 else x * 3


@pytest.mark.parametrize(
    "function",
    [copies, mends, looks_ahead, reads_a_number, decides, searches, sums, adds_up, returns_a_view, returns_its_argument,
     writes_to_its_argument],
)  # fmt: skip  # a list
def test_what_a_record_cannot_hold_is_not_recorded(function: Callable[..., Any]) -> None:
    found = Replay(function)
    for _ in range(4):
        expect_same(found.run(drawn(4, seed=3)), function(drawn(4, seed=3)))
    assert not found.records


def test_a_truth_value_of_numpys_is_not_taken_for_another() -> None:
    def gradients(condition: Any) -> list[float]:
        x, y = gg.ones(2, 3, requires_grad=True), gg.ones(2, 3, requires_grad=True)
        gg.where(condition, x, y).sum().backward()
        return [x.grad.sum().item(), y.grad.sum().item()]

    assert all(gradients(np.False_) == [0, 6] for _ in range(60))
    assert all(gradients(np.True_) == [6, 0] for _ in range(3))


def test_a_function_of_which_nothing_can_be_recorded_is_called_directly() -> None:
    found = Replay(decides)
    for size in range(2, 8):
        for _ in range(2):
            found.run(drawn(size))
    assert found.run is decides


def test_sizes_that_change_all_the_time_are_not_counted_for_long() -> None:
    replay.settings.repeats = 2
    found = Replay(lambda x: x * 2 + 1)
    for size in range(1, 400):
        np.testing.assert_array_equal(found.run(np.ones(size, np.float32)), np.full(size, 3, np.float32))
    assert found._rest > 0
    assert len(found._seen) < 300
    for _ in range(5_000):
        found.run(np.ones(4, np.float32))
    assert found.records == 1


def test_records_are_made_and_used_where_errors_are_ignored() -> None:
    found = Replay(lambda x, y: x / y * 2)
    x, zeros = drawn(4), np.zeros(4, np.float32)
    with np.errstate(all="ignore"):
        for _ in range(3):
            found.run(x, x + 1)
        assert is_native(found)
        expect_same(found.run(x, zeros), x / zeros * 2)


def test_a_function_that_is_refused_again_and_again_is_called_directly() -> None:
    found = Replay(decides)
    for _ in range(1_100):
        found.run(np.ones(4, np.float32))
    assert found.run is decides


def one_or_both(x: Array) -> Any:
    return (x * 2, x + 1) if x.ndim == 2 else x * 2


@pytest.mark.parametrize("first", [(4,), (4, 5)])
def test_records_of_a_function_have_as_many_results_as_its_first(first: tuple[int, ...]) -> None:
    """Native code looks for a record that fits when it has made the tuple of results already."""
    other = (4, 5) if first == (4,) else (4,)
    found = recorded(one_or_both, lambda: (drawn(*first),))
    assert is_native(found)
    for _ in range(3):
        expect_same(found.run(drawn(*other)), one_or_both(drawn(*other)))
    assert found.records == 1
    expect_same(found.run(drawn(*first)), one_or_both(drawn(*first)))


def test_a_tuple_of_one_stays_a_tuple() -> None:
    found = recorded(lambda x: (x * 2,), lambda: (drawn(4),))
    assert not is_native(found)
    assert type(found.run(drawn(4))) is tuple


def test_a_record_that_differs_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a recorder might get wrong shows before the record is used."""

    def wrong(function: Any, args: Any, written: Any) -> Any:
        made = recording.record(function, args, written)
        return made._replace(calls=made.calls[:-1])

    monkeypatch.setattr(replay, "record", wrong)
    found = recorded(lambda x: x * 2 + 1, lambda: (drawn(4),))
    assert not found.records
    np.testing.assert_array_equal(found.run(np.ones(4, np.float32)), np.full(4, 3, np.float32))


def test_nothing_is_recorded_before_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay.settings, "first", replay.settings.runs + 10)
    found = Replay(lambda x: x * 2 + 1)
    for _ in range(8):
        found.run(drawn(4))
    assert not found.records
    for _ in range(6):
        found.run(drawn(4))
    assert found.records == 1


def test_without_native_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "glassgrad.compile.native.replay", None)
    found = recorded(lambda x: x * 2 + 1, lambda: (drawn(4),))
    assert not found.records
    np.testing.assert_array_equal(found.run(np.ones(4, np.float32)), np.full(4, 3, np.float32))
    monkeypatch.setattr(replay.settings, "off", False)


# --- around it ----------------------------------------------------------------------------------------


def test_threads_share_a_record() -> None:
    function, make = FUNCTIONS["batch norm"]
    found = Replay(function)
    wrong: list[int] = []

    def work(seed: int) -> None:
        x, w, b = make(16, 9, np.float32)
        x = x * np.float32(seed)
        expected = function(x, w, b)
        wrong.extend(seed for _ in range(300) if not are_same(found.run(x, w, b), expected))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert found.records


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_replays() -> None:
    function, make = FUNCTIONS["cross entropy"]
    found = recorded(function, lambda: make(8, 5, np.float32))
    expected = function(*make(8, 5, np.float32))
    child = os.fork()
    if not child:
        same = all(
            a.tobytes() == b.tobytes() for a, b in zip(found.run(*make(8, 5, np.float32)), expected, strict=True)
        )
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_the_collector_may_run_the_same_record() -> None:
    """Making a tuple may start a collection, and with it any code."""
    function, make = FUNCTIONS["batch norm"]
    args = make(6, 4, np.float32)
    found = recorded(function, lambda: args)
    expected = function(*args)
    other = tuple([one * 2 for one in args])
    calls = 0

    class Last:
        def __init__(self) -> None:
            self.circle = self

        def __del__(self) -> None:
            nonlocal calls
            calls += 1
            found.run(*other)

    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(200):
            Last()
            expect_same(found.run(*args), expected)
    finally:
        gc.set_threshold(*before)
    assert calls > 100


def test_nothing_is_left_behind() -> None:
    x, w, b = args = FUNCTIONS["batch norm"][1](6, 4, np.float32)
    several = recorded(FUNCTIONS["batch norm"][0], lambda: args)
    single = recorded(lambda x: x * 2 + 1, lambda: (x,))
    none = recorded(moved, lambda: (w, b, 0.0), written=(0,))
    counted = [x, w, b, None, True, np.dtype(np.float32), np.ndarray, float]
    bad = np.full_like(x, np.inf)

    def counts() -> list[int]:
        return [sys.getrefcount(one) for one in counted]

    before = counts()
    for _ in range(500):
        several.run(x, w, b)
        single.run(x)
        none.run(w, b, 0.0)
    with np.errstate(all="ignore"):
        several.run(bad, w, b)
    assert max(abs(now - then) for now, then in zip(counts(), before, strict=True)) < 20
    made = several.run(x, w, b)
    plain = FUNCTIONS["batch norm"][0](x, w, b)
    assert [sys.getrefcount(one) for one in made] == [sys.getrefcount(one) for one in plain]
    assert all(one.flags.owndata and one.flags.c_contiguous and one.flags.writeable for one in made)
