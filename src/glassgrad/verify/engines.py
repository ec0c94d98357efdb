"""The interface between checks and a tensor library: ours, or PyTorch if it is installed."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from glassgrad.base.provenance import pytorch
from glassgrad.engine import backward
from glassgrad.engine.tensor import Tensor, make

Array = Any


class Engine(Protocol):
    """The operations of a library: make tensors, differentiate them, turn them into arrays."""

    tensor_name: str
    slopes: Callable[..., Any]

    def is_tensor(self, value: object) -> bool: ...
    def is_float(self, value: object) -> bool: ...
    def is_complex(self, value: object) -> bool: ...
    def is_module(self, value: object) -> bool: ...
    def dtype(self, value: Array) -> np.dtype: ...
    def float64(self, value: Array) -> Array: ...
    def leaf(self, value: Array, dtype: np.dtype) -> Array: ...
    def leaf_like(self, value: Array, other: Array) -> Array: ...
    def like(self, value: Array, other: Array) -> Array: ...
    def constant(self, value: Array, exact: bool) -> Array: ...
    def twin(self, module: Any, exact: bool) -> Any: ...
    def put(self, parameter: Any, value: Array, dtype: np.dtype) -> Any: ...

    def grad(self, outputs: Array, inputs: Array, cotangents: Array, create_graph: bool) -> list[Array]:
        kept = [(y, c) for y, c in zip(outputs, cotangents, strict=True) if y.requires_grad]
        if not kept:
            return [None] * len(inputs)
        found = self.slopes(
            [y for y, _ in kept], inputs, [c for _, c in kept], create_graph=create_graph, allow_unused=True
        )
        return list(found)


class _Glassgrad(Engine):
    tensor_name = "glassgrad Tensors"
    slopes = staticmethod(backward.grad)

    def is_tensor(self, value: object) -> bool:
        return isinstance(value, Tensor)

    def is_float(self, value: object) -> bool:
        return isinstance(value, Tensor | np.ndarray | np.floating) and value.dtype.kind in "fV"

    def is_complex(self, value: object) -> bool:
        return isinstance(value, Tensor | np.ndarray) and value.dtype.kind == "c"

    def is_module(self, value: object) -> bool:
        # Recognise it by its methods, since the layer classes are in a higher module.
        return all(hasattr(value, name) for name in ("forward", "named_parameters", "named_buffers"))

    def dtype(self, value: Array) -> np.dtype:
        dtype: np.dtype = np.dtype(value.dtype)
        return dtype

    def float64(self, value: Array) -> Array:
        return np.array(value.array if isinstance(value, Tensor) else value, np.float64)

    def leaf(self, value: Array, dtype: np.dtype) -> Tensor:
        tensor = make(np.array(value, dtype), None, False)
        tensor.requires_grad = True
        return tensor

    def leaf_like(self, value: Array, other: Tensor) -> Tensor:
        return self.leaf(value, other.dtype)

    def like(self, value: Array, other: Tensor) -> Tensor:
        return make(np.array(value, other.dtype), None, False)

    def constant(self, value: Array, exact: bool) -> Array:
        if not isinstance(value, Tensor | np.ndarray):
            return value
        array = value.array if isinstance(value, Tensor) else value
        return make(np.array(array, np.float64 if exact and array.dtype.kind in "fV" else array.dtype), None, False)

    def twin(self, module: Any, exact: bool) -> Any:
        twin = copy.deepcopy(module)
        for _, tensor in [*twin.named_parameters(), *twin.named_buffers()]:
            if exact and tensor.dtype.kind in "fV":
                tensor.array = tensor.array.astype(np.float64)
        return twin

    def put(self, parameter: Any, value: Array, dtype: np.dtype) -> Any:
        parameter.array = np.array(value, dtype)
        return parameter


GLASSGRAD = _Glassgrad()


class _Torch(Engine):
    tensor_name = "PyTorch tensors"

    def __init__(self) -> None:
        self.torch = pytorch()
        self.slopes = self.torch.autograd.grad

    def is_tensor(self, value: object) -> bool:
        return isinstance(value, self.torch.Tensor)

    def is_float(self, value: Array) -> bool:
        return self.is_tensor(value) and bool(value.is_floating_point())

    def is_complex(self, value: Array) -> bool:
        return self.is_tensor(value) and bool(value.is_complex())

    def is_module(self, value: object) -> bool:
        return isinstance(value, self.torch.nn.Module)

    def dtype(self, value: Array) -> np.dtype:
        # NumPy has no bfloat16; float16 is coarse enough for this purpose.
        name = str(value.dtype).removeprefix("torch.")
        return np.dtype(np.float16 if name == "bfloat16" else name)

    def float64(self, value: Array) -> Array:
        return np.array(value.detach().cpu().double().numpy())

    def leaf(self, value: Array, dtype: np.dtype) -> Array:
        tensor = self.torch.from_numpy(np.array(value, dtype))
        return tensor.requires_grad_()

    def leaf_like(self, value: Array, other: Array) -> Array:
        return self.like(value, other).requires_grad_()

    def like(self, value: Array, other: Array) -> Array:
        return self.torch.from_numpy(np.array(value, np.float64)).to(other.dtype)

    def constant(self, value: Array, exact: bool) -> Array:
        if isinstance(value, np.ndarray):
            value = self.torch.from_numpy(value.copy())
        if not self.is_tensor(value):
            return value
        copied = value.detach().clone()
        return copied.double() if exact and self.is_float(value) else copied

    def twin(self, module: Any, exact: bool) -> Any:
        twin = copy.deepcopy(module)
        return twin.double() if exact else twin

    def put(self, parameter: Any, value: Array, dtype: np.dtype) -> Any:
        parameter.data = self.torch.from_numpy(np.array(value, dtype)).to(parameter.dtype)
        return parameter


@functools.cache
def torch_engine() -> Engine:
    """Return the loaded PyTorch as an engine."""
    return _Torch()


__all__ = ["GLASSGRAD", "Engine", "torch_engine"]
