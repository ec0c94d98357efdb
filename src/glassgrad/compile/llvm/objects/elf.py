"""Object files of Linux (ELF, 64 bits, little-endian): symbols, sections, relocations."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

MAGIC = b"\x7fELF\x02\x01"
X86_64 = 62
PROGBITS, SYMTAB, RELA, NOBITS = 1, 2, 4, 8
WRITE, ALLOC, EXECUTABLE, THREAD_LOCAL = 1, 2, 4, 0x400
UNDEFINED, RESERVED, ABSOLUTE = 0, 0xFF00, 0xFFF1  # numbers of sections; from RESERVED on they are special
GLOBAL = 1  # a symbol's binding: neither local nor weak

_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("at", "<u8"), ("size", "<u8")]
)
_RELOCATION = np.dtype([("at", "<u8"), ("kind", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])


class Section(NamedTuple):
    """A section's header; `at` and `size` are its position in the file, or its size in memory."""

    name: int
    kind: int
    flags: int
    address: int
    at: int
    size: int
    link: int
    info: int
    align: int
    entry: int


class ObjectFile:
    """An object file; its content is trusted, because it was made here or has a valid checksum.

    Attributes:
        code: its bytes.
        sections: their headers.
        machine: the architecture's number.
    """

    def __init__(self, code: bytes) -> None:
        self.code = code
        (self.machine,) = struct.unpack_from("<H", code, 18)
        (start,) = struct.unpack_from("<Q", code, 40)
        width, count, self._names = struct.unpack_from("<HHH", code, 58)
        self.sections = [Section(*struct.unpack_from("<IIQQQQIIQQ", code, start + at * width)) for at in range(count)]

    @cached_property
    def _table(self) -> Section | None:
        return next((one for one in self.sections if one.kind == SYMTAB), None)

    @cached_property
    def symbols(self) -> np.ndarray:
        """The table of symbols, with fields `name`, `info`, `section` and `at`; the first entry is the null symbol."""
        return self._records(self._table, _SYMBOL)

    def relocations(self, section: Section) -> np.ndarray:
        """Return the table in a section of kind `RELA`, with fields `at`, `kind`, `symbol` and `addend`."""
        return self._records(section, _RELOCATION)

    def _records(self, section: Section | None, kind: np.dtype) -> np.ndarray:
        if section is None:
            return np.empty(0, kind)
        return np.frombuffer(self.code, kind, section.size // kind.itemsize, section.at)

    def symbol_name(self, number: int) -> str:
        """Return the name of a symbol."""
        assert self._table is not None
        return self._text(self.sections[self._table.link], int(self.symbols["name"][number]))

    def section_name(self, section: Section) -> str:
        """Return the name of a section."""
        return self._text(self.sections[self._names], section.name)

    def _text(self, table: Section, offset: int) -> str:
        start = table.at + offset
        return self.code[start : self.code.index(b"\0", start)].decode()

    def shared(self) -> Iterator[tuple[str, int]]:
        """Yield the names that this file exports or imports, each with the number of its symbol."""
        symbols = self.symbols
        for number in np.flatnonzero((symbols["info"] >> 4 == GLOBAL) & (symbols["name"] > 0)).tolist():
            yield self.symbol_name(number), number
