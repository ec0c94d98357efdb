"""custom_root: gradients of solutions, against closed forms and against differentiating the solver."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, func
from glassgrad.engine.saved_tensors import Watcher


def newton(f: Any, x: Any) -> Any:
    """For residuals that act on each number alone."""
    for _ in range(40):
        y, slope = func.jvp(f, (x,), (x * 0 + 1,))
        x = x - y / slope
    return x


def cube_root(a: Any) -> Any:
    return func.custom_root(lambda x: x**3 - a, a * 0 + 1, newton)


A = gg.tensor(np.array([0.5, 2.0, 8.0]))


def test_all_orders_and_modes_of_a_cube_root() -> None:
    a = A.numpy()
    np.testing.assert_allclose(cube_root(A).numpy(), np.cbrt(a))
    first, second = a ** (-2 / 3) / 3, -2 / 9 * a ** (-5 / 3)
    total = lambda a: cube_root(a).sum()
    np.testing.assert_allclose(func.grad(total)(A).numpy(), first)
    np.testing.assert_allclose(func.jvp(cube_root, (A,), (A,))[1].numpy(), first * a)
    np.testing.assert_allclose(func.hessian(total)(A).numpy(), np.diag(second), atol=1e-12)
    np.testing.assert_allclose(func.jacrev(func.grad(total))(A).numpy(), np.diag(second), atol=1e-12)
    np.testing.assert_allclose(func.jacfwd(func.jacfwd(cube_root))(A).numpy().sum((0, 1)), second)


def test_under_vmap_and_backward() -> None:
    found = func.vmap(func.grad(cube_root))(A)
    np.testing.assert_allclose(found.numpy(), A.numpy() ** (-2 / 3) / 3)
    leaf = A.clone().requires_grad_()
    (cube_root(leaf) ** 2).sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), 2 / 3 * A.numpy() ** (-1 / 3))


RNG = np.random.default_rng(0)
M, B = gg.tensor(RNG.normal(size=(3, 3)) + 3 * np.eye(3)), gg.tensor(RNG.normal(size=3))


def residual(m: Any, b: Any) -> Any:
    """A linear system with a little curvature: m z + tanh(z) / 10 = b, z in two parts."""

    def f(z: Any) -> Any:
        flat = gg.cat([z["x"], z["y"].reshape(1)])
        r = m @ flat + 0.1 * flat.tanh() - b
        return {"x": r[:2], "y": r[2]}

    return f


def fixed_point(m: Any, b: Any) -> Any:
    def solve(f: Any, z: Any) -> Any:
        flat = gg.zeros(3, dtype=np.float64)
        for _ in range(60):
            flat = gg.linalg.solve(m, b - 0.1 * flat.tanh())
        return {"x": flat[:2], "y": flat[2]}, "aux"

    return solve


def number(z: Any) -> Any:
    return (z["x"] ** 2).sum() + z["y"].sin()


def implicit(m: Any, b: Any, tangent_solve: Any = None) -> Any:
    guess = {"x": gg.zeros(2, dtype=np.float64), "y": gg.zeros((), dtype=np.float64)}
    z, aux = func.custom_root(residual(m, b), guess, fixed_point(m, b), tangent_solve, has_aux=True)
    assert aux == "aux"
    return number(z)


def unrolled(m: Any, b: Any) -> Any:
    return number(fixed_point(m, b)(None, None)[0])


def test_a_system_in_a_container_with_aux_and_a_solver_of_its_own() -> None:
    """Against differentiating sixty steps of the solver."""
    asked: list[int] = []

    def own(linear: Any, right: Any) -> Any:
        asked.append(1)
        return func.implicit.dense_solve(linear, right)

    expected = func.grad(unrolled, (0, 1))(M, B)
    for solver in (None, own):
        found = func.grad(lambda m, b, solver=solver: implicit(m, b, solver), (0, 1))(M, B)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-8)
    assert asked
    np.testing.assert_allclose(
        func.hessian(lambda b: implicit(M, b))(B).numpy(), func.hessian(lambda b: unrolled(M, b))(B).numpy(), rtol=1e-7
    )


def test_the_solver_is_not_recorded() -> None:
    names: list[str] = []

    class Spy(Watcher):
        def note(self, node: Any) -> None:
            names.append(node.name)

    def simple(f: Any, x: Any) -> Any:
        for _ in range(40):
            x = x - f(x) / (3 * x * x)
        return x

    a = A.clone().requires_grad_()
    with Spy():
        func.custom_root(lambda x: x**3 - a, A * 0 + 1, simple)
    assert names.count("_Root") == 1
    assert len(names) < 10  # one evaluation of the residual, not forty


def test_wrong_shapes() -> None:
    with pytest.raises(errors.ShapeError, match=r"residual has shape \(\), expected that of the root, \(3,\)"):
        func.custom_root(lambda x: (x - A).sum(), A, lambda f, x: x)
