"""Suspects about the losses of the library: what is compared with what, in which order, and with which options."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.actors import setting
from glassgrad.doctor.reading.gradients import switched_off
from glassgrad.doctor.reading.iterations import trainings
from glassgrad.doctor.reading.names import named
from glassgrad.doctor.reading.nodes import arguments, elements, is_op, method_of, object_of, within
from glassgrad.doctor.reading.program import Function, Program, argument, constant
from glassgrad.doctor.reading.ranks import is_column
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import look_at, suspects, suspects_each, suspects_rows
from glassgrad.doctor.reading.suspects.lookup import functions, stem_of, text
from glassgrad.doctor.reading.suspects.losses.formulas import (
    called,
    is_target,
    option,
    reached,
    reduced_by,
    reduction,
    resolved,
    source,
    uses,
    uses_of,
    words,
    words_of,
)
from glassgrad.doctor.reading.values import ELEMENTWISE, Loss, axis_of, end, layer, library_name, losses, op

_CLASSES = frozenset({"cross_entropy", "nll_loss"})
_TAUGHT = named("target targets label labels y")
_HEAT = named("t tau temp temperature")


# --- which loss for which output ---


@suspects_each("one unit for several classes", losses)
def _one_unit(program: Program, one: Loss) -> object:
    """Find a cross entropy over classes of an output with one unit, which is always 0."""
    odd = one.kind in _CLASSES and (is_column(program, one.input) or _has_one_unit(program, one.input))
    return odd and look_at(one.call)


def _has_one_unit(program: Program, node: ast.expr) -> bool:
    """Tell whether a linear layer with a setting of 1 unit makes a value, in a script that reshapes nothing."""
    found = end(program, node)
    made = found.node if found is not None and found.op == "linear" else None
    units = setting(program, argument(made, "out_features", 1)) if isinstance(made, ast.Call) else None
    return units == 1 and not re.search(r"view|reshape|squeeze|cat\(|stack", source(program))


@suspects_each("softmax of a single unit", ast.Call)
def _softmax_of_one(program: Program, call: ast.Call) -> Iterator[Spot]:
    name, operand = op(program, call)
    if name in {"softmax", "log_softmax"} and is_column(program, operand):
        along = constant(axis_of(program, call))
        if along == -1 or (along == 1 and not _pools(program, call)):
            yield from _with_losses(program, call)
    elif library_name(program, call) in {"Softmax", "LogSoftmax"} and not _pools(program, call):
        outer = program.parents.get(call)
        parts = outer.args if isinstance(outer, ast.Call) and library_name(program, outer) == "Sequential" else []
        before = parts[parts.index(call) - 1] if call in parts and parts.index(call) else None
        if isinstance(before, ast.Call) and constant(argument(before, "out_features", 1)) == 1:
            yield from _with_losses(program, call)


def _with_losses(program: Program, made: ast.expr) -> Iterator[Spot]:
    """Yield the place of an op, and the losses that get its result."""
    yield look_at(made)
    for one in losses(program):
        found = end(program, one.input)
        if found is not None and found.node is made:
            yield spot(one.call, text=shown(made))


def _pools(program: Program, call: ast.Call) -> bool:
    """Tell by the names around it whether a softmax gives the weights of positions."""
    owner, function = program.owner(call), program.function(call)
    around = text(program.statement(call)) + (owner.node.name if owner else "") + getattr(function, "name", "")
    return any(word in around.lower() for word in ("att", "pool", "align", "gate", "weight", "alpha", "routing"))


@suspects_each("bounded before a loss of logits", losses)
def _bounded(program: Program, one: Loss) -> Iterator[Spot]:
    """Find tanh or softplus before cross entropy, and tanh or relu before the binary one with logits."""
    wrong = {
        "cross_entropy": {"tanh", "softplus", "logsigmoid"},
        "binary_cross_entropy_with_logits": {"tanh", "relu", "softplus"},
        "binary_cross_entropy": {"tanh", "relu", "softplus"},
    }
    found = end(program, one.input)
    if found is not None and found.op in wrong.get(one.kind, ()):
        block = _last_block(program, one.input, found.node)
        if block is not None:
            said = f"{shown(block)}, whose last layer is {shown(found.node)},"
            yield spot(block, found.node, text=said, loss=one.kind)
            return
        for node in (found.node, one.call):
            yield spot(node, one.call, text=shown(found.node), loss=one.kind)


def _last_block(program: Program, output: ast.expr, part: ast.expr) -> ast.expr | None:
    """Return the call that makes the last block of a model, if a part stands in the class of the block."""
    value: ast.expr | None = resolved(program, output)
    around = program.owner(part)
    for _ in range(4):
        made = layer(program, value.func) if isinstance(value, ast.Call) else None
        forward = program.method(made.owner, "forward") if made is not None else None
        ends = within(forward, ast.Return)
        value = resolved(program, ends[-1].value) if len(ends) == 1 and ends[-1].value is not None else None
        last = layer(program, value.func) if isinstance(value, ast.Call) else None
        if last is not None and last.owner is not None and last.owner is around:
            return last.call
    return None


@suspects_each("classes by squared error", losses)
def _squared_classes(program: Program, one: Loss) -> object:
    """Find a squared or absolute error of probabilities, or against one-hot labels."""
    if one.kind not in ELEMENTWISE:
        return False
    found = end(program, one.input)
    known = words_of(one.target) | words_of(resolved(program, one.target))
    return ((found is not None and found.op == "softmax") or "hot" in known or "onehot" in known) and look_at(one.call)


@suspects_each("several answers by cross entropy", losses)
def _several(program: Program, one: Loss) -> object:
    """Find a cross entropy over classes whose targets are made to floats, or are called tags or multi-hot."""
    node = one.target
    name, _ = called(program, node)
    said = text(node)
    if re.search(r"\(-1,?\)$|flatten", said):
        return False
    several = name == "float" or "float" in said or words_of(node) & {"multi", "multihot", "tags", "attributes"}
    return one.kind == "cross_entropy" and several and look_at(one.call, target=shown(node or one.call))


@suspects_each("softmax before a binary loss", losses)
def _softmax_binary(program: Program, one: Loss) -> Iterator[Spot]:
    found = end(program, one.input)
    if one.kind == "binary_cross_entropy" and found is not None and found.op == "softmax":
        yield from (spot(node, one.call, text=shown(found.node)) for node in (found.node, one.call))


@suspects_each("cosines as logits", losses)
def _cosines(program: Program, one: Loss) -> object:
    """Find a cross entropy of cosines that nothing scales."""
    node = resolved(program, one.input)
    if one.kind != "cross_entropy" or not isinstance(node, ast.Call | ast.BinOp):
        return False
    name, _ = called(program, node)
    product = is_op(node, ast.MatMult)
    product = product or name in {"mm", "matmul", "linear", "einsum"}
    parts = [called(program, part)[0] for part in reached(program, node) if isinstance(part, ast.Call)]
    odd = name == "cosine_similarity" or (product and ("normalize" in parts or "norm" in parts))
    return odd and look_at(node, one.call)


# --- order and form of the arguments ---


@suspects_each("loss of a value with itself", losses)
def _itself(program: Program, one: Loss) -> object:
    sides = [resolved(program, side) for side in (one.input, one.target)]
    texts = [text(side) for side in sides if side is not None]
    same = len(texts) == 2 and texts[0] == texts[1] and not isinstance(sides[0], ast.Constant)
    return same and not any(_is_filled(program, side) for side in (one.input, one.target)) and look_at(one.call)


def _is_filled(program: Program, side: ast.expr | None) -> bool:
    """Tell whether a script writes into parts of a tensor: `target[rows, actions] = ...`."""
    while isinstance(side, ast.Call) and isinstance(side.func, ast.Attribute):  # `target.detach()`
        side = side.func.value
    return isinstance(side, ast.Name) and any(
        isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and stem_of(node) == side.id
        for node in ast.walk(program.scope(side))
    )


_PARTS = (frozenset({"train", "tr"}), frozenset({"val", "valid", "validation", "dev"}), frozenset({"test", "te"}))


@suspects("prediction and target of different parts")
def _other_part(program: Program) -> Iterator[Spot]:
    """Find a loss or a comparison of a prediction for one part of the data with the targets of another one."""
    pairs: list[tuple[ast.expr, ast.expr, ast.expr | None]] = []
    pairs += [(one.call, one.input, one.target) for one in losses(program)]
    less = [one for one in program.every(ast.BinOp) if isinstance(one.op, ast.Sub)]
    less = [one for one in less if not re.search(r"mean|std|min|max|len|size|shape", text(one))]
    pairs += [(one, one.left, one.right) for one in less]
    for node, left, right in pairs:
        deep = not isinstance(node, ast.BinOp)
        parts = [reached(program, side) if deep else ast.walk(side or node) for side in (left, right)]
        said = [frozenset().union(*map(words_of, one)) for one in parts]
        sides = [{at for at, known in enumerate(_PARTS) if side & known} for side in said]
        if all(sides) and not sides[0] & sides[1]:
            yield look_at(node)


@suspects("target of another output")
def _crossed(program: Program) -> Iterator[Spot]:
    """Find `criterion(out2, y1)` beside `criterion(out1, y1)` where the script has a y2."""
    known = {one.id for one in program.every(ast.Name)}
    known |= {str(one.value) for one in program.every(ast.Constant) if isinstance(one.value, str)}
    found = [(one, _label(one.input), _label(one.target)) for one in losses(program)]
    for one, given, target in found:
        own, marks = words(given), words(target)
        made = program.value_of(one.target) if isinstance(one.target, ast.Name) else None
        for other, beside, theirs in found:
            if other is one or program.function(other.call) is not program.function(one.call) or own & marks:
                continue
            swaps = [(old, new) for old in marks & words(beside) for new in own - words(beside)]
            if isinstance(made, ast.Call) and any(target.replace(old, new) == theirs for old, new in swaps):
                continue  # two views that are the target of each other
            if any(target.replace(old, new) in known - {target, given} for old, new in swaps):
                yield look_at(one.call, target=target)
                break


def _label(node: ast.expr | None) -> str:
    """Return the name of a value, or the text under which a dictionary has it."""
    if isinstance(node, ast.Subscript) and isinstance(constant(node.slice), str):
        return str(constant(node.slice))
    return stem_of(node)


@suspects("labels that no loss reads")
def _unread(program: Program) -> Iterator[Spot]:
    """Find a training loop, or a step, that gets labels and never uses them, in a script about no reconstruction."""
    if any(word in source(program) for word in ("autoencod", "vae", "recon", "generator", "simclr", "noise")):
        return
    for iteration in trainings(program):
        loop = iteration.node
        if not isinstance(loop, ast.For):
            continue
        names = [one.id for one in within(loop.target, ast.Name)]
        read = {one.id for line in loop.body for one in within(line, ast.Name)}
        wanted = [one for one in names if words(one) & _TAUGHT]
        if len(names) > 1 and wanted and not set(wanted) & read:
            inner = [one.call for one in losses(program) if loop in program.loops(one.call)]
            yield spot(inner[0] if inner else loop, text=wanted[0])
    for function in functions(program):
        backward = next((one for one in within(function, ast.Call) if method_of(one) == "backward"), None)
        for call in program.uses(function) if backward is not None else ():
            for name in _given_beside(program, function, call):
                bound = program.bound(object_of(backward))
                yield spot(program.statement(bound.statement if bound is not None else backward or call), text=name)


def _given_beside(program: Program, function: Function, call: ast.Call) -> set[str]:
    """Return the parameters that a function never reads and that come with another: `step(x[at], y[at])`."""
    names = [one.arg for one in function.args.args if one.arg not in {"self", "cls"}]
    pairs = [(name, _comes_from(program, one)) for name, one in zip(names, call.args, strict=False)]
    rows = [one for _, one in pairs if one]
    read = {one.id for line in function.body for one in within(line, ast.Name)}
    sure = [name for name, one in pairs if rows.count(one) > 1 and (one[0] == "[" or words(name) & _TAUGHT)]
    return {name for name in sure if name not in read and name[0] != "_"}


def _comes_from(program: Program, node: ast.expr) -> str:
    """Return the rows that an argument takes, or the target of the loop that it comes from; empty for others."""
    if isinstance(node, ast.Subscript):
        return f"[{text(node.slice)}]"
    targets = [text(one.target) for one in program.loops(node) if isinstance(one, ast.For)]
    return next((one for one in targets if re.search(rf"\b{re.escape(text(node))}\b", one)), "")


@suspects_each("prediction cut before its loss", losses)
def _cut(program: Program, one: Loss) -> object:
    """Find a clamp of the prediction between two bounds, beyond which it has no gradient."""
    node = resolved(program, one.input)
    name, _ = called(program, node)
    if not isinstance(node, ast.Call) or name not in {"clamp", "clip", "hardtanh", "relu6"}:
        return False
    given = [constant(part) for part in arguments(node)]
    tiny = any(isinstance(part, float) and (0 < abs(part) < 0.01 or 0.99 < part < 1) for part in given)
    known = tiny or words_of(node) & {"eps", "epsilon"} or switched_off(program, one.call) is not None
    return not known and look_at(node, one.call)


@suspects_each("logits viewed before their loss", losses)
def _viewed(program: Program, one: Loss) -> object:
    """Find logits that a view brings into the form of the loss: a map of classes as rows, or three axes."""
    node = program.written(one.input)
    name, operand = called(program, node)
    if one.kind not in _CLASSES or name not in {"view", "reshape"} or not isinstance(node, ast.Call):
        return False
    made = end(program, operand)
    turned = any(called(program, part)[0] in {"permute", "transpose", "movedim"} for part in reached(program, node))
    odd = len(node.args) >= 3 or (made is not None and made.op == "conv" and not turned and len(node.args) == 2)
    return odd and look_at(node, one.call)


@suspects_each("normalised along the batch", ast.Call)
def _along_batch(program: Program, call: ast.Call) -> object:
    """Find `normalize(z, dim=0)` and `z / z.norm(dim=0)`, other than of weights, and the axis of stacked outputs."""
    name, operand = op(program, call)
    along = constant(argument(call, "dim", {"normalize": 2}.get(name, -1)))
    outer = program.parents.get(call)
    divides = is_op(outer, ast.Div) and outer.right is call
    of_weights = words_of(operand) & {"weight", "weights", "w", "kernel", "proto", "prototypes", "filter", "u", "v"}
    drawn = called(program, operand)[0] in {"randn", "rand", "randn_like"}
    known = (name == "normalize" or (name == "norm" and divides)) and not of_weights and not drawn
    stacked = along not in {None, -1} and along == _stacked_along(program, operand)
    over = "the stacked outputs" if stacked else "the batch"
    return known and (along == 0 or stacked) and look_at(call, over=over)


def _stacked_along(program: Program, node: ast.expr | None) -> object:
    """Return the axis along which a value stacks the results of one function, as `stack([f(a), f(b)], dim=1)` does."""
    value = program.written(node)
    parts = (
        value.args[0] if isinstance(value, ast.Call) and called(program, value)[0] == "stack" and value.args else None
    )
    made = [one for one in elements(parts) if isinstance(one, ast.Call)]
    same = len(made) > 1 and len({text(one.func) for one in made}) == 1 and len(made) == len(elements(parts))
    return constant(argument(value, "dim", 1)) if same and isinstance(value, ast.Call) else None


# --- kl_div ---


def _is_log(program: Program, node: ast.expr | None) -> bool:
    """Tell whether a value is a logarithm, by the op that made it or by its name."""
    found = end(program, node)
    name, _ = called(program, resolved(program, node))
    by_op = name in {"log", "log_softmax", "logsigmoid"} or (found is not None and found.op == "log_softmax")
    return by_op or "log" in words(stem_of(node)) or words(stem_of(node)) & {"logp", "logq"} != frozenset()


@suspects_rows("logarithm as the target of kl_div", uses_of("kl_div", "KLDivLoss"))
def _log_target(program: Program, call: ast.Call, made: ast.Call) -> Iterator[Spot]:
    target, wants = argument(call, "target", 1), option(call, made, "log_target") is True
    found = end(program, target)
    if not wants and target is not None and _is_log(program, target):
        yield spot(call, text=shown(target), what="expects probabilities unless log_target=True is given")
    elif wants and found is not None and found.op in {"softmax", "sigmoid"} and target is not None:
        yield spot(call, text=shown(target), what="expects logarithms because of log_target=True")


@suspects_rows("kl_div averaged over the classes", uses_of("kl_div", "KLDivLoss"))
def _class_mean(program: Program, call: ast.Call, made: ast.Call) -> object:
    odd = option(call, made, "reduction") in {None, "mean"} and argument(made, "size_average") is None
    return odd and look_at(made, call)


@suspects_rows("kl_div the other way round", uses_of("kl_div", "KLDivLoss"))
def _wrong_way(program: Program, call: ast.Call, _: ast.Call) -> object:
    given, target = (
        frozenset().union(*(words_of(node) for node in reached(program, side) if isinstance(node, ast.Name)))
        for side in (argument(call, "input", 0), argument(call, "target", 1))
    )
    odd = "teacher" in given - target and "student" not in given
    return odd and look_at(call)


@suspects_each("temperature on one side", losses)
def _one_side(program: Program, one: Loss) -> object:
    """Find a divergence or cross entropy of which one side is divided by a temperature and the other is not."""
    if one.kind not in {"kl_div", "cross_entropy", "mse_loss"} or one.target is None:
        return False
    sides = [_is_warm(program, side) for side in (one.input, one.target)]
    ops = [{called(program, part)[0] for part in reached(program, side)} for side in (one.input, one.target)]
    return sides[0] is not sides[1] and all(it & {"softmax", "log_softmax"} for it in ops) and look_at(one.call)


def _is_warm(program: Program, node: ast.expr | None) -> bool:
    divided = (one for one in reached(program, node) if is_op(one, ast.Div | ast.Mult))
    return any(words(stem_of(one.right)) & _HEAT for one in divided)


# --- other losses of the library ---


@suspects_rows("deviation given as a variance", uses_of("gaussian_nll_loss", "GaussianNLLLoss"))
def _deviation(program: Program, call: ast.Call, _: ast.Call) -> object:
    """Find gaussian_nll_loss with a deviation, a logarithm or a raw output as its variance."""
    var = argument(call, "var", 2)
    known = words(stem_of(var))
    raw = end(program, var)
    odd = known & {"std", "sigma", "scale", "log", "logvar", "logsigma", "deviation", "sd", "stds", "sigmas"}
    wrong = odd or is_target(program, var) or (raw is not None and raw.op == "linear")
    return var is not None and wrong and spot(call, text=shown(var), call=shown(call))


@suspects_rows("rate or logarithm for the Poisson loss", uses_of("poisson_nll_loss", "PoissonNLLLoss"))
def _poisson(program: Program, call: ast.Call, made: ast.Call) -> Iterator[Spot]:
    found = end(program, argument(call, "input", 0))
    logarithm = option(call, made, "log_input") is not False
    wrong = {"exp", "softplus", "relu", "sigmoid"} if logarithm else {"linear", "log_softmax"}
    if found is not None and found.op in wrong:
        what = "the logarithm of the rate" if logarithm else "the rate itself, which is positive"
        yield look_at(call, found.node, what=what, op=found.op)


@suspects_rows("lengths or axes of the CTC loss", uses_of("ctc_loss", "CTCLoss"))
def _ctc(program: Program, call: ast.Call, _: ast.Call) -> object:
    third, fourth = (words_of(argument(call, *one)) for one in (("input_lengths", 2), ("target_lengths", 3)))
    swapped = third & (TARGET | {"word", "words"}) and fourth & {"input", "inputs", "out", "output", "pred", "frame"}
    turned = any(program.calls_of(f".{name}") for name in ("permute", "transpose", "swapaxes", "movedim"))
    return (swapped or not turned) and look_at(call)


TARGET = named("target targets label labels y tgt")


@suspects_rows(
    "triplet in another order",
    uses_of("triplet_margin_loss", "TripletMarginLoss", "TripletMarginWithDistanceLoss", "TripletLoss"),
)
def _triplet_order(program: Program, call: ast.Call, _: ast.Call) -> object:
    """Find a triplet loss whose second argument is the negative example."""
    second, third = (words(stem_of(one)) for one in (argument(call, "positive", 1), argument(call, "negative", 2)))
    odd = second & {"neg", "negative", "negatives", "n"} or third & {"pos", "positive", "positives", "p"}
    return odd and look_at(call)


@suspects("similarity instead of a distance")
def _similarity(program: Program) -> Iterator[Spot]:
    """Find a loss of distances that gets cosine similarities."""
    for call in program.calls:
        if library_name(program, call) == "TripletMarginWithDistanceLoss":
            said = text(argument(call, "distance_function") or call)
            if "osine" in said and "1 -" not in said and "1.0 -" not in said:
                yield look_at(call)
    for call, _ in uses(program, "hinge_embedding_loss", "HingeEmbeddingLoss"):
        name, _ = called(program, resolved(program, argument(call, "input", 0)))
        if name == "cosine_similarity":
            yield look_at(call)


@suspects_rows("multi-hot labels for the margin loss", uses_of("multilabel_margin_loss", "MultiLabelMarginLoss"))
def _multi_margin(program: Program, call: ast.Call, made: ast.Call) -> object:
    return look_at(made, call)


# --- options ---


@suspects_rows("ignored index of a real class", uses_of("cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss"))
def _ignored(program: Program, call: ast.Call, made: ast.Call) -> object:
    given = argument(call, "ignore_index") or argument(made, "ignore_index")
    value = setting(program, given)
    near = words_of(given) | words_of(argument(call, "target", 1))
    if "pad" in source(program):
        return False
    odd = value is not None and value >= 0 and not near & {"void", "ignore", "unlabeled", "token"}
    return odd and look_at(made, call)


@suspects_rows("ignored places in a mean", uses_of("cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss"))
def _mean_of_ignored(program: Program, call: ast.Call, made: ast.Call) -> Iterator[Spot]:
    """Find a cross entropy with ignore_index and reduction="none" that `mean()` averages, ignored places included."""
    given = argument(call, "ignore_index") or argument(made, "ignore_index")
    if given is not None and option(call, made, "reduction") == "none":
        yield from (look_at(one, call) for kind, one in reduced_by(program, call) if kind == "mean")


@suspects_each("weights times a mean", ast.Call)
def _weighted_mean(program: Program, call: ast.Call) -> Iterator[Spot]:
    """Find `(criterion(out, y) * weights).mean()` with a criterion that is one number already."""
    kind, inner = reduction(program, call)
    if not kind or not isinstance(node := resolved(program, inner), ast.BinOp) or not isinstance(node.op, ast.Mult):
        return
    for side in (node.left, node.right):
        made = _loss_of(program, resolved(program, side))
        if made is not None and option(*made, "reduction") in {None, "mean", "sum", "batchmean"}:
            yield look_at(call, made[0], loss=shown(made[0], 40))


def _loss_of(program: Program, node: ast.expr | None) -> tuple[ast.Call, ast.Call] | None:
    """Return a call of a loss of the library and the call with its options."""
    known: Loss | None = next((one for one in losses(program) if one.call is node), None)
    if known is None:
        return None
    found = layer(program, known.call.func) if not library_name(program, known.call) else None
    made = found.call if found is not None else known.call
    loose = any(one.arg in {None, "reduce", "size_average"} for one in (*known.call.keywords, *made.keywords))
    variable = argument(made, "reduction") is not None and constant(argument(made, "reduction")) is None
    return None if loose or variable else (known.call, made)


_ANSWERS = named("logit logits pred preds prediction predictions output outputs out score scores yhat recon logp")
_TRUTHS = named("target targets label labels truth y gt true")


@suspects_each("names of prediction and target exchanged", losses)
def _names_exchanged(program: Program, one: Loss) -> object:
    """Find `loss(targets, logits)`."""
    first, second = stem_of(one.input).split("_"), stem_of(one.target).split("_")
    odd = len(first) == len(second) == 1 and first[0] in _TRUTHS and second[0] in _ANSWERS
    return odd and look_at(one.call, first=first[0], second=second[0])
