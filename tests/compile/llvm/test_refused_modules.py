"""A module that LLVM refuses, and code that calls a missing function: the step runs eagerly and states the reason."""

from __future__ import annotations

import os
import subprocess
import sys

import llvmlite.binding as llvm
import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.compile.llvm.loops import scalar
from glassgrad.compile.llvm.math.library import library_call
from glassgrad.compile.llvm.module.target import LoadedCode
from glassgrad.compile.llvm.objects.symbols import called_symbols, offered_symbols

X = gg.tensor(np.linspace(-0.9, 0.9, 12).reshape(3, 4))

LACKING = """
import warnings
import numpy as np
import glassgrad as gg
from glassgrad.compile.llvm.loops import scalar
from glassgrad.compile.llvm.math.library import library_call

scalar.ELEMENTWISE["asin"] = (80, lambda b, x, data: library_call(b, "no_such_sine", *x))
x = gg.tensor(np.linspace(-0.9, 0.9, 12))

def step(x):
    wide = gg.tanh(x.reshape(3, 4) @ x.reshape(4, 3)).sum(0)
    narrow = gg.asin(x) * 2
    return wide, narrow

with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    for run in (gg.compile(step), gg.compile(step)):  # of the second one the code lies in the cache
        for _ in range(3):
            for found, wanted in zip(run(x), step(x), strict=True):
                assert np.array_equal(found, wanted)
first, second = [str(one.message) for one in told]
assert first == second
print(first)
"""


def test_a_missing_function_does_not_end_the_process(tmp_path):
    script = tmp_path / "lacking.py"
    script.write_text(LACKING, encoding="utf-8")
    line = LACKING.splitlines().index("    narrow = gg.asin(x) * 2") + 1
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "GLASSGRAD_CACHE_DIR": str(tmp_path / "cache")},
    )
    assert not done.returncode, done.stderr[-2000:]
    assert "step cannot be compiled and runs eagerly" in done.stdout
    assert f"failed at asin at {script}:{line} (" in done.stdout
    assert "no_such_sine" in done.stdout


def malformed(b, x, data):
    return b.define(f"fadd {x[0].typed}, %nowhere", x[0].kind, x[0].lanes)


def not_dominated(b, x, data):
    """Text that parses; the verifier finds the value used before it is there."""
    b.raw(f"%early = fadd {x[0].typed}, %late")
    b.raw(f"%late = fadd {x[0].typed}, %early")
    return x[0]


@pytest.mark.parametrize("emit", [malformed, not_dominated])
@pytest.mark.parametrize("threads", [1, 2])
def test_what_llvm_refuses_is_told_by_op_and_line(emit, threads, monkeypatch):
    monkeypatch.setitem(scalar.ELEMENTWISE, "asin", (80, emit))

    def step(x):
        wide = gg.tanh(x @ x.mT).sum(0)
        return wide, gg.cumsum(x, 0), gg.asin(x)  # the line

    run = gg.compile(step, threads=threads)
    line = step.__code__.co_firstlineno + 2
    with pytest.warns(errors.CompileWarning, match=rf"failed at asin at .*test_refused_modules.py:{line} \(RuntimeErr"):
        found = run(X)
    for mine, wanted in zip(found, step(X), strict=True):
        assert np.array_equal(mine, wanted)


def test_a_solid_kernel_is_told_too(monkeypatch):
    from glassgrad.compile.llvm.sequences import scan

    def broken(step, *_):
        name = step.helper("define internal void @NAME() #0 {\nentry:\n  ret i32 %no\n}\n")
        assert name

    monkeypatch.setattr(scan.ScanCode, "emit", lambda self, step, b, task, bounds: broken(step))
    with pytest.warns(errors.CompileWarning, match=r"failed at cumsum at .*test_refused_modules.py:\d+"):
        gg.compile(lambda x: gg.cumsum(gg.tanh(x), 0) + 1)(X)


PROGRAM = """
declare double @asin(double)
declare double @a_name_of_more_than_8_letters(double)
define double @defined_here(double %x) {
  %y = call double @asin(double %x)
  %z = call double @a_name_of_more_than_8_letters(double %y)
  %w = frem double %z, 3.0
  ret double %w
}
define double @also_here(double %x) {
  %y = call double @defined_here(double %x)
  ret double %y
}
"""


@pytest.mark.parametrize(
    "triple",
    [
        "x86_64-unknown-linux-gnu",
        "aarch64-unknown-linux-gnu",
        "x86_64-apple-darwin",
        "arm64-apple-darwin",
        "x86_64-pc-windows-msvc",
        "aarch64-pc-windows-msvc",
    ],
)
def test_symbols_of_every_format_of_object_code(triple):
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(reloc="pic", codemodel="jitdefault", jit=True)
    code = bytes(machine.emit_object(llvm.parse_assembly(PROGRAM)))
    assert sorted(called_symbols(code)) == ["a_name_of_more_than_8_letters", "asin", "fmod"]
    own = [name for name in offered_symbols(code) if "@" not in name]  # Microsoft's format shares constants too
    assert sorted(own) == ["also_here", "defined_here"]


def test_other_bytes_have_no_symbols():
    assert called_symbols(b"") == called_symbols(b"\x7fELF\x01\x01") == called_symbols(b"PK\x03\x04" * 9) == []


def test_a_missing_function_is_an_error_of_its_own():
    from glassgrad.compile.llvm.module.target import host

    text = "define double @f(double %x) {\n  %y = call double @no_such(double %x)\n  ret double %y\n}\n"
    code = host().compile(host().header() + "declare double @no_such(double)\n" + text)
    with pytest.raises(errors.LinkError, match="no_such"):
        LoadedCode(code)


def test_the_c_library_is_there(monkeypatch):
    """The planted ops above reach native code at all."""
    called = []
    monkeypatch.setitem(
        scalar.ELEMENTWISE, "asin", (80, lambda b, x, data: called.append(data) or library_call(b, "asin", *x))
    )
    assert np.allclose(gg.compile(gg.asin, strict=True)(X * 0.5), gg.asin(X * 0.5))
    assert called
