"""The same record of the same network in both libraries, and both against NumPy by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.doctor.quantities import FIELDS
from tests.doctor.pairs import NETS, batch, pair

torch = pytest.importorskip("torch", reason="the same models have to be watched in PyTorch")


def watched(lib: Any, model: Any, x: Any, y: Any, steps: int = 4) -> Any:
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    monitor = gg.GradientMonitor(model, every=2)
    for _ in range(steps):
        loss = lib.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        monitor.update(loss)
        lib.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        monitor.update_after_clip()
        optimizer.step()
    monitor.close()
    return monitor.data


@pytest.mark.parametrize("name", NETS)
def test_both_libraries_give_the_same_record(name: str) -> None:
    ours, theirs = pair(name, torch)
    x, y = batch(name)
    here = watched(gg, ours, gg.tensor(x), gg.tensor(y))
    there = watched(torch, theirs, torch.tensor(x), torch.tensor(y))
    assert here.steps.tolist() == there.steps.tolist() == [0, 2]
    assert here.parameters == there.parameters
    assert here.activations == there.activations
    assert here.kinds == there.kinds
    rounding = here.gradient_std < 1e-12  # behind a bias in front of a batch norm: its sign is up to the library
    for field in FIELDS:
        ours_, theirs_ = getattr(here, field.name), getattr(there, field.name)
        if field.name == "gradient_signed":
            ours_, theirs_ = ours_[~rounding], theirs_[~rounding]
        np.testing.assert_allclose(ours_, theirs_, rtol=1e-7, atol=1e-12, err_msg=field.name)
    assert rounding.mean() < 0.5
    assert np.isfinite(here.total_norm_clipped).all()
    assert (here.total_norm_clipped < 0.5 + 1e-6).all()


def test_the_record_is_what_numpy_says_of_torchs_gradients() -> None:
    _, model = pair("perceptron", torch)
    x, y = (torch.tensor(part) for part in batch("perceptron"))
    monitor = gg.GradientMonitor(model)
    before = {name: parameter.detach().numpy().copy() for name, parameter in model.named_parameters()}
    torch.nn.functional.cross_entropy(model(x), y).backward()
    monitor.update()
    gradients = {name: parameter.grad.numpy().copy() for name, parameter in model.named_parameters()}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.25 * parameter.grad
    monitor.after_step()
    data = monitor.data
    for at, name in enumerate(data.parameters):
        g, w = gradients[name], before[name]
        assert data.gradient_mean[0, at] == pytest.approx(g.mean(), rel=1e-9, abs=1e-18)
        assert data.gradient_std[0, at] == pytest.approx(g.std())
        assert data.gradient_abs_max[0, at] == pytest.approx(np.abs(g).max())
        assert data.gradient_zeros[0, at] == pytest.approx((g == 0).mean())
        assert data.parameter_norm[0, at] == pytest.approx(np.linalg.norm(w))
        assert data.update_norm[0, at] == pytest.approx(0.25 * np.linalg.norm(g))
        assert data.update_ratio[0, at] == pytest.approx(0.25 * np.linalg.norm(g) / np.linalg.norm(w))
    total = np.sqrt(sum((g**2).sum() for g in gradients.values()))
    assert data.total_norm[0] == pytest.approx(total)
    assert np.isnan(data.loss[0])


def test_dead_and_saturated_shares_are_what_numpy_says() -> None:
    ours, _ = pair("perceptron", torch)
    x, y = batch("perceptron")
    monitor = gg.GradientMonitor(ours)
    gg.nn.functional.cross_entropy(ours(gg.tensor(x)), gg.tensor(y)).backward()
    monitor.update()
    data = monitor.data
    w = [parameter.detach().numpy() for parameter in ours.parameters()]
    hidden = np.maximum(x @ w[0].T + w[1], 0)
    bounded = np.tanh(hidden @ w[2].T + w[3])
    dead = (hidden == 0).all(0).mean()
    assert 0 < dead < 1
    assert data.activations == ("0", "1", "2", "3", "4")
    assert data.activation_dead[0, 1] == pytest.approx(dead)
    assert data.activation_saturated[0, 3] == pytest.approx((np.abs(bounded) > 0.97).mean())
    assert 0 < data.activation_saturated[0, 3] < 1
    np.testing.assert_allclose(data.activation_std[0, [1, 3]], [hidden.std(), bounded.std()], rtol=1e-6)
    assert np.isnan(data.activation_dead[0, [0, 2, 3, 4]]).all()
    assert np.isnan(data.activation_saturated[0, [0, 1, 2, 4]]).all()


def test_units_of_images_are_channels_and_of_sequences_the_last_axis() -> None:
    from glassgrad.doctor.quantities.activations import Activation, kind_of

    x = np.ones((2, 3, 4, 5))
    x[:, 1] = 0
    seen = Activation(kind_of("ReLU"))
    seen.add(x)
    assert seen.measure()["activation_dead"] == pytest.approx(1 / 3)
    seen = Activation(kind_of("ReLU"))
    seen.add(x[0])
    assert seen.measure()["activation_dead"] == 0
    seen = Activation(kind_of("ReLU"), channels_first=True)
    seen.add(x[0].swapaxes(0, 1))
    assert seen.measure()["activation_dead"] == pytest.approx(1 / 3)


def test_functions_without_a_module_are_found_where_they_enter_the_next() -> None:
    _, model = pair("functional", torch)
    x, y = (torch.tensor(part) for part in batch("functional"))
    data = watched(torch, model, x, y, 1)
    assert data.activations == ("first", "relu before second", "second", "sigmoid before third", "third")
    assert data.activation_dead[0, 1] > 0


def test_half_precision_and_sparse_gradients_of_torch_are_read() -> None:
    table = torch.nn.Embedding(5, 2, sparse=True)
    table(torch.tensor([1, 1])).sum().backward()
    assert gg.compute_gradient_norms(table).total == pytest.approx(np.sqrt(8))
    layer = torch.nn.Linear(2, 1).bfloat16()
    layer(torch.ones(1, 2, dtype=torch.bfloat16)).sum().backward()
    assert gg.compute_gradient_norms(layer).by_parameter == pytest.approx({"weight": np.sqrt(2), "bias": 1.0})


def test_norms_agree_with_torchs_own() -> None:
    _, model = pair("images", torch)
    x, y = (torch.tensor(part) for part in batch("images"))
    torch.nn.functional.cross_entropy(model(x), y).backward()
    norms = gg.compute_gradient_norms(model)
    assert norms.total == pytest.approx(float(torch.nn.utils.clip_grad_norm_(model.parameters(), 1e9)))
    assert norms.by_parameter["0.weight"] == pytest.approx(float(model[0].weight.grad.norm()))
    model[0].weight.grad = None
    assert gg.compute_gradient_norms(model).without == ("0.weight",)
