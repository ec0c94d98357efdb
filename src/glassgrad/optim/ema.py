"""An exponential moving average of a model's weights, to use for validation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.snapshot import Snapshot
from glassgrad.engine.tensor import Tensor, make
from glassgrad.engine.writes import MUTATIONS
from glassgrad.nn.module import Module
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.elementwise import minimum
from glassgrad.optim.equations import Direct, Group, State
from glassgrad.optim.in_place import InPlace


def average(shadow: Array, weight: Array, _state: State, group: Group) -> Array:
    """Return the next average; this is an update rule like an optimizer's."""
    return group.decay * shadow + (1 - group.decay) * weight


class EMA:
    """shadow = d * shadow + (1 - d) * weight, at every `update()` (Tarvainen and Valpola 2017).

    Args:
        model: the model whose parameters are averaged.
        decay: the decay rate d.
        warmup: start with a lower decay rate, min(decay, (1 + n) / (10 + n)) at update n.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Linear(1, 1, bias=False)
        >>> ema = gg.optim.EMA(model, decay=0.5)
        >>> with gg.no_grad():
        ...     _ = model.weight.fill_(model.weight.item() + 2)
        >>> ema.update()
        >>> with ema.applied():
        ...     inside = model.weight.item()
        >>> round(model.weight.item() - inside, 3)
        1.0
    """

    def __init__(self, model: Module, decay: float = 0.999, warmup: bool = False) -> None:
        if not 0 <= decay <= 1:
            raise bad_option("EMA", "decay", decay, "a share between 0 and 1")
        self.model = model
        self.decay = decay
        self.warmup = warmup
        self._in_place = InPlace()
        # These are tensors so that a compiled step can update them.
        self._updates = make(np.zeros((), np.float64), None, False)
        self.shadow = {name: make(parameter.array.copy(), None, False) for name, parameter in model.named_parameters()}

    @property
    def updates(self) -> int:
        """The number of updates of the average."""
        return int(self._updates.array)

    def tensors(self) -> list[Tensor]:
        """Return every tensor that `update` writes."""
        return [self._updates, *self.shadow.values()]

    def update(self) -> None:
        """Update the average with the current weights; works in a compiled step, too."""
        count = self._updates.lifted()
        keep: Any = self.decay
        if self.warmup:
            keep = minimum(self.decay, (1 + count) / (10 + count))
        self._updates.assign(count + 1)
        options = {"decay": keep}
        for name, parameter in self.model.named_parameters():
            shadow, weight = self.shadow[name], parameter.lifted()
            if type(shadow.array) is type(weight) is np.ndarray:
                self._in_place.step(average, shadow.array, weight, {}, options, "EMA")
            else:
                Direct(shadow, weight, {}, options).step(average)

    @contextmanager
    def applied(self) -> Iterator[Module]:
        """Give the model the averaged weights during the block."""
        trained = Snapshot(tensors=self.model.parameters())
        self._write(self._averages())
        try:
            yield self.model
        finally:
            trained.restore()

    def copy_to(self, model: Module) -> None:
        """Write the averaged weights into a model of the same shape."""
        self._write(self._averages(), model)

    def _averages(self) -> dict[str, np.ndarray]:
        return {name: tensor.array for name, tensor in self.shadow.items()}

    def _write(self, arrays: dict[str, np.ndarray], model: Module | None = None) -> None:
        for name, parameter in (model or self.model).named_parameters():
            parameter.array[...] = arrays[name]
            MUTATIONS.record(parameter.array)

    def state_dict(self) -> dict[str, Any]:
        """Return the averages, the decay rate and the number of updates."""
        return {"shadow": self._averages(), "decay": self.decay, "updates": self.updates}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state from `state_dict()`."""
        given = {name: np.asarray(array) for name, array in state_dict["shadow"].items()}
        shapes = {name: array.shape for name, array in given.items()}
        own = {name: tensor.array.shape for name, tensor in self.shadow.items()}
        if shapes != own:
            wrong = sorted(name for name in {**shapes, **own} if shapes.get(name) != own.get(name))
            raise errors.AVERAGES_MISMATCH(owner=type(self).__name__, names=", ".join(wrong), where=provenance.here())
        for name, array in given.items():
            self.shadow[name].array[...] = array
        self.decay = state_dict["decay"]
        self._updates.array[...] = state_dict["updates"]


__all__ = ["EMA"]
