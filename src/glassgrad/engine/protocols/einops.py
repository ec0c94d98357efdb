"""einops on Tensors: the backend that einops needs for each kind of array.

Our backend derives from a class in einops, so it can be made only once einops has been imported. If that happens after
glassgrad is imported, a finder waits for it and then removes itself.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from glassgrad.engine.tensor import Tensor
from glassgrad.engine.tensors.creation import arange, from_numpy
from glassgrad.ops.core import Array
from glassgrad.ops.names import PUBLIC

_MODULE = "einops._backends"


def register() -> None:
    """Make einops know Tensors, now or when it is imported."""
    module = sys.modules.get(_MODULE)
    if module is not None:
        define(module)
    elif not any(isinstance(finder, _Waiting) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Waiting())


class _Waiting:
    """Finds no modules, but notices when einops is imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_define(module: ModuleType) -> None:
            execute(module)
            define(module)

        spec.loader.exec_module = execute_and_define  # type: ignore[method-assign]  # of this one loader object
        return spec


def _reduce(_self: Any, x: Tensor, operation: str, axes: Any) -> Array:
    return PUBLIC[{"max": "amax", "min": "amin"}.get(operation, operation)](x, tuple(axes))


_METHODS: dict[str, Any] = {
    "framework_name": "glassgrad",
    "is_appropriate_type": lambda _self, tensor: isinstance(tensor, Tensor),
    "from_numpy": lambda _self, x: from_numpy(x),
    "to_numpy": lambda _self, x: x.detach().numpy(),
    "arange": lambda _self, start, stop: arange(start, stop),
    "transpose": lambda _self, x, axes: x.permute(tuple(axes)),
    "reduce": _reduce,
    "stack_on_zeroth_dimension": lambda _self, tensors: PUBLIC["stack"](tensors),
    "add_axis": lambda _self, x, new_position: x.unsqueeze(new_position),
    "tile": lambda _self, x, repeats: x.tile(*repeats),
    "concat": lambda _self, tensors, axis: PUBLIC["cat"](tensors, axis),
    "is_float_type": lambda _self, x: x.dtype.kind in "fV",
    "einsum": lambda _self, pattern, *x: PUBLIC["einsum"](pattern, *x),
}


def define(module: ModuleType) -> None:
    """Derive the backend from the class in einops, which finds its backends by looking for such classes."""
    _DEFINED.append(type("GlassgradBackend", (module.AbstractBackend,), _METHODS))


_DEFINED: list[type] = []  # classes hold only weak references to their subclasses
