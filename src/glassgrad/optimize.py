"""`scipy.optimize.minimize` with derivatives from the tape: gradients, and Hessians for methods that use them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine import backward, tree
from glassgrad.engine.tensor import Tensor, make
from glassgrad.errors.missing import lister
from glassgrad.errors.packages import needed
from glassgrad.func import hvp, jacrev
from glassgrad.ops.core import Array

_WITH_PRODUCTS = frozenset({"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"})
_WITH_HESSIANS = frozenset({"dogleg", "trust-exact"})
_WITHOUT_GRADIENT = frozenset({"nelder-mead", "powell", "cobyla", "cobyqa"})


class _Packing:
    """Conversion between a container of tensors and the single float64 vector that SciPy works on."""

    def __init__(self, x0: Array) -> None:
        leaves, self.structure = tree.flatten(x0)
        arrays = [leaf.detach().array if isinstance(leaf, Tensor) else np.asarray(leaf) for leaf in leaves]
        self.shapes = [array.shape for array in arrays]
        self.ends = np.cumsum([array.size for array in arrays]).tolist()
        self.start = np.concatenate([array.reshape(-1).astype(np.float64) for array in arrays] or [np.zeros(0)])

    def leaves(self, vector: Array) -> list[Array]:
        """Cut the vector (an ndarray or a Tensor) into the leaves."""
        begins = [0, *self.ends[:-1]]
        parts = zip(begins, self.ends, self.shapes, strict=True)
        return [vector[begin:end].reshape(shape) for begin, end, shape in parts]

    def build(self, vector: Array) -> Array:
        """Return the container that the user's function expects."""
        return tree.unflatten(self.structure, self.leaves(vector))


def minimize(
    fun: Callable[..., Any],
    x0: Array,
    args: Sequence[Any] = (),
    method: str | None = None,
    *,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """Minimise a scalar function of tensors with `scipy.optimize.minimize`.

    Gradients come from `fun` itself; Newton-CG, trust-ncg, trust-krylov and trust-constr also get products with the
    Hessian, dogleg and trust-exact the Hessian. Everything is computed in float64.

    Args:
        fun: takes x (a Tensor, or a container like `x0`) and `args`, returns a Tensor with one element.
        x0: the starting point: an array, a Tensor, or nested tuples, lists and dicts of them.
        args: further arguments of `fun`.
        method: SciPy's name of the method; SciPy chooses if None.
        bounds: as for SciPy, one pair for each number in the flattened x.
        constraints: SciPy's dicts {"type": "eq" or "ineq", "fun": function of x}; their Jacobians are computed, too.
        tol, callback, options: passed to SciPy.

    Returns:
        SciPy's result; its `x` is a Tensor, or a container like `x0`.

    Raises:
        AutogradError: the value does not depend on x through the tape.

    Example:
        >>> import glassgrad as gg
        >>> from glassgrad import optimize
        >>> result = optimize.minimize(lambda x: ((x - 3) ** 2).sum(), gg.zeros(2))
        >>> result.x.round(decimals=4).tolist()
        [3.0, 3.0]
    """
    with needed("scipy", "glassgrad.optimize"):
        from scipy import optimize

    packing, place = _Packing(x0), provenance.here()

    def value_and_gradient(vector: Array) -> tuple[float, Array]:
        x = make(np.array(vector, dtype=np.float64), None, True)
        value = _scalar(fun(packing.build(x), *args), place)
        (gradient,) = backward.grad(value, x)
        assert gradient is not None  # grad raises if there is none
        return float(value.detach()), gradient.detach().array

    def value_only(vector: Array) -> float:
        value = fun(packing.build(_as_tensor(vector)), *args)
        return float(value.detach() if isinstance(value, Tensor) else value)

    def on_vector(x: Tensor) -> Array:
        return fun(packing.build(x), *args)

    chosen = "" if method is None else str(method).lower()
    derivatives: dict[str, Any] = {}
    if chosen in _WITH_PRODUCTS:
        derivatives["hessp"] = lambda x, v, *_: _bare(hvp(on_vector, (_as_tensor(x),), (_as_tensor(v),)))
    elif chosen in _WITH_HESSIANS:
        derivatives["hess"] = lambda x, *_: _bare(jacrev(jacrev(on_vector))(_as_tensor(x)))
    gradient_free = chosen in _WITHOUT_GRADIENT
    result = optimize.minimize(
        value_only if gradient_free else value_and_gradient,
        packing.start,
        method=method,
        jac=None if gradient_free else True,
        bounds=bounds,
        constraints=_constraints(constraints, packing),
        tol=tol,
        callback=callback,
        options=options,
        **derivatives,
    )
    result.x = packing.build(make(np.asarray(result.x), None, False))
    return result


def _as_tensor(vector: Array) -> Tensor:
    return make(np.array(vector, dtype=np.float64), None, False)


def _bare(x: Array) -> Array:
    return (x[1] if isinstance(x, tuple) else x).detach().array


def _scalar(value: Array, place: provenance.Place) -> Tensor:
    if not isinstance(value, Tensor) or not value._tracks:
        raise errors.MINIMIZE_NO_PATH(kind=type(value).__name__, where=place)
    if value.numel() != 1:
        raise errors.BACKWARD_NEEDS_SCALAR(shape=value.shape, where=place)
    return value


def _constraints(given: Any, packing: _Packing) -> Any:
    """Add a Jacobian to SciPy's constraint dicts; SciPy's constraint objects pass unchanged."""
    several = list(given) if isinstance(given, tuple | list) else [given]
    found = []
    for entry in several:
        if not isinstance(entry, dict) or "jac" in entry:
            found.append(entry)
            continue
        extra = tuple(entry.get("args", ()))

        def on_vector(x: Tensor, function: Any = entry["fun"], extra: Array = extra) -> Array:
            return function(packing.build(x), *extra)

        found.append(
            {
                "type": entry["type"],
                "fun": lambda x, f=on_vector: np.asarray(f(_as_tensor(x)).detach().array),
                "jac": lambda x, f=on_vector: _bare(jacrev(f)(_as_tensor(x))),
            }
        )
    return found if isinstance(given, tuple | list) else found[0]


__all__ = [
    "minimize",
]
__dir__ = lister(__name__)
