"""L-BFGS: quasi-Newton steps from the last gradients (Nocedal and Wright 2006, chapters 3 and 7)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.mode import MODE, enable_grad
from glassgrad.engine.snapshot import Snapshot
from glassgrad.engine.writes import MUTATIONS
from glassgrad.optim.optimizer import Optimizer, Options, Params, options

Vector = np.ndarray


class Point(NamedTuple):
    """The loss at a step length, its gradient, and the gradient's product with the direction."""

    step: float
    loss: float
    gradient: Vector
    slope: float


class LBFGS(Optimizer):
    """Steps along -H g, H an estimate of the inverse Hessian from the last `history_size` steps and gradients.

    `step` needs a closure that clears the gradients, computes the loss, calls backward and returns the loss;
    it is called several times. All parameters form one group.

    Args:
        params: parameters.
        lr: step length, or the initial one of the line search.
        max_iter: iterations in one call of `step`.
        max_eval: calls of the closure in one call of `step`, 1.25 * max_iter by default.
        tolerance_grad: stop when no element of the gradient is larger.
        tolerance_change: stop when neither parameters nor loss change by more.
        history_size: number of pairs of steps and gradient changes to keep.
        line_search_fn: None, or "strong_wolfe" for a step that satisfies the strong Wolfe conditions.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.tensor([3.0], requires_grad=True)
        >>> optimizer = gg.optim.LBFGS([w], lr=0.5)
        >>> def loss() -> gg.Tensor:
        ...     optimizer.zero_grad()
        ...     value = ((w - 1) ** 2).sum()
        ...     value.backward()
        ...     return value
        >>> _ = optimizer.step(loss)
        >>> round(w.item(), 4)
        1.0
    """

    checks = (("line_search_fn", lambda v: v in (None, "strong_wolfe"), "None or 'strong_wolfe'"),)

    def __init__(
        self,
        params: Params,
        lr: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        super().__init__(params, options(locals()))
        self._parameters = self.param_groups[0]["params"]

    def add_param_group(self, param_group: Options) -> None:
        if self.param_groups:
            raise errors.LBFGS_ONE_GROUP(where=provenance.here())
        super().add_param_group(param_group)

    # --- all parameters as one vector -------------------------------------------------------------------

    def _gradient(self) -> Vector:
        parts = [
            np.zeros(p.numel(), p.dtype) if p._grad is None else p._grad.array.reshape(-1) for p in self._parameters
        ]
        return np.concatenate(parts)

    def _move(self, direction: Vector, length: float) -> None:
        start = 0
        for parameter in self._parameters:
            stop = start + parameter.numel()
            parameter.array += (length * direction[start:stop]).reshape(parameter.shape)
            MUTATIONS.record(parameter.array)
            start = stop

    # --- the step ---------------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Iterate until a limit or a tolerance is reached; return the initial loss."""
        if closure is None:
            raise errors.CLOSURE_NEEDED(owner="LBFGS", where=provenance.here())
        with enable_grad():
            first = closure()
        self._runs()  # raises for a read-only parameter
        witness = MODE.witness
        if witness is not None:
            witness.stepping(self)
        self._iterate(closure, float(first))
        if witness is not None:
            witness.stepped(self)
        return first

    def _iterate(self, closure: Callable[[], Any], first: float) -> None:
        group = self.param_groups[0]
        memory = self.state[self._parameters[0]]
        memory.setdefault("func_evals", 0)
        memory.setdefault("n_iter", 0)
        memory["func_evals"] += 1
        here = Point(0.0, first, self._gradient(), 0.0)
        evaluations = 1
        for iteration in range(1, group["max_iter"] + 1):
            if np.abs(here.gradient).max() <= group["tolerance_grad"]:
                break
            memory["n_iter"] += 1
            direction = self._direction(memory, here.gradient)
            slope = float(here.gradient.dot(direction))
            memory["prev_flat_grad"], memory["prev_loss"], memory["d"] = here.gradient, here.loss, direction
            length = float(group["lr"])
            if memory["n_iter"] == 1:
                length *= min(1.0, 1.0 / float(np.abs(here.gradient).sum()))
            memory["t"] = length
            if slope > -group["tolerance_change"]:
                break
            before = here.loss
            here, used = self._advance(closure, here, direction, slope, iteration, group["max_eval"] - evaluations)
            memory["t"] = here.step
            evaluations += used
            memory["func_evals"] += used
            if evaluations >= group["max_eval"] or self._stands_still(here, direction, before):
                break

    def _stands_still(self, here: Point, direction: Vector, before: float) -> bool:
        least = self.param_groups[0]["tolerance_change"]
        return bool(np.abs(direction * here.step).max() <= least) or abs(here.loss - before) < least

    def _direction(self, memory: dict[str, Any], gradient: Vector) -> Vector:
        """Return -H g by the two loops of algorithm 7.4, with gamma of equation 7.20 for the first H."""
        if memory["n_iter"] == 1:
            memory.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            return -gradient
        self._remember(memory, gradient - memory["prev_flat_grad"], memory["t"] * memory["d"])
        pairs = list(zip(memory["old_dirs"], memory["old_stps"], memory["ro"], strict=True))
        q: Vector = gradient
        alphas = []
        for y, s, rho in reversed(pairs):
            alpha = rho * float(s.dot(q))
            q = q - alpha * y
            alphas.append(alpha)
        r: Vector = memory["H_diag"] * q
        for (y, s, rho), alpha in zip(pairs, reversed(alphas), strict=True):
            beta = rho * float(y.dot(r))
            r = r + (alpha - beta) * s
        return -r

    def _remember(self, memory: dict[str, Any], y: Vector, s: Vector) -> None:
        """Store the last change of the gradient and its step in the memory."""
        curvature = float(y.dot(s))
        if curvature <= 1e-10:  # H would not stay positive definite
            return
        kept = {"old_dirs": y, "old_stps": s, "ro": 1.0 / curvature}
        for name, value in kept.items():
            memory[name].append(value)
            if len(memory[name]) > self.param_groups[0]["history_size"]:
                memory[name].pop(0)
        memory["H_diag"] = curvature / float(y.dot(y))

    def _advance(
        self, closure: Callable[[], Any], here: Point, direction: Vector, slope: float, iteration: int, allowed: int
    ) -> tuple[Point, int]:
        """Move along the direction; return the new point and the number of calls of the closure."""
        group = self.param_groups[0]
        length = self.state[self._parameters[0]]["t"]
        if group["line_search_fn"] is None:
            self._move(direction, length)
            if iteration == group["max_iter"]:  # the next call of `step` evaluates the last move
                return here._replace(step=length), 0
            return self._evaluate(closure, length, direction), 1
        before = Snapshot(tensors=self._parameters)

        def at(step: float) -> Point:
            self._move(direction, step)
            point = self._evaluate(closure, step, direction)
            before.restore()
            return point

        search = Search(at, here._replace(step=0.0, slope=slope), float(np.abs(direction).max()), allowed)
        found = search.run(length)
        self._move(direction, found.step)
        return found, search.evaluations

    def _evaluate(self, closure: Callable[[], Any], step: float, direction: Vector) -> Point:
        with enable_grad():
            loss = float(closure())
        gradient = self._gradient()
        return Point(step, loss, gradient, float(gradient.dot(direction)))


class Search:
    """A line search for the strong Wolfe conditions: bracket a good step, then shrink the bracket with cubics.

    Algorithms 3.5 and 3.6 of Nocedal and Wright, with the safeguards of Moré and Thuente (1994).
    """

    sufficient = 1e-4
    flat = 0.9

    def __init__(self, at: Callable[[float], Point], origin: Point, size: float, allowed: int) -> None:
        self.at = at
        self.origin = origin
        self.size = size  # the largest element of the direction
        self.allowed = allowed  # rounds
        self.rounds = 0
        self.evaluations = 0

    def run(self, length: float) -> Point:
        """Return a point that satisfies the conditions, or the best one found."""
        point = self._look(length)
        before = self.origin
        while self.rounds < self.allowed:
            if self._too_high(point) or (self.rounds > 1 and point.loss >= before.loss):
                return self._narrow(before, point)
            if self._is_flat(point):
                return point
            if point.slope >= 0:
                return self._narrow(before, point)
            least, most = point.step + 0.01 * (point.step - before.step), point.step * 10
            before, point = point, self._look(cubic(before, point, least, most))
            self.rounds += 1
        return self._narrow(self.origin, point)

    def _look(self, step: float) -> Point:
        self.evaluations += 1
        return self.at(step)

    def _too_high(self, point: Point) -> bool:
        return point.loss > self.origin.loss + self.sufficient * point.step * self.origin.slope

    def _is_flat(self, point: Point) -> bool:
        return abs(point.slope) <= -self.flat * self.origin.slope

    def _narrow(self, *bracket: Point) -> Point:
        ends = list(bracket)
        low, stuck = _lower(ends), False
        while self.rounds < self.allowed and abs(ends[1].step - ends[0].step) * self.size >= 1e-9:
            step, stuck = self._trial(ends[0], ends[1], stuck)
            point = self._look(step)
            self.rounds += 1
            if self._too_high(point) or point.loss >= ends[low].loss:
                ends[1 - low] = point
                low = _lower(ends)
                continue
            if self._is_flat(point):
                return point
            if point.slope * (ends[1 - low].step - ends[low].step) >= 0:
                ends[1 - low] = ends[low]
            ends[low] = point
        return ends[low]

    def _trial(self, one: Point, other: Point, stuck: bool) -> tuple[float, bool]:
        """Return the next step length; one that stays near the same end twice is moved inwards."""
        least, most = sorted((one.step, other.step))
        step = cubic(one, other, least, most)
        margin = 0.1 * (most - least)
        if min(most - step, step - least) >= margin:
            return step, False
        if not stuck and least < step < most:
            return step, True
        return (most - margin if abs(step - most) < abs(step - least) else least + margin), False


def _lower(ends: list[Point]) -> int:
    """Return the index of the point with the lower loss."""
    return 0 if ends[0].loss <= ends[1].loss else 1


def cubic(a: Point, b: Point, least: float, most: float) -> float:
    """Return the minimum of the cubic through losses and slopes of two points, within bounds (equation 3.59)."""
    if a.step > b.step:
        a, b = b, a
    mixed = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.step - b.step)
    inside = mixed * mixed - a.slope * b.slope
    if inside >= 0:
        root = math.sqrt(inside)
        bend = b.slope - a.slope + 2 * root
        if bend == 0:  # a line has its minimum at one of the bounds
            return most if b.slope < 0 else least
        return min(max(b.step - (b.step - a.step) * ((b.slope + root - mixed) / bend), least), most)
    return (least + most) / 2  # there is no minimum, or a loss is NaN


__all__ = ["LBFGS"]
