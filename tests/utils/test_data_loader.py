"""The loader: its batches, their order, resuming, and refused arguments."""

from __future__ import annotations

import time
from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.utils import data
from glassgrad.utils.data import DataLoader, Dataset, TensorDataset

Point = namedtuple("Point", "x y")  # noqa: PYI024 - a class made by the function is what users have


class Squares(Dataset):
    """Numbers and their squares, with a random number beside them."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __getitem__(self, index: int) -> tuple[int, float, float]:
        if not 0 <= index < self.count:
            raise IndexError(index)
        return index, float(index * index), float(np.random.rand())  # noqa: NPY002 - what users write

    def __len__(self) -> int:
        return self.count


def memory(count: int = 10) -> TensorDataset:
    return TensorDataset(gg.arange(count), gg.arange(count).float().reshape(count, 1) * 2)


def listed(loader: Any) -> list[Any]:
    return [[part.tolist() for part in batch] for batch in loader]


# --- what it gives ----------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"batch_size": 3}, {"batch_size": 4, "drop_last": True}, {"batch_size": 99}])
def test_slices_are_what_examples_put_together_give(options: dict[str, Any]) -> None:
    fast = DataLoader(memory(), **options)
    slow = DataLoader(memory(), collate_fn=data.default_collate, **options)
    assert fast._source is not None
    assert slow._source is None
    assert listed(fast) == listed(slow)
    assert len(fast) == len(slow) == len(listed(fast))


def test_the_same_as_pytorch_in_order() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
    inputs, targets = np.arange(22).reshape(11, 2), np.arange(11) * 0.5
    ours = DataLoader(TensorDataset(gg.tensor(inputs), gg.tensor(targets)), batch_size=4)
    tools = torch.utils.data
    theirs = tools.DataLoader(tools.TensorDataset(torch.tensor(inputs), torch.tensor(targets)), batch_size=4)
    for a, b in zip(ours, theirs, strict=True):
        assert isinstance(a, type(b))
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x.numpy(), y.numpy())
            assert x.numpy().dtype == y.numpy().dtype


@pytest.mark.parametrize("kind", ["fast", "slow", "subset", "workers"])
def test_an_epoch_is_a_permutation_that_depends_on_the_seed_alone(kind: str) -> None:
    def epochs(seed: int) -> list[list[int]]:
        dataset: Any = memory(23)
        options: dict[str, Any] = {}
        if kind == "subset":
            dataset = data.Subset(memory(46), range(0, 46, 2))
        elif kind == "slow":
            options["collate_fn"] = data.default_collate
        elif kind == "workers":
            options["num_workers"] = 2
        generator = gg.Generator().manual_seed(seed)
        loader = DataLoader(dataset, batch_size=5, shuffle=True, generator=generator, **options)
        return [[n for batch in loader for n in batch[0].tolist()] for _ in range(2)]

    first, second = epochs(1)
    step = 2 if kind == "subset" else 1
    assert sorted(first) == sorted(second) == list(range(0, 23 * step, step))
    assert first != second
    assert epochs(1) == [first, second]
    assert epochs(2)[0] != first
    reference = DataLoader(memory(23), batch_size=5, shuffle=True, generator=gg.Generator().manual_seed(1))
    order = [n * step for batch in reference for n in batch[0].tolist()]
    assert order == first


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_give_the_same_batches_whatever_their_number(workers: int) -> None:
    def run(count: int) -> list[Any]:
        generator = gg.Generator().manual_seed(3)
        options: dict[str, Any] = {"multiprocessing_context": "fork", "prefetch_factor": 3} if count else {}
        return listed(DataLoader(Squares(17), 4, shuffle=True, num_workers=count, generator=generator, **options))

    found = run(workers)
    assert found == run(3)
    assert [row[:2] for row in found] == [row[:2] for row in run(0)]  # random numbers within examples aside


def test_an_error_in_a_worker_reaches_the_loop() -> None:
    class Broken(Squares):
        def __getitem__(self, index: int) -> Any:
            if index == 5:
                raise RuntimeError("example 5 is broken")
            return index

    with pytest.raises(RuntimeError, match="example 5 is broken"):
        list(DataLoader(Broken(8), 2, num_workers=1, multiprocessing_context="fork"))


def test_worker_info_is_known_in_workers_only() -> None:
    class Asking(Dataset):
        def __getitem__(self, index: int) -> Any:
            info = data.get_worker_info()
            return -1 if info is None else info.id + 10 * info.num_workers

        def __len__(self) -> int:
            return 4

    assert data.get_worker_info() is None
    options: dict[str, Any] = {"num_workers": 2, "multiprocessing_context": "fork", "persistent_workers": True}
    loader = DataLoader(Asking(), 1, **options)
    assert {n for batch in loader for n in batch.tolist()} <= {20, 21}
    assert {n for batch in loader for n in batch.tolist()} <= {20, 21}
    assert loader._pool is not None
    loader._pool.close()


@pytest.mark.parametrize("kind", ["fast", "slow", "workers"])
@pytest.mark.parametrize("at", [0, 1, 3])
def test_a_loader_goes_on_within_an_epoch(kind: str, at: int) -> None:
    options: dict[str, Any] = {"batch_size": 3, "shuffle": True}
    if kind != "fast":
        options["collate_fn"] = data.default_collate
    if kind == "workers":
        options |= {"num_workers": 1, "multiprocessing_context": "fork"}
    gg.manual_seed(5)
    loader = DataLoader(memory(), **options)
    batches: Iterator[Any] = iter(loader)
    given = [next(batches) for _ in range(at)]
    if not at:
        next(batches)
    state = loader.state_dict() if at else {**loader.state_dict(), "given": 0}
    again = DataLoader(memory(), **options)
    again.load_state_dict(state)
    rest = listed(again)
    gg.manual_seed(5)
    assert [[part.tolist() for part in batch] for batch in given] + rest == listed(DataLoader(memory(), **options))


def test_iterable_data_sets_samplers_and_single_examples() -> None:
    class Counting(data.IterableDataset):
        def __iter__(self) -> Iterator[int]:
            return iter(range(5))

    assert [b.tolist() for b in DataLoader(Counting(), 2)] == [[0, 1], [2, 3], [4]]
    assert [b.tolist() for b in DataLoader(Counting(), 2, drop_last=True)] == [[0, 1], [2, 3]]
    assert list(DataLoader(Counting(), None)) == [0, 1, 2, 3, 4]
    assert [b[0].tolist() for b in DataLoader(memory(), 2, sampler=[3, 1, 2])] == [[3, 1], [2]]
    assert [b[0].tolist() for b in DataLoader(memory(), batch_sampler=[[3, 1], [2], [0, 0]])] == [[3, 1], [2], [0, 0]]
    assert [x.item() for x, _ in DataLoader(memory(3), None)] == [0, 1, 2]
    both = memory(2) + memory(3)
    assert [x.item() for x, _ in DataLoader(both, None)] == [0, 1, 0, 1, 2]
    assert both[-1][0].item() == 2


def test_collating_keeps_the_structure() -> None:
    examples = [
        {"image": np.ones(2, np.float32) * n, "name": str(n), "point": Point(n, 0.5), "flags": [True, n]}
        for n in (1, 2)
    ]
    batch = data.default_collate(examples)
    assert batch["image"].tolist() == [[1, 1], [2, 2]]
    assert batch["name"] == ["1", "2"]
    assert isinstance(batch["point"], Point)
    assert batch["point"].y.dtype == np.float32
    assert [part.tolist() for part in batch["flags"]] == [[True, True], [1, 2]]


def test_samplers() -> None:
    gg.manual_seed(0)
    assert sorted(data.SubsetRandomSampler([4, 7, 9])) == [4, 7, 9]
    drawn = list(data.WeightedRandomSampler([0.0, 1.0, 3.0], 4000))
    assert drawn.count(0) == 0
    assert drawn.count(2) / 4000 == pytest.approx(0.75, abs=0.03)
    assert len(set(data.RandomSampler(range(5), replacement=True, num_samples=100))) <= 5
    assert sorted(data.RandomSampler(range(3), num_samples=7))[:2] == [0, 0]
    assert list(data.BatchSampler(data.SequentialSampler(range(5)), 2, False)) == [[0, 1], [2, 3], [4]]


def test_random_split() -> None:
    gg.manual_seed(0)
    parts = data.random_split(range(10), [0.5, 0.25, 0.25])
    assert [len(part) for part in parts] == [6, 2, 2]  # the remainder goes to the first ones, as in PyTorch
    assert sorted(n for part in parts for n in part) == list(range(10))
    again = data.random_split(range(10), [7, 3], gg.Generator().manual_seed(1))
    assert list(again[0]) == list(data.random_split(range(10), [7, 3], gg.Generator().manual_seed(1))[0])


# --- what it refuses --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DataLoader(memory(0)), "without examples"),
        (lambda: DataLoader(memory(3), 5, drop_last=True), "gives no batch from 3"),
        (lambda: DataLoader(memory(), 0), "batch_size=0"),
        (lambda: DataLoader(memory(), shuffle=True, sampler=[1]), "sampler excludes shuffle"),
        (lambda: DataLoader(memory(), 2, batch_sampler=[[1]]), "batch_sampler excludes"),
        (lambda: TensorDataset(gg.zeros(2), gg.zeros(3)), r"lengths \[2, 3\]"),
        (lambda: data.random_split(range(10), [3, 3]), "makes 6 examples, the data set has 10"),
        (lambda: data.default_collate([{1, 2}]), "examples of type set"),
        (lambda: data.default_collate([(1, 2), (1,)]), "different numbers of parts"),
        (lambda: data.default_collate([np.ones((4, 3)), np.ones(4)]), r"different shapes: \(4,\), \(4, 3\)"),
        (lambda: Dataset()[0], "does not define __getitem__"),
        (lambda: data.WeightedRandomSampler([0.0, 0.0], 3), "not all 0"),
        (lambda: gg.utils.tensorflow, "has no 'tensorflow'"),
    ],
)
def test_bad_input_is_named(make: Callable[[], Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError, AttributeError, gg.errors.GlassgradError), match=message):
        make()


def test_a_batch_from_memory_costs_a_few_microseconds() -> None:
    """The least of several: a busy machine can only make it slower."""
    dataset = TensorDataset(gg.zeros(32_000, 3), gg.zeros(32_000))
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    best = float("inf")
    for _ in range(7):
        start = time.process_time()
        count = sum(1 for _ in loader)
        best = min(best, (time.process_time() - start) / count)
    assert best < 12e-6, f"{best * 1e6:.1f} microseconds"
