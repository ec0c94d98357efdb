"""Functions that make tensors, with PyTorch's names.

Python numbers and lists of floats become float32, integers int64, booleans bool; NumPy arrays keep
their dtype.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.memory.capsules import array_of
from glassgrad.engine.mode import MODE, RECORDING
from glassgrad.engine.tensor import Tensor, base_class, make, numeric
from glassgrad.engine.tensors import devices
from glassgrad.engine.tensors.devices import Device, DType
from glassgrad.ops import narrow
from glassgrad.ops.complex_input import complex_dtype
from glassgrad.ops.core import INTERPRETERS, Array, bad_option
from glassgrad.ops.vmap.batched import for_each_example

DEFAULT = np.dtype(np.float32)


def _finish(array: Array, requires_grad: bool, device: Device = None) -> Tensor:
    if device is not None:
        devices.check(device)
    tensor = make(array, None, False)
    if requires_grad:
        tensor.requires_grad = True
    return tensor


def _to_array(data: Any, dtype: DType) -> Array:
    if isinstance(data, Tensor):
        data = data.lifted()
    if isinstance(data, list | tuple) and any(isinstance(part, Tensor) for part in data):
        if MODE.flags & RECORDING and any(isinstance(part, Tensor) and part._tracks for part in data):
            text = errors.LIST_OF_TRACKED.text(where=provenance.here(2))
            warnings.warn(text, errors.GradientLostWarning, stacklevel=provenance.stack_level())
        data = [part.lifted() if isinstance(part, Tensor) else part for part in data]
    if type(data) in INTERPRETERS:  # a Symbol during tracing
        return data if dtype is None else data.astype(dtype)
    # NumPy cannot read PyTorch's bfloat16. The text of a dtype takes longer than making a tensor.
    if type(data) is not np.ndarray and str(getattr(data, "dtype", "")) == "torch.bfloat16":
        data = array_of(data)
    try:
        array: np.ndarray = np.asarray(base_class(data))
    except ValueError:
        raise errors.RAGGED_ROWS(where=provenance.here()) from None
    if dtype is not None:
        return array.astype(dtype, copy=False)
    # Data with its own dtype keeps it: arrays, and tables and series of pandas.
    from_python = not hasattr(data, "__array__") and not hasattr(data, "__array_interface__")
    if from_python and array.dtype in (np.float64, np.complex128) and not _holds_arrays(data):
        return array.astype(_complex_default() if array.dtype.kind == "c" else DEFAULT)
    return numeric(array, type(data).__name__)


def _complex_default() -> np.dtype:
    """Return the complex dtype that has parts of the default dtype."""
    return np.result_type(DEFAULT, np.complex64)


def _holds_arrays(data: Any) -> bool:
    return isinstance(data, list | tuple) and any(isinstance(part, np.ndarray | np.generic) for part in data)


@devices.on_the_processor
def tensor(data: Any, dtype: DType = None, requires_grad: bool = False, device: Device = None) -> Tensor:
    """Return a Tensor with a copy of `data`: numbers, nested lists, arrays.

    Example:
        >>> import glassgrad as gg
        >>> gg.tensor([1, 2]).dtype, gg.tensor([1.0, 2.0]).dtype
        (dtype('int64'), dtype('float32'))
    """
    array = _to_array(data, dtype)
    return _finish(array.copy() if type(array) in INTERPRETERS else np.array(array), requires_grad, device)


def as_tensor(data: Any, dtype: DType = None, device: Device = None) -> Tensor:
    """Return `data` as a Tensor, sharing memory where possible."""
    if isinstance(data, Tensor) and (dtype is None or data.dtype == dtype):
        devices.check(device)
        return data
    return _finish(_to_array(data, dtype), False, device)


def from_numpy(array: np.ndarray) -> Tensor:
    """Return a Tensor that shares the memory of `array`, which may be a memory map; writes reach the file.

    Raises:
        KindError: for anything but an array of numbers in this machine's byte order, and for an array with
            masked elements.
    """
    if not isinstance(array, np.ndarray):
        raise errors.FROM_NUMPY_KIND(kind=type(array).__name__, where=provenance.here())
    known = array.dtype.kind in "biufc" or narrow.is_bfloat16(array.dtype)
    if not known or not array.dtype.isnative:
        raise errors.FROM_NUMPY_DTYPE(dtype=array.dtype, where=provenance.here())
    return make(base_class(array), None, False)


def _size(size: tuple[Any, ...], by_name: Any = None) -> tuple[int, ...]:
    """Return sizes given one by one, as one tuple, or by keyword."""
    if by_name is not None:
        size = (by_name,)
    if len(size) == 1 and isinstance(size[0], list | tuple):
        size = tuple(size[0])
    sizes = tuple(int(n) for n in size)
    if sizes and min(sizes) < 0:
        raise bad_option("size", "size", sizes, "no negative ones")
    return sizes


@devices.on_the_processor
def zeros(
    *sizes: Any, size: Any = None, dtype: DType = None, requires_grad: bool = False, device: Device = None
) -> Tensor:
    """Zeros of the given shape."""
    return _finish(np.zeros(_size(sizes, size), dtype or DEFAULT), requires_grad, device)


@devices.on_the_processor
def ones(
    *sizes: Any, size: Any = None, dtype: DType = None, requires_grad: bool = False, device: Device = None
) -> Tensor:
    """Ones of the given shape."""
    return _finish(np.ones(_size(sizes, size), dtype or DEFAULT), requires_grad, device)


@devices.on_the_processor
def empty(
    *sizes: Any, size: Any = None, dtype: DType = None, requires_grad: bool = False, device: Device = None
) -> Tensor:
    """A tensor of the given shape whose values are not set."""
    return _finish(np.empty(_size(sizes, size), dtype or DEFAULT), requires_grad, device)


@devices.on_the_processor
def full(
    size: Any, fill_value: Any, *, dtype: DType = None, requires_grad: bool = False, device: Device = None
) -> Tensor:
    """`fill_value` in the given shape."""
    kind = _to_array(fill_value, dtype).dtype
    shape = (size,) if isinstance(size, int) else _size((size,))
    return _finish(np.full(shape, fill_value, kind), requires_grad, device)


def _array(x: Array) -> Array:
    return x.array if isinstance(x, Tensor) else x


@devices.on_the_processor
def zeros_like(input: Array, *, dtype: DType = None, requires_grad: bool = False, device: Device = None) -> Tensor:
    """Zeros with the shape and dtype of `input`."""
    return _finish(for_each_example(np.zeros(input.shape, dtype or input.dtype), _array(input)), requires_grad, device)


@devices.on_the_processor
def ones_like(input: Array, *, dtype: DType = None, requires_grad: bool = False, device: Device = None) -> Tensor:
    """Ones with the shape and dtype of `input`."""
    return _finish(for_each_example(np.ones(input.shape, dtype or input.dtype), _array(input)), requires_grad, device)


@devices.on_the_processor
def full_like(
    input: Array, fill_value: Any, *, dtype: DType = None, requires_grad: bool = False, device: Device = None
) -> Tensor:
    """`fill_value` with the shape and dtype of `input`."""
    filled = np.full(input.shape, fill_value, dtype or input.dtype)
    return _finish(for_each_example(filled, _array(input)), requires_grad, device)


@devices.on_the_processor
def empty_like(input: Array, *, dtype: DType = None, requires_grad: bool = False, device: Device = None) -> Tensor:
    """A tensor with the shape and dtype of `input` whose values are not set."""
    return _finish(for_each_example(np.empty(input.shape, dtype or input.dtype), _array(input)), requires_grad, device)


@devices.on_the_processor
def arange(
    start: Any,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: DType = None,
    requires_grad: bool = False,
    device: Device = None,
) -> Tensor:
    """Numbers from `start` to `end`, without `end`; int64 if all are integers."""
    if end is None:
        start, end = 0, start
    if dtype is not None and np.dtype(dtype).kind in "iu":  # start, end and step are truncated first
        start, end, step = int(start), int(end), int(step)
    if not step or (end - start) * step < 0:
        raise bad_option("arange", "step", step, f"a step that leads from {start} to {end}")
    whole = all(isinstance(n, int | np.integer) for n in (start, end, step))
    return _finish(np.arange(start, end, step, dtype=dtype or (np.int64 if whole else DEFAULT)), requires_grad, device)


@devices.on_the_processor
def linspace(
    start: float, end: float, steps: int, *, dtype: DType = None, requires_grad: bool = False, device: Device = None
) -> Tensor:
    """`steps` numbers from `start` to `end`, both included, evenly spaced; integers are rounded towards 0."""
    wanted = np.dtype(dtype or (DEFAULT if complex_dtype((start, end)) is None else _complex_default()))
    if steps < 0:
        raise bad_option("linspace", "steps", steps, "0 or more")
    if wanted.kind in "iu":
        return _finish(_whole_steps(int(start), int(end), steps, wanted), requires_grad, device)
    return _finish(np.linspace(_number(start), _number(end), steps, dtype=wanted), requires_grad, device)


def _number(given: float | Tensor) -> complex:
    """Return a bound as a Python number: a tensor's dtype would round the other bound."""
    return complex(found) if isinstance(found := np.asarray(given).item(), complex) else float(found)


@devices.on_the_processor
def logspace(
    start: float,
    end: float,
    steps: int,
    base: float = 10.0,
    *,
    dtype: DType = None,
    requires_grad: bool = False,
    device: Device = None,
) -> Tensor:
    """`base` to the power of `steps` numbers from `start` to `end`, both included, evenly spaced."""
    wanted = np.dtype(dtype or (DEFAULT if complex_dtype((start, end, base)) is None else _complex_default()))
    if steps < 0:
        raise bad_option("logspace", "steps", steps, "0 or more")
    if wanted.kind in "iu":
        start, end = int(start), int(end)
    exponents = np.linspace(_number(start), _number(end), steps)
    numbers = np.power(np.asarray(base, np.result_type(base, 1.0)), exponents)
    return _finish(numbers.astype(wanted), requires_grad, device)


@devices.on_the_processor
def empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: DType = None,
    requires_grad: bool = False,
    device: Device = None,
) -> Tensor:
    """A tensor whose values are not set, and whose elements lie `stride` apart."""
    shape, steps = _size((size,)), tuple(int(step) for step in stride)
    last = sum((n - 1) * step for n, step in zip(shape, steps, strict=True)) if 0 not in shape else -1
    memory = np.empty(last + 1, dtype or DEFAULT)
    strides = tuple(step * memory.itemsize for step in steps)
    return _finish(np.lib.stride_tricks.as_strided(memory, shape, strides), requires_grad, device)


@devices.on_the_processor
def empty_permuted(
    size: Sequence[int],
    physical_layout: Sequence[int],
    *,
    dtype: DType = None,
    requires_grad: bool = False,
    device: Device = None,
) -> Tensor:
    """A tensor whose values are not set; `physical_layout` lists its dimensions, the outermost in memory first."""
    shape, order = _size((size,)), [int(axis) for axis in physical_layout]
    if sorted(order) != list(range(len(shape))):
        raise bad_option("empty_permuted", "physical_layout", order, f"each dimension from 0 to {len(shape) - 1} once")
    memory = np.empty([shape[axis] for axis in order], dtype or DEFAULT)
    return _finish(memory.transpose(np.argsort(order)), requires_grad, device)


@devices.on_the_processor
def scalar_tensor(s: complex, *, dtype: DType = None, requires_grad: bool = False, device: Device = None) -> Tensor:
    """A number as a tensor without dimensions, in the default dtype."""
    return _finish(np.asarray(s, dtype or DEFAULT), requires_grad, device)


def _whole_steps(start: int, end: int, steps: int, dtype: np.dtype) -> Array:
    """Count from both ends, as PyTorch does: `end` is met exactly, and both halves round towards 0."""
    width = (end - start) / (steps - 1) if steps > 1 else 0.0
    place = np.arange(steps)
    first = place < max(steps // 2, 1)
    return np.trunc(np.where(first, start + width * place, end - width * (steps - 1 - place))).astype(dtype)


@devices.on_the_processor
def eye(
    n: int, m: int | None = None, *, dtype: DType = None, requires_grad: bool = False, device: Device = None
) -> Tensor:
    """The identity matrix."""
    _size((n, n if m is None else m))
    return _finish(np.eye(n, m, dtype=dtype or DEFAULT), requires_grad, device)
