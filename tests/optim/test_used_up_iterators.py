"""Iterators that a loop has exhausted: a warning says that nothing is trained or clipped."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import glassgrad as gg
from glassgrad import errors, nn, optim
from glassgrad.utils.data import DataLoader, TensorDataset


@pytest.fixture
def used() -> Any:
    """What `model.parameters()` returned, after an optimizer has read it."""
    parameters = nn.Linear(2, 2).parameters()
    optim.SGD(parameters, lr=0.1)
    return parameters


@pytest.mark.parametrize(
    "given", [lambda used: used, lambda used: [{"params": used}], lambda used: [{"params": map(id, used)}]]
)
def test_an_optimizer_of_nothing_is_refused(used: Any, given: Any) -> None:
    with pytest.raises(errors.ArgumentError, match="SGD got no parameters"):
        optim.SGD(given(used), lr=0.1)


def test_a_group_may_be_empty_beside_another() -> None:
    model = nn.Linear(2, 2)
    for nothing in ([], (p for p in ())):
        groups = [{"params": nothing, "weight_decay": 0.1}, {"params": model.parameters()}]
        assert [len(group["params"]) for group in optim.SGD(groups, lr=0.1).param_groups] == [0, 2]
    assert optim.SGD([{"params": []}], lr=0.1).param_groups[0]["params"] == []


@pytest.mark.parametrize("clip", [nn.utils.clip_grad_norm_, nn.utils.clip_grad_value_])
def test_clipping_nothing_warns(used: Any, clip: Any) -> None:
    with pytest.warns(errors.IdleStepWarning, match="a generator that yields no parameters"):
        clip(used, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clip([], 1.0)
        clip((p for p in nn.Linear(2, 2).parameters()), 1.0)


def test_an_iterator_of_a_loader_ends_once_and_the_loader_begins_anew() -> None:
    loader = DataLoader(TensorDataset(gg.arange(6.0)), batch_size=2)
    batches = iter(loader)
    assert [batch.tolist() for (batch,) in batches] == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert list(batches) == []
    first = iter(loader)
    next(first)
    assert (len(list(loader)), len(list(first))) == (3, 2)


@pytest.mark.parametrize("batch", [lambda x: zip([x], [x * 2], strict=True), lambda x: ((x, x * 2) for _ in range(1))])
def test_a_batch_that_is_an_iterator_is_read_anew_in_every_call(batch: Any) -> None:
    step = gg.compile(lambda pairs: sum((x * y).sum() for x, y in pairs), backend="numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.CompileWarning)
        found = [float(step(batch(gg.full((2,), float(value))))) for value in (1, 2, 3)]
        given = batch(gg.ones(2))
        assert (float(step(given)), list(given)) == (4.0, [])
    assert found == [4.0, 16.0, 36.0]
