"""Rules about attention, schedules and counters that are written nearly right."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.chains import chain
from glassgrad.doctor.reading.flow import Value, flow
from glassgrad.doctor.reading.iterations import trainings
from glassgrad.doctor.reading.names import last, named
from glassgrad.doctor.reading.nodes import (
    both_ways,
    compares,
    elements,
    has_attribute,
    holds,
    ident,
    is_name,
    is_op,
    method_of,
    object_of,
    only_target,
    reads_in,
    root_of,
    set_by,
    target_text,
    unindexed,
    within,
)
from glassgrad.doctor.reading.program import Program, argument, constant
from glassgrad.doctor.reading.rule import Spot, reads, rules_of, shown, spot
from glassgrad.doctor.reading.values import end, layer, library_name, op

_TERM = re.compile(r"(^|_)(loss|penalty|kl|kld|reg|bce|mse)(_|\d|$)|loss$", re.IGNORECASE)
_REPORTED = re.compile(r"val|test|eval|held|train|log|avg|mean|running|total|epoch|best|prev|last|hist", re.IGNORECASE)
_SCALE = re.compile(r"scal|sqrt|temper|d_k|dim|\*\* -?0\.5", re.IGNORECASE)
_RISES = re.compile(r"acc|score|f1|auc|dice|iou|reward|correct|precision|recall|map(_|$)", re.IGNORECASE)
_FALLS = re.compile(r"loss|error|mse|mae|perplexity|ppl", re.IGNORECASE)
_CONTINUOUS = frozenset({"Normal", "Independent", "MultivariateNormal", "LogNormal", "Laplace"})
_LATENT = re.compile(r"repar|latent|sample_?z|encode", re.IGNORECASE)
_CASTS = named(
    "tensor as_tensor from_numpy FloatTensor Tensor array asarray astype float double to cpu cuda clone detach"
)
_COUNTS = re.compile(r"count|freq|n_per|per_class|num_", re.IGNORECASE)


@reads("loss term never used")
def _left_out(program: Program) -> Iterator[Spot]:
    """Find a term that an iteration computes with a call, while nothing in its function reads it."""
    for one in trainings(program):
        read = reads_in(program.around(one.node))
        for node in within(one.node, ast.Assign):
            target = only_target(node)
            computed = isinstance(node.value, ast.Call | ast.BinOp)
            number = method_of(node.value) in {"item", "detach", "tolist", "cpu"}
            before = any(node.lineno < event.node.lineno for event in one.own("backward") if not event.chain)
            if not isinstance(target, ast.Name) or not computed or number or not before or target.id in read:
                continue
            if _is_term(program, node, target.id):
                yield spot(node, name=target.id, text=shown(node))


def _is_term(program: Program, node: ast.Assign, name: str) -> bool:
    """Tell whether a variable is called as a term of a loss, and is none of a validation."""
    blocks = [one for one in program.outward(node) if isinstance(one, ast.With)]
    resting = any("no_grad" in ast.unparse(item) for one in blocks for item in one.items)
    return bool(_TERM.search(name)) and not _REPORTED.search(name) and not resting


@reads("mask behind the softmax")
def _masked_late(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        if method_of(call) not in {"masked_fill", "masked_fill_"} or len(call.args) < 2:
            continue
        made = end(program, object_of(call))
        filler = ast.unparse(call.args[1])
        if made is not None and made.op == "softmax" and ("inf" in filler or re.search(r"-1?e|-\d{3}|min", filler)):
            yield spot(call, made.node, text=shown(call))


@reads("scaled behind the softmax")
def _scaled_late(program: Program) -> Iterator[Spot]:
    for node in program.every(ast.BinOp):
        scales = is_op(node, ast.Mult | ast.Div) and _SCALE.search(ast.unparse(node.right))
        if scales and op(program, node.left)[0] == "softmax" and program.owner(node) is not None:
            yield spot(node, text=shown(node))


@reads("plateau in the wrong mode")
def _wrong_mode(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        if library_name(program, call) != "ReduceLROnPlateau":
            continue
        mode = argument(call, "mode", 1)
        rises = constant(mode) == "max"
        if mode is not None and constant(mode) not in {"min", "max"}:
            continue
        name = target_text(program.parents.get(call))
        for step in program.calls_of(".step") if name else ():
            given = ast.unparse(step.args[0]) if step.args and ast.unparse(step.func) == f"{name}.step" else ""
            if _FALLS.search(given) if rises else _RISES.search(given) and not _FALLS.search(given):
                wanted, how = ("min", "grows") if rises else ("max", "falls")
                yield spot(call, step, given=given, how=how, remedy=f"ReduceLROnPlateau(optimizer, mode='{wanted}')")


@reads("step in the wrong rounds")
def _wrong_rounds(program: Program) -> Iterator[Spot]:
    """Find `if step % n:` around a step: it is true in all rounds but those that end an accumulation."""
    for one in trainings(program):
        for event in one.of("step"):
            around = program.nearest(event.node, ast.If)
            if around is None or not any(holds(part, event.node) for part in around.body):
                continue
            test = around.test
            if compares(test, ast.NotEq) and constant(test.comparators[0]) == 0:
                test = test.left
            if is_op(test, ast.Mod):
                yield spot(around.test, event.node, text=shown(around.test))


@reads("class weights favour the frequent")
def _favoured(program: Program) -> Iterator[Spot]:
    """Find `weight=counts / counts.sum()`: the shares of the classes, or their counts, instead of the inverse."""
    for call in program.calls:
        name = last(program.names.full(call.func))
        given = argument(call, "weight", 0 if name == "CrossEntropyLoss" else 2) if "ross" in name else None
        for value in _weights_of(program, given):
            if _is_share(program, value):
                near = program.function(value) is program.function(call)
                first, second = (value, call) if near else (call, value)
                remedy = f"weight=total / {shown(value.left)}"
                yield spot(first, second, program.statement(call), text=shown(value), remedy=remedy)
                break
        positive = argument(call, "pos_weight") if "BCEWithLogits" in name or name.endswith("with_logits") else None
        for value in _weights_of(program, positive):
            above, below = ast.unparse(value.left), ast.unparse(value.right)
            if re.search(r"(^|_|\b)pos", above) and re.search(r"(^|_|\b)neg", below) and "neg" not in above:
                remedy = f"pos_weight={below} / {above}"
                yield spot(value, call, program.statement(call), text=shown(value), remedy=remedy)
        weights = given or positive
        bound = program.bound(weights)
        counts = list(_counts_of(program, weights))
        for count in counts if not _is_changed(program, weights, *map(program.statement, counts)) else ():
            place = bound.value if bound is not None and bound.item is None and bound.value is not None else count
            remedy = f"weight=1 / {shown(count, 40)}" if given is not None else "pos_weight=negatives / positives"
            yield spot(place, count, call, program.statement(call), text=shown(count), remedy=remedy)


def _weights_of(program: Program, given: ast.expr | None) -> Iterator[ast.BinOp]:
    """Yield the divisions that compute the values of an argument."""
    waiting, seen = [Value(given)] if given is not None else [], 0
    while waiting and seen < 12:
        seen += 1
        for one in flow(program).ends(waiting.pop()):
            node = one.node
            if is_op(node, ast.Div):
                yield node
            elif isinstance(node, ast.Call) and (inner := program.operand(node)) is not None:
                waiting.append(Value(inner, one.frame))
            waiting += [Value(part, one.frame) for part in elements(node)]


def _counts_of(program: Program, given: ast.expr | None) -> Iterator[ast.Call]:
    """Yield the counts of examples that are the weights as they are: `bincount(labels)`, `labels.sum(0)`."""
    waiting, seen = [Value(given)] if given is not None else [], 0
    while waiting and seen < 12:
        seen += 1
        for one in flow(program).ends(waiting.pop()):
            node, name = one.node, program.called(one.node)
            inner = program.operand(node) if isinstance(node, ast.Call) else None
            if isinstance(node, ast.Call) and inner is not None and name in _CASTS:
                waiting.append(Value(inner, one.frame))
            elif isinstance(node, ast.Call) and not one.path and (name == "bincount" or _is_labels(inner, name)):
                yield node


def _is_changed(program: Program, weights: ast.expr | None, *statements: ast.stmt) -> bool:
    """Tell whether variables that hold weights are written to more than once: `w /= w.sum()`, `w.reciprocal_()`."""
    names = {ident(weights), *(ident(one.targets[0]) for one in statements if isinstance(one, ast.Assign))} - {""}
    written = [unindexed(one) for one in program.every(ast.expr) if isinstance(getattr(one, "ctx", None), ast.Store)]
    written += [on for one in program.calls if method_of(one).endswith("_") and (on := object_of(one)) is not None]
    stores = [ident(one) for one in written]
    return any(stores.count(name) > 1 for name in names)


def _is_labels(node: ast.expr | None, summed: str = "sum") -> bool:
    """Tell whether a sum is one of labels by their name, or of what marks positive ones: `labels == 1`, `y > 0`."""
    if summed != "sum":
        return False
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        marked = constant(node.comparators[0]) == (1 if isinstance(node.ops[0], ast.Eq) else 0)
        return isinstance(node.ops[0], ast.Eq | ast.Gt) and marked and _is_labels(node.left)
    name = ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) else ""
    return re.search(r"(^|_|\b)(y|ys|labels?|targets?|positives?)(_|\b)", name) is not None


def _is_share(program: Program, value: ast.BinOp) -> bool:
    """Tell whether an expression divides class counts by their sum or by the number of examples."""
    above, below = ast.unparse(value.left), ast.unparse(value.right)
    whole = below in {f"{above}.sum()", f"sum({above})", f"len({above})"}
    ends = map(ast.unparse, flow(program).origins(root_of(value.left)))
    counted = any(re.search(r"Counter\(|bincount\(|value_counts\(", end) for end in ends)
    return (whole and bool(_COUNTS.search(above))) or (counted and bool(re.match(r"(len|sum)\(|.*\.sum\(\)$", below)))


@reads("sample without a gradient")
def _sampled(program: Program) -> Iterator[Spot]:
    """Find `z = Normal(mean, deviation).sample()` of which a layer makes more: the draw has no gradient."""
    for call in program.calls:
        if not _is_draw(program, call):
            continue
        owner = program.owner(call)
        whole = owner.node if owner is not None else program.around(call)
        if has_attribute(whole, "log_prob", "no_grad") or not _is_taken(program, call):
            continue
        drawn = shown(call).replace(".sample(", ".rsample(") if method_of(call) == "sample" else _by_noise(call)
        yield spot(call, program.statement(call), text=shown(call), remedy=drawn)


def _by_noise(call: ast.Call) -> str:
    mean, deviation = (shown(one, 30) for one in call.args[:2])
    return f"{mean} + {deviation} * torch.randn_like({deviation})"


def _is_draw(program: Program, call: ast.Call) -> bool:
    """Tell whether a call draws from a distribution whose mean or deviation is computed."""
    if program.names.full(call.func) == "torch.normal":
        fixed = any(ast.unparse(one).startswith(("torch.zeros", "torch.full", "gg.zeros")) for one in call.args[:1])
        computed = all(isinstance(one, ast.Name | ast.Call | ast.BinOp) for one in call.args[:2])
        return len(call.args) > 1 and computed and not fixed
    held = object_of(call) if method_of(call) == "sample" else None
    made = program.written(held)
    known = isinstance(made, ast.Call) and last(program.names.full(made.func)) in _CONTINUOUS
    return known and isinstance(made, ast.Call) and any(not isinstance(one, ast.Constant) for one in made.args[:1])


def _is_taken(program: Program, call: ast.Call) -> bool:
    """Tell whether a layer gets the result, or a function returns it under a name that says what it is."""
    function, names = program.function(call), set_by(program.statement(call))
    latent = function is not None and bool(_LATENT.search(function.name))
    if isinstance(program.statement(call), ast.Return):
        return latent
    for one in ast.walk(program.around(call)):
        if isinstance(one, ast.Return) and one.value is not None and ast.unparse(one.value) in names:
            return latent
        if isinstance(one, ast.Call) and layer(program, one.func) is not None:
            given = [inner for argument_ in one.args for inner in ast.walk(argument_)]
            if call in given or {ast.unparse(inner) for inner in given} & names:
                return True
    return False


@reads("noise scaled by its variance")
def _without_root(program: Program) -> Iterator[Spot]:
    """Find `sqrt(a) * x + (1 - a) * noise`: the deviation of the noise is the root of 1 - a."""
    for node in program.every(ast.BinOp):
        for kept, added in both_ways(node) if is_op(node, ast.Add) else ():
            factors = [kept, *(_kept_in(program, one) for one in _operands(kept))]
            roots = {ast.unparse(unindexed(root)) for one in factors for root in _rooted(one)}
            found = next((one for one in map(_complement, _sides(program, added)) if one is not None), None)
            if found is not None and ast.unparse(unindexed(found.right)) in roots:
                share = shown(found.right, 30)
                place, also = (node, ()) if holds(node, found) else (found, (node,))
                yield spot(place, *also, text=shown(place), share=share, remedy=f"(1 - {share}).sqrt() * noise")
                break


def _operands(node: ast.expr) -> tuple[ast.expr, ...]:
    return (node.left, node.right) if is_op(node, ast.Mult) else ()


def _sides(program: Program, node: ast.expr) -> list[ast.expr]:
    """Return the two factors of a product, and what the variables among them hold."""
    return [held for one in _operands(node) for held in (one, _kept_in(program, one))]


def _kept_in(program: Program, node: ast.expr) -> ast.expr:
    """Return what a variable or an attribute holds that is indexed, as in `roots[t][:, None]`; the node otherwise."""
    held = unindexed(node)
    found = flow(program).origin(held) if isinstance(held, ast.Name | ast.Attribute) else None
    return node if found is None else found


def _rooted(node: ast.expr) -> Iterator[ast.expr]:
    """Yield what roots are taken of in a product."""
    for one in ast.walk(node):
        held = object_of(one) if method_of(one) == "sqrt" else None
        if held is not None and isinstance(one, ast.Call):
            yield one.args[0] if one.args else held
        elif is_op(one, ast.Pow) and constant(one.right) == 0.5:
            yield one.left


def _complement(node: ast.expr) -> ast.BinOp | None:
    """Return `1 - a`; None for other expressions."""
    return node if is_op(node, ast.Sub) and constant(node.left) == 1 else None


@reads("comparison with NaN")
def _equal_nan(program: Program) -> Iterator[Spot]:
    for node in program.every(ast.Compare):
        for one, other in both_ways(node) if compares(node, ast.Eq | ast.NotEq) else ():
            if _is_nan(program, one):
                yield spot(node, text=shown(node), remedy=f"{shown(other, 40)}.isnan()")
                break


def _is_nan(program: Program, node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and is_name(node.func, "float") and node.args:
        return str(constant(node.args[0])).lower() == "nan"
    return program.names.full(node) in {"math.nan", "numpy.nan", "torch.nan", "numpy.NaN"}


# --- logarithms ---


@reads("unstable formula")
def _formulas(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        name, operand = op(program, call)
        better = _better_log(program, operand) if name == "log" else ""
        if better:
            yield spot(call, text=shown(call), remedy=better)


def _better_log(program: Program, node: ast.expr | None) -> str:
    """Return the function that computes the logarithm of an expression stably; empty if none is needed."""
    if is_op(node, ast.Add):
        other = node.right if constant(node.left) == 1 else node.left if constant(node.right) == 1 else None
        exponent = _exponent(program, other)
        return f"F.softplus({exponent})" if exponent else ""
    name, operand = op(program, node)
    if name == "softmax" and operand is not None:
        return f"F.log_softmax({shown(operand, 40)}, dim)"
    if name == "sigmoid" and operand is not None:
        return f"F.logsigmoid({shown(operand, 40)})"
    made = end(program, node) if not name else None
    if made is not None and made.op in {"softmax", "sigmoid"}:
        return "F.log_softmax(scores, dim)" if made.op == "softmax" else "F.logsigmoid(scores)"
    exponent = _exponent(program, operand) if name == "sum" else ""
    return f"torch.logsumexp({exponent}, dim)" if exponent else ""


def _exponent(program: Program, node: ast.expr | None) -> str:
    """Return x of `exp(x)` as text; empty if the script subtracts the maximum from x, or for other expressions."""
    name, operand = op(program, node)
    if name != "exp" or operand is None:
        return ""
    held = program.source_of(operand) if isinstance(operand, ast.Name) else operand
    return "" if isinstance(held, ast.BinOp) and "max" in ast.unparse(held) else shown(operand, 40)


@reads("weight instead of pos_weight")
def _weighted(program: Program) -> Iterator[Spot]:
    """Find `weight=negatives / positives` of a binary loss, which weights both answers of a label alike."""
    for call in program.calls:
        given = argument(call, "weight")
        binary = library_name(program, call) in {"BCEWithLogitsLoss", "binary_cross_entropy_with_logits"}
        if not binary or given is None or argument(call, "pos_weight") is not None:
            continue
        ends = chain(program, Value(given)).ends
        if len(ends) == 1 and _is_ratio(ends[0].node):
            yield spot(call, ends[0].node, text=shown(given), ratio=shown(ends[0].node))


def _is_ratio(node: ast.expr) -> bool:
    """Tell whether an expression is `(1 - p) / p`, `(n - p) / p` or `negatives / positives`."""
    if not is_op(node, ast.Div):
        return False
    above, below = node.left, ast.unparse(node.right)
    if is_op(above, ast.Sub):
        return ast.unparse(above.right) == below
    return bool(re.search(r"neg", ast.unparse(above), re.IGNORECASE) and re.search(r"pos", below, re.IGNORECASE))


RULES = rules_of(globals())
