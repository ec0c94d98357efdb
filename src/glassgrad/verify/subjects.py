"""One interface to everything that can be checked: functions, modules and hand-written layers, ours or PyTorch's.

A `Subject` is a function of several float64 arrays, its `variables`, to a flat list of float64 results, with
a gradient for given cotangents. With ``exact`` everything is computed in float64, otherwise in the given
precision. Layers and modules are copied first, so the caller's are unchanged.
"""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.base.provenance import pytorch
from glassgrad.engine import tree
from glassgrad.engine.tensor import Tensor, make
from glassgrad.ops.narrow import finfo
from glassgrad.verify.engines import GLASSGRAD, Engine, torch_engine

Array = Any


@dataclass(frozen=True)
class Variable:
    """A varied argument or parameter: its name, its value in float64, and its original dtype."""

    name: str
    value: Array
    dtype: np.dtype


class Subject(ABC):
    """A function of arrays with a gradient; see the docstring of this module."""

    variables: list[Variable]
    title: str = "function"
    unchecked: str = ""  # names what is not varied, and why
    exact: bool = True

    @abstractmethod
    def evaluate(self, values: Sequence[Array]) -> list[Array]:
        """Return the results as float64 arrays."""

    @abstractmethod
    def gradient(self, values: Sequence[Array], cotangents: Sequence[Array]) -> list[Array]:
        """Return a gradient per variable, as float64 arrays."""

    def seen(self, number: int, value: Array) -> Array:
        """Return a variable's value in the function's precision: rounded unless `exact`."""
        dtype = self.variables[number].dtype
        return value if self.exact or dtype == np.float64 else value.astype(dtype).astype(np.float64)

    @property
    def lowest(self) -> np.dtype:
        """The given dtype with the lowest precision."""
        return max((variable.dtype for variable in self.variables), key=lambda dtype: float(finfo(dtype).eps))


class TensorSubject(Subject):
    """A function of tensors or a module, of this library or of PyTorch."""

    def __init__(self, engine: Engine, function: Callable[..., Any], arguments: Sequence[object]) -> None:
        self.engine = engine
        self.title = name_of(function)
        self.leaves, self.tree = tree.flatten(list(arguments))
        names = argument_names(function, arguments)
        chosen = self._choose()
        self.slots = chosen
        self.variables = [
            Variable(names[at], engine.float64(self.leaves[at]), engine.dtype(self.leaves[at])) for at in chosen
        ]
        module: Any = function if engine.is_module(function) else None
        self.module = module
        self.function = function
        self._twins: dict[bool, tuple[Any, dict[str, Any]]] = {}
        self.parameters: list[str] = []
        if self.module is not None:
            for name, parameter in module.named_parameters():
                if parameter.requires_grad:
                    self.parameters.append(name)
                    self.variables.append(Variable(name, engine.float64(parameter), engine.dtype(parameter)))
        if not self.variables:
            raise errors.GRADCHECK_NOTHING(what=self.title, where=provenance.here())

    def _choose(self) -> list[int]:
        """Return the leaves to vary: those that require a gradient, or else all floating-point ones."""
        engine = self.engine
        floats = [at for at, leaf in enumerate(self.leaves) if engine.is_float(leaf)]
        asked = [at for at in floats if getattr(self.leaves[at], "requires_grad", False)]
        if asked or floats:
            return asked or floats
        numbers = [at for at, leaf in enumerate(self.leaves) if isinstance(leaf, float)]
        for at in numbers:
            self.leaves[at] = np.asarray(self.leaves[at])
        return numbers

    def _run(self, values: Sequence[Array]) -> tuple[list[Array], list[Array]]:
        """Return the variables as leaves that require gradients, and the floating-point results."""
        engine = self.engine
        dtypes = [np.dtype(np.float64) if self.exact else variable.dtype for variable in self.variables]
        split = len(self.slots)
        placed = [engine.leaf(value, dtype) for value, dtype in zip(values[:split], dtypes, strict=False)]
        leaves = [engine.constant(leaf, self.exact) for leaf in self.leaves]
        for at, leaf in zip(self.slots, placed, strict=True):
            leaves[at] = leaf
        called = self.function
        if self.module is not None:
            called, owned = self._twin()
            for name, value, dtype in zip(self.parameters, values[split:], dtypes[split:], strict=True):
                placed.append(engine.put(owned[name], value, dtype))
        results = called(*tree.unflatten(self.tree, leaves))
        flat = tree.flatten(results)[0]
        if not flat or not all(engine.is_tensor(y) for y in flat):
            kinds = ", ".join(sorted({type(y).__name__ for y in flat})) or "nothing"
            raise errors.GRADCHECK_RESULT(
                what=self.title, given=kinds, expected=engine.tensor_name, where=provenance.here()
            )
        if any(engine.is_complex(y) for y in [*flat, *placed]):
            raise errors.GRADCHECK_COMPLEX(what=self.title, where=provenance.here())
        smooth = [y for y in flat if engine.is_float(y)]
        if not smooth:
            raise errors.GRADCHECK_NO_SLOPE(what=self.title, where=provenance.here())
        return placed, smooth

    def _twin(self) -> tuple[Any, dict[str, Any]]:
        """Return a copy of the module in the current precision, and its parameters by name."""
        if self.exact not in self._twins:
            twin = self.engine.twin(self.module, self.exact)
            self._twins[self.exact] = twin, dict(twin.named_parameters())
        return self._twins[self.exact]

    def evaluate(self, values: Sequence[Array]) -> list[Array]:
        return [self.engine.float64(y) for y in self._run(values)[1]]

    def gradient(self, values: Sequence[Array], cotangents: Sequence[Array]) -> list[Array]:
        placed, results = self._run(values)
        given = [self.engine.like(c, y) for c, y in zip(cotangents, results, strict=True)]
        found = self.engine.grad(results, placed, given, create_graph=False)
        return _arrays(self.engine, found, self.variables)


class SecondOrder(Subject):
    """The gradient of a subject as a function of the variables and of the results' cotangents."""

    def __init__(self, first: TensorSubject) -> None:
        self.first = first
        self.engine = first.engine
        self.title = first.title
        rng = np.random.default_rng(11)
        shapes = [y.shape for y in first.evaluate([variable.value for variable in first.variables])]
        dtype = first.lowest
        self.variables = [
            *first.variables,
            *(
                Variable(
                    f"cotangent of result {at}", np.asarray(rng.normal(size=shape).astype(dtype), np.float64), dtype
                )
                for at, shape in enumerate(shapes)
            ),
        ]

    def _first_order(self, values: Sequence[Array]) -> tuple[list[Array], list[Array]]:
        self.first.exact = self.exact
        count = len(self.first.variables)
        placed, results = self.first._run(values[:count])
        cotangents = [self.engine.leaf_like(c, y) for c, y in zip(values[count:], results, strict=True)]
        found = self.engine.grad(results, placed, cotangents, create_graph=True)
        return [*placed, *cotangents], found

    def evaluate(self, values: Sequence[Array]) -> list[Array]:
        found = self._first_order(values)[1]
        return _arrays(self.engine, found, self.first.variables)

    def gradient(self, values: Sequence[Array], cotangents: Sequence[Array]) -> list[Array]:
        leaves, found = self._first_order(values)
        kept = [(g, self.engine.like(c, g)) for g, c in zip(found, cotangents, strict=True) if g is not None]
        second = self.engine.grad([g for g, _ in kept], leaves, [c for _, c in kept], create_graph=False)
        return _arrays(self.engine, second, self.variables)


class LayerSubject(Subject):
    """A hand-written layer or loss: `forward`, `backward(dout)`, and parameters with arrays `data` and `grad`."""

    def __init__(self, layer: Any, arguments: Sequence[object]) -> None:
        self.title = type(layer).__name__
        self.given = layer
        self.arguments = [_plain(x) for x in arguments]
        self.tensors = any(isinstance(x, Tensor) for x in arguments)  # whether the layer computes with our Tensors
        floats = [at for at, x in enumerate(self.arguments) if _is_float_array(x)]
        names = argument_names(layer.forward, arguments)
        parameters = _layer_parameters(layer)
        self.tensors |= any(isinstance(parameter.data, Tensor) for _, parameter in parameters)
        self.exact = False
        returned = self._probe()
        self.slots = [at for at in floats if at < len(returned) and returned[at] is not None]
        self.exact = True
        self.variables = [_variable(names[at], self.arguments[at]) for at in self.slots]
        self.variables += [_variable(name, _plain(parameter.data)) for name, parameter in parameters]
        if skipped := [names[at] for at in floats if at not in self.slots]:
            self.unchecked = f"backward returns no gradient of {', '.join(skipped)}"
        if not self.variables:
            raise errors.GRADCHECK_NOTHING(what=self.title, where=provenance.here())
        self._layers: dict[bool, Any] = {}

    def _probe(self) -> tuple[Array, ...]:
        """Return the results of `backward`, one entry per argument."""
        try:
            return self._probed()
        except AttributeError:
            if self.tensors or not all(isinstance(x, np.ndarray) for x in self.arguments):
                raise
            self.tensors = True  # a method that only Tensors have; if this fails, too, show this error
            return self._probed()

    def _probed(self) -> tuple[Array, ...]:
        layer = copy.deepcopy(self.given)
        results = _listed(layer.forward(*map(self._given, self.arguments)))
        returned = _listed(_backward(layer, [self._given(np.ones_like(_plain(y))) for y in results]))
        return tuple(_plain(g) for g in returned)

    def _given(self, array: Array) -> Array:
        """Return an argument in the form that the layer computes with."""
        return make(array, None, False) if self.tensors and isinstance(array, np.ndarray) else array

    def _run(self, values: Sequence[Array]) -> tuple[Array, list[Array], tuple[Array, ...]]:
        if self.exact not in self._layers:
            self._layers[self.exact] = copy.deepcopy(self.given)
        layer = self._layers[self.exact]
        parameters = [parameter for _, parameter in _layer_parameters(layer)]
        cast = [
            np.array(value, np.float64 if self.exact else variable.dtype)
            for value, variable in zip(values, self.variables, strict=True)
        ]
        arguments = [x.astype(np.float64) if self.exact and _is_float_array(x) else x for x in self.arguments]
        for at, value in zip(self.slots, cast, strict=False):
            arguments[at] = value
        for parameter, value in zip(parameters, cast[len(self.slots) :], strict=True):
            parameter.data = make(value, None, False) if isinstance(parameter.data, Tensor) else value
        return layer, parameters, tuple(_plain(y) for y in _listed(layer.forward(*map(self._given, arguments))))

    def evaluate(self, values: Sequence[Array]) -> list[Array]:
        return [np.asarray(y, np.float64) for y in self._run(values)[2]]

    def gradient(self, values: Sequence[Array], cotangents: Sequence[Array]) -> list[Array]:
        layer, parameters, results = self._run(values)
        for parameter in parameters:
            # Some layers add to an existing array, others start from None.
            parameter.grad = None if parameter.grad is None else parameter.data * 0
        given = [
            self._given(np.asarray(c).astype(np.asarray(y).dtype)) for c, y in zip(cotangents, results, strict=True)
        ]
        returned = _listed(_backward(layer, given))
        found = [_plain(g) for g in (*(returned[at] for at in self.slots), *(one.grad for one in parameters))]
        gradients = []
        for g, variable in zip(found, self.variables, strict=True):
            array = np.zeros_like(variable.value) if g is None else np.asarray(g, np.float64)
            if array.shape != variable.value.shape:
                raise WrongShapeError(variable.name, array.shape, variable.value.shape)
            gradients.append(array)
        return gradients


def _arrays(engine: Any, found: Sequence[Array], variables: Sequence[Variable]) -> list[Array]:
    """Return gradients as arrays, with zeros for missing ones."""
    pairs = zip(found, variables, strict=True)
    return [np.zeros_like(variable.value) if g is None else engine.float64(g) for g, variable in pairs]


class WrongShapeError(Exception):
    """A hand-written gradient does not have its variable's shape."""

    def __init__(self, name: str, given: tuple[int, ...], expected: tuple[int, ...]) -> None:
        super().__init__(name)
        self.name, self.given, self.expected = name, given, expected


def _backward(layer: Any, cotangents: Sequence[Array]) -> Any:
    """Call `backward` with the cotangents, or without arguments if it is a loss's."""
    code = getattr(inspect.unwrap(getattr(layer.backward, "__func__", layer.backward)), "__code__", None)
    takes_none = (
        code is not None and code.co_argcount - hasattr(layer.backward, "__self__") == 0 and not code.co_flags & 4
    )
    if takes_none:
        returned = layer.backward()
        return tuple(g if g is None else cotangents[0] * g for g in _listed(returned))
    return layer.backward(*[c if c.ndim else c[()] for c in cotangents])


def _plain(value: Array) -> Array:
    """Return the numbers of a Tensor or a list as an array; return anything else unchanged."""
    if isinstance(value, Tensor):
        return value.array
    return np.asarray(value) if isinstance(value, float | np.floating | list) else value


def _listed(value: Array) -> tuple[Array, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _is_float_array(x: Array) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind in "fV"


def _variable(name: str, value: Array) -> Variable:
    array = np.asarray(value)
    return Variable(name, array.astype(np.float64), array.dtype)


def _layer_parameters(layer: Any) -> list[tuple[str, Any]]:
    """Return the parameters of a hand-written layer with their names, whichever interface it has."""
    if hasattr(layer, "named_parameters"):
        named = list(layer.named_parameters())
    else:
        own = {id(value): name for name, value in getattr(layer, "__dict__", {}).items()}
        listed = list(layer.parameters()) if hasattr(layer, "parameters") else []
        named = [(own.get(id(parameter), f"parameter {at}"), parameter) for at, parameter in enumerate(listed)]
    for name, parameter in named:
        if isinstance(parameter, np.ndarray) or not (hasattr(parameter, "data") and hasattr(parameter, "grad")):
            raise errors.GRADCHECK_PARAMETER(name=name, given=type(parameter).__name__, what=type(layer).__name__)
    return named


def name_of(function: Any) -> str:
    """Return the name of a function in a report."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, type):  # a classmethod has the name of the class it was called on
        return f"{owner.__name__}.{function.__name__}"
    name = getattr(function, "__qualname__", None) or type(function).__name__
    return str(name).rpartition("<locals>.")[2]


def argument_names(function: Any, arguments: Sequence[object]) -> list[str]:
    """Return a name for every leaf of the arguments: from the signature, or its position."""
    try:
        target = getattr(function, "forward", function)
        parameters = inspect.signature(target).parameters.values()
        kinds = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
        given = [parameter.name for parameter in parameters if parameter.kind in kinds]
    except (TypeError, ValueError):
        given = []
    names: list[str] = []
    for at, argument in enumerate(arguments):
        name = given[at] if at < len(given) else f"input {at}"
        count = len(tree.flatten(argument)[0])
        names += [name] if not tree.is_container(argument) else [f"{name}, leaf {leaf}," for leaf in range(count)]
    return names


def is_layer(function: Any) -> bool:
    """Tell whether an object is a hand-written layer, which has its own `backward`."""
    return all(callable(getattr(function, name, None)) for name in ("forward", "backward")) and not isinstance(
        function, type
    )


def subject_of(function: Any, arguments: Sequence[object]) -> Subject:
    """Wrap anything that can be checked as a subject."""
    torch = pytorch()
    if torch is not None and (
        isinstance(function, torch.nn.Module)
        or any(isinstance(leaf, torch.Tensor) for leaf in tree.flatten(list(arguments))[0])
    ):
        return TensorSubject(torch_engine(), function, arguments)
    if is_layer(function):
        return LayerSubject(function, arguments)
    return TensorSubject(GLASSGRAD, function, arguments)
