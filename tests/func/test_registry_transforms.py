"""Every primitive under every transform: forward mode, second order, vmap; the registry says what to call.

Forward mode is compared with reverse mode by <g, J t> = <Jt g, t>, second order with central differences of the
first, and vmap with a loop over the examples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import func
from tests.ops.cases import Case, cases, differentiable_positions

DIFFERENTIABLE = list(cases())
ALL = list(cases(differentiable=False))
STEPS = (1e-3, 1e-4, 1e-5)
EXAMPLES = 3


def as_tuple(y: Any) -> tuple[Any, ...]:
    return y if isinstance(y, tuple) else (y,)


def of_floats(case: Case, args: list[Any], params: dict[str, Any]) -> tuple[Callable[..., Any], list[Any]]:
    """Return the primitive as a function of its differentiable arguments, float results only, and those arguments."""
    at = differentiable_positions(case.prim, args)

    def f(*floats: Any) -> tuple[Any, ...]:
        full = list(args)
        for position, x in zip(at, floats, strict=True):
            full[position] = x
        return tuple(y for y in case.carrying(case.prim(*full, **params)) if y.dtype.kind == "f")

    return f, [gg.tensor(args[position]) for position in at]


def inner(a: Any, b: Any) -> float:
    return float(sum(np.sum(x.numpy() * y.numpy()) for x, y in zip(a, b, strict=True)))


def normals(like: Any, seed: int) -> tuple[gg.Tensor, ...]:
    rng = np.random.default_rng(seed)
    return tuple(gg.tensor(rng.normal(size=x.shape).astype(x.dtype)) for x in like)


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=lambda case: case.id)
def test_forward_mode_agrees_with_reverse_mode(case: Case) -> None:
    f, x = of_floats(case, *case.draw())
    t = normals(x, 1)
    y, moved = func.jvp(f, tuple(x), t)
    assert [(part.shape, part.dtype) for part in moved] == [(part.shape, part.dtype) for part in y]
    result, pull = func.vjp(f, *x)
    for part, again in zip(y, result, strict=True):
        np.testing.assert_array_equal(part.numpy(), again.numpy())
    g = normals(y, 2)
    expected = inner(pull(g), t)
    assert inner(g, moved) == pytest.approx(expected, rel=1e-9, abs=1e-10 * case.prim.tolerance)


SEVERAL = [case for case in DIFFERENTIABLE if len(differentiable_positions(case.prim, case.draw()[0])) > 1]


@pytest.mark.parametrize("case", SEVERAL, ids=lambda case: case.id)
def test_each_argument_alone_has_the_derivative_that_it_has_among_all(case: Case) -> None:
    """Rules skip what nobody needs: the others have no tangents and get no gradients."""
    f, x = of_floats(case, *case.draw())
    t = normals(x, 1)
    y, pull = func.vjp(f, *x)
    g = normals(y, 2)
    for at, (one, whole) in enumerate(zip(x, pull(g), strict=True)):

        def alone(moving: Any, at: int = at) -> Any:
            return f(*x[:at], moving, *x[at + 1 :])

        (gradient,) = func.vjp(alone, one)[1](g)
        np.testing.assert_allclose(gradient.numpy(), whole.numpy(), rtol=1e-12, atol=1e-13)
        moved = func.jvp(alone, (one,), (t[at],))[1]
        expected = inner((whole,), (t[at],))
        assert inner(g, moved) == pytest.approx(expected, rel=1e-9, abs=1e-10 * case.prim.tolerance)


def weighted(f: Callable[..., Any], g: Any) -> Callable[..., Any]:
    """Return <g, f(x)> as a function of x, bent so that linear functions have a second derivative as well."""

    def number(*x: Any) -> Any:
        total = sum((part * c).sum() for part, c in zip(f(*x), g, strict=True))
        return total + 0.5 * total * total

    return number


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=lambda case: case.id)
def test_second_order_agrees_with_central_differences(case: Case) -> None:
    f, x = of_floats(case, *case.draw())
    number = weighted(f, normals(f(*x), 2))
    at = tuple(range(len(x)))
    gradient = func.grad(number, argnums=at)
    v, u = normals(x, 3), normals(x, 4)

    forward_over_reverse = func.jvp(gradient, tuple(x), v)[1]
    reverse_over_reverse = func.vjp(gradient, *x)[1](v)
    for a, b in zip(forward_over_reverse, reverse_over_reverse, strict=True):  # the Hessian is symmetric
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-7, atol=1e-8 * case.prim.tolerance)

    predicted = inner(u, forward_over_reverse)
    errors = []
    for step in STEPS:
        ahead, behind = (
            gradient(*(gg.tensor(a.numpy() + sign * step * b.numpy()) for a, b in zip(x, v, strict=True)))
            for sign in (1, -1)
        )
        errors.append(abs((inner(u, ahead) - inner(u, behind)) / (2 * step) - predicted))
    assert min(errors) <= 1e-6 * case.prim.tolerance * (1 + abs(predicted)), (predicted, errors)


def batches(case: Case) -> list[tuple[list[Any], list[Any], dict[str, Any]]]:
    """Return the arguments with all of them batched, and with each alone batched; and the axes that are."""
    drawn = [case.draw(seed) for seed in range(EXAMPLES)]
    arrays = [at for at, x in enumerate(drawn[0][0]) if isinstance(x, np.ndarray)]
    result = []
    for chosen in [arrays, *([at] for at in arrays if len(arrays) > 1)]:
        args, axes = list(drawn[0][0]), [None] * len(drawn[0][0])
        for at in chosen:
            # The batch goes to the back for every second argument: in_dims has to find it.
            axes[at] = -1 if at % 2 else 0
            args[at] = np.stack([one[0][at] for one in drawn], axis=axes[at])
        result.append((args, axes, drawn[0][1]))
    return result


def example(args: list[Any], axes: list[Any], number: int) -> list[Any]:
    pairs = zip(args, axes, strict=True)
    return [x if axis is None else np.asarray(np.take(x, number, axis=axis)) for x, axis in pairs]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_vmap_agrees_with_a_loop(case: Case) -> None:
    for args, axes, params in batches(case):
        mapped = func.vmap(lambda *xs: as_tuple(case.prim(*xs, **params)), tuple(axes))  # noqa: B023 - called at once
        found = mapped(*(gg.tensor(x) if isinstance(x, np.ndarray) else x for x in args))
        loop = [as_tuple(case.prim(*example(args, axes, number), **params)) for number in range(EXAMPLES)]
        for y, expected in zip(found, zip(*loop, strict=True), strict=True):
            assert y.dtype == np.asarray(expected[0]).dtype
            np.testing.assert_allclose(y.numpy(), np.stack(expected), rtol=1e-10, atol=1e-12)


# All elementwise ops have one rule, and fused ones those of what they are made of.
OWN_RULES = [case for case in ALL if case.prim.batch is not None or case.prim.name in {"add", "where"}]


@pytest.mark.parametrize("case", OWN_RULES, ids=lambda case: case.id)
def test_vmap_inside_vmap_agrees_with_two_loops(case: Case) -> None:
    """The outer one maps the first array, from the back; the inner one the last, which may be the same."""
    (args, params), others = case.draw(), [case.draw(seed)[0] for seed in (1, 2)]
    arrays = [at for at, x in enumerate(args) if isinstance(x, np.ndarray)]
    if not arrays:
        pytest.skip("nothing to map")
    outer, inner = arrays[0], arrays[-1]
    rows = np.stack([args[inner], *(other[inner] for other in others)])
    columns = np.stack([args[outer], others[0][outer]], axis=-1)
    both = np.stack([rows, rows[::-1]], axis=-1)

    def call(*xs: Any) -> Any:
        return as_tuple(case.prim(*xs, **params))

    def filled_in(one: Any, other: Any) -> list[Any]:
        given = [gg.tensor(x) if isinstance(x, np.ndarray) else x for x in args]
        given[outer], given[inner] = one, other
        return given

    if outer == inner:
        found = func.vmap(func.vmap(lambda x: call(*filled_in(x, x))), -1)(gg.tensor(both))
    else:
        found = func.vmap(lambda x: func.vmap(lambda z: call(*filled_in(x, z)))(gg.tensor(rows)), -1)(
            gg.tensor(columns)
        )
    for first in range(2):
        for second in range(EXAMPLES):
            own = both[second, ..., first] if outer == inner else rows[second]
            given = list(args)
            given[outer] = np.asarray(columns[..., first])
            given[inner] = np.asarray(own)
            for y, expected in zip(found, as_tuple(case.prim(*given, **params)), strict=True):
                np.testing.assert_allclose(y[first, second].numpy(), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=lambda case: case.id)
def test_derivatives_inside_vmap_agree_with_a_loop(case: Case) -> None:
    at = differentiable_positions(case.prim, case.draw()[0])
    params = case.draw()[1]

    def gradients(*args: Any) -> Any:
        def number(*floats: Any) -> Any:
            full = list(args)
            for position, x in zip(at, floats, strict=True):
                full[position] = x
            parts = [y for y in case.carrying(case.prim(*full, **params)) if y.dtype.kind == "f"]
            return sum((y * y).sum() for y in parts)

        chosen = tuple(args[position] for position in at)
        everything = tuple(range(len(at)))
        gradient = func.grad(number, everything)
        return gradient(*chosen), func.jvp(gradient, chosen, chosen)[1]

    for args, axes, _ in batches(case):
        tensors = [gg.tensor(x) if isinstance(x, np.ndarray) else x for x in args]
        found = func.vmap(gradients, tuple(axes))(*tensors)
        loop = [
            gradients(*(gg.tensor(x) if isinstance(x, np.ndarray) else x for x in example(args, axes, number)))
            for number in range(EXAMPLES)
        ]
        for order in (0, 1):
            for y, expected in zip(found[order], zip(*(one[order] for one in loop), strict=True), strict=True):
                stacked = np.stack([part.numpy() for part in expected])
                np.testing.assert_allclose(y.numpy(), stacked, rtol=1e-8, atol=1e-9)


def squares(y: Any) -> Any:
    return sum((part * part).sum() for part in as_tuple(y) if part.dtype.kind == "f")


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=lambda case: case.id)
def test_gradients_through_vmap_agree_with_a_loop(case: Case) -> None:
    """What is the same for all examples gets the sum of their gradients; both modes, from outside."""
    at = differentiable_positions(case.prim, case.draw()[0])
    for args, axes, params in batches(case):

        def call(*xs: Any, params: Any = params) -> Any:
            return as_tuple(case.prim(*xs, **params))

        def mapped(*floats: Any, args: Any = args, axes: Any = axes, call: Any = call) -> Any:
            return squares(func.vmap(call, tuple(axes))(*filled(args, at, floats)))

        def looped(*floats: Any, args: Any = args, axes: Any = axes, call: Any = call) -> Any:
            pairs = list(zip(filled(args, at, floats), axes, strict=True))
            rows = [[x if a is None else x.movedim(a, 0)[n] for x, a in pairs] for n in range(EXAMPLES)]
            return sum(squares(call(*row)) for row in rows)

        chosen = tuple(gg.tensor(args[position]) for position in at)
        everything = tuple(range(len(at)))
        for a, b in zip(func.grad(mapped, everything)(*chosen), func.grad(looped, everything)(*chosen), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-8, atol=1e-9)
        t = normals(chosen, 5)
        a, b = (func.jvp(f, chosen, t)[1].item() for f in (mapped, looped))
        assert a == pytest.approx(b, rel=1e-8, abs=1e-9)


def filled(args: list[Any], at: list[int], floats: Any) -> list[Any]:
    full = [gg.tensor(x) if isinstance(x, np.ndarray) else x for x in args]
    for position, x in zip(at, floats, strict=True):
        full[position] = x
    return full
