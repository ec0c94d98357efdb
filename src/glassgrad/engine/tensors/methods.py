"""Methods of `Tensor` that convert, describe and make: `.float()`, `.to(...)`, `.contiguous()`, `.new_zeros(...)`.

PyTorch code often calls them. Conversions are differentiable; the only device is the cpu.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.base.tables import pairs, words
from glassgrad.engine import random
from glassgrad.engine.random import Generator
from glassgrad.engine.reports import absent
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.tensors import creation
from glassgrad.engine.tensors import devices as _device
from glassgrad.engine.tensors.devices import Device, DType
from glassgrad.ops import narrow
from glassgrad.ops.axes import concrete
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.names import PUBLIC
from glassgrad.ops.shape import astype, clone

# --- conversions ----------------------------------------------------------------------------------

_DTYPES = {
    "float": np.float32,
    "double": np.float64,
    "half": np.float16,
    "long": np.int64,
    "int": np.int32,
    "short": np.int16,
    "char": np.int8,
    "byte": np.uint8,
    "bool": np.bool_,
    "cfloat": np.complex64,
    "cdouble": np.complex128,
}


def _conversion(name: str, dtype: DType) -> Callable[..., Tensor]:
    wanted = np.dtype(dtype)

    def convert(x: Tensor, memory_format: Any = None) -> Tensor:
        y: Tensor = astype(x, wanted)
        return y

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"The tensor with dtype {wanted}; itself if it has it already."
    return convert


def to(
    x: Tensor,
    *targets: Any,
    dtype: DType = None,
    device: Device = None,
    copy: bool = False,
    **_hints: object,
) -> Tensor:
    """The tensor with another dtype, on a device (only the cpu exists), or with the dtype of another tensor.

    Example:
        >>> import glassgrad as gg
        >>> gg.tensor([1, 2]).to(gg.float64).dtype
        dtype('float64')
    """
    dtype = _device.wanted_dtype(targets, dtype, device)
    y = x if dtype is None else astype(x, dtype)
    result: Tensor = clone(x) if copy and y is x else y
    return result


def cpu(x: Tensor) -> Tensor:
    """The tensor itself, which is on the cpu."""
    return x


def bfloat16(x: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor in bfloat16, rounded to the nearest; itself if it already has that dtype."""
    y: Tensor = astype(x, narrow.bfloat16())
    return y


def cuda(x: Tensor, *_args: object, **_kwargs: object) -> Tensor:
    """Raise: there is only the cpu."""
    raise errors.NO_SUCH_DEVICE(given="cuda", where=provenance.here())


def type_(x: Tensor, dtype: DType = None, non_blocking: bool = False) -> Any:
    """The tensor in another dtype, or without `dtype`, PyTorch's name of its dtype, such as "torch.FloatTensor"."""
    if dtype is None:
        return _KINDS_OF_TENSORS.get(x.dtype.name, f"torch.{x.dtype.name.capitalize()}Tensor")
    if isinstance(dtype, str) and dtype.endswith("Tensor"):
        names = {name: kind for kind, name in _KINDS_OF_TENSORS.items()}
        dtype = names.get(f"torch.{dtype.rpartition('.')[2]}", dtype)
    y: Tensor = astype(x, np.dtype(getattr(dtype, "dtype", dtype)))
    return y


_KINDS_OF_TENSORS = pairs(
    """
    float32=torch.FloatTensor float64=torch.DoubleTensor float16=torch.HalfTensor int64=torch.LongTensor
    int32=torch.IntTensor int16=torch.ShortTensor int8=torch.CharTensor uint8=torch.ByteTensor
    bool=torch.BoolTensor bfloat16=torch.BFloat16Tensor
    """
)


def to_device(x: Tensor, device: Device, /, *, stream: Any = None) -> Tensor:
    """The tensor on a device, which can only be the cpu: the array API's name for `to`."""
    if stream is not None:
        expected = "None: the cpu has no streams"
        raise bad_option("to_device", "stream", stream, expected)
    return to(x, device=device)


def to_sparse(x: Tensor, sparse_dim: int | None = None) -> Any:
    """The elements that are not 0 as a sparse matrix, see `glassgrad.sparse`: all its dimensions are sparse ones."""
    if sparse_dim is not None and sparse_dim != x.ndim:
        where = provenance.here()
        raise errors.BAD_OPTION(owner="to_sparse", name="sparse_dim", given=sparse_dim, expected=x.ndim, where=where)
    return importlib.import_module("glassgrad.sparse").from_dense(x)


def to_dense(x: Tensor) -> Tensor:
    """The tensor itself, which is dense."""
    return x


def type_as(x: Tensor, other: Array) -> Tensor:
    """The tensor with the dtype of `other`."""
    y: Tensor = astype(x, other.dtype)
    return y


@_device.on_the_processor
def contiguous(x: Tensor) -> Tensor:
    """The tensor in contiguous memory: itself, or a copy."""
    y: Tensor = x if is_contiguous(x) else clone(x)
    return y


def where(x: Tensor, condition: Array, other: Array) -> Array:
    """The elements of the tensor where `condition` is true, else those of `other`."""
    return PUBLIC["where"](condition, x, other)


# --- properties -----------------------------------------------------------------------------------


def is_contiguous(x: Tensor) -> bool:
    """Tell whether the elements are in memory in order, without gaps."""
    if isinstance(x.array, np.ndarray):
        return bool(x.array.flags.c_contiguous)
    lies_in_order = getattr(x.array, "lies_in_order", None)  # a Symbol's
    return lies_in_order is None or bool(lies_in_order())


def stride(x: Tensor, dim: int | None = None) -> Any:
    """Return the number of elements between neighbours along each dimension, or along one."""
    steps = tuple(step // x.dtype.itemsize for step in concrete(x, "stride").strides)
    return steps if dim is None else steps[dim]


def dim_order(x: Tensor) -> tuple[int, ...]:
    """Return the dimensions in the order in which they lie in memory, the outermost first."""
    steps = stride(x)
    return tuple(sorted(range(x.ndim), key=lambda axis: -steps[axis]))


def data_ptr(x: Tensor) -> int:
    """The address of the first element."""
    return int(concrete(x, "data_ptr").ctypes.data)


def is_floating_point(x: Tensor) -> bool:
    """Tell whether the dtype is a floating-point type."""
    return bool(x.dtype.kind in "fV")


def is_complex(x: Tensor) -> bool:
    """Tell whether the dtype is complex."""
    return bool(x.dtype.kind == "c")


def pin_memory(x: Tensor, device: Device = None) -> Tensor:
    """The tensor itself; nothing has to be pinned."""
    return x


def is_pinned(x: Tensor, device: Device = None) -> bool:
    """False: there is no other device to copy to."""
    return False


def share_memory_(x: Tensor) -> Tensor:
    """Move the values, in place, into memory that this process shares with those it starts; return the tensor.

    What one process writes to them, all see. Tensors that were made as views of this one before keep the memory
    before; share it first. The memory is freed with the last process that has it.

    Raises:
        AutogradError: processes cannot share memory on this system (Windows).
        KindError: inside a transformation or a traced step, where there are no values.

    Example:
        >>> import glassgrad as gg
        >>> x = gg.zeros(2).share_memory_()
        >>> x.is_shared()
        True
    """
    from glassgrad.engine.memory import shared  # it imports much of multiprocessing

    shared.move([x])
    return x


def is_shared(x: Tensor) -> bool:
    """Tell whether the values lie in memory that processes share."""
    from glassgrad.engine.memory import shared

    return shared.owner_of(x.array) is not None


def is_nonzero(x: Tensor) -> bool:
    """Tell whether the only element is not zero."""
    return bool(x.item())


def is_signed(x: Tensor) -> bool:
    """Tell whether the dtype has negative numbers."""
    return bool(x.dtype.kind in "ifcV")


def get_device(x: Tensor) -> int:
    """-1, as for every tensor on the CPU."""
    return -1


def multinomial(
    x: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Indices drawn with the weights in the last dimension; see `glassgrad.multinomial`."""
    return random.multinomial(x, num_samples, replacement, generator=generator)


def bernoulli(x: Tensor, *, generator: Generator | None = None) -> Tensor:
    """1 with the probability in each element, else 0; see `glassgrad.bernoulli`."""
    return random.bernoulli(x, generator=generator)


def is_same_size(x: Tensor, other: Tensor) -> bool:
    """Tell whether two tensors have the same shape."""
    return x.shape == other.shape


# --- making others like it ------------------------------------------------------------------------


@_device.on_the_processor
def new_tensor(x: Tensor, data: Any, dtype: DType = None, requires_grad: bool = False, device: Device = None) -> Tensor:
    """A tensor of `data` with the dtype of x."""
    return creation.tensor(data, dtype or x.dtype, requires_grad, device)


def new(x: Tensor, *size: Any, device: Device = None) -> Tensor:
    """PyTorch's older spelling: uninitialised values of the given sizes, or the given data, with the dtype of x."""
    if len(size) == 1 and not isinstance(size[0], int):
        (data,) = size
        return new_empty(x, data.shape) if isinstance(data, Tensor) else new_tensor(x, data, device=device)
    return new_empty(x, *size or (0,), device=device)


@_device.on_the_processor
def new_zeros(x: Tensor, *size: Any, dtype: DType = None, requires_grad: bool = False, device: Device = None) -> Tensor:
    """Zeros with the dtype of x."""
    return creation.zeros(*size, dtype=dtype or x.dtype, requires_grad=requires_grad, device=device)


@_device.on_the_processor
def new_ones(x: Tensor, *size: Any, dtype: DType = None, requires_grad: bool = False, device: Device = None) -> Tensor:
    """Ones with the dtype of x."""
    return creation.ones(*size, dtype=dtype or x.dtype, requires_grad=requires_grad, device=device)


@_device.on_the_processor
def new_empty(x: Tensor, *size: Any, dtype: DType = None, requires_grad: bool = False, device: Device = None) -> Tensor:
    """A tensor with the dtype of x whose values are not set."""
    return creation.empty(*size, dtype=dtype or x.dtype, requires_grad=requires_grad, device=device)


@_device.on_the_processor
def new_full(
    x: Tensor,
    size: Any,
    fill_value: Any,
    dtype: DType = None,
    requires_grad: bool = False,
    device: Device = None,
) -> Tensor:
    """`fill_value` in the given shape, with the dtype of x."""
    return creation.full(size, fill_value, dtype=dtype or x.dtype, requires_grad=requires_grad, device=device)


@_device.on_the_processor
def new_empty_strided(
    x: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    dtype: DType = None,
    requires_grad: bool = False,
    device: Device = None,
) -> Tensor:
    """A tensor with the dtype of x whose values are not set, and whose elements lie `stride` apart."""
    return creation.empty_strided(size, stride, dtype=dtype or x.dtype, requires_grad=requires_grad, device=device)


# --- attaching ------------------------------------------------------------------------------------

# Functions of this file that become methods.
_METHODS = words(
    """
    where to to_device to_sparse to_dense cpu cuda type_as contiguous is_contiguous stride data_ptr
    is_floating_point is_complex is_same_size is_nonzero is_signed is_pinned pin_memory get_device bfloat16
    is_shared share_memory_ multinomial bernoulli new new_tensor new_zeros new_ones new_empty new_full
    new_empty_strided dim_order
    """
)


def conjugate_transpose(x: Tensor) -> Tensor:
    """The conjugate transpose of a matrix; a number itself."""
    if x.ndim not in {0, 2}:
        raise bad_option("H", "number of dimensions", x.ndim, "2, or 0; see .mH")
    turned: Tensor = PUBLIC["adjoint"](x) if x.ndim else PUBLIC["conj"](x)
    return turned


_CPU: _device.device = _device.device("cpu")
_PROPERTIES: dict[str, Callable[[Tensor], Any]] = {
    "device": lambda _x: _CPU,
    **dict.fromkeys(
        words("""
        is_cuda is_sparse is_sparse_csr is_quantized is_nested is_meta is_mkldnn is_mps is_ipu is_maia is_mtia
        is_vulkan is_xla is_xpu
        """),
        lambda _x: False,
    ),
    "layout": lambda _x: "strided",
    "H": conjugate_transpose,
    "is_cpu": lambda _x: True,
    "retains_grad": lambda x: x._extra is not None and "retain" in x._extra,
    "itemsize": lambda x: x.dtype.itemsize,
    "real": lambda x: PUBLIC["real"](x) if x.dtype.kind == "c" else x,
    "imag": PUBLIC["imag"],
}


# Methods under other names; `type` is also a name of Python's.
_OTHER_NAMES: dict[str, Callable[..., Any]] = {
    "is_conj": is_pinned,
    "is_neg": is_pinned,
    "is_inference": is_pinned,
    "is_distributed": is_pinned,
    "ndimension": Tensor.dim,
    "nelement": Tensor.numel,
    "to_sparse_coo": to_sparse,
    "type": type_,
}


def _attach() -> None:
    for name in _METHODS:
        setattr(Tensor, name, globals()[name])
    for name, dtype in _DTYPES.items():
        setattr(Tensor, name, _conversion(name, dtype))
    for name, read in _PROPERTIES.items():
        setattr(Tensor, name, property(read))
    for name, function in _OTHER_NAMES.items():
        setattr(Tensor, name, function)
    absent.attach(Tensor)


_attach()
