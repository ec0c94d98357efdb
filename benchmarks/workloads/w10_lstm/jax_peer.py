"""W10 in JAX: one jitted step; Adam written out as PyTorch defines it."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from benchmarks.workloads._jax import cross_entropy, stepper
from benchmarks.workloads._jax_layers import adam, adam_beginning
from benchmarks.workloads.w10_lstm import problem as p


def layer_of(parameters, number, x):
    """A layer over the places, the first axis; what doesn't wait for the state is one product for all of them."""
    inner, outer = (parameters[f"lstm.weight_{side}_l{number}"].T for side in ("hh", "ih"))
    given = x @ outer + parameters[f"lstm.bias_ih_l{number}"] + parameters[f"lstm.bias_hh_l{number}"]

    def place(state, here):
        hidden, cell = state
        enter, forget, new, leave = jnp.split(here + hidden @ inner, 4, axis=-1)
        cell = jax.nn.sigmoid(forget) * cell + jax.nn.sigmoid(enter) * jnp.tanh(new)
        hidden = jax.nn.sigmoid(leave) * jnp.tanh(cell)
        return (hidden, cell), hidden

    zero = jnp.zeros((x.shape[1], p.HIDDEN))
    return jax.lax.scan(place, (zero, zero), given)[1]


def loss_of(parameters, sequences, labels):
    x = sequences.swapaxes(0, 1)
    for number in range(p.LAYERS):
        x = layer_of(parameters, number, x)
    return cross_entropy(x[-1] @ parameters["head.weight"].T + parameters["head.bias"], labels)


def build(_mode):
    return stepper(adam(loss_of, p.RATE, p.BETAS, p.EPSILON), adam_beginning(p.initial()), p.batches())
