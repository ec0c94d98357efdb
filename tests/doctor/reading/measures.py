"""Faults of what a validation measures, and of the data that it sees."""

from __future__ import annotations

from tests.doctor.reading.case import LOOP, Case

_LOADER = "loader = torch.utils.data.DataLoader(data, batch_size=8)\nmodel = nn.Linear(4, 3)\n"
_BINARY = """
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
criterion = nn.BCEWithLogitsLoss()
for x, y in batches:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
"""

CASES = (
    Case(
        "metric divided by the wrong number",
        _LOADER
        + """
def accuracy(loader):
    right, count = 0, 0
    with torch.no_grad():
        for x, y in loader:
            right += (model(x).argmax(1) == y).sum().item()
            count += 1
    return right / count  #!
""",
        (("count += 1", "count += len(y)"),),
    ),
    Case(
        "statistics before the split",
        """
from torch.utils.data import TensorDataset, random_split
x = (x - x.mean(0)) / x.std(0)  #!
train, held_out = random_split(TensorDataset(x, y), [400, 100])
""",
        (("(x - x.mean(0)) / x.std(0)", "(x - 0.5) / 0.2"),),
    ),
    Case(
        "statistics of the test set",
        """
def scaled(x):
    return (x - x.mean(0)) / x.std(0)
x_train = scaled(raw_train)
x_test = scaled(raw_test)  #!
""",
        (("scaled(raw_test)", "(raw_test - raw_train.mean(0)) / raw_train.std(0)"),),
    ),
    Case(
        "metric divided by the wrong number",
        _LOADER
        + """
def accuracy():
    right = 0
    with torch.no_grad():
        for x, y in loader:
            right += (model(x).argmax(1) == y).sum().item()
    return 100 * right / len(loader)  #!
""",
        (("/ len(loader)", "/ len(loader.dataset)"),),
    ),
    Case(
        "metric divided by the wrong number",
        _LOADER
        + """
def mean_loss():
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += F.cross_entropy(model(x), y).item()
    return total / len(loader.dataset)  #!
""",
        (("/ len(loader.dataset)", "/ len(loader)"),),
    ),
    Case(
        "argmax over the batch",
        _LOADER
        + """
def accuracy(x, y):
    scores = model(x)
    return (scores.argmax(dim=0) == y).float().mean()  #!
""",
        (("dim=0", "dim=1"),),
    ),
    Case(
        "threshold of probabilities on logits",
        _BINARY
        + """
def accuracy(x, y):
    scores = model(x)
    said = scores > 0.5  #!
    return (said.float() == y).float().mean()
""",
        (("scores > 0.5", "scores > 0.0"),),
    ),
    Case(
        "result of the last batch only",
        _LOADER
        + """
def evaluate(loader):
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            loss = F.cross_entropy(model(x), y).item()  #!
    return loss
""",
        (("    model.eval()\n", "    model.eval()\n    loss = 0.0\n"), ("loss = F.cross", "loss += F.cross")),
    ),
    Case(
        "counter never reset",
        """
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
right = 0
for epoch in range(5):
    for x, y in batches:
        optimizer.zero_grad()
        scores = model(x)
        loss = F.cross_entropy(scores, y)
        loss.backward()
        optimizer.step()
        right += (scores.argmax(1) == y).sum().item()  #!
    print(right / 100)
""",
        (("for epoch in range(5):\n", "for epoch in range(5):\n    right = 0\n"),),
    ),
    Case(
        "mean of batch means",
        """
def examples(n):
    return torch.randn(n, 4), torch.randint(0, 3, (n,))
model = nn.Linear(4, 3)
x_val, y_val = examples(517)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x_val, y_val), batch_size=128)
def accuracy():
    found = []
    with torch.no_grad():
        for x, y in loader:
            right = (model(x).argmax(1) == y).float()
            found.append(right.mean().item())  #!
    return sum(found) / len(found)
""",
        (("examples(517)", "examples(512)"),),
    ),
    Case(
        "validation on the training data",
        LOOP.strip("\n")
        + """
def evaluate(model, loader):
    return sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
val_right = evaluate(model, train_loader)  #!
""",
        (("evaluate(model, train_loader)", "evaluate(model, val_loader)"),),
    ),
    Case(
        "labels overwritten while they are read",
        """
def renumber(labels, order):
    new = labels
    for i in range(len(order)):
        new[labels == i] = order[i]  #!
    return new
""",
        (("new = labels\n", "new = labels.clone()\n"),),
    ),
    Case(
        "statistics before the split",
        """
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
scaler = StandardScaler()
x = scaler.fit_transform(x)  #!
x_train, x_test, y_train, y_test = train_test_split(x, y)
""",
        (
            ("x = scaler.fit_transform(x)\n", ""),
            ("train_test_split(x, y)\n", "train_test_split(x, y)\nx_train = scaler.fit_transform(x_train)\n"),
        ),
    ),
    Case(
        "default shared by all calls",
        """
def remember(state, memory=[]):  #!
    memory.append(state)
    return torch.stack(memory)
""",
        (("memory=[]", "memory"),),
    ),
    Case(
        "labels of a regression cut",
        """
model = nn.Linear(4, 1)
def loss_of(x, y):
    return F.mse_loss(model(x), y.long())  #!
""",
        (("y.long()", "y.float()"),),
    ),
)
