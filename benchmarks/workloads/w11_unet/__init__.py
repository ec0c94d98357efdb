"""W11: a U-Net that finds the noise in images: group norms, SiLU, shortcuts joined by channels."""

from __future__ import annotations

from benchmarks.workload import Bar, FirstStep, Workload

WORKLOAD = Workload(
    key="w11",
    title="W11: U-Net 32-64-128 with group norm and SiLU, batch 32 of 28x28, Adam",
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
        Bar("glassgrad compiled", ("PyTorch eager", "torch.compile", "JAX jit"), 0.8),
        Bar("glassgrad eager", ("PyTorch eager",), 1.0),
        FirstStep("glassgrad compiled", 3.0),
    ),
    check_steps=3,
    tolerance=1e-3,
    seconds=2.0,
)
