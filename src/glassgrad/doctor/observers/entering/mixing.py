"""Find models whose output for one example depends on the other examples of the batch, or on its place in it."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from glassgrad.doctor import library
from glassgrad.doctor.library import Args, Array, Module
from glassgrad.doctor.observers.entering.breaking import FAR, first_line
from glassgrad.doctor.reading.names import named
from glassgrad.doctor.restoring.set_aside import aside

_FEWEST, _LARGEST = 4, 1 << 20
"""The fewest examples of a batch that is looked at, and the most numbers in it."""
_OF_SEQUENCES = named("LSTM GRU RNN MultiheadAttention TransformerEncoderLayer TransformerDecoderLayer")


class Mixing:
    """Calls a model again with other examples in the second half of a batch, and with the examples in another order.

    Attributes:
        mixed: whether the outputs of the first half changed, or did not follow the order; None if it was not called.
        line: the user's line at which the examples are mixed, if one shows it.
    """

    def __init__(self) -> None:
        self._wanted = False
        self.mixed: bool | None = None
        self.line = ""

    def learns(self, args: Args, examples: int, alike: bool) -> None:
        """Note that a loss compares this number of examples, of which each has a target of its own.

        `alike` tells whether several examples have the same target, as classes have; the targets of a contrastive loss
        are places in the batch, and all differ. A tagger has a target for each place of each example.
        """
        entering = library.numbers(args[0]) if len(args) == 1 and library.is_tensor(args[0]) else None
        known = entering is not None and entering.ndim > 1 and entering.size <= _LARGEST
        if known and entering is not None and alike and self.mixed is None:
            rows, places = entering.shape[:2]
            self._wanted = rows >= _FEWEST and rows != places and examples % rows == 0 < examples

    @property
    def asks(self) -> bool:
        """Whether `ask` should call the model."""
        return self._wanted and self.mixed is None

    def ask(self, model: Module, args: Args) -> None:
        """Compare the outputs of the same examples. Restores the model and the random generators."""
        self.mixed = False
        entering = library.numbers(args[0])
        if entering is None or _uses_the_batch(model):
            return
        torch = library.is_torch(args[0])

        def once(inputs: Array) -> Array | None:
            return next(iter(_run(model, inputs, torch)), None)

        first = _run(model, entering, torch, 2)
        if len(first) < 2 or not first[0].ndim or first[0].dtype.kind != "f" or not np.isfinite(first[0]).all():
            return
        before, draws = first[0], not _equal(*first)
        if draws and not _equal(before, once(entering)):
            return  # a state that goes on from call to call
        rows, places = entering.shape[:2]
        if before.ndim > 2 and before.shape[1] == rows and len(before) not in {rows, places}:
            # Outputs time by time, as for CTC, have the examples second.
            self.mixed = _mixes(entering, np.moveaxis(before, 1, 0), lambda given: _turned(once(given)), 0, draws)
        elif len(before) == rows:
            self.mixed = _mixes(entering, before, once, 0, draws)
        elif len(before) == rows * places:  # the examples may be the first axis of the inputs, or the second
            self.mixed = all(_mixes(entering, before, once, axis, draws) for axis in (0, 1))
        if self.mixed:
            cases = _cases(entering, 0)[: 1 if draws else 2]
            self.line = first_line(lambda given: _run(model, given, torch), entering, cases, 0)


def _turned(outputs: Array | None) -> Array | None:
    """Return outputs that a model gives time by time with the examples first."""
    return None if outputs is None else np.moveaxis(outputs, 1, 0)


def _equal(one: Array, other: Array | None) -> bool:
    return other is not None and one.shape == other.shape and np.array_equal(one, other)


def _mixes(entering: Array, before: Array, run: Callable[[Array], Array | None], axis: int, draws: bool) -> bool:
    """Tell whether outputs change with other examples or with their order, if `axis` is the one of the examples.

    A model that draws random numbers (`draws`) gives those of a place to another example if the order changes.
    """
    count = entering.shape[axis]
    mine = _by_example(before, entering, axis)
    wanted_of = [(mine, count // 2), (np.roll(mine, 1, axis=0), count)]
    for given, (wanted, kept) in zip(_cases(entering, axis)[: 1 if draws else 2], wanted_of, strict=False):
        after = run(given)
        if after is None or after.shape != before.shape or not np.isfinite(after).all():
            return False
        change = np.abs(_by_example(after, entering, axis)[:kept] - wanted[:kept]).max()
        if float(change) > FAR * max(float(np.abs(before).max()), 1e-30):
            return True
    return False


def _cases(entering: Array, axis: int) -> list[Array]:
    """Return a batch with others in its second half, and one whose examples have moved on by a place."""
    ahead = np.moveaxis(entering, axis, 0)
    rolled = np.roll(ahead, 1, axis=0)
    middle = len(ahead) // 2
    others = rolled[middle:]
    changed = ahead.copy()
    changed[middle:] = others if entering.dtype.kind in "iub" else -1.5 * others  # sums and maxima change too
    return [np.ascontiguousarray(np.moveaxis(one, 0, axis)) for one in (changed, rolled)]


def _by_example(outputs: Array, entering: Array, axis: int) -> Array:
    """Return outputs with the axis of the examples first, also if there is a row for each place of each example."""
    if len(outputs) == len(entering):
        return outputs
    return np.moveaxis(outputs.reshape(*entering.shape[:2], *outputs.shape[1:]), axis, 0)


def _run(model: Module, inputs: Array, torch: bool, times: int = 1) -> list[Array]:
    """Return copies of the outputs in evaluation mode of one or more calls; each first call draws the same numbers."""
    with aside(model), sys.modules["torch" if torch else "glassgrad"].no_grad():
        model.eval()
        given = [library.tensor_of(inputs.copy(), torch) for _ in range(times)]
        found = [library.numbers(library.first_tensor(model(one))) for one in given]
        return [one.copy() for one in found if one is not None]


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
