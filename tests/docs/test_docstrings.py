"""The content of docstrings of public functions and classes: each argument, and the errors that their code raises."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, nn
from glassgrad.base import documents
from tests.nn.layer_cases import LAYERS, OURS
from tests.versions import since_numpy
from tools import calls

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

# Modules whose functions have lines in returns.txt, and functions whose dtype calls of the example do not show, since
# an argument decides it, or a function that they are given.
TOLD = ("glassgrad", "glassgrad.nn.functional", "glassgrad.linalg", "glassgrad.fft", "glassgrad.sparse")
DECIDED = frozenset(
    {"astype", "view", "tensor", "as_tensor", "asarray", "from_numpy", "from_dlpack", "arange", "flip", "reshape_as"}
    | {"view_as"}
)


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
    names = documents.described(text)
    for base in value.__mro__[1:-1] if inspect.isclass(value) else ():
        names |= documents.described(base.__doc__ or "")
    for other in re.findall(r"[Aa]rguments\s+(?:as\s+for|are\s+those\s+of)\s+`(\w+)`", text):
        names |= _described(getattr(importlib.import_module(value.__module__), other))
    return names


@since_numpy
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
    for place, lines in documents.table().items():
        if place in known and not place.startswith("glassgrad.nn.parallel"):
            arguments = set(inspect.signature(known[place]).parameters)
            stale |= {f"{place}: {name}" for name in lines if name[0] not in "!-=" and name not in arguments}
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
        documents.complete("glassgrad", function.__name__, function, {"x": "that.", "!KindError": "if it is."})
        lines = [line.strip() for line in inspect.cleandoc(function.__doc__).split("\n")]
        assert [line for line in lines if line.endswith(":")] == [
            "Args:", *(["Returns:"] if function is full else []), "Raises:",
        ]  # fmt: skip  # a table
        assert lines[lines.index("Raises:") + 1] == "KindError: if it is."
        assert sum(line.startswith("generator: ") for line in lines) == 1
        assert ("x: it." in lines) == (function is full)
        before = function.__doc__
        documents.complete("glassgrad", function.__name__, function, {"x": "that.", "!KindError": "if it is."})
        assert function.__doc__ == before


def _told(value: Any) -> tuple[str, str] | None:
    """Return what a docstring says of the shape and the dtype of what is returned."""
    found = re.search(r"^ *(?:Returns|Called):\n +shape: (.*)\.\n +dtype: (.*)\.$", value.__doc__ or "", re.MULTILINE)
    return (found[1], found[2]) if found else None


def test_functions_say_what_they_return(public: list[Any]) -> None:
    """Shape and dtype where their examples show that arrays come back; else the type, where it has a name."""
    silent, arrays, others = set(), 0, 0
    for entry in public:
        function = entry.value
        if not isinstance(function, FunctionType):
            continue
        ours = entry.module in TOLD and not entry.name.endswith("_")
        made = list(calls.calls(function)) if ours else []
        if made and calls.shape_of(made[0].result) is not None:
            arrays += 1
            if _told(function) is None and "Returns:\n" not in (function.__doc__ or ""):
                silent.add(entry.full)
        elif inspect.signature(function).return_annotation not in {"None", "Any", inspect.Signature.empty}:
            others += 1
            if "Returns:\n" not in (function.__doc__ or ""):
                silent.add(entry.full)
    assert silent == set()
    assert arrays > 400
    assert others > 150


@since_numpy
def test_the_dtypes_of_results_are_as_their_examples_show(public: list[Any]) -> None:
    """The calls of the examples, made again with other dtypes."""
    wrong, compared, left = [], 0, set(DECIDED)
    for entry in public:
        told = _told(entry.value) if isinstance(entry.value, FunctionType) and entry.module in TOLD else None
        if told is None or entry.name.endswith("_"):
            continue
        found = calls.dtype_told(list(calls.calls(entry.value)))
        if entry.name in DECIDED:
            left -= {entry.name} if found != told[1] else set()
        elif found is not None:
            compared += 1
            wrong += [f"{entry.full}: {told[1]}; found: {found}"] if found != told[1] else []
    assert wrong == []
    assert left == set(), "calls show these as well"
    assert compared > 400


def test_every_line_on_what_is_returned_is_of_a_function() -> None:
    for name, (shape, dtype) in documents.results().items():
        module, _, function = name.rpartition(".")
        text = getattr(importlib.import_module(module), function).__doc__
        assert not shape or f"shape: {shape}." in text, name
        assert not dtype or f"dtype: {dtype}." in text, name


def test_the_shapes_of_results_are_as_their_examples_show(public: list[Any]) -> None:
    wrong, computed, read = [], 0, set()
    for entry in public:
        told = _told(entry.value) if isinstance(entry.value, FunctionType) else None
        if told is None:
            continue
        found = [calls.fits(told[0], call) for call in calls.calls(entry.value)]
        wrong += [entry.full] if False in found else []
        computed += any(found)
        # A copy has the sentence of the view that it copies.
        read |= set() if any(found) or entry.full.endswith("_copy") else {entry.full}
    assert wrong == []
    assert computed > 400
    assert len(read) < 125, "sentences that nothing computes become more"


def test_layers_return_what_they_say() -> None:
    """Every call of every layer that the other tests make."""
    wrong, computed, dtypes = [], 0, 0
    for case in [*LAYERS, *OURS]:
        layer = getattr(nn, case.name)(*case.args, **case.options).train(case.training)
        told = _told(type(layer))
        assert told is not None, case.name
        inputs = [gg.tensor(one) for one in case.draw()]
        result = layer(*inputs, **case.keywords)
        given = dict(inspect.signature(layer.forward).bind(*inputs).arguments)
        facts = {name: value for name, value in vars(layer).items() if isinstance(value, int)}
        found = calls.fits(told[0], calls.Call(layer.forward, given | facts, result))
        computed += found is True
        wrong += [case.id] if found is False else []
        wide = [one.astype(np.float64) if one.dtype == np.float32 else one for one in inputs]
        if told[1].startswith(("that of `input`", "the one that `input`", "that of the inputs")):
            again = layer(*wide, **case.keywords)
            dtypes += 1
            wrong += [f"{case.id}: {again.dtype}"] if isinstance(again, gg.Tensor) and again.dtype != np.float64 else []
    assert wrong == []
    assert computed > 120
    assert dtypes > 120
