"""Faults that rules about the ops, the calls and the data name."""

from __future__ import annotations

from tests.doctor.world.program import Program

_DATA = """
x = torch.randn(512, 8)
y = (x @ torch.randn(8, 3)).argmax(1)
"""
_LOOP = """
for step in range(150):
    rows = torch.randint(0, 512, (32,))
"""
_RATE = ("rate above the curvature", "rate unfit for the weights", "learning rate out of the usual")

PROGRAMS = (
    Program("softmax before cross entropy", ("softmax twice",), _DATA + """
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3), nn.Softmax(dim=1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
""" + _LOOP + """
    prediction = model(x[rows])  #!
    loss = F.cross_entropy(prediction, y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", ((", nn.Softmax(dim=1)", ""),)),
    Program("sigmoid before its logits loss", ("activation before its loss",), """
x = torch.randn(512, 8)
y = (x[:, :1] > 0) * 1.0
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 16), nn.Linear(16, 1)
    def forward(self, x):
        return torch.sigmoid(self.b(self.a(x).relu()))  #!
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
""" + _LOOP + """
    optimizer.zero_grad()
    loss = F.binary_cross_entropy_with_logits(model(x[rows]), y[rows])
    loss.backward()
    optimizer.step()
""", (("torch.sigmoid(self.b(self.a(x).relu()))", "self.b(self.a(x).relu())"),)),
    Program("no zero_grad", ("zero_grad is missing",), _DATA + """
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
""" + _LOOP + """
    loss = F.cross_entropy(model(x[rows]), y[rows])
    loss.backward()  #!
    optimizer.step()
""", (("    loss.backward()", "    optimizer.zero_grad()\n    loss.backward()"),)),
    Program("a column against a row", ("broadcast in the loss",), """
x = torch.randn(512, 4)
y = x.sum(1)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
""" + _LOOP + """
    loss = ((model(x[rows]) - y[rows]) ** 2).mean()  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("model(x[rows]) - y", "model(x[rows]).squeeze(1) - y"),)),
    Program("rate too high", _RATE, _DATA + """
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1.0)  #!
""" + _LOOP + """
    loss = F.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("lr=1.0", "lr=1e-2"),)),
    Program("rate too low", ("rate unfit for the weights",), _DATA + """
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-7)  #!
""" + _LOOP + """
    loss = F.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("lr=1e-7", "lr=1e-1"),)),
    Program("inputs of 0 to 255", ("inputs unnormalised",), """
x = torch.randint(0, 256, (512, 16)) * 1.0
y = (x[:, 0] > 128) * 1
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
""" + _LOOP + """
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x[rows]), y[rows])  #!
    loss.backward()
    optimizer.step()
""", (
        ("x = torch.randint(0, 256, (512, 16)) * 1.0",
         "x = torch.randint(0, 256, (512, 16)) / 128 - 1"),
        ("128) * 1",
         "0) * 1"),
    )),
    Program("no eval()", ("training mode in evaluation",), _DATA + """
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
""" + _LOOP + """
    loss = F.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        with torch.no_grad():
            right = model(x).argmax(1) == y  #!
        model.train()
""", (("        with torch", "        model.eval()\n        with torch"),)),
    Program("loss detached", ("loss detached",), _DATA + """
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
""" + _LOOP + """
    loss = F.cross_entropy(model(x[rows]), y[rows])
    loss = torch.tensor(loss.item(), requires_grad=True)
    optimizer.zero_grad()
    loss.backward()  #!
    optimizer.step()
""", (("    loss = torch.tensor(loss.item(), requires_grad=True)\n", ""),)),
    Program("sorted data", ("data not shuffled",), _DATA + """
order = torch.argsort(y)
x, y = x[order], y[order]
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(150):
    rows = torch.arange(step % 16 * 32, step % 16 * 32 + 32)
    loss = F.cross_entropy(model(x[rows]), y[rows])  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("order = torch.argsort(y)", "order = torch.randperm(512)"),)),
    Program("NaN in the data", ("NaN in the data",), _DATA + """
x[::40, 2] = float("nan")
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
""" + _LOOP + """
    loss = F.cross_entropy(model(x[rows]), y[rows])  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (('float("nan")', "0.0"),)),
    Program("deep sigmoids", ("sigmoids too deep", "vanishing gradient"), _DATA + """
layers = [nn.Linear(8, 24), nn.Sigmoid()]
for _ in range(6):
    layers += [nn.Linear(24, 24), nn.Sigmoid()]
model = nn.Sequential(*layers, nn.Linear(24, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
""" + _LOOP + """
    loss = F.cross_entropy(model(x[rows]), y[rows])  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("nn.Sigmoid()", "nn.ReLU()"), ("range(6)", "range(2)"))),
    Program("ReLU at the output of a regression", ("rectifier at the output", "output without input"), """
x = torch.randn(512, 4)
y = x.sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1), nn.ReLU())
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
""" + _LOOP + """
    prediction = model(x[rows])  #!
    loss = F.mse_loss(prediction, y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("nn.Linear(16, 1), nn.ReLU()", "nn.Linear(16, 1)"),)),
)  # fmt: skip  # scripts
