"""Resolve the modules and optimizers of a training, and the numbers of its settings."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from glassgrad.doctor.reading.flow import EACH, Frame, Value, flow, frames_of
from glassgrad.doctor.reading.names import last, named
from glassgrad.doctor.reading.nodes import callee_of, is_name, is_negative, is_op, method_of, object_of, target_text
from glassgrad.doctor.reading.program import Class, Program, argument, constant, number

_SAME = named("to cuda cpu eval train double float half bfloat16 requires_grad_ apply contiguous share_memory compile")
_WRAPPERS = named("DataParallel DistributedDataParallel compile FullyShardedDataParallel")
_COPIES = named("copy.deepcopy copy.copy deepcopy torch.optim.swa_utils.AveragedModel")
_PARAMETERS = frozenset({"parameters", "named_parameters"})
_PLAIN = frozenset({"Parameter", "Module"})
_ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


@dataclass(frozen=True)
class Module:
    """A module as one object: the expression that makes it, the name of its class, and the class if the script has it.

    A copy has its own `made`, and the name and the class of the original. `call` gives the arguments.
    """

    made: Value
    name: str
    call: ast.Call
    owner: Class | None = None
    copied: Value | None = None


def modules(program: Program, value: Value | ast.expr, depth: int = 0) -> list[Module] | None:
    """Return the modules that a value can stand for; None if it can stand for something else."""
    found: list[Module] = []
    ends = flow(program).ends(value)
    for one in ends if depth < 6 else ():
        inner = None if one.path and one.path != (0,) else _module(program, one, depth)
        if inner is None:
            return None
        found += inner
    return found or None


_OBSERVATION = re.compile(r"^(s|state|obs|observation|ob)$", re.IGNORECASE)
_METHODS = named("float to cuda")
_CONVERSIONS = _METHODS | named("from_numpy tensor Tensor FloatTensor as_tensor Variable array asarray")


def sees_one(program: Program, owner: Class | None) -> bool:
    """Tell whether all calls of a module give it one observation and no batch: `policy(torch.from_numpy(state))`."""
    given = []
    for call in program.calls if owner is not None else ():
        made = modules(program, call.func) if call.args and isinstance(call.func, ast.Name | ast.Attribute) else None
        if made and all(one.owner is owner for one in made):
            given.append(call.args[0])
    return bool(given) and all(_OBSERVATION.match(_converted(one)) for one in given)


def _converted(node: ast.expr) -> str:
    """Return the name of what an expression converts to a tensor; empty for anything else."""
    while isinstance(node, ast.Call) and callee_of(node) in _CONVERSIONS:
        held = object_of(node) if callee_of(node) in _METHODS else None
        given = held if held is not None else node.args[0] if node.args else None
        if given is None:
            return ""
        node = given
    return node.id if isinstance(node, ast.Name) else ""


def _module(program: Program, one: Value, depth: int) -> list[Module] | None:
    call = one.node
    if not isinstance(call, ast.Call):
        return None
    full = program.names.full(call.func)
    name = last(full)
    if name in _WRAPPERS and call.args and full.startswith("torch."):
        return modules(program, Value(call.args[0], one.frame), depth + 1)
    if full in _COPIES and call.args:
        source = modules(program, Value(call.args[0], one.frame), depth + 1)
        return [Module(one, it.name, it.call, it.owner, it.made) for it in source] if source is not None else None
    if full == f"torch.nn.{name}" and name[:1].isupper() and name not in _PLAIN:
        return [Module(one, name, call)]
    if isinstance(call.func, ast.Name) and (owner := program.classes.get(call.func.id)) and owner.is_module:
        return [Module(one, call.func.id, call, owner)]
    if isinstance(call.func, ast.Attribute) and call.func.attr in _SAME and not full:
        return modules(program, Value(call.func.value, one.frame), depth + 1)
    return None


def contains(outer: Value, inner: Value) -> bool:
    """Tell whether a module is another one, or a part that the other makes in its call or its methods."""
    if outer.node is inner.node and (outer.frame == inner.frame):
        return True
    made: list[ast.expr] = [frame.call for frame in frames_of(inner.frame) if frame.outer == outer.frame]
    if outer.frame == inner.frame:
        made.append(inner.node)
    return bool(made) and any(node is one for node in ast.walk(outer.node) for one in made)


def related(one: Value, other: Value) -> bool:
    """Tell whether one of two modules contains the other."""
    return contains(one, other) or contains(other, one)


def parts(program: Program, made: Value) -> frozenset[Value]:
    """Return a module and all modules in it, including those that the script makes elsewhere and passes to it."""
    held = program.memo.setdefault("parts", {})
    assert isinstance(held, dict)
    if made not in held:
        held[made] = frozenset({made})
        held[made] = frozenset(_parts_of(program, made))
    found = held[made]
    assert isinstance(found, frozenset)
    return found


def _parts_of(program: Program, made: Value) -> Iterator[Value]:
    yield made
    inner: list[Value] = []
    owner = flow(program).class_of(made)
    if owner is not None:
        for name in owner.attributes:
            inner += flow(program).member(made, name)
    elif isinstance(made.node, ast.Call):
        given = [one.value if isinstance(one, ast.Starred) else one for one in made.node.args]
        inner += [Value(one, made.frame) for one in given if isinstance(one, ast.Name | ast.Attribute | ast.List)]
    for one in inner:
        each = Value(one.node, one.frame, (*one.path, EACH)) if isinstance(one.node, ast.List | ast.ListComp) else one
        for part in modules(program, each) or ():
            yield from parts(program, part.made)


def spread(program: Program, values: Iterable[Value]) -> set[Value]:
    """Return modules with all modules in them."""
    return {part for one in values for part in parts(program, one)}


# --- optimizers ---


def optimizer(program: Program, value: Value | ast.expr) -> Value | None:
    """Return the call that makes an optimizer of the library, if a value can only be this optimizer."""
    one = flow(program).end(value)
    return one if one is not None and makes_optimizer(program, one.node) else None


def makes_optimizer(program: Program, call: ast.AST | None) -> bool:
    """Tell whether a call makes an optimizer of the library."""
    full = program.names.full(call.func) if isinstance(call, ast.Call) else ""
    known = full.startswith("torch.optim.") and last(full)[:1].isupper()
    return known and "lr_scheduler" not in full and "swa_utils" not in full


def trained_by(program: Program, made: Value) -> list[Value] | None:
    """Return the modules and parameters that an optimizer gets; None if some of them are unknown."""
    call = made.node
    given = argument(call, "params", 0) if isinstance(call, ast.Call) else None
    found = None if given is None else _whose(program, Value(given, made.frame), 0)
    return None if found is None else list(spread(program, found))


def _whose(program: Program, value: Value, depth: int) -> list[Value] | None:
    found: list[Value] = []
    for one in flow(program).ends(value):
        inner = _whose_end(program, one, depth) if depth < 6 else None
        if inner is None:
            return None
        found += inner
    return found or None


def _whose_end(program: Program, one: Value, depth: int) -> list[Value] | None:
    node = one.node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PARAMETERS:
        held = modules(program, Value(node.func.value, one.frame))
        return [it.made for it in held] if held is not None else None
    parts = list(_parts(node))
    if not parts:
        return None
    found: list[Value] = []
    for part in parts:
        inner = _whose(program, Value(part, one.frame), depth + 1)
        if inner is None:
            return None
        found += inner
    return found


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the expressions with parameters in a list, a group, a filter or a chain."""
    if isinstance(node, ast.List | ast.Tuple):
        yield from (one.value if isinstance(one, ast.Starred) else one for one in node.elts)
    elif isinstance(node, ast.Dict):
        yield from (value for key, value in zip(node.keys, node.values, strict=True) if constant(key) == "params")
    elif isinstance(node, ast.ListComp | ast.GeneratorExp) and len(node.generators) == 1:
        yield node.generators[0].iter
    elif is_op(node, ast.Add):
        yield from (node.left, node.right)
    elif isinstance(node, ast.Call):
        name = callee_of(node)
        if name == "filter" and len(node.args) > 1:
            yield node.args[1]
        elif name in {"list", "tuple", "chain", "iter"}:
            yield from node.args


def stepped(program: Program, value: Value | ast.expr) -> tuple[Value | None, list[Value]]:
    """Return the call that makes an optimizer, and what the optimizer trains; nothing where these are unknown."""
    made = optimizer(program, value)
    return made, (trained_by(program, made) or []) if made is not None else []


# --- numbers ---


def setting(program: Program, value: Value | ast.expr | None, depth: int = 0) -> float | None:
    """Return the number that an expression stands for, including options, configurations and simple arithmetic."""
    one = flow(program).end(value) if value is not None and depth <= 6 else None
    if one is None:
        return None
    node = one.node
    if isinstance(node, ast.Constant):
        return number(node) if not one.path else None
    if is_negative(node):
        inner = setting(program, Value(node.operand, one.frame), depth + 1)
        return None if inner is None else -inner
    if isinstance(node, ast.BinOp):
        left, right = (setting(program, Value(side, one.frame), depth + 1) for side in (node.left, node.right))
        return _computed(node.op, left, right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and callee_of(node) in {"int", "float"}:
        return setting(program, Value(node.args[0], one.frame), depth + 1) if node.args else None
    return _option(program, node, one.frame, depth) if isinstance(node, ast.Attribute) else None


def _computed(operation: ast.operator, left: float | None, right: float | None) -> float | None:
    if left is None or right is None or (not right and isinstance(operation, ast.Div | ast.FloorDiv)):
        return None
    compute = _ARITHMETIC.get(type(operation))
    return None if compute is None else compute(left, right)


def _option(program: Program, node: ast.Attribute, frame: Frame | None, depth: int) -> float | None:
    """Return the default of a command-line option, or of a field of a settings class."""
    held = flow(program).end(Value(node.value, frame))
    made = held.node if held is not None else None
    if method_of(made) in {"parse_args", "parse_known_args"}:
        for call in program.calls_of(".add_argument"):
            names = {str(constant(given)).lstrip("-").replace("-", "_") for given in call.args}
            if node.attr in names or constant(argument(call, "dest")) == node.attr:
                return setting(program, argument(call, "default"), depth + 1)
        return None
    owner = flow(program).class_of(held) or program.classes.get(
        node.value.id if isinstance(node.value, ast.Name) else ""
    )
    return _field(program, owner, made, node.attr, depth)


def _field(program: Program, owner: Class | None, made: ast.expr | None, name: str, depth: int) -> float | None:
    given = argument(made, name) if isinstance(made, ast.Call) else None
    if given is not None:
        return setting(program, given, depth + 1)
    for node in owner.node.body if owner is not None else ():
        if (isinstance(node, ast.AnnAssign) and is_name(node.target, name)) or target_text(node) == name:
            assert isinstance(node, ast.Assign | ast.AnnAssign)
            return setting(program, node.value, depth + 1)
    return None
