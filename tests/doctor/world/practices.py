"""Healthy trainings of usual practice that raised alarms once: each has what a fault has too, for a good reason."""

from __future__ import annotations

PRACTICES = {
    "a head for another task, with an optimizer of its own": """
x = torch.randn(400, 6)
first, second = (x[:, 0] > 0) * 1, (x[:, 1] > x[:, 2]) * 1
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(6, 32), nn.ReLU()), nn.Linear(32, 2)
    def forward(self, x):
        return self.head(self.body(x))
net = Net()
adam = torch.optim.Adam(net.parameters(), lr=5e-3)
for it in range(100):
    pick = torch.randint(0, 400, (40,))
    adam.zero_grad()
    F.cross_entropy(net(x[pick]), first[pick]).backward()
    adam.step()
for parameter in net.parameters():
    parameter.requires_grad_(False)
net.head = nn.Linear(32, 2)
last = torch.optim.Adam(net.head.parameters(), lr=1e-2)
for it in range(100):
    pick = torch.randint(0, 400, (40,))
    last.zero_grad()
    F.cross_entropy(net(x[pick]), second[pick]).backward()
    last.step()
""",
    "tables that begin near 0": """
class Skip(nn.Module):
    def __init__(self):
        super().__init__()
        self.u, self.v = nn.Embedding(200, 16), nn.Embedding(200, 16)
        nn.init.uniform_(self.u.weight, -0.02, 0.02)
        nn.init.zeros_(self.v.weight)
    def forward(self, one, other, wrong):
        near = (self.u(one) * self.v(other)).sum(1)
        far = (self.u(one) * self.v(wrong)).sum(1)
        return -(F.logsigmoid(near) + F.logsigmoid(-far)).mean()
net = Skip()
adam = torch.optim.Adam(net.parameters(), lr=2e-2)
for it in range(150):
    one = torch.randint(0, 200, (64,))
    adam.zero_grad()
    net(one, one // 20 * 20 + torch.randint(0, 20, (64,)), torch.randint(0, 200, (64,))).backward()
    adam.step()
""",
    "inputs that tell little": """
x = torch.randn(3000, 5)
y = 0.15 * x[:, :1] + torch.randn(3000, 1)
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
adam = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(6):
    order = torch.randperm(3000)
    for at in range(0, 3000, 60):
        pick = order[at : at + 60]
        adam.zero_grad()
        F.mse_loss(net(x[pick]), y[pick]).backward()
        adam.step()
""",
    "codes and their commitment": """
made = torch.randn(12, 20)
class Coded(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, 8))
        self.codes = nn.Embedding(32, 8)
        nn.init.uniform_(self.codes.weight, -0.03, 0.03)
        self.decoder = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 20))
    def forward(self, x):
        z = self.encoder(x)
        away = ((z.detach().unsqueeze(1) - self.codes.weight.detach()) ** 2).sum(2)
        q = self.codes(away.argmin(1))
        cost = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
        return self.decoder(z + (q - z).detach()), cost
net = Coded()
adam = torch.optim.Adam(net.parameters(), lr=2e-3)
for it in range(350):
    x = made[torch.randint(0, 12, (64,))] + 0.1 * torch.randn(64, 20)
    again, cost = net(x)
    adam.zero_grad()
    (F.mse_loss(again, x) + cost).backward()
    adam.step()
""",
    "deviations beside the means of weights": """
class Drawn(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        self.mean = nn.Parameter(torch.randn(after, before) / before**0.5)
        self.rho = nn.Parameter(torch.zeros(after, before) - 4.0)
    def forward(self, x):
        width = F.softplus(self.rho)
        self.apart = (0.5 * (width**2 + self.mean**2 - 1) - torch.log(width)).sum()
        return F.linear(x, self.mean + width * torch.randn(*width.shape))
x = torch.rand(256, 1) * 4 - 2
y = x**3 / 4 + 0.1 * torch.randn(256, 1)
a, b = Drawn(1, 32), Drawn(32, 1)
net = nn.Sequential(a, nn.Tanh(), b)
adam = torch.optim.Adam(net.parameters(), lr=5e-3)
for it in range(200):
    adam.zero_grad()
    ((((net(x) - y) ** 2).sum() * 50 + a.apart + b.apart) / 256).backward()
    adam.step()
""",
    "passes in training mode for their spread": """
x = torch.rand(300, 1) * 4 - 2
y = torch.sin(x) + 0.1 * torch.randn(300, 1)
net = nn.Sequential(nn.Linear(1, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 1))
adam = torch.optim.Adam(net.parameters(), lr=5e-3)
for it in range(150):
    pick = torch.randint(0, 300, (60,))
    adam.zero_grad()
    F.mse_loss(net(x[pick]), y[pick]).backward()
    adam.step()
points = torch.linspace(-3, 3, 50).reshape(50, 1)
net.train()
with torch.no_grad():
    spread = torch.stack([net(points) for _ in range(30)]).std(0)
print(spread[0].item())
""",
    "weights over the time, which is the first axis": """
class Pooled(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.gru = nn.Embedding(20, 16), nn.GRU(16, 24)
        self.score, self.out = nn.Linear(24, 1), nn.Linear(24, 3)
    def forward(self, x):
        h, _ = self.gru(self.words(x))
        weights = F.softmax(self.score(h), dim=0)
        return self.out((weights * h).sum(0))
net = Pooled()
adam = torch.optim.Adam(net.parameters(), lr=5e-3)
for it in range(100):
    x = torch.randint(0, 20, (7, 32))
    y = x[2] % 3
    adam.zero_grad()
    F.cross_entropy(net(x), y).backward()
    adam.step()
""",
    "labels of an earlier call": """
centres = 2 * torch.randn(3, 8)
shift = torch.randn(8)
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
        self.kind, self.whence = nn.Linear(32, 3), nn.Linear(32, 2)
    def forward(self, x):
        h = self.body(x)
        return self.kind(h), self.whence(h)
net = Two()
sgd = torch.optim.SGD(net.parameters(), lr=0.02)
for it in range(200):
    y, other = torch.randint(0, 3, (64,)), torch.randint(0, 3, (64,))
    kind, here = net(centres[y] + torch.randn(64, 8))
    _, there = net(centres[other] + shift + torch.randn(64, 8))
    sides = F.cross_entropy(here, torch.zeros(64).long()) + F.cross_entropy(there, torch.ones(64).long())
    loss = F.cross_entropy(kind, y) + sides
    sgd.zero_grad()
    loss.backward()
    sgd.step()
""",
    "an actor whose entropy holds a logarithm": """
actor = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
a = torch.optim.Adam(actor.parameters(), lr=1e-3)
c = torch.optim.Adam(critic.parameters(), lr=5e-3)
def act(state):
    mean, log = actor(state).chunk(2, 1)
    log = torch.clamp(log, -3.0, 1.0)
    noise = torch.randn(*mean.shape)
    action = torch.tanh(mean + noise * torch.exp(log))
    return action, -0.5 * noise**2 - log - torch.log(1 - action**2 + 1e-6)
for it in range(150):
    state = torch.randn(64, 3)
    with torch.no_grad():
        action, _ = act(state)
        worth = -10.0 * (1 + it / 50) * (action - state[:, :1]) ** 2
    c.zero_grad()
    F.mse_loss(critic(torch.cat([state, action], 1)), worth).backward()
    c.step()
    action, likely = act(state)
    a.zero_grad()
    (0.1 * likely - critic(torch.cat([state, action], 1))).mean().backward()
    a.step()
""",
    "classes before the places of a causal convolution": """
class Causal(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(12, 16)
        self.one, self.two = nn.Conv1d(16, 24, 2), nn.Conv1d(24, 12, 2, dilation=2)
    def forward(self, x):
        h = self.words(x).transpose(1, 2)
        h = F.relu(self.one(F.pad(h, (1, 0))))
        return self.two(F.pad(h, (2, 0)))
net = Causal()
adam = torch.optim.Adam(net.parameters(), lr=5e-3)
for it in range(120):
    start = torch.randint(0, 12, (32, 1))
    text = (start + torch.arange(20) * torch.randint(1, 4, (32, 1))) % 12
    adam.zero_grad()
    F.cross_entropy(net(text[:, :-1]), text[:, 1:]).backward()
    adam.step()
""",
    "five examples at a time": """
x = torch.randn(600, 2)
y = torch.where(x[:, 0] + 0.5 * x[:, 1] + 0.2 * torch.randn(600) > 0, 1.0, -1.0)
net = nn.Linear(2, 1)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for it in range(600):
    pick = torch.randint(0, 600, (5,))
    loss = F.relu(1 - net(x[pick]).squeeze(1) * y[pick]).mean() + 0.01 * (net.weight**2).sum()
    sgd.zero_grad()
    loss.backward()
    sgd.step()
""",
    "branches of a small scale": """
class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.inner = nn.LayerNorm(32), nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))
        self.scale = nn.Parameter(1e-4 * torch.ones(32))
    def forward(self, x):
        return x + self.scale * self.inner(self.norm(x))
x = torch.randn(800, 10)
y = (x[:, 0] > 0) * 1
net = nn.Sequential(nn.Linear(10, 32), *[Branch() for _ in range(6)], nn.LayerNorm(32), nn.Linear(32, 2))
nn.init.zeros_(net[8].weight)
adam = torch.optim.AdamW(net.parameters(), lr=2e-3)
for it in range(100):
    pick = torch.randint(0, 800, (64,))
    adam.zero_grad()
    F.cross_entropy(net(x[pick]), y[pick]).backward()
    adam.step()
""",
    "an optimizer for each task": """
net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
for it in range(40):
    before = {name: value.detach().clone() for name, value in net.state_dict().items()}
    x = torch.rand(50, 1) * 4 - 2
    y = (1 + torch.rand(1)) * torch.sin(x + 3 * torch.rand(1))
    inner = torch.optim.SGD(net.parameters(), lr=0.02)
    for at in range(0, 50, 10):
        loss = F.mse_loss(net(x[at : at + 10]), y[at : at + 10])
        inner.zero_grad()
        loss.backward()
        inner.step()
    after = net.state_dict()
    net.load_state_dict({name: before[name] + 0.1 * (after[name] - before[name]) for name in before})
""",
    "values of a target network that grow": """
import random
from collections import deque
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(2, 48), nn.Linear(48, 2)
    def forward(self, x):
        return self.two(F.relu(self.one(x)))
class Agent:
    def __init__(self):
        self.policy, self.target = Net(), Net()
        self.target.load_state_dict(self.policy.state_dict())
        self.adam = torch.optim.Adam(self.policy.parameters(), lr=2e-3)
    def update(self, state, action, reward, following):
        with torch.no_grad():
            goal = reward + 0.97 * torch.amax(self.target(following), 1)
        value = self.policy(state).gather(1, action).squeeze(1)
        self.adam.zero_grad()
        F.mse_loss(value, goal).backward()
        self.adam.step()
random.seed(0)
agent, memory, place = Agent(), deque(maxlen=1000), torch.zeros(2)
for it in range(400):
    action = random.randrange(2)
    following = torch.clamp(place + 0.2 * torch.tensor([2.0 * action - 1, 0.1]), -1, 1)
    memory.append((place, action, 2.0 + place[0].item(), following))
    place = following if it % 20 else torch.zeros(2)
    if len(memory) > 40:
        state, taken, reward, then = zip(*random.sample(memory, 32))
        given = torch.stack(state), torch.tensor(taken).reshape(32, 1), torch.tensor(reward), torch.stack(then)
        agent.update(*given)
    if it % 40 == 0:
        agent.target.load_state_dict(agent.policy.state_dict())
""",
    "actions drawn by a distribution": """
net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
for episode in range(60):
    likely, gains = [], []
    for it in range(12):
        state = torch.randn(1, 4)
        drawn = torch.distributions.Categorical(torch.softmax(net(state), -1))
        action = drawn.sample()
        likely.append(drawn.log_prob(action))
        gains.append(1.0 if (action.item() == 1) == (state[0, 0].item() > 0) else -1.0)
    gain = torch.tensor(gains)
    gain = (gain - gain.mean()) / (gain.std() + 1e-6)
    loss = torch.cat([-one * each for one, each in zip(likely, gain)]).sum()
    adam.zero_grad()
    loss.backward()
    adam.step()
""",
}  # fmt: skip  # scripts
"""Scripts behind the import lines of `HEADS`, by name."""
