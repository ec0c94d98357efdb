"""Check functions of the scalar engine's Values, and find the Values in their arguments."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine import tree
from glassgrad.verify.subjects import Subject, Variable, argument_names, name_of

Array = Any


def has_values(function: Any, arguments: Sequence[object]) -> bool:
    """Tell whether a function is called with Values, or is a network of them; imports nothing."""
    scalar = sys.modules.get("glassgrad.scalar")
    if scalar is None:
        return False
    leaves = tree.flatten(list(arguments))[0]
    return isinstance(function, scalar.Module) or any(isinstance(leaf, scalar.Value) for leaf in leaves)


class ScalarSubject(Subject):
    """A function of Values or a network of them; plain numbers among the arguments are not varied."""

    def __init__(self, function: Any, arguments: Sequence[object]) -> None:
        from glassgrad import scalar
        from glassgrad.scalar.drawing import names_within

        self.value, self.function, self.title = scalar.Value, function, name_of(function)
        self.leaves, self.tree = tree.flatten(list(arguments))
        self.slots = [at for at, leaf in enumerate(self.leaves) if isinstance(leaf, scalar.Value)]
        self.parameters = list(function.parameters()) if isinstance(function, scalar.Module) else []
        known: dict[Any, str] = {}
        for name, argument in zip(_names_of(function, arguments), arguments, strict=True):
            known |= {one: label for label, one in names_within(name, argument)}
        if self.parameters:
            known |= {one: label.removeprefix("net.") for label, one in names_within("net", function)}
        labels = [self.leaves[at].label or known.get(self.leaves[at], "value") for at in self.slots]
        labels += [one.label or known.get(one, "parameter") for one in self.parameters]
        given = [*(self.leaves[at] for at in self.slots), *self.parameters]
        double = np.dtype(np.float64)
        self.variables = [
            Variable(label, np.asarray(one.data, np.float64), double) for label, one in zip(labels, given, strict=True)
        ]

    def _run(self, values: Sequence[Array]) -> tuple[list[Array], list[Array]]:
        """Return the varied values, and the results."""
        leaves, fresh = list(self.leaves), [self.value(float(value)) for value in values[: len(self.slots)]]
        for at, one in zip(self.slots, fresh, strict=True):
            leaves[at] = one
        for parameter, value in zip(self.parameters, values[len(self.slots) :], strict=True):
            parameter.data = float(value)
        results = tree.flatten(self.function(*tree.unflatten(self.tree, leaves)))[0]
        for result in results or [None]:
            if not isinstance(result, self.value):
                raise errors.GRADCHECK_RESULT(
                    what=self.title, given=type(result).__name__, expected="Values", where=provenance.here()
                )
        return [*fresh, *self.parameters], results

    def _apart(self, compute: Callable[[], list[Array]]) -> list[Array]:
        """Compute, then restore the parameters' numbers and gradients."""
        before = [(one, one.data, one.grad) for one in self.parameters]
        try:
            return compute()
        finally:
            for one, data, grad in before:
                one.data, one.grad = data, grad

    def evaluate(self, values: Sequence[Array]) -> list[Array]:
        return self._apart(lambda: [np.asarray(y.data) for y in self._run(values)[1]])

    def gradient(self, values: Sequence[Array], cotangents: Sequence[Array]) -> list[Array]:
        def computed() -> list[Array]:
            varied, results = self._run(values)
            total = [np.zeros(()) for _ in varied]
            for result, cotangent in zip(results, cotangents, strict=True):
                for one in varied:
                    one.grad = 0.0
                result.backward()
                total = [sum_ + float(cotangent) * one.grad for sum_, one in zip(total, varied, strict=True)]
            return [np.asarray(one) for one in total]

        return self._apart(computed)


def _names_of(function: Any, arguments: Sequence[object]) -> list[str]:
    """Return the names of the arguments, one for each argument as a whole."""
    return argument_names(function, [None if tree.is_container(one) else one for one in arguments])
