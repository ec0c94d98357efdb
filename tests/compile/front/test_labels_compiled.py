"""Class labels out of range in a compiled step: eager mode's error, before any change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.nn import functional as F

LOSSES = {
    "plain": F.cross_entropy,
    "ignored": lambda x, y: F.cross_entropy(x, y, ignore_index=2),
    "weighted": lambda x, y: F.cross_entropy(x, y, weight=gg.tensor([1.0, 2.0, 3.0]), label_smoothing=0.1),
    "nll": lambda x, y: F.nll_loss(x.log_softmax(1), y),
    "reshaped": lambda x, y: F.cross_entropy(x.view(-1, 3), y.view(6, 1).view(-1)),
}


def made(loss: str, backend: str) -> tuple[Any, Any]:
    gg.manual_seed(0)
    model = nn.Linear(4, 3)
    optimizer = optim.Adam(model.parameters(), lr=0.1)

    @gg.compile(backend=backend)
    def step(x: Any, y: Any) -> Any:
        value = LOSSES[loss](model(x), y)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        return value

    return model, step


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("wrong", [3, -1, -100000, 2**40])
def test_wrong_labels_change_nothing(loss: str, backend: str, wrong: int) -> None:
    model, step = made(loss, backend)
    x = gg.randn(6, 4)
    good = np.array([0, 1, 2, 0, 1, -100 if loss != "ignored" else 2])
    first = step(x, gg.tensor(good)).item()
    before = {name: value.numpy().copy() for name, value in model.state_dict().items()}
    bad = good.copy()
    bad[4] = wrong
    with pytest.raises(IndexError, match=rf"label {wrong} is out of range for 3 classes .*\.py:\d+"):
        step(x, gg.tensor(bad))
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name], err_msg=name)
    assert step(x, gg.tensor(good)).item() < first  # the step is as good as before
    with pytest.raises(IndexError, match=rf"label {wrong} is out of range for 3 classes"):
        LOSSES[loss](model(x), gg.tensor(bad))


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_labels_of_other_sizes(backend: str) -> None:
    for dtype in (np.int32, np.uint8):
        _, step = made("plain", backend)
        y = np.array([0, 1, 2, 0], dtype)
        step(gg.randn(4, 4), gg.tensor(y))
        y[1] = 3
        with pytest.raises((ValueError, IndexError)):
            step(gg.randn(4, 4), gg.tensor(y))


def test_an_index_from_the_end_is_still_one() -> None:
    x = gg.randn(4, 3)

    @gg.compile
    def picked(y: Any) -> Any:
        return x[gg.arange(4), gg.where(y != -100, y, 0)].sum()

    y = gg.tensor([0, -1, -100, 2])
    expected = x.numpy()[np.arange(4), [0, -1, 0, 2]].sum()
    np.testing.assert_allclose(picked(y).item(), expected, rtol=1e-6)
    with pytest.raises(IndexError, match="index 3"):
        picked(gg.tensor([0, 3, 1, 1]))


USES = {
    "cross_entropy": F.cross_entropy,
    "nll_loss": lambda x, y: F.nll_loss(x.log_softmax(1), y.long()),
    "multi_margin_loss": lambda x, y: F.multi_margin_loss(x, y.long()),
    "index": lambda x, y: (x[gg.arange(6), y.long()] ** 2).sum(),
    "index_select": lambda x, y: (x.index_select(1, y.long()) ** 2).sum(),
    "gather": lambda x, y: x.gather(1, y.long().reshape(-1, 1)).sum(),
    "scatter": lambda x, y: (x * gg.zeros(6, 3).scatter(1, y.long().reshape(-1, 1), 1.0)).sum(),
    "one_hot": lambda x, y: (x * F.one_hot(y.long(), 3)).sum(),
    "embedding": lambda x, y: (F.embedding(y.long(), x.T) ** 2).sum(),
}


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"])
@pytest.mark.parametrize("use", USES)
def test_wrong_labels_of_every_dtype_change_nothing(use: str, dtype: str, backend: str) -> None:
    gg.manual_seed(0)
    model, good = nn.Linear(4, 3), np.array([0, 1, 2, 0, 1, 2], dtype)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    x = gg.randn(6, 4)

    @gg.compile(backend=backend)
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        value = USES[use](model(x), y)
        value.backward()
        optimizer.step()
        return value

    step(x, gg.tensor(good))
    before = {name: value.numpy().copy() for name, value in model.state_dict().items()}
    limits = np.iinfo(dtype)
    for wrong in (3, 100, limits.max, -4, limits.min):
        if not limits.min <= wrong <= limits.max or 0 <= wrong < 3:
            continue
        bad = good.copy()
        bad[4] = wrong
        with pytest.raises(IndexError):
            USES[use](model(x), gg.tensor(bad))
        with pytest.raises(IndexError):
            step(x, gg.tensor(bad))
        for name, value in model.state_dict().items():
            np.testing.assert_array_equal(value.numpy(), before[name], err_msg=f"{name}, after label {wrong}")
    step(x, gg.tensor(good))
    assert any((value.numpy() != before[name]).any() for name, value in model.state_dict().items())


FROM_EITHER_END = {
    "take_along_dim": lambda x, y: gg.take_along_dim(x, y.long().reshape(-1, 1), 1).sum(),
    "take_along_dim, broadcast": lambda x, y: gg.take_along_dim(x, y.long()[:1].reshape(1, 1), 1).sum(),
    "np.take_along_axis": lambda x, y: np.take_along_axis(x, y.long().reshape(-1, 1), 1).sum(),
}


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("use", FROM_EITHER_END)
def test_an_index_beyond_either_end_changes_nothing(use: str, backend: str) -> None:
    gg.manual_seed(0)
    model = nn.Linear(4, 3)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    x = gg.randn(6, 4)

    @gg.compile(backend=backend)
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        value = FROM_EITHER_END[use](model(x), y)
        value.backward()
        optimizer.step()
        return value

    for good in (-3, -1, 0, 2):
        labels = gg.tensor(np.full(6, good))
        wanted = FROM_EITHER_END[use](model(x), labels).item()
        np.testing.assert_allclose(step(x, labels).item(), wanted, rtol=1e-5)
    before = {name: value.numpy().copy() for name, value in model.state_dict().items()}
    for wrong in (-4, 3, -100, 2**40, -(2**63), 2**63 - 1):
        labels = gg.tensor(np.full(6, wrong))
        with pytest.raises(IndexError):
            FROM_EITHER_END[use](model(x), labels)
        with pytest.raises(IndexError, match="out of range"):
            step(x, labels)
        for name, value in model.state_dict().items():
            np.testing.assert_array_equal(value.numpy(), before[name], err_msg=f"{name}, after {wrong}")


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_wrong_labels_of_a_multilabel_loss_change_nothing(backend: str) -> None:
    gg.manual_seed(0)
    model = nn.Linear(4, 3)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    x = gg.randn(2, 4)

    @gg.compile(backend=backend)
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        value = F.multilabel_margin_loss(model(x), y)
        value.backward()
        optimizer.step()
        return value

    good = np.array([[0, 2, -1], [1, -1, 0]])
    wanted = F.multilabel_margin_loss(model(x), gg.tensor(good)).item()
    np.testing.assert_allclose(step(x, gg.tensor(good)).item(), wanted, rtol=1e-5)
    before = {name: value.numpy().copy() for name, value in model.state_dict().items()}
    for wrong in (3, -2, 2**40):
        for place in ((0, 1), (1, 2)):  # one that counts, and one behind the first -1
            bad = good.copy()
            bad[place] = wrong
            with pytest.raises(IndexError):
                F.multilabel_margin_loss(model(x), gg.tensor(bad))
            with pytest.raises(IndexError):
                step(x, gg.tensor(bad))
            for name, value in model.state_dict().items():
                np.testing.assert_array_equal(value.numpy(), before[name], err_msg=name)


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_an_index_that_the_step_computes_is_no_place_from_the_end(backend: str) -> None:
    x = gg.arange(12.0).reshape(3, 4)
    total = gg.zeros(3)

    @gg.compile(backend=backend)
    def step(y: Any) -> Any:
        picked = x.gather(1, (y * 2 - 2).reshape(3, 1)).reshape(3)
        total.add_(picked)
        return picked

    assert step(gg.tensor([1, 2, 1])).tolist() == [0, 6, 8]
    with pytest.raises(IndexError):
        step(gg.tensor([1, 0, 1]))
    if backend == "numpy":  # native code notices when it has run
        assert total.tolist() == [0, 6, 8]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("width", [1, 2, 1000])
@pytest.mark.parametrize("dim", [0, 1])
def test_eager_additions_refuse_the_largest_index(dtype: Any, width: int, dim: int) -> None:
    x = gg.zeros(5, width) if dim == 0 else gg.zeros(width, 5)
    source = gg.ones(2, width) if dim == 0 else gg.ones(width, 2)
    for wrong in (5, np.iinfo(dtype).max):
        places = gg.tensor(np.array([0, wrong], dtype))
        with pytest.raises(IndexError):
            x.index_add(dim, places, source)
        with pytest.raises(IndexError):
            x.index_put((places,) if dim == 0 else (slice(None), places), source, accumulate=True)


@pytest.mark.parametrize(("backend", "threads"), [("llvm", 1), ("llvm", 2), ("numpy", 1)])
def test_an_index_that_the_step_computes_is_noticed_before_state_is_written(backend: str, threads: int) -> None:
    gg.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5))
    optimizer = optim.AdamW(model.parameters(), lr=0.1)
    table, queue, place = gg.randn(6, 4), gg.zeros(4), gg.tensor([0])

    @gg.compile(backend=backend, strict=True, **({"threads": threads} if backend == "llvm" else {}))
    def step(x: Any, chosen: Any) -> Any:
        value = (model(x * table[chosen * 2]) ** 2).mean()
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        place.add_(1)  # an index that is state itself
        queue[place - 1] = value.detach()
        return value

    def state() -> list[Any]:
        kept = [*model.state_dict().values(), *(one for slots in optimizer.state.values() for one in slots.values())]
        return [np.array(one) for one in (*kept, queue, place) if isinstance(one, gg.Tensor)]

    x = gg.randn(3, 4)
    first = step(x, gg.tensor([0, 1, 2])).item()
    before = state()
    for wrong in ([0, 1, 3], [0, -4, 1]):
        with pytest.raises(IndexError, match=r"out of range|out of bounds"):
            step(x, gg.tensor(wrong))
        for mine, kept in zip(state(), before, strict=True):
            np.testing.assert_array_equal(mine, kept)
    assert step(x, gg.tensor([0, 1, 2])).item() < first
    place.fill_(4)
    before = state()
    with pytest.raises(IndexError):
        step(x, gg.tensor([0, 1, 2]))
    for mine, kept in zip(state(), before, strict=True):
        np.testing.assert_array_equal(mine, kept)
