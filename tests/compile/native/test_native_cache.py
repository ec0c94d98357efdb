"""Compiled steps on disk: found again, damaged, written by many at once, switched off."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys

import numpy as np
import pytest

from glassgrad.compile.kept import files
from tests.compile.graphs import ARRAY, Builder, lower

KEY = "5" * 64


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("GLASSGRAD_CACHE_DIR", str(tmp_path))
    return tmp_path / "native"


def graph(factor=2.0):
    b = Builder()
    x, w = b.input(8, 5), b.input(8, 5)
    scaled = x * factor + b.constant(np.arange(5, dtype=np.float32))
    return b.build(scaled.sum(1), updates=[(w, w - scaled)])


def results(step):
    x, w = np.ones((8, 5), np.float32), np.zeros((8, 5), np.float32)
    return (*step(x, w), w)


def test_a_second_compilation_finds_the_first(place):
    first = lower(graph(), threads=2)
    second = lower(graph(), threads=2)
    assert not first.stats.cached
    assert second.stats.cached
    for one, two in zip(results(first), results(second), strict=True):
        np.testing.assert_array_equal(one, two)
    assert second.stats.kernels == first.stats.kernels
    assert second.explain() == first.explain()
    assert second.llvm == first.llvm


def test_another_graph_or_thread_count_is_another_entry(place):
    lower(graph(), threads=1)
    assert not lower(graph(3.0), threads=1).stats.cached
    assert not lower(graph(), threads=2).stats.cached
    assert lower(graph(), threads=1).stats.cached


def test_the_names_and_places_of_a_graph_do_not_matter(place):
    lower(graph(), threads=1)
    b = Builder()
    x, w = b.input(8, 5, name="inputs"), b.input(8, 5, name="weights")
    b.graph.var((), np.float32)  # other numbers for the Vars
    scaled = x * 2.0 + b.constant(np.arange(5, dtype=np.float32))
    assert lower(b.build(scaled.sum(1), updates=[(w, w - scaled)]), threads=1).stats.cached


def test_checks_of_indices_survive(place):
    def build():
        b = Builder()
        table, at = b.input(5, 3), b.input(4, dtype="i8")
        return b.build(table.getitem(at, spec=(ARRAY,)), table.getitem(at + 1, spec=(ARRAY,)))

    for cached in (False, True):
        step = lower(build(), threads=1)
        assert step.stats.cached == cached
        values = np.arange(15, dtype=np.float32).reshape(5, 3)
        near, far = step(values, np.array([0, 1, 2, 3]))
        np.testing.assert_array_equal(far, values[1:])
        np.testing.assert_array_equal(near, values[:4])
        with pytest.raises(IndexError, match="out of range for an axis of extent 5"):
            step(values, np.array([0, 1, 2, 5]))
        with pytest.raises(IndexError, match="that the step computes"):
            step(values, np.array([0, 1, 2, 4]))


def test_a_step_with_the_hosts_help_is_compiled_anew_from_stored_code(place):
    def build():
        b = Builder(np.dtype("f8"))
        return b.build((b("inv", b.input(3, 3) * 2) * 4).sum())

    assert lower(build(), threads=1)(np.eye(3))[0] == 6
    assert lower(build(), threads=1)(np.eye(3))[0] == 6


def damage_end(data):
    return data[:-1] + bytes([data[-1] ^ 1])


def damage_start(data):
    return b"x" + data[1:]


def cut(data):
    return data[: len(data) // 2]


@pytest.mark.parametrize("damage", [damage_end, damage_start, cut, lambda data: b"", lambda data: data[:20]])
def test_damaged_entries_are_ignored_and_replaced(place, damage):
    want = results(lower(graph(), threads=1))
    for path in place.iterdir():
        path.write_bytes(damage(path.read_bytes()))
    step = lower(graph(), threads=1)
    assert not step.stats.cached
    for one, two in zip(results(step), want, strict=True):
        np.testing.assert_array_equal(one, two)
    assert lower(graph(), threads=1).stats.cached


def _write_many(folder, number):
    os.environ["GLASSGRAD_CACHE_DIR"] = folder
    for turn in range(40):
        files.write(KEY, {"writer": number, "turn": turn}, bytes([number]) * 5000)
        entry = files.read(KEY)
        if entry is not None and entry[1] != bytes([entry[0]["writer"]]) * 5000:
            raise SystemExit(1)


@pytest.mark.slow
def test_many_writers_and_readers_see_whole_entries(place):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_many, args=(str(place.parent), number)) for number in range(1, 4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    entry = files.read(KEY)
    assert entry is not None
    assert entry[1] == bytes([entry[0]["writer"]]) * 5000
    assert [path.name for path in place.iterdir()] == [f"{KEY}.native"]


def test_an_unwritable_place_is_no_error(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("GLASSGRAD_CACHE_DIR", str(blocked))
    assert results(lower(graph(), threads=1))[0].shape == (8,)
    assert not lower(graph(), threads=1).stats.cached


def test_where_entries_lie(monkeypatch, tmp_path):
    monkeypatch.setenv("GLASSGRAD_CACHE_DIR", "")
    assert files.folder() is None
    monkeypatch.delenv("GLASSGRAD_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert files.folder() == tmp_path / "glassgrad" / "native"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert files.folder() == tmp_path / ".cache" / "glassgrad" / "native"


def test_old_entries_make_room(place):
    keys = [str(number) * 64 for number in range(6)]
    for number, key in enumerate(keys):
        files.write(key, {}, bytes(900), kept=3000)
        os.utime(place / f"{key}.native", (number, number))
    assert files.read(keys[0]) is None
    assert files.read(keys[5]) is not None
    assert sum(path.stat().st_size for path in place.iterdir()) <= 3000


def test_many_small_entries_are_looked_through_now_and_then(place, monkeypatch):
    looked = []
    listed = type(place).iterdir
    monkeypatch.setattr(type(place), "iterdir", lambda path: looked.append(path) or listed(path))
    kept, most = 100_000, 0
    for number in range(200):
        files.write(f"{number:064x}", {}, bytes(900), kept=kept)
        most = max(most, sum(path.stat().st_size for path in listed(place)))
    assert kept < most <= kept + kept // 16 + 2000  # what is written between two looks
    assert 20 < len(looked) < 50
    assert files.read(f"{0:064x}") is None
    assert files.read(f"{199:064x}") is not None


def test_only_its_own_files_are_swept(place):
    place.mkdir(mode=0o700)
    others = ["notes.txt", "a" * 64, "A" * 64 + ".native", "b" * 63 + ".native", f"{KEY}.native.bak", ".new-abc",
              f".{KEY}.native", f"x{KEY}.native", f".{'a' * 63}.abc.new"]  # fmt: skip  # a table
    for name in others:
        (place / name).write_bytes(bytes(2000))
        os.utime(place / name, (1, 1))
    (place / "folder").mkdir()
    (place / f"{'e' * 64}.native").mkdir()  # of the right name, and still none of ours
    for digit in "012":
        files.write(digit * 64, {}, bytes(900), kept=3000)
    found = {path.name for path in place.iterdir()}
    assert {*others, "folder", f"{'e' * 64}.native"} <= found
    assert files.read("2" * 64) is not None


def test_what_killed_processes_left_is_swept_when_it_is_old(place):
    place.mkdir(mode=0o700)
    old, young = place / f".{KEY}.old_one1.new", place / f".{KEY}.young_1.new"
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (1, 1))
    files.write(KEY, {}, b"code")
    assert young.exists()
    assert not old.exists()


def test_another_process_finds_the_entry(place):
    lower(graph(), threads=1)
    code = (
        "from tests.compile.native.test_native_cache import graph, lower, results;"
        "step = lower(graph(), threads=1); print(step.stats.cached, float(results(step)[0].sum()))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.split() == ["True", str(float(results(lower(graph(), threads=1))[0].sum()))], done.stderr


_GLOBAL_STEP = """
import glassgrad as gg
from glassgrad import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out, self.hidden = nn.Linear(3, 2), nn.Linear(4, 3)
    def forward(self, x):
        return self.out(self.hidden(x).tanh()) * scale + shift

gg.manual_seed(0)
net, scale, shift = Net(), gg.ones(2), gg.zeros(2)
optimizer = gg.optim.Adam(net.parameters())

@gg.compile(backend="numpy")
def step(x):
    optimizer.zero_grad()
    loss = net(x).square().sum()
    loss.backward()
    optimizer.step()
    return loss

step(gg.ones(5, 4))
print(step.traced, step.graph)
"""


def test_processes_with_other_hash_seeds_make_the_same_program(tmp_path):
    """Otherwise one would not find in the cache what another left there."""
    script = tmp_path / "script.py"
    script.write_text(_GLOBAL_STEP)
    printed = set()
    for seed in ("0", "1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        process = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=True)
        printed.add(process.stdout)
    assert len(printed) == 1
    assert "scale" in printed.pop()
