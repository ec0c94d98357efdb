"""Layers and optimizers that the JAX peers on images share, in PyTorch's arrangement (N, C, H, W)."""

from __future__ import annotations

import jax
import jax.numpy as jnp

LAYOUT = ("NCHW", "OIHW", "NCHW")
NORM_EPSILON, NORM_MOMENTUM = 1e-5, 0.1


def convolve(x, weight, stride=1, padding=0, groups=1):
    """A convolution without bias."""
    border = ((padding, padding), (padding, padding))
    return jax.lax.conv_general_dilated(
        x, weight, (stride, stride), border, dimension_numbers=LAYOUT, feature_group_count=groups
    )


def convolve_transposed(x, weight, stride, padding):
    """A transposed convolution with PyTorch's weight (inputs, outputs, height, width), which is flipped."""
    reach = weight.shape[-1] - 1 - padding
    kernel = jnp.flip(weight, (2, 3)).swapaxes(0, 1)
    border = ((reach, reach), (reach, reach))
    return jax.lax.conv_general_dilated(
        x, kernel, (1, 1), border, lhs_dilation=(stride, stride), dimension_numbers=LAYOUT
    )


class Norms:
    """Batch norms of a forward pass; `now` collects the running statistics as they are after it."""

    def __init__(self, parameters, before):
        self.parameters, self.before, self.now = parameters, before, {}

    def __call__(self, name, x):
        mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
        count = x.size // x.shape[1]
        for kind, value in (("mean", mean), ("var", variance * count / (count - 1))):
            full = f"{name}.running_{kind}"
            self.now[full] = (1 - NORM_MOMENTUM) * self.before[full] + NORM_MOMENTUM * value
        scale = self.parameters[f"{name}.weight"] * jax.lax.rsqrt(variance + NORM_EPSILON)
        shift = self.parameters[f"{name}.bias"] - mean * scale
        return x * scale[:, None, None] + shift[:, None, None]


def statistics(parameters):
    """The running statistics of every batch norm at the beginning: those with a weight of one dimension."""
    norms = [(name.removesuffix(".weight"), value) for name, value in parameters.items()]
    norms = [(name, value) for name, value in norms if value.ndim == 1 and not name.endswith(".bias")]
    means = {f"{name}.running_mean": 0 * value for name, value in norms}
    return means | {f"{name}.running_var": 0 * value + 1 for name, value in norms}


def with_momentum(loss_of, rate, momentum):
    """The step of SGD with momentum; `loss_of` returns the loss and the running statistics."""

    def step(state, images, labels):
        parameters, speeds, running = state
        (loss, running), gradients = jax.value_and_grad(loss_of, has_aux=True)(parameters, running, images, labels)
        speeds = jax.tree.map(lambda old, g: momentum * old + g, speeds, gradients)
        return (jax.tree.map(lambda old, v: old - rate * v, parameters, speeds), speeds, running), loss

    return step


def beginning(parameters):
    """The state that `with_momentum` begins with."""
    return parameters, {name: 0 * value for name, value in parameters.items()}, statistics(parameters)


def adam(loss_of, rate, betas, epsilon):
    """The step of Adam."""
    beta1, beta2 = betas

    def step(state, *batch):
        parameters, first, second, count = state
        loss, gradients = jax.value_and_grad(loss_of)(parameters, *batch)
        count = count + 1
        first = jax.tree.map(lambda old, g: beta1 * old + (1 - beta1) * g, first, gradients)
        second = jax.tree.map(lambda old, g: beta2 * old + (1 - beta2) * g * g, second, gradients)
        scaled, root = rate / (1 - beta1**count), jnp.sqrt(1 - beta2**count)

        def update(value, moment, square):
            return value - scaled * moment / (jnp.sqrt(square) / root + epsilon)

        return (jax.tree.map(update, parameters, first, second), first, second, count), loss

    return step


def adam_beginning(parameters):
    """The state that `adam` begins with."""
    zeros = {name: 0 * value for name, value in parameters.items()}
    return parameters, zeros, zeros, jnp.float32(0)
