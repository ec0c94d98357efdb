"""A script with hundreds of trainings: the first of each kind are watched, and nothing of the others is held."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from glassgrad.doctor import watch
from glassgrad.doctor.facts import Finding
from glassgrad.doctor.reports.script_wording import lines
from glassgrad.doctor.script import Watched, run_script
from glassgrad.engine.mode import MODE

LIBRARIES = [
    "glassgrad",
    pytest.param(
        "torch",
        marks=pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="the script imports torch"),
    ),
]
FOLDS = """
import {library} as lib
from {library} import nn
lib.manual_seed(0)
x = lib.randn(24, 3)
y = lib.randn(24, 1)
def made(model):
    return lib.optim.SGD(model.parameters(), lr=0.01)
first, second = nn.Linear(3, 1), nn.Linear(3, 1)
both = made(first), made(second)
for fold in range(40):
    model = nn.Linear(3, 1)
    optimizer = lib.optim.Adam(model.parameters(), lr=0.01)
    for step in range(3):
        for each in (*both, optimizer):
            each.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        (((first(x) - y) ** 2).mean() + ((second(x) - y) ** 2).mean()).backward()
        for each in (*both, optimizer):
            each.step()
"""


@pytest.mark.parametrize("library", LIBRARIES)
def test_trainings_made_at_one_line_are_watched_a_few_times(library: str, tmp_path: Path) -> None:
    path = tmp_path / "folds.py"
    path.write_text(FOLDS.format(library=library), encoding="utf-8")
    witness = MODE.witness
    watched, ended = run_script(path)
    assert ended
    assert [one.steps for one in watched] == [120, 120, 3, 3, 3, 3]
    assert [one.made.rpartition(":")[2] for one in watched[2:]] == ["13"] * 4
    assert MODE.witness is witness
    told = "\n".join(lines(watched, [None] * len(watched), ()))
    assert told.count("\nLinear, optimizer made at") == 2
    assert "3 more watched of Linear, optimizer made at" in told


def test_alike_trainings_with_findings_of_their_own_are_shown() -> None:
    plain = Watched("Linear", "a.py:3", 5, 5, ())
    found = Watched("Linear", "a.py:3", 5, 5, (Finding("loss rises", "error", "it rises", "", "a.py:9"),))
    told = "\n".join(lines([plain, found, plain, found], [None] * 4, ()))
    assert told.count("\nLinear, optimizer made at a.py:3") == 2
    assert "2 more watched of Linear, optimizer made at a.py:3: no other finding" in told


def test_a_step_of_another_optimizer_is_no_op_of_the_loss() -> None:
    torch = pytest.importorskip("torch", reason="our steps are no ops")
    maker, critic = torch.nn.Linear(4, 3), torch.nn.Linear(3, 1)
    optimizers = [torch.optim.Adam(one.parameters(), lr=0.01) for one in (maker, critic)]
    with watch(maker, optimizers[0], report=False) as seen:
        for _ in range(4):
            for optimizer, sign in zip(reversed(optimizers), (1, -1), strict=True):
                optimizer.zero_grad()
                (sign * critic(maker(torch.ones(5, 4)))).mean().backward()
                optimizer.step()
    graph = seen.run.graph
    assert graph is not None
    assert [op.name for op in graph.ops] == ["linear", "linear", "multiply", "mean"]
    assert [op.name for op in graph.of_loss()] == ["multiply", "mean"]


PHASES = """
import {library} as lib
from {library} import nn
lib.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.old, self.new = nn.Linear(3, 8), nn.Linear(8, 1), nn.Linear(8, 1)
    def forward(self, x, new):
        h = lib.tanh(self.body(x))
        return self.new(h) if new else self.old(h)
def fit(model, parameters, new):
    optimizer = lib.optim.Adam(parameters, lr=0.01)
    for step in range(30):
        optimizer.zero_grad()
        ((model(x, new) - y) ** 2).mean().backward()
        optimizer.step()
x = lib.randn(24, 3)
y = lib.randn(24, 1)
model = Net()
fit(model, [*model.body.parameters(), *model.old.parameters()], False)
{then}
"""


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_head_may_have_its_own_training_later(library: str, tmp_path: Path) -> None:
    path = tmp_path / "phases.py"
    alarms = {"parameters without an optimizer", "no gradient"}
    for then, expected in (("fit(model, model.new.parameters(), True)", set()), ("", alarms)):
        path.write_text(PHASES.format(library=library, then=then), encoding="utf-8")
        watched, _ = run_script(path)
        assert {one.rule for one in watched[0].findings} & alarms == expected
