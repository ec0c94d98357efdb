"""A user's own digits: pictures in folders, arrays in a file, and other input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glassgrad.data.images import shipped_digits
from glassgrad.data.own_digits import read_digits
from glassgrad.errors import InputError
from glassgrad.tasks.images import DIGITS
from glassgrad.train.config import command_line


def test_pictures_in_folders_are_the_digits_that_they_show(tmp_path: Path) -> None:
    shipped = shipped_digits()
    kept = [at for digit in range(10) for at in np.flatnonzero(shipped.train_labels == digit)[:6]]
    for at in kept:
        folder = tmp_path / str(shipped.train_labels[at])
        folder.mkdir(exist_ok=True)
        np.save(folder / f"{at:04}.npy", shipped.train_images[at])
    (tmp_path / "3" / "notes.txt").write_text("no picture")
    found = read_digits(tmp_path)
    assert found.test_labels.tolist() == [*range(10)]
    assert np.bincount(found.train_labels).tolist() == [5] * 10
    assert np.array_equal(found.train_images[:4], shipped.train_images[kept[:4]])
    task = DIGITS.build(DIGITS.configure([command_line({"data": str(tmp_path), "engine": "manual", "batch": 10})]))
    assert task.steps == 5 * 20
    assert str(tmp_path) in " ".join(task.introduction())


def test_arrays_keep_their_size_and_get_the_range_of_the_data_sets(tmp_path: Path) -> None:
    images = np.linspace(0, 1, 50 * 12 * 10).reshape(50, 12, 10)
    np.savez(tmp_path / "own.npz", images=images, labels=np.arange(50) % 10)
    found = read_digits(tmp_path / "own.npz")
    assert (found.size, len(found.train_labels), found.test_images.max()) == ((12, 10), 40, 255)
    parts = {
        "x_train": images[:30] * 7,
        "y_train": np.arange(30) % 10,
        "x_test": images[30:],
        "y_test": np.arange(20) % 10,
    }
    np.savez(tmp_path / "parts.npz", **parts)
    found = read_digits(tmp_path / "parts.npz")
    assert (len(found.train_labels), len(found.test_labels), found.train_images.max()) == (30, 20, 255)


ONES = np.ones((50, 3, 3))
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "other names": ({"a": np.ones(2)}, "it holds a; expected"),
    "flat images": ({"images": np.ones((5, 9)), "labels": np.arange(5)}, r"images float64\[5, 9\]"),
    "labels that are no whole numbers": ({"images": ONES, "labels": np.ones(50)}, r"labels float64\[50\]"),
    "a label beyond 9": ({"images": ONES, "labels": np.arange(50)}, "label 10 at place 10"),
    "too few": ({"images": ONES[:9], "labels": np.arange(9)}, "at least 5 of one digit"),
    "negative numbers": ({"images": -ONES, "labels": np.arange(50) % 10}, "hold negative numbers"),
    "two sizes": (
        {"x_train": ONES, "y_train": np.arange(50) % 10, "x_test": np.ones((2, 4, 4)), "y_test": np.arange(2)},
        "differ in size",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_file_that_holds_no_digits_says_why(name: str, tmp_path: Path) -> None:
    arrays, message = WRONG[name]
    np.savez(tmp_path / "own.npz", **arrays)
    with pytest.raises(InputError, match=message):
        read_digits(tmp_path / "own.npz")


def test_a_path_without_digits_says_why(tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("no arrays")
    for path, message in (("none", "no such directory"), ("text.npz", "no digits in"), (".", "no subfolder 0 to 9")):
        with pytest.raises(InputError, match=message):
            read_digits(tmp_path / path)
