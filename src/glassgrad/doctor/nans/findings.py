"""Describe the origin of a NaN in words: one finding for each phase of a step."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from glassgrad.doctor.facts import Finding
from glassgrad.doctor.library import Array, Optimizer
from glassgrad.doctor.nans.tape_search import Tape, told, variable_of
from glassgrad.engine.reports.births import Origin, instead
from glassgrad.engine.reports.nonfinite import Birth, first_bad, has_bad, is_bad, place_in, shown_op
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.walks.anomaly import Backward, Forward

DATA = "Look at how the batch is made: a division by a deviation of 0, or a missing value that was read as NaN."
CHECKPOINT = "Go back to an earlier checkpoint."
RATE = "Lower the rate, or raise eps: the gradients are finite, but the rule divides by 0 or overflows."
_CODE = re.compile(r"(F\.)?\w+\(|x\b|1 /")
"""The prefixes of advice that is code."""
_FINITE = "Keep the operands finite."

Names = Mapping[int, str]
"""The names of parameters and buffers, by the ids of the tensors."""


def kind_of(array: Array, inf: bool = False) -> str:
    """Return the kind of bad value in an array: "NaN", or with `inf` "inf" if there is no NaN."""
    return "inf" if inf and not bool(np.isnan(array).any()) else "NaN"


def held(rule: str, what: str, array: Array | None, advice: str, inf: bool = False) -> Finding:
    """Say that a value was bad before any op ran."""
    array = np.asarray(array)
    index, count = first_bad(array, inf)
    kind = kind_of(array, inf)
    what = f"{what} {kind} in {count} of {array.size} places, first at {place_in(index)}"
    return Finding(rule.replace("NaN", kind), "error", what, advice)


def of_forward(
    loss: Tensor | None,
    names: Names,
    born: Birth | None,
    *,
    of: str = "",
    inf: bool = False,
    allow: Collection[str] = (),
    forward: Forward | None = None,
) -> Finding:
    """Say where the NaN or infinity of a loss comes from.

    Args:
        loss: with its tape, None if it has none.
        names: of the parameters.
        born: the bad values seen while the ops ran, if they were watched.
        of: " of the model" or " of the loss", if known.
        inf, allow: as for `detect_anomaly`.
        forward: the record of the forward pass, if the ops were watched.
    """
    tape = None if loss is None or loss.node is None else Tape(loss)
    if born is not None and not has_bad(loss, True):
        return _of_birth(born, of, ", though the loss is finite")
    origin = None if tape is None else tape.origin(inf, allow, forward)
    if tape is None or origin is None:
        return _of_birth(born, of)
    if origin.held is not None:
        if born is None or isinstance(origin.node.parents[origin.position], Tensor):
            return _of_held(tape, origin, names, inf)
        if born.node is None:
            return _of_birth(born, of, f"; it reaches the loss by {told(tape.chain(origin.node))}")
    node, birth = origin.node, origin.birth
    if forward is not None and (module := forward.module_of(node)):
        birth, of = replace(birth, module=module), " of the model"
    what, remedy = str(birth), instead(node)
    if origin.turned is not None:
        what += f"; {origin.turned}"
    source = tape.maker_of_infinity(origin) if birth.kind == "NaN" else None
    if source is not None:
        what += f"; the infinity comes from {shown_op(source.name, source.place)} at {source.place}"
        infinite = [at for at in source.parents if isinstance(at, Tensor) and np.isinf(at.array).any()]
        what += f", of {names.get(id(infinite[0]), 'a leaf')}, which holds it" if infinite else ""
        remedy = remedy or instead(source)
    chain = tape.chain(node) if node in tape.nodes else []
    what += f". To the loss: {told(chain)}" if len(chain) > 1 else ""
    kind = "NaN" if birth.kind == "NaN" or has_bad(loss) else "inf"
    return Finding(f"{kind} in the forward pass{of}", "error", what, _FINITE, str(birth.place), remedy=remedy)


def _of_birth(born: Birth | None, of: str, more: str = "") -> Finding:
    rule = f"{'NaN' if born is None or born.kind == 'NaN' else 'inf'} in the forward pass{of}"
    if born is None:
        return Finding(rule, "error", "the loss is not finite, but no observed op made it from finite numbers", DATA)
    remedy = instead(born.node) if born.node is not None else ""
    return Finding(rule, "error", f"{born}{more}", _FINITE, str(born.place), remedy=remedy)


def _of_held(tape: Tape, origin: Origin, names: Names, inf: bool) -> Finding:
    """Say that an operand was already bad: a parameter, or data."""
    place, parent = origin.node.place, origin.node.parents[origin.position]
    name = names.get(id(parent)) if isinstance(parent, Tensor) else None
    if name is not None:
        found = held("NaN in a parameter", f"{name} holds", origin.held, CHECKPOINT, inf)
    else:
        variable = variable_of(origin.node, origin.held)
        which = f"'{variable}', an operand" if variable else f"operand {origin.position + 1}"
        what = f"{which} of {origin.node.name} at {place.quoted()}, which no op with a gradient computed, holds"
        found = held("NaN in the data", what, origin.held, DATA, inf)
    chain = told(tape.chain(origin.node))
    return Finding(found.rule, "error", f"{found.what}. To the loss: {chain}", found.advice, str(place))


def of_backward(error: Exception, seen: Backward) -> Finding:
    """Say which rule made the first NaN, from the error that an observer of the walk raised."""
    what, _, _ = str(error).partition("\nNext: ")
    node, origin = seen.node, seen.origin
    if node is None or origin is None:
        return Finding("NaN in the backward pass", "error", what, _sentence(seen.advice))
    kind = "inf" if origin.kind != "NaN" and "makes NaN" not in what else "NaN"
    path = seen.to_the_loss(node)
    what = what.rstrip(".") + "."
    what += f" The cotangent came from the loss by {told(path[::-1])}." if len(path) > 1 else ""
    remedy = "safe_where(mask, f, x)" if origin.trap else instead(node)
    place = str(node.place)
    if origin.forward is not None:
        remedy, place = instead(origin.forward.node) or remedy, str(origin.forward.birth.place)
    return Finding(f"{kind} in the backward pass", "error", what, _sentence(seen.advice), place, remedy=remedy)


def _sentence(text: str) -> str:
    if _CODE.match(text):
        text = f"write {text}"
    return text[:1].upper() + text[1:].rstrip(".") + "." if text else ""


def of_update(optimizer: Optimizer, name: str, after: Any, before: Mapping[str, Any], place: str) -> Finding:
    """Say how an optimizer's step changed a parameter.

    Args:
        optimizer: the optimizer that took the step.
        name: name of the first bad parameter.
        after: its values now.
        before: by name, the inputs of the rule: the parameter, its gradient, the state; empty if unknown.
        place: the user's line that took the step.
    """
    kind = type(optimizer).__name__
    found = held(f"NaN in the step of {kind}", f"after {kind}'s step {name} holds", after, RATE, inf=True)
    index, _ = first_bad(np.asarray(after), True)
    numbers = [(what, _element(value, index)) for what, value in before.items()]
    told_ = ", ".join(f"{what} {value:.6g}" for what, value in numbers if value is not None)
    what = found.what + (f", where the rule was given: {told_}" if told_ else "")
    remedy = ""
    for group in getattr(optimizer, "param_groups", ()):
        if group.get("eps") is not None and not isinstance(group["eps"], tuple) and group["eps"] < 1e-30:
            remedy = f"{kind}(..., eps=1e-8)  # eps is {group['eps']}: an average of squares that is 0 divides by 0"
        elif not np.isfinite(group.get("lr", 0.0)):
            remedy = f"{kind}(..., lr=1e-3)  # lr is {group['lr']}"
    return Finding(found.rule, "error", what, found.advice, place, remedy=remedy)


def _element(value: Any, index: tuple[int, ...]) -> float | None:
    array = np.asarray(value)
    if array.dtype.kind not in "fiu":
        return None
    try:
        return float(array[index] if array.ndim else array)
    except IndexError:
        return None


def first_update(named: Mapping[str, Array]) -> str | None:
    """Return the name of the first tensor with a NaN, or else of the first with an infinity."""
    floats = {name: array for name, array in named.items() if array.dtype.kind in "fc"}
    bad = (name for inf in (False, True) for name, array in floats.items() if is_bad(array, inf).any())
    return next(bad, None)
