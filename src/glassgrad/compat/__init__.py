"""Run scripts that were written for PyTorch: ``as_torch()``, and PyTorch's names besides tensors and layers."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import multiprocessing.spawn
import sys
from types import ModuleType
from typing import Any

import numpy as np

from glassgrad import amp, errors, serialization
from glassgrad.base import provenance
from glassgrad.compat import (
    children,
    constructors,
    dtypes,
    promotion,
    submodules,
    text,
    torch_names,
    unseen,
    whole_objects,
)
from glassgrad.compat.namespaces import HOMES, Namespace
from glassgrad.engine import random
from glassgrad.engine.mode import no_grad
from glassgrad.engine.tensor import Size, Tensor
from glassgrad.engine.tensors import creation, devices
from glassgrad.engine.tensors.devices import Device
from glassgrad.errors.missing import LENDERS, lister
from glassgrad.ops import examples, narrow
from glassgrad.ops.core import PRIMITIVES
from glassgrad.ops.promotion import use

# --- glassgrad under the name torch ---------------------------------------------------------------


class _Loader(importlib.abc.Loader):
    """Loads `glassgrad.a.b` as `torch.a.b`, and records the module that it replaces."""

    def __init__(self, patched: list[tuple[Any, str, Any]]) -> None:
        self._patched = patched

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        # The import system uses the entry of sys.modules when this returns.
        twin = sys.modules[module.__name__] = find_twin(module.__name__)
        # It also sets the module as an attribute of its parent, where a function may have the same name.
        above, _, name = module.__name__.rpartition(".")
        owner = sys.modules[above]
        before = vars(owner).get(name, _MISSING)
        if isinstance(twin, Namespace) and before is not twin:
            self._patched.append((owner, name, before))
            if callable(before):
                twin.stand_for(before)
        if isinstance(twin, ModuleType) and not hasattr(twin, "__path__"):
            twin.__path__ = []  # a file here may be a package in PyTorch: torch.utils.data.dataset


class _Finder(importlib.abc.MetaPathFinder):
    """Finds everything below the name torch."""

    def __init__(self, patched: list[tuple[Any, str, Any]]) -> None:
        self._patched = patched

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != "torch" and not fullname.startswith("torch."):
            return None
        return importlib.machinery.ModuleSpec(fullname, _Loader(self._patched), is_package=True)


def find_twin(name: str) -> Any:
    """Return the counterpart of `torch...`: a module, or a namespace inside of one."""
    home = home_of(name.removeprefix("torch").lstrip("."))
    if home is not None:
        return home
    own = "glassgrad" + name.removeprefix("torch")
    parent, _, last = own.rpartition(".")
    if parent.removeprefix("glassgrad.") in HOMES:  # the namespace lacks the name: its error says why
        return _inside(parent, last)
    try:
        return importlib.import_module(own)
    except ModuleNotFoundError as error:
        if not own.startswith(str(error.name)):
            raise
        return _inside(parent, last)


def _inside(parent: str, name: str) -> Any:
    try:
        return getattr(find_twin("torch" + parent.removeprefix("glassgrad")), name)
    except AttributeError as missing:
        raise ImportError(str(missing)) from None


def home_of(path: str) -> Any:
    """Return the namespace for a PyTorch module that has another name here; None for all others."""
    home = HOMES.get(path)
    above = path
    while home is None and "." in above:
        above = above.rpartition(".")[0]
        if find_spec_of(path):
            return None
        home = HOMES.get(above + ".")
    return Namespace(path, {}, f"glassgrad.{home}") if isinstance(home, str) else home


def find_spec_of(path: str) -> bool:
    """Tell whether glassgrad has a module under a path."""
    try:
        return importlib.util.find_spec(f"glassgrad.{path}") is not None
    except ModuleNotFoundError:
        return False


class Stand:
    """The result of `as_torch`: `undo()` removes the name again. Also a context manager."""

    def __init__(self) -> None:
        self._patched: list[tuple[Any, str, Any]] = []  # (owner, attribute, original value)
        self._finder = _Finder(self._patched)
        self._before = _torch_modules()
        for name in self._before:
            del sys.modules[name]
        sys.meta_path.insert(0, self._finder)
        sys.modules["torch"] = importlib.import_module("glassgrad")
        for owner, name, value in _patches():
            self._patched.append((owner, name, vars(owner).get(name, _MISSING)))
            setattr(owner, name, value)
        dtypes.attach()
        use(promotion.PyTorchs(), PRIMITIVES.values())
        LENDERS.append(submodules.lend)

    def undo(self) -> None:
        """Restore the name `torch` to its previous module, if any; a second call does nothing."""
        if self._finder not in sys.meta_path:
            return
        sys.meta_path.remove(self._finder)
        dtypes.undo()
        use(None, PRIMITIVES.values())
        text.forget_options()
        LENDERS.remove(submodules.lend)
        for owner, name, before in reversed(self._patched):
            if before is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        for name in _torch_modules():
            del sys.modules[name]
        sys.modules.update(self._before)

    def __enter__(self) -> Any:
        return sys.modules["torch"]

    def __exit__(self, *_exception: object) -> None:
        self.undo()


_MISSING = object()


def _patches() -> list[tuple[Any, str, Any]]:
    """Return the changes while glassgrad stands in for PyTorch: (owner, name, value)."""
    front = importlib.import_module("glassgrad")
    patches: list[tuple[Any, str, Any]] = [
        (front, "__version__", torch_names.VERSION),
        # Programs call `self.__getattr__(name)`, but a class that defines it has slower attribute access.
        (importlib.import_module("glassgrad.nn.module").Module, "__getattr__", _no_attribute),
        (front, "set_printoptions", text.set_printoptions),
        *text.PATCHES,
        *((front, name, function) for name, function in promotion.NAMES.items()),
        *((Tensor, name, function) for name, function in promotion.REFUSING.items()),
        (importlib.import_module("glassgrad.optim.muon").Muon, "in_bfloat16", True),
        (multiprocessing.spawn, "get_preparation_data", children.preparing()),
        *constructors.PATCHES,
        *unseen.PATCHES,
        (front, "save", whole_objects.save),
        (front, "load", whole_objects.load),
        (front, "_C", home_of("_C")),
        (front, "functional", home_of("functional")),
        (front, "overrides", home_of("overrides")),
    ]
    for path, home in HOMES.items():
        parent, _, name = path.rpartition(".")
        if (
            name
            and parent in {"nn", "nn.parallel", "utils", "utils.data", "autograd", "distributed"}
            and (isinstance(home, Namespace) or not find_spec_of(path))
        ):
            owner = importlib.import_module(f"glassgrad.{parent}")
            if isinstance(vars(owner).get(name), ModuleType | None):  # any other attribute also exists in PyTorch
                patches.append((owner, name, home_of(path)))
    return patches


def _no_attribute(module: Any, name: str) -> Any:
    if name in module.__dict__:
        return module.__dict__[name]
    raise AttributeError(f"{type(module).__name__!r} object has no attribute {name!r}")


def _torch_modules() -> dict[str, ModuleType]:
    return {name: module for name, module in sys.modules.items() if name == "torch" or name.startswith("torch.")}


def as_torch() -> Stand:
    """Make ``import torch`` and its submodules give glassgrad, in this process, until `undo()`.

    PyTorch need not be installed; if it is loaded already, modules that have imported it keep it.

    Example:
        >>> import glassgrad as gg
        >>> with gg.compat.as_torch():
        ...     import torch
        ...     from torch.nn import functional as F
        ...     print(F.relu(torch.tensor([-1.0, 2.0])))
        tensor([0., 2.])
    """
    return Stand()


# --- names besides tensors and layers -------------------------------------------------------------


class inference_mode(no_grad):  # noqa: N801 - PyTorch's name
    """Ops inside are not recorded, as in `no_grad`.

    Example:
        >>> import glassgrad as gg
        >>> x = gg.ones(2, requires_grad=True)
        >>> with gg.inference_mode():
        ...     (x * 2).requires_grad
        False
    """

    def __new__(cls, mode: Any = True) -> Any:
        return super().__new__(cls, mode) if callable(mode) else super().__new__(cls)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.recording = not mode


def is_tensor(obj: object) -> bool:
    """Tell whether `obj` is a Tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Any) -> bool:
    """Tell whether the dtype is one of floating-point numbers."""
    return bool(input.dtype.kind in "fV")


def numel(input: Any) -> int:
    """Number of elements."""
    return int(input.numel())


def get_default_dtype() -> np.dtype:
    """Return the dtype of new tensors: float32."""
    return creation.DEFAULT


def set_default_dtype(d: Any) -> None:
    """Set the dtype of new tensors from Python numbers, of random tensors and of layers: float32, float64 or float16.

    Compiled functions keep the dtype that they were traced with.
    """
    wanted = np.dtype(np.float32 if d is None else _dtype_named(d))
    if wanted.kind not in "fV":
        raise errors.DEFAULT_DTYPE(given=wanted, where=provenance.here())
    creation.DEFAULT = wanted


set_default_tensor_type = set_default_dtype


def _dtype_named(d: Any) -> Any:
    """Return the dtype of a dtype, a tensor type, or a tensor type's name such as "torch.DoubleTensor"."""
    if isinstance(d, str) and d.endswith("Tensor"):
        d = NAMES[d.rpartition(".")[2]]
    return getattr(d, "dtype", d) if isinstance(d, constructors.TypedTensor) else d


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how numbers are printed: NumPy's options of the same names."""
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    np.set_printoptions(**options, suppress=None if sci_mode is None else not sci_mode)


def set_default_device(device: Device) -> None:
    """Accept the cpu; raise for any other device."""
    devices.check(device)


def get_default_device() -> devices.device:
    """Return the cpu."""
    return devices.device("cpu")


def get_num_threads() -> int:
    """Return how many cores this process may use; a compiled step may use fewer."""
    from glassgrad.compile.native.runtime import available_cores

    return available_cores()


def typename(obj: object) -> str:
    """Return the full name of the type of an object."""
    kind = obj if isinstance(obj, type) else type(obj)
    return f"{kind.__module__}.{kind.__qualname__}"


def _accepted(*_args: object, **_kwargs: object) -> None:
    """Do nothing: this tunes PyTorch's own kernels."""


NAMES: dict[str, Any] = {
    "autocast": amp.autocast,
    "save": serialization.save,
    "load": serialization.load,
    "inference_mode": inference_mode,
    "is_tensor": is_tensor,
    "is_floating_point": is_floating_point,
    "numel": numel,
    "get_default_dtype": get_default_dtype,
    "set_default_dtype": set_default_dtype,
    "set_default_tensor_type": set_default_tensor_type,
    "initial_seed": random.initial_seed,
    "seed": random.seed,
    "get_rng_state": random.get_rng_state,
    "set_rng_state": random.set_rng_state,
    **torch_names.NAMES,
    "set_default_device": set_default_device,
    "get_default_device": get_default_device,
    "typename": typename,
    "get_num_threads": get_num_threads,
    "memory_format": str,
    "cfloat": np.dtype(np.complex64),
    "set_printoptions": set_printoptions,
    "Size": Size,
    "dtype": np.dtype,
    "finfo": narrow.finfo,
    "iinfo": np.iinfo,
    "result_type": narrow.result_type,
    "promote_types": narrow.promote_types,
    "can_cast": np.can_cast,
    "complex64": np.dtype(np.complex64),
    "complex128": np.dtype(np.complex128),
    **dict.fromkeys(
        ("set_num_threads", "set_num_interop_threads", "set_float32_matmul_precision", "use_deterministic_algorithms"),
        _accepted,
    ),
    **constructors.TYPED,
    "contiguous_format": "contiguous",
    "channels_last": "contiguous",
    "preserve_format": "contiguous",
    "strided": "strided",
}
examples.show("glassgrad", NAMES)

# PyTorch's names that this library lacks, and their replacements.
INSTEAD = {
    "export": "use glassgrad.compile; the .graph and .source of a compiled function are the program.",
    "library": "make your own ops with autograd.Function or custom_vjp.",
    "storage": "the memory of a tensor is a NumPy array: .numpy().",
    "ao": "weights stay in floating point.",
    "package": "save weights with glassgrad.save, and keep the code in a file of your own.",
    "quantization": "weights stay in floating point.",
    "fx": "compiled.graph is the traced program of a compiled function.",
}


def main(arguments: list[str] | None = None) -> None:
    """Run a script with glassgrad under the name torch: ``python -m glassgrad.compat SCRIPT ARGUMENTS``.

    Modules beside the script are found, as `python SCRIPT` finds them. ``--check SCRIPT`` runs nothing: see `check`.
    """
    import runpy
    from pathlib import Path

    given = sys.argv[1:] if arguments is None else arguments
    if not given:
        raise SystemExit("usage: python -m glassgrad.compat [--check] SCRIPT [ARGUMENTS ...]")
    before = sys.argv, sys.path
    sys.argv, sys.path = given, [str(Path(given[0]).resolve().parent), *sys.path]
    try:
        with as_torch():
            runpy.run_path(given[0], run_name="__main__")
    finally:
        sys.argv, sys.path = before


__all__ = [
    "as_torch",
]
__dir__ = lister(__name__)
