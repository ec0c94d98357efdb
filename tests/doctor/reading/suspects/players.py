"""Suspects about reinforcement learning: values of the future, exploration, environments and policies."""

from __future__ import annotations

from tests.doctor.reading.case import Case

_ACT = """
import random
def run(env, q, memory, epsilon):
    for episode in range(100):
        state = env.reset()
        done = False
        while not done:
            if random.random() {0} epsilon:{1}
                action = env.action_space.sample()
            else:
                action = q(state).argmax().item()
            next_state, reward, done, info = env.step(action){2}
{3}
"""
_STORE = "            memory.push(state, action, reward, next_state, done)\n            state = next_state\n"

CASES = (
    Case(
        "exploration over after a few episodes",
        """
for episode in range(400):
    state, done = env.reset(), False
    while not done:
        action = act(state, epsilon)
        state, reward, done = env.step(action)
        if epsilon > 0.05:
            epsilon *= 0.97  #!
""",
        (("        if epsilon > 0.05:\n            epsilon", "    if epsilon > 0.05:\n        epsilon"),),
    ),
    Case(
        "positives of another layout",
        """
x = torch.stack([view_1, view_2], dim=1).flatten(0, 1)
z = model(x)
n = len(z)
partner = torch.cat([torch.arange(n // 2, n), torch.arange(n // 2)])  #!
loss = F.cross_entropy(z @ z.T / temperature, partner)
""",
        (("torch.stack([view_1, view_2], dim=1).flatten(0, 1)", "torch.cat([view_1, view_2])"),),
    ),
    Case(
        "action of another step",
        """
def played(env, policy):
    states, actions = [env.reset()], [torch.zeros(2)]
    for _ in range(100):
        action = policy(states[-1])
        states.append(env.step(action))
        actions.append(action)
    return torch.stack(states), torch.stack(actions)
states, actions = played(env, policy)
loss = F.mse_loss(model(states[:-1], actions[:-1]), states[1:])  #!
""",
        (("actions[:-1]", "actions[1:]"),),
    ),
    Case(
        "action of another step",
        """
states, actions = torch.zeros(8, 101, 4), torch.zeros(8, 101, 2)
state = env.reset()
for t in range(101):
    action = torch.randn(8, 2)
    states[:, t] = state
    actions[:, t] = action
    state = env.step(action)
now, then = states[:, :-1], states[:, 1:]
loss = F.mse_loss(model(now, actions[:, 1:]), then)  #!
""",
        (("actions[:, 1:]", "actions[:, :-1]"),),
    ),
    Case(
        "future valued behind the end",
        """
def targets(rewards, dones, next_q, settings):
    return rewards + settings["gamma"] * next_q.max(1)[0]  #!
""",
        (("next_q.max(1)[0]", "next_q.max(1)[0] * (1 - dones)"),),
    ),
    Case(
        "future counted where the episode ends",
        """
def targets(rewards, dones, next_q, gamma=0.9):
    return rewards + gamma * next_q.max(1)[0] * dones  #!
""",
        (("* dones", "* (1 - dones)"),),
    ),
    Case(
        "index in place of the best value",
        """
def targets(rewards, dones, next_q, gamma=0.9):
    best = next_q.max(1)[1]  #!
    return rewards + gamma * best * (1 - dones)
""",
        (("[1]\n", "[0]\n"),),
    ),
    Case(
        "best value over the batch",
        """
def targets(batch, next_q, dones, gamma=0.9):
    best = next_q.max(dim=0)[0]  #!
    return batch.rewards + gamma * best * (1 - dones)
""",
        (("dim=0", "dim=1"),),
    ),
    Case(
        "target network reads the present",
        """
def targets(states, next_states, rewards, dones, target_net, gamma=0.9):
    best = target_net(states).max(1)[0]  #!
    return rewards + gamma * best * (1 - dones)
""",
        (("target_net(states)", "target_net(next_states)"),),
    ),
    Case(
        "future valued by the network that learns",
        """
policy_net, target_net = nn.Linear(4, 2), nn.Linear(4, 2)
gamma = 0.9
for states, actions, rewards, next_states, dones in batches:
    best = policy_net(next_states).max(1)[0]  #!
    wanted = rewards + gamma * best * (1 - dones)
target_net.load_state_dict(policy_net.state_dict())
""",
        (("policy_net(next_states)", "target_net(next_states)"),),
    ),
    Case(
        "weights copied from the copy",
        """
policy_net, target_net = nn.Linear(4, 2), nn.Linear(4, 2)
for step in range(1000):
    if step % 100 == 0:
        policy_net.load_state_dict(target_net.state_dict())  #!
    for p, tp in zip(policy_net.parameters(), target_net.parameters()):
        p.data.copy_(0.01 * p.data + 0.99 * tp.data)  #!
""",
        (
            ("policy_net.load_state_dict(target_net.", "target_net.load_state_dict(policy_net."),
            ("p.data.copy_(", "tp.data.copy_("),
        ),
    ),
    Case(
        "copy that is none",
        """
policy_net = nn.Linear(4, 2)
target_net = policy_net  #!
""",
        (("= policy_net", "= nn.Linear(4, 2)"),),
    ),
    Case("exploration turned round", _ACT.format(">", "  #!", "", _STORE), (("random() >", "random() <"),)),
    Case(
        "bound on the wrong side",
        """
epsilon, eps_min = 1.0, 0.05
for step in range(1000):
    epsilon = min(eps_min, epsilon * 0.99)  #!
    beta = max(1.0, step / 500)  #!
""",
        (("min(eps_min", "max(eps_min"), ("max(1.0", "min(1.0")),
    ),
    Case(
        "state moved on too early",
        _ACT.format("<", "", "", "            state = next_state  #!\n" + _STORE.partition("            state")[0]),
        (("            state = next_state\n", ""),),
    ),
    Case(
        "state never moves on",
        _ACT.format("<", "", "  #!", _STORE.replace("            state = next_state\n", "")),
        (("memory.push(state, action, reward, next_state, done)", "state = next_state"),),
    ),
    Case(
        "reward stored before its step",
        """
while not done:
    action = policy(state)
    memory.store(state, action, reward)  #!
    state, reward, done, info = env.step(action)
""",
        (
            ("    memory.store(state, action, reward)\n", ""),
            ("env.step(action)", "env.step(action)\n    memory.store(last, action, reward)"),
        ),
    ),
    Case(
        "environment never begun anew",
        """
state = env.reset()
for episode in range(100):  #!
    done = False
    while not done:
        state, reward, done, info = env.step(policy(state))
""",
        (("    done = False\n", "    done = False\n    state = env.reset()\n"),),
    ),
    Case(
        "numbers of another kind given to a distribution",
        """
from torch.distributions import Categorical, Normal
def act(net, state, log_std):
    logits, mean = net(state)
    first = Categorical(logits)  #!
    second = Normal(mean, log_std)  #!
    return first, second
""",
        (("Categorical(logits)", "Categorical(logits=logits)"), ("mean, log_std)", "mean, log_std.exp())")),
    ),
    Case(
        "probability of an action just drawn",
        """
for states, actions, old_log_probs, advantages in batches:
    dist = policy(states)
    ratio = torch.exp(dist.log_prob(dist.sample()) - old_log_probs)  #!
    loss = -(ratio * advantages).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        (("dist.sample()", "actions"),),
    ),
    Case(
        "ratio of two policies",
        """
def loss_of(new_log_probs, old_log_probs, advantages):
    ratio = torch.exp(old_log_probs - new_log_probs)  #!
    return -(ratio * advantages).mean()
""",
        (("old_log_probs - new_log_probs", "new_log_probs - old_log_probs"),),
    ),
    Case(
        "clipping of the ratio",
        """
def loss_of(ratio, advantages, eps=0.2):
    surr1 = ratio * advantages
    surr2 = torch.clamp(ratio, -eps, eps) * advantages  #!
    return -torch.max(surr1, surr2).mean()  #!
""",
        (("ratio, -eps, eps", "ratio, 1 - eps, 1 + eps"), ("torch.max", "torch.min")),
    ),
    Case(
        "old policy taken from the new one",
        """
def update(policy, optimizer, states, actions, advantages, old_log_probs):
    for epoch in range(4):
        dist = policy(states)
        new_log_probs = dist.log_prob(actions)
        old_log_probs = new_log_probs.detach()  #!
        ratio = torch.exp(new_log_probs - old_log_probs)
        loss = -(ratio * advantages).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
        (("        old_log_probs = new_log_probs.detach()\n", ""),),
    ),
    Case(
        "advantage turned round",
        """
def advantages_of(returns, values):
    advantages = values - returns  #!
    return advantages
""",
        (("values - returns", "returns - values"),),
    ),
    Case(
        "discounted sum over the past",
        """
def returns_of(rewards, gamma=0.9):
    total, found = 0.0, [0.0] * len(rewards)
    for t in range(len(rewards)):
        total = rewards[t] + gamma * total  #!
        found[t] = total
    return found
""",
        (("range(len(rewards))", "reversed(range(len(rewards)))"),),
    ),
    Case(
        "discounted sum over the past",
        """
def advantages_of(deltas, gamma=0.9, lam=0.95):
    gae, found = 0.0, []
    for delta in reversed(deltas):
        gae = delta + gamma * gae  #!
        found.insert(0, gae)
    return found
""",
        (("gamma * gae", "gamma * lam * gae"),),
    ),
    Case(
        "sign of the entropy",
        """
def losses_of(next_q, next_log_prob, q, log_prob, alpha=0.2):
    soft = next_q + alpha * next_log_prob  #!
    actor_loss = (q - alpha * log_prob).mean()  #!
    return soft, actor_loss
""",
        (("next_q + alpha", "next_q - alpha"), ("(q - alpha * log_prob)", "(alpha * log_prob - q)")),
    ),
    Case(
        "target of the entropy",
        """
def loss_of(log_alpha, log_prob, action_dim):
    target_entropy = action_dim  #!
    alpha_loss = -(log_alpha * (log_prob - target_entropy).detach()).mean()  #!
    return alpha_loss
""",
        (("= action_dim", "= -action_dim"), ("log_prob - target", "log_prob + target")),
    ),
    Case(
        "squashed action without its correction",
        """
def act(dist):
    x = dist.rsample()
    action = torch.tanh(x)  #!
    log_prob = dist.log_prob(x)
    return action, log_prob.sum(-1)
""",
        (("dist.log_prob(x)\n", "dist.log_prob(x) - torch.log(1 - action ** 2 + 1e-6)\n"),),
    ),
    Case(
        "larger of two critics",
        """
def value_of(q1, q2, x):
    return torch.max(q1(x), q2(x))  #!
""",
        (("torch.max", "torch.min"),),
    ),
    Case(
        "critic fitted to something else",
        """
def loss_of(values, advantages, returns, gamma=0.9):
    return F.mse_loss(values, advantages)  #!
""",
        (("values, advantages)\n", "values, returns)\n"),),
    ),
    Case(
        "reward of one step weighs an action",
        """
gamma = 0.9
def loss_of(log_probs, rewards, returns):
    return -(log_probs * rewards).sum()  #!
""",
        (("log_probs * rewards", "log_probs * returns"),),
    ),
    Case(
        "records of earlier episodes",
        """
log_probs = []
for episode in range(100):
    for state in episode_of(episode):
        dist = policy(state)
        log_probs.append(dist.log_prob(dist.sample()))  #!
    loss = -torch.stack(log_probs).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        (
            ("    loss = -", "    optimizer.zero_grad()\n    loss = -"),
            ("    optimizer.step()", "    optimizer.step()\n    log_probs = []"),
        ),
    ),
    Case(
        "averaged before it is weighted",
        """
def loss_of(log_probs, returns):
    return (-log_probs.mean() * returns).sum()  #!
""",
        (("-log_probs.mean() * returns", "-log_probs * returns"),),
    ),
    Case(
        "gradient lost in a number",
        """
values, log_probs = [], []
for state, reward in episode:
    dist, value = net(state)
    log_probs.append(dist.log_prob(dist.sample()))
    values.append(value.item())  #!
loss = F.mse_loss(torch.tensor(values), returns)
loss.backward()
""",
        (("value.item()", "value"),),
    ),
    Case(
        "gradients of one player kept",
        """
opt_g = torch.optim.Adam(G.parameters())
opt_d = torch.optim.Adam(D.parameters())
for real in batches:
    d_loss(real).backward()
    opt_d.step()  #!
    opt_g.zero_grad()
    g_loss(real).backward()
    opt_g.step()
""",
        (("    d_loss", "    opt_d.zero_grad()\n    d_loss"),),
    ),
    Case(
        "log-determinant of the other direction",
        """
class Step(nn.Module):
    def forward(self, z):
        s, t = self.net(z)
        return z * torch.exp(s) + t, s.sum(-1)

    def inverse(self, x):
        s, t = self.net(x)
        log_det = s.sum(-1)  #!
        return (x - t) / torch.exp(s), log_det

class Flow(nn.Module):
    def log_prob(self, x):
        total = 0
        for step in reversed(self.steps):
            x, one = step.inverse(x)
            total = total + one
        return self.base.log_prob(x).sum(-1) + total
""",
        (("total = total + one", "total = total - one"),),
    ),
    Case(
        "one layer for mean and deviation",
        """
class Actor(nn.Module):
    def forward(self, x):
        h = self.body(x)
        log_std = F.relu(self.spread(h)).clamp(-5, 2)  #!
        return torch.distributions.Normal(self.middle(h), log_std.exp())
""",
        (("F.relu(self.spread(h))", "self.spread(h)"),),
    ),
    Case(
        "noise that ends too early",
        """
class Diffusion:
    def __init__(self, steps=100):
        self.betas = torch.linspace(1e-4, 0.02, steps)  #!
        self.kept = (1 - self.betas).cumprod(0)
diffusion = Diffusion()
""",
        (("steps=100", "steps=1000"),),
    ),
    Case(
        "both views move towards each other",
        """
class Twins(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = nn.Linear(9, 4), nn.Linear(4, 4)

    def forward(self, x):
        z = self.encoder(x)
        return z, self.head(z)


def apart(p, z):
    return 2 - 2 * (F.normalize(p, dim=1) * F.normalize(z, dim=1)).sum(1)  #!


twins = Twins()
for a, b in batches:
    z1, p1 = twins(a)
    z2, p2 = twins(b)
    loss = apart(p1, z2).mean() + apart(p2, z1).mean()
""",
        (("return z, self.head(z)", "return z.detach(), self.head(z)"),),
    ),
    Case(
        "both views move towards each other",
        """
class Twins(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = nn.Linear(9, 4), nn.Linear(4, 4)

    def forward(self, a, b):
        z1, z2 = self.encoder(a), self.encoder(b)
        return self.head(z1), self.head(z2), z1, z2  #!


def negative_cosine(p, z):
    return -F.cosine_similarity(p, z, dim=1).mean()


twins = Twins()
for a, b in batches:
    p1, p2, z1, z2 = twins(a, b)
    loss = (negative_cosine(p1, z2) + negative_cosine(p2, z1)) / 2
""",
        (("self.head(z2), z1, z2", "self.head(z2), z1.detach(), z2.detach()"),),
    ),
)
