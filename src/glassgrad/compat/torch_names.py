"""Small modules that PyTorch programs mention: switches of other devices and of its compiler, and helpers."""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import repeat
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from glassgrad import amp, errors
from glassgrad.base import provenance
from glassgrad.base.tables import words
from glassgrad.compat import functions, masked, named_only
from glassgrad.compat.namespaces import HOMES, Namespace, no, nothing, same
from glassgrad.engine import random, tree
from glassgrad.engine.random import Generator
from glassgrad.engine.tensor import Size, Tensor
from glassgrad.engine.tensors import creation, devices
from glassgrad.engine.tensors.devices import Device, DType
from glassgrad.ops.axes import concrete
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.names import PUBLIC
from glassgrad.utils import processes

# `torch.__version__`, high enough that programs which compare it take their newer branches.
VERSION = "2.5.0+glassgrad"


def _device(name: str, **names: Any) -> Namespace:
    """Return the namespace of an absent device type, with additional names."""
    idle = dict.fromkeys(words("synchronize empty_cache manual_seed manual_seed_all seed"), nothing)
    known = {"is_available": no, "is_built": no, "device_count": lambda *_: 0, **idle, **names}
    return Namespace(name, known, otherwise="there is no GPU; is_available() is False.")


def current_accelerator(check_available: bool = False) -> None:
    """Return None: there is only the CPU."""


def _no_gpu(*_args: object) -> None:
    """Raise: there is no GPU."""
    raise errors.NO_SUCH_DEVICE(given="cuda", where=provenance.here())


def _no_tensor(name: str) -> type:
    """Return a tensor type of the GPU, which has no instances: programs ask `isinstance`."""
    return type(name, (), {"__new__": lambda *_args, **_options: _no_gpu(), "__module__": "glassgrad.cuda"})


_TYPES = words("FloatTensor DoubleTensor HalfTensor LongTensor IntTensor ShortTensor CharTensor ByteTensor BoolTensor")

cuda = _device(
    "cuda",
    **{name: _no_tensor(name) for name in _TYPES},
    _initialized=False,
    amp=amp,
    is_bf16_supported=no,
    is_initialized=no,
    **dict.fromkeys(("current_device", "set_device", "get_device_name", "get_device_properties"), _no_gpu),
)


cpu = _device("cpu", is_available=lambda: True, device_count=lambda *_: 1)


@contextmanager
def _sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[None]:
    yield  # attention has one implementation here


# Switches for hardware that is not used here: they can be read and set, without effect.
backends = Namespace(
    "backends",
    {
        "cuda": SimpleNamespace(
            matmul=SimpleNamespace(allow_tf32=False),
            is_built=no,
            sdp_kernel=_sdp_kernel,
            enable_flash_sdp=nothing,
            enable_math_sdp=nothing,
            enable_mem_efficient_sdp=nothing,
            flash_sdp_enabled=no,
            mem_efficient_sdp_enabled=no,
        ),
        "cudnn": SimpleNamespace(
            deterministic=True, benchmark=False, enabled=False, allow_tf32=False, is_available=no, version=nothing
        ),
        "mps": SimpleNamespace(is_available=no, is_built=no),
        "mkldnn": SimpleNamespace(is_available=no),
        "openmp": SimpleNamespace(is_available=no),
    },
)

# --- compilers ------------------------------------------------------------------------------------


class TracerWarning(Warning):
    """The category of PyTorch's tracer warnings, which are never issued here."""


_UNCHANGED = words(
    "script trace trace_module ignore unused export script_method freeze optimize_for_inference interface"
)
jit = Namespace(
    "jit",
    {
        **dict.fromkeys(_UNCHANGED, same),
        "is_scripting": no,
        "is_tracing": no,
        "annotate": lambda _kind, value: value,
        "Final": Final,
        "TracerWarning": TracerWarning,
    },
)
compiler = Namespace(
    "compiler",
    {
        **dict.fromkeys(words("disable allow_in_graph assume_constant_result"), same),
        **dict.fromkeys(words("is_compiling is_dynamo_compiling"), no),
        **dict.fromkeys(words("reset cudagraph_mark_step_begin"), nothing),
    },
)

# --- attention ------------------------------------------------------------------------------------


class SDPBackend(enum.Enum):
    """Names of PyTorch's implementations of attention; there is only one here."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3


@contextmanager
def sdpa_kernel(backends: Any = None, set_priority: bool = False) -> Iterator[None]:
    """Change nothing: attention has one implementation here."""
    yield


# --- trees ----------------------------------------------------------------------------------------


def tree_flatten(value: Array, is_leaf: Any = None) -> tuple[list[Any], Any]:
    """Return the leaves and the structure of nested containers."""
    return tree.flatten(value)


def tree_unflatten(leaves: Iterable[Any], treespec: Any) -> Any:
    """Rebuild nested containers from leaves."""
    return tree.unflatten(treespec, leaves)


def tree_leaves(value: Array, is_leaf: Any = None) -> list[Any]:
    """Return the leaves of nested containers."""
    return tree.flatten(value)[0]


def tree_map_only(kind: Any, function: Callable[[Any], Any], value: Array) -> Any:
    """Apply a function to the leaves of a type."""
    return tree.tree_map(lambda leaf: function(leaf) if isinstance(leaf, kind) else leaf, value)


def tree_map(function: Callable[..., Any], value: Array, *rests: Any) -> Any:
    """Apply a function to each leaf."""
    return tree.tree_map(function, value, *rests)


# --- nn.modules.utils -----------------------------------------------------------------------------


def _times(count: int) -> Callable[[Any], tuple[Any, ...]]:
    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) and not isinstance(x, str) else tuple(repeat(x, count))

    return parse


def _reverse_repeat_tuple(values: Iterable[Array], times: int) -> tuple[Any, ...]:
    return tuple(value for value in reversed(list(values)) for _ in range(times))


def _assert(condition: Array, message: str = "") -> None:
    """Raise an AssertionError with the message unless the condition holds."""
    if not condition:
        raise AssertionError(message)


# --- small functions ------------------------------------------------------------------------------


def _sides(row: int, offset: int, col: int) -> tuple[int, int, int]:
    if row < 0 or col < 0:
        raise bad_option("a triangle", "row, col", (row, col), "no negative sizes")
    return row, offset, col


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: DType = np.int64, device: Device = None) -> Tensor:
    """Indices of the lower triangle of a matrix, (2, n): rows and columns."""
    return creation.tensor(np.stack(np.tril_indices(*_sides(row, offset, col))), dtype, device=device)


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: DType = np.int64, device: Device = None) -> Tensor:
    """Indices of the upper triangle of a matrix, (2, n): rows and columns."""
    return creation.tensor(np.stack(np.triu_indices(*_sides(row, offset, col))), dtype, device=device)


def cartesian_prod(*tensors: Any) -> Array:
    """The Cartesian product of vectors, (n, number of vectors)."""
    if len(tensors) == 1:
        return tensors[0]
    grids = PUBLIC["meshgrid"](*tensors, indexing="ij")
    return PUBLIC["stack"]([grid.flatten() for grid in grids], -1)


def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Array:
    """All combinations of `r` elements of a vector, in order, (n, r)."""
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = np.asarray(list(choose(range(input.shape[0]), r)), np.int64).reshape(-1, r)
    return input[creation.tensor(places)]


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that arrays of these shapes broadcast to."""
    return Size(np.broadcast_shapes(*((one,) if isinstance(one, int) else tuple(one) for one in shapes)))


def detach(input: Array) -> Tensor:
    """Return the same values, detached."""
    detached: Tensor = input.detach()
    return detached


def fill(input: Array, value: Array) -> Tensor:
    """Return a tensor of the same shape and dtype that is `value` everywhere."""
    filled: Tensor = input.clone().fill_(value)
    return filled


def asarray(
    obj: Any,
    *,
    dtype: DType = None,
    device: Device = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Convert data to a tensor; `copy=True` never shares its memory, `copy=False` raises if a copy is needed."""
    result = creation.as_tensor(obj, dtype, device)
    held = obj.array if isinstance(obj, Tensor) else obj
    shared = isinstance(held, np.ndarray) and np.may_share_memory(held, result.array)
    if copy is False and not shared:
        raise bad_option("asarray", "copy", copy, "None or True for data that cannot be shared")
    if copy and shared:
        result = result.clone()
    return result.requires_grad_() if requires_grad else result


def unravel_index(indices: Any, shape: Any) -> tuple[Tensor, ...]:
    """Convert flat indices into an array of this shape to one index tensor per axis; indices wrap around at its end."""
    sizes = (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)
    places = np.asarray(concrete(indices, "unravel_index"))
    if places.dtype.kind not in "iu":
        raise bad_option("unravel_index", "indices", f"dtype {places.dtype}", "integers")
    if min(sizes, default=0) < 0:
        raise bad_option("unravel_index", "shape", sizes, "sizes that are not negative")
    strides = [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    return tuple(
        creation.tensor(places // max(step, 1) % max(size, 1)) for step, size in zip(strides, sizes, strict=True)
    )


def binomial(count: Array, prob: Array, generator: Generator | None = None) -> Tensor:
    """Numbers of successes in `count` trials of probability `prob`, in the dtype of `count`."""
    trials, chance = concrete(count.detach(), "binomial"), concrete(prob.detach(), "binomial")
    return Tensor(np.asarray(random._rng(generator).binomial(trials.astype(np.int64), chance), count.dtype))


def poisson(input: Array, generator: Generator | None = None) -> Tensor:
    """Poisson draws with the rates `input`, in its dtype."""
    rate = concrete(input.detach(), "poisson")
    return Tensor(np.asarray(random._rng(generator).poisson(rate), input.dtype))


# --- TensorBoard ----------------------------------------------------------------------------------


def _assert_close(
    actual: Array,
    expected: Array,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    msg: Any = None,
    **_hints: object,
) -> None:
    """Raise an AssertionError unless two tensors, or containers of them, are close, as `torch.testing` does."""
    for a, b in zip(tree.flatten(actual)[0], tree.flatten(expected)[0], strict=True):
        left, right = (np.asarray(x.detach() if isinstance(x, Tensor) else x) for x in (a, b))
        exact = left.dtype.kind not in "fcV"
        loose = {"float16": (1e-3, 1e-5), "float32": (1.3e-6, 1e-5)}.get(str(left.dtype), (1e-7, 1e-7))
        limits = (0.0, 0.0) if exact else loose
        np.testing.assert_allclose(
            left,
            right,
            rtol=limits[0] if rtol is None else rtol,
            atol=limits[1] if atol is None else atol,
            err_msg=str(msg or ""),
        )


# Names below torch that no module here defines, and the objects that programs get for them.
NAMES: dict[str, Any] = {
    "jit": jit,
    "compiler": compiler,
    "accelerator": _device("accelerator", current_accelerator=current_accelerator),
    "mps": _device("mps"),
    "xpu": _device("xpu"),
    "cuda": cuda,
    "backends": backends,
    "multiprocessing": Namespace("multiprocessing", processes.NAMES, "multiprocessing"),
    "version": Namespace("version", {"__version__": VERSION, "cuda": None, "hip": None, "debug": False}),
    "testing": Namespace("testing", {"assert_close": _assert_close}),
    "types": Namespace("types", {"Device": devices.device, "Number": int | float | bool}),
    "_assert": _assert,
    "tril_indices": tril_indices,
    "triu_indices": triu_indices,
    "cartesian_prod": cartesian_prod,
    "combinations": combinations,
    "broadcast_shapes": broadcast_shapes,
    "poisson": poisson,
    "detach": detach,
    "fill": fill,
    "asarray": asarray,
    "unravel_index": unravel_index,
    "binomial": binomial,
    "is_autocast_enabled": amp.is_autocast_enabled,
    "cpu": cpu,
    "onnx": named_only.onnx,
    "hub": named_only.hub,
    "profiler": named_only.profiler,
    "signal": Namespace("signal", {"windows": Namespace("signal.windows", functions.WINDOWS)}),
    "masked": Namespace("masked", masked.NAMES),
    **functions.NAMES,
}
_UTILS = {
    "_single": _times(1),
    "_pair": _times(2),
    "_triple": _times(3),
    "_quadruple": _times(4),
    "_ntuple": _times,
    "_reverse_repeat_tuple": _reverse_repeat_tuple,
}
_TREES = {
    "tree_flatten": tree_flatten,
    "tree_unflatten": tree_unflatten,
    "tree_leaves": tree_leaves,
    "tree_map": tree_map,
    "tree_map_only": tree_map_only,
}

# Our modules, and PyTorch's modules whose names they hold.
_MODULES = {
    "amp": "cuda.amp. amp.",
    "autograd": "autograd.variable autograd.gradcheck autograd.grad_mode",
    "distributions": "distributions.",
    "engine.public": "tensor",
    "func": "nn.utils.stateless",
    "nn": "nn.modules.container nn.modules.module nn.modules. nn.modules nn.quantized",
    "nn.functional": "nn.grad",
    "nn.parallel": "nn.parallel.data_parallel nn.parallel.distributed",
    "nn.utils": "nn.utils.convert_parameters",
    "nn.utils.norms": "nn.utils.weight_norm nn.utils.spectral_norm",
    "optim": "optim. distributed.optim",
    "utils.data": "utils.data.dataloader utils.data.dataset utils.data.sampler utils.data.distributed "
    "utils.data._utils. utils.data._utils",
}
HOMES.update({path: home for home, paths in _MODULES.items() for path in words(paths)})
HOMES.update(
    {
        "nn.modules.utils": Namespace("nn.modules.utils", _UTILS),
        "nn.attention": Namespace("nn.attention", {"SDPBackend": SDPBackend, "sdpa_kernel": sdpa_kernel}),
        "utils._pytree": Namespace("utils._pytree", _TREES),
        "signal": NAMES["signal"],
        "signal.windows": NAMES["signal"].windows,
        "masked": NAMES["masked"],
        "onnx": named_only.onnx,
        "hub": named_only.hub,
        "distributed.nn": named_only.distributed_nn,
        "profiler": named_only.profiler,
        "multiprocessing.spawn": Namespace("multiprocessing.spawn", processes.NAMES),
        "_dynamo": named_only.dynamo,
        "utils.model_zoo": named_only.model_zoo,
        "autograd.profiler": named_only.profiler,
    }
)

__all__ = ["HOMES", "NAMES", "Namespace"]
