"""The callable that a compiled graph becomes: contexts, arguments, memory.

A call costs two Python objects and one foreign call: the arguments' addresses are read, and their types and shapes
compared, in native code straight from NumPy's array objects. Where they do not match, Python looks again, converts
what it can and explains the rest.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from glassgrad.compile import runtime
from glassgrad.compile.emit.llvm import support
from glassgrad.compile.emit.llvm.target import LoadedCode
from glassgrad.compile.graph import Var, type_text

_Call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
_Address = ctypes.CFUNCTYPE(ctypes.c_void_p)
_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400


@lru_cache(maxsize=1)
def object_layout() -> tuple[int, int]:
    """Return where tuples keep their items and arrays their address, found by looking.

    Raises `RuntimeError` on an interpreter whose objects look different.
    """
    array = np.zeros(3, np.float32)
    pair = (array, array)
    items = _find(id(pair), [id(array), id(array)])
    data = _find(id(array), [int(array.ctypes.data)])
    return items, data


def _find(address: int, wanted: list[int]) -> int:
    words = (ctypes.c_int64 * 10).from_address(address)
    for place in range(1, 10 - len(wanted)):
        if [words[place + number] for number in range(len(wanted))] == wanted:
            return place * 8
    raise RuntimeError("tuples or arrays are laid out in an unknown way")


class Context:
    """The memory block that compiled code works from; see `emit.llvm.support`."""

    def __init__(self, shares: int, slots: int) -> None:
        self.shares = shares
        self.memory = runtime.aligned(support.context_bytes(shares, slots))
        self.words = self.memory.view(np.int64)
        self.address = int(self.memory.ctypes.data)
        self.keep: list[Any] = []

    def set(self, offset: int, value: int) -> None:
        self.words[offset // 8] = value

    def set_slot(self, slot: int, address: int) -> None:
        self.set(support.slot_offset(self.shares, slot), address)

    def table(self, rows: Sequence[Sequence[int]]) -> int:
        """Store a table of words; return its address."""
        array = np.array(rows, np.int64).reshape(-1)
        self.keep.append(array)
        return int(array.ctypes.data)

    def describe_arguments(self, arguments: Sequence[tuple[int, Var, bool]]) -> None:
        """State what the call takes: (slot, type, is it written) of each array."""
        items, data = object_layout()
        rows = []
        for slot, var, written in arguments:
            shape = np.array(var.shape, np.int64)
            descr = np.dtype(var.dtype)
            self.keep += [shape, descr]
            flags = _CONTIGUOUS | _ALIGNED | (_WRITEABLE if written else 0)
            rows.append([support.slot_offset(self.shares, slot), id(descr), var.ndim, int(shape.ctypes.data), flags, 0])
        self.set(support.ARG_COUNT, len(rows))
        self.set(support.ARGS, self.table(rows))
        self.set(support.ARRAY_TYPE, id(np.ndarray))
        self.set(support.TUPLE_ITEMS, items)
        self.set(support.ARRAY_DATA, data)

    def describe_checks(self, checks: Sequence[tuple[int, Var, int]]) -> None:
        """State which arguments are indices: (slot, type, extent of what they index)."""
        rows = [
            [support.slot_offset(self.shares, slot), var.size, var.dtype.itemsize, extent] for slot, var, extent in checks
        ]
        self.set(support.CHECK_COUNT, len(rows))
        self.set(support.CHECKS, self.table(rows))


class NativeStep:
    """A compiled program and its memory. Calling it is safe from any number of threads; calls run one by one.

    Attributes:
        inputs: the types of the arguments.
        outputs: the types of the results.
    """

    def __init__(
        self, code: bytes, shares: int, phases: int, slots: dict[Var, int], extra_slots: Sequence[int],
        inputs: Sequence[Var], written: set[Var], outputs: Sequence[Var], buffers: Sequence[tuple[Var, int]],
        constants: Sequence[tuple[Var, Any]], checks: Sequence[tuple[Var, int]], arena: int, scratch: int,
    ) -> None:  # fmt: skip
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.shares = shares
        self.checks = tuple(checks)
        self._code = LoadedCode(code)
        self._lock = threading.Lock()
        self._templates = [(out.shape, out.dtype) for out in outputs]
        context = self.context = Context(shares, len(slots) + len(extra_slots) + 1)
        context.set(support.SHARES, shares)
        context.set(support.PHASES, phases)
        context.set(support.TABLE, int(_Address(self._code.address("phases_of"))()))
        arguments = [(slots[var], var, var in written) for var in inputs]
        arguments += [(slots[var], var, True) for var in outputs]
        context.describe_arguments(arguments)
        context.describe_checks([(slots[var], var, extent) for var, extent in checks])
        self.memory = runtime.aligned(arena + shares * scratch)
        base = int(self.memory.ctypes.data)
        for var, offset in buffers:
            context.set_slot(slots[var], base + offset)
        for var, value in constants:
            array = np.ascontiguousarray(value, var.dtype)
            context.keep.append(array)
            context.set_slot(slots[var], int(array.ctypes.data))
        for number, address in enumerate([*extra_slots, base + arena]):
            context.set_slot(len(slots) + number, address)
        self._call = _Call(runtime.support_code().address("call_step"))
        self._address = context.address
        self._pool: runtime.Pool | None = None
        weakref.finalize(self, _release, context.address, context, self._code, self.memory)

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        """Run the step; returns new arrays for the outputs, updates are written into the arguments."""
        results = tuple([np.empty(shape, dtype) for shape, dtype in self._templates])
        self.run(arrays + results)
        return results

    def run(self, arguments: tuple[Any, ...]) -> None:
        """Run the step on arguments followed by the arrays that take the results."""
        with self._lock:
            status = self._run(arguments)
            if status:
                arguments = self._fit(arguments, status)
                status = self._run(arguments)
                if status:
                    raise AssertionError(f"argument {status} was converted and still does not fit")

    def _run(self, arguments: tuple[Any, ...]) -> int:
        if self.shares == 1:
            return self._call(self._address, id(arguments), 1)
        pool = self._pool
        if pool is None or pool is not runtime._pool:
            pool = self._pool = runtime.pool()
            self.context.set(support.POOL, pool.address)
            pool.ensure(self.shares - 1)
        if not pool.lock.acquire(blocking=False):
            # Another step has the threads; alone is better than in a queue.
            return self._call(self._address, id(arguments), 1)
        try:
            return self._call(self._address, id(arguments), 0)
        finally:
            pool.lock.release()

    def _fit(self, arguments: tuple[Any, ...], status: int) -> tuple[Any, ...]:
        """Return arguments that fit, or raise what is wrong with them."""
        if status >= support.BAD_INDEX:
            var, extent = self.checks[status - support.BAD_INDEX]
            raise IndexError(f"an index in argument {var.name or self.inputs.index(var)} is out of range for {extent}")
        fitted = [_fit_one(value, var, number) for number, (value, var) in enumerate(zip(arguments, self.inputs, strict=False))]
        return (*fitted, *arguments[len(fitted) :])


def _release(address: int, *_alive: Any) -> None:
    pool = runtime._pool
    if pool is not None:
        pool.forget(address)


def _fit_one(value: Any, var: Var, number: int) -> Any:
    array = np.asarray(value)
    if array.shape != var.shape or array.dtype != var.dtype:
        given = f"{array.dtype}{list(array.shape)}"
        raise TypeError(f"argument {number} ({var.name or 'unnamed'}) is {given}, expected {type_text(var)}")
    return np.ascontiguousarray(array)
