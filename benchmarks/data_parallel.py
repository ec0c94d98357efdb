"""Data-parallel steps of W2 and W3: ranks of one thread, beside PyTorch's and one process with as many threads.

``python -m benchmarks.data_parallel [--ranks 2] [--rounds 3] [--seconds 4] [--write] [w2 w3]``

Every kind of run starts from the same weights and takes the same global batches; each rank gets its rows of them. The
kinds take turns; the result is the median over the rounds of each round's median step. The losses have to agree after
the steps of the check.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FOLDERS = {"w2": "w2_mnist_mlp", "w3": "w3_char_gpt"}
KINDS = ("compiled", "eager", "PyTorch", "threads")
TITLES = {
    "compiled": "glassgrad, compiled, DistributedDataParallel", "eager": "glassgrad, eager, DistributedDataParallel",
    "PyTorch": "PyTorch, eager, DistributedDataParallel over gloo", "threads": "glassgrad, compiled, one process",
}  # fmt: skip  # a table
CHECK_STEPS, TOLERANCE = 5, 2e-3
# The largest time of the compiled step as a share of the time of another kind.
BARS = {"PyTorch": 0.8, "threads": 1.15}


# --- one process ------------------------------------------------------------------------------------


def pinned(rank):
    """Bind a rank to its own core, as `mpiexec -bind-to core` does."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})


def ours(key, kind):
    """Return the step, the rank, the batches of this rank, and the average over the ranks."""
    ranks = int(os.environ.get("PMI_SIZE", "1"))
    if kind != "threads":
        pinned(int(os.environ.get("PMI_RANK", "0")))
    import glassgrad as gg
    import glassgrad.distributed as dist

    dist.init_process_group()
    model, optimizer, loss_fn = importlib.import_module(f"{package(key)}.glassgrad_peer").parts()
    if ranks > 1:
        model = gg.nn.parallel.DistributedDataParallel(model)

    def step(x, y):
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    def average(value):
        total = gg.tensor([value])
        dist.all_reduce(total, dist.ReduceOp.AVG)
        return total.item()

    run = step if kind == "eager" else gg.compile(step)
    return run, dist.get_rank(), cut(key, dist.get_rank(), ranks, gg.tensor), average, dist.barrier


def theirs(key, store, rank, ranks):
    """The same for PyTorch."""
    pinned(rank)
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    model, optimizer, loss_fn = importlib.import_module(f"{package(key)}.torch_peer").parts()
    model = torch.nn.parallel.DistributedDataParallel(model)

    def step(x, y):
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    def average(value):
        total = torch.tensor([value])
        dist.all_reduce(total)
        return total.item() / ranks

    return step, rank, cut(key, rank, ranks, torch.from_numpy), average, dist.barrier


def package(key):
    """The package of a workload."""
    return f"benchmarks.workloads.{FOLDERS[key]}"


def cut(key, rank, ranks, tensor):
    """Return a rank's rows of every batch."""
    batches = importlib.import_module(f"{package(key)}.problem").batches()
    rows = batches[0].shape[1] // ranks
    part = slice(rank * rows, (rank + 1) * rows)
    return [tuple(tensor(one[part].copy()) for one in batch) for batch in zip(*batches, strict=True)]


def worker(key, kind, seconds, store, rank, ranks):
    """Check, warm up and measure; rank 0 prints the results."""
    made = theirs(key, store, rank, ranks) if kind == "PyTorch" else ours(key, kind)
    step, me, data, average, barrier = made
    losses = [average(step(*data[at]).item()) for at in range(CHECK_STEPS)]
    for at in range(3):
        step(*data[at])
    times = []
    barrier()
    count = None
    begin = time.perf_counter()
    while count is None or len(times) < count:
        start = time.perf_counter()
        loss = step(*data[len(times) % len(data)])
        loss.item()
        times.append(time.perf_counter() - start)
        if count is None and len(times) == 3:  # the ranks have to take equally many steps
            count = max(5, int(average(seconds / statistics.median(times))))
    whole = time.perf_counter() - begin
    if me == 0:
        found = {"median": statistics.median(times), "mean": whole / len(times), "steps": len(times), "losses": losses}
        sys.stdout.write("RESULT " + json.dumps(found) + "\n")
    barrier()


# --- all of them ------------------------------------------------------------------------------------


def run(key, kind, ranks, seconds):
    """Start the processes of a kind; return the results of rank 0."""
    own = [sys.executable, "-m", "benchmarks.data_parallel", "--worker", key, kind, str(seconds)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(ranks) if kind == "threads" else "1"}
    with tempfile.TemporaryDirectory() as folder:
        if kind == "PyTorch":
            store = str(Path(folder) / "store")
            commands = [[*own, store, str(rank), str(ranks)] for rank in range(ranks)]
        elif kind == "threads":
            commands = [own]
        else:
            launcher = Path(sys.executable).with_name("mpiexec")
            commands = [[str(launcher if launcher.exists() else "mpiexec"), "-n", str(ranks), *own]]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "env": environment}
        processes = [subprocess.Popen(command, **pipes) for command in commands]
        texts = [process.communicate(timeout=300)[0] for process in processes]
    lines = [line for text in texts for line in text.splitlines() if line.startswith("RESULT ")]
    if not lines:
        raise SystemExit(f"{key} {kind} failed:\n" + "\n".join(texts))
    return json.loads(lines[0].removeprefix("RESULT "))


def compare(key, ranks, rounds, seconds):
    """Run all kinds in turns; return the median step of each."""
    found = {kind: [] for kind in KINDS}
    for number in range(rounds):
        for kind in KINDS if number % 2 == 0 else reversed(KINDS):
            found[kind].append(run(key, kind, ranks, seconds))
    wanted = found["threads"][0]["losses"]
    for kind, results in found.items():
        for given, expected in zip(results[0]["losses"], wanted, strict=True):
            if abs(given - expected) > TOLERANCE * abs(expected):
                raise SystemExit(f"{key} {kind}: the losses {results[0]['losses']} are not {wanted}")
    return {kind: statistics.median(one["mean"] for one in results) for kind, results in found.items()}


def main():
    """Print a table for each workload."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workloads", nargs="*", default=["w2", "w3"])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--write", action="store_true", help="put the section into RESULTS.md")
    options = parser.parse_args()
    lines = []
    for key in options.workloads:
        times = compare(key, options.ranks, options.rounds, options.seconds)
        lines.append(f"{key}, {options.ranks} ranks of one thread, or one process of {options.ranks}")
        for kind, seconds in times.items():
            bar = f"   at most {BARS[kind]} of it: {times['compiled'] / seconds:.2f}" if kind in BARS else ""
            lines.append(f"  {TITLES[kind]:55} {seconds * 1e3:8.2f} ms{bar}")
    text = "\n".join(lines)
    sys.stdout.write(f"{text}\n")
    if options.write:
        from benchmarks.results import machine_lines, write_section

        command = " ".join(["python -m benchmarks.data_parallel", *(one for one in sys.argv[1:] if one != "--write")])
        title = "Two ranks beside one process, and beside PyTorch's DDP over gloo"
        write_section("data_parallel", title, f"Command: `{command}`\n\n```text\n{text}\n```\n\n{machine_lines()}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        _, _, key, kind, seconds, *rest = sys.argv
        store, rank, ranks = rest or ("", 0, 1)
        worker(key, kind, float(seconds), store, int(rank), int(ranks))
    else:
        main()
