"""What the PyTorch peers share: batches as tensors, and torch.compile on request."""

from __future__ import annotations

import os

import torch

from benchmarks.workloads._loop import runner

if "OMP_NUM_THREADS" in os.environ:
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


def stepper(step, mode, arrays):
    """The `run` of a step: called as it is in mode `eager`, through torch.compile in mode `compile`."""
    data = [tuple(torch.from_numpy(part) for part in batch) for batch in zip(*arrays, strict=True)]
    if mode == "compile":
        step = torch.compile(step)
    return runner(step, data)
