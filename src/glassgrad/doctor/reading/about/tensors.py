"""Rules about tensors: how they are made, reshaped and cut off the graph, and formulas that lose precision."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.about.learning import cut_layers, cut_terms
from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.gradients import reach
from glassgrad.doctor.reading.iterations import Event, trainings
from glassgrad.doctor.reading.names import last, named
from glassgrad.doctor.reading.program import DEEPEST, Class, Program, argument, constant, is_given
from glassgrad.doctor.reading.ranks import shape
from glassgrad.doctor.reading.rule import Spot, reads, rules_of, shown, spot
from glassgrad.doctor.reading.values import RECURRENT, inside, layer, library_name, loss, op

_SPATIAL = frozenset({"Conv1d", "Conv2d", "Conv3d", "MaxPool1d", "MaxPool2d", "AvgPool2d", "AdaptiveAvgPool2d"})
_DRAWS = frozenset({"randn", "rand", "randn_like", "rand_like"})
_DROPOUTS = named("dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout")


@reads("Tensor made by its class")
def _tensor_class(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        full = program.names.full(call.func)
        outer = program.parents.get(call)
        weights = isinstance(outer, ast.Call) and library_name(program, outer) == "Parameter"
        weights |= isinstance(outer, ast.Attribute) and outer.attr.endswith("_")  # both are drawn afterwards
        if full == "torch.Tensor" and program.names.is_torch(call.func) and call.args and not weights:
            sizes = all(isinstance(constant(one), int) for one in call.args)
            what = (
                "makes a tensor of this shape without setting its numbers" if sizes else "makes float32 of any values"
            )
            remedy = (
                f"torch.empty({', '.join(map(shown, call.args))})"
                if sizes
                else f"torch.tensor({shown(call.args[0], 40)})"
            )
            yield spot(call, text=shown(call), what=what, remedy=remedy)


@reads("tensor of a tensor")
def _tensor_of_tensor(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        full = program.names.full(call.func)
        if full != "torch.tensor" or not call.args or constant(argument(call, "requires_grad")) is True:
            continue
        given = call.args[0]
        parts = given.elts if isinstance(given, ast.List | ast.Tuple) else [given]
        if parts and all(_is_graph(program, one) for one in parts):
            better = f"torch.stack({shown(given, 40)})" if parts != [given] else f"{shown(given, 40)}.detach().clone()"
            yield spot(call, text=shown(call), remedy=better)


def _is_graph(program: Program, node: ast.expr, depth: int = 0) -> bool:
    """Tell whether a value is a tensor that was computed: the output of a model, or a loss."""
    if depth > DEEPEST:
        return False
    if isinstance(node, ast.Name):
        value = program.value_of(node)
        return value is not None and _is_graph(program, value, depth + 1)
    if not isinstance(node, ast.Call):
        return False
    if loss(program, node) is not None:
        return True
    found = layer(program, node.func)
    return found is not None and found.name[:1].isupper()


@reads("graph grows")
def _accumulated(program: Program) -> Iterator[Spot]:
    for one in trainings(program):
        backward = one.own("backward")
        for node in ast.walk(one.node):
            if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
                total, value = ast.unparse(node.target), node.value
            elif isinstance(node, ast.Assign) and (added := _added_to_itself(node)) is not None:
                total, value = ast.unparse(node.targets[0]), added
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
                if node.func.attr != "append":
                    continue
                total, value = ast.unparse(node.func.value), node.args[0]
            else:
                continue
            scope = program.function(node)  # a function called in the loop has its own name for its own loss
            names = {name for event in backward if program.function(event.node) is scope for name in _begun_at(event)}
            name = next((one for one in sorted(names) if _keeps(value, one)), "")
            if name and total not in names and not _used_in_backward(program, total):
                yield spot(node, text=shown(node), remedy=shown(node).replace(name, f"{name}.item()"))


def _begun_at(event: Event) -> set[str]:
    """Return the variables at which a backward pass begins: loss of `scaler.scale(loss).backward()`."""
    call = event.node
    parts = [*call.args, call.func] if isinstance(call, ast.Call) else []
    used = {one.id for part in parts for one in ast.walk(part) if isinstance(one, ast.Name)}
    return {event.receiver, *(name for name in used if "loss" in name.lower())}


def _added_to_itself(node: ast.Assign) -> ast.expr | None:
    """Return what `total = total + value` adds."""
    value, target = node.value, ast.unparse(node.targets[0])
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return None
    if ast.unparse(value.left) == target:
        return value.right
    return value.left if ast.unparse(value.right) == target else None


def _keeps(node: ast.expr, name: str) -> bool:
    """Tell whether an expression is a loss, or a product with it: not a number taken out of it."""
    if isinstance(node, ast.Name):
        return node.id == name
    if isinstance(node, ast.BinOp):
        return _keeps(node.left, name) or _keeps(node.right, name)
    return False


def _used_in_backward(program: Program, total: str) -> bool:
    """Tell whether a backward pass begins at a value that is computed from a variable."""
    for call in program.calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
            used = {ast.unparse(one) for one in ast.walk(call) if isinstance(one, ast.Name | ast.Attribute)}
            begin = call.func.value
            bound = program.bound(begin) if isinstance(begin, ast.Name) else None
            if bound is not None and bound.value is not None:
                used |= {ast.unparse(one) for one in ast.walk(bound.value) if isinstance(one, ast.Name | ast.Attribute)}
            if total in used:
                return True
    return False


@reads("gradient cut in forward")
def _cut_in_forward(program: Program) -> Iterator[Spot]:
    for node in program.nodes:
        owner = program.owner(node)
        if owner is None or not owner.is_module or not inside(program, node, "forward"):
            continue
        if isinstance(node, ast.Attribute) and node.attr == "data" and isinstance(node.ctx, ast.Load):
            outer = program.parents.get(node)
            changes = isinstance(outer, ast.Attribute) and outer.attr.endswith("_")
            if not changes and _is_learnt(program, owner, node.value):
                yield spot(node, text=shown(node))
        elif isinstance(node, ast.Call) and program.names.full(node.func) in {"torch.tensor", "torch.from_numpy"}:
            given = node.args[0] if node.args else None
            if given is not None and _is_learnt(program, owner, given):
                yield spot(node, text=shown(node))
    yield from cut_layers(program)


def _is_learnt(program: Program, owner: Class, node: ast.expr, depth: int = 0) -> bool:
    """Tell whether a value in `forward` is computed by a layer of the class."""
    if depth > DEEPEST:
        return False
    if isinstance(node, ast.Name):
        value = program.value_of(node)
        return value is not None and _is_learnt(program, owner, value, depth + 1)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            held = node.func.value
            mine = isinstance(held, ast.Name) and held.id == "self" and layer(program, node.func) is not None
            return mine or (
                (not isinstance(held, ast.Name) or held.id != "self") and _is_learnt(program, owner, held, depth + 1)
            )
        return False
    return isinstance(node, ast.Attribute) and node.attr != "self" and _is_learnt(program, owner, node.value, depth + 1)


@reads("gradient cut in the loss")
def _cut_in_loss(program: Program) -> Iterator[Spot]:
    for one in trainings(program):
        names = {event.receiver for event in one.own("backward")}
        for node in ast.walk(one.node):
            target = (
                node.target
                if isinstance(node, ast.AugAssign)
                else node.targets[0]
                if isinstance(node, ast.Assign)
                else None
            )
            if target is None or ast.unparse(target) not in names or not isinstance(node, ast.Assign | ast.AugAssign):
                continue
            parts = _terms(node.value)
            cut = [part for part in parts if _is_cut(part) and not reach(program, part).learns]
            if cut and (len(parts) > 1 or isinstance(node, ast.AugAssign)):
                yield spot(cut[0], node, text=shown(cut[0]), why="is a number")
    yield from cut_terms(program)


def _terms(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_terms(node.left), *_terms(node.right)]
    return [node]


def _is_cut(node: ast.expr) -> bool:
    """Tell whether a term is a number: its parameters are read as `.data`, or `item()` ends it."""
    reads_data = any(isinstance(one, ast.Attribute) and one.attr == "data" for one in ast.walk(node))
    ends = [node.left, node.right] if isinstance(node, ast.BinOp) else [node]
    item = any(
        isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "item" for one in ends
    )
    return reads_data or item


@reads("dropout in evaluation too")
def _always_dropout(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        owner = program.owner(call)
        full = program.names.full(call.func)
        if owner is None or not owner.is_module or not full.startswith("torch.nn.functional."):
            continue
        if any(
            isinstance(one, ast.If | ast.IfExp) and "training" in ast.unparse(one.test) for one in program.outward(call)
        ):
            continue
        always = constant(argument(call, "training", 2)) is True and not re.search(
            r"mc_?drop|bayes|monte", owner.node.name, re.IGNORECASE
        )
        free = not is_given(call, "training", 2) or always
        if last(full) in _DROPOUTS and free and not _is_set_by_mode(program, call):
            yield spot(call, text=shown(call), remedy=f"F.{last(full)}(x, p, training=self.training)")
        elif last(full) == "scaled_dot_product_attention":
            share = argument(call, "dropout_p", 4)
            fixed = isinstance(constant(share), float) and constant(share) != 0.0
            held = isinstance(share, ast.Attribute) and ast.unparse(share).startswith("self.")
            if (fixed or held) and share is not None:
                text = shown(share)
                yield spot(call, text=shown(call), remedy=f"dropout_p={text} if self.training else 0.0")


def _is_set_by_mode(program: Program, call: ast.Call) -> bool:
    """Tell whether a probability was set by the mode before: `p = self.p if self.training else 0`."""
    share = argument(call, "p", 1)
    around = program.function(call)
    given = "" if share is None else ast.unparse(share)
    for node in ast.walk(around) if around is not None and given else ():
        same = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == given
        if same and isinstance(node, ast.Assign) and "training" in ast.unparse(node.value):
            return True
    return False


# --- shapes ---


@reads("axes mixed by a view")
def _view_for_permute(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in {"view", "reshape"} or not call.args:
            continue
        sizes = call.args[0].elts if isinstance(call.args[0], ast.Tuple) else call.args
        yield from _reordered(program, call, sizes)
        yield from _states_joined(program, call, sizes)
        places = [_axis(program, call.func.value, one) for one in sizes]
        if len(places) < 2 or None in places or sorted(map(_whole, places)) != list(range(len(places))):
            continue
        order = [_whole(one) for one in places]
        moved = [one for one in range(len(order)) if order[one] != one]
        if moved and _axes(program, call.func.value, sizes) == len(order):
            axes = ", ".join(map(str, order))
            yield spot(call, text=shown(call), remedy=f"{shown(call.func.value)}.permute({axes})")


def _states_joined(program: Program, call: ast.Call, sizes: list[ast.expr]) -> Iterator[Spot]:
    """Find `h.view(len(x), -1)` of the final states of a recurrent layer, whose first axis counts the layers."""
    assert isinstance(call.func, ast.Attribute)
    one = flow(program).end(call.func.value)
    made = one.node if one is not None and one.path in {(1,), (1, 0)} else None
    found = layer(program, made.func) if isinstance(made, ast.Call) else None
    if found is None or found.name not in RECURRENT or len(sizes) != 2 or constant(sizes[1]) != -1:
        return
    first = ast.unparse(sizes[0])
    many = is_given(found.call, "num_layers", 2) or is_given(found.call, "bidirectional")
    if many and re.search(r"batch|size\(|shape|^(n|b)$|len\(", first) and "layers" not in first:
        text = shown(call.func.value, 30)
        yield spot(call, found.call, text=shown(call), remedy=f"{text}.transpose(0, 1).reshape({first}, -1)")


def _reordered(program: Program, call: ast.Call, sizes: list[ast.expr]) -> Iterator[Spot]:
    """Find a reshape to the same written sizes in another order, as from channels last to channels first."""
    before = shape(program, call.func.value) if isinstance(call.func, ast.Attribute) else None
    after = [constant(one) for one in sizes]
    if before is None or len(before) < 3 or not all(isinstance(one, int) for one in after):
        return
    if after.count(-1) == 1:
        rest = math.prod(one for one in after if isinstance(one, int) and one != -1)
        after = [math.prod(before) // max(rest, 1) if one == -1 else one for one in after]
    if sorted(map(str, after)) == sorted(map(str, before)) and tuple(after) != before and len(set(before)) > 1:
        order = ", ".join(str(one) for one in _order(before, after))
        assert isinstance(call.func, ast.Attribute)
        yield spot(call, text=shown(call), remedy=f"{shown(call.func.value)}.permute({order})")


def _order(before: tuple[int, ...], after: list[object]) -> list[int]:
    """Return the axis of the shape before for each size after, each axis once."""
    left = list(range(len(before)))
    return [left.pop(next(at for at, axis in enumerate(left) if before[axis] == size)) for size in after]


def _whole(value: int | None) -> int:
    return -1 if value is None else value


def _axis(program: Program, tensor: ast.expr, size: ast.expr) -> int | None:
    """Return the axis of a tensor whose length an expression is: x.shape[1], x.size(1), or c of `b, c, t = x.shape`."""
    text = ast.unparse(tensor)
    if isinstance(size, ast.Subscript) and ast.unparse(size.value) == f"{text}.shape":
        axis = constant(size.slice)
        return axis if isinstance(axis, int) and axis >= 0 else None
    if isinstance(size, ast.Call) and ast.unparse(size.func) == f"{text}.size" and size.args:
        axis = constant(size.args[0])
        return axis if isinstance(axis, int) and axis >= 0 else None
    if not isinstance(size, ast.Name):
        return None
    bound = program.bound(size)
    source = ast.unparse(bound.value) if bound is not None and bound.value is not None else ""
    known = bound is not None and source in {f"{text}.shape", f"{text}.size()"}
    if not known or bound is None or _rebound(program, tensor, bound.line, size.lineno):
        return None
    return bound.item


def _axes(program: Program, tensor: ast.expr, sizes: list[ast.expr]) -> int | None:
    """Return the number of axes of a tensor whose shape is unpacked into names; the number of sizes otherwise."""
    for size in sizes:
        bound = program.bound(size) if isinstance(size, ast.Name) else None
        statement = bound.statement if bound is not None else None
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
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
    for owner in program.modules():
        forward = owner.methods.get("forward")
        for call in ast.walk(forward) if forward is not None else ():
            found = layer(program, call.func) if isinstance(call, ast.Call) and call.args else None
            if found is None or found.name != "Linear" or not isinstance(call, ast.Call):
                continue
            flat = _held(program, call.args[0])
            name, operand = op(program, flat) if isinstance(flat, ast.Call) else ("", None)
            if operand is None or not isinstance(flat, ast.Call) or not _is_flat(program, flat, name):
                continue
            if _from_images(program, operand):
                yield spot(flat, call, text=shown(flat), remedy=f"{shown(operand, 30)}.flatten(1)")


def _held(program: Program, node: ast.expr) -> ast.expr | None:
    bound = program.bound(node) if isinstance(node, ast.Name) else None
    return node if not isinstance(node, ast.Name) else bound.value if bound is not None else None


def _is_flat(program: Program, call: ast.Call, name: str) -> bool:
    place = 1 if program.names.full(call.func) else 0
    if name == "flatten":
        return not is_given(call, "start_dim", place) or constant(argument(call, "start_dim", place)) == 0
    sizes = call.args[place:]
    return name in {"view", "reshape"} and len(sizes) == 1 and constant(sizes[0]) == -1


def _from_images(program: Program, node: ast.expr | None, depth: int = 0) -> bool:
    """Tell whether a value comes out of a convolution or a pooling, looking through calls and names."""
    if node is None or depth > DEEPEST:
        return False
    if isinstance(node, ast.Name):
        bound = program.bound(node)
        return bound is not None and bound.item is None and _from_images(program, bound.value, depth + 1)
    if not isinstance(node, ast.Call):
        return False
    found = layer(program, node.func)
    if found is not None and found.owner is None:
        if found.name in _SPATIAL:
            return True
        return (
            bool(node.args)
            and found.name not in {"Linear", "Flatten"}
            and _from_images(program, node.args[0], depth + 1)
        )
    _, operand = op(program, node)
    return _from_images(program, operand, depth + 1)


_BACKWARDS = (
    "is, for the backward direction, the state after a single step: it has read the last place only; its final state "
    "stands at the first place, and in h_n"
)


def _reads(program: Program, name: ast.Name) -> int:
    """Return how often the function around reads a variable."""
    around = program.function(name) or program.tree
    return sum(
        isinstance(one, ast.Name) and one.id == name.id and isinstance(one.ctx, ast.Load) for one in ast.walk(around)
    )


def _cut(node: ast.Slice) -> str:
    return "part" if node.lower is not None or node.upper is not None else "all"


@reads("sequence read at its beginning")
def _first_state(program: Program) -> Iterator[Spot]:
    """Find what is read of a recurrent layer's outputs: the first place, or one example of the batch."""
    for node in program.nodes:
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
            continue
        made = _outputs(program, node.value)
        found = layer(program, made.func) if made is not None else None
        if found is None or found.name not in RECURRENT:
            continue
        both = constant(argument(found.call, "bidirectional")) is True
        first = constant(argument(found.call, "batch_first")) is True
        if not first and is_given(found.call, "batch_first"):
            continue
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        places = [constant(one) if not isinstance(one, ast.Slice) else _cut(one) for one in parts]
        if both:
            wanted = ["all", -1] if first else [-1]
            if places in (wanted, [*wanted, "all"]) and _reads(program, node.value) == 1:
                yield spot(node, found.call, text=shown(node), what=_BACKWARDS, remedy="torch.cat([h[-2], h[-1]], 1)")
        elif places[:2] == ["all", 0] if first else places == [0]:
            what, remedy = (
                "is the state before the sequence has been read",
                "outputs[:, -1]" if first else "outputs[-1]",
            )
            yield spot(node, text=shown(node), what=what, remedy=remedy)
        elif not first and places[:2] == ["all", -1]:
            what = "is one example of the batch, because batch_first is not set"
            yield spot(node, found.call, text=shown(node), what=what, remedy="batch_first=True")


def _outputs(program: Program, name: ast.Name) -> ast.Call | None:
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
        bound = [
            one.value for one in map(program.bound, _variables(state)) if one is not None and one.value is not None
        ]
        calls = [one for given in (state, *bound) for one in ast.walk(given) if isinstance(one, ast.Call)]
        drawn = [one for one in calls if library_name(program, one) in _DRAWS]
        if drawn:
            yield spot(drawn[0], call, text=shown(drawn[0]), layer=shown(call.func))


def _variables(node: ast.expr) -> list[ast.Name]:
    return [one for one in ast.walk(node) if isinstance(one, ast.Name)]


@reads("checkpoint without use_reentrant")
def _checkpoint(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        full = program.names.full(call.func)
        theirs = full.startswith("torch.utils.checkpoint.checkpoint") and program.names.is_torch(call.func)
        if theirs and not is_given(call, "use_reentrant"):
            yield spot(call, text=shown(call), remedy=f"{shown(call)[:-1]}, use_reentrant=False)")


RULES = rules_of(globals())
