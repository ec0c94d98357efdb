"""Measures for your own training loop: running means and accuracy."""

from __future__ import annotations

from typing import SupportsFloat, overload

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.ops.core import Array, bad_option


class AverageMeter:
    """The last value of a quantity, and the weighted mean of all values.

    Example:
        >>> meter = AverageMeter("loss")
        >>> meter.update(2.0, 32)
        >>> meter.update(1.0, 96)
        >>> print(meter)
        loss 1.0000 (mean 1.2500)
    """

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.reset()

    def reset(self) -> None:
        """Reset the meter."""
        self.val, self.sum, self.count = 0.0, 0.0, 0.0

    def update(self, val: SupportsFloat, n: float = 1) -> None:
        """Add the mean value of `n` examples."""
        self.val = float(val)
        self.sum += self.val * n
        self.count += n

    @property
    def avg(self) -> float:
        """The mean; NaN before the first value."""
        return self.sum / self.count if self.count else float("nan")

    def __str__(self) -> str:
        return f"{self.name} {self.val:.4f} (mean {self.avg:.4f})".strip()


@overload
def accuracy(outputs: Array, targets: Array, topk: int = ..., ignore_index: int | None = ...) -> float: ...


@overload
def accuracy(
    outputs: Array, targets: Array, topk: tuple[int, ...], ignore_index: int | None = ...
) -> tuple[float, ...]: ...


def accuracy(
    outputs: Array, targets: Array, topk: int | tuple[int, ...] = 1, ignore_index: int | None = -100
) -> float | tuple[float, ...]:
    """Return the share of examples whose class is among the `topk` largest outputs.

    Args:
        outputs: scores, shape (n, classes), or (n, classes, ...) for several predictions per example.
        targets: class numbers, shape (n,) or (n, ...).
        topk: the number of guesses; a tuple gives a tuple. Of equal scores the first counts.
        ignore_index: targets with this value are left out.

    Raises:
        ArgumentError: the shapes do not match, or `topk` exceeds the number of classes.

    Example:
        >>> accuracy([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2]], [1, 1], topk=(1, 2))
        (0.5, 1.0)
    """
    scores, labels = np.asarray(_plain(outputs)), np.asarray(_plain(targets))
    classes = scores.shape[1] if scores.ndim > 1 else 0
    if scores.ndim < 2 or labels.shape != (scores.shape[0], *scores.shape[2:]):
        raise errors.ACCURACY_SHAPES(given=scores.shape, labels=labels.shape, where=provenance.here())
    wanted = topk if isinstance(topk, tuple) else (topk,)
    if not all(1 <= one <= classes for one in wanted):
        raise bad_option("accuracy", "topk", topk, f"between 1 and {classes} classes")
    scores = np.moveaxis(scores, 1, -1).reshape(-1, classes)
    labels = labels.reshape(-1)
    if ignore_index is not None:
        kept = labels != ignore_index
        scores, labels = scores[kept], labels[kept]
    guesses = np.argsort(-scores, axis=1, kind="stable")[:, : max(wanted)] == labels[:, None]
    found = tuple(float(guesses[:, :one].any(axis=1).mean()) if len(labels) else float("nan") for one in wanted)
    return found if isinstance(topk, tuple) else found[0]


def _plain(value: Array) -> Array:
    return value.detach() if hasattr(value, "detach") else value


__all__ = ["AverageMeter", "accuracy"]
