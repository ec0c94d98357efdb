"""PyTorch's names, NumPy's arrays, and a backward pass you can read.

The engine (tensors, ops, the tape) is imported here; `nn`, `optim`, `func` and the rest only when they
are first used.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from glassgrad import autograd, inplace, interpreter, methods  # noqa: F401 - importing these completes Tensor
from glassgrad.creation import (
    arange,
    as_tensor,
    empty,
    empty_like,
    eye,
    from_numpy,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    tensor,
    zeros,
    zeros_like,
)
from glassgrad.ops import names as _names
from glassgrad.protocols import from_dlpack
from glassgrad.random import (
    Generator,
    bernoulli,
    default_generator,
    manual_seed,
    multinomial,
    normal,
    rand,
    rand_like,
    randint,
    randn,
    randn_like,
    randperm,
)
from glassgrad.tape import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from glassgrad.tensor import Tensor

__version__ = "0.1.0"

float16 = half = np.dtype(np.float16)
float32 = np.dtype(np.float32)
float64 = double = np.dtype(np.float64)
int8, int16 = np.dtype(np.int8), np.dtype(np.int16)
int32 = np.dtype(np.int32)
int64 = long = np.dtype(np.int64)
uint8 = np.dtype(np.uint8)
bool_ = np.dtype(np.bool_)
inf, nan, pi, e = float("inf"), float("nan"), np.pi, np.e

_LAZY = (
    "nn", "optim", "func", "linalg", "fft", "compile", "data", "train", "verify", "manual", "optimize", "scalar",
    "random", "utils",
)  # fmt: skip

globals().update(_names.PUBLIC)
globals().update(inplace.FUNCTIONS)

# PyTorch's names of dtypes that are names of Python types as well: only as attributes, so that nothing is shadowed.
_TYPES = {"bool": bool_, "int": int32, "float": float32, "short": int16}


def __getattr__(name: str) -> Any:
    if name in _TYPES:
        return _TYPES[name]
    if name in _LAZY:
        return importlib.import_module(f"glassgrad.{name}")
    raise AttributeError(f"module 'glassgrad' has no attribute {name!r}")


__all__ = [
    "Generator", "Tensor", "arange", "as_tensor", "autograd", "bernoulli", "default_generator", "double", "e", "empty",
    "empty_like", "enable_grad", "eye", "float16", "float32", "float64", "from_dlpack", "from_numpy", "full", "full_like",
    "half", "inf", "int8", "int16", "int32", "int64", "is_grad_enabled", "linspace", "long", "manual_seed", "multinomial",
    "nan", "no_grad", "normal", "ones", "ones_like", "pi", "rand", "rand_like", "randint", "randn", "randn_like",
    "randperm", "set_grad_enabled", "tensor", "uint8", "zeros", "zeros_like", *_names.PUBLIC,
]  # fmt: skip
