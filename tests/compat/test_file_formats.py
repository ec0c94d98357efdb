"""`load` recognises formats by their structure, not by the first byte, and names damaged files with any content."""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.errors import GlassgradError


def with_header(header: bytes, data: bytes, length: int) -> bytes:
    """Return a safetensors file whose header is filled up with spaces to a length."""
    assert len(header) <= length
    return length.to_bytes(8, "little") + header.ljust(length) + data


HEADER = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
DATA = np.array([1.5, -2.0], "<f4").tobytes()


@pytest.mark.parametrize(
    "high", [0, 1, *(pytest.param(high, marks=pytest.mark.slow) for high in (2, 3, 4, 5)), 0x4B, 300, 70_000]
)
def test_every_low_byte_of_the_header_length(high: int) -> None:
    for low in range(256) if high < 70_000 else (0x50, 0x7F, 0x80, 0x81):
        if 256 * high + low < len(HEADER):
            continue
        content = with_header(HEADER, DATA, 256 * high + low)
        assert gg.load(io.BytesIO(content))["w"].tolist() == [1.5, -2.0], low
        for cut in (8, 9, 40, len(content) - 9, len(content) - 1):
            with pytest.raises(ValueError, match="cut short or not a safetensors"):
                gg.load(io.BytesIO(content[:cut]))


def test_names_of_all_lengths_come_back() -> None:
    for length in range(1, 300):
        for thing in ({"n" * length: gg.ones(2)}, {"n" * length: gg.ones(2), "step": 3}):
            file = io.BytesIO()
            gg.save(thing, file)
            file.seek(0)
            assert gg.load(file)["n" * length].tolist() == [1, 1]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_are_named(protocol: int) -> None:
    things = [None, 1, "text", {"w": list(range(300))}, [1.5] * 5, b"x" * 256, {"a": "b" * 1000}, (), 2**70, set()]
    for thing in things:
        with pytest.raises(ValueError, match="is a pickle of PyTorch"):
            gg.load(io.BytesIO(pickle.dumps(thing, protocol)))


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("protocol", range(6))
def test_files_of_pytorch_are_named(protocol: int, zipped: bool) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch writes the foreign file")
    file = io.BytesIO()
    try:
        torch.save({"w": torch.ones(2)}, file, pickle_protocol=protocol, _use_new_zipfile_serialization=zipped)
    except (RuntimeError, pickle.PicklingError):
        pytest.skip("PyTorch does not write this")
    file.seek(0)
    with pytest.raises(ValueError, match="is a pickle of PyTorch"):
        gg.load(file)


def test_a_zip_archive_of_something_else_is_no_pickle() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("w.npy", b"numbers")
    file.seek(0)
    with pytest.raises(ValueError, match="it is a zip archive"):
        gg.load(file)


# --- crafted ones -------------------------------------------------------------------------------------


def described(text: str | bytes) -> io.BytesIO:
    """Return a whole safetensors file with a description of our own kind."""
    from safetensors.numpy import save

    return io.BytesIO(save({"w": np.ones(2, np.float32)}, metadata={"glassgrad": text}))


def deep(opening: str, closing: str, depth: int, inside: str = "1") -> str:
    return opening * depth + inside + closing * depth


DESCRIPTIONS = {
    "deep lists": deep("[", "]", 100_000),
    "deep lists, open": "[" * 100_000,
    "deep objects": deep('{"a":', "}", 100_000),
    "deep lists of ours": deep('{"is": "list", "parts": [', "]}", 30_000),
    "deep dictionaries": deep('{"is": "dict", "parts": [["a", ', "]]}", 5_000),
    "huge number": '{"is": "list", "parts": [' + "9" * 10_000 + "]}",
    "unknown kind": '{"is": "code", "parts": []}',
    "kind of no text": '{"is": [], "parts": []}',
    "no kind": "{}",
    "no parts": '{"is": "dict"}',
    "parts a number": '{"is": "dict", "parts": 5}',
    "parts null": '{"is": "list", "parts": null}',
    "a pair of three": '{"is": "dict", "parts": [[1, 2, 3]]}',
    "a list as a key": '{"is": "dict", "parts": [[[], 2]]}',
    "no such array": '{"is": "tensor", "name": "v"}',
    "a list as a name": '{"is": "tensor", "name": []}',
    "a bare list": "[1, 2]",
    "a list within": '{"is": "list", "parts": [[1]]}',
    "no JSON": "import os",
    "cut": '{"is": "dict", "par',
}


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_crafted_descriptions_are_damaged(name: str) -> None:
    with pytest.raises(ValueError, match="cut short or not a safetensors"):
        gg.load(described(DESCRIPTIONS[name]))


def test_what_is_nested_reasonably_comes_back() -> None:
    found = gg.load(described(deep('{"is": "list", "parts": [', "]}", 100)))
    for _ in range(100):
        (found,) = found
    assert found == 1


def test_random_changes_end_in_a_value_or_a_named_error() -> None:
    file = io.BytesIO()
    gg.save({"model": {"w": gg.ones(4), "b": gg.zeros(2)}, "list": [1, (2, None)], "step": 1}, file)
    whole = file.getvalue()
    draw = random.Random(5)
    structure = whole.index(b"glassgrad")
    taken = 0
    for _ in range(3000):
        content = bytearray(whole)
        for _ in range(draw.randrange(1, 4)):
            content[draw.randrange(structure if draw.random() < 0.8 else 0, len(whole) - 24)] = draw.randrange(256)
        with contextlib.suppress(GlassgradError):
            gg.load(io.BytesIO(bytes(content)))
            taken += 1
    assert taken < 1500


class _Endless(dict[str, Any]):
    """A mapping that holds itself."""


def test_what_holds_itself_is_refused(tmp_path: Path) -> None:
    around: list[Any] = []
    around.append(around)
    mapping = _Endless()
    mapping["again"] = mapping
    far: Any = 1
    for _ in range(100_000):
        far = [far]
    for thing in (around, mapping, far, {"model": {"w": gg.ones(2)}, "x": around}):
        with pytest.raises(TypeError, match="nested too deeply, or holds itself"):
            gg.save(thing, tmp_path / "file")
    assert not list(tmp_path.iterdir())
