"""W6: a residual network. 3x3 convolutions at four sizes, batch norm and sums, close to the limit in products."""

from __future__ import annotations

from benchmarks.workload import Bar, Workload

WORKLOAD = Workload(
    key="w6",
    title="W6: ResNet-18 in CIFAR form, batch 32 of 3x32x32, SGD with momentum",
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
        Bar("glassgrad compiled", ("PyTorch eager", "torch.compile", "JAX jit"), 0.85),
        Bar("glassgrad eager", ("PyTorch eager",), 1.0),
    ),
    check_steps=3,
    tolerance=1e-3,
    seconds=2.0,
)
