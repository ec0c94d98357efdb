"""The arguments of a traced call: leaves that are data become inputs, the others are unchanged."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from glassgrad.compile.front.calls.guards import hooks_of
from glassgrad.compile.front.calls.parameters import Args, Kwargs
from glassgrad.compile.front.state.edges import is_constant
from glassgrad.compile.front.state.iterators import StandIn, is_iterator
from glassgrad.compile.front.symbol import Symbol
from glassgrad.compile.front.tracer import Tracer
from glassgrad.compile.ir.graph import Var
from glassgrad.engine import tree
from glassgrad.engine.tensor import Tensor, make
from glassgrad.ops.core import Array


class Arguments:
    """How a trace treats each argument.

    Attributes:
        moving: positions of floats that are inputs.
        vars: the input of each leaf that is data, by its position among all leaves.
        twins: the traced tensors that represent leaves.
        state: leaves that are also state of the function.
        inner: leaves that are results of ops outside the function.
        holders: the object that holds each input's current value.
    """

    def __init__(self, names: Sequence[str], moving: Collection[int] = ()) -> None:
        self.names = names
        self.moving = moving
        self.vars: dict[Var, int] = {}
        self.twins: dict[int, int] = {}
        self.state: list[tuple[int, Tensor]] = []
        self.inner: dict[int, Tensor] = {}
        self.holders: dict[Var, Array] = {}

    def name_of(self, path: tree.Path) -> str:
        first, *rest = path[1:]
        name = self.names[first] if path[0] == "args" and first < len(self.names) else str(first)
        name = name if name.isidentifier() else f"arg{name}"
        return "_".join([name, *(str(part) for part in rest)])

    def static(self, args: Args, kwargs: Kwargs) -> dict[str, object]:
        """Return the arguments that are not data: models, optimizers, options."""
        found: dict[str, object] = {}

        def collect(leaf: object, path: tree.Path) -> object:
            if not is_data(leaf) and not is_constant(leaf):
                found[self.name_of(path)] = leaf
            return leaf

        tree.map_tree(collect, {"args": args, "kwargs": kwargs})
        return found

    def traced(self, tracer: Tracer, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
        """Return the arguments with data replaced by inputs."""
        count = -1
        shared: dict[int, Tensor] = {}

        def replace(leaf: object, path: tree.Path) -> object:
            nonlocal count
            count += 1
            if isinstance(leaf, Tensor):
                if type(leaf.array) is Symbol:  # a parameter passed as an argument: it is state
                    self.state.append((count, leaf))
                    return leaf
                if id(leaf) not in shared:
                    shared[id(leaf)] = self._tensor(tracer, leaf, count, path)
                return shared[id(leaf)]
            if isinstance(leaf, np.ndarray):
                symbol = tracer.argument(leaf, self.name_of(path))
                self.vars[symbol.var] = count
                self.holders[symbol.var] = symbol
                return symbol
            if count in self.moving and type(leaf) is float:
                symbol = tracer.argument(np.empty((), np.float64), self.name_of(path), weak=True)
                self.vars[symbol.var] = count
                return symbol
            return StandIn(leaf, self.name_of(path)) if is_iterator(leaf) else leaf

        whole = tree.map_tree(replace, {"args": args, "kwargs": kwargs})
        return whole["args"], whole["kwargs"]

    def _tensor(self, tracer: Tracer, leaf: Tensor, count: int, path: tree.Path) -> Tensor:
        symbol = tracer.argument(leaf.array, self.name_of(path))
        self.vars[symbol.var] = count
        twin = make(symbol, None, leaf._tracks)
        if hooks_of(leaf):
            twin._extra = {key: list((leaf._extra or {}).get(key, ())) for key in ("hooks", "after")}
        self.twins[id(twin)] = count
        if leaf.node is not None:
            self.inner[count] = leaf
        self.holders[symbol.var] = twin
        return twin


def is_data(leaf: object) -> bool:
    """Tell whether an argument is data, i.e. an input of the program instead of a constant of the function."""
    return isinstance(leaf, Tensor | np.ndarray)
