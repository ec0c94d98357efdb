"""W7 in JAX: one jitted step, with batch norm's running statistics and SGD with momentum as PyTorch defines them."""

from __future__ import annotations

import jax

from benchmarks.workloads._jax import cross_entropy, stepper
from benchmarks.workloads._jax_layers import Norms, beginning, convolve, with_momentum
from benchmarks.workloads.w7_mobilenetv2 import problem as p


def loss_of(parameters, running, images, labels):
    norm, relu6 = Norms(parameters, running), jax.nn.relu6
    x = relu6(norm("norm", convolve(images, parameters["conv.weight"], 1, 1)))
    for name, inputs, hidden, outputs, stride in p.blocks():
        y = x
        if hidden != inputs:
            y = relu6(norm(f"{name}.norm1", convolve(y, parameters[f"{name}.widen.weight"])))
        y = relu6(norm(f"{name}.norm2", convolve(y, parameters[f"{name}.depthwise.weight"], stride, 1, hidden)))
        y = norm(f"{name}.norm3", convolve(y, parameters[f"{name}.narrow.weight"]))
        x = x + y if stride == 1 and inputs == outputs else y
    x = relu6(norm("last_norm", convolve(x, parameters["last.weight"])))
    logits = x.mean((2, 3)) @ parameters["head.weight"].T + parameters["head.bias"]
    return cross_entropy(logits, labels), norm.now


def build(_mode):
    return stepper(with_momentum(loss_of, p.RATE, p.MOMENTUM), beginning(p.initial()), p.batches())
