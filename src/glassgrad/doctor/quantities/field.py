"""Declaration of the arrays of a record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glassgrad.doctor.library import Array
from glassgrad.doctor.quantities.statistics import summarise


@dataclass(frozen=True)
class Field:
    """One array of a record: its name, axes, content and origin.

    `kind` is "step", "parameter", "activation", "bins" or "signed". `needs` says when the field can be measured:
    "gradients" (after the backward pass), "clipped" (after clipping), "next" (after the weights were updated) or
    "forward" (during the forward pass).
    """

    name: str
    kind: str
    what: str
    needs: str = "gradients"
    dtype: Any = np.float64


_STATISTICS = {
    "mean": "mean of the {whole}",
    "std": "standard deviation of the {whole} (divided by n)",
    "norm": "Euclidean norm of the {whole}",
    "abs_mean": "mean of |{entry}|",
    "abs_max": "largest |{entry}|",
    "zeros": "share of entries that are exactly zero",
    "nonfinite": "number of entries that are NaN or infinite",
}


@dataclass(frozen=True)
class Statistics:
    """Some of the statistics of a `Summary`, for one kind of array per parameter.

    Arguments: the prefix of the fields' names; the attributes of `Summary`; the names of the array and of an entry.
    """

    prefix: str
    names: tuple[str, ...]
    whole: str
    entry: str

    @property
    def fields(self) -> tuple[Field, ...]:
        """One field for each statistic."""
        return tuple(
            Field(f"{self.prefix}_{name}", "parameter", _STATISTICS[name].format(whole=self.whole, entry=self.entry))
            for name in self.names
        )

    def measure(self, array: Array) -> dict[str, float]:
        """Return the entries of one parameter."""
        found = summarise(array)
        return {f"{self.prefix}_{name}": float(getattr(found, name)) for name in self.names}
