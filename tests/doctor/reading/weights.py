"""Faults of how weights begin, are tied, frozen and handed on."""

from __future__ import annotations

from tests.doctor.reading.case import Case

CASES = (
    Case(
        "weights all alike",
        """
class Gate(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, d), nn.Tanh())
        nn.init.zeros_(self.net[0].weight)  #!
        nn.init.zeros_(self.net[2].weight)
    def forward(self, x):
        return self.net(x)
""",
        (("        nn.init.zeros_(self.net[0].weight)\n", ""),),
    ),
    Case(
        "weights all alike",
        """
def weight(*shape):
    return torch.zeros(*shape, requires_grad=True)
first = weight(4, 8)  #!
second = weight(8, 3)
def predict(x):
    return (x @ first).relu() @ second
""",
        (("    return torch.zeros(*shape, requires_grad=True)", "    return torch.randn(*shape).requires_grad_()"),),
    ),
    Case(
        "dropout out of the usual",
        """
import json
config = json.loads('{"drop": 0.9}')
class Model(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.dropout = nn.Dropout(cfg["drop"])  #!
model = Model(config)
""",
        (("0.9", "0.1"),),
    ),
    Case(
        "tied weights apart",
        """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.head = nn.Embedding(9, 8), nn.Linear(8, 9, bias=False)
        self.token.weight = self.head.weight
def begin(model):
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.weight = nn.Parameter(0.1 * torch.randn(*module.weight.shape))  #!
model = Model()
begin(model)
""",
        (("module.weight = nn.Parameter(0.1 * torch.randn(*module.weight.shape))", "nn.init.normal_(module.weight)"),),
    ),
    Case(
        "frozen layers in training mode",
        """
class Model(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body, self.head = body, nn.Linear(8, 3)
    def forward(self, x):
        return self.head(self.body(x))
model = Model(nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8)))
for p in model.body.parameters():
    p.requires_grad = False
optimizer = torch.optim.Adam(model.head.parameters())
for epoch in range(3):
    model.train()  #!
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
""",
        (("    model.train()\n", "    model.train()\n    model.body.eval()\n"),),
    ),
    Case(
        "frozen layers in training mode",
        """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8)), nn.Linear(8, 3)
    def forward(self, x):
        return self.head(self.body(x))
def fit(model, batches, weights):
    optimizer = torch.optim.Adam(weights)
    for epoch in range(3):
        model.train()  #!
        for x, y in batches:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
model = Model()
fit(model, first, model.parameters())
for p in model.body.parameters():
    p.requires_grad = False
fit(model, second, model.head.parameters())
""",
        (("        model.train()\n", "        model.train()\n        model.body.eval()\n"),),
    ),
    Case(
        "frozen layers in training mode",
        """
def rest(model):
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.eval()
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
optimizer = torch.optim.Adam(model.parameters())
rest(model)
for epoch in range(3):
    model.train()  #!
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
""",
        (("    model.train()\n", "    model.train()\n    rest(model)\n"),),
    ),
    Case(
        "frozen layers in training mode",
        """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.norm, self.head = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)
    def forward(self, x):
        return self.head(self.norm(self.body(x)))
model = Model()
optimizer = torch.optim.Adam(model.parameters())
model.norm.eval()
for epoch in range(3):
    model.train()  #!
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
""",
        (("    model.train()\n", "    model.train()\n    model.norm.eval()\n"),),
    ),
    Case(
        "comparison instead of an assignment",
        "for p in model.parameters():\n    p.requires_grad == False  #!\n",
        (("== False", "= False"),),
    ),
    Case(
        "parameters used up",
        """
class Training:
    def __init__(self, model):
        self.weights = filter(lambda p: p.requires_grad, model.parameters())
        self.optimizer = torch.optim.SGD(self.weights, lr=0.1)
    def step(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.weights, 1.0)  #!
        self.optimizer.step()
""",
        (("filter(lambda p: p.requires_grad, model.parameters())", "list(model.parameters())"),),
    ),
    Case(
        "parameters used up",
        """
model = nn.Linear(4, 3)
weights = model.parameters()
optimizer = torch.optim.SGD(weights, lr=0.1)
for x, y in batches:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(weights, 1.0)  #!
    optimizer.step()
""",
        (("weights = model.parameters()", "weights = list(model.parameters())"),),
    ),
    Case(
        "residual changed in place",
        """
class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.act, self.a, self.b = nn.ReLU(inplace=True), nn.Linear(d, d), nn.Linear(d, d)
    def forward(self, x):
        out = self.act(x)  #!
        out = self.b(self.a(out).tanh())
        return out + x
""",
        (("nn.ReLU(inplace=True)", "nn.ReLU()"),),
    ),
    Case(
        "layers nobody trains",
        """
class Merge(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = list(layers)  #!
    def forward(self, x):
        return sum(layer(x) for layer in self.layers)
def branch(width):
    return nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 3))
model = Merge([branch(4), branch(8)])
""",
        (("list(layers)", "nn.ModuleList(layers)"),),
    ),
)
