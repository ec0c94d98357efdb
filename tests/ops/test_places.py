"""Negative indices: functions with PyTorch's names refuse them, NumPy's and x[index] count from the end.

What is refused, and what is not, is asked of PyTorch itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors

torch = pytest.importorskip("torch", reason="PyTorch is the oracle")

LIBS = {"glassgrad": gg, "torch": torch}

# (lib, index of shape (2,)) to a result; tables have 4 rows or 3 classes.
USES: dict[str, Callable[[Any, Any], Any]] = {
    "embedding": lambda lib, i: lib.nn.functional.embedding(i, lib.ones(4, 3)),
    "embedding of limited norm": lambda lib, i: lib.nn.functional.embedding(i, lib.ones(4, 3), max_norm=1.0),
    "embedding scaled": lambda lib, i: lib.nn.functional.embedding(i, lib.ones(4, 3), scale_grad_by_freq=True),
    "embedding_bag": lambda lib, i: lib.nn.functional.embedding_bag(i.reshape(1, 2), lib.ones(4, 3)),
    "gather": lambda lib, i: lib.gather(lib.ones(4, 3), 0, i.reshape(2, 1)),
    "index_select": lambda lib, i: lib.index_select(lib.ones(4, 3), 0, i),
    "index_select columns": lambda lib, i: lib.ones(3, 4).index_select(1, i),
    "scatter": lambda lib, i: lib.scatter(lib.ones(4, 3), 0, i.reshape(2, 1), 5.0),
    "scatter_add": lambda lib, i: lib.ones(4, 3).scatter_add(0, i.reshape(2, 1), lib.ones(2, 1)),
    "scatter_reduce": lambda lib, i: lib.ones(4, 3).scatter_reduce(0, i.reshape(2, 1), lib.ones(2, 1), "amax"),
    "index_add": lambda lib, i: lib.ones(4, 3).index_add(0, i, lib.ones(2, 3)),
    "index_copy": lambda lib, i: lib.ones(4, 3).index_copy(0, i, lib.ones(2, 3)),
    "index_fill": lambda lib, i: lib.ones(4, 3).index_fill(0, i, 2.0),
    "index_put": lambda lib, i: lib.ones(4, 3).index_put((i,), lib.ones(2, 3)),
    "x[index]": lambda lib, i: lib.ones(4, 3)[i],
    "take": lambda lib, i: lib.take(lib.ones(2, 2), i),
    "take_along_dim": lambda lib, i: lib.take_along_dim(lib.arange(4.0).reshape(4, 1), i.reshape(2, 1), 0),
    "one_hot": lambda lib, i: lib.nn.functional.one_hot(i, 4),
    "nll_loss": lambda lib, i: lib.nn.functional.nll_loss(lib.zeros(2, 4), i),
    "cross_entropy": lambda lib, i: lib.nn.functional.cross_entropy(lib.zeros(2, 4), i, label_smoothing=0.1),
    "multi_margin_loss": lambda lib, i: lib.nn.functional.multi_margin_loss(lib.zeros(2, 4), i),
}


def outcome(lib: Any, use: Callable[[Any, Any], Any], index: list[int]) -> Any:
    """Return the numbers, or None where the library refuses."""
    try:
        return np.asarray(use(lib, lib.tensor(index)))
    except (IndexError, RuntimeError):
        return None


@pytest.mark.parametrize("index", [[0, -1], [0, 4], [3, 0]], ids=["negative", "behind the end", "in range"])
@pytest.mark.parametrize("name", USES)
def test_refuses_what_torch_refuses(name: str, index: list[int]) -> None:
    mine, theirs = (outcome(lib, USES[name], index) for lib in LIBS.values())
    if name == "take_along_dim" and index == [0, 4]:
        assert mine is None  # PyTorch takes 4 modulo the size, NumPy refuses it
        return
    assert (mine is None) == (theirs is None)
    if theirs is not None:
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


# These look at their indices, which can be no arguments of a step then.
NEEDS_NUMBERS = {"embedding of limited norm", "embedding scaled", "embedding_bag"}


@pytest.mark.parametrize("name", sorted(USES.keys() - NEEDS_NUMBERS))
@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_a_compiled_step_refuses_the_same(name: str, backend: str) -> None:
    step = gg.compile(lambda index: USES[name](gg, index), backend=backend)
    good = np.asarray(step(gg.tensor([3, 0])))
    np.testing.assert_allclose(good, USES[name](gg, gg.tensor([3, 0])).numpy(), rtol=1e-6)
    if outcome(torch, USES[name], [0, -1]) is not None:
        np.testing.assert_allclose(np.asarray(step(gg.tensor([0, -1]))), USES[name](gg, gg.tensor([0, -1])).numpy())
        return
    with pytest.raises(IndexError, match="-1 is out of range"):
        step(gg.tensor([0, -1]))


def test_the_messages_say_what_is_allowed_and_where() -> None:
    for name, words in {
        "embedding": ("index -1 at position (1,)", "between 0 and 3", "padding_idx"),
        "gather": ("index -1 at position (1, 0)", "expected 0 to 3", "do not count from the end"),
        "index_add": ("index -1 at position (1,)", "expected 0 to 3"),
        "one_hot": ("label -1", "between 0 and 3"),
    }.items():
        with pytest.raises(errors.IndexRangeError) as caught:
            USES[name](gg, gg.tensor([0, -1]))
        text = str(caught.value)
        assert all(word in text for word in words), text
        assert re.search(r"test_places\.py:\d+", text), text


def test_a_refused_embedding_leaves_its_table_alone() -> None:
    table = gg.full((4, 3), 2.0)
    with pytest.raises(IndexError):
        gg.nn.functional.embedding(gg.tensor([0, -1]), table, max_norm=1.0)
    assert table.tolist() == [[2.0] * 3] * 4


def test_numpys_names_count_from_the_end() -> None:
    x, index = np.arange(12.0).reshape(4, 3), np.array([[0, -1, 2]])
    t = gg.tensor(x, requires_grad=True)
    picked = gg.take_along_axis(t, gg.tensor(index), 0)
    np.testing.assert_array_equal(picked.detach().numpy(), np.take_along_axis(x, index, 0))
    picked.sum().backward()
    assert t.grad is not None
    assert [row.tolist() for row in t.grad.numpy()] == [[1, 0, 0], [0, 0, 0], [0, 0, 1], [0, 1, 0]]
    np.testing.assert_array_equal(gg.take(t, gg.tensor([-1, 0]), 1).detach().numpy(), x.take([-1, 0], 1))


def test_what_lies_behind_the_end_of_a_ctc_target_does_not_count() -> None:
    logp = gg.nn.functional.log_softmax(gg.tensor(np.random.default_rng(0).normal(size=(5, 1, 4))), dim=2)
    plain, padded = ([[1, 2]], [[1, 2, -1]])
    a, b = (gg.nn.functional.ctc_loss(logp, gg.tensor(y), gg.tensor([5]), gg.tensor([2])) for y in (plain, padded))
    assert a.item() == b.item()
    with pytest.raises(IndexError, match="ctc_loss: label 7 is out of range for 4 classes"):
        gg.nn.functional.ctc_loss(logp, gg.tensor([[1, 7]]), gg.tensor([5]), gg.tensor([2]))


# --- what is left out of a call ----------------------------------------------------------------------

CALLS = {
    "index_add": lambda lib, x: lib.index_add(x, 0, lib.tensor([2, 0, 2]), x),
    "index_add of one number": lambda lib, x: lib.index_add(x[0, 0], 0, lib.tensor([0]), x[1, 1]),
    "scatter of a tensor of one number": lambda lib, x: x.scatter(1, lib.tensor([[0], [3], [1]]), 2.5),
    "scatter that adds": lambda lib, x: x.detach().scatter(
        1, lib.tensor([[0, 0], [3, 1], [1, 1]]), x[:, :2].detach(), reduce="add"
    ),
    "scatter that multiplies": lambda lib, x: x.detach().scatter(0, lib.tensor([[0, 0, 2, 1]]), 3.0, reduce="multiply"),
    "scatter from behind": lambda lib, x: x.scatter(-1, lib.tensor([[0], [3], [1]]), x[:, :1] * 2),
    "masked_scatter": lambda lib, x: x.masked_scatter(x > 1.0, x * 2),
    "scatter_reduce of nothing": lambda lib, x: x.scatter_reduce(0, lib.zeros((0, 4), dtype=lib.int64), x[:0], "prod"),
}


@pytest.mark.filterwarnings("ignore:The reduce argument of torch.scatter")
@pytest.mark.parametrize("name", CALLS)
def test_options_that_are_left_out_are_pytorchs(name: str) -> None:
    numbers = np.arange(12.0).reshape(3, 4) / 5 + 0.3
    found = []
    for lib in (gg, torch):
        x = lib.tensor(numbers, requires_grad=True)
        y = CALLS[name](lib, x)
        if y.requires_grad:  # PyTorch has no derivative of `reduce`
            (y * y).sum().backward()
        found.append((y.detach().numpy(), None if x.grad is None else x.grad.numpy()))
    assert (found[0][1] is None) == (found[1][1] is None)
    for mine, wanted in zip(*found, strict=True):
        if wanted is None:
            continue
        np.testing.assert_allclose(mine, wanted, rtol=1e-13)


def test_places_that_do_not_fit_are_refused() -> None:
    x = gg.ones((3, 4))
    with pytest.raises(ValueError, match="at least 12 elements"):
        gg.masked_scatter(x, x > 0, gg.ones(5))
    with pytest.raises((TypeError, ValueError), match="mask"):
        gg.masked_fill(x, gg.ones((3, 4)), 1.0)
    with pytest.raises((TypeError, ValueError), match="mask"):
        gg.masked_select(x, gg.ones((3, 4), dtype=gg.int64))
    with pytest.raises(ValueError, match="index_add"):
        gg.index_add(x, 0, gg.tensor([0, 1]), gg.ones((3, 4)))
    with pytest.raises(ValueError, match="index_copy"):
        gg.index_copy(x, 0, gg.tensor([0, 1]), gg.ones((3, 4)))
    for call in (gg.scatter, gg.scatter_add):
        with pytest.raises((TypeError, ValueError), match=r"dtype|float32"):
            call(x, 0, gg.tensor([[0]]), gg.ones((1, 1), dtype=gg.float64))
    with pytest.raises((TypeError, ValueError), match=r"dtype|float32"):
        gg.index_copy(x, 0, gg.tensor([0]), gg.ones((1, 4), dtype=gg.float64))
