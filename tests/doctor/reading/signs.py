"""Faults of signs, of the sizes of terms, and of averages."""

from __future__ import annotations

from tests.doctor.reading.case import Case

_VAE = """
class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.mean = nn.Linear(64, 8), nn.Linear(8, 2)
        self.spread, self.last = nn.Linear(8, 2), nn.Linear(2, 64)
    def forward(self, x):
        hidden = self.first(x).relu()
        mean, logvar = self.mean(hidden), self.spread(hidden)
        z = mean + (0.5 * logvar).exp() * torch.randn_like(mean)
        return self.last(z), mean, logvar
def both(output, x, mean, logvar):
    {0}
    {1}
    return near + far
model = Coder()
optimizer = torch.optim.Adam(model.parameters())
for x in batches:
    output, mean, logvar = model(x)
    loss = both(output, x, mean, logvar)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
_NEAR = "near = F.mse_loss(output, x, reduction='sum') / len(x)"
_FAR = "far = -0.5 * (1 + logvar - mean**2 - logvar.exp()).sum(1).mean()"

CASES = (
    Case(
        "averaged twice",
        """
def sgd(params, lr, batch_size):
    with torch.no_grad():
        for param in params:
            param -= lr * param.grad / batch_size  #!
            param.grad.zero_()
w, b = torch.randn(4, 1).requires_grad_(), torch.zeros(1, requires_grad=True)
for X, y in batches:
    loss = (X @ w + b - y) ** 2 / 2
    loss.mean().backward()
    sgd([w, b], 0.03, len(X))
""",
        (("loss.mean()", "loss.sum()"),),
    ),
    Case(
        "sign of the loss turned",
        """
actor, critic = nn.Linear(3, 1), nn.Linear(4, 1)
actor_opt = torch.optim.Adam(actor.parameters())
critic_opt = torch.optim.Adam(critic.parameters())
for states, actions, rewards in batches:
    critic_loss = F.mse_loss(critic(torch.cat([states, actions], 1)), rewards)
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()
    values = critic(torch.cat([states, actor(states)], 1))
    actor_loss = values.mean()  #!
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
""",
        (("actor_loss = values", "actor_loss = -values"),),
    ),
    Case(
        "divergence with the wrong sign",
        """
def divergence(mu, log_sigma):
    return 0.5 * (torch.exp(2 * log_sigma) + mu**2 - 1 + 2 * log_sigma).sum(dim=1)  #!
encoder, decoder = nn.Linear(6, 4), nn.Linear(2, 6)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
for x in batches:
    mu, log_sigma = encoder(x).chunk(2, dim=1)
    z = mu + torch.exp(log_sigma) * torch.randn_like(mu)
    loss = (divergence(mu, log_sigma) + (decoder(z) - x).pow(2).sum(dim=1)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        (("- 1 + 2 *", "- 1 - 2 *"),),
    ),
    Case(
        "sign of the loss turned",
        """
class Agent:
    def __init__(self, gamma=0.9):
        self.gamma = gamma
        self.actor, self.critic = nn.Linear(3, 1), Critic()
        self.a_opt = torch.optim.Adam(self.actor.parameters())
        self.c_opt = torch.optim.Adam(self.critic.parameters())
    def learn(self, s, a, wanted):
        c_loss = F.mse_loss(self.critic(s, a), wanted)
        self.c_opt.zero_grad()
        c_loss.backward()
        self.c_opt.step()
        a_loss = self.critic(s, self.actor(s)).mean()  #!
        self.a_opt.zero_grad()
        a_loss.backward()
        self.a_opt.step()
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)
    def forward(self, s, a):
        return self.layer(torch.cat([s, a], dim=1))
agent = Agent()
for batch in batches:
    agent.learn(*batch)
""",
        (("a_loss = self.critic", "a_loss = -self.critic"),),
    ),
    Case(
        "temperature multiplied",
        """
def contrast(one, other, temperature=0.1):
    scores = one @ other.T * temperature  #!
    scores = scores.masked_fill(torch.eye(len(one)).bool(), -1e9)
    return F.cross_entropy(scores, torch.arange(len(one)))
""",
        (("one @ other.T * temperature", "one @ other.T / temperature"),),
    ),
    Case(
        "sign of the loss turned",
        """
policy = nn.Linear(4, 2)
optimizer = torch.optim.Adam(policy.parameters())
def play(states):
    kept = []
    for state in states:
        dist = torch.distributions.Categorical(logits=policy(state))
        action = dist.sample()
        kept.append(dist.log_prob(action))
    return kept
for states, returns in batches:
    log_probs = play(states)
    loss = (torch.stack(log_probs) * returns).sum()  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        (("loss = (torch", "loss = -(torch"),),
    ),
    Case(
        "sign of the loss turned",
        """
model = nn.Linear(4, 3)
optimizer = torch.optim.Adam(model.parameters())
for x, y in batches:
    loss = -F.cross_entropy(model(x), y)  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        (("-F.cross", "F.cross"),),
    ),
    Case(
        "sign of the loss turned",
        """
model = nn.Linear(4, 3)
optimizer = torch.optim.Adam(model.parameters())
for x, y in batches:
    loss = F.cosine_similarity(model(x), y).mean()  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        (("loss = F.cos", "loss = 1 - F.cos"),),
    ),
    Case(
        "penalty subtracted",
        """
model = nn.Linear(4, 3)
optimizer = torch.optim.Adam(model.parameters())
for x, y in batches:
    penalty = model.weight.abs().sum()
    loss = F.cross_entropy(model(x), y) - 0.01 * penalty  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        (("- 0.01 *", "+ 0.01 *"),),
    ),
    Case(
        "entropy with the wrong sign",
        """
optimizer = torch.optim.Adam(policy.parameters())
for states, actions, old, gains in batches:
    log_probs, entropy = policy.judge(states, actions)
    ratio = (log_probs - old).exp()
    policy_loss = torch.max(-gains * ratio, -gains * ratio.clamp(0.8, 1.2)).mean()
    loss = policy_loss + settings['ent_coef'] * entropy.mean()  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        (("+ settings", "- settings"),),
    ),
    Case(
        "entropy with the wrong sign",
        """
policy = nn.Linear(4, 2)
optimizer = torch.optim.Adam(policy.parameters())
for states, actions, gains in batches:
    log_probs = F.log_softmax(policy(states), 1)
    entropy = -(log_probs.exp() * log_probs).sum(1)
    policy_loss = -(log_probs[range(32), actions] * gains).mean()
    loss = policy_loss + 0.01 * entropy.mean()  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        (("+ 0.01", "- 0.01"),),
    ),
    Case(
        "entropy with the wrong sign",
        """
policy = nn.Linear(4, 2)
optimizer = torch.optim.Adam(policy.parameters())
for returns in batches:
    logs, spreads = [], []
    for states in returns:
        dist = torch.distributions.Categorical(logits=policy(states))
        logs.append(dist.log_prob(dist.sample()))
        spreads.append(dist.entropy())
    logs, spreads = map(torch.stack, (logs, spreads))
    loss = -(logs * returns).mean() + options.beta * spreads.mean()  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        (("+ options", "- options"),),
    ),
    Case(
        "entropy with the wrong sign",
        """
policy = nn.Linear(4, 2)
optimizer = torch.optim.Adam(policy.parameters())
for states, actions, returns in batches:
    dist = torch.distributions.Categorical(logits=policy(states))
    entropy = dist.entropy().mean()
    loss = -(dist.log_prob(actions) * returns).mean() + 0.01 * entropy  #!
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        (("+ 0.01", "- 0.01"),),
    ),
    Case(
        "divergence with the wrong sign",
        _VAE.format(_NEAR, _FAR.replace("-0.5", "0.5") + "  #!"),
        (("far = 0.5", "far = -0.5"),),
    ),
    Case(
        "divergence with the wrong sign",
        _VAE.format(_NEAR, _FAR.replace("- mean**2", "+ mean**2") + "  #!"),
        (("+ mean**2", "- mean**2"),),
    ),
    Case(
        "loss terms of unequal size",
        _VAE.format("near = F.mse_loss(output, x)  #!", _FAR),
        (("F.mse_loss(output, x)", "F.mse_loss(output, x, reduction='sum') / len(x)"),),
    ),
    Case(
        "deviation of a logarithm",
        _VAE.format(_NEAR, _FAR).replace(
            "(0.5 * logvar).exp() * torch.randn_like(mean)", "logvar.exp() * torch.randn_like(mean)  #!"
        ),
        (("logvar.exp() * torch", "(0.5 * logvar).exp() * torch"),),
    ),
    Case(
        "temperature multiplied",
        """
teacher = nn.Linear(4, 3)
def soft(x, temperature=4.0):
    scores = teacher(x) * temperature  #!
    return F.softmax(scores, dim=1)
""",
        (("teacher(x) * temperature", "teacher(x) / temperature"),),
    ),
    Case(
        "average follows at once",
        """
class Average:
    def __init__(self, model, decay=0.99):
        self.decay = decay
        self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}
    def update(self, model):
        for name, p in model.named_parameters():
            self.shadow[name] = (1 - self.decay) * self.shadow[name] + self.decay * p.detach()  #!
average = Average(nn.Linear(2, 2))
average.update(nn.Linear(2, 2))
""",
        (
            (
                "(1 - self.decay) * self.shadow[name] + self.decay *",
                "self.decay * self.shadow[name] + (1 - self.decay) *",
            ),
        ),
    ),
    Case(
        "average follows at once",
        """
tau = 0.005
def follow(net, target_net):
    for p, t in zip(net.parameters(), target_net.parameters()):
        t.data.copy_(tau * t.data + (1 - tau) * p.data)  #!
""",
        (("tau * t.data + (1 - tau) * p.data", "tau * p.data + (1 - tau) * t.data"), ("t.data.copy_", "t.data.copy_")),
    ),
    Case(
        "average pushed away",
        """
class Average:
    def __init__(self, parameters, decay=0.99):
        self.decay, self.params = decay, list(parameters)
        self.shadow = [p.detach().clone() for p in self.params]
    def update(self):
        for s, p in zip(self.shadow, self.params):
            gap = s - p
            s.add_(gap * (1 - self.decay))  #!
average = Average(nn.Linear(2, 2).parameters())
average.update()
""",
        (("s.add_(", "s.sub_("),),
    ),
    Case(
        "average pushed away",
        """
def follow(net, target_net, tau=0.01):
    for p, t in zip(net.parameters(), target_net.parameters()):
        t.data -= tau * (p.data - t.data)  #!
""",
        (("t.data -=", "t.data +="),),
    ),
    Case(
        "second derivatives mixed",
        """
def residual(net, points):
    u = net(points)
    slope = torch.autograd.grad(u, points, torch.ones_like(u), create_graph=True)[0]
    second = torch.autograd.grad(slope, points, torch.ones_like(slope), create_graph=True)[0]  #!
    return second[:, 0] + second[:, 1] - u
""",
        (
            ("grad(slope, points, torch.ones_like(slope)", "grad(slope[:, 0].sum(), points"),
            ("second[:, 0] + second[:, 1]", "second[:, 0]"),
        ),
        only="torch",
    ),
    Case(
        "second derivatives mixed",
        """
def derived(y, x):
    return torch.autograd.grad(y.sum(), x, create_graph=True)[0]
def laplacian(net, points):
    slope = derived(net(points), points)
    return derived(slope, points).sum(dim=1)  #!
""",
        (
            (
                "    return derived(slope, points).sum(dim=1)",
                "    return derived(slope[:, 0], points)[:, 0] + derived(slope[:, 1], points)[:, 1]",
            ),
        ),
        only="torch",
    ),
    Case(
        "backward ignores its gradient",
        """
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x  #!
""",
        (("return 2 * x", "return grad * 2 * x"),),
    ),
    Case(
        "noise level of a single step",
        """
class Schedule:
    def __init__(self):
        self.beta = torch.linspace(1e-4, 0.02, 100)
        self.alpha = 1 - self.beta
        self.alpha_bar = torch.cumprod(self.alpha, 0)
    def noisy(self, x, t):
        noise = torch.randn_like(x)
        level = self.alpha[t].view(-1, 1, 1)
        return level.sqrt() * x + (1 - level).sqrt() * noise  #!
    def back(self, x, guess, i):
        a, ah, b = self.alpha[i], self.alpha_bar[i], self.beta[i]
        return (x - b / (1 - ah).sqrt() * guess) / a.sqrt() + b.sqrt() * torch.randn_like(x)
""",
        (("self.alpha[t]", "self.alpha_bar[t]"),),
    ),
    Case(
        "noise level of a single step",
        """
beta = torch.linspace(1e-4, 0.02, 100)
alpha = 1 - beta
alpha_bar = torch.cumprod(alpha, 0)
def noisy(x, t):
    noise = torch.randn_like(x)
    return alpha[t].sqrt() * x + (1 - alpha[t]).sqrt() * noise  #!
""",
        (("alpha[t].sqrt() * x + (1 - alpha[t])", "alpha_bar[t].sqrt() * x + (1 - alpha_bar[t])"),),
    ),
    Case(
        "noise level of a single step",
        """
beta = torch.linspace(1e-4, 0.02, 100)
alpha = 1 - beta
alpha_bar = torch.cumprod(alpha, 0)
x, guess = torch.randn(8, 2), torch.zeros(8, 2)
for i in range(99, 0, -1):
    x = alpha[i].sqrt() * guess + (1 - alpha[i]).sqrt() * x  #!
""",
        (
            (
                "alpha[i].sqrt() * guess + (1 - alpha[i]).sqrt() * x",
                "(alpha[i].sqrt() * (1 - alpha_bar[i - 1]) * x + alpha_bar[i - 1].sqrt() * beta[i] * guess) / beta[99]",
            ),
        ),
    ),
)
