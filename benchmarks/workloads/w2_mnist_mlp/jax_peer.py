"""W2 in JAX: one jitted step; RMSprop written out as PyTorch defines it."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from benchmarks.workloads._jax import cross_entropy, stepper
from benchmarks.workloads.w2_mnist_mlp.problem import DECAY, EPSILON, MOMENTUM, RATE, WIDTHS, batches, initial

LAST = 2 * (len(WIDTHS) - 2)


def loss_of(parameters, images, labels):
    value = images
    for index in range(0, LAST + 1, 2):
        value = value @ parameters[f"{index}.weight"].T + parameters[f"{index}.bias"]
        if index < LAST:
            value = jax.nn.relu(value)
    return cross_entropy(value, labels)


def step(state, images, labels):
    parameters, squares, velocity = state
    loss, gradients = jax.value_and_grad(loss_of)(parameters, images, labels)
    squares = jax.tree.map(lambda old, g: DECAY * old + (1 - DECAY) * g * g, squares, gradients)
    velocity = jax.tree.map(
        lambda old, g, square: MOMENTUM * old + g / (jnp.sqrt(square) + EPSILON), velocity, gradients, squares
    )
    parameters = jax.tree.map(lambda value, moving: value - RATE * moving, parameters, velocity)
    return (parameters, squares, velocity), loss


def build(_mode):
    parameters = initial()
    zeros = {name: 0 * value for name, value in parameters.items()}
    return stepper(step, (parameters, zeros, zeros), batches())
