"""In-place writes, `x.add_(y)`, `x += y`, `x[i] = v`, and their effect on the tape.

A write changes memory, which every view of it sees, and gives the tensor a new node on the tape: the op applied to the
old one. The base of a view and the base's other views are rebased: the new base is the old base with the view written
into it, and each view is read from the new base. A write is logged (`writes.py`), so a backward pass that needs
overwritten values fails and names both places.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.base.tables import words
from glassgrad.engine.mode import MODE, RECORDING, no_grad
from glassgrad.engine.node import Node, describe, record
from glassgrad.engine.reports import op_errors
from glassgrad.engine.tensor import Tensor, base_class, make
from glassgrad.engine.tensors.operands import defers, is_foreign
from glassgrad.engine.views import detached_p, placeholders
from glassgrad.engine.writes import MUTATIONS, part_of, spare_result
from glassgrad.ops import names, promotion
from glassgrad.ops.complex_input import guard_all
from glassgrad.ops.core import Array, Primitive
from glassgrad.ops.index import at_set_p
from glassgrad.ops.masks import instead_of_mask
from glassgrad.ops.operators import BINARY
from glassgrad.ops.places import BASIC, in_two_steps, is_byte_mask, join_index, refuse_huge, split_index
from glassgrad.ops.views import memory_owner
from glassgrad.ops.vmap.batched import enter_p

_ndarray = np.ndarray


# --- what may be written --------------------------------------------------------------------------


def check_leaf(x: Tensor) -> None:
    """Raise when `x` is a leaf with a gradient, or a view of one, and ops are being recorded."""
    if x.node is None and x._tracks:
        raise errors.LEAF_OVERWRITTEN(what=_called(x), name=_name(), where=provenance.here())
    link = _link(x)
    while link is not None:
        base = link[0]
        if base.node is None and base._tracks and link[1] is not detached_p:
            raise errors.VIEW_OF_LEAF_OVERWRITTEN(where=provenance.here())
        link = _link(base)


def _name() -> str:
    operands = provenance.here().operands
    return operands[0] if operands else "x"


def _called(x: Tensor) -> str:
    operands = provenance.here().operands
    return f"'{operands[0]}'" if operands else describe(x)


def _link(x: Tensor) -> tuple[Tensor, Primitive, dict[str, Any]] | None:
    """Return the base of `x` and the view's primitive, if `x` really is a view."""
    extra = x._extra
    if extra is None or "view" not in extra:
        return None
    base: Tensor = extra["view"][0]
    if type(x.array) is _ndarray and memory_owner(x.array) is not memory_owner(base.array):
        return None  # a reshape that had to copy, or a tensor whose memory was replaced
    link: tuple[Tensor, Primitive, dict[str, Any]] = extra["view"]
    return link


def _involved(x: Tensor, values: Array) -> bool:
    """Tell whether a write of `values` to `x` must be recorded."""
    if not MODE.flags & RECORDING:
        return False
    return x._tracks or any(isinstance(value, Tensor) and value._tracks for value in values)


def _store(x: Tensor, array: Array, op: str) -> None:
    """Put new values into the memory of `x`."""
    memory = x.array
    if type(memory) is _ndarray:
        if not isinstance(array, _ndarray | np.generic):
            raise errors.INPLACE_UNBATCHED(op=op, where=provenance.here())
        plain = f"x.{op.rstrip('_')}(...)"
        if array.shape != memory.shape:
            raise errors.INPLACE_SHAPE(
                op=op, given=array.shape, expected=memory.shape, plain=plain, where=provenance.here()
            )
        if not promotion.fits(array.dtype, memory.dtype):
            raise errors.INPLACE_DTYPE(
                op=op, given=array.dtype, expected=memory.dtype, plain=plain, where=provenance.here()
            )
        check_writeable(memory, op)
        memory[...] = array
        MUTATIONS.record(memory)
    elif hasattr(memory, "write"):  # a Symbol is memory too
        memory.write(array)
    else:
        x.array = array


def check_writeable(memory: Array, op: str) -> None:
    """Raise unless an array can be written to."""
    if not memory.flags.writeable:
        repeated = any(step == 0 and n > 1 for step, n in zip(memory.strides, memory.shape, strict=True))
        reason = _REPEATED if repeated else "it is read-only"
        raise errors.INPLACE_READ_ONLY(op=op, reason=reason, where=provenance.here())


_REPEATED = "several elements of an expanded tensor are one number in memory"


# --- ops in place ---------------------------------------------------------------------------------


def overwrite(
    x: Tensor, function: Callable[..., Any], args: tuple[Array, ...], kwargs: dict[str, Any], op: str
) -> Tensor:
    """Replace `x` by ``function(x, *args, **kwargs)`` in its own memory; return it."""
    if MODE.flags & RECORDING:
        check_leaf(x)
    memory = x.lifted()
    spare_result(x)
    prim = getattr(function, "primitive", None)
    if not _involved(x, (*args, *kwargs.values())):
        if not kwargs and type(memory) is _ndarray and _by_ufunc(prim, memory, args):
            return x
        with no_grad():
            _store(x, _array_of(function(make(memory, None, False), *args, **kwargs), x), op)
        _follow(x)
        return x
    if x.dtype.kind not in "fcV":
        raise errors.INPLACE_INTEGER(op=op, dtype=x.dtype, where=provenance.here())
    # The op must not save the memory that it is about to overwrite.
    kept = memory if prim is not None and not prim.saves_x else copy.copy(memory)
    old = make(kept, x.node, x._tracks)
    args = tuple(old if arg is x else arg for arg in args)
    y = function(old, *args, **kwargs)
    if not y._tracks and x._tracks:  # a comparison, say, whose gradient is 0
        y = names.PUBLIC["where"](np.False_, old, y.to(old.dtype))
    _store(x, y.array, op)
    _move(x, y.node, y._tracks)
    return x


def _array_of(y: Array, x: Tensor) -> Array:
    array = y.array if isinstance(y, Tensor) else np.asarray(y)
    # Convert booleans to the dtype of `x`, as an assignment in NumPy does.
    return array.astype(x.dtype) if type(array) is _ndarray and array.dtype.kind == "b" else array


@cache
def _ufunc_of(prim: Primitive | None) -> Any:
    """Return the NumPy function that a primitive equals, if there is one."""
    ufunc = getattr(np, prim.forward, None) if prim is not None and isinstance(prim.forward, str) else None
    return ufunc if isinstance(ufunc, np.ufunc) else None


def _by_ufunc(prim: Primitive | None, memory: Array, args: tuple[Array, ...]) -> bool:
    """Let NumPy write directly, if the op is one of its functions; tell whether it did."""
    ufunc = _ufunc_of(prim)
    if ufunc is None or MODE.flags > RECORDING or not memory.flags.writeable:
        return False
    plain = [arg.array if isinstance(arg, Tensor) else arg for arg in args]
    if any(not isinstance(arg, _ndarray | int | float | np.generic) for arg in plain):
        return False
    try:
        ufunc(memory, *plain, out=memory, casting="same_kind")
    except (TypeError, ValueError, OverflowError):
        return False  # the general path fails too, but with a message
    MUTATIONS.record(memory)
    return True


def _move(x: Tensor, node: Node | None, tracks: bool) -> None:
    """Give `x` its new node on the tape, and rebase tensors that share its memory."""
    extra = x._extra
    hooks = None
    if extra is not None and "retain" in extra and x.node is not None and x.node.hooks:
        hooks = [hook for hook in x.node.hooks if hook is extra["retain"]]
        x.node.hooks = [hook for hook in x.node.hooks if hook is not extra["retain"]]
    _replace(x, node, tracks)
    if hooks and node is not None:
        node.hooks = [*(node.hooks or []), *hooks]
    if extra is not None and ("view" in extra or "views" in extra):
        _settle(x)


def _replace(x: Tensor, node: Node | None, tracks: bool) -> None:
    """Give `x` another node on the tape, and inform a running transform."""
    x.node, x._tracks = node, tracks
    if MODE.moved is not None:
        MODE.moved.append(weakref.ref(x))


# --- views ----------------------------------------------------------------------------------------


def _settle(x: Tensor, taped: bool = True) -> None:
    """Rebase the bases of the view `x`, up to the root, and all their other views.

    Without `taped` only values are brought up to date, and all tensors keep their nodes.
    """
    path = {id(x)}
    link = _link(x)
    while link is not None:
        base, prim, params = link
        taped = taped and prim is not detached_p
        new = _written_back(base, prim, params, x)
        if taped:
            _replace(base, new.node, new._tracks)
        if prim is enter_p:
            _store(base, new.array, "writing to an argument of vmap")  # a batch has its own memory
        else:
            _rebind(base, new.array)
        x = base
        path.add(id(x))
        link = _link(x) if taped or not _has_memory(x) else None
    if taped or not _has_memory(x):
        _refresh(x, path, taped)


def _follow(x: Tensor) -> None:
    """Refresh views after a write that is not recorded: inside vmap views share no memory."""
    if x._extra is not None and not _has_memory(x):
        with no_grad():
            _settle(x, taped=False)


def _has_memory(x: Tensor) -> bool:
    """Tell whether `x` has memory that views share, unlike values inside vmap."""
    return type(x.array) is _ndarray or hasattr(x.array, "write")


def _rebind(x: Tensor, array: Array) -> None:
    """Replace the value of `x` unless it has memory, which then already holds the new value."""
    if not _has_memory(x):
        x.array = array


def _written_back(base: Tensor, prim: Primitive, params: dict[str, Any], view: Tensor) -> Tensor:
    """Return the base with the view written into it, as far as the tape is concerned."""
    assert prim.write_back is not None
    new: Tensor | None = prim.write_back(base, view, _set, **params)
    if new is None:
        raise errors.INPLACE_READ_ONLY(op=prim.name, reason=_REPEATED, where=provenance.here())
    return new


def _refresh(base: Tensor, path: set[int], taped: bool) -> None:
    """Refresh all views of `base` except those on the path, which are already up to date."""
    for reference in list((base._extra or {}).get("views", ())):
        view = reference()
        link = None if view is None else _link(view)
        if view is None or link is None or link[0] is not base:
            continue
        if id(view) not in path:
            new = link[1](base, **link[2])
            if taped and link[1] is not detached_p:
                _replace(view, new.node, new._tracks)
            _rebind(view, new.array)
        _refresh(view, path, taped)


# --- assignment -----------------------------------------------------------------------------------


def setitem(x: Tensor, key: Any, value: Array) -> None:
    """x[key] = value: `Tensor.__setitem__`."""
    if MODE.flags & RECORDING:
        check_leaf(x)
    basic = BASIC.issuperset(map(type, key)) if type(key) is tuple else type(key) in BASIC
    steps = None if basic else in_two_steps(key)
    if steps is not None:
        setitem(x[steps[0]], steps[1], value)
        return
    chosen = None if basic else instead_of_mask(x, key, value)
    if chosen is not None:
        key, value = chosen
    memory = x.lifted()
    spare_result(x)
    if not _involved(x, (value,)):
        plain = value.lifted() if isinstance(value, Tensor) else base_class(value)
        if type(memory) is _ndarray:
            check_writeable(memory, "x[...] = value")
            key = key if basic else _plain_key(key)
            _assign(x, memory, key, plain, value)
            if not (type(key) is _ndarray and key.dtype == bool and not key.any()):
                MUTATIONS.record(part_of(memory, key))
            return
        spec, arrays = split_index(_plain_key(key))
        with no_grad():
            made = at_set_p(make(memory, None, False), _as_array(plain, x), *arrays, spec=spec)
        _store(x, made.array, "x[...] = value")
        _follow(x)
        return
    if x.dtype.kind not in "fcV":
        raise errors.INPLACE_INTEGER(op="x[...] = value", dtype=x.dtype, where=provenance.here())
    spec, arrays = split_index(_plain_key(key))
    value = value if isinstance(value, Tensor) else make(_as_array(value, x), None, False)
    if type(memory) is _ndarray and type(value.lifted()) is _ndarray:
        check_writeable(memory, "x[...] = value")
        _assign(x, memory, join_index(spec, arrays), value.array, value)
        if not any(type(array) is _ndarray and not array.size for array in arrays):
            MUTATIONS.record(memory)  # a mask that selects nothing writes nothing
        new = _set(x, value, arrays, spec)
    else:
        old = make(copy.copy(memory), x.node, x._tracks)
        new = at_set_p(old, value, *arrays, spec=spec)
        _store(x, new.array, "x[...] = value")
    _move(x, new.node, new._tracks)


_NUMBERS = BASIC | {_ndarray, float, bool}


def _assign(x: Tensor, memory: Array, key: Any, plain: Array, value: Array) -> None:
    parts = (plain, *key) if type(key) is tuple else (plain, key)
    if not _NUMBERS.issuperset(map(type, parts)) and any(hasattr(part, "no_numbers") for part in parts):
        raise errors.INPLACE_UNBATCHED(op="x[...] = value", where=provenance.here())
    try:
        memory[key] = plain
    except (ValueError, IndexError, TypeError) as error:
        raise op_errors.explain(at_set_p, (x, value), {}, error) from error


def _as_array(value: Array, x: Tensor) -> Array:
    return value if hasattr(value, "dtype") else np.asarray(value, dtype=x.dtype)


def _plain_key(key: Any) -> Any:
    """Replace the Tensors in an index by their arrays."""
    if isinstance(key, tuple):
        return tuple(_plain_key(part) for part in key)
    if type(key) is _ndarray:
        refuse_huge(key)
    if not isinstance(key, Tensor):
        return key
    if type(key.array) is _ndarray:
        refuse_huge(key.array)
    return key.lifted() != 0 if is_byte_mask(key) else key.lifted()


def _set(x: Tensor, value: Tensor, arrays: list[Array], spec: Array) -> Tensor:
    """Return a tensor on the memory of `x` whose node on the tape is `x` with x[index] = value.

    The memory has been written already; the node keeps the index and nothing else.
    """
    if type(x.array) is not _ndarray:
        written: Tensor = at_set_p(x, value, *arrays, spec=spec)
        return written
    parents = tuple(_place(part) for part in (x, value)) + (None,) * len(arrays)
    saved = (None, *placeholders((2, None), [x.array, value.array, *arrays], parents))
    frame = provenance.user_frame(1)
    node = record(at_set_p, parents, saved, {"spec": spec}, x.array, frame.f_code, frame.f_lasti)
    return make(x.array, node, True)


def _place(x: Tensor) -> Any:
    return (x if x.node is None else x.node) if x._tracks else None


def log(x: Tensor) -> None:
    """Record that other code has written to the memory of `x`."""
    if type(x.array) is _ndarray:
        MUTATIONS.record(x.array)


def fill(x: Tensor, value: Array) -> Tensor:
    """Write `value` everywhere; return x."""
    setitem(x, ..., value)
    return x


# --- methods --------------------------------------------------------------------------------------

# Each function f named here gets a method f_ that writes its result into the tensor.
IN_PLACE = words(
    """
    abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr arccos arccosh arcsin arcsinh arctan arctan2
    arctanh asin asinh atan atan2 atanh baddbmm bitwise_and bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor ceil celu clamp clamp_max clamp_min clip conj_physical copysign cos cosh cumprod
    cumsum deg2rad digamma div divide elu eq erf erfc erfinv exp exp2 expm1 fix float_power floor floor_divide fmod
    frac gcd ge greater greater_equal gt hardtanh heaviside hypot i0 igamma igammac index_add index_copy index_fill
    index_put index_reduce lcm ldexp le leaky_relu lerp less less_equal lgamma log log10 log1p log2 logical_and
    logical_not logical_or logical_xor logit lt masked_fill masked_scatter mul multiply mvlgamma nan_to_num ne neg
    negative nextafter not_equal polygamma pow put rad2deg reciprocal relu relu6 remainder renorm round rsqrt
    scatter scatter_add scatter_reduce selu sgn sigmoid sign silu sin sinc sinh softplus sqrt square sub subtract
    tan tanh threshold tril triu true_divide trunc xlogy
    """
)


def _method(name: str, op: str) -> Callable[..., Tensor]:
    function = names.PUBLIC[name]

    def call(x: Tensor, *args: Array, **kwargs: object) -> Tensor:
        return overwrite(x, function, args, kwargs, op)

    call.__name__ = call.__qualname__ = op
    vars(call)["__wrapped__"] = function  # `call` has its signature
    call.__doc__ = f"`{name}`, written into the tensor itself; return it."
    return call


def _operator(name: str, theirs: str) -> Callable[[Tensor, Any], Tensor]:
    """Return the method behind `x += other`; if it returns NotImplemented, Python tries `x + other`."""
    function = names.PUBLIC[name]

    def call(x: Tensor, other: Array) -> Array:
        if is_foreign(other) and defers(other, theirs):
            return NotImplemented
        return overwrite(x, function, (other,), {}, f"{name}_")

    return call


def zero_(x: Tensor) -> Tensor:
    """Write 0 everywhere; return x."""
    return fill(x, 0)


def fill_(x: Tensor, value: Array) -> Tensor:
    """Write a number everywhere; return x."""
    return fill(x, value)


def copy_(x: Tensor, src: Array, non_blocking: bool = False) -> Tensor:
    """Write the values of `src`, which broadcasts; return x."""
    return fill(x, src)


def fill_diagonal_(x: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Write a number on the main diagonal; return x.

    With `wrap` the diagonal of a tall matrix with n columns begins again after every n + 1 rows.
    """
    if wrap and len(x.shape) == 2 and x.shape[0] > x.shape[1]:
        rows = np.arange(x.shape[0])
        columns = rows % (x.shape[1] + 1)
        setitem(x, (rows[columns < x.shape[1]], columns[columns < x.shape[1]]), fill_value)
        return x
    places = np.arange(min(x.shape))
    setitem(x, (places,) * len(x.shape), fill_value)
    return x


def detach_(x: Tensor) -> Tensor:
    """Detach the tensor from its history; return it."""
    x.node, x._tracks = None, False
    if x._extra is not None:
        x._extra.pop("view", None)
    return x


_EXTRA = (zero_, fill_, copy_, fill_diagonal_, detach_)


# Every in-place function by name, for `glassgrad.relu_(x)` and the like.
FUNCTIONS: dict[str, Callable[..., Tensor]] = {f"{name}_": _method(name, f"{name}_") for name in IN_PLACE} | {
    function.__name__: function for function in _EXTRA
}
# `nn.functional` has these as well, and refuses complex numbers: one object under both names.
_ACTIVATIONS = ("celu_", "elu_", "hardtanh_", "leaky_relu_", "relu_", "selu_", "threshold_")
guard_all(FUNCTIONS, _ACTIVATIONS)


def _attach() -> None:
    for name, function in {"__setitem__": setitem, **FUNCTIONS}.items():
        setattr(Tensor, name, function)
    for operator, name in BINARY.items():
        setattr(Tensor, f"__i{operator}__", _operator(name, f"__r{operator}__"))


_attach()
