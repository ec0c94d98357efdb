"""Each rule finds its fault in a snippet of either library, and nothing in the healthy one."""

from __future__ import annotations

import pytest

from glassgrad.doctor.reading.about import OF_COMMENTS, RULES
from glassgrad.doctor.reading.lint import names, remarks_of
from glassgrad.doctor.reading.program import Program
from glassgrad.doctor.reading.rule import words
from glassgrad.doctor.reading.source import Script, parsed
from glassgrad.doctor.reading.suspects import STRONG, places
from tests.doctor.reading import CASES
from tests.doctor.reading.case import HEADS
from tests.doctor.reading.sound import SOUND
from tests.doctor.world import PROGRAMS, known, missed, variants
from tests.doctor.world.practices import PRACTICES
from tests.doctor.world.unusual import UNUSUAL

BOTH = [(case, library) for case in CASES for library in HEADS if case.only in {"", library}]
IDS = [f"{library}-{case.title}" for case, library in BOTH]


def found(text: str) -> list[tuple[str, int]]:
    script = parsed("script.py", text)
    assert isinstance(script, Script), script
    return [(one.title, one.line) for one in remarks_of(script, names())]


@pytest.mark.parametrize(("case", "library"), BOTH, ids=IDS)
def test_a_fault_is_found_at_its_line_and_nothing_else(case, library) -> None:
    text, lines = case.faulty(library)
    assert lines
    assert found(text) == [(case.title, line) for line in lines]


@pytest.mark.parametrize(("case", "library"), BOTH, ids=IDS)
def test_the_healthy_snippet_is_silent(case, library) -> None:
    assert found(case.healthy(library)) == []


def test_every_rule_has_a_case_and_words() -> None:
    titles = [rule.title for rule in RULES]
    assert len(titles) == len(set(titles))
    assert {case.title for case in CASES} == set(titles)
    assert set(words()) == {*titles, *OF_COMMENTS}


@pytest.mark.parametrize("title", words())
def test_the_words_are_whole(title: str) -> None:
    said = words()[title]
    assert said.severity in {"error", "warning", "info"}
    assert said.advice.endswith((".", "?"))
    assert not said.what.endswith(".")


def test_reading_finds_a_part_of_the_programs_from_the_world() -> None:
    """The number of docs/doctor.md."""
    programs = (*known.PROGRAMS, *missed.PROGRAMS, *variants.PROGRAMS)
    assert sum(bool(found(program.faulty("torch")[0])) for program in programs) >= 35


# --- false alarms ---


@pytest.mark.parametrize("library", ["torch", "ours"])
def test_the_healthy_programs_from_the_world_are_silent(library: str) -> None:
    alarms = {program.name: told for program in PROGRAMS if (told := found(program.healthy(library)))}
    assert len(PROGRAMS) > 50
    assert alarms == {}


def test_unusual_trainings_are_silent() -> None:
    trainings = UNUSUAL | PRACTICES
    assert {name: told for name, text in trainings.items() if (told := found(HEADS["torch"] + text))} == {}


@pytest.mark.parametrize("name", SOUND)
def test_habits_of_sound_scripts_are_no_faults(name: str) -> None:
    script = parsed("script.py", HEADS["torch"] + SOUND[name])
    assert isinstance(script, Script), script
    assert [one for one in remarks_of(script, names()) if one.severity != "info"] == []
    looks = places(Program(script.tree))
    assert [(one.title, lines) for one, lines, _ in looks if one.words.weight >= STRONG] == []


def test_a_script_of_other_libraries_is_not_judged() -> None:
    assert found("import random\nfor x in xs:\n    random.seed(0)\n    loss.backward\n") == []


OF_ALL_KINDS = """
class Free:
    model = [nn.Linear(2, 2)]
    async def f(self, *a, b=1, **c):
        async for x in y:
            await x
        async with a as b:
            pass
        return [*a, *(x async for x in y)]
match x:
    case [1, *rest] if (n := 3):
        del rest
    case {"a": 1, **more}:
        pass
try:
    pass
except* ValueError as error:
    raise error from None
else:
    pass
finally:
    pass
lambda: (yield)
x: int
(a, (b, *c)) = 1, (2, 3)
for i, (j, k) in enumerate([]):
    i += j
else:
    pass
self.x = x @ y if x else ~y
x[1:2, ..., None] = f"{x!r:>{3}}"
global_loss = nn.CrossEntropyLoss()(*pair)
optimizer.step(lambda: loss.backward())
"""


def test_every_kind_of_syntax_is_read() -> None:
    assert found(HEADS["torch"] + OF_ALL_KINDS) == []


@pytest.mark.parametrize(
    "text",
    [
        "x = x\ny = x\nloss = F.cross_entropy(x, y)\nloss.backward()",
        "def f(x):\n    return f(x)\nfor x in xs:\n    f(x).backward()\n    opt.step(f)\n    opt.zero_grad()",
        "class A(B):\n    pass\nclass B(A):\n    pass\nmodel = B()\nloss = F.mse_loss(model(x), y)",
        "class A(nn.Module):\n    def forward(self, x):\n        return self.forward(x)\nF.nll_loss(A()(x), y)",
        "a = b\nb = a\nF.cross_entropy(a(x), b)",
    ],
)
def test_what_refers_to_itself_ends(text: str) -> None:
    assert all(title in words() for title, _ in found(HEADS["torch"] + text))
