# Written by tools/stubs.py from the functions as they are when the library runs.
import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, ParamSpec, Self, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt
from numpy.typing import DTypeLike
from glassgrad.engine.tensors.devices import device
from glassgrad.engine.node import Node
from glassgrad.engine.random import Generator
from glassgrad.engine.tensor import Tensor, TensorLike
from glassgrad.engine.tensors.storage import Storage

Device: TypeAlias = device | str | builtins.int | None
Ints: TypeAlias = builtins.int | Sequence[builtins.int]
Number: TypeAlias = builtins.complex | np.number[Any] | np.bool_
Sizes: TypeAlias = builtins.int | Sequence[builtins.int | None] | None
Tensors: TypeAlias = TensorLike | Sequence[TensorLike]
TensorOrArray = TypeVar("TensorOrArray", Tensor, npt.NDArray[Any])

class CholeskyInfo(NamedTuple):
    """What `linalg.cholesky_ex` returns."""

    L: Tensor
    info: Tensor

class EigResult(NamedTuple):
    """What `linalg.eig` returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor

class EighResult(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor

class Extreme(NamedTuple):
    """The result of `max(dim=...)`, `min(dim=...)`, `sort` and `topk`."""

    values: Tensor
    indices: Tensor

class Frexp(NamedTuple):
    """What `frexp` returns."""

    mantissa: Tensor
    exponent: Tensor

class Histogram(NamedTuple):
    """What `histogram` returns."""

    hist: Tensor
    bin_edges: Tensor

class InverseInfo(NamedTuple):
    """What `linalg.inv_ex` returns."""

    inverse: Tensor
    info: Tensor

class LUFactors(NamedTuple):
    """What `linalg.lu_factor` returns."""

    LU: Tensor
    pivots: Tensor

class LUFactorsInfo(NamedTuple):
    """What `linalg.lu_factor_ex` returns."""

    LU: Tensor
    pivots: Tensor
    info: Tensor

class LUResult(NamedTuple):
    """What `linalg.lu` returns."""

    P: Tensor
    L: Tensor
    U: Tensor

class QRResult(NamedTuple):
    """What `qr` returns."""

    Q: Tensor
    R: Tensor

class Reflectors(NamedTuple):
    """What `geqrf` returns."""

    a: Tensor
    tau: Tensor

class SVDResult(NamedTuple):
    """What `svd` returns."""

    U: Tensor
    S: Tensor
    Vh: Tensor

class SlogdetResult(NamedTuple):
    """What `slogdet` returns."""

    sign: Tensor
    logabsdet: Tensor

class SolveInfo(NamedTuple):
    """What `linalg.solve_ex` returns."""

    result: Tensor
    info: Tensor

class TriangularSolution(NamedTuple):
    """What `triangular_solve` returns."""

    solution: Tensor
    cloned_coefficient: Tensor

class TensorMethods:
    @property
    def H(self) -> Tensor: ...
    def __abs__(self) -> Tensor: ...
    def __add__(self, other: TensorLike) -> Tensor: ...
    def __and__(self, other: TensorLike) -> Tensor: ...
    def __array_function__(
        self,
        func: Any,
        _types: builtins.object,
        args: builtins.tuple[Any, ...],
        kwargs: builtins.dict[builtins.str, Any],
    ) -> Any: ...
    def __array_namespace__(self, *, api_version: builtins.str | None = None) -> Any: ...
    def __array_ufunc__(self, function: Any, method: builtins.str, *inputs: TensorLike, **kwargs: Any) -> Any: ...
    def __copy__(self) -> Tensor:
        """Return a tensor with the same memory and the same place on the tape."""
    def __dlpack__(self, **how: builtins.object) -> Any:
        """Return a capsule of the tensor's memory: `Tensor.__dlpack__`."""
    def __dlpack_device__(self) -> builtins.tuple[builtins.int, builtins.int]:
        """Return the device of the memory: `Tensor.__dlpack_device__`."""
    def __eq__(self, other: TensorLike) -> Tensor:  # type: ignore[override]  # by elements, as in NumPy
        ...
    def __floordiv__(self, other: TensorLike) -> Tensor: ...
    def __ge__(self, other: TensorLike) -> Tensor: ...
    def __gt__(self, other: TensorLike) -> Tensor: ...
    def __iadd__(self, other: TensorLike) -> Self: ...
    def __iand__(self, other: TensorLike) -> Self: ...
    def __ifloordiv__(self, other: TensorLike) -> Self: ...
    def __ilshift__(self, other: TensorLike) -> Self: ...
    def __imatmul__(self, other: TensorLike) -> Self: ...
    def __imod__(self, other: TensorLike) -> Self: ...
    def __imul__(self, other: TensorLike) -> Self: ...
    def __invert__(self) -> Tensor: ...
    def __ior__(self, other: TensorLike) -> Self: ...
    def __ipow__(self, other: TensorLike) -> Self: ...
    def __irshift__(self, other: TensorLike) -> Self: ...
    def __isub__(self, other: TensorLike) -> Self: ...
    def __itruediv__(self, other: TensorLike) -> Self: ...
    def __ixor__(self, other: TensorLike) -> Self: ...
    def __le__(self, other: TensorLike) -> Tensor: ...
    def __lshift__(self, other: TensorLike) -> Tensor: ...
    def __lt__(self, other: TensorLike) -> Tensor: ...
    def __matmul__(self, other: TensorLike) -> Tensor: ...
    def __mod__(self, other: TensorLike) -> Tensor: ...
    def __mul__(self, other: TensorLike) -> Tensor: ...
    def __ne__(self, other: TensorLike) -> Tensor:  # type: ignore[override]  # by elements, as in NumPy
        ...
    def __neg__(self) -> Tensor: ...
    def __or__(self, other: TensorLike) -> Tensor: ...
    def __pos__(self) -> Tensor:
        """x itself; booleans are refused, as in PyTorch and NumPy."""
    def __pow__(self, other: TensorLike) -> Tensor: ...
    def __radd__(self, other: TensorLike) -> Tensor: ...
    def __rand__(self, other: TensorLike) -> Tensor: ...
    def __rfloordiv__(self, other: TensorLike) -> Tensor: ...
    def __rlshift__(self, other: TensorLike) -> Tensor: ...
    def __rmatmul__(self, other: TensorLike) -> Tensor: ...
    def __rmod__(self, other: TensorLike) -> Tensor: ...
    def __rmul__(self, other: TensorLike) -> Tensor: ...
    def __ror__(self, other: TensorLike) -> Tensor: ...
    def __rpow__(self, other: TensorLike) -> Tensor: ...
    def __rrshift__(self, other: TensorLike) -> Tensor: ...
    def __rshift__(self, other: TensorLike) -> Tensor: ...
    def __rsub__(self, other: TensorLike) -> Tensor: ...
    def __rtruediv__(self, other: TensorLike) -> Tensor: ...
    def __rxor__(self, other: TensorLike) -> Tensor: ...
    def __setitem__(self, key: Any, value: TensorLike) -> None:
        """x[key] = value: `Tensor.__setitem__`."""
    def __sub__(self, other: TensorLike) -> Tensor: ...
    def __truediv__(self, other: TensorLike) -> Tensor: ...
    def __xor__(self, other: TensorLike) -> Tensor: ...
    def abs(self) -> Tensor:
        """|x|"""
    def abs_(self) -> Self:
        """`abs`, written into the tensor itself; return it."""
    def absolute(self) -> Tensor:
        """|x|"""
    def absolute_(self) -> Self:
        """`absolute`, written into the tensor itself; return it."""
    def acos(self) -> Tensor:
        """arccos(x)"""
    def acos_(self) -> Self:
        """`acos`, written into the tensor itself; return it."""
    def acosh(self) -> Tensor:
        """arccosh(x)"""
    def acosh_(self) -> Self:
        """`acosh`, written into the tensor itself; return it."""
    def add(self, other: TensorLike, *, alpha: builtins.float = 1) -> Tensor:
        """x + alpha * other."""
    def add_(self, other: TensorLike, *, alpha: builtins.float = 1) -> Self:
        """`add`, written into the tensor itself; return it."""
    def addbmm(self, a: TensorLike, b: TensorLike, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """beta x + alpha times the sum of the products of a batch: (batch, n, k) and (batch, k, m) to (n, m)."""
    def addbmm_(self, a: TensorLike, b: TensorLike, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Self:
        """`addbmm`, written into the tensor itself; return it."""
    def addcdiv(self, tensor1: TensorLike, tensor2: TensorLike, *, value: builtins.float = 1) -> Tensor:
        """x + value * tensor1 / tensor2."""
    def addcdiv_(self, tensor1: TensorLike, tensor2: TensorLike, *, value: builtins.float = 1) -> Self:
        """`addcdiv`, written into the tensor itself; return it."""
    def addcmul(self, tensor1: TensorLike, tensor2: TensorLike, *, value: builtins.float = 1) -> Tensor:
        """x + value * tensor1 * tensor2."""
    def addcmul_(self, tensor1: TensorLike, tensor2: TensorLike, *, value: builtins.float = 1) -> Self:
        """`addcmul`, written into the tensor itself; return it."""
    def addmm(self, a: TensorLike, b: TensorLike, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """beta x + alpha (a @ b) for two matrices."""
    def addmm_(self, a: TensorLike, b: TensorLike, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Self:
        """`addmm`, written into the tensor itself; return it."""
    def addmv(self, a: TensorLike, b: TensorLike, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """beta x + alpha (a @ b) for a matrix a and a vector b."""
    def addmv_(self, a: TensorLike, b: TensorLike, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Self:
        """`addmv`, written into the tensor itself; return it."""
    def addr(
        self, vec1: TensorLike, vec2: TensorLike, *, beta: builtins.float = 1, alpha: builtins.float = 1
    ) -> Tensor:
        """beta x + alpha times the outer product of two vectors."""
    def addr_(self, vec1: TensorLike, vec2: TensorLike, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Self:
        """`addr`, written into the tensor itself; return it."""
    def adjoint(self) -> Tensor:
        """The conjugate transpose of (..., n, m): shape (..., m, n)."""
    def airy_ai(self) -> Tensor:
        """Airy's function Ai(x)"""
    @overload
    def all(self, dim: Ints | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Whether all elements are true; with `dim=()`, whether each is."""
    @overload
    def all(self, *, axis: Ints | None = None, keepdims: builtins.bool = False) -> Tensor: ...
    def allclose(
        self,
        other: TensorLike,
        rtol: builtins.float = 1e-05,
        atol: builtins.float = 1e-08,
        equal_nan: builtins.bool = False,
    ) -> builtins.bool:
        """Whether all elements are close; see `isclose`."""
    @overload
    def amax(self, dim: Ints | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Largest element over `dim`; ties share the gradient equally."""
    @overload
    def amax(self, *, axis: Ints | None = None, keepdims: builtins.bool = False) -> Tensor: ...
    @overload
    def amin(self, dim: Ints | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Smallest element over `dim`; ties share the gradient equally."""
    @overload
    def amin(self, *, axis: Ints | None = None, keepdims: builtins.bool = False) -> Tensor: ...
    @overload
    def aminmax(self, dim: Ints | None = None, keepdim: builtins.bool = False) -> builtins.tuple[Tensor, Tensor]:
        """The smallest and the largest element over `dim`."""
    @overload
    def aminmax(
        self, *, axis: Ints | None = None, keepdims: builtins.bool = False
    ) -> builtins.tuple[Tensor, Tensor]: ...
    def angle(self) -> Tensor:
        """Argument of a complex number, between -pi and pi; 0 or pi for a real number."""
    @overload
    def any(self, dim: Ints | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Whether any element is true; with `dim=()`, whether each is."""
    @overload
    def any(self, *, axis: Ints | None = None, keepdims: builtins.bool = False) -> Tensor: ...
    def apply_(self, callable: Callable[[Any], Any]) -> Self:
        """Write a function of Python of each element over it; return x. It is slow: ops are for whole tensors."""
    def arccos(self) -> Tensor:
        """arccos(x)"""
    def arccos_(self) -> Self:
        """`arccos`, written into the tensor itself; return it."""
    def arccosh(self) -> Tensor:
        """arccosh(x)"""
    def arccosh_(self) -> Self:
        """`arccosh`, written into the tensor itself; return it."""
    def arcsin(self) -> Tensor:
        """arcsin(x)"""
    def arcsin_(self) -> Self:
        """`arcsin`, written into the tensor itself; return it."""
    def arcsinh(self) -> Tensor:
        """arcsinh(x)"""
    def arcsinh_(self) -> Self:
        """`arcsinh`, written into the tensor itself; return it."""
    def arctan(self) -> Tensor:
        """arctan(x)"""
    def arctan2(self, other: TensorLike) -> Tensor:
        """angle of the point (b, a)"""
    def arctan2_(self, other: TensorLike) -> Self:
        """`arctan2`, written into the tensor itself; return it."""
    def arctan_(self) -> Self:
        """`arctan`, written into the tensor itself; return it."""
    def arctanh(self) -> Tensor:
        """arctanh(x)"""
    def arctanh_(self) -> Self:
        """`arctanh`, written into the tensor itself; return it."""
    @overload
    def argmax(self, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Index of the largest element along `dim`, or in the flattened array without it; no gradient."""
    @overload
    def argmax(self, *, axis: builtins.int | None = None, keepdims: builtins.bool = False) -> Tensor: ...
    @overload
    def argmin(self, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Index of the smallest element along `dim`, or in the flattened array without it; no gradient."""
    @overload
    def argmin(self, *, axis: builtins.int | None = None, keepdims: builtins.bool = False) -> Tensor: ...
    @overload
    def argsort(
        self, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = False
    ) -> Tensor:
        """The positions that would sort x along `dim`."""
    @overload
    def argsort(
        self, *, axis: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = False
    ) -> Tensor: ...
    def argwhere(self) -> Tensor:
        """The indices where x is not zero: shape (count, ndim)."""
    def around(self, decimals: builtins.int = 0) -> Tensor:
        """Round to `decimals` places, ties to even. The gradient is 0."""
    @overload
    def array_split(self, indices_or_sections: Ints | TensorLike, dim: builtins.int = 0) -> builtins.tuple[Tensor, ...]:
        """Split along `dim` into nearly equal sections, or before each of the given indices: NumPy's `array_split`."""
    @overload
    def array_split(
        self, indices_or_sections: Ints | TensorLike, *, axis: builtins.int = 0
    ) -> builtins.tuple[Tensor, ...]: ...
    def as_strided(self, size: Ints, stride: Ints, storage_offset: builtins.int | None = None) -> Tensor:
        """The elements `stride` apart in memory, starting at `storage_offset`; read-only, with a gradient."""
    def as_strided_(self, size: Ints | None, stride: Ints | None, storage_offset: builtins.int | None = None) -> Self:
        """`as_strided` of the tensor itself, which has another shape from then on; return it."""
    def as_strided_scatter(
        self,
        src: TensorLike,
        size: Sequence[builtins.int],
        stride: Sequence[builtins.int],
        storage_offset: builtins.int | None = None,
    ) -> Tensor:
        """x with `src` at the elements that lie `stride` apart, in the order of x, from `storage_offset` on."""
    def asin(self) -> Tensor:
        """arcsin(x)"""
    def asin_(self) -> Self:
        """`asin`, written into the tensor itself; return it."""
    def asinh(self) -> Tensor:
        """arcsinh(x)"""
    def asinh_(self) -> Self:
        """`asinh`, written into the tensor itself; return it."""
    def astype(self, dtype: DTypeLike | None) -> Tensor:
        """Return `x` in another dtype; `x` itself if it already has that dtype."""
    def atan(self) -> Tensor:
        """arctan(x)"""
    def atan2(self, other: TensorLike) -> Tensor:
        """angle of the point (b, a)"""
    def atan2_(self, other: TensorLike) -> Self:
        """`atan2`, written into the tensor itself; return it."""
    def atan_(self) -> Self:
        """`atan`, written into the tensor itself; return it."""
    def atanh(self) -> Tensor:
        """arctanh(x)"""
    def atanh_(self) -> Self:
        """`atanh`, written into the tensor itself; return it."""
    @overload
    def atleast_1d(self) -> Tensor:
        """x with at least one dimension; a tuple for several tensors or a list of them."""
    @overload
    def atleast_1d(self, *tensors: TensorLike) -> builtins.tuple[Tensor, ...]: ...
    @overload
    def atleast_2d(self) -> Tensor:
        """x with at least two dimensions, new ones first; a tuple for several tensors or a list of them."""
    @overload
    def atleast_2d(self, *tensors: TensorLike) -> builtins.tuple[Tensor, ...]: ...
    @overload
    def atleast_3d(self) -> Tensor:
        """x with at least three dimensions: (1, n, 1) from a vector, (m, n, 1) from a matrix; a tuple for several."""
    @overload
    def atleast_3d(self, *tensors: TensorLike) -> builtins.tuple[Tensor, ...]: ...
    def backward(
        self,
        gradient: TensorLike | None = None,
        retain_graph: builtins.bool | None = None,
        create_graph: builtins.bool = False,
        inputs: Sequence[Tensor] | Tensor | None = None,
    ) -> None:
        """Add the gradient of this tensor to `.grad` of the leaves it was computed from."""
    def baddbmm(self, a: TensorLike, b: TensorLike, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """beta x + alpha (a @ b) for batches of matrices (batch, n, k) and (batch, k, m)."""
    def baddbmm_(self, a: TensorLike, b: TensorLike, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Self:
        """`baddbmm`, written into the tensor itself; return it."""
    def bernoulli(self, *, generator: Generator | None = None) -> Tensor:
        """1 with the probability in each element, else 0; see `glassgrad.bernoulli`."""
    def bernoulli_(self, p: builtins.float = 0.5, *, generator: Generator | None = None) -> Self:
        """Write 1 with probability p, else 0; return x."""
    def bessel_j0(self) -> Tensor:
        """Bessel function J0(x)"""
    def bessel_j1(self) -> Tensor:
        """Bessel function J1(x)"""
    def bessel_y0(self) -> Tensor:
        """Bessel function Y0(x)"""
    def bessel_y1(self) -> Tensor:
        """Bessel function Y1(x)"""
    def bfloat16(self, memory_format: str | None = None) -> Tensor:
        """The tensor in bfloat16, rounded to the nearest; itself if it already has that dtype."""
    def bincount(self, weights: TensorLike | None = None, minlength: builtins.int = 0) -> Tensor:
        """Count each of the integers 0, 1, ... in x, or sum its `weights`, which get gradients."""
    def bitwise_and(self, other: TensorLike) -> Tensor:
        """a & b"""
    def bitwise_and_(self, other: TensorLike) -> Self:
        """`bitwise_and`, written into the tensor itself; return it."""
    def bitwise_invert(self) -> Tensor:
        """~x"""
    def bitwise_left_shift(self, other: TensorLike) -> Tensor:
        """a << b"""
    def bitwise_left_shift_(self, other: TensorLike) -> Self:
        """`bitwise_left_shift`, written into the tensor itself; return it."""
    def bitwise_not(self) -> Tensor:
        """~x"""
    def bitwise_not_(self) -> Self:
        """`bitwise_not`, written into the tensor itself; return it."""
    def bitwise_or(self, other: TensorLike) -> Tensor:
        """a | b"""
    def bitwise_or_(self, other: TensorLike) -> Self:
        """`bitwise_or`, written into the tensor itself; return it."""
    def bitwise_right_shift(self, other: TensorLike) -> Tensor:
        """a >> b"""
    def bitwise_right_shift_(self, other: TensorLike) -> Self:
        """`bitwise_right_shift`, written into the tensor itself; return it."""
    def bitwise_xor(self, other: TensorLike) -> Tensor:
        """a ^ b"""
    def bitwise_xor_(self, other: TensorLike) -> Self:
        """`bitwise_xor`, written into the tensor itself; return it."""
    def bmm(self, b: TensorLike) -> Tensor:
        """Products of matrices: (batch, n, k) and (batch, k, m) to (batch, n, m)."""
    def bool(self, memory_format: str | None = None) -> Tensor:
        """The tensor with dtype bool; itself if it has it already."""
    def broadcast_to(self, size: Sequence[builtins.int]) -> Tensor:
        """Broadcast `x` to the shape `size`."""
    def byte(self, memory_format: str | None = None) -> Tensor:
        """The tensor with dtype uint8; itself if it has it already."""
    def cauchy_(
        self, median: builtins.float = 0.0, sigma: builtins.float = 1.0, *, generator: Generator | None = None
    ) -> Self:
        """Write numbers with Cauchy's distribution of this median and half width; return x."""
    def cdouble(self, memory_format: str | None = None) -> Tensor:
        """The tensor with dtype complex128; itself if it has it already."""
    def ceil(self) -> Tensor:
        """smallest integer >= x"""
    def ceil_(self) -> Self:
        """`ceil`, written into the tensor itself; return it."""
    def celu(self, alpha: builtins.float = 1.0) -> Tensor:
        """x where it is positive, else alpha * (exp(x / alpha) - 1)."""
    def celu_(self, alpha: builtins.float = 1.0) -> Self:
        """`celu`, written into the tensor itself; return it."""
    def cfloat(self, memory_format: str | None = None) -> Tensor:
        """The tensor with dtype complex64; itself if it has it already."""
    def char(self, memory_format: str | None = None) -> Tensor:
        """The tensor with dtype int8; itself if it has it already."""
    def chebyshev_polynomial_t(self, n: TensorLike) -> Tensor:
        """Chebyshev t polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""
    def chebyshev_polynomial_u(self, n: TensorLike) -> Tensor:
        """Chebyshev u polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""
    def chebyshev_polynomial_v(self, n: TensorLike) -> Tensor:
        """Chebyshev v polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""
    def chebyshev_polynomial_w(self, n: TensorLike) -> Tensor:
        """Chebyshev w polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""
    def cholesky(self, upper: builtins.bool = False) -> Tensor:
        """The lower triangular y with y yT = x for a positive definite (..., n, n); with `upper` its transpose."""
    def cholesky_ex(self, *, upper: builtins.bool = False, check_errors: builtins.bool = False) -> CholeskyInfo:
        """`cholesky` that does not raise: NaN and `info` above 0 for a matrix that is not positive definite."""
    def cholesky_inverse(self, upper: builtins.bool = False) -> Tensor:
        """The inverse of L LH, or of UH U for an upper factor."""
    def cholesky_solve(self, L: TensorLike, upper: builtins.bool = False) -> Tensor:
        """The x with L LH x = b, or with UH U x = b for an upper factor: L (..., n, n), b (..., n, k)."""
    @overload
    def chunk(self, chunks: builtins.int, dim: builtins.int = 0) -> builtins.tuple[Tensor, ...]:
        """Split into at most `chunks` pieces along `dim`, equal but for a smaller last one."""
    @overload
    def chunk(self, chunks: builtins.int, *, axis: builtins.int = 0) -> builtins.tuple[Tensor, ...]: ...
    def clamp(self, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
        """Limit `x` to [`min`, `max`]; either may be None, a number or a tensor."""
    def clamp_(self, min: TensorLike | None = None, max: TensorLike | None = None) -> Self:
        """`clamp`, written into the tensor itself; return it."""
    def clamp_max(self, max: TensorLike | None) -> Tensor:
        """Limit x from above."""
    def clamp_max_(self, max: TensorLike | None) -> Self:
        """`clamp_max`, written into the tensor itself; return it."""
    def clamp_min(self, min: TensorLike | None) -> Tensor:
        """Limit x from below."""
    def clamp_min_(self, min: TensorLike | None) -> Self:
        """`clamp_min`, written into the tensor itself; return it."""
    def clip(self, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
        """Limit `x` to [`min`, `max`]; either may be None, a number or a tensor."""
    def clip_(self, min: TensorLike | None = None, max: TensorLike | None = None) -> Self:
        """`clip`, written into the tensor itself; return it."""
    def clone(self, *, memory_format: builtins.str | None = None) -> Tensor:
        """Return a copy through which gradients flow to `x`."""
    def conj(self) -> Tensor:
        """Complex conjugate."""
    def conj_physical(self) -> Tensor:
        """Complex conjugate."""
    def conj_physical_(self) -> Self:
        """`conj_physical`, written into the tensor itself; return it."""
    def contiguous(self) -> Tensor:
        """The tensor in contiguous memory: itself, or a copy."""
    def copy(self, *, memory_format: builtins.str | None = None) -> Tensor:
        """Return a copy through which gradients flow to `x`."""
    def copy_(self, src: TensorLike, non_blocking: builtins.bool = False) -> Self:
        """Write the values of `src`, which broadcasts; return x."""
    def copysign(self, other: TensorLike) -> Tensor:
        """|a| with the sign of b"""
    def copysign_(self, other: TensorLike) -> Self:
        """`copysign`, written into the tensor itself; return it."""
    def corrcoef(self) -> Tensor:
        """Pearson's correlations of the rows of (variables, observations): `cov` divided by both standard deviations."""
    def cos(self) -> Tensor:
        """cos(x)"""
    def cos_(self) -> Self:
        """`cos`, written into the tensor itself; return it."""
    def cosh(self) -> Tensor:
        """cosh(x)"""
    def cosh_(self) -> Self:
        """`cosh`, written into the tensor itself; return it."""
    @overload
    def count_nonzero(self, dim: Ints | None = None) -> Tensor:
        """The number of elements that are not zero."""
    @overload
    def count_nonzero(self, *, axis: Ints | None = None) -> Tensor: ...
    @overload
    def cov(
        self, *, correction: builtins.int = 1, fweights: TensorLike | None = None, aweights: TensorLike | None = None
    ) -> Tensor:
        """Covariances of the rows of (variables, observations), with the divisor observations - `correction`."""
    @overload
    def cov(
        self, *, ddof: builtins.int = 1, fweights: TensorLike | None = None, aweights: TensorLike | None = None
    ) -> Tensor: ...
    def cpu(self) -> Tensor:
        """The tensor itself, which is on the cpu."""
    @overload
    def cross(self, b: TensorLike, dim: builtins.int = -1) -> Tensor:
        """Cross product of vectors of 3 along `dim`."""
    @overload
    def cross(self, b: TensorLike, *, axis: builtins.int = -1) -> Tensor: ...
    def cuda(self, *_args: builtins.object, **_kwargs: builtins.object) -> Tensor:
        """Raise: there is only the cpu."""
    @overload
    def cummax(self, dim: builtins.int) -> Extreme:
        """The largest element so far along `dim`, and where it is."""
    @overload
    def cummax(self, *, axis: builtins.int) -> Extreme: ...
    @overload
    def cummin(self, dim: builtins.int) -> Extreme:
        """The smallest element so far along `dim`, and where it is."""
    @overload
    def cummin(self, *, axis: builtins.int) -> Extreme: ...
    @overload
    def cumprod(self, dim: builtins.int | None = None, *, dtype: DTypeLike | None = None) -> Tensor:
        """y[i] = x[0] * ... * x[i] along `dim`, or over the flattened tensor. Zeros have exact derivatives."""
    @overload
    def cumprod(self, *, axis: builtins.int | None = None, dtype: DTypeLike | None = None) -> Tensor: ...
    @overload
    def cumprod_(self, dim: builtins.int | None = None, *, dtype: DTypeLike | None = None) -> Self:
        """`cumprod`, written into the tensor itself; return it."""
    @overload
    def cumprod_(self, *, axis: builtins.int | None = None, dtype: DTypeLike | None = None) -> Self: ...
    @overload
    def cumsum(self, dim: builtins.int | None = None, *, dtype: DTypeLike | None = None) -> Tensor:
        """y[i] = x[0] + ... + x[i] along `dim`, or over the flattened tensor."""
    @overload
    def cumsum(self, *, axis: builtins.int | None = None, dtype: DTypeLike | None = None) -> Tensor: ...
    @overload
    def cumsum_(self, dim: builtins.int | None = None, *, dtype: DTypeLike | None = None) -> Self:
        """`cumsum`, written into the tensor itself; return it."""
    @overload
    def cumsum_(self, *, axis: builtins.int | None = None, dtype: DTypeLike | None = None) -> Self: ...
    @overload
    def cumulative_prod(self, dim: builtins.int | None = None, *, dtype: DTypeLike | None = None) -> Tensor:
        """y[i] = x[0] * ... * x[i] along `dim`, or over the flattened tensor. Zeros have exact derivatives."""
    @overload
    def cumulative_prod(self, *, axis: builtins.int | None = None, dtype: DTypeLike | None = None) -> Tensor: ...
    @overload
    def cumulative_sum(self, dim: builtins.int | None = None, *, dtype: DTypeLike | None = None) -> Tensor:
        """y[i] = x[0] + ... + x[i] along `dim`, or over the flattened tensor."""
    @overload
    def cumulative_sum(self, *, axis: builtins.int | None = None, dtype: DTypeLike | None = None) -> Tensor: ...
    def data_ptr(self) -> builtins.int:
        """The address of the first element."""
    def deg2rad(self) -> Tensor:
        """Degrees to radians."""
    def deg2rad_(self) -> Self:
        """`deg2rad`, written into the tensor itself; return it."""
    def degrees(self) -> Tensor:
        """Radians to degrees."""
    def det(self) -> Tensor:
        """determinant of x"""
    def detach_(self) -> Self:
        """Detach the tensor from its history; return it."""
    @property
    def device(self) -> device: ...
    def diag(self, diagonal: builtins.int = 0) -> Tensor:
        """A vector as the diagonal of a matrix, or the diagonal of a matrix as a vector."""
    def diag_embed(self, offset: builtins.int = 0, dim1: builtins.int = -2, dim2: builtins.int = -1) -> Tensor:
        """The last dimension as the diagonal of a square matrix in the dimensions `dim1` and `dim2` of the result."""
    def diagflat(self, offset: builtins.int = 0) -> Tensor:
        """All elements as the diagonal of a matrix."""
    def diagonal(self, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1) -> Tensor:
        """The diagonal of two dimensions, as the new last dimension: a view."""
    def diagonal_scatter(
        self, src: TensorLike, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1
    ) -> Tensor:
        """x with `src` as the diagonal of two dimensions."""
    @overload
    def diff(
        self,
        n: builtins.int = 1,
        dim: builtins.int = -1,
        prepend: TensorLike | None = None,
        append: TensorLike | None = None,
    ) -> Tensor:
        """x[i+1] - x[i] along `dim`, `n` times, after joining `prepend` and `append` to the ends of x."""
    @overload
    def diff(
        self,
        n: builtins.int = 1,
        *,
        axis: builtins.int = -1,
        prepend: TensorLike | None = None,
        append: TensorLike | None = None,
    ) -> Tensor: ...
    def digamma(self) -> Tensor:
        """Gamma'(x) / Gamma(x)"""
    def digamma_(self) -> Self:
        """`digamma`, written into the tensor itself; return it."""
    def dim_order(self) -> builtins.tuple[builtins.int, ...]:
        """Return the dimensions in the order in which they lie in memory, the outermost first."""
    def dist(self, other: TensorLike, p: Any = 2) -> Tensor:
        """The norm of x - other."""
    def div(self, other: TensorLike, *, rounding_mode: builtins.str | None = None) -> Tensor:
        """x / other; `rounding_mode` "floor" or "trunc" rounds the quotient, whose gradient is then 0."""
    def div_(self, other: TensorLike, *, rounding_mode: builtins.str | None = None) -> Self:
        """`div`, written into the tensor itself; return it."""
    def divide(self, other: TensorLike, *, rounding_mode: builtins.str | None = None) -> Tensor:
        """x / other; `rounding_mode` "floor" or "trunc" rounds the quotient, whose gradient is then 0."""
    def divide_(self, other: TensorLike, *, rounding_mode: builtins.str | None = None) -> Self:
        """`divide`, written into the tensor itself; return it."""
    def dot(self, b: TensorLike) -> Tensor:
        """Inner product of two vectors. NumPy's `np.dot` also multiplies matrices; here `matmul` does."""
    def double(self, memory_format: str | None = None) -> Tensor:
        """The tensor with dtype float64; itself if it has it already."""
    def dsplit(self, indices_or_sections: Ints | TensorLike) -> builtins.tuple[Tensor, ...]:
        """Split along the third dimension into equal parts, or before each of the given indices."""
    def eig(self) -> EigResult:
        """Eigenvalues (..., n) and eigenvectors (columns) of (..., n, n), real or complex; both results are complex."""
    def eigh(self, UPLO: builtins.str = "L") -> EighResult:
        """Eigenvalues in ascending order and eigenvectors (columns) of a symmetric (..., n, n)."""
    def eigvals(self) -> Tensor:
        """Eigenvalues (..., n) of (..., n, n), complex."""
    def eigvalsh(self, UPLO: builtins.str = "L") -> Tensor:
        """Eigenvalues of a symmetric (..., n, n) in ascending order; reads one triangle, as `eigh` does."""
    def elu(self, alpha: builtins.float = 1.0) -> Tensor:
        """x where it is positive, else alpha * (exp(x) - 1)."""
    def elu_(self, alpha: builtins.float = 1.0) -> Self:
        """`elu`, written into the tensor itself; return it."""
    def entr(self) -> Tensor:
        """-x * log(x)"""
    def eq(self, other: TensorLike) -> Tensor:
        """a == b"""
    def eq_(self, other: TensorLike) -> Self:
        """`eq`, written into the tensor itself; return it."""
    def equal(self, other: TensorLike) -> builtins.bool:
        """Whether two tensors have the same shape and elements: one bool, as in PyTorch. `eq` is elementwise."""
    def erf(self) -> Tensor:
        """2 / sqrt(pi) * integral of exp(-u**2) from 0 to x"""
    def erf_(self) -> Self:
        """`erf`, written into the tensor itself; return it."""
    def erfc(self) -> Tensor:
        """1 - erf(x)"""
    def erfc_(self) -> Self:
        """`erfc`, written into the tensor itself; return it."""
    def erfcx(self) -> Tensor:
        """exp(x**2) * erfc(x)"""
    def erfinv(self) -> Tensor:
        """the y with erf(y) = x"""
    def erfinv_(self) -> Self:
        """`erfinv`, written into the tensor itself; return it."""
    def exp(self) -> Tensor:
        """exp(x)"""
    def exp2(self) -> Tensor:
        """2 ** x"""
    def exp2_(self) -> Self:
        """`exp2`, written into the tensor itself; return it."""
    def exp_(self) -> Self:
        """`exp`, written into the tensor itself; return it."""
    def expand(self, *sizes: Ints) -> Tensor:
        """Repeat size-1 dimensions to `sizes` without copying; -1 keeps a size."""
    def expand_as(self, other: TensorLike) -> Tensor:
        """x broadcast to the shape of `other`."""
    @overload
    def expand_dims(self, dim: builtins.int) -> Tensor:
        """Insert a dimension of size 1 at `dim`."""
    @overload
    def expand_dims(self, *, axis: builtins.int) -> Tensor: ...
    def expit(self) -> Tensor:
        """1 / (1 + exp(-x))"""
    def expm1(self) -> Tensor:
        """exp(x) - 1"""
    def expm1_(self) -> Self:
        """`expm1`, written into the tensor itself; return it."""
    def exponential_(self, lambd: builtins.float = 1.0, *, generator: Generator | None = None) -> Self:
        """Write exponentially distributed numbers with mean 1 / lambd; return x."""
    def fabs(self) -> Tensor:
        """|x|"""
    def fill_(self, value: TensorLike) -> Self:
        """Write a number everywhere; return x."""
    def fill_diagonal_(self, fill_value: builtins.float, wrap: builtins.bool = False) -> Self:
        """Write a number on the main diagonal; return x."""
    def fix(self) -> Tensor:
        """x without its fraction"""
    def fix_(self) -> Self:
        """`fix`, written into the tensor itself; return it."""
    def flatten(self, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> Tensor:
        """Merge the dimensions from `start_dim` to `end_dim`, both included."""
    @overload
    def flip(self, *dims: Ints, dim: Ints | None = None) -> Tensor:
        """Reverse the order of elements along `dims` (all, if none is given)."""
    @overload
    def flip(self, *dims: Ints, axis: Ints | None = None) -> Tensor: ...
    @overload
    def flipdims(self, *dims: Ints, dim: Ints | None = None) -> Tensor:
        """Reverse the order of elements along `dims` (all, if none is given)."""
    @overload
    def flipdims(self, *dims: Ints, axis: Ints | None = None) -> Tensor: ...
    def fliplr(self) -> Tensor:
        """Reverse the columns."""
    def flipud(self) -> Tensor:
        """Reverse the rows."""
    def float(self, memory_format: str | None = None) -> Tensor:
        """The tensor with dtype float32; itself if it has it already."""
    def float_power(self, other: TensorLike) -> Tensor:
        """x ** other, computed in float64, or in complex128 where one of them is complex."""
    def float_power_(self, other: TensorLike) -> Self:
        """`float_power`, written into the tensor itself; return it."""
    def floor(self) -> Tensor:
        """largest integer <= x"""
    def floor_(self) -> Self:
        """`floor`, written into the tensor itself; return it."""
    def floor_divide(self, other: TensorLike) -> Tensor:
        """x / other, rounded down."""
    def floor_divide_(self, other: TensorLike) -> Self:
        """`floor_divide`, written into the tensor itself; return it."""
    def fmax(self, other: TensorLike) -> Tensor:
        """max(a, b), ignoring a NaN"""
    def fmin(self, other: TensorLike) -> Tensor:
        """min(a, b), ignoring a NaN"""
    def fmod(self, other: TensorLike) -> Tensor:
        """a - trunc(a / b) * b"""
    def fmod_(self, other: TensorLike) -> Self:
        """`fmod`, written into the tensor itself; return it."""
    def frac(self) -> Tensor:
        """The fraction of x, with its sign."""
    def frac_(self) -> Self:
        """`frac`, written into the tensor itself; return it."""
    def frexp(self) -> Frexp:
        """The mantissa, at least 0.5 and below 1 in size, and the exponent (int32) of x = mantissa * 2**exponent."""
    def gammainc(self, other: TensorLike) -> Tensor:
        """Regularised lower incomplete gamma function P(input, other); only `other` has a gradient."""
    def gammaincc(self, other: TensorLike) -> Tensor:
        """Regularised upper incomplete gamma function Q(input, other) = 1 - P; only `other` has a gradient."""
    def gammaln(self) -> Tensor:
        """log(|Gamma(x)|)"""
    @overload
    def gather(self, dim: builtins.int, index: TensorLike, *, sparse_grad: builtins.bool = False) -> Tensor:
        """PyTorch's `gather`: y[i, j] = x[index[i, j], j] for dim 0. `index` may be smaller than `x`."""
    @overload
    def gather(self, *, axis: builtins.int, index: TensorLike, sparse_grad: builtins.bool = False) -> Tensor: ...
    def gcd(self, other: TensorLike) -> Tensor:
        """greatest common divisor"""
    def gcd_(self, other: TensorLike) -> Self:
        """`gcd`, written into the tensor itself; return it."""
    def ge(self, other: TensorLike) -> Tensor:
        """a >= b"""
    def ge_(self, other: TensorLike) -> Self:
        """`ge`, written into the tensor itself; return it."""
    def gelu(self, approximate: builtins.str = "none") -> Tensor:
        """Gaussian error linear unit, x * Phi(x); `approximate="tanh"` is the formula of GPT-2."""
    def geometric_(self, p: builtins.float, *, generator: Generator | None = None) -> Self:
        """Write how many trials of probability p it takes until one succeeds, 1 or more; return x."""
    def geqrf(self) -> Reflectors:
        """LAPACK's form of the QR factors of (..., n, m): R above, and below it the reflections of Q; no gradient."""
    def ger(self, b: TensorLike) -> Tensor:
        """Outer product of two vectors: shape (n, m)."""
    def get_device(self) -> builtins.int:
        """-1, as for every tensor on the CPU."""
    def getitem(self, index: Any) -> Tensor:
        """x[index], with slices, integers, None, ..., integer arrays and boolean arrays."""
    def greater(self, other: TensorLike) -> Tensor:
        """a > b"""
    def greater_(self, other: TensorLike) -> Self:
        """`greater`, written into the tensor itself; return it."""
    def greater_equal(self, other: TensorLike) -> Tensor:
        """a >= b"""
    def greater_equal_(self, other: TensorLike) -> Self:
        """`greater_equal`, written into the tensor itself; return it."""
    def gt(self, other: TensorLike) -> Tensor:
        """a > b"""
    def gt_(self, other: TensorLike) -> Self:
        """`gt`, written into the tensor itself; return it."""
    def half(self, memory_format: str | None = None) -> Tensor:
        """The tensor with dtype float16; itself if it has it already."""
    def hardshrink(self, lambd: builtins.float = 0.5) -> Tensor:
        """x where |x| > `lambd`, else 0."""
    def hardsigmoid(self) -> Tensor:
        """x / 6 + 1/2 limited to [0, 1]."""
    def hardswish(self) -> Tensor:
        """x * min(max(x + 3, 0), 6) / 6"""
    def hardtanh(self, min_val: builtins.float = -1.0, max_val: builtins.float = 1.0) -> Tensor:
        """x limited to [min_val, max_val]; unlike `clip` it has no gradient at the bounds themselves."""
    def hardtanh_(self, min_val: builtins.float = -1.0, max_val: builtins.float = 1.0) -> Self:
        """`hardtanh`, written into the tensor itself; return it."""
    def heaviside(self, other: TensorLike) -> Tensor:
        """0 if a < 0, b if a == 0, else 1"""
    def heaviside_(self, other: TensorLike) -> Self:
        """`heaviside`, written into the tensor itself; return it."""
    def hermite_polynomial_h(self, n: TensorLike) -> Tensor:
        """Hermite h polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""
    def hermite_polynomial_he(self, n: TensorLike) -> Tensor:
        """Hermite he polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""
    def histc(self, bins: builtins.int = 100, min: builtins.float = 0, max: builtins.float = 0) -> Tensor:
        """Counts of the values in `bins` equal bins from `min` to `max` (of x itself if both are equal); no gradient."""
    def histogram(
        self,
        bins: Any = 10,
        *,
        range: builtins.tuple[builtins.float, builtins.float] | None = None,
        weight: Any = None,
        density: builtins.bool = False,
    ) -> Histogram:
        """Counts of the values between the edges of `bins` (or sums of their `weight`), and the edges; no gradient."""
    def hsplit(self, indices_or_sections: Ints | TensorLike) -> builtins.tuple[Tensor, ...]:
        """Split columns (of a vector, elements) into equal parts, or before each of the given indices."""
    def hypot(self, other: TensorLike) -> Tensor:
        """sqrt(a**2 + b**2)"""
    def hypot_(self, other: TensorLike) -> Self:
        """`hypot`, written into the tensor itself; return it."""
    def i0(self) -> Tensor:
        """modified Bessel function I0(x)"""
    def i0_(self) -> Self:
        """`i0`, written into the tensor itself; return it."""
    def i0e(self) -> Tensor:
        """exp(-|x|) * I0(x)"""
    def i1(self) -> Tensor:
        """modified Bessel function I1(x)"""
    def i1e(self) -> Tensor:
        """exp(-|x|) * I1(x)"""
    def igamma(self, other: TensorLike) -> Tensor:
        """Regularised lower incomplete gamma function P(input, other); only `other` has a gradient."""
    def igamma_(self, other: TensorLike) -> Self:
        """`igamma`, written into the tensor itself; return it."""
    def igammac(self, other: TensorLike) -> Tensor:
        """Regularised upper incomplete gamma function Q(input, other) = 1 - P; only `other` has a gradient."""
    def igammac_(self, other: TensorLike) -> Self:
        """`igammac`, written into the tensor itself; return it."""
    @overload
    def index_add(
        self, dim: builtins.int, index: TensorLike, source: TensorLike, *, alpha: builtins.float = 1
    ) -> Tensor:
        """x with the slices of alpha * `source` added at `index` along `dim`; repeated places accumulate."""
    @overload
    def index_add(
        self, *, axis: builtins.int, index: TensorLike, source: TensorLike, alpha: builtins.float = 1
    ) -> Tensor: ...
    @overload
    def index_add_(
        self, dim: builtins.int, index: TensorLike, source: TensorLike, *, alpha: builtins.float = 1
    ) -> Self:
        """`index_add`, written into the tensor itself; return it."""
    @overload
    def index_add_(
        self, *, axis: builtins.int, index: TensorLike, source: TensorLike, alpha: builtins.float = 1
    ) -> Self: ...
    @overload
    def index_copy(self, dim: builtins.int, index: TensorLike, source: TensorLike) -> Tensor:
        """x with the slices of `source` at `index` along `dim`."""
    @overload
    def index_copy(self, *, axis: builtins.int, index: TensorLike, source: TensorLike) -> Tensor: ...
    @overload
    def index_copy_(self, dim: builtins.int, index: TensorLike, source: TensorLike) -> Self:
        """`index_copy`, written into the tensor itself; return it."""
    @overload
    def index_copy_(self, *, axis: builtins.int, index: TensorLike, source: TensorLike) -> Self: ...
    @overload
    def index_fill(self, dim: builtins.int, index: TensorLike, value: TensorLike | None) -> Tensor:
        """x with `value` in the slices at `index` along `dim`; negative indices count from the end, as in PyTorch."""
    @overload
    def index_fill(self, *, axis: builtins.int, index: TensorLike, value: TensorLike | None) -> Tensor: ...
    @overload
    def index_fill_(self, dim: builtins.int, index: TensorLike, value: TensorLike | None) -> Self:
        """`index_fill`, written into the tensor itself; return it."""
    @overload
    def index_fill_(self, *, axis: builtins.int, index: TensorLike, value: TensorLike | None) -> Self: ...
    def index_put(self, indices: Sequence[Any], values: TensorLike, accumulate: builtins.bool = False) -> Tensor:
        """`at_set` with PyTorch's tuple of index arrays, or `at_add` if `accumulate`."""
    def index_put_(self, indices: Sequence[Any], values: TensorLike, accumulate: builtins.bool = False) -> Self:
        """`index_put`, written into the tensor itself; return it."""
    @overload
    def index_reduce(
        self,
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
        self,
        *,
        axis: builtins.int,
        index: TensorLike,
        source: TensorLike,
        reduce: builtins.str,
        include_self: builtins.bool = True,
    ) -> Tensor: ...
    @overload
    def index_reduce_(
        self,
        dim: builtins.int,
        index: TensorLike,
        source: TensorLike,
        reduce: builtins.str,
        *,
        include_self: builtins.bool = True,
    ) -> Self:
        """`index_reduce`, written into the tensor itself; return it."""
    @overload
    def index_reduce_(
        self,
        *,
        axis: builtins.int,
        index: TensorLike,
        source: TensorLike,
        reduce: builtins.str,
        include_self: builtins.bool = True,
    ) -> Self: ...
    @overload
    def index_select(self, dim: builtins.int, index: TensorLike) -> Tensor:
        """Return the slices of `x` at the positions `index` along `dim`."""
    @overload
    def index_select(self, *, axis: builtins.int, index: TensorLike) -> Tensor: ...
    def inner(self, b: TensorLike) -> Tensor:
        """Sum of products over the last dimensions: shape (*a.shape[:-1], *b.shape[:-1])."""
    def int(self, memory_format: str | None = None) -> Tensor:
        """The tensor with dtype int32; itself if it has it already."""
    def inv(self) -> Tensor:
        """x**-1"""
    def inv_ex(self, *, check_errors: builtins.bool = False) -> InverseInfo:
        """`inv` that does not raise: NaN and `info` above 0 for a singular matrix."""
    def inverse(self) -> Tensor:
        """Inverse of (..., n, n)."""
    def invert(self) -> Tensor:
        """~x"""
    def is_complex(self) -> builtins.bool:
        """Tell whether the dtype is complex."""
    def is_conj(self, device: Device = None) -> builtins.bool:
        """False: there is no other device to copy to."""
    def is_contiguous(self) -> builtins.bool:
        """Tell whether the elements are in memory in order, without gaps."""
    @property
    def is_cpu(self) -> builtins.bool: ...
    @property
    def is_cuda(self) -> builtins.bool: ...
    def is_distributed(self, device: Device = None) -> builtins.bool:
        """False: there is no other device to copy to."""
    def is_floating_point(self) -> builtins.bool:
        """Tell whether the dtype is a floating-point type."""
    def is_inference(self, device: Device = None) -> builtins.bool:
        """False: there is no other device to copy to."""
    @property
    def is_ipu(self) -> builtins.bool: ...
    @property
    def is_maia(self) -> builtins.bool: ...
    @property
    def is_meta(self) -> builtins.bool: ...
    @property
    def is_mkldnn(self) -> builtins.bool: ...
    @property
    def is_mps(self) -> builtins.bool: ...
    @property
    def is_mtia(self) -> builtins.bool: ...
    def is_neg(self, device: Device = None) -> builtins.bool:
        """False: there is no other device to copy to."""
    @property
    def is_nested(self) -> builtins.bool: ...
    def is_nonzero(self) -> builtins.bool:
        """Tell whether the only element is not zero."""
    def is_pinned(self, device: Device = None) -> builtins.bool:
        """False: there is no other device to copy to."""
    @property
    def is_quantized(self) -> builtins.bool: ...
    def is_same_size(self, other: Tensor) -> builtins.bool:
        """Tell whether two tensors have the same shape."""
    def is_set_to(self, tensor: Tensor) -> builtins.bool:
        """Tell whether two tensors look at the same memory with the same shape and strides."""
    def is_shared(self) -> builtins.bool:
        """Tell whether the values lie in memory that processes share."""
    def is_signed(self) -> builtins.bool:
        """Tell whether the dtype has negative numbers."""
    @property
    def is_sparse(self) -> builtins.bool: ...
    @property
    def is_sparse_csr(self) -> builtins.bool: ...
    @property
    def is_vulkan(self) -> builtins.bool: ...
    @property
    def is_xla(self) -> builtins.bool: ...
    @property
    def is_xpu(self) -> builtins.bool: ...
    def isclose(
        self,
        other: TensorLike,
        rtol: builtins.float = 1e-05,
        atol: builtins.float = 1e-08,
        equal_nan: builtins.bool = False,
    ) -> Tensor:
        """Whether |x - other| <= atol + rtol * |other|, element by element."""
    def isfinite(self) -> Tensor:
        """x is finite"""
    def isinf(self) -> Tensor:
        """x is infinite"""
    def isnan(self) -> Tensor:
        """x is NaN"""
    def isneginf(self) -> Tensor:
        """Whether x is -inf."""
    def isposinf(self) -> Tensor:
        """Whether x is +inf."""
    def isreal(self) -> Tensor:
        """Whether the imaginary part is 0."""
    def istft(
        self,
        n_fft: builtins.int,
        hop_length: builtins.int | None = None,
        win_length: builtins.int | None = None,
        window: TensorLike | None = None,
        center: builtins.bool = True,
        normalized: builtins.bool = False,
        onesided: builtins.bool | None = None,
        length: builtins.int | None = None,
        return_complex: builtins.bool = False,
    ) -> Tensor:
        """Inverse of `stft`: the signal from the spectra of its frames, by overlap-add."""
    @property
    def itemsize(self) -> builtins.int: ...
    def kron(self, b: TensorLike) -> Tensor:
        """Kronecker product: every element of a times all of b. Shapes multiply from the right."""
    @overload
    def kthvalue(self, k: builtins.int, dim: builtins.int = -1, keepdim: builtins.bool = False) -> Extreme:
        """The `k`-th smallest element along `dim`, counted from 1, and where it is; NaN is larger than every number."""
    @overload
    def kthvalue(self, k: builtins.int, *, axis: builtins.int = -1, keepdims: builtins.bool = False) -> Extreme: ...
    def laguerre_polynomial_l(self, n: TensorLike) -> Tensor:
        """Laguerre l polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""
    @property
    def layout(self) -> builtins.str: ...
    def lcm(self, other: TensorLike) -> Tensor:
        """least common multiple"""
    def lcm_(self, other: TensorLike) -> Self:
        """`lcm`, written into the tensor itself; return it."""
    def ldexp(self, other: TensorLike) -> Tensor:
        """x * 2**other."""
    def ldexp_(self, other: TensorLike) -> Self:
        """`ldexp`, written into the tensor itself; return it."""
    def le(self, other: TensorLike) -> Tensor:
        """a <= b"""
    def le_(self, other: TensorLike) -> Self:
        """`le`, written into the tensor itself; return it."""
    def leaky_relu(self, negative_slope: builtins.float = 0.01) -> Tensor:
        """x where it is positive, else `negative_slope` * x."""
    def leaky_relu_(self, negative_slope: builtins.float = 0.01) -> Self:
        """`leaky_relu`, written into the tensor itself; return it."""
    def left_shift(self, other: TensorLike) -> Tensor:
        """a << b"""
    def legendre_polynomial_p(self, n: TensorLike) -> Tensor:
        """Legendre p polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""
    def lerp(self, end: TensorLike, weight: TensorLike) -> Tensor:
        """x + weight * (end - x), exact at both ends."""
    def lerp_(self, end: TensorLike, weight: TensorLike) -> Self:
        """`lerp`, written into the tensor itself; return it."""
    def less(self, other: TensorLike) -> Tensor:
        """a < b"""
    def less_(self, other: TensorLike) -> Self:
        """`less`, written into the tensor itself; return it."""
    def less_equal(self, other: TensorLike) -> Tensor:
        """a <= b"""
    def less_equal_(self, other: TensorLike) -> Self:
        """`less_equal`, written into the tensor itself; return it."""
    def lgamma(self) -> Tensor:
        """log(|Gamma(x)|)"""
    def lgamma_(self) -> Self:
        """`lgamma`, written into the tensor itself; return it."""
    def linalg_lu(self, *, pivot: builtins.bool = True) -> LUResult:
        """P, L, U with P L U = x (..., m, n): a permutation, a unit lower and an upper triangular matrix: `linalg.lu`."""
    def linalg_lu_solve(
        self, pivots: TensorLike, B: TensorLike, *, left: builtins.bool = True, adjoint: builtins.bool = False
    ) -> Tensor:
        """The x with a x = b (or x a = b, if not `left`), from `lu_factor(a)`; with `adjoint` for the adjoint of a."""
    def log(self) -> Tensor:
        """log(x)"""
    def log10(self) -> Tensor:
        """log(x) / log(10)"""
    def log10_(self) -> Self:
        """`log10`, written into the tensor itself; return it."""
    def log1p(self) -> Tensor:
        """log(1 + x)"""
    def log1p_(self) -> Self:
        """`log1p`, written into the tensor itself; return it."""
    def log2(self) -> Tensor:
        """log(x) / log(2)"""
    def log2_(self) -> Self:
        """`log2`, written into the tensor itself; return it."""
    def log_(self) -> Self:
        """`log`, written into the tensor itself; return it."""
    def log_ndtr(self) -> Tensor:
        """log of the normal distribution function"""
    def log_normal_(
        self, mean: builtins.float = 1.0, std: builtins.float = 2.0, *, generator: Generator | None = None
    ) -> Self:
        """Write numbers whose logarithms are normal with this mean and deviation; return x."""
    def log_sigmoid(self) -> Tensor:
        """log(1 / (1 + exp(-x)))"""
    @overload
    def log_softmax(self, dim: builtins.int = -1, dtype: DTypeLike | None = None) -> Tensor:
        """x - logsumexp(x) along `dim`."""
    @overload
    def log_softmax(self, *, axis: builtins.int = -1, dtype: DTypeLike | None = None) -> Tensor: ...
    def logaddexp(self, other: TensorLike) -> Tensor:
        """log(exp(a) + exp(b))"""
    def logaddexp2(self, other: TensorLike) -> Tensor:
        """log2(2**a + 2**b)"""
    @overload
    def logcumsumexp(self, dim: builtins.int) -> Tensor:
        """y[i] = log(exp(x[0]) + ... + exp(x[i])) along `dim`, without overflow."""
    @overload
    def logcumsumexp(self, *, axis: builtins.int) -> Tensor: ...
    def logdet(self) -> Tensor:
        """Logarithm of the determinant of (..., n, n); NaN where it is negative."""
    def logical_and(self, other: TensorLike) -> Tensor:
        """a and b"""
    def logical_and_(self, other: TensorLike) -> Self:
        """`logical_and`, written into the tensor itself; return it."""
    def logical_not(self) -> Tensor:
        """not x"""
    def logical_not_(self) -> Self:
        """`logical_not`, written into the tensor itself; return it."""
    def logical_or(self, other: TensorLike) -> Tensor:
        """a or b"""
    def logical_or_(self, other: TensorLike) -> Self:
        """`logical_or`, written into the tensor itself; return it."""
    def logical_xor(self, other: TensorLike) -> Tensor:
        """a xor b"""
    def logical_xor_(self, other: TensorLike) -> Self:
        """`logical_xor`, written into the tensor itself; return it."""
    def logit(self, eps: builtins.float | None = None) -> Tensor:
        """log(x / (1 - x)); with `eps`, x is limited to [eps, 1 - eps] first."""
    def logit_(self, eps: builtins.float | None = None) -> Self:
        """`logit`, written into the tensor itself; return it."""
    def logsigmoid(self) -> Tensor:
        """log(1 / (1 + exp(-x)))"""
    @overload
    def logsoftmax(self, dim: builtins.int = -1, dtype: DTypeLike | None = None) -> Tensor:
        """x - logsumexp(x) along `dim`."""
    @overload
    def logsoftmax(self, *, axis: builtins.int = -1, dtype: DTypeLike | None = None) -> Tensor: ...
    @overload
    def logsumexp(self, dim: Ints | None = None, keepdim: builtins.bool = False) -> Tensor:
        """log(sum(exp(x))) over `dim`, without overflow; -inf where every element is -inf."""
    @overload
    def logsumexp(self, *, axis: Ints | None = None, keepdims: builtins.bool = False) -> Tensor: ...
    def long(self, memory_format: str | None = None) -> Tensor:
        """The tensor with dtype int64; itself if it has it already."""
    def lt(self, other: TensorLike) -> Tensor:
        """a < b"""
    def lt_(self, other: TensorLike) -> Self:
        """`lt`, written into the tensor itself; return it."""
    def lu(self, pivot: builtins.bool = True, get_infos: builtins.bool = False) -> builtins.tuple[Tensor, ...]:
        """PyTorch's older `lu`: the factors in one matrix, the row swaps, and with `get_infos` LAPACK's info."""
    def lu_factor(self, *, pivot: builtins.bool = True) -> LUFactors:
        """The factors L and U of (..., m, n) in one matrix, and LAPACK's row swaps (from 1): `linalg.lu_factor`."""
    def lu_factor_ex(self, *, pivot: builtins.bool = True, check_errors: builtins.bool = False) -> LUFactorsInfo:
        """`lu_factor` with `info`: above 0 where U has a zero on its diagonal."""
    def lu_solve(self, LU_data: TensorLike, LU_pivots: TensorLike) -> Tensor:
        """`linalg.lu_solve` with the arguments in PyTorch's older order."""
    def lu_unpack(
        self, pivots: TensorLike, unpack_data: builtins.bool = True, unpack_pivots: builtins.bool = True
    ) -> LUResult:
        """P, L, U with P L U = x from the results of `lu_factor`; parts that are not requested are empty."""
    def map2_(self, x1: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Self:
        """Write a function of Python of each element and those of two other tensors over it; return x."""
    def map_(self, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Self:
        """Write a function of Python of each element and the one of `tensor` over it; return x."""
    def masked_fill(self, mask: TensorLike, value: TensorLike | None) -> Tensor:
        """`x` with the number `value` where the boolean `mask` is true; in the dtype of x."""
    def masked_fill_(self, mask: TensorLike, value: TensorLike | None) -> Self:
        """`masked_fill`, written into the tensor itself; return it."""
    def masked_scatter(self, mask: TensorLike, source: TensorLike) -> Tensor:
        """x with the first elements of `source` in order where `mask` is true."""
    def masked_scatter_(self, mask: TensorLike, source: TensorLike) -> Self:
        """`masked_scatter`, written into the tensor itself; return it."""
    def masked_select(self, mask: TensorLike) -> Tensor:
        """The elements of x where `mask` is true, in one dimension; the two broadcast."""
    def matmul(self, other: TensorLike) -> Tensor:
        """a @ b"""
    def matrix_exp(self) -> Tensor:
        """Exponential of (..., n, n): 1 + x + x @ x / 2! + x @ x @ x / 3! + ..."""
    def matrix_power(self, n: builtins.int) -> Tensor:
        """x multiplied by itself n times by repeated squaring (the inverse of x for negative n)."""
    def matrix_transpose(self) -> Tensor:
        """Swap the last two dimensions."""
    @overload
    def max(self, *, other: None = None) -> Tensor:
        """Largest element of all; with an int `dim`, `(values, indices)` along it; with a tensor, `maximum`."""
    @overload
    def max(self, dim: builtins.int, keepdim: builtins.bool = False) -> Extreme: ...
    @overload
    def max(self, *, axis: builtins.int, keepdims: builtins.bool = False) -> Extreme: ...
    @overload
    def max(self, dim: Sequence[builtins.int] | None, keepdim: builtins.bool = False) -> Tensor: ...
    @overload
    def max(self, *, axis: Sequence[builtins.int] | None, keepdims: builtins.bool = False) -> Tensor: ...
    @overload
    def max(self, other: Tensor | npt.NDArray[Any]) -> Tensor: ...
    def maximum(self, other: TensorLike) -> Tensor:
        """max(a, b)"""
    @overload
    def mean(
        self, dim: Ints | None = None, keepdim: builtins.bool = False, *, dtype: DTypeLike | None = None
    ) -> Tensor:
        """Arithmetic mean over `dim`; NaN if there are no elements."""
    @overload
    def mean(
        self, *, axis: Ints | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None
    ) -> Tensor: ...
    @overload
    def median(self, dim: None = None, keepdim: builtins.bool = False) -> Tensor:
        """The middle element (the lower of two) of all elements, or `(values, indices)` along `dim`."""
    @overload
    def median(self, dim: builtins.int, keepdim: builtins.bool = False) -> Extreme: ...
    @overload
    def median(self, *, axis: builtins.int, keepdims: builtins.bool = False) -> Extreme: ...
    @overload
    def min(self, *, other: None = None) -> Tensor:
        """Smallest element of all; with an int `dim`, `(values, indices)` along it; with a tensor, `minimum`."""
    @overload
    def min(self, dim: builtins.int, keepdim: builtins.bool = False) -> Extreme: ...
    @overload
    def min(self, *, axis: builtins.int, keepdims: builtins.bool = False) -> Extreme: ...
    @overload
    def min(self, dim: Sequence[builtins.int] | None, keepdim: builtins.bool = False) -> Tensor: ...
    @overload
    def min(self, *, axis: Sequence[builtins.int] | None, keepdims: builtins.bool = False) -> Tensor: ...
    @overload
    def min(self, other: Tensor | npt.NDArray[Any]) -> Tensor: ...
    def minimum(self, other: TensorLike) -> Tensor:
        """min(a, b)"""
    def mish(self) -> Tensor:
        """x * tanh(softplus(x))"""
    def mm(self, b: TensorLike) -> Tensor:
        """Product of two matrices."""
    @overload
    def mode(self, dim: builtins.int = -1, keepdim: builtins.bool = False) -> Extreme:
        """The most frequent element along `dim` (on ties the smallest) and the index of its last occurrence."""
    @overload
    def mode(self, *, axis: builtins.int = -1, keepdims: builtins.bool = False) -> Extreme: ...
    def modified_bessel_i0(self) -> Tensor:
        """Modified Bessel function I0(x): `i0`."""
    def modified_bessel_i1(self) -> Tensor:
        """Modified Bessel function I1(x): `i1`."""
    def modified_bessel_k0(self) -> Tensor:
        """modified Bessel function K0(x)"""
    def modified_bessel_k1(self) -> Tensor:
        """modified Bessel function K1(x)"""
    def moveaxis(self, source: Ints, destination: Ints) -> Tensor:
        """Move dimensions to other positions; the rest keep their order."""
    def movedim(self, source: Ints, destination: Ints) -> Tensor:
        """Move dimensions to other positions; the rest keep their order."""
    def msort(self) -> Tensor:
        """x sorted along its first dimension."""
    def mul(self, other: TensorLike) -> Tensor:
        """a * b"""
    def mul_(self, other: TensorLike) -> Self:
        """`mul`, written into the tensor itself; return it."""
    def multigammaln(self, p: builtins.int) -> Tensor:
        """log of the multivariate gamma function of dimension p."""
    def multinomial(
        self, num_samples: builtins.int, replacement: builtins.bool = False, *, generator: Generator | None = None
    ) -> Tensor:
        """Indices drawn with the weights in the last dimension; see `glassgrad.multinomial`."""
    def multiply(self, other: TensorLike) -> Tensor:
        """a * b"""
    def multiply_(self, other: TensorLike) -> Self:
        """`multiply`, written into the tensor itself; return it."""
    def mv(self, b: TensorLike) -> Tensor:
        """Product of a matrix and a vector."""
    def mvlgamma(self, p: builtins.int) -> Tensor:
        """log of the multivariate gamma function of dimension p."""
    def mvlgamma_(self, p: builtins.int) -> Self:
        """`mvlgamma`, written into the tensor itself; return it."""
    def nan_to_num(
        self,
        nan: builtins.float | None = 0.0,
        posinf: builtins.float | None = None,
        neginf: builtins.float | None = None,
    ) -> Tensor:
        """x with `nan` for NaN and the largest numbers (or `posinf`, `neginf`) for infinities, where the gradient is 0."""
    def nan_to_num_(
        self,
        nan: builtins.float | None = 0.0,
        posinf: builtins.float | None = None,
        neginf: builtins.float | None = None,
    ) -> Self:
        """`nan_to_num`, written into the tensor itself; return it."""
    @overload
    def nanmean(
        self, dim: Ints | None = None, keepdim: builtins.bool = False, *, dtype: DTypeLike | None = None
    ) -> Tensor:
        """Mean over `dim` of the elements that are not NaN; NaN where there are none."""
    @overload
    def nanmean(
        self, *, axis: Ints | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None
    ) -> Tensor: ...
    @overload
    def nanmedian(self, dim: None = None, keepdim: builtins.bool = False) -> Tensor:
        """`median` of the elements that are not NaN."""
    @overload
    def nanmedian(self, dim: builtins.int, keepdim: builtins.bool = False) -> Extreme: ...
    @overload
    def nanmedian(self, *, axis: builtins.int, keepdims: builtins.bool = False) -> Extreme: ...
    @overload
    def nanquantile(
        self,
        q: TensorLike,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        *,
        interpolation: builtins.str = "linear",
    ) -> Tensor:
        """`quantile` of the elements that are not NaN; NaN where there are none."""
    @overload
    def nanquantile(
        self,
        q: TensorLike,
        *,
        axis: builtins.int | None = None,
        keepdims: builtins.bool = False,
        interpolation: builtins.str = "linear",
    ) -> Tensor: ...
    @overload
    def nansum(
        self, dim: Ints | None = None, keepdim: builtins.bool = False, *, dtype: DTypeLike | None = None
    ) -> Tensor:
        """Sum over `dim` of the elements that are not NaN."""
    @overload
    def nansum(
        self, *, axis: Ints | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None
    ) -> Tensor: ...
    @overload
    def narrow(self, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
        """The part of `length` elements from `start` on along `dim`: a view."""
    @overload
    def narrow(self, *, axis: builtins.int, start: builtins.int, length: builtins.int) -> Tensor: ...
    @overload
    def narrow_copy(self, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
        """`narrow` with memory of its own."""
    @overload
    def narrow_copy(self, *, axis: builtins.int, start: builtins.int, length: builtins.int) -> Tensor: ...
    def ndimension(self) -> builtins.int:
        """Number of dimensions."""
    def ndtr(self) -> Tensor:
        """normal distribution function"""
    def ndtri(self) -> Tensor:
        """the y with ndtr(y) = x"""
    def ne(self, other: TensorLike) -> Tensor:
        """a != b"""
    def ne_(self, other: TensorLike) -> Self:
        """`ne`, written into the tensor itself; return it."""
    def neg(self) -> Tensor:
        """-x"""
    def neg_(self) -> Self:
        """`neg`, written into the tensor itself; return it."""
    def negative(self) -> Tensor:
        """-x"""
    def negative_(self) -> Self:
        """`negative`, written into the tensor itself; return it."""
    def nelement(self) -> builtins.int:
        """Number of elements."""
    def new(self, *size: Ints, device: Device = None) -> Tensor:
        """PyTorch's older spelling: uninitialised values of the given sizes, or the given data, with the dtype of x."""
    def new_empty(
        self, *size: Ints, dtype: DTypeLike | None = None, requires_grad: builtins.bool = False, device: Device = None
    ) -> Tensor:
        """A tensor with the dtype of x whose values are not set."""
    def new_empty_strided(
        self,
        size: Sequence[builtins.int],
        stride: Sequence[builtins.int],
        dtype: DTypeLike | None = None,
        requires_grad: builtins.bool = False,
        device: Device = None,
    ) -> Tensor:
        """A tensor with the dtype of x whose values are not set, and whose elements lie `stride` apart."""
    def new_full(
        self,
        size: Ints,
        fill_value: Number,
        dtype: DTypeLike | None = None,
        requires_grad: builtins.bool = False,
        device: Device = None,
    ) -> Tensor:
        """`fill_value` in the given shape, with the dtype of x."""
    def new_ones(
        self, *size: Ints, dtype: DTypeLike | None = None, requires_grad: builtins.bool = False, device: Device = None
    ) -> Tensor:
        """Ones with the dtype of x."""
    def new_tensor(
        self, data: Any, dtype: DTypeLike | None = None, requires_grad: builtins.bool = False, device: Device = None
    ) -> Tensor:
        """A tensor of `data` with the dtype of x."""
    def new_zeros(
        self, *size: Ints, dtype: DTypeLike | None = None, requires_grad: builtins.bool = False, device: Device = None
    ) -> Tensor:
        """Zeros with the dtype of x."""
    def nextafter(self, other: TensorLike) -> Tensor:
        """the number next to a on the way to b"""
    def nextafter_(self, other: TensorLike) -> Self:
        """`nextafter`, written into the tensor itself; return it."""
    @overload
    def nonzero(self, as_tuple: Literal[False] = False) -> Tensor:
        """The indices where x is not zero: shape (count, ndim), or with `as_tuple` one array per dimension."""
    @overload
    def nonzero(self, as_tuple: Literal[True]) -> builtins.tuple[Tensor, ...]: ...
    def nonzero_static(self, *, size: builtins.int, fill_value: builtins.int = -1) -> Tensor:
        """`nonzero` with exactly `size` rows: the first places that are not 0, and `fill_value` where there are fewer."""
    @overload
    def norm(
        self, p: Any = "fro", dim: Ints | None = None, keepdim: builtins.bool = False, *, dtype: DTypeLike | None = None
    ) -> Tensor:
        """PyTorch's `norm`: the vector norm of order `p` over `dim`; "fro" is 2, "nuc" the sum of singular values."""
    @overload
    def norm(
        self,
        p: Any = "fro",
        *,
        axis: Ints | None = None,
        keepdims: builtins.bool = False,
        dtype: DTypeLike | None = None,
    ) -> Tensor: ...
    def normal_(
        self, mean: builtins.float = 0.0, std: builtins.float = 1.0, *, generator: Generator | None = None
    ) -> Self:
        """Write normal numbers; return x."""
    def not_equal(self, other: TensorLike) -> Tensor:
        """a != b"""
    def not_equal_(self, other: TensorLike) -> Self:
        """`not_equal`, written into the tensor itself; return it."""
    @overload
    def nuclear_norm(self, dim: Ints | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Sum of the singular values of the matrices in two dimensions, by default the last two."""
    @overload
    def nuclear_norm(self, *, axis: Ints | None = None, keepdims: builtins.bool = False) -> Tensor: ...
    def orgqr(self, tau: TensorLike) -> Tensor:
        """The first columns of the product of the reflections in x (..., n, m) with factors tau (..., k)."""
    def ormqr(
        self, tau: TensorLike, other: TensorLike, left: builtins.bool = True, transpose: builtins.bool = False
    ) -> Tensor:
        """Q `other`, or `other` Q if not `left`, with the n by n product Q of the reflections, or QH with `transpose`."""
    def outer(self, b: TensorLike) -> Tensor:
        """Outer product of two vectors: shape (n, m)."""
    def permute(self, *dims: Ints) -> Tensor:
        """Return `x` with its dimensions in the order `dims`."""
    def permute_dims(self, *dims: Ints) -> Tensor:
        """Return `x` with its dimensions in the order `dims`."""
    def pin_memory(self, device: Device = None) -> Tensor:
        """The tensor itself; nothing has to be pinned."""
    def pinv(
        self,
        *,
        atol: builtins.float | None = None,
        rtol: builtins.float | None = None,
        hermitian: builtins.bool = False,
    ) -> Tensor:
        """Pseudo-inverse (Moore and Penrose) of (..., m, n): shape (..., n, m)."""
    def pinverse(self, rcond: builtins.float = 1e-15) -> Tensor:
        """`pinv`, under PyTorch's older name."""
    def polygamma(self, x: TensorLike) -> Tensor:
        """The n-th derivative of digamma(x), n >= 0."""
    def polygamma_(self, x: TensorLike) -> Self:
        """`polygamma`, written into the tensor itself; return it."""
    def positive(self) -> Tensor:
        """x itself; booleans are refused, as in PyTorch and NumPy."""
    def pow(self, other: TensorLike) -> Tensor:
        """a ** b"""
    def pow_(self, other: TensorLike) -> Self:
        """`pow`, written into the tensor itself; return it."""
    def power(self, other: TensorLike) -> Tensor:
        """a ** b"""
    def prelu(self, weight: TensorLike) -> Tensor:
        """Leaky relu with a learned slope: one, or one for each channel (dimension 1)."""
    @overload
    def prod(
        self, dim: Ints | None = None, keepdim: builtins.bool = False, *, dtype: DTypeLike | None = None
    ) -> Tensor:
        """Product over `dim` (an int, several, or None for all)."""
    @overload
    def prod(
        self, *, axis: Ints | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None
    ) -> Tensor: ...
    @overload
    def product(
        self, dim: Ints | None = None, keepdim: builtins.bool = False, *, dtype: DTypeLike | None = None
    ) -> Tensor:
        """Product over `dim` (an int, several, or None for all)."""
    @overload
    def product(
        self, *, axis: Ints | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None
    ) -> Tensor: ...
    def psi(self) -> Tensor:
        """Gamma'(x) / Gamma(x)"""
    def put(self, index: TensorLike, source: TensorLike, accumulate: builtins.bool = False) -> Tensor:
        """x with the elements of `source` at the places `index` of the flattened tensor; added there if `accumulate`."""
    def put_(self, index: TensorLike, source: TensorLike, accumulate: builtins.bool = False) -> Self:
        """`put`, written into the tensor itself; return it."""
    @overload
    def put_along_axis(self, index: TensorLike, value: TensorLike | None, dim: builtins.int) -> Tensor:
        """x with `value` at `index` along `dim`: NumPy's `put_along_axis`, on a copy."""
    @overload
    def put_along_axis(self, index: TensorLike, value: TensorLike | None, *, axis: builtins.int) -> Tensor: ...
    def qr(self, mode: builtins.str = "reduced") -> QRResult:
        """q, r with q r = x, the columns of q orthonormal and r upper triangular; x (..., m, n)."""
    @overload
    def quantile(
        self,
        q: TensorLike,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        *,
        interpolation: builtins.str = "linear",
    ) -> Tensor:
        """The values below which fractions `q` of the elements lie; several q add a leading dimension."""
    @overload
    def quantile(
        self,
        q: TensorLike,
        *,
        axis: builtins.int | None = None,
        keepdims: builtins.bool = False,
        interpolation: builtins.str = "linear",
    ) -> Tensor: ...
    def rad2deg(self) -> Tensor:
        """Radians to degrees."""
    def rad2deg_(self) -> Self:
        """`rad2deg`, written into the tensor itself; return it."""
    def radians(self) -> Tensor:
        """Degrees to radians."""
    def random_(
        self, from_: builtins.int = 0, to: builtins.int | None = None, *, generator: Generator | None = None
    ) -> Self:
        """Write integers from `from_` up to and without `to`; with one number, from 0 to it. Return x."""
    def ravel(self, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> Tensor:
        """Merge the dimensions from `start_dim` to `end_dim`, both included."""
    def reciprocal(self) -> Tensor:
        """1 / x"""
    def reciprocal_(self) -> Self:
        """`reciprocal`, written into the tensor itself; return it."""
    def relu(self) -> Tensor:
        """max(x, 0)"""
    def relu6(self) -> Tensor:
        """x limited to [0, 6]."""
    def relu6_(self) -> Self:
        """`relu6`, written into the tensor itself; return it."""
    def relu_(self) -> Self:
        """`relu`, written into the tensor itself; return it."""
    def remainder(self, other: TensorLike) -> Tensor:
        """a - floor(a / b) * b"""
    def remainder_(self, other: TensorLike) -> Self:
        """`remainder`, written into the tensor itself; return it."""
    @overload
    def renorm(self, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Tensor:
        """`x` with each slice along `dim` whose p-norm exceeds `maxnorm` scaled down to that norm."""
    @overload
    def renorm(self, p: builtins.float, *, axis: builtins.int, maxnorm: builtins.float) -> Tensor: ...
    @overload
    def renorm_(self, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Self:
        """`renorm`, written into the tensor itself; return it."""
    @overload
    def renorm_(self, p: builtins.float, *, axis: builtins.int, maxnorm: builtins.float) -> Self: ...
    def repeat(self, *sizes: Ints) -> Tensor:
        """Lay copies of x side by side, `sizes` of them along each dimension; new dimensions come first."""
    @overload
    def repeat_interleave(
        self, repeats: Ints | TensorLike, dim: builtins.int | None = None, *, output_size: builtins.int | None = None
    ) -> Tensor:
        """Repeat each element along `dim`, by default of the flattened tensor; `repeats` is a number or one per element."""
    @overload
    def repeat_interleave(
        self, repeats: Ints | TensorLike, *, axis: builtins.int | None = None, output_size: builtins.int | None = None
    ) -> Tensor: ...
    def reshape(self, *shape: Ints) -> Tensor:
        """Return the same numbers in another shape; one size may be -1."""
    def reshape_as(self, other: TensorLike) -> Tensor:
        """x in the shape of `other`."""
    def resize_(self, *sizes: builtins.int | Sequence[builtins.int], memory_format: builtins.str | None = None) -> Self:
        """Give the tensor another shape in place: its elements as they lie in memory, then values that are not set."""
    def resize_as_(self, the_template: Tensor, *, memory_format: builtins.str | None = None) -> Self:
        """Give the tensor the shape of another one in place, see `resize_`; return it."""
    def resolve_conj(self) -> Tensor:
        """x itself: a conjugate is computed at once here."""
    def resolve_neg(self) -> Tensor:
        """x itself: a conjugate is computed at once here."""
    @property
    def retains_grad(self) -> builtins.bool: ...
    def right_shift(self, other: TensorLike) -> Tensor:
        """a >> b"""
    def roll(self, shifts: Ints, dims: Ints | None = None) -> Tensor:
        """Shift elements cyclically along `dims`; without them over the flattened array."""
    def rot90(self, k: builtins.int = 1, dims: Sequence[builtins.int] = (0, 1)) -> Tensor:
        """Turn by k times 90 degrees, from the first of `dims` towards the second."""
    def round(self, decimals: builtins.int = 0) -> Tensor:
        """Round to `decimals` places, ties to even. The gradient is 0."""
    def round_(self, decimals: builtins.int = 0) -> Self:
        """`round`, written into the tensor itself; return it."""
    def rsqrt(self) -> Tensor:
        """1 / sqrt(x)"""
    def rsqrt_(self) -> Self:
        """`rsqrt`, written into the tensor itself; return it."""
    def rsub(self, other: TensorLike, *, alpha: builtins.float = 1) -> Tensor:
        """other - alpha * x."""
    def scaled_modified_bessel_k0(self) -> Tensor:
        """exp(x) * K0(x)"""
    def scaled_modified_bessel_k1(self) -> Tensor:
        """exp(x) * K1(x)"""
    @overload
    def scatter(
        self,
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
        self,
        *,
        axis: builtins.int,
        index: TensorLike,
        src: TensorLike | None = None,
        value: TensorLike | None = None,
        reduce: builtins.str | None = None,
    ) -> Tensor: ...
    @overload
    def scatter_(
        self,
        dim: builtins.int,
        index: TensorLike,
        src: TensorLike | None = None,
        *,
        value: TensorLike | None = None,
        reduce: builtins.str | None = None,
    ) -> Self:
        """`scatter`, written into the tensor itself; return it."""
    @overload
    def scatter_(
        self,
        *,
        axis: builtins.int,
        index: TensorLike,
        src: TensorLike | None = None,
        value: TensorLike | None = None,
        reduce: builtins.str | None = None,
    ) -> Self: ...
    @overload
    def scatter_add(self, dim: builtins.int, index: TensorLike, src: TensorLike) -> Tensor:
        """x with y[index[i, j], j] += src[i, j] for dim 0."""
    @overload
    def scatter_add(self, *, axis: builtins.int, index: TensorLike, src: TensorLike) -> Tensor: ...
    @overload
    def scatter_add_(self, dim: builtins.int, index: TensorLike, src: TensorLike) -> Self:
        """`scatter_add`, written into the tensor itself; return it."""
    @overload
    def scatter_add_(self, *, axis: builtins.int, index: TensorLike, src: TensorLike) -> Self: ...
    @overload
    def scatter_reduce(
        self,
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
        self,
        *,
        axis: builtins.int,
        index: TensorLike,
        src: TensorLike,
        reduce: builtins.str,
        include_self: builtins.bool = True,
    ) -> Tensor: ...
    @overload
    def scatter_reduce_(
        self,
        dim: builtins.int,
        index: TensorLike,
        src: TensorLike,
        reduce: builtins.str,
        *,
        include_self: builtins.bool = True,
    ) -> Self:
        """`scatter_reduce`, written into the tensor itself; return it."""
    @overload
    def scatter_reduce_(
        self,
        *,
        axis: builtins.int,
        index: TensorLike,
        src: TensorLike,
        reduce: builtins.str,
        include_self: builtins.bool = True,
    ) -> Self: ...
    @overload
    def select(self, dim: builtins.int, index: builtins.int) -> Tensor:
        """The slice at `index` along `dim`, without that dimension: a view."""
    @overload
    def select(self, *, axis: builtins.int, index: builtins.int) -> Tensor: ...
    @overload
    def select_scatter(self, src: TensorLike, dim: builtins.int, index: builtins.int) -> Tensor:
        """x with `src` as the slice at `index` along `dim`."""
    @overload
    def select_scatter(self, src: TensorLike, *, axis: builtins.int, index: builtins.int) -> Tensor: ...
    def selu(self) -> Tensor:
        """Scaled elu, whose fixed point has mean 0 and variance 1 (Klambauer et al. 2017)."""
    def selu_(self) -> Self:
        """`selu`, written into the tensor itself; return it."""
    def set_(
        self,
        source: Tensor | Storage | None = None,
        storage_offset: builtins.int = 0,
        size: Sequence[builtins.int] | None = None,
        stride: Sequence[builtins.int] | None = None,
    ) -> Self:
        """Let the tensor look at the memory of `source`, or at none; return it."""
    def sgn(self) -> Tensor:
        """x / |x| for complex numbers, with 0 for 0; the sign for real numbers."""
    def sgn_(self) -> Self:
        """`sgn`, written into the tensor itself; return it."""
    def share_memory_(self) -> Self:
        """Move the values, in place, into memory that this process shares with those it starts; return the tensor."""
    def shifted_chebyshev_polynomial_t(self, n: TensorLike) -> Tensor:
        """Shifted chebyshev t polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""
    def shifted_chebyshev_polynomial_u(self, n: TensorLike) -> Tensor:
        """Shifted chebyshev u polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""
    def shifted_chebyshev_polynomial_v(self, n: TensorLike) -> Tensor:
        """Shifted chebyshev v polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""
    def shifted_chebyshev_polynomial_w(self, n: TensorLike) -> Tensor:
        """Shifted chebyshev w polynomial of degree `n` at `input`, by its recurrence; 0 for negative degrees."""
    def short(self, memory_format: str | None = None) -> Tensor:
        """The tensor with dtype int16; itself if it has it already."""
    def sigmoid(self) -> Tensor:
        """1 / (1 + exp(-x))"""
    def sigmoid_(self) -> Self:
        """`sigmoid`, written into the tensor itself; return it."""
    def sign(self) -> Tensor:
        """sign(x)"""
    def sign_(self) -> Self:
        """`sign`, written into the tensor itself; return it."""
    def signbit(self) -> Tensor:
        """x is negative or -0"""
    def silu(self) -> Tensor:
        """x * sigmoid(x)"""
    def silu_(self) -> Self:
        """`silu`, written into the tensor itself; return it."""
    def sin(self) -> Tensor:
        """sin(x)"""
    def sin_(self) -> Self:
        """`sin`, written into the tensor itself; return it."""
    def sinc(self) -> Tensor:
        """sin(pi * x) / (pi * x)"""
    def sinc_(self) -> Self:
        """`sinc`, written into the tensor itself; return it."""
    def sinh(self) -> Tensor:
        """sinh(x)"""
    def sinh_(self) -> Self:
        """`sinh`, written into the tensor itself; return it."""
    @overload
    def slice_scatter(
        self,
        src: TensorLike,
        dim: builtins.int = 0,
        start: builtins.int | None = None,
        end: builtins.int | None = None,
        step: builtins.int = 1,
    ) -> Tensor:
        """x with `src` as the part from `start` to `end` along `dim`."""
    @overload
    def slice_scatter(
        self,
        src: TensorLike,
        *,
        axis: builtins.int = 0,
        start: builtins.int | None = None,
        end: builtins.int | None = None,
        step: builtins.int = 1,
    ) -> Tensor: ...
    @overload
    def sliding_window_view(self, window_shape: Ints, dim: Ints | None = None) -> Tensor:
        """NumPy's `sliding_window_view`: windows along one or several axes, their elements in new last axes."""
    @overload
    def sliding_window_view(self, window_shape: Ints, *, axis: Ints | None = None) -> Tensor: ...
    def slogdet(self) -> SlogdetResult:
        """Sign and logarithm of the absolute determinant of (..., n, n): two arrays of shape (...)."""
    @overload
    def softmax(self, dim: builtins.int = -1, dtype: DTypeLike | None = None) -> Tensor:
        """exp(x) / sum(exp(x)) along `dim`."""
    @overload
    def softmax(self, *, axis: builtins.int = -1, dtype: DTypeLike | None = None) -> Tensor: ...
    def softplus(self, beta: builtins.float = 1.0, threshold: builtins.float | None = None) -> Tensor:
        """log(1 + exp(beta * x)) / beta, exact for x of any size."""
    def softplus_(self, beta: builtins.float = 1.0, threshold: builtins.float | None = None) -> Self:
        """`softplus`, written into the tensor itself; return it."""
    def softshrink(self, lambd: builtins.float = 0.5) -> Tensor:
        """x moved towards 0 by `lambd`; 0 where |x| <= `lambd`."""
    def softsign(self) -> Tensor:
        """x / (1 + |x|)."""
    def solve(self, b: TensorLike, *, left: builtins.bool = True) -> Tensor:
        """The x with a x = b (or x a = b, if not `left`): a (..., n, n), b (..., n, k) or (n,)."""
    def solve_ex(self, b: TensorLike, *, left: builtins.bool = True, check_errors: builtins.bool = False) -> SolveInfo:
        """`solve` that does not raise: NaN and `info` above 0 for a singular matrix."""
    def solve_triangular(
        self, b: TensorLike, *, upper: builtins.bool, left: builtins.bool = True, unitriangular: builtins.bool = False
    ) -> Tensor:
        """The x with a x = b (or x a = b, if not `left`) for triangular a; the other triangle is not read."""
    @overload
    def sort(self, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = False) -> Extreme:
        """The sorted elements along `dim`, and the previous position of each."""
    @overload
    def sort(
        self, *, axis: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = False
    ) -> Extreme: ...
    def spherical_bessel_j0(self) -> Tensor:
        """Spherical Bessel function sin(x) / x, 1 at 0."""
    @overload
    def split(
        self, split_size: builtins.int | Sequence[builtins.int], dim: builtins.int = 0
    ) -> builtins.tuple[Tensor, ...]:
        """Split into pieces of `split_size` along `dim`, the last one possibly smaller, or into the sizes given."""
    @overload
    def split(
        self, split_size: builtins.int | Sequence[builtins.int], *, axis: builtins.int = 0
    ) -> builtins.tuple[Tensor, ...]: ...
    @overload
    def split_with_sizes(
        self, split_size: builtins.int | Sequence[builtins.int], dim: builtins.int = 0
    ) -> builtins.tuple[Tensor, ...]:
        """Split into pieces of `split_size` along `dim`, the last one possibly smaller, or into the sizes given."""
    @overload
    def split_with_sizes(
        self, split_size: builtins.int | Sequence[builtins.int], *, axis: builtins.int = 0
    ) -> builtins.tuple[Tensor, ...]: ...
    def sqrt(self) -> Tensor:
        """sqrt(x)"""
    def sqrt_(self) -> Self:
        """`sqrt`, written into the tensor itself; return it."""
    def square(self) -> Tensor:
        """x**2"""
    def square_(self) -> Self:
        """`square`, written into the tensor itself; return it."""
    @overload
    def squeeze(self, dim: Ints | None = None) -> Tensor:
        """Drop dimensions of size 1: all of them, or those of `dim` that have size 1."""
    @overload
    def squeeze(self, *, axis: Ints | None = None) -> Tensor: ...
    @overload
    def squeeze_(self, dim: Ints | None = None) -> Self:
        """`squeeze` of the tensor itself, which has another shape from then on; return it."""
    @overload
    def squeeze_(self, *, axis: Ints | None = None) -> Self: ...
    @overload
    def std(
        self,
        dim: Ints | None = None,
        correction: Any = 1,
        keepdim: builtins.bool = False,
        *,
        unbiased: builtins.bool | None = None,
    ) -> Tensor:
        """Standard deviation, the square root of `var`; its gradient is 0 where it is 0."""
    @overload
    def std(
        self,
        *,
        axis: Ints | None = None,
        ddof: Any = 1,
        keepdims: builtins.bool = False,
        unbiased: builtins.bool | None = None,
    ) -> Tensor: ...
    @overload
    def std_mean(
        self,
        dim: Ints | None = None,
        correction: Any = 1,
        keepdim: builtins.bool = False,
        *,
        unbiased: builtins.bool | None = None,
    ) -> builtins.tuple[Tensor, Tensor]:
        """Standard deviation and mean over `dim`; see `var`."""
    @overload
    def std_mean(
        self,
        *,
        axis: Ints | None = None,
        ddof: Any = 1,
        keepdims: builtins.bool = False,
        unbiased: builtins.bool | None = None,
    ) -> builtins.tuple[Tensor, Tensor]: ...
    def stft(
        self,
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
    ) -> Tensor:
        """Short-time Fourier transform: the spectra of frames of a signal."""
    def storage(self) -> Storage:
        """Return the memory behind the tensor, which its views share, by elements."""
    def storage_offset(self) -> builtins.int:
        """Return how many elements lie before the first one in the memory behind the tensor."""
    def stride(self, dim: builtins.int | None = None) -> Any:
        """Return the number of elements between neighbours along each dimension, or along one."""
    def sub(self, other: TensorLike, *, alpha: builtins.float = 1) -> Tensor:
        """x - alpha * other."""
    def sub_(self, other: TensorLike, *, alpha: builtins.float = 1) -> Self:
        """`sub`, written into the tensor itself; return it."""
    def subtract(self, other: TensorLike, *, alpha: builtins.float = 1) -> Tensor:
        """x - alpha * other."""
    def subtract_(self, other: TensorLike, *, alpha: builtins.float = 1) -> Self:
        """`subtract`, written into the tensor itself; return it."""
    @overload
    def sum(self, dim: Ints | None = None, keepdim: builtins.bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
        """Sum over `dim` (an int, several, or None for all)."""
    @overload
    def sum(
        self, *, axis: Ints | None = None, keepdims: builtins.bool = False, dtype: DTypeLike | None = None
    ) -> Tensor: ...
    def sum_to_size(self, *size: builtins.int | Sequence[builtins.int]) -> Tensor:
        """x summed over the dimensions along which the shape `size` would be broadcast to that of x."""
    def svd(self, some: builtins.bool = True) -> builtins.tuple[Tensor, Tensor, Tensor]:
        """PyTorch's older `svd`: u, s, v with u diag(s) vT = x. `linalg.svd` returns vT instead."""
    def svdvals(self) -> Tensor:
        """Singular values of (..., m, n), in descending order."""
    def swapaxes(self, dim0: Ints | None = None, dim1: builtins.int | None = None) -> Tensor:
        """Swap two dimensions; without arguments reverse all of them, with one tuple permute, like NumPy."""
    def swapaxes_(self, dim0: Ints | None = None, dim1: builtins.int | None = None) -> Self:
        """`swapaxes` of the tensor itself, which has another shape from then on; return it."""
    def swapdims(self, dim0: Ints | None = None, dim1: builtins.int | None = None) -> Tensor:
        """Swap two dimensions; without arguments reverse all of them, with one tuple permute, like NumPy."""
    def swapdims_(self, dim0: Ints | None = None, dim1: builtins.int | None = None) -> Self:
        """`swapdims` of the tensor itself, which has another shape from then on; return it."""
    def t(self) -> Tensor:
        """The transpose of a matrix; a vector itself."""
    def t_(self) -> Self:
        """`t` of the tensor itself, which has another shape from then on; return it."""
    @overload
    def take(self, index: TensorLike, dim: builtins.int | None = None) -> Tensor:
        """The elements of the flattened tensor at `index`, in its shape; with `dim` the slices along it, as in NumPy."""
    @overload
    def take(self, index: TensorLike, *, axis: builtins.int | None = None) -> Tensor: ...
    @overload
    def take_along_axis(self, index: TensorLike, dim: builtins.int | None = None) -> Tensor:
        """Pick along one axis; the other axes of `x` and `index` broadcast. Without `dim`, pick from the flattened tensor."""
    @overload
    def take_along_axis(self, index: TensorLike, *, axis: builtins.int | None = None) -> Tensor: ...
    @overload
    def take_along_dim(self, index: TensorLike, dim: builtins.int | None = None) -> Tensor:
        """Pick along one axis; the other axes of `x` and `index` broadcast. Without `dim`, pick from the flattened tensor."""
    @overload
    def take_along_dim(self, index: TensorLike, *, axis: builtins.int | None = None) -> Tensor: ...
    def tan(self) -> Tensor:
        """tan(x)"""
    def tan_(self) -> Self:
        """`tan`, written into the tensor itself; return it."""
    def tanh(self) -> Tensor:
        """tanh(x)"""
    def tanh_(self) -> Self:
        """`tanh`, written into the tensor itself; return it."""
    def tanhshrink(self) -> Tensor:
        """x - tanh(x)."""
    @overload
    def tensor_split(
        self, indices_or_sections: Ints | TensorLike, dim: builtins.int = 0
    ) -> builtins.tuple[Tensor, ...]:
        """Split along `dim` into nearly equal sections, or before each of the given indices: NumPy's `array_split`."""
    @overload
    def tensor_split(
        self, indices_or_sections: Ints | TensorLike, *, axis: builtins.int = 0
    ) -> builtins.tuple[Tensor, ...]: ...
    def threshold_(self, threshold: builtins.float, value: builtins.float) -> Self:
        """`threshold`, written into the tensor itself; return it."""
    def tile(self, *dims: Ints) -> Tensor:
        """`repeat`, with 1 for missing leading dimensions."""
    def to(
        self,
        *targets: Any,
        dtype: DTypeLike | None = None,
        device: Device = None,
        copy: builtins.bool = False,
        **_hints: builtins.object,
    ) -> Tensor:
        """The tensor with another dtype, on a device (only the cpu exists), or with the dtype of another tensor."""
    def to_dense(self) -> Tensor:
        """The tensor itself, which is dense."""
    def to_device(self, device: Device, /, *, stream: Any = None) -> Tensor:
        """The tensor on a device, which can only be the cpu: the array API's name for `to`."""
    def to_sparse(self, sparse_dim: builtins.int | None = None) -> Any:
        """The elements that are not 0 as a sparse matrix, see `glassgrad.sparse`: all its dimensions are sparse ones."""
    def to_sparse_coo(self, sparse_dim: builtins.int | None = None) -> Any:
        """The elements that are not 0 as a sparse matrix, see `glassgrad.sparse`: all its dimensions are sparse ones."""
    @overload
    def topk(
        self, k: builtins.int, dim: builtins.int = -1, largest: builtins.bool = True, sorted: builtins.bool = True
    ) -> Extreme:
        """The `k` largest (or smallest) elements along `dim`, in order, and where they are."""
    @overload
    def topk(
        self, k: builtins.int, *, axis: builtins.int = -1, largest: builtins.bool = True, sorted: builtins.bool = True
    ) -> Extreme: ...
    def trace(self) -> Tensor:
        """Sum of the diagonal of a matrix (n, m)."""
    def transpose(self, dim0: Ints | None = None, dim1: builtins.int | None = None) -> Tensor:
        """Swap two dimensions; without arguments reverse all of them, with one tuple permute, like NumPy."""
    def transpose_(self, dim0: Ints | None = None, dim1: builtins.int | None = None) -> Self:
        """`transpose` of the tensor itself, which has another shape from then on; return it."""
    def triangular_solve(
        self,
        A: TensorLike,
        upper: builtins.bool = True,
        transpose: builtins.bool = False,
        unitriangular: builtins.bool = False,
    ) -> TriangularSolution:
        """Solve A X = b for a triangular A; `linalg.solve_triangular` has the newer argument order."""
    def tril(self, diagonal: builtins.int = 0) -> Tensor:
        """Keep the lower triangle of the last two dimensions."""
    def tril_(self, diagonal: builtins.int = 0) -> Self:
        """`tril`, written into the tensor itself; return it."""
    def triu(self, diagonal: builtins.int = 0) -> Tensor:
        """Keep the upper triangle of the last two dimensions."""
    def triu_(self, diagonal: builtins.int = 0) -> Self:
        """`triu`, written into the tensor itself; return it."""
    def true_divide(self, other: TensorLike, *, rounding_mode: builtins.str | None = None) -> Tensor:
        """x / other; `rounding_mode` "floor" or "trunc" rounds the quotient, whose gradient is then 0."""
    def true_divide_(self, other: TensorLike, *, rounding_mode: builtins.str | None = None) -> Self:
        """`true_divide`, written into the tensor itself; return it."""
    def trunc(self) -> Tensor:
        """x without its fraction"""
    def trunc_(self) -> Self:
        """`trunc`, written into the tensor itself; return it."""
    def type(self, dtype: DTypeLike | None = None, non_blocking: builtins.bool = False) -> Any:
        """The tensor in another dtype, or without `dtype`, PyTorch's name of its dtype, such as "torch.FloatTensor"."""
    def type_as(self, other: TensorLike) -> Tensor:
        """The tensor with the dtype of `other`."""
    @overload
    def unbind(self, dim: builtins.int = 0) -> builtins.tuple[Tensor, ...]:
        """Return the slices along `dim`, without that dimension."""
    @overload
    def unbind(self, *, axis: builtins.int = 0) -> builtins.tuple[Tensor, ...]: ...
    @overload
    def unflatten(self, dim: builtins.int, sizes: Sequence[builtins.int]) -> Tensor:
        """Split dimension `dim` into `sizes`, one of which may be -1."""
    @overload
    def unflatten(self, *, axis: builtins.int, sizes: Sequence[builtins.int]) -> Tensor: ...
    def unfold(self, dimension: builtins.int, size: builtins.int, step: builtins.int = 1) -> Tensor:
        """All windows of `size` elements along a dimension, `step` apart, with their elements as the last dimension."""
    def uniform_(
        self, from_: builtins.float = 0.0, to: builtins.float = 1.0, *, generator: Generator | None = None
    ) -> Self:
        """Write numbers drawn evenly from [from_, to); return x."""
    @overload
    def unique(
        self,
        sorted: builtins.bool = True,
        return_inverse: builtins.bool = False,
        return_counts: builtins.bool = False,
        dim: builtins.int | None = None,
    ) -> Any:
        """The distinct values in x, in order; with `dim` the distinct slices."""
    @overload
    def unique(
        self,
        sorted: builtins.bool = True,
        return_inverse: builtins.bool = False,
        return_counts: builtins.bool = False,
        *,
        axis: builtins.int | None = None,
    ) -> Any: ...
    @overload
    def unique_consecutive(
        self,
        return_inverse: builtins.bool = False,
        return_counts: builtins.bool = False,
        dim: builtins.int | None = None,
    ) -> Any:
        """The values of x (its slices along `dim`) without consecutive repeats."""
    @overload
    def unique_consecutive(
        self,
        return_inverse: builtins.bool = False,
        return_counts: builtins.bool = False,
        *,
        axis: builtins.int | None = None,
    ) -> Any: ...
    @overload
    def unsafe_chunk(self, chunks: builtins.int, dim: builtins.int = 0) -> builtins.tuple[Tensor, ...]:
        """Split into at most `chunks` pieces along `dim`, equal but for a smaller last one."""
    @overload
    def unsafe_chunk(self, chunks: builtins.int, *, axis: builtins.int = 0) -> builtins.tuple[Tensor, ...]: ...
    @overload
    def unsafe_split(
        self, split_size: builtins.int | Sequence[builtins.int], dim: builtins.int = 0
    ) -> builtins.tuple[Tensor, ...]:
        """Split into pieces of `split_size` along `dim`, the last one possibly smaller, or into the sizes given."""
    @overload
    def unsafe_split(
        self, split_size: builtins.int | Sequence[builtins.int], *, axis: builtins.int = 0
    ) -> builtins.tuple[Tensor, ...]: ...
    @overload
    def unsafe_split_with_sizes(
        self, split_size: builtins.int | Sequence[builtins.int], dim: builtins.int = 0
    ) -> builtins.tuple[Tensor, ...]:
        """Split into pieces of `split_size` along `dim`, the last one possibly smaller, or into the sizes given."""
    @overload
    def unsafe_split_with_sizes(
        self, split_size: builtins.int | Sequence[builtins.int], *, axis: builtins.int = 0
    ) -> builtins.tuple[Tensor, ...]: ...
    @overload
    def unsqueeze(self, dim: builtins.int) -> Tensor:
        """Insert a dimension of size 1 at `dim`."""
    @overload
    def unsqueeze(self, *, axis: builtins.int) -> Tensor: ...
    @overload
    def unsqueeze_(self, dim: builtins.int) -> Self:
        """`unsqueeze` of the tensor itself, which has another shape from then on; return it."""
    @overload
    def unsqueeze_(self, *, axis: builtins.int) -> Self: ...
    @overload
    def unstack(self, dim: builtins.int = 0) -> builtins.tuple[Tensor, ...]:
        """Return the slices along `dim`, without that dimension."""
    @overload
    def unstack(self, *, axis: builtins.int = 0) -> builtins.tuple[Tensor, ...]: ...
    def untyped_storage(self) -> Storage:
        """Return the memory behind the tensor, which its views share, by bytes."""
    @overload
    def var(
        self,
        dim: Ints | None = None,
        correction: Any = 1,
        keepdim: builtins.bool = False,
        *,
        unbiased: builtins.bool | None = None,
    ) -> Tensor:
        """Variance over `dim`, the sum of squares divided by n - `correction`."""
    @overload
    def var(
        self,
        *,
        axis: Ints | None = None,
        ddof: Any = 1,
        keepdims: builtins.bool = False,
        unbiased: builtins.bool | None = None,
    ) -> Tensor: ...
    @overload
    def var_mean(
        self,
        dim: Ints | None = None,
        correction: Any = 1,
        keepdim: builtins.bool = False,
        *,
        unbiased: builtins.bool | None = None,
    ) -> builtins.tuple[Tensor, Tensor]:
        """Variance and mean over `dim`; see `var`."""
    @overload
    def var_mean(
        self,
        *,
        axis: Ints | None = None,
        ddof: Any = 1,
        keepdims: builtins.bool = False,
        unbiased: builtins.bool | None = None,
    ) -> builtins.tuple[Tensor, Tensor]: ...
    def vdot(self, b: TensorLike) -> Tensor:
        """Inner product of two vectors, with the complex conjugate of the first."""
    @overload
    def vecdot(self, b: TensorLike, dim: builtins.int = -1) -> Tensor:
        """Sum of products along `dim`, with the conjugate of a; the other dimensions broadcast."""
    @overload
    def vecdot(self, b: TensorLike, *, axis: builtins.int = -1) -> Tensor: ...
    @overload
    def vector_norm(
        self,
        ord: builtins.float | builtins.str | None = 2,
        dim: Ints | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DTypeLike | None = None,
    ) -> Tensor:
        """(sum of |x|**ord)**(1/ord) over `dim`; inf and -inf give the largest and smallest |x|, 0 counts nonzeros."""
    @overload
    def vector_norm(
        self,
        ord: builtins.float | builtins.str | None = 2,
        *,
        axis: Ints | None = None,
        keepdims: builtins.bool = False,
        dtype: DTypeLike | None = None,
    ) -> Tensor: ...
    def view(self, *shape: Ints) -> Tensor:
        """`reshape` under PyTorch's name (it copies if no view is possible); with a dtype, read the bits as that dtype."""
    def view_as(self, other: TensorLike) -> Tensor:
        """x in the shape of `other`."""
    def view_as_complex(self) -> Tensor:
        """Pairs (..., 2) of real and imaginary part as complex numbers (...)."""
    def view_as_real(self) -> Tensor:
        """Complex numbers (...) as pairs (..., 2) of real and imaginary part."""
    def vsplit(self, indices_or_sections: Ints | TensorLike) -> builtins.tuple[Tensor, ...]:
        """Split rows into equal parts, or before each of the given indices."""
    def where(self, condition: TensorLike, other: TensorLike) -> Tensor:
        """The elements of the tensor where `condition` is true, else those of `other`."""
    def xlog1py(self, other: TensorLike) -> Tensor:
        """a * log(1 + b), 0 where a is 0"""
    def xlogy(self, other: TensorLike) -> Tensor:
        """a * log(b), 0 where a is 0"""
    def xlogy_(self, other: TensorLike) -> Self:
        """`xlogy`, written into the tensor itself; return it."""
    def zero_(self) -> Self:
        """Write 0 everywhere; return x."""
    def zeta(self, other: TensorLike) -> Tensor:
        """Hurwitz' zeta function, the sum of (other + k)**-input over k = 0, 1, ..., with a gradient in `other` alone."""
