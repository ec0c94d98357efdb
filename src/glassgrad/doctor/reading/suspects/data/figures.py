"""Suspects about figures: accuracy, precision, recall, overlaps, errors, perplexity, and what they are divided by."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.nodes import is_op
from glassgrad.doctor.reading.program import Program, argument, is_given, number
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.data.roles import LABELS, unscaled
from glassgrad.doctor.reading.suspects.form import look_at, suspects, suspects_each, suspects_rows
from glassgrad.doctor.reading.suspects.lookup import assigned, receiver, stem_of, targets_of, text
from glassgrad.doctor.reading.values import end, losses

_PREDICTED = re.compile(r"pred|guess|output|y_?hat|scores?$|prob|logit|(^|_)(out|p)$", re.IGNORECASE)
_SKLEARN = re.compile(
    r"(precision|recall|roc_auc|r2|average_precision|fbeta)_score|classification_report|roc_curve|precision_recall\w+|"
    r"confusion_matrix|mean_absolute_percentage_error"
)
_DECIDED = re.compile(r"argmax|[^-]> ?0|>= ?0|round\(|\.int\(\)|astype\(int|\.predict\(")


def _named_values(program: Program) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names of figures with their values: assignments, entries of dictionaries, results of functions."""
    yield from ((stem_of(target).lower(), value) for target, value, _ in assigned(program.tree))
    for node in program.nodes:
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            yield from ((str(key.value).lower(), value) for key, value in pairs if isinstance(key, ast.Constant))
        if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Tuple):
            yield getattr(program.function(node), "name", "").lower(), node.value


# --- decisions ---


@suspects_each("largest value taken for its class", ast.Compare)
def _value_of_best(program: Program, node: ast.Compare) -> Iterator[Spot]:
    """Find `out.max(1)[0] == y`, and `pred, _ = out.max(1)` with a comparison of pred."""
    if not isinstance(node.ops[0], ast.Eq):
        return
    sides = (node.left, node.comparators[0])
    for side, other in (sides, sides[::-1]):
        one = flow(program).end(side)
        call = one.node if one is not None and one.path == (0,) else None
        if one is not None and isinstance(one.node, ast.Attribute) and one.node.attr == "values":
            call = one.node.value
        if isinstance(call, ast.Call) and program.called(call) in {"max", "topk"} and LABELS.search(stem_of(other)):
            function = bool(program.names.full(call.func))
            if is_given(call, "dim", 1 if function else 0) or program.called(call) == "topk":
                yield look_at(node, program.statement(call), made=shown(call))


@suspects_each("threshold of logits on probabilities", ast.Compare)
def _zero(program: Program, node: ast.Compare) -> object:
    """Find `torch.sigmoid(x) > 0`, which is always true."""
    if not isinstance(node.ops[0], ast.Gt | ast.GtE) or number(node.comparators[0]) != 0:
        return False
    made = end(program, node.left)
    return made is not None and made.op in {"sigmoid", "softmax", "exp", "relu"} and look_at(node, op=made.op)


@suspects("class of a single output")
def _single(program: Program) -> Iterator[Spot]:
    """Find `model(x).argmax(1)` of a model whose last layer has one output."""
    for name in (".argmax", ".max"):
        for call in program.calls_of(name):
            made = end(program, program.operand(call))
            last = made.node if made is not None and made.op == "linear" else None
            if isinstance(last, ast.Call) and number(argument(last, "out_features", 1)) == 1 and call.args:
                yield look_at(call, last, layer=shown(last))


_COLUMN = re.compile(r"(\.unsqueeze\((1|-1|dim=1|dim=-1)\)|\.(view|reshape)\(-1, 1\)|\[:, None\])")
_FLAT = re.compile(r"(\.squeeze\(.*?\)|\[:, 0\]|\.(view|reshape)\(-1\)|\.flatten\(\)|\.ravel\(\))")


@suspects("compared in another shape")
def _shapes(program: Program) -> Iterator[Spot]:
    """Find `pred == y` where the loss takes `y.squeeze(1)`, `y.unsqueeze(1)` or `out.squeeze(1)`."""
    forms = [(text(one.input), text(one.target)) for one in losses(program) if one.target is not None]
    inputs, targets = " ".join(one for one, _ in forms), " ".join(one for _, one in forms)
    flat_target, column_target, flat_input = _FLAT.search(targets), _COLUMN.search(targets), _FLAT.search(inputs)
    if re.search(r"\.(view|reshape)\(-1, (?!1\))", inputs):
        flat_target = None  # every place counts as an example, on both sides
    for node in program.every(ast.Compare):
        if not isinstance(node.ops[0], ast.Eq) or not forms:
            continue
        sides = [text(one) for one in (node.left, node.comparators[0])]
        whole = " ".join([*sides, *(text(one.node) for side in (node.left,) for one in flow(program).ends(side))])
        shaped = _FLAT.search(sides[1]) or _COLUMN.search(sides[1])
        label = LABELS.search(stem_of(node.comparators[0])) and not shaped
        turned = re.search(r"\.t\(\)|\.T\b|transpose|permute", whole)
        best = not turned and re.search(r"argmax|max\(", whole)
        raw = not best and not _FLAT.search(whole) and re.search(r"> ?0|round|>= ?0", whole)
        if label and ((flat_target and best) or ((column_target or flat_input) and raw)):
            yield look_at(node)


@suspects_each("best taken from the wrong end", ast.Call)
def _wrong_end(program: Program, call: ast.Call) -> Iterator[Spot]:
    """Find `scores.argsort()[:k]`, `distances.topk(k)` and `topk(k, dim=0)`."""
    name, given = program.called(call), program.operand(call)
    said = text(given)
    outer = program.parents.get(call)
    near = re.search(r"dist|(^|_)d(_|$)|cdist", said) and not said.startswith("-")
    high = re.search(r"scor|sim|prob|logit|cos(?!t)|@", said) and not said.startswith("-") and not near
    turned = any(one.arg in {"descending", "largest", "reverse"} for one in call.keywords)
    first = isinstance(outer, ast.Subscript) and re.search(r"\[(:, )?:\w+\]$", text(outer))
    if name == "argsort" and high and not turned and first:
        yield spot(call, text=shown(outer or call), what="the lowest scores")
    elif name == "topk" and near and not turned:
        yield look_at(call, what="the largest distances")
    elif name == "argmax" and near and re.search(r"near|neigh|closest|pred|assign", targets_of(program, call)):
        yield look_at(call, what="the largest distance")
    elif name == "topk" and number(argument(call, "dim", 1)) == 0 and not near:
        yield look_at(call, what="the best examples for each class, along the axis of the examples")
    elif name == "argmin" and high:
        yield look_at(call, what="the lowest score")


# --- formulas ---


@suspects_rows("precision and recall exchanged", _named_values)
def _exchanged(program: Program, name: str, value: ast.expr) -> object:
    """Find `precision = tp / (tp + fn)`, and false positives counted where the prediction is negative."""
    said = text(value).lower()
    below = said.partition(" / ")[2]
    fn, fp = (re.search(rf"\b{one}|false_?{two}", below) for one, two in (("fn", "neg"), ("fp", "pos")))
    precision = re.fullmatch(r"(precision|prec|ppv)", name) and fn and not fp
    recall = re.fullmatch(r"(recall|rec|sensitivity|tpr)", name) and fp and not fn
    wanted = {"fp": (True, False), "fn": (False, True)}.get(name)
    signs = _signs(said)
    turned = wanted is not None and signs is not None and signs == wanted[::-1]
    return (precision or recall or turned) and spot(value, text=f"{name} = {shown(value)}", name=name)


def _signs(text: str) -> tuple[bool, bool] | None:
    """Return whether a product of conditions takes positive predictions, and positive labels."""
    parts = re.split(r" & | \* |, ", text)
    found: dict[str, bool] = {}
    for part in parts:
        who = "label" if re.search(r"\b(y|label|target|true|gt|truth)", part) else ""
        who = "pred" if _PREDICTED.search(part.strip("()~ =01.")) else who
        if who:
            found[who] = not re.search(r"~|1 - |== 0|!= 1|not |false", part)
    return (found["pred"], found["label"]) if len(found) == 2 else None


@suspects_rows("overlap without its factor", _named_values)
def _overlap(program: Program, name: str, value: ast.expr) -> Iterator[Spot]:
    """Find F1 and Dice without the factor 2, and a union from which the intersection is not subtracted."""
    fraction = value.right if isinstance(value, ast.BinOp) and number(value.left) == 1 else value
    fraction = receiver(fraction, program)
    if not is_op(fraction, ast.Div):
        return
    above, below = text(fraction.left), text(fraction.right)
    made = [text(one.node) for one in flow(program).ends(fraction.right)]
    parts = [one for one in [*made, below] if "+" in one]
    added = parts and not any(re.search(r" - |\||maximum|logical_or|clamp|> 0", one) for one in parts)
    halves = re.search(r"dice|(^|_)f1", name) and not re.search(r"\b2|\b0?\.5|/ 2", f"{above} {below} {made}")
    whole = re.search(r"\b2(\.0)? \*", above) or re.search(r"fp|fn|false", below)
    union = re.search(r"iou|jaccard", name) and not whole
    twice = re.search(r"iou|jaccard", name) and re.match(r"\(?2(\.0)? \*", above)
    if (halves and added) or (union and added) or twice:
        yield spot(fraction, text=f"{name}: {shown(fraction)}")
        held = program.bound(fraction.right) if isinstance(fraction.right, ast.Name) else None
        if held is not None and isinstance(held.statement, ast.stmt) and not halves:
            yield spot(held.statement, text=f"{name}: {shown(fraction)}")


@suspects("labels and predictions exchanged")
def _arguments(program: Program) -> Iterator[Spot]:
    """Find `precision_score(predictions, labels)`."""
    for call in program.calls:
        if _SKLEARN.fullmatch(program.called(call)) and len(call.args) > 1:
            names = [stem_of(one) or text(one) for one in call.args[:2]]
            wrong = _PREDICTED.search(names[0]) and not LABELS.search(re.sub("y_(pred|hat)", "", names[0]))
            if wrong and LABELS.search(names[1]) and not _PREDICTED.search(names[1]):
                yield look_at(call)


@suspects_each("ranking of decisions", ast.Call)
def _decisions(program: Program, call: ast.Call) -> Iterator[Spot]:
    """Find `roc_auc_score(labels, predictions)` of classes instead of scores."""
    given = call.args[1] if len(call.args) > 1 else None
    if given is None:
        return
    if re.fullmatch(r"roc_auc_score|average_precision_score|roc_curve|auroc", program.called(call)):
        made = " ".join([text(given), *(text(one.node) for one in flow(program).ends(given))])
        if _DECIDED.search(made):
            yield look_at(call)


@suspects_each("mean of roots", ast.expr | ast.stmt)
def _roots(program: Program, node: ast.expr | ast.stmt) -> object:
    """Find a root of an error that is taken for each batch, and added up or collected."""
    value = node.value if isinstance(node, ast.AugAssign) else None
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "append" and node.args:
        value = node.args[0]
    if value is None or not program.loops(node) or re.search(r"psnr|log10|norm|grad", text(node)):
        return False
    said = " ".join([text(value), *(text(one.node) for one in flow(program).ends(unscaled(value)))])
    if not re.search(r"sqrt\(.*(mse|loss|crit|mean|err)|mean\(\)\.sqrt\(\)|(mse|loss|mean|err)\w*.*\*\* 0\.5", said):
        return False
    return not re.search(r"std|norm", said)


@suspects_rows("share of variance turned round", _named_values)
def _variance(program: Program, name: str, value: ast.expr) -> object:
    """Find `r2 = 1 - total / residual`, and a total sum of squares about the predictions."""
    said = text(value)
    turned = re.search(r"tot\w* / \w*res|var\(.*\) / .*mse|^\w*res\w* / \w*tot", said)
    turned = turned and re.search(r"(^|_)r2|r_?squared", name)
    mean = re.search(r"(\w+) - (\w+)\.mean\(", said)
    about = re.search(r"tot|sst", name) and mean is not None and mean[1] != mean[2]
    return (turned or about) and spot(value, text=f"{name}: {shown(value)}")


@suspects("perplexity of the wrong number")
def _perplexity(program: Program) -> Iterator[Spot]:
    """Find `exp` of a sum, a power of 2 of a loss in nats, and a mean of perplexities."""
    sums = {stem_of(one.target) for one in program.every(ast.AugAssign)}
    for name, value in _named_values(program):
        if not re.search(r"ppl|perplex", name):
            continue
        given = value.args[0] if isinstance(value, ast.Call) and value.args else None
        inner = stem_of(unscaled(given)) if given is not None and program.called(value) == "exp" else ""
        direct = given is not None and not isinstance(given, ast.BinOp)
        base = is_op(value, ast.Pow) and number(value.left) == 2
        if (inner in sums and direct) or base or re.search(r"exp2\(|2\.0 \*\*", text(value)):
            yield spot(value, text=f"{name} = {shown(value)}")
    for node in program.every(ast.AugAssign):
        if re.search(r"ppl|perplex", stem_of(node.target)) and "exp(" in text(node):
            yield look_at(node)
