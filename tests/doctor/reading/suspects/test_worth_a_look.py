"""Where suspects are shown: behind the first symptom, if nothing names a cause."""

from __future__ import annotations

from pathlib import Path

import pytest

from glassgrad.doctor.facts import Finding
from glassgrad.doctor.reading.beside import joined
from glassgrad.doctor.reading.program import Program
from glassgrad.doctor.reading.source import Script, parsed
from glassgrad.doctor.reading.suspects import MOST, STRONG, TITLE, places, worth_a_look
from glassgrad.doctor.reading.suspects.form import suspicions
from glassgrad.doctor.repairs.edits import Edit
from glassgrad.doctor.repairs.figures import Figure
from glassgrad.doctor.repairs.report import TITLE as HELPS
from glassgrad.doctor.repairs.report import with_repairs
from glassgrad.doctor.repairs.search import Repair, Search
from glassgrad.doctor.script import Watched
from tests.doctor.reading.case import HEADS

TEXT = """
import torch

def images(x):
    return x.view(len(x), 3, 8, 8)

def others(x):
    return x.view(len(x), 8, 8, 3)
"""
SYMPTOM = Finding("loss does not fall", "warning", "the loss does not fall", "", "train.py:40")
CAUSE = Finding("learning rate out of the usual", "warning", "the rate is 10", "", "train.py:41")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(TEXT)
    return path


def program() -> Program:
    read = parsed("train.py", TEXT)
    assert isinstance(read, Script)
    return Program(read.tree)


def rules_with(script: Path, *findings: Finding) -> list[str]:
    watched, read = joined(str(script), [Watched("Net", "train.py:1", 100, 10, findings)])
    assert read == []
    return [one.rule for one in watched[0].findings]


def test_they_stand_behind_the_first_symptom(script: Path) -> None:
    assert rules_with(script, SYMPTOM, Finding("dead units", "warning", "", "")) == [
        "dead units",
        TITLE,
        "loss does not fall",
    ]


def test_they_are_not_shown_beside_a_cause(script: Path) -> None:
    assert rules_with(script, CAUSE, SYMPTOM) == [CAUSE.rule, SYMPTOM.rule]


def test_without_a_symptom_only_the_strong_are_shown(script: Path) -> None:
    heaviest = max(one.words.weight for one, _, _ in places(program()))
    assert heaviest < STRONG
    assert rules_with(script) == []


def test_one_finding_of_information_holds_at_most_two_kinds() -> None:
    (found,) = worth_a_look(program(), "train.py", [SYMPTOM])
    assert (found.rule, found.severity, found.where) == (TITLE, "info", "train.py:5")
    assert found.what.startswith("train.py:5: x.view(len(x), 3, 8, 8)")
    assert found.what.count("train.py:") <= MOST
    assert found.advice


def test_a_line_that_a_finding_names_is_not_shown_again() -> None:
    known = Finding("vanishing gradient", "warning", "seen at train.py:5", "")
    assert all(one.where != "train.py:5" for one in worth_a_look(program(), "train.py", [known]))


def test_the_heaviest_come_first() -> None:
    weights = [one.words.weight for one, _, _ in places(program())]
    assert weights == sorted(weights, reverse=True)
    assert {one.title for one, _, _ in places(program())} <= set(suspicions())


def test_they_follow_a_change_that_helps(script: Path) -> None:
    look = Finding(TITLE, "info", "train.py:5: ...", "")
    edit = Edit(7, "y = -x", TEXT, "a minus is missing")
    repair = Repair(edit, "y = x", Figure("loss", 1.0, higher=False, held_out=True), (0.1, 0.1), 2.0)
    found = with_repairs((SYMPTOM, look), Search((repair,), 1, 1), script)
    assert [one.rule for one in found] == [HELPS, TITLE, SYMPTOM.rule]


SOUND = {
    "a copy that is adapted, measured and left": """
def adapted(model, x, y):
    copied = copy.deepcopy(model)
    optimizer = torch.optim.SGD(copied.parameters())
    F.mse_loss(copied(x), y).backward()
    optimizer.step()
    with torch.no_grad():
        return F.mse_loss(copied(x), y).item()
""",
    "gradients of a copy, carried over to the model": """
def learn(model, x, y):
    outer = torch.optim.Adam(model.parameters())
    fast = copy.deepcopy(model)
    inner = torch.optim.SGD(fast.parameters())
    inner.zero_grad()
    F.mse_loss(fast(x), y).backward()
    inner.step()
    for one, other in zip(model.parameters(), fast.parameters()):
        one.grad = other.grad
    outer.step()
""",
    "a mean of the losses of several tasks": """
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters())
for tasks in batches:
    total = 0.0
    for x, y in tasks:
        total = total + F.mse_loss(model(x), y)
    loss = total / len(tasks)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "a flow that draws forwards and measures backwards": """
class Flow(nn.Module):
    def log_prob(self, x):
        log_det = 0
        for step in reversed(self.steps):
            x, one = step.inverse(x)
            log_det = log_det + one
        return self.base.log_prob(x) + log_det
    def sample(self, z):
        for step in self.steps:
            z, _ = step(z)
        return z
""",
    "a risk set from the latest time on, or summed from the end": """
def cox_loss(risk, time, event):
    order = torch.argsort(time, descending=True)
    return -((risk[order] - risk[order].logcumsumexp(0)) * event[order]).mean()
def other_cox_loss(risk, time, event):
    order = torch.argsort(time)
    total = risk[order].exp().flip(0).cumsum(0).flip(0).log()
    return -((risk[order] - total) * event[order]).mean()
""",
    "states of models that a loop makes": """
states = []
for client in clients:
    net = copy.deepcopy(model)
    states.append(net.state_dict())
states += [client.model.state_dict() for client in clients]
""",
    "deviations of weights that begin equal, and the edges of a box": """
class Bayesian(nn.Module):
    def __init__(self):
        super().__init__()
        self.w_rho = nn.Parameter(torch.full((8, 4), -4.0))
    def box(self, y0):
        rows = torch.arange(8)
        return (rows >= y0) & (rows < y0 + 4)
""",
}


@pytest.mark.parametrize("name", SOUND)
def test_sound_lines_are_not_worth_a_look(name: str) -> None:
    read = parsed("train.py", HEADS["torch"] + "import copy\n" + SOUND[name])
    assert isinstance(read, Script)
    shown = [one.title for one, _, _ in places(Program(read.tree)) if one.words.weight >= STRONG]
    assert shown == []
