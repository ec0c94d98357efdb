"""Findings of a run name the line that made what they blame, and no line besides."""

from __future__ import annotations

import pytest

from glassgrad.doctor.facts import Finding
from glassgrad.doctor.reading.origins import traced
from glassgrad.doctor.reading.origins.blamed import ROLES, lines_of
from glassgrad.doctor.reading.program import Program
from glassgrad.doctor.reading.source import Script, parsed
from glassgrad.doctor.rules import RUN_RULES
from tests.doctor.reading.case import HEADS, MARK

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
