"""`Trainer` and `glassgrad train` on several ranks: the results of one process with the same batches."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from glassgrad.train import read_metrics
from glassgrad.train.kept.checkpoint import load_checkpoint
from tests.distributed.conftest import Ended, ended_late

PROGRAM = Path(__file__).with_name("trained.py")
ALL = "compiled,plain,single,clipped,accumulated,averaged,normed,spread"


def numbers(ended: Ended) -> list[dict[str, tuple[int, np.ndarray]]]:
    """Return what each rank printed: case -> (steps, loss, validation loss and weights)."""
    found = []
    for out in ended.out:
        lines = [line.split() for line in out.splitlines()]
        found.append({case: (int(step), np.array(rest, float)) for case, step, *rest in lines})
    return found


def assert_same(found: Ended, expected: Ended) -> None:
    wanted = numbers(expected)[0]
    assert wanted
    for rank in numbers(found):
        assert rank
        for case, (step, values) in rank.items():
            tolerance = 1e-5 if case == "single" else 1e-12
            assert step == wanted[case][0]
            np.testing.assert_allclose(values, wanted[case][1], rtol=tolerance, atol=tolerance, err_msg=case)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """What one process does, without a launcher."""
    folder = tmp_path_factory.mktemp("alone")
    done = subprocess.run(
        [sys.executable, str(PROGRAM), ALL, str(folder)], capture_output=True, text=True, check=True, timeout=100
    )
    return Ended(0, [done.stdout], [done.stderr], "", 0.0)


@pytest.mark.parametrize(("n", "cases"), [(2, ALL), (4, "plain,accumulated")])
def test_ranks_do_what_one_process_does(ranks, alone: Ended, tmp_path: Path, n: int, cases: str) -> None:
    """Steps of ten examples and of two, which four ranks cannot share evenly, or at all."""
    ended = ranks(PROGRAM, n=n, args=[cases, tmp_path / "runs"], limit=120.0)
    assert_same(ended, alone)
    records = [one for one in read_metrics(tmp_path / "runs" / "plain" / "metrics.jsonl") if one["event"] == "train"]
    assert [one["step"] for one in records] == list(range(1, 19))  # one rank writes


def test_a_run_goes_on_with_another_number_of_ranks(ranks, alone: Ended, tmp_path: Path) -> None:
    """Also with a state that is spread: a checkpoint, saved after each step, holds the state of all ranks."""
    cases, folder = ["plain", "spread"], tmp_path / "runs"
    ranks(PROGRAM, n=3, args=[",".join(cases), folder, 7])
    arrays, _ = load_checkpoint(folder / "spread" / "state.safetensors")
    kept = [name for name in arrays if name.startswith("optimizer.") and name.endswith("exp_avg")]
    assert len(kept) == 4
    assert all(np.abs(arrays[name]).max() > 0 for name in kept)
    ranks(PROGRAM, n=2, args=[",".join(cases), folder, 13])
    ended = ranks(PROGRAM, n=1, args=[",".join(cases), folder])
    for case in cases:
        step, found = numbers(ended)[0][case]
        assert step == 18
        np.testing.assert_allclose(found, numbers(alone)[0][case][1], rtol=1e-12, atol=1e-12)


def killed_once(mpiexec: str, folder: Path, seed: int) -> None:
    """Start a training of three ranks and kill one of them at some moment; all must end, the checkpoint be whole."""
    import psutil

    numbers = random.Random(seed)
    command = [mpiexec, "-n", "3", sys.executable, str(PROGRAM), "plain", str(folder)]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        state = folder / "plain" / "state.safetensors"
        end = time.monotonic() + 60
        while not state.exists() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(numbers.uniform(0.0, 0.4))
        started = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        ours = [one for one in started if one.is_running() and "trained.py" in " ".join(one.cmdline())]
        if ours:
            numbers.choice(ours).send_signal(numbers.choice([signal.SIGKILL, signal.SIGTERM]))
        assert not ended_late(process, 10.0)
        assert not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in ours)
        arrays, _rest = load_checkpoint(state)
        assert all(np.isfinite(array).all() for array in arrays.values() if array.dtype.kind == "f")
    finally:
        ended_late(process, 0.0)


@pytest.mark.parametrize("seed", [0, pytest.param(range(1, 9), marks=pytest.mark.slow)])
def test_a_rank_killed_at_any_moment_leaves_a_checkpoint_to_go_on_from(
    ranks, mpiexec: str, alone: Ended, tmp_path: Path, seed
) -> None:
    for one in [seed] if isinstance(seed, int) else seed:
        folder = tmp_path / str(one)
        killed_once(mpiexec, folder, one)
        ended = ranks(PROGRAM, n=2, args=["plain", folder])
        np.testing.assert_allclose(numbers(ended)[1]["plain"][1], numbers(alone)[0]["plain"][1], rtol=1e-12, atol=1e-12)


DIFFERENT = """
import sys
import glassgrad as gg, glassgrad.distributed as dist
from glassgrad import nn, optim
from glassgrad.nn import functional as F
from glassgrad.train import Trainer, TrainingConfig

dist.init_process_group()
rank = dist.get_rank()
gg.manual_seed(rank if sys.argv[1] == "data" else 0)
x = gg.randn(8, 4)
model = nn.Sequential(nn.Linear(4, 5 if rank == 1 and sys.argv[1] == "shape" else 6), nn.Flatten())
config = TrainingConfig(epochs=1, progress="none", engine="eager")
Trainer(model, optim.SGD(model.parameters(), lr=0.1), F.mse_loss, [(x, x[:, :1])], config=config).fit()
"""


@pytest.mark.parametrize(
    ("what", "said"),
    [("shape", "'0.weight' is float32 of shape (5, 4)"), ("data", "differs between rank 1 and rank 0")],
)
def test_ranks_that_differ_are_told(ranks, what: str, said: str) -> None:
    ended = ranks(DIFFERENT, args=[what], code=None)
    assert ended.code in {1, 9}, str(ended)  # 9 where the launcher is faster to kill a rank than the rank is to end
    assert any(said in err for err in ended.err), str(ended)


# --- the command line --------------------------------------------------------------------------------


def train(mpiexec: str, folder: Path, n: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [mpiexec, "-n", n, sys.executable, "-m", "glassgrad", "train", *arguments]
    return subprocess.run(
        list(map(str, command)), cwd=folder, capture_output=True, text=True, timeout=100, check=False,
        env={**os.environ, "MPLBACKEND": "Agg"},
    )  # fmt: skip  # one call


def final(folder: Path) -> dict[str, float]:
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return {name: value for name, value in json.loads(lines[-1]).items() if "loss" in name or "accuracy" in name}


def test_train_shows_and_writes_one_run(mpiexec: str, tmp_path: Path) -> None:
    options = ["digits", "--epochs", 1, "--engine", "eager", "--hidden", 16]
    one = train(mpiexec, tmp_path, 1, *options, "--run-dir", "one")
    two = train(mpiexec, tmp_path, 2, *options, "--run-dir", "two")
    assert (one.returncode, two.returncode) == (0, 0), two.stderr
    assert two.stdout.count("examples   ") == two.stdout.count("saved   ") == 1
    assert "ranks      2" in two.stdout
    assert final(tmp_path / "two") == pytest.approx(final(tmp_path / "one"), rel=1e-5)
    again = train(mpiexec, tmp_path, 2, *options, "--run-dir", "two")
    assert again.returncode != 0
    assert again.stderr.count("already holds a run") == 1
    longer = train(mpiexec, tmp_path, 1, "digits", "--resume", "two", "--epochs", 2)
    assert longer.returncode == 0, longer.stderr
    assert "going on at step 22" in longer.stdout


@pytest.mark.slow
def test_layers_by_hand_are_shared_too(mpiexec: str, tmp_path: Path) -> None:
    options = ["digits", "--epochs", 1, "--engine", "manual", "--hidden", 16]
    for n in (1, 2):
        done = train(mpiexec, tmp_path, n, *options, "--run-dir", n)
        assert done.returncode == 0, done.stderr
    assert final(tmp_path / "2") == pytest.approx(final(tmp_path / "1"), rel=1e-5)


def test_an_interrupt_saves_and_ends_all_ranks(mpiexec: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "glassgrad", "launch", "-n", "2", "-m", "glassgrad", "train", "digits"]
    process = subprocess.Popen(
        [*command, "--epochs", "4000", "--engine", "eager", "--run-dir", "run"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip  # one call
    try:
        steps = (line for line in process.stdout if line.startswith("step"))
        next(steps), next(steps)  # by the second one every rank has taken a step, and listens to signals
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=12)
        assert process.returncode == 130, err
        assert err.count("interrupted: stopped after step") == 1
    finally:
        ended_late(process, 0.0)
