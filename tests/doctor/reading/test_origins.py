"""Findings of a run name the line that made what they blame, and no line besides."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from glassgrad.doctor.facts import Finding
from glassgrad.doctor.reading.origins import traced
from glassgrad.doctor.reading.origins.blamed import ROLES, lines_of
from glassgrad.doctor.reading.program import Program
from glassgrad.doctor.reading.source import Script, parsed
from glassgrad.doctor.rules import RUN_RULES
from tests.doctor.reading.case import HEADS, MARK
from tests.doctor.world import found_in

USE = "  #?"
"""Ends the line where the run has seen the fault."""
TRAIN = """
for step in range(40):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
"""


def told(title: str, text: str, what: str = "") -> tuple[Finding, set[int]]:
    """Return what becomes of a finding at the line of `USE`, and the marked lines."""
    lines = (HEADS["ours"] + text.lstrip("\n")).splitlines()
    marked = {at for at, line in enumerate(lines, start=1) if line.endswith(MARK)}
    use = next(at for at, line in enumerate(lines, start=1) if line.endswith(USE))
    script = parsed("script.py", "\n".join(line.removesuffix(MARK).removesuffix(USE) for line in lines))
    assert isinstance(script, Script)
    seen = Finding(title, "error", what.format(f"script.py:{use}"), "", f"script.py:{use}")
    (found,) = traced(Program(script.tree), "script.py", [seen])
    assert use in lines_of(f"{found.where} {found.what}", "script.py")
    return found, marked | {use}


MODEL = """
class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = {made}
        self.masked = nn.MultiheadAttention(8, 2)
    def forward(self, x, mask):
        x = {called}
        return self.masked(x, x, x, attn_mask=mask)
model = Writer()
loss = F.cross_entropy(model(x, future), y)  #?
"""
BLOCK = """
class Block(nn.Module):
    def forward(self, x, mask=None):
        return x if mask is None else x + mask
"""
CASES = {
    "an encoder without a mask": (
        "targets seen by the model",
        MODEL.format(made="nn.TransformerEncoder(layer, 2)", called="self.block(x)  #!"),
    ),
    "a block of the script that is given no mask": (
        "targets seen by the model",
        BLOCK + MODEL.format(made="Block()", called="self.block(x)  #!"),
    ),
    "a block with a mask beside attention without one": (
        "targets seen by the model",
        BLOCK + MODEL.format(made="Block()", called="F.scaled_dot_product_attention(self.block(x, mask), x, x)  #!"),
    ),
    "a layer that reads backwards": (
        "targets seen by the model",
        MODEL.format(made="nn.GRU(8, 8, bidirectional=True)  #!", called="self.block(x)[0]"),
    ),
    "times before examples": (
        "examples mixed",
        MODEL.format(made="nn.GRU(8, 8, batch_first=True)  #!", called="self.block(x.permute(2, 0, 1))[0]"),
    ),
    "examples before times": (
        "examples mixed",
        MODEL.format(made="nn.GRU(8, 8, batch_first=True)", called="self.block(x.permute(0, 2, 1))[0]"),
    ),
    "positions of examples": (
        "examples mixed",
        MODEL.format(made="nn.Embedding(20, 8)", called="x + self.block(torch.arange(len(x))[None])  #!"),
    ),
    "targets from a function, through casts": (
        "labels alike",
        """
def read(path):
    rows = load(path)
    return torch.tensor(rows), rows[:, 0] // 10  #!
x, y = read("a.csv")
labels = torch.as_tensor(y).long()
for step in range(3):
    loss = F.cross_entropy(model(x), labels)  #?
""",
    ),
    "targets of a data set": (
        "targets unnormalised",
        """
class Prices(torch.utils.data.Dataset):
    def __init__(self, table):
        self.x, self.y = table[:, :3], 1000 * table[:, 3]  #!
    def __len__(self):
        return len(self.x)
    def __getitem__(self, k):
        return self.x[k], self.y[k]
for x, y in torch.utils.data.DataLoader(Prices(torch.randn(50, 4)), batch_size=5):
    loss = F.mse_loss(model(x), y)  #?
""",
    ),
    "the target of a difference written out": (
        "targets unnormalised",
        """
model = nn.Linear(3, 1)
def price(x):
    return 900 * x.sum(1, keepdim=True)  #!
x = torch.randn(9, 3)
y = price(x)
loss = (model(x) - y).pow(2).mean()  #?
""",
    ),
    "a rate from a settings class": (
        "learning rate out of the usual",
        """
class Settings:
    width: int = 8
    lr: float = 30.0  #!
settings = Settings()
model = nn.Linear(2, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=settings.lr)  #?
""",
    ),
    "a rate from the command line": (
        "learning rate out of the usual",
        """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=30.0)  #!
args = parser.parse_args()
model = nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), args.lr)  #?
""",
    ),
    "a schedule": (
        "rate decays to nothing",
        """
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)  #!
for x, y in batches:
    schedule.step()  #?
""",
    ),
    "weights of classes": (
        "class weights favour the frequent",
        """
def weigh(counts):
    return counts / counts.sum()  #!
loss_of = nn.CrossEntropyLoss(weight=weigh(counts))
loss = loss_of(model(x), y)  #?
""",
    ),
    "weights of classes that are scaled together": (
        "class weights favour the frequent",
        """
def weigh(counts):
    weights = counts ** 0.5  #!
    return weights / weights.sum() * 10  #!
loss = F.cross_entropy(model(x), y, weight=weigh(counts))  #?
""",
    ),
    "targets that 0 and 1 do not scale": (
        "targets unnormalised",
        """
scales = {"mean": 0.0, "std": 1.0}  #!
y = (prices - scales["mean"]) / scales["std"]  #!
loss = F.mse_loss(model(x), y)  #?
""",
    ),
    "a loader": (
        "data not shuffled",
        """
loader = torch.utils.data.DataLoader(data, batch_size=20)  #!
model = nn.Linear(2, 2)
for x, y in loader:
    loss = F.cross_entropy(model(x), y)  #?
""",
    ),
    "outputs bounded by a cosine": (
        "outputs bounded before cross entropy",
        """
def similar(a, b):
    return F.normalize(a, dim=1) @ F.normalize(b, dim=1).T  #!
logits = similar(model(x), model(z))
loss = F.cross_entropy(logits, torch.arange(8))  #?
""",
    ),
    "a step below a condition": (
        "no step",
        """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for number, (x, y) in enumerate(batches):
    F.cross_entropy(model(x), y).backward()  #?
    if number > 10_000:  #!
        optimizer.step()  #!
""",
    ),
    "a maximum behind a loss of 0": (
        "loss is 0",
        """
def triplet(near, table, margin=0.5):
    others = table.clone()
    others.diagonal().fill_(float("inf"))  #!
    far = others.max(1).values  #!
    return (near - far + margin).relu().mean()  #?
""",
    ),
    "a loss cut off by a helper": (
        "loss detached",
        """
model = nn.Linear(2, 2)
def error(x, y):
    return torch.tensor(F.cross_entropy(model(x), y).item(), requires_grad=True)  #!
loss = error(x, y)
loss.backward()  #?
""",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_line_that_made_it_is_named(name: str) -> None:
    found, lines = told(*CASES[name])
    assert set(lines_of(f"{found.where} {found.what}", "script.py")) == lines


def test_a_layer_is_named_where_it_is_made() -> None:
    text = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out, self.act = nn.Linear(4, 3), nn.Softmax(dim=1)  #!
    def forward(self, x):
        return self.act(self.out(x))  #?
"""
    found, lines = told("softmax twice", text, "the output is a probability already (softmax at {})")
    assert set(lines_of(found.what, "script.py")) == lines
    assert found.where == f"script.py:{min(lines)}"


@pytest.mark.parametrize("title", ["learns less than a probe", "softmax twice"])
def test_what_the_source_leaves_open_stays_as_it_is(title: str) -> None:
    found, lines = told(title, "loss = F.cross_entropy(model(x), y)  #?\n", "seen at {}")
    assert set(lines_of(f"{found.where} {found.what}", "script.py")) == lines


def test_three_origins_are_none() -> None:
    text = """
def labels(kind):
    if kind == 1:
        return one // 10
    if kind == 2:
        return two // 10
    return three // 10
y = labels(kind)
loss = F.cross_entropy(model(x), y)  #?
"""
    found, lines = told("labels alike", text)
    assert set(lines_of(f"{found.where} {found.what}", "script.py")) == lines


def test_the_table_names_findings_of_runs() -> None:
    also = {"schedule stepped for each batch", "targets of 0 instead of -1", "schedule goes round"}  # of the reading
    assert set(ROLES) - also <= {rule.name for rule in RUN_RULES}


# --- runs, whose calls tell which of several ways a value came ---

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
