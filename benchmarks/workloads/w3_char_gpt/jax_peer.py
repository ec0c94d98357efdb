"""W3 in JAX: one jitted step; AdamW written out as PyTorch defines it."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from benchmarks.workloads._jax import cross_entropy, stepper
from benchmarks.workloads.w3_char_gpt import problem as p


def norm(parameters, name, x):
    mean = x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True)
    scaled = (x - mean) * jax.lax.rsqrt(variance + p.NORM_EPSILON)
    return scaled * parameters[f"{name}.weight"] + parameters[f"{name}.bias"]


def linear(parameters, name, x):
    return x @ parameters[f"{name}.weight"].T + parameters[f"{name}.bias"]


def attend(parameters, name, x):
    batch, length, width = x.shape
    qkv = linear(parameters, f"{name}.qkv", x).reshape(batch, length, 3, p.HEADS, width // p.HEADS)
    mixed = jax.nn.dot_product_attention(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2], is_causal=True)
    return linear(parameters, f"{name}.out", mixed.reshape(batch, length, width))


def loss_of(parameters, tokens, targets):
    x = parameters["tokens.weight"][tokens] + parameters["positions.weight"][: tokens.shape[1]]
    for layer in range(p.LAYERS):
        name = f"blocks.{layer}"
        x = x + attend(parameters, name, norm(parameters, f"{name}.norm1", x))
        hidden = jax.nn.gelu(linear(parameters, f"{name}.up", norm(parameters, f"{name}.norm2", x)), approximate=False)
        x = x + linear(parameters, f"{name}.down", hidden)
    return cross_entropy(norm(parameters, "norm", x) @ parameters["head.weight"].T, targets)


def step(state, tokens, targets):
    parameters, first, second, count = state
    loss, gradients = jax.value_and_grad(loss_of)(parameters, tokens, targets)
    count = count + 1
    beta1, beta2 = p.BETAS
    first = jax.tree.map(lambda old, g: beta1 * old + (1 - beta1) * g, first, gradients)
    second = jax.tree.map(lambda old, g: beta2 * old + (1 - beta2) * g * g, second, gradients)
    rate = p.RATE / (1 - beta1**count)
    root = jnp.sqrt(1 - beta2**count)

    def update(value, moment, square):
        return value * (1 - p.RATE * p.DECAY) - rate * moment / (jnp.sqrt(square) / root + p.EPSILON)

    return (jax.tree.map(update, parameters, first, second), first, second, count), loss


def build(_mode):
    parameters = p.initial()
    zeros = {name: 0 * value for name, value in parameters.items()}
    return stepper(step, (parameters, zeros, zeros, jnp.float32(0)), p.batches())
