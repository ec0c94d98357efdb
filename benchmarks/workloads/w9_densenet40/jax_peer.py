"""W9 in JAX: one jitted step, with batch norm's running statistics and SGD with momentum as PyTorch defines them."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from benchmarks.workloads._jax import cross_entropy, stepper
from benchmarks.workloads._jax_layers import Norms, beginning, convolve, with_momentum
from benchmarks.workloads.w9_densenet40 import problem as p


def pool(x):
    return jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") / 4


def loss_of(parameters, running, images, labels):
    norm = Norms(parameters, running)
    x = convolve(images, parameters["conv.weight"], 1, 1)
    for name, inputs, outputs in p.layers():
        y, weight = jax.nn.relu(norm(f"{name}.norm", x)), parameters[f"{name}.conv.weight"]
        x = pool(convolve(y, weight)) if inputs == outputs else jnp.concatenate([x, convolve(y, weight, 1, 1)], 1)
    x = jax.nn.relu(norm("norm", x)).mean((2, 3))
    logits = x @ parameters["head.weight"].T + parameters["head.bias"]
    return cross_entropy(logits, labels), norm.now


def build(_mode):
    return stepper(with_momentum(loss_of, p.RATE, p.MOMENTUM), beginning(p.initial()), p.batches())
