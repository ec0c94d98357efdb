"""Map-style and iterable data sets."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.random import Generator
from glassgrad.engine.tensor import Tensor
from glassgrad.ops.core import Array
from glassgrad.utils.sampling import new_seed


class Dataset:
    """Base of map-style data sets: ``dataset[i]`` is an example and ``len(dataset)`` their number.

    Example:
        >>> from glassgrad.utils.data import DataLoader, Dataset
        >>> class Squares(Dataset):
        ...     def __len__(self) -> int:
        ...         return 4
        ...     def __getitem__(self, index: int) -> int:
        ...         return index**2
        >>> [batch.tolist() for batch in DataLoader(Squares(), batch_size=2)]
        [[0, 1], [4, 9]]
    """

    def __class_getitem__(cls, _kind: object) -> type[Dataset]:
        return cls  # Dataset[...] in annotations

    def __getitem__(self, index: Any) -> Any:
        raise errors.DATASET_INCOMPLETE(owner=type(self).__name__, method="__getitem__(self, index)")

    def __add__(self, other: Dataset) -> Dataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Base of data sets that can only be iterated.

    Example:
        >>> from glassgrad.utils.data import DataLoader, IterableDataset
        >>> class Count(IterableDataset):
        ...     def __iter__(self):
        ...         return iter(range(3))
        >>> [batch.tolist() for batch in DataLoader(Count(), batch_size=2)]
        [[0, 1], [2]]
    """

    def __iter__(self) -> Iterator[Any]:
        raise errors.DATASET_INCOMPLETE(owner=type(self).__name__, method="__iter__(self)")

    def __add__(self, other: Any) -> ChainDataset:
        return ChainDataset([self, other])


class ChainDataset(IterableDataset):
    """The concatenation of several iterable data sets.

    Example:
        >>> from glassgrad.utils.data import ChainDataset
        >>> list(ChainDataset([range(2), "ab"]))
        [0, 1, 'a', 'b']
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for one in self.datasets:
            yield from one

    def __len__(self) -> int:
        return sum(map(len, self.datasets))


class TensorDataset(Dataset):
    """Rows of tensors (or arrays) of equal length.

    Example:
        >>> import glassgrad as gg
        >>> data = gg.utils.data.TensorDataset(gg.arange(4), gg.arange(4) * 10)
        >>> data[2]
        (tensor(2), tensor(20))
    """

    def __init__(self, *tensors: Array) -> None:
        sizes = [len(tensor) for tensor in tensors]
        if not tensors or len(set(sizes)) > 1:
            raise errors.LENGTHS_DIFFER(owner="TensorDataset", given=sizes, where=provenance.here())
        self.tensors = tuple(tensor if isinstance(tensor, Tensor) else Tensor(np.asarray(tensor)) for tensor in tensors)

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple([tensor[index] for tensor in self.tensors])

    def __len__(self) -> int:
        return len(self.tensors[0])


class Subset(Dataset):
    """The examples of a data set at given indices.

    Example:
        >>> from glassgrad.utils.data import Subset
        >>> list(Subset("abcd", [3, 0]))
        ['d', 'a']
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset):
    """The concatenation of several map-style data sets.

    Example:
        >>> from glassgrad.utils.data import ConcatDataset
        >>> both = ConcatDataset([["a", "b"], ["c"]])
        >>> len(both), both[2]
        (3, 'c')
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        self.cumulative_sizes = np.cumsum([len(one) for one in self.datasets]).tolist()

    def __getitem__(self, index: int) -> Any:
        size = len(self)
        if not -size <= index < size:
            raise IndexError(f"index {index} is out of range for {size} examples")
        index %= size
        at = bisect_right(self.cumulative_sizes, index)
        return self.datasets[at][index - (self.cumulative_sizes[at - 1] if at else 0)]

    def __len__(self) -> int:
        return int(self.cumulative_sizes[-1]) if self.cumulative_sizes else 0


def random_split(dataset: Any, lengths: Sequence[float], generator: Generator | None = None) -> list[Subset]:
    """Divide a data set at random into subsets of given sizes, or of given shares that add up to 1.

    Example:
        >>> from glassgrad.utils.data import random_split
        >>> [len(part) for part in random_split(range(10), [0.8, 0.2])]
        [8, 2]
    """
    count = len(dataset)
    sizes = [int(n) for n in lengths]
    if any(isinstance(n, float) for n in lengths) and abs(sum(lengths) - 1) < 1e-6:
        sizes = [int(count * share) for share in lengths]
        for at in range(count - sum(sizes)):  # distribute the remainder of rounding
            sizes[at % len(sizes)] += 1
    if sum(sizes) != count:
        raise errors.SPLIT_SIZES(given=list(lengths), total=sum(sizes), count=count, where=provenance.here())
    order = np.random.Generator(np.random.PCG64(new_seed(generator))).permutation(count)
    parts = np.split(order, np.cumsum(sizes)[:-1])
    return [Subset(dataset, part.tolist()) for part in parts]


__all__ = ["ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "Subset", "TensorDataset", "random_split"]
