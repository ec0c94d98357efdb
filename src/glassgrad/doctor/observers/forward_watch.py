"""Statistics of the outputs of a model's modules, by forward hooks that are attached only while needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import numpy as np

from glassgrad.doctor import library
from glassgrad.doctor.facts import Facts
from glassgrad.doctor.library import Args, Array, Handle, Module, Tensor
from glassgrad.doctor.quantities.activations import Activation, Kind, kind_of

BEFORE = " before "
"""Joins the name of a function and that of the module that receives its result."""


class Looker(Protocol):
    """Looks at the outputs of modules for one kind of fault."""

    def look(self, name: str, kind: str, module: Module, args: Args, result: Tensor) -> None:
        """Look at an output."""


class ForwardWatch:
    """Hooks on the leaf modules; every pass is accumulated while they are attached.

    A function called without a module, such as `torch.tanh(x)`, is seen where its result enters the next module: the
    tape knows which op made it.

    Args:
        model: ours or PyTorch's.
        clock: measures the time spent here.
        lookers: look at each output, with what entered.
    """

    def __init__(
        self, model: Module, clock: AbstractContextManager[object] | None = None, lookers: Iterable[Looker] = ()
    ) -> None:
        self._model = model
        self._clock = nullcontext() if clock is None else clock
        self._handles: list[Handle] = []
        self._found: dict[str, Activation] = {}
        self._seen: set[int] = set()
        self._latest = ""
        self.kinds: dict[str, str] = {}
        self.traced = False
        self._lookers = tuple(lookers)

    def attach(self) -> None:
        """Attach the hooks."""
        if self._handles:
            return
        for name, module in library.named_leaves(self._model):
            self._handles.append(module.register_forward_hook(library.hook_of(module, self._hook(name))))

    def detach(self) -> None:
        """Remove the hooks, so that modules run as before."""
        library.remove_hooks(self._model, self._handles)
        self._handles = []

    def take(self) -> dict[str, dict[str, float]]:
        """Return the statistics of each place with outputs since the last call, in the order of the model."""
        found = {name: activation.measure() for name, activation in self._found.items()}
        self._found = {}
        self._seen = set()
        return found

    def alive(self) -> dict[str, tuple[Any, int, int]]:
        """Return for each rectifier the units not always zero since `take`, their axis, and the number of examples."""
        return {
            name: (seen.alive, seen.axis, seen.examples) for name, seen in self._found.items() if seen.alive is not None
        }

    def _hook(self, name: str) -> Callable[..., None]:
        def seen(module: Module, args: Args, output: Any) -> None:
            with self._clock:
                self._look(name, module, args, output)

        return library.untraced(seen)

    def _look(self, name: str, module: Module, args: Args, output: Any) -> None:
        result = library.first_tensor(output)
        numbers = library.numbers(result)
        if numbers is None:
            self.traced |= result is not None
            return
        if not library.is_recording(self._model):
            return  # a validation pass between steps
        kind = type(module).__name__
        for one in self._lookers:
            one.look(name, kind, module, args, result)
        self._look_before(name, args)
        if numbers.dtype.kind == "f":
            self._add(name, kind, kind_of(kind, module), result, numbers)
        origin = library.producer(result)
        if origin is not None:
            self._seen.add(origin[1])
        if not kind_of(kind):
            self._latest = kind

    def _look_before(self, name: str, args: Any) -> None:
        entering = library.first_tensor(args)
        origin = library.producer(entering) if entering is not None else None
        if origin is None or origin[1] in self._seen:
            return
        self._seen.add(origin[1])
        kind = kind_of(origin[0])
        numbers = library.numbers(entering)
        if kind is not None and numbers is not None:
            self._add(f"{origin[0]}{BEFORE}{name}", origin[0], kind, entering, numbers)

    def _add(self, name: str, shown: str, kind: Kind | None, tensor: Tensor, numbers: Any) -> None:
        self.kinds.setdefault(name, shown)
        if name not in self._found:
            self._found[name] = Activation(kind, self._latest.startswith("Conv"))
        self._found[name].add(numbers)


def _is_mask(array: Array) -> bool:
    """Tell whether an array is what attention adds to its scores: 0, and minus infinity for what is masked."""
    return bool(np.isneginf(array).any() and ((array == 0) | np.isneginf(array)).all())


def inputs_of(args: Args) -> tuple[Facts, ...]:
    """Describe the floating-point arrays that go into a model."""
    found = [library.numbers(arg) if library.is_tensor(arg) else arg for arg in args]
    arrays = [array for array in found if isinstance(array, np.ndarray) and array.size]
    floats = [array for array in arrays if array.dtype.kind == "f" and not _is_mask(array)]
    return tuple(Facts.of(f"input {at}" if at else "input", array) for at, array in enumerate(floats))
