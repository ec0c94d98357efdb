"""`optimize.minimize`: known minima, SciPy's results with hand-written derivatives, containers, constraints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize
from scipy.optimize import rosen, rosen_der

import glassgrad as gg
from glassgrad import errors, optimize


def valley(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@pytest.mark.parametrize(
    "method",
    [
        None,
        "BFGS",
        "L-BFGS-B",
        "CG",
        "Newton-CG",
        "trust-ncg",
        "trust-krylov",
        "trust-exact",
        "SLSQP",
        "TNC",
        "Nelder-Mead",
    ],
)
def test_methods_find_the_minimum(method: str | None) -> None:
    result = optimize.minimize(valley, np.array([0.8, 1.2, 0.9]), method=method)
    assert result.success
    np.testing.assert_allclose(result.x.numpy(), np.ones(3), atol=1e-3)


def test_steps_are_those_of_a_gradient_by_hand() -> None:
    start = np.array([-1.2, 1.0, 0.5])
    ours = optimize.minimize(valley, start, method="BFGS")
    theirs = scipy_minimize(rosen, start, jac=rosen_der, method="BFGS")
    assert (ours.nit, ours.nfev) == (theirs.nit, theirs.nfev)
    np.testing.assert_allclose(ours.x.numpy(), theirs.x, rtol=1e-6)
    assert ours.fun == pytest.approx(theirs.fun, abs=1e-12)


def test_containers_arguments_and_float32_starts() -> None:
    target = gg.tensor(np.array([1.0, -2.0]))

    def loss(p: dict[str, Any], scale: float) -> Any:
        return ((p["w"] @ p["w"].T - np.eye(2)) ** 2).sum() + scale * ((p["b"] - target) ** 2).sum()

    result = optimize.minimize(loss, {"w": gg.tensor([[1.0, 0.2], [0.3, 1.0]]), "b": gg.zeros(2)}, args=(0.5,))
    np.testing.assert_allclose(result.x["w"].numpy() @ result.x["w"].numpy().T, np.eye(2), atol=1e-4)
    np.testing.assert_allclose(result.x["b"].numpy(), target.numpy(), atol=1e-4)
    assert result.x["b"].dtype == np.float64


def test_bounds_and_constraints() -> None:
    result = optimize.minimize(lambda x: ((x - 2) ** 2).sum(), np.zeros(2), bounds=[(0, 1), (0, 3)])
    np.testing.assert_allclose(result.x.numpy(), [1.0, 2.0], atol=1e-6)
    unit = {"type": "eq", "fun": lambda x: (x**2).sum() - 1}
    result = optimize.minimize(lambda x: x[0] + x[1], np.array([-0.5, -0.1]), method="SLSQP", constraints=[unit])
    np.testing.assert_allclose(result.x.numpy(), [-np.sqrt(0.5)] * 2, atol=1e-3)


def test_a_value_without_a_path_is_refused() -> None:
    with pytest.raises(errors.AutogradError, match=r"minimize: the function returned a float[\s\S]*test_optimize"):
        optimize.minimize(lambda x: float(x.sum()), np.zeros(2))
    with pytest.raises(errors.AutogradError, match="needs a tensor with one element"):
        optimize.minimize(lambda x: x * 2, np.zeros(2))
