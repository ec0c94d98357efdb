"""Calls of functions beside the model and the optimizer that have no hook: clipping, and schedules of the rate.

They are replaced where they are looked up, from the first listener to the last.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from glassgrad.base.provenance import pytorch

CLIPS = ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm", "clip_grads_with_norm_")
_listeners: list[Callable[[str], None]] = []
_replaced: list[tuple[Any, str, Any]] = []


def listen(listener: Callable[[str], None]) -> None:
    """Begin to call a function with "C" after each clipping and with "R" after each step of a schedule."""
    _listeners.append(listener)
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
    while _replaced and not _listeners:
        setattr(*_replaced.pop())


def _places() -> Iterator[tuple[Any, str, str]]:
    from glassgrad.nn import utils
    from glassgrad.optim.lr_scheduler.base import LRScheduler

    torch = pytorch()
    homes, schedules = [utils], [LRScheduler]
    if torch is not None and "torch.nn.utils" in sys.modules:
        homes += [torch.nn.utils, torch.nn.utils.clip_grad]
    if torch is not None and "torch.optim.lr_scheduler" in sys.modules:
        schedules.append(torch.optim.lr_scheduler.LRScheduler)
    yield from ((home, name, "C") for home in homes for name in CLIPS if hasattr(home, name))
    for kind in schedules:
        yield from ((one, "step", "R") for one in (kind, *kind.__subclasses__()) if "step" in vars(one))


def _told(function: Callable[..., Any], letter: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def told(*args: object, **kwargs: object) -> object:
        result = function(*args, **kwargs)
        for listener in tuple(_listeners):
            listener(letter)
        return result

    return told
