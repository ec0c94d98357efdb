"""PyTorch's dtypes of results, in force while glassgrad stands under the name torch.

Of three kinds of operands, tensors with dimensions decide first, then those without, then Python numbers: a later kind
matters only if it is of a higher category (bool, integer, floating point, complex). Fractions of integers have the
default dtype. The operands of an elementwise op are brought to the common dtype before it computes; of other ops, which
take places and masks beside numbers, the result is brought to the dtype that PyTorch gives it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.base.tables import words
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.tensors import creation
from glassgrad.ops import narrow
from glassgrad.ops.core import PRIMITIVES, Array, Elementwise, Primitive
from glassgrad.ops.names import PUBLIC
from glassgrad.ops.shape import astype_p

_ndarray = np.ndarray
_BOOL, _LONG = np.dtype(np.bool_), np.dtype(np.int64)
_FLOATS = frozenset(map(np.dtype, (np.float32, np.float64)))
_NUMBERS = (bool, int, float, complex)
_WHOLE = frozenset(map(np.dtype, (np.uint8, np.int8, np.int16, np.int32, np.int64)))
_PLAIN_NUMBERS, _WHOLE_NUMBERS = frozenset({int, float, bool}), frozenset({int, bool})
_RANKS = {"b": 0, "u": 1, "i": 1, "f": 2, "V": 2, "c": 3}

# Elementwise primitives whose first arguments are no operands.
BESIDE = {"where": 1}
# Those that make integers of truth values, as the powers that they are.
WIDENED = {"square"}
# Parameters that are operands.
LIMITS = {"clip": ("low", "high")}


# --- which dtype ----------------------------------------------------------------------------------


def promoted(a: np.dtype, b: np.dtype) -> np.dtype:
    """Return the dtype of what comes of two dtypes, as `torch.promote_types` does."""
    if a == b:
        return a
    floating = [one for one in (a, b) if one.kind in "fcV"]
    if len(floating) == 1:  # integers do not widen floats
        return floating[0]
    return narrow.promote_types(a, b)


def _number(kind: type) -> np.dtype:
    """Return the dtype that a Python number brings."""
    if kind is bool:
        return _BOOL
    if kind is int:
        return _LONG
    return creation.DEFAULT if kind is float else creation._complex_default()


def _below(higher: np.dtype | None, lower: np.dtype | None) -> np.dtype | None:
    """Combine the dtype of a kind of operands with that of one that matters less."""
    if higher is None or lower is None:
        return lower if higher is None else higher
    if higher.kind in "fV" and lower.kind == "c":
        return np.result_type(np.float32 if higher.kind == "V" else higher, np.complex64)
    if _RANKS[lower.kind] <= _RANKS[higher.kind]:
        return higher
    return promoted(higher, lower)


def common(operands: Sequence[Array]) -> np.dtype:
    """Return the dtype that PyTorch gives to a result of tensors, arrays and numbers."""
    kinds: list[np.dtype | None] = [None, None, None]
    for one in operands:
        if one is None:
            continue
        weak = not hasattr(one, "dtype") or isinstance(one, np.generic) or getattr(one, "weak", False)
        at = 2 if weak else 0 if len(one.shape) else 1
        dtype = _weak_dtype(one) if weak else one.dtype
        known = kinds[at]
        kinds[at] = dtype if known is None else promoted(known, dtype)
    if kinds[0] is kinds[1] is None and all(isinstance(one, np.generic) for one in operands):
        return np.result_type(*operands)  # numbers of NumPy that meet no tensor, which ops of our own pass
    found = _below(kinds[0], _below(kinds[1], kinds[2]))
    return creation.DEFAULT if found is None else found


def _weak_dtype(number: Array) -> np.dtype:
    if hasattr(number, "dtype"):
        return _number({"b": bool, "i": int, "u": int, "c": complex}.get(number.dtype.kind, float))
    return _number(type(number) if type(number) in _NUMBERS else float)


class _Fractions(dict[str, bool]):
    """Whether NumPy's function makes fractions of integers, found by trying."""

    def __missing__(self, name: str) -> bool:
        prim = PRIMITIVES[name]
        assert isinstance(prim, Elementwise)
        ones = [np.ones(1, _LONG)] * prim.arity
        params = {name: int(value) if type(value) is float else value for name, value in prim.sample_params.items()}
        try:
            with np.errstate(all="ignore"):
                made = bool(np.asarray(prim.evaluate(*ones, **params)).dtype.kind in "fc")
        except (TypeError, ValueError):
            made = True
        self[name] = made
        return made


FRACTIONS = _Fractions()


# --- elementwise ops ------------------------------------------------------------------------------


def _wanted(prim: Primitive, args: Sequence[Array], params: Mapping[str, Array]) -> np.dtype:
    """Return the dtype that an elementwise op computes in."""
    operands = [*args[BESIDE.get(prim.name, 0) :], *(params.get(name) for name in LIMITS.get(prim.name, ()))]
    dtype = common(operands)
    if dtype is _BOOL and prim.name in WIDENED:
        return _LONG
    return creation.DEFAULT if dtype.kind in "biu" and FRACTIONS[prim.name] else dtype


def _brought(prim: Primitive, args: Sequence[Array], params: Mapping[str, Array]) -> tuple[list[Array], np.dtype]:
    """Return the operands in the dtype that the op computes in, and that dtype."""
    wanted = _wanted(prim, args, params)
    beside = BESIDE.get(prim.name, 0)
    return [arg if at < beside else _operand(arg, wanted) for at, arg in enumerate(args)], wanted


def _operand(arg: Array, wanted: np.dtype) -> Array:
    if isinstance(arg, np.generic):
        arg = arg.item()
    if not hasattr(arg, "dtype"):
        if type(arg) is int and wanted.kind in "iu" and wanted.itemsize < _LONG.itemsize:
            return np.asarray(arg).astype(wanted)  # NumPy refuses numbers that do not fit; PyTorch wraps them
        return arg
    return arg if arg.dtype == wanted or getattr(arg, "weak", False) else _cast(arg, wanted)


def _cast(x: Array, dtype: np.dtype) -> Array:
    return x.astype(dtype) if type(x) is _ndarray else astype_p(x, dtype=dtype)


def _made(y: Array, wanted: np.dtype) -> Array:
    """Return the result of an elementwise op: in the dtype that it was computed in, or of truth values."""
    if y.dtype == wanted or y.dtype.kind == "b" or (wanted.kind == "c" and y.dtype.kind == "f"):
        return y
    return _cast(np.asarray(y) if isinstance(y, np.generic) else y, wanted)


class _Direct:
    """For which operands NumPy and PyTorch agree, so that a primitive computes at once."""

    def __init__(self, prim: Primitive) -> None:
        self.name, self.same, self.numbers = prim.name, set(_FLOATS), dict.fromkeys(_FLOATS, _PLAIN_NUMBERS)
        self._known: dict[tuple[int | type, ...], np.dtype] = {}

    def wanted(self, prim: Primitive, args: Sequence[Array], params: Mapping[str, Array]) -> np.dtype:
        """Return the dtype that the op computes in, known from an earlier call with such operands."""
        if params:
            return _wanted(prim, args, params)
        kinds = [arg.dtype.num * 2 + (arg.ndim > 0) if type(arg) is _ndarray else type(arg) for arg in args]
        key = (creation.DEFAULT.num, *kinds)
        found = self._known.get(key)
        if found is None:
            if not self._known and self.name not in BESIDE and not FRACTIONS[self.name]:
                self.same.update(_WHOLE)
                self.numbers[_LONG] = _WHOLE_NUMBERS
            found = self._known[key] = _wanted(prim, args, params)
        return found


def _elementwise(prim: Elementwise) -> Callable[..., Array]:
    evaluate, direct, beside = prim.evaluate, _Direct(prim), BESIDE.get(prim.name, 0)
    same, numbers = direct.same, direct.numbers

    def promoting(*args: Array, **params: Array) -> Array:
        wanted = direct.wanted(prim, args, params)
        brought = [arg if at < beside else _operand(arg, wanted) for at, arg in enumerate(args)]
        return _made(np.asarray(evaluate(*brought, **params)), wanted)

    def unary(x: Array, **params: Array) -> Array:
        if type(x) is _ndarray and x.dtype in _FLOATS:
            return evaluate(x, **params) if params else evaluate(x)
        return promoting(x, **params)

    def binary(a: Array, b: Array) -> Array:
        if type(a) is _ndarray:
            dtype = a.dtype
            if type(b) is _ndarray:
                if b.dtype is dtype and dtype in same:
                    return evaluate(a, b)
            elif type(b) in numbers.get(dtype, ()):
                return evaluate(a, b)
        return promoting(a, b)

    forms: dict[int, Callable[..., Array]] = {1: unary, 2: binary}
    return forms.get(prim.arity, promoting)


# --- other ops ------------------------------------------------------------------------------------


def _settled(y: np.dtype, args: Sequence[Array]) -> np.dtype:
    """Return PyTorch's dtype of a result for which NumPy has chosen one: fractions, sums of small integers."""
    given = [arg.dtype for arg in args if hasattr(arg, "dtype")]
    if not given or y in given or y.kind not in "ufc":
        return y
    if y.kind == "u":
        return _LONG
    floats = [dtype for dtype in given if dtype.kind in "fcV"]
    if floats:
        found = floats[0]
        for dtype in floats[1:]:
            found = promoted(found, dtype)
        return y if y.kind == "c" and found.kind != "c" else found
    return creation._complex_default() if y.kind == "c" else creation.DEFAULT


def _any_op(prim: Primitive) -> Callable[..., Array]:
    evaluate, fused = prim.evaluate, prim.decompose is not None

    def settling(*args: Array, **params: Array) -> Array:
        y = evaluate(*args, **params) if params else evaluate(*args)
        if type(y) is _ndarray or isinstance(y, np.generic):
            if type(args[0]) is _ndarray and y.dtype is args[0].dtype:
                return y
            wanted = _settled(y.dtype, args)
            return y if wanted == y.dtype else y.astype(wanted)
        if fused and type(y[0]) is _ndarray and (wanted := _settled(y[0].dtype, args)) != y[0].dtype:
            return y[0].astype(wanted), y[1]
        return y

    return settling


class PyTorchs:
    """PyTorch's rule; see `ops.promotion.Rule`."""

    @staticmethod
    def around(prim: Primitive) -> Callable[..., Array]:
        """Return what evaluates a primitive on the arrays of Tensors."""
        if prim.name not in PRIMITIVES or prim.is_view or prim.name in narrow.MOVES:
            return prim.evaluate
        return _elementwise(prim) if isinstance(prim, Elementwise) else _any_op(prim)

    @staticmethod
    def compute(prim: Primitive, *args: Array, **params: Array) -> Array:
        """Compute on what stands for arrays in a transformation."""
        if prim.name not in PRIMITIVES or prim.is_view or prim.name in narrow.MOVES:
            return prim(*args, **params)
        if isinstance(prim, Elementwise):
            brought, wanted = _brought(prim, args, params)
            y = prim(*brought, **params)
            return y if getattr(y, "weak", False) else _made(y, wanted)
        y = prim(*args, **params)
        if not hasattr(y, "dtype") or (wanted := _settled(y.dtype, args)) == y.dtype:
            return y
        return _cast(y, wanted)

    @staticmethod
    def fits(given: np.dtype, expected: np.dtype) -> bool:
        """Tell whether a result may be written into a tensor of another dtype: one of no higher category."""
        return _RANKS[given.kind] <= _RANKS[expected.kind]

    @staticmethod
    def float_of(dtype: np.dtype) -> np.dtype:
        """Return the dtype of what an op with fractions makes of integers."""
        return creation.DEFAULT


# --- refusals -------------------------------------------------------------------------------------

FLOATS_ONLY = words("mean nanmean var std var_mean std_mean norm")
"""Functions that refuse integers in PyTorch; outside of the name torch, the result has NumPy's dtype."""


def of_floats(name: str) -> Callable[..., Array]:
    """Return a function of the table that refuses integers, as PyTorch does."""
    function = PUBLIC[name]

    @functools.wraps(function)
    def call(*args: Array, **kwargs: Array) -> Array:
        x = args[0] if args else kwargs.get("input")
        if isinstance(x, Tensor) and x.array.dtype.kind in "biu" and kwargs.get("dtype") is None:
            raise errors.FLOATS_ONLY(op=name, dtype=x.array.dtype, where=provenance.here())
        return function(*args, **kwargs)

    return call


# --- names ----------------------------------------------------------------------------------------


def result_type(tensor1: Array, tensor2: Array) -> np.dtype:
    """Return the dtype of a result of two tensors or numbers, as PyTorch promotes."""
    return common([getattr(one, "array", one) for one in (tensor1, tensor2)])


def promote_types(type1: np.dtype, type2: np.dtype) -> np.dtype:
    """Return the dtype of what comes of two dtypes, as PyTorch promotes."""
    return promoted(np.dtype(type1), np.dtype(type2))


def can_cast(from_: np.dtype, to: np.dtype) -> bool:
    """Tell whether PyTorch writes results of a dtype into tensors of another one."""
    return PyTorchs.fits(np.dtype(from_), np.dtype(to))


REFUSING = {name: of_floats(name) for name in FLOATS_ONLY}
NAMES = {"result_type": result_type, "promote_types": promote_types, "can_cast": can_cast, **REFUSING}
