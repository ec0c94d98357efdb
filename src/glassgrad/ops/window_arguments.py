"""Shared by functions over windows: PyTorch's arguments, and one definition for one, two and three axes.

A signal (N, C, L) is an image of height 1; an input without a batch dimension gets one temporarily.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.shape import reshape_p

Ints = int | Sequence[int]
Function = TypeVar("Function", bound=Callable[..., Any])


# --- one definition for several numbers of axes ---------------------------------------------------

_AXES = ("D", "H", "W")
_PLACES = {1: "l", 2: "h W + w", 3: "(d H + h) W + w"}


def over_axes(name: str, make: Callable[[int], Function], counts: Sequence[int] = (1, 2, 3)) -> tuple[Function, ...]:
    """Return the function that `make` defines for each number of axes, called `name` with the number instead of {}.

    The docstring names the axes: {sizes} stands for "H, W", {first} for "H", {kernel} for "kh, kw", {after} for
    "H', W'", {place} for "h W + w", {twos} for "2, 2" and so on, {dims} for the number of axes.
    """
    return tuple(_named(make(dims), name.format(dims), dims) for dims in counts)


def _named(function: Function, name: str, dims: int) -> Function:
    axes = ("L",) if dims == 1 else _AXES[-dims:]
    kernel = ["k"] if dims == 1 else [f"k{axis.lower()}" for axis in axes]
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (function.__doc__ or "").format(
        dims=dims,
        sizes=", ".join(axes),
        after=", ".join(f"{axis}'" for axis in axes),
        kernel=", ".join(kernel),
        first=axes[0],
        window=kernel[0],
        place=_PLACES[dims],
        **{word: ", ".join([number] * dims) for word, number in (("ones", "1"), ("twos", "2"), ("threes", "3"))},
    )
    return function


# --- inputs ---------------------------------------------------------------------------------------


def is_alone(x: Array, dims: int, op: str) -> bool:
    """Return whether `x` has no batch dimension; raise unless it has `dims` + 1 or + 2 dimensions."""
    ndim = len(x.shape)
    if ndim not in (dims + 1, dims + 2):
        sizes = "length" if dims == 1 else ", ".join(("depth", "height", "width")[-dims:])
        raise errors.IMAGE_DIMS(op=op, given=tuple(x.shape), sizes=sizes, where=provenance.here())
    return ndim == dims + 1


def as_images(x: Array, dims: int, op: str) -> tuple[Array, Callable[[Array], Array]]:
    """Return `x` as (N, C, H, W), or with more axes before H, and a function that gives results its dimensions."""
    alone = is_alone(x, dims, op)
    shape = tuple(x.shape)
    full = ((1,) if alone else ()) + shape
    full = full if dims > 1 else (*full[:2], 1, full[2])
    image = x if full == shape else reshape_p(x, shape=full)

    def back(y: Array) -> Array:
        kept = tuple(y.shape[1:] if alone else y.shape)
        kept = kept if dims > 1 else (*kept[:-2], kept[-1])
        return y if kept == tuple(y.shape) else reshape_p(y, shape=kept)

    return image, back


def expect_floats(x: Array, op: str) -> None:
    """Refuse integers, whose means would be rounded."""
    if x.dtype.kind in "biu":
        raise errors.IMAGE_DTYPE(op=op, given=x.dtype, expected="floating-point", where=provenance.here())


# --- numbers for each axis ------------------------------------------------------------------------


def several(value: Any, count: int, name: str, op: str) -> tuple[int, ...]:
    """An int, or `count` of them, as a tuple."""
    listed = (int(value),) if isinstance(value, int | np.integer) else tuple(int(v) for v in value)
    if len(listed) == 1:
        listed *= count
    if len(listed) != count:
        raise bad_option(op, name, value, f"an int or {count} of them")
    least = 1 if name in _POSITIVE else 0
    if min(listed, default=least) < least:
        raise bad_option(op, name, value, f"at least {least}")
    return listed


_POSITIVE = {"kernel_size", "stride", "dilation"}


def sizes_of(given: Any, shape: Sequence[int], op: str) -> tuple[int, ...]:
    """The requested sizes; None keeps the input's."""
    wanted = (given,) * len(shape) if given is None or isinstance(given, int | np.integer) else tuple(given)
    if len(wanted) == 1:
        wanted *= len(shape)
    if len(wanted) != len(shape):
        raise bad_option(op, "output_size", given, f"a number or {len(shape)} of them")
    sizes = [n if one is None else int(one) for one, n in zip(wanted, shape, strict=True)]
    if min(sizes) < 0:
        raise bad_option(op, "output_size", given, "at least 0")
    return tuple(sizes)


# --- windows --------------------------------------------------------------------------------------

Window = dict[str, tuple[Any, ...]]
"""Kernel, stride, padding and dilation along each axis, in the form that the primitives take."""

ALONE = {"kernel": 1, "stride": 1, "padding": (0, 0), "dilation": 1}
"""The window of an axis that stays unchanged."""


def on_images(window: Window) -> Window:
    """Turn the windows of a signal into those of an image of height 1."""
    return {key: (ALONE[key], *along) for key, along in window.items()}


def first_and_rest(window: Window) -> tuple[Window, Window]:
    """Return the windows along the first axis, and those along the others."""
    return {key: along[:1] for key, along in window.items()}, {key: along[1:] for key, along in window.items()}


def conv_window(dims: int, op: str, kernel: Sequence[int], stride: Ints, padding: Any, dilation: Ints) -> Window:
    """Return the windows of a convolution on images, without the kernel, which is in the weight."""
    steps, spread = several(stride, dims, "stride", op), several(dilation, dims, "dilation", op)
    if isinstance(padding, str):
        pads = _named_padding(padding, kernel, steps, spread, op)
    else:
        pads = [(p, p) for p in several(padding, dims, "padding", op)]
    window: Window = {"stride": steps, "padding": tuple(pads), "dilation": spread}
    return window if dims > 1 else on_images(window)


def _named_padding(
    padding: str, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int], op: str
) -> list[tuple[int, int]]:
    """Return the padding before and after each axis; "same" puts the odd element after it, as in PyTorch."""
    if padding not in ("same", "valid"):
        raise bad_option(op, "padding", padding, "a number, 'same' or 'valid'")
    if padding == "valid":
        return [(0, 0)] * len(kernel)
    if any(step != 1 for step in stride):
        raise bad_option(op, "padding", padding, "a stride of 1 with 'same'")
    totals = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    return [(total // 2, total - total // 2) for total in totals]


def pool_window(dims: int, op: str, kernel: Ints, stride: Any, padding: Ints, dilation: Ints) -> Window:
    """Return the windows of a pooling on images; the stride defaults to the kernel's size."""
    size = several(kernel, dims, "kernel_size", op)
    steps = size if stride is None or stride in ([], ()) else several(stride, dims, "stride", op)
    border = several(padding, dims, "padding", op)
    spread = several(dilation, dims, "dilation", op)
    if any(p > (d * (k - 1) + 1) // 2 for p, k, d in zip(border, size, spread, strict=True)):
        raise bad_option(op, "padding", padding, "at most half of kernel_size")
    pads = [(p, p) for p in border]
    window: Window = {"kernel": size, "stride": steps, "padding": tuple(pads), "dilation": spread}
    return window if dims > 1 else on_images(window)
