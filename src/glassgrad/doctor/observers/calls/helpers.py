"""Calls of functions beside the model and the optimizer that have no hook: clipping, schedules of the rate, seeds.

They are replaced where they are looked up, from the first listener to the last.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from glassgrad.base.provenance import pytorch, resolve, user_frame
from glassgrad.doctor.library import Module, Optimizer
from glassgrad.doctor.observers.calls import own_functions, scaling
from glassgrad.doctor.observers.calls.loads import Load, noted

CLIPS = ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm", "clip_grads_with_norm_")
SWITCHES = ("N", "n")
"""Told when gradients are switched off, and when they are as before."""
_listeners: list[Callable[[str], None]] = []
_loads: list[tuple[Module, str, int]] = []
_taken: list[Load] = []
Schedule = Any
"""A schedule of the rate, of either library."""
_schedules: dict[int, tuple[Schedule, str, int]] = {}
_replaced: list[tuple[Any, str, Any]] = []
_MOST_LOADS = 24


def listen(listener: Callable[[str], None]) -> None:
    """Begin to call a function with a letter: "C" after each clipping, "R" after each step of a schedule, "Z" after a
    seed was set that was the last one set too, "N" and "n" when a block without our gradients begins and ends.
    """
    if not _listeners:
        _loads.clear()
        _taken.clear()
        _schedules.clear()
    _listeners.append(listener)
    own_functions.listen()
    known = {(id(owner), name) for owner, name, _ in _replaced}
    for owner, name, letter in _places():
        if (id(owner), name) not in known:
            function = getattr(owner, name)
            _replaced.append((owner, name, function))
            setattr(owner, name, _told(function, letter))


def leave(listener: Callable[[str], None]) -> None:
    """Stop calling it."""
    if listener in _listeners:
        _listeners.remove(listener)
    if not _listeners:
        own_functions.leave()
        scaling.forget()
    while _replaced and not _listeners:
        setattr(*_replaced.pop())


def unloaded(model: Module) -> Iterator[tuple[str, int]]:
    """Yield the user's lines that loaded weights into a part of a model of which no name fitted, and their number."""
    parts = [one for _, one in model.named_modules()] if hasattr(model, "named_modules") else []
    yield from ((line, count) for module, line, count in _loads if any(one is module for one in parts))


def taken() -> list[Load]:
    """Return the loads of weights into modules, the first load first."""
    return _taken


def schedules(optimizers: tuple[Optimizer, ...]) -> Iterator[tuple[Any, str, int]]:
    """Yield the schedules of some optimizers, the user's lines that make them, and the number of steps of each."""
    yield from (one for one in _schedules.values() if any(one[0].optimizer is other for other in optimizers))


def _places() -> Iterator[tuple[Any, str, str]]:
    from glassgrad.engine import mode
    from glassgrad.nn import utils
    from glassgrad.optim.lr_scheduler.base import LRScheduler

    torch = pytorch()
    homes, schedules = [utils], [LRScheduler]
    if torch is not None and "torch.nn.utils" in sys.modules:
        homes += [torch.nn.utils, torch.nn.utils.clip_grad]
    if torch is not None and "torch.optim.lr_scheduler" in sys.modules:
        schedules.append(torch.optim.lr_scheduler.LRScheduler)
    yield from ((home, name, "C") for home in homes for name in CLIPS if hasattr(home, name))
    for name, home in ((name, sys.modules.get(name)) for name in ("glassgrad", "torch", "numpy.random", "random")):
        if home is not None and (name != "torch" or torch is not None):
            yield home, "seed" if "random" in name else "manual_seed", "Z"
    yield from ((mode.no_grad, name, letter) for name, letter in zip(("__enter__", "__exit__"), SWITCHES, strict=True))
    yield from ((kind, "load_state_dict", "L") for kind in _modules())
    yield from scaling.places()
    for kind in schedules:
        yield from ((one, "step", "R") for one in (kind, *kind.__subclasses__()) if "step" in vars(one))


def _modules() -> Iterator[Module]:
    from glassgrad.nn import module

    torch = pytorch()
    yield module.Module
    if torch is not None:
        yield torch.nn.Module


def _loaded(module: Module, result: object) -> None:
    """Record a load, or that none of its names matched."""
    missing = getattr(result, "missing_keys", ())
    frame = user_frame()
    where = str(resolve(frame.f_code, frame.f_lasti))
    if missing and len(missing) >= len(module.state_dict()):
        _loads.append((module, where, len(missing)))
    elif len(_taken) < _MOST_LOADS:
        _taken.append(noted(module, where, missing))


def _scheduled(schedule: Schedule) -> None:
    """Count a step of a schedule. Its constructor takes the first one."""
    known = _schedules.get(id(schedule))
    if known is None:
        frame = user_frame()
        known = schedule, str(resolve(frame.f_code, frame.f_lasti)), -1
    _schedules[id(schedule)] = *known[:2], known[2] + 1


def _told(function: Callable[..., Any], letter: str) -> Callable[..., Any]:
    seeds: list[object] = []

    @functools.wraps(function)
    def told(*args: object, **kwargs: object) -> object:
        result = function(*args, **kwargs)
        if letter == "L":
            _loaded(args[0], result)
            return result
        if letter in "Xx":
            scaling.follow(letter, args[0])
            return result
        if letter == "R":
            _scheduled(args[0])
        if letter == "Z":
            known, seeds[:] = list(seeds), [*args, *kwargs.values()]
            if not seeds or known != seeds:
                return result
        for listener in tuple(_listeners):
            listener(letter)
        return result

    return told
