"""What the PyTorch peers share: batches as tensors, torch.compile on request, and the loop."""

from __future__ import annotations

import os

import torch

if "OMP_NUM_THREADS" in os.environ:
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


def stepper(step, mode, arrays):
    """The `run` of a step: called as it is in mode `eager`, through torch.compile in mode `compile`."""
    data = [tuple(torch.from_numpy(part) for part in batch) for batch in zip(*arrays, strict=True)]
    if mode == "compile":
        step = torch.compile(step)
    position = 0

    def run(count):
        nonlocal position
        loss = None
        for _ in range(count):
            loss = step(*data[position])
            position = (position + 1) % len(data)
        return loss.item()

    return run
