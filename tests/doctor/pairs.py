"""The same small networks in our library and in PyTorch, with equal weights and one common batch."""

from __future__ import annotations

from typing import Any

import numpy as np

import glassgrad as gg


def perceptron(lib: Any, hidden: int = 6) -> Any:
    """A ReLU layer that loses some units, a tanh layer that saturates, and three classes."""
    return lib.nn.Sequential(
        lib.nn.Linear(4, hidden), lib.nn.ReLU(), lib.nn.Linear(hidden, 5), lib.nn.Tanh(), lib.nn.Linear(5, 3)
    )


def functional(lib: Any) -> Any:
    """The activations as functions, one of them behind a view."""

    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = lib.nn.Linear(4, 6)
            self.second = lib.nn.Linear(6, 4)
            self.third = lib.nn.Linear(2, 3)

        def forward(self, x: Any) -> Any:
            x = lib.nn.functional.relu(self.first(x))
            x = lib.sigmoid(self.second(x)).reshape(-1, 2)
            return self.third(x).reshape(-1, 2, 3)[:, 0]

    return Net()


def images(lib: Any) -> Any:
    """Convolutions: the units are channels."""
    nn = lib.nn
    return nn.Sequential(
        nn.Conv2d(1, 3, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(3, 4, 1),
        nn.BatchNorm2d(4),
        nn.Sigmoid(),
        nn.Flatten(),
        nn.Linear(16, 3),
    )


NETS = {"perceptron": perceptron, "functional": functional, "images": images}


def batch(name: str, rows: int = 8) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    shape = (rows, 1, 6, 6) if name == "images" else (rows, 4)
    return rng.normal(size=shape), rng.integers(0, 3, rows)


def pair(name: str, torch: Any) -> tuple[Any, Any]:
    """Return our model and PyTorch's, in float64, with the same weights: large ones, and a dead ReLU unit."""
    rng = np.random.default_rng(5)
    ours, theirs = NETS[name](gg).double(), NETS[name](torch).double()
    state = {}
    for key, value in theirs.state_dict().items():
        state[key] = value
        if value.is_floating_point() and "running" not in key:
            state[key] = torch.tensor(rng.normal(size=tuple(value.shape)) * 1.5)
    first = next(key for key in state if key.endswith("bias"))
    state[first][0] = -100.0
    theirs.load_state_dict(state)
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs
