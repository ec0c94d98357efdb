"""Small edits of a line of a derivation, each of which corrects one kind of mistake.

If an edit makes a wrong line right, it names the mistake. Edits are tried in order: the commonest mistakes first, and
among those the smallest changes.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from glassgrad.base import tables
from glassgrad.ops.core import Array
from glassgrad.verify.derivation import execute

SIGN = "a sign"
SUM = "a missing sum over a broadcast axis"
WRONG_SUM = "a sum over the wrong axis, or one too many"
TRANSPOSE = "a transpose"
ACCUMULATION = "a forgotten accumulation"
SCALE = "a missing 1/n"
EXTRA_SCALE = "a 1/n too many"
N_MINUS_1 = "n for n-1"
UPDATE = "an update instead of an assignment"
ASSIGNMENT = "an assignment instead of an update"
CONSTANT = "a wrong constant"
VARIABLE = "a wrong variable"
FACTOR = "a missing factor"
EXTRA_FACTOR = "a factor too many"
MASK = "a wrong mask"
SHAPE = "a shape other than the value's"
MINUS = "-= for +="
TIES = "a tie counted more than once"
ALIAS = "two names for one array"


@dataclass(frozen=True)
class Edit:
    """A changed statement, the kind of mistake it corrects, and its description."""

    kind: str
    words: str
    node: ast.stmt


@dataclass(frozen=True)
class Surroundings:
    """The names that edits may use: arrays of the forward pass, gradients, sizes."""

    values: Mapping[str, Array]
    gradients: Mapping[str, Array]
    sizes: frozenset[int]


def all_edits(statement: ast.stmt, around: Surroundings) -> Iterator[Edit]:
    """Yield the edits of a statement, likely ones first."""
    yield from of_assignment(statement)
    expression = getattr(statement, "value", None)
    if expression is None:
        return
    parts = list(_parts(expression))
    for family in (_signs, _reductions, _transposes, _sums, _sizes, _scales, _masks, _constants, _variables, _factors):
        for part, is_exponent in parts:
            if is_exponent and family is _sizes:
                continue
            if is_exponent and family is _signs:
                yield Edit(SIGN, f"-({ast.unparse(part)}) as the exponent", rebuilt(statement, part, _negative(part)))
            for kind, words, new in family(part, around):
                yield Edit(kind, words, rebuilt(statement, part, new))


def rebuilt(root: Any, old: ast.AST, new: ast.AST) -> Any:
    """Return a copy of `root` with the node `old` replaced by `new`."""
    if root is old:
        return new
    if isinstance(root, list):
        return [rebuilt(item, old, new) for item in root]
    if not isinstance(root, ast.AST):
        return root
    fields = {name: rebuilt(value, old, new) for name, value in ast.iter_fields(root)}
    return ast.copy_location(type(root)(**fields), root)


_TAKES_AXES = frozenset(
    tables.words(
        """
        sum mean amax max amin min reshape view swapaxes transpose permute squeeze unsqueeze expand broadcast_to
        repeat
        """
    )
)


def _parts(node: ast.expr, is_exponent: bool = False) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the subexpressions that are numbers or arrays, outermost first, and whether each is an exponent."""
    yield node, is_exponent
    match node:
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            yield from _parts(left)
            yield from _parts(right, is_exponent=True)
            return
        case ast.BinOp(left=left, right=right):
            children = [left, right]
        case ast.UnaryOp(operand=operand):
            children = [operand]
        case ast.Compare(left=left, comparators=rest):
            children = [left, *rest]
        case ast.Call(func=ast.Attribute(value=owner, attr=method), args=args):
            own = [*([] if _is_module(owner) else [owner]), *args]
            children = own[:1] if method in _TAKES_AXES else own
        case ast.Call(args=args):
            children = list(args)
        case ast.Attribute(value=owner) | ast.Subscript(value=owner):
            children = [] if _is_module(owner) else [owner]
        case _:
            children = []
    for child in children:
        yield from _parts(child)


def _is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in {"np", "numpy", "gg", "glassgrad", "torch", "F", "math"}


def of_assignment(statement: ast.stmt) -> Iterator[Edit]:
    """Yield the edits of the assignment: =, +=, -=, and accumulation if an index repeats."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
        add_at: Array = ast.parse("np.add.at(1, 2, 3)").body[0]
        value: Array = statement
        add_at.value.args = [ast.Name(target.value.id, ast.Load()), target.slice, value.value]
        words = f"{ast.unparse(add_at)}, since an index that occurs several times is written only once"
        yield Edit(ASSIGNMENT, words, _placed(add_at, statement))
    if isinstance(statement, ast.AugAssign):
        new: ast.stmt = ast.Assign(targets=[statement.target], value=statement.value)
        yield Edit(UPDATE, "assign (=) instead of adding to the old value (+=)", _placed(new, statement))
        if isinstance(statement.op, ast.Add | ast.Sub):
            other = ast.Sub() if isinstance(statement.op, ast.Add) else ast.Add()
            new = ast.AugAssign(target=statement.target, op=other, value=statement.value)
            if isinstance(statement.op, ast.Sub):
                yield Edit(MINUS, "a term is added (+=): gradients of all uses are summed", _placed(new, statement))
            else:
                yield Edit(SIGN, "subtract (-=) instead of adding", _placed(new, statement))
        elif isinstance(statement.op, ast.Mult | ast.Div):
            divide = isinstance(statement.op, ast.Mult)
            new = ast.AugAssign(target=statement.target, op=ast.Div() if divide else ast.Mult(), value=statement.value)
            kind, words = (SCALE, "divide (/=)") if divide else (EXTRA_SCALE, "multiply (*=)")
            yield Edit(kind, f"{words} instead of the opposite", _placed(new, statement))
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        if isinstance(target, ast.Name | ast.Subscript):
            new = ast.AugAssign(target=target, op=ast.Add(), value=statement.value)
            yield Edit(ASSIGNMENT, "add (+=) to the old value instead of overwriting it (=)", _placed(new, statement))


def _placed(new: ast.stmt, old: ast.stmt) -> ast.stmt:
    return ast.fix_missing_locations(ast.copy_location(new, old))


Changes = Iterator[tuple[str, str, ast.expr]]  # kind, words, the replacement of a part


def _signs(part: ast.expr, _around: Surroundings) -> Changes:
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add | ast.Sub):
        plus = isinstance(part.op, ast.Sub)
        op: ast.operator = ast.Add() if plus else ast.Sub()
        yield SIGN, f"{'+' if plus else '-'} in {ast.unparse(part)}", ast.BinOp(part.left, op, part.right)
    if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub):
        yield SIGN, f"no minus in front of {ast.unparse(part.operand)}", part.operand
    elif not isinstance(part, ast.Constant):
        yield SIGN, f"a minus in front of {ast.unparse(part)}", _negative(part)


def _negative(part: ast.expr) -> ast.expr:
    if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub):
        return part.operand
    return ast.UnaryOp(ast.USub(), part)


def _transposes(part: ast.expr, _around: Surroundings) -> Changes:
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.MatMult):
        left, right = part.left, part.right
        for first, second in ((_turned(left), right), (left, _turned(right)), (_turned(left), _turned(right))):
            new = ast.BinOp(first, ast.MatMult(), second)
            yield TRANSPOSE, f"{ast.unparse(new)} instead of {ast.unparse(part)}", new
        for first in (right, _turned(right)):
            for second in (left, _turned(left)):
                new = ast.BinOp(first, ast.MatMult(), second)
                yield TRANSPOSE, f"{ast.unparse(new)} instead of {ast.unparse(part)}", new
    elif not isinstance(part, ast.Constant):
        yield TRANSPOSE, f"{ast.unparse(_turned(part))} instead of {ast.unparse(part)}", _turned(part)


def _turned(part: ast.expr) -> ast.expr:
    """The transpose of the last two axes; for an expression that is itself a transpose, its operand."""
    if isinstance(part, ast.Attribute) and part.attr in {"T", "mT"}:
        return part.value
    if (
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr in {"swapaxes", "transpose"}
    ):
        return part.func.value
    return ast.Call(ast.Attribute(part, "swapaxes", ast.Load()), [_number(-1), _number(-2)], [])


def _number(value: float) -> ast.expr:
    return ast.Constant(value) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))


def _reduced(part: ast.expr, method: str, axis: int | tuple[int, ...] | None, keep: bool) -> ast.expr:
    keywords = []
    if axis is not None:
        numbers = ast.Tuple([_number(a) for a in axis], ast.Load()) if isinstance(axis, tuple) else _number(axis)
        keywords.append(ast.keyword("axis", numbers))
    if keep:
        keywords.append(ast.keyword("keepdims", ast.Constant(True)))
    return ast.Call(ast.Attribute(part, method, ast.Load()), [], keywords)


AXES: tuple[int | tuple[int, ...] | None, ...] = (0, 1, -1, 2, (0, 1), (0, 2), None)


def _reductions(part: ast.expr, _around: Surroundings) -> Changes:
    """Edit a sum or mean: another axis, no reduction, or the other of the two."""
    reduction = _reduction_of(part)
    if reduction is None:
        return
    owner, method = reduction
    for axis, keep in itertools.product(AXES, (False, True)):
        new = _reduced(owner, method, axis, keep)
        yield WRONG_SUM, f"{ast.unparse(new)} instead of {ast.unparse(part)}", new
    yield WRONG_SUM, f"no {method} in {ast.unparse(part)}", owner
    other, kind = ("mean", SCALE) if method == "sum" else ("sum", EXTRA_SCALE)
    for axis, keep in itertools.product(AXES, (False, True)):
        new = _reduced(owner, other, axis, keep)
        yield kind, f"{ast.unparse(new)} instead of {ast.unparse(part)}", new


def _sums(part: ast.expr, _around: Surroundings) -> Changes:
    if isinstance(part, ast.Constant) or _reduction_of(part) is not None:
        return
    for axis, keep in itertools.product(AXES, (False, True)):
        new = _reduced(part, "sum", axis, keep)
        yield SUM, f"{ast.unparse(new)} instead of {ast.unparse(part)}", new


def _reduction_of(part: ast.expr) -> tuple[ast.expr, str] | None:
    """Return x and "sum" for x.sum(...) or np.sum(x, ...); likewise for mean."""
    if not isinstance(part, ast.Call) or not isinstance(part.func, ast.Attribute):
        return None
    if part.func.attr not in {"sum", "mean"}:
        return None
    if _is_module(part.func.value):
        return (part.args[0], part.func.attr) if part.args else None
    return part.func.value, part.func.attr


def _sizes(part: ast.expr, around: Surroundings) -> Changes:
    """Exchange n and n - 1 wherever a size occurs."""
    number = _value_of(part, around)
    if number is None or not float(number).is_integer() or number < 2:
        return
    if isinstance(part, ast.BinOp):
        if isinstance(part.op, ast.Sub) and isinstance(part.right, ast.Constant) and part.right.value == 1:
            yield N_MINUS_1, f"{ast.unparse(part.left)} instead of {ast.unparse(part)}", part.left
        return
    if number in around.sizes or number + 1 in around.sizes:
        less, more = (ast.BinOp(part, op, ast.Constant(1)) for op in (ast.Sub(), ast.Add()))
        yield N_MINUS_1, f"{ast.unparse(less)} instead of {ast.unparse(part)}", less
        yield N_MINUS_1, f"{ast.unparse(more)} instead of {ast.unparse(part)}", more


def _value_of(part: ast.expr, around: Surroundings) -> float | None:
    """The value of a constant, a name, or n - 1."""
    match part:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number)
        case ast.Name(id=name):
            value = around.values.get(name)
            if isinstance(value, int | float | np.number) and not isinstance(value, bool):
                return float(value)
            return None
        case ast.BinOp(left=left, op=ast.Sub(), right=ast.Constant(value=1)):
            more = _value_of(left, around)
            return None if more is None else more - 1
        case ast.Subscript(value=ast.Attribute(attr="shape")) | ast.Call(func=ast.Name(id="len")):
            return _evaluated(part, around)
    return None


def _evaluated(part: ast.expr, around: Surroundings) -> float | None:
    names = {**around.values, "len": len, "__builtins__": {}}
    with suppress(Exception):  # whatever it raises, it is not a number of elements
        if execute(ast.Assign([ast.Name("part", ast.Store())], part), names, "<part>") is None:
            return float(names["part"])
    return None


def _scales(part: ast.expr, around: Surroundings) -> Changes:
    if isinstance(part, ast.Constant):
        return
    for size in sorted(around.sizes):
        if size > 1:
            yield (
                SCALE,
                f"{ast.unparse(part)} has to be divided by {size}",
                ast.BinOp(part, ast.Div(), ast.Constant(size)),
            )
    for size in sorted(around.sizes):
        if size > 1:
            words = f"{ast.unparse(part)} has to be multiplied by {size}"
            yield EXTRA_SCALE, words, ast.BinOp(part, ast.Mult(), ast.Constant(size))
    for size in sorted(around.sizes):
        for top, bottom in ((size, size - 1), (size - 1, size)) * (size > 2):
            words = f"{ast.unparse(part)} has to be multiplied by {top}/{bottom}"
            yield N_MINUS_1, words, ast.BinOp(part, ast.Mult(), ast.Constant(top / bottom))


_OPPOSITE = {ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}


def _masks(part: ast.expr, _around: Surroundings) -> Changes:
    if isinstance(part, ast.Compare) and len(part.ops) == 1:
        new = ast.Compare(part.left, [_OPPOSITE.get(type(part.ops[0]), ast.Eq)()], part.comparators)
        yield MASK, f"{ast.unparse(new)} instead of {ast.unparse(part)}", new


def _constants(part: ast.expr, _around: Surroundings) -> Changes:
    if not isinstance(part, ast.Constant) or isinstance(part.value, bool) or not isinstance(part.value, int | float):
        return
    value = part.value
    for other in (value + 1, value - 1, 2 * value, value / 2, -value, value + 0.5, value - 0.5, value + 2, value - 2):
        if other != value:
            yield CONSTANT, f"{other:g} instead of {value:g}", _number(other)


def _variables(part: ast.expr, around: Surroundings) -> Changes:
    if not isinstance(part, ast.Name):
        return
    mine = around.values.get(part.id, around.gradients.get(part.id))
    pool = around.gradients if part.id in around.gradients else around.values
    for name, value in pool.items():
        if name != part.id and np.shape(value) == np.shape(mine) and not callable(value):
            yield VARIABLE, f"{name} instead of {part.id}", ast.Name(name, ast.Load())
    for name, value in pool.items():
        if name != part.id and np.shape(value) != np.shape(mine) and isinstance(value, np.ndarray):
            yield VARIABLE, f"{name} instead of {part.id}", ast.Name(name, ast.Load())


def _chain(part: ast.expr) -> list[tuple[ast.operator | None, ast.expr]]:
    """Return the factors of a product, each with its operator: a * b / c."""
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult | ast.Div):
        return [*_chain(part.left), (part.op, part.right)]
    return [(None, part)]


def _two_fewer(part: ast.expr) -> Changes:
    """Leave out two neighbouring factors: a sigmoid slope, p * (1 - p), that is already present."""
    chain = _chain(part)
    for at in range(1, len(chain) - 1):
        rest = chain[0][1]
        for op, factor in chain[1:at] + chain[at + 2 :]:
            rest = ast.BinOp(rest, op or ast.Mult(), factor)
        if all(isinstance(op, ast.Mult) for op, _ in chain[at : at + 2]):
            gone = ast.unparse(ast.BinOp(chain[at][1], ast.Mult(), chain[at + 1][1]))
            yield EXTRA_FACTOR, f"{ast.unparse(rest)} without the factors {gone}", rest


def _factors(part: ast.expr, around: Surroundings) -> Changes:
    yield from _two_fewer(part)
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult | ast.Div):
        yield EXTRA_FACTOR, f"{ast.unparse(part.left)} alone instead of {ast.unparse(part)}", part.left
        if isinstance(part.op, ast.Mult):
            yield EXTRA_FACTOR, f"{ast.unparse(part.right)} alone instead of {ast.unparse(part)}", part.right
            swapped = ast.BinOp(part.left, ast.Div(), part.right)
        else:
            swapped = ast.BinOp(part.left, ast.Mult(), part.right)
        yield FACTOR, f"{ast.unparse(swapped)} instead of {ast.unparse(part)}", swapped
    if isinstance(part, ast.Constant):
        return
    for name, value in around.values.items():
        if not isinstance(value, np.ndarray | float | np.floating) or np.asarray(value).dtype.kind not in "fV":
            continue
        yield from _with_factor(part, ast.Name(name, ast.Load()))


def _with_factor(part: ast.expr, factor: ast.expr) -> Changes:
    square = ast.BinOp(factor, ast.Pow(), ast.Constant(2))
    one = ast.Constant(1)
    for extra in (factor, square, ast.BinOp(one, ast.Sub(), square), ast.BinOp(one, ast.Sub(), factor)):
        yield (
            FACTOR,
            f"{ast.unparse(part)} has to be multiplied by {ast.unparse(extra)}",
            ast.BinOp(part, ast.Mult(), extra),
        )
    for extra in (factor, square):
        yield (
            FACTOR,
            f"{ast.unparse(part)} has to be divided by {ast.unparse(extra)}",
            ast.BinOp(part, ast.Div(), extra),
        )
