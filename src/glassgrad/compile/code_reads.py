"""What code reads, by its bytecode: which globals and attributes, and which entries of a dictionary.

A dictionary that code only ever asks for entries it names (``config["scale"]``, ``config.get("scale")``,
``"scale" in config``) is known by those entries; one that is handed on, looped over or asked for a computed key is
known only as a whole.
"""

from __future__ import annotations

import dis
import functools
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_METHODS = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_NAMES = _GLOBALS | _METHODS | {
    "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW",
    "LOAD_FROM_DICT_OR_DEREF", "LOAD_FROM_DICT_OR_GLOBALS",
}  # fmt: skip
_BY_KEY = frozenset({"BINARY_SUBSCR", "STORE_SUBSCR", "DELETE_SUBSCR"})


class Reads(NamedTuple):
    """What one piece of code reads, without the functions inside of it.

    Attributes:
        globals: in the order of the code; `co_names` would hold attributes, too.
        attributes: those that are looked at, rather than called as methods.
        whole: names of things that are not only asked for entries by constant keys.
        keys: name -> the constant keys that what has this name is asked for.
    """

    globals: tuple[str, ...]
    attributes: frozenset[str]
    whole: frozenset[str]
    keys: Mapping[str, frozenset[Any]]


class Names:
    """The names that occur in all code that can be called.

    Attributes:
        every: of globals, attributes and methods, and strings.
        read: of attributes that are looked at, and strings, which `getattr` may look for.
        mine: the same in the user's own code.
        whole, keys: see `Reads`; in the user's own code.
    """

    def __init__(self) -> None:
        self.every: set[str] = set()
        self.read: set[str] = set()
        self.mine: set[str] = set()
        self.whole: set[str] = set()
        self.keys: dict[str, frozenset[Any]] = {}

    def copy(self) -> Names:
        """Return the same names, to be added to."""
        made = Names()
        for name, found in vars(self).items():
            setattr(made, name, found.copy())
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Names) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # it changes

    @staticmethod
    def globals_of(code: types.CodeType) -> tuple[str, ...]:
        """Return the globals that code reads, in its order."""
        return reads_of(code).globals

    def add(self, code: types.CodeType, *, users: bool) -> None:
        """Add the names in a piece of code."""
        strings = {constant for constant in code.co_consts if isinstance(constant, str)}
        reads = reads_of(code)
        self.every |= strings.union(code.co_names)
        self.read |= strings | reads.attributes
        if users:
            self.mine |= strings | reads.attributes
            self.whole |= reads.whole
            for name, keys in reads.keys.items():
                self.keys[name] = self.keys.get(name, frozenset()) | keys


def nested(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield code and that of the functions inside of it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from nested(constant)


@functools.lru_cache(maxsize=4096)
def reads_of(code: types.CodeType) -> Reads:
    """Return what code reads."""
    instrs = [instr for instr in dis.get_instructions(code) if instr.opname not in {"CACHE", "PRECALL"}]
    read = (instr.argval for instr in instrs if instr.opname in _GLOBALS)
    attributes = {instr.argval for instr in instrs if instr.opname == "LOAD_ATTR" and not _calls_method(instr)}
    whole: set[str] = set()
    keys: dict[str, set[Any]] = {}
    for at, instr in enumerate(instrs):
        if instr.opname not in _NAMES or not isinstance(instr.argval, str):
            continue
        key = _key_asked_for(instrs, at)
        if key is None:
            whole.add(instr.argval)
        else:
            keys.setdefault(instr.argval, set()).add(key[0])
    frozen = {name: frozenset(found) for name, found in keys.items()}
    return Reads(tuple(dict.fromkeys(read)), frozenset(attributes), frozenset(whole), frozen)


def _calls_method(instr: dis.Instruction) -> bool:
    """Tell whether an attribute is loaded to be called; since Python 3.12 one bit says so."""
    return sys.version_info >= (3, 12) and bool((instr.arg or 0) & 1)


def _key_asked_for(instrs: list[dis.Instruction], at: int) -> tuple[Any] | None:
    """Return the constant key that what is loaded here is asked for, in a tuple; None if that is not all."""
    after = instrs[at + 1 : at + 4]
    names = [instr.opname for instr in after]
    if names[:1] == ["LOAD_CONST"] and names[1:2] and (names[1] in _BY_KEY or _is_subscript(after[1])):
        return _hashable(after[0].argval)
    if names[:2] == ["LOAD_ATTR", "LOAD_CONST"] or names[:2] == ["LOAD_METHOD", "LOAD_CONST"]:
        return _hashable(after[1].argval) if after[0].argval == "get" else None
    if names[:1] == ["CONTAINS_OP"] and at and instrs[at - 1].opname == "LOAD_CONST":
        return _hashable(instrs[at - 1].argval)
    return None


def _is_subscript(instr: dis.Instruction) -> bool:
    return instr.opname == "BINARY_OP" and instr.argrepr == "[]"  # its form since Python 3.14


def _hashable(key: Any) -> tuple[Any] | None:
    return (key,) if isinstance(key, str | int | bytes | float | tuple) else None
