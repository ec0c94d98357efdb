"""What the JAX peers share: batches as arrays, the jitted step with donated state, and the loop."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np


def stepper(step, state, arrays):
    """The `run` of ``step(state, *batch) -> (state, loss)``."""
    data = [tuple(jnp.asarray(part) for part in batch) for batch in zip(*arrays, strict=True)]
    compiled = jax.jit(step, donate_argnums=0)
    state = jax.tree.map(jnp.array, state)
    position = 0

    def run(count):
        nonlocal state, position
        loss = jnp.nan
        for _ in range(count):
            state, loss = compiled(state, *data[position])
            position = (position + 1) % len(data)
        jax.block_until_ready(state)
        return float(loss)

    run.weights = lambda: {
        name: np.array(value)
        for part in (state[0], state[-1])
        if isinstance(part, dict)
        for name, value in part.items()
    }
    return run


def cross_entropy(logits, labels):
    """Mean over all rows of -log softmax at the label."""
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], axis=-1)
    return -chosen.mean()
