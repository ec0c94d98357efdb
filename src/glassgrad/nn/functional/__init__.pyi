# Written by tools/stubs.py from the functions as they are when the library runs.
import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, ParamSpec, Self, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt
from numpy.typing import DTypeLike
from glassgrad.engine.tensors.devices import device as device
from glassgrad.engine.random import Generator as Generator
from glassgrad.engine.tensor import Tensor as Tensor, TensorLike
from glassgrad.engine.typed import (
    CholeskyInfo,
    Device,
    EigResult,
    EighResult,
    Extreme,
    Frexp,
    Histogram,
    Ints,
    InverseInfo,
    LUFactors,
    LUFactorsInfo,
    LUResult,
    Number,
    QRResult,
    Reflectors,
    SVDResult,
    Sizes,
    SlogdetResult,
    SolveInfo,
    TensorOrArray,
    Tensors,
    TriangularSolution,
)

def adaptive_avg_pool1d(input: TensorOrArray, output_size: Sizes) -> TensorOrArray:
    """Mean over about equal parts of (N, C, L), as many as `output_size`; None in it keeps an axis."""

def adaptive_avg_pool2d(input: TensorOrArray, output_size: Sizes) -> TensorOrArray:
    """Mean over about equal parts of (N, C, H, W), as many as `output_size`; None in it keeps an axis."""

def adaptive_avg_pool3d(input: TensorOrArray, output_size: Sizes) -> TensorOrArray:
    """Mean over about equal parts of (N, C, D, H, W), as many as `output_size`; None in it keeps an axis."""

@overload
def adaptive_max_pool1d(
    input: TensorOrArray, output_size: Sizes, return_indices: Literal[False] = False
) -> TensorOrArray:
    """Largest element of about equal parts of (N, C, L), as many as `output_size`; None keeps an axis."""

@overload
def adaptive_max_pool1d(
    input: TensorOrArray, output_size: Sizes, *, return_indices: Literal[True]
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool1d_with_indices(
    input: TensorOrArray, output_size: Sizes, return_indices: Literal[False] = False
) -> TensorOrArray:
    """`adaptive_max_pool1d` with its positions."""

@overload
def adaptive_max_pool1d_with_indices(
    input: TensorOrArray, output_size: Sizes, *, return_indices: Literal[True]
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool2d(
    input: TensorOrArray, output_size: Sizes, return_indices: Literal[False] = False
) -> TensorOrArray:
    """Largest element of about equal parts of (N, C, H, W), as many as `output_size`; None keeps an axis."""

@overload
def adaptive_max_pool2d(
    input: TensorOrArray, output_size: Sizes, *, return_indices: Literal[True]
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool2d_with_indices(
    input: TensorOrArray, output_size: Sizes, return_indices: Literal[False] = False
) -> TensorOrArray:
    """`adaptive_max_pool2d` with its positions."""

@overload
def adaptive_max_pool2d_with_indices(
    input: TensorOrArray, output_size: Sizes, *, return_indices: Literal[True]
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool3d(
    input: TensorOrArray, output_size: Sizes, return_indices: Literal[False] = False
) -> TensorOrArray:
    """Largest element of about equal parts of (N, C, D, H, W), as many as `output_size`; None keeps an axis."""

@overload
def adaptive_max_pool3d(
    input: TensorOrArray, output_size: Sizes, *, return_indices: Literal[True]
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool3d_with_indices(
    input: TensorOrArray, output_size: Sizes, return_indices: Literal[False] = False
) -> TensorOrArray:
    """`adaptive_max_pool3d` with its positions."""

@overload
def adaptive_max_pool3d_with_indices(
    input: TensorOrArray, output_size: Sizes, *, return_indices: Literal[True]
) -> builtins.tuple[Tensor, Tensor]: ...
def affine_grid(
    theta: TensorOrArray, size: Sequence[builtins.int], align_corners: builtins.bool | None = None
) -> TensorOrArray:
    """The places (N, H, W, 2) to which affine maps `theta` (N, 2, 3) send the pixels of images of `size` (N, C, H, W)."""

def alpha_dropout(
    input: TensorOrArray, p: builtins.float = 0.5, training: builtins.bool = False, inplace: builtins.bool = False
) -> TensorOrArray:
    """Dropout for SELU: sets to its floor and rescales, so that mean and variance stay (Klambauer et al. 2017)."""

def avg_pool1d(
    input: TensorOrArray,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: builtins.bool = False,
    count_include_pad: builtins.bool = True,
) -> TensorOrArray:
    """Mean of each window of (N, C, L)."""

def avg_pool2d(
    input: TensorOrArray,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: builtins.bool = False,
    count_include_pad: builtins.bool = True,
    divisor_override: builtins.int | None = None,
) -> TensorOrArray:
    """Mean of each window of (N, C, H, W); padding counts as zeros unless `count_include_pad` is False."""

def avg_pool3d(
    input: TensorOrArray,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: builtins.bool = False,
    count_include_pad: builtins.bool = True,
    divisor_override: builtins.int | None = None,
) -> TensorOrArray:
    """Mean of each window of (N, C, D, H, W); padding counts as zeros unless `count_include_pad` is False."""

def batch_norm(
    input: TensorOrArray,
    running_mean: Any = None,
    running_var: Any = None,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    training: builtins.bool = False,
    momentum: builtins.float = 0.1,
    eps: builtins.float = 1e-05,
) -> TensorOrArray:
    """Normalise each channel (axis 1) by the batch, or outside training by the running statistics."""

def bilinear(input1: TensorLike, input2: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
    """x1T w[k] x2 + b[k]: (..., in1) and (..., in2) with weights (out, in1, in2) to (..., out)."""

def binary_cross_entropy(
    input: TensorLike,
    target: TensorLike,
    weight: TensorLike | None = None,
    size_average: builtins.bool | None = None,
    reduce: builtins.bool | None = None,
    reduction: builtins.str = "mean",
) -> Tensor:
    """-t log(x) - (1 - t) log(1 - x) for probabilities x; logarithms stop at -100."""

def binary_cross_entropy_with_logits(
    input: TensorLike,
    target: TensorLike,
    weight: TensorLike | None = None,
    size_average: builtins.bool | None = None,
    reduce: builtins.bool | None = None,
    reduction: builtins.str = "mean",
    pos_weight: TensorLike | None = None,
) -> Tensor:
    """Binary cross-entropy of sigmoid(input), stable for logits of any size; `pos_weight` multiplies the positives."""

def cdist(x1: TensorLike, x2: TensorLike, p: builtins.float = 2.0, compute_mode: builtins.str | None = None) -> Tensor:
    """Distances between rows: (..., n, d) and (..., m, d) to (..., n, m), in the norm `p`."""

def celu(input: TensorOrArray, alpha: builtins.float = 1.0, inplace: builtins.bool = False) -> TensorOrArray:
    """x where it is positive, else alpha * (exp(x / alpha) - 1)."""

def celu_(x: TensorOrArray, alpha: builtins.float = 1.0) -> TensorOrArray:
    """`celu`, written into the tensor itself; return it."""

def channel_shuffle(input: TensorOrArray, groups: builtins.int) -> TensorOrArray:
    """Channels (N, C, ...) in another order: the first of each of `groups` groups, the second of each, and so on."""

def conv1d(
    input: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Ints = 1,
    padding: Any = 0,
    dilation: Ints = 1,
    groups: builtins.int = 1,
) -> Tensor:
    """Cross-correlation of (N, C, L) with `weight` (O, C/groups, k): shape (N, O, L')."""

def conv2d(
    input: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Ints = 1,
    padding: Any = 0,
    dilation: Ints = 1,
    groups: builtins.int = 1,
) -> Tensor:
    """Cross-correlation of (N, C, H, W) with `weight` (O, C/groups, kh, kw): shape (N, O, H', W')."""

def conv3d(
    input: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Ints = 1,
    padding: Any = 0,
    dilation: Ints = 1,
    groups: builtins.int = 1,
) -> Tensor:
    """Cross-correlation of (N, C, D, H, W) with `weight` (O, C/groups, kd, kh, kw): shape (N, O, D', H', W')."""

def conv_transpose1d(
    input: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: builtins.int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The transpose of `conv1d`: (N, C, L) with `weight` (C, O/groups, k) to (N, O, L')."""

def conv_transpose2d(
    input: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: builtins.int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The transpose of `conv2d`: (N, C, H, W) with `weight` (C, O/groups, kh, kw) to (N, O, H', W')."""

def conv_transpose3d(
    input: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: builtins.int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The transpose of `conv3d`: (N, C, D, H, W) with `weight` (C, O/groups, kd, kh, kw) to (N, O, D', H', W')."""

def cosine_embedding_loss(
    input1: TensorLike,
    input2: TensorLike,
    target: TensorLike,
    margin: builtins.float = 0,
    size_average: builtins.bool | None = None,
    reduce: builtins.bool | None = None,
    reduction: builtins.str = "mean",
) -> Tensor:
    """1 - cos(x1, x2) where the target is 1, max(0, cos(x1, x2) - margin) where it is -1."""

def cosine_similarity(x1: TensorLike, x2: TensorLike, dim: builtins.int = 1, eps: builtins.float = 1e-08) -> Tensor:
    """x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along `dim`; the other dimensions broadcast."""

def cross_entropy(
    input: TensorLike,
    target: TensorLike,
    weight: TensorLike | None = None,
    size_average: builtins.bool | None = None,
    ignore_index: builtins.int = -100,
    reduce: builtins.bool | None = None,
    reduction: builtins.str = "mean",
    label_smoothing: builtins.float = 0.0,
) -> Tensor:
    """-log softmax(input)[target] for input (N, C), (N, C, ...) or (C,)."""

def ctc_loss(
    log_probs: TensorLike,
    targets: TensorLike,
    input_lengths: TensorLike | Sequence[builtins.int],
    target_lengths: TensorLike | Sequence[builtins.int],
    blank: builtins.int = 0,
    reduction: builtins.str = "mean",
    zero_infinity: builtins.bool = False,
) -> Tensor:
    """-log of the probability of label sequences under every alignment (Graves et al. 2006)."""

def dropout(
    input: TensorOrArray,
    p: builtins.float = 0.5,
    training: builtins.bool = True,
    inplace: builtins.bool = False,
    *,
    generator: Generator | None = None,
) -> TensorOrArray:
    """Zero each element with probability `p` and scale the rest by 1/(1-p), in training only (Hinton et al. 2012)."""

def dropout1d(
    input: TensorOrArray, p: builtins.float = 0.5, training: builtins.bool = True, inplace: builtins.bool = False
) -> TensorOrArray:
    """Zero whole channels of (N, C, L) or (C, L) (Tompson et al. 2015)."""

def dropout2d(
    input: TensorOrArray, p: builtins.float = 0.5, training: builtins.bool = True, inplace: builtins.bool = False
) -> TensorOrArray:
    """Zero whole channels of (N, C, H, W) or (C, H, W) (Tompson et al. 2015)."""

def dropout3d(
    input: TensorOrArray, p: builtins.float = 0.5, training: builtins.bool = True, inplace: builtins.bool = False
) -> TensorOrArray:
    """Zero whole channels of (N, C, D, H, W) or (C, D, H, W)."""

def elu(input: TensorOrArray, alpha: builtins.float = 1.0, inplace: builtins.bool = False) -> TensorOrArray:
    """x where it is positive, else alpha * (exp(x) - 1)."""

def elu_(x: TensorOrArray, alpha: builtins.float = 1.0) -> TensorOrArray:
    """`elu`, written into the tensor itself; return it."""

def embedding(
    input: TensorLike,
    weight: TensorLike,
    padding_idx: builtins.int | None = None,
    max_norm: builtins.float | None = None,
    norm_type: builtins.float = 2.0,
    scale_grad_by_freq: builtins.bool = False,
    sparse: builtins.bool = False,
) -> Tensor:
    """Rows of `weight` at the integers `input`: (...) to (..., width)."""

def embedding_bag(
    input: TensorLike,
    weight: TensorLike,
    offsets: TensorLike | None = None,
    max_norm: builtins.float | None = None,
    norm_type: builtins.float = 2.0,
    scale_grad_by_freq: builtins.bool = False,
    mode: builtins.str = "mean",
    sparse: builtins.bool = False,
    per_sample_weights: TensorLike | None = None,
    include_last_offset: builtins.bool = False,
    padding_idx: builtins.int | None = None,
) -> Tensor:
    """Sum, mean or largest of the rows of each bag, without keeping the rows."""

def feature_alpha_dropout(
    input: TensorOrArray, p: builtins.float = 0.5, training: builtins.bool = False, inplace: builtins.bool = False
) -> TensorOrArray:
    """`alpha_dropout` of whole channels, (N, C, ...)."""

def fold(
    input: TensorOrArray, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> TensorOrArray:
    """Add columns (N, C kh kw, positions) at the windows of an image of `output_size`. PyTorch's `F.fold`."""

@overload
def fractional_max_pool2d(
    input: TensorOrArray,
    kernel_size: Ints,
    output_size: Sizes = None,
    output_ratio: builtins.float | Sequence[builtins.float] | None = None,
    return_indices: Literal[False] = False,
    _random_samples: TensorLike | None = None,
) -> Tensor | builtins.tuple[Tensor, Tensor]:
    """Largest element of windows of (N, C, H, W) at random distances, with `return_indices` their positions."""

@overload
def fractional_max_pool2d(
    input: TensorOrArray,
    kernel_size: Ints,
    output_size: Sizes = None,
    output_ratio: builtins.float | Sequence[builtins.float] | None = None,
    *,
    return_indices: Literal[True],
    _random_samples: TensorLike | None = None,
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def fractional_max_pool2d_with_indices(
    input: TensorOrArray,
    kernel_size: Ints,
    output_size: Sizes = None,
    output_ratio: builtins.float | Sequence[builtins.float] | None = None,
    return_indices: Literal[False] = False,
    _random_samples: TensorLike | None = None,
) -> Tensor | builtins.tuple[Tensor, Tensor]:
    """`fractional_max_pool2d` with its positions."""

@overload
def fractional_max_pool2d_with_indices(
    input: TensorOrArray,
    kernel_size: Ints,
    output_size: Sizes = None,
    output_ratio: builtins.float | Sequence[builtins.float] | None = None,
    *,
    return_indices: Literal[True],
    _random_samples: TensorLike | None = None,
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def fractional_max_pool3d(
    input: TensorOrArray,
    kernel_size: Ints,
    output_size: Sizes = None,
    output_ratio: builtins.float | Sequence[builtins.float] | None = None,
    return_indices: Literal[False] = False,
    _random_samples: TensorLike | None = None,
) -> Tensor | builtins.tuple[Tensor, Tensor]:
    """Largest element of windows of (N, C, D, H, W) at random distances, with `return_indices` their positions."""

@overload
def fractional_max_pool3d(
    input: TensorOrArray,
    kernel_size: Ints,
    output_size: Sizes = None,
    output_ratio: builtins.float | Sequence[builtins.float] | None = None,
    *,
    return_indices: Literal[True],
    _random_samples: TensorLike | None = None,
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def fractional_max_pool3d_with_indices(
    input: TensorOrArray,
    kernel_size: Ints,
    output_size: Sizes = None,
    output_ratio: builtins.float | Sequence[builtins.float] | None = None,
    return_indices: Literal[False] = False,
    _random_samples: TensorLike | None = None,
) -> Tensor | builtins.tuple[Tensor, Tensor]:
    """`fractional_max_pool3d` with its positions."""

@overload
def fractional_max_pool3d_with_indices(
    input: TensorOrArray,
    kernel_size: Ints,
    output_size: Sizes = None,
    output_ratio: builtins.float | Sequence[builtins.float] | None = None,
    *,
    return_indices: Literal[True],
    _random_samples: TensorLike | None = None,
) -> builtins.tuple[Tensor, Tensor]: ...
def gaussian_nll_loss(
    input: TensorLike,
    target: TensorLike,
    var: TensorLike,
    full: builtins.bool = False,
    eps: builtins.float = 1e-06,
    reduction: builtins.str = "mean",
) -> Tensor:
    """(log v + (input - target)**2 / v) / 2 with v = max(var, eps); `full` adds log(2 pi) / 2."""

def gelu(x: TensorOrArray, approximate: builtins.str = "none") -> TensorOrArray:
    """Gaussian error linear unit, x * Phi(x); `approximate="tanh"` is the formula of GPT-2."""

@overload
def glu(x: TensorOrArray, dim: builtins.int = -1) -> TensorOrArray:
    """a * sigmoid(b), where a and b are the halves of x along `dim` (Dauphin et al. 2016)."""

@overload
def glu(x: TensorOrArray, *, axis: builtins.int = -1) -> TensorOrArray: ...
def grid_sample(
    input: TensorLike,
    grid: TensorLike,
    mode: builtins.str = "bilinear",
    padding_mode: builtins.str = "zeros",
    align_corners: builtins.bool | None = None,
) -> Tensor:
    """Read (N, C, H, W) at the places `grid` (N, H', W', 2), or (N, C, D, H, W) at (N, D', H', W', 3)."""

def group_norm(
    input: TensorOrArray,
    num_groups: builtins.int,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    eps: builtins.float = 1e-05,
) -> TensorOrArray:
    """Normalise each example over groups of channels, (N, C, ...) (Wu and He 2018)."""

def gumbel_softmax(
    logits: TensorOrArray,
    tau: builtins.float = 1.0,
    hard: builtins.bool = False,
    eps: builtins.float = 1e-10,
    dim: builtins.int = -1,
    *,
    generator: Generator | None = None,
) -> TensorOrArray:
    """Softmax of logits plus Gumbel noise: a differentiable draw (Jang et al. 2017)."""

def hardshrink(x: TensorOrArray, lambd: builtins.float = 0.5) -> TensorOrArray:
    """x where |x| > `lambd`, else 0."""

def hardsigmoid(input: TensorOrArray, inplace: builtins.bool = False) -> TensorOrArray:
    """relu6(x + 3) / 6."""

def hardswish(input: TensorOrArray, inplace: builtins.bool = False) -> TensorOrArray:
    """x * relu6(x + 3) / 6."""

def hardtanh(
    input: TensorOrArray, min_val: builtins.float = -1.0, max_val: builtins.float = 1.0, inplace: builtins.bool = False
) -> TensorOrArray:
    """x limited to [min_val, max_val]."""

def hardtanh_(x: TensorOrArray, min_val: builtins.float = -1.0, max_val: builtins.float = 1.0) -> TensorOrArray:
    """`hardtanh`, written into the tensor itself; return it."""

def hinge_embedding_loss(
    input: TensorLike,
    target: TensorLike,
    margin: builtins.float = 1.0,
    size_average: builtins.bool | None = None,
    reduce: builtins.bool | None = None,
    reduction: builtins.str = "mean",
) -> Tensor:
    """x where the target is 1, max(0, margin - x) where it is -1."""

def huber_loss(
    input: TensorLike,
    target: TensorLike,
    reduction: builtins.str = "mean",
    delta: builtins.float = 1.0,
    weight: TensorLike | None = None,
) -> Tensor:
    """d**2 / 2 where |d| <= delta, else delta (|d| - delta / 2), for d = input - target (Huber 1964)."""

def instance_norm(
    input: TensorOrArray,
    running_mean: Any = None,
    running_var: Any = None,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    use_input_stats: builtins.bool = True,
    momentum: builtins.float = 0.1,
    eps: builtins.float = 1e-05,
) -> TensorOrArray:
    """Normalise each channel of each example, (N, C, ...) (Ulyanov et al. 2016)."""

def interpolate(
    input: TensorOrArray,
    size: Ints | None = None,
    scale_factor: Any = None,
    mode: builtins.str = "nearest",
    align_corners: builtins.bool | None = None,
    recompute_scale_factor: builtins.bool | None = None,
) -> TensorOrArray:
    """Resize (N, C, L), (N, C, H, W) or (N, C, D, H, W) to `size` or by `scale_factor`."""

def kl_div(
    input: TensorLike,
    target: TensorLike,
    size_average: builtins.bool | None = None,
    reduce: builtins.bool | None = None,
    reduction: builtins.str = "mean",
    log_target: builtins.bool = False,
) -> Tensor:
    """t (log t - input) for log-probabilities `input`; reduction "batchmean" divides the sum by the first size."""

def l1_loss(
    input: TensorLike,
    target: TensorLike,
    size_average: builtins.bool | None = None,
    reduce: builtins.bool | None = None,
    reduction: builtins.str = "mean",
    weight: TensorLike | None = None,
) -> Tensor:
    """|input - target|, averaged; `weight` multiplies each and then divides the mean."""

def layer_norm(
    input: TensorOrArray,
    normalized_shape: Any,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    eps: builtins.float = 1e-05,
) -> TensorOrArray:
    """(x - mean) / sqrt(var + eps) * weight + bias, over the last dimensions (Ba et al. 2016)."""

def leaky_relu(
    input: TensorOrArray, negative_slope: builtins.float = 0.01, inplace: builtins.bool = False
) -> TensorOrArray:
    """x where it is positive, else `negative_slope` * x."""

def leaky_relu_(x: TensorOrArray, negative_slope: builtins.float = 0.01) -> TensorOrArray:
    """`leaky_relu`, written into the tensor itself; return it."""

def linear(input: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
    """x wT + b: input (..., in), weight (out, in), bias (out,) to (..., out)."""

def linear_cross_entropy(
    input: TensorLike,
    linear_weight: TensorLike,
    target: TensorLike,
    *,
    linear_bias: TensorLike | None = None,
    weight: TensorLike | None = None,
    reduction: builtins.str = "mean",
    ignore_index: builtins.int | None = None,
    label_smoothing: builtins.float = 0.0,
    options: builtins.object = None,
) -> Tensor:
    """`cross_entropy` of linear maps of the input (N, in) or (in,)."""

def local_response_norm(
    input: TensorOrArray,
    size: builtins.int,
    alpha: builtins.float = 0.0001,
    beta: builtins.float = 0.75,
    k: builtins.float = 1.0,
) -> TensorOrArray:
    """x / (k + alpha * mean of x**2 over `size` neighbouring channels)**beta (Krizhevsky et al. 2012)."""

def log_softmax(
    input: TensorOrArray, dim: builtins.int | None = None, _stacklevel: builtins.int = 3, dtype: DTypeLike | None = None
) -> TensorOrArray:
    """x - logsumexp(x) along `dim`."""

def logsigmoid(x: TensorOrArray) -> TensorOrArray:
    """log(1 / (1 + exp(-x)))"""

def lp_pool1d(
    input: TensorOrArray,
    norm_type: builtins.float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: builtins.bool = False,
) -> TensorOrArray:
    """(sum of x**p)**(1/p) over each window of (N, C, L)."""

def lp_pool2d(
    input: TensorOrArray,
    norm_type: builtins.float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: builtins.bool = False,
) -> TensorOrArray:
    """(sum of x**p)**(1/p) over each window of (N, C, H, W)."""

def lp_pool3d(
    input: TensorOrArray,
    norm_type: builtins.float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: builtins.bool = False,
) -> TensorOrArray:
    """(sum of x**p)**(1/p) over each window of (N, C, D, H, W)."""

def margin_ranking_loss(
    input1: TensorLike,
    input2: TensorLike,
    target: TensorLike,
    margin: builtins.float = 0,
    size_average: builtins.bool | None = None,
    reduce: builtins.bool | None = None,
    reduction: builtins.str = "mean",
) -> Tensor:
    """max(0, -t (x1 - x2) + margin): t is 1 where x1 should be the larger one, else -1."""

@overload
def max_pool1d(
    input: TensorOrArray,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: builtins.bool = False,
    return_indices: Literal[False] = False,
) -> TensorOrArray:
    """Largest element of each window of (N, C, L); on ties the first gets the gradient."""

@overload
def max_pool1d(
    input: TensorOrArray,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: builtins.bool = False,
    *,
    return_indices: Literal[True],
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def max_pool1d_with_indices(
    input: TensorOrArray,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: builtins.bool = False,
    return_indices: Literal[False] = False,
) -> TensorOrArray:
    """`max_pool1d` with its positions."""

@overload
def max_pool1d_with_indices(
    input: TensorOrArray,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: builtins.bool = False,
    *,
    return_indices: Literal[True],
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def max_pool2d(
    input: TensorOrArray,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: builtins.bool = False,
    return_indices: Literal[False] = False,
) -> TensorOrArray:
    """Largest element of each window of (N, C, H, W); on ties the first gets the gradient."""

@overload
def max_pool2d(
    input: TensorOrArray,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: builtins.bool = False,
    *,
    return_indices: Literal[True],
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def max_pool2d_with_indices(
    input: TensorOrArray,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: builtins.bool = False,
    return_indices: Literal[False] = False,
) -> TensorOrArray:
    """`max_pool2d` with its positions."""

@overload
def max_pool2d_with_indices(
    input: TensorOrArray,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: builtins.bool = False,
    *,
    return_indices: Literal[True],
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def max_pool3d(
    input: TensorOrArray,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: builtins.bool = False,
    return_indices: Literal[False] = False,
) -> TensorOrArray:
    """Largest element of each window of (N, C, D, H, W); on ties the first gets the gradient."""

@overload
def max_pool3d(
    input: TensorOrArray,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: builtins.bool = False,
    *,
    return_indices: Literal[True],
) -> builtins.tuple[Tensor, Tensor]: ...
@overload
def max_pool3d_with_indices(
    input: TensorOrArray,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: builtins.bool = False,
    return_indices: Literal[False] = False,
) -> TensorOrArray:
    """`max_pool3d` with its positions."""

@overload
def max_pool3d_with_indices(
    input: TensorOrArray,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: builtins.bool = False,
    *,
    return_indices: Literal[True],
) -> builtins.tuple[Tensor, Tensor]: ...
def max_unpool1d(
    input: TensorLike,
    indices: TensorLike,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sizes = None,
) -> Tensor:
    """Zeros with the elements of (N, C, L) at the `indices` that `max_pool1d` returned."""

def max_unpool2d(
    input: TensorLike,
    indices: TensorLike,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sizes = None,
) -> Tensor:
    """Zeros with the elements of (N, C, H, W) at the `indices` that `max_pool2d` returned."""

def max_unpool3d(
    input: TensorLike,
    indices: TensorLike,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sizes = None,
) -> Tensor:
    """Zeros with the elements of (N, C, D, H, W) at the `indices` that `max_pool3d` returned."""

def mish(input: TensorOrArray, inplace: builtins.bool = False) -> TensorOrArray:
    """x * tanh(softplus(x))."""

def mse_loss(
    input: TensorLike,
    target: TensorLike,
    size_average: builtins.bool | None = None,
    reduce: builtins.bool | None = None,
    reduction: builtins.str = "mean",
    weight: TensorLike | None = None,
) -> Tensor:
    """(input - target)**2, averaged; `weight` multiplies each and then divides the mean."""

def multi_head_attention_forward(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    embed_dim_to_check: builtins.int,
    num_heads: builtins.int,
    in_proj_weight: TensorLike | None,
    in_proj_bias: TensorLike | None,
    bias_k: TensorLike | None,
    bias_v: TensorLike | None,
    add_zero_attn: builtins.bool,
    dropout_p: builtins.float,
    out_proj_weight: TensorLike,
    out_proj_bias: TensorLike | None,
    training: builtins.bool = True,
    key_padding_mask: TensorLike | None = None,
    need_weights: builtins.bool = True,
    attn_mask: TensorLike | None = None,
    use_separate_proj_weight: builtins.bool = False,
    q_proj_weight: TensorLike | None = None,
    k_proj_weight: TensorLike | None = None,
    v_proj_weight: TensorLike | None = None,
    static_k: TensorLike | None = None,
    static_v: TensorLike | None = None,
    average_attn_weights: builtins.bool = True,
    is_causal: builtins.bool = False,
) -> builtins.tuple[Tensor, Tensor | None]:
    """Return the output of `nn.MultiheadAttention` with these weights, and the weights of its attention (or None)."""

def multi_margin_loss(
    input: TensorLike,
    target: TensorLike,
    p: builtins.int = 1,
    margin: builtins.float = 1.0,
    weight: TensorLike | None = None,
    size_average: builtins.bool | None = None,
    reduce: builtins.bool | None = None,
    reduction: builtins.str = "mean",
) -> Tensor:
    """sum over other classes of max(0, margin - x[target] + x[i])**p, divided by the number of classes."""

def multilabel_margin_loss(
    input: TensorLike,
    target: TensorLike,
    size_average: builtins.bool | None = None,
    reduce: builtins.bool | None = None,
    reduction: builtins.str = "mean",
) -> Tensor:
    """sum over targets j and other classes i of max(0, 1 - x[j] + x[i]), divided by the number of classes."""

def multilabel_soft_margin_loss(
    input: TensorLike,
    target: TensorLike,
    weight: TensorLike | None = None,
    size_average: builtins.bool | None = None,
    reduce: builtins.bool | None = None,
    reduction: builtins.str = "mean",
) -> Tensor:
    """Binary cross-entropy of sigmoid(input) for each class, averaged over classes."""

def nll_loss(
    input: TensorLike,
    target: TensorLike,
    weight: TensorLike | None = None,
    size_average: builtins.bool | None = None,
    ignore_index: builtins.int = -100,
    reduce: builtins.bool | None = None,
    reduction: builtins.str = "mean",
) -> Tensor:
    """-input[target] for log-probabilities (N, C), (N, C, ...) or (C,); options as in `cross_entropy`."""

def normalize(
    input: TensorOrArray,
    p: builtins.float = 2.0,
    dim: builtins.int | Sequence[builtins.int] = 1,
    eps: builtins.float = 1e-12,
    out: TensorLike | None = None,
) -> TensorOrArray:
    """x / max(norm of x along `dim`, eps), written to `out` if there is one."""

def one_hot(index: TensorOrArray, num_classes: builtins.int = -1) -> TensorOrArray:
    """Integers to vectors of 0 and a single 1: shape (*index.shape, num_classes), int64."""

def pad(
    x: TensorLike,
    pad: Any,
    mode: builtins.str = "constant",
    value: TensorLike | None = None,
    *,
    constant_values: Any = None,
) -> Tensor:
    """Add a border."""

def pairwise_distance(
    x1: TensorLike, x2: TensorLike, p: builtins.float = 2.0, eps: builtins.float = 1e-06, keepdim: builtins.bool = False
) -> Tensor:
    """|x1 - x2 + eps| in the norm `p`, along the last dimension: row by row."""

def pdist(input: TensorOrArray, p: builtins.float = 2.0) -> TensorOrArray:
    """The distances in the norm `p` of all pairs of rows of (n, d), as `cdist` has them: (n (n - 1) / 2,)."""

def pixel_shuffle(input: TensorOrArray, upscale_factor: builtins.int) -> TensorOrArray:
    """(..., C r r, H, W) to (..., C, H r, W r): blocks of channels become blocks of pixels (Shi et al. 2016)."""

def pixel_unshuffle(input: TensorOrArray, downscale_factor: builtins.int) -> TensorOrArray:
    """(..., C, H r, W r) to (..., C r r, H, W): the inverse of `pixel_shuffle`."""

def poisson_nll_loss(
    input: TensorLike,
    target: TensorLike,
    log_input: builtins.bool = True,
    full: builtins.bool = False,
    size_average: builtins.bool | None = None,
    eps: builtins.float = 1e-08,
    reduce: builtins.bool | None = None,
    reduction: builtins.str = "mean",
) -> Tensor:
    """exp(x) - t x, or x - t log(x + eps) without `log_input`; `full` adds Stirling's term where t > 1."""

def prelu(x: TensorLike, weight: TensorLike) -> Tensor:
    """Leaky relu with a learned slope: one, or one for each channel (dimension 1)."""

def reduce_loss(losses: TensorOrArray, reduction: builtins.str) -> TensorOrArray:
    """Apply `reduction`: "mean", "sum" or "none"."""

def relu(input: TensorOrArray, inplace: builtins.bool = False) -> TensorOrArray:
    """max(x, 0)."""

def relu6(input: TensorOrArray, inplace: builtins.bool = False) -> TensorOrArray:
    """x limited to [0, 6]."""

def relu_(x: TensorOrArray) -> TensorOrArray:
    """`relu`, written into the tensor itself; return it."""

def rms_norm(
    input: TensorOrArray, normalized_shape: Any, weight: TensorLike | None = None, eps: builtins.float | None = None
) -> TensorOrArray:
    """x / sqrt(mean(x**2) + eps) * weight, over the last dimensions (Zhang and Sennrich 2019)."""

def rrelu(
    input: TensorOrArray,
    lower: builtins.float = 0.125,
    upper: builtins.float = 0.3333333333333333,
    training: builtins.bool = False,
    inplace: builtins.bool = False,
) -> TensorOrArray:
    """Leaky relu with slopes drawn from [lower, upper] in training, and their mean otherwise (Xu et al. 2015)."""

def rrelu_(
    input: Tensor,
    lower: builtins.float = 0.125,
    upper: builtins.float = 0.3333333333333333,
    training: builtins.bool = False,
) -> Tensor:
    """`rrelu`, written into the tensor itself; return it."""

def scaled_dot_product_attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    attn_mask: TensorLike | None = None,
    dropout_p: builtins.float = 0.0,
    is_causal: builtins.bool = False,
    scale: builtins.float | None = None,
    enable_gqa: builtins.bool = False,
) -> Tensor:
    """softmax(q kT * scale + mask) v: query (..., L, E), key (..., S, E), value (..., S, V) to (..., L, V)."""

def selu(input: TensorOrArray, inplace: builtins.bool = False) -> TensorOrArray:
    """Scaled elu, whose fixed point has mean 0 and variance 1."""

def selu_(x: TensorOrArray) -> TensorOrArray:
    """`selu`, written into the tensor itself; return it."""

def sigmoid(x: TensorOrArray) -> TensorOrArray:
    """1 / (1 + exp(-x))"""

def silu(input: TensorOrArray, inplace: builtins.bool = False) -> TensorOrArray:
    """x * sigmoid(x)."""

def smooth_l1_loss(
    input: TensorLike,
    target: TensorLike,
    size_average: builtins.bool | None = None,
    reduce: builtins.bool | None = None,
    reduction: builtins.str = "mean",
    beta: builtins.float = 1.0,
) -> Tensor:
    """d**2 / (2 beta) where |d| < beta, else |d| - beta / 2, for d = input - target (Girshick 2015)."""

def soft_margin_loss(
    input: TensorLike,
    target: TensorLike,
    size_average: builtins.bool | None = None,
    reduce: builtins.bool | None = None,
    reduction: builtins.str = "mean",
) -> Tensor:
    """log(1 + exp(-t x)) for targets 1 and -1."""

def softmax(
    input: TensorOrArray, dim: builtins.int | None = None, _stacklevel: builtins.int = 3, dtype: DTypeLike | None = None
) -> TensorOrArray:
    """exp(x) / sum(exp(x)) along `dim`."""

def softmin(
    input: TensorOrArray, dim: builtins.int | None = None, _stacklevel: builtins.int = 3, dtype: DTypeLike | None = None
) -> TensorOrArray:
    """softmax(-x) along `dim`."""

def softplus(x: TensorOrArray, beta: builtins.float = 1.0, threshold: builtins.float | None = None) -> TensorOrArray:
    """log(1 + exp(beta * x)) / beta, exact for x of any size."""

def softshrink(x: TensorOrArray, lambd: builtins.float = 0.5) -> TensorOrArray:
    """x moved towards 0 by `lambd`; 0 where |x| <= `lambd`."""

def softsign(x: TensorOrArray) -> TensorOrArray:
    """x / (1 + |x|)."""

def tanh(x: TensorOrArray) -> TensorOrArray:
    """tanh(x)"""

def tanhshrink(x: TensorOrArray) -> TensorOrArray:
    """x - tanh(x)."""

def threshold(
    input: TensorOrArray, threshold: builtins.float, value: builtins.float, inplace: builtins.bool = False
) -> TensorOrArray:
    """x where it is above `threshold`, else `value`."""

def threshold_(x: TensorOrArray, threshold: builtins.float, value: builtins.float) -> TensorOrArray:
    """`threshold`, written into the tensor itself; return it."""

def triplet_margin_loss(
    anchor: TensorLike,
    positive: TensorLike,
    negative: TensorLike,
    margin: builtins.float = 1.0,
    p: builtins.float = 2,
    eps: builtins.float = 1e-06,
    swap: builtins.bool = False,
    size_average: builtins.bool | None = None,
    reduce: builtins.bool | None = None,
    reduction: builtins.str = "mean",
) -> Tensor:
    """max(0, |a - p| - |a - n| + margin); with `swap`, |p - n| counts where it is less than |a - n|."""

def triplet_margin_with_distance_loss(
    anchor: TensorLike,
    positive: TensorLike,
    negative: TensorLike,
    *,
    distance_function: Callable[[TensorLike, TensorLike], TensorLike] | None = None,
    margin: builtins.float = 1.0,
    swap: builtins.bool = False,
    reduction: builtins.str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with a custom distance function."""

def unfold(
    input: TensorOrArray, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> TensorOrArray:
    """Every window of (N, C, H, W) as a column: (N, C kh kw, positions). PyTorch's `F.unfold`."""

def upsample(
    input: TensorOrArray,
    size: Ints | None = None,
    scale_factor: Any = None,
    mode: builtins.str = "nearest",
    align_corners: builtins.bool | None = None,
) -> TensorOrArray:
    """`interpolate`, under PyTorch's older name."""

def upsample_bilinear(
    input: TensorOrArray, size: Sizes = None, scale_factor: builtins.float | Sequence[builtins.float] | None = None
) -> TensorOrArray:
    """`interpolate` of images with equal corner points, under PyTorch's older name."""

def upsample_nearest(
    input: TensorOrArray, size: Sizes = None, scale_factor: builtins.float | Sequence[builtins.float] | None = None
) -> TensorOrArray:
    """`interpolate` with the nearest pixel, under PyTorch's older name."""
