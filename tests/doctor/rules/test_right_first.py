"""Losses over candidates whose right one always stands first: all labels are 0, as they should be."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doctor.reading.case import HEADS
from tests.doctor.world import found_in

CONTRAST = """
model = nn.Linear(6, 8)
x = torch.randn(64, 6)
z = x + 0.1 * torch.randn(64, 6)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(60):
    rows = torch.randperm(64)[:24]
    a, b = F.normalize(model(x[rows]), dim=1), F.normalize(model(z[rows]), dim=1)
    near, far = (a * b).sum(1, keepdim=True), a @ F.normalize(model(torch.randn(30, 6)), dim=1).T
    logits = torch.cat([near, far], dim=1) / 0.1
    optimizer.zero_grad()
    F.cross_entropy(logits, torch.zeros(24).long()).backward()
    optimizer.step()
"""


SCORED = """
users, items = nn.Embedding(40, 8), nn.Embedding(60, 8)
judge = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
model = nn.ModuleList([users, items, judge])
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(60):
    rows = torch.randint(0, 40, (24,))
    shown = torch.cat([rows[:, None], torch.randint(0, 60, (24, 5))], dim=1)
    pairs = users(rows)[:, None, :] * items(shown)
    logits = SCORE
    right = torch.zeros(24).long()
    optimizer.zero_grad()
    F.cross_entropy(logits, right).backward()
    optimizer.step()
"""
FIRST = {
    "joined": CONTRAST,
    "products": SCORED.replace("SCORE", "pairs.sum(2)"),
    "a net": SCORED.replace("SCORE", "judge(pairs).reshape(24, 6)"),
}


@pytest.mark.parametrize("name", FIRST)
@pytest.mark.filterwarnings("ignore")  # the scripts are faulty on purpose, and PyTorch warns of some
def test_the_right_pair_may_always_stand_first(name: str, tmp_path: Path) -> None:
    found = found_in(HEADS["ours"] + FIRST[name], tmp_path)
    assert not {"labels alike", "data not shuffled"} & {one.rule for one in found}


@pytest.mark.parametrize("side", ["key(b).T", "key(b).detach().T"])
@pytest.mark.filterwarnings("ignore")  # the scripts are faulty on purpose, and PyTorch warns of some
def test_the_right_pair_of_a_table_of_a_batch_stands_on_the_diagonal(side: str, tmp_path: Path) -> None:
    text = f"""
query, key = nn.Linear(6, 8), nn.Linear(6, 8)
model = nn.ModuleList([query, key])
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x = torch.randn(64, 6)
for step in range(60):
    a = x[torch.randperm(64)[:24]]
    b = a + 0.1 * torch.randn(24, 6)
    scores = F.normalize(query(a), dim=1) @ {side} / 0.1
    right = LABELS
    optimizer.zero_grad()
    F.cross_entropy(scores, right).backward()
    optimizer.step()
"""
    wrong = found_in(HEADS["ours"] + text.replace("LABELS", "torch.zeros(24).long()"), tmp_path)
    assert "24 x 24 pairs" in next(one.what for one in wrong if one.rule == "labels alike")
    sound = found_in(HEADS["ours"] + text.replace("LABELS", "torch.arange(24)"), tmp_path)
    assert "labels alike" not in {one.rule for one in sound}


PLACES = """
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 8))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
places = torch.cat([torch.arange(12, 24), torch.arange(12)])
for step in range(160):
    views = torch.randn(24, 6)
    z = F.normalize(model(views), dim=1)
    near = (z @ z.T / 0.5).masked_fill(torch.eye(24) > 0, -1e9)
    optimizer.zero_grad()
    F.cross_entropy(near, places).backward()
    optimizer.step()
"""


@pytest.mark.filterwarnings("ignore")  # the scripts are faulty on purpose, and PyTorch warns of some
def test_places_in_a_batch_are_no_classes_of_single_rows(tmp_path: Path) -> None:
    found = {one.rule for one in found_in(HEADS["ours"] + PLACES, tmp_path)}
    assert "labels do not belong to the inputs" not in found
