"""`torch.autograd.functional`: derivatives of a function at given inputs, by the transforms of `glassgrad.func`.

`inputs` is a tensor or a tuple of tensors, and results are single or tuples accordingly. They are detached unless
`create_graph` is set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from glassgrad.engine.tensor import Tensor
from glassgrad.engine.tree import Nested, tree_map
from glassgrad.func import forward, reverse
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.shape import astype

Function = Callable[..., Any]


def _several(inputs: Nested) -> tuple[Any, ...]:
    return inputs if isinstance(inputs, tuple) else tuple(inputs) if isinstance(inputs, list) else (inputs,)


def _finished(value: Nested, create_graph: bool) -> Nested:
    return value if create_graph else tree_map(lambda leaf: leaf.detach(), value)


def _alike(value: Nested, inputs: Nested) -> Nested:
    """Return a single result if there is a single input."""
    return value if isinstance(inputs, tuple | list) else value[0]


def _directions(name: str, v: Nested, like: Nested) -> tuple[Array, ...]:
    """Return the given vectors, or 1 for a result of a single number."""
    expected = _several(like)
    if v is None:
        if len(expected) != 1 or expected[0].numel() != 1:
            shapes = [tuple(one.shape) for one in expected]
            wanted = f"tensors of the shapes {shapes}; only a single number has a direction of its own"
            raise bad_option(name, "v", None, wanted)
        return (astype(expected[0].detach() * 0 + 1, expected[0].dtype),)
    given = _several(v)
    if [tuple(one.shape) for one in given] != [tuple(one.shape) for one in expected]:
        raise bad_option(
            name,
            "v",
            [tuple(one.shape) for one in given],
            f"tensors of the shapes {[tuple(one.shape) for one in expected]}",
        )
    return given


def jacobian(
    func: Function,
    inputs: Nested,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Nested:
    """Return the Jacobian of `func` at `inputs`, of shape output + input for each pair of them.

    Args:
        func: takes tensors, returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        create_graph: keep the history of the result.
        strict, vectorize: accepted for compatibility with PyTorch; an unused input has a Jacobian of zeros.
        strategy: "reverse-mode" or "forward-mode".

    Example:
        >>> import glassgrad as gg
        >>> gg.autograd.functional.jacobian(lambda x: x**2, gg.tensor([1.0, 3.0]))
        tensor([[2., 0.],
                [0., 6.]])
    """
    given = _several(inputs)
    transform: Any = forward.jacfwd if strategy == "forward-mode" else reverse.jacrev
    found = transform(_plain(func), argnums=tuple(range(len(given))))(*given)
    if isinstance(inputs, tuple | list):
        return _finished(found, create_graph)
    first = found[0] if isinstance(found[0], Tensor) else None
    return _finished(first if first is not None else tuple(row[0] for row in found), create_graph)


def hessian(
    func: Function,
    inputs: Nested,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Nested:
    """Return the second derivatives of a function of one number, of shape input + input for each pair of inputs.

    Example:
        >>> import glassgrad as gg
        >>> gg.autograd.functional.hessian(lambda x: (x**3).sum(), gg.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    given = _several(inputs)
    places = tuple(range(len(given)))
    found = reverse.jacrev(reverse.jacrev(_plain(func), argnums=places), argnums=places)(*given)
    return _finished(found if isinstance(inputs, tuple | list) else found[0][0], create_graph)


def vjp(func: Function, inputs: Nested, v: Nested = None, create_graph: bool = False, strict: bool = False) -> Nested:
    """Return the outputs, and the product of `v` with the Jacobian.

    Example:
        >>> import glassgrad as gg
        >>> gg.autograd.functional.vjp(lambda x: x**2, gg.tensor([1.0, 3.0]), gg.ones(2))
        (tensor([1., 9.]), tensor([2., 6.]))
    """
    outputs, pull = reverse.vjp(_plain(func), *_several(inputs))
    seeds = _directions("vjp", v, outputs)
    found = pull(seeds if isinstance(outputs, tuple) else seeds[0])
    return _finished(outputs, create_graph), _finished(_alike(found, inputs), create_graph)


def jvp(func: Function, inputs: Nested, v: Nested = None, create_graph: bool = False, strict: bool = False) -> Nested:
    """Return the outputs, and the product of the Jacobian with `v`.

    Example:
        >>> import glassgrad as gg
        >>> gg.autograd.functional.jvp(lambda x: x**2, gg.tensor([1.0, 3.0]), gg.tensor([1.0, 0.0]))
        (tensor([1., 9.]), tensor([2., 0.]))
    """
    outputs, tangents = forward.jvp(_plain(func), _several(inputs), _directions("jvp", v, inputs))
    return _finished(outputs, create_graph), _finished(tangents, create_graph)


def hvp(func: Function, inputs: Nested, v: Nested = None, create_graph: bool = False, strict: bool = False) -> Nested:
    """Return the value of a function of one number, and the product of its Hessian with `v`.

    Example:
        >>> import glassgrad as gg
        >>> gg.autograd.functional.hvp(lambda x: (x**3).sum(), gg.tensor([1.0, 2.0]), gg.ones(2))
        (tensor(9.), tensor([ 6., 12.]))
    """
    given = _several(inputs)
    directions = _directions("hvp", v, inputs)
    slope = reverse.grad(_plain(func), argnums=tuple(range(len(given))))
    _, found = forward.jvp(slope, given, directions)
    return _finished(func(*given), create_graph), _finished(_alike(found, inputs), create_graph)


def vhp(func: Function, inputs: Nested, v: Nested = None, create_graph: bool = False, strict: bool = False) -> Nested:
    """Return the value of a function of one number, and the product of `v` with its Hessian, which is symmetric.

    Example:
        >>> import glassgrad as gg
        >>> gg.autograd.functional.vhp(lambda x: (x**3).sum(), gg.tensor([1.0, 2.0]), gg.ones(2))
        (tensor(9.), tensor([ 6., 12.]))
    """
    return hvp(func, inputs, v, create_graph, strict)


def _plain(func: Function) -> Function:
    """Make a function return tuples instead of lists."""

    def call(*args: object) -> Nested:
        result = func(*args)
        return tuple(result) if isinstance(result, list) else result

    return call


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
