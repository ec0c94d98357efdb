"""Tensor: an array and its place on the tape.

The class holds a tensor's data and the autograd controls. Its operators and differentiable methods are attached from
the tables of ops by `record.py`, which also defines how an op applies to a Tensor.
"""

from __future__ import annotations

import math
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Self, SupportsIndex, TypeAlias, overload

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.mode import MODE, RECORDING, TRACING
from glassgrad.engine.node import Node, describe
from glassgrad.engine.views import detached, rows
from glassgrad.ops import complexes, index, narrow, shape
from glassgrad.ops.core import INTERPRETERS, Array, Interpreter

_ndarray = np.ndarray
_PLAIN = frozenset({_ndarray, int, float, bool, np.float32, np.float64, np.int64})


class Size(tuple[int, ...]):
    """A shape: a tuple that also counts its elements.

    Args:
        iterable: the sizes, ints.

    Example:
        >>> import glassgrad as gg
        >>> gg.Size((2, 3)).numel()
        6
    """

    __slots__ = ()

    def numel(self) -> int:
        """Return the product of the sizes."""
        return math.prod(self)

    @overload
    def __getitem__(self, key: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, key: slice) -> Size: ...
    def __getitem__(self, key: SupportsIndex | slice) -> int | Size:
        part: Any = _item(self, key)
        return part if type(part) is int else Size(part)

    def __add__(self, other: Array) -> Size:
        return Size((*self, *other))

    def __radd__(self, other: Array) -> Size:
        return Size((*other, *self))

    def __mul__(self, times: Any) -> Size:
        return Size(tuple(self) * times)

    __rmul__ = __mul__

    def __reduce__(self) -> Any:
        return Size, (tuple(self),)


class _Sizes(dict[tuple[int, ...], Size]):
    """The Size of every shape that was requested: looking it up takes a third of the time of building it."""

    def __missing__(self, shape: tuple[int, ...]) -> Size:
        if len(self) > 4096:
            self.clear()
        size = self[shape] = Size(shape)
        return size


_SIZES = _Sizes()


def make(array: Array, node: Node | None, tracks: bool) -> Tensor:
    """Build a Tensor without any check: the one constructor of the hot path."""
    tensor = _new(Tensor)
    tensor.array = array
    tensor.node = node
    tensor._tracks = tracks
    tensor._grad = None
    tensor._extra = None
    return tensor


_new = object.__new__
_item = tuple.__getitem__


class Handle:
    """The handle that `register_hook` returns: `remove()` removes the hook. Also a context manager."""

    def __init__(self, hooks: list[Any], hook: Any) -> None:
        self._hooks = hooks
        self._hook = hook

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        if self._hook in self._hooks:
            self._hooks.remove(self._hook)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.remove()


def base_class(array: Array) -> Any:
    """Return a memory map, a matrix or another subclass of `ndarray` as an `ndarray` of the same memory.

    Subclasses have their own operators, and views that do not own the tensor's memory; a Tensor holds neither.
    """
    if type(array) is _ndarray or not isinstance(array, _ndarray):
        return array
    masked = getattr(array, "mask", None) if hasattr(array, "filled") else None
    if masked is not None and np.any(masked):
        raise errors.MASKED_ARRAY(count=int(np.sum(masked)), shape=array.shape, where=provenance.here())
    return array.view(_ndarray)


def numeric(array: Array, kind: str) -> Array:
    """Return an array of numbers unchanged, or in this machine's byte order; reject text, dates and objects.

    `kind` is the type of the user's value, for the message.
    """
    array = base_class(array)
    if array.dtype.kind not in "biufc" and not narrow.is_bfloat16(array.dtype):
        raise errors.NO_NUMBERS(kind=kind, where=provenance.here())
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


if TYPE_CHECKING:  # operators and differentiable methods are attached from the tables; tools/stubs.py declares them
    from glassgrad.engine.typed import TensorMethods
else:
    TensorMethods = object


class Tensor(TensorMethods):
    """A multidimensional array that can take part in automatic differentiation.

    Build one with `glassgrad.tensor`, `zeros`, `randn` and so on. `array` is the array inside (an
    `ndarray`, or its replacement inside a transformation); `data` is, as in PyTorch, a Tensor that
    shares it and has no history.

    Example:
        >>> import glassgrad as gg
        >>> x = gg.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([2., 4.])
    """

    __slots__ = ("__weakref__", "_extra", "_grad", "_tracks", "array", "node")

    array: Array
    node: Node | None
    _tracks: bool
    _grad: Tensor | None
    _extra: dict[str, Any] | None
    __array_priority__ = 1000
    _interpreter: ClassVar[Interpreter]  # set in `record.py`, which applies ops to Tensors

    def __init__(self, data: Array = (), *sizes: int, requires_grad: bool = False) -> None:
        if isinstance(data, Tensor):
            data = data.array
        elif type(data) is int:  # sizes, as in PyTorch; the value 5 is glassgrad.tensor(5)
            data = np.empty((data, *sizes), np.float32)
            sizes = ()
        if sizes:
            raise errors.NOT_SIZES(kind=type(data).__name__, where=provenance.here())
        if isinstance(data, _ndarray):
            self.array = numeric(data, "ndarray")
        else:  # the replacement of an array in a transformation
            self.array = data if type(data) in INTERPRETERS else np.asarray(data, dtype=np.float32)
        self.node = None
        self._grad = None
        self._extra = None
        self._tracks = False
        if requires_grad:
            self.requires_grad = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        INTERPRETERS[cls] = cls._interpreter

    # --- data and properties ----------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        return _SIZES[self.array.shape]

    @property
    def ndim(self) -> int:
        return len(self.array.shape)

    @property
    def dtype(self) -> np.dtype:
        dtype: np.dtype = self.array.dtype
        return dtype

    @property
    def data(self) -> Tensor:
        """The same memory without history; assigning replaces the memory."""
        return detached(make(self.array if MODE.stop is None else MODE.stop(self.array), None, False), self)

    @data.setter
    def data(self, value: Array) -> None:
        self.array = value.array if isinstance(value, Tensor) else np.asarray(base_class(value), self.array.dtype)

    @property
    def requires_grad(self) -> bool:
        return self._tracks

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if value and self.array.dtype.kind not in "fcV":
            raise errors.REQUIRES_GRAD_DTYPE(dtype=self.array.dtype, where=provenance.here())
        if self.node is not None and not value:
            raise errors.REQUIRES_GRAD_NON_LEAF(what=describe(self), op=self.node.name, where=self.node.place)
        self._tracks = bool(value)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set `requires_grad` in place; return self."""
        self.requires_grad = requires_grad
        return self

    @property
    def is_leaf(self) -> bool:
        return self.node is None

    @property
    def grad_fn(self) -> Node | None:
        return self.node

    @property
    def T(self) -> Tensor:  # noqa: N802 - NumPy's name
        turned: Tensor = shape.transpose(self)
        return turned

    @property
    def mT(self) -> Tensor:  # noqa: N802 - the array API's name
        turned: Tensor = shape.matrix_transpose(self)
        return turned

    @property
    def mH(self) -> Tensor:  # noqa: N802 - PyTorch's name
        turned: Tensor = complexes.conj(shape.matrix_transpose(self))
        return turned

    @property
    def real(self) -> Tensor:
        part: Tensor = complexes.real(self)
        return part

    @property
    def imag(self) -> Tensor:
        part: Tensor = complexes.imag(self)
        return part

    def dim(self) -> int:
        """Number of dimensions."""
        return len(self.array.shape)

    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.array.shape)

    @overload
    def size(self, dim: None = None) -> Size: ...
    @overload
    def size(self, dim: int) -> int: ...
    def size(self, dim: int | None = None) -> Any:
        """The shape, or its entry `dim`."""
        return _SIZES[self.array.shape] if dim is None else self.array.shape[dim]

    def element_size(self) -> int:
        """Bytes of one element."""
        return int(self.array.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.numel() * self.element_size()

    @property
    def ctypes(self) -> Any:
        """The memory, in the form of NumPy's `ctypes`, which `safetensors.numpy` reads."""
        return self.numpy().ctypes if type(self.array) is not np.ndarray else self.array.ctypes

    def lifted(self) -> Array:
        """Return the array inside, or during tracing the Symbol that represents it."""
        if MODE.flags & TRACING:
            assert MODE.lift is not None  # set whenever the flag is
            MODE.lift(self, True)
        return self.array

    def assign(self, array: Array) -> None:
        """Give a state tensor new values: copied into its memory, or as a Symbol bound to it.

        For state that no rule saves (counters, running statistics): the write is not logged.
        """
        if type(self.array) is _ndarray and type(array) in _PLAIN:
            if not self.array.flags.writeable:
                raise errors.INPLACE_READ_ONLY(op="a write", reason="it is read-only", where=provenance.here())
            self.array[...] = array
        else:
            self.array = array

    # --- out of the tape --------------------------------------------------------------------------

    def detach(self) -> Tensor:
        """Return a Tensor on the same memory that stops gradients."""
        if self._tracks:
            provenance.EXITS.note(".detach()")
        stop = MODE.stop
        array = self.array if stop is None else stop(self.array)
        alone = make(array, None, False)
        return alone if type(array) is _ndarray else detached(alone, self)

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """Return the array; raises when a gradient would be lost, unless with `force` or under `no_grad`."""
        array: np.ndarray = (self.detach() if force else self)._plain(".numpy()")
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array: np.ndarray = self._plain("converting to a NumPy array")
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def _plain(self, call: str) -> Array:
        if self._tracks and MODE.flags & RECORDING:
            name = self.node.place.variable if self.node is not None else None
            raise errors.ASARRAY_TRACKED(call=call, what=describe(self), name=name or "t", where=provenance.here(2))
        if type(self.array) is not _ndarray and hasattr(self.array, "no_numbers"):
            raise self.array.no_numbers(call)
        return self.array

    def item(self) -> Any:
        """Return the only element as a Python number."""
        if self.numel() != 1:
            raise errors.ITEM_NEEDS_ONE(shape=self.shape, where=provenance.here())
        if self._tracks:
            provenance.EXITS.note(".item()")
        return self.array.item()

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers."""
        if self._tracks:
            provenance.EXITS.note(".tolist()")
        return self.array.tolist()

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.numel() != 1 or self.array.dtype.kind not in "biu":
            raise errors.INDEX_NEEDS_INTEGER(shape=self.shape, dtype=self.array.dtype, where=provenance.here())
        return int(self.item())

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise errors.BOOL_NEEDS_ONE(shape=self.shape, where=provenance.here())
        return bool(self.array.item())

    def __len__(self) -> int:
        if not self.array.shape:
            raise TypeError("len() of a 0-d tensor")
        return int(self.array.shape[0])

    def __iter__(self) -> Iterator[Tensor]:
        if not self.array.shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter(rows(self, make))

    def __contains__(self, value: Array) -> bool:
        return bool((self.array == (value.array if isinstance(value, Tensor) else value)).any())

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        from glassgrad.engine.reports import printing

        return printing.tensor(self)

    def _repr_html_(self) -> str:
        from glassgrad.engine.reports import notebook

        return notebook.tensor(self)

    def __format__(self, spec: str) -> str:
        plain = type(self.array) is _ndarray and not self.array.shape  # prints as a number, as in PyTorch
        return format(self.item() if plain or (spec and self.numel() == 1) else repr(self), spec)

    # --- gradients --------------------------------------------------------------------------------

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` has accumulated: on leaves, and after `retain_grad()`."""
        if self._grad is None and self.node is not None and not (self._extra and "retain" in self._extra):
            node = self.node
            text = errors.NON_LEAF_GRAD.text(what=describe(self), op=node.name, where=node.place)
            warnings.warn(text, errors.NonLeafGradWarning, stacklevel=2)
        return self._grad

    @grad.setter
    def grad(self, value: Array) -> None:
        self._grad = value if value is None or isinstance(value, Tensor) else make(np.asarray(value), None, False)

    def retain_grad(self) -> None:
        """Keep `.grad` of this non-leaf tensor in later backward passes."""
        if not self._tracks:
            raise errors.RETAIN_GRAD_WITHOUT_GRAPH(where=provenance.here())
        if self.node is None or (self._extra is not None and "retain" in self._extra):
            return
        me = weakref.ref(self)  # the node must not keep its tensor alive

        def keep(g: Tensor) -> None:
            tensor = me()
            if tensor is not None:
                tensor._grad = g if tensor._grad is None else tensor._grad + g

        self._extra = {**(self._extra or {}), "retain": keep}
        self._hook_list().append(keep)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Handle:
        """Call `hook(gradient)` when the gradient of this tensor is complete; it may return another."""
        if not self._tracks:
            raise errors.HOOK_WITHOUT_GRAPH(where=provenance.here())
        hooks = self._hook_list()
        hooks.append(hook)
        return Handle(hooks, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Handle:
        """Call `hook(tensor)` each time a backward pass has added to `.grad` of this leaf."""
        if not self._tracks or self.node is not None:
            raise errors.POST_HOOK_NEEDS_LEAF(what=describe(self), where=provenance.here())
        self._extra = self._extra or {}
        hooks: list[Any] = self._extra.setdefault("after", [])
        hooks.append(hook)
        return Handle(hooks, hook)

    def _hook_list(self) -> list[Any]:
        if self.node is not None:
            if self.node.hooks is None:
                self.node.hooks = []
            return self.node.hooks
        self._extra = self._extra or {}
        hooks: list[Any] = self._extra.setdefault("hooks", [])
        return hooks

    # --- writing ----------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Tensor:
        part: Tensor = index.getitem(self, key)
        return part

    def __reduce_ex__(self, _protocol: Any) -> Any:
        return _rebuild, (type(self), self.detach().array, self._tracks)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if self.node is not None:
            raise errors.DEEPCOPY_NON_LEAF(what=describe(self), where=provenance.here())
        twin = _rebuild(type(self), self.array.copy(), self._tracks)
        if self._grad is not None:
            twin._grad = make(self._grad.array.copy(), None, False)
        memo[id(self)] = twin
        return twin


def _rebuild(kind: type[Tensor], array: Array, tracks: bool) -> Tensor:
    tensor = _new(kind)
    Tensor.__init__(tensor, array)
    tensor._tracks = tracks
    return tensor


# The annotation for operands: a tensor or what an op accepts instead.
TensorLike: TypeAlias = Tensor | np.ndarray[Any, Any] | complex | np.number[Any] | np.bool_
