"""W8 in JAX: one jitted step; Adam written out as PyTorch defines it."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from benchmarks.workloads._jax import stepper
from benchmarks.workloads._jax_layers import adam, adam_beginning, convolve, convolve_transposed
from benchmarks.workloads.w8_conv_vae import problem as p

COUNT = len(p.CHANNELS) - 1


def loss_of(parameters, images, noise, wanted):
    def bias(name):
        return parameters[f"{name}.bias"][:, None, None]

    x = images
    for number in range(COUNT):
        name = f"down.{number}"
        x = jax.nn.relu(convolve(x, parameters[f"{name}.weight"], p.STRIDE, p.PADDING) + bias(name))
    code = x.reshape(len(x), -1) @ parameters["code.weight"].T + parameters["code.bias"]
    mean, log_variance = code[:, : p.LATENT], code[:, p.LATENT :]
    sample = mean + jnp.exp(0.5 * log_variance) * noise
    x = jax.nn.relu(sample @ parameters["start.weight"].T + parameters["start.bias"])
    x = x.reshape(-1, p.CHANNELS[-1], p.SMALL, p.SMALL)
    for number in range(COUNT):
        name = f"up.{number}"
        x = convolve_transposed(x, parameters[f"{name}.weight"], p.STRIDE, p.PADDING) + bias(name)
        x = x if number == COUNT - 1 else jax.nn.relu(x)
    pixels = (jnp.maximum(x, 0) - x * wanted + jnp.log1p(jnp.exp(-jnp.abs(x)))).sum()
    divergence = -0.5 * (1 + log_variance - mean**2 - jnp.exp(log_variance)).sum()
    return (pixels + divergence) / len(images)


def build(_mode):
    return stepper(adam(loss_of, p.RATE, p.BETAS, p.EPSILON), adam_beginning(p.initial()), p.batches())
