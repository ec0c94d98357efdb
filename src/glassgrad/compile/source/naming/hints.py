"""Names for values without one in the user's source: from the call that made them, or from their use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from glassgrad.compile.front.origin import Origin
from glassgrad.compile.ir.graph import Instr, Var
from glassgrad.compile.source.functions import is_defined
from glassgrad.compile.source.rewriting.runs import Run, gives_the_value
from glassgrad.compile.source.statements import called_name
from glassgrad.ops.core import Array

_ACTIVATION_OPS = """
    tanh relu sigmoid gelu gelu_tanh silu softplus elu leaky_relu mish hardswish
"""
_ACTIVATIONS = frozenset(_ACTIVATION_OPS.split())
# op or method -> a noun for its result, if its own name is not a noun or already has a meaning in Python
_NOUNS_OF_OPS = """
    add:total subtract:difference multiply:product divide:ratio matmul:product power:power negative:negated
    sum:total max:largest min:smallest abs:absolute pow:power round:rounded where:chosen getitem:picked
    take_along_axis:picked reshape:reshaped permute_dims:transposed astype:converted broadcast_to:spread
    concat:joined square:squared reciprocal:inverse at_set:written einsum:product float:converted double:converted
    to:converted type:converted sqrt:root put_add:scattered slice:part log_softmax:log_probs softmax:probs
    rsqrt:inverse_root forward:result cross_entropy:losses
"""
_NOUNS = dict(pair.split(":") for pair in _NOUNS_OF_OPS.split())
# Calls that rearrange elements and reveal nothing about their meaning.
_ARRANGING_CALLS = """
    view reshape transpose permute flatten squeeze unsqueeze contiguous expand swapaxes mT unflatten movedim clone
    chunk split
"""
_ARRANGING = frozenset(_ARRANGING_CALLS.split())
_DECOMPOSED = "_decomposed"  # suffix of library functions that write a layer in smaller ops
_NO_ARRAYS = frozenset({"self", "gg", "glassgrad", "torch", "np", "nn", "F"})


def operand_hint(
    var: Var, users: Sequence[Instr], called: Callable[[Var], str | None], near: Callable[[Instr], Iterable[Var]]
) -> str | None:
    """Return the user's name for an unnamed value at its use, if that is unambiguous.

    `called` returns the names of the other values used there, which `near` finds.
    """
    for user in users:
        named = {called(other) for other in near(user) if other is not var}
        if not isinstance(user.where, Origin):
            continue
        texts = [text for text in user.where.place.operands if text.isidentifier() and text not in _NO_ARRAYS]
        free = [text for text in dict.fromkeys(texts) if text not in named]
        if len(free) == 1:
            return free[0]
    return None


def drawn_hint(var: Var, users: Sequence[Instr]) -> str:
    """Return a name for random numbers."""
    found = operand_hint(var, users, lambda other: other.name, Instr.reads)
    if found is not None and all(user.op != "less" for user in users):
        return found
    return "uniform" if any(user.op in {"less", "less_equal", "greater"} for user in users) else "noise"


def constant_hint(value: Array) -> str:
    """Return a name for a constant array."""
    flat = value.reshape(-1)
    if value.dtype == bool:
        return "mask"
    return "zeros" if not flat.any() else "ones" if (flat == 1).all() else "constant"


def hint(var: Var, instr: Instr, run: Run | None, users: Mapping[Var, Sequence[Instr]]) -> str:
    """Return a name for a value of the forward pass that no statement of the user names."""
    where = instr.where
    noun = _NOUNS.get(instr.op, instr.op)
    if run is None or not isinstance(where, Origin):
        return _plain(noun)
    target = run.statement.targets[0] if len(run.statement.targets) == 1 else None
    called = called_name(where.code, where.lasti)
    if run.statement.returns and instr is run.instrs[-1] and where.outer is not None and gives_the_value(run):
        # The result of the user's function or layer is named after it.
        called, target = called_name(*where.outer) or called, None
    if called is not None and len(called) > 1 and _ends_call(instr, run):
        called = called.lstrip("_")
        says_little = called in _ARRANGING or is_defined(called)
        return f"{target}_{called}" if says_little and target is not None else _plain(_NOUNS.get(called, called))
    inner = where.inner_variable
    if inner is not None and inner.isidentifier() and len(inner) > 1:
        return _plain(inner)
    arranges = instr.op in {"reshape", "permute_dims", "broadcast_to", "astype", "getitem"}
    if where.inner is not None and where.inner[0].co_name.endswith(_DECOMPOSED) and not arranges:
        return _plain(where.inner[0].co_name.removesuffix(_DECOMPOSED).strip("_"))
    if target is None or where.inner is not None:
        return _plain(noun)
    activates = any(user.op in _ACTIVATIONS and user in run.instrs for user in users.get(var, ()))
    return f"{target}_{'pre' if activates else 'arg'}"


def _plain(name: str) -> str:
    """Return a name, changed if it is the name of a helper."""
    return f"{name}_out" if is_defined(name) else name


def _ends_call(instr: Instr, run: Run) -> bool:
    """Tell whether an instruction is the last of one call in the user's code."""
    at = run.instrs.index(instr) + 1
    if at == len(run.instrs):
        return True
    now, after = instr.where, run.instrs[at].where
    assert isinstance(now, Origin)
    assert isinstance(after, Origin)
    return (now.code, now.lasti, now.call) != (after.code, after.lasti, after.call)
