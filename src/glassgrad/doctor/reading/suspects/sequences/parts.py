"""What suspects about sequences look at: calls of recurrent layers and their results, places in a subscript, words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.names import named
from glassgrad.doctor.reading.nodes import Kind, indices, target_of
from glassgrad.doctor.reading.program import Program, argument, constant, is_given
from glassgrad.doctor.reading.suspects.lookup import source, text
from glassgrad.doctor.reading.values import RECURRENT, layer, op

CELLS = frozenset({"RNNCell", "LSTMCell", "GRUCell"})
TRANSFORMERS = named(
    "Transformer TransformerEncoder TransformerDecoder TransformerEncoderLayer TransformerDecoderLayer"
)
_ATTENDING = named("Transformer TransformerEncoderLayer TransformerDecoderLayer MultiheadAttention")
_SAME = named("contiguous float to dropout relu tanh layer_norm pad_packed_sequence detach clone")
_KEEPING = named("Dropout LayerNorm ReLU Tanh GELU Identity RMSNorm")
_TURNED = re.compile(r"transpose\(|permute\(|swapaxes\(|\.mT\b|\.T\b|rearrange\(|einsum\(|movedim\(")


@dataclass(frozen=True)
class Run:
    """A call of a recurrent layer: the call, the call that makes the layer, and its results.

    Attributes:
        outputs: the variables that hold the outputs of all steps.
        hidden: the texts of expressions that stand for the final states.
    """

    call: ast.Call
    made: ast.Call
    name: str
    around: ast.AST
    batch_first: bool | None
    both: bool
    outputs: frozenset[str]
    hidden: frozenset[str]

    @property
    def stacked(self) -> bool:
        """Whether the layer may consist of several layers."""
        given = argument(self.made, "num_layers", 2)
        return given is not None and constant(given) != 1


def flag(program: Program, call: ast.Call, name: str, place: int = -1) -> bool | None:
    """Return a truth value that a call gets, False without one; None if it is unknown."""
    given = argument(call, name, place)
    if given is None:
        return None if is_given(call, name, place) else False
    held = {constant(one.node) if not one.path else None for one in flow(program).ends(given)}
    value = held.pop() if len(held) == 1 else None
    return value if isinstance(value, bool) else None


def runs(program: Program) -> list[Run]:
    """Return the calls of recurrent layers of the library."""
    found = program.memo.get("runs")
    if not isinstance(found, list):
        found = program.memo["runs"] = [one for call in program.calls if (one := _run(program, call)) is not None]
    return found


def firsts(program: Program) -> set[bool | None]:
    """Return whether the layers of a script take the batch first: True, False, None for those that do not tell."""
    found = {one.batch_first for one in runs(program)}
    return found | {flag(program, one, "batch_first") for one in program.calls if program.called(one) in _ATTENDING}


def _run(program: Program, call: ast.Call) -> Run | None:
    held = layer(program, call.func)
    if held is None or held.owner is not None or held.name not in RECURRENT or not call.args:
        return None
    around = program.around(call)
    outputs, hidden = _results(program, call, held.name)
    first = flag(program, held.call, "batch_first", 4)
    both = flag(program, held.call, "bidirectional", 6) is True
    return Run(call, held.call, held.name, around, first, both, frozenset(_passed(program, call, outputs)), hidden)


def _results(program: Program, call: ast.Call, name: str) -> tuple[set[str], frozenset[str]]:
    statement, outer = program.statement(call), program.parents.get(call)
    target = target_of(statement)
    if target is None or not isinstance(statement, ast.Assign):
        return set(), frozenset()
    if isinstance(outer, ast.Subscript) and outer is statement.value and constant(outer.slice) == 0:
        return {text(target)}, frozenset()
    if isinstance(outer, ast.Subscript) and constant(outer.slice) == 1:
        said = text(target)
        inner = program.parents.get(outer)
        whole = isinstance(inner, ast.Subscript) and inner is statement.value and constant(inner.slice) == 0
        if outer is statement.value or whole:
            return set(), frozenset({said if whole or name != "LSTM" else f"{said}[0]"})
    if outer is not statement or not isinstance(target, ast.Tuple) or len(target.elts) != 2:
        return set(), frozenset()
    first, second = target.elts
    if isinstance(second, ast.Tuple):
        return {text(first)}, frozenset({text(second.elts[0])})
    said = text(second)
    return {text(first)}, frozenset({f"{said}[0]" if name == "LSTM" else said})


def _passed(program: Program, call: ast.Call, names: set[str]) -> set[str]:
    """Return the variables that get the outputs through layers and calls that keep their axes."""
    found = set(names)
    for node in inside(program, program.around(call), ast.Assign):
        if node.lineno > call.lineno and stems_from(program, node.value, found):
            target = node.targets[0]
            found.add(text(target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target))
    return found


def stems_from(program: Program, node: ast.expr, names: set[str] | frozenset[str]) -> bool:
    """Tell whether an expression is one of some variables, behind calls that keep its axes."""
    for _ in range(6):
        if text(node) in names:
            return True
        if isinstance(node, ast.Subscript) and constant(node.slice) == 0 and isinstance(node.value, ast.Call):
            node = node.value
        if not isinstance(node, ast.Call):
            return False
        inner = kept(program, node)
        if inner is None:
            return False
        node = inner
    return False


def kept(program: Program, call: ast.Call) -> ast.expr | None:
    """Return the operand of a call that keeps the axes of it; None for other calls."""
    held = layer(program, call.func)
    if held is not None:
        return call.args[0] if held.name in _KEEPING and call.args else None
    name, operand = op(program, call)
    if name in _SAME:
        return operand
    text = program.names.full(call.func)
    return call.args[0] if text.endswith("pad_packed_sequence") and call.args else None


def inside(program: Program, around: ast.AST, *kinds: type[Kind]) -> Iterator[Kind]:
    """Yield the nodes of some kinds in a function or a module, in their order, without those of inner functions."""
    for node in ast.walk(around):
        if isinstance(node, kinds) and program.around(node) is around:
            yield node


def is_whole(node: ast.expr) -> bool:
    """Tell whether a part of a subscript is `:`."""
    return isinstance(node, ast.Slice) and node.lower is None and node.upper is None and node.step is None


def pick(node: ast.Subscript) -> tuple[int, int] | None:
    """Return the axis and the index of `x[i]` or `x[:, i]`, if other axes stay whole; None for another subscript."""
    parts = indices(node)
    at = next((at for at, one in enumerate(parts) if not is_whole(one)), len(parts))
    index = constant(parts[at]) if at < len(parts) else None
    whole = isinstance(index, int) and not isinstance(index, bool) and all(is_whole(one) for one in parts[at + 1 :])
    return (at, index) if whole and isinstance(index, int) else None


def picks(program: Program, one: Run) -> Iterator[tuple[ast.Subscript, int, int]]:
    """Yield the subscripts that take one place of the outputs of a recurrent layer, each with its axis and index."""
    yield from picks_of(program, one.around, one.call, one.outputs)


def picks_of(
    program: Program, around: ast.AST, call: ast.Call, names: frozenset[str]
) -> Iterator[tuple[ast.Subscript, int, int]]:
    """Yield the subscripts that take one place of some variables behind a call, each with its axis and index."""
    for node in inside(program, around, ast.Subscript):
        if isinstance(node.ctx, ast.Load) and node.lineno >= call.lineno:
            found = pick(node)
            if found is not None and stems_from(program, node.value, names):
                yield node, *found


def turns(node: ast.AST) -> bool:
    """Tell whether a part of a script exchanges axes."""
    return bool(_TURNED.search(text(node)))


def says(program: Program, pattern: str) -> bool:
    """Tell whether a script has some text outside of comments."""
    return bool(re.search(pattern, source(program)))


def extra(program: Program, call: ast.Call, name: str) -> ast.expr | None:
    """Return the argument behind the operand, by its name or its place."""
    return argument(call, name, 1 if program.names.full(call.func) else 0)


def dotted_in(*nodes: ast.AST) -> frozenset[str]:
    """Return the variables and attributes `self.x` that some nodes use, as text."""
    parts = [one for node in nodes for one in ast.walk(node)]
    return frozenset(text(one) for one in parts if isinstance(one, ast.Name | ast.Attribute))


def stored_in(*nodes: ast.AST) -> frozenset[str]:
    """Return the variables and attributes that statements in some nodes assign."""
    parts = [one for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name | ast.Attribute)]
    return frozenset(text(one) for one in parts if isinstance(one.ctx, ast.Store))
