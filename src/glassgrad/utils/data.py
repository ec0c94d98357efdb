"""Data sets, samplers and the loader with PyTorch's names: `torch.utils.data`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from glassgrad import errors
from glassgrad.base import documents, provenance
from glassgrad.engine.random import Generator
from glassgrad.engine.tensor import Tensor, make
from glassgrad.engine.tensors import creation
from glassgrad.errors.missing import getter, lister
from glassgrad.ops.shape import stack
from glassgrad.utils.datasets import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    random_split,
)
from glassgrad.utils.distributed_sampler import DistributedSampler
from glassgrad.utils.sampling import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    new_seed,
)
from glassgrad.utils.workers import WorkerInfo, Workers, get_worker_info

_ENDLESS = 1 << 24  # longer samplers draw the order of an epoch on demand
_BLOCK = 32_768  # examples that the fast path gathers at once, so that a batch costs a slice


# --- putting examples together --------------------------------------------------------------------


def default_collate(batch: list[Any]) -> Any:
    """Make one batch from a list of examples: tensors and numbers are stacked, also within tuples and dictionaries.

    Python floats become float32, unlike float64 in PyTorch, as everywhere in this library.

    Example:
        >>> import glassgrad as gg
        >>> from glassgrad.utils.data import default_collate
        >>> default_collate([(gg.zeros(2), 1), (gg.ones(2), 3)])
        [tensor([[0., 0.],
                [1., 1.]]), tensor([1, 3])]
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(batch)
    if isinstance(first, np.ndarray | np.generic):
        shapes = {np.shape(one) for one in batch}
        if len(shapes) > 1:
            raise errors.COLLATE_SHAPES(given=", ".join(map(str, sorted(shapes))))
        return make(np.stack([np.asarray(one) for one in batch]), None, False)
    if isinstance(first, bool | int | float):
        return creation.tensor(batch)
    if isinstance(first, str | bytes):
        return batch
    if isinstance(first, Mapping):
        return {key: default_collate([one[key] for one in batch]) for key in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(list(part)) for part in zip(*batch, strict=True)))
    if isinstance(first, list | tuple):
        if len({len(one) for one in batch}) > 1:
            raise errors.COLLATE_LENGTHS(given=sorted({len(one) for one in batch}))
        return [default_collate(list(part)) for part in zip(*batch, strict=True)]
    raise errors.COLLATE_KIND(kind=type(first).__name__)


class _Fetch:
    """indices -> batch; a class, so that it can be sent to another process."""

    def __init__(self, dataset: Any, collate: Callable[[list[Any]], Any] | None) -> None:
        self.dataset = dataset
        self.collate = collate

    def __call__(self, indices: Any) -> Any:
        if self.collate is None:
            return self.dataset[indices]
        several = getattr(self.dataset, "__getitems__", None)
        examples = several(indices) if several is not None else [self.dataset[index] for index in indices]
        return self.collate(examples)


# --- the loader -----------------------------------------------------------------------------------


class DataLoader:
    """Batches of a data set, shuffled or in order.

    A `TensorDataset` (or a `Subset` of one) is sliced without Python code per example. The order of an epoch
    depends only on the generator's state at its beginning, not on workers. With `load_state_dict`, a loader continues
    after the batch at which `state_dict()` was taken.

    Args:
        dataset: a map-style data set, or an `IterableDataset`.
        batch_size: examples per batch; None for single examples without collating.
        shuffle: whether every epoch has a new random order.
        sampler: an iterable of indices that defines the order instead.
        batch_sampler: an iterable of lists of indices that defines the batches instead.
        num_workers: processes that load ahead; 0 loads in this process.
        collate_fn: makes a batch from a list of examples; `default_collate` by default.
        pin_memory: accepted for compatibility with PyTorch.
        drop_last: leave out an incomplete last batch.
        timeout: accepted for compatibility with PyTorch.
        worker_init_fn: called in each process with its number.
        multiprocessing_context: the start method of processes.
        generator: the random generator that draws the order; the global one by default.
        prefetch_factor: batches that each process loads ahead, 2 by default; only with `num_workers`.
        persistent_workers: keep the processes for the next epoch; only with `num_workers`.

    Raises:
        ArgumentError: an empty data set, a loader that would give no batch, or mutually exclusive options.

    Example:
        >>> import glassgrad as gg
        >>> data = gg.utils.data.TensorDataset(gg.arange(5), gg.arange(5) * 10)
        >>> [y.tolist() for x, y in gg.utils.data.DataLoader(data, batch_size=2)]
        [[0, 10], [20, 30], [40]]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        self.dataset = dataset
        self.batch_size = batch_size if batch_sampler is None else None
        self.drop_last = drop_last
        self.num_workers = num_workers
        self.collate_fn = collate_fn
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.prefetch_factor = prefetch_factor or 2
        self.persistent_workers = persistent_workers
        self._iterable = isinstance(dataset, IterableDataset)
        self._check_workers(prefetch_factor)
        self._check(shuffle, sampler, batch_sampler, batch_size)
        self.sampler: Any = sampler
        if sampler is None and not self._iterable:
            kind: Any = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
            self.sampler = kind
        self.batch_sampler: Any = batch_sampler
        if batch_sampler is None and batch_size is not None and not self._iterable:
            self.batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)
        self._source = _tensors_of(dataset) if self._can_slice(batch_sampler) else None
        self._pool: Workers | None = None
        self._seed: int | None = None
        self._given = 0
        self._resume: dict[str, Any] | None = None

    def _check_workers(self, prefetch_factor: int | None) -> None:
        where = provenance.here()
        if self.num_workers < 0:
            raise errors.BAD_OPTION(
                owner="DataLoader", name="num_workers", given=self.num_workers, expected="0 or more", where=where
            )
        if self.num_workers == 0 and (prefetch_factor is not None or self.persistent_workers):
            name = "prefetch_factor" if prefetch_factor is not None else "persistent_workers"
            raise errors.LOADER_OPTIONS(first="num_workers=0", second=name, where=where)

    def _check(self, shuffle: object, sampler: Any, batch_sampler: Any, batch_size: int | None) -> None:
        where = provenance.here(2)
        if batch_size is not None and batch_size < 1:
            raise errors.BAD_OPTION(
                owner="DataLoader", name="batch_size", given=batch_size, expected="at least 1, or None", where=where
            )
        if sampler is not None and shuffle:
            raise errors.LOADER_OPTIONS(first="sampler", second="shuffle", where=where)
        if batch_sampler is not None and (sampler is not None or shuffle or self.drop_last or batch_size != 1):
            raise errors.LOADER_OPTIONS(
                first="batch_sampler", second="batch_size, shuffle, sampler or drop_last", where=where
            )
        if self._iterable:
            if shuffle or sampler is not None or batch_sampler is not None:
                raise errors.LOADER_OPTIONS(first="an IterableDataset", second="an order", where=where)
            return
        count = len(self.dataset)
        if count == 0:
            raise errors.NO_EXAMPLES(owner="DataLoader", where=where)
        if self.drop_last and sampler is None and batch_size is not None and batch_size > count:
            raise errors.BATCH_TOO_LARGE(batch=batch_size, count=count, where=where)

    def _can_slice(self, batch_sampler: Any) -> bool:
        return (
            self.collate_fn is None
            and self.num_workers == 0
            and batch_sampler is None
            and self.batch_size is not None
            and not self._is_endless()
        )

    def _is_endless(self) -> bool:
        """Tell whether a sampler has too many indices to draw them in advance."""
        return type(self.sampler) is RandomSampler and self.sampler.num_samples > _ENDLESS

    def __len__(self) -> int:
        if self._iterable:
            count = len(self.dataset)
            if self.batch_size is None:
                return count
            return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)

    # --- an epoch ---------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        resumed, self._resume = self._resume, None
        self._seed = resumed["seed"] if resumed is not None else new_seed(self.generator)
        self._given = skipped = resumed["given"] if resumed is not None else 0
        batches = self._sliced(skipped) if self._source is not None else self._collated(skipped)
        for batch in batches:
            self._given += 1
            yield batch
        self._given = 0
        self._seed = None

    def _order(self) -> Any:
        """Return the indices of this epoch."""
        if type(self.sampler) is RandomSampler:
            return self.sampler.indices(self._seed or 0)
        return np.arange(len(self.sampler)) if type(self.sampler) is SequentialSampler else np.asarray([*self.sampler])

    def _sliced(self, skipped: int) -> Iterator[list[Tensor]]:
        """Gather a block of examples at a time and yield slices of it."""
        assert self._source is not None
        assert self.batch_size is not None
        tensors, chosen = self._source
        order = self._order() if chosen is None else chosen[self._order()]
        size = self.batch_size
        count = len(order) // size * size if self.drop_last else len(order)
        block = max(1, _BLOCK // size) * size
        plain = type(self.sampler) is SequentialSampler and chosen is None
        for start in range(skipped * size, count, block):
            stop = min(start + block, count)
            if plain:
                gathered = [tensor.array[start:stop] for tensor in tensors]
            else:
                places = order[start:stop]
                gathered = [tensor.array.take(places, axis=0) for tensor in tensors]
            for at in range(0, stop - start, size):
                yield [make(array[at : at + size], None, False) for array in gathered]

    def _batches(self) -> Iterator[Any]:
        """Yield the indices of each batch, or single ones without batches."""
        if self._iterable or self.batch_sampler is None:
            return iter(() if self._iterable else [int(index) for index in self._order()])
        own = type(self.batch_sampler) is BatchSampler and self.batch_sampler.sampler is self.sampler
        if own and self._is_endless():
            order = self.sampler.stream(self._seed or 0)
            return iter(BatchSampler(order, self.batch_sampler.batch_size, self.drop_last))
        if own:
            return iter(BatchSampler(self._order().tolist(), self.batch_sampler.batch_size, self.drop_last))
        return iter(self.batch_sampler)

    def _collated(self, skipped: int) -> Iterator[Any]:
        single = self.batch_size is None and self.batch_sampler is None
        collate = self.collate_fn or (None if single else default_collate)
        if self._iterable:
            return itertools.islice(self._streamed(collate), skipped, None)
        batches = itertools.islice(self._batches(), skipped, None)
        fetch = _Fetch(self.dataset, None if single else collate)
        if self.num_workers:
            return self._from_workers(fetch, batches, skipped)
        convert = self.collate_fn if single else None
        return (fetch(batch) if convert is None else convert(fetch(batch)) for batch in batches)

    def _streamed(self, collate: Callable[[list[Any]], Any] | None) -> Iterator[Any]:
        examples = iter(self.dataset)
        if self.batch_size is None:
            return examples if collate is None else (collate(example) for example in examples)
        return self._grouped(examples, collate or default_collate, self.batch_size)

    def _grouped(self, examples: Iterator[Any], collate: Callable[[list[Any]], Any], size: int) -> Iterator[Any]:
        while batch := list(itertools.islice(examples, size)):
            if len(batch) == size or not self.drop_last:
                yield collate(batch)

    def _from_workers(self, fetch: _Fetch, batches: Iterator[Any], skipped: int) -> Iterator[Any]:
        pool = self._pool or Workers(
            fetch, self.dataset, self.num_workers, self.multiprocessing_context, self.worker_init_fn
        )
        self._pool = pool
        try:
            yield from pool.run((self._seed or 0) + skipped, batches, self.num_workers * self.prefetch_factor)
        finally:
            if not self.persistent_workers:
                pool.close()
                self._pool = None

    # --- resuming within an epoch -----------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the position in this epoch: its seed and the number of batches yielded."""
        return {"seed": self._seed, "given": self._given}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Make the next iteration continue at the position of `state_dict()`."""
        self._resume = dict(state_dict) if state_dict["seed"] is not None else None


def _tensors_of(dataset: Any) -> tuple[tuple[Tensor, ...], Any] | None:
    """Return the tensors of a data set in memory, and the selected rows (None: all)."""
    if type(dataset) is TensorDataset:
        return dataset.tensors, None
    if type(dataset) is Subset:
        inner = _tensors_of(dataset.dataset)
        if inner is not None:
            rows = np.asarray(dataset.indices)
            return inner[0], rows if inner[1] is None else inner[1][rows]
    return None


# PyTorch's names that this library lacks, and their replacements.
_INSTEAD = {
    "distributed": "use utils.data.DistributedSampler, which is here.",
    "StackDataset": "TensorDataset, or a Dataset whose __getitem__ returns a tuple.",
    "ChainDataset": "itertools.chain in an IterableDataset.",
    "dataloader": "everything in it is here: utils.data.DataLoader.",
    "dataset": "everything in it is here: utils.data.Dataset.",
}

if not TYPE_CHECKING:
    __getattr__ = getter(__name__, _INSTEAD)

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "WorkerInfo",
    "default_collate",
    "get_worker_info",
    "random_split",
]
__dir__ = lister(__name__)
documents.complete_all(__name__, globals())
