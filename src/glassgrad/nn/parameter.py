"""Parameter and Buffer, the tensors of a module's state."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from glassgrad.engine.tensor import Tensor, TensorLike
from glassgrad.errors.missing import lister


class Parameter(Tensor):
    """A tensor that belongs to the trainable state of the module it is assigned to.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Module()
        >>> model.scale = gg.nn.Parameter(gg.ones(2))
        >>> [name for name, _ in model.named_parameters()]
        ['scale']
    """

    def __init__(self, data: TensorLike | Sequence[Any] = (), requires_grad: bool = True) -> None:
        super().__init__(data, requires_grad=requires_grad)

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


class Buffer(Tensor):
    """A tensor of the state that is not trained, such as a running mean.

    `persistent=False` keeps it out of `state_dict`.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Module()
        >>> model.mean = gg.nn.Buffer(gg.zeros(2))
        >>> list(model.state_dict()), list(model.parameters())
        (['mean'], [])
    """

    persistent: bool
    owner: weakref.ref[Any] | None = None  # the module that has it; other modules treat it as a plain tensor

    def __init__(self, data: TensorLike | Sequence[Any] = (), *, persistent: bool = True) -> None:
        super().__init__(data)
        self.persistent = persistent

    def __reduce_ex__(self, _protocol: Any) -> Any:
        return _buffer, (self.array, self.persistent)

    def __deepcopy__(self, memo: dict[int, Any]) -> Buffer:
        twin = memo[id(self)] = Buffer(self.array.copy(), persistent=self.persistent)
        return twin


def _buffer(array: np.ndarray, persistent: bool) -> Buffer:
    return Buffer(array, persistent=persistent)


def buffer_of(tensor: Tensor, persistent: bool) -> Buffer:
    """Return a tensor as a buffer with the same memory and the same history, so gradients flow through it."""
    if tensor.node is None and tensor.requires_grad:
        tensor = tensor.view_as(tensor)  # a leaf: the buffer is computed from it
    buffer = Buffer(tensor.array, persistent=persistent)
    buffer.node, buffer._tracks = tensor.node, tensor._tracks
    if tensor._extra is not None and "view" in tensor._extra:
        buffer._extra = {"view": tensor._extra["view"]}
    return buffer


__all__ = ["Buffer", "Parameter"]
__dir__ = lister(__name__)
