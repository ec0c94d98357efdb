"""Functions that run a model in another mode restore the mode of every module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.models import GPT, generate
from glassgrad.nn import functional as F
from glassgrad.nn.modes import evaluating
from glassgrad.train import Trainer, TrainingConfig, find_rate
from glassgrad.train.learners.engine import EngineLearner


def frozen() -> Any:
    """A net in training whose normalisation was frozen by `eval()` on its own."""
    model = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2))
    model[1].eval()
    return model


def modes(model: Any) -> list[bool]:
    return [module.training for module in model.modules()]


BATCH = (gg.ones(4, 2), gg.tensor([0, 1, 0, 1]))


def evaluated(model: Any) -> None:
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    config = TrainingConfig(engine="eager", progress="none")
    Trainer(model, optimizer, F.cross_entropy, [BATCH], [BATCH], config=config).evaluate()


def fitted(model: Any) -> None:
    statistics = model[1].running_mean.numpy().copy()
    config = TrainingConfig(engine="eager", progress="none", steps=3)
    Trainer(model, optim.SGD(model.parameters(), lr=0.1), F.cross_entropy, [BATCH], [BATCH], config=config).fit()
    np.testing.assert_array_equal(model[1].running_mean.numpy(), statistics)


USES: dict[str, Callable[[Any], Any]] = {
    "Trainer.evaluate": evaluated,
    "Trainer.fit": fitted,
    "EngineLearner.logits": lambda model: EngineLearner(model, optim.SGD(model.parameters(), lr=0.1)).logits(
        np.ones((1, 2), np.float32)
    ),
    "find_rate": lambda model: find_rate(
        model, optim.SGD(model.parameters(), lr=0.1), F.cross_entropy, [BATCH], steps=10
    ),
    "summary": lambda model: nn.summary(model, (1, 2)),
    "update_bn": lambda model: gg.optim.swa_utils.update_bn([gg.randn(4, 2)], model),
}


@pytest.mark.parametrize("name", USES)
def test_modes_are_those_from_before(name: str) -> None:
    model = frozen()
    before = modes(model)
    assert sorted(set(before)) == [False, True]
    USES[name](model)
    assert modes(model) == before


def test_a_model_in_evaluation_mode_is_trained_in_training_mode() -> None:
    model = frozen().eval()
    config = TrainingConfig(engine="eager", progress="none", steps=1)
    Trainer(model, optim.SGD(model.parameters(), lr=0.1), F.cross_entropy, [BATCH], config=config).fit()
    assert all(modes(model))


def test_generating_leaves_dropout_on() -> None:
    model = GPT(tokens=5, context=4, width=8, heads=2, layers=1, dropout=0.5)
    model.train()
    drawn = generate(model, 4, count=2, seed=1, longest=3)
    first = next(drawn)
    assert list(drawn)
    assert all(modes(model))
    assert next(generate(model.eval(), 4, count=1, seed=1, longest=3)) == first  # drawn without dropout
    assert not any(modes(model))


def test_modes_come_back_after_a_failure() -> None:
    model = frozen()
    before = modes(model)

    def fail() -> None:
        with evaluating(model):
            assert not any(modes(model))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert modes(model) == before
