"""Evaluation of update rules: the arguments of a rule, and the evaluator for Symbols.

A rule ``update(p, g, state, group)`` is pure: it takes terms and returns the new value of p; its assignments to
`state` are stored at its end. So the same text can be computed directly (`Direct`: in a compiled step, where arrays
are Symbols) or compiled to a function that works in place (`glassgrad.optim.in_place`: everywhere else).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.engine.memory import fresh
from glassgrad.engine.mode import MODE, TRACING
from glassgrad.engine.tensor import Tensor, make
from glassgrad.engine.terms import Evaluator, Immediate, Number, Term
from glassgrad.ops.shape import copy_p
from glassgrad.ops.vmap.batched import Batched

Update = Callable[[Any, Any, Any, Any], Any]


class Group:
    """The options of a parameter group inside a rule: ``group.lr``; a number becomes a `Number` of the terms."""

    __slots__ = ("_run",)

    def __init__(self, run: Run) -> None:
        self._run = run

    def __getattr__(self, name: str) -> Any:
        return self._run.option(name)


class State:
    """The state of a parameter inside a rule: ``state.exp_avg``, initially zeros in the parameter's shape.

    A rule reads the value from before the step, or the value that it assigned itself.
    """

    __slots__ = ("_run",)
    _run: Run

    def __init__(self, run: Run) -> None:
        object.__setattr__(self, "_run", run)

    def __getattr__(self, name: str) -> Any:
        return self._run.array(name, self._run.p)

    def __setattr__(self, name: str, value: Any) -> None:
        if type(value) is Term:
            self._run.array(name, value)  # so that it exists before it is written to
        else:
            self._run.stored(name, 0.0)
        self._run.news[name] = value

    def like(self, name: str, term: Any) -> Any:
        """Return the array `name`, with the shape and dtype of a term."""
        return self._run.array(name, term)

    def number(self, name: str, start: float = 0.0) -> Any:
        """Return the number `name`, initially `start`."""
        return self._run.stored(name, start)

    def count(self) -> Any:
        """Count the parameter's steps; return the number of this one, from 1."""
        self.step = t = self.number("step") + 1
        return t

    def first(self, name: str) -> bool:
        """Tell whether the array `name` does not exist yet, for rules whose first step differs."""
        return self._run.lacks(name)


class Run(Evaluator):
    """One run of a rule, for one parameter.

    Attributes:
        p, g: the parameter and its gradient as terms.
        values: the state of the parameter.
        group: the options.
        owner: the name of the optimizer, for messages.
        news: the assignments of the rule to the state.
    """

    p: Term
    g: Term

    def __init__(self, values: dict[str, Any], group: dict[str, Any], owner: str = "") -> None:
        self.values = values
        self.group = group
        self.owner = owner
        self.news: dict[str, Any] = {}

    def apply(self, update: Update) -> Any:
        """Run the rule; return the term of the new value of p."""
        g = -self.g if self.group.get("maximize") else self.g
        new = update(self.p, g, State(self), Group(self))
        if type(new) is not Term:
            raise errors.UPDATE_RESULT(owner=self.owner, given=f"a {type(new).__name__}")
        return new

    def option(self, name: str) -> Any:
        """Return an option: numbers as `Number`, also in a tuple; everything else unchanged."""
        raise NotImplementedError  # states of eager and of compiled steps differ

    def array(self, name: str, like: Term) -> Any:
        """Return an array of the state, created with the shape and dtype of another one if missing."""
        raise NotImplementedError  # states of eager and of compiled steps differ

    def stored(self, name: str, start: float) -> Any:
        """Return a number of the state."""
        raise NotImplementedError  # states of eager and of compiled steps differ

    def lacks(self, name: str) -> bool:
        """Tell whether the state has no array of this name."""
        raise NotImplementedError  # states of eager and of compiled steps differ


class Direct(Immediate, Run):
    """Computes directly on the arrays of the tensors, usually the Symbols of a trace.

    Args:
        parameter: the parameter.
        g: its gradient.
        values: its state.
        group: its options.
        moving: options that a schedule changes, which a trace takes as inputs.
        owner: the name of the optimizer, for messages.
    """

    def __init__(
        self,
        parameter: Tensor,
        g: Any,
        values: dict[str, Any],
        group: dict[str, Any],
        moving: Iterable[str] = (),
        owner: str = "",
    ) -> None:
        super().__init__(values, group, owner)
        self.parameter = parameter
        self.p = Term(self, parameter.lifted())
        self.g = Term(self, g)
        self.moving = moving

    def step(self, update: Update) -> None:
        """Run the rule and write its results."""
        p = self.apply(update)
        written = [(self.parameter, p), *((self.values[name], value) for name, value in self.news.items())]
        memory = [tensor.array for tensor, _ in written]
        # A result that is itself an array from before the step is copied before the rule's results overwrite that
        # array.
        found = [copy_p(one.what) if any(one.what is array for array in memory) else one.what for _, one in written]
        for (tensor, _), value in zip(written, found, strict=True):
            if type(value) is Batched and tensor is not self.parameter:
                tensor.array = value  # the state of a parameter inside vmap began as zeros for all examples
            else:
                _write(tensor, value)
        # Terms refer to their run: a Symbol in this reference cycle would stay alive until the garbage collector runs.
        del self.p, self.g
        self.news.clear()

    def option(self, name: str) -> Any:
        value = known = self.group[name]
        # Rules branch on a momentum of 0, so it stays a constant.
        moves = name == "lr" or (name in self.moving and bool(known))
        if moves and MODE.flags & TRACING and MODE.lift_number is not None:
            value = MODE.lift_number(self.group, name)
        if isinstance(known, tuple | list):
            return tuple([self._option(*pair) for pair in zip(known, value, strict=True)])
        return self._option(known, value)

    def _option(self, known: Any, value: Any) -> Any:
        if known is None or isinstance(known, bool | str) or (value is known and isinstance(known, int)):
            return known
        return Number(self, float(value) if isinstance(value, float) else value, known)

    def array(self, name: str, like: Term) -> Any:
        if name not in self.news:
            begin(self.values, name, like.shape, like.dtype)
            found = self.values[name].lifted()
            check_shape(self.owner, name, found.shape, like.shape)
            return Term(self, found)
        return self.news[name]

    def stored(self, name: str, start: float) -> Any:
        if name not in self.news:
            begin(self.values, name, (), np.dtype(np.float64), start)
            found = self.values[name].lifted()
            return Number(self, float(found) if type(found) is np.ndarray else found)
        return self.news[name]

    def lacks(self, name: str) -> bool:
        if name in self.values:
            return False
        if MODE.flags & TRACING and MODE.once is not None:
            MODE.once()
        return True


def begin(values: dict[str, Any], name: str, shape: tuple[int, ...], dtype: np.dtype, start: float = 0.0) -> Tensor:
    """Return the tensor of a state array; if missing, create it filled with one number."""
    if name not in values:
        values[name] = make(fresh.zeros(shape, dtype) if start == 0 else np.full(shape, start, dtype), None, False)
        if MODE.flags & TRACING and MODE.lift is not None:
            MODE.lift(values[name], True, new=True)
    found: Tensor = values[name]
    return found


def check_shape(owner: str, name: str, given: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """Refuse a loaded state array of another shape, since it might broadcast."""
    if given != expected:
        raise errors.OPTIMIZER_SLOT_SHAPE(owner=owner, name=name, given=given, expected=expected)


def _write(target: Tensor, value: Any) -> None:
    """Write to the memory of a tensor, which others may share; replace an array that is read-only."""
    array = target.array
    if type(array) is np.ndarray:
        array[...] = value
    elif hasattr(array, "write"):
        array.write(value)
    else:
        target.array = value
