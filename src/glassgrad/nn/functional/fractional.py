"""Pooling whose windows lie at random distances (Graham 2014), and poolings that always return positions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from glassgrad.engine.random import rand
from glassgrad.nn.arguments import Ints, Sizes
from glassgrad.ops import pooling
from glassgrad.ops.axes import concrete
from glassgrad.ops.complex_input import guard_all
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.index import take_along_axis
from glassgrad.ops.reduce import argmax
from glassgrad.ops.shape import reshape_p
from glassgrad.ops.window_arguments import is_alone, over_axes, sizes_of

Shape = tuple[int, ...]


def _fractional(dims: int) -> Callable[..., Any]:
    op = f"fractional_max_pool{dims}d"

    def fractional_max_pool(
        input: Array,
        kernel_size: Ints,
        output_size: Sizes = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Array | None = None,
    ) -> Array | tuple[Array, Array]:
        """Largest element of windows of (N, C, {sizes}) at random distances, with `return_indices` their positions.

        The result has the sizes `output_size`, or `output_ratio` times those of the input; one of the two is given.

        Raises:
            ArgumentError: the output is larger than the windows allow, or not exactly one of its sizes is given.

        Example:
            >>> import glassgrad as gg
            >>> gg.nn.functional.fractional_max_pool{dims}d(gg.ones(1, 1, {threes}), 2, output_size=2).shape
            (1, 1, {twos})
        """
        if (output_size is None) == (output_ratio is None):
            raise bad_option(op, "output_size", output_size, "either it or output_ratio")
        lead = ((1,) if is_alone(input, dims, op) else ()) + tuple(input.shape[:-dims])
        before = tuple(input.shape[-dims:])
        if output_size is None:
            ratios = output_ratio if isinstance(output_ratio, tuple | list) else (output_ratio,) * dims
            output_size = tuple(int(n * ratio) for n, ratio in zip(before, ratios, strict=True))
        kernel, after = sizes_of(kernel_size, before, op), sizes_of(output_size, before, op)
        if any(m < 1 or m + k - 1 > n for m, k, n in zip(after, kernel, before, strict=True)):
            raise bad_option(op, "output_size", after, f"windows of {kernel} that fit into {before}")
        drawn = rand(*lead, dims, dtype=np.float64) if _random_samples is None else _random_samples
        places = _places(np.asarray(concrete(drawn, op)), before, after, kernel)
        flat = reshape_p(input, shape=(*lead, math.prod(before)))
        every = places.reshape(*lead, math.prod(places.shape[2:]))
        windows = reshape_p(take_along_axis(flat, every, -1), shape=places.shape)
        found = take_along_axis(places, argmax(windows, -1, keepdim=True), -1)[..., 0]
        shape = (*input.shape[:-dims], *after)
        y = reshape_p(take_along_axis(flat, found, -1), shape=shape)
        return (y, reshape_p(found, shape=shape)) if return_indices else y

    return fractional_max_pool


def _places(samples: Array, before: Shape, after: Shape, kernel: Shape) -> Array:
    """The positions in the flattened input of the elements of each window: (N, C, windows, elements)."""
    dims = len(before)
    places = np.zeros((*samples.shape[:2], *(1,) * (2 * dims)), np.int64)
    for axis in range(dims):
        # PyTorch draws for the last axis of an image first, for the axes of a volume in their order.
        sample = samples[..., axis if dims == 3 else dims - 1 - axis]
        starts = _starts(sample, before[axis], after[axis], kernel[axis])
        beside = [1] * (2 * dims)
        beside[axis] = after[axis]
        starts = starts.reshape(*samples.shape[:2], *beside)
        beside = [1] * dims
        beside[axis] = kernel[axis]
        places = places * before[axis] + starts + np.arange(kernel[axis]).reshape(beside)
    return places.reshape(*samples.shape[:2], math.prod(after), math.prod(kernel))


def _starts(samples: Array, size: int, count: int, kernel: int) -> Array:
    """Where the windows of an axis begin, for each of the samples in [0, 1): the last one ends at the border."""
    starts = np.full((*samples.shape, count), size - kernel, np.int64)
    if count > 1:
        step = samples.dtype.type((size - kernel) / (count - 1))
        at = (np.arange(count - 1, dtype=samples.dtype) + samples[..., None]) * step
        starts[..., :-1] = at.astype(np.int64) - (samples[..., None] * step).astype(np.int64)
    return starts


def _with_indices(pool: Callable[..., Any]) -> Callable[..., Any]:
    def both(input: Array, *args: object, **kwargs: object) -> tuple[Array, Array]:
        found: tuple[Array, Array] = pool(input, *args, **{**kwargs, "return_indices": True})
        return found

    both.__name__ = both.__qualname__ = f"{pool.__name__}_with_indices"
    vars(both)["__wrapped__"] = pool  # whose signature it has
    both.__doc__ = f"`{pool.__name__}` with its positions."
    return both


fractional_max_pool2d, fractional_max_pool3d = over_axes("fractional_max_pool{}d", _fractional, (2, 3))
fractional_max_pool2d_with_indices = _with_indices(fractional_max_pool2d)
fractional_max_pool3d_with_indices = _with_indices(fractional_max_pool3d)
max_pool1d_with_indices = _with_indices(pooling.max_pool1d)
max_pool2d_with_indices = _with_indices(pooling.max_pool2d)
max_pool3d_with_indices = _with_indices(pooling.max_pool3d)
adaptive_max_pool1d_with_indices = _with_indices(pooling.adaptive_max_pool1d)
adaptive_max_pool2d_with_indices = _with_indices(pooling.adaptive_max_pool2d)
adaptive_max_pool3d_with_indices = _with_indices(pooling.adaptive_max_pool3d)

__all__ = ["adaptive_max_pool1d_with_indices", "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d_with_indices"]
__all__ += ["fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d"]
__all__ += ["fractional_max_pool3d_with_indices", "max_pool1d_with_indices", "max_pool2d_with_indices"]
__all__ += ["max_pool3d_with_indices"]

guard_all(globals(), __all__)
