"""Suspects about models: layers and their order, activations, shapes, normalisation and dropout."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.actors import sees_one, setting
from glassgrad.doctor.reading.names import named
from glassgrad.doctor.reading.nodes import is_op, method_of, object_of, target_text, within, without
from glassgrad.doctor.reading.program import Class, Function, Program, argument, constant, number
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import look_at, operations, suspects, suspects_each, suspects_rows
from glassgrad.doctor.reading.suspects.lookup import source, stem_of, text
from glassgrad.doctor.reading.suspects.models.layers import (
    BENDS,
    MATRICES,
    NORMALISING,
    REDUCING,
    RESTING,
    applied,
    axes,
    feeds_layer,
    forwards,
    in_forward,
    last_op,
    models_called,
    plain,
    rows,
)
from glassgrad.doctor.reading.values import ELEMENTWISE, Loss, axis_of, layer, library_name, losses, op, returns

_CUTS = named("relu relu6 leakyrelu gelu elu silu prelu")
_SIGNED = re.compile(
    r"^(mu|mean|loc|log_?(var|std|sigma|scale)|delta|offsets?|velocity|advantage|value|q(_?values?)?)$"
)
_STACKED = re.compile(r"stack|\[|experts|heads")
_MAY_END = re.compile(r"sigma|std|var|eps|temp|scale|weight|mask|score|step|len|idx|index|norm|dist", re.IGNORECASE)


# --- what the model ends in ---


@suspects("rectifier behind the last layer")
def _cut_output(program: Program) -> Iterator[Spot]:
    seen = set()
    for call in models_called(program):
        name, node = last_op(program, call) or ("", call)
        if name in _CUTS and node not in seen and not feeds_layer(program, call):
            seen.add(node)
            yield look_at(node)


@suspects_each("bounded output of a regression", losses)
def _bounded_output(program: Program, one: Loss) -> object:
    name, node = last_op(program, one.input) or ("", one.input)
    odd = one.kind in ELEMENTWISE and name in {"sigmoid", "tanh", "hardtanh", "hardsigmoid", "softmax"}
    return odd and look_at(node)


@suspects_each("normalised output", models_called)
def _normalised_output(program: Program, call: ast.Call) -> object:
    name, node = last_op(program, call) or ("", call)
    sometimes = any(isinstance(one, ast.If) for one in program.outward(node))  # as behind all layers but the last
    return (name in NORMALISING - {"layernorm"} or name.startswith("dropout")) and not sometimes and look_at(node)


@suspects("one output for several classes")
def _one_output(program: Program) -> Iterator[Spot]:
    """Find a softmax or a cross entropy of a layer with one output."""
    given = [(one.call, one.input) for one in losses(program) if one.kind in {"cross_entropy", "nll_loss"}]
    for call in program.calls:
        name, operand = applied(program, call)
        if name in {"softmax", "logsoftmax"} and operand is not None and axes(program, call) == (-1,):
            given.append((call, operand))
    for call, operand in given:
        name, made = last_op(program, operand) or ("", operand)
        found = layer(program, made.func if isinstance(made, ast.Call) and not library_name(program, made) else made)
        if name == "linear" and found is not None and number(argument(found.call, "out_features", 1)) == 1:
            yield look_at(found.call, call)


@suspects_each("signed quantity behind a rectifier", ast.stmt)
def _signed(program: Program, node: ast.stmt) -> object:
    """Find `mu = F.relu(self.mu(h))`, or such an op around a layer with such a name."""
    value = node.value if isinstance(node, ast.Assign | ast.Return) else None
    name, operand = applied(program, value) if value is not None else ("", None)
    known = name in {"relu", "leakyrelu", "softplus", "sigmoid", "gelu"}
    if not known or operand is None or value is None or feeds_layer(program, value):
        return False
    target = target_text(node)
    inner = operand.func.attr if isinstance(operand, ast.Call) and isinstance(operand.func, ast.Attribute) else ""
    inner = re.sub(r"^(fc|to|linear|lin)_|_(head|layer|fc|net|out|linear)$", "", inner)
    return (_SIGNED.match(target) or _SIGNED.match(inner)) and look_at(node, name=target or inner)


@suspects_each("output clamped", in_forward)
def _clamped(program: Program, call: ast.Call) -> Iterator[Spot]:
    name, operand = applied(program, call)
    around = text(program.statement(call))
    low, high = (argument(call, one) or _after(program, call, place) for one, place in (("min", 0), ("max", 1)))
    if name in {"clamp", "clip", "hardtanh"} and operand is not None and not _MAY_END.search(around):
        both = low is not None and high is not None
        if both and (isinstance(program.statement(call), ast.Return) or feeds_layer(program, call)):
            yield look_at(call)


def _after(program: Program, call: ast.Call, place: int) -> ast.expr | None:
    """Return a positional argument behind the operand of an op."""
    at = place + (1 if program.names.full(call.func) else 0)
    return call.args[at] if len(call.args) > at else None


# --- activations ---


@suspects("activation behind an activation")
def _twice(program: Program) -> Iterator[Spot]:
    ends = BENDS | {"softmax", "logsoftmax"}
    for call in program.calls:
        name, operand = applied(program, call)
        inner = applied(program, operand)[0] if operand is not None else ""
        if name in ends and _doubles(inner, name):
            yield spot(call, first=inner, second=name)
    for row in rows(program):
        several = {name for name, _ in row}  # one kind: a list from which each layer takes its own
        for (first, _), (second, made) in itertools.pairwise(row):
            if second in ends and _doubles(first, second) and len(several) > 1:
                yield spot(made, first=first, second=second)


def _doubles(first: str, second: str) -> bool:
    attention = second == "softmax" and first in {"tanh", "leakyrelu"}
    squares = first in {"sin", "softplus", "logsigmoid"} or second in {"sin", "softplus", "logsoftmax", "logsigmoid"}
    return first in BENDS | {"softmax"} and not attention and not squares


@suspects("saturating activations in hidden layers")
def _saturates(program: Program) -> Iterator[Spot]:
    """Find sigmoids, or a softmax, whose result goes into another layer."""
    for row in rows(program):
        found = [made for (name, made), (after, _) in itertools.pairwise(row) if _flat(name) and after in MATRICES]
        yield from (look_at(node) for node in found)
    for call in in_forward(program):
        name, operand = applied(program, call)
        weighed = operand is not None and applied(program, operand)[0] in MATRICES | NORMALISING
        if _flat(name) and weighed and feeds_layer(program, call):
            yield look_at(call)


def _flat(name: str) -> bool:
    return name in {"sigmoid", "softmax", "hardsigmoid", "softsign"}


@suspects("layers without an activation between them")
def _straight(program: Program) -> Iterator[Spot]:
    for row in rows(program):
        kept = [(name, made) for name, made in row if name not in RESTING]
        for (first, one), (second, made) in itertools.pairwise(kept):
            if first in MATRICES and second in MATRICES and not _is_split(program, one, made):
                yield spot(made, first=shown(one, 40), second=shown(made, 40))
    for call in in_forward(program):
        before = _through_rest(program, call.args[0]) if len(call.args) == 1 else None
        both = before is not None and {applied(program, call)[0], applied(program, before)[0]} <= MATRICES
        if before is not None and both and not _is_split(program, before.func, call.func):
            yield spot(call, first=shown(before.func), second=shown(call.func))


def _through_rest(program: Program, node: ast.expr, depth: int = 0) -> ast.Call | None:
    """Return the call that makes a value, seen through normalisation, dropout and the statement before."""
    if isinstance(node, ast.Name):
        node = program.value_of(node) or node
    name, operand = applied(program, node)
    if name in RESTING and operand is not None and depth < 4:
        return _through_rest(program, operand, depth + 1)
    return node if isinstance(node, ast.Call) else None


def _is_split(program: Program, first: ast.expr, second: ast.expr) -> bool:
    """Tell whether two layers are parts of one map: a depthwise convolution, a resampling, a narrow middle."""
    found = [layer(program, one) for one in (first, second)]
    if None in found or any(one is not None and argument(one.call, "groups", 6) is not None for one in found):
        return True
    middle = number(argument(found[0].call, "out_features", 1)) if found[0] is not None else None
    wide = number(argument(found[0].call, "in_features", 0)) if found[0] is not None else None
    after = number(argument(found[1].call, "out_features", 1)) if found[1] is not None else None
    return middle is not None and wide is not None and after is not None and middle < min(wide, after)


# --- axes and shapes ---


@suspects("batch flattened into one row")
def _flattened(program: Program) -> Iterator[Spot]:
    for call in in_forward(program):
        name, operand = applied(program, call)
        given = _after(program, call, 0)
        whole = name == "flatten" and (given is None or constant(given) == 0) and not call.keywords
        whole |= name in {"view", "reshape"} and constant(given) == -1 and len(call.args) == 1
        if whole and operand is not None and layer(program, call.func) is None and feeds_layer(program, call):
            yield look_at(call)
    for call in program.calls:
        if library_name(program, call) == "Flatten" and constant(argument(call, "start_dim", 0)) == 0:
            yield look_at(call)


@suspects_each("squeeze of every axis", in_forward)
def _squeezed(program: Program, call: ast.Call) -> object:
    name, operand = applied(program, call)
    whole = name == "squeeze" and _after(program, call, 0) is None and not call.keywords
    return whole and operand is not None and look_at(call, operand=shown(operand, 30))


@suspects("reduced over the batch")
def _over_batch(program: Program) -> Iterator[Spot]:
    for call in in_forward(program):
        name, operand = applied(program, call)
        if name in REDUCING | {"cosinesimilarity", "argmax"} and axes(program, call) == (0,) and operand is not None:
            held = program.value_of(operand)
            said = text(operand) + (text(held))
            one = sees_one(program, program.owner(call)) or "edge_index" in source(program)  # nodes of one graph
            if not _STACKED.search(said) and layer(program, call.func) is None and not one:
                yield look_at(call)
    for call in program.calls:
        if library_name(program, call) in {"Softmax", "LogSoftmax"} and axes(program, call) == (0,):
            yield look_at(call)


@suspects_each("joined along the batch", in_forward)
def _joined(program: Program, call: ast.Call) -> object:
    name, operand = applied(program, call)
    first = name in {"cat", "concat", "concatenate"} and axes(program, call) in {(), (0,)}
    return first and isinstance(operand, ast.List | ast.Tuple) and len(operand.elts) > 1


@suspects_each("the same tensor joined twice", ast.Call)
def _same_twice(program: Program, call: ast.Call) -> Iterator[Spot]:
    name, operand = applied(program, call)
    if name in {"cat", "concat", "stack"} and isinstance(operand, ast.List | ast.Tuple):
        given = [text(one) for one in operand.elts if not isinstance(one, ast.Constant)]
        if len(given) == 2 and given[0] == given[1] and isinstance(operand.elts[0], ast.Name | ast.Attribute):
            yield look_at(call)


@suspects_each("view of several axes", ast.Call)
def _views(program: Program, call: ast.Call) -> object:
    """Find `x.view(a, b, c)` with three or more sizes, and no exchange of axes beside it."""
    if program.function(call) is None:
        return False
    name, operand = applied(program, call)
    moved = operand is not None and _moves(operand)
    outer = program.parents.get(call)
    moved |= isinstance(outer, ast.Attribute) and outer.attr in {"transpose", "permute", "mean", "sum", "unbind"}
    grows = operand is not None and applied(program, operand)[0] == "linear"
    return name in {"view", "reshape"} and len(call.args) >= 3 and not moved and not grows


def _moves(node: ast.expr | None) -> bool:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in {"transpose", "permute", "swapaxes", "movedim"}:
            return True
        node = node.func.value
    return False


@suspects_each("map viewed as rows", ast.Call)
def _pixels(program: Program, call: ast.Call) -> object:
    """Find `x.view(-1, C)` of a map (N, C, H, W), whose channels are not its last axis."""
    viewed = object_of(call) if method_of(call) in {"view", "reshape"} else None
    if viewed is None or len(call.args) != 2 or constant(call.args[0]) != -1:
        return False
    operand, size = without(viewed, "contiguous"), call.args[1]
    bound = program.bound(size)
    shape = bound.value if bound is not None and bound.item == 1 else None
    wide = isinstance(bound.statement, ast.Assign) and getattr(bound.statement.targets[0], "elts", []) if bound else []
    channels = shape is not None and len(wide or []) > 2 and re.search(r"shape$|size\(\)$", text(shape))
    said = program.value_of(size) or size
    sized = isinstance(operand, ast.Name) and re.match(rf"{operand.id}\.(size\(1\)|shape\[1\])$", text(said))
    made = last_op(program, operand)
    held = program.value_of(operand)
    conv = made is not None and made[0].startswith("conv") and not feeds_layer(program, call)
    return (channels or sized or conv) and not _moves(operand) and not _moves(held)


@suspects_each("pooled along an axis", in_forward)
def _pooled(program: Program, call: ast.Call) -> object:
    name, operand = applied(program, call)
    along = axes(program, call)
    kept = isinstance(program.statement(call), ast.Return | ast.Assign) and layer(program, call.func) is None
    return name in {"mean", "amax", "max", "sum"} and along and 0 not in along and operand is not None and kept


@suspects_rows("part of the result returned", forwards)
def _returns_part(program: Program, _: Class, forward: Function) -> Iterator[Spot]:
    """Find `return x[0]` and `return x[:, 0]` in a forward pass."""
    for node in returns(program, forward):
        value = node.value
        while isinstance(value, ast.Call) and len(value.args) == 1:
            value = value.args[0]
        parts = value.slice.elts if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Tuple) else []
        parts = parts or ([value.slice] if isinstance(value, ast.Subscript) else [])
        if any(isinstance(constant(one), int) for one in parts):
            yield look_at(node)


@suspects_each("width and height exchanged", ast.Call)
def _turned(program: Program, call: ast.Call) -> object:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    orders = [constant(one) for given in call.args for one in getattr(given, "elts", [given])]
    return name in {"permute", "transpose"} and orders[-4:] in ([2, 1, 0], [0, 3, 2, 1])


@suspects_each("convolution along the features", in_forward)
def _along_features(program: Program, call: ast.Call) -> object:
    """Find a convolution of one axis on the vectors of an embedding or the outputs of a recurrent layer."""
    given = call.args[0] if len(call.args) == 1 else None
    if applied(program, call)[0] not in {"conv1d", "maxpool1d", "avgpool1d", "adaptiveavgpool1d"} or given is None:
        return False
    made = _through_rest(program, given)
    found = layer(program, made.func) if made is not None else None
    odd = found is not None and found.name in {"Embedding", "LSTM", "GRU", "TransformerEncoder", "LayerNorm"}
    return odd and look_at(call, source=shown(made.func) if made is not None else "")


@suspects_each("stride beyond the kernel", ast.Call)
def _skips(program: Program, call: ast.Call) -> Iterator[Spot]:
    name = plain(library_name(program, call))
    at = 2 if name.startswith("conv") else 0
    if name.startswith(("conv", "max", "avg")):
        size, stride = (setting(program, argument(call, *one)) for one in (("kernel_size", at), ("stride", at + 1)))
        if size is not None and stride is not None and 1 < size < stride:
            yield look_at(call)


@suspects_each("causal convolution padded on both sides", Program.modules)
def _sees_ahead(program: Program, owner: Class) -> Iterator[Spot]:
    if not re.search("causal|tcn|temporal|wavenet", owner.node.name, re.IGNORECASE):
        return
    said = text(owner.node)
    cuts = re.search(r"\[[^\]]*:\s*-|\[[^\]]*: ?\w+\.(size|shape)|chomp|F\.pad|ConstantPad|narrow", said, re.IGNORECASE)
    for call in within(owner.node, ast.Call):
        if applied(program, call)[0] == "pad" and re.search(r"[\(\[]0, ", text(call.args[-1])):
            yield look_at(call)
        pads = argument(call, "padding", 4) if library_name(program, call) == "Conv1d" else None
        if pads is not None and constant(pads) != 0 and (not cuts or "// 2" in text(pads)):
            yield look_at(call)


_BOXES = re.compile(r"box|bb|xy|cent|ctr|corner|anchor|prior|coord|lt$|rb$|wh$", re.IGNORECASE)


@suspects_each("one coordinate for two", operations(ast.Add | ast.Sub))
def _one_for_two(program: Program, node: ast.BinOp) -> Iterator[Spot]:
    """Find `centre[:, :1] - size[:, 2:4] / 2`, where one column of a box meets two."""
    sides = [[one for one in ast.walk(side) if _columns(one)] for side in (node.left, node.right)]
    for mine, others in (sides, sides[::-1]):
        two = [one for one in others if _columns(one) == 2]
        if len(mine) == 1 == len(others) and two and _columns(mine[0]) == 1:
            named = [stem_of(one) for one in (mine[0], two[0])]
            if any(map(_BOXES.search, named)):
                yield look_at(node, one=shown(mine[0], 30))


def _columns(node: ast.AST) -> int:
    """Return the number of columns that a slice of the last axis keeps; 0 for others."""
    parts = node.slice.elts if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) else []
    last = parts[-1] if len(parts) > 1 else None
    if not isinstance(last, ast.Slice) or last.step is not None or last.upper is None:
        return 0
    begin, end = number(last.lower) if last.lower is not None else 0.0, number(last.upper)
    return int(end - begin) if begin is not None and end is not None and begin >= 0 and end > begin else 0


@suspects_each("sum over the axis that was put in", ast.Call)
def _over_new_axis(program: Program, call: ast.Call) -> object:
    """Find `(user.unsqueeze(1) * items).sum(1)`, which is the user times a sum of all items."""
    name, inner = op(program, call)
    place = 1 if program.names.full(call.func) else 0
    along = number(argument(call, "dim", place) or argument(call, "axis", place))
    given: list[ast.expr] = []
    if name == "sum" and is_op(inner, ast.Mult):
        given = [inner.left, inner.right]
    elif name == "sum" and isinstance(inner, ast.Call) and op(program, inner)[0] in {"mul", "multiply"}:
        _, first = op(program, inner)
        given = [first, *inner.args[-1:]] if first is not None else []
    new = [_new_axis(program, one) for one in given]
    odd = along is not None and new.count(None) == 1 and along in new
    return odd and look_at(call, one=shown(given[new.index(along)], 30))


def _new_axis(program: Program, node: ast.expr) -> float | None:
    """Return the axis that `x.unsqueeze(axis)` puts in, also under a name."""
    value = program.written(node)
    name, inner = op(program, value) if isinstance(value, ast.Call) else ("", None)
    if name != "unsqueeze" or not isinstance(value, ast.Call) or inner is None:
        return None
    return number(axis_of(program, value))
