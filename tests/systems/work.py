"""A day's work with the library, for `pretend.py`: `work.py FOLDER PART...`. It prints each part that worked."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
from pathlib import Path

import numpy as np

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.cli import run
from glassgrad.nn import functional as F
from glassgrad.train import Checkpoint, Trainer, TrainingConfig
from glassgrad.utils.data import DataLoader, TensorDataset

FOLDER = Path(sys.argv[1])


def data() -> TensorDataset:
    gg.manual_seed(0)
    points = gg.randn(64, 3)
    return TensorDataset(points, (points.sum(1) > 0).long())


def compiled() -> None:
    """A step on two threads is native code, and gives what eager mode gives."""
    gg.manual_seed(1)
    model = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 8))
    start = {name: value.clone() for name, value in model.state_dict().items()}
    x, y = gg.randn(256, 64), gg.randint(0, 8, (256,))

    def losses(compile_: bool) -> list[float]:
        model.load_state_dict(start)
        optimizer = optim.SGD(model.parameters(), lr=0.1)

        def step(x: gg.Tensor, y: gg.Tensor) -> gg.Tensor:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        taken = gg.compile(step, threads=2, backend="llvm", strict=True) if compile_ else step
        return [taken(x, y).item() for _ in range(30)]

    np.testing.assert_allclose(losses(True), losses(False), rtol=1e-4)


def files() -> None:
    """Files are written twice in their place, and come back."""
    model = nn.Linear(3, 2)
    for note in ("é\n\x1a", "second"):
        gg.save({"w": model.weight, "note": note}, FOLDER / "weights")
        assert gg.load(FOLDER / "weights")["note"] == note
        Checkpoint(FOLDER / "own", model=model).save(note=note)
        assert Checkpoint(FOLDER / "own", model=model).load() == {"note": note}


def trainer() -> None:
    """A run stops, goes on and ends, with its page."""

    def made() -> Trainer:
        gg.manual_seed(1)
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
        config = TrainingConfig(epochs=3, progress="none", log_every=1, run_dir=str(FOLDER / "run"), log_to="csv")
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        return Trainer(model, optimizer, F.cross_entropy, DataLoader(data(), batch_size=8), config=config)

    assert not made().fit(until=5).finished
    assert made().fit(resume=True).finished
    for path in (FOLDER / "run").rglob("*"):
        if path.suffix in {".jsonl", ".toml", ".csv"}:
            assert b"\r" not in path.read_bytes(), path


def command() -> None:
    """A training by the command, resumed, and everything that looks at it."""
    os.chdir(FOLDER)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        for arguments in (
            ["train", "moons", "--steps", "30", "--run-dir", "moons"],
            ["train", "moons", "--resume", "moons", "--steps", "40"],
            ["runs", "."],
            ["report", "moons"],
            ["eval", "moons"],
            ["info"],
        ):
            assert run(arguments) == 0, (arguments, out.getvalue())
    assert (FOLDER / "moons" / "report.html").stat().st_size > 10_000


def workers() -> None:
    """Batches come from other processes."""
    batches = list(DataLoader(data(), batch_size=16, num_workers=2))
    assert [len(points) for points, _ in batches] == [16] * 4


def watched() -> None:
    """The doctor watches a loop."""
    model = nn.Linear(3, 2)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    with gg.doctor.watch(model, optimizer):
        for points, labels in DataLoader(data(), batch_size=16):
            optimizer.zero_grad()
            F.cross_entropy(model(points), labels).backward()
            optimizer.step()


if __name__ == "__main__":
    warnings.simplefilter("error", gg.errors.CompileWarning)
    for name in sys.argv[2:]:
        globals()[name]()
        print("works:", name, flush=True)
