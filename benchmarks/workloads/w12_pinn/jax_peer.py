"""W12 in JAX: one jitted step; Adam written out as PyTorch defines it."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from benchmarks.workloads._jax import stepper
from benchmarks.workloads._jax_layers import adam, adam_beginning
from benchmarks.workloads.w12_pinn import problem as p


def value(parameters, z):
    last = len(p.SIZES) - 2
    for number in range(last + 1):
        z = z @ parameters[f"layers.{number}.weight"].T + parameters[f"layers.{number}.bias"]
        z = z if number == last else jnp.tanh(z)
    return z


def loss_of(parameters, x, t, edge, wanted):
    def u(x, t):
        return value(parameters, jnp.concatenate([x, t], 1))

    def slopes(x, t):
        return jax.grad(lambda x, t: u(x, t).sum(), (0, 1))(x, t)

    u_x, u_t = slopes(x, t)
    u_xx = jax.grad(lambda x: slopes(x, t)[0].sum())(x)
    residual = u_t + u(x, t) * u_x - p.VISCOSITY * u_xx
    return jnp.square(residual).mean() + jnp.square(value(parameters, edge) - wanted).mean()


def build(_mode):
    return stepper(adam(loss_of, p.RATE, p.BETAS, p.EPSILON), adam_beginning(p.initial()), p.batches())
