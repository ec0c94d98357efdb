"""The ops between the parameters and the loss as plain data, whichever library recorded them.

`tape_graph.py` reads them from our tape, `torch_graph.py` sees them as PyTorch's functions are called.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from types import CodeType

from glassgrad import provenance

Shape = tuple[int, ...]

LEAF, CONSTANT = -1, -2
"""Stand for the number of an op: a tensor that no op made, with and without a gradient."""

# One name for each op that the libraries name differently.
_NAMES = {
    "add": "add", "radd": "add", "iadd": "add", "sub": "subtract", "rsub": "subtract", "isub": "subtract",
    "mul": "multiply", "rmul": "multiply", "imul": "multiply", "div": "divide", "truediv": "divide",
    "rtruediv": "divide", "true_divide": "divide", "itruediv": "divide", "rdiv": "divide", "pow": "power",
    "rpow": "power", "neg": "negative", "clamp": "clip", "clamp_min": "clip", "mm": "matmul", "addmm": "matmul",
    "bmm": "matmul", "rmatmul": "matmul", "max_pool2d_with_indices": "max_pool2d", "_log_softmax": "log_softmax",
    "gather": "take_along_axis", "permute_dims": "permute", "special_expit": "sigmoid", "expit": "sigmoid",
}  # fmt: skip  # a table

VIEWS = frozenset({
    "alias", "astype", "chunk", "clone", "contiguous", "expand", "flatten", "getitem", "index_select", "movedim",
    "pick", "permute", "ravel", "reshape", "select", "squeeze", "squeeze_", "swapaxes", "take", "take_along_axis", "to",
    "transpose", "t", "unbind", "unflatten", "unsqueeze", "view", "broadcast_to", "float", "double", "type",
})  # fmt: skip  # a table
"""Ops that return their operand's numbers unchanged."""


def canonical(name: str) -> str:
    """Return one name for an op of either library.

    Example:
        >>> canonical("__rtruediv__"), canonical("sigmoid_"), canonical("cross_entropy")
        ('divide', 'sigmoid', 'cross_entropy')
    """
    name = name.strip("_").lower()
    return _NAMES.get(name, name)


@dataclass(frozen=True)
class Labels:
    """The class numbers given to a loss: how many, how many different, whether in order; and the number of classes."""

    count: int
    distinct: int
    ordered: bool
    classes: int


@dataclass(frozen=True)
class Op:
    """One application of an op.

    Attributes:
        name: canonical, as "divide" or "cross_entropy".
        shape: of the result.
        parents: for each operand the number of the op that made it, `LEAF` or `CONSTANT`.
        shapes: of the operands, None where unknown.
        low: the smallest of what must not reach 0: the operand of a logarithm or a root, the |divisor|.
        labels: of a loss that takes class numbers.
        site: code object and instruction of the user's call.
    """

    name: str
    shape: Shape
    parents: tuple[int, ...]
    shapes: tuple[Shape | None, ...]
    low: float = math.nan
    labels: Labels | None = None
    site: tuple[CodeType, int] | None = None

    @property
    def where(self) -> str:
        """The user's file and line."""
        return "" if self.site is None else str(provenance.resolve(*self.site))

    @property
    def source(self) -> str:
        """The user's line itself."""
        return "" if self.site is None else provenance.resolve(*self.site).source


@dataclass(frozen=True)
class Graph:
    """The ops of a forward pass and its loss, in the order of the calls; `loss` is the number of the last of them."""

    ops: tuple[Op, ...]
    loss: int = -1

    def made_by(self, number: int) -> Op | None:
        """Return the op that made the numbers of op `number`'s result: itself, or the one behind views of it."""
        while number >= 0 and self.ops[number].name in VIEWS:
            number = self.ops[number].parents[0] if self.ops[number].parents else CONSTANT
        return self.ops[number] if number >= 0 else None

    @cached_property
    def last_parameter(self) -> int:
        """The number of the last op that a parameter enters: what follows is the loss."""
        return max((at for at, op in enumerate(self.ops) if LEAF in op.parents), default=-1)

    def of_loss(self) -> Iterator[tuple[int, Op]]:
        """Yield the ops between the model's last parameter and the loss."""
        yield from ((at, op) for at, op in enumerate(self.ops) if at > self.last_parameter)

    def losses(self) -> Iterator[Op]:
        """Yield the ops that take class numbers."""
        yield from (op for op in self.ops if op.labels is not None)
