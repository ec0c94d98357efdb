"""`gradcheck`: is this gradient right? A verdict, with the worst entry and what both sides say about it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from glassgrad import errors, provenance
from glassgrad.verify.differences import Tolerance
from glassgrad.verify.jacobian import Check, as_given, probes
from glassgrad.verify.subjects import SecondOrder, Subject, TensorSubject, WrongShape, subject_of
from glassgrad.verify.verdict import KINK, NOISE, NONDETERMINISTIC, RIGHT, WRONG, Entry, Row, Verdict

Array = Any
REPEATS = 3


def gradcheck(
    fn: Any,
    *inputs: Any,
    eps: float | None = None,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = False,
    nondet_tol: float = 0.0,
    samples: int = 200,
) -> Verdict:
    """Compare a gradient with differences of the function, and say what the comparison means.

    Everything is computed in float64, whatever was given, so that rounding is not taken for a mistake. Where a
    difference is suspicious the step is varied and both sides are looked at, so that a kink is not either.

    Args:
        fn: a function of Tensors that returns Tensors; a module (its parameters are checked too); a layer or
            loss by hand with `forward`, `backward(dout)` and `parameters()` on NumPy arrays; a function or module
            of PyTorch.
        *inputs: what to call it with: floating-point tensors and arrays of any shape, and containers of them, are
            varied (only those with `requires_grad`, if any has it); the rest is passed on. One tuple of all of
            them is accepted, as in `torch.autograd.gradcheck`.
        eps: the relative step; by default 1e-6, and a sweep around it where that is not enough.
        atol, rtol: what counts as equal, ``|analytic - numeric| <= atol + rtol * |numeric|``.
        raise_exception: raise the verdict, unless it is "right" or "float32 noise".
        nondet_tol: by how much two runs may differ.
        samples: of larger inputs and parameters so many entries are varied one by one, and all of them together
            along random directions.

    Returns:
        A `Verdict`, whose `kind` is one of

        - "right";
        - "wrong": differences and rule disagree at a point where the function is smooth;
        - "float32 noise": the rule is right, but in the precision that was given (or that the function computes in)
          rounding errors are larger than the tolerance;
        - "kink here": the function has no derivative at this point (relu at 0, a tie of a maximum); try another;
        - "nondeterministic": two runs on the same numbers differ (dropout).

    Raises:
        KindError: nothing to vary, or results that are not tensors.
        GradcheckError: with `raise_exception`.

    Example:
        >>> import numpy as np
        >>> from glassgrad.verify import gradcheck
        >>> gradcheck(lambda x: (x * x).sum(), np.array([1.0, 2.0])).kind
        'right'
        >>> gradcheck(lambda x: x.relu().sum(), np.array([1.0, 0.0])).kind
        'kink here'
    """
    subject = subject_of(fn, _spread(inputs))
    title = f"gradcheck of {subject.title}"
    verdict = _judge(subject, title, eps, Tolerance(atol, rtol), nondet_tol, samples)
    return _finish(verdict, raise_exception)


def gradgradcheck(
    fn: Any,
    *inputs: Any,
    eps: float | None = None,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = False,
    nondet_tol: float = 0.0,
    samples: int = 200,
) -> Verdict:
    """Check second derivatives: `gradcheck` of the gradient, as a function of the inputs and of its cotangents.

    Arguments, verdicts and errors are those of `gradcheck`. Layers by hand have no second derivative.

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


def _spread(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return inputs[0] if len(inputs) == 1 and type(inputs[0]) is tuple else inputs


def _finish(verdict: Verdict, raise_exception: bool) -> Verdict:
    if raise_exception and not verdict:
        raise errors.GRADCHECK_FAILED(verdict=verdict, where=provenance.here(1))
    return verdict


def _judge(
    subject: Subject, title: str, eps: float | None, tolerance: Tolerance, nondet_tol: float, samples: int
) -> Verdict:
    with np.errstate(all="ignore"), warnings.catch_warnings():  # the verdict says what is not finite
        warnings.simplefilter("ignore")
        try:
            exact = _runs(subject)
            verdict = _check(subject, title, eps, tolerance, nondet_tol, samples)
            if exact and verdict.kind == RIGHT and np.finfo(subject.lowest).bits < 64:
                verdict = _check_as_given(subject, verdict, eps, tolerance)
        except WrongShape as wrong:
            why = f"backward returns a gradient of shape {wrong.given} for {wrong.name} of shape {wrong.expected}"
            return Verdict(WRONG, None, (), why, title)
    return verdict


def _runs(subject: Subject) -> bool:
    """Turn to float64, where the function can; tell whether it does."""
    values = [variable.value for variable in subject.variables]
    if np.finfo(subject.lowest).bits == 64:
        return True
    try:
        subject.evaluate(values)
    except errors.GlassgradError:
        raise
    except Exception:  # noqa: BLE001 - whatever a kernel says that has no float64
        subject.exact = False
        subject.evaluate(values)  # an error that has nothing to do with the precision is the caller's
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
        # A draw that coincided before is not to be taken for a wrong rule.
        differing = _nondeterministic(subject, values, nondet_tol, 2 * REPEATS)
        if differing is not None:
            return Verdict(NONDETERMINISTIC, differing, (), "two runs on the same numbers differ", title)
    kind = _decide(entries)
    chosen = [entry for entry in entries if entry.status == kind]
    # Of several that are infinitely bad, the one whose own derivative is not finite.
    worst = max(chosen, key=lambda entry: (check.badness(entry), not math.isfinite(entry.analytic)), default=None)
    if worst is not None:
        worst = check.locate(worst)
    return Verdict(kind, worst, _rows(subject, entries), _why(kind, subject, chosen, entries), title)


def _check_as_given(subject: Subject, verdict: Verdict, eps: float | None, tolerance: Tolerance) -> Verdict:
    """Look whether what is right in float64 can be seen in the precision that was given."""
    exact = Check(subject, eps, tolerance)
    subject.exact = False
    try:
        subject.evaluate([variable.value for variable in subject.variables])
    except Exception:  # noqa: BLE001 - what was given may not fit together before it is all float64
        return verdict
    found = as_given(exact, Check(subject, eps, tolerance))
    if found is None:
        return verdict
    name = subject.lowest.name
    why = f"the rule is right in float64; in {name} rounding errors are larger than what is to be compared"
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
