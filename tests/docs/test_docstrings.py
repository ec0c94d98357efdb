"""What the docstrings of public functions and classes say: each argument, and what their own code raises."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from glassgrad import _documents, errors

ROOT = Path(__file__).resolve().parents[2]
MODULES = (
    "glassgrad", "glassgrad.nn", "glassgrad.optim", "glassgrad.func", "glassgrad.utils.data", "glassgrad.train",
    "glassgrad.data", "glassgrad.doctor", "glassgrad.manual", "glassgrad.linalg", "glassgrad.fft", "glassgrad.special",
    "glassgrad.sparse", "glassgrad.distributed", "glassgrad.onnx", "glassgrad.sklearn",
)  # fmt: skip  # a table

# Why arguments of something that can be called are described nowhere.
UNDESCRIBED = {
    "NumPy's own": {"can_cast", "dtype", "finfo", "iinfo", "result_type", "promote_types"},
    "a type of Python's": {"memory_format"},
    "made by the library; its attributes are described, or are those of the report that it is part of": {
        "Bisection", "Examination", "GradientNorms", "Kept", "Memory", "MonitorData", "ProcessGroup", "ReduceOp",
        "Summary", "Work", "PackedSequence",
    },
}  # fmt: skip  # a table
ALLOWED = set().union(*UNDESCRIBED.values())


@pytest.fixture(scope="module")
def public() -> Iterator[list[Any]]:
    """Every public function and class of the modules that users import; errors are raised and not called."""
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        pages = importlib.import_module("sitegen.reference").pages()
        yield [entry for page in pages for entry in page.entries if _counts(page.module, entry.value)]
    finally:
        sys.path.remove(str(ROOT / "docs"))


def _counts(module: str, value: Any) -> bool:
    below = any(module.startswith(f"{one}.") for one in MODULES[1:])
    raised = inspect.isclass(value) and issubclass(value, Exception)
    return (module in MODULES or below) and (inspect.isclass(value) or inspect.isroutine(value)) and not raised


def _described(value: Any) -> set[str]:
    """Return what a docstring describes, or one that it points to: of a base, or of the name behind "arguments"."""
    text = value.__doc__ or ""
    names = _documents.described(text)
    for base in value.__mro__[1:-1] if inspect.isclass(value) else ():
        names |= _documents.described(base.__doc__ or "")
    for other in re.findall(r"[Aa]rguments\s+(?:as\s+for|are\s+those\s+of)\s+`(\w+)`", text):
        names |= _described(getattr(importlib.import_module(value.__module__), other))
    return names


def test_every_argument_is_described(public: list[Any]) -> None:
    missing, checked = {}, 0
    for entry in public:
        if entry.name == "memory_format":  # `str`, which has no signature
            continue
        given = {name for name in inspect.signature(entry.value).parameters if name[0] != "_"} - {"self", "cls"}
        checked += len(given)
        if left := given - _described(entry.value):
            missing[entry.name] = left
    assert checked > 3000
    assert {name: left for name, left in missing.items() if name not in ALLOWED} == {}
    assert {name for name in ALLOWED if name not in {entry.name for entry in public}} == set(), "they are no more"


def test_errors_that_a_function_raises_itself_are_described(public: list[Any]) -> None:
    """Its own code names a message of `errors`: then its docstring names an error. What it calls may raise others."""
    silent, found = set(), 0
    for entry in public:
        value = vars(entry.value).get("__init__") if inspect.isclass(entry.value) else inspect.unwrap(entry.value)
        code = getattr(value, "__code__", None)
        if code is None or "errors" not in code.co_names:
            continue
        if any(name.isupper() and hasattr(errors, name) for name in code.co_names):
            found += 1
            if not re.search(r"Error\b|[Rr]aises|[Rr]efuse", (entry.value.__doc__ or "").partition("Example:")[0]):
                silent.add(entry.full)
    assert found > 60
    assert silent == set()


def test_what_is_told_of_arguments_is_used(public: list[Any]) -> None:
    """A line for a function that is not there, or has no such argument, would never be read."""
    known = {entry.full: entry.value for entry in public} | {
        f"{entry.module}.{alias}": entry.value for entry in public for alias in entry.aliases
    }
    stale = set()
    for place, lines in _documents.table().items():
        if place in known and not place.startswith("glassgrad.nn.parallel"):
            arguments = set(inspect.signature(known[place]).parameters)
            stale |= {f"{place}: {name}" for name in lines if name[0] != "!" and name not in arguments}
        for name, text in lines.items():
            assert text, f"{place}: {name}"
            if name[0] == "!":
                assert issubclass(getattr(errors, name[1:]), errors.GlassgradError), name
    assert stale == set()


def test_sections_are_put_where_they_belong() -> None:
    def plain(x: Any, generator: Any = None) -> None:
        """One line."""

    def full(generator: Any, x: Any) -> None:
        """One line.

        Args:
            x: it.

        Returns:
            nothing.
        """

    for function in (plain, full):
        _documents.complete("glassgrad", function.__name__, function, {"x": "that.", "!KindError": "if it is."})
        lines = [line.strip() for line in inspect.cleandoc(function.__doc__).split("\n")]
        assert [line for line in lines if line.endswith(":")] == [
            "Args:", *(["Returns:"] if function is full else []), "Raises:",
        ]  # fmt: skip  # a table
        assert lines[lines.index("Raises:") + 1] == "KindError: if it is."
        assert sum(line.startswith("generator: ") for line in lines) == 1
        assert ("x: it." in lines) == (function is full)
        before = function.__doc__
        _documents.complete("glassgrad", function.__name__, function, {"x": "that.", "!KindError": "if it is."})
        assert function.__doc__ == before


def test_what_becomes_of_integers_is_told_as_it_is() -> None:
    """The sentence is read off NumPy's list of dtypes; here the op is called."""
    import numpy as np

    import glassgrad as gg

    kinds = {"Integers stay integers": "i", "The result is boolean": "b", "Integers become floating": "f"}
    told = 0
    for name, function in gg.ops.names.PUBLIC.items():
        words = re.search("|".join(kinds), function.__doc__)
        if words:
            arity = len(inspect.signature(function).parameters)
            with np.errstate(all="ignore"):
                found = np.asarray(function(*[np.array([2, 3])] * arity))
            assert (name, found.dtype.kind) == (name, kinds[words[0]])
            told += 1
    assert told > 60
