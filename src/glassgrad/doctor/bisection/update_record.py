"""Record an optimizer's step for each parameter: the options, and the rule op by op.

Steps run as generated functions, which do not expose single ops. So before a step the rule is run once more for each
parameter, on copies of the state, and every op is recorded. PyTorch's optimizers expose only their options.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

import numpy as np

from glassgrad.base import provenance
from glassgrad.doctor.bisection.op_record import Event
from glassgrad.doctor.library import Args
from glassgrad.doctor.observers.events import Listener
from glassgrad.doctor.run import here
from glassgrad.engine.tensor import Tensor, make
from glassgrad.engine.terms import Number, Term
from glassgrad.ops.core import Primitive
from glassgrad.optim import equations
from glassgrad.optim.optimizer import Optimizer

_RULES = f"{provenance.PACKAGE}optim{os.sep}"
_KINDS = (bool, int, float, str, tuple, type(None))


@dataclass(frozen=True)
class Update:
    """One step of an optimizer for one parameter.

    Attributes:
        optimizer: the name of its class.
        options: those of the parameter's group.
        site: code object and instruction of the user's call of `step`.
        events: the ops of the rule, in order; the `site` of each is the line of the rule. None for PyTorch's.
    """

    optimizer: str
    options: dict[str, Any]
    site: tuple[CodeType, int]
    events: list[Event] = field(default_factory=list)


class Updates(Listener):
    """Records the steps of optimizers, as the engine's witness or as a hook of PyTorch.

    Attributes:
        found: the steps for each parameter, by its id.
    """

    def __init__(self) -> None:
        self.found: dict[int, list[Update]] = {}

    def stepping(self, optimizer: Any, *_: Any, **options: Any) -> None:
        """Record the beginning of a step."""
        site = here()
        for group in optimizer.param_groups:
            options = {name: value for name, value in group.items() if isinstance(value, _KINDS)}
            for parameter in group["params"]:
                update = Update(type(optimizer).__name__, options, site)
                if isinstance(optimizer, Optimizer) and parameter._grad is not None and _has_rule(optimizer):
                    state = {name: _copy(value) for name, value in optimizer.state.get(parameter, {}).items()}
                    _Noted(parameter, np.array(parameter._grad.array), state, group, update).apply(optimizer.update)
                self.found.setdefault(id(parameter), []).append(update)


def _has_rule(optimizer: Optimizer) -> bool:
    return type(optimizer).update is not Optimizer.update and type(optimizer).step is Optimizer.step


def _copy(value: Any) -> Any:
    return make(np.array(value.array), None, False) if isinstance(value, Tensor) else value


class _Noted(equations.Direct):
    """Runs a rule on arrays, writes nothing, and records every op."""

    def __init__(self, parameter: Tensor, g: Any, state: dict[str, Any], group: dict[str, Any], into: Update) -> None:
        super().__init__(parameter, g, state, group, owner=into.optimizer)
        self.p = Term(self, np.array(parameter.array))
        self._into = into
        self._made: list[Any] = []  # kept alive so that ids are not reused

    def compute(self, prim: Primitive, args: Args, params: dict[str, Any]) -> Any:
        given = [arg.what if isinstance(arg, Term | Number) else arg for arg in args]
        before = tuple(np.array(one) for one in given)
        outside = tuple(not any(one is made for made in self._made) for one in given)
        made = super().compute(prim, args, params)
        self._made.append(made.what)
        frame = next(_rule_frames(sys._getframe(1)))
        site = frame.f_code, frame.f_lasti
        self._into.events.append(
            Event("update", prim.name, np.array(made.what), before, outside, False, repr(params), site)
        )
        return made


def _rule_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield the frames of the rule, in an optimizer's file, ours or the user's."""
    while frame is not None:
        file = frame.f_code.co_filename
        if (file.startswith(_RULES) and file != equations.__file__) or not provenance.is_internal(file):
            yield frame
        frame = frame.f_back


def first_gap(
    one: Sequence[Update], other: Sequence[Update], gap: Callable[[Any, Any], Any]
) -> tuple[Event, Event, Any, Update, Update] | None:
    """Return the first ops of two rules whose results differ, what differs, and their steps.

    `gap` returns the difference of two arrays, None if there is none. Rules with different ops are compared up to the
    first op that differs.
    """
    for mine, theirs in zip(one, other, strict=False):
        for a, b in zip(mine.events, theirs.events, strict=False):
            if a.key != b.key:
                break
            found = gap(a.value, b.value)
            if found is not None:
                return a, b, found, mine, theirs
    return None


def different_options(one: Update, other: Update) -> str:
    """Say which options of two steps differ, or that their rules do."""
    if one.optimizer != other.optimizer:
        return f"the rules are of {one.optimizer} and {other.optimizer}"
    shared = [name for name in one.options if name in other.options and one.options[name] != other.options[name]]
    told = [f"{name} is {one.options[name]} in a and {other.options[name]} in b" for name in shared]
    return f"the options of {one.optimizer} differ: {', '.join(told)}" if told else ""
