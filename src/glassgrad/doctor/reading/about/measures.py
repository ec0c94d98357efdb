"""Rules about validation: metrics, counters, decisions and data."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.actors import modules, setting
from glassgrad.doctor.reading.flow import Value, flow
from glassgrad.doctor.reading.iterations import iterations
from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.nodes import (
    both_ways,
    callee_of,
    compares,
    has_attribute,
    ident,
    is_name,
    is_op,
    method_of,
    object_of,
    reads_in,
    target_text,
    within,
    without,
)
from glassgrad.doctor.reading.program import Loop, Program, argument, is_given, number
from glassgrad.doctor.reading.rule import Spot, reads, rules_of, shown, spot
from glassgrad.doctor.reading.values import end, library_name, loss, losses

_LOADER = re.compile(r"(loader|_dl|iter(ator)?)$", re.IGNORECASE)
_EVALUATES = re.compile(r"^_?(eval|evaluate|validate|validation|test|score|accuracy)", re.IGNORECASE)


# --- metrics ---


@reads("metric divided by the wrong number")
def _wrong_number(program: Program) -> Iterator[Spot]:
    mean = functools.partial(_is_batch_mean, program)
    for node in program.every(ast.BinOp):
        total = _inside(node.left) if is_op(node, ast.Div) else None
        if total is None:
            continue
        added = _added(program, node, total)
        counts = added and all(_counts(program, one) for one in added)
        count = _length(node.right)
        what = "counts examples, but is divided by the number of batches"
        if counts and _is_tally(program, node):
            yield spot(node, *added, text=shown(node), what=what, remedy=f"{shown(node.right)} += len(y)")
        if counts and count is not None and _is_loader(program, count):
            remedy = f"{shown(node.left)} / len({shown(count)}.dataset)"
            yield spot(node, *added, text=shown(node), what=what, remedy=remedy)
        elif added and count is not None and _is_data(program, count) and all(map(mean, added)):
            what = "adds means of batches, and the number of examples divides it"
            yield spot(node, *added, text=shown(node), what=what, remedy=f"{total} / number of batches")


def _is_tally(program: Program, node: ast.BinOp) -> bool:
    """Tell whether the divisor is a variable that the loop over a loader increments for each batch."""
    added = _added(program, node, ast.unparse(node.right)) if isinstance(node.right, ast.Name) else []
    loops = [loop for one in added for loop in program.loops(one)[:1] if isinstance(loop, ast.For)]
    batches = loops and all(_over_batches(program, loop) for loop in loops)
    return bool(batches) and all(number(one.value) == 1 for one in added) and len(loops) == len(added)


def _length(node: ast.expr) -> ast.expr | None:
    """Return x of `len(x)`."""
    return node.args[0] if isinstance(node, ast.Call) and is_name(node.func, "len") and node.args else None


def _inside(node: ast.expr) -> str | None:
    """Return the variable in `total`, `100 * total` or `total.item()`."""
    if is_op(node, ast.Mult):
        return next((_inside(one) for one in (node.left, node.right) if number(one) is None), None)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        return _inside(node.func.value)
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else None


def _added(program: Program, node: ast.AST, total: str) -> list[ast.AugAssign]:
    """Return the statements that add to a variable, in the function around a node."""
    around = program.around(node)
    found = [one for one in within(around, ast.AugAssign) if isinstance(one.op, ast.Add)]
    return [one for one in found if ast.unparse(one.target) == total and program.around(one) is around]


def _is_loader(program: Program, node: ast.expr) -> bool:
    """Tell whether the length of a value is a number of batches."""
    made = flow(program).ends(node)
    calls = [one.node for one in made if isinstance(one.node, ast.Call) and not one.path]
    if calls and len(calls) == len(made):
        return all(
            library_name(program, one) == "DataLoader" and (number(argument(one, "batch_size", 1)) or 2) > 1
            for one in calls
        )
    return not calls and ident(node).lower().endswith(("loader", "_dl"))


def _is_data(program: Program, node: ast.expr) -> bool:
    """Tell whether the length of a value is a number of examples."""
    if isinstance(node, ast.Attribute) and node.attr == "dataset":
        return True
    made = flow(program).origins(node)
    return bool(made) and all(library_name(program, one) == "TensorDataset" for one in made)


def _counts(program: Program, node: ast.AugAssign) -> bool:
    """Tell whether a statement adds the number of correct predictions of a batch."""
    ends = flow(program).origins(node.value)
    return bool(ends) and all(_is_count(program, one) for one in ends)


def _is_count(program: Program, node: ast.expr) -> bool:
    while isinstance(node, ast.Call) and callee_of(node) in {"item", "float", "int"}:
        node = node.func.value if isinstance(node.func, ast.Attribute) else node.args[0]
    if not isinstance(node, ast.Call) or method_of(node) != "sum" or len(node.args) > 1:
        return False
    ends = flow(program).origins(program.operand(node) or node)
    return any(compares(one, ast.Eq) for end in ends for one in ast.walk(end))


def _is_batch_mean(program: Program, node: ast.AugAssign) -> bool:
    """Tell whether a statement adds the mean loss of a batch."""
    made = flow(program).end(without(node.value, "item"))
    found = loss(program, made.node) if made is not None else None
    if found is None or made is None or is_given(found.call, "reduction") or is_given(found.call, "size_average"):
        return False
    held = flow(program).origin(Value(found.call.func, made.frame))
    return not isinstance(held, ast.Call) or not is_given(held, "reduction")


@reads("argmax over the batch")
def _over_examples(program: Program) -> Iterator[Spot]:
    """Find `model(x).argmax(0) == y`, which compares the best example of each class with the class of each example."""
    for node in program.every(ast.Compare):
        outer = program.parents.get(node)
        counted = isinstance(outer, ast.Attribute) and outer.attr in {"sum", "float", "mean", "double"}
        for side in both_ways(node)[0] if counted and compares(node, ast.Eq) else ():
            for one in flow(program).ends(side):
                call = one.node
                if not isinstance(call, ast.Call) or _best_along(program, call, one.path) != 0:
                    continue
                if _from_model(program, program.operand(call)):
                    yield spot(call, node, program.statement(call), text=shown(call))


def _best_along(program: Program, call: ast.Call, path: tuple[object, ...]) -> float | None:
    """Return the axis of `argmax(axis)`, or of `max(axis)[1]`."""
    full = program.names.full(call.func)
    name = last(full) or method_of(call)
    if name == "argmax" or (name == "max" and path[:1] == (1,)):
        place = 1 if full else 0
        return number(argument(call, "dim", place) or argument(call, "axis", place))
    return None


def _from_model(program: Program, node: ast.expr | None, depth: int = 0) -> bool:
    """Tell whether a value is the output of a model for several examples."""
    if depth > 6:
        return False
    if isinstance(node, ast.Name):
        return _from_model(program, program.source_of(node), depth + 1)
    if isinstance(node, ast.Call) and modules(program, node.func) is not None:
        return True
    keeps = method_of(node) in {"detach", "cpu", "numpy", "softmax", "sigmoid"}
    return keeps and _from_model(program, object_of(node), depth + 1)


@reads("threshold of probabilities on logits")
def _threshold(program: Program) -> Iterator[Spot]:
    """Find `model(x) > 0.5` and `model(x).round()` for a model whose loss takes logits."""
    kinds = {one.kind for one in losses(program)}
    if "binary_cross_entropy_with_logits" not in kinds or "binary_cross_entropy" in kinds:
        return
    judged = {found.node for one in losses(program) if (found := end(program, one.input)) is not None}
    for node in program.nodes:
        value: ast.expr | None = None
        if compares(node, ast.Gt | ast.GtE) and number(node.comparators[0]) == 0.5:
            value = node.left
        elif isinstance(node, ast.Call) and "round" in {method_of(node), library_name(program, node)}:
            value = program.operand(node)
        made = end(program, value)
        linear = made is not None and made.op in {"linear", "conv"} and made.node in judged
        if linear and value is not None and made is not None and isinstance(node, ast.expr):
            facts = {"text": shown(node), "remedy": f"{shown(value, 40)} > 0"}
            yield spot(node, program.statement(node), made.node, **facts)


@reads("result of the last batch only")
def _last_only(program: Program) -> Iterator[Spot]:
    """Find an evaluation that overwrites its result in each round of a loop and returns it after the loop."""
    for function in program.functions.values():
        body = _flat(function.body)
        given = body[-1] if body else None
        evaluates = _EVALUATES.search(function.name) and not has_attribute(function, "backward")
        if not evaluates or not isinstance(given, ast.Return) or given.value is None:
            continue
        for loop in body:
            if not isinstance(loop, ast.For) or not _over_batches(program, loop):
                continue
            names = reads_in(given.value) - reads_in(loop)
            sets = [one for one in loop.body if isinstance(one, ast.Assign) and target_text(one) in names]
            mine = [one for one in sets if _from_batch(one)]
            if mine and not any(isinstance(one, ast.Break | ast.Continue) for one in ast.walk(loop)):
                yield spot(mine[-1], given, loop, text=shown(mine[-1]), name=target_text(mine[-1]))


def _flat(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a body, including those in its `with` blocks."""
    found: list[ast.stmt] = []
    for one in body:
        found += _flat(one.body) if isinstance(one, ast.With) else [one]
    return found


def _over_batches(program: Program, loop: ast.For) -> bool:
    named_so = _LOADER.search(ast.unparse(loop.iter))
    return isinstance(loop.target, ast.Tuple) and (bool(named_so) or _is_loader(program, loop.iter))


def _from_batch(node: ast.Assign) -> bool:
    """Tell whether a statement computes its value by a call or an operator, and does not collect results."""
    return isinstance(node.value, ast.Call | ast.BinOp) and not re.search(r"\bcat\(|append", ast.unparse(node.value))


@reads("counter never reset")
def _never_reset(program: Program) -> Iterator[Spot]:
    """Find a counter that starts before the first epoch, while each epoch divides it by the examples of one epoch."""
    for outer in iterations(program):
        loop = outer.node
        if not isinstance(loop, ast.For) or not outer.of("step") or program.loops(loop):
            continue
        for node in within(loop, ast.BinOp):
            divides = is_op(node, ast.Div) and program.loops(node)[:1] == [loop]
            total = _inside(node.left) if divides else None
            if total is None:
                continue
            added = [one for one in _added(program, node, total) if loop in program.loops(one)]
            sets = any(total in _all_targets(one) for one in within(loop, ast.Assign))
            grows = _added(program, node, _inside(node.right) or "")
            counted = added and all(_counts(program, one) for one in added) and len(program.loops(added[0])) > 1
            if counted and not sets and not grows and _begins(program, loop, total):
                yield spot(added[0], node, text=shown(added[0]), name=total, division=shown(node))
                break


def _all_targets(node: ast.Assign) -> set[str]:
    return {ast.unparse(one) for target in node.targets for one in ast.walk(target) if isinstance(one, ast.expr)}


def _begins(program: Program, loop: Loop, name: str) -> bool:
    """Tell whether a variable is set before a loop."""
    zero = [one for one in within(program.around(loop), ast.Assign) if name in _all_targets(one)]
    return any(one.lineno < loop.lineno and not program.loops(one) for one in zero)


@reads("mean of batch means")
def _means(program: Program) -> Iterator[Spot]:
    """Find an accuracy that is averaged over batches, although the last batch is much smaller."""
    for loop in program.every(ast.For):
        uneven = [one.node for one in flow(program).ends(loop.iter) if _leftover(program, one)]
        for node in ast.walk(loop) if uneven else ():
            value = node.value if isinstance(node, ast.AugAssign) else None
            if isinstance(node, ast.Call) and method_of(node) == "append" and node.args:
                value = node.args[0]
            if value is not None and _is_share(program, value) and isinstance(node, ast.expr | ast.stmt):
                results = within(program.around(node), ast.Return)
                yield spot(node, uneven[0], *results, text=shown(value), loader=shown(uneven[0]))


def _is_share(program: Program, value: ast.expr) -> bool:
    """Tell whether a value is the share of correct predictions in a batch."""
    for one in flow(program).ends(value):
        node = without(one.node, "item", "numpy", "cpu")
        held = object_of(node) if method_of(node) == "mean" else None
        ends = flow(program).origins(Value(held, one.frame)) if held is not None else []
        if any(" == " in ast.unparse(part) for part in ends):
            return True
    return False


def _leftover(program: Program, one: Value) -> bool:
    """Tell whether the last batch of a loader is less than half as large as the others."""
    call = one.node
    if not isinstance(call, ast.Call) or library_name(program, call) != "DataLoader" or is_given(call, "drop_last"):
        return False
    size = setting(program, Value(argument(call, "batch_size", 1) or call, one.frame))
    data = argument(call, "dataset", 0)
    count = _examples(program, Value(data, one.frame), 0) if data is not None else None
    if size is None or count is None or size < 2:
        return False
    rest = count % size
    return 0 < rest < size / 4 and count > size


def _examples(program: Program, value: Value, depth: int) -> float | None:
    """Return the number of examples of a data set, if the first argument of its constructor contains it."""
    one = next(iter(flow(program).ends(Value(value.node, value.frame))), None)
    call = one.node if one is not None else None
    if one is None or not isinstance(call, ast.Call) or depth > 6 or not call.args:
        return None
    name = library_name(program, call)
    if name in {"TensorDataset", "tensor", "from_numpy", "as_tensor"} or method_of(call) in {"astype", "float"}:
        inner = call.args[0] if name else object_of(call) or call
        return _counted(program, Value(inner, one.frame), depth + 1)
    return setting(program, Value(call.args[0], one.frame))


def _counted(program: Program, value: Value, depth: int) -> float | None:
    node = program.source_of(value.node) or value.node
    if isinstance(node, ast.Call) and flow(program).callee(node, value.frame) is not None and node.args:
        return setting(program, Value(node.args[0], value.frame))
    return _examples(program, Value(node, value.frame), depth) if isinstance(node, ast.Call) else None


RULES = rules_of(globals())
