"""The graph under construction: named nodes, deduplicated constants, and shapes that depend on the call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.onnx.extents import Dim, Extent
from glassgrad.onnx.traced import Counted, Filled, Slot, Step, Triangle

OUTSIDE = Step("a value", (), (Slot((), np.dtype(np.float32)),))


class Value:
    """A value of the written graph.

    Attributes:
        name: unique in the graph.
        shape: its extents; None if no row needs them.
        dtype: the dtype of its elements.
    """

    __slots__ = ("dtype", "name", "shape")

    def __init__(self, name: str, dtype: Any, shape: Sequence[Dim] | None = None) -> None:
        self.name = name
        self.dtype = np.dtype(dtype)
        self.shape = None if shape is None else tuple(shape)

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        assert self.shape is not None
        return len(self.shape)


class Writer:
    """Appends nodes.

    Args:
        onnx: the package.
        opset: the version of the operators.
    """

    def __init__(self, onnx: Any, opset: int) -> None:
        self.onnx = onnx
        self.opset = opset
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.step = OUTSIDE
        self.sources: dict[str, tuple[Value, int]] = {}  # the name of a size -> an input that has it, and its axis
        self._constants: dict[Any, Value] = {}
        self._sizes: dict[Any, Value] = {}
        self._taken: Counter[str] = Counter()

    # --- names ------------------------------------------------------------------------------------------

    def unique(self, name: str) -> str:
        """Return this name, numbered if it is already taken."""
        self._taken[name] += 1
        if self._taken[name] == 1:
            return name
        return self.unique(f"{name}_{self._taken[name] - 1}")

    # --- values -----------------------------------------------------------------------------------------

    def op(
        self, kind: str, *inputs: Value | None, dtype: Any = None, shape: Sequence[Dim] | None = None, **attributes: Any
    ) -> Value:
        """Append a node with one result, by default of the dtype of its first input."""
        first = next((one for one in inputs if one is not None), None)
        dtype = first.dtype if dtype is None and first is not None else dtype
        return self.ops(kind, inputs, [(dtype, shape)], **attributes)[0]

    def ops(self, kind: str, inputs: Sequence[Value | None], outputs: Sequence[Any], **attributes: Any) -> list[Value]:
        """Append a node; `outputs` are pairs of dtype and shape, or None for an unused result."""
        path = f"/{self.step.module.replace('.', '/')}/" if self.step.module else "/"
        name = self.unique(f"{path}{kind}")
        found = [
            None if one is None else Value(self.unique(f"{name}_output_{at}"), *one) for at, one in enumerate(outputs)
        ]
        node = self.onnx.helper.make_node(
            kind,
            ["" if one is None else one.name for one in inputs],
            ["" if one is None else one.name for one in found],
            name=name,
            doc_string="" if self.step is OUTSIDE else _brief(self.step.where),
            **attributes,
        )
        self.nodes.append(node)
        return found  # type: ignore[return-value]  # None only where the caller said so

    def initializer(self, array: Any, name: str) -> Value:
        """Store an array."""
        array = np.asarray(array)
        value = Value(self.unique(name), array.dtype, array.shape)
        self.initializers.append(
            self.onnx.numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), value.name)
        )
        return value

    def constant(self, array: Any, dtype: Any = None) -> Value:
        """Return an array as a value; equal ones are stored once."""
        array = np.asarray(array, dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = self.initializer(array, "constant")
        return self._constants[key]

    def ints(self, *numbers: Any) -> Value:
        """Return a vector of int64, whose elements may depend on the call."""
        if all(isinstance(number, int | np.integer) for number in numbers):
            return self.constant(np.array(numbers, np.int64))
        return self.op("Concat", *map(self._dim, numbers), axis=0, dtype=np.int64, shape=(len(numbers),))

    def number(self, dim: Dim) -> Value:
        """Return one integer as a scalar."""
        if isinstance(dim, int):
            return self.constant(np.int64(dim))
        return self.op("Squeeze", self._dim(dim), self.ints(0), shape=())

    def _dim(self, dim: Any) -> Value:
        """Return a vector with one integer."""
        if isinstance(dim, int | np.integer):
            return self.ints(int(dim))
        if dim is None:
            raise self.refused("a size that is no simple function of the sizes of the call")
        if dim not in self._sizes:
            assert isinstance(dim, Extent)
            parts = []
            for names, factor in dim.terms:
                sizes = [self._size(name) for name in names]
                part = sizes[0] if sizes else self.ints(factor)
                for other in [*sizes[1:], *([self.ints(factor)] if sizes and factor != 1 else [])]:
                    part = self.op("Mul", part, other, shape=(1,))
                parts.append(part)
            total = parts[0]
            for part in parts[1:]:
                total = self.op("Add", total, part, shape=(1,))
            self._sizes[dim] = total
        return self._sizes[dim]

    def _size(self, name: str) -> Value:
        if name not in self._sizes:
            source, axis = self.sources[name]
            self._sizes[name] = self.op("Shape", source, dtype=np.int64, shape=(1,), start=axis, end=axis + 1)
        return self._sizes[name]

    # --- dtypes -----------------------------------------------------------------------------------------

    def cast(self, x: Any, dtype: Any) -> Value:
        """Return a value, or a number, in a dtype."""
        dtype = np.dtype(dtype)
        if not isinstance(x, Value):
            if isinstance(x, Extent):
                return self.cast(self.number(x), dtype)
            with np.errstate(over="ignore"):
                return self.constant(np.asarray(x).astype(dtype))
        if x.dtype == dtype:
            return x
        return self.op("Cast", x, dtype=dtype, shape=x.shape, to=self.onnx.helper.np_dtype_to_tensor_dtype(dtype))

    def alike(self, operands: Sequence[Any], wanted: Any = None) -> tuple[Value, ...]:
        """Return operands in NumPy's common dtype, or in a floating dtype if the result is floating."""
        common = np.result_type(
            *[
                operand.dtype if isinstance(operand, Value) else operand if isinstance(operand, int | float) else 0
                for operand in operands
            ]
        )
        if wanted is not None and wanted.kind == "f" and common.kind != "f":
            common = wanted
        return tuple([self.cast(operand, common) for operand in operands])

    # --- constants that depend on the call ------------------------------------------------------------------

    def known(self, found: Any, dtype: Any) -> Value:
        """Return a constant of the program."""
        match found:
            case Filled():
                fill = self.onnx.numpy_helper.from_array(np.array([found.value], dtype))
                return self.op("ConstantOfShape", self.ints(*found.shape), dtype=dtype, shape=found.shape, value=fill)
            case Counted(start=start, length=None):
                return self.cast(self.number(start), dtype)
            case Counted():
                assert found.length is not None
                stop = self.op("Add", self.number(found.start), self.number(found.length), shape=())
                steps = self.op(
                    "Range", self.number(found.start), stop, self.constant(np.int64(1)), shape=(found.length,)
                )
                return self.cast(steps, dtype)
            case Triangle():
                ones = self.known(Filled(1, found.shape), np.dtype(np.float32))
                cut = self.op("Trilu", ones, self.number(found.diagonal), upper=int(not found.lower), shape=found.shape)
                return self.cast(cut, dtype)
        return self.constant(found)

    # --- refusals -------------------------------------------------------------------------------------------

    def refused(self, reason: str) -> Exception:
        """Return the exception for the current step."""
        step = self.step
        return errors.ONNX_OP(op=step.op, where=step.where, module=step.beside(), reason=reason)

    def fixed(self, dims: Sequence[Dim]) -> tuple[int, ...]:
        """Return extents that an operator needs as numbers; raise if they depend on the call."""
        found = [dim for dim in dims if isinstance(dim, int)]
        if len(found) < len(dims):
            raise self.refused("it needs the sizes of these axes to be fixed, and dynamic_axes lets them vary")
        return tuple(found)

    def needs(self, opset: int) -> None:
        """Raise unless the operators are at least of that version."""
        if self.opset < opset:
            raise self.refused(f"its operator is part of ONNX from opset={opset} on")


def _brief(where: Any) -> str:
    """Return a place with the file's name instead of its full path."""
    return str(where).rpartition("/")[2]
