"""`Checkpoint` in a custom loop: stopped within an epoch and resumed, it ends like an uninterrupted run."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.errors import InputError, RunError
from glassgrad.nn import functional as F
from glassgrad.train import Checkpoint
from glassgrad.train.kept.checkpoint import save_checkpoint

from .fitting import assert_same, dead_process, loader, net, weights

pytestmark = pytest.mark.usefixtures("numpy_target")  # test_engines.py trains in native code


def train(path: Path, stop: int | None = None, own: bool = False) -> Any:
    """A plain loop over three epochs; `stop` ends it after so many steps."""
    gg.manual_seed(1)
    model = net()
    optimizer = optim.Adam(model.parameters(), lr=0.02)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, 24)
    batches = loader(generator=gg.Generator().manual_seed(8)) if own else loader()
    step = gg.compile(lambda x, y: made(model, optimizer, x, y))
    checkpoint = Checkpoint(path, model=model, optimizer=optimizer, schedule=schedule, batches=batches)
    values = checkpoint.load() or {"epoch": 0, "step": 0}
    done = values["step"]
    for epoch in range(values["epoch"], 3):
        for x, y in batches:
            step(x, y)
            schedule.step()
            done += 1
            checkpoint.save(epoch=epoch, step=done)
            if done == stop:
                return model
    return model


def made(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


@pytest.mark.parametrize("own", [False, True])
def test_a_plain_loop_goes_on_bit_for_bit(own: bool, tmp_path: Path) -> None:
    whole = train(tmp_path / "whole", own=own)
    for stop in (1, 8, 13, 24):
        train(tmp_path / str(stop), stop, own)
        assert_same(train(tmp_path / str(stop), own=own), whole)


def test_another_model_or_other_parts_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "very" / "deep" / "last.safetensors"
    Checkpoint(path, model=net()).save()
    other = nn.Sequential(nn.Linear(4, 9))
    before = weights(other)
    with pytest.raises(InputError, match=r"Unexpected: 3\.bias, 3\.weight\. Wrong shape: 0\.weight \(8, 4\)"):
        Checkpoint(path, model=other).load()
    np.testing.assert_array_equal(weights(other)["0.weight"], before["0.weight"])
    with pytest.raises(InputError, match="holds model, not model, optimizer; give Checkpoint the parts"):
        Checkpoint(path, model=net(), optimizer=optim.SGD(net().parameters(), lr=1.0)).load()
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match="is damaged: it is cut short"):
        Checkpoint(path, model=net()).load()


def test_a_full_disk_keeps_the_file_from_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = Checkpoint(tmp_path / "last.safetensors", model=net())
    checkpoint.save(step=1)

    def full(descriptor: int, content: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(RunError, match=r"\.safetensors: No space left on device; last\.safetensors from before is"):
        checkpoint.save(step=2)
    monkeypatch.undo()
    assert checkpoint.load() == {"step": 1}


def test_a_disk_that_gives_no_reason_is_told_by_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("the tape is torn")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(RunError, match=r"last\.safetensors: the tape is torn$"):
        Checkpoint(tmp_path / "last.safetensors", model=net()).save()


@pytest.mark.parametrize("history", [{2: 0.5, 10: 0.25}, {1: "a", "b": 2, None: 3}, {True: 1, 0.5: 2}])
def test_values_with_keys_that_are_no_text_come_back_under_text(tmp_path: Path, history: dict[Any, Any]) -> None:
    checkpoint = Checkpoint(tmp_path / "last.safetensors", model=net())
    checkpoint.save(history=history)
    assert checkpoint.load() == {"history": json.loads(json.dumps(history))}


def test_a_file_of_another_kind_of_ours_is_told_apart(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "last.safetensors", {}, {"config": {}})
    with pytest.raises(InputError, match="it was not written by Checkpoint"):
        Checkpoint(tmp_path / "last.safetensors", model=net()).load()


def test_what_a_killed_save_left_is_swept_before_loading(tmp_path: Path) -> None:
    """A process that has ended wrote it; a file of another checkpoint beside it is not touched."""
    checkpoint = Checkpoint(tmp_path / "last.safetensors", model=net())
    checkpoint.save()
    ended = dead_process()
    mine, other = (tmp_path / f".{name}.{ended}.tmp" for name in ("last.safetensors", "best.safetensors"))
    for path in (mine, other):
        path.write_bytes(b"half")
        os.utime(path, (1, 1))
    checkpoint.load()
    assert (mine.exists(), other.exists()) == (False, True)
