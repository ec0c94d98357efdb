"""Suspects about the weights of models, and about special models."""

from __future__ import annotations

from tests.doctor.reading.case import Case

CASES = (
    Case(
        "weights drawn too large",
        """
layer = nn.Linear(256, 256)
nn.init.normal_(layer.weight)  #!
""",
        (("layer.weight)", "layer.weight, std=0.02)"),),
    ),
    Case(
        "weights that begin equal",
        """
layer = nn.Linear(8, 8)
nn.init.ones_(layer.weight)  #!
""",
        (("nn.init.ones_", "nn.init.xavier_uniform_"),),
    ),
    Case(
        "parameter with numbers of chance",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(4, 8))  #!

    def forward(self, x):
        return x @ self.weight
""",
        (("torch.empty(4, 8)", "torch.randn(4, 8) / 2"),),
    ),
    Case(
        "matrix drawn without a scale",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(256, 64))  #!

    def forward(self, x):
        return x @ self.weight
""",
        (("torch.randn(256, 64)", "torch.randn(256, 64) / 16"),),
    ),
    Case(
        "initialisation never applied",
        """
def init_weights(m):  #!
    if isinstance(m, nn.Linear):
        nn.init.xavier_uniform_(m.weight)


model = nn.Sequential(nn.Linear(4, 8))
""",
        (("nn.Sequential(nn.Linear(4, 8))", "nn.Sequential(nn.Linear(4, 8)).apply(init_weights)"),),
    ),
    Case(
        "class compared with what it never is",
        """
def init(m):
    if m == nn.Linear:  #!
        nn.init.xavier_uniform_(m.weight)
""",
        (("m == nn.Linear", "isinstance(m, nn.Linear)"),),
    ),
    Case(
        "weights drawn again after loading",
        """
model = nn.Linear(4, 8)
model.load_state_dict(torch.load("model.pt"))
model.apply(init_weights)  #!
""",
        (("model.apply(init_weights)", "model.train()"),),
    ),
    Case(
        "parameter made in forward",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 8)

    def forward(self, x):
        scale = nn.Parameter(torch.ones(8))  #!
        return scale * self.fc(x)
""",
        (
            ("scale = nn.Parameter(torch.ones(8))\n", ""),
            ("scale * self", "self"),
        ),
    ),
    Case(
        "numbers that nobody trains",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.alpha = torch.ones(8)  #!

    def forward(self, x):
        return self.alpha * x
""",
        (("torch.ones(8)", "nn.Parameter(torch.ones(8))"),),
    ),
    Case(
        "layer never used",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 8)
        self.b = nn.Linear(8, 8)  #!

    def forward(self, x):
        return self.a(F.relu(self.a(x)))
""",
        (("return self.a(", "return self.b("),),
    ),
    Case(
        "one layer in several places",
        """
block = nn.Linear(8, 8)
layers = nn.ModuleList([block for _ in range(4)])  #!
""",
        (("[block for", "[nn.Linear(8, 8) for"),),
    ),
    Case(
        "layer called at two places",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        x = F.relu(self.a(x))
        x = F.relu(self.a(x))  #!
        return self.b(x)
""",
        (("x = F.relu(self.a(x))\n        return", "return"),),
    ),
    Case(
        "tied by a copy",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(50, 8), nn.Linear(8, 50)
        self.out.weight = nn.Parameter(self.embed.weight)  #!

    def forward(self, x):
        return self.out(self.embed(x))
""",
        (("nn.Parameter(self.embed.weight)", "self.embed.weight"),),
    ),
    Case(
        "shallow copy of a model",
        """
import copy

model = nn.Linear(4, 8)
target = copy.copy(model)  #!
""",
        (("copy.copy(", "copy.deepcopy("),),
    ),
    Case(
        "loop forgets its result",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])

    def forward(self, x):
        for layer in self.layers:
            out = layer(x)  #!
        return out
""",
        (
            ("out = layer(x)", "x = layer(x)"),
            ("return out", "return x"),
        ),
    ),
    Case(
        "gradient cut in the forward pass",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        h = self.a(x).detach()  #!
        return self.b(h)
""",
        ((".detach()", ""),),
    ),
    Case(
        "step without a derivative in forward",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        h = torch.round(self.a(x))  #!
        return self.b(h)
""",
        (("torch.round", "torch.tanh"),),
    ),
    Case(
        "input changed in place",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 8)

    def forward(self, x):
        x -= 0.5  #!
        return self.a(x)
""",
        (("x -= 0.5", "x = x - 0.5"),),
    ),
    Case(
        "derivative written by hand",
        """
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight.T, x.T @ grad  #!
""",
        (("class Square(torch.autograd.Function):", "class Square:"),),
    ),
    Case(
        "saved tensors in another order",
        """
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad):
        weight, x = ctx.saved_tensors  #!
        return grad @ weight.T, x.T @ grad
""",
        (("weight, x = ctx", "x, weight = ctx"),),
    ),
    Case(
        "gradients in another order",
        """
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        grad_x, grad_weight = grad @ weight.T, x.T @ grad
        return grad_weight, grad_x  #!
""",
        (("return grad_weight, grad_x", "return grad_x, grad_weight"),),
    ),
    Case(
        "parts of a gate",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        gate = torch.sigmoid(self.a(x))
        return gate * torch.tanh(self.b(x)) + gate * x  #!
""",
        (("+ gate * x", "+ (1 - gate) * x"),),
    ),
    Case(
        "router without a gradient",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(8, 4)
        self.experts = nn.ModuleList([nn.Linear(8, 8) for _ in range(4)])

    def forward(self, x):
        chosen = self.router(x).argmax(-1)  #!
        return torch.stack([self.experts[int(i)](row) for i, row in zip(chosen, x)])
""",
        (("chosen = self.router(x).argmax(-1)", "weights, chosen = self.router(x).softmax(-1).topk(1)"),),
    ),
    Case(
        "weights of a mixture along the wrong axis",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 4)

    def forward(self, x):
        return F.softmax(self.gate(x), dim=0)  #!
""",
        (("dim=0", "dim=-1"),),
    ),
    Case(
        "neighbours added up",
        """
class GraphConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x, adj):
        return self.fc(adj @ x)  #!


adj = edges.float()
""",
        (("adj = edges.float()", "adj = edges.float() + torch.eye(9)\nadj = adj / adj.sum(1, keepdim=True)"),),
    ),
    Case(
        "messages return to their sender",
        """
def propagate(h, src, dst):
    out = torch.zeros_like(h)
    return out.index_add_(0, src, h[src])  #!
""",
        (("index_add_(0, src", "index_add_(0, dst"),),
    ),
    Case(
        "derivative by another variable",
        """
u = net(torch.cat([x, t], dim=1))
u_t = torch.autograd.grad(u.sum(), t, create_graph=True)[0]
u_xx = torch.autograd.grad(u_t, x, create_graph=True)[0]  #!
""",
        (("u_xx = torch.autograd.grad(u_t", "u_xx = torch.autograd.grad(u_x"),),
    ),
    Case(
        "columns of the inputs exchanged",
        """
both = torch.cat([x, t], dim=1)
slopes = torch.autograd.grad(net(both).sum(), both, create_graph=True)[0]
u_x = slopes[:, 1:2]  #!
""",
        (("1:2", "0:1"),),
    ),
    Case(
        "gradient of a mean",
        """
u = net(x)
u_x = torch.autograd.grad(u.mean(), x, create_graph=True)[0]  #!
""",
        (("u.mean()", "u.sum()"),),
    ),
    Case(
        "second derivative of a piecewise linear net",
        """
net = nn.Sequential(
    nn.Linear(1, 20),
    nn.ReLU(),  #!
    nn.Linear(20, 1),
)
u_x = torch.autograd.grad(net(x).sum(), x, create_graph=True)[0]
u_xx = torch.autograd.grad(u_x.sum(), x, create_graph=True)[0]
""",
        (("nn.ReLU()", "nn.Tanh()"),),
    ),
    Case(
        "residual of an equation",
        """
def residual(u, u_t, u_x, u_xx):
    return u_t + u * u_x + 0.1 * u_xx  #!
""",
        (("return u_t + u * u_x + 0.1 * u_xx", "return equation(u, u_t, u_x, u_xx)"),),
    ),
    Case(
        "step of an integrator",
        """
def step(f, y, dt):
    k1 = f(y)
    k2 = f(y + dt / 2 * k1)
    k3 = f(y + dt / 2 * k2)
    k4 = f(y + dt * k3)
    return y + dt / 6 * (k1 + k2 + k3 + k4)  #!
""",
        (("k1 + k2 + k3 + k4", "k1 + 2 * k2 + 2 * k3 + k4"),),
    ),
    Case(
        "scale of a distribution",
        """
from torch.distributions import Normal

class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.mu, self.scale = nn.Linear(8, 2), nn.Linear(8, 2)

    def forward(self, x):
        return Normal(self.mu(x), self.scale(x))  #!
""",
        (("self.mu(x), self.scale(x)", "self.mu(x), F.softplus(self.scale(x))"),),
    ),
    Case(
        "logarithms of a mixture added up",
        """
def loss(pi, log_prob):
    return -(pi * log_prob).sum(-1).mean()  #!
""",
        (("(pi * log_prob).sum(-1)", "torch.logsumexp(pi.log() + log_prob, -1)"),),
    ),
    Case(
        "log-determinant of a flow",
        """
class Flow(nn.Module):
    def forward(self, x):
        log_det = 0
        for layer in self.layers:
            x, one = layer(x)
            log_det = one  #!
        return x, log_det
""",
        (("log_det = one", "log_det = log_det + one"),),
    ),
    Case(
        "log-determinant joined with a density",
        """
def log_likelihood(base, z, log_det):
    return base.log_prob(z) - log_det  #!
""",
        (("base.log_prob(z) - log_det", "total(base, z, log_det)"),),
    ),
    Case(
        "inverse of a flow",
        """
class Flow(nn.Module):
    def forward(self, x):
        log_det = 0
        for layer in self.layers:
            x, one = layer(x)
            log_det = log_det + one
        return x, log_det

    def inverse(self, z):
        for layer in self.layers:  #!
            z = layer.inverse(z)
        return z
""",
        (("for layer in self.layers:\n            z", "for layer in reversed(self.layers):\n            z"),),
    ),
    Case(
        "a column of biases beside a row",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.users, self.bias = nn.Embedding(50, 8), nn.Embedding(50, 1)

    def forward(self, x):
        u = self.users(x)
        return (u * u).sum(1) + self.bias(x)  #!
""",
        (("+ self.bias(x)", "+ self.bias(x).squeeze(-1)"),),
    ),
    Case(
        "batch norm of a sequence",
        """
class Poses(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn, self.lstm = nn.BatchNorm1d(12), nn.LSTM(12, 8, batch_first=True)
    def forward(self, x):
        x = self.bn(x)  #!
        return self.lstm(x)[0]
""",
        (("self.bn(x)", "self.bn(x.transpose(1, 2)).transpose(1, 2)"),),
    ),
)
