"""Faults in the signs and weights of what a loss adds up, and validations that are worse than the training."""

from __future__ import annotations

from tests.doctor.world.program import Program

_VAE = """
x = torch.randn(400, 8)
class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Linear(8, 8), nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 8))
    def forward(self, x):
        mean, log_var = self.encode(x).chunk(2, 1)
        return self.decode(mean + torch.exp(0.5 * log_var) * torch.randn(len(x), 4)), mean, log_var
net = Vae()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(120):
    part = x[torch.randint(0, 400, (64,))]
    made, mean, log_var = net(part)
"""
_STEP = """
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
_POLICY = """
state = torch.randn(256, 4)
actor = nn.Sequential(nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 3))
opt = torch.optim.Adam(actor.parameters(), lr=5e-3)
for update in range(100):
    with torch.no_grad():
        old = F.log_softmax(actor(state), 1)
    action = torch.multinomial(torch.exp(old), 1)
    reward = (action[:, 0] == state[:, :3].argmax(1)) * 1.0
    advantage = (reward - reward.mean()) / (reward.std() + 1e-6)
    new, old = (one.gather(1, action)[:, 0] for one in (F.log_softmax(actor(state), 1), old))
"""
_CLASSES = """
centre = 2 * torch.randn(3, 8)
y = torch.randint(0, 3, (600,))
x = centre[y] + torch.randn(600, 8)
"""

PROGRAMS = (
    Program("the divergence with a minus", ("sign of the loss turned",), _VAE + """
    kl = -0.5 * (1 + log_var - mean ** 2 - torch.exp(log_var)).sum(1)
    loss = ((made - part) ** 2).sum(1).mean() - kl.mean()  #!
""" + _STEP, ((").mean() - kl", ").mean() + kl"),)),
    Program("the divergence of all beside a mean", ("loss terms of unequal size",), _VAE + """
    kl = -0.5 * torch.sum(1 + log_var - mean.pow(2) - log_var.exp())  #!
    loss = F.mse_loss(made, part) + kl  #!
""" + _STEP, (("log_var.exp())", "log_var.exp(), 1).mean() / 8"),)),
    Program("an error averaged over what it predicts", ("loss terms of unequal size",), """
x = torch.randn(300, 4) @ torch.randn(4, 64)
class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.log_var, self.decode = nn.Linear(64, 4), nn.Linear(64, 4), nn.Linear(4, 64)
    def forward(self, x):
        mean, log_var = self.mean(x), self.log_var(x)
        return self.decode(mean + torch.exp(0.5 * log_var) * torch.randn(len(x), 4)), mean, log_var
net = Vae()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(120):
    part = x[torch.randint(0, 300, (32,))]
    made, mean, log_var = net(part)
    kl = -0.5 * torch.sum(1 + log_var - mean ** 2 - log_var.exp(), 1).mean()
    loss = F.mse_loss(made, part) + kl  #!
""" + _STEP, (("F.mse_loss(made, part)", "((made - part) ** 2).sum(1).mean()"),)),
    Program("a policy that is taught its worst actions", ("sign of the loss turned",), _POLICY + """
    loss = (new * advantage).mean()  #!
""" + _STEP, (("= (new", "= -(new"),)),
    Program("the better of both ratios is taken", ("sign of the loss turned",), _POLICY + """
    ratio = torch.exp(new - old)
    loss = -torch.maximum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()  #!
""" + _STEP, (("torch.maximum", "torch.minimum"),)),
    Program("ones for real and for made ones", ("labels alike",), """
ring = F.normalize(torch.randn(512, 2), dim=1) * 2
generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
judge = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3)
opt_d = torch.optim.Adam(judge.parameters(), lr=1e-3)
yes, no = torch.ones(32, 1), torch.zeros(32, 1)
for step in range(120):
    made = generator(torch.randn(32, 4))
    real = judge(ring[torch.randint(0, 512, (32,))])
    loss_d = F.binary_cross_entropy_with_logits(real, yes)
    loss_d = loss_d + F.binary_cross_entropy_with_logits(judge(made.detach()), yes)  #!
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
    loss_g = F.binary_cross_entropy_with_logits(judge(made), yes)  #!
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
""", (("judge(made.detach()), yes)", "judge(made.detach()), no)"),)),
    Program("maps that stay while their pictures turn", ("labels do not belong to the inputs",), """
scene = torch.randn(200, 1, 6, 6)
wanted = (scene > 0.4) * 1.0
net = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 1, 1))
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(120):
    part = torch.randint(0, 200, (25,))
    picture, truth = scene[part], wanted[part]
    if step % 2:
        picture = picture.transpose(2, 3)
    loss = F.binary_cross_entropy_with_logits(net(picture), truth)  #!
""" + _STEP, (("        picture = picture.transpose(2, 3)\n",
               "        picture, truth = picture.transpose(2, 3), truth.transpose(2, 3)\n"),)),
    Program("a validation that turns the columns", ("validation far worse than training",), _CLASSES + """
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(12):
    for at in range(0, 480, 32):
        loss = F.cross_entropy(net(x[at:at + 32]), y[at:at + 32])
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        out = net(-x[480:].flip(1))  #!
        print(epoch, (out.argmax(1) == y[480:]).sum().item() / 120)
""", (("net(-x[480:].flip(1))", "net(x[480:])"),)),
    Program("what the network follows is itself", ("target moves with the model",), """
states, nexts = torch.randn(400, 4), torch.randn(400, 4)
actions = torch.randint(0, 2, (400, 1))
rewards = torch.where(actions[:, 0] == 0, states[:, 0], -states[:, 0])
online = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
target_net = online  #!
opt = torch.optim.Adam(online.parameters(), lr=1e-3)
for step in range(120):
    part = torch.randint(0, 400, (32,))
    with torch.no_grad():
        goal = rewards[part] + 0.9 * target_net(nexts[part]).amax(1)
    loss = F.mse_loss(online(states[part]).gather(1, actions[part])[:, 0], goal)
""" + _STEP, (("target_net = online\n", "import copy\ntarget_net = copy.deepcopy(online)\n"),
              ("    opt.step()\n", "    opt.step()\n    target_net.load_state_dict(online.state_dict())\n"))),
)  # fmt: skip  # scripts
