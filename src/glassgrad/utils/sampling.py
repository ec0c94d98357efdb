"""Samplers: the order in which a loader takes the examples of a data set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, cast

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.random import Generator, default_generator
from glassgrad.ops.core import bad_option

_BLOCK = 65_536  # indices drawn at once by a random sampler


def new_seed(generator: Generator | None = None) -> int:
    """Draw a seed, which determines the order of an epoch."""
    return int((generator or default_generator).rng.integers(1 << 62))


class Sampler:
    """Base of samplers: iteration yields indices, `len` is their number.

    Example:
        >>> from glassgrad.utils.data import DataLoader, Sampler
        >>> class Backwards(Sampler):
        ...     def __init__(self, count):
        ...         self.count = count
        ...     def __iter__(self):
        ...         return iter(range(self.count - 1, -1, -1))
        ...     def __len__(self):
        ...         return self.count
        >>> [int(x) for x in DataLoader([1.0, 2.0, 3.0], sampler=Backwards(3))]
        [3, 2, 1]
    """

    def __iter__(self) -> Iterator[Any]:
        raise errors.DATASET_INCOMPLETE(owner=type(self).__name__, method="__iter__(self)")


class SequentialSampler(Sampler):
    """The indices in their order.

    Example:
        >>> from glassgrad.utils.data import SequentialSampler
        >>> list(SequentialSampler("abc"))
        [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """The indices in random order, or `num_samples` drawn with replacement.

    Example:
        >>> from glassgrad.utils.data import RandomSampler
        >>> sorted(RandomSampler("abc"))
        [0, 1, 2]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self.num_samples = len(data_source) if num_samples is None else num_samples
        self.generator = generator
        if self.num_samples <= 0:
            raise errors.NO_EXAMPLES(owner="RandomSampler", where=provenance.here())

    def indices(self, seed: int) -> np.ndarray:
        """Return the order for a seed."""
        rng = np.random.Generator(np.random.PCG64(seed))
        size = len(self.data_source)
        if self.replacement:
            return rng.integers(size, size=self.num_samples)
        rounds = -(-self.num_samples // size)
        order = rng.permutation(size) if rounds == 1 else np.concatenate([rng.permutation(size) for _ in range(rounds)])
        return order[: self.num_samples]

    def stream(self, seed: int) -> Iterator[int]:
        """Yield the same order in blocks, for samplers of up to 10**10 indices of which few are used."""
        rng = np.random.Generator(np.random.PCG64(seed))
        size, left = len(self.data_source), self.num_samples
        while left > 0:
            count = min(left, _BLOCK)
            block = rng.integers(size, size=count) if self.replacement else rng.permutation(size)[:left]
            yield from block.tolist()
            left -= len(block)

    def __iter__(self) -> Iterator[int]:
        return self.stream(new_seed(self.generator))

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Given indices, in random order.

    Example:
        >>> from glassgrad.utils.data import SubsetRandomSampler
        >>> sorted(SubsetRandomSampler([2, 5, 7]))
        [2, 5, 7]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        rng = np.random.Generator(np.random.PCG64(new_seed(self.generator)))
        return iter([self.indices[at] for at in rng.permutation(len(self.indices))])

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """`num_samples` indices, drawn with the given weights (which need not add up to 1).

    Example:
        >>> from glassgrad.utils.data import WeightedRandomSampler
        >>> list(WeightedRandomSampler([0.0, 1.0], 3))
        [1, 1, 1]
    """

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Generator | None = None
    ) -> None:
        array = np.asarray(getattr(weights, "array", weights), np.float64)
        if array.ndim != 1 or array.size == 0 or (array < 0).any() or array.sum() <= 0:
            raise bad_option(
                "WeightedRandomSampler",
                "weights",
                f"{array.size} numbers",
                "one number for each example, none negative, not all 0",
            )
        if not replacement and num_samples > np.count_nonzero(array):
            raise bad_option(
                "WeightedRandomSampler",
                "num_samples",
                num_samples,
                f"at most {np.count_nonzero(array)} without replacement, one for each weight that is not 0",
            )
        self.weights = array / array.sum()
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        rng = np.random.Generator(np.random.PCG64(new_seed(self.generator)))
        drawn = rng.choice(len(self.weights), self.num_samples, replace=self.replacement, p=self.weights)
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of `batch_size` indices of another sampler.

    Example:
        >>> from glassgrad.utils.data import BatchSampler, SequentialSampler
        >>> list(BatchSampler(SequentialSampler(range(5)), 2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        count = len(cast("Sized", self.sampler))  # it raises for samplers without a length
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]
