"""Single steps of recurrent layers against PyTorch's cells, for one and for several examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.ops.recurrent_steps import gru_step, lstm_step, rnn_step
from tests.ops.against_torch import real, torch

HIDDEN, FEATURES = 3, 4


@pytest.mark.parametrize("examples", [(), (2,)])
@pytest.mark.parametrize("cell", ["LSTMCell", "GRUCell", "RNNCell"])
def test_a_step_is_that_of_a_cell(cell: str, examples: tuple[int, ...]) -> None:
    theirs = getattr(torch.nn, cell)(FEATURES, HIDDEN, dtype=torch.float64)
    weights = [gg.tensor(parameter.detach().numpy()) for parameter in theirs.parameters()]
    x, h, c = real(*examples, FEATURES), real(*examples, HIDDEN, seed=1), real(*examples, HIDDEN, seed=2)
    given = tuple(map(gg.tensor, (x, h, c)))
    found: Any
    if cell == "LSTMCell":
        found = lstm_step(*given, *weights)
        expected = theirs(torch.tensor(x), (torch.tensor(h), torch.tensor(c)))
    else:
        found = gru_step(*given[:2], *weights) if cell == "GRUCell" else rnn_step(*given[:2], *weights, False)
        expected = (theirs(torch.tensor(x), torch.tensor(h)),)
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine.numpy(), other.detach().numpy(), rtol=1e-13)
