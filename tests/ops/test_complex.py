"""Complex numbers in every op of the registry: right, by finite differences, or refused.

An entry with `takes_complex` is called on complex samples; its gradient, its tangent and its second derivatives are
compared with differences of its values, with real and imaginary parts as the variables. All other entries must refuse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
import glassgrad.nn.functional as F
from glassgrad import errors
from glassgrad.ops.core import REGISTRY, Primitive
from tests.ops.cases import Case, cases, differentiable_positions

REFUSED = "expects real numbers, given dtype complex128"
# Their vectors have no phase of their own: below they are tested by what does not depend on it.
WITH_PHASES = {"eigh", "svd", "qr"}
# What they compute with are pairs (re, im), or it is a triangle that stands for the other one.
OTHERWISE = {"eig", "mirror", "pick"}

TAKING = [
    case
    for case in cases()
    if case.prim.takes_complex
    and case.prim.name not in WITH_PHASES | OTHERWISE
    and not any(isinstance(entry, np.dtype) for entry in (case.draw()[1]).values())
]


def numbers(*shape: int, seed: int = 0) -> Any:
    rng = np.random.default_rng([seed, *shape])
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


def real_loss(outputs: Any, weights: Callable[[int, Any], Any]) -> Any:
    """Return a real number that depends on all parts of the results."""
    total: Any = 0
    for number, y in enumerate(outputs if isinstance(outputs, tuple) else (outputs,)):
        if y.dtype.kind in "fc":
            weighted = y * gg.tensor(weights(number, y))
            total = total + (weighted.real if weighted.dtype.kind == "c" else weighted).sum()
    return total


def check(function: Callable[..., Any], starts: list[Any], seed: int = 0, rtol: float = 1e-6) -> None:
    """Hold gradient, tangent and second derivatives of a function of complex arrays against central differences."""
    rng = np.random.default_rng(seed)
    parts = [part for z in starts for part in (z.real.copy(), z.imag.copy())]
    directions = [rng.normal(size=part.shape) for part in parts]
    drawn: dict[int, Any] = {}

    def weights(number: int, y: Any) -> Any:
        return drawn.setdefault(
            number,
            numbers(*y.shape, seed=number + 1) if y.dtype.kind == "c" else numbers(*y.shape, seed=number + 1).real,
        )

    def loss(*leaves: Any) -> Any:
        return real_loss(
            function(*(gg.complex(leaves[at], leaves[at + 1]) for at in range(0, len(leaves), 2))), weights
        )

    def slope(moved: list[Any]) -> Any:
        leaves = [gg.tensor(x, requires_grad=True) for x in moved]
        found = gg.autograd.grad(loss(*leaves), leaves, allow_unused=True)
        return [np.zeros(x.shape) if g is None else g.numpy() for g, x in zip(found, moved, strict=True)]

    def moved(step: float) -> list[Any]:
        return [part + step * direction for part, direction in zip(parts, directions, strict=True)]

    tensors, along = ([gg.tensor(x) for x in arrays] for arrays in (parts, directions))
    predicted = sum(float((g * d).sum()) for g, d in zip(slope(parts), directions, strict=True))
    _, tangent = gg.func.jvp(loss, tuple(tensors), tuple(along))
    assert float(tangent) == pytest.approx(predicted, rel=1e-9, abs=1e-9)
    steps = (1e-4, 1e-5, 1e-6)
    differences = [
        (float(loss(*map(gg.tensor, moved(h)))) - float(loss(*map(gg.tensor, moved(-h))))) / (2 * h) for h in steps
    ]
    assert min(abs(found - predicted) for found in differences) <= rtol * (1 + abs(predicted)), (predicted, differences)
    leaves = [gg.tensor(x, requires_grad=True) for x in parts]
    first = gg.autograd.grad(loss(*leaves), leaves, create_graph=True, allow_unused=True)
    followed: Any = sum(((g * d).sum() for g, d in zip(first, along, strict=True) if g is not None), gg.tensor(0.0))
    second = gg.autograd.grad(followed, leaves, allow_unused=True) if followed.requires_grad else [None] * len(leaves)
    probes = [rng.normal(size=part.shape) for part in parts]
    twice = sum(float((g.numpy() * p).sum()) for g, p in zip(second, probes, strict=True) if g is not None)
    for h in (1e-4, 1e-5, 1e-6):
        ahead, behind = (
            slope([part + sign * h * p for part, p in zip(parts, probes, strict=True)]) for sign in (1, -1)
        )
        found = sum(float(((a - b) * d).sum()) for a, b, d in zip(ahead, behind, directions, strict=True)) / (2 * h)
        if abs(found - twice) <= 10 * rtol * (1 + abs(twice)):
            return
    pytest.fail(f"second derivative {twice}, by differences {found}")


def complex_arguments(case: Case) -> tuple[list[Any], list[int], dict[str, Any]]:
    """Return the arguments of a sample, those with a derivative complex, and the places of these."""
    args, params = case.draw()
    positions = differentiable_positions(case.prim, args)
    rng = np.random.default_rng(5)
    return (
        [x + 0.3j * rng.normal(size=x.shape) if at in positions else x for at, x in enumerate(args)],
        positions,
        params,
    )


@pytest.mark.parametrize("case", TAKING, ids=lambda case: case.id)
def test_derivatives_of_what_takes_complex_numbers(case: Case) -> None:
    args, positions, params = complex_arguments(case)

    def function(*given: Any) -> Any:
        replaced = dict(zip(positions, given, strict=True))
        y = case.prim(*(replaced.get(at, x) for at, x in enumerate(args)), **params)
        return case.carrying(y)

    check(function, [args[at] for at in positions])


@pytest.mark.parametrize("prim", [p for p in REGISTRY.values() if not p.takes_complex], ids=lambda prim: prim.name)
def test_every_other_primitive_refuses_them(prim: Primitive) -> None:
    z = gg.tensor(numbers(2, 2))
    with pytest.raises(errors.KindError, match=REFUSED):
        prim(z)
    with pytest.raises(errors.KindError, match=REFUSED):
        prim(numbers(2, 2))
    with pytest.raises(errors.KindError, match=REFUSED):
        prim(gg.tensor(numbers(2, 2).astype(np.complex64)).astype(np.complex128))


def test_the_primitives_left_out_are_in_the_table() -> None:
    assert {name for name in WITH_PHASES | OTHERWISE if REGISTRY[name].takes_complex} == WITH_PHASES | OTHERWISE


def cubed(z: Any) -> Any:
    """Return what has the third powers of the singular values, which no phase changes."""
    u, s, vh = gg.linalg.svd(z)
    return u @ (vh * (s**3)[:, None])


def hermitian(z: Any) -> Any:
    return z @ gg.conj(z).mT + 3 * gg.eye(3, dtype=gg.float64)


@pytest.mark.parametrize(
    "function",
    [
        lambda z: gg.linalg.eigh(hermitian(z))[0],
        lambda z: gg.linalg.eigh(hermitian(z))[1].abs(),
        lambda z: gg.linalg.cholesky(hermitian(z)),
        lambda z: gg.linalg.svd(z, full_matrices=False)[0].abs(),
        lambda z: gg.linalg.svd(z, full_matrices=False)[1],
        cubed,
        lambda z: gg.linalg.svd(z[:2], full_matrices=False)[2].abs(),
        lambda z: tuple(gg.linalg.qr(z)),
        lambda z: tuple(gg.linalg.qr(z[:, :2])),
        lambda z: tuple(gg.linalg.qr(z[:2])),
        gg.linalg.slogdet,
        gg.logdet,
        gg.det,
        gg.linalg.pinv,
        lambda z: gg.linalg.pinv(z[:, :2]),
        gg.linalg.cond,
        gg.std,
        gg.var,
        gg.norm,
        lambda z: gg.norm(z, 3, 1),
        lambda z: gg.linalg.norm(z, "nuc"),
        lambda z: gg.linalg.vector_norm(z, -2),
        lambda z: gg.vdot(z[0], z[1] * 1j),
        lambda z: gg.linalg.vecdot(z, z.mT),
        F.normalize,
        gg.sgn,
        gg.abs,
        gg.angle,
        lambda z: gg.dist(z, z.mT),
        lambda z: gg.float_power(z, 1.5),
        lambda z: z ** gg.tensor(1 + 2j),
        lambda z: gg.tensor([-1.5, 2.0, 3.0]).double() ** z,
        lambda z: F.l1_loss(z, z.mT),
        lambda z: gg.linalg.eigvals(z).abs().sum(),
        lambda z: z.cumprod(0),
        lambda z: z.real * z + z.imag,
        lambda z: (z * z.conj()).real.sqrt(),
        lambda z: gg.fft.fft(z).abs(),
        lambda z: gg.matrix_exp(z * 0.3),
        lambda z: tuple(gg.linalg.lu(z)),
        lambda z: tuple(gg.linalg.lu(z[:2])),
        lambda z: tuple(gg.linalg.lu(z[:, :2])),
        *(
            lambda z, left=left, adjoint=adjoint: gg.linalg.lu_solve(
                *gg.linalg.lu_factor(z), z.mT @ z, left=left, adjoint=adjoint
            )
            for left in (True, False)
            for adjoint in (True, False)
        ),
        gg.exp2,
        lambda z: gg.ldexp(z, z.mT),
        gg.sigmoid,
        F.silu,
        gg.logsumexp,
        lambda z: gg.logsumexp(z * 5, 0, keepdim=True),
        lambda z: gg.logaddexp(z * 5, z.mT),
        lambda z: gg.logcumsumexp(z, 1),
        lambda z: F.rms_norm(z, (3,), gg.tensor([1.0, 2.0, -1.0]).double(), 0.1),
        lambda z: F.softmax(z, 0, dtype=gg.float64),
        lambda z: F.log_softmax(z, 1, dtype=gg.float64),
        lambda z: F.softmin(z, 1, dtype=gg.float64),
        lambda z: F.feature_alpha_dropout(z) * F.dropout2d(z, 0.0),
    ],
)
def test_derivatives_of_functions_of_complex_matrices(function: Callable[[Any], Any]) -> None:
    check(function, [numbers(3, 3, seed=2)], rtol=1e-5)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_lu_solves_complex_equations(left: bool, adjoint: bool) -> None:
    a, b = numbers(3, 3), numbers(3, 3, seed=1)
    x = gg.linalg.lu_solve(*gg.linalg.lu_factor(gg.tensor(a)), gg.tensor(b), left=left, adjoint=adjoint).numpy()
    matrix = a.conj().T if adjoint else a
    np.testing.assert_allclose(matrix @ x if left else x @ matrix, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["sigmoid", "silu", "exp2"])
def test_large_complex_numbers_do_not_overflow_before_the_result_does(name: str) -> None:
    function = {"sigmoid": gg.sigmoid, "silu": F.silu, "exp2": gg.exp2}[name]
    z = np.array([-800 + 1j, -60 - 2j, 39 + 3j, 41 + 3j, 800 - 1j, 1e-9 + 1e-9j, 2.5j])
    if name == "exp2":
        expected = 2**z
    else:  # each side in the form that is small there
        small = np.exp(np.where(z.real > 0, -z, z))
        expected = np.where(z.real > 0, 1 / (1 + small), small / (1 + small)) * (z if name == "silu" else 1)
    np.testing.assert_allclose(function(gg.tensor(z)).numpy(), expected, rtol=1e-12)


INF, NAN = float("inf"), float("nan")
EDGES = [
    complex(-INF, 1),
    complex(INF, 0),
    complex(INF, 1),
    complex(NAN, 0),
    1 + 3j,
    1 + 3j,
    complex(0, NAN),
    -700 + 2j,
]


@pytest.mark.parametrize("edge", EDGES)
def test_logarithms_of_sums_at_the_edges(edge: complex) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
    others = np.array([edge, *EDGES, 2 - 1j, 800 - 4j])
    mine, theirs = gg.tensor(others), torch.tensor(others)
    here, there = gg.tensor(np.full(len(others), edge)), torch.full((len(others),), edge, dtype=torch.complex128)
    np.testing.assert_allclose(gg.logaddexp(mine, here).numpy(), torch.logaddexp(theirs, there).numpy(), rtol=1e-14)
    pairs, other_pairs = gg.stack([mine, here]), torch.stack([theirs, there])
    with np.errstate(all="ignore"):
        found = gg.logsumexp(pairs, 0).numpy()
    np.testing.assert_allclose(found, torch.logsumexp(other_pairs, 0).numpy(), rtol=1e-14)
    assert gg.logsumexp(gg.zeros(0, 2, dtype=gg.complex64), 0).tolist() == [complex(-INF, 0)] * 2


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_programs_compute_with_complex_numbers_as_eager_mode_does(backend: str) -> None:
    z = gg.tensor(numbers(3, 3))

    def run(z: Any) -> Any:
        sums = (gg.logaddexp(z, z.mT), gg.logsumexp(z, 0), gg.logcumsumexp(z, 1), F.rms_norm(z, (3,)))
        return (gg.sigmoid(z), F.silu(z), gg.exp2(z), F.softmax(z, 0, dtype=gg.float64), *sums)

    for found, wanted in zip(gg.compile(run, backend=backend, strict=True)(z), run(z), strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-12)


def test_what_pytorch_cannot_do_with_complex_numbers_is_refused() -> None:
    z = gg.tensor(numbers(3, 3))
    refused = (
        lambda: F.softmax(z, 0), lambda: F.log_softmax(z, 0, dtype=gg.complex128), lambda: gg.softmax(z, 0),
        lambda: F.softmin(z), lambda: gg.logaddexp2(z, z), lambda: F.dropout(z), lambda: F.alpha_dropout(z, 0.5, True),
        lambda: F.feature_alpha_dropout(z, 0.5, True), lambda: gg.nn.Dropout()(z), lambda: F.layer_norm(z, (3,)),
    )  # fmt: skip  # a table
    for call in refused:
        with pytest.raises(errors.KindError, match=REFUSED):
            call()


def test_gradients_that_turn_phases_are_refused() -> None:
    z = gg.tensor(numbers(3, 3), requires_grad=True)
    with pytest.raises(errors.AutogradError, match="phases"):
        gg.linalg.eigh(hermitian(z))[1].imag.sum().backward()
    with pytest.raises(errors.AutogradError, match="phases"):
        gg.linalg.svd(z)[0].real.sum().backward()


def test_numbers_of_python_are_single_precision_and_promote_as_in_numpy() -> None:
    assert gg.tensor([1 + 2j]).dtype == gg.tensor(1j).dtype == gg.full((2,), 1j).dtype == np.complex64
    assert gg.tensor(np.array([1j])).dtype == np.complex128
    assert (gg.tensor([1.0]) * 1j).dtype == (1j ** gg.tensor([1.0])).dtype == np.complex64
    assert (gg.tensor([1.0], dtype=gg.float64) + 1j).dtype == np.complex128
    assert (gg.tensor([1j]) * 2.5).dtype == np.complex64
    assert gg.real(gg.tensor(1 + 2j)).shape == gg.view_as_real(gg.tensor(1 + 2j)).shape[:-1] == ()
    np.testing.assert_array_equal(gg.linspace(0, 2j, 3).numpy(), [0, 1j, 2j])


def test_drawn_complex_numbers_have_two_parts() -> None:
    gg.manual_seed(0)
    z = gg.randn(20000, dtype=gg.complex64).numpy()
    assert z.dtype == np.complex64
    assert [np.var(z.real), np.var(z.imag)] == pytest.approx([0.5, 0.5], rel=0.05)
    u = gg.rand(20000, dtype=gg.complex128).numpy()
    assert [u.real.mean(), u.imag.mean()] == pytest.approx([0.5, 0.5], rel=0.05)
    for draw in (gg.bernoulli, lambda p: gg.multinomial(p, 1), lambda p: gg.normal(p, 1.0)):
        with pytest.raises(errors.KindError, match=REFUSED):
            draw(gg.tensor(numbers(3)))


def test_optimizers_refuse_complex_parameters() -> None:
    with pytest.raises(errors.KindError, match="view_as_complex"):
        gg.optim.Adam([gg.tensor(numbers(2), requires_grad=True)])


def test_what_compares_or_orders_refuses_complex_numbers() -> None:
    z = gg.tensor(numbers(3))
    refused = (
        lambda: z < 1, lambda: z >= 1, lambda: z // 2, lambda: z % 2, lambda: z.clone().clamp_(0), z.max,
        z.sort, z.unique, z.median, lambda: z.softmax(0), lambda: gg.maximum(z, z),
        lambda: gg.tensor([1.0]) > 2j, lambda: gg.nn.ReLU()(z), lambda: gg.nn.MSELoss()(z, z),
        lambda: gg.nn.CosineSimilarity(0)(z, z), lambda: gg.special.erf(z), z.relu_, z.sign,
    )  # fmt: skip  # a table
    for call in refused:
        with pytest.raises(errors.KindError, match="expects real numbers, given dtype complex"):
            call()


def test_sums_at_places_with_infinite_imaginary_parts() -> None:
    z = gg.tensor([1.0 + 0j, 2.0], requires_grad=True)
    weights = gg.tensor(np.array([complex(0, np.inf), 1.0, 1j]))
    (g,) = gg.autograd.grad(z[gg.tensor([1, 1, 1])], z, weights)
    assert g.numpy()[0] == 0


def test_writes_into_parts_reach_the_number_and_its_gradient() -> None:
    def twice(leaf: Any) -> Any:
        z = leaf * 1
        z.real.mul_(10)
        z.imag[0] = 0
        return (z * z * (1 + 2j)).real.sum()

    leaf = gg.tensor(numbers(3), requires_grad=True)
    twice(leaf).backward()
    factor = np.array([0.0, 1, 1])
    z = leaf.detach().numpy().real * 10 + 1j * leaf.detach().numpy().imag * factor
    inner = 2 * z * (1 + 2j)
    np.testing.assert_allclose(leaf.grad.numpy(), 10 * inner.real - 1j * factor * inner.imag, rtol=1e-12)


@pytest.mark.parametrize("name", ["vdot", "nanvar", "nanstd", "correlate", "convolve", "var", "std", "cov"])
def test_numpys_functions_of_complex_tensors(name: str) -> None:
    a, b = numbers(5), numbers(3)
    given = {"vdot": (a, a * 1j), "correlate": (a, b), "convolve": (a, b)}.get(name, (a,))
    function = getattr(np, name)
    found = function(*(gg.tensor(z, requires_grad=True) for z in given))
    np.testing.assert_allclose(found.detach().numpy(), function(*given), rtol=1e-12)
    if name in {"correlate", "convolve"}:
        found = function(gg.tensor(b, requires_grad=True), a)
        np.testing.assert_allclose(found.detach().numpy(), function(b, a), rtol=1e-12)


def test_parts_of_complex_numbers_in_any_order_are_views() -> None:
    """A write to the parts reaches the numbers, as in PyTorch, however they lie in memory."""
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
    numbers = np.arange(12).reshape(3, 4) * (1 + 2j)
    for read in (
        lambda z: z, lambda z: z.T, lambda z: z[:, ::2], lambda z: z[1:, 1], lambda z: z[0, 0], lambda z: z.T[1:3],
    ):  # fmt: skip  # short ones
        for part in (lambda lib, z: z.real, lambda lib, z: z.imag, lambda lib, z: lib.view_as_real(z)):
            found = []
            for lib in (gg, torch):
                z = lib.tensor(numbers)
                part(lib, read(z)).zero_()
                found.append(z.numpy())
            np.testing.assert_array_equal(*found)
    pairs = np.arange(24.0).reshape(3, 4, 2)
    for turned in (lambda p: p, lambda p: p.transpose(0, 1), lambda p: p[1:, ::2]):
        found = []
        for lib in (gg, torch):
            p = lib.tensor(pairs)
            lib.view_as_complex(turned(p)).zero_()
            found.append(p.numpy())
        np.testing.assert_array_equal(*found)
    apart = gg.tensor(pairs.reshape(3, 2, 4)).transpose(1, 2)  # the parts do not lie beside each other
    expected = pairs.reshape(3, 2, 4)[:, 0] + 1j * pairs.reshape(3, 2, 4)[:, 1]
    np.testing.assert_array_equal(gg.view_as_complex(apart).numpy(), expected)


def test_the_imaginary_part_of_real_numbers_is_zero() -> None:
    x = gg.tensor([1.0, -np.inf, np.nan], requires_grad=True)
    y = gg.imag(x)
    assert y.tolist() == [0, 0, 0]
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0, 0, 0]
