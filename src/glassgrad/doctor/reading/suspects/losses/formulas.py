"""Formulas in a script: the words in names, terms and factors, and the places where losses are computed."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from glassgrad.doctor.reading.names import named
from glassgrad.doctor.reading.nodes import ident, is_name, is_negative, is_op, within
from glassgrad.doctor.reading.program import FUNCTIONS, Function, Program, argument, constant, number
from glassgrad.doctor.reading.suspects.lookup import sides_of, stem_of, text
from glassgrad.doctor.reading.values import layer, library_name, losses, op

_LOSS = re.compile(
    r"loss|criterion|objective|nll|penalt|regulari|elbo|focal|dice|tversky|jaccard|triplet|contrastive|entropy|"
    r"(^|_)(cost|kl|kld|reg|bce|ce|mse|mae|l1|l2|tv|total)(_|$)"
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_DEEPEST = 6
TARGETS = named("target targets label labels y gt truth true actual t ys yb tgt")
"""Words in the names of what is to be predicted."""
PREDICTIONS = named(
    "pred preds predict predicted prediction predictions output outputs out logit logits hat yhat recon reconstruction "
    "model net score scores mu prob probs probability"
)
"""Words in the names of what a model says."""
KEEPING = named(
    "squeeze unsqueeze view reshape flatten float double to contiguous clone type type_as cpu cuda long half detach"
)
"""Methods whose result has the numbers of their operand."""


def words(name: str) -> frozenset[str]:
    """Return the words of a name in small letters: `posDist_2` has pos, dist and 2."""
    return frozenset(re.findall(r"[a-z]+|\d+", _CAMEL.sub("_", name).lower()))


def words_of(node: ast.AST | None) -> frozenset[str]:
    """Return the words of all variables and attributes in an expression."""
    return frozenset().union(*(words(ident(one)) for one in within(node, ast.AST)))


def is_target(program: Program, node: ast.expr | None) -> bool:
    """Tell by its name whether a value is what should be predicted."""
    name = stem_of(uncast(program, node))
    found = words(name)
    return bool(found & (TARGETS - {"t"}) or name == "t") and not found & PREDICTIONS


def called(program: Program, node: ast.AST | None) -> tuple[str, ast.expr | None]:
    """Return the op that an expression computes as a function or a method, and its first operand."""
    if is_op(node, ast.Pow):
        return "pow", node.left
    return op(program, node) if isinstance(node, ast.Call) else ("", None)


def uncast(program: Program, node: ast.expr | None) -> ast.expr | None:
    """Return an expression without casts and reshapes around it."""
    name, inner = called(program, node)
    while name in KEEPING and inner is not None:
        node = inner
        name, inner = called(program, node)
    return node


def resolved(program: Program, node: ast.expr | None) -> ast.expr | None:
    """Return what a variable holds, or the expression itself, without casts and reshapes."""
    node = uncast(program, node)
    for _ in range(_DEEPEST):
        value = program.value_of(node)
        if value is None:
            break
        node = uncast(program, value)
    return node


def reached(program: Program, node: ast.AST | None, depth: int = 0) -> Iterator[ast.AST]:
    """Yield the nodes of an expression, and of what the variables in it hold."""
    for one in ast.walk(node) if node is not None else ():
        yield one
        value = program.value_of(one) if isinstance(one, ast.Name) and depth < 3 else None
        if value is not None and value is not node:
            yield from reached(program, value, depth + 1)


def reduction(program: Program, node: ast.AST | None) -> tuple[str, ast.expr | None]:
    """Return "mean" or "sum" and the operand of such a call; an empty name for others."""
    name, inner = called(program, node)
    return (name, inner) if name in {"mean", "sum"} else ("", None)


def terms_of(program: Program, node: ast.expr | None, sign: int = 1, depth: int = 0) -> Iterator[tuple[int, ast.expr]]:
    """Yield the terms of a sum with their signs, through names, means, sums, and factors that are numbers."""
    if node is None:
        return
    inner = resolved(program, node) if depth < _DEEPEST else node
    _, reduced = reduction(program, inner)
    if sides := sides_of(inner):
        for turn, side in sides:
            yield from terms_of(program, side, sign * turn, depth + 1)
    elif reduced is not None and depth < _DEEPEST:
        yield from terms_of(program, reduced, sign, depth + 1)
    elif is_op(inner, ast.Mult) and number(inner.left) is not None:
        yield from terms_of(program, inner.right, -sign if (number(inner.left) or 0) < 0 else sign, depth + 1)
    else:
        yield sign, inner if inner is not None else node


def unsigned_factors(node: ast.expr | None) -> list[ast.expr]:
    """Return the factors of a product, without the sign before it."""
    if is_op(node, ast.Mult):
        return [*unsigned_factors(node.left), *unsigned_factors(node.right)]
    if is_negative(node):
        return unsigned_factors(node.operand)
    return [] if node is None else [node]


def complement(node: ast.expr | None) -> ast.expr | None:
    """Return x of `1 - x`; None for others."""
    is_one = is_op(node, ast.Sub) and number(node.left) == 1
    return node.right if is_one and isinstance(node, ast.BinOp) else None


def target_name(program: Program, node: ast.AST) -> str:
    """Return the name that the statement around a node assigns to; empty for others."""
    statement = program.statement(node)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    return stem_of(target)


def about_loss(program: Program, node: ast.AST) -> str:
    """Return the names around a node if it belongs to a loss: of the function, the class and the variable."""
    function, owner = program.function(node), program.owner(node)
    names = [
        function.name if function is not None else "",
        owner.node.name if owner is not None and (function is None or function.name in {"forward", "__call__"}) else "",
        target_name(program, node),
    ]
    texts = [_CAMEL.sub("_", one).lower() for one in names]
    return " ".join(texts) if any(map(_LOSS.search, texts)) else ""


def is_loss_name(name: str) -> bool:
    """Tell whether a variable is called as a loss."""
    return bool(re.search(r"loss|(^|_)(cost|objective|nll|elbo)(_|$)", _CAMEL.sub("_", name).lower()))


def parameters(function: Function | None) -> list[str]:
    """Return the names of the parameters of a function, without self."""
    given = function.args.args if function is not None else []
    return [one.arg for one in given if one.arg not in {"self", "cls"}]


def prediction_of(function: Function | None) -> str:
    """Return the parameter of a loss function that holds the prediction; empty if it has none."""
    given = parameters(function)
    named_so = [one for one in given if words(one) & PREDICTIONS]
    plain = [one for one in given[:2] if not words(one) & TARGETS]
    return named_so[0] if named_so else plain[0] if plain and len(given) >= 2 else ""


def uses(program: Program, *names: str) -> Iterator[tuple[ast.Call, ast.Call]]:
    """Yield the calls of losses by the names of their classes and functions, each with the call of its options."""
    for call in program.calls:
        if library_name(program, call) in names and not library_name(program, call)[:1].isupper():
            yield call, call
            continue
        found = layer(program, call.func)
        if found is not None and found.owner is None and found.name in names:
            yield call, found.call


def uses_of(*names: str) -> Callable[[Program], Iterator[tuple[ast.Call, ast.Call]]]:
    """Return a function that finds the calls of some losses, each with the call of its options."""
    return lambda program: uses(program, *names)


def option(call: ast.Call, made: ast.Call, name: str) -> object:
    """Return an option of a loss that is written as a constant; None for others."""
    return constant(argument(call, name) or argument(made, name))


def reduced_by(program: Program, node: ast.expr) -> Iterator[tuple[str, ast.Call]]:
    """Yield the means and sums that a value gets, in its own expression or under the name that it is assigned to."""
    outer = program.parents.get(node)
    if isinstance(outer, ast.Attribute) and isinstance(call := program.parents.get(outer), ast.Call):
        yield outer.attr, call
    statement = program.statement(node)
    is_whole = isinstance(statement, ast.Assign) and statement.value is node
    name, function = target_name(program, node) if is_whole else "", program.function(node)
    for call in program.calls if name else ():
        kind, inner = reduction(program, call)
        if kind and is_name(inner, name) and program.function(call) is function:
            yield kind, call


def loss_functions(program: Program) -> list[Function]:
    """Return the functions of a script that compute a loss, by their names or that of their class."""
    known = re.compile(r"loss|criterion|penalt|objective")
    found = []
    for one in functions_of(program):
        owner = program.owner(one)
        around = owner.node.name if owner is not None and one.name in {"forward", "__call__"} else ""
        if known.search(f"{one.name} {around}".lower()):
            found.append(one)
    return found


def reduced(program: Program, node: ast.expr | None) -> str:
    """Return whether a value is a sum or a mean over everything; empty if unknown."""
    kind, _ = reduction(program, node)
    if kind and isinstance(node, ast.Call):
        own = len(node.args) - (1 if program.names.full(node.func) else 0)
        return "" if own > 0 or argument(node, "dim") or argument(node, "axis") else kind
    known = next((one for one in losses(program) if one.call is node), None)
    found = layer(program, known.call.func) if known is not None and not library_name(program, known.call) else None
    options = [*(known.call.keywords if known is not None else ()), *(found.call.keywords if found is not None else ())]
    if known is None or any(one.arg in {"size_average", "reduce", None} for one in options):
        return ""
    given = [constant(one.value) for one in options if one.arg == "reduction"]
    return str(given[-1]) if given else "mean"


def source(program: Program) -> str:
    """Return a script as text in small letters."""
    found = program.memo.get("source in small letters")
    if not isinstance(found, str):
        found = program.memo["source in small letters"] = text(program.tree).lower()
    return found


def functions_of(program: Program) -> list[Function]:
    """Return the functions and methods of a script."""
    return [one for one in program.nodes if isinstance(one, FUNCTIONS)]
