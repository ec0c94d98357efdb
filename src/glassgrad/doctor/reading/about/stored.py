"""Rules about data sets and modules that change what they store, and find it changed in the next call."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from glassgrad.doctor.reading.bindings import is_container
from glassgrad.doctor.reading.flow import Value, flow
from glassgrad.doctor.reading.names import last, named
from glassgrad.doctor.reading.nodes import (
    arguments,
    elements,
    is_name,
    method_of,
    names_in,
    object_of,
    of_self,
    only_target,
    set_by,
    unindexed,
    within,
    without,
)
from glassgrad.doctor.reading.program import Bound, Function, Program, argument, constant
from glassgrad.doctor.reading.rule import Spot, reads, rules_of, shown, spot

_ADDING = named("sub_ add_ mul_ div_ pow_ sqrt_ log_ exp_ neg_ addcmul_ addcdiv_ true_divide_ multiply_ divide_ lerp_")
"""Methods that change a tensor further each time."""
_VIEWS = named("from_numpy as_tensor asarray view reshape squeeze unsqueeze transpose permute swapaxes flatten ravel")
"""Functions and methods whose result may share the memory of what they are given."""
_TENSORS = named("from_numpy as_tensor asarray")
_DRAWN = re.compile(r"rand|choice|uniform|integers|sample|perm|bernoulli|normal\(|dice")
_ELSEWHERE = re.compile(
    r"sets?$|^base|(^|_)ds$|subset|inner|source|parent|h5|hdf|file|(^|_)db|(^|_)env|zarr|lmdb|paths?$|names?$"
)
"""Names of what makes or reads an example anew for each index."""
_SHAPED = re.compile(r"shape|ndim|dtype|astype|mean\(|std\(|size\(|float\(")
_SELECTING = named("gather index_select take take_along_dim narrow")
_CASTS = named("to cuda cpu float double half type type_as contiguous view reshape squeeze unsqueeze detach clone")
_MOST = 60


@reads("inputs change from epoch to epoch")
def _overwritten(program: Program) -> Iterator[Spot]:
    """Find a data set that takes `self.images[index]` and writes into it, by itself or by a transform."""
    if not any("__getitem__" in one.methods for one in program.classes.values()):
        return
    for node in program.nodes:
        target = _changed(program, node)
        if target is None or not isinstance(node, ast.expr | ast.stmt):
            continue
        held, tensor = _stored(program, target)
        if held is not None and (tensor or _is_array(program, target, node, held)):
            remedy = f"{shown(held)}.copy()"
            yield spot(node, program.statement(held), text=shown(node), held=shown(held), remedy=remedy)


def _changed(program: Program, node: ast.AST) -> ast.expr | None:
    """Return what a node changes in place, further each time or at a random place; None for others."""
    if isinstance(node, ast.AugAssign):
        return unindexed(node.target)
    place = only_target(node)
    if isinstance(node, ast.Assign) and isinstance(place, ast.Subscript):
        name = unindexed(place)
        again = any(ast.unparse(name) == ast.unparse(one) for one in within(node.value, ast.Name))
        keyed = isinstance(constant(place.slice), str)
        return name if not keyed and (again or _is_random(program, place.slice, 0)) else None
    if not isinstance(node, ast.Call):
        return None
    if method_of(node) in _ADDING:
        return object_of(node)
    inplace = constant(argument(node, "inplace")) is True and program.called(node) == "normalize"
    return node.args[0] if inplace and node.args else None


def _is_random(program: Program, node: ast.expr, depth: int) -> bool:
    """Tell whether an index comes of a random number in its function."""
    if _DRAWN.search(ast.unparse(node)):
        return True
    function = program.function(node)
    for name in within(node, ast.Name) if depth < 4 and function is not None else ():
        for bound in program.bindings(function or program.tree, name.id):
            loop = bound.statement
            value = loop.iter if isinstance(loop, ast.For | ast.comprehension) else bound.value
            if value is not None and value is not node and _is_random(program, value, depth + 1):
                return True
    return False


def _stored(program: Program, target: ast.expr) -> tuple[ast.Subscript | None, bool]:
    """Return `self.images[index]` of a `__getitem__` whose memory a value shares, and whether it becomes a tensor."""
    waiting: list[Value] = [Value(target)]
    seen: set[Value] = set()
    while waiting and len(seen) < _MOST:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        if isinstance(value.node, ast.Subscript) and _is_stored(program, value.node, bool(value.path)):
            made = (one.node for one in seen if isinstance(one.node, ast.Call))
            return value.node, any(_is_tensor(program, one) for one in made)
        waiting += [one for one in _sharing(program, value) if not _is_operand(program, one.node)]
    return None, False


def _operated(program: Program, values: Iterable[Value]) -> Iterator[ast.expr]:
    """Yield the names of which `x += y` makes a value: it writes into the memory of the x before."""
    for one in values:
        outer = program.parents.get(one.node)
        if isinstance(outer, ast.AugAssign) and isinstance(outer.target, ast.Name):
            yield outer.target


def _is_operand(program: Program, node: ast.expr) -> bool:
    """Tell whether a value is the second operand of `x += y`, whose memory x does not share."""
    outer = program.parents.get(node)
    return isinstance(outer, ast.AugAssign) and outer.value is node


def _sharing(program: Program, value: Value) -> list[Value]:
    """Return the values whose memory a value may share."""
    node = value.node
    if isinstance(node, ast.Name):
        found = flow(program).before(value)
        earlier = [Value(one, value.frame) for one in _operated(program, found or ())]
        return [*found, *earlier] if found is not None else _given_to_transform(program, node)
    if isinstance(node, ast.IfExp):
        return flow(program).before(value) or []
    keyed = isinstance(node, ast.Subscript) and isinstance(constant(node.slice), str)
    if isinstance(node, ast.Subscript) and not keyed and not isinstance(node.slice, ast.Compare | ast.List):
        return [Value(node.value, value.frame, value.path)]
    if isinstance(node, ast.Attribute) and node.attr in {"T", "mT", "data"}:
        return [Value(node.value, value.frame)]
    return _of_call(program, node, value) if isinstance(node, ast.Call) else []


def _of_call(program: Program, node: ast.Call, value: Value) -> list[Value]:
    if program.called(node) in _VIEWS or method_of(node).endswith("_"):
        known = program.names.full(node.func) or method_of(node)
        operand = program.operand(node) if known else None
        return [Value(operand, value.frame)] if operand is not None else []
    return (flow(program).before(value) or []) if flow(program).entered(node, value.frame) is not None else []


def _is_stored(program: Program, node: ast.Subscript, parted: bool) -> bool:
    """Tell whether an expression is an example as it is stored: `self.images[index]` in a `__getitem__`.

    One that is `parted` into inputs and labels must come of a list that the script makes: data sets of libraries make
    such pairs anew.
    """
    held, function = node.value, program.function(node)
    if not of_self(held) or function is None or function.name != "__getitem__":
        return False
    if _ELSEWHERE.search(held.attr) or isinstance(node.slice, ast.Constant | ast.List):
        return False
    made = flow(program).origins(held)
    listed = bool(made) and all(is_container(one) for one in made)
    return (listed or not parted) and not any(_makes_anew(program, one) for one in made if isinstance(one, ast.Call))


def _makes_anew(program: Program, call: ast.Call) -> bool:
    """Tell whether a call makes a data set or a file, which makes an example anew for each index."""
    owned = isinstance(call.func, ast.Name) and call.func.id in program.classes
    return owned or bool(re.search(r"dataset|h5py|zarr|lmdb|memmap|File", program.names.full(call.func)))


def _given_to_transform(program: Program, node: ast.Name) -> list[Value]:
    """Return the stored examples that reach the parameter of a transform behind others that copy nothing."""
    function, owner = program.function(node), program.owner(node)
    if owner is None or function is None or function.name not in {"__call__", "forward"}:
        return []
    first = any(_first_to_copy(program, made) for made in program.calls_of(owner.node.name))
    if not first or not program.is_parameter(function, node.id):
        return []
    items = [one.methods["__getitem__"] for one in program.classes.values() if "__getitem__" in one.methods]
    calls = [one for item in items for one in within(item, ast.Call) if len(one.args) == 1]
    return [Value(one.args[0]) for one in calls if _is_transform(program, one.func)]


def _is_transform(program: Program, node: ast.expr) -> bool:
    return of_self(node) and program.method(program.owner(node), node.attr) is None


def _first_to_copy(program: Program, made: ast.Call) -> bool:
    """Tell whether nothing before a transform in its row copies what it is given."""
    outer = program.parents.get(made)
    row = outer.args if isinstance(outer, ast.Call) else elements(outer)
    if made not in row:
        return False
    for one in row[: row.index(made)]:
        owner = program.classes.get(getattr(one.func, "id", "")) if isinstance(one, ast.Call) else None
        method = program.method(owner, "__call__")
        if method is None or not _passes_on(program, method):
            return False
    return True


def _passes_on(program: Program, method: Function) -> bool:
    """Tell whether a transform gives what shares the memory of what it gets."""
    name = method.args.args[1].arg if len(method.args.args) > 1 else ""
    for one in within(method, ast.Return):
        node = one.value
        while isinstance(node, ast.Call) and (before := _of_call(program, node, Value(node))):
            node = before[0].node
        if node is not None and not is_name(node, name):
            return False
    return True


def _is_array(program: Program, target: ast.expr, node: ast.AST, held: ast.Subscript) -> bool:
    """Tell whether what a statement changes is an array: numbers, texts and lists have other rules."""
    if isinstance(node, ast.Call):
        return True
    place = node.target if isinstance(node, ast.AugAssign) else only_target(node)
    block = isinstance(place, ast.Subscript) and isinstance(place.slice, ast.Tuple)
    if block or (isinstance(place, ast.Subscript) and not isinstance(held.slice, ast.Slice)):
        return True
    names = set_by(program.statement(held))
    return _is_used_as_array(program, target, ast.unparse(target)) or any(
        _is_used_as_array(program, held, name) for name in names
    )


def _is_used_as_array(program: Program, place: ast.expr, name: str) -> bool:
    """Tell whether the function around a place takes the shape of a name, a block of it, or makes a tensor of it."""
    for one in within(program.function(place), ast.expr):
        part = isinstance(one, ast.Attribute | ast.Subscript) and ast.unparse(one.value) == name
        shaped = part and isinstance(one, ast.Attribute) and _SHAPED.search(f"{one.attr}(")
        block = part and isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Tuple)
        taken = isinstance(one, ast.Call) and _is_tensor(program, one) and name in map(ast.unparse, one.args)
        if shaped or block or taken:
            return True
    return False


def _is_tensor(program: Program, call: ast.Call) -> bool:
    return last(program.names.full(call.func)) in _TENSORS


# --- what a module stores ---


@reads("constant cut in each pass")
def _cut(program: Program) -> Iterator[Spot]:
    """Find `self.weight = self.weight[labels]` in a forward pass, where a local variable is meant."""
    for node in program.every(ast.Assign):
        function, target, part = program.function(node), only_target(node), without(node.value, *_CASTS)
        owner = program.owner(node)
        if function is None or function.name not in {"forward", "__call__"} or target is None or not of_self(target):
            continue
        held, index = _selected(program, part)
        bounds = owner.attributes[target.attr] if owner is not None else []
        before = [one for one in bounds if one.statement is not node]
        kept = before and all(_is_constant(program, one, target) for one in before)
        if held is not None and ast.unparse(held) == ast.unparse(target) and names_in(*index) - {"self"} and kept:
            text = shown(node.value)
            yield spot(node, attribute=f"self.{target.attr}", text=text, remedy=f"{target.attr} = {text}")


def _selected(program: Program, node: ast.expr) -> tuple[ast.expr | None, list[ast.expr]]:
    """Return x and the index of `x[index]`, `x.gather(0, index)` and their likes."""
    if isinstance(node, ast.Subscript):
        return node.value, [node.slice]
    if isinstance(node, ast.Call) and program.called(node) in _SELECTING:
        inner = program.operand(node)
        return inner, [one for one in arguments(node) if one is not inner]
    return None, []


def _is_constant(program: Program, bound: Bound, target: ast.Attribute) -> bool:
    """Tell whether an attribute gets a value when its object is made, or is moved to another device or dtype."""
    function = program.function(bound.statement)
    begins = function is not None and function.name == "__init__" and not isinstance(bound.value, ast.Constant)
    moved = bound.value is not None and without(bound.value, *_CASTS)
    return begins or (isinstance(moved, ast.Attribute) and ast.unparse(moved) == ast.unparse(target))


RULES = rules_of(globals())
