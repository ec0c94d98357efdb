"""The same in PyTorch, with a cache of fixed shape as its users write it; mode `compile` compiles the step."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.generation import problem as p


class Block(nn.Module):
    """A block of the GPT that reads one token."""

    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(p.WIDTH)
        self.qkv = nn.Linear(p.WIDTH, 3 * p.WIDTH)
        self.out = nn.Linear(p.WIDTH, p.WIDTH)
        self.norm2 = nn.LayerNorm(p.WIDTH)
        self.up = nn.Linear(p.WIDTH, 4 * p.WIDTH)
        self.down = nn.Linear(4 * p.WIDTH, p.WIDTH)
        shape = (1, p.HEADS, p.CONTEXT, p.WIDTH // p.HEADS)
        self.register_buffer("keys", torch.zeros(shape), persistent=False)
        self.register_buffer("values", torch.zeros(shape), persistent=False)

    def forward(self, x, place, seen):
        q, k, v = self.qkv(self.norm1(x)).view(1, 1, 3, p.HEADS, p.WIDTH // p.HEADS).permute(2, 0, 3, 1, 4)
        self.keys.index_copy_(2, place, k)
        self.values.index_copy_(2, place, v)
        mixed = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=seen)
        x = x + self.out(mixed.transpose(1, 2).reshape(1, 1, p.WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    """Reads one token at a place and draws the next."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(p.TOKENS, p.WIDTH)
        self.positions = nn.Embedding(p.CONTEXT, p.WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(p.LAYERS)])
        self.norm = nn.LayerNorm(p.WIDTH)
        self.head = nn.Linear(p.WIDTH, p.TOKENS, bias=False)
        self.register_buffer("columns", torch.arange(p.CONTEXT), persistent=False)

    def forward(self, token, place, chance):
        x = self.tokens(token) + self.positions(place)
        seen = (self.columns <= place)[None]
        for block in self.blocks:
            x = block(x, place, seen)
        logits = self.head(self.norm(x))[:, -1].double()
        weights = ((logits - logits.amax(1, keepdim=True)) / p.TEMPERATURE).exp().cumsum(1)
        return (weights <= chance * weights[:, -1:]).sum(1, keepdim=True)


def build(mode):
    model = GPT().eval()
    model.load_state_dict({name: torch.from_numpy(value) for name, value in p.initial().items()})
    step = torch.compile(model, fullgraph=True) if mode == "compile" else model
    places = [torch.tensor([place]) for place in range(p.CONTEXT)]
    done = 0

    def run(count):
        nonlocal done
        with torch.inference_mode():
            for _ in range(count):
                deciding = torch.from_numpy(p.chances(done))
                token = torch.tensor([[p.prompt(done)]])
                text = [token]
                for place in range(p.TEXT - 1):
                    token = step(token, places[place], deciding[place])
                    text.append(token)
                done += 1
        return p.checksum(torch.cat(text, 1)[0].numpy())

    return run
