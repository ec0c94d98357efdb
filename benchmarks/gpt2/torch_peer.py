"""GPT-2 small in PyTorch, its head tied to its embedding; mode `compile` hands the whole step to torch.compile."""

from __future__ import annotations

import itertools

import torch
from torch import nn, optim
from torch.nn import functional as F

from benchmarks.gpt2 import problem as p


class Block(nn.Module):
    """Pre-norm attention and MLP, each added to the stream."""

    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(p.WIDTH)
        self.qkv = nn.Linear(p.WIDTH, 3 * p.WIDTH)
        self.out = nn.Linear(p.WIDTH, p.WIDTH)
        self.norm2 = nn.LayerNorm(p.WIDTH)
        self.up = nn.Linear(p.WIDTH, 4 * p.WIDTH)
        self.down = nn.Linear(4 * p.WIDTH, p.WIDTH)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, p.HEADS, width // p.HEADS).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    """Token and position embeddings, blocks, and a head that is the token embedding."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(p.TOKENS, p.WIDTH)
        self.positions = nn.Embedding(p.CONTEXT, p.WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(p.LAYERS)])
        self.norm = nn.LayerNorm(p.WIDTH)
        self.head = nn.Linear(p.WIDTH, p.TOKENS, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def build(mode):
    model = GPT()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(p.weight(name, tuple(parameter.shape))))
    optimizer = optim.AdamW(model.parameters(), lr=p.RATE, betas=p.BETAS, eps=p.EPSILON, weight_decay=p.DECAY)

    def step(tokens, targets):
        loss = F.cross_entropy(model(tokens).view(-1, p.TOKENS), targets.view(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    if mode == "compile":
        step = torch.compile(step)
    data = itertools.cycle([tuple(map(torch.from_numpy, batch)) for batch in p.batches()])

    def run(count):
        for _ in range(count):
            loss = step(*next(data))
        return loss.item()

    return run
