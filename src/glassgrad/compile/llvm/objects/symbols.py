"""The functions that object code imports and exports, read from its table of symbols.

LLVM resolves imports when code is loaded and aborts the process if one is missing. Only the object code lists them,
because LLVM inserts calls of its choice for operations that the processor has no instruction for.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from glassgrad.compile.llvm.objects import elf

# Names that are not functions: a table that the loader makes itself, and Microsoft's mark of code that uses floats.
_NO_FUNCTIONS = frozenset({"_GLOBAL_OFFSET_TABLE_", "_fltused"})
_MACH_O, _COFF = b"\xcf\xfa\xed\xfe", (b"\x64\x86", b"\x64\xaa")


def called_symbols(code: bytes) -> list[str]:
    """Return the names that an object file imports; none for a 32-bit or unknown format.

    Args:
        code: an object file of Linux (ELF), macOS (Mach-O) or Windows (COFF).
    """
    return [name for name in _names(code, here=False) if name not in _NO_FUNCTIONS]


def offered_symbols(code: bytes) -> list[str]:
    """Return the names that an object file exports; `code` as for `called_symbols`."""
    return _names(code, here=True)


def _names(code: bytes, *, here: bool) -> list[str]:
    """Return the external symbols of an object file: those defined in it if `here`, else the undefined ones."""
    if code.startswith(elf.MAGIC):
        found = _elf(code)
    elif code.startswith(_MACH_O):
        found = _mach_o(code)
    elif code[:2] in _COFF:
        found = _coff(code)
    else:
        return []
    return list(dict.fromkeys(name for name, inside in found if inside is here))


def _text(code: bytes, start: int) -> str:
    return code[start : code.index(b"\0", start)].decode()


def _elf(code: bytes) -> Iterator[tuple[str, bool]]:
    """The System V ABI."""
    file = elf.ObjectFile(code)
    for name, number in file.shared():
        yield name, bool(file.symbols["section"][number])


def _mach_o(code: bytes) -> Iterator[tuple[str, bool]]:
    """Load command 2 locates the symbols; C names have a leading underscore."""
    (commands,) = struct.unpack_from("<I", code, 16)
    place = 32
    for _ in range(commands):
        kind, size = struct.unpack_from("<II", code, place)
        if kind == 2:
            start, count, names, _ = struct.unpack_from("<IIII", code, place + 8)
            for at in range(count):
                name, about, _, _, value = struct.unpack_from("<IBBHQ", code, start + 16 * at)
                # External; in a section, or undefined (with a value: a common block, which is neither).
                if about & 0x0F in (1, 0x0F) and (about & 0x0E or not value):
                    yield _text(code, names + name).removeprefix("_"), bool(about & 0x0E)
        place += size


def _coff(code: bytes) -> Iterator[tuple[str, bool]]:
    """Microsoft's PE format: records of 18 bytes, then the names of more than 8."""
    start, count = struct.unpack_from("<II", code, 8)
    names, at = start + 18 * count, 0
    while at < count:
        raw, value, section, _, storage, further = struct.unpack_from("<8sIhHBB", code, start + 18 * at)
        if storage == 2 and (section > 0 or not (section or value)):
            zeros, offset = struct.unpack("<II", raw)
            yield raw.rstrip(b"\0").decode() if zeros else _text(code, names + offset), section > 0
        at += 1 + further
