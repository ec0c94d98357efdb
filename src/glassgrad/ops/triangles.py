"""Symmetric matrices given by one triangle, as LAPACK reads them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.ops.core import Array, Custom, custom


def _mirror(xp: ModuleType, x: Array, *, lower: bool) -> Array:
    inner, outer = (xp.tril(x), xp.tril(x, -1)) if lower else (xp.triu(x), xp.triu(x, 1))
    return inner + xp.conj(outer.swapaxes(-1, -2))


def _alone(prim: Any, size: int, values: list[Any], _batched: list[bool], params: dict[str, Any]) -> Any:
    return prim(values[0], **params)  # the only argument has the batch


# A function of one triangle has a gradient in that triangle only. As in PyTorch, we return the gradient of the function
# of the full symmetric matrix. Both give the same gradients for everything that the symmetric matrix was computed from.
mirror_p: Custom = custom(
    "mirror",
    _mirror,
    vjp=(lambda g, y, x, *, lower: g,),
    jvp=(lambda t, y, x, *, lower: t,),
    batch=_alone,
    takes_complex=True,
    shape=lambda x, *, lower: x.shape,
)
mirror_p.describe(
    "the symmetric matrix that has x's lower (or upper) triangle",
    "g",
    notes="the derivative is that of symmetric x, which finite differences of one element do not show",
)


def mirrored(op: str, x: Array, *, lower: bool) -> Array:
    """Return the symmetric (Hermitian) matrix given by one triangle of x, as LAPACK reads it."""
    if len(x.shape) < 2 or x.shape[-1] != x.shape[-2]:
        raise errors.SQUARE_MATRIX(op=op, given=tuple(x.shape), where=provenance.here())
    return mirror_p(x, lower=lower)
