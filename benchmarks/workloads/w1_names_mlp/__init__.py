"""W1: the names model. 27x10 embedding, context 3, 200 hidden units with batch norm and tanh, batch 32, SGD."""

from __future__ import annotations

from benchmarks.workload import Bar, Workload

WORKLOAD = Workload(
    key="w1",
    title="W1: names MLP, 12,297 parameters, batch 32, SGD",
    package=__name__,
    peers={
        "NumPy by hand": "numpy_by_hand",
        "PyTorch eager": "torch_peer:eager",
        "torch.compile": "torch_peer:compile",
        "JAX jit": "jax_peer:jit",
        "JAX scan": "jax_peer:scan",
        "HIPS autograd": "autograd_peer",
        "glassgrad eager": "glassgrad_peer:eager",
        "glassgrad compiled (NumPy)": "glassgrad_peer:numpy",
        "glassgrad compiled": "glassgrad_peer:llvm",
        "C by gcc": "c_peer:gcc",
        "C by clang": "c_peer:clang",
    },
    reference="NumPy by hand",
    bars=(
        Bar("glassgrad eager", ("PyTorch eager",), 0.55, narrow=0.60),
        Bar("glassgrad compiled", ("JAX jit",), 0.30, narrow=0.40),
        Bar("glassgrad compiled", ("PyTorch eager",), 0.12),
    ),
    check_steps=20,
    tolerance=1e-4,
)
