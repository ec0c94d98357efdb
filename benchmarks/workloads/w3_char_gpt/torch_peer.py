"""W3 in PyTorch as its users write it; mode `compile` hands the whole step to torch.compile."""

from __future__ import annotations

import torch
from torch import nn, optim
from torch.nn import functional as F

from benchmarks.workloads._torch import stepper
from benchmarks.workloads.w3_char_gpt import problem as p


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

    def attend(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, p.HEADS, width // p.HEADS).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    """Token and position embeddings, blocks, and a head."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(p.VOCABULARY, p.WIDTH)
        self.positions = nn.Embedding(p.CONTEXT, p.WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(p.LAYERS)])
        self.norm = nn.LayerNorm(p.WIDTH)
        self.head = nn.Linear(p.WIDTH, p.VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def loss_fn(logits, targets):
    """Mean over all places of all sequences."""
    return F.cross_entropy(logits.view(-1, p.VOCABULARY), targets.view(-1))


def parts():
    """Model, optimizer and loss."""
    model = GPT()
    model.load_state_dict({name: torch.from_numpy(value) for name, value in p.initial().items()})
    optimizer = optim.AdamW(model.parameters(), lr=p.RATE, betas=p.BETAS, eps=p.EPSILON, weight_decay=p.DECAY)
    return model, optimizer, loss_fn


def build(mode):
    model, optimizer, _ = parts()

    def step(tokens, targets):
        loss = loss_fn(model(tokens), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return stepper(step, mode, p.batches())
