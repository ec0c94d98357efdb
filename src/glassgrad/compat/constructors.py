"""PyTorch's ways to make a tensor: `Tensor(2, 3)`, `FloatTensor(x.shape)`, `tensor([x, y])` of tensors with one number.

`TYPED` are the older tensor types; `PATCHES` change `Tensor`, `tensor` and `Function` while glassgrad stands in for
PyTorch.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.function import Function
from glassgrad.engine.mode import MODE, RECORDING
from glassgrad.engine.tensor import Size, Tensor
from glassgrad.engine.tensors import creation
from glassgrad.engine.tensors.devices import DType
from glassgrad.ops.core import INTERPRETERS, Array


def _sizes(data: tuple[Any, ...]) -> tuple[int, ...] | None:
    """Return the sizes that a constructor was given, as a shape or one by one; None if it was given data."""
    if len(data) == 1:
        (only,) = data
        if type(only) is Size:
            return tuple(only)
        return (int(only),) if _is_whole(only) else None
    if not data:
        return (0,)
    whole = all(_is_whole(one) or (isinstance(one, Tensor) and one.dim() == 0) for one in data)
    return tuple(int(one) for one in data) if whole else None


def _is_whole(value: Array) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


# --- the older tensor types -----------------------------------------------------------------------


class TypedTensor(type):
    """PyTorch's older tensor type: makes tensors, is accepted as a dtype, and supports isinstance."""

    dtype: np.dtype

    def __call__(cls, *data: Array) -> Array:
        sizes = _sizes(data)
        if sizes is None:
            if len(data) > 1:
                raise errors.NOT_SIZES(kind=type(data[0]).__name__, where=provenance.here())
            return creation.tensor(data[0], dtype=cls.dtype)
        return creation.zeros(*sizes, dtype=cls.dtype)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and instance.dtype == cls.dtype


def _typed(name: str, dtype: Array) -> Array:
    text = f"""A tensor of {np.dtype(dtype)} from data, or zeros of a shape.

    Args:
        data: numbers, nested lists, an array or a tensor; or the sizes, ints or a Size, of a tensor of zeros.

    Example:
        >>> import glassgrad as gg
        >>> gg.{name}([1, 0]).dtype
        {np.dtype(dtype)!r}
    """
    return TypedTensor(name, (), {"dtype": np.dtype(dtype), "__doc__": text, "__module__": "glassgrad"})


TYPED = {
    name: _typed(name, dtype)
    for name, dtype in (
        ("FloatTensor", np.float32),
        ("DoubleTensor", np.float64),
        ("HalfTensor", np.float16),
        ("LongTensor", np.int64),
        ("IntTensor", np.int32),
        ("ShortTensor", np.int16),
        ("CharTensor", np.int8),
        ("ByteTensor", np.uint8),
        ("BoolTensor", np.bool_),
    )
}

# --- Tensor ---------------------------------------------------------------------------------------

_INIT = Tensor.__init__


def _tensor_of_default(self: Tensor, data: Array = (), *sizes: int, requires_grad: bool = False) -> None:
    """Read sizes, a shape or an array passed to `torch.Tensor` as PyTorch does: with the default dtype, copied."""
    shape = _sizes((data, *sizes)) if sizes or type(data) is not tuple else None
    if shape is not None:
        data, sizes = np.empty(shape, creation.DEFAULT), ()
    elif isinstance(data, np.ndarray):
        caller = str(sys._getframe(1).f_globals.get("__name__"))
        if caller.partition(".")[0] != "glassgrad":
            data = np.array(data, creation.DEFAULT)
    elif isinstance(data, list):
        data = _read(data, creation.DEFAULT)
    _INIT(self, data, *sizes, requires_grad=requires_grad)


# --- tensors in lists -----------------------------------------------------------------------------

_READ = creation._to_array


def _read(data: Array, dtype: DType) -> Array:
    """Read data for a tensor; a tensor with one number stands in a list for that number, whatever its dimensions."""
    if type(data) is list or type(data) is tuple:
        first: object = data
        while isinstance(first, list | tuple) and first:
            first = first[0]
        if isinstance(first, Tensor):
            data, dtype = _as_numbers(data, dtype)
    try:
        return _READ(data, dtype)
    except errors.ShapeError:
        numbers, dtype = _as_numbers(data, dtype)
        if numbers is data:
            raise
    return _READ(numbers, dtype)


def _as_numbers(data: Array, dtype: DType) -> tuple[Any, DType]:
    """Return nested lists with numbers for tensors, and their common dtype; unchanged where a tensor holds more."""
    kinds: set[np.dtype] = set()
    tracked = False

    def number(value: Array) -> Array:
        nonlocal tracked
        if isinstance(value, list | tuple):
            return [number(part) for part in value]
        if not isinstance(value, Tensor):
            kinds.add(_kind(value))
            return value
        if type(value.array) in INTERPRETERS or value.array.size != 1:
            raise _SeveralError
        tracked = tracked or value._tracks
        kinds.add(value.array.dtype)
        return value.array.item()

    try:
        numbers = number(data)
    except _SeveralError:
        return data, dtype
    if tracked and MODE.flags & RECORDING:
        text = errors.LIST_OF_TRACKED.text(where=provenance.here())
        warnings.warn(text, errors.GradientLostWarning, stacklevel=provenance.stack_level())
    real = [kind for kind in kinds if kind.kind in "fcV"] or list(kinds)
    return numbers, np.result_type(*real) if dtype is None else dtype


def _kind(value: Array) -> np.dtype:
    """Return the dtype of a tensor of this number."""
    if isinstance(value, float):
        return creation.DEFAULT
    return (
        np.dtype(np.result_type(creation.DEFAULT, np.complex64))
        if isinstance(value, complex)
        else np.asarray(value).dtype
    )


class _SeveralError(Exception):
    """A tensor in a list holds another number of numbers than one."""


# --- functions of one's own -----------------------------------------------------------------------


def _accept(self: Function, *_args: object, **_options: object) -> None:
    """Make an instance, because `Square().apply(x)` is common."""


def _refuse(self: Function, *_args: object) -> Array:
    """Refuse the oldest form of a call, as PyTorch does."""
    raise errors.FUNCTION_CALLED(name=type(self).__name__, where=provenance.here())


PATCHES = (
    (Tensor, "__init__", _tensor_of_default),
    (creation, "_to_array", _read),
    (Function, "__init__", _accept),
    (Function, "__call__", _refuse),
)

__all__ = ["PATCHES", "TYPED", "TypedTensor"]
