"""Suspects about single examples: items of data sets, objects with two names, labels, columns, windows, words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.names import named
from glassgrad.doctor.reading.nodes import is_name, is_op, names_in, within
from glassgrad.doctor.reading.program import Class, Function, Program, constant, number
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.data.roles import HELD_OUT, LABELS, TRAIN, is_drawn, trains, uses_of
from glassgrad.doctor.reading.suspects.form import look_at, suspects, suspects_each, suspects_rows
from glassgrad.doctor.reading.suspects.lookup import assigned, assignments, source, stem_of, targets_of, text, words_in
from glassgrad.doctor.reading.values import losses

_LOST = named(
    "fliplr flipud flip rot90 roll clip transpose reshape squeeze expand_dims append delete concatenate sort where abs "
    "pad permutation swapaxes clamp cat stack resize cvtColor astype replace lower strip fillna dropna drop float "
    "long flip numpy repeat rename normalize"
)
_VIEWS = named("asarray from_numpy detach view numpy reshape flatten squeeze unsqueeze as_tensor ravel transpose")
_EDITS = named("add_ mul_ sub_ div_ fill_ clamp_ zero_ masked_fill_ copy_ normal_ uniform_ index_fill_")
_ONES = named("cosine_embedding_loss CosineEmbeddingLoss margin_ranking_loss MarginRankingLoss")
_ONES |= named("hinge_embedding_loss HingeEmbeddingLoss soft_margin_loss SoftMarginLoss")
_MADE_NEGATIVE = re.compile(
    r"2(\.0)? \* \w+.{0,20} - 1|\* 2(\.0)? - 1|, -1(\.0)?[,)\]]|-(torch|np|gg)\.ones|sign\(|-1(\.0)? if|else -1"
)
_LISTING = named("listdir glob iterdir scandir rglob iglob walk")


def _items(program: Program) -> Iterator[tuple[Class, Function, str]]:
    """Yield the data sets of a script: class, `__getitem__`, the name of its index."""
    for owner in program.classes.values():
        method = owner.methods.get("__getitem__")
        if method is not None and len(method.args.args) > 1:
            yield owner, method, method.args.args[1].arg


# --- items ---


@suspects_rows("item reads two indices", _items)
def _two_indices(program: Program, _: Class, method: Function, index: str) -> Iterator[Spot]:
    """Find `self.x[i]` beside `self.y[i // 2]` in `__getitem__`."""
    elsewhere = r"order|ind(ex|ices)|perm|rows|\bids?\b|keys|start|offset|map|len"
    found = [one for one in within(method, ast.Subscript) if text(one.value).startswith("self.")]
    found = [one for one in found if isinstance(one.ctx, ast.Load) and not isinstance(one.slice, ast.Slice)]
    found = [one for one in found if not re.search(elsewhere, stem_of(one))]
    plain = [one for one in found if text(one.slice) == index]
    other = [one for one in found if text(one.slice) != index and "self." not in text(one.slice)]
    other = [one for one in other if index in words_in(one.slice) or LABELS.search(stem_of(one))]
    names = {text(one.value) for one in plain}
    for one in other if plain else ():
        if text(one.value) not in names and not isinstance(one.slice, ast.Tuple):
            yield look_at(one, other=shown(plain[0]))


@suspects_rows("item without its index", _items)
def _no_index(program: Program, owner: Class, method: Function, index: str) -> object:
    """Find a `__getitem__` that does not read its index."""
    return index not in names_in(method) and spot(method, text=owner.node.name, index=index)


@suspects_rows("length of something else", _items)
def _length(program: Program, owner: Class, method: Function, _: str) -> object:
    """Find a `__len__` that counts classes or columns, or a part of the examples, in a class without windows."""
    given = owner.methods.get("__len__")
    result = given.body[-1] if given is not None else None
    value = result.value if isinstance(result, ast.Return) else None
    if value is None or any(isinstance(one, ast.Slice) for one in ast.walk(method)):
        return False
    said = text(value)
    part = is_op(value, ast.FloorDiv | ast.Sub | ast.Div)
    other = re.search(r"len\(self\.\w*(class|vocab|name|dim)\w*\)|shape\[[1-9-]|\[0\]\)", said)
    return (part or other or re.search(r"min\(", said)) and spot(value, text=said, owner=owner.node.name)


def _edits(scope: ast.AST, name: str) -> Iterator[ast.stmt | ast.expr]:
    """Yield the places that change the array of a variable in place: `x[...] = `, `x += `, `x.add_()`."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign):
            places = [one for one in node.targets if isinstance(one, ast.Subscript) and stem_of(one) == name]
            if any(not isinstance(constant(one.slice), str) for one in places):
                yield node
        elif (isinstance(node, ast.AugAssign) and stem_of(node.target) == name) or (
            isinstance(node, ast.Call) and re.fullmatch(rf"{name}\.({'|'.join(_EDITS)})", text(node.func))
        ):
            yield node


@suspects("stored example changed in place")
def _changed(program: Program) -> Iterator[Spot]:
    """Find `x = self.data[i]` and then `x += noise`, or the same with a slice in a training loop."""
    for _, method, index in _items(program):
        for target, value, _ in assigned(method):
            stored = _viewed(program, value)
            plain = isinstance(target, ast.Name) and not LABELS.search(target.id) and isinstance(stored, ast.Subscript)
            if plain and re.match(rf"self\..*\b{index}\b", text(stored)) and isinstance(target, ast.Name):
                yield from (look_at(one, stored=shown(stored)) for one in _edits(method, target.id))
            elif isinstance(target, ast.Tuple) and re.match(rf"self\.[\w.]+[\[(].*\b{index}\b", text(value)):
                names = [one.id for one in target.elts if isinstance(one, ast.Name)]
                reader = program.functions.get(getattr(getattr(value, "func", None), "attr", ""))
                if reader is not None and re.search(r"copy|clone|astype|float", text(reader)):
                    continue
                places = [one for name in names for one in _edits(method, name) if not _is_new(method, name, one)]
                yield from (look_at(one, stored=shown(value)) for one in places)
    for target, value, node in assigned(program.tree):
        loops = program.loops(node)
        rows = value if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name) else None
        sliced = rows is not None and isinstance(rows.slice, ast.Slice) and not _is_list(program, rows)
        if loops and sliced and isinstance(target, ast.Name) and trains(program, loops[0]):
            yield from (look_at(one, stored=shown(value)) for one in _edits(loops[0], target.id))


def _is_list(program: Program, rows: ast.Subscript) -> bool:
    """Tell whether the value that a slice selects from begins as a list, whose slices are copies."""
    bound = program.bindings(program.scope(rows), getattr(rows.value, "id", ""))
    return any(isinstance(one.value, ast.List | ast.ListComp) or program.called(one.value) == "list" for one in bound)


def _is_new(method: ast.AST, name: str, place: ast.AST) -> bool:
    """Tell whether a variable gets another value before a place."""
    known = [node for target, value, node in assigned(method) if stem_of(target) == name]
    return any(node.lineno < getattr(place, "lineno", 0) for node in known)


def _viewed(program: Program, value: ast.expr) -> ast.expr:
    """Return what a view shares its memory with: x of `x.view(-1)`, `np.asarray(x)` or `x[:]`."""
    while True:
        if isinstance(value, ast.Call) and program.called(value) in _VIEWS and program.operand(value) is not None:
            value = program.operand(value) or value
        elif isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
            value = value.value
        else:
            return value


@suspects_rows("second name of an array changed", assignments)
def _alias(program: Program, target: ast.expr, value: ast.expr, node: ast.Assign) -> Iterator[Spot]:
    """Find `noisy = clean` and a change of one of both in place, before the other is read."""
    source = _viewed(program, value)
    if not isinstance(source, ast.Name) or not isinstance(target, ast.Name) or source.id == target.id:
        return
    around = program.around(node)
    for name, other in ((target.id, source.id), (source.id, target.id)):
        for edit in _edits(around, name):
            behind = program.function(edit) is program.function(node) and edit.lineno > node.lineno
            loads = [one for one in within(around, ast.Name) if one.id == other]
            later = any(one.lineno > edit.lineno and isinstance(one.ctx, ast.Load) for one in loads)
            single = isinstance(edit, ast.AugAssign) and isinstance(edit.target, ast.Name)
            array = not single or (isinstance(edit, ast.AugAssign) and is_drawn(program, edit.value))
            fresh = any(one is not node and node.lineno < one.lineno <= edit.lineno for one in _sets(around, name))
            if behind and later and array and not fresh:
                yield look_at(edit, node, name=shown(node), other=other)


def _sets(scope: ast.AST, name: str) -> Iterator[ast.Assign]:
    """Yield the assignments of a variable."""
    yield from (node for target, _, node in assigned(scope) if is_name(target, name))


@suspects("one object many times")
def _same_object(program: Program) -> Iterator[Spot]:
    """Find `rows.append(row)` in a loop that changes a row made before it, and `[[]] * n`."""
    for call in program.calls_of(".append"):
        given = call.args[0] if call.args else None
        loops = program.loops(call)
        if not loops or not isinstance(given, ast.Name):
            continue
        around = program.around(call)
        sets = list(_sets(around, given.id))
        before = sets and all(one.lineno < loops[0].lineno for one in sets)
        fresh = {"zeros", "ones", "empty", "full", "arange", "zeros_like", "list", "dict"}
        made = before and (isinstance(sets[-1].value, ast.List | ast.Dict) or program.called(sets[-1].value) in fresh)
        grows = any(text(one.func) == f"{given.id}.append" for one in within(loops[0], ast.Call))
        if made and (grows or any(_edits(loops[0], given.id))):
            yield look_at(call, sets[-1], name=given.id)
    for node in program.every(ast.BinOp):
        if is_op(node, ast.Mult) and isinstance(node.left, ast.List):
            inner = node.left.elts[0] if len(node.left.elts) == 1 else None
            empty = isinstance(inner, ast.List | ast.Dict) and not text(inner)[1:-1]
            if empty or program.called(inner or node) in {"zeros", "ones", "empty", "defaultdict", "deque"}:
                yield look_at(node, name=targets_of(program, node))


@suspects("result of a function lost")
def _lost(program: Program) -> Iterator[Spot]:
    """Find `np.fliplr(image)`, `x.astype(...)` and `sorted(x)` on a line of their own."""
    for node in program.nodes:
        call = node.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
        if call is None or any(one.arg in {"inplace", "out"} for one in call.keywords):
            continue
        name, full = program.called(call), program.names.full(call.func)
        plain = not full and isinstance(call.func, ast.Name) and name == "sorted"
        library = plain or full.startswith(("numpy.", "torch.", "cv2."))
        owner = call.func.value if isinstance(call.func, ast.Attribute) and not full else None
        method = isinstance(owner, ast.Name | ast.Subscript)
        lists = name in {"append", "sort", "normalize"} and method
        lists |= (
            method and name == "resize" and not re.search(r"im(g|age)?s?$", stem_of(program.operand(call)))
        )  # NumPy's
        inside = program.function(node) is not None or program.loops(node)
        if not (library or method) or name not in _LOST | {"sorted"}:
            continue
        if not lists and inside and stem_of(program.operand(call)) != "self":
            yield look_at(call)


# --- labels ---


@suspects_each("classes numbered by chance", ast.expr)
def _by_chance(program: Program, node: ast.expr) -> Iterator[Spot]:
    """Find class numbers from `set(...)` or from a listing of a folder, without `sorted`."""
    name = "set" if isinstance(node, ast.SetComp) else program.called(node)
    if name not in _LISTING | {"set", "frozenset"}:
        return
    outer = [program.called(one) for one in program.outward(node) if isinstance(one, ast.Call)]
    names = targets_of(program, node)
    numbered = "enumerate" in outer or re.search(r"class|label|categ|kinds|names|vocab", names)
    sorts = "sorted" in outer or any(stem_of(program.operand(one)) in names for one in program.calls_of(".sort"))
    if sorts or not numbered:
        return
    if name in _LISTING and not re.search(r"files|paths", names):
        yield look_at(node, what="the order of a listing, which differs between folders and systems")
    elif name not in _LISTING and {"enumerate", "list"} & set(outer):
        yield look_at(node, what="the order of a set, which differs from run to run")


@suspects_each("classes numbered in each part", ast.expr | ast.stmt)
def _each_part(program: Program, node: ast.expr | ast.stmt) -> object:
    """Find a data set or a function that numbers classes by what it holds, and is used for several parts."""
    function = program.function(node)
    grows = isinstance(node, ast.Assign) and _is_next_number(node)
    if function is None or not (isinstance(node, ast.DictComp | ast.Call) or grows):
        return False
    uses = uses_of(program, function)
    name = program.called(node)
    given = text(node.generators[0].iter) if isinstance(node, ast.DictComp) else ""
    maps = "enumerate(" in given and not re.search(r"[A-Z]{3}", given)
    said = text(node) if name in {"factorize", "fit_transform", "unique"} else ""
    codes = re.search(r"ncoder|factorize|return_inverse", said)
    return len(uses) > 1 and (maps or codes or grows) and look_at(node, uses=str(len(uses)))


def _is_next_number(node: ast.Assign) -> bool:
    """Tell whether a statement is `numbers[name] = len(numbers)`."""
    return re.fullmatch(r"(.+)\[.+\] = len\(\1\)", text(node)) is not None


@suspects_rows("classes in the order of their appearance", assignments)
def _by_appearance(program: Program, target: ast.expr, value: ast.expr, node: ast.Assign) -> object:
    """Find `list(dict.fromkeys(names))` or `list(set(names))` that numbers classes, in code that makes both parts."""
    function, said = program.function(node), text(value)
    unique = re.search(r"dict\.fromkeys\(|^(list|tuple)\((set|Counter)\(|OrderedDict\.fromkeys\(", said)
    frame = re.search(r"\b(df|frame|table|data)\w*(\[.+\]|\.\w+)\.unique\(\)|\bpd\.(unique|factorize)\(", said)
    if function is None or not (unique or frame) or "sort" in said or isinstance(value, ast.IfExp | ast.BoolOp):
        return False
    name, outer = text(target), program.parents.get(node)
    around = text(function)
    numbers = rf"enumerate\({re.escape(name)}\)|(?<![\w.]){re.escape(name)}\.index\(|zip\({name}, range"
    counts = re.search(numbers, around)
    codes = "factorize" in said
    ordered = re.search(rf"{re.escape(name)}\.sort\(|{re.escape(name)} = sorted\(", around)
    odd = (counts or codes) and not ordered and not isinstance(outer, ast.If) and _makes_both(program, function)
    return odd and look_at(node)


def _makes_both(program: Program, function: Function) -> bool:
    """Tell whether a function, or the class that it initialises, makes both the training and the held-out data."""
    uses = uses_of(program, function)
    said = [f"{targets_of(program, one)} {text(one)}" for one in uses]
    kinds = [(bool(TRAIN.search(one)), bool(HELD_OUT.search(one))) for one in said]
    return (True, False) in kinds and (False, True) in kinds


@suspects("label moved by one")
def _moved(program: Program) -> Iterator[Spot]:
    """Find `label - 1` and `label + 1` in a data set or in a loss."""
    inside = {id(node) for _, method, _ in _items(program) for node in ast.walk(method)}
    coded: list[ast.expr] = [one for one in program.calls if program.called(one) == "one_hot"]
    coded += [one for one in program.every(ast.Subscript) if program.called(one.value) == "eye"]
    inside |= {id(node) for one in coded for node in ast.walk(one)}
    inside |= {id(node) for one in losses(program) if one.target is not None for node in ast.walk(one.target)}
    for node in program.every(ast.BinOp):
        if is_op(node, ast.Add | ast.Sub) and number(node.right) == 1:
            yield from [look_at(node)] if id(node) in inside and LABELS.search(stem_of(node.left)) else ()


@suspects("negatives coded 0")
def _coded(program: Program) -> Iterator[Spot]:
    """Find a loss that takes labels 1 and -1, in a script whose labels have no -1."""
    if _MADE_NEGATIVE.search(source(program)):
        return
    for call in program.calls:
        name = program.called(call)
        if name in _ONES and (call.args or name[0].isupper()):
            yield look_at(call)


# --- columns, windows, words ---


@suspects("target among the features")
def _among(program: Program) -> Iterator[Spot]:
    """Find `x = data[:, 1:]` beside `y = data[:, -1]`."""
    columns = [
        (target, value, node)
        for target, value, node in assigned(program.tree)
        if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Tuple) and len(value.slice.elts) == 2
    ]
    for target, value, node in columns:
        column = number(value.slice.elts[1]) if isinstance(value.slice, ast.Tuple) else None
        for other, theirs, statement in columns if column is not None and LABELS.search(stem_of(target)) else ():
            rows = theirs.slice.elts[1] if isinstance(theirs.slice, ast.Tuple) else None
            same = text(theirs.value) == text(value.value) and not LABELS.search(stem_of(other))
            if same and isinstance(rows, ast.Slice) and column is not None and _covers(rows, column):
                yield look_at(statement, node, target=shown(node))
    yield from _whole_table(program, columns)
    yield from _stacked(program)


def _whole_table(program: Program, columns: list[tuple[ast.expr, ast.Subscript, ast.Assign]]) -> Iterator[Spot]:
    """Yield `x = data` beside `y = data[:, -1]`."""
    labels = [row for row in columns if isinstance(row[0], ast.Name) and LABELS.search(row[0].id)]
    tables = {text(value.value): node for _, value, node in labels}
    for target, value, node in assigned(program.tree):
        said = re.sub(r"\.(values|copy\(\)|astype\(.*\))$|^torch\.tensor\(|\)$", "", text(value))
        if said in tables and not LABELS.search(stem_of(target)) and isinstance(value, ast.Name):
            yield look_at(node, tables[said], target=shown(tables[said]))


def _stacked(program: Program) -> Iterator[Spot]:
    """Yield `x = column_stack([a, b, c])` beside `y = c`."""
    kept = {
        value.id: node
        for target, value, node in assigned(program.tree)
        if isinstance(value, ast.Name) and LABELS.search(stem_of(target))
    }
    for target, value, node in assigned(program.tree):
        given = value.args[0] if isinstance(value, ast.Call) and value.args else None
        joins = program.called(value) in {"column_stack", "stack", "hstack", "concatenate", "cat", "vstack"}
        if joins and isinstance(given, ast.List | ast.Tuple) and not LABELS.search(stem_of(target)):
            among = [one.id for one in given.elts if isinstance(one, ast.Name) and one.id in kept]
            yield from (look_at(node, kept[one], target=shown(kept[one])) for one in among)


def _covers(rows: ast.Slice, column: float) -> bool:
    """Tell whether a slice of columns holds one, as far as both are counted from the same end."""
    low, high = number(rows.lower), number(rows.upper)
    if column < 0:
        return rows.upper is None and (low is None or low >= 0 or low <= column)
    starts = rows.lower is None or (low is not None and 0 <= low <= column)
    return starts and (rows.upper is None or (high is not None and (high > column or high < 0)))


@suspects("window and target do not meet")
def _window(program: Program) -> Iterator[Spot]:
    """Find `x[i : i + n]` whose target is not `x[i + n]`: one more, one less, or the window itself."""
    windows: dict[ast.AST, list[ast.Subscript]] = {}
    for node in program.every(ast.Subscript):
        if isinstance(node.ctx, ast.Load) and not any(trains(program, one) for one in program.loops(node)):
            windows.setdefault(program.around(node), []).append(node)
    for found in windows.values():
        for one in found:
            rows = one.slice
            if not isinstance(rows, ast.Slice) or not isinstance(rows.upper, ast.BinOp) or rows.lower is None:
                continue
            end, base = text(rows.upper), text(one.value)
            for other in found:
                index = text(other.slice)
                beside = text(other.value) == base and abs(other.lineno - one.lineno) < 3 and other is not one
                same = (
                    index == text(rows)
                    and LABELS.search(targets_of(program, other))
                    and not LABELS.search(targets_of(program, one))
                )
                if beside and (
                    (same and other.lineno > one.lineno)
                    or re.fullmatch(rf"{re.escape(end)} [+-] 1|{re.escape(end)} \+ 1:.*", index)
                ):
                    yield look_at(other, one, window=shown(one))


@suspects("numbers of words begin at the padding")
def _padding(program: Program) -> Iterator[Spot]:
    """Find `{word: i for i, word in enumerate(words)}` in a script that pads with 0."""
    said = source(program)
    pads = r"pad_sequence\((?!.*padding_value=[^0])|padding_idx=0|ignore_index=0|!= 0\)|PAD = 0"
    if not re.search(pads, said) or re.search(r"""['"][<\[]?pad""", said, re.IGNORECASE):
        return
    for node in program.nodes:
        empty = isinstance(node, ast.Assign) and _is_next_number(node) and isinstance(node.targets[0], ast.Subscript)
        if empty and isinstance(node, ast.Assign) and f"{stem_of(node.targets[0])} = {{}}" in said:
            yield look_at(node)
        if isinstance(node, ast.DictComp) and isinstance(node.value, ast.Name):
            given = node.generators[0].iter
            count = len(given.args) if isinstance(given, ast.Call) and not given.keywords else 0
            begins = count == 1 and program.called(given) == "enumerate"
            apart = isinstance(given, ast.Call) and "-100" in said and LABELS.search(text(program.operand(given)))
            if begins and not apart and not re.search(r"\[.*\] \+|pad", text(given), re.IGNORECASE):
                yield look_at(node)


@suspects("unknown words become padding")
def _unknown(program: Program) -> Iterator[Spot]:
    """Find `numbers.get(word, 0)` where 0 is the padding."""
    said = source(program)
    if not re.search(r"padding_idx=0|pad_sequence|PAD = 0|ignore_index=0|pad['>\"\]]{1,3}: 0", said, re.IGNORECASE):
        return
    for call in program.calls_of(".get"):
        other = call.args[1] if len(call.args) == 2 else None
        padding = constant(other) == 0 or re.search(r"\bpad", text(other or call.func), re.IGNORECASE)
        if padding and re.search(r"vocab|stoi|word|token|ids?$|index|char", text(call), re.IGNORECASE):
            yield look_at(call)


@suspects("words written in another case")
def _case(program: Program) -> Iterator[Spot]:
    """Find a text that is split into words as it is, in a script that lowers another one."""
    splits = [one for one in program.calls_of(".split") if not one.args]
    lowered = [one for one in splits if ".lower()" in text(one)]
    if lowered and len(program.calls_of(".lower")) == len(lowered):
        yield from (look_at(one) for one in splits if one not in lowered)
