"""Functions of matrices against PyTorch's: real and complex, single and batched, wide and tall; every result by itself.

Values, gradients and second derivatives are compared with PyTorch's, and forward mode with the gradients by
Re <g, J t> = Re <JT g, t>.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, func
from glassgrad.ops.core import PRIMITIVES
from tests.ops.against_torch import torch

Array = np.ndarray[Any, Any]
LEADS: tuple[tuple[int, ...], ...] = ((), (5, 1), (0,))


class Entry(NamedTuple):
    """A function of a library and its arguments, and the shapes of these."""

    call: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]


def adjoint(x: Any) -> Any:
    return x.mT.conj()


def positive(x: Any) -> Any:
    """Return a positive definite matrix that depends on x."""
    return x @ adjoint(x) + 3 * diagonal_like(x)


def diagonal_like(x: Any) -> Any:
    lib = gg if isinstance(x, gg.Tensor) else torch
    return lib.tensor(np.eye(x.shape[-2], dtype=str(x.dtype).removeprefix("torch.")))


def far(x: Any) -> Any:
    """Return a matrix far from singular, whose rows need no exchange."""
    return x + 4 * diagonal_like(x)


def hermitian(x: Any) -> Any:
    return x + adjoint(x)


def sizes(x: Any) -> Any:
    """Return what does not change with the phase of a vector."""
    return x.abs() ** 3


def of_eigh(w: Any, v: Any) -> tuple[Any, ...]:
    return w, sizes(v)


def of_svd(u: Any, s: Any, vh: Any) -> tuple[Any, ...]:
    return sizes(u), s, sizes(vh), (u * s[..., None, :] ** 2) @ vh


def of_whole_svd(count: int, u: Any, s: Any, vh: Any) -> tuple[Any, ...]:
    """Return what the vectors say that belong to singular values; the others may be turned."""
    return of_svd(u[..., :count], s, vh[..., :count, :])


S3, WIDE, TALL = (3, 3), (2, 4), (4, 2)
ENTRIES = {
    "cholesky": Entry(lambda lib, x: lib.linalg.cholesky(positive(x)), (S3,)),
    "cholesky upper": Entry(lambda lib, x: lib.linalg.cholesky(positive(x), upper=True), (S3,)),
    "cholesky_ex": Entry(lambda lib, x: lib.linalg.cholesky_ex(positive(x))[0], (S3,)),
    "qr": Entry(lambda lib, x: tuple(lib.linalg.qr(x)), (S3,)),
    "qr tall": Entry(lambda lib, x: tuple(lib.linalg.qr(x)), (TALL,)),
    "qr wide": Entry(lambda lib, x: tuple(lib.linalg.qr(x)), (WIDE,)),
    "qr of one column": Entry(lambda lib, x: tuple(lib.linalg.qr(x)), ((3, 1),)),
    "eigvalsh": Entry(lambda lib, x: lib.linalg.eigvalsh(hermitian(x)), (S3,)),
    "eigvalsh upper": Entry(lambda lib, x: lib.linalg.eigvalsh(hermitian(x), UPLO="U"), (S3,)),
    "eigh": Entry(lambda lib, x: of_eigh(*lib.linalg.eigh(hermitian(x))), (S3,)),
    "svdvals": Entry(lambda lib, x: lib.linalg.svdvals(x), (WIDE,)),
    **{
        f"svd {name}": Entry(
            lambda lib, x: of_svd(*lib.linalg.svd(x, full_matrices=False)),
            (shape,),
        )
        for name, shape in (("square", S3), ("tall", TALL), ("wide", WIDE), ("row", (1, 3)))
    },
    **{
        f"svd full {name}": Entry(
            lambda lib, x: of_whole_svd(min(x.shape[-2:]), *lib.linalg.svd(x, full_matrices=True)), (shape,)
        )
        for name, shape in (("tall", TALL), ("wide", WIDE), ("square", S3))
    },
    "svd full": Entry(lambda lib, x: lib.linalg.svd(x, full_matrices=True)[1], (TALL,)),
    "nuclear norm": Entry(lambda lib, x: lib.linalg.matrix_norm(x, "nuc"), (WIDE,)),
    "inv": Entry(lambda lib, x: lib.linalg.inv(far(x)), (S3,)),
    "inv_ex": Entry(lambda lib, x: lib.linalg.inv_ex(far(x))[0], (S3,)),
    "pinv tall": Entry(lambda lib, x: lib.linalg.pinv(x), (TALL,)),
    "pinv wide": Entry(lambda lib, x: lib.linalg.pinv(x), (WIDE,)),
    "pinv of low rank": Entry(lambda lib, x: lib.linalg.pinv(x @ adjoint(x), rtol=1e-6), ((4, 2),)),
    "pinv with atol": Entry(lambda lib, x: lib.linalg.pinv(x @ adjoint(x), atol=1e-6), ((4, 2),)),
    "pinv hermitian": Entry(lambda lib, x: lib.linalg.pinv(hermitian(x), hermitian=True), (S3,)),
    "det": Entry(lambda lib, x: lib.linalg.det(x), (S3,)),
    "slogdet": Entry(lambda lib, x: tuple(lib.linalg.slogdet(x)), (S3,)),
    "logdet": Entry(lambda lib, x: lib.logdet(positive(x)), (S3,)),
    "solve": Entry(lambda lib, a, b: lib.linalg.solve(far(a), b), (S3, (3, 2))),
    "solve of vectors": Entry(lambda lib, a, b: lib.linalg.solve(far(a), b), (S3, (3,))),
    "solve from the right": Entry(lambda lib, a, b: lib.linalg.solve(far(a), b, left=False), (S3, (2, 3))),
    "solve_ex": Entry(lambda lib, a, b: lib.linalg.solve_ex(far(a), b)[0], (S3, (3, 2))),
    "solve_ex of vectors": Entry(lambda lib, a, b: lib.linalg.solve_ex(far(a), b)[0], (S3, (3,))),
    "solve_ex from the right": Entry(lambda lib, a, b: lib.linalg.solve_ex(far(a), b, left=False)[0], (S3, (2, 3))),
    **{
        f"solve_triangular {upper} {left} {unit}": Entry(
            lambda lib, a, b, upper=upper, left=left, unit=unit: lib.linalg.solve_triangular(
                far(a), b, upper=upper, left=left, unitriangular=unit
            ),
            (S3, (3, 2) if left else (2, 3)),
        )
        for upper in (True, False)
        for left in (True, False)
        for unit in (True, False)
    },
    **{f"lu {shape}": Entry(lambda lib, x: tuple(lib.linalg.lu(x))[1:], (shape,)) for shape in (S3, WIDE, TALL)},
    **{
        f"lu_factor {shape}": Entry(lambda lib, x: lib.linalg.lu_factor(x)[0], (shape,)) for shape in (S3, WIDE, TALL)
    },
    **{
        f"lu_solve {left} {turned}": Entry(
            lambda lib, a, b, left=left, turned=turned: lib.linalg.lu_solve(
                *lib.linalg.lu_factor(a), b, left=left, adjoint=turned
            ),
            (S3, (3, 2) if left else (2, 3)),
        )
        for left in (True, False)
        for turned in (True, False)
    },
    "matrix_exp": Entry(lambda lib, x: lib.linalg.matrix_exp(x), (S3,)),
    "eigvals": Entry(lambda lib, x: sizes(lib.linalg.eigvals(x)), (S3,)),
    "eig": Entry(lambda lib, x: sizes(lib.linalg.eig(x)[1]), (S3,)),
    **{
        f"matrix_power {n}": Entry(lambda lib, x, n=n: lib.linalg.matrix_power(far(x), n), (S3,))
        for n in (0, 1, 2, 5, -2)
    },
}  # fmt: skip  # a table


def drawn(entry: Entry, lead: tuple[int, ...], kind: str) -> list[Array]:
    rng = np.random.default_rng([7, len(lead)])
    found = [rng.normal(size=(*lead, *shape)) for shape in entry.shapes]
    return [x + 1j * rng.normal(size=x.shape) if kind == "c" else x for x in found]


def results(entry: Entry, lib: Any, x: Sequence[Any]) -> tuple[Any, ...]:
    found = entry.call(lib, *x)
    return found if isinstance(found, tuple) else (found,)


def weights(y: Any, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    found = rng.normal(size=tuple(y.shape))
    return found + 1j * rng.normal(size=found.shape) if "complex" in str(y.dtype) else found


def loss(lib: Any, parts: Any) -> Any:
    """Return Re <g, y> of the results in `parts`, a mapping from their number."""
    total: Any = 0
    for at, y in parts.items():
        term = (lib.tensor(weights(y, at).conj()) * y).sum()
        total = total + (term.real if "complex" in str(term.dtype) else term)
    return total


def derivatives(entry: Entry, lib: Any, arrays: list[Array], which: Sequence[int]) -> list[Array]:
    """Return the gradients of the chosen results, and those of the squares of these."""
    x = [lib.tensor(one, requires_grad=True) for one in arrays]
    y = results(entry, lib, x)
    first = lib.autograd.grad(loss(lib, {at: y[at] for at in which}), x, create_graph=True, allow_unused=True)
    found = [g for g in first if g is not None]
    if any(g.requires_grad for g in found):
        second = lib.autograd.grad(sum((g.abs() ** 2).sum() for g in found), x, allow_unused=True)
        found += [g for g in second if g is not None]
    return [plain(g) for g in found]


def plain(x: Any) -> Array:
    """Return the numbers of a tensor of either library."""
    return np.asarray((x if isinstance(x, gg.Tensor) else x.resolve_conj()).detach().numpy())


@pytest.mark.parametrize("lead", LEADS, ids=["one", "many", "none"])
@pytest.mark.parametrize("kind", "fc")
@pytest.mark.parametrize("name", ENTRIES)
def test_values_and_derivatives_are_pytorchs(name: str, kind: str, lead: tuple[int, ...]) -> None:
    entry = ENTRIES[name]
    arrays = drawn(entry, lead, kind)
    y, expected = (results(entry, lib, [lib.tensor(x) for x in arrays]) for lib in (gg, torch))
    for mine, theirs in zip(y, expected, strict=True):
        assert str(mine.dtype) == str(theirs.dtype).removeprefix("torch.")
        np.testing.assert_allclose(plain(mine), plain(theirs), rtol=1e-9, atol=1e-11)
    chosen = [[at] for at in range(len(y))] + ([list(range(len(y)))] if len(y) > 1 else [])
    for which in chosen:
        mine, theirs = (derivatives(entry, lib, arrays, which) for lib in (gg, torch))
        for a, b in zip(mine, theirs, strict=False):
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-8 * max(1.0, float(np.abs(b).max(initial=0))))


def in_parts(entry: Entry, kind: str) -> Callable[..., Any]:
    """Return the function with real arguments and results: forward mode takes no complex arguments."""

    def call(*x: Any) -> Any:
        whole = [gg.complex(*x[at : at + 2]) for at in range(0, len(x), 2)] if kind == "c" else x
        found = results(entry, gg, whole)
        return tuple(part for y in found for part in ((y.real, y.imag) if y.dtype.kind == "c" else (y,)))

    return call


@pytest.mark.parametrize("kind", "fc")
@pytest.mark.parametrize("name", ENTRIES)
def test_forward_mode_agrees_with_the_gradients(name: str, kind: str) -> None:
    entry, rng = ENTRIES[name], np.random.default_rng(5)
    f = in_parts(entry, kind)
    for lead in LEADS:
        arrays = [part for x in drawn(entry, lead, kind) for part in ((x.real, x.imag) if kind == "c" else (x,))]
        x = tuple(map(gg.tensor, arrays))
        y, pull = func.vjp(f, *x)
        g = tuple(gg.tensor(rng.normal(size=part.shape)) for part in y)
        gradients = pull(g)
        for at, one in enumerate(x):
            t = tuple(gg.tensor(rng.normal(size=one.shape)) if other is one else 0 * other for other in x)
            moved = func.jvp(f, x, t)[1]
            assert [(part.shape, part.dtype) for part in moved] == [(part.shape, part.dtype) for part in y]
            found = sum(float((a * b).sum()) for a, b in zip(g, moved, strict=True))
            assert found == pytest.approx(float((gradients[at] * t[at]).sum()), rel=1e-7, abs=1e-8), (lead, at)


@pytest.mark.parametrize("name", ENTRIES)
def test_numbers_keep_their_precision(name: str) -> None:
    entry = ENTRIES[name]
    for kind, dtype in (("f", gg.float32), ("c", gg.complex64)):
        x = [gg.tensor(one, dtype=dtype, requires_grad=True) for one in drawn(entry, (2,), kind)]
        y = results(entry, gg, x)
        assert {part.dtype for part in y} <= {gg.float32, dtype}
        total = loss(gg, {at: part for at, part in enumerate(y) if part.requires_grad})
        if isinstance(total, gg.Tensor):
            total.backward()
        assert {one.grad.dtype for one in x if one.grad is not None} <= {dtype}


def test_gradients_that_depend_on_a_phase_are_refused_and_rounding_is_not() -> None:
    z = drawn(ENTRIES["eigh"], (2,), "c")[0]

    def vectors(name: str, x: Any) -> Any:
        return gg.linalg.eigh(hermitian(x))[1] if name == "eigh" else gg.linalg.svd(x, full_matrices=False)[0]

    for name in ("eigh", "svd"):
        x = gg.tensor(z, requires_grad=True)
        with pytest.raises(errors.AutogradError, match="phase"):
            (vectors(name, x).real * gg.tensor(z.real)).sum().backward()
        large = 1e12 * (sizes(vectors(name, x)) * gg.tensor(z.real)).sum()  # rounding turns it by far more than 1e-2
        (g,) = gg.autograd.grad(large, x)
        small = (sizes(vectors(name, x)) * gg.tensor(z.real)).sum()
        np.testing.assert_allclose(g.numpy() / 1e12, gg.autograd.grad(small, x)[0].numpy(), rtol=1e-6, atol=1e-9)
    # u and v may turn together: what depends on their common phase only through u vh is fine.
    x = gg.tensor(z, requires_grad=True)
    u, _, vh = gg.linalg.svd(x, full_matrices=False)
    (((u @ vh) * gg.tensor(z.conj())).sum().real).backward()
    t = torch.tensor(z, requires_grad=True)
    u, _, vh = torch.linalg.svd(t, full_matrices=False)
    (((u @ vh) * torch.tensor(z.conj())).sum().real).backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), plain(t.grad), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 4, 3)])
def test_all_of_q_or_r_alone(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(3).normal(size=shape)
    for mode in ("complete", "r", "reduced"):
        found, expected = gg.linalg.qr(gg.tensor(x), mode), torch.linalg.qr(torch.tensor(x), mode)
        for mine, theirs in zip(found, expected, strict=True):
            assert mine.shape == tuple(theirs.shape)
            np.testing.assert_allclose(plain(mine), plain(theirs), rtol=1e-10, atol=1e-12)
    of_array = gg.linalg.qr(x, "complete")  # an array has no gradient to refuse
    np.testing.assert_allclose(np.asarray(of_array[0] @ of_array[1]), x, atol=1e-12)
    tracked = gg.tensor(x, requires_grad=True)
    if shape[-2] > shape[-1]:
        with pytest.raises(errors.AutogradError, match="complete"):
            gg.linalg.qr(tracked, "complete")
    else:
        assert gg.linalg.qr(tracked, "complete")[1].requires_grad


def test_parts_of_factors_that_nobody_asked_for_are_empty() -> None:
    x = np.random.default_rng(3).normal(size=(2, 3, 3))
    for asked in ((True, True), (True, False), (False, True), (False, False)):
        found = gg.lu_unpack(*gg.linalg.lu_factor(gg.tensor(x)), *asked)
        expected = torch.lu_unpack(*torch.linalg.lu_factor(torch.tensor(x)), *asked)
        for mine, theirs in zip(found, expected, strict=True):
            assert type(mine) is gg.Tensor
            np.testing.assert_allclose(plain(mine), plain(theirs), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (5, 3), (1, 1), (2, 4, 4)])
def test_factors_without_exchanges_multiply_to_the_matrix(shape: tuple[int, ...]) -> None:
    """LAPACK would exchange the rows of these; a column of zeros is left alone."""
    x = np.random.default_rng(5).normal(size=shape) - 0.3 * np.eye(*shape[-2:])
    x[..., 0, :] *= 0.1
    y = np.asarray(PRIMITIVES["lu"](x))
    k = min(shape[-2:])
    lower, upper = np.tril(y[..., :k], -1) + np.eye(shape[-2], k), np.triu(y[..., :k, :])
    np.testing.assert_allclose(lower @ upper, x, rtol=1e-9, atol=1e-12)
    x[..., 0] = 0
    y = np.asarray(PRIMITIVES["lu"](x))
    assert np.isfinite(y).all()
    assert not y[..., 0].any()


def test_one_triangle_is_read_for_info_too() -> None:
    x = np.array([[4.0, 1.0], [1.0, 3.0]])
    for upper in (True, False):
        given = x.copy()
        given[(1, 0) if upper else (0, 1)] = 50.0  # with this one it would not be positive definite
        for a in (given, -given):
            found = gg.linalg.cholesky_ex(gg.tensor(a), upper=upper)
            expected = torch.linalg.cholesky_ex(torch.tensor(a), upper=upper)
            assert found.info.item() == expected.info.item()
            if not found.info.item():
                np.testing.assert_allclose(plain(found.L), plain(expected.L))


def test_one_matrix_beside_many_and_vectors_beside_matrices() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 3, 3)) + 3 * np.eye(3), rng.normal(size=(2, 3))
    for right in (b, b[0], np.stack([b.T, b.T]), b.T, b.T[:, :1]):
        found, expected = (
            gg.linalg.solve(gg.tensor(a), gg.tensor(right)),
            torch.linalg.solve(*map(torch.tensor, (a, right))),
        )
        np.testing.assert_allclose(plain(found), plain(expected), rtol=1e-10)
    for bad in (np.ones(3), np.ones((3, 2))):
        for call in (gg.linalg.solve, lambda a, b: gg.linalg.solve_triangular(a, b, upper=True)):
            with pytest.raises(errors.ShapeError, match="square"):
                call(gg.tensor(bad), gg.tensor(b))


def test_a_singular_value_on_the_bound_counts_as_zero() -> None:
    x = np.diag([2.0, 0.5])
    for bounds in ({"atol": 0.5}, {"atol": 0.4}, {"atol": 0.1, "rtol": 0.25}, {"rtol": 0.2}):
        found, expected = gg.linalg.pinv(gg.tensor(x), **bounds), torch.linalg.pinv(torch.tensor(x), **bounds)
        np.testing.assert_allclose(plain(found), plain(expected), rtol=1e-12, atol=1e-14)


def test_the_default_bound_of_singular_values_does_not_depend_on_how_many_matrices_there_are() -> None:
    x = np.broadcast_to(np.diag([1.0, 1e-14]), (1000, 2, 2))
    np.testing.assert_allclose(plain(gg.linalg.pinv(gg.tensor(x)))[0], np.diag([1.0, 1e14]), rtol=1e-9)


def test_unknown_words_are_refused() -> None:
    x = gg.tensor(np.eye(3))
    with pytest.raises(errors.ArgumentError, match=r"mode='all'[\s\S]*'reduced', 'complete' or 'r'"):
        gg.linalg.qr(x, "all")
    for call in (gg.linalg.eigh, gg.linalg.eigvalsh):
        with pytest.raises(errors.ArgumentError, match=r"UPLO='X'[\s\S]*'L' or 'U'"):
            call(x, UPLO="X")
        assert call(x, UPLO="u") is not None


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
def test_shapes_of_singular_vectors(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(2).normal(size=shape)
    for full in (True, False):
        found, expected = (lib.linalg.svd(lib.tensor(x), full_matrices=full) for lib in (gg, torch))
        assert [y.shape for y in found] == [tuple(y.shape) for y in expected]
        f = functools.partial(gg.linalg.svd, full_matrices=full)
        vectors = func.jvp(f, (gg.tensor(x),), (gg.ones(shape),))[1][::2]
        assert [y.shape for y in vectors] == [found[0].shape, found[2].shape]
        k = min(shape)
        assert not vectors[0].numpy()[:, k:].any()  # those that no singular value belongs to stay
        assert not vectors[1].numpy()[k:].any()
        old, theirs = (lib.svd(lib.tensor(x), some=not full) for lib in (gg, torch))
        assert [y.shape for y in old] == [tuple(y.shape) for y in theirs]
        np.testing.assert_allclose(plain(old[2][:, :2]) ** 2, plain(theirs[2][:, :2]) ** 2, rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_large_products_are_the_sums_that_they_stand_for(dtype: str) -> None:
    rng = np.random.default_rng(6)
    for shapes in (((100, 80), (80, 90)), ((3, 60, 70), (70, 50)), ((3, 60, 70), (3, 70, 50))):
        a, b = (rng.normal(size=shape).astype(dtype) for shape in shapes)
        expected = np.einsum("...ij,...jk->...ik", a, b, dtype=np.result_type(dtype, np.float64))
        found = gg.matmul(gg.tensor(a), gg.tensor(b))
        assert str(found.dtype) == dtype
        np.testing.assert_allclose(plain(found), expected, rtol=1e-4, atol=1e-4 if dtype == "float32" else 1e-11)


def test_a_norm_of_zero_leaves_the_gradients_of_the_others_alone() -> None:
    rows = np.array([[3.0, 4.0], [0.0, 0.0], [1.0, 0.0]])
    x = gg.tensor(rows, requires_grad=True)
    gg.linalg.vector_norm(x, dim=1).sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), [[0.6, 0.8], [0.0, 0.0], [1.0, 0.0]], rtol=1e-12)
