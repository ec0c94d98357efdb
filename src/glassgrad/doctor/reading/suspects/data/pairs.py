"""Suspects about pairs that come apart: shuffled, ordered, filtered, listed or augmented each for itself."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.names import named
from glassgrad.doctor.reading.program import FUNCTIONS, Function, Program, argument, constant
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.data.roles import LABELS, assigned, is_drawn, loaders, targets_of, words_in
from glassgrad.doctor.reading.suspects.form import suspects, suspects_of
from glassgrad.doctor.reading.suspects.spelling import called, ident, operand, source
from glassgrad.doctor.reading.values import losses

_APART = named("shuffle permutation train_test_split sample resample choice randperm")
_LISTING = named("listdir glob iterdir scandir rglob iglob")
_FLIPS = frozenset({"fliplr", "flipud", "flip", "hflip", "vflip", "rot90", "roll", "rotate", "crop", "affine", "warp"})
_PLACES = re.compile(
    r"mask|msk|bbox|boxes|(^|_)box|keypoint|landmark|coord|(^|_)seg|heatmap|(^|_)(cx|cy|pts|points?|kps|angle|steering|heading)(_|$)",
    re.IGNORECASE,
)
_RANDOM = re.compile(r"transform$|aug|crop|flip|rotat|jitter|warp|distort|shift", re.IGNORECASE)
_FIXED = re.compile(r"mask|target|label|val|test|resize|to_tensor|fliplr|np\.|torch\.|TF\.")


@suspects("two orders side by side")
def _two_orders(program: Program) -> Iterator[Spot]:
    """Find `zip(a, b)` of loaders that both shuffle."""
    shuffled = {name for call, name in loaders(program) if constant(argument(call, "shuffle", 2)) is True}
    for call in program.calls_of("zip"):
        if sum(ast.unparse(one) in shuffled for one in call.args) > 1:
            yield spot(call, text=shown(call))


@suspects("inputs and labels drawn apart")
def _drawn_apart(program: Program) -> Iterator[Spot]:
    """Find two statements in a row that draw an order or a split: one of the inputs, one of the labels."""
    seeds = {"seed", "random_state", "generator"}
    found = [
        (call, targets_of(program, call) or " ".join(map(ast.unparse, call.args)))
        for call in program.calls
        if called(program, call) in _APART
        and not seeds & {str(one.arg) for one in call.keywords}
        and program.names.full(call.func) != "random.choice"  # one of them, and no order
    ]
    for (first, one), (second, other) in itertools.pairwise(found):
        blocks = [program.parents.get(program.statement(call)) for call in (first, second)]
        near = blocks[0] is blocks[1] and 0 < second.lineno - first.lineno < 4
        labelled = [bool(LABELS.search(name)) for name in (one, other)]
        if (
            near
            and one != other
            and sorted(labelled) == [False, True]
            and "seed" not in ast.unparse(blocks[0] or second)
        ):
            yield spot(second, first, text=shown(second), other=shown(first))


@suspects("one of a pair changed alone")
def _alone(program: Program) -> Iterator[Spot]:
    """Find `x = x[order]`, `x = sorted(x)` and `x = [one for one in x if ...]` whose partner stays as it is."""
    for target, value, node in assigned(program.tree):
        function = program.function(node)
        if not isinstance(target, ast.Name) or (function is not None and function.name == "forward"):
            continue
        if _reorders(program, target.id, value) or _filters(target.id, value):
            partner = _partner(program, node, target.id, ident(getattr(value, "slice", None)))
            if partner:
                yield spot(node, text=shown(node), partner=partner)


def _reorders(program: Program, name: str, value: ast.expr) -> bool:
    """Tell whether an expression is a variable in another order."""
    if isinstance(value, ast.Subscript):
        order = value.slice
        known = isinstance(order, ast.Name) and re.search(r"order|perm|sort|shuf", order.id) is not None
        turned = isinstance(order, ast.Slice) and constant(order.step) == -1
        return (known or turned) and name in words_in(value.value)
    ordering = called(program, value) in {"sorted", "flip", "roll", "flipud"} and isinstance(value, ast.Call)
    return ordering and isinstance(value, ast.Call) and ident(operand(program, value)) == name


def _filters(name: str, value: ast.expr) -> bool:
    """Tell whether an expression is a variable without some of its elements."""
    if isinstance(value, ast.Subscript) and ident(value) == name:
        index = value.slice
        return isinstance(index, ast.Compare | ast.UnaryOp) and not isinstance(constant(index), int)
    chosen = isinstance(value, ast.ListComp) and bool(value.generators[0].ifs)
    return chosen and isinstance(value, ast.ListComp) and ident(value.generators[0].iter) == name


def _partner(program: Program, node: ast.stmt, name: str, order: str) -> str:
    """Return the variable that goes with another into a call or a result, one of both labels, and is not set beside.

    What is set with the same `order`, wherever in the function, is in order too.
    """
    around = program.function(node) or program.tree
    rows = [row for row in assigned(around) if abs(row[2].lineno - node.lineno) < 4]
    near = {ident(target) for target, value, _ in rows if ident(target) in words_in(value)}
    near |= {order, *(ident(target) for target, value, _ in assigned(around) if order and order in words_in(value))}
    for one in ast.walk(around):
        if isinstance(one, ast.Tuple | ast.Call) and one.lineno > node.lineno:
            functions = {it.func for it in ast.walk(one) if isinstance(it, ast.Call)}
            read = (it for it in ast.walk(one) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Load))
            names = {it.id: it for it in read if it not in functions}
            others = [it for it in names if bool(LABELS.search(it)) != bool(LABELS.search(name)) and it not in near]
            labels = [it for it in others if LABELS.search(it) or LABELS.search(name)]
            data = [it for it in labels if program.bindings(program.scope(node), it) or _given(around, it)]
            if name in names and data and (LABELS.search(data[0]) or len(names) == 2):
                return data[0]
    return ""


def _given(around: ast.AST, name: str) -> bool:
    return isinstance(around, ast.Module) or (
        isinstance(around, FUNCTIONS) and name in {one.arg for one in around.args.args}
    )


@suspects("pair taken at two indices")
def _indices(program: Program) -> Iterator[Spot]:
    """Find `loss(model(x[rows]), y[i : i + n])`."""
    for one in losses(program):
        found: list[list[ast.Subscript]] = []
        for side in (one.input, one.target):
            parts = [it for it in ast.walk(side) if isinstance(it, ast.Subscript)] if side is not None else []
            found.append(
                [
                    it
                    for it in parts
                    if isinstance(it.value, ast.Name) and not isinstance(it.slice, ast.Tuple | ast.Constant)
                ]
            )
        if len(found[0]) == len(found[1]) == 1:
            first, second = found[0][0], found[1][0]
            texts = [ast.unparse(it.slice) for it in (first, second)]
            row = any(
                isinstance(it.slice, ast.Name) and re.search(r"idx|ind|rows|perm|order|batch", ident(it.slice))
                for it in (first, second)
            )
            if texts[0] != texts[1] and row:
                yield spot(one.call, text=shown(first), other=shown(second))


@suspects("paired by two listings")
def _listings(program: Program) -> Iterator[Spot]:
    """Find two listings of folders that nothing sorts, for files that belong together."""
    found = []
    for call in program.calls:
        outer = [called(program, one) for one in program.outward(call) if isinstance(one, ast.Call)]
        name = ident(
            next((one for one, value, _ in assigned(program.statement(call)) if call in ast.walk(value)), None)
        )
        later = any(
            ident(operand(program, one)) == name for one in program.calls_of(".sort") + program.calls_of("sorted")
        )
        if called(program, call) in _LISTING and name and "sorted" not in outer and not later:
            found.append((call, name))
    labelled = any(_PLACES.search(name) or LABELS.search(name) for _, name in found)
    if labelled and len({name for _, name in found}) > 1:
        yield from (spot(call, text=shown(call)) for call, _ in found)


@suspects("labels in the order of another list")
def _joined(program: Program) -> Iterator[Spot]:
    """Find `cat([a, b])` beside `cat([zeros(len(b)), ones(len(a))])`, and `np.repeat(x, n)` beside `np.tile(y, n)`."""
    rows = [(node, value) for _, value, node in assigned(program.tree) if isinstance(value, ast.Call) and value.args]
    for (_, first), (node, second) in itertools.pairwise(rows):
        names = [called(program, one) for one in (first, second)]
        if set(names) in ({"repeat", "tile"}, {"repeat", "repeat_interleave"}):
            yield spot(node, text=shown(second), other=shown(first))
        lists = [one.args[0] for one in (first, second)]
        if set(names) <= {"cat", "concatenate", "vstack", "hstack", "stack"} and all(
            isinstance(one, ast.List) for one in lists
        ):
            parts = [one.elts for one in lists if isinstance(one, ast.List)]
            order = [ident(one) for one in parts[0]]
            if len(order) == len(parts[1]) == 2 and all(order) and order[0] != order[1]:
                there = [[name for name in order if name in words_in(one)] for one in parts[1]]
                if there == [[order[1]], [order[0]]]:
                    yield spot(node, text=shown(second), other=shown(first))


@suspects("random change for each of a pair")
def _each_of_pair(program: Program) -> Iterator[Spot]:
    """Find `transform(image), transform(mask)`, and two conditions that draw, one for each: two draws."""
    for function in program.functions.values():
        yield from _coins(program, function)
        calls = [
            one for one in ast.walk(function) if isinstance(one, ast.Call) and len(one.args) == 1 and not one.keywords
        ]
        calls.sort(key=lambda one: one.lineno)
        for first, second in itertools.combinations(calls, 2):
            name, given = ast.unparse(first.func), [ident(one.args[0]) for one in (first, second)]
            random = ast.unparse(second.func) == name and _RANDOM.search(name) and not _FIXED.search(name)
            places = [bool(_PLACES.search(one)) for one in given]
            if random and all(given) and places == [False, True] and second.lineno - first.lineno < 6:
                yield spot(second, first, text=shown(second), other=shown(first))


def _coins(program: Program, function: Function) -> Iterator[Spot]:
    """Yield the second of two conditions that draw, the first for an image and the second for its mask."""
    tests = [one for one in ast.walk(function) if isinstance(one, ast.If) and is_drawn(program, one.test)]
    for first, second in itertools.pairwise(sorted(tests, key=lambda one: one.lineno)):
        sets = [
            [ident(target) for one in test.body for target, value, _ in assigned(one) if _moves(program, value)]
            for test in (first, second)
        ]
        places = [[bool(_PLACES.search(one)) for one in names] for names in sets]
        if all(places) and not any(places[0]) and all(places[1]):
            yield spot(second, first, text=shown(second.test), other=shown(first.test))


@suspects("image moved without its label")
def _unmoved(program: Program) -> Iterator[Spot]:
    """Find a flip or a crop of an image in a function whose mask, boxes, points or angle stay as they are."""
    for function in program.functions.values():
        places = {one for one in words_in(function) if _PLACES.search(one) and not re.search(r"prob|^self", one)}
        for target, value, node in assigned(function) if places else ():
            if not _moves(program, value) or ident(target) not in words_in(value) or _PLACES.search(ident(target)):
                continue
            block = program.parents.get(node)
            around = block if isinstance(block, ast.If) else function
            sets = {
                ident(it)
                for one, _, other in assigned(around)
                if other is not node
                for it in ast.walk(one)
                if other.lineno >= node.lineno - 3
            }
            sets |= {ident(one.target) for one in ast.walk(around) if isinstance(one, ast.AugAssign)}
            if not any(map(_PLACES.search, sets)) and not any(map(_PLACES.search, words_in(value))):
                yield spot(node, text=shown(node), places=min(places))


def _moves(program: Program, value: ast.expr) -> bool:
    """Tell whether an expression flips, turns, shifts or crops an array."""
    names = {called(program, one) for one in ast.walk(value)}
    return bool(names & _FLIPS) or "::-1" in ast.unparse(value)


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
        name = called(program, call)
        if not taken or "image" not in keys or keys & _GIVEN or re.search(r"val|test|normali", name):
            continue
        function = program.function(call)
        given = [one for one in ast.walk(function or call) if isinstance(one, ast.Return) and one.value is not None]
        if any(isinstance(one.value, ast.Tuple) and len(one.value.elts) == 2 for one in given):
            yield spot(call, text=shown(call))


_POINTS = re.compile(r"(^|_)(pts|points?|kps|kpts?|keypoints?|landmarks?|joints?|pose)(_|s?$)", re.IGNORECASE)
_SWAPS = re.compile(r"flip_(pair|ind|idx|ord|perm|map)|swap|mirror_(ind|idx|pair|order|map)|symm|flipped_parts|pairs")


@suspects("points mirrored without an exchange")
def _mirrored(program: Program) -> Iterator[Spot]:
    """Find `points[:, 0] = width - points[:, 0]` where no later index exchanges left and right points."""
    for target, value, node in assigned(program.tree):
        name = ident(target)
        turned = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub) and name in words_in(value.right)
        if not turned or not isinstance(target, ast.Subscript) or not _POINTS.search(name):
            continue
        axis = target.slice.elts[-1] if isinstance(target.slice, ast.Tuple) else target.slice
        around = program.function(node) or program.tree
        indexed = [
            one
            for one, other, _ in assigned(around)
            if ident(one) == name and isinstance(other, ast.Subscript) and ident(other) == name
        ]
        if constant(axis) == 0 and not indexed and not _SWAPS.search(ast.unparse(around)):
            yield spot(node, text=shown(node))


@suspects("mixed inputs with single labels")
def _mixed(program: Program) -> Iterator[Spot]:
    """Find `lam * x + (1 - lam) * x[order]` where nothing takes `y[order]`."""
    for target, value, node in assigned(program.tree):
        text = ast.unparse(value)
        found = re.fullmatch(r"\(?(\w+)\)? \* (\w+) \+ \(1(?:\.0)? - \1\) \* \2(\[(\w+)\]|\.flip\(0\)|\.roll.*)", text)
        if found is None or LABELS.search(found[2]):
            continue
        around = ast.unparse(program.function(node) or program.tree)
        others = re.findall(rf"(\w+){re.escape(found[3])}", around)
        if set(others) <= {found[2], ident(target)}:
            yield spot(node, text=shown(node))


@suspects("weights of a mixture exchanged")
def _weights(program: Program) -> Iterator[Spot]:
    """Find `lam * loss(out, y[order]) + (1 - lam) * loss(out, y)` beside `lam * x + (1 - lam) * x[order]`."""
    mixed = re.findall(r"\w*(?:lam|alpha|ratio)\w* \* (\w+) \+ \(1(?:\.0)? - \w+\) \* \1\[(\w+)\]", source(program))
    orders = {order for _, order in mixed}
    shuffled = {
        ident(one)
        for one, value, _ in assigned(program.tree)
        if isinstance(value, ast.Subscript) and ident(value.slice) in orders
    }
    for node in program.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and mixed:
            found = re.match(
                r"(\w+) \* .*[,(] ?(\w+)(\[(\w+)\])?\)(\.mean\(\))? \+ \(1(?:\.0)? - \1\) \* ", ast.unparse(node)
            )
            if (
                found
                and (found[2] in shuffled or found[4] in orders)
                and re.search(r"loss|crit|entropy|ce", ast.unparse(node))
            ):
                yield spot(node, text=shown(node))


@suspects("numbered files in the order of their letters")
def _listing(program: Program) -> Iterator[Spot]:
    """Find `sorted(os.listdir(folder))` beside files named by numbers without leading zeros."""
    plain = re.search(r"\{\w+\}\.\w{2,4}['\"]|str\(\w+\) \+ '\.", ast.unparse(program.tree))
    for call in program.calls_of("sorted"):
        listed = re.search(r"listdir|glob|iterdir|scandir", ast.unparse(call.args[0])) if call.args else None
        if plain and listed and not any(one.arg == "key" for one in call.keywords):
            yield spot(call, text=shown(call))


SUSPECTS = suspects_of(globals())
