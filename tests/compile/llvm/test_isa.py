"""GLASSGRAD_ISA=avx2: a processor with more than AVX2 behaves like one with only AVX2."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glassgrad import errors
from glassgrad.compile.llvm.module import target
from glassgrad.compile.llvm.objects import machine
from glassgrad.compile.llvm.objects.machine import Machine, limited
from glassgrad.compile.native import cache
from tests.compile.graphs import Builder, lower
from tools import avx2

PROGRAM = Path(__file__).with_name("avx2_program.py")
HERE = machine.asked()

pytestmark = pytest.mark.skipif("+avx2" not in HERE.features.split(","), reason="this processor has no AVX2")


def with_features(cpu: str, sign: str, *beginnings: str) -> Machine:
    """Return this machine with all features that begin like that, or without them."""
    features = HERE.features.split(",")
    changed = [f"{sign}{one[1:]}" if one[1:].startswith(beginnings) else one for one in features]
    return replace(HERE, cpu=cpu, features=",".join(changed))


WIDE = with_features("sapphirerapids", "+", "avx", "amx")
NARROW = with_features("znver3", "-", "avx512", "avx10", "amx")


def has(found: Machine) -> set[str]:
    return {one[1:] for one in found.features.split(",") if one.startswith("+")}


def host_of(found: Machine, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(target, "machine", lambda: found)
    return target.Host()


def test_a_wider_processor_is_one_with_avx2(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = host_of(WIDE, monkeypatch)
    assert (wide.vector_bytes, wide.has_bfloat, wide.has_amx) == (64, True, True)
    found = limited(WIDE, "avx2")
    assert not [one for one in has(found) if one.startswith(("avx512", "avx10", "amx"))]
    assert {"avx2", "fma", "f16c", "bmi2"} <= has(found)
    assert [one[1:] for one in found.features.split(",")] == [one[1:] for one in WIDE.features.split(",")]
    assert replace(found, cpu=WIDE.cpu, features=WIDE.features) == WIDE
    host = host_of(found, monkeypatch)
    assert (host.vector_bytes, host.has_bfloat, host.has_amx) == (32, False, False)
    assert host.has_halves
    assert not host.may_use_amx


def test_its_code_has_no_wide_register_and_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine code of a function on 16 numbers at once, which only a processor with AVX-512 has in one register."""
    text = (
        "define void @f(ptr %x) #0 {\n  %a = load <16 x float>, ptr %x\n  %b = fmul <16 x float> %a, %a\n"
        "  store <16 x float> %b, ptr %x\n  ret void\n}\n"
    )
    keys = set()
    for found, register in ((WIDE, "zmm"), (limited(WIDE, "avx2"), "ymm")):
        host = host_of(found, monkeypatch)
        assembly = host.assembly(f"{host.header()}\n{text}\n{host.attributes()}")
        assert register in assembly
        assert ("zmm" in assembly) == (register == "zmm")
        monkeypatch.setattr(cache, "host", lambda host=host: host)
        keys.add(cache.key_of("step"))
    assert len(keys) == 2


def test_a_processor_with_avx2_alone_stays_what_it_is() -> None:
    assert limited(NARROW, "avx2") is NARROW
    assert limited(WIDE, "") is WIDE


@pytest.mark.parametrize("given", ["avx512", "AVX2", "sse2", "0"])
def test_other_sets_of_instructions_are_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSGRAD_ISA", given)
    with pytest.raises(errors.ArgumentError, match=f"GLASSGRAD_ISA is '{given}'.\nExpected: 'avx2'; unset, "):
        machine.machine.__wrapped__()


@pytest.mark.parametrize("missing", ["avx2", "fma"])
def test_a_processor_without_avx2_is_refused(missing: str) -> None:
    older = with_features("sandybridge", "-", missing, "avx512")
    with pytest.raises(errors.ArgumentError, match=r"requests 'avx2', which this processor \(sandybridge\) does not"):
        limited(older, "avx2")
    assert limited(older, "") is older


def test_all_kinds_of_native_code_compute_with_avx2_alone() -> None:
    """A compiled step, eager products, a convolution and attention, in a process with all the switches."""
    done = subprocess.run(
        [sys.executable, "-W", "error", PROGRAM],
        env={**avx2.environment(), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["vector_bytes"], said["amx"], said["bfloat"]) == (32, False, False)
    assert "+avx2" in said["features"]
    assert "+avx512" not in said["features"]
    assert "+amx" not in said["features"]
    assert said["blas"] in {"Haswell", ""}
    assert not [one for one in said["numpy"] if one.startswith(("AVX512", "X86_V4"))]


def test_numpys_switch_names_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy warns of features that it does not know, so only those that it found are named."""

    def found(*names: str) -> dict[str, str]:
        settings = {"SIMD Extensions": {"baseline": ["X86_V2"], "found": list(names)}}
        monkeypatch.setattr(np, "show_config", lambda mode: settings)
        return avx2.environment()

    monkeypatch.delenv("NPY_DISABLE_CPU_FEATURES", raising=False)
    assert found("X86_V3", "X86_V4", "AVX512_ICL")["NPY_DISABLE_CPU_FEATURES"] == "X86_V4 AVX512_ICL"
    assert found("AVX2", "FMA3", "AVX512F", "AVX512_SKX")["NPY_DISABLE_CPU_FEATURES"] == "AVX512F AVX512_SKX"
    assert "NPY_DISABLE_CPU_FEATURES" not in found("X86_V3")
    monkeypatch.setenv("NPY_DISABLE_CPU_FEATURES", "X86_V4, AVX512_ICL")
    assert found("X86_V3", "AVX512_SPR")["NPY_DISABLE_CPU_FEATURES"] == "X86_V4 AVX512_ICL AVX512_SPR"


def test_a_step_of_this_process_uses_the_vectors_that_its_host_has() -> None:
    b = Builder(np.float32)
    step = lower(b.build(b.input(64) * 2.0), threads=1)
    assert f"<{target.host().vector_bytes // 4} x float>" in step.llvm
