"""Where the inputs and targets of a training come from."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from glassgrad.doctor.reading.chains import REORDERING, Chain, chain
from glassgrad.doctor.reading.flow import Value, flow
from glassgrad.doctor.reading.nodes import callee_of, indices, is_op, mentions, method_of, object_of, of_self, within
from glassgrad.doctor.reading.origins.asked import Asked, Origin, made
from glassgrad.doctor.reading.program import LOOPS, Program

_TRANSFORMS = frozenset({"__call__", "__getitem__", "forward"})
_SORTS = frozenset({"argsort", "sort", "sorted", "lexsort", "sort_values"})
_WHOLE = frozenset({"long", "int"})
_MOST = 200
_SCALED = frozenset({"held-out inputs of another scale"})


def targets(asked: Asked) -> Iterator[Origin]:
    """Yield where the targets are made."""
    yield from made("the targets are made", asked.targets())


def alike(asked: Asked) -> Iterator[Origin]:
    """Yield where the targets are made, and where what a function of the script made becomes whole numbers."""
    way = asked.targets()
    yield from made("the targets are made", way)
    ends = {one.node.lineno for one in way.ends}
    casts = [one.node for one in way.values if method_of(one.node) in _WHOLE and one.node.lineno not in ends]
    whole = [one for one in casts if callee_of(object_of(one)) in asked.program.functions]
    if len(ends) == 1 and whole:
        yield Origin("they become whole numbers", whole[-1].lineno)


def scaled(asked: Asked) -> Iterator[Origin]:
    """Yield where the targets are made, and the numbers of the script that are subtracted from them and divide them."""
    way = asked.targets()
    yield from made("the targets are made", way)
    for one in way.ends if len(way.ends) == 1 else ():
        parts = [one.node, *([one.node.left] if is_op(one.node, ast.Div) else [])]
        for part in parts:
            given = flow(asked.program).origins(Value(part.right, one.frame)) if is_op(part, ast.Div | ast.Sub) else []
            known = [it for it in given if isinstance(it, ast.Constant) and it.value in {0, 1}]
            if known and len(known) == len(given):
                does = "the deviation that divides" if is_op(part, ast.Div) else "the mean that is subtracted from"
                yield Origin(f"{does} them is {known[0].value!r}, set", known[0].lineno)
                return


def inputs(asked: Asked) -> Iterator[Origin]:
    """Yield where the inputs are made."""
    yield from made("the inputs are made", asked.inputs())


def both(asked: Asked) -> Iterator[Origin]:
    """Yield where the inputs are made, and where the targets."""
    one = list(made("the inputs are made", asked.inputs()))
    other = list(made("the targets are made", asked.targets()))
    if len(one) == 1:
        yield from (*one, *other[: len(other) == 1])


def apart(asked: Asked) -> Iterator[Origin]:
    """Yield where the way of the held-out inputs leaves that of the training inputs."""
    training, held = asked.inputs(), asked.inputs("held")
    if asked.finding.rule in _SCALED and (found := list(_prepared(asked, training, held))):
        yield from found
        return
    alone = [one.node for one in held.values if one.node.lineno not in training.lines]
    if alone and training.values:
        yield Origin("the held-out examples are made", alone[-1].lineno)
        mine = [one.node for one in training.values if one.node.lineno not in held.lines]
        if mine and asked.finding.rule in _SCALED:
            yield Origin("those of the training", mine[-1].lineno)


def _prepared(asked: Asked, training: Chain, held: Chain) -> Iterator[Origin]:
    """Yield where the functions are made that prepare the held-out examples and those of the training.

    Both pass one call, such as `self.transform(x)`, of different objects.
    """
    one, other = (_functions(asked.program, way) for way in (held, training))
    for place in one:
        mine, theirs = one[place], other.get(place)
        if theirs is not None and mine.lineno != theirs.lineno:
            yield Origin("the transform of the held-out examples is made", mine.lineno)
            yield Origin("that of the training", theirs.lineno)
            return


def _functions(program: Program, way: Chain) -> dict[ast.expr, ast.expr]:
    """Return the functions and objects that the calls of a chain run, if these are known."""
    found: dict[ast.expr, ast.expr] = {}
    for value in way.values:
        call = value.node
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name | ast.Attribute):
            made = flow(program).end(Value(call.func, value.frame))
            if made is not None and made.node is not call.func and isinstance(made.node, ast.Call | ast.Lambda):
                found.setdefault(call, made.node)
    return found


def shifted(asked: Asked) -> Iterator[Origin]:
    """Yield the lines that cut a stretch of the targets off which begins later."""
    yield from shifts(asked, asked.targets(), "the targets are shifted")


def shifts(asked: Asked, way: Chain, what: str) -> Iterator[Origin]:
    """Yield the lines that cut a stretch of a value off which begins later."""
    before = [Value(one.node.value, one.frame, one.path) for one in way.ends if isinstance(one.node, ast.Subscript)]
    for one in (*way.ends, *asked.from_(*before).ends):
        if _is_shift(one.node):
            yield Origin(what, one.node.lineno)


def _is_shift(node: ast.expr) -> bool:
    parts = indices(node) if isinstance(node, ast.Subscript) else []
    return any(isinstance(one, ast.Slice) and one.lower is not None for one in parts)


def reordered(asked: Asked) -> Iterator[Origin]:
    """Yield the lines that put either inputs or targets, and not both, into another order."""
    one, other = asked.inputs(), asked.targets()
    for what, mine, theirs in (("inputs", one, other), ("targets", other, one)):
        for value in mine.values:
            if value.node.lineno not in theirs.lines and _reorders(asked.program, value.node):
                yield Origin(f"the {what} get another order", value.node.lineno)
        for call in _in_place(asked.program, mine, theirs):
            yield Origin(f"the {what} get another order", call.lineno)


def _in_place(program: Program, mine: Chain, theirs: Chain) -> Iterator[ast.Call]:
    """Yield the calls that put a list of one chain into another order, which the other chain read before, if at all."""
    calls = [one for one in program.calls if isinstance(program.parents[one], ast.Expr)]
    for call in calls if mine.values and theirs.values else ():
        sorts = method_of(call) in {"sort", "reverse"} and not call.args
        held = object_of(call) if sorts else call.args[0] if program.called(call) == "shuffle" and call.args else None
        if isinstance(held, ast.Name | ast.Attribute):
            inside = program.function(call)
            uses = _reads(program, theirs, held)
            late = any(program.function(one) is not inside or one.lineno > call.lineno for one in uses)
            if _reads(program, mine, held) and not late:
                yield call


def _reads(program: Program, way: Chain, held: ast.Name | ast.Attribute) -> list[ast.expr]:
    """Return where a chain, or what its ends compute from, reads a variable or an attribute."""
    found = dict.fromkeys(one.node for one in way.values)
    waiting = [*way.ends]
    while waiting and len(found) < _MOST:
        one = waiting.pop()
        for part in within(one.node, ast.expr):
            if isinstance(part, ast.Name | ast.Attribute) and part not in found:
                before = chain(program, Value(part, one.frame))
                found |= dict.fromkeys((part, *(value.node for value in before.values)))
                waiting += before.ends
    return [
        one for one in found if ast.unparse(one) == ast.unparse(held) and _place(program, one) == _place(program, held)
    ]


def _place(program: Program, node: ast.expr) -> object:
    return program.owner(node) if of_self(node) else program.bound(node)


def _reorders(program: Program, node: ast.expr) -> bool:
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and node.slice.step is not None:
        return isinstance(node.slice.step, ast.UnaryOp)  # x[::-1]
    return isinstance(node, ast.Subscript | ast.Call) and _calls(program, node, REORDERING)


def changed(asked: Asked) -> Iterator[Origin]:
    """Yield the statements in a loop that compute the inputs from themselves, or write into them."""
    program = asked.program
    held = {(program.scope(one.node), one.node.id) for one in asked.inputs().values if isinstance(one.node, ast.Name)}
    for node in program.nodes:
        if isinstance(node, ast.Assign | ast.AugAssign | ast.Call):
            name = _renewed(program, node)
            function = program.function(node)
            looped = any(isinstance(one, LOOPS) for one in program.outward(node))
            looped &= function is None or function.name not in _TRANSFORMS  # which get another example each time
            if looped and name is not None and (program.scope(name), name.id) in held:
                yield Origin("the inputs are changed", node.lineno)


def _renewed(program: Program, node: ast.Assign | ast.AugAssign | ast.Call) -> ast.Name | None:
    """Return the variable that a statement computes from itself, or that it writes into."""
    if isinstance(node, ast.Call):
        name = object_of(node) if method_of(node).endswith("_") else None
        return name if isinstance(name, ast.Name) else None
    target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
    name = target.value if isinstance(target, ast.Subscript) else target
    if not isinstance(name, ast.Name) or isinstance(node, ast.AugAssign):
        return name if isinstance(name, ast.Name) else None
    bound = program.bindings(program.scope(name), name.id)
    fresh = any(isinstance(one.statement, ast.For) for one in bound)  # another tensor in each round
    return name if mentions(node.value, name.id) and not fresh else None


def loaders(asked: Asked) -> Iterator[Origin]:
    """Yield where the loader of the training is made, and what sorts its examples."""
    for value in (*asked.inputs().values, *asked.targets().values):
        node = value.node
        if asked.program.called(node) == "DataLoader":
            yield Origin("the loader is made", node.lineno)
        elif isinstance(node, ast.Subscript | ast.Call) and _calls(asked.program, node, _SORTS):
            yield Origin("the examples are sorted", node.lineno)


def _calls(program: Program, node: ast.Subscript | ast.Call, names: Collection[str]) -> bool:
    """Tell whether a call, or the index of a part, comes from a call of a function with one of these names."""
    part = node.slice if isinstance(node, ast.Subscript) else node
    return any(program.called(one) in names for one in flow(program).origins(part))
