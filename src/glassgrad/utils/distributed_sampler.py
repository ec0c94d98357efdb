"""The sampler that gives each rank its part of a data set."""

from __future__ import annotations

from collections.abc import Iterator, Sized

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.distributed import world
from glassgrad.ops.core import bad_option
from glassgrad.utils.sampling import Sampler


class DistributedSampler(Sampler):
    """Every `num_replicas`-th index of one order, starting at `rank`: each rank's part of a data set.

    As in PyTorch, all ranks get equally many indices. To this end a few from the beginning of the order are repeated
    or, with `drop_last`, a few from its end are left out. With ``pad=False`` each index belongs to exactly one rank and
    none is left out. Some ranks then have one more, so use it for evaluation, where ranks need not make equally many
    steps.

    The order depends only on `seed` and the epoch. Call ``set_epoch`` before each epoch, or all epochs have the same
    order.

    Args:
        dataset: the data set; only its length is used.
        num_replicas: the number of ranks; by default all of the process group.
        rank: the rank of this process; by default its own.
        shuffle: whether the order is random.
        seed: the same on all ranks.
        drop_last: leave out the remaining samples instead of repeating some.
        pad: repeat or leave out samples so that all ranks get equally many.

    Raises:
        ArgumentError: `rank` is not below `num_replicas`.

    Example:
        >>> from glassgrad.utils.data import DistributedSampler
        >>> [list(DistributedSampler("abcde", 2, rank, shuffle=False)) for rank in (0, 1)]
        [[0, 2, 4], [1, 3, 0]]
        >>> [list(DistributedSampler("abcde", 2, rank, shuffle=False, pad=False)) for rank in (0, 1)]
        [[0, 2, 4], [1, 3]]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        *,
        pad: bool = True,
    ) -> None:
        self.dataset = dataset
        self.num_replicas = world.get_world_size() if num_replicas is None else num_replicas
        self.rank = world.get_rank() if rank is None else rank
        if not 0 <= self.rank < self.num_replicas:
            raise bad_option("DistributedSampler", "rank", self.rank, f"a rank below num_replicas={self.num_replicas}")
        if not pad and drop_last:
            raise errors.LOADER_OPTIONS(first="pad=False", second="drop_last", where=provenance.here())
        self.epoch = 0
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.pad = pad

    @property
    def num_samples(self) -> int:
        """The number of indices of this rank."""
        size, ranks = len(self.dataset), self.num_replicas
        if not self.pad:
            return len(range(self.rank, size, ranks))
        return size // ranks if self.drop_last else -(-size // ranks)

    @property
    def total_size(self) -> int:
        """The number of indices of all ranks together."""
        return self.num_samples * self.num_replicas if self.pad else len(self.dataset)

    def order(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return the common order of all ranks in this epoch, repeated or cut to `total_size`."""
        size = len(self.dataset)
        if self.shuffle:
            found = np.random.Generator(np.random.PCG64([self.seed, self.epoch])).permutation(size)
        else:
            found = np.arange(size)
        return np.resize(found, self.total_size) if size else found

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of an epoch."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        return iter(self.order()[self.rank :: self.num_replicas].tolist())

    def __len__(self) -> int:
        return self.num_samples


__all__ = ["DistributedSampler"]
