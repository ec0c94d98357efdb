"""From a Python function on Values to a flat program: run it once on the first sample and keep the graph.

The control flow of the function must not depend on values, or the graph of one sample would be wrong for the
next. So while it runs, comparing Values and reading `.data` outside of `glassgrad.scalar` are errors.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from glassgrad import errors, scalar
from glassgrad.scalar import Value, Vector
from glassgrad.scalar.program import Instruction, Program, Row
from glassgrad.scalar.rules import RULES

_COMPARISONS = ("__eq__", "__lt__", "__le__", "__gt__", "__ge__")
_one_at_a_time = threading.Lock()


def trace(function: Callable[..., Any], row: Row) -> Program:
    """Run `function` on one sample and return the program that it computed."""
    start = Value._tick()
    inputs = [Vector(map(Value, part)) if isinstance(part, list) else Value(part) for part in row]
    columns = [v for part in inputs for v in (part if isinstance(part, Vector) else [part])]
    with _watched():
        result = function(*inputs)
    if not isinstance(result, Value):
        raise errors.SCALAR_COMPILE_RESULT(given=type(result).__name__)
    return _flatten(result, columns, start)


def trace_expression(result: Value, inputs: Sequence[Value]) -> Program:
    """Trace an existing expression; every leaf that is not an input is captured."""
    return _flatten(result, list(inputs), result._seq)


def _flatten(result: Value, columns: list[Value], start: int) -> Program:
    column = {value: i for i, value in enumerate(columns)}
    place: dict[Value, int] = {}
    leaves: list[Value] = []
    instructions: list[Instruction] = []
    for value in _ancestors(result, column):
        op, args, number = value._op, tuple(place[arg] for arg in value._args), 0.0
        if value in column:
            op, args, number = "input", (), column[value]
        elif not value._args and value._seq < start:  # older than the trace: a parameter
            op, number = "leaf", len(leaves)
            leaves.append(value)
        elif not value._args:
            op, number = "constant", value.data
        elif op.startswith("**") and len(args) == 1:
            op, number = "power", float(op[2:])
        elif op not in RULES:
            raise errors.SCALAR_OWN_OP(op=op)
        varying = op == "input" or any(instructions[i].varying for i in args)
        active = op == "leaf" or any(instructions[i].active for i in args)
        place[value] = len(instructions)
        instructions.append(Instruction(op, args, number, varying, active))
    return Program(instructions, leaves, len(columns))


def _ancestors(result: Value, stop: dict[Value, int]) -> list[Value]:
    """All values that `result` was computed from, oldest first, stopping at the inputs."""
    reached, stack = {result}, [result]
    while stack:
        value = stack.pop()
        fresh = [] if value in stop else [arg for arg in value._args if arg not in reached]
        reached.update(fresh)
        stack.extend(fresh)
    return sorted(reached, key=lambda value: value._seq)


@contextmanager
def _watched() -> Iterator[None]:
    """Refuse comparisons and reads of `.data` in the traced code, only in this thread."""
    thread = threading.get_ident()
    slot = vars(Value)["data"]

    def refuse(what: str) -> None:
        frame = sys._getframe(2)
        if threading.get_ident() == thread and frame.f_globals is not vars(scalar):
            raise errors.SCALAR_TRACED_NUMBER(what=what, file=frame.f_code.co_filename, line=frame.f_lineno)

    def read(value: Value) -> Any:
        refuse("reads .data of a Value")
        return slot.__get__(value)

    def watched(compare: Callable[[Value, Any], bool]) -> Callable[[Value, Any], bool]:
        def comparison(value: Value, other: object) -> bool:
            refuse("compares Values")
            return compare(value, other)

        return comparison

    with _one_at_a_time:
        originals = {name: vars(Value)[name] for name in ("data", *_COMPARISONS)}
        try:
            for name in _COMPARISONS:
                setattr(Value, name, watched(originals[name]))
            type.__setattr__(Value, "data", property(read, slot.__set__))
            yield
        finally:
            for name, original in originals.items():
                setattr(Value, name, original)
