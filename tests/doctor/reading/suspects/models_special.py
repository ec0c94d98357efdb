"""Snippets for suspects about equations and flows."""

from __future__ import annotations

from tests.doctor.reading.case import Case

CASES = (
    Case(
        "second derivative of a piecewise linear net",
        """
def slope(of, by):
    return torch.autograd.grad(of, by, torch.ones_like(of), create_graph=True)[0]


layers = [nn.Linear(2, 20)]
for _ in range(3):
    layers.append(nn.Linear(20, 20))
    layers.append(nn.ReLU())  #!
net = nn.Sequential(*layers, nn.Linear(20, 1))
fall, bend = slope(net(p), p)[:, :1], slope(slope(net(p), p)[:, 1:], p)
""",
        (("slope(slope(net(p), p)[:, 1:], p)", "slope(net(p), p)[:, 1:]"),),
    ),
    Case(
        "inverse of a flow",
        """
class Coupling(nn.Module):
    def forward(self, x, back=False):
        a, b = x.chunk(2, 1)
        s, t = self.net(a).chunk(2, 1)
        if back:
            b = b / s.exp() - t  #!
        else:
            b = b * torch.exp(s) + t
        return torch.cat([a, b], 1), s.sum(1)
""",
        (("b / s.exp() - t", "(b - t) / s.exp()"),),
    ),
    Case(
        "inverse of a flow",
        """
class Shift(nn.Module):
    def forward(self, x):
        log_det = self.s.sum()
        return (x + self.t) * torch.exp(self.s), log_det

    def inverse(self, z):
        return (z - self.t) * torch.exp(-self.s)  #!
""",
        (("(z - self.t) * torch.exp(-self.s)", "z * torch.exp(-self.s) - self.t"),),
    ),
)
