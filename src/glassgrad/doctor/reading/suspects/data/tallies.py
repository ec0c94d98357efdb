"""Suspects about sums and counts: what divides them, when they begin, what they leave out, and which data they show."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.nodes import callee_of, indices, is_op, names_in, object_of, within
from glassgrad.doctor.reading.program import FUNCTIONS, Program, argument, constant, place_of
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.data.roles import HELD_OUT, LABELS, TRAIN, trains, unscaled
from glassgrad.doctor.reading.suspects.form import look_at, operations, suspects, suspects_each
from glassgrad.doctor.reading.suspects.lookup import assigned, assignments, source, stem_of, targets_of, text, words_in
from glassgrad.doctor.reading.values import library_name

_COUNTS = re.compile(r"correct|(^|_)(right|hits?|n_?ok|matches|acc|accuracy|good)(_|s|$)", re.IGNORECASE)
_FIGURE = re.compile(
    r"acc|correct|score|iou|dice|(^|_)(f1|auc|mae|mse|rmse|err|error|loss|hits?|recall|precision)(_|$)"
)

_SHIFTED = re.compile(
    r"\[0\] \+ (list\()?(?P<name>\w+)\[:-1\]\)?"
    r"|\[0\] \+ \[(?P<each>[\w.]+|len\([\w.]+\)) for \w+ in [\w.]+\[:-1\]\]"
    r"|[\w.]+\([\[(](\[0\]|[\w.]*(tensor|zeros|array)\(.*?\)), (?P<other>\w+)\[:-1\][\])].*\)"
)
"""Sizes moved on by one place, with a zero before them."""


def _divisions(program: Program) -> Iterator[tuple[ast.BinOp | ast.AugAssign, ast.expr, ast.expr]]:
    """Yield `a / b` and `a /= b` with both sides."""
    for node in program.nodes:
        if is_op(node, ast.Div):
            yield node, node.left, node.right
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
            yield node, node.target, node.value


def _sums(program: Program, node: ast.AST, over: ast.expr) -> list[ast.AugAssign]:
    """Return the statements that add to the variable which a division divides."""
    name = stem_of(unscaled(over))
    around = program.around(node)
    found = [one for one in within(around, ast.AugAssign) if isinstance(one.op, ast.Add)]
    return [one for one in found if stem_of(one.target) == name and program.loops(one)]


@suspects("figure divided by another count")
def _other_count(program: Program) -> Iterator[Spot]:
    """Find a sum over one loader divided by the length of another set, by a batch, or by examples if it adds means."""
    summed = re.search(r"reduction='sum'|size_average=False|loss = .*\.sum\(", source(program)) is not None
    for node, over, below in _divisions(program):
        added = _sums(program, node, over)
        loop = program.loops(added[0])[0] if added else None
        if isinstance(loop, ast.For) and loop not in program.loops(node):
            what = _misfit(program, loop, added[0], below, summed)
            if what:
                yield look_at(node, added[0], what=what)


def _misfit(program: Program, loop: ast.For, added: ast.AugAssign, below: ast.expr, summed: bool) -> str:
    """Return why a count does not fit a sum; empty if it may fit."""
    held = program.value_of(below)
    below = held if held is not None and "len(" in ast.unparse(held) else below
    roles = [[any(map(role.search, words_in(one))) for role in (HELD_OUT, TRAIN)] for one in (loop.iter, below)]
    evaluates = re.match(r"eval|val|test|score|accuracy", getattr(program.function(loop), "name", "")) is not None
    given = roles[0] == [False, False] and evaluates and roles[1] == [False, True]
    if given or roles in ([[True, False], [False, True]], [[False, True], [True, False]]):
        return f"the sum is over {shown(loop.iter, 30)}"
    said, value = text(below), text(added.value)
    drawn = re.fullmatch(r"len\((\w+)\)|(\w+)\.(size\(0\)|shape\[0\])", said)
    batch = re.fullmatch(r"(\w+\.)?(batch_?size|bs)", said, re.IGNORECASE)
    if "==" in value and "sum" in value and (batch or (drawn and (drawn[1] or drawn[2]) in words_in(loop.target))):
        return "the sum counts examples of all batches"
    means = re.search(r"\.mean\(\)|/ len|loss\.item\(\)$|loss$", value) and not re.search(r"\*|sum", value)
    known = means and not (summed and value.endswith(("loss", "loss.item()")))
    examples = re.search(r"\.dataset\)|len\(\w*(data|set|ds|_x|x_\w+|X\w*)\)$|n_(train|test|val)|n_samples", said)
    batches = isinstance(below, ast.BinOp)  # examples / size of a batch
    return "the sum adds a mean for each batch" if known and examples and not batches else ""


@suspects_each("division without a remainder", operations(ast.FloorDiv))
def _whole(program: Program, node: ast.BinOp) -> object:
    """Find `correct // total`."""
    error = re.search(r"(loss|err)\w*(\.item\(\))?$", text(node.left))
    return error or _COUNTS.search(stem_of(unscaled(node.left)))


@suspects("sum goes on over the epochs")
def _goes_on(program: Program) -> Iterator[Spot]:
    """Find a sum or a list that begins before the loop over epochs and is averaged in each epoch."""
    for node, over, below in _divisions(program):
        added: list[ast.AugAssign] = _sums(program, node, over)
        name = stem_of(unscaled(over))
        figure = _FIGURE.search(name) or _COUNTS.search(name) or re.search("total|running|sum", name)
        if added and figure and isinstance(added[0].target, ast.Name) and _is_over(program, added[0], node, name):
            loop = program.loops(added[0])[-1]
            if not any(stem_of(one.target) == stem_of(unscaled(below)) for one in within(loop, ast.AugAssign)):
                yield look_at(added[0], node, division=shown(node))
    for call in program.calls_of(".append"):
        name = stem_of(object_of(call))
        for mean in program.calls if _FIGURE.search(name.rstrip("s").replace("losse", "loss")) else ():
            averages = program.called(mean) in {"mean", "sum"} and len(mean.args) == 1 and stem_of(mean.args[0]) == name
            if averages and not isinstance(mean.args[0], ast.Subscript) and _is_over(program, call, mean, name):
                begun = [one for target, _, one in assigned(program.tree) if stem_of(target) == name]
                yield from (look_at(one, call, division=shown(mean)) for one in begun[:1])


def _is_over(program: Program, added: ast.AST, figure: ast.AST, name: str) -> bool:
    """Tell whether a loop around both has the addition in an inner loop, the figure outside of that, and no reset."""
    loops, outside = program.loops(added), program.loops(figure)
    if len(loops) < 2 or outside[-1:] != loops[-1:] or loops[0] in outside:
        return False
    clears = any(text(one.func) == f"{name}.clear" for one in program.calls)
    return not clears and not any(name in words_in(target) for target, _, _ in assigned(loops[-1]))


@suspects_each("figure of the last batch", ast.For)
def _last_batch(program: Program, loop: ast.For) -> Iterator[Spot]:
    """Find `acc = ...` in a loop over batches without training, read only after the loop."""
    if not isinstance(loop.target, ast.Tuple) or trains(program, loop):
        return
    if not re.search(r"load|_dl|batch|iter", text(loop.iter), re.IGNORECASE):
        return
    around = program.around(loop)
    for target, value, node in assigned(loop):
        name = target.id if isinstance(target, ast.Name) else ""
        loads = [one for one in within(around, ast.Name) if one.id == name and isinstance(one.ctx, ast.Load)]
        ends = getattr(loop, "end_lineno", 0) or 0
        if not _FIGURE.search(name) or not isinstance(value, ast.Call | ast.BinOp):
            continue
        if loads and all(one.lineno > ends for one in loads):
            yield look_at(node, name=name)


@suspects_each("repeated indices counted once", ast.AugAssign)
def _repeated(program: Program, node: ast.AugAssign) -> object:
    """Find `table[labels, predictions] += 1` with arrays of indices."""
    target = node.target if isinstance(node.op, ast.Add) else None
    if not isinstance(target, ast.Subscript):
        return False
    parts = indices(target)
    ends = [it for one in parts if isinstance(one, ast.Name) for it in flow(program).ends(one)]
    made = [(text(it.node), it.path) for it in ends]
    arrays = [one for one, path in made if not path and re.search(r"argmax|randint\(|integers\(|long\(\)", one)]
    single = any(re.search(r"item\(\)|int\(", one) for one, _ in made)
    return all(isinstance(one, ast.Name) for one in parts) and arrays and not single


@suspects("padding counts in the figure")
def _padded(program: Program) -> Iterator[Spot]:
    """Find `(pred == y).mean()` over tokens in a script that pads."""
    if not re.search(r"ignore_index|padding_idx|pad_sequence|PAD\b|pad_id", source(program)):
        return
    for node in program.every(ast.Compare):
        if isinstance(node.ops[0], ast.Eq) and isinstance(node.left, ast.Call | ast.Name):
            if re.fullmatch(r".*(arg)?max\((dim=)?1\)", text(node.left)) and "ignore_index" not in source(program):
                continue  # one class for each sequence
            said = text(program.statement(node))
            best = any("argmax" in text(one.node) or "max(" in text(one.node) for one in flow(program).ends(node.left))
            reduced = re.search(r"==[^=]*\)\.(float\(\)\.|double\(\)\.)?(mean|sum)\(", said)
            if best and reduced and not re.search(r"mask|pad|PAD|!=|ignore|valid|keep|\[:, -1\]|lengths", said):
                yield look_at(node)


@suspects_each("best weights chosen by another set", ast.If)
def _chosen(program: Program, node: ast.If) -> object:
    """Find `if test_accuracy > best` and `if train_loss < best`."""
    test = node.test
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Gt | ast.Lt | ast.GtE | ast.LtE):
        return False
    sides = [stem_of(test.left), stem_of(test.comparators[0])]
    best = [one for one in sides if re.search(r"best|(^|_)(min|max|lowest|highest)", one)]
    other = [one for one in sides if one not in best]
    odd = best and other and re.search(r"(^|_)(test|train|tr|training)(_|$)|^running_loss$|^epoch_loss$", other[0])
    return odd and spot(node, text=shown(test), name=other[0])


@suspects("figure with another name")
def _titled(program: Program) -> Iterator[Spot]:
    """Find `print(f"val {train_accuracy}")`, and a pass over the training data whose result is printed as a test."""
    for node in program.nodes:
        parts = node.values if isinstance(node, ast.JoinedStr) else []
        for said, value in itertools.pairwise(parts):
            if isinstance(said, ast.Constant) and isinstance(value, ast.FormattedValue):
                words = re.split(r"[|,;]|\s{2,}", str(said.value))[-1]
                shows = text(value.value)
                held = re.search(r"\b(val|valid|validation|test|dev)\b", words, re.IGNORECASE)
                held = None if re.search("train", words, re.IGNORECASE) else held
                if held and TRAIN.search(shows) and not HELD_OUT.search(shows) and isinstance(node, ast.expr):
                    yield spot(node, text=shown(value.value), words=words.strip())
    for node in program.nodes:
        if isinstance(node, FUNCTIONS) and re.match(r"(val|test|eval)", node.name) and "backward" not in words_in(node):
            for loop in within(node, ast.For):
                if TRAIN.search(text(loop.iter)) and not re.search(r"split|mode|test|val", text(loop.iter)):
                    yield spot(loop, text=shown(loop.iter), words=node.name)


@suspects_each("offsets that are not added up", ast.BinOp | ast.Call)
def _offsets(program: Program, node: ast.BinOp | ast.Call) -> object:
    """Find `[0] + sizes[:-1]` as the beginnings of parts, where each begins behind all earlier ones."""
    if isinstance(program.parents.get(node), ast.BinOp):
        return False
    said = re.fullmatch(_SHIFTED, text(node))
    name = said and (said["name"] or said["each"] or said["other"])
    if not name or not re.search(r"len|num|count|size|nodes|atoms|points|^n_|^ns$", name, re.IGNORECASE):
        return False
    held = [text(value) for target, value, _ in assigned(program.tree) if stem_of(target) == name]
    outer = program.parents.get(node)
    inner = isinstance(outer, ast.Call) and re.search(r"cumsum|accumulate", text(outer))
    later = re.search(
        rf"{re.escape(name)}.*(cumsum|accumulate)|(cumsum|accumulate).*\b{re.escape(name)}", " ".join(held)
    )
    target = program.statement(node)
    goes_on = f"cumsum({stem_of(getattr(target, 'targets', [None])[0])}" in source(program)
    return not inner and not later and not goes_on and look_at(node, name=name)


# --- order ---


@suspects("predictions in a drawn order")
def _drawn_order(program: Program) -> Iterator[Spot]:
    """Find predictions collected over a loader that shuffles, without its labels, beside labels in their own order."""
    for loop in program.every(ast.For):
        lists = _collects_alone(program, loop)
        for loader, results in _collections(program, loop, lists) if lists else ():
            made = program.written(loader)
            shuffles = library_name(program, made) == "DataLoader" and isinstance(made, ast.Call)
            beside = next(_beside_labels(program, results), None)
            if not shuffles or not isinstance(made, ast.Call) or beside is None:
                continue
            if constant(argument(made, "shuffle", 2)) is True:
                yield look_at(made, beside, other=shown(beside))


def _collects_alone(program: Program, loop: ast.For) -> set[str]:
    """Return the lists to which a loop adds what it makes of batches whose labels it does not read."""
    target = loop.target
    if program.called(loop.iter) == "enumerate" and isinstance(target, ast.Tuple):
        target = target.elts[-1]
    label = target.elts[-1] if isinstance(target, ast.Tuple) and len(target.elts) > 1 else None
    body = ast.Module(loop.body, [])
    if not isinstance(label, ast.Name) or label.id in names_in(body) or trains(program, loop):
        return set()
    adds = [one for one in within(body, ast.Call) if callee_of(one) in {"append", "extend"} and one.args]
    adds = [one for one in adds if not re.search(r"loss|err|\.item\(|mean\(", text(one))]
    return {stem_of(one.func.value) for one in adds if isinstance(one.func, ast.Attribute)}


def _collections(program: Program, loop: ast.For, lists: set[str]) -> Iterator[tuple[ast.expr | None, set[str]]]:
    """Yield the loaders of a loop, each with the names of what is collected over it."""
    function = program.function(loop)
    given = [one for one in within(loop.iter, ast.Name) if isinstance(one.ctx, ast.Load)]
    for name in given:
        calls = program.calls_of(function.name) if function is not None else []
        for call in calls if function is not None else ():
            place = place_of(function, name.id) if function is not None else -1
            yield argument(call, name.id, place) if place >= 0 else name, set(targets_of(program, call).split(", "))
        if function is None:
            yield name, lists | {stem_of(one) for one, value, _ in assignments(program) if lists & names_in(value)}


def _beside_labels(program: Program, results: set[str]) -> Iterator[ast.expr]:
    """Yield where values are compared with labels that do not come with them."""
    for node in program.every(ast.expr):
        sides: list[ast.expr] = []
        if is_op(node, ast.Sub):
            sides = [node.left, node.right]
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq):
            sides = [node.left, node.comparators[0]]
        elif isinstance(node, ast.Call) and re.search(r"_score$|_matrix$|_report$|_error$|_curve$", callee_of(node)):
            sides = node.args[:2]
        names = [stem_of(unscaled(one)) for one in sides]
        for one, other in itertools.permutations(names, 2):
            if one in results and other not in results and LABELS.search(other):
                yield node
