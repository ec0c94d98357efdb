"""Imports point down the tower of `tools/structure.py`, file by file, and no file reaches itself through others."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tools.sources import parsed
from tools.structure import (
    APART,
    PACKAGE,
    ROOT,
    TOWER,
    all_imports,
    circles,
    floor_of,
    imports_of,
    modules,
    picture,
)

# What may point up all the same, each with its reason. Both ends are files; a test below keeps the list from growing
# stale.
ALLOWED_UP: dict[tuple[str, str], str] = {
    (
        "ops.kernels.compiled",
        "compile.eager_kernel",
    ): "asked for by name when an eager op is large enough",
    ("ops.kernels.compiled", "compile.native.channels"): "as above, for code that serves every size",
    ("ops.kernels.compiled", "compile.native.products"): "as above, for products that threads share",
    ("engine.protocols.functions", "fft"): "np.fft.x(tensor) is looked up there, in the call",
    ("engine.tensors.methods", "sparse"): "x.to_sparse() makes a matrix of another class, loaded in the call",
    ("engine.protocols.namespace", "fft"): "the array API's extension, looked up in the call",
    ("compile.front.state.kinds", "optim.lr_scheduler"): "a name, to tell a schedule's counters from state that steers",
    ("verify.words", "nn"): "PyTorch's words in a derivation, looked up once one is given",
    ("verify.words", "nn.functional"): "as for nn",
    ("compile.source.torch_fx", "nn"): "a module of PyTorch is written out in layers of ours, once one is given",
    ("compile.source.torch_fx", "nn.functional"): "as for nn",
}
# Circles of files, each with its reason.
ALLOWED_CIRCLES: dict[tuple[str, ...], str] = {
    ("scalar", "scalar.compiler", "scalar.tracing"): "the page offers to compile what it defines; a trace runs it",
    ("manual", "manual.bridge"): "the bridge to the engine is loaded by name when somebody crosses it",
}
# What the front of the package loads by name stands above everything, and is not looked at here.
FRONT = ""
# The one place of each that leads back to the engine. Nothing else of its package imports it when it is loaded.
BRIDGES = {"manual.bridge": "a hand-written layer as an op of the tape; twins of nn modules"}
ALLOWED_FOR_APART = {*APART, "base", "errors"}


def top_of(name: str) -> str:
    return name.split(".", maxsplit=1)[0]


def test_every_file_has_a_floor() -> None:
    homeless = [name for name in modules() if name and floor_of(name) is None and top_of(name) not in APART]
    assert not homeless, f"give these a place in TOWER of tools/structure.py: {homeless}"


def test_the_tower_names_only_what_exists() -> None:
    named = [entry for floor in TOWER for entry in floor.split()] + list(APART)
    assert [entry for entry in named if entry not in modules()] == []
    assert len(named) == len(set(named))


def climbing() -> set[tuple[str, str]]:
    found = set()
    for one in all_imports():
        above, below = floor_of(one.importer), floor_of(one.target)
        if one.importer != FRONT and above is not None and below is not None and below > above:
            found.add((one.importer, one.target))
    return found


def test_imports_point_down() -> None:
    new = climbing() - set(ALLOWED_UP)
    lines = [str(one) for one in all_imports() if (one.importer, one.target) in new]
    assert not lines, "these point up:\n" + "\n".join(lines)


def test_nothing_is_allowed_that_nobody_does() -> None:
    assert set(ALLOWED_UP) - climbing() == set()
    assert set(ALLOWED_CIRCLES) - {tuple(group) for group in found_circles()} == set()
    assert all(ALLOWED_UP.values())
    assert all(ALLOWED_CIRCLES.values())


def found_circles() -> list[list[str]]:
    arrows: dict[str, set[str]] = {}
    for one in all_imports():
        if FRONT not in (one.importer, one.target):
            arrows.setdefault(one.importer, set()).add(one.target)
    return circles(arrows)


def test_no_file_reaches_itself() -> None:
    new = [group for group in found_circles() if tuple(group) not in ALLOWED_CIRCLES]
    assert not new, "\n".join(" <-> ".join(group) for group in new)


def test_only_programs_import_the_front() -> None:
    """`import glassgrad` inside the engine would hide a dependency on anything behind the lazy front."""
    lowest = floor_of("train")
    assert lowest is not None
    hidden = [
        str(one)
        for one in all_imports()
        if one.target == FRONT and one.importer and (floor_of(one.importer) or 0) < lowest
    ]
    assert not hidden, "import from the module that defines the name:\n" + "\n".join(hidden)


def test_kernels_import_nothing_of_the_ops_but_their_core() -> None:
    inside = [one for one in all_imports() if one.importer.startswith("ops.kernels")]
    wrong = [
        one for one in inside if top_of(one.target) == "ops" and not one.target.startswith(("ops.kernels", "ops.core"))
    ]
    assert not wrong, "\n".join(map(str, wrong))


def test_doctor_never_imports_report() -> None:
    """Its front alone names the pictures, in strings: people look for them there."""
    climbs = [one for one in all_imports() if top_of(one.importer) == "doctor" and top_of(one.target) == "report"]
    assert not [str(one) for one in climbs if (one.importer, one.form) != ("doctor", "string")]


def test_what_stands_apart_imports_no_engine() -> None:
    leaks = [
        str(one)
        for one in all_imports()
        if top_of(one.importer) in APART
        and one.target != FRONT
        and top_of(one.target) not in ALLOWED_FOR_APART
        and one.importer not in BRIDGES
    ]
    assert not leaks, "\n".join(leaks)


@pytest.mark.parametrize("name", APART)
def test_what_stands_apart_loads_no_engine(name: str) -> None:
    program = (
        f"import sys; import glassgrad.{name};"
        "print(*[m for m in sys.modules if m.startswith(('glassgrad.engine', 'glassgrad.ops', 'glassgrad.compile'))])"
    )
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert process.stdout.split() == []


# The checks above are only worth something if the reader of imports sees every form of import.


@pytest.mark.parametrize(
    ("where", "source", "expected"),
    [
        ("nn.module", "from ..engine.tensor import Tensor", ["engine.tensor"]),
        ("nn.module", "from . import init", ["nn.init"]),
        ("nn", "from . import init", ["nn.init"]),
        ("nn.module", "from .. import random, no_such_module", ["random", ""]),
        ("random", "from glassgrad.ops.core import Primitive", ["ops.core"]),
        ("random", "from glassgrad.ops import core, nothing", ["ops.core", "ops"]),
        ("random", "import glassgrad.nn.module as linear, numpy", ["nn.module"]),
        ("random", "import glassgrad", [""]),
        ("random", "def f():\n    if True:\n        from glassgrad.nn import module", ["nn.module"]),
        ("random", "if TYPE_CHECKING:\n    from .nn import module\nelse:\n    from .optim import sgd", ["optim.sgd"]),
        ("random", "import typing\nif typing.TYPE_CHECKING:\n    from .nn import module", []),
        ("random", "import glassgradient, numpy", []),
        ("random", "importlib.import_module('glassgrad.nn.module')", ["nn.module"]),
        ("random", "_HOME = {'x': 'glassgrad.optim'}", ["optim"]),
        ("random", "'see glassgrad.optim for more, and glassgrad.nothing'", []),
    ],
)
def test_the_reader_sees_every_import(where: str, source: str, expected: list[str]) -> None:
    assert [one.target for one in imports_of(where, parsed(source))] == expected


def test_the_reader_tells_forms_apart() -> None:
    source = "from glassgrad import nn\ndef f():\n    from glassgrad import optim\nx = 'glassgrad.ops'\n"
    assert [one.form for one in imports_of("random", parsed(source))] == ["top", "lazy", "string"]


def test_the_reader_sees_circles() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
    assert PACKAGE.name == "glassgrad"


def test_the_picture_is_of_this_source() -> None:
    """Draw it anew with `python tools/structure.py docs/images/structure.svg`."""
    assert (ROOT / "docs" / "images" / "structure.svg").read_text(encoding="utf-8") == picture()
