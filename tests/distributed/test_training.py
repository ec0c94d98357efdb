"""Training on several ranks: gradients, batch norm, optimizer state and data; many cases in one start."""

from __future__ import annotations

import pytest

from tests.distributed.ranks import ranks_of


@pytest.mark.parametrize("program", ["training.py", "shared_state.py"])
@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_ranks_train_as_one_with_the_whole_batch(count: int, program: str) -> None:
    output = ranks_of(program, count, seconds=120)
    assert sorted(output.splitlines()) == [f"rank {rank} of {count} is right" for rank in range(count)]
