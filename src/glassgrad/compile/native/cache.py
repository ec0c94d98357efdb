"""Machine code on disk, for other processes that compile the same graph.

An entry's name is a hash of everything that the code depends on: the traced graph (or the module's text), the
processor and its features, and the versions of glassgrad and LLVM.
"""

from __future__ import annotations

from collections.abc import Callable

from glassgrad.compile.kept import files
from glassgrad.compile.llvm.module.target import host
from glassgrad.compile.llvm.objects import machine


def key_of(*parts: object) -> str:
    """Return the name of an entry from everything that its code depends on."""
    here = host()
    return files.name_of(machine.versions(), here.triple, here.cpu, here.features, *parts)


def code_for(text: str, compile_text: Callable[[str], bytes]) -> tuple[bytes, bool]:
    """Return the code of a module, from disk if possible, and whether it was found there."""
    return _code((text,), lambda: text, compile_text)


def code_of(
    name: str, about: tuple[object, ...], text: Callable[[], str], compile_text: Callable[[str], bytes]
) -> bytes:
    """Return the code of a fixed module of the compiler; write its text only if the code is not on disk.

    Args:
        name: the unique name of the module.
        about: the dependencies of its text besides the compiler's source files, whose state is part of every key.
        text: writes the text.
        compile_text: compiles the text.
    """
    return _code((name, *about), text, compile_text)[0]


def _code(
    parts: tuple[object, ...], text: Callable[[], str], compile_text: Callable[[str], bytes]
) -> tuple[bytes, bool]:
    key = key_of("module", *parts)
    entry = files.read(key)
    if entry is not None:
        return entry[1], True
    code = compile_text(text())
    files.write(key, {}, code)
    return code, False
