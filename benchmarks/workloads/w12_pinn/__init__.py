"""W12: a network that solves Burgers' equation: second derivatives, which are differentiated once more."""

from __future__ import annotations

from benchmarks.workload import Bar, FirstStep, Workload

WORKLOAD = Workload(
    key="w12",
    title="W12: Burgers' equation by an MLP 2-32-32-1, residual at 1,024 points, Adam",
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
        Bar("glassgrad compiled", ("PyTorch eager", "torch.compile", "JAX jit"), 0.3),
        Bar("glassgrad eager", ("PyTorch eager",), 1.0),
        FirstStep("glassgrad compiled", 3.0),
    ),
    check_steps=10,
    tolerance=1e-3,
    seconds=0.5,
)
