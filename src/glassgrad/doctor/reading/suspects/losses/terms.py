"""Suspects about how losses are put together: logarithms, terms and their weights, masks, penalties, reductions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.actors import setting
from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.nodes import both_ways, factors_of, is_op, names_in, within
from glassgrad.doctor.reading.program import LOOPS, Function, Program, argument, number
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import look_at, operations, suspects, suspects_each
from glassgrad.doctor.reading.suspects.lookup import stem_of, text
from glassgrad.doctor.reading.suspects.losses.formulas import (
    about_loss,
    called,
    complement,
    is_loss_name,
    is_target,
    loss_functions,
    prediction_of,
    reached,
    reduced,
    reduction,
    resolved,
    target_name,
    terms_of,
    unsigned_factors,
    words,
    words_of,
)
from glassgrad.doctor.reading.values import ELEMENTWISE, end, losses

_HEAVY = 0.05
"""The weight of a divergence from which it outweighs a mean over features."""

# --- logarithms ---


@suspects("normal distribution with a variance")
def _normal(program: Program) -> Iterator[Spot]:
    """Find `Normal(mean, var)` or `Normal(mean, logvar)`: the second argument is the deviation."""
    for call in program.calls:
        if last(program.names.full(call.func)) == "Normal" and len(call.args) + len(call.keywords) >= 2:
            given = argument(call, "scale", 1)
            known = words(stem_of(given))
            raw = end(program, given) if given is not None else None
            name, inner = called(program, given)
            known |= words(stem_of(inner)) & {"logvar", "var"} if name == "exp" else frozenset()
            odd = known & {"var", "variance", "logvar", "logstd", "log", "logsigma", "lv"}
            if given is not None and (odd or (raw is not None and raw.op == "linear")):
                yield spot(call, text=shown(given))


@suspects_each("likelihood with a turned variance", ast.BinOp)
def _likelihood(program: Program, node: ast.BinOp) -> Iterator[Spot]:
    """Find a squared error times exp(logvar), or a squared error by a variance without its logarithm."""
    if not about_loss(program, node):
        return
    sides = (node.left, node.right)
    squares = [one for one in sides if _is_square(program, resolved(program, one))]
    raised = [one for one in sides if _is_exp_of_log(program, one)]
    if isinstance(node.op, ast.Mult) and squares and raised:
        yield look_at(node, what="multiplies the squared error by the variance")
    elif isinstance(node.op, ast.Div) and squares and words_of(node.right) & {"var", "variance", "sigma"}:
        if _adds_logarithm(program, node) or not is_target_inside(program, node.left):
            return
        yield look_at(node, what="lets the variance grow without a price")


def _adds_logarithm(program: Program, node: ast.AST) -> bool:
    """Tell whether the function around a node adds a logarithm to something."""
    parts = list(ast.walk(program.function(node) or program.statement(node)))
    sums = [one for one in parts if is_op(one, ast.Add | ast.Sub)]
    sides = [side for one in sums for side in (one.left, one.right)]
    sides += [one.value for one in parts if isinstance(one, ast.AugAssign)]
    return any("log" in text(side) for side in sides)


def is_target_inside(program: Program, node: ast.expr) -> bool:
    """Tell whether an expression, or a variable in it, is called as a target."""
    return any(isinstance(one, ast.Name) and is_target(program, one) for one in reached(program, node))


def _is_square(program: Program, node: ast.expr | None) -> bool:
    name, base = called(program, node)
    inner = resolved(program, base)
    return name in {"pow", "square"} and is_op(inner, ast.Sub)


def _is_exp_of_log(program: Program, node: ast.expr) -> bool:
    name, inner = called(program, resolved(program, node))
    if name != "exp" or not isinstance(inner, ast.Name | ast.Attribute):
        return False
    return bool(words(stem_of(inner)) & {"logvar", "log", "lv", "s"})


def _log_of(program: Program, node: ast.expr | None) -> ast.expr | None:
    """Return x of `log(x)` or `log(x + eps)`."""
    name, inner = called(program, resolved(program, node))
    if name not in {"log", "log2"}:
        return None
    small = is_op(inner, ast.Add)
    if small and isinstance(inner, ast.BinOp):
        inner = inner.left if complement(inner.left) is not None or number(inner.right) is not None else inner
        inner = inner.left if is_op(inner, ast.Add) else inner
    name, operand = called(program, inner)
    return operand if name in {"clamp", "clip"} else inner


def _halves(program: Program, node: ast.expr) -> list[tuple[int, ast.expr, ast.expr]]:
    """Return the terms `a * log(b)` of a sum: sign, a and b."""
    found = []
    for sign, term in terms_of(program, node):
        parts = unsigned_factors(term)
        logs = [(one, inner) for one in parts if (inner := _log_of(program, one)) is not None]
        rest = [one for one in parts if logs and one is not logs[0][0]]
        if len(logs) == 1 and rest:
            found.append((sign, rest[-1], logs[0][1]))
    return found


@suspects("halves of a binary cross entropy")
def _binary(program: Program) -> Iterator[Spot]:
    """Find `y * log(p) + (1 - y) * log(p)`, halves of unlike signs, logarithms of targets, and a half alone."""
    for node in _tops(program):
        halves = _halves(program, node)
        turned = [one for one in halves if complement(one[1]) is not None]
        plain = [one for one in halves if complement(one[1]) is None]
        if len(halves) == 2 and len(turned) == 1:
            same = (complement(plain[0][2]) is None) == (complement(turned[0][2]) is None)
            if same or plain[0][0] != turned[0][0]:
                yield look_at(node, program.statement(node), what="its halves do not fit each other")
        elif (
            len(halves) == 1
            and plain
            and is_target(program, plain[0][1])
            and (found := end(program, plain[0][2])) is not None
            and found.op == "sigmoid"
        ):
            yield look_at(node, program.statement(node), what="it says nothing about examples of label 0")
        elif halves and is_target(program, halves[0][2]) and not is_target(program, halves[0][1]):
            yield look_at(node, program.statement(node), what="it takes the logarithm of the target")


def _tops(program: Program) -> Iterator[ast.expr]:
    """Yield the expressions that a script assigns or returns and that hold a logarithm."""
    for one in program.nodes:
        value = one.value if isinstance(one, ast.Assign | ast.Return | ast.AugAssign) else None
        if value is not None and any(called(program, part)[0] in {"log", "log2"} for part in reached(program, value)):
            yield value


@suspects_each("cross entropy without its minus", ast.Assign | ast.Return)
def _no_minus(program: Program, one: ast.Assign | ast.Return) -> object:
    """Find a loss that is a sum or mean of targets times log-probabilities, or an entropy, with a plus."""
    if one.value is None:
        return False
    found = list(terms_of(program, one.value))
    name = target_name(program, one) if isinstance(one, ast.Assign) else getattr(program.function(one), "name", "")
    entropy = "entropy" in name.lower() and not re.search(r"neg|cross|loss", name.lower())
    wanted = entropy or re.search(r"(^|_)(nll|ce|cross|crossentropy|loss|entropy)(_|$)", name.lower())
    if len(found) != 1 or found[0][0] < 0 or not wanted or not any(reduction(program, resolved(program, one.value))):
        return False
    parts = unsigned_factors(found[0][1])
    logs = [part for part in parts if _is_log(program, part)]
    odd = len(parts) == 2 and len(logs) == 1 and (entropy or any(is_target(program, part) for part in parts))
    return odd and spot(one, text=shown(one.value))


def _is_log(program: Program, node: ast.expr) -> bool:
    name, _ = called(program, resolved(program, node))
    return name in {"log", "log_softmax", "logsigmoid"} or bool(words(stem_of(node)) & {"log", "logp", "logprobs"})


@suspects_each("smoothing not spread over the classes", operations(ast.Add))
def _smoothing(program: Program, node: ast.BinOp) -> Iterator[Spot]:
    """Find `y * (1 - eps) + eps` without a division by the number of classes."""
    for one, other in both_ways(node):
        turned = [inner for part in unsigned_factors(one) if (inner := complement(part)) is not None]
        less = [text(inner) for inner in turned if number(inner) is None]
        hot = any(is_target(program, part) or words_of(part) & {"hot", "onehot"} for part in unsigned_factors(one))
        if less and hot and text(other) == less[0] and re.search(r"eps|smooth|alpha|ls", less[0], re.IGNORECASE):
            yield look_at(node)


@suspects_each("divergence from the prior to the posterior", ast.Call)
def _kl_order(program: Program, call: ast.Call) -> object:
    if last(program.names.full(call.func)) != "kl_divergence" or len(call.args) != 2:
        return False
    first, second = ("prior" in text(resolved(program, one) or one) + text(one) for one in call.args)
    return first and not second


# --- terms and their weights ---


def _sums(program: Program) -> Iterator[ast.BinOp]:
    """Yield the outermost sums that a script assigns to a loss, returns from one, or calls backward of."""
    for node in program.every(ast.BinOp):
        if is_op(node, ast.Add | ast.Sub):
            outer = program.parents.get(node)
            is_inner = is_op(outer, ast.Add | ast.Sub)
            if not is_inner and about_loss(program, node):
                yield node


def _is_term(program: Program, node: ast.expr) -> bool:
    """Tell whether a term is a loss by its name or by its call."""
    parts = unsigned_factors(node)
    made = any(is_loss_name(name) or words(name) & {"kl", "kld", "bce"} for name in map(stem_of, parts))
    calls = [one for one in parts if isinstance(one, ast.Call)]
    known = {one.call for one in losses(program)}
    return made or any(one in known or is_loss_name(stem_of(one.func)) for one in calls)


@suspects_each("loss term with an extreme weight", _sums)
def _extreme(program: Program, node: ast.BinOp) -> Iterator[Spot]:
    found = factors_of(node, ast.Add | ast.Sub)
    if len(found) < 2 or not any(_is_term(program, one) for one in found):
        return
    for one in found:
        parts = unsigned_factors(one)
        sizes = [(part, setting(program, part)) for part in parts if len(parts) > 1]
        for part, size in sizes:
            if size is not None and (size == 0 or abs(size) >= 50 or abs(size) <= 1e-5):
                yield spot(node, program.statement(part), text=shown(one), size=f"{size:g}")


@suspects_each("two terms with the same weight", _sums)
def _same_weight(program: Program, node: ast.BinOp) -> object:
    """Find `alpha * a + alpha * b` where `1 - alpha` is meant."""
    found = factors_of(node, ast.Add | ast.Sub)
    texts = [{text(one) for one in unsigned_factors(part)[:-1] + unsigned_factors(part)[1:]} for part in found]
    shared = set.intersection(*texts) if len(found) == 2 and all(texts) else set()
    return any(re.search(r"alpha|lam|\bw\b|mix|1 - ", one) for one in shared) and look_at(node, weight=min(shared))


@suspects_each("both parts of a mixture alike", operations(ast.Add))
def _mixture(program: Program, node: ast.BinOp) -> object:
    """Find `lam * criterion(out, y) + (1 - lam) * criterion(out, y)`."""
    sides = [unsigned_factors(one) for one in (node.left, node.right)]
    calls = [[one for one in side if isinstance(one, ast.Call)] for side in sides]
    mixed = any(complement(one) is not None for side in sides for one in side)
    return mixed and all(len(one) == 1 for one in calls) and text(calls[0][0]) == text(calls[1][0])


@suspects_each("one term summed, another averaged", _sums)
def _unlike(program: Program, node: ast.BinOp) -> Iterator[Spot]:
    found = [resolved(program, one) for one in factors_of(node, ast.Add | ast.Sub)]
    kinds = [reduced(program, one) for one in found]
    if "sum" in kinds and "mean" in kinds and "/" not in text(program.statement(node)):
        total = found[kinds.index("sum")] or node
        yield look_at(total, node, other=shown(factors_of(node, ast.Add | ast.Sub)[kinds.index("mean")]))


_OF_NORMAL = r"\*\* 2|pow\(2|square", r"exp\(", r"sum\("
"""What stands in the divergence of a normal distribution that is summed over its latent numbers."""
_EACH = re.compile(r"mean\(|\) / \(?(len\(\w+\)|\w+\.size\(0\)|\w+\.shape\[0\]|\w*batch_?size|bs|n|B)\)*$")
"""A mean over the examples of a batch."""
_OF_PARTS = ELEMENTWISE | {"binary_cross_entropy", "binary_cross_entropy_with_logits"}


@suspects_each("reconstruction averaged over its features", _sums)
def _thin_reconstruction(program: Program, node: ast.BinOp) -> Iterator[Spot]:
    """Find `mse_loss(output, x) + weight * sum(divergence) / batch`, unless the weight is small or unknown."""
    found = [(part, factors_of(part)) for part in factors_of(node, ast.Add | ast.Sub)]
    averaged = [one for _, parts in found if len(parts) == 1 and _is_mean(program, one := resolved(program, parts[0]))]
    for part, parts in found if averaged else ():
        summed = [one for one in parts if _is_summed_divergence(program, resolved(program, one))]
        sizes = [setting(program, one) for one in parts if one not in summed]
        if summed and all(one is not None and abs(one) >= _HEAVY for one in sizes):
            yield look_at(averaged[0] or node, node, other=shown(part))


def _is_mean(program: Program, node: ast.expr | None) -> bool:
    """Tell whether a value is a loss of the library for numbers, averaged over everything."""
    return (
        any(one.call is node and one.kind in _OF_PARTS for one in losses(program)) and reduced(program, node) == "mean"
    )


def _is_summed_divergence(program: Program, node: ast.expr | None) -> bool:
    """Tell whether a value is the divergence of a normal distribution, summed over the latent numbers of an example."""
    said = text(node)
    return bool(_EACH.search(said)) and all(re.search(one, said) for one in _OF_NORMAL)


@suspects_each("learned weight of a loss term", _sums)
def _learned(program: Program, node: ast.BinOp) -> Iterator[Spot]:
    """Find a term times a parameter that occurs in no other term, so that the loss falls with the parameter."""
    for one in factors_of(node, ast.Add | ast.Sub):
        parts = unsigned_factors(one)
        inner = [part for factor in parts for part in within(factor, ast.Attribute)]
        for part in inner if len(parts) > 1 else ():
            outer = program.parents.get(part)
            said = text(outer if isinstance(outer, ast.Subscript) else part)
            made = {stem_of(end.node.func) for end in flow(program).ends(part) if isinstance(end.node, ast.Call)}
            others = [text(other) for other in factors_of(node, ast.Add | ast.Sub) if other is not one]
            if "Parameter" in made and not any(said in other for other in others):
                yield spot(node, text=shown(one))


@suspects_each("loss turned over or without its sign", ast.expr)
def _inverse(program: Program, node: ast.expr) -> object:
    """Find `1 / loss`, and the absolute value of a loss."""
    inner: ast.expr | None = None
    if is_op(node, ast.Div) and number(node.left) is not None:
        inner = node.right.left if isinstance(node.right, ast.BinOp) else node.right
    elif called(program, node)[0] == "abs":
        inner = called(program, node)[1]
    return is_loss_name(stem_of(inner)) and is_loss_name(target_name(program, node))


@suspects_each("part of the loss instead of the whole", ast.Assign)
def _part(program: Program, one: ast.Assign) -> Iterator[Spot]:
    """Find a return or backward of one term of a sum that was computed before and that nothing else trains."""
    if not is_loss_name(target_name(program, one)):
        return
    name, around = target_name(program, one), program.around(one)
    factors = [part for term in factors_of(one.value, ast.Add | ast.Sub) for part in unsigned_factors(term)]
    parts = {part for part in map(stem_of, factors) if is_loss_name(part)} - {name}
    later = [node for node in ast.walk(around) if getattr(node, "lineno", 0) > one.lineno]
    ends = [(node, value) for node in later for value in _trained(node)]
    taken = {stem_of(value) for _, value in ends}
    if len(parts) < 2 or name in taken or any(name in names_in(value) for _, value in ends):
        return
    for node, value in ends:
        if stem_of(value) in parts:
            assert isinstance(node, ast.expr | ast.stmt)
            yield spot(node, one, text=stem_of(value), total=name)
            break


def _trained(node: ast.AST) -> list[ast.expr]:
    """Return what a statement returns, or what it calls backward of."""
    if isinstance(node, ast.Return) and node.value is not None:
        return node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    function = node.func if isinstance(node, ast.Call) else None
    return [function.value] if isinstance(function, ast.Attribute) and function.attr == "backward" else []


@suspects("loss set anew in each round")
def _each_round(program: Program) -> Iterator[Spot]:
    """Find a loop that assigns a loss without reading it, while the script uses it behind the loop."""
    for loop in (node for node in program.nodes if isinstance(node, LOOPS)):
        inside = [node for line in loop.body for node in ast.walk(line)]
        read = {one.id for one in inside if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
        around = program.around(loop)
        after = [one for one in ast.walk(around) if getattr(one, "lineno", 0) > (loop.end_lineno or 0)]
        used = {one.id for one in after if isinstance(one, ast.Name) and _counts(program, one)}
        for one in inside:
            name = target_name(program, one) if isinstance(one, ast.Assign) else ""
            known = is_loss_name(name) or re.search(r"^(reg|penalty|kl|norm|l1|l2)", name)
            if known and name in used - read and "break" not in text(loop):
                assert isinstance(one, ast.Assign)
                judges = r"val|dev|test|eval|item|float\(|update|train|optim|step|scan|compiled|run\("
                if not re.search(judges, f"{name} {text(one.value)}"):
                    yield spot(one, loop, text=name)


def _counts(program: Program, node: ast.Name) -> bool:
    """Tell whether a use of a loss trains something: it is returned, added up, or backward is called of it."""
    statement = program.statement(node)
    adds = isinstance(statement, ast.Assign) and isinstance(statement.value, ast.BinOp)
    reads = isinstance(node.ctx, ast.Load)
    return reads and (isinstance(statement, ast.Return) or adds or "backward" in text(statement))


@suspects("losses put into a new tensor")
def _remade(program: Program) -> Iterator[Spot]:
    """Find `torch.tensor([...])` or NumPy in the computation of a loss: the result has no gradient."""
    inside = loss_functions(program)
    for call in program.calls:
        full, function = program.names.full(call.func), program.function(call)
        given = call.args[0] if call.args else None
        if full in {"torch.tensor", "torch.FloatTensor", "torch.Tensor"} and isinstance(given, ast.List | ast.Name):
            shows = re.search(r"item|mean_|avg|val|epoch|history", text(program.statement(call)))
            if words_of(given) & {"loss", "losses"} and is_loss_name(target_name(program, call)) and not shows:
                yield look_at(call)
        elif full.startswith("numpy.") and function in inside and given is not None:
            yield from [look_at(call)] if prediction_of(function) in names_in(given) else []


@suspects_each("prediction detached in a loss", loss_functions)
def _detached(program: Program, function: Function) -> Iterator[Spot]:
    """Find detach, item, data or numpy of the prediction within a loss function."""
    for node in within(function, ast.Attribute):
        is_cut = node.attr in {"detach", "data", "item", "numpy"}
        if is_cut and stem_of(node.value) in {prediction_of(function)} - {""}:
            yield look_at(node)
