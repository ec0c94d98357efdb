"""The data of `explain`: every op of a function with its value, local derivatives and cotangent."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.mode import enable_grad
from glassgrad.engine.node import Node
from glassgrad.engine.tensor import Tensor
from glassgrad.ops import formulas
from glassgrad.ops.core import Array, Elementwise, Primitive
from glassgrad.verify.spy import Applied, Spy
from glassgrad.verify.truth import Recorder, walked


@dataclass
class Edge:
    """The derivative of a step with respect to one of its arguments, and the cotangent sent along it.

    `local` is the formula of the derivative, `number` its value if the step is a number.

    Example:
        >>> import glassgrad as gg
        >>> edge = gg.explain(lambda x: x.exp(), 0.0).record.steps[0].edges[0]
        >>> float(edge.sent)
        1.0
    """

    name: str
    local: str
    number: float | None
    sent: Array
    products: int  # multiplications of one sweep at this edge


@dataclass
class Step:
    """One op. `value` and `cotangent` are arrays; `line` is the user's, with its text in `source`.

    Example:
        >>> import glassgrad as gg
        >>> step = gg.explain(lambda x: x * x, 3.0).record.steps[0]
        >>> step.op, float(step.value)
        ('multiply', 9.0)
    """

    name: str
    op: str
    expression: str
    value: Array
    file: str
    line: int
    source: str
    cotangent: Array = None
    edges: list[Edge] = field(default_factory=list)
    tangents: dict[str, float] | None = None  # d(step)/d(input) by forward mode, if everything is a number


@dataclass
class Input:
    """A differentiated argument with its gradient.

    Example:
        >>> import glassgrad as gg
        >>> given = gg.explain(lambda x: x * x, 3.0).record.inputs[0]
        >>> given.name, float(given.gradient)
        ('x', 6.0)
    """

    name: str
    value: Array
    gradient: Array
    products: int = 0  # multiplications of one forward-mode sweep that starts here


@dataclass
class Record:
    """A function at a point, explained.

    Example:
        >>> import glassgrad as gg
        >>> record = gg.explain(lambda x: (x * x).exp(), 1.0).record
        >>> [step.op for step in record.steps]
        ['multiply', 'exp']
    """

    function: str
    inputs: list[Input]
    steps: list[Step]

    @property
    def reverse_products(self) -> int:
        return sum(edge.products for step in self.steps for edge in step.edges)

    @property
    def forward_products(self) -> int:
        return sum(entry.products * max(1, np.size(entry.value)) for entry in self.inputs)

    @property
    def forward_sweeps(self) -> int:
        return sum(max(1, int(np.size(entry.value))) for entry in self.inputs)


@dataclass
class Traced:
    """A recorded call of a function: its arguments by name, those that are differentiated, its ops and its result."""

    function: Any
    named: dict[str, Any]
    inputs: dict[str, Any]
    applied: list[Applied]
    result: Array

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)


def record(function: Callable[..., Any], args: Sequence[Array], options: Mapping[str, Any]) -> Record:
    """Run a function forward and backward and return the record. Raises unless its result is one number."""
    return record_of(trace(function, args, options))


def trace(function: Any, args: Sequence[Array], options: Mapping[str, Any], spy: Spy | None = None) -> Traced:
    """Run a function forward, with its numbers and arrays of floats as leaves of the tape."""
    named = as_leaves(function, args, options)
    inputs = {name: value for name, value in named.items() if isinstance(value, Tensor) and value.requires_grad}
    spy = Spy() if spy is None else spy
    with spy, enable_grad():
        result = function(*list(named.values())[: len(args)], **dict(list(named.items())[len(args) :]))
    return Traced(function, named, inputs, spy.applied, result)


def as_leaves(function: Any, args: Sequence[Array], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by name, numbers and arrays of floats as leaves that require a gradient."""
    return {name: _leaf(value) for name, value in arguments(function, args, options).items()}


def record_of(call: Traced) -> Record:
    """Walk back through a call and return the record. Raises unless its result is one number."""
    result = call.result
    if not isinstance(result, Tensor) or result.numel() != 1 or result.node is None:
        given = f"shape {tuple(result.shape)}" if isinstance(result, Tensor) else type(result).__name__
        raise errors.EXPLAIN_NO_NUMBER(given=given)
    seen, gradients = walked(result.node, np.ones(result.shape, result.dtype))
    leaves = {**call.inputs, **_parameters(call.function, call.named)}
    applied = [entry for entry in call.applied if entry.node in seen.cotangents_of]
    names = Names(call.function, leaves, applied, result.node)
    steps = [_step(entry, names, seen) for entry in applied]
    known = [Input(name, leaf.detach().numpy(), _gradient(gradients, leaf)) for name, leaf in leaves.items()]
    return complete(Record(call.name, known, steps))


def complete(found: Record) -> Record:
    """Add to a record what forward mode would compute and cost."""
    _count_forward(found.inputs, found.steps)
    _push_tangents(found.inputs, found.steps)
    return found


def arguments(function: Any, args: Sequence[Array], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by the names of its parameters, in order."""
    try:
        signature = inspect.signature(getattr(function, "forward", function))
        bound = signature.bind(*args, **options).arguments
    except (TypeError, ValueError):  # no signature, or one that does not fit: the call itself will raise
        return {f"x{i + 1}": value for i, value in enumerate(args)} | dict(options)
    found: dict[str, Any] = {}
    for name, value in bound.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            found |= {f"{name}{i + 1}": part for i, part in enumerate(value)}
        elif kind is inspect.Parameter.VAR_KEYWORD:
            found |= value
        else:
            found[name] = value
    return found


def _leaf(value: Array) -> Array:
    """Turn a number, an array or a Tensor of floats into a leaf of the tape."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return Tensor(np.array(value, np.float64), requires_grad=True)
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind == "f":
        return Tensor(np.array(value), requires_grad=True)
    if isinstance(value, Tensor) and value.dtype.kind == "f":
        return Tensor(value.detach().numpy(), requires_grad=True)
    return value


def _parameters(function: Any, named: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of modules among the arguments, or of the function if it is one."""
    found: dict[str, Any] = {}
    for prefix, value in (("", function), *((f"{name}.", value) for name, value in named.items())):
        if hasattr(value, "named_parameters"):
            found |= {f"{prefix}{name}": parameter for name, parameter in value.named_parameters()}
    return found


def _gradient(gradients: Mapping[Array, Array], leaf: Array) -> Array:
    found = gradients.get(leaf)
    return np.zeros(leaf.shape) if found is None else np.asarray(found)


class Names:
    """Names of nodes and leaves: the user's if there are any, else v1, v2, ..."""

    def __init__(self, function: Any, leaves: Mapping[str, Array], applied: Sequence[Applied], last: Node) -> None:
        self.of: dict[Any, str] = {leaf: name for name, leaf in leaves.items()}
        taken = set(self.of.values())
        count = 0
        inner = _inner(applied)
        frame = provenance.user_frame()  # the calling line: its variable holds the drawing, not the module's result
        asking = frame.f_code, frame.f_lasti
        for entry in applied:
            if entry.node in self.of:
                continue
            unnamed = entry.node in inner or (entry.node.code, entry.node.lasti) == asking
            variable = None if unnamed else entry.node.place.variable
            if entry.node is last and variable is None:
                name = getattr(function, "__name__", "result")
                variable = name if name.isidentifier() else "result"
            if variable is None or not variable.isidentifier():
                count += 1
                variable = f"v{count}"
            base, number = variable, 1
            while variable in taken:
                number += 1
                variable = f"{base}_{number}"
            taken.add(variable)
            self.of[entry.node] = variable

    def argument(self, entry: Applied, position: int) -> str:
        """The text of an argument: its name, a number, the user's own text, or its shape."""
        node = entry.node
        parent = node.parents[position] if position < len(node.parents) else None
        if parent is not None and parent in self.of:
            return self.of[parent]
        value = entry.args[position]
        if np.ndim(value) == 0 and isinstance(value, int | float | np.number | np.ndarray):
            return formulas.number(np.asarray(value).item())
        operands = node.place.operands
        text = operands[position] if len(operands) == len(entry.args) else ""
        if text.isidentifier() or all(part.isidentifier() for part in text.split(".")):
            return text
        return f"array{tuple(np.shape(value))}"


def _inner(applied: Sequence[Applied]) -> set[Node]:
    """Return the ops whose results never had a name: the sum in a mean, which one call makes of several ops."""
    found = set()
    for entry, after in pairwise(applied):
        node, reader = entry.node, after.node
        same_call = (node.code, node.lasti) == (reader.code, reader.lasti)
        if same_call and node in reader.parents and node.prim.name != reader.prim.name:
            found.add(node)
    return found


def _step(entry: Applied, names: Names, seen: Recorder) -> Step:
    node, prim = entry.node, entry.node.prim
    arguments = [names.argument(entry, position) for position in range(len(entry.args))]
    place = node.place
    step = Step(
        names.of[node],
        prim.name,
        formulas.expression(prim, arguments, node.params),
        np.asarray(entry.value) if not prim.multiple else entry.value,
        provenance.shorten(place.file),
        place.line,
        place.source,
        seen.cotangents_of[node],
    )
    sent = list(seen.sent_by.get(node, ()))
    for position, parent in enumerate(node.parents):
        index = next((i for i, (target, _) in enumerate(sent) if target is parent), None)
        if parent is None or index is None:
            continue
        local = formulas.derivative(prim, position, arguments, step.name)
        number = slope(prim, position, entry)
        products = _products(prim, entry)
        step.edges.append(Edge(names.of.get(parent, arguments[position]), local, number, sent.pop(index)[1], products))
    return step


def slope(prim: Primitive, position: int, entry: Applied) -> float | None:
    """The local derivative as a number, if the step is a number."""
    if not isinstance(prim, Elementwise) or np.ndim(entry.value) != 0 or prim.vjps is None:
        return None
    if any(np.iscomplexobj(part) for part in (entry.value, *entry.args)):
        return None
    rule = prim.vjps[position]
    one = np.ones(())
    return None if rule is None else float(rule(one, np.asarray(entry.value), *entry.args, **entry.node.params))


def _products(prim: Primitive, entry: Applied) -> int:
    """Multiplications by the local derivative: one per element, or per pair of elements in a matrix product."""
    sizes = [int(np.size(arg)) for arg in entry.args]
    result = int(np.size(entry.value)) if not prim.multiple else sum(int(np.size(part)) for part in entry.value)
    if prim.name in {"matmul", "linear"}:
        return result * int(np.shape(entry.args[0])[-1])
    return max([result, *sizes])


def _count_forward(inputs: list[Input], steps: list[Step]) -> None:
    """Count the products of a forward-mode sweep from each input, over the edges that it reaches."""
    for entry in inputs:
        reached = {entry.name}
        for step in steps:
            for edge in step.edges:
                if edge.name in reached:
                    entry.products += edge.products
                    reached.add(step.name)


def _push_tangents(inputs: list[Input], steps: list[Step]) -> None:
    """Run forward mode: a step's tangent is the sum over its arguments of local derivative times tangent."""
    tangents: dict[str, dict[str, float]] = {
        entry.name: {entry.name: 1.0} for entry in inputs if np.ndim(entry.value) == 0
    }
    for step in steps:
        if all(edge.number is not None and edge.name in tangents for edge in step.edges):
            total: dict[str, float] = {}
            for edge in step.edges:
                for name, tangent in tangents[edge.name].items():
                    total[name] = total.get(name, 0.0) + (edge.number or 0.0) * tangent
            step.tangents = tangents[step.name] = total
