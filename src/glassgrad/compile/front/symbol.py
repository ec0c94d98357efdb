"""Symbol: the stand-in for an array while a function is traced.

A Symbol represents *memory*, not a value. Operators make new Symbols; in-place operators change the value
(`Var`) that a Symbol holds, so every Tensor that shares it sees the write, just as with a shared ndarray.
A view remembers its source; a write to either reaches the other.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.compile.front.calls.parameters import Args, Function, Kwargs
from glassgrad.compile.front.origin import Origin, described
from glassgrad.compile.ir.graph import DType, Params, Var, dtype_text
from glassgrad.engine.tensor import Tensor
from glassgrad.ops import index, names, operators, shape
from glassgrad.ops.core import INTERPRETERS, REGISTRY, Array, Interpreter, Primitive
from glassgrad.ops.places import has_masks, split_index
from glassgrad.ops.views import in_order

if TYPE_CHECKING:
    from glassgrad.compile.front.tracer import Tracer


class View:
    """The origin of a view: the source, the primitive that made it, and the source's version at that time."""

    __slots__ = ("params", "prim", "seen", "source")

    def __init__(self, source: Symbol, prim: Primitive, params: Params) -> None:
        self.source = source
        self.prim = prim
        self.params = params
        self.seen = source.stamp


class Symbol:
    """A traced array: shape and dtype, and the `Var` of its current value.

    Attributes:
        tracer: the trace it belongs to.
        weak: whether it came from a Python number and adopts the dtype of the other operand.
        written: the tape's sequence number at the last write, and the place of that write.
    """

    __slots__ = ("__weakref__", "_value", "tracer", "version", "view", "weak", "written")

    base: ClassVar[None] = None  # as `ndarray.base` of an array that owns its memory
    __array_priority__: ClassVar[int] = 900

    if TYPE_CHECKING:
        # Methods are attached from the table of names; a type checker sees them as this.
        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, tracer: Tracer, value: Var, *, weak: bool = False, view: View | None = None) -> None:
        self.tracer = tracer
        self._value = value
        self.weak = weak
        self.view = view
        self.version = 0
        self.written: tuple[int, Origin] | None = None

    @property  # type: ignore[misc]  # of `object` it can be written
    def __class__(self) -> Any:
        """The class that `isinstance` sees: ndarray in the user's code."""
        return Symbol if provenance.INTERNAL[sys._getframe(1).f_code.co_filename] else np.ndarray

    # --- properties -------------------------------------------------------------------------------

    @property
    def stamp(self) -> int:
        """A number that changes with every write to this memory."""
        return self.version if self.view is None else self.view.source.stamp

    @property
    def var(self) -> Var:
        """The current value; a view is read again if its memory was written since."""
        view = self.view
        if view is not None and view.seen != view.source.stamp:
            view.seen = view.source.stamp
            self._value = self.tracer.apply(view.prim, (view.source,), view.params)._value
        return self._value

    @property
    def shape(self) -> tuple[int, ...]:
        return self._value.shape

    @property
    def dtype(self) -> DType:
        return self._value.dtype

    @property
    def ndim(self) -> int:
        return len(self._value.shape)

    @property
    def size(self) -> int:
        return math.prod(self._value.shape)

    @property
    def nbytes(self) -> int:
        return self._value.nbytes

    @property
    def T(self) -> Array:  # noqa: N802 - NumPy's name
        return shape.transpose(self)

    @property
    def mT(self) -> Array:  # noqa: N802 - the array API's name
        return shape.matrix_transpose(self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d array")
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        return iter([self[position] for position in range(len(self))])

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"traced {dtype_text(self.dtype)}{list(self.shape)}"

    def __format__(self, spec: str) -> str:
        return repr(self)

    def written_since(self, seq: int) -> provenance.Place | None:
        """Return where the memory was overwritten after `seq`, directly or through a view; None if it was not."""
        root = self
        while root.view is not None:
            root = root.view.source
        return root.written[1].place if root.written is not None and root.written[0] > seq else None

    def lies_in_order(self) -> bool:
        """Tell whether the memory is C-contiguous, as far as views are known."""
        return bool(self.layout().flags.c_contiguous)

    def layout(self) -> Any:
        """Return an array with arbitrary numbers and the strides of the value, as far as views are known."""
        return _shown(*_origin_of(self))

    def unshared(self) -> Symbol:
        """Return separate memory with the same value, like `copy()` of an array."""
        return Symbol(self.tracer, self.var, weak=self.weak)

    __copy__ = unshared

    def astype(self, dtype: object, **_how: object) -> Array:
        """Return the value in another dtype, like `ndarray.astype`."""
        return self.unshared() if self.dtype == dtype else shape.astype(self, dtype)

    def __deepcopy__(self, memo: dict[int, object]) -> Symbol:
        return self.unshared()

    # --- reading and writing ------------------------------------------------------------------------

    def __getitem__(self, key: object) -> Array:
        return index.getitem(self, key)

    def __setitem__(self, key: object, value: Array) -> None:
        if key is Ellipsis or (isinstance(key, slice) and key == slice(None)) or key == ():
            self.write(value)
            return
        spec, arrays = split_index(key)
        value = value if hasattr(value, "shape") else self.dtype.type(value)
        self.write(index.at_set_p(self, value, *arrays, spec=spec))

    def fill(self, value: Array) -> None:
        """Set all elements to one number."""
        self.write(value)

    def write(self, value: Array) -> Symbol:
        """Overwrite the memory; return self."""
        self.tracer.write(self, value)
        return self

    # --- refused while tracing ----------------------------------------------------------------------

    def no_numbers(
        self, call: str, advice: str = "use a function of glassgrad on the tensor, or do it outside."
    ) -> Exception:
        """Return the error for code that needs the numbers."""
        return self._refuse(call, advice)

    def _refuse(self, call: str, advice: str) -> Exception:
        call, advice = _asked(call, advice)
        return errors.TRACED_VALUE(
            call=call, where=provenance.here(2), what=self.described(), origin=self.history(), advice=advice
        )

    def described(self) -> str:
        """Name the value for a message, by the user's variable if known."""
        return described(self._value, self.tracer.origin_of(self._value))

    def history(self) -> str:
        """Describe the origin of the value in a sentence for a message."""
        where = self.tracer.origin_of(self._value)
        kind = f"{dtype_text(self.dtype)}{list(self.shape)}"
        if isinstance(where, Origin):
            return f"\nIt is {kind}, computed at {where.place}: {where.place.source}"
        return f"\nIt is {kind}, {where}."

    def __bool__(self) -> bool:
        raise self._refuse(*_DUNDER["__bool__"])

    def __float__(self) -> float:
        raise self._refuse(*_DUNDER["__float__"])

    def __int__(self) -> int:
        raise self._refuse(*_DUNDER["__int__"])

    def __index__(self) -> int:
        raise self._refuse(*_DUNDER["__index__"])

    def __complex__(self) -> complex:
        raise self._refuse("complex()", "keep it a tensor, return it, and convert the result.")

    def item(self, *_args: object) -> NoReturn:
        raise self._refuse(".item()", "keep it a tensor, return it, and call .item() on the result.")

    def tolist(self) -> NoReturn:
        raise self._refuse(".tolist()", "return it and call .tolist() on the result.")

    def tobytes(self) -> NoReturn:
        raise self._refuse(".tobytes()", "return it and call .tobytes() on the result.")

    def nonzero(self) -> NoReturn:
        raise errors.TRACED_SHAPE(
            call="a boolean mask or nonzero()",
            where=provenance.here(1),
            what=self.described(),
            origin=self.history(),
            advice="keep the shape: where(mask, x, 0), masked_fill, or multiply by the mask.",
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise errors.TRACED_NUMPY(
            call="converting to a NumPy array", where=provenance.here(1), what=self.described(), origin=self.history()
        )

    # --- NumPy's protocols --------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Array, **kwargs: Any) -> Array:
        prim = _ufuncs().get(ufunc)
        out = kwargs.pop("out", None)
        plain_out = out is None or isinstance(out[0], Symbol)
        if any(isinstance(x, Tensor) for x in inputs):
            return NotImplemented
        if method == "__call__" and prim is not None and not kwargs and plain_out:
            result = prim(*inputs)
            return result if out is None else out[0].write(result)
        raise self._no_numpy(f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}"))

    def __array_function__(self, function: Function, kinds: object, args: Args, kwargs: Kwargs) -> Array:
        ours = names.PUBLIC.get(function.__name__)
        if ours is None or "out" in kwargs:
            raise self._no_numpy(f"np.{function.__name__}")
        return ours(*args, **kwargs)

    def _no_numpy(self, call: str) -> Exception:
        return errors.TRACED_NUMPY(call=call, where=provenance.here(2), what=self.described(), origin=self.history())


# The special method, the user's expression that calls it, and what to write instead.
_DUNDER = {
    "__bool__": (
        "the truth of a value (if, while, assert, and, or, not)",
        "choose elementwise with where(condition, a, b), or decide outside of the compiled function.",
    ),
    "__float__": ("float()", "keep it a tensor, return it, and call float() on the result."),
    "__int__": ("int()", "keep it a tensor; if it is a size or a count, pass it as a Python int."),
    "__index__": (
        "using a value as a Python index",
        "index a tensor with it (x[i], x.gather), or pass it as a Python int.",
    ),
    "__contains__": ("`in`", "compare with == and keep the result a tensor."),
}


@lru_cache(maxsize=1)
def _ufuncs() -> dict[np.ufunc, Primitive]:
    """Return the NumPy functions that are the forward of a primitive."""
    named = {prim.forward: prim for prim in REGISTRY.values() if isinstance(prim.forward, str)}
    named |= {"matmul": REGISTRY["matmul"], "reciprocal": REGISTRY["reciprocal"], "power": REGISTRY["power"]}
    functions = {getattr(np, name, None): prim for name, prim in named.items() if prim.name != "root"}
    return {function: prim for function, prim in functions.items() if isinstance(function, np.ufunc)}


def _asked(call: str, advice: str) -> tuple[str, str]:
    """Return the call and advice for the user's expression, if Tensor's own methods are in between."""
    frame = sys._getframe(2)
    while frame.f_back is not None and provenance.is_internal(frame.f_code.co_filename):
        call, advice = _DUNDER.get(frame.f_code.co_name, (call, advice))
        frame = frame.f_back
    return call, advice


# --- the interpreter ------------------------------------------------------------------------------


def apply(prim: Primitive, args: Args, params: Params) -> Array:
    """Append `prim` to the trace that the Symbols among `args` belong to."""
    for arg in args:
        if isinstance(arg, Symbol):
            return arg.tracer.apply(prim, args, params)
    raise AssertionError("called with a Symbol among the arguments")


INTERPRETERS[Symbol] = Interpreter(rank=10, apply=apply)


def _operator(op: str) -> Function:
    prim = REGISTRY[op]

    def operator(first: Array, *second: Array) -> Array:
        return NotImplemented if second and isinstance(second[0], Tensor) else prim(first, *second)

    return operator


def _in_place(prim: Primitive) -> Callable[[Symbol, Array], Symbol]:
    def operator(self: Symbol, other: Array) -> Symbol:
        return self.write(prim(self, other))

    return operator


def _attach() -> None:
    operators.attach(Symbol, _operator)
    for name, op in operators.BINARY.items():
        setattr(Symbol, f"__i{name}__", _in_place(REGISTRY[op]))
    for name, function in names.methods().items():
        if name not in vars(Symbol):
            setattr(Symbol, name, function)


_attach()


def is_look(prim: Primitive, source: Symbol, params: Params) -> bool:
    """Tell whether a view op shares the memory of its source; NumPy copies if strides cannot express the result."""
    if prim is index.getitem_p:
        return not has_masks(params["spec"])
    if prim.indices is not None and prim.indices is not in_order:
        return True
    root, steps = _origin_of(source)
    if all(step.prim.indices is in_order for step in steps):
        return True
    like = _shown(root, steps)
    return bool(np.may_share_memory(like, prim.compute((like,), params)))


def _origin_of(source: Symbol) -> tuple[Symbol, list[View]]:
    """Return the root of a view, and the steps from the root, last one first."""
    steps: list[View] = []
    while source.view is not None:
        steps.append(source.view)
        source = source.view.source
    return source, steps


def _shown(root: Symbol, steps: list[View]) -> Array:
    """Return an array with the strides of a Symbol, by applying its views to an array like its root in NumPy."""
    like = np.empty(root.shape, root.dtype)  # its dtype too: a view may show complex numbers as pairs
    for step in reversed(steps):
        like = step.prim.compute((like,), step.params)
    return like


def assigned(x: Array, value: Array, arrays: Sequence[Array], spec: Any) -> Array:
    """Return x with x[index] = value, for the `write_back` of a view."""
    return index.at_set_p(x, value, *arrays, spec=spec)
