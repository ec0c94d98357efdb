"""Running scripts that were written for PyTorch: ``as_torch()``, and the names they use beside tensors and layers."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Any

import numpy as np

from glassgrad import amp, creation, devices, errors, provenance, random, serialization
from glassgrad.mode import no_grad
from glassgrad.tensor import Tensor

# --- glassgrad under the name torch ---------------------------------------------------------------


class _Loader(importlib.abc.Loader):
    """Gives `torch.a.b` the module `glassgrad.a.b`, as it is."""

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        # The import system takes what stands in sys.modules when this returns.
        sys.modules[module.__name__] = _twin(module.__name__)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds everything below the name torch."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != "torch" and not fullname.startswith("torch."):
            return None
        return importlib.machinery.ModuleSpec(fullname, _Loader(), is_package=True)


def _twin(name: str) -> Any:
    """Return what `torch...` stands for: a module, or a namespace inside of one."""
    own = "glassgrad" + name.removeprefix("torch")
    try:
        return importlib.import_module(own)
    except ModuleNotFoundError as error:
        if not own.startswith(str(error.name)):
            raise
        parent, _, last = own.rpartition(".")
        try:
            return getattr(_twin("torch" + parent.removeprefix("glassgrad")), last)
        except AttributeError as missing:
            raise ImportError(str(missing)) from None


class Stand:
    """What `as_torch` returns: `undo()` takes the name away again. Also a context manager."""

    def __init__(self) -> None:
        self._finder = _Finder()
        self._before = _torch_modules()
        for name in self._before:
            del sys.modules[name]
        sys.meta_path.insert(0, self._finder)
        sys.modules["torch"] = importlib.import_module("glassgrad")

    def undo(self) -> None:
        """Give the name `torch` back to whatever had it; a second call does nothing."""
        if self._finder not in sys.meta_path:
            return
        sys.meta_path.remove(self._finder)
        for name in _torch_modules():
            del sys.modules[name]
        sys.modules.update(self._before)

    def __enter__(self) -> Any:
        return sys.modules["torch"]

    def __exit__(self, *_exception: object) -> None:
        self.undo()


def _torch_modules() -> dict[str, ModuleType]:
    return {name: module for name, module in sys.modules.items() if name == "torch" or name.startswith("torch.")}


def as_torch() -> Stand:
    """Let ``import torch`` and everything below it give glassgrad, in this process, until `undo()`.

    PyTorch itself need not be installed; if it is loaded already, modules that have it keep it.

    Example:
        >>> import glassgrad as gg
        >>> with gg.compat.as_torch():
        ...     import torch
        ...     from torch.nn import functional as F
        ...     print(F.relu(torch.tensor([-1.0, 2.0])))
        tensor([0., 2.])
    """
    return Stand()


# --- names beside tensors and layers --------------------------------------------------------------


class inference_mode(no_grad):  # noqa: N801 - PyTorch's name
    """Ops inside are not recorded, as in `no_grad`."""

    def __new__(cls, mode: Any = True) -> Any:
        return super().__new__(cls, mode) if callable(mode) else super().__new__(cls)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.recording = not mode


def is_tensor(obj: Any) -> bool:
    """Whether `obj` is a Tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Any) -> bool:
    """Whether the dtype is one of floating-point numbers."""
    return bool(input.dtype.kind == "f")


def numel(input: Any) -> int:
    """Number of elements."""
    return int(input.numel())


def get_default_dtype() -> np.dtype[Any]:
    """Return the dtype of new tensors: float32."""
    return creation.DEFAULT


def set_default_dtype(d: Any) -> None:
    """Accept float32, which it is; raise on others."""
    if np.dtype(d) != creation.DEFAULT:
        raise errors.DEFAULT_DTYPE(given=np.dtype(d), where=provenance.here())


set_default_tensor_type = set_default_dtype


def initial_seed() -> int:
    """Return the seed of the default generator."""
    return random.default_generator.initial_seed()


def seed() -> int:
    """Seed the default generator from the system; return the seed."""
    drawn = int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(1))
    random.manual_seed(drawn)
    return drawn


def get_rng_state() -> dict[str, Any]:
    """Return the state of the default generator."""
    return random.default_generator.get_state()


def set_rng_state(new_state: dict[str, Any]) -> None:
    """Go back to a state from `get_rng_state`."""
    random.default_generator.set_state(new_state)


def set_printoptions(
    precision: int | None = None, threshold: float | None = None, edgeitems: int | None = None,
    linewidth: int | None = None, profile: str | None = None, sci_mode: bool | None = None,
) -> None:  # fmt: skip
    """Set how numbers are printed: NumPy's options of the same names."""
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    np.set_printoptions(**options, suppress=None if sci_mode is None else not sci_mode)


def set_default_device(device: Any) -> None:
    """Accept the cpu, which it is; raise on others."""
    devices.check(device)


def get_default_device() -> devices.device:
    """Return the cpu."""
    return devices.device("cpu")


def get_num_threads() -> int:
    """Return how many cores this process may use; a compiled step takes as many of them as are worth it."""
    from glassgrad.compile.runtime import available_cores

    return available_cores()


def typename(obj: Any) -> str:
    """Return the full name of the type of an object."""
    kind = obj if isinstance(obj, type) else type(obj)
    return f"{kind.__module__}.{kind.__qualname__}"


def _accepted(*_args: Any, **_kwargs: Any) -> None:
    """Do nothing: it tunes PyTorch's own kernels."""


def _typed(name: str, dtype: Any) -> Any:
    def make(*data: Any) -> Tensor:
        if len(data) == 1 and not isinstance(data[0], int):
            return creation.tensor(data[0], dtype=dtype)
        return creation.zeros(*data, dtype=dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"A tensor of {np.dtype(dtype)} from data, or zeros of a shape."
    return make


class _NoDtype:
    """A dtype that PyTorch has and NumPy has not: it can be named and compared, not used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"glassgrad.{self._name}"

    @property
    def dtype(self) -> Any:
        raise errors.NO_SUCH_DTYPE(given=self._name, where=provenance.here(2))


NAMES: dict[str, Any] = {
    "autocast": amp.autocast, "save": serialization.save, "load": serialization.load,
    "inference_mode": inference_mode, "is_tensor": is_tensor,
    "is_floating_point": is_floating_point, "numel": numel, "get_default_dtype": get_default_dtype,
    "set_default_dtype": set_default_dtype, "set_default_tensor_type": set_default_tensor_type,
    "initial_seed": initial_seed, "seed": seed, "get_rng_state": get_rng_state, "set_rng_state": set_rng_state,
    "set_default_device": set_default_device, "get_default_device": get_default_device, "typename": typename,
    "get_num_threads": get_num_threads, "memory_format": str, "cfloat": np.dtype(np.complex64),
    "set_printoptions": set_printoptions, "Size": tuple, "dtype": np.dtype, "finfo": np.finfo, "iinfo": np.iinfo,
    "result_type": np.result_type, "promote_types": np.promote_types, "can_cast": np.can_cast,
    "complex64": np.dtype(np.complex64), "complex128": np.dtype(np.complex128), "bfloat16": _NoDtype("bfloat16"),
    **dict.fromkeys(
        ("set_num_threads", "set_num_interop_threads", "set_float32_matmul_precision", "use_deterministic_algorithms"),
        _accepted,
    ),
    **{
        name: _typed(name, dtype)
        for name, dtype in (
            ("FloatTensor", np.float32), ("DoubleTensor", np.float64), ("HalfTensor", np.float16),
            ("LongTensor", np.int64), ("IntTensor", np.int32), ("ByteTensor", np.uint8), ("BoolTensor", np.bool_),
        )
    },
    "contiguous_format": "contiguous", "channels_last": "contiguous", "preserve_format": "contiguous",
    "strided": "strided",
}  # fmt: skip

# What PyTorch has and this library has not, and what to use in its place.
INSTEAD = {
    "jit": "use glassgrad.compile, which takes functions and models as they are.",
    "distributed": "one process computes here.",
    "multiprocessing": "DataLoader(num_workers=...) loads in other processes.",
    "lu": "linalg.solve, linalg.inv and linalg.slogdet factorise by themselves.",
    "matrix_exp": "scipy.linalg.expm on .detach().numpy(), or a custom_vjp around it.",
    "testing": "compare arrays: numpy.testing.assert_allclose(a.detach().numpy(), b.detach().numpy()).",
    "export": "glassgrad.compile traces functions as they are; its .graph and .source are the program.",
    "compiler": "glassgrad.compile needs no switches; its results have .graph, .source, .stats and .retraces.",
    "library": "autograd.Function and custom_vjp make ops of your own.",
    "storage": "the memory of a tensor is a NumPy array: .numpy().",
    "sparse_coo_tensor": "tensors are dense; index_add and segment_sum serve most uses.",
    "ao": "weights stay in floating point.",
    "package": "save weights with glassgrad.save; code is a file of yours.",
    "version": "glassgrad.__version__ is this library's.",
    "sparse": "tensors are dense; index_add and segment_sum serve most uses.",
    "quantization": "weights stay in floating point.",
    "onnx": "save weights with glassgrad.save, which PyTorch reads through safetensors.",
    "hub": "models are files of yours; weights load through safetensors.",
    "fx": "compiled.graph is the traced program of a compiled function.",
    "profiler": "compiled.stats has the operations and bytes of a compiled function.",
}


def main(arguments: list[str] | None = None) -> None:
    """Run a script with glassgrad under the name torch: ``python -m glassgrad.compat SCRIPT ARGUMENTS``."""
    import runpy

    given = sys.argv[1:] if arguments is None else arguments
    if not given:
        raise SystemExit("usage: python -m glassgrad.compat SCRIPT [ARGUMENTS ...]")
    before = sys.argv
    sys.argv = given
    try:
        with as_torch():
            runpy.run_path(given[0], run_name="__main__")
    finally:
        sys.argv = before


if __name__ == "__main__":
    main()
