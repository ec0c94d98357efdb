"""Findings of a run name the line that made what they blame, where only the run's calls tell which line that is."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from glassgrad.doctor.reading.origins.blamed import lines_of
from tests.doctor.reading.case import HEADS, MARK
from tests.doctor.reading.test_origins import TRAIN
from tests.doctor.world import found_in

RUNS = {
    "held-out inputs prepared otherwise": (
        "held-out inputs of another scale",
        """
def rows(n, scale):
    x = 100 + 40 * torch.randn(n, 6)
    return ((x - 100) / 40 if scale else x), torch.randint(0, 2, (n,))
def run(model, data, optimizer=None):
    x, y = data
    with torch.set_grad_enabled(optimizer is not None):
        loss = F.cross_entropy(model(x), y)
    if optimizer is not None:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
train = rows(200, True)
test = rows(100, False)  #!
model = nn.Linear(6, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(40):
    run(model, train, optimizer)
    run(model, test)
""",
    ),
    "inputs that each epoch divides again": (
        "inputs change from epoch to epoch",
        """
x, y = 100 * torch.randn(60, 6), torch.randint(0, 2, (60,))
model = nn.Linear(6, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(12):
    x = x / 2  #!
    for rows in torch.randperm(60).split(20):
        optimizer.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
""",
    ),
    "the training set validated, by its key": (
        "validated on training data",
        """
x, y = torch.randn(300, 6), torch.randint(0, 2, (300,))
sets = {
    "train": (x[:200], y[:200]),
    "held": (x[:200], y[:200]),  #!
}
model = nn.Linear(6, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
def loss_of(name):
    inputs, labels = sets[name]
    return F.cross_entropy(model(inputs), labels)
for epoch in range(60):
    optimizer.zero_grad()
    loss_of("train").backward()
    optimizer.step()
    if epoch % 10 == 9:
        with torch.no_grad():
            loss_of("held")
""",
    ),
    "an optimizer made before all layers change": (
        "parameters without an optimizer",
        """
def optimizer_of(model):
    return torch.optim.Adam(model.parameters(), lr=0.01)
model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = optimizer_of(model)  #!
for name in ("0", "2"):
    setattr(model, name, nn.Linear(*model[int(name)].weight.shape[::-1]))
x, y = torch.randn(60, 6), torch.randint(0, 2, (60,))
"""
        + TRAIN,
    ),
    "a loss with a weight that no optimizer has": (
        "layers nobody trains",
        """
class Weighed(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(3))
    def forward(self, output, y):
        return F.cross_entropy(output * self.scale.exp(), y)
model, weigh = nn.Linear(6, 3), Weighed()
learnt = [one for one in model.parameters()]  #!
optimizer = torch.optim.Adam(learnt, lr=0.01)
x, y = torch.randn(60, 6), torch.randint(0, 3, (60,))
"""
        + TRAIN.replace("F.cross_entropy", "weigh"),
    ),
    "an encoder that the optimizer of a method lacks": (
        "layers nobody trains",
        """
class Fit:
    def __init__(self, encoder, head):
        self.encoder, self.head = encoder, head
        self.optimizer = torch.optim.Adam(head.parameters(), lr=0.01)  #!
    def run(self, x, y):
        for step in range(40):
            self.optimizer.zero_grad()
            F.cross_entropy(self.head(torch.tanh(self.encoder(x))), y).backward()
            self.optimizer.step()
Fit(nn.Linear(6, 8), nn.Linear(8, 3)).run(torch.randn(60, 6), torch.randint(0, 3, (60,)))
""",
    ),
    "examples shuffled behind their labels": (
        "labels do not belong to the inputs",
        """
class Rows(torch.utils.data.Dataset):
    def __init__(self, n):
        self.rows = [(k % 3, np.eye(3, 6, dtype=np.float32)[k % 3] + 0.3 * np.random.randn(6)) for k in range(n)]
        marks = [mark for mark, _ in self.rows]
        np.random.shuffle(self.rows)  #!
        self.marks = torch.tensor(marks)
    def __len__(self):
        return len(self.rows)
    def __getitem__(self, k):
        return torch.tensor(self.rows[k][1], dtype=torch.float32) * 2, self.marks[k]
np.random.seed(0)
model = nn.Linear(6, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(Rows(600), batch_size=30, shuffle=True)
for epoch in range(10):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
""",
    ),
    "a transform of the held-out examples": (
        "held-out inputs of another scale",
        """
class Chain:
    def __init__(self, *steps):
        self.steps = list(steps)
    def __call__(self, x):
        for step in self.steps:
            x = step(x)
        return x
class Rows(torch.utils.data.Dataset):
    def __init__(self, n, transform):
        self.x, self.transform = 40 + 9 * torch.randn(n, 6), transform
    def __len__(self):
        return len(self.x)
    def __getitem__(self, k):
        return self.transform(self.x[k]), int(self.x[k, 0] > 40)
def scale(x):
    return (x - 40) / 9
full = Chain(scale)
part = Chain(lambda x: x * 1.0)  #!
model = nn.Linear(6, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(Rows(320, full), batch_size=16, shuffle=True)
held = torch.utils.data.DataLoader(Rows(100, part), batch_size=50)
for epoch in range(4):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    with torch.no_grad():
        for x, y in held:
            model(x)
""",
    ),
    "a state that is changed where it is kept": (
        "copies in a batch",
        """
class Walk:
    def __init__(self):
        self.place = np.zeros(4, np.float32)
    def go(self, way):
        self.place[way] += np.random.randn()
        return self.place, float(self.place.sum())  #!
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
walk, seen = Walk(), []
for step in range(120):
    place, worth = walk.go(step % 4)
    seen.append((place, worth))
    if step >= 40:
        picked = [seen[k] for k in np.random.randint(0, len(seen), 32)]
        x = torch.tensor(np.stack([one for one, _ in picked]))
        y = torch.tensor(np.array([[w] for _, w in picked], np.float32))
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
""",
    ),
    "a layer whose result a branch alone reads": (
        "no gradient",
        """
class Block(nn.Module):
    def __init__(self, short=False):
        super().__init__()
        self.norm, self.mix, self.short = nn.LayerNorm(6), nn.Linear(6, 6), short
    def forward(self, x):
        h = self.norm(x)
        mixed = self.mix(h)  #!
        if self.short:
            h = x + mixed
        return h
model, x, y = nn.Sequential(Block(), nn.Linear(6, 2)), torch.randn(60, 6), torch.randint(0, 2, (60,))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
"""
        + TRAIN,
    ),
    "a table made by the model": (
        "broadcast in the loss",
        """
class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias, self.out = nn.Linear(6, 1), nn.Linear(6, 4)
    def forward(self, x):
        return self.bias(x) + self.out(x).sum(1)  #!
model, x = Scores(), torch.randn(50, 6)
y = x[:, 0] * 2
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
"""
        + TRAIN.replace("cross_entropy", "mse_loss"),
    ),
    "linear layers behind a table of embeddings": (
        "linear layers in a row",
        """
class Net(nn.Module):
    def __init__(self, act=None):
        super().__init__()
        layers = [nn.Embedding(9, 8)]
        for width in (32, 32, 3):
            layers.append(nn.Linear(8 if len(layers) == 1 else 32, width))  #!
            if act is not None:
                layers.append(act)
        self.layers = nn.Sequential(*layers)
    def forward(self, x):
        return self.layers(x)
model, x, y = Net(), torch.randint(0, 9, (60,)), torch.randint(0, 3, (60,))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
"""
        + TRAIN,
    ),
    "overlap of flattened outputs": (
        "loss of raw outputs",
        """
x = torch.randn(60, 6)
y = (x[:, :4] > 0).float()
model = nn.Linear(6, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
def dice_loss(outputs, target):
    share = outputs.reshape(30, 8)  #!
    both = (share * target.reshape(30, 8)).sum(1)
    return (1 - (2 * both + 1) / (share.square().sum(1) + target.reshape(30, 8).sum(1) + 1)).mean()
for step in range(40):
    optimizer.zero_grad()
    dice_loss(model(x), y).backward()
    optimizer.step()
""",
    ),
}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.filterwarnings("ignore")  # the scripts are faulty on purpose, and PyTorch warns of some
def test_a_run_names_the_line_that_made_it(name: str, tmp_path: Path) -> None:
    title, text = RUNS[name]
    lines = (HEADS["ours"] + text.lstrip("\n")).splitlines()
    marked = {at for at, line in enumerate(lines, start=1) if line.endswith(MARK)}
    found = found_in("\n".join(line.removesuffix(MARK) for line in lines) + "\n", tmp_path)
    (mine,) = [one for one in found if one.rule == title]
    assert marked & set(lines_of(f"{mine.where} {mine.what}".replace(f"{tmp_path}/", ""), "script.py"))


EINSUM = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 6))
    def forward(self, x):
        return torch.softmax(input=torch.einsum("nd,kd->nk", x, self.weight), dim=1).clamp(min=1e-6).log()
model, x, y = Net(), torch.randn(60, 6), torch.randint(0, 3, (60,))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
""" + TRAIN.replace("cross_entropy", "nll_loss")


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="about PyTorch's functions")
@pytest.mark.filterwarnings("ignore")  # the scripts are faulty on purpose, and PyTorch warns of some
def test_a_text_before_the_tensors_does_not_stop_the_run(tmp_path: Path) -> None:
    found = found_in(HEADS["torch"] + EINSUM, tmp_path)
    assert "stopped" not in {one.rule for one in found}
