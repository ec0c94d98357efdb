"""Limit every peer to AVX2, each by its own switch, and check in its own process that the switch works.

Processors with vectors of 64 bytes are common in data centres and rare elsewhere. Limited to AVX2, such a processor
shows how the peers compare on the others. The switches are environment variables that a library reads when it is
loaded; the harness therefore restarts itself with them, and every process that it starts inherits them.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks import machine

HELD = "GLASSGRAD_BENCHMARKS_ISA"  # says that the switches are set
MARK = "**Not held to AVX2"
TOLERANCE = 1.15  # the clock may change between the two measurements
SIDE, ROUNDS = 1024, 7
XLA = "--xla_cpu_max_isa=AVX2"
LANES, CHAINS = 8, 12  # float32 in 32 bytes; two ports with five cycles of latency need ten chains
BEYOND = ("AVX512", "X86_V4")  # how NumPy's names of later instructions begin


def numpy_features() -> list[str]:
    """Return the instructions beyond AVX2 that NumPy has found here; it rejects the names of others."""
    found = np.show_config("dicts")["SIMD Extensions"].get("found", [])
    return [name for name in found if name.startswith(BEYOND)]


def switches() -> dict[str, str]:
    """Return the environment that limits every peer to AVX2."""
    flags = os.environ.get("XLA_FLAGS", "")
    return {
        "GLASSGRAD_ISA": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",  # torch.compile's vectors follow it
        "TORCHINDUCTOR_CPP_MARCH": "haswell",
        "XLA_FLAGS": f"{flags} {XLA}".strip(),
        "OPENBLAS_CORETYPE": "Zen" if "AMD" in machine.cpu_name() else "Haswell",
        "NPY_DISABLE_CPU_FEATURES": " ".join(numpy_features()),
        HELD: "avx2",
    }


def hold(arguments: Sequence[str]) -> None:
    """Restart `python -m benchmarks` under the switches, unless they are already set."""
    if not machine.held():
        sys.stdout.flush()
        command = [sys.executable, "-m", "benchmarks", *arguments]
        os.execve(sys.executable, command, {**os.environ, **switches()})  # noqa: S606 -- the same program again


def peak() -> float:
    """Measure the operations per second of all cores together, in multiplications and additions of AVX2."""
    run, count, cores = multiplications(), 4_000_000, machine.cores()
    best = float("inf")
    for _ in range(ROUNDS):
        threads = [threading.Thread(target=run, args=(count,)) for _ in range(cores)]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        best = min(best, time.perf_counter() - start)
    return cores * count * CHAINS * LANES * 2 / best


def multiplications() -> Callable[[int], float]:
    """Return a function that does rounds of independent multiplications and additions in 32-byte vectors."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine(cpu="haswell", features="+avx2,+fma", opt=2)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_loop()), target)
    engine.finalize_object()
    function = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64)(engine.get_function_address("multiplications"))
    function.engine = engine  # the code lives as long
    return function


def _loop() -> str:
    """Return the loop in LLVM IR: each chain depends only on itself, and the end adds up all chains."""
    kind, chains = f"<{LANES} x float>", range(CHAINS)
    phis = [f"  %a{one} = phi {kind} [ %start, %entry ], [ %b{one}, %loop ]" for one in chains]
    steps = [f"  %b{one} = call {kind} @llvm.fma.v8f32({kind} %a{one}, {kind} %by, {kind} %start)" for one in chains]
    sums = [f"  %s{one} = fadd {kind} %{f's{one - 1}' if one else 'start'}, %b{one}" for one in chains]
    body = "\n".join(["loop:", "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]", *phis, *steps])
    return f"""
declare {kind} @llvm.fma.v8f32({kind}, {kind}, {kind})
define float @multiplications(i64 %count) {{
entry:
  %whole = sitofp i64 %count to float
  %start = insertelement {kind} zeroinitializer, float %whole, i32 0
  %by = insertelement {kind} zeroinitializer, float 0.5, i32 0
  br label %loop
{body}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %end
end:
{chr(10).join(sums)}
  %first = extractelement {kind} %s{CHAINS - 1}, i32 0
  ret float %first
}}
"""


def rates() -> list[float]:
    """Measure the operations per second of large products of the library that this process has loaded."""
    left = np.random.default_rng(0).standard_normal((SIDE, SIDE), dtype=np.float32)
    library = next((name for name in ("torch", "jax", "glassgrad") if name in sys.modules), "numpy")
    return [flops / _best(work) for flops, work in WORK[library](left)]


def _best(work: Callable[[], object]) -> float:
    work()
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


Works = list[tuple[float, Callable[[], object]]]


def _numpy(left: np.ndarray) -> Works:
    return [(2 * SIDE**3, lambda: left @ left)]


def _torch(left: np.ndarray) -> Works:
    """Return a product by MKL and a convolution by oneDNN."""
    import torch

    operand = torch.from_numpy(left)
    images, weight = operand.reshape(16, 64, 32, 32), operand[:64, : 64 * 9].reshape(64, 64, 3, 3).contiguous()
    convolve = torch.nn.functional.conv2d
    return [
        (2 * SIDE**3, lambda: operand @ operand),
        (2 * 9 * 64 * 64 * 16 * 30 * 30, lambda: convolve(images, weight)),
    ]


def _jax(left: np.ndarray) -> Works:
    import jax

    operand, product = jax.numpy.asarray(left), jax.jit(lambda x: x @ x)
    return [(2 * SIDE**3, lambda: product(operand).block_until_ready())]


def _glassgrad(left: np.ndarray) -> Works:
    import glassgrad as gg

    operand, product = gg.tensor(left), gg.compile(lambda x: x @ x)
    return [(2 * SIDE**3, lambda: operand @ operand), (2 * SIDE**3, lambda: product(operand))]


WORK: dict[str, Callable[[Any], Works]] = {"torch": _torch, "jax": _jax, "glassgrad": _glassgrad, "numpy": _numpy}


def excess() -> float:
    """Return the rate of the library's fastest product over the limit of AVX2; above one, the switch does not work."""
    time.sleep(0.1)  # threads of the library may still spin
    limit = peak()
    return max(rates()) / limit


def verdict(name: str, ratio: float) -> str:
    """Return a line for the report if a peer is faster than possible with AVX2, otherwise ''."""
    if not ratio > TOLERANCE:
        return ""
    return f"{MARK}: a product of {name} ran at {ratio:.2f} times the limit of AVX2 on these cores.**"
