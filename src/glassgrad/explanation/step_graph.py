"""The program of a compiled function as the data of a drawing; ops from the same user line form a module."""

from __future__ import annotations

from typing import Any

from glassgrad.base import provenance
from glassgrad.base.drawing.graph import Edge, Graph, Node, Path, numbers_of
from glassgrad.compile.ir.graph import Graph as Program
from glassgrad.compile.ir.graph import Instr, Var
from glassgrad.ops import formulas
from glassgrad.ops.core import PRIMITIVES


def graph_of_step(name: str, program: Program) -> Graph:
    """Return the instructions of a program with the user's lines; a program has no values."""
    maker = _Maker(program)
    for instr in program.instrs:
        maker.add(instr)
    maker.finish()
    graph = Graph(name, maker.nodes, maker.edges, maker.kinds)
    graph.place_leaves()
    graph.notes.append("A compiled program: forward pass, backward pass and updates, after all passes of the compiler.")
    return graph


class _Maker:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.kinds: dict[Path, str] = {}
        self.index: dict[Var, int] = {}
        self._line: tuple[str, str] = ("", "")
        self._group: Path = ()
        self._given = dict.fromkeys(program.inputs, "input") | {var: "constant" for var, _ in program.constants}
        self._arrays = dict(program.constants)
        written = {var for var, _ in program.updates}
        self._given |= {var: "parameter" for var in program.inputs if var in written}

    def add(self, instr: Instr) -> None:
        where, source = _line(instr)
        if (where, source) != self._line or not self._group:
            self._line = where, source
            self._group = (self._title(where, source),)
            self.kinds[self._group] = where
        tails = [self._operand(operand) for operand in instr.inputs]
        texts = [self._text(operand) for operand in instr.inputs]
        for output in instr.outputs:
            self.index[output] = head = len(self.nodes)
            formula = formulas.expression(PRIMITIVES[instr.op], texts, instr.params)
            root = output in self.program.outputs
            node = Node("op", instr.op, output.name or "", formula, output.shape, str(output.dtype), where=where)
            node.source, node.module, node.root = source, self._group, root
            self.nodes.append(node)
            self.edges += [Edge(tail, head) for tail in tails]

    def _title(self, where: str, source: str) -> str:
        title = source or where or "program"
        count = sum(path[0] == title or path[0].startswith(f"{title}, part ") for path in self.kinds)
        return title if not count else f"{title}, part {count + 1}"

    def _text(self, operand: Any) -> str:
        return (operand.name or f"v{operand.id}") if isinstance(operand, Var) else formulas.number(operand)

    def _operand(self, operand: Any) -> int:
        if not isinstance(operand, Var):
            self.nodes.append(Node("constant", value=numbers_of(operand)))
            return len(self.nodes) - 1
        if operand not in self.index:
            kind = self._given.get(operand, "input")
            node = Node(kind, name=operand.name or "", shape=operand.shape, dtype=str(operand.dtype))
            if operand in self._arrays:
                node.value = numbers_of(self._arrays[operand])
            self.index[operand] = len(self.nodes)
            self.nodes.append(node)
        return self.index[operand]

    def finish(self) -> None:
        """Append the writes at the end of a call."""
        for target, value in self.program.updates:
            tail = self._operand(value)
            self.nodes.append(Node("update", name=target.name or "", shape=target.shape, dtype=str(target.dtype)))
            self.edges.append(Edge(tail, len(self.nodes) - 1))
            self.nodes[-1].module = self.nodes[tail].module


def _line(instr: Instr) -> tuple[str, str]:
    origin = instr.where
    if origin is None or not hasattr(origin, "code"):
        return "", ""
    place = provenance.resolve(origin.code, origin.lasti)
    return f"{provenance.shorten(place.file)}:{place.line}", place.source
