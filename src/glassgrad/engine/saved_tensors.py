"""Control over what nodes keep for the backward pass: `saved_tensors_hooks` and checkpoints.

While a watcher is active, every op is computed as usual and its new node is then shown to the watchers, the innermost
first. A watcher may replace `Node.saved` by an object whose ``unpack(node)`` returns it later.
This module is `glassgrad.autograd.graph`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from glassgrad import errors
from glassgrad.engine.mode import MODE, WATCHED
from glassgrad.engine.node import Node
from glassgrad.engine.tensor import Tensor, make
from glassgrad.ops.core import Array, Primitive
from glassgrad.ops.vmap.batched import Batched


class Watcher:
    """Watches ops while it is active; subclasses decide what nodes save.

    Attributes:
        in_parts: whether fused ops of a trace are watched op by op, as they are inside `vmap`.
    """

    in_parts = True

    def note(self, node: Node) -> None:
        """Inspect a newly recorded node."""

    def stand_in(self, prim: Primitive) -> Primitive:
        """Return the function that replaces a primitive."""
        return prim

    def computed(self, prim: Primitive, args: tuple[Array, ...], result: Array) -> None:
        """Inspect an op inside `vmap`, which no stand-in computes; `note` follows if it was recorded."""

    def __enter__(self) -> Self:
        self._before = MODE.watchers, MODE.flags
        MODE.watchers = (*MODE.watchers, self)
        MODE.flags |= WATCHED
        return self

    def __exit__(self, *_exception: object) -> None:
        MODE.watchers, MODE.flags = self._before


def show(node: Node) -> None:
    """Show the watchers, if there are any, a node recorded outside `apply`."""
    if MODE.flags & WATCHED:
        for watcher in reversed(MODE.watchers):
            watcher.note(node)


def computed_by(prim: Primitive, evaluate: Callable[..., Any]) -> Primitive:
    """Return a copy of a primitive that another function evaluates."""
    twin: Primitive = object.__new__(type(prim))  # `copy` would return the primitive itself
    twin.__dict__.update(prim.__dict__, evaluate=evaluate)
    twin.__dict__.pop("traits", None)
    return twin


# --- hooks on saved values --------------------------------------------------------------------------


class _Packed:
    """The saved values of a node, each array packed by a hook."""

    def __init__(self, parts: Array, unpack: Callable[[Any], Any]) -> None:
        self.parts = parts
        self._unpack = unpack

    def unpack(self, node: Node) -> Array:
        """Return ``(y, *x)``."""
        return _each(self.parts, _Part, lambda part: self._array(part, node))

    def _array(self, part: _Part, node: Node) -> Array:
        found = self._unpack(part.packed)
        if not isinstance(found, Tensor) or found.shape != part.shape:
            given = found.shape if isinstance(found, Tensor) else type(found).__name__
            raise errors.UNPACKED_WRONG(given=given, expected=part.shape, op=node.name, where=node.place)
        return found.array


class _Part:
    """One packed array."""

    def __init__(self, packed: Array, shape: tuple[int, ...]) -> None:
        self.packed = packed
        self.shape = shape


def _each(value: Array, kind: Any, function: Callable[[Any], Any]) -> Any:
    """Apply a function to the entries of a certain kind in nested tuples and lists."""
    if isinstance(value, kind):
        return function(value)
    if isinstance(value, tuple | list):
        parts = [_each(part, kind, function) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


class saved_tensors_hooks(Watcher):  # noqa: N801 - PyTorch's name
    """In the block, values that nodes save pass through `pack_hook`, and through `unpack_hook` when they are needed.

    `pack_hook` gets a tensor and may return anything, such as a file name or a tensor of fewer bits;
    `unpack_hook` gets this result and returns a tensor of the same shape.

    Example:
        >>> import glassgrad as gg
        >>> half = lambda t: (t.dtype, t.astype(gg.float16))
        >>> x = gg.tensor([1.0, 2.0], requires_grad=True)
        >>> with gg.autograd.graph.saved_tensors_hooks(half, lambda packed: packed[1].astype(packed[0])):
        ...     y = (x * x).sum()
        >>> y.backward()
        >>> x.grad
        tensor([2., 4.])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self._pack = pack_hook
        self._unpack = unpack_hook

    def note(self, node: Node) -> None:
        """Pack what the node saves, unless an inner watcher has done so."""
        if type(node.saved) is tuple:
            flags = MODE.flags
            MODE.flags = flags & ~WATCHED  # ops inside the hook must not trigger it
            try:
                node.saved = _Packed(_each(node.saved, np.ndarray | Batched, self._packed), self._unpack)
            finally:
                MODE.flags = flags

    def _packed(self, array: Array) -> _Part:
        return _Part(self._pack(make(array, None, False)), tuple(array.shape))
