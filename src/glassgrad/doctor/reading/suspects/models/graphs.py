"""Suspects about graphs: who adds up what of whom, and whether a node keeps its own features."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.names import named
from glassgrad.doctor.reading.nodes import ident, is_op, names_in, within
from glassgrad.doctor.reading.program import Function, Program, constant
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import look_at, suspects, suspects_each
from glassgrad.doctor.reading.suspects.lookup import assignments, mentions_any, source, stem_of, text
from glassgrad.doctor.reading.values import axis_of

_ADJACENCY = re.compile(r"^_?(adj\w*|a|a_hat|A\w*|adjacency|graph|laplacian|L)$")
_EDGES = re.compile(r"^(edges?|edge_?(index|list|idx))$")
_SCATTERS = named("index_add_ index_add scatter_add_ scatter_add scatter scatter_mean scatter_sum")
_PRODUCTS = named("matmul mm bmm spmm einsum")
_SIZES = named("size shape dim device dtype new_zeros new_full new_empty zeros_like empty_like full_like len numel")
_LOOPS = re.compile(r"\beye\(|self_loop|fill_diagonal|identity\(|\.diag|(cat|stack)\(.*arange|loop_index")


@suspects("neighbours added up")
def _neighbours(program: Program) -> Iterator[Spot]:
    """Find `adj @ h` and sums over edges in a program that never divides by degrees, or never adds self loops."""
    whole = source(program)
    divides, loops = _divides(program), _LOOPS.search(whole)
    eyes = [one for one in program.every(ast.Assign) if is_op(one.value, ast.Add) and _LOOPS.search(text(one))]
    filled = [one for one, _, _ in assignments(program) if isinstance(one, ast.Subscript) or len(ident(one)) > 1]
    made = any(_ADJACENCY.match(stem_of(one)) for one in filled)
    for node in program.nodes:
        left: ast.expr | None = node.left if is_op(node, ast.MatMult) else None
        if isinstance(node, ast.Call) and len(node.args) > 1 and text(node.func).split(".")[-1] in _PRODUCTS:
            left = node.args[0]
        masks = within(node, ast.Compare) if made and program.called(node) in {"masked_fill", "where"} else []
        left = masks[0].left if masks else left
        name = ident(left)
        owner = program.owner(node)
        graph = _ADJACENCY.match(name) and (len(name) > 1 or re.search("gcn|graph|gnn", whole, re.IGNORECASE))
        normal = bool(masks) or divides  # a softmax over the neighbours has a sum of 1
        if graph and owner is not None and owner.is_module and not (normal and loops) and isinstance(node, ast.expr):
            lacks = "a division by the degrees" if not normal else "self loops, by which a node keeps its own features"
            told = f"{shown(node)} in line {node.lineno}" if eyes else shown(node)
            yield spot(eyes[0] if eyes else node, node, text=told, lacks=lacks)
    if not loops:
        yield from _without_own(program)


def _divides(program: Program) -> bool:
    """Tell whether a program divides by the number of neighbours, or prepares to: not in a text that it prints."""
    if mentions_any(
        program, re.compile(r"^deg(ree)?s?(_|$)|_deg(ree)?s?$|normali[sz]e|norm_adj|adj_norm|rsqrt|^d_inv")
    ):
        return True
    if re.search(r"pow\(-|\*\* \(?-", source(program)):
        return True
    printed = {inner for call in program.calls_of("print") for inner in ast.walk(call)}
    sums = [one for one in program.calls if program.called(one) == "sum" and one not in printed]
    return any(_ADJACENCY.match(stem_of(program.operand(one))) for one in sums)


def _without_own(program: Program) -> Iterator[Spot]:
    """Yield the edges of a program whose layers see only neighbours; a sum over edges if it does not make them."""
    made = program.every(ast.Assign)
    made = [node for node in made if isinstance(node.value, ast.Call) and _EDGES.match(text(node.targets[0]))]
    for owner in program.modules():
        forward = owner.methods.get("forward")
        calls = [one for one in within(owner.node, ast.Call) if program.function(one) is forward]
        sums = [one for one in calls if _is_sum(program, one)]
        if forward is not None and sums and not _keeps_own(program, forward) and not _joined_outside(program):
            lacks = "self loops, by which a node keeps its own features"
            told = f"here the edges are made: {shown(sums[0])}" if made else shown(sums[0])
            yield spot(made[0] if made else sums[0], *sums, text=told, lacks=lacks)
            return


def _is_sum(program: Program, node: ast.Call) -> bool:
    """Tell whether a call adds up at one end of the edges what it reads at the other."""
    if program.called(node) not in _SCATTERS:
        return False
    return len({end for given in node.args for end in _ends_in(given)}) > 1


def _ends_in(node: ast.AST) -> set[str]:
    """Return the ends of edges that an expression names: `src`, and `edge_index[0]`."""
    parts = [one for one in within(node, ast.Subscript) if _EDGES.match(text(one.value))]
    return {one for one in names_in(node) if _is_end(one)} | {text(one) for one in parts}


def _keeps_own(program: Program, forward: Function) -> bool:
    """Tell whether a layer joins the features of a node with those of its neighbours."""
    own = {one.arg for one in forward.args.args[1:] if not _is_end(one.arg) and not re.search("edge|adj", one.arg)}
    for statement in (one for one in ast.walk(forward) if isinstance(one, ast.Assign | ast.Return | ast.AugAssign)):
        reads = [one for one in within(statement, ast.Name) if one.id in own]
        reads = [one for one in reads if isinstance(one.ctx, ast.Load) and not _is_message(program, one)]
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if reads and isinstance(statement, ast.Assign) and not _joins(program, statement.value):
            own |= {one.id for target in targets for one in within(target, ast.Name)}
        elif reads:
            return True
    return False


def _is_message(program: Program, node: ast.Name) -> bool:
    """Tell whether a use of features reads them at an end of the edges, adds them up, or takes only their size."""
    for outer in program.outward(node):
        if isinstance(outer, ast.stmt):
            return False
        sized = isinstance(outer, ast.Attribute) and outer.attr in _SIZES
        if sized or program.called(outer) in _SIZES | _SCATTERS:
            return True
        if isinstance(outer, ast.Subscript) and _ends_in(outer.slice):
            return True
    return False


def _joins(program: Program, value: ast.expr) -> bool:
    """Tell whether an expression adds or joins several values."""
    return any((is_op(one, ast.Add)) or program.called(one) in {"cat", "concat"} for one in ast.walk(value))


def _joined_outside(program: Program) -> bool:
    """Tell whether a model adds what a layer gets to what the layer makes of it, as in `x + conv(x, edges)`."""
    sums = [one for one in program.nodes if is_op(one, ast.Add)]
    over = re.compile(r"\(\w+, (self\.)?(edge\w*|adj\w*|src|senders)\b")
    return any(over.search(text(one)) and names_in(one.left) & (names_in(one.right) - {"self"}) for one in sums)


@suspects_each("softmax over all edges", ast.Call)
def _over_edges(program: Program, call: ast.Call) -> Iterator[Spot]:
    """Find `softmax(score, dim=0)` of scores of edges, in a program that adds up messages at the nodes."""
    given = program.operand(call)
    along = axis_of(program, call)
    if program.called(call) != "softmax" or constant(along) != 0 or given is None or program.loops(call):
        return
    held = [one.node for one in flow(program).ends(given)]
    if any(program.called(one) in _SCATTERS for one in program.calls) and any(_gathers(program, one) for one in held):
        yield look_at(call)


def _gathers(program: Program, node: ast.expr) -> bool:
    """Tell whether a value is made of what stands at the ends of edges: `(a_src[src] + a_dst[dst]).relu()`."""
    parts = [node, *(it.node for one in within(node, ast.Name) for it in flow(program).ends(one))]
    for one in (inner for part in parts for inner in within(part, ast.Subscript)):
        bound = program.bound(one.slice) if isinstance(one.slice, ast.Name) else None
        pair = bound is not None and bound.item is not None and _EDGES.match(text(bound.value))
        if pair or (isinstance(one.slice, ast.Name) and _is_end(one.slice)) or _ends_in(one.slice):
            return True
    return False


@suspects_each("messages return to their sender", ast.Call)
def _returned(program: Program, call: ast.Call) -> object:
    """Find `out.index_add_(0, src, h[src])`, and a scatter by the index that gathered the messages."""
    if text(call.func).split(".")[-1] not in _SCATTERS:
        return False
    ends = [one.id for given in call.args for one in within(given, ast.Name) if _is_end(one)]
    to = ends[0] if ends else ""
    held = [program.written(one) for one in call.args]
    parts = [one for value in held if value is not None for one in within(value, ast.Subscript)]
    return to and any(text(one.slice) == to for one in parts) and look_at(call, name=to)


def _is_end(node: ast.Name | str) -> bool:
    """Tell whether a name is that of one end of the edges."""
    name = node if isinstance(node, str) else node.id
    return bool(re.match(r"^(src|dst|row|col|source|target|sender|receiver|senders|receivers)$", name))


_EDGE_LISTS = re.compile(r"^_?(all_|batch(ed)?_|new_)?(edges?|edge_?(index|indices|idx|list)|eis?)(_list|s|es)?$")
_CONCATENATES = named("cat concat concatenate hstack vstack")
_WITHIN = named("rel rels relation relations etype edge_type edge_types type types")
"""Names of the kinds of edges of one graph."""


@suspects_each("graphs joined without an offset", ast.Call)
def _without_offset(program: Program, joined: ast.Call) -> Iterator[Spot]:
    """Find edges of several graphs that are joined as they are, beside the features of their nodes."""
    given = joined.args[0] if program.called(joined) in _CONCATENATES and joined.args else None
    function = program.function(joined)
    added = any(is_op(one, ast.Add) for one in program.outward(joined))
    others = [one for one in program.calls if program.called(one) in _CONCATENATES and one is not joined]
    beside = [one for one in others if program.function(one) is function and one.args and _is_of_nodes(one.args[0])]
    if given is None or not _EDGE_LISTS.match(_listed(given)) or not beside or added:
        return
    for edges, around in _joined_edges(program, joined, given):
        if not _WITHIN & names_in(around) and not _is_counted_on(around, edges):
            yield spot(edges, joined, text=shown(program.statement(edges)), joined=shown(joined))


def _listed(given: ast.expr) -> str:
    """Return the name of the list that a call joins, or that of what a comprehension collects."""
    inner = given.elt if isinstance(given, ast.ListComp | ast.GeneratorExp) else given
    return inner.id if isinstance(inner, ast.Name) else inner.attr if isinstance(inner, ast.Attribute) else ""


def _is_of_nodes(given: ast.expr) -> bool:
    name = _listed(given)
    return bool(name) and not re.search(r"edge|adj|label|weight|attr", name)


def _joined_edges(program: Program, joined: ast.Call, given: ast.expr) -> Iterator[tuple[ast.expr, ast.AST]]:
    """Yield the edges of each graph that a call joins, with the loop or comprehension that collects them."""
    if isinstance(given, ast.ListComp | ast.GeneratorExp):
        yield given.elt, given
        return
    for call in program.calls_of(".append"):
        loop = next(iter(program.loops(call)), None)
        mine = isinstance(call.func, ast.Attribute) and text(call.func.value) == text(given)
        if mine and call.args and loop is not None and program.function(call) is program.function(joined):
            plain = isinstance(call.args[0], ast.Name | ast.Attribute | ast.Subscript)
            if plain and isinstance(loop, ast.For):
                yield call.args[0], loop


def _is_counted_on(around: ast.AST, edges: ast.expr) -> bool:
    """Tell whether a loop adds something to the edges of a graph, or gets them in a call."""
    name = getattr(edges, "id", "")
    for one in ast.walk(around):
        adds = is_op(one, ast.Add)
        if adds and isinstance(one, ast.BinOp) and text(edges) in {text(one.left), text(one.right)}:
            return True
        targets = one.targets if isinstance(one, ast.Assign) else [one.target] if isinstance(one, ast.AugAssign) else []
        if any(name and name in {text(it), *names_in(it)} for it in targets):
            return True
    return isinstance(edges, ast.BinOp | ast.Call)
