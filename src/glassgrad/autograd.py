"""PyTorch's `torch.autograd`: backward and grad over the tape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from glassgrad import errors, provenance, tape
from glassgrad import saving as graph
from glassgrad.function import Function, once_differentiable
from glassgrad.tensor import Tensor, make


def backward(
    tensors: Sequence[Tensor] | Tensor,
    grad_tensors: Sequence[Any] | Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Sequence[Tensor] | Tensor | None = None,
) -> None:
    """Accumulate the gradients of `tensors` into `.grad` of the leaves; see `Tensor.backward`."""
    outputs = _listed(tensors)
    roots, seeds = _seeds(outputs, _listed(grad_tensors) if grad_tensors is not None else [None] * len(outputs))
    retain = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        found = tape.backward(roots, seeds, retain_graph=retain, create_graph=create_graph)
        for leaf, g in found.items():
            _accumulate(leaf, g)
        return
    sources = _listed(inputs)
    wanted = [_place_of(x) for x in sources]
    found = tape.backward(roots, seeds, retain_graph=retain, create_graph=create_graph, wanted=wanted)
    for x, place in zip(sources, wanted, strict=True):
        if place in found:
            _accumulate(x, found[place])


def grad(
    outputs: Sequence[Tensor] | Tensor,
    inputs: Sequence[Tensor] | Tensor,
    grad_outputs: Sequence[Any] | Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of `outputs` with respect to `inputs`, leaving every `.grad` alone.

    Raises:
        AutogradError: when an input was not used and `allow_unused` is False.

    Example:
        >>> import glassgrad as gg
        >>> x = gg.tensor(3.0, requires_grad=True)
        >>> (g,) = gg.autograd.grad(x**2, x, create_graph=True)
        >>> gg.autograd.grad(g, x)
        (tensor(2.),)
    """
    results = _listed(outputs)
    sources = _listed(inputs)
    roots, seeds = _seeds(results, _listed(grad_outputs) if grad_outputs is not None else [None] * len(results))
    retain = create_graph if retain_graph is None else retain_graph
    wanted = [_place_of(x) for x in sources]
    found = tape.backward(roots, seeds, retain_graph=retain, create_graph=create_graph, wanted=wanted)
    gradients: list[Tensor | None] = []
    for position, place in enumerate(wanted):
        g = found.get(place)
        if g is None and not allow_unused:
            raise errors.NOT_REACHED(index=position, where=provenance.here())
        gradients.append(None if g is None else tape.wrap(g))
    return tuple(gradients)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _place_of(x: Tensor) -> Any:
    """Return what stands for a tensor on the tape: its node, or itself if it is a leaf."""
    return x if x.node is None else x.node


def _seeds(outputs: list[Tensor], gradients: list[Any]) -> tuple[list[Any], list[Any]]:
    roots, seeds = [], []
    for output, gradient in zip(outputs, gradients, strict=True):
        if not output._tracks:
            raise errors.NO_GRADIENT_PATH(what=_named(output), cut=_cut(), where=provenance.here())
        if gradient is None:
            array = output.array
            if math.prod(array.shape) != 1:
                raise errors.BACKWARD_NEEDS_SCALAR(shape=output.shape, where=provenance.here())
            gradient = _one(array.shape, array.dtype)
        elif tuple(gradient.shape) != output.shape:
            raise errors.GRADIENT_SHAPE(given=tuple(gradient.shape), expected=output.shape, where=provenance.here())
        roots.append(_place_of(output))
        seeds.append(gradient)
    return roots, [g.array if isinstance(g, Tensor) and not g._tracks else g for g in seeds]


@lru_cache(maxsize=64)
def _one(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    one = np.ones(shape, dtype)
    one.flags.writeable = False  # it is shared; gradients that alias it are copied
    return one


def _named(output: Tensor) -> str:
    """Name the tensor that backward() was called on as the user's line does."""
    operands = provenance.here(2).operands
    return f"'{operands[0]}'" if operands and operands[0].isidentifier() else f"the tensor of shape {output.shape}"


def _cut() -> str:
    """Say where the path to the parameters may have been cut, as far as that is known."""
    if not tape.is_grad_enabled():
        return ", and recording is off here (no_grad)"
    exit_ = provenance.EXITS.last()
    if exit_ is None:
        return ""
    call, place = exit_
    return f".\nThe last value to leave the graph did so at {call}, {place}: {place.source}"


def _accumulate(leaf: Tensor, g: Any) -> None:
    if leaf._extra is None and leaf._grad is None and type(g) is np.ndarray:
        leaf._grad = make(g, None, False)
    else:
        _accumulate_watched(leaf, g)


def _accumulate_watched(leaf: Tensor, g: Any) -> None:
    extra = leaf._extra
    if extra is not None and leaf.node is None:
        for hook in list(extra.get("hooks", ())):
            replaced = hook(tape.wrap(g))
            if replaced is not None:
                g = replaced if isinstance(g, Tensor) else tape.unwrap(replaced)
    gradient = tape.wrap(g)  # NumPy's arithmetic on 0-d arrays returns scalars, which it makes arrays again
    if tape.MODE.levels and set(tape.levels_of(gradient)) - set(tape.levels_of(leaf)):
        raise errors.VMAP_BACKWARD(where=provenance.here())
    before = leaf._grad
    if before is None:
        leaf._grad = gradient
    elif gradient._tracks or type(before.array) is not np.ndarray or before._tracks:
        leaf._grad = before + gradient
    else:
        before.array += gradient.array


__all__ = ["Function", "backward", "grad", "graph", "once_differentiable"]


tape.HOOKS.backward = backward
