"""Suspects about figures: accuracy, precision, recall, overlaps, errors, perplexity, and what they are divided by."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.program import FUNCTIONS, Program, argument, is_given, number
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import suspects, suspects_of
from glassgrad.doctor.reading.suspects.roles import (
    HELD_OUT,
    LABELS,
    TRAIN,
    assigned,
    called,
    ident,
    operand,
    targets_of,
    trains,
    words_in,
)
from glassgrad.doctor.reading.values import end, losses

_COUNTS = re.compile(r"correct|(^|_)(right|hits?|n_?ok|matches|acc|accuracy|good)(_|s|$)", re.IGNORECASE)
_PREDICTED = re.compile(r"pred|guess|output|y_?hat|scores?$|prob|logit|(^|_)(out|p)$", re.IGNORECASE)
_FIGURE = re.compile(
    r"acc|correct|score|iou|dice|(^|_)(f1|auc|mae|mse|rmse|err|error|loss|hits?|recall|precision)(_|$)"
)
_SKLEARN = re.compile(
    r"(precision|recall|roc_auc|r2|average_precision|fbeta)_score|classification_report|roc_curve|precision_recall\w+|"
    r"confusion_matrix|mean_absolute_percentage_error"
)
_DECIDED = re.compile(r"argmax|[^-]> ?0|>= ?0|round\(|\.int\(\)|astype\(int|\.predict\(")


def _named_values(program: Program) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names of figures with their values: assignments, entries of dictionaries, results of functions."""
    for target, value, _ in assigned(program.tree):
        yield ident(target).lower(), value
    for node in program.nodes:
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            yield from ((str(key.value).lower(), value) for key, value in pairs if isinstance(key, ast.Constant))
        if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Tuple):
            yield getattr(program.function(node), "name", "").lower(), node.value


# --- decisions ---


@suspects("largest value taken for its class")
def _value_of_best(program: Program) -> Iterator[Spot]:
    """Find `out.max(1)[0] == y`, and `pred, _ = out.max(1)` with a comparison of pred."""
    for node in program.nodes:
        if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.Eq):
            continue
        sides = (node.left, node.comparators[0])
        for side, other in (sides, sides[::-1]):
            one = flow(program).end(side)
            call = one.node if one is not None and one.path == (0,) else None
            if isinstance(call, ast.Call) and called(program, call) in {"max", "topk"} and LABELS.search(ident(other)):
                function = bool(program.names.full(call.func))
                if is_given(call, "dim", 1 if function else 0) or called(program, call) == "topk":
                    yield spot(node, program.statement(call), text=shown(node), made=shown(call))


@suspects("threshold of logits on probabilities")
def _zero(program: Program) -> Iterator[Spot]:
    """Find `torch.sigmoid(x) > 0`, which is always true."""
    for node in program.nodes:
        if (
            isinstance(node, ast.Compare)
            and isinstance(node.ops[0], ast.Gt | ast.GtE)
            and number(node.comparators[0]) == 0
        ):
            made = end(program, node.left)
            if made is not None and made.op in {"sigmoid", "softmax", "exp", "relu"}:
                yield spot(node, text=shown(node), op=made.op)


@suspects("class of a single output")
def _single(program: Program) -> Iterator[Spot]:
    """Find `model(x).argmax(1)` of a model whose last layer has one output."""
    for name in (".argmax", ".max"):
        for call in program.calls_of(name):
            made = end(program, operand(program, call))
            last = made.node if made is not None and made.op == "linear" else None
            if isinstance(last, ast.Call) and number(argument(last, "out_features", 1)) == 1 and call.args:
                yield spot(call, last, text=shown(call), layer=shown(last))


_COLUMN = re.compile(r"(\.unsqueeze\((1|-1|dim=1|dim=-1)\)|\.(view|reshape)\(-1, 1\)|\[:, None\])")
_FLAT = re.compile(r"(\.squeeze\(.*?\)|\[:, 0\]|\.(view|reshape)\(-1\)|\.flatten\(\)|\.ravel\(\))")


@suspects("compared in another shape")
def _shapes(program: Program) -> Iterator[Spot]:
    """Find `pred == y` where the loss takes `y.squeeze(1)`, `y.unsqueeze(1)` or `out.squeeze(1)`."""
    forms = [(ast.unparse(one.input), ast.unparse(one.target)) for one in losses(program) if one.target is not None]
    inputs, targets = " ".join(one for one, _ in forms), " ".join(one for _, one in forms)
    flat_target, column_target, flat_input = _FLAT.search(targets), _COLUMN.search(targets), _FLAT.search(inputs)
    for node in program.nodes:
        if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.Eq) or not forms:
            continue
        sides = [ast.unparse(one) for one in (node.left, node.comparators[0])]
        whole = " ".join(
            [*sides, *(ast.unparse(one.node) for side in (node.left,) for one in flow(program).ends(side))]
        )
        label = (
            LABELS.search(ident(node.comparators[0])) and not _FLAT.search(sides[1]) and not _COLUMN.search(sides[1])
        )
        best = re.search(r"argmax|max\(", whole)
        raw = not best and not _FLAT.search(whole) and re.search(r"> ?0|round|>= ?0", whole)
        if label and ((flat_target and best) or ((column_target or flat_input) and raw)):
            yield spot(node, text=shown(node))


@suspects("best taken from the wrong end")
def _wrong_end(program: Program) -> Iterator[Spot]:
    """Find `scores.argsort()[:k]`, `distances.topk(k)` and `topk(k, dim=0)`."""
    for call in program.calls:
        name, given = called(program, call), operand(program, call)
        text = ast.unparse(given) if given is not None else ""
        outer = program.parents.get(call)
        near = re.search(r"dist|(^|_)d(_|$)|cdist", text) and not text.startswith("-")
        high = re.search(r"scor|sim|prob|logit|cos|@", text) and not text.startswith("-") and not near
        turned = any(one.arg in {"descending", "largest", "reverse"} for one in call.keywords)
        first = isinstance(outer, ast.Subscript) and re.search(r"\[(:, )?:\w+\]$", ast.unparse(outer))
        if name == "argsort" and high and not turned and first:
            yield spot(call, text=shown(outer or call), what="the lowest scores")
        elif name == "topk" and near and not turned:
            yield spot(call, text=shown(call), what="the largest distances")
        elif name == "argmax" and near and re.search(r"near|neigh|closest|pred|assign", targets_of(program, call)):
            yield spot(call, text=shown(call), what="the largest distance")
        elif name == "argmin" and high:
            yield spot(call, text=shown(call), what="the lowest score")


# --- sums and what divides them ---


def _sums(program: Program, node: ast.BinOp) -> list[ast.AugAssign]:
    """Return the statements that add to the variable which a division divides."""
    name = ident(_bare(node.left))
    around = program.function(node) or program.tree
    return [
        one
        for one in ast.walk(around)
        if isinstance(one, ast.AugAssign)
        and isinstance(one.op, ast.Add)
        and ident(one.target) == name
        and program.loops(one)
    ]


def _bare(node: ast.expr) -> ast.expr:
    """Return the variable in `100 * total`, `float(total)`, `total.item()`."""
    while isinstance(node, ast.BinOp | ast.Call):
        if isinstance(node, ast.BinOp):
            node = node.right if number(node.left) is not None else node.left
        else:
            inner = (
                node.func.value if isinstance(node.func, ast.Attribute) else node.args[0] if node.args else node.func
            )
            node = inner
    return node


@suspects("figure divided by another count")
def _other_count(program: Program) -> Iterator[Spot]:
    """Find a sum over one loader divided by the length of another set, by a batch, or by examples if it adds means."""
    summed = re.search(r"reduction='sum'|size_average=False|loss = .*\.sum\(", ast.unparse(program.tree))
    for node in program.nodes:
        added = _sums(program, node) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) else []
        loop = program.loops(added[0])[0] if added else None
        if not added or not isinstance(node, ast.BinOp) or not isinstance(loop, ast.For):
            continue
        below, over, value = ast.unparse(node.right), ast.unparse(loop.iter), ast.unparse(added[0].value)
        outside = loop not in program.loops(node)
        roles = [
            [any(map(role.search, words_in(one))) for role in (HELD_OUT, TRAIN)] for one in (loop.iter, node.right)
        ]
        another = roles in ([[True, False], [False, True]], [[False, True], [True, False]])
        counts = "==" in value and "sum" in value
        means = re.search(r"\.mean\(\)|/ len|loss\.item\(\)$|loss$", value) and not re.search(r"\*|sum", value)
        means = means and not (summed and value.endswith(("loss", "loss.item()")))
        drawn = re.fullmatch(r"len\((\w+)\)|(\w+)\.(size\(0\)|shape\[0\])", below)
        batch = re.fullmatch(r"(\w+\.)?(batch_?size|bs)", below, re.IGNORECASE)
        batch = batch or (drawn and (drawn[1] or drawn[2]) in words_in(loop.target))
        examples = re.search(r"\.dataset\)|len\(\w*(data|set|_x|x_\w+|X\w*)\)$|n_(train|test|val)|n_samples", below)
        if another and outside:
            yield spot(node, added[0], text=shown(node), what=f"the sum is over {over}")
        elif counts and batch and outside:
            yield spot(node, added[0], text=shown(node), what="the sum counts examples of all batches")
        elif means and examples and outside and not re.search(r"len\(loader|batches", below):
            yield spot(node, added[0], text=shown(node), what="the sum adds a mean for each batch")


@suspects("division without a remainder")
def _whole(program: Program) -> Iterator[Spot]:
    """Find `correct // total`."""
    for node in program.nodes:
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.FloorDiv):
            continue
        error = re.search(r"(loss|err)\w*(\.item\(\))?$", ast.unparse(node.left))
        if error or _COUNTS.search(ident(_bare(node.left))):
            yield spot(node, text=shown(node))


@suspects("sum goes on over the epochs")
def _goes_on(program: Program) -> Iterator[Spot]:
    """Find a sum that begins before the loop over epochs and is divided in each epoch."""
    for node in program.nodes:
        added = _sums(program, node) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) else []
        loops = program.loops(added[0]) if added else []
        outer = loops[-1] if len(loops) > 1 else None
        if (
            outer is None
            or program.loops(node)[-1:] != [outer]
            or loops[0] in program.loops(node)
            or not isinstance(node, ast.BinOp)
        ):
            continue
        name = ident(added[0].target)
        if not (_FIGURE.search(name) or _COUNTS.search(name) or "total" in name):
            continue
        sets = [it for target, _, it in assigned(outer) if name in words_in(target)]
        below = ident(_bare(node.right))
        grows = any(isinstance(one, ast.AugAssign) and ident(one.target) == below for one in ast.walk(outer))
        if not sets and not grows:
            yield spot(added[0], node, text=shown(added[0]), division=shown(node))


@suspects("figure of the last batch")
def _last_batch(program: Program) -> Iterator[Spot]:
    """Find `acc = ...` in a loop over batches without training, read only after the loop."""
    for loop in program.nodes:
        if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Tuple) or trains(program, loop):
            continue
        if not re.search(r"load|_dl|batch|iter", ast.unparse(loop.iter), re.IGNORECASE):
            continue
        around = program.function(loop) or program.tree
        for target, value, node in assigned(loop):
            name = target.id if isinstance(target, ast.Name) else ""
            loads = [
                one
                for one in ast.walk(around)
                if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
            ]
            ends = getattr(loop, "end_lineno", 0) or 0
            if (
                _FIGURE.search(name)
                and isinstance(value, ast.Call | ast.BinOp)
                and loads
                and all(one.lineno > ends for one in loads)
            ):
                yield spot(node, text=shown(node), name=name)


@suspects("repeated indices counted once")
def _repeated(program: Program) -> Iterator[Spot]:
    """Find `table[labels, predictions] += 1` with arrays of indices."""
    for node in program.nodes:
        target = node.target if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) else None
        if not isinstance(target, ast.Subscript) or not isinstance(node, ast.AugAssign):
            continue
        parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        names = [one for one in parts if isinstance(one, ast.Name)]
        loops = {
            ident(one) for loop in program.loops(node) if isinstance(loop, ast.For) for one in ast.walk(loop.target)
        }
        made = [ast.unparse(it.node) for one in names for it in flow(program).ends(one)]
        arrays = [one for one in made if re.search(r"argmax|tolist|numpy\(\)|randint\(|integers\(|long\(\)", one)]
        single = any(re.search(r"item\(\)|int\(", one) for one in made)
        if len(names) == len(parts) and arrays and not single and not loops & {one.id for one in names}:
            yield spot(node, text=shown(node))


@suspects("padding counts in the figure")
def _padded(program: Program) -> Iterator[Spot]:
    """Find `(pred == y).mean()` over tokens in a script that pads."""
    if not re.search(r"ignore_index|padding_idx|pad_sequence|PAD\b|pad_id", ast.unparse(program.tree)):
        return
    for node in program.nodes:
        if (
            isinstance(node, ast.Compare)
            and isinstance(node.ops[0], ast.Eq)
            and isinstance(node.left, ast.Call | ast.Name)
        ):
            text = ast.unparse(program.statement(node))
            best = any(
                "argmax" in ast.unparse(one.node) or "max(" in ast.unparse(one.node)
                for one in flow(program).ends(node.left)
            )
            reduced = re.search(r"==[^=]*\)\.(float\(\)\.|double\(\)\.)?(mean|sum)\(", text)
            if best and reduced and not re.search(r"mask|pad|PAD|!=|ignore|valid|keep|\[:, -1\]|lengths", text):
                yield spot(node, text=shown(node))


# --- formulas ---


@suspects("precision and recall exchanged")
def _exchanged(program: Program) -> Iterator[Spot]:
    """Find `precision = tp / (tp + fn)`, and false positives counted where the prediction is negative."""
    for name, value in _named_values(program):
        text = ast.unparse(value).lower()
        below = text.partition(" / ")[2]
        fn, fp = (re.search(rf"\b{one}|false_?{two}", below) for one, two in (("fn", "neg"), ("fp", "pos")))
        precision = re.fullmatch(r"(precision|prec|ppv)", name) and fn and not fp
        recall = re.fullmatch(r"(recall|rec|sensitivity|tpr)", name) and fp and not fn
        wanted = {"fp": (True, False), "fn": (False, True)}.get(name)
        signs = _signs(text)
        turned = wanted is not None and signs is not None and signs == wanted[::-1]
        if precision or recall or turned:
            yield spot(value, text=f"{name} = {shown(value)}", name=name)


def _signs(text: str) -> tuple[bool, bool] | None:
    """Return whether a product of conditions takes positive predictions, and positive labels."""
    parts = re.split(r" & | \* |, ", text)
    found: dict[str, bool] = {}
    for part in parts:
        who = (
            "pred"
            if _PREDICTED.search(part.strip("()~ =01."))
            else "label"
            if re.search(r"\b(y|label|target|true|gt|truth)", part)
            else ""
        )
        if who:
            found[who] = not re.search(r"~|1 - |== 0|!= 1|not |false", part)
    return (found["pred"], found["label"]) if len(found) == 2 else None


@suspects("overlap without its factor")
def _overlap(program: Program) -> Iterator[Spot]:
    """Find F1 and Dice without the factor 2, and a union from which the intersection is not subtracted."""
    for name, value in _named_values(program):
        fraction = value.right if isinstance(value, ast.BinOp) and number(value.left) == 1 else value
        while (
            isinstance(fraction, ast.Call)
            and isinstance(fraction.func, ast.Attribute)
            and not program.names.full(fraction.func)
        ):
            fraction = fraction.func.value
        if not isinstance(fraction, ast.BinOp) or not isinstance(fraction.op, ast.Div):
            continue
        above, below = ast.unparse(fraction.left), ast.unparse(fraction.right)
        made = [ast.unparse(one.node) for one in flow(program).ends(fraction.right)]
        sums = all(
            "+" in one and not re.search(r" - |\||maximum|logical_or|clamp|> 0", one)
            for one in [*made, below]
            if "+" in one
        )
        added = sums and any("+" in one for one in [*made, below])
        halves = re.search(r"dice|(^|_)f1", name) and not re.search(r"\b2|\b0?\.5|/ 2", f"{above} {below} {made}")
        union = (
            re.search(r"iou|jaccard", name)
            and not re.search(r"\b2(\.0)? \*", above)
            and not re.search(r"fp|fn|false", below)
        )
        twice = re.search(r"iou|jaccard", name) and re.match(r"\(?2(\.0)? \*", above)
        if (halves and added) or (union and added) or twice:
            yield spot(fraction, text=f"{name}: {shown(fraction)}")


@suspects("labels and predictions exchanged")
def _arguments(program: Program) -> Iterator[Spot]:
    """Find `precision_score(predictions, labels)`."""
    for call in program.calls:
        if _SKLEARN.fullmatch(called(program, call)) and len(call.args) > 1:
            names = [ident(one) or ast.unparse(one) for one in call.args[:2]]
            wrong = _PREDICTED.search(names[0]) and not LABELS.search(re.sub("y_(pred|hat)", "", names[0]))
            if wrong and LABELS.search(names[1]) and not _PREDICTED.search(names[1]):
                yield spot(call, text=shown(call))


@suspects("ranking of decisions")
def _decisions(program: Program) -> Iterator[Spot]:
    """Find `roc_auc_score(labels, predictions)` of classes instead of scores."""
    for call in program.calls:
        given = call.args[1] if len(call.args) > 1 else None
        if given is not None and re.fullmatch(
            r"roc_auc_score|average_precision_score|roc_curve|auroc", called(program, call)
        ):
            made = " ".join([ast.unparse(given), *(ast.unparse(one.node) for one in flow(program).ends(given))])
            if _DECIDED.search(made):
                yield spot(call, text=shown(call))


@suspects("mean of roots")
def _roots(program: Program) -> Iterator[Spot]:
    """Find a root of an error that is taken for each batch, and added up or collected."""
    for node in program.nodes:
        value = node.value if isinstance(node, ast.AugAssign) else None
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "append" and node.args:
            value = node.args[0]
        if value is None or not program.loops(node) or not isinstance(node, ast.expr | ast.stmt):
            continue
        if re.search(r"psnr|log10|norm", ast.unparse(node)):
            continue
        text = " ".join([ast.unparse(value), *(ast.unparse(one.node) for one in flow(program).ends(_bare(value)))])
        if re.search(r"sqrt\(.*(mse|loss|crit|mean|err)|(mse|loss|mean|err)\w*.*\*\* 0\.5", text) and not re.search(
            r"std|norm", text
        ):
            yield spot(node, text=shown(node))


@suspects("share of variance turned round")
def _variance(program: Program) -> Iterator[Spot]:
    """Find `r2 = 1 - total / residual`, and a total sum of squares about the predictions."""
    for name, value in _named_values(program):
        text = ast.unparse(value)
        turned = re.search(r"(^|_)r2|r_?squared", name) and re.search(
            r"tot\w* / \w*res|var\(.*\) / .*mse|^\w*res\w* / \w*tot", text
        )
        about = re.search(r"tot|sst", name) and re.search(r"(pred|out|y_?hat)\w*\.mean\(", text)
        if turned or about:
            yield spot(value, text=f"{name}: {shown(value)}")


@suspects("perplexity of the wrong number")
def _perplexity(program: Program) -> Iterator[Spot]:
    """Find `exp` of a sum, a power of 2 of a loss in nats, and a mean of perplexities."""
    sums = {ident(one.target) for one in program.nodes if isinstance(one, ast.AugAssign)}
    for name, value in _named_values(program):
        if not re.search(r"ppl|perplex", name):
            continue
        inner = (
            ident(_bare(value.args[0]))
            if isinstance(value, ast.Call) and value.args and called(program, value) == "exp"
            else ""
        )
        direct = isinstance(value, ast.Call) and value.args and not isinstance(value.args[0], ast.BinOp)
        base = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Pow) and number(value.left) == 2
        if (inner in sums and direct) or base or re.search(r"exp2\(|2\.0 \*\*", ast.unparse(value)):
            yield spot(value, text=f"{name} = {shown(value)}")
    for node in program.nodes:
        if (
            isinstance(node, ast.AugAssign)
            and re.search(r"ppl|perplex", ident(node.target))
            and "exp(" in ast.unparse(node)
        ):
            yield spot(node, text=shown(node))


# --- what is measured ---


@suspects("best weights chosen by another set")
def _chosen(program: Program) -> Iterator[Spot]:
    """Find `if test_accuracy > best` and `if train_loss < best`."""
    for node in program.nodes:
        test = node.test if isinstance(node, ast.If) else None
        if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Gt | ast.Lt | ast.GtE | ast.LtE):
            continue
        sides = [ident(test.left), ident(test.comparators[0])]
        best = [one for one in sides if re.search(r"best|(^|_)(min|max|lowest|highest)", one)]
        other = [one for one in sides if one not in best]
        if best and other and re.search(r"(^|_)(test|train|tr|training)(_|$)|^running_loss$|^epoch_loss$", other[0]):
            yield spot(node, text=shown(test), name=other[0])


@suspects("figure with another name")
def _titled(program: Program) -> Iterator[Spot]:
    """Find `print(f"val {train_accuracy}")`, and a pass over the training data whose result is printed as a test."""
    for node in program.nodes:
        parts = node.values if isinstance(node, ast.JoinedStr) else []
        for text, value in itertools.pairwise(parts):
            if isinstance(text, ast.Constant) and isinstance(value, ast.FormattedValue):
                words = re.split(r"[|,;]|\s{2,}", str(text.value))[-1]
                shows = ast.unparse(value.value)
                held = re.search(r"\b(val|valid|validation|test|dev)\b", words, re.IGNORECASE) and not re.search(
                    "train", words
                )
                if held and TRAIN.search(shows) and not HELD_OUT.search(shows) and isinstance(node, ast.expr):
                    yield spot(node, text=shown(value.value), words=words.strip())
    for node in program.nodes:
        if isinstance(node, FUNCTIONS) and re.match(r"(val|test|eval)", node.name) and "backward" not in words_in(node):
            for loop in ast.walk(node):
                if (
                    isinstance(loop, ast.For)
                    and TRAIN.search(ast.unparse(loop.iter))
                    and not re.search(r"split|mode", ast.unparse(loop.iter))
                ):
                    yield spot(loop, text=shown(loop.iter), words=node.name)


SUSPECTS = suspects_of(globals())
