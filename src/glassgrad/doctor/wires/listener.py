"""What a wire tells, and what a watch asks of it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol


class Listener(Protocol):
    """What a wire tells: the events of a training loop, in the order in which they happen."""

    sampling: bool
    """Whether the step under way is sampled: only then are forward passes and graphs looked at."""

    def forward(self, output: Any, args: tuple[Any, ...]) -> None:
        """The model has put something out."""

    def before_backward(self, loss: Any, traced: bool = False) -> None:
        """A backward pass begins from a loss; None where the loss itself is not known."""

    def after_backward(self) -> None:
        """It has ended."""

    def before_step(self, optimizer: Any, traced: bool = False, closure: bool = False) -> None:
        """An optimizer is about to update the parameters, or first to call a `closure`."""

    def after_step(self, optimizer: Any, traced: bool = False) -> None:
        """It has."""

    def hands_off(self, args: tuple[Any, ...]) -> None:
        """A compiled program is about to be called with arguments: no hook may be on the model, it would be traced."""

    @property
    def wants_beside(self) -> bool:
        """Whether a compiled step is to be run eagerly as well, aside, before it runs."""

    def beside(self) -> AbstractContextManager[None]:
        """Have it run inside."""

    def beside_backward(self, loss: Any) -> None:
        """In there a backward pass begins; `after_backward` tells of its end."""

    def beside_step(self, optimizer: Any) -> None:
        """In there an optimizer is about to update the parameters."""

    def unseen(self, reason: str) -> None:
        """Something cannot be looked at."""

    def compiled(self, before: bool, result: Any) -> None:
        """A compiled program that trains is about to run (`before`), or has run and returned something."""


class Wire(Protocol):
    """A connection to a model and its optimizers."""

    def connect(self) -> None:
        """Begin to tell."""

    def sampled(self, wanted: bool) -> None:
        """Prepare for a step that is sampled, or is not."""

    def graph(self, loss: Any) -> Any:
        """Return the graph of a loss, where it is known."""

    def disconnect(self) -> None:
        """Leave everything as it was."""
