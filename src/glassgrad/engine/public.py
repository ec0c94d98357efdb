"""The public names of the engine: `glassgrad.x` for every x that is not a subpackage.

Importing this file loads the engine (tensors, ops, the tape) and completes `Tensor`.
"""

# ruff: noqa: F401 - every name imported here is public; importing inplace, interpreter and methods completes Tensor

from __future__ import annotations

from types import ModuleType

import numpy as np

from glassgrad.base import documents
from glassgrad.engine import inplace
from glassgrad.engine.mode import enable_grad, is_anomaly_enabled, is_grad_enabled, no_grad, set_grad_enabled
from glassgrad.engine.protocols import from_dlpack
from glassgrad.engine.random import (
    Generator,
    bernoulli,
    default_generator,
    manual_seed,
    multinomial,
    normal,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
)
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.tensors.creation import (
    arange,
    as_tensor,
    empty,
    empty_like,
    empty_permuted,
    empty_strided,
    eye,
    from_numpy,
    full,
    full_like,
    linspace,
    logspace,
    ones,
    ones_like,
    scalar_tensor,
    tensor,
    zeros,
    zeros_like,
)
from glassgrad.engine.tensors.devices import device
from glassgrad.engine.tensors.window_functions import (
    bartlett_window,
    blackman_window,
    hamming_window,
    hann_window,
    kaiser_window,
)
from glassgrad.ops import names as _names

float16 = half = np.dtype(np.float16)
float32 = np.dtype(np.float32)
float64 = double = np.dtype(np.float64)
int8, int16 = np.dtype(np.int8), np.dtype(np.int16)
int32 = np.dtype(np.int32)
int64 = long = np.dtype(np.int64)
uint8 = np.dtype(np.uint8)
bool_ = np.dtype(np.bool_)
inf, nan, pi, e = float("inf"), float("nan"), np.pi, np.e

# PyTorch's dtype names that are also names of Python types.
_TYPES = {"bool": bool_, "int": int32, "float": float32, "short": int16}


def _is_public(name: str, value: object) -> bool:
    if name.startswith("_") or name in {"annotations", "ModuleType"}:
        return False
    return not isinstance(value, ModuleType)


_here = {name: value for name, value in list(globals().items()) if _is_public(name, value)}

# The public names; those of the op table come first, so that a name defined here overrides them.
NAMES = {**_names.PUBLIC, **inplace.FUNCTIONS, **_TYPES, **_here}
_names.at_home("glassgrad", NAMES)
documents.complete_all("glassgrad", _here)
