"""Small trainings in our library and in PyTorch, healthy as they stand, with places where a fault can be planted.

`TUNING` and `TUNING_TOO` are those that the doctor's thresholds were set on, `REPORTING` those that its table is made
with: in the same roles other models, data, optimizers and rates. `TUNING_TOO` was reported once and showed two rules
that were too keen or too shy; what is looked at to mend a rule is reported no more.
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

CONTEXT, LETTERS, CLASSES = 3, 27, 10


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


# --- models, by the names that both libraries have ---


def names_mlp(lib: Any, width: int = 64, depth: int = 1, activation: str = "Tanh") -> Any:
    nn = lib.nn
    layers = [nn.Embedding(LETTERS, 10), nn.Flatten(), nn.Linear(10 * CONTEXT, width), getattr(nn, activation)()]
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), getattr(nn, activation)()]
    return nn.Sequential(*layers, nn.Linear(width, LETTERS))


def digits_mlp(
    lib: Any, width: int = 64, depth: int = 2, activation: str = "ReLU", dropout: float = 0.0, features: int = 64
) -> Any:
    nn = lib.nn
    layers: list[Any] = [nn.Flatten(), nn.Linear(features, width), getattr(nn, activation)()]
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), getattr(nn, activation)()]
    if dropout:
        layers.append(nn.Dropout(dropout))
    return nn.Sequential(*layers, nn.Linear(width, CLASSES))


def digits_cnn(lib: Any, channels: int = 8, norm: bool = True) -> Any:
    nn = lib.nn
    first = [nn.Conv2d(1, channels, 3, padding=1), *([nn.BatchNorm2d(channels)] if norm else []), nn.ReLU()]
    second = [nn.MaxPool2d(2), nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU(), nn.Flatten()]
    return nn.Sequential(*first, *second, nn.Linear(channels * 16, CLASSES))


def names_lstm(lib: Any, width: int = 32) -> Any:
    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = lib.nn.Embedding(LETTERS, 16)
            self.lstm = lib.nn.LSTM(16, width, batch_first=True)
            self.head = lib.nn.Linear(width, LETTERS)

        def forward(self, x: Any) -> Any:
            return self.head(self.lstm(self.table(x))[0])

    return Net()


def names_gpt(lib: Any, width: int = 32, layers: int = 2) -> Any:
    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = lib.nn.Embedding(LETTERS, width)
            self.places = lib.nn.Embedding(8, width)
            block = lambda: lib.nn.TransformerEncoderLayer(width, 4, 2 * width, 0.0, batch_first=True, norm_first=True)
            self.blocks = lib.nn.ModuleList([block() for _ in range(layers)])
            self.norm = lib.nn.LayerNorm(width)
            self.head = lib.nn.Linear(width, LETTERS)

        def forward(self, x: Any) -> Any:
            length = x.shape[1]
            mask = lib.triu(lib.full((length, length), float("-inf")), 1)
            h = self.table(x) + self.places(lib.arange(length))
            for block in self.blocks:
                h = block(h, mask)
            return self.head(self.norm(h))

    return Net()


def normalised_names_mlp(lib: Any, width: int = 100, depth: int = 2, activation: str = "Tanh") -> Any:
    nn = lib.nn
    layers = [nn.Embedding(LETTERS, 10), nn.Flatten()]
    before = 10 * CONTEXT
    for _ in range(depth):
        layers += [nn.Linear(before, width, bias=False), nn.BatchNorm1d(width), getattr(nn, activation)()]
        before = width
    return nn.Sequential(*layers, nn.Linear(width, LETTERS))


def mnist_cnn(lib: Any, channels: int = 6, norm: bool = False) -> Any:
    """A LeNet: larger windows, functions in place of modules, two layers behind the convolutions."""
    nn, F = lib.nn, lib.nn.functional

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.conv2 = nn.Conv2d(1, channels, 5, stride=2), nn.Conv2d(channels, 2 * channels, 5, stride=2)
            self.norm = nn.BatchNorm2d(channels) if norm else nn.Identity()
            self.drop = nn.Dropout(0.1)
            self.fc1, self.fc2 = nn.Linear(2 * channels * 16, 64), nn.Linear(64, CLASSES)

        def forward(self, x: Any) -> Any:
            x = F.relu(self.norm(self.conv1(x)))
            x = F.relu(self.conv2(x)).flatten(1)
            return self.fc2(self.drop(F.relu(self.fc1(x))))

    return Net()


def deep_lstm(lib: Any, width: int = 40) -> Any:
    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = lib.nn.Embedding(LETTERS, 24)
            self.lstm = lib.nn.LSTM(24, width, num_layers=2, batch_first=True)
            self.norm = lib.nn.LayerNorm(width)
            self.head = lib.nn.Linear(width, LETTERS)

        def forward(self, x: Any) -> Any:
            return self.head(self.norm(self.lstm(self.table(x))[0]))

    return Net()


def char_gpt(lib: Any, width: int = 48, layers: int = 3) -> Any:
    """A decoder as it is written out: causal attention from one matrix, GELU, norms first, weights drawn small."""
    nn, F = lib.nn, lib.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            heads = self.qkv(self.norm1(x)).reshape(batch, length, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
            mixed = F.scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.places = nn.Embedding(LETTERS, width), nn.Embedding(24, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, LETTERS, bias=False)
            for parameter in self.parameters():
                if len(parameter.shape) > 1:
                    nn.init.normal_(parameter, 0.0, 0.02)

        def forward(self, x: Any) -> Any:
            hidden = self.table(x) + self.places(lib.arange(x.shape[1]))
            return self.head(self.norm(self.blocks(hidden)))

    return Net()


def layered_names_mlp(lib: Any, width: int = 96, activation: str = "GELU") -> Any:
    nn = lib.nn
    layers = [nn.Embedding(LETTERS, 16), nn.Flatten(), nn.Linear(16 * CONTEXT, width), nn.LayerNorm(width)]
    return nn.Sequential(
        *layers, getattr(nn, activation)(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, LETTERS)
    )


def residual_cnn(lib: Any, channels: int = 8, blocks: int = 1) -> Any:
    """Convolutions with a way around them, norms, and the mean over all places in front of the classes."""
    nn, F = lib.nn, lib.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)

        def forward(self, x: Any) -> Any:
            return x + F.relu(self.norm(self.conv(x)))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.enter = nn.Conv2d(1, channels, 4, stride=4)
            self.blocks = nn.Sequential(*[Block() for _ in range(blocks)])
            self.leave = nn.Linear(channels, CLASSES)

        def forward(self, x: Any) -> Any:
            return self.leave(self.blocks(F.relu(self.enter(x))).mean((2, 3)))

    return Net()


def dropped_lstm(lib: Any, width: int = 48) -> Any:
    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.drop = lib.nn.Embedding(LETTERS, 12), lib.nn.Dropout(0.2)
            self.lstm = lib.nn.LSTM(12, width, batch_first=True)
            self.head = lib.nn.Linear(width, LETTERS)

        def forward(self, x: Any) -> Any:
            return self.head(self.drop(self.lstm(self.table(x))[0]))

    return Net()


def deep_waves(lib: Any, width: int = 40) -> Any:
    nn = lib.nn
    hidden = [layer for _ in range(2) for layer in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(nn.Linear(3, width), nn.ReLU(), *hidden, nn.Linear(width, 1))


def waves(lib: Any, width: int = 48) -> Any:
    nn = lib.nn
    return nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))


def regression(lib: Any, width: int = 32) -> Any:
    nn = lib.nn
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 1))


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

REPORTING: dict[str, Training] = {
    "names MLP": Training(layered_names_mlp, names, rate=2e-3, batch=64),
    "digits MLP": Training(functools.partial(digits_mlp, width=192, features=784), mnist, rate=1e-3, features=784),
    "digits CNN": Training(residual_cnn, mnist, optimizer="AdamW", rate=2e-3, images=True, validate=evaluated),
    "LSTM": Training(dropped_lstm, functools.partial(passages, 16), rate=3e-3, batch=24, order="zbcs"),
    "GPT": Training(functools.partial(char_gpt, width=64, layers=2), passages, rate=2e-3, batch=8, order="zbcs"),
    "regression": Training(deep_waves, sines, squares, optimizer="SGD", rate=0.02, options=_FAST, batch=64),
}

HALVES = {"tuning": TUNING, "tuning-too": TUNING_TOO, "reporting": REPORTING}
LIBRARIES = {"ours": gg}
