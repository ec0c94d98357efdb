"""Limited to AVX2, every peer's process has the switches, and a peer that ignores them is detected."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import pytest

from benchmarks import __main__, isa, machine, results
from benchmarks.harness import Outcome
from benchmarks.workloads import WORKLOADS

x86 = pytest.mark.skipif(not machine.instructions().startswith("AVX"), reason="the switches are those of x86-64")


def test_the_harness_starts_itself_anew_with_every_switch_and_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    monkeypatch.setattr(os, "execve", lambda path, command, environment: started.append((command, environment)))
    monkeypatch.delenv(isa.HELD, raising=False)
    monkeypatch.setenv("XLA_FLAGS", "--xla_some=1")
    isa.hold(["w1", "--isa", "avx2"])
    ((command, environment),) = started
    assert command[1:] == ["-m", "benchmarks", "w1", "--isa", "avx2"]
    assert environment["XLA_FLAGS"] == "--xla_some=1 --xla_cpu_max_isa=AVX2"
    assert environment["GLASSGRAD_ISA"] == "avx2"
    monkeypatch.setenv(isa.HELD, environment[isa.HELD])
    isa.hold(["w1", "--isa", "avx2"])
    assert len(started) == 1


@x86
@pytest.mark.parametrize(
    ("module", "shown", "expected"),
    [
        pytest.param("torch", "torch.backends.cpu.get_cpu_capability()", "AVX2", marks=pytest.mark.slow),
        pytest.param("torch._inductor.cpu_vec_isa", "{}.pick_vec_isa()", "avx2", marks=pytest.mark.slow),
        pytest.param("torch._inductor.config", "{}.cpp.march", "haswell", marks=pytest.mark.slow),
        # New versions of NumPy name the level, others the last of the sets of instructions.
        ("numpy", "{}.show_config('dicts')['SIMD Extensions']['found'][-1]", ("X86_V3", "AVX2", "FMA3")),
    ],
)
def test_libraries_report_what_they_are_held_to(module: str, shown: str, expected: str | tuple[str, ...]) -> None:
    pytest.importorskip(module.partition(".")[0], reason="this peer is not installed")
    program = f"import {module}; print({shown.format(module)})"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**os.environ, **isa.switches()},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() in ((expected,) if isinstance(expected, str) else expected)


@x86
@pytest.mark.slow
def test_xla_takes_its_switch() -> None:
    """XLA ends a process whose flags it doesn't know."""
    pytest.importorskip("jax", reason="this peer is not installed")
    program = "import jax; print(jax.jit(lambda x: x @ x)(jax.numpy.ones((2, 2)))[0, 0])"
    environment = {**os.environ, **isa.switches(), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "2.0"


@x86
@pytest.mark.skipif(not machine.instructions().startswith("AVX2"), reason="here products may be faster than AVX2 is")
def test_a_product_in_avx2_stays_below_the_limit_and_comes_near_it() -> None:
    """By processor time, which other programs on the machine do not add to."""
    pytest.importorskip("llvmlite", reason="the loop is made by LLVM")
    run, count = isa.multiplications(), 4_000_000
    limit = count * isa.CHAINS * isa.LANES * 2 / least(lambda: run(count))
    left = np.ones((isa.SIDE, isa.SIDE), np.float32)
    ratio = 2 * isa.SIDE**3 / least(lambda: left @ left) / limit
    assert 0.3 < ratio < isa.TOLERANCE


def least(work: Callable[[], object]) -> float:
    """The least processor time of a few calls."""
    times = []
    for _ in range(7):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def test_a_peer_that_is_not_held_is_reported_and_its_result_not_written() -> None:
    assert isa.verdict("JAX jit", 1.1) == isa.verdict("JAX jit", float("nan")) == ""
    one = Outcome("JAX jit", rounds=[1.0], losses=[0.5], excess=1.8)
    text = results.measured_text(WORKLOADS["w3"], [one])
    assert "a product of JAX jit ran at 1.80 times the limit of AVX2" in text
    assert not __main__.may_write(argparse.Namespace(write=True, busy=True), text)
    one.excess = 1.0
    assert __main__.may_write(argparse.Namespace(write=True, busy=True), results.measured_text(WORKLOADS["w3"], [one]))


def test_each_library_has_a_product_to_be_timed() -> None:
    left = np.eye(isa.SIDE, dtype=np.float32)
    assert set(isa.WORK) == {"torch", "jax", "glassgrad", "numpy"}
    (flops, work), *_ = isa.WORK["numpy"](left)
    np.testing.assert_array_equal(work(), left)
    assert flops == 2 * isa.SIDE**3
