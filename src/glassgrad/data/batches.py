"""Batches drawn at random from arrays in memory, with replacement or epoch by epoch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any  # np.ndarray

_BLOCK_EXAMPLES = 32_768
"""Examples gathered at once: with many steps drawn and gathered in one call, a batch costs two slices."""

_SHORT = 8
"""Longer sequences than this are gathered in smaller blocks, to limit memory."""


class RandomBatches:
    """Batches drawn with replacement. The batch of a step depends only on the seed and the step.

    Indices are drawn a block of steps at a time, each block from a generator seeded with (seed, block number). So a run
    can resume at any step with the same batches without saving any state.

    Arguments: inputs (N, ...), targets (N, ...), the batch size, the seed. Tokens stored as small
    integers, such as uint16, are returned as int64.

    Example:
        >>> import numpy as np
        >>> batches = RandomBatches(np.arange(100), np.arange(100), batch=4, seed=1)
        >>> inputs, targets = batches.at(7)
        >>> inputs.shape, bool((inputs == targets).all())
        ((4,), True)
    """

    def __init__(self, inputs: Array, targets: Array, batch: int, seed: int) -> None:
        self.batch = batch
        self.seed = seed
        self._inputs = inputs
        self._targets = targets
        # The length of a block affects the order, so it may depend only on facts that are fixed for a run.
        length = targets.shape[1] if targets.ndim > 1 else 1
        self._steps_per_block = max(1, _BLOCK_EXAMPLES // (batch * max(length // _SHORT, 1)))
        self._block = -1
        self._block_inputs: Array = None
        self._block_targets: Array = None

    def at(self, step: int) -> tuple[Array, Array]:
        """Return the inputs and targets of one step, counted from 0. They are views: do not write to them."""
        block, place = divmod(step, self._steps_per_block)
        if block != self._block:
            self._load(block)
        return self._block_inputs[place], self._block_targets[place]

    def _load(self, block: int) -> None:
        generator = np.random.Generator(np.random.PCG64([self.seed, block]))
        indices = generator.integers(len(self._targets), size=(self._steps_per_block, self.batch))
        self._block_inputs = _as_numbers(self._inputs[indices])
        self._block_targets = _as_numbers(self._targets[indices])
        self._block = block


def _as_numbers(tokens: Array) -> Array:
    return tokens.astype(np.int64) if tokens.dtype.kind == "u" else tokens


class EpochBatches:
    """Batches of shuffled epochs. The batch of a step depends only on the seed and the step.

    Every epoch has its own order, drawn from (seed, epoch), and omits the few examples that do not fill a batch,
    different ones in every epoch. `prepare` makes the inputs from the selected rows; its generator is seeded with
    (seed, step).

    Arguments: inputs (n, ...), targets (n,), the batch size (at most n), the seed, prepare(inputs, generator).

    Example:
        >>> batches = EpochBatches(np.arange(10), np.arange(10), batch=4, seed=1)
        >>> batches.per_epoch
        2
        >>> sorted(set(batches.at(0)[0]) | set(batches.at(1)[0])) == sorted({*batches.at(0)[1], *batches.at(1)[1]})
        True
    """

    def __init__(
        self,
        inputs: Array,
        targets: Array,
        batch: int,
        seed: int,
        prepare: Callable[[Array, np.random.Generator], Array] | None = None,
    ) -> None:
        self.batch = batch
        self.seed = seed
        self.per_epoch = len(targets) // batch
        self._inputs, self._targets = inputs, targets
        self._prepare = prepare
        self._epoch = -1
        self._order: Array = None

    def at(self, step: int) -> tuple[Array, Array]:
        """Return the inputs and targets of one step, counted from 0."""
        epoch, place = divmod(step, self.per_epoch)
        if epoch != self._epoch:
            self._order = np.random.Generator(np.random.PCG64([self.seed, 1, epoch])).permutation(len(self._targets))
            self._epoch = epoch
        rows = self._order[place * self.batch : (place + 1) * self.batch]
        inputs = self._inputs[rows]
        if self._prepare is not None:
            inputs = self._prepare(inputs, np.random.Generator(np.random.PCG64([self.seed, 2, step])))
        return inputs, self._targets[rows]


def shifted(images: Array, most: int, generator: np.random.Generator) -> Array:
    """Return images (n, h, w), each shifted by up to `most` pixels vertically and horizontally, zero-filled."""
    if not most:
        return images
    count, height, width = images.shape
    padded = np.pad(images, ((0, 0), (most, most), (most, most)))
    down, right = generator.integers(0, 2 * most + 1, (2, count, 1))
    rows, columns = down + np.arange(height), right + np.arange(width)
    return padded[np.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]]
