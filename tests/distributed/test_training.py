"""Training on several ranks: gradients, batch norm, optimizer state and data; many cases in one start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.distributed.ranks import HERE, ranks_of
from tests.distributed.single import CASES


@pytest.mark.parametrize("program", ["training.py", "shared_state.py"])
@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_ranks_train_as_one_with_the_whole_batch(count: int, program: str) -> None:
    output = ranks_of(program, count, seconds=120)
    assert sorted(output.splitlines()) == [f"rank {rank} of {count} is right" for rank in range(count)]


@pytest.mark.parametrize(
    ("way", "count", "names"),
    [
        ("eager", 2, ["AdamW", "Muon", "SGD"]),  # training.py has all of them in double precision
        ("native", 2, ["AdamW"]),
        pytest.param("eager", 2, [], marks=pytest.mark.slow),
        pytest.param("native", 2, [], marks=pytest.mark.slow),  # a compiler run for each optimizer
        pytest.param("eager", 4, [], marks=pytest.mark.slow),
    ],
)
def test_every_optimizer_in_single_precision(way: str, count: int, names: list[str]) -> None:
    """The weights are those of one rank within 1e-5 of the largest, after thirty steps with clipping."""
    lines = [line.split() for line in ranks_of("single.py", count, way, *names, seconds=200).splitlines()]
    assert [name for name, _ in lines] == (names or sorted(CASES))
    assert {name: float(found) for name, found in lines if not float(found) <= 1e-5} == {}


@pytest.mark.slow  # imports PyTorch twice
def test_gradients_and_buffers_are_those_of_pytorchs_wrapper(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch's DistributedDataParallel is the oracle")
    command = [sys.executable, str(HERE / "semantics.py"), "torch", str(tmp_path / "store")]
    others = [  # apart from what they say on stderr: now and then PyTorch's threads complain at the end
        subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    try:
        theirs = "".join(process.communicate(timeout=100)[0] for process in others)
    finally:
        for process in others:
            process.kill()
    ours = ranks_of("semantics.py", 2)
    assert len(ours.splitlines()) == 2 * 15
    assert sorted(ours.splitlines()) == sorted(theirs.splitlines())
