"""Suspects about pairs that come apart: shuffled, ordered, filtered, listed or augmented each for itself."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.names import named
from glassgrad.doctor.reading.nodes import indices, is_name, is_op, method_of, names_in, within
from glassgrad.doctor.reading.program import FUNCTIONS, Function, Program, argument, constant
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.data.roles import LABELS, is_drawn, loaders
from glassgrad.doctor.reading.suspects.form import look_at, suspects, suspects_each, suspects_rows
from glassgrad.doctor.reading.suspects.lookup import (
    assigned,
    assignments,
    functions,
    source,
    stem_of,
    targets_of,
    text,
    words_in,
)
from glassgrad.doctor.reading.values import Loss, losses

_APART = named("shuffle permutation train_test_split sample resample choice randperm")
_LISTING = named("listdir glob iterdir scandir rglob iglob")
_FLIPS = frozenset({"fliplr", "flipud", "flip", "hflip", "vflip", "rot90", "roll", "rotate", "crop", "affine", "warp"})
_PLACES = re.compile(
    r"mask|msk|bbox|boxes|(^|_)box|keypoint|landmark|coord|(^|_)seg|heatmap|(^|_)(cx|cy|pts|points?|kps|angle|steering|heading)(_|$)",
    re.IGNORECASE,
)
_LOOSE = re.compile(r"noise|eps|rand|perm|order|idx|ind(ex|ices)|rows|^z$", re.IGNORECASE)
"""Names of numbers that belong to no example, and of orders."""
_RANDOM = re.compile(r"transform$|aug|crop|flip|rotat|jitter|warp|distort|shift", re.IGNORECASE)
_FIXED = re.compile(r"mask|target|label|val|test|resize|to_tensor|fliplr|np\.|torch\.|TF\.")


@suspects("two orders side by side")
def _two_orders(program: Program) -> Iterator[Spot]:
    """Find `zip(a, b)` of loaders that both shuffle."""
    shuffled = {name for call, name in loaders(program) if constant(argument(call, "shuffle", 2)) is True}
    for call in program.calls_of("zip"):
        if sum(text(one) in shuffled for one in call.args) > 1:
            yield look_at(call)


@suspects("inputs and labels drawn apart")
def _drawn_apart(program: Program) -> Iterator[Spot]:
    """Find two statements in a row that draw an order or a split: one of the inputs, one of the labels."""
    seeds = {"seed", "random_state", "generator"}
    found = [
        (call, targets_of(program, call) or " ".join(map(text, call.args)))
        for call in program.calls
        if program.called(call) in _APART
        and not seeds & {str(one.arg) for one in call.keywords}
        and program.names.full(call.func) != "random.choice"  # one of them, and no order
    ]
    for (first, one), (second, other) in itertools.pairwise(found):
        blocks = [program.parents.get(program.statement(call)) for call in (first, second)]
        near = blocks[0] is blocks[1] and 0 < second.lineno - first.lineno < 4
        labelled = [bool(LABELS.search(name)) for name in (one, other)]
        if near and one != other and sorted(labelled) == [False, True] and "seed" not in text(blocks[0] or second):
            yield look_at(second, first, other=shown(first))


@suspects_rows("one of a pair changed alone", assignments)
def _alone(program: Program, target: ast.expr, value: ast.expr, node: ast.Assign) -> Iterator[Spot]:
    """Find `x = x[order]`, `x = sorted(x)` and `x = [one for one in x if ...]` whose partner stays as it is."""
    function = program.function(node)
    if not isinstance(target, ast.Name) or (function is not None and function.name == "forward"):
        return
    if _reorders(program, target.id, value) or _filters(target.id, value):
        partner = _partner(program, node, target.id, stem_of(getattr(value, "slice", None)))
        if partner:
            yield look_at(node, partner=partner)


def _reorders(program: Program, name: str, value: ast.expr) -> bool:
    """Tell whether an expression is a variable in another order."""
    if isinstance(value, ast.Subscript):
        order = value.slice
        known = isinstance(order, ast.Name) and re.search(r"order|perm|sort|shuf", order.id) is not None
        turned = isinstance(order, ast.Slice) and constant(order.step) == -1
        return (known or turned) and name in words_in(value.value)
    ordering = program.called(value) in {"sorted", "flip", "roll", "flipud"} and isinstance(value, ast.Call)
    return ordering and isinstance(value, ast.Call) and stem_of(program.operand(value)) == name


def _filters(name: str, value: ast.expr) -> bool:
    """Tell whether an expression is a variable without some of its elements."""
    if isinstance(value, ast.Subscript) and stem_of(value) == name:
        index = value.slice
        return isinstance(index, ast.Compare | ast.UnaryOp) and not isinstance(constant(index), int)
    chosen = isinstance(value, ast.ListComp) and bool(value.generators[0].ifs)
    return chosen and isinstance(value, ast.ListComp) and stem_of(value.generators[0].iter) == name


def _partner(program: Program, node: ast.stmt, name: str, order: str) -> str:
    """Return the variable that goes with another into a call or a result, one of both labels, and is not set beside.

    What is set with the same `order`, wherever in the function, is in order too.
    """
    around = program.around(node)
    rows = [row for row in assigned(around) if abs(row[2].lineno - node.lineno) < 4]
    near = {stem_of(target) for target, value, _ in rows if stem_of(target) in words_in(value)}
    near |= {order, *(stem_of(target) for target, value, _ in assigned(around) if order and order in words_in(value))}
    for one in ast.walk(around):
        if isinstance(one, ast.Tuple | ast.Call) and one.lineno > node.lineno:
            functions = {it.func for it in within(one, ast.Call)}
            read = (it for it in within(one, ast.Name) if isinstance(it.ctx, ast.Load))
            names = dict.fromkeys(it.id for it in read if it not in functions)
            others = [it for it in names if bool(LABELS.search(it)) != bool(LABELS.search(name)) and it not in near]
            labels = [it for it in others if LABELS.search(it) or LABELS.search(name)]
            data = [it for it in labels if program.bindings(program.scope(node), it) or _given(around, it)]
            if name in names and data and (LABELS.search(data[0]) or len(names) == 2):
                return data[0]
    return ""


def _given(around: ast.AST, name: str) -> bool:
    given = isinstance(around, FUNCTIONS) and name in {one.arg for one in around.args.args}
    return given or isinstance(around, ast.Module)


@suspects("pair taken at two indices")
def _at_two(program: Program) -> Iterator[Spot]:
    for one in losses(program):
        yield from _indices(program, one)
    yield from _by_place(program)


def _by_place(program: Program) -> Iterator[Spot]:
    """Find `y[i : i + n]` beside `x[rows]`, where `rows = order[i : i + n]` and y is in its first order."""
    for target, value, statement in assignments(program):
        loops = program.loops(statement)
        cut = value.slice if isinstance(value, ast.Subscript) else None
        drawn = isinstance(cut, ast.Slice) and isinstance(value, ast.Subscript) and _is_order(program, value.value)
        if not isinstance(target, ast.Name) or not drawn or not loops or not isinstance(value, ast.Subscript):
            continue
        parts = [one for one in within(loops[0], ast.Subscript) if isinstance(one.ctx, ast.Load) and one is not value]
        mine = {text(one.value) for one in parts if is_name(one.slice, target.id)}
        order = text(value.value)
        for one in parts if mine else ():
            apart = text(one.slice) == text(cut) and isinstance(one.value, ast.Name) and text(one.value) not in mine
            sorts = [it for it in program.bindings(program.scope(one), text(one.value)) if order in text(it.value)]
            if apart and text(one.value) != order and not sorts and not re.search(_LOOSE, text(one.value)):
                yield spot(one, text=f"{min(mine)}[{target.id}]", other=shown(one))


def _is_order(program: Program, node: ast.expr) -> bool:
    """Tell whether a variable holds an order that is drawn, at once or by a shuffle in place."""
    drawn = program.called(program.value_of(node)) in {"randperm", "permutation"}
    return drawn or any(text(one.args[0]) == text(node) for one in program.calls_of(".shuffle") if one.args)


def _indices(program: Program, one: Loss) -> Iterator[Spot]:
    """Find `loss(model(x[rows]), y[i : i + n])`."""
    found: list[list[ast.Subscript]] = []
    for side in (one.input, one.target):
        parts = within(side, ast.Subscript) if side is not None else []
        parts = [it for it in parts if isinstance(it.value, ast.Name)]
        found.append([it for it in parts if not isinstance(it.slice, ast.Tuple | ast.Constant)])
    if len(found[0]) == len(found[1]) == 1:
        first, second = found[0][0], found[1][0]
        texts = [text(it.slice) for it in (first, second)]
        named = [stem_of(it.slice) for it in (first, second) if isinstance(it.slice, ast.Name)]
        row = any(re.search(r"idx|ind|rows|perm|order|batch", it) for it in named)
        if texts[0] != texts[1] and row:
            yield spot(one.call, text=shown(first), other=shown(second))


@suspects("paired by two listings")
def _listings(program: Program) -> Iterator[Spot]:
    """Find two listings of folders that nothing sorts, for files that belong together."""
    found = []
    for call in program.calls:
        outer = [program.called(one) for one in program.outward(call) if isinstance(one, ast.Call)]
        rows = assigned(program.statement(call))
        name = stem_of(next((one for one, value, _ in rows if call in ast.walk(value)), None))
        sorts = [*program.calls_of(".sort"), *program.calls_of("sorted")]
        later = any(stem_of(program.operand(one)) == name for one in sorts)
        if program.called(call) in _LISTING and name and "sorted" not in outer and not later:
            found.append((call, name))
    labelled = any(_PLACES.search(name) or LABELS.search(name) for _, name in found)
    if labelled and len({name for _, name in found}) > 1:
        yield from (look_at(call) for call, _ in found)


@suspects("labels in the order of another list")
def _joined(program: Program) -> Iterator[Spot]:
    """Find `cat([a, b])` beside `cat([zeros(len(b)), ones(len(a))])`, and `np.repeat(x, n)` beside `np.tile(y, n)`."""
    rows = [(node, value) for _, value, node in assigned(program.tree) if isinstance(value, ast.Call) and value.args]
    for (_, first), (node, second) in itertools.pairwise(rows):
        names = [program.called(one) for one in (first, second)]
        if set(names) in ({"repeat", "tile"}, {"repeat", "repeat_interleave"}):
            yield spot(node, text=shown(second), other=shown(first))
        lists = [one.args[0] for one in (first, second)]
        if not set(names) <= {"cat", "concatenate", "vstack", "hstack", "stack"}:
            continue
        if all(isinstance(one, ast.List) for one in lists):
            parts = [one.elts for one in lists if isinstance(one, ast.List)]
            order = [stem_of(one) for one in parts[0]]
            if len(order) == len(parts[1]) == 2 and all(order) and order[0] != order[1]:
                there = [[name for name in order if name in words_in(one)] for one in parts[1]]
                if there == [[order[1]], [order[0]]]:
                    yield spot(node, text=shown(second), other=shown(first))


@suspects_each("random change for each of a pair", functions)
def _each_of_pair(program: Program, function: Function) -> Iterator[Spot]:
    """Find `transform(image), transform(mask)`, and two conditions that draw, one for each: two draws."""
    yield from _coins(program, function)
    calls = [one for one in within(function, ast.Call) if len(one.args) == 1 and not one.keywords]
    calls.sort(key=lambda one: one.lineno)
    for first, second in itertools.combinations(calls, 2):
        name, given = text(first.func), [stem_of(one.args[0]) for one in (first, second)]
        random = text(second.func) == name and _RANDOM.search(name) and not _FIXED.search(name)
        places = [bool(_PLACES.search(one)) for one in given]
        if random and all(given) and places == [False, True] and second.lineno - first.lineno < 6:
            yield look_at(second, first, other=shown(first))


def _coins(program: Program, function: Function) -> Iterator[Spot]:
    """Yield the second of two conditions that draw, the first for an image and the second for its mask."""
    tests = [one for one in within(function, ast.If) if is_drawn(program, one.test)]
    for first, second in itertools.pairwise(sorted(tests, key=lambda one: one.lineno)):
        sets = [
            [stem_of(target) for one in test.body for target, value, _ in assigned(one) if _moves(program, value)]
            for test in (first, second)
        ]
        places = [[bool(_PLACES.search(one)) for one in names] for names in sets]
        if all(places) and not any(places[0]) and all(places[1]):
            yield spot(second, first, text=shown(second.test), other=shown(first.test))


@suspects_each("image moved without its label", functions)
def _unmoved(program: Program, function: Function) -> Iterator[Spot]:
    """Find a flip or a crop of an image in a function whose mask, boxes, points or angle stay as they are."""
    places = {one for one in words_in(function) if _PLACES.search(one) and not re.search(r"prob|^self", one)}
    for target, value, node in assigned(function) if places else ():
        if not _moves(program, value) or stem_of(target) not in words_in(value) or _PLACES.search(stem_of(target)):
            continue
        block = program.parents.get(node)
        around = block if isinstance(block, ast.If) else function
        others = [one for one, _, other in assigned(around) if one is not target and other.lineno >= node.lineno - 3]
        sets = {stem_of(it) for one in others for it in ast.walk(one)}
        sets |= {stem_of(one.target) for one in within(around, ast.AugAssign)}
        if not any(map(_PLACES.search, sets)) and not any(map(_PLACES.search, words_in(value))):
            yield look_at(node, places=min(places))


def _moves(program: Program, value: ast.expr) -> bool:
    """Tell whether an expression flips, turns, shifts or crops an array."""
    names = {program.called(one) for one in ast.walk(value)}
    return bool(names & _FLIPS) or "::-1" in text(value)


_COORDINATE = re.compile(r"^(?:[b-z]|grid_?|cell_?|cent(?:er|re)_?|box_?|\w+_)?([xy])(?:\d|[ci]|_\w+)?$")
_COLUMNS = {"col": "x", "cols": "x", "column": "x", "row": "y", "rows": "y"}


@suspects("place written at x, y")
def _places_turned(program: Program) -> Iterator[Spot]:
    """Find `label[cell_x, cell_y] = 1` beside `image[y0:y1, x0:x1]`, in a script with convolutions."""
    rows = [
        (one, list(itertools.pairwise(_side(part) or _side(program.written(part) or part) for part in indices(one))))
        for one in program.every(ast.Subscript)
    ]
    reads = next((one for one, order in rows if ("y", "x") in order), None)
    if reads is None or not re.search(r"[cC]onv\w*2d", source(program)):
        return
    for one, order in rows:
        made = program.written(one.value)
        pixels = method_of(made) == "load"  # of PIL, which takes x first
        if isinstance(one.ctx, ast.Store) and ("x", "y") in order and not pixels:
            yield look_at(one, reads, reads=shown(reads))


def _side(node: ast.expr) -> str:
    """Return "x" or "y" for an index whose variables are coordinates of that axis; empty for others."""
    known = ((one, _COORDINATE.match(one)) for one in names_in(node))
    found = {_COLUMNS.get(name, one.group(1) if one else "") for name, one in known} - {""}
    return found.pop() if len(found) == 1 else ""


_GIVEN = named("mask masks bboxes keypoints bbox boxes target label")
_SEGMENTED = re.compile(r"mask|segment|bbox|keypoint|landmark", re.IGNORECASE)
_RIGID = re.compile(r"flip|rotat|crop|affine|perspective|elastic|shift|transpose", re.IGNORECASE)


@suspects("image transformed without its mask")
def _transformed(program: Program) -> Iterator[Spot]:
    """Find `transform(image=image)["image"]` in a script with masks, boxes or points whose transforms move pixels."""
    script = source(program)
    if not _SEGMENTED.search(script) or not _RIGID.search(script):
        return
    for call in program.calls:
        keys = {one.arg for one in call.keywords}
        outer = program.parents.get(call)
        taken = isinstance(outer, ast.Subscript) and constant(outer.slice) == "image"
        name = program.called(call)
        if not taken or "image" not in keys or keys & _GIVEN or re.search(r"val|test|normali", name):
            continue
        function = program.function(call)
        given = [one for one in within(function or call, ast.Return) if one.value is not None]
        if any(isinstance(one.value, ast.Tuple) and len(one.value.elts) == 2 for one in given):
            yield look_at(call)


_POINTS = re.compile(r"(^|_)(pts|points?|kps|kpts?|keypoints?|landmarks?|joints?|pose)(_|s?$)", re.IGNORECASE)
_SWAPS = re.compile(r"flip_(pair|ind|idx|ord|perm|map)|swap|mirror_(ind|idx|pair|order|map)|symm|flipped_parts|pairs")


@suspects_rows("points mirrored without an exchange", assignments)
def _mirrored(program: Program, target: ast.expr, value: ast.expr, node: ast.Assign) -> object:
    """Find `points[:, 0] = width - points[:, 0]` where no later index exchanges left and right points."""
    name = stem_of(target)
    turned = is_op(value, ast.Sub) and name in words_in(value.right)
    if not turned or not isinstance(target, ast.Subscript) or not _POINTS.search(name):
        return False
    axis = indices(target)[-1]
    around = program.around(node)
    rows = [one for one, other, _ in assigned(around) if isinstance(other, ast.Subscript) and stem_of(other) == name]
    indexed = [one for one in rows if stem_of(one) == name]
    return constant(axis) == 0 and not indexed and not _SWAPS.search(text(around)) and look_at(node)


@suspects_rows("mixed inputs with single labels", assignments)
def _mixed(program: Program, target: ast.expr, value: ast.expr, node: ast.Assign) -> object:
    """Find `lam * x + (1 - lam) * x[order]` where nothing takes `y[order]`."""
    said = text(value)
    found = re.fullmatch(r"\(?(\w+)\)? \* (\w+) \+ \(1(?:\.0)? - \1\) \* \2(\[(\w+)\]|\.flip\(0\)|\.roll.*)", said)
    if found is None or LABELS.search(found[2]):
        return False
    around = text(program.around(node))
    others = re.findall(rf"(\w+){re.escape(found[3])}", around)
    return set(others) <= {found[2], stem_of(target)} and look_at(node)


@suspects("weights of a mixture exchanged")
def _weights(program: Program) -> Iterator[Spot]:
    """Find `lam * loss(out, y[order]) + (1 - lam) * loss(out, y)` beside `lam * x + (1 - lam) * x[order]`."""
    mixed = re.findall(r"\w*(?:lam|alpha|ratio)\w* \* (\w+) \+ \(1(?:\.0)? - \w+\) \* \1\[(\w+)\]", source(program))
    orders = {order for _, order in mixed}
    taken = [(one, value.slice) for one, value, _ in assigned(program.tree) if isinstance(value, ast.Subscript)]
    shuffled = {stem_of(one) for one, index in taken if stem_of(index) in orders}
    for node in program.every(ast.BinOp):
        if is_op(node, ast.Add) and mixed:
            found = re.match(r"(\w+) \* .*[,(] ?(\w+)(\[(\w+)\])?\)(\.mean\(\))? \+ \(1(?:\.0)? - \1\) \* ", text(node))
            if not found:
                continue
            if (found[2] in shuffled or found[4] in orders) and re.search(r"loss|crit|entropy|ce", text(node)):
                yield look_at(node)


@suspects("numbered files in the order of their letters")
def _listing(program: Program) -> Iterator[Spot]:
    """Find `sorted(os.listdir(folder))` beside files named by numbers without leading zeros."""
    plain = re.search(r"\{\w+\}\.\w{2,4}['\"]|str\(\w+\) \+ '\.", text(program.tree))
    for call in program.calls_of("sorted"):
        listed = re.search(r"listdir|glob|iterdir|scandir", text(call.args[0])) if call.args else None
        if plain and listed and not any(one.arg == "key" for one in call.keywords):
            yield look_at(call)
