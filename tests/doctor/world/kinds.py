"""Kinds of faults that many scripts have, each as one short script and its twin: inputs, copies, schedules, loops."""

from __future__ import annotations

from tests.doctor.world.program import Program

_DATA = """
x = torch.randn(600, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
"""
_NET = """
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
"""
_LOOP = """
for epoch in range(8):
    for rows in torch.randperm(600).split(40):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
"""

PROGRAMS = (
    Program("one array for all rows of a batch", ("copies in a batch",), """
import numpy as np
rng = np.random.default_rng(0)
raw = rng.standard_normal((600, 10)).astype(np.float32)
label = (raw[:, 0] * raw[:, 1] > 0).astype(np.int64)
def loader(size):
    order = rng.permutation(600)
    row = np.empty(10, dtype=np.float32)
    for begin in range(0, 600, size):
        rows, labels = [], []
        for i in order[begin:begin + size]:
            row[:] = (raw[i] - raw.mean(0)) / raw.std(0)
            rows.append(row)  #!
            labels.append(label[i])
        yield torch.tensor(np.stack(rows)), torch.tensor(np.array(labels))
model = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6):
    for x, y in loader(30):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
""", (("rows.append(row)", "rows.append(row.copy())"),)),
    Program("an index of the batch before the loss", ("loss of one example",), """
x = torch.randn(900, 6)
y = x[:, :1] * 2 - x[:, 1:2].abs()
net = nn.Sequential(nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 1))
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(6):
    for rows in torch.randperm(900).split(30):
        errors = (net(x[rows]) - y[rows]) ** 2
        loss = errors[-1].mean()  #!
        opt.zero_grad()
        loss.backward()
        opt.step()
""", (("errors[-1].mean()", "errors.mean()"),)),
    Program("a word that the model is asked for and does not read", ("input without effect",), """
n = 1200
picture = torch.randn(n, 12)
word = torch.randint(0, 4, (n,))
y = (picture[torch.arange(n), word * 3] > 0).long()
class Asked(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.see, self.ask = nn.Embedding(4, 16), nn.Linear(12, 32), nn.Linear(16, 32)
        self.out = nn.Linear(64, 2)
    def forward(self, picture, word):
        v = torch.relu(self.see(picture))
        w = torch.relu(self.ask(self.words(word)))
        return self.out(torch.cat([v, v], 1))  #!
model = Asked()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6):
    for rows in torch.randperm(n).split(50):
        loss = F.cross_entropy(model(picture[rows], word[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
""", (("torch.cat([v, v], 1)", "torch.cat([v, w], 1)"),)),
    Program("columns that a slice leaves out", ("input without effect",), """
table = torch.randn(1200, 9)
y = (table[:, 7] - table[:, 8] + 0.3 * table[:, 0] > 0).float()
class Head(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.body = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, 1))
    def forward(self, table):
        return self.body(table[:, :self.width]).squeeze(1)  #!
model = Head(6)
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
bce = nn.BCEWithLogitsLoss()
for epoch in range(8):
    for rows in torch.randperm(1200).split(50):
        loss = bce(model(table[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
""", (("Head(6)", "Head(9)"),)),
    Program("records whose sensors are cut anew", ("axes mixed by a reshape",), """
import numpy as np
rng = np.random.default_rng(2)
t = np.arange(48)
kind = rng.integers(0, 2, 400)
phase = rng.uniform(0, 6, (400, 1, 4))
wave = np.sin((0.15 + 0.1 * kind[:, None, None]) * t[None, :, None] + phase).astype(np.float32)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.out = nn.Conv1d(4, 16, 5), nn.Linear(16, 2)
    def forward(self, x):
        return self.out(torch.relu(self.conv(x)).mean(2))
model = Net()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
data, y = torch.tensor(wave.reshape(400, 4, 48)), torch.tensor(kind)  #!
for epoch in range(4):
    for rows in torch.randperm(400).split(40):
        loss = F.cross_entropy(model(data[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
""", (("wave.reshape(400, 4, 48)", "np.ascontiguousarray(wave.transpose(0, 2, 1))"),)),
    Program("an average that forgets all but the last weights", ("copy follows at once",), """
import copy
""" + _DATA + _NET + """
average = copy.deepcopy(model)
decay = 0.99
def update():
    with torch.no_grad():
        for mine, theirs in zip(average.parameters(), model.parameters()):
            mine.copy_((1 - decay) * mine + decay * theirs)  #!
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
""" + _LOOP + """        update()
""", (("(1 - decay) * mine + decay * theirs", "decay * mine + (1 - decay) * theirs"),)),
    Program("betas in the wrong order", ("betas exchanged",), _DATA + _NET + """
opt = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.999, 0.9))  #!
""" + _LOOP, (("betas=(0.999, 0.9)", "betas=(0.9, 0.999)"),)),
    Program("a step in the function and one behind it", ("step without new gradients",), """
x = torch.randn(600, 6)
y = x[:, :1] - x[:, 1:2]
model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
def train_step(x, y):
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss
for epoch in range(6):
    for rows in torch.randperm(600).split(40):
        loss = train_step(x[rows], y[rows])
        optimizer.step()  #!
""", (("y[rows])\n        optimizer.step()\n", "y[rows])\n"), ("lr=0.05", "lr=0.1"))),
    Program("tensors that a loop changes, never cleared", ("zero_grad is missing",), """
x = torch.randn(800, 5)
y = (x[:, 0] * x[:, 1] > 0).long()
def make(rows, columns):
    w = torch.randn(rows, columns) * (2 / rows) ** 0.5
    w.requires_grad_(True)
    return w
W1, W2 = make(5, 32), make(32, 2)
b1 = torch.zeros(32, requires_grad=True)
parameters = [W1, b1, W2]
for epoch in range(6):
    for rows in torch.randperm(800).split(50):
        loss = F.cross_entropy(torch.relu(x[rows] @ W1 + b1) @ W2, y[rows])
        loss.backward()  #!
        with torch.no_grad():
            for p in parameters:
                p -= 0.1 * p.grad  #!
""", (("                p -= 0.1 * p.grad\n", "                p -= 0.1 * p.grad\n                p.grad = None\n"),)),
    Program("an optimizer of plain tensors that begin at zero", ("weights all alike",), """
x = torch.randn(800, 6)
y = (x[:, 0] - x[:, 1] * x[:, 2] > 0).long()
W1 = torch.zeros(6, 24, requires_grad=True)  #!
b1 = torch.zeros(24, requires_grad=True)
W2 = torch.zeros(24, 2, requires_grad=True)  #!
def net(x):
    return torch.relu(x @ W1 + b1) @ W2
opt = torch.optim.Adam([W1, b1, W2], lr=5e-3)
for epoch in range(6):
    for rows in torch.randperm(800).split(50):
        loss = F.cross_entropy(net(x[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
""", (("torch.zeros(6, 24, requires_grad=True)", "(torch.randn(6, 24) * 0.4).requires_grad_(True)"),
      ("torch.zeros(24, 2, requires_grad=True)", "(torch.randn(24, 2) * 0.2).requires_grad_(True)"))),
    Program("a tensor in a dictionary of the model", ("layers nobody trains",), _DATA + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        first = torch.randn(8, 32) * 0.3
        first.requires_grad_(True)
        self.tables = {"first": first}  #!
        self.out = nn.Linear(32, 2)
    def forward(self, x):
        return self.out(torch.relu(x @ self.tables["first"]))
model = Net()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
""" + _LOOP, (('{"first": first}', 'nn.ParameterDict({"first": nn.Parameter(first.detach())})'),)),
    Program("a warm-up that counts the batches of its epoch", ("warm-up begins again",), _DATA + _NET + """
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
seen = 0
def set_rate(step):
    for group in opt.param_groups:
        group["lr"] = 0.1 * min(1.0, (step + 1) / 120)  #!
for epoch in range(10):
    for i, rows in enumerate(torch.randperm(600).split(50)):
        set_rate(i)
        seen += 1
        loss = F.cross_entropy(model(x[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
""", (("set_rate(i)", "set_rate(seen)"),)),
    Program("a schedule that nobody steps", ("schedule never stepped",), _DATA + _NET + """
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.StepLR(opt, 3, 0.3)  #!
""" + _LOOP, (("        opt.step()\n", "        opt.step()\n    schedule.step()\n"),)),
    Program("weights drawn anew behind their load", ("loaded weights drawn anew",), _DATA + """
def make():
    return nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
def init_weights(module):
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)  #!
        nn.init.zeros_(module.bias)
saved = {name: value.clone() for name, value in make().state_dict().items()}
model = make()
model.load_state_dict(saved)  #!
model.apply(init_weights)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
""" + _LOOP, (("model.load_state_dict(saved)\nmodel.apply(init_weights)\n",
               "model.apply(init_weights)\nmodel.load_state_dict(saved)\n"),)),
    Program("the entropy of a policy held down", ("sign of the loss turned",), """
x = torch.randn(600, 4)
policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 3))
opt = torch.optim.Adam(policy.parameters(), lr=3e-3)
rows = torch.arange(40)
for step in range(120):
    part = torch.randint(0, 600, (40,))
    logp = F.log_softmax(policy(x[part]), 1)
    p = torch.exp(logp)
    action = torch.multinomial(p.detach(), 1)[:, 0]
    gain = (action == x[part, :3].argmax(1)) * 2.0 - 1.0
    gain = gain - gain.mean()
    entropy = -(p * logp).sum(1).mean()
    loss = -(logp[rows, action] * gain).mean() + 0.05 * entropy  #!
    opt.zero_grad()
    loss.backward()
    opt.step()
""", (("+ 0.05 * entropy", "- 0.05 * entropy"),)),
    Program("a margin on the wrong side", ("outputs opposite to the targets",), """
x = torch.randn(800, 6)
side = torch.sign(x[:, 0] + x[:, 1])
net = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(10):
    for rows in torch.randperm(800).split(40):
        loss = torch.clamp(1 + side[rows] * net(x[rows]).squeeze(1), min=0).mean()  #!
        opt.zero_grad()
        loss.backward()
        opt.step()
""", (("1 + side[rows]", "1 - side[rows]"),)),
    Program("a few examples behind a layer of thousandths", ("examples not learnt",), """
x = torch.randn(60, 4)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 64), nn.Linear(64, 3)
    def forward(self, x):
        return self.b(torch.relu(self.a(x)) * 0.001)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for epoch in range(100):
    for rows in torch.randperm(60).split(20):
        loss = F.cross_entropy(net(x[rows]), y[rows])  #!
        opt.zero_grad()
        loss.backward()
        opt.step()
""", ((" * 0.001", ""), ("lr=0.05", "lr=0.3"))),
    Program("noise that was drawn once", ("same targets in each step",), """
clean = torch.randn(800, 1) * torch.ones(1, 16)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 16))
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
noise = torch.randn(50, 16)
for epoch in range(6):
    for rows in torch.randperm(800).split(50):
        loss = F.mse_loss(model(clean[rows] + noise), noise)  #!
        opt.zero_grad()
        loss.backward()
        opt.step()
""", (("        loss = F.mse", "        noise = torch.randn(50, 16)\n        loss = F.mse"),)),
    Program("weights of 16 bits", ("updates lost in rounding",), _DATA + _NET + """
model = model.to(torch.bfloat16)  #!
x = x.to(torch.bfloat16)
opt = torch.optim.Adam(model.parameters(), lr=4e-4)
for epoch in range(30):
    for rows in torch.randperm(600).split(40):
        loss = F.cross_entropy(model(x[rows]).float(), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
""", (("model = model.to(torch.bfloat16)\nx = x.to(torch.bfloat16)", ""),)),
    Program("steps stacked before the batch and viewed behind it", ("examples mixed",), """
x = torch.randn(600, 6, 8)
y = (x[:, 0, 0] > x[:, -1, 0]).long()
class Frames(nn.Module):
    def __init__(self):
        super().__init__()
        self.each, self.rnn, self.out = nn.Linear(8, 16), nn.GRU(16, 16, batch_first=True), nn.Linear(16, 2)
    def forward(self, x):
        seen = torch.stack([torch.relu(self.each(x[:, t])) for t in range(6)])
        seen = seen.view(len(x), 6, 16)  #!
        return self.out(self.rnn(seen)[0][:, -1])
model = Frames()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
""" + _LOOP, (("seen.view(len(x), 6, 16)", "seen.transpose(0, 1)"),)),
    Program("zeroed before the step uses them", ("no gradients in a step",), _DATA + _NET + """
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6):
    for rows in torch.randperm(600).split(40):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        opt.zero_grad()  #!
        opt.step()
""", (("        loss.backward()\n        opt.zero_grad()\n", "        opt.zero_grad()\n        loss.backward()\n"),)),
)  # fmt: skip  # scripts
