"""Dropout layers: active in training, the identity otherwise."""

from __future__ import annotations

from typing import Any

from glassgrad import errors, provenance
from glassgrad.nn import functional_dropout as F
from glassgrad.nn.module import Module


class _Dropout(Module):
    """What the dropouts share; `inplace` is accepted and has no effect."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise errors.BAD_OPTION(
                owner=type(self).__name__, name="p", given=p, expected="a probability between 0 and 1",
                where=provenance.here(),
            )  # fmt: skip
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """Zeroes each element with probability `p` and scales the rest by 1/(1-p) (Hinton et al. 2012)."""

    def forward(self, input: Any) -> Any:
        return F.dropout(input, self.p, self.training)


class Dropout1d(_Dropout):
    """Zeroes whole channels of (N, C, L) or (C, L)."""

    def forward(self, input: Any) -> Any:
        return F.dropout1d(input, self.p, self.training)


class Dropout2d(_Dropout):
    """Zeroes whole channels of (N, C, H, W) or (C, H, W) (Tompson et al. 2015)."""

    def forward(self, input: Any) -> Any:
        return F.dropout2d(input, self.p, self.training)


class Dropout3d(_Dropout):
    """Zeroes whole channels of (N, C, D, H, W) or (C, D, H, W)."""

    def forward(self, input: Any) -> Any:
        return F.dropout3d(input, self.p, self.training)


class AlphaDropout(_Dropout):
    """Dropout for SELU, which keeps mean and variance (Klambauer et al. 2017)."""

    def forward(self, input: Any) -> Any:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_Dropout):
    """`AlphaDropout` of whole channels."""

    def forward(self, input: Any) -> Any:
        return F.feature_alpha_dropout(input, self.p, self.training)


__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]
