"""The functions of eager kernels, each compiled separately and once per process, whichever kernels call it.

A convolution's kernel is a dozen functions: tiles of a product, packing, transforms. Other convolutions mostly use
identical ones: three quarters of the text of a DenseNet's 117 kernels. So each function is a unit with its own file of
object code. Its name is a hash of its text and of its callees, so a kernel always gets the same code, whatever was
compiled before.

LLVM then no longer sees all calls of a function and cannot insert arguments on which all calls agree. In the steps of
`compile`, which are compiled once and run for long, it can.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from glassgrad.base.kept import Cache
from glassgrad.compile.llvm.module.ir import Module
from glassgrad.compile.llvm.objects.separate import joined

if TYPE_CHECKING:
    from glassgrad.compile.llvm.module.target import Host

_NAME = re.compile(r"@([\w.]+)")
_UNIT = "define internal "
_PREFIX = "unit_"
# Work beyond a loop around other functions: memory, floats, vectors, and calls of short tiles.
_WORK = re.compile(r"^  store |= load |= f[a-z]+ |<\d+ x |@(?:tile|pack)_", re.MULTILINE)

TRANSLATED: Cache[str, bytes] = Cache("native functions", 8192)
"""The object code of units, by their names: about a quarter of the memory of the kernels themselves."""


def object_code(module: Module, machine: Host) -> bytes:
    """Return the object code of a module as files: those of its units, callees first, and one with the rest.

    Args:
        module: the module with all functions.
        machine: the compiler.
    """
    units = Units(module, machine.header(), machine.attributes())
    rest = units.rest()
    codes = {name: TRANSLATED.get(name) for name in units.texts}
    missing = [name for name, code in codes.items() if code is None]
    inner = [name for name in missing if name not in units.outer]
    outer = [name for name in missing if name in units.outer]
    found = machine.object_codes([units.texts[name] for name in inner])
    *around, own = machine.object_codes([*(units.texts[name] for name in outer), rest], quickly=True)
    for name, code in zip([*inner, *outer], [*found, *around], strict=True):
        codes[name] = code
        TRANSLATED.put(name, code)
    return joined([*(code for code in codes.values() if code is not None), own], apart=True)


class Units:
    """The functions of a module, under names that do not depend on the module.

    Attributes:
        texts: the module of each unit that was named, by the unit's name; callees come first.
        outer: the units that only call others in loops.
    """

    def __init__(self, module: Module, header: str, attributes: str) -> None:
        self._definitions = module.definitions
        self._declarations = {_NAME.findall(line)[0]: line for line in module.declarations.values()}
        self._header, self._attributes = header, attributes
        self._names: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        self.outer: set[str] = set()

    def rest(self) -> str:
        """Return the module of the functions that are not units; also fill `texts` with the units that it calls."""
        return self._module([name for name in self._definitions if not self._is_unit(name)])

    def _is_unit(self, name: str) -> bool:
        text = self._definitions[name]
        head = text[: text.find("\n")]
        # Functions to inline (alwaysinline) and functions to leave alone (optnone) are not units.
        return head.startswith(_UNIT) and "alwaysinline" not in head and "optnone" not in head

    def _name(self, name: str) -> str:
        """Return the unit name of a function."""
        found = self._names.get(name)
        if found is None:
            self._names[name] = _PREFIX  # until its name is known
            text = self._module([name])
            found = self._names[name] = _PREFIX + hashlib.sha256(text.encode()).hexdigest()[:40]
            if not _WORK.search(self._definitions[name]):
                self.outer.add(found)
            self.texts[found] = text.replace(f"@{_PREFIX}(", f"@{found}(").replace(_UNIT, "define hidden ", 1)
        return found

    def _module(self, names: list[str]) -> str:
        """Return a module of some functions and their dependencies: declarations, and functions that are not units."""
        lines: dict[str, None] = {}
        pending, seen = list(names), set(names)
        while pending:
            name = pending.pop(0)
            if name in self._declarations:
                lines[self._declarations[name]] = None
            elif name not in names and self._is_unit(name):
                lines[self._declared(name)] = None
            else:
                text = self._definitions[name]
                called = dict.fromkeys(_NAME.findall(text))
                pending += [other for other in called if other not in seen]
                seen.update(called)
                lines[self._renamed(text)] = None
        return "\n".join([self._header, *lines, self._attributes])

    def _declared(self, name: str) -> str:
        head = self._definitions[name].split("\n", 1)[0]
        return self._renamed(head[: head.rindex(")") + 1].replace(_UNIT, "declare hidden ", 1)) + " #0"

    def _renamed(self, text: str) -> str:
        """Return a text that calls units by their names."""

        def renamed(found: re.Match[str]) -> str:
            name = found[1]
            return f"@{self._name(name)}" if name in self._definitions and self._is_unit(name) else found[0]

        return _NAME.sub(renamed, text)
