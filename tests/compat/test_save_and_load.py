"""`save` and `load`: the loaded values, other libraries that read the file, and refused objects."""

from __future__ import annotations

import io
import json
import signal
import sys
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn, optim


def test_a_training_goes_on_from_a_file(tmp_path: Path) -> None:
    def made() -> tuple[Any, Any, Any]:
        gg.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
        optimizer = optim.Adam(model.parameters(), lr=0.1)
        return model, optimizer, optim.lr_scheduler.StepLR(optimizer, 2)

    def steps(model: Any, optimizer: Any, schedule: Any, count: int) -> list[float]:
        losses = []
        for at in range(count):
            optimizer.zero_grad()
            loss = (model(gg.tensor(np.eye(3, dtype=np.float32) * (1 + at))) ** 2).mean()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        return losses

    first = made()
    steps(*first, 4)
    names = ("model", "optimizer", "schedule")
    gg.save(
        {name: part.state_dict() for name, part in zip(names, first, strict=True)} | {"step": 4}, tmp_path / "run.pt"
    )
    second = made()
    saved = gg.load(tmp_path / "run.pt", map_location="cpu", weights_only=True)
    for name, part in zip(names, second, strict=True):
        part.load_state_dict(saved[name])
    assert saved["step"] == 4
    assert steps(*second, 3) == steps(*first, 3)
    assert [path.name for path in tmp_path.iterdir()] == ["run.pt"]


def test_pytorch_reads_weights_and_we_read_its(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the other library")
    from safetensors.torch import load_file, save_file

    model = nn.Linear(3, 2)
    gg.save(model.state_dict(), tmp_path / "ours.safetensors")
    theirs = torch.nn.Linear(3, 2)
    theirs.load_state_dict(load_file(tmp_path / "ours.safetensors"))
    np.testing.assert_array_equal(theirs.weight.detach().numpy(), model.weight.detach().numpy())
    save_file({name: value * 2 for name, value in theirs.state_dict().items()}, tmp_path / "theirs.safetensors")
    model.load_state_dict(gg.load(tmp_path / "theirs.safetensors"))
    np.testing.assert_array_equal(model.weight.detach().numpy(), 2 * theirs.weight.detach().numpy())


def test_structure_comes_back() -> None:
    thing = {
        "tensors": [gg.arange(3), (gg.ones(2, requires_grad=True), gg.tensor(1.5))], 7: {"a": None, "b": "text"},
        "array": np.eye(2), "scalar": np.float64(0.25), "flags": (True, False), "empty": gg.zeros(0, 3),
        "ordered": OrderedDict(x=1), "turned": gg.arange(6).reshape(2, 3).T, "inf": float("inf"),
    }  # fmt: skip  # a table
    file = io.BytesIO()
    gg.save(thing, file)
    file.seek(0)
    back = gg.load(file)
    assert back["tensors"][0].tolist() == [0, 1, 2]
    assert isinstance(back["tensors"][1], tuple)
    assert back["tensors"][1][0].requires_grad
    assert back["tensors"][1][1].shape == ()
    assert back[7] == {"a": None, "b": "text"}
    assert isinstance(back["array"], np.ndarray)
    assert back["scalar"] == 0.25
    assert back["flags"] == (True, False)
    assert back["empty"].shape == (0, 3)
    assert back["ordered"] == {"x": 1}
    assert back["turned"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert back["inf"] == float("inf")
    assert gg.load(_written(gg.ones(2))).tolist() == [1, 1]


def _written(thing: Any) -> io.BytesIO:
    file = io.BytesIO()
    gg.save(thing, file)
    file.seek(0)
    return file


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        ({"model": nn.Linear(2, 2)}, "model is a Linear"),
        ({"a": {"b": [1, lambda: 0]}}, "a.b.1 is a function"),
        ({(1, 2): 3}, "key of type tuple"),
    ],
)
def test_what_is_no_data_is_refused_with_its_place(thing: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(TypeError, match=message):
        gg.save(thing, path)
    assert path.read_bytes() == b"old"


def test_foreign_and_damaged_files_are_named(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch writes the foreign file")
    torch.save({"w": torch.ones(2)}, tmp_path / "pickle.pt")
    with pytest.raises(ValueError, match="is a pickle of PyTorch"):
        gg.load(tmp_path / "pickle.pt")
    gg.save({"w": gg.ones(100)}, tmp_path / "cut")
    (tmp_path / "cut").write_bytes((tmp_path / "cut").read_bytes()[:-7])
    with pytest.raises(ValueError, match="cut short or not a safetensors"):
        gg.load(tmp_path / "cut")
    (tmp_path / "text").write_text("hello, this is no weights file")
    with pytest.raises(ValueError, match="cut short or not a safetensors"):
        gg.load(tmp_path / "text")
    with pytest.raises(FileNotFoundError):
        gg.load(tmp_path / "missing")


# --- bad files, full disks ------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 3, 8, 20, 60, -1])
def test_a_file_cut_anywhere_is_named(length: int, tmp_path: Path) -> None:
    path = tmp_path / "weights"
    gg.save({"model": {"w": gg.ones(4), "b": gg.zeros(2)}, "step": 1}, path)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(ValueError, match=r"weights is cut short or not a safetensors"):
        gg.load(path)


def test_files_of_other_kinds_are_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", w=np.ones(3))
    np.save(tmp_path / "a.npy", np.ones(3))
    (tmp_path / "a.json").write_text('{"w": 1}')
    gg.save({"model": {"w": gg.ones(1)}, "x": 1}, tmp_path / "whole")
    (tmp_path / "a.changed").write_bytes((tmp_path / "whole").read_bytes().replace(b"parts", b"pasts"))
    for kind, reason in (("npz", "numpy.savez"), ("npy", "header"), ("json", "header"), ("changed", "parts")):
        with pytest.raises(ValueError, match=rf"(?i)a\.{kind} is cut short or not a safetensors file.*{reason}"):
            gg.load(tmp_path / f"a.{kind}")


def test_bfloat16_is_read_and_other_types_are_refused(tmp_path: Path) -> None:
    def file(kind: str, data: bytes) -> Path:
        header = json.dumps({"w": {"dtype": kind, "shape": [2], "data_offsets": [0, len(data)]}}).encode()
        path = tmp_path / kind
        path.write_bytes(len(header).to_bytes(8, "little") + header + data)
        return path

    back = gg.load(file("BF16", (np.array([1.5, -2.0], np.float32).view(np.uint32) >> 16).astype("<u2").tobytes()))
    assert back["w"].dtype == gg.bfloat16
    assert back["w"].tolist() == [1.5, -2.0]
    with pytest.raises(ValueError, match="F8_E4M3, which NumPy lacks"):
        gg.load(file("F8_E4M3", b"\0\0"))


def test_two_tensors_with_one_path_are_two() -> None:
    back = gg.load(_written({"a.b": gg.ones(2), "a": {"b": gg.zeros(3)}, 1: gg.ones(1), "1": gg.zeros(1)}))
    assert back["a.b"].tolist() == [1, 1]
    assert back["a"]["b"].tolist() == [0, 0, 0]
    assert back[1].tolist() == [1]
    assert back["1"].tolist() == [0]


@pytest.fixture
def small_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Files of this process cannot grow beyond 4 KiB."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # Python 3.11 would leave half a file, and read it next time
    resource = pytest.importorskip("resource", reason="the limit is POSIX's")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.usefixtures("small_disk")
def test_a_full_disk_leaves_the_file_before(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    gg.save({"w": gg.ones(4)}, path)
    with pytest.raises(OSError, match=r"weights could not be written: .* The previous file is unchanged"):
        gg.save({"w": gg.zeros(100_000)}, path)
    assert gg.load(path)["w"].tolist() == [1, 1, 1, 1]
    assert [one.name for one in tmp_path.iterdir()] == ["weights"]


def test_a_device_is_written_to_and_not_replaced() -> None:
    full = Path("/dev/full")
    if not full.is_char_device():
        pytest.skip("no /dev/full here")
    with pytest.raises(gg.errors.FileError, match="No space left"):
        gg.save({"w": gg.ones(4)}, full)
    assert full.is_char_device()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"no/weights could not be written: No such file or directory"):
        gg.save({"w": gg.ones(4)}, tmp_path / "no" / "weights")
