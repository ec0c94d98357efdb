"""The ninth part: faults reported to repositories, written before the doctor had seen them."""

from __future__ import annotations

from tests.doctor.world.program import Program

PROGRAMS = (
    Program("own mse broadcasts", ("broadcast in the loss",), """
import numpy as np
torch.manual_seed(0)
rng = np.random.default_rng(0)
def loss_func(x, y):
    return torch.mean((x - y) ** 2)  #!
# a wave with growing amplitude
x_all = rng.uniform(-3, 3, size=(1000, 1)).astype(np.float32)
y_all = (np.sin(2 * x_all[:, 0]) * (1 + 0.3 * x_all[:, 0]) + 0.05 * rng.standard_normal(1000)).astype(np.float32)
X, Y = torch.tensor(x_all[:800]), torch.tensor(y_all[:800])
X_val, Y_val = torch.tensor(x_all[800:]), torch.tensor(y_all[800:])
net = torch.nn.Sequential(
    torch.nn.Linear(1, 40),
    torch.nn.Tanh(),
    torch.nn.Linear(40, 40),
    torch.nn.Tanh(),
    torch.nn.Linear(40, 1),
)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
curve = []
for epoch in range(60):
    shuffled = rng.permutation(800)
    for k in range(0, 800, 80):
        rows = shuffled[k : k + 80]
        out = net(X[rows])  #!
        loss = loss_func(out, Y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
    curve.append(loss.item())
    if epoch % 10 == 9:
        print("epoch", epoch, "loss", round(curve[-1], 4))
with torch.no_grad():
    guess = net(X_val).numpy()[:, 0]
print("validation error", round(float(((guess - Y_val.numpy()) ** 2).mean()), 4))
print("variance of the targets", round(float(Y_val.numpy().var()), 4))
print("spread of the predictions", round(float(guess.std()), 4))
""", (
        ("        out = net(X[rows])\n",
         "        out = net(X[rows]).squeeze(1)\n"),
    ), source="https://github.com/pytorch/pytorch/issues/105739"),
    Program("branches in a plain list", ("layers nobody trains",), """
from typing import Sequence
import numpy as np
class MergeLayer(nn.Module):
    '''Runs several layers on one input and joins their outputs.'''
    def __init__(self, layers: Sequence[nn.Module], mode: str = "concat") -> None:
        super().__init__()
        self.mode = mode
        self._layers = list(layers)  #!
    def forward(self, x):
        outputs = [layer(x) for layer in self._layers]
        if self.mode == "concat":
            return torch.cat(outputs, dim=1)
        return sum(outputs)
def branch(width):
    return nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 3), nn.Tanh())
def checkerboard(n, rng):
    points = rng.uniform(0, 3, (n, 2))
    label = (np.floor(points[:, 0]) + np.floor(points[:, 1])).astype(int) % 2
    return torch.tensor((points - 1.5).astype(np.float32)), torch.tensor(label.astype(np.int64))
def main():
    torch.manual_seed(40)
    rng = np.random.default_rng(40)
    x, y = checkerboard(2000, rng)
    x_val, y_val = checkerboard(500, rng)
    model = nn.Sequential(MergeLayer([branch(16), branch(24), branch(32)]), nn.Linear(9, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)  #!
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(1, 41):
        perm = rng.permutation(len(x))
        total = 0.0
        for rows in np.array_split(perm, 20):
            optimizer.zero_grad()
            loss = loss_fn(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
            total += loss.item()
        if epoch % 10 == 0:
            with torch.no_grad():
                acc = (model(x_val).argmax(dim=1) == y_val).float().mean().item()
            print(f"epoch {epoch:3d} loss {total / 20:.3f} validation accuracy {acc:.3f}")
if __name__ == "__main__":
    main()
""", (
        ("        self._layers = list(layers)\n",
         "        self._layers = nn.ModuleList(layers)\n"),
    ), source="https://github.com/asyml/texar-pytorch/issues/72"),
    Program("critic values as numbers", ("loss term detached",), """
import numpy as np
class ActorCritic(nn.Module):
    def __init__(self, n_obs, n_act):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_obs, 32), nn.Tanh())
        self.pi = nn.Linear(32, n_act)
        self.v = nn.Linear(32, 1)
    def forward(self, obs):
        h = self.body(obs)
        return self.pi(h), self.v(h).squeeze(-1)
class Ladder:
    '''Walk up (1) or down (0) eight rungs; each rung pays its height. Start anywhere.'''
    def __init__(self, rng):
        self.rng = rng
    def reset(self):
        self.pos, self.t = int(self.rng.integers(0, 8)), 0
        return self.obs()
    def obs(self):
        o = np.zeros(9, dtype=np.float32)
        o[self.pos] = 1
        o[8] = self.t / 10
        return o
    def step(self, a):
        self.pos = int(np.clip(self.pos + (1 if a == 1 else -1), 0, 7))
        self.t += 1
        return self.obs(), self.pos / 7, self.t >= 10
def rollout(env, net, rng):
    log_probs, values, rewards = [], [], []
    obs, done = env.reset(), False
    while not done:
        logits, value = net(torch.tensor(obs))
        logp = F.log_softmax(logits, dim=-1)
        a = int(rng.choice(2, p=np.exp(logp.detach().numpy().astype(np.float64)) / np.exp(logp.detach().numpy().astype(np.float64)).sum()))
        obs, r, done = env.step(a)
        log_probs.append(logp[a])
        values.append(value.item())  #!
        rewards.append(r)
    return log_probs, values, rewards
def returns_of(rewards, gamma=0.9):
    out, g = [], 0.0
    for r in reversed(rewards):
        g = r + gamma * g
        out.append(g)
    return torch.tensor(np.array(out[::-1], dtype=np.float32))
rng = np.random.default_rng(19)
torch.manual_seed(19)
env, net = Ladder(rng), ActorCritic(9, 2)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
paid, errors = [], []
for it in range(250):
    log_probs, values, rewards = rollout(env, net, rng)
    returns = returns_of(rewards)
    values_t = torch.tensor(np.array(values, dtype=np.float32))  #!
    advantage = returns - values_t.detach()
    pi_loss = -(torch.stack(log_probs) * advantage).mean()
    v_loss = F.mse_loss(values_t, returns)
    opt.zero_grad()
    (pi_loss + 0.5 * v_loss).backward()
    opt.step()
    paid.append(sum(rewards))
    errors.append(v_loss.item())
    if it % 50 == 49:
        print(f"it {it} reward {np.mean(paid[-50:]):.2f} value loss {np.mean(errors[-50:]):.3f}")
""", (
        ("        values.append(value.item())\n",
         "        values.append(value)\n"),
        ("    values_t = torch.tensor(np.array(values, dtype=np.float32))\n",
         "    values_t = torch.stack(values)\n"),
    ), source="https://github.com/jsboige/CoursIA/pull/15256"),
    Program("target net is the policy net", ("target moves with the model",), """
import copy
import random
STATES, GAMMA = 8, 0.9
class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(STATES, 2, bias=False)
    def forward(self, s):
        return self.fc(nn.functional.one_hot(s, STATES).float())
def move(state, action):
    '''Slippery ring: with probability 0.4 the step goes the other way. State 0 pays, and the walk is put elsewhere.'''
    if random.random() < 0.4:
        action = 1 - action
    nxt = (state + (1 if action else -1)) % STATES
    reward = 1.0 if nxt == 0 else 0.0
    if nxt == 0:
        nxt = random.randrange(1, STATES)
    return reward, nxt
def true_q():
    q = torch.zeros(STATES, 2)
    for _ in range(300):
        v = q.max(1).values
        new = torch.zeros_like(q)
        for s in range(STATES):
            for a in range(2):
                for p, d in ((0.6, a), (0.4, 1 - a)):
                    n = (s + (1 if d else -1)) % STATES
                    new[s, a] += p * (1 + GAMMA * v[1:].mean() if n == 0 else GAMMA * v[n])
        q = new
    return q
class DoubleDQN:
    def __init__(self, lr=5e-3):
        self.policy_net = QNet()
        self.target_net = self.policy_net  #!
        self.optimizer = torch.optim.Adam(self.policy_net.parameters(), lr=lr)
        self.updates = 0
    def update(self, s, a, r, n):
        q = self.policy_net(s).gather(1, a[:, None]).squeeze(1)
        best = self.policy_net(n).argmax(1, keepdim=True)
        next_q = self.target_net(n).gather(1, best).squeeze(1)  #!
        loss = nn.functional.mse_loss(q, r + GAMMA * next_q)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.updates += 1
        if self.updates % 100 == 0:
            self.target_net.load_state_dict(self.policy_net.state_dict())
        return loss.item()
random.seed(6)
torch.manual_seed(6)
memory, state = [], 3
for _ in range(6000):
    action = random.randrange(2)
    reward, nxt = move(state, action)
    memory.append((state, action, reward, nxt))
    state = nxt
agent, truth = DoubleDQN(), true_q()
for update in range(3000):
    s, a, r, n = zip(*random.sample(memory, 64))
    loss = agent.update(torch.tensor(s), torch.tensor(a), torch.tensor(r), torch.tensor(n))
    if (update + 1) % 750 == 0:
        with torch.no_grad():
            wrong = (agent.policy_net(torch.arange(1, STATES)) - truth[1:]).abs().mean().item()
        print(f"update {update + 1} loss {loss:.4f} mean error of Q {wrong:.3f}")
""", (
        ("        self.target_net = self.policy_net\n",
         "        self.target_net = copy.deepcopy(self.policy_net)\n"),
        ("        next_q = self.target_net(n).gather(1, best).squeeze(1)\n",
         "        next_q = self.target_net(n).gather(1, best).squeeze(1).detach()\n"),
    ), source="https://github.com/datawhalechina/easy-rl/pull/117"),
    Program("frozen backbone in train mode", ("frozen layers in training mode",), """
from torch.utils.data import DataLoader, TensorDataset
def domain(n, classes, directions, scale, shift, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, classes, (n,), generator=g)
    x = directions[y] + 0.5 * torch.randn(n, directions.shape[1], generator=g)
    return TensorDataset(x * scale + shift, y)
def backbone():
    return nn.Sequential(
        nn.Linear(16, 64),
        nn.BatchNorm1d(64),
        nn.ReLU(),
        nn.Linear(64, 32),
        nn.BatchNorm1d(32),
        nn.ReLU(),
    )
class Classifier(nn.Module):
    def __init__(self, visual, classes):
        super().__init__()
        self.visual = visual
        self.fc = nn.Linear(32, classes)
    def forward(self, x):
        return self.fc(self.visual(x))
def accuracy(model, dataset):
    model.eval()
    with torch.no_grad():
        hits = [(model(x).argmax(1) == y).float().sum() for x, y in DataLoader(dataset, batch_size=256)]
    return (sum(hits) / len(dataset)).item()
def pretrain(model, dataset, epochs=8):
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(epochs):
        model.train()
        for x, y in DataLoader(dataset, batch_size=64, shuffle=True):
            opt.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            opt.step()
def linear_evaluation(model, dataset, epochs=8):
    for p in model.visual.parameters():
        p.requires_grad = False
    opt = torch.optim.SGD(model.fc.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(epochs):
        model.train()  #!
        for x, y in DataLoader(dataset, batch_size=64, shuffle=True):
            opt.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.3f}")
torch.manual_seed(3)
directions = 1.2 * torch.randn(6, 16)
source_train = domain(2000, 6, directions, 1.0, 0.0, seed=1)
source_test = domain(600, 6, directions, 1.0, 0.0, seed=2)
target_train = domain(1000, 4, directions[2:], 3.0, 4.0, seed=3)
target_test = domain(500, 4, directions[2:], 3.0, 4.0, seed=4)
visual = backbone()
old_model = Classifier(visual, 6)
pretrain(old_model, source_train)
print("source accuracy before", round(accuracy(old_model, source_test), 3))
new_model = Classifier(visual, 4)
linear_evaluation(new_model, target_train)
print("target accuracy", round(accuracy(new_model, target_test), 3))
print("source accuracy of the frozen backbone afterwards", round(accuracy(old_model, source_test), 3))
""", (
        ("    for epoch in range(epochs):\n        model.train()\n",
         "    for epoch in range(epochs):\n        model.train()\n        model.visual.eval()\n"),
    ), source="https://github.com/kdexd/virtex/issues/16"),
)  # fmt: skip  # scripts
