"""W3: a character GPT. Attention, layer norm and GELU at a size where overhead, memory traffic and flops all count."""

from __future__ import annotations

from benchmarks.workload import Bar, Workload

WORKLOAD = Workload(
    key="w3",
    title="W3: character GPT, 4 layers, 4 heads, width 128, context 64, batch 12, AdamW",
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
        "C by gcc, OpenBLAS": "c_peer:gcc+blas",
        "glassgrad compiled (MKL)": "glassgrad_peer:mkl",
    },
    reference="PyTorch eager",
    bars=(
        Bar("glassgrad compiled", ("torch.compile",), 0.8),
        Bar("glassgrad eager", ("PyTorch eager",), 0.95),
        Bar("glassgrad compiled (MKL)", ("torch.compile",), 0.7),
    ),
    check_steps=8,
    tolerance=1e-3,
    seconds=1.0,
)
