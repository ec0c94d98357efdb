"""The learning-rate finder: its suggestion trains, and the search undoes its effects."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import manual, nn, optim
from glassgrad.errors import InputError
from glassgrad.nn import functional as F
from glassgrad.train import find_rate

from .fitting import loader, net, weights


def test_the_suggestion_trains_and_a_hundred_times_as_much_does_not(tmp_path: Path) -> None:
    """Least squares: gradient descent diverges above 2 over the largest eigenvalue of the Hessian."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((400, 3)).astype(np.float32) * np.float32([1.0, 2.0, 3.0])
    y = (x @ np.float32([[1.0], [-2.0], [0.5]])).astype(np.float32)
    largest = 2 / np.linalg.eigvalsh(2 * x.T.astype(np.float64) @ x / 400).max()
    model = nn.Linear(3, 1, bias=False)
    picture = tmp_path / "rates.png" if find_spec("matplotlib") else None  # an extra
    found = find_rate(model, optim.SGD(model.parameters(), lr=1.0), F.mse_loss, [(x, y)], picture=picture)
    assert 0.01 * largest < found.suggestion < largest
    assert found.rates[-1] > largest  # it went on until the loss grew
    assert len(found.rates) < 100
    assert picture is None or picture.read_bytes().startswith(b"\x89PNG")
    np.testing.assert_allclose(np.diff(np.log(found.rates)), np.log(1e7) / 99, rtol=1e-9)


def test_nothing_stays_of_the_search() -> None:
    gg.manual_seed(3)
    model = nn.Sequential(net(), nn.BatchNorm1d(3))
    optimizer = optim.Adam(model.parameters(), lr=0.125)
    x, y = next(iter(loader()))
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
    before: Any = weights(model), {at: float(one["step"]) for at, one in optimizer.state_dict()["state"].items()}
    gradients = [p.grad for p in model.parameters()]
    state = gg.random.default_generator.get_state()
    find_rate(model, optimizer, F.cross_entropy, loader(), steps=20)
    for name, array in weights(model).items():
        np.testing.assert_array_equal(array, before[0][name])
    assert {at: float(one["step"]) for at, one in optimizer.state_dict()["state"].items()} == before[1]
    assert optimizer.param_groups[0]["lr"] == 0.125
    assert all(p.grad is g for p, g in zip(model.parameters(), gradients, strict=True))
    assert gg.random.default_generator.get_state() == state


def test_layers_by_hand_are_searched_and_restored() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, 2)).astype(np.float32)
    batches = [(x, (x[:, 0] > x[:, 1]).astype(int))]
    last = manual.Linear(8, 2, rng=rng)
    model = manual.Net(manual.Linear(2, 8, rng=rng), manual.BatchNorm1d(8), manual.Dropout(0.2, rng=rng), last).eval()
    optimizer, loss = manual.Adam(model.parameters()), manual.CrossEntropyLoss()
    before = {name: array.copy() for name, array in model.state_dict().items()}
    state, drawn = str(optimizer.state_dict()), rng.bit_generator.state
    found = find_rate(model, optimizer, loss, batches)
    assert 1e-3 < found.suggestion < 10
    assert found.losses[-1] > min(found.losses)
    for name, array in model.state_dict().items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)
    assert (str(optimizer.state_dict()), rng.bit_generator.state) == (state, drawn)
    assert not any(module.training for module in model.modules())
    assert all(p.grad is None for p in model.parameters())
    with pytest.raises(InputError, match=r"find_rate: loss_fn must be a loss of glassgrad\.manual"):
        find_rate(model, optimizer, F.cross_entropy, batches)
    with pytest.raises(InputError, match=r"find_rate: optimizer must be an optimizer of glassgrad\.optim, given Adam"):
        find_rate(net(), optimizer, F.cross_entropy, batches)


def test_what_comes_after_the_least_loss_is_not_suggested() -> None:
    from glassgrad.train.rate_finder import _steepest

    rates = [10.0**power for power in range(-8, 0)]
    assert _steepest(rates, [1.0, 1.0, 0.9, 0.6, 0.5, 9.0, 3.0, 1.0]) == 1e-5
    assert np.isnan(_steepest(rates, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]))


@pytest.mark.parametrize("options", [{"low": 0.0}, {"low": 2.0, "high": 1.0}, {"steps": 5}], ids=str)
def test_ranges_that_are_none(options: dict[str, float]) -> None:
    model = net()
    with pytest.raises(InputError, match=r"expected 0 < low < high and at least 10 steps"):
        find_rate(model, optim.SGD(model.parameters(), lr=1.0), F.cross_entropy, loader(), **options)
