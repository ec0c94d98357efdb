"""Readable programs: `glassgrad.backward_source`. The program of a compiled function is in `listing`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.compile.front.calls.captured import Capture, Output
from glassgrad.compile.front.calls.parameters import Args, Kwargs, parameter_names
from glassgrad.compile.front.capture import TRACING_LOCK, capture
from glassgrad.compile.front.finish import is_alive
from glassgrad.compile.front.origin import FORWARD
from glassgrad.compile.front.symbol import Symbol
from glassgrad.compile.ir.evaluate import evaluate
from glassgrad.compile.ir.graph import Graph, Operand, Var
from glassgrad.compile.ir.passes import eliminate_dead
from glassgrad.compile.source import document, torch_fx
from glassgrad.compile.source.differentiate import Derived, Replay, tidy
from glassgrad.compile.source.document import Source
from glassgrad.compile.source.lines import Body, role_of
from glassgrad.compile.source.listing import input_names_of, named_values
from glassgrad.compile.source.naming.sizes import name_batch
from glassgrad.compile.source.rewriting.recognise import Recogniser
from glassgrad.compile.source.rewriting.rollup import ENOUGH, Roller
from glassgrad.compile.source.source import BodyWriter
from glassgrad.engine import tree
from glassgrad.engine.backward import grad
from glassgrad.engine.snapshot import Snapshot
from glassgrad.engine.tensor import Tensor
from glassgrad.ops.core import Array

_ALIKE = 0.01  # largest difference, relative to the largest gradient, that counts as rounding


def backward_source(
    function: Callable[..., Any], *, simplify: bool = False, loops: bool = True
) -> Callable[..., Source]:
    """Return a function that writes `function` and its backward pass as a NumPy program.

    Call it with the arguments of `function`, which must return its loss. The text is a Python file that needs only
    NumPy: forward lines in the user's order and with the user's names, gradients named ``d...``, and each line of the
    backward pass with its forward line and rule in a comment. `Source.save` writes it together with recorded values;
    when the file is run, it checks itself against them.

    Args:
        function: returns a loss, one element, that requires a gradient. A PyTorch module that does so is accepted too
            if glassgrad has all its layers, functions and methods.
        simplify: write gradients in closed form where one is known (softmax with negative log likelihood,
            normalisation); `Source.notes` says which.
        loops: write repeated lines, as of equal layers in a stack, as loops; otherwise write each line.

    Returns:
        a function of the same arguments that returns a `Source`: the text, and arrays by their names in it.

    Raises:
        CompileError: when the function cannot be traced, has no such loss, or uses an op without NumPy text.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.tensor([1.0, 2.0], requires_grad=True)
        >>> def loss(x):
        ...     return ((w - x) ** 2).sum()
        >>> gg.backward_source(loss)(gg.tensor([0.0, 0.0])).data["dw"].tolist()
        [2.0, 4.0]
    """
    if torch_fx.is_foreign(function):
        function = torch_fx.translated(function)

    def write(*args: Any, **kwargs: Any) -> Source:
        args = tuple(map(torch_fx.as_ours, args))
        by_tape = ByTape()
        with TRACING_LOCK:
            captured = capture(
                function,
                args,
                kwargs,
                names=parameter_names(function),
                follow_results=False,
                keep_grads=False,
                after=by_tape,
            )
            arrays = arrays_of(captured, args, kwargs)
        loss = _loss(captured)
        truth = by_tape.numbers(captured.graph, arrays)
        # A function that calls backward() itself may change the gradients afterwards.
        leaves = set(truth) or {leaf for leaf, _ in captured.gradients}
        if not leaves:
            raise errors.SOURCE_NO_LOSS(given=f"{loss.dtype}{list(loss.shape)}")
        instrs = tuple(instr for instr in captured.graph.instrs if role_of(instr) == FORWARD)
        forward = eliminate_dead(Graph(captured.graph.inputs, instrs, (loss,), captured.graph.constants))
        return _Loss(captured.graph.name, forward, loss, leaves, truth, arrays, simplify, loops).source()

    return write


class ByTape:
    """Walks back from the loss during the trace, so that hooks and custom rules are included."""

    def __init__(self) -> None:
        self.gradients: list[tuple[Var, Array]] = []

    def __call__(self, loss: Any) -> Any:
        """Return the loss and its gradients."""
        if not isinstance(loss, Tensor) or math.prod(loss.shape) != 1 or not loss.requires_grad:
            return [loss]
        if loss.node is not None and not is_alive(loss.node):  # the function called backward() itself
            return [loss]
        leaves = [leaf for leaf in _leaves(loss) if isinstance(leaf.array, Symbol)]
        found = grad(loss, leaves, allow_unused=True)
        pairs = [(leaf, g) for leaf, g in zip(leaves, found, strict=True) if g is not None]
        self.gradients = [
            (leaf.array.var, g.array.var if isinstance(g.array, Symbol) else g.array) for leaf, g in pairs
        ]
        return [loss, *(g for _, g in pairs)]

    def numbers(self, graph: Graph, arrays: Mapping[Var, Array]) -> dict[Var, Array]:
        """Compute the gradient of each leaf."""
        if not self.gradients:
            return {}
        values = evaluate(graph, [arrays[var] for var in graph.inputs])
        return {leaf: values[g] if isinstance(g, Var) else g for leaf, g in self.gradients}


def _leaves(loss: Tensor) -> list[Tensor]:
    """Return the leaves of a tape, in the order in which the walk visits them."""
    found: dict[int, Tensor] = {}
    stack: list[Any] = [loss if loss.node is None else loss.node]
    seen = set()
    while stack:
        one = stack.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, Tensor):
            found[id(one)] = one
        else:
            stack += one.parents
    return list(found.values())


def _loss(captured: Capture) -> Var:
    """Return the loss that a function returned, as a value of its graph."""
    result = captured.result[0]
    value = captured.graph.outputs[result.at] if isinstance(result, Output) else None
    if not isinstance(value, Var) or value.size != 1:
        told = f"{value.dtype}{list(value.shape)}" if isinstance(value, Var) else type(result).__name__
        raise errors.SOURCE_NO_LOSS(given=told)
    return value


def arrays_of(captured: Capture, args: Args, kwargs: Kwargs) -> dict[Var, Array]:
    """Return the values of every input, random draws included."""
    values: dict[Var, Array] = {}
    given = tree.every_leaf({"args": args, "kwargs": kwargs})
    for at, var in zip(captured.arguments, captured.graph.inputs, strict=False):
        values[var] = np.array(given[at].array if isinstance(given[at], Tensor) else given[at])
    values.update({one.var: np.array(one.tensor.array) for one in captured.state})
    streams = Snapshot(streams=captured.streams)
    values.update({feed.var: np.array(feed.draw()) for feed in captured.feeds if feed.var is not None})
    streams.restore()
    return values


class _Loss:
    """A forward pass that ends in a loss, and its numbers."""

    entry = "forward_backward"

    def __init__(
        self,
        name: str,
        forward: Graph,
        loss: Var,
        leaves: set[Var],
        truth: Mapping[Var, Array],
        arrays: Mapping[Var, Array],
        simplify: bool,
        loops: bool,
    ) -> None:
        self.simplify, self.loops = simplify, loops
        self.name = name
        self.forward = forward
        self.loss = loss
        self.truth = truth
        self.leaves = [var for var in forward.inputs if var in leaves]
        self.arrays = arrays

    def source(self) -> Source:
        """Return the program."""
        simplify = self.simplify
        recogniser = Recogniser(self.forward, self.arrays) if simplify else None
        replay = Replay(self.forward, self.leaves, None if recogniser is None else recogniser.replace)
        derived = replay.derive(self.loss)
        derived = tidy(derived, () if simplify else named_values(derived.graph), seeded=not simplify)
        read = {var for instr in derived.graph.instrs for var in instr.reads()}
        inputs = [var for var in self.forward.inputs if replay.var_of(var) in read]
        names = input_names_of(self.forward, inputs)
        here = {replay.var_of(var): name for var, name in names.items()}
        assert derived.seed is not None
        body = BodyWriter(derived, {**here, derived.seed: "dloss"}, aliases=not simplify).write()
        found = []
        for rule, match in recogniser.notes if recogniser is not None else ():
            ends = [body.names.get(replay.var_of(var), "a value") for var in (match.result, match.source)]
            found.append((rule, ends[0], ends[1]))
        return self._document(body, names, derived, found)

    def _document(
        self, body: Body, names: dict[Var, str], derived: Derived, found: list[tuple[str, str, str]]
    ) -> Source:
        data = {name: self.arrays[var] for var, name in names.items()}
        data |= {body.names[var]: value for var, value in body.large.items()}
        arguments = list(data)
        gradients = {f"d{body.names[leaf]}": body.names[g] for leaf, g in derived.gradients}
        loss = body.names[_computed(derived.graph.outputs[0])]
        roller = Roller(body, [loss, *gradients.values()], arguments, math.inf if not self.loops else ENOUGH)
        rolled = roller.rolled()
        now = {name: roller.now(variable) for name, variable in gradients.items()}
        inputs = roller.arguments()
        # One rule for all layers, without the index of an entry.
        counts = Counter(
            f"from {roller.now(above).tokens[0]} to {roller.now(below).tokens[0]}: {rule}"
            for rule, above, below in found
        )
        notes = [note if count == 1 else f"{note} ({count} times)" for note, count in counts.items()]
        data.update({name: [data[one] for one in of] for name, of in inputs.items() if of != [name]})
        data.update(self._recorded(names))
        first = {"backward": [] if self.simplify else [f"    dloss = np.ones((), np.{self.loss.dtype.name})"]}
        if self.simplify:
            given = {name: self.arrays[var] for var, name in names.items()}
            own = [names[leaf] for leaf in self.leaves if leaf in names]
            size = name_batch(rolled, given, own, [*body.names.values(), *inputs]) if {*given} <= {*inputs} else ""
            first["forward"] = [f"    {size}"] if size else []
        title = f"The forward and backward pass of {self.name}, written out in NumPy by glassgrad."
        lines = [
            *document.head(title, notes, body),
            *document.signature(self.entry, [*inputs]),
            '    """Return the loss and its gradients."""',
            *document.sections(rolled, first),
            *document.dictionary("gradients", now),
            f"    return {roller.now(loss).code}, gradients",
        ]
        tolerance = 1e-4 if self.loss.dtype.itemsize == 4 else 1e-9
        results = '{"loss": loss, **gradients}'
        main = document.main_text(self.entry, inputs, "loss, gradients", results, [*gradients, "loss"], tolerance)
        return Source("\n".join(lines) + "\n" + main, data, inputs, notes, self.entry)

    def _recorded(self, names: dict[Var, str]) -> dict[str, Array]:
        """Return the tape's loss and gradients, if they agree with those of the forward pass's ops."""
        replay = Replay(self.forward, self.leaves)
        plain = replay.derive(self.loss)
        inputs = [*(self.arrays[var] for var in self.forward.inputs), np.ones((), self.loss.dtype)]
        values = evaluate(plain.graph, inputs)
        gradients = dict(plain.gradients)
        found = {
            leaf: values[gradients[now]] if (now := replay.var_of(leaf)) in gradients else np.zeros(leaf.shape)
            for leaf in self.leaves
        }
        largest = max((float(np.abs(one).max(initial=0.0)) for one in self.truth.values()), default=0.0)
        for leaf, wanted in self.truth.items():
            with np.errstate(all="ignore"):  # the tape's gradients were already non-finite
                off = float(np.nan_to_num(np.abs(found.get(leaf, 0.0) - wanted)).max(initial=0.0))
            if off > _ALIKE * largest:
                raise errors.SOURCE_GRADIENT(what=names.get(leaf) or leaf.name or "an input")
        found.update(self.truth)
        loss = values[_computed(plain.graph.outputs[0])]
        return {"loss": loss, **{f"d{name}": found[var] for var, name in names.items() if var in found}}


def _computed(loss: Operand) -> Var:
    assert isinstance(loss, Var)  # not a number: it depends on parameters
    return loss
