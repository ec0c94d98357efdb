"""W7: depthwise and 1x1 convolutions, batch norm and ReLU6: little arithmetic for much memory."""

from __future__ import annotations

from benchmarks.workload import Bar, Workload

WORKLOAD = Workload(
    key="w7",
    title="W7: MobileNetV2 in CIFAR form, batch 32 of 3x32x32, SGD with momentum",
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
        Bar("glassgrad compiled", ("PyTorch eager", "torch.compile", "JAX jit"), 0.6),
        Bar("glassgrad eager", ("PyTorch eager",), 1.1),
    ),
    # The loss of step 3 depends on rounding: 2.392 in float64, 2.392 to 2.402 from weights that differ by one ulp.
    check_steps=2,
    tolerance=1e-3,
    seconds=2.0,
)
