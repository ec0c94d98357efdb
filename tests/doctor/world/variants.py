"""The same faults in other shapes, names and losses."""

from __future__ import annotations

from tests.doctor.world.program import Program

_IMAGES = """
images = torch.randn(256, 1, 8, 8)
kinds = (images[:, 0, :4].mean((1, 2)) > images[:, 0, 4:].mean((1, 2))) * 1
"""
_CURVE = """
inputs = torch.rand(400, 1) * 4 - 2
targets = torch.sin(2 * inputs)
"""
_FIT = """
for epoch in range(6):
    for start in range(0, 256, 16):
        opt.zero_grad()
        score = criterion(net(images[start:start + 16]), kinds[start:start + 16])
        score.backward()
        opt.step()
"""
_CNN = """
net = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(216, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
criterion = nn.CrossEntropyLoss()
"""
_REGRESS = """
mse = nn.MSELoss()
for it in range(160):
    pick = torch.randint(0, 400, (40,))
    error = mse(net(inputs[pick]), targets[pick])
    adam.zero_grad()
    error.backward()
    adam.step()
"""

PROGRAMS = (
    Program("blocks in a dictionary", ("layers nobody trains",), _IMAGES + """
class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = {"low": nn.Conv2d(1, 6, 3), "high": nn.Conv2d(6, 6, 3)}  #!
        self.head = nn.Linear(6 * 16, 2)
    def forward(self, x):
        x = self.blocks["high"](self.blocks["low"](x).relu()).relu()
        return self.head(x.reshape(len(x), -1))
net = Tower()
opt = torch.optim.SGD(net.parameters(), lr=0.05)
criterion = nn.CrossEntropyLoss()
""" + _FIT, (
        ('{"low": nn.Conv2d(1, 6, 3), "high": nn.Conv2d(6, 6, 3)}',
         'nn.ModuleDict({"low": nn.Conv2d(1, 6, 3), "high": nn.Conv2d(6, 6, 3)})'),
    ), "ModuleDict"),
    Program("an encoder that no optimizer has", ("layers nobody trains",), _CURVE + """
encoder = nn.Sequential(nn.Linear(1, 24), nn.Tanh())  #!
decoder = nn.Linear(24, 1)
adam = torch.optim.Adam(decoder.parameters(), lr=1e-2)
for it in range(160):
    pick = torch.randint(0, 400, (40,))
    error = F.l1_loss(decoder(encoder(inputs[pick])), targets[pick])
    adam.zero_grad()
    error.backward()
    adam.step()
""", (("decoder.parameters()", "list(encoder.parameters()) + list(decoder.parameters())"),), "encoder"),
    Program("clipped too early in a function", ("clipping before backward",), _CURVE + """
net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
def step(a, b):
    adam.zero_grad()
    error = F.mse_loss(net(a), b)
    nn.utils.clip_grad_norm_(net.parameters(), max_norm=0.5, norm_type=1.0)  #!
    error.backward()
    adam.step()
for it in range(100):
    pick = torch.randint(0, 400, (40,))
    step(inputs[pick], targets[pick])
""", (
        ("    nn.utils.clip_grad_norm_(net.parameters(), max_norm=0.5, norm_type=1.0)\n", ""),
        ("    error.backward()",
         "    error.backward()\n    nn.utils.clip_grad_norm_(net.parameters(), max_norm=0.5, norm_type=1.0)"),
    )),
    Program("a name imported, clipped after the step's zeroing", ("clipping before backward",), """
from torch.nn.utils import clip_grad_norm_
""" + _IMAGES + _CNN + """
for start in range(0, 240, 8):
    score = criterion(net(images[start:start + 8]), kinds[start:start + 8])
    opt.zero_grad()
    clip_grad_norm_(net.parameters(), max_norm=0.1)  #!
    score.backward()
    opt.step()
""", (
        ("    clip_grad_norm_(net.parameters(), max_norm=0.1)\n    score.backward()",
         "    score.backward()\n    clip_grad_norm_(net.parameters(), max_norm=0.1)"),
    )),
    Program("one step an epoch", ("gradients never used",), _IMAGES + _CNN + """
def epoch():
    for start in range(0, 256, 16):
        net.zero_grad()
        score = criterion(net(images[start:start + 16]), kinds[start:start + 16])
        score.backward()
    opt.step()  #!
for number in range(8):
    epoch()
""", (("    opt.step()", "        opt.step()"),)),
    Program("one step at the end of all", ("gradients never used",), _CURVE + """
net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
for it in range(80):
    pick = torch.randint(0, 400, (40,))
    error = F.mse_loss(net(inputs[pick]), targets[pick])
    adam.zero_grad()
    error.backward()
adam.step()  #!
""", (("\nadam.step()", "\n    adam.step()"),)),
    Program("a squared error made large", ("sign of the loss turned",), _CURVE + """
net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
for it in range(200):
    pick = torch.randint(0, 400, (40,))
    error = -1 * ((net(inputs[pick]) - targets[pick]) ** 2).mean()  #!
    adam.zero_grad()
    error.backward()
    adam.step()
""", (("-1 * ((net", "1 * ((net"),)),
    Program("nll_loss without log_softmax", ("sign of the loss turned",), _IMAGES + """
net = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
criterion = nn.NLLLoss()
for epoch in range(12):
    for start in range(0, 256, 16):
        opt.zero_grad()
        score = criterion(net(images[start:start + 16]), kinds[start:start + 16])  #!
        score.backward()
        opt.step()
""", (("nn.Linear(16, 2))", "nn.Linear(16, 2), nn.LogSoftmax(1))"),)),
    Program("a step of the schedule in each iteration", ("rate decays to nothing",), _IMAGES + _CNN + """
decay = torch.optim.lr_scheduler.StepLR(opt, step_size=5, gamma=0.1)
for epoch in range(12):
    for start in range(0, 256, 16):
        opt.zero_grad()
        score = criterion(net(images[start:start + 16]), kinds[start:start + 16])
        score.backward()
        opt.step()
        decay.step()  #!
""", (("        decay.step()", "    decay.step()"),)),
    Program("a schedule that is far too fast", ("rate decays to nothing",), _CURVE + """
net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.LambdaLR(adam, lambda n: 0.8 ** n)
for it in range(160):
    pick = torch.randint(0, 400, (40,))
    adam.zero_grad()
    F.mse_loss(net(inputs[pick]), targets[pick]).backward()
    adam.step()
    schedule.step()  #!
""", (("0.8 ** n", "0.99 ** n"),)),
    Program("a momentum of nearly nothing", ("running statistics do not arrive",), _IMAGES + """
norm = nn.BatchNorm2d(6, momentum=1e-4)  #!
net = nn.Sequential(nn.Conv2d(1, 6, 3), norm, nn.ReLU(), nn.Flatten(), nn.Linear(216, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
criterion = nn.CrossEntropyLoss()
""" + _FIT, ((", momentum=1e-4", ""),)),
    Program("a momentum as other libraries count it", ("running statistics do not arrive",), _CURVE + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(1, 24), nn.Linear(24, 1)
        self.norm = nn.BatchNorm1d(24, eps=1e-3, momentum=0.99)  #!
    def forward(self, x):
        return self.b(torch.tanh(self.norm(self.a(x))))
net = Net()
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
""" + _REGRESS, (("momentum=0.99", "momentum=0.01"),)),
    Program("GRU with the axes exchanged", ("sequence read at its beginning",), """
songs = torch.randn(128, 7, 3)
mood = (songs.mean((1, 2)) > 0) * 1
class Listener(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.out = nn.GRU(3, 12), nn.Linear(12, 2)
    def forward(self, x):
        states = self.gru(x.transpose(0, 1))[0]
        return self.out(states[0])  #!
ear = Listener()
opt = torch.optim.RMSprop(ear.parameters(), lr=3e-3)
for it in range(60):
    part = torch.randint(0, 128, (16,))
    opt.zero_grad()
    F.cross_entropy(ear(songs[part]), mood[part]).backward()
    opt.step()
""", (("states[0]", "states[-1]"),)),
    Program("one example of the batch read", ("sequence read at its beginning",), """
songs = torch.randn(128, 7, 3)
mood = songs.sum((1, 2)).reshape(-1, 1)
class Listener(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.out = nn.RNN(3, 12), nn.Linear(12, 1)
    def forward(self, x):
        states, _ = self.rnn(x)
        return self.out(states[:, -1])  #!
ear = Listener()
opt = torch.optim.Adam(ear.parameters(), lr=3e-3)
for it in range(60):
    part = torch.randint(0, 128, (16,))
    opt.zero_grad()
    F.mse_loss(ear(songs[part]), mood[part]).backward()
    opt.step()
""", (("nn.RNN(3, 12)", "nn.RNN(3, 12, batch_first=True)"),), "batch"),
    Program("parameters made of zeros", ("weights all alike",), _CURVE + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1 = nn.Parameter(torch.zeros(1, 24))  #!
        self.w2 = nn.Parameter(torch.zeros(24, 24))  #!
        self.w3 = nn.Parameter(torch.zeros(24, 1))  #!
    def forward(self, x):
        return torch.tanh(torch.tanh(x @ self.w1) @ self.w2) @ self.w3
net = Net()
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
""" + _REGRESS, (("torch.zeros(1, 24)", "torch.randn(1, 24)"), ("torch.zeros(24, 24)", "torch.randn(24, 24) / 5"))),
    Program("weights of one value", ("weights all alike",), _IMAGES + _CNN + """
def init(module):
    if hasattr(module, "weight"):
        nn.init.constant_(module.weight, 0.05)  #!
net.apply(init)
""" + _FIT, (("nn.init.constant_(module.weight, 0.05)", "nn.init.normal_(module.weight, 0.0, 0.05)"),)),
    Program("a softmax module over axis 0", ("softmax over the batch",), _IMAGES + """
net = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 2), nn.Softmax(dim=0))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
wanted = F.one_hot(kinds, 2) * 1.0
for epoch in range(6):
    for start in range(0, 256, 16):
        opt.zero_grad()
        score = F.mse_loss(net(images[start:start + 16]), wanted[start:start + 16])  #!
        score.backward()
        opt.step()
""", (("dim=0", "dim=1"),)),
    Program("log_softmax over axis 0", ("softmax over the batch",), _IMAGES + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(64, 16), nn.Linear(16, 2)
    def forward(self, x):
        return F.log_softmax(self.b(self.a(x.reshape(len(x), -1)).relu()), dim=0)  #!
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
criterion = nn.NLLLoss()
""" + _FIT, (("dim=0", "dim=-1"),)),
    Program("frozen by name", ("nearly everything frozen",), _IMAGES + _CNN + """
for name, parameter in net.named_parameters():
    parameter.requires_grad = name == "3.bias"  #!
""" + _FIT, (('name == "3.bias"', 'name.startswith("3.")'),)),
    Program("a module frozen as a whole", ("nearly everything frozen",), _CURVE + """
net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))
net.requires_grad_(False)  #!
net[2].bias.requires_grad_(True)
adam = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=1e-2)
""" + _REGRESS, (("net[2].bias.requires_grad_(True)", "net[2].requires_grad_(True)"),)),
    Program("decay apart from the gradient", ("weight decay out of the usual",), _CURVE + """
net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))
adam = torch.optim.AdamW(net.parameters(), lr=1e-2, weight_decay=20.0)  #!
""" + _REGRESS, (("weight_decay=20.0", "weight_decay=0.1"),)),
    Program("decay in a group", ("weight decay out of the usual",), _IMAGES + _CNN.replace(
        "opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)",
        'heavy = {"params": net[3].parameters(), "weight_decay": 3.0}\n'
        'opt = torch.optim.Adam([{"params": net[0].parameters()}, heavy])  #!',
    ) + _FIT, (('"weight_decay": 3.0', '"weight_decay": 1e-3'),)),
    Program("matrices without an activation", ("linear layers in a row",), _CURVE + """
class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(1, 24), nn.Linear(24, 24), nn.Linear(24, 1)])
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)  #!
        return x
net = Deep()
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
""" + _REGRESS, (("x = layer(x)", "x = layer(x) if layer is self.layers[0] else layer(torch.tanh(x))"),)),
    Program("convolutions without an activation", ("linear layers in a row",), _IMAGES + """
net = nn.Sequential(nn.Conv2d(1, 6, 3), nn.Conv2d(6, 6, 3), nn.Flatten(), nn.Linear(96, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for epoch in range(6):
    for start in range(0, 256, 16):
        opt.zero_grad()
        score = F.cross_entropy(net(images[start:start + 16]), kinds[start:start + 16])  #!
        score.backward()
        opt.step()
""", (("nn.Conv2d(1, 6, 3), nn.Conv2d(6, 6, 3),", "nn.Conv2d(1, 6, 3), nn.ELU(), nn.Conv2d(6, 6, 3), nn.GELU(),"),)),
    Program("labels sorted alone", ("labels do not belong to the inputs",), """
points = torch.randn(3000, 5)
group = (points[:, 0] * points[:, 1] > 0) * 1 + (points[:, 2] > 0) * 2
points, group = points[torch.argsort(points[:, 4])], group
net = nn.Sequential(nn.Linear(5, 48), nn.Tanh(), nn.Linear(48, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.3)
for it in range(500):
    part = torch.randint(0, 3000, (50,))
    score = F.cross_entropy(net(points[part]), group[part])  #!
    opt.zero_grad()
    score.backward()
    opt.step()
""", (
        ("points, group = points[torch.argsort(points[:, 4])], group",
         "order = torch.argsort(points[:, 4]); points, group = points[order], group[order]"),
    )),
    Program("a batch's labels shifted by one", ("labels do not belong to the inputs",), """
pictures = torch.randn(2048, 1, 6, 6)
signs = (pictures.mean((1, 2, 3)) > 0) * 1
net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(128, 2))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(6):
    order = torch.randperm(2048)
    for at in range(0, 2048, 64):
        a, b = pictures[order[at:at + 64]], signs[at:at + 64]
        score = F.cross_entropy(net(a), b)  #!
        opt.zero_grad()
        score.backward()
        opt.step()
""", (("signs[at:at + 64]", "signs[order[at:at + 64]]"),)),
    Program("a classifier's layer replaced", ("parameters without an optimizer",),
            _IMAGES + _CNN.replace("Linear(216, 2)", "Linear(216, 10)") + """
net[3] = nn.Linear(216, 2)  #!
""" + _FIT, (("net[3] = nn.Linear(216, 2)", ""), ("Linear(216, 10)", "Linear(216, 2)")), "new '3'"),
    Program("a head added by a method", ("parameters without an optimizer",), _CURVE + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.fc = nn.Linear(1, 24), nn.Linear(24, 8)
    def for_regression(self):
        self.fc = nn.Sequential(nn.Linear(24, 12), nn.ReLU(), nn.Linear(12, 1))  #!
    def forward(self, x):
        return self.fc(torch.tanh(self.body(x)))
net = Net()
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
net.for_regression()
""" + _REGRESS, (
        ("adam = torch.optim.Adam(net.parameters(), lr=1e-2)\nnet.for_regression()",
         "net.for_regression()\nadam = torch.optim.Adam(net.parameters(), lr=1e-2)"),
    ), "fc"),
    Program("all hidden units dead", ("output without input", "dead units"), _CURVE + """
net = nn.Sequential(nn.Linear(1, 24), nn.ReLU(), nn.Linear(24, 1))
with torch.no_grad():
    net[0].bias.fill_(-50.0)
adam = torch.optim.Adam(net.parameters(), lr=1e-3)
mse = nn.MSELoss()
for it in range(160):
    pick = torch.randint(0, 400, (40,))
    error = mse(net(inputs[pick]), targets[pick])  #!
    adam.zero_grad()
    error.backward()
    adam.step()
""", (("fill_(-50.0)", "fill_(0.1)"),)),
    Program("a rectifier function at the end", ("rectifier at the output", "output without input"), _CURVE + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(1, 24), nn.Linear(24, 1)
    def forward(self, x):
        return F.relu(self.b(torch.tanh(self.a(x))))  #!
net = Net()
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
for it in range(160):
    pick = torch.randint(0, 400, (40,))
    error = ((net(inputs[pick]) - targets[pick]) ** 2).mean()  #!
    adam.zero_grad()
    error.backward()
    adam.step()
""", (("F.relu(self.b(torch.tanh(self.a(x))))", "self.b(torch.tanh(self.a(x)))"),)),
)  # fmt: skip  # scripts
