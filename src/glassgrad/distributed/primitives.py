"""Collectives as primitives: pure functions of arrays, which the tape differentiates and a compiled step contains.

A compiled step computes them in Python between two turns of native code. A reduction of gradients is two
instructions, so that the step goes on in between: `bucket_start`, which takes the bucket's gradients, and
`bucket_wait`, which gives the averages. Each start takes the token of the one before, so that no schedule changes
their order.
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


class _Collective(Custom):
    """A primitive that talks to other processes: its types are known without that."""

    def __init__(self, name: str, forward: Callable[..., Any], types: Callable[..., Any], **facts: Any) -> None:
        super().__init__(name, forward, register=False, **facts)
        self._types = types
        PRIMITIVES[name] = self

    def abstract(self, *args: Any, **params: Any) -> Any:
        """Return the types of the results."""
        return self._types(*args, **params)


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
    "all_reduce", _all_reduce, lambda x, **_params: Aval(tuple(x.shape), x.dtype),
    vjp=(_reduced_cotangent,), jvp=(_reduced_cotangent,), formula="sum of x over the ranks",
)  # fmt: skip  # a table


# --- the buckets of DistributedDataParallel -----------------------------------------------------------


def first_token() -> Array:
    """Return what the first start takes."""
    return np.zeros((), np.int64)


def _start(_xp: Any, token: Array, *arrays: Array, reducer: int, bucket: int) -> Array:
    owner = _KNOWN[reducer]
    for earlier in owner.buckets[:bucket]:
        earlier.progress()
    owner.buckets[bucket].start(owner.comm, [np.asarray(one) for one in arrays], in_place=False)
    return np.asarray(token) + 1


def _wait(_xp: Any, _token: Array, *, reducer: int, bucket: int, types: Any) -> tuple[Array, ...]:
    owner = _KNOWN[reducer]
    averages = owner.buckets[bucket].finish(owner.group)
    return tuple(averages[at] for at in range(len(types)))


bucket_start_p = _Collective(
    "bucket_start", _start, lambda _token, *_arrays, **_params: Aval((), np.dtype(np.int64)),
    vjp=(), jvp=(), formula="begin to average x1, x2, ... over the ranks",
)  # fmt: skip  # a table
bucket_wait_p = _Collective(
    "bucket_wait", _wait,
    lambda _token, *, types, **_params: tuple(Aval(shape, np.dtype(name)) for shape, name in types),
    vjp=(), jvp=(), multiple=True, formula="the averages of a bucket",
)  # fmt: skip  # a table


def start(token: Array, arrays: Sequence[Array], reducer: int, bucket: int) -> Array:
    """Begin to average the gradients of a bucket; return the token for the next one."""
    return bucket_start_p(token, *arrays, reducer=reducer, bucket=bucket)


def wait(token: Array, bucket: Any, reducer: int, position: int) -> tuple[Array, ...]:
    """Return the averages of a bucket, once all buckets have been started."""
    types = tuple((tuple(shape), bucket.dtype.name) for shape in bucket.shapes)
    found: tuple[Array, ...] = bucket_wait_p(token, reducer=reducer, bucket=position, types=types)
    return found


# --- buffers ----------------------------------------------------------------------------------------


def _broadcast(_xp: Any, *arrays: Array, reducer: int) -> tuple[Array, ...]:
    """Return the arrays of the group's first rank: all of them in one message."""
    owner = _KNOWN[reducer]
    content = np.concatenate([as_bytes(flat(np.asarray(one))) for one in arrays])
    wait_until(owner.comm.Ibcast(content, 0).Test, owner.group, "forward")
    found, begin = [], 0
    for one in map(np.asarray, arrays):
        found.append(content[begin : begin + one.nbytes].view(one.dtype).reshape(one.shape))
        begin += one.nbytes
    return tuple(found)


broadcast_p = _Collective(
    "broadcast_buffers", _broadcast, lambda *arrays, **_params: tuple(Aval(tuple(x.shape), x.dtype) for x in arrays),
    vjp=(), jvp=(), multiple=True, formula="x1, x2, ... of rank 0",
)  # fmt: skip  # a table
