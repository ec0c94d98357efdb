"""Rules about validation: metrics, counters, decisions and data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.actors import modules, setting
from glassgrad.doctor.reading.flow import Value, flow
from glassgrad.doctor.reading.iterations import iterations
from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.program import Loop, Program, argument, is_given, number
from glassgrad.doctor.reading.rule import Spot, reads, rules_of, shown, spot
from glassgrad.doctor.reading.values import end, library_name, loss, losses

_LOADER = re.compile(r"(loader|_dl|iter(ator)?)$", re.IGNORECASE)
_EVALUATES = re.compile(r"^_?(eval|evaluate|validate|validation|test|score|accuracy)", re.IGNORECASE)


# --- metrics ---


@reads("metric divided by the wrong number")
def _wrong_number(program: Program) -> Iterator[Spot]:
    for node in program.nodes:
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
            continue
        count = _length(node.right)
        total = _inside(node.left)
        if total is not None and _is_tally(program, node):
            added = _added(program, node, total)
            if added and all(_counts(program, one) for one in added):
                what = "counts examples, but is divided by the number of batches"
                yield spot(node, *added, text=shown(node), what=what, remedy=f"{shown(node.right)} += len(y)")
        if count is None or total is None:
            continue
        added = _added(program, node, total)
        batches = _is_loader(program, count)
        if batches and added and all(_counts(program, one) for one in added):
            what = "counts examples, but is divided by the number of batches"
            remedy = f"{shown(node.left)} / len({shown(count)}.dataset)"
            yield spot(node, *added, text=shown(node), what=what, remedy=remedy)
        elif _is_data(program, count) and added and all(_is_batch_mean(program, one) for one in added):
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
    known = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len" and node.args
    return node.args[0] if known and isinstance(node, ast.Call) else None


def _inside(node: ast.expr) -> str | None:
    """Return the variable in `total`, `100 * total` or `total.item()`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return next((_inside(one) for one in (node.left, node.right) if number(one) is None), None)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        return _inside(node.func.value)
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else None


def _added(program: Program, node: ast.AST, total: str) -> list[ast.AugAssign]:
    """Return the statements that add to a variable, in the function around a node."""
    around = program.function(node) or program.tree
    found = [one for one in ast.walk(around) if isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Add)]
    return [
        one for one in found if ast.unparse(one.target) == total and program.function(one) is program.function(node)
    ]


def _is_loader(program: Program, node: ast.expr) -> bool:
    """Tell whether the length of a value is a number of batches."""
    made = flow(program).ends(node)
    calls = [one.node for one in made if isinstance(one.node, ast.Call) and not one.path]
    if calls and len(calls) == len(made):
        return all(
            library_name(program, one) == "DataLoader" and (number(argument(one, "batch_size", 1)) or 2) > 1
            for one in calls
        )
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return not calls and bool(_LOADER.search(name)) and name.lower().endswith(("loader", "_dl"))


def _is_data(program: Program, node: ast.expr) -> bool:
    """Tell whether the length of a value is a number of examples."""
    if isinstance(node, ast.Attribute) and node.attr == "dataset":
        return True
    made = flow(program).ends(node)
    return bool(made) and all(
        isinstance(one.node, ast.Call) and library_name(program, one.node) == "TensorDataset" for one in made
    )


def _counts(program: Program, node: ast.AugAssign) -> bool:
    """Tell whether a statement adds the number of correct predictions of a batch."""
    ends = [one.node for one in flow(program).ends(node.value)]
    return bool(ends) and all(_is_count(program, one) for one in ends)


def _is_count(program: Program, node: ast.expr) -> bool:
    while isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in {
        "item",
        "float",
        "int",
    }:
        node = node.func.value if isinstance(node.func, ast.Attribute) else node.args[0]
    if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "sum":
        return False
    inner = node.args[0] if program.names.full(node.func) and node.args else getattr(node.func, "value", node)
    return (
        any(
            isinstance(one, ast.Compare) and isinstance(one.ops[0], ast.Eq)
            for found in flow(program).ends(inner)
            for one in ast.walk(found.node)
        )
        and len(node.args) < 2
    )


def _is_batch_mean(program: Program, node: ast.AugAssign) -> bool:
    """Tell whether a statement adds the mean loss of a batch."""
    value = node.value
    if (
        isinstance(value, ast.Call)
        and getattr(value.func, "attr", "") == "item"
        and isinstance(value.func, ast.Attribute)
    ):
        value = value.func.value
    made = flow(program).end(value)
    found = loss(program, made.node) if made is not None and isinstance(made.node, ast.Call) else None
    if found is None or made is None or is_given(found.call, "reduction") or is_given(found.call, "size_average"):
        return False
    held = flow(program).end(Value(found.call.func, made.frame))
    return held is None or not isinstance(held.node, ast.Call) or not is_given(held.node, "reduction")


@reads("argmax over the batch")
def _over_examples(program: Program) -> Iterator[Spot]:
    """Find `model(x).argmax(0) == y`, which compares the best example of each class with the class of each example."""
    for node in program.nodes:
        if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.Eq):
            continue
        outer = program.parents.get(node)
        if not isinstance(outer, ast.Attribute) or outer.attr not in {"sum", "float", "mean", "double"}:
            continue
        for side in (node.left, node.comparators[0]):
            for one in flow(program).ends(side):
                call = one.node
                if (
                    isinstance(call, ast.Call)
                    and _best_along(program, call, one.path) == 0
                    and _is_output(program, call)
                ):
                    yield spot(call, node, program.statement(call), text=shown(call))


def _best_along(program: Program, call: ast.Call, path: tuple[object, ...]) -> float | None:
    """Return the axis of `argmax(axis)`, or of `max(axis)[1]`."""
    full = program.names.full(call.func)
    name = last(full) or getattr(call.func, "attr", "")
    if name == "argmax" or (name == "max" and path[:1] == (1,)):
        place = 1 if full else 0
        return number(argument(call, "dim", place) or argument(call, "axis", place))
    return None


def _is_output(program: Program, call: ast.Call) -> bool:
    """Tell whether a call reads the output of a model for several examples."""
    full = program.names.full(call.func)
    operand = call.args[0] if full and call.args else getattr(call.func, "value", None)
    return isinstance(operand, ast.expr) and _from_model(program, operand)


def _from_model(program: Program, node: ast.expr, depth: int = 0) -> bool:
    if depth > 6:
        return False
    if isinstance(node, ast.Name):
        bound = program.bound(node)
        return bound is not None and bound.value is not None and _from_model(program, bound.value, depth + 1)
    if not isinstance(node, ast.Call):
        return False
    if modules(program, node.func) is not None:
        return True
    name = getattr(node.func, "attr", "")
    return (
        name in {"detach", "cpu", "numpy", "softmax", "sigmoid"}
        and isinstance(node.func, ast.Attribute)
        and _from_model(program, node.func.value, depth + 1)
    )


@reads("threshold of probabilities on logits")
def _threshold(program: Program) -> Iterator[Spot]:
    """Find `model(x) > 0.5` and `model(x).round()` for a model whose loss takes logits."""
    if not any(one.kind == "binary_cross_entropy_with_logits" for one in losses(program)):
        return
    if any(one.kind == "binary_cross_entropy" for one in losses(program)):
        return
    for node in program.nodes:
        value: ast.expr | None = None
        if (
            isinstance(node, ast.Compare)
            and isinstance(node.ops[0], ast.Gt | ast.GtE)
            and number(node.comparators[0]) == 0.5
        ):
            value = node.left
        elif isinstance(node, ast.Call) and (
            program.names.full(node.func) == "torch.round" or getattr(node.func, "attr", "") == "round"
        ):
            value = node.args[0] if program.names.full(node.func) and node.args else getattr(node.func, "value", None)
        made = end(program, value) if value is not None else None
        if (
            made is not None
            and made.op in {"linear", "conv"}
            and isinstance(node, ast.expr)
            and _is_judged(program, value)
        ):
            yield spot(
                node,
                program.statement(node),
                made.node,
                text=shown(node),
                remedy=f"{shown(value, 40)} > 0" if value is not None else "",
            )


def _is_judged(program: Program, value: ast.expr | None) -> bool:
    """Tell whether the layer that makes a value also makes the input of a loss of logits."""
    made = end(program, value)
    ends = [found for one in losses(program) if (found := end(program, one.input)) is not None]
    return made is not None and any(found.node is made.node for found in ends)


@reads("result of the last batch only")
def _last_only(program: Program) -> Iterator[Spot]:
    """Find an evaluation that overwrites its result in each round of a loop and returns it after the loop."""
    for function in program.functions.values():
        if not _EVALUATES.search(function.name) or any(
            getattr(one, "attr", "") == "backward" for one in ast.walk(function)
        ):
            continue
        body = _flat(function.body)
        given = body[-1] if body else None
        if not isinstance(given, ast.Return) or given.value is None:
            continue
        names = {one.id for one in ast.walk(given.value) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
        for loop in body:
            if not isinstance(loop, ast.For) or not _over_batches(program, loop):
                continue
            sets = [one for one in loop.body if isinstance(one, ast.Assign) and _target(one) in names]
            mine = [one for one in sets if _from_batch(program, one) and not _is_read(loop, _target(one), one)]
            if mine and not any(isinstance(one, ast.Break | ast.Continue) for one in ast.walk(loop)):
                yield spot(mine[-1], given, loop, text=shown(mine[-1]), name=_target(mine[-1]))


def _flat(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a body, including those in its `with` blocks."""
    found: list[ast.stmt] = []
    for one in body:
        found += _flat(one.body) if isinstance(one, ast.With) else [one]
    return found


def _target(node: ast.Assign) -> str:
    return ast.unparse(node.targets[0])


def _over_batches(program: Program, loop: ast.For) -> bool:
    return isinstance(loop.target, ast.Tuple) and (
        _is_loader(program, loop.iter) or bool(_LOADER.search(ast.unparse(loop.iter)))
    )


def _from_batch(program: Program, node: ast.Assign) -> bool:
    """Tell whether a statement computes its value by a call or an operator, and does not collect results."""
    return isinstance(node.value, ast.Call | ast.BinOp) and not re.search(r"\bcat\(|append", ast.unparse(node.value))


def _is_read(loop: ast.For, name: str, setting_it: ast.Assign) -> bool:
    """Tell whether a loop reads a variable, for example to add it up."""
    return any(isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load) for one in ast.walk(loop))


@reads("counter never reset")
def _never_reset(program: Program) -> Iterator[Spot]:
    """Find a counter that starts before the first epoch, while each epoch divides it by the examples of one epoch."""
    for outer in iterations(program):
        if not isinstance(outer.node, ast.For) or not outer.of("step") or program.loops(outer.node):
            continue
        for node in ast.walk(outer.node):
            division = (
                isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and program.loops(node)[:1] == [outer.node]
            )
            total = _inside(node.left) if division and isinstance(node, ast.BinOp) else None
            if total is None or not isinstance(node, ast.BinOp):
                continue
            added = [one for one in _added(program, node, total) if _is_within(program, one, outer.node)]
            sets = [one for one in ast.walk(outer.node) if isinstance(one, ast.Assign) and total in _all_targets(one)]
            below = _inside(node.right) or ""
            grows = bool(below) and bool(_added(program, node, below))
            counted = added and all(_counts(program, one) for one in added) and len(program.loops(added[0])) > 1
            if counted and not sets and not grows and _begins(program, outer.node, total):
                yield spot(added[0], node, text=shown(added[0]), name=total, division=shown(node))
                break


def _is_within(program: Program, node: ast.AST, loop: Loop) -> bool:
    return loop in program.loops(node)


def _all_targets(node: ast.Assign) -> set[str]:
    return {ast.unparse(one) for target in node.targets for one in ast.walk(target) if isinstance(one, ast.expr)}


def _begins(program: Program, loop: Loop, name: str) -> bool:
    """Tell whether a variable is set to 0 before a loop."""
    around = program.function(loop) or program.tree
    zero = [one for one in ast.walk(around) if isinstance(one, ast.Assign) and name in _all_targets(one)]
    return any(one.lineno < loop.lineno and not program.loops(one) for one in zero)


@reads("mean of batch means")
def _means(program: Program) -> Iterator[Spot]:
    """Find an accuracy that is averaged over batches, although the last batch is much smaller."""
    for loop in (node for node in program.nodes if isinstance(node, ast.For)):
        uneven = [one for one in flow(program).ends(loop.iter) if _leftover(program, one)]
        if not uneven:
            continue
        for node in ast.walk(loop):
            value = node.value if isinstance(node, ast.AugAssign) else None
            appended = isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "append" and node.args
            value = node.args[0] if appended and isinstance(node, ast.Call) else value
            if value is not None and _is_share(program, value) and isinstance(node, ast.expr | ast.stmt):
                made = uneven[0].node
                yield spot(node, made, *_divisions(program, node), text=shown(value), loader=shown(made))


def _divisions(program: Program, node: ast.AST) -> list[ast.stmt]:
    around = program.function(node) or program.tree
    return [one for one in ast.walk(around) if isinstance(one, ast.Return)]


def _is_share(program: Program, value: ast.expr) -> bool:
    """Tell whether a value is the share of correct predictions in a batch."""
    for one in flow(program).ends(value):
        node = one.node
        while isinstance(node, ast.Call) and getattr(node.func, "attr", "") in {"item", "numpy", "cpu"}:
            assert isinstance(node.func, ast.Attribute)
            node = node.func.value
        text = ast.unparse(node)
        if (
            isinstance(node, ast.Call)
            and getattr(node.func, "attr", "") == "mean"
            and isinstance(node.func, ast.Attribute)
        ):
            inner = flow(program).ends(Value(node.func.value, one.frame))
            text = " ".join(ast.unparse(part.node) for part in inner)
            if re.search(r" == ", text):
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
    for one in flow(program).ends(Value(value.node, value.frame)):
        call = one.node
        if not isinstance(call, ast.Call) or depth > 6 or not call.args:
            return None
        name = library_name(program, call)
        if name in {"TensorDataset", "tensor", "from_numpy", "as_tensor"} or getattr(call.func, "attr", "") in {
            "astype",
            "float",
        }:
            inner = call.args[0] if name else getattr(call.func, "value", call)
            return _counted(program, Value(inner, one.frame), depth + 1)
        return setting(program, Value(call.args[0], one.frame))
    return None


def _counted(program: Program, value: Value, depth: int) -> float | None:
    node = value.node
    if isinstance(node, ast.Name):
        bound = program.bound(node)
        node = bound.value if bound is not None and bound.value is not None else node
    if isinstance(node, ast.Call) and flow(program).callee(node, value.frame) is not None and node.args:
        return setting(program, Value(node.args[0], value.frame))
    return _examples(program, Value(node, value.frame), depth) if isinstance(node, ast.Call) else None


RULES = rules_of(globals())
