"""vmap: a function of one example, computed for a whole batch at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine import tree, views
from glassgrad.engine.mode import MODE
from glassgrad.engine.tensor import Tensor, base_class, make
from glassgrad.engine.tree import Nested
from glassgrad.ops.core import Array, canonical_axis
from glassgrad.ops.shape import cat
from glassgrad.ops.vmap import rules
from glassgrad.ops.vmap.batched import Level, enter_p, exit_p, levels_of

Function = Callable[..., Any]
Given = ParamSpec("Given")
Result = TypeVar("Result")
Axes = Any  # an int, None, or a container of such
_UNSET: Any = object()
RANDOMNESS = ("error", "different", "same")


def vmap(
    func: Callable[Given, Result],
    in_dims: Axes = 0,
    out_dims: Axes = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
    in_axes: Axes = _UNSET,
    out_axes: Axes = _UNSET,
) -> Callable[Given, Result]:
    """Return a function that computes `func` for every example of a batch, without a loop over them.

    Args:
        func: takes and returns the tensors of one example, possibly in containers.
        in_dims: the dimension of each argument that indexes the examples; None for arguments that are
            the same for all. One entry for all arguments, or a tuple with one for each, which may be a
            container like the argument. Keyword arguments are the same for all. JAX's `in_axes`.
        out_dims: the position of that dimension in the results. JAX's `out_axes`.
        randomness: whether a random draw inside `func` raises an "error", draws "different" numbers for
            each example, or draws the "same" for all.
        chunk_size: the largest number of examples computed at a time, to limit memory.

    Raises:
        ArgumentError: the sizes of the mapped dimensions differ, or nothing is mapped.

    Example:
        >>> import glassgrad as gg
        >>> from glassgrad.func import grad, vmap
        >>> loss = lambda w, x: (w * x).sum() ** 2
        >>> w, xs = gg.tensor([1.0, 2.0]), gg.tensor([[1.0, 0.0], [1.0, 1.0]])
        >>> vmap(grad(loss), in_dims=(None, 0))(w, xs)  # the gradient of each example
        tensor([[2., 0.],
                [6., 6.]])
    """
    inward = in_dims if in_axes is _UNSET else in_axes
    outward = out_dims if out_axes is _UNSET else out_axes
    if randomness not in RANDOMNESS:
        raise errors.VMAP_RANDOMNESS(given=randomness, where=provenance.here())

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree.flatten(args)
        axes = _input_axes(inward, structure, leaves)
        size = _batch_size(leaves, axes)
        if chunk_size is None or chunk_size >= size:
            return _run(func, leaves, axes, structure, kwargs, Level(size, randomness), outward)
        parts = []
        for start in range(0, size, chunk_size):
            chunk = [_cut(leaf, axis, start, start + chunk_size) for leaf, axis in zip(leaves, axes, strict=True)]
            level = Level(min(chunk_size, size - start), randomness)
            parts.append(_run(func, chunk, axes, structure, kwargs, level, outward))
        return _joined(parts, outward)

    return mapped


def _run(
    func: Function,
    leaves: list[Array],
    axes: list[Any],
    structure: tree.Tree,
    kwargs: dict[str, Any],
    level: Level,
    outward: Axes,
) -> Nested:
    entered = [leaf if axis is None else _enter(leaf, level, axis) for leaf, axis in zip(leaves, axes, strict=True)]
    before = MODE.levels
    MODE.levels = (*before, level)
    try:
        result = func(*tree.unflatten(structure, entered), **kwargs)
        outputs, out_tree = tree.flatten(result)
        where = tree.spread(outward, out_tree, "vmap: out_dims")
        return tree.unflatten(out_tree, [_leave(y, level, axis) for y, axis in zip(outputs, where, strict=True)])
    finally:
        MODE.levels = before
        level.ended = True


def _enter(x: Tensor, level: Level, axis: int) -> Tensor:
    """Return `x` as a single example; writes to it reach `x`."""
    entered: Tensor = enter_p(x, level=level, axis=axis)
    return views.bind(entered, x, enter_p, {"level": level, "axis": axis})


def _leave(y: Array, level: Level, axis: int | None) -> Array:
    if not isinstance(y, Tensor):
        raise errors.OUTPUT_NOT_TENSOR(name="vmap", given=type(y).__name__, where=provenance.here())
    if axis is None:
        if level in levels_of(y.array):
            raise errors.VMAP_OUT_NONE(where=provenance.here())
        return y
    return exit_p(y, level=level, axis=canonical_axis(axis, y.ndim + 1))


def _input_axes(inward: Axes, structure: tree.Tree, leaves: list[Array]) -> list[Any]:
    """Return the non-negative axis of each leaf, and the leaves with arrays as tensors."""
    if isinstance(inward, list):
        inward = tuple(inward)
    axes = tree.spread(inward, structure, "vmap: in_dims")
    for position, (leaf, axis) in enumerate(zip(leaves, axes, strict=True)):
        if axis is None:
            continue
        if isinstance(leaf, np.ndarray):
            leaves[position] = leaf = make(base_class(leaf), None, False)
        if not isinstance(leaf, Tensor):
            raise errors.VMAP_INPUT_KIND(given=type(leaf).__name__, where=provenance.here())
        if not isinstance(axis, int) or not -leaf.ndim <= axis < leaf.ndim:
            raise errors.VMAP_IN_DIM(given=axis, shape=leaf.shape, where=provenance.here())
        axes[position] = axis % leaf.ndim
    return axes


def _batch_size(leaves: list[Array], axes: list[Any]) -> int:
    sizes = [leaf.shape[axis] for leaf, axis in zip(leaves, axes, strict=True) if axis is not None]
    if not sizes:
        raise errors.VMAP_NOTHING_MAPPED(where=provenance.here())
    if len(set(sizes)) > 1:
        raise errors.VMAP_SIZES(sizes=", ".join(map(str, sizes)), where=provenance.here())
    return int(sizes[0])


def _cut(leaf: Array, axis: int | None, start: int, stop: int) -> Array:
    return leaf if axis is None else leaf[(slice(None),) * axis + (slice(start, stop),)]


def _joined(parts: list[Array], outward: Axes) -> Nested:
    """Join the results of chunks; unmapped results are the same in all of them."""
    _, out_tree = tree.flatten(parts[0])
    axes = tree.spread(outward, out_tree, "vmap: out_dims")
    columns = zip(*(tree.flatten(part)[0] for part in parts), strict=True)
    joined = [column[0] if axis is None else cat(column, axis) for column, axis in zip(columns, axes, strict=True)]
    return tree.unflatten(out_tree, joined)


def over_basis(
    linear: Callable[[Tensor], Sequence[Tensor]], like: Tensor, out_dim: int, chunk_size: int | None
) -> Sequence[Tensor]:
    """Apply a linear function to every unit vector of a tensor's shape, with the results along `out_dim`."""
    count = like.numel()
    units = make(np.eye(count, dtype=like.dtype).reshape((count, *like.shape)), None, False)
    if count == 1:
        return [y.unsqueeze(out_dim) for y in linear(units[0])]
    results: Sequence[Tensor] = vmap(lambda unit: tuple(linear(unit)), out_dims=out_dim, chunk_size=chunk_size)(units)
    return results


__all__ = ["over_basis", "rules", "vmap"]
