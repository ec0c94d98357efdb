"""idx files: reading them, and every way in which one can be wrong."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glassgrad.data import EpochBatches, read_idx, read_mnist, shipped_digits
from glassgrad.data.batches import shifted
from glassgrad.data.idx import read_pair
from glassgrad.errors import InputError


def idx(array: Any, kind: int = 8) -> bytes:
    return bytes([0, 0, kind, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def made_up(count: int, seed: int = 0, side: int = 6) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    images = generator.integers(0, 256, (count, side, side), dtype=np.uint8)
    return images, generator.integers(0, 10, count, dtype=np.uint8)


def write_part(folder: Path, part: str, count: int, suffix: str = "", side: int = 6) -> tuple[Any, Any]:
    images, labels = made_up(count, side=side)
    pack = gzip.compress if suffix else bytes
    (folder / f"{part}-images-idx3-ubyte{suffix}").write_bytes(pack(idx(images)))
    (folder / f"{part}-labels-idx1-ubyte{suffix}").write_bytes(pack(idx(labels)))
    return images, labels


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_arrays_come_back_whatever_the_file_is_called(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    images, labels = made_up(7)
    (tmp_path / "a").write_bytes(pack(idx(images)))
    (tmp_path / "b.gz").write_bytes(pack(idx(labels)))
    np.testing.assert_array_equal(read_idx(tmp_path / "a", 3), images)
    np.testing.assert_array_equal(read_idx(tmp_path / "b.gz", 1), labels)


IMAGES = idx(made_up(3)[0])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "begins with nothing, expected 00 00 08 03"),
        (b"\x89PNG\r\n\x1a\n", "begins with 89 50 4e 47, expected 00 00 08 03"),
        (idx(made_up(3)[1]), "begins with 00 00 08 01, expected 00 00 08 03"),
        (idx(made_up(3)[0], kind=13), "begins with 00 00 0d 03"),
        (IMAGES[:9], "is cut short: 9 bytes, expected a header of 16"),
        (IMAGES[:-1], "is cut short: 123 bytes, expected 124 for 3 x 6 x 6"),
        (IMAGES + b"x", "is too long: 125 bytes, expected 124 for 3 x 6 x 6"),
        (gzip.compress(IMAGES)[:-9], "is gzipped but cannot be unpacked: it is cut short"),
        (b"\x1f\x8bnonsense", "is gzipped but cannot be unpacked"),
        (gzip.compress(IMAGES)[:-8] + bytes(8), "is gzipped but cannot be unpacked: CRC check failed"),
        (b"\0\0\x08\x03" + b"\xff" * 12, "is cut short: 16 bytes, expected"),
    ],
)
def test_files_that_cannot_be_read_as_images(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "images"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_idx(path, 3)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*nothing: No such file"):
        read_idx(tmp_path / "nothing", 3)


def test_labels_have_to_match(tmp_path: Path) -> None:
    images, labels = tmp_path / "images", tmp_path / "labels"
    images.write_bytes(IMAGES)
    labels.write_bytes(idx(np.zeros(4, np.uint8)))
    with pytest.raises(InputError, match=r"3 images but .*labels 4 labels"):
        read_pair(images, labels)
    labels.write_bytes(idx(np.array([1, 10, 2], np.uint8)))
    with pytest.raises(InputError, match="label 10 at place 1; expected 0 to 9"):
        read_pair(images, labels)
    images.write_bytes(idx(np.zeros((0, 6, 6), np.uint8)))
    labels.write_bytes(idx(np.zeros(0, np.uint8)))
    with pytest.raises(InputError, match="holds no images"):
        read_pair(images, labels)


def test_all_four_files(tmp_path: Path) -> None:
    train, test = write_part(tmp_path, "train", 30, ".gz"), write_part(tmp_path, "t10k", 12)
    data = read_mnist(tmp_path)
    for found, made in ((data.train_images, train[0]), (data.train_labels, train[1]), (data.test_images, test[0])):
        np.testing.assert_array_equal(found, made)
    assert data.size == (6, 6)


@pytest.mark.parametrize("part", ["train", "t10k"])
def test_one_part_is_cut_nine_to_one(tmp_path: Path, part: str) -> None:
    images, labels = write_part(tmp_path, part, 50)
    data = read_mnist(tmp_path)
    np.testing.assert_array_equal(np.concatenate([data.train_images, data.test_images]), images)
    np.testing.assert_array_equal(data.test_labels, labels[45:])


def test_folders_without_mnist(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such directory; expected a directory with train-images"):
        read_mnist(tmp_path / "missing")
    with pytest.raises(InputError, match="it has no train-images-idx3-ubyte and no t10k-images-idx3-ubyte"):
        read_mnist(tmp_path)
    write_part(tmp_path, "train", 12)
    (tmp_path / "train-labels-idx1-ubyte").unlink()
    with pytest.raises(InputError, match="it has train-images-idx3-ubyte but no train-labels-idx1-ubyte"):
        read_mnist(tmp_path)


def test_parts_of_other_sizes_and_too_few(tmp_path: Path) -> None:
    write_part(tmp_path, "train", 9)
    with pytest.raises(InputError, match="holds 9 images; at least 10"):
        read_mnist(tmp_path)
    write_part(tmp_path, "t10k", 12, side=7)
    with pytest.raises(InputError, match=r"differ in size: \(6, 6\) to train on, \(7, 7\) to test on"):
        read_mnist(tmp_path)


def test_the_shipped_digits_are_those_of_scikit_learn() -> None:
    data = shipped_digits()
    # Facts of the published set: how many of each digit, and the sum of all pixels that scikit-learn's table has.
    labels = np.concatenate([data.train_labels, data.test_labels])
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    pixels = np.concatenate([data.train_images, data.test_images])
    assert (int(pixels.max()), int(pixels.astype(np.int64).sum())) == (16, 561_718)


def test_shifted_images_are_moved_whole() -> None:
    image = np.zeros((200, 5, 5), np.uint8)
    image[:, 2, 2] = 9
    moved = shifted(image, 2, np.random.default_rng(0))
    assert moved.shape == image.shape
    assert (moved.reshape(200, -1).sum(axis=1) == 9).all()
    places = {tuple(place[1:]) for place in np.argwhere(moved)}
    assert len(places) == 25
    assert shifted(image, 0, np.random.default_rng(0)) is image


def test_an_epoch_has_every_example_once_and_depends_on_the_step_alone() -> None:
    batches = EpochBatches(np.arange(20), np.arange(20), 5, seed=3)
    epochs = [[batches.at(step)[0].tolist() for step in range(4 * epoch, 4 * epoch + 4)] for epoch in range(2)]
    assert [sorted(number for batch in epoch for number in batch) for epoch in epochs] == [list(range(20))] * 2
    assert epochs[0] != epochs[1]
    again = EpochBatches(np.arange(20), np.arange(20), 5, seed=3)
    assert [again.at(step)[0].tolist() for step in (6, 1)] == [epochs[1][2], epochs[0][1]]
