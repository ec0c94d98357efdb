"""Minimal filtering (Winograd): transforms that reduce the number of products of a convolution.

F(2, r) computes two neighbouring outputs of a filter of r taps with r + 1 products instead of 2 r, from the r + 1
elements that they read (Winograd 1980, "Arithmetic complexity of computations"). With g the filter and d the elements,
the outputs are ``A^T [(G g) * (B^T d)]``, where 0, 1, -1 and infinity as points make all entries of B and A 0, 1 or -1.
Applied along rows and columns (Lavin and Gray 2015, "Fast algorithms for convolutional neural networks"), a tile of 2x2
outputs of a 3x3 kernel takes 16 products instead of 36.

This file has the operations on one vector of such tiles: linear combinations of vectors, and the separation of strided
elements into vectors, and back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from glassgrad.compile.llvm.module.ir import Builder, Value, shuffled

Matrix = tuple[tuple[float, ...], ...]

OUTPUTS = 2
"""Outputs of a tile along an axis."""


@dataclass(frozen=True)
class Filtering:
    """F(2, taps): the matrices B^T of the data, G of the kernel and A^T of the outputs."""

    taps: int
    data: Matrix
    kernel: Matrix
    outputs: Matrix

    @property
    def points(self) -> int:
        """Products along an axis, which is also the number of elements that a tile reads."""
        return self.taps + OUTPUTS - 1


THREE = Filtering(
    3,
    ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
    ((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1)),
    ((1, 1, 1, 0), (0, 1, -1, -1)),
)

TWO = Filtering(
    2,
    ((1, -1, 0), (0, 1, 0), (0, 1, -1)),
    ((1, 0), (1, 1), (0, 1)),
    ((1, 1, 0), (0, 1, -1)),
)


def turned(matrix: Matrix) -> Matrix:
    """Return the transpose of a matrix."""
    return tuple(zip(*matrix, strict=True))


def on_both_axes(b: Builder, matrix: Matrix, square: Sequence[Value]) -> list[Value]:
    """Return ``matrix @ square @ matrix^T`` for a square of vectors, row after row."""
    side = len(matrix[0])
    columns = [combined(b, matrix, square[j::side]) for j in range(side)]
    return [value for i in range(len(matrix)) for value in combined(b, matrix, [column[i] for column in columns])]


def combined(b: Builder, matrix: Matrix, vectors: Sequence[Value]) -> list[Value]:
    """Return ``matrix @ vectors``; terms with the same factor are summed first, negative terms are subtracted last."""
    return [_sum(b, [(factor, one) for factor, one in zip(row, vectors, strict=True) if factor]) for row in matrix]


def _sum(b: Builder, terms: list[tuple[float, Value]]) -> Value:
    total: Value | None = None
    for scale in sorted({abs(factor) for factor, _ in terms}):
        (down, part), *rest = sorted(
            ((factor < 0, one) for factor, one in terms if abs(factor) == scale), key=lambda term: term[0]
        )
        for subtracts, one in rest:
            part = b.fsub(part, one) if subtracts != down else b.fadd(part, one)
        if scale != 1:
            part = b.fmul(part, b.like(scale, part))
        if total is None:
            total = b.fneg(part) if down else part
        else:
            total = b.fsub(total, part) if down else b.fadd(total, part)
    assert total is not None
    return total


def apart(b: Builder, vectors: Sequence[Value]) -> list[Value]:
    """Return n vectors; vector k holds the elements k, k + n, k + 2 n, ... of n vectors side by side."""
    count, lanes, numbered = len(vectors), vectors[0].lanes, dict(enumerate(vectors))
    return [
        picked(b, numbered, [divmod(count * lane + number, lanes) for lane in range(lanes)]) for number in range(count)
    ]


def together(b: Builder, vectors: Sequence[Value]) -> list[Value]:
    """Undo `apart`."""
    count, lanes, numbered = len(vectors), vectors[0].lanes, dict(enumerate(vectors))
    places = [divmod(lanes * number + lane, count) for number in range(count) for lane in range(lanes)]
    ordered = [(vector, lane) for lane, vector in places]
    return [picked(b, numbered, ordered[start : start + lanes]) for start in range(0, count * lanes, lanes)]


def picked(b: Builder, vectors: Mapping[int, Value], places: Sequence[tuple[int, int]]) -> Value:
    """Return a vector of the elements at (vector, lane), by one shuffle for each vector after the first."""
    lanes = len(places)
    first, *rest = sorted({vector for vector, _ in places})
    total, order = vectors[first], [lane if vector == first else 0 for vector, lane in places]
    for number in rest:
        order = [lanes + lane if vector == number else order[at] for at, (vector, lane) in enumerate(places)]
        total = shuffled(b, total, vectors[number], order)
        order = list(range(lanes))
    return total if order == list(range(lanes)) else shuffled(b, total, total, order)
