"""Reverse-mode transforms: grad, value_and_grad, vjp, jacrev."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine import tree
from glassgrad.engine.tensor import Tensor, make
from glassgrad.engine.tree import Nested
from glassgrad.func.recording import Argnums, Recording, matching
from glassgrad.func.vmap import over_basis
from glassgrad.ops.core import Array

Function = Callable[..., Any]
Given = ParamSpec("Given")
Result = TypeVar("Result")


def grad(func: Callable[Given, Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[Given, Any]:
    """Return the function that computes the gradient of `func`, which returns one number.

    The gradient has the structure and shapes of argument `argnums`, or is a tuple of such for several
    argnums. With `has_aux` the function returns ``(number, anything)`` and the gradient function
    ``(gradient, anything)``.

    Raises:
        AutogradError: the result is not a single number, or an argument is not floating-point.

    Example:
        >>> import glassgrad as gg
        >>> gg.func.grad(lambda x: x**3)(gg.tensor(2.0))
        tensor(12.)
        >>> gg.func.grad(gg.func.grad(lambda x: x**3))(gg.tensor(2.0))
        tensor(12.)
    """

    @functools.wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Nested:
        recording, gradients = _evaluate("grad", func, argnums, has_aux, args, kwargs)
        return (gradients, recording.visible(recording.aux)) if has_aux else gradients

    return gradient


def value_and_grad(
    func: Callable[Given, Result], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[Given, tuple[Result, Any]]:
    """Return the function that computes ``(value, gradient)``, with `has_aux` ``((value, aux), gradient)``.

    Example:
        >>> import glassgrad as gg
        >>> gg.func.value_and_grad(lambda x: x**3)(gg.tensor(2.0))
        (tensor(8.), tensor(12.))
    """

    @functools.wraps(func)
    def both(*args: Any, **kwargs: Any) -> Nested:
        recording, gradients = _evaluate("value_and_grad", func, argnums, has_aux, args, kwargs)
        value = recording.result
        return ((value, recording.visible(recording.aux)) if has_aux else value), gradients

    return both


def grad_and_value(
    func: Callable[Given, Result], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[Given, tuple[Any, Result]]:
    """`value_and_grad` with the gradient first, as PyTorch returns it.

    Example:
        >>> import glassgrad as gg
        >>> gg.func.grad_and_value(lambda x: (x * x).sum())(gg.tensor([1.0, 2.0]))
        (tensor([2., 4.]), tensor(5.))
    """
    swapped = value_and_grad(func, argnums, has_aux)

    @functools.wraps(func)
    def both(*args: Any, **kwargs: Any) -> Nested:
        value, gradients = swapped(*args, **kwargs)
        return gradients, value

    return both


def _evaluate(
    name: str, func: Function, argnums: Argnums, has_aux: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Recording, Any]:
    recording = Recording(name, func, args, kwargs, argnums=argnums, has_aux=has_aux)
    one = _one(recording)
    return recording, recording.like_inputs(recording.pull([one], keep=False))


def _one(recording: Recording) -> Tensor:
    """Return the cotangent of a single number."""
    if len(recording.outputs) != 1 or recording.out_tree is not tree.LEAF:
        raise errors.OUTPUT_NOT_ONE(name=recording.name, given=recording.out_tree, where=provenance.here())
    y = recording.outputs[0]
    if y.shape != ():
        raise errors.OUTPUT_NOT_SCALAR(name=recording.name, shape=y.shape, where=provenance.here())
    return make(np.ones((), y.dtype), None, False)


def vjp(func: Function, *primals: Array, has_aux: bool = False) -> Nested:
    """Return ``(func(*primals), pull)``; `pull` maps a cotangent of the result to a tuple, one per primal.

    The function runs once; `pull` can be called any number of times. With `has_aux`: ``(result, pull, aux)``.

    Example:
        >>> import glassgrad as gg
        >>> y, pull = gg.func.vjp(lambda x: x**2, gg.tensor([1.0, 2.0]))
        >>> pull(gg.tensor([1.0, 10.0]))
        (tensor([ 2., 40.]),)
    """
    recording = Recording("vjp", func, primals, has_aux=has_aux)

    def pull(*cotangents: Array) -> Nested:
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        leaves = matching("vjp", "the cotangent", given, recording.out_tree, recording.outputs)
        return recording.like_inputs(recording.pull(leaves))

    if has_aux:
        return recording.result, pull, recording.visible(recording.aux)
    return recording.result, pull


def jacrev(
    func: Callable[Given, Any], argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None
) -> Callable[Given, Any]:
    """Return the function that computes the Jacobian row by row: best for fewer outputs than inputs.

    For a result of shape R and an argument of shape A the Jacobian has shape (*R, *A); for containers it
    has the structure of the result, with the structure of the argument at every leaf. `chunk_size` limits the
    number of rows computed at a time.

    Example:
        >>> import glassgrad as gg
        >>> gg.func.jacrev(lambda x: x**2)(gg.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Nested:
        recording = Recording("jacrev", func, args, kwargs, argnums=argnums, has_aux=has_aux)
        blocks = []
        for position, y in enumerate(recording.outputs):

            def pull(row: Tensor, position: int = position) -> tuple[Tensor, ...]:
                cotangents: list[Tensor | None] = [None] * len(recording.outputs)
                cotangents[position] = row
                return tuple(recording.pull(cotangents))

            rows = over_basis(pull, y, 0, chunk_size)
            blocks.append(
                recording.like_inputs(
                    [block.reshape((*y.shape, *x.shape)) for block, x in zip(rows, recording.inputs, strict=True)]
                )
            )
        result = tree.unflatten(recording.out_tree, blocks)
        return (result, recording.visible(recording.aux)) if has_aux else result

    return jacobian
