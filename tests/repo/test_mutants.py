"""The pieces of `make mutants` name existing files, and the lists of mutants match the source."""

from __future__ import annotations

import fnmatch
import gc
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from glassgrad.ops import core
from tools.mutants import left, making, patching, pieces, reloading, rules, running
from tools.mutants.pieces import PACKAGE, PIECES, ROOT


def source_of(file: str) -> str:
    return (ROOT / PACKAGE / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PIECES)
def test_a_piece_names_what_is_there(name: str) -> None:
    piece = PIECES[name]
    base = ROOT / PACKAGE
    assert all(any(base.glob(pattern)) for pattern in piece.sources)
    tests = [one for one in piece.tests if one.endswith(".py")]
    assert tests
    assert all((ROOT / one).is_file() for one in tests)
    assert making.planted(name), "a mistake that shows that the tests of the piece run"


def test_every_planted_mistake_is_in_a_file_of_its_piece_and_is_python() -> None:
    entries = tomllib.loads(making.PLANTED.read_text(encoding="utf-8"))["mutant"]
    assert {entry["piece"] for entry in entries} == set(PIECES)
    for name, piece in PIECES.items():
        for mutant in making.planted(name):
            assert mutant.file in piece.files()
            assert mutant.text != mutant.source
            compile(mutant.text, mutant.file, "exec")


def test_every_explanation_fits_a_line_and_says_why() -> None:
    for entry in making.explained():
        assert set(entry) - {"below"} == {"file", "was", "becomes", "reason"}
        assert fits_its_file(entry), f"nothing to explain: {entry}"
        assert entry["was"] != entry["becomes"]
        assert len(entry["reason"]) > 20


def test_every_survivor_that_is_left_fits_a_line_and_is_not_explained() -> None:
    explained = {making.identity(entry) for entry in making.explained()}
    files = {file for piece in PIECES.values() for file in piece.files()}
    for entry in left.read():
        assert set(entry) - {"below"} == {"file", "was", "becomes"}
        assert entry["file"] in files
        assert fits_its_file(entry), f"take out what is left of a line that is no more: {entry}"
        assert making.identity(entry) not in explained


def fits_its_file(entry: dict[str, str]) -> bool:
    place = f"{entry.get('below', '')} {entry['was']}".strip()
    return place in " ".join(source_of(entry["file"]).split())


def test_what_is_left_is_kept_until_it_is_tried_again(tmp_path: Path) -> None:
    source = 'a = "1"\nb = 1\nc = 2\nb = 1\n'
    texts = ('a = "2"\nb = 1\nc = 2\nb = 1\n', 'a = "1"\nb = 0\nc = 2\nb = 1\n', 'a = "1"\nb = 1\nc = 2\nb = 0\n')
    one, two, three = made = [making.Mutant("ops/sort.py", source, text) for text in texts]
    path, other = tmp_path / "left.toml", {"file": "ops/conv.py", "was": "x", "becomes": "y"}
    left.write([other], path)
    left.keep(made, made, [three, one], path)
    entries = [making.identity(entry)[1:] for entry in left.read(path)]
    assert entries == [("x", "y", None), ('a = "1"', 'a = "2"', None), ("b = 1", "b = 0", "c = 2")]
    left.keep(made, [two], [two], path)
    assert len(left.read(path)) == 4
    left.keep(made, [one, two, three], [], path)
    assert left.read(path) == [other]
    left.keep(made, [one], [one], path)
    left.keep(made[1:], [], [], path)
    assert left.read(path) == [other], "a line that changed has left"


def test_which_mutants_are_made() -> None:
    pytest.importorskip("cosmic_ray", reason="only `make mutants` installs what makes mutants")
    found = making.mutants_of("engine/walks/plain_walk.py")
    made = {mutant.lines() for mutant in found}
    assert ("heappush(heap, (-parent.seq, parent))", "pass") in made
    assert ("return found", "return None") in made
    assert ("elif node.seq < MUTATIONS.latest:", "elif node.seq <= MUTATIONS.latest:") in made
    assert ("if parent is None or c is None:", "if parent is None and c is None:") in made
    assert not any("not node.seq <" in becomes for _, becomes in made), "`>` in place of `<` says as much"
    assert found[0].source == source_of("engine/walks/plain_walk.py")
    table = {mutant.lines() for mutant in making.mutants_of("ops/sparse_products.py")}
    assert table
    samples = [was for was, _ in table if ".samples = " in was or ".describe(" in was or was.startswith("S(")]
    assert not samples, "what tests are made of is no code to test"


SOURCE = """
FACTOR = 2
def scaled(x, by=3):
    y = x * FACTOR
    if y > 4:
        y = y + by
    return y
class Thing:
    kind = 1
    def half(self, x): return x / 2
def maker(step):
    def inner(x):
        return x + step
    return inner
add_one = maker(1)
table = [lambda x: x + 1, lambda x: x + 2]
"""


@pytest.fixture
def module(tmp_path: Path) -> SimpleNamespace:
    path = tmp_path / "changed.py"
    space: dict[str, object] = {}
    exec(compile(SOURCE, str(path), "exec", dont_inherit=True), space)  # noqa: S102 - the text above
    gc.freeze()  # as tests/conftest.py does with all that is collected
    return SimpleNamespace(path=path, functions=patching.functions_of({str(path)}), **space)


@pytest.mark.parametrize(
    ("was", "becomes", "call", "before", "after"),
    [
        ("y + by", "y - by", lambda m: m.scaled(3), 9, 3),
        ("x / 2", "x * 2", lambda m: m.Thing().half(4), 2, 8),
        ("x + step", "x - step", lambda m: m.add_one(5), 6, 4),
        ("x + step", "x - step", lambda m: m.maker(2)(5), 7, 3),
        ("x + 2", "x - 2", lambda m: m.table[1](5), 7, 3),
        ("        y = y + by", "        pass\n", lambda m: m.scaled(3), 9, 6),
    ],
)
def test_functions_that_exist_change_in_place(
    module: SimpleNamespace, was: str, becomes: str, call: Callable[..., int], before: int, after: int
) -> None:
    change = patching.change(module.path, SOURCE, SOURCE.replace(was, becomes))
    assert call(module) == before
    assert not change.imported
    assert len(change.places) == 1
    change.apply(module.functions)
    assert call(module) == after


@pytest.mark.parametrize(("was", "becomes"), [("FACTOR = 2", "FACTOR = 3"), ("by=3", "by=4"), ("kind = 1", "kind = 2")])
def test_what_an_import_computes_is_imported_again(module: SimpleNamespace, was: str, becomes: str) -> None:
    assert patching.change(module.path, SOURCE, SOURCE.replace(was, becomes)).imported


def test_a_test_reaches_the_lines_that_it_runs(module: SimpleNamespace) -> None:
    (place,) = patching.change(module.path, SOURCE, SOURCE.replace("y + by", "y - by")).places
    line = SOURCE[: SOURCE.index("y + by")].count("\n") + 1
    reach = running.Reach()
    tracer = running.Tracer({str(module.path)})
    for name, value in (("small", 1), ("large", 3)):
        with tracer:
            module.scaled(value)
        reach.places[name], reach.seconds[name] = tracer.places(), 0.1
    assert reach.tests_of([place], running.lines_of(SOURCE, line)) == ["large"]
    assert reach.tests_of([place], running.lines_of(SOURCE, line - 1)) == ["small", "large"]
    reach.starters.add("small")
    assert reach.tests_of([place], running.lines_of(SOURCE, line)) == ["small", "large"]


def test_the_lines_of_a_statement() -> None:
    text = "def f(x):\n    if (x\n            > 1):\n        return [\n            x,\n        ]\n    return x\n"
    assert [list(running.lines_of(text, line)) for line in range(1, 8)] == [
        [1],
        [2, 3],
        [2, 3],
        [4, 5, 6],
        [4, 5, 6],
        [4, 5, 6],
        [7],
    ]


def test_every_pattern_fits_a_line_of_a_piece_and_says_why() -> None:
    files = {file for piece in PIECES.values() for file in piece.files()}
    for entry in making.patterns():
        assert set(entry) - {"becomes"} == {"file", "was", "reason"}
        texts = [source_of(file) for file in files if fnmatch.fnmatch(file, entry["file"])]
        lines = [line.split("  #")[0].strip() for text in texts for line in text.split("\n")]
        assert any(re.fullmatch(entry["was"], line) for line in lines), f"nothing to explain: {entry}"
        assert len(entry["reason"]) > 20
    mutant = making.Mutant("ops/conv.py", "parallel.shares.run(work, n)\n", "parallel.shares.run(work, 2)\n")
    other = making.Mutant("ops/conv.py", "a = 1\n", "a = 2\n")
    assert [sum(making.fits(entry, one) for entry in making.patterns()) for one in (mutant, other)] == [1, 0]


def test_of_a_piece_of_rules_only_what_the_table_reaches_is_changed() -> None:
    names = {(Path(str(file)).name, name) for file, name, _ in rules.reached()}
    assert {("index.py", "_at_set_jvp"), ("places.py", "check_spec"), ("special.py", "<lambda>")} <= names
    assert ("conv.py", "_conv.<locals>.work") in names  # written inside of a forward
    assert not {("scatter.py", "at_set"), ("index.py", "gather"), ("names.py", "guarded")} & names
    file = ROOT / PACKAGE / "ops/special.py"
    source = file.read_text(encoding="utf-8")
    inside = source.replace("-ew.log(x) - 1,", "-ew.log(x) - 2,", 1)
    outside = source.replace("import numpy as np", "import numpy as np, math", 1)
    made = [making.Mutant("ops/special.py", source, text) for text in (inside, outside)]
    assert rules.only(made) == made[:1]


AGAIN = """
import functools
from glassgrad.ops.core import REGISTRY, elementwise
FACTOR = 2
def scaled(x, by=3): return x * FACTOR + by
class Thing:
    __slots__ = ("x",)
    kind = 1
    def half(self): return 8 / self.kind
@functools.lru_cache
def cached(x): return x + 1
def maker(step):
    def inner(x): return x + step
    return inner
add_one = maker(1)
tripled_p = elementwise("tripled", lambda xp, x: 3 * x, (3.0,))
"""


@pytest.mark.parametrize(
    ("was", "becomes", "call", "before", "after"),
    [
        ("FACTOR = 2", "FACTOR = 4", lambda m: m.scaled(1), 5, 7),
        ("FACTOR = 2", "FACTOR = 4", lambda m: m.user.FACTOR, 2, 4),
        ("by=3", "by=4", lambda m: m.scaled(1), 5, 6),
        ("kind = 1", "kind = 2", lambda m: m.thing.half(), 8, 4),
        ("return x + 1", "return x - 1", lambda m: m.cached(5), 6, 4),
        ("maker(1)", "maker(2)", lambda m: m.add_one(5), 6, 7),
        ("(3.0,)", "(4.0,)", lambda m: m.tripled_p.partials[0], 3, 4),
        ("3 * x", "5 * x", lambda m: m.tripled_p(2.0), 6, 10),
    ],
)
def test_a_module_runs_again_and_everybody_keeps_what_they_hold(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    was: str,
    becomes: str,
    call: Callable[..., float],
    before: float,
    after: float,
) -> None:
    path = tmp_path / "again.py"
    module, user = ModuleType("tests.again"), ModuleType("tests.user_of_again")
    module.__file__ = str(path)
    for table in (core.REGISTRY, core.PRIMITIVES):
        monkeypatch.setitem(table, "tripled", None)  # so that it is taken out again
        del table["tripled"]
    exec(compile(AGAIN, str(path), "exec", dont_inherit=True), vars(module))  # noqa: S102 - the text above
    vars(user)["FACTOR"] = vars(module)["FACTOR"]
    monkeypatch.setitem(sys.modules, "tests.again", module)
    monkeypatch.setitem(sys.modules, "tests.user_of_again", user)
    held = SimpleNamespace(**vars(module), user=user, thing=module.Thing())
    assert call(held) == before
    reloading.run_again(path, AGAIN)
    assert call(held) == before
    reloading.run_again(path, AGAIN.replace(was, becomes))
    assert call(held) == after
    assert core.REGISTRY["tripled"] is held.tripled_p
    assert module.tripled_p is held.tripled_p
    assert module.REGISTRY is core.REGISTRY


def test_which_functions_a_change_of_an_import_concerns() -> None:
    def concerned(text: str) -> tuple[set[str], set[str]] | None:
        line = AGAIN[: AGAIN.index(text)].count("\n") + 1
        found = reloading.concerned(Path("again.py"), AGAIN, line)
        return None if found is None else ({name[1] for name in found[0]}, found[1])

    assert concerned("FACTOR = 2") == ({"scaled"}, set())
    assert concerned("kind = 1") == ({"Thing", "Thing.half"}, {"x"})
    functions, texts = concerned("tripled_p") or (set(), set())
    assert functions == {"<lambda>"}
    assert "tripled" in texts
    assert concerned("import functools") is None


def test_of_a_registry_the_cases_of_a_piece_run() -> None:
    piece = pieces.Piece(("ops/sort.py",), (), ("tests/ops/test_primitives.py",))
    assert piece.concerns("tests/ops/test_primitives.py::test_one[sort-0]")
    assert not piece.concerns("tests/ops/test_primitives.py::test_one[conv2d-0]")
    assert piece.concerns("tests/ops/test_views.py::test_one[conv2d-0]")
