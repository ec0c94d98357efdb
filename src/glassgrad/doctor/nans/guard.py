"""Check each step of our engine for NaN: one cheap check per step, and an analysis if it fails.

In an eager step the tape still exists when the loss or a gradient turns out to be NaN, so it names the op that made it;
the weights are unchanged then. One call of native code checks all gradients of a backward pass. Only an optimizer's
step overwrites its own inputs. So the state is copied before each step that can make a NaN of finite numbers (a divisor
without eps, an extreme rate or gradient), and before other steps as often as time allows. `compiled_steps` keeps a
log of compiled steps and repeats them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

from glassgrad.base import provenance
from glassgrad.doctor.facts import Finding
from glassgrad.doctor.library import Args, Array, Kwargs, Module, Optimizer
from glassgrad.doctor.nans import findings
from glassgrad.doctor.nans.again import Again
from glassgrad.doctor.nans.compiled_steps import ONLY_COMPILED, CompiledSteps, run_checked
from glassgrad.doctor.nans.largest import UNKNOWN, is_number, largest, reader
from glassgrad.doctor.nans.state import Beginning, Copies
from glassgrad.doctor.nans.step_check import ALL_BACK, SHARE, StepCheck, divides
from glassgrad.doctor.nans.tape_search import Tape
from glassgrad.doctor.observers.events import Program, Run, Sampling
from glassgrad.doctor.restoring.step_aside import written_as
from glassgrad.engine.mode import ANOMALY, MODE, TRACING
from glassgrad.engine.random import USES
from glassgrad.engine.reports.nonfinite import has_bad, is_scaled
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.walks.anomaly import Backward, Nothing

_IN_A_ROW = 10
"""The number of successive steps skipped by a gradient scaler after which the scale is not the cause."""
_NEAR_OVERFLOW = 1e14
"""The size of gradients above which a product may overflow single precision."""
_ASLEEP = TRACING | ANOMALY
_BETWEEN = 16
"""The number of harmless steps between two decisions on copying the weights."""


class Guard(StepCheck):
    """Checks each step of a training loop, and raises at the first step that makes a NaN."""

    def __init__(self, model: Module, optimizers: Sequence[Optimizer], *, inf: bool, allow: Collection[str]) -> None:
        super().__init__(model, optimizers, inf=inf, allow=allow)
        self.names = {id(tensor): name for name, tensor in self.named.items()}
        self._beginning = Beginning([tensor for _, tensor in model.named_buffers()])
        self._copies: Copies | None = None
        self.root: Tensor | None = None
        self._left_out, self._largest = 0, 0.0
        self._looks = False
        self._harmless = -1  # so that the weights are copied before the first step
        self._latest: Optimizer | None = None  # the optimizer whose step began last
        self._options: object = None  # the options that were last inspected
        self._divides = True
        self._last: Optimizer | None = None
        self._read = reader()
        self.compiled = CompiledSteps(self)

    # --- events of an eager step, reported by the engine ---

    def backward(self, loss: Any, traced: bool = False) -> bool:
        """Check the loss before a backward pass; return whether the gradients are to be checked after it."""
        if self.busy or MODE.flags & _ASLEEP:
            return False
        if isinstance(loss, Tensor) and not _is_finite_number(loss.array) and self._is_bad_loss(loss):
            self._fail(lambda: self._of_loss(loss))
        self.root = loss
        return True

    def _is_bad_loss(self, loss: Tensor) -> bool:
        """Tell whether a loss is NaN, or one number that is infinite and that no gradient scaler made so."""
        return has_bad(loss, self.inf) or (loss.array.size == 1 and has_bad(loss, True) and not is_scaled())

    def _of_loss(self, loss: Tensor) -> Finding:
        found = findings.of_forward(loss, self.names, None, inf=self.inf, allow=self.allow)
        if found.rule.endswith("in a parameter") and self.steps and self._last is not None:
            # The gradients were finite, so an optimizer's step made the NaN, and its weights were not checked.
            return self._of_update(self._last, "")
        return found

    def walked(self, found: dict[Any, Any], again: Callable[[], Any]) -> None:
        """Check the gradients of a backward pass, which `again` repeats if one of them holds a NaN."""
        loss, self.root = self.root, None
        size = self._largest = self._read(*found.values())
        if size == UNKNOWN:
            size = self._largest = largest(*found.values())
        if size - size == 0:
            self._left_out = 0
            return
        held = [tensor._grad.array for tensor in self.named.values() if tensor._grad is not None]
        self._largest = largest(*held)  # the accumulated gradients, of this model only
        if is_number(self._largest, True):
            self._left_out = 0
        elif not self._is_scaled():
            self._fail(lambda: self._walk(again, loss))

    def _is_scaled(self) -> bool:
        """Tell whether a gradient scaler will skip the step and lower its scale."""
        if not is_scaled():
            return False
        self._left_out += 1
        return self._left_out <= _IN_A_ROW

    def _walk(self, again: Callable[[], Any], loss: Tensor | None) -> Finding:
        known = Tape(loss).known() if isinstance(loss, Tensor) and loss.node is not None else Nothing()
        seen = Backward(known, self.inf, self.allow)
        before, MODE.observer = MODE.observer, seen
        try:
            again()
        except Exception as error:
            if error is not seen.raised:
                raise
            return findings.of_backward(error, seen)
        finally:
            MODE.observer = before
        named = {name: tensor._grad.array for name, tensor in self.named.items() if tensor._grad is not None}
        name = findings.first_update(named) or ""
        what = f"the gradient of {name}, to which this backward pass added finite numbers, holds"
        return findings.held("NaN in a gradient", what, named[name], "Zero the gradients before the pass.", True)

    def stepping(self, optimizer: Optimizer, traced: bool = False, closure: bool = False) -> None:
        """Before an optimizer's step: copy what it overwrites, if it may make a NaN."""
        if self.busy or MODE.flags & _ASLEEP:
            return
        groups = optimizer.param_groups
        options = tuple(groups[0].values()) if len(groups) == 1 else [tuple(group.values()) for group in groups]
        if optimizer is not self._latest or options != self._options:
            self._look_at_options(optimizer, options)
        self._harmless += 1
        dangerous = self._divides or not self._largest < _NEAR_OVERFLOW  # may make a NaN of finite numbers
        self._looks = dangerous or (not self._harmless % _BETWEEN and self._is_time())
        if self._looks:
            began = time.perf_counter()
            self._copies = Copies(list(self.named.values()), self.optimizers, self.steps)
            self._spent += time.perf_counter() - began

    def _look_at_options(self, optimizer: Optimizer, options: object) -> None:
        """Find out whether an optimizer may divide by 0."""
        if not any(optimizer is one for one in self.optimizers):
            self.optimizers.append(optimizer)
        self._latest, self._options, self._divides = optimizer, options, divides(optimizer)

    def _is_time(self) -> bool:
        """Tell whether there is time for a copy before a harmless step."""
        return self._spent <= SHARE * (time.perf_counter() - self._began)

    def stepped(self, optimizer: Optimizer, traced: bool = False) -> None:
        """After an optimizer's step, check the weights if they were copied before it."""
        if self.busy or MODE.flags & _ASLEEP:
            return
        if self._looks:
            began = time.perf_counter()
            good = self.is_good()
            self._spent += time.perf_counter() - began
            if not good:
                self._fail(lambda: self._of_update(optimizer, str(provenance.here())))
        self._last = optimizer
        self.steps += 1
        beginning = self._beginning
        if beginning.uses != USES.count or beginning.buffers:
            beginning.renew()

    def _of_update(self, optimizer: Optimizer, place: str) -> Finding:
        now = {name: tensor.array for name, tensor in self.named.items()}
        name = findings.first_update(now) or ""
        tensor = self.named[name]
        gradient = {} if tensor._grad is None else {"gradient": tensor._grad.array.copy()}
        copies, known = self._copies, {}
        if copies is not None:
            if copies.step == self.steps:
                known = {"the parameter": copies.values[id(tensor)], **gradient, **copies.states.get(id(tensor), {})}
            found = findings.of_update(optimizer, name, now[name].copy(), known or gradient, place)
            copies.restore()
            return found
        return findings.of_update(optimizer, name, now[name], gradient, place)

    def is_good(self) -> bool:
        """Tell whether the weights and their gradients are finite; a gradient scaler looks after infinite gradients."""
        gradients = [tensor._grad.array for tensor in self.named.values() if tensor._grad is not None]
        weights = [tensor.array for tensor in self.named.values()]
        if is_number(largest(*weights, *gradients), True):
            return True
        return is_number(largest(*weights), True) and is_number(largest(*gradients), self.inf) and self._is_scaled()

    # --- a compiled step ---

    def run_step(self, program: Program, run: Run, args: Args, kwargs: Kwargs) -> tuple[Any, float | None]:
        """Run a compiled step and check it; return its result, and the loss in it or None."""
        return self.compiled.run(program, run, args, kwargs)

    def run_beside(self, program: Program, run: Run, args: Args, kwargs: Kwargs) -> Any:
        """Run a compiled function that takes no optimizer step, and check the gradients it may leave behind."""
        result = run_checked(program, run, args, kwargs)
        if MODE.finite is not None and MODE.finite.item() != 0 and not self.is_good() and not self._is_scaled():
            function = written_as(program)
            again = Again(self.model, inf=self.inf, allow=self.allow)
            self._fail(lambda: again.run(lambda: function(*args, **kwargs)) or ONLY_COMPILED)
        return result

    def follow(self, program: Program, run: Run, args: Args, watch: Sampling) -> None:
        """Let the program's fast path make the next calls by itself."""
        self.compiled.follow(program, run, args, watch)

    # --- after a failed check ---

    def _fail(self, look: Callable[[], Finding]) -> None:
        self.busy = True
        try:
            found = look()
        finally:
            self.busy = False
        self._beginning.restore()
        for tensor in self.named.values():
            tensor._grad = None
        kept = ALL_BACK
        if "in the step of" in found.rule and (self._copies is None or self._copies.step != self.steps):
            kept = "The weights were not copied before this step" + (
                f"; they are those of step {self._copies.step}." if self._copies is not None else "."
            )
        self.report(found, self.steps, kept)


def _is_finite_number(array: Array) -> bool:
    return array.size == 1 and array.dtype.kind == "f" and math.isfinite(array.item())
