"""Batching rules of convolutions for `vmap`.

Images of several examples are simply more images. Weights of several examples become groups of one
convolution: example b owns channels b C to (b + 1) C of the input and its outputs likewise.
"""

from __future__ import annotations

from glassgrad.ops.conv import conv2d_input_p, conv2d_p, conv2d_weight_p
from glassgrad.ops.core import Array, Primitive
from glassgrad.ops.pool import fold_p, unfold_p
from glassgrad.ops.shape import permute_p, reshape_p
from glassgrad.ops.vmap.rules import Flags, Params, Values, all_expanded


def _merge(x: Array) -> Array:
    """(B, N, ...) to (B N, ...)."""
    return reshape_p(x, shape=(x.shape[0] * x.shape[1], *x.shape[2:]))


def _split(y: Array, size: int, count: int) -> Array:
    """(B N, ...) to (B, N, ...)."""
    return reshape_p(y, shape=(size, count, *y.shape[1:]))


def _channels_in(x: Array) -> Array:
    """(B, N, C, H, W) to (N, B C, H, W)."""
    size, n, c = x.shape[:3]
    return reshape_p(permute_p(x, axes=(1, 0, 2, 3, 4)), shape=(n, size * c, *x.shape[3:]))


def _channels_out(y: Array, size: int) -> Array:
    """(N, B C, H, W) to (B, N, C, H, W)."""
    n, c = y.shape[:2]
    return permute_p(reshape_p(y, shape=(n, size, c // size, *y.shape[2:])), axes=(1, 0, 2, 3, 4))


def _grouped(params: Params, size: int) -> Params:
    return {**params, "groups": params["groups"] * size}


def _image_and_weight(prim: Primitive, size: int, values: Values, batched: Flags, params: Params) -> Array:
    """For conv2d and conv2d_input: an image and a weight."""
    image, weight = values
    if not batched[1]:
        return _split(prim(_merge(image), weight, **params), size, image.shape[1])
    image, weight = all_expanded(values, batched, size)
    return _channels_out(prim(_channels_in(image), _merge(weight), **_grouped(params, size)), size)


def _two_images(prim: Primitive, size: int, values: Values, batched: Flags, params: Params) -> Array:
    """For conv2d_weight: two images."""
    x, g = all_expanded(values, batched, size)
    y = prim(_channels_in(x), _channels_in(g), **_grouped(params, size))
    return _split(y, size, y.shape[0] // size)


def _merged(prim: Primitive, size: int, values: Values, batched: Flags, params: Params) -> Array:
    """For primitives on (N, ...) that treat every n in the same way."""
    return _split(prim(_merge(values[0]), **params), size, values[0].shape[1])


conv2d_p.batch = conv2d_input_p.batch = _image_and_weight
conv2d_weight_p.batch = _two_images
unfold_p.batch = fold_p.batch = _merged
