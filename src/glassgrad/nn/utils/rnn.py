"""Sequences of different lengths: padded with a number, or packed one step after the other without padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from glassgrad.base import documents
from glassgrad.engine.tensor import Tensor, make
from glassgrad.errors.missing import lister
from glassgrad.ops import elementwise as ew
from glassgrad.ops.axes import concrete
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.shape import stack


class PackedSequence(NamedTuple):
    """Sequences sorted by length, step by step: first the first elements of all, then the second ones, ...

    Attributes:
        data: all elements, (sum of lengths, ...).
        batch_sizes: how many sequences reach each step.
        sorted_indices, unsorted_indices: the order by length, and its inverse; None if the input was in order.

    Example:
        >>> import glassgrad as gg
        >>> packed = gg.nn.utils.rnn.pack_sequence([gg.ones(3, 4), gg.ones(2, 4)])
        >>> output, _ = gg.nn.LSTM(4, 5)(packed)
        >>> output.data.shape
        (5, 5)
    """

    data: Array
    batch_sizes: Array
    sorted_indices: Array | None = None
    unsorted_indices: Array | None = None

    def lengths(self) -> np.ndarray:
        """Return the lengths, in sorted order."""
        sizes = concrete(self.batch_sizes, "PackedSequence")
        found: np.ndarray = (sizes[:, None] > np.arange(sizes[0])).sum(0)
        return found

    def to(self, *targets: Any, **options: Any) -> PackedSequence:
        """Return the sequences with their data converted."""
        return self._replace(data=self.data.to(*targets, **options))


def _places(batch_sizes: np.ndarray) -> tuple[Array, Array]:
    """Return (steps, batch) positions in the packed data, and a mask of those that exist."""
    starts = np.cumsum(batch_sizes) - batch_sizes
    columns = np.arange(batch_sizes[0])
    alive = columns < batch_sizes[:, None]
    return np.where(alive, starts[:, None] + columns, 0), alive


def pack_padded_sequence(
    input: Array, lengths: Array | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack (steps, batch, ...) sequences of given lengths.

    Args:
        input: padded sequences, (batch, steps, ...) with `batch_first`.
        lengths: their lengths, each at least 1.
        batch_first: see `input`.
        enforce_sorted: the sequences are in order of falling length; otherwise they are sorted here.

    Raises:
        ArgumentError: lengths that are 0, or not sorted although they should be.

    Example:
        >>> import glassgrad as gg
        >>> padded = gg.tensor([[1.0, 2.0], [3.0, 0.0]])
        >>> gg.nn.utils.rnn.pack_padded_sequence(padded, gg.tensor([2, 1]), batch_first=True).data
        tensor([1., 3., 2.])
    """
    sizes = np.asarray(concrete(lengths, "pack_padded_sequence") if isinstance(lengths, Tensor) else lengths)
    order = back = None
    if not enforce_sorted:
        order = np.argsort(-sizes, kind="stable")
        back = np.argsort(order)
        sizes = sizes[order]
        input = input[order] if batch_first else input[:, order]
    if sizes.size == 0 or sizes.min() < 1 or (np.diff(sizes) > 0).any():
        raise bad_option(
            "pack_padded_sequence",
            "lengths",
            sizes.tolist(),
            "lengths of at least 1, the longest first (or enforce_sorted=False)",
        )
    steps = int(sizes[0])
    batch_sizes = (sizes > np.arange(steps)[:, None]).sum(1)
    rows, columns = np.nonzero(np.arange(len(sizes)) < batch_sizes[:, None])
    data = input[columns, rows] if batch_first else input[rows, columns]
    wrapped = [None if one is None else make(one, None, False) for one in (batch_sizes, order, back)]
    return PackedSequence(data, *wrapped)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Array, Array]:
    """Return padded sequences, (steps, batch, ...), and their lengths: the inverse of `pack_padded_sequence`.

    Example:
        >>> import glassgrad as gg
        >>> packed = gg.nn.utils.rnn.pack_sequence([gg.tensor([1.0, 2.0]), gg.tensor([3.0])])
        >>> gg.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        (tensor([[1., 2.],
                [3., 0.]]), tensor([2, 1]))
    """
    sizes = concrete(sequence.batch_sizes, "pad_packed_sequence")
    places, alive = _places(sizes)
    if total_length is not None:
        if total_length < len(places):
            raise bad_option(
                "pad_packed_sequence", "total_length", total_length, f"at least the longest length, {len(places)}"
            )
        more = ((0, total_length - len(places)), (0, 0))
        places, alive = np.pad(places, more), np.pad(alive, more)
    lengths = sequence.lengths()
    if sequence.unsorted_indices is not None:
        back = concrete(sequence.unsorted_indices, "pad_packed_sequence")
        places, alive, lengths = places[:, back], alive[:, back], lengths[back]
    if batch_first:
        places, alive = places.T, alive.T
    padded = sequence.data[places]
    mask = alive.reshape(*alive.shape, *(1,) * (len(padded.shape) - 2))
    return ew.where(mask, padded, padding_value), make(lengths, None, False)


def pad_sequence(
    sequences: Sequence[Array], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Array:
    """Stack (length, ...) tensors of different lengths, padded with `padding_value`.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.utils.rnn.pad_sequence([gg.tensor([1.0, 2.0]), gg.tensor([3.0])], batch_first=True)
        tensor([[1., 2.],
                [3., 0.]])
    """
    from glassgrad.ops.arrange import pad

    longest = max(len(one) for one in sequences)
    filled = []
    for one in sequences:
        gap = longest - len(one)
        border = (0, gap) if padding_side == "right" else (gap, 0)
        widths = (*(0,) * (2 * (len(one.shape) - 1)), *border)
        filled.append(pad(one, widths, value=padding_value) if gap else one)
    return stack(filled, 0 if batch_first else 1)


def pack_sequence(sequences: Sequence[Array], enforce_sorted: bool = True) -> PackedSequence:
    """Pack (length, ...) tensors of different lengths.

    Example:
        >>> import glassgrad as gg
        >>> packed = gg.nn.utils.rnn.pack_sequence([gg.tensor([1.0, 2.0]), gg.tensor([3.0])])
        >>> packed.data, packed.batch_sizes
        (tensor([1., 3., 2.]), tensor([2, 1]))
    """
    lengths = [len(one) for one in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpad_sequence(padded_sequences: Array, lengths: Array | Sequence[int], batch_first: bool = False) -> list[Array]:
    """Return a list of (length, ...) tensors from padded ones.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.utils.rnn.unpad_sequence(gg.tensor([[1.0, 2.0], [3.0, 0.0]]), gg.tensor([2, 1]), batch_first=True)
        [tensor([1., 2.]), tensor([3.])]
    """
    sizes = concrete(lengths, "unpad_sequence") if isinstance(lengths, Tensor) else lengths
    ordered = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [ordered[at, : int(size)] for at, size in enumerate(sizes)]


def unpack_sequence(packed_sequences: PackedSequence) -> list[Array]:
    """Return a list of (length, ...) tensors from packed ones.

    Example:
        >>> import glassgrad as gg
        >>> packed = gg.nn.utils.rnn.pack_sequence([gg.tensor([1.0, 2.0]), gg.tensor([3.0])])
        >>> gg.nn.utils.rnn.unpack_sequence(packed)
        [tensor([1., 2.]), tensor([3.])]
    """
    return unpad_sequence(*pad_packed_sequence(packed_sequences))


__all__ = ["PackedSequence", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence"]
__all__ += ["unpack_sequence", "unpad_sequence"]
__dir__ = lister(__name__)
documents.complete_all(__name__, globals())
