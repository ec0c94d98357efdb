"""Copies and pickles of compiled functions and modules, public functions, and functions that name the library."""

from __future__ import annotations

import copy
import importlib
import io
import os
import pickle
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn
from glassgrad.ops.core import REGISTRY
from glassgrad.ops.names import PUBLIC

BACKENDS = ["numpy", "llvm"]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 2)
        self.activation = gg.tanh

    def forward(self, x: Any) -> Any:
        return self.activation(self.inner(x))


class Own(nn.Module):
    """A module that keeps what was compiled from one of its own methods."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 2)
        self.fast = gg.compile(self.slow, backend="numpy")

    def slow(self, x: Any) -> Any:
        return self.inner(x).exp()

    def forward(self, x: Any) -> Any:
        return self.fast(x)


def plain(x: Any) -> Any:
    return gg.tanh(x).sum() * 2


@gg.compile(backend="numpy", threads=3, keep_grads=True)
def decorated(x: Any) -> Any:
    return gg.exp(x).sum()


class Holder:
    @gg.compile
    def method(self, x: Any) -> Any:
        return x * 2

    @staticmethod
    @gg.compile
    def static(x: Any) -> Any:
        return x * 3


undecorated = gg.compile(plain, backend="numpy")


def again(one: Any) -> Any:
    return pickle.loads(pickle.dumps(one))  # noqa: S301 - made here


WAYS = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": again,
    "cloudpickle": lambda one: cloudpickle.loads(cloudpickle.dumps(one)),
}
X = gg.tensor(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3))


@pytest.mark.parametrize("called", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("way", WAYS)
def test_compiled_modules(way: str, backend: str, called: bool) -> None:
    model = Net()
    compiled = gg.compile(model, backend=backend, threads=1)
    if called:
        compiled(X)
    twin = WAYS[way](compiled)
    assert type(twin) is type(compiled)
    assert (twin.backend, twin.threads, twin.traces) == (backend, 1, 0)
    np.testing.assert_allclose(twin(X).detach(), model(X).detach(), rtol=1e-6)
    assert twin.traces == 1
    shared = twin.function is model
    assert shared == (way == "copy")
    with gg.no_grad():
        twin.function.inner.weight.zero_()
        twin.function.inner.bias.zero_()
    assert not twin(X).detach().numpy().any()
    assert model(X).detach().numpy().any() != shared, "a deep copy has parameters of its own"


@pytest.mark.parametrize("way", WAYS)
def test_a_module_that_holds_a_compiled_method(way: str) -> None:
    model = Own()
    expected = model(X).detach().numpy()
    twin = WAYS[way](model)
    np.testing.assert_allclose(twin(X).detach(), expected, rtol=1e-6)
    if way != "copy":
        assert twin.fast.function.__self__ is twin
        assert twin.fast is not model.fast
        twin.inner.weight.data.zero_()
        np.testing.assert_allclose(model(X).detach(), expected, rtol=1e-6)
    other = WAYS[way](model.fast)
    np.testing.assert_allclose(other(X).detach(), expected, rtol=1e-6)
    if way != "copy":
        assert other.function.__self__.fast is other


@pytest.mark.parametrize("way", WAYS)
def test_functions(way: str) -> None:
    want = 2 * np.tanh(X.numpy()).sum()
    assert WAYS[way](plain)(X).item() == pytest.approx(want, rel=1e-5)
    twin = WAYS[way](undecorated)
    assert twin is not undecorated
    assert twin(X).item() == pytest.approx(want, rel=1e-5)
    one = WAYS[way](decorated)
    assert (one.backend, one.threads, one.keep_grads) == ("numpy", 3, True)
    assert one(X).item() == pytest.approx(np.exp(X.numpy()).sum(), rel=1e-5)


def test_a_decorated_function_is_pickled_by_its_name() -> None:
    for one in (decorated, Holder.method, Holder.static):
        assert again(one) is one
    assert again(Holder().method)(2) == 4


def test_a_lambda_is_pickled_by_cloudpickle_only() -> None:
    factor = gg.tensor([2.0])
    compiled = gg.compile(lambda x: gg.sin(x) * factor, backend="numpy")
    assert WAYS["cloudpickle"](compiled)(gg.ones(1)).item() == pytest.approx(2 * np.sin(1))
    assert copy.deepcopy(compiled)(gg.ones(1)).item() == pytest.approx(2 * np.sin(1))
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(compiled)


SENDING = """
import sys
import cloudpickle
import glassgrad
import glassgrad as gg
from glassgrad import nn, tanh, optim
from glassgrad.nn import functional as F

def names_the_library(x):
    y = gg.tanh(x).sum() + glassgrad.nn.functional.relu(x).sum()
    return y + F.gelu(x).sum() + tanh(x).sum() + nn.ReLU()(x).sum()

@gg.compile(backend="numpy")
def compiled(x):
    return gg.exp(x).sum() + F.softmax(x, -1).sum()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 1)
    def forward(self, x):
        return gg.sigmoid(self.inner(x)).sum() * 0 + 4

def trains():
    net = Net()
    optimizer = optim.Adam(net.parameters())
    net(gg.ones(1, 3)).backward()
    optimizer.step()
    return gg.ones(())

compiled(gg.zeros(1, 3))
slope = gg.func.grad(lambda x: gg.square(x).sum())
mapped = gg.func.vmap(lambda row: tanh(row).sum())
everything = [names_the_library, compiled, gg.compile(Net(), backend="numpy"), lambda x: trains(),
              lambda x: slope(x).sum(), lambda x: mapped(x).sum(), gg.compile(lambda x: x.sum(), backend="numpy")]
values = [float(one(gg.zeros(1, 3)).detach()) for one in everything]
sys.stdout.buffer.write(cloudpickle.dumps((everything, values)))
"""
RECEIVING = """
import pickle, sys
everything, values = pickle.load(sys.stdin.buffer)
import glassgrad as gg
print([float(one(gg.zeros(1, 3)).detach()) for one in everything] == values, len(values))
"""


def test_another_process_runs_what_a_script_sends(tmp_path: Path) -> None:
    """As joblib, Dask and Ray do: the receiver knows nothing of the script."""
    (tmp_path / "sending.py").write_text(SENDING)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    sent = subprocess.run([sys.executable, tmp_path / "sending.py"], capture_output=True, env=environment, check=False)
    assert not sent.returncode, sent.stderr.decode()
    received = subprocess.run(
        [sys.executable, "-c", RECEIVING], input=sent.stdout, capture_output=True, env=environment, check=False
    )
    assert received.stdout.split() == [b"True", b"7"], received.stderr.decode()


MODULES = [
    "glassgrad", "glassgrad.nn", "glassgrad.nn.functional", "glassgrad.nn.init", "glassgrad.nn.utils",
    "glassgrad.optim", "glassgrad.optim.lr_scheduler", "glassgrad.optim.swa_utils", "glassgrad.func",
    "glassgrad.linalg", "glassgrad.special", "glassgrad.fft", "glassgrad.random", "glassgrad.autograd", "glassgrad.amp",
    "glassgrad.utils.data", "glassgrad.train", "glassgrad.data", "glassgrad.scalar", "glassgrad.verify",
]  # fmt: skip  # a table


@pytest.mark.parametrize("module", MODULES)
def test_every_public_function_and_class_is_found_by_its_name(module: str) -> None:
    home = importlib.import_module(module)
    refused = []
    for name in getattr(home, "__all__", None) or dir(home):
        value = getattr(home, name)
        if name.startswith("_") or isinstance(value, types.ModuleType) or not callable(value):
            continue
        try:
            if again(value) is not value or copy.deepcopy(value) is not value:
                refused.append(name)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            refused.append(f"{name}: {error}")
    assert not refused


def test_every_op_is_found_by_its_name() -> None:
    for primitive in REGISTRY.values():
        assert again(primitive) is primitive
        assert copy.copy(primitive) is primitive
    for function in PUBLIC.values():
        assert again(function) is function


def test_the_library_itself() -> None:
    assert copy.copy(gg) is gg
    assert copy.deepcopy({"library": gg})["library"] is gg
    assert again(gg) is gg
    file = io.BytesIO()
    cloudpickle.dump(gg, file)
    assert cloudpickle.loads(file.getvalue()) is gg
