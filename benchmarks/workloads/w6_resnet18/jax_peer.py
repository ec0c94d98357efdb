"""W6 in JAX: one jitted step, with batch norm's running statistics and SGD with momentum as PyTorch defines them."""

from __future__ import annotations

import jax

from benchmarks.workloads._jax import cross_entropy, stepper
from benchmarks.workloads._jax_layers import Norms, beginning, convolve, with_momentum
from benchmarks.workloads.w6_resnet18 import problem as p


def loss_of(parameters, running, images, labels):
    norm = Norms(parameters, running)
    x = jax.nn.relu(norm("norm", convolve(images, parameters["conv.weight"], 1, 1)))
    for name, _, _, stride in p.blocks():
        y = jax.nn.relu(norm(f"{name}.norm1", convolve(x, parameters[f"{name}.conv1.weight"], stride, 1)))
        y = norm(f"{name}.norm2", convolve(y, parameters[f"{name}.conv2.weight"], 1, 1))
        if stride > 1:
            x = norm(f"{name}.short.1", convolve(x, parameters[f"{name}.short.0.weight"], stride))
        x = jax.nn.relu(y + x)
    logits = x.mean((2, 3)) @ parameters["head.weight"].T + parameters["head.bias"]
    return cross_entropy(logits, labels), norm.now


def build(_mode):
    return stepper(with_momentum(loss_of, p.RATE, p.MOMENTUM), beginning(p.initial()), p.batches())
