"""Report the calls in a loop to a watch, with one file for each library: ours, PyTorch, and layers written by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from glassgrad.doctor import library

if TYPE_CHECKING:
    from glassgrad.doctor.watching import Watch


class Wire(Protocol):
    """A connection to a model and its optimizers."""

    def connect(self) -> None:
        """Begin to report events."""

    def sampled(self, wanted: bool) -> None:
        """Prepare for the next step, which is sampled if `wanted`."""

    def graph(self, loss: Any) -> Any:
        """Return the graph of a loss, or None if it is unknown."""

    def disconnect(self) -> None:
        """Stop reporting, and remove every hook."""


def wire(listener: Watch, model: Any, optimizers: tuple[Any, ...], guard: Any = None) -> Wire:
    """Return the wire for a model; `guard` looks for NaN."""
    if library.is_torch(model):
        from glassgrad.doctor.observers.pytorch import TorchWire

        return TorchWire(listener, model, optimizers, guard)
    if hasattr(model, "register_forward_hook"):
        from glassgrad.doctor.observers.ours import OurWire

        return OurWire(listener, model, optimizers, guard)
    from glassgrad.doctor.observers.by_hand import HandWire

    return HandWire(listener, model, optimizers)
