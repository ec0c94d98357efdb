"""Compiled steps on disk are executable machine code: their owner, their key, and crafted entries."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import random
import stat
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.compile.kept import files, private
from glassgrad.compile.llvm.module import target
from glassgrad.compile.llvm.objects import machine
from glassgrad.compile.native import cache
from glassgrad.compile.native.cache_entry import to_header, to_layout
from glassgrad.compile.native.executable import Layout
from glassgrad.compile.stages import native
from tests.compile.graphs import ARRAY, Builder, lower
from tests.compile.native.test_native_cache import graph, results
from tests.crafted import crafted, deep

KEY = "7" * 64
needs_owners = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners and modes here")


@pytest.fixture(autouse=True)
def _no_notice_given(monkeypatch):
    monkeypatch.setattr(private, "noticed", set())


@pytest.fixture
def place(tmp_path, monkeypatch):
    base = tmp_path / "cache"
    base.mkdir(mode=0o700)
    monkeypatch.setenv("GLASSGRAD_CACHE_DIR", str(base))
    return base / "native"


# --- what an entry belongs to -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["features", "cpu", "triple"])
def test_code_for_another_processor_is_another_entry(place, monkeypatch, name):
    lower(graph(), threads=1)
    here = cache.key_of("step")
    assert lower(graph(), threads=1).stats.cached
    monkeypatch.setattr(target.host(), name, getattr(target.host(), name) + "+other")
    assert cache.key_of("step") != here
    assert files.read(here) is None  # asked for by the key of another machine only


def _versions_with(monkeypatch, **changed):
    """Return what identifies the compiler when one of its parts is another."""
    with monkeypatch.context() as patch:
        patch.setattr(machine, "__version__", changed.pop("glassgrad", machine.__version__))
        patch.setattr(machine, "machine", lambda: dataclasses.replace(machine.asked(), **changed))
        return machine.versions.__wrapped__()


@pytest.mark.parametrize("changed", [{"glassgrad": "9.9"}, {"llvmlite": "9.9"}, {"llvm": "(99, 0, 0)"}])
def test_code_of_another_version_is_another_entry(place, monkeypatch, changed):
    lower(graph(), threads=1)
    here = cache.key_of("step")
    other = _versions_with(monkeypatch, **changed)
    assert other != _versions_with(monkeypatch)
    monkeypatch.setattr(machine, "versions", lambda: other)
    assert cache.key_of("step") != here
    assert not lower(graph(), threads=1).stats.cached


def test_the_state_of_the_compilers_own_source_is_part_of_its_version():
    named = machine.versions.__wrapped__()
    for file in ("compile/kept/files.py", "compile/llvm/module/target.py", "ops/elementwise.py"):
        about = (Path(provenance.PACKAGE) / file).stat()
        assert f"{Path(file)} {about.st_size} {about.st_mtime_ns}" in named.splitlines()


def test_an_entry_under_the_name_of_another_is_damaged(place):
    files.write(KEY, {}, b"code")
    other = "8" * 64
    (place / f"{KEY}.native").rename(place / f"{other}.native")
    assert files.read(other) is None
    assert not (place / f"{other}.native").exists()


def steps():
    """Graphs whose layouts use every field."""
    yield graph()
    b = Builder()
    table, at, target_ = b.input(5, 3), b.input(4, dtype="i8"), b.input(4, 3)
    picked = table.getitem(at, spec=(ARRAY,)) + table.getitem(at + 1, spec=(ARRAY,))
    yield b.build(picked.sum(1), updates=[(target_, target_ + picked)])
    b = Builder()
    x, w = b.input(64, 64), b.input(64, 64)
    hidden = (x @ w) * 2.0 + b.constant(np.arange(64, dtype=np.float32))
    yield b.build((hidden @ x).sum(1), updates=[(w, w - hidden)])
    b = Builder()
    x, w = b.input(8, 5), b.input(8, 5)  # several constants
    moved = x * b.constant(np.arange(40, dtype=np.float32).reshape(8, 5)) + b.constant(np.arange(5, dtype=np.float32))
    yield b.build(moved.sum(1) * b.constant(np.arange(8, dtype=np.float32)), updates=[(w, w - moved)])


@pytest.mark.parametrize("number", range(4))
def test_a_stored_layout_forgets_nothing(place, number):
    """Compared field by field, whatever fields there are: what is written, what is checked, what lies where."""
    given = list(steps())[number]
    executable = native(given, 2, as_it_is=True, stored=False)
    layout = executable.step.layout
    header = json.loads(json.dumps(to_header(given, layout, executable.stats)))
    found, stats = to_layout(given, header, layout.uses)
    twin = dict(zip(layout.slots, found.slots, strict=True))

    def translated(value):
        if isinstance(value, dict):
            return {translated(key): translated(one) for key, one in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            parts = [translated(one) for one in value]
            return sorted(parts, key=str) if isinstance(value, set | frozenset) else parts
        if isinstance(value, np.ndarray):
            return value.tolist()
        if dataclasses.is_dataclass(value) and hasattr(value, "extent"):
            return translated([value.var, value.extent, value.low, value.spare])
        return id(twin.get(value, value)) if type(value).__name__ == "Var" else value

    for field in dataclasses.fields(Layout):
        ours, theirs = getattr(layout, field.name), getattr(found, field.name)
        assert translated(ours) == translated(theirs), field.name
    assert stats == executable.stats
    assert layout.written, "a layout without state would prove nothing"


def test_a_stored_step_knows_which_state_it_writes(place):
    for cached in (False, True):
        step = lower(graph(), threads=1)
        assert step.stats.cached == cached
        frozen = np.zeros((8, 5), np.float32)
        frozen.flags.writeable = False
        with pytest.raises(errors.GlassgradError):
            step(np.ones((8, 5), np.float32), frozen)
        assert not frozen.any()
        transposed = np.zeros((5, 8), np.float32).T
        with pytest.raises(errors.GlassgradError):
            step(np.ones((8, 5), np.float32), transposed)


# --- whose it is ------------------------------------------------------------------------------------


def owned_by_another(place):
    if os.geteuid():
        pytest.skip("only root gives folders away")
    os.chown(place, 12345, -1)


def writable_by_all(place):
    place.chmod(0o707)


def writable_by_the_group(place):
    place.chmod(0o770)


def behind_a_link(place):
    place.rename(place.with_name("elsewhere"))
    place.symlink_to(place.with_name("elsewhere"), target_is_directory=True)


SPOILT = [owned_by_another, writable_by_all, writable_by_the_group, behind_a_link]


@needs_owners
@pytest.mark.parametrize("above", [False, True])
@pytest.mark.parametrize("spoil", SPOILT)
def test_a_folder_that_others_could_have_filled_is_refused_with_one_warning(place, spoil, above):
    lower(graph(), threads=1)
    assert lower(graph(), threads=1).stats.cached
    spoil(place.parent if above else place)
    before = {path: path.stat().st_mtime_ns for path in place.iterdir()}
    with pytest.warns(errors.CompileWarning, match="compiled steps are neither read from nor written to") as found:
        step = lower(graph(), threads=1)
    assert len(found) == 1
    assert not step.stats.cached
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step = lower(graph(3.0), threads=1)  # no second warning
    assert results(step)[0].shape == (8,)
    assert {path: path.stat().st_mtime_ns for path in place.iterdir()} == before


@needs_owners
@pytest.mark.parametrize("spoil", [owned_by_another, writable_by_all, writable_by_the_group, behind_a_link])
def test_a_file_that_others_could_have_written_is_not_run(place, spoil):
    key = KEY
    files.write(key, {}, b"code")
    assert files.read(key) == ({}, b"code")
    spoil(place / f"{key}.native")
    assert files.read(key) is None
    files.write(key, {}, b"better")
    assert files.read(key) == ({}, b"better")
    assert stat.S_IMODE((place / f"{key}.native").stat().st_mode) & 0o022 == 0


@needs_owners
def test_a_pipe_in_place_of_an_entry_does_not_hang(place):
    place.mkdir(mode=0o700)
    os.mkfifo(place / f"{KEY}.native")
    assert files.read(KEY) is None
    files.write(KEY, {}, b"code")
    assert files.read(KEY) == ({}, b"code")


@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "GLASSGRAD_CACHE_DIR"])
def test_a_relative_path_is_refused(tmp_path, monkeypatch, variable):
    monkeypatch.delenv("GLASSGRAD_CACHE_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    monkeypatch.setenv(variable, "inside")
    monkeypatch.chdir(tmp_path)
    with pytest.warns(errors.CompileWarning, match=f"relative path.*\n.*make {variable} an absolute") as found:
        lower(graph(), threads=1)
    assert len(found) == 1
    assert not (tmp_path / "inside").exists()
    private_place = tmp_path / "home" / ".cache" / "glassgrad" / "native"
    # The user's own folder is known even so; a cache that was asked for elsewhere is not moved there.
    assert private_place.exists() == (variable == "XDG_CACHE_HOME")


@needs_owners
def test_new_folders_are_closed_to_others_whatever_the_mask(tmp_path, monkeypatch):
    monkeypatch.delenv("GLASSGRAD_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    mask = os.umask(0)
    try:
        files.write(KEY, {}, b"code")
    finally:
        os.umask(mask)
    for path in (tmp_path / "glassgrad", tmp_path / "glassgrad" / "native"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert files.read(KEY) == ({}, b"code")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT])
@pytest.mark.parametrize("call", ["mkstemp", "fdopen", "replace", "mkdir"])
def test_a_disk_that_takes_nothing_is_no_error(place, monkeypatch, number, call):
    def fail(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    owner = {"mkstemp": tempfile, "mkdir": Path}.get(call, files.os)
    monkeypatch.setattr(owner, call, fail)
    assert results(lower(graph(), threads=1))[0].shape == (8,)
    assert not lower(graph(), threads=1).stats.cached
    monkeypatch.undo()
    monkeypatch.setenv("GLASSGRAD_CACHE_DIR", str(place.parent))
    assert not [path for path in place.glob("*") if path.name.endswith(".native")]


# --- crafted entries --------------------------------------------------------------------------------


STRANGE = [
    None, True, -1, 1.5, 10**30, 1 << 62, float("nan"), "", "zz", "f4", [], {}, [[]], {"a": 1}, deep(199, []), [-1, -1],
]  # fmt: skip  # a table


@pytest.mark.parametrize("seed", [7, pytest.param(8, marks=pytest.mark.slow)])
def test_crafted_headers_are_damaged_or_harmless(place, seed):
    """A header of another shape never ends in an error; with its checksum mended it is taken out and made anew."""
    given = list(steps())[1]
    lower(given, threads=1)
    (path,) = [one for one in place.iterdir() if files._unpacked(one.stem, one.read_bytes())[0]]
    header, code = files._unpacked(path.stem, path.read_bytes())
    draw = random.Random(seed)
    taken = 0
    for _ in range(200):
        changed = crafted(header, draw, STRANGE, 0.7)
        spoilt = files._packed(path.stem, changed, code)
        path.write_bytes(spoilt)
        lower(given, threads=1)
        if path.read_bytes() == spoilt:  # it could be: other totals, one check less, the like
            taken += changed != header
            assert np.size(changed["sizes"]) == 4
            assert len(changed["inputs"]) == len(given.inputs)
            assert sorted(changed["slots"]) == list(range(len(header["slots"])))
    assert taken < 80  # a dozen of the header's values are totals that nobody computes with


def _body(text, code=b"code"):
    body = len(text).to_bytes(8, "little") + text + code
    return files._MAGIC + files._digest(KEY, body) + body


BODIES = {
    "deep lists": _body(b"[" * 200_000),
    "deep lists, closed": _body(b"[" * 100_000 + b"]" * 100_000),
    "deep objects": _body(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    "a list": _body(b"[]"),
    "null": _body(b"null"),
    "no text": _body(b"\xff\xfe"),
    "a huge number": _body(b'{"a": ' + b"9" * 10_000 + b"}"),
    "cut": _body(b'{"a": 1'),
    "half a character": _body(b'{"a": "\xc3"}'),
    "nothing": files._MAGIC + files._digest(KEY, b""),
    "a length beyond the end": files._MAGIC + files._digest(KEY, b"\xff" * 8 + b"{}") + b"\xff" * 8 + b"{}",
}


@pytest.mark.parametrize("name", BODIES)
def test_headers_that_are_no_object_are_damaged(place, name):
    place.mkdir(mode=0o700)
    path = place / f"{KEY}.native"
    path.write_bytes(BODIES[name])
    found = files.read(KEY)
    assert found is None or found[0] == {}
    assert found is not None or not path.exists()


def test_every_cut_and_flipped_bit_is_noticed(place):
    files.write(KEY, {"some": [1, 2, 3]}, b"machine code")
    path = place / f"{KEY}.native"
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert files.read(KEY) is None
    for bit in range(8 * len(whole)):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        assert files.read(KEY) is None
    path.write_bytes(whole)
    assert files.read(KEY) == ({"some": [1, 2, 3]}, b"machine code")
