"""Sums of products in index notation, contracted pair by pair in a planned order.

A plan is made once per equation and shapes, then cached. Each step applies ordinary primitives, so every step has its
derivative: first sums and diagonals within one operand; then, for a pair, a transpose into the order (shared and kept,
only here, summed) and one batched matrix product by BLAS. NumPy finds the order of contractions for three or more
operands.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.ops.complex_input import takes_complex
from glassgrad.ops.core import Array
from glassgrad.ops.linalg import matmul
from glassgrad.ops.reduce import sum_p
from glassgrad.ops.shape import permute_p, reshape_p

Shape = tuple[int, ...]
ALL_ORDERS = 5
"""The largest number of operands for which all orders of contraction are compared; beyond, the greedy one is used."""

_NO_LIMIT = 2**62
"""The limit on elements of an intermediate result; NumPy's default forbids results larger than all operands."""

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class _Pair(NamedTuple):
    """One step: contract operands `left` and `right` (positions in the list) into a new last one."""

    left: int
    right: int
    out: str


class _Plan(NamedTuple):
    """The letters of each operand (with the ellipsis expanded), the steps, and the result's letters."""

    terms: tuple[str, ...]
    steps: tuple[_Pair, ...]
    out: str


# --- planning -------------------------------------------------------------------------------------


def _fail(equation: str, shapes: Sequence[Shape], reason: str) -> Exception:
    given = ", ".join(str(shape) for shape in shapes)
    return errors.EINSUM(equation=equation, shapes=given, reason=reason, where=provenance.here())


@lru_cache(maxsize=1024)
def _plan(equation: str, shapes: tuple[Shape, ...]) -> _Plan:
    """Parse the equation against the shapes and decide the order of contractions."""
    terms, out = _spelled_out(equation, shapes)
    sizes = _sizes(equation, terms, shapes)
    unknown = [letter for letter in out if letter not in sizes]
    if unknown:
        raise _fail(equation, shapes, f"index {unknown[0]!r} of the result is in no operand")
    if len(set(out)) != len(out):
        raise _fail(equation, shapes, "an index occurs twice in the result")
    # Before any product, each operand takes its diagonals and sums the indices that occur nowhere else.
    own = [_reduced(term, [*terms[:at], *terms[at + 1 :], out]) for at, term in enumerate(terms)]
    steps = []
    current = list(own)
    for left, right in _order(own, out, sizes):
        rest = "".join(term for at, term in enumerate(current) if at not in (left, right)) + out
        last = len(current) == 2
        merged = out if last else "".join(dict.fromkeys(i for i in current[left] + current[right] if i in rest))
        current = [term for at, term in enumerate(current) if at not in (left, right)] + [merged]
        steps.append(_Pair(left, right, merged))
    return _Plan(tuple(terms), tuple(steps), out)


def _spelled_out(equation: str, shapes: Sequence[Shape]) -> tuple[list[str], str]:
    """Replace the ellipsis by letters and give the result its indices, if the equation does not."""
    left, arrow, out = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        raise _fail(equation, shapes, f"it names {len(terms)} operands, given {len(shapes)}")
    letters = [char for char in left + out if char not in ".,"]
    wrong = [char for char in letters if char not in _LETTERS]
    if wrong:
        raise _fail(equation, shapes, f"{wrong[0]!r} is no index; expected letters, ',', '->' and '...'")
    # By default the result has every index that occurs once, in alphabetic order.
    implied = "".join(sorted(char for char in set(letters) if left.count(char) == 1))
    free = [char for char in reversed(_LETTERS) if char not in letters]
    hidden = 0
    for term, shape in zip(terms, shapes, strict=True):
        named = len(term.replace("...", ""))
        hidden = max(hidden, len(shape) - named if "..." in term else 0)
    dots = "".join(free[:hidden])
    full = []
    for term, shape in zip(terms, shapes, strict=True):
        here = len(shape) - len(term.replace("...", "")) if "..." in term else 0
        spelled = term.replace("...", dots[len(dots) - here :] if here > 0 else "")
        if "." in spelled or here < 0 or len(spelled) != len(shape):
            raise _fail(equation, shapes, f"{term!r} does not name the {len(shape)} dimensions of shape {shape}")
        full.append(spelled)
    return full, out.replace("...", dots) if arrow else dots + implied


def _sizes(equation: str, terms: Sequence[str], shapes: Sequence[Shape]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for letter, size in zip(term, shape, strict=True):
            known = sizes.setdefault(letter, size)
            if known == 1:
                sizes[letter] = size
            elif size not in (1, known):
                raise _fail(equation, shapes, f"index {letter!r} has size {known} in one place and {size} in another")
    return sizes


def _reduced(term: str, others: Sequence[str]) -> str:
    """The indices left in an operand after its diagonals are taken and its own are summed."""
    needed = "".join(others)
    return "".join(letter for letter in dict.fromkeys(term) if letter in needed)


def _order(terms: Sequence[str], out: str, sizes: dict[str, int]) -> list[tuple[int, int]]:
    """The pairs to contract, as positions in the shrinking list of operands."""
    if len(terms) < 3:
        return [(0, 1)] if len(terms) == 2 else []
    # NumPy needs only shapes; arrays that broadcast one element stand for the operands.
    stands = [np.broadcast_to(np.float32(0), tuple(sizes[letter] for letter in term)) for term in terms]
    search = "optimal" if len(terms) <= ALL_ORDERS else "greedy"
    equation = f"{','.join(terms)}->{out}"
    (_, *path), _ = np.einsum_path(equation, *stands, optimize=(search, _NO_LIMIT))
    pairs: list[tuple[int, int]] = []
    count = len(terms)
    for step in path:
        first, second, *more = sorted(step)
        pairs.append((first, second))
        count -= 1
        # The result of a pair is appended; operands after the pair have moved up.
        for moved, position in enumerate(more, start=2):
            pairs.append((position - moved, count - 1))
            count -= 1
    return pairs


# --- one operand ----------------------------------------------------------------------------------


def _diagonal(x: Array, term: str) -> tuple[Array, str]:
    """Take the diagonal of every index that occurs twice."""
    while len(set(term)) < len(term):
        letter = next(char for char in term if term.count(char) > 1)
        first = term.index(letter)
        second = term.index(letter, first + 1)
        rest = [axis for axis in range(len(term)) if axis not in (first, second)]
        size = x.shape[first]
        x = permute_p(x, axes=(*rest, first, second))
        # Laid end to end, the diagonal is every (size + 1)th element.
        flat = reshape_p(x, shape=(*(x.shape[axis] for axis in range(len(rest))), size * size))
        x = flat[..., :: size + 1]
        term = "".join(term[axis] for axis in rest) + letter
    return x, term


def _prepared(x: Array, term: str, keep: str) -> tuple[Array, str]:
    """Take diagonals and sum over the indices that are not in `keep`."""
    if len(set(term)) < len(term):
        x, term = _diagonal(x, term)
    gone = tuple(axis for axis, letter in enumerate(term) if letter not in keep)
    if not gone:
        return x, term
    return sum_p(x, axis=gone, keepdims=False), "".join(letter for letter in term if letter in keep)


def _ordered(x: Array, term: str, wanted: str) -> Array:
    if term == wanted:
        return x
    return permute_p(x, axes=tuple(term.index(letter) for letter in wanted))


def _shaped(x: Array, shape: Shape) -> Array:
    """Return x in a shape; matrices usually have it already."""
    return x if tuple(x.shape) == shape else reshape_p(x, shape=shape)


# --- two operands ---------------------------------------------------------------------------------


def _without_ones(x: Array, term: str, other: Array, other_term: str) -> tuple[Array, str]:
    """Drop indices of size 1 that broadcast against the other operand."""
    gone = [
        axis
        for axis, letter in enumerate(term)
        if x.shape[axis] == 1 and letter in other_term and other.shape[other_term.index(letter)] != 1
    ]
    if not gone:
        return x, term
    shape = tuple(n for axis, n in enumerate(x.shape) if axis not in gone)
    return reshape_p(x, shape=shape), "".join(letter for axis, letter in enumerate(term) if axis not in gone)


def _contract(a: Array, a_term: str, b: Array, b_term: str, out: str) -> Array:
    """The sum of products of two operands over the indices that `out` lacks."""
    a, a_term = _without_ones(a, a_term, b, b_term)
    b, b_term = _without_ones(b, b_term, a, a_term)
    a, a_term = _prepared(a, a_term, b_term + out)
    b, b_term = _prepared(b, b_term, a_term + out)
    shared = [letter for letter in a_term if letter in b_term]
    kept = "".join(letter for letter in out if letter in shared)
    summed = "".join(letter for letter in shared if letter not in out)
    # Use the order of the result, so that no transpose is needed afterwards.
    a_free = "".join(letter for letter in out if letter in a_term and letter not in shared)
    b_free = "".join(letter for letter in out if letter in b_term and letter not in shared)
    if not summed:
        return _product(a, a_term, b, b_term, out)
    sizes = dict(zip(a_term, a.shape, strict=True)) | dict(zip(b_term, b.shape, strict=True))
    lead = tuple(sizes[letter] for letter in kept)
    inner = math.prod(sizes[letter] for letter in summed)
    left = _shaped(_ordered(a, a_term, kept + a_free + summed), (*lead, _count(sizes, a_free), inner))
    right = _shaped(_ordered(b, b_term, kept + summed + b_free), (*lead, inner, _count(sizes, b_free)))
    y = matmul(left, right)
    found = kept + a_free + b_free
    return _ordered(_shaped(y, tuple([sizes[letter] for letter in found])), found, out)


def _count(sizes: dict[str, int], letters: str) -> int:
    return math.prod(sizes[letter] for letter in letters)


def _product(a: Array, a_term: str, b: Array, b_term: str, out: str) -> Array:
    """The elementwise product when no index is summed, with size-1 axes where an operand lacks an index."""

    def spread(x: Array, term: str) -> Array:
        order = "".join(letter for letter in out if letter in term)
        turned = _ordered(x, term, order)
        sizes = dict(zip(order, turned.shape, strict=True))
        return reshape_p(turned, shape=tuple(sizes.get(letter, 1) for letter in out))

    return spread(a, a_term) * spread(b, b_term)


# --- public ---------------------------------------------------------------------------------------


@takes_complex
def einsum(equation: Any, *operands: Any) -> Array:
    """Sum of products in Einstein's notation: ``einsum("bij,bjk->bik", a, b)``.

    Indices that are not in the result are summed; ``...`` stands for leading dimensions that broadcast; an
    index twice in one operand takes its diagonal. The form ``einsum(a, [0, 1], b, [1, 2], [0, 2])`` works too.

    Example:
        >>> import glassgrad as gg
        >>> gg.einsum("ij,ij->i", gg.ones(2, 3), gg.ones(2, 3)).tolist()
        [3.0, 3.0]
    """
    if not isinstance(equation, str):
        equation, operands = _from_lists(equation, *operands)
    elif len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = tuple(operands[0])
    plan = _plan(equation, tuple(tuple(x.shape) for x in operands))
    if len(operands) == 1:
        x, term = _prepared(operands[0], plan.terms[0], plan.out)
        return _ordered(x, term, plan.out)
    current = []
    for at, (x, term) in enumerate(zip(operands, plan.terms, strict=True)):
        others = "".join(plan.terms[:at] + plan.terms[at + 1 :]) + plan.out
        current.append(_prepared(x, term, others))
    for step in plan.steps:
        (a, a_term), (b, b_term) = current[step.left], current[step.right]
        y = _contract(a, a_term, b, b_term, step.out)
        current = [entry for at, entry in enumerate(current) if at not in (step.left, step.right)]
        current.append((y, step.out))
    return current[0][0]


def _from_lists(*parts: Array) -> tuple[str, tuple[Any, ...]]:
    """Turn operands that alternate with lists of numbers into an equation."""

    def letters(numbers: Sequence[Any]) -> str:
        return "".join("..." if number is Ellipsis else _LETTERS[number] for number in numbers)

    operands = parts[: len(parts) // 2 * 2 : 2]
    terms = [letters(numbers) for numbers in parts[1::2]]
    equation = ",".join(terms)
    if len(parts) % 2:
        equation += f"->{letters(parts[-1])}"
    return equation, operands


@takes_complex
def chain_matmul(*matrices: Array) -> Array:
    """Product of several matrices in the cheapest order (`linalg.multi_dot`)."""
    if len(matrices) == 1:
        return matrices[0]
    letters = "abcdefghijklmnopqrstuvwxyz"
    first = "" if len(matrices[0].shape) == 1 else "A"
    last = "" if len(matrices[-1].shape) == 1 else "Z"
    names = [first, *letters[: len(matrices) - 1], last]
    terms = [left + right for left, right in itertools.pairwise(names)]
    return einsum(f"{','.join(terms)}->{first}{last}", *matrices)
