"""Machine code loaded without LLVM: every kind of relocation, refused objects, and the access rights of its pages."""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import pytest

from glassgrad import errors
from glassgrad.compile.llvm.module import target
from glassgrad.compile.llvm.module.target import LoadedCode, host
from glassgrad.compile.llvm.objects import elf, linking, pages
from glassgrad.compile.llvm.objects.linking import Linked, UnsuitableError
from glassgrad.compile.llvm.objects.separate import joined, separate

pytestmark = pytest.mark.skipif(
    not (sys.platform == "linux" and host().triple.startswith("x86_64")), reason="elsewhere LLVM loads everything"
)

NUMBER = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
WORD = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)

# A constant, a function of the process, a table of jumps, a table of addresses, and a variable of the module's own.
TEXT = """
declare double @fmod(double, double)
@count = internal global i64 40
@zeros = internal global [9 x i64] zeroinitializer
@table = internal constant [2 x ptr] [ptr @one, ptr @two]
define internal i64 @one(i64 %x) noinline {
  %y = add i64 %x, 1
  ret i64 %y
}
define internal i64 @two(i64 %x) noinline {
  %y = mul i64 %x, 3
  ret i64 %y
}
define double @constant(double %x) {
  %y = fadd double %x, 0x3FB999999999999A
  ret double %y
}
define double @outside(double %x) {
  %y = call double @fmod(double %x, double 3.0)
  ret double %y
}
define i64 @jumps(i64 %x) {
  switch i64 %x, label %other [ i64 0, label %a i64 1, label %b i64 2, label %c i64 3, label %d i64 4, label %e ]
a:
  %p = call i64 @one(i64 7)
  ret i64 %p
b:
  %q = call i64 @two(i64 7)
  ret i64 %q
c:
  %r = call i64 @one(i64 32)
  ret i64 %r
d:
  store volatile i64 40, ptr @count
  ret i64 44
e:
  %s = call i64 @two(i64 %x)
  %t = add i64 %s, 43
  ret i64 %t
other:
  ret i64 -1
}
define i64 @pointers(i64 %x) {
  %which = and i64 %x, 1
  %p = getelementptr [2 x ptr], ptr @table, i64 0, i64 %which
  %f = load ptr, ptr %p
  %y = call i64 %f(i64 %x)
  ret i64 %y
}
define i64 @counts(i64 %x) {
  %p = getelementptr [9 x i64], ptr @zeros, i64 0, i64 8
  %old = load i64, ptr @count
  %new = add i64 %old, %x
  store volatile i64 %new, ptr @count
  %z = load volatile i64, ptr %p
  %sum = add i64 %new, %z
  ret i64 %sum
}
"""


def compiled(text: str = TEXT, reloc: str = "pic") -> bytes:
    module = target.parsed(host().header() + text)
    return bytes(host().new_machine(reloc).emit_object(module))


def results(address: Callable[[str], int]) -> list[float]:
    found: list[float] = [NUMBER(address("constant"))(1.5), NUMBER(address("outside"))(7.5)]
    found += [WORD(address("jumps"))(x) for x in (0, 1, 2, 3, 4, 5, -9)]
    found += [WORD(address("pointers"))(x) for x in (4, 5)]
    return [*found, *[WORD(address("counts"))(x) for x in (1, 2)]]


EXPECTED = [1.6, 1.5, 8, 21, 33, 44, 55, -1, -1, 5, 15, 41, 43]


def by_llvm(codes: list[bytes]) -> list[float]:
    engine = target._loaded_by_llvm(codes)
    return results(engine.get_function_address)


@pytest.mark.parametrize("reloc", ["pic", "static"])
def test_code_does_what_it_does_when_llvm_loads_it(reloc: str) -> None:
    code = compiled(reloc=reloc)
    assert results(Linked([code]).offered.__getitem__) == by_llvm([code]) == EXPECTED


def test_every_kind_of_relocation_is_among_them() -> None:
    kinds = set()
    for reloc in ("pic", "static"):
        file = elf.ObjectFile(compiled(reloc=reloc))
        for section in file.sections:
            if section.kind == elf.RELA:
                kinds.update(file.relocations(section)["kind"].tolist())
    assert kinds >= linking._KINDS


def in_two_files() -> list[bytes]:
    """Return the functions above, those that others call in a file of their own."""
    start, end = TEXT.index("define internal i64 @one"), TEXT.index("define double @constant")
    called = TEXT[start:end].replace("define internal", "define hidden")
    rest = "declare hidden i64 @one(i64)\ndeclare hidden i64 @two(i64)\n" + TEXT[:start] + TEXT[end:]
    return host().object_codes([host().header() + text for text in (called, rest)])


def test_files_use_one_another() -> None:
    codes = in_two_files()
    assert results(Linked(codes).offered.__getitem__) == by_llvm(codes) == EXPECTED
    assert LoadedCode(joined(codes))._linked is not None


def test_files_in_one() -> None:
    files = [b"one", b"", b"\0two"]
    assert separate(joined(files)) == files
    assert separate(b"\x7fELF and so on") == [b"\x7fELF and so on"]


def test_what_one_of_two_files_lacks_is_an_error() -> None:
    lacks = (
        "declare double @no_such(double)\n"
        "define double @f(double %x) {\n  %y = call double @no_such(double %x)\n  ret double %y\n}\n"
    )
    (code,) = host().object_codes([host().header() + lacks])
    with pytest.raises(errors.LinkError, match="no_such"):
        LoadedCode(joined([*in_two_files(), code]))


def test_each_load_has_variables_of_its_own() -> None:
    code = compiled()
    first, second = Linked([code]), Linked([code])
    assert [WORD(one.offered["counts"])(2) for one in (first, first, second)] == [42, 44, 42]


def test_no_page_is_both_written_to_and_executed() -> None:
    two = pages.Pages(2 * mmap.PAGESIZE)
    two.protect(0, mmap.PAGESIZE, pages.READ | pages.EXECUTE)
    two.protect(mmap.PAGESIZE, 2 * mmap.PAGESIZE, pages.READ)
    if _rights(two.address, two.content.size) != ["r-xp", "r--p"]:
        pytest.skip("no list of the rights of each page: an emulator's takes these two for one")
    linked = Linked([compiled()])
    held = linked._pages
    found = _rights(held.address, held.content.size)
    assert found == ["r-xp", "r--p", "rw-p"]


def _rights(start: int, size: int) -> list[str]:
    """Return the rights of the pages in a part of memory, in their order."""
    found = []
    for line in Path("/proc/self/maps").read_text(encoding="ascii").splitlines():
        place, rights, *_ = line.split()
        first, _, last = place.partition("-")
        if int(first, 16) < start + size and int(last, 16) > start:
            found.append(rights)
    return found


def test_memory_is_given_back() -> None:
    linked = Linked([compiled()])
    start, size = linked._pages.address, linked._pages.content.size
    assert "r-xp" in _rights(start, size)
    del linked
    gc.collect()
    assert "r-xp" not in _rights(start, size)


# --- what LLVM is asked for ---------------------------------------------------------------------------


def changed_kind(code: bytes, kind: int) -> bytes:
    """Return an object file whose first relocation is of another kind."""
    file = elf.ObjectFile(code)
    section = next(one for one in file.sections if one.kind == elf.RELA)
    spoilt = bytearray(code)
    struct.pack_into("<I", spoilt, section.at + 8, kind)
    return bytes(spoilt)


def changed_place(code: bytes) -> bytes:
    """Return an object file whose first relocation lies behind its section."""
    file = elf.ObjectFile(code)
    section = next(one for one in file.sections if one.kind == elf.RELA)
    spoilt = bytearray(code)
    struct.pack_into("<Q", spoilt, section.at, file.sections[section.info].size - 7)
    return bytes(spoilt)


LOCAL = "@t = thread_local global i64 1\ndefine ptr @f() {\n  ret ptr @t\n}\n"
MISSING = """
declare double @no_such(double)
define double @f(double %x) {
  %y = call double @no_such(double %x)
  ret double %y
}
"""


def of_arm() -> bytes:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("aarch64-unknown-linux-gnu").create_target_machine()
    return bytes(machine.emit_object(llvm.parse_assembly("define i64 @f(i64 %x) {\n  ret i64 %x\n}\n")))


REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "another kind of relocation": (lambda: changed_kind(compiled(), 2), r"relocations of the kinds \[2\]"),
    "a relocation behind its section": (lambda: changed_place(compiled()), "outside of its section"),
    "a variable of each thread": (lambda: compiled(LOCAL), "section of kind"),
    "a function that is not there": (lambda: compiled(MISSING), "there is no no_such"),
    "another processor": (of_arm, "architecture 183"),
    "no object file": (lambda: b"code", "no ELF file"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_left_to_llvm(name: str) -> None:
    made, reason = REFUSED[name]
    with pytest.raises(UnsuitableError, match=reason):
        Linked([made()])


def test_functions_of_the_process_are_asked_for_by_name() -> None:
    asked: list[str] = []

    def outside(name: str) -> int:
        asked.append(name)
        return 0

    with pytest.raises(UnsuitableError):
        Linked([compiled()], outside)
    assert asked == ["fmod"]


def test_llvm_names_the_functions_that_are_missing() -> None:
    with pytest.raises(errors.LinkError, match="no_such"):
        LoadedCode(compiled(MISSING))


@pytest.mark.parametrize("refuses", ["mmap", "mprotect"])
def test_a_system_without_such_memory_asks_llvm(refuses: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError(13, "no executable memory")

    if refuses == "mmap":
        monkeypatch.setattr(pages.mmap, "mmap", fail)
    else:
        monkeypatch.setattr(pages.Pages, "protect", fail)
    code = LoadedCode(compiled())
    assert code._linked is None
    assert results(code.address) == EXPECTED


def test_an_unknown_name_has_no_address() -> None:
    with pytest.raises(KeyError, match="nothing"):
        LoadedCode(compiled()).address("nothing")


def test_a_refused_protection_is_an_error() -> None:
    with pytest.raises(OSError, match="Invalid argument"):
        pages.Pages(10).protect(1, 10, pages.READ)  # not where a page begins


def test_a_forked_child_has_the_code() -> None:
    linked = Linked([compiled()])
    WORD(linked.offered["counts"])(1)
    child = os.fork()
    if not child:
        os._exit(int(WORD(linked.offered["counts"])(2) == 43 and NUMBER(linked.offered["outside"])(7.5) == 1.5))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert WORD(linked.offered["counts"])(3) == 44  # the child's writes are its own


# --- the machine's facts ------------------------------------------------------------------------------

PROGRAM = """
import sys
import numpy as np
import glassgrad as gg
x = gg.tensor(np.linspace(-3, 3, 400_000, dtype=np.float32))
gg.nn.functional.gelu(x)
step = gg.compile(lambda x: (x * x).sum(), backend="llvm")
assert step(gg.ones(3)).item() == 3.0
print("llvmlite" in sys.modules, "llvmlite.binding" in sys.modules)
assert "fmul" in step.llvm
gg.compile(lambda x: (x - x).sum(), backend="llvm")(gg.ones(3))
assert "llvmlite.binding" in sys.modules
"""


def test_code_from_the_disk_runs_without_llvm(tmp_path: Path) -> None:
    environment = {**os.environ, "GLASSGRAD_CACHE_DIR": str(tmp_path / "kept"), "GLASSGRAD_NATIVE": "1"}
    said = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, encoding="utf-8", check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert said == [["True", "True"], ["False", "False"]]
