"""How a watch hears of the calls in a loop, one file a library: ours, PyTorch's, layers written by hand."""

from __future__ import annotations

from typing import Any

from glassgrad.doctor import library
from glassgrad.doctor.wires.listener import Listener, Wire


def wire(listener: Listener, model: Any, optimizers: tuple[Any, ...], guard: Any = None) -> Wire:
    """Return the wire for a model; `guard` looks for NaN."""
    if library.is_torch(model):
        from glassgrad.doctor.wires.pytorch import TorchWire

        return TorchWire(listener, model, optimizers, guard)
    if hasattr(model, "register_forward_hook"):
        from glassgrad.doctor.wires.ours import OurWire

        return OurWire(listener, model, optimizers, guard)
    from glassgrad.doctor.wires.by_hand import HandWire

    return HandWire(listener, model, optimizers)
