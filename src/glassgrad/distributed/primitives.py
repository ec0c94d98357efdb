"""Collectives as primitives: pure functions of arrays, which the tape differentiates and a compiled step contains.

A compiled step runs them in Python between two calls of native code. A reduction of gradients is two instructions, so
the step continues in between: `bucket_start` takes the bucket's gradients, and `bucket_wait` returns the averages.
"""

from __future__ import annotations

import importlib
import itertools
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from glassgrad.distributed.calls import as_bytes, flat
from glassgrad.distributed.reductions import ReduceOp, reduction
from glassgrad.distributed.waiting import wait_until
from glassgrad.engine.mode import MODE, TRACING
from glassgrad.engine.tensor import Tensor, make
from glassgrad.ops.core import PRIMITIVES, Array, Aval, Custom

# Reducers and groups by number, because parameters of instructions are plain values.
_KNOWN: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_NUMBERS = itertools.count()


def register(thing: Any) -> int:
    """Return a number that represents a reducer or a group in instructions."""
    for number, known in _KNOWN.items():
        if known is thing:
            return number
    number = next(_NUMBERS)
    _KNOWN[number] = thing
    return number


# The number of collectives that compiled steps have run here. Every collective in a trace reads and writes it, so each
# depends on the previous one and none is eliminated. All ranks run them in the order of the program.
ORDER = make(np.zeros((), np.int64), None, False)
_TOKEN = Aval((), np.dtype(np.int64))


class _InOrder(Custom):
    """A collective as an instruction: it takes the count of earlier collectives, and returns it with the results."""

    by_name = True  # name and parameters describe it, so a step with it can be cached on disk

    def __init__(self, plain: _Collective) -> None:
        super().__init__(plain.name, self._forward, multiple=True, vjp=(), jvp=(), register=False)
        self.plain = plain
        PRIMITIVES[plain.name] = self

    def bind(self, params: dict[str, Any]) -> Any:
        """Return an object for one instruction of a program: `run` makes the call, `attach` receives the memory."""
        return None if self.plain.bind is None else self.plain.bind(params)

    def compute_into(self, outputs: Sequence[Array], count: Array, *args: Any, **params: Any) -> None:
        """Run it, and write the results into arrays."""
        outputs[0][...] = count + 1
        if self.plain.into is not None:
            self.plain.into(outputs[1:], *args, **params)
            return
        made = self.plain.evaluate(*args, **params)
        for output, part in zip(outputs[1:], made if self.plain.multiple else (made,), strict=True):
            output[...] = part

    def _forward(self, _xp: object, count: Array, *args: Any, **params: Any) -> Any:
        made = self.plain.evaluate(*args, **params)
        return (np.asarray(count) + 1, *(made if self.plain.multiple else (made,)))

    def abstract(self, *args: Any, **params: Any) -> Any:
        """Return the types of the results."""
        made = self.plain.types(*args[1:], **params)
        return (_TOKEN, *(made if self.plain.multiple else (made,)))


class _Collective(Custom):
    """A primitive that communicates with other processes; its types are known without communication."""

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
        self.into = into  # the same function, writing into the arrays that are its first arguments
        self.bind = bind  # the same for native code, which may move the step's arrays
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


def _all_reduce(_xp: object, x: Array, *, group: int, op: str) -> Array:
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


def _reduced_cotangent(g: Array, _y: Array, _x: Array, *, group: int, op: str) -> Array:
    # Every rank's result depends on every rank's input, and the total loss is the sum of the ranks' losses.
    return all_reduce_p(g, group=group, op=op)


def _type_of(x: Array, **_params: Any) -> Aval:
    return Aval(tuple(x.shape), x.dtype)


_LINEAR: dict[str, Any] = {"vjp": (_reduced_cotangent,), "jvp": (_reduced_cotangent,)}
all_reduce_p = _Collective("all_reduce", _all_reduce, _type_of, **_LINEAR)
all_reduce_p.describe("sum of x over the ranks")


# --- the buckets of DistributedDataParallel -----------------------------------------------------------


def _start(_xp: object, *arrays: Array, reducer: int, bucket: int) -> tuple[Array, ...]:
    owner = _KNOWN[reducer]
    for earlier in owner.buckets[:bucket]:
        earlier.progress()
    owner.buckets[bucket].start(owner.comm, [np.asarray(one) for one in arrays], in_place=False)
    return ()


def _wait(_xp: object, *, reducer: int, bucket: int, types: Iterable[Any]) -> tuple[Array, ...]:
    outputs = tuple(np.empty(shape, name) for shape, name in types)
    _wait_into(outputs, reducer=reducer, bucket=bucket, types=types)
    return outputs


def _wait_into(outputs: Sequence[Array], *, reducer: int, bucket: int, types: Iterable[Any]) -> None:
    owner = _KNOWN[reducer]
    owner.buckets[bucket].finish(owner.group, outputs)


def _parts(_xp: object, *, reducer: int, bucket: int, ranks: int, types: Iterable[Any]) -> tuple[Array, ...]:
    owner = _KNOWN[reducer]
    owner.buckets[bucket].arrive(owner.group)
    return tuple(place.array.copy() for place in owner.buckets[bucket].parts())


class _BoundStart:
    """`bucket_start` in native code, which writes gradients to the ranks' shared memory if possible."""

    def __init__(self, params: dict[str, Any]) -> None:
        self.bucket = _KNOWN[params["reducer"]].buckets[params["bucket"]]
        self.params = params

    def attach(self, operands: Sequence[Any], _results: Sequence[Any]) -> None:
        self.bucket.write_through(operands[1:])

    def run(self, outputs: Sequence[Array], count: Array, *arrays: Array) -> None:
        outputs[0][...] = count + 1
        _start(None, *arrays, **self.params)


class _BoundParts:
    """`bucket_parts` in native code, which reads the gradients of all ranks where they are stored."""

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


def _no_types(*_arrays: Array, **_params: Any) -> tuple[Aval, ...]:
    return ()


def _types_of_bucket(*, types: Iterable[Any], ranks: int = 1, **_params: Any) -> tuple[Aval, ...]:
    return tuple(Aval(shape, np.dtype(name)) for shape, name in types for _ in range(ranks))


_SEVERAL: dict[str, Any] = {"vjp": (), "jvp": (), "multiple": True}
bucket_start_p = _Collective("bucket_start", _start, _no_types, bind=_bound_start, **_SEVERAL)
bucket_start_p.describe("begin to average x1, x2, ... over the ranks")
bucket_parts_p = _Collective("bucket_parts", _parts, _types_of_bucket, bind=_BoundParts, **_SEVERAL)
bucket_parts_p.describe("the arrays of a bucket on every rank")
bucket_wait_p = _Collective("bucket_wait", _wait, _types_of_bucket, into=_wait_into, **_SEVERAL)
bucket_wait_p.describe("the averages of a bucket")


def start(arrays: Sequence[Array], reducer: int, bucket: int) -> None:
    """During tracing, begin to average the gradients of a bucket."""
    bucket_start_p(*arrays, reducer=reducer, bucket=bucket)


def wait(bucket: Any, reducer: int, position: int) -> tuple[Array, ...]:
    """During tracing, return the averages of a bucket."""
    types = tuple((tuple(shape), bucket.dtype.name) for shape in bucket.shapes)
    if bucket.direct:
        # The step's kernels sum the parts where they read the averages, so no rank stores averages.
        count = bucket.ranks
        parts = bucket_parts_p(reducer=reducer, bucket=position, ranks=count, types=types)
        groups = [parts[at : at + count] for at in range(0, len(parts), count)]
        return tuple(_mean_of(group) for group in groups)
    found: tuple[Array, ...] = bucket_wait_p(reducer=reducer, bucket=position, types=types)
    return found


def _mean_of(parts: Sequence[Array]) -> Array:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    ranks = len(parts)
    return total / ranks if ranks & (ranks - 1) else total * (1 / ranks)


# --- the values of one rank ---------------------------------------------------------------------------


def _broadcast(_xp: object, *arrays: Array, owner: int, src: int) -> tuple[Array, ...]:
    """Return the arrays of a rank of the group: all in one message."""
    known = _KNOWN[owner]  # a group, or a reducer, which has its own communicator
    content = np.concatenate([as_bytes(flat(np.asarray(one))) for one in arrays])
    wait_until(known.comm.Ibcast(content, src).Test, getattr(known, "group", known), "broadcast")
    found, begin = [], 0
    for one in map(np.asarray, arrays):
        found.append(content[begin : begin + one.nbytes].view(one.dtype).reshape(one.shape))
        begin += one.nbytes
    return tuple(found)


def _types_of_all(*arrays: Array, **_params: Any) -> tuple[Aval, ...]:
    return tuple(_type_of(x) for x in arrays)


broadcast_p = _Collective("broadcast_from", _broadcast, _types_of_all, **_SEVERAL)
broadcast_p.describe("x1, x2, ... of one rank")
