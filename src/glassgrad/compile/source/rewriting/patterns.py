"""Recognition of functions with a closed-form gradient in a forward pass of single steps.

A match names the input, the result and the instructions between them. It is valid only if the intermediate values have
no other use, because then the gradient may go from the result to the input in one step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from glassgrad.compile.ir.graph import Graph, Instr, Operand, Var
from glassgrad.compile.ir.passes.rules import fits, pattern
from glassgrad.ops.core import Array


@dataclass(eq=False)
class Match:
    """One recognised function.

    Attributes:
        kind: "cross entropy" or "standardise".
        source: the input.
        result: the result.
        inner: the instructions between; the last one computes the result.
        facts: the values and numbers for the formula, by name.
    """

    kind: str
    source: Var
    result: Var
    inner: list[Instr]
    facts: dict[str, Any] = field(default_factory=dict)


class Finder:
    """Finds patterns in one graph, whose inputs have the values in `arrays`."""

    def __init__(self, graph: Graph, arrays: Mapping[Var, Array]) -> None:
        self.graph = graph
        self.arrays = arrays
        self.producer = graph.producers()
        self.users = graph.users()
        self.constants = dict(graph.constants)

    def matches(self) -> list[Match]:
        """Return all matches that may be replaced; no two overlap."""
        found: list[Match] = []
        taken: set[Instr] = set()
        for instr in reversed(self.graph.instrs):
            for look in (self._cross_entropy, self._standardise):
                match = look(instr)
                if match is not None and not taken & set(match.inner) and self._closed(match):
                    found.append(match)
                    taken |= set(match.inner)
                    break
        return found

    def _closed(self, match: Match) -> bool:
        inside = set(match.inner)
        results = {out for out in self.graph.results() if out is not match.result}
        for instr in match.inner:
            for var in instr.outputs:
                if var is match.result:
                    continue
                if var in results or any(user not in inside for user in self.users.get(var, ())):
                    return False
        return True

    def behind(self, operand: Operand, *ops: str) -> Instr | None:
        """Return the instruction that computes an operand if its op is one of `ops`."""
        instr = self.producer.get(operand) if isinstance(operand, Var) else None
        return instr if instr is not None and (not ops or instr.op in ops) else None

    def fits(self, operand: Operand, *patterns: Any) -> dict[str, Any] | None:
        """Return the bindings of the first pattern that an operand fits."""
        for one in patterns:
            values: dict[str, Any] = {}
            if fits(one, operand, self.behind, values):
                return values
        return None

    def between(self, result: Var, source: Var) -> list[Instr]:
        """Return the instructions on paths from the source to the result, in order."""
        reaches: dict[Var, bool] = {source: True}

        def depends(var: Var) -> bool:
            if var not in reaches:
                reaches[var] = False
                instr = self.producer.get(var)
                reaches[var] = instr is not None and any(list(map(depends, instr.reads())))
            return reaches[var]

        depends(result)
        return [instr for instr in self.graph.instrs if any(reaches.get(v) and v is not source for v in instr.outputs)]

    # --- log-softmax and negative log likelihood ------------------------------------------------------

    def _cross_entropy(self, instr: Instr) -> Match | None:
        """Recognise -c * sum(log_softmax(x)[rows, targets])."""
        if instr.output.shape != ():
            return None
        scaled = self._scaled_sum(instr.output)
        chosen = self._picked(scaled[2]) if scaled is not None else None
        if scaled is None or chosen is None:
            return None
        scale, counted, _ = scaled
        logs, targets = chosen
        if counted is not None:
            # The number of targets that count: all of them if none is ignored.
            if not self._counts_all(counted, targets):
                return None
            scale /= targets.size
        soft = self.log_softmax(logs)
        if soft is None or soft[1] != logs.ndim - 1 or logs.ndim != 2:
            return None
        source, _, probabilities = soft
        facts = {"scale": -scale, "targets": targets, "probabilities": probabilities}
        return Match("cross entropy", source, instr.output, self.between(instr.output, source), facts)

    def _scaled_sum(self, var: Var) -> tuple[float, Var | None, Var] | None:
        """Write a scalar as ``scale / count * sum(x)``; return scale, count (if it is a value) and x."""
        scale, count = 1.0, None
        summed = False
        while True:
            instr = self.behind(var)
            step = None if instr is None else self._scaling(instr)
            if step is not None:
                var, factor, counted = step
                scale *= factor
                count = count or counted
            elif instr is not None and instr.op == "sum" and not summed:
                summed, var = True, _first(instr)
            else:
                return (scale, count, var) if summed else None

    def _scaling(self, instr: Instr) -> tuple[Var, float, Var | None] | None:
        """Write an instruction as ``factor / count * x``; return x, the factor and the count if it is a value."""
        if instr.op == "negative":
            return _first(instr), -1.0, None
        if instr.op == "multiply":
            number = _number(instr.inputs)
            if number is None and self._is_mask(instr.inputs[1]):
                return _first(instr), 1.0, None
            return None if number is None else (number[1], number[0], None)
        if instr.op == "divide":
            divisor = instr.inputs[1]
            if not isinstance(divisor, Var):
                return _first(instr), 1 / float(divisor.real), None
            return (_first(instr), 1.0, divisor) if divisor.shape == () else None
        if instr.op == "where" and self._ignores(instr):
            picked = instr.inputs[1]
            return (picked, 1.0, None) if isinstance(picked, Var) else None
        return (_first(instr), 1.0, None) if instr.op == "reshape" else None

    def _ignores(self, instr: Instr) -> bool:
        """Tell whether a where() drops rows with ignored targets, of which there are none."""
        return instr.inputs[2] == 0 and self._nothing_ignored(instr.inputs[0])

    def _is_mask(self, operand: Operand) -> bool:
        """Tell whether a value is 1 for every target."""
        cast = self.behind(operand, "astype")
        return cast is not None and self._nothing_ignored(cast.inputs[0])

    def _nothing_ignored(self, mask: Operand) -> bool:
        """Tell whether a mask is ``targets != number`` and true for all recorded targets."""
        test = self.behind(mask, "not_equal")
        if test is None or isinstance(test.inputs[1], Var) or not isinstance(test.inputs[0], Var):
            return False
        known = self._known(test.inputs[0])
        return known is not None and bool(np.all(known != test.inputs[1]))

    def _known(self, var: Var) -> Any:
        """Return the recorded values of an input, or of a reshaped input."""
        instr = self.behind(var, "reshape")
        if instr is None:
            return self.arrays.get(var)
        source = self._known(_first(instr))
        return None if source is None else np.reshape(source, instr.params["shape"])

    def _counts_all(self, count: Var, targets: Var) -> bool:
        summed = self.behind(count, "sum")
        if summed is None or not self._is_mask(summed.inputs[0]):
            return False
        source = summed.inputs[0]
        return isinstance(source, Var) and source.size == targets.size

    def _picked(self, var: Var) -> tuple[Var, Var] | None:
        """Write a vector as ``logs[arange(n), targets]``."""
        instr = self.behind(var, "getitem", "take_along_axis")
        if instr is None:
            return None
        logs, *index = instr.reads()  # all its operands are variables
        if instr.op == "getitem":
            rows = self.constants.get(index[0]) if len(index) == 2 else None
            if rows is None or not np.array_equal(rows, np.arange(logs.shape[0])):
                return None
            return logs, index[1]
        column = self.behind(instr.inputs[1], "reshape")
        targets = column.inputs[0] if column is not None else None
        kept = self.behind(targets, "where") if targets is not None else None
        if kept is not None and self._ignores(kept):
            targets = kept.inputs[1]
        if not isinstance(targets, Var) or targets.ndim != 1:
            return None
        return logs, targets

    def log_softmax(self, var: Var) -> tuple[Var, int, Var | None] | None:
        """Recognise a log-softmax: return x, the axis, and the probabilities if they were computed."""
        logs = self._of_any_shift(self.fits(var, *_LOG_SOFTMAX))
        if logs is not None:
            return (*logs, None)
        logarithm = self.fits(var, _LOG)
        soft = None if logarithm is None else self.softmax(logarithm["x"])
        return None if logarithm is None or soft is None else (*soft, logarithm["x"])

    def softmax(self, var: Var) -> tuple[Var, int] | None:
        """Recognise a softmax, also as exp(x - m) / sum(exp(x - m)) for any m that is the same along the axis."""
        return self._of_any_shift(self.fits(var, *_SOFTMAX))

    def _of_any_shift(self, found: dict[str, Any] | None) -> tuple[Var, int] | None:
        """Return x and the axis, also if x is shifted as ``x - m``, which does not affect a softmax."""
        if found is None or isinstance(found["a"], int):
            return None if found is None else (found["x"], found["a"])
        if len(found["a"]) != 1:
            return None
        var, (axis,) = found["x"], found["a"]
        parts = self.fits(var, _DIFFERENCE) or {"x": var, "y": None}
        shift = parts["y"]
        same = isinstance(shift, Var) and shift.ndim == var.ndim and shift.shape[axis] == 1
        return (parts["x"] if same and isinstance(parts["x"], Var) else var), axis

    # --- batch and layer normalisation ----------------------------------------------------------------

    def _standardise(self, instr: Instr) -> Match | None:
        """Recognise (x - mean(x)) / sqrt(var(x) + eps) over some axes."""
        if instr.op not in {"multiply", "divide"} or len(list(instr.reads())) != 2:
            return None
        for centred, other in (instr.inputs, reversed(instr.inputs)) if instr.op == "multiply" else (instr.inputs,):
            found = self._standardised(instr, centred, other)
            if found is not None:
                return found
        return None

    def _standardised(self, instr: Instr, centred: Operand, other: Operand) -> Match | None:
        variance = self._under_root(other, inverse=instr.op == "multiply")
        minus = self.behind(centred, "subtract")
        if variance is None or minus is None:
            return None
        source = minus.inputs[0]
        mean = self._mean(minus.inputs[1])
        spread = self._mean(variance)
        if mean is None or spread is None or mean[0] is not source or mean[1] != spread[1]:
            return None
        if not self._is_square(spread[0], centred):
            return None
        assert isinstance(source, Var)
        count = int(np.prod([source.shape[axis] for axis in mean[1]]))
        freedom = 1 / spread[2]
        if not np.isclose(mean[2] * count, 1) or not np.isclose(freedom, round(freedom)):
            return None
        facts = {
            "axis": mean[1],
            "count": count,
            "freedom": round(freedom),
            "normal": instr.output,
            "root": other,
            "inverse": instr.op == "multiply",
        }
        return Match("standardise", source, instr.output, self.between(instr.output, source), facts)

    def _under_root(self, var: Operand, *, inverse: bool) -> Operand | None:
        """Return v for ``(v + eps)**-0.5`` (or its inverse, or without the eps)."""
        found = self.fits(var, *(_INVERSE_ROOT if inverse else _ROOT))
        if found is None:
            return None
        added = self.fits(found["x"], *_PLUS_NUMBER)
        if added is not None:
            shifted: Operand = added["x"]
            return shifted
        return None if self.behind(found["x"], "add") else found["x"]

    def _mean(self, var: Operand) -> tuple[Var, tuple[int, ...], float] | None:
        """Write a value as ``scale * sum(x, axis, keepdims=True)``."""
        scale = 1.0
        instr = self.behind(var, "multiply", "divide", "sum")
        while instr is not None and instr.op != "sum":
            number = _number(instr.inputs) if instr.op == "multiply" else None
            divisor = instr.inputs[1]
            if instr.op == "divide" and not isinstance(divisor, Var):
                number = (1 / float(divisor.real), _first(instr))
            if number is None:
                return None
            scale *= number[0]
            instr = self.behind(number[1], "multiply", "divide", "sum")
        if instr is None or not instr.params["keepdims"]:
            return None
        return instr.reads()[0], instr.params["axis"], scale

    def _is_square(self, var: Operand, of: Operand) -> bool:
        found = self.fits(var, *_SQUARE)
        return found is not None and found["x"] is of


def _patterns(*texts: str) -> tuple[Any, ...]:
    return tuple(map(pattern, texts))


_DIFFERENCE, _LOG = _patterns("x - y", "log(x)")
_SOFTMAX = _patterns(
    "softmax(x, axis=a)",
    "exp(x) / sum(exp(x), axis=a, keepdims=True)",
    "exp(x) * reciprocal(sum(exp(x), axis=a, keepdims=True))",
    "exp(x) * sum(exp(x), axis=a, keepdims=True) ** -1",
)
_LOG_SOFTMAX = _patterns("log_softmax(x, axis=a)", "x - log(sum(exp(x), axis=a))")
_ROOT = _patterns("x ** 0.5", "sqrt(x)")
_INVERSE_ROOT = _patterns("x ** -0.5", "rsqrt(x)", "reciprocal(sqrt(x))")
_PLUS_NUMBER = _patterns("x + n", "n + x")
_SQUARE = _patterns("square(x)", "x ** 2", "x * x")


def _first(instr: Instr) -> Var:
    """Return the first operand of an instruction that has a value there."""
    first = instr.inputs[0]
    assert isinstance(first, Var)
    return first


def _number(inputs: Iterable[Operand]) -> tuple[float, Var] | None:
    """Split two operands into a Python number and a value; None if they are anything else."""
    numbers = [x for x in inputs if not isinstance(x, Var)]
    values = [x for x in inputs if isinstance(x, Var)]
    return (float(numbers[0].real), values[0]) if len(numbers) == 1 and len(values) == 1 else None
