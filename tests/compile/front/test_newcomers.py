"""Tensors that a function makes are distinguished from earlier ones, whatever Python's collector does meanwhile."""

import gc
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.compile.front.state import alive
from glassgrad.compile.front.state.newcomers import Newcomers, free

HELD = [gg.tensor([2.0])]


def behind_a_list(x):
    return x * HELD[0]


def collects(x):
    made = gg.tensor([3.0])
    gc.collect()
    return x * made + HELD[0]


def collects_young(x):
    made = gg.tensor([3.0])
    for generation in (0, 1, 2):
        gc.collect(generation)
    made += 1
    return x * made


def makes_much(x):
    made = gg.tensor([3.0])
    kept = [[at] for at in range(30_000)]
    late = gg.tensor([float(len(kept))])
    return x * made + late


@pytest.mark.parametrize("function", [behind_a_list, collects, collects_young, makes_much])
def test_what_a_function_makes_is_new_in_every_call(function):
    compiled = gg.compile(function, strict=True)
    for value in (1.0, 2.0, 5.0):
        x = gg.tensor([value])
        assert compiled(x).tolist() == function(x).tolist()
    assert compiled.traces == 1


def test_what_was_there_is_state_even_if_it_is_collected_meanwhile():
    def counts(x):
        gc.collect()
        HELD[0].mul_(2.0)
        gc.collect()
        return x + HELD[0]

    before = HELD[0].item()
    compiled = gg.compile(counts, strict=True)
    x = gg.tensor([1.0])
    try:
        found = [compiled(x).item() for _ in range(3)]
    finally:
        HELD[0].fill_(before)
    assert found == [1 + 2 * before, 1 + 4 * before, 1 + 8 * before]


def test_tensors_before_and_after_the_start():
    old = gg.zeros(2)
    newcomers = Newcomers()
    watching = len(gc.callbacks)
    newcomers.start()
    try:
        first = gg.zeros(2)
        assert newcomers.have(first)
        assert not newcomers.have(old)
        unseen = gg.ones(2)
        gc.collect()
        assert newcomers.have(unseen)
        assert newcomers.have(first)
        assert not newcomers.have(old)
        second = first.view(1, 2)
        assert newcomers.have(second)
        places = {id(first), id(second)}
        del first, second
        again = [gg.zeros(2) for _ in range(4)]  # some in the places of those that are gone
        assert all(newcomers.have(one) for one in again), places
    finally:
        newcomers.stop()
    assert len(gc.callbacks) == watching


def test_cycles_are_freed_young_and_old():
    class Holder:
        pass

    for age in (0, 1, 2):
        gc.collect()
        holder = Holder()
        holder.self = holder
        holder.tensor = gg.tensor(np.ones(3))
        gc.collect(age)
        ref = weakref.ref(holder.tensor)
        kept = gg.zeros(1)
        del holder
        free([ref, weakref.ref(kept)])
        assert ref() is None
        assert kept.tolist() == [0.0]


BOX = {}


def _hidden(state):
    """Return a function that multiplies by a tensor which no search of its variables finds."""
    BOX["get"] = lambda: state
    return lambda x: x * sys.modules[__name__].BOX["get"]()


def test_state_is_found_by_a_trace_that_begins_while_the_collector_is_at_work():
    assert gg.compile(lambda x: x * 2)(gg.ones(1)).tolist() == [2.0]  # a trace that finds the collector idle
    found = []

    def traces(phase, info):
        gc.callbacks.remove(traces)
        state = gg.tensor([2.0])
        compiled = gg.compile(_hidden(state), strict=True)
        x = gg.tensor([3.0])
        found.append(compiled(x).item())
        state.fill_(5.0)
        found.append(compiled(x).item())

    gc.callbacks.append(traces)
    gc.collect()
    assert found == [6.0, 15.0]


def test_a_function_that_freezes_what_it_made_is_not_compiled():
    class Holder:
        pass

    holder = Holder()

    def freezes(x):
        holder.made = gg.tensor([3.0])
        gc.freeze()
        holder.made += x
        return x * holder.made

    compiled = gg.compile(freezes)
    try:
        with pytest.warns(gg.errors.CompileWarning, match=r"gc\.freeze\(\) hid"):
            assert compiled(gg.tensor([1.0])).item() == 4.0
        assert [compiled(gg.tensor([value])).item() for value in (2.0, 5.0)] == [10.0, 40.0]
    finally:
        gc.unfreeze()


def test_compiling_and_collecting_in_another_thread_do_not_disturb_each_other():
    """A collector at work does nothing for a second caller; a tuple that somebody looks at cannot be finished."""
    going, problems = True, []

    def collects_and_makes_tuples():
        try:
            while going:
                gc.collect(0)
                tuple(value for value in range(20))
        except SystemError as error:
            problems.append(error)

    threads = [threading.Thread(target=collects_and_makes_tuples) for _ in range(3)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    for thread in threads:
        thread.start()
    try:
        for count in range(6):
            compiled = gg.compile(_hidden(gg.tensor([2.0 + count])), strict=True)
            assert compiled(gg.tensor([3.0])).item() == 3 * (2.0 + count)
    finally:
        going = False
        sys.setswitchinterval(interval)
        for thread in threads:
            thread.join()
    assert not problems


def test_a_collection_in_another_thread_between_two_looks_is_no_freeze(monkeypatch: pytest.MonkeyPatch) -> None:
    newcomers, count, collected = Newcomers(), gc.get_count, []

    def overtaken() -> tuple[int, int, int]:
        found = count()
        if not collected:
            collected.append(True)
            gc.collect(0)  # as in another thread that runs just after the look
        return found

    newcomers.start()
    try:
        assert newcomers.have(gg.ones(2))
        newcomers._guessed = True
        monkeypatch.setattr(gc, "get_count", overtaken)
        newcomers.check()
    finally:
        newcomers.stop()
    assert collected


def test_looking_for_tensors_keeps_nothing_alive_and_lets_a_tuple_be_finished() -> None:
    x = gg.ones(2)
    marks = [[i] for i in range(200)]
    before = [sys.getrefcount(mark) for mark in marks]
    enabled = gc.isenabled()
    gc.disable()
    try:
        pair = tuple(alive.tensors(generation) for generation in (0, None))  # CPython refuses to finish one held twice
        assert [sys.getrefcount(mark) for mark in marks] == before
    finally:
        if enabled:
            gc.enable()
    assert any(one is x for one in pair[1])


def test_frames_that_another_thread_looks_at_are_waited_for():
    main, taken, seen = threading.get_ident(), threading.Event(), []

    def is_looked_at(x):
        y = x * 2
        taken.wait(5)
        return y

    def looks():
        while not seen:
            frame = sys._current_frames()[main]
            while frame is not None and frame.f_code is not is_looked_at.__code__:
                frame = frame.f_back
            if frame is not None and "y" in frame.f_locals:
                seen.append(frame)
        taken.set()
        until = time.monotonic() + 5
        while not (waits := "_check_stored" in names_of(sys._current_frames()[main])) and time.monotonic() < until:
            time.sleep(0.001)
        time.sleep(0.01)
        seen[0] = waits

    thread = threading.Thread(target=looks)
    thread.start()
    try:
        assert gg.compile(is_looked_at, backend="numpy", strict=True)(gg.tensor([1.0])).tolist() == [2.0]
    finally:
        thread.join()
    assert seen == [True]


def names_of(frame):
    while frame is not None:
        yield frame.f_code.co_name
        frame = frame.f_back
