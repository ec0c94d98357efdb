"""Sound trainings as they are written in public repositories: reading has nothing to say of them.

Each holds one habit that a rule once took for a fault.
"""

from __future__ import annotations

SOUND = {
    "a function that returns the number of its loss": """
def learn(x, y):
    adam.zero_grad()
    loss = F.mse_loss(net(x), y)
    loss.backward()
    adam.step()
    return loss.item()

net = nn.Linear(4, 1)
adam = torch.optim.Adam(net.parameters())
losses, total = [], 0
for it in range(100):
    loss = learn(torch.randn(8, 4), torch.randn(8, 1))
    losses.append(loss)
    total += loss
print(total / 100, losses[-1])
""",
    "a policy that sees one state at a time": """
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = nn.Linear(4, 64), nn.Linear(64, 2)
        self.said = []

    def forward(self, x):
        return F.softmax(self.out(F.relu(self.hidden(x))), dim=0)

policy = Policy()
adam = torch.optim.Adam(policy.parameters(), lr=1e-3)
for game in range(100):
    s, _ = env.reset()
    done = False
    while not done:
        chosen = torch.distributions.Categorical(policy(torch.from_numpy(s).float()))
        a = chosen.sample()
        s, r, done, _, _ = env.step(a.item())
        policy.said.append((r, chosen.log_prob(a)))
    total, loss = 0, 0
    for r, said in policy.said[::-1]:
        total = r + 0.98 * total
        loss = loss - said * total
    adam.zero_grad()
    loss.backward()
    adam.step()
    policy.said.clear()
""",
    "ends of episodes that the targets hold already": """
def update(batches):
    for s, a, r, s_next, done_mask, old, td_target, advantage in batches:
        ratio = torch.exp(policy(s).gather(1, a).log() - old)
        loss = -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage) + F.smooth_l1_loss(value(s), td_target)
        adam.zero_grad()
        loss.mean().backward()
        adam.step()
""",
    "gradients that a function of the script clears": """
w = torch.randn(4, 1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
weights = [w, b]
adam = torch.optim.Adam(weights, lr=1e-3)

def forget():
    for one in weights:
        if one.grad is not None:
            one.grad = torch.zeros_like(one.grad)

for it in range(100):
    loss = F.mse_loss(torch.randn(8, 4) @ w + b, torch.randn(8, 1))
    loss.backward()
    adam.step()
    forget()
""",
    "an optimizer of another file": """
from schedules import Warmup

def epoch(model, batches, optimizer):
    for x, y in batches:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step_and_update_lr()

net = nn.Linear(4, 3)
epoch(net, batches, Warmup(torch.optim.Adam(net.parameters()), 512, 4000))
""",
    "labels sorted as their sequences, under a condition": """
def padded(rows, lengths, countries):
    data = torch.zeros(len(rows), int(lengths.max())).long()
    for at, row in enumerate(rows):
        data[at, : len(row)] = torch.tensor(row)
    lengths, perm_idx = lengths.sort(0, descending=True)
    data = data[perm_idx]

    # the labels, too
    target = torch.tensor(countries)
    if len(countries):
        target = target[perm_idx]
    return data, lengths, target
""",
    "inputs and labels in one new order": """
order = np.arange(y.shape[0])
np.random.RandomState(1).shuffle(order)
X, y = X[order], y[order]
X_train, X_test = X[order[:70]], X[order[70:]]
y_train, y_test = y[order[:70]], y[order[70:]]
""",
    "a mean of means": """
n_train, batch_size = 100, 2
for epoch in range(20):
    right = 0
    for x, y in train_dl:
        out = net(x)[:, 0]
        adam.zero_grad()
        F.binary_cross_entropy(out, y).backward()
        adam.step()
        right += ((out >= 0.5).float() == y).float().mean()
    right /= n_train / batch_size
""",
    "a count of another name": """
def test():
    net.eval()
    right = 0
    train_size = len(test_loader.dataset)
    with torch.no_grad():
        for x, y in test_loader:
            right += (net(x).argmax(1) == y).sum().item()
    print(right / train_size)
""",
    "validation by a sampler on the same set": """
from torch.utils.data.sampler import SubsetRandomSampler
rows = np.random.permutation(len(train_data))
train_loader = torch.utils.data.DataLoader(train_data, batch_size=20, sampler=SubsetRandomSampler(rows[1000:]))
valid_loader = torch.utils.data.DataLoader(train_data, batch_size=20, sampler=SubsetRandomSampler(rows[:1000]))
""",
    "a look at one batch of the training data": """
loader = DataLoader(train_dataset, batch_size=4, shuffle=False)
x, y = next(iter(loader))
print(x.shape, y.shape)
""",
    "one class of two in a notebook": """
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(8, 16, batch_first=True)
        self.out = nn.Linear(16, 1)

    def forward(self, x):
        _, (hidden, _) = self.rnn(x)
        return self.out(hidden[-1])

class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(8, 16, batch_first=True, bidirectional=True)
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        _, (hidden, _) = self.rnn(x)
        return self.out(torch.cat((hidden[-2], hidden[-1]), dim=1))
""",
    "scores of an attention that another file defines a part of": """
from layers import Noisy

class Duel(nn.Module):
    def __init__(self):
        super().__init__()
        self.value1, self.value2 = Noisy(8, 16), Noisy(16, 1)
        self.drop, self.attn = nn.Dropout(0.1), nn.Linear(8, 8)

    def score(self, hidden, encoded):
        return (hidden * self.attn(encoded)).sum(-1)

    def forward(self, x):
        value = F.relu(self.value1(self.drop(x)))
        value = self.value2(value)
        return value
""",
    "divergences of a generative game": """
D_real, D_fake = D(X), D(G(z))
D_loss = -(torch.mean(-torch.exp(D_real)) - torch.mean(-1 - D_fake))
D_loss.backward()
D_solver.step()
G_loss = -torch.mean(torch.exp(D(G(z)) - 1))
""",
    "validation within the loop over batches": """
steps = 0
for epoch in range(4):
    for x, y in train_loader:
        steps += 1
        adam.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        adam.step()
        if steps % 50 == 0:
            net.eval()
            with torch.no_grad():
                for x, y in test_loader:
                    print(F.cross_entropy(net(x), y).item())
            net.train()
""",
    "text shifted by one character": """
def batches(arr, n):
    for at in range(0, arr.shape[1], n):
        x = arr[:, at : at + n]
        y = np.zeros_like(x)
        y[:, :-1], y[:, -1] = x[:, 1:], arr[:, (at + n) % arr.shape[1]]
        yield x, y

for x, y in batches(text, 50):
    inputs, targets = x, y
    adam.zero_grad()
    F.cross_entropy(net(torch.from_numpy(inputs)), torch.from_numpy(targets)).backward()
    adam.step()
""",
    "an array that is resized in its place": """
for it in range(75):
    steps = np.linspace(it * np.pi, (it + 1) * np.pi, 21)
    data = np.sin(steps)
    data.resize((21, 1))
    x, y = torch.tensor(data[:-1]), torch.tensor(data[1:])
    adam.zero_grad()
    F.mse_loss(net(x), y).backward()
    adam.step()
""",
    "one loop for three figures": """
@torch.no_grad()
def test():
    net.eval()
    found = []
    for mask in [data.train_mask, data.val_mask, data.test_mask]:
        found.append((net(data.x)[mask].argmax(1) == data.y[mask]).float().mean())
    return found

train_ratio, val_ratio = 0.8, 0.1
print(f"Train/Val Ratio={train_ratio:.2f}/{val_ratio:.2f}")
""",
    "values set to 0 where an episode ends": """
done = torch.tensor(dones)
q_pred = online(states)[rows, actions]
q_next = aimed(new_states)
q_next[done] = 0.0
q_target = rewards + gamma * torch.max(q_next, dim=1)[0]
F.mse_loss(q_pred, q_target.detach()).backward()
""",
    "targets written into a copy of the predictions": """
q_pred = online(states)
q_target = online(states)
q_target[rows, actions] = rewards + gamma * aimed(new_states).max(1)[0] * (1 - dones)
F.mse_loss(q_pred, q_target.detach()).backward()
""",
    "a network that workers share": """
class Worker:
    def __init__(self, global_actor_critic):
        self.local = ActorCritic()
        self.global_actor_critic = global_actor_critic

class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 2)

    def forward(self, x):
        return self.out(x)

worker = Worker(ActorCritic())
""",
    "gradients from other processes": """
while True:
    gradients = queue.get()
    adam.zero_grad()
    for grad, weight in zip(gradients, net.parameters()):
        weight._grad = grad
    adam.step()
""",
    "seeds at the head of a batch of neighbours": """
for batch in loader:
    adam.zero_grad()
    out = net(batch.x, batch.edge_index)[:batch.batch_size]
    F.cross_entropy(out, batch.y[:batch.batch_size]).backward()
    adam.step()
for seeds in loader:
    n_id, batch_size, adjs = sampler.sample(seeds)
    adam.zero_grad()
    F.nll_loss(net(x[n_id], adjs), y[n_id[:batch_size]]).backward()
    adam.step()
""",
    "the larger of two figures": """
best_val_acc = 0
for epoch in range(10):
    val_acc = check(net)
    best_val_acc = max(best_val_acc, val_acc)
""",
    "ratings cut where they are judged": """
@torch.no_grad()
def test(data):
    net.eval()
    pred = net(data.x).clamp(min=0, max=5)
    return F.mse_loss(pred, data.y).sqrt().item()
""",
    "a summary of a graph": """
class Infomax(nn.Module):
    def __init__(self):
        super().__init__()
        self.activations = nn.ModuleList([nn.PReLU(8), nn.PReLU(8)])
        self.convs = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])

    def forward(self, x, edge_index):
        for at, (conv, act) in enumerate(zip(self.convs, self.activations)):
            x = act(conv(x))
            if at < len(self.convs) - 1:
                x = F.dropout(x, p=0.5, training=self.training)
        return x, torch.sigmoid(x.mean(dim=0))
""",
    "a memory that a method cuts": """
memory = Memory(8, 8).to(device)
for batch in loader:
    adam.zero_grad()
    F.mse_loss(net(memory(batch)), batch.y).backward()
    adam.step()
    memory.detach()
""",
    "weights for a file, and those of another file": """
def train():
    for epoch in range(10):
        state = net.state_dict()
        state["classes"] = classes
        torch.save(state, f"{epoch}.pt")

state = torch.load("0.pt")
net.load_state_dict(state)
""",
    "six numbers in two forms": """
a = torch.arange(6).view(3, 2)
b = a.reshape(2, 3)
""",
    "a bound that a search compares with": """
similarity, max_sim_tol, patience = 0, 0.995, 0
for epoch in range(10):
    similarity = check(net)
    if similarity > max_sim_tol:
        patience += 1
""",
}
