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
from glassgrad._version import __version__ as __version__
from glassgrad import amp as amp
from glassgrad import autograd as autograd
from glassgrad import checkpoint as checkpoint
from glassgrad import compat as compat
from glassgrad import data as data
from glassgrad import distributed as distributed
from glassgrad import distributions as distributions
from glassgrad import doctor as doctor
from glassgrad import errors as errors
from glassgrad import explanation as explanation
from glassgrad import fft as fft
from glassgrad import func as func
from glassgrad import lessons as lessons
from glassgrad import linalg as linalg
from glassgrad import manual as manual
from glassgrad import models as models
from glassgrad import nn as nn
from glassgrad import onnx as onnx
from glassgrad import optim as optim
from glassgrad import optimize as optimize
from glassgrad import random as random
from glassgrad import report as report
from glassgrad import scalar as scalar
from glassgrad import serialization as serialization
from glassgrad import sklearn as sklearn
from glassgrad import sparse as sparse
from glassgrad import special as special
from glassgrad import train as train
from glassgrad import utils as utils
from glassgrad import verify as verify
from glassgrad.engine.mode import enable_grad as enable_grad
from glassgrad.engine.mode import no_grad as no_grad
from glassgrad.engine.mode import set_grad_enabled as set_grad_enabled
from glassgrad.engine.random import Generator as Generator
from glassgrad.engine.tensor import Tensor as Tensor
from glassgrad.engine.tensors.devices import device as device
from glassgrad.amp import autocast as autocast
from glassgrad.compat import inference_mode as inference_mode
from glassgrad.engine.tensor import Size as Size
from numpy import dtype as dtype
from numpy import iinfo as iinfo
from glassgrad.compile import backward_source as backward_source
from glassgrad.doctor import GradientMonitor as GradientMonitor
from glassgrad.doctor import compute_gradient_norms as compute_gradient_norms
from glassgrad.doctor import debug_training as debug_training
from glassgrad.explanation import draw as draw
from glassgrad.explanation import explain as explain
from glassgrad.func import vmap as vmap
from glassgrad.report import plot_activations as plot_activations
from glassgrad.report import plot_gradient_flow as plot_gradient_flow
from glassgrad.report import plot_gradient_histograms as plot_gradient_histograms
from glassgrad.report import plot_statistics as plot_statistics
from glassgrad.report import plot_total_norm as plot_total_norm
from glassgrad.report import visualize_gradient_flow as visualize_gradient_flow
from glassgrad.sparse import sparse_coo_tensor as sparse_coo_tensor
from glassgrad.sparse import spmm as spmm

bfloat16: np.dtype[Any]

from glassgrad.compile.api import Compiled as _Compiled
from glassgrad.compile.source.document import Source

_P = ParamSpec("_P")
_R = TypeVar("_R")

class _Compile:
    Compiled = _Compiled
    compile: _Compile

    @staticmethod
    def backward_source(
        function: Callable[..., Any], *, simplify: builtins.bool = False, loops: builtins.bool = True
    ) -> Callable[..., Source]:
        """Compile a function, typically a whole training step, into one program. Also a decorator."""
    @overload
    def __call__(
        self,
        function: Callable[_P, _R],
        *,
        backend: builtins.str = "auto",
        verify: builtins.bool = False,
        threads: builtins.int | None = None,
        keep_grads: builtins.bool = True,
        strict: builtins.bool = False,
        memory: builtins.str | builtins.int | None = None,
        **hints: Any,
    ) -> _Compiled[_P, _R]: ...
    @overload
    def __call__(
        self,
        *,
        backend: builtins.str = "auto",
        verify: builtins.bool = False,
        threads: builtins.int | None = None,
        keep_grads: builtins.bool = True,
        strict: builtins.bool = False,
        memory: builtins.str | builtins.int | None = None,
        **hints: Any,
    ) -> Callable[[Callable[_P, _R]], _Compiled[_P, _R]]: ...

compile: _Compile

BoolTensor: Any
ByteTensor: Any
DoubleTensor: Any
FloatTensor: Any
HalfTensor: Any
IntTensor: Any
LongTensor: Any

def abs(x: TensorOrArray) -> TensorOrArray:
    """|x|"""

def abs_(x: TensorOrArray) -> TensorOrArray:
    """`abs`, written into the tensor itself; return it."""

def absolute(x: TensorOrArray) -> TensorOrArray:
    """|x|"""

def absolute_(x: TensorOrArray) -> TensorOrArray:
    """`absolute`, written into the tensor itself; return it."""

accelerator: Any

def acos(x: TensorOrArray) -> TensorOrArray:
    """arccos(x)"""

def acos_(x: TensorOrArray) -> TensorOrArray:
    """`acos`, written into the tensor itself; return it."""

def acosh(x: TensorOrArray) -> TensorOrArray:
    """arccosh(x)"""

def acosh_(x: TensorOrArray) -> TensorOrArray:
    """`acosh`, written into the tensor itself; return it."""

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
def adaptive_max_pool2d(
    input: TensorOrArray, output_size: Sizes, return_indices: Literal[False] = False
) -> TensorOrArray:
    """Largest element of about equal parts of (N, C, H, W), as many as `output_size`; None keeps an axis."""

@overload
def adaptive_max_pool2d(
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
def add(x: TensorLike, other: TensorLike, *, alpha: builtins.float = 1) -> Tensor:
    """x + alpha * other."""

def add_(x: TensorLike, other: TensorLike, *, alpha: builtins.float = 1) -> Tensor:
    """`add`, written into the tensor itself; return it."""

def addbmm(
    x: TensorLike, a: TensorLike, b: TensorLike, *, beta: builtins.float = 1, alpha: builtins.float = 1
) -> Tensor:
    """beta x + alpha times the sum of the products of a batch: (batch, n, k) and (batch, k, m) to (n, m)."""

def addbmm_(
    x: TensorLike, a: TensorLike, b: TensorLike, *, beta: builtins.float = 1, alpha: builtins.float = 1
) -> Tensor:
    """`addbmm`, written into the tensor itself; return it."""

def addcdiv(x: TensorLike, tensor1: TensorLike, tensor2: TensorLike, *, value: builtins.float = 1) -> Tensor:
    """x + value * tensor1 / tensor2."""

def addcdiv_(x: TensorLike, tensor1: TensorLike, tensor2: TensorLike, *, value: builtins.float = 1) -> Tensor:
    """`addcdiv`, written into the tensor itself; return it."""

def addcmul(x: TensorLike, tensor1: TensorLike, tensor2: TensorLike, *, value: builtins.float = 1) -> Tensor:
    """x + value * tensor1 * tensor2."""

def addcmul_(x: TensorLike, tensor1: TensorLike, tensor2: TensorLike, *, value: builtins.float = 1) -> Tensor:
    """`addcmul`, written into the tensor itself; return it."""

def addmm(
    x: TensorLike, a: TensorLike, b: TensorLike, *, beta: builtins.float = 1, alpha: builtins.float = 1
) -> Tensor:
    """beta x + alpha (a @ b) for two matrices."""

def addmm_(
    x: TensorLike, a: TensorLike, b: TensorLike, *, beta: builtins.float = 1, alpha: builtins.float = 1
) -> Tensor:
    """`addmm`, written into the tensor itself; return it."""

def addmv(
    x: TensorLike, a: TensorLike, b: TensorLike, *, beta: builtins.float = 1, alpha: builtins.float = 1
) -> Tensor:
    """beta x + alpha (a @ b) for a matrix a and a vector b."""

def addmv_(
    x: TensorLike, a: TensorLike, b: TensorLike, *, beta: builtins.float = 1, alpha: builtins.float = 1
) -> Tensor:
    """`addmv`, written into the tensor itself; return it."""

def addr(
    x: TensorLike, vec1: TensorLike, vec2: TensorLike, *, beta: builtins.float = 1, alpha: builtins.float = 1
) -> Tensor:
    """beta x + alpha times the outer product of two vectors."""

def addr_(
    x: TensorLike, vec1: TensorLike, vec2: TensorLike, *, beta: builtins.float = 1, alpha: builtins.float = 1
) -> Tensor:
    """`addr`, written into the tensor itself; return it."""

def adjoint(x: TensorOrArray) -> TensorOrArray:
    """The conjugate transpose of (..., n, m): shape (..., m, n)."""

def affine_grid(
    theta: TensorOrArray, size: Sequence[builtins.int], align_corners: builtins.bool | None = None
) -> TensorOrArray:
    """The places (N, H, W, 2) to which affine maps `theta` (N, 2, 3) send the pixels of images of `size` (N, C, H, W)."""

def airy_ai(x: TensorOrArray) -> TensorOrArray:
    """Airy's function Ai(x)"""

def alias_copy(x: TensorOrArray) -> TensorOrArray:
    """A copy, as `clone` makes it."""

@overload
def all(x: TensorOrArray, dim: Ints | None = None, keepdim: builtins.bool = False) -> TensorOrArray:
    """Whether all elements are true; with `dim=()`, whether each is."""

@overload
def all(x: TensorOrArray, *, axis: Ints | None = None, keepdims: builtins.bool = False) -> TensorOrArray: ...
def allclose(
    x: TensorLike,
    other: TensorLike,
    rtol: builtins.float = 1e-05,
    atol: builtins.float = 1e-08,
    equal_nan: builtins.bool = False,
) -> builtins.bool:
    """Whether all elements are close; see `isclose`."""

def alpha_dropout(
    input: TensorOrArray, p: builtins.float = 0.5, training: builtins.bool = False, inplace: builtins.bool = False
) -> TensorOrArray:
    """Dropout for SELU: sets to its floor and rescales, so that mean and variance stay (Klambauer et al. 2017)."""

@overload
def amax(x: TensorOrArray, dim: Ints | None = None, keepdim: builtins.bool = False) -> TensorOrArray:
    """Largest element over `dim`; ties share the gradient equally."""

@overload
def amax(x: TensorOrArray, *, axis: Ints | None = None, keepdims: builtins.bool = False) -> TensorOrArray: ...
@overload
def amin(x: TensorOrArray, dim: Ints | None = None, keepdim: builtins.bool = False) -> TensorOrArray:
    """Smallest element over `dim`; ties share the gradient equally."""

@overload
def amin(x: TensorOrArray, *, axis: Ints | None = None, keepdims: builtins.bool = False) -> TensorOrArray: ...
@overload
def aminmax(
    x: TensorOrArray, dim: Ints | None = None, keepdim: builtins.bool = False
) -> builtins.tuple[Tensor, Tensor]:
    """The smallest and the largest element over `dim`."""

@overload
def aminmax(
    x: TensorOrArray, *, axis: Ints | None = None, keepdims: builtins.bool = False
) -> builtins.tuple[Tensor, Tensor]: ...
def angle(x: TensorOrArray) -> TensorOrArray:
    """Argument of a complex number, between -pi and pi; 0 or pi for a real number."""

@overload
def any(x: TensorOrArray, dim: Ints | None = None, keepdim: builtins.bool = False) -> TensorOrArray:
    """Whether any element is true; with `dim=()`, whether each is."""

@overload
def any(x: TensorOrArray, *, axis: Ints | None = None, keepdims: builtins.bool = False) -> TensorOrArray: ...
def arange(
    start: Number,
    end: Number | None = None,
    step: Number = 1,
    *,
    dtype: DTypeLike | None = None,
    requires_grad: builtins.bool = False,
    device: Device = None,
) -> Tensor:
    """Numbers from `start` to `end`, without `end`; int64 if all are integers."""

def arccos(x: TensorOrArray) -> TensorOrArray:
    """arccos(x)"""

def arccos_(x: TensorOrArray) -> TensorOrArray:
    """`arccos`, written into the tensor itself; return it."""

def arccosh(x: TensorOrArray) -> TensorOrArray:
    """arccosh(x)"""

def arccosh_(x: TensorOrArray) -> TensorOrArray:
    """`arccosh`, written into the tensor itself; return it."""

def arcsin(x: TensorOrArray) -> TensorOrArray:
    """arcsin(x)"""

def arcsin_(x: TensorOrArray) -> TensorOrArray:
    """`arcsin`, written into the tensor itself; return it."""

def arcsinh(x: TensorOrArray) -> TensorOrArray:
    """arcsinh(x)"""

def arcsinh_(x: TensorOrArray) -> TensorOrArray:
    """`arcsinh`, written into the tensor itself; return it."""

def arctan(x: TensorOrArray) -> TensorOrArray:
    """arctan(x)"""

def arctan2(x: TensorLike, other: TensorLike) -> Tensor:
    """angle of the point (b, a)"""

def arctan2_(x: TensorLike, other: TensorLike) -> Tensor:
    """`arctan2`, written into the tensor itself; return it."""

def arctan_(x: TensorOrArray) -> TensorOrArray:
    """`arctan`, written into the tensor itself; return it."""

def arctanh(x: TensorOrArray) -> TensorOrArray:
    """arctanh(x)"""

def arctanh_(x: TensorOrArray) -> TensorOrArray:
    """`arctanh`, written into the tensor itself; return it."""

@overload
def argmax(x: TensorOrArray, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> TensorOrArray:
    """Index of the largest element along `dim`, or in the flattened array without it; no gradient."""

@overload
def argmax(x: TensorOrArray, *, axis: builtins.int | None = None, keepdims: builtins.bool = False) -> TensorOrArray: ...
@overload
def argmin(x: TensorOrArray, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> TensorOrArray:
    """Index of the smallest element along `dim`, or in the flattened array without it; no gradient."""

@overload
def argmin(x: TensorOrArray, *, axis: builtins.int | None = None, keepdims: builtins.bool = False) -> TensorOrArray: ...
@overload
def argsort(
    x: TensorOrArray, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = False
) -> TensorOrArray:
    """The positions that would sort x along `dim`."""

@overload
def argsort(
    x: TensorOrArray, *, axis: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = False
) -> TensorOrArray: ...
def argwhere(x: TensorOrArray) -> TensorOrArray:
    """The indices where x is not zero: shape (count, ndim)."""

def around(x: TensorOrArray, decimals: builtins.int = 0) -> TensorOrArray:
    """Round to `decimals` places, ties to even. The gradient is 0."""

@overload
def array_split(
    x: TensorOrArray, indices_or_sections: Ints | TensorLike, dim: builtins.int = 0
) -> builtins.tuple[Tensor, ...]:
    """Split along `dim` into nearly equal sections, or before each of the given indices: NumPy's `array_split`."""

@overload
def array_split(
    x: TensorOrArray, indices_or_sections: Ints | TensorLike, *, axis: builtins.int = 0
) -> builtins.tuple[Tensor, ...]: ...
def as_strided(x: TensorOrArray, size: Ints, stride: Ints, storage_offset: builtins.int | None = None) -> TensorOrArray:
    """The elements `stride` apart in memory, starting at `storage_offset`; read-only, with a gradient."""

def as_strided_copy(
    x: TensorOrArray, size: Ints | None, stride: Ints | None, storage_offset: builtins.int | None = None
) -> TensorOrArray:
    """`as_strided` with memory of its own."""

def as_strided_scatter(
    x: TensorLike,
    src: TensorLike,
    size: Sequence[builtins.int],
    stride: Sequence[builtins.int],
    storage_offset: builtins.int | None = None,
) -> Tensor:
    """x with `src` at the elements that lie `stride` apart, in the order of x, from `storage_offset` on."""

def as_tensor(data: Any, dtype: DTypeLike | None = None, device: Device = None) -> Tensor:
    """Return `data` as a Tensor, sharing memory where possible."""

def asarray(
    obj: Any,
    *,
    dtype: DTypeLike | None = None,
    device: Device = None,
    copy: builtins.bool | None = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """Convert data to a tensor; `copy=True` never shares its memory, `copy=False` raises if a copy is needed."""

def asin(x: TensorOrArray) -> TensorOrArray:
    """arcsin(x)"""

def asin_(x: TensorOrArray) -> TensorOrArray:
    """`asin`, written into the tensor itself; return it."""

def asinh(x: TensorOrArray) -> TensorOrArray:
    """arcsinh(x)"""

def asinh_(x: TensorOrArray) -> TensorOrArray:
    """`asinh`, written into the tensor itself; return it."""

def astype(x: TensorOrArray, dtype: DTypeLike | None) -> TensorOrArray:
    """Return `x` in another dtype; `x` itself if it already has that dtype."""

def at_add(x: TensorLike, index: Any, value: TensorLike | None) -> Tensor:
    """x with `value` added at an index; repeated places accumulate."""

def at_set(x: TensorLike, index: Any, value: TensorLike | None) -> Tensor:
    """A copy of x after x[index] = value."""

def atan(x: TensorOrArray) -> TensorOrArray:
    """arctan(x)"""

def atan2(x: TensorLike, other: TensorLike) -> Tensor:
    """angle of the point (b, a)"""

def atan2_(x: TensorLike, other: TensorLike) -> Tensor:
    """`atan2`, written into the tensor itself; return it."""

def atan_(x: TensorOrArray) -> TensorOrArray:
    """`atan`, written into the tensor itself; return it."""

def atanh(x: TensorOrArray) -> TensorOrArray:
    """arctanh(x)"""

def atanh_(x: TensorOrArray) -> TensorOrArray:
    """`atanh`, written into the tensor itself; return it."""

@overload
def atleast_1d(_x: TensorLike) -> Tensor:
    """x with at least one dimension; a tuple for several tensors or a list of them."""

@overload
def atleast_1d(_x: TensorLike, *tensors: TensorLike) -> builtins.tuple[Tensor, ...]: ...
@overload
def atleast_2d(_x: TensorLike) -> Tensor:
    """x with at least two dimensions, new ones first; a tuple for several tensors or a list of them."""

@overload
def atleast_2d(_x: TensorLike, *tensors: TensorLike) -> builtins.tuple[Tensor, ...]: ...
@overload
def atleast_3d(_x: TensorLike) -> Tensor:
    """x with at least three dimensions: (1, n, 1) from a vector, (m, n, 1) from a matrix; a tuple for several."""

@overload
def atleast_3d(_x: TensorLike, *tensors: TensorLike) -> builtins.tuple[Tensor, ...]: ...
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

backends: Any

def baddbmm(
    x: TensorLike, a: TensorLike, b: TensorLike, *, beta: builtins.float = 1, alpha: builtins.float = 1
) -> Tensor:
    """beta x + alpha (a @ b) for batches of matrices (batch, n, k) and (batch, k, m)."""

def baddbmm_(
    x: TensorLike, a: TensorLike, b: TensorLike, *, beta: builtins.float = 1, alpha: builtins.float = 1
) -> Tensor:
    """`baddbmm`, written into the tensor itself; return it."""

def bartlett_window(
    window_length: builtins.int,
    periodic: builtins.bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: Device = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """1 - |2 n / N - 1|: a triangle."""

def bernoulli(input: TensorLike, *, generator: Generator | None = None) -> Tensor:
    """1 with probability `input` elementwise, else 0, in the dtype of `input`."""

def bernoulli_(x: Tensor, p: builtins.float = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Write 1 with probability p, else 0; return x."""

def bessel_j0(x: TensorOrArray) -> TensorOrArray:
    """Bessel function J0(x)"""

def bessel_j1(x: TensorOrArray) -> TensorOrArray:
    """Bessel function J1(x)"""

def bessel_y0(x: TensorOrArray) -> TensorOrArray:
    """Bessel function Y0(x)"""

def bessel_y1(x: TensorOrArray) -> TensorOrArray:
    """Bessel function Y1(x)"""

def betainc(a: TensorLike, b: TensorLike, x: TensorLike) -> Tensor:
    """Regularised incomplete beta function I_x(a, b); only `x` has a gradient."""

def bilinear(input1: TensorLike, input2: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
    """x1T w[k] x2 + b[k]: (..., in1) and (..., in2) with weights (out, in1, in2) to (..., out)."""

def bincount(x: TensorOrArray, weights: TensorLike | None = None, minlength: builtins.int = 0) -> TensorOrArray:
    """Count each of the integers 0, 1, ... in x, or sum its `weights`, which get gradients."""

def binomial(count: TensorLike, prob: TensorLike, generator: Generator | None = None) -> Tensor:
    """Numbers of successes in `count` trials of probability `prob`, in the dtype of `count`."""

def bitwise_and(x: TensorLike, other: TensorLike) -> Tensor:
    """a & b"""

def bitwise_and_(x: TensorLike, other: TensorLike) -> Tensor:
    """`bitwise_and`, written into the tensor itself; return it."""

def bitwise_invert(x: TensorOrArray) -> TensorOrArray:
    """~x"""

def bitwise_left_shift(x: TensorLike, other: TensorLike) -> Tensor:
    """a << b"""

def bitwise_left_shift_(x: TensorLike, other: TensorLike) -> Tensor:
    """`bitwise_left_shift`, written into the tensor itself; return it."""

def bitwise_not(x: TensorOrArray) -> TensorOrArray:
    """~x"""

def bitwise_not_(x: TensorOrArray) -> TensorOrArray:
    """`bitwise_not`, written into the tensor itself; return it."""

def bitwise_or(x: TensorLike, other: TensorLike) -> Tensor:
    """a | b"""

def bitwise_or_(x: TensorLike, other: TensorLike) -> Tensor:
    """`bitwise_or`, written into the tensor itself; return it."""

def bitwise_right_shift(x: TensorLike, other: TensorLike) -> Tensor:
    """a >> b"""

def bitwise_right_shift_(x: TensorLike, other: TensorLike) -> Tensor:
    """`bitwise_right_shift`, written into the tensor itself; return it."""

def bitwise_xor(x: TensorLike, other: TensorLike) -> Tensor:
    """a ^ b"""

def bitwise_xor_(x: TensorLike, other: TensorLike) -> Tensor:
    """`bitwise_xor`, written into the tensor itself; return it."""

def blackman_window(
    window_length: builtins.int,
    periodic: builtins.bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: Device = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)."""

def block_diag(*tensors: TensorLike) -> Tensor:
    """One matrix with the given ones along its diagonal and zeros elsewhere; vectors and numbers count as rows."""

def bmm(a: TensorLike, b: TensorLike) -> Tensor:
    """Products of matrices: (batch, n, k) and (batch, k, m) to (batch, n, m)."""

bool: np.dtype[np.bool]
bool_: np.dtype[np.bool]

def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that arrays of these shapes broadcast to."""

def broadcast_tensors(*tensors: Tensors) -> builtins.tuple[Tensor, ...]:
    """Broadcast all tensors to their common shape."""

def broadcast_to(x: TensorOrArray, size: Sequence[builtins.int]) -> TensorOrArray:
    """Broadcast `x` to the shape `size`."""

def bucketize(
    x: TensorLike, boundaries: TensorLike, *, out_int32: builtins.bool = False, right: builtins.bool = False
) -> Tensor:
    """The index of the interval between `boundaries` that each element of x lies in."""

from numpy import can_cast as can_cast

def cartesian_prod(*tensors: Tensors) -> Tensor:
    """The Cartesian product of vectors, (n, number of vectors)."""

@overload
def cat(tensors: Sequence[TensorLike], dim: builtins.int = 0) -> Tensor:
    """Join along an existing dimension."""

@overload
def cat(tensors: Sequence[TensorLike], *, axis: builtins.int = 0) -> Tensor: ...
def cauchy_(
    x: Tensor, median: builtins.float = 0.0, sigma: builtins.float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Write numbers with Cauchy's distribution of this median and half width; return x."""

def cdist(x1: TensorLike, x2: TensorLike, p: builtins.float = 2.0, compute_mode: builtins.str | None = None) -> Tensor:
    """Distances between rows: (..., n, d) and (..., m, d) to (..., n, m), in the norm `p`."""

def ceil(x: TensorOrArray) -> TensorOrArray:
    """smallest integer >= x"""

def ceil_(x: TensorOrArray) -> TensorOrArray:
    """`ceil`, written into the tensor itself; return it."""

def celu(x: TensorOrArray, alpha: builtins.float = 1.0) -> TensorOrArray:
    """x where it is positive, else alpha * (exp(x / alpha) - 1)."""

def celu_(x: TensorOrArray, alpha: builtins.float = 1.0) -> TensorOrArray:
    """`celu`, written into the tensor itself; return it."""

cfloat: np.dtype[np.complex64]

def chain_matmul(*matrices: TensorLike) -> Tensor:
    """Product of several matrices in the cheapest order (`linalg.multi_dot`)."""

def channel_shuffle(input: TensorOrArray, groups: builtins.int) -> TensorOrArray:
    """Channels (N, C, ...) in another order: the first of each of `groups` groups, the second of each, and so on."""

channels_last: builtins.str

def chebyshev_polynomial_t(input: TensorLike, n: TensorLike) -> Tensor:
    """Chebyshev t polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""

def chebyshev_polynomial_u(input: TensorLike, n: TensorLike) -> Tensor:
    """Chebyshev u polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""

def chebyshev_polynomial_v(input: TensorLike, n: TensorLike) -> Tensor:
    """Chebyshev v polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""

def chebyshev_polynomial_w(input: TensorLike, n: TensorLike) -> Tensor:
    """Chebyshev w polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""

def cholesky(x: TensorOrArray, upper: builtins.bool = False) -> TensorOrArray:
    """The lower triangular y with y yT = x for a positive definite (..., n, n); with `upper` its transpose."""

def cholesky_ex(x: TensorOrArray, *, upper: builtins.bool = False, check_errors: builtins.bool = False) -> CholeskyInfo:
    """`cholesky` that does not raise: NaN and `info` above 0 for a matrix that is not positive definite."""

def cholesky_inverse(L: TensorOrArray, upper: builtins.bool = False) -> TensorOrArray:
    """The inverse of L LH, or of UH U for an upper factor."""

def cholesky_solve(b: TensorLike, L: TensorLike, upper: builtins.bool = False) -> Tensor:
    """The x with L LH x = b, or with UH U x = b for an upper factor: L (..., n, n), b (..., n, k)."""

@overload
def chunk(x: TensorOrArray, chunks: builtins.int, dim: builtins.int = 0) -> builtins.tuple[Tensor, ...]:
    """Split into at most `chunks` pieces along `dim`, equal but for a smaller last one."""

@overload
def chunk(x: TensorOrArray, chunks: builtins.int, *, axis: builtins.int = 0) -> builtins.tuple[Tensor, ...]: ...
def clamp(x: TensorLike, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """Limit `x` to [`min`, `max`]; either may be None, a number or a tensor."""

def clamp_(x: TensorLike, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """`clamp`, written into the tensor itself; return it."""

def clamp_max(x: TensorLike, max: TensorLike | None) -> Tensor:
    """Limit x from above."""

def clamp_max_(x: TensorLike, max: TensorLike | None) -> Tensor:
    """`clamp_max`, written into the tensor itself; return it."""

def clamp_min(x: TensorLike, min: TensorLike | None) -> Tensor:
    """Limit x from below."""

def clamp_min_(x: TensorLike, min: TensorLike | None) -> Tensor:
    """`clamp_min`, written into the tensor itself; return it."""

def clip(x: TensorLike, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """Limit `x` to [`min`, `max`]; either may be None, a number or a tensor."""

def clip_(x: TensorLike, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """`clip`, written into the tensor itself; return it."""

def clone(x: TensorOrArray, *, memory_format: builtins.str | None = None) -> TensorOrArray:
    """Return a copy through which gradients flow to `x`."""

def col2im(
    input: TensorOrArray, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> TensorOrArray:
    """Add columns (N, C kh kw, positions) at the windows of an image of `output_size`. PyTorch's `F.fold`."""

def column_stack(tensors: Sequence[TensorLike]) -> Tensor:
    """Join side by side: vectors become columns."""

def combinations(input: TensorLike, r: builtins.int = 2, with_replacement: builtins.bool = False) -> Tensor:
    """All combinations of `r` elements of a vector, in order, (n, r)."""

compiler: Any

def complex(real: TensorLike, imag: TensorLike) -> Tensor:
    """real + i imag, from two real tensors that broadcast; gradients flow to both."""

complex128: np.dtype[np.complex128]
complex64: np.dtype[np.complex64]

@overload
def concat(tensors: Sequence[TensorLike], dim: builtins.int = 0) -> Tensor:
    """Join along an existing dimension."""

@overload
def concat(tensors: Sequence[TensorLike], *, axis: builtins.int = 0) -> Tensor: ...
@overload
def concatenate(tensors: Sequence[TensorLike], dim: builtins.int = 0) -> Tensor:
    """Join along an existing dimension."""

@overload
def concatenate(tensors: Sequence[TensorLike], *, axis: builtins.int = 0) -> Tensor: ...
def conj(x: TensorOrArray) -> TensorOrArray:
    """Complex conjugate."""

def conj_physical(x: TensorOrArray) -> TensorOrArray:
    """Complex conjugate."""

def conj_physical_(x: TensorOrArray) -> TensorOrArray:
    """`conj_physical`, written into the tensor itself; return it."""

def constant_pad_nd(x: TensorOrArray, pad: Sequence[builtins.int], value: builtins.float = 0) -> TensorOrArray:
    """`pad` with a constant: widths before and after for the last dimension, then the one before it, and so on."""

contiguous_format: builtins.str

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

def copy(x: TensorOrArray, *, memory_format: builtins.str | None = None) -> TensorOrArray:
    """Return a copy through which gradients flow to `x`."""

def copy_(x: Tensor, src: TensorLike, non_blocking: builtins.bool = False) -> Tensor:
    """Write the values of `src`, which broadcasts; return x."""

def copysign(x: TensorLike, other: TensorLike) -> Tensor:
    """|a| with the sign of b"""

def copysign_(x: TensorLike, other: TensorLike) -> Tensor:
    """`copysign`, written into the tensor itself; return it."""

def corrcoef(x: TensorOrArray) -> TensorOrArray:
    """Pearson's correlations of the rows of (variables, observations): `cov` divided by both standard deviations."""

def cos(x: TensorOrArray) -> TensorOrArray:
    """cos(x)"""

def cos_(x: TensorOrArray) -> TensorOrArray:
    """`cos`, written into the tensor itself; return it."""

def cosh(x: TensorOrArray) -> TensorOrArray:
    """cosh(x)"""

def cosh_(x: TensorOrArray) -> TensorOrArray:
    """`cosh`, written into the tensor itself; return it."""

def cosine_similarity(x1: TensorLike, x2: TensorLike, dim: builtins.int = 1, eps: builtins.float = 1e-08) -> Tensor:
    """x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along `dim`; the other dimensions broadcast."""

@overload
def count_nonzero(x: TensorOrArray, dim: Ints | None = None) -> TensorOrArray:
    """The number of elements that are not zero."""

@overload
def count_nonzero(x: TensorOrArray, *, axis: Ints | None = None) -> TensorOrArray: ...
@overload
def cov(
    x: TensorOrArray,
    *,
    correction: builtins.int = 1,
    fweights: TensorLike | None = None,
    aweights: TensorLike | None = None,
) -> TensorOrArray:
    """Covariances of the rows of (variables, observations), with the divisor observations - `correction`."""

@overload
def cov(
    x: TensorOrArray, *, ddof: builtins.int = 1, fweights: TensorLike | None = None, aweights: TensorLike | None = None
) -> TensorOrArray: ...

cpu: Any

@overload
def cross(a: TensorLike, b: TensorLike, dim: builtins.int = -1) -> Tensor:
    """Cross product of vectors of 3 along `dim`."""

@overload
def cross(a: TensorLike, b: TensorLike, *, axis: builtins.int = -1) -> Tensor: ...

cuda: Any

@overload
def cummax(x: TensorOrArray, dim: builtins.int) -> Extreme:
    """The largest element so far along `dim`, and where it is."""

@overload
def cummax(x: TensorOrArray, *, axis: builtins.int) -> Extreme: ...
@overload
def cummin(x: TensorOrArray, dim: builtins.int) -> Extreme:
    """The smallest element so far along `dim`, and where it is."""

@overload
def cummin(x: TensorOrArray, *, axis: builtins.int) -> Extreme: ...
@overload
def cumprod(x: TensorOrArray, dim: builtins.int | None = None, *, dtype: DTypeLike | None = None) -> TensorOrArray:
    """y[i] = x[0] * ... * x[i] along `dim`, or over the flattened tensor. Zeros have exact derivatives."""

@overload
def cumprod(x: TensorOrArray, *, axis: builtins.int | None = None, dtype: DTypeLike | None = None) -> TensorOrArray: ...
@overload
def cumprod_(x: TensorOrArray, dim: builtins.int | None = None, *, dtype: DTypeLike | None = None) -> TensorOrArray:
    """`cumprod`, written into the tensor itself; return it."""

@overload
def cumprod_(
    x: TensorOrArray, *, axis: builtins.int | None = None, dtype: DTypeLike | None = None
) -> TensorOrArray: ...
@overload
def cumsum(x: TensorOrArray, dim: builtins.int | None = None, *, dtype: DTypeLike | None = None) -> TensorOrArray:
    """y[i] = x[0] + ... + x[i] along `dim`, or over the flattened tensor."""

@overload
def cumsum(x: TensorOrArray, *, axis: builtins.int | None = None, dtype: DTypeLike | None = None) -> TensorOrArray: ...
@overload
def cumsum_(x: TensorOrArray, dim: builtins.int | None = None, *, dtype: DTypeLike | None = None) -> TensorOrArray:
    """`cumsum`, written into the tensor itself; return it."""

@overload
def cumsum_(x: TensorOrArray, *, axis: builtins.int | None = None, dtype: DTypeLike | None = None) -> TensorOrArray: ...
@overload
def cumulative_prod(
    x: TensorOrArray, dim: builtins.int | None = None, *, dtype: DTypeLike | None = None
) -> TensorOrArray:
    """y[i] = x[0] * ... * x[i] along `dim`, or over the flattened tensor. Zeros have exact derivatives."""

@overload
def cumulative_prod(
    x: TensorOrArray, *, axis: builtins.int | None = None, dtype: DTypeLike | None = None
) -> TensorOrArray: ...
@overload
def cumulative_sum(
    x: TensorOrArray, dim: builtins.int | None = None, *, dtype: DTypeLike | None = None
) -> TensorOrArray:
    """y[i] = x[0] + ... + x[i] along `dim`, or over the flattened tensor."""

@overload
def cumulative_sum(
    x: TensorOrArray, *, axis: builtins.int | None = None, dtype: DTypeLike | None = None
) -> TensorOrArray: ...
@overload
def cumulative_trapezoid(
    y: TensorOrArray, x: TensorLike | None = None, *, dx: builtins.float = 1.0, dim: builtins.int = -1
) -> TensorOrArray:
    """`trapezoid` up to each point after the first one: one element less along `dim`."""

@overload
def cumulative_trapezoid(
    y: TensorOrArray, x: TensorLike | None = None, *, dx: builtins.float = 1.0, axis: builtins.int = -1
) -> TensorOrArray: ...

default_generator: Generator

def deg2rad(x: TensorOrArray) -> TensorOrArray:
    """Degrees to radians."""

def deg2rad_(x: TensorOrArray) -> TensorOrArray:
    """`deg2rad`, written into the tensor itself; return it."""

def degrees(x: TensorOrArray) -> TensorOrArray:
    """Radians to degrees."""

def det(x: TensorOrArray) -> TensorOrArray:
    """determinant of x"""

def detach(input: TensorLike) -> Tensor:
    """Return the same values, detached."""

def detach_(x: Tensor) -> Tensor:
    """Detach the tensor from its history; return it."""

def detach_copy(x: TensorOrArray) -> TensorOrArray:
    """`detach` with memory of its own."""

def diag(x: TensorOrArray, diagonal: builtins.int = 0) -> TensorOrArray:
    """A vector as the diagonal of a matrix, or the diagonal of a matrix as a vector."""

def diag_embed(
    x: TensorOrArray, offset: builtins.int = 0, dim1: builtins.int = -2, dim2: builtins.int = -1
) -> TensorOrArray:
    """The last dimension as the diagonal of a square matrix in the dimensions `dim1` and `dim2` of the result."""

def diagflat(x: TensorOrArray, offset: builtins.int = 0) -> TensorOrArray:
    """All elements as the diagonal of a matrix."""

def diagonal(
    x: TensorOrArray, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1
) -> TensorOrArray:
    """The diagonal of two dimensions, as the new last dimension: a view."""

def diagonal_copy(
    x: TensorOrArray, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1
) -> TensorOrArray:
    """`diagonal` with memory of its own."""

def diagonal_scatter(
    x: TensorLike, src: TensorLike, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1
) -> Tensor:
    """x with `src` as the diagonal of two dimensions."""

@overload
def diff(
    x: TensorOrArray,
    n: builtins.int = 1,
    dim: builtins.int = -1,
    prepend: TensorLike | None = None,
    append: TensorLike | None = None,
) -> TensorOrArray:
    """x[i+1] - x[i] along `dim`, `n` times, after joining `prepend` and `append` to the ends of x."""

@overload
def diff(
    x: TensorOrArray,
    n: builtins.int = 1,
    *,
    axis: builtins.int = -1,
    prepend: TensorLike | None = None,
    append: TensorLike | None = None,
) -> TensorOrArray: ...
def digamma(x: TensorOrArray) -> TensorOrArray:
    """Gamma'(x) / Gamma(x)"""

def digamma_(x: TensorOrArray) -> TensorOrArray:
    """`digamma`, written into the tensor itself; return it."""

def dist(x: TensorLike, other: TensorLike, p: Any = 2) -> Tensor:
    """The norm of x - other."""

def div(x: TensorLike, other: TensorLike, *, rounding_mode: builtins.str | None = None) -> Tensor:
    """x / other; `rounding_mode` "floor" or "trunc" rounds the quotient, whose gradient is then 0."""

def div_(x: TensorLike, other: TensorLike, *, rounding_mode: builtins.str | None = None) -> Tensor:
    """`div`, written into the tensor itself; return it."""

def divide(x: TensorLike, other: TensorLike, *, rounding_mode: builtins.str | None = None) -> Tensor:
    """x / other; `rounding_mode` "floor" or "trunc" rounds the quotient, whose gradient is then 0."""

def divide_(x: TensorLike, other: TensorLike, *, rounding_mode: builtins.str | None = None) -> Tensor:
    """`divide`, written into the tensor itself; return it."""

def dot(a: TensorLike, b: TensorLike) -> Tensor:
    """Inner product of two vectors. NumPy's `np.dot` also multiplies matrices; here `matmul` does."""

double: np.dtype[np.float64]

def dropout(
    input: TensorOrArray,
    p: builtins.float = 0.5,
    training: builtins.bool = True,
    inplace: builtins.bool = False,
    *,
    generator: Generator | None = None,
) -> TensorOrArray:
    """Zero each element with probability `p` and scale the rest by 1/(1-p), in training only (Hinton et al. 2012)."""

def dsplit(x: TensorOrArray, indices_or_sections: Ints | TensorLike) -> builtins.tuple[Tensor, ...]:
    """Split along the third dimension into equal parts, or before each of the given indices."""

def dstack(tensors: Sequence[TensorLike]) -> Tensor:
    """Join along a third dimension."""

e: builtins.float

def eig(x: TensorOrArray) -> EigResult:
    """Eigenvalues (..., n) and eigenvectors (columns) of (..., n, n), real or complex; both results are complex."""

def eigh(x: TensorOrArray, UPLO: builtins.str = "L") -> EighResult:
    """Eigenvalues in ascending order and eigenvectors (columns) of a symmetric (..., n, n)."""

def eigvals(x: TensorOrArray) -> TensorOrArray:
    """Eigenvalues (..., n) of (..., n, n), complex."""

def eigvalsh(x: TensorOrArray, UPLO: builtins.str = "L") -> TensorOrArray:
    """Eigenvalues of a symmetric (..., n, n) in ascending order; reads one triangle, as `eigh` does."""

def einsum(equation: Any, *operands: TensorLike) -> Tensor:
    """Sum of products in Einstein's notation: ``einsum("bij,bjk->bik", a, b)``."""

def elu(x: TensorOrArray, alpha: builtins.float = 1.0) -> TensorOrArray:
    """x where it is positive, else alpha * (exp(x) - 1)."""

def elu_(x: TensorOrArray, alpha: builtins.float = 1.0) -> TensorOrArray:
    """`elu`, written into the tensor itself; return it."""

def embedding(index: TensorLike, weight: TensorLike) -> Tensor:
    """Return the rows of `weight` (count, width) at `index`: shape (*index.shape, width)."""

def empty(
    *sizes: Ints,
    size: Ints | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: builtins.bool = False,
    device: Device = None,
) -> Tensor:
    """A tensor of the given shape whose values are not set."""

def empty_like(
    input: TensorLike, *, dtype: DTypeLike | None = None, requires_grad: builtins.bool = False, device: Device = None
) -> Tensor:
    """A tensor with the shape and dtype of `input` whose values are not set."""

def empty_permuted(
    size: Sequence[builtins.int],
    physical_layout: Sequence[builtins.int],
    *,
    dtype: DTypeLike | None = None,
    requires_grad: builtins.bool = False,
    device: Device = None,
) -> Tensor:
    """A tensor whose values are not set; `physical_layout` lists its dimensions, the outermost in memory first."""

def empty_strided(
    size: Sequence[builtins.int],
    stride: Sequence[builtins.int],
    *,
    dtype: DTypeLike | None = None,
    requires_grad: builtins.bool = False,
    device: Device = None,
) -> Tensor:
    """A tensor whose values are not set, and whose elements lie `stride` apart."""

def entr(x: TensorOrArray) -> TensorOrArray:
    """-x * log(x)"""

def eq(x: TensorLike, other: TensorLike) -> Tensor:
    """a == b"""

def eq_(x: TensorLike, other: TensorLike) -> Tensor:
    """`eq`, written into the tensor itself; return it."""

def equal(x: TensorLike, other: TensorLike) -> builtins.bool:
    """Whether two tensors have the same shape and elements: one bool, as in PyTorch. `eq` is elementwise."""

def erf(x: TensorOrArray) -> TensorOrArray:
    """2 / sqrt(pi) * integral of exp(-u**2) from 0 to x"""

def erf_(x: TensorOrArray) -> TensorOrArray:
    """`erf`, written into the tensor itself; return it."""

def erfc(x: TensorOrArray) -> TensorOrArray:
    """1 - erf(x)"""

def erfc_(x: TensorOrArray) -> TensorOrArray:
    """`erfc`, written into the tensor itself; return it."""

def erfcx(x: TensorOrArray) -> TensorOrArray:
    """exp(x**2) * erfc(x)"""

def erfinv(x: TensorOrArray) -> TensorOrArray:
    """the y with erf(y) = x"""

def erfinv_(x: TensorOrArray) -> TensorOrArray:
    """`erfinv`, written into the tensor itself; return it."""

def exp(x: TensorOrArray) -> TensorOrArray:
    """exp(x)"""

def exp2(x: TensorOrArray) -> TensorOrArray:
    """2 ** x"""

def exp2_(x: TensorOrArray) -> TensorOrArray:
    """`exp2`, written into the tensor itself; return it."""

def exp_(x: TensorOrArray) -> TensorOrArray:
    """`exp`, written into the tensor itself; return it."""

def expand(x: TensorOrArray, *sizes: Ints) -> TensorOrArray:
    """Repeat size-1 dimensions to `sizes` without copying; -1 keeps a size."""

def expand_as(x: TensorLike, other: TensorLike) -> Tensor:
    """x broadcast to the shape of `other`."""

def expand_copy(x: TensorOrArray, *sizes: Ints) -> TensorOrArray:
    """`expand` with memory of its own."""

@overload
def expand_dims(x: TensorOrArray, dim: builtins.int) -> TensorOrArray:
    """Insert a dimension of size 1 at `dim`."""

@overload
def expand_dims(x: TensorOrArray, *, axis: builtins.int) -> TensorOrArray: ...
def expit(x: TensorOrArray) -> TensorOrArray:
    """1 / (1 + exp(-x))"""

def expm1(x: TensorOrArray) -> TensorOrArray:
    """exp(x) - 1"""

def expm1_(x: TensorOrArray) -> TensorOrArray:
    """`expm1`, written into the tensor itself; return it."""

def exponential_(x: Tensor, lambd: builtins.float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Write exponentially distributed numbers with mean 1 / lambd; return x."""

def eye(
    n: builtins.int,
    m: builtins.int | None = None,
    *,
    dtype: DTypeLike | None = None,
    requires_grad: builtins.bool = False,
    device: Device = None,
) -> Tensor:
    """The identity matrix."""

def fabs(x: TensorOrArray) -> TensorOrArray:
    """|x|"""

def feature_alpha_dropout(
    input: TensorOrArray, p: builtins.float = 0.5, training: builtins.bool = False, inplace: builtins.bool = False
) -> TensorOrArray:
    """`alpha_dropout` of whole channels, (N, C, ...)."""

def fill(input: TensorLike, value: TensorLike) -> Tensor:
    """Return a tensor of the same shape and dtype that is `value` everywhere."""

def fill_(x: Tensor, value: TensorLike) -> Tensor:
    """Write a number everywhere; return x."""

def fill_diagonal_(x: Tensor, fill_value: builtins.float, wrap: builtins.bool = False) -> Tensor:
    """Write a number on the main diagonal; return x."""

def finfo(dtype: DTypeLike | None) -> Tensor:
    """Return the `np.finfo` of a floating-point dtype, including bfloat16: eps, tiny, min, max, bits."""

def fix(x: TensorOrArray) -> TensorOrArray:
    """x without its fraction"""

def fix_(x: TensorOrArray) -> TensorOrArray:
    """`fix`, written into the tensor itself; return it."""

def flatten(x: TensorOrArray, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> TensorOrArray:
    """Merge the dimensions from `start_dim` to `end_dim`, both included."""

@overload
def flip(x: TensorOrArray, *dims: Ints, dim: Ints | None = None) -> TensorOrArray:
    """Reverse the order of elements along `dims` (all, if none is given)."""

@overload
def flip(x: TensorOrArray, *dims: Ints, axis: Ints | None = None) -> TensorOrArray: ...
@overload
def flipdims(x: TensorOrArray, *dims: Ints, dim: Ints | None = None) -> TensorOrArray:
    """Reverse the order of elements along `dims` (all, if none is given)."""

@overload
def flipdims(x: TensorOrArray, *dims: Ints, axis: Ints | None = None) -> TensorOrArray: ...
def fliplr(x: TensorOrArray) -> TensorOrArray:
    """Reverse the columns."""

def flipud(x: TensorOrArray) -> TensorOrArray:
    """Reverse the rows."""

float: np.dtype[np.float32]
float16: np.dtype[np.float16]
float32: np.dtype[np.float32]
float64: np.dtype[np.float64]

def float_power(x: TensorLike, other: TensorLike) -> Tensor:
    """x ** other, computed in float64, or in complex128 where one of them is complex."""

def float_power_(x: TensorLike, other: TensorLike) -> Tensor:
    """`float_power`, written into the tensor itself; return it."""

def floor(x: TensorOrArray) -> TensorOrArray:
    """largest integer <= x"""

def floor_(x: TensorOrArray) -> TensorOrArray:
    """`floor`, written into the tensor itself; return it."""

def floor_divide(x: TensorLike, other: TensorLike) -> Tensor:
    """x / other, rounded down."""

def floor_divide_(x: TensorLike, other: TensorLike) -> Tensor:
    """`floor_divide`, written into the tensor itself; return it."""

def fmax(x: TensorLike, other: TensorLike) -> Tensor:
    """max(a, b), ignoring a NaN"""

def fmin(x: TensorLike, other: TensorLike) -> Tensor:
    """min(a, b), ignoring a NaN"""

def fmod(x: TensorLike, other: TensorLike) -> Tensor:
    """a - trunc(a / b) * b"""

def fmod_(x: TensorLike, other: TensorLike) -> Tensor:
    """`fmod`, written into the tensor itself; return it."""

def frac(x: TensorOrArray) -> TensorOrArray:
    """The fraction of x, with its sign."""

def frac_(x: TensorOrArray) -> TensorOrArray:
    """`frac`, written into the tensor itself; return it."""

def frexp(x: TensorOrArray) -> Frexp:
    """The mantissa, at least 0.5 and below 1 in size, and the exponent (int32) of x = mantissa * 2**exponent."""

def from_dlpack(other: TensorLike, *, device: Device = None, copy: builtins.bool | None = None) -> Tensor:
    """Return a Tensor that shares the memory of another library's array, which must be on the cpu."""

def from_numpy(array: npt.NDArray[Any]) -> Tensor:
    """Return a Tensor that shares the memory of `array`, which may be a memory map; writes reach the file."""

def full(
    size: Ints,
    fill_value: Number,
    *,
    dtype: DTypeLike | None = None,
    requires_grad: builtins.bool = False,
    device: Device = None,
) -> Tensor:
    """`fill_value` in the given shape."""

def full_like(
    input: TensorLike,
    fill_value: Number,
    *,
    dtype: DTypeLike | None = None,
    requires_grad: builtins.bool = False,
    device: Device = None,
) -> Tensor:
    """`fill_value` with the shape and dtype of `input`."""

def gammainc(input: TensorLike, other: TensorLike) -> Tensor:
    """Regularised lower incomplete gamma function P(input, other); only `other` has a gradient."""

def gammaincc(input: TensorLike, other: TensorLike) -> Tensor:
    """Regularised upper incomplete gamma function Q(input, other) = 1 - P; only `other` has a gradient."""

def gammaln(x: TensorOrArray) -> TensorOrArray:
    """log(|Gamma(x)|)"""

@overload
def gather(x: TensorLike, dim: builtins.int, index: TensorLike, *, sparse_grad: builtins.bool = False) -> Tensor:
    """PyTorch's `gather`: y[i, j] = x[index[i, j], j] for dim 0. `index` may be smaller than `x`."""

@overload
def gather(x: TensorLike, *, axis: builtins.int, index: TensorLike, sparse_grad: builtins.bool = False) -> Tensor: ...
def gcd(x: TensorLike, other: TensorLike) -> Tensor:
    """greatest common divisor"""

def gcd_(x: TensorLike, other: TensorLike) -> Tensor:
    """`gcd`, written into the tensor itself; return it."""

def ge(x: TensorLike, other: TensorLike) -> Tensor:
    """a >= b"""

def ge_(x: TensorLike, other: TensorLike) -> Tensor:
    """`ge`, written into the tensor itself; return it."""

def gelu(x: TensorOrArray, approximate: builtins.str = "none") -> TensorOrArray:
    """Gaussian error linear unit, x * Phi(x); `approximate="tanh"` is the formula of GPT-2."""

def geometric_(x: Tensor, p: builtins.float, *, generator: Generator | None = None) -> Tensor:
    """Write how many trials of probability p it takes until one succeeds, 1 or more; return x."""

def geqrf(x: TensorOrArray) -> Reflectors:
    """LAPACK's form of the QR factors of (..., n, m): R above, and below it the reflections of Q; no gradient."""

def ger(a: TensorLike, b: TensorLike) -> Tensor:
    """Outer product of two vectors: shape (n, m)."""

def get_default_device() -> device:
    """Return the cpu."""

def get_default_dtype() -> np.dtype:
    """Return the dtype of new tensors: float32."""

def get_num_threads() -> builtins.int:
    """Return how many cores this process may use; a compiled step may use fewer."""

def get_rng_state() -> builtins.dict[builtins.str, Any]:
    """Return the state of the default generator."""

def getitem(x: TensorOrArray, index: Any) -> TensorOrArray:
    """x[index], with slices, integers, None, ..., integer arrays and boolean arrays."""

@overload
def glu(x: TensorOrArray, dim: builtins.int = -1) -> TensorOrArray:
    """a * sigmoid(b), where a and b are the halves of x along `dim` (Dauphin et al. 2016)."""

@overload
def glu(x: TensorOrArray, *, axis: builtins.int = -1) -> TensorOrArray: ...
@overload
def gradient(
    input: TensorOrArray, *, spacing: Any = 1, dim: Ints | None = None, edge_order: builtins.int = 1
) -> builtins.tuple[Tensor, ...]:
    """Derivatives of a sampled function along dimensions: central differences, one-sided at the edges."""

@overload
def gradient(
    input: TensorOrArray, *, spacing: Any = 1, axis: Ints | None = None, edge_order: builtins.int = 1
) -> builtins.tuple[Tensor, ...]: ...
def greater(x: TensorLike, other: TensorLike) -> Tensor:
    """a > b"""

def greater_(x: TensorLike, other: TensorLike) -> Tensor:
    """`greater`, written into the tensor itself; return it."""

def greater_equal(x: TensorLike, other: TensorLike) -> Tensor:
    """a >= b"""

def greater_equal_(x: TensorLike, other: TensorLike) -> Tensor:
    """`greater_equal`, written into the tensor itself; return it."""

def grid_sample(
    input: TensorLike,
    grid: TensorLike,
    mode: builtins.str = "bilinear",
    padding_mode: builtins.str = "zeros",
    align_corners: builtins.bool | None = None,
) -> Tensor:
    """Read (N, C, H, W) at the places `grid` (N, H', W', 2), or (N, C, D, H, W) at (N, D', H', W', 3)."""

def grid_sampler(
    input: TensorLike,
    grid: TensorLike,
    interpolation_mode: builtins.int,
    padding_mode: builtins.int,
    align_corners: builtins.bool,
) -> Tensor:
    """`grid_sample`, with numbers for its modes."""

def grid_sampler_2d(
    input: TensorLike,
    grid: TensorLike,
    interpolation_mode: builtins.int,
    padding_mode: builtins.int,
    align_corners: builtins.bool,
) -> Tensor:
    """`grid_sample`, with numbers for its modes."""

def grid_sampler_3d(
    input: TensorLike,
    grid: TensorLike,
    interpolation_mode: builtins.int,
    padding_mode: builtins.int,
    align_corners: builtins.bool,
) -> Tensor:
    """`grid_sample`, with numbers for its modes."""

def group_norm(
    input: TensorOrArray,
    num_groups: builtins.int,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    eps: builtins.float = 1e-05,
) -> TensorOrArray:
    """Normalise each example over groups of channels, (N, C, ...) (Wu and He 2018)."""

def gt(x: TensorLike, other: TensorLike) -> Tensor:
    """a > b"""

def gt_(x: TensorLike, other: TensorLike) -> Tensor:
    """`gt`, written into the tensor itself; return it."""

half: np.dtype[np.float16]

def hamming_window(
    window_length: builtins.int,
    periodic: builtins.bool = True,
    alpha: builtins.float = 0.54,
    beta: builtins.float = 0.46,
    *,
    dtype: DTypeLike | None = None,
    device: Device = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """alpha - beta cos(2 pi n / N); N is the length, or with `periodic` False the length minus 1."""

def hann_window(
    window_length: builtins.int,
    periodic: builtins.bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: Device = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """0.5 - 0.5 cos(2 pi n / N); N is the length, or with `periodic` False the length minus 1."""

def hardshrink(x: TensorOrArray, lambd: builtins.float = 0.5) -> TensorOrArray:
    """x where |x| > `lambd`, else 0."""

def hardsigmoid(x: TensorOrArray) -> TensorOrArray:
    """x / 6 + 1/2 limited to [0, 1]."""

def hardswish(x: TensorOrArray) -> TensorOrArray:
    """x * min(max(x + 3, 0), 6) / 6"""

def hardtanh(x: TensorOrArray, min_val: builtins.float = -1.0, max_val: builtins.float = 1.0) -> TensorOrArray:
    """x limited to [min_val, max_val]; unlike `clip` it has no gradient at the bounds themselves."""

def hardtanh_(x: TensorOrArray, min_val: builtins.float = -1.0, max_val: builtins.float = 1.0) -> TensorOrArray:
    """`hardtanh`, written into the tensor itself; return it."""

def heaviside(x: TensorLike, other: TensorLike) -> Tensor:
    """0 if a < 0, b if a == 0, else 1"""

def heaviside_(x: TensorLike, other: TensorLike) -> Tensor:
    """`heaviside`, written into the tensor itself; return it."""

def hermite_polynomial_h(input: TensorLike, n: TensorLike) -> Tensor:
    """Hermite h polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""

def hermite_polynomial_he(input: TensorLike, n: TensorLike) -> Tensor:
    """Hermite he polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""

def histc(
    x: TensorOrArray, bins: builtins.int = 100, min: builtins.float = 0, max: builtins.float = 0
) -> TensorOrArray:
    """Counts of the values in `bins` equal bins from `min` to `max` (of x itself if both are equal); no gradient."""

def histogram(
    x: TensorOrArray,
    bins: Any = 10,
    *,
    range: builtins.tuple[builtins.float, builtins.float] | None = None,
    weight: Any = None,
    density: builtins.bool = False,
) -> Histogram:
    """Counts of the values between the edges of `bins` (or sums of their `weight`), and the edges; no gradient."""

def histogramdd(
    input: TensorOrArray,
    bins: builtins.int | Sequence[builtins.int] | Sequence[TensorLike] = 10,
    range: Sequence[builtins.float] | None = None,
    weight: TensorLike | None = None,
    density: builtins.bool = False,
) -> builtins.tuple[Tensor, builtins.list[Tensor]]:
    """Counts of points (..., d) in d dimensions, or sums of their `weight`, and the edges of the bins; no gradient."""

def householder_product(x: TensorLike, tau: TensorLike) -> Tensor:
    """The first columns of the product of the reflections in x (..., n, m) with factors tau (..., k)."""

def hsplit(x: TensorOrArray, indices_or_sections: Ints | TensorLike) -> builtins.tuple[Tensor, ...]:
    """Split columns (of a vector, elements) into equal parts, or before each of the given indices."""

def hstack(tensors: Sequence[TensorLike]) -> Tensor:
    """Join side by side: along dimension 1, vectors along their only one."""

hub: Any

def hypot(x: TensorLike, other: TensorLike) -> Tensor:
    """sqrt(a**2 + b**2)"""

def hypot_(x: TensorLike, other: TensorLike) -> Tensor:
    """`hypot`, written into the tensor itself; return it."""

def i0(x: TensorOrArray) -> TensorOrArray:
    """modified Bessel function I0(x)"""

def i0_(x: TensorOrArray) -> TensorOrArray:
    """`i0`, written into the tensor itself; return it."""

def i0e(x: TensorOrArray) -> TensorOrArray:
    """exp(-|x|) * I0(x)"""

def i1(x: TensorOrArray) -> TensorOrArray:
    """modified Bessel function I1(x)"""

def i1e(x: TensorOrArray) -> TensorOrArray:
    """exp(-|x|) * I1(x)"""

def igamma(input: TensorLike, other: TensorLike) -> Tensor:
    """Regularised lower incomplete gamma function P(input, other); only `other` has a gradient."""

def igamma_(input: TensorLike, other: TensorLike) -> Tensor:
    """`igamma`, written into the tensor itself; return it."""

def igammac(input: TensorLike, other: TensorLike) -> Tensor:
    """Regularised upper incomplete gamma function Q(input, other) = 1 - P; only `other` has a gradient."""

def igammac_(input: TensorLike, other: TensorLike) -> Tensor:
    """`igammac`, written into the tensor itself; return it."""

def im2col(
    input: TensorOrArray, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> TensorOrArray:
    """Every window of (N, C, H, W) as a column: (N, C kh kw, positions). PyTorch's `F.unfold`."""

def imag(x: TensorOrArray) -> TensorOrArray:
    """Imaginary part of a complex tensor."""

@overload
def index_add(
    x: TensorLike, dim: builtins.int, index: TensorLike, source: TensorLike, *, alpha: builtins.float = 1
) -> Tensor:
    """x with the slices of alpha * `source` added at `index` along `dim`; repeated places accumulate."""

@overload
def index_add(
    x: TensorLike, *, axis: builtins.int, index: TensorLike, source: TensorLike, alpha: builtins.float = 1
) -> Tensor: ...
@overload
def index_add_(
    x: TensorLike, dim: builtins.int, index: TensorLike, source: TensorLike, *, alpha: builtins.float = 1
) -> Tensor:
    """`index_add`, written into the tensor itself; return it."""

@overload
def index_add_(
    x: TensorLike, *, axis: builtins.int, index: TensorLike, source: TensorLike, alpha: builtins.float = 1
) -> Tensor: ...
@overload
def index_copy(x: TensorLike, dim: builtins.int, index: TensorLike, source: TensorLike) -> Tensor:
    """x with the slices of `source` at `index` along `dim`."""

@overload
def index_copy(x: TensorLike, *, axis: builtins.int, index: TensorLike, source: TensorLike) -> Tensor: ...
@overload
def index_copy_(x: TensorLike, dim: builtins.int, index: TensorLike, source: TensorLike) -> Tensor:
    """`index_copy`, written into the tensor itself; return it."""

@overload
def index_copy_(x: TensorLike, *, axis: builtins.int, index: TensorLike, source: TensorLike) -> Tensor: ...
@overload
def index_fill(x: TensorLike, dim: builtins.int, index: TensorLike, value: TensorLike | None) -> Tensor:
    """x with `value` in the slices at `index` along `dim`; negative indices count from the end, as in PyTorch."""

@overload
def index_fill(x: TensorLike, *, axis: builtins.int, index: TensorLike, value: TensorLike | None) -> Tensor: ...
@overload
def index_fill_(x: TensorLike, dim: builtins.int, index: TensorLike, value: TensorLike | None) -> Tensor:
    """`index_fill`, written into the tensor itself; return it."""

@overload
def index_fill_(x: TensorLike, *, axis: builtins.int, index: TensorLike, value: TensorLike | None) -> Tensor: ...
def index_put(x: TensorLike, indices: Sequence[Any], values: TensorLike, accumulate: builtins.bool = False) -> Tensor:
    """`at_set` with PyTorch's tuple of index arrays, or `at_add` if `accumulate`."""

def index_put_(x: TensorLike, indices: Sequence[Any], values: TensorLike, accumulate: builtins.bool = False) -> Tensor:
    """`index_put`, written into the tensor itself; return it."""

@overload
def index_reduce(
    x: TensorLike,
    dim: builtins.int,
    index: TensorLike,
    source: TensorLike,
    reduce: builtins.str,
    *,
    include_self: builtins.bool = True,
) -> Tensor:
    """x reduced with the slices of `source` at `index` along `dim`: "prod", "mean", "amax" or "amin"."""

@overload
def index_reduce(
    x: TensorLike,
    *,
    axis: builtins.int,
    index: TensorLike,
    source: TensorLike,
    reduce: builtins.str,
    include_self: builtins.bool = True,
) -> Tensor: ...
@overload
def index_reduce_(
    x: TensorLike,
    dim: builtins.int,
    index: TensorLike,
    source: TensorLike,
    reduce: builtins.str,
    *,
    include_self: builtins.bool = True,
) -> Tensor:
    """`index_reduce`, written into the tensor itself; return it."""

@overload
def index_reduce_(
    x: TensorLike,
    *,
    axis: builtins.int,
    index: TensorLike,
    source: TensorLike,
    reduce: builtins.str,
    include_self: builtins.bool = True,
) -> Tensor: ...
@overload
def index_select(x: TensorLike, dim: builtins.int, index: TensorLike) -> Tensor:
    """Return the slices of `x` at the positions `index` along `dim`."""

@overload
def index_select(x: TensorLike, *, axis: builtins.int, index: TensorLike) -> Tensor: ...

inf: builtins.float

def initial_seed() -> builtins.int:
    """Return the seed of the default generator."""

def inner(a: TensorLike, b: TensorLike) -> Tensor:
    """Sum of products over the last dimensions: shape (*a.shape[:-1], *b.shape[:-1])."""

int: np.dtype[np.int32]
int16: np.dtype[np.int16]
int32: np.dtype[np.int32]
int64: np.dtype[np.int64]
int8: np.dtype[np.int8]

def interpolate(
    input: TensorOrArray,
    size: Ints | None = None,
    scale_factor: Any = None,
    mode: builtins.str = "nearest",
    align_corners: builtins.bool | None = None,
    recompute_scale_factor: builtins.bool | None = None,
) -> TensorOrArray:
    """Resize (N, C, L), (N, C, H, W) or (N, C, D, H, W) to `size` or by `scale_factor`."""

def inv(x: TensorOrArray) -> TensorOrArray:
    """x**-1"""

def inv_ex(x: TensorOrArray, *, check_errors: builtins.bool = False) -> InverseInfo:
    """`inv` that does not raise: NaN and `info` above 0 for a singular matrix."""

def inverse(x: TensorOrArray) -> TensorOrArray:
    """Inverse of (..., n, n)."""

def invert(x: TensorOrArray) -> TensorOrArray:
    """~x"""

def is_anomaly_enabled() -> builtins.bool:
    """Tell whether anomaly mode is on in this thread."""

def is_autocast_enabled(_device_type: builtins.object = "cpu") -> builtins.bool:
    """Tell whether products run in bfloat16 in this thread."""

def is_complex(x: TensorOrArray) -> builtins.bool:
    """Whether the dtype is complex."""

def is_floating_point(input: TensorLike) -> builtins.bool:
    """Tell whether the dtype is one of floating-point numbers."""

def is_grad_enabled() -> builtins.bool:
    """Tell whether ops on tensors that require gradients are recorded in this thread."""

def is_tensor(obj: builtins.object) -> builtins.bool:
    """Tell whether `obj` is a Tensor."""

def isclose(
    x: TensorLike,
    other: TensorLike,
    rtol: builtins.float = 1e-05,
    atol: builtins.float = 1e-08,
    equal_nan: builtins.bool = False,
) -> Tensor:
    """Whether |x - other| <= atol + rtol * |other|, element by element."""

def isfinite(x: TensorOrArray) -> TensorOrArray:
    """x is finite"""

def isin(
    x: TensorLike, choices: TensorLike, *, assume_unique: builtins.bool = False, invert: builtins.bool = False
) -> Tensor:
    """Whether each element of x is one of `choices`, or with `invert` whether it is none of them."""

def isinf(x: TensorOrArray) -> TensorOrArray:
    """x is infinite"""

def isnan(x: TensorOrArray) -> TensorOrArray:
    """x is NaN"""

def isneginf(x: TensorOrArray) -> TensorOrArray:
    """Whether x is -inf."""

def isposinf(x: TensorOrArray) -> TensorOrArray:
    """Whether x is +inf."""

def isreal(x: TensorOrArray) -> TensorOrArray:
    """Whether the imaginary part is 0."""

def istft(
    input: TensorOrArray,
    n_fft: builtins.int,
    hop_length: builtins.int | None = None,
    win_length: builtins.int | None = None,
    window: TensorLike | None = None,
    center: builtins.bool = True,
    normalized: builtins.bool = False,
    onesided: builtins.bool | None = None,
    length: builtins.int | None = None,
    return_complex: builtins.bool = False,
) -> TensorOrArray:
    """Inverse of `stft`: the signal from the spectra of its frames, by overlap-add."""

jit: Any

def kaiser_window(
    window_length: builtins.int,
    periodic: builtins.bool = True,
    beta: builtins.float = 12.0,
    *,
    dtype: DTypeLike | None = None,
    device: Device = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """I0(beta sqrt(1 - (2 n / N - 1)**2)) / I0(beta), with the modified Bessel function I0."""

def kron(a: TensorLike, b: TensorLike) -> Tensor:
    """Kronecker product: every element of a times all of b. Shapes multiply from the right."""

@overload
def kthvalue(x: TensorOrArray, k: builtins.int, dim: builtins.int = -1, keepdim: builtins.bool = False) -> Extreme:
    """The `k`-th smallest element along `dim`, counted from 1, and where it is; NaN is larger than every number."""

@overload
def kthvalue(
    x: TensorOrArray, k: builtins.int, *, axis: builtins.int = -1, keepdims: builtins.bool = False
) -> Extreme: ...
def laguerre_polynomial_l(input: TensorLike, n: TensorLike) -> Tensor:
    """Laguerre l polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""

def layer_norm(
    input: TensorOrArray,
    normalized_shape: Any,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    eps: builtins.float = 1e-05,
) -> TensorOrArray:
    """(x - mean) / sqrt(var + eps) * weight + bias, over the last dimensions (Ba et al. 2016)."""

def lcm(x: TensorLike, other: TensorLike) -> Tensor:
    """least common multiple"""

def lcm_(x: TensorLike, other: TensorLike) -> Tensor:
    """`lcm`, written into the tensor itself; return it."""

def ldexp(x: TensorLike, other: TensorLike) -> Tensor:
    """x * 2**other."""

def ldexp_(x: TensorLike, other: TensorLike) -> Tensor:
    """`ldexp`, written into the tensor itself; return it."""

def le(x: TensorLike, other: TensorLike) -> Tensor:
    """a <= b"""

def le_(x: TensorLike, other: TensorLike) -> Tensor:
    """`le`, written into the tensor itself; return it."""

def leaky_relu(x: TensorOrArray, negative_slope: builtins.float = 0.01) -> TensorOrArray:
    """x where it is positive, else `negative_slope` * x."""

def leaky_relu_(x: TensorOrArray, negative_slope: builtins.float = 0.01) -> TensorOrArray:
    """`leaky_relu`, written into the tensor itself; return it."""

def left_shift(x: TensorLike, other: TensorLike) -> Tensor:
    """a << b"""

def legendre_polynomial_p(input: TensorLike, n: TensorLike) -> Tensor:
    """Legendre p polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""

def lerp(x: TensorLike, end: TensorLike, weight: TensorLike) -> Tensor:
    """x + weight * (end - x), exact at both ends."""

def lerp_(x: TensorLike, end: TensorLike, weight: TensorLike) -> Tensor:
    """`lerp`, written into the tensor itself; return it."""

def less(x: TensorLike, other: TensorLike) -> Tensor:
    """a < b"""

def less_(x: TensorLike, other: TensorLike) -> Tensor:
    """`less`, written into the tensor itself; return it."""

def less_equal(x: TensorLike, other: TensorLike) -> Tensor:
    """a <= b"""

def less_equal_(x: TensorLike, other: TensorLike) -> Tensor:
    """`less_equal`, written into the tensor itself; return it."""

def lgamma(x: TensorOrArray) -> TensorOrArray:
    """log(|Gamma(x)|)"""

def lgamma_(x: TensorOrArray) -> TensorOrArray:
    """`lgamma`, written into the tensor itself; return it."""

def linalg_lu(x: TensorOrArray, *, pivot: builtins.bool = True) -> LUResult:
    """P, L, U with P L U = x (..., m, n): a permutation, a unit lower and an upper triangular matrix: `linalg.lu`."""

def linalg_lu_solve(
    LU: TensorLike, pivots: TensorLike, B: TensorLike, *, left: builtins.bool = True, adjoint: builtins.bool = False
) -> Tensor:
    """The x with a x = b (or x a = b, if not `left`), from `lu_factor(a)`; with `adjoint` for the adjoint of a."""

def linalg_svd(x: TensorOrArray, full_matrices: builtins.bool = True) -> SVDResult:
    """u, s, vh with u diag(s) vh = x (..., m, n), singular values in descending order: `linalg.svd`."""

def linspace(
    start: builtins.float,
    end: builtins.float,
    steps: builtins.int,
    *,
    dtype: DTypeLike | None = None,
    requires_grad: builtins.bool = False,
    device: Device = None,
) -> Tensor:
    """`steps` numbers from `start` to `end`, both included, evenly spaced; integers are rounded towards 0."""

def load(
    f: Any, map_location: Any = None, *, weights_only: builtins.bool | None = None, **_hints: builtins.object
) -> Tensor:
    """Read what `save` wrote, or the tensors of any safetensors file as a dictionary."""

def log(x: TensorOrArray) -> TensorOrArray:
    """log(x)"""

def log10(x: TensorOrArray) -> TensorOrArray:
    """log(x) / log(10)"""

def log10_(x: TensorOrArray) -> TensorOrArray:
    """`log10`, written into the tensor itself; return it."""

def log1p(x: TensorOrArray) -> TensorOrArray:
    """log(1 + x)"""

def log1p_(x: TensorOrArray) -> TensorOrArray:
    """`log1p`, written into the tensor itself; return it."""

def log2(x: TensorOrArray) -> TensorOrArray:
    """log(x) / log(2)"""

def log2_(x: TensorOrArray) -> TensorOrArray:
    """`log2`, written into the tensor itself; return it."""

def log_(x: TensorOrArray) -> TensorOrArray:
    """`log`, written into the tensor itself; return it."""

def log_ndtr(x: TensorOrArray) -> TensorOrArray:
    """log of the normal distribution function"""

def log_normal_(
    x: Tensor, mean: builtins.float = 1.0, std: builtins.float = 2.0, *, generator: Generator | None = None
) -> Tensor:
    """Write numbers whose logarithms are normal with this mean and deviation; return x."""

def log_sigmoid(x: TensorOrArray) -> TensorOrArray:
    """log(1 / (1 + exp(-x)))"""

@overload
def log_softmax(x: TensorOrArray, dim: builtins.int = -1, dtype: DTypeLike | None = None) -> TensorOrArray:
    """x - logsumexp(x) along `dim`."""

@overload
def log_softmax(x: TensorOrArray, *, axis: builtins.int = -1, dtype: DTypeLike | None = None) -> TensorOrArray: ...
def logaddexp(x: TensorLike, other: TensorLike) -> Tensor:
    """log(exp(a) + exp(b))"""

def logaddexp2(x: TensorLike, other: TensorLike) -> Tensor:
    """log2(2**a + 2**b)"""

@overload
def logcumsumexp(x: TensorOrArray, dim: builtins.int) -> TensorOrArray:
    """y[i] = log(exp(x[0]) + ... + exp(x[i])) along `dim`, without overflow."""

@overload
def logcumsumexp(x: TensorOrArray, *, axis: builtins.int) -> TensorOrArray: ...
def logdet(x: TensorOrArray) -> TensorOrArray:
    """Logarithm of the determinant of (..., n, n); NaN where it is negative."""

def logical_and(x: TensorLike, other: TensorLike) -> Tensor:
    """a and b"""

def logical_and_(x: TensorLike, other: TensorLike) -> Tensor:
    """`logical_and`, written into the tensor itself; return it."""

def logical_not(x: TensorOrArray) -> TensorOrArray:
    """not x"""

def logical_not_(x: TensorOrArray) -> TensorOrArray:
    """`logical_not`, written into the tensor itself; return it."""

def logical_or(x: TensorLike, other: TensorLike) -> Tensor:
    """a or b"""

def logical_or_(x: TensorLike, other: TensorLike) -> Tensor:
    """`logical_or`, written into the tensor itself; return it."""

def logical_xor(x: TensorLike, other: TensorLike) -> Tensor:
    """a xor b"""

def logical_xor_(x: TensorLike, other: TensorLike) -> Tensor:
    """`logical_xor`, written into the tensor itself; return it."""

def logit(x: TensorOrArray, eps: builtins.float | None = None) -> TensorOrArray:
    """log(x / (1 - x)); with `eps`, x is limited to [eps, 1 - eps] first."""

def logit_(x: TensorOrArray, eps: builtins.float | None = None) -> TensorOrArray:
    """`logit`, written into the tensor itself; return it."""

def logsigmoid(x: TensorOrArray) -> TensorOrArray:
    """log(1 / (1 + exp(-x)))"""

@overload
def logsoftmax(x: TensorOrArray, dim: builtins.int = -1, dtype: DTypeLike | None = None) -> TensorOrArray:
    """x - logsumexp(x) along `dim`."""

@overload
def logsoftmax(x: TensorOrArray, *, axis: builtins.int = -1, dtype: DTypeLike | None = None) -> TensorOrArray: ...
def logspace(
    start: builtins.float,
    end: builtins.float,
    steps: builtins.int,
    base: builtins.float = 10.0,
    *,
    dtype: DTypeLike | None = None,
    requires_grad: builtins.bool = False,
    device: Device = None,
) -> Tensor:
    """`base` to the power of `steps` numbers from `start` to `end`, both included, evenly spaced."""

@overload
def logsumexp(x: TensorOrArray, dim: Ints | None = None, keepdim: builtins.bool = False) -> TensorOrArray:
    """log(sum(exp(x))) over `dim`, without overflow; -inf where every element is -inf."""

@overload
def logsumexp(x: TensorOrArray, *, axis: Ints | None = None, keepdims: builtins.bool = False) -> TensorOrArray: ...

long: np.dtype[np.int64]

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

def lt(x: TensorLike, other: TensorLike) -> Tensor:
    """a < b"""

def lt_(x: TensorLike, other: TensorLike) -> Tensor:
    """`lt`, written into the tensor itself; return it."""

def lu(x: TensorOrArray, pivot: builtins.bool = True, get_infos: builtins.bool = False) -> builtins.tuple[Tensor, ...]:
    """PyTorch's older `lu`: the factors in one matrix, the row swaps, and with `get_infos` LAPACK's info."""

def lu_factor(x: TensorOrArray, *, pivot: builtins.bool = True) -> LUFactors:
    """The factors L and U of (..., m, n) in one matrix, and LAPACK's row swaps (from 1): `linalg.lu_factor`."""

def lu_factor_ex(
    x: TensorOrArray, *, pivot: builtins.bool = True, check_errors: builtins.bool = False
) -> LUFactorsInfo:
    """`lu_factor` with `info`: above 0 where U has a zero on its diagonal."""

def lu_solve(b: TensorLike, LU_data: TensorLike, LU_pivots: TensorLike) -> Tensor:
    """`linalg.lu_solve` with the arguments in PyTorch's older order."""

def lu_unpack(
    LU: TensorLike, pivots: TensorLike, unpack_data: builtins.bool = True, unpack_pivots: builtins.bool = True
) -> LUResult:
    """P, L, U with P L U = x from the results of `lu_factor`; parts that are not requested are empty."""

def manual_seed(seed: builtins.int) -> Generator:
    """Seed the default generator."""

masked: Any

def masked_fill(x: TensorLike, mask: TensorLike, value: TensorLike | None) -> Tensor:
    """`x` with the number `value` where the boolean `mask` is true; in the dtype of x."""

def masked_fill_(x: TensorLike, mask: TensorLike, value: TensorLike | None) -> Tensor:
    """`masked_fill`, written into the tensor itself; return it."""

def masked_scatter(x: TensorLike, mask: TensorLike, source: TensorLike) -> Tensor:
    """x with the first elements of `source` in order where `mask` is true."""

def masked_scatter_(x: TensorLike, mask: TensorLike, source: TensorLike) -> Tensor:
    """`masked_scatter`, written into the tensor itself; return it."""

def masked_select(x: TensorLike, mask: TensorLike) -> Tensor:
    """The elements of x where `mask` is true, in one dimension; the two broadcast."""

def matmul(x: TensorLike, other: TensorLike) -> Tensor:
    """a @ b"""

def matrix_exp(x: TensorOrArray) -> TensorOrArray:
    """Exponential of (..., n, n): 1 + x + x @ x / 2! + x @ x @ x / 3! + ..."""

def matrix_power(x: TensorOrArray, n: builtins.int) -> TensorOrArray:
    """x multiplied by itself n times by repeated squaring (the inverse of x for negative n)."""

def matrix_transpose(x: TensorOrArray) -> TensorOrArray:
    """Swap the last two dimensions."""

@overload
def max(x: TensorLike, *, other: None = None) -> Tensor:
    """Largest element of all; with an int `dim`, `(values, indices)` along it; with a tensor, `maximum`."""

@overload
def max(x: TensorLike, dim: builtins.int, keepdim: builtins.bool = False) -> Extreme: ...
@overload
def max(x: TensorLike, *, axis: builtins.int, keepdims: builtins.bool = False) -> Extreme: ...
@overload
def max(x: TensorLike, dim: Sequence[builtins.int] | None, keepdim: builtins.bool = False) -> Tensor: ...
@overload
def max(x: TensorLike, *, axis: Sequence[builtins.int] | None, keepdims: builtins.bool = False) -> Tensor: ...
@overload
def max(x: TensorLike, other: Tensor | npt.NDArray[Any]) -> Tensor: ...
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

def maximum(x: TensorLike, other: TensorLike) -> Tensor:
    """max(a, b)"""

@overload
def mean(
    x: TensorOrArray, dim: Ints | None = None, keepdim: builtins.bool = False, *, dtype: DTypeLike | None = None
) -> TensorOrArray:
    """Arithmetic mean over `dim`; NaN if there are no elements."""

@overload
def mean(
    x: TensorOrArray, *, axis: Ints | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None
) -> TensorOrArray: ...
@overload
def median(x: TensorLike, dim: None = None, keepdim: builtins.bool = False) -> Tensor:
    """The middle element (the lower of two) of all elements, or `(values, indices)` along `dim`."""

@overload
def median(x: TensorLike, dim: builtins.int, keepdim: builtins.bool = False) -> Extreme: ...
@overload
def median(x: TensorLike, *, axis: builtins.int, keepdims: builtins.bool = False) -> Extreme: ...

memory_format: Any

def meshgrid(*tensors: Tensors, indexing: builtins.str = "ij") -> builtins.tuple[Tensor, ...]:
    """The coordinates of the points of a grid, one array per dimension. "xy" swaps the first two dimensions."""

@overload
def min(x: TensorLike, *, other: None = None) -> Tensor:
    """Smallest element of all; with an int `dim`, `(values, indices)` along it; with a tensor, `minimum`."""

@overload
def min(x: TensorLike, dim: builtins.int, keepdim: builtins.bool = False) -> Extreme: ...
@overload
def min(x: TensorLike, *, axis: builtins.int, keepdims: builtins.bool = False) -> Extreme: ...
@overload
def min(x: TensorLike, dim: Sequence[builtins.int] | None, keepdim: builtins.bool = False) -> Tensor: ...
@overload
def min(x: TensorLike, *, axis: Sequence[builtins.int] | None, keepdims: builtins.bool = False) -> Tensor: ...
@overload
def min(x: TensorLike, other: Tensor | npt.NDArray[Any]) -> Tensor: ...
def minimum(x: TensorLike, other: TensorLike) -> Tensor:
    """min(a, b)"""

def mish(x: TensorOrArray) -> TensorOrArray:
    """x * tanh(softplus(x))"""

def mm(a: TensorLike, b: TensorLike) -> Tensor:
    """Product of two matrices."""

@overload
def mode(x: TensorOrArray, dim: builtins.int = -1, keepdim: builtins.bool = False) -> Extreme:
    """The most frequent element along `dim` (on ties the smallest) and the index of its last occurrence."""

@overload
def mode(x: TensorOrArray, *, axis: builtins.int = -1, keepdims: builtins.bool = False) -> Extreme: ...
def modified_bessel_i0(input: TensorOrArray) -> TensorOrArray:
    """Modified Bessel function I0(x): `i0`."""

def modified_bessel_i1(input: TensorOrArray) -> TensorOrArray:
    """Modified Bessel function I1(x): `i1`."""

def modified_bessel_k0(x: TensorOrArray) -> TensorOrArray:
    """modified Bessel function K0(x)"""

def modified_bessel_k1(x: TensorOrArray) -> TensorOrArray:
    """modified Bessel function K1(x)"""

def moveaxis(x: TensorOrArray, source: Ints, destination: Ints) -> TensorOrArray:
    """Move dimensions to other positions; the rest keep their order."""

def movedim(x: TensorOrArray, source: Ints, destination: Ints) -> TensorOrArray:
    """Move dimensions to other positions; the rest keep their order."""

mps: Any

def msort(x: TensorOrArray) -> TensorOrArray:
    """x sorted along its first dimension."""

def mul(x: TensorLike, other: TensorLike) -> Tensor:
    """a * b"""

def mul_(x: TensorLike, other: TensorLike) -> Tensor:
    """`mul`, written into the tensor itself; return it."""

def multigammaln(x: TensorOrArray, p: builtins.int) -> TensorOrArray:
    """log of the multivariate gamma function of dimension p."""

def multinomial(
    input: Tensor, num_samples: builtins.int, replacement: builtins.bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Draw indices of the last dimension with the given weights (which need not add up to 1)."""

def multiply(x: TensorLike, other: TensorLike) -> Tensor:
    """a * b"""

def multiply_(x: TensorLike, other: TensorLike) -> Tensor:
    """`multiply`, written into the tensor itself; return it."""

multiprocessing: Any

def mv(a: TensorLike, b: TensorLike) -> Tensor:
    """Product of a matrix and a vector."""

def mvlgamma(x: TensorOrArray, p: builtins.int) -> TensorOrArray:
    """log of the multivariate gamma function of dimension p."""

def mvlgamma_(x: TensorOrArray, p: builtins.int) -> TensorOrArray:
    """`mvlgamma`, written into the tensor itself; return it."""

nan: builtins.float

def nan_to_num(
    x: TensorOrArray,
    nan: builtins.float | None = 0.0,
    posinf: builtins.float | None = None,
    neginf: builtins.float | None = None,
) -> TensorOrArray:
    """x with `nan` for NaN and the largest numbers (or `posinf`, `neginf`) for infinities, where the gradient is 0."""

def nan_to_num_(
    x: TensorOrArray,
    nan: builtins.float | None = 0.0,
    posinf: builtins.float | None = None,
    neginf: builtins.float | None = None,
) -> TensorOrArray:
    """`nan_to_num`, written into the tensor itself; return it."""

@overload
def nanmean(
    x: TensorOrArray, dim: Ints | None = None, keepdim: builtins.bool = False, *, dtype: DTypeLike | None = None
) -> TensorOrArray:
    """Mean over `dim` of the elements that are not NaN; NaN where there are none."""

@overload
def nanmean(
    x: TensorOrArray, *, axis: Ints | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None
) -> TensorOrArray: ...
@overload
def nanmedian(x: TensorLike, dim: None = None, keepdim: builtins.bool = False) -> Tensor:
    """`median` of the elements that are not NaN."""

@overload
def nanmedian(x: TensorLike, dim: builtins.int, keepdim: builtins.bool = False) -> Extreme: ...
@overload
def nanmedian(x: TensorLike, *, axis: builtins.int, keepdims: builtins.bool = False) -> Extreme: ...
@overload
def nanquantile(
    x: TensorLike,
    q: TensorLike,
    dim: builtins.int | None = None,
    keepdim: builtins.bool = False,
    *,
    interpolation: builtins.str = "linear",
) -> Tensor:
    """`quantile` of the elements that are not NaN; NaN where there are none."""

@overload
def nanquantile(
    x: TensorLike,
    q: TensorLike,
    *,
    axis: builtins.int | None = None,
    keepdims: builtins.bool = False,
    interpolation: builtins.str = "linear",
) -> Tensor: ...
@overload
def nansum(
    x: TensorOrArray, dim: Ints | None = None, keepdim: builtins.bool = False, *, dtype: DTypeLike | None = None
) -> TensorOrArray:
    """Sum over `dim` of the elements that are not NaN."""

@overload
def nansum(
    x: TensorOrArray, *, axis: Ints | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None
) -> TensorOrArray: ...
@overload
def narrow(x: TensorOrArray, dim: builtins.int, start: builtins.int, length: builtins.int) -> TensorOrArray:
    """The part of `length` elements from `start` on along `dim`: a view."""

@overload
def narrow(x: TensorOrArray, *, axis: builtins.int, start: builtins.int, length: builtins.int) -> TensorOrArray: ...
@overload
def narrow_copy(x: TensorOrArray, dim: builtins.int, start: builtins.int, length: builtins.int) -> TensorOrArray:
    """`narrow` with memory of its own."""

@overload
def narrow_copy(
    x: TensorOrArray, *, axis: builtins.int, start: builtins.int, length: builtins.int
) -> TensorOrArray: ...
def ndtr(x: TensorOrArray) -> TensorOrArray:
    """normal distribution function"""

def ndtri(x: TensorOrArray) -> TensorOrArray:
    """the y with ndtr(y) = x"""

def ne(x: TensorLike, other: TensorLike) -> Tensor:
    """a != b"""

def ne_(x: TensorLike, other: TensorLike) -> Tensor:
    """`ne`, written into the tensor itself; return it."""

def neg(x: TensorOrArray) -> TensorOrArray:
    """-x"""

def neg_(x: TensorOrArray) -> TensorOrArray:
    """`neg`, written into the tensor itself; return it."""

def negative(x: TensorOrArray) -> TensorOrArray:
    """-x"""

def negative_(x: TensorOrArray) -> TensorOrArray:
    """`negative`, written into the tensor itself; return it."""

def nextafter(x: TensorLike, other: TensorLike) -> Tensor:
    """the number next to a on the way to b"""

def nextafter_(x: TensorLike, other: TensorLike) -> Tensor:
    """`nextafter`, written into the tensor itself; return it."""

@overload
def nonzero(x: TensorLike, as_tuple: Literal[False] = False) -> Tensor:
    """The indices where x is not zero: shape (count, ndim), or with `as_tuple` one array per dimension."""

@overload
def nonzero(x: TensorLike, as_tuple: Literal[True]) -> builtins.tuple[Tensor, ...]: ...
def nonzero_static(x: TensorOrArray, *, size: builtins.int, fill_value: builtins.int = -1) -> TensorOrArray:
    """`nonzero` with exactly `size` rows: the first places that are not 0, and `fill_value` where there are fewer."""

@overload
def norm(
    x: TensorOrArray,
    p: Any = "fro",
    dim: Ints | None = None,
    keepdim: builtins.bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> TensorOrArray:
    """PyTorch's `norm`: the vector norm of order `p` over `dim`; "fro" is 2, "nuc" the sum of singular values."""

@overload
def norm(
    x: TensorOrArray,
    p: Any = "fro",
    *,
    axis: Ints | None = None,
    keepdims: builtins.bool = False,
    dtype: DTypeLike | None = None,
) -> TensorOrArray: ...
def normal(
    mean: TensorLike = 0.0,
    std: TensorLike = 1.0,
    size: Ints | None = None,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: builtins.bool = False,
    device: Device = None,
) -> Tensor:
    """Normal numbers; the shape is `size` or that of `mean` and `std`; the dtype is that of the first of them."""

def normal_(
    x: Tensor, mean: builtins.float = 0.0, std: builtins.float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Write normal numbers; return x."""

def not_equal(x: TensorLike, other: TensorLike) -> Tensor:
    """a != b"""

def not_equal_(x: TensorLike, other: TensorLike) -> Tensor:
    """`not_equal`, written into the tensor itself; return it."""

@overload
def nuclear_norm(x: TensorOrArray, dim: Ints | None = None, keepdim: builtins.bool = False) -> TensorOrArray:
    """Sum of the singular values of the matrices in two dimensions, by default the last two."""

@overload
def nuclear_norm(x: TensorOrArray, *, axis: Ints | None = None, keepdims: builtins.bool = False) -> TensorOrArray: ...
def numel(input: TensorLike) -> builtins.int:
    """Number of elements."""

def one_hot(index: TensorOrArray, num_classes: builtins.int = -1) -> TensorOrArray:
    """Integers to vectors of 0 and a single 1: shape (*index.shape, num_classes), int64."""

def ones(
    *sizes: Ints,
    size: Ints | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: builtins.bool = False,
    device: Device = None,
) -> Tensor:
    """Ones of the given shape."""

def ones_like(
    input: TensorLike, *, dtype: DTypeLike | None = None, requires_grad: builtins.bool = False, device: Device = None
) -> Tensor:
    """Ones with the shape and dtype of `input`."""

def orgqr(x: TensorLike, tau: TensorLike) -> Tensor:
    """The first columns of the product of the reflections in x (..., n, m) with factors tau (..., k)."""

def ormqr(
    x: TensorLike, tau: TensorLike, other: TensorLike, left: builtins.bool = True, transpose: builtins.bool = False
) -> Tensor:
    """Q `other`, or `other` Q if not `left`, with the n by n product Q of the reflections, or QH with `transpose`."""

def outer(a: TensorLike, b: TensorLike) -> Tensor:
    """Outer product of two vectors: shape (n, m)."""

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

def pca_lowrank(
    A: TensorOrArray, q: builtins.int | None = None, center: builtins.bool = True, niter: builtins.int = 2
) -> builtins.tuple[Tensor, Tensor, Tensor]:
    """`svd_lowrank` of A (..., m, n), whose columns are centred first."""

def pdist(input: TensorOrArray, p: builtins.float = 2.0) -> TensorOrArray:
    """The distances in the norm `p` of all pairs of rows of (n, d), as `cdist` has them: (n (n - 1) / 2,)."""

def permute(x: TensorOrArray, *dims: Ints) -> TensorOrArray:
    """Return `x` with its dimensions in the order `dims`."""

def permute_copy(x: TensorOrArray, *dims: Ints) -> TensorOrArray:
    """`permute` with memory of its own."""

def permute_dims(x: TensorOrArray, *dims: Ints) -> TensorOrArray:
    """Return `x` with its dimensions in the order `dims`."""

pi: builtins.float

def pinv(
    x: TensorOrArray,
    *,
    atol: builtins.float | None = None,
    rtol: builtins.float | None = None,
    hermitian: builtins.bool = False,
) -> TensorOrArray:
    """Pseudo-inverse (Moore and Penrose) of (..., m, n): shape (..., n, m)."""

def pinverse(x: TensorOrArray, rcond: builtins.float = 1e-15) -> TensorOrArray:
    """`pinv`, under PyTorch's older name."""

def pixel_shuffle(input: TensorOrArray, upscale_factor: builtins.int) -> TensorOrArray:
    """(..., C r r, H, W) to (..., C, H r, W r): blocks of channels become blocks of pixels (Shi et al. 2016)."""

def pixel_unshuffle(input: TensorOrArray, downscale_factor: builtins.int) -> TensorOrArray:
    """(..., C, H r, W r) to (..., C r r, H, W): the inverse of `pixel_shuffle`."""

def poisson(input: TensorLike, generator: Generator | None = None) -> Tensor:
    """Poisson draws with the rates `input`, in its dtype."""

def polar(abs: TensorLike, angle: TensorLike) -> Tensor:
    """Complex numbers from magnitude and angle: abs cos(angle) + i abs sin(angle)."""

def polygamma(n: builtins.int, x: TensorLike) -> Tensor:
    """The n-th derivative of digamma(x), n >= 0."""

def polygamma_(n: builtins.int, x: TensorLike) -> Tensor:
    """`polygamma`, written into the tensor itself; return it."""

def positive(x: TensorOrArray) -> TensorOrArray:
    """x itself; booleans are refused, as in PyTorch and NumPy."""

def pow(x: TensorLike, other: TensorLike) -> Tensor:
    """a ** b"""

def pow_(x: TensorLike, other: TensorLike) -> Tensor:
    """`pow`, written into the tensor itself; return it."""

def power(x: TensorLike, other: TensorLike) -> Tensor:
    """a ** b"""

def prelu(x: TensorLike, weight: TensorLike) -> Tensor:
    """Leaky relu with a learned slope: one, or one for each channel (dimension 1)."""

preserve_format: builtins.str

@overload
def prod(
    x: TensorOrArray, dim: Ints | None = None, keepdim: builtins.bool = False, *, dtype: DTypeLike | None = None
) -> TensorOrArray:
    """Product over `dim` (an int, several, or None for all)."""

@overload
def prod(
    x: TensorOrArray, *, axis: Ints | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None
) -> TensorOrArray: ...
@overload
def product(
    x: TensorOrArray, dim: Ints | None = None, keepdim: builtins.bool = False, *, dtype: DTypeLike | None = None
) -> TensorOrArray:
    """Product over `dim` (an int, several, or None for all)."""

@overload
def product(
    x: TensorOrArray, *, axis: Ints | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None
) -> TensorOrArray: ...

profiler: Any

def promote_types(type1: Any, type2: Any) -> np.dtype[Any]:
    """Return the common dtype of two dtypes: like `np.promote_types`, with bfloat16 as in PyTorch."""

def psi(x: TensorOrArray) -> TensorOrArray:
    """Gamma'(x) / Gamma(x)"""

def put(x: TensorLike, index: TensorLike, source: TensorLike, accumulate: builtins.bool = False) -> Tensor:
    """x with the elements of `source` at the places `index` of the flattened tensor; added there if `accumulate`."""

def put_(x: TensorLike, index: TensorLike, source: TensorLike, accumulate: builtins.bool = False) -> Tensor:
    """`put`, written into the tensor itself; return it."""

@overload
def put_along_axis(x: TensorLike, index: TensorLike, value: TensorLike | None, dim: builtins.int) -> Tensor:
    """x with `value` at `index` along `dim`: NumPy's `put_along_axis`, on a copy."""

@overload
def put_along_axis(x: TensorLike, index: TensorLike, value: TensorLike | None, *, axis: builtins.int) -> Tensor: ...
def qr(x: TensorOrArray, mode: builtins.str = "reduced") -> QRResult:
    """q, r with q r = x, the columns of q orthonormal and r upper triangular; x (..., m, n)."""

@overload
def quantile(
    x: TensorLike,
    q: TensorLike,
    dim: builtins.int | None = None,
    keepdim: builtins.bool = False,
    *,
    interpolation: builtins.str = "linear",
) -> Tensor:
    """The values below which fractions `q` of the elements lie; several q add a leading dimension."""

@overload
def quantile(
    x: TensorLike,
    q: TensorLike,
    *,
    axis: builtins.int | None = None,
    keepdims: builtins.bool = False,
    interpolation: builtins.str = "linear",
) -> Tensor: ...
def rad2deg(x: TensorOrArray) -> TensorOrArray:
    """Radians to degrees."""

def rad2deg_(x: TensorOrArray) -> TensorOrArray:
    """`rad2deg`, written into the tensor itself; return it."""

def radians(x: TensorOrArray) -> TensorOrArray:
    """Degrees to radians."""

def rand(
    *sizes: Ints,
    size: Ints | None = None,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: builtins.bool = False,
    device: Device = None,
) -> Tensor:
    """Uniform numbers in [0, 1)."""

def rand_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: builtins.bool = False,
    device: Device = None,
) -> Tensor:
    """Uniform numbers with the shape and dtype of `input`."""

def randint(
    low: Any = None,
    high: Any = None,
    size: Ints | None = None,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: builtins.bool = False,
    device: Device = None,
) -> Tensor:
    """Integers from `low` to `high`, without `high`; `randint(high, size)` starts at 0."""

def randint_like(
    input: Tensor,
    low: builtins.int,
    high: builtins.int | None = None,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: builtins.bool = False,
    device: Device = None,
) -> Tensor:
    """Integers from `low` (0 with one number) up to and without `high`, with the shape and dtype of `input`."""

def randn(
    *sizes: Ints,
    size: Ints | None = None,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: builtins.bool = False,
    device: Device = None,
) -> Tensor:
    """Standard normal numbers."""

def randn_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: builtins.bool = False,
    device: Device = None,
) -> Tensor:
    """Standard normal numbers with the shape and dtype of `input`."""

def random_(
    x: Tensor, from_: builtins.int = 0, to: builtins.int | None = None, *, generator: Generator | None = None
) -> Tensor:
    """Write integers from `from_` up to and without `to`; with one number, from 0 to it. Return x."""

def randperm(
    n: builtins.int, *, generator: Generator | None = None, dtype: DTypeLike | None = None, device: Device = None
) -> Tensor:
    """The integers below `n` in random order."""

def range(
    start: builtins.float = 0,
    end: builtins.float | None = None,
    step: builtins.float = 1,
    *,
    dtype: DTypeLike | None = None,
    device: Device = None,
) -> Tensor:
    """Numbers from `start` to `end`, which is among them: PyTorch's older `arange`."""

def ravel(x: TensorOrArray, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> TensorOrArray:
    """Merge the dimensions from `start_dim` to `end_dim`, both included."""

def real(x: TensorOrArray) -> TensorOrArray:
    """Real part; a real tensor is returned unchanged."""

def reciprocal(x: TensorOrArray) -> TensorOrArray:
    """1 / x"""

def reciprocal_(x: TensorOrArray) -> TensorOrArray:
    """`reciprocal`, written into the tensor itself; return it."""

def relu(x: TensorOrArray) -> TensorOrArray:
    """max(x, 0)"""

def relu6(x: TensorOrArray) -> TensorOrArray:
    """x limited to [0, 6]."""

def relu6_(x: TensorOrArray) -> TensorOrArray:
    """`relu6`, written into the tensor itself; return it."""

def relu_(x: TensorOrArray) -> TensorOrArray:
    """`relu`, written into the tensor itself; return it."""

def remainder(x: TensorLike, other: TensorLike) -> Tensor:
    """a - floor(a / b) * b"""

def remainder_(x: TensorLike, other: TensorLike) -> Tensor:
    """`remainder`, written into the tensor itself; return it."""

@overload
def renorm(x: TensorOrArray, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> TensorOrArray:
    """`x` with each slice along `dim` whose p-norm exceeds `maxnorm` scaled down to that norm."""

@overload
def renorm(x: TensorOrArray, p: builtins.float, *, axis: builtins.int, maxnorm: builtins.float) -> TensorOrArray: ...
@overload
def renorm_(x: TensorOrArray, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> TensorOrArray:
    """`renorm`, written into the tensor itself; return it."""

@overload
def renorm_(x: TensorOrArray, p: builtins.float, *, axis: builtins.int, maxnorm: builtins.float) -> TensorOrArray: ...
def repeat(x: TensorOrArray, *sizes: Ints) -> TensorOrArray:
    """Lay copies of x side by side, `sizes` of them along each dimension; new dimensions come first."""

@overload
def repeat_interleave(
    x: TensorOrArray,
    repeats: Ints | TensorLike,
    dim: builtins.int | None = None,
    *,
    output_size: builtins.int | None = None,
) -> TensorOrArray:
    """Repeat each element along `dim`, by default of the flattened tensor; `repeats` is a number or one per element."""

@overload
def repeat_interleave(
    x: TensorOrArray,
    repeats: Ints | TensorLike,
    *,
    axis: builtins.int | None = None,
    output_size: builtins.int | None = None,
) -> TensorOrArray: ...
def reshape(x: TensorOrArray, *shape: Ints) -> TensorOrArray:
    """Return the same numbers in another shape; one size may be -1."""

def reshape_as(x: TensorLike, other: TensorLike) -> Tensor:
    """x in the shape of `other`."""

def resolve_conj(x: TensorOrArray) -> TensorOrArray:
    """x itself: a conjugate is computed at once here."""

def resolve_neg(x: TensorOrArray) -> TensorOrArray:
    """x itself: a conjugate is computed at once here."""

def result_type(*values: TensorLike) -> np.dtype[Any]:
    """Return the result dtype of arrays, dtypes and numbers: like `np.result_type`, but also for bfloat16."""

def right_shift(x: TensorLike, other: TensorLike) -> Tensor:
    """a >> b"""

def rms_norm(
    input: TensorOrArray, normalized_shape: Any, weight: TensorLike | None = None, eps: builtins.float | None = None
) -> TensorOrArray:
    """x / sqrt(mean(x**2) + eps) * weight, over the last dimensions (Zhang and Sennrich 2019)."""

def roll(x: TensorOrArray, shifts: Ints, dims: Ints | None = None) -> TensorOrArray:
    """Shift elements cyclically along `dims`; without them over the flattened array."""

def rot90(x: TensorOrArray, k: builtins.int = 1, dims: Sequence[builtins.int] = (0, 1)) -> TensorOrArray:
    """Turn by k times 90 degrees, from the first of `dims` towards the second."""

def round(x: TensorOrArray, decimals: builtins.int = 0) -> TensorOrArray:
    """Round to `decimals` places, ties to even. The gradient is 0."""

def round_(x: TensorOrArray, decimals: builtins.int = 0) -> TensorOrArray:
    """`round`, written into the tensor itself; return it."""

def row_stack(tensors: Sequence[TensorLike]) -> Tensor:
    """Join one below the other: vectors become rows."""

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

def rsqrt(x: TensorOrArray) -> TensorOrArray:
    """1 / sqrt(x)"""

def rsqrt_(x: TensorOrArray) -> TensorOrArray:
    """`rsqrt`, written into the tensor itself; return it."""

def rsub(x: TensorLike, other: TensorLike, *, alpha: builtins.float = 1) -> Tensor:
    """other - alpha * x."""

def safe_where(
    cond: TensorOrArray, function: Callable[..., TensorLike], *xs: TensorLike, otherwise: Any = 0.0, fill: Any = 1.0
) -> TensorOrArray:
    """`function(*xs)` where `cond` is true, else `otherwise`, with clean gradients on both sides."""

def save(obj: Any, f: Any, **_hints: builtins.object) -> None:
    """Write tensors, or dictionaries, lists and plain values that contain them, to a file."""

def scalar_tensor(
    s: builtins.complex, *, dtype: DTypeLike | None = None, requires_grad: builtins.bool = False, device: Device = None
) -> Tensor:
    """A number as a tensor without dimensions, in the default dtype."""

def scaled_modified_bessel_k0(x: TensorOrArray) -> TensorOrArray:
    """exp(x) * K0(x)"""

def scaled_modified_bessel_k1(x: TensorOrArray) -> TensorOrArray:
    """exp(x) * K1(x)"""

@overload
def scatter(
    x: TensorLike,
    dim: builtins.int,
    index: TensorLike,
    src: TensorLike | None = None,
    *,
    value: TensorLike | None = None,
    reduce: builtins.str | None = None,
) -> Tensor:
    """x with y[index[i, j], j] = src[i, j] for dim 0; `src` may be a number. `reduce`: "add" or "multiply" instead."""

@overload
def scatter(
    x: TensorLike,
    *,
    axis: builtins.int,
    index: TensorLike,
    src: TensorLike | None = None,
    value: TensorLike | None = None,
    reduce: builtins.str | None = None,
) -> Tensor: ...
@overload
def scatter_(
    x: TensorLike,
    dim: builtins.int,
    index: TensorLike,
    src: TensorLike | None = None,
    *,
    value: TensorLike | None = None,
    reduce: builtins.str | None = None,
) -> Tensor:
    """`scatter`, written into the tensor itself; return it."""

@overload
def scatter_(
    x: TensorLike,
    *,
    axis: builtins.int,
    index: TensorLike,
    src: TensorLike | None = None,
    value: TensorLike | None = None,
    reduce: builtins.str | None = None,
) -> Tensor: ...
@overload
def scatter_add(x: TensorLike, dim: builtins.int, index: TensorLike, src: TensorLike) -> Tensor:
    """x with y[index[i, j], j] += src[i, j] for dim 0."""

@overload
def scatter_add(x: TensorLike, *, axis: builtins.int, index: TensorLike, src: TensorLike) -> Tensor: ...
@overload
def scatter_add_(x: TensorLike, dim: builtins.int, index: TensorLike, src: TensorLike) -> Tensor:
    """`scatter_add`, written into the tensor itself; return it."""

@overload
def scatter_add_(x: TensorLike, *, axis: builtins.int, index: TensorLike, src: TensorLike) -> Tensor: ...
@overload
def scatter_reduce(
    x: TensorLike,
    dim: builtins.int,
    index: TensorLike,
    src: TensorLike,
    reduce: builtins.str,
    *,
    include_self: builtins.bool = True,
) -> Tensor:
    """Combine x with the elements of `src` for each place: "sum", "mean", "prod", "amax" or "amin"."""

@overload
def scatter_reduce(
    x: TensorLike,
    *,
    axis: builtins.int,
    index: TensorLike,
    src: TensorLike,
    reduce: builtins.str,
    include_self: builtins.bool = True,
) -> Tensor: ...
@overload
def scatter_reduce_(
    x: TensorLike,
    dim: builtins.int,
    index: TensorLike,
    src: TensorLike,
    reduce: builtins.str,
    *,
    include_self: builtins.bool = True,
) -> Tensor:
    """`scatter_reduce`, written into the tensor itself; return it."""

@overload
def scatter_reduce_(
    x: TensorLike,
    *,
    axis: builtins.int,
    index: TensorLike,
    src: TensorLike,
    reduce: builtins.str,
    include_self: builtins.bool = True,
) -> Tensor: ...
def searchsorted(
    sorted_sequence: TensorLike,
    x: TensorLike,
    *,
    out_int32: builtins.bool = False,
    right: builtins.bool = False,
    side: builtins.str | None = None,
    sorter: Any = None,
) -> Tensor:
    """Where to insert the elements of x to keep the last dimension of `sorted_sequence` sorted."""

def seed() -> builtins.int:
    """Seed the default generator from the system; return the seed."""

def segment_sum(data: TensorLike, segment_ids: TensorLike, num_segments: builtins.int | None = None) -> Tensor:
    """The sums of the rows of `data` that have the same segment id: shape (num_segments, ...)."""

@overload
def select(x: TensorOrArray, dim: builtins.int, index: builtins.int) -> TensorOrArray:
    """The slice at `index` along `dim`, without that dimension: a view."""

@overload
def select(x: TensorOrArray, *, axis: builtins.int, index: builtins.int) -> TensorOrArray: ...
@overload
def select_copy(x: TensorOrArray, dim: builtins.int, index: builtins.int) -> TensorOrArray:
    """`select` with memory of its own."""

@overload
def select_copy(x: TensorOrArray, *, axis: builtins.int, index: builtins.int) -> TensorOrArray: ...
@overload
def select_scatter(x: TensorLike, src: TensorLike, dim: builtins.int, index: builtins.int) -> Tensor:
    """x with `src` as the slice at `index` along `dim`."""

@overload
def select_scatter(x: TensorLike, src: TensorLike, *, axis: builtins.int, index: builtins.int) -> Tensor: ...
def selu(x: TensorOrArray) -> TensorOrArray:
    """Scaled elu, whose fixed point has mean 0 and variance 1 (Klambauer et al. 2017)."""

def selu_(x: TensorOrArray) -> TensorOrArray:
    """`selu`, written into the tensor itself; return it."""

def set_default_device(device: Device) -> None:
    """Accept the cpu; raise for any other device."""

def set_default_dtype(d: Any) -> None:
    """Set the dtype of new tensors from Python numbers, of random tensors and of layers: float32, float64 or float16."""

def set_default_tensor_type(d: Any) -> None:
    """Set the dtype of new tensors from Python numbers, of random tensors and of layers: float32, float64 or float16."""

def set_float32_matmul_precision(*_args: builtins.object, **_kwargs: builtins.object) -> None:
    """Do nothing: this tunes PyTorch's own kernels."""

def set_num_interop_threads(*_args: builtins.object, **_kwargs: builtins.object) -> None:
    """Do nothing: this tunes PyTorch's own kernels."""

def set_num_threads(*_args: builtins.object, **_kwargs: builtins.object) -> None:
    """Do nothing: this tunes PyTorch's own kernels."""

def set_printoptions(
    precision: builtins.int | None = None,
    threshold: builtins.float | None = None,
    edgeitems: builtins.int | None = None,
    linewidth: builtins.int | None = None,
    profile: builtins.str | None = None,
    sci_mode: builtins.bool | None = None,
) -> None:
    """Set how numbers are printed: NumPy's options of the same names."""

def set_rng_state(new_state: builtins.dict[builtins.str, Any]) -> None:
    """Return to a state from `get_rng_state`."""

def sgn(x: TensorOrArray) -> TensorOrArray:
    """x / |x| for complex numbers, with 0 for 0; the sign for real numbers."""

def sgn_(x: TensorOrArray) -> TensorOrArray:
    """`sgn`, written into the tensor itself; return it."""

def shifted_chebyshev_polynomial_t(input: TensorLike, n: TensorLike) -> Tensor:
    """Shifted chebyshev t polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""

def shifted_chebyshev_polynomial_u(input: TensorLike, n: TensorLike) -> Tensor:
    """Shifted chebyshev u polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""

def shifted_chebyshev_polynomial_v(input: TensorLike, n: TensorLike) -> Tensor:
    """Shifted chebyshev v polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""

def shifted_chebyshev_polynomial_w(input: TensorLike, n: TensorLike) -> Tensor:
    """Shifted chebyshev w polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""

short: np.dtype[np.int16]

def sigmoid(x: TensorOrArray) -> TensorOrArray:
    """1 / (1 + exp(-x))"""

def sigmoid_(x: TensorOrArray) -> TensorOrArray:
    """`sigmoid`, written into the tensor itself; return it."""

def sign(x: TensorOrArray) -> TensorOrArray:
    """sign(x)"""

def sign_(x: TensorOrArray) -> TensorOrArray:
    """`sign`, written into the tensor itself; return it."""

signal: Any

def signbit(x: TensorOrArray) -> TensorOrArray:
    """x is negative or -0"""

def silu(x: TensorOrArray) -> TensorOrArray:
    """x * sigmoid(x)"""

def silu_(x: TensorOrArray) -> TensorOrArray:
    """`silu`, written into the tensor itself; return it."""

def sin(x: TensorOrArray) -> TensorOrArray:
    """sin(x)"""

def sin_(x: TensorOrArray) -> TensorOrArray:
    """`sin`, written into the tensor itself; return it."""

def sinc(x: TensorOrArray) -> TensorOrArray:
    """sin(pi * x) / (pi * x)"""

def sinc_(x: TensorOrArray) -> TensorOrArray:
    """`sinc`, written into the tensor itself; return it."""

def sinh(x: TensorOrArray) -> TensorOrArray:
    """sinh(x)"""

def sinh_(x: TensorOrArray) -> TensorOrArray:
    """`sinh`, written into the tensor itself; return it."""

@overload
def slice_copy(
    x: TensorOrArray,
    dim: builtins.int = 0,
    start: builtins.int | None = None,
    end: builtins.int | None = None,
    step: builtins.int = 1,
) -> TensorOrArray:
    """`slice` with memory of its own."""

@overload
def slice_copy(
    x: TensorOrArray,
    *,
    axis: builtins.int = 0,
    start: builtins.int | None = None,
    end: builtins.int | None = None,
    step: builtins.int = 1,
) -> TensorOrArray: ...
@overload
def slice_scatter(
    x: TensorLike,
    src: TensorLike,
    dim: builtins.int = 0,
    start: builtins.int | None = None,
    end: builtins.int | None = None,
    step: builtins.int = 1,
) -> Tensor:
    """x with `src` as the part from `start` to `end` along `dim`."""

@overload
def slice_scatter(
    x: TensorLike,
    src: TensorLike,
    *,
    axis: builtins.int = 0,
    start: builtins.int | None = None,
    end: builtins.int | None = None,
    step: builtins.int = 1,
) -> Tensor: ...
@overload
def sliding_window_view(x: TensorOrArray, window_shape: Ints, dim: Ints | None = None) -> TensorOrArray:
    """NumPy's `sliding_window_view`: windows along one or several axes, their elements in new last axes."""

@overload
def sliding_window_view(x: TensorOrArray, window_shape: Ints, *, axis: Ints | None = None) -> TensorOrArray: ...
def slogdet(x: TensorOrArray) -> SlogdetResult:
    """Sign and logarithm of the absolute determinant of (..., n, n): two arrays of shape (...)."""

@overload
def softmax(x: TensorOrArray, dim: builtins.int = -1, dtype: DTypeLike | None = None) -> TensorOrArray:
    """exp(x) / sum(exp(x)) along `dim`."""

@overload
def softmax(x: TensorOrArray, *, axis: builtins.int = -1, dtype: DTypeLike | None = None) -> TensorOrArray: ...
@overload
def softmin(x: TensorOrArray, dim: builtins.int = -1, dtype: DTypeLike | None = None) -> TensorOrArray:
    """softmax(-x) along `dim`."""

@overload
def softmin(x: TensorOrArray, *, axis: builtins.int = -1, dtype: DTypeLike | None = None) -> TensorOrArray: ...
def softplus(x: TensorOrArray, beta: builtins.float = 1.0, threshold: builtins.float | None = None) -> TensorOrArray:
    """log(1 + exp(beta * x)) / beta, exact for x of any size."""

def softplus_(x: TensorOrArray, beta: builtins.float = 1.0, threshold: builtins.float | None = None) -> TensorOrArray:
    """`softplus`, written into the tensor itself; return it."""

def softshrink(x: TensorOrArray, lambd: builtins.float = 0.5) -> TensorOrArray:
    """x moved towards 0 by `lambd`; 0 where |x| <= `lambd`."""

def softsign(x: TensorOrArray) -> TensorOrArray:
    """x / (1 + |x|)."""

def solve(a: TensorLike, b: TensorLike, *, left: builtins.bool = True) -> Tensor:
    """The x with a x = b (or x a = b, if not `left`): a (..., n, n), b (..., n, k) or (n,)."""

def solve_ex(
    a: TensorLike, b: TensorLike, *, left: builtins.bool = True, check_errors: builtins.bool = False
) -> SolveInfo:
    """`solve` that does not raise: NaN and `info` above 0 for a singular matrix."""

def solve_triangular(
    a: TensorLike,
    b: TensorLike,
    *,
    upper: builtins.bool,
    left: builtins.bool = True,
    unitriangular: builtins.bool = False,
) -> Tensor:
    """The x with a x = b (or x a = b, if not `left`) for triangular a; the other triangle is not read."""

@overload
def sort(
    x: TensorOrArray, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = False
) -> Extreme:
    """The sorted elements along `dim`, and the previous position of each."""

@overload
def sort(
    x: TensorOrArray, *, axis: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = False
) -> Extreme: ...
def spherical_bessel_j0(input: TensorOrArray) -> TensorOrArray:
    """Spherical Bessel function sin(x) / x, 1 at 0."""

@overload
def split(
    x: TensorOrArray, split_size: builtins.int | Sequence[builtins.int], dim: builtins.int = 0
) -> builtins.tuple[Tensor, ...]:
    """Split into pieces of `split_size` along `dim`, the last one possibly smaller, or into the sizes given."""

@overload
def split(
    x: TensorOrArray, split_size: builtins.int | Sequence[builtins.int], *, axis: builtins.int = 0
) -> builtins.tuple[Tensor, ...]: ...
@overload
def split_copy(
    x: TensorOrArray, split_size: builtins.int | Sequence[builtins.int], dim: builtins.int = 0
) -> builtins.tuple[Tensor, ...]:
    """`split` with memory of its own."""

@overload
def split_copy(
    x: TensorOrArray, split_size: builtins.int | Sequence[builtins.int], *, axis: builtins.int = 0
) -> builtins.tuple[Tensor, ...]: ...
@overload
def split_with_sizes(
    x: TensorOrArray, split_size: builtins.int | Sequence[builtins.int], dim: builtins.int = 0
) -> builtins.tuple[Tensor, ...]:
    """Split into pieces of `split_size` along `dim`, the last one possibly smaller, or into the sizes given."""

@overload
def split_with_sizes(
    x: TensorOrArray, split_size: builtins.int | Sequence[builtins.int], *, axis: builtins.int = 0
) -> builtins.tuple[Tensor, ...]: ...
@overload
def split_with_sizes_copy(
    x: TensorOrArray, split_size: builtins.int | Sequence[builtins.int], dim: builtins.int = 0
) -> builtins.tuple[Tensor, ...]:
    """`split_with_sizes` with memory of its own."""

@overload
def split_with_sizes_copy(
    x: TensorOrArray, split_size: builtins.int | Sequence[builtins.int], *, axis: builtins.int = 0
) -> builtins.tuple[Tensor, ...]: ...
def sqrt(x: TensorOrArray) -> TensorOrArray:
    """sqrt(x)"""

def sqrt_(x: TensorOrArray) -> TensorOrArray:
    """`sqrt`, written into the tensor itself; return it."""

def square(x: TensorOrArray) -> TensorOrArray:
    """x**2"""

def square_(x: TensorOrArray) -> TensorOrArray:
    """`square`, written into the tensor itself; return it."""

@overload
def squeeze(x: TensorOrArray, dim: Ints | None = None) -> TensorOrArray:
    """Drop dimensions of size 1: all of them, or those of `dim` that have size 1."""

@overload
def squeeze(x: TensorOrArray, *, axis: Ints | None = None) -> TensorOrArray: ...
@overload
def squeeze_copy(x: TensorOrArray, dim: Ints | None = None) -> TensorOrArray:
    """`squeeze` with memory of its own."""

@overload
def squeeze_copy(x: TensorOrArray, *, axis: Ints | None = None) -> TensorOrArray: ...
@overload
def stack(tensors: Sequence[TensorLike], dim: builtins.int = 0) -> Tensor:
    """Join along a new dimension."""

@overload
def stack(tensors: Sequence[TensorLike], *, axis: builtins.int = 0) -> Tensor: ...
@overload
def std(
    x: TensorOrArray,
    dim: Ints | None = None,
    correction: Any = 1,
    keepdim: builtins.bool = False,
    *,
    unbiased: builtins.bool | None = None,
) -> TensorOrArray:
    """Standard deviation, the square root of `var`; its gradient is 0 where it is 0."""

@overload
def std(
    x: TensorOrArray,
    *,
    axis: Ints | None = None,
    ddof: Any = 1,
    keepdims: builtins.bool = False,
    unbiased: builtins.bool | None = None,
) -> TensorOrArray: ...
@overload
def std_mean(
    x: TensorOrArray,
    dim: Ints | None = None,
    correction: Any = 1,
    keepdim: builtins.bool = False,
    *,
    unbiased: builtins.bool | None = None,
) -> builtins.tuple[Tensor, Tensor]:
    """Standard deviation and mean over `dim`; see `var`."""

@overload
def std_mean(
    x: TensorOrArray,
    *,
    axis: Ints | None = None,
    ddof: Any = 1,
    keepdims: builtins.bool = False,
    unbiased: builtins.bool | None = None,
) -> builtins.tuple[Tensor, Tensor]: ...
def stft(
    input: TensorOrArray,
    n_fft: builtins.int,
    hop_length: builtins.int | None = None,
    win_length: builtins.int | None = None,
    window: TensorLike | None = None,
    center: builtins.bool = True,
    pad_mode: builtins.str = "reflect",
    normalized: builtins.bool = False,
    onesided: builtins.bool | None = None,
    return_complex: builtins.bool | None = None,
    align_to_window: builtins.bool | None = None,
) -> TensorOrArray:
    """Short-time Fourier transform: the spectra of frames of a signal."""

strided: builtins.str

def sub(x: TensorLike, other: TensorLike, *, alpha: builtins.float = 1) -> Tensor:
    """x - alpha * other."""

def sub_(x: TensorLike, other: TensorLike, *, alpha: builtins.float = 1) -> Tensor:
    """`sub`, written into the tensor itself; return it."""

def subtract(x: TensorLike, other: TensorLike, *, alpha: builtins.float = 1) -> Tensor:
    """x - alpha * other."""

def subtract_(x: TensorLike, other: TensorLike, *, alpha: builtins.float = 1) -> Tensor:
    """`subtract`, written into the tensor itself; return it."""

@overload
def sum(
    x: TensorOrArray, dim: Ints | None = None, keepdim: builtins.bool = False, *, dtype: DTypeLike | None = None
) -> TensorOrArray:
    """Sum over `dim` (an int, several, or None for all)."""

@overload
def sum(
    x: TensorOrArray, *, axis: Ints | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None
) -> TensorOrArray: ...
def sum_to_size(x: TensorOrArray, *size: builtins.int | Sequence[builtins.int]) -> TensorOrArray:
    """x summed over the dimensions along which the shape `size` would be broadcast to that of x."""

def svd(x: TensorOrArray, some: builtins.bool = True) -> builtins.tuple[Tensor, Tensor, Tensor]:
    """PyTorch's older `svd`: u, s, v with u diag(s) vT = x. `linalg.svd` returns vT instead."""

def svd_lowrank(
    A: TensorOrArray, q: builtins.int = 6, niter: builtins.int = 2, M: TensorLike | None = None
) -> builtins.tuple[Tensor, Tensor, Tensor]:
    """The largest `q` singular values of A (..., m, n), or of A - M, with their vectors U and V: about, by random maps."""

def svdvals(x: TensorOrArray) -> TensorOrArray:
    """Singular values of (..., m, n), in descending order."""

def swapaxes(x: TensorOrArray, dim0: Ints | None = None, dim1: builtins.int | None = None) -> TensorOrArray:
    """Swap two dimensions; without arguments reverse all of them, with one tuple permute, like NumPy."""

def swapdims(x: TensorOrArray, dim0: Ints | None = None, dim1: builtins.int | None = None) -> TensorOrArray:
    """Swap two dimensions; without arguments reverse all of them, with one tuple permute, like NumPy."""

def t(x: TensorOrArray) -> TensorOrArray:
    """The transpose of a matrix; a vector itself."""

def t_copy(x: TensorOrArray) -> TensorOrArray:
    """`t` with memory of its own."""

@overload
def take(x: TensorLike, index: TensorLike, dim: builtins.int | None = None) -> Tensor:
    """The elements of the flattened tensor at `index`, in its shape; with `dim` the slices along it, as in NumPy."""

@overload
def take(x: TensorLike, index: TensorLike, *, axis: builtins.int | None = None) -> Tensor: ...
@overload
def take_along_axis(x: TensorLike, index: TensorLike, dim: builtins.int | None = None) -> Tensor:
    """Pick along one axis; the other axes of `x` and `index` broadcast. Without `dim`, pick from the flattened tensor."""

@overload
def take_along_axis(x: TensorLike, index: TensorLike, *, axis: builtins.int | None = None) -> Tensor: ...
@overload
def take_along_dim(x: TensorLike, index: TensorLike, dim: builtins.int | None = None) -> Tensor:
    """Pick along one axis; the other axes of `x` and `index` broadcast. Without `dim`, pick from the flattened tensor."""

@overload
def take_along_dim(x: TensorLike, index: TensorLike, *, axis: builtins.int | None = None) -> Tensor: ...
def tan(x: TensorOrArray) -> TensorOrArray:
    """tan(x)"""

def tan_(x: TensorOrArray) -> TensorOrArray:
    """`tan`, written into the tensor itself; return it."""

def tanh(x: TensorOrArray) -> TensorOrArray:
    """tanh(x)"""

def tanh_(x: TensorOrArray) -> TensorOrArray:
    """`tanh`, written into the tensor itself; return it."""

def tanhshrink(x: TensorOrArray) -> TensorOrArray:
    """x - tanh(x)."""

def tensor(
    data: Any, dtype: DTypeLike | None = None, requires_grad: builtins.bool = False, device: Device = None
) -> Tensor:
    """Return a Tensor with a copy of `data`: numbers, nested lists, arrays."""

@overload
def tensor_split(
    x: TensorOrArray, indices_or_sections: Ints | TensorLike, dim: builtins.int = 0
) -> builtins.tuple[Tensor, ...]:
    """Split along `dim` into nearly equal sections, or before each of the given indices: NumPy's `array_split`."""

@overload
def tensor_split(
    x: TensorOrArray, indices_or_sections: Ints | TensorLike, *, axis: builtins.int = 0
) -> builtins.tuple[Tensor, ...]: ...
def tensordot(a: TensorLike, b: TensorLike, dims: Ints | None = 2) -> Tensor:
    """Sum of products over several dimensions: the last `dims` of a and the first of b, or pairs of lists."""

testing: Any

def threshold(x: TensorOrArray, threshold: builtins.float, value: builtins.float) -> TensorOrArray:
    """x where it is above `threshold`, else `value`."""

def threshold_(x: TensorOrArray, threshold: builtins.float, value: builtins.float) -> TensorOrArray:
    """`threshold`, written into the tensor itself; return it."""

def tile(x: TensorOrArray, *dims: Ints) -> TensorOrArray:
    """`repeat`, with 1 for missing leading dimensions."""

@overload
def topk(
    x: TensorOrArray,
    k: builtins.int,
    dim: builtins.int = -1,
    largest: builtins.bool = True,
    sorted: builtins.bool = True,
) -> Extreme:
    """The `k` largest (or smallest) elements along `dim`, in order, and where they are."""

@overload
def topk(
    x: TensorOrArray,
    k: builtins.int,
    *,
    axis: builtins.int = -1,
    largest: builtins.bool = True,
    sorted: builtins.bool = True,
) -> Extreme: ...
def trace(x: TensorOrArray) -> TensorOrArray:
    """Sum of the diagonal of a matrix (n, m)."""

def transpose(x: TensorOrArray, dim0: Ints | None = None, dim1: builtins.int | None = None) -> TensorOrArray:
    """Swap two dimensions; without arguments reverse all of them, with one tuple permute, like NumPy."""

def transpose_copy(x: TensorOrArray, dim0: Ints | None = None, dim1: builtins.int | None = None) -> TensorOrArray:
    """`transpose` with memory of its own."""

@overload
def trapezoid(
    y: TensorOrArray, x: TensorLike | None = None, dx: builtins.float = 1.0, dim: builtins.int = -1
) -> TensorOrArray:
    """The integral along `dim` by the trapezoidal rule, over the points `x` or steps of `dx`."""

@overload
def trapezoid(
    y: TensorOrArray, x: TensorLike | None = None, dx: builtins.float = 1.0, *, axis: builtins.int = -1
) -> TensorOrArray: ...
@overload
def trapz(
    y: TensorOrArray, x: TensorLike | None = None, dx: builtins.float = 1.0, dim: builtins.int = -1
) -> TensorOrArray:
    """The integral along `dim` by the trapezoidal rule, over the points `x` or steps of `dx`."""

@overload
def trapz(
    y: TensorOrArray, x: TensorLike | None = None, dx: builtins.float = 1.0, *, axis: builtins.int = -1
) -> TensorOrArray: ...
def triangular_solve(
    b: TensorLike,
    A: TensorLike,
    upper: builtins.bool = True,
    transpose: builtins.bool = False,
    unitriangular: builtins.bool = False,
) -> TriangularSolution:
    """Solve A X = b for a triangular A; `linalg.solve_triangular` has the newer argument order."""

def tril(x: TensorOrArray, diagonal: builtins.int = 0) -> TensorOrArray:
    """Keep the lower triangle of the last two dimensions."""

def tril_(x: TensorOrArray, diagonal: builtins.int = 0) -> TensorOrArray:
    """`tril`, written into the tensor itself; return it."""

def tril_indices(
    row: builtins.int,
    col: builtins.int,
    offset: builtins.int = 0,
    *,
    dtype: DTypeLike | None = ...,
    device: Device = None,
) -> Tensor:
    """Indices of the lower triangle of a matrix, (2, n): rows and columns."""

def triu(x: TensorOrArray, diagonal: builtins.int = 0) -> TensorOrArray:
    """Keep the upper triangle of the last two dimensions."""

def triu_(x: TensorOrArray, diagonal: builtins.int = 0) -> TensorOrArray:
    """`triu`, written into the tensor itself; return it."""

def triu_indices(
    row: builtins.int,
    col: builtins.int,
    offset: builtins.int = 0,
    *,
    dtype: DTypeLike | None = ...,
    device: Device = None,
) -> Tensor:
    """Indices of the upper triangle of a matrix, (2, n): rows and columns."""

def true_divide(x: TensorLike, other: TensorLike, *, rounding_mode: builtins.str | None = None) -> Tensor:
    """x / other; `rounding_mode` "floor" or "trunc" rounds the quotient, whose gradient is then 0."""

def true_divide_(x: TensorLike, other: TensorLike, *, rounding_mode: builtins.str | None = None) -> Tensor:
    """`true_divide`, written into the tensor itself; return it."""

def trunc(x: TensorOrArray) -> TensorOrArray:
    """x without its fraction"""

def trunc_(x: TensorOrArray) -> TensorOrArray:
    """`trunc`, written into the tensor itself; return it."""

def type(x: TensorOrArray, dtype: DTypeLike | None) -> Any:
    """Return `x` in another dtype; `x` itself if it already has that dtype."""

def typename(obj: builtins.object) -> builtins.str:
    """Return the full name of the type of an object."""

types: Any
uint8: np.dtype[np.uint8]

@overload
def unbind(x: TensorOrArray, dim: builtins.int = 0) -> builtins.tuple[Tensor, ...]:
    """Return the slices along `dim`, without that dimension."""

@overload
def unbind(x: TensorOrArray, *, axis: builtins.int = 0) -> builtins.tuple[Tensor, ...]: ...
@overload
def unbind_copy(x: TensorOrArray, dim: builtins.int = 0) -> builtins.tuple[Tensor, ...]:
    """`unbind` with memory of its own."""

@overload
def unbind_copy(x: TensorOrArray, *, axis: builtins.int = 0) -> builtins.tuple[Tensor, ...]: ...
@overload
def unflatten(x: TensorOrArray, dim: builtins.int, sizes: Sequence[builtins.int]) -> TensorOrArray:
    """Split dimension `dim` into `sizes`, one of which may be -1."""

@overload
def unflatten(x: TensorOrArray, *, axis: builtins.int, sizes: Sequence[builtins.int]) -> TensorOrArray: ...
def unfold(x: TensorOrArray, dimension: builtins.int, size: builtins.int, step: builtins.int = 1) -> TensorOrArray:
    """All windows of `size` elements along a dimension, `step` apart, with their elements as the last dimension."""

def unfold_copy(x: TensorOrArray, dimension: builtins.int, size: builtins.int, step: builtins.int = 1) -> TensorOrArray:
    """`unfold` with memory of its own."""

def uniform_(
    x: Tensor, from_: builtins.float = 0.0, to: builtins.float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Write numbers drawn evenly from [from_, to); return x."""

@overload
def unique(
    x: TensorOrArray,
    sorted: builtins.bool = True,
    return_inverse: builtins.bool = False,
    return_counts: builtins.bool = False,
    dim: builtins.int | None = None,
) -> Any:
    """The distinct values in x, in order; with `dim` the distinct slices."""

@overload
def unique(
    x: TensorOrArray,
    sorted: builtins.bool = True,
    return_inverse: builtins.bool = False,
    return_counts: builtins.bool = False,
    *,
    axis: builtins.int | None = None,
) -> Any: ...
@overload
def unique_consecutive(
    x: TensorOrArray,
    return_inverse: builtins.bool = False,
    return_counts: builtins.bool = False,
    dim: builtins.int | None = None,
) -> Any:
    """The values of x (its slices along `dim`) without consecutive repeats."""

@overload
def unique_consecutive(
    x: TensorOrArray,
    return_inverse: builtins.bool = False,
    return_counts: builtins.bool = False,
    *,
    axis: builtins.int | None = None,
) -> Any: ...
def unravel_index(indices: Any, shape: Ints) -> builtins.tuple[Tensor, ...]:
    """Convert flat indices into an array of this shape to one index tensor per axis; indices wrap around at its end."""

@overload
def unsafe_chunk(x: TensorOrArray, chunks: builtins.int, dim: builtins.int = 0) -> builtins.tuple[Tensor, ...]:
    """Split into at most `chunks` pieces along `dim`, equal but for a smaller last one."""

@overload
def unsafe_chunk(x: TensorOrArray, chunks: builtins.int, *, axis: builtins.int = 0) -> builtins.tuple[Tensor, ...]: ...
@overload
def unsafe_split(
    x: TensorOrArray, split_size: builtins.int | Sequence[builtins.int], dim: builtins.int = 0
) -> builtins.tuple[Tensor, ...]:
    """Split into pieces of `split_size` along `dim`, the last one possibly smaller, or into the sizes given."""

@overload
def unsafe_split(
    x: TensorOrArray, split_size: builtins.int | Sequence[builtins.int], *, axis: builtins.int = 0
) -> builtins.tuple[Tensor, ...]: ...
@overload
def unsafe_split_with_sizes(
    x: TensorOrArray, split_size: builtins.int | Sequence[builtins.int], dim: builtins.int = 0
) -> builtins.tuple[Tensor, ...]:
    """Split into pieces of `split_size` along `dim`, the last one possibly smaller, or into the sizes given."""

@overload
def unsafe_split_with_sizes(
    x: TensorOrArray, split_size: builtins.int | Sequence[builtins.int], *, axis: builtins.int = 0
) -> builtins.tuple[Tensor, ...]: ...
@overload
def unsqueeze(x: TensorOrArray, dim: builtins.int) -> TensorOrArray:
    """Insert a dimension of size 1 at `dim`."""

@overload
def unsqueeze(x: TensorOrArray, *, axis: builtins.int) -> TensorOrArray: ...
@overload
def unsqueeze_copy(x: TensorOrArray, dim: builtins.int) -> TensorOrArray:
    """`unsqueeze` with memory of its own."""

@overload
def unsqueeze_copy(x: TensorOrArray, *, axis: builtins.int) -> TensorOrArray: ...
@overload
def unstack(x: TensorOrArray, dim: builtins.int = 0) -> builtins.tuple[Tensor, ...]:
    """Return the slices along `dim`, without that dimension."""

@overload
def unstack(x: TensorOrArray, *, axis: builtins.int = 0) -> builtins.tuple[Tensor, ...]: ...
def use_deterministic_algorithms(*_args: builtins.object, **_kwargs: builtins.object) -> None:
    """Do nothing: this tunes PyTorch's own kernels."""

def vander(x: TensorOrArray, N: builtins.int | None = None, increasing: builtins.bool = False) -> TensorOrArray:
    """The powers of the elements of a vector (n,), the highest first unless they are `increasing`: (n, N)."""

@overload
def var(
    x: TensorOrArray,
    dim: Ints | None = None,
    correction: Any = 1,
    keepdim: builtins.bool = False,
    *,
    unbiased: builtins.bool | None = None,
) -> TensorOrArray:
    """Variance over `dim`, the sum of squares divided by n - `correction`."""

@overload
def var(
    x: TensorOrArray,
    *,
    axis: Ints | None = None,
    ddof: Any = 1,
    keepdims: builtins.bool = False,
    unbiased: builtins.bool | None = None,
) -> TensorOrArray: ...
@overload
def var_mean(
    x: TensorOrArray,
    dim: Ints | None = None,
    correction: Any = 1,
    keepdim: builtins.bool = False,
    *,
    unbiased: builtins.bool | None = None,
) -> builtins.tuple[Tensor, Tensor]:
    """Variance and mean over `dim`; see `var`."""

@overload
def var_mean(
    x: TensorOrArray,
    *,
    axis: Ints | None = None,
    ddof: Any = 1,
    keepdims: builtins.bool = False,
    unbiased: builtins.bool | None = None,
) -> builtins.tuple[Tensor, Tensor]: ...
def vdot(a: TensorLike, b: TensorLike) -> Tensor:
    """Inner product of two vectors, with the complex conjugate of the first."""

@overload
def vecdot(a: TensorLike, b: TensorLike, dim: builtins.int = -1) -> Tensor:
    """Sum of products along `dim`, with the conjugate of a; the other dimensions broadcast."""

@overload
def vecdot(a: TensorLike, b: TensorLike, *, axis: builtins.int = -1) -> Tensor: ...
@overload
def vector_norm(
    x: TensorOrArray,
    ord: builtins.float | builtins.str | None = 2,
    dim: Ints | None = None,
    keepdim: builtins.bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> TensorOrArray:
    """(sum of |x|**ord)**(1/ord) over `dim`; inf and -inf give the largest and smallest |x|, 0 counts nonzeros."""

@overload
def vector_norm(
    x: TensorOrArray,
    ord: builtins.float | builtins.str | None = 2,
    *,
    axis: Ints | None = None,
    keepdims: builtins.bool = False,
    dtype: DTypeLike | None = None,
) -> TensorOrArray: ...

version: Any

def view(x: TensorOrArray, *shape: Ints) -> TensorOrArray:
    """`reshape` under PyTorch's name (it copies if no view is possible); with a dtype, read the bits as that dtype."""

def view_as(x: TensorLike, other: TensorLike) -> Tensor:
    """x in the shape of `other`."""

def view_as_complex(x: TensorOrArray) -> TensorOrArray:
    """Pairs (..., 2) of real and imaginary part as complex numbers (...)."""

def view_as_complex_copy(x: TensorOrArray) -> TensorOrArray:
    """`view_as_complex` with memory of its own."""

def view_as_real(x: TensorOrArray) -> TensorOrArray:
    """Complex numbers (...) as pairs (..., 2) of real and imaginary part."""

def view_as_real_copy(x: TensorOrArray) -> TensorOrArray:
    """`view_as_real` with memory of its own."""

def view_copy(x: TensorOrArray, *shape: Ints) -> TensorOrArray:
    """`view` with memory of its own."""

def vsplit(x: TensorOrArray, indices_or_sections: Ints | TensorLike) -> builtins.tuple[Tensor, ...]:
    """Split rows into equal parts, or before each of the given indices."""

def vstack(tensors: Sequence[TensorLike]) -> Tensor:
    """Join one below the other: vectors become rows."""

@overload
def where(condition: TensorLike) -> builtins.tuple[Tensor, ...]:
    """`input` where `condition` is true, else `other`; with `condition` alone, the indices where it is true."""

@overload
def where(condition: TensorLike, input: TensorLike, other: TensorLike) -> Tensor: ...
def xlog1py(x: TensorLike, other: TensorLike) -> Tensor:
    """a * log(1 + b), 0 where a is 0"""

def xlogy(x: TensorLike, other: TensorLike) -> Tensor:
    """a * log(b), 0 where a is 0"""

def xlogy_(x: TensorLike, other: TensorLike) -> Tensor:
    """`xlogy`, written into the tensor itself; return it."""

xpu: Any

def zero_(x: Tensor) -> Tensor:
    """Write 0 everywhere; return x."""

def zeros(
    *sizes: Ints,
    size: Ints | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: builtins.bool = False,
    device: Device = None,
) -> Tensor:
    """Zeros of the given shape."""

def zeros_like(
    input: TensorLike, *, dtype: DTypeLike | None = None, requires_grad: builtins.bool = False, device: Device = None
) -> Tensor:
    """Zeros with the shape and dtype of `input`."""

def zeta(input: TensorLike, other: TensorLike) -> Tensor:
    """Hurwitz' zeta function, the sum of (other + k)**-input over k = 0, 1, ..., with a gradient in `other` alone."""
