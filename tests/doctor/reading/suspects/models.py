"""Suspects about models: layers, shapes, normalisation and dropout."""

from __future__ import annotations

from tests.doctor.reading.case import Case
from tests.doctor.reading.suspects import models_more

CASES = (
    Case(
        "neighbours added up",
        """
class Layer(nn.Module):
    def forward(self, x, edge_index):
        row, col = edge_index
        degree = torch.bincount(col, minlength=len(x)).clamp(min=1)
        out = torch.zeros_like(x).index_add(0, col, self.linear(x)[row])
        return out / degree[:, None]


edge_index = links.nonzero().t()  #!
""",
        (("        return out / ", "        out = out + self.own(x)\n        return out / "),),
    ),
    Case(
        "rectifier behind the last layer",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.out = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        return F.relu(self.out(torch.tanh(self.fc(x))))  #!

model = Net()
prediction = model(torch.randn(5, 4))
""",
        (("return F.relu(", "return ("),),
    ),
    Case(
        "bounded output of a regression",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.out = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        return torch.tanh(self.out(F.relu(self.fc(x))))  #!

model = Net()
loss = F.mse_loss(model(torch.randn(5, 4)), torch.zeros(5, 3))
""",
        (("return torch.tanh(", "return ("),),
    ),
    Case(
        "normalised output",
        """
model = nn.Sequential(
    nn.Linear(4, 8),
    nn.ReLU(),
    nn.Linear(8, 1),
    nn.BatchNorm1d(1),  #!
)
prediction = model(torch.randn(5, 4))
""",
        (("    nn.BatchNorm1d(1),\n", ""),),
    ),
    Case(
        "one output for several classes",
        """
model = nn.Linear(4, 1)  #!
loss = F.cross_entropy(model(torch.randn(5, 4)), labels)
""",
        (("nn.Linear(4, 1)", "nn.Linear(4, 3)"),),
    ),
    Case(
        "signed quantity behind a rectifier",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.mu_head = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x):
        h = torch.tanh(self.body(x))
        mu = F.relu(self.mu_head(h))  #!
        return mu
""",
        (("mu = F.relu(self.mu_head(h))", "mu = self.mu_head(h)"),),
    ),
    Case(
        "output clamped",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.out = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        return torch.clamp(self.out(F.relu(self.fc(x))), 0, 1)  #!
""",
        (("torch.clamp(self.out(F.relu(self.fc(x))), 0, 1)", "self.out(F.relu(self.fc(x)))"),),
    ),
    Case(
        "activation behind an activation",
        """
layers = nn.Sequential(
    nn.Linear(4, 1),
    nn.ReLU(),
    nn.Sigmoid(),  #!
)
""",
        (("    nn.ReLU(),\n", ""),),
    ),
    Case(
        "saturating activations in hidden layers",
        """
parts, width = [], 8
for _ in range(5):
    parts += [nn.Linear(width, 20), nn.Sigmoid()]  #!
    width = 20
""",
        (("nn.Sigmoid()", "nn.ReLU()"),),
    ),
    Case(
        "layers without an activation between them",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.out = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        x = self.fc(x)
        return self.out(x)  #!
""",
        (("x = self.fc(x)", "x = F.relu(self.fc(x))"),),
    ),
    Case(
        "batch flattened into one row",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.out = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        x = x.view(-1)  #!
        return self.out(F.relu(self.fc(x)))
""",
        (("x.view(-1)", "x.view(x.size(0), -1)"),),
    ),
    Case(
        "squeeze of every axis",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.out = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.out(F.relu(self.fc(x))).squeeze()  #!
""",
        ((".squeeze()", ".squeeze(-1)"),),
    ),
    Case(
        "reduced over the batch",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.out = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        h = F.relu(self.fc(x))
        h = h - h.mean(0)  #!
        return self.out(h)
""",
        (("h.mean(0)", "h.mean(-1, keepdim=True)"),),
    ),
    Case(
        "joined along the batch",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.out = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        a, b = x[:, :2], x[:, 2:]
        return self.out(F.relu(self.fc(torch.cat([a, b]))))  #!
""",
        (("torch.cat([a, b])", "torch.cat([a, b], dim=1)"),),
    ),
    Case(
        "the same tensor joined twice",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.out = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        up = self.fc(x)
        return self.out(torch.cat([up, up], dim=1))  #!
""",
        (("[up, up]", "[up, x]"),),
    ),
    Case(
        "view of several axes",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.out = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        x = x.view(len(x), 3, 8, 8)  #!
        return self.fc(x)
""",
        (("x.view(len(x), 3, 8, 8)", "x.permute(0, 3, 1, 2)"),),
    ),
    Case(
        "map viewed as rows",
        """
def pixels(logits, target):
    c = logits.shape[1]
    return F.cross_entropy(logits.contiguous().view(-1, c), target.view(-1))  #!


def likely(logits, target):
    n, c, h, w = logits.shape
    return -logits.log_softmax(1).view(-1, c)[:, 0].mean() + F.cross_entropy(logits.view(-1, c), target)  #!
""",
        (
            ("logits.contiguous()", "logits.permute(0, 2, 3, 1).contiguous()"),
            ("logits.log_softmax(1).view(-1, c)", "logits.log_softmax(1)"),
            ("logits.view(-1, c)", "logits.permute(0, 2, 3, 1).reshape(-1, c)"),
        ),
    ),
    Case(
        "pooled along an axis",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.out = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        x = x.mean(dim=2)  #!
        return self.fc(x)
""",
        (("x = x.mean(dim=2)\n", "x = x.flatten(1)\n"),),
    ),
    Case(
        "part of the result returned",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.out = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        h = F.relu(self.fc(x))
        return self.out(h)[:, 0]  #!
""",
        (("self.out(h)[:, 0]", "self.out(h)"),),
    ),
    Case(
        "width and height exchanged",
        """
def channels_first(images):
    return images.permute(0, 3, 2, 1)  #!
""",
        (("0, 3, 2, 1", "0, 3, 1, 2"),),
    ),
    Case(
        "convolution along the features",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.conv = nn.Embedding(50, 16), nn.Conv1d(16, 8, 3)

    def forward(self, x):
        h = self.embed(x)
        return self.conv(h)  #!
""",
        (("h = self.embed(x)", "h = self.embed(x).transpose(1, 2)"),),
    ),
    Case(
        "stride beyond the kernel",
        """
layer = nn.Conv2d(3, 8, 3, stride=4)  #!
""",
        (("stride=4", "stride=2"),),
    ),
    Case(
        "causal convolution padded on both sides",
        """
class CausalConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 4, 3, padding=1)  #!

    def forward(self, x):
        return self.conv(x)
""",
        (("padding=1", "padding=0"),),
    ),
    Case(
        "reduced without keepdim",
        """
def normalised(weights):
    return weights / weights.sum(dim=1)  #!
""",
        (("sum(dim=1)", "sum(dim=1, keepdim=True)"),),
    ),
    Case(
        "statistics of the whole batch",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.out = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        x = (x - x.mean()) / x.std()  #!
        return self.fc(x)
""",
        (("(x - x.mean()) / x.std()", "(x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)"),),
    ),
    Case(
        "normalised by the variance",
        """
def normalised(x, eps=1e-5):
    mean, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True)
    return (x - mean) / (var + eps)  #!
""",
        (("/ (var + eps)", "/ torch.sqrt(var + eps)"),),
    ),
    Case(
        "normalisation written by hand",
        """
class RMSNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(8))

    def forward(self, x):
        scale = x.pow(2).mean(-1, keepdim=True)  #!
        return self.gain * x / (scale + 1e-6).sqrt()
""",
        (
            ("scale = x.pow(2).mean(-1, keepdim=True)\n", ""),
            ("x / (scale + 1e-6).sqrt()", "F.rms_norm(x, (8,))"),
        ),
    ),
    Case(
        "second argument of a norm is eps",
        """
layer = nn.BatchNorm2d(64, 0.8)  #!
""",
        (("64, 0.8", "64"),),
    ),
    Case(
        "momentum of a norm out of the usual",
        """
MOMENTUM = 0.9
layer = nn.BatchNorm2d(64, momentum=MOMENTUM)  #!
""",
        (("MOMENTUM = 0.9", "MOMENTUM = 0.1"),),
    ),
    Case(
        "norm without running statistics",
        """
layer = nn.BatchNorm1d(64, track_running_stats=False)  #!
""",
        ((", track_running_stats=False", ""),),
    ),
    Case(
        "activation with another's argument",
        """
layers = nn.Sequential(
    nn.Linear(4, 8),
    nn.LeakyReLU(True),  #!
)
""",
        (("nn.LeakyReLU(True)", "nn.LeakyReLU(0.1)"),),
    ),
    Case(
        "channels dropped from features",
        """
layers = nn.Sequential(
    nn.Flatten(),
    nn.Linear(64, 8),
    nn.Dropout2d(0.5),  #!
)
""",
        (("nn.Dropout2d", "nn.Dropout"),),
    ),
    Case(
        "much dropout",
        """
layer = nn.Dropout(p=0.7)  #!
""",
        (("0.7", "0.3"),),
    ),
    Case(
        "dropout by hand",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.p = nn.Linear(4, 8), 0.3

    def forward(self, x):
        h = self.fc(x)
        return h * (torch.rand_like(h) > self.p).float()  #!
""",
        (("h * (torch.rand_like(h) > self.p).float()", "F.dropout(h, self.p, self.training)"),),
    ),
    Case(
        "noise in every forward pass",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.out = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        x = x + 0.1 * torch.randn_like(x)  #!
        return self.fc(x)
""",
        (("x = x + 0.1 * torch.randn_like(x)", "x = x + 0.1 * torch.randn_like(x) * self.training"),),
    ),
    Case(
        "shortcut taken late",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        x = self.a(x)
        identity = x  #!
        return self.b(F.relu(x)) + identity
""",
        (("        x = self.a(x)\n", ""),),
    ),
    Case(
        "graphs joined without an offset",
        """
def collate(batch):
    feats, all_edges, nodes = [], [], 0
    for graph in batch:
        feats.append(graph.x)
        all_edges.append(graph.edge_index)  #!
        nodes += graph.x.shape[0]
    return torch.cat(feats), torch.cat(all_edges, dim=1)
""",
        (("append(graph.edge_index)", "append(graph.edge_index + nodes)"),),
    ),
    Case(
        "graphs joined without an offset",
        """
def joined(graphs, starts):
    x = torch.cat([g.x for g in graphs])
    edges = torch.cat([g.edges for g in graphs], dim=1)  #!
    return x, edges
""",
        (("[g.edges for g in graphs]", "[g.edges + s for g, s in zip(graphs, starts)]"),),
    ),
    Case(
        "one coordinate for two",
        """
def corners(boxes):
    centre, wh = boxes[..., 0:2], boxes[..., 2:4]
    low = boxes[..., :1] - boxes[..., 2:4] / 2  #!
    return torch.cat([low, centre + wh / 2], -1)
""",
        (("boxes[..., :1]", "boxes[..., :2]"),),
    ),
    Case(
        "sum over the axis that was put in",
        """
def scores(user, items):
    query = user.unsqueeze(1)
    return (query * items).sum(dim=1)  #!
""",
        (("sum(dim=1)", "sum(dim=-1)"),),
    ),
    *models_more.CASES,
)
