"""Models of models: MAML by functional_call, a hypernetwork, siamese twins, a neural ODE, a step of diffusion."""

import copy
from torch.func import functional_call
from torch.nn.utils import parameters_to_vector
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from _shared import data, fill, fit

net = fill(nn.Sequential(nn.Linear(1, 6), nn.Tanh(), nn.Linear(6, 1)))
meta = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(2):
    meta.zero_grad()
    losses = []
    for phase in (0.0, 1.0):
        x, xq = data(5, 1), data(5, 1, at=2.0)
        fast = dict(net.named_parameters())
        for _ in range(2):
            inner = F.mse_loss(functional_call(net, fast, (x,)), torch.sin(x + phase))
            grads = torch.autograd.grad(inner, list(fast.values()), create_graph=True)
            fast = {k: v - 0.1 * g for (k, v), g in zip(fast.items(), grads)}
        losses.append(F.mse_loss(functional_call(net, fast, (xq,)), torch.sin(xq + phase)))
    total = torch.stack(losses).mean()
    total.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    meta.step()
print(round(total.item(), 6), round(parameters_to_vector(net.parameters()).sum().item(), 6))


class Hyper(nn.Module):
    def __init__(self, z=3, fin=4, fout=2):
        super().__init__()
        self.z = nn.ParameterList([nn.Parameter(torch.randn(z)) for _ in range(2)])
        self.make, self.fin, self.fout = nn.Linear(z, fin * fout), fin, fout

    def forward(self, x):
        for z in self.z:
            w = self.make(z).view(self.fout, self.fin)
            x = torch.cat([F.linear(x, w), x[:, : self.fin - self.fout]], 1)
        return x


hyper, x = fill(Hyper()), data(3, 4)
fit(hyper, lambda: hyper(x).square().mean())
gs = torch.autograd.grad(hyper(x).sum(), hyper.z)
print([round(g.sum().item(), 6) for g in gs])


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Sequential(
            nn.Conv2d(1, 2, 3), nn.PReLU(), nn.MaxPool2d(2, stride=2), nn.Flatten(), nn.Linear(8, 3)
        )

    def forward(self, a, b):
        return self.embed(a), self.embed(b)


twins, a, b = fill(Siamese()), data(2, 1, 6, 6), data(2, 1, 6, 6, at=1.0)
same = torch.tensor([0.0, 1.0]).double()


def contrastive():
    d = F.pairwise_distance(*twins(a, b), keepdim=True).squeeze(1)
    return torch.mean((1 - same) * d.pow(2) + same * torch.clamp(2.0 - d, min=0.0).pow(2))


fit(twins, contrastive)


class ODE(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)

    def forward(self, y, t):
        h = (t[-1] - t[0]) / (len(t) - 1)
        path = [y]
        for _ in t[1:]:
            k1 = self.net(y**3)
            k2 = self.net((y + h / 2 * k1) ** 3)
            k3 = self.net((y + h / 2 * k2) ** 3)
            k4 = self.net((y + h * k3) ** 3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            path.append(y)
        return torch.stack(path)


ode, y0, t = fill(ODE()), data(3, 2), torch.linspace(0.0, 1.0, 4).double()
fit(ode, lambda: torch.mean(torch.abs(ode(y0, t) - data(4, 3, 2, at=1.0))))


class Denoiser(nn.Module):
    def __init__(self, steps=10, dim=6):
        super().__init__()
        beta = torch.linspace(1e-3, 0.2, steps, dtype=torch.double)
        self.register_buffer("alpha_bar", torch.cumprod(1 - beta, dim=0))
        half = dim // 2
        freqs = torch.exp(-np.log(100) * torch.arange(half, dtype=torch.double) / half)
        self.register_buffer("freqs", freqs)
        self.net = nn.Sequential(nn.Linear(4 + dim, 8), nn.SiLU(), nn.Linear(8, 4))

    def forward(self, x, t):
        args = t[:, None].double() * self.freqs[None]
        return self.net(torch.cat([x, torch.cos(args), torch.sin(args)], dim=-1))

    def loss(self, x, t, noise):
        a = self.alpha_bar[t][:, None]
        return F.mse_loss(self(a.sqrt() * x + (1 - a).sqrt() * noise, t), noise)


denoiser, x0, t = fill(Denoiser()), data(4, 4), torch.tensor([0, 3, 6, 9])
ema = copy.deepcopy(denoiser).eval()
fit(denoiser, lambda: denoiser.loss(x0, t, data(4, 4, at=1.5)))
with torch.no_grad():
    for p_ema, p in zip(ema.parameters(), denoiser.parameters()):
        p_ema.lerp_(p, 0.5)
print(round(sum(p.sum().item() for p in ema.parameters()), 6))
