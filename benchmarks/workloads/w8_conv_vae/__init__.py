"""W8: a variational autoencoder: strided convolutions down to 4x4 and transposed ones back."""

from __future__ import annotations

from benchmarks.workload import Bar, Workload

WORKLOAD = Workload(
    key="w8",
    title="W8: convolutional VAE, strided and transposed convolutions, batch 32 of 3x64x64, Adam",
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
    ),
    check_steps=3,
    tolerance=1e-3,
    seconds=2.0,
)
