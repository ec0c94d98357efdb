"""Newer habits: torch.nn.attention-free blocks, parametrised inits, foreach-free optimizers, device contexts, set_default_device."""

import torch
from torch import Tensor, nn
from torch.nn import Parameter
from torch.nn import functional as F
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = Parameter(torch.ones(dim))

    def _norm(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x: Tensor) -> Tensor:
        return self._norm(x.float()).type_as(x) * self.weight


def precompute_freqs(dim: int, end: int, theta: float = 10000.0):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2)[: (dim // 2)].float() / dim))
    t = torch.arange(end, dtype=torch.float32)
    freqs = torch.outer(t, freqs)
    return torch.cos(freqs), torch.sin(freqs)


def rotate(x, cos, sin):
    x1, x2 = x[..., ::2], x[..., 1::2]
    return torch.stack((x1 * cos - x2 * sin, x1 * sin + x2 * cos), dim=-1).flatten(-2)


class SwiGLU(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.w1, self.w2, self.w3 = (
            nn.Linear(a, b, bias=False) for a, b in ((dim, hidden), (hidden, dim), (dim, hidden))
        )

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = RMSNorm(dim), RMSNorm(dim)
        self.wqkv = nn.Linear(dim, 3 * dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)
        self.ffn = SwiGLU(dim, 2 * dim)
        cos, sin = precompute_freqs(dim // heads, 16)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.wqkv(self.norm1(x)).reshape(b, t, 3, self.heads, c // self.heads).unbind(2)
        q, k, v = (y.transpose(1, 2) for y in (q, k, v))
        q, k = rotate(q, self.cos[:t], self.sin[:t]), rotate(k, self.cos[:t], self.sin[:t])
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.wo(y.transpose(1, 2).contiguous().view(b, t, c))
        return x + self.ffn(self.norm2(x))


net = nn.Sequential(Block(8, 2), Block(8, 2), RMSNorm(8))
with torch.no_grad():
    for i, p in enumerate(net.parameters()):
        if p.dim() > 1:
            p.copy_(torch.sin(torch.arange(p.numel(), dtype=torch.float32) * (i + 1)).view_as(p) * 0.4)
x = torch.cos(torch.arange(2 * 6 * 8, dtype=torch.float32)).view(2, 6, 8)
target = x.roll(1, dims=1)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2, betas=(0.9, 0.95), weight_decay=0.1, foreach=False)
scheduler = SequentialLR(
    optimizer,
    [LinearLR(optimizer, start_factor=0.1, total_iters=3), CosineAnnealingLR(optimizer, T_max=7)],
    milestones=[3],
)
for step in range(10):
    loss = F.huber_loss(net(x), target, delta=0.5)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad()
    if step % 3 == 0:
        print(f"{step} {loss.item():.4f} {norm.item():.3f} {scheduler.get_last_lr()[0]:.5f}")
print(
    isinstance(net[0].norm1.weight, nn.Parameter),
    sum(p.numel() for p in net.parameters()),
    len(list(net.named_buffers())),
)
print(list(net[0].state_dict()))
