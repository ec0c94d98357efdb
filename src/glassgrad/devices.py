"""The one device there is: the computer's own processor and memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from glassgrad import errors, provenance


class device:  # noqa: N801 - PyTorch's name
    """A place for tensors to live; only "cpu" exists.

    Example:
        >>> import glassgrad as gg
        >>> gg.device("cpu")
        device(type='cpu')
    """

    def __init__(self, name: Any = "cpu") -> None:
        check(name)
        self.type = "cpu"
        self.index = None

    def __repr__(self) -> str:
        return "device(type='cpu')"

    def __str__(self) -> str:
        return "cpu"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) or other == "cpu"

    def __hash__(self) -> int:
        return hash("cpu")


def check(name: Any) -> None:
    """Raise unless `name` is the cpu."""
    if name is not None and not isinstance(name, device) and str(name).split(":")[0] != "cpu":
        raise errors.NO_SUCH_DEVICE(given=name, where=provenance.here())


def is_dtype(value: Any) -> bool:
    """Tell a dtype from a device, as `.to()` has to."""
    return isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic | float | int))
