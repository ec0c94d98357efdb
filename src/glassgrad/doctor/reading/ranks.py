"""The number of axes of arrays, as far as the source tells it."""

from __future__ import annotations

import ast

from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.names import last, named
from glassgrad.doctor.reading.nodes import indices, is_op, method_of, object_of, within, without
from glassgrad.doctor.reading.program import Program, argument, constant, is_given
from glassgrad.doctor.reading.values import layer

_MADE = frozenset({"randn", "rand", "zeros", "ones", "empty", "full", "randint", "normal", "uniform"})
_ROWS = frozenset({"arange", "linspace", "randperm", "logspace", "permutation"})
_SAME = named(
    "float long int double half bool to cpu cuda clone detach contiguous relu sigmoid tanh exp log abs sqrt square sin "
    "cos neg astype round floor clamp log_softmax softmax requires_grad_ sign type copy"
)
_EACH = named("float long int double bool to type round sigmoid")
_REDUCING = named("sum mean amax amin prod std var norm logsumexp any all argmax argmin")
_DRAWN = {"uniform": 2, "normal": 2, "integers": 2, "standard_normal": 0, "random": 0, "permutation": 0, "choice": 1}
"""Methods of random generators, and the index of the size among their arguments."""
_LIBRARIES = "torch.", "numpy."
_DEEPEST = 16


def rank(program: Program, node: ast.expr | None, depth: int = 0) -> int | None:
    """Return the number of axes of an array; None if it is unknown. A number has none."""
    found = _rank(program, node, depth)
    if found is not None or depth or not isinstance(node, ast.Name | ast.Attribute | ast.Call):
        return found
    every = {_rank(program, one.node, 1) if not one.path else None for one in flow(program).ends(node)}
    return every.pop() if len(every) == 1 else None


def _rank(program: Program, node: ast.expr | None, depth: int) -> int | None:
    if depth > _DEEPEST:
        return None
    if isinstance(node, ast.Constant):
        return 0 if isinstance(node.value, int | float) else None
    if isinstance(node, ast.Name):
        return rank(program, program.value_of(node), depth + 1)
    if isinstance(node, ast.BinOp):
        return _product(program, node, depth)
    if isinstance(node, ast.UnaryOp):
        return rank(program, node.operand, depth + 1)
    if isinstance(node, ast.Compare) and len(node.comparators) == 1:
        return _larger(rank(program, node.left, depth + 1), rank(program, node.comparators[0], depth + 1))
    if isinstance(node, ast.Subscript):
        return _indexed(program, node, depth)
    return _called(program, node, depth) if isinstance(node, ast.Call) else None


def _larger(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else max(one, other)


def _product(program: Program, node: ast.BinOp, depth: int) -> int | None:
    left, right = rank(program, node.left, depth + 1), rank(program, node.right, depth + 1)
    if not isinstance(node.op, ast.MatMult):
        return _larger(left, right)
    return left + right - 2 if left in {1, 2} and right in {1, 2} else None


def _indexed(program: Program, node: ast.Subscript, depth: int) -> int | None:
    """Return the axes of `x[...]`: a number takes one away, a slice or a row of indices keeps it, None adds one."""
    if _is_best(node):
        return 1
    axes = rank(program, node.value, depth + 1)
    if axes is None:
        return None
    parts = indices(node)
    for part in parts:
        if isinstance(part, ast.Slice):
            continue
        if isinstance(part, ast.Constant) and part.value is None:
            axes += 1
            continue
        index = 0 if isinstance(constant(part), int) else rank(program, part, depth + 1)
        if index is None or index > 1:
            return None
        axes += index - 1
    return axes if axes >= 0 else None


def _called(program: Program, call: ast.Call, depth: int) -> int | None:
    full = program.names.full(call.func)
    if full.startswith(_LIBRARIES):
        return _function(program, call, last(full), depth)
    found = layer(program, call.func)
    if found is not None:
        return rank(program, call.args[0], depth + 1) if call.args and found.name == "Linear" else None
    return _method(program, call, depth) if isinstance(call.func, ast.Attribute) and not full else None


def _function(program: Program, call: ast.Call, name: str, depth: int) -> int | None:
    if name in _ROWS:
        return 1
    if name in _MADE:
        shape = argument(call, "size") or (call.args[-1] if name == "randint" and call.args else argument(call, "", 0))
        if isinstance(shape, ast.Tuple | ast.List):
            return len(shape.elts)
        sizes = [one for one in call.args if not isinstance(one, ast.Starred)]
        loose = name in {"randint", "full", "normal", "uniform"} or len(sizes) != len(call.args)
        counted = sizes and all(isinstance(constant(one), int) for one in sizes)
        return None if loose or not counted else len(sizes)
    if name in {"tensor", "array", "as_tensor", "FloatTensor", "from_numpy", "asarray"} and call.args:
        nested = _nested(call.args[0])
        return rank(program, call.args[0], depth + 1) if nested is None else nested
    if name == "eye":
        return 2
    if name in _SAME and call.args:
        return rank(program, call.args[0], depth + 1)
    if name in _REDUCING and call.args:
        return _reduced(call, rank(program, call.args[0], depth + 1), 1)
    return None


def _nested(node: ast.expr) -> int | None:
    if isinstance(node, ast.List | ast.Tuple):
        inner = [_nested(one) for one in node.elts]
        return None if not inner or None in inner or inner[0] is None else inner[0] + 1
    return 0 if isinstance(constant(node), int | float) else None


def _method(program: Program, call: ast.Call, depth: int) -> int | None:
    assert isinstance(call.func, ast.Attribute)
    name = call.func.attr
    if name in _DRAWN:
        return _drawn(program, call, depth)
    if name == "gather" and len(call.args) > 1:
        return rank(program, call.args[1], depth + 1) or (2 if _is_raised(call.args[1]) else None)
    if name in {"view", "reshape"} and call.args:
        return _reshaped(call)
    axes = rank(program, call.func.value, depth + 1)
    if name in _REDUCING and axes is not None:
        return _reduced(call, axes, 0)
    added = {"unsqueeze": 1} | dict.fromkeys(_SAME, 0)
    return axes + added[name] if axes is not None and name in added else None


def _reshaped(call: ast.Call) -> int | None:
    one = call.args[0]
    if len(call.args) == 1:
        return len(one.elts) if isinstance(one, ast.Tuple | ast.List) else 1 if constant(one) is not None else None
    return None if any(isinstance(part, ast.Starred) for part in call.args) else len(call.args)


def _reduced(call: ast.Call, axes: int | None, place: int) -> int | None:
    if axes is None or is_given(call, "keepdim") or is_given(call, "keepdims"):
        return axes if axes is not None and constant(argument(call, "keepdim")) is True else None
    along = argument(call, "dim", place) or argument(call, "axis")
    if along is None:
        return 0
    count = len(along.elts) if isinstance(along, ast.Tuple | ast.List) else 1
    return axes - count if axes >= count else None


def is_column(program: Program, node: ast.expr | None, depth: int = 0) -> bool:
    """Tell whether a value is the output of a linear layer with one unit, of shape (N, 1)."""
    if depth > _DEEPEST:
        return False
    if isinstance(node, ast.Name):
        return is_column(program, program.value_of(node), depth + 1)
    if isinstance(node, ast.Compare):
        return is_column(program, node.left, depth + 1)
    if not isinstance(node, ast.Call):
        return False
    if method_of(node) == "gather" and len(node.args) > 1:
        return _is_raised(node.args[1])
    full = program.names.full(node.func)
    if (not full and method_of(node) in _EACH) or (full in {"torch.sigmoid", "torch.round"} and node.args):
        return is_column(program, program.operand(node), depth + 1)
    return _ends_in_one(program, node, depth)


def _ends_in_one(program: Program, call: ast.Call, depth: int) -> bool:
    found = layer(program, call.func)
    if found is None:
        return False
    if found.owner is not None:
        forward = program.method(found.owner, "forward")
        given = [one.value for one in ast.walk(forward) if isinstance(one, ast.Return)] if forward is not None else []
        return bool(given) and all(is_column(program, one, depth + 1) for one in given)
    made = found.call
    if found.name == "Sequential":
        parts = [layer(program, one) for one in made.args]
        linear = [one for one in parts if one is not None and one.name == "Linear"]
        if not linear or None in parts or any(one is not None and one.name == "Flatten" for one in parts[-1:]):
            return False
        last_one = parts[-1]
        return last_one is not None and last_one.name in {"Linear", "ReLU", "Sigmoid", "Tanh"} and _one(linear[-1].call)
    return found.name == "Linear" and _one(made)


def _one(call: ast.Call) -> bool:
    return constant(argument(call, "out_features", 1)) == 1


def shape(program: Program, node: ast.expr | None, depth: int = 0) -> tuple[int, ...] | None:
    """Return the shape of an array that the source makes with written sizes; None if it is unknown."""
    if depth > _DEEPEST:
        return None
    if isinstance(node, ast.Name):
        return shape(program, program.value_of(node), depth + 1)
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
        sides = [shape(program, one, depth + 1) for one in (node.left, node.right)]
        known = [one for one in sides if one is not None]
        return max(known, key=len) if known else None
    return _made_shape(program, node, depth) if isinstance(node, ast.Call) else None


def _made_shape(program: Program, call: ast.Call, depth: int) -> tuple[int, ...] | None:
    full = program.names.full(call.func)
    name = last(full) if full.startswith(_LIBRARIES) else method_of(call)
    if name in {"randn", "rand", "zeros", "ones", "empty", "randint", "normal", "uniform"}:
        given = argument(call, "size") or next((one for one in call.args if isinstance(one, ast.Tuple)), None)
        parts = call.args if name in {"randn", "rand"} else []
        parts = given.elts if isinstance(given, ast.Tuple) else parts
        sizes = [size for one in parts if isinstance(size := constant(one), int)]
        return tuple(sizes) if sizes and len(sizes) == len(parts) else None
    if name in {"from_numpy", "as_tensor", "FloatTensor"} and call.args:
        return shape(program, call.args[0], depth + 1)
    held = object_of(call) if name in _SAME and not full else None
    return shape(program, held, depth + 1)


def _is_best(node: ast.Subscript) -> bool:
    """Tell whether an expression is `x.max(1)[0]`, which has one number for each example."""
    call = node.value
    if not isinstance(call, ast.Call) or method_of(call) not in {"max", "min"} or is_given(call, "keepdim", 1):
        return False
    return constant(argument(call, "dim", 0)) == 1 and isinstance(constant(node.slice), int)


def _is_raised(node: ast.expr) -> bool:
    """Tell whether an expression is a column: `a.unsqueeze(1)`, `a[:, None]` or `a.view(-1, 1)`."""
    node = without(node, "long", "to", "int")
    method = method_of(node)
    if isinstance(node, ast.Call):
        sizes = [constant(one) for one in node.args]
        return (method == "unsqueeze" and sizes in ([1], [-1])) or (method in {"view", "reshape"} and sizes == [-1, 1])
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and len(node.slice.elts) == 2:
        first, second = node.slice.elts
        return isinstance(first, ast.Slice) and isinstance(second, ast.Constant) and second.value is None
    return False


def _drawn(program: Program, call: ast.Call, depth: int) -> int | None:
    """Return the number of axes of a sample from a random generator."""
    held, name = object_of(call), method_of(call)
    made = flow(program).origin(held) if held is not None else None
    maker = program.names.full(made.func) if isinstance(made, ast.Call) else ""
    if maker not in {"numpy.random.default_rng", "numpy.random.RandomState"}:
        return None
    size = argument(call, "size", _DRAWN[name])
    if size is None:
        return 0
    if name == "permutation":
        counted = isinstance(size, ast.Constant) or "len(" in ast.unparse(size)
        return 1 if counted else rank(program, size, depth + 1) or 1
    return len(size.elts) if isinstance(size, ast.Tuple) else 1 if isinstance(size, ast.Constant | ast.Name) else None


def has_row(program: Program, node: ast.expr) -> bool:
    """Tell whether a value has one axis, or is a sum of such a term and terms with unknown axes.

    If one of these terms is a column, the sum has as many columns as rows.
    """
    if rank(program, node) == 1 and not _is_single(program, node):
        return True
    for one in flow(program).origins(node):
        if is_op(one, ast.Add | ast.Sub | ast.Mult):
            sides = one.left, one.right
            ranks = [0 if _is_single(program, side) else rank(program, side) for side in sides]
            inner = any(isinstance(side, ast.BinOp) and has_row(program, side) for side in sides)
            if (1 in ranks or inner) and 2 not in ranks:
                return True
    return False


def _is_single(program: Program, node: ast.expr) -> bool:
    """Tell whether a value is computed from arrays of one element alone, such as `2 * torch.rand(1)`."""
    calls = [call for one in flow(program).origins(node) for call in within(one, ast.Call)]
    made = [one for one in calls if last(program.names.full(one.func)) in _MADE]
    return bool(made) and all([constant(size) for size in one.args] == [1] for one in made)
