"""Remember which forward pass saved the values of a layer, and refuse the backward pass of another one.

A layer keeps one set of saved values, those of its latest forward pass. Four sequences of calls would misuse them and
return wrong numbers of the right shape. `Module` and the losses wrap their `forward` and `backward` to detect these.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from glassgrad import errors


class Latest:
    """The latest forward pass: the shape of its result, its mode, and how often forward and backward ran."""

    __slots__ = ("forwards", "shape", "training", "used")

    def __init__(self, shape: tuple[int, ...] | None, training: bool, forwards: int) -> None:
        self.shape, self.training = shape, training
        self.forwards = forwards  # since the last backward pass, this one included
        self.used = False


def watch(kind: type) -> None:
    """Replace a class's own `forward` and `backward` with versions that check each other."""
    for name, watched in (("forward", _forward), ("backward", _backward)):
        method = vars(kind).get(name)
        if callable(method) and not getattr(method, "__isabstractmethod__", False):
            setattr(kind, name, watched(method))


def _forward(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def forward(self: Any, *inputs: Any, **options: Any) -> Any:
        if self._inside:  # super().forward(x): the outer call counts
            return method(self, *inputs, **options)
        before, training = self._latest, self.training
        waiting = before.forwards if before is not None and training and not before.used else 0
        self._latest, self._inside = None, True
        try:
            out = method(self, *inputs, **options)
        finally:
            self._inside = False
        shape = getattr(out, "shape", None)
        self._latest = Latest(tuple(shape) if shape is not None else None, training, waiting + 1)
        return out

    return forward


def _backward(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def backward(self: Any, *given: Any, **options: Any) -> Any:
        if self._inside:
            return method(self, *given, **options)
        latest, layer = self._latest, type(self).__name__
        if latest is None:
            raise errors.MANUAL_BACKWARD_FIRST(layer=layer)
        shape = tuple(getattr(given[0], "shape", ())) if given else None
        if latest.shape and shape is not None and shape != latest.shape:
            raise errors.MANUAL_OTHER_FORWARD(layer=layer, given=shape, expected=latest.shape)
        if latest.training != self.training:
            modes = ("training", "evaluation") if latest.training else ("evaluation", "training")
            raise errors.MANUAL_OTHER_MODE(layer=layer, forward=modes[0], backward=modes[1])
        if latest.used and latest.forwards > 1:
            raise errors.MANUAL_STALE(layer=layer, count=latest.forwards)
        latest.used = self._inside = True
        try:
            return method(self, *given, **options)
        finally:
            self._inside = False

    return backward
