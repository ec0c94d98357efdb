"""The ops between the parameters and the loss as plain data, whichever library recorded them.

`tape_graph.py` reads them from our tape, `torch_graph.py` sees them as PyTorch's functions are called.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from types import CodeType
from typing import Any

import numpy as np

from glassgrad.base import provenance
from glassgrad.doctor.library import Args, Array
from glassgrad.doctor.reading.names import named
from glassgrad.doctor.scores import score

Shape = tuple[int, ...]

MOST = 20_000
"""The largest number of ops in a graph that is read: a recurrent net over a long text repeats the same ops."""

WITH_LOW = frozenset({"log", "log2", "log10", "sqrt", "rsqrt", "divide", "power"})
"""Ops with an operand that must not be 0; a power only if its exponent is between 0 and 1."""

WITH_CONSTANT = named(
    "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits subtract "
    "multiply cross_entropy"
)
"""Ops whose operand without a gradient is looked at: a target, or the weight of each example."""
COMPARES = WITH_CONSTANT - {"multiply", "cross_entropy"}
"""Those that compare predictions with targets."""
_MOST_NUMBERS = 1 << 16

KEPT, _MOST_LABELS = 256, 1 << 18
"""The most class numbers of a batch that are kept, and that are looked at."""

_CLIPS, _MOST_CLIPS = frozenset({"add", "clip", "subtract", "maximum"}), 4

LEAF, CONSTANT = -1, -2
"""Used instead of the number of an op for a tensor that no op made, with and without a gradient."""

# The common name of each op that the libraries name differently, and its other names.
_SYNONYMS = {
    "add": "radd iadd",
    "subtract": "sub rsub isub",
    "multiply": "mul rmul imul",
    "divide": "div truediv rtruediv true_divide itruediv rdiv",
    "power": "pow rpow",
    "negative": "neg",
    "clip": "clamp clamp_min",
    "matmul": "mm addmm bmm rmatmul",
    "max_pool2d": "max_pool2d_with_indices",
    "log_softmax": "_log_softmax",
    "take_along_axis": "gather",
    "permute": "permute_dims",
    "sigmoid": "special_expit expit",
}
_NAMES = {other: name for name, others in _SYNONYMS.items() for other in others.split()}

VIEWS = named(
    "alias astype broadcast_tensors broadcast_to chunk clone contiguous double expand flatten float getitem "
    "index_select movedim permute pick ravel reshape select squeeze squeeze_ swapaxes t take take_along_axis to "
    "transpose type unbind unflatten unsqueeze view"
)
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
    """The class numbers given to a loss: count, distinct values, whether they are sorted, and the number of classes.

    `values` holds the numbers themselves, at most `KEPT` of them; `reach` is the largest size of an output. `right` is
    the share of examples whose largest output is that of their class. A map of classes counts as many examples as it
    has places. `weights` are those of the classes, if the loss has any.
    """

    count: int
    distinct: int
    ordered: bool
    classes: int
    values: Array | None = field(default=None, compare=False, repr=False)
    reach: float = field(default=math.nan, compare=False)
    right: float = field(default=math.nan, compare=False)
    weights: Array | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Constant:
    """The numbers of an operand without a gradient, such as a target.

    Attributes:
        shape: of the operand; `low`, `high`, `mean`, `std`: of its finite numbers.
        bad: how many of them are not finite.
        whole: whether all of them are integers.
        rows: the smallest and the largest row sum of a matrix; NaN for other shapes.
        values: the numbers of the first `KEPT` examples.
        fit: the score of the other operand with these targets (see `scores`). NaN for other ops and shapes.
    """

    shape: Shape
    low: float
    high: float
    mean: float
    std: float
    bad: int = 0
    whole: bool = False
    rows: tuple[float, float] = (math.nan, math.nan)
    values: Array | None = field(default=None, compare=False, repr=False)
    fit: float = field(default=math.nan, compare=False)


@dataclass(frozen=True)
class Op:
    """One application of an op.

    Attributes:
        name: canonical, such as "divide" or "cross_entropy".
        shape: of the result.
        parents: for each operand the number of the op that made it, `LEAF` or `CONSTANT`.
        shapes: of the operands, None where unknown.
        low: the smallest value that must not reach 0: the operand of a logarithm or a root, the |divisor|.
        labels: the class numbers that a loss takes.
        site: code object and instruction of the user's call.
        axis: the axis of a softmax or a sum, None if unknown.
        constant: the operand without a gradient of an op in `WITH_CONSTANT`, None if unknown.
        factor: the number that a product or a quotient has as its other operand, NaN if unknown.
        reduction: of a loss, if it was given.
    """

    name: str
    shape: Shape
    parents: tuple[int, ...]
    shapes: tuple[Shape | None, ...]
    low: float = math.nan
    labels: Labels | None = None
    site: tuple[CodeType, int] | None = None
    axis: int | None = None
    constant: Constant | None = None
    factor: float = math.nan
    reduction: str = ""

    def __str__(self) -> str:
        return f"{self.name} at {self.where}" if self.where else self.name

    @property
    def tracked(self) -> list[int]:
        """The numbers of the ops that made its operands, without leaves and constants."""
        return [parent for parent in self.parents if parent >= 0]

    @property
    def entered(self) -> Shape | None:
        """The shape of its first operand; None if unknown."""
        return self.shapes[0] if self.shapes else None

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
    """The ops of a forward pass and its loss, in the order of the calls; `loss` is the number of the last op.

    A graph without ops stands for one that is unknown.
    """

    ops: tuple[Op, ...] = ()
    loss: int = -1

    def made_by(self, number: int) -> Op | None:
        """Return the op that computed the result of op `number`: itself, or the op behind the views."""
        while number >= 0 and self.ops[number].name in VIEWS:
            tracked = self.ops[number].tracked
            if self.ops[number].name == "broadcast_tensors" and len(tracked) > 1:
                break  # the op has several results
            number = tracked[0] if tracked else CONSTANT
        return self.ops[number] if number >= 0 else None

    def maker(self, op: Op) -> Op | None:
        """Return the op that computed the first operand of an op."""
        return self.made_by(op.parents[0]) if op.parents else None

    def way(self, number: int) -> Iterator[Op]:
        """Yield an op and those before it, up to the first that no op or several ops with gradients enter."""
        while number >= 0:
            yield self.ops[number]
            tracked = self.ops[number].tracked
            number = tracked[0] if len(tracked) == 1 else CONSTANT

    def inside_log(self, op: Op) -> Op | None:
        """Return the op of whose result a logarithm is taken, ignoring clips and what is added to stay above 0."""
        maker = self.maker(op)
        for _ in range(_MOST_CLIPS):
            if maker is None or maker.name not in _CLIPS or len(maker.tracked) != 1:
                break
            maker = self.made_by(maker.tracked[0])
        return maker

    def normalises(self, op: Op) -> bool:
        """Tell whether an op subtracts a logsumexp, as log_softmax and the constructors of distributions do."""
        below = self.made_by(op.parents[1]) if op.name == "subtract" and len(op.parents) > 1 else None
        return below is not None and below.name == "logsumexp"

    @cached_property
    def last_parameter(self) -> int:
        """The number of the last op that a parameter enters: later ops belong to the loss."""
        return max((at for at, op in enumerate(self.ops) if LEAF in op.parents), default=-1)

    def of_loss(self) -> tuple[Op, ...]:
        """Return the ops between the model's last parameter and the loss."""
        return self.ops[self.last_parameter + 1 :]

    def behind_parameters(self) -> list[Op]:
        """Return the ops that no parameter follows on their way to the loss: those of the loss, term by term."""
        before: set[int] = set()
        for at in range(len(self.ops) - 1, -1, -1):
            if LEAF in self.ops[at].parents or at in before:
                before.update(self.ops[at].parents)
        return [op for at, op in enumerate(self.ops) if at not in before and LEAF not in op.parents]

    def losses(self) -> Iterator[Op]:
        """Yield the ops that take class numbers."""
        yield from (op for op in self.ops if op.labels is not None)


UNKNOWN = Graph()


def low_of(name: str, y: Any, operands: tuple[Any, ...]) -> float:
    """Return the smallest value of the operand that must not be 0, from arrays; NaN if unknown."""
    with np.errstate(all="ignore"):
        if name == "power":
            exponent = operands[1] if len(operands) > 1 else None
            root = exponent is not None and np.size(exponent) == 1 and 0 < float(np.reshape(exponent, ())) < 1
            return float(np.min(operands[0])) if root and _is_array(operands[0]) else math.nan
        if name != "divide" and name in WITH_LOW and operands and _is_array(operands[0]):
            return float(np.min(operands[0]))
        if name == "sqrt" and _is_array(y):
            # After a root, a negative operand is visible only as NaN.
            return -math.inf if np.isnan(y).any() else float(np.min(y))
        if name == "divide" and len(operands) > 1 and _is_array(operands[1], "fiu"):
            return float(np.min(np.abs(operands[1])))
    return math.nan


def axis_of(name: str, ndim: int, *given: object) -> int | None:
    """Return the axis of a softmax or a sum from the arguments that may hold it, from the front; None if unknown."""
    if name != "sum" and not name.endswith("softmax"):
        return None
    single = (one[0] if isinstance(one, tuple | list) and len(one) == 1 else one for one in given)
    axis = next((one for one in single if isinstance(one, int) and not isinstance(one, bool)), None)
    return None if axis is None else axis % max(ndim, 1)


def constant_of(name: str, operands: tuple[Any, ...], parents: tuple[int, ...]) -> Constant | None:
    """Describe the operand without a gradient of an op in `WITH_CONSTANT`, from arrays; None if there is not one."""
    places = [at for at, parent in enumerate(parents[:2]) if parent == CONSTANT]
    if name not in WITH_CONSTANT or len(places) != 1 or len(operands) <= places[0]:
        return None
    array = operands[places[0]]
    if not isinstance(array, np.ndarray) or not array.size or array.dtype.kind not in "fiub":
        return None
    shape, output = array.shape, operands[1 - places[0]]
    if array.size > _MOST_NUMBERS:  # the first examples stand for all
        first = slice(_MOST_NUMBERS * len(array) // array.size if array.ndim > 1 else _MOST_NUMBERS)
        array = array[first]
        output = output[first] if _is_array(output) and output.shape == shape else None
        if not array.size:
            return None
    finite = np.isfinite(array)
    numbers = array if finite.all() else array[finite]
    if not numbers.size:
        return Constant(shape, math.nan, math.nan, math.nan, math.nan, array.size)
    numbers = numbers.astype(np.float64)
    sums = array.sum(1) if array.ndim == 2 and array.shape[1] > 1 else np.full(1, math.nan)
    return Constant(
        shape,
        float(numbers.min()),
        float(numbers.max()),
        float(numbers.mean()),
        float(numbers.std()),
        int(array.size - numbers.size),
        bool((numbers == np.round(numbers)).all()),
        (float(sums.min()), float(sums.max())),
        array[:KEPT].copy() if array.ndim else None,
        _fit(name, output, array),
    )


def _fit(name: str, output: Array, target: Array) -> float:
    """Return how well outputs fit the targets that a loss compares them with."""
    if name not in COMPARES or not _is_array(output) or output.shape != target.shape or not target.ndim:
        return math.nan
    if name.startswith("binary"):
        return score(output, target, "binary", 0.0 if name.endswith("logits") else 0.5)
    return score(output, target, "numbers")


def factor_of(name: str, operands: Args) -> float:
    """Return the number among the operands of a product, or by which a quotient divides; NaN without one."""
    if name not in {"multiply", "divide"}:
        return math.nan
    kinds = int | float | np.generic | np.ndarray
    known = [one for one in operands[-1:] if isinstance(one, kinds) and np.ndim(one) == 0]
    return float(known[0]) if len(known) == 1 else math.nan


def _is_array(value: Any, kinds: str = "f") -> bool:
    return isinstance(value, np.ndarray) and value.size > 0 and value.dtype.kind in kinds


def labels_of(logits: Any, labels: Any, weights: Array | None = None) -> Labels | None:
    """Describe class numbers and the outputs they are compared with."""
    if not isinstance(labels, np.ndarray) or labels.dtype.kind not in "iu" or not 0 < labels.size <= _MOST_LABELS:
        return None
    if labels.ndim > 1 and isinstance(logits, np.ndarray) and logits.ndim == labels.ndim + 1:
        logits = np.moveaxis(logits, 1, -1).reshape(labels.size, -1)
        labels = labels.reshape(-1)
    if labels.ndim != 1:
        return None
    classes = int(logits.shape[1]) if getattr(logits, "ndim", 0) > 1 else 0
    ordered = bool((labels[1:] >= labels[:-1]).all())
    known = isinstance(logits, np.ndarray) and 0 < logits.size < 1 << 20
    reach = float(np.abs(logits).max()) if known else math.nan
    counted = labels >= 0
    tells = known and classes > 1 and counted.any()
    right = float(np.mean(logits[counted].argmax(1) == labels[counted])) if tells else math.nan
    known = weights is not None and weights.shape == (classes,) and classes > 1
    given = weights if known else None
    return Labels(int(labels.size), len(np.unique(labels)), ordered, classes, labels[:KEPT].copy(), reach, right, given)
