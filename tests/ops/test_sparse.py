"""Sparse matrices against PyTorch's: products, joining, transposes, sums, gradients, and a network on a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import glassgrad as gg
from glassgrad import errors
from glassgrad.ops.core import REGISTRY
from tests.ops.against_torch import compare, real, torch

# PyTorch says so once a process, in whichever test makes the first sparse matrix.
pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks")

PLACES = np.array([[2, 0, 1, 2, 0, 2], [1, 3, 0, 1, 3, 0]])  # two places come twice
SHAPE = (3, 4)


def matrix(lib: Any, values: Any, **options: Any) -> Any:
    return lib.sparse_coo_tensor(lib.tensor(PLACES), values, SHAPE, **options)


CALLS: dict[str, Callable[..., Any]] = {
    "mm": lambda lib, v, x: lib.sparse.mm(matrix(lib, v), x),
    "spmm": lambda lib, v, x: lib.spmm(matrix(lib, v), x),
    "torch.mm": lambda lib, v, x: lib.mm(matrix(lib, v), x),
    "matmul": lambda lib, v, x: lib.matmul(matrix(lib, v), x),
    "operator": lambda lib, v, x: matrix(lib, v) @ x,
    "vector": lambda lib, v, x: matrix(lib, v) @ x[:, 0],
    "transpose": lambda lib, v, x: matrix(lib, v).t() @ x[:3],
    "transposed twice": lambda lib, v, x: matrix(lib, v).t().transpose(0, 1).matmul(x),
    "coalesced": lambda lib, v, x: matrix(lib, v).coalesce().mm(x),
    "values": lambda lib, v, x: matrix(lib, v).coalesce().values() ** 3 * x.sum(),
    "dense": lambda lib, v, x: matrix(lib, v).to_dense() @ x,
    "scaled": lambda lib, v, x: lib.sparse.mm(2 * matrix(lib, v) / 3.0, x),
    "added": lambda lib, v, x: lib.sparse.mm((matrix(lib, v) + matrix(lib, v * v)).coalesce(), x),
    "addmm": lambda lib, v, x: lib.sparse.addmm(x[:3] * 2, matrix(lib, v), x, beta=0.5, alpha=3.0),
    "sum": lambda lib, v, x: lib.sparse.sum(matrix(lib, v)) * x,
    "degrees": lambda lib, v, x: lib.sparse.sum(matrix(lib, v), dim=1).to_dense() * x.sum(),
    "from dense": lambda lib, v, x: lib.sparse.mm((matrix(lib, v).to_dense() * 2).to_sparse(), x),
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # PyTorch's of sparse matrices, which it calls a beta
@pytest.mark.parametrize("name", CALLS)
def test_against_pytorch(name: str) -> None:
    compare(lambda v, x: CALLS[name](gg, v, x), lambda v, x: CALLS[name](torch, v, x), real(6), real(4, 5))


@pytest.mark.parametrize("name", CALLS)
def test_compiled_and_second_order(name: str) -> None:
    v, x = gg.tensor(real(6)), gg.tensor(real(4, 5))

    def step(values: Any, dense: Any) -> Any:
        return gg.func.grad(lambda a, b: (CALLS[name](gg, a, b) ** 2).sum(), argnums=(0, 1))(values, dense)

    if name != "from dense":  # which entries are not 0 is not known while a step is traced
        for found, expected in zip(gg.compile(step)(v, x), step(v, x), strict=True):
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-10)
    both = gg.tensor(real(6), requires_grad=True), gg.tensor(real(4, 5), requires_grad=True)
    assert gg.verify.gradcheck(lambda a, b: sum((g**2).sum() for g in step(a, b)), both)


def test_forms_and_dtypes() -> None:
    for dtype in ("float32", "float64", "int64", "float16"):
        values = np.arange(1, 7).astype(dtype)
        found, expected = matrix(gg, gg.tensor(values)), matrix(torch, torch.tensor(values))
        np.testing.assert_array_equal(found.to_dense().numpy(), expected.to_dense().numpy())
        joined, wanted = found.coalesce(), expected.coalesce()
        np.testing.assert_array_equal(joined.indices().numpy(), wanted.indices().numpy())
        np.testing.assert_array_equal(joined.values().numpy(), wanted.values().numpy())
        product = found @ gg.tensor(np.arange(8).reshape(4, 2).astype(dtype))
        assert product.dtype == dtype
        dense = expected.to_dense().numpy() @ np.arange(8).reshape(4, 2).astype(dtype)
        np.testing.assert_allclose(product.numpy(), dense)
    assert (found.shape, found.dim(), found._nnz()) == ((3, 4), 2, 6)
    assert (found.is_coalesced(), found.is_sparse) == (False, True)
    assert found.coalesce()._nnz() == 4
    assert gg.sparse_coo_tensor([[0, 2], [1, 0]], [1.0, 2.0]).shape == (3, 2)
    assert gg.sparse_coo_tensor(np.zeros((2, 0), int), [], (2, 3)).coalesce().to_dense().tolist() == [[0.0] * 3] * 2
    other = scipy.sparse.random_array((5, 4), density=0.4, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(gg.sparse.from_scipy(other).to_dense().numpy(), other.toarray())
    np.testing.assert_array_equal(gg.sparse.from_scipy(other).double().t().to_dense().numpy(), other.toarray().T)


def test_a_matrix_that_requires_a_gradient_shows_it_at_its_entries() -> None:
    """PyTorch's is dense: it has numbers where the matrix has no entry."""
    ours, theirs = (matrix(lib, lib.tensor(real(6)), requires_grad=True) for lib in (gg, torch))
    (ours @ gg.tensor(real(4, 5))).sum().backward()
    (theirs @ torch.tensor(real(4, 5))).sum().backward()
    assert ours.grad is not None
    np.testing.assert_allclose(ours.grad._values().numpy(), theirs.grad.to_dense().numpy()[tuple(PLACES)], rtol=1e-12)


def test_a_network_on_a_graph_learns_what_pytorchs_learns() -> None:
    """Two graph convolutions (Kipf and Welling 2017) on a ring with chords."""
    n = 12
    ends = np.array([[i, (i + k) % n] for i in range(n) for k in (0, 1, 5, n - 1, n - 5)]).T
    share = np.full(ends.shape[1], 0.2, np.float32)
    features, labels = real(n, 6).astype(np.float32), np.arange(n) % 3
    weights = [real(6, 8, seed=1).astype(np.float32) * 0.5, real(8, 3, seed=2).astype(np.float32) * 0.5]
    losses = {}
    for name, lib in (("eager", gg), ("compiled", gg), ("torch", torch)):
        a = lib.sparse_coo_tensor(lib.tensor(ends), lib.tensor(share), (n, n)).coalesce()
        x, y = lib.tensor(features), lib.tensor(labels)
        parameters = [lib.tensor(w, requires_grad=True) for w in weights]
        optimizer = lib.optim.Adam(parameters, lr=0.05)

        def step(lib: Any = lib, a: Any = a, x: Any = x, y: Any = y, ps: Any = parameters, opt: Any = optimizer) -> Any:
            opt.zero_grad()
            hidden = lib.relu(lib.spmm(a, x @ ps[0]))
            loss = lib.nn.functional.cross_entropy(lib.sparse.mm(a, hidden @ ps[1]), y)
            loss.backward()
            opt.step()
            return loss

        run = gg.compile(step) if name == "compiled" else step
        losses[name] = [run().item() for _ in range(20)]
    np.testing.assert_allclose(losses["eager"], losses["torch"], rtol=1e-4)
    np.testing.assert_allclose(losses["compiled"], losses["torch"], rtol=1e-4)
    assert losses["eager"][-1] < losses["eager"][0] - 0.1


def test_a_matrix_as_an_argument_of_a_compiled_step_is_read_at_every_call() -> None:
    step = gg.compile(lambda a, x: a @ x)
    x = gg.tensor(real(4, 2))
    for seed in range(3):
        values = real(6, seed=seed)
        expected = matrix(gg, gg.tensor(values)).to_dense() @ x
        np.testing.assert_allclose(step(matrix(gg, gg.tensor(values)), x).numpy(), expected.numpy(), rtol=1e-12)
        a = gg.sparse_coo_tensor(PLACES[:, ::-1].copy(), values, SHAPE)
        np.testing.assert_allclose(step(a, x).numpy(), (a.to_dense() @ x).numpy(), rtol=1e-12)
    held = matrix(gg, gg.tensor(real(6)))
    inside = gg.compile(lambda x: held @ x)
    for factor in (1.0, 2.0):
        held._values().mul_(factor)
        np.testing.assert_allclose(inside(x).numpy(), (held.to_dense() @ x).numpy(), rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda a, x: a @ x[:2], "4, k"),
        (lambda a, x: a @ a, "to_dense"),
        (lambda a, x: gg.exp(a), "to_dense"),
        (lambda a, x: a.indices(), "coalesce"),
        (lambda a, x: a * x, "a number"),
        (lambda a, x: a + x, "sparse matrix"),
        (lambda a, x: gg.sparse_coo_tensor([[0, 3], [0, 0]], [1.0, 2.0], (2, 2)), "at least"),
        (lambda a, x: gg.sparse_coo_tensor([[0, -1], [0, 0]], [1.0, 2.0]), "below 0"),
        (lambda a, x: gg.sparse_coo_tensor([[0, 1], [0, 0]], [1.0]), "one number"),
        (lambda a, x: a.cuda(), "cuda"),
        (lambda a, x: gg.sparse.softmax, "softmax"),
    ],
)
def test_what_cannot_be_is_named(call: Callable[..., Any], said: str) -> None:
    with pytest.raises(errors.GlassgradError, match=said):
        call(matrix(gg, gg.tensor(real(6))), gg.tensor(real(4, 5)))
    with pytest.raises((errors.GlassgradError, TypeError)):
        gg.tensor(real(3, 3)) * matrix(gg, gg.tensor(real(6)))


@pytest.mark.parametrize(("row", "column"), [(3, 0), (-1, 0), (0, 4), (0, -1)])
def test_entries_outside_of_the_matrix_are_refused(row: int, column: int) -> None:
    values, dense = real(2), real(4, 2)
    product = REGISTRY["sparse_product"].compute
    for number_type in (np.float64, np.float16):  # SciPy multiplies the first
        given = values.astype(number_type), dense.astype(number_type)
        with pytest.raises(IndexError, match=r"outside of the matrix \(3, 4\)"):
            product((*given, np.array([0, row]), np.array([1, column])), {"size": 3})
    none = np.zeros(0, np.int64)
    np.testing.assert_array_equal(product((values[:0], dense, none, none), {"size": 3}), np.zeros((3, 2)))
