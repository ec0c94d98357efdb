"""Large modules become object code in parts, on several cores."""

from __future__ import annotations

import ctypes

import llvmlite.binding as llvm
import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.compile.llvm.module.target import LoadedCode, host
from glassgrad.compile.llvm.objects import translate as objects
from glassgrad.compile.llvm.objects.separate import joined, separate
from glassgrad.compile.llvm.objects.symbols import called_symbols, offered_symbols

pytestmark = pytest.mark.skipif(not host().divides, reason="modules are divided on Linux on x86-64 alone")

X = np.linspace(-1, 1, 40, dtype=np.float32).reshape(5, 8)


def losses():
    """The first losses of a small network, whose step has products, loops and two shares."""
    gg.manual_seed(3)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.LayerNorm(16), nn.Linear(16, 3))
    optimizer = optim.Adam(model.parameters(), lr=0.01)

    @gg.compile(threads=2, strict=True)
    def step(x):
        optimizer.zero_grad()
        loss = (model(x).softmax(1) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss

    return [step(gg.tensor(X)).item() for _ in range(4)], step


@pytest.mark.parametrize("parts", [2, 4])
def test_parts_compute_what_the_whole_does(monkeypatch, parts):
    monkeypatch.setenv("GLASSGRAD_CACHE_DIR", "")
    whole, _ = losses()
    made = []
    monkeypatch.setattr(objects, "LEAST_CHARACTERS", 1)
    monkeypatch.setattr("glassgrad.compile.stages.available_cores", lambda: parts)
    monkeypatch.setattr(objects, "joined", lambda found: made.append(len(found)) or b"".join(_joined(found)))
    divided, step = losses()
    assert divided == whole
    assert parts in made
    assert step.stats.threads == 2


def _joined(found, joined=objects.joined):
    return [joined(found)]


def test_every_function_is_in_one_part():
    """A part offers its own functions and the shared variable; what it calls of others' is not in it twice."""
    text = host().header() + "\n".join(
        [
            "@table = constant [2 x ptr] [ptr @f0, ptr @f1]",
            "define ptr @entry() {\n  ret ptr @table\n}",
            *(
                f"define internal double @f{at}(double %x) noinline {{\n"
                f"  %y = fmul double %x, {at + 2}.0\n  %z = call double @g(double %y)\n  ret double %z\n}}"
                for at in range(2)
            ),
            "define internal double @g(double %x) noinline {\n  %y = fadd double %x, 1.0\n  ret double %y\n}\n",
        ]
    )
    module = llvm.parse_assembly(text)
    code = objects.emitted(module, text, 3, host().machine_of_parts, lambda part, _: part.verify())
    files = separate(code)
    offered = [name for one in files for name in offered_symbols(one)]
    assert sorted(offered) == ["entry", "f0", "f1", "g", "table"]
    assert "g" in {name for one in files for name in called_symbols(one)}
    loaded = LoadedCode(code)
    table = (ctypes.c_void_p * 2).from_address(ctypes.CFUNCTYPE(ctypes.c_void_p)(loaded.address("entry"))())
    doubled, tripled = (ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(address) for address in table)
    assert (doubled(5.0), tripled(5.0)) == (11.0, 16.0)


def test_copies_that_llvm_makes_of_functions_are_in_a_part():
    text = host().header() + (
        "define double @f(double %x) {\n  %y = fadd double %x, 1.0\n  ret double %y\n}\n"
        "define double @g(double %x) {\n  %y = fmul double %x, 2.0\n  ret double %y\n}\n"
    )
    copy = "define internal double @f.specialized.1(double %x) {\n  ret double %x\n}\n"
    made = llvm.parse_assembly(
        text.replace("ret double %y", "%z = call double @f.specialized.1(double %y)\n  ret double %z") + copy
    )
    loaded = LoadedCode(objects.emitted(made, text, 2, host().machine_of_parts, lambda part, _: part.verify()))
    f, g = (ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(loaded.address(name)) for name in "fg")
    assert (f(5.0), g(5.0)) == (6.0, 10.0)


def test_small_modules_stay_whole():
    assert objects.parts_of("x" * 1000, 8) == 1
    assert objects.parts_of("x" * 600_000, 8) == 2
    assert objects.parts_of("x" * 9_000_000, 8) == 4
    assert objects.parts_of("x" * 9_000_000, 1) == 1


def test_a_library_of_another_shape_is_used_as_it_is(monkeypatch):
    monkeypatch.setattr(objects.llvm, "ffi", object())
    objects._free_calls.cache_clear()
    try:
        assert objects.parts_of("x" * 9_000_000, 8) == 1
    finally:
        monkeypatch.undo()
        objects._free_calls.cache_clear()
    assert objects.parts_of("x" * 9_000_000, 8) == 4


def test_object_files_in_one():
    files = [b"one", b"", b"\0two"]
    assert separate(joined(files)) == files
    assert separate(b"\x7fELF and so on") == [b"\x7fELF and so on"]


def test_what_a_part_lacks_is_an_error():
    text = host().header() + (
        "declare double @no_such(double)\n"
        "define double @f(double %x) {\n  %y = call double @no_such(double %x)\n  ret double %y\n}\n"
        "define double @g(double %x) {\n  %y = call double @f(double %x)\n  ret double %y\n}\n"
    )
    code = objects.emitted(llvm.parse_assembly(text), text, 2, host().machine_of_parts, lambda part, _: None)
    with pytest.raises(gg.errors.LinkError, match="no_such"):
        LoadedCode(code)
