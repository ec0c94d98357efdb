"""Explain why a line of a derivation is wrong: first from its result, then by a small edit that corrects it."""

from __future__ import annotations

import ast
import itertools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from glassgrad.engine.tensor import Tensor
from glassgrad.ops.core import Array
from glassgrad.verify import edits
from glassgrad.verify.compare import as_array
from glassgrad.verify.derivation import Step, assigned, execute, spelled
from glassgrad.verify.kinks import Kink, kink_of
from glassgrad.verify.truth import Gradient, Share, Truth

RELATIVE = 1e-7  # relative to the terms; everything here is float64
MOST_SHARES = 8
UNKNOWN = "unknown"
FAILS = "a line that fails"


@dataclass(frozen=True)
class Diagnosis:
    """The fault of a line: a kind from `edits`, and a description.

    Example:
        >>> from glassgrad.verify import check_my_backward
        >>> def square(x):
        ...     return (x * x).sum()
        >>> check_my_backward("dx = -2 * x", square, {"x": [1.0, 2.0]}, show=False).diagnosis.kind
        'a sign'
    """

    kind: str
    words: str


@dataclass(frozen=True)
class WrongLine:
    """The first wrong line, with everything known about it.

    `before` are the names just before it ran, `mine` is the gradient after it (None if it failed with `error`). `later`
    tells whether another line changes the same gradient afterwards.
    """

    step: Step
    name: str
    spelling: str
    before: dict[str, Any]
    mine: Array
    error: Exception | None
    later: bool
    truth: Truth
    gradients: list[Gradient]


def close(value: Array, target: Array, scale: float) -> bool:
    """Tell whether two arrays have the same shape and agree up to rounding errors relative to `scale`."""
    value = as_array(value)
    if value.shape != target.shape or value.dtype.kind not in "fiuV":
        return False
    return bool(np.all(np.abs(value - target) <= RELATIVE * max(scale, 1e-300)))


def acceptable(value: Array, gradients: list[Gradient], later: bool) -> bool:
    """Tell whether a value is the gradient, or a part of it if a later line may add the rest."""
    for gradient in gradients:
        if close(value, gradient.total, gradient.scale):
            return True
        if later and is_part(value, gradient):
            return True
    return False


def is_part(value: Array, gradient: Gradient) -> bool:
    """Tell whether a value is a sum of some of the terms, or right in some entries and 0 in the others."""
    value = as_array(value)
    if value.shape != gradient.total.shape:
        return False
    wrong = np.abs(value - gradient.total) > RELATIVE * max(gradient.scale, 1e-300)
    if not np.any(value[wrong]):
        return True
    return any(close(value, total, gradient.scale) for _, total in partial_sums(gradient))


def partial_sums(gradient: Gradient) -> Iterator[tuple[tuple[Share, ...], Array]]:
    """Yield every proper, non-empty subset of terms with its sum."""
    shares = gradient.shares[:MOST_SHARES]
    for count in range(1, len(gradient.shares)):
        for chosen in itertools.combinations(shares, count):
            yield chosen, sum(share.grad for share in chosen)


def diagnose(wrong: WrongLine) -> Diagnosis:
    """Return the best diagnosis of the line."""
    for finder in (
        _by_tie,
        _by_assignment,
        _by_shares,
        _by_shape_alone,
        _by_edit,
        _by_coefficients,
        _by_shape,
        _by_ratio,
    ):
        found = finder(wrong)
        if found is not None:
            return found
    if wrong.error is not None:
        return Diagnosis(FAILS, f"{type(wrong.error).__name__}: {wrong.error}")
    return Diagnosis(UNKNOWN, _worst_entry(wrong))


# --- from the result ----------------------------------------------------------------------------


def _by_assignment(wrong: WrongLine) -> Diagnosis | None:
    for edit in edits.of_assignment(wrong.step.node):
        if edit.kind != edits.SIGN and _mends(wrong, edit):
            kind = edits.ACCUMULATION if edit.kind == edits.ASSIGNMENT else edit.kind
            return Diagnosis(kind, edit.words)
    return None


def _by_tie(wrong: WrongLine) -> Diagnosis | None:
    """Find a maximum whose tied entries each got the whole gradient."""
    found = None if wrong.error is not None else kink_at(wrong.truth, wrong.name, as_array(wrong.mine))
    if found is None or found.between:
        return None
    words = (
        f"{found.entries} entries of {wrong.name} are tied for {', '.join(found.ops)}, and each gets the whole"
        " gradient; give it to one of them, or share it"
    )
    return Diagnosis(edits.TIES, words)


def kink_at(truth: Truth, name: str, mine: Array) -> Kink | None:
    """Return the kink that explains why a gradient differs from the true one, entry by entry."""
    tensor, seen = truth.tensors.get(name), truth.seen
    if tensor is None or seen is None or len(truth.gradients.get(name, ())) != 1:
        return None
    key, gradient = tensor if tensor.node is None else tensor.node, truth.gradients[name][0]
    uses = [
        (entry, seen.cotangents_of[entry.node], sum(c for target, c in seen.sent_by[entry.node] if target is key))
        for entry in truth.applied
        if entry.node in seen.sent_by and any(parent is key for parent in entry.node.parents)
    ]
    return kink_of(mine, gradient.total, truth.values[name], uses, key, gradient.scale)


def _by_shape_alone(wrong: WrongLine) -> Diagnosis | None:
    """Find the right numbers in a wrong shape: a kept axis of size 1, or a flattened array."""
    if wrong.error is not None:
        return None
    mine = as_array(wrong.mine)
    for gradient in wrong.gradients:
        total = gradient.total
        if (
            mine.shape != total.shape
            and mine.size == total.size
            and close(mine.reshape(-1), total.reshape(-1), gradient.scale)
        ):
            words = f"the numbers are right, but their shape is {mine.shape} and that of {wrong.name} is {total.shape}"
            return Diagnosis(edits.SHAPE, f"{words}: a gradient has its variable's shape")
    return None


def _by_shares(wrong: WrongLine) -> Diagnosis | None:
    """Find a use of the variable whose term was left out."""
    if wrong.error is not None:
        return None
    for gradient in wrong.gradients:
        for chosen, total in partial_sums(gradient):
            if close(wrong.mine, total, gradient.scale):
                missing = [share for share in gradient.shares if share not in chosen]
                if {share.line for share in missing} <= {share.line for share in chosen}:
                    continue  # x * x uses x twice, but more likely a factor of 2 is missing there
                uses = "; ".join(f"line {share.line}: {share.source}" for share in missing)
                times = f"{wrong.name} is used {len(gradient.shares)} times in the forward pass"
                return Diagnosis(edits.ACCUMULATION, f"{times}, and a share is missing, that of {uses}")
    return None


def _by_coefficients(wrong: WrongLine) -> Diagnosis | None:
    """Solve for `mine` as a combination of the terms: a coefficient that is not 1 names the wrong term and factor."""
    if wrong.error is not None:
        return None
    for gradient in wrong.gradients:
        shares = gradient.shares
        mine = as_array(wrong.mine)
        if not 1 <= len(shares) <= MOST_SHARES or mine.shape != gradient.total.shape or mine.size < len(shares):
            continue
        matrix = np.stack([share.grad.ravel() for share in shares], axis=1)
        factors, *_ = np.linalg.lstsq(matrix, mine.ravel().astype(np.float64), rcond=None)
        if not close((matrix @ factors).reshape(mine.shape), mine, gradient.scale):
            continue
        off = [
            (share, float(factor)) for share, factor in zip(shares, factors, strict=True) if abs(factor - 1) > RELATIVE
        ]
        if len(off) == 1:
            return _of_factor(*off[0], wrong)
    return None


def _of_factor(share: Share, factor: float, wrong: WrongLine) -> Diagnosis:
    where = f"the share of line {share.line}: {share.source}"
    if abs(factor + 1) < RELATIVE:
        return Diagnosis(edits.SIGN, f"{where} has the opposite sign")
    if abs(factor) < RELATIVE:
        return Diagnosis(edits.ACCUMULATION, f"{where} is missing")
    return Diagnosis(_kind_of_ratio(factor, wrong), f"{where} is {factor:.6g} times what it should be")


def _by_ratio(wrong: WrongLine) -> Diagnosis | None:
    """Detect a common wrong factor."""
    for gradient in wrong.gradients:
        mine, total = as_array(wrong.mine) if wrong.error is None else np.zeros(()), gradient.total
        if wrong.error is not None or mine.shape != total.shape or not np.any(total):
            continue
        ratio = float(np.vdot(total, mine) / np.vdot(total, total))
        if close(mine, ratio * total, gradient.scale):
            return Diagnosis(_kind_of_ratio(ratio, wrong), f"it is {ratio:.6g} times what it should be")
    return None


def _kind_of_ratio(ratio: float, wrong: WrongLine) -> str:
    named = {value for value in wrong.truth.values.values() if isinstance(value, int)}
    total = wrong.gradients[0].total
    for size in sorted(sizes_of(wrong.truth) & (named | {*total.shape, total.size})):
        if abs(ratio - size) < RELATIVE * size:
            return edits.SCALE
        if abs(ratio * size - 1) < RELATIVE:
            return edits.EXTRA_SCALE
        if size != 4 and min(abs(ratio - size**0.5), abs(ratio * size**0.5 - 1)) < RELATIVE:
            return edits.FACTOR
        if min(abs(ratio - size / (size - 1)), abs(ratio - (size - 1) / size)) < RELATIVE:
            return edits.N_MINUS_1
    return edits.CONSTANT


def _by_shape(wrong: WrongLine) -> Diagnosis | None:
    if wrong.error is not None:
        return None
    mine, expected = as_array(wrong.mine).shape, wrong.gradients[0].total.shape
    if mine == expected:
        return None
    kind = edits.SHAPE
    if mine == expected[::-1]:
        kind = edits.TRANSPOSE
    elif np.prod(mine) > np.prod(expected):
        kind = edits.SUM
    elif np.prod(mine) < np.prod(expected):
        kind = edits.WRONG_SUM
    words = f"shape {mine}, but {wrong.name} has shape {expected}, and so has its gradient"
    if kind == edits.SUM:
        words += f"; where {wrong.name} was broadcast, sum its gradient over the axes of the broadcast"
    return Diagnosis(kind, words)


def _worst_entry(wrong: WrongLine) -> str:
    mine, total = as_array(wrong.mine), wrong.gradients[0].total
    worst = np.unravel_index(np.argmax(np.abs(mine - total)), total.shape)
    place = f"[{', '.join(str(int(i)) for i in worst)}]" if worst else ""
    count = int(np.sum(np.abs(mine - total) > RELATIVE * max(wrong.gradients[0].scale, 1e-300)))
    return (
        f"{count} of {total.size} entries differ; the worst is {wrong.spelling}{place} = {mine[worst]:.6g}, "
        f"expected {total[worst]:.6g}"
    )


# --- from the edit that corrects it ---------------------------------------------------------------


def sizes_of(truth: Truth) -> frozenset[int]:
    """The sizes that a derivation may divide by: axes, whole arrays, and given integers."""
    sizes = set()
    for value in truth.values.values():
        if isinstance(value, np.ndarray):
            sizes |= {*value.shape, value.size}
        elif isinstance(value, int) and not isinstance(value, bool):
            sizes.add(value)
    return frozenset(size for size in sizes if size > 1)


def surroundings(truth: Truth, before: dict[str, Any]) -> edits.Surroundings:
    """The names that an edit may use at this line: the forward pass, and the gradients found so far."""
    known = spelled(truth.gradients)
    gradients = {name: as_array(value) for name, value in before.items() if name in known}
    return edits.Surroundings(truth.values, gradients, sizes_of(truth))


def _by_edit(wrong: WrongLine) -> Diagnosis | None:
    for edit in edits.all_edits(wrong.step.node, surroundings(wrong.truth, wrong.before)):
        if _mends(wrong, edit):
            return Diagnosis(edit.kind, edit.words)
    return None


_FINDERS = (_by_tie, _by_assignment, _by_shares, _by_shape_alone, _by_edit, _by_coefficients, _by_shape, _by_ratio)


def _mends(wrong: WrongLine, edit: edits.Edit) -> bool:
    names = after(edit.node, wrong.before)
    if names is None or wrong.spelling not in names:
        return False
    value = names[wrong.spelling]
    if not acceptable(value, wrong.gradients, wrong.later):
        return False
    # An edit with only zeros as its result corrects nothing, unless the line failed without it.
    return bool(np.any(as_array(value))) or wrong.error is not None or not any(np.any(g.total) for g in wrong.gradients)


def after(statement: ast.stmt, before: dict[str, Any]) -> dict[str, Any] | None:
    """Return the names after an edited statement of the user's, or None if it fails."""
    changed = set(assigned(statement))
    names = {name: copied(value) if name in changed else value for name, value in before.items()}
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # invalid edits are expected
        warnings.simplefilter("ignore")
        failed = execute(statement, names, "<edit>")
    return names if failed is None else None


def copied(value: object) -> Any:
    """Return a copy of an array or Tensor, and anything else unchanged."""
    if isinstance(value, np.ndarray):
        return value.copy()
    return value.clone() if isinstance(value, Tensor) else value
