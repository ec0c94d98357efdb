"""`x.unsqueeze_(0)` and related methods: the tensor itself changes its shape for all its holders, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors

torch = pytest.importorskip("torch", reason="PyTorch is the oracle")

METHODS: dict[str, tuple[tuple[int, ...], Callable[[Any], Any]]] = {
    "unsqueeze_": ((2, 3), lambda x: x.unsqueeze_(1)),
    "unsqueeze_ from behind": ((2, 3), lambda x: x.unsqueeze_(-1).unsqueeze_(dim=0)),
    "squeeze_": ((1, 2, 1, 3), lambda x: x.squeeze_()),
    "squeeze_ one": ((1, 2, 1, 3), lambda x: x.squeeze_(2)),
    "squeeze_ nothing": ((2, 3), lambda x: x.squeeze_(0)),
    "t_": ((2, 3), lambda x: x.t_()),
    "t_ of a vector": ((3,), lambda x: x.t_()),
    "transpose_": ((2, 3, 4), lambda x: x.transpose_(0, 2)),
    "swapaxes_": ((2, 3, 4), lambda x: x.swapaxes_(1, 2)),
    "swapdims_": ((2, 3, 4), lambda x: x.swapdims_(-1, 0)),
    "several": ((2, 1, 3), lambda x: x.transpose_(0, 2).squeeze_(1).t_().unsqueeze_(0)),
}
Change = Callable[[Any], Any]


def a_value(x: Any, change: Change) -> Any:
    return change(x * 2)


def used_before_and_after(x: Any, change: Change) -> Any:
    y = x * 2
    before = y.exp().sum()
    return before + (change(y) ** 2).sum()


def written_after(x: Any, change: Change) -> Any:
    y = x * 2
    return change(y).mul_(3) * y


def an_older_view(x: Any, change: Change) -> Any:
    y = x * 2
    v = y[0]
    return (change(y) ** 2).sum() + v.exp().sum()


def an_older_view_is_written(x: Any, change: Change) -> Any:
    y = x * 2
    v = y[0]
    change(y)
    v.mul_(5)
    return (y * y).sum()


def a_view_is_written(x: Any, change: Change) -> Any:
    y = x * 2
    v = y[0]
    change(y)
    y[0].mul_(5)
    return (y * y).sum() + (v * 3).sum()


def itself_a_view(x: Any, change: Change) -> Any:
    y = x * 2
    whole = y[None] * 1
    part = whole[0]
    change(part)
    part.mul_(4)
    return (whole * whole).sum() + part.sum()


USES = (
    a_value, used_before_and_after, written_after, an_older_view, an_older_view_is_written, a_view_is_written,
    itself_a_view,
)  # fmt: skip  # a table


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("method", METHODS)
def test_shapes_values_and_gradients_are_those_of_pytorch(method: str, use: Any) -> None:
    shape, change = METHODS[method]
    array = np.random.default_rng(0).normal(size=shape)
    mine, theirs = gg.tensor(array, requires_grad=True), torch.tensor(array, requires_grad=True)
    found, wanted = use(mine, change), use(theirs, change)
    assert tuple(found.shape) == tuple(wanted.shape)
    np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol=1e-13)
    found.sum().backward()
    wanted.sum().backward()
    np.testing.assert_allclose(mine.grad.numpy(), theirs.grad.numpy(), rtol=1e-13)


@pytest.mark.parametrize("method", METHODS)
def test_the_object_stays_the_same_and_shares_memory(method: str) -> None:
    shape, change = METHODS[method]
    for kind in (gg.tensor, torch.tensor):
        x = kind(np.arange(float(np.prod(shape))).reshape(shape))
        first = x[0]
        assert change(x) is x
        first.zero_()
        assert float(x.sum()) == float(kind(np.arange(float(np.prod(shape))).reshape(shape)[1:].sum()))


def test_leaves_that_are_recorded_are_refused_and_parameters_can_turn() -> None:
    for kind, error in ((gg.tensor, errors.AutogradError), (torch.tensor, RuntimeError)):
        w = kind([[1.0, 2.0, 3.0]], requires_grad=True)
        with pytest.raises(error):
            w.t_()
        with gg.no_grad(), torch.no_grad():
            w.t_()
        assert tuple(w.shape) == (3, 1)
        assert w.requires_grad
        (w * kind([[1.0], [2.0], [4.0]])).sum().backward()
        assert w.grad.tolist() == [[1.0], [2.0], [4.0]]


def test_impossible_shapes_change_nothing() -> None:
    x = gg.ones(2, 3, 4)
    for call in (x.t_, lambda: x.unsqueeze_(9), lambda: x.transpose_(0, 5)):
        with pytest.raises(errors.GlassgradError):
            call()
    assert x.shape == (2, 3, 4)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_compiled_and_batched(backend: str) -> None:
    def run(x: Any) -> Any:
        y = x * 2
        first = y[0]
        y.unsqueeze_(0).transpose_(1, 2)
        first.add_(1)
        return y.squeeze_(0).t_() * 3

    x = gg.tensor(np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(gg.compile(run, backend=backend, strict=True)(x), run(x))
    turned = gg.func.vmap(lambda v: (v * 2).unsqueeze_(0).transpose_(0, 1))(x)
    np.testing.assert_array_equal(turned, (x * 2)[:, :, None])


def test_state_that_changes_its_shape_runs_eagerly() -> None:
    x, kept = gg.arange(6.0), gg.ones(1, 6)

    def step(v: Any) -> Any:
        kept.squeeze_()
        return v * kept

    with pytest.warns(errors.CompileWarning, match="shape"):
        assert gg.compile(step)(x).shape == (6,)
    assert kept.shape == (6,)
