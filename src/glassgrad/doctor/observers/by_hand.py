"""The observer of layers written by hand, which have no hooks: it wraps methods of model and optimizer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from glassgrad.doctor.library import Module, Optimizer, Tensor
from glassgrad.doctor.observers.events import Sampling


class HandObserver:
    """A connection to a model with `forward` and `backward`, and optimizers with `step`."""

    def __init__(self, model: Module, optimizers: tuple[Optimizer, ...], watch: Sampling) -> None:
        self._model, self._optimizers, self._watch = model, optimizers, watch
        self._replaced: list[tuple[Any, str]] = []

    def connect(self) -> None:
        """Replace methods of model and optimizer by reporting ones."""
        model, watch = self._model, self._watch
        if hasattr(model, "forward"):
            self._replace(model, "forward", self._forward(model.forward))
        if hasattr(model, "backward"):
            self._replace(model, "backward", _around(model.backward, partial(watch.backward, None), watch.left))
        for optimizer in self._optimizers:
            before, after = partial(watch.stepping, optimizer), partial(watch.stepped, optimizer)
            self._replace(optimizer, "step", _around(optimizer.step, before, after))

    def _replace(self, owner: Any, name: str, method: Callable[..., Any]) -> None:
        setattr(owner, name, method)
        self._replaced.append((owner, name))

    def _forward(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def forward(*args: Any, **kwargs: Any) -> Any:
            output = method(*args, **kwargs)
            self._watch.forward(args, kwargs, output)
            return output

        return forward

    def sampled(self, wanted: bool) -> None:
        """Do nothing: the methods report every step."""

    def graph(self, loss: Tensor) -> None:
        """Return None: there is no graph of a hand-written loss."""

    def disconnect(self) -> None:
        """Remove the reporting methods."""
        for owner, name in self._replaced:
            vars(owner).pop(name, None)
        self._replaced = []


def _around(method: Callable[..., Any], before: Callable[[], Any], after: Callable[[], Any]) -> Callable[..., Any]:
    """Return a method that reports before and after its call."""

    def around(*args: Any, **kwargs: Any) -> Any:
        before()
        result = method(*args, **kwargs)
        after()
        return result

    return around
