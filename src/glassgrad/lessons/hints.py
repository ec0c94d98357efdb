"""Hints of judges: for known wrong results, and for each kind of mistake in a derivation."""

from __future__ import annotations

import numpy as np

from glassgrad.lessons.exercise import Verdict
from glassgrad.verify import edits
from glassgrad.verify.compare import as_array

__all__ = ["ELSE", "KINDS", "close", "judged"]

# For each kind of mistake of `check_my_backward`, a question that leads to the answer without giving it.
KINDS: dict[str, str] = {
    edits.SIGN: "The size is right. Nudge the value upwards: does the loss rise or fall?",
    edits.SUM: "In the forward pass the value was broadcast: one entry was used in several places. "
    "Slopes add over paths, so its gradient sums over them.",
    edits.WRONG_SUM: "Along which axis was the value broadcast in the forward pass? Sum over that one, and keep the "
    "shape of the value.",
    edits.TRANSPOSE: "The factors of a matrix product are right, but one of them is transposed, or they stand in the "
    "wrong order. Write the product with indices: which index is summed over?",
    edits.ACCUMULATION: "The value is used more than once in the forward pass: each use adds its share (+=) to what "
    "the others gave.",
    edits.ASSIGNMENT: "The value is used more than once, or an index repeats: each use adds its share to what is there "
    "instead of overwriting it.",
    edits.SCALE: "Where does the forward pass take a mean, or divide by a number of entries?",
    edits.EXTRA_SCALE: "How many means does the forward pass take, and over how many entries?",
    edits.N_MINUS_1: "By which of them does the forward pass divide?",
    edits.UPDATE: "The earlier value is not a share of this gradient; assign the first share (=).",
    edits.CONSTANT: "Differentiate that line again: which exponent, which factor?",
    edits.VARIABLE: "Which value of the forward pass does the slope of this step depend on, and whose gradient "
    "comes in?",
    edits.FACTOR: "Missing, or on the wrong side of a fraction. What is the local slope of this step?",
    edits.EXTRA_FACTOR: "The gradient that comes in holds what came after; multiply by the slope of this one "
    "step alone.",
    edits.MASK: "Which entries of the forward pass let the value through?",
    edits.SHAPE: "A gradient has one number for each number of the value.",
    edits.MINUS: "The shares of all uses are summed, each with its own sign.",
    edits.TIES: "Several entries are tied for the largest, and each gets the whole gradient.",
    edits.ALIAS: "Changing one changes the other. Write a copy, with .copy().",
}
# If no small change would correct it.
ELSE = (
    "It is not the gradient, nor close to it. Take the line of the forward pass that uses the value, write "
    "down the slope of that line alone, and multiply by the gradient of what the line made."
)


def close(found: object, expected: object, tolerance: float = 1e-6) -> bool:
    """Tell whether two results have the same shape and nearly the same numbers."""
    array, wanted = as_array(found), as_array(expected)
    if array.shape != wanted.shape or array.dtype.kind not in "biufc":
        return False
    return bool(np.allclose(array, wanted, rtol=tolerance, atol=tolerance, equal_nan=True))


def judged(
    found: object, expected: object, *known: tuple[object, str], what: str = "the result", tolerance: float = 1e-6
) -> Verdict:
    """Return None for a right result, the hint of the known wrong result that it equals, or the difference.

    `known` are pairs of a wrong result and its hint.

        >>> judged(12.0, 9.0, (6.0, "x * x, not x + x"), what="square(3)")
        'square(3) is 12, expected 9.'
        >>> judged(6.0, 9.0, (6.0, "x * x, not x + x"), what="square(3)")
        'x * x, not x + x'
    """
    if close(found, expected, tolerance):
        return None
    for wrong, hint in known:
        if close(found, wrong, tolerance):
            return hint
    return _difference(found, expected, what)


def _difference(found: object, expected: object, what: str) -> str:
    if found is None:
        return f"{what} is None: is a `return` missing?"
    array, wanted = as_array(found), as_array(expected)
    if array.dtype.kind not in "biufc":
        return f"{what} is of type {type(found).__name__}, expected numbers."
    if array.shape != wanted.shape:
        return f"{what} has shape {array.shape}, expected {wanted.shape}."
    if not np.isfinite(array).all() and np.isfinite(wanted).all():
        return f"{what} holds {_numbers(array[~np.isfinite(array)][0])}, expected finite numbers."
    if array.size <= 6:
        return f"{what} is {_numbers(array)}, expected {_numbers(wanted)}."
    at = np.unravel_index(np.argmax(np.abs(array - wanted)), array.shape)
    place = ", ".join(map(str, at))
    return f"{what} is {_numbers(array[at])} at [{place}], expected {_numbers(wanted[at])}."


def _numbers(array: np.ndarray | float) -> str:
    array = np.asarray(array)
    return f"{array:.6g}" if array.ndim == 0 else np.array2string(array, precision=4, separator=", ").replace("\n", "")
