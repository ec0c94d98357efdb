"""Batches drawn at random from arrays in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any

_BLOCK_EXAMPLES = 32_768
"""Examples gathered at once. Drawing and gathering many steps in one call makes a batch cost two slices."""


class RandomBatches:
    """Batches drawn with replacement. The batch of a step depends on the seed and the step alone.

    Indices are drawn a block of steps at a time, each block from a generator seeded with (seed, block number). So
    nothing has to be saved to go on at any step with the batches an uninterrupted run would have had.

    Arguments: inputs (N, ...), targets (N, ...), the batch size, the seed.

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
        # The length of a block is part of what determines the order, so it may depend on the batch size only.
        self._steps_per_block = max(1, _BLOCK_EXAMPLES // batch)
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
        self._block_inputs = self._inputs[indices]
        self._block_targets = self._targets[indices]
        self._block = block
