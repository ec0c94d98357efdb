"""Faults of tensors: how they are made, reshaped, and cut off the graph."""

from __future__ import annotations

from tests.doctor.reading.case import Case
from tests.doctor.reading.modules import net

_LOSS = """
for x, y in batches:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    {0}
    loss.backward()
    optimizer.step()
    {1}
"""
_RNN = "        self.rnn = nn.LSTM(4, 8, batch_first=True)\n        self.a = nn.Linear(8, 2)\n"

_RECURRENT = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 8, batch_first=True, bidirectional=True)
        self.out = nn.Linear(16, 2)
    def forward(self, x):
        outputs, _ = self.rnn(x)
"""

CASES = (
    Case(
        "gradient cut in forward",
        """
class Pairs(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 2)
    def forward(self, x):
        hidden = self.first(x).tanh()
        both = (hidden[:, None] + hidden).detach()  #!
        return self.last(both).mean(1)
model = Pairs()
optimizer = torch.optim.Adam(model.parameters())
for x, y in batches:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
""",
        ((".detach()", ""),),
    ),
    Case(
        "gradient cut in the loss",
        """
teacher, student = nn.Linear(4, 3), nn.Linear(4, 3)
optimizer = torch.optim.Adam(student.parameters())
for x, y in batches:
    with torch.no_grad():
        given = teacher(x)
    answer = student(x)
    soft = F.log_softmax(given / 2, 1)  #!
    distance = F.kl_div(soft, F.softmax(given / 2, 1))
    loss = 0.9 * distance + 0.1 * F.cross_entropy(answer, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        (("F.log_softmax(given / 2, 1)", "F.log_softmax(answer / 2, 1)"),),
    ),
    Case(
        "dropout in evaluation too",
        """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 2)
    def forward(self, x):
        hidden = F.dropout(self.first(x).relu(), 0.1, training=True)  #!
        return self.last(hidden)
""",
        (("training=True", "training=self.training"),),
    ),
    Case(
        "axes mixed by a view",
        """
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(8, 16, bidirectional=True)
        self.last = nn.Linear(32, 3)
    def forward(self, x):
        _, (hidden, _) = self.rnn(x)
        return self.last(hidden.view(x.size(1), -1))  #!
""",
        (("hidden.view(x.size(1), -1)", "torch.cat([hidden[-2], hidden[-1]], 1)"),),
    ),
    Case(
        "dropout off for good",
        """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.p, self.layer = 0.1, nn.Linear(4, 4)
    def forward(self, x):
        self.p = self.p if self.training else 0.0  #!
        return F.dropout(self.layer(x), self.p)
""",
        (("        self.p = self.p if", "        p = self.p if"), ("(x), self.p)", "(x), p)")),
    ),
    Case("Tensor made by its class", "x = torch.Tensor([1, 2, 3])  #!\n", (("Tensor", "tensor"),), "torch"),
    Case("Tensor made by its class", "x = torch.Tensor(3, 4)  #!\n", (("Tensor", "empty"),), "torch"),
    Case(
        "tensor of a tensor",
        "model = nn.Linear(2, 2)\nx = torch.tensor(model(y))  #!\n",
        (("torch.tensor(model(y))", "model(y).detach()"),),
    ),
    Case(
        "tensor of a tensor",
        "loss = torch.tensor([F.l1_loss(a, b), F.l1_loss(c, d)]).mean()  #!\n",
        (("tensor(", "stack("),),
    ),
    Case("graph grows", _LOSS.format("pass", "total += loss  #!"), (("+= loss", "+= loss.item()"),)),
    Case("graph grows", _LOSS.format("pass", "losses.append(loss)  #!"), (("(loss)\n", "(loss.detach())\n"),)),
    Case(
        "gradient cut in forward",
        net("        self.a = nn.Linear(4, 4)\n", "        h = self.a(x)\n        return h.data * 2  #!\n"),
        (("h.data", "h"),),
    ),
    Case(
        "gradient cut in forward",
        net(
            "        self.a = nn.Linear(4, 4)\n", "        h = self.a(x)\n        return torch.tensor(h.tolist())  #!\n"
        ),
        (("torch.tensor(h.tolist())", "h + torch.tensor(x.tolist())"),),
    ),
    Case(
        "gradient cut in the loss",
        _LOSS.format("loss = loss + 0.1 * model.weight.data.norm()  #!", "pass"),
        ((".data", ""),),
    ),
    Case("gradient cut in the loss", _LOSS.format("loss += penalty(model).item()  #!", "pass"), ((".item()", ""),)),
    Case(
        "dropout in evaluation too",
        net("        self.a = nn.Linear(4, 4)\n", "        return F.dropout(self.a(x), 0.5)  #!\n"),
        (("0.5)", "0.5, self.training)"),),
    ),
    Case(
        "dropout in evaluation too",
        net(
            "        self.a = nn.Linear(4, 4)\n",
            "        return F.scaled_dot_product_attention(x, x, x, dropout_p=0.1)  #!\n",
        ),
        (("=0.1", "=0.1 if self.training else 0.0"),),
    ),
    Case(
        "axes mixed by a view",
        """
links = []
for i in range(1, 40):
    links.append((i, i // 2))
edges = torch.tensor(links).view(2, -1)  #!
""",
        ((".view(2, -1)", ".t()"),),
    ),
    Case(
        "axes mixed by a view",
        "b, c, t = x.shape\ny = x.view(b, t, c)  #!\n",
        (("x.view(b, t, c)", "x.view(b, c, t)"),),
    ),
    Case(
        "axes mixed by a view",
        "n, t, h, w, c = x.shape\nframes = x.reshape(n * t, c, h, w)  #!\n",
        (("x.reshape(n * t, c, h, w)", "x.permute(0, 1, 4, 2, 3).reshape(n * t, c, h, w)"),),
    ),
    Case(
        "axes mixed by a view",
        "rows = x.view(-1, size, size, 3)\nimages = rows.view(-1, 3, size, size)  #!\n",
        (("rows.view(-1, 3, size, size)", "rows.permute(0, 3, 1, 2)"),),
    ),
    Case(
        "axes mixed by a view",
        "y = x.reshape(x.shape[1], x.shape[0])  #!\n",
        (("reshape(x.shape[1], x.shape[0])", "t()"),),
    ),
    Case(
        "batch flattened away",
        net(
            "        self.c, self.a = nn.Conv2d(1, 4, 3), nn.Linear(64, 2)\n",
            "        x = self.c(x).relu()\n        x = torch.flatten(x)  #!\n        return self.a(x)\n",
        ),
        (("flatten(x)", "flatten(x, 1)"),),
    ),
    Case(
        "sequence read at its beginning",
        net(_RNN, "        states, _ = self.rnn(x)\n        return self.a(states[:, 0])  #!\n"),
        (("[:, 0]", "[:, -1]"),),
    ),
    Case(
        "sequence read at its beginning",
        net(
            _RNN.replace(", batch_first=True", ""),
            "        states = self.rnn(x)[0]\n        return self.a(states[:, -1])  #!\n",
        ),
        (("[:, -1]", "[-1]"),),
    ),
    Case(
        "unstable formula",
        "loss = torch.log(torch.softmax(x, 1))  #!\n",
        (("torch.log(torch.softmax(x, 1))", "F.log_softmax(x, 1)"),),
    ),
    Case(
        "unstable formula",
        "loss = (1 + x.exp()).log() + torch.exp(y).sum(1).sqrt()  #!\n",
        (("(1 + x.exp()).log()", "F.softplus(x)"),),
    ),
    Case("unstable formula", "z = x.exp().sum(1).log()  #!\n", (("x.exp()", "(x - x.max()).exp()"),)),
    Case(
        "comparison with NaN", 'if loss == float("nan"):  #!\n    pass\n', (('loss == float("nan")', "loss.isnan()"),)
    ),
    Case(
        "checkpoint without use_reentrant",
        "from torch.utils.checkpoint import checkpoint\ny = checkpoint(f, x)  #!\n",
        (("(f, x)", "(f, x, use_reentrant=False)"),),
        "torch",
    ),
    Case(
        "axes mixed by a view",
        "images = np.random.rand(240, 8, 8, 3)\nimages = torch.from_numpy(images).reshape(-1, 3, 8, 8)  #!\n",
        ((".reshape(-1, 3, 8, 8)", ".permute(0, 3, 1, 2)"),),
    ),
    Case(
        "graph grows",
        """
total = 0.0
for x, y in batches:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    total = total + loss * len(x)  #!
""",
        (("loss * len", "loss.item() * len"),),
    ),
    Case(
        "sequence read at its beginning",
        _RECURRENT + "        return self.out(outputs[:, -1])  #!\n",
        (("outputs[:, -1]", "torch.cat([outputs[:, -1, :8], outputs[:, 0, 8:]], 1)"),),
    ),
    Case(
        "random initial state",
        _RECURRENT.replace("self.rnn(x)", "self.rnn(x, torch.randn(2, len(x), 8))  #!")
        + "        return self.out(outputs.mean(1))\n",
        (("torch.randn(", "torch.zeros("),),
    ),
)
