"""Tensors in the rest of the ecosystem: NumPy's protocols, the array API, DLPack, einops.

`ufuncs` serves NumPy's universal functions, `functions` its other ones, `namespace` is the array-API
namespace, `exchange` shares memory with other libraries, `torch_functions` meets functions of PyTorch's. Importing this
attaches them to `Tensor`.
"""

from __future__ import annotations

from typing import Any

from glassgrad.engine.protocols import einops, exchange, functions, torch_functions
from glassgrad.engine.protocols.exchange import from_dlpack
from glassgrad.engine.protocols.ufuncs import UFUNCS, ufunc
from glassgrad.engine.tensor import Tensor
from glassgrad.ops.core import Array

__all__ = ["UFUNCS", "from_dlpack", "ufunc"]


def _array_ufunc(_self: Tensor, function: Any, method: str, *inputs: Array, **kwargs: Any) -> Array:
    return ufunc(function, method, inputs, kwargs)


def _array_function(_self: Tensor, func: Any, _types: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Array:
    return functions.function(func, args, kwargs)


def _array_namespace(_self: Tensor, *, api_version: str | None = None) -> Any:
    from glassgrad.engine.protocols.namespace import NAMESPACE

    return NAMESPACE.for_version(api_version)


def _copy(x: Tensor) -> Tensor:
    """Return a tensor with the same memory and the same place on the tape."""
    build, arguments = x.__reduce_ex__(4)
    twin: Tensor = build(*arguments)
    twin.node = x.node
    return twin


def _attach() -> None:
    for name, method in {
        "__array_ufunc__": _array_ufunc,
        "__array_function__": _array_function,
        "__array_namespace__": _array_namespace,
        "__dlpack__": exchange.dlpack,
        "__dlpack_device__": exchange.dlpack_device,
        "__copy__": _copy,
        "__torch_function__": staticmethod(torch_functions.torch_function),
    }.items():
        setattr(Tensor, name, method)


_attach()
einops.register()
