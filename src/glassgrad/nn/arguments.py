"""Types of arguments that many layers share."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import DTypeLike

from glassgrad.engine.tensors.devices import device

Device = device | str | int | None  # only the cpu exists
DType = DTypeLike | None
Ints = int | Sequence[int]  # one for all dimensions, or one for each
Sizes = int | Sequence[int | None] | None  # None keeps a dimension
