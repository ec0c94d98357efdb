"""Linear algebra and einsum against PyTorch: values and gradients; degenerate cases; messages for bad input.

That each derivative is right to second order, in both modes and under vmap, follows from the entries'
samples in the tests of the registry; here are the public functions with their options.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad import linalg as L
from glassgrad.ops.einsum import _plan
from tests.ops.against_torch import compare, real

torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
T = torch.linalg


def square(*lead: int, size: int = 3) -> np.ndarray[Any, Any]:
    return real(*lead, size, size) + 3 * np.eye(size)


def positive(*lead: int, size: int = 3) -> np.ndarray[Any, Any]:
    x = real(*lead, size, size)
    return x @ x.swapaxes(-1, -2) + size * np.eye(size)


# --- einsum ---------------------------------------------------------------------------------------

SIZES = {"a": 2, "b": 3, "c": 4, "d": 2, "e": 3, "f": 2, "i": 3, "j": 4, "k": 2, "l": 3}
EQUATIONS = (
    "ij,jk->ik", "ij,jk", "ij->ji", "ij->", "ii->i", "ii", "iij->j", "ij,ij->i", "ij,ij", "i,j->ij", "bij,bjk->bik",
    "bij,bkj->bik", "abc,cd,de->abe", "ab,bc,cd,da", "abc,abd,abe->cde", "...ij,...jk->...ik", "...ij,jk->...ik",
    "i...,i...->...", "ij,kl->ikjl", "abcd,cdef->abef", "bij,ij->bij", "ijk,ijk,ijk->i", "a,ab,abc->abc", "ij,j,k->",
    "iji->j", "abab->ab", "i->", "i,i", "bi,bj,bk->ijk", "ab,cd->", " i j , j k -> i k ",
)  # fmt: skip  # a table


def operands(equation: str) -> list[np.ndarray[Any, Any]]:
    terms = equation.replace(" ", "").split("->")[0].split(",")
    shapes = [
        [n for char in term.replace("...", ".") for n in ([2, 3] if char == "." else [SIZES[char]])] for term in terms
    ]
    return [real(*shape, seed=position) for position, shape in enumerate(shapes)]


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum(equation: str) -> None:
    compare(lambda *xs: gg.einsum(equation, *xs), lambda *xs: torch.einsum(equation, *xs), *operands(equation))


def test_einsum_broadcasts_sizes_of_one_and_takes_lists() -> None:
    for equation in ("ij,ij->ij", "ij,ij->j", "ij,ij->"):
        compare(
            lambda a, b, e=equation: gg.einsum(e, a, b),
            lambda a, b, e=equation: torch.einsum(e, a, b),
            real(1, 3),
            real(4, 3),
        )
    equation = "...i,...i->..."
    compare(lambda *xs: gg.einsum(equation, *xs), lambda *xs: torch.einsum(equation, *xs), real(2, 1, 3), real(4, 3))
    compare(
        lambda a, b: gg.einsum(a, [0, 1], b, [1, 2], [2, 0]),
        lambda a, b: torch.einsum(a, [0, 1], b, [1, 2], [2, 0]),
        real(2, 3),
        real(3, 4),
    )
    assert gg.einsum("ij,jk", [gg.ones(2, 3), gg.ones(3, 4)]).shape == (2, 4)


def test_einsum_plans_once_and_contracts_by_products() -> None:
    _plan.cache_clear()
    xs = [gg.tensor(real(*shape), requires_grad=True) for shape in ((8, 9), (9, 2), (2, 7))]
    y = gg.einsum("ab,bc,cd->ad", *xs)
    gg.einsum("ab,bc,cd->ad", *xs)
    assert _plan.cache_info().hits == 1
    # The cheapest order, each step one product of the tape.
    assert [step[:2] for step in _plan("ab,bc,cd->ad", ((8, 9), (9, 2), (2, 7))).steps] == [(0, 1), (0, 1)]
    assert y.grad_fn is not None
    assert y.grad_fn.name in {"matmul", "reshape", "permute_dims"}


@pytest.mark.parametrize(
    ("equation", "shapes", "text"),
    [
        ("ij,jk->ik", [(2, 3)], "names 2 operands, given 1"),
        ("ij,jk->ik", [(2, 3), (4, 5)], "'j' has size 3 in one place and 4 in another"),
        ("ij->ik", [(2, 3)], "'k' of the result is in no operand"),
        ("ij->ii", [(2, 3)], "twice in the result"),
        ("ijk->i", [(2, 3)], "does not name the 2 dimensions"),
        ("i1->i", [(2, 3)], "'1' is no index"),
    ],
)
def test_einsum_says_what_does_not_fit(equation: str, shapes: list[tuple[int, ...]], text: str) -> None:
    with pytest.raises(errors.ShapeError) as caught:
        gg.einsum(equation, *(gg.zeros(shape) for shape in shapes))
    assert text in str(caught.value)
    assert "test_linalg.py" in str(caught.value)


# --- products -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dims", "shapes"),
    [
        (0, ((2,), (3,))),
        (1, ((2, 3), (3, 2))),
        (2, ((4, 2, 3), (2, 3, 5))),
        (([0, 1], [1, 0]), ((2, 3, 4), (3, 2, 5))),
        (([2], [0]), ((2, 3, 4), (4, 5))),
        (([-1], [-2]), ((2, 4), (4, 5))),
    ],
)
def test_tensordot(dims: Any, shapes: tuple[tuple[int, ...], ...]) -> None:
    compare(
        lambda a, b: gg.tensordot(a, b, dims), lambda a, b: torch.tensordot(a, b, dims), *(real(*s) for s in shapes)
    )


def test_products() -> None:
    compare(gg.kron, torch.kron, real(2, 3), real(3, 2))
    compare(gg.kron, torch.kron, real(3), real(2, 3, 2))
    compare(gg.inner, torch.inner, real(2, 3), real(4, 3))
    compare(gg.outer, torch.outer, real(2), real(4))
    compare(gg.mv, torch.mv, real(2, 3), real(3))
    compare(gg.bmm, torch.bmm, real(2, 3, 4), real(2, 4, 5))
    scales = {"beta": 0.5, "alpha": 2}
    compare(
        lambda *xs: gg.addmm(*xs, **scales), lambda *xs: torch.addmm(*xs, **scales), real(2, 4), real(2, 3), real(3, 4)
    )
    for dim in (0, -1):
        compare(
            lambda a, b, d=dim: gg.vecdot(a, b, d), lambda a, b, d=dim: T.vecdot(a, b, dim=d), real(2, 3), real(2, 3)
        )
    compare(L.cross, T.cross, real(4, 3), real(4, 3, seed=1))
    compare(lambda *xs: L.multi_dot(xs), lambda *xs: T.multi_dot(xs), real(2, 9), real(9, 3), real(3, 4))
    compare(lambda *xs: L.multi_dot(xs), lambda *xs: T.multi_dot(xs), real(9), real(9, 3), real(3))


@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (3, 3)])
def test_trace(shape: tuple[int, int]) -> None:
    compare(gg.trace, torch.trace, real(*shape))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, -2])
def test_matrix_power(n: int) -> None:
    compare(lambda x: L.matrix_power(x, n), lambda x: T.matrix_power(x, n), square(2))


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0, math.inf])
def test_cdist(p: float) -> None:
    compare(lambda a, b: gg.cdist(a, b, p), lambda a, b: torch.cdist(a, b, p), real(2, 3, 4), real(2, 5, 4))


def test_cdist_of_equal_points_has_no_slope() -> None:
    points = real(3, 2)
    compare(gg.cdist, torch.cdist, points, points.copy())


# --- systems and determinants ---------------------------------------------------------------------


def test_inverses_and_determinants() -> None:
    compare(L.inv, T.inv, square(2))
    compare(L.pinv, T.pinv, real(2, 4, 3))
    compare(L.pinv, T.pinv, real(3, 5))
    compare(L.det, T.det, square(2))
    compare(L.slogdet, T.slogdet, square(2))
    compare(gg.logdet, torch.logdet, positive(2))
    assert math.isnan(gg.logdet(gg.tensor([[0.0, 1.0], [1.0, 0.0]])).item())


@pytest.mark.parametrize(("a", "b"), [((), (3, 2)), ((2,), (2, 3, 2)), ((), (3,)), ((2,), (2, 3)), ((2,), (3, 1))])
def test_solve(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    compare(L.solve, T.solve, square(*a), real(*b))


def test_solve_from_the_right() -> None:
    compare(lambda a, b: L.solve(a, b, left=False), lambda a, b: T.solve(a, b, left=False), square(), real(2, 3))


@pytest.mark.parametrize(("upper", "left", "unit"), list(itertools.product((False, True), repeat=3)))
def test_solve_triangular(upper: bool, left: bool, unit: bool) -> None:
    options = {"upper": upper, "left": left, "unitriangular": unit}
    compare(
        lambda a, b: L.solve_triangular(a, b, **options),
        lambda a, b: T.solve_triangular(a, b, **options),
        square(2),
        real(2, 3, 3),
    )


def test_a_triangular_matrix_with_a_zero_gives_infinity_as_in_pytorch() -> None:
    a = np.array([[0.0, 0.0], [1.0, 1.0]])
    b = np.ones((2, 1))
    found = L.solve_triangular(gg.tensor(a), gg.tensor(b), upper=False)
    expected = T.solve_triangular(torch.tensor(a), torch.tensor(b), upper=False)
    np.testing.assert_array_equal(found.numpy(), expected.numpy())


def test_the_determinant_of_a_singular_matrix_has_its_gradient() -> None:
    """PyTorch gives 0 here; the cofactors of [[a, b], [c, d]] are [[d, -c], [-b, a]] whatever the determinant."""
    x = gg.tensor(np.array([[1.0, 2.0], [2.0, 4.0]]), requires_grad=True)
    L.det(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), [[4.0, -2.0], [-2.0, 1.0]], atol=1e-12)
    zero = gg.tensor(np.zeros((3, 3)), requires_grad=True)
    L.det(zero).backward()
    np.testing.assert_array_equal(zero.grad.numpy(), np.zeros((3, 3)))


def test_singular_systems_and_wrong_shapes_are_named() -> None:
    singular = gg.ones(2, 2)
    for call in (lambda: L.inv(singular), lambda: L.solve(singular, gg.ones(2)), lambda: L.cholesky(-gg.eye(2))):
        with pytest.raises(errors.ArgumentError, match=r"test_linalg\.py"):
            call()
    with pytest.raises(errors.ShapeError, match=r"square matrices .* given shape \(2, 3\)"):
        L.solve(gg.ones(2, 3), gg.ones(2))
    with pytest.raises(errors.ShapeError, match=r"with \(2, 2\) dimensions, given \(3, 2\)"):
        gg.mm(gg.ones(2, 2, 2), gg.ones(2, 2))
    with pytest.raises(errors.ShapeError, match=r"sizes \[3\] on the left and \[2\]"):
        gg.tensordot(gg.ones(2, 3), gg.ones(2, 3), 1)


# --- factorisations -------------------------------------------------------------------------------


def test_cholesky() -> None:
    compare(L.cholesky, T.cholesky, positive(2))
    compare(lambda x: L.cholesky(x, upper=True), lambda x: T.cholesky(x, upper=True), positive())


@pytest.mark.parametrize(
    ("shape", "mode"), [((2, 4, 3), "reduced"), ((3, 5), "reduced"), ((3, 3), "complete"), ((3, 3), "r")]
)
def test_qr(shape: tuple[int, ...], mode: str) -> None:
    if mode == "r":
        compare(lambda x: L.qr(x, mode)[1] ** 2, lambda x: T.qr(x.clone())[1] ** 2, real(*shape))
    else:
        compare(lambda x: L.qr(x, mode), lambda x: T.qr(x, mode), real(*shape))


def test_qr_complete_of_a_tall_matrix_has_no_gradient_and_says_so() -> None:
    q, r = L.qr(gg.tensor(real(4, 2)), "complete")
    np.testing.assert_allclose((q @ r).numpy(), real(4, 2), atol=1e-12)
    assert q.shape == (4, 4)
    with pytest.raises(errors.AutogradError, match="mode='reduced'"):
        L.qr(gg.tensor(real(4, 2), requires_grad=True), "complete")
    with pytest.raises(errors.ArgumentError, match="mode='full'"):
        L.qr(gg.eye(2), "full")


def test_eigh() -> None:
    # Squares do not depend on the signs of eigenvectors, which are free.
    compare(lambda x: _squared(L.eigh(x)), lambda x: _squared(T.eigh(x)), positive(2))
    compare(L.eigvalsh, T.eigvalsh, positive(2))


def _squared(pair: Any) -> tuple[Any, Any]:
    return pair[0], pair[1] ** 2


@pytest.mark.parametrize("shape", [(2, 3, 4), (4, 3), (3, 3)])
@pytest.mark.parametrize("full", [False, True])
def test_svd(shape: tuple[int, ...], full: bool) -> None:
    k = min(shape[-2:])

    def free_of_signs(usv: Any) -> tuple[Any, ...]:
        u, s, vh = usv
        return s, u[..., :k] ** 2, vh[..., :k, :] ** 2, u[..., :k] @ vh[..., :k, :]

    compare(
        lambda x: free_of_signs(L.svd(x, full_matrices=full)),
        lambda x: free_of_signs(T.svd(x, full_matrices=full)),
        real(*shape),
        rtol=1e-8,
    )
    found = L.svd(gg.tensor(real(*shape)), full_matrices=full)
    assert [part.shape for part in found] == [tuple(part.shape) for part in T.svd(torch.tensor(real(*shape)), full)]


def test_svd_under_its_older_name_returns_v_itself() -> None:
    x = gg.tensor(real(4, 3))
    u, s, v = gg.svd(x)
    np.testing.assert_allclose((u * s @ v.mT).numpy(), x.numpy(), atol=1e-12)


def test_values_that_coincide_keep_their_gradient_and_vectors_lose_it() -> None:
    x = gg.tensor(np.eye(3), requires_grad=True)
    L.svdvals(x).sum().backward()
    assert np.isfinite(x.grad.numpy()).all()
    x.grad = None
    L.eigvalsh(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.eye(3), atol=1e-12)
    x.grad = None
    (L.eigh(x)[1] * gg.tensor(real(3, 3))).sum().backward()
    assert not np.isfinite(x.grad.numpy()).all()


# --- norms ----------------------------------------------------------------------------------------

ORDERS = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("dim", "keep"), [((-2, -1), False), ((0, 2), True), ((2, 0), False)])
def test_matrix_norm(order: Any, dim: tuple[int, int], keep: bool) -> None:
    compare(lambda x: L.matrix_norm(x, order, dim, keep), lambda x: T.matrix_norm(x, order, dim, keep), real(3, 4, 2))


def test_norm_decides_between_vectors_and_matrices() -> None:
    x = real(3, 4)
    for order in ORDERS:
        compare(lambda t, o=order: L.norm(t, o), lambda t, o=order: T.norm(t, o), x)
    for order in (None, 1, 3, math.inf):
        compare(lambda t, o=order: L.norm(t, o, 1), lambda t, o=order: T.norm(t, o, 1), x)
    compare(L.norm, T.norm, real(2, 3, 4))
    with pytest.raises(errors.ArgumentError, match="ord='max'"):
        L.matrix_norm(gg.ones(2, 2), "max")


@pytest.mark.parametrize("p", [None, 2, -2, "fro", "nuc", 1, math.inf])
def test_cond(p: Any) -> None:
    if p in {None, 2, -2}:
        compare(lambda x: L.cond(x, p), lambda x: T.cond(x, p), square(2))
    else:  # PyTorch cannot differentiate its own cond here
        compare(lambda x: L.cond(x, p), lambda x: T.matrix_norm(x, p) * T.matrix_norm(T.inv(x), p), square(2))


def test_rank_and_least_squares() -> None:
    x = real(2, 4, 3)
    x[0, :, 2] = x[0, :, 1]
    assert L.matrix_rank(gg.tensor(x)).tolist() == [2, 3]
    a, b = real(2, 5, 3), real(2, 5, 2)
    expected = T.lstsq(torch.tensor(a), torch.tensor(b), driver="gelsd")
    for found, part in zip(L.lstsq(gg.tensor(a), gg.tensor(b)), expected, strict=True):
        np.testing.assert_allclose(found.numpy(), part.numpy(), rtol=1e-9, atol=1e-12)


# --- one triangle ---------------------------------------------------------------------------------


def _ranked(library: Any) -> Any:
    return lambda x: library.matrix_rank(x, hermitian=True)[..., None, None] * x


TRIANGLES: dict[str, tuple[Any, Any]] = {
    "eigh L": (lambda x: L.eigh(x)[1] ** 2, lambda x: T.eigh(x)[1] ** 2),
    "eigh U": (lambda x: L.eigh(x, UPLO="U")[1] ** 2, lambda x: T.eigh(x, UPLO="U")[1] ** 2),
    "eigvalsh L": (L.eigvalsh, T.eigvalsh),
    "eigvalsh U": (lambda x: L.eigvalsh(x, "U"), lambda x: T.eigvalsh(x, "U")),
    "cholesky": (L.cholesky, T.cholesky),
    "cholesky upper": (lambda x: L.cholesky(x, upper=True), lambda x: T.cholesky(x, upper=True)),
    "matrix_rank": (_ranked(L), _ranked(T)),
}


@pytest.mark.parametrize("lead", [(), (2,), (2, 0)])
@pytest.mark.parametrize("name", TRIANGLES)
def test_one_triangle_is_read_as_pytorch_reads_it(name: str, lead: tuple[int, ...]) -> None:
    compare(*TRIANGLES[name], positive(*lead) + 0.3 * real(*lead, 3, 3, seed=1))


@pytest.mark.parametrize("name", TRIANGLES)
def test_what_stands_in_the_other_triangle_does_not_matter(name: str) -> None:
    if name == "matrix_rank":
        pytest.skip("its test multiplies by all of x")
    x = positive()
    clean = TRIANGLES[name][0](gg.tensor(x)).numpy()
    upper = name.endswith(("U", "upper"))
    x[np.tril_indices(3, -1) if upper else np.triu_indices(3, 1)] = np.nan
    np.testing.assert_allclose(TRIANGLES[name][0](gg.tensor(x)).numpy(), clean, rtol=1e-12)
    compiled = gg.compile(TRIANGLES[name][0])
    np.testing.assert_allclose(compiled(gg.tensor(x)).numpy(), clean, rtol=1e-12)


def test_hermitian_pseudo_inverse_reads_the_lower_triangle() -> None:
    # PyTorch's derivative uses the other triangle as well, which ours does not: for symmetric x they agree.
    ours, theirs = (lambda x: L.pinv(x, hermitian=True)), (lambda x: T.pinv(x, hermitian=True))
    compare(ours, theirs, positive())
    x = positive() + 0.3 * real(3, 3, seed=1)
    np.testing.assert_allclose(ours(gg.tensor(x)).numpy(), theirs(torch.tensor(x)).numpy(), rtol=1e-10)


def test_numpy_and_vmap_read_the_same_triangle() -> None:
    x = positive(2) + 0.3 * real(2, 3, 3, seed=1)
    for triangle in "LU":
        np.testing.assert_allclose(np.linalg.eigvalsh(gg.tensor(x), triangle).numpy(), np.linalg.eigvalsh(x, triangle))
        mapped = gg.vmap(lambda one, t=triangle: L.eigvalsh(one, t))(gg.tensor(x))
        np.testing.assert_allclose(mapped.numpy(), np.linalg.eigvalsh(x, triangle))
    np.testing.assert_allclose(np.linalg.cholesky(gg.tensor(x), upper=True).numpy(), np.linalg.cholesky(x, upper=True))
    with pytest.raises(errors.ArgumentError, match="UPLO"):
        L.eigh(gg.tensor(x), UPLO="X")
    with pytest.raises(errors.ShapeError):
        L.eigh(gg.zeros(2, 3))


# --- what is left out of a call, and borders of dimensions -------------------------------------------

CUBES = np.random.default_rng(0).normal(size=(3, 3, 3))
PARTS: dict[str, Any] = {
    "addmm": lambda lib, x: lib.addmm(x[0], x[1], x[2]),
    "addmv": lambda lib, x: lib.addmv(x[0, 0], x[1], x[2, 1]),
    "addr": lambda lib, x: lib.addr(x[0], x[1, 0], x[2, 1]),
    "baddbmm": lambda lib, x: lib.baddbmm(x, x * 2, x.flip(0)),
    "addbmm": lambda lib, x: lib.addbmm(x[0], x, x.flip(0)),
    "addbmm scaled": lambda lib, x: lib.addbmm(x[0], x, x.flip(0), beta=2, alpha=0.5),
    "without what is added": lambda lib, x: lib.addmm(x[0] * float("inf"), x[1], x[2], beta=0),
    "cross": lambda lib, x: lib.linalg.cross(x, x.flip(1)),
    "cross along the first": lambda lib, x: lib.linalg.cross(x, x.flip(1), dim=0),
    "vecdot": lambda lib, x: (lib.linalg.vecdot(x, x.flip(0)), lib.linalg.vecdot(x, x[0], dim=0)),
    "tensordot of all": lambda lib, x: (lib.tensordot(x, x, 3), lib.tensordot(x, x[0], 2), lib.tensordot(x[0], x, 0)),
    "diff": lambda lib, x: (lib.diff(x), lib.diff(x, 2), lib.diff(x, dim=0)),
    "cumsum in another dtype": lambda lib, x: lib.cumsum(x, 1, dtype=lib.float32),
    "cumprod in another dtype": lambda lib, x: lib.cumprod(x, 1, dtype=lib.float32),
    "trapezoid": lambda lib, x: (lib.trapezoid(x), lib.trapezoid(x, dim=0), lib.trapezoid(x, x.cumsum(1), dim=1)),
}


@pytest.mark.parametrize("name", PARTS)
def test_options_that_are_left_out_are_pytorchs(name: str) -> None:
    found = []
    for lib in (gg, torch):
        x = lib.tensor(CUBES, requires_grad=True)
        y = PARTS[name](lib, x)
        parts = list(y) if isinstance(y, tuple) else [y]
        if name != "without what is added":  # whose gradient is 0 times infinity
            sum((part * part).sum() for part in parts).backward()
        found.append([part.detach().numpy() for part in parts] + ([] if x.grad is None else [x.grad.numpy()]))
    for mine, wanted in zip(*found, strict=True):
        assert mine.dtype == wanted.dtype
        np.testing.assert_allclose(mine, wanted, rtol=1e-5 if "dtype" in name else 1e-11, atol=1e-12)
