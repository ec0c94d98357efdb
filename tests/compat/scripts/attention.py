"""Attention written out: einsum, masked_fill, a tril buffer, ModuleList, ParameterList, a state_dict of all of them."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Head(nn.Module):
    def __init__(self, n_embd, head_size, block_size):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))

    def forward(self, x):
        B, T, C = x.shape
        k, q, v = self.key(x), self.query(x), self.value(x)
        wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        return F.softmax(wei, dim=-1) @ v


class MultiHead(nn.Module):
    def __init__(self, heads, n_embd, block_size):
        super().__init__()
        self.heads = nn.ModuleList([Head(n_embd, n_embd // heads, block_size) for _ in range(heads)])
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(1) * (i + 1)) for i in range(heads)])
        self.proj = nn.Linear(n_embd, n_embd)
        self.register_buffer("calls", torch.tensor(0), persistent=False)

    def forward(self, x):
        self.calls += 1
        out = torch.cat([s * h(x) for s, h in zip(self.scales, self.heads)], dim=-1)
        return self.proj(out)


def einsum_attention(q, k, v, mask=None):
    scores = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return torch.einsum("bhij,bhjd->bhid", scores.softmax(dim=-1), v)


model = MultiHead(2, 8, 16)
with torch.no_grad():
    for i, (name, p) in enumerate(model.named_parameters()):
        p.copy_(torch.linspace(-1, 1, p.numel()).view_as(p) * (i + 1) / 5)
x = torch.sin(torch.arange(2 * 5 * 8).float()).reshape(2, 5, 8)
y = model(x)
y.mean().backward()
print(sorted(model.state_dict()))
print(y.shape, [round(v, 4) for v in y[0, 0, :3].tolist()])
print([round(p.grad.norm().item(), 4) for p in model.parameters()])
print(int(model.calls), "calls" in model.state_dict(), dict(model.named_buffers()).keys())

q = torch.cos(torch.arange(2 * 2 * 3 * 4).float()).view(2, 2, 3, 4)
mask = torch.ones(3, 3, dtype=torch.bool).tril()
a = einsum_attention(q, q, q, mask)
b = F.scaled_dot_product_attention(q, q, q, is_causal=True)
print(torch.allclose(a, b, atol=1e-6), a.sum().item().__round__(3))
