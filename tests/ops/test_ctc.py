"""CTC against its definition: the sum over all paths of labels and blanks."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.nn import functional as F
from glassgrad.ops.core import REGISTRY
from tests.ops.against_torch import real

loss = REGISTRY["ctc_loss"]
TIMES, CLASSES = 4, 3
# Labels (1 and 2 stand for the classes that are not blank) and how much of the time there is.
EXAMPLES: tuple[tuple[tuple[int, ...], int], ...] = (
    ((), 0), ((), 3), ((1,), 0), ((1,), 1), ((2,), 4), ((1, 1), 2), ((1, 1), 3), ((1, 2), 2), ((2, 1), 4), ((2, 2), 4),
    ((1, 2, 1), 3), ((1, 2, 1), 4), ((1, 1, 2), 3),
)  # fmt: skip  # a table


def by_definition(x: Any, labels: list[int], length: int, blank: int) -> tuple[float, Any]:
    """Return the loss of one example and its gradient, from every path."""
    total, weights = 0.0, np.zeros(x.shape)
    for path in itertools.product(range(x.shape[1]), repeat=length):
        shortened = [label for at, label in enumerate(path) if at == 0 or path[at - 1] != label]
        if [label for label in shortened if label != blank] == labels:
            chance = math.exp(sum(x[time, label] for time, label in enumerate(path)))
            total += chance
            for time, label in enumerate(path):
                weights[time, label] += chance
    return (-math.log(total), -weights / total) if total else (math.inf, np.full(x.shape, math.nan))


def batch(blank: int, examples: Any = EXAMPLES, width: int = 3) -> tuple[Any, ...]:
    """Return log-probabilities, targets with anything behind their ends, and both lengths."""
    x = real(TIMES, len(examples), CLASSES, seed=blank)
    x -= np.log(np.exp(x).sum(-1, keepdims=True))
    others = [one for one in range(CLASSES) if one != blank]
    rows = [[others[label - 1] for label in labels] for labels, _ in examples]
    targets = np.array([[*row, *[others[1]] * (width - len(row))] for row in rows], np.int64).reshape(len(rows), width)
    lengths, target_lengths = (np.array(one) for one in ([n for _, n in examples], list(map(len, rows))))
    return x, rows, (targets, lengths, target_lengths)


@pytest.mark.parametrize("blank", range(CLASSES))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_loss_and_gradient_are_the_sums_over_all_paths(blank: int, dtype: Any) -> None:
    x, rows, rest = batch(blank)
    x = x.astype(dtype)
    expected = [by_definition(x[:, n], row, int(rest[1][n]), blank) for n, row in enumerate(rows)]
    truth = np.array([one for one, _ in expected])
    possible = np.isfinite(truth)
    assert possible.tolist().count(False) == 3
    rtol = 1e-10 if dtype is np.float64 else 2e-5
    for way in (loss, loss.decompose):
        given = gg.tensor(x, requires_grad=True)
        y = way(given, *rest, blank=blank)
        assert y.dtype == dtype
        np.testing.assert_allclose(y.detach().numpy(), truth, rtol=rtol, atol=rtol)
        (g,) = gg.autograd.grad(y[gg.tensor(np.flatnonzero(possible))].sum(), given)
        for n in np.flatnonzero(possible):
            np.testing.assert_allclose(g.numpy()[:, n], expected[n][1], rtol=rtol, atol=rtol)


def test_what_cannot_be_has_a_gradient_of_nan_unless_its_loss_is_dropped() -> None:
    x, _, rest = batch(0)
    x[1, 4] = math.nan  # of an example that can be
    with np.errstate(invalid="ignore"):
        losses, residuals = loss.evaluate(x, *rest, blank=0)
        assert math.isnan(losses[4])
        for number in (1.0, 0.0):
            g = np.full(len(losses), number)
            found = loss.joint_vjp(g, (True, False, False, False), residuals, x, *rest, blank=0)[0]
            spoilt = np.isnan(found).any((0, 2))
            assert spoilt.tolist() == [bool(number) and not math.isfinite(one) for one in losses]


def test_targets_without_a_label() -> None:
    x, rows, rest = batch(1, (((), 0), ((), 4), ((), 2)), width=0)
    expected = [by_definition(x[:, n], row, int(rest[1][n]), 1) for n, row in enumerate(rows)]
    for way in (loss, loss.decompose):
        given = gg.tensor(x, requires_grad=True)
        y = way(given, *rest, blank=1)
        np.testing.assert_allclose(y.detach().numpy(), [one for one, _ in expected], rtol=1e-12, atol=1e-12)
        (g,) = gg.autograd.grad(y.sum(), given)
        np.testing.assert_allclose(g.numpy().swapaxes(0, 1), [one for _, one in expected], rtol=1e-10, atol=1e-12)


def test_no_time_at_all_is_refused() -> None:
    with pytest.raises(errors.ArgumentError, match="log_probs"):
        F.ctc_loss(gg.zeros(0, 1, 3), gg.tensor([[1]]), [0], [0])
