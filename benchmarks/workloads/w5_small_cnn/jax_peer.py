"""W5 in JAX: one jitted step; Adam written out as PyTorch defines it."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from benchmarks.workloads._jax import cross_entropy, stepper
from benchmarks.workloads.w5_small_cnn.problem import BETAS, EPSILON, RATE, batches, initial

LAYOUT = ("NCHW", "OIHW", "NCHW")


def convolve(parameters, name, x):
    y = jax.lax.conv_general_dilated(x, parameters[f"{name}.weight"], (1, 1), "SAME", dimension_numbers=LAYOUT)
    return jax.nn.relu(y + parameters[f"{name}.bias"][:, None, None])


def pool(x):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def loss_of(parameters, images, labels):
    x = pool(convolve(parameters, "0", images))
    x = pool(convolve(parameters, "3", x)).reshape(len(images), -1)
    x = jax.nn.relu(x @ parameters["7.weight"].T + parameters["7.bias"])
    return cross_entropy(x @ parameters["9.weight"].T + parameters["9.bias"], labels)


def step(state, images, labels):
    parameters, first, second, count = state
    loss, gradients = jax.value_and_grad(loss_of)(parameters, images, labels)
    count = count + 1
    beta1, beta2 = BETAS
    first = jax.tree.map(lambda old, g: beta1 * old + (1 - beta1) * g, first, gradients)
    second = jax.tree.map(lambda old, g: beta2 * old + (1 - beta2) * g * g, second, gradients)
    rate = RATE / (1 - beta1**count)
    root = jnp.sqrt(1 - beta2**count)

    def update(value, moment, square):
        return value - rate * moment / (jnp.sqrt(square) / root + EPSILON)

    return (jax.tree.map(update, parameters, first, second), first, second, count), loss


def build(_mode):
    parameters = initial()
    zeros = {name: 0 * value for name, value in parameters.items()}
    return stepper(step, (parameters, zeros, zeros, jnp.float32(0)), batches())
