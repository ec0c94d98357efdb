"""Runs that are killed at random moments and resumed; a separate program, because only a process can be killed.

usage: killing.py FOLDER MOMENTS SEED     prints the number of runs with another result than the undisturbed run, and
the number of kills before the first step, between the first and the last step, and too late
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from fitting import stored, timeless, trainer

from glassgrad import optim
from glassgrad.train import Trainer, read_metrics

FILES = ("metrics.jsonl", "model.safetensors")


def make(folder: Path) -> Trainer:
    """A run of about a tenth of a second that has everything that could go wrong: dropout, a schedule, an average."""
    made = trainer(
        run_dir=str(folder),
        epochs=12,
        save_every=1e-6,
        ema=0.9,
        accumulate=2,
        clip_norm=1.0,
        skip_nonfinite=True,
        scheduler=lambda optimizer: optim.lr_scheduler.CosineAnnealingLR(optimizer, 48),
        log_to="jsonl,csv",
        best=2,
    )
    made.save_share = 0.9  # checkpoints after almost every step
    return made


def in_child(work: Callable[[], object]) -> int:
    """Run something in a forked process, which needs no imports any more; return its number."""
    number = os.fork()
    if number:
        return number
    try:
        work()
    except BaseException:  # noqa: BLE001 - whatever it is, the process ends here
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def outcome(folder: Path) -> object:
    """What a run has left."""
    arrays = {name: array.tobytes() for name, array in stored(folder / "model.safetensors").items()}
    best = {path.name: path.read_bytes() for path in (folder / "best").iterdir()}
    table = [line.split(",")[:4] for line in (folder / "metrics.csv").read_text().splitlines()]
    return arrays, timeless(read_metrics(folder / "metrics.jsonl")), best, sorted(table)


def main() -> int:
    """Kill and resume."""
    folder, moments, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    make(folder / "warm").fit()
    began = time.perf_counter()
    assert os.waitpid(in_child(lambda: make(folder / "whole").fit()), 0)[1] == 0
    length = time.perf_counter() - began
    expected, chance = outcome(folder / "whole"), random.Random(seed)
    wrong, places = 0, [0, 0, 0]
    for moment in range(moments):
        path = folder / str(moment)
        child = in_child(lambda path=path: make(path).fit())  # a default binds the loop's value
        time.sleep(chance.uniform(0, length))
        os.kill(child, signal.SIGKILL)
        killed = os.waitpid(child, 0)[1] == signal.SIGKILL
        reached = read_metrics(path / "metrics.jsonl")
        places[2 if not killed else 1 if reached else 0] += 1
        status = os.waitpid(in_child(lambda path=path: make(path).fit(resume=True)), 0)[1]  # as above
        wrong += status != 0 or outcome(path) != expected
        shutil.rmtree(path, ignore_errors=True)
    print(wrong, *places)
    return 0


if __name__ == "__main__":
    sys.exit(main())
