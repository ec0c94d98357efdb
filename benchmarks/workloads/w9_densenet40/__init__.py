"""W9: every layer reads all before it: thin 3x3 convolutions, much batch norm and concatenation."""

from __future__ import annotations

from benchmarks.workload import Bar, Workload

WORKLOAD = Workload(
    key="w9",
    title="W9: DenseNet of 40 layers, growth 12, batch 32 of 3x32x32, SGD with momentum",
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
        Bar("glassgrad compiled", ("PyTorch eager", "torch.compile", "JAX jit"), 0.8, narrow=0.55),
        Bar("glassgrad eager", ("PyTorch eager",), 1.1),
    ),
    check_steps=3,
    tolerance=1e-3,
    seconds=2.0,
)
