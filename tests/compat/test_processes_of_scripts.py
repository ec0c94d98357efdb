"""Programs that train one model in several processes, under both libraries and with each start method."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from glassgrad.engine.memory import shared

SCRIPTS = Path(__file__).parent / "scripts"

pytestmark = pytest.mark.skipif(not shared.is_possible(), reason="processes cannot share memory on this system")


def printed(script: str, *arguments: str, ours: bool) -> str:
    """What a script prints, run by its own process."""
    command = [sys.executable, *(("-m", "glassgrad.compat") if ours else ()), str(SCRIPTS / script), *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


EXPECTED = """shared True True
exit codes [0, 0, 0, 0] steps [40, 40, 40, 40]
all weights moved True
learnt True
"""


@pytest.mark.parametrize("start", ["fork", "spawn", pytest.param("forkserver", marks=pytest.mark.slow)])
def test_four_processes_train_one_model(start: str) -> None:
    assert printed("_hogwild.py", "--start", start, ours=True) == EXPECTED


@pytest.mark.slow
def test_hogwild_under_pytorch() -> None:
    pytest.importorskip("torch", reason="PyTorch is the other library")
    assert printed("_hogwild.py", "--start", "fork", ours=False) == EXPECTED


def test_one_process_has_pytorchs_losses() -> None:
    pytest.importorskip("torch", reason="PyTorch is the other library")
    found = printed("_hogwild.py", "--processes", "1", "--start", "fork", ours=True)
    assert "losses 2." in found
    assert found == printed("_hogwild.py", "--processes", "1", "--start", "fork", ours=False)


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_actors_share_a_model_and_an_optimizer(start: str) -> None:
    found = printed("_actors.py", start, ours=True)
    assert found.splitlines() == [
        "updates 120 losses 120 [0, 0, 0]",
        "falls True",
        "steps of the optimizer [120]",
        "moments True",
    ]


CHILD = """
import sys
import torch
import torch.multiprocessing as mp
from torch.multiprocessing.spawn import ProcessRaisedException

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)

def work(rank, model, queue):
    queue.put((rank, torch.__name__, type(model.layer).__module__, model.layer.weight.is_shared()))
    if rank == 1:
        raise ValueError("of rank one")

if __name__ == "__main__":
    context = mp.get_context("spawn")
    queue = context.SimpleQueue()
    model = Model().share_memory()
    try:
        mp.spawn(work, args=(model, queue), nprocs=2)
    except ProcessRaisedException as error:
        print("of rank one" in str(error), error.error_index)
    while not queue.empty():
        print(queue.get()[1:])
"""


def test_new_processes_of_a_script_have_the_name_torch(tmp_path: Path) -> None:
    script = tmp_path / "child.py"
    script.write_text(CHILD, encoding="utf-8")
    first, *others = printed(str(script), ours=True).splitlines()
    assert first == "True 1"
    assert others
    assert set(others) == {"('glassgrad', 'glassgrad.nn.layers.linear', True)"}
