"""The content of a compile cache entry: everything is restored, and unsupported objects are refused by name."""

from __future__ import annotations

import dataclasses
import json
import os
import time

import numpy as np
import pytest

from glassgrad import errors
from glassgrad.compile.ir.graph import Var
from glassgrad.compile.kept import files, private
from glassgrad.compile.native import cache, cache_entry
from glassgrad.compile.native.cache_entry import to_header, to_layout
from glassgrad.compile.native.executable import HostCall
from glassgrad.compile.stages import native
from tests.compile.graphs import ARRAY, Builder

FAR = 281474976710655


def graph():
    """Indices that are given and computed, state that is written, and two constants of one shape."""
    b = Builder()
    table, at, target = b.input(5, 3), b.input(4, dtype="i8"), b.input(4, 3)
    picked = table.getitem(at, spec=(ARRAY,)) + table.getitem(at + 1, spec=(ARRAY,))
    moved = picked * b.constant(np.arange(3, dtype=np.float32)) + b.constant(np.ones((4, 3), np.float32))
    return b.build((moved * 2.0).sum(1), updates=[(target, target + moved)])


@pytest.fixture(scope="module")
def made():
    """Return a graph with its step, compiled once."""
    given = graph()
    return given, native(given, 2, stored=False)


@pytest.fixture
def header(made):
    given, executable = made
    return json.loads(json.dumps(to_header(given, executable.step.layout, executable.stats)))


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("GLASSGRAD_CACHE_DIR", str(tmp_path))
    return tmp_path / "native"


def put(*path):
    """Return a change of a header: its last argument is put where the others lead."""
    *way, name, value = path

    def change(header):
        for step in way:
            header = header[step]
        header[name] = value

    return change


def swapped_inputs(header):
    header["inputs"][0], header["inputs"][2] = header["inputs"][2], header["inputs"][0]


def one_place_twice(header):
    """Two inputs of one type in one place: the first has none then."""
    header["inputs"] = [header["inputs"][0]] * 2 + header["inputs"][2:]
    header["vars"][header["inputs"][0]] = [[5, 3], "<f4"]


def too_little_memory(header):
    header["sizes"][2] = max(offset for _, offset in header["buffers"])


def written_result(header):
    header["written"].append(header["outputs"][0])


def check_of_a_result(header):
    header["checks"][0][0] = header["outputs"][0]


def other_shape(header):
    header["vars"][header["inputs"][0]][0] = [3, 5]


def other_dtype(header):
    header["vars"][header["inputs"][0]][1] = "<i4"


def constant_elsewhere(header):
    (first, second) = [entry for entry in header["constants"] if isinstance(entry[1], int)][:2]
    first[1], second[1] = second[1], first[1]


def slots_beyond(header):
    header["slots"][0] = len(header["slots"])


def more_guards_than_results(header):
    header["guards"] = len(header["outputs"]) + 1


def longer_turns(header):
    header["segments"][0][0] = header["sizes"][1] + 1


def call_of_the_host(header):
    header["segments"][0][1] = [0, [], [], []]


REFUSED = {
    "no shares": (put("sizes", 0, 0), "0 is not from 1 to 4095"),
    "too many shares": (put("sizes", 0, 4096), "4096 is not from 1 to 4095"),
    "no phases": (put("sizes", 1, 0), f"0 is not from 1 to {FAR}"),
    "a scratch below zero": (put("sizes", 3, -1), f"-1 is not from 0 to {FAR}"),
    "too large a scratch": (put("sizes", 3, FAR + 1), f"{FAR + 1} is not from 0 to {FAR}"),
    "too large an arena": (put("sizes", 2, FAR + 1), f"{FAR + 1} is not from 0 to {FAR}"),
    "a buffer before the memory": (put("buffers", 0, 1, -1), f"-1 is not from 0 to {FAR}"),
    "a slot that is not there": (slots_beyond, "is not from 0 to"),
    "a slot twice": (put("slots", 0, 1), "two Vars share a slot"),
    "a place twice": (one_place_twice, "is stored for"),
    "a truth value": (put("slots", 0, False), "False is not from 0 to"),
    "a negative extent": (put("vars", 0, 0, [-1]), f"-1 is not from 0 to {FAR}"),
    "no dtype": (put("vars", 0, 1, "no"), "data type 'no' not understood"),
    "inputs in another order": (swapped_inputs, "is stored for"),
    "inputs of another shape": (other_shape, "is stored for"),
    "inputs of another dtype": (other_dtype, "is stored for"),
    "constants in another order": (constant_elsewhere, "is not of the shape of constant"),
    "a constant that is not there": (put("constants", 0, 1, 99), "99 is not from 0 to 1"),
    "a result that is written": (written_result, "it treats another value as an argument"),
    "a checked result": (check_of_a_result, "it treats another value as an argument"),
    "too little memory": (too_little_memory, "a buffer lies outside the memory"),
    "an index above zero as the lowest": (put("checks", 0, 2, 1), f"1 is not from {-FAR - 1} to 0"),
    "an extent below zero": (put("checks", 0, 1, -1), f"-1 is not from 0 to {FAR}"),
    "too much to spare": (put("checks", 0, 3, FAR + 1), f"{FAR + 1} is not from {-FAR - 1} to {FAR}"),
    "more guards than results": (more_guards_than_results, "is not from 0 to"),
    "longer turns than there are phases": (longer_turns, "is not from 0 to"),
    "an op that says less than it does, as a call of the host": (call_of_the_host, "is stored as a call of the host"),
    "a total that is text": (put("stats", "flops", "many"), "a total that is no number"),
}  # fmt: skip  # a table


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_for_what_it_is(made, header, name):
    given, executable = made
    change, message = REFUSED[name]
    change(header)
    with pytest.raises((ValueError, TypeError), match=message):
        to_layout(given, header, executable.step.layout.uses)


@pytest.mark.parametrize(
    "change",
    [
        put("sizes", 0, 1), put("sizes", 0, 4095), put("sizes", 1, 1000), put("checks", 0, 3, -5),
        put("checks", 0, 2, 0), put("guards", 0), put("sizes", 3, 0),
    ],
)  # fmt: skip  # a table
def test_what_can_be_is_taken(made, header, change):
    given, executable = made
    change(header)
    layout, _ = to_layout(given, header, executable.step.layout.uses)
    assert [layout.shares, layout.phases, layout.arena, layout.scratch] == header["sizes"]
    assert len(layout.guards) == header["guards"]
    assert [[check.extent, check.low, check.spare] for check in layout.checks] == [one[1:] for one in header["checks"]]


def test_memory_ends_with_the_last_buffer(made, header):
    given, executable = made
    ends = [offset + var.nbytes for var, offset in executable.step.layout.buffers.items()]
    header["sizes"][2] = max(ends)
    assert to_layout(given, header, executable.step.layout.uses)[0].arena == max(ends)


@pytest.mark.parametrize(("count", "stored"), [(1 << 18, True), ((1 << 18) + 1, False)])
def test_constants_of_the_compilers_own_are_stored_up_to_a_mebibyte(made, count, stored):
    given, executable = made
    layout = executable.step.layout
    var = Var(-1, (count,), np.dtype("f4"))
    values = np.linspace(0, 1, count, dtype=np.float32)
    slots = {**layout.slots, var: len(layout.slots)}
    more = dataclasses.replace(layout, slots=slots, constants=[*layout.constants, (var, values)])
    found = to_header(given, more, executable.stats)
    assert (found is not None) == stored
    if found is not None:
        own, back = to_layout(given, found, layout.uses)[0].constants[-1]
        assert own.shape == (count,)
        np.testing.assert_array_equal(back, values)


def test_a_step_that_calls_python_is_not_stored(made):
    given, executable = made
    layout = dataclasses.replace(
        executable.step.layout, segments=[(1, None), (1, HostCall(lambda: None, (), (), op="add"))]
    )
    assert to_header(given, layout, executable.stats) is None


@pytest.mark.parametrize("threads", [1, 2, None])
def test_a_step_is_found_as_it_was_stored(place, threads):
    """Not only its machine code, by the text of its module, but everything about it."""
    key = cache_entry.key_of(graph(), threads, as_it_is=False)
    executable = native(graph(), threads)
    step, stats = cache_entry.find(key, graph(), executable.step.layout.uses)
    assert stats == executable.stats
    assert step.shares == executable.step.shares
    assert cache_entry.find(cache_entry.key_of(graph(), threads, as_it_is=True), graph(), lambda: ([], [])) is None
    header, _ = files.read(key)
    files.write(key, {**header, "slots": []}, b"code")
    assert cache_entry.find(key, graph(), executable.step.layout.uses) is None
    assert not (place / f"{key}.native").exists(), "what makes no sense is taken out"


def test_a_step_may_write_all_that_it_takes():
    b = Builder()
    w = b.input(4, 3)
    given = b.build(updates=[(w, w * 2.0)])
    executable = native(given, 1, stored=False)
    layout = executable.step.layout
    assert layout.written == set(layout.inputs)
    assert to_layout(given, to_header(given, layout, executable.stats), layout.uses)[0].written == layout.written


def test_how_many_shares_is_part_of_the_name(monkeypatch):
    names = {cache_entry.key_of(graph(), threads, as_it_is=as_it_is) for threads in (1, 2, None) for as_it_is in (0, 1)}
    assert len(names) == 6
    monkeypatch.setattr(cache_entry, "available_cores", lambda: 77)
    assert cache_entry.key_of(graph(), None, as_it_is=False) not in names


def test_the_code_of_a_module_is_made_once(place):
    made = []

    def compiled(text):
        made.append(text)
        return text.encode()

    assert cache.code_for("module", compiled) == (b"module", False)
    assert cache.code_for("module", compiled) == (b"module", True)
    assert cache.code_for("another", compiled) == (b"another", False)
    assert made == ["module", "another"]


def test_the_text_of_a_named_module_is_written_once(place):
    written = []

    def text(about):
        written.append(about)
        return f"text of {about}"

    for name, about in (("one", 1), ("one", 1), ("one", 2), ("other", 2), ("one", 2)):
        assert cache.code_of(name, (about,), lambda about=about: text(about), str.encode) == f"text of {about}".encode()
    assert written == [1, 2, 2]


# --- the folder -----------------------------------------------------------------------------------------------------


def names_in(place):
    return sorted(path.name[0] for path in place.iterdir())


def write(place, digit, kept=10**9):
    """Write an entry that was used `digit` seconds after the beginning of time; return its size."""
    path = place / f"{digit * 64}.native"
    files.write(digit * 64, {}, bytes(900), kept)
    if path.exists():
        os.utime(path, (int(digit), int(digit)))
    return path.stat().st_size if path.exists() else 0


@pytest.mark.parametrize(("spare", "left"), [(0, "0123"), (-1, "123"), (-2000, "3")])
def test_room_is_made_to_the_byte_and_no_further(place, spare, left):
    size = max(write(place, digit) for digit in "012")
    write(place, "3", 4 * size + spare)
    assert names_in(place) == list(left)


def test_what_could_not_be_put_into_its_place_is_removed(place, monkeypatch):
    def refuse(*_):
        raise OSError("full")

    monkeypatch.setattr(os, "replace", refuse)
    files.write("0" * 64, {}, b"code")
    assert list(place.iterdir()) == []


def test_folders_between_the_entries_do_not_end_the_sweep(place):
    place.mkdir(mode=0o700)
    for number in range(40):
        (place / f"folder {number}").mkdir()
    for digit in "0123":
        write(place, digit)
    write(place, "4", 0)
    assert set(names_in(place)) == {"f"}


def test_what_is_read_is_kept_longest(place):
    size = max(write(place, digit) for digit in "01")
    assert files.read("0" * 64) == ({}, bytes(900))
    write(place, "2", 2 * size)
    assert names_in(place) == ["0", "2"]


def test_what_others_left_is_swept_after_an_hour(place, monkeypatch):
    place.mkdir(mode=0o700)
    monkeypatch.setattr(time, "time", lambda: 10_000.0)
    for name, age in (("hour", 3600), ("more", 3601)):
        path = place / f".{'a' * 64}.{name}.new"
        path.write_bytes(b"half")
        os.utime(path, (10_000 - age, 10_000 - age))
    write(place, "0")
    assert sorted(path.name.split(".")[-2] for path in place.iterdir()) == ["0" * 64, "hour"]


def test_files_are_read_up_to_a_size(tmp_path):
    path = tmp_path / "file"
    assert private.read(path, 10) is None, "there is nothing"
    path.write_bytes(b"0123456789")
    path.chmod(0o600)
    assert private.read(path, 10) == b"0123456789"
    assert private.read(path, 9) == b"", "there is something, which is not for us"
    path.chmod(0o602)
    assert private.read(path, 10) == (b"" if hasattr(os, "geteuid") else b"0123456789")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners and modes here")
def test_a_refusal_says_what_speaks_against_a_folder(tmp_path):
    open_to_all, link, foreign, fine = (tmp_path / name for name in ("open", "link", "foreign", "fine"))
    for folder in (open_to_all, foreign, fine):
        folder.mkdir(mode=0o700)
    open_to_all.chmod(0o702)
    link.symlink_to(fine, target_is_directory=True)
    said = {open_to_all: rf"can be written by other users.*\n.*chmod go-w {open_to_all}", link: "is a symbolic link"}
    if os.geteuid() == 0:
        os.chown(foreign, 12345, -1)
        said[foreign] = "belongs to another user"
    for folder, message in said.items():
        with pytest.warns(errors.CompileWarning, match=message):
            assert private.trusted(folder) is None
    assert private.trusted(fine) == fine
