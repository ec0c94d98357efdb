"""Suspects about the numbers in examples: scaling, dtypes, augmentation, the axes of pictures."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.names import named
from glassgrad.doctor.reading.nodes import is_op, within, without
from glassgrad.doctor.reading.program import Class, Function, Program, argument, constant, number, place_of
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.data.roles import HELD_OUT, LABELS, TRAIN, is_drawn, training_loops, uses_of
from glassgrad.doctor.reading.suspects.form import look_at, operations, suspects, suspects_each, suspects_rows
from glassgrad.doctor.reading.suspects.lookup import (
    assigned,
    assignments,
    classes,
    functions,
    stem_of,
    targets_of,
    text,
    words_in,
)
from glassgrad.doctor.reading.values import ELEMENTWISE, layer, losses

_MEAN = re.compile(r"(^|_)(mean|mu|avg|means)(_|s|$)", re.IGNORECASE)
_STD = re.compile(r"(^|_)(std|sd|sigma|stds|stdev)(_|s|$)", re.IGNORECASE)
_PIXELS = re.compile(r"image|img|pic(ture)?s?(_|$)|photo|frame|pixel", re.IGNORECASE)
_INPUTS = re.compile(r"(^|_)(x|xs|xb|X|inputs?|features?|signals?|images?|data)(_|$)")
_SCALERS = named("fit_transform transform normalize standardize scale normalise")
_FLIPS = named("RandomHorizontalFlip RandomVerticalFlip fliplr flipud hflip vflip")
_DRAWN = re.compile(
    r"random\.random\(\)|torch\.rand\((1|\(\))?\)|rng\.random\(\)|random\.(uniform|randint)\([^(),=]*,?[^(),=]*\)$"
)
_CASTS = named("tensor as_tensor from_numpy FloatTensor Tensor asarray float to cuda unsqueeze")
_FITTED = re.compile(
    r"vocab|stoi|itos|(word|token|char|tag|label|class|cat)\w*(2|_?to_?)(i|idx|id|int|index)|stats?$|mean|std|scaler|encod|"
    r"classes$|norm|mapping|lookup",
    re.IGNORECASE,
)
"""Names of what is made of the training data, and used for all."""
_FITS = re.compile(r"Counter|enumerate\(|\bset\(|\.(mean|std|fit|fit_transform|most_common)\(|unique\(|build_?vocab")
_WHOLE = re.compile(r"(int|long)(8|16|32|64)?\b|uint8")


def _own(program: Program, node: ast.AST) -> str:
    """Return x of `(x - x.mean()) / x.std()` and `(x - x.min()) / ...`, with statistics of x; empty for others."""
    if not is_op(node, ast.Div):
        return ""
    left = node.left
    if not is_op(left, ast.Sub):
        return ""
    made = program.written(left.right)
    known = isinstance(made, ast.Call) and program.called(made) in {"mean", "min", "amin", "median"}
    source = program.operand(made) if isinstance(made, ast.Call) and known else None
    return text(left.left) if source is not None and text(source) == text(left.left) else ""


# --- scaling ---


@suspects_each("each part scaled by its own statistics", ast.expr)
def _own_statistics(program: Program, node: ast.expr) -> object:
    """Find `(x - x.mean()) / x.std()` in a data set or a function that is used for several parts."""
    function = program.function(node)
    if function is None or function.name == "__getitem__" or not _own(program, node) or _is_shared(function, node):
        return False
    owner = program.owner(function)
    if owner is not None and owner.is_module:
        return False
    uses = uses_of(program, function)
    targets = " ".join(targets_of(program, one) + " " + text(one) for one in uses)
    return (len(uses) > 1 or "," in targets) and HELD_OUT.search(targets) and look_at(node, uses=str(len(uses)))


def _is_shared(function: Function, node: ast.expr) -> bool:
    """Tell whether a function scales something else as well by the same statistics, as it should."""
    scaled = [one for one in ast.walk(function) if is_op(one, ast.Div) and is_op(one.left, ast.Sub)]
    same = [one for one in scaled if is_op(node, ast.Div) and text(one.right) == text(node.right)]
    return len({text(one) for one in same}) > 1


@suspects("scaled example by example")
def _by_example(program: Program) -> Iterator[Spot]:
    """Find `(x - x.mean()) / x.std()` in `__getitem__` or in the training loop."""
    loops = {id(node) for loop in training_loops(program) for node in ast.walk(loop)}
    for node in program.every(ast.expr):
        inside = getattr(program.function(node), "name", "") == "__getitem__" or id(node) in loops
        if inside and _own(program, node) and not re.search(r"adv|return|reward", shown(node)):
            yield look_at(node)


@suspects("training data scaled alone")
def _alone(program: Program) -> Iterator[Spot]:
    """Find `x_train = (x_train - m) / s` without the same for `x_test`, and a transform that one data set gets."""
    scaled = [(text(one), value, node) for one, value, node in assigned(program.tree) if _scales(program, value)]
    names = {name for name, _, _ in scaled}
    for name, value, node in scaled:
        held = [re.sub("train(ing)?", other, name, flags=re.IGNORECASE) for other in ("test", "val", "valid")]
        loads = {stem_of(one) for one in program.nodes if isinstance(getattr(one, "ctx", None), ast.Load)}
        used = [one for one in held if one in loads]
        if TRAIN.search(name) and used and not names & set(held) and not re.search(r"\bx_all|" + used[0], shown(value)):
            other = [one for one, theirs, _ in scaled if one in held or used[0] in words_in(theirs)]
            if not other:
                yield look_at(node, other=used[0])
    for name in {*program.classes, "TensorDataset"}:
        calls = [(one, targets_of(program, one)) for one in program.calls_of(name)]
        given = [one for one, target in calls if TRAIN.search(target) and any(_is_scaling(it) for it in one.keywords)]
        given += [one for one, target in calls if TRAIN.search(target) and one.args and " / " in text(one.args[0])]
        for call, target in calls if given else ():
            made = program.value_of(call.args[0]) if call.args and isinstance(call.args[0], ast.Name) else None
            scaled_too = any(_is_scaling(one) for one in call.keywords) or " / " in text(call)
            if HELD_OUT.search(target) and not scaled_too and (made is None or not _scales(program, made)):
                yield from (spot(one, text=shown(given[0]), other=shown(call)) for one in (given[0], call))


def _scales(program: Program, value: ast.expr) -> bool:
    """Tell whether an expression scales its data: a division by a deviation or by 255, or a fitted scaler."""
    if isinstance(value, ast.Call):
        return program.called(value) in _SCALERS
    said = text(value.right) if is_op(value, ast.Div) else ""
    return bool(re.search(r"std|sigma|sd\b|scale|max|range|^255", said))


def _is_scaling(given: ast.keyword) -> bool:
    said = f"{given.arg} {text(given.value)}"
    words = r"transform|normali|scal|mean|stat"
    named_so = re.search(words, str(given.arg)) and not isinstance(given.value, ast.Constant)
    return bool(named_so or (re.search(words, said, re.IGNORECASE) and constant(given.value) not in {None, False}))


@suspects_each("mean and deviation exchanged", ast.expr)
def _exchanged(program: Program, node: ast.expr) -> object:
    """Find `Normalize(std, mean)`, `(x - std) / mean` and `x * mean + std`."""
    names = ["", ""]
    if isinstance(node, ast.Call) and program.called(node) in {"Normalize", "normalize"} and len(node.args) >= 2:
        names = [stem_of(one) for one in node.args[-2:]]
    elif is_op(node, ast.Div) and isinstance(node.left, ast.BinOp):
        names = [stem_of(node.left.right) if isinstance(node.left.op, ast.Sub) else "", stem_of(node.right)]
    elif is_op(node, ast.Add) and isinstance(node.left, ast.BinOp):
        names = [stem_of(node.right), stem_of(node.left.right) if isinstance(node.left.op, ast.Mult) else ""]
    return _STD.search(names[0]) and _MEAN.search(names[1])


@suspects_each("statistics of another variable", operations(ast.Div | ast.Add))
def _others(program: Program, node: ast.BinOp) -> object:
    """Find `(x - x_mean) / y_std` and `prediction * x_std + x_mean`."""
    inner, sides = node.left, (ast.Sub if isinstance(node.op, ast.Div) else ast.Mult)
    if not is_op(inner, sides):
        return False
    mean, std = (inner.right, node.right) if isinstance(node.op, ast.Div) else (node.right, inner.right)
    whose = [_whose(one) for one in (mean, std)]
    output = isinstance(node.op, ast.Add) and re.search(r"pred|out|y_?hat|forecast|model|net", text(inner.left))
    apart = all(whose) and whose[0] != whose[1] and re.search(r"std|sd|sigma|scale", text(std))
    inputs = re.fullmatch(r"[xX]|inputs?|features?|data_x|[xX]_train", whose[0]) and whose[0] == whose[1]
    return apart or (output and inputs)


def _whose(node: ast.expr) -> str:
    """Return whose mean or deviation a value is by its name: "x" of `x_mean`, `mean_x`, `x.mean(0)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return text(node.func.value) if node.func.attr in {"mean", "std"} else ""
    found = re.fullmatch(r"(\w+?)_?(mean|mu|std|sd|sigma)|(?:mean|mu|std|sd|sigma)_(\w+)", stem_of(node))
    return (found[1] or found[3] or "") if found else ""


@suspects("scaler fitted anew")
def _fitted(program: Program) -> Iterator[Spot]:
    """Find a scaler that is fitted to one array after another."""
    calls: dict[str, list[ast.Call]] = {}
    for name in (".fit_transform", ".fit"):
        for call in program.calls_of(name):
            if isinstance(call.func, ast.Attribute) and call.args:
                calls.setdefault(text(call.func.value), []).append(call)
    for name, found in calls.items():
        found.sort(key=lambda one: one.lineno)
        known = re.search(r"scal|norm|encod|vector|pca|(^|_)ss$|(^|_)le$", name, re.IGNORECASE)
        others = [one for one in found if text(one.args[0]) != text(found[0].args[0])]
        if known and not program.loops(found[0]):
            yield from (look_at(one, found[0], first=shown(found[0])) for one in others)


@suspects("held-out data that number or scale for themselves")
def _own_numbers(program: Program) -> Iterator[Spot]:
    """Find `Texts(test)` beside `Texts(train)`, where the class makes a vocabulary unless it gets one."""
    makers = [(name, program.method(one, "__init__"), 1) for name, one in program.classes.items()]
    makers += [(name, one, 0) for name, one in program.functions.items() if program.owner(one) is None]
    for name, function, bound in makers:
        calls = [(one, targets_of(program, one)) for one in program.calls_of(name)]
        if function is None or not any(TRAIN.search(it) and not HELD_OUT.search(it) for _, it in calls):
            continue
        for parameter, made in _made_unless_given(function):
            place = place_of(function, parameter) - bound
            for call, target in calls:
                starred = any(one.arg is None for one in call.keywords) or any(
                    isinstance(one, ast.Starred) for one in call.args
                )
                held = HELD_OUT.search(target) and not TRAIN.search(target) and not starred
                if held and argument(call, parameter, place) is None:
                    yield look_at(call, made, name=parameter)


def _made_unless_given(function: Function) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the parameters for which a function makes numbers of its data where it gets none, and the statements."""
    for test in (one for one in ast.walk(function) if isinstance(one, ast.If | ast.IfExp)):
        found = re.fullmatch(r"(?P<name>\w+) is (?P<no>not )?None", text(test.test))
        if found is not None and _FITTED.search(found["name"]):
            branch = test.orelse if found["no"] else test.body
            inside = branch if isinstance(branch, list) else [branch]
            if any(_FITS.search(text(one)) for one in inside):
                yield found["name"], test if isinstance(test, ast.If) else function


@suspects("divided by 255 twice")
def _divided(program: Program) -> Iterator[Spot]:
    """Find a division by 255 where examples are made, and another one, or ToTensor, on their way to the model."""
    early: list[ast.expr | ast.stmt] = []
    late: list[ast.expr | ast.stmt] = []
    for node in program.nodes:
        below = node.right if isinstance(node, ast.BinOp) else node.value if isinstance(node, ast.AugAssign) else None
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div) and number(below) == 255:
            function, owner = program.function(node), program.owner(node)
            trained = any(node in ast.walk(loop) for loop in training_loops(program))
            in_model = owner is not None and owner.is_module
            (late if trained or in_model or getattr(function, "name", "") == "__getitem__" else early).append(node)
    scaled = any(program.called(one) in {"ToTensor", "to_tensor"} for one in program.calls)
    places = {getattr(program.function(one), "name", "") for one in late}
    if late and (early or scaled or ("__getitem__" in places and len(places) > 1)):
        yield from (look_at(one) for one in late)


@suspects_each("mask keeps its grey values", functions)
def _grey(program: Program, function: Function) -> Iterator[Spot]:
    """Find a mask that is converted to float without a division, beside an image that is divided by 255."""
    said = text(function)
    if not re.search(r"/ 255|\* \(?1(\.0)? / 255", said):
        return
    for target, value, node in assigned(function):
        mask = re.search(r"mask|seg", text(value)) and re.search(r"float|tensor|from_numpy", text(value))
        if mask and not re.search(r"255|[<>=]|//|astype\(bool|\.long|int", text(value)):
            name = stem_of(target)
            if not re.search(rf"{name} */|{name} [<>]|{name} //|{name} /= ", said):
                yield look_at(node)


@suspects("input at hand not scaled")
def _at_hand(program: Program) -> Iterator[Spot]:
    """Find `model(torch.tensor([[50.0, 3.0]]))` in a script that scales its data."""
    values = [value for _, value, _ in assigned(program.tree)]
    scales = [one for one in values if _own(program, one) or program.called(one) == "fit_transform"]
    for call in program.calls if scales else ():
        given = call.args[0] if call.args and layer(program, call.func) is not None else None
        made = program.written(given)
        if not isinstance(made, ast.Call):
            continue
        if re.fullmatch(r"\w+\.(tensor|array|FloatTensor)\(\[\[?[\d., \-\[\]]+\](, dtype=.*)?\)", text(made)):
            yield look_at(call)
    for owner in classes(program):
        yield from _only_fitted(program, owner)


def _only_fitted(program: Program, owner: Class) -> Iterator[Spot]:
    """Yield the calls of a model in `predict` with what it is given, where `fit` scales by what it keeps in `self`."""
    scaled = r"self\.\w*(scal|norm)\w*\.(fit_)?transform\(|- self\.(\w+_)?(mean|mu)\w*\) / "
    fitted = [one for name, one in owner.methods.items() if re.match(r"_?(fit|train)", name)]
    if not any(re.search(scaled, text(one)) for one in fitted):
        return
    for name, method in owner.methods.items():
        if not re.match(r"(predict|score|decision|infer|forecast|classify)", name) or _is_prepared(program, method):
            continue
        given = {one.arg for one in method.args.args[1:]} - {stem_of(target) for target, _, _ in assigned(method)}
        for call in (one for one in program.every(ast.Call) if program.function(one) is method and one.args):
            model = re.match(r"self\.\w+$", text(call.func)) and text(call.func)[5:] not in owner.methods
            first = call.args[0]
            while (
                isinstance(first, ast.Call) and program.called(first) in _CASTS and program.operand(first) is not None
            ):
                first = program.operand(first) or first
            if model and stem_of(first) in given and any(text(call.func) in text(one) for one in fitted):
                yield look_at(call)


def _is_prepared(program: Program, method: Function) -> bool:
    """Tell whether a method, or a caller of it, may scale its argument."""
    words = re.compile(r"scal|transform|norm(?!\()|standard|prep|mean|std", re.IGNORECASE)
    return any(words.search(text(one)) for one in (method, *program.calls_of(f".{method.name}")))


@suspects_rows("logarithm of what may be 0", assignments)
def _logarithm(program: Program, target: ast.expr, value: ast.expr, node: ast.Assign) -> object:
    """Find `np.log(counts)` where data are made."""
    logs = program.called(value) in {"log", "log10", "log2"}
    given = program.operand(value) if isinstance(value, ast.Call) and logs else None
    owner = program.owner(node)
    data = re.search(r"feat|count|spec|power|price|^[xX]|data|signal|rate", stem_of(target) + " " + stem_of(given))
    if not isinstance(given, ast.Name | ast.Attribute | ast.Subscript):
        return False
    return data and not (owner is not None and owner.is_module) and look_at(node)


@suspects_each("missing values become 0", ast.Call)
def _missing(program: Program, call: ast.Call) -> object:
    """Find `np.nan_to_num(x)` and `fillna(0)`."""
    name = program.called(call)
    zero = name == "fillna" and call.args and constant(call.args[0]) == 0
    return zero or (name == "nan_to_num" and "loss" not in text(call))


@suspects_each("sine of another unit", ast.Call)
def _units(program: Program, call: ast.Call) -> object:
    """Find `np.sin(angle_degrees)` and `np.cos(hour / 24)`."""
    said = text(call.args[0]) if program.called(call) in {"sin", "cos", "tan"} and call.args else ""
    if not re.search(r"deg|hour|month|day|minute|(^|_)lat(_|$)|(^|_)lon(_|$)", said):
        return False
    return not re.search(r"pi\b|6\.28|radians|deg2rad|rad|tau", said)


# --- dtypes ---


@suspects("numbers cut to integers")
def _cut(program: Program) -> Iterator[Spot]:
    """Find inputs, or the targets of a regression, that are converted to integers, and `x // 255`."""
    regression = {one.kind for one in losses(program)} and {one.kind for one in losses(program)} <= ELEMENTWISE
    embeds = any(re.search(r"Embedding|token|vocab|block_size", one) for one in words_in(program.tree))
    for node in program.nodes:
        if is_op(node, ast.FloorDiv) and number(node.right) in {255, 256}:
            yield look_at(node)
        if not isinstance(node, ast.Call):
            continue
        name, given = program.called(node), program.operand(node)
        kind = " ".join(text(one) for one in [*node.args, *(it.value for it in node.keywords if it.arg == "dtype")])
        plain = isinstance(node.func, ast.Name) and not program.names.full(node.func)
        cast = name in {"astype", "tensor", "as_tensor", "array", "type", "to"} and _WHOLE.search(kind)
        whole = cast or (name in {"long", "int", "LongTensor", "IntTensor"} and not plain)
        said = stem_of(given) if given is not None else ""
        target = targets_of(program, node)
        whole = whole and "//" not in kind
        inputs = _INPUTS.search(said) and not embeds and not LABELS.search(said) and not LABELS.search(target)
        if whole and (
            inputs or _is_divided(program, given) or (regression and (LABELS.search(said) or LABELS.search(target)))
        ):
            yield look_at(node)


def _is_divided(program: Program, node: ast.expr | None) -> bool:
    """Tell whether a value comes from a function of the script that divides by 255."""
    inner = without(node, "squeeze", "float", "contiguous", "clone") if node is not None else None
    entered = flow(program).callee(inner) if isinstance(inner, ast.Call) else None
    results = [text(one.value) for one in within(entered.function, ast.Return)] if entered is not None else []
    return bool(results) and all(re.search(r"(/ |div_?\()255\b", one) for one in results)


@suspects("array of integers takes fractions")
def _fractions(program: Program) -> Iterator[Spot]:
    """Find `a = np.zeros(n, dtype=int)` and later `a[i] = b / c`."""
    whole = {}
    for target, value, node in assigned(program.tree):
        name = program.called(value)
        kinds = [text(one.value) for one in getattr(value, "keywords", []) if one.arg == "dtype"]
        source = program.operand(value) if isinstance(value, ast.Call) else None
        like = name in {"zeros_like", "empty_like", "full_like"} and not kinds and LABELS.search(stem_of(source))
        filled = name in {"zeros", "ones", "empty", "full", "zeros_like", "empty_like"}
        made = filled and kinds and _WHOLE.search(kinds[0])
        listed = name == "array" and not kinds and re.fullmatch(r"[^.a-z]*\(\[[\d, \[\]-]*\]\)", text(value)[8:])
        if like or made or listed:
            whole[text(target)] = node
    for target, value, node in assigned(program.tree):
        held = text(target.value) if isinstance(target, ast.Subscript) else ""
        said = text(value)
        if held in whole and (re.search(r" / |\.mean\(|\.std\(|sqrt|exp\(|\d\.\d", said) or is_drawn(program, value)):
            first = whole[held]
            kept = re.search(r"randint|integers|choice|permutation|argm|//", said) or node.lineno < first.lineno
            yield from () if kept else [look_at(first, node, stored=shown(node))]


@suspects("arithmetic in 8 bits")
def _bytes(program: Program) -> Iterator[Spot]:
    """Find a sum, a difference or a product of values that are `uint8`."""
    made = re.compile(r"uint8['\"]?\)$|imread\(")
    rows = [(program.function(node), text(target), value) for target, value, node in assigned(program.tree)]
    small = {(scope, name): value for scope, name, value in rows if made.search(text(value))}
    for scope, name, value in rows:
        if re.search(r"float|/ 255", text(value)):
            small.pop((scope, name), None)
    for node in program.nodes:
        if not isinstance(node, ast.BinOp | ast.AugAssign) or not isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
            continue
        left, right = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
        whole = not re.search(r"\d\.\d|float|astype|/ ", text(right))
        first = small.get((program.function(node), re.sub(r"\[.*\]$", "", text(left))))
        if whole and first is not None and not any(one is node for one in ast.walk(first)):
            yield look_at(node)
    yield from _cast_back(program)


_SAFE = re.compile(r"clip|clamp|minimum|maximum|255|25[56]|127|float|mask|sigmoid|% |\(?1(\.0)? - |\b0\.\d")
"""What keeps a result within a byte, or tells that its pixels are from 0 to 1."""


def _cast_back(program: Program) -> Iterator[Spot]:
    """Yield sums and products of pictures that become bytes uncut: `(image * factor).astype(np.uint8)`."""
    for call in program.calls:
        given = program.operand(call)
        kinds = {"astype", "to", "type"} if any("uint8" in text(one) for one in call.args) else {"uint8", "byte"}
        if program.called(call) not in kinds or given is None or not isinstance(given, ast.BinOp):
            continue
        inner = [one for one in ast.walk(given) if is_op(one, ast.Add | ast.Sub | ast.Mult)]
        if any(_PIXELS.search(stem_of(one.left)) for one in inner) and not _SAFE.search(text(given)):
            yield look_at(call)


# --- augmentation ---


@suspects_each("random choice made once", classes)
def _once(program: Program, owner: Class) -> Iterator[Spot]:
    """Find `self.flip = random.random() < 0.5` in the constructor of a data set, read in `__getitem__`."""
    item = owner.methods.get("__getitem__")
    for attribute, bounds in owner.attributes.items() if item is not None else ():
        value = bounds[0].value
        drawn = _DRAWN.search(text(value))
        if drawn and item is not None and attribute in words_in(item) and isinstance(bounds[0].statement, ast.stmt):
            yield look_at(bounds[0].statement)


@suspects("mirrored signs")
def _mirrored(program: Program) -> Iterator[Spot]:
    """Find flips of examples in a script about digits or letters."""
    if not re.search(r"digit|mnist|svhn|glyph|letter|emnist|omniglot", " ".join(words_in(program.tree)), re.IGNORECASE):
        return
    yield from (look_at(call) for call in program.calls if program.called(call) in _FLIPS)


# --- pictures ---

_SIZES = re.compile(
    r"^\(?(w|width), (h|height)(, \w+)?\)? = \w+\.shape|^\(?(h|height), (w|width)\)? = \w+\.size$|"
    r"resize\(\w+, \((h|height|rows|\w+\.shape\[0\]), (w|width|cols|\w+\.shape\[1\])\)|"
    r"(transpose|permute)\(\(?2, 1, 0\)|permute\(0, 3, 2, 1\)"
)


@suspects_each("height and width exchanged", ast.Assign | ast.Return | ast.Expr)
def _sides(program: Program, node: ast.Assign | ast.Return | ast.Expr) -> object:
    """Find `w, h = image.shape[:2]`, `h, w = picture.size`, `transpose(2, 1, 0)`."""
    return _SIZES.search(text(node))


@suspects("channels moved by a reshape")
def _channels(program: Program) -> Iterator[Spot]:
    """Find `image.reshape(3, h, w)` of an array whose channels may be last."""
    for name in (".reshape", ".view"):
        for call in program.calls_of(name):
            given = call.args[0].elts if len(call.args) == 1 and isinstance(call.args[0], ast.Tuple) else call.args
            sizes = [constant(one) for one in given]
            named = _PIXELS.search(stem_of(program.operand(call)) + " " + targets_of(program, call))
            if named and len(sizes) in {3, 4} and 3 in sizes[:2] and sizes[-1] != 3 and "permute" not in text(call):
                yield look_at(call)


@suspects("pixels changed before they are floats")
def _still_bytes(program: Program) -> Iterator[Spot]:
    """Find `images = images * factor` in front of `images.astype(np.float32)`, in a script with `uint8`."""
    if "uint8" not in text(program.tree):
        return
    for target, value, node in assigned(program.tree):
        around = program.function(node)
        if around is None or not isinstance(target, ast.Name) or not isinstance(value, ast.BinOp):
            continue
        later = re.search(rf"\b{target.id}\.(astype\(np\.float|float\(|to\(\w+\.float)", text(around))
        if later and target.id in words_in(value) and not re.search(r"float|\d\.\d", text(value)):
            yield look_at(node)


@suspects_each("division by a deviation that may be 0", operations(ast.Div))
def _no_spread(program: Program, node: ast.BinOp) -> object:
    """Find `(x - mean) / std` without an epsilon or a bound."""
    if not isinstance(node.left, ast.BinOp):
        return False
    spread = re.search(r"(std|deviation|sigma|spread)s?$|\.std\([^()]*\)$", text(node.right))
    safe = re.search(r"eps|maximum|clamp|clip|\+", text(node.right))
    return isinstance(node.left.op, ast.Sub) and spread and not safe
