"""LU, eigenvalues of general matrices, the exponential and the factors that raise no error, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from tests.ops.against_torch import compare, real, torch

SHAPES = [(3, 3), (5, 3), (3, 5), (2, 4, 4), (2, 4, 2), (1, 1), (0, 0), (2, 0, 3)]


@pytest.mark.parametrize("shape", SHAPES)
def test_lu(shape: tuple[int, ...]) -> None:
    x = real(*shape)
    compare(gg.linalg.lu, torch.linalg.lu, x)
    found, expected = gg.linalg.lu_factor_ex(gg.tensor(x)), torch.linalg.lu_factor_ex(torch.tensor(x))
    for name in ("LU", "pivots", "info"):
        y, wanted = getattr(found, name), getattr(expected, name)
        assert str(y.dtype) == str(wanted.dtype).removeprefix("torch.")
        np.testing.assert_allclose(y.numpy(), wanted.numpy(), rtol=1e-12)
    compare(lambda a: gg.linalg.lu_factor(a).LU, lambda a: torch.linalg.lu_factor(a)[0], x)
    compare(lambda a: gg.lu_unpack(*gg.lu(a)), lambda a: torch.lu_unpack(*torch.linalg.lu_factor(a)), x)


@pytest.mark.parametrize("a", [np.zeros((3, 3)), np.ones((3, 3)), np.zeros((4, 2)), np.array([[0.0, 2], [0, 1]])])
def test_singular_matrices_have_factors_too(a: np.ndarray[Any, Any]) -> None:
    for y, wanted in zip(gg.linalg.lu(gg.tensor(a)), torch.linalg.lu(torch.tensor(a)), strict=True):
        np.testing.assert_array_equal(y.numpy(), wanted.numpy())


def test_rows_that_are_as_good_as_each_other_agree_with_lapack() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        a = rng.integers(-1, 2, (4, 4)).astype(np.float64)
        p, low, up = gg.linalg.lu(gg.tensor(a))
        np.testing.assert_allclose((p @ low @ up).numpy(), a, atol=1e-12)
        for y, wanted in zip((p, low, up), torch.linalg.lu(torch.tensor(a)), strict=True):
            np.testing.assert_allclose(y.numpy(), wanted.numpy(), atol=1e-12)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
@pytest.mark.parametrize("lead", [(), (2,)])
def test_lu_solve(left: bool, adjoint: bool, lead: tuple[int, ...]) -> None:
    def call(lib: Any, a: Any, b: Any) -> Any:
        return lib.linalg.lu_solve(*lib.linalg.lu_factor(a), b, left=left, adjoint=adjoint)

    b = real(*lead, 4, 2) if left else real(*lead, 2, 4)
    compare(lambda *x: call(gg, *x), lambda *x: call(torch, *x), real(*lead, 4, 4, seed=1), b, rtol=1e-7)


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (1, 1), (0, 0)])
def test_exponential(shape: tuple[int, ...]) -> None:
    compare(gg.matrix_exp, torch.matrix_exp, real(*shape), rtol=1e-8)
    compare(lambda x: gg.linalg.matrix_exp(5 * x), lambda x: torch.linalg.matrix_exp(5 * x), real(*shape), rtol=1e-7)


# Functions that do not change when an eigenvector is turned: the others are refused by PyTorch.
INVARIANT: dict[str, Callable[[Any, Any], Any]] = {
    "values": lambda lib, x: lib.linalg.eigvals(x).abs().sum(),
    "parts": lambda lib, x: (lib.linalg.eig(x)[0].real ** 3).sum() + (lib.linalg.eig(x)[0].imag ** 2).sum(),
    "sizes": lambda lib, x: (lib.linalg.eig(x)[1].abs() ** 3).sum(),
    "both": lambda lib, x: (lib.linalg.eig(x)[1].abs() ** 3 * lib.linalg.eig(x)[0].abs()[..., None, :]).sum(),
}


@pytest.mark.parametrize("name", INVARIANT)
@pytest.mark.parametrize("shape", [(3, 3), (5, 5), (2, 4, 4)])
def test_eigenvalues(name: str, shape: tuple[int, ...]) -> None:
    compare(lambda x: INVARIANT[name](gg, x), lambda x: INVARIANT[name](torch, x), real(*shape), rtol=1e-8, atol=1e-9)


def test_eigenvectors_are_lapacks_and_their_gradient_is_that_of_its_choice() -> None:
    x = real(4, 4, seed=3)
    values, vectors = (y.numpy() for y in gg.linalg.eig(gg.tensor(x)))
    np.testing.assert_allclose(x @ vectors, vectors * values, atol=1e-12)
    np.testing.assert_allclose((abs(vectors) ** 2).sum(0), 1)
    assert not np.take_along_axis(vectors, abs(vectors).argmax(0)[None], 0).imag.any()

    def loss(a: Any) -> Any:
        values, vectors = gg.linalg.eig(a)
        return (vectors.real * gg.tensor(real(4, 4))).sum() + (vectors.imag * values.imag).sum()

    assert gg.verify.gradcheck(loss, (gg.tensor(x, requires_grad=True),))


def test_what_cannot_be_factored_says_so_in_info() -> None:
    a = np.stack([np.eye(3) * 2, np.diag([1.0, -1.0, 1.0]), np.zeros((3, 3))])
    for name in ("cholesky_ex", "inv_ex"):
        y, info = getattr(gg.linalg, name)(gg.tensor(a))
        expected = getattr(torch.linalg, name)(torch.tensor(a))[1]
        np.testing.assert_array_equal(info.numpy(), expected.numpy())
        assert np.isnan(y.numpy()).all(axis=(1, 2)).tolist() == (expected > 0).tolist()
        with pytest.raises(errors.ArgumentError, match="info is 0"):
            getattr(gg.linalg, name)(gg.tensor(a), check_errors=True)
    b = real(3, 3, 2)
    y, info = gg.linalg.solve_ex(gg.tensor(a), gg.tensor(b))
    assert info.tolist() == [0, 0, 1]
    np.testing.assert_allclose(y.numpy()[:2], np.linalg.solve(a[:2], b[:2]))
    assert np.isnan(y.numpy()[2]).all()


def test_factors_that_do_not_raise_have_the_gradients_of_those_that_do() -> None:
    x = real(2, 3, 3)
    compare(
        lambda a: gg.linalg.cholesky_ex(a @ a.mT + 3 * gg.eye(3))[0],
        lambda a: torch.linalg.cholesky(a @ a.mT + 3 * torch.eye(3)),
        x,
    )
    compare(lambda a: gg.linalg.inv_ex(a).inverse, torch.linalg.inv, x, rtol=1e-7)
    compare(lambda a, b: gg.linalg.solve_ex(a, b).result, torch.linalg.solve, x, real(2, 3, 2), rtol=1e-7)


@pytest.mark.parametrize("name", ["matrix_exp", "lu_factor", "lu"])
def test_complex_matrices(name: str) -> None:
    z = real(3, 3) + 1j * real(3, 3, seed=1)
    found, expected = getattr(gg.linalg, name)(gg.tensor(z)), getattr(torch.linalg, name)(torch.tensor(z))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-10)


def test_eigenvalues_of_complex_matrices() -> None:
    a, b = real(3, 3), real(3, 3, seed=1)
    compare(
        lambda x, y: gg.linalg.eigvals(gg.complex(x, y)).abs(),
        lambda x, y: torch.linalg.eigvals(torch.complex(x, y)).abs(),
        a,
        b,
    )


@pytest.mark.parametrize(
    "function",
    [
        gg.matrix_exp,
        lambda x: gg.linalg.lu(x)[2],
        lambda x: gg.linalg.inv_ex(x)[0],
    ],
)
def test_compiled_they_give_what_they_give_eagerly(function: Callable[[Any], Any]) -> None:
    def step(x: Any) -> Any:
        return gg.func.grad(lambda a: (function(a) ** 2).sum())(x)

    x = gg.tensor(real(4, 4, seed=5).astype(np.float32))
    np.testing.assert_allclose(gg.compile(step)(x).numpy(), step(x).numpy(), rtol=2e-3, atol=1e-3)


def test_eigenvectors_with_zeros_have_finite_gradients() -> None:
    """Of several components without imaginary part the largest is the one that stays real, and none that is 0."""
    start = np.array([[1.0, 1.0, 0.5], [0.0, 3.0, -1.0], [0.0, 0.0, 5.0]])
    parts = gg.tensor(start, requires_grad=True), gg.tensor(0.0 * start, requires_grad=True)
    _, vectors = gg.linalg.eig(gg.complex(*parts))
    loss = (vectors.real * gg.tensor(real(3, 3))).sum() + (vectors.imag * gg.tensor(real(3, 3, seed=2))).sum()
    for g in gg.autograd.grad(loss, parts):
        assert np.isfinite(g.numpy()).all()
        assert g.numpy().any()


def test_eigenvalues_of_integers_of_nothing_and_of_what_is_not_square() -> None:
    whole = np.array([[2, 1], [1, 4]])
    for y, expected in zip(gg.linalg.eig(gg.tensor(whole)), np.linalg.eig(whole), strict=True):
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-6)
    for shape in ((0, 0), (2, 0, 0)):
        x = gg.zeros(shape, requires_grad=True)
        values, vectors = gg.linalg.eig(x)
        assert (values.shape, vectors.shape) == (shape[:-1], shape)
        (values.abs().sum() + vectors.abs().sum()).backward()
        assert x.grad is not None
        assert x.grad.shape == shape
    for bad in (gg.ones(3), gg.ones((2, 3))):
        with pytest.raises(errors.ArgumentError, match=r"eig: input=.*\n?.*\(\.\.\., n, n\)"):
            gg.linalg.eig(bad)
