# ruff: noqa: F403, I001 - the lists of names are those of the families
# What a type checker sees of `functional.py`.
from glassgrad.nn.functional_activation import *
from glassgrad.nn.functional_attention import *
from glassgrad.nn.functional_dropout import *
from glassgrad.nn.functional_norm import *
from glassgrad.ops.arrange import pad as pad
from glassgrad.ops.core import Array
from glassgrad.ops.index import one_hot as one_hot
from glassgrad.ops.spatial import (
    adaptive_avg_pool1d as adaptive_avg_pool1d,
    adaptive_avg_pool2d as adaptive_avg_pool2d,
    avg_pool1d as avg_pool1d,
    avg_pool2d as avg_pool2d,
    conv1d as conv1d,
    conv2d as conv2d,
    conv_transpose1d as conv_transpose1d,
    conv_transpose2d as conv_transpose2d,
    interpolate as interpolate,
    max_pool1d as max_pool1d,
    max_pool2d as max_pool2d,
    pixel_shuffle as pixel_shuffle,
)

def linear(input: Array, weight: Array, bias: Array | None = None) -> Array: ...
def embedding(input: Array, weight: Array, padding_idx: int | None = None) -> Array: ...
def cross_entropy(input: Array, target: Array, *args: object, **kwargs: object) -> Array: ...
def nll_loss(input: Array, target: Array, *args: object, **kwargs: object) -> Array: ...
def mse_loss(input: Array, target: Array, *args: object, **kwargs: object) -> Array: ...
def reduce_loss(losses: Array, reduction: str) -> Array: ...
