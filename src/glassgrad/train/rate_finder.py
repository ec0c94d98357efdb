"""The learning-rate finder: train briefly with a growing rate, and find where the loss falls fastest.

Smith, "Cyclical learning rates for training neural networks", 2017.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.doctor.library import is_by_hand
from glassgrad.engine.snapshot import Snapshot
from glassgrad.errors.packages import needed
from glassgrad.nn.modes import modes_kept
from glassgrad.ops.core import Array
from glassgrad.train.feed import LoaderFeed
from glassgrad.train.given import check_kinds
from glassgrad.train.learners.by_hand import HandLearner
from glassgrad.train.learners.engine import EngineLearner
from glassgrad.train.learners.learner import StepOptions

_SMOOTHING = 0.9
_FAR = 4.0
"""The search ends when the loss is this many times the best one."""


@dataclass(frozen=True)
class RateSearch:
    """The result of `find_rate`.

    Attributes:
        rates: learning rates, growing by the same factor from step to step.
        losses: the loss at each, smoothed.
        suggestion: the rate where the loss fell fastest; NaN if it never fell.
    """

    rates: list[float]
    losses: list[float]
    suggestion: float

    def draw(self, path: str | Path) -> None:
        """Draw the losses over the rates to a PNG file. Raises `OSError`."""
        with needed("matplotlib", "pictures", extra="pictures"):
            import matplotlib as mpl
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure

        with mpl.rc_context():
            mpl.rcdefaults()
            figure = Figure(figsize=(7, 4), dpi=150, layout="constrained")
            FigureCanvasAgg(figure)
            axes = figure.add_subplot()
            axes.plot(self.rates, self.losses, color="#22577a", linewidth=1.8)
            axes.set_xscale("log")
            axes.set_xlabel("learning rate")
            axes.set_ylabel("loss, smoothed")
            first, least = self.losses[0], min(self.losses)
            axes.set_ylim(least - 0.1 * (first - least or 1), first + 0.5 * (first - least or 1))
            if math.isfinite(self.suggestion):
                axes.axvline(self.suggestion, color="#d1495b", linewidth=1.2, linestyle="--")
                late = self.suggestion > math.sqrt(self.rates[0] * self.rates[-1])
                axes.annotate(
                    f" falls fastest: {self.suggestion:.2g} ",
                    (self.suggestion, 0.96),
                    ha="right" if late else "left",
                    xycoords=("data", "axes fraction"),
                    color="#d1495b",
                    va="top",
                    fontsize=9,
                )
            axes.grid(color="#e6e6e6", linewidth=0.6)
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
            figure.savefig(path)


def find_rate(
    model: Any,
    optimizer: Any,
    loss_fn: Callable[[Array, Array], Array] | None,
    loader: Iterable[Any],
    *,
    low: float = 1e-6,
    high: float = 10.0,
    steps: int = 100,
    picture: str | Path | None = None,
) -> RateSearch:
    """Return the losses over learning rates from `low` to `high`; all state is restored afterwards.

    Args:
        model, optimizer, loss_fn, loader: as for `Trainer`, including hand-written layers.
        low, high: the first and the last rate, for every group of the optimizer.
        steps: training steps; stops earlier if the loss becomes large.
        picture: a PNG file to draw to.

    Raises:
        errors.InputError: the rates do not grow, there are fewer than 10 steps, the loader is empty, or the other parts
        do not fit the model.

    Example:
        >>> import glassgrad as gg
        >>> from glassgrad import nn, optim
        >>> from glassgrad.nn import functional as F
        >>> _ = gg.manual_seed(0)
        >>> x = gg.randn(64, 2)
        >>> model = nn.Linear(2, 1)
        >>> batches = [(x, x.sum(dim=1, keepdim=True))]
        >>> found = find_rate(model, optim.SGD(model.parameters(), lr=0.1), F.mse_loss, batches)
        >>> 0.01 < found.suggestion < 1
        True
    """
    if not 0 < low < high or steps < 10:
        raise errors.RATES_RANGE(low=low, high=high, steps=steps)
    check_kinds("find_rate", model, optimizer, loss_fn)
    learner, before = _learner(model, optimizer, loss_fn)
    feed = LoaderFeed(loader)
    factor = (high / low) ** (1 / (steps - 1))
    rates: list[float] = []
    losses: list[float] = []
    mean, best = 0.0, math.inf
    try:
        with modes_kept(model), np.errstate(all="ignore"):  # it continues until the loss diverges
            model.train()
            for step in range(steps):
                rate = low * factor**step
                learner.set_rate(rate)
                loss = float(learner.step(*feed.at(step)))
                mean = _SMOOTHING * mean + (1 - _SMOOTHING) * loss
                smooth = mean / (1 - _SMOOTHING ** (step + 1))
                if not math.isfinite(smooth) or smooth > _FAR * best + 1e-12:
                    break
                best = min(best, abs(smooth))
                rates.append(rate)
                losses.append(smooth)
    finally:
        before.restore()
    found = RateSearch(rates, losses, _steepest(rates, losses))
    if picture is not None:
        found.draw(picture)
    return found


def _learner(model: Any, optimizer: Any, loss_fn: Any) -> tuple[Any, Snapshot]:
    """Return the learner that makes the steps, and a copy of all state that they change."""
    if not is_by_hand(model):
        tensors = [*model.parameters(), *model.buffers()]
        before = Snapshot(tensors=tensors, gradients=model.parameters(), states=[optimizer], randoms=True)
        return EngineLearner(model, optimizer, loss_fn=loss_fn, options=StepOptions()), before
    learner = HandLearner(model, optimizer, loss_fn=loss_fn)
    arrays = [*(p.data for p in model.parameters()), *(array for _, array in model.named_buffers())]
    attributes = [(p, "grad") for p in model.parameters()]
    states = [optimizer, *(part for name, part in learner.parts.items() if name == "generators")]
    return learner, Snapshot(arrays=arrays, attributes=attributes, states=states, randoms=True)


def _steepest(rates: list[float], losses: list[float]) -> float:
    """The rate at which the loss falls fastest over the logarithm of the rate, before it reaches its minimum.

    After the minimum the loss jumps up and down, so a steep fall there means nothing.
    """
    count = int(np.argmin(losses)) + 1 if losses else 0
    if count < 5:
        return math.nan
    # Over several steps: between two steps the difference of the batches outweighs the learning.
    width = max(1, count // 8)
    window = np.full(2 * width + 1, 1 / (2 * width + 1))
    slopes = np.gradient(np.convolve(np.pad(losses[:count], width, "edge"), window, "valid"), np.log(rates[:count]))
    place = int(slopes.argmin())
    return rates[place] if slopes[place] < 0 else math.nan


__all__ = ["find_rate"]
