"""Reading of forward passes for suspects: which op or layer a call applies, along which axes, and what comes last."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from glassgrad.doctor.reading.names import named
from glassgrad.doctor.reading.nodes import Kind, callee_of, is_name, target_of, within
from glassgrad.doctor.reading.program import Class, Function, Program, argument, constant, is_given
from glassgrad.doctor.reading.values import layer, library_name, op, returns

BENDS = named(
    "relu relu6 leakyrelu prelu rrelu elu selu celu gelu silu mish sigmoid tanh softplus softsign hardtanh hardswish "
    "hardsigmoid logsigmoid glu swish sin"
)
"""Activations: the names of functions and classes in lower case, without underscores."""
MATRICES = named("linear lazylinear bilinear conv1d conv2d conv3d convtranspose1d convtranspose2d convtranspose3d")
NORMALISING = named("batchnorm1d batchnorm2d batchnorm3d layernorm groupnorm instancenorm1d instancenorm2d rmsnorm")
RESTING = NORMALISING | named("dropout dropout1d dropout2d dropout3d alphadropout identity flatten")
"""Layers that bend nothing."""
REDUCING = named("sum mean amax amin std var norm logsumexp prod median max min softmax logsoftmax normalize cumsum")
_SHAPES = named("squeeze view reshape flatten unsqueeze float contiguous transpose permute")
_LOSS = "loss", "criterion", "metric"


def plain(name: str) -> str:
    """Return the name of an op or a layer in lower case and without underscores, so that both have one name."""
    return name.replace("_", "").lower()


def applied(program: Program, node: ast.AST) -> tuple[str, ast.expr | None]:
    """Return the plain name of the op or library layer that a call applies, and its input; else an empty name."""
    if not isinstance(node, ast.Call):
        return "", None
    name, operand = op(program, node)
    found = layer(program, node.func) if not name else None
    if found is not None and found.owner is None:
        return plain(found.name), node.args[0] if node.args else None
    return plain(name), operand


def forwards(program: Program) -> Iterator[tuple[Class, Function]]:
    """Yield the modules of a script with their forward passes, without losses and metrics."""
    for owner in program.modules():
        forward = owner.methods.get("forward")
        if forward is not None and not any(one in owner.node.name.lower() for one in _LOSS):
            yield owner, forward


def in_forward(program: Program) -> Iterator[ast.Call]:
    """Yield the calls in the forward passes of modules."""
    return forward_nodes(ast.Call)(program)


def forward_nodes(kind: type[Kind]) -> Callable[[Program], Iterator[Kind]]:
    """Return a function that finds the nodes of a kind in the forward passes of modules."""
    return lambda program: (node for _, forward in forwards(program) for node in within(forward, kind))


def axes(program: Program, call: ast.Call) -> tuple[int, ...] | None:
    """Return the written axes of a reduction; empty if it has none, None if they are unknown."""
    place = 1 if program.names.full(call.func) else 0
    place += 1 if callee_of(call) in {"norm", "normalize"} else 0
    given = argument(call, "dim", place) or argument(call, "axis")
    if given is None:
        return None if is_given(call, "dim", place) else ()
    parts = given.elts if isinstance(given, ast.Tuple | ast.List) else [given]
    found = [constant(one) for one in parts]
    known = [one for one in found if isinstance(one, int) and not isinstance(one, bool)]
    return tuple(known) if len(known) == len(found) else None


def feeds_layer(program: Program, call: ast.expr) -> bool:
    """Tell whether a layer gets a value: in the call around it, or by the name that holds it."""
    outer = program.parents.get(call)
    if isinstance(outer, ast.Call) and call in outer.args and layer(program, outer.func) is not None:
        return True
    if isinstance(outer, ast.Call) and call in outer.args and applied(program, outer)[0] in BENDS:
        return feeds_layer(program, outer)
    target = target_of(outer)
    function = program.function(call)
    if not isinstance(target, ast.Name) or function is None:
        return False
    for node in within(function, ast.Call):
        given = node.args[0] if node.args else None
        later = is_name(given, target.id) and given.lineno > call.lineno
        if later and (layer(program, node.func) is not None or _is_part(program, node)):
            return True
    return False


def _is_part(program: Program, call: ast.Call) -> bool:
    """Tell whether a call is one of `self.part`, which may be a layer that another file defines."""
    func = call.func
    own = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self"
    return own and isinstance(func, ast.Attribute) and program.method(program.owner(call), func.attr) is None


def rows(program: Program) -> Iterator[list[tuple[str, ast.expr]]]:
    """Yield each Sequential and each list of layers as their plain names, with where each is made.

    A list that a loop extends ends in its first layer again.
    """
    for node in program.nodes:
        outer = program.parents.get(node)
        extends = getattr(getattr(outer, "func", None), "attr", "") == "extend"
        grows = extends or isinstance(outer, ast.Assign | ast.AugAssign)
        given: list[ast.expr] = node.elts if isinstance(node, ast.List) and grows else []
        if isinstance(node, ast.Call) and library_name(program, node) == "Sequential":
            given = node.args
        found = [(one, layer(program, one)) for one in given] if len(given) > 1 else []
        known = [(plain(held.name) if held is not None else "", one) for one, held in found]
        if known and (isinstance(node, ast.Call) or all(name for name, _ in known)):
            repeats = isinstance(node, ast.List) and bool(program.loops(node))
            yield [*known, known[0]] if repeats else known


def last_op(program: Program, node: ast.expr | None, depth: int = 0) -> tuple[str, ast.expr] | None:
    """Return the last op or layer that makes a value, through names, shapes and the script's modules."""
    if depth > 6 or node is None:
        return None
    if isinstance(node, ast.Name):
        return last_op(program, program.value_of(node), depth + 1)
    if not isinstance(node, ast.Call):
        return None
    found = layer(program, node.func)
    if found is not None and found.owner is not None:
        forward = program.method(found.owner, "forward")
        ends = [last_op(program, one.value, depth + 1) for one in returns(program, forward)] if forward else []
        return ends[-1] if ends and None not in ends else None
    if found is not None and found.name == "Sequential":
        return _last_layer(program, found.call, depth)
    name, operand = applied(program, node)
    return last_op(program, operand, depth + 1) if name in _SHAPES else (name, node) if name else None


def _last_layer(program: Program, row: ast.Call, depth: int) -> tuple[str, ast.expr] | None:
    parts = [one for one in row.args if getattr(layer(program, one), "name", "") not in {"Flatten", "Unflatten"}]
    found = layer(program, parts[-1]) if parts else None
    if found is None:
        return None
    if found.owner is not None or found.name == "Sequential":
        return last_op(program, ast.Call(parts[-1], [], []), depth + 1)
    return plain(found.name), parts[-1]


def models_called(program: Program) -> Iterator[ast.Call]:
    """Yield the calls of whole models: those outside of modules, and not of a part of one."""
    for call in program.calls:
        owner = program.owner(call)
        if (owner is None or not owner.is_module) and isinstance(call.func, ast.Name | ast.Attribute):
            found = layer(program, call.func)
            whole = found is not None and "forward" not in getattr(program.owner(found.call), "methods", ())
            if found is not None and whole and (found.owner is not None or found.name == "Sequential"):
                yield call
