"""Every layer and loss against PyTorch's: values, gradients, state and print."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn
from tests.nn.layer_cases import LAYERS, OURS, Case
from tests.nn.loss_cases import LOSSES

torch = pytest.importorskip("torch", reason="PyTorch is the oracle of these tests")

ALL = [*LAYERS, *LOSSES]


def flat(result: Any) -> list[Any]:
    """The tensors in a result, None left out."""
    if isinstance(result, tuple | list):
        return [leaf for part in result for leaf in flat(part)]
    return [] if result is None else [result]


def converted(value: Any, tensor: Any) -> Any:
    """An option or argument for one library: arrays become its tensors."""
    return tensor(value) if isinstance(value, np.ndarray) else value


def built(one: Case) -> tuple[Any, Any]:
    """Our layer and PyTorch's, with PyTorch's weights, the same in every order of the tests."""
    torch.manual_seed(0)
    theirs = getattr(torch.nn, one.name)(*one.args, **{k: converted(v, torch.tensor) for k, v in one.options.items()})
    ours = getattr(nn, one.name)(*one.args, **{k: converted(v, gg.tensor) for k, v in one.options.items()})
    with torch.no_grad():
        for parameter in theirs.parameters():  # norms start at 1 and 0, where much cannot be seen
            parameter.add_(torch.from_numpy(np.random.default_rng(3).normal(size=parameter.shape) * 0.3).to(parameter))
    ours.load_state_dict(theirs.state_dict())
    return ours.train(one.training), theirs.train(one.training)


def is_float(x: Any) -> bool:
    return x.dtype.kind == "f"


def wide(array: Any, **options: Any) -> Any:
    """A tensor of PyTorch's with all digits."""
    return torch.tensor(array.astype(np.float64) if is_float(array) else array, **options)


def called(one: Case, layer: Any, tensor: Any) -> tuple[list[Any], list[Any]]:
    """Inputs and outputs of the layer in one library."""
    arrays = one.draw()
    # One tensor where PyTorch would see one: self-attention takes another path then.
    inputs: list[Any] = []
    for at, array in enumerate(arrays):
        same = one.name == "MultiheadAttention" and at and array.shape == arrays[0].shape
        tracked = is_float(array) and not (one.frozen and at)
        inputs.append(inputs[0] if same else tensor(array, requires_grad=tracked))
    keywords = {key: converted(value, tensor) for key, value in one.keywords.items()}
    if one.name == "CTCLoss":  # PyTorch's gradient is that of the loss behind a log_softmax, even without one
        return inputs, flat(layer(inputs[0].log_softmax(-1), *inputs[1:], **keywords))
    return inputs, flat(layer(*inputs, **keywords))


def backward(outputs: list[Any], tensor: Any) -> None:
    """Backward from all outputs with the same random cotangents in both libraries."""
    rng = np.random.default_rng(11)
    total = None
    for y in outputs:
        if y.requires_grad:
            cotangent = tensor(rng.normal(size=tuple(y.shape)).astype(np.float32))
            part = (y * cotangent).sum()
            total = part if total is None else total + part
    assert total is not None
    total.backward()


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's advice
        yield


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.id)
def test_outputs_gradients_and_state(one: Case) -> None:
    ours, theirs = built(one)
    exact = copy.deepcopy(theirs).double()
    our_inputs, our_outputs = called(one, ours, gg.tensor)
    _, their_outputs = called(one, theirs, torch.tensor)
    # The truth is in float64: another library's rounding is its own.
    exact_inputs, exact_outputs = called(one, exact, wide)
    limits = {"rtol": 2e-5 * one.tolerance, "atol": 3e-6 * one.tolerance}
    assert len(our_outputs) == len(their_outputs)
    for y, expected, truth in zip(our_outputs, their_outputs, exact_outputs, strict=True):
        assert y.shape == tuple(expected.shape)
        assert y.numpy().dtype == expected.detach().numpy().dtype if not y.requires_grad else y.dtype == np.float32
        np.testing.assert_allclose(y.detach().numpy(), truth.detach().numpy(), **limits)
    if any(expected.requires_grad for expected in their_outputs):
        backward(our_outputs, gg.tensor)
        backward(exact_outputs, wide)
        for x, other in zip(our_inputs, exact_inputs, strict=True):
            assert_gradient("input", x.grad, other.grad, limits)
        expected_gradients = dict(exact.named_parameters())
        for name, parameter in ours.named_parameters():
            assert_gradient(name, parameter.grad, expected_gradients[name].grad, limits)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for name, value in exact.state_dict().items():  # running statistics have moved in both
        np.testing.assert_allclose(ours.state_dict()[name].numpy(), value.numpy(), rtol=1e-5, atol=1e-6)


def assert_gradient(name: str, ours: Any, theirs: Any, limits: dict[str, float]) -> None:
    if theirs is None:
        assert ours is None or not ours.numpy().any(), name
        return
    assert ours is not None, name
    expected = theirs.numpy()
    np.testing.assert_allclose(ours.numpy(), expected, err_msg=name, **limits)


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.id)
def test_prints_like_pytorch(one: Case) -> None:
    ours, theirs = built(one)
    expected = repr(theirs).replace("NonDynamicallyQuantizableLinear", "Linear")
    if one.name.endswith("Loss") or one.name in {"CosineSimilarity", "PairwiseDistance"}:
        assert repr(ours) == f"{one.name}()"
    else:
        assert repr(ours) == expected


@pytest.mark.parametrize("one", LAYERS, ids=lambda one: one.id)
def test_weights_are_drawn_from_the_same_distribution(one: Case) -> None:
    """Bounds and spread of PyTorch's initial weights, for layers with enough of them to tell."""
    gg.manual_seed(1)
    torch.manual_seed(1)
    ours = getattr(nn, one.name)(*one.args, **{k: converted(v, gg.tensor) for k, v in one.options.items()})
    theirs = getattr(torch.nn, one.name)(*one.args, **{k: converted(v, torch.tensor) for k, v in one.options.items()})
    for (name, a), (_, b) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        assert a.shape == tuple(b.shape)
        x, y = a.detach().numpy(), b.detach().numpy()
        if y.size < 2 or y.std() == 0:
            assert y.std() > 0 or np.array_equal(x, y), name
            continue
        spread = 3 / np.sqrt(y.size)
        assert abs(np.log((x.std() + 1e-9) / (y.std() + 1e-9))) < max(1.2 * spread, 0.25), name
    assert list(ours.state_dict()) == list(theirs.state_dict())


@pytest.mark.parametrize("one", [one for one in ALL if one.compiled and one.name != "Identity"], ids=lambda one: one.id)
def test_compiled_agrees_with_eager(one: Case) -> None:
    ours, _ = built(one)
    arrays = one.draw()
    keywords = {key: converted(value, gg.tensor) for key, value in one.keywords.items()}

    def step(*inputs: Any) -> Any:
        outputs = [y for y in flat(ours(*inputs, **keywords)) if y.dtype.kind == "f"]
        loss = sum((y * y).sum() for y in outputs)
        if loss.requires_grad:
            loss.backward()
        return loss

    def run(function: Any) -> tuple[float, list[Any]]:
        ours.zero_grad()
        inputs = [gg.tensor(array, requires_grad=is_float(array)) for array in arrays]
        loss = function(*inputs)
        found = [x.grad for x in inputs] + [parameter.grad for parameter in ours.parameters()]
        return float(loss), [None if g is None else g.numpy().copy() for g in found]

    state = {name: value.numpy().copy() for name, value in ours.state_dict().items()}
    expected, gradients = run(step)
    ours.load_state_dict(state)
    value, found = run(gg.compile(step, backend="numpy"))
    np.testing.assert_allclose(value, expected, rtol=3e-5)
    for a, b in zip(found, gradients, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=2e-5)


def test_every_layer_is_compared() -> None:
    covered = {one.name for one in [*ALL, *OURS]}
    containers = {"ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"}
    classes = {name: getattr(nn, name) for name in nn.__all__ if isinstance(getattr(nn, name), type)}
    layers = {name for name, value in classes.items() if issubclass(value, nn.Module)}
    others = {"Module", "TransformerEncoder", "TransformerDecoder"}  # inside of Transformer
    others |= {"DataParallel", "DistributedDataParallel"}  # they run the layer they are given
    others |= {"SyncBatchNorm", *(name for name in layers if name.startswith("Lazy"))}  # test_lazy_layers.py
    assert layers - covered - containers - others == set()
