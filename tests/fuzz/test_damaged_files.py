"""Truncated files, and files with one changed byte: every reader raises an error, and no model is partly loaded."""

from __future__ import annotations

import gzip
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, nn
from glassgrad.compile.kept import files
from glassgrad.data.idx import read_idx
from glassgrad.data.own_digits import read_digits
from glassgrad.data.pictures import read_digit
from glassgrad.doctor.monitor import GradientMonitor
from glassgrad.train import Checkpoint, load_weights
from glassgrad.train.kept.weights import write_weights

PLACES = 120  # of each kind; all of a smaller file
KEY = "5" * 64


def model() -> Any:
    gg.manual_seed(2)
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))


class Kind(NamedTuple):
    """How a file is written and read, whether a changed byte is noticed, and how many at its end do nothing."""

    write: Callable[[Path], object]
    read: Callable[[Path], Any]
    summed: bool = True
    spare: int = 0


def nested(path: Path) -> None:
    gg.save({"model": dict(model().state_dict()), "step": 3, "names": ["a", (1.5, None)]}, path)


class Trained:
    """A model with an optimizer, which a file is read into."""

    def __init__(self) -> None:
        self.model = model()
        self.optimizer = gg.optim.Adam(self.model.parameters(), lr=0.1)

    def step(self) -> None:
        self.model(gg.ones(4, 2) * gg.arange(4.0)[:, None]).sum().backward()
        self.optimizer.step()

    def checkpoint(self, path: Path) -> Checkpoint:
        return Checkpoint(path, model=self.model, optimizer=self.optimizer)

    def state(self) -> Any:
        return [nn.utils.parameters_to_vector(self.model.parameters()).tolist(), repr(self.optimizer.state_dict())]


def trained(path: Path) -> None:
    one = Trained()
    one.step()
    one.checkpoint(path).save(values=1)


def resumed(path: Path) -> Any:
    one = Trained()
    before = one.state()
    try:
        return one.checkpoint(path).load()
    except Exception:
        assert one.state() == before
        raise


def weighed(path: Path) -> Any:
    one = Trained()
    before = one.state()
    try:
        return load_weights(one.model, path)
    except Exception:
        assert one.state() == before
        raise


def watched(path: Path) -> None:
    one = Trained()
    with GradientMonitor(one.model, path=path) as monitor:
        one.step()
        monitor.after_step()


def packed(path: Path) -> None:
    path.write_bytes(files._packed(KEY, {"layout": [1, 2]}, b"code"))


def unpacked(path: Path) -> Any:
    if (found := files._unpacked(KEY, path.read_bytes())) is None:
        raise errors.InputError("refused")  # and the step is compiled again
    return found


def exported(path: Path) -> None:
    pytest.importorskip("onnx", reason="it writes and reads the file")
    gg.onnx.export(model().eval(), (gg.ones(4, 2),), path)


def computed(path: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gg.onnx.load(path)


def digits(path: Path) -> None:
    np.savez_compressed(path.with_suffix(".npz"), images=np.arange(200.0).reshape(50, 2, 2), labels=np.arange(50) % 10)
    path.with_suffix(".npz").rename(path)


def read_as(name: str, reader: Callable[[Path], Any]) -> Callable[[Path], Any]:
    """Read a file under a name that says what it is."""

    def read(path: Path) -> Any:
        named = path.with_name(name)
        named.write_bytes(path.read_bytes())
        return reader(named)

    return read


def drawn(path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="it writes and reads pictures")
    image.fromarray((np.arange(144) % 251).astype(np.uint8).reshape(12, 12)).save(path, "png")


def array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.arange(144.0).reshape(12, 12))


IDX = bytes([0, 0, 8, 2, 0, 0, 0, 3, 0, 0, 0, 4, *range(12)])
KINDS = {
    "state": Kind(lambda path: gg.save(model().state_dict(), path), gg.load, summed=False),
    "nested state": Kind(nested, gg.load, summed=False),
    "checkpoint": Kind(trained, resumed),
    "weights": Kind(lambda path: write_weights(path, model().state_dict(), {"a": 1}), weighed),
    "record": Kind(watched, GradientMonitor.load, summed=False),
    "idx": Kind(lambda path: path.write_bytes(IDX), lambda path: read_idx(path, 2), summed=False),
    "idx, gzipped": Kind(
        lambda path: path.write_bytes(gzip.compress(IDX)), lambda path: read_idx(path, 2), summed=False
    ),
    "onnx": Kind(exported, computed, summed=False),
    "digits": Kind(digits, read_as("own.npz", read_digits), summed=False),
    "picture": Kind(drawn, read_as("own.png", lambda path: read_digit(path, (8, 8), 16)), summed=False, spare=20),
    "array": Kind(array, read_as("own.npy", lambda path: read_digit(path, (8, 8), 16)), summed=False),
    "compiled step": Kind(packed, unpacked),
}


def outcome(kind: Kind, path: Path) -> str:
    """Read a file; return what the error says, "" if there is none. Any error but ours fails the test."""
    try:
        kind.read(path)
    except (errors.GlassgradError, errors.InputError) as error:
        return str(error) or "nothing was said"
    return ""


@pytest.mark.parametrize("name", KINDS)
def test_a_file_that_is_cut_short_is_refused(name: str, tmp_path: Path) -> None:
    kind, path = KINDS[name], tmp_path / "file"
    kind.write(path)
    assert outcome(kind, path) == ""
    whole = path.read_bytes()
    draw = random.Random(7)
    most = len(whole) - kind.spare
    for length in sorted({0, 1, most - 1, *draw.sample(range(most), min(PLACES, most))}):
        path.write_bytes(whole[:length])
        assert outcome(kind, path), f"{length} of {len(whole)} bytes were read"


@pytest.mark.parametrize("name", KINDS)
def test_a_changed_byte_ends_in_a_message_or_in_another_number(name: str, tmp_path: Path) -> None:
    kind, path = KINDS[name], tmp_path / "file"
    kind.write(path)
    whole = path.read_bytes()
    draw = random.Random(8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for place in draw.sample(range(len(whole)), min(PLACES, len(whole))):
            changed = bytearray(whole)
            changed[place] ^= 1 << draw.randrange(8)
            path.write_bytes(changed)
            assert outcome(kind, path) or not kind.summed, f"byte {place} was changed"
