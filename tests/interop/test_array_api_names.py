"""Every name of the array-API standard (2024.12) exists, and calls by the standard give NumPy's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors

XP: Any = gg.ones(1).__array_namespace__()
NAMES = [
    "abs", "acos", "acosh", "add", "all", "any", "arange", "argmax", "argmin", "argsort", "asarray", "asin", "asinh",
    "astype", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "broadcast_arrays", "broadcast_to", "can_cast", "ceil", "clip", "concat",
    "conj", "copysign", "cos", "cosh", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "divide", "e",
    "empty", "empty_like", "equal", "exp", "expand_dims", "expm1", "eye", "finfo", "flip", "floor", "floor_divide",
    "from_dlpack", "full", "full_like", "greater", "greater_equal", "hypot", "iinfo", "imag", "inf", "isdtype",
    "isfinite", "isinf", "isnan", "less", "less_equal", "linspace", "log", "log10", "log1p", "log2", "logaddexp",
    "logical_and", "logical_not", "logical_or", "logical_xor", "matmul", "matrix_transpose", "max", "maximum", "mean",
    "meshgrid", "min", "minimum", "moveaxis", "multiply", "nan", "negative", "newaxis", "nextafter", "nonzero",
    "not_equal", "ones", "ones_like", "permute_dims", "pi", "positive", "pow", "prod", "real", "reciprocal",
    "remainder", "repeat", "reshape", "result_type", "roll", "round", "searchsorted", "sign", "signbit", "sin",
    "sinh", "sort", "sqrt", "square", "squeeze", "stack", "std", "subtract", "sum", "take", "take_along_axis", "tan",
    "tanh", "tensordot", "tile", "tril", "triu", "trunc", "unique_all", "unique_counts", "unique_inverse",
    "unique_values", "unstack", "var", "vecdot", "where", "zeros", "zeros_like",
]  # fmt: skip  # a table
LINALG = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
    "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
    "trace", "vecdot", "vector_norm",
]  # fmt: skip  # a table
FFT = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft",
    "rfftfreq", "rfftn",
]  # fmt: skip  # a table
METHODS = [
    "__abs__", "__array_namespace__", "__bool__", "__complex__", "__dlpack__", "__dlpack_device__", "__float__",
    "__index__", "__int__", "__invert__", "__matmul__", "__mod__", "__neg__", "__pos__", "__pow__", "__rshift__",
    "__imatmul__", "__ilshift__", "T", "device", "dtype", "mT", "ndim", "shape", "size", "to_device",
]  # fmt: skip  # a table


def test_every_name_is_there() -> None:
    for holder, names in ((XP, NAMES), (XP.linalg, LINALG), (XP.fft, FFT)):
        for name in names:
            getattr(holder, name)
    assert [name for name in METHODS if not hasattr(gg.Tensor, name)] == []


X = np.random.default_rng(0).normal(size=(3, 4))
Z = X + 1j * X[::-1]
CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "fftfreq": lambda xp, x, z: xp.fft.fftfreq(5, d=0.5),
    "rfftfreq": lambda xp, x, z: xp.fft.rfftfreq(5, d=0.5),
    "fftn": lambda xp, x, z: xp.fft.fftn(z, s=(2, 3), axes=(0, 1), norm="ortho"),
    "ifftn": lambda xp, x, z: xp.fft.ifftn(z),
    "rfftn": lambda xp, x, z: xp.fft.rfftn(x, axes=(0, 1)),
    "irfftn": lambda xp, x, z: xp.fft.irfftn(z, axes=(0, 1)),
    "hfft": lambda xp, x, z: xp.fft.hfft(z, n=5, axis=0),
    "ihfft": lambda xp, x, z: xp.fft.ihfft(x, axis=0),
    "fft": lambda xp, x, z: xp.fft.fft(z),
    "fftshift": lambda xp, x, z: xp.fft.fftshift(z, axes=(0,)),
    "irfft": lambda xp, x, z: xp.fft.irfft(z),
    "nextafter": lambda xp, x, z: xp.nextafter(x, x * 0),
    "eye": lambda xp, x, z: xp.eye(3, 4, k=-1),
    "square eye": lambda xp, x, z: xp.eye(3, k=1, dtype=xp.int64),
    "trace": lambda xp, x, z: xp.linalg.trace(x, offset=1),
    "linspace": lambda xp, x, z: xp.linspace(0, 1, 5, endpoint=False),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_with_the_standards_arguments(name: str) -> None:
    found = CALLS[name](XP, gg.tensor(X), gg.tensor(Z))
    expected = CALLS[name](np, X, Z)
    assert isinstance(found, gg.Tensor)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6, atol=1e-12)


def test_devices() -> None:
    x = gg.ones(2)
    assert x.to_device("cpu") is x
    with pytest.raises(errors.GlassgradError):
        x.to_device("cpu", stream=1)
    memory = np.zeros(2)
    shared, own = XP.from_dlpack(memory, device="cpu", copy=False), XP.from_dlpack(memory, copy=True)
    memory[0] = 5
    assert (shared.tolist(), own.tolist()) == ([5.0, 0.0], [0.0, 0.0])
    for call in (lambda: x.to_device("cuda"), lambda: XP.from_dlpack(memory, device="cuda")):
        with pytest.raises(errors.GlassgradError, match="cuda"):
            call()
