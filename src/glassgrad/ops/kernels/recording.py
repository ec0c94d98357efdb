"""Recording of NumPy calls: what a function does with small arrays, as a list of calls of NumPy's loops and of BLAS.

The function is run on arrays that write down what is done with them. Whatever a record cannot hold (a number that is
read, a method that it does not know, arrays laid out in an unusual way) raises `Unrecordable`. The record holds for
arguments of the same shapes, strides and dtypes; `glassgrad.compile.native.replay` makes its calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from glassgrad.ops.kernels.products import are_many
from glassgrad.ops.kernels.recorded import RUNNING, Recorded, Unrecordable, plain

Array = Any
Strides = tuple[int, ...]

_MOST_OPERANDS, _MOST_DIMENSIONS = 4, 3
_NO_TRANSPOSE, _TRANSPOSE = 111, 112  # CBLAS's numbers
_BY_ROWS, _BY_COLUMNS = 101, 102
_ALIGNED, _WRITEABLE = 0x100, 0x400


class Layout(NamedTuple):
    """How an array lies in memory, without its numbers."""

    shape: tuple[int, ...]
    strides: Strides
    dtype: Any
    bytes: int


class Argument(NamedTuple):
    """An argument: an array or a number with its slot, an object that has to be this one, or one that is not used."""

    kind: str  # "array", "number", "same" or "other"
    value: Any  # the layout of an array, the dtype of a number, or the object
    slot: int = 0
    written: bool = False


class Operand(NamedTuple):
    """Part of an array: its slot, how many bytes behind the beginning, and steps, the innermost first."""

    slot: int
    offset: int
    steps: Strides = ()


class Call(NamedTuple):
    """One call. `numbers` are what its kind needs: sizes, orders."""

    kind: str  # "loop", "gemv", "gemm", "dot", "select", "take" or "put"
    operands: tuple[Operand, ...]
    numbers: tuple[int, ...]
    function: Any = None  # a ufunc and the number of its loop, or the character of a dtype


class Record(NamedTuple):
    """What a function does: its arguments, results (shape, dtype, slot), memory and calls.

    `memory` gives the slots of values in between and how many bytes they take; `constants` those of arrays that the
    function brings along, and whether each is a number that was made into one.
    """

    arguments: list[Argument]
    results: list[tuple[tuple[int, ...], Any, int]]
    memory: list[tuple[int, int]]
    constants: list[tuple[int, Any, bool]]
    calls: list[Call]

    def is_like(self, other: Record) -> bool:
        """Tell whether another run of the function, on other numbers, made the same calls with the same constants."""
        constants = zip(self.constants, other.constants, strict=False)
        return (
            (self.results, self.memory, self.calls) == (other.results, other.memory, other.calls)
            and len(self.constants) == len(other.constants)
            and all(a[1] is b[1] or (a[2] and b[2] and a[1].tobytes() == b[1].tobytes()) for a, b in constants)
        )


class _Memory:
    """Memory that operands lie in."""

    def __init__(self, slot: int, array: Array, kind: str) -> None:
        self.slot, self.kind, self.written = slot, kind, False
        self.start, self.bytes = address(array), span(array)
        self.array = array


def address(array: Array) -> int:
    """Return where an array begins."""
    return int(array.__array_interface__["data"][0])


def span(array: Array) -> int:
    """Return how many bytes an array reaches over; its steps go forwards."""
    if any(step < 0 for step in array.strides):
        raise Unrecordable("steps backwards")
    return int(sum((n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)) + array.itemsize)


class Recorder:
    """Writes down the calls of one run of a function."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.memory: list[_Memory] = []
        self.alive: list[Any] = []  # as long as this, so that no address is used twice

    def new(self, array: Array, kind: str) -> _Memory:
        """Enter memory."""
        found = _Memory(len(self.memory), array, kind)
        self.memory.append(found)
        self.alive.append(array)
        return found

    def find(self, array: Array) -> tuple[_Memory, int]:
        """Return the memory of an array, and where it begins there; what is unknown is the function's own constant."""
        start, size = address(array), span(array)
        for one in self.memory:
            if one.start <= start and start + size <= one.start + one.bytes:
                return one, start - one.start
            if one.start < start + size and start < one.start + one.bytes:
                raise Unrecordable("an array that lies across others")
        if type(array) is not np.ndarray:
            raise Unrecordable("the result of an unknown call")
        return self.new(array, "constant"), 0

    def operand(self, array: Array, shape: tuple[int, ...] | None = None) -> tuple[Operand, Strides]:
        """Return an operand and its steps along the dimensions of a shape that it is broadcast to."""
        memory, offset = self.find(array)
        wide = array if shape is None else np.broadcast_to(plain(array), shape)
        steps = tuple([step if n > 1 else 0 for n, step in zip(wide.shape, wide.strides, strict=True)])
        return Operand(memory.slot, offset), steps

    def target(self, array: Array) -> None:
        """Note that an array is written to."""
        memory, _ = self.find(array)
        if memory.kind == "constant":
            if memory.array is not array and memory.array.base is None:
                raise Unrecordable("writing to a part of an array of unknown origin")
            memory.kind = "value"  # a new array, which nobody has read so far
        memory.written = True

    def made(self, array: Array) -> Array:
        """Enter a new array that a call returns."""
        if not array.flags.c_contiguous or not array.size:
            raise Unrecordable("a result in an unusual order")
        self.new(array, "value").written = True
        return array.view(Recorded)

    # --- calls of ufuncs --------------------------------------------------------------------------------

    def ufunc(self, ufunc: Any, method: str, inputs: tuple[Any, ...], out: Any, options: dict[str, Any]) -> Any:
        """Make a call of a ufunc, and record it."""
        if method == "reduce":
            return self._reduced(ufunc, inputs, out, options)
        in_order = options == {"order": "C"} and out is None  # what `made` expects anyway
        if method != "__call__" or (options and not in_order) or ufunc.nout != 1 or ufunc.nin + 1 > _MOST_OPERANDS:
            raise Unrecordable(f"{ufunc.__name__}.{method}")
        given = [plain(one) for one in inputs]
        if out is not None:
            self.operand(out[0])  # memory that is written to is known before, or a new array
        found = ufunc(*given, out=plain(out[0])) if out is not None else np.asarray(ufunc(*given, **options))
        loop, dtypes = _loop_of(ufunc, given, found.dtype)
        operands = [self._input(one, dtype, found.shape) for one, dtype in zip(inputs, dtypes, strict=True)]
        if out is None:
            result = self.made(found)
        else:
            result = out[0] if isinstance(out[0], Recorded) else out[0].view(Recorded)
            self.target(out[0])
            self.alive.append(out[0])
        target = self.operand(result)
        for operand, steps in operands:
            if operand.slot == target[0].slot and (operand.offset, steps) != (target[0].offset, target[1]):
                raise Unrecordable("a call whose operands overlap")
        self.loop(found.shape, [*operands, target], (ufunc, loop))
        return result

    def _input(self, given: Any, dtype: Any, shape: tuple[int, ...]) -> tuple[Operand, Strides]:
        if not isinstance(given, np.ndarray):
            given = np.asarray(given, dtype)
            self.new(given, "number")
        if given.dtype != dtype:
            raise Unrecordable("a conversion")
        return self.operand(given, shape)

    def loop(
        self, shape: tuple[int, ...], operands: Sequence[tuple[Operand, Strides]], function: Any, merges: bool = True
    ) -> None:
        """Record a call of a loop for all places of a shape, of which dimensions may be taken together."""
        steps = [steps for _, steps in operands]
        axes = _merged(shape, steps) if merges else _axes(shape, steps)
        sizes = [n for n, _ in axes] + [1] * (_MOST_DIMENSIONS - len(axes))
        if len(axes) > _MOST_DIMENSIONS:
            raise Unrecordable("too many dimensions")
        placed = tuple(
            operand._replace(steps=tuple([steps[at] for _, steps in axes]) + (0,) * (_MOST_DIMENSIONS - len(axes)))
            for at, (operand, _) in enumerate(operands)
        )
        self.calls.append(Call("loop", placed, tuple(sizes), function))

    def _reduced(self, ufunc: Any, inputs: tuple[Any, ...], out: Any, options: dict[str, Any]) -> Any:
        """Record a sum, or the largest or least, over the last dimensions, as NumPy finds it: from 0, or the first."""
        (x,) = inputs
        axis, keep = options.get("axis", 0), bool(options.get("keepdims"))
        unknown = [name for name, value in options.items() if value is not None and name not in {"axis", "keepdims"}]
        known = ufunc in {np.add, np.maximum, np.minimum} and not unknown and (out is None or out == (None,))
        if not known or not x.flags.c_contiguous or x.dtype.kind not in "fV":
            raise Unrecordable(f"{ufunc.__name__}.reduce")
        listed = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
        axes = sorted(one % x.ndim for one in listed)
        if not axes or axes != list(range(x.ndim - len(axes), x.ndim)):
            raise Unrecordable("a reduction over other dimensions")
        result = self.made(np.asarray(ufunc.reduce(plain(x), axis=axis, keepdims=keep)))
        (source, _), (target, _) = self.operand(x), self.operand(result)
        size, rows = x.itemsize, result.size
        width = x.size // rows
        begin, taken = (
            ((source, (width * size,)), 1) if ufunc is not np.add else (self._input(0.0, x.dtype, (rows,)), 0)
        )
        loop, _ = _loop_of(np.positive, [plain(x)], x.dtype)
        self.loop((rows,), [begin, (target, (size,))], (np.positive, loop))
        if width > taken:
            loop, _ = _loop_of(ufunc, [plain(x)] * 2, x.dtype)
            rest = source._replace(offset=source.offset + taken * size)
            still, along = (size, 0), (width * size, size)
            places = [(target, still), (rest, along), (target, still)]
            self.loop((rows, width - taken), places, (ufunc, loop), False)
        return result

    # --- products ---------------------------------------------------------------------------------------

    def dot(self, a: Any, b: Any) -> Any:
        """Multiply as `np.dot` does, and record how it asks BLAS."""
        found = plain(a).dot(plain(b))
        char = found.dtype.char
        if char not in "fd" or a.dtype != b.dtype:
            raise Unrecordable("a product of other kinds")
        if are_many(a.shape[0] if a.ndim == 2 else 1, b.shape[1] if b.ndim == 2 else 1, a.shape[-1]):
            raise Unrecordable("a product that wakes BLAS's threads")
        if (a.ndim, b.ndim) == (1, 1):
            return self._vectors(a, b, np.asarray(found))
        if min(*a.shape, *b.shape) < 2:  # NumPy takes other ways with a single row or column
            raise Unrecordable("a product of a row or column")
        if (a.ndim, b.ndim) == (2, 2):
            return self._matrices(a, b, found)
        if (a.ndim, b.ndim) not in {(1, 2), (2, 1)}:
            raise Unrecordable("a product of other shapes")
        matrix, vector, turned = (b, a, _TRANSPOSE) if a.ndim == 1 else (a, b, _NO_TRANSPOSE)
        if not matrix.flags.c_contiguous or vector.strides[0] % vector.itemsize:
            raise Unrecordable("a product of other orders")
        operands = [self.operand(one)[0] for one in (matrix, vector)]
        result = self.made(found)
        rows, columns = matrix.shape
        numbers = (_BY_ROWS, turned, rows, columns, columns, vector.strides[0] // vector.itemsize)
        self.calls.append(Call("gemv", (*operands, self.operand(result)[0]), numbers, char))
        return result

    def _vectors(self, a: Any, b: Any, found: Array) -> Any:
        if any(one.strides[0] % one.itemsize for one in (a, b)):
            raise Unrecordable("a product of other orders")
        operands = [self.operand(one)[0] for one in (a, b)]
        result = self.made(found)
        numbers = (a.size, *[one.strides[0] // one.itemsize for one in (a, b)])
        self.calls.append(Call("dot", (*operands, self.operand(result)[0]), numbers, a.dtype.char))
        return result

    def _matrices(self, a: Any, b: Any, found: Array) -> Any:
        orders = []
        for one in (a, b):
            if one.flags.c_contiguous:
                orders.append((_NO_TRANSPOSE, one.shape[1]))
            elif one.flags.f_contiguous:
                orders.append((_TRANSPOSE, one.shape[0]))
            else:
                raise Unrecordable("a product of other orders")
        if address(a) == address(b):  # NumPy may ask for a symmetric product
            raise Unrecordable("a product of a matrix with itself")
        operands = [self.operand(one)[0] for one in (a, b)]
        result = self.made(found)
        numbers = (orders[0][0], orders[1][0], a.shape[0], b.shape[1], a.shape[1], orders[0][1], orders[1][1])
        self.calls.append(Call("gemm", (*operands, self.operand(result)[0]), numbers, a.dtype.char))
        return result

    def select(self, mask: Any, a: Any, b: Any) -> Any:
        """Record a choice between two arrays, or numbers, by a mask."""
        found = np.where(plain(mask), plain(a), plain(b))
        operands = []
        for one, dtype in ((mask, np.dtype(np.bool_)), (a, found.dtype), (b, found.dtype)):
            operand, steps = self._input(one, dtype, found.shape)
            axes = _merged(found.shape, [steps])
            if len(axes) > 1 or found.itemsize not in (4, 8):
                raise Unrecordable("a choice between parts of arrays")
            operands.append(operand._replace(steps=axes[0][1]))
        result = self.made(found)
        operands.append(self.operand(result)[0])
        self.calls.append(Call("select", tuple(operands), (found.size, found.itemsize)))
        return result

    # --- positions --------------------------------------------------------------------------------------

    def take(self, x: Any, positions: Any) -> Any:
        """Record a flat array's elements at positions."""
        self._expect_places(x, positions)
        result = self.made(plain(x).take(plain(positions)))
        self._place("take", x, positions, result)
        return result

    def put(self, x: Any, positions: Any, values: Any) -> None:
        """Record writing to positions of a flat array."""
        self._expect_places(x, positions)
        if x.ndim != 1 or values.shape != positions.shape or values.dtype != x.dtype:
            raise Unrecordable("writing to positions")
        plain(x)[plain(positions)] = plain(values)
        self.target(x)
        self._place("put", x, positions, values)

    def _expect_places(self, x: Any, positions: Any) -> None:
        whole = x.flags.c_contiguous and positions.flags.c_contiguous and positions.ndim == 1
        if not whole or positions.dtype != np.int64 or x.itemsize not in (4, 8):
            raise Unrecordable("other positions")

    def _place(self, kind: str, x: Any, positions: Any, values: Any) -> None:
        if not values.flags.c_contiguous:
            raise Unrecordable("values that lie apart")
        operands = tuple([self.operand(one)[0] for one in (x, positions, values)])
        self.calls.append(Call(kind, operands, (positions.size, x.size, x.itemsize)))


def _axes(shape: tuple[int, ...], steps: list[Strides]) -> list[tuple[int, Strides]]:
    """Return (size, steps) of all dimensions, the innermost first."""
    return [(shape[axis], tuple([one[axis] for one in steps])) for axis in reversed(range(len(shape)))]


def _merged(shape: tuple[int, ...], steps: list[Strides]) -> list[tuple[int, Strides]]:
    """Return (size, steps) of as few dimensions as do, the innermost first."""
    axes: list[tuple[int, Strides]] = []
    for axis in reversed(range(len(shape))):
        n, here = shape[axis], tuple([one[axis] for one in steps])
        if n == 1:
            continue
        if axes and all(step == axes[-1][0] * inner for step, inner in zip(here, axes[-1][1], strict=True)):
            axes[-1] = (axes[-1][0] * n, axes[-1][1])
        else:
            axes.append((n, here))
    return axes or [(1, (0,) * len(steps))]


def _loop_of(ufunc: Any, given: Sequence[Any], result: Any) -> tuple[int, list[Any]]:
    """Return the number of a ufunc's loop for some operands, and the dtypes of its inputs."""
    arrays = {one.dtype for one in given if isinstance(one, np.ndarray | np.generic)}
    if len(arrays) != 1:
        raise Unrecordable("a conversion")
    (dtype,) = arrays
    wanted = f"{dtype.char * ufunc.nin}->{result.char}"
    if wanted not in ufunc.types:
        raise Unrecordable(f"{ufunc.__name__} of {wanted}")
    return ufunc.types.index(wanted), [dtype] * ufunc.nin


def is_recording() -> bool:
    """Tell whether this thread records a function."""
    return RUNNING.recorder is not None


def is_constant(one: Any) -> bool:
    """Tell whether a record may hold for this very object."""
    return type(one) in _CONSTANTS


_CONSTANTS = frozenset({type(None), bool, str})


class _Unused:
    """Stands for an argument that is neither an array nor a constant: NumPy's own truth values, parts of the tape.

    A function that uses it fails. None would count as false, and a record of it serve for true.
    """

    __array_ufunc__ = None

    def __bool__(self) -> bool:
        raise Unrecordable("it decides by an argument that is no array")


_UNUSED = _Unused()


def record(function: Callable[..., Any], args: tuple[Any, ...], written: Sequence[int] = ()) -> Record:
    """Record what a function does with arrays; it is run on copies of them.

    Args:
        function: takes arrays, floats and constants; returns an array, several, or None.
        args: its arguments.
        written: positions of the arrays that it writes to.

    Raises:
        Unrecordable: it does what no record holds.
    """
    recorder = Recorder()
    floats = {one.dtype for one in args if isinstance(one, np.ndarray) and one.dtype.kind in "fV"}
    if len(floats) != 1 or next(iter(floats)).char not in "fd":
        raise Unrecordable("other dtypes")
    (number,) = floats
    given, arguments = [], []
    for at, one in enumerate(args):
        if type(one) is np.ndarray:
            copied = copy_of(one)
            slot = recorder.new(copied, "argument").slot
            layout = Layout(one.shape, one.strides, one.dtype, span(one))
            arguments.append(Argument("array", layout, slot, at in written))
            given.append(copied.view(Recorded))
        elif type(one) is float:
            value = np.asarray(one, number)
            arguments.append(Argument("number", number, recorder.new(value, "argument").slot))
            given.append(value.view(Recorded))
        elif is_constant(one):
            arguments.append(Argument("same", one))
            given.append(one)
        else:  # a function that uses it fails
            arguments.append(Argument("other", None))
            given.append(_UNUSED)
    RUNNING.recorder = recorder
    try:
        found = function(*given)
    finally:
        RUNNING.recorder = None
    return _finished(recorder, arguments, found)


def copy_of(array: Array, numbers: Array | None = None) -> Array:
    """Return an array with the same strides, in memory of its own: a copy, or with other numbers."""
    size = span(array)
    if not array.size or not array.flags.aligned or not array.dtype.isnative:
        raise Unrecordable("an array without elements, or laid out in an unusual way")
    memory = np.zeros(-(-size // 16) * 2, np.float64).view(np.uint8)[:size]
    copied: Array = np.ndarray(array.shape, array.dtype, memory, 0, array.strides)
    copied[...] = array if numbers is None else numbers
    return copied


def others_like(args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Return arguments of the same kinds with other numbers: turned around and negated, larger, smaller, and zeros."""
    changes: tuple[Callable[[Any], Any], ...] = (
        lambda x: x * -0.75,
        lambda x: x * 40,
        lambda x: x * 1e-6,
        lambda x: x * 0,
    )

    def changed(one: Any, change: Callable[[Any], Any]) -> Any:
        if type(one) is not np.ndarray:
            return one
        turned = one.reshape(-1)[::-1].reshape(one.shape)
        return copy_of(one, change(turned) if one.dtype.kind in "fV" else turned)

    return [tuple([changed(one, change) for one in args]) for change in changes]


def _finished(recorder: Recorder, arguments: list[Argument], found: Any) -> Record:
    results: list[tuple[tuple[int, ...], Any, int]] = []
    listed = found if type(found) is tuple else () if found is None else (found,)
    for array in listed:
        own, offset = recorder.find(array)
        whole = array.flags.c_contiguous and offset == 0 and span(array) == own.bytes
        if own.kind != "value" or not whole or any(own.slot == slot for _, _, slot in results):
            raise Unrecordable("a result that is part of another array")
        results.append((array.shape, array.dtype, own.slot))
    allowed = {one.slot for one in arguments if one.written}
    if any(one.kind == "argument" and one.written and one.slot not in allowed for one in recorder.memory):
        raise Unrecordable("writing to an argument")
    taken = {slot for _, _, slot in results}
    values = [one for one in recorder.memory if one.kind == "value" and one.slot not in taken]
    known = [one for one in recorder.memory if one.kind in ("constant", "number")]
    constants = [(one.slot, one.array, one.kind == "number") for one in known]
    memory = [(one.slot, one.bytes) for one in values]
    return Record(arguments, results, memory, constants, recorder.calls)


__all__ = [
    "Argument",
    "Call",
    "Layout",
    "Operand",
    "Record",
    "Recorded",
    "Unrecordable",
    "address",
    "copy_of",
    "is_constant",
    "others_like",
    "record",
    "span",
]
