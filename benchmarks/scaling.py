"""Scaling of a data-parallel step: measurements on this machine, and a model's predictions for other networks.

``python -m benchmarks.scaling [--ranks 2,4] [--seconds 2] [--write]`` measures messages, `all_reduce`, averages in
shared memory and the parts of steps of W2 and W3 on one process. From these the model predicts steps of 2 and 4 ranks,
which are also measured. `--write` puts the tables into RESULTS.md.
``python -m benchmarks.scaling --predict`` only prints the tables for the clusters of `NETWORKS`.

The model. A message of n bytes takes alpha + n beta (Hockney 1994). Reducing n bytes over p ranks takes the least of

    recursive doubling     log2(p) (alpha + n beta + n gamma)
    Rabenseifner           2 log2(p) alpha + 2 (p - 1)/p n beta + (p - 1)/p n gamma
    ring                   2 (p - 1) alpha + 2 (p - 1)/p n beta + (p - 1)/p n gamma

(Thakur, Rabenseifner and Gropp 2005, sections 4.4 and 4.5; the ring: Patarasuk and Yuan 2009), where gamma is the time
for adding a byte. If p is not a power of two, recursive doubling and Rabenseifner need one more message of n bytes in
each direction. Gradients are sent in buckets during the backward pass (Li et al. 2020): a bucket starts when it is
complete and the previous one has arrived; the update follows the last bucket and ends the step. The model ignores late
ranks, networks shared with others, and slower links between racks.

Up to four ranks of one machine average through shared memory (`Machine`). Each rank copies its n bytes there, reads
those of all p ranks and writes the mean: (p + 3) n bytes for each rank, at the rate of all ranks at once, and alpha for
the barrier of a bucket. The cores do this work, so the backward pass cannot hide it. If there are more ranks than
cores, the ranks take turns: computing takes p / cores times longer, and waiting costs nothing, because a waiting rank
yields its core. The update also moves memory; if all ranks update at once, it takes longer by a measured factor.
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
KEYS = ("w2", "w3")
SMALL = 4096  # bytes up to which an average takes what its barrier takes
PARTS = ("forward", "backward", "update")
BUCKETS = (1e6, 25e6)  # bytes of the first bucket and of the others, as DistributedDataParallel makes them


# --- the model --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Network:
    """Seconds of a message (alpha), of a byte of it (beta), and of adding a byte (gamma)."""

    name: str
    alpha: float
    beta: float
    gamma: float = 1 / 5e9  # a core adds float32 from memory at about 5 GB/s of what arrives


# Latencies between programs over MPI, and 0.94 of the line's rate: typical round numbers, not measurements.
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
    """Return the seconds for reducing this many bytes over the ranks, by the best of the three ways."""
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


@dataclass(frozen=True)
class Machine:
    """Ranks that share the memory of one machine, and its cores.

    Attributes:
        cores: of the machine; a rank uses one.
        alpha: seconds for averaging almost no data.
        rate: bytes per second that each rank moves while all ranks average.
        crowd: the factor by which the update takes longer if all cores do it at once.
    """

    name: str
    cores: int
    alpha: float
    rate: float
    crowd: float = 1.0

    def average(self, size: float, ranks: int) -> float:
        """Return the seconds for averaging this many bytes over ranks with one core each."""
        return 0.0 if ranks == 1 else self.alpha + (ranks + 3) * size / self.rate

    def turns(self, ranks: int) -> float:
        """Return the factor by which a rank computes longer because others use its core."""
        return max(1.0, ranks / self.cores)

    def step_time(self, step: Step, ranks: int) -> float:
        """Return the seconds of a step on this many ranks; `step` was measured on one rank with its own rows."""
        averages = sum(self.average(size, ranks) for size in buckets(step.gradients))
        crowd = self.crowd if ranks > 1 else 1.0
        return self.turns(ranks) * (step.forward + step.backward + step.update * crowd + averages)


def buckets(size: float) -> list[float]:
    """Return the bytes of each bucket, in the order in which they are complete."""
    found = [min(size, BUCKETS[0])]
    while sum(found) < size - 0.5:
        found.append(min(size - sum(found), BUCKETS[1]))
    return found


def step_time(step: Step, network: Network, ranks: int, work: float = 1.0) -> float:
    """Return the seconds of a step in which each rank has the share `work` of the examples of the measured `step`.

    The model assumes that gradients become complete at an even rate during the backward pass; the time of the update
    does not depend on the number of examples.
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


# For the tables: the compiled medians on Intel's Xeon for W2 (batch 512) and W3 (batch 12), divided as their products
# are, a third forward and two thirds backward, and the update by the bytes that it moves at 10 GB/s.
def recorded(name: str, whole: float, parameters: int, touched: int) -> Step:
    """Return a step by its seconds, the number of parameters, and how many arrays of that size the update touches."""
    update = parameters * 4 * touched / 10e9
    return Step(name, (whole - update) / 3, (whole - update) * 2 / 3, update, parameters * 4)


STEPS = (
    recorded("W2", 0.0466, 2_913_290, 6),
    recorded("W3", 0.0323, 809_856, 7),
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
    """Return the network that fits the times of `all_reduce`: alpha from the smallest sizes, beta from the largest."""
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
    """Return the median seconds of a call, over a number of calls on which all ranks agreed."""
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


def worker(seconds: float, counts: list[int]) -> None:
    """Measure on one rank; rank 0 prints. A single process measures parts of steps with the rows of one rank."""
    import glassgrad as gg
    import glassgrad.distributed as dist

    dist.init_process_group()
    rank, ranks = dist.get_rank(), dist.get_world_size()

    def agree(value: float) -> float:
        given = gg.tensor([float(value)])
        dist.broadcast(given, 0)
        return given.item()

    found: dict = {"ranks": ranks}
    if ranks == 1:
        found["alone"] = {count: {key: parts_of(key, 0, count, seconds / 2, agree) for key in KEYS} for count in counts}
    else:
        found |= transfers(rank, seconds, agree)
        found["parts"] = {key: parts_of(key, rank, ranks, seconds / 2, agree) for key in KEYS}
        found["together"] = {key: together(key, rank, ranks, seconds, agree) for key in KEYS}
    if rank == 0:
        sys.stdout.write("RESULT " + json.dumps(found) + "\n")
    dist.barrier()


def transfers(rank: int, seconds: float, agree) -> dict[str, dict[int, float]]:
    """Return the seconds of a message, of `all_reduce` and of averaging a bucket, by the number of bytes."""
    import numpy as np

    import glassgrad as gg
    import glassgrad.distributed as dist
    from glassgrad.distributed.buckets import make_buckets, share_memory

    world = dist.group.WORLD
    found: dict[str, dict[int, float]] = {"message": {}, "all_reduce": {}, "average": {}}
    for size in SIZES:
        x = gg.tensor(np.zeros(size // 4, np.float32))

        def ping(x=x) -> None:
            if rank == 0:
                dist.send(x, 1)
                dist.recv(x, 1)
            elif rank == 1:
                dist.recv(x, 0)
                dist.send(x, 0)

        made = make_buckets([x.shape], [np.float32], None)
        window = share_memory(made, world.comm)

        def average(x=x, bucket=made[0]) -> None:
            bucket.start(world.comm, [x.array], in_place=True)
            bucket.finish(world, [x.array])

        part = seconds / len(SIZES)
        found["message"][size] = median_of(ping, part, agree) / 2
        dist.barrier()
        found["all_reduce"][size] = median_of(lambda x=x: dist.all_reduce(x), part, agree)
        found["average"][size] = median_of(average, part, agree) if window is not None else math.nan
    return found


def made(key: str, rank: int, ranks: int):
    """Return model, optimizer, loss function and the first batch of a rank."""
    import importlib

    import glassgrad as gg
    from benchmarks import data_parallel

    peer = importlib.import_module(f"{data_parallel.package(key)}.glassgrad_peer")
    return (*peer.parts(), data_parallel.cut(key, rank, ranks, gg.tensor)[0])


def parts_of(key: str, rank: int, ranks: int, seconds: float, agree) -> dict[str, float]:
    """Return the seconds of the parts of an eager step on the rows of a single rank, and the bytes of the gradients."""
    model, optimizer, loss_fn, (x, y) = made(key, rank, ranks)
    spent: list[list[float]] = []

    def step() -> None:
        marks = [time.perf_counter()]
        loss = loss_fn(model(x), y)
        marks.append(time.perf_counter())
        optimizer.zero_grad()
        loss.backward()
        marks.append(time.perf_counter())
        optimizer.step()
        marks.append(time.perf_counter())
        spent.append([end - begin for begin, end in itertools.pairwise(marks)])

    median_of(step, seconds, agree)
    medians = map(statistics.median, zip(*spent, strict=True))
    gradients = float(sum(one.numel() * 4 for one in model.parameters()))
    return {**dict(zip(PARTS, medians, strict=True)), "gradients": gradients}


def together(key: str, rank: int, ranks: int, seconds: float, agree) -> float:
    """Return the seconds of an eager step of all ranks under DistributedDataParallel."""
    import glassgrad as gg

    model, optimizer, loss_fn, (x, y) = made(key, rank, ranks)
    net = gg.nn.parallel.DistributedDataParallel(model)

    def step() -> None:
        loss = loss_fn(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return median_of(step, seconds, agree)


def measure(counts: list[int], seconds: float) -> list[dict]:
    """Start one process, and then each number of ranks; return their measurements."""
    found = []
    launcher = Path(sys.executable).with_name("mpiexec")
    for count in [1, *counts]:
        command = [str(launcher if launcher.exists() else "mpiexec"), "-n", str(count), sys.executable]
        command += ["-m", "benchmarks.scaling", "--worker", str(seconds), ",".join(map(str, counts))]
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


# --- the report -------------------------------------------------------------------------------------


def fitted_machine(alone: dict, one: dict, cores: int) -> Machine:
    """Return the machine that fits the measured times of averaging and updating, with at most one rank per core."""
    times = {int(size): value for size, value in one["average"].items()}
    large, ranks = max(times), one["ranks"]
    turns = max(1.0, ranks / cores)
    least = statistics.median(value for size, value in times.items() if size <= SMALL)
    rate = turns * (ranks + 3) * large / max(times[large] - least, 1e-9)
    updates = [one["parts"][key]["update"] / turns / alone[str(ranks)][key]["update"] for key in KEYS]
    return Machine("this machine", cores, least / turns, rate, max(1.0, statistics.median(updates)))


def step_rows(found: list[dict], machine: Machine) -> list[list[str]]:
    """Return a row for each step and number of ranks: the prediction of the model, and the measurement."""
    alone, *several = found
    rows = []
    for key in KEYS:
        for one in several:
            ranks, parts = one["ranks"], alone["alone"][str(one["ranks"])][key]
            step = Step(key, *(parts[part] for part in PARTS), parts["gradients"])
            told, took = machine.step_time(step, ranks), one["together"][key]
            shown = [*(parts[part] for part in PARTS), told, took]
            row = [
                key.upper(),
                str(ranks),
                f"{machine.turns(ranks):.1f}",
                *(f"{value * 1e3:.2f} ms" for value in shown),
            ]
            rows.append([*row, f"{told / took:.2f}"])
    return rows


def report(found: list[dict]) -> str:
    """Return the measurements beside the model as Markdown."""
    from benchmarks.results import duration, markdown_table

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    alone, *several = found
    lines = [f"Ranks of one thread on {cores} cores; seconds are medians.", ""]
    for one in several:
        ranks = one["ranks"]
        times = {ranks: {int(size): value for size, value in one["all_reduce"].items()}}
        network = fitted(times, ranks)
        rows = [
            [
                f"{size:,}",
                *(duration(one[kind][str(size)]) for kind in ("message", "all_reduce")),
                duration(all_reduce(network, size, ranks)),
                duration(one["average"][str(size)]),
            ]
            for size in SIZES
        ]
        head = ["bytes", "message", "all_reduce", "model of it", "average in shared memory"]
        lines += [f"{ranks} ranks: alpha {duration(network.alpha)}, {1e-9 / network.beta:.2f} GB/s", ""]
        lines += [markdown_table(head, rows), ""]
    machine = fitted_machine(alone["alone"], several[0], cores)
    head = ["step", "ranks", "turns", "forward", "backward", "update", "predicted", "measured", "ratio"]
    given = (
        "Eager steps, one batch divided. Forward, backward and update are those of one process alone with a rank's "
        f"rows; {several[0]['ranks']} ranks gave alpha {duration(machine.alpha)} and {machine.rate / 1e9:.1f} GB/s for "
        f"averages, and updates at once that take {machine.crowd:.2f} times longer. From these:"
    )
    lines += [given, "", markdown_table(head, step_rows(found, machine)), ""]
    lines += [paying(alone["alone"], key, machine) for key in KEYS]
    return "\n".join(lines)


def paying(alone: dict, key: str, machine: Machine) -> str:
    """Return a line about the number of ranks on this machine that makes a step faster, by the model."""
    counts = sorted(map(int, alone))
    few = alone[str(counts[0])][key]
    # A line through the measurements by number of rows: the seconds of products for all rows, and for none.
    work = {1 / count: sum(alone[str(count)][key][part] for part in PARTS[:2]) for count in counts}
    low, high = min(work), max(work)
    slope = (work[high] - work[low]) / (high - low) if high > low else work[high] / high
    fixed = max(0.0, work[high] - slope * high)

    def seconds(ranks: int) -> float:
        step = Step(key, 0.0, fixed + slope / ranks, few["update"], few["gradients"])
        return machine.step_time(step, ranks)

    tried = [2**power for power in range(6)]
    speed = {ranks: seconds(1) / seconds(ranks) for ranks in tried}
    best = max(tried, key=speed.__getitem__)
    shown = ", ".join(f"{ranks}: {speed[ranks]:.2f}" for ranks in tried[:4])
    return f"- {key.upper()}, speed-up by the model on so many ranks of this machine: {shown}; the most at {best}."


def main() -> None:
    """Measure and compare, or predict."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--predict", action="store_true", help="print the tables for clusters, measure nothing")
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--seconds", type=float, default=2.0, help="the length of each measurement")
    parser.add_argument("--write", action="store_true", help="put the section into RESULTS.md")
    options = parser.parse_args()
    if options.predict:
        print(tables())
        return
    text = report(measure([int(count) for count in options.ranks.split(",")], options.seconds))
    print(text)
    if options.write:
        from benchmarks.results import machine_lines, write_section

        command = " ".join(["python -m benchmarks.scaling", *(one for one in sys.argv[1:] if one != "--write")])
        title = "Ranks of one machine: messages, averages, and steps beside the model"
        write_section("scaling", title, f"Command: `{command}`\n\n{text}\n\n{machine_lines()}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(float(sys.argv[2]), [int(count) for count in sys.argv[3].split(",")])
    else:
        main()
