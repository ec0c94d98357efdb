"""Measure the cost of one recorded operation: `exp` of one element, recorded and differentiated, beside NumPy's `exp`.

Each library runs ``y = exp(exp(...exp(x)))`` and its backward pass with one and with five `exp`. A quarter of the
difference is the cost of one more operation, without the cost of calling `backward`. NumPy's time for computing the
exponential is subtracted.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import harness, quiet, results
from benchmarks.workload import Workload

LENGTHS = (1, 5)
START = -2.0
LIMIT = 3e-6
TITLE = "Cost of recording and differentiating one operation"


def numpy_chain(length: int) -> Callable[[], float]:
    start = np.array([START])

    def once() -> float:
        y, slope = start, 1.0
        for _ in range(length):
            y = np.exp(y)
        return slope

    return once


def torch_chain(length: int) -> Callable[[], float]:
    import torch

    start = torch.tensor([START], dtype=torch.float64, requires_grad=True)
    return tensor_chain(start, length)


def glassgrad_chain(length: int) -> Callable[[], float]:
    import glassgrad as gg

    return tensor_chain(gg.tensor(np.array([START]), requires_grad=True), length)


def tensor_chain(start: Any, length: int) -> Callable[[], Any]:
    def once() -> Any:
        start.grad = None
        y = start
        for _ in range(length):
            y = y.exp()
        y.backward()
        return start.grad

    return once


def autograd_chain(length: int) -> Callable[[], Any]:
    import autograd.numpy as anp
    from autograd import elementwise_grad

    def chain(y):
        for _ in range(length):
            y = anp.exp(y)
        return y

    gradient = elementwise_grad(chain)
    start = np.array([START])
    return lambda: gradient(start)


CHAINS = {"NumPy": numpy_chain, "torch": torch_chain, "autograd": autograd_chain, "glassgrad": glassgrad_chain}
PEERS = {
    "NumPy exp only": "NumPy",
    "PyTorch eager": "torch",
    "HIPS autograd": "autograd",
    "glassgrad eager": "glassgrad",
}


def exact_slope(length: int) -> float:
    """Return the derivative of the chain: the product of its intermediate values."""
    value, slope = START, 1.0
    for _ in range(length):
        value = math.exp(value)
        slope *= value
    return slope


def build(mode: str) -> Callable[[int], float]:
    """Return the peer's `run`; its "loss" is its gradient relative to the exact one, so that the harness checks it."""
    name, _, length = mode.partition("-")
    once = CHAINS[name](int(length))

    def run(count: int) -> float:
        for _ in range(count):
            slope = once()
        return 1.0 if name == "NumPy" else float(slope[0]) / exact_slope(int(length))

    return run


def workload(length: int) -> Workload:
    """The chain of one length as a workload."""
    return Workload(
        key=f"overhead-{length}",
        title=TITLE,
        package="benchmarks",
        peers={name: f"op_overhead:{mode}-{length}" for name, mode in PEERS.items()},
        reference="NumPy exp only",
        check_steps=2,
        tolerance=1e-9,
        seconds=0.2,
    )


def measure(threads: int | None, rounds: int) -> tuple[str, str, dict[str, Any]]:
    """Title, text and raw numbers."""
    found = {length: harness.run(workload(length), rounds=2 * rounds, threads=threads) for length in LENGTHS}
    outcomes = {length: {outcome.name: outcome for outcome in each} for length, each in found.items()}
    short, long = (outcomes[length] for length in LENGTHS)
    span = LENGTHS[1] - LENGTHS[0]
    # The best round of each, not the median: a difference of two noisy numbers is twice as noisy.
    one_more = {name: (long[name].best - short[name].best) / span for name in PEERS}
    bare = one_more["NumPy exp only"]
    rows = [
        [
            name,
            results.duration(short[name].best),
            results.duration(one_more[name]),
            results.duration(one_more[name] - bare) if name != "NumPy exp only" else "–",
        ]
        for name in PEERS
    ]
    table = results.markdown_table(["peer", "one exp and backward", "each further exp", "over NumPy"], rows)
    troubles = [f"- {name}: {results.trouble_line(short[name])}" for name in PEERS if short[name].trouble]
    ours = one_more["glassgrad eager"] - bare
    verdict = (
        "not measured" if math.isnan(ours) else f"{results.duration(ours)}, {'met' if ours <= LIMIT else 'missed'}"
    )
    busy = quiet.verdict(max(outcome.others for each in found.values() for outcome in each if outcome.rounds))
    text = "\n\n".join(
        [
            *filter(None, [busy]),
            table,
            *troubles,
            f"- record plus backward of one exp over NumPy at most 3 µs: {verdict}",
        ]
    )
    return TITLE, text, {str(length): [dataclasses.asdict(each) for each in found[length]] for length in LENGTHS}
