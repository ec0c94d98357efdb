"""One program for two libraries: it prints the gradients and buffers after DistributedDataParallel.

``semantics.py torch STORE RANK`` is one of two PyTorch processes over gloo; ``semantics.py`` is a rank of ours.
"""

from __future__ import annotations

import sys
from typing import Any

if sys.argv[1:]:
    import torch as library
    import torch.distributed as dist

    library.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=int(sys.argv[3]), world_size=2)
else:
    import glassgrad as library
    import glassgrad.distributed as dist

    dist.init_process_group()

nn: Any = library.nn
wrapped: Any = nn.parallel.DistributedDataParallel
ME = dist.get_rank()
X: Any = library.tensor([[1.0, 2.0 + ME], [3.0, 4.0]])


def line(weight: float) -> Any:
    """Return a layer with these values."""
    layer = nn.Linear(2, 1)
    with library.no_grad():
        layer.weight.copy_(library.tensor([[weight, 2.0]]))
        layer.bias.copy_(library.tensor([0.5]))
    return layer


def show(what: str, values: Any) -> None:
    """Print numbers that are the same in both libraries but for the last bits."""
    numbers = [None if one is None else [round(float(v), 5) for v in one.reshape(-1).tolist()] for one in values]
    sys.stdout.write(f"{ME} {what}: {numbers}\n")


def gradients(what: str, model: Any) -> None:
    """Print the gradients of a model."""
    show(what, [one.grad for one in model.parameters()])


class Sides(nn.Module):
    """Each rank uses another layer, and none the last."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.idle = line(1.0), line(2.0), line(3.0)

    def forward(self, x: Any) -> Any:
        return (self.first if ME == 0 else self.second)(x)


def accumulation() -> None:
    model = wrapped(line(1.0 + ME))
    show("values at the beginning", [one.detach() for one in model.parameters()])
    for what in ("one pass", "a second one"):
        model(X).sum().backward()
        gradients(what, model)
    with model.no_sync():
        model(X).sum().backward()
    gradients("not averaged", model)
    model(X).sum().backward()
    gradients("all of it averaged", model)
    model.zero_grad()
    y = model(X)
    with model.no_sync():
        y.sum().backward()
    gradients("forward outside, backward inside of no_sync", model)
    model.zero_grad()
    with model.no_sync():
        y = model(X)
    y.sum().backward()
    gradients("forward inside, backward outside of no_sync", model)
    model.zero_grad()
    (model(X).sum() + model(X).sum()).backward()
    gradients("two forwards, one backward", model)
    model.zero_grad()
    loss = model(X).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    gradients("one forward, two backwards", model)
    model.zero_grad()
    model.module(X).sum().backward()
    gradients("without the wrapper", model)


def buffers() -> None:
    model = wrapped(nn.Sequential(line(1.0), nn.BatchNorm1d(1)))
    mean = model.module[1].running_mean
    for what in ("a forward", "a second one"):
        model(X * (ME + 1))
        show(f"the running mean after {what}", [mean])
    model.eval()
    model(X)
    show("the running mean in evaluation", [mean])


def unused() -> None:
    model = wrapped(Sides(), find_unused_parameters=True)
    for what in ("unused layers", "unused layers, a second pass"):
        model(X).sum().backward()
        gradients(what, model)


accumulation()
buffers()
unused()
dist.barrier()
