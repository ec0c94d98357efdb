"""Collectives as primitives: pure functions of arrays, which the tape differentiates and a compiled step contains.

A compiled step computes them in Python between two turns of native code. A reduction of gradients is two
instructions, so that the step goes on in between: `bucket_start`, which takes the bucket's gradients, and
`bucket_wait`, which gives the averages.
"""

from __future__ import annotations

import importlib
import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from glassgrad.distributed.calls import as_bytes, flat
from glassgrad.distributed.reductions import ReduceOp, reduction
from glassgrad.distributed.waiting import wait_until
from glassgrad.engine.mode import MODE, TRACING
from glassgrad.engine.tensor import Tensor, make
from glassgrad.ops.core import PRIMITIVES, Array, Aval, Custom

# Reducers and groups by numbers, as parameters of instructions are plain values.
_KNOWN: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_NUMBERS = itertools.count()


def register(thing: Any) -> int:
    """Return a number that stands for a reducer or a group in instructions."""
    for number, known in _KNOWN.items():
        if known is thing:
            return number
    number = next(_NUMBERS)
    _KNOWN[number] = thing
    return number


# How many collectives compiled steps have done here. Every one in a trace reads and writes it: so each depends on the
# one before, and none is left out. The order is that of the program on every rank, whatever else differs between them.
ORDER = make(np.zeros((), np.int64), None, False)
_TOKEN = Aval((), np.dtype(np.int64))


class _InOrder(Custom):
    """A collective as an instruction: it takes the count of those before it, and returns it with the results."""

    by_name = True  # name and parameters say all, so that a step with it can be kept on the disk

    def __init__(self, plain: _Collective) -> None:
        super().__init__(plain.name, self._forward, multiple=True, vjp=(), jvp=(), register=False)
        self.plain = plain
        PRIMITIVES[plain.name] = self

    def bind(self, params: dict[str, Any]) -> Any:
        """Return an object for a place in a program: its `run` is the call, and its `attach` is given the memory."""
        return None if self.plain.bind is None else self.plain.bind(params)

    def compute_into(self, outputs: Sequence[Array], count: Array, *args: Any, **params: Any) -> None:
        """Do it, and write the results into arrays."""
        outputs[0][...] = count + 1
        if self.plain.into is not None:
            self.plain.into(outputs[1:], *args, **params)
            return
        made = self.plain.evaluate(*args, **params)
        for output, part in zip(outputs[1:], made if self.plain.multiple else (made,), strict=True):
            output[...] = part

    def _forward(self, _xp: Any, count: Array, *args: Any, **params: Any) -> Any:
        made = self.plain.evaluate(*args, **params)
        return (np.asarray(count) + 1, *(made if self.plain.multiple else (made,)))

    def abstract(self, *args: Any, **params: Any) -> Any:
        """Return the types of the results."""
        made = self.plain.types(*args[1:], **params)
        return (_TOKEN, *(made if self.plain.multiple else (made,)))


class _Collective(Custom):
    """A primitive that talks to other processes: its types are known without that."""

    def __init__(
        self,
        name: str,
        forward: Callable[..., Any],
        types: Callable[..., Any],
        into: Callable[..., None] | None = None,
        bind: Callable[[dict[str, Any]], Any] | None = None,
        **facts: Any,
    ) -> None:
        super().__init__(name, forward, register=False, **facts)
        self.types = types
        self.into = into  # the same, which writes into the arrays that it is given first
        self.bind = bind  # the same for native code, which may move arrays of the step
        self.in_order = _InOrder(self)

    def __call__(self, *args: Any, **params: Any) -> Any:
        if MODE.flags & TRACING and not any(isinstance(arg, Tensor) for arg in args):
            return self._traced(args, params)
        return super().__call__(*args, **params)

    def _traced(self, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Append it to the program of a step."""
        token, *found = self.in_order(ORDER.lifted(), *args, **params)
        ORDER.array.write(token)
        return tuple(found) if self.multiple else found[0]

    def abstract(self, *args: Any, **params: Any) -> Any:
        """Return the types of the results."""
        return self.types(*args, **params)


# --- a sum over the ranks ---------------------------------------------------------------------------


def _all_reduce(_xp: Any, x: Array, *, group: int, op: str) -> Array:
    """Reduce an array over the ranks of a group, into new memory."""
    owner = _KNOWN[group]
    array = np.asarray(x)
    if owner.size() == 1:
        return array.copy()
    how = reduction("all_reduce", ReduceOp[op], array.dtype)
    elements = how.packed(flat(array.copy()))
    mpi = importlib.import_module("mpi4py.MPI")
    request = owner.comm.Iallreduce(mpi.IN_PLACE, elements, getattr(mpi, how.op))
    wait_until(request.Test, owner, "all_reduce")
    result = how.unpacked(elements, owner.size(), array.dtype)
    return result.astype(array.dtype, copy=False).reshape(array.shape)


def _reduced_cotangent(g: Array, _y: Any, _x: Any, *, group: int, op: str) -> Array:
    # Every rank's result depends on every rank's input, and the loss is the sum of those of the ranks.
    return all_reduce_p(g, group=group, op=op)


all_reduce_p = _Collective(
    "all_reduce",
    _all_reduce,
    lambda x, **_params: Aval(tuple(x.shape), x.dtype),
    vjp=(_reduced_cotangent,),
    jvp=(_reduced_cotangent,),
)
all_reduce_p.describe("sum of x over the ranks")


# --- the buckets of DistributedDataParallel -----------------------------------------------------------


def _start(_xp: Any, *arrays: Array, reducer: int, bucket: int) -> tuple[Array, ...]:
    owner = _KNOWN[reducer]
    for earlier in owner.buckets[:bucket]:
        earlier.progress()
    owner.buckets[bucket].start(owner.comm, [np.asarray(one) for one in arrays], in_place=False)
    return ()


def _wait(_xp: Any, *, reducer: int, bucket: int, types: Any) -> tuple[Array, ...]:
    outputs = tuple(np.empty(shape, name) for shape, name in types)
    _wait_into(outputs, reducer=reducer, bucket=bucket, types=types)
    return outputs


def _wait_into(outputs: Sequence[Array], *, reducer: int, bucket: int, types: Any) -> None:
    owner = _KNOWN[reducer]
    owner.buckets[bucket].finish(owner.group, outputs)


def _parts(_xp: Any, *, reducer: int, bucket: int, ranks: int, types: Any) -> tuple[Array, ...]:
    owner = _KNOWN[reducer]
    owner.buckets[bucket].arrive(owner.group)
    return tuple(place.array.copy() for place in owner.buckets[bucket].parts())


class _BoundStart:
    """`bucket_start` in native code, which leaves gradients in the memory that the ranks share where it can."""

    def __init__(self, params: dict[str, Any]) -> None:
        self.bucket = _KNOWN[params["reducer"]].buckets[params["bucket"]]
        self.params = params

    def attach(self, operands: Sequence[Any], _results: Sequence[Any]) -> None:
        self.bucket.write_through(operands[1:])

    def run(self, outputs: Sequence[Array], count: Array, *arrays: Array) -> None:
        outputs[0][...] = count + 1
        _start(None, *arrays, **self.params)


class _BoundParts:
    """`bucket_parts` in native code, which reads the gradients of all ranks where they are."""

    def __init__(self, params: dict[str, Any]) -> None:
        self.owner = _KNOWN[params["reducer"]]
        self.bucket = self.owner.buckets[params["bucket"]]
        self.moves: Sequence[Any] = ()

    def attach(self, _operands: Sequence[Any], results: Sequence[Any]) -> None:
        self.moves = results[1:]

    def run(self, outputs: Sequence[Array], count: Array) -> None:
        outputs[0][...] = count + 1
        self.bucket.arrive(self.owner.group)
        for output, move, place in zip(outputs[1:], self.moves, self.bucket.parts(), strict=True):
            if move is None:
                output[...] = place.array
            else:
                move(place.address, place.array)


def _bound_start(params: dict[str, Any]) -> _BoundStart | None:
    return _BoundStart(params) if _KNOWN[params["reducer"]].buckets[params["bucket"]].direct else None


bucket_start_p = _Collective(
    "bucket_start", _start, lambda *_arrays, **_params: (), vjp=(), jvp=(), multiple=True, bind=_bound_start
)
bucket_start_p.describe("begin to average x1, x2, ... over the ranks")
bucket_parts_p = _Collective(
    "bucket_parts",
    _parts,
    lambda *, types, ranks, **_params: tuple(
        Aval(shape, np.dtype(name)) for shape, name in types for _ in range(ranks)
    ),
    vjp=(),
    jvp=(),
    multiple=True,
    bind=_BoundParts,
)
bucket_parts_p.describe("the arrays of a bucket on every rank")
bucket_wait_p = _Collective(
    "bucket_wait",
    _wait,
    lambda *, types, **_params: tuple(Aval(shape, np.dtype(name)) for shape, name in types),
    vjp=(),
    jvp=(),
    multiple=True,
    into=_wait_into,
)
bucket_wait_p.describe("the averages of a bucket")


def start(arrays: Sequence[Array], reducer: int, bucket: int) -> None:
    """In a step that is being traced, begin to average the gradients of a bucket."""
    bucket_start_p(*arrays, reducer=reducer, bucket=bucket)


def wait(bucket: Any, reducer: int, position: int) -> tuple[Array, ...]:
    """In a step that is being traced, return the averages of a bucket."""
    types = tuple((tuple(shape), bucket.dtype.name) for shape in bucket.shapes)
    if bucket.direct:
        # Added up by the program, in the kernels that read the sums: no rank writes averages for itself.
        count = bucket.ranks
        parts = bucket_parts_p(reducer=reducer, bucket=position, ranks=count, types=types)
        groups = [parts[at : at + count] for at in range(0, len(parts), count)]
        return tuple(_mean_of(group) for group in groups)
    found: tuple[Array, ...] = bucket_wait_p(reducer=reducer, bucket=position, types=types)
    return found


def _mean_of(parts: Sequence[Any]) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    ranks = len(parts)
    return total / ranks if ranks & (ranks - 1) else total * (1 / ranks)


# --- the values of one rank ---------------------------------------------------------------------------


def _broadcast(_xp: Any, *arrays: Array, owner: int, src: int) -> tuple[Array, ...]:
    """Return the arrays of a rank of the group: all of them in one message."""
    known = _KNOWN[owner]  # a group, or a reducer, which has a communicator of its own
    content = np.concatenate([as_bytes(flat(np.asarray(one))) for one in arrays])
    wait_until(known.comm.Ibcast(content, src).Test, getattr(known, "group", known), "broadcast")
    found, begin = [], 0
    for one in map(np.asarray, arrays):
        found.append(content[begin : begin + one.nbytes].view(one.dtype).reshape(one.shape))
        begin += one.nbytes
    return tuple(found)


broadcast_p = _Collective(
    "broadcast_from",
    _broadcast,
    lambda *arrays, **_params: tuple(Aval(tuple(x.shape), x.dtype) for x in arrays),
    vjp=(),
    jvp=(),
    multiple=True,
)
broadcast_p.describe("x1, x2, ... of one rank")
