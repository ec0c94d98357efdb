"""The networks that `--engine manual` trains, with a hand-written backward pass.

Parameters have the names of the models in `glassgrad.models`, so that weights can move between engines.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from glassgrad.manual.activations import ReLU, Tanh
from glassgrad.manual.conv import Conv2d, MaxPool2d
from glassgrad.manual.linear import Embedding, Flatten, Linear
from glassgrad.manual.losses import CrossEntropyLoss
from glassgrad.manual.net import Net
from glassgrad.manual.norm import BatchNorm1d
from glassgrad.manual.protocols import Array, Module, Optimizer


class NamesMLP(Module):
    """Predicts the next character from the embeddings of the last few: tanh(batch_norm(W1 [e1 .. ec])) W2.

    Shapes: tokens (n, context) of integers, logits (n, tokens). Going back, the layers are taken in reverse.
    """

    def __init__(
        self,
        tokens: int = 27,
        context: int = 3,
        embedding: int = 10,
        hidden: int = 200,
        norm_momentum: float = 0.01,
        rng: np.random.Generator | None = None,
    ) -> None:
        rng = np.random.default_rng() if rng is None else rng
        self.embedding = Embedding(tokens, embedding, rng=rng)
        self.hidden = Linear(context * embedding, hidden, rng=rng)
        self.norm = BatchNorm1d(hidden, momentum=norm_momentum)
        self.output = Linear(hidden, tokens, rng=rng)
        self.flat, self.tanh = Flatten(), Tanh()
        for layer, spread in ((self.hidden, 5 / 3 / np.sqrt(context * embedding)), (self.output, 0.1)):
            layer.weight.data[...] = rng.normal(0, spread, layer.weight.shape)
            if layer.bias is not None:
                layer.bias.data[...] = 0

    def forward(self, tokens: Array) -> Array:
        embedded = self.flat(self.embedding(tokens))
        return self.output(self.tanh(self.norm(self.hidden(embedded))))

    def backward(self, dlogits: Array) -> None:
        dhidden = self.norm.backward(self.tanh.backward(self.output.backward(dlogits)))
        self.embedding.backward(self.flat.backward(self.hidden.backward(dhidden)))


def mlp(sizes: Sequence[int], rng: np.random.Generator | None = None) -> Net:
    """Linear layers of the given sizes with ReLU in between, such as (784, 1024, 10) for digits."""
    rng = np.random.default_rng() if rng is None else rng
    layers: list[Any] = []
    for inputs, outputs in pairwise(sizes):
        layers += [Linear(inputs, outputs, rng=rng), ReLU()]
    return Net(*layers[:-1])


def small_cnn(classes: int = 10, rng: np.random.Generator | None = None) -> Net:
    """Two convolutions, two poolings and two linear layers for images of shape (n, 1, 28, 28)."""
    rng = np.random.default_rng() if rng is None else rng
    return Net(
        Conv2d(1, 32, 3, padding=1, rng=rng),
        ReLU(),
        MaxPool2d(2),
        Conv2d(32, 64, 3, padding=1, rng=rng),
        ReLU(),
        MaxPool2d(2),
        Flatten(),
        Linear(64 * 7 * 7, 128, rng=rng),
        ReLU(),
        Linear(128, classes, rng=rng),
    )


def classifier_step(
    model: Any, optimizer: Optimizer, inputs: Array, targets: Array, loss: CrossEntropyLoss | None = None
) -> float:
    """Make one training step by hand and return the loss: zero_grad, forward, backward, step.

    >>> from glassgrad import manual
    >>> rng = np.random.default_rng(0)
    >>> net = mlp((2, 8, 2), rng)
    >>> x = rng.normal(size=(50, 2)).astype(np.float32)
    >>> y = (x[:, 0] > 0).astype(int)
    >>> sgd = manual.SGD(net.parameters(), lr=0.5)
    >>> losses = [classifier_step(net, sgd, x, y) for _ in range(50)]
    >>> losses[-1] < 0.3 * losses[0]
    True
    """
    loss = CrossEntropyLoss() if loss is None else loss
    optimizer.zero_grad()
    value = loss(model(inputs), targets)
    model.backward(loss.backward())
    optimizer.step()
    return value
