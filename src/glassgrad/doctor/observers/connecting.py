"""Choose the observer of a model: one for each library."""

from __future__ import annotations

from glassgrad.doctor import library
from glassgrad.doctor.library import Module, Optimizer
from glassgrad.doctor.observers.events import Check, Observer, Sampling


def observer_of(
    model: Module, optimizers: tuple[Optimizer, ...], watch: Sampling, guard: Check | None = None
) -> Observer:
    """Return the observer of a model; it reports to a watch, and to a guard that checks each step."""
    if library.is_torch(model):
        from glassgrad.doctor.observers.pytorch import TorchObserver

        return TorchObserver(model, optimizers, watch, guard)
    if hasattr(model, "register_forward_hook"):
        from glassgrad.doctor.observers.ours import OurObserver

        return OurObserver(model, optimizers, watch, guard)
    from glassgrad.doctor.observers.by_hand import HandObserver

    return HandObserver(model, optimizers, watch)
