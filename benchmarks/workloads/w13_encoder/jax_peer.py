"""W13 in JAX: one jitted step; Adam written out as PyTorch defines it."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp

from benchmarks.workloads._jax import cross_entropy, stepper
from benchmarks.workloads._jax_layers import adam, adam_beginning
from benchmarks.workloads.w13_encoder import problem as p


class Dropout:
    """Dropout of one step; each call draws from a key of its own."""

    def __init__(self, key, chance):
        self.key, self.chance = key, chance

    def __call__(self, x):
        if not self.chance:
            return x
        self.key, here = jax.random.split(self.key)
        return jnp.where(jax.random.bernoulli(here, 1 - self.chance, x.shape), x / (1 - self.chance), 0)


def linear(parameters, name, x):
    return x @ parameters[f"{name}.weight"].T + parameters[f"{name}.bias"]


def norm(parameters, name, x):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    scaled = (x - mean) * jax.lax.rsqrt(variance + p.NORM_EPSILON)
    return scaled * parameters[f"{name}.weight"] + parameters[f"{name}.bias"]


def attend(parameters, name, x, drop):
    batch, length, width = x.shape
    qkv = x @ parameters[f"{name}.in_proj_weight"].T + parameters[f"{name}.in_proj_bias"]
    q, k, v = qkv.reshape(batch, length, 3, p.HEADS, width // p.HEADS).transpose(2, 0, 3, 1, 4)
    weights = jax.nn.softmax(q @ k.swapaxes(-1, -2) / jnp.sqrt(width / p.HEADS), axis=-1)
    mixed = (drop(weights) @ v).transpose(0, 2, 1, 3).reshape(batch, length, width)
    return linear(parameters, f"{name}.out_proj", mixed)


def loss_of(chance, parameters, tokens, labels, key):
    drop = Dropout(key, chance)
    x = parameters["tokens.weight"][tokens] + parameters["positions.weight"]
    for layer in range(p.LAYERS):
        name = f"encoder.layers.{layer}"
        x = norm(parameters, f"{name}.norm1", x + drop(attend(parameters, f"{name}.self_attn", x, drop)))
        inner = drop(jax.nn.relu(linear(parameters, f"{name}.linear1", x)))
        x = norm(parameters, f"{name}.norm2", x + drop(linear(parameters, f"{name}.linear2", inner)))
    return cross_entropy(linear(parameters, "head", x.mean(1)), labels)


def step_of(chance):
    """The step of Adam, whose count of steps is folded into the key."""
    root = jax.random.key(0)
    update = adam(partial(loss_of, chance), p.RATE, p.BETAS, p.EPSILON)
    return lambda state, *batch: update(state, *batch, jax.random.fold_in(root, state[-1].astype(int)))


def build(_mode):
    timed, checked = (stepper(step_of(chance), adam_beginning(p.initial()), p.batches()) for chance in (p.DROPOUT, 0.0))
    timed.check = checked
    return timed
