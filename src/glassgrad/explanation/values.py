"""`explain` for functions of the scalar engine's Values: the same record, read from their graph."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.base.tables import pairs
from glassgrad.explanation.record import Edge, Input, Record, Step, arguments, complete
from glassgrad.ops import formulas
from glassgrad.ops.core import PRIMITIVES, Array

if TYPE_CHECKING:
    from glassgrad.scalar import Value

# For each op on Values, the primitive whose formulas apply.
_SAME = pairs(
    """
    +=add -=subtract *=multiply /=divide **=power max=maximum neg=negative abs=abs exp=exp log=log
    sin=sin cos=cos tanh=tanh sigmoid=sigmoid ReLU=relu
    """
)


def record_of_values(function: Any, args: Sequence[Array], options: Mapping[str, Any]) -> Record:
    """Run a function of Values and return its record; gradients of the caller's Values stay as they are."""
    from glassgrad import scalar
    from glassgrad.scalar.drawing import names_within
    from glassgrad.scalar.sweeps import backward_of, slopes_of

    named = arguments(function, args, options)
    known = {value: name for key, thing in named.items() for name, value in names_within(key, thing)}
    if isinstance(function, scalar.Module):
        known |= {value: name for name, value in names_within("net", function)}
    places: dict[int, provenance.Place] = {}
    with _placed(scalar.Value, places):
        result = function(*args, **options)
    if not isinstance(result, scalar.Value):
        raise errors.SCALAR_RESULT(owner="explain", given=type(result).__name__)
    values = _behind(result)
    gradients = backward_of(result, values)
    title = getattr(function, "__name__", type(function).__name__)
    names = _names(values, known, places, result, title)
    steps = [
        _step(value, names, places.get(value._seq), gradients, slopes_of(value)) for value in values if value._args
    ]
    inputs = [
        Input(names[value], np.asarray(value.data), np.asarray(gradients[value]))
        for value in values
        if not value._args and value in names
    ]
    return complete(Record(title, inputs, steps))


@contextmanager
def _placed(kind: type[Value], places: dict[int, provenance.Place]) -> Iterator[None]:
    """Note the user's line of every Value that is made."""
    tick = kind._tick

    def noted() -> int:
        number = tick()
        frame = sys._getframe(2)
        while provenance.is_internal(frame.f_code.co_filename) and frame.f_back is not None:
            frame = frame.f_back
        places[number] = provenance.resolve(frame.f_code, frame.f_lasti)
        return number

    kind._tick = staticmethod(noted)
    try:
        yield
    finally:
        kind._tick = tick


def _behind(root: Value) -> list[Value]:
    """Return the values that a result was made of, the oldest first."""
    found, waiting = {root}, [root]
    while waiting:
        for arg in waiting.pop()._args:
            if arg not in found:
                found.add(arg)
                waiting.append(arg)
    return sorted(found, key=lambda value: value._seq)


def _names(
    values: Sequence[Value],
    known: Mapping[Value, str],
    places: Mapping[int, provenance.Place],
    root: Value,
    title: str,
) -> dict[Value, str]:
    """Return the user's names, and v1, v2, ... for the other results of ops."""
    names = {value: value.label or known[value] for value in values if value.label or value in known}
    names |= {value: "value" for value in values if not value._args and value._seq not in places and value not in names}
    taken, count = set(names.values()), 0
    last = {places[value._seq].variable: value for value in values if value._args and value._seq in places}
    for value in (one for one in values if one._args and one not in names):
        variable = places[value._seq].variable if value._seq in places else None
        if variable is None or last.get(variable) is not value:  # an inner op of the line that assigns the variable
            variable = None
        if value is root and variable is None and title.isidentifier():
            variable = title
        while variable is None or variable in taken:
            count += 1
            variable = f"v{count}"
        taken.add(variable)
        names[value] = variable
    return names


def _step(
    value: Value,
    names: Mapping[Value, str],
    place: provenance.Place | None,
    gradients: Mapping[Value, float],
    slopes: Sequence[float],
) -> Step:
    written = [names.get(arg) or formulas.number(arg.data) for arg in value._args]
    expression, locals_ = _formulas(value, written, names[value])
    step = Step(
        names[value],
        value._op,
        expression,
        np.asarray(value.data),
        provenance.shorten(place.file) if place else "",
        place.line if place else 0,
        place.source if place else "",
        np.asarray(gradients[value]),
    )
    for arg, local, slope in zip(value._args, locals_, slopes, strict=True):
        if arg in names:
            sent = np.asarray(gradients[value] * slope)
            step.edges.append(Edge(names[arg], local or formulas.number(slope), float(slope), sent, 1))
    return step


def _formulas(value: Value, written: list[str], name: str) -> tuple[str, list[str]]:
    """Return an op's formula and those of its local derivatives; empty ones for an op of the user's own."""
    op = value._op
    if op.startswith("**") and len(written) == 1:
        op, written = "**", [*written, op[2:]]
    if op == "@":
        half = len(written) // 2
        terms = [f"{left} * {right}" for left, right in zip(written[:half], written[half:], strict=True)]
        return " + ".join(terms), [*written[half:], *written[:half]]
    prim = PRIMITIVES.get(_SAME.get(op, ""))
    if prim is None:
        return f"{op}({', '.join(written)})", [""] * len(written)
    places = range(len(value._args))
    return formulas.expression(prim, written, {}), [formulas.derivative(prim, at, written, name) for at in places]
