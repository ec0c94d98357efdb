"""W13: a transformer encoder with dropout. Losses are compared without dropout, times are taken with it."""

from __future__ import annotations

from benchmarks.workload import Bar, FirstStep, Workload

WORKLOAD = Workload(
    key="w13",
    title="W13: transformer encoder, 4 layers, width 256, 8 heads, batch 16 x 128, dropout 0.1, Adam",
    package=__name__,
    peers={
        "PyTorch eager": "torch_peer:eager",
        "torch.compile": "torch_peer:compile",
        "JAX jit": "jax_peer",
        "glassgrad eager": "glassgrad_peer:eager",
        "glassgrad compiled": "glassgrad_peer:llvm",
    },
    reference="PyTorch eager",
    bars=(
        Bar("glassgrad compiled", ("PyTorch eager", "torch.compile", "JAX jit"), 0.7),
        Bar("glassgrad eager", ("PyTorch eager",), 1.0),
        FirstStep("glassgrad compiled", 3.0),
    ),
    check_steps=5,
    tolerance=1e-3,
    seconds=2.0,
)
