"""Attention in several forms: a vision transformer, a perceiver, an MLP mixer, a decoder with rotary places."""

from functools import partial
import torch
import torch.nn as nn
import torch.nn.functional as F

from _shared import data, fill, fit


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm, self.fn = nn.LayerNorm(dim), fn

    def forward(self, x, **kwargs):
        return self.fn(self.norm(x), **kwargs)


class Attention(nn.Module):
    def __init__(self, dim, heads, context_dim=None):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_kv = nn.Linear(context_dim or dim, 2 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def forward(self, x, context=None):
        q, (k, v) = self.to_q(x), self.to_kv(x if context is None else context).chunk(2, dim=-1)
        q, k, v = (t.view(*t.shape[:2], self.heads, -1).transpose(1, 2) for t in (q, k, v))
        sim = torch.einsum("bhid,bhjd->bhij", q, k) * self.scale
        out = torch.einsum("bhij,bhjd->bhid", sim.softmax(dim=-1), v)
        return self.to_out(out.transpose(1, 2).reshape(*x.shape))


def mlp(dim):
    return nn.Sequential(nn.Linear(dim, dim * 2), nn.GELU(), nn.Dropout(0.0), nn.Linear(dim * 2, dim))


class ViT(nn.Module):
    def __init__(self, image=8, patch=4, dim=8, depth=2, heads=2, classes=3):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(patch * patch, dim)
        self.pos = nn.Parameter(torch.randn(1, (image // patch) ** 2 + 1, dim))
        self.cls = nn.Parameter(torch.randn(1, 1, dim))
        self.layers = nn.ModuleList([])
        for _ in range(depth):
            self.layers.append(nn.ModuleList([PreNorm(dim, Attention(dim, heads)), PreNorm(dim, mlp(dim))]))
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, classes))

    def forward(self, img):
        b, p = img.shape[0], self.patch
        x = img.unfold(2, p, p).unfold(3, p, p).reshape(b, -1, p * p)
        x = torch.cat((self.cls.expand(b, -1, -1), self.embed(x)), dim=1)
        x += self.pos[:, : x.shape[1]]
        for attn, ff in self.layers:
            x = attn(x) + x
            x = ff(x) + x
        return self.head(x[:, 0])


images, labels = data(2, 1, 8, 8), torch.tensor([0, 2])
vit = fill(ViT())
fit(vit, lambda: F.cross_entropy(vit(images), labels))


class Perceiver(nn.Module):
    def __init__(self, dim=4, latents=3, latent_dim=8, depth=2):
        super().__init__()
        self.latents = nn.Parameter(torch.randn(latents, latent_dim))
        shared = PreNorm(latent_dim, Attention(latent_dim, 2))
        self.layers = nn.ModuleList([nn.ModuleList([Attention(latent_dim, 1, dim), shared]) for _ in range(depth)])
        self.out = nn.Linear(latent_dim, 3)

    def forward(self, data):
        x = self.latents.unsqueeze(0).repeat(data.shape[0], 1, 1)
        for cross, inner in self.layers:
            x = cross(x, context=data) + x
            x = inner(x) + x
        return self.out(x.mean(dim=-2))


perceiver, tokens = fill(Perceiver()), data(2, 5, 4)
fit(perceiver, lambda: F.cross_entropy(perceiver(tokens), labels))
print(len(list(perceiver.parameters())), len(perceiver.state_dict()))


def feed(dim, hidden, dense=nn.Linear):
    return nn.Sequential(dense(dim, hidden), nn.GELU(), dense(hidden, dim))


class Mixer(nn.Module):
    def __init__(self, patches=4, dim=6, depth=2):
        super().__init__()
        chan_first, chan_last = partial(nn.Conv1d, kernel_size=1), nn.Linear
        self.net = nn.Sequential(
            *[
                nn.Sequential(PreNorm(dim, feed(patches, 5, chan_first)), PreNorm(dim, feed(dim, 5, chan_last)))
                for _ in range(depth)
            ]
        )

    def forward(self, x):
        return self.net(x).mean(1)


mixer, patches = fill(Mixer()), data(2, 4, 6)
fit(mixer, lambda: mixer(patches).pow(2).mean())


class Rotary(nn.Module):
    def __init__(self, dim=8, heads=2, words=11):
        super().__init__()
        self.heads, self.embedding = heads, nn.Embedding(words, dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, words, bias=False)
        half = dim // heads // 2
        self.register_buffer("freqs", 1.0 / (100.0 ** (torch.arange(half).double() / half)), persistent=False)

    def rotate(self, x):
        angle = torch.arange(x.size(-2)).double()[:, None] * self.freqs[None]
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1).flatten(-2)

    def forward(self, idx):
        B, T = idx.shape
        q, k, v = self.qkv(self.embedding(idx)).view(B, T, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(self.rotate(q), self.rotate(k), v, is_causal=True)
        return self.out(y.transpose(1, 2).contiguous().view(B, T, -1))


rotary, idx = fill(Rotary()), torch.arange(10).view(2, 5)
fit(rotary, lambda: F.cross_entropy(rotary(idx[:, :-1]).flatten(0, 1), idx[:, 1:].reshape(-1)))
