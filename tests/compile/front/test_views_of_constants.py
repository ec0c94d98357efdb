"""A tensor that the function makes from known numbers, its views, and writes of traced values to one of them."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.compile.front.state import memory
from glassgrad.errors import CompileWarning
from tests.thinning import covering

BACKENDS = ("llvm", "numpy")
# Each turns a tensor of at least one dimension into a view of it, or returns what it was given where it does not fit.
VIEWS: dict[str, Callable[[Any], Any]] = {
    "flat": lambda b: b.view(-1) if b.is_contiguous() else b,
    "square": lambda b: b.view(2, -1) if b.is_contiguous() and b.numel() % 2 == 0 else b,
    "row": lambda b: b[-1:],
    "tail": lambda b: b[1:] if b.shape[0] > 1 else b,
    "every other": lambda b: b[::2],
    "columns": lambda b: b[..., 1:] if b.shape[-1] > 1 else b,
    "turned": lambda b: b.transpose(0, -1),
    "one more": lambda b: b.unsqueeze(0),
    "one less": lambda b: b.squeeze(),
    "number": lambda b: b.select(0, 0) if b.dim() > 1 else b,
    "same": lambda b: b.detach(),
    "as numpy": lambda b: gg.from_numpy(b.detach().numpy()) if type(b.array) is np.ndarray else b,
}
BASES: dict[str, Callable[[Any], Any]] = {
    "zeros": lambda x: gg.zeros(4, 6),
    "arange": lambda x: gg.arange(24.0),
    "new": lambda x: x.new_zeros(2, 3, 4),
    "from_numpy": lambda x: gg.from_numpy(np.arange(24, dtype=np.float32).reshape(4, 6)),
    "turned memory": lambda x: gg.from_numpy(np.arange(24, dtype=np.float32).reshape(4, 6).T),
    "part of an array": lambda x: gg.from_numpy(np.arange(30, dtype=np.float32).reshape(5, 6)[1:]),
}
WRITES: tuple[Callable[[Any, Any], Any], ...] = (
    lambda v, s: v.add_(s),
    lambda v, s: v.mul_(s).sub_(1),
    lambda v, s: v.fill_(s),
    lambda v, s: v.copy_(s.expand(v.shape)),
    lambda v, s: v.__setitem__(0, s) if v.dim() else v.mul_(s),
)


def program(seed: int) -> Callable[[Any], Any]:
    """Return a function that takes views of a new tensor, writes to some of them, and returns them all."""

    def run(x: Any) -> Any:
        rng = random.Random(seed)
        values = [rng.choice(list(BASES.values()))(x)]
        for number in range(rng.randint(4, 8)):
            values.append(VIEWS[rng.choice(list(VIEWS))](rng.choice(values)))
            if number % 2:
                rng.choice(WRITES)(rng.choice(values), x.reshape(-1)[rng.randrange(4)])
        return [value * 1 for value in values]

    return run


def agree(function: Callable[[Any], Any], backend: str) -> Any:
    """Compare two compiled calls with eager ones; return the compiled function."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CompileWarning)
        compiled = gg.compile(function, backend=backend)
        for x in (gg.tensor([[3.0, 4.0], [5.0, 6.0]]), gg.tensor([[0.5, -1.0], [2.0, 7.0]])):
            wanted, found = function(x), compiled(x)
            for one, other in zip(wanted, found, strict=True):
                np.testing.assert_array_equal(other.detach().numpy(), one.detach().numpy())
    return compiled


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_views_of_new_tensors_see_every_write(first: int, backend: str) -> None:
    refusals = [agree(program(seed), backend).refusals for seed in range(first, first + 10)]
    assert sum(map(bool, refusals)) <= 2, refusals


def _gradient(x: Any) -> Any:
    x = x.detach().clone().requires_grad_()
    b = gg.zeros(2, 2)
    v = b.T
    v[0] = x[0] * x[0]
    v.mul_(x)
    (b * b).sum().backward()
    return [x.grad]


def _leaf_under_no_grad(x: Any) -> Any:
    x = x.detach().clone().requires_grad_()
    w = gg.zeros(4, requires_grad=True)
    with gg.no_grad():
        w.view(2, 2)[0] = x[0]
    (w * x.reshape(-1)).sum().backward()
    return [x.grad, w.grad]


def _expanded(x: Any) -> Any:
    x = x.detach().clone().requires_grad_()
    b = gg.zeros(2, 1)
    wide = b.expand(2, 3)
    b[0] = x[0, 0] ** 2
    (wide * wide).sum().backward()
    return [x.grad]


def _integers(x: Any) -> Any:
    b = gg.zeros(4, dtype=gg.int64)
    b.view(2, 2)[0] = x[0].long()
    return [b + 1]


def _diagonal(x: Any) -> Any:
    b = gg.zeros(2, 2)
    b.diagonal().add_(x[0])
    return [b + 1]


def _array_seen_late(x: Any) -> Any:
    numbers = np.zeros((2, 2), np.float32)
    b = gg.from_numpy(numbers)
    b[0] = x[0]
    return [gg.from_numpy(numbers) + 1, gg.from_numpy(numbers.T) + 1, x + numbers]


def _empty_view(x: Any) -> Any:
    b = gg.zeros(2, 2)
    nothing = b[:0]
    b[0] = x[0]
    return [b + 1, nothing + 1]


def _returned(x: Any) -> Any:
    b = gg.zeros(4)
    v = b.view(2, 2)
    v[0] = x[0]
    return [b, v]


def _complex_parts(x: Any) -> Any:
    b = gg.zeros(2, dtype=gg.complex64)
    gg.view_as_real(b)[0] = x[0]
    return [gg.view_as_real(b + 1)]


@pytest.mark.parametrize(
    ("function", "backend"),
    covering(
        [_gradient, _leaf_under_no_grad, _expanded, _integers, _diagonal, _array_seen_late, _empty_view, _returned],
        BACKENDS,
    ),
)
def test_a_write_reaches_what_shares_the_memory(function: Callable[[Any], Any], backend: str) -> None:
    assert not agree(function, backend).refusals


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_view_that_no_op_leads_to_is_refused(backend: str) -> None:
    assert agree(_complex_parts, backend).refusals


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_write_reaches_an_array_that_the_function_closes_over(backend: str) -> None:
    numbers = np.zeros((2, 2), np.float32)

    def step(x: Any) -> Any:
        flat = gg.from_numpy(numbers).view(-1)
        flat[0] += x[0, 0]
        return flat + 1

    compiled = gg.compile(step, backend=backend, strict=True)
    assert compiled(gg.ones(2, 2)).tolist() == [2, 1, 1, 1]
    numbers[1] = 7
    assert compiled(gg.ones(2, 2)).tolist() == [3, 1, 8, 8]
    assert numbers.tolist() == [[2, 0], [7, 7]]


def test_a_tensor_alone_in_its_memory_is_known() -> None:
    one = gg.zeros(3)
    assert memory.is_alone(one, 0)
    view = one[1:]
    assert not memory.is_alone(one, 0)
    assert {id(other) for other in memory.sharers(one.array)} == {id(one), id(view)}


@pytest.mark.parametrize("start", [np.zeros((3, 4)), np.zeros((3, 4), order="F"), np.zeros(12)])
def test_views_are_found_by_their_strides(start: Any) -> None:
    for take in (
        lambda a: a[1:], lambda a: a[..., ::-1], lambda a: a[::2].T, lambda a: a[..., None, :],
        lambda a: np.broadcast_to(a[:1], (5, *a.shape[1:])) if a.ndim > 1 else a, lambda a: a[-1],
    ):  # fmt: skip  # a table
        array = np.asarray(take(start))
        if not array.ndim:
            continue
        steps = memory.path(start, array)
        assert steps is not None
        places = np.arange(12.0).reshape(3, 4)
        places = places.ravel() if start.ndim == 1 else places
        wanted = take(places)
        for prim, params in steps:
            places = prim.compute((places,), params)
        np.testing.assert_array_equal(places, wanted)


def test_an_array_of_another_dtype_has_no_path() -> None:
    numbers = np.zeros(4)
    assert memory.path(numbers, numbers.view(np.int64)) is None
