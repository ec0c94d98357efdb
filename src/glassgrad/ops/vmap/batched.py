"""Batched arrays: inside `vmap`, each represents the array of one example.

A `Batched` holds the values of all examples along axis 0 of `value` and has the shape of one example.
It is an interpreter like any other: a primitive that gets one runs its batching rule, once for the whole
batch. The innermost of nested calls has the highest level; the value of its arrays may be Batched again.
`enter_p` and `exit_p` convert values into a level and out of it. Each is the other's transpose, so gradients flow
through vmap as through any linear function.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.ops import elementwise, index
from glassgrad.ops.core import INTERPRETERS, REGISTRY, Array, Elementwise, Interpreter, Primitive
from glassgrad.ops.operators import attach
from glassgrad.ops.shape import astype, broadcast_to_p, concatenate_p, permute_p, reshape, reshape_p

RANK = 50  # above arrays and Symbols, below Tensors
_numbers = itertools.count(1)


class Level:
    """One call of vmap. Inner calls begin later than outer ones and have higher numbers.

    `size` is the number of examples, `randomness` the mode of random draws inside; `ended` says whether the call is
    over.
    """

    __slots__ = ("ended", "number", "randomness", "size")

    def __init__(self, size: int, randomness: str = "error") -> None:
        self.number = next(_numbers)
        self.size = size
        self.randomness = randomness
        self.ended = False

    def __repr__(self) -> str:
        return f"<level {self.number} of vmap, {self.size} examples>"


class Batched:
    """The arrays of all examples of a level, presented as the array of one example."""

    __slots__ = ("level", "value")
    __array_ufunc__ = None  # makes ndarray leave its operators to this class
    __array_priority__ = 900

    def __init__(self, value: Array, level: Level) -> None:
        self.value = value
        self.level = level

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value.shape[1:])

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.value.dtype  # type: ignore[no-any-return]  # arrays are typed Any

    @property
    def ndim(self) -> int:
        return len(self.value.shape) - 1

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        return index.getitem(self, key)

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """Return the array in another dtype."""
        return astype(self, dtype)

    def reshape(self, *shape: Any) -> Any:
        """Return the array in another shape (of one example)."""
        return reshape(self, *shape)

    def lies_in_order(self) -> bool:
        """Tell whether the elements of an example are in order in memory; other examples may lie between them."""
        steps = steps_of(self)
        first = min([step for n, step in zip(self.shape, steps, strict=True) if n != 1], default=self.dtype.itemsize)
        return looks(self.shape, steps, (self.size,)) and (first == self.dtype.itemsize or not self.size)

    def looks_from(self, shape: Sequence[int]) -> bool:
        """Tell whether a reshape of an example is a view; if its memory has another order, the reshape copies."""
        return looks(self.shape, steps_of(self), shape)

    def copy(self) -> Batched:
        """Return a copy."""
        return Batched(self.value.copy(), self.level)

    def __repr__(self) -> str:
        return f"{self.value!r}, one for each of {self.level.size} examples"

    __hash__ = object.__hash__

    def no_numbers(self, _call: str) -> Exception:
        """Return the error for a request for the values of one example."""
        message = errors.VMAP_ESCAPED if self.level.ended else errors.VMAP_NO_VALUE
        return message(size=self.level.size, shape=self.shape, where=provenance.here(1))

    def _no_number(self, *_args: Any, **_kwargs: Any) -> Any:
        raise self.no_numbers("")

    __array__ = __bool__ = __float__ = __int__ = __index__ = item = tolist = __setitem__ = _no_number


attach(Batched, REGISTRY.__getitem__)


def levels_of(array: Any) -> tuple[Level, ...]:
    """Return the levels of an array, innermost call of vmap first; () if it is not batched."""
    found = []
    while type(array) is Batched:
        found.append(array.level)
        array = array.value
    return tuple(found)


def steps_of(array: Any) -> list[int]:
    """Return the strides of one example's axes as if the examples were stored one after the other.

    The stride of an axis outside of the examples (`in_dims=1`) is divided by their number.
    """
    if type(array) is not Batched:
        return list(array.layout().strides if hasattr(array, "layout") else array.strides)
    between, *steps = steps_of(array.value)
    count = max(array.value.shape[0], 1)
    return [step // count if abs(step) > abs(between) > 0 else step for step in steps]


def looks(before: Sequence[int], steps: Sequence[int], after: Sequence[int]) -> bool:
    """Tell whether a shape can become another one without a copy."""
    if 0 in before:
        return True
    axes = [(n, step) for n, step in zip(before, steps, strict=True) if n != 1]
    runs: list[int] = []  # numbers of elements with uniform strides
    for at, (n, step) in enumerate(axes):
        joins = at > 0 and axes[at - 1][1] == step * n
        runs = [*runs[:-1], runs[-1] * n] if joins else [*runs, n]
    wanted = [n for n in after if n != 1]
    for run in runs:
        while run > 1 and wanted and run % wanted[0] == 0:
            run //= wanted.pop(0)
        if run != 1:
            return False
    return True


def for_each_example(array: np.ndarray[Any, Any], like: Any) -> Array:
    """Give an array the batch axes of another, with separate memory for every example."""
    levels = levels_of(like)[::-1]
    if not levels:
        return array
    result: Array = np.broadcast_to(array, (*(level.size for level in levels), *array.shape)).copy()
    for level in levels:
        result = Batched(result, level)
    return result


# --- the interpreter ------------------------------------------------------------------------------


def apply(prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Compute `prim` for all examples of the highest level among the arguments."""
    if prim.decompose is not None:
        return prim.decompose(*args, **params)
    level: Level = max((arg.level for arg in args if type(arg) is Batched), key=_number)
    values: list[Any] = []
    batched: list[bool] = []
    for arg in args:
        mine = type(arg) is Batched and arg.level is level
        values.append(arg.value if mine else arg)
        batched.append(mine)
    if type(prim) is Elementwise:
        return Batched(prim(*aligned(values, batched), **params), level)
    rule = prim.batch or one_by_one
    result = rule(prim, level.size, values, batched, params)
    if prim.multiple:
        return tuple(Batched(part, level) for part in result)
    return Batched(result, level)


def _number(level: Level) -> int:
    return level.number


INTERPRETERS[Batched] = Interpreter(RANK, apply)


def aligned(values: list[Any], batched: list[bool], widest: int = 0) -> list[Any]:
    """Insert size-1 axes after the batch axis of lower-rank values, so that shapes broadcast from the right."""
    ranks = [len(v.shape) - mine if hasattr(v, "shape") else 0 for v, mine in zip(values, batched, strict=True)]
    widest = max(widest, *ranks)
    return [
        reshape_p(v, shape=(v.shape[0], *(1,) * (widest - rank), *v.shape[1:])) if mine and rank < widest else v
        for v, mine, rank in zip(values, batched, ranks, strict=True)
    ]


def one_by_one(prim: Primitive, size: int, values: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """The fallback for primitives without a rule: compute one example after the other."""
    if size == 0:
        avals = prim.abstract(*(_example(v) if mine else v for v, mine in zip(values, batched, strict=True)), **params)
        parts = avals if prim.multiple else (avals,)
        empty = tuple(np.zeros((0, *part.shape), part.dtype) for part in parts)
        return empty if prim.multiple else empty[0]
    results = [
        prim(*(v[position, ...] if mine else v for v, mine in zip(values, batched, strict=True)), **params)
        for position in range(size)
    ]
    if prim.multiple:
        return tuple(_stack(parts) for parts in zip(*results, strict=True))
    return _stack(results)


def _example(value: Array) -> Array:
    return np.broadcast_to(np.ones((), value.dtype), value.shape[1:])


def _stack(parts: Any) -> Array:
    return concatenate_p(*(reshape_p(part, shape=(1, *part.shape)) for part in parts), axis=0)


# --- random numbers -------------------------------------------------------------------------------


class Stream:
    """A random generator inside vmap: it draws for each example or once for all, depending on `randomness`."""

    def __init__(self, rng: Any, levels: tuple[Level, ...]) -> None:
        if any(level.randomness == "error" for level in levels):
            raise errors.VMAP_DRAW(where=provenance.here(1))
        self._rng = rng
        self._levels = [level for level in levels if level.randomness == "different"]
        self._lead = tuple(level.size for level in self._levels)

    def _batched(self, drawn: Array) -> Array:
        for level in self._levels:
            drawn = Batched(drawn, level)
        return drawn

    def random(self, size: Any = (), **options: Any) -> Array:
        """Draw uniform numbers."""
        return self._batched(self._rng.random((*self._lead, *size), **options))

    def standard_normal(self, size: Any = (), **options: Any) -> Array:
        """Draw normal numbers."""
        return self._batched(self._rng.standard_normal((*self._lead, *size), **options))

    def exponential(self, size: Any = ()) -> Array:
        """Draw exponential numbers."""
        return self._batched(self._rng.exponential(size=(*self._lead, *size)))

    def integers(self, low: Any, high: Any, size: Any = (), **options: Any) -> Array:
        """Draw integers."""
        return self._batched(self._rng.integers(low, high, (*self._lead, *size), **options))

    def permutation(self, count: int) -> Array:
        """Draw permutations of the numbers below `count`."""
        rows = np.broadcast_to(np.arange(count), (*self._lead, count))
        return self._batched(self._rng.permuted(rows, axis=-1))


# --- in and out -----------------------------------------------------------------------------------


class Boundary(Primitive):
    """`enter` or `exit`: they act at the border of a level and are not dispatched to the interpreters below it."""

    kind = "linear"

    def __call__(self, *args: Any, **params: Any) -> Any:
        interpreter = INTERPRETERS.get(type(args[0]))
        if interpreter is not None and interpreter.rank > RANK:
            return interpreter.apply(self, args, params)
        return self.evaluate(*args, **params)


def _move(x: Array, origin: int, target: int) -> Array:
    if origin == target:
        return x
    order = [axis for axis in range(len(x.shape)) if axis != origin]
    order.insert(target, origin)
    return permute_p(x, axes=tuple(order))


def _enter(_xp: ModuleType, x: Array, *, level: Level, axis: int) -> Batched:
    if type(x) is Batched and x.level.number > level.number:
        return Batched(_enter(_xp, x.value, level=level, axis=axis + 1), x.level)
    return Batched(_move(x, axis, 0), level)


def _exit(_xp: ModuleType, x: Array, *, level: Level, axis: int) -> Array:
    if type(x) is Batched:
        if x.level is level:
            return _move(x.value, 0, axis)
        if x.level.number > level.number:
            return Batched(_exit(_xp, x.value, level=level, axis=axis + 1), x.level)
    repeated = broadcast_to_p(reshape_p(x, shape=(1, *x.shape)), shape=(level.size, *x.shape))
    return _move(repeated, 0, axis)


enter_p = Boundary("vmap_enter", _enter, register=False)
enter_p.describe("x[i] in example i", "all examples")
exit_p = Boundary("vmap_exit", _exit, register=False)
exit_p.describe("all examples", "g[i] in example i")
# Back into a running level, for values computed outside of it: all examples together, forward and backward.
reenter_p = Boundary("vmap_reenter", _enter, register=False)
reenter_p.describe(enter_p.formula, enter_p.derivative)
reenter_p.vjps = (lambda g, y, x, **params: exit_p(g, **params),)
reenter_p.jvps = enter_p.jvps = (lambda t, y, x, **params: enter_p(t, **params),)
enter_p.joint_vjp = lambda g, needs, y, x, **params: (exit_p(g, **params),)
exit_p.joint_vjp = lambda g, needs, y, x, **params: (enter_p(g, **params),)
enter_p.write_back = lambda x, view, assign, **params: exit_p(view, **params)
exit_p.jvps = (lambda t, y, x, **params: exit_p(t, **params),)


def _visit_exit(walk: Any, node: Any, g: Array) -> None:
    """Continue the backward walk into a finished call of vmap."""
    walk.meet_batches()
    walk.accumulate(node.parents[0], enter_p(g, **node.params))


def _visit_enter(walk: Any, node: Any, g: Array) -> None:
    level, axis = node.params["level"], node.params["axis"]
    if not walk.is_running(level):
        walk.accumulate(node.parents[0], exit_p(g, **node.params))
        return
    # Inside the level a cotangent belongs to one example, which depends only on its own row.
    own = Batched(np.eye(level.size, dtype=bool), level)
    column = reshape_p(own, shape=(level.size, *(1,) * len(g.shape)))
    rows = elementwise.where(column, reshape_p(g, shape=(1, *g.shape)), 0)
    walk.accumulate(node.parents[0], _move(rows, 0, axis))


exit_p.visit = _visit_exit
enter_p.visit = _visit_enter
