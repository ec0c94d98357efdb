"""Gradients of a large batch from several small ones."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from glassgrad.engine.tensor import Tensor
from glassgrad.ops.core import bad_option
from glassgrad.optim.optimizer import Optimizer
from glassgrad.optim.update import update


class NormStatistics(NamedTuple):
    """The gradient norms of the steps so far, before clipping."""

    steps: int
    mean: float
    std: float
    smallest: float
    largest: float


class GradientAccumulator:
    """Makes one optimizer step from every `steps` micro-batches, with their combined gradient.

    Losses are means over their batch. So the gradients are averaged: weighted by the sizes of the micro-batches if
    given, else equally. Use it around each backward pass, or call `backward`.

    Args:
        optimizer: one of `glassgrad.optim` or `glassgrad.manual`. It steps after the last micro-batch; then its
            gradients are cleared.
        steps: micro-batches per step.
        max_norm: clip the gradients of a step to this norm.
        skip_nonfinite: skip a step whose gradients contain NaN or inf, and count it in `skipped`.

    Attributes:
        stepped: whether the last micro-batch completed a step.
        norms: the gradient norm of every step, before clipping.
        skipped: the number of skipped steps.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.tensor([1.0], requires_grad=True)
        >>> accumulator = gg.optim.GradientAccumulator(gg.optim.SGD([w], lr=1.0), steps=2)
        >>> for x in (gg.tensor([1.0]), gg.tensor([3.0])):
        ...     with accumulator:
        ...         (w * x).sum().backward()
        >>> w.tolist()
        [-1.0]
    """

    def __init__(
        self, optimizer: Optimizer | Any, steps: int, *, max_norm: float | None = None, skip_nonfinite: bool = False
    ) -> None:
        if steps < 1:
            raise bad_option("GradientAccumulator", "steps", steps, "at least 1")
        self.optimizer = optimizer
        self.steps = steps
        self.max_norm = max_norm
        self.skip_nonfinite = skip_nonfinite
        self.stepped = False
        self.norms: list[float] = []
        self.skipped = 0
        self._count = 0
        self._weight = 0.0
        self._size: float | None = None

    # --- plain ----------------------------------------------------------------------------------------

    def backward(self, loss: Tensor, size: float | None = None) -> bool:
        """Add the gradient of one micro-batch; return whether it completed a step.

        Args:
            loss: the mean over the micro-batch.
            size: its number of examples, if that differs between micro-batches.
        """
        weight = 1.0 if size is None else float(size)
        (loss if weight == 1 else loss * weight).backward()
        return self._added(weight)

    def flush(self) -> bool:
        """Make a step from the gradients so far, at the end of an epoch; return whether there were any."""
        if self._count == 0:
            return False
        self._step()
        return True

    def added(self, size: float = 1.0) -> bool:
        """Count a micro-batch whose gradient, times `size`, was added elsewhere; return whether a step was made."""
        return self._added(float(size))

    # --- around a backward pass -----------------------------------------------------------------------

    def __call__(self, size: float | None = None) -> Self:
        """Set the number of examples of the next block's micro-batch: ``with accumulator(len(x)): ...``."""
        self._size = size
        return self

    def __enter__(self) -> Self:
        if self._size is not None:
            held = {id(parameter): _gradient(parameter) for parameter in self._parameters()}
            self._before = {at: g.copy() for at, g in held.items() if g is not None}
        return self

    def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
        size, self._size = self._size, None
        if kind is not None:
            return
        if size is not None:
            self._scale_new(float(size))
        self._added(1.0 if size is None else float(size))

    def _scale_new(self, weight: float) -> None:
        """Scale the gradients that the block has added."""
        for parameter in self._parameters():
            g = _gradient(parameter)
            if g is not None:
                before = self._before.get(id(parameter))
                new = g * weight if before is None else before + (g - before) * weight
                if hasattr(parameter, "_grad"):
                    parameter._grad.array = new
                else:
                    parameter.grad = new

    # --- the step -------------------------------------------------------------------------------------

    def _parameters(self) -> list[Any]:
        return [parameter for group in self.optimizer.param_groups for parameter in group["params"]]

    def _added(self, weight: float) -> bool:
        self._count += 1
        self._weight += weight
        self.stepped = False
        if self._count == self.steps:
            self._step()
        return self.stepped

    def _step(self) -> None:
        if not isinstance(self.optimizer, Optimizer):
            self._step_by_hand()
            return
        found = update(
            self.optimizer,
            factor=1 / self._weight,
            max_norm=self.max_norm,
            skip_nonfinite=self.skip_nonfinite,
            norm=True,
        )
        assert found.norm is not None
        self._finish(float(found.norm), found.made is None or bool(found.made))

    def _step_by_hand(self) -> None:
        from glassgrad.manual import clipping

        norm, made = clipping.update(
            self.optimizer, factor=1 / self._weight, max_norm=self.max_norm, skip_nonfinite=self.skip_nonfinite
        )
        self._finish(norm, made)

    def _finish(self, norm: float, made: bool) -> None:
        self.norms.append(norm)
        self.stepped = made
        self.skipped += not made
        self.optimizer.zero_grad()
        self._count, self._weight = 0, 0.0

    def statistics(self) -> NormStatistics:
        """Return mean, spread and range of the finite gradient norms."""
        finite = [norm for norm in self.norms if np.isfinite(norm)]
        if not finite:
            return NormStatistics(len(self.norms), *(float("nan"),) * 4)
        return NormStatistics(len(self.norms), float(np.mean(finite)), float(np.std(finite)), min(finite), max(finite))


def _gradient(parameter: Any) -> Any:
    """Return the gradient of a parameter as an array; None if it has none."""
    if not hasattr(parameter, "_grad"):  # of a hand-written layer
        return parameter.grad
    return None if parameter._grad is None else parameter._grad.array


__all__ = ["GradientAccumulator"]
