"""Choose the observer of a model: one for each library."""

from __future__ import annotations

from glassgrad import errors
from glassgrad.doctor import library
from glassgrad.doctor.library import Module, Optimizer
from glassgrad.doctor.observers.events import Check, Observer, Sampling
from glassgrad.doctor.observers.sampling import PRESETS


def check_watchable(model: Module, optimizers: tuple[Optimizer, ...], preset: str, every: int | None) -> None:
    """Refuse what cannot be watched: the arguments of `watch`."""
    if not hasattr(model, "named_parameters"):
        raise errors.MONITOR_MODEL(owner="watch", given=type(model).__name__)
    if preset not in PRESETS:
        raise errors.WATCH_PRESET(given=preset, known=", ".join(PRESETS))
    if every is not None and every < 1:
        raise errors.MONITOR_EVERY(name="every", low=1, given=every)
    told = "register_step_pre_hook" if library.is_torch(model) else "step"
    if strange := [type(one).__name__ for one in optimizers if not hasattr(one, told)]:
        raise errors.WATCH_OPTIMIZER(model=type(model).__name__, given=strange[0])


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
