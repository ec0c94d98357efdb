"""Anomaly mode: name the op, and the user's line, at which the first NaN of a backward pass appears.

PyTorch's `detect_anomaly` under its names. A `_Forward` watches the ops that are recorded and remembers the first one
that makes a NaN of numbers; a `_Backward` observes the walk and raises at the first cotangent that is NaN. Every op is
looked at, so a step takes several times as long; compiled functions run eagerly meanwhile.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from glassgrad import errors, provenance
from glassgrad.engine.mode import ANOMALY, MODE, WATCHED, is_anomaly_enabled
from glassgrad.engine.node import Node
from glassgrad.engine.saved_tensors import Watcher, computed_by
from glassgrad.engine.tape import Observer, unwrap
from glassgrad.ops.core import Array, Primitive

# What to write where an op makes a NaN: in the forward pass of such operands, in the backward pass at its poles.
ADVICE = {
    "log": "log(x.clamp(min=eps)), or log_softmax in place of log(softmax)",
    "log2": "log2(x.clamp(min=eps))",
    "log10": "log10(x.clamp(min=eps))",
    "log1p": "log1p(x.clamp(min=-1 + eps))",
    "sqrt": "sqrt(x.clamp(min=eps)): at 0 its slope is infinite, below it is NaN",
    "rsqrt": "rsqrt(x.clamp(min=eps))",
    "divide": "x / y.clamp(min=eps), or x / (y + eps), for y that can be 0",
    "reciprocal": "1 / (x + eps), for x that can be 0",
    "power": "x.clamp(min=eps) ** y, for x that can be 0 or negative",
    "norm": "norm(x + eps): at 0 a norm has no slope",
    "acos": "acos(x.clamp(-1 + eps, 1 - eps))",
    "asin": "asin(x.clamp(-1 + eps, 1 - eps))",
    "exp": "softmax, logsumexp or expm1, which do not overflow, or a bound on x",
    "subtract": "a bound on both: the difference of two infinities is NaN",
    "multiply": "a bound on both: 0 times infinity is NaN",
}
_ANY = "finite inputs to this op; print them, or clamp them"


@dataclass(frozen=True)
class Birth:
    """A NaN that an op made of numbers: where, how many, and the operands at the first of them."""

    op: str
    place: provenance.Place
    count: int
    size: int
    index: tuple[int, ...]
    operands: tuple[Any, ...]

    def __str__(self) -> str:
        given = ", ".join(str(value) for value in self.operands)
        return (
            f"{self.op} at {self.place} ({self.place.source}) made {self.count} of {self.size} elements NaN, the first "
            f"at {_place_in(self.index)}" + (f", of {given}" if given else "")
        )


def _place_in(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]" if index else "the only element"


def has_nan(value: Any) -> bool:
    """Tell whether an array, or a Tensor, of floating-point or complex numbers holds a NaN."""
    array = unwrap(value)
    return isinstance(array, np.ndarray | np.generic) and array.dtype.kind in "fc" and bool(np.isnan(array).any())


def first_nan(array: Array) -> tuple[tuple[int, ...], int]:
    """Return the index of an array's first NaN, and how many there are."""
    nans = np.isnan(array)
    where = np.unravel_index(int(np.argmax(nans)), nans.shape) if nans.ndim else ()
    return tuple(int(part) for part in where), int(nans.sum())


def _at(array: Any, index: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """Return the element of an operand that was broadcast to `shape`, None where it was not."""
    try:
        return np.broadcast_to(array, shape)[index].item()
    except (ValueError, IndexError, TypeError, AttributeError):
        return None


class _Forward(Watcher):
    """Remembers the first op that makes a NaN of numbers, and what every recorded op was given."""

    def __init__(self) -> None:
        self.first: Birth | None = None
        self.given: weakref.WeakKeyDictionary[Node, tuple[Any, ...]] = weakref.WeakKeyDictionary()
        self._latest: tuple[Any, ...] = ()

    def stand_in(self, prim: Primitive) -> Primitive:
        return computed_by(prim, functools.partial(self._evaluate, prim.name, prim.evaluate))

    def note(self, node: Node) -> None:
        self.given[node] = self._latest

    def _evaluate(self, op: str, evaluate: Callable[..., Any], *arrays: Any, **params: Any) -> Any:
        y = evaluate(*arrays, **params)
        self._latest = arrays
        if self.first is None:
            value = y
            while isinstance(value, tuple) and value:
                value = value[0]
            if has_nan(value) and not any(has_nan(array) for array in arrays):
                index, count = first_nan(value)
                found = (_at(array, index, np.shape(value)) for array in arrays)
                operands = tuple(part for part in found if part is not None)
                self.first = Birth(op, provenance.here(), count, int(np.size(value)), index, operands)
        return y


class _Backward(Observer):
    """Raises at the first cotangent that is NaN though what it was made from is not."""

    def __init__(self, forward: _Forward) -> None:
        self._forward = forward
        self._node: Node | None = None
        self._g: Any = None
        self._sender: weakref.WeakKeyDictionary[Node, str] = weakref.WeakKeyDictionary()

    def rule(self, node: Node, g: Array, saved: tuple[Any, ...], position: int | None) -> None:
        parts = [part for part in (g if isinstance(g, tuple | list) else (g,)) if part is not None]
        if any(has_nan(part) for part in parts):
            born = self._forward.first
            raise errors.NAN_BEFORE_BACKWARD(
                what=f"the gradient of {node.prim.name} at {node.place}",
                born=f": {born}" if born else ", and no op on tensors that require a gradient made it",
                advice=ADVICE.get(born.op, _ANY) if born else "look at the data and at what is passed to backward()",
            )
        self._node, self._g = node, parts[0] if parts else None

    def sent(self, target: Any, c: Array) -> None:
        node = self._node
        if node is None:
            return
        if isinstance(target, Node):
            self._sender[target] = node.prim.name
        if has_nan(c):
            raise self._error(node, unwrap(c))

    def left(self, node: Node) -> None:
        self._node = None

    def _error(self, node: Node, c: Array) -> Exception:
        index, count = first_nan(c)
        given = self._forward.given.get(node, ())
        operands = [value for value in (_at(array, index, c.shape) for array in given) if value is not None]
        g = _at(unwrap(self._g), index, c.shape)
        trap = g == 0 and self._sender.get(node) in {"where", "masked_fill", "maximum", "minimum", "clip", "index"}
        advice = ADVICE.get(node.prim.name, _ANY)
        if trap:
            advice = (
                f"the cotangent is 0 here, of a branch that {self._sender[node]} did not take, and 0 times an infinite "
                "slope is NaN. Use safe_where(mask, f, x), which computes f only where it is taken"
            )
        elif any(value != value for value in operands):  # noqa: PLR0124 - true of NaN alone
            advice = "an operand is NaN itself: look where it comes from"
        place, born = node.place, self._forward.first
        return errors.NAN_IN_BACKWARD(
            op=node.prim.name,
            where=f"{place} ({place.source})",
            count=count,
            size=c.size,
            index=_place_in(index),
            value=(f", where its operands are {', '.join(map(str, operands))}" if operands else "")
            + (f" and its cotangent is {g}" if g is not None else ""),
            born=f" The forward pass made one before: {born}." if born and not trap else "",
            advice=advice,
        )


class detect_anomaly:  # noqa: N801  -- PyTorch's name
    """Inside, a backward pass that makes a NaN raises an error that names the op, the user's line and the operand.

    A context manager for the current thread. A NaN in the forward pass that no gradient reaches, such as one in the
    branch that `where` does not take, is no error; one that reaches the loss is traced to the op that made it. Every op
    is looked at, so a step takes several times as long; compiled functions run eagerly inside.

    Args:
        check_nan: look for NaN; without, nothing is looked at.

    Raises:
        AutogradError: (in `backward` and `grad`) with op, line, index and operands of the first NaN.

    Example:
        >>> import glassgrad as gg
        >>> x = gg.tensor([0.0, 4.0], requires_grad=True)
        >>> with gg.autograd.detect_anomaly():  # doctest: +ELLIPSIS
        ...     gg.where(x > 0, x.sqrt() / x, 0.0).sum().backward()
        Traceback (most recent call last):
        glassgrad.errors.kinds.AutogradError: the backward pass of divide ...
    """

    def __init__(self, check_nan: bool = True) -> None:
        self._check = check_nan
        self._open: list[tuple[Any, ...]] = []
        self._forward = _Forward()

    @property
    def born(self) -> Birth | None:
        """The first NaN that an op of the forward pass made of numbers."""
        return self._forward.first

    def __enter__(self) -> Self:
        self._open.append((MODE.observer, MODE.flags, MODE.watchers))
        if self._check:
            self._forward = _Forward()
            self._forward.__enter__()
            MODE.observer, MODE.flags = _Backward(self._forward), MODE.flags | ANOMALY
        return self

    def __exit__(self, *_exception: object) -> None:
        MODE.observer, MODE.flags, MODE.watchers = self._open.pop()


class set_detect_anomaly(detect_anomaly):  # noqa: N801  -- PyTorch's name
    """Switch anomaly mode on or off at once, and as a context manager until the block ends; see `detect_anomaly`.

    Args:
        mode: whether to look for NaN.
        check_nan: as for `detect_anomaly`.

    Example:
        >>> import glassgrad as gg
        >>> with gg.autograd.set_detect_anomaly(True):
        ...     gg.is_anomaly_enabled()
        True
        >>> gg.is_anomaly_enabled()
        False
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(check_nan)
        before = MODE.observer, MODE.flags, MODE.watchers
        if is_anomaly_enabled():
            MODE.observer, MODE.flags = None, MODE.flags & ~ANOMALY
            MODE.watchers = tuple(one for one in MODE.watchers if not isinstance(one, _Forward))
            MODE.flags = MODE.flags if MODE.watchers else MODE.flags & ~WATCHED
        if mode:
            detect_anomaly(check_nan).__enter__()
        self._open.append(before)

    def __enter__(self) -> Self:
        return self


__all__ = ["detect_anomaly", "is_anomaly_enabled", "set_detect_anomaly"]
