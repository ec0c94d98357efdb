"""Names for values that the user's source gives none: what was called to make them, or what they are for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from glassgrad.compile.emit.numpy.runs import Run
from glassgrad.compile.emit.numpy.statements import called_name
from glassgrad.compile.graph import Instr, Var
from glassgrad.compile.origin import Origin

_ACTIVATIONS = frozenset({
    "tanh", "relu", "sigmoid", "gelu", "gelu_tanh", "silu", "softplus", "elu", "leaky_relu", "mish", "hardswish",
})  # fmt: skip
# op or method -> a noun for what it makes, where its own name is not one or has a meaning in Python already
_NOUNS = {
    "add": "total", "subtract": "difference", "multiply": "product", "divide": "ratio", "matmul": "product",
    "power": "power", "negative": "negated", "sum": "total", "max": "largest", "min": "smallest", "abs": "absolute",
    "pow": "power", "round": "rounded", "where": "chosen", "getitem": "picked", "take_along_axis": "picked",
    "reshape": "reshaped", "permute_dims": "transposed", "astype": "converted", "broadcast_to": "spread",
    "concat": "joined", "square": "squared", "reciprocal": "inverse", "at_set": "written",
    "einsum": "product", "float": "converted", "double": "converted", "exp": "powers", "log": "logs", "sqrt": "root",
    "put_add": "scattered", "slice": "part", "log_softmax": "log_probs", "softmax": "probs", "rsqrt": "inverse_root",
    "forward": "result", "cross_entropy": "losses",
}  # fmt: skip
# Calls that arrange elements anew and say nothing about what they mean.
_ARRANGING = frozenset({
    "view", "reshape", "transpose", "permute", "flatten", "squeeze", "unsqueeze", "contiguous", "expand", "swapaxes",
    "mT", "unflatten", "movedim", "clone", "to", "type", "chunk", "split",
})  # fmt: skip
_NO_ARRAYS = frozenset({"self", "gg", "glassgrad", "torch", "np", "nn", "F"})


def constant_hint(value: Any, users: Sequence[Instr], named: set[str]) -> str:
    """Return a name for an array of numbers known beforehand: what the user calls it, if that is clear."""
    for user in users:
        if not isinstance(user.where, Origin):
            continue
        texts = [text for text in user.where.place.operands if text.isidentifier() and text not in _NO_ARRAYS]
        free = [text for text in dict.fromkeys(texts) if text not in named]
        if len(free) == 1:
            return free[0]
    flat = value.reshape(-1)
    if value.dtype == bool:
        return "mask"
    return "zeros" if not flat.any() else "ones" if (flat == 1).all() else "constant"


def hint(var: Var, instr: Instr, run: Run | None, users: Mapping[Var, Sequence[Instr]]) -> str:
    """Return a name for a value of the forward pass that no statement of the user's names."""
    where = instr.where
    noun = _NOUNS.get(instr.op, instr.op)
    if run is None or not isinstance(where, Origin):
        return noun
    target = run.statement.targets[0] if len(run.statement.targets) == 1 else None
    called = called_name(where.code, where.lasti)
    if called is not None and len(called) > 1 and _ends_call(instr, run):
        called = called.lstrip("_")
        return f"{target}_{called}" if called in _ARRANGING and target is not None else _NOUNS.get(called, called)
    inner = where.inner_variable
    if inner is not None and inner.isidentifier() and len(inner) > 1:
        return inner
    if target is None or where.inner is not None:
        return noun
    activates = any(user.op in _ACTIVATIONS and user in run.instrs for user in users.get(var, ()))
    return f"{target}_{'pre' if activates else 'arg'}"


def _ends_call(instr: Instr, run: Run) -> bool:
    """Tell whether an instruction is the last that one call of the user's applied."""
    at = run.instrs.index(instr) + 1
    if at == len(run.instrs):
        return True
    now, after = instr.where, run.instrs[at].where
    assert isinstance(now, Origin)
    assert isinstance(after, Origin)
    return (now.code, now.lasti, now.call) != (after.code, after.lasti, after.call)
