"""Faults of targets, returns and seeds that the other programs do not have."""

from __future__ import annotations

from tests.doctor.world.program import Program

_DATA = """
x = torch.randn(400, 5)
"""
_NET = """
net = nn.Sequential(nn.Linear(5, 24), nn.ReLU(), nn.Linear(24, 1))
adam = torch.optim.Adam(net.parameters(), lr=3e-3)
"""
_STEP = """
    adam.zero_grad()
    loss.backward()
    adam.step()
"""

PROGRAMS = (
    Program("two classes numbered 1 and 2", ("targets out of range",), _DATA + """
y = (x[:, :1] > 0) * 1.0 + 1
""" + _NET + """
for step in range(120):
    part = torch.randint(0, 400, (40,))
    loss = F.binary_cross_entropy_with_logits(net(x[part]), y[part])  #!
""" + _STEP, (("* 1.0 + 1", "* 1.0"),)),
    Program("two classes numbered -1 and 1", ("targets out of range",), _DATA + """
y = torch.sign(x[:, :1])
""" + _NET + """
bce = nn.BCEWithLogitsLoss()
for step in range(120):
    part = torch.randint(0, 400, (40,))
    guess = net(x[part])
    loss = bce(guess, y[part])  #!
""" + _STEP, (("torch.sign(x[:, :1])", "(torch.sign(x[:, :1]) + 1) / 2"),)),
    Program("a sigmoid before targets beyond 1", ("output cannot reach the targets",), _DATA + """
y = 3 * x[:, :1]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(5, 24), nn.Linear(24, 1)
    def forward(self, x):
        return torch.sigmoid(self.b(F.relu(self.a(x))))  #!
net = Net()
adam = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(120):
    part = torch.randint(0, 400, (40,))
    loss = F.mse_loss(net(x[part]), y[part])
""" + _STEP, (("torch.sigmoid(self.b(F.relu(self.a(x))))", "self.b(F.relu(self.a(x)))"),)),
    Program("prices in thousands", ("targets unnormalised",), _DATA + """
price = 250000 + 80000 * x[:, :1]
""" + _NET + """
for step in range(120):
    part = torch.randint(0, 400, (40,))
    loss = F.mse_loss(net(x[part]), price[part])  #!
""" + _STEP, (("price = 250000 + 80000 * x[:, :1]", "price = 2 * x[:, :1]"),)),
    Program("returns that are all large", ("returns without scale",), _DATA + """
policy = nn.Sequential(nn.Linear(5, 24), nn.Tanh(), nn.Linear(24, 3))
adam = torch.optim.Adam(policy.parameters(), lr=3e-3)
rows = torch.arange(40)
for step in range(120):
    part = torch.randint(0, 400, (40,))
    score = F.log_softmax(policy(x[part]), 1)
    action = torch.randint(0, 3, (40,))
    gain = 100 + 10.0 * (action == x[part, :3].argmax(1))
    loss = -(score[rows, action] * gain).mean()  #!
""" + _STEP, (("    loss = -", "    gain = (gain - gain.mean()) / (gain.std() + 1e-8)\n    loss = -"),)),
    Program("the mean of log-probabilities times each return", ("averaged before it is weighted",), _DATA + """
policy = nn.Sequential(nn.Linear(5, 24), nn.Tanh(), nn.Linear(24, 3))
adam = torch.optim.Adam(policy.parameters(), lr=3e-3)
rows = torch.arange(40)
for step in range(120):
    part = torch.randint(0, 400, (40,))
    score = F.log_softmax(policy(x[part]), 1)
    action = torch.randint(0, 3, (40,))
    gain = (action == x[part, :3].argmax(1)) * 1.5 - 0.5
    mean = score[rows, action].mean()  #!
    loss = -(mean * gain).sum() / 40
""" + _STEP, (("score[rows, action].mean()", "score[rows, action]"),)),
    Program("a target network that loads its own weights", ("copy never updated",), """
x = torch.randn(400, 4)
choice = torch.randint(0, 2, (400,))
reward = torch.where(choice == 0, x[:, 0], -x[:, 0])
value = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 2))
target = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 2))  #!
target.load_state_dict(value.state_dict())
adam = torch.optim.Adam(value.parameters(), lr=3e-3)
for step in range(120):
    part = torch.randint(0, 400, (40,))
    with torch.no_grad():
        goal = reward[part] + 0.5 * torch.amax(target(x[part]), 1)
    loss = F.mse_loss(value(x[part])[torch.arange(40), choice[part]], goal)
    adam.zero_grad()
    loss.backward()
    adam.step()
    if step % 20 == 19:
        target.load_state_dict(target.state_dict())
""", (("target.load_state_dict(target.state_dict())", "target.load_state_dict(value.state_dict())"),)),
    Program("a seed in the loop", ("seed set in the loop",), _DATA + """
y = x[:, :1] * x[:, 1:2]
""" + _NET + """
for step in range(120):
    torch.manual_seed(3)  #!
    part = torch.randint(0, 400, (40,))
    loss = F.mse_loss(net(x[part]), y[part])
""" + _STEP, (("    torch.manual_seed(3)\n", ""),)),
    Program("a seed that a function sets", ("seed set in the loop",), _DATA + """
y = x[:, :1].abs()
""" + _NET + """
def batch():
    torch.manual_seed(11)  #!
    part = torch.randperm(400)[:40]
    return x[part] + 0.1 * torch.randn(40, 5), y[part]
for step in range(120):
    a, b = batch()
    loss = F.mse_loss(net(a), b)
""" + _STEP, (("    torch.manual_seed(11)\n", ""),)),
    Program("targets shuffled by themselves", ("labels do not belong to the inputs",), """
x = torch.randn(1600, 5)
y = x[:, :2] + x[:, 2:3] * x[:, 3:4]
y = y[torch.randperm(1600)]
net = nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, 2))
adam = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(240):
    part = torch.randint(0, 1600, (80,))
    loss = F.mse_loss(net(x[part]), y[part])  #!
""" + _STEP, (("y = y[torch.randperm(1600)]\n", ""),)),
)  # fmt: skip  # scripts
