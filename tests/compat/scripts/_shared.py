"""Shared by several scripts: equal weights and data in both libraries, and a training loop that prints."""

import numpy as np
import torch


def fill(model):
    """Equal weights in both libraries."""
    model.double()
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(torch.from_numpy(0.4 * np.cos(np.arange(p.numel()) * 0.7 + i).reshape(tuple(p.shape))))
    return model


def data(*shape, at=0.0):
    return torch.from_numpy(np.sin(np.arange(int(np.prod(shape))) * 0.9 + at).reshape(shape))


def fit(model, loss_of, steps=3, lr=0.05):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
    print(type(model).__name__, sum(p.numel() for p in model.parameters()), round(loss.item(), 6))
