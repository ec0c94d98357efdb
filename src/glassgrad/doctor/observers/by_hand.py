"""The wire for hand-written layers, which have no hooks: it shadows methods of model and optimizer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from glassgrad.doctor.watching import Watch


class HandWire:
    """A connection to a model with `forward` and `backward`, and optimizers with `step`."""

    def __init__(self, listener: Watch, model: Any, optimizers: tuple[Any, ...]) -> None:
        self._listener = listener
        self._model = model
        self._optimizers = optimizers
        self._replaced: list[tuple[Any, str]] = []

    def connect(self) -> None:
        """Shadow the classes' methods with reporting ones."""
        model, listener = self._model, self._listener
        if hasattr(model, "forward"):
            self._replace(model, "forward", self._forward(model.forward))
        if hasattr(model, "backward"):
            before = partial(listener.before_backward, None)
            self._replace(model, "backward", self._around(model.backward, before, listener.after_backward))
        for optimizer in self._optimizers:
            before, after = partial(listener.before_step, optimizer), partial(listener.after_step, optimizer)
            self._replace(optimizer, "step", self._around(optimizer.step, before, after))

    def _replace(self, owner: Any, name: str, method: Callable[..., Any]) -> None:
        setattr(owner, name, method)
        self._replaced.append((owner, name))

    def _forward(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def forward(*args: Any, **kwargs: Any) -> Any:
            output = method(*args, **kwargs)
            self._listener.forward(output, args)
            return output

        return forward

    def _around(
        self, method: Callable[..., Any], before: Callable[[], None], after: Callable[[], None]
    ) -> Callable[..., Any]:
        def around(*args: Any, **kwargs: Any) -> Any:
            before()
            result = method(*args, **kwargs)
            after()
            return result

        return around

    def sampled(self, wanted: bool) -> None:
        """Do nothing: the methods report every step."""

    def graph(self, loss: Any) -> Any:
        """Return None: there is no graph of a hand-written loss."""
        return

    def disconnect(self) -> None:
        """Remove the reporting methods."""
        for owner, name in self._replaced:
            vars(owner).pop(name, None)
        self._replaced = []
