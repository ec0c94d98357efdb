"""Find the first op behind a loss that made a NaN, on the tape; before the backward pass this needs no replay.

A node saves what its rules need: its result, its operands, or neither. Values that were not saved are recomputed from
their operands, oldest first, up to the first NaN computed from finite numbers.
"""

from __future__ import annotations

import ast
import itertools
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

import numpy as np

from glassgrad.doctor.graphs.graph import VIEWS
from glassgrad.doctor.library import Array
from glassgrad.engine.node import PICK, Node, unpack
from glassgrad.engine.reports.births import Origin, Values, birth_at, origin_of
from glassgrad.engine.reports.nonfinite import advice, has_bad, is_allowed, plain
from glassgrad.engine.tensor import Tensor
from glassgrad.ops.core import REGISTRY
from glassgrad.ops.vmap.batched import Batched, Boundary

_MOST_LINKS = 6


def behind(root: Node) -> list[Node]:
    """Return a node and all its ancestors, oldest first."""
    seen: dict[Node, None] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen[node] = None
            stack.extend(parent for parent in node.parents if type(parent) is Node)
    return sorted(seen, key=lambda node: node.seq)


class Tape:
    """The ancestors of a loss on the tape, and their known values.

    Args:
        loss: a tensor whose graph has not been freed.
    """

    first = None  # an untracked op that made a NaN is not known

    def __init__(self, loss: Tensor) -> None:
        assert loss.node is not None
        self.nodes = behind(loss.node)
        self._kept: dict[Node, Any] = {loss.node: loss.array}
        for node in self.nodes:
            self._note_what_it_keeps(node)

    def _note_what_it_keeps(self, node: Node) -> None:
        saved = unpack(node)
        if node.prim.saves_y and node.prim.decompose is None:
            self._kept[node] = saved[0]
        for parent, part in zip(node.parents, saved[1:], strict=False):
            if type(parent) is Node and _is_value(part):
                self._kept[parent] = part

    def operands(self, node: Node) -> tuple[Any, ...]:
        """Return the operands of a node, None for unknown ones."""
        saved = unpack(node)[1:]
        found: list[Any] = []
        for at, parent in enumerate(node.parents):
            part = saved[at] if at < len(saved) else None
            if _is_value(part):
                found.append(part)
            elif isinstance(parent, Tensor):
                found.append(parent.array)
            elif type(parent) is Node:
                found.append(self._kept.get(parent))
            else:
                found.append(_constant(node, at))
        return tuple(found)

    def value(self, node: Node) -> Any:
        """Return the value of a node, None if it is unknown; call this for its parents first."""
        if node not in self._kept:
            operands = self.operands(node)
            if all(part is not None for part in operands):
                found = _computed(node, operands)
                if found is not None:
                    self._kept[node] = found
        return self._kept.get(node)

    def known(self) -> Tape:
        """Compute the values that were not saved, oldest first; return this tape."""
        for node in self.nodes:
            self.value(node)
        return self

    def origin(self, inf: bool = False, allow: Collection[str] = (), values: Values | None = None) -> Origin | None:
        """Return the first op that made a NaN or an infinity behind the loss; with `inf`, any infinity counts.

        Args:
            inf: look for infinities that do not reach the loss as well.
            allow: ops whose NaN and infinities are intended.
            values: the values on the tape, if they were recorded while the ops ran.
        """

        def meant(node: Node) -> bool:
            return node.name in allow or is_allowed(node)

        known = self.known() if values is None else values
        last = self.nodes[-1]
        if has_bad(known.value(last), True):
            return self._unless_unknown(origin_of(last, known, meant), known)
        for node in self.nodes if inf else ():
            operands = known.operands(node)
            if meant(node) or node.prim is PICK or not has_bad(known.value(node), True):
                continue
            if not any(has_bad(part, True) for part in operands):
                return Origin(node, birth_at(node, known))
        return None

    def _unless_unknown(self, found: Origin | None, values: Values) -> Origin | None:
        """Follow unknown results back to the oldest op, where the NaN may be from, unless the op often makes one."""
        if found is None or found.held is not None or advice(found.birth.op):
            return found
        node = found.node
        while unknown := [one for one in node.parents if type(one) is Node and values.value(one) is None]:
            node = min(unknown, key=lambda one: one.seq)
        return found if node is found.node else Origin(node, birth_at(node, values))

    def maker_of_infinity(self, origin: Origin) -> Node | None:
        """Return the op that made an infinite operand of the origin, such as the fill of a mask before a softmax."""
        node: Node | None = origin.node
        found = None
        while node is not None:
            operands = self.operands(node)
            pairs = zip(node.parents, operands, strict=True)
            node = next((one for one, part in pairs if type(one) is Node and _has_infinity(part)), None)
            found = node or found
        return found

    def chain(self, node: Node) -> list[Node]:
        """Return the path from a node to the loss."""
        users: dict[Node, Node] = {}
        for one in reversed(self.nodes):  # the oldest user of a node is kept
            for parent in one.parents:
                if type(parent) is Node:
                    users[parent] = one
        path = [node]
        while path[-1] in users:
            path.append(users[path[-1]])
        return path


def _is_value(part: Any) -> bool:
    return isinstance(part, Batched | np.ndarray | np.generic | float | int | bool)


def _constant(node: Node, position: int) -> Any:
    """Return an operand that the tape does not save: a number in the source, or a variable of a running function."""
    texts = node.place.operands
    if position >= len(texts):
        return None
    try:
        number = ast.literal_eval(texts[position].strip())
        return number if isinstance(number, int | float) else None
    except (ValueError, SyntaxError):
        pass
    value = _variables(node).get(texts[position].strip())
    value = value.array if isinstance(value, Tensor) else value
    return value if _is_value(value) else None


def _variables(node: Node) -> Mapping[str, Any]:
    """Return the variables of the function that called an op, if it is still running."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not node.code:
        frame = frame.f_back
    return {} if frame is None else frame.f_locals


def variable_of(node: Node, array: Array) -> str:
    """Return the name of the caller's variable that holds an array; empty if there is none."""
    variables = _variables(node).items()
    return next((name for name, value in variables if value is array or getattr(value, "array", None) is array), "")


def _has_infinity(part: Any) -> bool:
    part = plain(part)
    return isinstance(part, np.ndarray | np.generic) and part.dtype.kind == "f" and bool(np.isinf(part).any())


def _computed(node: Node, operands: Sequence[Any]) -> Any:
    """Recompute the result of an op; None if that fails."""
    prim: Any = node.prim
    if prim is PICK:
        found = operands[0]
        return found[node.params["index"]] if isinstance(found, tuple) else None
    known: Any = REGISTRY.get(prim.name)
    if known is not prim and not isinstance(prim, Boundary):
        return None  # the user's own function: do not run its code again
    found = None
    with suppress(Exception), np.errstate(all="ignore"):  # on any failure the value stays unknown
        if any(type(part) is Batched for part in operands):
            found = prim(*operands, **node.params)
        else:
            found = prim.evaluate(*operands, **node.params)
            if prim.decompose is not None:
                found = found[0]
                found = found[0] if prim.companions else found
    if isinstance(found, np.generic):
        found = np.asarray(found)
    fits = isinstance(found, tuple) or (isinstance(found, np.ndarray | Batched) and found.shape == node.shape)
    return found if fits else None


def told(path: Sequence[Node]) -> str:
    """Write the ops on a path as "log at train.py:12 -> multiply -> sum at train.py:13"."""
    return joined(list(_links(path)))


def joined(links: list[str]) -> str:
    """Join the ops on a path by arrows, omitting the middle of a long path."""
    if len(links) > _MOST_LINKS:
        links = [*links[:3], f"({len(links) - 5} more)", *links[-2:]]
    return " -> ".join(links)


def _links(path: Sequence[Node]) -> Iterator[str]:
    shown = [node for node in path if node.prim is not PICK and (node.name not in VIEWS or node is path[-1])]
    last = None
    for node, then in itertools.zip_longest(shown, shown[1:]):
        place = node.place
        ends = then is None or then.place != place  # the line's variable is the result of its last op
        name = f"{node.name} ('{place.variable}')" if place.variable and ends else node.name
        yield name if (place.file, place.line) == last else f"{name} at {place}"
        last = (place.file, place.line)
