"""The events of a training loop: what an observer reports, and what its listeners receive."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from glassgrad.doctor.graphs.graph import Graph
from glassgrad.doctor.library import Args, Kwargs, Optimizer, Tensor
from glassgrad.doctor.observers.loss_record import LossRecord
from glassgrad.doctor.run import Calls

Program = Any
"""A compiled function."""
Run = Callable[..., Any]
"""Runs a compiled program: called with the program and its arguments."""


class Listener:
    """Receives the events of a training loop; a subclass overrides those that it needs.

    The engine reports the events from `backward` to `stepped` to the listener that is its witness.

    Attributes:
        busy: whether the listener itself is running the model, so that events are not those of the loop.
    """

    busy = False

    def entered(self) -> None:
        """Before a forward pass of the model."""

    def forward(self, args: Args, kwargs: Kwargs, output: Any) -> None:
        """After a forward pass of the model."""

    def backward(self, loss: Tensor, traced: bool = False) -> bool:
        """Before a backward pass; return whether `walked` is to receive its gradients.

        Args:
            loss: the loss, None if unknown.
            traced: the pass is part of a trace of a compiled step and has no numbers.
        """
        return False

    def walked(self, found: dict[Any, Any], again: Callable[[], Any]) -> None:
        """After a walk along our tape: the gradients by tensor, and a function that repeats the walk."""

    def left(self) -> None:
        """After a backward pass."""

    def stepping(self, optimizer: Optimizer, traced: bool = False, closure: bool = False) -> None:
        """Before an optimizer's step, or before its `closure`, which runs its own passes."""

    def stepped(self, optimizer: Optimizer, traced: bool = False) -> None:
        """After an optimizer's step."""

    def disconnect(self) -> None:
        """The observer reports no more events."""


class Sampling(Listener):
    """A listener that inspects some of the steps: a watch.

    Attributes:
        heard: the order of the calls, without quiet steps whose losses wait in `losses`.
        losses: a caller may append the loss of a quiet step to its `waiting`, instead of calling `quiet_step`.
        sampling: whether the current step is sampled; forward passes and graphs are read only then.
        quiet: whether the current step needs only its loss; `quiet_step` then replaces all other events.
        hooked: whether the model may carry hooks.
        wants_beside: whether the current compiled step is also to run in `beside`.
    """

    heard: Calls
    losses: LossRecord
    sampling = quiet = hooked = False

    @property
    def wants_beside(self) -> bool:
        raise NotImplementedError  # each observer answers for itself

    def passed(self, loss: float | None) -> None:
        """Record a backward pass of a step that is not sampled, and its loss if that is known."""

    def quiet_step(self, loss: float, compiled: bool = False) -> None:
        """Record a step that is not sampled: one event instead of all others."""

    def settle(self, compiled: bool = True) -> int:
        """Count the quiet steps whose losses are waiting; return how many may follow before the next decision."""
        raise NotImplementedError  # each observer answers for itself

    def program_begins(self) -> None:
        """Record the beginning of a compiled training step."""

    def program_ended(self, result: Any) -> None:
        """Record the end of a compiled training step, and its result."""

    def hands_off(self, args: Args) -> None:
        """Remove the hooks before a compiled program is called: they would be traced."""

    def beside(self) -> AbstractContextManager[None]:
        """Inspect a compiled step that runs eagerly in the block, outside the training."""
        raise NotImplementedError  # each observer answers for itself

    def beside_backward(self, loss: Tensor) -> None:
        """Record a backward pass of that eager run; `left` follows."""

    def beside_step(self, optimizer: Optimizer) -> None:
        """Record the beginning of an optimizer's step of that eager run."""

    def unseen(self, reason: str) -> None:
        """Record the reason why something cannot be inspected."""


class Check(Listener):
    """A listener that checks every step, including compiled ones: a guard against NaN."""

    def run_step(self, program: Program, run: Run, args: Args, kwargs: Kwargs) -> tuple[Any, float | None]:
        """Run a compiled program that may train the model; return its result, and the loss in it or None."""
        return run(program, *args, **kwargs), None

    def run_beside(self, program: Program, run: Run, args: Args, kwargs: Kwargs) -> Any:
        """Run a compiled program that takes no optimizer step."""
        return run(program, *args, **kwargs)

    def follow(self, program: Program, run: Run, args: Args, watch: Sampling) -> None:
        """Let the program's fast path make the next calls that are like the previous one."""


class Observer(Protocol):
    """A connection to a model and its optimizers: it turns the hooks of one library into events."""

    def connect(self) -> None:
        """Begin to report events."""

    def sampled(self, wanted: bool) -> None:
        """Prepare for the next step, which is sampled if `wanted`."""

    def graph(self, loss: Tensor) -> Graph | None:
        """Return the graph of a loss, or None if it is unknown."""

    def disconnect(self) -> None:
        """Stop reporting, and remove every hook."""
