"""In-place writes: which memory was overwritten, when and where, and whether a saved value was in it."""

from __future__ import annotations

import copy
import operator
import sys
import weakref
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.node import Node, describe, next_sequence
from glassgrad.ops.core import Array, Aval
from glassgrad.ops.views import memory_owner
from glassgrad.ops.vmap.batched import Batched

# A write to memory: when, where, and (address, shape, strides, dtype) of the part; None for all of it.
_Layout = tuple[int, tuple[int, ...], tuple[int, ...], np.dtype[Any]]
_Write = tuple[int, CodeType, int, _Layout | None]
_MOST_PARTS = 256  # with more of them, the older half becomes one write to all of the memory


_ndarray = np.ndarray
# Saved values that hold no memory of an array: numbers, and what stands for an argument that is not saved.
_WITHOUT_MEMORY = frozenset({int, float, bool, str, type(None), np.float32, np.float64, np.int64, Node, Aval})
_share: Callable[..., bool] = np.may_share_memory  # the stub allows two values of `max_work`; True if it takes more


def _layout(array: Array) -> _Layout:
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype


def _meet(owner: Any, layout: _Layout | None, read: Any) -> bool:
    """Tell whether a part of the memory of `owner` and an array that reads it have an element in common."""
    if layout is None or read is None:
        return True
    address, shape, strides, dtype = layout
    if 0 in shape:
        return False
    start = owner.__array_interface__["data"][0]
    part = np.ndarray(shape, dtype, owner, address - start, strides) if owner.flags.c_contiguous else owner
    return _share(part, read, max_work=10_000)


class Writer:
    """Repeatedly overwrites the same arrays, like an optimizer; makes recording such writes cheap."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self.seq = 0
        self.code: CodeType | None = None
        self.lasti = 0
        MUTATIONS.writers.add(self)

    def __reduce__(self) -> Any:
        return Writer, ()  # a copy has no writes yet

    def __del__(self) -> None:
        if self.arrays and not sys.is_finalizing():
            MUTATIONS.keep(self)

    def wrote(self, arrays: list[Array]) -> None:
        """Note that `arrays` were overwritten from the user's current line."""
        if len(arrays) != len(self.arrays) or not all(map(operator.is_, arrays, self.arrays)):
            MUTATIONS.keep(self)
        frame = provenance.user_frame(2)
        self.code, self.lasti = frame.f_code, frame.f_lasti
        self.arrays = arrays
        self.seq = MUTATIONS.latest = MUTATIONS.latest_of_writers = next_sequence()


class _Mutations:
    """The log of in-place writes: which memory, when, where.

    Saved arrays are checked against it only when some write is younger than the oldest node of a walk,
    so a training loop, whose writes all happen between the steps, pays one comparison.
    """

    def __init__(self) -> None:
        self.latest = 0
        self.latest_of_writers = 0
        self.log: dict[int, tuple[Any, list[_Write]]] = {}  # by the id of the owner: a reference to it, and its writes
        self.writers: weakref.WeakSet[Writer] = weakref.WeakSet()

    def record(self, *arrays: Array, frame: Any = None) -> None:
        """Note that the memory of `arrays` is being overwritten from the user's current line."""
        frame = frame or provenance.user_frame(1)
        code, lasti = frame.f_code, frame.f_lasti
        self.latest = latest = next_sequence()
        log = self._swept()
        for array in arrays:
            owner = array if array.base is None else memory_owner(array)
            known = log.get(id(owner))
            if owner is array or array.nbytes >= owner.nbytes:  # earlier writes no longer matter
                reference = known[0] if known is not None and known[0]() is owner else weakref.ref(owner)
                log[id(owner)] = (reference, [(latest, code, lasti, None)])
                continue
            if known is None or known[0]() is not owner:
                known = log[id(owner)] = (weakref.ref(owner), [])
            writes = known[1]
            writes.append((latest, code, lasti, _layout(array)))
            if len(writes) > _MOST_PARTS:
                half = writes[len(writes) // 2]
                writes[: len(writes) // 2 + 1] = [(*half[:3], None)]

    def keep(self, writer: Writer) -> None:
        """Enter the last writes of a writer into the log, before it writes again or is deleted."""
        log = self._swept()
        for owner in map(memory_owner, writer.arrays):
            assert writer.code is not None
            reference, writes = log.get(id(owner), (None, []))
            if reference is None or reference() is not owner:
                reference, writes = weakref.ref(owner), []
            later = [write for write in writes if write[0] > writer.seq]
            log[id(owner)] = (reference, [(writer.seq, writer.code, writer.lasti, None), *later])

    def _swept(self) -> dict[int, tuple[Any, list[_Write]]]:
        """Return the log; if it is long, without memory that was freed."""
        if len(self.log) > 4096:
            # A copy, because a writer that is collected meanwhile adds to it.
            self.log = {key: entry for key, entry in self.log.copy().items() if entry[0]() is not None}
        return self.log

    def write_since(self, seq: int, owner: Any, read: Any = None) -> provenance.Place | None:
        """Return where the memory of `owner` was overwritten after `seq`, if it was.

        With `read`, a view of it, only writes to the view's elements count.
        """
        entry = self.log.get(id(owner))
        if entry is not None and entry[0]() is owner:
            for when, code, lasti, layout in reversed(entry[1]):
                if when <= seq:
                    break
                if _meet(owner, layout, read):
                    return provenance.resolve(code, lasti)
        for writer in self.writers if self.latest_of_writers > seq else ():
            if writer.seq > seq and any(memory_owner(array) is owner for array in writer.arrays):
                assert writer.code is not None
                return provenance.resolve(writer.code, writer.lasti)
        return None

    def owners_since(self, seq: int) -> list[Array]:
        """Return weak references to the owners of memory that was overwritten after `seq`."""
        if self.latest <= seq:
            return []
        return [owner for owner, writes in self.log.copy().values() if writes[-1][0] > seq and owner() is not None]

    def _may_hold_written(self, node: Node) -> bool:
        """Tell at once of most nodes that nothing they saved was written: the graph may have one write, in a sum."""
        if self.latest_of_writers > node.seq:
            return True
        log = self.log
        for value in node.saved:
            if type(value) is _ndarray:
                if id(value if value.base is None else memory_owner(value)) in log:
                    return True
            elif type(value) not in _WITHOUT_MEMORY:
                return True
        return False

    def check(self, node: Node, traced: bool = False) -> None:
        """Raise when something that `node` saved was overwritten after it was saved.

        With `traced`, Symbols count too. A traced backward walk skips them: the tracer sees what its rules read.
        """
        if not traced and not self._may_hold_written(node):
            return
        for position, array in _arrays(node.saved):
            if isinstance(array, np.ndarray):
                written = self.write_since(node.seq, memory_owner(array), array)
            else:
                written = array.written_since(node.seq) if traced else None
            if written is None or not _is_read(node, position):
                continue
            operands = node.place.operands
            if position == 0:
                what = describe(None, node)
            elif position <= len(operands):
                what = f"'{operands[position - 1]}'"
            else:
                what = f"argument {position} of {node.prim.name}"
            name = what.strip("'") if what.startswith("'") else "h"
            raise errors.SAVED_OVERWRITTEN(
                what=what, op=node.prim.name, saved=node.place, written=written, hint=f"{name} = {name} + ..."
            )


# op -> position of an argument -> positions of the arguments whose derivatives read it; by default it is always read.
_READERS: dict[str, dict[int, tuple[int, ...]]] = {
    "multiply": {1: (2,), 2: (1,)},
    "matmul": {1: (2,), 2: (1,)},
    "divide": {1: (2,)},
    "conv2d": {1: (2,), 2: (1,)},
    "linear": {1: (2,), 2: (1,), 3: ()},
    "lerp": {1: (3,), 2: (3,), 3: (1, 2)},
}
# Ops that save their result although PyTorch's do not: before a write they get a copy of it.
_COPIED = frozenset({"max_pool2d", "gelu"})


def _is_read(node: Node, position: int) -> bool:
    """Tell whether a backward pass reads the saved value at a position: `h * 2` does not need h."""
    readers = _READERS.get(node.prim.name, {}).get(position)
    return readers is None or any(len(node.parents) >= at and node.parents[at - 1] is not None for at in readers)


def spare_result(x: Array) -> None:
    """Before `x` is overwritten, give the op that made it a copy, if PyTorch's op does not save its result.

    So an activation may work in place on the result of a pooling, as in PyTorch.
    """
    while x is not None:
        node = x.node
        if node is not None and node.prim.name in _COPIED and type(node.saved) is tuple and node.saved[0] is x.array:
            node.saved = (copy.copy(x.array), *node.saved[1:])
        x = (x._extra or {}).get("view", (None,))[0]


def _arrays(saved: Array, position: int | None = None) -> Iterator[tuple[int, Array]]:
    """Yield the arrays among saved values, including those in tuples, with the position of the outermost entry."""
    for at, value in enumerate(saved):
        while type(value) is Batched:
            value = value.value  # all examples of a call of vmap
        if isinstance(value, np.ndarray) or hasattr(value, "written_since"):  # a Symbol is memory too
            yield at if position is None else position, value
        elif isinstance(value, tuple):
            yield from _arrays(value, at if position is None else position)


def part_of(memory: Array, key: Any) -> Array:
    """Return the part of an array that an index names, or all of it if the part is not a view."""
    named = key if type(key) is tuple else (key,)
    if not _VIEWING.issuperset(map(type, named)):
        return memory
    return memory[named if ... in named else (*named, ...)]


_VIEWING = frozenset({int, slice, type(...)})


MUTATIONS = _Mutations()
