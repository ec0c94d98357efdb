"""Suspects about blocks of transformers: order of query, key and value, einsum, biases, residuals, position tables."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.nodes import both_ways, is_op, within
from glassgrad.doctor.reading.program import Class, Program, constant, number
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import look_at, suspects_each, suspects_rows
from glassgrad.doctor.reading.suspects.lookup import text
from glassgrad.doctor.reading.suspects.sequences.attention import history, softmaxes
from glassgrad.doctor.reading.suspects.sequences.parts import dotted_in, inside
from glassgrad.doctor.reading.values import axis_of, layer, library_name

_ATTENDS = re.compile(r"self\.(?!\w*(norm|score|weight|mask|drop|pool))\w*(att|mha)\w*\(")
_PLACES = re.compile(r"pos|wpe|place")


def _role(node: ast.expr) -> str:
    """Return q, k or v for a variable or attribute of such a name; empty for others."""
    said = text(node).rpartition(".")[2].lower().strip("_")
    found = re.fullmatch(r"(q|k|v)s?\d?|(quer|key|val)\w*|(q|k|v)_\w+", said)
    return said[0] if found else ""


# --- query, key and value ---


@suspects_each("query, key and value in another order", ast.Call)
def _order(program: Program, call: ast.Call) -> object:
    """Find `attention(k, q, v)` or `scaled_dot_product_attention(q, v, k)`."""
    roles = [_role(one) for one in call.args[:3]]
    name = program.called(call)
    attends = re.search(r"att|dot_prod|mha", name.lower()) or name in {"forward", "__call__"}
    return attends and sorted(roles) == ["k", "q", "v"] and roles != ["q", "k", "v"] and _wants(program, call)


def _wants(program: Program, call: ast.Call) -> bool:
    """Tell whether a called function of the script has its parameters in the usual order, or is of the library."""
    callee = flow(program).callee(call)
    if callee is None:
        held = layer(program, call.func)
        return library_name(program, call) != "" or (held is not None and held.name == "MultiheadAttention")
    given = [one.arg for one in callee.function.args.args if one.arg != "self"][:3]
    return [_role(ast.Name(one)) for one in given] == ["q", "k", "v"]


@suspects_rows("keys times queries", softmaxes)
def _turned(program: Program, call: ast.Call, operand: ast.expr) -> Iterator[Spot]:
    """Find a softmax along the last axis of `k @ q.transpose(-2, -1)`."""
    for node in history(program, operand):
        pairs = [(one.left, one.right) for one in ast.walk(node) if is_op(one, ast.MatMult)]
        calls = [one for one in within(node, ast.Call) if program.called(one) in {"matmul", "bmm"}]
        pairs += [(one.args[0], one.args[1]) for one in calls if len(one.args) == 2]
        for left, right in pairs:
            base = right.func.value if isinstance(right, ast.Call) and isinstance(right.func, ast.Attribute) else right
            along = number(axis_of(program, call))
            if (_role(left), _role(base)) == ("k", "q") and along in {-1, 2, 3}:
                yield spot(program.statement(node), call, text=shown(node))


@suspects_rows("softmax over the queries of an einsum", softmaxes)
def _einsum(program: Program, call: ast.Call, operand: ast.expr) -> Iterator[Spot]:
    """Find `einsum("bhqd,bhkd->bhqk", q, k)` with a softmax along an axis that is not that of the keys."""
    for node in history(program, operand):
        for one in within(node, ast.Call):
            if program.called(one) == "einsum" and len(one.args) >= 3:
                along = number(axis_of(program, call))
                if along is not None and _over_queries(str(constant(one.args[0])), one, int(along)):
                    yield look_at(call, one)


def _over_queries(equation: str, call: ast.Call, along: int) -> bool:
    found = re.fullmatch(r"(\w+),(\w+)->(\w+)", equation.replace(" ", ""))
    if found is None or not -len(found[3]) <= along < len(found[3]):
        return False
    first, second = (found[1], found[2]) if _role(call.args[1]) != "k" else (found[2], found[1])
    letter = found[3][along]
    return letter in first and bool(set(second) - set(first))


# --- masks as sums ---


@suspects_rows("mask added to the scores", softmaxes)
def _added(program: Program, call: ast.Call, operand: ast.expr) -> Iterator[Spot]:
    """Find `scores + mask * -1e-9`, or a sum that hides what the mask keeps."""
    for node in history(program, operand):
        for one in within(node, ast.BinOp):
            if not is_op(one, ast.Mult):
                continue
            for mask, factor in both_ways(one):
                value, name = number(factor), text(mask)
                if value is None or not re.search(r"mask|pad|valid|tril|triu|causal|future", name):
                    continue
                turned = bool(re.match(r"\(?1(\.0)? - ", name))
                drops = bool(re.search(r"pad|triu|future", name))
                keeps = bool(re.search(r"attention_mask|valid|keep|tril", name))
                sense = (value < -50 and ((turned and drops) or (keeps and not turned))) or value > 50
                if -50 < value < 0 or sense:
                    yield spot(program.statement(node), call, text=shown(node))


# --- blocks ---


@suspects_each("attention without a residual", Program.modules)
def _no_residual(program: Program, owner: Class) -> Iterator[Spot]:
    """Find a block whose attention, or whose second part, is not added to its input."""
    function = owner.methods.get("forward")
    if function is None or not re.search(r"Block|Layer", owner.node.name):
        return
    said = text(function)
    if not _ATTENDS.search(said) or "+" not in said:
        return
    for node in inside(program, function, ast.Assign):
        if "+" in text(node.value):
            continue
        attends = _ATTENDS.search(text(node.value))
        target = node.targets[0]
        name = text(target.elts[0] if isinstance(target, ast.Tuple) else target)
        word = rf"\b{re.escape(name)}\b"
        over = name in dotted_in(node.value) and not re.search(r"resid|short|skip|ident|x0|inp", said)
        if attends and (over or not re.search(rf"\+ [^\n]*{word}|{word} \+|\+= [^\n]*{word}", said)):
            yield look_at(node)
            for use in inside(program, function, ast.Name) if not over else ():
                if use.id == name and use.lineno > node.lineno:
                    yield spot(use, node, text=shown(node))
                    break


@suspects_each("LayerNorm over the length", ast.Call)
def _length(program: Program, call: ast.Call) -> object:
    """Find `nn.LayerNorm(seq_len)`."""
    if library_name(program, call) != "LayerNorm" or not call.args:
        return False
    said = text(call.args[0])
    return re.search(r"seq_?len|max_?len|length|block_size|n_steps|context|\bT\b|window|time", said)


@suspects_each("class token at the other end", Program.modules)
def _class_token(program: Program, owner: Class) -> Iterator[Spot]:
    """Find `cat([x, cls], dim=1)` beside `x[:, 0]`, or `cat([cls, x], dim=1)` beside `x[:, -1]`."""
    said = text(owner.node)
    last = re.search(r"cat\([\[(]x, (self\.)?cls", said)
    first = re.search(r"cat\([\[(](self\.)?cls", said)
    for node in within(owner.node, ast.Subscript) if last or first else ():
        if re.search(r"\[:, (0|-1)(, :)?\]$", text(node)):
            end = "[:, -1" in text(node)
            if (last and not end) or (first and not last and end):
                yield look_at(node)


# --- tables of positions ---


@suspects_each("positions all alike", ast.Call)
def _alike(program: Program, call: ast.Call) -> Iterator[Spot]:
    """Find an embedding of positions that gets zeros or ones."""
    held = layer(program, call.func) if call.args and isinstance(call.func, ast.Name | ast.Attribute) else None
    if held is None or held.name != "Embedding" or not _PLACES.search(text(call.func)):
        return
    for one in flow(program).ends(call.args[0]):
        if not isinstance(one.node, ast.Call):
            continue
        if program.called(one.node) in {"zeros_like", "ones_like", "zeros", "ones", "full"}:
            yield look_at(one.node, call)


@suspects_each("positions that nobody trains", Program.modules)
def _untrained(program: Program, owner: Class) -> Iterator[Spot]:
    """Find `self.position = torch.randn(...)`, which is no parameter."""
    if re.search(r"sin\(|requires_grad", text(owner.node)):
        return
    for name, bounds in owner.attributes.items():
        for one in bounds if _PLACES.search(name) or re.fullmatch(r"pe|cls\w*", name) else ():
            made = one.value
            if isinstance(made, ast.Call) and library_name(program, made) in {"randn", "rand", "zeros", "empty"}:
                yield spot(made, text=f"self.{name} = {shown(made)}")


@suspects_each("frequencies that grow", ast.Assign)
def _grow(program: Program, node: ast.Assign) -> object:
    """Find `rate = 10000 ** (i / d)` that positions are multiplied by."""
    if not isinstance(node.value, ast.BinOp | ast.Call):
        return False
    if not re.match(r"(torch\.pow\()?10000(\.0)?(, | \*\* )\(?(torch|np|2|i)", text(node.value)):
        return False
    name, around = re.escape(text(node.targets[0])), text(program.around(node))
    return re.search(rf"\* {name}\b", around) and not re.search(rf"/ {name}\b", around)
