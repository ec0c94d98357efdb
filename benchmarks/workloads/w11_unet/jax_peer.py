"""W11 in JAX: one jitted step; Adam written out as PyTorch defines it."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from benchmarks.workloads._jax import stepper
from benchmarks.workloads._jax_layers import adam, adam_beginning, convolve
from benchmarks.workloads.w11_unet import problem as p


def convolved(parameters, name, x, stride=1, padding=1):
    return convolve(x, parameters[f"{name}.weight"], stride, padding) + parameters[f"{name}.bias"][:, None, None]


def normed(parameters, name, x):
    grouped = x.reshape(len(x), p.GROUPS, -1)
    mean, variance = grouped.mean(-1, keepdims=True), grouped.var(-1, keepdims=True)
    x = ((grouped - mean) * jax.lax.rsqrt(variance + p.NORM_EPSILON)).reshape(x.shape)
    return x * parameters[f"{name}.weight"][:, None, None] + parameters[f"{name}.bias"][:, None, None]


def block(parameters, name, x):
    for number in range(2):
        x = jax.nn.silu(normed(parameters, f"{name}.norm{number}", convolved(parameters, f"{name}.conv{number}", x)))
    return x


def loss_of(parameters, images, noise):
    x, seen = images, []
    for level in range(len(p.CHANNELS) - 1):
        seen.append(block(parameters, f"down.{level}", x))
        x = convolved(parameters, f"shrink.{level}", seen[-1], stride=2)
    x = block(parameters, f"down.{len(seen)}", x)
    for level in reversed(range(len(seen))):
        wide = x.repeat(2, axis=2).repeat(2, axis=3)
        x = block(parameters, f"up.{level}", jnp.concatenate([seen[level], wide], 1))
    return jnp.square(convolved(parameters, "head", x, padding=0) - noise).mean()


def build(_mode):
    return stepper(adam(loss_of, p.RATE, p.BETAS, p.EPSILON), adam_beginning(p.initial()), p.batches())
