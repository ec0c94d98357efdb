"""NumPy's functions on tensors: NumPy on arrays is the oracle of values, central differences of gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors

A = np.random.default_rng(0).normal(size=(3, 4))
B = np.random.default_rng(1).normal(size=(3, 4))

# Functions of (a, b), which are arrays or tensors.
DIFFERENTIABLE: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda a, b: np.sum(a, axis=0),
    "sum positional": lambda a, b: np.sum(a, 0, None, None, True),
    "mean": lambda a, b: np.mean(a, axis=(0, 1)),
    "std": lambda a, b: np.std(a, axis=1),
    "var": lambda a, b: np.var(a, ddof=1),
    "max": lambda a, b: np.max(a, axis=1),
    "ptp": lambda a, b: np.ptp(a, axis=0),
    "average": lambda a, b: np.average(a, axis=1, weights=np.arange(1.0, 5.0)),
    "prod": lambda a, b: np.prod(a, axis=1),
    "sort": lambda a, b: np.sort(a, axis=0),
    "median": lambda a, b: np.median(a, axis=1),
    "quantile": lambda a, b: np.quantile(a, [0.1, 0.5], axis=0),
    "percentile": lambda a, b: np.percentile(a, 30),
    "unique": lambda a, b: np.unique(a),
    "nansum": lambda a, b: np.nansum(a, axis=0),
    "nanstd": lambda a, b: np.nanstd(a, axis=0),
    "nanmax": lambda a, b: np.nanmax(a, axis=0),
    "cumsum": lambda a, b: np.cumsum(a),
    "cumprod": lambda a, b: np.cumprod(a, axis=0),
    "diff": lambda a, b: np.diff(a, axis=0),
    "diff of more": lambda a, b: np.diff(a, prepend=0.0, append=b[:, :2]),
    "trapezoid": lambda a, b: np.trapezoid(a, axis=1),
    "concatenate": lambda a, b: np.concatenate([a, b], axis=1),
    "concatenate with an array": lambda a, b: np.concatenate((a, B)),
    "stack": lambda a, b: np.stack([a, b], axis=-1),
    "hstack vstack": lambda a, b: np.hstack([a, b]).reshape(6, 4) + np.vstack([a, b]),
    "append": np.append,
    "split": lambda a, b: np.split(a, [1, 3], axis=1)[1],
    "array_split": lambda a, b: np.array_split(a, 3, axis=1)[0],
    "reshape": lambda a, b: np.reshape(a, (4, 3)) + np.ravel(a).reshape(4, 3),
    "transpose": lambda a, b: np.transpose(a, (1, 0)) + np.swapaxes(a, 0, 1) + np.moveaxis(a, 0, 1),
    "expand_dims": lambda a, b: np.squeeze(np.expand_dims(a, 1), axis=1),
    "repeat": lambda a, b: np.repeat(a, 2, axis=0) + np.repeat(a, [3, 1, 2], axis=0),
    "tile": lambda a, b: np.tile(a, (2, 1)),
    "flip": lambda a, b: np.flip(a, axis=0) + np.fliplr(a) + np.roll(a, 1, axis=1) + np.rot90(a, 2),
    "pad": lambda a, b: np.pad(a, (1, 2)) + np.pad(a, ((1, 2), (1, 2)), mode="reflect"),
    "broadcast_to": lambda a, b: np.broadcast_to(a, (2, 3, 4)),
    "meshgrid": lambda a, b: np.meshgrid(a[0], b[:, 0])[0],
    "where": lambda a, b: np.where(a > 0, a, b),
    "select": lambda a, b: np.select([a > 0, a < -1], [a, b], 0.0),
    "clip": lambda a, b: np.clip(a, -0.5, None),
    "take": lambda a, b: np.take(a, [0, 2], axis=1),
    "take flat": lambda a, b: np.take(a, [0, 5, -1]),
    "take_along_axis": lambda a, b: np.take_along_axis(a, np.argsort(A, axis=1), axis=1),
    "diag tril": lambda a, b: np.diag(a) + np.diagonal(a) + np.tril(a, -1).sum() + np.triu(a, k=1).sum(),
    "sliding_window_view": lambda a, b: np.lib.stride_tricks.sliding_window_view(a, 2, axis=1),
    "convolve": lambda a, b: np.convolve(a[0], b[0]),
    "convolve same": lambda a, b: np.convolve(a.ravel(), b[0], "same"),
    "correlate": lambda a, b: np.correlate(a.ravel(), b[0]),
    "polyval": lambda a, b: np.polyval(a[0], b),
    "einsum": lambda a, b: np.einsum("ij,kj->ik", a, b),
    "products": lambda a, b: np.dot(a, b.T) + np.inner(a, b) + np.outer(a[:, 0], b[:, 1]) + np.vdot(a, b) + np.trace(a),
    "tensordot": lambda a, b: np.tensordot(a, b, axes=([1], [1])),
    "linalg.norm": lambda a, b: np.linalg.norm(a) + np.linalg.norm(a, axis=1) + np.linalg.norm(a, 2),
    "linalg.solve": lambda a, b: np.linalg.solve(a[:, :3] + 3 * np.eye(3), b),
    "linalg.det": lambda a, b: np.linalg.det(a[:, :3]) + np.linalg.inv(a[:, :3] + 3 * np.eye(3)),
    "fft": lambda a, b: np.fft.rfft(a[0]).real,
    "conj": lambda a, b: np.conj(np.fft.fft(a[0])).imag + np.conjugate(np.fft.fft(b[0])).imag,
    "ufuncs": lambda a, b: np.sin(a) + np.hypot(a, b) + np.arctan2(a, b) + np.logaddexp(a, b) + np.maximum(a, b),
    "power": lambda a, b: np.power(np.abs(a), 1.5) + np.sqrt(np.abs(b)) + np.square(a) + np.cbrt(a) + np.reciprocal(b),
    "operators": lambda a, b: np.float64(2) * a + B * a - A / b + B.T[:1, :1] @ a[:1, :1] + (np.ones((3, 3)) @ a),
    "dtype": lambda a, b: np.add(a, b, dtype=np.float64),
    "modf": lambda a, b: np.modf(a)[0] + np.divmod(a, b)[1],
    "reduce": lambda a, b: np.add.reduce(a) + np.maximum.reduce(a, axis=None) + np.multiply.reduce(a, axis=0),
    "reduce keepdims": lambda a, b: (
        np.add.reduce(a, axis=1, keepdims=True) + np.logaddexp.reduce(a, axis=1, keepdims=True)
    ),
    "accumulate": lambda a, b: np.add.accumulate(a) + np.maximum.accumulate(a, axis=1),
    "outer": lambda a, b: np.multiply.outer(a[0], b[0]),
    "nan_to_num": lambda a, b: np.nan_to_num(a) + np.round(a, 1) + np.copy(a),
}
OTHERS: dict[str, Callable[[Any, Any], Any]] = {
    "argmax": lambda a, b: np.argmax(a, axis=0),
    "argsort": lambda a, b: np.argsort(a, axis=1),
    "nonzero": lambda a, b: np.nonzero(a > 0),
    "argwhere": lambda a, b: np.argwhere(a > 0),
    "comparisons": lambda a, b: np.greater(a, b) & np.equal(a, a) | np.isnan(a),
    "isclose": np.isclose,
    "allclose": lambda a, b: np.allclose(a, a),
    "all any": lambda a, b: np.all(a > -9, axis=0) & np.any(a > 0),
    "count_nonzero": lambda a, b: np.count_nonzero(a > 0, axis=0),
    "digitize": lambda a, b: np.digitize(a, [0.0, 1.0]),
    "searchsorted": lambda a, b: np.searchsorted(np.sort(A.ravel()), a),
    "histogram": lambda a, b: np.histogram(a, bins=3)[0],
    "shape": lambda a, b: (np.shape(a), np.ndim(a), np.size(a)),
    "zeros_like": lambda a, b: np.zeros_like(a),
    "array_equal": np.array_equal,
}


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple | list):
        for part in value:
            yield from leaves(part)
    else:
        yield value.detach().numpy() if isinstance(value, gg.Tensor) else value


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_values_and_gradients(name: str) -> None:
    function = DIFFERENTIABLE[name]
    expected = function(A, B)
    a, b = gg.tensor(A, requires_grad=True), gg.tensor(B, requires_grad=True)
    y = function(a, b)
    assert isinstance(y, gg.Tensor)
    assert y.requires_grad
    assert y.shape == np.shape(expected)
    np.testing.assert_allclose(y.detach().numpy(), expected, rtol=1e-10, atol=1e-12)
    rng = np.random.default_rng(2)
    weights, along_a, along_b = rng.normal(size=np.shape(expected)), rng.normal(size=A.shape), rng.normal(size=B.shape)
    (y * weights).sum().backward()
    predicted = sum(
        0.0 if x.grad is None else float((x.grad.numpy() * along).sum()) for x, along in ((a, along_a), (b, along_b))
    )
    step = 1e-6
    ahead, behind = (function(A + s * along_a, B + s * along_b) for s in (step, -step))
    slope = float(((ahead - behind) * weights).sum()) / (2 * step)
    assert slope == pytest.approx(predicted, rel=2e-5, abs=1e-6)


@pytest.mark.parametrize("name", [*DIFFERENTIABLE, *OTHERS])
def test_values_without_a_gradient(name: str) -> None:
    function = {**DIFFERENTIABLE, **OTHERS}[name]
    found = list(leaves(function(gg.tensor(A), gg.tensor(B))))
    expected = list(leaves(function(A, B)))
    assert len(found) == len(expected)
    for y, y_expected in zip(found, expected, strict=True):
        assert np.shape(y) == np.shape(y_expected)
        np.testing.assert_allclose(y, y_expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", OTHERS)
def test_what_has_no_derivative_works_on_tracked_tensors(name: str) -> None:
    a, b = gg.tensor(A, requires_grad=True), gg.tensor(B, requires_grad=True)
    for y, expected in zip(leaves(OTHERS[name](a, b)), leaves(OTHERS[name](A, B)), strict=True):
        np.testing.assert_array_equal(y, expected)


# --- nothing is lost in silence ---------------------------------------------------------------------------

REFUSED: dict[str, Callable[[Any], Any]] = {
    "asarray": np.asarray,
    "array of tensors": lambda t: np.array([t, t]),
    "float array": lambda t: np.zeros(4) + np.array(t[0]),
    "no counterpart": np.unwrap,
    "interp": lambda t: np.interp(t[0], np.arange(3.0), np.arange(3.0)),
    "apply_along_axis": lambda t: np.apply_along_axis(np.sum, 0, t),
    "unwrap": np.unwrap,
    "unknown argument": lambda t: np.std(t, where=A > 0),
    "out": lambda t: np.sin(t, out=np.zeros((3, 4))),
    "out of a function": lambda t: np.sum(t, axis=0, out=np.zeros(4)),
    "at": lambda t: np.add.at(np.zeros(4), [0, 1, 1, 3], t[0]),
    "reduceat": lambda t: np.add.reduceat(t, [0, 1]),
    "reduce of another": np.subtract.reduce,
    "ufunc without derivative": np.spacing,
    "copyto": lambda t: np.copyto(np.zeros((3, 4)), t),
    "memory": lambda t: np.frombuffer(memoryview(t.numpy() if isinstance(t, gg.Tensor) else t)),
    "math": lambda t: np.piecewise(t, [A > 0], [0.0]),
    "weights": lambda t: np.histogram(A, weights=t),
    "called by NumPy": lambda t: np.full(4, t[0]),
    "vectorize": np.vectorize(abs),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_gradient_is_never_dropped_in_silence(name: str) -> None:
    t = gg.tensor(A, requires_grad=True)
    with pytest.raises((errors.KindError, TypeError)) as caught:
        REFUSED[name](t * 2)
    if isinstance(caught.value, errors.KindError):
        assert "test_numpy_functions.py" in str(caught.value)


@pytest.mark.parametrize("name", [name for name in REFUSED if name not in {"math", "interp"}])
def test_the_same_calls_work_where_nothing_can_be_lost(name: str) -> None:
    found, expected = list(leaves(REFUSED[name](gg.tensor(A)))), list(leaves(REFUSED[name](A)))
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(one, np.float64), np.asarray(other, np.float64))


def test_unknown_functions_compute_on_detached_tensors() -> None:
    y = np.unwrap(gg.tensor(A))
    assert isinstance(y, gg.Tensor)
    np.testing.assert_allclose(y.numpy(), np.unwrap(A))
    filled = gg.tensor(A)
    np.copyto(filled, 0.0)
    assert not filled.numpy().any()
    target = gg.zeros(2)
    assert np.add(gg.ones(2), 1.0, out=target.detach()) is not None
    assert target.tolist() == [2.0, 2.0]


def test_without_recording_everything_computes() -> None:
    t = gg.tensor(A, requires_grad=True)
    with gg.no_grad():
        assert np.spacing(t).shape == (3, 4)
        assert not np.sin(t).requires_grad


def test_a_list_of_tracked_tensors_says_that_the_gradient_ends() -> None:
    t = gg.ones(3, requires_grad=True)
    for make in (gg.tensor, gg.as_tensor):
        with pytest.warns(errors.GradientLostWarning, match=r"cuts the graph \(.*test_numpy_functions.py[\s\S]*stack"):
            assert make([t[0], 2.0]).tolist() == [1.0, 2.0]
        assert make([t[0].detach(), 2.0]).tolist() == [1.0, 2.0]
        with gg.no_grad():
            assert make([t[0], t[1]]).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda t, u: t * u,
        lambda t, u: u * t,
        gg.add,
        lambda t, u: t @ u.T,
        lambda t, u: t - u,
        lambda t, u: gg.where(u > 0, t, 0.0),
        lambda t, u: gg.cat([t, u]),
        lambda t, u: t[u.argmax(0)[:2] % 3],
        lambda t, u: (t > u) * t,
        lambda t, u: gg.matmul(u, t.T),
    ],
)
def test_constants_of_pytorch_among_the_arguments(call: Any) -> None:
    torch = pytest.importorskip("torch", reason="another library's tensors are what this is about")
    t = gg.tensor(A, requires_grad=True)
    found, expected = call(t, torch.tensor(B)), call(t, gg.tensor(B))
    assert type(found) is gg.Tensor
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy())
    np.testing.assert_allclose(gg.autograd.grad(found.sum(), [t])[0], gg.autograd.grad(expected.sum(), [t])[0])
