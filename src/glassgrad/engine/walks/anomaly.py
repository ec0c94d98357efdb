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
from glassgrad.engine.reports.nonfinite import (
    ADVICE,
    ALLOWED,
    Birth,
    element,
    first_bad,
    has_bad,
    is_allowed,
    named,
    place_in,
)
from glassgrad.engine.saved_tensors import Watcher, computed_by
from glassgrad.engine.tape import Observer, unwrap
from glassgrad.ops.core import Array, Primitive

_ANY = "finite inputs to this op; print them, or clamp them"
# Ops that send a cotangent of 0 to operands that they did not select.
CHOOSERS = frozenset(
    {"where", "maximum", "minimum", "fmax", "fmin", "clip", "getitem", "take_along_axis", "max", "min"}
)


class Forward(Watcher):
    """Remembers the first op that makes a NaN from numbers, and the operands of every recorded op.

    Args:
        inf: look for infinities as well.
        allow: ops whose NaN and infinities are intended.
        module: returns the module in which an op runs.
    """

    def __init__(self, inf: bool = False, allow: Collection[str] = (), module: Callable[[], str] | None = None) -> None:
        self.first: Birth | None = None
        self.given: weakref.WeakKeyDictionary[Node, tuple[Any, ...]] = weakref.WeakKeyDictionary()
        self.inf, self.allow = inf, allow
        self._module = module
        self._latest: tuple[Any, ...] = ()
        self._fresh = False

    def stand_in(self, prim: Primitive) -> Primitive:
        return computed_by(prim, functools.partial(self._evaluate, prim.name, prim.evaluate))

    def note(self, node: Node) -> None:
        self.given[node] = self._latest
        if self._fresh and self.first is not None:
            self.first, self._fresh = dataclasses.replace(self.first, node=node), False

    def _evaluate(self, op: str, evaluate: Callable[..., Any], *arrays: Array, **params: Any) -> Array:
        y = evaluate(*arrays, **params)
        self._latest, self._fresh = arrays, False
        if self.first is None and not ALLOWED.depth and op not in self.allow:
            value = y
            while isinstance(value, tuple) and value:
                value = value[0]
            if has_bad(value, self.inf) and not any(has_bad(array, self.inf) for array in arrays):
                module = "" if self._module is None else self._module()
                self.first = Birth.of(op, provenance.here(), value, arrays, inf=self.inf, module=module)
                self._fresh = True
        return y


class Backward(Observer):
    """Raises at the first cotangent that is NaN although the rule's inputs are not.

    Args:
        first: returns the first NaN of the forward pass, if there was one.
        given: returns the operands of a node, as far as they are known.
        inf, allow: as for `Forward`.

    Attributes:
        raised: the error, after it was raised; `node`: the op whose rule made the NaN; `advice`: the remedy.
    """

    def __init__(
        self,
        first: Callable[[], Birth | None],
        given: Callable[[Node], tuple[Any, ...]],
        inf: bool = False,
        allow: Collection[str] = (),
    ) -> None:
        self.raised: Exception | None = None
        self.node: Node | None = None
        self.advice = ""
        self._first, self._given, self._inf, self._allow = first, given, inf, allow
        self._g: Array = None
        self._meant: weakref.WeakSet[Node] = weakref.WeakSet()  # nodes whose cotangents have an allowed NaN
        self._sender: weakref.WeakKeyDictionary[Node, Node] = weakref.WeakKeyDictionary()

    def rule(self, node: Node, g: Array, saved: tuple[Array, ...], position: int | None) -> None:
        parts = [part for part in (g if isinstance(g, tuple | list) else (g,)) if part is not None]
        if node not in self._meant and any(has_bad(part, self._inf) for part in parts):
            born = self._first()
            self.advice = ADVICE.get(born.op, _ANY) if born else "look at the data and at what is passed to backward()"
            self.raised = errors.NAN_BEFORE_BACKWARD(
                what=f"the gradient of {node.prim.name} at {node.place}",
                born=f": {born}" if born else ", and no op on tensors that require a gradient made it",
                advice=self.advice,
            )
            raise self.raised
        self.node, self._g = node, parts[0] if parts else None

    def sent(self, target: Any, c: Array) -> None:
        node = self.node
        if node is None:
            return
        if isinstance(target, Node):
            self._sender[target] = node
        if has_bad(c, self._inf):
            if node in self._meant or node.prim.name in self._allow or is_allowed(node):
                if isinstance(target, Node):
                    self._meant.add(target)
                return
            self.raised = self._error(node, unwrap(c))
            raise self.raised

    def left(self, node: Node) -> None:
        self.node = None

    def to_the_loss(self, node: Node) -> list[Node]:
        """Return the nodes from this one to the loss, against the cotangent's direction."""
        path = [node]
        while (before := self._sender.get(path[-1])) is not None:
            path.append(before)
        return path

    def _error(self, node: Node, c: Array) -> Exception:
        index, count = first_bad(c, self._inf)
        operands = [element(array, index, c.shape) for array in self._given(node)]
        g = element(unwrap(self._g), index, c.shape)
        sender = self._sender.get(node)
        trap = g == 0 and sender is not None and sender.prim.name in CHOOSERS
        self.advice = ADVICE.get(node.prim.name, _ANY)
        if trap and sender is not None:
            self.advice = (
                f"the cotangent is 0 here, of a branch that {sender.prim.name} did not take, and 0 times an infinite "
                "slope is NaN. Use safe_where(mask, f, x), which computes f only where it is taken"
            )
        elif any(value is not None and np.isnan(value) for value in operands):
            self.advice = "an operand is NaN itself: look where it comes from"
        elif g is not None and g - g != 0:  # the slope of an op nearer to the loss is infinite
            senders = self.to_the_loss(node)[1:]
            self.advice = next((ADVICE[one.prim.name] for one in senders if one.prim.name in ADVICE), self.advice)
        place, born = node.place, self._first()
        known = named(place.operands, tuple(operands))
        return errors.NAN_IN_BACKWARD(
            op=node.prim.name,
            where=f"{place.quoted()}",
            kind="NaN" if np.isnan(c[index]) else "infinity",
            count=count,
            size=c.size,
            index=place_in(index),
            value=(f", where its operands are {known}" if known else "")
            + (f" and its cotangent is {g}" if g is not None else ""),
            born=f" The forward pass made one before: {born}." if born and not trap else "",
            advice=self.advice,
        )


class detect_anomaly:  # noqa: N801  -- PyTorch's name
    """In the block, a backward pass that makes a NaN raises an error naming the op, the user's line and the operand.

    A context manager for the current thread. A NaN in the forward pass that no gradient reaches, such as one in the
    branch that `where` does not take, is not an error; one that reaches the loss is traced to the op that made it.
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
    def born(self) -> Birth | None:
        """The first NaN that an op of the forward pass made from numbers."""
        return self._forward.first

    def __enter__(self) -> Self:
        self._open.append((MODE.observer, MODE.flags, MODE.watchers))
        if self._check:
            self._forward = forward = Forward(self._inf, self._allow, self.module)
            forward.__enter__()
            self.backward = Backward(
                lambda: forward.first, lambda node: forward.given.get(node, ()), self._inf, self._allow
            )
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
