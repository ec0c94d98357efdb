"""Types of arguments that many layers share."""

from __future__ import annotations

from collections.abc import Sequence

Ints = int | Sequence[int]  # one for all dimensions, or one for each
Sizes = int | Sequence[int | None] | None  # None keeps a dimension
