"""Judge sweeps through a chain of Jacobians, and numbers that carry their speed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from glassgrad.lessons.exercise import Answer, Steps, Verdict
from glassgrad.lessons.hints import judged

STEPS = Steps()


class _Watched(np.ndarray):
    """A matrix that notes when it is multiplied with another one."""

    products = 0

    def __matmul__(self, other: Any) -> Any:
        _Watched.products += np.ndim(other) == 2
        return np.asarray(self) @ np.asarray(other)

    def __rmatmul__(self, other: Any) -> Any:
        _Watched.products += np.ndim(other) == 2
        return np.asarray(other) @ np.asarray(self)


def _chain(sizes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(0)
    _Watched.products = 0
    return [rng.normal(size=(m, n)).view(_Watched) for n, m in pairwise(sizes)]


def _whole(matrices: list[Any]) -> Any:
    whole = np.eye(matrices[0].shape[1])
    for matrix in matrices:
        whole = np.asarray(matrix) @ whole
    return whole


def _sweep(function: Answer, name: str, forward: bool) -> Verdict:
    square, other = _chain((3, 3, 3)), _chain((4, 3, 2))
    vector = np.array([1.0, -2.0, 0.5])
    whole, turned = _whole(square), _whole(square[::-1])
    right = (whole, turned) if forward else (whole.T, turned.T)
    hint = judged(
        function(list(square), vector.copy()),
        right[0] @ vector,
        (right[0].T @ vector, "That is the other end: the vector stands on the other side of the product."),
        (right[1] @ vector, "The matrices come in the wrong order. Which step meets the vector first?"),
        (right[1].T @ vector, "The matrices come in the wrong order, and the vector stands on the other side."),
        what=f"{name}(matrices, vector)",
    )
    if hint is None:
        _Watched.products = 0
        size = 4 if forward else 2
        function(list(other), np.ones(size))
        if _Watched.products:
            return "Two matrices were multiplied with each other: bracket the product so that there always is a vector."
    return hint


@STEPS("push", section="As matrices")
def _push(push: Answer) -> Verdict:
    return _sweep(push, "push", forward=True)


@STEPS("pull", section="As matrices")
def _pull(pull: Answer) -> Verdict:
    return _sweep(pull, "pull", forward=False)


_J = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


@STEPS("the Jacobian by columns", section="As matrices")
def _columns(jacobian_by_columns: Answer) -> Verdict:
    return judged(
        jacobian_by_columns(lambda v: _J @ v, 3),
        _J,
        (_J.T, "Every sweep gave a column, and they are stacked as rows."),
        (_J.sum(1), "One sweep with all ones adds the columns up. Each input has to move alone."),
        what="jacobian_by_columns(forward_sweep, 3)",
    )


@STEPS("the Jacobian by rows", section="As matrices")
def _rows(jacobian_by_rows: Answer) -> Verdict:
    return judged(
        jacobian_by_rows(lambda u: u @ _J, 2),
        _J,
        (_J.T, "Every sweep gave a row, and they are stacked as columns."),
        (_J.sum(0), "One sweep with all ones adds the rows up. Each result has to count alone."),
        what="jacobian_by_rows(reverse_sweep, 2)",
    )


@STEPS("which is cheaper", section="As matrices")
def _cheaper(cheaper: Answer) -> Verdict:
    for n, m, right in ((1_000_000, 1, ("reverse", 1)), (1, 200, ("forward", 1)), (7, 3, ("reverse", 3))):
        found = cheaper(n, m)
        if not isinstance(found, tuple) or len(found) != 2:
            return 'cheaper(n, m) has to be a pair, as ("forward", 5).'
        if found[0] != right[0]:
            return f"cheaper({n}, {m}) is {found}. Forward mode takes a sweep per input, reverse mode one per result."
        if found[1] != right[1]:
            return f"cheaper({n}, {m}) is {found}: how many sweeps is that, one per input or one per result?"
    return None


@STEPS("a product of pairs", section="One function, both ways", gaps=("Dual.__mul__",))
def _product(Dual: Answer) -> Verdict:
    a, b = Dual(3.0, 2.0), Dual(5.0, 7.0)
    return judged(
        (a * b).speed,
        31.0,
        (14.0, "The product of the speeds is not the speed of the product: (3 + 2t)(5 + 7t) grows by how much?"),
        (10.0, "The second factor moves too."),
        (21.0, "The first factor moves too."),
        (9.0, "Each speed is magnified by the value of the other factor."),
        (29.0, "Each speed is magnified by the value of the other factor, not by its own."),
        (41.0, "Each speed is magnified by the value of the other factor, not by its own."),
        what="the speed of Dual(3, speed=2) * Dual(5, speed=7)",
    )


@STEPS("a sine of a pair", section="One function, both ways", gaps=("Dual.sin",))
def _sine(Dual: Answer) -> Verdict:
    return judged(
        Dual(1.0, 2.0).sin().speed,
        2 * np.cos(1.0),
        (np.cos(1.0), "That is the slope of the sine. The number inside moves with a speed of its own."),
        (np.cos(2.0), "The slope of the sine is taken at the value, and the speed multiplies it."),
        (-2 * np.cos(1.0), "The slope of the sine is the cosine, with a plus."),
        (2 * np.sin(1.0), "The slope of the sine is the cosine."),
        (np.sin(2.0), "A speed does not go through the function, but through its slope."),
        what="the speed of Dual(1, speed=2).sin()",
    )
