"""The models of `glassgrad train`, written in PyTorch with the same layers under the same names."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    """`glassgrad.models.gpt.Block`."""

    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        dropout = self.dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(*parts.permute(2, 0, 3, 1, 4), dropout_p=dropout, is_causal=True)
        taken = self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        x = x + F.dropout(taken, self.dropout, self.training)
        return x + F.dropout(self.down(F.gelu(self.up(self.norm2(x)))), self.dropout, self.training)


class GPT(nn.Module):
    """`glassgrad.models.GPT`."""

    def __init__(self, tokens, context, width, heads, layers, dropout):
        super().__init__()
        self.dropout = dropout
        self.tokens, self.positions = nn.Embedding(tokens, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList([Block(width, heads, dropout) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, tokens, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        x = F.dropout(x, self.dropout, self.training)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class CharRNN(nn.Module):
    """`glassgrad.models.CharRNN`."""

    def __init__(self, tokens, cell, embedding, hidden, layers, dropout):
        super().__init__()
        self.dropout = dropout
        self.embedding = nn.Embedding(tokens, embedding)
        between = dropout if layers > 1 else 0.0
        network = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}[cell]
        self.network = network(embedding, hidden, num_layers=layers, batch_first=True, dropout=between)
        self.output = nn.Linear(hidden, tokens)

    def forward(self, tokens):
        hidden, _ = self.network(F.dropout(self.embedding(tokens), self.dropout, self.training))
        return self.output(F.dropout(hidden, self.dropout, self.training))


def image_model(config, size, classes):
    """The `mlp` or the `cnn` of `glassgrad train digits` and `mnist`."""
    if config.model == "cnn":
        channels = config.channels
        return nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(channels, 2 * channels, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(2 * channels * (size[0] // 4) * (size[1] // 4), config.hidden),
            nn.ReLU(),
            nn.Linear(config.hidden, classes),
        )
    layers, inputs = [], size[0] * size[1]
    for _ in range(config.layers):
        layers += [nn.Linear(inputs, config.hidden), nn.ReLU()]
        inputs = config.hidden
    return nn.Sequential(*layers, nn.Linear(inputs, classes))
