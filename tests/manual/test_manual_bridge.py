"""Hand-written layers as ops of the tape, and the twins of nn modules."""

from __future__ import annotations

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, manual, nn
from glassgrad.manual import registry

LAYERS = {entry.name: entry for entry in registry.LAYERS}


def tensors_of(entry):
    return [gg.tensor(x, requires_grad=x.dtype.kind == "f") for x in entry.inputs(np.random.default_rng(3))]


@pytest.mark.parametrize("name", [name for name, entry in LAYERS.items() if entry.deterministic])
def test_a_layer_as_an_op_gives_its_own_gradients(name):
    entry = LAYERS[name]
    layer = entry.build()
    for parameter in layer.parameters():
        parameter.data = np.random.default_rng(1).standard_normal(parameter.shape)
    op, inputs = manual.as_function(layer), tensors_of(entry)
    out = op(*inputs)
    weight = np.random.default_rng(2).standard_normal(out.shape)
    if out.requires_grad:
        (out * gg.tensor(weight)).sum().backward()
    direct = entry.build()
    for own, other in zip(direct.parameters(), layer.parameters(), strict=True):
        own.data = other.data
    arrays = [x.detach().numpy() for x in inputs]
    np.testing.assert_allclose(out.detach().numpy(), direct(*arrays))
    found = direct.backward(weight)
    for x, dx in zip(inputs, found if isinstance(found, tuple) else (found,), strict=True):
        if dx is not None:
            np.testing.assert_allclose(x.grad.numpy(), dx)
    for tensor, own, other in zip(op.parameters(), direct.parameters(), layer.parameters(), strict=True):
        np.testing.assert_allclose(tensor.grad.numpy(), own.grad)
        assert other.grad is None  # the layer's own is left to those who use it by hand


def test_one_op_used_twice_before_backward():
    """Each use keeps what it saved; the parameter's gradient is the sum."""
    rng = np.random.default_rng(0)
    op = manual.as_function(manual.Linear(3, 3, dtype=np.float64, rng=rng))
    weight, bias = op.parameters()
    x = gg.tensor(rng.standard_normal((2, 3)))
    op(op(x)).sum().backward()
    w, b, y = (gg.tensor(t.detach().numpy(), requires_grad=True) for t in (weight, bias, x))
    ((y @ w.T + b) @ w.T + b).sum().backward()
    np.testing.assert_allclose(weight.grad.numpy(), w.grad.numpy())
    np.testing.assert_allclose(bias.grad.numpy(), b.grad.numpy())


def test_ops_train_together_with_tensors():
    """A hand-written layer between two of the engine's, with the engine's optimizer."""
    rng = np.random.default_rng(0)
    hidden = manual.as_function(manual.Linear(8, 8, rng=rng))
    act = manual.as_function(manual.Tanh())
    first, last = nn.Linear(2, 8), nn.Linear(8, 1)
    optimizer = gg.optim.Adam([*first.parameters(), *hidden.parameters(), *last.parameters()], lr=0.02)
    x = rng.normal(size=(64, 2)).astype(np.float32)
    target = gg.tensor(x[:, :1] * x[:, 1:])
    losses = []
    for _ in range(150):
        optimizer.zero_grad()
        loss = ((last(act(hidden(first(gg.tensor(x))))) - target) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]
    assert np.shares_memory(hidden.layer.weight.data, hidden.parameters()[0].detach().numpy())


def test_a_users_own_layer_and_a_mask_as_an_extra_input():
    class Double:
        def forward(self, x):
            return 2 * x

        __call__ = forward

        def backward(self, dout):
            return 2 * dout

        def parameters(self):
            return []

    x = gg.tensor([1.0, 2.0], requires_grad=True)
    manual.as_function(Double())(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    qkv = [gg.randn(1, 3, 4, requires_grad=True) for _ in range(3)]
    mask = np.tri(3, dtype=bool)
    manual.as_function(manual.ScaledDotProductAttention())(*qkv, mask).sum().backward()
    assert all(t.grad.shape == (1, 3, 4) for t in qkv)
    with pytest.raises(errors.KindError, match="int is not a hand-written layer"):
        manual.as_function(3)


# --- twins --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LAYERS)
def test_the_twin_of_a_module_computes_the_same(name):
    entry = LAYERS[name]
    kind = getattr(nn, entry.kind.__name__, None)
    if kind is None:
        pytest.skip("no such layer in nn")
    module = kind(*entry.args, **entry.options).double()
    module.eval()
    inputs = tensors_of(entry)
    twin = manual.twin(module)
    assert type(twin) is entry.kind
    out = twin(*(x.detach().numpy() for x in inputs))
    np.testing.assert_allclose(out, module(*inputs).detach().numpy(), rtol=1e-12, atol=1e-13)


def test_the_twin_of_a_network_trains_like_it():
    model = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 2))
    net = manual.twin(model)
    assert repr(net) == "Net(Linear, BatchNorm1d, Tanh, Linear)"
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(16, 3)).astype(np.float32), rng.integers(0, 2, 16)
    mine, theirs = manual.SGD(net.parameters(), lr=0.1), gg.optim.SGD(model.parameters(), lr=0.1)
    by_hand, by_tape = manual.CrossEntropyLoss(), nn.CrossEntropyLoss()
    for _ in range(5):
        mine.zero_grad()
        theirs.zero_grad()
        loss = by_hand(net(x), y)
        net.backward(by_hand.backward())
        other = by_tape(model(gg.tensor(x)), gg.tensor(y))
        other.backward()
        mine.step()
        theirs.step()
        assert loss == pytest.approx(other.item(), rel=1e-5)
    for key, value in net.state_dict().items():
        np.testing.assert_allclose(value, model.state_dict()[key].numpy(), rtol=1e-4, atol=1e-6)


def test_a_module_shows_its_twin():
    text = manual.show_twin(nn.Linear(2, 3))
    assert text.startswith("# glassgrad.manual.Linear, the twin of nn.Linear")
    for part in ("dW = dyᵀ x", "def forward(self, x", "def backward(self, dout", "self.weight.accumulate(dy.T @ x)"):
        assert part in text
    both = manual.show_twin(nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)))
    assert both.count("# glassgrad.manual.") == 2
    assert manual.show_twin(nn.CrossEntropyLoss).count("softmax(x) - onehot(t)") == 1
    with pytest.raises(errors.KindError, match="Identity has no hand-written counterpart"):
        manual.twin(nn.Identity())
    with pytest.raises(errors.KindError, match="Identity"):
        manual.show_twin(nn.Identity())
