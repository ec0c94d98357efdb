"""Every example in the documentation and in the docstrings runs and prints the shown output."""

from __future__ import annotations

import doctest
import functools
import importlib.util
import pkgutil
import warnings
from pathlib import Path
from types import ModuleType

import pytest

import glassgrad as gg
from glassgrad.errors.packages import PackageError
from glassgrad.ops import examples as ops

ROOT = Path(__file__).resolve().parents[2]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
ORACLES = ("torch", "jax")  # that only tests and some examples need
NOTEBOOKS = ("quickstart", "data", "training", "autograd")  # run by test_notebooks.py
PAGES = sorted(
    path
    for path in (ROOT / "docs").rglob("*.md")
    if ">>> " in path.read_text(encoding="utf-8") and path.stem not in NOTEBOOKS
)


def modules() -> list[str]:
    import glassgrad

    found = [module.name for module in pkgutil.walk_packages(glassgrad.__path__, "glassgrad.")]
    return [name for name in found if not name.endswith("__main__")]


def run(tests: list[doctest.DocTest]) -> int:
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    report: list[str] = []
    for test in tests:
        gg.manual_seed(0)
        test.globs["gg"] = gg  # what the index of the reference says that it is
        test.globs["__name__"] = "__main__"  # the user's program, not the module that the docstring is in
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)
    return runner.tries


def examples(module: ModuleType) -> list[doctest.DocTest]:
    return [test for test in doctest.DocTestFinder(exclude_empty=True).find(module) if test.examples]


@pytest.mark.parametrize("name", modules())
def test_docstrings(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except PackageError as error:
        pytest.skip(str(error))
    run(examples(module))


def test_functions_of_the_op_table() -> None:
    """Those that have no docstring of their own, and those made at run time: `help` shows what they return today."""
    parser = doctest.DocTestParser()
    assert run([parser.get_doctest(text, {}, name, "examples.txt", 0) for name, text in ops.table().items()]) > 600
    import glassgrad.fft
    import glassgrad.random
    import glassgrad.sparse  # noqa: F401 - they show their examples as they are imported

    hidden = {}
    for name in ops.table():
        about = str(functools.reduce(getattr, name.split("."), gg).__doc__)
        first = ops.table()[name].split("\n")[0]
        if first not in about:
            hidden[name] = about
    assert hidden == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT / "docs")))
def test_pages(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    lines = text.split("\n")
    left_out = []
    lacking = -1  # the number of the fenced block that imports what is not installed
    for example in test.examples:
        block = sum(line.startswith("```") for line in lines[: example.lineno])
        wanted = example.source.removeprefix("import ").strip()
        if wanted in ORACLES and importlib.util.find_spec(wanted) is None:
            lacking = block
            left_out.append(example.lineno + 1)
        example.options[doctest.SKIP] = block == lacking
        # A fenced block ends without an empty line where nothing is printed: its fence is not expected output.
        example.want = example.want.partition("```")[0]
    assert run([test])
    if left_out:
        pytest.skip(f"all examples passed but those that begin in lines {left_out}: what they import is not installed")


def test_there_are_examples_and_a_wrong_one_is_seen() -> None:
    assert sum(len(examples(importlib.import_module(name))) for name in modules()) > 50
    assert len(PAGES) >= 4
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", "wrong", 0)
    with pytest.raises(AssertionError, match=r"Expected:\s+3\s+Got:\s+2"):
        run([wrong])
