"""Check each step of a PyTorch loop for NaN: the loss before its backward pass, the gradients before the step.

Only hooks are attached to the model. After the model returns its output, a mode of `torch.overrides` records the few
calls from there to the loss. If the loss or a gradient is bad, the model and these calls run again, with the same
arguments, running statistics and random numbers, under a dispatch mode that sees every op.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from glassgrad.base import provenance
from glassgrad.base.provenance import pytorch
from glassgrad.doctor import library
from glassgrad.doctor.facts import Finding
from glassgrad.doctor.graphs.torch_graph import NOTHING, Calls
from glassgrad.doctor.library import Args, Kwargs, Module, Optimizer, Tensor
from glassgrad.doctor.nans import findings
from glassgrad.doctor.nans.state import SMALL
from glassgrad.doctor.nans.step_check import ALL_BACK, SHARE, StepCheck, divides
from glassgrad.doctor.nans.torch_again import TorchAgain
from glassgrad.doctor.nans.torch_events import is_bad
from glassgrad.doctor.run import Site, here

_MOST_CALLS = 4096


class _Call(NamedTuple):
    """A call of the model, or of a function between the model and the loss, with its result."""

    function: Callable[..., Any]
    args: Args
    kwargs: Kwargs
    result: Any
    site: Site | None = None


class TorchGuard(StepCheck):
    """Checks each step of a PyTorch loop, and raises at the first step that makes a NaN."""

    def __init__(self, model: Module, optimizers: Sequence[Optimizer], *, inf: bool, allow: Collection[str]) -> None:
        super().__init__(library.uncompiled(model), optimizers, inf=inf, allow=allow)
        self._between = Calls(self.called)
        self._calls: list[_Call] = []
        self._notes = False
        self._before: list[tuple[Any, Any]] = []
        self._random: Any = None
        self._copies: tuple[dict[str, Any], dict[str, Any]] | None = None

    # --- events reported by the observer ---

    def entered(self) -> None:
        """Before a forward pass: copy running statistics and random state."""
        if self.busy or not pytorch().is_grad_enabled():
            return
        self._between.leave()
        if not self._calls:
            small = [one for one in self.model.buffers() if one.numel() <= SMALL]
            self._before = [(one, one.detach().clone()) for one in small]
            self._random = pytorch().get_rng_state()

    def called(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        """Call a PyTorch function and record the call."""
        name = getattr(function, "__name__", "")
        if not self._notes or self.busy or name in NOTHING:
            return function(*args, **kwargs)
        if name == "backward" and args and library.is_torch(args[0]):
            self._notes = False
            if args[0].numel() == 1 and is_bad(args[0], self.inf):
                self._fail(args[0])
            self._loss = args[0]
            return function(*args, **kwargs)
        result = function(*args, **kwargs)
        if len(self._calls) < _MOST_CALLS:
            self._calls.append(_Call(function, args, kwargs, result, here()))
        return result

    def forward(self, args: Args, kwargs: Kwargs, output: Any) -> None:
        """After a forward pass: record the calls from its output to the loss."""
        if self.busy or not pytorch().is_grad_enabled():
            return
        self._calls.append(_Call(self.model, args, kwargs, output, here()))
        self._notes = True
        self._between.enter()

    def stepping(self, optimizer: Optimizer, traced: bool = False, closure: bool = False) -> None:
        """Before an optimizer's step: check the gradients, and copy the weights from time to time."""
        self._between.leave()
        if self.busy:
            return
        held = [one.grad for one in self.named.values() if one.grad is not None and not one.grad.is_sparse]
        fine = not held or bool(pytorch().stack(pytorch()._foreach_norm(held)).sum().isfinite())
        infinite = self._loss is not None and self._loss.numel() == 1 and math.isinf(self._loss.item())
        if infinite or (not fine and any(is_bad(one) for one in held)):
            self._fail(self._loss)
        began = time.perf_counter()
        self._copies = None
        if divides(optimizer, "torch.optim") or self._spent <= SHARE * (began - self._began):
            weights = {name: one.detach().clone() for name, one in self.named.items()}
            self._copies = weights, copy.deepcopy(optimizer.state_dict())
            self._spent += time.perf_counter() - began

    def stepped(self, optimizer: Optimizer, traced: bool = False) -> None:
        """After an optimizer's step: check the weights if they were copied."""
        if self.busy:
            return
        self._calls, self._loss = [], None
        copies, self._copies = self._copies, None
        bad = [name for name, one in self.named.items() if is_bad(one)] if copies is not None else []
        bad.sort(key=lambda name: not is_bad(self.named[name], inf=False))  # NaN first
        if copies is not None and bad:
            weights, state = copies
            parameter, name = self.named[bad[0]], bad[0]
            known = {"the parameter": library.numbers(weights[name])}
            if parameter.grad is not None:
                known["gradient"] = library.numbers(parameter.grad)
            kept = {at: value for entry in state["state"].values() for at, value in entry.items()}
            known |= {at: library.numbers(v) for at, v in kept.items() if getattr(v, "shape", None) == parameter.shape}
            place = str(provenance.here())
            after = np.array(library.numbers(parameter))
            found = findings.of_update(optimizer, name, after, known, place)
            with pytorch().no_grad():
                for one, before in weights.items():
                    self.named[one].copy_(before)
            optimizer.load_state_dict(state)
            self._undo()
            self.report(found, self.steps, ALL_BACK)
        self.steps += 1

    def disconnect(self) -> None:
        """Stop checking."""
        self._between.leave()
        self._calls = []

    # --- inside ---

    _loss: Any = None

    def _fail(self, loss: Tensor) -> None:
        """Replay the step op by op, and raise the finding."""
        self.busy = True
        try:
            self._undo()
            again = TorchAgain(self.model, inf=self.inf, allow=self.allow)
            found = again.run(lambda: self._made_again(again, loss)) if self._calls else None
            found = found or self._of_data()
        finally:
            self.busy = False
        self._undo()
        self._calls = []
        self.report(found, self.steps, ALL_BACK)

    def _undo(self) -> None:
        with pytorch().no_grad():
            for one, before in self._before:
                if not pytorch().equal(one, before):
                    one.copy_(before)
        if self._random is not None:
            pytorch().set_rng_state(self._random)
        for one in self.named.values():
            one.grad = None

    def _made_again(self, again: TorchAgain, loss: Tensor) -> Any:
        """Repeat the recorded calls; return the loss that results."""
        made: dict[int, Any] = {}

        def now(one: Tensor) -> Tensor:
            return made.get(id(one), one)

        for call in self._calls:
            block = again.inside if call.function is self.model else again.at
            with nullcontext() if call.site is None else block(provenance.resolve(*call.site)):
                result = call.function(*library.mapped(call.args, now), **library.mapped(call.kwargs, now))
            for old, new in zip(_tensors(call.result), _tensors(result), strict=False):
                made[id(old)] = new
        return made.get(id(loss), result)

    def _of_data(self) -> Finding:
        """Return the finding for an input or parameter that held a NaN before any op ran."""
        for inf in (False, True):
            for call in self._calls:
                for at, tensor in enumerate(_tensors((call.args, call.kwargs))):
                    if tensor.is_leaf and is_bad(tensor, inf):
                        name = getattr(call.function, "__name__", type(call.function).__name__)
                        what = f"operand {at + 1} of {name} holds"
                        what = f"input {at + 1} of the model holds" if call.function is self.model else what
                        return findings.held("NaN in the data", what, library.numbers(tensor), findings.DATA, inf)
            for name, one in self.named.items():
                if is_bad(one, inf):
                    what, advice = f"{name} holds", findings.CHECKPOINT
                    return findings.held("NaN in a parameter", what, library.numbers(one), advice, inf)
        what = "the loss or a gradient is bad, but repeating the step from the model's arguments made no bad value"
        return Finding("NaN in a step", "error", what, "Use PyTorch's autograd.detect_anomaly to find the function.")


def _tensors(value: Any) -> list[Any]:
    if library.is_torch(value):
        return [value] if hasattr(value, "is_leaf") else []
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return [one for part in value for one in _tensors(part)]
    return [] if not hasattr(value, "logits") else _tensors(value.logits)
