"""Code for 64-bit ARM processors, generated on any machine and checked as assembly.

`tools/emulated.py` runs the library on such processors, and the test of other machines uses it where it was set up.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from glassgrad.compile import stages
from glassgrad.compile.llvm.module.support import support_text
from glassgrad.compile.llvm.module.target import host
from glassgrad.compile.llvm.objects.symbols import called_symbols
from tests.compile.graphs import Builder, lower
from tests.compile.llvm.test_fused_loops import layer_norm, softmax
from tests.compile.llvm.test_windows_native import DEFAULTS
from tests.compile.native.test_native_runtime import mlp_step

ARM = {
    "triple": "aarch64-unknown-linux-gnu", "features": "", "vector_bytes": 16, "has_halves": True, "has_bfloat": False,
    "has_amx": False, "may_use_amx": False, "divides": False,
}  # fmt: skip  # a table
# What the C libraries of Linux have on every processor; the sine is for arguments too large for the polynomial.
LIBRARY = {"memcpy", "memset", "memmove", "fmod", "fmodf", "sinf", "sched_yield", "syscall"}


class Made(Exception):  # noqa: N818 - no error: it carries the module out of the stages
    pass


@pytest.fixture(params=["generic", "neoverse-n1", "neoverse-v2"])
def assembly(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], str]:
    """A function that returns the machine code of a graph, or of a module's text, for a processor of this kind."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    assert host().machine.triple != ARM["triple"]  # made now, so that it is there to be put back
    for name, value in {**ARM, "cpu": request.param}.items():
        monkeypatch.setattr(host(), name, value)
    machine = host().new_machine()
    monkeypatch.setattr(host(), "machine", machine)
    monkeypatch.setattr(host(), "layout", str(machine.target_data))
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.setenv("GLASSGRAD_CACHE_DIR", "")

    def stop(emitted: stages.Emitted, *_rest: Any) -> None:
        raise Made(emitted.text)

    monkeypatch.setattr(stages, "loaded", stop)

    def made(given: Any) -> str:
        if not isinstance(given, str):
            with pytest.raises(Made) as found:
                lower(given, threads=2)
            given = str(found.value)
        code = host().compile(given)
        assert code[18:20] == b"\xb7\x00"  # ELF's number of the architecture
        assert set(called_symbols(code)) <= LIBRARY
        return host().assembly(given)

    return made


def names(text: str) -> list[str]:
    """Return the instructions of machine code."""
    return re.findall(r"^\t([a-z]\w*)", text, re.MULTILINE)


def test_a_training_step_calls_nothing_that_may_be_missing(assembly: Callable[[Any], str]) -> None:
    found = names(assembly(mlp_step()))
    assert {"fmla", "ldp"} <= {*found}


@pytest.mark.usefixtures("without_blas")
@pytest.mark.parametrize(("dtype", "lanes"), [(np.float32, "4s"), (np.float64, "2d")])
def test_products_keep_their_sums_in_registers(assembly: Callable[[Any], str], dtype: Any, lanes: str) -> None:
    b = Builder(dtype)
    text = assembly(b.build(b.input(64, 96) @ b.input(96, 80)))
    best = max(loops(text), key=lambda lines: sum("fmla" in line for line in lines))
    sums = [line for line in best if re.match(rf"\tfmla\tv\d+\.{lanes}, ", line)]
    assert len(sums) >= 12  # as many additions are under way as it takes to wait for none
    assert not [line for line in best if re.search(r"\[sp|\bbl\b", line)]  # nothing is spilt, nobody is called


def loops(text: str) -> list[list[str]]:
    """Return the lines of every innermost loop: from a label to the first branch back to it, with no label between."""
    found, label, lines = [], "", []
    for line in text.splitlines():
        if named := re.match(r"(\.LBB\w+):", line):
            label, lines = named[1], []
        elif label:
            lines.append(line)
            if re.search(rf"\tb\.?\w*\t{re.escape(label)}$|\tcbn?z\t\w+, {re.escape(label)}$", line):
                found.append(lines)
                label = ""
    return found


@pytest.fixture
def without_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    from glassgrad.compile.llvm.module.blas import blas

    for name in list(blas().pointers):
        monkeypatch.delitem(blas().pointers, name)


def test_loops_run_in_vectors(assembly: Callable[[Any], str]) -> None:
    b = Builder(np.float32)
    x, gain = b.input(19, 64), b.input(64)
    text = assembly(b.build(softmax(b, x), layer_norm(b, x, gain, gain), (x * 3).sin() + x.erf()))
    assert len(re.findall(r"\tfm(?:la|ul|ls)\tv\d+\.4s", text)) > 50
    image, kernel = b.input(2, 3, 9, 11), b.input(5, 3, 3, 3)
    assert "fmla" in names(assembly(b.build(b("conv2d", image, kernel, **DEFAULTS))))


def test_halves_are_converted_by_instructions(assembly: Callable[[Any], str]) -> None:
    b = Builder(np.float16)
    x = b.input(5, 64)
    found = {*names(assembly(b.build(softmax(b, x), x.T + x.T)))}
    assert {"fcvtl", "fcvtn"} <= found


def test_threads_pause_and_wait(assembly: Callable[[Any], str]) -> None:
    text = assembly(host().header() + support_text() + host().attributes())
    assert "yield" in names(text)
    assert re.search(r"\tmov\tw\d+, #98\b", text)  # Linux's number of `futex` here
    assert {"ldaxr", "ldadd", "ldaddal"} & {*names(text)}
