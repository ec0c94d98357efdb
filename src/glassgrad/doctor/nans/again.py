"""Replay a step op by op up to the first NaN: in the forward pass, the backward pass or the optimizer's step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np

from glassgrad.base import provenance
from glassgrad.doctor import library
from glassgrad.doctor.facts import Finding
from glassgrad.doctor.library import Module, Optimizer
from glassgrad.doctor.nans import findings
from glassgrad.doctor.nans.replay import Replay
from glassgrad.doctor.nans.state import copied
from glassgrad.doctor.observers.events import Listener
from glassgrad.engine.mode import MODE
from glassgrad.engine.reports.nonfinite import has_bad
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.walks.anomaly import detect_anomaly


class _Found(BaseException):
    """Unwinds the step through all handlers in the user's code."""


class Again(Replay, Listener):
    """Replays a step under anomaly mode, as the engine's witness, with the names of the model's parameters."""

    def __init__(self, model: Module, *, inf: bool = False, allow: Collection[str] = ()) -> None:
        super().__init__(model, inf=inf, allow=allow)
        self.tensors = dict(_tensors(model))
        self.names = {id(tensor): name for name, tensor in self.tensors.items()}
        self._looking: Any = None
        self._output: Any = None
        self._before: dict[str, dict[str, Any]] = {}

    def run(self, step: Callable[[], Any]) -> Finding | None:
        """Run the step and return the finding."""
        witness = MODE.witness
        looking = self._looking = detect_anomaly(check_inf=self.inf, allow=self.allow)
        looking.module = lambda: self._path[-1] if self._path else ""
        with np.errstate(all="ignore"), self._modules(), looking:
            MODE.witness = self
            try:
                result = step()
                if self.finding is None and has_bad(library.first_tensor(result), True):
                    self._look_at_loss(library.first_tensor(result))
            except _Found:
                pass
            except Exception as error:
                if error is not looking.backward.raised:
                    raise
            finally:
                MODE.witness = witness
        if looking.backward.raised is not None:
            self.finding = findings.of_backward(looking.backward.raised, looking.backward)
        return self.finding

    def _put_out(self, module: Module, told: str, output: Any) -> None:
        if module is self.model:
            self._output = output

    # --- events reported by the engine ---

    def backward(self, loss: Any, traced: bool = False) -> bool:
        """Check the loss before a backward pass."""
        root = loss[0] if isinstance(loss, tuple | list) and loss else loss
        if has_bad(root, True) or (self.inf and self._looking.born is not None):
            self._look_at_loss(root)
            raise _Found
        return False

    def _look_at_loss(self, loss: Any) -> None:
        output = library.first_tensor(self._output)
        in_model = has_bad(output, self.inf) or bool(self._looking.born is not None and self._looking.born.module)
        of = "" if output is None else " of the model" if in_model else " of the loss"
        tracked = loss if isinstance(loss, Tensor) and loss.node is not None else None
        self.finding = findings.of_forward(
            tracked,
            self.names,
            self._looking.born,
            of=of,
            inf=self.inf,
            allow=self.allow,
            forward=self._looking.forward,
        )

    def stepping(self, optimizer: Optimizer, traced: bool = False, closure: bool = False) -> None:
        """Before an optimizer's step: copy the inputs of its rule."""
        self._before = {}
        for group in optimizer.param_groups:
            for at, tensor in enumerate(group["params"]):
                state = {name: copied(part) for name, part in optimizer.state.get(tensor, {}).items()}
                gradient = {} if tensor._grad is None else {"gradient": copied(tensor._grad)}
                name = self.names.get(id(tensor), f"parameter {at}")
                self._before[name] = {"the parameter": copied(tensor), **gradient, **state}
                self.tensors.setdefault(name, tensor)

    def stepped(self, optimizer: Optimizer, traced: bool = False) -> None:
        """After an optimizer's step: check the weights."""
        now = {name: self.tensors[name].array for name in self._before}
        name = findings.first_update(now)
        if name is not None:
            place = str(provenance.here())
            self.finding = findings.of_update(optimizer, name, now[name], self._before[name], place)
            raise _Found


def _tensors(model: Module) -> Iterator[tuple[str, Any]]:
    yield from model.named_parameters()
    if hasattr(model, "named_buffers"):
        yield from model.named_buffers()
