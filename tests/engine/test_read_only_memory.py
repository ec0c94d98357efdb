"""Memory that cannot be written to: an error names the parameter, or the function, and the user's line."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, nn, optim

OPTIMIZERS = [
    "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop", "Lion",
    "Adafactor", "LBFGS",
]  # fmt: skip  # a table


def read_only(*shape: int) -> Any:
    array = np.ones(shape, np.float32)
    array.flags.writeable = False
    return gg.from_numpy(array)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_names_the_parameter_and_changes_nothing(name: str) -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2))
    model[1].weight.data = read_only(2, 2)
    optimizer = getattr(optim, name)(model.parameters())
    before = {key: value.numpy().copy() for key, value in model.state_dict().items()}
    state = str(optimizer.state_dict())

    def closure() -> Any:
        optimizer.zero_grad()
        loss = model(gg.ones(1, 3)).square().sum()
        loss.backward()
        return loss

    closure()
    line = sys._getframe().f_lineno + 2
    with pytest.raises(errors.ArgumentError, match=re.escape("parameter 2 (weight), of shape (2, 2)")) as caught:
        optimizer.step(*([closure] if name == "LBFGS" else []))
    assert f"{name}.step() at" in str(caught.value)
    assert f"test_read_only_memory.py:{line}" in str(caught.value)
    for key, value in model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[key])
    assert str(optimizer.state_dict()) == state
    model[1].weight.data = model[1].weight.data.clone()
    optimizer.step(*([closure] if name == "LBFGS" else []))


X = gg.ones(2, 3)


@pytest.mark.parametrize(
    ("call", "op"),
    [
        (lambda t: np.add(X, 1.0, out=t), "np.add"),
        (lambda t: np.add(np.ones((2, 3)), 1.0, out=(t,)), "np.add"),
        (lambda t: np.negative(X, out=t), "np.negative"),
        (lambda t: np.add.at(t, 0, 1.0), "np.add"),
        (lambda t: np.add.reduce(X, axis=0, out=t[0]), "np.add"),
        (lambda t: np.matmul(gg.ones(2, 2), X, out=t), "np.matmul"),
        (lambda t: np.copyto(t, 1.0), "np.copyto"),
        (lambda t: np.put(t, 0, 1.0), "np.put"),
        (lambda t: np.sum(X, axis=0, out=t[0]), "np.sum"),
        (lambda t: np.clip(X, 0, 1, out=t), "np.clip"),
        (lambda t: np.concatenate([X[:1], X[:1]], out=t), "np.concatenate"),
        (lambda t: t.add_(1), "add_"),
        (lambda t: t.copy_(X), "x[...] = value"),
        (lambda t: t.__setitem__(0, 1.0), "x[...] = value"),
    ],
)
def test_functions_that_write_name_themselves_and_the_line(call: Any, op: str) -> None:
    told = rf"{re.escape(op)} at .*test_read_only_memory.py:\d+ cannot write to this memory: it is read-only"
    with pytest.raises(errors.AutogradError, match=told):
        call(read_only(2, 3))


def test_what_numpy_writes_to_is_noted_and_returned() -> None:
    w = gg.ones(3, requires_grad=True)
    buffer = gg.tensor([1.0, 2.0, 3.0])
    y = (w * buffer).sum()
    assert np.clip(gg.tensor([5.0, 6.0, 7.0]), 0, 6, out=buffer) is buffer
    assert buffer.tolist() == [5, 6, 6]
    with pytest.raises(errors.AutogradError, match="overwritten"):
        y.backward()
