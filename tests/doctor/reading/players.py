"""Faults of returns, and of generators and their judges."""

from __future__ import annotations

from tests.doctor.reading.case import Case

_GAN = """
class Game:
    def __init__(self):
        self.maker, self.judge = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
        self.g_opt = torch.optim.Adam(self.maker.parameters())
        self.d_opt = torch.optim.Adam(self.judge.parameters())
        self.bce = nn.BCEWithLogitsLoss()
    def step(self, real):
        n = len(real)
        ones, zeros = torch.ones(n, 1), torch.zeros(n, 1)
        fake = self.maker(torch.randn(n, 2))
        d_loss = self.bce(self.judge(real), ones) + self.bce(self.judge(fake.detach()), {0})
        self.d_opt.zero_grad()
        d_loss.backward()
        self.d_opt.step()
        g_loss = self.bce(self.judge(fake), {1})
        self.g_opt.zero_grad()
        g_loss.backward()
        self.g_opt.step()
game = Game()
for real in batches:
    game.step(real)
"""

_WASSERSTEIN = """
maker, critic = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), nn.Linear(2, 1)
g_opt = torch.optim.RMSprop(maker.parameters(), lr=5e-5)
c_opt = torch.optim.RMSprop(critic.parameters(), lr=5e-5)
for at, real in enumerate(batches):
    fake = maker(torch.randn(8, 4)).detach()
    c_loss = {0}
    c_opt.zero_grad()
    c_loss.backward()
    c_opt.step()
    if at % 5 == 0:
        g_loss = {1}
        g_opt.zero_grad()
        g_loss.backward()  #!
        g_opt.step()
"""

CASES = (
    Case(
        "generator and critic with one sign",
        _WASSERSTEIN.format("critic(fake).mean() - critic(real).mean()", "critic(maker(torch.randn(8, 4))).mean()"),
        (("g_loss = critic", "g_loss = -critic"),),
    ),
    Case(
        "generator and critic with one sign",
        _WASSERSTEIN.format("-torch.mean(critic(fake)) + torch.mean(critic(real))", "-critic(maker(noise)).mean()"),
        (("g_loss = -critic", "g_loss = critic"),),
    ),
    Case(
        "generator and critic with one sign",
        """
one = torch.tensor(1.0)
minus = -1 * one
G, D = nn.Linear(4, 2), nn.Linear(2, 1)
g_opt, d_opt = torch.optim.RMSprop(G.parameters()), torch.optim.RMSprop(D.parameters())
for reals in batches:
    for real in reals:
        D.zero_grad()
        of_real = D(real).mean()
        of_real.backward(minus)
        of_fake = D(G(torch.randn(8, 4)).data).mean()
        of_fake.backward(one)
        d_opt.step()
    G.zero_grad()
    score = D(G(torch.randn(8, 4))).mean()
    score.backward(one)  #!
    g_opt.step()
""",
        (("    score.backward(one)", "    score.backward(minus)"),),
    ),
    Case(
        "generator helps its judge",
        """
class Losses:
    def __init__(self):
        self.bce = nn.BCEWithLogitsLoss()
    def of_judge(self, real_out, fake_out):
        return self.bce(real_out, torch.ones_like(real_out)) + self.bce(fake_out, torch.zeros_like(fake_out))
    def of_generator(self, fake_out):
        return self.bce(fake_out, torch.zeros_like(fake_out))  #!
G, D, losses = nn.Linear(4, 2), nn.Linear(2, 1), Losses()
optimizer_g = torch.optim.Adam(G.parameters())
optimizer_d = torch.optim.Adam(D.parameters())
for real in batches:
    fake = G(torch.randn(8, 4))
    loss_d = losses.of_judge(D(real), D(fake.detach()))
    optimizer_d.zero_grad()
    loss_d.backward()
    optimizer_d.step()
    loss_g = losses.of_generator(D(fake))
    optimizer_g.zero_grad()
    loss_g.backward()
    optimizer_g.step()
""",
        (
            (
                "        return self.bce(fake_out, torch.zeros_like(fake_out))",
                "        return self.bce(fake_out, torch.ones_like(fake_out))",
            ),
        ),
    ),
    Case(
        "returns summed forwards",
        """
def returns_of(rewards, gamma=0.9):
    found, total = [], 0.0
    for r in rewards:
        total = r + gamma * total  #!
        found.append(total)
    return torch.tensor(found)
""",
        (("for r in rewards", "for r in reversed(rewards)"), ("torch.tensor(found)", "torch.tensor(found[::-1])")),
    ),
    Case(
        "returns in reverse order",
        """
def returns_of(rewards, gamma=0.9):
    found, total = [], 0.0
    for r in reversed(rewards):
        total = r + gamma * total
        found.append(total)  #!
    return torch.tensor(found)
""",
        (("found.append(total)", "found.insert(0, total)"),),
    ),
    Case(
        "copy never updated",
        """
import copy
gamma = 0.9
q = nn.Linear(4, 2)
target_q = copy.deepcopy(q)  #!
optimizer = torch.optim.Adam(q.parameters())
for at, (s, a, r, s2) in enumerate(batches):
    with torch.no_grad():
        wanted = r + gamma * target_q(s2).max(1)[0]
    loss = F.mse_loss(q(s).gather(1, a), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    done = at % 100 == 0
""",
        (("    done = at % 100 == 0\n", "    if at % 100 == 0:\n        target_q.load_state_dict(q.state_dict())\n"),),
    ),
    Case(
        "copy never updated",
        """
def hard_update(into, source):
    into.load_state_dict(source.state_dict())

q, slow, slower = nn.Linear(4, 2), nn.Linear(4, 2), nn.Linear(4, 2)
slow.load_state_dict(q.state_dict())
for at in range(1000):
    if at % 100 == 0:
        slow.load_state_dict(slow.state_dict())  #!
        hard_update(slower, slower)  #!
    for old, new in zip(slow.parameters(), slow.parameters()):  #!
        old.data.copy_(0.99 * old.data + 0.01 * new.data)
""",
        (
            ("slow.load_state_dict(slow.state_dict())", "slow.load_state_dict(q.state_dict())"),
            ("hard_update(slower, slower)", "hard_update(slower, slow)"),
            ("zip(slow.parameters(), slow.parameters())", "zip(slow.parameters(), q.parameters())"),
        ),
    ),
    Case(
        "both examples judged alike",
        _GAN.format("ones", "ones").replace("(fake.detach()), ones)", "(fake.detach()), ones)  #!"),
        (("(fake.detach()), ones)", "(fake.detach()), zeros)"),),
    ),
    Case(
        "generator helps its judge",
        _GAN.format("zeros", "zeros").replace("(fake), zeros)", "(fake), zeros)  #!"),
        (("(fake), zeros)", "(fake), ones)"),),
    ),
)
