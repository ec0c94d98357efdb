"""Reinforcement learning: actor-critic with clipped ratios, a squashed Gaussian policy, Q-learning from a buffer."""

import random
from collections import deque, namedtuple
from torch.distributions import Categorical, Normal
import torch
import torch.nn as nn
import torch.nn.functional as F

from _shared import data, fill, fit


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
Step = namedtuple("Step", ("state", "action", "next_state", "reward"))


class Buffer:
    def __init__(self, capacity, device):
        self.memory = deque([], maxlen=capacity)
        self.pin = device == torch.device("cuda").type

    def push(self, *args):
        self.memory.append(Step(*args))

    def sample(self, n):
        return Step(*zip(*random.Random(3).sample(list(self.memory), n)))


class ActorCritic(nn.Module):
    def __init__(self, states, actions):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(states, 8), nn.Tanh())
        self.actor, self.critic = nn.Linear(8, actions), nn.Linear(8, 1)

    def forward(self, state):
        h = self.body(state)
        return Categorical(logits=self.actor(h)), self.critic(h).squeeze(-1)


states, actions, returns = data(8, 4), torch.arange(8) % 3, data(8, at=3.0)
agent = fill(ActorCritic(4, 3)).to(device)
with torch.no_grad():
    old = agent(states)[0].log_prob(actions)


def ppo():
    policy, value = agent(states)
    advantage = (returns - value).detach()
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    ratio = torch.exp(policy.log_prob(actions) - old)
    clipped = torch.clamp(ratio, 0.8, 1.2) * advantage
    return (
        -torch.min(ratio * advantage, clipped).mean()
        + 0.5 * F.mse_loss(value, returns)
        - 0.01 * policy.entropy().mean()
    )


fit(agent, ppo, steps=4)
print(tuple(agent(states)[0].sample().shape), agent(states)[0].probs.argmax(1).tolist())


class Squashed(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.log_std = nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, state, noise):
        policy = Normal(self.mean(state), self.log_std(state).clamp(-5, 2).exp())
        u = policy.mean + policy.stddev * noise
        action = torch.tanh(u)
        return action, (policy.log_prob(u) - torch.log(1 - action.pow(2) + 1e-6)).sum(-1, keepdim=True)


policy = fill(Squashed())
fit(policy, lambda: sum(part.mean() for part in policy(states, data(8, 2, at=1.0))))


class DQN(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, x):
        return self.layers(x)


q, target = fill(DQN()), fill(DQN())
target.load_state_dict(q.state_dict())
memory = Buffer(100, device)
for i in range(8):
    memory.push(
        states[i : i + 1],
        actions[i].view(1, 1),
        None if i % 4 == 3 else states[(i + 1) % 8].unsqueeze(0),
        returns[i : i + 1],
    )


def td():
    batch = memory.sample(6)
    alive = torch.tensor(tuple(map(lambda s: s is not None, batch.next_state)), dtype=torch.bool, device=device)
    found = q(torch.cat(batch.state)).gather(1, torch.cat(batch.action))
    following = torch.zeros(6, device=device).double()
    with torch.no_grad():
        following[alive] = target(torch.cat([s for s in batch.next_state if s is not None])).max(1).values
    return nn.SmoothL1Loss()(found, (following * 0.99 + torch.cat(batch.reward)).unsqueeze(1))


fit(q, td)
for a, b in zip(target.parameters(), q.parameters()):
    a.data.copy_(0.9 * a.data + 0.1 * b.data)
print(memory.pin, round(float(sum(p.sum() for p in target.parameters())), 6))
