"""How a data-parallel step scales: what is measured on this machine, and what a model of networks says of others.

``python -m benchmarks.scaling [--ranks 2,4] [--seconds 2]`` measures latency and bandwidth of messages and of
`all_reduce`, fits the two numbers of the model, and holds its prediction of steps of W2 and W3 against measured ones.
``python -m benchmarks.scaling --predict`` measures nothing, and prints the tables for clusters below `NETWORKS`.

The model. A message of n bytes takes alpha + n beta (Hockney 1994). Reducing n bytes over p ranks takes the least of

    recursive doubling     log2(p) (alpha + n beta + n gamma)
    Rabenseifner           2 log2(p) alpha + 2 (p - 1)/p n beta + (p - 1)/p n gamma
    ring                   2 (p - 1) alpha + 2 (p - 1)/p n beta + (p - 1)/p n gamma

(Thakur, Rabenseifner and Gropp 2005, sections 4.4 and 4.5; the ring: Patarasuk and Yuan 2009), where gamma is the time
of adding a byte. Where p is no power of two, recursive doubling and Rabenseifner take one more message of n bytes each
way. Gradients leave in buckets while the backward pass goes on (Li et al. 2020): a bucket starts when it is complete
and the one before has arrived, and the step ends with the update, after the last. What is left out: ranks that are
late, networks shared with others, and slower links between racks.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

SIZES = tuple(4**power for power in range(2, 13))  # bytes: 16 to 16 MB
BUCKETS = (1e6, 25e6)  # bytes of the first bucket and of the others, as DistributedDataParallel makes them


# --- the model --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Network:
    """Seconds of a message (alpha), of a byte of it (beta), and of adding a byte (gamma)."""

    name: str
    alpha: float
    beta: float
    gamma: float = 1 / 5e9  # a core adds float32 from memory at about 5 GB/s of what arrives


# Latencies between programs over MPI, and 0.94 of the line's rate: round numbers of such hardware, and no measurement.
NETWORKS = (
    Network("1 Gb/s Ethernet", 50e-6, 8 / 0.94e9),
    Network("10 Gb/s Ethernet", 20e-6, 8 / 9.4e9),
    Network("100 Gb/s InfiniBand", 1.5e-6, 8 / 94e9),
)


@dataclass(frozen=True)
class Step:
    """A step on one rank: seconds of the parts, and bytes of the gradients."""

    name: str
    forward: float
    backward: float
    update: float
    gradients: float

    @property
    def alone(self) -> float:
        """Seconds without other ranks."""
        return self.forward + self.backward + self.update


def all_reduce(network: Network, size: float, ranks: int) -> float:
    """Return the seconds of reducing so many bytes over the ranks, by the best of the three ways."""
    if ranks == 1:
        return 0.0
    rounds = math.floor(math.log2(ranks))
    odd = 0.0 if 2**rounds == ranks else 2 * (network.alpha + size * network.beta) + size * network.gamma
    share = (ranks - 1) / ranks * size
    moved = 2 * share * network.beta + share * network.gamma
    doubling = rounds * (network.alpha + size * (network.beta + network.gamma)) + odd
    halving = 2 * rounds * network.alpha + moved + odd
    ring = 2 * (ranks - 1) * network.alpha + moved
    return min(doubling, halving, ring)


def buckets(size: float) -> list[float]:
    """Return the bytes of each bucket, in the order in which they are complete."""
    found = [min(size, BUCKETS[0])]
    while sum(found) < size - 0.5:
        found.append(min(size - sum(found), BUCKETS[1]))
    return found


def step_time(step: Step, network: Network, ranks: int, work: float = 1.0) -> float:
    """Return the seconds of a step when each rank has `work` of the examples that `step` was measured with.

    Gradients are taken to be complete at an even rate over the backward pass; the update does not shrink with the
    examples.
    """
    now = step.forward * work
    arrived, complete = now, 0.0
    for size in buckets(step.gradients):
        complete += size
        ready = now + step.backward * work * complete / step.gradients
        arrived = max(arrived, ready) + all_reduce(network, size, ranks)
    return max(arrived, now + step.backward * work) + step.update


def weak(step: Step, network: Network, ranks: int) -> float:
    """Return the efficiency with the same batch on each rank: the time alone over the time together."""
    return step.alone / step_time(step, network, ranks)


def strong(step: Step, network: Network, ranks: int) -> float:
    """Return the speed-up with one batch divided among the ranks."""
    return step.alone / step_time(step, network, ranks, 1 / ranks)


def stops_paying(step: Step, network: Network, most: int = 1024) -> int:
    """Return the last of 1, 2, 4, ... ranks up to which twice as many divide a batch at least 1.5 times faster."""
    ranks = 1
    while 2 * ranks <= most and strong(step, network, 2 * ranks) >= 1.5 * strong(step, network, ranks):
        ranks *= 2
    return ranks


# For the tables: the compiled medians of RESULTS.md for W2 (batch 512) and W3 (batch 12), divided as their products
# are, a third forward and two thirds backward, and the update by the bytes that it moves at 10 GB/s.
def recorded(name: str, whole: float, parameters: int, touched: int) -> Step:
    """Return a step by its seconds, the number of parameters, and how many arrays of that size the update touches."""
    update = parameters * 4 * touched / 10e9
    return Step(name, (whole - update) / 3, (whole - update) * 2 / 3, update, parameters * 4)


STEPS = (
    recorded("W2", 0.0622, 2_913_290, 6),
    recorded("W3", 0.0455, 809_856, 7),
    # A GPT of 124 million parameters: 6 N operations a token, 8,192 tokens a rank and step, 2 Tflop/s of a whole node.
    recorded("GPT-124M", 6 * 124e6 * 8192 / 2e12, 124_000_000, 7),
)
COUNTS = (2, 4, 8, 16, 64, 256, 1024)


def tables() -> str:
    """Return the predictions as Markdown."""
    lines = []
    for title, value, form in (
        ("Weak scaling: efficiency", weak, "{:.0%}"),
        ("Strong scaling: speed-up", strong, "{:.1f}"),
    ):
        lines += [f"{title}", "", "| step | network | " + " | ".join(f"{count:,}" for count in COUNTS) + " |"]
        lines += ["|---|---|" + "---:|" * len(COUNTS)]
        for step in STEPS:
            for network in NETWORKS:
                cells = [form.format(value(step, network, count)) for count in COUNTS]
                lines.append(f"| {step.name} | {network.name} | " + " | ".join(cells) + " |")
        lines.append("")
    lines += ["Dividing one batch further stops paying (less than 1.5 times faster for twice the nodes) after", ""]
    lines += ["| step | " + " | ".join(network.name for network in NETWORKS) + " |", "|---|" + "---:|" * len(NETWORKS)]
    for step in STEPS:
        lines.append(f"| {step.name} | " + " | ".join(f"{stops_paying(step, one):,}" for one in NETWORKS) + " |")
    return "\n".join(lines)


def fitted(times: dict[int, dict[int, float]], ranks: int) -> Network:
    """Return the network that explains measured times of `all_reduce`: the smallest sizes alpha, the largest beta."""
    measured = times[ranks]
    small, large = min(measured), max(measured)
    rounds = 2 * math.log2(ranks)
    alpha = measured[small] / (rounds / 2)
    moved = (ranks - 1) / ranks * large
    rest = max(measured[large] - rounds * alpha, 1e-9)
    gamma = Network.gamma
    return Network("this machine", alpha, max((rest / moved - gamma) / 2, 1e-12), gamma)


# --- what is measured -------------------------------------------------------------------------------


def median_of(function, seconds, agree) -> float:
    """Return the median seconds of a call, of as many as all ranks have agreed on."""
    function()
    start = time.perf_counter()
    function()
    count = int(agree(max(5, min(2000, seconds / max(1e-9, time.perf_counter() - start)))))
    times = []
    for _ in range(count):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def worker(seconds: float) -> None:
    """Measure on one rank; rank 0 prints."""
    import numpy as np

    import glassgrad as gg
    import glassgrad.distributed as dist
    from benchmarks import data_parallel

    dist.init_process_group()
    rank, ranks = dist.get_rank(), dist.get_world_size()

    def agree(value: float) -> float:
        given = gg.tensor([float(value)])
        dist.broadcast(given, 0)
        return given.item()

    found = {"ranks": ranks, "message": {}, "all_reduce": {}, "steps": {}}
    for size in SIZES:
        x = gg.tensor(np.zeros(size // 4, np.float32))

        def ping(x=x) -> None:
            if rank == 0:
                dist.send(x, 1)
                dist.recv(x, 1)
            elif rank == 1:
                dist.recv(x, 0)
                dist.send(x, 0)

        found["message"][size] = median_of(ping, seconds / len(SIZES), agree) / 2
        dist.barrier()
        found["all_reduce"][size] = median_of(lambda x=x: dist.all_reduce(x), seconds / len(SIZES), agree)
    for key in ("w2", "w3"):
        found["steps"][key] = phases(data_parallel, key, ranks, seconds, agree)
    if rank == 0:
        sys.stdout.write("RESULT " + json.dumps(found) + "\n")
    dist.barrier()


def phases(data_parallel, key: str, ranks: int, seconds: float, agree) -> dict[str, float]:
    """Return the seconds of the parts of an eager step on this rank's rows, and of the whole step with all ranks."""
    import importlib

    import glassgrad as gg
    import glassgrad.distributed as dist

    model, optimizer, loss_fn = importlib.import_module(f"{data_parallel.package(key)}.glassgrad_peer").parts()
    x, y = data_parallel.cut(key, dist.get_rank(), ranks, gg.tensor)[0]
    names = ("forward", "backward", "update")

    def step(net, spent=None) -> None:
        marks = [time.perf_counter()]
        loss = loss_fn(net(x), y)
        marks.append(time.perf_counter())
        optimizer.zero_grad()
        loss.backward()
        marks.append(time.perf_counter())
        optimizer.step()
        marks.append(time.perf_counter())
        if spent is not None:
            spent.append([end - begin for begin, end in itertools.pairwise(marks)])

    spent: list[list[float]] = []
    median_of(lambda: step(model, spent), seconds, agree)
    parts = dict(zip(names, map(statistics.median, zip(*spent, strict=True)), strict=True))
    net = gg.nn.parallel.DistributedDataParallel(model)
    return {
        **parts,
        "gradients": float(sum(one.numel() * 4 for one in model.parameters())),
        "together": median_of(lambda: step(net), seconds, agree),
    }


def measure(counts: list[int], seconds: float) -> list[dict]:
    """Start the ranks; return what each number of them found."""
    found = []
    launcher = Path(sys.executable).with_name("mpiexec")
    for count in counts:
        command = [str(launcher if launcher.exists() else "mpiexec"), "-n", str(count), sys.executable]
        command += ["-m", "benchmarks.scaling", "--worker", str(seconds)]
        done = subprocess.run(
            command,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        line = next((one for one in done.stdout.splitlines() if one.startswith("RESULT ")), None)
        if line is None:
            raise SystemExit(f"{count} ranks failed:\n{done.stdout}{done.stderr}")
        found.append(json.loads(line.removeprefix("RESULT ")))
    return found


def report(found: list[dict]) -> None:
    """Print what was measured, and the model beside it."""
    times = {one["ranks"]: {int(size): value for size, value in one["all_reduce"].items()} for one in found}
    print(f"{os.cpu_count()} cores; ranks of one thread; seconds are medians\n")
    for one in found:
        ranks = one["ranks"]
        network = fitted(times, ranks)
        print(f"{ranks} ranks: alpha {network.alpha * 1e6:.1f} us, {1e-9 / network.beta:.2f} GB/s")
        print(f"  {'bytes':>12} {'message':>12} {'GB/s':>8} {'all_reduce':>12} {'model':>12}")
        for size in SIZES:
            message, reduced = one["message"][str(size)], times[ranks][size]
            shown = [f"{value * 1e6:9.1f} us" for value in (message, reduced, all_reduce(network, size, ranks))]
            print(f"  {size:12,} {shown[0]} {size / message / 1e9:8.2f} {shown[1]} {shown[2]}")
        for key, step in one["steps"].items():
            whole = Step(key, step["forward"], step["backward"], step["update"], step["gradients"])
            told = step_time(whole, network, ranks)
            parts = ", ".join(f"{part} {step[part] * 1e3:.2f}" for part in ("forward", "backward", "update"))
            print(f"  {key}: {parts} ms; together {step['together'] * 1e3:.2f} ms, ", end="")
            print(f"model {told * 1e3:.2f} ms ({told / step['together']:.2f} of it)")
        print()


def main() -> None:
    """Measure and compare, or predict."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--predict", action="store_true", help="print the tables for clusters, measure nothing")
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each thing that is measured")
    options = parser.parse_args()
    if not options.predict:
        report(measure([int(count) for count in options.ranks.split(",")], options.seconds))
    print(tables())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(float(sys.argv[2]))
    else:
        main()
