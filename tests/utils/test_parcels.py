"""Batches that workers pass on in shared memory: the same values as without it, and no memory reused too early."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.engine.memory import shared
from glassgrad.utils import parcels
from glassgrad.utils.data import DataLoader, Dataset
from tests.utils.test_processes import FILES, mapped

pytestmark = pytest.mark.skipif(not shared.is_possible(), reason="processes cannot share memory on this system")


class Rows(Dataset):
    """Rows of one number each, within a dictionary and a tuple."""

    def __init__(self, count: int, size: int) -> None:
        self.count, self.size = count, size

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        row = np.full(self.size, index, np.float32)
        return {"row": row, "pair": (gg.tensor([index]), f"row {index}"), "turned": gg.tensor(row).reshape(-1, 2).T}


def parts(batch: Any) -> list[Any]:
    return [batch["row"], batch["turned"], batch["pair"][0]]


@pytest.mark.parametrize("size", [4, 20_000])
def test_batches_are_those_of_this_process(size: int) -> None:
    data = Rows(10, size)
    for ours, theirs in zip(DataLoader(data, 3, num_workers=2), DataLoader(data, 3), strict=True):
        for a, b in zip(parts(ours), parts(theirs), strict=True):
            assert a.dtype == b.dtype
            assert gg.equal(a, b)
        assert ours["pair"][1] == theirs["pair"][1]
        assert ours["row"].is_shared() == (size > 4)
        ours["row"].add_(1)  # it can be written to, like any batch
    assert type(ours) is type(theirs)


def test_memory_is_used_again_and_never_while_somebody_reads_it() -> None:
    loader = DataLoader(Rows(60, 20_000), 2, num_workers=1)
    places = set()
    for number, batch in enumerate(loader):
        places.add(batch["row"].data_ptr())
        assert batch["row"].tolist()[0][0] == 2 * number
    assert len(places) <= 5  # what is loaded ahead, and the batch in use
    kept = list(loader)
    assert len({batch["row"].data_ptr() for batch in kept}) == 30
    assert [batch["row"][0, 0].item() for batch in kept] == list(range(0, 60, 2))
    assert sum(batch["row"].is_shared() for batch in kept) == parcels._MOST


def test_a_view_holds_the_memory_of_its_batch() -> None:
    loader = DataLoader(Rows(60, 20_000), 2, num_workers=1)
    views = [batch["row"][1, :3] for batch in loader]
    assert [view.tolist() for view in views] == [[2 * number + 1] * 3 for number in range(30)]


def test_a_forked_process_may_read_on() -> None:
    """The worker does not fill memory again that a process forked meanwhile reads as well."""
    context = multiprocessing.get_context("fork")
    go, result = context.Queue(), context.Queue()

    def read(row: Any) -> None:
        go.get()
        result.put(row.numpy().max().item())

    batches = iter(DataLoader(Rows(60, 20_000), 2, num_workers=1))
    batch = next(batches)
    process = context.Process(target=read, args=(batch["row"],))
    process.start()
    del batch
    for _ in batches:
        pass
    go.put(None)
    assert result.get(timeout=60) == 1
    process.join(60)


def sender_and_receiver() -> tuple[parcels.Sender, Callable[[Any], Any]]:
    sender, receiver = parcels.Sender(), parcels.Receiver()
    return sender, receiver.opened


def test_slots_grow() -> None:
    sender, opened = sender_and_receiver()
    for size in (40_000, 80_000, 50_000):
        sent = gg.full((size,), size)
        parcel = sender.packed([sent, "text"])
        assert isinstance(parcel, parcels.Parcel)
        assert (parcel.segment is None) == (size == 50_000)
        got = opened(parcel)
        assert gg.equal(got[0], sent)
        assert got[1] == "text"
        assert sender.slots[0][0] == 1
        del got
        assert sender.slots[0][0] == 0
    assert len(sender.slots) == 1


def test_what_takes_the_pipe() -> None:
    sender, opened = sender_and_receiver()
    function = lambda: 1
    assert sender.packed(function) is function
    assert opened(function) is function
    for batch in (gg.zeros(5), [gg.ones(2), "text"], None):
        letter = sender.packed(batch)
        assert isinstance(letter, parcels.Letter)
        assert str(opened(letter)) == str(batch)
    held = [opened(sender.packed(gg.zeros(40_000))) for _ in range(parcels._MOST)]
    last = opened(sender.packed(gg.ones(40_000)))
    assert last.sum() == 40_000
    assert not last.is_shared()
    last.add_(1)
    assert all(x.is_shared() for x in held)


@pytest.mark.skipif(not FILES.is_dir(), reason="open files are counted in /proc")
def test_loaders_leave_no_files_open() -> None:
    before = mapped()
    for _ in range(2):
        for _ in DataLoader(Rows(12, 20_000), 2, num_workers=2):
            pass
    del _
    assert mapped() == before
