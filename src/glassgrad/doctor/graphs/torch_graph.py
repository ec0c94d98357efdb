"""The graph of a PyTorch loss, recorded from function calls: PyTorch's own graph has no source lines and no shapes.

A mode of `torch.overrides` sees every call of the public functions, but not the functions that these call internally.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache
from typing import Any

from glassgrad.doctor import library
from glassgrad.doctor.graphs.graph import (
    CONSTANT,
    LEAF,
    MOST,
    WITH_CONSTANT,
    WITH_LOW,
    Graph,
    Op,
    axis_of,
    canonical,
    constant_of,
    factor_of,
    labels_of,
    low_of,
)
from glassgrad.doctor.library import Args, Kwargs, Tensor
from glassgrad.doctor.run import here

NOTHING = frozenset(
    {"__get__", "__set__", "size", "dim", "numel", "item", "__len__", "is_floating_point", "register_hook"}
)
_TURNED = frozenset({"__rtruediv__", "__rdiv__", "__rsub__", "__rpow__"})  # the operands are in reverse order
_WITH_LABELS = frozenset({"cross_entropy", "nll_loss"})


class Recorder:
    """Records the calls of PyTorch's functions between `start` and `stop`.

    Args:
        on_backward: called with the loss before its backward pass begins, and with None when it has ended.
    """

    def __init__(self, on_backward: Callable[[Tensor | None], None] | None = None) -> None:
        self._on_backward = on_backward
        self._calls = Calls(self.called)
        self._clear()

    def _clear(self) -> None:
        self._ops: list[Op] = []
        self._made: dict[int, int] = {}
        self._held: list[Tensor] = []  # kept alive, because the id of a deleted tensor can be reused

    def start(self) -> None:
        """Forget earlier calls, and begin to record."""
        self._clear()
        self._calls.enter()

    def stop(self) -> None:
        """Stop recording; if another mode was entered since, stop only when that one is left."""
        if self._calls.leave():
            self._clear()

    def graph(self, loss: Tensor) -> Graph | None:
        """Return the ops behind a loss."""
        root = self._made.get(id(loss))
        if root is None:
            return None
        behind, waiting = {root}, [root]
        while waiting:
            new = {parent for parent in self._ops[waiting.pop()].parents if parent >= 0} - behind
            behind |= new
            waiting.extend(new)
        order = sorted(behind)
        place = {number: at for at, number in enumerate(order)}
        ops = (self._ops[number] for number in order)
        kept = (replace(op, parents=tuple(place.get(parent, parent) for parent in op.parents)) for op in ops)
        return Graph(tuple(kept), place[root])

    def called(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        """Call a function and record the call."""
        name = getattr(function, "__name__", "")
        if name == "backward" and args and library.is_torch(args[0]):
            return self._backward(function, args, kwargs)
        result = function(*args, **kwargs)
        if name not in NOTHING and self._calls.on and len(self._ops) < MOST:
            operands = list(_operands((*args, *kwargs.values())))
            if name in _TURNED:
                operands[:2] = operands[1::-1]
            axis = _axis(name, args, kwargs)
            given = {**dict(zip(("input", "target", "weight"), args, strict=False)), **kwargs}
            self._note(canonical(name), operands, result, axis, given)
        return result

    def _backward(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        if self._on_backward is not None:
            self._on_backward(args[0])
        result = function(*args, **kwargs)
        if self._on_backward is not None:
            self._on_backward(None)
        return result

    def _note(self, name: str, operands: list[Any], result: Any, axis: int | None, given: Kwargs) -> None:
        outputs = [one for one in (result if isinstance(result, tuple | list) else (result,)) if library.is_torch(one)]
        if not outputs or not any(one.requires_grad for one in outputs):
            return
        if outputs[0].is_leaf and name != "requires_grad" and any(one is outputs[0] for one in operands):
            return  # an optimizer's step of another model changes a parameter in place
        low, labels, constant = math.nan, None, None
        parents = tuple(self._parent(one) for one in operands)
        if name in WITH_LOW:
            low = low_of(name, None, tuple(library.numbers(one) for one in operands))
        if name in WITH_CONSTANT and CONSTANT in parents[:2]:
            constant = constant_of(name, tuple(library.numbers(one) for one in operands[:2]), parents)
        if name in _WITH_LABELS and len(operands) > 1:
            weights = library.numbers(given.get("weight")) if library.is_torch(given.get("weight")) else None
            labels = labels_of(library.numbers(operands[0]), library.numbers(operands[1]), weights)
        self._ops.append(
            Op(
                name,
                tuple(outputs[0].shape),
                parents,
                tuple(tuple(one.shape) if library.is_torch(one) else () for one in operands),
                low,
                labels,
                here(),
                axis,
                constant,
                factor_of(name, tuple(one for one in operands if isinstance(one, int | float))),
                str(given.get("reduction", "")),
            )
        )
        for one in outputs:
            self._made[id(one)] = len(self._ops) - 1
            self._held.append(one)

    def _parent(self, operand: Any) -> int:
        if not library.is_torch(operand) or not operand.requires_grad:
            return CONSTANT
        return self._made.get(id(operand), LEAF)


def _axis(name: str, args: Args, kwargs: Kwargs) -> int | None:
    """Return the axis of a softmax or a sum, whose tensor may be given by name; None for other calls."""
    entering: Tensor = args[0] if args else kwargs.get("input")
    return axis_of(name, entering.dim(), kwargs.get("dim"), *args[1:2]) if library.is_torch(entering) else None


def _operands(args: Args) -> Iterator[Any]:
    """Yield tensors and numbers, also those in lists: the operands of a function in the order of its arguments."""
    for arg in args:
        if library.is_torch(arg) or isinstance(arg, float) or (isinstance(arg, int) and not isinstance(arg, bool)):
            yield arg
        elif isinstance(arg, tuple | list):
            yield from _operands(tuple(arg))


class Calls(AbstractContextManager[None]):
    """Passes the calls of PyTorch's functions to `called(function, args, kwargs)`, from `enter` to `leave`."""

    def __init__(self, called: Callable[..., Any]) -> None:
        self._called = called
        self._mode: Any = None

    @property
    def on(self) -> bool:
        """Whether calls are passed on."""
        return self._mode is not None

    def enter(self) -> None:
        """Begin, unless it has begun."""
        if self._mode is None:
            self._mode = _mode_class()(self._called)
            self._mode.__enter__()

    def leave(self) -> bool:
        """End, and return True; if another mode was entered since, continue until that one is left."""
        if self._mode is None or sys.modules["torch.overrides"]._get_current_function_mode() is not self._mode:
            return False
        self._mode.__exit__(None, None, None)
        self._mode = None
        return True

    def __enter__(self) -> None:
        self.enter()

    def __exit__(self, *raised: object) -> None:
        self.leave()


@cache
def _mode_class() -> Any:
    import torch

    class Mode(torch.overrides.TorchFunctionMode):  # type: ignore[misc]  # PyTorch is not typed here
        def __init__(self, called: Any) -> None:
            super().__init__()
            self._called = library.untraced(called, lambda func, args, kwargs: func(*args, **kwargs))

        def __torch_function__(self, func: Any, types: Any, args: Args = (), kwargs: Kwargs | None = None) -> Any:
            return self._called(func, args, kwargs or {})

    return Mode
