"""Observation of one forward and one backward pass: every output and its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from glassgrad.doctor import library
from glassgrad.doctor.facts import Facts, Layer
from glassgrad.doctor.library import Args, Module, Tensor
from glassgrad.doctor.observers.forward_watch import ForwardWatch
from glassgrad.doctor.quantities.activations import Kind

_LOST = "dead", "saturated"


class PassWatch(ForwardWatch):
    """A `ForwardWatch` that keeps facts about each output; for repeated calls of a module only NaN and infinity."""

    def __init__(self, model: Module) -> None:
        super().__init__(model)
        self._layers: dict[str, tuple[str, Facts, bool, str]] = {}
        self._gradients: dict[str, Facts] = {}
        self._entering_bad, self._made_by = False, ""

    def layers(self) -> tuple[Layer, ...]:
        """Return the layers in the order of the calls."""
        lost = self.take()
        return tuple(
            Layer(name, *known, self._gradients.get(name), *(lost[name][f"activation_{how}"] for how in _LOST))
            for name, known in self._layers.items()
        )

    def _look(self, name: str, module: Module, args: Args, output: Any) -> None:
        entering = library.first_tensor(args)
        numbers = library.numbers(entering)
        self._entering_bad = numbers is not None and numbers.dtype.kind == "f" and not np.isfinite(numbers).all()
        self._made_by = library.made_by(entering) if self._entering_bad else ""
        super()._look(name, module, args, output)

    def _add(self, name: str, shown: str, kind: Kind | None, tensor: Tensor, numbers: Any) -> None:
        super()._add(name, shown, kind, tensor, numbers)
        known = self._layers.get(name)
        if known is None or (known[1].first_bad is None and not np.isfinite(numbers).all()):
            self._layers[name] = (shown, Facts.of(name, numbers), self._entering_bad, self._made_by)
        if tensor.requires_grad:
            tensor.register_hook(lambda g: self._arrived(name, g))

    def _arrived(self, name: str, g: Any) -> None:
        array = library.numbers(g)
        known = self._gradients.get(name)
        if array is not None and (known is None or not np.isfinite(array).all()):
            self._gradients[name] = Facts.of(name, array)
