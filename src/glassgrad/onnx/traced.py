"""A model as steps, with parameters, shapes and constants that depend on the sizes of the call.

Traces of `compile.front`, one for each sample of sizes, are merged into one program.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.compile.front.calls.captured import Capture, Given, Output
from glassgrad.compile.front.calls.parameters import parameter_names
from glassgrad.compile.front.capture import TRACING_LOCK, capture
from glassgrad.compile.front.tracer import Tracer
from glassgrad.compile.ir.graph import Graph, Instr, Var
from glassgrad.compile.ir.passes.clean import eliminate_dead
from glassgrad.engine import tree
from glassgrad.engine.mode import no_grad
from glassgrad.engine.tensor import Tensor, make
from glassgrad.nn.module import Module
from glassgrad.onnx.extents import Dim, Samples

# Composites with their own ONNX operator; a trace would otherwise decompose them.
WHOLE = frozenset({"linear", "layer_norm", "lstm", "gru", "rnn", "prod"})
_CALL = Module.__call__.__code__


class ModelTracer(Tracer):
    """A tracer that keeps some composites whole and notes which module applied each instruction."""

    whole = WHOLE
    model: Any = None

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.owners_of: dict[Instr, Any] = {}

    def _append(self, instr: Instr) -> None:
        super()._append(instr)
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code is not _CALL:
            frame = frame.f_back
        self.owners_of[instr] = None if frame is None else frame.f_locals["self"]


@dataclass(frozen=True, eq=False)
class Slot:
    """A value of the merged program: an input, a weight, a constant, or the result of a step."""

    shape: tuple[Dim, ...]
    dtype: np.dtype[Any]
    name: str | None = None

    @property
    def ndim(self) -> int:
        return len(self.shape)


@dataclass(frozen=True, eq=False)
class Step:
    """One primitive of the merged program; integers of its parameters may be `Extent`s.

    Attributes:
        op: the name of the primitive.
        inputs: slots and Python numbers.
        outputs: slots.
        params: its parameters.
        module: the path of the module that applied it, empty outside of any.
        where: the user's line.
    """

    op: str
    inputs: tuple[Any, ...]
    outputs: tuple[Slot, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    module: str = ""
    where: Any = "an unknown line"

    @property
    def out(self) -> Slot:
        """The first result."""
        return self.outputs[0]

    def beside(self) -> str:
        """Return the module as a part of a message."""
        return f" (in {self.module})" if self.module else ""


@dataclass(frozen=True)
class Filled:
    """A constant with equal elements, whose shape depends on the call."""

    value: Any
    shape: tuple[Dim, ...]


@dataclass(frozen=True)
class Counted:
    """The constant start, start + 1, ..., whose length depends on the call; without a length, one number."""

    start: Dim
    length: Dim | None = None


@dataclass(frozen=True)
class Triangle:
    """A matrix of ones (or True) on and below a diagonal, or above it, whose shape depends on the call."""

    shape: tuple[Dim, ...]
    lower: bool
    diagonal: Dim


@dataclass(eq=False)
class Program:
    """The exported program.

    Attributes:
        name: the model's name.
        inputs: the slots of the arguments, with their names.
        weights: slots and tensors of state.
        constants: slots and their arrays, or `Filled`, `Counted`, `Triangle`.
        steps: in order.
        outputs: slots, or numbers.
    """

    name: str
    inputs: list[Slot]
    weights: list[tuple[Slot, Tensor]]
    constants: list[tuple[Slot, Any]]
    steps: list[Step]
    outputs: list[Any]


@dataclass(eq=False)
class _Trace:
    """One trace: its graph without dead code, its state, the arguments by their leaf, and the results."""

    graph: Graph
    state: dict[Var, Tensor]
    arguments: dict[int, Var]
    given: dict[int, Any]
    modules: dict[Instr, str]
    outputs: list[Any]


def trace(model: Callable[..., Any], args: tuple[Any, ...], samples: Samples, sized: Callable[..., Any]) -> Program:
    """Trace a model at every sample of sizes and merge the traces; `sized(args, sizes)` gives its arguments."""
    traces = []
    for sizes in samples.sizes:
        try:
            traces.append(_traced(model, sized(args, sizes) if samples.names else args))
        except (errors.GlassgradError, ValueError, IndexError, TypeError) as error:
            with no_grad():
                model(*args)  # raises the clearest error if the call itself is wrong
            if not samples.names:
                raise
            _traced(model, args)  # raises if the model cannot be traced at all
            shown = ", ".join(f"{name}={size}" for name, size in sizes.items())
            example = (parameter_names(model) or ["x"])[0]
            raise errors.ONNX_SIZES(sizes=shown, problem=str(error).split("\n")[0], example=example) from error
    return _Merge(traces, samples).program()


def _traced(model: Callable[..., Any], args: tuple[Any, ...]) -> _Trace:
    tracers: list[ModelTracer] = []

    def tracer(name: str) -> ModelTracer:
        tracers.append(ModelTracer(name))
        return tracers[0]

    with TRACING_LOCK, no_grad():
        captured = capture(
            model, args, {}, names=parameter_names(model), follow_results=False, keep_grads=False, make_tracer=tracer
        )
        if captured.undo is not None:
            captured.undo()
    for feed in captured.feeds:
        raise errors.ONNX_RANDOM(label=feed.label)
    if captured.graph.updates or captured.effects or captured.moved:
        raise errors.ONNX_WRITES(what=_written(captured))
    graph = eliminate_dead(captured.graph)
    arguments = dict(zip(captured.arguments, graph.inputs, strict=False))
    state = {one.var: one.tensor for one in captured.state}
    given = _given(args)
    outputs = _outputs(captured.result, graph, given)
    return _Trace(graph, state, arguments, given, _paths(model, tracers[0]), outputs)


def _given(args: tuple[Any, ...]) -> dict[int, Any]:
    """Return the leaves of the arguments that are data, by their position among all leaves."""
    leaves = enumerate(tree.every_leaf({"args": args, "kwargs": {}}))
    return {at: leaf for at, leaf in leaves if isinstance(leaf, Tensor | np.ndarray)}


def _written(captured: Capture) -> str:
    names = {state.var: state.path for state in captured.state}
    found = [names.get(target) or "a tensor" for target, _ in captured.graph.updates]
    return ", ".join(found) or "an attribute"


def _paths(model: Any, tracer: ModelTracer) -> dict[Instr, str]:
    paths = {id(module): path for path, module in model.named_modules()} if isinstance(model, Module) else {}
    return {instr: paths.get(id(owner), "") for instr, owner in tracer.owners_of.items()}


def _outputs(result: Any, graph: Graph, given: Mapping[int, Any]) -> list[Any]:
    """Return the leaves of the result: operands, `Given` arguments, or tensors from outside."""
    found: list[Any] = []

    def leaf(spec: Any, _path: tree.Path) -> Any:
        if isinstance(spec, Output):
            found.append(graph.outputs[spec.at])
        elif isinstance(spec, Given) and spec.leaf in given:
            found.append(spec)
        elif isinstance(spec, Given) and isinstance(spec.value, Tensor):
            found.append(spec.value)
        elif not (isinstance(spec, Given) and spec.leaf is None and spec.value is None):
            raise errors.ONNX_OUTPUT(given=f"a {type(getattr(spec, 'value', spec)).__name__}")
        return spec

    tree.map_tree(leaf, result)
    return found


class _Merge:
    """Walks several traces of one model side by side."""

    def __init__(self, traces: Sequence[_Trace], samples: Samples) -> None:
        self.traces = traces
        self.samples = samples
        self.first = traces[0]
        self.slots: list[dict[Any, Slot]] = [{} for _ in traces]
        self.constants: list[tuple[Slot, Any]] = []
        self.weights: list[tuple[Slot, Tensor]] = []
        self.inputs: dict[int, Slot] = {}

    def program(self) -> Program:
        self._same_steps()
        self.inputs = {leaf: self._input(leaf) for leaf in self.first.given}
        for variables in zip(*[one.graph.inputs for one in self.traces], strict=True):
            if variables[0] in self.first.state:
                self.weights.append((self._slot(variables), self.first.state[variables[0]]))
        for pairs in zip(*[one.graph.constants for one in self.traces], strict=True):
            slot = self._slot([var for var, _ in pairs])
            self.constants.append((slot, [value for _, value in pairs]))
        steps = [self._step(instrs) for instrs in zip(*[one.graph.instrs for one in self.traces], strict=True)]
        outputs = [self._result(found) for found in zip(*[one.outputs for one in self.traces], strict=True)]
        return Program(
            self.first.graph.name,
            list(self.inputs.values()),
            self.weights,
            self._known_constants(steps),
            steps,
            outputs,
        )

    def _same_steps(self) -> None:
        """Raise unless all traces apply the same ops."""
        for number, other in enumerate(self.traces[1:], 1):
            pairs = itertools.zip_longest(self.first.graph.instrs, other.graph.instrs)
            different = next(((a, b) for a, b in pairs if a is None or b is None or a.op != b.op), None)
            if different is not None or len(other.graph.constants) != len(self.first.graph.constants):
                one, two = [
                    "nothing more" if instr is None else f"{instr.op} ({instr.where})"
                    for instr in different or (None, None)
                ]
                raise errors.ONNX_DIFFERS(
                    first=_shown(self.samples, 0), second=_shown(self.samples, number), one=one, other=two
                )

    def _input(self, leaf: int) -> Slot:
        """Return the slot of an argument, which the model may not use."""
        if leaf in self.first.arguments:
            return self._slot([one.arguments[leaf] for one in self.traces])
        shapes = zip(*[one.given[leaf].shape for one in self.traces], strict=True)
        return Slot(tuple([self.samples.fit(extents) for extents in shapes]), self.first.given[leaf].dtype)

    def _slot(self, variables: Sequence[Var]) -> Slot:
        first = variables[0]
        shape = tuple([self.samples.fit(extents) for extents in zip(*[var.shape for var in variables], strict=True)])
        made = Slot(shape, first.dtype, first.name)
        for slots, var in zip(self.slots, variables, strict=True):
            slots[var] = made
        return made

    def _result(self, found: Sequence[Any]) -> Any:
        """Return the slot of an output; a tensor that exists outside becomes a weight."""
        first = found[0]
        if isinstance(first, Var):
            return self.slots[0][first]
        if isinstance(first, Given):
            return self.inputs[first.leaf or 0]
        if isinstance(first, Tensor):
            slot = Slot(first.array.shape, first.array.dtype)
            self.weights.append((slot, first))
            return slot
        return first

    def _step(self, instrs: Sequence[Instr]) -> Step:
        first = instrs[0]
        where = str(first.where) if first.where is not None else "an unknown line"
        module = self.first.modules.get(first, "")
        shell = Step(first.op, (), (), {}, module, where)
        inputs = [self._operand(shell, operands) for operands in zip(*[instr.inputs for instr in instrs], strict=True)]
        params = self._merged(shell, "a parameter", [dict(instr.params) for instr in instrs])
        outputs = tuple([self._slot(variables) for variables in zip(*[i.outputs for i in instrs], strict=True)])
        return Step(first.op, tuple(inputs), outputs, params, module, where)

    def _operand(self, step: Step, operands: Sequence[Any]) -> Any:
        first = operands[0]
        if isinstance(first, Var):
            found = {id(slots.get(var)) for slots, var in zip(self.slots, operands, strict=True)}
            if len(found) > 1:
                raise errors.ONNX_DIFFERS(
                    first=_shown(self.samples, 0),
                    second=_shown(self.samples, -1),
                    one=f"{step.op} ({step.where}) to one value",
                    other="to another",
                )
            return self.slots[0][first]
        return self._merged(step, "a number", operands)

    def _merged(self, step: Step, what: str, values: Sequence[Any]) -> Any:
        """Merge a parameter's values from all traces."""
        first = values[0]
        if isinstance(first, dict):
            return {key: self._merged(step, f"the {key}", [value[key] for value in values]) for key in first}
        if isinstance(first, tuple) and len({len(value) for value in values}) == 1:
            parts = [self._merged(step, what, part) for part in zip(*values, strict=True)]
            return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
        if isinstance(first, np.ndarray):
            if all(np.array_equal(value, first) for value in values[1:]):
                return first
        elif all(type(value) is type(first) and (value == first or value is first) for value in values[1:]):
            return first
        elif all(isinstance(value, int) and not isinstance(value, bool) for value in values):
            found = self.samples.fit(values)
            if found is not None:
                return found
        elif all(value != value for value in values):  # noqa: PLR0124 - NaN in every trace
            return first
        raise _follows(step, what, values)

    def _known_constants(self, steps: Sequence[Step]) -> list[tuple[Slot, Any]]:
        readers: dict[int, Step] = {}
        for step in reversed(steps):
            readers.update({id(slot): step for slot in step.inputs if isinstance(slot, Slot)})
        return [(slot, self._constant(slot, values, readers.get(id(slot)))) for slot, values in self.constants]

    def _constant(self, slot: Slot, values: Sequence[Any], reader: Step | None) -> Any:
        first = values[0]
        if all(np.array_equal(value, first, equal_nan=value.dtype.kind == "f") for value in values[1:]):
            return first
        for form in (_filled, _counted, _triangle):
            found = form(slot, values, self.samples)
            if found is not None:
                return found
        raise _follows(reader or Step("a constant", (), ()), "a constant", [value.shape for value in values])


def _shown(samples: Samples, number: int) -> str:
    return ", ".join(f"{name}={size}" for name, size in samples.sizes[number].items()) or "one size"


def _follows(step: Step, what: str, values: Sequence[Any]) -> Exception:
    given = ", ".join(str(value)[:40] for value in values)
    advice = "compute it from tensors instead of Python numbers, or export for fixed sizes with dynamic_axes={}."
    return errors.ONNX_FOLLOWS(
        what=what, op=step.op, where=step.where, module=step.beside(), given=given, advice=advice
    )


def _filled(slot: Slot, values: Sequence[Any], _samples: Samples) -> Filled | None:
    if None in slot.shape or not all(value.size for value in values):
        return None
    parts = {value.reshape(-1)[0].item() for value in values}
    same = len(parts) == 1 and all((value == value.reshape(-1)[0]).all() for value in values)
    return Filled(values[0].reshape(-1)[0], slot.shape) if same else None


def _counted(slot: Slot, values: Sequence[Any], samples: Samples) -> Counted | None:
    if slot.dtype.kind not in "iu" or slot.ndim > 1:
        return None
    if slot.ndim == 0:
        number = samples.fit([int(value) for value in values])
        return None if number is None else Counted(number)
    if not all(value.size and (np.diff(value) == 1).all() for value in values):
        return None
    start = samples.fit([int(value[0]) for value in values])
    return None if start is None or slot.shape[0] is None else Counted(start, slot.shape[0])


def _triangle(slot: Slot, values: Sequence[Any], samples: Samples) -> Triangle | None:
    if slot.ndim != 2 or None in slot.shape or slot.dtype.kind not in "bf":
        return None
    for lower, cut in ((True, np.tril), (False, np.triu)):
        diagonals = [_diagonal(value, lower) for value in values]
        ones = [cut(np.ones_like(value), at) for value, at in zip(values, diagonals, strict=True)]
        diagonal = samples.fit(diagonals)
        if diagonal is not None and all(map(np.array_equal, ones, values)):
            return Triangle(slot.shape, lower, diagonal)
    return None


def _diagonal(matrix: Any, lower: bool) -> int:
    """Return the offset of the diagonal up to which (or from which) the matrix has ones."""
    row = matrix[0] if lower else matrix[0][::-1]
    count = int(row.astype(bool).sum())
    return count - 1 if lower else matrix.shape[1] - count


def sized(args: tuple[Any, ...], axes: Sequence[Mapping[int, str]], sizes: Mapping[str, int]) -> tuple[Any, ...]:
    """Return arguments with named axes resized by repeating or dropping slices."""
    leaves = iter(axes)

    def resize(leaf: Any, _path: tree.Path) -> Any:
        if not isinstance(leaf, Tensor | np.ndarray):
            return leaf
        array = leaf.array if isinstance(leaf, Tensor) else leaf
        for axis, name in next(leaves).items():
            array = np.take(array, np.arange(sizes[name]) % array.shape[axis], axis=axis)
        return make(array, None, False) if isinstance(leaf, Tensor) else array

    changed: tuple[Any, ...] = tree.map_tree(resize, args)
    return changed
