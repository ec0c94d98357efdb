"""The cache in memory: its bound, its order of eviction, its list, and its content in a forked child."""

from __future__ import annotations

import os
import threading

import pytest

from glassgrad.base.kept import Cache, kept


def test_the_entry_that_was_used_least_recently_is_dropped() -> None:
    cache: Cache[str, int] = Cache("letters", 2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c"), len(cache), cache.evicted) == (1, None, 3, 2, 1)
    cache.put("a", 4)  # replaces, and counts as used
    assert cache.values() == [3, 4]
    cache.drop("a")
    cache.drop("not there")
    assert cache.values() == [3]
    assert cache.evicted == 1


def test_the_bound_may_change() -> None:
    most = 3
    cache: Cache[int, int] = Cache("numbers", lambda: most)
    for number in range(3):
        cache.put(number, number)
    most = 1
    cache.put(3, 3)
    assert cache.values() == [3]


def test_values_are_made_once_and_all_threads_get_the_first() -> None:
    cache: Cache[str, object] = Cache("objects", 8)
    ready, found = threading.Barrier(2), []

    def make() -> object:
        ready.wait(timeout=10)  # both threads miss before either has made one
        return object()

    threads = [threading.Thread(target=lambda: found.append(cache.found("key", make))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] is found[1] is cache.found("key", object)


def test_caches_are_listed_by_name() -> None:
    one: Cache[int, int] = Cache("listed", 1)
    other: Cache[int, int] = Cache("listed", 4)
    for number in range(3):
        one.put(number, number)
        other.put(number, number)
    assert kept()["listed"] == (4, 2)
    del one
    assert kept()["listed"] == (3, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_begins_without_what_is_invalid_there() -> None:
    stays: Cache[int, int] = Cache("stays", 2)
    goes: Cache[int, int] = Cache("goes", 2, in_children=False)
    stays.put(1, 1)
    goes.put(1, 1)
    with goes._lock:  # another thread of the parent may be inside
        child = os.fork()
        if child == 0:
            os._exit(0 if (stays.get(1), goes.get(1)) == (1, None) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert goes.get(1) == 1
