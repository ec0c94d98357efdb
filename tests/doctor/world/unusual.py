"""Healthy trainings that look like the faults: two optimizers, sums over batches, losses below 0, frozen parts."""

from __future__ import annotations

_CURVE = """
inputs = torch.rand(400, 1) * 4 - 2
targets = torch.sin(2 * inputs)
"""

UNUSUAL = {
    "two players": """
data = torch.randn(512, 2) * 0.5 + 1
maker = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
judge = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
a = torch.optim.Adam(maker.parameters(), lr=2e-3)
b = torch.optim.Adam(judge.parameters(), lr=2e-3)
bce = nn.BCEWithLogitsLoss()
for it in range(60):
    real, made = data[torch.randint(0, 512, (32,))], maker(torch.randn(32, 4))
    b.zero_grad()
    (bce(judge(real), torch.ones(32, 1)) + bce(judge(made.detach()), torch.zeros(32, 1))).backward()
    b.step()
    a.zero_grad()
    bce(judge(made), torch.ones(32, 1)).backward()
    a.step()
""",
    "gradients of four batches": _CURVE + """
net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
for it in range(160):
    pick = torch.randint(0, 400, (40,))
    (F.mse_loss(net(inputs[pick]), targets[pick]) / 4).backward()
    if it % 4 == 3:
        torch.nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        adam.step()
        adam.zero_grad()
""",
    "a teacher": _CURVE + """
teacher = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1)).eval()
net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
for it in range(100):
    pick = torch.randint(0, 400, (40,))
    adam.zero_grad()
    F.mse_loss(net(inputs[pick]), teacher(inputs[pick])).backward()
    adam.step()
""",
    "a density": """
x = torch.randn(400, 3)
y = x.sum(1, keepdim=True) + 0.01 * torch.randn(400, 1)
net = nn.Linear(3, 2)
adam = torch.optim.Adam(net.parameters(), lr=3e-2)
for it in range(200):
    pick = torch.randint(0, 400, (40,))
    out = net(x[pick])
    mean, log = out[:, :1], out[:, 1:]
    adam.zero_grad()
    (log + 0.5 * (y[pick] - mean) ** 2 * torch.exp(-2 * log)).mean().backward()
    adam.step()
""",
    "a policy": """
net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
for it in range(100):
    state = torch.randn(64, 4)
    score = F.log_softmax(net(state), 1)
    action = torch.randint(0, 3, (64,))
    gain = (action == state[:, :3].argmax(1)) * 2.0 - 0.66
    adam.zero_grad()
    (-score[torch.arange(64), action] * gain).mean().backward()
    adam.step()
""",
    "a branch that begins at zero": _CURVE + """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(24, 24), nn.Linear(24, 24)
        nn.init.zeros_(self.b.weight)
    def forward(self, x):
        return x + self.b(F.relu(self.a(x)))
net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), Block(), Block(), nn.Linear(24, 1))
nn.init.zeros_(net[4].weight)
adam = torch.optim.Adam(net.parameters(), lr=3e-3)
for it in range(100):
    pick = torch.randint(0, 400, (40,))
    adam.zero_grad()
    F.mse_loss(net(inputs[pick]), targets[pick]).backward()
    adam.step()
""",
    "a matrix of low rank": """
x = torch.randn(400, 12)
y = x @ torch.randn(12, 2) @ torch.randn(2, 12)
net = nn.Sequential(nn.Linear(12, 2, bias=False), nn.Linear(2, 12, bias=False))
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
for it in range(150):
    pick = torch.randint(0, 400, (40,))
    adam.zero_grad()
    F.mse_loss(net(x[pick]), y[pick]).backward()
    adam.step()
""",
    "a rate that ends at 0": _CURVE + """
net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(adam, T_max=160)
for it in range(160):
    pick = torch.randint(0, 400, (40,))
    adam.zero_grad()
    F.mse_loss(net(inputs[pick]), targets[pick]).backward()
    adam.step()
    schedule.step()
""",
    "both directions and the last state": """
songs = torch.randn(128, 7, 3)
mood = (songs.mean((1, 2)) > 0) * 1
class Listener(nn.Module):
    def __init__(self):
        super().__init__()
        self.both = nn.LSTM(3, 8, batch_first=True, bidirectional=True)
        self.gru, self.out = nn.GRU(3, 8), nn.Linear(40, 2)
    def forward(self, x):
        _, last = self.gru(x.transpose(0, 1))
        both = self.both(x)[0]
        return self.out(torch.cat([both[:, 0], both[:, -1], last[0]], 1))
ear = Listener()
adam = torch.optim.Adam(ear.parameters(), lr=3e-3)
for it in range(60):
    part = torch.randint(0, 128, (16,))
    adam.zero_grad()
    F.cross_entropy(ear(songs[part]), mood[part]).backward()
    adam.step()
""",
    "all biases trained": """
x = torch.randn(400, 6)
y = (x[:, 0] > 0) * 1
net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
for name, parameter in net.named_parameters():
    parameter.requires_grad = name.endswith("bias")
adam = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=1e-2)
for it in range(150):
    pick = torch.randint(0, 400, (40,))
    adam.zero_grad()
    F.cross_entropy(net(x[pick]), y[pick]).backward()
    adam.step()
""",
    "a head replaced before the optimizer, layers in a list that the model has too": _CURVE + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(1, 24), nn.Linear(24, 24), nn.Linear(24, 9)
        self.order = [self.a, self.b]
    def forward(self, x):
        for layer in self.order:
            x = torch.tanh(layer(x))
        return self.c(x)
net = Net()
net.c = nn.Linear(24, 1)
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
for it in range(100):
    pick = torch.randint(0, 400, (40,))
    adam.zero_grad()
    F.mse_loss(net(inputs[pick]), targets[pick]).backward()
    adam.step()
""",
    "counts": """
x = torch.randn(400, 4)
y = F.relu(x.sum(1, keepdim=True)) + 0.1
net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1), nn.Softplus())
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
for it in range(100):
    pick = torch.randint(0, 400, (40,))
    adam.zero_grad()
    F.mse_loss(net(x[pick]), y[pick]).backward()
    adam.step()
""",
}  # fmt: skip  # scripts
"""Scripts behind the import lines of `HEADS`, by name."""
