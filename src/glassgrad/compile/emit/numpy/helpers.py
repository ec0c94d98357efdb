"""Functions that NumPy lacks, for generated programs: their source is copied in front of a program that needs them.

So nothing here may use anything but `np`, `math` and the functions above it, and annotations are left out.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
# ruff: noqa: ANN001, ANN201 - the text is shown to readers of generated programs

import math

import numpy as np


def sigmoid(x):
    """1 / (1 + exp(-x)), without overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def softplus(x):
    """log(1 + exp(x)), without overflow."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def log_sigmoid(x):
    """log(sigmoid(x))."""
    return -softplus(-x)


def silu(x):
    """x * sigmoid(x)."""
    return x * sigmoid(x)


def erf(x):
    """The error function, element by element."""
    return np.array([math.erf(v) for v in np.ravel(x).tolist()], dtype=x.dtype).reshape(x.shape)


def erfc(x):
    """1 - erf(x), accurate where erf(x) is close to 1."""
    return np.array([math.erfc(v) for v in np.ravel(x).tolist()], dtype=x.dtype).reshape(x.shape)


def gelu(x):
    """x times the normal distribution function."""
    return x * 0.5 * erfc(-x * math.sqrt(0.5))


def gelu_tanh(x):
    """The approximation of gelu by a tanh."""
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gammaln(x):
    """log(|Gamma(x)|), element by element."""
    return np.array([math.lgamma(v) for v in np.ravel(x).tolist()], dtype=x.dtype).reshape(x.shape)


def softmax(x, axis):
    """exp(x) / sum(exp(x))."""
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def log_softmax(x, axis):
    """x - log(sum(exp(x)))."""
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


def logsumexp(x, axis, keepdims):
    """log(sum(exp(x))), -inf where every x is."""
    top = x.max(axis=axis, keepdims=True)
    shift = np.where(np.isfinite(top), top, 0)
    with np.errstate(divide="ignore"):
        y = np.log(np.exp(x - shift).sum(axis=axis, keepdims=True)) + shift
    return y if keepdims else y.reshape([n for d, n in enumerate(x.shape) if d not in axis])


def put_add(g, index, shape):
    """Zeros with g added at the index; equal indices add up."""
    out = np.zeros(shape, g.dtype)
    np.add.at(out, index, g)
    return out


def at_set(x, index, value):
    """x with another value at the index."""
    out = x.copy()
    out[index] = value
    return out


def along(index, axis):
    """The index that picks `index` along one axis and everything along the others."""
    places = list(np.ogrid[tuple(slice(n) for n in index.shape)])
    places[axis] = index
    return tuple(places)


def take_along_axis(x, index, axis):
    """x[..., index, ...] along one axis; the others may be cut short."""
    return x[along(index, axis)]


def put_along_add(g, index, shape, axis):
    """Zeros with g added at the index along one axis."""
    out = np.zeros(shape, g.dtype)
    np.add.at(out, along(index, axis), g)
    return out
