"""Gradients of hand-written layers from micro-batches, and steps without a gradient."""

from __future__ import annotations

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import manual, nn, optim
from glassgrad.nn import functional as F


@pytest.mark.parametrize("max_norm", [None, 0.05])
def test_layers_by_hand_accumulate_as_their_twin_on_the_tape(max_norm: float | None) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(9, 3)), rng.normal(size=(9, 2))
    byhand = manual.Net(manual.Linear(3, 4, rng=rng), manual.Tanh(), manual.Linear(4, 2, rng=rng))
    twin = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    twin.load_state_dict({name: gg.tensor(array) for name, array in byhand.state_dict().items()})
    criterion = manual.MSELoss()
    one = optim.GradientAccumulator(manual.SGD(byhand.parameters(), lr=0.1), 3, max_norm=max_norm)
    other = optim.GradientAccumulator(optim.SGD(twin.parameters(), lr=0.1), 3, max_norm=max_norm)
    for begin, end in ((0, 5), (5, 6), (6, 9)):
        with one(end - begin):
            criterion(byhand(x[begin:end]), y[begin:end])
            byhand.backward(criterion.backward())
        other.backward(F.mse_loss(twin(gg.tensor(x[begin:end])), gg.tensor(y[begin:end])), end - begin)
        assert one.stepped == other.stepped == (end == 9)
    np.testing.assert_allclose(one.norms, other.norms, rtol=1e-6)
    for mine, theirs in zip(byhand.parameters(), twin.parameters(), strict=True):
        np.testing.assert_allclose(mine.data, theirs.detach().numpy(), rtol=1e-6, atol=1e-9)
        assert mine.grad is None or not mine.grad.any()


@pytest.mark.parametrize("skips", [True, False])
def test_layers_by_hand_skip_what_is_not_finite(skips: bool) -> None:
    net = manual.Net(manual.Linear(2, 1, rng=np.random.default_rng(0)))
    before = [parameter.data.copy() for parameter in net.parameters()]
    accumulator = optim.GradientAccumulator(manual.SGD(net.parameters(), lr=0.1), 1, skip_nonfinite=skips)
    criterion = manual.MSELoss()
    with np.errstate(all="ignore"), accumulator:
        criterion(net(np.array([[np.inf, 1.0]])), np.array([[1.0]]))
        net.backward(criterion.backward())
    assert (accumulator.stepped, accumulator.skipped) == (not skips, int(skips))
    same = [np.array_equal(one, parameter.data) for one, parameter in zip(before, net.parameters(), strict=True)]
    assert all(same) == skips


def test_a_step_without_gradients_says_so_at_its_line() -> None:
    weights = [gg.zeros(2, requires_grad=True), gg.zeros(3, requires_grad=True), gg.zeros(1, requires_grad=True)]
    optimizer = optim.AdamW([{"params": weights[:2]}, {"params": weights[2:]}], lr=0.1)
    with pytest.warns(gg.errors.IdleStepWarning) as caught:
        optimizer.step()
    (warning,) = caught
    assert "AdamW" in str(warning.message)
    assert "3" in str(warning.message)
    assert warning.filename == __file__
    assert "test_accumulation_by_hand.py" in str(warning.message)
    weights[0].sum().backward()
    optimizer.step()  # one gradient is enough
    assert (weights[0].detach().numpy() != 0).all()
