"""The traced program: a flat, frozen, typed, printable list of primitive applications.

A `Graph` owns nothing but its captured constants. Values are `Var`s, each defined once: as an input, a
constant, or an output of one `Instr`. Graphs are immutable; passes build new ones.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from glassgrad.ops.core import PRIMITIVES, Array
from glassgrad.ops.narrow import NARROW

Scalar = bool | int | float | complex
Shape = tuple[int, ...]
DType = np.dtype[Any]
Params = Mapping[str, Any]  # of a primitive, by name


@dataclass(frozen=True, slots=True, eq=False)
class Var:
    """One array of the program: its shape, dtype and, if known, the user's name for it."""

    id: int
    shape: Shape
    dtype: DType
    name: str | None = None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __repr__(self) -> str:
        return f"{self.name or ''}%{self.id}: {type_text(self)}"


Operand = Var | Scalar


@dataclass(frozen=True, slots=True, eq=False)
class Instr:
    """One primitive applied: op name, operands (Vars or Python numbers), static parameters, results.

    `where` is the provenance of the user's line, kept for messages and never part of the hash.
    """

    op: str
    inputs: tuple[Operand, ...]
    outputs: tuple[Var, ...]
    params: Params = field(default_factory=dict)
    where: Any = None
    _reads: tuple[Var, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # Cached, since every pass reads them more than once.
        object.__setattr__(self, "_reads", tuple([operand for operand in self.inputs if isinstance(operand, Var)]))

    @property
    def output(self) -> Var:
        """The only result."""
        return self.outputs[0]

    @property
    def is_view(self) -> bool:
        """Whether the result may share memory with the first operand; index arrays make copies."""
        return len(self.inputs) == 1 and PRIMITIVES[self.op].is_view

    def reads(self) -> tuple[Var, ...]:
        """Return the operands that are Vars."""
        return self._reads


@dataclass(frozen=True, eq=False)
class Graph:
    """A program.

    Attributes:
        inputs: the arguments of a call, in order.
        constants: arrays captured at trace time, each with its Var.
        instrs: the instructions, every operand defined before its use.
        outputs: the results of a call.
        updates: pairs (input, value): after the call the array behind `input` holds `value`.
        name: for printing and for the emitted code.
    """

    inputs: tuple[Var, ...]
    instrs: tuple[Instr, ...]
    outputs: tuple[Operand, ...]
    constants: tuple[tuple[Var, Array], ...] = ()
    updates: tuple[tuple[Var, Var], ...] = ()
    name: str = "step"

    def producers(self) -> dict[Var, Instr]:
        """Map every computed Var to the instruction that computes it."""
        return {output: instr for instr in self.instrs for output in instr.outputs}

    def users(self) -> dict[Var, list[Instr]]:
        """Map every Var to the instructions that read it, in order, each listed once per instruction."""
        found: dict[Var, list[Instr]] = {}
        for instr in self.instrs:
            for operand in dict.fromkeys(instr.reads()):
                found.setdefault(operand, []).append(instr)
        return found

    def results(self) -> list[Var]:
        """Every Var that must be available at the end: outputs, then values of updates."""
        named = [out for out in self.outputs if isinstance(out, Var)]
        return [*named, *(value for _, value in self.updates)]

    def __str__(self) -> str:
        return format_graph(self)

    def _repr_html_(self) -> str:
        from glassgrad.engine.reports import notebook

        return notebook.text(str(self))

    def key(self) -> str:
        """Return a hash of the structure: equal for two graphs that compute the same program."""
        return structural_hash(self)


class GraphBuilder:
    """Collects instructions and creates Vars: tracing, passes and tests build graphs with it."""

    def __init__(self, name: str = "step") -> None:
        self.name = name
        self.inputs: list[Var] = []
        self.constants: list[tuple[Var, Array]] = []
        self.instrs: list[Instr] = []
        self._next = 0

    def var(self, shape: Sequence[int], dtype: DTypeLike, name: str | None = None) -> Var:
        """Return a new Var that nothing defines yet."""
        self._next += 1
        return Var(self._next - 1, tuple(map(int, shape)), np.dtype(dtype), name)

    def input(self, shape: Sequence[int], dtype: DTypeLike = np.float32, name: str | None = None) -> Var:
        """Append an input."""
        self.inputs.append(self.var(shape, dtype, name))
        return self.inputs[-1]

    def constant(self, value: Array, name: str | None = None) -> Var:
        """Capture an array."""
        value = np.asarray(value)
        var = self.var(value.shape, value.dtype, name)
        self.constants.append((var, value))
        return var

    def apply(
        self,
        op: str,
        inputs: Sequence[Operand],
        shape: Sequence[int],
        dtype: DTypeLike,
        params: Params | None = None,
        name: str | None = None,
        where: object = None,
    ) -> Var:
        """Append an instruction with one result of the given shape and dtype."""
        output = self.var(shape, dtype, name)
        self.instrs.append(Instr(op, tuple(inputs), (output,), dict(params or {}), where))
        return output

    def build(self, outputs: Sequence[Operand], updates: Sequence[tuple[Var, Var]] = ()) -> Graph:
        """Return the finished graph."""
        return Graph(
            tuple(self.inputs), tuple(self.instrs), tuple(outputs), tuple(self.constants), tuple(updates), self.name
        )


# --- printing -----------------------------------------------------------------------------------


def dtype_text(dtype: DType) -> str:
    """Return the short name of a dtype: f32, i64, bool."""
    if dtype.kind == "b":
        return "bool"
    if dtype.kind == NARROW:
        return "bf16"
    return f"{dtype.kind}{dtype.itemsize * 8}"


def type_text(var: Var) -> str:
    """Return dtype and shape: ``f32[32, 200]``."""
    return f"{dtype_text(var.dtype)}[{', '.join(map(str, var.shape))}]"


def display_names(graph: Graph) -> dict[Var, str]:
    """Give every Var a name that is unique in the graph: the user's, numbered on repetition, or v0, v1, ..."""
    names: dict[Var, str] = {}
    taken: Counter[str] = Counter()
    reserved = {var.name for var in all_vars(graph) if var.name}
    anonymous = 0
    for var in all_vars(graph):
        if var.name:
            count = taken[var.name]
            taken[var.name] += 1
            name = var.name if not count else f"{var.name}_{count + 1}"
            while count and name in reserved:
                name += "_"
        else:
            name = f"v{anonymous}"
            anonymous += 1
            while name in reserved:
                name = "_" + name
        names[var] = name
    return names


def all_vars(graph: Graph) -> Iterable[Var]:
    """Iterate over everything that is defined."""
    yield from graph.inputs
    yield from (var for var, _ in graph.constants)
    for instr in graph.instrs:
        yield from instr.outputs


def value_text(value: object) -> str:
    """Return a parameter or a number as it prints: dtypes short, arrays by shape, the rest by repr."""
    if isinstance(value, np.dtype):
        return dtype_text(value)
    if isinstance(value, np.ndarray):
        return f"array<{dtype_text(value.dtype)}{list(value.shape)}>"
    if isinstance(value, tuple):
        inner = ", ".join(value_text(item) for item in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, slice):
        parts = ["" if part is None else str(part) for part in (value.start, value.stop)]
        return ":".join(parts) + (f":{value.step}" if value.step not in (None, 1) else "")
    if isinstance(value, np.generic):
        return repr(value.item())
    return repr(value) if not callable(value) else getattr(value, "__name__", type(value).__name__)


def format_graph(graph: Graph) -> str:
    """Return the program as text, one instruction per line, with types; equal graphs print equally."""
    names = display_names(graph)

    def operand(value: Operand) -> str:
        return names[value] if isinstance(value, Var) else value_text(value)

    lines = [f"graph {graph.name}("]
    lines += [f"    {names[var]}: {type_text(var)}," for var in graph.inputs]
    lines += [") {"]
    lines += [f"    {names[var]}: {type_text(var)} = constant" for var, _ in graph.constants]
    for instr in graph.instrs:
        results = ", ".join(f"{names[out]}: {type_text(out)}" for out in instr.outputs)
        arguments = [operand(value) for value in instr.inputs]
        arguments += [f"{key}={value_text(value)}" for key, value in sorted(instr.params.items())]
        lines.append(f"    {results} = {instr.op}({', '.join(arguments)})")
    lines += [f"    {names[target]} <- {names[value]}" for target, value in graph.updates]
    lines += [f"    return {', '.join(operand(out) for out in graph.outputs)}".rstrip(), "}"]
    return "\n".join(lines)


# --- hashing ------------------------------------------------------------------------------------


def structural_hash(graph: Graph) -> str:
    """Hash ops, parameters, types and wiring, but not names, provenance or the numbering of Vars."""
    number = {var: f"%{index}" for index, var in enumerate(all_vars(graph))}
    types = _Types()
    lines: list[str] = []

    def feed(*parts: str) -> None:
        lines.append("\x1f".join(parts))

    def operand(value: Operand) -> str:
        return number[value] if isinstance(value, Var) else f"{type(value).__name__} {value!r}"

    for var in graph.inputs:
        feed("input", types[var.shape, var.dtype])
    for var, value in graph.constants:
        feed("constant", types[var.shape, var.dtype], hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest())
    for instr in graph.instrs:
        params = ";".join([f"{key}={_param_key(value)}" for key, value in sorted(instr.params.items())])
        feed(instr.op, *map(operand, instr.inputs), params, *[types[out.shape, out.dtype] for out in instr.outputs])
    feed("return", *map(operand, graph.outputs))
    for target, value in graph.updates:
        feed("update", number[target][1:], number[value][1:])
    return hashlib.sha256("".join([f"{line}\x1e" for line in lines]).encode()).hexdigest()


class _Types(dict[tuple[tuple[int, ...], DType], str]):
    """Shape and dtype -> their text: a graph has many Vars of few types."""

    def __missing__(self, key: tuple[tuple[int, ...], DType]) -> str:
        made = self[key] = type_text(Var(0, *key))
        return made


def _param_key(value: object) -> str:
    kind = type(value)
    if kind is int or kind is bool:
        return f"{kind.__name__}:{value!r}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    if isinstance(value, tuple):
        return f"({','.join([_param_key(part) for part in value])})"
    if callable(value) and not isinstance(value, type):
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', id(value))}"
    return f"{type(value).__name__}:{value!r}"
