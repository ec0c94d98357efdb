"""``backend="c"``: a step written as C, compiled by the machine's compiler and called in this process."""

from __future__ import annotations

import ctypes
import functools
import subprocess
import tempfile
import threading
from pathlib import Path

import numpy as np

from glassgrad import errors
from glassgrad.base.kept import free_in_children
from glassgrad.compile.c.compiler import compiler
from glassgrad.compile.c.kernels.solid import kind
from glassgrad.compile.c.package import OPTIONS
from glassgrad.compile.c.program import Note, formula
from glassgrad.compile.c.stages import planned
from glassgrad.compile.c.words import TYPES, Names
from glassgrad.compile.c.written import Layout, hints_of, write
from glassgrad.compile.ir.graph import Graph, Instr, Var
from glassgrad.compile.kept import files
from glassgrad.ops.core import Array

FLAGS = (*OPTIONS.split(), "-shared", "-fPIC", "-w")


class CStep:
    """A graph as a compiled C function; same calling convention as the native step.

    Attributes:
        graph: the program.
        inputs, outputs: the types of arguments and results.
        source: the C source.
        peak_bytes: the memory for values between kernels.
    """

    def __init__(self, given: Graph) -> None:
        plan = planned(given)
        self.graph = self.runs = plan.small
        self.memory: int | None = None
        self.inputs = plan.graph.inputs
        count = len(plan.graph.outputs) - len(plan.computed)
        self.outputs = tuple(out for out in plan.graph.outputs[:count] if isinstance(out, Var))
        self._checks = [(self.inputs.index(check.var), check) for check in plan.checks]
        self._computed = plan.computed
        names = Names(["arrays"])
        places = {var: f"a{number}" for number, var in enumerate(self.inputs)}
        results = {out: f"r{number}" for number, out in enumerate(dict.fromkeys(self.outputs))}
        known = {**places, **results}
        layout = Layout({}, results, {}, dict(known), {}, hints_of(plan.graph.instrs, {}), _plain)
        self._constants = {}
        for number, (var, value) in enumerate(plan.graph.constants):
            if value.size > 64:
                self._constants[var] = np.ascontiguousarray(value, var.dtype)
                layout.places[var] = known[var] = f"c{number}"
        made = write(plan, layout, names)
        self._order = list(known)
        sizes = "\n".join(f"enum {{ {name} = {size} }};" for size, name in made.sizes.names.items())
        heads = [
            f"    {TYPES[kind(var.dtype)]} *const {name} = arrays[{number}];\n    (void){name};"
            for number, (var, name) in enumerate(known.items())
        ]
        body = "\n".join(f"    {line}" for line in made.body)
        entry = "int gg_step(void **arrays);\nint gg_step(void **arrays)\n{\n    (void)arrays;\n"
        joined = "\n".join(heads)
        self.source = f"{made.head}\n{sizes}\n{entry}{joined}\n{body}\n    return 0;\n}}\n"
        self.peak_bytes = made.arena
        self._function = loaded(self.source)
        self._results = list(results)
        self._lock = free_in_children(threading.Lock())

    def __call__(self, *arrays: Array) -> tuple[Array, ...]:
        """Run the step: return new arrays for the outputs, and write updates into the arguments."""
        for place, check in self._checks:
            check.verify(arrays[place])
        given = [np.require(array, var.dtype, ["C", "A"]) for array, var in zip(arrays, self.inputs, strict=True)]
        made = {out: np.empty(out.shape, out.dtype) for out in self._results}
        known = {**dict(zip(self.inputs, given, strict=True)), **made, **self._constants}
        addresses = (ctypes.c_void_p * max(len(self._order), 1))(*(known[var].ctypes.data for var in self._order))
        with self._lock:
            status = self._function(addresses)
        if status:
            raise errors.STEP_COMPUTED_INDEX(where=self._computed[0].where if self._computed else "an unknown line")
        for old, new in zip(arrays, given, strict=True):
            if new is not old and isinstance(old, np.ndarray) and old.flags.writeable:
                old[...] = new
        return tuple([made[out] for out in self.outputs])


def _plain(instr: Instr) -> Note:
    return Note("", formula(instr), False)


def loaded(source: str) -> ctypes._NamedFuncPointer:
    """Compile a source, unless that was done before, and return its function `gg_step`.

    Raises:
        CompileError: without a compiler, or if it fails.
    """
    found = compiler()
    if found is None:
        raise errors.NO_C_COMPILER(backend="c")
    key = files.name_of("c", _version(found), *FLAGS, source)
    entry = files.read(key)
    if entry is None:
        code = _compiled(found, source)
        files.write(key, {}, code)
    else:
        code = entry[1]
    with tempfile.TemporaryDirectory(prefix="glassgrad-c-") as room:
        file = Path(room) / "step.so"
        file.write_bytes(code)
        function = ctypes.CDLL(str(file)).gg_step  # the process keeps what it has loaded; the file may go
    function.argtypes, function.restype = [ctypes.c_void_p], ctypes.c_int
    return function


def _compiled(found: str, source: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="glassgrad-c-") as room:
        file, made = Path(room) / "step.c", Path(room) / "step.so"
        file.write_text(source, encoding="utf-8", newline="\n")
        command = [found, *FLAGS, "-o", str(made), str(file), "-lm"]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        if process.returncode:
            raise errors.C_COMPILER_FAILED(compiler=found, reason=process.stderr.strip()[:2000])
        return made.read_bytes()


@functools.cache
def _version(found: str) -> str:
    return subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
