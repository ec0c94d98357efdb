"""Initialisers: they fill a tensor in place and return it.

Sources: Glorot and Bengio 2010 (xavier), He et al. 2015 (kaiming), Saxe et al. 2013 (orthogonal).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from glassgrad.base import documents
from glassgrad.base.deprecation import deprecate
from glassgrad.engine.random import Generator, _normal, _rng, _uniform
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.writes import MUTATIONS
from glassgrad.errors.missing import getter, lister
from glassgrad.ops.core import Array, bad_option

_GAINS = dict.fromkeys(("linear", "conv1d", "conv2d", "sigmoid"), 1.0)
_GAINS |= {"tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4}
_DRAWN = frozenset({np.dtype(np.float32), np.dtype(np.float64)})
_BLOCK = 1 << 15  # elements that stay in the nearest caches between the passes


def _fill(tensor: Tensor, values: Array) -> Tensor:
    MUTATIONS.record(tensor.array)
    tensor.assign(np.asarray(values) if isinstance(values, np.generic) else values)  # a draw without dimensions
    return tensor


def _draws_in_place(tensor: Tensor, rng: np.random.Generator, *numbers: float) -> bool:
    """Return whether numbers can be drawn into a tensor's own memory with the same rounding as in new arrays."""
    array = tensor.array
    return (
        type(array) is np.ndarray
        and type(rng) is np.random.Generator
        and array.dtype in _DRAWN
        and array.flags.carray
        and all(type(number) in {float, int} for number in numbers)
    )


def _drawn(tensor: Tensor, draw: Callable[..., np.ndarray], shift: float, scale: float) -> Tensor:
    """Fill with `shift` + `scale` times the drawn numbers, block by block.

    New arrays would take longer: the system would have to provide four times the memory of the weights.
    """
    MUTATIONS.record(tensor.array)
    flat = tensor.array.reshape(-1)
    for start in range(0, flat.size, _BLOCK):
        block = flat[start : start + _BLOCK]
        draw(out=block, dtype=block.dtype.type)
        block *= scale
        block += shift
    return tensor


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor that keeps the variance of a signal through the nonlinearity.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.init.calculate_gain("tanh")
        1.6666666666666667
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise bad_option("calculate_gain", "nonlinearity", nonlinearity, "leaky_relu, " + ", ".join(_GAINS))
    return _GAINS[nonlinearity]


def fans(tensor: Tensor) -> tuple[int, int]:
    """Return (inputs, outputs) of one unit of a weight of shape (out, in, ...).

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.init.fans(gg.ones(8, 4, 3, 3))
        (36, 72)
    """
    if tensor.ndim < 2:
        raise bad_option("fan in and fan out", "shape", tensor.shape, "at least 2 dimensions")
    receptive = math.prod(tensor.shape[2:])
    return tensor.shape[1] * receptive, tensor.shape[0] * receptive


_calculate_fan_in_and_fan_out = fans  # PyTorch's name, which programs call


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with 0.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.init.zeros_(gg.empty(2))
        tensor([0., 0.])
    """
    return _fill(tensor, 0)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with 1.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.init.ones_(gg.empty(2))
        tensor([1., 1.])
    """
    return _fill(tensor, 1)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with `val`.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.init.constant_(gg.empty(2), 0.5)
        tensor([0.5, 0.5])
    """
    return _fill(tensor, val)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.init.normal_(gg.empty(2, 3), std=0.02).shape
        (2, 3)
    """
    rng = _rng(generator)
    if _draws_in_place(tensor, rng, mean, std):
        return _drawn(tensor, rng.standard_normal, mean, std)
    return _fill(tensor, mean + std * _normal(rng, tensor.shape, tensor.dtype))


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with uniform numbers in [a, b).

    Example:
        >>> import glassgrad as gg
        >>> bool((gg.nn.init.uniform_(gg.empty(100), -1, 1).abs() <= 1).all())
        True
    """
    rng = _rng(generator)
    if _draws_in_place(tensor, rng, a, b):
        return _drawn(tensor, rng.random, a, b - a)
    return _fill(tensor, a + (b - a) * _uniform(rng, tensor.shape, tensor.dtype))


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with normal numbers, redrawn until they lie in [a, b].

    Example:
        >>> import glassgrad as gg
        >>> bool((gg.nn.init.trunc_normal_(gg.empty(100)).abs() <= 2).all())
        True
    """
    rng = _rng(generator)
    values = mean + std * rng.standard_normal(tensor.shape)
    while (outside := (values < a) | (values > b)).any():
        values[outside] = mean + std * rng.standard_normal(int(outside.sum()))
    return _fill(tensor, values)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform in ±gain sqrt(6 / (fan_in + fan_out)).

    Example:
        >>> import glassgrad as gg
        >>> bool((gg.nn.init.xavier_uniform_(gg.empty(3, 3)).abs() <= 1).all())
        True
    """
    bound = gain * math.sqrt(6 / (sum(fans(tensor)) or 1))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal with standard deviation gain sqrt(2 / (fan_in + fan_out)).

    Example:
        >>> import glassgrad as gg
        >>> round(gg.nn.init.xavier_normal_(gg.empty(100, 100)).std().item(), 1)
        0.1
    """
    return normal_(tensor, 0, gain * math.sqrt(2 / (sum(fans(tensor)) or 1)), generator)


def _kaiming(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise bad_option("kaiming", "mode", mode, "'fan_in' or 'fan_out'")
    fan = fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan or 1)  # an empty tensor has nothing to draw


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Uniform in ±gain sqrt(3 / fan).

    Example:
        >>> import glassgrad as gg
        >>> bool((gg.nn.init.kaiming_uniform_(gg.empty(8, 24)).abs() <= 0.5).all())
        True
    """
    bound = math.sqrt(3) * _kaiming(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Normal with standard deviation gain / sqrt(fan).

    Example:
        >>> import glassgrad as gg
        >>> round(gg.nn.init.kaiming_normal_(gg.empty(200, 50), nonlinearity="relu").std().item(), 1)
        0.2
    """
    return normal_(tensor, 0, _kaiming(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with orthonormal rows (or columns), times `gain`.

    Example:
        >>> import glassgrad as gg
        >>> w = gg.nn.init.orthogonal_(gg.empty(3, 3))
        >>> bool(gg.allclose(w @ w.T, gg.eye(3), atol=1e-6))
        True
    """
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    q, r = np.linalg.qr(_rng(generator).standard_normal((max(rows, columns), min(rows, columns))))
    q *= np.sign(np.diag(r))
    return _fill(tensor, gain * (q if rows >= columns else q.T).reshape(tensor.shape))


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.init.eye_(gg.empty(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """
    rows, columns = tensor.shape
    return _fill(tensor, np.eye(rows, columns))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill a convolution weight so that it passes its input channels through, in each of `groups` of outputs.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.init.dirac_(gg.empty(1, 1, 3))
        tensor([[[0., 1., 0.]]])
    """
    values = np.zeros(tensor.shape)
    middle = tuple(n // 2 for n in tensor.shape[2:])
    outputs = tensor.shape[0] // groups
    for group in range(groups):
        for channel in range(min(outputs, tensor.shape[1])):
            values[(group * outputs + channel, channel, *middle)] = 1
    return _fill(tensor, values)


if not TYPE_CHECKING:
    _absent = getter(__name__)
    _OLD_SPELLING = deprecate("nn.init.{name}", instead="nn.init.{name}_", since="1.0", removed_in="2.0")

    def __getattr__(name: str) -> Any:
        """Find PyTorch's older spellings, such as `kaiming_normal` for `kaiming_normal_`."""
        current = globals().get(f"{name}_")
        if current is None or name.startswith("_"):
            return _absent(name)
        _OLD_SPELLING.warn(name=name)
        return current


__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "fans",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]
__dir__ = lister(__name__)
documents.complete_all(__name__, globals())
