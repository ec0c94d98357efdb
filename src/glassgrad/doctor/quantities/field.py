"""How one array of a record is declared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Field:
    """One array of a record: its name, what its axes are, what stands in it, and where the numbers come from.

    `kind` is "step", "parameter", "activation" or "bins". `needs` is when it can be measured: "gradients" (after the
    backward pass), "clipped" (after clipping), "next" (when the weights have been updated) or "forward" (while the
    model computes).
    """

    name: str
    kind: str
    what: str
    needs: str = "gradients"
    dtype: Any = np.float64
