"""Rules about the signs and sizes of the terms of a loss, and of the weights of averages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.about.averages import is_noise
from glassgrad.doctor.reading.actors import makes_optimizer, modules, related, setting, stepped
from glassgrad.doctor.reading.flow import Value, flow, frames_of
from glassgrad.doctor.reading.gradients import reach
from glassgrad.doctor.reading.iterations import Event, setting_of, trainings
from glassgrad.doctor.reading.nodes import both_ways, factors_of, ident, is_op, method_of, object_of, target_of, within
from glassgrad.doctor.reading.program import Program, argument, constant
from glassgrad.doctor.reading.rule import Spot, reads, rules_of, shown, spot
from glassgrad.doctor.reading.terms import Term, terms
from glassgrad.doctor.reading.values import ELEMENTWISE, end, library_name, loss, losses, op

_GAIN = re.compile(
    r"(^|_)(adv|advantages?|returns?|rewards?|gains?|deltas?|td_errors?|td|gae|G|R|rtg|rets?|discounted\w*)(_|\d|$)"
)
_CRITIC = re.compile(r"critic|value|(^|_|\.)q(f|net|_|\d|$)", re.IGNORECASE)
_DISCOUNT = re.compile(r"gamma|discount", re.IGNORECASE)
_OF_POLICY = re.compile(r"^(policy|actor|pg|pi|surrogate|action|ppo|a2c|clip)_?loss(es)?$", re.IGNORECASE)
_ENTROPY = re.compile(r"entrop(y|ies)|(^|_)ents?(_|$)", re.IGNORECASE)
_NO_ENTROPY = re.compile(
    r"cross|coe?f|weight|beta|loss|neg|minus|target|scale|lambda|alpha|bce|rate|lr|_c$", re.IGNORECASE
)
_WEIGHS = re.compile(r"coe?f|weight|beta|scale|lambda|alpha|args\.|cfg", re.IGNORECASE)
_TEMPERATURE = re.compile(r"^(self\.)?(temperature|temp|tau|T)$")
_ADVERSE = re.compile(r"advers|attack|discrimin|critic|delta|domain|fgsm|pgd|gan|minimax|dual|lagrang", re.IGNORECASE)


def _losses_of(program: Program) -> Iterator[tuple[Event, list[Term]]]:
    """Yield each backward pass of a script once, with the terms of its loss."""
    seen: set[ast.AST] = set()
    for one in trainings(program):
        for event in one.own("backward"):
            if event.node not in seen:
                seen.add(event.node)
                yield event, terms(program, event.value)


def _name(node: ast.AST) -> str:
    """Return the last name of a value: of a variable, an attribute, or the operand of a call or an index."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
        if isinstance(node, ast.Attribute) and node.attr in {"detach", "mean", "unsqueeze", "squeeze", "to", "float"}:
            node = node.value
    return ident(node)


# --- likelihoods ---


@reads("sign of the loss turned")
def _turned(program: Program) -> Iterator[Spot]:
    for event, found in _losses_of(program):
        whole = [one for one in found if not _is_number(one)]
        also: list[ast.expr | ast.stmt] = [event.node, *setting_of(program, event)]
        for one in whole:
            what = _raised(program, one, len(whole) == 1)
            if what:
                node = next(it.node for it in one.factors if _is_likely(program, it) or len(one.factors) == 1)
                place = one.added or _whole(program, event)
                yield spot(place, program.statement(node), *also, text=shown(node), what=what)
                break
        if len(whole) == 1 and whole[0].sign > 0 and _is_valued(program, event, whole[0]):
            what = "the value that a critic gives to the actions of the actor is to rise"
            yield spot(_whole(program, event), *also, text=shown(event.value.node), what=what)


def _whole(program: Program, event: Event) -> ast.expr:
    """Return the expression that computes the loss of a backward pass; the pass itself if there are several."""
    return flow(program).origin(event.value) or event.node


def _is_valued(program: Program, event: Event, one: Term) -> bool:
    """Tell whether an actor's loss is the value that a critic gives to the actor's output."""
    discounts = any(_DISCOUNT.search(getattr(node, "id", getattr(node, "arg", "")) or "") for node in program.nodes)
    if not discounts and not any(_GAIN.search(_name(it.target)) for it in losses(program) if it.target):
        return False  # a critic of a generative model may call either end good
    iteration = next((it for it in trainings(program) if any(known is event for known in it.events)), None)
    behind = iteration.events[iteration.events.index(event) :] if iteration is not None else ()
    step = next((it for it in behind if it.kind == "step"), None)
    mine = stepped(program, step.value)[1] if step is not None else []
    learns = {it for factor in one.factors for it in reach(program, factor).learns}
    others = [it for it in learns if mine and not any(related(it, have) for have in mine)]
    first = one.factors[0]
    last_one = first.node if len(one.factors) == 1 else None
    outer = modules(program, Value(last_one.func, first.frame)) if isinstance(last_one, ast.Call) else None
    calls = [last_one, *(frame.call for frame in frames_of(first.frame))]
    named = [ast.unparse(it.func) for it in calls if isinstance(it, ast.Call)]
    by_other = outer is not None and any(it.made in others for it in outer) and any(map(_CRITIC.search, named))
    return bool(mine) and len(others) < len(learns) and by_other and set(one.reductions) <= {"mean", "sum"}


def _is_number(one: Term) -> bool:
    return all(isinstance(it.node, ast.Constant) for it in one.factors)


def _raised(program: Program, one: Term, alone: bool) -> str:
    """Return in words how a term should change if its sign is wrong; empty if the sign is right or unknown."""
    likely = [it for it in one.factors if _is_likely(program, it)]
    gains = any(it not in likely and _is_gain(program, it) for it in one.factors) or any(map(_GAIN.search, one.names))
    if one.sign > 0 and len(likely) == 1 and len(one.factors) == 2 and gains:
        return "the logarithm of a probability times a gain is to rise"
    if not alone or len(one.factors) != 1:
        return ""
    inner = one.factors[0]
    if one.sign > 0:
        name = program.called(inner.node)
        if likely:
            return "the logarithm of a probability is to rise"
        if name == "cosine_similarity":
            return "training should raise the similarity"
        surrogate = name in {"min", "minimum"} and _is_surrogate(program, inner)
        return "the smaller of the two products of ratio and advantage is to rise" if surrogate else ""
    kind = loss(program, inner.node)
    text = ast.unparse(program.statement(inner.node)) + str(getattr(program.function(inner.node), "name", ""))
    turned = kind is not None and kind.kind != "nll_loss" and not _ADVERSE.search(text)
    only = sum(makes_optimizer(program, call) for call in program.calls) == 1
    return "the distance to the targets is to fall" if turned and only else ""


def _is_likely(program: Program, value: Value) -> bool:
    """Tell whether a value is a log-probability: log_prob, or an element of a log_softmax."""
    node = value.node
    if isinstance(node, ast.Call) and not program.names.full(node.func):
        held = object_of(node)
        if method_of(node) == "gather" and held is not None:
            return _is_log_softmax(program, Value(held, value.frame))
        return method_of(node) == "log_prob"
    return isinstance(node, ast.Subscript) and _is_log_softmax(program, Value(node.value, value.frame))


def _is_log_softmax(program: Program, value: Value) -> bool:
    return op(program, flow(program).origin(value))[0] == "log_softmax"


def _is_gain(program: Program, value: Value) -> bool:
    node = value.node
    if _GAIN.search(_name(node)):
        return True
    if isinstance(node, ast.BinOp):
        return any(_GAIN.search(word) for word in re.findall(r"\w+", ast.unparse(node)))
    around = program.statement(node)
    target = target_of(around)
    return isinstance(target, ast.Name) and bool(_GAIN.search(target.id))


def _is_surrogate(program: Program, value: Value) -> bool:
    call = value.node
    given = call.args if isinstance(call, ast.Call) else []
    found = [one for side in given for one in terms(program, Value(side, value.frame))]
    return len(given) == 2 and any(_is_gain(program, it) for one in found for it in one.factors)


# --- parts of a loss ---


def _of_term(program: Program, event: Event, one: Term, node: ast.expr) -> Spot:
    """Return the place where a term enters its sum with the wrong sign, and the line that computes it."""
    around = program.statement(node)
    return spot(one.added or around, around, event.node, *setting_of(program, event), text=shown(node))


@reads("penalty subtracted")
def _penalty(program: Program) -> Iterator[Spot]:
    for event, found in _losses_of(program):
        if any(one.sign > 0 and not _is_number(one) for one in found):
            wrong = [one for one in found if one.sign < 0 and _is_penalty(program, one)]
            yield from [_of_term(program, event, one, one.factors[0].node) for one in wrong[:1]]


def _is_penalty(program: Program, one: Term) -> bool:
    """Tell whether a term measures the size of the weights: a norm, a square or an absolute value of parameters."""
    for it in one.factors:
        calls = [node for node in ast.walk(it.node) if isinstance(node, ast.Call | ast.BinOp | ast.Attribute)]
        text = " ".join(ast.unparse(node) for node in calls)
        sized = re.search(r"\.norm\(|\.abs\(|\.square\(|\.pow\(2|\*\* 2", text)
        weights = re.search(r"\.weight\b|\.parameters\(", text) or _is_weight(program, it)
        if sized and weights:
            return True
    return False


def _is_weight(program: Program, value: Value) -> bool:
    ends = [end for one in within(value.node, ast.Name) for end in flow(program).origins(Value(one, value.frame))]
    return any("parameters" in ast.unparse(one) for one in ends)


@reads("entropy with the wrong sign")
def _entropy(program: Program) -> Iterator[Spot]:
    for event, found in _losses_of(program):
        if not any(_is_of_policy(program, one) for one in found):
            continue
        for one in found:
            raised = _entropy_in(program, one) if len(found) > 1 else None
            if raised is not None:
                place = _of_term(program, event, one, raised)
                yield spot(place.node, *place.also, text=shown(_as_added(one, raised)))
                break


def _as_added(one: Term, raised: ast.expr) -> ast.expr:
    """Return the entropy as the sum has it, without its weight."""
    factors = factors_of(one.added) if isinstance(one.added, ast.expr) else []
    known = [it for it in factors if _ENTROPY.search(ast.unparse(it)) and not _WEIGHS.search(ast.unparse(it))]
    return known[0] if known else raised


def _is_of_policy(program: Program, one: Term) -> bool:
    """Tell whether a term of a loss raises the actions that gain: a log-probability, a bounded ratio, or by name."""
    raises = any(_is_likely(program, it) or program.called(it.node) in {"min", "minimum"} for it in one.factors)
    return (raises and one.sign < 0) or any(map(_OF_POLICY.search, one.names))


def _entropy_in(program: Program, one: Term) -> ast.expr | None:
    """Return the entropy that a term of a loss adds to it."""
    names = [name for name in one.names if _ENTROPY.search(name) and not _NO_ENTROPY.search(name)]
    turned = any("neg" in name or "minus" in name for name in one.names)
    called = [it.node for it in one.factors if program.called(it.node) == "entropy"]
    unread = [it for it in one.factors if it.path or isinstance(it.node, ast.Name | ast.Subscript | ast.Attribute)]
    known = [it.node for it in unread]
    named_so = [it for it in known if _ENTROPY.search(_name(it)) and not _NO_ENTROPY.search(_name(it))]
    parts = [it.node for it in unread if names and it.path and isinstance(it.path[0], int)]
    if one.sign > 0 and (called or not turned):
        return next(iter([*called, *named_so, *parts]), None)
    texts = [ast.unparse(it.node) for it in one.factors]
    likely = [text for text in texts if "exp(" in text or "log" not in text]
    if one.sign < 0 and names and likely and any("log" in text for text in texts if text not in likely):
        return one.factors[0].node  # -(p * log p)
    return None


# --- divergences ---


def _divergence(program: Program, found: list[Term]) -> tuple[Term, Term, Term] | None:
    """Return the terms mean², exp(lv) and lv of the divergence of a normal distribution from the standard one."""
    for one in found:
        raised = _exponential(program, one)
        if raised is None:
            continue
        text = ast.unparse(_unscaled(raised))
        plain = [it for it in found if len(it.factors) == 1 and ast.unparse(_unscaled(it.factors[0].node)) == text]
        logs = plain or [it for it in found if _same_end(program, it, one, raised)]
        squares = [it for it in found if _is_square(program, it)]
        if logs and squares:
            return squares[0], one, logs[0]
    return None


def _unscaled(node: ast.expr) -> ast.expr:
    """Return x of `2 * x`."""
    for side, other in both_ways(node) if is_op(node, ast.Mult) else ():
        if isinstance(side, ast.Constant):
            return other
    return node


def _same_end(program: Program, one: Term, other: Term, raised: ast.expr) -> bool:
    if len(one.factors) != 1:
        return False
    mine = flow(program).ends(one.factors[0])
    return mine == flow(program).ends(Value(_unscaled(raised), other.factors[0].frame))


def _exponential(program: Program, one: Term) -> ast.expr | None:
    """Return x of a term exp(x)."""
    name, operand = op(program, one.factors[0].node) if len(one.factors) == 1 else ("", None)
    return operand if name == "exp" else None


def _is_square(program: Program, one: Term) -> bool:
    if len(one.factors) == 2:
        return ast.unparse(one.factors[0].node) == ast.unparse(one.factors[1].node)
    node = one.factors[0].node if one.factors else None
    if is_op(node, ast.Pow):
        return constant(node.right) == 2 and not isinstance(node.left, ast.BinOp)
    name, operand = op(program, node)
    squared = name == "pow" and isinstance(node, ast.Call) and bool(node.args) and constant(node.args[-1]) == 2
    return not isinstance(operand, ast.BinOp) and (name == "square" or squared)


@reads("divergence with the wrong sign")
def _divergence_sign(program: Program) -> Iterator[Spot]:
    for event, found in _losses_of(program):
        parts = _divergence(program, found)
        if parts is None:
            continue
        square, raised, log = parts
        signs = square.sign, raised.sign, log.sign
        what = "mean² and exp(logvar) are to be added, and logvar and 1 subtracted"
        if signs == (-1, -1, 1):
            what = "the divergence is subtracted: a step makes it larger"
        if signs != (1, 1, -1):
            node = raised.factors[0].node
            yield spot(program.statement(node), event.node, *setting_of(program, event), text=shown(node), what=what)


@reads("loss terms of unequal size")
def _unequal(program: Program) -> Iterator[Spot]:
    """Find a divergence summed over latent variables next to a reconstruction loss averaged over all elements."""
    for event, found in _losses_of(program):
        parts = _divergence(program, found)
        if parts is None:
            continue
        summed = all("sum" in "".join(one.reductions) and not one.scaled and len(one.factors) < 3 for one in parts[1:])
        plain = [one for one in found if not one.scaled and len(one.factors) == 1]
        for one in plain if summed else ():
            it = one.factors[0]
            averaged = _is_averaged(program, it) and not set(one.reductions) & {"sum", "sum("}
            if averaged and not _is_narrow(program, it):
                divergence = program.statement(parts[1].factors[0].node)
                yield spot(it.node, divergence, program.statement(it.node), event.node, text=shown(it.node))
                break


def _is_narrow(program: Program, value: Value) -> bool:
    """Tell whether an output has only a few elements for each example, so that their mean is close to their sum."""
    found = loss(program, value.node)
    for end_of in flow(program).ends(Value(found.input, value.frame)) if found is not None else ():
        held = modules(program, Value(end_of.node.func, end_of.frame)) if isinstance(end_of.node, ast.Call) else None
        calls = [call for it in held or () for call in within(it.call, ast.Call)]
        linear = [call for call in calls if library_name(program, call) == "Linear"]
        if linear and (setting(program, argument(linear[-1], "out_features", 1)) or 99) < 32:
            return True
    made = end(program, found.input) if found is not None else None
    size = argument(made.node, "out_features", 1) if made is not None and isinstance(made.node, ast.Call) else None
    return (setting(program, size) or 99) < 32


def _is_averaged(program: Program, value: Value) -> bool:
    """Tell whether a value is a loss of the library that averages over all elements of a batch."""
    found = loss(program, value.node)
    if found is None or found.kind not in ELEMENTWISE | {"binary_cross_entropy", "binary_cross_entropy_with_logits"}:
        return False
    made = flow(program).origin(Value(found.call.func, value.frame))
    calls = [found.call, *([made] if isinstance(made, ast.Call) else [])]
    given = [argument(one, "reduction") for one in calls]
    old = any(argument(one, "size_average") is not None for one in calls)
    return all(one is None or constant(one) == "mean" for one in given) and not old


@reads("deviation of a logarithm")
def _deviation(program: Program) -> Iterator[Spot]:
    """Find `mean + exp(logvar) * noise`, where the deviation is exp(logvar / 2)."""
    for node in program.every(ast.BinOp):
        for product in (node.left, node.right) if is_op(node, ast.Add) else ():
            sides = [product.left, product.right] if is_op(product, ast.Mult) else []
            parts = [made for one in sides if (made := flow(program).end(one)) is not None]
            drawn = [one for one in parts if is_noise(program, one.node)]
            scaled = [one.node for one in parts if one not in drawn]
            name = _exponent(program, scaled[0]) if len(drawn) == len(scaled) == 1 else ""
            if name:
                yield spot(scaled[0], node, text=shown(scaled[0]), name=name)


def _exponent(program: Program, node: ast.expr) -> str:
    """Return the name of the log-variance if a node is its exponential."""
    name, operand = op(program, node)
    text = ast.unparse(operand) if isinstance(operand, ast.Name | ast.Attribute) else ""
    return text if name == "exp" and re.search(r"var", text, re.IGNORECASE) else ""


@reads("temperature multiplied")
def _heated(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        name, operand = op(program, call)
        scored = name in {"softmax", "log_softmax", "cross_entropy"} and operand is not None
        node = _scores(program, operand) if scored and operand is not None else None
        for factor in (node.right, node.left) if is_op(node, ast.Mult) else ():
            plain = isinstance(factor, ast.Name | ast.Attribute) and _TEMPERATURE.match(ast.unparse(factor))
            if plain and setting(program, factor) != 1 and node is not None:
                yield spot(node, call, text=shown(node), name=ast.unparse(factor))
                break


def _scores(program: Program, operand: ast.expr) -> ast.expr | None:
    """Return the expression that computes scores. Looks through masks and reshapes."""
    value = Value(operand)
    for _ in range(4):
        one = flow(program).end(value)
        node = one.node if one is not None else None
        held = object_of(node) if method_of(node) in {"masked_fill", "view", "reshape", "squeeze", "float"} else None
        if one is None or held is None:
            return node
        value = Value(held, one.frame)
    return None


RULES = rules_of(globals())
