"""Transforms of random variables: invertible functions with their log-determinants.

Source: Papamakarios et al., Normalizing Flows for Probabilistic Modeling and Inference, 2021, equation 2:
``log p(y) = log p(x) - log |det dy/dx|``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.distributions import constraints
from glassgrad.distributions.distribution import summed
from glassgrad.ops.arrange import pad
from glassgrad.ops.core import Array
from glassgrad.ops.names import PUBLIC
from glassgrad.ops.narrow import finfo


class Transform:
    """Base of transforms: a subclass defines `_call`, `_inverse` and `log_abs_det_jacobian`.

    Attributes:
        bijective: whether it is invertible.
        event_dim: the number of last dimensions that are transformed together.

    Example:
        >>> import glassgrad as gg
        >>> transform = gg.distributions.transforms.ExpTransform()
        >>> isinstance(transform, gg.distributions.Transform)
        True
        >>> round(transform.inv(transform(gg.tensor([0.5]))).item(), 4)
        0.5
    """

    bijective: bool = True
    event_dim: int = 0
    codomain: constraints.Constraint = constraints.real
    domain: constraints.Constraint = constraints.real

    def __init__(self, cache_size: int = 0) -> None:
        self._cache_size = cache_size
        self._last: tuple[Array, Array] | None = None

    def __call__(self, x: Array) -> Array:
        if self._last is not None and self._last[0] is x:
            return self._last[1]
        y = self._call(x)
        if self._cache_size:
            self._last = x, y
        return y

    def _undo(self, y: Array) -> Array:
        if self._last is not None and self._last[1] is y:
            return self._last[0]
        x = self._inverse(y)
        if self._cache_size:
            self._last = x, y
        return x

    def _call(self, x: Array) -> Array:
        raise NotImplementedError  # each transform is its own formula

    def _inverse(self, y: Array) -> Array:
        raise errors.TRANSFORM_NO_INVERSE(owner=type(self).__name__, where=provenance.here())

    def log_abs_det_jacobian(self, x: Array, y: Array) -> Array:
        """Return ``log |det dy/dx|`` at x, given y = f(x)."""
        raise errors.TRANSFORM_NO_INVERSE(owner=type(self).__name__, where=provenance.here())

    @property
    def inv(self) -> Transform:
        return _InverseTransform(self)

    @property
    def sign(self) -> Array:
        return 1

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the transform with or without a cache of its last argument."""
        import copy

        twin = copy.copy(self)
        twin._cache_size, twin._last = cache_size, None
        return twin

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the result for an argument of a shape."""
        return tuple(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the argument for a result of a shape."""
        return tuple(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    def __init__(self, base: Transform) -> None:
        super().__init__()
        self.base = base
        self.event_dim = base.event_dim
        self.codomain, self.domain = base.domain, base.codomain

    def __call__(self, x: Array) -> Array:
        return self.base._undo(x)

    def _undo(self, y: Array) -> Array:
        return self.base(y)

    def log_abs_det_jacobian(self, x: Array, y: Array) -> Array:
        return -self.base.log_abs_det_jacobian(y, x)

    @property
    def inv(self) -> Transform:
        return self.base

    @property
    def sign(self) -> Array:
        return self.base.sign

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.base.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.base.forward_shape(shape)


class ComposeTransform(Transform):
    """The composition of several transforms, applied in order.

    Example:
        >>> import glassgrad as gg
        >>> from glassgrad.distributions import AffineTransform, ComposeTransform, ExpTransform
        >>> ComposeTransform([ExpTransform(), AffineTransform(1.0, 2.0)])(gg.tensor(0.0))
        tensor(3.)
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = list(parts)
        self.event_dim = max((part.event_dim for part in self.parts), default=0)
        self.bijective = all(part.bijective for part in self.parts)
        if self.parts:
            self.domain, self.codomain = self.parts[0].domain, self.parts[-1].codomain

    def _call(self, x: Array) -> Array:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Array) -> Array:
        for part in reversed(self.parts):
            y = part._undo(y)
        return y

    def log_abs_det_jacobian(self, x: Array, y: Array) -> Array:
        total: Array = 0.0
        for part in self.parts:
            after = part(x)
            total = total + summed(part.log_abs_det_jacobian(x, after), self.event_dim - part.event_dim)
            x = after
        return total

    @property
    def sign(self) -> Array:
        return math.prod(part.sign for part in self.parts)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return tuple(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return tuple(shape)


class AffineTransform(Transform):
    """``y = loc + scale * x``.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.AffineTransform(1.0, 2.0).inv(gg.tensor(5.0))
        tensor(2.)
    """

    def __init__(self, loc: Array, scale: Array, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self.event_dim = loc, scale, event_dim

    def _call(self, x: Array) -> Array:
        return self.loc + self.scale * x

    def _inverse(self, y: Array) -> Array:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Array, y: Array) -> Array:
        known = hasattr(self.scale, "dtype")
        grown = self.scale.abs().log() if known else math.log(abs(self.scale))
        return summed(x * 0 + grown, self.event_dim)

    @property
    def sign(self) -> Array:
        return self.scale.sign() if hasattr(self.scale, "dtype") else math.copysign(1, self.scale)


class ExpTransform(Transform):
    """``y = exp(x)``.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.ExpTransform()(gg.tensor(0.0))
        tensor(1.)
    """

    codomain = constraints.positive

    def _call(self, x: Array) -> Array:
        return x.exp()

    def _inverse(self, y: Array) -> Array:
        return y.log()

    def log_abs_det_jacobian(self, x: Array, y: Array) -> Array:
        return x


class PowerTransform(Transform):
    """``y = x**exponent`` of positive numbers.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.PowerTransform(2.0)(gg.tensor(3.0))
        tensor(9.)
    """

    codomain = domain = constraints.positive

    def __init__(self, exponent: Array, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = exponent

    def _call(self, x: Array) -> Array:
        return x**self.exponent

    def _inverse(self, y: Array) -> Array:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Array, y: Array) -> Array:
        return (self.exponent * y / x).abs().log()


class SigmoidTransform(Transform):
    """``y = 1 / (1 + exp(-x))``.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.SigmoidTransform()(gg.tensor(0.0))
        tensor(0.5)
    """

    codomain = constraints.unit_interval

    def _call(self, x: Array) -> Array:
        info = finfo(x.dtype)
        return x.sigmoid().clamp(float(info.tiny), 1 - float(info.eps))

    def _inverse(self, y: Array) -> Array:
        info = finfo(y.dtype)
        y = y.clamp(float(info.tiny), 1 - float(info.eps))
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Array, y: Array) -> Array:
        return -PUBLIC["softplus"](-x) - PUBLIC["softplus"](x)


class SoftplusTransform(Transform):
    """``y = log(1 + exp(x))``.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.SoftplusTransform()(gg.tensor(0.0))
        tensor(0.6931)
    """

    codomain = constraints.positive

    def _call(self, x: Array) -> Array:
        return PUBLIC["softplus"](x)

    def _inverse(self, y: Array) -> Array:
        return (-(-y).expm1()).log() + y

    def log_abs_det_jacobian(self, x: Array, y: Array) -> Array:
        return -PUBLIC["softplus"](-x)


class TanhTransform(Transform):
    """``y = tanh(x)``; use ``cache_size=1`` for log-probabilities of its own samples.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.TanhTransform().log_abs_det_jacobian(gg.tensor(0.0), gg.tensor(0.0))
        tensor(0.)
    """

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Array) -> Array:
        return x.tanh()

    def _inverse(self, y: Array) -> Array:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Array, y: Array) -> Array:
        return 2.0 * (math.log(2.0) - x - PUBLIC["softplus"](-2.0 * x))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TanhTransform)

    __hash__ = object.__hash__


class AbsTransform(Transform):
    """``y = |x|``, which is not invertible.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.AbsTransform()(gg.tensor(-2.0))
        tensor(2.)
    """

    bijective = False
    codomain = constraints.positive

    def _call(self, x: Array) -> Array:
        return x.abs()

    def _inverse(self, y: Array) -> Array:
        return y


class SoftmaxTransform(Transform):
    """``y = softmax(x)`` over the last dimension, invertible up to a constant.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.SoftmaxTransform()(gg.zeros(2))
        tensor([0.5, 0.5])
    """

    bijective = False
    event_dim = 1
    codomain = constraints.simplex
    domain = constraints.real_vector

    def _call(self, x: Array) -> Array:
        return x.softmax(-1)

    def _inverse(self, y: Array) -> Array:
        return y.log()


class StickBreakingTransform(Transform):
    """Maps k numbers to k + 1 positive ones with a sum of 1: each breaks its share off the rest of a stick.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.StickBreakingTransform()(gg.zeros(2))
        tensor([0.3333, 0.3333, 0.3333])
    """

    event_dim = 1
    codomain = constraints.simplex
    domain = constraints.real_vector

    def _offset(self, count: int, like: Array) -> Array:
        return like.new_tensor(np.log(np.arange(count, 0, -1)))

    def _call(self, x: Array) -> Array:
        share = (x - self._offset(x.shape[-1], x)).sigmoid()
        left = (1 - share).cumprod(-1)
        return pad(share, (0, 1), value=1.0) * pad(left, (1, 0), value=1.0)

    def _inverse(self, y: Array) -> Array:
        parts = y[..., :-1]
        left = (1 - parts.cumsum(-1)).clamp(min=float(finfo(y.dtype).tiny))
        return parts.log() - left.log() + self._offset(parts.shape[-1], y)

    def log_abs_det_jacobian(self, x: Array, y: Array) -> Array:
        moved = x - self._offset(x.shape[-1], x)
        return (-moved + PUBLIC["logsigmoid"](moved) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[:-1], shape[-1] - 1)


class LowerCholeskyTransform(Transform):
    """Maps a square matrix to a lower triangular one, with exp on its diagonal.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.LowerCholeskyTransform()(gg.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """

    bijective = False
    event_dim = 2
    codomain = constraints.lower_cholesky

    def _call(self, x: Array) -> Array:
        return x.tril(-1) + x.diagonal(0, -2, -1).exp().diag_embed()

    def _inverse(self, y: Array) -> Array:
        return y.tril(-1) + y.diagonal(0, -2, -1).log().diag_embed()


class IndependentTransform(Transform):
    """Another transform whose last dimensions count as one event.

    Example:
        >>> import glassgrad as gg
        >>> both = gg.distributions.IndependentTransform(gg.distributions.ExpTransform(), 1)
        >>> both.log_abs_det_jacobian(gg.ones(3), gg.ones(3))
        tensor(3.)
    """

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.event_dim = base_transform.event_dim + reinterpreted_batch_ndims
        self.bijective = base_transform.bijective
        self.codomain = constraints.independent(base_transform.codomain, reinterpreted_batch_ndims)
        self.domain = constraints.independent(base_transform.domain, reinterpreted_batch_ndims)

    def _call(self, x: Array) -> Array:
        return self.base_transform(x)

    def _inverse(self, y: Array) -> Array:
        return self.base_transform._undo(y)

    def log_abs_det_jacobian(self, x: Array, y: Array) -> Array:
        return summed(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)


class ReshapeTransform(Transform):
    """Gives the last dimensions another shape.

    Example:
        >>> import glassgrad as gg
        >>> gg.distributions.ReshapeTransform((4,), (2, 2))(gg.zeros(3, 4)).shape
        (3, 2, 2)
    """

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        self.event_dim = len(self.in_shape)

    def _call(self, x: Array) -> Array:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Array) -> Array:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Array, y: Array) -> Array:
        return summed(x, len(self.in_shape)) * 0

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[: len(shape) - len(self.in_shape)], *self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[: len(shape) - len(self.out_shape)], *self.in_shape)


identity_transform = ComposeTransform([])

__all__ = ["AbsTransform", "AffineTransform", "ComposeTransform", "ExpTransform", "IndependentTransform"]
__all__ += ["LowerCholeskyTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform"]
__all__ += ["SoftplusTransform", "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform"]
