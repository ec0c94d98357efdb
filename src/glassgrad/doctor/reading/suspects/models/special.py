"""Suspects about special models: own derivatives, gates, equations, steps of an ODE."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.nodes import factors_of, is_op, names_in, within
from glassgrad.doctor.reading.program import DEEPEST, Class, Function, Program, argument, constant
from glassgrad.doctor.reading.rule import Spot
from glassgrad.doctor.reading.suspects.form import look_at, operations, suspects, suspects_each, suspects_rows
from glassgrad.doctor.reading.suspects.lookup import functions, text
from glassgrad.doctor.reading.suspects.models.layers import (
    BENDS,
    MATRICES,
    applied,
    axes,
    forward_nodes,
    forwards,
    plain,
    rows,
)
from glassgrad.doctor.reading.values import axis_of, layer, returns

_GATE = re.compile(r"^(g|gate|gates|z|t|alpha|carry|transform|mix|update_gate|attn_gate|highway)\d?$")
_DERIVATIVE = re.compile(r"^d?(?P<of>[a-z]+?)_?(d|_)(?P<by>[xyzt]{1,2})$")
_FIELDS = {"u", "v", "w", "p", "q", "h", "f", "y", "psi", "phi", "rho"}


def _own(program: Program) -> Iterator[tuple[Function, Function]]:
    """Yield the forward and backward passes of the script's own autograd functions."""
    for owner in program.classes.values():
        if any(base.endswith("autograd.Function") or base == "Function" for base in owner.bases):
            forward, backward = owner.methods.get("forward"), owner.methods.get("backward")
            if forward is not None and backward is not None:
                yield forward, backward


# --- derivatives by hand ---


@suspects_rows("derivative written by hand", _own)
def _derivative(program: Program, _: Function, backward: Function) -> Iterator[Spot]:
    lines = [one for one in ast.walk(backward) if isinstance(one, ast.Assign | ast.Return) and one.value is not None]
    found = [one for one in lines if any(isinstance(part, ast.BinOp) for part in ast.walk(one))]
    yield from (look_at(one) for one in found[-2:] or list(returns(program, backward)))


@suspects_rows("saved tensors in another order", _own)
def _order_saved(program: Program, forward: Function, backward: Function) -> Iterator[Spot]:
    calls = within(forward, ast.Call)
    saves = [one for one in calls if applied(program, one)[0] == "saveforbackward"]
    saved = [text(one) for call in saves for one in call.args]
    for node in within(backward, ast.Assign):
        target = node.targets[0]
        tensors = text(node.value).endswith("saved_tensors")
        if tensors and isinstance(target, ast.Tuple):
            names = [text(one) for one in target.elts]
            if names != saved and sorted(names) == sorted(saved):
                yield look_at(node, *saves[:1], saved=", ".join(saved))


@suspects_rows("gradients in another order", _own)
def _order_returned(program: Program, forward: Function, backward: Function) -> Iterator[Spot]:
    given = [one.arg for one in forward.args.args[1:]]
    for node in returns(program, backward):
        parts = node.value.elts if isinstance(node.value, ast.Tuple) else []
        places = [_named_after(text(one), given) for one in parts]
        known = [(at, one) for at, one in enumerate(places) if one is not None]
        if len(known) > 1 and any(at != one for at, one in known) and len(parts) == len(given):
            yield look_at(node, given=", ".join(given))


def _named_after(text: str, given: list[str]) -> int | None:
    """Return the index of the input that a gradient is named after, as in `grad_weight`."""
    alike = {"x": "input", "inp": "input", "w": "weight", "b": "bias"}
    inner = re.sub(r"^(grad_|d_|g_|grad)|_?grad$|^d(?=[wxb]$)", "", text)
    wanted, names = alike.get(inner, inner), [alike.get(one, one) for one in given]
    return names.index(wanted) if wanted in names and inner != text else None


# --- gates and experts ---


@suspects_each("parts of a gate", operations(ast.Add | ast.Sub))
def _gate(program: Program, node: ast.BinOp) -> object:
    """Find `g * a + g * b`, and `g * a + (1 - g) * b` with a gate that no sigmoid bounds."""
    owner = program.owner(node)
    sides = [[text(part) for part in factors_of(one)] for one in (node.left, node.right)]
    if owner is None or not owner.is_module or min(map(len, sides)) < 2:
        return False
    names = [next((one for one in side if _GATE.match(one.replace("self.", ""))), "") for side in sides]
    rest = next((one for side in sides for one in side if re.match(r"1(\.0)? [-+] ", one)), "")
    gate = re.sub(r"^1(\.0)? [-+] ", "", rest)
    value = _value_named(program, node, gate) if gate.isidentifier() else None
    raw = value is not None and applied(program, value)[0] in MATRICES | {"relu", "tanh"}
    turned = "+" in rest and gate in names
    return ((names[0] and names[0] == names[1]) or raw or turned) and look_at(node, gate=names[0] or gate)


def _value_named(program: Program, node: ast.AST, name: str) -> ast.expr | None:
    found = [one for one in within(node, ast.Name) if one.id == name]
    return program.value_of(found[0]) if found else None


@suspects_rows("router without a gradient", forwards)
def _router(program: Program, owner: Class, forward: Function) -> Iterator[Spot]:
    """Find experts chosen by argmax, or by the indices of topk alone, in a model with a gate."""
    if not re.search(r"expert|router|moe|gate", text(owner.node), re.IGNORECASE):
        return
    for node in within(forward, ast.Assign):
        target, value = node.targets[0], node.value
        kind, _ = applied(program, value)
        part = value.value if isinstance(value, ast.Subscript | ast.Attribute) else value
        indices = re.search(r"\[1\]$|indices$", text(value)) and applied(program, part)[0] == "topk"
        ignored = kind == "topk" and isinstance(target, ast.Tuple) and text(target.elts[0]).startswith("_")
        if indices or ignored or kind == "argmax":
            yield look_at(node)


@suspects_each("weights of a mixture along the wrong axis", Program.modules)
def _mixture_axis(program: Program, owner: Class) -> Iterator[Spot]:
    """Find the softmax of a gate or of the weights of a mixture, whose axis decides what adds up to 1."""
    for node in within(owner.node, ast.Call):
        name, operand = applied(program, node)
        said = text(operand)
        if name in {"softmax", "logsoftmax", "gumbelsoftmax"}:
            along = axis_of(program, node)
            gate = re.search(r"gate|router|\bpi|mix|alpha|expert", said, re.IGNORECASE)
            if gate and (along is None or constant(along) in {0, 1, 2}):
                yield look_at(node)


# --- differential equations ---


def _gradient_calls(program: Program) -> Iterator[tuple[ast.Assign, ast.Call]]:
    for node in program.every(ast.Assign):
        value = node.value
        value = value.value if isinstance(value, ast.Subscript) else value
        called = text(value.func) if isinstance(value, ast.Call) and len(value.args) >= 2 else ""
        derives = re.search(r"(^|[._])(grad|gradient|derivative|diff|deriv|d)s?$", called)
        if isinstance(value, ast.Call) and derives:
            yield node, value


@suspects_rows("derivative by another variable", _gradient_calls)
def _by_another(program: Program, node: ast.Assign, call: ast.Call) -> object:
    """Find `u_xx = grad(u_t, x)` and `u_t = grad(u, x)`, whose names say something else."""
    found = _DERIVATIVE.match(text(node.targets[0]))
    of, by = (text(one).removesuffix(".sum()") for one in call.args[:2])
    if found is None or by not in {"x", "y", "z", "t"}:
        return False
    inner = _DERIVATIVE.match(of)
    before = inner["by"] if inner is not None else ""
    return len(before) + 1 == len(found["by"]) and sorted(before + by) != sorted(found["by"]) and look_at(node)


@suspects("columns of the inputs exchanged")
def _columns(program: Program) -> Iterator[Spot]:
    """Find `u_t = g[:, 0:1]` though x is the first column of what the network gets."""
    orders = []
    for call in program.calls:
        name, operand = applied(program, call)
        if name in {"cat", "stack", "concat"} and isinstance(operand, ast.List | ast.Tuple):
            names = [text(one).split(".")[-1] for one in operand.elts]
            orders += [names] if set(names) <= {"x", "y", "z", "t"} and len(names) > 1 else []
    for node in program.every(ast.Assign):
        found = _DERIVATIVE.match(text(node.targets[0]))
        column = re.search(r"\[(?::|\.\.\.), (\d)(:\d)?\]", text(node.value))
        if found is not None and column is not None and orders:
            name = orders[0][int(column[1])] if int(column[1]) < len(orders[0]) else ""
            if name and found["by"][-1] != name:
                yield look_at(node, name=name)


@suspects_each("gradient of a mean", ast.Call)
def _of_mean(program: Program, call: ast.Call) -> Iterator[Spot]:
    full = program.names.full(call.func)
    first = call.args[0] if call.args else argument(call, "outputs")
    if full == "torch.autograd.grad" and isinstance(first, ast.Call):
        by = argument(call, "inputs", 1)
        name, _ = applied(program, first)
        if name == "mean" and by is not None and not re.search("param|weight", text(by)):
            yield look_at(call)


@suspects("second derivative of a piecewise linear net")
def _kinked(program: Program) -> Iterator[Spot]:
    """Find rectifiers in a program that differentiates its network twice."""
    twice = [one for one, _ in _gradient_calls(program) if re.search(r"_?([xyt])\1$", text(one.targets[0]))]
    if twice or any(_is_second_derivative(program, one) for one in program.calls):
        made = [one for row in rows(program) for _, one in row]
        made += [one.args[0] for one in program.calls_of(".append") if one.args]
        for one in made:
            found = layer(program, one)
            if found is not None and found.call is one and plain(found.name) in {"relu", "leakyrelu"}:
                yield look_at(one)
        for _, forward in forwards(program):
            for node in within(forward, ast.Call):
                if applied(program, node)[0] in {"relu", "leakyrelu"}:
                    yield look_at(node)
        handed = list(_handed_over(program))
        yield from (look_at(one) for one, _ in handed if {name for _, name in handed} <= {"relu", "leakyrelu"})


def _handed_over(program: Program) -> Iterator[tuple[ast.expr, str]]:
    """Yield the activations that a program hands on without a call, as in `act = nn.ReLU`, each with its name."""
    for one in (*program.every(ast.Attribute), *program.every(ast.Name)):
        outer, full = program.parents.get(one), program.names.full(one)
        called = isinstance(outer, ast.Call) and outer.func is one
        if full.startswith("torch.") and plain(last(full)) in BENDS and not called:
            yield one, plain(last(full))


def _is_second_derivative(program: Program, call: ast.Call) -> bool:
    """Tell whether a call differentiates a derivative by an input: `grad(u_x, x)` behind `u_x = grad(u, x)`."""
    by = argument(call, "inputs", 1) if _derives(program, call) else None
    of = call.args[0] if call.args else argument(call, "outputs")
    if by is None or of is None or re.search(r"param|weight|theta|model|net\b", text(by)):
        return False
    for _ in range(DEEPEST):
        if isinstance(of, ast.Name):
            of = program.value_of(of)
        elif isinstance(of, ast.Subscript) or (isinstance(of, ast.Call) and applied(program, of)[0] == "sum"):
            of = of.value if isinstance(of, ast.Subscript) else applied(program, of)[1]
        else:
            break
    if not isinstance(of, ast.Call) or not _derives(program, of):
        return False
    inner = of.args[0] if of.args else argument(of, "outputs")
    before = argument(of, "inputs", 1)
    of_loss = inner is not None and re.search(r"loss|criterion|entropy", text(inner))
    return before is not None and not of_loss and not re.search(r"param|weight|theta|model|net\b", text(before))


def _derives(program: Program, call: ast.Call) -> bool:
    """Tell whether a call is `autograd.grad`, or a function of the script that gives what it returns."""
    if program.names.full(call.func) == "torch.autograd.grad":
        return True
    function = program.functions.get(call.func.id) if isinstance(call.func, ast.Name) else None
    given = [one.value for one in returns(program, function)] if function is not None else []
    values = [program.written(one) for one in given]
    parts = [one.value if isinstance(one, ast.Subscript) else one for one in values]
    if not bool(parts):
        return False
    return all(isinstance(one, ast.Call) and program.names.full(one.func) == "torch.autograd.grad" for one in parts)


@suspects_each("residual of an equation", ast.Assign | ast.Return)
def _equation(program: Program, node: ast.Assign | ast.Return) -> object:
    """Find the sum of derivatives that is to be zero."""
    value = node.value
    names = names_in(value) if isinstance(value, ast.BinOp) else set()
    found = {name for name in names if (match := _DERIVATIVE.match(name)) and match["of"] in _FIELDS}
    sums = any(is_op(one, ast.Add | ast.Sub) for one in ast.walk(node))
    second = any(len(name) > 3 and name[-1] == name[-2] for name in found)
    return sums and found and (second or len(found) > 1)


# --- steps of an ODE ---


@suspects_each("step of an integrator", functions)
def _integrator(program: Program, function: Function) -> Iterator[Spot]:
    """Find Runge-Kutta weights that are not 1, 2, 2, 1, and a step of a vector field without its size."""
    names = _read(function, stores=True)
    sized = next((name for name in ("dt", "h", "step_size") if name in names), "")
    used = bool(sized) and sized in _read(function, stores=False)
    slopes = {"k1", "k2", "k3", "k4"} <= names
    for node in within(function, ast.stmt) if sized or slopes else ():
        value = node.value if isinstance(node, ast.Assign | ast.Return) else None
        said = text(node) if value is not None else ""
        adds_up = (
            slopes
            and all(name in said.split(" = ")[-1] for name in ("k1", "k2", "k3", "k4"))
            and not _is_fourth_order(said)
        )
        full = slopes and re.match(r"k[23] = .*\+ \(?(dt|h) \* (self\.)?k[12]\b", said)
        whole = full and not re.search(r"/ 2|0\.5", said)
        bare = sized and not used and re.match(r"(\w+) = \1 \+ [\w.]+\(", said)
        if adds_up or whole or bare:
            yield look_at(node)


def _is_fourth_order(text: str) -> bool:
    doubled = r"k1 \+ 2(\.0)? \* k2 \+ 2(\.0)? \* k3 \+ k4|2(\.0)? \* \(k2 \+ k3\)|k2 \* 2 \+ k3 \* 2"
    return "6" in text and bool(re.search(doubled, text))


def _read(function: Function, stores: bool) -> set[str]:
    """Return the names that a function reads, or those that it sets and gets."""
    given = {one.arg for one in function.args.args} if stores else set()
    kind = ast.Store if stores else ast.Load
    return given | {one.id for one in within(function, ast.Name) if isinstance(one.ctx, kind)}


# --- biases ---


@suspects_each("a column of biases beside a row", forward_nodes(ast.BinOp))
def _biases(program: Program, node: ast.BinOp) -> object:
    """Find `(a * b).sum(1) + self.bias(u)` with an embedding of one number, which has a second axis."""
    if not is_op(node, ast.Add):
        return False
    sides = (node.left, node.right)
    sums = [_is_flat_sum(program, one) for one in sides]
    return any(sums) and any(_bias(program, one) for one, row in zip(sides, sums, strict=True) if not row)


def _is_flat_sum(program: Program, node: ast.expr) -> bool:
    """Tell whether a value is a sum along an axis that does not stay."""
    held = program.written(node)
    if is_op(held, ast.Add):
        return any(_is_flat_sum(program, one) for one in (held.left, held.right))
    if not isinstance(held, ast.Call) or applied(program, held)[0] != "sum":
        return False
    return axes(program, held) in {(1,), (-1,)} and not any(one.arg == "keepdim" for one in held.keywords)


def _bias(program: Program, node: ast.expr) -> bool:
    """Tell whether a value is the output of an embedding of one number, or a sum with one."""
    held = program.written(node)
    if is_op(held, ast.Add):
        return any(_bias(program, one) for one in (held.left, held.right))
    found = layer(program, held.func) if isinstance(held, ast.Call) else None
    return found is not None and found.name == "Embedding" and constant(argument(found.call, "embedding_dim", 1)) == 1
