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
        function = vars(owner).get(name)
        if function is not None and (id(owner), name) not in known:
            _replaced.append((owner, name, function))
            setattr(owner, name, _told(function, letter))


def leave(listener: Callable[[str], None]) -> None:
    """Stop calling it."""
    if listener in _listeners:
        _listeners.remove(listener)
    while _replaced and not _listeners:
        setattr(*_replaced.pop())


def _places() -> Iterator[tuple[Any, str, str]]:
    torch = pytorch()
    ours, schedules = sys.modules.get("glassgrad.nn.utils"), sys.modules.get("glassgrad.optim.lr_scheduler")
    utils = [ours] if ours is not None else []
    if torch is not None and "torch.nn.utils" in sys.modules:
        utils += [torch.nn.utils, torch.nn.utils.clip_grad]
    yield from ((owner, name, "C") for owner in utils for name in CLIPS)
    kinds = [one for one in (schedules, sys.modules.get("torch.optim.lr_scheduler")) if one is not None]
    for module in kinds:
        for kind in vars(module).values():
            if isinstance(kind, type) and "step" in vars(kind) and hasattr(kind, "state_dict"):
                yield kind, "step", "R"


def _told(function: Callable[..., Any], letter: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def told(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        for listener in tuple(_listeners):
            listener(letter)
        return result

    return told
