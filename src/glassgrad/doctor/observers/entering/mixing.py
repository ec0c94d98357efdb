"""Find models whose output for one example depends on the other examples of the batch."""

from __future__ import annotations

import sys

import numpy as np

from glassgrad.doctor import library
from glassgrad.doctor.library import Args, Array, Module, words
from glassgrad.doctor.restoring.set_aside import aside

_FEWEST, _LARGEST = 4, 1 << 20
"""The fewest examples of a batch that is looked at, and the most numbers in it."""
_FAR = 1e-3
"""The change of an output relative to the largest one, above any rounding."""
_OF_SEQUENCES = words("LSTM GRU RNN MultiheadAttention TransformerEncoderLayer TransformerDecoderLayer")


class Mixing:
    """Calls a model once more with other examples in the second half of a batch, and compares the first half.

    Attributes:
        mixed: whether its outputs changed; None if it was not called.
    """

    def __init__(self) -> None:
        self._wanted = False
        self.mixed: bool | None = None

    def learns(self, args: Args, examples: int, alike: bool) -> None:
        """Note that a loss compares this number of examples, of which each has a target of its own.

        `alike` tells whether several examples have the same target, as classes have; the targets of a contrastive loss
        are places in the batch, and all differ.
        """
        entering = library.numbers(args[0]) if len(args) == 1 and library.is_tensor(args[0]) else None
        known = entering is not None and entering.ndim > 1 and entering.size <= _LARGEST
        if known and entering is not None and alike and self.mixed is None:
            self._wanted = len(entering) == examples >= _FEWEST and entering.shape[1] != examples

    @property
    def asks(self) -> bool:
        """Whether `ask` should call the model."""
        return self._wanted and self.mixed is None

    def ask(self, model: Module, args: Args) -> None:
        """Compare the outputs of the first half of the batch. Restores the model and the random generators."""
        self.mixed = False
        entering = library.numbers(args[0])
        if entering is None or _uses_the_batch(model):
            return
        middle = len(entering) // 2
        changed = entering.copy()
        others = np.roll(entering, 1, axis=0)[middle:]
        changed[middle:] = others if entering.dtype.kind in "iub" else -1.5 * others  # sums and maxima change too
        before, after = (_run(model, ids, library.is_torch(args[0])) for ids in (entering.copy(), changed))
        if before is None or after is None or before.shape != after.shape or len(before) != len(entering):
            return
        if before.dtype.kind == "f" and np.isfinite(before).all() and np.isfinite(after).all():
            change = float(np.abs(before[:middle] - after[:middle]).max())
            self.mixed = change > _FAR * max(float(np.abs(before).max()), 1e-30)


def _run(model: Module, inputs: Array, torch: bool) -> Array | None:
    """Return the outputs in evaluation mode; both calls draw the same random numbers."""
    with aside(model), sys.modules["torch" if torch else "glassgrad"].no_grad():
        model.eval()
        return library.numbers(library.first_tensor(model(library.tensor_of(inputs, torch))))


def _uses_the_batch(model: Module) -> bool:
    """Tell whether a model normalises by the statistics of the batch in evaluation too, as it was asked to."""
    return any(getattr(module, "track_running_stats", True) is False for module in model.modules())


def in_sequence_order(model: Module) -> frozenset[str]:
    """Return the classes of the layers of a model that take the first axis for the time."""
    found = (module for _, module in model.named_modules() if type(module).__name__ in _OF_SEQUENCES)
    return frozenset(type(module).__name__ for module in found if not _takes_batches_first(module))


def _takes_batches_first(module: Module) -> bool:
    inner = getattr(module, "self_attn", module)
    return bool(getattr(inner, "batch_first", True))
