"""A compiled function as a readable program, and the instructions that each of its lines was written from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from glassgrad.compile.front.calls.captured import Capture
from glassgrad.compile.front.origin import FORWARD, Origin
from glassgrad.compile.ir.graph import Graph, Instr, Var
from glassgrad.compile.ir.passes import eliminate_dead
from glassgrad.compile.source import document
from glassgrad.compile.source.differentiate import Derived, tidy
from glassgrad.compile.source.document import Source
from glassgrad.compile.source.functions import is_defined
from glassgrad.compile.source.lines import Body, Line, role_of
from glassgrad.compile.source.naming.hints import drawn_hint
from glassgrad.compile.source.naming.names import input_names
from glassgrad.compile.source.rewriting.rollup import Roller
from glassgrad.compile.source.rewriting.runs import assigned, forward_runs
from glassgrad.compile.source.source import BodyWriter

_LONG = 90  # characters; a longer list of written state is left out of the docstring


@dataclass
class Listing:
    """A readable program, and what its lines stand for.

    Instructions are identified by the identity of their origins: every pass keeps the origin, and each instruction of a
    trace has its own object.

    Attributes:
        source: the program.
        origins: the origins of the instructions that a line computes, by line number from 0.
        inputs: the names of inputs.
        names: the names of other values before lines are rolled up into loops, by the identity of their origins.
    """

    source: Source
    origins: dict[int, tuple[Origin, ...]]
    inputs: dict[Var, str]
    names: dict[int, str]


def step_source(captured: Capture) -> Source:
    """Return a compiled function as a readable program that writes its state in place."""
    return listing_of(captured).source


def listing_of(captured: Capture, gradients: Sequence[tuple[Var, Var]] | None = None) -> Listing:
    """Return a traced function as a readable program; `gradients` lists the gradients among its results."""
    graph = eliminate_dead(captured.unwatched)
    pairs = list(captured.gradients if gradients is None else gradients)
    derived = tidy(Derived(graph, pairs, captured.cotangents, captured.nodes), named_values(graph))
    names = input_names_of(graph, graph.inputs)
    writer = BodyWriter(derived, names)
    body = writer.write()
    outputs = [body.names.get(out, "None") for out in derived.graph.outputs if isinstance(out, Var)]
    roller = Roller(body, outputs)
    sections = document.placed_sections(roller.rolled(), {})
    head = _head(captured, graph, names, body)
    returned = ", ".join(roller.now(one).code for one in outputs) if outputs else "None"
    lines = [*head, *(text for text, _ in sections), f"    return {returned}", ""]
    first = "\n".join(head).count("\n") + 1
    inside = _instructions(writer)
    origins = {
        first + at: tuple(origin for one in line.of for origin in inside.get(one, ()))
        for at, (_, line) in enumerate(sections)
        if line is not None and line.of
    }
    entry = _entry(graph)
    arguments = [*names.values(), *(body.names[var] for var in body.large)]
    known = {
        id(instr.where): body.names[instr.outputs[0]]
        for instr in derived.graph.instrs
        if instr.where is not None and instr.outputs[0] in body.names
    }
    return Listing(Source("\n".join(lines), {}, arguments, (), entry), origins, names, known)


def _head(captured: Capture, graph: Graph, names: dict[Var, str], body: Body) -> list[str]:
    """Return everything above the first section."""
    slots = {one.var for one in captured.state if one.var.name and one.var.name.endswith(".grad")}
    written = sorted(names[target] for target, _ in graph.updates if target not in slots)
    notes = [f"writes to {', '.join(written)}"] if written else []
    title = f"The compiled function {graph.name}, written out in NumPy by glassgrad."
    return [
        *document.head(title, [], body),
        *document.signature(_entry(graph), [*names.values(), *(body.names[var] for var in body.large)]),
        f'    """Return the results{"; " + notes[0] if notes else ""}."""'
        if len(str(notes)) < _LONG
        else '    """Return the results; state is written to in place."""',
    ]


def _entry(graph: Graph) -> str:
    return graph.name if graph.name.isidentifier() and not is_defined(graph.name) else "step"


def _instructions(writer: BodyWriter) -> dict[Line, list[Origin]]:
    """Return the origins of the instructions that a line computes, including those inside its expression."""
    found: dict[Line, list[Origin]] = {}
    for instr, line in writer.line_of.items():
        if isinstance(instr.where, Origin):
            found.setdefault(line, []).append(instr.where)
    for line in writer.body.lines:  # the value that a line writes back may have an earlier line of its own
        if line.instr is not None and isinstance(line.instr.where, Origin) and line not in found:
            found[line] = [line.instr.where]
    return found


def input_names_of(graph: Graph, inputs: Sequence[Var]) -> dict[Var, str]:
    """Return names for inputs: state and arguments keep theirs, random numbers get the user's names for them."""
    users = graph.users()
    paths = [var.name or drawn_hint(var, users.get(var, ())) for var in inputs]
    return dict(zip(inputs, input_names(paths), strict=True))


def named_values(graph: Graph) -> list[Var]:
    """Return the forward values that a statement of the user's assigns to a name."""
    instrs: list[Instr] = [instr for instr in graph.instrs if role_of(instr) == FORWARD]
    return [var for run in forward_runs(instrs) for var in assigned(run, {})]
