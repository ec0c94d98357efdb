"""A program for several ranks: every collective against NumPy's result, which each rank computes from all inputs."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
import glassgrad.distributed as dist
from glassgrad import errors
from glassgrad.compile.native.runtime import available_cores

DTYPES = ("float16", "float32", "float64", "complex64", "complex128", "int8", "int32", "int64", "uint8", "bool")
FOLDS: dict[str, Callable[..., Any]] = {
    "SUM": lambda rows: rows.any(0) if rows.dtype == bool else rows.sum(0, dtype=rows.dtype),
    "PRODUCT": lambda rows: rows.all(0) if rows.dtype == bool else rows.prod(0, dtype=rows.dtype),
    "MIN": lambda rows: rows.min(0), "MAX": lambda rows: rows.max(0),
    "AVG": lambda rows: (rows.sum(0) / len(rows)).astype(rows.dtype),
    "BAND": np.bitwise_and.reduce, "BOR": np.bitwise_or.reduce, "BXOR": np.bitwise_xor.reduce,
}  # fmt: skip  # a table


def value(rank: int, dtype: str, shape: tuple[int, ...] = (3, 4)) -> Any:
    """Return the input of a rank: small integers, so that sums are exact in every dtype."""
    drawn = np.random.default_rng(rank).integers(0, 3, (*shape, 2))
    kind = np.dtype(dtype).kind
    return (drawn[..., 0] + 1j * drawn[..., 1]).astype(dtype) if kind == "c" else drawn[..., 0].astype(dtype)


def refused(kind: type[Exception], words: str, function: Callable[[], Any]) -> None:
    """Check that a call raises an error of a kind whose text has these words."""
    with pytest.raises(kind, match=re.escape(words)):
        function()


def reductions(me: int, ranks: int) -> None:
    for dtype in DTYPES:
        rows = np.stack([value(rank, dtype) for rank in range(ranks)])
        for name, fold in FOLDS.items():
            op = dist.ReduceOp[name]
            kind = np.dtype(dtype).kind
            ordered = name in {"MIN", "MAX"}
            if (kind == "c" and ordered) or (kind in "fc" and name[0] == "B") or (kind in "biu" and name == "AVG"):
                refused(TypeError, "is not defined for", lambda op=op, dtype=dtype: dist.all_reduce(t(me, dtype), op))
                continue
            x = t(me, dtype)
            assert dist.all_reduce(x, op) is None
            assert x.dtype == np.dtype(dtype)
            np.testing.assert_array_equal(x.array, fold(rows), err_msg=f"{dtype} {name}")
    x = t(me, "float32")
    dist.reduce(x, ranks - 1)
    rows = np.stack([value(rank, "float32") for rank in range(ranks)])
    np.testing.assert_array_equal(x.array, rows.sum(0) if me == ranks - 1 else rows[me])


def t(rank: int, dtype: str, shape: tuple[int, ...] = (3, 4)) -> gg.Tensor:
    return gg.tensor(value(rank, dtype, shape))


def memory(me: int, ranks: int) -> None:
    """Memory that is not contiguous, has no dimension or no element; tensors that require a gradient."""
    base = np.zeros((4, 6), np.float32)
    dist.all_reduce(gg.from_numpy(base.T[1:5:2]))
    part = gg.from_numpy(base.T[1:5:2])
    part.array[...] = me + 1
    dist.all_reduce(part)
    assert base.sum() == 8 * sum(range(1, ranks + 1))
    for shape in ((), (0, 3)):
        x = gg.tensor(np.full(shape, me + 1.0))
        dist.all_reduce(x)
        np.testing.assert_array_equal(x.array, np.full(shape, sum(range(1, ranks + 1)) + 0.0))
    leaf = gg.tensor([float(me)], requires_grad=True)
    dist.broadcast(leaf, ranks - 1)
    assert leaf.tolist() == [ranks - 1.0]
    assert leaf.requires_grad
    y = leaf * leaf
    dist.all_reduce(leaf)
    refused(RuntimeError, "and overwritten in place", y.sum().backward)
    frozen = np.zeros(2)
    frozen.flags.writeable = False
    refused(RuntimeError, "read-only", lambda: dist.all_reduce(gg.from_numpy(frozen)))


def movements(me: int, ranks: int) -> None:
    for dtype in ("float32", "complex64", "bool"):
        everyone = [value(rank, dtype) for rank in range(ranks)]
        x = t(me, dtype)
        dist.broadcast(x, ranks - 1)
        np.testing.assert_array_equal(x.array, everyone[-1])
        outputs = [gg.zeros(3, 4).to(np.dtype(dtype)) for _ in range(ranks)]
        dist.all_gather(outputs, t(me, dtype))
        np.testing.assert_array_equal(np.stack([one.array for one in outputs]), everyone)
        for shape in ((3 * ranks, 4), (ranks, 3, 4)):
            whole = gg.tensor(np.zeros(shape, dtype))
            dist.all_gather_into_tensor(whole, t(me, dtype))
            np.testing.assert_array_equal(whole.array.reshape(ranks, 3, 4), everyone)
        got = [gg.tensor(np.zeros((3, 4), dtype)) for _ in range(ranks)] if me == 0 else None
        dist.gather(t(me, dtype), got)
        assert got is None or all((one.array == wanted).all() for one, wanted in zip(got, everyone, strict=True))
        mine = gg.tensor(np.zeros((3, 4), dtype))
        dist.scatter(mine, [gg.tensor(one) for one in everyone] if me == 0 else None)
        np.testing.assert_array_equal(mine.array, everyone[me])
    table = [t(me * ranks + to, "float32") for to in range(ranks)]
    outputs = [gg.zeros(3, 4) for _ in range(ranks)]
    dist.all_to_all(outputs, table)
    for source in range(ranks):
        np.testing.assert_array_equal(outputs[source].array, value(source * ranks + me, "float32"))
    single, into = gg.arange(2 * ranks) + 100 * me, gg.zeros(2 * ranks).to(np.int64)
    dist.all_to_all_single(into, single)
    assert into.tolist() == [100 * source + 2 * me + at for source in range(ranks) for at in (0, 1)]
    rows = np.stack([[value(rank * ranks + to, "float32") for to in range(ranks)] for rank in range(ranks)])
    out = gg.zeros(3, 4)
    dist.reduce_scatter(out, table, dist.ReduceOp.AVG)
    np.testing.assert_allclose(out.array, rows.mean(0)[me], rtol=1e-6)
    dist.reduce_scatter_tensor(out, gg.stack(table))
    np.testing.assert_array_equal(out.array, rows.sum(0)[me])


def messages(me: int, ranks: int) -> None:
    after, before = (me + 1) % ranks, (me - 1) % ranks
    got = gg.zeros(3, 4)
    work = dist.isend(t(me, "float32"), after, tag=3)
    assert dist.recv(got, before, tag=3) == before
    assert work.wait()
    np.testing.assert_array_equal(got.array, value(before, "float32"))
    later = dist.irecv(got)
    dist.send(gg.ones(4, 3).T * me, after)
    later.wait()
    assert (got.array == before).all()
    work = dist.isend(gg.ones(5), after)
    refused(ValueError, "sent 20 bytes", lambda: dist.recv(gg.zeros(4), before))
    del work  # the message was refused, and is never received
    refused(ValueError, "expected a rank of the group", lambda: dist.send(gg.ones(1), me))
    refused(ValueError, "expected a rank of the group", lambda: dist.send(gg.ones(1), ranks))


def later(me: int, ranks: int) -> None:
    many = [gg.full((1000,), float(me + at)) for at in range(5)]
    works = [dist.all_reduce(x, async_op=True) for x in many]
    for at, work in reversed(list(enumerate(works))):
        assert work.wait()
        assert work.is_completed()
        assert (many[at].array == sum(rank + at for rank in range(ranks))).all()
    work = dist.barrier(async_op=True)
    work.wait()
    half = gg.tensor(np.full(3, 2048.0 if me == 0 else 1.0, np.float16))
    dist.all_reduce(half)  # in float32 and rounded once: 2048 + 1 is 2048 in float16
    assert (half.array == np.float16(2048 + ranks - 1)).all()


def groups(me: int, ranks: int) -> None:
    pair = dist.new_group([0, ranks - 1])
    x = gg.tensor([float(me)])
    dist.all_reduce(x, group=pair)
    inside = me in (0, ranks - 1)
    assert x.tolist() == [ranks - 1.0 if inside else float(me)]
    assert dist.get_rank(pair) == ({0: 0, ranks - 1: 1}.get(me, -1))
    assert dist.get_world_size(pair) == (2 if inside else -1)
    if inside:
        assert dist.get_process_group_ranks(pair) == [0, ranks - 1]
        dist.broadcast(x, ranks - 1, group=pair)
    refused(ValueError, "not different ranks", lambda: dist.new_group([0, ranks]))


def objects(me: int, ranks: int) -> None:
    mine = {"rank": me, "weights": gg.ones(me + 1), "name": "ü" * me, "list": [1, None, (2.5, True)]}
    found: list[Any] = [None] * ranks
    dist.all_gather_object(found, mine)
    assert [one["rank"] for one in found] == list(range(ranks))
    assert [one["weights"].shape for one in found] == [(rank + 1,) for rank in range(ranks)]
    given = [mine, "text"]
    dist.broadcast_object_list(given, src=1)
    assert given[0]["rank"] == 1
    assert given[1] == "text"
    got = [None] * ranks if me == 0 else None
    dist.gather_object({"rank": me}, got)
    assert got is None or got == [{"rank": rank} for rank in range(ranks)]
    out: list[Any] = [None]
    dist.scatter_object_list(out, [f"for {rank}" for rank in range(ranks)] if me == 0 else None)
    assert out == [f"for {me}"]
    refused(TypeError, "cannot be stored", lambda: dist.all_gather_object(found, object))


def differences(me: int, ranks: int) -> None:
    """Ranks that disagree are told on every rank, before anything travels."""
    refused(RuntimeError, "rank 1: all_reduce(float32 of shape (4,), SUM)",
            lambda: dist.all_reduce(gg.zeros(3 + (me == 1))))  # fmt: skip  # one call
    refused(RuntimeError, "rank 0: all_reduce(float64 of shape (2,), SUM)",
            lambda: dist.all_reduce(gg.zeros(2).to(np.float32 if me else np.float64)))  # fmt: skip  # one call
    other = (lambda: dist.broadcast(gg.zeros(3), 0)) if me == 1 else (lambda: dist.all_reduce(gg.zeros(3)))
    refused(RuntimeError, "rank 1: broadcast(float32 of shape (3,), src=0)", other)
    refused(ValueError, f"expected one for each of the {ranks} ranks", lambda: dist.all_gather([], gg.ones(1)))
    many = [gg.zeros(2)] * ranks
    refused(ValueError, "tensor_list[0] is float32 of shape (2,)", lambda: dist.all_gather(many, gg.ones(1)))
    refused(TypeError, "of type ndarray", lambda: dist.all_reduce(np.zeros(2)))
    refused(ValueError, "backend='tcp'", lambda: (dist.destroy_process_group(), dist.init_process_group("tcp")))
    refused(ValueError, "world_size=99", lambda: dist.init_process_group(world_size=99))
    dist.init_process_group("mpi", world_size=ranks, rank=me)
    refused(RuntimeError, "process group already", dist.init_process_group)


def cores(_me: int, ranks: int) -> None:
    """Ranks that are not bound to cores share them: compiled steps take a part of the threads."""
    assert available_cores() == max(1, len(os.sched_getaffinity(0)) // ranks)


PARTS = (cores, reductions, memory, movements, messages, later, groups, objects, differences)

if __name__ == "__main__":
    refused(errors.DistributedError, "there is no process group yet", lambda: dist.all_reduce(gg.ones(1)))
    dist.init_process_group(timeout=20)
    for part in PARTS:
        part(dist.get_rank(), dist.get_world_size())
    dist.barrier()
    sys.stdout.write(f"rank {dist.get_rank()} of {dist.get_world_size()} is right\n")
