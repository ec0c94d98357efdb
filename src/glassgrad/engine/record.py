"""The Tensor interpreter: apply a primitive to Tensors and record it on the tape.

`apply` computes on the tensors' arrays and records a node if a gradient is required; it is the hot path of eager mode.
The operators and methods of `Tensor` are attached here from the tables. No derivative is written here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine import views
from glassgrad.engine.autocasting import cast_for
from glassgrad.engine.mode import AUTOCAST, MODE, RECORDING, TRACING, WATCHED
from glassgrad.engine.node import PICK, Node, next_sequence, record
from glassgrad.engine.reports import op_errors
from glassgrad.engine.tape import pick
from glassgrad.engine.tensor import Tensor, base_class, make
from glassgrad.engine.tensors.operands import defers, is_foreign
from glassgrad.ops import compound, names, operators
from glassgrad.ops.complex_input import refuse_complex
from glassgrad.ops.core import HIGHEST, INTERPRETERS, REGISTRY, Array, Interpreter, Primitive
from glassgrad.ops.promotion import lift
from glassgrad.ops.vmap.batched import levels_of

_ndarray = np.ndarray
_internal = provenance.INTERNAL
_getframe = sys._getframe
_new = object.__new__
# The caller of a thread whose outermost function is ours. Its file belongs to no user, so a search ends there.
_NOBODY: Any = SimpleNamespace(f_code=compile("", "<no user>", "exec"), f_lasti=0, f_back=None)
_ORDINARY = frozenset({_ndarray, float, int, bool, np.float32, np.float64, np.int64, np.bool_})
_OPERANDS = _ORDINARY | {Tensor}  # operands that an operator accepts without further checks


def apply(prim: Primitive, args: tuple[Array, ...], params: dict[str, Any]) -> Array:  # noqa: C901, PLR0912, PLR0915 - the hot path, written out: a call more for each op would cost a tenth of it
    """Compute `prim` on Tensors (and arrays and numbers); record it if a gradient may be required."""
    flags = MODE.flags
    if flags > RECORDING and (watched := _prepared(prim, args, params)) is not None:
        return watched
    evaluate, decompose, special, saves_x, saves_y, part, is_view, takes_complex = prim.traits
    arrays: list[Array] = []
    parents: list[Any] = []
    tracked, plain = False, True
    for arg in args:
        if isinstance(arg, Tensor):
            array = arg.array
            if type(array) is not _ndarray:
                plain = False
            if not takes_complex and (not plain or array.dtype.kind == "c"):
                refuse_complex(prim.name, (array,))
            arrays.append(array)
            if arg._tracks:
                tracked, node = True, arg.node
                parents.append(arg if node is None else node)
                continue
        else:
            if type(arg) not in _ORDINARY:
                plain, arg = plain and type(arg) not in INTERPRETERS, _as_array(arg, prim, args)
            if not takes_complex:
                refuse_complex(prim.name, (arg,))
            arrays.append(arg)
        parents.append(None)
    if not plain and decompose is not None:
        return _decomposed(prim, args, params, (arrays, parents, tracked and flags & RECORDING))
    try:
        y = lift(prim)(*arrays, **params) if not plain else evaluate(*arrays, **params) if params else evaluate(*arrays)
    except (errors.GlassgradError, Warning):  # a warning filter may turn NumPy's warnings into errors
        raise
    except Exception as error:  # reported in terms of the user's line
        raise op_errors.explain(prim, args, params, error) from error
    saved_y = y
    if special:
        return _finish_special(prim, y, args, arrays, parents, params, tracked and flags & RECORDING)
    if decompose is not None:
        y, saved_y = y
    if type(y) is not _ndarray:
        if not isinstance(y, np.generic):
            return _finish_special(prim, saved_y, args, arrays, parents, params, tracked and flags & RECORDING)
        y = np.asarray(y)
        saved_y = y if decompose is None else saved_y
    result = _new(Tensor)  # like `make`
    result.array, result._grad, result._extra = y, None, None
    if tracked and flags & RECORDING and y.dtype.kind in "fcV":
        frame = _getframe(2)  # of an operator or a function of the table; getting a frame creates an object
        while _internal[(code := frame.f_code).co_filename]:
            frame = frame.f_back or _NOBODY
        kept = arrays if saves_x else parents if part is None else views.placeholders(part, arrays, parents)
        result._tracks, result.node = True, (node := _new(Node))  # like `record`
        node.prim, node.params, node.parents = prim, params, tuple(parents)
        node.saved = (saved_y if saves_y else None, *kept)
        node.shape, node.dtype, node.hooks = y.shape, y.dtype, None
        node.code, node.lasti, node.seq = code, frame.f_lasti, next_sequence()
    else:
        result.node, result._tracks = None, False
    return views.link(result, prim, args, params) if is_view and len(args) == 1 else result


def _prepared(prim: Primitive, args: tuple[Array, ...], params: dict[str, Any]) -> Array:
    """Compute under watchers or autocast; otherwise lift the arguments into the trace, if any, and return None."""
    flags = MODE.flags
    if flags & (WATCHED | AUTOCAST):
        return _cast(prim, args, params) if flags & AUTOCAST else _watched(prim, args, params)
    lift = MODE.lift
    if lift is not None:  # None if no trace is running
        for arg in args:
            if isinstance(arg, Tensor):
                lift(arg)
    return None


def _cast(prim: Primitive, args: tuple[Array, ...], params: dict[str, Any]) -> Array:
    """Compute a primitive in the dtype that autocast requires; its decomposition uses the same dtype."""
    args, flags = cast_for(prim, args), MODE.flags
    MODE.flags = flags & ~AUTOCAST
    try:
        return apply(prim, args, params)
    finally:
        MODE.flags = flags


def _decomposed(prim: Primitive, args: tuple[Array, ...], params: dict[str, Any], begun: Any = None) -> Array:
    """Compute a fused primitive on other operands than plain arrays: op by op, and each op records itself.

    `begun` holds the arrays and parents for recording it as one op, and whether to record it.
    """
    assert prim.decompose is not None
    if prim.saves_results and begun is not None and prim.name in MODE.whole and not any(map(levels_of, begun[0])):
        y = prim(*begun[0], **params)
        arrays, parents, tracked = begun
        return _finish_special(prim, (y, y), args, arrays, parents, params, tracked)
    if prim.name in MODE.whole and not MODE.flags & RECORDING:
        y = prim(*[arg.array if isinstance(arg, Tensor) else arg for arg in args], **params)
        return tuple(make(part, None, False) for part in y) if prim.multiple else make(y, None, False)
    result = prim.decompose(*args, **params)
    if not prim.companions:
        return result
    own = len(result) - prim.companions
    return (*result[:own], *[part.detach() for part in result[own:]])


def _as_array(arg: Array, prim: Primitive, args: tuple[Array, ...]) -> Array:
    """Convert another library's array, such as PyTorch's, to NumPy's; return anything else unchanged."""
    if isinstance(arg, _ndarray):
        return base_class(arg)
    if type(arg) in INTERPRETERS or isinstance(arg, np.generic) or hasattr(arg, "__array_namespace__"):
        return arg
    if hasattr(arg, "__array__"):
        return np.asarray(arg)
    if prim.kind == "elementwise" and is_foreign(arg):  # NumPy would make an array of objects from it
        raise _no_numbers(prim, args, arg)
    return arg


def _no_numbers(prim: Primitive, args: tuple[Array, ...], given: Array) -> Exception:
    reason = TypeError(f"no numbers can be read from a {type(given).__name__}")
    return op_errors.explain(prim, args, {}, reason)


def _finish_special(
    prim: Primitive,
    y: Array,
    args: tuple[Array, ...],
    arrays: list[Array],
    parents: list[Any],
    params: Any,
    tracked: Any,
) -> Array:
    """Finish `apply` for other results than one plain array: several results, residuals, views, batches, Symbols."""
    companions: tuple[Array, ...] = ()
    saved_y, multiple = y, prim.multiple
    if prim.decompose is not None:
        y, saved_y = y
        if prim.companions:
            companions = tuple([make(part, None, False) for part in y[len(y) - prim.companions :]])
            y = y[: len(y) - prim.companions] if multiple else y[0]
    if isinstance(y, np.generic):
        y = np.asarray(y)
    first = y[0] if multiple else y
    if not tracked or not prim.differentiable or (not multiple and y.dtype.kind not in "fcV"):
        result = tuple([make(part, None, False) for part in y]) if multiple else make(y, None, False)
    else:
        kept = arrays if prim.saves_x else parents
        if prim.saves_from is not None or prim.saves_to is not None:
            kept = views.placeholders((prim.saves_from or 0, prim.saves_to), arrays, parents)
        saved = (saved_y if prim.saves_y else None, *kept)
        frame = provenance.user_frame(3)
        node = record(prim, tuple(parents), saved, params, first, frame.f_code, frame.f_lasti)
        if type(first) is not _ndarray:
            node.levels = levels_of(first)
        if multiple:
            result = tuple(pick(node, part, position, len(y)) for position, part in enumerate(y))
        else:
            result = make(y, node, True)
    if prim.is_view:
        return views.link(result, prim, args, params)
    return (*(result if multiple else (result,)), *companions) if companions else result


def _watched(prim: Primitive, args: tuple[Array, ...], params: dict[str, Any]) -> Array:
    """Compute a primitive and show the watchers its node."""
    watchers, flags = MODE.watchers, MODE.flags
    if not watchers:  # the last one left in a block that has put the flag back since
        MODE.flags = flags & ~WATCHED
        return apply(prim, args, params)
    plain = all(type(arg.array) is _ndarray for arg in args if isinstance(arg, Tensor))
    traced = flags & TRACING and not any(one.in_parts for one in watchers)
    if prim.decompose is not None and not plain and not traced:
        return _decomposed(prim, args, params)  # every op in it is watched separately
    chosen = prim
    if plain:
        for watcher in watchers:
            chosen = watcher.stand_in(chosen)
    MODE.flags = flags & ~WATCHED
    try:
        result = apply(chosen, args, params)
    finally:
        MODE.flags = flags
    if not plain:  # inside vmap
        for watcher in watchers:
            watcher.computed(prim, args, result)
    node = node_of(result)
    if node is not None:
        node.prim = prim
        for watcher in reversed(watchers):
            watcher.note(node)
    return result


def node_of(result: Any) -> Node | None:
    """Return the node of a primitive's result: the common one, if it has several results."""
    for part in result if isinstance(result, tuple) else (result,):
        if part.node is not None:
            node: Node = part.node
            return node.parents[0] if node.prim is PICK else node
    return None


# --- operators and methods, from the table --------------------------------------------------------


def _binary(prim: Primitive, theirs: str) -> Callable[[Tensor, Array], Array]:
    """Return the method of an operator; `theirs` is the other class's method that Python tries next."""

    def operator(self: Tensor, other: Array) -> Array:
        if type(other) not in _OPERANDS and type(other) not in INTERPRETERS and is_foreign(other):
            return _left_to(other, theirs, prim, (self, other))
        return apply(prim, (self, other), {})

    return operator


def _reflected(prim: Primitive, theirs: str) -> Callable[[Tensor, Array], Array]:
    def operator(self: Tensor, other: Array) -> Array:
        if type(other) not in _OPERANDS and type(other) not in INTERPRETERS and is_foreign(other):
            return _left_to(other, theirs, prim, (other, self))
        return apply(prim, (other, self), {})

    return operator


def _left_to(other: Array, theirs: str, prim: Primitive, args: tuple[Array, ...]) -> Array:
    """Defer to the operand's class, or raise if neither class can compute."""
    if defers(other, theirs):
        return NotImplemented
    raise _no_numbers(prim, args, other)


def _equality(prim: Primitive) -> Callable[[Tensor, Array], Array]:
    # If neither side answers, Python compares identities: `x == None` is False, `x != "a"` True.
    def operator(self: Tensor, other: Array) -> Array:
        if type(other) not in _OPERANDS and type(other) not in INTERPRETERS and is_foreign(other):
            return NotImplemented
        return apply(prim, (self, other), {})

    return operator


def _unary(prim: Primitive) -> Callable[[Tensor], Array]:
    def operator(self: Tensor) -> Array:
        return apply(prim, (self,), {})

    return operator


# The method that Python tries on the other operand; none for equality.
_TURNED = {"lt": "__gt__", "le": "__ge__", "gt": "__lt__", "ge": "__le__"}


def _attach() -> None:
    for name, op in operators.BINARY.items():
        setattr(Tensor, f"__{name}__", _binary(REGISTRY[op], f"__r{name}__"))
        setattr(Tensor, f"__r{name}__", _reflected(REGISTRY[op], f"__{name}__"))
    for name, op in operators.COMPARISONS.items():
        prim = REGISTRY[op]
        setattr(Tensor, f"__{name}__", _binary(prim, _TURNED[name]) if name in _TURNED else _equality(prim))
    for name, op in operators.UNARY.items():
        setattr(Tensor, f"__{name}__", _unary(REGISTRY[op]))
    for name, function in {"__pos__": compound.positive, **names.methods()}.items():
        setattr(Tensor, name, function)


Tensor._interpreter = Interpreter(HIGHEST, apply)
for _kind in [kind for kind in INTERPRETERS if issubclass(kind, Tensor)] + [Tensor]:
    INTERPRETERS[_kind] = Tensor._interpreter
_attach()
