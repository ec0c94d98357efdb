"""The origin of an instruction: the user's line and, in a backward pass, the forward op it belongs to.

Like a node of the tape, it stores code objects and offsets, which are resolved only for messages and printing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType, FrameType

from glassgrad.base import provenance
from glassgrad.compile.ir.graph import Var
from glassgrad.engine import backward, tape
from glassgrad.engine.mode import MODE, RECORDING
from glassgrad.engine.node import Node
from glassgrad.ops import core, names
from glassgrad.ops.core import Array
from glassgrad.ops.vmap.batched import Batched

FORWARD, BACKWARD, GATHER, MATCH = "forward", "backward", "gather", "match"

_RULES = tape.Walk.apply_rules.__code__
_ACCUMULATE = tape.Walk.accumulate.__code__
_LEAF = backward._accumulate.__code__
_MATCH = tape.match_cotangent.__code__
# Formulas are in these folders. Other frames of the library, and the files in `_PLUMBING`, only pass a call on.
_FORMULAS = tuple(f"{provenance.PACKAGE}{folder}{os.sep}" for folder in ("ops", "nn", "optim"))
# Files that start traces register themselves here; their callers are not part of the program.
ENTRANCES: set[str] = set()
_PLUMBING = {core.__file__, names.__file__}
_ROLES = {id(_ACCUMULATE): GATHER, id(_LEAF): GATHER, id(_MATCH): MATCH}
_WALKS = {code.co_filename for code in (_RULES, _ACCUMULATE, _LEAF, _MATCH)}
_RESUMED = 0x20 | 0x80 | 0x200  # flags of generators, coroutines, and asynchronous generators
_USERS, _PASSING, _FORMULA, _WALK = range(4)


class _Files(dict[str, int]):
    """Filename -> the kind of its frames.

    Each op looks at ten frames. Filenames cache their hashes; the hash of a code object is computed from all its
    constants.
    """

    def __missing__(self, file: str) -> int:
        if not provenance.is_internal(file):
            kind = _USERS
        elif file in _WALKS:
            kind = _WALK
        else:
            kind = _FORMULA if file.startswith(_FORMULAS) and file not in _PLUMBING else _PASSING
        self[file] = kind
        return kind


_FILES = _Files()


@dataclass(frozen=True, slots=True)
class Origin:
    """The provenance of an instruction.

    Attributes:
        code, lasti: the user's instruction.
        outer: the user's instruction that called the function which `code` belongs to.
        call: counts the user's calls into the library; ops that one call applies have the same number.
        part: the checkpointed part of the program that it belongs to; None outside of any.
        records: whether the tape recorded the op; False under `no_grad` and for the result of `detach`.
        inner: the place inside the library, if a function of the library applied the op; its local variable names are
            hints for printing.
        role: "forward"; "backward" for a derivative rule; "match" for undoing broadcasting; "gather" for
            adding up several cotangents.
        rule: the primitive whose rule this is.
        node: the sequence number on the tape of the forward op whose rule this is.
        argument: the argument that the cotangent is for, if the rule serves one argument.
    """

    code: CodeType
    lasti: int
    inner: tuple[CodeType, int] | None = None
    role: str = FORWARD
    rule: str = ""
    node: int = 0
    argument: int | None = None
    outer: tuple[CodeType, int] | None = None
    call: int = 0
    records: bool = True
    part: object = None

    @property
    def place(self) -> provenance.Place:
        """The user's file, line and variable."""
        return provenance.resolve(self.code, self.lasti)

    @property
    def inner_variable(self) -> str | None:
        """The variable that the library's own source assigns the result to."""
        return provenance.resolve(*self.inner).variable if self.inner is not None else None

    def __str__(self) -> str:
        return str(self.place)


@dataclass(eq=False, slots=True)
class Calls:
    """Counts the user's calls into the library.

    The frame in which a call began is kept until the next call, so its identity identifies the call. The user's frame
    is kept for the same reason, with the instruction that called it.
    """

    number: int = 0
    entry: FrameType | None = None
    user: FrameType | None = None
    outer: tuple[CodeType, int] | None = None

    def of(self, entry: FrameType | None) -> int:
        """Return the number of the call that began with a frame."""
        if entry is not self.entry:
            self.entry = entry
            self.number += 1
        return self.number

    def caller(self, user: FrameType) -> tuple[CodeType, int] | None:
        """Return the next of the user's instructions above a frame of the user's."""
        if user is not self.user:
            self.outer = _caller(user)
            # A generator's frame can be resumed by other callers.
            self.user = None if user.f_code.co_flags & _RESUMED else user
        return self.outer

    def forget(self) -> None:
        """Release the frames and everything they hold."""
        self.entry = self.user = self.outer = None


@dataclass(slots=True)
class Rule:
    """The derivative rule that is being applied: its node, the cotangent, and the parent."""

    node: Node
    cotangent: Array
    saved: tuple[Array, ...]
    position: int | None


@dataclass(slots=True)
class Here:
    """The origin of the op being applied, taken from the stack, and the rule that applies it."""

    origin: Origin
    rule: Rule | None = None


def look(depth: int, calls: Calls, rules: Sequence[Rule]) -> Here:
    """Read the stack from `depth` frames above the caller; `rules` are being applied, the innermost last."""
    frame = sys._getframe(depth + 1)
    entry: FrameType | None = None
    inner: tuple[CodeType, int] | None = None
    applied: Rule | None = None
    role = FORWARD
    while (kind := _FILES[(code := frame.f_code).co_filename]) != _USERS:
        if kind == _FORMULA:
            if inner is None:
                inner = (code, frame.f_lasti)
        elif kind == _WALK:
            if code is _RULES and applied is None:
                applied = rules[-1]
                role = BACKWARD if role == FORWARD else role
            elif role == FORWARD:
                role = _ROLES.get(id(code), role)
        above = frame.f_back
        if above is None:
            break
        entry, frame = frame, above
    node, number = ("", 0) if applied is None else (applied.node.prim.name, applied.node.seq)
    argument = None if applied is None else applied.position
    outer, call, records = calls.caller(frame), calls.of(entry), bool(MODE.flags & RECORDING)
    here = Origin(code, frame.f_lasti, inner, role, node, number, argument, outer, call, records, MODE.part)
    return Here(here, applied)


def inside(saved: Array) -> Array:
    """Return the array inside a saved value, which is a Tensor if gradients are recorded, and batched inside vmap."""
    saved = getattr(saved, "array", saved)
    while type(saved) is Batched:
        saved = saved.value
    return saved


def _caller(frame: FrameType) -> tuple[CodeType, int] | None:
    """Return the next of the user's instructions above a frame of the user's."""
    above = frame.f_back
    while above is not None and provenance.is_internal(above.f_code.co_filename):
        if above.f_code.co_filename in ENTRANCES:
            return None
        above = above.f_back
    return None if above is None else (above.f_code, above.f_lasti)


def described(var: Var, origin: object) -> str:
    """Name a value of a trace for a message."""
    name = var.name
    if name is None and isinstance(origin, Origin):
        name = origin.place.variable
    return f"'{name}'" if name else "a value"
