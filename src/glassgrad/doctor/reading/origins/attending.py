"""Where a model of the next token sees it, and where a layer takes another axis for that of the examples."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TypeGuard

from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.names import named
from glassgrad.doctor.reading.nodes import is_op, method_of, names_in, set_by, within
from glassgrad.doctor.reading.origins.asked import Asked, Origin
from glassgrad.doctor.reading.origins.data import shifts
from glassgrad.doctor.reading.program import Program, argument, constant, is_given, place_of
from glassgrad.doctor.reading.values import layer, library_layer

_MASKS = named("mask src_mask attn_mask tgt_mask is_causal causal")
_OF_DECODERS = named("tgt_mask tgt_is_causal")
_ATTENTION = {
    "MultiheadAttention": 5,
    "TransformerEncoder": 1,
    "TransformerEncoderLayer": 1,
    "TransformerDecoder": 2,
    "TransformerDecoderLayer": 2,
    "Transformer": 3,
}
"""Layers that attend, and the place of the mask among the arguments of a call."""
_RECURRENT = named("LSTM GRU RNN")


def ahead(asked: Asked) -> Iterator[Origin]:
    """Yield the calls that let each place see later ones, the likeliest first."""
    program = asked.program
    if "repeat" in asked.finding.what:
        yield from shifts(asked, asked.from_(*asked.places.entering("forward")), "the tokens that enter are cut")
        return
    for call in program.calls:
        held = layer(program, call.func)
        if _is_open(program, call):
            yield Origin("nothing hides later places from the attention", call.lineno)
        elif held is not None and held.name in _RECURRENT and constant(argument(held.call, "bidirectional")) is True:
            yield Origin("the layer also reads backwards and is made", held.call.lineno)


def _is_open(program: Program, call: ast.Call) -> bool:
    """Tell whether a call attends, or runs a module of the script that takes a mask, and gets no mask."""
    if program.called(call) == "scaled_dot_product_attention":
        return not is_given(call, "attn_mask", 3) and not is_given(call, "is_causal", 5)
    held = layer(program, call.func)
    decodes = held is not None and held.owner is None and ("Decoder" in held.name or held.name == "Transformer")
    masks = _OF_DECODERS if decodes else _MASKS
    if held is None or held.call is call or any(one.arg in masks for one in call.keywords):
        return False
    if held.owner is None:
        place = _ATTENTION.get(held.name)
        return place is not None and argument(call, "", place) is None
    forward = program.method(held.owner, "forward")
    names = [one.arg for one in forward.args.args[1:]] if forward is not None else []
    places = [at for at, name in enumerate(names) if name in _MASKS]
    return bool(places) and argument(call, "", places[0]) is None


def batch_first(asked: Asked) -> Iterator[Origin]:
    """Yield the layers that take the first axis for the examples, behind an op that has put another one there."""
    program = asked.program
    for call in program.calls:
        held = library_layer(program, call.func) if call.args else None
        if held is None or held.name not in {*_ATTENTION, *_RECURRENT}:
            continue
        first = constant(argument(held.call, "batch_first")) is True
        if first and _turned(program, call.args[0]):
            yield Origin(f"{held.name} takes the first axis for the examples and is made", held.call.lineno)


def cut_anew(asked: Asked) -> Iterator[Origin]:
    """Yield the reshapes of the inputs in the models of the script."""
    program = asked.program
    for _, forward in program.forwards() if "first layer" in asked.finding.what else ():
        for call in within(forward, ast.Call):
            held = program.operand(call)
            inputs = isinstance(held, ast.Name) and program.is_parameter(forward, held.id)
            if program.called(call) in {"view", "reshape"} and inputs:
                yield Origin("the inputs are cut anew", call.lineno)


def along_batch(asked: Asked) -> Iterator[Origin]:
    """Yield where a value mixes examples: layers behind an exchange of axes, positions counted along the examples."""
    yield from batch_first(asked)
    program = asked.program
    for _, forward in program.forwards():
        for node in ast.walk(forward):
            length = _positions(program, node)
            if length is not None and isinstance(node, ast.expr) and _counts_examples(program, length):
                yield Origin("positions count the first axis", node.lineno)


def _positions(program: Program, node: ast.AST) -> ast.expr | None:
    """Return the length of `arange(length)` that an embedding gets, and that of `x + self.table[:length]`."""
    outer = program.parents.get(node)
    if isinstance(node, ast.Call) and program.called(node) == "arange":
        while isinstance(outer, ast.Call | ast.Attribute | ast.Subscript) and not _embeds(program, outer):
            outer = program.parents.get(outer)
        if _embeds(program, outer):
            return node.args[0] if len(node.args) == 1 else argument(node, "", 1)
        calls = [one for one in within(program.function(node) or node, ast.Call) if _embeds(program, one)]
        given = names_in(*(part for one in calls for part in one.args))
        return node.args[0] if len(node.args) == 1 and given & set_by(outer) else None
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and isinstance(node.slice, ast.Slice):
        return node.slice.upper if is_op(outer, ast.Add) else None
    return None


def _embeds(program: Program, node: ast.AST | None) -> TypeGuard[ast.Call]:
    held = library_layer(program, node.func) if isinstance(node, ast.Call) else None
    return held is not None and held.name == "Embedding" and held.call is not node


def _counts_examples(program: Program, length: ast.expr) -> bool:
    """Tell whether a length is that of the first axis of an argument, if nothing has exchanged its axes."""
    bound = program.bound(length)
    value = bound.value if bound is not None else length
    text = ast.unparse(value) if value is not None else ""
    parted = bound is not None and bound.item == 0
    axis = r"(?P<name>\w+)\.(shape|size\(\))" if parted else r"(?P<name>\w+)\.(shape\[0\]|size\(0\))"
    found = re.fullmatch(axis, text) or re.fullmatch(r"len\((?P<name>\w+)\)", text)
    function = program.function(length)
    if found is None or function is None or not program.is_parameter(function, found["name"]):
        return False
    own = [one.value for one in program.bindings(function, found["name"]) if one.line < length.lineno]
    calls = [call for call, _ in flow(program).callers(function)]
    given = [argument(call, found["name"], place_of(function, found["name"]) - 1) for call in calls]
    return None not in own and not any(_turned(program, one) for one in (*own, *given))


def _turned(program: Program, node: ast.expr | None) -> bool:
    """Tell whether the last op behind a value has exchanged its first axis with another one."""
    value = program.written(node)
    axes = [constant(one) for one in value.args] if isinstance(value, ast.Call) else []
    name = method_of(value)
    return (name == "permute" and axes[:1] not in ([0], [])) or (name in {"transpose", "swapaxes"} and 0 in axes)
