"""`gradcheck`: is this gradient right? A verdict, with the worst entry and both of its values."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.ops.narrow import finfo
from glassgrad.verify.differences import Tolerance
from glassgrad.verify.jacobian import Check, as_given, probes
from glassgrad.verify.pairs import pair_of
from glassgrad.verify.scalars import ScalarSubject, has_values
from glassgrad.verify.subjects import SecondOrder, Subject, TensorSubject, WrongShapeError, subject_of
from glassgrad.verify.verdict import KINK, NOISE, NONDETERMINISTIC, RIGHT, WRONG, Entry, Row, Verdict

Array = Any
REPEATS = 3


def gradcheck(
    fn: Any,
    *inputs: Array,
    eps: float | None = None,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = False,
    nondet_tol: float = 0.0,
    samples: int = 200,
) -> Verdict:
    """Compare a gradient with finite differences of the function, and interpret the comparison.

    Everything is computed in float64, whatever the inputs' dtype, so rounding does not look like a mistake. If a
    difference is suspicious, other steps and both sides are examined, so a kink does not look like one either.

    Args:
        fn: one of these: a function of Tensors that returns Tensors; a function of Tensors or arrays that returns a
            number and its gradient, which is then checked; a module (its parameters are checked, too); a hand-written
            layer or loss with `forward`, `backward(dout)` and `parameters()` on NumPy arrays or Tensors; a function of
            `scalar.Value`s or a network of them; a function or module of PyTorch.
        *inputs: its arguments. Floating-point tensors and arrays of any shape, and containers of them, are varied (only
            those with `requires_grad`, if there are any); other arguments are passed on. One tuple of all arguments is
            accepted, as in `torch.autograd.gradcheck`.
        eps: the relative step; by default 1e-6, with a sweep of steps if that is not enough.
        atol, rtol: the criterion of equality, ``|analytic - numeric| <= atol + rtol * |numeric|``.
        raise_exception: whether to raise an error, unless the verdict is "right" or "float32 noise".
        nondet_tol: the allowed difference between two runs.
        samples: the number of entries of larger inputs and parameters to vary one by one; all entries are also varied
            together along random directions.

    Returns:
        A `Verdict`, whose `kind` is one of

        - "right";
        - "wrong": finite differences and the rule disagree at a point where the function is smooth;
        - "float32 noise": the rule is right, but in the given precision (or the one that the function computes in)
          rounding errors are larger than the tolerance;
        - "kink here": the function has no derivative at this point (relu at 0, a tie of a maximum); try another;
        - "nondeterministic": two runs on the same numbers differ (dropout).

    Raises:
        KindError: there is nothing to vary, or results are not tensors.
        GradcheckError: the verdict is a failure, with `raise_exception`.

    Example:
        >>> import numpy as np
        >>> from glassgrad.verify import gradcheck
        >>> gradcheck(lambda x: (x * x).sum(), np.array([1.0, 2.0])).kind
        'right'
        >>> gradcheck(lambda x: x.relu().sum(), np.array([1.0, 0.0])).kind
        'kink here'
    """
    given = _spread(inputs)
    subject: Subject | None = ScalarSubject(fn, given) if has_values(fn, given) else pair_of(fn, given)
    subject = subject or subject_of(fn, given)
    title = f"gradcheck of {subject.title}"
    verdict = _judge(subject, title, eps, Tolerance(atol, rtol), nondet_tol, samples)
    return _finish(verdict, raise_exception)


def gradgradcheck(
    fn: Any,
    *inputs: Array,
    eps: float | None = None,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = False,
    nondet_tol: float = 0.0,
    samples: int = 200,
) -> Verdict:
    """Check second derivatives: `gradcheck` of the gradient, as a function of the inputs and the cotangents.

    Arguments, verdicts and errors are those of `gradcheck`. Hand-written layers have no second derivative.

    Example:
        >>> import numpy as np
        >>> from glassgrad.verify import gradgradcheck
        >>> gradgradcheck(lambda x: x.tanh(), np.array([0.5, -1.0])).kind
        'right'
    """
    first = subject_of(fn, _spread(inputs))
    if not isinstance(first, TensorSubject):
        raise errors.GRADGRADCHECK_LAYER(what=first.title, where=provenance.here())
    title = f"gradgradcheck of {first.title}"
    verdict = _judge(SecondOrder(first), title, eps, Tolerance(atol, rtol), nondet_tol, samples)
    return _finish(verdict, raise_exception)


def _spread(inputs: tuple[Array, ...]) -> tuple[Array, ...]:
    return inputs[0] if len(inputs) == 1 and type(inputs[0]) is tuple else inputs


def _finish(verdict: Verdict, raise_exception: bool) -> Verdict:
    if raise_exception and not verdict:
        raise errors.GRADCHECK_FAILED(verdict=verdict, where=provenance.here(1))
    return verdict


def _judge(
    subject: Subject, title: str, eps: float | None, tolerance: Tolerance, nondet_tol: float, samples: int
) -> Verdict:
    with np.errstate(all="ignore"), warnings.catch_warnings():  # the verdict reports non-finite values
        warnings.simplefilter("ignore")
        try:
            exact = _runs(subject)
            verdict = _check(subject, title, eps, tolerance, nondet_tol, samples)
            if exact and verdict.kind == RIGHT and finfo(subject.lowest).bits < 64:
                verdict = _check_as_given(subject, verdict, eps, tolerance)
        except WrongShapeError as wrong:
            why = f"backward returns a gradient of shape {wrong.given} for {wrong.name} of shape {wrong.expected}"
            return Verdict(WRONG, None, (), why, title)
    return verdict


def _runs(subject: Subject) -> bool:
    """Tell whether the function runs in float64; if not, switch the subject to its own precision."""
    values = [variable.value for variable in subject.variables]
    if finfo(subject.lowest).bits == 64:
        return True
    try:
        subject.evaluate(values)
    except errors.GlassgradError:
        raise
    except Exception:  # noqa: BLE001 - any error of a kernel without float64
        subject.exact = False
        subject.evaluate(values)  # an error unrelated to precision goes to the caller
        return False
    return True


def _check(
    subject: Subject, title: str, eps: float | None, tolerance: Tolerance, nondet_tol: float, samples: int
) -> Verdict:
    values = [variable.value for variable in subject.variables]
    differing = _nondeterministic(subject, values, nondet_tol)
    if differing is not None:
        return Verdict(NONDETERMINISTIC, differing, (), "two runs on the same numbers differ", title)
    check = Check(subject, eps, tolerance)
    entries = [entry for probe in probes(subject, samples) for entry in check.compare(*probe)]
    entries = check.look_closely(entries)
    if any(entry.status != RIGHT for entry in entries):
        # Two random runs that happen to agree must not give the verdict "wrong".
        differing = _nondeterministic(subject, values, nondet_tol, 2 * REPEATS)
        if differing is not None:
            return Verdict(NONDETERMINISTIC, differing, (), "two runs on the same numbers differ", title)
    kind = _decide(entries)
    chosen = [entry for entry in entries if entry.status == kind]
    # Among infinitely bad entries, prefer one whose own derivative is not finite.
    worst = max(chosen, key=lambda entry: (check.badness(entry), not math.isfinite(entry.analytic)), default=None)
    if worst is not None:
        worst = check.locate(worst)
    return Verdict(kind, worst, _rows(subject, entries), _why(kind, subject, chosen, entries), title)


def _check_as_given(subject: Subject, verdict: Verdict, eps: float | None, tolerance: Tolerance) -> Verdict:
    """Check whether a gradient that is right in float64 also holds in the given precision."""
    exact = Check(subject, eps, tolerance)
    subject.exact = False
    works = False
    with suppress(Exception):  # mixed dtypes may work together only in float64
        subject.evaluate([variable.value for variable in subject.variables])
        works = True
    found = as_given(exact, Check(subject, eps, tolerance)) if works else None
    if found is None:
        return verdict
    name = subject.lowest.name
    why = f"the rule is right in float64; in {name} rounding errors are larger than the compared differences"
    return Verdict(NOISE, found, verdict.rows, why, verdict.subject)


def _decide(entries: Sequence[Entry]) -> str:
    statuses = {entry.status for entry in entries}
    return next(kind for kind in (WRONG, KINK, NOISE, RIGHT) if kind in statuses or kind == RIGHT)


def _why(kind: str, subject: Subject, chosen: Sequence[Entry], entries: Sequence[Entry]) -> str:
    if kind == WRONG:
        said = f"{len(chosen)} of {len(entries)} comparisons disagree where the function is smooth"
        return said + _common_factor(chosen)
    if kind == KINK:
        return "the function has no derivative at this point; check it at another"
    if kind == NOISE:
        return "the function computes with fewer digits than the comparison needs"
    return f"not checked: {subject.unchecked}" if subject.unchecked else ""


def _common_factor(wrong: Sequence[Entry]) -> str:
    ratios = [entry.analytic / entry.numeric for entry in wrong if entry.numeric and math.isfinite(entry.analytic)]
    if len(ratios) < 2 or len(ratios) < len(wrong) or max(ratios) - min(ratios) > 1e-3 * abs(ratios[0]):
        return ""
    if abs(ratios[0] + 1) < 1e-3:
        return ", all by the sign"
    return f", all by the factor {ratios[0]:.4g}" if abs(ratios[0]) > 1e-12 else ", the rule gives no gradient"


def _rows(subject: Subject, entries: Sequence[Entry]) -> tuple[Row, ...]:
    rows = []
    for number, variable in enumerate(subject.variables):
        own = [entry for entry in entries if entry.variable == number]
        if own:
            relative = max(_or_infinite(entry.relative) for entry in own)
            absolute = max(_or_infinite(entry.absolute) for entry in own)
            bad = {entry.position for entry in own if entry.status in {WRONG, KINK}}
            checked = len({entry.position for entry in own})
            rows.append(Row(variable.name, variable.value.shape, checked, len(bad), relative, absolute))
    return tuple(rows)


def _or_infinite(error: float) -> float:
    return math.inf if math.isnan(error) else error


# --- running it twice -----------------------------------------------------------------------------


def _nondeterministic(
    subject: Subject, values: Sequence[Array], allowed: float, repeats: int = REPEATS
) -> Entry | None:
    """Return the first result, or entry of the gradient, that differs between runs on the same values."""
    first = subject.evaluate(values)
    cotangents = [np.ones_like(y) for y in first]
    gradient = subject.gradient(values, cotangents)
    names = [f"result {at}" for at in range(len(first))]
    named = names + [f"the gradient of {variable.name}" for variable in subject.variables]
    for _ in range(repeats):
        again = [*subject.evaluate(values), *subject.gradient(values, cotangents)]
        for number, (name, one, other) in enumerate(zip(named, [*first, *gradient], again, strict=True)):
            if one.shape != other.shape:
                return Entry(name, number, (), None, math.nan, math.nan, status=NONDETERMINISTIC)
            apart = np.abs(one - other) > allowed + 1e-12 * np.abs(one)
            if apart.any():
                at = np.unravel_index(int(np.argmax(apart)), apart.shape)
                position = tuple(int(index) for index in at)
                return Entry(
                    name, number, position, None, float(one[position]), float(other[position]), status=NONDETERMINISTIC
                )
    return None


__all__ = ["gradcheck", "gradgradcheck"]
