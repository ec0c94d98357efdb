"""bfloat16: how ops compute on numbers that are the upper half of a float32.

NumPy has no such dtype; `ml_dtypes` adds it, with kind "V". An op on bfloat16 computes in float32 and rounds its result
once, as in PyTorch; so do its derivative rules. Ops that only move numbers are unchanged. The first use of the dtype
wraps the primitives, so programs without bfloat16 pay nothing (docs/adr/031).
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from glassgrad.base.tables import words
from glassgrad.errors.packages import needed
from glassgrad.ops.core import INTERPRETERS, PRIMITIVES, Array, Primitive
from glassgrad.ops.shape import astype_p

NARROW = "V"
"""The kind of bfloat16. No other dtype of this kind gets into a Tensor."""
MOVES = frozenset(
    words("""
    reshape permute_dims broadcast_to copy alias flip getitem diagonal sliding_window astype view_bits roll
    as_strided mirror take_along_axis
    """)
)
"""Ops that only move numbers."""
PRODUCTS = frozenset(
    words("""
    matmul linear conv2d conv2d_input conv2d_weight scaled_dot_product_attention lstm gru rnn recurrence
    """)
)
"""Ops whose parts and derivative rules are products and remain products of bfloat16."""
_SINGLE = np.dtype(np.float32)
_LOCK = threading.Lock()
_BEFORE: dict[Primitive, dict[str, Any]] = {}


@functools.cache
def bfloat16() -> np.dtype[Any]:
    """Return the dtype, after teaching it to all ops; the engine has imported them by then.

    Raises:
        PackageError: where `ml_dtypes` is not installed.
    """
    with needed("ml_dtypes", "bfloat16"):
        import ml_dtypes

    with _LOCK:
        for prim in PRIMITIVES.values():
            _BEFORE[prim] = {name: value for name, value in prim.__dict__.items() if name != "traits"}
            _prepare(prim)
    made: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return made


def forget() -> bool:
    """Unwrap the primitives, as before the first use of bfloat16, to measure them; return whether they were wrapped."""
    with _LOCK:
        known = bool(_BEFORE)
        for prim, attributes in _BEFORE.items():
            prim.__dict__.clear()
            prim.__dict__.update(attributes)
        _BEFORE.clear()
        bfloat16.cache_clear()
    return known


def is_bfloat16(dtype: np.dtype[Any]) -> bool:
    """Tell whether the dtype of any array is bfloat16; if so, teach it to the ops."""
    return dtype.kind == NARROW and dtype.name == "bfloat16" and dtype == bfloat16()


def finfo(dtype: Any) -> Any:
    """Return the `np.finfo` of a floating-point dtype, including bfloat16: eps, tiny, min, max, bits.

    Example:
        >>> import glassgrad as gg
        >>> float(gg.finfo(gg.bfloat16).eps)
        0.0078125
    """
    dtype = np.dtype(dtype)
    if not is_bfloat16(dtype):
        return np.finfo(dtype)
    import ml_dtypes

    return ml_dtypes.finfo(dtype)


def result_type(*values: Any) -> np.dtype[Any]:
    """Return the result dtype of arrays, dtypes and numbers: like `np.result_type`, but also for bfloat16.

    Example:
        >>> import glassgrad as gg
        >>> gg.result_type(gg.ones(2, dtype=gg.bfloat16), 1.5), gg.result_type(gg.bfloat16, gg.float32)
        (dtype(bfloat16), dtype('float32'))
    """
    plain = [x.array if hasattr(x, "_tracks") else x for x in values]
    kinds = [np.dtype(x) if isinstance(x, np.dtype | type) else getattr(x, "dtype", None) for x in plain]
    if not any(kind is not None and kind.kind == NARROW for kind in kinds):
        return np.result_type(*plain)
    wide_ones = [kind for kind in kinds if kind is not None and kind.kind in "fc"]
    if wide_ones:
        return np.result_type(_SINGLE, *wide_ones)
    return np.result_type(_SINGLE, np.complex64) if complex in map(type, plain) else bfloat16()


def promote_types(type1: Any, type2: Any) -> np.dtype[Any]:
    """Return the common dtype of two dtypes: like `np.promote_types`, with bfloat16 as in PyTorch.

    Example:
        >>> import glassgrad as gg
        >>> gg.promote_types(gg.bfloat16, gg.float16)
        dtype('float32')
    """
    return result_type(np.dtype(type1), np.dtype(type2))


def is_narrow(x: Any) -> bool:
    """Tell whether an object has the dtype bfloat16."""
    return getattr(getattr(x, "dtype", None), "kind", None) == NARROW


def wide(x: Any) -> Any:
    """Convert bfloat16 to float32, also inside tuples and lists; return anything else unchanged."""
    if type(x) is tuple or type(x) is list:
        return type(x)(map(wide, x))
    if not is_narrow(x):
        return x
    if isinstance(x, np.ndarray | np.generic) and type(x) not in INTERPRETERS:
        return x.astype(_SINGLE)
    return astype_p(x, dtype=_SINGLE) if type(x) in INTERPRETERS else x  # a placeholder has no values


def rounded(x: Any) -> Any:
    """Convert floats to bfloat16; return anything else unchanged."""
    if getattr(getattr(x, "dtype", None), "kind", None) != "f":
        return x
    return astype_p(x, dtype=bfloat16()) if type(x) in INTERPRETERS else np.asarray(x).astype(bfloat16())


def beside(bias: Any, y: Any) -> Any:
    """Round what is added to a bfloat16 product to bfloat16; otherwise it would widen the sum to float32."""
    return rounded(bias) if is_narrow(y) else bias


def stays(prim: Primitive, args: Iterable[Any]) -> bool:
    """Tell whether a primitive takes its arguments in bfloat16 while a step is traced."""
    if prim.name in MOVES:
        return True
    return prim.name in {"matmul", "concat"} and all(is_narrow(arg) for arg in args)


def rounds(args: Iterable[Any], params: Any) -> bool:
    """Tell whether a result is in bfloat16: if all floats among the arguments are, apart from weak ones (numbers)."""
    if "dtype" in params:
        return False
    kinds = [arg.dtype.kind for arg in args if hasattr(arg, "dtype") and not getattr(arg, "weak", False)]
    return NARROW in kinds and not {"f", "c"} & set(kinds)


def in_single(compute: Callable[..., Any], args: Sequence[Array], params: Any, first: bool = False) -> Any:
    """Compute in float32, then round every result, or only the first."""
    found = compute(*map(wide, args), **params)
    if not rounds(args, params):
        return found
    if first and type(found) is tuple:
        return rounded(found[0]), *found[1:]
    return tuple(map(rounded, found)) if type(found) is tuple else rounded(found)


# --- around the primitives ------------------------------------------------------------------------


def _prepare(prim: Primitive) -> None:
    """Wrap a primitive to compute in float32."""
    if prim.name in MOVES:
        return
    prim.evaluate = _evaluate(prim, prim.evaluate)
    prim.__dict__.pop("traits", None)  # recording looks up `evaluate` there
    if prim.joint_vjp is not None:  # for plain arrays, products included
        prim.joint_vjp = _rule(prim.joint_vjp)
    if prim.name in PRODUCTS:
        return
    if prim.decompose is not None:
        prim.decompose = _decompose(prim.decompose)
    if prim.vjps is not None:
        prim.vjps = tuple(None if rule is None else _rule(rule, prim) for rule in prim.vjps)
    if prim.jvps is not None:
        prim.jvps = tuple(None if rule is None else _rule(rule, prim) for rule in prim.jvps)
    if prim.joint_jvp is not None:
        prim.joint_jvp = _rule(prim.joint_jvp)


def _evaluate(prim: Primitive, evaluate: Callable[..., Any]) -> Callable[..., Any]:
    fused = prim.decompose is not None

    @functools.wraps(evaluate)
    def narrow_or_not(*args: Any, **params: Any) -> Any:
        for arg in args:
            if is_narrow(arg):
                break
        else:
            return evaluate(*args, **params)
        if not fused:
            return in_single(evaluate, args, params)
        y, residuals = evaluate(*map(wide, args), **params)
        if rounds(args, params):
            y = (rounded(y[0]), *y[1:]) if type(y) is tuple else rounded(y)
        return y, residuals

    return narrow_or_not


def bare(prim: Primitive) -> Callable[..., Any]:
    """Return the primitive's function for arrays that are not bfloat16."""
    found: Callable[..., Any] = getattr(prim.evaluate, "__wrapped__", prim.evaluate)
    return found


def _decompose(decompose: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(decompose)
    def narrow_or_not(*args: Any, **params: Any) -> Any:
        if any(map(is_narrow, args)):
            return in_single(decompose, args, params, first=True)
        return decompose(*args, **params)

    return narrow_or_not


def _rule(rule: Callable[..., Any], prim: Primitive | None = None) -> Callable[..., Any]:
    """Wrap a vjp rule ``(g, *saved)`` or a jvp rule to compute in float32; the walk rounds its results."""
    keeps_y, keeps_x = _kept(prim)

    @functools.wraps(rule)
    def narrow_or_not(g: Array, *saved: Any, **params: Any) -> Any:
        if not any(map(is_narrow, g if isinstance(g, tuple | list) else (g,))):
            return rule(g, *saved, **params)
        y, *x = saved
        return rule(wide(g), wide(y) if keeps_y else y, *(map(wide, x) if keeps_x else x), **params)

    return narrow_or_not


def _kept(prim: Primitive | None) -> tuple[bool, bool]:
    """Return whether a rule gets the output and the inputs; if not, it gets tensors that it must not compute with."""
    if prim is None:
        return True, True
    return prim.saves_y, prim.saves_x or prim.saves_from is not None or prim.saves_to is not None
