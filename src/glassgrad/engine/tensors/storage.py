"""The memory behind a tensor: where it lies, giving a tensor other memory, and functions of Python on every element.

Nothing here is recorded: a tensor that requires a gradient is refused where it would get other values or memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.base.tables import words
from glassgrad.engine import inplace
from glassgrad.engine.tensor import Tensor
from glassgrad.ops.axes import concrete
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.shape import _ints
from glassgrad.ops.views import memory_owner


class Storage:
    """The memory that a tensor and its views share; `size()` and indices count elements, of an untyped one bytes.

    Example:
        >>> import glassgrad as gg
        >>> x = gg.zeros(2, 3)
        >>> x[0].untyped_storage().nbytes(), x.untyped_storage().data_ptr() == x[0].untyped_storage().data_ptr()
        (24, True)
    """

    def __init__(self, memory: Array) -> None:
        self._memory = memory

    def data_ptr(self) -> int:
        """Return the address of the first byte."""
        return int(self._memory.ctypes.data)

    def nbytes(self) -> int:
        """Return how many bytes there are."""
        return int(self._memory.nbytes)

    def size(self) -> int:
        """Return how many elements there are."""
        return int(self._memory.size)

    def element_size(self) -> int:
        """Return the bytes of one element."""
        return int(self._memory.itemsize)

    def tolist(self) -> list[Any]:
        """Return the elements."""
        listed: list[Any] = self._memory.tolist()
        return listed

    def untyped(self) -> Storage:
        """Return the same memory as bytes."""
        return Storage(self._memory.view(np.uint8))

    def __len__(self) -> int:
        return self.size()

    def __getitem__(self, index: int) -> complex:
        element: complex = self._memory[index].item()
        return element

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Storage) and (self.data_ptr(), self.nbytes()) == (other.data_ptr(), other.nbytes())

    def __hash__(self) -> int:
        return self.data_ptr()


def _whole(x: Tensor, op: str) -> Array:
    """Return all elements of the memory that a tensor looks at, in the order in which they lie."""
    array = concrete(x, op)
    owner = memory_owner(array)
    order = "F" if owner.flags.f_contiguous and not owner.flags.c_contiguous else "C"
    flat = owner.reshape(-1, order=order)
    return flat if flat.dtype == array.dtype else flat.view(np.uint8).view(array.dtype)


def storage(x: Tensor) -> Storage:
    """Return the memory behind the tensor, which its views share, by elements."""
    return Storage(_whole(x, "storage"))


def untyped_storage(x: Tensor) -> Storage:
    """Return the memory behind the tensor, which its views share, by bytes."""
    return storage(x).untyped()


def storage_offset(x: Tensor) -> int:
    """Return how many elements lie before the first one in the memory behind the tensor."""
    array = concrete(x, "storage_offset")
    return int((array.ctypes.data - _whole(x, "storage_offset").ctypes.data) // array.itemsize)


def is_set_to(x: Tensor, tensor: Tensor) -> bool:
    """Tell whether two tensors look at the same memory with the same shape and strides."""
    a, b = concrete(x, "is_set_to"), concrete(tensor, "is_set_to")
    return bool(a.ctypes.data == b.ctypes.data and (a.shape, a.strides) == (b.shape, b.strides))


def _look_at(x: Tensor, memory: Array, op: str) -> Tensor:
    if x._tracks:
        raise errors.MEMORY_OF_TRACKED(op=op, where=provenance.here())
    x.array = memory
    if x._extra is not None:
        x._extra.pop("view", None)
    return x


def set_(
    x: Tensor,
    source: Tensor | Storage | None = None,
    storage_offset: int = 0,
    size: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
) -> Tensor:
    """Let the tensor look at the memory of `source`, or at none; return it.

    With a `size` it sees that part from `storage_offset` on, `stride` elements apart (by default in one run).

    Raises:
        AutogradError: the tensor requires a gradient.
        ArgumentError: the dtypes differ.
    """
    if source is None:
        return _look_at(x, np.empty(0, x.dtype), "set_")
    memory = source._memory if isinstance(source, Storage) else concrete(source, "set_")
    if memory.dtype != x.dtype:
        raise bad_option("set_", "source", f"dtype {memory.dtype}", str(x.dtype))
    if size is not None:
        whole = memory if isinstance(source, Storage) else _whole(source, "set_")
        sizes = tuple(size)
        steps = np.empty(sizes, x.dtype).strides if stride is None else [step * x.dtype.itemsize for step in stride]
        memory = np.lib.stride_tricks.as_strided(whole[storage_offset:], sizes, steps)
    return _look_at(x, memory, "set_")


def resize_(x: Tensor, *sizes: int | Sequence[int], memory_format: str | None = None) -> Tensor:
    """Give the tensor another shape in place: its elements as they lie in memory, then values that are not set.

    Raises:
        AutogradError: the tensor requires a gradient.
    """
    shape = _ints(sizes)
    memory = _whole(x, "resize_")[storage_offset(x) :]
    count = int(np.prod(shape, dtype=np.int64))
    if count > memory.size:
        larger = np.empty(count, x.dtype)
        larger[: memory.size] = memory
        memory = larger
    return _look_at(x, memory[:count].reshape(shape), "resize_")


def resize_as_(x: Tensor, the_template: Tensor, *, memory_format: str | None = None) -> Tensor:
    """Give the tensor the shape of another one in place, see `resize_`; return it."""
    return resize_(x, *the_template.shape)


def _mapped(x: Tensor, others: tuple[Tensor, ...], function: Callable[..., Any], op: str) -> Tensor:
    if x._tracks or any(other._tracks for other in others):
        raise errors.MEMORY_OF_TRACKED(op=op, where=provenance.here())
    parts = [np.broadcast_to(concrete(other, op), x.shape).reshape(-1).tolist() for other in (x, *others)]
    found = [function(*given) for given in zip(*parts, strict=True)]
    return inplace.fill(x, np.asarray(found).astype(x.dtype).reshape(tuple(x.shape)))


def apply_(x: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Write a function of Python of each element over it; return x. It is slow: ops are for whole tensors.

    Raises:
        AutogradError: the tensor requires a gradient.
    """
    return _mapped(x, (), callable, "apply_")


def map_(x: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Write a function of Python of each element and the one of `tensor` over it; return x.

    Raises:
        AutogradError: one of the tensors requires a gradient.
    """
    return _mapped(x, (tensor,), callable, "map_")


def map2_(x: Tensor, x1: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Write a function of Python of each element and those of two other tensors over it; return x.

    Raises:
        AutogradError: one of the tensors requires a gradient.
    """
    return _mapped(x, (x1, y), callable, "map2_")


_NAMES = words("storage untyped_storage storage_offset is_set_to set_ resize_ resize_as_ apply_ map_ map2_")
for _name in _NAMES:
    setattr(Tensor, _name, globals()[_name])

__all__ = ["Storage"]
