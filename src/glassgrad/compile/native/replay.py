"""Records of NumPy calls as functions: `compile.llvm.replay`, loaded, and the tables that it works from."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from glassgrad.compile.llvm import replay as text
from glassgrad.compile.llvm.module.target import host
from glassgrad.compile.llvm.replay_arguments import POINTER_AT
from glassgrad.compile.llvm.replay_words import Call as Word
from glassgrad.compile.llvm.replay_words import Environment, Head, Kind, What
from glassgrad.compile.native.builtin import FAST_CALL, BuiltIn
from glassgrad.compile.native.executable import object_layout
from glassgrad.ops.kernels import parallel
from glassgrad.ops.kernels.recording import Call, Record, Unrecordable

SCRATCH = 1 << 19
"""Bytes of the memory for values in between, which all records use in turn."""
_LINE = 64  # bytes: a line of the cache, and the widest vector
_ALIGNED, _WRITEABLE = 0x100, 0x400  # NumPy's flags
_NEW_ARRAY = 93  # PyArray_New's place in NumPy's table of functions
_UFUNC_NAME, _UFUNC_LOOPS, _UFUNC_DATA = 56, 32, 40  # offsets in PyUFuncObject, part of NumPy's binary interface
# FE_INVALID, FE_DIVBYZERO, FE_OVERFLOW and FE_UNDERFLOW: NumPy warns of the first three unless told otherwise.
_WARNED_OF = {"x86_64": (0x1 | 0x4 | 0x8, 0x10), "aarch64": (0x1 | 0x2 | 0x4, 0x8)}


class Unavailable(Exception):  # noqa: N818 - no error: it says that NumPy has to make the calls
    """This interpreter, NumPy or processor is none that calls can be replayed on."""


@lru_cache(maxsize=1)
def _machinery() -> tuple[BuiltIn, Any, int, Any]:
    """Return the native function, the environment, and the scratch memory with its address.

    Raises:
        Unavailable: on another interpreter, processor or NumPy than those known.
        ImportError: without llvmlite.
    """
    flags = _WARNED_OF.get(platform.machine())
    if flags is None or object.__basicsize__ != 16 or np.dtype(np.intp).itemsize != 8:
        raise Unavailable
    items, data = object_layout()
    _expect_layout(data)
    environment = _environment(*flags)
    machine = host()
    code = text.module(machine.header(), machine.attributes(), data, items)
    function = BuiltIn(code, "replay", FAST_CALL, "Make NumPy calls that were recorded.")
    scratch = np.empty(SCRATCH + _LINE, np.uint8)
    first = -(-scratch.ctypes.data // _LINE) * _LINE
    return function, environment, first, scratch


def _expect_layout(data: int) -> None:
    """Raise unless arrays and ufuncs look in memory as the native code takes them to."""
    array = np.zeros((3, 5), np.float32)[:2, 1:4]
    words = (ctypes.c_int64 * 7).from_address(id(array) + data)
    shape, strides = (ctypes.c_int64 * 2).from_address(words[2]), (ctypes.c_int64 * 2).from_address(words[3])
    fits = words[1] & 0xFFFFFFFF == array.ndim and tuple(shape) == array.shape and tuple(strides) == array.strides
    known = fits and words[5] == id(array.dtype) and words[6] & 0xFFFFFFFF == array.flags.num
    place = ctypes.c_char_p.from_address(id(np.multiply) + _UFUNC_NAME).value if known else b""
    number = 0.1
    if place != b"multiply" or ctypes.c_double.from_address(id(number) + 16).value != number:
        raise Unavailable


def _environment(flags: int, underflow: int) -> Any:
    """Return the table of what the native code needs to know of this process."""
    python, process = ctypes.pythonapi, ctypes.CDLL(None)
    contexts: Any = getattr(np._core.umath, "_extobj_contextvar", None)  # type: ignore[attr-defined]  # not declared
    clear, test = (getattr(process, name, None) for name in ("feclearexcept", "fetestexcept"))
    if contexts is None or clear is None or test is None:
        raise Unavailable
    _expect_masks(contexts)
    words = np.zeros(len(Environment), np.int64)
    given = {
        Environment.ARRAY: id(np.ndarray),
        Environment.FLOAT: id(float),
        Environment.NEW_ARRAY: _numpy_function(_NEW_ARRAY),
        Environment.NEW_TUPLE: _address(python.PyTuple_New),
        Environment.FORGET: _address(python.Py_DecRef),
        Environment.CLEAR_ERROR: _address(python.PyErr_Clear),
        Environment.VECTORCALL: _address(python.PyObject_Vectorcall),
        Environment.TRUTH: _address(python.PyBool_FromLong),
        Environment.CLEAR_FLAGS: _address(clear),
        Environment.TEST_FLAGS: _address(test),
        Environment.FLAGS: flags,
        Environment.GET_CONTEXT: _address(python.PyContextVar_Get),
        Environment.VARIABLE: id(contexts),
        Environment.UNDERFLOW: underflow,
        **{Environment[name.upper()]: place for name, place in _blas().items()},
    }
    for name, value in given.items():
        words[name] = value
    _ALIVE.extend((words, contexts))
    return words


def _expect_masks(contexts: Any) -> None:
    """Raise unless NumPy's treatment of underflow is where the native code looks for it."""
    for number, treatment in enumerate(("ignore", "warn", "raise")):
        with np.errstate(all="ignore", under=treatment):  # type: ignore[arg-type]  # one of the words it takes
            pointer = ctypes.c_size_t.from_address(id(contexts.get()) + POINTER_AT).value
            if ctypes.c_int.from_address(pointer).value != number << 6:
                raise Unavailable


_ALIVE: list[Any] = []
"""What native code refers to by its address."""


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _numpy_function(place: int) -> int:
    """Return the address of a function of NumPy's C interface."""
    capsule = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]  # not declared
    read = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    table = read(capsule, None)
    return int(ctypes.c_size_t.from_address(table + 8 * place).value)


def _blas() -> dict[str, int]:
    """Return the addresses of CBLAS's products in NumPy's OpenBLAS, 0 for each that is not there."""
    blas = parallel.numpys_blas()
    return {} if blas is None else blas.c_products


# --- tables -----------------------------------------------------------------------------------------------


class Replayed:
    """A record as native code reads it.

    Args:
        record: the record.
        otherwise: a function of the same arguments, for calls that no record fits.
        following: the record that is looked at next.

    Attributes:
        function: the function that makes the calls.
    """

    def __init__(self, record: Record, otherwise: Callable[..., Any], following: Replayed | None) -> None:
        code, environment, first, _ = _machinery()
        self._alive: list[Any] = [environment, otherwise, following, record]
        slots = self._slots(record, first)
        saved, used = [], self._used
        for one in record.arguments:
            if one.written:
                saved.append((one.slot, len(slots), one.value.bytes))
                slots.append(first + used)
                used += -(-one.value.bytes // _LINE) * _LINE
        if used > SCRATCH:
            raise Unrecordable("too much memory")
        calls = [_words_of(call, environment) for call in record.calls]
        head = {
            Head.ENVIRONMENT: int(environment.ctypes.data),
            Head.ARGUMENT_COUNT: len(record.arguments),
            Head.ARGUMENTS: self._table([self._argument(one) for one in record.arguments]),
            Head.RESULT_COUNT: len(record.results),
            Head.RESULTS: self._table([self._result(*one) for one in record.results]),
            Head.CALL_COUNT: len(calls),
            Head.CALLS: self._table(calls),
            Head.SLOTS: self._table([slots]),
            Head.NEXT: 0 if following is None else int(following.head.ctypes.data),
            Head.OTHERWISE: id(otherwise),
            Head.SAVED_COUNT: len(saved),
            Head.SAVED: self._table(saved),
        }
        self.head: Any = np.array([head[name] for name in Head], np.int64)
        self.function = code.of(self.head)

    def _slots(self, record: Record, first: int) -> list[int]:
        """Return the addresses that are known beforehand."""
        slots = [0] * (1 + max((slot for slot, _ in [*_slots_of(record)]), default=0))
        used = 0
        for slot, size in record.memory:
            slots[slot] = first + used
            used += -(-size // _LINE) * _LINE
        for slot, array, _ in record.constants:
            self._alive.append(array)
            slots[slot] = int(array.ctypes.data)
        for one in record.arguments:
            if one.kind == "number":
                place = np.zeros(1, np.float64)
                self._alive.append(place)
                slots[one.slot] = int(place.ctypes.data)
        self._used = used
        return slots

    def _table(self, rows: Sequence[Sequence[int]]) -> int:
        array = np.array(rows or [[0]], np.int64).reshape(-1)
        self._alive.append(array)
        return int(array.ctypes.data)

    def _argument(self, one: Any) -> tuple[int, ...]:
        if one.kind == "same":
            self._alive.append(one.value)
            return Kind.SAME, id(one.value), 0, 0, 0, 0, 0, 0
        if one.kind == "other":
            return Kind.OTHER, 0, 0, 0, 0, 0, 0, 0
        if one.kind == "number":
            return (Kind.SINGLE if one.value.char == "f" else Kind.DOUBLE), 0, 0, 0, 0, 0, 0, one.slot
        layout = one.value
        shape, strides = self._table([layout.shape]), self._table([layout.strides])
        flags = _ALIGNED | (_WRITEABLE if one.written else 0)
        kind = Kind.WRITTEN if one.written else Kind.READ
        return kind, id(layout.dtype), len(layout.shape), shape, strides, flags, layout.bytes, one.slot

    def _result(self, shape: tuple[int, ...], dtype: Any, slot: int) -> tuple[int, ...]:
        return len(shape), self._table([shape]), dtype.num, slot


def _slots_of(record: Record) -> list[tuple[int, int]]:
    operands = [operand for call in record.calls for operand in call.operands]
    numbered = [(one.slot, 0) for one in record.arguments if one.kind in ("array", "number")]
    return [*numbered, *((one.slot, 0) for one in operands), *((slot, 0) for _, _, slot in record.results)]


def _words_of(call: Call, environment: Any) -> list[int]:
    """Return the words of a call."""
    words = [0] * int(Word.SIZE)
    for at, one in enumerate(call.operands):
        words[Word.SLOTS + at], words[Word.OFFSETS + at] = one.slot, one.offset
        for steps, begin in zip(one.steps, (Word.STEPS, Word.OUTER_STEPS, Word.OUTERMOST_STEPS), strict=False):
            words[begin + at] = steps
    words[Word.OPERANDS] = len(call.operands)
    if call.kind == "loop":
        words[Word.KIND] = What.LOOP
        words[Word.FUNCTION], words[Word.DATA] = _loop(*call.function)
        words[Word.COUNT : Word.COUNT + 3] = call.numbers
    elif call.kind == "select":
        words[Word.KIND] = What.SELECT
        words[Word.COUNT : Word.COUNT + 2] = call.numbers
    elif call.kind in ("take", "put"):
        words[Word.KIND] = What[call.kind.upper()]
        words[Word.COUNT : Word.COUNT + 3] = call.numbers
    else:
        _product_words(call, environment, words)
    return words


def _product_words(call: Call, environment: Any, words: list[int]) -> None:
    """Fill in the words of a product."""
    name = ("S" if call.function == "f" else "D") + call.kind.upper()
    words[Word.KIND] = What[name]
    words[Word.FUNCTION] = int(environment[Environment[name]])
    if not words[Word.FUNCTION]:
        raise Unrecordable("another BLAS")
    if call.kind == "gemv":
        order, turned, rows, columns, lead, step = call.numbers
        words[Word.COUNT], words[Word.OUTER] = rows, columns
        words[Word.STEPS : Word.STEPS + 4] = [order, turned, lead, step]
    elif call.kind == "dot":
        words[Word.COUNT], *words[Word.STEPS : Word.STEPS + 2] = call.numbers
    else:
        left, right, m, n, k, a_lead, b_lead = call.numbers
        words[Word.COUNT : Word.COUNT + 3] = [m, n, k]
        words[Word.STEPS : Word.STEPS + 4] = [left, right, a_lead, b_lead]


def _loop(ufunc: Any, number: int) -> tuple[int, int]:
    """Return the addresses of a loop of a ufunc and of what it is called with."""
    loops, data = (ctypes.c_size_t.from_address(id(ufunc) + at).value for at in (_UFUNC_LOOPS, _UFUNC_DATA))
    function = ctypes.c_size_t.from_address(loops + 8 * number).value
    return function, ctypes.c_size_t.from_address(data + 8 * number).value if data else 0


__all__ = ["Replayed", "Unavailable"]
