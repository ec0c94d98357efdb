"""W2: a wide multilayer perceptron on MNIST-sized images. Large matrix products, RMSprop with momentum."""

from __future__ import annotations

from benchmarks.workload import Bar, Workload

WORKLOAD = Workload(
    key="w2",
    title="W2: MNIST MLP 784-1024-1024-1024-10, batch 512, RMSprop with momentum",
    package=__name__,
    peers={
        "PyTorch eager": "torch_peer:eager",
        "torch.compile": "torch_peer:compile",
        "JAX jit": "jax_peer",
        "glassgrad eager": "glassgrad_peer:eager",
        "glassgrad compiled (NumPy)": "glassgrad_peer:numpy",
        "glassgrad compiled": "glassgrad_peer:llvm",
        "glassgrad compiled (MKL)": "glassgrad_peer:mkl",
    },
    reference="PyTorch eager",
    bars=(
        Bar("glassgrad compiled", ("torch.compile",), 1.0),
        Bar("glassgrad eager", ("PyTorch eager",), 0.95),
        Bar("glassgrad compiled (MKL)", ("torch.compile",), 0.9),
    ),
    check_steps=8,
    tolerance=2e-3,
    seconds=1.0,
)
