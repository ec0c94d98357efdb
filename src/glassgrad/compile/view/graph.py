"""From a traced call to a drawing's data: nodes with values and cotangents, and the lines of the program."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from glassgrad.base.drawing.graph import Edge, Graph, Line, Node, numbers_of
from glassgrad.compile.front.origin import BACKWARD, FORWARD, MATCH, Origin
from glassgrad.compile.ir.graph import Instr, Operand, Var
from glassgrad.compile.source.lines import role_of
from glassgrad.compile.source.listing import Listing
from glassgrad.compile.source.statements import called_name
from glassgrad.compile.view.groups import numbered
from glassgrad.compile.view.seen import Seen
from glassgrad.ops import formulas
from glassgrad.ops.core import PRIMITIVES, Array, Elementwise

BINS = 24
"""The number of bins in the histogram of each value and each gradient."""
_CALL = 4  # the least number of ops for which a function call gets its own box
_PASSED_ON = frozenset({"1", "g"})
"""Local derivatives of rules that pass a cotangent on unchanged and append no instruction."""


class Maker:
    """Makes the nodes of one trace; cotangents are shown at the nodes and edges of the forward pass.

    Attributes:
        graph: the result.
        at: the nodes that an instruction makes, or whose gradients it computes, by the identity of its origin.
    """

    def __init__(self, seen: Seen, listing: Listing | None) -> None:
        self.seen = seen
        self.listing = listing
        self.program = seen.captured.graph
        name = self.program.name
        self.graph = Graph(name if name.isidentifier() else "step", [], [], dict(seen.kinds))
        self.at: dict[int, list[int]] = {}
        self._index: dict[Var, int] = {}
        self._totals: dict[Var, Array] = {**seen.captured.cotangents, **dict(seen.gradients)}
        self._owners = {total: var for var, total in self._totals.items() if isinstance(total, Var)}
        self._rules: dict[tuple[Instr | None, int | None], Instr] = {}
        self._ops: list[tuple[Instr, list[Edge | None]]] = []
        self._arrays = dict(self.program.constants)
        self._tracked = {one.var for one in seen.captured.state if one.tracks}
        self._kinds = dict.fromkeys(self.program.inputs[: len(seen.captured.arguments)], "input")
        self._kinds |= dict.fromkeys(self._tracked, "parameter")
        self._producers = self.program.producers()
        self._incoming: dict[int, list[int]] = {}
        self._cotangents: dict[int, Array] = {}
        self._flowing = {var for var, _ in seen.gradients} | set(self._totals)
        self._known: dict[int, Array] = {}
        self._missing: dict[int, list[tuple[Edge, Var]]] = {}

    def made(self) -> Graph:
        """Return the graph."""
        last = max((at for at, instr in enumerate(self.program.instrs) if role_of(instr) != FORWARD), default=None)
        for at, instr in enumerate(self.program.instrs):
            if role_of(instr) == FORWARD:
                self._add(instr, late=last is not None and (at > last or self._reads_gradients(instr)))
            else:
                self._note_rule(instr)
        self._add_updates()
        self._send()
        self._gather_calls()
        if self.listing is not None:
            self._add_lines(self.listing)
        return self.graph

    # --- nodes ------------------------------------------------------------------------------------------------

    def _add(self, instr: Instr, *, late: bool) -> None:
        edges = [self._edge(operand) for operand in instr.inputs]
        texts = [self._text(operand) for operand in instr.inputs]
        where = instr.where
        place = where.place if isinstance(where, Origin) else None
        formula = formulas.expression(PRIMITIVES[instr.op], texts, instr.params)
        known = "" if self.listing is None else self.listing.names.get(id(where), "")
        for output in instr.outputs:
            self._index[output] = head = len(self.graph.nodes)
            node = Node("op", instr.op, output.name or known or f"v{output.id}", formula, output.shape)
            node.dtype, node.value = str(output.dtype), numbers_of(self.seen.value(output), BINS)
            node.where, node.source = ("", "") if place is None else (str(place), place.source)
            node.module = (node.source or node.where or "update",) if late else self.seen.modules.get(id(where), ())
            node.root, node.late = output in self.program.outputs[:1], late
            self.graph.nodes.append(node)
            self.at.setdefault(id(where), []).append(head)
            edges = [None if edge is None else replace(edge, head=head) for edge in edges]
            self.graph.edges += filter(None, edges)
            self._incoming[head] = [edge.tail for edge in edges if edge is not None]
        self._ops.append((instr, edges))
        if len(instr.outputs) == 1 and not late:
            if instr.where.records and any(var in self._flowing for var in instr.reads()):
                self._flowing.add(instr.output)
            self._local(instr, edges, texts)

    def _reads_gradients(self, instr: Instr) -> bool:
        """Tell whether an instruction works on gradients, as optimizers do between two backward passes."""
        owners = [self._owner(var) for var in instr.reads()]
        return any(gradient or (at is not None and self.graph.nodes[at].late) for at, gradient in owners)

    def _local(self, instr: Instr, edges: list[Edge | None], texts: list[str]) -> None:
        """Write the local derivatives at the edges that a cotangent passes back along."""
        prim = PRIMITIVES[instr.op]
        made = self.graph.nodes[-1]
        for at, (edge, operand) in enumerate(zip(edges, instr.inputs, strict=True)):
            if edge is None or operand not in self._flowing or instr.output not in self._flowing:
                continue
            edge.local = formulas.derivative(prim, at, texts, made.name)
            rule = prim.vjps[at] if isinstance(prim, Elementwise) and prim.vjps is not None else None
            if rule is not None and not made.shape and self.seen.values:
                args = [self.seen.value(one) for one in instr.inputs]
                with np.errstate(all="ignore"):
                    edge.number = float(rule(np.ones(()), self.seen.value(instr.output), *args, **instr.params))

    def _edge(self, operand: Operand) -> Edge | None:
        """Return the edge from an operand to the next node; None for a number."""
        if not isinstance(operand, Var):
            return None
        owner, gradient = self._owner(operand)
        return None if owner is None else Edge(owner, -1, gradient=gradient)

    def _owner(self, var: Var) -> tuple[int | None, bool]:
        """Return the node of a value, and whether the value is the gradient with respect to that node."""
        if var in self._index:
            return self._index[var], False
        if var in self._owners:
            owner = self._owners[var]
            return self._index[owner] if owner in self._index else self._leaf(owner), True
        instr = self._producers.get(var)
        if instr is None:
            return self._leaf(var), False
        # Part of a gradient belongs to the op whose rule made it.
        made = self.seen.captured.nodes.get(instr.where.node)
        return (None if made is None else self._index.get(made.outputs[0])), True

    def _text(self, operand: Operand) -> str:
        if not isinstance(operand, Var):
            return formulas.number(operand) if isinstance(operand, int | float) else str(operand)
        owner, gradient = self._owner(operand)
        name = "" if owner is None else self.graph.nodes[owner].name
        return f"d{name}" if gradient else name or f"v{operand.id}"

    def _leaf(self, var: Var) -> int:
        drawn = next((feed.label for feed in self.seen.captured.feeds if feed.var is var), "")
        kind = "constant" if var in self._arrays else self._kinds.get(var, "state")
        node = Node(kind, name=var.name or drawn, shape=var.shape, dtype=str(var.dtype))
        node.value = numbers_of(self._arrays[var] if var in self._arrays else self.seen.value(var), BINS)
        node.gradient = self._numbers(self._totals.get(var))
        self._index[var] = len(self.graph.nodes)
        self.graph.nodes.append(node)
        return self._index[var]

    def _add_updates(self) -> None:
        """Append the state updates at the end of a call; gradients that remain are shown at their tensors."""
        for target, value in self.program.updates:
            if (target.name or "").endswith(".grad"):
                continue
            owner, gradient = self._owner(value)
            if owner is None:
                continue
            node = Node("update", name=target.name or "", shape=target.shape, dtype=str(target.dtype), late=True)
            made = self.graph.nodes[owner]
            node.value, node.where, node.source = made.value, made.where, made.source
            if target in self._tracked:
                self._gather(owner, target.name or "")
            node.module = made.module
            self.graph.edges.append(Edge(owner, len(self.graph.nodes), gradient=gradient))
            self.graph.nodes.append(node)

    def _gather_calls(self) -> None:
        """Group the results of one call of a library function, such as a loss, into one module."""
        calls: dict[int, list[int]] = {}
        for instr, _ in self._ops:
            at = self._index[instr.outputs[0]]
            if isinstance(instr.where, Origin) and not self.graph.nodes[at].late:
                calls.setdefault(instr.where.call, []).extend(self._index[output] for output in instr.outputs)
        sizes = Counter(node.module for node in self.graph.nodes)
        origins = {self._index[instr.outputs[0]]: instr.where for instr, _ in self._ops}
        for nodes in calls.values():
            paths = {self.graph.nodes[at].module for at in nodes}
            path = paths.pop()
            if paths or len(nodes) < _CALL or len(nodes) == sizes[path]:
                continue
            where = origins[nodes[0]]
            name = called_name(where.code, where.lasti) or "call"
            inner = next(one for one in numbered(name) if (*path, one) not in self.graph.modules)
            self.graph.modules[*path, inner] = "function"
            for at in nodes:
                self.graph.nodes[at].module = (*path, inner)

    def _gather(self, node: int, name: str) -> None:
        """Group everything that only one parameter's update needs into one module."""
        waiting = [node]
        while waiting:
            made = self.graph.nodes[at := waiting.pop()]
            if made.late and len(made.module) == 1:
                made.module = (*made.module, name)
                self.graph.modules.setdefault(made.module, "update")
                waiting += self._incoming.get(at, ())

    # --- the backward pass ------------------------------------------------------------------------------------

    def _note_rule(self, instr: Instr) -> None:
        """Note the op whose rule an instruction belongs to, and that it is the last of the rule so far."""
        made = self.seen.captured.nodes.get(instr.where.node)
        if made is not None and made.outputs[0] in self._index:
            self.at.setdefault(id(instr.where), []).append(self._index[made.outputs[0]])
        if instr.where.role in (BACKWARD, MATCH):
            self._rules[made, instr.where.argument] = instr

    def _send(self) -> None:
        """Give every node its gradient and every edge its cotangent, the youngest op first."""
        for instr, edges in reversed(self._ops):
            head = self._index[instr.outputs[0]]
            node = self.graph.nodes[head]
            if node.late or len(instr.outputs) != 1:
                continue
            total = self._total(instr.output)
            total = self._cotangents.get(head) if total is None else total
            if total is None and node.root and self._totals and self.seen.values:
                total = np.ones(node.shape)  # where the walk begins
            node.gradient = numbers_of(total, BINS)
            if total is None:
                continue
            for at, (edge, operand) in enumerate(zip(edges, instr.inputs, strict=True)):
                if edge is not None and not edge.gradient and isinstance(operand, Var):
                    self._send_one(edge, operand, self._share(instr, at, operand, edge, total))

        self._send_the_rest()

    def _send_one(self, edge: Edge, operand: Var, share: Array | None) -> None:
        if share is None:
            if edge.local:
                self._missing.setdefault(edge.tail, []).append((edge, operand))
            return
        edge.sent = numbers_of(share)
        before = self._known.get(edge.tail)
        self._known[edge.tail] = share if before is None else before + share
        if self._total(operand) is None:
            self._cotangents[edge.tail] = self._known[edge.tail]

    def _send_the_rest(self) -> None:
        """Give an edge the rest of the gradient, if tracing already folded its rule to a constant."""
        for tail, edges in self._missing.items():
            (edge, operand), *more = edges
            total = self._total(operand)
            if not more and total is not None:
                edge.sent = numbers_of(total - self._known.get(tail, 0.0))

    def _share(self, instr: Instr, at: int, operand: Var, edge: Edge, total: Array) -> Array | None:
        """Return an op's contribution to the gradient of an operand, where the trace contains it."""
        made = self._rules.get((instr, at), self._rules.get((instr, None)))
        if made is not None and made.outputs[0].shape == operand.shape:
            return self.seen.value(made.outputs[0])
        alone = made is None and np.shape(total) == operand.shape
        return total if alone and edge.local in _PASSED_ON else None

    def _total(self, var: Var) -> Array | None:
        found = self._totals.get(var)
        return self.seen.value(found) if isinstance(found, Var) else found

    def _numbers(self, total: Array) -> Any:
        return numbers_of(self.seen.value(total) if isinstance(total, Var) else total, BINS)

    # --- lines ------------------------------------------------------------------------------------------------

    def _add_lines(self, listing: Listing) -> None:
        for number, text in enumerate(str(listing.source).rstrip("\n").split("\n")):
            origins = listing.origins.get(number, ())
            nodes = sorted({node for origin in origins for node in self.at.get(id(origin), ())})
            backward = any(origin.role != FORWARD for origin in origins)
            self.graph.lines.append(Line(text, nodes, backward))
