"""The changes of a script: each kind of fault is mended by one of them, and data and evaluation are left alone."""

from __future__ import annotations

import ast

import pytest

from glassgrad.doctor.repairs.catalogue import CHANGES, edits_of
from glassgrad.doctor.repairs.edits import Text
from glassgrad.doctor.repairs.zones import Zones

SCRIPT = """import copy
import {library} as torch
from {library} import nn, optim
from {library}.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8)] + [nn.Linear(8, 8) for _ in range(2)])
        self.rnn = nn.GRU(8, 8, batch_first=True)
        self.out = nn.Linear(8, 3)
        self.act = nn.ReLU()

    def forward(self, x, mask):
        h = x
        for layer in self.layers:
            h = torch.relu(layer(h))
        h, _ = self.rnn(h)
        weights = torch.softmax(h.masked_fill(mask == 0, -1e9), dim=-1)
        return self.out((weights * h)[:, -1])


def mixed(a, b):
    return 0.5 * a + 0.5 * b


x = torch.randn(200, 5, 8) * 3.0
y = torch.randint(0, 3, (200,))
mask = x > 0
net = Net()
other = nn.Linear(3, 3)
opt = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
sched = optim.lr_scheduler.StepLR(opt, step_size=10, gamma=0.9)
for epoch in range(3):
    net.train()
    for at in range(0, 200, 50):
        out = net(x[at : at + 50], mask[at : at + 50])
        penalty = (out**2).mean()
        loss = F.cross_entropy(out, y[at : at + 50]) + 0.01 * mixed(penalty, penalty)
        opt.zero_grad()
        loss.backward()
        opt.step()
    sched.step()
    net.eval()
    with torch.no_grad():
        hits = (net(x, mask).argmax(1) == y).float().mean()
    print(f"accuracy {{hits:.3f}}")
"""

FAULTS = {
    "the loss's sign": (
        "loss = F.cross_entropy(out, y[at : at + 50]) + 0.01 * mixed(penalty, penalty)",
        "loss = -(F.cross_entropy(out, y[at : at + 50]) + 0.01 * mixed(penalty, penalty))",
    ),
    "a term's sign": ("+ 0.01 * mixed", "- 0.01 * mixed"),
    "a minus too many": ("loss.backward()", "(-loss).backward()"),
    "softmax before the loss": ("F.cross_entropy(out,", "F.cross_entropy(torch.softmax(out, 1),"),
    "softmax by a method": ("F.cross_entropy(out,", "F.cross_entropy(out.softmax(1),"),
    "detached": ("F.cross_entropy(out,", "F.cross_entropy(out.detach(),"),
    "an axis": ("dim=-1", "dim=0"),
    "a place": ("[:, -1])", "[:, 0])"),
    "batch first": ("nn.GRU(8, 8, batch_first=True)", "nn.GRU(8, 8)"),
    "a mask": ("masked_fill(mask == 0,", "masked_fill(mask != 0,"),
    "a rate": ("lr=0.1", "lr=10.0"),
    "a schedule": ("gamma=0.9", "gamma=0.1"),
    "sum for mean": ("(out**2).mean()", "(out**2).sum()"),
    "a factor": ("(out**2).mean()", "(out**2 * 50).mean()"),
    "a divisor": ("(out**2).mean()", "(out**2 / 50).mean()"),
    "step outside": ("        opt.step()\n    sched", "    opt.step()\n    sched"),
    "schedule inside": ("        opt.step()\n    sched.step()\n", "        opt.step()\n        sched.step()\n"),
    "no zero_grad": ("        opt.zero_grad()\n", ""),
    "order": ("opt.zero_grad()\n        loss.backward()\n", "loss.backward()\n        opt.zero_grad()\n"),
    "frozen": ("net = Net()\n", "net = Net()\nnet.requires_grad_(False)\n"),
    "another model's parameters": ("net.parameters()", "net.out.parameters()"),
    "squeeze": ("F.cross_entropy(out,", "F.cross_entropy(out.T,"),
    "shared layers": ("[nn.Linear(8, 8) for _ in range(2)]", "[nn.Linear(8, 8)] * 2"),
}


def script(library: str) -> str:
    return SCRIPT.format(library=library)


def plain(text: str) -> str:
    """The meaning of a text: parentheses and `pass` gone."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not isinstance(one, ast.Pass)] or body
    return ast.dump(tree)


@pytest.mark.parametrize("library", ["glassgrad", "torch"])
@pytest.mark.parametrize("name", [one for one in FAULTS if one != "shared layers"])
def test_a_fault_is_mended_by_a_change(name: str, library: str) -> None:
    right, wrong = FAULTS[name]
    healthy = script(library)
    assert right in healthy
    faulty = healthy.replace(right, wrong)
    assert plain(healthy) in {plain(edit.text) for edit in edits_of(faulty)}


def test_some_are_mended_by_other_words() -> None:
    lines = {edit.new for edit in edits_of(script("glassgrad").replace(*FAULTS["shared layers"]))}
    assert any("[one for _ in range(2) for one in [nn.Linear(8, 8)]]" in line for line in lines)
    lines = {edit.new for edit in edits_of(script("glassgrad"))}
    assert "self.out = nn.Sequential(nn.Linear(8, 3), nn.LeakyReLU(0.2))" in lines
    assert "opt = optim.Adam(net.parameters(), lr=3e-3)" in lines
    assert "opt = optim.SGD([*net.parameters(), *other.parameters()], lr=0.1, momentum=0.9)" in lines


def test_data_and_evaluation_are_left_alone() -> None:
    text = script("glassgrad").splitlines()
    changed = {edit.line for edit in edits_of("\n".join(text))}
    kept = {at for at, line in enumerate(text, start=1) if line.startswith(("x =", "y =")) or "hits" in line}
    assert len(kept) == 4
    assert not changed & kept


PLAYED = """import {library} as torch
from {library} import nn, optim


class Line:
    def reset(self):
        self.at = 3.0
        return self.at

    def step(self, move):
        self.at += 2.0 * move - 1.0
        return self.at, -abs(self.at), abs(self.at) > 5


env = Line()
policy = nn.Linear(1, 2)
opt = optim.Adam(policy.parameters(), lr=0.01)
for episode in range(100):
    state, total = env.reset(), 0.0
    state, reward, done = env.step(1)
    loss = -policy(torch.tensor([state]))[0] * reward
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def test_an_environment_is_left_alone() -> None:
    text = PLAYED.format(library="torch")
    first, last = (text.splitlines().index(one) + 1 for one in ("class Line:", "env = Line()"))
    changed = {one.line for one in edits_of(text)}
    assert changed
    assert not [line for line in changed if first <= line < last]


def test_every_kind_of_change_occurs_and_every_result_is_python() -> None:
    text = script("glassgrad").replace(*FAULTS["shared layers"]) + CUSTOM
    zones = Zones(text)
    for change in CHANGES:
        found = [edit for edit in change(zones) if edit is not None]
        assert found, change.__name__
        for edit in found:
            ast.parse(edit.text)
    texts = [edit.text for edit in edits_of(text)]
    assert len(texts) == len(set(texts))
    assert text not in texts


CUSTOM = """

class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, given):
        return torch.ones(3) * 2
"""


def test_a_sum_in_place_of_a_mean_rescales_wherever_it_stands() -> None:
    text = "import torch\nfrom torch import nn\nmodel = nn.Linear(4, 4)\ndef likeness(one, other):\n"
    text += "    return -torch.cosine_similarity(one, other, dim=-1).mean()\n"
    text += "opt = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    text += "for step in range(9):\n    loss = likeness(model(x), y)\n    loss.backward()\n    opt.step()\n"
    (sums,) = (one for one in edits_of(text) if one.new.endswith("dim=-1).sum()"))
    assert sums.rescales


def test_a_lower_loss_says_nothing_where_a_change_rescales_it() -> None:
    edits = {edit.new: edit for edit in edits_of(script("glassgrad"))}
    assert edits["loss = -(F.cross_entropy(out, y[at : at + 50]) + 0.01 * mixed(penalty, penalty))"].rescales
    assert not edits["opt = optim.SGD(net.parameters(), lr=0.01, momentum=0.9)"].rescales
    assert not edits["self.rnn = nn.GRU(8, 8, batch_first=False)"].rescales


def test_text_is_replaced_by_bytes_not_letters() -> None:
    source = "a = 'äöü'; b = f(x)\n"
    call = next(node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    assert Text(source).of(call) == "f(x)"
    assert Text(source).replaced((call, "ü(y)")) == "a = 'äöü'; b = ü(y)\n"


def test_a_script_without_a_backward_pass_has_few_changes() -> None:
    assert edits_of("print('nothing to train')\n") == []


CHOICES = """
import glassgrad as torch
from glassgrad import nn, optim

net = nn.Linear(4, 2)
opt = optim.SGD(net.parameters(), lr=0.1)
sched = optim.lr_scheduler.StepLR(opt, 10)
for it, (x, y) in enumerate(batches):
    x = nn.functional.dropout(x, 0.1)
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    if it % 4 == 3:
        opt.step()
        opt.zero_grad()
    if y.max() < 3:
        sched.step()
    net.weight.data.zero_()
"""


def test_how_often_limits_schedules_and_noise_are_choices() -> None:
    """A sound script may have or lack them, so a better figure names no fault."""
    edits = edits_of(CHOICES)
    lines = dict(enumerate(CHOICES.splitlines(), start=1))

    def chosen(line: str, means: str) -> set[bool]:
        return {one.tunes for one in edits if line in lines[one.line] and means in one.means}

    assert chosen("it % 4", "condition keeps") == chosen("it % 4", "should not run") == {True}
    assert chosen("clip_grad", "should not be there") == chosen("sched.step", "should not be there") == {True}
    assert chosen("dropout", "dropout is applied") == {True}
    assert chosen("y.max()", "condition keeps") == chosen("data.zero_", "should not be there") == {False}
