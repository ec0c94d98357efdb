"""The memory that PyTorch saves for its backward pass, by the user's line, measured by hooks on saved tensors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from glassgrad.base import provenance
from glassgrad.doctor.bisection.torch_run import TorchAside
from glassgrad.doctor.graphs.graph import canonical
from glassgrad.doctor.graphs.torch_graph import Calls
from glassgrad.doctor.library import Args, Kwargs, Tensor
from glassgrad.doctor.memory_use.torch_growth import Variables
from glassgrad.doctor.run import here

Row = list[Any]


def kept_by(
    step: Callable[..., Any], args: Sequence[Any], steps: int = 1
) -> tuple[tuple[list[Row], int, int], Variables]:
    """Run steps of PyTorch's, restore everything, and return what was kept when a backward pass began.

    Rows are [place, op, bytes, arrays]; then follow the bytes that live anyway and the number of tensors kept. After
    each step the variables have counted the nodes that they hold.
    """
    graph = sys.modules["torch"].autograd.graph
    variables = Variables(step)
    try:
        with TorchAside(step, args) as aside:
            seen = _Kept(aside.things)
            for at in range(steps):
                with ExitStack() as stack:
                    if not at:
                        stack.enter_context(graph.saved_tensors_hooks(seen.pack, lambda tensor: tensor))
                        stack.enter_context(Calls(seen.called))
                    result = step(*args)
                    if not at:
                        seen.settle()
                    del result
                variables.look()
    finally:
        variables.restore()
    return seen.most, variables


class _Kept:
    """Sums up the saved tensors until a backward pass begins, and keeps the largest of these sums."""

    def __init__(self, things: Sequence[tuple[str, Any]]) -> None:
        self.most: tuple[list[Row], int, int] = ([], 0, 0)
        self._op = ""
        named = [thing for _, thing in things if hasattr(thing, "untyped_storage")]
        for _, thing in things:
            for of in ("parameters", "buffers"):
                named += list(getattr(thing, of)()) if hasattr(thing, "named_parameters") and hasattr(thing, of) else []
        self._anyway = {_storage(tensor).data_ptr() for tensor in named}
        self._begin()

    def _begin(self) -> None:
        self._rows: dict[tuple[str, str | None, str], Row] = {}
        self._counted: set[int] = set()
        self._held = self._tensors = 0

    def called(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        """Call a function; the tensors that it saves are listed under its name."""
        name = getattr(function, "__name__", "")
        if name == "backward":
            self.settle()
        before, self._op = self._op, self._op or canonical(name)
        try:
            return function(*args, **kwargs)
        finally:
            self._op = before

    def pack(self, tensor: Tensor) -> Tensor:
        """Count a tensor that is saved, and return it."""
        storage = _storage(tensor)
        self._tensors += 1
        if storage.data_ptr() in self._counted:
            return tensor
        self._counted.add(storage.data_ptr())
        if storage.data_ptr() in self._anyway:
            self._held += storage.nbytes()
            return tensor
        place = provenance.resolve(*here())
        row = self._rows.setdefault((str(place), place.variable, self._op), [place, self._op, 0, 0])
        row[2] += storage.nbytes()
        row[3] += 1
        return tensor

    def settle(self) -> None:
        """Keep the current sums if they are the largest so far, and start again from zero."""
        if sum(row[2] for row in self._rows.values()) >= sum(row[2] for row in self.most[0]) and self._tensors:
            self.most = list(self._rows.values()), self._held, self._tensors
        self._begin()


def _storage(tensor: Tensor) -> Any:
    return tensor.untyped_storage()
