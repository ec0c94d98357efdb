"""The reads of a code object, from its bytecode: globals, attributes, and entries of dictionaries.

If code reads a dictionary only by constant keys (``config["scale"]``, ``config.get("scale")``,
``"scale" in config``), only those entries are guarded. If it passes the dictionary on, loops over it or uses a computed
key, the whole dictionary is guarded.
"""

from __future__ import annotations

import dis
import functools
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_METHODS = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_VARIABLES = """
    LOAD_DEREF LOAD_CLASSDEREF LOAD_FAST LOAD_FAST_CHECK LOAD_FAST_BORROW LOAD_FROM_DICT_OR_DEREF
    LOAD_FROM_DICT_OR_GLOBALS
"""
_NAMES = _GLOBALS | _METHODS | frozenset(_VARIABLES.split())
_FLAGGED = sys.version_info >= (3, 12)  # since then one bit of LOAD_ATTR marks a call
_STORES = frozenset({"STORE_ATTR", "STORE_GLOBAL", "STORE_NAME", "STORE_DEREF"})
_ADDING = frozenset({"append", "extend", "appendleft", "add", "update", "insert"})
_BY_KEY = frozenset({"BINARY_SUBSCR", "STORE_SUBSCR", "DELETE_SUBSCR"})


Key = str | int | bytes | float | tuple[object, ...]  # constants that are keys of dictionaries


class Reads(NamedTuple):
    """The names that one code object reads, excluding nested functions.

    Attributes:
        globals: globals in the order of the code; `co_names` would also contain attributes.
        attributes: attributes that are read, not called as methods.
        whole: names of values with any use other than a lookup by a constant key.
        keys: name -> the constant keys by which the value of this name is read.
        looked: names with any use other than a write, an increment (``self.n += 1``) or an append (``log.append(x)``).
        counted: names of numbers that are incremented, and of containers with such numbers.
        stored: names that are assigned in any other way.
        globals_stored: globals that are assigned in any way.
        imports: the modules that are imported, each with its number of leading dots.
    """

    globals: tuple[str, ...]
    attributes: frozenset[str]
    whole: frozenset[str]
    keys: Mapping[str, frozenset[Key]]
    looked: frozenset[str]
    counted: frozenset[str]
    stored: frozenset[str]
    globals_stored: frozenset[str]
    imports: tuple[tuple[str, int], ...]


class Names:
    """The names in all code that can be called.

    Attributes:
        every: globals, attributes, methods, and strings.
        read: attributes that are read, and strings, which `getattr` may use.
        mine: the same, but only in the user's own code.
        whole, keys, counted, stored: see `Reads`; only in the user's own code.
        looked: names that are read other than to write the same place; in all code.
    """

    def __init__(self) -> None:
        self.every: set[str] = set()
        self.read: set[str] = set()
        self.mine: set[str] = set()
        self.whole: set[str] = set()
        self.keys: dict[str, frozenset[Key]] = {}
        self.looked: set[str] = set()
        self.counted: set[str] = set()
        self.stored: set[str] = set()

    def copy(self) -> Names:
        """Return a mutable copy."""
        made = Names()
        for name, found in vars(self).items():
            setattr(made, name, found.copy())
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Names) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # it changes

    def is_only_written(self, name: str) -> bool:
        """Tell whether code only assigns a name or appends to its value, and never reads it."""
        return name not in self.looked and name not in self.counted

    def is_counter(self, name: str) -> bool:
        """Tell whether code only increments a number."""
        return name in self.counted and name not in self.looked and name not in self.stored

    @staticmethod
    def globals_of(code: types.CodeType) -> tuple[str, ...]:
        """Return the globals that code reads, in its order."""
        return reads_of(code).globals

    @staticmethod
    def stored_by(code: types.CodeType) -> frozenset[str]:
        """Return the globals that code assigns."""
        return reads_of(code).globals_stored

    @staticmethod
    def imports_of(code: types.CodeType) -> tuple[tuple[str, int], ...]:
        """Return the modules that code imports, each with its number of leading dots."""
        return reads_of(code).imports

    def add(self, code: types.CodeType, *, users: bool) -> None:
        """Add the names in a piece of code."""
        strings = {constant for constant in code.co_consts if isinstance(constant, str)}
        attributes = strings | attributes_of(code)
        self.every |= strings.union(code.co_names)
        self.read |= attributes
        if not users:
            self.looked |= attributes
        else:
            reads = reads_of(code)
            self.looked |= strings | reads.looked
            self.mine |= attributes
            self.counted |= reads.counted
            self.stored |= reads.stored
            self.whole |= reads.whole
            for name, keys in reads.keys.items():
                self.keys[name] = self.keys.get(name, frozenset()) | keys


def nested(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield a code object and those nested in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from nested(constant)


@functools.lru_cache(maxsize=16384)
def attributes_of(code: types.CodeType) -> frozenset[str]:
    """Return the attributes that code reads, not those that it calls as methods."""
    loads = [instr for instr in dis.get_instructions(code) if instr.opname == "LOAD_ATTR"]
    return frozenset(instr.argval for instr in loads if not (_FLAGGED and (instr.arg or 0) & 1))


@functools.lru_cache(maxsize=16384)  # more than one walk needs, or each round would analyse all code again
def reads_of(code: types.CodeType) -> Reads:
    """Analyse the reads of a code object."""
    instrs = [instr for instr in dis.get_instructions(code) if instr.opname not in {"CACHE", "PRECALL"}]
    read = (instr.argval for instr in instrs if instr.opname in _GLOBALS)
    whole: set[str] = set()
    looked: set[str] = set()
    counted: dict[int, str] = {}  # where the sum is stored
    keys: dict[str, set[Key]] = {}
    for at, instr in enumerate(instrs):
        if instr.opname not in _NAMES or not isinstance(instr.argval, str):
            continue
        end = _counted_until(instrs, at)
        if end is not None:
            counted[end] = instr.argval
        elif not _adds_to(instrs, at):
            looked.add(instr.argval)
        key = _key_asked_for(instrs, at)
        if key is None:
            whole.add(instr.argval)
        else:
            keys.setdefault(instr.argval, set()).add(key[0])
    frozen = {name: frozenset(found) for name, found in keys.items()}
    stored = frozenset(instr.argval for at, instr in enumerate(instrs) if instr.opname in _STORES and at not in counted)
    return Reads(
        tuple(dict.fromkeys(read)),
        attributes_of(code),
        frozenset(whole),
        frozen,
        frozenset(looked),
        frozenset(counted.values()),
        stored,
        frozenset(one.argval for one in instrs if one.opname == "STORE_GLOBAL"),
        tuple((one.argval, _level(instrs[at - 2])) for at, one in enumerate(instrs) if one.opname == "IMPORT_NAME"),
    )


def _level(instr: dis.Instruction) -> int:
    return instr.argval if isinstance(instr.argval, int) else 0


def stored_at(codes: Iterable[types.CodeType], name: str) -> tuple[types.CodeType, int] | None:
    """Return the first instruction that assigns a name, or an entry of its value."""
    for code in codes:
        instrs = list(dis.get_instructions(code))
        for at, instr in enumerate(instrs):
            into = any(one.opname == "STORE_SUBSCR" or one.argval in _ADDING for one in instrs[at : at + 12])
            if instr.argval == name and (instr.opname in _STORES or (instr.opname in _NAMES and into)):
                return code, instr.offset
    return None


def _adds_to(instrs: list[dis.Instruction], at: int) -> bool:
    """Tell whether the value loaded here is only appended to: ``log.append(x)``, ``cache[key] = x``."""
    begin = _behind_entries(instrs, at + 1)
    after = instrs[begin : begin + 1]
    if after and after[0].opname in _METHODS and after[0].argval in _ADDING:
        return True
    end = _consumed_at(instrs, begin)
    return end is not None and instrs[end].opname == "STORE_SUBSCR"


def _counted_until(instrs: list[dis.Instruction], at: int) -> int | None:
    """Return the position at which ``x += ...`` stores the number or entry loaded here; None for any other use."""
    begin, stores = _behind_entries(instrs, at + 1), {instrs[at].opname.replace("LOAD", "STORE"), "STORE_DEREF"}
    names = [instr.opname for instr in instrs[begin : begin + 4]]
    item = names[:1] != [] and names[0].startswith("LOAD_") and names[1:3] == ["COPY", "COPY"]
    if item or begin > at + 1:
        if not item or not _is_subscript(instrs[begin + 3]):
            return None
        begin, stores = begin + 4, {"STORE_SUBSCR"}
    end = _consumed_at(instrs, begin)
    if end is None or instrs[end].opname != "BINARY_OP" or instrs[end].argrepr not in {"+=", "-="}:
        return None
    end += 1
    while end < len(instrs) and instrs[end].opname == "SWAP":
        end += 1
    stored = end < len(instrs) and instrs[end].opname in stores and (item or instrs[end].argval == instrs[at].argval)
    return end if stored else None


def _consumed_at(instrs: list[dis.Instruction], begin: int) -> int | None:
    """Return the instruction that consumes the value on top of the stack; None if that is unclear."""
    above = 0
    for at in range(begin, len(instrs)):
        instr = instrs[at]
        if instr.opcode in dis.hasjrel or instr.opcode in dis.hasjabs or instr.is_jump_target:
            return None
        if above == 1 and instr.opname in {"BINARY_OP", "STORE_SUBSCR"}:
            return at
        if instr.opname in {"COPY", "SWAP"} and (instr.arg or 0) > above:
            return None
        if instr.opname == "CALL":  # in Python 3.11 half of its effect is that of PRECALL
            above -= (instr.arg or 0) + 1
        else:
            above += dis.stack_effect(instr.opcode, instr.arg if instr.opcode >= dis.HAVE_ARGUMENT else None)
        if above < 1:
            return None
    return None


def _key_asked_for(instrs: list[dis.Instruction], at: int) -> tuple[Key] | None:
    """Return a tuple of the constant key that subscripts the value loaded here; None for any other use."""
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
    # The second is the form since Python 3.14.
    return instr.opname == "BINARY_SUBSCR" or (instr.opname == "BINARY_OP" and instr.argrepr == "[]")


def _behind_entries(instrs: list[dis.Instruction], at: int) -> int:
    """Return the position after the subscripts of the value loaded before `at`."""
    while at + 1 < len(instrs) and instrs[at].opname.startswith("LOAD_") and _is_subscript(instrs[at + 1]):
        at += 2
    return at


def _hashable(key: object) -> tuple[Key] | None:
    return (key,) if isinstance(key, str | int | bytes | float | tuple) else None
