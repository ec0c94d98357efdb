"""Least squares and pseudo-inverses against a reference in float64: also without full rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg

RNG = np.random.default_rng(1)
LIMIT = {"rcond": 1e-4}


def real(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def slope(f: Callable[..., Any], at: list[np.ndarray], along: list[np.ndarray], step: float = 1e-6) -> float:
    """The derivative of a NumPy function along a direction."""
    ahead = f(*(x + step * d for x, d in zip(at, along, strict=True)))
    behind = f(*(x - step * d for x, d in zip(at, along, strict=True)))
    return (ahead - behind) / (2 * step)


def found_slope(f: Callable[..., Any], at: list[np.ndarray], along: list[np.ndarray], single: bool) -> float:
    kinds = {"f": np.float32, "c": np.complex64} if single else {"f": np.float64, "c": np.complex128}
    xs = [gg.tensor(x.astype(kinds[x.dtype.kind]), requires_grad=True) for x in at]
    f(*xs).backward()
    return sum(float((np.conj(x.grad.numpy()) * d).real.sum()) for x, d in zip(xs, along, strict=True))


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize(("m", "n", "rank"), [(5, 3, 3), (5, 3, 2), (3, 5, 2), (4, 4, 2), (6, 4, 1), (3, 5, 3)])
def test_gradients_along_which_the_rank_stays(m: int, n: int, rank: int, single: bool) -> None:
    """Where the rank changes there is no derivative; along matrices of the same rank there is (Golub, Pereyra 1973)."""
    u, v, b, weight = real(m, rank), real(rank, n), real(m, 2), real(n, 2)
    du, dv, db = real(m, rank), real(rank, n), real(m, 2)
    at, along = [u, v, b], [du, dv, db]
    truth = slope(lambda u, v, b: (np.linalg.lstsq(u @ v, b, rcond=1e-4)[0] * weight).sum(), at, along)
    w = gg.tensor(weight.astype(np.float32 if single else np.float64))
    found = found_slope(lambda u, v, b: (gg.linalg.lstsq(u @ v, b, **LIMIT).solution * w).sum(), at, along, single)
    assert found == pytest.approx(truth, rel=2e-4 if single else 1e-7)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("driver", [None, "gels", "gelsd", "gelss"])
def test_residuals_and_their_gradients(driver: str | None, single: bool) -> None:
    a, b = real(6, 3), real(6, 2)
    at, along = [a, b], [real(6, 3), real(6, 2)]
    result = gg.linalg.lstsq(gg.tensor(a), gg.tensor(b), driver=driver)
    expected = np.linalg.lstsq(a, b, rcond=None)
    np.testing.assert_allclose(result.residuals.numpy(), expected[1], rtol=1e-12)
    truth = slope(lambda a, b: np.linalg.lstsq(a, b, rcond=None)[1].sum(), at, along)
    found = found_slope(lambda a, b: gg.linalg.lstsq(a, b, driver=driver).residuals.sum(), at, along, single)
    assert found == pytest.approx(truth, rel=2e-4 if single else 1e-7)


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (3, 3), (2, 5, 3)])
@pytest.mark.parametrize("deficient", [False, True])
def test_what_a_driver_gives_is_pytorchs(driver: str, shape: tuple[int, ...], deficient: bool) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch's results are compared")
    if deficient and driver == "gels":
        pytest.skip("gels needs a full rank")
    a, b = real(*shape), real(*shape[:-1], 2)
    if deficient:
        a[..., 2] = a[..., 0] + a[..., 1]
    theirs = torch.linalg.lstsq(torch.tensor(a), torch.tensor(b), driver=driver)
    ours = gg.linalg.lstsq(gg.tensor(a), gg.tensor(b), driver=driver)
    for name, x, y in zip(ours._fields, ours, theirs, strict=True):
        assert tuple(x.shape) == tuple(y.shape), name
        # PyTorch's gelsy takes many of the wide matrices here for ones of lower rank, at a condition of 2.
        ranks = np.linalg.matrix_rank(a) if y.numel() else y.numpy()
        truth = {"solution": np.linalg.pinv(a, rcond=1e-10) @ b, "rank": ranks}.get(name, y.numpy())
        np.testing.assert_allclose(x.numpy(), truth, rtol=1e-9, atol=1e-11, err_msg=name)


def test_an_unknown_driver() -> None:
    with pytest.raises(ValueError, match="'gelsd'"):
        gg.linalg.lstsq(gg.ones(3, 2), gg.ones(3, 1), driver="gelsx")


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize(("size", "rank"), [(4, 4), (4, 2), (5, 3)])
def test_the_pseudo_inverse_of_a_hermitian_matrix(size: int, rank: int, is_complex: bool, single: bool) -> None:
    def part() -> np.ndarray:
        return real(size, rank) + (1j * real(size, rank) if is_complex else 0)

    middle, weight = np.diag(1 + RNG.random(rank)), real(size, size)
    middle[0] *= -1
    u, du = np.linalg.qr(part())[0], part()  # well conditioned, whichever numbers are drawn
    h, dh = u @ middle @ u.conj().T, du @ middle @ u.conj().T
    truth = slope(
        lambda u: (np.linalg.pinv(u @ middle @ u.conj().T, rcond=1e-4, hermitian=True).real * weight).sum(), [u], [du]
    )
    w = gg.tensor(weight.astype(np.float32 if single else np.float64))
    found = found_slope(
        lambda h: (gg.linalg.pinv(h, rtol=1e-4, hermitian=True).real * w).sum(), [h], [dh + dh.conj().T], single
    )
    assert found == pytest.approx(truth, rel=2e-3 if single else 1e-6)


@pytest.mark.parametrize("hermitian", [False, True])
def test_only_one_triangle_is_read(hermitian: bool) -> None:
    x = real(4, 4)
    mirrored = np.tril(x) + np.tril(x, -1).T if hermitian else x
    found = gg.linalg.pinv(gg.tensor(x), hermitian=hermitian).numpy()
    np.testing.assert_allclose(found, np.linalg.pinv(mirrored), rtol=1e-8)
