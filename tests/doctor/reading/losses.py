"""Faults of what goes into a loss."""

from __future__ import annotations

from tests.doctor.reading.case import Case

_CLASS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 3)
    def forward(self, x):
        x = self.b(self.a(x).relu())
        return {0}
model = Net()
"""

CASES = (
    Case(
        "softmax twice",
        """
model = nn.Sequential(nn.Linear(4, 3))
chances = F.softmax(model(x), dim=1)
loss = F.nll_loss(F.log_softmax(chances, dim=1), y)  #!
""",
        (("F.log_softmax(chances, dim=1)", "F.log_softmax(model(x), dim=1)"),),
    ),
    Case(
        "softmax twice",
        """
layers = [nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 3), nn.Softmax(-1)]  #!
model = nn.Sequential(*layers)
loss = F.cross_entropy(model(x), y)
""",
        ((", nn.Softmax(-1)", ""),),
    ),
    Case(
        "softmax twice",
        """
model = nn.Sequential(nn.Linear(4, 3), nn.Softmax(dim=1))  #!
criterion = nn.CrossEntropyLoss()
loss = criterion(model(x), y)
""",
        ((", nn.Softmax(dim=1)", ""),),
    ),
    Case(
        "softmax twice",
        _CLASS.format("F.softmax(x, dim=-1)  #!")
        + """
def train(net, batches):
    criterion = nn.CrossEntropyLoss()
    for x, y in batches:
        scores = net(x)
        loss = criterion(scores, y)
train(model, [])
""",
        (("F.softmax(x, dim=-1)", "F.log_softmax(x, dim=-1)"),),
    ),
    Case(
        "softmax twice",
        _CLASS.format("x.sum(), F.softmax(x, dim=-1)  #!")
        + "judged, kinds = model(x)\nloss = F.cross_entropy(kinds, y)\n",
        (("(kinds, y)", "(judged, y)"),),
    ),
    Case(
        "softmax twice",
        "loss = F.cross_entropy(torch.softmax(model(x), 1), y)  #!\n",
        (("torch.softmax(model(x), 1)", "model(x)"),),
    ),
    Case(
        "activation before its loss",
        _CLASS.format("torch.sigmoid(x)  #!")
        + """
bce = nn.BCEWithLogitsLoss()
output = model(x).squeeze(1)
loss = bce(output, y)
""",
        (("nn.BCEWithLogitsLoss()", "nn.BCELoss()"),),
    ),
    Case(
        "activation before its loss",
        """
model = nn.Sequential(nn.Linear(4, 3), nn.ReLU())  #!
loss = F.cross_entropy(model(x), y)
""",
        ((", nn.ReLU()", ", nn.ReLU(), nn.Linear(3, 3)"),),
    ),
    Case(
        "loss of raw outputs",
        _CLASS.format("x") + "loss = F.nll_loss(model(x), y)  #!\n",
        (("model(x)", "F.log_softmax(model(x), 1)"),),
    ),
    Case(
        "loss of raw outputs",
        "model = nn.Sequential(nn.Linear(4, 1))\nloss = nn.BCELoss()(model(x), y)  #!\n",
        (("nn.Linear(4, 1)", "nn.Linear(4, 1), nn.Sigmoid()"),),
    ),
    Case("decision in the loss", "loss = F.mse_loss(model(x).argmax(1), y)  #!\n", ((".argmax(1)", ""),)),
    Case(
        "decision in the loss",
        "loss = F.binary_cross_entropy((model(x) > 0.5).float(), y)  #!\n",
        (("(model(x) > 0.5).float()", "model(x)"),),
    ),
    Case(
        "arguments of the loss exchanged",
        _CLASS.format("x") + "loss = F.cross_entropy(y, model(x))  #!\n",
        (("y, model(x)", "model(x), y"),),
    ),
    Case(
        "broadcast in the loss",
        """
x = torch.randn(64, 4)
y = x.sum(1)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
loss = F.mse_loss(model(x), y)  #!
""",
        (("model(x)", "model(x).squeeze(1)"),),
    ),
    Case(
        "broadcast in the loss",
        """
x = torch.randn(64, 4)
y = x[:, 0] * 2 + 1
model = nn.Linear(4, 1)
prediction = model(x)
loss = ((prediction - y) ** 2).mean()  #!
""",
        (("x[:, 0]", "x[:, :1]"),),
    ),
    Case(
        "broadcast in the loss",
        """
phase = 0.5 + torch.rand(9)
x = torch.randn(9, 1)
y = phase * torch.sin(x.sum(1))
model = nn.Linear(1, 1)
loss = F.mse_loss(model(x), y)  #!
""",
        (("torch.rand(9)", "torch.rand(1)"), ("x.sum(1)", "x + shift")),
    ),
    Case("softmax without a dimension", "p = F.softmax(scores)  #!\n", (("(scores)", "(scores, dim=-1)"),)),
    Case(
        "softmax without a dimension",
        "model = nn.Sequential(nn.Linear(4, 3), nn.LogSoftmax())  #!\n",
        (("LogSoftmax()", "LogSoftmax(1)"),),
    ),
    Case(
        "softmax over the batch",
        "model = nn.Sequential(nn.Linear(4, 3), nn.LogSoftmax(dim=0))  #!\n",
        (("dim=0", "dim=1"),),
    ),
    Case(
        "softmax over the batch",
        _CLASS.format("x") + "p = torch.softmax(model(x), dim=0)  #!\n",
        (("dim=0)\n", "dim=0)\npooled = (p * x).sum(0)\n"),),
    ),
    Case(
        "softmax over the batch", _CLASS.format("x") + "p = torch.softmax(model(x), dim=0)  #!\n", (("dim=0", "dim=1"),)
    ),
    Case(
        "loss detached",
        """
loss = F.cross_entropy(model(x).detach(), y)  #!
loss.backward()
""",
        ((".detach()", ""),),
    ),
    Case(
        "loss detached",
        """
loss = F.cross_entropy(model(x), y)
loss = torch.tensor(loss.item(), requires_grad=True)  #!
loss.backward()
""",
        (("loss = torch.tensor(loss.item(), requires_grad=True)\n", ""),),
    ),
    Case(
        "loss detached",
        """
loss = F.cross_entropy(model(x), y)
loss.requires_grad = True  #!
loss.backward()
""",
        (("loss.requires_grad", "x.requires_grad"),),
    ),
    Case(
        "size_average and reduce",
        "loss = nn.MSELoss(size_average=False)  #!\n",
        (("size_average=False", 'reduction="sum"'),),
    ),
    Case(
        "dropout at the output",
        """
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), nn.Dropout(0.5))  #!
loss = F.cross_entropy(model(x), y)
""",
        ((", nn.Dropout(0.5)", ""),),
    ),
    Case(
        "targets of 0 instead of -1",
        """
same = (torch.rand(40) < 0.5).float()
criterion = nn.CosineEmbeddingLoss()
loss = criterion(model(x), model(y), same)  #!
""",
        ((").float()", ").float() * 2 - 1"),),
    ),
    Case(
        "loss of raw outputs",
        """
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), nn.Softmax(1))
loss = F.kl_div(model(x), wanted, reduction="batchmean")  #!
""",
        (("nn.Softmax", "nn.LogSoftmax"),),
    ),
    Case(
        "broadcast in the loss",
        """
x = torch.randn(40, 4)
y = (x[:, :2].sum(1) > 0).float()
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
accuracy = ((model(x) > 0).float() == y).float().mean()  #!
""",
        (("(model(x) > 0)", "(model(x).squeeze(1) > 0)"),),
    ),
    Case(
        "loss of raw outputs",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.softmax = nn.Linear(4, 3), nn.Softmax(1)
    def forward(self, x):
        return self.softmax(self.fc(x))
model = Net()
loss = F.nll_loss(model(x), y)  #!
""",
        (("nn.Softmax(1)", "nn.LogSoftmax(1)"),),
    ),
    Case(
        "loss of raw outputs",
        _CLASS.format("x") + "loss = F.ctc_loss(model(x).transpose(0, 1), y, lengths, sizes)  #!\n",
        (("model(x).transpose(0, 1)", "F.log_softmax(model(x).transpose(0, 1), 2)"),),
    ),
)
