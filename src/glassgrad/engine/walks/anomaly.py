"""Anomaly mode: name the op, and the user's line, at which the first NaN of a backward pass appears.

This is PyTorch's `detect_anomaly`, under the same names. A `Forward` watches the recorded ops and remembers the first
one that makes a NaN from numbers; a `Backward` observes the walk and raises at the first cotangent that is NaN. Every
op is checked, so a step takes several times as long; compiled functions run eagerly meanwhile.
"""

from __future__ import annotations

import dataclasses
import functools
import weakref
from collections.abc import Callable, Collection
from typing import Any, Self

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.mode import ANOMALY, MODE, WATCHED, is_anomaly_enabled
from glassgrad.engine.node import Node
from glassgrad.engine.reports.births import Origin, instead, origin_of
from glassgrad.engine.reports.nonfinite import (
    ALLOWED,
    Birth,
    advice,
    beside,
    element,
    first_bad,
    has_bad,
    is_allowed,
    is_scaled,
    named,
    place_in,
    plain,
    shown_op,
)
from glassgrad.engine.saved_tensors import Watcher, computed_by
from glassgrad.engine.tape import Observer, unwrap
from glassgrad.engine.tensor import Tensor
from glassgrad.ops.core import Array, Primitive

_ANY = "finite inputs to this op; print them, or clamp them"
# Ops that send a cotangent of 0 to operands that they did not select.
CHOOSERS = frozenset(
    {"where", "maximum", "minimum", "fmax", "fmin", "clip", "getitem", "take_along_axis", "max", "min"}
)


class Forward(Watcher):
    """Remembers the first op that makes a NaN from numbers, and the operands and results of every recorded op.

    Args:
        inf: look for infinities as well.
        allow: ops whose NaN and infinities are intended.
        module: returns the module in which an op runs.
    """

    def __init__(self, inf: bool = False, allow: Collection[str] = (), module: Callable[[], str] | None = None) -> None:
        self.first: Birth | None = None
        self.inf, self.allow = inf, allow
        self._made: weakref.WeakKeyDictionary[Node, tuple[tuple[Array, ...], Array, str]] = weakref.WeakKeyDictionary()
        self._module = module
        self._latest: tuple[tuple[Array, ...], Array] = ((), None)
        self._fresh = False

    def operands(self, node: Node) -> tuple[Array, ...]:
        """Return the operands of a recorded op; () if it was not watched."""
        return self._made[node][0] if node in self._made else ()

    def value(self, node: Node) -> Array:
        """Return the result of a recorded op; None if it was not watched."""
        return self._made[node][1] if node in self._made else None

    def module_of(self, node: Node) -> str:
        """Return the module in which an op ran; "" if it is unknown."""
        return self._made[node][2] if node in self._made else ""

    def stand_in(self, prim: Primitive) -> Primitive:
        self._latest = (), None
        return computed_by(prim, functools.partial(self._evaluate, prim.name, prim.evaluate))

    def note(self, node: Node) -> None:
        self._made[node] = (*self._latest, "" if self._module is None else self._module())
        if self._fresh and self.first is not None:
            self.first, self._fresh = dataclasses.replace(self.first, node=node), False

    def _evaluate(self, op: str, evaluate: Callable[..., Any], *arrays: Array, **params: Array) -> Array:
        y = evaluate(*arrays, **params)
        self._look(op, arrays, y)
        return y

    def computed(self, prim: Primitive, args: tuple[Array, ...], result: Array) -> None:
        first = result[0] if isinstance(result, tuple) else result
        arrays = tuple(arg.array if isinstance(arg, Tensor) else arg for arg in args)
        self._look(prim.name, arrays, first.array)

    def _look(self, op: str, arrays: tuple[Array, ...], value: Array) -> None:
        while isinstance(value, tuple) and value:
            value = value[0]
        self._latest, self._fresh = (arrays, value), False
        if (
            self.first is None
            and not ALLOWED.depth
            and op not in self.allow
            and has_bad(value, self.inf)
            and not any(has_bad(array, self.inf) for array in arrays)
        ):
            module = "" if self._module is None else self._module()
            self.first = Birth.of(op, provenance.here(), value, arrays, inf=self.inf, module=module)
            self._fresh = True


class Nothing:
    """Knows no values."""

    first: Birth | None = None

    def operands(self, node: Node) -> tuple[Array, ...]:
        """Return nothing."""
        return ()

    def value(self, node: Node) -> Array:
        """Return nothing."""
        return None


@dataclasses.dataclass(frozen=True)
class Slope:
    """The rule that made the first bad cotangent from finite ones: its op, and the numbers at the first bad place."""

    node: Node
    kind: str
    count: int
    size: int
    index: tuple[int, ...]
    operands: tuple[Array, ...]
    g: Array
    advice: str
    trap: bool = False
    forward: Origin | None = None
    """The bad number of the forward pass that the rule met, if there was one."""
    y: Array = None

    def values(self) -> str:
        """Say what the operands (or, if they are unknown, the result) and the cotangent are at the first bad place."""
        known = named(self.node.place, self.operands)
        told = f"its operands are {known}" if known else "" if self.y is None else f"its result is {self.y}"
        if self.g is not None:
            told += f"{' and ' if told else ''}its cotangent is {self.g}"
            finite = self.forward is None and self.kind != "NaN" and np.isfinite(self.g)
            told += ", so its slope there is infinite" if finite else ""
        return f", where {told}" if told else ""


class Backward(Observer):
    """Raises at the first cotangent that is NaN, and at an infinite gradient; it names the rule that made the first.

    Args:
        known: has the values of the forward pass, and its first NaN as `first`.
        inf, allow: as for `Forward`.
        root: whether a loss that is not finite is an error.

    Attributes:
        raised: the error, after it was raised; `origin`: the rule that made the bad number, None if it was given.
        node: its op; `advice`: the remedy.
    """

    def __init__(self, known: Array, inf: bool = False, allow: Collection[str] = (), root: bool = False) -> None:
        self.raised: Exception | None = None
        self.origin: Slope | None = None
        self.node: Node | None = None
        self.advice = ""
        self._known, self._inf, self._allow, self._root = known, inf, allow, root
        self._running: list[Node] = []  # nodes whose rules run; all but the first belong to a decomposition
        self._g: Array = None
        self._meant: weakref.WeakSet[Node] = weakref.WeakSet()  # nodes whose cotangents have an allowed NaN
        self._sender: weakref.WeakKeyDictionary[Node, Node] = weakref.WeakKeyDictionary()
        self._slopes: weakref.WeakKeyDictionary[Node, Slope] = weakref.WeakKeyDictionary()  # behind bad cotangents

    def rule(self, node: Node, g: Array, saved: tuple[Array, ...], position: int | None) -> None:
        if node not in self._running[-1:]:
            self._running.append(node)
        if len(self._running) > 1:
            return
        parts = [part for part in (g if isinstance(g, tuple | list) else (g,)) if part is not None]
        self._g = parts[0] if parts else None
        if self._root and node not in self._sender:
            self._look_at_root(node)
        if node in self._meant or not any(has_bad(part, self._inf) for part in parts):
            return
        if node in self._slopes:  # infinities of both signs add up to NaN
            self._raise(self._slopes[node], node, unwrap(parts[0]))
        born = self._known.first
        self.advice = advice(born.op, _ANY) if born else "look at the data and at the argument of backward()"
        self.raised = errors.NAN_BEFORE_BACKWARD(
            what=f"the gradient of {node.prim.name} at {node.place} was NaN before the rule of that op was applied: "
            "the loss itself held a NaN",
            born=f": {born}" if born else ", and no op on tensors that require a gradient made it",
            advice=self.advice,
        )
        self._running.clear()
        raise self.raised

    def sent(self, target: Any, c: Array) -> None:
        if len(self._running) != 1:
            return
        node, is_node = self._running[0], isinstance(target, Node)
        if is_node:
            self._sender[target] = node
        if not has_bad(c, True):
            return
        if node in self._meant or node.prim.name in self._allow or is_allowed(node):
            if is_node:
                self._meant.add(target)
            return
        self._pass_on(node, target, c)

    def _pass_on(self, node: Node, target: Any, c: Array) -> None:
        """Link a bad cotangent to the rule that made the first bad one; raise for a NaN, or an infinite gradient."""
        is_node, slope = isinstance(target, Node), self._slopes.get(node)
        given = slope is None and has_bad(self._g, True)  # to backward(), as by a gradient scaler
        slope = slope or self._slope(node, unwrap(c))
        if is_node and not given:
            self._slopes.setdefault(target, slope)
        if has_bad(c, self._inf or not (is_node or given or is_scaled())):
            self._raise(slope, node, unwrap(c))

    def left(self, node: Node) -> None:
        while self._running and self._running.pop() is not node:
            pass

    def to_the_loss(self, node: Node) -> list[Node]:
        """Return the nodes from this one to the loss, against the cotangent's direction."""
        path = [node]
        while (before := self._sender.get(path[-1])) is not None:
            path.append(before)
        return path

    # --- inside ---

    def _is_meant(self, node: Node) -> bool:
        return node.prim.name in self._allow or is_allowed(node)

    def _look_at_root(self, node: Node) -> None:
        """Raise if the loss is not finite."""
        value = self._known.value(node)
        if self._is_meant(node) or getattr(value, "size", 0) != 1 or not has_bad(value, True):
            return
        if not has_bad(value) and is_scaled():
            return
        origin = origin_of(node, self._known, self._is_meant)
        if origin is None:
            return
        born = self._known.first or origin.birth if origin.held is not None else origin.birth
        self.advice = (instead(born.node) if born.node is not None else advice(born.op)) or _ANY
        told = f"{born}"
        if origin.held is not None and born is origin.birth:
            self.advice = "an operand is NaN itself: find where it comes from"
            told = f"an operand of {born.op} at {born.place.quoted()} is NaN itself"
        turned = "" if origin.turned is None else f"; {origin.turned}"
        self.raised = errors.NAN_BEFORE_BACKWARD(
            what=f"the loss of this backward pass is {plain(value).item()}",
            born=f": {told}{turned}",
            advice=self.advice,
        )
        self._running.clear()
        raise self.raised

    def _slope(self, node: Node, c: Array) -> Slope:
        """Describe the numbers at the first bad place of a cotangent that a rule made."""
        is_nan = has_bad(c)
        known = (unwrap(self._g), self._known.value(node), *self._known.operands(node))
        arrays = [beside(array, c) for array in known]
        c = np.asarray(plain(c))
        index, count = first_bad(c, not is_nan)
        g, y, *operands = [element(array, index, c.shape) for array in arrays]
        sender = self._sender.get(node)
        kind = "NaN" if is_nan else "infinity"
        trap = is_nan and g == 0 and sender is not None and sender.prim.name in CHOOSERS
        if trap and sender is not None:
            told = (
                f"the cotangent is 0 here, of a branch that {sender.prim.name} did not take, and 0 times an infinite "
                "slope is NaN. Use safe_where(mask, f, x), which computes f only where the mask is True"
            )
            return Slope(node, kind, count, c.size, index, tuple(operands), g, told, trap=True)
        origin = None
        if any(has_bad(part, True) for part in (*self._known.operands(node), self._known.value(node))):
            origin = origin_of(node, self._known, self._is_meant)
        told = instead(origin.birth.node or node if origin is not None else node) or _ANY
        if origin is None and any(value is not None and np.isnan(value) for value in operands):
            told = "an operand is NaN itself: find where it comes from"
        return Slope(node, kind, count, c.size, index, tuple(operands), g, told, forward=origin, y=y)

    def _raise(self, slope: Slope, last: Node, c: Array) -> None:
        self.origin, self.node, self.advice = slope, slope.node, slope.advice
        node, place, first = slope.node, slope.node.place, self._known.first
        told = {"kind": slope.kind, "count": slope.count, "size": slope.size, "index": place_in(slope.index)}
        op, more = shown_op(node.prim.name, place), ""
        if last is not node:
            kind = "NaN of it" if has_bad(c) else "an infinite gradient"
            more = f" The backward pass of {last.name} at {last.place} makes {kind}."
        if slope.forward is not None:
            made = slope.forward.birth if slope.forward.held is None or first is None else first
            self.raised = errors.NAN_BEFORE_BACKWARD(
                what="the forward pass made the first number that is not finite",
                born=f": {made}; the backward pass of {op} at {place} meets it{slope.values()}.{more}".rstrip("."),
                advice=slope.advice,
            )
        else:
            born = f" The forward pass made one before: {first}." if first is not None and not slope.trap else ""
            self.raised = errors.NAN_IN_BACKWARD(
                op=op, where=place.quoted(), value=slope.values(), born=born + more, advice=slope.advice, **told
            )
        self._running.clear()
        raise self.raised


class detect_anomaly:  # noqa: N801  -- PyTorch's name
    """In the block, a backward pass that makes a NaN raises an error naming the op, the user's line and the operand.

    A context manager for the current thread. A NaN in the forward pass that no gradient reaches, such as one in the
    branch that `where` does not take, is not an error; one that reaches the loss is traced to the op that made it. An
    infinite loss, or an infinite gradient of a leaf, is an error too; a NaN is traced to the infinity it came from.
    Every op is checked, so a step takes several times as long; compiled functions run eagerly inside.

    Args:
        check_nan: look for NaN; if False, nothing is checked.
        check_inf: look for infinities too.
        allow: names of ops whose NaN and infinities are intended, such as "masked_fill"; see also
            `glassgrad.doctor.allow_nonfinite`.

    Attributes:
        module: returns the module in which an op runs, if set.
        backward: the observer of backward passes.

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

    def __init__(self, check_nan: bool = True, *, check_inf: bool = False, allow: Collection[str] = ()) -> None:
        self._check, self._inf, self._allow = check_nan or check_inf, check_inf, frozenset(allow)
        self.module: Callable[[], str] | None = None
        self._open: list[tuple[Any, ...]] = []
        self._forward = Forward()
        self.backward: Any = None

    @property
    def forward(self) -> Forward:
        """The record of the forward pass."""
        return self._forward

    @property
    def born(self) -> Birth | None:
        """The first NaN that an op of the forward pass made from numbers."""
        return self._forward.first

    def __enter__(self) -> Self:
        self._open.append((MODE.observer, MODE.flags, MODE.watchers))
        if self._check:
            self._forward = forward = Forward(self._inf, self._allow, self.module)
            forward.__enter__()
            self.backward = Backward(forward, self._inf, self._allow, root=True)
            MODE.observer, MODE.flags = self.backward, MODE.flags | ANOMALY
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
            MODE.watchers = tuple(one for one in MODE.watchers if not isinstance(one, Forward))
            MODE.flags = MODE.flags if MODE.watchers else MODE.flags & ~WATCHED
        if mode:
            detect_anomaly(check_nan).__enter__()
        self._open.append(before)

    def __enter__(self) -> Self:
        return self


__all__ = ["detect_anomaly", "is_anomaly_enabled", "set_detect_anomaly"]
