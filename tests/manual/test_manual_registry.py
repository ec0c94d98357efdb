"""Every hand-written layer, loss and optimizer: against finite differences, PyTorch, and our own twins."""

from __future__ import annotations

import numpy as np
import pytest

from glassgrad import manual
from glassgrad.manual import registry
from glassgrad.manual.registry import Entry

LAYERS = {entry.name: entry for entry in registry.LAYERS}
LOSSES = {entry.name: entry for entry in registry.LOSSES}
OPTIMIZERS = {entry.name: entry for entry in registry.OPTIMIZERS}


def build(entry: Entry):
    """A layer in float64, its parameters drawn so that none is at a special value such as 0 or 1."""
    layer = entry.build()
    rng = np.random.default_rng(7)
    for parameter in layer.parameters():
        parameter.data = rng.uniform(0.3, 1.2, parameter.shape) * rng.choice([-1, 1], parameter.shape)
    return layer


def inputs_of(entry: Entry):
    return tuple(entry.inputs(np.random.default_rng(3)))


def run(entry, layer, inputs):
    if not entry.deterministic:
        layer.rng = np.random.default_rng(11)
    return layer(*inputs)


def central_difference(function, array, weight):
    """Gradient of sum(weight * function()) with respect to `array`, which function reads."""
    grad = np.zeros_like(array)
    h = 1e-6
    for index in np.ndindex(array.shape):
        kept = array[index]
        array[index] = kept + h
        up = np.sum(weight * function())
        array[index] = kept - h
        down = np.sum(weight * function())
        array[index] = kept
        grad[index] = (up - down) / (2 * h)
    return grad


def as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_layer_against_finite_differences(name, training):
    entry = LAYERS[name]
    layer, inputs = build(entry).train(training), inputs_of(entry)
    out = run(entry, layer, inputs)
    dout = np.random.default_rng(5).standard_normal(out.shape)
    run(entry, layer, inputs)
    given = as_tuple(layer.backward(dout))
    grads = [p.grad for p in layer.parameters()]

    def again():
        return run(entry, layer, inputs)

    for x, dx in zip(inputs, given, strict=True):
        if x.dtype.kind == "i":
            assert dx is None
            continue
        assert dx.shape == x.shape
        assert dx.dtype == np.float64
        np.testing.assert_allclose(dx, central_difference(again, x, dout), rtol=1e-6, atol=1e-7)
    for parameter, grad in zip(layer.parameters(), grads, strict=True):
        assert grad.shape == parameter.shape
        np.testing.assert_allclose(grad, central_difference(again, parameter.data, dout), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", LOSSES)
def test_loss_against_finite_differences(name):
    entry = LOSSES[name]
    loss, (prediction, target) = entry.build(), inputs_of(entry)
    value = loss(prediction, target)
    assert isinstance(value, float)
    grad = loss.backward(3.0)
    expected = central_difference(lambda: np.float64(loss(prediction, target)), prediction, 3.0)
    np.testing.assert_allclose(grad, expected, rtol=1e-6, atol=1e-7)


# --- PyTorch, and our own nn -------------------------------------------------------------------
# Both have the same names, so that one test holds a layer against either.


class Torch:
    """PyTorch as an oracle."""

    def __init__(self):
        self.library = pytest.importorskip("torch", reason="PyTorch is the oracle of this test")
        self.nn, self.optim = self.library.nn, self.library.optim

    def tensor(self, array, requires_grad):
        return self.library.tensor(array, requires_grad=requires_grad)

    def numbers(self, tensor):
        return tensor.detach().numpy()


class Ours(Torch):
    """Our own nn and optim, which differentiate by the tape."""

    def __init__(self):
        self.library = pytest.importorskip("glassgrad", reason="the engine is the twin of this test")
        self.nn = pytest.importorskip("glassgrad.nn", reason="nn is the twin of this test")
        self.optim = pytest.importorskip("glassgrad.optim", reason="optim is the twin of this test")


ORACLES = {"torch": Torch, "ours": Ours}


def twin_of(oracle, entry, layer):
    """The oracle's layer with the same parameters, as a function of its inputs, and its parameters."""
    if entry.kind is manual.ScaledDotProductAttention:
        attention = getattr(oracle.nn.functional, "scaled_dot_product_attention", None)
        if attention is None:
            pytest.skip("no scaled_dot_product_attention there")
        return (lambda *qkv: attention(*qkv, **entry.options)), []
    kind = getattr(oracle.nn, entry.twin or entry.kind.__name__, None)
    if kind is None:
        pytest.skip("no such layer there")
    theirs = kind(*entry.args, **entry.options).double().train(layer.training)
    theirs.load_state_dict(
        {key: oracle.tensor(value, requires_grad=False) for key, value in layer.state_dict().items()}
    )
    return theirs, list(theirs.parameters())


@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", [name for name, entry in LAYERS.items() if entry.deterministic])
def test_layer_against_its_twin(name, training, oracle):
    oracle, entry = ORACLES[oracle](), LAYERS[name]
    layer, inputs = build(entry).train(training), inputs_of(entry)
    theirs, their_parameters = twin_of(oracle, entry, layer)
    tensors = [oracle.tensor(x, requires_grad=x.dtype.kind == "f") for x in inputs]
    expected, out = theirs(*tensors), layer(*inputs)
    np.testing.assert_allclose(out, oracle.numbers(expected), rtol=1e-11, atol=1e-12)
    dout = np.random.default_rng(5).standard_normal(out.shape)
    if expected.requires_grad:
        expected.backward(oracle.tensor(dout, requires_grad=False))
    for dx, tensor in zip(as_tuple(layer.backward(dout)), tensors, strict=True):
        if dx is not None:
            np.testing.assert_allclose(dx, oracle.numbers(tensor.grad), rtol=1e-10, atol=1e-12)
    for own, other in zip(layer.parameters(), their_parameters, strict=True):
        np.testing.assert_allclose(own.grad, oracle.numbers(other.grad), rtol=1e-10, atol=1e-12)
    if their_parameters:  # names and values of the whole state, running statistics included
        state = {key: oracle.numbers(value) for key, value in theirs.state_dict().items()}
        assert list(layer.state_dict()) == list(state)
        for key, value in layer.state_dict().items():
            np.testing.assert_allclose(value, state[key], rtol=1e-6)


@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize("name", LOSSES)
def test_loss_against_its_twin(name, oracle):
    oracle, entry = ORACLES[oracle](), LOSSES[name]
    kind = getattr(oracle.nn, entry.kind.__name__, None)
    if kind is None:
        pytest.skip("no such loss there")
    loss, (prediction, target) = entry.build(), inputs_of(entry)
    tensor = oracle.tensor(prediction, requires_grad=True)
    expected = kind(**entry.options)(tensor, oracle.tensor(target, requires_grad=False))
    expected.backward()
    assert loss(prediction, target) == pytest.approx(expected.item(), rel=1e-12)
    np.testing.assert_allclose(loss.backward(), oracle.numbers(tensor.grad), rtol=1e-11, atol=1e-13)


def descend(parameters, optimizer, backward):
    """Ten steps down a bowl with different curvatures; at the third one a parameter has no gradient."""
    curvature = [np.array([1.0, 3.0, 0.1]), np.array([[2.0], [0.5]])]
    for number in range(10):
        optimizer.zero_grad()
        for parameter, c in list(zip(parameters, curvature, strict=True))[number == 2 :]:
            backward(parameter, c)
        optimizer.step()


@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer_against_its_twin(name, oracle):
    oracle, entry = ORACLES[oracle](), OPTIMIZERS[name]
    start = [np.array([1.0, -2.0, 3.0]), np.array([[0.5], [4.0]])]

    theirs = [oracle.tensor(array.copy(), requires_grad=True) for array in start]
    kind = getattr(oracle.optim, entry.twin or entry.kind.__name__)
    descend(
        theirs,
        kind(theirs, **entry.options),
        lambda p, c: (oracle.tensor(0.5 * c, requires_grad=False) * p * p).sum().backward(),
    )
    mine = [manual.Parameter(array.copy()) for array in start]
    descend(mine, entry.build(parameters=mine), lambda p, c: p.accumulate(c * p.data))
    for own, other in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(own.data, oracle.numbers(other), rtol=1e-10)
