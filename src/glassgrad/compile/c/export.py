"""`export_c`: a compiled function as a folder of C, and `load_c`: the state that the written program stored."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.compile.c import draws, package, written
from glassgrad.compile.c.helpers import Helpers
from glassgrad.compile.c.kernels.solid import kind
from glassgrad.compile.c.notes import note_of
from glassgrad.compile.c.package import Field
from glassgrad.compile.c.program import wrapped
from glassgrad.compile.c.stages import Planned, planned
from glassgrad.compile.c.words import TYPES, Names
from glassgrad.compile.front.calls.captured import Capture
from glassgrad.compile.ir.graph import Graph, Var
from glassgrad.compile.ir.passes import eliminate_dead
from glassgrad.compile.source.listing import input_names_of, listing_of
from glassgrad.engine.random import Generator
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.writes import Writer
from glassgrad.ops.core import Array


def export(captured: Capture, folder: str | os.PathLike[str], leaves: Sequence[Any] | None) -> list[Path]:
    """Write a traced function as C; return the files.

    Args:
        captured: the trace.
        folder: made if it does not exist.
        leaves: the leaves of the arguments of a call, for the example batch; None without one.

    Raises:
        CompileError: for what C cannot say, before anything is written.
        FileError: if a file cannot be written.
    """
    files = Package(captured, leaves).files()
    room = Path(folder)
    try:
        room.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (room / name).write_bytes(content)
    except OSError as error:
        raise errors.C_NOT_WRITTEN(folder=room, reason=error.strerror or error) from None
    return [room / name for name in files]


class Package:
    """The files of one exported function."""

    def __init__(self, captured: Capture, leaves: Sequence[Any] | None) -> None:
        self.captured = captured
        self.leaves = leaves
        _refuse(captured)
        self.graph = without_kept_gradients(captured)
        self.planned: Planned = planned(self.graph)
        self.names = Names()
        self.named, self.origins = _names_of(captured, self.graph)
        self.arguments = {var: self._take(var) for var in self.graph.inputs[: len(captured.arguments)]}
        self.generators = self._generators()
        self.fields = self._fields()

    def _take(self, var: Var) -> str:
        return self.names.take(self.named.get(var) or var.name or "argument")

    # --- what lasts -------------------------------------------------------------------------------------

    def _generators(self) -> dict[int, tuple[str, Generator]]:
        found: dict[int, tuple[str, Generator]] = {}
        for feed in self.captured.feeds:
            if feed.drawn is not None and id(feed.drawn.generator) not in found:
                name = self.names.take("random")
                found[id(feed.drawn.generator)] = (name, feed.drawn.generator)
        return found

    def _fields(self) -> dict[Var, Field]:
        """Return the members of the struct that are arrays: state, numbers, large constants."""
        found: dict[Var, Field] = {}
        inputs = set(self.graph.inputs)
        for one in self.captured.state:
            if one.var in inputs:
                value = one.tensor.array
                note = package.shape_note(value) + (f", {one.path}" if one.path else "")
                found[one.var] = Field(
                    self._take(one.var), one.path or one.var.name or "", kind(one.var.dtype), value, note
                )
        for feed in self.captured.feeds:
            if feed.pure and feed.var in inputs and feed.var is not None:
                value = np.asarray(feed.draw(), np.float64)
                name = self._take(feed.var)
                found[feed.var] = Field(name, f"number.{name}", "f64", value, feed.label, many=False)
        for var, array in self.planned.graph.constants:
            if array.size > written.MOST_WRITTEN:
                name = self.names.take(var.name or "constant")
                value = np.ascontiguousarray(array, var.dtype)
                found[var] = Field(name, f"constant.{name}", kind(var.dtype), value, package.shape_note(value))
        return _with_distinct_keys(found)

    def _streams(self) -> list[Field]:
        """Return the generators as members, for the file of weights."""
        return [
            Field(name, f"generator.{name}", "u64", draws.words_of(generator.get_state()), many=False)
            for name, generator in self.generators.values()
        ]

    # --- the files -------------------------------------------------------------------------------------

    def files(self) -> dict[str, bytes]:
        """Return the contents of all files."""
        results = self._results()
        layout = written.Layout(
            arguments=self.arguments,
            results=results,
            state={var: one.name for var, one in self.fields.items()},
            places={**self.arguments, **results, **{var: one.place for var, one in self.fields.items()}},
            drawn=self._drawn(),
            hints=written.hints_of(self.planned.graph.instrs, self.origins),
            describe=functools.partial(note_of, self.captured.nodes),
        )
        made = written.write(self.planned, layout, self.names)
        stored = [*self.fields.values(), *self._streams()]
        title = f"The compiled function {self.graph.name}, written out in C by glassgrad."
        run = f"{self._run_comment()}\n{self._signature(results)};"
        source = "\n".join(
            [
                f"/* {title} */",
                '#include "step.h"',
                "",
                made.head,
                "/* --- the step " + "-" * 90 + " */\n",
                f"{self._signature(results)}\n{{",
                *(f"    {line}" if line else "" for line in made.body),
                *self._unused(made.body, results),
                "    return 0;\n}\n",
                package.storage(stored),
            ]
        )
        if made.arena:
            check = '_Static_assert(sizeof arena == STEP_ARENA_BYTES, "the arena has the size that step.h states");'
            source = source.replace("} arena;\n", f"}} arena;\n{check}\n", 1)
        members = [one.declaration(made.sizes.text(max(one.value.size, 1))) for one in self.fields.values()]
        members += [f"    struct gg_generator {name};" for name, _ in self.generators.values()]
        before = draws.STRUCT + "\n" if self.generators else ""
        room = 2 * len(package.weights_header(stored)) + 1024
        members = members or ["    char nothing;"]
        header = package.header_text(title, made.sizes.names, made.arena, members, run, before, room)
        example = [
            Field(name, name, kind(var.dtype), self._example(at, var))
            for at, (var, name) in enumerate(self.arguments.items())
        ]
        shown = [Field(name, name, kind(var.dtype), np.zeros(var.shape, var.dtype)) for var, name in results.items()]
        loss = next((one for one in shown if one.value.size == 1), None)
        total = sum(one.value.nbytes for one in stored)
        texts = {
            "step.h": header,
            "step.c": source,
            "main.c": package.main_text(example, shown, loss),
            "Makefile": package.MAKEFILE,
            "README": package.readme_text(title, total, made.arena, source.count("\n")),
        }
        files = {name: text.encode() for name, text in texts.items()}
        return {**files, "step.weights": package.weights_file(stored), "step.example": package.weights_file(example)}

    def _results(self) -> dict[Var, str]:
        """Return the outputs with their names; one that appears twice, or is an input, gets an array of its own."""
        found: dict[Var, str] = {}
        hints = written.hints_of(self.planned.graph.instrs, self.origins)
        count = len(self.planned.graph.outputs) - len(self.planned.computed)
        known = {*self.planned.graph.inputs, *(var for var, _ in self.planned.graph.constants)}
        for at, out in enumerate(self.planned.graph.outputs[:count]):
            if isinstance(out, Var):
                own = replace(out, id=-1 - at) if out in found or out in known else out
                found[own] = self.names.take(hints.get(out) or out.name or "result")
        return found

    def _drawn(self) -> dict[Var, Callable[[tuple[str, str], Helpers], str]]:
        return {
            feed.var: functools.partial(
                draws.draw_line, feed.drawn, f"&s->{self.generators[id(feed.drawn.generator)][0]}", feed.var
            )
            for feed in self.captured.feeds
            if feed.drawn is not None and feed.var is not None
        }

    def _signature(self, results: Mapping[Var, str]) -> str:
        parts = ["struct step *s"]
        parts += [
            f"{'' if self._is_written(var) else 'const '}{TYPES[kind(var.dtype)]} *{name}"
            for var, name in self.arguments.items()
        ]
        parts += [f"{TYPES[kind(var.dtype)]} *{name}" for var, name in results.items()]
        return wrapped("int step_run(", parts)

    def _is_written(self, var: Var) -> bool:
        return any(target is var for target, _ in self.graph.updates)

    def _unused(self, body: Sequence[str], results: Mapping[Var, str]) -> list[str]:
        text = "\n".join(body)
        names = ["s", *self.arguments.values(), *results.values()]
        return [f"    (void){name};" for name in names if not re.search(rf"\b{name}\b", text)]

    def _run_comment(self) -> str:
        names = {**self.arguments, **{var: one.name for var, one in self.fields.items()}}
        checks = {
            self.planned.graph.inputs.index(check.var) + 1: names.get(check.var, "") for check in self.planned.checks
        }
        return package.run_comment(sorted(checks.items()), bool(self.planned.computed))

    def _example(self, number: int, var: Var) -> Array:
        if self.leaves is None:
            return np.zeros(var.shape, var.dtype)
        leaf = self.leaves[self.captured.arguments[number]]
        value = leaf.array if isinstance(leaf, Tensor) else leaf
        return np.ascontiguousarray(np.asarray(value, var.dtype)).reshape(var.shape)


def _with_distinct_keys(fields: dict[Var, Field]) -> dict[Var, Field]:
    seen: set[str] = set()
    found = {}
    for var, one in fields.items():
        key = one.key if one.key and one.key not in seen else one.name
        seen.add(key)
        found[var] = replace(one, key=key)
    return found


def _names_of(captured: Capture, graph: Graph) -> tuple[Mapping[Var, str], Mapping[int, str]]:
    """Return names of inputs, and those of values by the identity of their origins."""
    try:
        listing = listing_of(captured)
    except errors.CompileError:  # an op without NumPy text has names all the same
        return input_names_of(graph, graph.inputs), {}
    return listing.inputs, listing.names


def _refuse(captured: Capture) -> None:
    """Refuse Python code that has to run again in every call."""
    if captured.boundary is not None or captured.argument_grads:
        raise errors.C_OPEN_RESULT(name=captured.graph.name)
    for feed in captured.feeds:
        if feed.var is None or not (feed.pure or feed.drawn is not None):
            raise errors.C_PYTHON_CODE(what=feed.label)
    if captured.after:
        raise errors.C_PYTHON_CODE(what=getattr(captured.after[0], "__qualname__", "a call"))


def without_kept_gradients(captured: Capture) -> Graph:
    """Return the graph without the gradients that stay on the leaves after a call, if nothing reads them."""
    graph = captured.unwatched
    read = {var for instr in graph.instrs for var in instr.reads()} | {
        out for out in graph.outputs if isinstance(out, Var)
    }
    slots = {one.var for one in captured.state if one.path.endswith(".grad") and one.var not in read}
    kept = replace(
        graph,
        inputs=tuple(var for var in graph.inputs if var not in slots),
        updates=tuple(pair for pair in graph.updates if pair[0] not in slots),
    )
    kept = eliminate_dead(kept)
    read = {var for instr in kept.instrs for var in instr.reads()} | set(kept.results())
    read |= {target for target, _ in kept.updates} | set(kept.inputs[: len(captured.arguments)])
    return replace(kept, inputs=tuple(var for var in kept.inputs if var in read))


def load_state(captured: Capture, path: str | os.PathLike[str]) -> None:
    """Put the state that a written program stored back into the tensors of a traced function.

    Raises:
        ArgumentError: if the file lacks an array, or has it in another shape or dtype.
    """
    found = package.read_weights(path)
    made = Package(captured, None)
    tensors = {one.var: one.tensor for one in captured.state}
    for var, one in made.fields.items():
        if var not in tensors:
            continue
        new = found.get(one.key)
        if new is None or new.shape != var.shape or new.dtype != var.dtype:
            raise errors.C_STATE(key=one.key, path=path, expected=package.shape_note(one.value))
    for var, one in made.fields.items():
        if var in tensors:
            tensors[var].array[...] = found[one.key]
            Writer().wrote([tensors[var].array])
    for name, generator in made.generators.values():
        generator.set_state(draws.state_of(found[f"generator.{name}"].tolist()))
