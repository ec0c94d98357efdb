"""One node of a loaded file, with helpers that the operators share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.engine import public

# The functions of the library, on tensors and on arrays of NumPy.
gg: Any = SimpleNamespace(**public.NAMES)


@dataclass(eq=False)
class Call:
    """One node.

    Attributes:
        op: the operator.
        inputs, outputs: names of values; empty where one is left out.
        attributes: as Python values.
        name: the node's name.
        opset: the version of the operators.
        path: the file, for messages.
    """

    op: str
    inputs: list[str]
    outputs: list[str]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    opset: int = 18
    path: str = ""

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute."""
        return self.attributes.get(name, default)

    def ints(self, name: str, given: Any, default: Sequence[int] | None = None) -> list[int] | None:
        """Return integers that are an attribute in older versions and an input in newer ones."""
        if given is not None:
            return [int(number) for number in np.ravel(self.known(given, name))]
        found = self.get(name, default)
        return None if found is None else [int(number) for number in np.ravel(found)]

    def known(self, value: Any, what: str) -> Any:
        """Return numbers that must be known before the model runs: constants, and values computed from shapes."""
        if not isinstance(value, np.ndarray | np.generic | int | float):
            raise self.refused(
                f"computes its {what} from the numbers of the input", "export the model with fixed sizes."
            )
        return np.asarray(value)

    def refused(self, problem: str, advice: str = "run the model with onnxruntime.") -> Exception:
        """Return the exception for this node."""
        return errors.ONNX_NODE(
            path=self.path, node=self.name or self.outputs[0], op=self.op, problem=problem, advice=advice
        )


Operator = Callable[..., Any]
