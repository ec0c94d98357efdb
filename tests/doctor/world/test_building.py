"""The reported faults to build on: each has a source, a marked cause and a twin; some run here, all by a command."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import doctor_world
from glassgrad.doctor import rules
from glassgrad.doctor.reading.rule import words
from tests.doctor.world import judged
from tests.doctor.world.building import PROGRAMS, WIDER
from tests.doctor.world.program import HEADS, Program

HAS_TORCH = importlib.util.find_spec("torch") is not None
ADDRESS = re.compile(r"https?://[\w.-]+/\S+")
SOME = (
    "heads and positions exchanged by view",
    "softmax over the one unit of a binary classifier",
    "softmax for labels of which several hold",
    "nll_loss of the part labels' raw scores",
    "scores of branches normalised over the batch",
    "a decoder without a causal mask",
    "no attention mask for the padding",
    "the loss of padded positions counted",
    "the state of the last batch for other sentences",
    "the adversarial term turned into a number",
    "F.dropout without telling it the mode",
    "dropout_keep_prob given to nn.Dropout",
    "left in evaluation mode by a validation",
    "a loader that shuffles the targets of a regression",
    "zeroed in each part of a batch",
    "both optimizers made from one network",
)

WANTED = {
    "generator helps its judge",
    "adversarial term detached",
    "test examples in the loss",
}
"""Causes that no rule names yet."""
NEW = (
    "bootstrapped targets that get gradients",
    "the dice coefficient itself is minimised",
    "a checkpoint of which no name fits",
    "sequences of one step for an LSTM",
    "what is to be predicted stands among the columns",
    "a warm-up that begins at nothing and counts epochs",
    "positions added along the batch",
    "the actor's loss reaches the critic",
    "labels shifted by the data and by the loss",
)
"""Those with rules of their own; `make test-slow` runs all of `WIDER`."""


def named(name: str) -> Program:
    (program,) = (one for one in PROGRAMS if one.name == name)
    return program


def test_each_has_a_name_and_a_source_of_its_own() -> None:
    assert len(PROGRAMS) >= 100
    assert [name for name, count in Counter(one.name for one in PROGRAMS).items() if count > 1] == []
    sources = [address for one in PROGRAMS for address in one.source.split()]
    assert len(set(sources)) == len(sources) >= len(PROGRAMS)
    assert all(ADDRESS.fullmatch(address) for address in sources)


@pytest.mark.parametrize("program", PROGRAMS, ids=[one.name for one in PROGRAMS])
def test_a_cause_is_marked_and_the_twin_is_another_program(program: Program) -> None:
    for library in HEADS:
        text, lines = program.faulty(library)
        assert lines
        assert max(lines) <= len(text.splitlines())
        compile(text, program.name, "exec")
        assert compile(program.healthy(library), program.name, "exec") is not None
        assert program.healthy(library) != text


def test_the_findings_that_may_name_a_cause_exist_or_are_wanted() -> None:
    titles = {one.name for one in rules.RUN_RULES} | set(words())
    unknown = {rule for one in PROGRAMS for rule in one.rules} - titles
    assert unknown <= WANTED


def test_the_command_has_the_same_programs() -> None:
    assert {one.name for one in doctor_world.programs(aside=False)} == {one.name for one in PROGRAMS}


def test_the_table_counts_each_kind() -> None:
    kinds = ["cause", "cause", "symptom", "nothing", "trouble"]
    found = [doctor_world.Verdict(kind, "ours", kind, alarms=("x",) * (at == 0)) for at, kind in enumerate(kinds)]
    row = doctor_world.table(found).splitlines()[-1]
    assert [cell.strip() for cell in row.strip("|").split("|")] == [
        "glassgrad", "5", "2", "1", "1", "1", "40%", "60%", "1 of 4",
    ]  # fmt: skip  # a row


@pytest.mark.parametrize("name", (*SOME, *NEW))
@pytest.mark.filterwarnings("ignore")  # the scripts are faulty on purpose, and PyTorch warns of some
def test_the_cause_is_named_and_the_twin_silent(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    found, right, alarms = judged(named(name), "ours", tmp_path)
    assert right, [str(one) for one in found]
    assert not alarms, [str(one) for one in alarms]


@pytest.mark.skipif(not HAS_TORCH, reason="the same scripts for PyTorch")
@pytest.mark.parametrize("name", SOME[:10])
@pytest.mark.filterwarnings("ignore")  # the scripts are faulty on purpose, and PyTorch warns of some
def test_the_cause_is_named_in_pytorch_too(name: str, tmp_path: Path) -> None:
    import torch

    torch.set_num_threads(1)
    for room in (tmp_path / "first", tmp_path / "second"):  # as in test_world.py
        room.mkdir()
        found, right, alarms = judged(named(name), "torch", room)
        if right and not alarms:
            return
    assert right, [str(one) for one in found]
    assert not alarms, [str(one) for one in alarms]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the scripts are faulty on purpose, and PyTorch warns of some
def test_most_causes_of_the_wider_programs_are_named_and_their_twins_silent(tmp_path: Path) -> None:
    missed, alarms = [], []
    for number, program in enumerate(WIDER):
        room = tmp_path / str(number)
        room.mkdir()
        _, right, wrong = judged(program, "ours", room)
        missed += [] if right else [program.name]
        alarms += [program.name] if wrong else []
    assert len(missed) <= len(WIDER) // 4, missed
    assert len(alarms) <= len(WIDER) // 30, alarms
