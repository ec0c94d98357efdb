"""Products with weights as functions: linear and bilinear maps, tables of vectors and sums of their rows."""

from __future__ import annotations

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.mode import no_grad
from glassgrad.engine.writes import MUTATIONS
from glassgrad.ops import elementwise as ew
from glassgrad.ops.axes import concrete
from glassgrad.ops.complex_input import guard_all, refuse_complex, refuses_complex, takes_complex
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.fused import linear_p
from glassgrad.ops.index import ROWS, getitem_p, put_add_p
from glassgrad.ops.linalg import matmul
from glassgrad.ops.places import PLACES, all_classes
from glassgrad.ops.scatter import scatter_reduce


@takes_complex
def linear(input: Array, weight: Array, bias: Array | None = None) -> Array:
    """x wT + b: input (..., in), weight (out, in), bias (out,) to (..., out)."""
    return linear_p(input, weight) if bias is None else linear_p(input, weight, bias)


@takes_complex
def bilinear(input1: Array, input2: Array, weight: Array, bias: Array | None = None) -> Array:
    """x1T w[k] x2 + b[k]: (..., in1) and (..., in2) with weights (out, in1, in2) to (..., out)."""
    outputs, first, second = weight.shape
    lead = tuple(input1.shape[:-1])
    x1, x2 = input1.reshape(-1, first), input2.reshape(-1, second)
    # (rows, in1) (in1, out * in2) is one large product; the rest is a small product for each row.
    half = matmul(x1, weight.permute(1, 0, 2).reshape(first, outputs * second)).reshape(-1, outputs, second)
    y = matmul(half, x2.unsqueeze(-1)).reshape(*lead, outputs)
    return y if bias is None else y + bias


@refuses_complex
def embedding(
    input: Array,
    weight: Array,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Array:
    """Rows of `weight` at the integers `input`: (...) to (..., width).

    Args:
        input: integers from 0 to rows - 1.
        weight: the table, (rows, width).
        padding_idx: a row that gets no gradient; -1 is the last.
        max_norm: used rows with a larger norm are scaled down to it, in place.
        norm_type: the order of this norm.
        scale_grad_by_freq: divide the gradient of a row by how often it is used.
        sparse: accepted; gradients are dense.

    Raises:
        IndexRangeError: an index is not in the table.
        KindError: indices that are not integers.
    """
    # Read the arrays of tensors: each property of a Tensor costs a call.
    table: Array = getattr(weight, "array", weight)
    numbers: Array = getattr(input, "array", input)
    if table.dtype.kind == "c":
        refuse_complex("embedding", (weight,))
    if numbers.dtype.kind not in "iu":
        raise errors.EMBEDDING_KIND(dtype=input.dtype, where=provenance.here())
    if len(table.shape) != 2:
        raise bad_option("embedding", "weight", f"an array of shape {tuple(weight.shape)}", "a table (rows, width)")
    if max_norm is not None or scale_grad_by_freq:
        # These options read the table themselves, and `max_norm` changes it.
        plain = concrete(input, "embedding")
        if not all_classes(plain, weight.shape[0]):
            raise _outside(plain, weight.shape[0])
    if max_norm is not None:
        _shorten(weight, input, max_norm, norm_type)
    if scale_grad_by_freq:
        counts = np.bincount(concrete(input, "embedding").reshape(-1), minlength=weight.shape[0])
        share = (1 / np.maximum(counts, 1)).astype(weight.dtype)[:, None]
        weight = weight * share + weight.detach() * (1 - share)
    try:
        rows = getitem_p(weight, input, spec=ROWS)
    except errors.IndexRangeError as error:
        raise _outside(input, weight.shape[0]) from error
    if padding_idx is None:
        return rows
    padding = padding_row(padding_idx, weight.shape[0])
    return ew.where(ew.not_equal(input, padding).unsqueeze(-1), rows, rows.detach())


def padding_row(padding_idx: int | None, rows: int) -> int | None:
    """Return the row that is for padding, counted from the front."""
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        expected = f"a row of the table, -{rows} to {rows - 1}"
        raise bad_option("embedding", "padding_idx", padding_idx, expected)
    return padding_idx % rows


def _outside(index: Array, rows: int) -> Exception:
    """Name the first index that the table does not have."""
    indices = np.asarray(concrete(index, "embedding"))
    position = tuple(int(at) for at in np.argwhere((indices >= rows) | (indices < 0))[0])
    given = int(indices[position])
    advice = "check the code that makes the indices"
    if given >= rows:
        advice += f", or build the table with at least {given + 1} rows"
    else:
        advice += "; for padding, reserve a row for it and pass its index as padding_idx"
    return errors.EMBEDDING_INDEX(
        given=given, position=position, rows=rows, last=rows - 1, advice=advice, where=provenance.here()
    )


def _shorten(weight: Array, index: Array, limit: float, order: float) -> None:
    """Limit the norms of the rows that are used, as PyTorch does: in the table itself."""
    with no_grad():
        used = np.unique(concrete(index, "embedding"))
        rows = weight.array[used]
        norms = np.linalg.norm(rows, ord=order, axis=1, keepdims=True)
        weight.array[used] = np.where(norms > limit, rows * (limit / (norms + 1e-7)), rows)
        MUTATIONS.record(weight.array)


def embedding_bag(
    input: Array,
    weight: Array,
    offsets: Array | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Array | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Array:
    """Sum, mean or largest of the rows of each bag, without keeping the rows.

    Args:
        input: (bags, length) integers, or all of them in one dimension with `offsets`.
        weight: the table, (rows, width).
        offsets: where each bag starts.
        max_norm, norm_type, scale_grad_by_freq, sparse: as in `embedding`.
        mode: "sum", "mean" or "max".
        per_sample_weights: factors of the rows, of the shape of `input`; for "sum" only.
        include_last_offset: whether the last offset is the end.
        padding_idx: entries with this index do not count; -1 is the last row.

    Raises:
        IndexRangeError: an index is not in the table.
        ArgumentError: a `mode` that does not exist.
    """
    if mode not in {"sum", "mean", "max"}:
        raise bad_option("embedding_bag", "mode", mode, "'sum', 'mean' or 'max'")
    flat = input.reshape(-1)
    if len(input.shape) == 2:
        count = input.shape[0]
        bags = np.repeat(np.arange(count), input.shape[1])
    else:
        starts = np.asarray(concrete(offsets, "embedding_bag"))
        starts = starts[:-1] if include_last_offset else starts
        count = len(starts)
        bags = np.searchsorted(starts, np.arange(flat.shape[0]), side="right") - 1
    factors = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    if padding_idx is not None:
        keep = np.flatnonzero(concrete(flat, "embedding_bag") != padding_row(padding_idx, weight.shape[0]))
        flat, bags = flat[keep], bags[keep]
        factors = None if factors is None else factors[keep]
    rows = embedding(flat, weight, None, max_norm, norm_type, scale_grad_by_freq)
    return _pooled(rows if factors is None else rows * factors.unsqueeze(-1), bags, count, mode)


def _pooled(rows: Array, bags: Array, count: int, mode: str) -> Array:
    width = rows.shape[1]
    if mode == "max":
        empty = np.zeros((count, width), rows.dtype)
        index = np.broadcast_to(bags[:, None], (len(bags), width))
        return scatter_reduce(empty, 0, index, rows, "amax", include_self=False)
    total = put_add_p(rows, bags, spec=(PLACES,), shape=(count, width))
    if mode == "sum":
        return total
    sizes = np.maximum(np.bincount(bags, minlength=count), 1).astype(rows.dtype)[:, None]
    return total / sizes


__all__ = ["bilinear", "embedding", "embedding_bag", "linear"]

guard_all(globals(), __all__)
