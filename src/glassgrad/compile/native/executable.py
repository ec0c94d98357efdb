"""Compiled code with its memory: contexts, arguments, and alternating turns of native code and host.

A call costs a tuple and one foreign call: native code reads the arguments' addresses and checks their types and shapes
directly in NumPy's array objects. If they do not match, Python checks again, converts what it can and raises an error
for the rest.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from glassgrad import errors
from glassgrad.base.kept import free_in_children
from glassgrad.compile.ir.graph import Operand, Params, Var, type_text
from glassgrad.compile.llvm.module import support
from glassgrad.compile.llvm.module.target import LoadedCode
from glassgrad.compile.native import runtime
from glassgrad.compile.plan.indexing.bounds import Computed, IndexBounds, IndexCheck
from glassgrad.ops.core import Array

if TYPE_CHECKING:
    from glassgrad.compile.native.common_memory import CommonMemory

_Call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_Resume = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_Address = ctypes.CFUNCTYPE(ctypes.c_void_p)
Block = tuple[Var, int, tuple[int, ...], tuple[int, ...]]
"""A part of an array: the array, the offset of the part, its shape and its strides, in elements."""
Given = Block | Operand
"""An argument of a call of the host: a block of an array, or a number."""

_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400


@lru_cache(maxsize=1)
def object_layout() -> tuple[int, int]:
    """Return the offsets of a tuple's items and of an array's data pointer, found by inspection.

    Raises `RuntimeError` on an interpreter with another object layout.
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
    """The memory block that compiled code works from; see `compile.llvm.module.support`."""

    def __init__(self, shares: int, slots: int) -> None:
        self.shares = shares
        self.memory = runtime.aligned(support.context_bytes(shares, slots))
        self.words = self.memory.view(np.int64)
        self.address = int(self.memory.ctypes.data)
        self.keep: list[object] = []
        self.values: Array = None  # the memory for values between kernels, kept alive with this object

    def set(self, offset: int, value: int) -> None:
        """Write a word of the header."""
        self.words[offset // 8] = value

    def set_slot(self, slot: int, address: int) -> None:
        """Set the address of an array."""
        self.set(support.slot_offset(self.shares, slot), address)

    def table(self, rows: Sequence[Sequence[int]]) -> int:
        """Store a table of words; return its address."""
        array = np.array(rows, np.int64).reshape(-1)
        self.keep.append(array)
        return int(array.ctypes.data)

    def describe_arguments(self, arguments: Sequence[tuple[int, Var, bool]]) -> None:
        """Write the argument records: (slot, type, is it written) of each array."""
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

    def describe_checks(self, checks: Sequence[tuple[int, IndexBounds]]) -> None:
        """Write the check records: the slots and bounds of arguments that are indices."""
        rows = []
        for slot, check in checks:
            # Without a spare value, use one that is in range anyway.
            spare = check.low if check.spare is None else check.spare
            place = support.slot_offset(self.shares, slot)
            var = check.var
            size = var.dtype.itemsize
            kind = size + support.UNSIGNED if var.dtype.kind == "u" and size < 8 else size
            rows.append([place, var.size, kind, check.extent - check.low, check.low, spare])
        self.set(support.CHECK_COUNT, len(rows))
        self.set(support.CHECKS, self.table(rows))

    def reset_counters(self) -> None:
        """Discard an unfinished step."""
        self.set(support.DONE, 0)
        self.set(support.TARGET, 0)
        for share in range(self.shares):
            self.set(support.CLAIMS + share * support.CLAIM_SIZE, 0)


@dataclass(frozen=True)
class HostCall:
    """An op computed in Python between two turns of native code: `compute` on arrays, results copied to `results`.

    Operands and results are (Var, offset, shape, strides) blocks of arrays. With `fills`, `compute` also gets the
    blocks of the results, as its first arguments, and writes to them. `attach` is called with a `Move` for each operand
    and result, or None if it is not `movable`; the host may place a movable array anywhere, because nothing else
    depends on its address.
    """

    compute: Callable[..., Array]
    operands: tuple[Given, ...]
    results: tuple[Block, ...]
    fills: bool = False
    attach: Callable[[Sequence[Move | None], Sequence[Move | None]], None] | None = None
    movable: frozenset[Var] = frozenset()
    op: str = ""
    params: Params | None = None


class Move:
    """Lets a step use foreign memory for one of its arrays, from the next kernel on.

    Call it with the address and the array; it returns False if the step no longer exists.
    """

    def __init__(self, step: NativeStep, block: Block) -> None:
        self._step = weakref.ref(step)
        self._block = block
        self._word = support.slot_offset(step.shares, step.layout.slots[block[0]]) // 8

    def __call__(self, address: int, array: Array) -> bool:
        step = self._step()
        if step is None:
            return False
        step.context.words[self._word] = address
        step._views[self._block] = array
        return True


@dataclass
class Layout:
    """Everything that a `NativeStep` consists of, besides its code.

    Attributes:
        checks: the indices among the arguments.
        guards: results that tell whether the indices that the step computes are in range.
        uses: finds both kinds of indices in the graph again, with the data for error messages.
    """

    shares: int
    phases: int
    slots: Mapping[Var, int]
    pointers: Sequence[int]
    inputs: Sequence[Var]
    outputs: Sequence[Var]
    written: set[Var]
    buffers: Mapping[Var, int]
    constants: Sequence[tuple[Var, Array]]
    checks: Sequence[IndexBounds]
    segments: Sequence[tuple[int, HostCall | None]]
    arena: int
    scratch: int
    guards: Sequence[Var]
    uses: Callable[[], tuple[list[IndexCheck], list[Computed]]]


class NativeStep:
    """A compiled program and its memory. Calling it is safe from any number of threads; calls run one by one.

    Attributes:
        inputs: the types of the arguments.
        outputs: the types of the results.
        size: bytes for the values between kernels, and for scratch memory.
        common: the shared memory that it uses; None if it has its own.
        lock: held while the step runs. A caller with its own reentrant lock may put that here.
        address: the address of the context.
        first: the number of phases of the first turn of native code.
        call, resume: native code that checks arguments and runs the first turn, and that runs later turns; see
            `compile.llvm.module.support`.
    """

    def __init__(self, code: bytes, layout: Layout, memory: Array | None = None) -> None:
        """Load the code; use `memory`, a `runtime.space`, if it has the layout's size."""
        self.layout = layout
        self.size = layout.arena + layout.shares * layout.scratch
        self.inputs = tuple(layout.inputs)
        self.outputs = tuple(layout.outputs)
        self.shares = layout.shares
        self._code = LoadedCode(code)
        self.lock: Any = free_in_children(threading.Lock())
        self._templates = [(out.shape, out.dtype) for out in layout.outputs]
        self.context = self._make_context()
        self.lie_in(memory if memory is not None and memory.nbytes == self.size else runtime.space(self.size))
        self.common: CommonMemory | None = None
        support_code = runtime.support_code()
        self.call = _Call(support_code.address("call_step"))
        self.resume = _Resume(support_code.address("resume"))
        self.address = self.context.address
        self.first = layout.segments[0][0] if layout.segments else 0
        self._simple = len(layout.segments) <= 1 and all(host is None for _, host in layout.segments)
        self._pool: runtime.Pool | None = None
        self._views: dict[Block, Array] = {}
        for _, host in layout.segments:
            if host is not None and host.attach is not None:
                host.attach(self._moves(host, host.operands), self._moves(host, host.results))
        _steps.add(self)
        weakref.finalize(self, _release, self.context, self._code)

    def _moves(self, host: HostCall, blocks: Sequence[Given]) -> list[Move | None]:
        return [Move(self, one) if isinstance(one, tuple) and one[0] in host.movable else None for one in blocks]

    def _make_context(self) -> Context:
        layout = self.layout
        slots = layout.slots
        context = Context(layout.shares, len(slots) + len(layout.pointers) + 1)
        context.set(support.SHARES, layout.shares)
        context.set(support.PHASES, layout.phases)
        context.set(support.TABLE, int(_Address(self._code.address("phases_of"))()))
        arguments = [(slots[var], var, var in layout.written) for var in layout.inputs]
        arguments += [(slots[var], var, True) for var in layout.outputs]
        context.describe_arguments(arguments)
        context.describe_checks([(slots[check.var], check) for check in layout.checks])
        self._constants: dict[Var, Array] = {}
        for var, value in layout.constants:
            array = self._constants[var] = np.ascontiguousarray(value, var.dtype)
            context.set_slot(slots[var], int(array.ctypes.data))
        for number, address in enumerate(layout.pointers):
            context.set_slot(len(slots) + number, address)
        return context

    @property
    def memory(self) -> Array:
        """The memory for the values between kernels, and for scratch."""
        return self.context.values

    def lie_in(self, memory: Array, context: Context | None = None) -> None:
        """Use this memory for the values between kernels from the next run on, in the given copied context if any."""
        layout, base = self.layout, int(memory.ctypes.data)
        context = self.context if context is None else context
        for var, offset in layout.buffers.items():
            context.set_slot(layout.slots[var], base + offset)
        context.set_slot(len(layout.slots) + len(layout.pointers), base + layout.arena)
        context.values = memory

    def copied_context(self) -> Context:
        """Return a copy of the step's context with separate memory, for code that runs the phases itself."""
        layout = self.layout
        context = Context(self.shares, len(layout.slots) + len(layout.pointers) + 1)
        context.words[:] = self.context.words
        self.lie_in(runtime.space(self.size), context)
        return context

    def share(self, common: CommonMemory) -> None:
        """Use shared memory and free the step's own; only for plain steps."""
        if self.size and self.is_plain:
            self.common = common
            self.lie_in(runtime.space(0))

    def __call__(self, *arrays: Array) -> tuple[Array, ...]:
        """Run the step; return new arrays for the outputs, and write updates into the arguments."""
        if len(arrays) != len(self.inputs):
            # Native code would read past the end of the tuple.
            raise errors.STEP_ARGUMENT_COUNT(given=len(arrays), expected=len(self.inputs))
        results = tuple([np.empty(shape, dtype) for shape, dtype in self._templates])
        with self.lock:
            status = self.run(arrays + results)
            if status:
                self._run_again(arrays, results, status)
        if self.layout.guards:
            results = self._check_guards(results)
        return results

    @property
    def is_plain(self) -> bool:
        """Whether a call is one turn of native code, without work for the host and without checks afterwards."""
        return self._simple and not self.layout.guards

    # --- running -------------------------------------------------------------------------------------

    def run(self, arguments: tuple[Array, ...]) -> int:
        """Run on arrays for all inputs and outputs; return 0 or the number of an unfit one. The caller locks."""
        if self.common is None:
            return self._shared(lambda alone: self._segments(arguments, alone))
        with self.common.lent(self.size) as memory:
            if memory is not self.memory:
                self.lie_in(memory)
            return self._shared(lambda alone: self._segments(arguments, alone))

    def again(self, times: int) -> None:
        """Run a plain step without results `times` more, on the arguments of the last call.

        Arguments are not checked again, so the caller must ensure that indices, which the step may have changed, are in
        range. The caller holds the lock and references to the arguments.
        """
        assert self.is_plain
        assert not self.outputs
        assert self.common is None, "the values that it keeps in shared memory may be gone"
        self._shared(lambda alone: self.resume(self.address, alone, times * self.first))

    def _shared(self, turn: Callable[[int], int]) -> int:
        """Run a turn of native code: alone (1), or with the threads of the pool (0)."""
        if self.shares == 1:
            return turn(1)
        pool = self._pool
        if pool is None or pool is not runtime._pool:
            pool = self._pool = runtime.pool()
            self.context.set(support.POOL, pool.address)
            pool.ensure(self.shares - 1)
        if not pool.lock.acquire(blocking=False):
            # Another step has the threads; running alone is faster than waiting.
            return turn(1)
        try:
            return turn(0)
        finally:
            pool.lock.release()
            if pool.left:
                pool.sweep()

    def _segments(self, arguments: tuple[Array, ...], alone: int) -> int:
        status: int = self.call(self.address, id(arguments), alone, self.first)
        if self._simple or status:
            return status
        arrays = dict(zip((*self.inputs, *self.outputs), arguments, strict=True))
        finished = False
        try:
            for number, (count, host) in enumerate(self.layout.segments):
                if number and count:
                    self.resume(self.address, alone, count)
                if host is not None:
                    self._on_host(host, arrays)
            finished = True
        finally:
            if not finished:
                self._abandon(alone)
        return 0

    def _abandon(self, alone: int) -> None:
        """Reset the counters to the beginning of a step after the host failed in the middle of it."""
        pool = self._pool
        if pool is not None and not alone:
            pool.expel()
        self.context.reset_counters()

    def _on_host(self, host: HostCall, arrays: Mapping[Var, Array]) -> None:
        operands = [
            self._block(operand, arrays) if isinstance(operand, tuple) else operand for operand in host.operands
        ]
        with np.errstate(all="ignore"):  # native code does not warn either
            if host.fills:
                host.compute([self._block(block, arrays) for block in host.results], *operands)
                return
            made = host.compute(*operands)
        parts = made if isinstance(made, tuple) else (made,)
        for block, part in zip(host.results, parts, strict=False):
            self._block(block, arrays)[...] = part

    def _block(self, block: Block, arrays: Mapping[Var, Array]) -> Array:
        var, offset, shape, strides = block
        known = self._views.get(block)  # for memory that does not move
        if known is not None:
            return known
        whole = arrays.get(var)
        own = whole is None
        if own:
            whole = self._constants.get(var)
        if whole is None:
            start = self.layout.buffers[var]
            whole = self.memory[start : start + var.nbytes].view(var.dtype)
        steps = tuple([stride * var.dtype.itemsize for stride in strides])
        if whole.shape == shape and whole.strides == steps and not offset:
            return whole
        flat = whole.reshape(-1)[offset:]
        view = np.lib.stride_tricks.as_strided(flat, shape, steps)
        if own:
            self._views[block] = view
        return view

    # --- unfit arguments -----------------------------------------------------------------------------

    def _run_again(self, arrays: tuple[Array, ...], results: tuple[Array, ...], status: int) -> None:
        """Convert arguments and run, or raise an error about them."""
        pairs = enumerate(zip(arrays, self.inputs, strict=True))
        fitted = tuple([self._fit(value, var, number) for number, (value, var) in pairs])
        for check in self._uses[0]:
            check.verify(fitted[self.inputs.index(check.var)])
        # Unused positions of an index array may hold anything, so run without the quick check.
        count = self.context.words[support.CHECK_COUNT // 8].item()
        self.context.set(support.CHECK_COUNT, 0)
        try:
            status = self.run(fitted + results)
        finally:
            self.context.set(support.CHECK_COUNT, count)
        if status:
            raise AssertionError(f"argument {status} was converted and still does not fit")

    def _fit(self, value: object, var: Var, number: int) -> Array:
        array = np.asarray(value)
        if array.shape != var.shape or array.dtype != var.dtype:
            given = f"{array.dtype}{list(array.shape)}"
            raise errors.STEP_ARGUMENT(number=number, name=var.name or "", given=given, expected=type_text(var))
        fits = array.flags.c_contiguous and array.flags.aligned and array.flags.writeable
        if var in self.layout.written and not fits:
            raise errors.STEP_STATE(number=number, name=var.name or "")
        return np.require(array, requirements=["C", "A"])

    def _check_guards(self, results: tuple[Array, ...]) -> tuple[Array, ...]:
        count = len(self.layout.guards)
        if not all(results[-count:]):
            for result, index in zip(results[-count:], self._uses[1], strict=True):
                if not result:
                    raise errors.STEP_COMPUTED_INDEX(where=index.where)
        return results[:-count]

    @cached_property
    def _uses(self) -> tuple[list[IndexCheck], list[Computed]]:
        # For a step from disk the graph must be prepared first, so do it only on demand.
        return self.layout.uses()


def _release(context: Context, *alive: object) -> None:
    """Ensure that no worker accesses memory that is about to be freed."""
    pool = runtime._pool
    if pool is not None:
        pool.forget(context.address, (context, alive))


_steps: weakref.WeakSet[NativeStep] = weakref.WeakSet()


def _forget_runs_after_fork() -> None:
    # Another thread of the parent may have been inside a step.
    for step in list(_steps):
        step.context.reset_counters()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_runs_after_fork)
