"""Write the docstrings of the functions of the op table, and of those beside them: `python tools/docstrings.py`.

They are joined from the source, what arguments mean (`_arguments.txt`), the examples (`ops/examples.txt`), the shapes
of results (`tools/shapes.txt`) and their dtypes, which calls of the examples with other dtypes show. What is joined
stands in src/glassgrad/_docstrings/, to be attached when the library is loaded: joining takes longer than reading.
`make format` runs this after tools/examples.py.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import re
import sys
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "src"), str(ROOT), str(ROOT / "docs")]

from glassgrad import _documents  # noqa: E402 - found by the line above, where this file is run as a script

if __name__ == "__main__":
    _documents.ready = lambda module: {}  # before the engine is loaded, so that the docstrings are joined here

from tools import calls  # noqa: E402 - it loads the engine, which the line above has to come before

SHAPES = ROOT / "tools" / "shapes.txt"
MODULES = ("glassgrad", "glassgrad.nn.functional", "glassgrad.linalg", "glassgrad.fft", "glassgrad.sparse")
# Shapes of arguments in front of those of the result, and what is said of arguments whose shape is told nowhere else.
_GIVEN = re.compile(r"shape: ((?:\([^()]*\)(?:, | and )?)+) (?:to|gives?) ")
_ANY = (
    "a tensor of any shape; a NumPy array gives an array.|a tensor; the formula says which shapes.|the operands: .*|"
    "the second operand: .*|a matrix .*|matrices, .*|points, .*|tensors of shapes that broadcast.|the weights; .*|"
    "the right-hand side, .*"
)
_GUESSED = "`dtype`; without it that of an array, and as `tensor` chooses it for Python's numbers"
# What changes the dtype of these is an argument, or the function that they are given.
DTYPES = {
    "astype": "`dtype`",
    "view": "that of `x`, or the dtype that is given as a shape",
    "tensor": "`dtype`; without it that of an array, int64 of integers, bool of booleans, else `get_default_dtype()`",
    "as_tensor": _GUESSED,
    "asarray": _GUESSED,
    "from_numpy": "that of `array`",
    "from_dlpack": "that of `other`",
    "arange": "`dtype`; without it int64 of integers, else `get_default_dtype()`",
    "flip": "that of `x`",
    "reshape_as": "that of `x`",
    "view_as": "that of `x`",
    "solve": "the one that `a` and `b` promote to; integers give float64",
}


@cache
def shapes() -> dict[str, str]:
    """Return the shape of what functions return, by module and name."""
    found, module = {}, ""
    for line in SHAPES.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            module = line.strip("[]")
        elif line and not line.startswith("#"):
            names, _, told = line.partition(": ")
            found |= {f"{module}.{name}": told for name in names.split()}
    return found


def shape_told(module: str, name: str, function: Any) -> str | None:
    """Return the sentence on the shape: the one of the file, or of an elementwise primitive."""
    told = shapes().get(f"{module}.{name}") or shapes().get(f"glassgrad.{name}")
    prim = getattr(function, "primitive", None)
    if told is None and getattr(prim, "kind", "") == "elementwise":
        names = list(inspect.signature(function).parameters)
        return f"that of `{names[0]}`" if len(names) == 1 else f"the one that {calls.quoted(names)} broadcast to"
    return told


def returned(module: str, name: str, function: Any) -> list[str]:
    """Return the lines of the section `Returns`."""
    if name.endswith("_"):
        return [f"`{next(iter(inspect.signature(function).parameters))}` itself, with its shape and its dtype."]
    shape = shape_told(module, name, function)
    if shape is not None:
        dtype = DTYPES.get(name) or calls.dtype_told(list(calls.calls(function)))
        return [f"shape: {shape}.", *([f"dtype: {dtype}."] if dtype else [])]
    kind = str(inspect.signature(function).return_annotation)
    return [] if kind in {"None", "Any"} else [f"`{kind.rpartition('.')[2] if '[' not in kind else kind}`."]


def narrowed(text: str, function: Any, lines: list[str]) -> str:
    """Return a docstring in which arguments that were any tensor have the shape from which the result's follows."""
    given = _GIVEN.match(lines[0])
    shapes = re.findall(r"\([^()]*\)", given[1]) if given else []
    for name, shape in zip(inspect.signature(function).parameters, shapes, strict=False):
        text = re.sub(rf"^( +{name}): (?:{_ANY})$", rf"\1: a tensor {shape}.", text, flags=re.MULTILINE)
    return text


def joined(module: str) -> dict[str, str]:
    """Return the docstrings of a module's own functions by their names."""
    public_names = importlib.import_module("sitegen.public_names")
    tables = [vars(importlib.import_module(module))]
    if module == "glassgrad":
        tables = [importlib.import_module(f"glassgrad.{name}").NAMES for name in ("compat", "engine.public")]
    shown = {name: value for table in tables for name, value in table.items()}
    found = {}
    for entry in public_names.entries(module):
        for name in (entry.name, *(one for one in entry.aliases if shown.get(one) is not entry.value)):
            value = shown.get(name)
            ours = isinstance(value, FunctionType | type) and value.__module__.startswith("glassgrad")
            if not ours or (module != "glassgrad" and _elsewhere(value)):
                continue
            text = value.__doc__ or ""
            if isinstance(value, FunctionType) and "Returns:\n" not in text:
                lines = returned(module, name, value)
                text = _documents.put(narrowed(text, value, lines), "Returns", lines) if lines else text
            found[name] = text
    return found


def _elsewhere(value: Any) -> bool:
    """Whether a name of another module is one of `glassgrad`, or a class, which its own module describes."""
    return isinstance(value, type) or value.__module__ == "glassgrad"


def main() -> int:
    """Write the files anew, or with `--check` tell which of them are not what would be written."""
    parser = argparse.ArgumentParser(description="Write the docstrings of the functions of the op table.")
    parser.add_argument("--check", action="store_true", help="write nothing; tell which files are stale")
    check = parser.parse_args().check
    folder, stale = Path(_documents.READY), []
    folder.mkdir(exist_ok=True)
    for module in MODULES:
        text = "".join(f"\f{name}\n{text}" for name, text in sorted(joined(module).items()))
        file = folder / f"{module}.txt"
        if not check:
            file.write_text(text, encoding="utf-8")
        elif not file.exists() or file.read_text(encoding="utf-8") != text:
            stale.append(file.name)
    if stale:
        print(f"to be written anew, by `make format`: {', '.join(stale)}")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
