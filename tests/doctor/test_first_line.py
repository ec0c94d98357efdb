"""The first line of a model whose value for an example, or for a place, changes with the others."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from glassgrad.doctor.observers.entering.breaking import first_line

ROWS, PLACES = 8, 5
LIBRARIES = ["glassgrad", "torch"]


def less_the_mean(x: Any, lib: Any) -> Any:
    scaled = 2 * x
    centred = scaled - scaled.mean(0)  # here
    return centred.sum(-1)


def cut_in_time(x: Any, lib: Any) -> Any:
    steps = lib.stack([x[:, at] for at in range(PLACES)])
    wide = lib.cat([steps, steps], -1)
    turned = wide.reshape(ROWS, PLACES, -1)  # here
    return turned.mean(1)


def placed_along_the_batch(x: Any, lib: Any) -> Any:
    y = x * 3.0
    return y + lib.arange(len(x)).reshape(-1, 1, 1)  # here


def in_a_helper(x: Any, lib: Any) -> Any:
    def helper(given: Any) -> Any:
        return given / given.max()  # here

    return x + helper(x)


def in_a_container(x: Any, lib: Any) -> Any:
    parts = [x, x.sum(0, keepdim=True) + x]  # here
    return parts[0] + parts[1]


def looks_back_and_ahead(x: Any, lib: Any) -> Any:
    before = x.cumsum(1)
    both = before + x.flip(1)  # here
    return both.exp()


def folded(x: Any, lib: Any) -> Any:
    rows = x.reshape(ROWS * PLACES, -1)
    times = x.transpose(0, 1).reshape(PLACES * ROWS, -1).reshape(PLACES, ROWS, -1)
    kinds = x[:, :, 0].argmax(1)
    return rows.reshape(ROWS, -1)[:, :2] + times[0][:, :2] + kinds.reshape(-1, 1) + lib.ones(ROWS, 2)


def inputs_and_cases(axis: int) -> tuple[Any, list[Any]]:
    x = np.random.default_rng(0).normal(size=(ROWS, PLACES, 3)).astype(np.float32)
    changed = x.copy()
    half = x.shape[axis] // 2
    np.moveaxis(changed, axis, 0)[half:] = -1.5 * np.moveaxis(np.roll(x, 1, axis=axis), axis, 0)[half:]
    return x, [changed, np.roll(x, 1, axis=axis)]


def named(function: Callable[..., Any], library: str, axis: int = 0) -> str:
    lib = pytest.importorskip(library, reason="its tensors are what the lines make")
    x, cases = inputs_and_cases(axis)
    return first_line(lambda given: function(lib.tensor(given), lib), x, cases[: 2 - axis], axis)


def line_of(function: Callable[..., Any]) -> str:
    lines, first = inspect.getsourcelines(function)
    return next(f":{first + at}" for at, text in enumerate(lines) if "# here" in text)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("function", [less_the_mean, cut_in_time, placed_along_the_batch, in_a_helper, in_a_container])
def test_the_line_that_mixes_examples_is_named(function: Callable[..., Any], library: str) -> None:
    found = named(function, library)
    assert found.endswith(line_of(function))
    assert "test_first_line.py" in found


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_line_that_looks_ahead_is_named(library: str) -> None:
    assert named(looks_back_and_ahead, library, 1).endswith(line_of(looks_back_and_ahead))


@pytest.mark.parametrize("library", LIBRARIES)
def test_axes_that_are_folded_and_exchanged_keep_examples_apart(library: str) -> None:
    assert named(folded, library) == ""


def test_lines_of_other_branches_are_not_compared() -> None:
    def branches(x: Any, lib: Any) -> Any:
        if float(x.sum()) > 0:
            x = x * 2.0
            x = x - x.mean()
        return x

    x, _ = inputs_and_cases(0)
    lib = importlib.import_module("glassgrad")
    assert first_line(lambda given: branches(lib.tensor(given), lib), abs(x), [-abs(x)], 0) == ""


def test_a_debugger_goes_on_and_an_error_is_the_users() -> None:
    def mine(frame: Any, event: str, value: Any) -> None:
        return None

    def fails(given: Any) -> Any:
        raise ValueError("enough")

    before = sys.gettrace()
    sys.settrace(mine)
    try:
        with pytest.raises(ValueError, match="enough"):
            first_line(fails, np.ones((4, 2)), [np.ones((4, 2))], 0)
        assert sys.gettrace() is mine
    finally:
        sys.settrace(before)
