"""Examples for functions whose docstrings have none: a call, and what it returns today.

Elementwise functions are called on numbers that they are defined for, all others as `CALLS` says. A call that fails
stops the build, and a test runs all of them.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import glassgrad as gg
from glassgrad.ops.core import Elementwise

MODULES = ("glassgrad", "glassgrad.nn.functional", "glassgrad.linalg", "glassgrad.fft", "glassgrad.special")
# Numbers for the first, second and third argument, tried in this order.
NUMBERS = (
    ([-1.0, 0.5, 2.0], [3.0, 1.5, -0.5], [0.5, 1.0, 2.0]),
    ([0.5, 1.0, 2.0], [3.0, 1.5, 0.5], [1.0, 2.0, 3.0]),
    ([-0.5, 0.1, 0.9], [0.3, -0.7, 0.2], [0.1, 0.2, 0.3]),
    ([0.1, 0.5, 0.9], [0.3, 0.7, 0.2], [0.2, 0.4, 0.6]),
    ([1.5, 2.0, 3.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]),
    ([6, 3, 12], [5, 1, 2], [1, 2, 3]),
)
# What the names in calls stand for.
GIVEN = {
    "x": "gg.tensor([[1.0, 5.0, 3.0], [7.0, 2.0, 4.0]])",
    "v": "gg.tensor([3.0, 1.0, 2.0])",
    "w": "gg.tensor([1.0, 0.0, -1.0])",
    "i": "gg.tensor([2, 0])",
    "a": "gg.tensor([[4.0, 1.0], [1.0, 3.0]])",
    "b": "gg.tensor([[1.0, 0.0], [2.0, 1.0]])",
    "q": "gg.tensor([1, 2, 2, 5])",
    "mask": "gg.tensor([True, False, True])",
}
CALLS = {
    "all": "(v > 0)", "any": "(v > 2)", "amax": "(x, dim=1)", "amin": "(x, dim=1)", "aminmax": "(x)",
    "argmax": "(x, dim=1)", "argmin": "(x, dim=1)", "argsort": "(v)", "argwhere": "(x > 3)", "max": "(x, dim=1)",
    "min": "(x, dim=1)", "mean": "(x, dim=0)", "median": "(v)", "prod": "(x, dim=1)", "std": "(x, dim=1)",
    "var": "(x, dim=1)", "norm": "(x)", "logsumexp": "(x, dim=1)", "softmax": "(v, dim=0)", "log_softmax": "(v, dim=0)",
    "softmin": "(v, dim=0)", "count_nonzero": "(w)", "quantile": "(v, 0.5)", "nansum": "(v)", "nanmean": "(v)",
    "cumprod": "(v, dim=0)", "cummax": "(v, dim=0)", "cummin": "(v, dim=0)", "logcumsumexp": "(v, dim=0)",
    "diff": "(v)", "trapezoid": "(v)", "topk": "(v, 2)", "kthvalue": "(v, 2)", "msort": "(v)", "unique": "(q)",
    "unique_consecutive": "(q)", "searchsorted": "(q, gg.tensor([2, 4]))", "bucketize": "(gg.tensor([2, 4]), q)",
    "histc": "(v, bins=2)", "bincount": "(q)", "isin": "(q, gg.tensor([2, 5]))",
    "matmul": "(a, b)", "mm": "(a, b)", "mv": "(x, v)", "dot": "(v, w)", "vdot": "(v, w)", "inner": "(v, w)",
    "outer": "(v, w)", "cross": "(v, w)", "kron": "(a, b)", "bmm": "(a[None], b[None])", "vecdot": "(v, w)",
    "addmm": "(b, a, b)", "addmv": "(gg.ones(2), x, v)", "det": "(a)", "inv": "(a)", "inverse": "(a)", "logdet": "(a)",
    "slogdet": "(a)", "trace": "(a)", "cholesky": "(a)", "qr": "(a)", "pinverse": "(a)", "matrix_power": "(b, 3)",
    "eigvalsh": "(a)", "cdist": "(a, b)", "dist": "(v, w)", "svdvals": "(a)", "eigh": "(a)",
    "svd": "(a)", "eigvals": "(a)", "lu_factor": "(a)", "cond": "(a)", "matrix_rank": "(a)",
    "matrix_norm": "(a)", "multi_dot": "([a, b, a])", "pinv": "(a)",
    "lstsq": "(a, b)",
    "flatten": "(x)", "flip": "(x, dims=(1,))", "fliplr": "(x)", "flipud": "(x)", "permute": "(x, (1, 0))",
    "transpose": "(x, 0, 1)", "t": "(x)", "movedim": "(gg.zeros(2, 3, 4), 0, 2).shape", "unsqueeze": "(v, 0).shape",
    "squeeze": "(gg.zeros(1, 3)).shape", "stack": "([v, w])", "vstack": "([v, w])", "hstack": "([v, w])",
    "column_stack": "([v, w])", "dstack": "([v, w]).shape", "split": "(v, 2)", "chunk": "(v, 2)", "unbind": "(x)",
    "tensor_split": "(v, 2)", "tile": "(v, (2,))", "repeat_interleave": "(v, 2)", "roll": "(v, 1)", "rot90": "(x)",
    "broadcast_to": "(v, (2, 3))", "expand": "(v, 2, 3)", "narrow": "(v, 0, 1, 2)", "select": "(x, 0, 1)",
    "unflatten": "(gg.arange(6), 0, (2, 3))", "meshgrid": "(v, w, indexing='ij')", "atleast_2d": "(v)",
    "diag": "(v)", "diagonal": "(a)", "diag_embed": "(v)", "diagflat": "(v)", "tril": "(x)", "triu": "(x)",
    "index_select": "(v, 0, i)", "take": "(v, i)", "take_along_axis": "(x, gg.argsort(x, dim=1), 1)",
    "masked_select": "(v, mask)", "masked_fill": "(v, mask, 0.0)", "nonzero": "(w)", "where": "(mask, v, w)",
    "scatter": "(w, 0, i, v[:2])", "index_add": "(w, 0, i, v[:2])", "index_copy": "(w, 0, i, v[:2])",
    "index_fill": "(w, 0, i, 9.0)", "one_hot": "(gg.tensor([0, 2]), 3)", "embedding": "(i, gg.eye(3))",
    "combinations": "(v)", "cartesian_prod": "(i, i)", "clamp_min": "(v, 1.5)",
    "clamp_max": "(v, 2.5)", "clone": "(v)", "lerp": "(v, w, 0.5)", "addcmul": "(v, w, w)", "addcdiv": "(v, w, v)",
    "isclose": "(v, v + 1e-9)", "allclose": "(v, v + 1e-9)", "equal": "(v, w)", "round": "(v / 2)", "nan_to_num": "(v)",
    "leaky_relu": "(w)", "elu": "(w)", "celu": "(w)", "gelu": "(w)", "glu": "(gg.ones(4))", "hardtanh": "(2 * w)",
    "threshold": "(v, 1.5, 0.0)", "prelu": "(w, gg.tensor(0.25))", "hardshrink": "(w)",
    "zeros": "(2, 3)", "ones": "(2, 3)", "full": "((2,), 7.0)", "eye": "(2)", "arange": "(5)", "linspace": "(0, 1, 5)",
    "zeros_like": "(v)", "ones_like": "(v)", "full_like": "(v, 7.0)", "empty": "(2, 3).shape", "as_tensor": "([1, 2])",
    "tril_indices": "(2, 2)", "triu_indices": "(2, 2)", "numel": "(x)", "is_tensor": "(x)",
    "broadcast_shapes": "((3, 1), (1, 4))", "is_floating_point": "(q)", "positive": "(v)", "std_mean": "(v)",
    "var_mean": "(v)", "square": "(v)", "frac": "(v / 2)", "deg2rad": "(gg.tensor([180.0]))", "sgn": "(w)",
    "rad2deg": "(gg.tensor([gg.pi]))", "float_power": "(v, 2)", "logit": "(gg.tensor([0.5, 0.9]))",
    "fft": "(v)", "ifft": "(v)", "irfft": "(gg.fft.rfft(v), n=3)", "fftshift": "(v)",
    "ifftshift": "(v)", "fft2": "(a)", "rfft2": "(a)", "ifft2": "(a)", "rfftfreq": "(4)",
    "mse_loss": "(v, w)", "l1_loss": "(v, w)", "smooth_l1_loss": "(v, w)", "huber_loss": "(v, w)", "relu6": "(8 * w)",
    "nll_loss": "(gg.log_softmax(x, 1), i)", "kl_div": "(gg.log_softmax(v, 0), gg.softmax(w, 0))", "selu": "(w)",
    "cosine_similarity": "(v, w, dim=0)", "mish": "(w)",
    "pairwise_distance": "(v[None], w[None])", "normalize": "(x)", "linear": "(x, x)",
    "layer_norm": "(x, (3,))", "avg_pool1d": "(x[None], 2)", "silu": "(w)",
    "hardsigmoid": "(w)", "hardswish": "(w)", "softsign": "(w)", "tanhshrink": "(w)", "log_sigmoid": "(w)",
    "logsigmoid": "(w)", "multigammaln": "(v + 2, 2)", "rms_norm": "(x, (3,))",
    "interpolate": "(x[None], scale_factor=2)", "soft_margin_loss": "(v, w)",
    "randn": "(2, 3).shape", "rand": "(2, 3).shape", "randint": "(0, 10, (2, 3)).shape", "randperm": "(5).shape",
    "rand_like": "(x).shape", "randn_like": "(x).shape", "conj": "(gg.tensor([1 + 2j]))",
    "real": "(gg.tensor([1 + 2j]))", "imag": "(gg.tensor([1 + 2j]))", "angle": "(gg.tensor([1j]))",
    "view_as_real": "(gg.tensor([1 + 2j]))",
    "complex": "(v, w)", "relu": "(w)", "isposinf": "(v)", "isneginf": "(v)", "is_complex": "(v)", "hsplit": "(v, 3)",
    "repeat": "(v, 2)", "solve_triangular": "(gg.tril(a), b, upper=False)", "nanmedian": "(v)", "softshrink": "(2 * v)",
    "binary_cross_entropy": "(gg.tensor([0.9, 0.2]), gg.tensor([1.0, 0.0]))", "atleast_1d": "(gg.tensor(1.0))",
    "expand_as": "(v, x)", "reshape_as": "(gg.arange(6), x)", "matrix_transpose": "(a)", "corrcoef": "(x)",
}  # fmt: skip  # a table


def example(module: str, name: str, value: Any) -> str:
    """Return an example of a function as Markdown; an empty text where the docstring has one, or none is known."""
    if module not in MODULES or ">>>" in (getattr(value, "__doc__", None) or "") or name.endswith("_"):
        return ""
    spelled = f"{module.replace('glassgrad', 'gg', 1)}.{name}"
    prim = getattr(value, "primitive", None)
    if name in CALLS:
        used = [f"{one} = {text}" for one, text in GIVEN.items() if one in _names(CALLS[name])]
        return _shown([*used, f"{spelled}{CALLS[name]}"])
    if isinstance(prim, Elementwise):
        for numbers in NUMBERS:
            if _defined(value, numbers[: prim.arity]):
                return _shown([f"{spelled}({', '.join(f'gg.tensor({one})' for one in numbers[: prim.arity])})"])
    return ""


def _names(call: str) -> tuple[str, ...]:
    return compile("f" + call, "call", "eval").co_names


def _defined(function: Any, numbers: tuple[list[float], ...]) -> bool:
    """Tell whether a call is taken, without a warning, and gives finite numbers."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = function(*map(gg.tensor, numbers))
        return bool(np.isfinite(np.asarray(result.array, dtype=complex)).all())
    except (TypeError, ValueError, RuntimeError, RuntimeWarning):
        return False


def _shown(lines: list[str]) -> str:
    """Run lines and return them as an example; the last one is an expression."""
    scope: dict[str, Any] = {"gg": gg}
    for line in lines[:-1]:
        exec(line, scope)  # noqa: S102 - a line of this file
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = repr(eval(lines[-1], scope))  # noqa: S307 - as above
    code = "\n".join(f">>> {line}" for line in ["import glassgrad as gg", *lines])
    return f"**Example**\n\n```pycon\n{code}\n{result}\n```"


__all__ = ["CALLS", "MODULES", "example"]
