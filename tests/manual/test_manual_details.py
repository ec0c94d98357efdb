"""Details beyond the registry's test: protocols, modes, state, edges, dtypes, and real training."""

from __future__ import annotations

import re

import numpy as np
import pytest

from glassgrad import errors, manual
from glassgrad.manual import registry


class Square:
    """A user's own layer: the protocol without our base class."""

    def forward(self, x):
        self.x = x
        return x * x

    __call__ = forward

    def backward(self, dout):
        return 2 * self.x * dout

    def parameters(self):
        return []


def test_protocols_are_met_by_structure():
    assert isinstance(Square(), manual.Layer)
    assert not isinstance(object(), manual.Layer)
    for entry in registry.LAYERS:
        assert isinstance(entry.build(), manual.Layer), entry.name
    for entry in registry.LOSSES:
        assert isinstance(entry.build(), manual.Loss), entry.name
    for entry in registry.OPTIMIZERS:
        assert isinstance(entry.build(parameters=[manual.Parameter(np.ones(2))]), manual.Optimizer), entry.name


NOT_ENTRIES = {"Layer", "Loss", "Module", "Net", "Optimizer", "Parameter"}


def test_every_public_class_is_in_the_registry():
    entries = {entry.kind.__name__ for entry in (*registry.LAYERS, *registry.LOSSES, *registry.OPTIMIZERS)}
    assert entries == {name for name in manual.__all__ if isinstance(getattr(manual, name), type)} - NOT_ENTRIES


def test_every_entry_derives_its_gradient_in_its_docstring():
    for entry in (*registry.LAYERS, *registry.LOSSES):
        assert re.search(r"\bd[a-zA-Z][^=]* \+?= ", entry.kind.__doc__), entry.name


@pytest.mark.parametrize("entry", registry.LAYERS, ids=lambda entry: entry.name)
def test_float32_stays_float32(entry):
    rng = np.random.default_rng(0)
    inputs = [x.astype(np.float32) if x.dtype.kind == "f" else x for x in entry.inputs(rng)]
    layer = entry.build()
    out = layer(*inputs)
    assert out.dtype == np.float32
    dx = layer.backward(np.ones_like(out))
    grads = [*(dx if isinstance(dx, tuple) else [dx]), *(p.grad for p in layer.parameters())]
    assert {grad.dtype for grad in grads if grad is not None} <= {np.dtype(np.float32)}


def test_a_net_chains_layers_in_reverse_and_takes_foreign_ones():
    rng = np.random.default_rng(0)
    net = manual.Net(
        manual.Linear(3, 4, rng=rng, dtype=np.float64), Square(), manual.Linear(4, 2, rng=rng, dtype=np.float64)
    )
    x = rng.standard_normal((5, 3))
    first, last = net[0], net[2]
    hidden = x @ first.weight.data.T + first.bias.data
    np.testing.assert_allclose(net(x), hidden**2 @ last.weight.data.T + last.bias.data)
    dout = rng.standard_normal((5, 2))
    dx = net.backward(dout)
    dhidden = 2 * hidden * (dout @ last.weight.data)
    np.testing.assert_allclose(dx, dhidden @ first.weight.data)
    np.testing.assert_allclose(first.weight.grad, dhidden.T @ x)
    assert len(net) == 3
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert len(net.parameters()) == 4


def test_gradients_accumulate_until_they_are_forgotten():
    layer = manual.Linear(2, 1)
    x = np.ones((3, 2), np.float32)
    for _ in range(2):
        layer.backward(np.ones_like(layer(x)))
    assert layer.weight.grad.tolist() == [[6.0, 6.0]]
    layer.zero_grad()
    assert layer.weight.grad is None


def test_dropout_keeps_the_mean_and_is_off_in_evaluation():
    layer = manual.Dropout(0.3, rng=np.random.default_rng(0))
    x = np.ones((200, 200))
    y = layer(x)
    assert set(np.unique(y)) == {0.0, 1 / 0.7}
    assert y.mean() == pytest.approx(1.0, abs=0.02)
    assert np.array_equal(layer.backward(x), y)
    layer.eval()
    assert layer(x) is x
    assert layer.backward(x) is x


def test_batch_norm_modes_and_running_statistics():
    rng = np.random.default_rng(0)
    layer = manual.BatchNorm1d(3, momentum=0.5)
    x = rng.normal(2.0, 3.0, (50, 3))
    y = layer(x)
    np.testing.assert_allclose(y.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(y.std(axis=0), 1, rtol=1e-5)
    np.testing.assert_allclose(layer.running_mean, 0.5 * x.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(layer.running_var, 0.5 + 0.5 * x.var(axis=0, ddof=1), rtol=1e-6)
    for _ in range(30):
        layer(x)
    assert layer.num_batches_tracked == 31
    np.testing.assert_allclose(layer.eval()(x).mean(axis=0), 0, atol=1e-5)
    with pytest.raises(errors.ShapeError, match="one number per channel"):
        layer.train()(x[:1])


def test_embedding_adds_up_repeated_rows():
    layer = manual.Embedding(5, 2)
    layer(np.array([[1, 1], [3, 1]]))
    assert layer.backward(np.ones((2, 2, 2), np.float32)) is None
    assert layer.weight.grad.tolist() == [[0, 0], [3, 3], [0, 0], [1, 1], [0, 0]]
    layer.zero_grad()
    layer(np.zeros((0, 3), int))
    layer.backward(np.zeros((0, 3, 2), np.float32))
    assert not layer.weight.grad.any()


def test_max_pool_ties_nan_and_overlap():
    layer = manual.MaxPool2d(2)
    layer(np.ones((1, 1, 2, 2)))
    assert layer.backward(np.full((1, 1, 1, 1), 5.0))[0, 0].tolist() == [[5.0, 0.0], [0.0, 0.0]]
    x = np.array([[[[1.0, np.nan], [3.0, 2.0]]]])
    assert np.isnan(layer(x)).all()
    assert layer.backward(np.ones((1, 1, 1, 1)))[0, 0].tolist() == [[0.0, 1.0], [0.0, 0.0]]
    overlapping = manual.MaxPool2d(2, stride=1)
    overlapping(np.array([[[[0.0, 1.0, 0.0], [0.0, 9.0, 0.0], [0.0, 1.0, 0.0]]]]))
    assert overlapping.backward(np.ones((1, 1, 2, 2)))[0, 0, 1, 1] == 4.0


def test_attention_with_masks_against_torch():
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle of this test")
    rng = np.random.default_rng(0)
    qkv = [rng.standard_normal((2, 4, 3)) for _ in range(3)]
    allowed = rng.random((4, 4)) < 0.6
    allowed[:, 0] = True
    for mask in (allowed, rng.standard_normal((2, 4, 4))):
        layer = manual.ScaledDotProductAttention()
        tensors = [torch.tensor(x, requires_grad=True) for x in qkv]
        expected = torch.nn.functional.scaled_dot_product_attention(*tensors, attn_mask=torch.tensor(mask))
        out = layer(*qkv, mask)
        np.testing.assert_allclose(out, expected.detach().numpy(), rtol=1e-12)
        expected.sum().backward()
        for dx, tensor in zip(layer.backward(np.ones_like(out)), tensors, strict=True):
            np.testing.assert_allclose(dx, tensor.grad.numpy(), rtol=1e-10, atol=1e-13)


def test_losses_at_the_edges():
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle of this test")
    p, t = np.array([0.0, 1.0, 1.0, 0.5]), np.array([1.0, 0.0, 1.0, 1.0])
    tensor = torch.tensor(p, requires_grad=True)
    expected = torch.nn.BCELoss()(tensor, torch.tensor(t))
    expected.backward()
    loss = manual.BCELoss()
    assert loss(p, t) == pytest.approx(expected.item())
    np.testing.assert_allclose(loss.backward(), tensor.grad.numpy())
    big = np.array([1000.0, -1000.0])
    loss = manual.BCEWithLogitsLoss()
    assert loss(big, np.array([1.0, 0.0])) == 0.0
    assert loss(big, np.array([0.0, 1.0])) == 1000.0
    np.testing.assert_allclose(loss.backward(), [0.5, -0.5])
    entropy = manual.CrossEntropyLoss()
    assert entropy(np.array([[1000.0, 0.0]]), np.array([1])) == 1000.0
    assert np.isfinite(entropy.backward()).all()


def test_state_goes_out_and_in_by_pytorchs_names():
    rng = np.random.default_rng(0)
    make = lambda: manual.Net(manual.Linear(2, 3, rng=rng), manual.BatchNorm1d(3), manual.Tanh())
    first, second = make(), make()
    x = rng.standard_normal((4, 2))
    first(x)
    assert list(first.state_dict()) == [
        "0.weight",
        "0.bias",
        "1.weight",
        "1.bias",
        "1.running_mean",
        "1.running_var",
        "1.num_batches_tracked",
    ]
    second.load_state_dict(first.state_dict())
    assert np.array_equal(first.eval()(x), second.eval()(x))
    state = first.state_dict() | {"0.weight": np.zeros((9, 9)), "extra": np.zeros(1)}
    del state["1.bias"]
    with pytest.raises(errors.ArgumentError) as caught:
        second.load_state_dict(state)
    for line in ("extra: no such name", "0.weight: shape (9, 9), expected (3, 2)", "1.bias: missing"):
        assert line in str(caught.value)


def test_messages():
    x = np.ones((2, 3))
    with pytest.raises(errors.ShapeError, match=r"Linear: input of shape \(2, 3\), expected \(..., 4\)"):
        manual.Linear(4, 2)(x)
    for layer in (manual.BatchNorm1d(4), manual.LayerNorm(4), manual.Conv2d(3, 1, 1)):
        with pytest.raises(errors.ShapeError, match=type(layer).__name__):
            layer(x)
    with pytest.raises(errors.ArgumentError, match="0 <= p < 1"):
        manual.Dropout(1.0)
    with pytest.raises(errors.ArgumentError, match="'none' or 'tanh'"):
        manual.GELU("exact")
    with pytest.raises(errors.ArgumentError, match="reduction='none'"):
        manual.MSELoss("none")
    with pytest.raises(errors.ShapeError, match=r"MSELoss: target of shape \(2,\)"):
        manual.MSELoss()(x, np.ones(2))
    with pytest.raises(errors.ShapeError, match="class numbers"):
        manual.CrossEntropyLoss()(x, np.ones((2, 3)))
    with pytest.raises(errors.ArgumentError, match="no parameters"):
        manual.Adam([])
    for wrong in (-1, 3):  # -1 would be the last row, and its gradient would overwrite that of row 2
        with pytest.raises(errors.IndexRangeError, match=f"Embedding: index {wrong} is out of range"):
            manual.Embedding(3, 2)(np.array([2, wrong]))
        for loss in (manual.CrossEntropyLoss(), manual.NLLLoss()):
            with pytest.raises(errors.IndexRangeError, match=f"{type(loss).__name__}: label {wrong}"):
                loss(x, np.array([0, wrong]))


# --- training -----------------------------------------------------------------------------------


def names_of(folder):
    words = (folder / "names.txt").read_text(encoding="utf-8").split()
    letters = {letter: i for i, letter in enumerate("." + "abcdefghijklmnopqrstuvwxyz")}
    contexts, targets = [], []
    for word in words[:6000]:
        codes = [0, 0, 0, *(letters[c] for c in word), 0]
        for i in range(3, len(codes)):
            contexts.append(codes[i - 3 : i])
            targets.append(codes[i])
    return np.array(contexts), np.array(targets)


def test_names_are_learnt_by_hand_written_layers(data_dir):
    """The names MLP: the loss of a uniform guess is log 27 = 3.30; letter frequencies alone reach about 2.85."""
    contexts, targets = names_of(data_dir)
    rng = np.random.default_rng(0)
    net = manual.Net(
        manual.Embedding(27, 10, rng=rng),
        manual.Flatten(),
        manual.Linear(30, 100, bias=False, rng=rng),
        manual.BatchNorm1d(100),
        manual.Tanh(),
        manual.Linear(100, 27, rng=rng),
    )
    loss, optimizer = manual.CrossEntropyLoss(), manual.SGD(net.parameters(), lr=0.2)
    for _ in range(800):
        rows = rng.integers(0, len(targets), 64)
        optimizer.zero_grad()
        loss(net(contexts[rows]), targets[rows])
        net.backward(loss.backward())
        optimizer.step()
    assert loss(net.eval()(contexts), targets) < 2.4


def test_digits_are_learnt_by_a_small_convolutional_net():
    """Three shapes in noise, told apart by convolution, pooling and dropout."""
    rng = np.random.default_rng(0)
    shapes = np.zeros((3, 8, 8), np.float32)
    shapes[0, 3:5, :] = shapes[1, :, 3:5] = 1
    shapes[2][np.eye(8, dtype=bool)] = 2
    labels = rng.integers(0, 3, 300)
    images = (shapes[labels] + rng.normal(0, 0.4, (300, 8, 8))).astype(np.float32)[:, None]
    net = manual.Net(
        manual.Conv2d(1, 6, 3, padding=1, rng=rng),
        manual.ReLU(),
        manual.MaxPool2d(2),
        manual.Flatten(),
        manual.Dropout(0.2, rng=rng),
        manual.Linear(6 * 16, 3, rng=rng),
    )
    loss, optimizer = manual.CrossEntropyLoss(), manual.Adam(net.parameters(), lr=0.01)
    for _ in range(40):
        rows = rng.integers(0, 200, 50)
        optimizer.zero_grad()
        loss(net(images[rows]), labels[rows])
        net.backward(loss.backward())
        optimizer.step()
    assert (net.eval()(images[200:]).argmax(axis=1) == labels[200:]).mean() > 0.97


def test_a_net_takes_its_layers_one_by_one() -> None:
    layers = [manual.Linear(2, 3), manual.Tanh()]
    with pytest.raises(errors.KindError, match=r"argument 0 is of type list.\nNext: manual.Net\(\*layers\)"):
        manual.Net(layers)
    with pytest.raises(errors.KindError, match=r"argument 1 is of type ufunc"):
        manual.Net(layers[0], np.tanh)
    assert manual.Net(*layers)(np.zeros((1, 2), np.float32)).shape == (1, 3)
