"""Small trainings in our library and in PyTorch, healthy by default, with places where a fault can be planted.

The doctor's thresholds were set on `TUNING` and similar trainings; the table is made with `REPORTING`: other models,
data, optimizers and rates in the same roles. All but `TUNING` were reported once and showed rules that were too strict
or too weak; trainings that were used to mend a rule are no longer reported.
"""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import glassgrad as gg
from glassgrad.data.images import read_mnist, shipped_digits
from glassgrad.data.names import NamesData
from glassgrad.data.words import read_words, shipped_words
from glassgrad.doctor import Watch, watch
from tests.doctor.small_models import (
    CONTEXT,
    bumps_mlp,
    char_gpt,
    deep_lstm,
    deep_waves,
    digits_cnn,
    digits_mlp,
    dropped_lstm,
    gated_gpt,
    glu_names_mlp,
    grouped_cnn,
    layered_names_mlp,
    mnist_cnn,
    names_gpt,
    names_gru,
    names_lstm,
    names_mlp,
    normalised_names_mlp,
    parallel_gpt,
    regression,
    residual_cnn,
    residual_names_mlp,
    rings_mlp,
    separable_cnn,
    stacked_lstm,
    waves,
)


@functools.cache
def names() -> tuple[np.ndarray, np.ndarray]:
    found = NamesData.build(read_words(shipped_words()), CONTEXT).train
    return found.inputs, found.targets


@functools.cache
def texts(length: int = 8) -> tuple[np.ndarray, np.ndarray]:
    targets = names()[1]
    flat = targets[: len(targets) // (length + 1) * (length + 1)].reshape(-1, length + 1)
    return flat[:, :-1].copy(), flat[:, 1:].copy()


@functools.cache
def digits() -> tuple[np.ndarray, np.ndarray]:
    found = shipped_digits()
    return (found.train_images / 16).astype(np.float32), found.train_labels.astype(np.int64)


MNIST = Path(os.environ.get("GLASSGRAD_DATA", Path(__file__).parents[3] / "shared" / "data")) / "mnist-t10k"
"""Where the real digits lie, if they do."""


@functools.cache
def mnist() -> tuple[np.ndarray, np.ndarray]:
    found = read_mnist(MNIST)
    return ((found.train_images - 33.3) / 78.6).astype(np.float32), found.train_labels.astype(np.int64)


@functools.cache
def passages(length: int = 24) -> tuple[np.ndarray, np.ndarray]:
    """Return pieces of one long text, a name a line, and the letters that follow."""
    # The list is in the order of the alphabet, which would make a batch's names alike.
    words = np.random.default_rng(0).permutation(read_words(shipped_words()).words)
    alphabet = {letter: at for at, letter in enumerate("\nabcdefghijklmnopqrstuvwxyz")}
    letters = np.array([alphabet[letter] for letter in "\n".join(words)])
    letters = letters[: len(letters) // (length + 1) * (length + 1)].reshape(-1, length + 1)
    return letters[:, :-1].copy(), letters[:, 1:].copy()


def entropy(lib: Any, output: Any, target: Any) -> Any:
    if len(output.shape) == 3:
        return lib.nn.functional.cross_entropy(output.reshape(-1, output.shape[-1]), target.reshape(-1))
    return lib.nn.functional.cross_entropy(output, target)


def squares(lib: Any, output: Any, target: Any) -> Any:
    return ((output.squeeze(1) - target) ** 2).mean()


def line(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(99)
    x = rng.normal(size=(512, 8)).astype(np.float32)
    return x, (x @ rng.normal(size=8) + 0.1 * rng.normal(size=512)).astype(np.float32)


def sines(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(98)
    x = rng.uniform(-1.5, 1.5, size=(1024, 3)).astype(np.float32)
    return x, (np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.05 * rng.normal(size=1024)).astype(np.float32)


def bumps(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(97)
    x = rng.normal(size=(768, 2)).astype(np.float32)
    return x, (np.exp(-((x - 0.5) ** 2).sum(1)) - np.cos(x[:, 1]) + 0.05 * rng.normal(size=768)).astype(np.float32)


def rings(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(96)
    x = rng.uniform(-2, 2, size=(896, 2)).astype(np.float32)
    return x, (np.cos(2 * np.hypot(x[:, 0], x[:, 1])) + 0.5 * x[:, 0] + 0.05 * rng.normal(size=896)).astype(np.float32)


@dataclass
class Training:
    """A loop of the usual five lines; every part of it may be replaced.

    `order` are the calls after the loss: z zero_grad, b backward, c clip, s step.
    """

    model: Callable[[Any], Any]
    data: Callable[[], tuple[np.ndarray, np.ndarray]]
    loss: Callable[[Any, Any, Any], Any] = entropy
    optimizer: str = "Adam"
    rate: float = 3e-3
    options: dict[str, Any] = field(default_factory=dict)
    batch: int = 32
    steps: int = 60
    order: str = "zbs"
    images: bool = False
    compiled: bool = False
    prepare: Callable[[Any, Any], None] = lambda lib, model: None
    inputs: Callable[[np.ndarray], np.ndarray] = lambda x: x
    targets: Callable[[np.ndarray], np.ndarray] = lambda y: y
    parameters: Callable[[Any], Any] = lambda model: model.parameters()
    indices: Callable[[np.random.Generator, np.ndarray, int, int], np.ndarray] | None = None
    validate: Callable[[Any, Any, Any], None] | None = None
    preset: str = "standard"
    features: int = 64
    held_out: bool = False

    def run(self, lib: Any, seed: int) -> Watch:
        """Train, watched, and return the watch."""
        lib.manual_seed(seed)
        rng = np.random.default_rng(seed)
        x, y = self.data()
        x, y = self.inputs(x[:, None] if self.images else x), self.targets(y)
        model = self.model(lib)
        self.prepare(lib, model)
        optimizer = getattr(lib.optim, self.optimizer)(self.parameters(model), lr=self.rate, **self.options)
        seen = watch(model, optimizer, preset=self.preset, every=None, report=False)
        step = self._step(lib, model, optimizer)
        if self.compiled:
            step = lib.compile(step)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                with seen:
                    for at in range(self.steps):
                        rows = self._rows(rng, y, at)
                        step(lib.tensor(x[rows]), lib.tensor(y[rows]))
                        if self.validate is not None and at % 10 == 9:
                            self.validate(lib, model, lib.tensor(x[:16]))
                        if self.held_out and at % 10 == 9:
                            seen.held_out(self._loss_aside(lib, model, x, y))
            except Exception:  # noqa: BLE001 - a fault may raise; what was seen until then is judged
                assert seen.calls.failure
        return seen

    def _loss_aside(self, lib: Any, model: Any, x: np.ndarray, y: np.ndarray) -> float:
        """Return the loss of the last examples, which no fault about examples lets be trained on."""
        model.eval()
        with lib.no_grad():
            loss = self.loss(lib, model(lib.tensor(x[-256:])), lib.tensor(y[-256:])).item()
        model.train()
        return loss

    def _rows(self, rng: np.random.Generator, y: np.ndarray, at: int) -> np.ndarray:
        if self.indices is not None:
            return self.indices(rng, y, at, self.batch)
        return rng.integers(0, len(y), self.batch)

    def _step(self, lib: Any, model: Any, optimizer: Any) -> Callable[[Any, Any], Any]:
        def step(x: Any, y: Any) -> Any:
            loss = self.loss(lib, model(x), y)
            for call in self.order:
                if call == "z":
                    optimizer.zero_grad()
                elif call == "b":
                    loss.backward()
                elif call == "c":
                    lib.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                else:
                    optimizer.step()
            return loss

        return step


def evaluated(lib: Any, model: Any, x: Any) -> None:
    model.eval()
    with lib.no_grad():
        model(x)
    model.train()


TUNING: dict[str, Training] = {
    "names MLP": Training(names_mlp, names),
    "digits MLP": Training(digits_mlp, digits),
    "digits CNN": Training(digits_cnn, digits, images=True, validate=evaluated),
    "LSTM": Training(names_lstm, texts, batch=16, order="zbcs"),
    "GPT": Training(names_gpt, texts, batch=16, order="zbcs"),
    "regression": Training(regression, line, squares),
}

_MNIST_MLP = functools.partial(digits_mlp, width=128, depth=3, features=784)
_FAST = {"momentum": 0.9}
TUNING_TOO: dict[str, Training] = {
    "names MLP": Training(normalised_names_mlp, names, optimizer="SGD", rate=0.1, batch=48),
    "digits MLP": Training(_MNIST_MLP, mnist, optimizer="RMSprop", rate=5e-4, batch=64, features=784),
    "digits CNN": Training(
        mnist_cnn, mnist, optimizer="SGD", rate=0.02, options=_FAST, images=True, validate=evaluated
    ),
    "LSTM": Training(deep_lstm, passages, optimizer="RMSprop", rate=2e-3, batch=12, order="zbcs"),
    "GPT": Training(char_gpt, passages, optimizer="AdamW", rate=1e-3, batch=12),
    "regression": Training(waves, sines, squares, rate=5e-3, batch=48),
}

TUNING_ALSO: dict[str, Training] = {
    "names MLP": Training(layered_names_mlp, names, rate=2e-3, batch=64),
    "digits MLP": Training(functools.partial(digits_mlp, width=192, features=784), mnist, rate=1e-3, features=784),
    "digits CNN": Training(residual_cnn, mnist, optimizer="AdamW", rate=2e-3, images=True, validate=evaluated),
    "LSTM": Training(dropped_lstm, functools.partial(passages, 16), rate=3e-3, batch=24, order="zbcs"),
    "GPT": Training(functools.partial(char_gpt, width=64, layers=2), passages, rate=2e-3, batch=8, order="zbcs"),
    "regression": Training(deep_waves, sines, squares, optimizer="SGD", rate=0.02, options=_FAST, batch=64),
}

TUNING_AGAIN: dict[str, Training] = {
    "names MLP": Training(residual_names_mlp, names, optimizer="NAdam", rate=2e-3, batch=40),
    "digits MLP": Training(
        functools.partial(digits_mlp, width=112, depth=3, activation="GELU", features=784),
        mnist, optimizer="Adamax", rate=3e-3, batch=48, features=784,
    ),
    "digits CNN": Training(grouped_cnn, mnist, rate=2e-3, batch=40, images=True, validate=evaluated),
    "LSTM": Training(names_gru, functools.partial(passages, 20), optimizer="AdamW", rate=4e-3, batch=16, order="zbcs"),
    "GPT": Training(gated_gpt, functools.partial(passages, 16), rate=1.5e-3, batch=12, order="zbcs"),
    "regression": Training(bumps_mlp, bumps, squares, optimizer="NAdam", rate=4e-3, batch=40),
}  # fmt: skip  # a table

TUNING_LAST: dict[str, Training] = {
    "names MLP": Training(glu_names_mlp, names, optimizer="AdamW", rate=2.5e-3, batch=56),
    "digits MLP": Training(
        functools.partial(digits_mlp, width=88, depth=4, features=784),
        mnist, optimizer="Adagrad", rate=0.015, batch=36, features=784,
    ),
    "digits CNN": Training(
        separable_cnn, mnist, optimizer="SGD", rate=0.03, options=_FAST, batch=44, images=True, validate=evaluated
    ),
    "LSTM": Training(stacked_lstm, functools.partial(passages, 18), rate=4e-3, batch=20, order="zbcs"),
    "GPT": Training(
        parallel_gpt, functools.partial(passages, 12), optimizer="AdamW", rate=2e-3, batch=14, order="zbcs"
    ),
    "regression": Training(rings_mlp, rings, squares, optimizer="Adamax", rate=5e-3, batch=36),
}  # fmt: skip  # a table

REPORTING: dict[str, Training] = {
    "names MLP": Training(
        functools.partial(names_mlp, width=90, depth=3, activation="ReLU"), names, rate=1.5e-3, batch=40
    ),
    "digits MLP": Training(
        functools.partial(digits_mlp, width=144, depth=3, activation="SiLU", features=784),
        mnist, optimizer="NAdam", rate=1e-3, batch=40, features=784,
    ),
    "digits CNN": Training(
        functools.partial(separable_cnn, channels=10, activation="GELU"), mnist, images=True, validate=evaluated
    ),
    "LSTM": Training(
        functools.partial(deep_lstm, width=34), functools.partial(passages, 22), rate=4e-3, batch=18, order="zbcs"
    ),
    "GPT": Training(
        functools.partial(parallel_gpt, width=32, layers=3, heads=2), functools.partial(passages, 10),
        rate=1.5e-3, batch=16, order="zbcs",
    ),
    "regression": Training(
        functools.partial(deep_waves, width=28), sines, squares, optimizer="AdamW", rate=4e-3, batch=40
    ),
}  # fmt: skip  # a table

HALVES = {
    "tuning": TUNING, "tuning-too": TUNING_TOO, "tuning-also": TUNING_ALSO, "tuning-again": TUNING_AGAIN,
    "tuning-last": TUNING_LAST, "reporting": REPORTING,
}  # fmt: skip  # a table
LIBRARIES = {"ours": gg}
