"""Forward-mode transforms and those that combine both modes: jvp, linearize, jacfwd, hessian, products."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine import tape, tree
from glassgrad.engine.tensor import Tensor, make
from glassgrad.engine.tree import Nested
from glassgrad.func.recording import Argnums, Recording, matching, place, zeros
from glassgrad.func.reverse import _one, jacrev
from glassgrad.func.vmap import over_basis
from glassgrad.ops.core import Array

Function = Callable[..., Any]
Given = ParamSpec("Given")
Result = TypeVar("Result")


def jvp(func: Function, primals: Nested, tangents: Nested, *, strict: bool = False, has_aux: bool = False) -> Nested:
    """Return ``(func(*primals), J t)``: the result and its directional derivative along `tangents`.

    `primals` and `tangents` are tuples of the same structure. With `has_aux`: ``(result, J t, aux)``. A
    result that does not depend on the primals has tangent zero, or raises if `strict`.

    Example:
        >>> import glassgrad as gg
        >>> gg.func.jvp(lambda x: x**2, (gg.tensor([1.0, 2.0]),), (gg.tensor([1.0, 10.0]),))
        (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    recording = Recording("jvp", func, _tuple("jvp", primals), has_aux=has_aux)
    if strict and not all(y.requires_grad for y in recording.outputs):
        raise errors.STRICT_INDEPENDENT(name="jvp", where=provenance.here())
    pushed = recording.push(_directions(recording, _tuple("jvp", tangents)))
    result = recording.result, tree.unflatten(recording.out_tree, pushed)
    return (*result, recording.visible(recording.aux)) if has_aux else result


def linearize(func: Callable[..., Result], *primals: Array) -> tuple[Result, Function]:
    """Return ``(func(*primals), push)``; `push` maps tangents, one per primal, to the tangent of the result.

    The function runs once; `push` can be called any number of times.

    Example:
        >>> import glassgrad as gg
        >>> y, push = gg.func.linearize(lambda x: x**2, gg.tensor([1.0, 2.0]))
        >>> push(gg.tensor([1.0, 10.0]))
        tensor([ 2., 40.])
    """
    recording = Recording("linearize", func, primals)

    def push(*tangents: Array) -> Nested:
        return tree.unflatten(recording.out_tree, recording.push(_directions(recording, tangents)))

    return recording.result, push


def _tuple(name: str, value: Nested) -> tuple[Array, ...]:
    if not isinstance(value, tuple | list):
        raise errors.PRIMALS_TUPLE(name=name, given=type(value).__name__, where=provenance.here())
    return tuple(value)


def _directions(recording: Recording, tangents: tuple[Array, ...]) -> list[Tensor]:
    if len(tangents) != len(recording.in_trees):
        given, expected = len(tangents), len(recording.in_trees)
        raise errors.TANGENTS_COUNT(name=recording.name, given=given, expected=expected, where=provenance.here())
    structure = tree.Tree(tuple, (), tuple(recording.in_trees))
    return matching(recording.name, "the tangent", tangents, structure, recording.inputs)


def jacfwd(
    func: Callable[Given, Any], argnums: Argnums = 0, has_aux: bool = False, *, chunk_size: int | None = None
) -> Callable[Given, Any]:
    """Return the function that computes the Jacobian column by column: best for fewer inputs than outputs.

    Shapes and containers are those of `jacrev`.

    Example:
        >>> import glassgrad as gg
        >>> gg.func.jacfwd(lambda x: x**2)(gg.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Nested:
        recording = Recording("jacfwd", func, args, kwargs, argnums=argnums, has_aux=has_aux)
        columns = []
        for position, x in enumerate(recording.inputs):

            def push(column: Tensor, position: int = position) -> tuple[Tensor, ...]:
                tangents: list[Tensor | None] = [None] * len(recording.inputs)
                tangents[position] = column
                return tuple(recording.push(tangents))

            found = over_basis(push, x, -1, chunk_size)
            columns.append([t.reshape((*y.shape, *x.shape)) for t, y in zip(found, recording.outputs, strict=True)])
        blocks = [recording.like_inputs(row) for row in zip(*columns, strict=True)]
        result = tree.unflatten(recording.out_tree, blocks)
        return (result, recording.visible(recording.aux)) if has_aux else result

    return jacobian


def hessian(func: Callable[Given, Any], argnums: Argnums = 0) -> Callable[Given, Array]:
    """Return the function that computes the second derivatives: `jacfwd` of `jacrev`.

    For a result of shape R and an argument of shape A they have shape (*R, *A, *A).

    Example:
        >>> import glassgrad as gg
        >>> gg.func.hessian(lambda x: (x**3).sum())(gg.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def hvp(func: Function, primals: Nested, tangents: Nested) -> Nested:
    """Return the product of the Hessian of `func`, which returns one number, with `tangents`.

    A tangent is pushed through the function and the result's tangent is differentiated (Pearlmutter 1994); the Hessian
    is never built. `primals` and `tangents` are tuples of the same structure; the product has it too, without
    the tuple if it has one entry.

    Example:
        >>> import glassgrad as gg
        >>> gg.func.hvp(lambda x: (x**3).sum(), (gg.tensor([1.0, 2.0]),), (gg.tensor([1.0, 1.0]),))
        tensor([ 6., 12.])
    """
    recording = Recording("hvp", func, _tuple("hvp", primals))
    recording.single = len(recording.in_trees) == 1
    return recording.like_inputs(_second(recording, _directions(recording, _tuple("hvp", tangents))))


def _second(recording: Recording, directions: list[Tensor]) -> list[Tensor]:
    """Return the Hessian times `directions`: the gradient of the directional derivative.

    Reverse over forward: the tangent is recorded, and one plain backward walk leads from it to the inputs.
    Of the three orders this makes the fewest nodes and took two thirds of the time of forward over reverse.
    """
    _one(recording)  # raises unless the function returned a single number
    (moved,) = recording.push(directions, differentiable=True)
    if not moved.requires_grad:
        return [zeros(x) for x in recording.inputs]
    again = recording.wanted_again(directions)
    one = make(np.ones((), moved.dtype), None, False)
    found = tape.backward(
        [place(moved)], [one if again else one.array], retain_graph=True, create_graph=again, wanted=recording.nodes
    )
    pairs = zip(recording.inputs, recording.nodes, strict=True)
    return [tape.wrap(found[node]) if node in found else zeros(x) for x, node in pairs]


def gauss_newton_product(func: Function, loss: Function, primals: Nested, tangents: Nested) -> Nested:
    """Return Jᵀ H J t: J the Jacobian of `func`, H the Hessian of `loss` with respect to what `func` returns.

    For a convex `loss` this matrix is positive semidefinite, which the Hessian of ``loss(func(x))`` need
    not be (Schraudolph 2002). `func` runs once. Structures are those of `hvp`.

    Example:
        >>> import glassgrad as gg
        >>> x, t = gg.tensor([1.0, 2.0]), gg.tensor([1.0, 1.0])
        >>> gg.func.gauss_newton_product(lambda x: x**2, lambda y: (y**2).sum(), (x,), (t,))
        tensor([ 8., 32.])
    """
    recording = Recording("gauss_newton_product", func, _tuple("gauss_newton_product", primals))
    recording.single = len(recording.in_trees) == 1
    pushed = recording.push(_directions(recording, _tuple("gauss_newton_product", tangents)))
    outer = Recording("gauss_newton_product", loss, (recording.result,))
    return recording.like_inputs(recording.pull(_second(outer, pushed), keep=False))
