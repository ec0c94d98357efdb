"""The module made from an ONNX file: it calls the nodes in order, with trainable weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base.tables import words
from glassgrad.engine.tensor import Tensor, make
from glassgrad.nn.module import Module
from glassgrad.nn.parameter import Parameter
from glassgrad.onnx.calls import Call, Operator
from glassgrad.onnx.read_layers import LAYERS
from glassgrad.onnx.read_math import MATH
from glassgrad.onnx.read_shape import SHAPES

OPERATORS: dict[str, Operator] = {**MATH, **SHAPES, **LAYERS}

# Operators that pass a weight on to its user.
_PASSING = frozenset(words("Identity Transpose Reshape Squeeze Unsqueeze Slice Concat Cast Flatten Expand Split"))
# The positions of weights among an operator's inputs; inputs of other operators are constants.
_WEIGHTS: dict[str, tuple[int, ...]] = {
    op: inputs
    for inputs, ops in {
        (0,): "Gather",
        (0, 1): "MatMul Add Sub Mul Div",
        (0, 1, 2): "Gemm Einsum",
        (1,): "RMSNormalization PRelu",
        (1, 2): """
            Conv ConvTranspose BatchNormalization InstanceNormalization LayerNormalization GroupNormalization
        """,
        (1, 2, 3): "LSTM GRU RNN",
    }.items()
    for op in words(ops)
}
_FACTORS = frozenset({"Add", "Sub", "Mul", "Div"})
# Statistics that training updates.
_STATISTICS: dict[str, tuple[int, ...]] = {"BatchNormalization": (3, 4)}


class OnnxModel(Module):
    """A model read from an ONNX file; `glassgrad.onnx.load` makes it.

    Attributes:
        inputs, outputs: the names of the arguments and of the results.
        calls: the nodes, in order.
    """

    def __init__(
        self, inputs: Sequence[str], outputs: Sequence[str], calls: Sequence[Call], tensors: dict[str, Any]
    ) -> None:
        super().__init__()
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.calls = tuple(calls)
        uses = _uses(calls)
        self._places: dict[str, tuple[Module, str]] = {}
        self._constants: dict[str, Any] = {}
        self._last = _last_uses(calls, self.outputs)
        for name, array in tensors.items():
            self._keep(name, array, uses)

    def _keep(self, name: str, array: Any, uses: Uses) -> None:
        """Turn a tensor into a parameter, a buffer or a constant."""
        number = array.dtype.kind in "fV"
        trained = name in uses.weights or (name in uses.factors and array.size > 1)
        weight = name in uses.statistics or (trained and array.ndim > 0)
        if not number or (array.size < 2 and not weight):
            # Values that must be known before the model runs: shapes, axes, scales; and masks.
            self._constants[name] = array
            return
        holder: Module = self
        *path, last = name.split(".") if not name.startswith(".") and ".." not in name else [name.replace(".", "_")]
        for part in path:
            holder = _child(holder, part)
        last = _free(holder, last)
        if trained and np.isfinite(array).all():
            holder.register_parameter(last, Parameter(make(array, None, False)))
        else:
            holder.register_buffer(last, make(array, None, False))
        self._places[name] = holder, last

    def forward(self, *args: Any) -> Any:
        """Compute the outputs: one tensor, or a tuple of several."""
        if len(args) != len(self.inputs):
            raise errors.ONNX_CALL(expected=", ".join(self.inputs), given=f"{len(args)} arguments")
        values: dict[str, Any] = dict(zip(self.inputs, map(_tensor, args), strict=True))
        values.update(self._constants)
        values.update({name: getattr(holder, last) for name, (holder, last) in self._places.items()})
        for call, gone in zip(self.calls, self._last, strict=True):
            found = OPERATORS[call.op](self._mode(call), *[values[name] if name else None for name in call.inputs])
            results = found if isinstance(found, tuple) else (found,)
            for name, value in zip(call.outputs, results, strict=False):
                if name:
                    values[name] = value if hasattr(value, "shape") else np.asarray(value)
            for name in gone:
                values.pop(name, None)
        outputs = tuple([_tensor(values[name]) for name in self.outputs])
        return outputs[0] if len(outputs) == 1 else outputs

    def _mode(self, call: Call) -> Call:
        """Return a node with the module's mode, if the operator has two modes."""
        if not self.training or call.op not in {"BatchNormalization", "Dropout"}:
            return call
        attributes = {**call.attributes, "training": True}
        return Call(call.op, call.inputs, call.outputs, attributes, call.name, call.opset, call.path)

    def extra_repr(self) -> str:
        counted = Counter(call.op for call in self.calls)
        return ", ".join(f"{op} x {count}" if count > 1 else op for op, count in counted.items())

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"  # the parts hold only weights


class Part(Module):
    """Holds the weights whose names begin with its own."""


def _child(holder: Module, name: str) -> Module:
    found = holder.__dict__.get(name)
    if isinstance(found, Part):
        return found
    made = Part()
    holder.register_module(_free(holder, name), made)
    return made


def _free(holder: Module, name: str) -> str:
    """Return a name that the module does not use for anything else."""
    while not name or hasattr(holder, name):
        name += "_"
    return name


def _tensor(value: Any) -> Any:
    return value if isinstance(value, Tensor) or value.dtype == object else make(np.asarray(value), None, False)


@dataclass
class Uses:
    """The roles of values.

    Attributes:
        weights: weights of some operator, or biases of a product.
        factors: other operands of sums, products and so on; a single number among these is not a weight.
        statistics: values that training updates.
    """

    weights: set[str] = field(default_factory=set)
    factors: set[str] = field(default_factory=set)
    statistics: set[str] = field(default_factory=set)


def _uses(calls: Sequence[Call]) -> Uses:
    """Return the roles of values, traced through operators that pass them on."""
    found = Uses()
    makers = {name: call.op for call in calls for name in call.outputs}
    for call in reversed(calls):
        products = any(makers.get(name) in {"MatMul", "Gemm", "Conv"} for name in call.inputs)
        kind = found.factors if call.op in _FACTORS and not (call.op == "Add" and products) else found.weights
        for at, name in enumerate(call.inputs):
            if at in _WEIGHTS.get(call.op, ()):
                kind.add(name)
            elif at in _STATISTICS.get(call.op, ()):
                found.statistics.add(name)
            elif call.op in _PASSING and (at == 0 or call.op == "Concat"):
                for group in (found.weights, found.factors):
                    if group & set(call.outputs):
                        group.add(name)
    found.weights -= found.statistics
    return found


def _last_uses(calls: Sequence[Call], outputs: Sequence[str]) -> list[list[str]]:
    """Return for each node the values that nothing reads after it."""
    seen = set(outputs)
    found: list[list[str]] = []
    for call in reversed(calls):
        gone = [name for name in dict.fromkeys(call.inputs) if name and name not in seen]
        seen.update(gone)
        found.append(gone)
    return found[::-1]
