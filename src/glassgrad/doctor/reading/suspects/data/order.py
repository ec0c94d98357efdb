"""Suspects about loaders, batches, splits, pairs, and copies of data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.names import named
from glassgrad.doctor.reading.nodes import names_in, within
from glassgrad.doctor.reading.program import Function, Loop, Program, argument, constant, number, place_of
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.data.roles import (
    HELD_OUT,
    TRAIN,
    are_in_rows,
    is_drawn,
    loaders,
    shuffles,
    shuffles_first,
    training_loops,
    trains,
)
from glassgrad.doctor.reading.suspects.form import look_at, suspects, suspects_each, suspects_rows
from glassgrad.doctor.reading.suspects.lookup import assigned, assignments, source, stem_of, targets_of, text, words_in

_SAME = named("float double tensor as_tensor from_numpy to cpu numpy tolist DoubleTensor FloatTensor array asarray")
_BATCH = re.compile(r"batch|(^|_)bs(_|$|z)", re.IGNORECASE)
_TRUTH = re.compile(r"^(true_?)?(w|weights?|cent(er|re)s?|means|protos?|prototypes|templates|basis|coef\w*|w_true)$")
_ORDERS = named("randperm permutation shuffle permuted")
_GROUPS = re.compile(
    r"(^|_)(subject|patient|speaker|person|people|writer|user|participant|recording|session)s?(_|$)", re.IGNORECASE
)
_CHANGES = re.compile(r"augment|(^|_)aug(s|_|$)|(^|_)(train|training)(_|$)", re.IGNORECASE)


# --- order ---


@suspects_rows("order drawn and never used", assignments)
def _unused_order(program: Program, target: ast.expr, value: ast.expr, node: ast.Assign) -> Iterator[Spot]:
    """Find `order = randperm(n)` and `rows = order[a:b]` whose name nothing reads."""
    drawn = program.called(value) in _ORDERS
    part = isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice) and bool(program.loops(node))
    rows = part and re.search(r"perm|order|shuf|indices|idx", stem_of(value))
    if isinstance(target, ast.Name) and (drawn or rows):
        around = program.around(node)
        uses = [one for one in within(around, ast.Name) if one.id == target.id]
        if all(isinstance(one.ctx, ast.Store) for one in uses):
            yield look_at(node, name=target.id)


@suspects("batches in a fixed order")
def _fixed(program: Program) -> Iterator[Spot]:
    """Find a training on slices `x[i : i + n]`, or on a loader without shuffle, in a script that draws no order."""
    if shuffles(program):
        return
    for loop in training_loops(program):
        begins = names_in(loop.target) if isinstance(loop, ast.For) else ()
        lowest = [one.lower for one in within(loop, ast.Slice) if one.lower is not None]
        slices = [one for one in lowest if words_in(one) & set(begins)]
        if slices:
            yield spot(loop, text=shown(loop.iter) if isinstance(loop, ast.For) else "")
    for call, name in loaders(program):
        if not HELD_OUT.search(f"{name} {stem_of(argument(call, 'dataset', 0))}") and not _is_ordered(call):
            yield look_at(call)


def _is_ordered(call: ast.Call) -> bool:
    """Tell whether a loader gets a sampler or options that are not seen here."""
    return any(one.arg in {None, "sampler", "batch_sampler"} for one in call.keywords)


@suspects("classes in a row")
def _rows_of_classes(program: Program) -> Iterator[Spot]:
    """Find loaders without shuffle, orders by `arange` and cuts, where the examples lie class after class."""
    if not are_in_rows(program):
        return
    for call, name in loaders(program):
        shuffle = constant(argument(call, "shuffle", 2))
        if HELD_OUT.search(f"{name} {stem_of(argument(call, 'dataset', 0))}"):
            continue
        if shuffle is not True and not _is_ordered(call):
            yield look_at(call)
    for target, value, node in assigned(program.tree):
        if program.called(value) in {"arange", "list"} and re.search(r"order|indices|idx|perm", stem_of(target)):
            yield look_at(node)
    if not shuffles_first(program):
        yield from (look_at(node) for node in dict.fromkeys(one[0] for one in _cuts(program)))


@suspects_each("rows of a batch miscounted", ast.For)
def _miscounted(program: Program, loop: ast.For) -> Iterator[Spot]:
    """Find `x[i : i + n]` where i counts batches, and `x[i * n : ...]` where i counts rows."""
    name, given = stem_of(loop.target), loop.iter
    if not name or not isinstance(given, ast.Call) or program.called(given) not in {"range", "trange"}:
        return
    for part in within(loop, ast.Slice):
        if _is_miscounted(part, given, name):
            yield spot(program.statement(part), loop, text=shown(part), loop=shown(given))
            break


def _is_miscounted(part: ast.Slice, given: ast.Call, name: str) -> bool:
    """Tell whether a slice takes batches for rows, or rows for batches, of what `range(...)` counts."""
    lower = text(part.lower)
    upper = text(part.upper)
    if len(given.args) == 3:
        return re.fullmatch(rf"{name} \* \w+|\w+ \* {name}", lower) is not None
    batches = len(given.args) == 1 and re.search(r"//|batches|n_steps|num_steps", text(given.args[0]))
    return bool(batches) and lower == name and "*" not in upper and _BATCH.search(upper) is not None


@suspects_each("same rows in every step", training_loops)
def _same_rows(program: Program, loop: Loop) -> Iterator[Spot]:
    """Find `x[:batch_size]` in a training loop."""
    for part in within(loop, ast.Subscript):
        rows = part.slice.elts[0] if isinstance(part.slice, ast.Tuple) else None
        rows = part.slice if rows is None else rows
        if not isinstance(rows, ast.Slice) or rows.upper is None:
            continue
        first = rows.lower is None or number(rows.lower) == 0
        shuffled = any(stem_of(part) in words_in(one) for one in program.calls_of(".shuffle"))
        again = _comes_anew(program, part) or any(stem_of(target) == stem_of(part) for target, _, _ in assigned(loop))
        drawn = again or not stem_of(part) or re.search(r"perm|order|idx|indices", stem_of(part))
        if first and not drawn and not shuffled and _BATCH.search(stem_of(rows.upper)):
            yield look_at(part)


def _comes_anew(program: Program, part: ast.Subscript) -> bool:
    """Tell whether each round of a loop has another tensor, as in `for batch in loader: batch.y[:n]`."""
    root: ast.AST = part
    while isinstance(root, ast.Subscript | ast.Attribute):
        root = root.value
    sets = (one for loop in program.loops(part)[:1] for one in within(loop, ast.Name))
    return isinstance(root, ast.Name) and any(one.id == root.id and isinstance(one.ctx, ast.Store) for one in sets)


# --- splits ---


def _cuts(program: Program) -> list[tuple[ast.Assign, str, str, ast.Slice]]:
    """Return `train = data[:k]`, `test = data[k:]`: statement, name, the text of the data, slice."""
    found = []
    for target, value, node in assigned(program.tree):
        rows = value.slice if isinstance(value, ast.Subscript) else None
        rows = rows.elts[0] if isinstance(rows, ast.Tuple) else rows
        name = text(target)
        if not isinstance(value, ast.Subscript) or not isinstance(rows, ast.Slice):
            continue
        if (rows.lower is not None or rows.upper is not None) and (TRAIN.search(name) or HELD_OUT.search(name)):
            found.append((node, name, text(value.value), rows))
    return found


@suspects("both parts hold the same rows")
def _overlap(program: Program) -> Iterator[Spot]:
    """Find `train = data[:800]` beside `test = data[700:]`, `data[:n]` twice, or cuts at two different numbers."""
    cuts = _cuts(program)
    for node, name, base, rows in cuts:
        others = [one for one in cuts if one[2] == base and one[1] != name and TRAIN.search(one[1])]
        for other, _, _, theirs in others if not TRAIN.search(name) else ():
            ends = [text(one) for one in (rows.lower, rows.upper, theirs.lower, theirs.upper)]
            low, high, first, until = ends
            if (low, high) == (first, until) or (not low and not first) or (not high and not until):
                yield look_at(node, other, other=shown(other))
            elif not first and low and not high and low != until and not low.startswith("-"):
                numbers = number(rows.lower), number(theirs.upper)
                known = None not in numbers
                if (known and (numbers[0] or 0) < (numbers[1] or 0)) or (
                    not known and isinstance(rows.lower, ast.Name) and "+" not in until
                ):
                    yield look_at(node, other, other=shown(other))
    for target, value, node in assigned(program.tree):
        names = [text(target), text(value) if isinstance(value, ast.Name | ast.Attribute) else ""]
        if HELD_OUT.search(names[0]) and TRAIN.search(names[1]) and not TRAIN.search(names[0]):
            yield look_at(node, other=names[1])


@suspects("both parts drawn on their own")
def _drawn_twice(program: Program) -> Iterator[Spot]:
    """Find `train = choice(n, 800)` beside `test = choice(n, 200)`."""
    draws = {"choice", "sample", "randperm", "permutation", "randint", "integers"}
    drawn = [(one, targets_of(program, one)) for one in program.calls if program.called(one) in draws and one.args]
    for call, name in drawn:
        others = [one for one, target in drawn if TRAIN.search(target) and not HELD_OUT.search(target)]
        same = [one for one in others if text(one.args[0]) == text(call.args[0]) and one.lineno < call.lineno]
        if same and HELD_OUT.search(name) and not TRAIN.search(name) and not isinstance(call.args[0], ast.Constant):
            yield look_at(call, same[0], other=shown(same[0]))


@suspects("cut without a shuffle")
def _cut(program: Program) -> Iterator[Spot]:
    """Find `train, test = data[:k], data[k:]` in a script that draws no order."""
    cuts = _cuts(program)
    held = [one for one in cuts if HELD_OUT.search(one[1])]
    timed = r"series|window|horizon|forecast|look_?back|seq_len|corpus|text"
    series = any(re.search(timed, one) for one in words_in(program.tree))
    subsets = [one for one in program.calls_of("Subset") if "range(" in text(one)]
    subsets = [one for one in subsets if TRAIN.search(targets_of(program, one))]
    if not shuffles_first(program) and not series:
        yield from (look_at(one) for one in subsets)
    if held and len(cuts) > len(held) and not shuffles_first(program) and not series:
        yield from (look_at(node) for node in dict.fromkeys(one[0] for one in cuts))


@suspects("related examples split at random")
def _related(program: Program) -> Iterator[Spot]:
    """Find a random split of windows that overlap, or of several examples of a person."""
    what = "windows that overlap" if _has_windows(program) else ""
    if not what and any(_GROUPS.search(one) for one in words_in(program.tree)):
        what = "examples of the same person or recording"
    if not what or re.search(r"[Gg]roup(Shuffle|K|_k)", ast.dump(program.tree)):
        return
    for call in program.calls:
        name = program.called(call)
        split = name in {"random_split", "train_test_split"}
        orders = name in {"randperm", "permutation", "shuffle"} and not program.loops(call)
        if orders and not trains(program, program.statement(call)):
            around = program.around(call)
            held = any(HELD_OUT.search(one) for one in words_in(around))
            split = held and not any(_GROUPS.search(text(one)) for one in call.args)
        if split:
            yield look_at(call, what=what)


def _has_windows(program: Program) -> bool:
    """Tell whether a script cuts windows `x[i : i + n]` at steps below their length, outside of a training."""
    for node in program.every(ast.Slice):
        if isinstance(node.upper, ast.BinOp) and isinstance(node.lower, ast.Name):
            loops = program.loops(node)
            listed = any(isinstance(one, ast.ListComp) for one in program.outward(node))
            item = getattr(program.function(node), "name", "") == "__getitem__"
            starts = text(node.upper).startswith(node.lower.id)
            if not starts or not (listed or item or loops):
                continue
            if not any(trains(program, one) for one in loops) and not _BATCH.search(text(node.upper)):
                return True
    return False


_OF_BOTH = re.compile(r"\.dataset\.(transforms?|augment\w*|train\w*)$")


@suspects("both parts share the augmentation")
def _shared(program: Program) -> Iterator[Spot]:
    """Find `random_split` of a data set that changes its examples at random, or else `.dataset.transform = ...`."""
    sets = [one for target, _, one in assigned(program.tree) if _OF_BOTH.search(text(target))]
    if sets:
        yield from (spot(one, text="the split", made=shown(one)) for one in sets)
        return
    for call in program.calls:
        given = argument(call, "dataset", 0) if program.called(call) == "random_split" else None
        made = program.written(given)
        owner = program.classes.get(program.called(made)) if made is not None else None
        item = owner.methods.get("__getitem__") if owner is not None else None
        random = item is not None and is_drawn(program, item)
        apart = re.search(r"Subset\([^\n]*\.indices", source(program))  # the places of one part, of other data
        if (
            isinstance(made, ast.Call)
            and not apart
            and (random or any(_augments(program, one) for one in made.keywords))
        ):
            yield look_at(call, made, made=shown(made))


def _augments(program: Program, given: ast.keyword) -> bool:
    """Tell whether an argument switches an augmentation on: `augment=True`, `transform=train_transform`."""
    on = constant(given.value) is True and _CHANGES.search(given.arg or "")
    changes = re.search(r"train|aug|random|flip|crop", text(given.value), re.IGNORECASE)
    return bool(on or (changes and "transform" in (given.arg or "")))


@suspects_each("held-out data made like training data", ast.Call)
def _like_training(program: Program, call: ast.Call) -> object:
    """Find `val_set = Data(..., augment=True)`, `train=True` and `transform=train_transform`."""
    name = targets_of(program, call)
    held = HELD_OUT.search(name) and not TRAIN.search(name)
    given = [one for one in call.keywords if _augments(program, one)]
    names = [one for one in call.args if re.search(r"train_?(tf|transform|aug)", stem_of(one))]
    odd = held and (given or names) and program.called(call)[:1].isupper()
    return odd and look_at(call, given=text(given[0].value if given else names[0]))


@suspects("two loaders of one data set")
def _one_set(program: Program) -> Iterator[Spot]:
    """Find a loader for validation whose data set is that of the loader for training."""
    made = loaders(program)
    for call, name in made:
        data = text(given) if (given := argument(call, "dataset", 0)) is not None else ""
        split = [one for one in program.calls if program.called(one) in {"random_split", "Subset"} and one.args]
        whole = [one for one in split if text(one.args[0]) == data]
        others = [it for it, _ in made if it is not call and data]
        same = whole or [it for it in others if text(it.args[0] if it.args else it) == data]
        if not HELD_OUT.search(name) or HELD_OUT.search(data):
            continue
        if not TRAIN.search(name) and same and not _is_ordered(call):
            yield look_at(call, same[0], data=data)


@suspects("same seed for both parts")
def _same_seed(program: Program) -> Iterator[Spot]:
    """Find `train = make(9, seed=0)` beside `test = make(9, seed=0)`, and a fixed seed in what makes both."""
    for name in {program.called(one) for one in program.calls} & {*program.functions, *program.classes}:
        calls = [(one, targets_of(program, one)) for one in program.calls_of(name)]
        first = next((one for one, target in calls if TRAIN.search(target) and not HELD_OUT.search(target)), None)
        both = next((one for one, target in calls if HELD_OUT.search(target) and TRAIN.search(target)), None)
        function = program.functions.get(name) or program.method(program.classes.get(name), "__init__")
        place = place_of(function, "seed") - (name in program.classes) if function is not None else -1
        for call, target in calls if first is not None else ():
            seeds = [argument(one, "seed", place) for one in (call, first) if one is not None]
            known = [constant(one) for one in seeds]
            if HELD_OUT.search(target) and not TRAIN.search(target) and known[0] is not None and known[0] == known[1]:
                yield look_at(call, seed=f"seed {known[0]}")
        if function is not None and (both or first) is not None and any(HELD_OUT.search(it) for _, it in calls):
            yield from _seeded(program, function)


_SEEDS = named("manual_seed default_rng RandomState seed")


def _seeded(program: Program, function: Function) -> Iterator[Spot]:
    """Yield the only seed in a function, a number, if all its random numbers follow it."""
    calls = within(function, ast.Call)
    made = [one for one in calls if program.called(one) in _SEEDS and one.args and constant(one.args[0]) is not None]
    if len(made) != 1 or any(re.search(r"seed|rng|gen", one.arg) for one in function.args.args):
        return
    name = targets_of(program, made[0])
    draws = [one for one in calls if is_drawn(program, one) and made[0] not in ast.walk(one)]
    own = [one for one in draws if name and name in words_in(one)]
    if draws and (not name or len(own) == len(draws)):
        yield look_at(made[0], seed=f"seed {constant(made[0].args[0])}")


@suspects("another rule behind each part")
def _other_truth(program: Program) -> Iterator[Spot]:
    """Find a function that draws true weights or centres itself and makes both the training and the test data."""
    for name, function in program.functions.items():
        targets = [targets_of(program, one) for one in program.calls_of(name)]
        if not any(map(TRAIN.search, targets)) or not any(map(HELD_OUT.search, targets)):
            continue
        for target, value, node in assigned(function):
            truth = _TRUTH.search(stem_of(target))
            fresh = not re.search(r"RandomState|default_rng|manual_seed", text(function))
            fresh = fresh and not program.loops(node)
            counts = {one.arg for one in function.args.args}
            of_each = any(stem_of(one) in counts for call in ast.walk(value) for one in getattr(call, "args", ())[:1])
            if truth and not of_each and fresh and is_drawn(program, value):
                yield look_at(node, function=name)


@suspects("copies made before the split")
def _copied(program: Program) -> Iterator[Spot]:
    """Find `x = cat([x, x[rare]])` before a split."""
    splits = [one for one in program.calls if program.called(one) in {"random_split", "train_test_split"}]
    ends = [one.lineno for one in splits] + [one[0].lineno for one in _cuts(program)]
    for target, value, node in assigned(program.tree):
        joins = program.called(value) in {"cat", "concatenate", "vstack", "hstack", "repeat", "append"}
        own = isinstance(target, ast.Name) and isinstance(value, ast.Call) and text(value).count(target.id) > 1
        if joins and own and not program.loops(node) and any(0 < line - node.lineno < 12 for line in ends):
            yield look_at(node)


# --- samplers ---


@suspects_each("sampler with a weight for each class", ast.Call)
def _class_weights(program: Program, call: ast.Call) -> Iterator[Spot]:
    """Find `WeightedRandomSampler(class_weights, ...)`, whose weights no labels index, and weights that are counts."""
    given = argument(call, "weights", 0) if program.called(call) == "WeightedRandomSampler" else None
    made = program.written(given)
    if given is None or made is None:
        return
    bare = made
    while isinstance(bare, ast.Call) and program.operand(bare) is not None and program.called(bare) in _SAME:
        bare = program.operand(bare) or bare
    said = text(made)
    indexed = re.search(r"\[|gather|index_select|take", said)
    drawn = bare.elt if isinstance(bare, ast.ListComp) else bare
    counts = isinstance(drawn, ast.Subscript) and re.search(r"count|freq|hist|bincount", _source(program, drawn))
    if not indexed or (isinstance(given, ast.Name) and re.search(r"class", given.id)):
        yield look_at(call, what="one weight for each class, where it takes one for each example")
    elif counts and not re.search(r"1(\.0)? /|reciprocal|weight|\*\* -", _source(program, drawn)):
        both: tuple[ast.expr | ast.stmt, ...] = (call, program.statement(made))
        what = "the counts: it draws frequent classes more often"
        yield from (spot(one, text=shown(call), what=what) for one in both)


def _source(program: Program, node: ast.expr) -> str:
    """Return the name of what an index selects from, and the text of its value."""
    held = node.value if isinstance(node, ast.Subscript) else node
    value = program.value_of(held)
    return f"{text(held)} {text(value) if value is not None else ''}".lower()


@suspects("classes balanced twice")
def _twice_balanced(program: Program) -> Iterator[Spot]:
    """Find a sampler with weights beside a loss with weights."""
    if not any(program.called(one) == "WeightedRandomSampler" for one in program.calls):
        return
    for call in program.calls:
        given = [one for one in call.keywords if one.arg in {"weight", "pos_weight"} and constant(one.value) is None]
        if given and re.search(r"loss|entropy", program.called(call), re.IGNORECASE):
            yield look_at(call)
