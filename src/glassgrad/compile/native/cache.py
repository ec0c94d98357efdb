"""Machine code on disk: a second process that compiles the same graph finds it there.

An entry's name is a hash of everything that the code depends on: the graph as it was traced (or the module's text), the
processor and its features, and the versions of glassgrad and LLVM.
"""

from __future__ import annotations

from collections.abc import Callable

from glassgrad.compile.kept import files
from glassgrad.compile.llvm.module.target import host
from glassgrad.compile.llvm.objects import machine


def key_of(*parts: object) -> str:
    """Return the name of an entry for what its code depends on."""
    here = host()
    return files.name_of(machine.versions(), here.triple, here.cpu, here.features, *parts)


def code_for(text: str, compile_text: Callable[[str], bytes]) -> tuple[bytes, bool]:
    """Return the code of a module, from the disk if it is there, and whether it was."""
    return _code((text,), lambda: text, compile_text)


def code_of(
    name: str, about: tuple[object, ...], text: Callable[[], str], compile_text: Callable[[str], bytes]
) -> bytes:
    """Return the code of a module that source files of the compiler write, without its text where it is on the disk.

    Args:
        name: of the module, its only one.
        about: what its text depends on besides those files, whose state is part of every key.
        text: writes it.
        compile_text: translates it.
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
