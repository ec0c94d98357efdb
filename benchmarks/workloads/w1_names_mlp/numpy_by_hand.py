"""W1 written out in NumPy: forward, backward and update by hand, intermediates reused."""

from __future__ import annotations

import numpy as np

from benchmarks.workloads.w1_names_mlp.problem import BATCH, CONTEXT, EPSILON, MOMENTUM, RATE, WIDTH, batches, initial


def build(_mode):
    state = initial()
    table, w1, b1, gain, shift, w2, b2 = state.values()
    running_mean, running_var = np.zeros_like(gain), np.ones_like(gain)
    contexts, targets = batches()
    rows = np.arange(BATCH)
    position = 0

    def step():
        nonlocal position
        x, y = contexts[position], targets[position]
        position = (position + 1) % len(contexts)
        # forward
        embedded = table[x].reshape(BATCH, CONTEXT * WIDTH)
        before = embedded @ w1.T + b1
        mean = before.mean(axis=0)
        centred = before - mean
        variance = np.square(centred).mean(axis=0)
        inverse = 1 / np.sqrt(variance + EPSILON)
        normal = centred * inverse
        hidden = np.tanh(normal * gain + shift)
        logits = hidden @ w2.T + b2
        shifted = logits - logits.max(axis=1, keepdims=True)
        exponentials = np.exp(shifted)
        total = exponentials.sum(axis=1, keepdims=True)
        loss = (np.log(total[:, 0]) - shifted[rows, y]).mean()
        # backward
        dlogits = exponentials / total
        dlogits[rows, y] -= 1
        dlogits *= 1 / BATCH
        dhidden = dlogits @ w2
        dscaled = dhidden * (1 - hidden * hidden)
        dgain = (dscaled * normal).sum(axis=0)
        dshift = dscaled.sum(axis=0)
        dbefore = gain * inverse * (dscaled - (dshift + normal * dgain) * (1 / BATCH))
        dembedded = (dbefore @ w1).reshape(-1, WIDTH)
        dtable = np.zeros_like(table)
        np.add.at(dtable, x.reshape(-1), dembedded)
        # update
        w2[...] -= RATE * (dlogits.T @ hidden)
        b2[...] -= RATE * dlogits.sum(axis=0)
        gain[...] -= RATE * dgain
        shift[...] -= RATE * dshift
        w1[...] -= RATE * (dbefore.T @ embedded)
        b1[...] -= RATE * dbefore.sum(axis=0)
        table[...] -= RATE * dtable
        running_mean[...] += MOMENTUM * (mean - running_mean)
        running_var[...] += MOMENTUM * (variance * (BATCH / (BATCH - 1)) - running_var)
        return loss

    def run(count):
        loss = np.nan
        for _ in range(count):
            loss = step()
        return float(loss)

    return run
