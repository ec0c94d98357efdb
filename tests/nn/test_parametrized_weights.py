"""Weights computed from others: PyTorch's state, numbers and gradients, eager, compiled, copied and undone."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import glassgrad as gg

NORMS = {
    "weight_norm": lambda t, m: t.nn.utils.weight_norm(m),
    "weight_norm:one": lambda t, m: t.nn.utils.weight_norm(m, dim=None),
    "weight_norm:dim1": lambda t, m: t.nn.utils.weight_norm(m, dim=1),
    "spectral_norm": lambda t, m: t.nn.utils.spectral_norm(m),
    "spectral_norm:rounds": lambda t, m: t.nn.utils.spectral_norm(m, n_power_iterations=3),
    "parametrizations.weight_norm": lambda t, m: t.nn.utils.parametrizations.weight_norm(m),
    "parametrizations.weight_norm:dim1": lambda t, m: t.nn.utils.parametrizations.weight_norm(m, dim=1),
    "parametrizations.spectral_norm": lambda t, m: t.nn.utils.parametrizations.spectral_norm(m),
}
MATRICES = {
    f"orthogonal:{kind}:{trivial}": lambda t, m, kind=kind, trivial=trivial: t.nn.utils.parametrizations.orthogonal(
        m, orthogonal_map=kind, use_trivialization=trivial
    )
    for kind, trivial in (("matrix_exp", True), ("cayley", True), ("householder", True), ("householder", False))
}
LAYERS = {
    "Linear": (lambda t: t.nn.Linear(3, 4), (5, 3)),
    "wide": (lambda t: t.nn.Linear(4, 2, bias=False), (5, 4)),
    "Conv1d": (lambda t: t.nn.Conv1d(2, 3, 2), (2, 2, 6)),
    "ConvTranspose2d": (lambda t: t.nn.ConvTranspose2d(2, 3, 2), (1, 2, 3, 3)),
    "Embedding": (lambda t: t.nn.Embedding(6, 3), None),
}
ROWS = [(norm, layer) for norm in NORMS for layer in LAYERS]
ROWS += [(norm, layer) for norm in MATRICES for layer in ("Linear", "wide")]


def train(t: Any, layer: Any, x: Any, step: Any = None) -> list[float]:
    optimizer = t.optim.SGD(layer.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = (step or layer)(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


@pytest.mark.filterwarnings("ignore:.*deprecated:FutureWarning")
@pytest.mark.parametrize(("norm", "layer"), ROWS)
def test_as_in_pytorch(norm: str, layer: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
    apply = (NORMS | MATRICES)[norm]
    build, shape = LAYERS[layer]
    theirs, ours = apply(torch, build(torch).double()), apply(gg, build(gg).double())
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert [name for name, _ in ours.named_parameters()] == [name for name, _ in theirs.named_parameters()]
    ours.load_state_dict({key: gg.tensor(value.numpy().copy()) for key, value in theirs.state_dict().items()})
    rng = np.random.default_rng(0)
    data = rng.integers(0, 6, (5,)) if shape is None else rng.normal(size=shape)
    other, compiled = copy.deepcopy(ours), copy.deepcopy(ours)
    expected = train(torch, theirs, torch.tensor(data))
    assert expected[0] != expected[1]
    x = gg.tensor(data)
    np.testing.assert_allclose(train(gg, ours, x), expected, rtol=1e-9)
    np.testing.assert_allclose(train(gg, other, x), expected, rtol=1e-9)
    if layer in {"Linear", "Conv1d"}:
        np.testing.assert_allclose(train(gg, compiled, x, gg.compile(compiled)), expected, rtol=1e-6)
    for key, value in theirs.state_dict().items():
        np.testing.assert_allclose(ours.state_dict()[key].numpy(), value.numpy(), rtol=1e-7, atol=1e-12, err_msg=key)
    for model in (theirs, ours):
        model.eval()
    y = theirs(torch.tensor(data)).detach().numpy()
    for twin in (ours, copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):  # noqa: S301 - our own
        assert isinstance(twin, type(build(gg)))
        np.testing.assert_allclose(twin(x).detach().numpy(), y, rtol=1e-9)


@pytest.mark.parametrize(
    ("apply", "undo"),
    [
        (NORMS["weight_norm"], gg.nn.utils.remove_weight_norm),
        (NORMS["spectral_norm"], gg.nn.utils.remove_spectral_norm),
        (NORMS["parametrizations.weight_norm"], lambda m: gg.nn.utils.parametrize.remove_parametrizations(m, "weight")),
    ],
)
def test_undoing_keeps_the_value(apply: Any, undo: Any) -> None:
    layer = apply(gg, gg.nn.Linear(3, 4)).eval()
    x = gg.randn(2, 3)
    before = layer(x).detach()
    assert undo(layer) is layer
    assert type(layer) is gg.nn.Linear
    assert list(layer.state_dict()) == ["bias", "weight"]
    assert sorted(vars(layer)) == sorted({**vars(gg.nn.Linear(3, 4)), "training": False} | vars(layer).keys())
    np.testing.assert_allclose(layer(x).detach().numpy(), before.numpy(), rtol=1e-6)


class Doubled(gg.nn.Module):
    def forward(self, x):
        return 2 * x

    def right_inverse(self, y):
        return y / 2


class Positive(gg.nn.Module):
    def forward(self, x):
        return x.exp()


def test_chains_assignment_and_removal() -> None:
    parametrize = gg.nn.utils.parametrize
    layer = gg.nn.Linear(2, 2)
    weight = layer.weight
    start = weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert layer.parametrizations.weight.original is weight  # an optimizer that has it goes on
    np.testing.assert_allclose(layer.weight.detach().numpy(), start.numpy())
    layer.weight = gg.ones(2, 2)
    assert weight.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    parametrize.register_parametrization(layer, "weight", Positive())
    np.testing.assert_allclose(layer.weight.detach().numpy(), np.e, rtol=1e-6)
    parametrize.register_parametrization(layer, "bias", Positive())
    assert repr(layer).startswith("ParametrizedLinear(")
    assert parametrize.is_parametrized(layer, "bias")
    assert parametrize.type_before_parametrizations(layer) is gg.nn.Linear
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight
    twin = parametrize.transfer_parametrizations_and_params(layer, gg.nn.Linear(2, 2), "weight")
    assert gg.equal(twin.weight, layer.weight)
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    assert layer.weight is weight
    assert parametrize.is_parametrized(layer)
    parametrize.remove_parametrizations(layer, "bias")
    assert not parametrize.is_parametrized(layer)
    assert type(layer) is gg.nn.Linear


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: gg.nn.utils.weight_norm(gg.nn.ReLU()), "ReLU has no 'weight' to which this applies"),
        (lambda: gg.nn.utils.remove_weight_norm(gg.nn.Linear(1, 1)), "Linear has no 'weight' to which this applies"),
        (
            lambda: gg.nn.utils.parametrize.register_parametrization(gg.nn.Linear(1, 1), "w", Doubled()),
            "no 'w' to which",
        ),
        (
            lambda: gg.nn.utils.parametrize.register_parametrization(gg.nn.Linear(2, 3), "weight", gg.nn.Flatten(0)),
            r"gives \(6,\) float32, expected \(3, 2\)",
        ),
        (lambda: gg.nn.utils.parametrizations.orthogonal(gg.nn.Linear(2, 3), "bias"), "at least 2 dimensions"),
        (lambda: gg.nn.utils.parametrizations.orthogonal(gg.nn.Linear(2, 3), orthogonal_map="qr"), "cayley"),
        (
            lambda: gg.nn.utils.parametrize.remove_parametrizations(
                gg.nn.utils.parametrizations.weight_norm(gg.nn.Linear(2, 3)), "weight", leave_parametrized=False
            ),
            "computed from 2 tensors",
        ),
    ],
)
def test_mistakes_are_told(use: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        use()
