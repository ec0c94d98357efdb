"""Memory maps, matrices, masked arrays and other subclasses of `ndarray`: shared memory, or a refusal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from tests.ops.against_torch import torch

pytestmark = pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")


class Own(np.ndarray):
    """What a user might derive."""


KINDS: dict[str, Callable[[], Any]] = {
    "memmap": lambda: None,
    "matrix": lambda: np.asmatrix(np.arange(1.0, 5.0).reshape(2, 2)),
    "own": lambda: np.arange(1.0, 5.0).reshape(2, 2).view(Own),
    "recarray": lambda: np.arange(1.0, 5.0).reshape(2, 2).view(np.recarray),
    "no mask": lambda: np.ma.masked_array(np.arange(1.0, 5.0).reshape(2, 2)),
}


def mapped(folder: Path, mode: Any = "r+") -> Any:
    path = folder / "numbers"
    if not path.exists():
        np.arange(1.0, 5.0).tofile(path)
    return np.memmap(path, dtype=np.float64, mode=mode, shape=(2, 2))


@pytest.fixture(params=KINDS)
def array(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return mapped(tmp_path) if request.param == "memmap" else KINDS[request.param]()


WRITES: dict[str, Callable[[Any], Any]] = {
    "add_": lambda t: t.add_(1),
    "setitem": lambda t: t.__setitem__(0, 9.0),
    "view": lambda t: t.view(-1)[1:3].mul_(3),
    "transposed": lambda t: t.T[1].zero_(),
    "fill_": lambda t: t.fill_(5.0),
    "operator": lambda t: t.__imul__(2),
    "uniform_": lambda t: t.uniform_(),
    "init": lambda t: gg.nn.init.constant_(t, 3.0),
    "compiled": gg.compile(lambda x: x.mul_(5)),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("make", [gg.from_numpy, gg.as_tensor, gg.Tensor])
def test_writes_reach_the_memory(array: Any, make: Callable[[Any], Any], write: Callable[[Any], Any]) -> None:
    before = np.array(array)
    t = make(array)
    assert type(t.array) is np.ndarray
    write(t)
    assert not np.array_equal(before, np.asarray(array))
    np.testing.assert_array_equal(t.numpy(), np.asarray(array))
    array[1, 1] = -7.0
    assert t[1, 1].item() == -7.0


def test_writes_reach_the_file_as_with_pytorch(tmp_path: Path) -> None:
    for lib in (gg, torch):
        array = mapped(tmp_path)
        t = lib.from_numpy(array)
        t[1:].mul_(2)
        t.view(-1)[0] = 9.0
        array.flush()
    np.testing.assert_array_equal(np.fromfile(tmp_path / "numbers"), [9.0, 2.0, 12.0, 16.0])


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_read_only_memory_is_refused(tmp_path: Path, write: Callable[[Any], Any]) -> None:
    array = mapped(tmp_path, "r+")
    del array
    t = gg.from_numpy(mapped(tmp_path, "r"))
    with pytest.raises(errors.GlassgradError, match=r"read-only|writeable"):
        write(t)
    np.testing.assert_array_equal(t.numpy(), [[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize("compiled", [False, True])
def test_a_read_only_parameter_is_not_stepped(tmp_path: Path, compiled: bool) -> None:
    p = gg.nn.Parameter(gg.from_numpy(mapped(tmp_path, "r")))
    optimizer = gg.optim.SGD([p], lr=0.1)

    def step() -> Any:
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        optimizer.step()
        return loss

    with pytest.raises(ValueError, match=r"read-only|writeable"):
        (gg.compile(step) if compiled else step)()
    np.testing.assert_array_equal(p.detach().numpy(), [[1.0, 2.0], [3.0, 4.0]])


def test_results_are_plain(array: Any) -> None:
    x = gg.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=gg.float64)
    plain = np.asarray(array)
    for found, expected in (
        (x * array, x.numpy() * plain),
        (x @ array, x.numpy() @ plain),
        (gg.cat([x, gg.as_tensor(array)]), np.concatenate([x.numpy(), plain])),
        (gg.from_numpy(array).sum(0), plain.sum(0)),
        (gg.compile(lambda x, y: x * y)(x, array), x.numpy() * plain),
        (gg.func.grad(lambda y: (y * y).sum())(array), 2 * plain),
    ):
        assert type(found.array) is np.ndarray
        np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize(
    "use",
    [
        gg.from_numpy,
        gg.as_tensor,
        gg.tensor,
        gg.Tensor,
        gg.nn.Parameter,
        lambda a: gg.ones(3) * a,
        lambda a: gg.zeros(3).__setitem__(..., a),
        lambda a: gg.zeros(3).copy_(a),
        gg.func.grad(lambda x: x.sum()),
        gg.func.vmap(lambda x: x * 2),
        lambda a: gg.compile(lambda x, y: x * y)(gg.ones(3), a),
    ],
)
def test_masked_elements_are_refused(use: Callable[[Any], Any]) -> None:
    with pytest.raises(errors.KindError, match=r"keeps no mask.* 1 masked"):
        use(np.ma.masked_array([1.0, 2.0, 3.0], mask=[False, True, False]))
