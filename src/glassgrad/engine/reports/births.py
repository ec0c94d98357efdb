"""The first non-finite number of a forward pass: the search from a bad value back to the op that made it.

A NaN often comes from an infinity: log of 0 is -inf, and 0 times that is NaN two ops later. The op to mend is the one
that made the infinity from finite numbers. An infinity that stands in the program, such as the -inf of a mask, has no
such op; then the one that made a NaN of it is to blame.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from glassgrad.engine.node import PICK, Node
from glassgrad.engine.reports.nonfinite import INSTEAD, Birth, advice, has_bad, plain, shown_op
from glassgrad.ops.core import Array

VIEWS = frozenset({"astype", "broadcast_to", "getitem", "permute", "reshape", "take", "take_along_axis"})
"""Ops that return their operand's numbers unchanged."""


class Values(Protocol):
    """What is known of the values on a tape."""

    def operands(self, node: Node) -> tuple[Array, ...]:
        """Return the operands of a node, None for unknown ones."""

    def value(self, node: Node) -> Array:
        """Return the result of a node, None if it is unknown."""


@dataclass(frozen=True)
class Origin:
    """The origin of a bad number.

    Attributes:
        node: the op.
        birth: the bad number, and the operands from which it was computed.
        held: the operand that was already NaN and that no recorded op made: a leaf, or an array.
        position: its position among the operands.
        turned: the later op that made a NaN of the infinity, None if `birth` is the NaN itself or none was made.
    """

    node: Node
    birth: Birth
    held: Array = None
    position: int = -1
    turned: Birth | None = None


def origin_of(node: Node, values: Values, meant: Callable[[Node], bool]) -> Origin | None:
    """Follow a bad result back to its origin; return None if `meant` says that the program intends it."""
    turned: Node | None = None
    if meant(node):
        return None
    while True:
        before = _bad_parent(node, values, meant)
        if before is None:
            break
        parent, is_nan = before
        if turned is None and not is_nan and node.prim is not PICK:
            turned = node if _is_nan(values.value(node)) else None
        node = parent
    operands = values.operands(node)
    held = [(at, part) for at, part in enumerate(operands) if has_bad(part, True)]
    nans = [(at, part) for at, part in held if has_bad(part)]
    inside = shown_op(node.name, node.place) != node.name  # of a function of several ops, as 1 / (n - 1) in std
    if nans and not (inside and node.parents[nans[0][0]] is None):
        at, part = nans[0]
        return Origin(node, birth_at(node, values, part), part, at)
    if held and turned is not None:
        node, turned = turned, None  # the infinity stands in the program
    return Origin(node, birth_at(node, values), turned=None if turned is None else birth_at(turned, values))


def birth_at(node: Node, values: Values, bad: Array = None) -> Birth:
    """Describe the bad numbers in the result of a node, or in another array."""
    value = values.value(node) if bad is None else bad
    value = value[0] if isinstance(value, tuple) else value
    value = np.asarray(np.nan) if value is None else value
    is_nan = _is_nan(value)
    return Birth.of(node.name, node.place, value, values.operands(node), inf=not is_nan, node=node)


def instead(node: Node) -> str:
    """Return the remedy for an op, depending on the ops that made its operands; empty if none is known."""
    name = shown_op(node.name, node.place)
    makers = [maker for parent in node.parents if (maker := _maker(parent)) is not None]
    told = (INSTEAD.get((name, shown_op(maker.name, maker.place))) for maker in makers)
    return next((text for text in told if text), advice(name))


def _maker(parent: Array) -> Node | None:
    """Return the op that made an operand, looking through views."""
    node = parent if type(parent) is Node else None
    while node is not None and (node.prim is PICK or node.name in VIEWS):
        node = node.parents[0] if node.parents and type(node.parents[0]) is Node else None
    return node


def _bad_parent(node: Node, values: Values, meant: Callable[[Node], bool]) -> tuple[Node, bool] | None:
    """Return the op behind a bad operand, one of a NaN before one of an infinity, and whether it is a NaN."""
    if node.prim is PICK:
        parent = node.parents[0]
        return (parent, True) if type(parent) is Node else None
    pairs = [
        (parent, has_bad(part))
        for parent, part in zip(node.parents, values.operands(node), strict=False)
        if type(parent) is Node and has_bad(part, True) and not meant(parent)
    ]
    return max(pairs, key=lambda pair: pair[1], default=None)  # the first of several


def _is_nan(value: Array) -> bool:
    """Tell whether a value holds a NaN; an unknown one may."""
    value = value[0] if isinstance(value, tuple) else value
    return value is None or bool(np.isnan(plain(value)).any())
