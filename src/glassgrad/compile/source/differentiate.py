"""A traced forward pass replayed on a tape: the same instructions, followed by the backward pass of the loss.

Replaying separates a function's computation from the derivation of its backward pass, so that `recognise` can replace
the user's steps by a composite with a closed-form gradient.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.compile.front.calls.parameters import Function
from glassgrad.compile.front.origin import FORWARD, Origin
from glassgrad.compile.front.symbol import Symbol
from glassgrad.compile.front.tracer import Tracer
from glassgrad.compile.ir.graph import Graph, Instr, Operand, Var
from glassgrad.compile.ir.passes import eliminate_dead
from glassgrad.compile.ir.passes.rewriter import Rewriter
from glassgrad.compile.ir.passes.rules import Rules, rule
from glassgrad.compile.ir.passes.simplify import SIMPLIFY
from glassgrad.engine import tape
from glassgrad.engine.mode import MODE, RECORDING, TRACING
from glassgrad.engine.node import Node
from glassgrad.engine.tensor import Tensor, make
from glassgrad.ops.core import PRIMITIVES, Array

Replace = Callable[["Replay", Instr], bool]


@dataclass(eq=False)
class Derived:
    """A program with a backward pass, and the correspondence of its parts.

    Attributes:
        graph: the program.
        gradients: (input, gradient) pairs.
        cotangents: forward value -> its total cotangent.
        nodes: number on the tape -> the forward instruction that was recorded there.
        seed: the cotangent of the loss, if it is an input.
    """

    graph: Graph
    gradients: list[tuple[Var, Var]]
    cotangents: dict[Var, Var]
    nodes: dict[int, Instr]
    seed: Var | None = None

    def forward_of(self, instr: Instr) -> Instr | None:
        """Return the forward instruction whose rule emitted a backward instruction."""
        return self.nodes.get(instr.where.node) if isinstance(instr.where, Origin) else None


class Replay:
    """Runs a graph's instructions on Tensors of Symbols.

    Attributes:
        values: the current Tensor or array of each value of the graph.
    """

    def __init__(self, graph: Graph, leaves: Sequence[Var], replace: Replace | None = None) -> None:
        self.graph = graph
        self.tracer = Tracer(graph.name)
        # Constants are Symbols, so that the rules of a layer with constant inputs look like those of the others.
        self.values: dict[Var, Array] = {
            var: Symbol(self.tracer, self.tracer.constant(value)) if value.ndim and value.dtype.kind == "f" else value
            for var, value in graph.constants
        }
        self.replace = replace
        for var in graph.inputs:
            symbol = self.tracer.argument(var, var.name or f"x{var.id}")
            self.values[var] = make(symbol, None, var in leaves)
        self.leaves = [var for var in graph.inputs if var in leaves]

    def value(self, operand: Operand) -> Array:
        """Return the current value of an operand of the graph."""
        return self.values[operand] if isinstance(operand, Var) else operand

    def run(self, instr: Instr) -> Array:
        """Apply one instruction as a user would, recorded or not; return the results."""
        args = [self.value(operand) for operand in instr.inputs]
        if isinstance(instr.where, Origin) and not instr.where.records:
            args = [make(arg.array, None, False) if isinstance(arg, Tensor) else arg for arg in args]
            if instr.op == "alias":
                return args[0]
        self.tracer.place = instr.where
        result = PRIMITIVES[instr.op](*args, **instr.params)
        self.tracer.place = None
        return result

    def keep(self, instr: Instr) -> None:
        """Apply one instruction and store its results."""
        result = self.run(instr)
        results = result if len(instr.outputs) > 1 else (result,)
        self.values.update(zip(instr.outputs, results, strict=True))

    def derive(self, loss: Var) -> Derived:
        """Replay everything and walk back from the loss."""
        with _tracing():
            for instr in self.graph.instrs:
                if self.replace is None or not self.replace(self, instr):
                    self.keep(instr)
            root = self.values[loss]
            if root.node is None:
                raise errors.SOURCE_GRADIENT(what=next((leaf.name for leaf in self.leaves if leaf.name), "an input"))
            seed = self.tracer.argument(root.array, "dloss")
            walk = tape.Walk(True, False, observer=_Totals(self.tracer))
            walk.seed(root.node, seed)
            found = walk.run()
        self.tracer.calls.forget()
        return self._derived(root, seed.var, found)

    def _derived(self, root: Tensor, seed: Var, found: Mapping[Any, Any]) -> Derived:
        tracer = self.tracer
        pairs = []
        for var in self.leaves:
            g = found.get(self.values[var])
            if g is not None:
                pairs.append((self.var_of(var), self._var(g)))
        graph = eliminate_dead(tracer.builder.build([root.array.var, *(g for _, g in pairs)]))
        cotangents = {root.array.var: seed, **tracer.cotangents}
        return Derived(graph, pairs, cotangents, tracer.nodes(), seed)

    def _var(self, array: Array) -> Var:
        return array.var if isinstance(array, Symbol) else self.tracer.constant(array)

    def var_of(self, var: Var) -> Var:
        """Return the new program's value for a value of the traced graph."""
        return self._var(self.values[var].array)


class _Totals(tape.Observer):
    """Reports the total cotangent of every node to the tracer, even if no rule emits instructions."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.left = tracer.left  # type: ignore[method-assign]  # the tracer's own business

    def rule(self, node: Node, g: Array, saved: tuple[Array, ...], position: int | None) -> None:
        """Report the total."""
        made = self.tracer.instr_of(node.seq)
        if made is not None and isinstance(g, Symbol) and len(made.outputs) == 1:
            self.tracer.cotangents.setdefault(made.output, g.var)
        self.tracer.rule(node, g, saved, position)


def tidy(derived: Derived, named: Iterable[Var] = (), *, seeded: bool = True) -> Derived:
    """Simplify the backward pass, and leave the forward pass as the user wrote it.

    Cotangents of the `named` forward values stay visible. Unless `seeded`, the cotangent of the loss is omitted,
    since it is 1.
    """
    graph = derived.graph
    if not seeded and derived.seed is not None:
        graph = _with_one(graph, derived.seed)
    rewriter = Rewriter(graph)
    rewriter.opaque.update(derived.cotangents[var] for var in named if var in derived.cotangents)
    rewriter.rewrite(
        _FOR_READING,
        lambda instr: isinstance(instr.where, Origin) and (instr.where.role != FORWARD or _does_nothing(instr)),
    )
    graph = eliminate_dead(rewriter.finish())
    cotangents: dict[Var, Var] = {}
    for value, total in derived.cotangents.items():
        value_now, total_now = rewriter.now(value), rewriter.now(total)
        if isinstance(value_now, Var) and isinstance(total_now, Var):
            cotangents.setdefault(value_now, total_now)
    producers = graph.producers()
    nodes = dict(derived.nodes)
    for number, made in derived.nodes.items():
        now = rewriter.now(made.outputs[0])
        if isinstance(now, Var) and now in producers:
            nodes[number] = producers[now]
    pairs = [(leaf, now) for leaf, g in derived.gradients if isinstance(now := rewriter.now(g), Var)]
    return Derived(graph, pairs, cotangents, nodes, derived.seed)


def _does_nothing(instr: Instr) -> bool:
    """Tell whether an instruction is a library's reshape to the same shape."""
    source = instr.inputs[0]
    same = instr.op == "reshape" and isinstance(source, Var) and source.shape == instr.output.shape
    return same and isinstance(instr.where, Origin) and instr.where.inner is not None


# Ops that can be computed on one number instead of an array with equal elements.
_UNIFORM: dict[str, Function] = {
    "negative": operator.neg,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "add": operator.add,
    "subtract": operator.sub,
    "reshape": lambda x: x,
    "broadcast_to": lambda x: x,
}
_TAKES_NUMBERS = frozenset({"multiply", "divide", "add", "subtract"})


def _with_one(graph: Graph, seed: Var) -> Graph:
    """Replace the cotangent of the loss by the number 1, and replace values that depend only on it by numbers."""
    uniform: dict[Operand, Any] = {seed: 1}
    results = set(graph.results())
    constants: dict[Var, Array] = dict(graph.constants)
    instrs = []

    def filled(var: Operand, value: Any) -> Operand:
        assert isinstance(var, Var)
        constants[var] = np.full(var.shape, value, var.dtype)
        return var

    for instr in graph.instrs:
        values = [uniform.get(operand, operand) for operand in instr.inputs]
        left = [value for value in values if isinstance(value, Var)]
        concerned = any(operand in uniform for operand in instr.inputs)
        if concerned and not left and instr.op in _UNIFORM and instr.outputs[0] not in results:
            uniform[instr.output] = _UNIFORM[instr.op](*values)
            continue
        if concerned and not (instr.op in _TAKES_NUMBERS and left and left[0].shape == instr.output.shape):
            values = [filled(x, uniform[x]) if x in uniform else x for x in instr.inputs]
        instrs.append(replace(instr, inputs=tuple(values)) if concerned else instr)
    inputs = tuple(var for var in graph.inputs if var is not seed)
    return Graph(inputs, tuple(instrs), graph.outputs, tuple(constants.items()), graph.updates, graph.name)


# These are shorter to read but not bit-identical.
_FOR_READING = Rules(
    (
        rule("x * reciprocal(y)", "x / y"),
        rule("reciprocal(x) * y", "y / x"),
        rule("x * (n * y ** -1)", "n * x / y"),
        rule("x + x", "2 * x"),
        *SIMPLIFY.listed,
    )
)


@contextmanager
def _tracing() -> Iterator[None]:
    """Make ops on Symbols append to their tracer; no user code runs inside."""
    before = MODE.saved()
    MODE.flags, MODE.lift = MODE.flags | TRACING | RECORDING, lambda *_, **__: None
    try:
        yield
    finally:
        MODE.restore(before)
