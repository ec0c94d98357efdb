"""The graph of a computation as plain data, independent of its recorder; `as_dict` serves pages and files."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Path = tuple[str, ...]

LEAVES = frozenset({"input", "parameter", "constant", "state"})
"""Kinds of nodes that are not results of ops."""

_FEW = 4


@dataclass(frozen=True)
class Numbers:
    """A summary of an array.

    Attributes:
        text: the numbers themselves if there are few, else empty.
        norm: the Euclidean norm of the finite numbers; mean, std, low and high are also over the finite ones.
        nonfinite: how many are NaN or infinite.
        whole: whether they are integers or truth values, for which the range is more informative than the norm.
        bins: a histogram of the finite numbers, with bins of equal width from low to high, if requested.

    Example:
        >>> import glassgrad as gg
        >>> a = gg.tensor([1.0, 2.0], requires_grad=True)
        >>> gg.draw((a * a).sum()).graph.nodes[0].value.text
        '[1, 2]'
    """

    text: str
    norm: float = 0.0
    mean: float = 0.0
    std: float = 0.0
    low: float = 0.0
    high: float = 0.0
    nonfinite: int = 0
    whole: bool = False
    bins: tuple[int, ...] = ()

    @property
    def short(self) -> str:
        """The numbers, or their norm; for integers the range."""
        if self.whole and not self.text:
            return f"{self.low:g} to {self.high:g}"
        bad = f", {self.nonfinite:,} NaN or inf" if self.nonfinite and not self.text else ""
        return self.text or f"norm {self.norm:.4g}{bad}"

    @property
    def long(self) -> str:
        """The numbers, or all known facts about them."""
        if self.text or self.whole:
            return self.short
        return f"{self.short}, mean {self.mean:.4g}, std {self.std:.4g}, from {self.low:.4g} to {self.high:.4g}"


def numbers_of(array: Any, bins: int = 0) -> Numbers | None:
    """Summarise an array, with a histogram if `bins` is positive; None for anything but an array of numbers.

    Example:
        >>> import numpy as np
        >>> from glassgrad.base.drawing import numbers_of
        >>> numbers_of(np.array([1.0, 2.0])).text
        '[1, 2]'
    """
    if not isinstance(array, np.ndarray | np.generic | float | int):
        return None
    array = np.asarray(array)
    if array.dtype.kind not in "fiubV":
        return None
    if array.size <= _FEW:
        return Numbers(_written(array.tolist()))
    wide = array.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    if not finite.size:
        return Numbers("", nonfinite=int(array.size))
    with np.errstate(over="ignore", invalid="ignore"):  # the norm of numbers near the largest overflows
        return Numbers(
            "",
            norm=float(np.linalg.norm(finite)),
            mean=float(finite.mean()),
            std=float(finite.std()),
            low=float(finite.min()),
            high=float(finite.max()),
            nonfinite=int(array.size - finite.size),
            whole=array.dtype.kind not in "fV",
            bins=_counts(finite, bins),
        )


def _counts(finite: Any, bins: int) -> tuple[int, ...]:
    low, high = float(finite.min()), float(finite.max())
    width = high - low
    if not bins or not np.isfinite(width) or width <= bins * np.spacing(max(abs(low), abs(high))):
        return ()
    steps = np.minimum((finite - low) / width * bins, bins - 1).astype(np.intp)
    return tuple(np.bincount(steps, minlength=bins).tolist())


def _written(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@dataclass
class Node:
    """A value: the result of an op, an input, a parameter or a constant.

    Attributes:
        kind: "input", "parameter", "constant", "state" (of an optimizer, a random draw) or "op"; "update" for a value
            that is written to the variable of its name, "cut" for an op whose arguments are left out, "neuron".
        op: the op's name; empty if no op computed it.
        name: the user's variable, or empty.
        formula: the op with its arguments filled in.
        where: the user's file and line, with its text in `source`.
        module: the calls of modules in which it was computed, outermost first.
        root: whether it is a result.
        late: whether it is computed after the backward pass, e.g. an optimizer's update.

    Example:
        >>> import glassgrad as gg
        >>> a = gg.tensor(2.0, requires_grad=True)
        >>> node = gg.draw(a * a).graph.nodes[0]
        >>> node.kind, node.name, node.value.text
        ('input', 'a', '2')
    """

    kind: str
    op: str = ""
    name: str = ""
    formula: str = ""
    shape: tuple[int, ...] = ()
    dtype: str = ""
    value: Numbers | None = None
    gradient: Numbers | None = None
    where: str = ""
    source: str = ""
    module: Path = ()
    root: bool = False
    late: bool = False


@dataclass
class Edge:
    """An argument of an op: from the node at index `tail` to the one at index `head`.

    Attributes:
        local: the local derivative as a formula, or in words.
        number: its value, if both ends are numbers.
        sent: the cotangent that the backward pass sends along it.
        weight: the factor of the tail, in a picture of neurons.
        gradient: whether the gradient with respect to the tail is read instead of the tail.

    Example:
        >>> import glassgrad as gg
        >>> a = gg.tensor(2.0, requires_grad=True)
        >>> edge = gg.draw(3.0 * a).graph.edges[0]
        >>> edge.tail, edge.head
        (0, 2)
    """

    tail: int
    head: int
    local: str = ""
    number: float | None = None
    sent: Numbers | None = None
    weight: float | None = None
    gradient: bool = False


@dataclass
class Line:
    """A line of a step written out as a program, with the nodes that it is about.

    Attributes:
        nodes: the nodes that it computes, or whose gradients it computes.
        backward: whether it is a line of the backward pass.
    """

    text: str
    nodes: list[int] = field(default_factory=list)
    backward: bool = False


@dataclass
class Kernel:
    """A unit of work of a compiled step, which computes one op or several at once.

    Attributes:
        kind: loop, product, ..., as in the table of the plan.
        nodes: the nodes whose values it computes.
        gradients: the nodes whose backward rules it computes.
        seconds: its own run time; None if it was not measured.
    """

    kind: str
    ops: list[str]
    result: str
    flops: int
    bytes: int
    nodes: list[int]
    gradients: list[int]
    seconds: float | None = None


@dataclass
class Sweep:
    """One pass over a graph: what it computes at each node, as text, and what it costs.

    Example:
        >>> import glassgrad as gg
        >>> drawing = gg.draw(lambda x, y: x * y, 2.0, 3.0, view="sweeps")
        >>> [sweep.cost for sweep in drawing.graph.sweeps][0]
        '1 sweep, 2 products, for all 2 inputs'
    """

    title: str
    cost: str
    values: dict[int, str]
    backward: bool = False


@dataclass
class Graph:
    """Nodes in topological order, and edges.

    Attributes:
        modules: the class of each module, by path.
        columns: for a picture of neurons, the nodes of each layer from top to bottom.
        notes: sentences to print below the picture.
        lines: the same computation as readable source.
        kernels: the kernels of its compiled form; `measured` says how their costs were obtained.

    Example:
        >>> import glassgrad as gg
        >>> a = gg.tensor(2.0, requires_grad=True)
        >>> graph = gg.draw(a * a).graph
        >>> [(node.op, node.value.text) for node in graph.nodes], len(graph.edges)
        ([('', '2'), ('multiply', '4')], 2)
    """

    name: str
    nodes: list[Node]
    edges: list[Edge]
    modules: dict[Path, str] = field(default_factory=dict)
    sweeps: list[Sweep] = field(default_factory=list)
    columns: list[list[int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    measured: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return lists, dictionaries, text and finite numbers, as JSON requires. NaN and infinity become text."""
        found = dataclasses.asdict(self)
        found["modules"] = [{"path": list(path), "kind": kind} for path, kind in self.modules.items()]
        return {key: _sayable(part) for key, part in found.items()}

    def place_leaves(self) -> None:
        """Move parameters and constants into the innermost module that contains all of their readers."""
        readers: dict[int, list[Path]] = {}
        for edge in self.edges:
            readers.setdefault(edge.tail, []).append(self.nodes[edge.head].module)
        for at, node in enumerate(self.nodes):
            if node.kind in {"parameter", "constant"} and at in readers:
                node.module = common(readers[at])


def _sayable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sayable(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_sayable(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def common(paths: list[Path]) -> Path:
    """Return the longest common prefix of the paths."""
    first, last = min(paths), max(paths)
    length = 0
    while length < min(len(first), len(last)) and first[length] == last[length]:
        length += 1
    return first[:length]
