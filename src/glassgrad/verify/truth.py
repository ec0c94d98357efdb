"""The true gradient of every variable of a forward pass, and the share of each of its uses.

The forward function runs once on Tensors. Its local variables are read from its frame when it returns. One backward
walk over the tape then records the gradient of each variable and the terms of that sum: one per op that used the
variable.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.engine import tape
from glassgrad.engine.mode import no_grad
from glassgrad.engine.node import Node
from glassgrad.engine.tensor import Tensor
from glassgrad.ops.core import Array
from glassgrad.verify.words import array_of


@dataclass(frozen=True, eq=False)
class Share:
    """One use of a variable, and its term of the gradient."""

    op: str
    line: int
    source: str
    grad: Array
    scale: float  # size of the terms summed in `grad`


@dataclass
class Gradient:
    """The true gradient of a variable: the sum of the shares of its uses."""

    total: Array
    shares: list[Share]

    @property
    def scale(self) -> float:
        """The size of the terms; sums that cancel to nearly 0 are compared relative to it."""
        return max([_largest(self.total), *(share.scale for share in self.shares)])


def _largest(array: Array) -> float:
    return float(np.max(np.abs(array))) if np.size(array) else 0.0


@dataclass
class Truth:
    """The results of a forward pass: every variable as an array, and its gradient (several if it was rebound)."""

    values: dict[str, Array]
    gradients: dict[str, list[Gradient]]
    tensors: dict[str, Tensor] = field(default_factory=dict)
    named: list[tuple[str, Any]] = field(default_factory=list)  # every variable, in order
    loss: Array = None
    seen: Recorder | None = None
    applied: Sequence[Any] = ()  # the ops with their arguments, if they were watched

    def walk(self) -> None:
        """Find the gradients with a backward walk; repeated after `take_over`."""
        loss = self.loss
        seen, leaves = walked(loss if loss.node is None else loss.node, np.ones(loss.shape, loss.dtype))
        self.seen = seen
        self.gradients.clear()
        for name, value in self.named:
            _enter(self, name, value, seen, leaves)

    def take_over(self, name: str, gradient: Array) -> None:
        """Continue from another valid gradient: later gradients are computed from it."""
        tensor = self.tensors[name]
        if tensor.node is None:
            self.gradients[name] = [Gradient(np.array(gradient), [])]
            return
        given = np.array(gradient, np.float64)
        tensor.register_hook(lambda _: Tensor(given))
        self.walk()


class Recorder(tape.Observer):
    """Records every cotangent of a backward walk and its sender."""

    def __init__(self) -> None:
        self.sender: Node | None = None
        self.cotangents_of: dict[Any, Any] = {}
        self.shares: dict[Any, list[Share]] = {}
        self.sent_by: dict[Node, list[tuple[Any, Any]]] = {}  # (target, cotangent) pairs sent by each node

    def rule(self, node: Node, g: Array, saved: tuple[Array, ...], position: int | None) -> None:
        """Record the total cotangent of a node."""
        self.sender = node
        self.cotangents_of[node] = np.array(g) if isinstance(g, np.ndarray | np.generic) else g

    def sent(self, target: Array, c: Array) -> None:
        """Record one term of a cotangent."""
        if self.sender is not None:
            matched = tape.match_cotangent(c, target)
            place = self.sender.place
            share = Share(self.sender.prim.name, place.line, place.source, np.array(matched), _largest(c))
            self.sent_by.setdefault(self.sender, []).append((target, share.grad))
            self.shares.setdefault(target, []).append(share)


def walked(root: Any, seed: Array) -> tuple[Recorder, dict[Any, Any]]:
    """Walk back from a node or leaf; return the recorder and the leaves' cotangents."""
    recorder = Recorder()
    walk = tape.Walk(retain=True, create_graph=False, observer=recorder)
    with no_grad():
        walk.seed(root, seed)
        return recorder, walk.run()


def find_truth(
    forward: Callable[..., Any],
    inputs: Mapping[str, Array] | Sequence[Array],
    watcher: AbstractContextManager[Any] | None = None,
) -> Truth:
    """Run `forward` on the inputs (in float64) and return its variables with their gradients.

    `watcher` is entered around the call. Raises if the result is not one number that depends on the inputs.
    """
    code = getattr(forward, "__code__", None)
    if code is None:
        raise errors.CHECK_NOT_A_FUNCTION(what="forward", given=type(forward).__name__)
    named = (
        inputs if isinstance(inputs, Mapping) else dict(zip(inspect.signature(forward).parameters, inputs, strict=True))
    )
    arguments = {name: _as_input(value) for name, value in named.items()}
    with watcher or nullcontext():
        result, local = _run(forward, code, arguments)
    loss = result[0] if isinstance(result, tuple) else result
    if not isinstance(loss, Tensor) or loss.numel() != 1 or not loss.requires_grad:
        given = f"shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
        raise errors.CHECK_NO_LOSS(given=given)
    truth = Truth({}, {}, named=[*arguments.items(), *local.items()], loss=loss)
    truth.walk()
    return truth


def _enter(truth: Truth, name: str, value: Array, seen: Recorder, leaves: Mapping[Any, Any]) -> None:
    if not isinstance(value, Tensor):
        truth.values[name] = value
        return
    truth.values[name] = np.array(value.detach().numpy())
    truth.tensors[name] = value
    if value.dtype.kind not in "fV":
        return
    key = value if value.node is None else value.node
    total = leaves.get(key, seen.cotangents_of.get(key))
    if total is None:
        total = np.zeros(value.shape)
    gradients = truth.gradients.setdefault(name, [])
    if all(not np.array_equal(total, other.total) for other in gradients):
        gradients.append(Gradient(np.array(total), seen.shares.get(key, [])))


def _as_input(value: Array) -> Array:
    """Convert floating-point inputs to float64 leaves, so that a right derivation agrees to many digits."""
    array = array_of(value.detach().numpy() if isinstance(value, Tensor) else value)
    if isinstance(array, np.ndarray | list | float) and np.asarray(array).dtype.kind in "fV":
        return Tensor(np.array(array, dtype=np.float64), requires_grad=True)
    return array


def _run(forward: Callable[..., Any], code: Any, arguments: Mapping[str, Any]) -> tuple[Array, dict[str, Array]]:
    """Call `forward` and return its result and its final local variables."""
    local: dict[str, Any] = {}

    def watch(frame: FrameType, event: str, _argument: object) -> None:
        if event == "return" and frame.f_code is code:
            local.clear()
            local.update(frame.f_locals)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        result = forward(**arguments)
    finally:
        sys.setprofile(before)
    return result, local
