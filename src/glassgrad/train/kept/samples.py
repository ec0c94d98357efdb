"""samples.json: outputs or mistakes of a trained model, which illustrate its measures.

`{"title": ..., "texts": [...]}` holds texts; `{"title": ..., "size": [height, width], "images": [...]}` holds grey
images: `pixels` in hexadecimal, two digits each, with `target`, `predicted` and its `probability`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad.data.atomic import write_atomically

Array = Any  # np.ndarray

SAMPLES = "samples.json"

_MOST, _LONGEST, _LARGEST = 60, 4_000, 64 * 64
_FIRST = 8  # numbers shown of an example that is no image


def texts(title: str, found: Iterable[str]) -> dict[str, Any]:
    """Return texts as samples; long ones are cut."""
    return {"title": title, "texts": [text[:_LONGEST] for text in list(found)[:_MOST]]}


def wrong_images(logits: Array, images: Array, labels: Array) -> dict[str, Any]:
    """Return the misclassified images, the most confident mistakes first.

    Args:
        logits: (n, classes).
        images: (n, height, width), with any range of values.
        labels: (n,) the right classes.

    Example:
        >>> import numpy as np
        >>> logits = np.array([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]])
        >>> found = wrong_images(logits, np.ones((3, 1, 2)), np.array([0, 0, 1]))
        >>> found["title"], [one["target"] for one in found["images"]]
        ('2 of 3 test images classified wrongly', [1, 0])
    """
    sure, predicted, probability = _surest_mistakes(logits, labels)
    low, high = float(images.min(initial=0)), float(images.max(initial=0))
    kept = sure[:_MOST] if images[0].size <= _LARGEST else sure[:0]
    grey = np.rint((images[kept] - low) * (255 / ((high - low) or 1.0))).astype(np.uint8)
    return {
        "title": f"{len(sure):,} of {len(labels):,} test images classified wrongly",
        "size": list(images.shape[1:]),
        "images": [
            {
                "pixels": picture.tobytes().hex(),
                "target": int(labels[at]),
                "predicted": int(predicted[at]),
                "probability": round(float(probability[at]), 4),
            }
            for at, picture in zip(kept, grey, strict=True)
        ],
    }


def mistakes(logits: Array, inputs: Array, labels: Array) -> dict[str, Any]:
    """Return the misclassified examples of any classifier, the most confident mistakes first.

    Images, (n, height, width) or with one channel, are shown as pictures; other examples by their numbers.

    Args:
        logits: (n, classes).
        inputs: (n, ...).
        labels: (n,) the right classes.

    Example:
        >>> import numpy as np
        >>> logits = np.array([[2.0, 0.0], [0.0, 1.0]])
        >>> mistakes(logits, np.array([[0.5, -1.0], [2.0, 3.0]]), np.array([1, 1]))["texts"]
        ['(0.5, -1) is of class 1, taken for 0 with 88 %']
    """
    images = inputs[:, 0] if inputs.ndim == 4 and inputs.shape[1] == 1 else inputs
    if images.ndim == 3 and min(images.shape[1:]) > 3:
        return wrong_images(logits, images, labels)
    sure, predicted, probability = _surest_mistakes(logits, labels)
    found = (
        f"{_numbers(inputs[at])} is of class {labels[at]}, taken for {predicted[at]} with {probability[at]:.0%}"
        for at in sure[:_MOST]
    )
    title = f"{len(sure):,} of {len(labels):,} examples classified wrongly, the most certain mistakes first"
    return texts(title, (text.replace("%", " %") for text in found))


def softmax(logits: Array) -> Array:
    """Return the probabilities (..., classes) of logits, in double precision.

    Example:
        >>> softmax(np.array([0.0, 0.0])).tolist()
        [0.5, 0.5]
    """
    shifted = np.asarray(logits, dtype=np.float64)
    powers = np.exp(shifted - shifted.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _surest_mistakes(logits: Array, labels: Array) -> tuple[Array, Array, Array]:
    """Return the places of mistakes, most confident first, and for all places the prediction and its probability."""
    predicted, probability = logits.argmax(1), softmax(logits).max(1)
    wrong = np.flatnonzero(predicted != labels)
    return wrong[np.argsort(-probability[wrong], kind="stable")], predicted, probability


def _numbers(example: Array) -> str:
    shown = [f"{number:.4g}" for number in example.reshape(-1)[:_FIRST]]
    return f"({', '.join(shown)}{', ...' if example.size > _FIRST else ''})"


def write_samples(path: Path, samples: dict[str, Any]) -> None:
    """Write samples to the run directory at `path`. Raises `OSError`."""
    write_atomically(path / SAMPLES, json.dumps(samples).encode() + b"\n")


def read_samples(path: Path) -> dict[str, Any] | None:
    """Return the samples of a run directory; None if there are none, or if they are damaged."""
    try:
        found = json.loads((path / SAMPLES).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    title = str(found.get("title", ""))
    if isinstance(found.get("texts"), list):
        return texts(title, map(str, found["texts"]))
    try:
        height, width = (int(number) for number in found["size"])
        shown = [_image(one, height * width) for one in found["images"][:_MOST]]
    except (KeyError, OverflowError, TypeError, ValueError):
        return None
    return {"title": title, "size": [height, width], "images": shown}


def _image(one: dict[str, Any], pixels: int) -> dict[str, Any]:
    held = bytes.fromhex(one["pixels"])
    probability = float(one["probability"])
    if len(held) != pixels or not math.isfinite(probability):
        raise ValueError("the picture has another size, or no probability")
    named: Sequence[str] = ("target", "predicted")
    return {
        "pixels": held.hex(),
        "probability": probability,
        **{key: one[key] if isinstance(one[key], int) else str(one[key]) for key in named},
    }
