"""The expressions of a script at the lines that a run has seen, and the calls that led there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from glassgrad.base.provenance import Span
from glassgrad.doctor.reading.flow import Frame, Value, flow
from glassgrad.doctor.reading.gradients import reach
from glassgrad.doctor.reading.nodes import is_op
from glassgrad.doctor.reading.program import Function, Program
from glassgrad.doctor.reading.values import loss

Trails = Mapping[str, Sequence[Span]]
"""For "forward" (a pass of the training), "held" (one without gradients) and others: the calls, the innermost first."""


@dataclass
class Places:
    """A script and the places that its run has passed.

    Attributes:
        program: the script.
        file: its name in findings.
        trails: where its calls were made.
    """

    program: Program
    file: str
    trails: Trails = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._calls: dict[Span, ast.Call] = {}
        for call in self.program.calls:
            self._calls[(self.file, call.lineno, call.end_lineno, call.col_offset, call.end_col_offset)] = call
        self._frames: dict[str, dict[ast.AST, Frame]] = {}

    def frames(self, kind: str) -> dict[ast.AST, Frame]:
        """Return for each function of the script that a trail passes the call that entered it."""
        if kind not in self._frames:
            found: dict[ast.AST, Frame] = {}
            frame: Frame | None = None
            for span in reversed(self.trails.get(kind, ())):
                call = self._calls.get(span)
                inside = self.program.function(call) if call is not None else None
                if call is None or (inside is not None and inside not in found):
                    frame = None
                    continue
                frame = found.get(inside) if inside is not None else None
                entered = flow(self.program).entered(call, frame)
                if entered is not None:
                    found[entered[0].function] = entered[1]
            self._frames[kind] = found
        return self._frames[kind]

    def value(self, node: ast.expr, kind: str = "forward") -> Value:
        """Return an expression as a value, in the call that a trail entered."""
        around: Function | None = self.program.function(node)
        return Value(node, self.frames(kind).get(around) if around is not None else None)

    def entering(self, kind: str) -> list[Value]:
        """Return the arguments of the model's call at the inner end of a trail."""
        spans = self.trails.get(kind, ())
        call = self._calls.get(spans[0]) if spans else None
        return [] if call is None else [self.value(one, kind) for one in call.args if not isinstance(one, ast.Starred)]

    def nodes(self, line: int) -> Iterator[ast.expr]:
        """Yield the expressions that begin at a line."""
        yield from (one for one in self.program.nodes if isinstance(one, ast.expr) and one.lineno == line)

    def targets(self, line: int) -> list[Value]:
        """Return the targets of the losses at a line."""
        return [target for _, target in self._compared(line)]

    def predictions(self, line: int) -> list[Value]:
        """Return the predictions that the losses at a line take."""
        return [prediction for prediction, _ in self._compared(line)]

    def _compared(self, line: int) -> list[tuple[Value, Value]]:
        """Return what losses and differences at a line compare: predictions, and targets that learn nothing."""
        found: list[tuple[Value, Value]] = []
        for node in self.nodes(line):
            if isinstance(node, ast.Call) and (it := loss(self.program, node)) is not None and it.target is not None:
                found.append((self.value(it.input), self.value(it.target)))
            elif is_op(node, ast.Sub) and not found:
                left, right = self.value(node.left), self.value(node.right)
                learns = [bool(reach(self.program, one).learns) for one in (left, right)]
                if any(learns) and not all(learns):
                    found.append((left, right) if learns[0] else (right, left))
        return found
