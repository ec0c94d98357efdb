"""Draw the figures of models.md from runs of `glassgrad train`, making the runs that are not there yet.

python docs/draw_models.py RUNS --names FILE --mnist FOLDER --text FILE

RUNS is a folder for the runs, one for each entry of the table below; some of them take minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS.parent / "src")]

import matplotlib as mpl  # noqa: E402 - found through the path above

mpl.use("agg")
import matplotlib.pyplot as plt  # noqa: E402 - once the backend is chosen

from glassgrad.cli import run as glassgrad  # noqa: E402 - found through the path above

IMAGES = DOCS / "images"
NAMES = ("bigram", "mlp", "rnn", "gpt", "gru", "lstm")
RUNS = {f"names-{model}": f"names --data {{names}} --model {model}" for model in NAMES} | {
    "mnist-mlp": "mnist --data {mnist}",
    "mnist-cnn": "mnist --data {mnist} --model cnn",
    "digits-mlp": "digits",
    "digits-cnn": "digits --model cnn",
    "text": "text --data {text} --steps 1500",
    "xor": "xor",
    "moons": "moons",
}
COLOURS = ("#999999", "#22577a", "#d1495b", "#e6a532", "#5b8e7d", "#6c4a86")


def make_runs(folder: Path, files: dict[str, str]) -> None:
    """Train what is missing. Ends the program when a training fails."""
    for name, command in RUNS.items():
        if not (folder / name / "loss.png").exists():
            words = [word.format(**files) for word in command.split()]
            if code := glassgrad(["train", *words, "--run-dir", str(folder / name)]):
                sys.exit(code)


def records(run: Path, event: str) -> list[dict[str, float]]:
    """Return the records of one event."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line["event"] == event]


def dressed(axes: plt.Axes, title: str, x: str, y: str) -> None:
    """Put title, labels and a pale grid on."""
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(color="#e6e6e6", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def save(figure: plt.Figure, name: str) -> None:
    """Write a picture with few colours, which is what keeps it small."""
    from PIL import Image  # matplotlib brings it along

    path = IMAGES / name
    figure.savefig(path, dpi=100)
    plt.close(figure)
    Image.open(path).convert("RGB").quantize(96).save(path, optimize=True)
    print(f"{path.relative_to(DOCS.parent)}: {path.stat().st_size / 1e3:.0f} kB")


def draw_names(runs: Path) -> None:
    """Draw the validation loss of every model of names over its training."""
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    for model, colour in zip(NAMES, COLOURS, strict=True):
        found = records(runs / f"names-{model}", "validation")
        (final,) = records(runs / f"names-{model}", "final")
        share = [entry["step"] / final["step"] for entry in found]
        label = f"{model}  {final['validation_loss']:.3f}  ({final['step']:,} steps)"
        axes.plot(share, [entry["loss"] for entry in found], color=colour, label=label, linewidth=1.8)
    dressed(axes, "names: validation loss of each model", "share of its training", "nats per character")
    axes.set_ylim(1.9, 2.6)
    axes.legend(frameon=False, fontsize=9, prop={"family": "monospace", "size": 8})
    save(figure, "models-names.png")


def draw_images(runs: Path) -> None:
    """Draw the share of wrong answers of every classifier of images."""
    figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
    kinds = ("mnist-mlp", "mnist-cnn", "digits-mlp", "digits-cnn")
    for name, colour, style in zip(kinds, COLOURS[1:3] * 2, ("-", "-", ":", ":"), strict=True):
        found = records(runs / name, "test")
        last = found[-1]["accuracy"]
        epochs = np.arange(1, len(found) + 1)
        errors = [max(100 * (1 - entry["accuracy"]), 0.05) for entry in found]
        axes.plot(epochs, errors, style, color=colour, label=f"{name}  {last:.2%}", linewidth=1.8)
    axes.set_yscale("log")
    axes.set_yticks([1, 2, 5, 10, 20, 50], labels=["1", "2", "5", "10", "20", "50"])
    dressed(axes, "digits and mnist: errors on the test images", "epoch", "per cent wrong")
    axes.legend(frameon=False, prop={"family": "monospace", "size": 8})
    save(figure, "models-images.png")


def draw_mistakes(runs: Path, mnist: Path) -> None:
    """Draw the test images that the CNN is least sure of or wrong about, and what it says."""
    from glassgrad.data import read_mnist
    from glassgrad.tasks.images import MnistConfig, build_learner
    from glassgrad.train.kept.checkpoint import load_checkpoint

    arrays, description = load_checkpoint(runs / "mnist-cnn" / "model.safetensors")
    data = read_mnist(mnist)
    learner = build_learner(MnistConfig(**description["config"]), tuple(description["size"]))
    learner.load_weights(arrays)
    scaled = (data.test_images.astype(np.float32) - description["mean"]) / description["spread"]
    logits = learner.logits(scaled[:, None].astype(np.float32))
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    hardest = np.argsort(shares[np.arange(len(shares)), data.test_labels])[:20]
    figure, grid = plt.subplots(2, 10, figsize=(8, 2.1), layout="constrained")
    for place, axes in zip(hardest, grid.ravel(), strict=True):
        said, label = shares[place].argmax(), data.test_labels[place]
        axes.imshow(data.test_images[place], cmap="gray_r", interpolation="nearest")
        axes.set_title(f"{label}: {said}", fontsize=8, color=COLOURS[2] if said != label else COLOURS[1], pad=2)
        axes.axis("off")
    save(figure, "models-mistakes.png")


def draw_text(runs: Path) -> None:
    """Draw both losses of the run on a text."""
    figure, axes = plt.subplots(figsize=(8, 3.2), layout="constrained")
    for event, colour in (("train", COLOURS[1]), ("validation", COLOURS[2])):
        found = records(runs / "text", event)
        axes.plot([entry["step"] for entry in found], [entry["loss"] for entry in found], color=colour, label=event)
    dressed(axes, "text: a GPT of 0.8 million parameters on Python's manual", "step", "nats per character")
    axes.legend(frameon=False)
    save(figure, "models-text.png")


def draw_plane(runs: Path) -> None:
    """Put the two boundaries beside each other."""
    figure, grid = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", width_ratios=(1, 1.25))
    for axes, name in zip(grid, ("xor", "moons"), strict=True):
        axes.imshow(plt.imread(runs / name / "boundary.png"))
        axes.axis("off")
    save(figure, "models-plane.png")


def main() -> None:
    """Make the runs that are missing and draw all figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path)
    for name in ("names", "mnist", "text"):
        parser.add_argument(f"--{name}", required=True)
    given = parser.parse_args()
    given.runs.mkdir(parents=True, exist_ok=True)
    make_runs(given.runs, {"names": given.names, "mnist": given.mnist, "text": given.text})
    IMAGES.mkdir(exist_ok=True)
    draw_names(given.runs)
    draw_images(given.runs)
    draw_mistakes(given.runs, Path(given.mnist))
    draw_text(given.runs)
    draw_plane(given.runs)


if __name__ == "__main__":
    main()
