"""Node: one recorded application of a primitive, with its place in the user's code.

Parents are other nodes or leaf tensors, never the tensors in between, so values that no rule saves are
freed at once and no reference cycle exists.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.ops import core
from glassgrad.ops.core import Array, Primitive
from glassgrad.ops.vmap.batched import Level

Arrays = Sequence[Array]

next_sequence = itertools.count(1).__next__


class Node:
    """One recorded application of a primitive.

    `saved` is ``(y, *x)`` as the rules take it, with placeholders for what `prim` does not save, or a `Freed` once a
    backward walk has used it up, or an object whose `unpack(node)` returns it (see saved_tensors.py). `code` and
    `lasti` are the place in the user's code. `levels`, if set, are the vmap batches that the result has in addition to
    its shape.
    """

    __slots__ = (
        "__weakref__",
        "code",
        "dtype",
        "hooks",
        "lasti",
        "levels",
        "params",
        "parents",
        "prim",
        "saved",
        "seq",
        "shape",
    )

    hooks: list[Callable[[Any], Any]] | None
    levels: tuple[Level, ...]

    prim: Primitive
    parents: tuple[Any, ...]
    saved: Array
    params: dict[str, Any]
    shape: tuple[int, ...]
    dtype: np.dtype
    code: CodeType
    lasti: int
    seq: int

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def place(self) -> provenance.Place:
        """The place in the user's code where the op was called."""
        return provenance.resolve(self.code, self.lasti)

    @property
    def name(self) -> str:
        name: str = self.prim.name
        return name

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The parents, in PyTorch's form."""
        return tuple((parent, 0) for parent in self.parents)

    def __repr__(self) -> str:
        place = self.place
        return f"<{self.prim.name} at {place}: {place.source}>"


def record(
    prim: Primitive,
    parents: tuple[Any, ...],
    saved: Array,
    params: dict[str, Any],
    result: Array,
    code: CodeType,
    lasti: int,
) -> Node:
    """Build a node. This is a plain function, since calling a class with an __init__ takes twice as long."""
    node = _new(Node)
    node.prim = prim
    node.parents = parents
    node.saved = saved
    node.params = params
    node.shape = result.shape
    node.dtype = result.dtype
    node.code = code
    node.lasti = lasti
    node.hooks = None
    node.seq = next_sequence()
    return node


_new = object.__new__


class Freed:
    """Replaces `Node.saved` after the graph was freed; knows which backward() call freed it."""

    __slots__ = ("code", "lasti")

    def __init__(self, code: CodeType, lasti: int) -> None:
        self.code = code
        self.lasti = lasti

    @property
    def place(self) -> provenance.Place:
        return provenance.resolve(self.code, self.lasti)


PICK = core.Custom(
    "pick",
    lambda _xp, *parts, index: parts[index],
    joint_vjp=lambda *_args, **_params: None,
    takes_complex=True,
)
PICK.describe(
    "(x1, x2, ...)[index]", notes="selects one result of a primitive that has several; the walks do it themselves"
)
PICK.visit = lambda walk, node, g: walk.deliver_pick(node, g)


def describe(tensor: Any, node: Node | None = None) -> str:
    """Name a tensor for a message: the user's variable if known, else the op that made it."""
    node = node if node is not None else tensor.node
    if node is None:
        return f"the tensor of shape {tuple(tensor.shape)}"
    variable = node.place.variable
    return f"'{variable}'" if variable else f"the result of {node.prim.name}"


def unpack(node: Node) -> tuple[Array, ...]:
    """Return ``(y, *x)`` of a node, wherever it is kept."""
    saved = node.saved
    if type(saved) is Freed:
        raise errors.BACKWARD_TWICE(what=describe(None, node), built=node.place, freed=saved.place)
    while type(saved) is not tuple:
        saved = saved.unpack(node)
    return saved
