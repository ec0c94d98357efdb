"""Normalizing flows in PyTorch's usual style: masks, flags, initialisation from the first batch, stored results."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.nn import functional as F


class Planar(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.u, self.w = nn.Parameter(0.1 * gg.randn(1, dim)), nn.Parameter(0.1 * gg.randn(1, dim))
        self.b = nn.Parameter(gg.zeros(1))

    def forward(self, z: Any) -> Any:
        wu = (self.w * self.u).sum()
        u = self.u + (F.softplus(wu) - 1 - wu) * self.w / (self.w**2).sum()
        inner = F.linear(z, self.w, self.b)
        psi = (1 - gg.tanh(inner) ** 2) * self.w
        return z + u * gg.tanh(inner), gg.log(gg.abs(1 + (psi * u).sum(-1)) + 1e-6)


class Coupling(nn.Module):
    def __init__(self, dim: int, flip: bool) -> None:
        super().__init__()
        mask = (gg.arange(dim) % 2).float()
        self.register_buffer("mask", 1 - mask if flip else mask)
        self.net = nn.Sequential(nn.Linear(dim, 16), nn.Tanh(), nn.Linear(16, 2 * dim))

    def forward(self, x: Any) -> Any:
        kept = x * self.mask
        log_s, t = self.net(kept).chunk(2, dim=-1)
        log_s = gg.tanh(log_s) * (1 - self.mask)
        self.log_s = log_s
        return kept + (1 - self.mask) * (x * gg.exp(log_s) + t), log_s.sum(-1)


class ActNorm(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.loc, self.scale = nn.Parameter(gg.zeros(dim)), nn.Parameter(gg.ones(dim))
        self.initialized = False

    def forward(self, x: Any) -> Any:
        if not self.initialized:
            with gg.no_grad():
                self.loc.data.copy_(-x.mean(0))
                self.scale.data.copy_(1 / (x.std(0) + 1e-6))
            self.initialized = True
        return (x + self.loc) * self.scale, gg.log(gg.abs(self.scale)).sum().expand(len(x))


class ActNormWithBuffer(ActNorm):
    """The flag is a buffer, and its value is asked for: the call runs eagerly until it is known to be set."""

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        del self.initialized
        self.register_buffer("initialized", gg.tensor(0))

    def forward(self, x: Any) -> Any:
        if self.initialized.item() == 0:
            self.loc.data.copy_(-x.mean(0))
            self.scale.data.copy_(1 / (x.std(0) + 1e-6))
            self.initialized.fill_(1)
        return (x + self.loc) * self.scale, gg.log(gg.abs(self.scale)).sum().expand(len(x))


class Masked(nn.Linear):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.register_buffer("mask", gg.ones(outputs, inputs))

    def forward(self, x: Any) -> Any:
        return F.linear(x, self.mask * self.weight, self.bias)


class Autoregressive(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.first, self.second = Masked(dim, 2 * dim), Masked(2 * dim, 2 * dim)
        order, hidden = np.arange(dim), np.arange(2 * dim) % max(dim - 1, 1)
        self.first.mask = gg.from_numpy((hidden[:, None] >= order).astype(np.float32))
        self.second.mask = gg.from_numpy((np.tile(order, 2)[:, None] > hidden).astype(np.float32))

    def forward(self, x: Any) -> Any:
        mu, alpha = self.second(F.relu(self.first(x))).chunk(2, dim=1)
        return ((x - mu) * gg.exp(-gg.tanh(alpha))).flip(1), -gg.tanh(alpha).sum(-1)


class Spline(nn.Module):
    """Piecewise linear, with bins found by comparison."""

    def __init__(self, dim: int, bins: int = 4) -> None:
        super().__init__()
        self.logits, self.bins = nn.Parameter(0.1 * gg.randn(dim, bins)), bins

    def forward(self, x: Any) -> Any:
        inside = (x > -3) & (x < 3)
        widths = F.softmax(self.logits, -1)
        edges = F.pad(gg.cumsum(widths, -1), (1, 0))
        place = ((x.clamp(-3 + 1e-4, 3 - 1e-4) + 3) / 6) * self.bins
        bin_ = place.floor().long().clamp(0, self.bins - 1)
        low = edges[gg.arange(x.shape[1]), bin_]
        high = edges[gg.arange(x.shape[1]), bin_ + 1]
        y = (low + (place - bin_.float()) * (high - low)) * 6 - 3
        slope = gg.log((high - low) * self.bins)
        return gg.where(inside, y, x), gg.where(inside, slope, gg.zeros_like(slope)).sum(-1)


class Flow(nn.Module):
    def __init__(self, parts: list[Any]) -> None:
        super().__init__()
        self.flows = nn.ModuleList(parts)
        self.log_dets: list[Any] = []

    def forward(self, z: Any) -> Any:
        total, self.log_dets = 0.0, []
        for flow in self.flows:
            z, log_det = flow(z)
            self.log_dets.append(log_det)
            total = total + log_det
        return z, total


FLOWS = {
    "planar": lambda: [Planar(4) for _ in range(3)],
    "coupling": lambda: [Coupling(4, k % 2 == 1) for k in range(3)],
    "autoregressive": lambda: [Autoregressive(4) for _ in range(2)],
    "spline": lambda: [Spline(4), Coupling(4, False)],
    "act norm": lambda: [ActNorm(4), Coupling(4, False), ActNorm(4), Coupling(4, True)],
    "act norm with a buffer": lambda: [ActNormWithBuffer(4), Coupling(4, False)],
}


def losses(name: str, how: str) -> Any:
    gg.manual_seed(3)
    flow = Flow(FLOWS[name]())
    optimizer = optim.Adam(flow.parameters(), lr=0.01)
    rng = np.random.default_rng(2)
    called: Any = gg.compile(flow, backend="numpy") if how == "model" else flow

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        z, log_det = called(x)
        loss = (0.5 * (z**2).sum(-1) - log_det).mean()
        loss.backward()
        optimizer.step()
        return loss

    run: Any = gg.compile(step, backend="numpy") if how == "step" else step
    found = [run(gg.from_numpy(rng.normal(1, 2, (8, 4)).astype(np.float32))).item() for _ in range(6)]
    stored = [one.detach().numpy() for one in flow.log_dets]
    return found, stored, {"model": called, "step": run}.get(how)


@pytest.mark.parametrize("how", ["model", "step"])
@pytest.mark.parametrize("name", FLOWS)
def test_flows_train_as_in_eager_mode(name: str, how: str) -> None:
    wanted, kept, _ = losses(name, "eager")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found, stored, compiled = losses(name, how)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    for one, other in zip(stored, kept, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    assert compiled.traces <= 3
    eager = name == "act norm with a buffer"
    assert len(told) == eager, [str(one.message) for one in told]
