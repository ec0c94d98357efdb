"""The result of a trace: the graph, and everything else that a call needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from glassgrad.compile.front.calls.feeds import Feed
from glassgrad.compile.front.calls.result_gradients import Boundary
from glassgrad.compile.front.state.edges import Edge
from glassgrad.compile.front.state.effects import Effect, Entry, Kept, Moved
from glassgrad.compile.ir.graph import Graph, Instr, Var
from glassgrad.engine import tree
from glassgrad.engine.tensor import Tensor, make
from glassgrad.ops.core import Array

if TYPE_CHECKING:
    from glassgrad.compile.front.hidden_branch import Branch


@dataclass(frozen=True)
class Output:
    """A leaf of the result, or of a stored value: output number `at` of the program.

    Attributes:
        at: the index of the output.
        wrapped: whether it is a Tensor instead of an array.
        twin: a number that is equal for leaves which are the same tensor.
        buffer: the class of a buffer and whether it is persistent; None for other tensors.
        tracks: whether it is a leaf that requires a gradient.
    """

    at: int
    wrapped: bool
    twin: int = 0
    buffer: tuple[Callable[..., Tensor], bool] | None = None
    tracks: bool = False


@dataclass(frozen=True)
class Given:
    """A leaf of the result that is returned unchanged: an argument or an existing object."""

    leaf: int | None
    value: Any = None


@dataclass(eq=False)
class State:
    """A tensor that the program reads or writes in place.

    Attributes:
        tensor: the tensor.
        var: its input.
        path: the expression with which the user would write it.
        tracks: whether it required a gradient in the trace.
    """

    tensor: Tensor
    var: Var
    path: str
    tracks: bool


@dataclass(eq=False)
class Capture:
    """A traced function: its graph, and everything else that a call needs.

    Attributes:
        graph: inputs in the order arguments, state, feeds.
        arguments: the leaf of the arguments for each argument input.
        moving: positions of floats among the arguments that are inputs.
        state: the tensors of the state inputs, including gradients that remain after a call.
        written: the state that is written to, except gradients that remain after a call.
        feeds: the values that are drawn before each call.
        after: Python code to run again after each call.
        grads: leaves and their gradient tensors (or None) after a call.
        argument_grads: leaf of the arguments -> number of the output that is its gradient.
        result: the result with `Output` and `Given` as leaves.
        edges: places that must be unchanged, with their paths for messages.
        entry: leaves whose gradient before the call matters, and that gradient.
        cotangents: forward value -> cotangent, for printing.
        nodes: number on the tape -> forward instruction, for printing.
        gradients: inputs and their gradients, for printing.
        state_arguments: leaves of the arguments that are state, and their tensors.
        streams, options: random generators it draws from, dictionaries whose numbers it reads in every call.
        keeps_grads: whether gradients remain after a call.
        once: whether the function created state that the next call will find, so that call may need another program.
        boundary: how gradients pass through the call, if results still require one.
        changed: places of Python values that the function itself changes.
        effects: the changes that every call makes to Python objects.
        moved: places whose tensors are read, and replaced by others.
        undo: undoes the effects of the trace until the first call has succeeded; returns whether they included state.
        finite: number of the output that is NaN if a new weight is not finite, if requested.
        branches: numbers of outputs that count cotangents of 0 that became NaN, each with the op of that backward pass.
        watching: number of the first output that watches the program instead of being a result.
    """

    graph: Graph
    arguments: list[int]
    moving: frozenset[int]
    state: list[State]
    written: list[int]
    feeds: list[Feed]
    after: list[Callable[[], object]]
    grads: list[tuple[Tensor, Tensor | None]]
    argument_grads: dict[int, int]
    result: Any
    edges: list[Edge]
    entry: list[tuple[Tensor, Tensor | None]]
    cotangents: dict[Var, Var]
    nodes: dict[int, Instr]
    gradients: list[tuple[Var, Var]]
    state_arguments: list[tuple[int, Tensor]]
    streams: list[Any]
    options: list[dict[str, Any]]
    keeps_grads: bool
    boundary: Boundary | None
    once: bool
    changed: list[tuple[Edge, object]] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    moved: list[Moved] = field(default_factory=list)
    undo: Callable[[], bool] | None = None
    finite: int | None = None
    branches: list[tuple[int, Branch]] = field(default_factory=list)
    watching: int | None = None

    @property
    def unwatched(self) -> Graph:
        """The graph without the outputs that watch it; instructions that only those need are still in it."""
        return replace(self.graph, outputs=self.graph.outputs[: self.watching])


def assembled(result: Any, outputs: Sequence[Array], leaves: Sequence[object], tracked: Mapping[int, Tensor]) -> Any:
    """Return the result of a call from the program's outputs; `tracked` are outputs that are tensors already."""
    return builder(outputs, leaves, tracked)(result)


def builder(outputs: Sequence[Array], leaves: Sequence[object], tracked: Mapping[int, Tensor]) -> Callable[[Any], Any]:
    """Return a function from descriptions to values; a tensor that is described twice is built once."""
    made: dict[int, Tensor] = {}

    def tensor(spec: Output) -> Tensor:
        if spec.twin not in made:
            if spec.buffer is None:
                made[spec.twin] = make(outputs[spec.at], None, spec.tracks)
            else:
                kind, persistent = spec.buffer
                made[spec.twin] = kind(outputs[spec.at], persistent=persistent)
        return made[spec.twin]

    def leaf(spec: object, _path: tree.Path) -> Any:
        match spec:
            case Output():
                if spec.at in tracked:
                    return tracked[spec.at]
                return tensor(spec) if spec.wrapped else outputs[spec.at]
            case Kept():
                return spec.value
            case Entry():
                return spec.moved.leaves[spec.leaf]
        assert isinstance(spec, Given)
        if spec.leaf is not None:
            return leaves[spec.leaf]
        return spec.value.copy() if isinstance(spec.value, np.ndarray) else spec.value

    return lambda spec: tree.map_tree(leaf, spec)
