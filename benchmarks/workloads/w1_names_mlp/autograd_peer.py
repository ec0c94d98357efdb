"""W1 in HIPS autograd."""

from __future__ import annotations

import autograd.numpy as np
from autograd import value_and_grad

from benchmarks.workloads.w1_names_mlp.problem import BATCH, EPSILON, MOMENTUM, RATE, batches, initial


def build(_mode):
    parameters = list(initial().values())
    running_mean, running_var = np.zeros_like(parameters[3]), np.ones_like(parameters[3])
    contexts, targets = batches()
    rows = np.arange(BATCH)
    statistics = {}

    def loss_of(values, x, y):
        table, w1, b1, gain, shift, w2, b2 = values
        before = np.dot(np.reshape(table[x], (BATCH, -1)), w1.T) + b1
        mean = np.mean(before, axis=0)
        centred = before - mean
        variance = np.mean(centred * centred, axis=0)
        statistics["mean"], statistics["variance"] = mean, variance
        hidden = np.tanh(centred / np.sqrt(variance + EPSILON) * gain + shift)
        logits = np.dot(hidden, w2.T) + b2
        shifted = logits - np.max(logits, axis=1, keepdims=True)
        return np.mean(np.log(np.sum(np.exp(shifted), axis=1)) - shifted[rows, y])

    value_and_gradient = value_and_grad(loss_of)
    position = 0

    def run(count):
        nonlocal position
        loss = np.nan
        for _ in range(count):
            loss, gradients = value_and_gradient(parameters, contexts[position], targets[position])
            position = (position + 1) % len(contexts)
            for value, gradient in zip(parameters, gradients, strict=True):
                value -= RATE * gradient
            mean, variance = (statistics[name]._value for name in ("mean", "variance"))
            running_mean[...] += MOMENTUM * (mean - running_mean)
            running_var[...] += MOMENTUM * (variance * (BATCH / (BATCH - 1)) - running_var)
        return float(loss)

    return run
