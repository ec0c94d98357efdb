"""A traced program as one native function: eight samples at a time, forward and backward in one pass.

Values and cotangents of a block of samples stay in a scratch area that fits the first-level cache; steps that
do not vary between samples are computed once. The emitted text is already in its final form, so it needs no optimiser
and compiling takes time proportional to its length (about 20 µs per step).
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from glassgrad.scalar.program import Instruction, Program
from glassgrad.scalar.rules import RULES

LANES = 8  # samples per block: one AVX-512 register of doubles, or two of AVX2
VECTOR = f"<{LANES} x double>"
BLOCK_LINES = 200  # instruction selection is quadratic in the length of a basic block
OPTIMISE_BELOW = 5_000  # lines; beyond, LLVM's optimising back end takes seconds to gain a factor of two
MATH = {"exp": 1, "log": 1, "sin": 1, "cos": 1, "tanh": 1, "pow": 2}
_COMPARE = {"lt": "olt", "gt": "ogt", "eq": "oeq"}


class _Number:
    """A register. Operators write instructions."""

    __slots__ = ("emitter", "name")

    def __init__(self, emitter: _Emitter, name: str) -> None:
        self.emitter, self.name = emitter, name

    def __str__(self) -> str:
        return self.name

    def __add__(self, other: _Number) -> _Number:
        return self.emitter.typed("fadd contract", self, other)

    def __sub__(self, other: _Number) -> _Number:
        return self.emitter.typed("fsub contract", self, other)

    def __mul__(self, other: _Number) -> _Number:
        return self.emitter.typed("fmul contract", self, other)

    def __truediv__(self, other: _Number) -> _Number:
        return self.emitter.typed("fdiv", self, other)

    def __neg__(self) -> _Number:
        return self.emitter.typed("fneg", self)


@dataclass
class _Emitter:
    """The `m` of the rules, emitting code for `type`: a block of samples or a single number."""

    type: str = "double"
    lines: list[str] = field(default_factory=list)
    count: int = 0
    since_label: int = 0

    def write(self, text: str) -> None:
        self.lines.append(f"  {text}")
        self.since_label += 1

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.since_label = 0

    def breathe(self) -> None:
        """Start a new basic block if this one has grown long."""
        if self.since_label > BLOCK_LINES:
            self.count += 1
            self.write(f"br label %part{self.count}")
            self.start(f"part{self.count}")

    def new(self, text: str) -> _Number:
        self.count += 1
        self.write(f"%t{self.count} = {text}")
        return _Number(self, f"%t{self.count}")

    def typed(self, operation: str, *args: _Number) -> _Number:
        return self.new(f"{operation} {self.type} {', '.join(map(str, args))}")

    def constant(self, number: float) -> _Number:
        (bits,) = struct.unpack("<Q", struct.pack("<d", number))
        if self.type == "double":
            return _Number(self, f"0x{bits:016X}")
        return _Number(self, f"<{', '.join([f'double 0x{bits:016X}'] * LANES)}>")

    def call(self, name: str, *args: _Number) -> _Number:
        suffix = f"v{LANES}f64" if self.type == VECTOR else "f64"
        return self.new(f"call {self.type} @{name}.{suffix}({', '.join(f'{self.type} {arg}' for arg in args)})")

    def __getattr__(self, name: str) -> Callable[..., _Number]:
        if name not in MATH:
            raise AttributeError(name)
        return lambda *args: self.call(f"map.{name}", *args)

    def abs(self, x: _Number) -> _Number:
        return self.call("llvm.fabs", x)

    def fma(self, a: _Number, b: _Number, c: _Number) -> _Number:
        self.breathe()
        return self.call("llvm.fmuladd", a, b, c)

    def where(self, compare: str, a: _Number, b: _Number, x: _Number, y: _Number) -> _Number:
        test = self.typed(f"fcmp {_COMPARE[compare]}", a, b)
        condition = f"<{LANES} x i1>" if self.type == VECTOR else "i1"
        return self.new(f"select {condition} {test}, {self.type} {x}, {self.type} {y}")

    def load(self, type_: str, area: str, index: int | str) -> _Number:
        address = self.new(f"getelementptr {type_}, ptr %{area}, i64 {index}")
        return self.new(f"load {type_}, ptr {address}, align 8")

    def store(self, type_: str, value: _Number, area: str, index: int | str) -> None:
        address = self.new(f"getelementptr {type_}, ptr %{area}, i64 {index}")
        self.write(f"store {type_} {value}, ptr {address}, align 8")

    def splat(self, number: _Number) -> _Number:
        first = self.new(f"insertelement {VECTOR} undef, double {number}, i32 0")
        return self.new(f"shufflevector {VECTOR} {first}, {VECTOR} undef, <{LANES} x i32> zeroinitializer")


STEP = f"""
define void @step(i64 %blocks, i64 %stride, ptr %columns, ptr %leaves, ptr %seeds, ptr %out, ptr %grads,
                  ptr %scratch, i1 %backward) {{
entry:
  %values = getelementptr double, ptr %scratch, i64 0
  %cots = getelementptr double, ptr %scratch, i64 COTS_AT
  %sums = getelementptr double, ptr %scratch, i64 SUMS_AT
  %once = getelementptr double, ptr %scratch, i64 ONCE_AT
  %once_cots = getelementptr double, ptr %scratch, i64 ONCE_COTS_AT
  call void @llvm.memset.p0.i64(ptr %sums, i8 0, i64 SUMS_BYTES, i1 false)
  call void @fixed_forward(ptr %leaves, ptr %once)
  br label %loop
loop:
  %block = phi i64 [0, %entry], [%next, %loop]
  %sample = mul i64 %block, {LANES}
  %columns_here = getelementptr double, ptr %columns, i64 %sample
  %seeds_here = getelementptr double, ptr %seeds, i64 %sample
  %out_here = getelementptr double, ptr %out, i64 %sample
  call void @block(ptr %columns_here, i64 %stride, ptr %once, ptr %values, ptr %cots, ptr %sums,
                   ptr %seeds_here, ptr %out_here, i1 %backward)
  %next = add i64 %block, 1
  %more = icmp slt i64 %next, %blocks
  br i1 %more, label %loop, label %end
end:
  br i1 %backward, label %add_up, label %done
add_up:
  %k = phi i64 [0, %end], [%k_next, %add_up]
  %from = getelementptr {VECTOR}, ptr %sums, i64 %k
  %partial = load {VECTOR}, ptr %from, align 8
  %sum = call reassoc double @llvm.vector.reduce.fadd.v{LANES}f64(double 0.0, {VECTOR} %partial)
  %to = getelementptr double, ptr %once_cots, i64 %k
  store double %sum, ptr %to, align 8
  %k_next = add i64 %k, 1
  %k_more = icmp slt i64 %k_next, FIXED
  br i1 %k_more, label %add_up, label %last
last:
  call void @fixed_backward(ptr %once, ptr %once_cots, ptr %grads)
  br label %done
done:
  ret void
}}
"""


class _Writer:
    """Writes the three parts of the function and the loop.

    Scratch memory has five areas, each with one entry per step. `values` and `cots` are blocks of samples and their
    cotangents. For steps that do not vary between samples, `sums` are running cotangents, `once` the values and
    `once_cots` the final cotangents.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.steps = program.instructions
        self.last = len(self.steps) - 1
        varying = [i for i, step in enumerate(self.steps) if step.varying]
        self.fixed = [i for i, step in enumerate(self.steps) if not step.varying]
        self.place = {i: k for group in (varying, self.fixed) for k, i in enumerate(group)}
        sizes = (LANES * len(varying), LANES * len(varying), LANES * len(self.fixed), len(self.fixed), len(self.fixed))
        self.offsets = [sum(sizes[:k]) for k in range(len(sizes) + 1)]
        self.started: set[int] = set()  # steps whose cotangent is initialised

    @property
    def scratch(self) -> int:
        return self.offsets[-1]

    def text(self) -> str:
        parts = [
            self.function("fixed_forward(ptr %leaves, ptr %once)", "double", self.forward),
            self.function(
                "block(ptr %columns, i64 %stride, ptr %once, ptr %values, ptr %cots, ptr %sums, ptr %seeds, "
                "ptr %out, i1 %backward)",
                VECTOR,
                self.block,
            ),
            self.function("fixed_backward(ptr %once, ptr %once_cots, ptr %grads)", "double", self.fixed_backward),
        ]
        _, cots, sums, once, once_cots, _ = self.offsets
        numbers = {
            "ONCE_COTS_AT": once_cots,
            "COTS_AT": cots,
            "SUMS_AT": sums,
            "ONCE_AT": once,
            "SUMS_BYTES": 8 * LANES * len(self.fixed),
            "FIXED": len(self.fixed),
        }
        step = STEP
        for name, number in numbers.items():
            step = step.replace(name, str(number))
        return "\n".join([_declarations(), *parts, step])

    def function(self, signature: str, type_: str, body: Callable[[_Emitter], None]) -> str:
        m = _Emitter(type_)
        m.start("entry")
        body(m)
        m.write("ret void")
        return "\n".join([f"define internal void @{signature} {{", *m.lines, "}"])

    def use(self, m: _Emitter, i: int) -> _Number:
        """The value of step i, in the type that m writes."""
        step = self.steps[i]
        if step.op == "constant":
            return m.constant(step.number)
        if step.varying:
            return m.load(VECTOR, "values", self.place[i])
        number = m.load("double", "once", self.place[i])
        return m.splat(number) if m.type == VECTOR else number

    def forward(self, m: _Emitter) -> None:
        """Compute every step that m emits: varying ones as vectors, the others as single numbers."""
        for i, step in enumerate(self.steps):
            if step.varying != (m.type == VECTOR) or step.op == "constant":
                continue
            m.breathe()
            if step.op == "input":
                start = m.new(f"mul i64 %stride, {int(step.number)}")
                column = m.new(f"getelementptr double, ptr %columns, i64 {start}")
                value = m.new(f"load {VECTOR}, ptr {column}, align 8")
            elif step.op == "leaf":
                value = m.load("double", "leaves", int(step.number))
            else:
                value = RULES[step.op].forward(m, step.number, *(self.use(m, arg) for arg in step.args))
            m.store(m.type, value, "values" if step.varying else "once", self.place[i])

    def block(self, m: _Emitter) -> None:
        self.forward(m)
        m.write(f"store {VECTOR} {self.use(m, self.last)}, ptr %out, align 8")
        m.write("br i1 %backward, label %reverse, label %done")
        m.start("reverse")
        seed = m.new(f"load {VECTOR}, ptr %seeds, align 8")
        if self.steps[self.last].active:
            self.add(m, self.last, seed)
        self.backward(m)
        m.write("br label %done")
        m.start("done")

    def fixed_backward(self, m: _Emitter) -> None:
        self.backward(m)
        for i in self.fixed:
            if self.steps[i].op == "leaf":
                m.store("double", m.load("double", "once_cots", self.place[i]), "grads", int(self.steps[i].number))

    def backward(self, m: _Emitter) -> None:
        for i in range(self.last, -1, -1):
            step = self.steps[i]
            wanted = [(k, arg) for k, arg in enumerate(step.args) if self.steps[arg].active]
            if not wanted or step.varying != (m.type == VECTOR):
                continue
            cotangent = m.load(m.type, "cots" if step.varying else "once_cots", self.place[i])
            y = self.use(m, i)
            args = _Loaded(self, m, step)
            for k, arg in wanted:
                m.breathe()
                self.add(m, arg, RULES[step.op].pull(m, k, cotangent, y, step.number, args))

    def add(self, m: _Emitter, i: int, share: _Number) -> None:
        """Add a share to the cotangent of step i."""
        in_loop = "cots" if self.steps[i].varying else "sums"
        area = in_loop if m.type == VECTOR else "once_cots"
        if area != "cots" or i in self.started:  # the other areas start at zero, or at the loop's total
            share = m.load(m.type, area, self.place[i]) + share
        self.started.add(i)
        m.store(m.type, share, area, self.place[i])


class _Loaded(Sequence[_Number]):
    """The arguments of a step, loaded when a rule reads them: most pulls need only one."""

    def __init__(self, writer: _Writer, m: _Emitter, step: Instruction) -> None:
        self.writer, self.m, self.step = writer, m, step

    def __len__(self) -> int:
        return len(self.step.args)

    def __getitem__(self, index: Any) -> Any:
        return self.writer.use(self.m, self.step.args[index])


def _declarations() -> str:
    """Declare the functions of the C library, and define each over a block, lane by lane."""
    out = [
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
        f"declare double @llvm.vector.reduce.fadd.v{LANES}f64(double, {VECTOR})",
    ]
    for type_, suffix in (("double", "f64"), (VECTOR, f"v{LANES}f64")):
        out.append(f"declare {type_} @llvm.fabs.{suffix}({type_})")
        out.append(f"declare {type_} @llvm.fmuladd.{suffix}({type_}, {type_}, {type_})")
    for name, arity in MATH.items():
        out.append(f"declare double @{name}({', '.join(['double'] * arity)})")
        arguments = ", ".join(f"double %a{k}" for k in range(arity))
        out.append(f"define internal double @map.{name}.f64({arguments}) {{")
        out.append(f"  %y = call double @{name}({arguments})\n  ret double %y\n}}")
        arguments = ", ".join(f"{VECTOR} %a{k}" for k in range(arity))
        out.append(f"define internal {VECTOR} @map.{name}.v{LANES}f64({arguments}) {{")
        for lane in range(LANES):
            out += [f"  %x{k}.{lane} = extractelement {VECTOR} %a{k}, i32 {lane}" for k in range(arity)]
            scalars = ", ".join(f"double %x{k}.{lane}" for k in range(arity))
            out.append(f"  %y{lane} = call double @{name}({scalars})")
            before = f"%r{lane - 1}" if lane else "undef"
            out.append(f"  %r{lane} = insertelement {VECTOR} {before}, double %y{lane}, i32 {lane}")
        out.append(f"  ret {VECTOR} %r{LANES - 1}\n}}")
    return "\n".join(out)


def _native(text: str) -> tuple[Any, Any]:
    """Compile LLVM text for this machine. Return the engine, which owns the code, and the function."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        opt=1 if text.count("\n") < OPTIMISE_BELOW else 0,
    )
    module = binding.parse_assembly(text)
    module.verify()
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    pointer = ctypes.c_void_p
    kind = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, *[pointer] * 6, ctypes.c_bool)
    return engine, kind(engine.get_function_address("step"))


def build(program: Program) -> tuple[Callable[..., Any], str]:
    """Return run(columns, leaves, seeds) -> (result, gradients of the leaves), and the LLVM text.

    Raises ImportError where llvmlite is absent.
    """
    writer = _Writer(program)
    text = writer.text()
    engine, function = _native(text)
    number_of_leaves = len(program.leaves)

    def run(columns: Any, leaves: Any, seeds: Any) -> tuple[Any, Any]:
        samples = seeds.size
        blocks = -(-samples // LANES)
        padded = blocks * LANES
        # Copies of the last sample fill the last block and share its seed, so gradients are unchanged.
        rows = np.empty((max(len(columns), 1), padded))
        weights = np.empty(padded)
        for row, column in zip(rows, columns, strict=False):
            row[:samples], row[samples:] = column, column[-1]
        weights[:samples] = seeds
        weights[samples - 1 :] = seeds[-1] / (padded - samples + 1)
        out, grads, scratch = np.empty(padded), np.empty(number_of_leaves), np.empty(writer.scratch + LANES)
        aligned = scratch.ctypes.data + -scratch.ctypes.data % 64
        arrays = (array.ctypes.data for array in (rows, leaves, weights, out, grads))
        function(blocks, padded, *arrays, aligned, bool(weights.any()))
        return out[:samples], grads

    vars(run)["engine"] = engine  # keeps the native code alive
    return run, text
