"""A program for several ranks: batch norm over all ranks, distributed optimizer state, and each rank's data."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
import glassgrad.distributed as dist
from glassgrad import nn, optim
from glassgrad.nn.parallel import DistributedDataParallel
from glassgrad.utils.data import DataLoader, DistributedSampler, TensorDataset

ROWS = 3


def drawn(*shape: int) -> Any:
    return np.random.default_rng(3).standard_normal(shape)


def norms(me: int, ranks: int) -> None:
    """Values, gradients of inputs and weights, and running statistics are those of one rank with all rows."""
    counts = [ROWS + rank for rank in range(ranks)]  # the ranks may have different numbers of rows
    total, begin = sum(counts), sum(counts[:me])
    for shape in ((total, 4), (total, 4, 5), (total, 4, 2, 3)):
        kind = (nn.BatchNorm1d, nn.BatchNorm1d, nn.BatchNorm2d)[len(shape) - 2]
        whole, mine = kind(4).to(np.float64), nn.SyncBatchNorm(4).to(np.float64)
        x, weights = drawn(*shape), drawn(*shape)[::-1]
        rows = slice(begin, begin + counts[me])
        all_of_it, part = (gg.tensor(one, requires_grad=True) for one in (x, x[rows].copy()))
        for _ in range(2):
            whole.zero_grad()
            (whole(all_of_it) * weights).sum().backward()
            (mine(part) * weights[rows]).sum().backward()
        np.testing.assert_allclose(part.grad.array, all_of_it.grad.array[rows], rtol=1e-11, atol=1e-12)
        for name, value in whole.state_dict().items():
            np.testing.assert_allclose(mine.state_dict()[name].array, value.array, rtol=1e-12, atol=1e-12, err_msg=name)
        for name, value in mine.named_parameters():
            dist.all_reduce(value.grad)
            wanted = 2 * whole.get_parameter(name).grad.array  # two passes, the first of which was dropped there
            np.testing.assert_allclose(value.grad.array, wanted, rtol=1e-11, atol=1e-12, err_msg=name)
        mine.eval()
        whole.eval()
        np.testing.assert_allclose(mine(part).array, whole(all_of_it).array[rows], rtol=1e-12)


def network(seed: int) -> nn.Module:
    gg.manual_seed(seed)
    # A bias before a batch norm has the gradient 0, of which Adam would see nothing but the rounding.
    layers = [nn.Linear(5, 8, bias=False), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 4, bias=False), nn.Linear(4, 2)]
    return nn.Sequential(*layers).to(np.float64)


def stepper(net: nn.Module, opt: Any, backend: str) -> Any:
    def step(x: Any, y: Any) -> Any:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        return loss

    return gg.compile(step, backend=backend, strict=True) if backend else step


def trainings(me: int, ranks: int) -> None:
    """A network with batch norm, under Adam whose state is spread over the ranks: eagerly and compiled."""
    x, y = drawn(ROWS * ranks, 5), np.arange(ROWS * ranks) % 2
    rows = slice(me * ROWS, (me + 1) * ROWS)
    for backend in ("", "numpy", "auto"):
        alone = network(0)
        net = DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(network(me)), bucket_cap_mb=0.0001)
        one = optim.AdamW(alone.parameters(), lr=0.05)
        spread = optim.ZeroRedundancyOptimizer(net.parameters(), optim.AdamW, lr=0.05)
        rate = optim.lr_scheduler.StepLR(one, 1, 0.9), optim.lr_scheduler.StepLR(spread, 1, 0.9)
        reference, step = stepper(alone, one, ""), stepper(net, spread, backend)
        for at in range(4):
            reference(gg.tensor(x), gg.tensor(y))
            step(gg.tensor(x[rows]), gg.tensor(y[rows]))
            for schedule in rate:
                schedule.step()
            if at == 1:
                one, spread = _resumed(one, spread, alone, net, me)
                rate = optim.lr_scheduler.StepLR(one, 1, 0.9), optim.lr_scheduler.StepLR(spread, 1, 0.9)
                reference, step = stepper(alone, one, ""), stepper(net, spread, backend)
        for name, value in alone.state_dict().items():
            found = net.module.state_dict()[name].array
            np.testing.assert_allclose(found, value.array, rtol=1e-12, atol=1e-12, err_msg=f"{backend} {name}")
        kept = sum(len(values) > 0 for values in spread.state.values())
        assert 0 < kept < len(list(net.parameters()))


def _resumed(one: Any, spread: Any, alone: Any, net: Any, me: int) -> Any:
    """Save on rank 0 and load on all, into new optimizers: the state is that of the one optimizer."""
    spread.consolidate_state_dict()
    if me:
        with pytest.raises(RuntimeError, match=re.escape("has only its share of the state")):
            spread.state_dict()
    saved = [spread.state_dict() if me == 0 else None]
    dist.broadcast_object_list(saved)
    whole = one.state_dict()
    assert sorted(saved[0]["state"]) == sorted(whole["state"])
    for at, values in whole["state"].items():
        np.testing.assert_allclose(
            saved[0]["state"][at]["exp_avg"].array, values["exp_avg"].array, rtol=1e-9, atol=1e-12
        )
    first = optim.AdamW(alone.parameters())
    second = optim.ZeroRedundancyOptimizer(net.parameters(), optim.AdamW)
    first.load_state_dict(saved[0])
    second.load_state_dict(saved[0])
    assert len(second.state) < len(first.state)
    return first, second


def data(me: int, ranks: int) -> None:
    """The loaders of the ranks together go through the data once, in an order that the epoch decides."""
    dataset = TensorDataset(gg.arange(4 * ranks))
    sampler = DistributedSampler(dataset, seed=5)
    seen = []
    for epoch in (0, 1):
        sampler.set_epoch(epoch)
        mine = gg.cat([batch for (batch,) in DataLoader(dataset, batch_size=2, sampler=sampler)])
        everyone = [gg.zeros(4).to(np.int64) for _ in range(ranks)]
        dist.all_gather(everyone, mine)
        found = np.concatenate([one.array for one in everyone])
        assert sorted(found) == list(range(4 * ranks))
        seen.append(found.tolist())
    assert seen[0] != seen[1]


PARTS = (norms, trainings, data)

if __name__ == "__main__":
    dist.init_process_group(timeout=30)
    for part in PARTS:
        part(dist.get_rank(), dist.get_world_size())
    dist.barrier()
    sys.stdout.write(f"rank {dist.get_rank()} of {dist.get_world_size()} is right\n")
