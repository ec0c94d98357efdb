"""A program for several ranks: training under DistributedDataParallel equals one rank with the whole batch."""

from __future__ import annotations

import re
import sys
import tempfile
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
import glassgrad.distributed as dist
from glassgrad import nn, optim
from glassgrad.distributed import buckets
from glassgrad.nn.parallel import DistributedDataParallel
from tests.optim.optimizer_cases import MUON, OPTIMIZERS, OURS, SPARSE, Case

ROWS, STEPS = 4, 4
TOLERANCE = {"float64": 1e-12, "float32": 1e-5}
FIRST = {case.name: case for case in reversed([*OPTIMIZERS, *OURS, *MUON, *SPARSE])}
COMPILED = ("SGD", "AdamW")


def model(seed: int, dtype: str, *, bias: bool = True) -> nn.Module:
    gg.manual_seed(seed)
    net = nn.Sequential(nn.Linear(6, 50, bias=bias), nn.Tanh(), nn.Linear(50, 30, bias=bias), nn.Tanh(),
                        nn.Linear(30, 3, bias=bias))  # fmt: skip  # one model
    return net.to(np.dtype(dtype))


def batches(ranks: int, dtype: str) -> list[tuple[Any, Any]]:
    drawn = np.random.default_rng(1)
    size = ROWS * ranks
    return [(drawn.standard_normal((size, 6)).astype(dtype), drawn.integers(0, 3, size)) for _ in range(2 * STEPS)]


def optimizer(case: Case, net: nn.Module) -> Any:
    return getattr(optim, case.name)(net.parameters(), **case.options)


def train(net: nn.Module, opt: Any, data: list[tuple[Any, Any]], *, compiled: str = "", share: Any = None) -> None:
    """Steps of two batches each, whose gradients are accumulated, with clipping; `share` cuts out a rank's rows."""
    quiet = getattr(net, "no_sync", None)

    def step(a: Any, b: Any, c: Any, d: Any) -> Any:
        opt.zero_grad()
        if quiet is None:
            (nn.functional.cross_entropy(net(a), b) / 2).backward()
        else:
            with quiet():
                (nn.functional.cross_entropy(net(a), b) / 2).backward()
        loss = nn.functional.cross_entropy(net(c), d) / 2
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.3)
        opt.step()
        return loss

    run = gg.compile(step, backend=compiled, strict=True) if compiled else step
    rows = slice(None) if share is None else slice(share * ROWS, (share + 1) * ROWS)
    for (a, b), (c, d) in zip(data[::2], data[1::2], strict=True):
        run(*(gg.tensor(part[rows]) for part in (a, b, c, d)))


def close(one: nn.Module, other: nn.Module, dtype: str, what: str) -> None:
    limit = TOLERANCE[dtype]
    for (name, p), q in zip(one.named_parameters(), other.parameters(), strict=True):
        np.testing.assert_allclose(p.array, q.array, rtol=limit, atol=limit, err_msg=f"{what}: {name}")


def optimizers(me: int, ranks: int) -> None:
    data = batches(ranks, "float64")
    for name, case in FIRST.items():
        alone = model(0, "float64", bias=name != "Muon")
        train(alone, optimizer(case, alone), data)
        for compiled in ("", "numpy") if name in COMPILED else ("",):
            net = DistributedDataParallel(model(me, "float64", bias=name != "Muon"), bucket_cap_mb=0.01)
            assert len(net.reducer.buckets) > 1
            train(net, optimizer(case, net), data, share=me, compiled=compiled)
            close(net, alone, "float64", f"{name} {compiled}")


def closures(me: int, ranks: int) -> None:
    """LBFGS, whose steps call a function: its loss is averaged as well, so that all ranks stop at the same place."""
    for dtype in TOLERANCE:
        a, b = batches(ranks, dtype)[0]
        alone, net = model(0, dtype), DistributedDataParallel(model(me, dtype))
        minimise(alone, gg.tensor(a), gg.tensor(b))
        rows = slice(me * ROWS, (me + 1) * ROWS)
        minimise(net, gg.tensor(a[rows]), gg.tensor(b[rows]))
        close(net, alone, dtype, "LBFGS")


def minimise(net: nn.Module, x: Any, y: Any) -> None:
    """Take a step of LBFGS; the ranks of a wrapped module take it together."""
    opt = optim.LBFGS(net.parameters(), lr=0.5, max_iter=6)

    def closure() -> Any:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        shown = loss.detach()
        if isinstance(net, DistributedDataParallel):
            dist.all_reduce(shown, dist.ReduceOp.AVG)
        return shown

    opt.step(closure)


def native(me: int, ranks: int) -> None:
    """In native code and float32, through shared memory and through MPI; reruns and ranks are equal bit for bit."""
    case, data = FIRST["SGD"], batches(ranks, "float32")
    alone = model(0, "float32")
    train(alone, optimizer(case, alone), data)
    runs = []
    for compiled in ("", "", "auto", "auto", "", "auto"):
        if len(runs) == 4:
            buckets.SHARED_RANKS = 0  # as on several machines
        net = DistributedDataParallel(model(me, "float32"), bucket_cap_mb=0.01)
        train(net, optimizer(case, net), data, share=me, compiled=compiled)
        assert (net.reducer.window is None) == (len(runs) >= 4)
        close(net, alone, "float32", compiled)
        weights = np.concatenate([p.array.reshape(-1) for p in net.parameters()])
        everyone = [gg.zeros(weights.size) for _ in range(ranks)]
        dist.all_gather(everyone, gg.tensor(weights))
        assert all((one.array == weights).all() for one in everyone)
        runs.append(weights.tobytes())
    assert runs[0] == runs[1]
    assert runs[2] == runs[3]
    buckets.SHARED_RANKS = 4


def shared(me: int, ranks: int) -> None:
    """Native code computes gradients in the memory that the ranks share; programs and eager passes take turns there."""
    data = batches(ranks, "float32")
    weights = []
    for order in ("eeeeeeee", "nnnnnnnn", "nmenmmen"):
        net = DistributedDataParallel(model(me, "float32"), bucket_cap_mb=0.01)
        opt = optim.SGD(net.parameters(), lr=0.2, momentum=0.9)

        def step(x: Any, y: Any, net: Any = net, opt: Any = opt) -> Any:
            opt.zero_grad()
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            opt.step()
            return loss

        # n and m are two programs, of which one takes the gradients of a part of the batch.
        run = gg.compile(step, strict=True)
        for way, (x, y) in zip(order, data, strict=True):
            rows = slice(me * ROWS, me * ROWS + (ROWS - 1 if way == "m" else ROWS))
            (step if way == "e" else run)(gg.tensor(x[rows]), gg.tensor(y[rows]))
        mine = gg.tensor(np.concatenate([p.array.reshape(-1) for p in net.parameters()]))
        everyone = [gg.zeros(mine.numel()) for _ in range(ranks)]
        dist.all_gather(everyone, mine)
        assert all((one.array == mine.array).all() for one in everyone)
        weights.append(mine.array)
        moves = [moves for bucket in net.reducer.buckets for moves in bucket._writers]
        assert len(moves) == len(net.reducer.buckets) * len(set(order) & set("nm"))
        assert all(move is not None for program in moves for move in program)
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-5, atol=1e-6)
    # The third again, each rank by itself with all rows that the ranks had.
    alone = model(0, "float32")
    opt = optim.SGD(alone.parameters(), lr=0.2, momentum=0.9)
    for way, (x, y) in zip("nmenmmen", data, strict=True):
        part = ROWS - 1 if way == "m" else ROWS
        rows = np.concatenate([np.arange(rank * ROWS, rank * ROWS + part) for rank in range(ranks)])
        opt.zero_grad()
        nn.functional.cross_entropy(alone(gg.tensor(x[rows])), gg.tensor(y[rows])).backward()
        opt.step()
    wanted = np.concatenate([p.array.reshape(-1) for p in alone.parameters()])
    np.testing.assert_allclose(weights[2], wanted, rtol=1e-5, atol=1e-6)


def stored(me: int, ranks: int) -> None:
    """A step with collectives is found on the disk, and does the same."""
    data = batches(ranks, "float32")
    net = DistributedDataParallel(model(me, "float32"), bucket_cap_mb=0.01)
    begin = {name: value.clone() for name, value in net.state_dict().items()}

    def step(x: Any, y: Any) -> Any:
        loss = nn.functional.cross_entropy(net(x), y)
        net.zero_grad()
        loss.backward()
        for p in net.parameters():
            p.data -= 0.1 * p.grad
        dist.all_reduce(loss)
        return loss

    found = []
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("GLASSGRAD_CACHE_DIR", folder)
        for _ in range(2):
            net.load_state_dict(begin)
            run = gg.compile(step, strict=True)
            losses = [run(*(gg.tensor(part[me * ROWS : (me + 1) * ROWS]) for part in pair)).item() for pair in data]
            found.append((run.stats.plan_seconds == 0.0, losses))
    assert [on_disk for on_disk, _ in found] == [False, True]
    assert found[0][1] == found[1][1]


def schedule(me: int, ranks: int) -> None:
    """In the compiled program a bucket departs before the gradients of the next are computed."""
    for most, arrival in ((0, "bucket_wait"), (4, "bucket_parts")):
        buckets.SHARED_RANKS = most
        net = DistributedDataParallel(model(me, "float32"), bucket_cap_mb=0.001)

        def step(x: Any, y: Any, net: Any = net) -> Any:
            loss = nn.functional.cross_entropy(net(x), y)
            net.zero_grad()
            loss.backward()
            return loss

        run = gg.compile(step, strict=True)
        x, y = batches(ranks, "float32")[0]
        run(gg.tensor(x), gg.tensor(y))
        ops = [instr.op for instr in run.graph.instrs]
        starts = [at for at, op in enumerate(ops) if op == "bucket_start"]
        waits = [at for at, op in enumerate(ops) if op == arrival]
        assert len(starts) == len(waits) == len(net.reducer.buckets) == 2
        assert "matmul" in ops[starts[0] : starts[-1]]
        assert max(starts) < min(waits)


def early(me: int, ranks: int) -> None:
    """Eagerly too: the last layer's bucket departs before the walk comes to the first layer."""
    net = DistributedDataParallel(model(me, "float32"), bucket_cap_mb=0.001)
    events: list[str] = []
    for position, bucket in enumerate(net.reducer.buckets):

        def start(*args: Any, bucket: Any = bucket, position: int = position, **options: Any) -> None:
            events.append(f"bucket {position}")
            buckets.Bucket.start(bucket, *args, **options)

        bucket.start = start
    first = net.module[0]
    hidden: list[Any] = []
    first.register_forward_hook(lambda _module, _inputs, output: hidden.append(output))
    loss = net(gg.tensor(batches(ranks, "float32")[0][0][:ROWS])).sum()
    hidden[0].register_hook(lambda _g: events.append("first layer"))
    loss.backward()
    assert events[0] == "bucket 0"
    assert events.index("first layer") < events.index(f"bucket {len(net.reducer.buckets) - 1}")


def room(me: int, ranks: int) -> None:
    """Where one rank has no room for shared memory, all average through MPI."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buckets, "has_room", lambda _nbytes: me != ranks - 1)
        line = DistributedDataParallel(nn.Linear(2, 1, bias=False))
    assert line.reducer.window is None
    line(gg.full((1, 2), float(me + 1))).sum().backward()
    np.testing.assert_allclose(line.module.weight.grad.array, [[(ranks + 1) / 2] * 2], rtol=1e-6)


def results(me: int, ranks: int) -> None:
    """A collective stays in the program of a rank that does not read its result, and in its place."""

    def step(x: Any) -> Any:
        total, largest = x.sum(), x.max()
        dist.all_reduce(total)
        dist.all_reduce(largest, dist.ReduceOp.MAX)
        return total if me == 0 else x * 2

    run = gg.compile(step, strict=True)
    for scale in (1.0, 2.0):
        found = run(gg.full((3,), scale * (me + 1)))
        if me == 0:
            assert found.item() == 3 * scale * sum(range(1, ranks + 1))
    last = gg.tensor([float(me)])
    dist.all_reduce(last)
    assert last.item() == sum(range(ranks))
    assert [instr.op for instr in run.graph.instrs].count("all_reduce") == 2


class Branches(nn.Module):
    """Two layers, of which the input decides which one is used."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right, self.idle = nn.Linear(2, 1), nn.Linear(2, 1), nn.Linear(2, 1)

    def forward(self, x: Any, side: str) -> Any:
        return getattr(self, side)(x)


def unused(me: int, ranks: int) -> None:
    net = DistributedDataParallel(Branches(), find_unused_parameters=True)
    x = gg.ones(3, 2) * (me + 1)
    net(x, "left" if me == 0 else "right").sum().backward()
    mean = net.module.left.weight.grad
    assert mean is not None
    np.testing.assert_allclose(mean.array, np.full((1, 2), 3.0 / ranks), rtol=1e-6)
    right = sum(3.0 * (rank + 1) for rank in range(1, ranks)) / ranks
    np.testing.assert_allclose(net.module.right.weight.grad.array, np.full((1, 2), right), rtol=1e-6)
    assert net.module.idle.weight.grad is None
    strict = DistributedDataParallel(Branches())
    with pytest.raises(RuntimeError, match=re.escape("for their gradients: right.weight, right.bias, idle.weight")):
        strict(x, "left").sum().backward()


def state(me: int, ranks: int) -> None:
    """Values of rank 0 at the beginning, its buffers before each forward, hooks before the average."""
    plain = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    gg.manual_seed(me)
    net = DistributedDataParallel(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)))
    assert list(net.state_dict()) == [f"module.{name}" for name in plain.state_dict()]
    first = [gg.zeros(4, 3) for _ in range(ranks)]
    dist.all_gather(first, net.module[0].weight)
    assert all((one.array == first[0].array).all() for one in first)
    x = gg.tensor(np.random.default_rng(me).standard_normal((5, 3)).astype(np.float32))
    net(x)
    mean = net.module[1].running_mean
    mine = mean.array.copy()
    net.eval()
    net(x)
    wanted = gg.tensor(mine)
    dist.broadcast(wanted, 0)
    np.testing.assert_array_equal(mean.array, wanted.array)
    line = DistributedDataParallel(nn.Linear(1, 1, bias=False))
    line.module.weight.register_hook(lambda g: g * (me + 1))
    line(gg.ones(1, 1)).sum().backward()
    np.testing.assert_allclose(line.module.weight.grad.array, [[sum(range(1, ranks + 1)) / ranks]], rtol=1e-6)
    again = line.module.weight.grad
    line(gg.ones(1, 1)).sum().backward()
    assert line.module.weight.grad is again
    line(gg.ones(1, 1))  # armed, and no backward pass follows
    with line.no_sync():
        line(gg.ones(1, 1)).sum().backward()
    (gg.autograd.grad(line(gg.ones(1, 1)).sum(), line.module.weight))


def refusals(me: int, ranks: int) -> None:
    other = nn.Linear(2, 3 if me == ranks - 1 else 4)
    words = f"rank {ranks - 1}: 'weight' is float32 of shape (3, 2), requires_grad=True; on rank 0: 'weight' is float32"
    with pytest.raises(RuntimeError, match=re.escape(words)):
        DistributedDataParallel(other)
    with pytest.raises(ValueError, match="no parameter that requires a gradient"):
        DistributedDataParallel(nn.ReLU())


PARTS = (optimizers, closures, native, shared, stored, schedule, early, room, results, unused, state, refusals)

if __name__ == "__main__":
    dist.init_process_group(timeout=30)
    for part in PARTS:
        part(dist.get_rank(), dist.get_world_size())
    dist.barrier()
    sys.stdout.write(f"rank {dist.get_rank()} of {dist.get_world_size()} is right\n")
