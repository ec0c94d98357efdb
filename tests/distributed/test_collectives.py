"""The collectives on 2 and 4 ranks, in one start each; and in one process, without a launcher."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import glassgrad as gg
import glassgrad.distributed as dist
from tests.distributed.ranks import ranks_of


@pytest.mark.parametrize("count", [2, 4])
def test_every_collective_gives_what_numpy_gives(count: int) -> None:
    output = ranks_of("collectives.py", count)
    assert sorted(output.splitlines()) == [f"rank {rank} of {count} is right" for rank in range(count)]


@pytest.fixture
def alone() -> Iterator[None]:
    dist.init_process_group()
    yield
    dist.destroy_process_group()


def test_without_a_group() -> None:
    assert (dist.get_rank(), dist.get_world_size(), dist.is_initialized()) == (0, 1, False)
    assert dist.is_available()
    assert dist.group.WORLD is None
    with pytest.raises(RuntimeError, match=r"all_reduce at .*test_collectives.py:\d+: there is no process group yet"):
        dist.all_reduce(gg.ones(1))


@pytest.mark.parametrize("backend", ["gloo", "nccl", "cpu:gloo,cuda:nccl"])
def test_pytorchs_backends_are_mpi_and_that_is_said(backend: str) -> None:
    with pytest.warns(match=rf"backend='{backend}' at .*test_collectives.py:\d+: the processes communicate over MPI"):
        dist.init_process_group(backend)
    assert dist.get_backend() == "mpi"
    dist.destroy_process_group()


def test_torchrun_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"WORLD_SIZE": "4", "RANK": "2", "LOCAL_RANK": "2"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(RuntimeError, match=r"started 4 processes(.|\n)*glassgrad launch -n 4 script.py"):
        dist.init_process_group()
    assert not dist.is_initialized()


@pytest.mark.usefixtures("alone")
def test_what_the_wrapper_refuses() -> None:
    net = gg.nn.parallel.DistributedDataParallel(gg.nn.Linear(1, 1))
    with pytest.raises(RuntimeError, match="DistributedSampler"):
        net.join()
    with pytest.raises(RuntimeError, match=r"register_hook"):
        net.register_comm_hook(None, lambda state, bucket: bucket)


@pytest.mark.usefixtures("alone")
def test_one_process_is_rank_0_of_1_and_keeps_its_values() -> None:
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "mpi")
    x = gg.tensor([1.0, 3.0])
    for call in (dist.all_reduce, lambda y: dist.broadcast(y, 0), lambda y: dist.reduce(y, 0)):
        assert call(x) is None
    out = [gg.zeros(2)]
    dist.all_gather(out, x)
    part = gg.zeros(2)
    dist.reduce_scatter(part, [x], dist.ReduceOp.AVG)
    given = gg.zeros(2)
    dist.scatter(given, [x])
    found: list[object] = [None]
    dist.all_gather_object(found, {"x": 1})
    assert found == [{"x": 1}]
    work = dist.barrier(async_op=True)
    assert work is not None
    assert work.wait()
    for one in (x, out[0], part, given):
        np.testing.assert_array_equal(one.array, [1.0, 3.0])
    with pytest.raises(ValueError, match=r"dst=0, expected a rank of the group: there is no other"):
        dist.send(x, 0)
