"""Dropout layers: active in training, the identity otherwise."""

from __future__ import annotations

from glassgrad.engine.tensor import Tensor, TensorLike
from glassgrad.nn.functional import drop as F
from glassgrad.nn.module import Module
from glassgrad.ops.core import bad_option


class _Dropout(Module):
    """Base of the dropouts; `inplace` is accepted and has no effect."""

    _shown = "p={p}, inplace={inplace}"

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise bad_option(type(self).__name__, "p", p, "a probability between 0 and 1")
        self.p = p
        self.inplace = inplace


class Dropout(_Dropout):
    """Zeroes each element with probability `p` and scales the rest by 1/(1-p) (Hinton et al. 2012).

    Example:
        >>> import glassgrad as gg
        >>> layer = gg.nn.Dropout(0.5)
        >>> sorted(set(layer(gg.ones(100)).tolist()))
        [0.0, 2.0]
        >>> layer.eval()(gg.ones(2))
        tensor([1., 1.])
    """

    def forward(self, input: TensorLike) -> Tensor:
        return F.dropout(input, self.p, self.training)


class Dropout1d(_Dropout):
    """Zeroes whole channels of (N, C, L) or (C, L).

    Example:
        >>> import glassgrad as gg
        >>> y = gg.nn.Dropout1d(0.5)(gg.ones(1, 6, 4))
        >>> bool((y.amax(-1) == y.amin(-1)).all())  # a channel goes as a whole
        True
    """

    def forward(self, input: TensorLike) -> Tensor:
        return F.dropout1d(input, self.p, self.training)


class Dropout2d(_Dropout):
    """Zeroes whole channels of (N, C, H, W) or (C, H, W) (Tompson et al. 2015).

    Example:
        >>> import glassgrad as gg
        >>> y = gg.nn.Dropout2d(0.5)(gg.ones(1, 6, 4, 4))
        >>> bool((y.amax((2, 3)) == y.amin((2, 3))).all())  # a channel goes as a whole
        True
    """

    def forward(self, input: TensorLike) -> Tensor:
        return F.dropout2d(input, self.p, self.training)


class Dropout3d(_Dropout):
    """Zeroes whole channels of (N, C, D, H, W) or (C, D, H, W).

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.Dropout3d(0.5)(gg.ones(1, 6, 2, 4, 4)).shape
        (1, 6, 2, 4, 4)
    """

    def forward(self, input: TensorLike) -> Tensor:
        return F.dropout3d(input, self.p, self.training)


class AlphaDropout(_Dropout):
    """Dropout for SELU, which keeps mean and variance (Klambauer et al. 2017).

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.AlphaDropout(0.5).eval()(gg.ones(3))
        tensor([1., 1., 1.])
    """

    def forward(self, input: TensorLike) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_Dropout):
    """`AlphaDropout` of whole channels.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.FeatureAlphaDropout(0.5).eval()(gg.ones(1, 3))
        tensor([[1., 1., 1.]])
    """

    def forward(self, input: TensorLike) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)


__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]
