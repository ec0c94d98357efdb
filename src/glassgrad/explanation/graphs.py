"""Turn a recorded computation into the data of a drawing: a tensor with a history, or a call of a function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base.drawing.graph import Edge, Graph, Node, Path, Sweep, numbers_of
from glassgrad.engine.mode import no_grad
from glassgrad.engine.node import Freed, unpack
from glassgrad.engine.node import Node as TapeNode
from glassgrad.engine.scope import ModuleCalls, Scope
from glassgrad.engine.tensor import Tensor
from glassgrad.explanation.gathered import gathered, maker
from glassgrad.explanation.record import Names, Record, Traced, arguments, record_of, slope, trace
from glassgrad.ops import formulas
from glassgrad.ops.core import Array
from glassgrad.verify.spy import Applied, Spy
from glassgrad.verify.truth import Recorder, walked

_SWEEPS = 4  # at most so many forward-mode sweeps are drawn; further inputs are only counted


@dataclass
class Ops:
    """A recorded computation: its ops in order, its results, and the known names, modules and gradients."""

    name: str
    applied: list[Applied]
    roots: list[Any]
    names: Names
    scope: Scope
    modules: dict[TapeNode, Path] = field(default_factory=dict)
    kinds: dict[Path, str] = field(default_factory=dict)
    seen: Recorder | None = None
    gradients: Mapping[Any, Any] = field(default_factory=dict)


# --- a call of a function -------------------------------------------------------------------------


class _PathSpy(Spy):
    """Notes in which call of a module each op was applied."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = ModuleCalls([])
        self.modules: dict[TapeNode, Path] = {}

    def note(self, node: TapeNode) -> None:
        super().note(node)
        self.modules[node] = self.calls.path


def of_call(function: Any, args: Sequence[Array], options: Mapping[str, Any]) -> tuple[Ops, Traced]:
    """Run a function, and restore the tensors, modules and optimizers that it can see."""
    scope = Scope.of_call(function, arguments(function, args, options))
    spy = _PathSpy()
    spy.calls = ModuleCalls(scope.modules)
    before = scope.snapshot()
    try:
        with spy.calls.seen():
            call = trace(function, args, options, spy)
    finally:
        before.restore()
    roots = [tensor.node for tensor in _tensors(call.result) if tensor.node is not None]
    if not roots:
        raise errors.DRAW_NO_OPS(name=call.name, given=type(call.result).__name__)
    scope.tensors.update({leaf: name for name, leaf in call.inputs.items()})
    applied = _behind(spy.applied, roots)
    names = Names(function, _of_these(scope.tensors, applied), applied, roots[-1])
    ops = Ops(call.name, applied, roots, names, scope, spy.modules, spy.calls.kinds)
    _walk(ops, call.result)
    return ops, call


def _tensors(value: Array) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [tensor for part in value for tensor in _tensors(part)] if isinstance(value, list | tuple) else []


def _behind(applied: Sequence[Applied], roots: Sequence[TapeNode]) -> list[Applied]:
    """Return the ops that the results were made by."""
    needed = set(roots)
    found = []
    for entry in sorted(applied, key=lambda entry: entry.node.seq, reverse=True):
        if entry.node in needed:
            found.append(entry)
            needed.update(maker(parent) for parent in entry.node.parents if parent is not None)
    return found[::-1]


def _of_these(tensors: Mapping[Array, str], applied: Sequence[Applied]) -> dict[str, Any]:
    """Return the tensors that take part, by name; the names of the others stay free for ops."""
    taking_part = {entry.node for entry in applied} | {parent for entry in applied for parent in entry.node.parents}
    found: dict[str, Any] = {}
    for key, name in tensors.items():
        if key in taking_part:
            found[name if name not in found else f"{name} ({len(found)})"] = key
    return found


def _walk(ops: Ops, result: Array) -> None:
    """Find the gradients, if the result is one number."""
    if isinstance(result, Tensor) and result.numel() == 1 and not _is_freed(ops):
        hooks = [(entry.node, entry.node.hooks) for entry in ops.applied if entry.node.hooks]
        for node, _ in hooks:  # hooks of the user, which must not run
            node.hooks = None
        try:
            ops.seen, ops.gradients = walked(result.node, np.ones(result.shape, result.dtype))
        finally:
            for node, found in hooks:
                node.hooks = found


def _is_freed(ops: Ops) -> bool:
    return any(type(entry.node.saved) is Freed for entry in ops.applied)


# --- a tensor with a history ----------------------------------------------------------------------


def of_tensor(tensor: Tensor, scope: Scope) -> Ops:
    """Read the tape behind a tensor."""
    if tensor.node is None:
        raise errors.DRAW_NO_HISTORY(shape=list(tensor.shape))
    nodes, waiting = {maker(tensor.node)}, [maker(tensor.node)]
    while waiting:
        for parent in waiting.pop().parents:
            made = maker(parent)
            if type(made) is TapeNode and made not in nodes:
                nodes.add(made)
                waiting.append(made)
    applied = [_recalled(node) for node in sorted(nodes, key=lambda node: node.seq)]
    root = applied[-1]
    root.value = tensor.detach().numpy()
    _fill(applied)
    scope.tensors.setdefault(root.node, root.node.place.variable or "result")
    names = Names(None, _of_these(scope.tensors, applied), applied, root.node)
    modules, kinds = gathered(scope.modules, [entry.node for entry in applied])
    ops = Ops(names.of[root.node], applied, [root.node], names, scope, modules, kinds)
    _walk(ops, tensor)
    return ops


def _recalled(node: TapeNode) -> Applied:
    """Return an op with its saved values, None for values that it did not save."""
    if type(node.saved) is Freed:
        raise errors.DRAW_FREED(op=node.name, built=node.place, freed=node.saved.place)
    y, *x = unpack(node)
    y = y[0] if node.prim.decompose is not None and isinstance(y, tuple) else y
    return Applied(node, tuple(_array(part) for part in x), _array(y))


def _array(part: Array) -> Array:
    if isinstance(part, Tensor):
        return part.detach().numpy() if type(part.array) is np.ndarray else None
    return part if isinstance(part, np.ndarray | np.generic | int | float) else None


def _fill(applied: Sequence[Applied]) -> None:
    """Find values that an op did not save: its readers may have saved them, or they are computed from its arguments."""
    values = {entry.node: entry.value for entry in applied if entry.value is not None}
    for entry in applied:
        for parent, array in zip(entry.node.parents, entry.args, strict=False):
            if type(parent) is TapeNode and array is not None and np.shape(array) == parent.shape:
                values.setdefault(parent, array)
    for entry in applied:
        node = entry.node
        pairs = _pairs(entry.args, node.parents)
        entry.args = tuple(
            _literal(node, at, len(pairs)) if array is None and parent is None else _known(array, parent, values)
            for at, (array, parent) in enumerate(pairs)
        )
        entry.value = values.get(node)
        if entry.value is None and node.prim.decompose is None and not node.prim.multiple and node.parents:
            entry.value = _computed(entry)
        if entry.value is not None:
            values[node] = entry.value


def _pairs(args: Sequence[Array], parents: Sequence[Any]) -> list[tuple[Any, Any]]:
    count = max(len(args), len(parents))
    filled = [*args, *[None] * (count - len(args))]
    return list(zip(filled, [*parents, *[None] * (count - len(parents))], strict=True))


def _known(array: Array, parent: Any, values: Mapping[Array, Array]) -> Array:
    if array is not None:
        return array
    return _array(parent) if isinstance(parent, Tensor) else values.get(parent)


def _literal(node: TapeNode, at: int, count: int) -> float | None:
    """Return a number that is written in the user's line."""
    operands = node.place.operands
    try:
        return float(operands[at]) if len(operands) == count else None
    except ValueError:
        return None


def _computed(entry: Applied) -> Array:
    if any(arg is None for arg in entry.args):
        return None
    try:
        with np.errstate(all="ignore"), no_grad():
            value = entry.node.prim.evaluate(*entry.args, **entry.node.params)
    except (TypeError, ValueError, IndexError):  # an op that takes its arguments in another form
        return None
    return value if np.shape(value) == entry.node.shape else None


# --- the data -------------------------------------------------------------------------------------


def graph_of(ops: Ops) -> Graph:
    """Return nodes and edges with names, values, gradients and local derivatives."""
    maker = _Maker(ops)
    for entry in ops.applied:
        maker.add(entry)
    graph = Graph(ops.name, maker.nodes, maker.edges, dict(ops.kinds))
    graph.place_leaves()
    if ops.seen is None:
        freed = "a backward() inside it has freed the graph" if _is_freed(ops) else "the result is not one number"
        graph.notes.append(f"No gradients: {freed}.")
    return graph


class _Maker:
    def __init__(self, ops: Ops) -> None:
        self.ops = ops
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.index: dict[Any, int] = {}

    def add(self, entry: Applied) -> None:
        """Append an op, and before it the leaves among its arguments."""
        node = entry.node
        pairs = _pairs(entry.args, node.parents)
        tails = [self._argument(maker(parent), array) for array, parent in pairs]
        texts = [self._text(self.nodes[tail]) for tail in tails]
        self.index[node] = head = len(self.nodes)
        self.nodes.append(self._node(entry, texts))
        sent = [] if self.ops.seen is None else list(self.ops.seen.sent_by.get(node, ()))
        known = entry.value is not None and all(array is not None for array in entry.args)
        for at, (tail, (_, parent)) in enumerate(zip(tails, pairs, strict=True)):
            edge = Edge(tail, head)
            self.edges.append(edge)
            if parent is None:
                continue
            edge.local = formulas.derivative(node.prim, at, texts, self.ops.names.of[node])
            edge.number = slope(node.prim, at, entry) if known else None
            share = next((i for i, (target, _) in enumerate(sent) if target is parent), None)
            edge.sent = None if share is None else numbers_of(_plain(sent.pop(share)[1]))

    def _node(self, entry: Applied, texts: Sequence[str]) -> Node:
        node, ops = entry.node, self.ops
        prim, place, value = node.prim, node.place, entry.value
        if isinstance(value, tuple) and prim.companions:
            value = value[0]
        return Node(
            "op",
            prim.name,
            ops.names.of[node],
            formulas.expression(prim, texts, node.params),
            tuple(node.shape),
            str(node.dtype),
            value=None if prim.multiple or isinstance(value, tuple) else numbers_of(value),
            gradient=None if ops.seen is None else numbers_of(_plain(ops.seen.cotangents_of.get(node))),
            where=str(place),
            source=place.source,
            module=ops.modules.get(node, ()),
            root=node in ops.roots,
        )

    @staticmethod
    def _text(node: Node) -> str:
        """Return how a value is written in a formula."""
        if node.name or (node.value is not None and not node.shape):
            return node.name or (node.value.text if node.value is not None else "")
        return f"array{node.shape}"

    def _argument(self, parent: Any, array: Array) -> int:
        if parent is not None and parent in self.index:
            return self.index[parent]
        if parent is None:
            return self._leaf(Node("constant", name=self.ops.scope.arrays.get(id(array), "")), array)
        tensor = parent if isinstance(parent, Tensor) else None
        kind = "parameter" if type(parent).__name__ == "Parameter" else "input"
        name = self.ops.names.of.get(parent, "")
        array = tensor.detach().numpy() if tensor is not None else array
        made = self._leaf(Node(kind, name=name), array, tuple(parent.shape), str(parent.dtype))
        self.nodes[made].gradient = numbers_of(_plain(self.ops.gradients.get(parent)))
        self.index[parent] = made
        return made

    def _leaf(self, node: Node, array: Array, shape: tuple[int, ...] | None = None, dtype: str = "") -> int:
        if array is not None:
            node.shape, node.dtype = np.shape(array), str(np.asarray(array).dtype)
            node.value = numbers_of(array)
        if shape is not None:
            node.shape, node.dtype = shape, dtype
        self.nodes.append(node)
        return len(self.nodes) - 1


def _plain(array: Array) -> Array:
    return array.array if isinstance(array, Tensor) else array


# --- forward mode beside reverse mode -------------------------------------------------------------


def sweeps_of(call: Traced, ops: Ops, graph: Graph) -> list[Sweep]:
    """Return the one pass of reverse mode, and those of forward mode, one from each input."""
    if ops.seen is None:
        raise errors.DRAW_SWEEPS_NUMBER(name=ops.name)
    record = record_of(call)
    at_step = dict(
        zip((step.name for step in record.steps), (i for i, n in enumerate(graph.nodes) if n.kind == "op"), strict=True)
    )
    leaves = {node.name: i for i, node in enumerate(graph.nodes) if node.kind in {"input", "parameter"}}
    found = [_forward(record, entry.name, at_step, leaves) for entry in record.inputs[:_SWEEPS]]
    if len(record.inputs) > _SWEEPS:
        graph.notes.append(f"Sweeps are drawn from {_SWEEPS} of {len(record.inputs)} inputs.")
    of = record.steps[-1].name
    values = {i: f"d {of} = {node.gradient.short}" for i, node in enumerate(graph.nodes) if node.gradient is not None}
    cost = f"1 sweep, {record.reverse_products:,} products, for all {len(record.inputs)} inputs"
    return [Sweep(f"Reverse mode: the derivative of {of} by every value", cost, values, backward=True), *found]


def _forward(record: Record, name: str, at_step: Mapping[str, int], leaves: Mapping[str, int]) -> Sweep:
    source = next(entry for entry in record.inputs if entry.name == name)
    size = int(np.size(source.value))
    values = {leaves[name]: "d = 1" if size == 1 else f"{size} directions"} if name in leaves else {}
    reached = {name}
    for step in record.steps:
        if any(edge.name in reached for edge in step.edges):
            reached.add(step.name)
            tangent = None if step.tangents is None else step.tangents.get(name)
            values[at_step[step.name]] = f"d / d {name}" if tangent is None else f"d = {tangent:.4g}"
    sweeps = f"{size:,} sweep{'s' if size != 1 else ''}, {size * source.products:,} products"
    return Sweep(f"Forward mode: the derivative of every value by {name}", sweeps, values)
