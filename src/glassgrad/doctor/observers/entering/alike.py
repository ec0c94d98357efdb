"""Check the inputs of a model: copies among the rows of a batch, and the layout of images."""

from __future__ import annotations

import numpy as np

from glassgrad.doctor.library import Array, Module
from glassgrad.doctor.parts import Copied, Layout

_MOST, _OF_BATCH, _LEAST = 24, 64, 8
"""The number of batches to check, the rows to check in each, and the fewest rows that suffice."""
_FEW = 0.25
"""The share of distinct rows below which a batch consists of copies."""
_NEAR, _FAR = 0.45, 0.25
"""The least correlation of neighbouring pixels in the other layout, and how far it exceeds that in the given layout."""
_NUMBERS = 1 << 16


class Alike:
    """Counts the distinct rows of sampled batches, and checks the layout of the first one.

    Example:
        >>> rows = Alike()
        >>> for _ in range(3):
        ...     rows.look(np.ones((16, 4)) * np.random.default_rng(0).normal(size=4))
        >>> rows.found()
        Copied(batches=3, alike=3, same=3)
    """

    def __init__(self) -> None:
        self._batches = self._alike = self._same = 0
        self._layout: Layout | None = None
        self._looked = False

    def look(self, inputs: Array, model: Module | None = None, alone: bool = True) -> None:
        """Check a batch. The first convolution of `model` defines the axis of the channels.

        Rows are compared only if these inputs are `alone`, because examples may differ in what else the model gets.
        """
        if not self._looked and model is not None:
            self._looked = True
            self._layout = layout_of(inputs, model)
        if not alone or self._batches >= _MOST or inputs.ndim < 2 or len(inputs) < _LEAST or inputs[0].size < 2:
            return
        flat = inputs[:_OF_BATCH].reshape(min(len(inputs), _OF_BATCH), -1)[:, :512]
        self._batches += 1
        different = len(np.unique(flat, axis=0)) if flat.dtype.kind != "f" or np.isfinite(flat).all() else len(flat)
        continuous = flat.dtype.kind == "f" and bool((flat != np.round(flat)).any())
        self._same += different == 1
        self._alike += different == 1 or (continuous and different <= _FEW * len(flat))

    def found(self) -> Copied:
        """Return the numbers of checked batches, of those with copies of a few rows, and of those with one row."""
        return Copied(self._batches, self._alike, self._same)

    @property
    def layout(self) -> Layout | None:
        """The apparent layout of images, if it differs from the one that the model expects; None otherwise."""
        return self._layout


def layout_of(inputs: Array, model: Module) -> Layout | None:
    """Return the layout of images or records that seem to have channels last, though the model expects them in axis 1.

    In that layout, neighbours in memory belong to different channels, and elements that are as many places apart as
    there are channels are neighbouring pixels.

    Example:
        >>> import glassgrad as gg
        >>> rows = np.cumsum(np.random.default_rng(0).normal(size=(8, 32, 3)), axis=1)
        >>> layout_of(rows.reshape(8, 3, 32), gg.nn.Conv1d(3, 4, 3)).channels
        3
    """
    if inputs.dtype.kind != "f" or inputs.ndim not in {3, 4} or inputs.shape[1] < 2:
        return None
    channels = inputs.shape[1]
    first = next((one for _, one in _modules(model) if hasattr(one, "in_channels")), None)
    fits = first is not None and "Conv" in type(first).__name__ and first.in_channels == channels
    if not fits or inputs.shape[-1] == channels or inputs[0].size < 8 * channels:
        return None
    flat = np.ascontiguousarray(inputs[: max(1, _NUMBERS // inputs[0].size)]).reshape(-1, inputs[0].size)
    flat = flat.astype(np.float64)
    flat = flat - flat.mean(1, keepdims=True)
    size = float(np.square(flat).mean())
    if not size > 0 or not np.isfinite(size):
        return None
    near, other = (float((flat[:, :-gap] * flat[:, gap:]).mean()) / size for gap in (1, channels))
    return Layout(channels, near, other) if other > max(_NEAR, near + _FAR) else None


def _modules(model: Module) -> list[tuple[str, Module]]:
    return list(model.named_modules()) if hasattr(model, "named_modules") else []
