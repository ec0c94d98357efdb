"""Dropout in its forms: single elements, whole channels, and the form that keeps SELU's mean and variance."""

from __future__ import annotations

import math

from glassgrad.engine.random import Generator, bernoulli_mask
from glassgrad.ops import elementwise as ew
from glassgrad.ops.complex_input import all_take_complex, refuse_complex
from glassgrad.ops.core import Array, bad_option

# The value that SELU tends to for very negative inputs: -scale * alpha (Klambauer et al. 2017).
_SELU_FLOOR = -1.7580993408473766


def _passes(input: Array, p: float, training: bool, op: str) -> bool:
    """Return whether nothing is dropped, in which case any dtype is allowed."""
    if not training or p == 0:
        return True
    refuse_complex(op, (input,))
    if not 0 <= p <= 1:
        raise bad_option(op, "p", p, "a probability between 0 and 1")
    return False


def _drop(input: Array, p: float, shape: tuple[int, ...], generator: Generator | None) -> Array:
    if p == 1:
        return input * 0
    kept = bernoulli_mask(1 - p, shape, generator)
    return ew.where(kept, input * (1 / (1 - p)), 0)


def dropout(
    input: Array, p: float = 0.5, training: bool = True, inplace: bool = False, *, generator: Generator | None = None
) -> Array:
    """Zero each element with probability `p` and scale the rest by 1/(1-p), in training only (Hinton et al. 2012).

    Raises:
        ArgumentError: `p` outside [0, 1].
    """
    if _passes(input, p, training, "dropout"):
        return input
    return _drop(input, p, tuple(input.shape), generator)


def _channels(input: Array, dims: int) -> tuple[int, ...]:
    """Return the shape of a mask with one value for each channel."""
    shape = tuple(input.shape)
    leading = len(shape) - dims
    return (*shape[:leading], *(1,) * dims)


def _dropout_nd(input: Array, p: float, training: bool, dims: int) -> Array:
    if _passes(input, p, training, f"dropout{dims}d"):
        return input
    return _drop(input, p, _channels(input, dims), None)


def dropout1d(input: Array, p: float = 0.5, training: bool = True, inplace: bool = False) -> Array:
    """Zero whole channels of (N, C, L) or (C, L) (Tompson et al. 2015)."""
    return _dropout_nd(input, p, training, 1)


def dropout2d(input: Array, p: float = 0.5, training: bool = True, inplace: bool = False) -> Array:
    """Zero whole channels of (N, C, H, W) or (C, H, W) (Tompson et al. 2015)."""
    return _dropout_nd(input, p, training, 2)


def dropout3d(input: Array, p: float = 0.5, training: bool = True, inplace: bool = False) -> Array:
    """Zero whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    return _dropout_nd(input, p, training, 3)


def _alpha(input: Array, p: float, shape: tuple[int, ...]) -> Array:
    if p == 1:
        return input * 0
    # y = a x + b has mean 0 and variance 1 again after a share p was set to the floor.
    scale = 1 / math.sqrt((1 - p) * (1 + p * _SELU_FLOOR**2))
    kept = bernoulli_mask(1 - p, shape)
    return ew.where(kept, input, _SELU_FLOOR) * scale - scale * p * _SELU_FLOOR


def alpha_dropout(input: Array, p: float = 0.5, training: bool = False, inplace: bool = False) -> Array:
    """Dropout for SELU: sets to its floor and rescales, so that mean and variance stay (Klambauer et al. 2017)."""
    if _passes(input, p, training, "alpha_dropout"):
        return input
    return _alpha(input, p, tuple(input.shape))


def feature_alpha_dropout(input: Array, p: float = 0.5, training: bool = False, inplace: bool = False) -> Array:
    """`alpha_dropout` of whole channels, (N, C, ...)."""
    if _passes(input, p, training, "feature_alpha_dropout"):
        return input
    shape: Array = tuple(input.shape)
    return _alpha(input, p, (*shape[:2], *(1,) * (len(shape) - 2)))


__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]

all_take_complex(globals())
