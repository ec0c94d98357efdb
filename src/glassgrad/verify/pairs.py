"""Functions that return (loss, gradient): the check is of the returned gradient.

Books write `def loss(w, x, y): ... return value, dw`, and optimizers accept such functions. Checked as an ordinary
function with two results, it would always be right, since both results are differentiated correctly.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from glassgrad.engine import tree
from glassgrad.engine.mode import no_grad
from glassgrad.engine.tensor import Tensor, make
from glassgrad.verify.compare import as_array
from glassgrad.verify.derivation import spelled, spellings
from glassgrad.verify.subjects import Subject, Variable, WrongShapeError, argument_names, name_of

Array = Any


class Pair(Subject):
    """A function of arrays or Tensors that returns a number and its gradient."""

    def __init__(
        self, function: Callable[..., Any], arguments: Sequence[object], tensors: bool, named: list[str]
    ) -> None:
        self.function, self.tensors, self.title = function, tensors, name_of(function)
        self.leaves, self.tree = tree.flatten(list(arguments))
        names = argument_names(function, arguments)
        floats = [at for at, leaf in enumerate(self.leaves) if _is_float(leaf)]
        asked = [at for at in floats if getattr(self.leaves[at], "requires_grad", False)] or floats
        if named:
            asked = [at for at in floats if names[at] in named]
        self.named = named
        found = self._call([as_array(self.leaves[at]) for at in floats], floats)[1]
        self.slots = asked[: len(found)]
        self.variables = [
            Variable(names[at], np.asarray(as_array(self.leaves[at]), np.float64), as_array(self.leaves[at]).dtype)
            for at in self.slots
        ]
        if skipped := [names[at] for at in asked[len(found) :]]:
            self.unchecked = f"no gradient of {', '.join(skipped)} is returned"

    def _call(self, values: Sequence[Array], slots: Sequence[int]) -> tuple[Array, list[Array]]:
        leaves = [as_array(leaf) if isinstance(leaf, Tensor) else leaf for leaf in self.leaves]
        for at, value in zip(slots, values, strict=True):
            leaves[at] = np.array(value)
        if self.tensors:
            leaves = [make(leaf, None, False) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]
        with no_grad():
            loss, *rest = self.function(*tree.unflatten(self.tree, leaves))
        return as_array(loss), [as_array(part) for part in gradients_in(rest, self.named)]

    def _run(self, values: Sequence[Array]) -> tuple[Array, list[Array]]:
        cast = [value if self.exact else value.astype(self.variables[at].dtype) for at, value in enumerate(values)]
        return self._call(cast, self.slots)

    def evaluate(self, values: Sequence[Array]) -> list[Array]:
        return [np.asarray(self._run(values)[0], np.float64).reshape(())]

    def gradient(self, values: Sequence[Array], cotangents: Sequence[Array]) -> list[Array]:
        found = []
        for given, variable in zip(self._run(values)[1], self.variables, strict=False):
            array = np.asarray(given, np.float64)
            if array.shape != variable.value.shape:
                raise WrongShapeError(variable.name, array.shape, variable.value.shape)
            found.append(array * float(cotangents[0]))
        return found


def gradients_in(rest: Sequence[Any], named: Sequence[str] = ()) -> list[Array]:
    """Return the gradients after the loss: one by one, in one tuple, or in a dictionary by name."""
    if len(rest) == 1 and isinstance(rest[0], Mapping):
        return [rest[0][_key(rest[0], name)] for name in named] if named else list(rest[0].values())
    if len(rest) == 1 and isinstance(rest[0], tuple | list) and not all(isinstance(x, int | float) for x in rest[0]):
        return list(rest[0])
    return list(rest)


def _key(found: Mapping[str, Array], name: str) -> str:
    return next(key for key in _keys(name) if key in found)


def _keys(name: str) -> list[str]:
    return [name, *spellings(name)]


def pair_of(function: Any, arguments: Sequence[object]) -> Pair | None:
    """Return a function as a pair if it returns a loss and its gradient, else None.

    It is a pair if its first result is one number, the others have the shapes of arguments, and the others are either
    arrays, which are not on a tape, or named like gradients in the return statement (`dw`, `grad`).
    """
    if hasattr(function, "forward") or hasattr(function, "named_parameters") or not callable(function):
        return None
    floats = [leaf for leaf in tree.flatten(list(arguments))[0] if _is_float(leaf)]
    if not floats:
        return None
    tensors, found = _called(function, arguments)
    if not isinstance(found, tuple) or len(found) < 2 or np.size(as_array(found[0])) != 1:
        return None
    names = argument_names(function, arguments)
    named: list[str] = []
    if len(found) == 2 and isinstance(found[1], Mapping):
        named = [name for name in names if any(key in found[1] for key in _keys(name))]
        if not named:
            return None
    parts = gradients_in(found[1:], named)
    asked = [leaf for leaf in floats if getattr(leaf, "requires_grad", False)] or floats
    if not parts or len(parts) > len(asked) or not all(_is_float(part) for part in parts):
        return None
    if not named and [np.size(as_array(part)) for part in parts] != [np.size(as_array(x)) for x in asked[: len(parts)]]:
        return None
    traced = any(isinstance(part, Tensor) and part.requires_grad for part in parts)
    if traced and not named and not _called_gradients(function, names):
        return None
    return Pair(function, arguments, tensors, named)


def _called(function: Any, arguments: Sequence[object]) -> tuple[bool, Any]:
    """Call a function with Tensors, or with arrays if it does not accept those; return which, and its result."""
    leaves, shape = tree.flatten(list(arguments))
    for tensors in (True, False):
        given = [_given(leaf, tensors) for leaf in leaves]
        # If one form fails, the other may work; if both fail, the check itself raises.
        with suppress(Exception), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return tensors, function(*tree.unflatten(shape, given))
    return True, None


def _given(leaf: Array, tensors: bool) -> Array:
    if not isinstance(leaf, Tensor | np.ndarray):
        return leaf
    array = np.array(as_array(leaf))
    return Tensor(array, requires_grad=array.dtype.kind in "fV") if tensors else array


def _called_gradients(function: Any, names: Sequence[str]) -> bool:
    """Tell whether the names after the first in `return loss, dw, db` are names of gradients."""
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
    except (OSError, TypeError, SyntaxError):
        return False
    returned = [node.value for node in ast.walk(body) if isinstance(node, ast.Return)]
    tuples = [value.elts for value in returned if isinstance(value, ast.Tuple) and len(value.elts) > 1]
    found = [part.id for parts in tuples for one in parts[1:] for part in ast.walk(one) if isinstance(part, ast.Name)]
    known = spelled(names)
    like = [name in known or name.startswith("grad") or name.endswith(("grad", "grads", "gradient")) for name in found]
    return bool(like) and all(like)


def _is_float(leaf: Array) -> bool:
    return isinstance(leaf, Tensor | np.ndarray | np.floating) and leaf.dtype.kind in "fV"
