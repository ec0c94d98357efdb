"""W2 in bfloat16: the same perceptron under autocast; weights, optimizer and loss stay in float32."""

from __future__ import annotations

from benchmarks.workload import Bar, Workload

WORKLOAD = Workload(
    key="w2-bf16",
    title="W2 in bfloat16: MNIST MLP 784-1024-1024-1024-10, batch 512, RMSprop with momentum, autocast",
    package=__name__,
    peers={
        "PyTorch eager": "torch_peer:eager",
        "torch.compile": "torch_peer:compile",
        "glassgrad compiled": "glassgrad_peer:llvm",
        "glassgrad compiled, float32": "glassgrad_peer:float32",
    },
    reference="PyTorch eager",
    bars=(
        Bar("glassgrad compiled", ("PyTorch eager", "torch.compile"), 1.0),
        Bar("glassgrad compiled", ("glassgrad compiled, float32",), 0.667),
    ),
    check_steps=8,
    tolerance=1e-2,
    seconds=1.0,
)
