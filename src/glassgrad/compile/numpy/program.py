"""The NumPy emitter: a graph as a Python program, for platforms without native code.

There is one line per instruction, but short values that are used once are inlined. All new values are computed before
any input is written to, so a program that fails leaves its inputs unchanged.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from typing import Any

import numpy as np

from glassgrad.base import provenance
from glassgrad.base.kept import free_in_children
from glassgrad.compile.ir.generated import executed
from glassgrad.compile.ir.graph import Graph, Instr, Operand, Var, display_names
from glassgrad.compile.ir.passes.means import with_exact_means
from glassgrad.compile.numpy import text
from glassgrad.compile.numpy.memory import peak
from glassgrad.compile.numpy.templates import TEMPLATES
from glassgrad.compile.numpy.text import ATOM, Text
from glassgrad.compile.numpy.text_space import TextSpace, formula, is_short, term, written
from glassgrad.compile.plan.budget import within
from glassgrad.compile.plan.indexing.bounds import IndexCheck
from glassgrad.compile.plan.indexing.checks import find_checks
from glassgrad.compile.plan.recompute import recomputed
from glassgrad.ops.core import PRIMITIVES, Array
from glassgrad.ops.narrow import bare

_numbers = itertools.count(1)
# Ops that call eager mode's kernels although they have a short text: either NumPy's version branches on every element,
# which the processor mispredicts, or the text is correct only for floats.
_BY_KERNEL = frozenset({"heaviside", "where"})
# Ops with a text up to this width and a single use are inlined.
_INLINE_WIDTH = 60
# Values of at least this many bytes are deleted after their last use; with a memory limit, all are.
_LARGE = 1 << 16


class NumpyStep:
    """A graph as a Python function over NumPy arrays; same calling convention as the native step.

    Attributes:
        graph: the program.
        runs: the program that runs, with recomputation for checkpoints and for a memory limit.
        memory: the memory limit in bytes, or None.
        peak_bytes: the peak memory of values between its lines.
        inputs, outputs: the types of arguments and results.
        source: the source of the program.
    """

    def __init__(self, graph: Graph, memory: int | None = None) -> None:
        self.graph = graph
        self.memory = memory
        self.inputs = graph.inputs
        self.outputs = tuple(out for out in graph.outputs if isinstance(out, Var))
        # Lines run in order and dropped values are deleted, so checkpoints need nothing else.
        self.runs = recomputed(with_exact_means(graph))
        if memory is not None and peak(self.runs) > memory:
            self.runs = min(within(graph, memory, peak), self.runs, key=peak)
        self.peak_bytes = peak(self.runs)
        writer = Writer(self.runs, _LARGE if memory is None else 1)
        self.source = writer.source()
        filename = f"{provenance.PACKAGE}<step {next(_numbers)}>"
        self._function = executed(self.source, filename, {**writer.values, **writer.called}, shown=True)["step"]
        # NumPy raises for an index that is too large, but accepts negative ones that count from the end.
        self._checks = [(self.inputs.index(check.var), check) for check in find_checks(graph)[0]]
        self._lock = free_in_children(threading.Lock())

    def __call__(self, *arrays: Array) -> tuple[Array, ...]:
        """Run the step: return new arrays for the outputs, and write updates into the arguments."""
        for place, check in self._checks:
            check.verify(arrays[place])
        with self._lock:
            results = self._function(*arrays)
        return tuple([np.asarray(result) for result in results])


class Writer:
    """Writes the program.

    Attributes:
        values: constants, by their names in the program.
        called: functions of the registry that the program calls because they have no NumPy text.
        large: values of at least this many bytes are deleted after their last use.
    """

    def __init__(self, graph: Graph, large: int = _LARGE) -> None:
        self.graph = graph
        self.large = large
        self.names = {var: Text.token(f"v{number}") for number, var in enumerate(display_names(graph))}
        self.uses = Counter(operand for instr in graph.instrs for operand in instr.reads())
        self.uses.update(graph.results())
        self.computed = [index for index in find_checks(graph)[1] if index.low == 0]
        self.uses.update({index.var: 2 for index in self.computed})  # counted twice, so that they get their own line
        self.position = {instr: number for number, instr in enumerate(graph.instrs)}
        self.inlined: dict[Var, Text] = {}
        self.values: dict[str, Any] = {}
        self.called: dict[str, Any] = {}

    def source(self) -> str:
        """Return the whole program."""
        lines = self._body()
        arguments = text.listed(self.names[var] for var in self.graph.inputs).code
        for var, value in self.graph.constants:
            self.values[self.names[var].code] = value
        head = ["import math", "", "import numpy as np", "", ""]
        return "\n".join([*head, f"def step({arguments}):", *(f"    {line}" for line in lines), ""])

    def _body(self) -> list[str]:
        lines: list[Text] = []
        users = self.graph.users()
        for instr in self.graph.instrs:
            result = self.write(instr)
            out = instr.outputs[0]
            if len(instr.outputs) == 1 and self._goes_inline(out, result, users.get(out, [])):
                self.inlined[out] = result
                continue
            targets = text.listed(self.names[var] for var in instr.outputs)
            lines.append(Text(targets, " = ", result))
        writes = [Text(self.names[target], "[...] = ", self.operand(value)) for target, value in self.graph.updates]
        if writes:
            # Ctrl-C between two writes must not leave a partial step: all values are computed, so repeat all writes.
            again = [Text("    ", line) for line in writes]
            writes = [Text("try:"), *again, Text("except KeyboardInterrupt:"), *again, Text("    raise")]
        outputs = [self.operand(out) for out in self.graph.outputs if isinstance(out, Var)]
        returned = Text("return (", text.listed(outputs), "," if len(outputs) == 1 else "", ")")
        end = [*self._index_checks(), *writes, returned]
        return [*self._letting_go(lines, end), *(line.code for line in end)]

    def _index_checks(self) -> list[Text]:
        """Return calls, to precede the writes, that raise for computed indices which NumPy would count from the end."""
        lines = []
        for number, index in enumerate(self.computed):
            name = f"check_{number}"
            self.called[name] = IndexCheck(
                index.var, index.extent, index.low, select=np.asarray, where=index.where
            ).verify
            lines.append(text.call(name, self.operand(index.var)))
        return lines

    def _letting_go(self, lines: list[Text], end: list[Text]) -> list[str]:
        """Return `lines` with large values deleted after their last use, unless that is at the end.

        The next value can then reuse memory that is mapped and still in the cache.
        """
        outputs = [out for instr in self.graph.instrs for out in instr.outputs if out.nbytes >= self.large]
        large = {self.names[out].code for out in outputs}
        last = {name: at for at, line in enumerate([*lines, *end]) for name in line.tokens if name in large}
        gone: list[list[Text]] = [[] for _ in [*lines, *end]]
        for name, at in last.items():
            gone[at].append(Text.token(name))
        pairs = zip(lines, gone, strict=False)
        return [
            part.code
            for line, names in pairs
            for part in ([line, Text("del ", text.listed(names))] if names else [line])
        ]

    def _goes_inline(self, out: Var, result: Text, users: list[Instr]) -> bool:
        return (
            self.uses[out] == 1 and len(users) == 1 and len(result.code) <= _INLINE_WIDTH and result.level >= ATOM - 7
        )

    def operand(self, operand: Operand) -> Text:
        """Return an operand as text."""
        if not isinstance(operand, Var):
            return text.number(operand)
        return self.inlined.get(operand) or self.names[operand]

    def write(self, instr: Instr) -> Text:
        """Return an instruction as an expression."""
        operands = [self.operand(operand) for operand in instr.inputs]
        if instr.op in TEMPLATES:
            return TEMPLATES[instr.op](instr, operands)
        prim = PRIMITIVES[instr.op]
        # A NumPy function that eager mode replaces is slow, or correct only for some dtypes.
        own = isinstance(prim.forward, str) and bare(prim) is not getattr(np, prim.forward)
        found = formula(prim, list(map(term, operands)), instr.params, TextSpace())
        if found is not None and is_short(found) and not own and instr.op not in _BY_KERNEL:
            return written(found)
        name = f"op_{instr.op}"
        self.called[name] = prim if prim.saves_results else bare(prim)
        options = {}
        for key, value in instr.params.items():
            given = f"{name}_{key}_{len(self.values)}"
            self.values[given] = value
            options[key] = Text(given)
        return text.call(name, *operands, **options)
