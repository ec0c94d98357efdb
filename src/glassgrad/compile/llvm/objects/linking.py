"""Load our machine code without LLVM, whose library takes longer to load than all the work here.

Our code for Linux on x86-64 needs only some sections, five kinds of relocations, and calls of functions that the
process has loaded. LLVM's loader handles files of any other form. Unwind tables are skipped, because no exceptions
pass through this code.
"""

from __future__ import annotations

import ctypes
import hashlib
import mmap
import weakref
from collections.abc import Callable, Sequence

import numpy as np

from glassgrad.compile.llvm.objects import elf
from glassgrad.compile.llvm.objects.pages import EXECUTE, READ, Pages, process, up

# Kinds of relocations (System V ABI for AMD64, 4.4.1). All of them write a word of 8 bytes.
_ABSOLUTE, _PC, _GOT_ENTRY, _GOT_PC, _GOT_OFFSET = 1, 24, 27, 29, 25
_KINDS = {_ABSOLUTE, _PC, _GOT_ENTRY, _GOT_PC, _GOT_OFFSET}
_TABLE = "_GLOBAL_OFFSET_TABLE_"
_UNWINDING = 0x70000001  # SHT_X86_64_UNWIND
_WORD = 8

Words = np.ndarray  # of uint64, so sums wrap around


class UnsuitableError(Exception):
    """Object code of an unsupported form, or a system that does not allow such memory."""


class Linked:
    """Object files in memory, for as long as this lives.

    Args:
        codes: the files, which may use one another's functions.
        outside: returns the address of a function of the process, or 0 if it does not exist.

    Attributes:
        offered: the addresses of the exported functions, by name.
        uses: objects that must stay alive with the files.

    Raises:
        UnsuitableError: if LLVM's loader is needed.
    """

    def __init__(self, codes: Sequence[bytes], outside: Callable[[str], int] | None = None) -> None:
        self.uses: list[Linked] = []
        parts = [_Part(code) for code in codes]
        ends, table = _lay_out(parts)
        try:
            self._pages = pages = Pages(ends[-1])
            for part in parts:
                part.copy(pages)
            self.offered = {name: at for part in reversed(parts) for name, at in part.offered()}
            for part in parts:
                part.find(self.offered, outside or _of_process, pages.address + table)
                table = part.relocate(pages, table)
            pages.protect(0, ends[0], READ | EXECUTE)
            pages.protect(ends[0], ends[1], READ)
        except OSError as error:
            raise UnsuitableError(str(error)) from error


_known: weakref.WeakValueDictionary[bytes, Linked] = weakref.WeakValueDictionary()


def linked_apart(codes: Sequence[bytes]) -> Linked:
    """Load files, each of which uses those before it; return the last one.

    Every file is loaded once for all users, so it must not have variables. Arguments and errors are those of `Linked`.
    """
    owners: dict[str, Linked] = {}
    one: Linked | None = None
    for code in codes:
        digest = hashlib.sha256(code).digest()
        one = _known.get(digest)
        if one is None:
            used: dict[str, Linked] = {}

            def outside(name: str, used: dict[str, Linked] = used) -> int:
                if name not in owners:
                    return _of_process(name)
                used[name] = owners[name]
                return used[name].offered[name]

            one = _known[digest] = Linked([code], outside)
            one.uses = list(used.values())
        owners.update(dict.fromkeys(one.offered, one))
    assert one is not None
    return one


def _of_process(name: str) -> int:
    try:
        return ctypes.cast(getattr(process(), name), ctypes.c_void_p).value or 0
    except AttributeError:
        return 0


def _lay_out(parts: Sequence[_Part]) -> tuple[list[int], int]:
    """Assign an offset to each section. Return the ends of code, constants and variables, and the start of the GOT.

    Access rights apply to whole pages, so each of the three begins on a new page.
    """
    size, ends, table = 0, [], 0
    for rights in (elf.EXECUTABLE, 0, elf.WRITE):
        for part in parts:
            for number in part.loaded:
                section = part.file.sections[number]
                if _rights(section) == rights:
                    part.places[number] = up(size, max(section.align, 1))
                    size = part.places[number] + section.size
        if not rights:
            table = up(size, _WORD)
            size = table + _WORD * sum(part.entries.size for part in parts)
        size = up(size)
        ends.append(size)
    return ends, table


def _rights(section: elf.Section) -> int:
    return section.flags & elf.EXECUTABLE or section.flags & elf.WRITE


class _Part:
    """A file that is being loaded.

    Attributes:
        loaded: the numbers of the sections that are needed at run time.
        places: their offsets in memory.
        entries: the symbols that need an entry in the table of addresses (GOT).
    """

    def __init__(self, code: bytes) -> None:
        if not code.startswith(elf.MAGIC):
            raise UnsuitableError("it is no ELF file")
        self.file = file = elf.ObjectFile(code)
        if file.machine != elf.X86_64:
            raise UnsuitableError(f"it is for architecture {file.machine}")
        self.loaded = [number for number, one in enumerate(file.sections) if _is_loaded(one)]
        self.places = dict.fromkeys(self.loaded, 0)
        self._base = 0
        self._tables = [
            (one.info, _understood(file.relocations(one)))
            for one in file.sections
            if one.kind == elf.RELA and one.info in self.places
        ]
        # Avoid `np.unique`, which imports masked arrays.
        named = {
            number for _, table in self._tables for number in table["symbol"][table["kind"] == _GOT_ENTRY].tolist()
        }
        self.entries = np.array(sorted(named), np.int64)

    def copy(self, pages: Pages) -> None:
        """Copy the sections into new memory."""
        self._base = pages.address
        for number, place in self.places.items():
            section = self.file.sections[number]
            if section.kind == elf.PROGBITS:  # other sections are zeros, like fresh memory
                found = np.frombuffer(self.file.code, np.uint8, section.size, section.at)
                pages.content[place : place + section.size] = found

    def offered(self) -> list[tuple[str, int]]:
        """Return the names that this file exports, with their addresses."""
        symbols = self.file.symbols
        about = [(name, *symbols[["section", "at"]][number].tolist()) for name, number in self.file.shared()]
        return [(name, self._base + self.places[one] + at) for name, one, at in about if one in self.places]

    def find(self, own: dict[str, int], outside: Callable[[str], int], table: int) -> None:
        """Resolve the addresses of all symbols: in this file, in the other files, or in the process."""
        symbols = self.file.symbols
        starts = np.zeros(1 << 16, np.uint64)  # by section number, including special ones; no section begins at 0
        for number, place in self.places.items():
            starts[number] = self._base + place
        sections = symbols["section"]
        self._known = starts[sections] > 0
        self._addresses: Words = starts[sections] + symbols["at"]
        for number in np.flatnonzero((sections == elf.UNDEFINED) & (symbols["name"] > 0)).tolist():
            name = self.file.symbol_name(number)
            found = table if name == _TABLE else own.get(name) or outside(name)
            if not found:
                raise UnsuitableError(f"there is no {name}")
            self._addresses[number], self._known[number] = found, True

    def relocate(self, pages: Pages, table: int) -> int:
        """Apply the relocations; return the end of this file's part of the table.

        Args:
            pages: the memory with all files copied.
            table: the start of this file's part of the table of addresses.
        """
        self._write(pages, table + _WORD * np.arange(self.entries.size), self._addresses[self.entries])
        start = np.uint64(pages.address + table)
        for number, relocations in self._tables:
            at, kind, symbol, addend = (relocations[field] for field in ("at", "kind", "symbol", "addend"))
            if not self._known[symbol].all() or (at > self.file.sections[number].size - _WORD).any():
                raise UnsuitableError("an address is not known, or written outside of its section")
            offsets = at + np.uint64(self.places[number])
            here, there = offsets + np.uint64(self._base), self._addresses[symbol]
            entry = (np.searchsorted(self.entries, symbol) * _WORD).astype(np.uint64)
            values = np.select(
                [kind == _ABSOLUTE, kind == _PC, kind == _GOT_OFFSET, kind == _GOT_PC],
                [there, there - here, there - start, start - here],
                entry,  # its offset in the table
            )
            self._write(pages, offsets, values + addend.view(np.uint64))
        return table + _WORD * self.entries.size

    def _write(self, pages: Pages, offsets: Words, values: Words) -> None:
        places = offsets.astype(np.int64)[:, None] + np.arange(_WORD)
        pages.content[places] = values.astype("<u8").view(np.uint8).reshape(-1, _WORD)


def _is_loaded(section: elf.Section) -> bool:
    """Tell whether a section is needed at run time. Raises `UnsuitableError` for an unsupported kind."""
    if not section.flags & elf.ALLOC or not section.size or section.kind == _UNWINDING:
        return False
    if section.kind not in (elf.PROGBITS, elf.NOBITS) or section.flags & elf.THREAD_LOCAL:
        raise UnsuitableError(f"it has a section of kind {section.kind} with flags {section.flags}")
    if (section.flags & elf.EXECUTABLE and section.flags & elf.WRITE) or section.align > mmap.PAGESIZE:
        raise UnsuitableError("a section is written to and executed, or has to begin at more than a page")
    return True


def _understood(relocations: Words) -> Words:
    others = {*relocations["kind"].tolist()} - _KINDS
    if others:
        raise UnsuitableError(f"it has relocations of the kinds {sorted(others)}")
    return relocations
