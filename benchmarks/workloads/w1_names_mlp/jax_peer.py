"""W1 in JAX: `jit` calls one compiled step a batch, `scan` runs many steps inside one compiled loop."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp

from benchmarks.workloads.w1_names_mlp.problem import BATCH, EPSILON, HIDDEN, MOMENTUM, RATE, batches, initial

CHUNK = 256


def loss_of(parameters, running, x, y):
    embedded = parameters["0.weight"][x].reshape(BATCH, -1)
    before = embedded @ parameters["2.weight"].T + parameters["2.bias"]
    mean, variance = before.mean(axis=0), before.var(axis=0)
    normal = (before - mean) * jax.lax.rsqrt(variance + EPSILON)
    hidden = jnp.tanh(normal * parameters["3.weight"] + parameters["3.bias"])
    logits = hidden @ parameters["5.weight"].T + parameters["5.bias"]
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1)
    update = (mean, variance * (BATCH / (BATCH - 1)))
    return -chosen.mean(), jax.tree.map(lambda old, new: old + MOMENTUM * (new - old), running, update)


def step(carry, batch):
    parameters, running = carry
    (loss, running), gradients = jax.value_and_grad(loss_of, has_aux=True)(parameters, running, *batch)
    parameters = jax.tree.map(lambda value, gradient: value - RATE * gradient, parameters, gradients)
    return (parameters, running), loss


def build(mode):
    carry = (jax.tree.map(jnp.asarray, initial()), (jnp.zeros(HIDDEN), jnp.ones(HIDDEN)))
    contexts, targets = (jnp.asarray(array) for array in batches())
    data = list(zip(contexts, targets, strict=True))
    one_step = jax.jit(step, donate_argnums=0)
    many_steps = jax.jit(partial(jax.lax.scan, step), donate_argnums=0)
    position = 0
    from_here = {}

    def scan(count):
        """One compiled loop over the next `count` batches."""
        nonlocal carry, position
        if (position, count) not in from_here:
            order = (position + jnp.arange(count)) % len(data)
            from_here[position, count] = contexts[order], targets[order]
        carry, losses = many_steps(carry, from_here[position, count])
        position = (position + count) % len(data)
        return losses[-1]

    def run(count):
        nonlocal carry, position
        loss = jnp.nan
        while mode == "scan" and count > 0:
            loss = scan(min(count, CHUNK))
            count -= CHUNK
        for _ in range(count):
            carry, loss = one_step(carry, data[position])
            position = (position + 1) % len(data)
        return float(loss)

    assert len(data) == CHUNK
    if mode == "scan":
        run.chunk = CHUNK
    return run
