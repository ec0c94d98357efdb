"""`torch.utils.checkpoint`: recomputation of saved values in the backward pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from glassgrad.errors.missing import lister
from glassgrad.func.checkpoint import checkpoint, checkpoint_sequential


def get_device_states(*args: object) -> tuple[list[int], list[Any]]:
    """Return the generator states of other devices with arguments: there are none.

    Example:
        >>> from glassgrad.utils.checkpoint import get_device_states
        >>> get_device_states()
        ([], [])
    """
    return [], []


def set_device_states(devices: Sequence[int], states: Sequence[Any], *, device_type: str | None = None) -> None:
    """Do nothing: there are no other devices.

    Example:
        >>> from glassgrad.utils.checkpoint import set_device_states
        >>> set_device_states([], [])
    """


__all__ = ["checkpoint", "checkpoint_sequential", "get_device_states", "set_device_states"]
__dir__ = lister(__name__)
