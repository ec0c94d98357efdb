"""Checkpoints: complete or absent, and an incomplete one is never accepted."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

import glassgrad as gg
from glassgrad.data.atomic import write_atomically
from glassgrad.errors import InputError
from glassgrad.train.kept.checkpoint import load_checkpoint, pack, save_checkpoint, unpack


def sample_arrays() -> dict[str, Any]:
    generator = np.random.default_rng(0)
    return {
        "weight": generator.standard_normal((3, 4)).astype(np.float32),
        "transposed": np.arange(6.0).reshape(2, 3).T,
        "step": np.array(7, dtype=np.int64),
        "empty": np.zeros((0, 2), dtype=np.float32),
    }


REST = {"step": 12, "float": 0.1 + 0.2, "big": 2**100, "nested": [{"a": None}, "é\n"]}


def test_arrays_and_the_rest_come_back_as_they_were(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "c.safetensors", sample_arrays(), REST)
    arrays, rest = load_checkpoint(tmp_path / "c.safetensors")
    assert rest == REST
    assert arrays.keys() == sample_arrays().keys()
    for name, array in sample_arrays().items():
        assert arrays[name].dtype == array.dtype
        assert arrays[name].shape == array.shape
        np.testing.assert_array_equal(arrays[name], array)


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save_checkpoint(tmp_path / name, sample_arrays(), REST)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_pytorch_reads_the_arrays(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="reads the file with PyTorch")
    from safetensors.torch import load_file

    save_checkpoint(tmp_path / "c.safetensors", sample_arrays(), REST)
    np.testing.assert_array_equal(load_file(tmp_path / "c.safetensors")["weight"].numpy(), sample_arrays()["weight"])


def test_a_file_cut_short_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    save_checkpoint(path, sample_arrays(), REST)
    content = path.read_bytes()
    for length in (*range(0, len(content), 7), len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(InputError, match="damaged"):
            load_checkpoint(path)


def test_one_changed_bit_anywhere_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    save_checkpoint(path, {"weight": sample_arrays()["weight"]}, REST)
    content = path.read_bytes()
    arrays, rest = load_checkpoint(path)
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1
        path.write_bytes(changed)
        try:
            found, other = load_checkpoint(path)
        except InputError:
            continue
        # A space of the header may become another one that means the same.
        np.testing.assert_array_equal(found["weight"], arrays["weight"], err_msg=str(place))
        assert other == rest


def test_a_safetensors_file_of_someone_else_is_refused(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    save_file({"a": np.ones(3)}, tmp_path / "foreign.safetensors")
    with pytest.raises(InputError, match="not written by glassgrad"):
        load_checkpoint(tmp_path / "foreign.safetensors")
    save_file({"a": np.ones(3)}, tmp_path / "foreign.safetensors", metadata={"glassgrad": "[1"})
    with pytest.raises(InputError, match="damaged"):
        load_checkpoint(tmp_path / "foreign.safetensors")


@pytest.mark.parametrize("call", ["write", "fsync", "rename"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(*((Path, "replace") if call == "rename" else (os, call)), full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: write(descriptor, content[:3]))
    write_atomically(tmp_path / "file", b"0123456789")
    assert (tmp_path / "file").read_bytes() == b"0123456789"


def test_nested_state_comes_back(tmp_path: Path) -> None:
    state = {
        "state": {0: {"momentum_buffer": np.ones(3), "step": 4}, 1: {}},
        "param_groups": [{"lr": 0.1, "params": [0, 1], "nesterov": False, "betas": (0.9, 0.999)}],
        "scalar": np.float32(0.5),
    }
    arrays: dict[str, Any] = {}
    packed = pack(state, "optimizer", arrays)
    save_checkpoint(tmp_path / "c", arrays, {"optimizer": packed})
    arrays, rest = load_checkpoint(tmp_path / "c")
    back = unpack(rest["optimizer"], arrays)
    np.testing.assert_array_equal(back["state"][0].pop("momentum_buffer"), np.ones(3))
    assert back["state"] == {0: {"step": 4}, 1: {}}
    assert back["param_groups"] == [{"lr": 0.1, "params": [0, 1], "nesterov": False, "betas": [0.9, 0.999]}]
    assert back["scalar"] == 0.5


def test_tensors_come_back_as_tensors() -> None:
    arrays: dict[str, Any] = {}
    packed = json.loads(json.dumps(pack({"mean": gg.tensor([1.0, 2.0], requires_grad=True)}, "own", arrays)))
    assert list(arrays) == ["own.mean"]
    back = unpack(packed, arrays)["mean"]
    assert type(back) is gg.Tensor
    assert back.tolist() == [1.0, 2.0]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.safetensors cannot be read \(No such file or directory\)"):
        load_checkpoint(tmp_path / "none.safetensors")


def test_the_checksum_of_a_content_stays_what_it_was(tmp_path: Path) -> None:
    """Files of earlier versions are read: the order of the description's keys is not part of it."""
    save_checkpoint(tmp_path / "c", {"b": np.arange(3.0), "a": np.ones((1, 2), np.float32)}, {"z": 1, "a": {"c": [2]}})
    with safe_open(tmp_path / "c", framework="numpy") as file:
        entry = json.loads(file.metadata()["glassgrad"])
    assert entry["sha256"] == "69cee9aeac85ea013947c1711d1ff9565d7f77c65ace708cf4dcfeae720a964f"
