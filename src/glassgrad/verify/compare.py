"""A comparison of a hand-written gradient with the true one, printed as one line."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

from glassgrad.ops.core import Array

RELATIVE, ABSOLUTE = 1e-5, 1e-8  # the tolerances of "approximately equal", as in numpy.allclose


@dataclass(frozen=True)
class Comparison:
    """The outcome of `compare`. True if the two agree at least approximately.

    Example:
        >>> import numpy as np
        >>> from glassgrad.verify import compare
        >>> found = compare("dx", np.ones(2), np.ones(2))
        dx              | exact: True  | approximate: True  | maxdiff: 0
        >>> bool(found), found.exact
        (True, True)
    """

    name: str
    exact: bool
    approximate: bool
    maxdiff: float
    shapes: tuple[tuple[int, ...], tuple[int, ...]]

    def __bool__(self) -> bool:
        return self.approximate

    def __str__(self) -> str:
        mine, theirs = self.shapes
        difference = f"maxdiff: {self.maxdiff:.3g}" if mine == theirs else f"shapes: {mine} and {theirs}"
        return f"{self.name:<15} | exact: {self.exact!s:<5} | approximate: {self.approximate!s:<5} | {difference}"


def compare(name: str, mine: Array, theirs: Array, *, show: bool = True) -> Comparison:
    """Compare two gradients, print one aligned line (unless `show` is False) and return the outcome.

    Both may be arrays, Tensors or numbers. The shapes must be equal: a gradient that only broadcasts to the right shape
    is wrong. `maxdiff` is the largest absolute difference (inf if the shapes differ).

        >>> import numpy as np
        >>> _ = compare("w", np.array([1.0, 2.0]), np.array([1.0, 2.0 + 1e-9]))
        w               | exact: False | approximate: True  | maxdiff: 1e-09
        >>> bool(compare("b", np.zeros((3, 1)), np.zeros(3)))
        b               | exact: False | approximate: False | shapes: (3, 1) and (3,)
        False
    """
    left, right = as_array(mine), as_array(theirs)
    same_shape = left.shape == right.shape
    result = Comparison(
        name,
        exact=same_shape and bool(np.array_equal(left, right)),
        approximate=same_shape and bool(np.allclose(left, right, RELATIVE, ABSOLUTE)),
        maxdiff=_largest_difference(left, right) if same_shape else float("inf"),
        shapes=(left.shape, right.shape),
    )
    if show:
        sys.stdout.write(f"{result}\n")
    return result


def _largest_difference(left: Array, right: Array) -> float:
    if not left.size:
        return 0.0
    return float(np.max(np.abs(np.asarray(left, np.float64) - np.asarray(right, np.float64))))


def as_array(value: Array) -> Array:
    """Return an array, a Tensor (its value, not its gradient), a list or a number as an array."""
    if hasattr(value, "detach"):
        value = value.detach()
        value = value.numpy() if hasattr(value, "numpy") else value
    return np.asarray(value)
