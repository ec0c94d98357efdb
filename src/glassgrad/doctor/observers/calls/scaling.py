"""Gradient scalers: from `scale` to `unscale_` the loss and its gradients are multiplied by a number."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

from glassgrad.doctor import library
from glassgrad.doctor.library import Array, Tensor


@runtime_checkable
class Scaler(Protocol):
    """A gradient scaler of either library."""

    def get_scale(self) -> float:
        """Return the number."""


_active: list[Scaler] = []
"""The scaler whose `scale` was called last, until it divides the gradients."""


def places() -> Iterator[tuple[Any, str, str]]:
    """Yield the methods of scalers with the letters that `follow` knows."""
    from glassgrad import amp

    kinds = [amp.GradScaler]
    torch = sys.modules.get("torch.amp.grad_scaler")
    if torch is not None:
        kinds.append(torch.GradScaler)
    for kind in kinds:
        yield kind, "scale", "X"
        yield kind, "unscale_", "x"


def follow(letter: str, scaler: object) -> None:
    """Note that a scaler has multiplied a loss, or divided gradients."""
    _active[:] = [scaler] if letter == "X" and isinstance(scaler, Scaler) else []


def forget() -> None:
    """Forget the scaler."""
    _active.clear()


def factor() -> float:
    """Return by what losses and gradients are multiplied at present."""
    return _active[0].get_scale() if _active else 1.0


def gradient(parameter: Tensor) -> Array | None:
    """Return the gradient of a parameter as it would be without a scaler; None without a gradient."""
    found = library.gradient(parameter)
    if found is None or not _active or (by := factor()) == 1:
        return found
    divided: Array = found / found.dtype.type(by)
    return divided
