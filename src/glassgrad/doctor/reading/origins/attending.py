"""Where a model of the next token sees it, and where a layer takes another axis for that of the examples."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from glassgrad.doctor.reading.names import named
from glassgrad.doctor.reading.origins.asked import Asked, Origin, called
from glassgrad.doctor.reading.program import Program, argument, constant, is_given
from glassgrad.doctor.reading.values import layer

_MASKS = named("mask src_mask attn_mask tgt_mask is_causal causal")
_ATTENTION = {
    "MultiheadAttention": 5,
    "TransformerEncoder": 1,
    "TransformerEncoderLayer": 1,
    "TransformerDecoder": 2,
    "TransformerDecoderLayer": 2,
}
"""Layers that attend, and the place of the mask among the arguments of a call."""
_RECURRENT = named("LSTM GRU RNN")


def ahead(asked: Asked) -> Iterator[Origin]:
    """Yield the calls that let each place see later ones, the likeliest first."""
    program = asked.program
    for call in program.calls:
        held = layer(program, call.func)
        if _is_open(program, call):
            yield Origin("nothing hides later places from the attention", call.lineno)
        elif held is not None and held.name in _RECURRENT and constant(argument(held.call, "bidirectional")) is True:
            yield Origin("the layer also reads backwards and is made", held.call.lineno)


def _is_open(program: Program, call: ast.Call) -> bool:
    """Tell whether a call attends, or runs a module of the script that takes a mask, and gets no mask."""
    if called(program, call) == "scaled_dot_product_attention":
        return not is_given(call, "attn_mask", 3) and not is_given(call, "is_causal", 5)
    held = layer(program, call.func)
    if held is None or held.call is call or any(one.arg in _MASKS for one in call.keywords):
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
        held = layer(program, call.func)
        entering = call.args[0] if call.args else None
        if held is None or held.owner is not None or entering is None or held.name not in {*_ATTENTION, *_RECURRENT}:
            continue
        first = constant(argument(held.call, "batch_first")) is True
        if first and _turned(program, entering):
            yield Origin(f"{held.name} takes the first axis for the examples and is made", held.call.lineno)


def _turned(program: Program, node: ast.expr) -> bool:
    """Tell whether the last op behind a value has exchanged its first axis with another one."""
    value = program.value_of(node) if isinstance(node, ast.Name) else node
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    axes = [constant(one) for one in value.args]
    name = value.func.attr
    return (name == "permute" and axes[:1] not in ([0], [])) or (name in {"transpose", "swapaxes"} and 0 in axes)
