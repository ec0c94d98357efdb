"""Activations with PyTorch's signatures; `inplace` is accepted but saves no memory."""

from __future__ import annotations

from typing import Any

from glassgrad.engine import inplace
from glassgrad.engine.random import Generator, rand
from glassgrad.engine.tensor import Tensor
from glassgrad.ops import activation as ops
from glassgrad.ops import elementwise as ew
from glassgrad.ops import reduce
from glassgrad.ops.complex_input import guard_all, takes_complex
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.names import PUBLIC

# The same functions with PyTorch's argument names.
tanh, sigmoid, logsigmoid = PUBLIC["tanh"], PUBLIC["sigmoid"], PUBLIC["logsigmoid"]
gelu, softsign, softplus = PUBLIC["gelu"], PUBLIC["softsign"], PUBLIC["softplus"]
tanhshrink, prelu, glu = PUBLIC["tanhshrink"], PUBLIC["prelu"], PUBLIC["glu"]
softshrink, hardshrink = PUBLIC["softshrink"], PUBLIC["hardshrink"]

celu_, elu_, hardtanh_ = inplace.FUNCTIONS["celu_"], inplace.FUNCTIONS["elu_"], inplace.FUNCTIONS["hardtanh_"]
leaky_relu_, relu_, selu_ = inplace.FUNCTIONS["leaky_relu_"], inplace.FUNCTIONS["relu_"], inplace.FUNCTIONS["selu_"]
threshold_ = inplace.FUNCTIONS["threshold_"]


def relu(input: Array, inplace: bool = False) -> Array:
    """max(x, 0)."""
    return ops.relu(input)


def relu6(input: Array, inplace: bool = False) -> Array:
    """x limited to [0, 6]."""
    return ops.relu6(input)


def leaky_relu(input: Array, negative_slope: float = 0.01, inplace: bool = False) -> Array:
    """x where it is positive, else `negative_slope` * x."""
    return ops.leaky_relu(input, negative_slope)


def elu(input: Array, alpha: float = 1.0, inplace: bool = False) -> Array:
    """x where it is positive, else alpha * (exp(x) - 1)."""
    return ops.elu(input, alpha)


def celu(input: Array, alpha: float = 1.0, inplace: bool = False) -> Array:
    """x where it is positive, else alpha * (exp(x / alpha) - 1)."""
    return ops.celu(input, alpha)


def selu(input: Array, inplace: bool = False) -> Array:
    """Scaled elu, whose fixed point has mean 0 and variance 1."""
    return ops.selu(input)


@takes_complex
def silu(input: Array, inplace: bool = False) -> Array:
    """x * sigmoid(x)."""
    return ops.silu(input)


def mish(input: Array, inplace: bool = False) -> Array:
    """x * tanh(softplus(x))."""
    return ops.mish(input)


def hardtanh(input: Array, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Array:
    """x limited to [min_val, max_val]."""
    return ops.hardtanh(input, min_val, max_val)


def hardswish(input: Array, inplace: bool = False) -> Array:
    """x * relu6(x + 3) / 6."""
    return ops.hardswish(input)


def hardsigmoid(input: Array, inplace: bool = False) -> Array:
    """relu6(x + 3) / 6."""
    return ops.hardsigmoid(input)


def threshold(input: Array, threshold: float, value: float, inplace: bool = False) -> Array:
    """x where it is above `threshold`, else `value`."""
    return ops.threshold(input, threshold, value)


def rrelu(
    input: Array, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Array:
    """Leaky relu with slopes drawn from [lower, upper] in training, and their mean otherwise (Xu et al. 2015)."""
    if lower > upper:
        raise bad_option("rrelu", "lower", lower, f"at most upper={upper}")
    if not training:
        return ops.leaky_relu(input, (lower + upper) / 2)
    slopes = lower + (upper - lower) * rand(tuple(input.shape), dtype=input.dtype)
    return ew.where(input >= 0, input, input * slopes)


def rrelu_(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """`rrelu`, written into the tensor itself; return it."""
    return inplace.overwrite(input, rrelu, (lower, upper, training), {}, "rrelu_")


def _default_dim(input: Array, dim: int | None) -> int:
    # The default axis that PyTorch has kept from its first versions.
    return dim if dim is not None else 0 if len(input.shape) in {0, 1, 3} else 1


@takes_complex
def softmax(input: Array, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Array:
    """exp(x) / sum(exp(x)) along `dim`."""
    return reduce.softmax(input, _default_dim(input, dim), dtype=dtype)


@takes_complex
def log_softmax(input: Array, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Array:
    """x - logsumexp(x) along `dim`."""
    return reduce.log_softmax(input, _default_dim(input, dim), dtype=dtype)


@takes_complex
def softmin(input: Array, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Array:
    """softmax(-x) along `dim`."""
    return reduce.softmin(input, _default_dim(input, dim), dtype=dtype)


def gumbel_softmax(
    logits: Array,
    tau: float = 1.0,
    hard: bool = False,
    eps: float = 1e-10,
    dim: int = -1,
    *,
    generator: Generator | None = None,
) -> Array:
    """Softmax of logits plus Gumbel noise: a differentiable draw (Jang et al. 2017).

    With `hard` the result is one-hot, and the gradient that of the soft one.
    """
    noise = -ew.log(-ew.log(rand(tuple(logits.shape), dtype=logits.dtype, generator=generator).clip(1e-20, 1 - 1e-7)))
    soft = reduce.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    plain = soft.detach()
    picked = (plain == plain.max(dim, keepdim=True)[0]).to(plain.dtype)
    return picked - plain + soft


__all__ = ["celu", "elu", "gelu", "glu", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish", "hardtanh"]
__all__ += ["leaky_relu", "log_softmax", "logsigmoid", "mish", "prelu", "relu", "relu6", "rrelu", "selu", "sigmoid"]
__all__ += ["silu", "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold"]
__all__ += ["celu_", "elu_", "hardtanh_", "leaky_relu_", "relu_", "rrelu_", "selu_", "threshold_"]

guard_all(globals(), __all__)
