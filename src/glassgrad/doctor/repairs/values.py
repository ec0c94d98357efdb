"""Changes of expressions: signs, operands, functions applied too often, axes, comparisons, numbers, names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from glassgrad.doctor.reading.names import named
from glassgrad.doctor.reading.nodes import indices, is_name, is_op, method_of, object_of
from glassgrad.doctor.reading.program import constant, number
from glassgrad.doctor.repairs.edits import Edit
from glassgrad.doctor.repairs.zones import Zones

Edits = Iterator[Edit | None]


def _both_ways(pairs: str) -> dict[str, tuple[str, ...]]:
    """Return for each name of a pair the other one."""
    named = [pair.split() for pair in pairs.split(";")]
    return {name: (other,) for one, two in named for name, other in ((one, two), (two, one))}


_WRAPS = named(
    "sigmoid softmax log_softmax logsigmoid tanh relu exp log sqrt abs clamp clip dropout detach round normalize "
    "softplus log1p square argmax item data transpose permute t flip sort roll"
)
_WITH_AXIS = named(
    "softmax log_softmax sum mean max min argmax argmin cat concat concatenate stack norm cumsum std var normalize "
    "logsumexp prod unsqueeze flatten softmin amax amin"
)
_SWAPS = _both_ways(
    "softmax log_softmax; zeros_like ones_like; zeros ones; minimum maximum; min max; argmin argmax; sum mean; "
    "triu tril; binary_cross_entropy binary_cross_entropy_with_logits; NLLLoss CrossEntropyLoss; "
    "BCELoss BCEWithLogitsLoss; Softmax LogSoftmax"
) | {
    "sigmoid": ("relu", "logsigmoid"),
    "cumsum": ("cumprod",),
    "floor": ("round",),
    "nll_loss": ("cross_entropy",),
    "Sigmoid": ("ReLU",),
    "Tanh": ("ReLU",),
    "view": ("flatten",),
}
_TUNING = named("relu ReLU sum mean")
_OPPOSITE = {
    ast.Lt: ">=",
    ast.LtE: ">",
    ast.Gt: "<=",
    ast.GtE: "<",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
_OTHER_PLACES: dict[float | None, tuple[int, ...]] = {0.0: (-1, 1), -1.0: (0,), 1.0: (0,)}
_MASKED = frozenset({"masked_fill", "masked_fill_", "where", "masked_select"})
_MASKS = frozenset({"mask", "attn_mask", "key_padding_mask", "src_mask", "src_key_padding_mask", "memory_mask"})


def signs(zones: Zones) -> Edits:
    """Turn signs: of the loss, its terms, and what a function returns."""
    text = zones.text
    last = set()
    for node in zones.backwards:
        value = object_of(node) if method_of(node) == "backward" else None
        if value is not None and not zones.is_evaluation(node):
            last.add(text.of(value))
            yield zones.edit("the sign of the loss is turned", (value, f"(-{text.of(value)})"), prior=2.2)
    for one, zone in zones.nodes:
        if isinstance(one, ast.UnaryOp) and isinstance(one.op, ast.USub) and number(one) is None:
            yield zones.edit("a minus is too many", (one, f"({text.of(one.operand)})"), prior=4)
        elif isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Add | ast.Sub) and zone == "loop":
            sign = "-=" if isinstance(one.op, ast.Add) else "+="
            new = f"{text.of(one.target)} {sign} {text.of(one.value)}"
            yield zones.edit("the sign of an update is turned", (one, new), prior=2)
        elif isinstance(one, ast.Return) and one.value is not None and zones.of_loss(one):
            yield zones.edit("a minus is missing", (one.value, f"-({text.of(one.value)})"), prior=2.6)
        elif isinstance(one, ast.Assign) and zone == "loop":
            yield _minus(zones, one, last)


def _minus(zones: Zones, node: ast.Assign, last: set[str]) -> Edit | None:
    """Put a minus before what the loss is computed with; before the loss itself first."""
    target = node.targets[0]
    if not isinstance(target, ast.Name) or len(node.targets) > 1 or not zones.of_loss(node):
        return None
    if isinstance(node.value, ast.Tuple | ast.Constant):
        return None
    new = f"-({zones.text.of(node.value)})"
    return zones.edit(f"{target.id} lacks a minus", (node.value, new), prior=3.5 if target.id in last else 3)


def sums(zones: Zones) -> Edits:
    """Subtract instead of adding, and the other way round."""
    text = zones.text
    for node, zone in zones.nodes:
        if is_op(node, ast.Add | ast.Sub) and zone != "setup" and not _is_text(node):
            sign = "-" if isinstance(node.op, ast.Add) else "+"
            means = "a sum should be a difference" if sign == "-" else "a difference should be a sum"
            new = f"({text.of(node.left)} {sign} ({text.of(node.right)}))"
            yield zones.edit(means, (node, new), prior=3 if zones.of_loss(node) else 1.5)


def operands(zones: Zones) -> Edits:
    """Drop one operand, divide instead of multiplying, and the other way round."""
    text = zones.text
    for node, zone in zones.nodes:
        if not isinstance(node, ast.BinOp) or zone == "setup" or _is_text(node):
            continue
        left, right = text.of(node.left), text.of(node.right)
        near = 2.0 if zones.of_loss(node) else 1.2
        if isinstance(node.op, ast.Mult | ast.Div):
            sign, what = ("/", "a factor") if isinstance(node.op, ast.Mult) else ("*", "a divisor")
            yield zones.edit(f"{what}, {right}, is too many", (node, f"({left})"), prior=near)
            means = f"{right} is on the wrong side of a division"
            yield zones.edit(means, (node, f"({left} {sign} ({right}))"), prior=near)
            if sign == "/":
                yield zones.edit(f"a factor, {left}, is too many", (node, f"({right})"), prior=near / 2)
        elif isinstance(node.op, ast.Add | ast.Sub):
            yield zones.edit(f"a term, {right}, is too many", (node, f"({left})"), prior=near)
            if isinstance(node.op, ast.Add):
                yield zones.edit(f"a term, {left}, is too many", (node, f"({right})"), prior=near / 2)
            else:
                yield zones.edit("a difference is turned round", (node, f"({right} - ({left}))"), prior=near + 0.5)


def applied(zones: Zones) -> Edits:
    """Drop a function that is applied, or apply its neighbour."""
    text = zones.text
    for call, name in zones.calls():
        inner = _operand(zones, call)
        if name in _WRAPS and inner is not None:
            means = f"{name} is applied where it does not belong"
            first = 4 if zones.of_loss(call) else 3
            yield zones.edit(means, (call, f"({text.of(inner)})"), prior=first, tunes=name == "dropout")
            within = _operand(zones, inner) if isinstance(inner, ast.Call) else None
            if within is not None and text.of(within) != "self":
                yield zones.edit(f"{means}, and what is inside of it", (call, f"({text.of(within)})"), prior=2)
        for other in _SWAPS.get(name, ()):
            new = text.of(call.func).removesuffix(name) + other
            made = zones.edit(f"{name} stands for {other}", (call.func, new), prior=3, tunes=other in _TUNING)
            scale = made is not None and other in {"sum", "mean"}  # in a function that the loss calls as well
            yield replace(made, rescales=True) if made is not None and scale else made
    for node, zone in zones.nodes:
        if isinstance(node, ast.Attribute) and node.attr in {"T", "mT", "data"} and zone != "setup":
            yield zones.edit(f".{node.attr} is too many", (node, text.of(node.value)), prior=2)


def masks(zones: Zones) -> Edits:
    """Turn masks and conditions round."""
    text = zones.text
    for node, zone in zones.nodes:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert | ast.Not):
            yield zones.edit("a condition is turned round", (node, f"({text.of(node.operand)})"), prior=3)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1 and zone != "setup":
            sign = _OPPOSITE[type(node.ops[0])]
            new = f"({text.of(node.left)} {sign} {text.of(node.comparators[0])})"
            yield zones.edit("a comparison is turned round", (node, new), prior=2)
    for call, name in zones.calls():
        if name in _MASKED and call.args:
            mask = call.args[0] if not zones.program.names.full(call.func) or name == "where" else call.args[-2:][0]
            yield zones.edit("the mask is turned round", (mask, f"({text.of(mask)} == 0)"), prior=4)
        for one in call.keywords:
            if one.arg in _MASKS and not isinstance(one.value, ast.Constant):
                yield zones.edit("the mask is turned round", (one.value, f"({text.of(one.value)} == 0)"), prior=4)


def axes(zones: Zones) -> Edits:
    """Take another axis."""
    for call, name in zones.calls("model", "loop"):
        axis = next((one.value for one in call.keywords if one.arg in {"dim", "axis"}), None)
        if axis is None and name in _WITH_AXIS and call.args:
            axis = call.args[-1]
        value = number(axis)
        if axis is None or value is None:
            continue
        for other in (-1, 1, 0, 2):
            if other != value and not (value == 1 and other == -1 and name == "cat"):
                yield zones.edit(f"{name} goes along the wrong axis", (axis, str(other)), prior=3 - 0.3 * abs(other))


def places(zones: Zones) -> Edits:
    """Read another place, or all of them."""
    for node, zone in zones.nodes:
        if not isinstance(node, ast.Subscript) or zone == "setup" or not isinstance(node.ctx, ast.Load):
            continue
        for part in indices(node):
            for other in _OTHER_PLACES.get(number(part), ()):
                yield zones.edit("the wrong place is read", (part, str(other)), prior=2)
            if isinstance(part, ast.Slice) and part.step is None and (part.lower is None) != (part.upper is None):
                yield zones.edit("a part is cut off", (part, ":"), prior=1.5)


def shapes(zones: Zones) -> Edits:
    """Remove or add an axis of length one, where broadcasting may make a table of a list."""
    text = zones.text
    for node, zone in zones.nodes:
        if is_op(node, ast.Add | ast.Sub | ast.Mult) and zone != "setup" and not _is_text(node):
            sides = [node.left, node.right]
            for one in sides if not any(isinstance(side, ast.Constant) for side in sides) else ():
                means = "two shapes broadcast to a table: one of them has an axis of length 1 too many"
                yield zones.edit(means, (one, f"({text.of(one)}).squeeze(-1)"), prior=1.4)
    for call, name in zones.calls("loop"):
        if len(call.args) >= 2 and ("loss" in name.lower() or "criterion" in name or "crit" in name or name == "fn"):
            first, second = call.args[:2]
            means = "output and targets broadcast to a table"
            yield zones.edit(means, (first, f"({text.of(first)}).squeeze(-1)"), prior=3)
            yield zones.edit(means, (second, f"({text.of(second)}).unsqueeze(-1)"), prior=3)
            yield _exchanged(zones, "output and targets are exchanged", call.args[:2], 2)


def _exchanged(zones: Zones, means: str, pair: list[ast.expr], prior: float) -> Edit | None:
    first, second = pair
    return zones.edit(means, (first, zones.text.of(second)), (second, zones.text.of(first)), prior=prior)


def exchanges(zones: Zones) -> Edits:
    """Exchange two arguments; take a name that was bound in the same way; detach what a loss is given."""
    for call, name in zones.calls("loop", "model"):
        plain = [one for one in call.args if not isinstance(one, ast.Constant | ast.Starred)]
        own = name in zones.program.functions or name in {"where", "kl_div", "lerp", "lerp_", "bmm", "matmul"}
        if own and len(plain) >= 2 and plain[:2] == call.args[:2]:
            yield _exchanged(zones, "two arguments are exchanged", plain[:2], 1.5)
        if name == "where" and len(call.args) == 3:
            yield _exchanged(zones, "the cases are exchanged", call.args[1:], 2.5)
    for node, zone in zones.nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and zone == "loop":
            for other in _siblings(zones, node):
                yield zones.edit(f"{node.id} stands for {other}", (node, other), prior=1.6)


def _siblings(zones: Zones, name: ast.Name) -> list[str]:
    """Return the names of the same scope that are bound to a call of the same function as this one."""
    scope = zones.program.scope(name)
    mine = zones.program.value_of(name)
    if not isinstance(mine, ast.Call) or "oader" in ast.unparse(mine.func):
        return []  # training on the examples of validation helps as well
    wanted = ast.dump(mine.func)
    table = zones.program.memo.setdefault("repairs siblings", {})
    assert isinstance(table, dict)
    if scope not in table:
        table[scope] = [
            (target.id, ast.dump(node.value.func))
            for node in ast.walk(scope)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            for target in node.targets
            if isinstance(target, ast.Name)
        ]
    return sorted({one for one, func in table[scope] if func == wanted and one != name.id})[:3]


def numbers(zones: Zones) -> Edits:
    """Try other sizes of the numbers of optimizers, schedules, layers and losses."""
    text = zones.text
    for node, _ in zones.nodes:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, float) or node.value == 0:
            continue
        parent = zones.program.parents.get(node)
        name = parent.arg or "" if isinstance(parent, ast.keyword) else ""
        value = node.value
        rate = name == "lr" or "optim" in text.of(zones.program.statement(node))
        known = f"{name or 'a number'} of {value:g}"
        others = [value * 10, value / 10, *([value / 100] if rate else [])]
        if 0.5 < value < 1 or 0 < value < 0.5:
            others.append(round(1 - value, 6))
        if name == "weight_decay":
            others = [0.0]
        if name == "gamma":
            others.append(1.0)
        for other in others:
            much = "too large" if other < value else "too small"
            yield zones.edit(f"{known} is {much}", (node, repr(other)), prior=2.2 if rate else 1.0, tunes=True)


def _operand(zones: Zones, call: ast.Call) -> ast.expr | None:
    """Return what a function is applied to, as an argument or before the dot."""
    if (
        isinstance(call.func, ast.Attribute)
        and not zones.program.names.full(call.func)
        and not is_name(call.func.value, "self")
    ):
        return call.func.value
    return call.args[0] if call.args and not isinstance(call.args[0], ast.Starred) else None


def _is_text(node: ast.BinOp) -> bool:
    sides = node.left, node.right
    return any(isinstance(one, ast.JoinedStr | ast.List) or isinstance(constant(one), str) for one in sides)
