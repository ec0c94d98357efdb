"""The graph of a computation as plain data, whoever recorded it; `as_dict` is what a page or a file gets of it."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Path = tuple[str, ...]

LEAVES = frozenset({"input", "parameter", "constant"})
"""Kinds of nodes that no op made."""

_FEW = 4


@dataclass(frozen=True)
class Numbers:
    """An array in short.

    Attributes:
        text: the numbers themselves where there are few, else empty.
        norm: the Euclidean norm of the finite ones, as are mean, std, low and high.
        nonfinite: how many are NaN or infinite.
        whole: whether they are integers or truth values, of which the range says more than the norm.
    """

    text: str
    norm: float = 0.0
    mean: float = 0.0
    std: float = 0.0
    low: float = 0.0
    high: float = 0.0
    nonfinite: int = 0
    whole: bool = False

    @property
    def short(self) -> str:
        """The numbers, or their norm; of integers the range."""
        if self.whole and not self.text:
            return f"{self.low:g} to {self.high:g}"
        bad = f", {self.nonfinite:,} NaN or inf" if self.nonfinite and not self.text else ""
        return self.text or f"norm {self.norm:.4g}{bad}"

    @property
    def long(self) -> str:
        """The numbers, or what is known of them."""
        if self.text or self.whole:
            return self.short
        return f"{self.short}, mean {self.mean:.4g}, std {self.std:.4g}, from {self.low:.4g} to {self.high:.4g}"


def numbers_of(array: Any) -> Numbers | None:
    """Describe an array; None where there is none, or none of numbers."""
    if not isinstance(array, np.ndarray | np.generic | float | int):
        return None
    array = np.asarray(array)
    if array.dtype.kind not in "fiub":
        return None
    if array.size <= _FEW:
        return Numbers(_written(array.tolist()))
    wide = array.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    if not finite.size:
        return Numbers("", nonfinite=int(array.size))
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers near the largest, the norm is infinite
        return Numbers(
            "",
            norm=float(np.linalg.norm(finite)),
            mean=float(finite.mean()),
            std=float(finite.std()),
            low=float(finite.min()),
            high=float(finite.max()),
            nonfinite=int(array.size - finite.size),
            whole=array.dtype.kind != "f",
        )


def _written(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@dataclass
class Node:
    """A value: what an op made, an input, a parameter or a constant.

    Attributes:
        kind: "input", "parameter", "constant" or "op"; "update" for a value that is written to what it is named after,
            "cut" for an op whose arguments are left out, "neuron".
        op: the op's name; empty where no op made it.
        name: the user's variable, or empty.
        formula: the op with its arguments put in.
        where: the user's file and line, with its text in `source`.
        module: the calls of modules that it was made in, the outermost first.
        root: whether it is a result.
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


@dataclass
class Edge:
    """An argument of an op: from the node at index `tail` to the one at index `head`.

    Attributes:
        local: the local derivative as a formula, or in words.
        number: its value, where both ends are numbers.
        sent: what the backward pass sends along it.
        weight: what the tail is multiplied by, in a picture of neurons.
    """

    tail: int
    head: int
    local: str = ""
    number: float | None = None
    sent: Numbers | None = None
    weight: float | None = None


@dataclass
class Sweep:
    """One pass over a graph: what it computes at each node, as text, and what it costs."""

    title: str
    cost: str
    values: dict[int, str]
    backward: bool = False


@dataclass
class Graph:
    """Nodes, with arguments before what is made of them, and edges.

    Attributes:
        modules: the class of each module, by path.
        columns: where the picture is one of neurons, the nodes of each layer from top to bottom.
        notes: sentences for below the picture.
    """

    name: str
    nodes: list[Node]
    edges: list[Edge]
    modules: dict[Path, str] = field(default_factory=dict)
    sweeps: list[Sweep] = field(default_factory=list)
    columns: list[list[int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return lists, dictionaries, text and finite numbers: what JSON can say. NaN and infinity are text."""
        found = dataclasses.asdict(self)
        found["modules"] = [{"path": list(path), "kind": kind} for path, kind in self.modules.items()]
        return _sayable(found)  # type: ignore[no-any-return]  # a dictionary as before

    def place_leaves(self) -> None:
        """Move parameters and constants into the innermost module that all of their readers are in."""
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
    """Return the longest beginning that paths share."""
    first, last = min(paths), max(paths)
    length = 0
    while length < min(len(first), len(last)) and first[length] == last[length]:
        length += 1
    return first[:length]
