"""REINFORCE-like updates: saved log-probabilities, gather, returns by a deque, a target network, soft updates."""

import random
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super(DQN, self).__init__()
        self.layer1 = nn.Linear(n_observations, 16)
        self.layer2 = nn.Linear(16, n_actions)

    def forward(self, x):
        return self.layer2(F.relu(self.layer1(x)))


random.seed(0)
torch.manual_seed(0)
device = "cpu"
policy_net, target_net = DQN(4, 2).to(device), DQN(4, 2).to(device)
target_net.load_state_dict(policy_net.state_dict())
optimizer = optim.AdamW(policy_net.parameters(), lr=1e-3, amsgrad=True)
memory = ReplayMemory(100)
state = torch.tensor(np.linspace(-1, 1, 4), dtype=torch.float32, device=device).unsqueeze(0)
for t in range(30):
    with torch.no_grad():
        action = (
            policy_net(state).max(1).indices.view(1, 1)
            if t % 2
            else torch.tensor([[random.randrange(2)]], dtype=torch.long)
        )
    next_state = None if t % 7 == 6 else torch.roll(state, 1, dims=1)
    memory.push(state, action, next_state, torch.tensor([float(action.item())], device=device))
    state = next_state if next_state is not None else state
    if len(memory) < 8:
        continue
    batch = Transition(*zip(*memory.sample(8)))
    mask = torch.tensor(tuple(map(lambda s: s is not None, batch.next_state)), dtype=torch.bool)
    non_final = torch.cat([s for s in batch.next_state if s is not None])
    values = policy_net(torch.cat(batch.state)).gather(1, torch.cat(batch.action))
    next_values = torch.zeros(8)
    with torch.no_grad():
        next_values[mask] = target_net(non_final).max(1).values
    expected = next_values * 0.9 + torch.cat(batch.reward)
    loss = nn.SmoothL1Loss()(values, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    target_state, policy_state = target_net.state_dict(), policy_net.state_dict()
    for key in policy_state:
        target_state[key] = policy_state[key] * 0.1 + target_state[key] * 0.9
    target_net.load_state_dict(target_state)
print(torch.isfinite(loss).item(), values.shape, mask.sum().item() <= 8)
returns = deque()
R = 0.0
for r in [1.0, 0.0, 2.0][::-1]:
    R = r + 0.5 * R
    returns.appendleft(R)
returns = torch.tensor(returns)
returns = (returns - returns.mean()) / (returns.std() + 1e-8)
print([round(v, 4) for v in returns.tolist()])
logits = torch.tensor([[0.1, 0.2], [0.5, -0.5], [0.0, 0.0]], requires_grad=True)
log_probs = F.log_softmax(logits, dim=-1).gather(1, torch.tensor([[0], [1], [1]])).squeeze(1)
policy_loss = []
for log_prob, R in zip(log_probs, returns):
    policy_loss.append(-log_prob * R)
torch.stack(policy_loss).sum().backward()
print([[round(v, 4) for v in row] for row in logits.grad.tolist()])
