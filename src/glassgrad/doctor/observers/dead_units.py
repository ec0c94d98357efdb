"""Detection of rectifier units that are zero for every example, over all steps, not only the sampled ones.

A unit that was once not zero is not inspected again in the same window of steps. So after the first steps few units are
left to inspect, and most layers have no hook.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from glassgrad.doctor import library
from glassgrad.doctor.library import Args, Array, Handle, Module
from glassgrad.doctor.observers.forward_watch import BEFORE
from glassgrad.doctor.quantities.activations import living

STRETCH = 64
"""Length of the first window of steps; each later window is twice as long as the one before it."""


@dataclass(frozen=True)
class Dead:
    """Dead units of one rectifier: the share of its units that were zero for every example of some steps.

    Attributes:
        share: the share of units that were zero.
        first, last: the first and the last of these steps.
        seen: the number of these steps that were inspected; `examples`: the number of examples in them.
    """

    share: float
    first: int
    last: int
    seen: int
    examples: int


@dataclass
class _Stretch:
    """A window of steps, with the units of each layer that were always zero."""

    first: int
    silent: dict[str, Array] = field(default_factory=dict)
    examples: dict[str, int] = field(default_factory=dict)
    seen: int = 0


class DeadUnits:
    """Tracks the units that have been zero so far.

    Args:
        model: ours or PyTorch's.
        clock: measures the time spent here.
        hidden: the model runs as a compiled program, so its units are seen only in sampled steps.
    """

    def __init__(self, model: Module, clock: AbstractContextManager[object], hidden: bool = False) -> None:
        self._model = model
        self._hidden = hidden
        self._clock = clock
        self._modules = dict(library.named_leaves(model))
        self._axes: dict[str, int] = {}
        self._now = _Stretch(0)
        self._before: _Stretch | None = None
        self._length = STRETCH
        self._handles: dict[str, Handle] = {}
        self._looked = False
        self._counted = 0

    def sampled(self, alive: Mapping[str, tuple[Array, int, int]]) -> None:
        """Record a sampled step: by place, the units that were not zero, their axis, and the number of examples."""
        for name, (units, axis, examples) in alive.items():
            self._axes[name] = axis
            known = self._now.silent.get(name)
            self._now.silent[name] = ~units if known is None or known.shape != units.shape else known & ~units
            self._now.examples[name] = self._now.examples.get(name, 0) + examples
        self._looked |= bool(alive)

    def attach(self) -> None:
        """Attach hooks for the remaining units in the next step."""
        if self._hidden:
            return
        left = {name for name, silent in self._now.silent.items() if silent.any()}
        self._looked |= bool(self._now.silent)  # if every unit was alive, there are no dead ones to find
        if self._handles.keys() - left:
            self.detach()
        for name in left - self._handles.keys():
            before, _, behind = name.rpartition(BEFORE)
            if behind in self._modules:
                module = self._modules[behind]
                hook = library.hook_of(module, self._hook(name, bool(before)))
                self._handles[name] = module.register_forward_hook(hook)

    def detach(self) -> None:
        """Remove the hooks."""
        library.remove_hooks(self._model, self._handles.values())
        self._handles.clear()

    def count(self, steps: int) -> None:
        """Count the steps since the last call as steps like the first; begin a new window if this is over."""
        if self._looked:
            self._now.seen += steps - self._counted
        self._counted, self._looked = steps, False
        if steps - self._now.first >= self._length:
            self.detach()
            self._length *= 2
            silent = {name: np.ones_like(units) for name, units in self._now.silent.items()}
            self._before, self._now = self._now, _Stretch(steps, silent)

    def found(self, steps: int) -> dict[str, Dead]:
        """Return the findings after `steps` steps: of the last window, and of the previous one if it is short."""
        short = self._before is not None and steps - self._now.first < STRETCH
        parts = [self._now] if not short or self._before is None else [self._before, self._now]
        first, seen = parts[0].first, sum(part.seen for part in parts)
        found = {}
        for name in self._axes:
            silent = np.logical_and.reduce([part.silent[name] for part in parts if name in part.silent])
            examples = sum(part.examples.get(name, 0) for part in parts)
            found[name] = Dead(float(silent.mean()), first, steps - 1, seen, examples)
        return found

    def _hook(self, name: str, before: bool) -> Callable[..., None]:
        def seen(_module: Module, args: Args, output: Any) -> None:
            if library.is_recording(self._model):
                with self._clock:
                    self._look(name, library.numbers(library.first_tensor(args if before else output)))

        return library.untraced(seen)

    def _look(self, name: str, numbers: Array | None) -> None:
        silent = self._now.silent[name]
        axis = self._axes[name]
        if numbers is None or numbers.ndim <= axis or numbers.shape[axis] != silent.size:
            return
        self._now.examples[name] = self._now.examples.get(name, 0) + len(numbers)
        left = np.flatnonzero(silent)
        if left.size:
            others = tuple(at for at in range(numbers.ndim) if at != axis)
            silent[left] = ~living(np.take(numbers, left, axis), others)
