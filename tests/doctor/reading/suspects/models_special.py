"""Snippets for suspects about equations, flows, mixtures, graphs and samplers."""

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
        "second derivative of a piecewise linear net",
        """
def net_of(width, act=nn.ReLU):  #!
    return nn.Sequential(nn.Linear(1, width), act(), nn.Linear(width, width), act(), nn.Linear(width, 1))
def by(of, at):
    return torch.autograd.grad(of.sum(), at, create_graph=True)[0]
net = net_of(20)
u = net(x)
slope = by(u, x)
bend = by(slope, x)
loss = (bend + 9 * u).pow(2).mean()
""",
        (("act=nn.ReLU", "act=nn.Tanh"),),
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
    Case(
        "critic with a bounded score",
        """
critic = nn.Sequential(
    nn.Linear(2, 16),
    nn.ReLU(),
    nn.Linear(16, 1),
    nn.Sigmoid(),  #!
)
d_loss = critic(fake).mean() - critic(real).mean()
""",
        (("    nn.Sigmoid(),\n", ""),),
    ),
    Case(
        "fakes cut off from their generator",
        """
for real in batches:
    fake = G(torch.randn(8, 4)).detach()  #!
    d_loss = criterion(D(real), ones) + criterion(D(fake), zeros)
    judged = D(fake)
    g_loss = criterion(judged, ones)
""",
        (("4)).detach()", "4))"),),
    ),
    Case(
        "level before is one less",
        """
for i, t in enumerate(torch.linspace(999, 0, 50).long().tolist()):
    t_prev = t - 1  #!
    x = alpha[t_prev] * clean(x, t) + sigma[t_prev] * noise
""",
        (("linspace(999, 0, 50)", "arange(999, -1, -1)"),),
    ),
    Case(
        "softmax over all edges",
        """
class Attention(nn.Module):
    def forward(self, h, edge_index):
        start, to = edge_index
        score = F.leaky_relu(self.a(h)[start] + self.b(h)[to])
        weights = torch.softmax(score, dim=0)  #!
        out = torch.zeros_like(h).index_add_(0, to, weights * h[start])
        return out + h
""",
        (("torch.softmax(score, dim=0)", "softmax_at(score, to)"),),
    ),
    Case(
        "neighbours added up",
        """
def with_loops(adj):
    adj = adj + torch.eye(adj.shape[0])  #!
    return adj

class Layer(nn.Module):
    def forward(self, x, adj):
        return torch.relu(adj @ self.fc(x))

print("degrees", adj.sum(1))
""",
        (("    return adj", "    return adj / adj.sum(1, keepdim=True)"),),
    ),
    Case(
        "number of a step instead of its level",
        """
levels = torch.arange(0, 1000, 50)
def sample(net, x):
    for i in reversed(range(len(levels))):
        left = alpha_bar[levels[i]]
        noise = net(x, torch.full((len(x),), i))  #!
        x = (x - (1 - left).sqrt() * noise) / left.sqrt()
    return x
""",
        (("full((len(x),), i)", "full((len(x),), int(levels[i]))"),),
    ),
    Case(
        "number of a step instead of its level",
        """
def sample(model, x, levels):
    for i, t in enumerate(range(999, 0, -20)):
        time = torch.tensor([i] * len(x))  #!
        noise = model(x, time)
        x = (x - betas[t] * noise) / alphas[t].sqrt()
    return x
""",
        (("[i] *", "[t] *"),),
    ),
    Case(
        "log-determinant of the other direction",
        """
class Step(nn.Module):
    def forward(self, x):
        s, t = self.net(x)
        return (x - t) * (-s).exp(), s.sum(-1)  #!

    def inverse(self, z):
        s, t = self.net(z)
        return z * s.exp() + t

class Flow(nn.Module):
    def log_prob(self, x):
        total = 0
        for step in self.steps:
            x, one = step(x)
            total = total + one
        return self.base.log_prob(x).sum(-1) + total
""",
        (("exp(), s.sum(-1)", "exp(), -s.sum(-1)"),),
    ),
    Case(
        "logarithms of a mixture added up",
        """
def loss(net, x, y):
    h = net(x)
    log_pi = F.log_softmax(h[:, :5], dim=1)
    each = log_pi + normal(h[:, 5:10], h[:, 10:].exp()).log_prob(y)  #!
    return -each.mean()
""",
        (("-each.mean()", "-torch.logsumexp(each, dim=1).mean()"),),
    ),
    Case(
        "logarithms of a mixture added up",
        """
def nll(weights, y, mu, sigma):
    log_prob = log_density(y, mu, sigma)
    return -torch.mean(torch.sum(torch.log(weights) + log_prob, dim=-1))  #!
""",
        (("torch.sum(torch.log", "torch.logsumexp(torch.log"),),
    ),
    Case(
        "neighbours added up",
        """
adj = torch.zeros(50, 50)
for i, j in links:
    adj[i, j] = adj[j, i] = 1
class Attention(nn.Module):
    def forward(self, x, adj):
        scores = torch.where(adj > 0, self.scores(x), torch.tensor(-1e9))  #!
        return scores.softmax(-1) @ self.values(x)
""",
        (("in links:\n", "in links:\n    adj.fill_diagonal_(1)\n"),),
    ),
)
