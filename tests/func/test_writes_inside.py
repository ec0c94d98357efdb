"""Functions that write in place, under every transform: the numbers of the same functions without writes, or errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import glassgrad as gg
from glassgrad import errors, func
from tests.ops import test_random_inplace as programs
from tests.ops.against_torch import torch

X = np.array([1.0, 2.0, 4.0])
W = np.array([1.0, 2.0, 3.0])
DIRECTION = np.array([1.0, -1.0, 0.5])
OVERWRITTEN = "overwritten in place"


def weighted(lib: Any, x: Any) -> Any:
    return (x**3 * lib.tensor(W)).sum()


def whole(lib: Any, x: Any) -> Any:
    x -= x.mean()
    return weighted(lib, x)


def whole_twin(lib: Any, x: Any) -> Any:
    return weighted(lib, x - x.mean())


def slices(lib: Any, x: Any) -> Any:
    x[1:] *= 3.0
    x[:2].add_(x[2])
    return weighted(lib, x)


def slices_twin(lib: Any, x: Any) -> Any:
    tail = x[1:] * 3.0
    return weighted(lib, lib.cat([x[:1] + tail[1:], tail[:1] + tail[1:], tail[1:]]))


def views(lib: Any, x: Any) -> Any:
    column = x.view(3, 1)
    column.mul_(2.0)
    column[0, 0] = 5.0
    return weighted(lib, x)


def views_twin(lib: Any, x: Any) -> Any:
    return weighted(lib, lib.cat([lib.tensor([5.0], dtype=lib.float64), x[1:] * 2.0]))


def indices(lib: Any, x: Any) -> Any:
    x[[0, 2]] = x[[2, 1]] + x[0]
    return weighted(lib, x)


def indices_twin(lib: Any, x: Any) -> Any:
    return weighted(lib, lib.stack([x[2] + x[0], x[1], x[1] + x[0]]))


def filled(lib: Any, x: Any) -> Any:
    total = (x * lib.tensor(W)).sum()
    x.fill_(0.0)
    x[1] = total
    return weighted(lib, x)


def filled_twin(lib: Any, x: Any) -> Any:
    total = (x * lib.tensor(W)).sum()
    return weighted(lib, lib.stack([total * 0, total, total * 0]))


def without_recording(lib: Any, x: Any) -> Any:
    with lib.no_grad():
        x.mul_(2.0)
    return weighted(lib, x)


def without_recording_twin(lib: Any, x: Any) -> Any:
    return weighted(lib, x + x.detach())


def saved_values(lib: Any, x: Any) -> Any:
    y = x.sin()
    y.mul_(x)
    x.mul_(y)
    return weighted(lib, x)


def saved_values_twin(lib: Any, x: Any) -> Any:
    return weighted(lib, x * (x.sin() * x))


PAIRS = [
    (whole, whole_twin), (slices, slices_twin), (views, views_twin), (indices, indices_twin), (filled, filled_twin),
    (without_recording, without_recording_twin), (saved_values, saved_values_twin),
]  # fmt: skip  # a table

Transform = Callable[[Callable[[Any], Any]], Callable[[Any], Any]]


def transforms(lib: Any, space: Any) -> Iterator[tuple[str, Transform]]:
    d, one = lib.tensor(DIRECTION), lib.tensor(np.array(1.0))
    yield "grad", space.grad
    yield "grad_and_value", space.grad_and_value
    yield "jvp", lambda f: lambda x: space.jvp(f, (x,), (d,))
    yield "vjp", lambda f: lambda x: space.vjp(f, x)[1](one)
    yield "jacrev", space.jacrev
    yield "jacfwd", space.jacfwd
    yield "hessian", space.hessian
    yield "linearize", lambda f: lambda x: space.linearize(f, x)[1](d)
    yield "vmap", lambda f: lambda x: space.vmap(f)(lib.stack([x, x * 2]))
    yield "vmap of grad", lambda f: lambda x: space.vmap(space.grad(f))(lib.stack([x, x * 2]))
    yield "vmap of jvp", lambda f: lambda x: space.vmap(lambda x: space.jvp(f, (x,), (d,)))(lib.stack([x, x * 2]))
    yield "grad of vmap", lambda f: space.grad(lambda x: space.vmap(f)(lib.stack([x, x * 2])).sum())
    yield "grad of grad", lambda f: space.grad(lambda x: (space.grad(f)(x) * d).sum())
    yield "jvp of grad", lambda f: lambda x: space.jvp(space.grad(f), (x,), (d,))
    yield "grad of jvp", lambda f: space.grad(lambda x: space.jvp(f, (x,), (d,))[1])
    if lib is gg:
        yield "hvp", lambda f: lambda x: space.hvp(f, (x,), (d,))


def flat(result: Any) -> Any:
    if isinstance(result, tuple):
        return np.concatenate([flat(part) for part in result])
    return np.asarray(result.detach().numpy()).reshape(-1)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", [name for name, _ in transforms(gg, func)])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[0].__name__)
def test_the_numbers_are_those_of_the_twin(pair: Any, name: str, compiled: bool) -> None:
    written, twin = pair
    transform = dict(transforms(gg, func))[name]
    expected = flat(transform(lambda x: twin(gg, x))(gg.tensor(X)))
    computed = transform(lambda x: written(gg, x))
    x = gg.tensor(X)
    try:
        found = flat((gg.compile(computed) if compiled else computed)(x))
    except errors.AutogradError as refusal:
        assert written is not whole
        assert written is not filled
        assert OVERWRITTEN in str(refusal)  # noqa: PT017 - as above
        return
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert not x.requires_grad
    if "vmap" not in name:  # the caller's tensor is written as by a plain call
        plain = gg.tensor(X)
        written(gg, plain)
        np.testing.assert_allclose(x.numpy(), plain.numpy(), rtol=1e-14)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
@pytest.mark.parametrize("name", ["jvp", "jacfwd", "vmap"])
@pytest.mark.parametrize("function", [whole, slices, views])
def test_where_pytorch_takes_it_results_and_memory_agree(function: Any, name: str) -> None:
    """Under its reverse transforms PyTorch refuses to write to the argument, as to a leaf."""
    ours, theirs = gg.tensor(X), torch.tensor(X)
    found = dict(transforms(gg, func))[name](lambda x: function(gg, x))(ours)
    expected = dict(transforms(torch, torch.func))[name](lambda x: function(torch, x))(theirs)
    np.testing.assert_allclose(flat(found), flat(expected), rtol=1e-12)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-14)


@pytest.mark.parametrize("dims", [0, 1, -1])
def test_vmap_writes_to_the_memory_of_its_arguments(dims: int) -> None:
    def f(x: Any) -> Any:
        x[0] = x.sum()
        x.view(3, 1)[2].mul_(5)
        return x.sum()

    rows = np.arange(12.0).reshape(4, 3) if dims == 0 else np.arange(12.0).reshape(3, 4)
    ours, theirs = gg.tensor(rows), torch.tensor(rows)
    found, expected = func.vmap(f, in_dims=dims)(ours), torch.func.vmap(f, in_dims=dims)(theirs)
    np.testing.assert_allclose(found.numpy(), expected.numpy())
    np.testing.assert_allclose(ours.numpy(), theirs.numpy())
    again = gg.tensor(rows)
    func.vmap(f, in_dims=dims, chunk_size=2)(again)
    np.testing.assert_allclose(again.numpy(), theirs.numpy())


def test_a_write_without_recording_leaves_the_base_of_a_view_on_the_tape() -> None:
    def f(x: Any) -> Any:
        h = x * x
        with gg.no_grad():
            h[0].mul_(10.0)
        return (h * gg.tensor(W)).sum()

    rows = np.stack([X, 2 * X])
    expected = func.grad(f)(gg.tensor(X)).numpy()
    np.testing.assert_allclose(expected, 2 * X * W)
    np.testing.assert_allclose(func.vmap(func.grad(f))(gg.tensor(rows)).numpy(), [expected, 2 * expected])


def test_vmap_inside_compile_writes_to_the_memory_of_its_arguments() -> None:
    rows = gg.tensor(np.arange(12.0).reshape(4, 3))
    gg.compile(func.vmap(lambda x: x.mul_(x.sum())))(rows)
    np.testing.assert_allclose(rows.numpy(), np.arange(12.0).reshape(4, 3) * [[3], [12], [21], [30]])


# --- tensors that the function closes over ------------------------------------------------------------


@pytest.mark.parametrize("write", [lambda c, x: c.mul_(x), lambda c, x: c.__setitem__(slice(None, 2), x[1:])])
def test_a_captured_tensor_is_written_and_leaves_with_no_history(write: Callable[[Any, Any], Any]) -> None:
    captured = gg.tensor(W)

    def f(x: Any) -> Any:
        write(captured, x)
        return (captured**2).sum()

    x = gg.tensor(X, requires_grad=True)
    other = gg.tensor(W)
    write(other, x)
    (other**2).sum().backward()
    for _ in range(2):
        captured.copy_(gg.tensor(W))
        found = func.grad(f)(gg.tensor(X))
        np.testing.assert_allclose(found.numpy(), x.grad.numpy())
        np.testing.assert_allclose(captured.numpy(), other.detach().numpy())
        assert not captured.requires_grad
        assert captured.grad_fn is None


def test_a_captured_tensor_stays_on_the_tape_of_the_transform_around() -> None:
    def outer(x: Any) -> Any:
        kept = gg.zeros(3, dtype=gg.float64)

        def inner(y: Any) -> Any:
            kept.add_(y * y)
            return (kept * y).sum()

        return func.grad(inner)(x).sum() + kept.sum()

    found = func.grad(outer)(gg.tensor(X))  # d/dx of sum 3 x² + sum x²
    np.testing.assert_allclose(found.numpy(), 8 * X)


def test_what_the_caller_wants_differentiated_sees_the_write_of_an_inner_transform() -> None:
    def outer(x: Any) -> Any:
        y = x * 2
        inner = func.grad(lambda z: (z.mul_(z.sum()) * 1).sum())(y)
        return inner.sum() + y.sum()

    def twin(x: Any) -> Any:
        y = x * 2
        inner = func.grad(lambda z: (z * z.sum()).sum())(y)
        return inner.sum() + (y * y.sum()).sum()

    leaf = gg.tensor(X, requires_grad=True)
    with pytest.raises(errors.AutogradError, match="view of a leaf"):
        func.grad(lambda x: whole(gg, x))(leaf)
    with pytest.raises(errors.AutogradError, match="view of a leaf"):
        func.vmap(lambda x: x.mul_(2))(leaf)

    def outer_out(x: Any) -> Any:
        y = x * 2
        value = func.vjp(lambda z: (z.add_(z.sum()) * 1).sum(), y)[0]
        return value + (y**2).sum()

    def twin_out(x: Any) -> Any:
        y = x * 2
        y = y + y.sum()
        return y.sum() + (y**2).sum()

    np.testing.assert_allclose(func.grad(outer_out)(gg.tensor(X)).numpy(), func.grad(twin_out)(gg.tensor(X)).numpy())
    try:
        found = func.grad(outer)(gg.tensor(X)).numpy()
    except errors.AutogradError as refusal:
        assert OVERWRITTEN in str(refusal)  # noqa: PT017 - z.sum() * z saves z
    else:
        np.testing.assert_allclose(found, func.grad(twin)(gg.tensor(X)).numpy())


def test_an_exception_inside_leaves_nothing_on_the_tape() -> None:
    x = gg.tensor(X)

    def f(x: Any) -> Any:
        x.mul_(2)
        raise KeyError

    with pytest.raises(KeyError):
        func.grad(f)(x)
    assert not x.requires_grad
    assert (x * 1).grad_fn is None


def test_an_array_is_written_too() -> None:
    x = X.copy()
    np.testing.assert_allclose(func.grad(lambda x: whole(gg, x))(x).numpy(), func.grad(lambda x: whole_twin(gg, x))(X))
    np.testing.assert_allclose(x, X - X.mean())


# --- random programs ----------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(programs.programs)
def test_random_programs_of_writes_have_the_gradient_of_finite_differences(program: list[Any]) -> None:
    program = [statement for statement in program if statement.kind % 8 != 7]  # writes that no tape sees

    def loss(a: Any, b: Any) -> Any:
        machine = programs.Machine(gg, (), track=False, given=(a, b))
        for statement in program:
            machine.run(statement)
        return machine.loss()

    leaves = [gg.tensor(leaf.copy()) for leaf in programs.LEAVES]
    try:
        found = func.grad(loss, argnums=(0, 1))(*leaves)
    except errors.AutogradError as refusal:
        assert OVERWRITTEN in str(refusal)  # noqa: PT017 - the backward pass needs what is gone
        return
    for g, expected in zip(found, programs.differences(program), strict=True):
        np.testing.assert_allclose(g.numpy(), expected, rtol=1e-5, atol=1e-7)
    assert not any(leaf.requires_grad for leaf in leaves)
