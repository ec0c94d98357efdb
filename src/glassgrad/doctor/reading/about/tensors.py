"""Rules about tensors: how they are made, reshaped and cut off the graph, and formulas that lose precision."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Sequence

from glassgrad.doctor.reading.about.learning import cut_layers, cut_terms
from glassgrad.doctor.reading.bindings import stored
from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.gradients import reach
from glassgrad.doctor.reading.iterations import Event, trainings
from glassgrad.doctor.reading.names import last, named
from glassgrad.doctor.reading.nodes import (
    both_ways,
    elements,
    factors_of,
    has_attribute,
    ident,
    indices,
    is_name,
    is_op,
    method_of,
    names_in,
    object_of,
    of_self,
    target_of,
    target_text,
    within,
)
from glassgrad.doctor.reading.program import DEEPEST, Program, argument, constant, is_given
from glassgrad.doctor.reading.ranks import shape
from glassgrad.doctor.reading.rule import Spot, reads, rules_of, shown, spot
from glassgrad.doctor.reading.values import RECURRENT, inside, layer, library_layer, library_name, loss, op

_SPATIAL = frozenset({"Conv1d", "Conv2d", "Conv3d", "MaxPool1d", "MaxPool2d", "AvgPool2d", "AdaptiveAvgPool2d"})
_DRAWS = frozenset({"randn", "rand", "randn_like", "rand_like"})
_DROPOUTS = named("dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout")


@reads("Tensor made by its class")
def _tensor_class(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        outer = program.parents.get(call)
        weights = library_name(program, outer) == "Parameter"
        weights |= isinstance(outer, ast.Attribute) and outer.attr.endswith("_")  # both are drawn afterwards
        full = program.names.full(call.func)
        if full != "torch.Tensor" or not program.names.is_torch(call.func) or not call.args or weights:
            continue
        what = "makes float32 of any values"
        remedy = f"torch.tensor({shown(call.args[0], 40)})"
        if all(isinstance(constant(one), int) for one in call.args):
            what = "makes a tensor of this shape without setting its numbers"
            remedy = f"torch.empty({', '.join(map(shown, call.args))})"
        yield spot(call, text=shown(call), what=what, remedy=remedy)


@reads("tensor of a tensor")
def _tensor_of_tensor(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        full = program.names.full(call.func)
        if full != "torch.tensor" or not call.args or constant(argument(call, "requires_grad")) is True:
            continue
        given = call.args[0]
        listed = isinstance(given, ast.List | ast.Tuple)
        parts = elements(given) if listed else [given]
        if parts and all(_is_graph(program, one) for one in parts):
            better = f"torch.stack({shown(given, 40)})" if listed else f"{shown(given, 40)}.detach().clone()"
            yield spot(call, text=shown(call), remedy=better)


def _is_graph(program: Program, node: ast.expr | None, depth: int = 0) -> bool:
    """Tell whether a value is a tensor that was computed: the output of a model, or a loss."""
    if isinstance(node, ast.Name):
        return depth < DEEPEST and _is_graph(program, program.value_of(node), depth + 1)
    if not isinstance(node, ast.Call):
        return False
    found = layer(program, node.func)
    return loss(program, node) is not None or (found is not None and found.name[:1].isupper())


@reads("graph grows")
def _accumulated(program: Program) -> Iterator[Spot]:
    for one in trainings(program):
        backward = one.own("backward")
        for node in ast.walk(one.node):
            added = _added(node)
            if added is None:
                continue
            total, value = added
            scope = program.function(node)  # a function called in the loop has its own name for its own loss
            names = {name for event in backward if program.function(event.node) is scope for name in _begun_at(event)}
            name = next((one for one in sorted(names) if _keeps(value, one)), "")
            if name and total not in names and not _used_in_backward(program, total):
                assert isinstance(node, ast.expr | ast.stmt)
                yield spot(node, text=shown(node), remedy=shown(node).replace(name, f"{name}.item()"))


def _added(node: ast.AST) -> tuple[str, ast.expr] | None:
    """Return the text of a total or a list, and what a node adds to it."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        return ast.unparse(node.target), node.value
    for one, other in both_ways(node.value) if isinstance(node, ast.Assign) and is_op(node.value, ast.Add) else ():
        if ast.unparse(one) == target_text(node):
            return target_text(node), other
    held = object_of(node) if method_of(node) == "append" else None
    if held is not None and isinstance(node, ast.Call) and len(node.args) == 1:
        return ast.unparse(held), node.args[0]
    return None


def _begun_at(event: Event) -> set[str]:
    """Return the variables at which a backward pass begins: loss of `scaler.scale(loss).backward()`."""
    call = event.node
    used = names_in(*call.args, call.func) if isinstance(call, ast.Call) else set()
    return {event.receiver, *(name for name in used if "loss" in name.lower())}


def _keeps(node: ast.expr, name: str) -> bool:
    """Tell whether an expression is a loss, or a product with it: not a number taken out of it."""
    if isinstance(node, ast.BinOp):
        return _keeps(node.left, name) or _keeps(node.right, name)
    return is_name(node, name)


def _used_in_backward(program: Program, total: str) -> bool:
    """Tell whether a backward pass begins at a value that is computed from a variable."""
    for call in program.calls_of(".backward"):
        begin = program.source_of(object_of(call))
        parts = [one for node in (call, begin) if node is not None for one in ast.walk(node)]
        if total in {ast.unparse(one) for one in parts if isinstance(one, ast.Name | ast.Attribute)}:
            return True
    return False


@reads("gradient cut in forward")
def _cut_in_forward(program: Program) -> Iterator[Spot]:
    for node in program.every(ast.expr):
        owner = program.owner(node)
        if owner is None or not owner.is_module or not inside(program, node, "forward"):
            continue
        given: ast.expr | None = None
        if isinstance(node, ast.Attribute) and node.attr == "data" and isinstance(node.ctx, ast.Load):
            outer = program.parents.get(node)
            given = None if isinstance(outer, ast.Attribute) and outer.attr.endswith("_") else node.value
        elif isinstance(node, ast.Call) and program.names.full(node.func) in {"torch.tensor", "torch.from_numpy"}:
            given = node.args[0] if node.args else None
        if _is_learnt(program, given):
            yield spot(node, text=shown(node))
    yield from cut_layers(program)


def _is_learnt(program: Program, node: ast.expr | None, depth: int = 0) -> bool:
    """Tell whether a value in `forward` is computed by a layer of the class."""
    if depth > DEEPEST:
        return False
    if isinstance(node, ast.Name):
        return _is_learnt(program, program.value_of(node), depth + 1)
    if isinstance(node, ast.Call):
        if of_self(node.func):
            return layer(program, node.func) is not None
        return _is_learnt(program, object_of(node), depth + 1)
    return isinstance(node, ast.Attribute) and node.attr != "self" and _is_learnt(program, node.value, depth + 1)


@reads("gradient cut in the loss")
def _cut_in_loss(program: Program) -> Iterator[Spot]:
    for one in trainings(program):
        names = {event.receiver for event in one.own("backward")}
        for node in ast.walk(one.node):
            if not isinstance(node, ast.Assign | ast.AugAssign):
                continue
            target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
            parts = factors_of(node.value, ast.Add)
            several = len(parts) > 1 or isinstance(node, ast.AugAssign)
            if not several or ast.unparse(target) not in names:
                continue
            cut = [part for part in parts if _is_cut(part) and not reach(program, part).learns]
            if cut:
                yield spot(cut[0], node, text=shown(cut[0]), why="is a number")
    yield from cut_terms(program)


def _is_cut(node: ast.expr) -> bool:
    """Tell whether a term is a number: its parameters are read as `.data`, or `item()` ends it."""
    ends = [node.left, node.right] if isinstance(node, ast.BinOp) else [node]
    return has_attribute(node, "data") or any(method_of(one) == "item" for one in ends)


@reads("dropout in evaluation too")
def _always_dropout(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        owner = program.owner(call)
        full = program.names.full(call.func)
        if owner is None or not owner.is_module or not full.startswith("torch.nn.functional."):
            continue
        tests = [one.test for one in program.outward(call) if isinstance(one, ast.If | ast.IfExp)]
        if any("training" in ast.unparse(one) for one in tests):
            continue
        meant = re.search(r"mc_?drop|bayes|monte", owner.node.name, re.IGNORECASE)
        always = constant(argument(call, "training", 2)) is True and not meant
        free = not is_given(call, "training", 2) or always
        if last(full) in _DROPOUTS and free and not _is_set_by_mode(program, call):
            yield spot(call, text=shown(call), remedy=f"F.{last(full)}(x, p, training=self.training)")
        elif last(full) == "scaled_dot_product_attention":
            share = argument(call, "dropout_p", 4)
            fixed = isinstance(constant(share), float) and constant(share) != 0.0
            if share is not None and (fixed or ast.unparse(share).startswith("self.")):
                yield spot(call, text=shown(call), remedy=f"dropout_p={shown(share)} if self.training else 0.0")


def _is_set_by_mode(program: Program, call: ast.Call) -> bool:
    """Tell whether a probability was set by the mode before: `p = self.p if self.training else 0`."""
    share = argument(call, "p", 1)
    sets = within(program.function(call), ast.Assign) if share is not None else []
    given = "" if share is None else ast.unparse(share)
    return any(target_text(one) == given and "training" in ast.unparse(one.value) for one in sets)


# --- shapes ---


_TENSORS = frozenset({"tensor", "as_tensor", "LongTensor", "array", "from_numpy"})


@reads("axes mixed by a view")
def _view_for_permute(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        held = object_of(call) if method_of(call) in {"view", "reshape"} and call.args else None
        if held is None:
            continue
        sizes = call.args[0].elts if isinstance(call.args[0], ast.Tuple) else call.args
        yield from _reordered(program, call, held, sizes)
        yield from _states_joined(program, call, held, sizes)
        if _cuts_pairs(program, held, sizes):
            yield spot(call, text=shown(call), remedy=f"{shown(held)}.t()")
        groups = _groups(program, held, sizes)
        order = [axis for one in groups for axis in one]
        if len(sizes) > 1 and sorted(order) == list(range(len(order))) != order and _axes(program, sizes) == len(order):
            whole = "" if len(groups) == len(order) else f".reshape({', '.join(map(shown, sizes))})"
            yield spot(call, text=shown(call), remedy=f"{shown(held)}.permute({', '.join(map(str, order))}){whole}")
        elif order := _rewritten(program, held, sizes):
            yield spot(call, text=shown(call), remedy=f"{shown(held)}.permute({', '.join(map(str, order))})")


def _cuts_pairs(program: Program, held: ast.expr, sizes: list[ast.expr]) -> bool:
    """Tell whether `torch.tensor(rows).view(2, -1)` cuts rows that the script appends as pairs `(i, j)`."""
    made = program.value_of(held) if isinstance(held, ast.Name) else held
    rows = made.args[0] if program.called(made) in _TENSORS and isinstance(made, ast.Call) and made.args else None
    bound = program.bound(rows)
    if rows is None or bound is None or len(sizes) != 2 or constant(sizes[1]) != -1:
        return False
    kept = stored(program, bound, rows)
    return bool(kept) and all(len(elements(one)) == constant(sizes[0]) for one in kept)


def _groups(program: Program, held: ast.expr, sizes: list[ast.expr]) -> list[list[int]]:
    """Return for each size of a view the axes of a tensor whose lengths it multiplies; nothing if one is unknown."""
    found = [[_axis(program, held, part) for part in factors_of(one)] for one in sizes]
    known = [sorted(axis for axis in one if axis is not None) for one in found]
    return known if all(len(one) == len(axes) for one, axes in zip(found, known, strict=True)) else []


def _rewritten(program: Program, held: ast.expr, sizes: list[ast.expr]) -> list[int]:
    """Return the order of the axes where a view takes the written sizes of the view before it in another order."""
    made = program.written(held)
    if not isinstance(made, ast.Call) or method_of(made) not in {"view", "reshape"} or not made.args:
        return []
    first = made.args[0].elts if isinstance(made.args[0], ast.Tuple) else made.args
    before, after = [ast.unparse(one) for one in first], [ast.unparse(one) for one in sizes]
    kept, moved = ([one for one in side if one != "1"] for side in (before, after))
    same = kept == moved or sorted(before) != sorted(after) or len(sizes) < 3  # of two, it may be a row cut anew
    if same or any(_rebound(program, one, made.lineno, sizes[0].lineno) for one in (held, *sizes)):
        return []
    return _order(before, after)


def _states_joined(program: Program, call: ast.Call, held: ast.expr, sizes: list[ast.expr]) -> Iterator[Spot]:
    """Find `h.view(len(x), -1)` of the final states of a recurrent layer, whose first axis counts the layers."""
    one = flow(program).end(held)
    made = one.node if one is not None and one.path in {(1,), (1, 0)} else None
    found = layer(program, made.func) if isinstance(made, ast.Call) else None
    if found is None or found.name not in RECURRENT or len(sizes) != 2 or constant(sizes[1]) != -1:
        return
    first = ast.unparse(sizes[0])
    many = is_given(found.call, "num_layers", 2) or is_given(found.call, "bidirectional")
    if many and re.search(r"batch|size\(|shape|^(n|b)$|len\(", first) and "layers" not in first:
        remedy = f"{shown(held, 30)}.transpose(0, 1).reshape({first}, -1)"
        yield spot(call, found.call, text=shown(call), remedy=remedy)


def _reordered(program: Program, call: ast.Call, held: ast.expr, sizes: list[ast.expr]) -> Iterator[Spot]:
    """Find a reshape to the same written sizes in another order, as from channels last to channels first."""
    before = shape(program, held)
    after = [size for one in sizes if isinstance(size := constant(one), int)]
    if before is None or len(before) < 3 or len(after) < len(sizes):
        return
    if after.count(-1) == 1:
        rest = math.prod(one for one in after if one != -1)
        after = [math.prod(before) // max(rest, 1) if one == -1 else one for one in after]
    if sorted(after) == sorted(before) and tuple(after) != before and len(set(before)) > 1:
        order = ", ".join(str(one) for one in _order(before, after))
        yield spot(call, text=shown(call), remedy=f"{shown(held)}.permute({order})")


def _order(before: Sequence[object], after: Sequence[object]) -> list[int]:
    """Return the axis of the shape before for each size after, each axis once."""
    left = list(range(len(before)))
    return [left.pop(next(at for at, axis in enumerate(left) if before[axis] == size)) for size in after]


def _axis(program: Program, tensor: ast.expr, size: ast.expr) -> int | None:
    """Return the axis of a tensor whose length an expression is: x.shape[1], x.size(1), or c of `b, c, t = x.shape`."""
    text = ast.unparse(tensor)
    axis: object = None
    if isinstance(size, ast.Subscript) and ast.unparse(size.value) == f"{text}.shape":
        axis = constant(size.slice)
    elif isinstance(size, ast.Call) and ast.unparse(size.func) == f"{text}.size" and size.args:
        axis = constant(size.args[0])
    elif isinstance(size, ast.Name) and (bound := program.bound(size)) is not None and bound.value is not None:
        known = ast.unparse(bound.value) in {f"{text}.shape", f"{text}.size()"}
        axis = bound.item if known and not _rebound(program, tensor, bound.line, size.lineno) else None
    return axis if isinstance(axis, int) and axis >= 0 else None


def _axes(program: Program, sizes: list[ast.expr]) -> int:
    """Return the number of axes of a tensor whose shape is unpacked into names; the number of sizes otherwise."""
    for size in sizes:
        bound = program.bound(size)
        statement = bound.statement if bound is not None else None
        target = target_of(statement)
        if isinstance(target, ast.Tuple):
            return len(target.elts)
    return len(sizes)


def _rebound(program: Program, tensor: ast.expr, begin: int, end: int) -> bool:
    """Tell whether a variable gets another value between two lines."""
    if not isinstance(tensor, ast.Name):
        return False
    found = program.bindings(program.scope(tensor), tensor.id)
    return any(begin < one.line < end for one in found)


@reads("batch flattened away")
def _flattened(program: Program) -> Iterator[Spot]:
    """Find `flatten()` or `view(-1)` of what a convolution or a pooling gives, in front of a linear layer."""
    for _, forward in program.forwards():
        for call in within(forward, ast.Call):
            found = layer(program, call.func) if call.args else None
            if found is None or found.name != "Linear":
                continue
            flat = program.source_of(call.args[0]) if isinstance(call.args[0], ast.Name) else call.args[0]
            operand = _flat(program, flat) if isinstance(flat, ast.Call) else None
            if flat is not None and operand is not None and _from_images(program, operand):
                yield spot(flat, call, text=shown(flat), remedy=f"{shown(operand, 30)}.flatten(1)")


def _flat(program: Program, call: ast.Call) -> ast.expr | None:
    """Return what a call makes one axis of: x of `x.flatten()` and `x.view(-1)`; None for other calls."""
    name, operand = op(program, call)
    place = 1 if program.names.full(call.func) else 0
    start, sizes = argument(call, "start_dim", place), call.args[place:]
    whole = name == "flatten" and (constant(start) == 0 or not is_given(call, "start_dim", place))
    single = name in {"view", "reshape"} and len(sizes) == 1 and constant(sizes[0]) == -1
    return operand if whole or single else None


def _from_images(program: Program, node: ast.expr | None, depth: int = 0) -> bool:
    """Tell whether a value comes out of a convolution or a pooling, looking through calls and names."""
    if depth > DEEPEST:
        return False
    if isinstance(node, ast.Name):
        return _from_images(program, program.value_of(node), depth + 1)
    if not isinstance(node, ast.Call):
        return False
    found = library_layer(program, node.func)
    if found is None:
        return _from_images(program, op(program, node)[1], depth + 1)
    passed = node.args[0] if node.args and found.name not in {"Linear", "Flatten"} else None
    return found.name in _SPATIAL or _from_images(program, passed, depth + 1)


_BACKWARDS = (
    "is, for the backward direction, the state after a single step: it has read the last place only; its final state "
    "stands at the first place, and in h_n"
)


def _reads(program: Program, name: ast.expr) -> int:
    """Return how often the function around reads a variable."""
    uses = [one for one in within(program.around(name), ast.Name) if one.id == ident(name)]
    return sum(isinstance(one.ctx, ast.Load) for one in uses)


def _cut(node: ast.Slice) -> str:
    return "part" if node.lower is not None or node.upper is not None else "all"


@reads("sequence read at its beginning")
def _first_state(program: Program) -> Iterator[Spot]:
    """Find what is read of a recurrent layer's outputs: the first place, or one example of the batch."""
    for node in program.every(ast.Subscript):
        made = _outputs(program, node.value)
        found = layer(program, made.func) if made is not None else None
        if found is None or found.name not in RECURRENT:
            continue
        both = constant(argument(found.call, "bidirectional")) is True
        first = constant(argument(found.call, "batch_first")) is True
        if not first and is_given(found.call, "batch_first"):
            continue
        places = [constant(one) if not isinstance(one, ast.Slice) else _cut(one) for one in indices(node)]
        if both:
            wanted = ["all", -1] if first else [-1]
            if places in (wanted, [*wanted, "all"]) and _reads(program, node.value) == 1:
                yield spot(node, found.call, text=shown(node), what=_BACKWARDS, remedy="torch.cat([h[-2], h[-1]], 1)")
        elif places[:2] == ["all", 0] if first else places == [0]:
            what = "is the state before the sequence has been read"
            yield spot(node, text=shown(node), what=what, remedy="outputs[:, -1]" if first else "outputs[-1]")
        elif not first and places[:2] == ["all", -1]:
            what = "is one example of the batch, because batch_first is not set"
            yield spot(node, found.call, text=shown(node), what=what, remedy="batch_first=True")


def _outputs(program: Program, name: ast.expr) -> ast.Call | None:
    """Return the call whose first result a variable holds: `outputs, _ = rnn(x)`, or `outputs = rnn(x)[0]`."""
    bound = program.bound(name)
    value = bound.value if bound is not None else None
    if bound is not None and bound.item is None and isinstance(value, ast.Subscript) and constant(value.slice) == 0:
        value = value.value
    elif bound is None or bound.item != 0:
        return None
    return value if isinstance(value, ast.Call) else None


@reads("random initial state")
def _drawn_state(program: Program) -> Iterator[Spot]:
    """Find a recurrent layer that a `forward` gives a state drawn anew, in evaluation too."""
    for call in program.calls:
        found = layer(program, call.func) if inside(program, call, "forward") and len(call.args) == 2 else None
        if found is None or found.name not in RECURRENT:
            continue
        state = call.args[1]
        sources = [program.source_of(one) for one in within(state, ast.Name)]
        calls = [one for given in (state, *sources) for one in within(given, ast.Call)]
        drawn = [one for one in calls if library_name(program, one) in _DRAWS]
        if drawn:
            yield spot(drawn[0], call, text=shown(drawn[0]), layer=shown(call.func))


@reads("checkpoint without use_reentrant")
def _checkpoint(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        full = program.names.full(call.func)
        theirs = full.startswith("torch.utils.checkpoint.checkpoint") and program.names.is_torch(call.func)
        if theirs and not is_given(call, "use_reentrant"):
            yield spot(call, text=shown(call), remedy=f"{shown(call)[:-1]}, use_reentrant=False)")


RULES = rules_of(globals())
