"""Suspects about single examples: items of data sets, objects with two names, labels, columns, windows, words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.names import named
from glassgrad.doctor.reading.program import Class, Function, Program, constant, number
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.data.roles import (
    HELD_OUT,
    LABELS,
    TRAIN,
    assigned,
    is_drawn,
    targets_of,
    trains,
    words_in,
)
from glassgrad.doctor.reading.suspects.form import suspects, suspects_of
from glassgrad.doctor.reading.suspects.spelling import called, ident, operand, source
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


@suspects("item reads two indices")
def _two_indices(program: Program) -> Iterator[Spot]:
    """Find `self.x[i]` beside `self.y[i // 2]` in `__getitem__`."""
    for _, method, index in _items(program):
        found = [
            one
            for one in ast.walk(method)
            if isinstance(one, ast.Subscript)
            and ast.unparse(one.value).startswith("self.")
            and isinstance(one.ctx, ast.Load)
            and not re.search(r"order|ind(ex|ices)|perm|rows|\bids?\b|keys|start|offset|map|len", ident(one))
            and not isinstance(one.slice, ast.Slice)
        ]
        plain = [one for one in found if ast.unparse(one.slice) == index]
        other = [one for one in found if ast.unparse(one.slice) != index and "self." not in ast.unparse(one.slice)]
        other = [one for one in other if index in words_in(one.slice) or LABELS.search(ident(one))]
        names = {ast.unparse(one.value) for one in plain}
        for one in other if plain else ():
            if ast.unparse(one.value) not in names and not isinstance(one.slice, ast.Tuple):
                yield spot(one, text=shown(one), other=shown(plain[0]))


@suspects("item without its index")
def _no_index(program: Program) -> Iterator[Spot]:
    """Find a `__getitem__` that does not read its index."""
    for owner, method, index in _items(program):
        if index not in {one.id for one in ast.walk(method) if isinstance(one, ast.Name)} and len(method.body) > 0:
            yield spot(method, text=owner.node.name, index=index)


@suspects("length of something else")
def _length(program: Program) -> Iterator[Spot]:
    """Find a `__len__` that counts classes or columns, or a part of the examples, in a class without windows."""
    for owner, method, _ in _items(program):
        given = owner.methods.get("__len__")
        result = given.body[-1] if given is not None else None
        value = result.value if isinstance(result, ast.Return) else None
        if value is None or any(isinstance(one, ast.Slice) for one in ast.walk(method)):
            continue
        text = ast.unparse(value)
        part = isinstance(value, ast.BinOp) and isinstance(value.op, ast.FloorDiv | ast.Sub | ast.Div)
        other = re.search(r"len\(self\.\w*(class|vocab|name|dim)\w*\)|shape\[[1-9-]|\[0\]\)", text)
        if part or other or re.search(r"min\(", text):
            yield spot(value, text=text, owner=owner.node.name)


def _edits(scope: ast.AST, name: str) -> Iterator[ast.stmt | ast.expr]:
    """Yield the places that change the array of a variable in place: `x[...] = `, `x += `, `x.add_()`."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign):
            places = [one for one in node.targets if isinstance(one, ast.Subscript) and ident(one) == name]
            if any(not isinstance(constant(one.slice), str) for one in places):
                yield node
        elif (isinstance(node, ast.AugAssign) and ident(node.target) == name) or (
            isinstance(node, ast.Call) and re.fullmatch(rf"{name}\.({'|'.join(_EDITS)})", ast.unparse(node.func))
        ):
            yield node


@suspects("stored example changed in place")
def _changed(program: Program) -> Iterator[Spot]:
    """Find `x = self.data[i]` and then `x += noise`, or the same with a slice in a training loop."""
    for _, method, index in _items(program):
        for target, value, _ in assigned(method):
            stored = _viewed(program, value)
            plain = isinstance(target, ast.Name) and not LABELS.search(target.id) and isinstance(stored, ast.Subscript)
            if plain and re.match(rf"self\..*\b{index}\b", ast.unparse(stored)) and isinstance(target, ast.Name):
                yield from (spot(one, text=shown(one), stored=shown(stored)) for one in _edits(method, target.id))
            elif isinstance(target, ast.Tuple) and re.match(rf"self\.[\w.]+[\[(].*\b{index}\b", ast.unparse(value)):
                names = [one.id for one in target.elts if isinstance(one, ast.Name)]
                reader = program.functions.get(getattr(getattr(value, "func", None), "attr", ""))
                if reader is not None and re.search(r"copy|clone|astype|float", ast.unparse(reader)):
                    continue
                places = [one for name in names for one in _edits(method, name) if not _is_new(method, name, one)]
                yield from (spot(one, text=shown(one), stored=shown(value)) for one in places)
    for target, value, node in assigned(program.tree):
        loops = program.loops(node)
        sliced = (
            isinstance(value, ast.Subscript)
            and isinstance(value.slice, ast.Slice)
            and isinstance(value.value, ast.Name)
        )
        if loops and sliced and isinstance(target, ast.Name) and trains(program, loops[0]):
            yield from (spot(one, text=shown(one), stored=shown(value)) for one in _edits(loops[0], target.id))


def _is_new(method: ast.AST, name: str, place: ast.AST) -> bool:
    """Tell whether a variable gets another value before a place."""
    known = [node for target, value, node in assigned(method) if ident(target) == name and isinstance(value, ast.expr)]
    return any(node.lineno < getattr(place, "lineno", 0) for node in known)


def _viewed(program: Program, value: ast.expr) -> ast.expr:
    """Return what a view shares its memory with: x of `x.view(-1)`, `np.asarray(x)` or `x[:]`."""
    while True:
        if isinstance(value, ast.Call) and called(program, value) in _VIEWS and operand(program, value) is not None:
            value = operand(program, value) or value
        elif isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
            value = value.value
        else:
            return value


@suspects("second name of an array changed")
def _alias(program: Program) -> Iterator[Spot]:
    """Find `noisy = clean` and a change of one of both in place, before the other is read."""
    for target, value, node in assigned(program.tree):
        source = _viewed(program, value)
        if not isinstance(source, ast.Name) or not isinstance(target, ast.Name) or source.id == target.id:
            continue
        around = program.function(node) or program.tree
        for name, other in ((target.id, source.id), (source.id, target.id)):
            for edit in _edits(around, name):
                within = program.function(edit) is program.function(node) and edit.lineno > node.lineno
                loads = [one for one in ast.walk(around) if isinstance(one, ast.Name) and one.id == other]
                later = any(one.lineno > edit.lineno and isinstance(one.ctx, ast.Load) for one in loads)
                single = isinstance(edit, ast.AugAssign) and isinstance(edit.target, ast.Name)
                array = not single or (isinstance(edit, ast.AugAssign) and is_drawn(program, edit.value))
                fresh = any(one is not node and node.lineno < one.lineno <= edit.lineno for one in _sets(around, name))
                if within and later and array and not fresh:
                    yield spot(edit, node, text=shown(edit), name=shown(node), other=other)


def _sets(scope: ast.AST, name: str) -> Iterator[ast.Assign]:
    """Yield the assignments of a variable."""
    yield from (node for target, _, node in assigned(scope) if isinstance(target, ast.Name) and target.id == name)


@suspects("one object many times")
def _same_object(program: Program) -> Iterator[Spot]:
    """Find `rows.append(row)` in a loop that changes a row made before it, and `[[]] * n`."""
    for call in program.calls_of(".append"):
        given = call.args[0] if call.args else None
        loops = program.loops(call)
        if not loops or not isinstance(given, ast.Name):
            continue
        around = program.function(call) or program.tree
        sets = list(_sets(around, given.id))
        before = sets and all(one.lineno < loops[0].lineno for one in sets)
        made = before and (
            isinstance(sets[-1].value, ast.List | ast.Dict)
            or called(program, sets[-1].value)
            in {"zeros", "ones", "empty", "full", "arange", "zeros_like", "list", "dict"}
        )
        grows = any(
            ast.unparse(one.func) == f"{given.id}.append" for one in ast.walk(loops[0]) if isinstance(one, ast.Call)
        )
        if made and (grows or any(_edits(loops[0], given.id))):
            yield spot(call, sets[-1], text=shown(call), name=given.id)
    for node in program.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List):
            inner = node.left.elts[0] if len(node.left.elts) == 1 else None
            empty = isinstance(inner, ast.List | ast.Dict) and not ast.unparse(inner)[1:-1]
            if empty or called(program, inner or node) in {"zeros", "ones", "empty", "defaultdict", "deque"}:
                yield spot(node, text=shown(node), name=targets_of(program, node))


@suspects("result of a function lost")
def _lost(program: Program) -> Iterator[Spot]:
    """Find `np.fliplr(image)`, `x.astype(...)` and `sorted(x)` on a line of their own."""
    for node in program.nodes:
        call = node.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
        if call is None or any(one.arg in {"inplace", "out"} for one in call.keywords):
            continue
        name, full = called(program, call), program.names.full(call.func)
        library = full.startswith(("numpy.", "torch.", "cv2.")) or (
            full == "" and isinstance(call.func, ast.Name) and name == "sorted"
        )
        method = (
            not full and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name | ast.Subscript)
        )
        lists = name in {"append", "sort", "normalize"} and method
        lists |= (
            method and name == "resize" and not re.search(r"im(g|age)?s?$", ident(operand(program, call)))
        )  # NumPy's
        inside = program.function(node) is not None or program.loops(node)
        if (
            (library or method)
            and name in _LOST | {"sorted"}
            and not lists
            and inside
            and ident(operand(program, call)) != "self"
        ):
            yield spot(call, text=shown(call))


# --- labels ---


@suspects("classes numbered by chance")
def _by_chance(program: Program) -> Iterator[Spot]:
    """Find class numbers from `set(...)` or from a listing of a folder, without `sorted`."""
    for node in program.nodes:
        name = "set" if isinstance(node, ast.SetComp) else called(program, node)
        if name not in _LISTING | {"set", "frozenset"} or not isinstance(node, ast.expr):
            continue
        outer = [called(program, one) for one in program.outward(node) if isinstance(one, ast.Call)]
        names = targets_of(program, node)
        numbered = "enumerate" in outer or re.search(r"class|label|categ|kinds|names|vocab", names)
        sorts = "sorted" in outer or any(ident(operand(program, one)) in names for one in program.calls_of(".sort"))
        if sorts or not numbered:
            continue
        if name in _LISTING and not re.search(r"files|paths", names):
            yield spot(node, text=shown(node), what="the order of a listing, which differs between folders and systems")
        elif name not in _LISTING and {"enumerate", "list"} & set(outer):
            yield spot(node, text=shown(node), what="the order of a set, which differs from run to run")


@suspects("classes numbered in each part")
def _each_part(program: Program) -> Iterator[Spot]:
    """Find a data set or a function that numbers classes by what it holds, and is used for several parts."""
    for node in program.nodes:
        function = program.function(node)
        grows = isinstance(node, ast.Assign) and _is_next_number(node)
        if (
            function is None
            or not (isinstance(node, ast.DictComp | ast.Call) or grows)
            or not isinstance(node, ast.expr | ast.stmt)
        ):
            continue
        owner = program.owner(function)
        uses = program.calls_of(owner.node.name if owner is not None and function.name == "__init__" else function.name)
        name = called(program, node) if isinstance(node, ast.Call) else ""
        given = ast.unparse(node.generators[0].iter) if isinstance(node, ast.DictComp) else ""
        maps = "enumerate(" in given and not re.search(r"[A-Z]{3}", given)
        text = ast.unparse(node) if name in {"factorize", "fit_transform", "unique"} else ""
        codes = re.search(r"ncoder|factorize|return_inverse", text)
        if len(uses) > 1 and (maps or codes or grows):
            yield spot(node, text=shown(node), uses=str(len(uses)))


def _is_next_number(node: ast.Assign) -> bool:
    """Tell whether a statement is `numbers[name] = len(numbers)`."""
    return re.fullmatch(r"(.+)\[.+\] = len\(\1\)", ast.unparse(node)) is not None


@suspects("classes in the order of their appearance")
def _by_appearance(program: Program) -> Iterator[Spot]:
    """Find `list(dict.fromkeys(names))` or `list(set(names))` that numbers classes, in code that makes both parts."""
    for target, value, node in assigned(program.tree):
        function, text = program.function(node), ast.unparse(value)
        unique = re.search(r"dict\.fromkeys\(|^(list|tuple)\((set|Counter)\(|OrderedDict\.fromkeys\(", text)
        frame = re.search(r"\b(df|frame|table|data)\w*(\[.+\]|\.\w+)\.unique\(\)|\bpd\.(unique|factorize)\(", text)
        if function is None or not (unique or frame) or "sort" in text or isinstance(value, ast.IfExp | ast.BoolOp):
            continue
        name, outer = ast.unparse(target), program.parents.get(node)
        around = ast.unparse(function)
        counts = re.search(
            rf"enumerate\({re.escape(name)}\)|(?<![\w.]){re.escape(name)}\.index\(|zip\({name}, range", around
        )
        codes = "factorize" in text
        ordered = re.search(rf"{re.escape(name)}\.sort\(|{re.escape(name)} = sorted\(", around)
        if (counts or codes) and not ordered and not isinstance(outer, ast.If) and _makes_both(program, function):
            yield spot(node, text=shown(node))


def _makes_both(program: Program, function: Function) -> bool:
    """Tell whether a function, or the class that it initialises, makes both the training and the held-out data."""
    owner = program.owner(function)
    uses = program.calls_of(owner.node.name if owner is not None and function.name == "__init__" else function.name)
    said = [f"{targets_of(program, one)} {ast.unparse(one)}" for one in uses]
    kinds = [(bool(TRAIN.search(one)), bool(HELD_OUT.search(one))) for one in said]
    return (True, False) in kinds and (False, True) in kinds


@suspects("label moved by one")
def _moved(program: Program) -> Iterator[Spot]:
    """Find `label - 1` and `label + 1` in a data set or in a loss."""
    inside = {id(node) for _, method, _ in _items(program) for node in ast.walk(method)}
    coded = [
        one
        for one in program.nodes
        if called(program, one) == "one_hot" or (isinstance(one, ast.Subscript) and called(program, one.value) == "eye")
    ]
    inside |= {id(node) for one in coded for node in ast.walk(one)}
    inside |= {id(node) for one in losses(program) if one.target is not None for node in ast.walk(one.target)}
    for node in program.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub) and number(node.right) == 1:
            yield from [spot(node, text=shown(node))] if id(node) in inside and LABELS.search(ident(node.left)) else ()


@suspects("negatives coded 0")
def _coded(program: Program) -> Iterator[Spot]:
    """Find a loss that takes labels 1 and -1, in a script whose labels have no -1."""
    if _MADE_NEGATIVE.search(source(program)):
        return
    for call in program.calls:
        if (called(program, call) in _ONES and call.args) or (
            called(program, call) in _ONES and called(program, call)[0].isupper()
        ):
            yield spot(call, text=shown(call))


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
        for other, theirs, statement in columns if column is not None and LABELS.search(ident(target)) else ():
            rows = theirs.slice.elts[1] if isinstance(theirs.slice, ast.Tuple) else None
            if (
                ast.unparse(theirs.value) != ast.unparse(value.value)
                or not isinstance(rows, ast.Slice)
                or LABELS.search(ident(other))
            ):
                continue
            if column is not None and _covers(rows, column):
                yield spot(statement, node, text=shown(statement), target=shown(node))
    yield from _whole_table(program, columns)
    yield from _stacked(program)


def _whole_table(program: Program, columns: list[tuple[ast.expr, ast.Subscript, ast.Assign]]) -> Iterator[Spot]:
    """Yield `x = data` beside `y = data[:, -1]`."""
    tables = {
        ast.unparse(value.value): node
        for target, value, node in columns
        if isinstance(target, ast.Name) and LABELS.search(target.id)
    }
    for target, value, node in assigned(program.tree):
        text = re.sub(r"\.(values|copy\(\)|astype\(.*\))$|^torch\.tensor\(|\)$", "", ast.unparse(value))
        if text in tables and not LABELS.search(ident(target)) and isinstance(value, ast.Name):
            yield spot(node, tables[text], text=shown(node), target=shown(tables[text]))


def _stacked(program: Program) -> Iterator[Spot]:
    """Yield `x = column_stack([a, b, c])` beside `y = c`."""
    kept = {
        value.id: node
        for target, value, node in assigned(program.tree)
        if isinstance(value, ast.Name) and LABELS.search(ident(target))
    }
    for target, value, node in assigned(program.tree):
        given = value.args[0] if isinstance(value, ast.Call) and value.args else None
        joins = called(program, value) in {"column_stack", "stack", "hstack", "concatenate", "cat", "vstack"}
        if joins and isinstance(given, ast.List | ast.Tuple) and not LABELS.search(ident(target)):
            among = [one.id for one in given.elts if isinstance(one, ast.Name) and one.id in kept]
            yield from (spot(node, kept[one], text=shown(node), target=shown(kept[one])) for one in among)


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
    for node in program.nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and not _in_training(program, node):
            windows.setdefault(program.function(node) or program.tree, []).append(node)
    for found in windows.values():
        for one in found:
            rows = one.slice
            if not isinstance(rows, ast.Slice) or not isinstance(rows.upper, ast.BinOp) or rows.lower is None:
                continue
            end, base = ast.unparse(rows.upper), ast.unparse(one.value)
            for other in found:
                index = ast.unparse(other.slice)
                beside = ast.unparse(other.value) == base and abs(other.lineno - one.lineno) < 3 and other is not one
                same = (
                    index == ast.unparse(rows)
                    and LABELS.search(targets_of(program, other))
                    and not LABELS.search(targets_of(program, one))
                )
                if beside and (
                    (same and other.lineno > one.lineno)
                    or re.fullmatch(rf"{re.escape(end)} [+-] 1|{re.escape(end)} \+ 1:.*", index)
                ):
                    yield spot(other, one, text=shown(other), window=shown(one))


def _in_training(program: Program, node: ast.AST) -> bool:
    return any(trains(program, one) for one in program.loops(node))


@suspects("numbers of words begin at the padding")
def _padding(program: Program) -> Iterator[Spot]:
    """Find `{word: i for i, word in enumerate(words)}` in a script that pads with 0."""
    text = source(program)
    if not re.search(
        r"pad_sequence\((?!.*padding_value=[^0])|padding_idx=0|ignore_index=0|!= 0\)|PAD = 0", text
    ) or re.search(r"""['"][<\[]?pad""", text, re.IGNORECASE):
        return
    for node in program.nodes:
        empty = isinstance(node, ast.Assign) and _is_next_number(node) and isinstance(node.targets[0], ast.Subscript)
        if empty and isinstance(node, ast.Assign) and f"{ident(node.targets[0])} = {{}}" in text:
            yield spot(node, text=shown(node))
        if isinstance(node, ast.DictComp) and isinstance(node.value, ast.Name):
            given = node.generators[0].iter
            begins = (
                isinstance(given, ast.Call)
                and called(program, given) == "enumerate"
                and len(given.args) == 1
                and not given.keywords
            )
            if begins and not re.search(r"\[.*\] \+|pad", ast.unparse(given), re.IGNORECASE):
                yield spot(node, text=shown(node))


@suspects("unknown words become padding")
def _unknown(program: Program) -> Iterator[Spot]:
    """Find `numbers.get(word, 0)` where 0 is the padding."""
    text = source(program)
    if not re.search(r"padding_idx=0|pad_sequence|PAD = 0|ignore_index=0|pad['>\"\]]{1,3}: 0", text, re.IGNORECASE):
        return
    for call in program.calls_of(".get"):
        other = call.args[1] if len(call.args) == 2 else None
        padding = constant(other) == 0 or re.search(r"\bpad", ast.unparse(other or call.func), re.IGNORECASE)
        if padding and re.search(r"vocab|stoi|word|token|ids?$|index|char", ast.unparse(call), re.IGNORECASE):
            yield spot(call, text=shown(call))


@suspects("words written in another case")
def _case(program: Program) -> Iterator[Spot]:
    """Find a text that is split into words as it is, in a script that lowers another one."""
    splits = [one for one in program.calls_of(".split") if not one.args]
    lowered = [one for one in splits if ".lower()" in ast.unparse(one)]
    if lowered and len(program.calls_of(".lower")) == len(lowered):
        yield from (spot(one, text=shown(one)) for one in splits if one not in lowered)


SUSPECTS = suspects_of(globals())
