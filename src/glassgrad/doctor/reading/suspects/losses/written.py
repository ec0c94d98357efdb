"""Suspects about losses that a script writes out: overlaps, focal losses, margins, likelihoods, cross entropies."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.names import named
from glassgrad.doctor.reading.nodes import is_negative, is_op, names_in, within
from glassgrad.doctor.reading.program import Function, Program, argument, number
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import look_at, operations, suspects, suspects_each, suspects_rows
from glassgrad.doctor.reading.suspects.lookup import sides_of, stem_of, text
from glassgrad.doctor.reading.suspects.losses.formulas import (
    TARGETS,
    about_loss,
    called,
    complement,
    functions_of,
    is_loss_name,
    is_target,
    loss_functions,
    option,
    parameters,
    prediction_of,
    reached,
    reduction,
    resolved,
    source,
    target_name,
    terms_of,
    unsigned_factors,
    uses,
    words,
    words_of,
)
from glassgrad.doctor.reading.values import end, losses, returns

_OVERLAP = re.compile(r"dice|iou|jaccard|tversky|overlap|soft_?f1|fbeta|ssim", re.IGNORECASE)
_SHARED = named("intersection inter intersect overlap tp shared common")


# --- overlaps ---


def _overlaps(program: Program) -> Iterator[tuple[Function, str]]:
    """Yield the functions that compute an overlap, with the names around them."""
    for function in functions_of(program):
        owner = program.owner(function)
        text = function.name + (f" {owner.node.name}" if owner is not None and function.name == "forward" else "")
        if _OVERLAP.search(text):
            yield function, text


def _quotient(program: Program, node: ast.expr | None) -> ast.BinOp | None:
    """Return the quotient that a value is, or the mean of."""
    node = resolved(program, node)
    _, inner = reduction(program, node)
    node = resolved(program, inner) if inner is not None else node
    return node if is_op(node, ast.Div) else None


@suspects("overlap as a loss")
def _overlap(program: Program) -> Iterator[Spot]:
    """Find a loss that returns or adds an overlap itself instead of 1 minus it."""
    found = {function.name for function, said in _overlaps(program) if "loss" not in said.lower()}
    for function, said in _overlaps(program):
        for one in returns(program, function) if "loss" in said.lower() else ():
            if _quotient(program, one.value) is not None:
                yield spot(one, text=shown(one.value or one))
    results = {name: [one.value for one in returns(program, program.functions[name])] for name in found}
    found = {name for name in found if all(_quotient(program, one) is not None for one in results[name])}
    for node in program.nodes if found else ():
        if not isinstance(node, ast.Assign | ast.Return) or node.value is None or not about_loss(program, node):
            continue
        name = target_name(program, node) if isinstance(node, ast.Assign) else ""
        if name and (not is_loss_name(name) or re.search(rf"- ?{name}\b", text(program.around(node)))):
            continue
        for sign, term in terms_of(program, node.value):
            known = isinstance(term, ast.Call) and stem_of(term.func) in found
            if sign > 0 and known:
                yield spot(node, text=shown(term))


@suspects_rows("overlap of raw outputs", _overlaps)
def _raw_overlap(program: Program, function: Function, text: str) -> Iterator[Spot]:
    """Find a product of predictions and targets in an overlap whose predictions go through no sigmoid or softmax."""
    own = ast.unparse(function).lower()
    if "loss" not in text.lower() or re.search(r"sigmoid|softmax|prob|activation|exp\(", own):
        return
    if re.search(r"igmoid|oftmax", source(program).replace(own, "")):
        return
    for node in within(function, ast.BinOp):
        is_product = is_op(node, ast.Mult) and words_of(node) & TARGETS
        if is_product and number(node.left) is None is number(node.right):
            yield look_at(node)
            break


@suspects_rows("formula of an overlap", _overlaps)
def _overlap_formula(program: Program, function: Function, text: str) -> Iterator[Spot]:
    """Find a Dice coefficient without the factor 2, and a union that counts the intersection twice."""
    is_union = bool(re.search(r"iou|jaccard", text, re.IGNORECASE))
    if not is_union and not re.search(r"dice", text, re.IGNORECASE):
        return
    for node in within(function, ast.BinOp):
        if not is_op(node, ast.Div):
            continue
        over, under = (" ".join(text_within(program, side)) for side in (node.left, node.right))
        shares = words_of(node.left) & _SHARED or re.search(r"\.sum\(|sum\(", over)
        doubled = re.search(r"\b2\b|\b2\.|inter\w* \+ inter", over)
        if not shares or not re.search(r"\+", under):
            continue
        if is_union and not re.search(r"- |1 -|fp|fn|union", under) and not re.search(r"max|\|", under):
            yield look_at(node, what="the union counts the intersection twice")
        elif not is_union and not doubled and not re.search(r"0\.5|/ 2|fp|fn", under):
            yield look_at(node, what="the intersection lacks its factor 2")


def text_within(program: Program, node: ast.expr) -> Iterator[str]:
    """Yield an expression as text, and what the variables in it hold."""
    yield text(node)
    for one in reached(program, node):
        if isinstance(one, ast.Name) and (value := program.value_of(one)) is not None:
            yield text(value)


@suspects_each("decision within a loss", loss_functions)
def _decision(program: Program, function: Function) -> Iterator[Spot]:
    """Find argmax, round or a threshold on the prediction in a loss function, none of which has a gradient."""
    name = prediction_of(function)
    for node in ast.walk(function):
        kind, inner = called(program, node)
        is_cut = kind in {"argmax", "round", "sign", "floor"} and name in {"", stem_of(inner)}
        is_test = isinstance(node, ast.Compare) and stem_of(node.left) == name and _is_number(node.comparators[0])
        outer = program.parents.get(node)
        counted = isinstance(outer, ast.Attribute) and outer.attr in {"float", "to", "type", "int"}
        shows = re.search(r"int\(|item|acc|right|correct", text(program.statement(node)) if is_cut else "")
        if (is_cut and not shows) or (is_test and counted):
            assert isinstance(node, ast.expr)
            yield look_at(node)


def _is_number(node: ast.expr) -> bool:
    return number(node) is not None or bool(words(stem_of(node)) & {"threshold", "thresh", "thr"})


# --- focal losses ---


@suspects("focal loss of a mean")
def _focal_mean(program: Program) -> Iterator[Spot]:
    """Find `exp(-ce)` of a cross entropy that is averaged over the batch already."""
    names = "cross_entropy", "CrossEntropyLoss", "binary_cross_entropy_with_logits", "BCEWithLogitsLoss", "nll_loss"
    means = dict(uses(program, *names, "NLLLoss", "BCELoss", "binary_cross_entropy"))
    for call in program.calls:
        name, inner = called(program, call)
        given = inner.operand if is_negative(inner) else None
        made = resolved(program, given)
        if name == "exp" and isinstance(made, ast.Call) and made in means:
            kind = argument(made, "reduction") or argument(means[made], "reduction")
            if kind is None or option(made, means[made], "reduction") == "mean":
                yield spot(made, call, text=shown(call), loss=shown(made, 40))


@suspects_each("focal factor turned", ast.expr)
def _focal_factor(program: Program, node: ast.expr) -> object:
    """Find `pt ** gamma` as the factor of a loss, where pt is the probability of the true class."""
    base, power = _power(program, node)
    if base is None or not words_of(power) & {"gamma", "focusing"} or complement(base) is not None:
        return False
    value = resolved(program, base)
    said = stem_of(base)
    likely = words(said) in ({"pt"}, {"p", "t"}, {"prob"}, {"probs"}, {"p"}) and complement(value) is None
    name, inner = called(program, value)
    negative = isinstance(inner, ast.UnaryOp) or words_of(inner) & {"logpt", "logp", "log"}
    known = (likely and not isinstance(value, ast.IfExp)) or (name == "exp" and negative)
    return known and not re.search(r"1(\.0)? - ", text(value or base))


def _power(program: Program, node: ast.AST) -> tuple[ast.expr | None, ast.expr | None]:
    """Return the base and the exponent of a power."""
    if is_op(node, ast.Pow):
        return node.left, node.right
    name, base = called(program, node)
    if name != "pow" or not isinstance(node, ast.Call) or not node.args:
        return None, None
    return base, node.args[-1]


# --- margins ---

_NEAR = named("pos positive positives ap same near matched match")
_FAR = named("neg negative negatives an different far unmatched hard")
_ALIKE = named("sim similarity cos cosine score scores logit logits inner dot")


@suspects_each("signs of a margin", ast.Call)
def _margin(program: Program, call: ast.Call) -> Iterator[Spot]:
    """Find a triplet or ranking loss whose distances, similarities or margin have the other sign."""
    name, inner = called(program, call)
    if name not in {"relu", "clamp", "clamp_min", "max", "maximum", "softplus"} or inner is None:
        return
    given = [inner, *call.args] if name in {"max", "maximum"} else [inner]
    for one in given:
        parts = list(_plain_terms(resolved(program, one)))
        near = [sign for sign, part in parts if _words_near(part) & _NEAR and not _words_near(part) & _FAR]
        far = [sign for sign, part in parts if _words_near(part) & _FAR and not _words_near(part) & _NEAR]
        gap = [sign for sign, part in parts if words_of(part) & {"margin", "alpha", "delta"}]
        if len(near) != 1 or len(far) != 1 or near[0] == far[0]:
            continue
        alike = any(called(program, resolved(program, part))[0] == "cosine_similarity" for _, part in parts)
        alike = alike or any(words_of(part) & _ALIKE for _, part in parts) or "imilarity" in text(one)
        if near[0] != (-1 if alike else 1) or (gap and gap[0] < 0):
            yield look_at(one, call, program.statement(call))
            break


def _plain_terms(node: ast.expr | None, sign: int = 1) -> Iterator[tuple[int, ast.expr]]:
    """Yield the terms of a sum with their signs, as they are written."""
    sides = sides_of(node)
    for turn, side in sides:
        yield from _plain_terms(side, sign * turn)
    if node is not None and not sides:
        yield sign, node


def _words_near(node: ast.expr) -> frozenset[str]:
    return frozenset(word for one in words_of(node) for word in (one, re.sub(r"^(d|s)(?=(pos|neg|ap|an)$)", "", one)))


@suspects_each("which pairs a contrastive loss pulls", operations(ast.Add))
def _pairs(program: Program, node: ast.BinOp) -> object:
    """Find `y * a + (1 - y) * b` with a margin in one of both parts: the label says which pairs are alike."""
    sides = two_sides(program, node)
    text = " ".join(text_within(program, node))
    if sides is None or "margin" not in text or "hot" in text:
        return False
    return re.search(r"relu|clamp|\bmax|hinge|clip", text) and look_at(node, program.statement(node))


def two_sides(program: Program, node: ast.BinOp) -> tuple[list[ast.expr], list[ast.expr]] | None:
    """Return the other factors of both terms of `y * a + (1 - y) * b`; None for other sums."""
    sides = [unsigned_factors(resolved(program, one)) for one in (node.left, node.right)]
    for at in (0, 1):
        for one in sides[at]:
            label = complement(one)
            said = text(label)
            match = [other for other in sides[1 - at] if text(other) == said]
            if label is not None and match:
                mine = [part for part in sides[at] if part is not one]
                other = [part for part in sides[1 - at] if part is not match[0]]
                return (other, mine)
    return None


@suspects("margin without a hinge")
def _no_hinge(program: Program) -> Iterator[Spot]:
    """Find a square of `margin - distance` that nothing cuts at 0."""
    for node in program.nodes:
        base, _ = _power(program, node)
        inner = resolved(program, base)
        if not is_op(inner, ast.Sub):
            continue
        if words_of(inner.left) & {"margin", "m"} and words_of(inner.right) & {"d", "dist", "distance", "distances"}:
            assert isinstance(node, ast.expr)
            yield look_at(node)


# --- regression ---


@suspects_each("error with a sign", ast.Call)
def _signed(program: Program, call: ast.Call) -> object:
    """Find a loss that is the mean of plain differences from the targets, or of neighbours."""
    kind, inner = reduction(program, call)
    node = resolved(program, inner)
    if not kind or not is_op(node, ast.Sub):
        return False
    near = [side for side in (node.left, node.right) if isinstance(side, ast.Subscript)]
    same = len(near) == 2 and text(near[0].value) == text(near[1].value)
    slices = same and all(":" in text(side) for side in near)
    plain = is_target(program, node.left) != is_target(program, node.right)
    odd = (plain or slices) and _is_trained(program, call)
    return odd and spot(node if node.lineno == call.lineno else call, call, text=shown(call))


def _is_trained(program: Program, call: ast.Call) -> bool:
    """Tell whether a mean becomes a loss as it is: nothing squares it or takes its absolute value."""
    outer = program.parents.get(call)
    around = isinstance(outer, ast.Return | ast.Assign) or (is_op(outer, ast.Add | ast.Mult))
    text = about_loss(program, call)
    return around and bool(text) and not re.search(r"bias|metric|acc|mean_err|crit|wgan|gap", text)


@suspects_each("square of a mean", ast.expr)
def _square_of_mean(program: Program, node: ast.expr) -> object:
    """Find `(a - y).mean() ** 2`: errors of both signs cancel before they are squared."""
    name, inner = called(program, node)
    kind, given = reduction(program, inner)
    base = resolved(program, given)
    if name not in {"pow", "square", "abs"} or not kind:
        return False
    sides = [base.left, base.right] if is_op(base, ast.Sub) else []
    return about_loss(program, node) and any(is_target(program, side) for side in sides)


@suspects_each("asymmetry of a quantile loss", ast.Call)
def _quantile(program: Program, call: ast.Call) -> object:
    """Find `max(q * e, (q - 1) * e)` with e = prediction - target, or with (1 - q), or with min."""
    name, inner = called(program, call)
    sides = [inner, *call.args[-1:]] if inner is not None else []
    if name not in {"max", "min", "maximum", "minimum"} or len(sides) != 2:
        return False
    lists = [unsigned_factors(resolved(program, one)) for one in sides]
    lowered = [any(is_op(part, ast.Sub) and number(part.right) == 1 for part in one) for one in lists]
    turned = [any(complement(part) is not None for part in one) for one in lists]
    if not any(words_of(part) & {"q", "tau", "quantile", "quantiles", "alpha"} for one in lists for part in one):
        return False
    if not any(lowered) and not any(turned):
        return False
    error = resolved(program, next((part for part in lists[0] if not words_of(part) & {"q", "tau", "quantile"}), None))
    known = isinstance(error, ast.BinOp) or any(re.search(r"err|diff|resid|\be\b|\bu\b", stem_of(p)) for p in lists[0])
    backwards = isinstance(error, ast.BinOp) and is_target(program, error.right)
    if not known:
        return False
    odd = (any(turned) and not _signs_differ(lists)) or name in {"min", "minimum"} or (any(lowered) and backwards)
    return odd and spot(error if backwards and error is not None else call, call, text=shown(call))


def _signs_differ(lists: list[list[ast.expr]]) -> bool:
    """Tell whether the errors of both sides are the negative of one another, so that `1 - q` is right."""
    texts = [{text(part) for part in one} for one in lists]
    return not texts[0] & texts[1]


@suspects_each("robust loss of a signed error", ast.Call)
def _signed_huber(program: Program, call: ast.Call) -> object:
    """Find a choice between square and line that compares the error itself with the threshold, not its size."""
    if called(program, call)[0] != "where" or not call.args or not isinstance(call.args[0], ast.Compare):
        return False
    test = call.args[0]
    error, bound = resolved(program, test.left), test.comparators[0]
    limited = words_of(bound) & {"delta", "beta", "threshold"} or number(bound) == 1
    signed = is_op(error, ast.Sub) and number(error.left) is None
    return limited and signed and about_loss(program, call) and spot(call, program.statement(test), text=shown(test))


@suspects_each("root without an epsilon", ast.expr)
def _root(program: Program, node: ast.expr) -> object:
    """Find the root of a mean or sum of squares in a loss: at 0 it has an infinite gradient."""
    name, inner = called(program, node)
    half = name == "pow" and isinstance(node, ast.BinOp) and number(node.right) == 0.5
    if name != "sqrt" and not half:
        return False
    value = resolved(program, inner)
    means = {one.call for one in losses(program) if one.kind == "mse_loss"}
    inner_parts = list(reached(program, value))
    squares = any(part in means or called(program, part)[0] in {"pow", "square"} for part in inner_parts)
    safe = re.search(r"eps|1e-|clamp|relu|max\(", " ".join(text_within(program, value or node)), re.IGNORECASE)
    near, said = getattr(program.function(node), "name", ""), text(program.statement(node))
    trains = about_loss(program, node) or re.search(r"dist|euclid|rmse", near)
    return squares and not safe and trains and "item" not in said


@suspects_each("logarithm or root of a raw output", ast.Call)
def _raw_log(program: Program, call: ast.Call) -> object:
    name, inner = called(program, call)
    if name not in {"log", "log1p", "sqrt", "log2", "log10", "rsqrt"} or inner is None:
        return False
    value = resolved(program, inner)
    parts = [value.left, value.right] if is_op(value, ast.Add) else [value]
    found = [one for part in parts if part is not None and (one := end(program, part)) is not None]
    return any(one.op in {"linear", "conv", "tanh"} for one in found)


@suspects_each("error relative to a target near 0", operations(ast.Div))
def _relative(program: Program, node: ast.BinOp) -> object:
    """Find a difference divided by the target without a bound from below."""
    if not is_target(program, node.right):
        return False
    value = resolved(program, node.left)
    _, inner = called(program, value)
    value = resolved(program, inner) if inner is not None else value
    return is_op(value, ast.Sub) and about_loss(program, node)


@suspects_each("parameter that a loss never reads", loss_functions)
def _unused_parameter(program: Program, function: Function) -> object:
    """Find a loss function that never reads one of its parameters."""
    read = names_in(function)
    unread = [one for one in parameters(function) if one not in read and not one.startswith("_")]
    wanted = [one for one in unread if words(one) & (TARGETS | {"weight", "weights", "alpha", "gamma"})]
    return wanted and len(function.body) + len(read) > 2 and spot(function, text=wanted[0])
