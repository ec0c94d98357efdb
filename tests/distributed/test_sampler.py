"""DistributedSampler: PyTorch's indices, and the mode without lost or repeated examples."""

from __future__ import annotations

import itertools

import pytest

from glassgrad.utils.data import DistributedSampler


@pytest.mark.parametrize(("size", "ranks", "drop"), [*itertools.product((1, 5, 7, 12), (1, 2, 3, 4), (False, True))])
def test_the_indices_are_pytorchs(size: int, ranks: int, drop: bool) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch's sampler is the oracle")
    for rank in range(ranks):
        given = (range(size), ranks, rank)
        ours = DistributedSampler(*given, shuffle=False, drop_last=drop)
        theirs = torch.utils.data.DistributedSampler(*given, shuffle=False, drop_last=drop)
        if drop and size < ranks:  # PyTorch's asserts there
            assert list(ours) == []
            continue
        assert list(ours) == list(theirs)
        assert (len(ours), ours.total_size) == (len(theirs), theirs.total_size)


@pytest.mark.parametrize(("size", "ranks"), [*itertools.product((0, 1, 5, 12), (1, 3, 4))])
def test_without_padding_every_index_comes_once(size: int, ranks: int) -> None:
    for shuffle in (False, True):
        parts = [list(DistributedSampler(range(size), ranks, rank, shuffle, 3, pad=False)) for rank in range(ranks)]
        assert sorted(itertools.chain(*parts)) == list(range(size))
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_the_order_depends_on_seed_and_epoch_alone() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        sampler = DistributedSampler(range(50), 2, 1, seed=seed)
        sampler.set_epoch(epoch)
        return list(sampler)

    assert order(1, 2) == order(1, 2)
    assert len({tuple(order(*given)) for given in ((0, 0), (0, 1), (1, 0))}) == 3
    both = [*DistributedSampler(range(50), 2, 0, seed=1), *DistributedSampler(range(50), 2, 1, seed=1)]
    assert sorted(both) == list(range(50))


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match=r"(?s)rank=2.*below num_replicas=2"):
        DistributedSampler(range(4), 2, 2)
    with pytest.raises(ValueError, match="pad=False excludes drop_last"):
        DistributedSampler(range(4), 2, 0, drop_last=True, pad=False)
