"""`autograd.Function`: an op with a user-defined backward (and forward-mode rule).

`apply` runs `forward` unrecorded and puts one node on the tape, at the user's line. The rules get Tensors: plain ones
in an ordinary backward pass, and with their history under `create_graph`, so a `backward` written in differentiable ops
can be differentiated again.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine import saved_tensors, tape
from glassgrad.engine.mode import MODE, RECORDING, enable_grad, no_grad
from glassgrad.engine.node import Arrays, Node, record
from glassgrad.engine.tape import pick
from glassgrad.engine.tensor import Tensor, make
from glassgrad.ops.core import Array, Aval, Custom
from glassgrad.ops.shape import stack
from glassgrad.ops.vmap.batched import Batched, Level, exit_p, reenter_p


class Context:
    """The context that `forward` fills for `backward`: PyTorch's `ctx`. Any attribute may be set on it.

    Attributes:
        needs_input_grad: for each argument, whether a gradient is wanted.
    """

    _for_backward: tuple[Array, ...] = ()
    _for_forward: tuple[Array, ...] | None = None
    _without_gradient: frozenset[int] = frozenset()
    _materialize = True
    _view: Callable[[], tuple[Any, ...]] | None = None  # the saved tensors while a rule runs

    def __init__(self, needs: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `backward`, where they are `saved_tensors`; inputs and outputs keep their history."""
        self._for_backward = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `jvp`; by default it gets the tensors of `save_for_backward`."""
        self._for_forward = tensors

    @property
    def saved_tensors(self) -> tuple[Array, ...]:
        """The tensors that were saved, in the same order."""
        if self._view is None:
            return self._for_backward
        return self._view()

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """Say that these outputs have no gradient."""
        self._without_gradient = frozenset(map(id, outputs))

    def mark_dirty(self, *inputs: Tensor) -> None:
        """Not supported: write the result into a new tensor."""
        raise errors.FUNCTION_DIRTY(where=provenance.here())

    def set_materialize_grads(self, value: bool) -> None:
        """With False, cotangents (and tangents) that are zero arrive as None."""
        self._materialize = value


class _Saved:
    """The origin of each saved tensor of one call: an input, an output, or neither."""

    def __init__(self, tensors: Arrays, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        at_input = {id(x): position for position, x in enumerate(inputs) if isinstance(x, Tensor)}
        at_output = {id(y): position for position, y in enumerate(outputs) if isinstance(y, Tensor)}
        self.origins = [(at_input.get(id(x)), at_output.get(id(x))) for x in tensors]
        self.arrays = tuple(x.array if isinstance(x, Tensor) else x for x in tensors)

    def tensors(
        self, arrays: Arrays, parents: Sequence[Any] | None, leaves: Array | None, node: Node, count: int
    ) -> tuple[Array, ...]:
        """Return the tensors; with `parents`, connected to their history; with `leaves`, saved leaves themselves."""
        result: list[Array] = []
        sources = leaves if parents is None else parents
        for array, (at_input, at_output) in zip(arrays, self.origins, strict=True):
            parent = None if sources is None or at_input is None else sources[at_input]
            if array is None:
                result.append(None)
            elif isinstance(parent, Node):
                result.append(make(array, parent, True))
            elif isinstance(parent, Tensor) and (parents is not None or parent.array is array):
                result.append(parent)
            elif parents is not None and at_output is not None and array.dtype.kind in "fcV":
                result.append(pick(node, array, at_output, count) if node.prim.multiple else make(array, node, True))
            else:
                result.append(make(array, None, False))
        return tuple(result)


_NOTHING = _Saved((), (), ())


class UserPrimitive(Custom):
    """The primitive behind one Function class; its rules call the user's."""

    def __init__(self, name: str, *, multiple: bool) -> None:
        super().__init__(name, lambda _xp, *_x: None, joint_vjp=_vjp, joint_jvp=_jvp, multiple=multiple, register=False)
        self.describe("forward", "backward")


def _vjp(g: Array, needs: Sequence[bool], arrays: Arrays, *parents: Any, call: _Call) -> list[Array]:
    """Call the user's `backward`; `g` is a Tensor if the result must be differentiable."""
    gs = list(g) if call.multiple else [g]
    again = any(isinstance(c, Tensor) for c in gs)
    shown = [None if c is None else tape.wrap(tape.turned(c)) for c in gs]
    # Saved parameters are passed themselves, so that `backward` may compute derivatives with respect to them.
    leaves = [parent if isinstance(parent, Tensor) else None for parent in parents]
    found = call.pull(shown, arrays, parents if again else None, leaves=leaves)
    return [None if c is None else tape.turned(c if again else c.array) for c in found]


def _jvp(tangents: Arrays, arrays: Arrays, *parents: Any, call: _Call) -> Array:
    """Call the user's `jvp`, or transpose `backward`, which is linear in the cotangents."""
    again = any(isinstance(t, Tensor) for t in tangents)
    wrapped = [None if t is None else tape.wrap(t) for t in tangents]
    linked = parents if again else None
    if call.function.jvp is Function.jvp:
        found = call.transposed(wrapped, arrays, linked)
    else:
        found = call.push(wrapped, arrays, linked)
    parts = [t if again or t is None else t.array for t in found]
    return parts if call.multiple else parts[0]


class _Call:
    """One application of a Function: its context, and the types of its inputs and outputs."""

    def __init__(self, function: type[Function], ctx: Context, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        self.function, self.ctx = function, ctx
        self.inputs = [_like(x) if isinstance(x, Tensor) else None for x in inputs]
        self.outputs = [_like(y) if isinstance(y, Tensor) else None for y in outputs]
        self.multiple = False
        backward, forward = ctx._for_backward, ctx._for_forward
        self.for_backward = _Saved(backward, inputs, outputs) if backward else _NOTHING
        self.for_forward = self.for_backward if forward is None else _Saved(forward, inputs, outputs)
        self.node: Callable[[], Any] = lambda: None
        ctx._for_backward, ctx._for_forward = (), None

    @property
    def saved(self) -> Array:
        return self.for_backward.arrays, self.for_forward.arrays

    def _enter(self, saved: _Saved, arrays: Arrays, parents: Any, leaves: Array = None) -> None:
        self.ctx._view = lambda: saved.tensors(arrays, parents, leaves, self.node(), len(self.outputs))

    def pull(
        self, gs: list[Array], arrays: Arrays, parents: Any, record: bool = False, leaves: Arrays | None = None
    ) -> list[Array]:
        """Return one cotangent, or None, for each argument."""
        once = getattr(self.function.backward, "_once", False)
        self._enter(self.for_backward, arrays[0], None if once else parents, leaves)
        if self.ctx._materialize:
            gs = [_zeros(like) if c is None else c for c, like in zip(gs, self.outputs, strict=True)]
        before = MODE.flags
        MODE.flags = before | RECORDING if record or parents is not None else before & ~RECORDING
        try:
            result = self.function.backward(self.ctx, *gs)
        finally:
            MODE.flags = before
        found = list(result) if isinstance(result, tuple) else [result]
        if once and parents is not None:
            sources = [x for x in (*gs, *parents) if isinstance(x, Node) or (isinstance(x, Tensor) and x.requires_grad)]
            found = [_guarded(part, sources, self.node()) for part in found] if sources else found
        while len(found) > len(self.inputs) and found[-1] is None:
            found.pop()
        if len(found) != len(self.inputs):
            expected = f"one for each of the {len(self.inputs)} arguments"
            raise self._wrong("backward", f"{len(found)} gradients", expected)
        return [
            self._checked("backward", c, like, f"gradient {position + 1}") if like is not None else None
            for position, (c, like) in enumerate(zip(found, self.inputs, strict=True))
        ]

    def push(self, tangents: list[Array], arrays: Arrays, parents: Any) -> list[Array]:
        """Return one tangent for each output."""
        self._enter(self.for_forward, arrays[1], parents)
        if self.ctx._materialize:
            tangents = [_zeros(like) if t is None else t for t, like in zip(tangents, self.inputs, strict=True)]
        with enable_grad() if parents is not None else no_grad():
            result = self.function.jvp(self.ctx, *tangents)
        found = list(result) if isinstance(result, tuple) else [result]
        if len(found) != len(self.outputs):
            raise self._wrong("jvp", f"{len(found)} tangents", f"one for each of the {len(self.outputs)} results")
        return [
            self._checked("jvp", t, like, f"tangent {position + 1}") if like is not None else None
            for position, (t, like) in enumerate(zip(found, self.outputs, strict=True))
        ]

    def transposed(self, tangents: list[Array], arrays: Arrays, parents: Any) -> list[Array]:
        """Derive forward mode from `backward`: the derivative of <c(u), t> with respect to the cotangent u."""
        seeds = [
            None if like is None or like.dtype.kind not in "fcV" else tape.alias(np.ones(like.shape, like.dtype))
            for like in self.outputs
        ]
        try:
            pulled = self.pull(seeds, arrays, parents, record=True)
        except errors.KindError as error:  # `backward` read the numbers of a cotangent
            raise errors.NO_FORWARD_RULE(op=self.function.__name__, where=self.node().place) from error
        if any(_constant(c) for c in pulled):
            raise errors.NO_FORWARD_RULE(op=self.function.__name__, where=self.node().place)
        pairs = [(c, t) for c, t in zip(pulled, tangents, strict=True) if c is not None and t is not None and c._tracks]
        wanted = [u.node for u in seeds if u is not None]
        found = tape.backward(
            [c.node for c, _ in pairs],
            [t if parents is not None else t.array for _, t in pairs],
            retain_graph=False,
            create_graph=parents is not None,
            wanted=wanted,
        )
        return [
            None if u is None else tape.wrap(found[u.node]) if u.node in found else _zeros(like)
            for u, like in zip(seeds, self.outputs, strict=True)
        ]

    def _checked(self, rule: str, value: Array, like: Aval, what: str) -> Array:
        if value is None:
            return None
        if isinstance(value, np.ndarray | np.generic):
            value = make(np.asarray(value), None, False)
        if not isinstance(value, Tensor):
            raise self._wrong(rule, f"a {type(value).__name__} as {what}", "a tensor or None")
        if value.array.shape != like.shape and not _sums_to(value.shape, like.shape):
            raise self._wrong(rule, f"{what} of shape {value.shape}", f"shape {like.shape}")
        return value

    def _wrong(self, rule: str, given: str, expected: str) -> Exception:
        node = self.node()
        where = node.place if node is not None else provenance.here()
        return errors.FUNCTION_RULE(
            function=self.function.__name__, rule=rule, given=given, expected=expected, where=where
        )


def _constant(c: Array) -> bool:
    """Tell whether a gradient does not depend on its cotangent; zeros do not count."""
    return c is not None and not c.requires_grad and not (type(c.array) is np.ndarray and not c.array.any())


def _like(x: Tensor) -> Aval:
    """Return shape and dtype of a tensor that is not kept."""
    return Aval(x.array.shape, x.array.dtype)


def _zeros(like: Array) -> Tensor | None:
    return None if like is None else make(np.zeros(like.shape, like.dtype), None, False)


def _sums_to(given: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(given, wanted) == given
    except ValueError:
        return False


class Function:
    """Base of ops with a user-defined derivative; subclasses define static methods.

    `forward(ctx, *args)` computes, with `ctx.save_for_backward`; or `forward(*args)` together with
    `setup_context(ctx, inputs, output)`. `backward(ctx, *cotangents)` returns a gradient or None for each
    argument. `jvp(ctx, *tangents)` is optional: without it forward mode transposes `backward`. `vmap(info,
    in_dims, *args)` is optional too: without it `forward` runs on batched tensors, or if it needs their
    numbers, once for each example.

    Example:
        >>> import glassgrad as gg
        >>> class Exp(gg.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         y = x.exp()
        ...         ctx.save_for_backward(y)
        ...         return y
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         (y,) = ctx.saved_tensors
        ...         return g * y
        >>> x = gg.tensor(0.0, requires_grad=True)
        >>> Exp.apply(x).backward()
        >>> x.grad
        tensor(1.)
    """

    _primitives: ClassVar[dict[tuple[type, bool], UserPrimitive]] = {}

    @staticmethod
    def forward(*_args: Any, **_kwargs: Any) -> Any:
        """Compute the result; subclasses must define it."""
        raise errors.FUNCTION_MISSING(name="forward", where=provenance.here())

    @staticmethod
    def backward(_ctx: Any, *_cotangents: Any) -> Any:
        """Return the gradients of the arguments; subclasses must define it to be used in reverse mode."""
        raise errors.FUNCTION_MISSING(name="backward", where=provenance.here())

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save what the rules need, when `forward` does not take `ctx`."""

    @staticmethod
    def jvp(ctx: Any, *tangents: Array) -> Any:
        """Return the tangents of the results."""

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        """Return ``(output, out_dims)`` for arguments of which some hold a batch."""

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Apply the function; its node refers to the line of this call."""
        if MODE.levels and any(isinstance(x, Tensor) and type(x.array) is Batched for x in args):
            return _apply_to_batch(cls, args)
        return _apply(cls, args)

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        raise errors.FUNCTION_CALLED(name=type(self).__name__, where=provenance.here())


def _apply(function: type[Function], args: tuple[Any, ...]) -> Any:
    needs = tuple([isinstance(x, Tensor) and x._tracks for x in args])
    ctx = Context(needs)
    inputs = tuple([make(x.lifted(), None, False) if isinstance(x, Tensor) else x for x in args])
    before = MODE.flags
    MODE.flags = before & ~RECORDING
    try:
        if function.setup_context is not Function.setup_context:
            result = function.forward(*inputs)
            function.setup_context(ctx, inputs, result)
        else:
            result = function.forward(ctx, *inputs)
    finally:
        MODE.flags = before
    outputs = result if isinstance(result, tuple) else (result,)
    for y in outputs:
        if not isinstance(y, Tensor) and not isinstance(result, tuple):
            raise errors.OUTPUT_NOT_TENSOR(
                name=f"{function.__name__}.forward", given=type(y).__name__, where=provenance.here()
            )
    if not any(needs) or not MODE.flags & RECORDING:
        return result
    call = _Call(function, ctx, inputs, outputs)
    recorded = _record(call, function, args, outputs)
    return recorded if isinstance(result, tuple) else recorded[0]


def _record(call: _Call, function: type[Function], args: tuple[Any, ...], outputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Put the call on the tape; return its results as tensors with history."""
    differentiable = [
        isinstance(y, Tensor) and y.dtype.kind in "fcV" and id(y) not in call.ctx._without_gradient for y in outputs
    ]
    if not any(differentiable):
        return outputs
    call.multiple = len(outputs) > 1
    prim = Function._primitives.get((function, call.multiple))
    if prim is None:
        prim = Function._primitives[function, call.multiple] = UserPrimitive(function.__name__, multiple=call.multiple)
    parents = tuple([(x if x.node is None else x.node) if isinstance(x, Tensor) and x._tracks else None for x in args])
    frame = provenance.user_frame(1)
    first = next(y for y, wanted in zip(outputs, differentiable, strict=True) if wanted)
    node = record(prim, parents, (call.saved, *parents), {"call": call}, first.array, frame.f_code, frame.f_lasti)
    if type(first.array) is Batched:
        node.levels = tape.levels_of(first)
    call.node = weakref.ref(node)
    saved_tensors.show(node)
    if not call.multiple:
        return (make(first.array, node, True),)
    return tuple(
        pick(node, y.array, position, len(outputs)) if wanted else y
        for position, (y, wanted) in enumerate(zip(outputs, differentiable, strict=True))
    )


# --- under vmap ---------------------------------------------------------------------------------------


class BatchInfo:
    """The information for `Function.vmap`: the size of the batch and the meaning of random draws."""

    def __init__(self, batch_size: int, randomness: str) -> None:
        self.batch_size = batch_size
        self.randomness = randomness


def _apply_to_batch(function: type[Function], args: tuple[Any, ...]) -> Any:
    levels = [level for x in args if isinstance(x, Tensor) for level in tape.levels_of(x)]
    level = max(levels, key=lambda one: one.number)
    if function.vmap is Function.vmap:
        try:
            return _apply(function, args)
        except errors.NoValueError:
            return _outside(level, args, functools.partial(_one_by_one, function, level.size))

    def by_rule(in_dims: tuple[Any, ...], *outside: Any) -> Any:
        return function.vmap(BatchInfo(level.size, level.randomness), in_dims, *outside)

    return _outside(level, args, by_rule)


def _outside(level: Level, args: tuple[Any, ...], compute: Callable[..., Any]) -> Any:
    """Compute on all examples together, outside the vmap level: ``compute(in_dims, *args) -> (result, out_dims)``."""
    # A value that is the same for all examples but has a history gets a batch too: its gradient differs per example.
    batched = [isinstance(x, Tensor) and (x.requires_grad or level in tape.levels_of(x)) for x in args]
    outside = [exit_p(x, level=level, axis=0) if mine else x for x, mine in zip(args, batched, strict=True)]
    before = MODE.levels
    MODE.levels = tuple(one for one in before if one is not level)
    try:
        result, out_dims = compute(tuple(0 if mine else None for mine in batched), *outside)
    finally:
        MODE.levels = before
    results = result if isinstance(result, tuple) else (result,)
    dims = out_dims if isinstance(out_dims, tuple) else (out_dims,) * len(results)
    inside = tuple(
        y if axis is None else reenter_p(y, level=level, axis=axis) for y, axis in zip(results, dims, strict=True)
    )
    return inside if isinstance(result, tuple) else inside[0]


def _one_by_one(function: type[Function], size: int, in_dims: tuple[Any, ...], *args: Any) -> Any:
    """Apply a function that needs concrete numbers example by example."""
    results = [
        function.apply(*(x if axis is None else x[number] for x, axis in zip(args, in_dims, strict=True)))
        for number in range(size)
    ]
    if not isinstance(results[0], tuple):
        return stack(results), 0
    columns = list(zip(*results, strict=True))
    dims = tuple(0 if isinstance(column[0], Tensor) else None for column in columns)
    return tuple(column[0] if axis is None else stack(column) for column, axis in zip(columns, dims, strict=True)), dims


# --- a backward that cannot be differentiated ---------------------------------------------------------


def _refuse(*_saved: Array, name: str, where: Any) -> Array:
    raise errors.ONCE_DIFFERENTIABLE(function=name, where=where)


_ONCE = Custom("once_differentiable", lambda _xp, x: x, joint_vjp=_refuse, joint_jvp=_refuse, register=False)
_ONCE.describe("x", "none")


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a `backward` as not differentiable: differentiating its result raises an error.

    Write it below ``@staticmethod``.

    Example:
        >>> import glassgrad as gg
        >>> class Double(gg.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return 2 * x
        ...     @staticmethod
        ...     @gg.autograd.once_differentiable
        ...     def backward(ctx, g):
        ...         return 2 * g
        >>> x = gg.ones(1, requires_grad=True)
        >>> Double.apply(x).backward()
        >>> x.grad
        tensor([2.])
    """

    @functools.wraps(backward)
    def once(ctx: Any, *cotangents: Array) -> Any:
        with no_grad():
            return backward(ctx, *(c.detach() if isinstance(c, Tensor) else c for c in cotangents))

    vars(once)["_once"] = True  # read when the result must be differentiable
    return once


def _guarded(part: Array, sources: Sequence[Any], node: Node) -> Array:
    """Connect a gradient to its inputs by a node that refuses to be differentiated."""
    if not isinstance(part, Tensor):
        return part
    parents = tuple(x if isinstance(x, Node) or x.node is None else x.node for x in sources)
    params = {"name": node.name, "where": node.place}
    guard = record(_ONCE, parents, (None, *parents), params, part.array, node.code, node.lasti)
    return make(part.array, guard, True)


__all__ = ["Context", "Function", "once_differentiable"]
