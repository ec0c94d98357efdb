"""W5: a small convolutional network on 28x28 images. Convolutions, pooling and Adam."""

from __future__ import annotations

from benchmarks.workload import Bar, Workload

WORKLOAD = Workload(
    key="w5",
    title="W5: CNN conv 32, conv 64, two poolings, two linear layers, batch 64 of 28x28, Adam",
    package=__name__,
    peers={
        "PyTorch eager": "torch_peer:eager",
        "torch.compile": "torch_peer:compile",
        "JAX jit": "jax_peer",
        "glassgrad eager": "glassgrad_peer:eager",
        "glassgrad compiled (NumPy)": "glassgrad_peer:numpy",
        "glassgrad compiled": "glassgrad_peer:llvm",
        "C by gcc": "c_peer:gcc",
        "C by clang": "c_peer:clang",
    },
    reference="PyTorch eager",
    bars=(
        Bar("glassgrad compiled", ("PyTorch eager",), 0.75),
        Bar("glassgrad eager", ("PyTorch eager",), 0.95),
    ),
    check_steps=8,
    tolerance=1e-3,
    seconds=1.0,
)
