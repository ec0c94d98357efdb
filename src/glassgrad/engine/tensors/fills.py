"""Methods that fill a tensor with random numbers in place: `x.normal_()` and the like."""

from __future__ import annotations

import math

import numpy as np

from glassgrad.engine import inplace
from glassgrad.engine import random as rng
from glassgrad.engine.inplace import fill
from glassgrad.engine.random import Generator
from glassgrad.engine.tensor import Tensor
from glassgrad.ops import names
from glassgrad.ops.core import bad_option


def normal_(x: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Write normal numbers; return x."""
    return fill(x, rng.randn(x.shape, generator=generator, dtype=x.dtype) * std + mean)


def uniform_(x: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Write numbers drawn evenly from [from_, to); return x."""
    return fill(x, rng.rand(x.shape, generator=generator, dtype=x.dtype) * (to - from_) + from_)


def bernoulli_(x: Tensor, p: float = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Write 1 with probability p, else 0; return x."""
    return fill(x, (rng.rand(x.shape, generator=generator, dtype=np.float64) < p).astype(x.dtype))


def exponential_(x: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Write exponentially distributed numbers with mean 1 / lambd; return x."""
    return fill(x, names.PUBLIC["log1p"](-rng.rand(x.shape, generator=generator, dtype=x.dtype)) * (-1 / lambd))


def random_(x: Tensor, from_: int = 0, to: int | None = None, *, generator: Generator | None = None) -> Tensor:
    """Write integers from `from_` up to and without `to`; with one number, from 0 to it. Return x."""
    if to is None:
        most = 1 << (24 if x.dtype == np.float32 else 53) if x.dtype.kind in "fV" else np.iinfo(x.dtype).max
        from_, to = (0, from_) if from_ else (0, most)
    return fill(x, rng.randint(from_, to, x.shape, generator=generator).astype(x.dtype))


def log_normal_(x: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Tensor:
    """Write numbers whose logarithms are normal with this mean and deviation; return x."""
    return fill(x, names.PUBLIC["exp"](rng.randn(x.shape, generator=generator, dtype=x.dtype) * std + mean))


def cauchy_(x: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Write numbers with Cauchy's distribution of this median and half width; return x."""
    angle = (rng.rand(x.shape, generator=generator, dtype=x.dtype) - 0.5) * math.pi
    return fill(x, names.PUBLIC["tan"](angle) * sigma + median)


def geometric_(x: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Write how many trials of probability p it takes until one succeeds, 1 or more; return x.

    Raises:
        ArgumentError: p is not between 0 and 1.
    """
    if not 0 < p < 1:
        raise bad_option("geometric_", "p", p, "a probability between 0 and 1")
    drawn = names.PUBLIC["log1p"](-rng.rand(x.shape, generator=generator, dtype=np.float64)) / math.log1p(-p)
    return fill(x, names.PUBLIC["clamp"](names.PUBLIC["ceil"](drawn), 1).astype(x.dtype))


for _function in (normal_, uniform_, bernoulli_, exponential_, random_, log_normal_, cauchy_, geometric_):
    inplace.FUNCTIONS[_function.__name__] = _function
    setattr(Tensor, _function.__name__, _function)
