"""Suspects about losses over sets of examples: risk sets, terms of the whole data in each batch, masks of targets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.iterations import trainings
from glassgrad.doctor.reading.names import last, named
from glassgrad.doctor.reading.nodes import (
    arguments,
    compares,
    factors_of,
    is_op,
    method_of,
    names_in,
    object_of,
    target_of,
    within,
)
from glassgrad.doctor.reading.program import DEEPEST, FUNCTIONS, Function, Program, argument, constant, number
from glassgrad.doctor.reading.rule import Spot, shown
from glassgrad.doctor.reading.suspects.form import look_at, suspects, suspects_each, suspects_rows
from glassgrad.doctor.reading.suspects.lookup import assigned, source, stem_of, text
from glassgrad.doctor.reading.suspects.losses.formulas import about_loss, complement, reached
from glassgrad.doctor.reading.suspects.losses.written import text_within, two_sides
from glassgrad.doctor.reading.values import layer, losses

_SURVIVAL = re.compile(r"cox|surv|hazard|partial|breslow|censor", re.IGNORECASE)
_TIME = re.compile(r"^(t|tb|ts|y|durs?|durations?|surv\w*|\w*times?\w*|os|pfs)$", re.IGNORECASE)
_DIVERGENCE = re.compile(r"(^|_)kl(d|s|_\w+)?$|kl_?(div|loss|term)|complexity", re.IGNORECASE)
_PART = re.compile(r"batch|len\(|size|shape|samples?_per|dataset|(^|\W)(n|m|N|M)(_\w+)?(\W|$)|num_|beta|weight|scale")
_MEAN = re.compile(r"mean|mu$|avg|average|cent(er|re)|MEAN")


def losses_of_answers(program: Program) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Yield the binary losses of a script that count each answer alike, with their targets."""
    for one in losses(program):
        given = [it for it in ast.walk(one.call) if isinstance(it, ast.keyword)]
        apart = any(it.arg == "weight" or (it.arg == "reduction" and constant(it.value) != "mean") for it in given)
        made = layer(program, one.call.func)
        apart = apart or (made is not None and ("none" in text(made.call) or "weight" in text(made.call)))
        if one.kind.startswith("binary_cross_entropy") and one.target is not None and not apart:
            yield one.call, one.target


# --- risk sets ---


@suspects("risk set in another order")
def _risk(program: Program) -> Iterator[Spot]:
    """Find the running sums of a survival loss over times that are sorted the other way."""
    if not _SURVIVAL.search(source(program)):
        return
    orders = [one for one in program.calls if program.called(one) in {"argsort", "sort"}]
    orders = [one for one in orders if _is_of_times(program, one)]
    for function in (node for node in program.nodes if isinstance(node, FUNCTIONS)):
        sums = [one for one in within(function, ast.Call) if _runs_over_risks(program, one)]
        flipped = "flip" in text(function) or "[::-1]" in text(function)
        for order in orders if sums and program.function(sums[0]) is function else ():
            down = _is_downwards(program, order)
            if down == flipped and program.function(order) in {function, None} | _callers(program, function):
                yield look_at(order, sums[0], way="downwards" if down else "upwards")


def _callers(program: Program, function: Function) -> set[Function | None]:
    """Return the functions of the script that have no running sum of their own, if a loss gets its order from them."""
    given = names_in(function)
    ordered = bool(given & {"order", "idx", "indices", "argsort"})
    others = {node for node in program.nodes if isinstance(node, FUNCTIONS)} if not ordered else set()
    return {one for one in others if not re.search(r"index|concordance|metric|brier|auc", one.name)}


def _is_of_times(program: Program, call: ast.Call) -> bool:
    inner = program.operand(call)
    inner = inner.operand if isinstance(inner, ast.UnaryOp) else inner
    return bool(_TIME.match(stem_of(inner)))


def _is_downwards(program: Program, order: ast.Call) -> bool:
    """Tell whether a sort begins with the latest time."""
    negative = isinstance(program.operand(order), ast.UnaryOp)
    turned = re.search(r"flip|\[::-1\]", text(program.statement(order)))
    return constant(argument(order, "descending")) is True or negative or bool(turned)


def _runs_over_risks(program: Program, call: ast.Call) -> bool:
    """Tell whether a call is a running sum of exponentials."""
    name, inner = program.called(call), program.operand(call)
    if name == "cumsum" and inner is not None:
        return any("exp" in program.called(one) for one in reached(program, inner) if isinstance(one, ast.Call))
    return name == "logcumsumexp"


# --- terms of the whole data ---


@suspects("divergence of the weights in each batch")
def _each_batch(program: Program) -> Iterator[Spot]:
    """Find `nll + model.kl()` in a loss of batches: a divergence of the weights that nothing scales."""
    if not re.search(r"rho|prior|posterior|bayes|variational", source(program), re.IGNORECASE):
        return
    if not any(_is_of_batches(one.node) for one in trainings(program)):
        return
    for node in program.every(ast.BinOp):
        outer = program.parents.get(node)
        if not is_op(node, ast.Add) or isinstance(outer, ast.BinOp):
            continue
        name = getattr(program.function(node), "name", "")
        used = about_loss(program, node) or re.search("loss|elbo", name)
        parts = factors_of(node, ast.Add)
        found = [it for one in parts if (it := _divergence(program, one)) is not None]
        others = [one for one in parts if _divergence(program, one) is None and not isinstance(one, ast.Constant)]
        weighed = any(_is_weighed(program, one) for one in others)
        if used and found and others and not weighed and not _DIVERGENCE.search(name):
            yield look_at(node, found[0], name=shown(found[0]))


def _is_weighed(program: Program, node: ast.expr) -> bool:
    """Tell whether a value is scaled by a number of examples or a weight."""
    scaled = [one for one in reached(program, node) if isinstance(one, ast.BinOp)]
    scaled = [one for one in scaled if isinstance(one.op, ast.Mult | ast.Div) and "samples" not in text(one)]
    return any(_PART.search(text(one.right)) or _PART.search(text(one.left)) for one in scaled)


def _is_of_batches(node: ast.AST) -> bool:
    over = text(node.iter) if isinstance(node, ast.For) else ""
    return bool(over) and not over.startswith("range(") and "epoch" not in text(getattr(node, "target", None))


def _divergence(program: Program, node: ast.expr) -> ast.Call | None:
    """Return the call of a divergence that depends on nothing but a model."""
    value = program.written(node)
    if isinstance(value, ast.Call) and program.called(value) == "sum" and value.args:
        each = value.args[0]  # sum(layer.kl() for layer in layers)
        value = each.elt if isinstance(each, ast.GeneratorExp | ast.ListComp) else None
    if not isinstance(value, ast.Call) or program.names.full(value.func).startswith("torch."):
        return None
    name = program.called(value)
    if not _DIVERGENCE.search(name) or len(value.args) > 1 or value.keywords:
        return None
    models = all(re.search(r"model|net|bnn|self$", text(one)) for one in value.args)
    bodies = [one for one in program.nodes if isinstance(one, FUNCTIONS) and one.name == name]
    divided = any(re.search(r"/ *(self\.)?\w*(batch|num|n_|N\b|len|data|size)", text(one)) for one in bodies)
    return value if models and any(_reads_weights(program, one) for one in bodies) and not divided else None


def _reads_weights(program: Program, function: Function) -> bool:
    """Tell whether a method reads parameters of its object."""
    owner = program.owner(function)
    names = {one.attr for one in within(function, ast.Attribute) if text(one.value) == "self"}
    bounds = [one.value for name in names for one in program.attribute(owner, name)]
    return any(isinstance(one, ast.Call) and last(program.names.full(one.func)) == "Parameter" for one in bounds)


# --- masks of targets ---


@suspects_each("mask by the sign of a centred target", ast.Compare)
def _centred(program: Program, node: ast.Compare) -> Iterator[Spot]:
    """Find `mask = target > 0` of a target from which its mean was subtracted."""
    if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Gt | ast.GtE):
        return
    statement = program.statement(node)
    target = target_of(statement)
    masks = re.search(r"mask|valid|keep|known|observed", stem_of(target))
    if number(node.comparators[0]) == 0 and masks and isinstance(node.left, ast.Name | ast.Subscript):
        ends = flow(program).ends(node.left)
        if ends and all(_is_centred(one.node) for one in ends):
            yield look_at(node, statement, made=shown(ends[0].node))


def _is_centred(node: ast.expr) -> bool:
    """Tell whether an expression is `(x - mean) / std`."""
    inner = node.left if is_op(node, ast.Div) else None
    if is_op(inner, ast.Sub):
        return bool(_MEAN.search(text(inner.right)))
    call = node.func if isinstance(node, ast.Call) else None
    return call is not None and last(text(call)) in {"standardize", "standardise", "zscore"}


# --- pairs ---

_HINGE = re.compile(r"relu|clamp|\bmax|hinge|clip|margin")
_LABELS = re.compile(r"label|class|cls|target|identity|person|writer|speaker|digit|(^|\W)y\w?\b|(^|_)ids?(_|\b)")
_SAME = re.compile(r"same|genuine|match|positive|is_pos|similar")
_ALIKE = re.compile(r"^(is_)?(same|genuine|alike|similar|match(es|ed|ing)?)(_\w+)?$")
_DISTANCE = re.compile(r"^\(*(d|dists?|distances?|euclid\w*|\w+_dists?|\w+_distances?)\)*$")


@suspects("pairs labelled the other way")
def _other_way(program: Program) -> Iterator[Spot]:
    """Find a contrastive loss that pushes the pairs apart which the data label as alike, as far as the script says."""
    said = dict(_labels_of_alike(program))
    if len(set(said)) != 1 or _turned(program):
        return
    ((alike, data),) = said.items()
    for node in program.every(ast.BinOp):
        sides = two_sides(program, node) if is_op(node, ast.Add) else None
        if sides is None:
            continue
        hinged = [any(_HINGE.search(" ".join(text_within(program, one))) for one in side) for side in sides]
        if hinged[0] != hinged[1] and alike == int(hinged[0]):  # the first side has the factor y
            named = [program.value_of(one) for one in (node.left, node.right)]
            pushing = next((one for one in named if one is not None and _HINGE.search(text(one))), node)
            yield look_at(pushing, data, program.statement(node), far=str(alike), data=shown(data))


def _turned(program: Program) -> bool:
    """Tell whether a loss gets `1 - label`."""
    losses = [one for one in program.calls if re.search(r"criterion|loss", text(one.func), re.IGNORECASE)]
    given = [part for one in losses for part in arguments(one)]
    parts = [it for part in given for it in within(part, ast.expr)]
    return any(complement(it) is not None or isinstance(it, ast.UnaryOp) for it in parts)


def _labels_of_alike(program: Program) -> Iterator[tuple[int, ast.expr | ast.stmt]]:
    """Yield the labels that the script gives to pairs that belong together, and where it says so."""
    for node in program.nodes:
        if isinstance(node, ast.Tuple) and len(node.elts) == 3 and number(node.elts[2]) in {0, 1}:
            first, second = node.elts[:2]
            if isinstance(first, ast.Call) and first.args and text(first) == text(second):
                yield int(number(node.elts[2]) or 0), node
        elif isinstance(node, ast.If) and _SAME.search(text(node.test)) and not re.search(r"not |!=", text(node.test)):
            for one in node.body:
                value = one.value if isinstance(one, ast.Assign) and _LABELS.search(text(one.targets[0])) else None
                if number(value) in {0, 1}:
                    yield int(number(value) or 0), one
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            yield from _compared(program, node)
        if isinstance(node, ast.Tuple) and len(node.elts) == 3 and isinstance(node.ctx, ast.Load):
            alike = _says_alike(node.elts[2])
            yield from [] if alike is None else [(alike, node)]


def _is_of_pair(node: ast.Compare) -> bool:
    """Tell whether a comparison is one of two variables, and of no prediction."""
    sides = [text(one) for one in (node.left, node.comparators[0])]
    return all(re.fullmatch(r"[\w.\[\]]+", one) and not re.search("pred|out|guess", one) for one in sides)


def _says_alike(node: ast.expr) -> int | None:
    """Return the label of pairs that belong together, of `float(same)`, `1 - same`, `p == q` or `0 if same else 1`."""
    inner = node.args if isinstance(node, ast.Call) and stem_of(node.func) != "len" else []
    inner = node.elts if isinstance(node, ast.List) else inner
    owner = object_of(node) if method_of(node) == "float" and not inner else None
    inner = inner if owner is None else [owner]
    if len(inner) == 1:
        return _says_alike(inner[0])
    if compares(node, ast.Eq | ast.NotEq) and _is_of_pair(node):
        return int(isinstance(node.ops[0], ast.Eq))
    if isinstance(node, ast.IfExp) and _ALIKE.match(text(node.test)) and number(node.body) in {0, 1}:
        return int(number(node.body) or 0)
    turned = complement(node) or (node.operand if isinstance(node, ast.UnaryOp) else None)
    return int(turned is None) if _ALIKE.match(stem_of(turned or node)) else None


def _compared(program: Program, node: ast.Compare) -> Iterator[tuple[int, ast.expr | ast.stmt]]:
    """Yield what `label = int(a == b)` says, and a score that counts `(distance < threshold) == label`."""
    sides, equal = (node.left, node.comparators[0]), isinstance(node.ops[0], ast.Eq)
    if not isinstance(node.ops[0], ast.Eq | ast.NotEq):
        return
    for one, other in (sides, sides[::-1]):
        held = program.written(one)
        near = next(iter(within(held or one, ast.Compare)), None)
        below = near is not None and isinstance(near.ops[0], ast.Lt | ast.LtE)
        if near is not None and _DISTANCE.match(text(near.left)) and _LABELS.search(text(other)) and equal:
            yield int(below), node
    statement = program.statement(node)
    name = stem_of(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
    plain = all(isinstance(one, ast.Name | ast.Subscript | ast.Attribute) for one in sides)
    pair = plain and text(sides[0]) != text(sides[1]) and all(_LABELS.search(text(one)) for one in sides)
    drawn = _LABELS.search(name) or _SAME.search(name) or isinstance(statement, ast.Return)
    if pair and drawn and not re.search(r"1(\.0)? - |~|not |where\(|\.sum\(|mean\(", text(statement)):
        yield int(equal), node


# --- targets that are changed as well ---

_SHAPES = named("view reshape flatten squeeze unsqueeze to float clone detach contiguous cpu cuda")
_NOISE = re.compile(r"noise|noisy|corrupt|perturb|salt|pepper")
_CUTS = named("clamp clamp_min clip relu maximum")
_MISSING = re.compile(r"miss|unlabel|unknown|ignore|absent|not_?tested|nan", re.IGNORECASE)


@suspects("noise in the target as well")
def _noisy_target(program: Program) -> Iterator[Spot]:
    """Find `x = add_noise(x)` before `mse(model(x), x)`: the clean example is lost."""
    for one in losses(program):
        made = program.source_of(one.input) if isinstance(one.input, ast.Name) else one.input
        if one.target is None or not isinstance(made, ast.Call) or layer(program, made.func) is None or not made.args:
            continue
        entering, target = _before_shapes(program, made.args[0]), _before_shapes(program, one.target)
        if entering is target and not isinstance(entering, ast.Name) and _adds_noise(program, entering):
            yield look_at(entering, one.call, loss=shown(one.call))


def _before_shapes(program: Program, node: ast.expr) -> ast.expr:
    """Return the expression that makes the numbers of a value, behind names and changes of its shape."""
    for _ in range(DEEPEST):
        value = program.value_of(node) if isinstance(node, ast.Name) else None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SHAPES:
            value = node.func.value
        if value is None:
            break
        node = value
    return node


def _adds_noise(program: Program, node: ast.expr) -> bool:
    """Tell whether an expression adds noise that is no dequantisation."""
    named = isinstance(node, ast.Call) and _NOISE.search(program.called(node))
    drawn = is_op(node, ast.Add) and re.search(r"randn|normal\(", text(node))
    return bool(named or drawn) and not re.search(r"quanti|/ 25[56]", text(node))


@suspects_rows("missing labels taken for negatives", losses_of_answers)
def _missing_labels(program: Program, call: ast.Call, target: ast.expr) -> Iterator[Spot]:
    """Find `bce(logits, y.clamp(min=0))` without a mask, where -1 marks answers that nobody knows."""
    value = program.written(target)
    if not isinstance(value, ast.Call) or program.called(value) not in _CUTS:
        return
    zero = [number(one) == 0 for one in arguments(value)]
    if (program.called(value) == "relu" or any(zero)) and _marks_missing(program):
        yield look_at(value, call, loss=shown(call))


def _marks_missing(program: Program) -> bool:
    """Tell whether a script has a name for answers that are missing, whose number is -1."""
    known = (stem_of(target) for target, value, _ in assigned(program.tree) if number(value) == -1)
    return any(map(_MISSING.search, known))
