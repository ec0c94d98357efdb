"""Faults of what gradients reach."""

from __future__ import annotations

from tests.doctor.reading.case import Case

_PLAYERS = """
generator, judge = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
g_opt = torch.optim.Adam(generator.parameters())
d_opt = torch.optim.Adam(judge.parameters())
bce = nn.BCEWithLogitsLoss()
for real in batches:
    ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
    fake = generator(torch.randn(len(real), 2))
"""

_ACTOR = """
actor, critic = nn.Linear(4, 2), nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
first = torch.optim.Adam(critic.parameters())
second = torch.optim.Adam(actor.parameters())
for x, done, worth in batches:
    gap = F.mse_loss(critic(torch.cat([x, done], 1)), worth)
    first.zero_grad()
    gap.backward()
    first.step()
    mine = actor(x)
    loss = -critic(torch.cat([x, done], 1)).mean()  #!
    second.zero_grad()
    loss.backward()
    second.step()
"""

CASES = (
    Case(
        "loss of a copy",
        """
import copy
model = nn.Linear(4, 3)
optimizer = torch.optim.Adam(model.parameters())
def adapted(x, y):
    fast = copy.deepcopy(model)  #!
    found = torch.autograd.grad(F.cross_entropy(fast(x), y), fast.parameters())
    for weight, slope in zip(fast.parameters(), found):
        weight.data -= 0.1 * slope
    return fast
for (x, y), (later, labels) in batches:
    loss = F.cross_entropy(adapted(x, y)(later), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        (("copy.deepcopy(model)", "model"),),
    ),
    Case(
        "codebook loss without the codes",
        """
class Codes(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.table, self.last = nn.Linear(8, 4), nn.Embedding(16, 4), nn.Linear(4, 8)
    def forward(self, x):
        z = self.first(x)
        codes = self.table(torch.cdist(z, self.table.weight).argmin(1))
        quantized = z + (codes - z).detach()
        near = F.mse_loss(z, codes.detach())
        learn = F.mse_loss(quantized, z.detach())  #!
        return F.mse_loss(self.last(quantized), x) + learn + 0.25 * near
model = Codes()
optimizer = torch.optim.Adam(model.parameters())
for x in batches:
    optimizer.zero_grad()
    loss = model(x)
    loss.backward()
    optimizer.step()
""",
        (("F.mse_loss(quantized, z.detach())", "F.mse_loss(codes, z.detach())"),),
    ),
    Case(
        "penalty without a graph",
        """
def gradient_penalty(judge, mixed):
    score = judge(mixed)
    found = torch.autograd.grad(score.sum(), mixed)[0]  #!
    return ((found.norm(dim=1) - 1) ** 2).mean()
""",
        (("(score.sum(), mixed)", "(score.sum(), mixed, create_graph=True)"),),
    ),
    Case(
        "rate set where nothing reads it",
        """
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def slower(epoch):
    optimizer.lr = 0.1 * 0.5**epoch  #!
""",
        (("optimizer.lr =", "optimizer.param_groups[0]['lr'] ="),),
    ),
    Case(
        "rate set where nothing reads it",
        """
def slower(optimizer, rate):
    for group in optimizer.param_groups:
        group["learning_rate"] = rate  #!
""",
        (('"learning_rate"', '"lr"'),),
    ),
    Case(
        "optimizer of another model",
        _PLAYERS
        + """
    d_opt.zero_grad()
    d_loss = bce(judge(real), ones) + bce(judge(fake.detach()), zeros)
    d_loss.backward()
    d_opt.step()
    g_opt.zero_grad()
    g_loss = bce(judge(fake.detach()), torch.ones_like(zeros))  #!
    g_loss.backward()
    g_opt.step()
""",
        (("judge(fake.detach()), torch.ones_like", "judge(fake), torch.ones_like"),),
    ),
    Case(
        "optimizer of another model",
        _ACTOR,
        (("(torch.cat([x, done], 1)).mean()", "(torch.cat([x, mine], 1)).mean()"),),
    ),
    Case(
        "gradients of another loss",
        _PLAYERS
        + """
    d_opt.zero_grad()
    g_opt.zero_grad()
    d_loss = bce(judge(real), ones) + bce(judge(fake), zeros)
    d_loss.backward(retain_graph=True, create_graph=False)  #!
    d_opt.step()
    g_loss = bce(judge(fake), ones)
    g_loss.backward()
    g_opt.step()
""",
        (("bce(judge(fake), zeros)", "bce(judge(fake.detach()), zeros)"),),
    ),
    Case(
        "optimizer of another model",
        """
def make():
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
class Trainer:
    def __init__(self, first, second):
        self.model = first
        self.optimizer = torch.optim.Adam(second.parameters())  #!
    def fit(self, batches):
        for x, y in batches:
            loss = F.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
teacher, student = make(), make()
Trainer(teacher, student).fit(batches)
""",
        (("(second.parameters", "(first.parameters"),),
    ),
    Case(
        "optimizer of another model",
        """
class Block(nn.Module):
    def __init__(self, last):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))
        self.last = last
    def forward(self, x):
        made = self.net(x)
        return made if self.last else x + made
blocks = nn.ModuleList([Block(i == 3) for i in range(4)])
others = nn.ModuleList([Block(i == 3) for i in range(4)])
optimizer = torch.optim.Adam(others.parameters())  #!
for x, y in batches:
    for block in blocks:
        x = block(x)
    loss = F.cross_entropy(x, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        (("others.parameters", "blocks.parameters"),),
    ),
    Case(
        "loss detached",
        """
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)
    def forward(self, x):
        return self.layer(x).squeeze(-1)
critic = Critic()
optimizer = torch.optim.Adam(critic.parameters())
def collect(states):
    values = []
    for state in states:
        values.append(critic(state).item())  #!
    return values
for states, returns in batches:
    values = torch.tensor(collect(states))
    loss = F.mse_loss(values, returns)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        ((".item()", ""), ("torch.tensor(collect(states))", "torch.stack(collect(states))")),
    ),
    Case(
        "gradient cut in the loss",
        """
class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.policy, self.value = nn.Linear(4, 2), nn.Linear(4, 1)
    def forward(self, x):
        return self.policy(x), self.value(x).squeeze(-1)
model = Both()
optimizer = torch.optim.Adam(model.parameters())
for states, kinds, returns in batches:
    scores, values = model(states)
    kept = values.detach()  #!
    first = F.cross_entropy(scores, kinds)
    second = F.mse_loss(kept, returns)
    optimizer.zero_grad()
    (first + 0.5 * second).backward()
    optimizer.step()
""",
        (("values.detach()", "values"),),
    ),
    Case(
        "target with gradients",
        """
class Agent:
    def __init__(self):
        self.q = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        self.optimizer = torch.optim.Adam(self.q.parameters())
    def update(self, s, a, r, s2, done):
        q = self.q(s).gather(1, a.unsqueeze(1)).squeeze(1)
        target = r + 0.99 * 1.0 * self.q(s2).max(1)[0] * (1 - done)
        gamma = 0.99
        target = r + gamma * self.q(s2).max(1)[0] * (1 - done)  #!
        loss = F.mse_loss(q, target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
agent = Agent()
for batch in batches:
    agent.update(*batch)
""",
        (
            ("        target = r + 0.99 * 1.0 * self.q(s2).max(1)[0] * (1 - done)\n", ""),
            ("gamma * self.q(s2).max(1)[0]", "gamma * self.q(s2).max(1)[0].detach()"),
        ),
    ),
    Case(
        "advantage with gradients",
        """
actor, critic = nn.Linear(4, 2), nn.Linear(4, 1)
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()])
for states, actions, returns in batches:
    dist = torch.distributions.Categorical(logits=actor(states))
    values = critic(states).squeeze(1)
    advantage = returns - values  #!
    policy_loss = -(dist.log_prob(actions) * advantage).mean()
    loss = policy_loss + F.mse_loss(values, returns)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        (("returns - values", "returns - values.detach()"),),
    ),
    Case(
        "arguments of the loss exchanged",
        """
teacher, student = nn.Linear(4, 3), nn.Linear(4, 3)
optimizer = torch.optim.Adam(student.parameters())
for x in batches:
    with torch.no_grad():
        wanted = F.log_softmax(teacher(x), dim=1)
    given = F.softmax(student(x), dim=1)
    loss = F.kl_div(wanted, given, reduction="batchmean")  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        (
            ("F.log_softmax(teacher", "F.softmax(teacher"),
            ("F.softmax(student", "F.log_softmax(student"),
            ("(wanted, given", "(given, wanted"),
        ),
    ),
    Case(
        "zero_grad is missing",
        """
def step(model, optimizer, x, y, half):
    if half:
        with torch.autocast("cpu"):
            loss = F.cross_entropy(model(x), y)
        loss.backward()  #!
        optimizer.step()
    else:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in batches:
    step(model, optimizer, x, y, options.half)
""",
        (("    if half:", "    optimizer.zero_grad()\n    if half:"),),
    ),
    Case(
        "zero_grad is missing",
        _PLAYERS
        + """
    d_loss = bce(judge(real), ones) + bce(judge(fake.detach()), zeros)
    d_loss.backward()  #!
    d_opt.step()
    generator.zero_grad()
    g_loss = bce(judge(fake), ones)
    g_loss.backward()
    g_opt.step()
""",
        (("    d_loss.backward()", "    d_opt.zero_grad()\n    d_loss.backward()"),),
    ),
    Case(
        "evaluation mode in training",
        """
class Trainer:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
    def validate(self):
        self.model.eval()  #!
        with torch.no_grad():
            return self.model(inputs).argmax(1)
    def epoch(self, batches):
        self.model.train()
        for at, (x, y) in enumerate(batches):
            if at % 10 == 0:
                self.validate()
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.model(x), y)
            loss.backward()
            self.optimizer.step()
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))
trainer = Trainer(model, torch.optim.Adam(model.parameters()))
for epoch in range(5):
    trainer.epoch(batches)
""",
        (
            (
                "                self.validate()\n",
                "                self.validate()\n                self.model.train()\n",
            ),
        ),
    ),
)
