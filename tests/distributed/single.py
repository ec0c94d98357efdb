"""A program for several ranks: in float32 they train like one rank; `single.py WAY [OPTIMIZER...]`.

The measure compares two trainings: for each parameter the largest difference of an element after the training, beside
the largest weight. The models have no gradient that is zero up to rounding, such as that of a bias before a batch norm:
Adam and other optimizers that divide a gradient by its own size would turn rounding errors into whole steps.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import glassgrad as gg
import glassgrad.distributed as dist
from glassgrad import nn, optim
from glassgrad.nn.parallel import DistributedDataParallel
from tests.optim.optimizer_cases import MUON, OPTIMIZERS, OURS, SPARSE

CASES = {case.name: case for case in reversed([*OPTIMIZERS, *OURS, *MUON, *SPARSE])}
ROWS, STEPS = 16, 30


def model(bias: bool) -> nn.Module:
    gg.manual_seed(4)
    return nn.Sequential(nn.Linear(12, 24, bias=bias), nn.Tanh(), nn.Linear(24, 4, bias=bias))


def batches(ranks: int) -> list[tuple[Any, Any]]:
    """A teacher's labels, so that the training learns something."""
    drawn = np.random.default_rng(2)
    teacher = drawn.standard_normal((12, 4))
    found = []
    for _ in range(STEPS):
        x = drawn.standard_normal((ROWS * ranks, 12)).astype(np.float32)
        found.append((x, (x @ teacher).argmax(1)))
    return found


def trained(case: Any, way: str, data: list[tuple[Any, Any]], rows: Any, *, together: bool) -> list[Any]:
    """Return the weights after a training."""
    net = model(case.name != "Muon")
    wrapped = DistributedDataParallel(net) if together else net
    opt = getattr(optim, case.name)(net.parameters(), **case.options)

    def step(x: Any, y: Any) -> Any:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(wrapped(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        return loss

    run = gg.compile(step, strict=True) if way == "native" else step
    for x, y in data:
        run(gg.tensor(x[rows]), gg.tensor(y[rows]))
    return [p.array.copy() for p in net.parameters()]


def difference(name: str, way: str, me: int, ranks: int) -> float:
    """Return the largest difference of a weight beside the largest weight of its parameter."""
    case, data = CASES[name], batches(ranks)
    alone = trained(case, "eager", data, slice(None), together=False)
    several = trained(case, way, data, slice(me * ROWS, (me + 1) * ROWS), together=True)
    assert all(np.isfinite(one).all() for one in alone)
    return max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in zip(alone, several, strict=True))


if __name__ == "__main__":
    dist.init_process_group(timeout=60)
    for name in sys.argv[2:] or sorted(CASES):
        found = difference(name, sys.argv[1], dist.get_rank(), dist.get_world_size())
        if dist.get_rank() == 0:
            sys.stdout.write(f"{name} {found:.2e}\n")
    dist.barrier()
