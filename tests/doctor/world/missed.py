"""Faults that only a symptom of was named before, or nothing."""

from __future__ import annotations

from tests.doctor.world.program import Program

_DATA = """
x = torch.randn(512, 8)
y = (x @ torch.randn(8, 3)).argmax(1)
"""
_LOOP = """
for step in range(150):
    rows = torch.randint(0, 512, (32,))
    loss = F.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

PROGRAMS = (
    Program("layers in a plain list", ("layers nobody trains",), _DATA + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 24)
        self.hidden = [nn.Linear(24, 24) for _ in range(3)]  #!
        self.last = nn.Linear(24, 3)
    def forward(self, x):
        x = self.first(x).relu()
        for layer in self.hidden:
            x = layer(x).relu()
        return self.last(x)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
""" + _LOOP, (
        ("[nn.Linear(24, 24) for _ in range(3)]",
         "nn.ModuleList([nn.Linear(24, 24) for _ in range(3)])"),
    ), "ModuleList"),
    Program("clipping before backward", ("clipping before backward",), _DATA + """
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(150):
    rows = torch.randint(0, 512, (32,))
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x[rows]), y[rows])
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  #!
    loss.backward()
    optimizer.step()
""", (
        ("    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    loss.backward()\n",
         "    loss.backward()\n    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"),
    )),
    Program("step after the loop", ("gradients never used",), _DATA + """
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(5):
    for step in range(16):
        rows = torch.arange(step * 32, step * 32 + 32)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
    optimizer.step()  #!
""", (("    optimizer.step()", "        optimizer.step()"),)),
    Program("sign of the loss turned", ("sign of the loss turned",), _DATA + """
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(150):
    rows = torch.randint(0, 512, (32,))
    scores = F.log_softmax(model(x[rows]), 1)
    loss = scores[torch.arange(32), y[rows]].mean()  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("loss = scores", "loss = -scores"),)),
    Program("schedule stepped for each batch", ("rate decays to nothing",), _DATA + """
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
for epoch in range(15):
    for step in range(16):
        rows = torch.randint(0, 512, (32,))
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()  #!
""", (("        schedule.step()", "    schedule.step()"),)),
    Program("running statistics never arrive", ("running statistics do not arrive",), _DATA + """
model = nn.Sequential(
    nn.Linear(8, 32),
    nn.BatchNorm1d(32, momentum=0.0),  #!
    nn.ReLU(),
    nn.Linear(32, 3),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
""" + _LOOP, (("momentum=0.0", "momentum=0.1"),)),
    Program("RNN read at its first output", ("sequence read at its beginning",), """
x = torch.randn(256, 10, 4)
y = (x.sum(1)[:, 0] > 0) * 1
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.LSTM(4, 16, batch_first=True), nn.Linear(16, 2)
    def forward(self, x):
        outputs, _ = self.rnn(x)
        return self.head(outputs[:, 0])  #!
model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(60):
    rows = torch.randint(0, 256, (32,))
    loss = F.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("outputs[:, 0]", "outputs[:, -1]"),)),
    Program("all weights zero", ("weights all alike",), _DATA + """
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
for parameter in model.parameters():
    nn.init.zeros_(parameter)  #!
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
""" + _LOOP, (("nn.init.zeros_(parameter)", "nn.init.uniform_(parameter, -0.2, 0.2)"),)),
    Program("softmax over the batch", ("softmax over the batch",), _DATA + """
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(150):
    rows = torch.randint(0, 512, (32,))
    p = torch.softmax(model(x[rows]), dim=0)  #!
    loss = -torch.log(p[torch.arange(32), y[rows]] + 1e-8).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("dim=0", "dim=1"),)),
    Program("everything frozen but one bias", ("nearly everything frozen",), _DATA + """
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
for parameter in list(model.parameters())[:-1]:
    parameter.requires_grad_(False)  #!
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
""" + _LOOP, (("[:-1]", "[:1]"),)),
    Program("weight decay of 5", ("weight decay out of the usual",), _DATA + """
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=5.0)  #!
""" + _LOOP, (("weight_decay=5.0", "weight_decay=5e-4"),)),
    Program("linear layers without activation", ("linear layers in a row",), _DATA + """
model = nn.Sequential(nn.Linear(8, 32), nn.Linear(32, 32), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(150):
    rows = torch.randint(0, 512, (32,))
    loss = F.cross_entropy(model(x[rows]), y[rows])  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("nn.Linear(8, 32), nn.Linear(32, 32),", "nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(),"),)),
    Program("labels that do not belong to their inputs", ("labels do not belong to the inputs",), """
x = torch.randn(4096, 8)
y = (x @ torch.randn(8, 3)).argmax(1)
x = x[torch.randperm(4096)]
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(400):
    rows = torch.randint(0, 4096, (64,))
    loss = F.cross_entropy(model(x[rows]), y[rows])  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("x = x[torch.randperm(4096)]\n", ""),)),
    Program("head replaced after the optimizer", ("parameters without an optimizer",), """
x = torch.randn(512, 8)
y = (x @ torch.randn(8, 5)).argmax(1)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(8, 32), nn.Linear(32, 10)
    def forward(self, x):
        return self.head(self.body(x).relu())
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
model.head = nn.Linear(32, 5)  #!
""" + _LOOP, (
        ("optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)\nmodel.head = nn.Linear(32, 5)\n",
         "model.head = nn.Linear(32, 5)\noptimizer = torch.optim.Adam(model.parameters(), lr=1e-2)\n"),
    ), "head"),
    Program("dead output", ("output without input",), """
x = torch.randn(512, 4)
y = x.abs().sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1), nn.ReLU())
with torch.no_grad():
    model[2].bias -= 20.0
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(150):
    rows = torch.randint(0, 512, (32,))
    prediction = model(x[rows])  #!
    loss = F.mse_loss(prediction, y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (("nn.Linear(16, 1), nn.ReLU())", "nn.Linear(16, 1))"), ("-= 20.0", "+= 2.0"))),
)  # fmt: skip  # scripts
