"""Training steps in words that PyTorch and we have in common: both libraries run the same lines."""

from __future__ import annotations

import numpy as np


def loaded(model, library, values):
    """The model with these parameters; its running statistics stay as they begin."""
    model.load_state_dict({**model.state_dict(), **{name: library.tensor(value) for name, value in values.items()}})
    return model


def training(model, optimizer, loss_fn):
    """The step of a model whose last output is compared with the last part of the batch."""

    def step(*batch):
        loss = loss_fn(model(*batch[:-1]), batch[-1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def classifier(library, network, problem):
    """Model, optimizer and loss of a classifier trained by SGD with momentum."""
    model = loaded(network(library), library, problem.initial())
    optimizer = library.optim.SGD(model.parameters(), lr=problem.RATE, momentum=problem.MOMENTUM)
    return model, optimizer, library.nn.functional.cross_entropy


def weights_of(model):
    """What returns the model's parameters and running statistics as NumPy's arrays."""

    def weights():
        state = {name: np.array(value.detach().numpy()) for name, value in model.state_dict().items()}
        return {name: value for name, value in state.items() if value.ndim}

    return weights
