"""The runner of public programs: the code that it reads from a notebook, its comparisons, and equal draws."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import public_programs
from tools.public import compare, data, notebook
from tools.public_programs import Program, Runner
from tools.sources import ROOT

LIST = ROOT / "tools" / "public" / "programs.jsonl"
PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split
from torchvision import datasets, transforms

digits = datasets.MNIST("data", train=False, download=True, transform=transforms.ToTensor())
part, _ = random_split(digits, [48, len(digits) - 48])
model = nn.Sequential(nn.Flatten(), nn.Linear(784, 8), nn.Dropout(0.2), nn.ReLU(), nn.Linear(8, 10))
nn.init.xavier_normal_(model[4].weight)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(4):
    for pictures, labels in DataLoader(part, batch_size=16, shuffle=True):
        chosen = torch.distributions.Categorical(logits=model(pictures)).sample()
        noisy = pictures + 0.1 * torch.randn_like(pictures)
        loss = nn.functional.cross_entropy(model(noisy), labels) + 0.01 * chosen.float().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.2f}")
"""


def programs() -> list[Program]:
    return public_programs.programs(LIST)


def test_the_list_names_each_program_once_at_a_commit() -> None:
    names = [one.name for one in programs()]
    assert len(set(names)) == len(names) >= 150
    assert len({one.repository for one in programs()}) >= 60
    assert all(re.fullmatch("[0-9a-f]{40}", one.commit) for one in programs())
    assert {kind for one in programs() for kind in one.files.values()} <= set(data.MAKERS)


def test_a_notebook_is_its_cells_without_the_lines_for_its_host(tmp_path: Path) -> None:
    cells = [
        "%matplotlib inline\nimport math",
        "!pip install x\nfiles = !ls",
        "%%bash\nls",
        "if True:\n    !ls\nmath.pi?",
    ]
    found = {"cells": [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]}
    found["cells"].append({"cell_type": "markdown", "source": ["not code"]})
    file = tmp_path / "one.ipynb"
    file.write_text(json.dumps(found), encoding="utf-8")
    text = notebook.program(file)
    compile(text, "one", "exec")
    assert "import math" in text
    assert "files = []" in text
    assert not any(word in text for word in ("%%bash", "not code", "pi?"))


@pytest.mark.parametrize(
    ("ours", "verdict", "agreed"),
    [
        ([1.0, 0.5, 0.25], "same", 3),
        ([1.0, 0.5], "same", 2),
        ([1.0, 0.6, 0.24], "near", 1),
        ([1.0, 0.6, 0.9], "otherwise", 1),
        ([float("nan"), 0.5, 0.25], "near", 0),
        ([], "none", 0),
    ],
)
def test_curves_agree_up_to_the_first_step_that_differs(ours: list[float], verdict: str, agreed: int) -> None:
    found = compare.curves(ours, [1.0, 0.5, 0.25])
    assert (found.verdict, found.agreed) == (verdict, agreed)


def test_texts_differ_by_words_and_not_by_numbers_or_times() -> None:
    assert compare.texts("loss 0.25\n3 s elapsed", "loss 0.26\n2.5 s elapsed") is None
    assert compare.texts("loss tensor(0.25)", "loss 0.25") == ("loss tensor(0.25)", "loss 0.25")


def test_a_ratio_is_of_the_whole_or_of_common_steps() -> None:
    whole = {"end": "finished", "seconds": 2.0, "times": []}
    assert compare.ratio(whole, whole | {"seconds": 4.0}) == (0.5, "whole")
    cut = {"end": "seconds", "seconds": 9.0, "times": [0.0, 1.0, 2.0, 3.0, 4.0]}
    assert compare.ratio(cut, cut | {"times": [0.0, 2.0, 4.0, 6.0, 8.0]}) == (0.5, "steps")
    assert compare.ratio(cut, cut | {"times": [0.0]}) is None


def test_episodes_are_timed_where_both_libraries_do_the_same() -> None:
    theirs = {"end": "steps", "losses": [1.0, 0.5, 0.2, 0.1], "times": [0.0, 2.0, 4.0, 6.0]}
    ours = theirs | {"times": [0.0, 1.0, 2.0, 3.0]}
    assert compare.of_equal_draws(ours, theirs) == "0.50 equal"
    assert compare.of_equal_draws(ours | {"losses": [1.0, 0.9, 0.8, 0.7]}, theirs) == ""


def test_papers_are_those_of_the_citations(tmp_path: Path) -> None:
    (tmp_path / "cora.cites").write_text("35\t1033\n35\t887\n", encoding="utf-8")
    data.cora(tmp_path / "cora.content")
    lines = [line.split("\t") for line in (tmp_path / "cora.content").read_text(encoding="utf-8").splitlines()]
    assert [line[0] for line in lines] == ["1033", "35", "887"]
    assert {len(line) for line in lines} == {1435}


def test_a_page_has_a_row_for_each_program_of_the_list(tmp_path: Path) -> None:
    given = Program("someone/something", "0" * 40, "train.py", "regression")
    row = dict.fromkeys(public_programs.COLUMNS, "") | {"program": given.name, "glassgrad": "runs, 9 steps"}
    public_programs.written(tmp_path, {given.name: row | {"curve": "parts 5/9 (first 1e-08)", "ratio": "0.50 whole"}})
    other = Program("someone/something", "0" * 40, "other.py", "regression")  # has no result
    (tmp_path / "list").write_text(f"{json.dumps(vars(given))}\n{json.dumps(vars(other))}\n", encoding="utf-8")
    *_, rule, line = public_programs.page(tmp_path / "list", tmp_path).splitlines()
    assert rule == "|---|---|---|---|---|"
    assert line == "| someone/something, `train.py` | regression | runs | parts 5/9 | 0.50 whole |"


def runs_alone() -> bool:
    return bool(shutil.which("unshare")) and subprocess.run(["unshare", "-n", "true"], check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not runs_alone(), reason="a process without a network cannot be made here")
def test_a_program_runs_under_both_and_gives_the_same_losses(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is the other library")
    pytest.importorskip("sklearn", reason="the digits of the stand-in are its")
    folder = tmp_path / "checkouts" / "someone+something"
    folder.mkdir(parents=True)
    (folder / "train.py").write_text(PROGRAM, encoding="utf-8")
    runner = Runner(folder.parent, tmp_path / "results", sys.executable, [], ROOT / "src", tmp_path, before=())
    servers = [runner.serving(library) for library in public_programs.LIBRARIES]
    try:
        row = runner.whole(Program("someone/something", "0" * 40, "train.py", "basics"), plain=False)
    finally:
        for server in servers:
            server.terminate()
            server.wait()
    assert (row["pytorch"], row["glassgrad"], row["class"]) == ("runs, 12 steps", "runs, 12 steps", "")
    assert (row["curve"], row["text"]) == ("same 12/12", "")
