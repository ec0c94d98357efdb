"""Draw the pictures of docs/watching_gradients.md from real runs: a deep tanh net, a CNN on images, a net on names.

python docs/gradient_pictures.py [--data FOLDER] [--out FOLDER]

The net of tanh layers and the names need nothing; with --data, a folder that holds mnist-t10k, the CNN is trained on
MNIST's test images instead of the small digits that come with the package.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.data.images import read_mnist, shipped_digits
from glassgrad.data.names import NamesData
from glassgrad.data.words import read_words, shipped_words
from glassgrad.models import NamesMLP

F = nn.functional
IMAGES = Path(__file__).resolve().parent / "images"


def deep_tanh(depth: int = 20, width: int = 64) -> nn.Sequential:
    """Linear and tanh layers in turn, with the weights that layers have by default."""
    gg.manual_seed(0)
    layers: list[nn.Module] = []
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(width, 10))


def cnn(size: int) -> nn.Sequential:
    """Two convolutions and two linear layers with ReLU."""
    gg.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * (size // 4) ** 2, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def watch(
    model: Any, inputs: np.ndarray, targets: np.ndarray, steps: int, every: int, rate: float, clip: float = 0.0
) -> gg.GradientMonitor:
    """Train with SGD and momentum on random batches; return the monitor."""
    optimizer = optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    monitor = gg.GradientMonitor(model, every=every)
    rng = np.random.default_rng(0)
    for _ in range(steps):
        rows = rng.integers(0, len(inputs), 64)
        loss = F.cross_entropy(model(gg.tensor(inputs[rows])), gg.tensor(targets[rows]))
        optimizer.zero_grad()
        loss.backward()
        monitor.update(loss)
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
            monitor.update_after_clip()
        optimizer.step()
    monitor.close()
    return monitor


def deep_run() -> gg.GradientMonitor:
    """The deep net on random classes."""
    rng = np.random.default_rng(1)
    inputs = rng.normal(size=(512, 64)).astype(np.float32)
    return watch(deep_tanh(), inputs, rng.integers(0, 10, 512), 40, 10, 0.05)


def image_run(data: Path | None) -> gg.GradientMonitor:
    """The CNN on handwritten digits, with a rate that is too high for all its units to survive."""
    images = shipped_digits() if data is None else read_mnist(str(data / "mnist-t10k"))
    pixels = images.train_images.astype(np.float32)[:, None]
    pixels = (pixels - pixels.mean()) / pixels.std()
    return watch(cnn(pixels.shape[-1]), pixels, images.train_labels.astype(np.int64), 200, 4, 0.08, clip=2.0)


def names_run() -> gg.GradientMonitor:
    """The names MLP with batch normalisation."""
    names = NamesData.build(read_words(shipped_words()), 3).train
    gg.manual_seed(0)
    return watch(NamesMLP(), names.inputs, names.targets, 1_000, 20, 0.02)


def draw(data: Path | None, out: Path) -> list[Path]:
    """Draw every picture; return where they are."""
    out.mkdir(parents=True, exist_ok=True)
    deep, images, names = deep_run(), image_run(data), names_run()
    pictures = {
        "flow_vanishing": gg.plot_gradient_flow(deep, parameters="*.weight"),
        "flow_names": gg.plot_gradient_flow(names),
        "histograms": gg.plot_gradient_histograms(images, parameters="*.weight"),
        "total_norm": gg.plot_total_norm(images),
        "activations": gg.plot_activations(images),
    }
    written = []
    for name, figure in pictures.items():
        written.append(out / f"gradients_{name}.png")
        figure.savefig(written[-1], dpi=90, pil_kwargs={"optimize": True})
    return written


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--out", type=Path, default=IMAGES)
    given = parser.parse_args()
    for path in draw(given.data, given.out):
        print(f"{path.stat().st_size / 1000:6.1f} kB  {path}")
