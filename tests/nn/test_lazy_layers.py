"""Layers that infer their number of inputs, and batch norm over several processes: against PyTorch's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, nn, optim

torch = pytest.importorskip("torch", reason="PyTorch is the oracle")

LAYERS: list[tuple[str, tuple[Any, ...], dict[str, Any], tuple[int, ...]]] = [
    ("LazyLinear", (3,), {}, (5, 4)),
    ("LazyLinear", (3,), {"bias": False}, (2, 5, 4)),
    ("LazyConv1d", (4, 3), {"padding": 1}, (2, 3, 8)),
    ("LazyConv2d", (4, 3), {"groups": 2, "stride": 2}, (2, 6, 7, 8)),
    ("LazyConv3d", (2, 2), {"bias": False}, (1, 3, 4, 4, 4)),
    ("LazyConvTranspose1d", (4, 3), {}, (2, 3, 8)),
    ("LazyConvTranspose2d", (4, 3), {"groups": 2}, (2, 6, 5, 5)),
    ("LazyConvTranspose3d", (2, 2), {}, (1, 3, 3, 3, 3)),
    ("LazyBatchNorm1d", (), {}, (5, 4)),
    ("LazyBatchNorm2d", (), {"momentum": 0.3}, (3, 2, 4, 4)),
    ("LazyBatchNorm3d", (), {"affine": False}, (2, 2, 3, 3, 3)),
]


@pytest.mark.parametrize(("name", "args", "options", "shape"), LAYERS)
def test_lazy_layers_become_what_pytorchs_do(name: str, args: Any, options: Any, shape: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch calls its own ones unstable
        theirs = getattr(torch.nn, name)(*args, **options)
    mine = getattr(nn, name)(*args, **options)
    assert mine.has_uninitialized_params()
    held = list(mine.parameters())
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    theirs(torch.tensor(x))
    found = mine(gg.tensor(x))
    assert type(mine).__name__ == type(theirs).__name__ == name.replace("Lazy", "")
    assert repr(mine) == repr(theirs)
    assert all(a is b for a, b in zip(held, mine.parameters(), strict=True))
    assert [tuple(p.shape) for p in mine.parameters()] == [tuple(p.shape) for p in theirs.parameters()]
    if "Norm" in name:  # whose parameters are not drawn
        np.testing.assert_allclose(found.detach().numpy(), theirs(torch.tensor(x)).detach().numpy(), atol=1e-5)
    theirs.load_state_dict({key: torch.tensor(np.asarray(value)) for key, value in mine.state_dict().items()})
    np.testing.assert_allclose(
        mine(gg.tensor(x)).detach().numpy(), theirs(torch.tensor(x)).detach().numpy(), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(("name", "args", "options", "shape"), LAYERS)
@pytest.mark.parametrize("assign", [False, True])
def test_lazy_layers_take_the_weights_of_others(name: str, args: Any, options: Any, shape: Any, assign: bool) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given, theirs = (torch.nn.Sequential(getattr(torch.nn, name)(*args, **options)) for _ in range(2))
    given(torch.tensor(x))
    given.eval(), theirs.eval()
    state = given.state_dict()
    mine = nn.Sequential(getattr(nn, name)(*args, **options)).eval()
    held = list(mine.parameters())
    assert str(mine.load_state_dict(state, assign=assign)) == "<All keys matched successfully>"
    theirs.load_state_dict(state)
    assert not mine[0].has_uninitialized_params()
    assert not theirs[0].has_uninitialized_params()
    np.testing.assert_allclose(mine(gg.tensor(x)).detach(), theirs(torch.tensor(x)).detach(), rtol=1e-4, atol=1e-5)
    assert repr(mine) == repr(given)
    assert all(a is b for a, b in zip(held, mine.parameters(), strict=True))
    for key, value in mine.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), state[key].numpy())


def test_loaded_weights_and_an_input_that_does_not_fit() -> None:
    layer = nn.LazyLinear(3)
    layer.load_state_dict(nn.Linear(4, 3).state_dict())
    with pytest.raises(ValueError, match="in_features=5"):
        layer(gg.zeros(2, 5))
    assert layer(gg.zeros(2, 4)).shape == (2, 3)
    other = nn.LazyLinear(3)
    other.load_state_dict(nn.LazyLinear(3).state_dict())
    assert other.has_uninitialized_params()
    bias = gg.arange(3.0)
    part = nn.LazyLinear(3)
    part.load_state_dict({"bias": bias}, strict=False)
    assert part(gg.zeros(1, 5)).tolist() == [bias.tolist()]
    assert part.weight.abs().sum() > 0
    with pytest.raises(errors.AutogradError, match="wrong shape"):
        nn.Linear(0, 3).load_state_dict(nn.Linear(4, 3).state_dict())


def test_weights_are_drawn_as_those_of_the_layer() -> None:
    gg.manual_seed(3)
    lazy = nn.LazyLinear(7)
    lazy(gg.zeros(1, 400))
    assert lazy.weight.abs().max() <= 1 / 20
    assert lazy.weight.std() > 0.9 / 20 / 3**0.5


@pytest.mark.parametrize("backend", [None, "numpy", "llvm"])
def test_an_optimizer_made_first_trains_them(backend: str | None) -> None:
    model = nn.Sequential(nn.LazyConv2d(2, 3), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(1))
    optimizer = optim.Adam(model.parameters(), lr=0.05)
    x = gg.tensor(np.random.default_rng(0).normal(size=(6, 3, 5, 5)).astype(np.float32))

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = ((model(x) - 1) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    if backend is not None:
        with pytest.raises(errors.CompileError, match="call the model once"):
            gg.compile(step, backend=backend, strict=True)(x)
        assert model[0].has_uninitialized_params()
        with pytest.warns(errors.CompileWarning, match="LazyConv2d gets its parameters from the first input"):
            gg.compile(step, backend=backend)(x)
    run = step if backend is None else gg.compile(step, backend=backend, strict=True)
    losses = [float(run(x)) for _ in range(8)]
    assert losses[-1] < 0.7 * losses[0]


def test_wrong_counts_are_refused() -> None:
    with pytest.raises(errors.ArgumentError, match="in_channels=3"):
        nn.LazyConv1d(4, 3, groups=2)(gg.zeros(1, 3, 8))


def test_batch_norms_of_several_processes() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.BatchNorm1d(3, momentum=0.2)), nn.BatchNorm1d(3))
    x = gg.tensor(np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32))
    model(x)
    wanted, state = model.eval()(x), {key: value.tolist() for key, value in model.state_dict().items()}
    turned = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert turned is model
    assert isinstance(model[1][0], nn.SyncBatchNorm)
    assert isinstance(model[2], nn.SyncBatchNorm)
    assert [type(part).__name__ for part in model] == ["Linear", "Sequential", "SyncBatchNorm"]
    np.testing.assert_array_equal(model(x).detach(), wanted.detach())
    assert {key: value.tolist() for key, value in model.state_dict().items()} == state
    alone = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm2d(4))
    assert repr(alone) == repr(torch.nn.SyncBatchNorm(4))
    assert alone(gg.ones(2, 4, 3, 3)).shape == (2, 4, 3, 3)


@pytest.mark.parametrize("name", ["LazyConv2d", "LazyConvTranspose2d"])
@pytest.mark.parametrize("shape", [(2, 8, 8), (8, 8, 8)])
def test_one_example_without_a_batch_has_its_channels_in_front(name: str, shape: tuple[int, ...]) -> None:
    ours, theirs = getattr(nn, name)(4, 3), getattr(torch.nn, name)(4, 3)
    assert tuple(ours(gg.ones(*shape)).shape) == tuple(theirs(torch.ones(shape)).shape)
    assert ours.in_channels == theirs.in_channels == shape[0]


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.LazyConv2d(4, 3), (2,)),
        (nn.LazyConv1d(4, 3), (1, 2, 3, 4)),
        (nn.LazyLinear(4), ()),
        (nn.LazyBatchNorm1d(), (2,)),
    ],
)
def test_an_input_that_has_no_such_dimension_is_refused(layer: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(errors.ArgumentError, match=rf"Lazy\w+: input='a tensor of {len(shape)} dimensions'"):
        layer(gg.zeros(*shape))
    assert layer.has_uninitialized_params()


def test_a_count_that_does_not_fit_is_not_learnt() -> None:
    layer = nn.LazyConv2d(6, 3, groups=3)
    with pytest.raises(errors.ArgumentError, match="in_channels=2"):
        layer(gg.zeros(1, 2, 8, 8))
    assert layer.has_uninitialized_params()
    assert layer(gg.zeros(1, 3, 8, 8)).shape == (1, 6, 6, 6)
