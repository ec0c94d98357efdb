"""Layer norm, softmax and attention of large arrays run as native code, some rows at a time, and agree with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.nn import functional as F
from glassgrad.ops.fused_attention import attention_p
from glassgrad.ops.kernels import native, parts

pytest.importorskip("llvmlite", reason="native code needs llvmlite")


class Noted(native.Kernels):
    """Kernels, and the formulas that they were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def find(self, op: Any, *request: Any) -> Any:
        kernel = super().find(op, *request)
        if kernel is not None:
            self.asked.append(op.__name__.strip("_"))
        return kernel


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Noted:
    """Native code from small sizes on, a few rows at a time."""
    noted = Noted()
    monkeypatch.setattr(native, "kernels", noted)
    monkeypatch.setattr(parts, "FROM", 64)
    monkeypatch.setattr(parts, "ELEMENTS", 24)
    return noted


def values_and_gradients(function: Callable[..., Any], *arrays: Any) -> list[Any]:
    xs = [gg.tensor(array, requires_grad=True) for array in arrays]
    y = function(*xs)
    cotangent = np.random.default_rng(9).uniform(-1, 1, y.shape).astype(y.dtype)
    y.backward(gg.tensor(cotangent))
    return [y.detach().numpy(), *(x.grad.numpy() for x in xs)]


def attend(**options: Any) -> Callable[..., Any]:
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **options)


WIDTH = 5  # four rows at a time: 23 rows leave three over
WEIGHTED = ((23, WIDTH), (WIDTH,), (WIDTH,))
CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...], list[str]]] = {
    "layer norm": (lambda x, w, b: F.layer_norm(x, (WIDTH,), w, b), WEIGHTED, ["layer_norm_in_ops", "vjp"]),
    "running sums": (lambda x: x.cumsum(1), ((23, WIDTH),), ["rows_summed", "rows_from_behind"]),
    "layer norm of two axes": (
        lambda x, w: F.layer_norm(x, (2, 4), w),
        ((3, 5, 2, 4), (2, 4)),
        ["layer_norm_in_ops", "vjp"],
    ),
    "plain layer norm": (lambda x: F.layer_norm(x, (WIDTH,)), ((23, WIDTH),), ["layer_norm_in_ops", "vjp"]),
    "rms norm": (lambda x, w: F.rms_norm(x, (WIDTH,), w), WEIGHTED[:2], ["rms_norm_in_ops", "vjp"]),
    "softmax": (lambda x: gg.softmax(x, dim=-1), ((3, 7, WIDTH),), ["softmax_of_rows", "softmax_of_rows_rule"]),
    "log softmax": (
        lambda x: gg.log_softmax(x, dim=1),
        ((23, WIDTH),),
        ["log_softmax_of_rows", "log_softmax_of_rows_vjp"],
    ),
    "rows longer than a part": (
        lambda x: gg.softmax(x, dim=-1),
        ((3, 40),),
        ["softmax_of_rows", "softmax_of_rows_rule"],
    ),
    "causal attention": (attend(is_causal=True), ((2, 3, 5, 4),) * 3, ["weights", "scores_vjp"]),
    "attention": (attend(), ((4, 5, 4), (4, 6, 4), (4, 6, 3)), ["weights", "scores_vjp"]),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_numpy(name: str, dtype: Any, kernels: Noted) -> None:
    function, shapes, asked = CASES[name]
    rng = np.random.default_rng(len(name))
    arrays = [rng.standard_normal(shape) * 3 for shape in shapes]
    found = values_and_gradients(function, *[array.astype(dtype) for array in arrays])
    assert kernels.asked == asked
    kernels.off = True
    exact = values_and_gradients(function, *[array.astype(dtype).astype(np.float64) for array in arrays])
    assert kernels.asked == asked
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    for mine, expected in zip(found, exact, strict=True):
        assert mine.dtype == dtype
        np.testing.assert_allclose(mine, expected, rtol=tolerance, atol=tolerance)


def test_rows_of_any_count_share_a_kernel(kernels: Noted) -> None:
    for rows in (23, 24, 40):
        gg.softmax(gg.zeros(rows, WIDTH), dim=1)
    assert len(kernels._known) == 1


def test_a_formula_whose_result_is_of_another_dtype_is_refused(kernels: Noted) -> None:
    """A number of NumPy's in double precision makes results in that; they have no room in what takes the results."""
    q = np.ones((4, 5, 4), np.float32)
    params = {"scale": np.float64(0.5), "causal": False, "masked": False, "dropped": False}
    with pytest.raises(TypeError, match="float64 is given an array of float32"):
        attention_p.evaluate(q, q, q, **params)


def test_a_softmax_far_from_zero_and_at_the_ends(kernels: Noted) -> None:
    x = np.zeros((20, 5), np.float32)
    x[0], x[1], x[2, 3], x[3, 1] = 1e30, -1e30, np.inf, np.nan
    x[4] = [-np.inf, 0, 1, 2, 3]
    with np.errstate(invalid="ignore"):
        found = gg.softmax(gg.tensor(x), dim=1).numpy()
        kernels.off = True
        expected = gg.softmax(gg.tensor(x), dim=1).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_numpy_computes_along_other_axes_small_arrays_and_other_dtypes(kernels: Noted) -> None:
    gg.softmax(gg.zeros(20, 5), dim=0)
    gg.softmax(gg.zeros(3, 5), dim=1)
    gg.softmax(gg.zeros(20, 5, dtype=gg.float16), dim=1)
    F.layer_norm(gg.zeros(20, 5), (5,), gg.ones(5, dtype=gg.float64))
    assert not kernels.asked


def test_arrays_as_they_lie(kernels: Noted) -> None:
    """A transposed input and a cotangent that repeats one element."""
    values = np.random.default_rng(3).standard_normal((WIDTH, 23))
    x = gg.tensor(values, requires_grad=True)
    (gg.softmax(x.T, dim=1)[:, 0]).sum().backward()
    assert kernels.asked == ["softmax_of_rows", "softmax_of_rows_rule"]
    weights = np.exp(values) / np.exp(values).sum(0)
    np.testing.assert_allclose(x.grad.numpy(), weights[0] * (np.eye(WIDTH)[0][:, None] - weights), atol=1e-12)
