"""W10: a recurrent network: many small products, each of which waits for the one before."""

from __future__ import annotations

from benchmarks.workload import Bar, FirstStep, Workload

WORKLOAD = Workload(
    key="w10",
    title="W10: LSTM, 2 layers of 256, 64 places of 64 inputs, batch 32, Adam",
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
        Bar("glassgrad compiled", ("PyTorch eager", "torch.compile", "JAX jit"), 0.9),
        Bar("glassgrad eager", ("PyTorch eager",), 1.0),
        FirstStep("glassgrad compiled", 3.0),
    ),
    check_steps=5,
    tolerance=1e-3,
    seconds=1.0,
)
