"""The protocols between a watch and the training loop: `Listener` receives events, `Wire` reports them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

from glassgrad.doctor.loss_record import LossRecord


class Listener(Protocol):
    """Receives the events of a training loop, in the order in which they happen."""

    sampling: bool
    """Whether the current step is sampled: forward passes and graphs are inspected only then."""
    quiet: bool
    """Whether nothing but the loss is wanted of the current step: `quiet_step` may stand for all other events."""
    hooked: bool
    """Whether there may be hooks on the model."""
    losses: LossRecord
    """Where the loss of a quiet step may be put in place of a call of `quiet_step`; see `settle`."""
    heard: Any
    """Counts the calls; the steps among them not before `settle`."""

    def quiet_step(self, loss: float, compiled: bool = False) -> None:
        """Called after a step that is not sampled, in place of its other events."""

    def settle(self) -> int:
        """Count the quiet steps whose losses are waiting; return how many more there may be until it is called."""

    def forward(self, output: Any, args: tuple[Any, ...]) -> None:
        """Called after a forward pass of the model."""

    def before_backward(self, loss: Any, traced: bool = False) -> None:
        """Called before a backward pass; `loss` is None if it is unknown."""

    def after_backward(self) -> None:
        """Called after a backward pass."""

    def before_step(self, optimizer: Any, traced: bool = False, closure: bool = False) -> None:
        """Called before an optimizer updates the parameters, or before it first calls a `closure`."""

    def after_step(self, optimizer: Any, traced: bool = False) -> None:
        """Called after an optimizer has updated the parameters."""

    def hands_off(self, args: tuple[Any, ...]) -> None:
        """Called before a compiled program: remove hooks from the model, since they would be traced."""

    @property
    def wants_beside(self) -> bool:
        """Whether to run a compiled step eagerly first, with its effects undone."""

    def beside(self) -> AbstractContextManager[None]:
        """Return the context manager in which that eager step runs."""

    def beside_backward(self, loss: Any) -> None:
        """Called before a backward pass of the eager step; `after_backward` follows."""

    def beside_step(self, optimizer: Any) -> None:
        """Called before an optimizer of the eager step updates the parameters."""

    def unseen(self, reason: str) -> None:
        """Called with the reason why something cannot be inspected."""

    def compiled(self, before: bool, result: Any) -> None:
        """Called before a compiled training step (with `before`), and after it with its result."""


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
