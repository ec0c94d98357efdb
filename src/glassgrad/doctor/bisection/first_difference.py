"""`bisect`: compare two runs that should be equal, op by op, and name the first tensor that differs."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import Any, TextIO

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.base.provenance import Place
from glassgrad.compile.against_eager import RTOL
from glassgrad.compile.api import Compiled
from glassgrad.doctor import library
from glassgrad.doctor.bisection.op_record import Event, record_run
from glassgrad.doctor.bisection.torch_run import (
    Arriving,
    TorchAside,
    given_to,
    is_torch_run,
    likened,
    paths_of,
    record_torch,
    same_parameters,
)
from glassgrad.doctor.bisection.update_record import Update, Updates, different_options, first_gap
from glassgrad.doctor.restoring.step_aside import StepAside, arrays_in, written_as
from glassgrad.engine import tree
from glassgrad.ops.core import Array
from glassgrad.ops.narrow import finfo
from glassgrad.ops.views import memory_owner

_SUMS = frozenset({"add", "subtract", "sum", "mean"})
_NOISE = 64  # the error of a sum of many numbers, in units of the rounding error of the largest one
_SLIGHT = 1e-2  # of the largest entry: a gradient smaller than this is rounding error, which Adam scales up
_RANDOM = "the random draws differ: draw as many numbers in both runs, from generators of the same seed, or call eval()"

_Shape = tuple[int, ...]
_Gap = tuple[tuple[_Shape, _Shape], _Shape, tuple[Any, Any], int, int, float, float]


@dataclass(frozen=True)
class Difference:
    """The first tensor that differs.

    Attributes:
        phase: "forward" (an op's result), "backward" (a cotangent), "arriving" (the gradient of an op's result,
            compared with PyTorch), "result" (a return value), "update" (an op of an optimizer's rule) or "state" (a
            changed variable or weight).
        name: the op, or a name for the tensor: "the result", a path such as "model.weight.grad".
        places: the user's lines in the two runs, for an update the lines of `optimizer.step()`; None if no op is known.
        shapes: of the tensor in the two runs.
        index: of the largest difference.
        values: the values there.
        count: the number of elements that differ, out of `size`.
        relative: the largest difference, divided by the largest value.
        tolerance: the relative difference that counts as rounding.
        cause: why it differs, if known.

    Example:
        >>> import glassgrad as gg
        >>> found = gg.doctor.bisect(lambda x: (x * 2).sum(), lambda x: (x * 3).sum(), gg.ones(4), report=False)
        >>> found.difference.name
        'multiply'
    """

    phase: str
    name: str
    places: tuple[Place, Place] | None
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    index: tuple[int, ...]
    values: tuple[Any, Any]
    count: int
    size: int
    relative: float
    tolerance: float
    cause: str = ""


@dataclass(frozen=True)
class Bisection:
    """The result of comparing two runs.

    Attributes:
        difference: the first one; None if there is none.
        compared: the number of tensors compared.
        parted: the first ops that differ between the runs, None for a run without an op there; None if all agree.
        program: the fault of a compiled function's program; empty if there is none.

    Example:
        >>> import glassgrad as gg
        >>> found = gg.doctor.bisect(lambda x: (x * 2).sum(), lambda x: (x * 3).sum(), gg.ones(4), report=False)
        >>> found.difference.name, found.difference.phase
        ('multiply', 'forward')
    """

    difference: Difference | None
    compared: int
    parted: tuple[Event | None, Event | None] | None = None
    program: str = ""

    @property
    def equal(self) -> bool:
        """Whether nothing differs by more than rounding; the ops may differ."""
        return self.difference is None and not self.program

    def __str__(self) -> str:
        return "\n".join(_text(self))


def bisect(
    run_a: Callable[..., Any],
    run_b: Callable[..., Any],
    *args: Any,
    rtol: float | None = None,
    report: bool = True,
    file: TextIO | None = None,
) -> Bisection:
    """Run two functions that should be equal from the same state, and name the first tensor that differs.

    The results of all ops are compared, in order, by op and shape; then the cotangents of the backward passes, the
    results and the changed state. Runs with different ops but the same outcome are equal. For compiled functions the
    originals are compared first, then each program with NumPy, instruction by instruction. After each run everything
    is restored: weights, gradients, the optimizer's state, random numbers, variables.

    Args:
        run_a, run_b: functions, models or training steps, eager or compiled, of ours or PyTorch's.
        args: the arguments of both runs; if one run is PyTorch's, each run gets tensors of its own library.
        rtol: a difference counts if it is larger than this part of the tensor's largest value; None: by dtype.
        report: print the result, to `file` or the standard output.

    Raises:
        KindError: neither run computes or returns anything that can be compared.

    Example:
        >>> import glassgrad as gg
        >>> x = gg.tensor([1.0, 2.0])
        >>> found = bisect(lambda x: (x * 2).exp().sum(), lambda x: (x * 3).exp().sum(), x, report=False)
        >>> found.difference.name, found.difference.values
        ('multiply', (4.0, 6.0))
    """
    torch = [is_torch_run(run, args) for run in (run_a, run_b)]
    found = _across((run_a, run_b), args, torch, rtol) if any(torch) else _ours((run_a, run_b), args, rtol)
    if report:
        print(found, file=file or sys.stdout)
    return found


@dataclass(frozen=True)
class _Run:
    events: list[Event]
    result: list[Array]
    state: dict[str, Array]
    updates: dict[str, list[Update]] = field(default_factory=dict)


def _restore(asides: Sequence[StepAside]) -> None:
    for aside in asides:
        aside.restore()


def _run(run: Any, args: Sequence[Any], aside: StepAside, asides: Sequence[StepAside]) -> _Run:
    """Run the original of a function, copy everything observable, and restore the state."""
    updates = Updates()
    paths = {id(tensor): path for tensor, path in aside.found.tensors.values()}
    owners = {id(memory_owner(tensor.array)): path for tensor, path in aside.found.tensors.values()}
    events, result = record_run(written_as(run), args, witness=updates, paths=owners)
    seen = _Run(events, _leaves(result), aside.values(), _by_path(updates, paths))
    _restore(asides)
    return seen


def _by_path(updates: Updates, paths: Mapping[int, str]) -> dict[str, list[Update]]:
    return {paths[key]: steps for key, steps in updates.found.items() if key in paths}


def _leaves(result: Any) -> list[Array]:
    leaves = [np.asarray(one) if isinstance(one, int | float | complex) else one for one in tree.every_leaf(result)]
    return [np.array(array) for array in arrays_in(leaves)]


# --- comparing two runs ---------------------------------------------------------------------------


def _ours(runs: Sequence[Any], args: Sequence[Any], rtol: float | None) -> Bisection:
    """Compare runs of ours, and then the programs of those that are compiled."""
    asides = [StepAside(run, args) for run in runs]
    try:
        one, other = (_run(run, args, aside, asides) for run, aside in zip(runs, asides, strict=True))
        _check_for_anything(runs, (one, other))
        found = _compared(one, other, list(_same_places(asides)), rtol)
        return _programs(runs, args, asides, found, rtol) if found.equal else found
    finally:
        _restore(asides)


def _check_for_anything(runs: Sequence[Any], seen: Sequence[_Run]) -> None:
    if not any(one.events or one.result for one in seen):
        raise errors.BISECT_NOTHING(
            runs=" and ".join(str(getattr(run, "__name__", type(run).__name__)) for run in runs)
        )


def _across(runs: Sequence[Any], args: Sequence[Any], torch: Sequence[bool], rtol: float | None) -> Bisection:
    """Compare runs of which one or both are PyTorch's: by the functions and parameters with the same names."""
    seen, things = [], []
    for run, is_torch in zip(runs, torch, strict=True):
        given, updates = [given_to(is_torch, arg) for arg in args], Updates()
        with TorchAside(run, given) as aside:
            if is_torch:
                events, result = record_torch(run, given, aside.things, updates.stepping)
                leaves = [library.numbers(one) for one in _flattened(result)]
            else:
                events, result = record_run(written_as(run), given, Arriving, updates)
                events, leaves = likened(events), _leaves(result)
            arrays = [np.array(one) for one in leaves if one is not None]
            seen.append(_Run(events, arrays, aside.state(), _by_path(updates, paths_of(aside.things))))
            things.append(aside.things)
    _check_for_anything(runs, seen)
    return _compared(seen[0], seen[1], same_parameters(*things), rtol)


def _flattened(result: Any) -> list[Any]:
    return [leaf for part in result for leaf in _flattened(part)] if isinstance(result, tuple | list) else [result]


def _compared(one: _Run, other: _Run, places: Sequence[tuple[str, str]], rtol: float | None) -> Bisection:
    matcher = SequenceMatcher(None, [e.key for e in one.events], [e.key for e in other.events], autojunk=False)
    steepest = max((_largest(e.value) for e in (*one.events, *other.events) if e.phase != "forward"), default=0.0)
    compared, parted = 0, None
    for kind, start, stop, start_b, stop_b in matcher.get_opcodes():
        if kind != "equal":
            parted = parted or (_at(one.events, start, stop), _at(other.events, start_b, stop_b))
            continue
        for a, b in zip(one.events[start:stop], other.events[start_b:stop_b], strict=True):
            compared += 1
            gap = _gap(a.value, b.value, rtol, _cancelled(a, b, steepest))
            if gap is not None:
                if parted and _outcome(one, other, places, rtol)[1] is None:
                    continue  # different ops with the same result
                found = Difference(a.phase, a.op, (a.place, b.place), *gap, cause=_cause(a, b))
                return Bisection(found, compared, parted)
    seen, left = _outcome(one, other, places, rtol)
    if left is not None and left.phase == "state":
        theirs = dict(places).get(left.name, "")
        left = _in_the_rule(left, one.updates.get(left.name, []), other.updates.get(theirs, []))
    return Bisection(left, compared + seen, parted)


def _in_the_rule(found: Difference, one: Sequence[Update], other: Sequence[Update]) -> Difference:
    """Name the op of the optimizer's rule that made two weights differ, or the steps that did."""
    if not one or not other:
        return found
    op = first_gap(one, other, lambda a, b: _gap(a, b, None, 0.0))
    if op is None:
        told = different_options(one[0], other[0])
        places = provenance.resolve(*one[0].site), provenance.resolve(*other[0].site)
        return replace(found, places=places, cause=told) if told else found
    a, b, gap, mine, theirs = op
    lines = dict.fromkeys(f"{event.place}: {event.place.source}" for event in (a, b))
    told = f"in the update of {found.name} by {mine.optimizer}, {' and '.join(lines)}"
    cause = "; ".join(part for part in (told, different_options(mine, theirs)) if part)
    places = provenance.resolve(*mine.site), provenance.resolve(*theirs.site)
    shapes, index, values, count, size, relative, tolerance = gap
    return Difference("update", a.op, places, shapes, index, values, count, size, relative, tolerance, cause)


def _cancelled(a: Event, b: Event, steepest: float) -> float:
    """Return the magnitude of a sum's terms: the rounding error of the sum is relative to them."""
    if a.phase != "forward":
        return steepest
    return max((_largest(x) for x in (*a.operands, *b.operands)), default=0.0) if a.op in _SUMS else 0.0


def _at(events: list[Event], start: int, stop: int) -> Event | None:
    return events[start] if start < stop else None


def _outcome(
    one: _Run, other: _Run, places: Sequence[tuple[str, str]], rtol: float | None
) -> tuple[int, Difference | None]:
    """Compare results and changed state; return the number of comparisons and the first difference."""
    pairs = [("result", "the result", a, b, 0.0) for a, b in zip(one.result, other.result, strict=False)]
    if len(one.result) != len(other.result):
        pairs.append(("result", "the number of results", np.array(len(one.result)), np.array(len(other.result)), 0.0))
    pairs += _state_pairs(one.state, other.state, places)
    for number, (phase, name, a, b, size) in enumerate(pairs, 1):
        gap = _gap(a, b, rtol, size)
        if gap is not None:
            return number, Difference(phase, name, None, *gap)
    return len(pairs), None


def _state_pairs(
    one: dict[str, Array], other: dict[str, Array], places: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, str, Array, Array, float]]:
    """Yield the changed state of two runs: phase, path, both arrays, and the magnitude of the terms that they sum.

    A gradient that is all rounding error, such as that of a bias before a batch norm, is small relative to the others.
    The update that Adam or a similar optimizer computes from it means nothing.
    """
    steepest = max((_largest(array) for name, array in one.items() if name.endswith(".grad")), default=0.0)
    for path, theirs in places:
        slope = one.get(f"{path}.grad")
        noise = slope is not None and _largest(slope) <= _NOISE * finfo(slope.dtype).eps * steepest
        for end, size in (("", 0.0), (".grad", steepest)):
            a, b = one.get(path + end), other.get(theirs + end)
            if a is not None and b is not None and (end or not noise):
                if not end and slope is not None and slope.shape == a.shape == b.shape:
                    b = np.where(np.abs(slope) <= _SLIGHT * _largest(slope), a, b)
                yield "state", path + end, a, b, size
            elif (a is None) != (b is None):
                yield "state", f"whether there is {path}{end}", np.array(a is not None), np.array(b is not None), 0.0


def _same_places(asides: Sequence[StepAside]) -> Iterator[tuple[str, str]]:
    """Yield the paths, in both runs, of shared tensors, or of corresponding tensors in models of the same structure."""
    one, other = ({id(tensor): (tensor, path) for tensor, path in aside.found.tensors.values()} for aside in asides)
    shared = one.keys() & other.keys()
    yield from ((path, other[key][1]) for key, (_, path) in one.items() if key in shared)
    mine = [value for key, value in one.items() if key not in shared]
    theirs = [value for key, value in other.items() if key not in shared]
    if [tensor.shape for tensor, _ in mine] == [tensor.shape for tensor, _ in theirs]:
        yield from ((path, their) for (_, path), (_, their) in zip(mine, theirs, strict=True))


def _largest(array: Array) -> float:
    if array.dtype.kind not in "fc":
        return 0.0
    return float(np.max(np.abs(array[np.isfinite(array)]), initial=0.0))


def _gap(a: Array, b: Array, rtol: float | None, cancelled: float) -> _Gap | None:
    """Return (shapes, index, values, count, size, relative, tolerance) of a difference; None within rounding.

    `cancelled` is the magnitude of the terms, if the arrays are sums.
    """
    if a.shape != b.shape:
        return (a.shape, b.shape), (), (math.nan, math.nan), a.size, a.size, math.inf, 0.0
    tolerance, largest, floor = 0.0, 1.0, 0.0
    floating = [array.dtype for array in (a, b) if array.dtype.kind in "fc"]
    if floating:
        coarser = max(floating, key=lambda dtype: RTOL.get(dtype, 1e-4))
        tolerance = RTOL.get(coarser, 1e-4) if rtol is None else rtol
        largest = max(_largest(a), _largest(b))
        floor = _NOISE * float(finfo(coarser).eps) * cancelled if rtol is None else 0.0
        with np.errstate(invalid="ignore"):
            far = np.abs(np.subtract(a, b, dtype=np.result_type(a, b, np.float64)))
        far = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.where(np.isnan(far), np.inf, far))
    else:
        far = (a != b).astype(np.float64)
    differs = far > max(tolerance * largest, floor)
    if not differs.any():
        return None
    index = tuple(int(at) for at in np.unravel_index(int(np.argmax(far)), far.shape)) if far.ndim else ()
    relative = float(far[index]) / (largest or 1.0)
    values = a[index].item(), b[index].item()
    return (a.shape, b.shape), index, values, int(np.count_nonzero(differs)), a.size, relative, tolerance


def _cause(a: Event, b: Event) -> str:
    """Explain from their operands why the results of two ops differ."""
    if a.phase == "arriving":
        return ""
    if a.params != b.params and max(len(a.params), len(b.params)) < 200:
        return f"its options differ: {a.params} and {b.params}"
    if len(a.operands) != len(b.operands):
        return f"it has {len(a.operands)} operands and {len(b.operands)}"
    for at, (x, y) in enumerate(zip(a.operands, b.operands, strict=True)):
        if x.shape == y.shape and np.array_equal(x, y, equal_nan=x.dtype.kind in "fc"):
            continue
        if a.phase == "forward" and a.outside[at] and b.outside[at]:
            if a.drew or b.drew:
                return _RANDOM
            names = [name for event in (a, b) if (name := _operand(event, at))]
            shown = f" ({' and '.join(dict.fromkeys(names))})" if names else ""
            given = f": {x.item()} and {y.item()}" if x.size == y.size == 1 else ""
            told = "and no op made it: a constant, a weight, data or random numbers"
            return f"operand {at + 1}{shown} differs, {told}{given}"
    same = all(_gap(x, y, None, 0.0) is None for x, y in zip(a.operands, b.operands, strict=True))
    if same:
        return "its operands agree: it was computed in another way"
    return "an operand differs, which only one of the runs computes in this way"


def _operand(event: Event, at: int) -> str:
    """Return the path of an operand, or its text in the user's line."""
    path = event.paths[at] if at < len(event.paths) else ""
    texts = event.place.operands
    return path or (texts[at] if at < len(texts) == len(event.operands) else "")


# --- programs ---------------------------------------------------------------------------------------


def _programs(
    runs: Sequence[Any],
    args: Sequence[Any],
    asides: Sequence[StepAside],
    found: Bisection,
    rtol: float | None,
) -> Bisection:
    """Check compiled programs: compile again, compare the new program with eager mode, and the existing one with it."""
    for run, aside in zip(runs, asides, strict=True):
        if not isinstance(run, Compiled):
            continue
        checked = Compiled(
            run.function, backend=run.backend, verify=True, threads=run.threads, keep_grads=run.keep_grads
        )
        try:
            anew = _Run([], _leaves(checked(*args)), aside.values())
        except errors.CompileError as error:
            return Bisection(None, found.compared, found.parted, str(error))
        finally:
            _restore(asides)
        seen = _Run([], _leaves(run(*args)), aside.values())
        _restore(asides)
        count, difference = _outcome(anew, seen, list(_same_places((aside, aside))), rtol)
        if difference is not None:
            told = "The existing program of the function differs from a new one: it was traced for another state."
            return Bisection(difference, found.compared + count, found.parted, told)
    return found


# --- as text ----------------------------------------------------------------------------------------


def _text(found: Bisection) -> Iterator[str]:
    if found.equal:
        yield f"two runs     equal within rounding: {found.compared:,} tensors"
    else:
        yield f"two runs     differ; {_tensors(found.compared)} compared"
    if found.difference is not None:
        yield from _difference_text(found.difference)
    if found.program:
        yield from (f"  {line}" for line in found.program.rstrip().splitlines())
    if found.parted is not None:
        yield "  the ops differ from here on:"
        for name, event in zip("ab", found.parted, strict=True):
            told = "nothing here" if event is None else f"{event.op} at {event.place}  {event.place.source}".rstrip()
            yield f"    {name}: {told}"


def _tensors(count: int) -> str:
    return "1 tensor was" if count == 1 else f"{count:,} tensors were"


def _difference_text(found: Difference) -> Iterator[str]:
    what = {
        "arriving": f"the gradient of the result of {found.name}",
        "backward": f"a cotangent that {found.name} sends back",
        "forward": f"the result of {found.name}",
        "update": f"the result of {found.name} in the optimizer's rule",
    }
    yield f"  first      {what.get(found.phase, found.name)}, of shape {list(found.shapes[0])}"
    if found.places is not None:
        for name, place in zip("ab", found.places, strict=True):
            yield f"    {name}: {place}  {place.source}".rstrip()
    if found.shapes[0] != found.shapes[1]:
        yield f"  it has the shape {list(found.shapes[1])} in b"
    else:
        at = f" at [{', '.join(map(str, found.index))}]" if found.index else ""
        yield f"  {found.values[0]} in a, {found.values[1]} in b{at}; {found.count:,} of {found.size:,} elements differ"
        yield f"  {found.relative:.2g} of the largest value; up to {found.tolerance:.2g} would be rounding"
    if found.cause:
        yield f"  {found.cause}"


__all__ = ["Bisection", "Difference", "bisect"]
