"""`torch.sparse`: sparse matrices in COO format, given by the places and values of their entries.

It has what graph networks need: products with dense matrices, computed by SciPy, with gradients for the values and the
dense matrix; sums, transposes, and sorting and joining of entries. Compiled steps call SciPy, too.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from glassgrad.engine.tensor import Tensor, make
from glassgrad.engine.tensors import creation, devices
from glassgrad.engine.tensors.devices import Device, DType
from glassgrad.errors.missing import getter, lister
from glassgrad.ops import examples
from glassgrad.ops.core import HIGHEST, INTERPRETERS, Array, Interpreter, Primitive, bad_option, canonical_axis
from glassgrad.ops.linalg import matmul
from glassgrad.ops.names import PUBLIC
from glassgrad.ops.sparse_products import sparse_product_p


class SparseTensor:
    """A matrix (or an array of any dimensions) given by the places of its entries and their values.

    Entries at the same place add up; `coalesce` joins and sorts them. Gradients belong to the values: a matrix made
    with `requires_grad=True` has its gradient in `A.grad`; a matrix made from a tensor of values passes it on to that
    tensor.

    Args:
        indices: places of the entries (dimensions, entries), integers.
        values: the entries.
        shape: the shape of the whole matrix.
        coalesced: whether the entries are known to be sorted, with one for each place.

    Example:
        >>> import glassgrad as gg
        >>> A = gg.sparse_coo_tensor([[0, 1, 1], [1, 0, 1]], [1.0, 2.0, 3.0], (2, 2))
        >>> (A @ gg.tensor([[1.0], [10.0]])).tolist()
        [[10.0], [32.0]]
    """

    __array_ufunc__ = None
    is_sparse = True
    layout = "sparse_coo"

    def __init__(self, indices: Tensor, values: Tensor, shape: Sequence[int], coalesced: bool = False) -> None:
        self._places = indices
        self._entries = values
        self.shape = tuple(int(n) for n in shape)
        self._coalesced = coalesced

    # --- what it is -----------------------------------------------------------------------------------

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the values."""
        return self._entries.dtype

    @property
    def device(self) -> Any:
        """The device of the values: the cpu."""
        return self._entries.device

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def requires_grad(self) -> bool:
        """Tell whether the values have a gradient."""
        return self._entries.requires_grad

    @property
    def grad(self) -> SparseTensor | None:
        """The gradient of the values, at their places; None without one."""
        found = self._entries.grad
        return None if found is None else SparseTensor(self._places, found, self.shape, self._coalesced)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or one of its sizes."""
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def sparse_dim(self) -> int:
        """Number of dimensions: all of them are sparse."""
        return len(self.shape)

    def dense_dim(self) -> int:
        """0, since values are numbers."""
        return 0

    def is_coalesced(self) -> bool:
        """Tell whether the entries are sorted, with one for each place."""
        return self._coalesced

    def _nnz(self) -> int:
        return int(self._entries.shape[0])

    def _indices(self) -> Tensor:
        return self._places

    def _values(self) -> Tensor:
        return self._entries

    def indices(self) -> Tensor:
        """The places (dimensions, entries) of a coalesced matrix."""
        self._need_coalesced("indices")
        return self._places

    def values(self) -> Tensor:
        """The entries of a coalesced matrix, with their gradient."""
        self._need_coalesced("values")
        return self._entries

    def _need_coalesced(self, op: str) -> None:
        if not self._coalesced:
            raise bad_option(op, "input", "entries that were not joined", "a coalesced matrix: call .coalesce() first")

    def __repr__(self) -> str:
        return (
            f"SparseTensor(indices={self._places!r},\n       values={self._entries!r},\n"
            f"       size={self.shape}, nnz={self._nnz()})"
        )

    # --- other forms ----------------------------------------------------------------------------------

    def _with(self, values: Array) -> SparseTensor:
        return SparseTensor(self._places, values, self.shape, self._coalesced)

    def coalesce(self) -> SparseTensor:
        """Return the matrix with its entries sorted by place; entries at the same place are added up."""
        if self._coalesced:
            return self
        flat = np.ravel_multi_index(tuple(self._places.numpy()), self.shape) if self._nnz() else np.zeros(0, np.int64)
        kept, inverse = np.unique(flat, return_inverse=True)
        zeros = make(np.zeros(len(kept), self.dtype), None, False)
        values = PUBLIC["index_add"](zeros, 0, make(inverse.reshape(-1), None, False), self._entries)
        places = np.stack(np.unravel_index(kept, self.shape)).astype(np.int64)
        return SparseTensor(make(places, None, False), values, self.shape, True)

    def to_dense(self) -> Tensor:
        """Return the matrix as a dense tensor."""
        zeros = make(np.zeros(math.prod(self.shape), self.dtype), None, False)
        flat: Array = 0
        for at, n in enumerate(self.shape):
            flat = flat * n + self._places[at]
        y: Tensor = PUBLIC["index_add"](zeros, 0, flat, self._entries).reshape(self.shape)
        return y

    def to_sparse(self) -> SparseTensor:
        """The matrix itself."""
        return self

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """Return the matrix with two dimensions swapped."""
        order = list(range(self.ndim))
        first, second = canonical_axis(dim0, self.ndim), canonical_axis(dim1, self.ndim)
        order[first], order[second] = second, first
        shape = [self.shape[axis] for axis in order]
        return SparseTensor(self._places[np.asarray(order)], self._entries, shape)

    def t(self) -> SparseTensor:
        """The transpose of a matrix."""
        return self.transpose(0, 1)

    T = property(t)

    def to(self, *targets: Any, dtype: DType = None, device: Device = None) -> SparseTensor:
        """Return the matrix with values of another dtype; the only device is the cpu."""
        return self._with(self._entries.to(*targets, dtype=dtype, device=device))

    def cpu(self) -> SparseTensor:
        """The matrix itself, which is on the cpu."""
        return self

    def cuda(self, *_args: object) -> SparseTensor:
        """Raise, since there is only the cpu."""
        devices.check("cuda")
        return self

    def float(self) -> SparseTensor:
        """Return the matrix with values in float32."""
        return self._with(self._entries.float())

    def double(self) -> SparseTensor:
        """Return the matrix with values in float64."""
        return self._with(self._entries.double())

    def detach(self) -> SparseTensor:
        """Return the matrix without a gradient."""
        return self._with(self._entries.detach())

    def clone(self) -> SparseTensor:
        """Return the matrix with a copy of its values."""
        return self._with(self._entries.clone())

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        """Set whether the values require a gradient."""
        self._entries.requires_grad_(requires_grad)
        return self

    # --- arithmetic -----------------------------------------------------------------------------------

    def __matmul__(self, other: Array) -> Array:
        return mm(self, other)

    matmul = mm = __matmul__

    def __mul__(self, other: Array) -> SparseTensor:
        if isinstance(other, int | float) or (isinstance(other, Tensor) and not other.shape):
            return self._with(self._entries * other)
        raise bad_option("sparse.mul", "other", type(other).__name__, "a number")

    __rmul__ = mul = __mul__

    def __truediv__(self, other: Array) -> SparseTensor:
        if isinstance(other, int | float) or (isinstance(other, Tensor) and not other.shape):
            return self._with(self._entries / other)
        raise bad_option("sparse.div", "other", type(other).__name__, "a number")

    div = __truediv__

    def __neg__(self) -> SparseTensor:
        return self._with(-self._entries)

    def __add__(self, other: Array) -> SparseTensor:
        if not isinstance(other, SparseTensor) or other.shape != self.shape:
            raise bad_option("sparse.add", "other", type(other).__name__, f"a sparse matrix of shape {self.shape}")
        places = PUBLIC["cat"]([self._places, other._places], 1)
        return SparseTensor(places, PUBLIC["cat"]([self._entries, other._entries], 0), self.shape)

    add = __add__

    def __sub__(self, other: Array) -> SparseTensor:
        negative: SparseTensor = -other
        return self.__add__(negative)

    def sum(self, dim: Array = None) -> Array:
        """The sum of all entries, or over dimensions; see `glassgrad.sparse.sum`."""
        return sum(self, dim)


# --- making them ----------------------------------------------------------------------------------


def sparse_coo_tensor(
    indices: Array,
    values: Array,
    size: Array = None,
    *,
    dtype: DType = None,
    device: Device = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """Make a sparse matrix from the places (dimensions, entries) and values (entries,) of its entries.

    By default `size` is the smallest that holds all places. Entries at the same place add up. `is_coalesced=True`
    promises that places are sorted and distinct.

    Raises:
        ArgumentError: places outside of the matrix, or a wrong number of values.

    Example:
        >>> import glassgrad as gg
        >>> gg.sparse_coo_tensor([[0, 1], [2, 0]], [5.0, 7.0]).to_dense().tolist()
        [[0.0, 0.0, 5.0], [7.0, 0.0, 0.0]]
    """
    devices.check(device)
    places = creation.as_tensor(indices).detach().to(np.int64)
    if isinstance(values, Tensor):
        entries = values if dtype is None else values.to(dtype)
    else:
        entries = creation.tensor(values, dtype)
    if requires_grad:
        entries = entries.detach().requires_grad_(True)
    if len(places.shape) != 2 or tuple(entries.shape) != (places.shape[1],):
        expected = f"one number for each of the {places.shape[-1] if places.shape else 0} places in indices"
        raise bad_option("sparse_coo_tensor", "values", tuple(entries.shape), expected)
    known = places.numpy()
    least = tuple(int(n) + 1 for n in known.max(axis=1, initial=-1))
    shape = least if size is None else tuple(int(n) for n in size)
    if len(shape) != len(least) or known.min(initial=0) < 0 or any(n < m for n, m in zip(shape, least, strict=True)):
        raise bad_option("sparse_coo_tensor", "size", shape, f"at least {least}, and no place below 0")
    return SparseTensor(places, entries, shape, bool(is_coalesced))


FloatTensor = functools.partial(sparse_coo_tensor, dtype=np.float32)
DoubleTensor = functools.partial(sparse_coo_tensor, dtype=np.float64)
for _maker in (FloatTensor, DoubleTensor):
    _maker.__doc__ = f"""`sparse_coo_tensor` of {np.dtype(_maker.keywords["dtype"])}: PyTorch's older name.

    Example:
        >>> import glassgrad as gg
        >>> gg.sparse.{"FloatTensor" if _maker is FloatTensor else "DoubleTensor"}([[0], [1]], [2.0], (2, 2)).dtype
        {np.dtype(_maker.keywords["dtype"])!r}
    """


def from_dense(x: Tensor) -> SparseTensor:
    """Return the entries of a dense tensor that are not 0, with their gradient: `Tensor.to_sparse`."""
    places = np.stack(np.nonzero(x.detach().numpy())).astype(np.int64)
    return SparseTensor(make(places, None, False), x[tuple(places)], x.shape, True)


def from_scipy(matrix: Any) -> SparseTensor:
    """Convert a matrix of `scipy.sparse`.

    Example:
        >>> import glassgrad as gg, scipy.sparse
        >>> gg.sparse.from_scipy(scipy.sparse.eye_array(2)).to_dense().tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    found = matrix.tocoo()
    return sparse_coo_tensor(np.stack([found.row, found.col]), creation.tensor(found.data), found.shape)


# --- products and sums ----------------------------------------------------------------------------


def mm(mat1: SparseTensor, mat2: Array) -> Array:
    """The product of a sparse matrix (n, m) and a dense one (m, k) or vector (m,): dense.

    Gradients flow to the values of the sparse matrix (only at the places of its entries) and to the dense one.
    """
    left: Array = mat1
    if not isinstance(left, SparseTensor) or isinstance(mat2, SparseTensor):
        raise bad_option("sparse.mm", "mat2", type(mat2).__name__, "a sparse matrix times a dense one: .to_dense()")
    if mat1.ndim != 2 or len(mat2.shape) not in (1, 2) or mat1.shape[1] != mat2.shape[0]:
        raise bad_option("sparse.mm", "mat2", tuple(mat2.shape), f"({mat1.shape[1]}, k) for a matrix {mat1.shape}")
    dense = mat2 if len(mat2.shape) == 2 else mat2[:, None]
    places = mat1._indices()
    y = sparse_product_p(mat1._values(), dense, places[0], places[1], size=mat1.shape[0])
    return y if len(mat2.shape) == 2 else y[:, 0]


spmm = mm


def addmm(mat: Array, mat1: SparseTensor, mat2: Array, *, beta: float = 1, alpha: float = 1) -> Array:
    """beta mat + alpha (mat1 @ mat2), for a sparse `mat1`."""
    product = mm(mat1, mat2)
    return (mat if beta == 1 else mat * beta) + (product if alpha == 1 else product * alpha)


def sum(input: SparseTensor, dim: Array = None, dtype: DType = None) -> Array:
    """The sum of all entries (a dense number), or over one or several dimensions (sparse)."""
    values = input._values() if dtype is None else input._values().to(dtype)
    axes = range(input.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    gone = {canonical_axis(axis, input.ndim) for axis in axes}
    kept = [axis for axis in range(input.ndim) if axis not in gone]
    if not kept:
        return values.sum()
    return SparseTensor(input._indices()[np.asarray(kept)], values, [input.shape[axis] for axis in kept])


# --- as arguments of ops --------------------------------------------------------------------------


def _apply(prim: Primitive, args: tuple[Any, ...], params: Mapping[str, Any]) -> Array:
    """Handle `matmul` and `mm` of a sparse matrix; refuse other ops by name."""
    if prim is matmul and isinstance(args[0], SparseTensor):
        return mm(args[0], args[1])
    raise bad_option(prim.name, "input", "a sparse matrix", "a dense tensor: .to_dense()")


INTERPRETERS[SparseTensor] = Interpreter(HIGHEST + 1, _apply)

examples.show(__name__, globals())

__getattr__: Callable[[str], Any] = getter(__name__)

__all__ = [
    "DoubleTensor",
    "FloatTensor",
    "SparseTensor",
    "addmm",
    "from_dense",
    "from_scipy",
    "mm",
    "sparse_coo_tensor",
    "spmm",
    "sum",
]
__dir__ = lister(__name__)
