"""Dependencies point one way, files and functions stay short: read from the source, not from what happens to run.

Imports inside functions count like any other; only those under `if TYPE_CHECKING` do not.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "glassgrad"
MAX_FILE = 500
MAX_FUNCTION = 60

# A module may import its own layer and those above it in this table. A new module or folder gets its place here.
# fmt: off
ENGINE_PARTS = (  # what a Tensor is, how it is recorded, walked and printed
    "mode", "node", "mutations", "tape", "tensor", "interpreter", "views", "methods", "saving", "function", "inplace",
    "tangents", "operands", "autograd", "creation", "random", "dtypes", "interop", "explain_failure", "_repr",
    "window_functions",
)
# fmt: on
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "absent", "missing", "provenance", "settings", "typing", "devices", "_version"),
    ("ops",),
    ENGINE_PARTS,
    ("public", "protocols", "func", "compile", "checkpoint", "verify", "explanation", "linalg", "fft", "special",
     "sparse", "optimize", "profiler"),
    ("nn", "optim", "amp"),
    ("data", "train", "doctor", "report", "distributed", "utils", "models", "serialization", "backends",
     "cuda", "distributions"),
    ("compat", "datasets", "torch_names"),
    ("cli",),
)
# Not part of the tower: they stand on plain Python and NumPy, so that they can be read (and believed) alone.
STANDALONE = ("scalar", "scalar_tools", "manual")
ALLOWED_FOR_STANDALONE = {*STANDALONE, "errors", "settings", "typing"}
# The one place of each that leads back to the engine, and why. Nothing else of its package imports it when loaded.
BRIDGES: dict[str, str] = {"manual/bridge.py": "a hand-written layer as an op of the tape; twins of nn modules"}
ENGINE = ("glassgrad.tape", "glassgrad.tensor", "glassgrad.ops", "glassgrad.func", "glassgrad.compile", "glassgrad.nn")


@dataclass(frozen=True)
class Import:
    """One import statement's target: `top` is the first name under glassgrad, '' for the package itself."""

    file: Path
    line: int
    top: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line} imports glassgrad.{self.top}".rstrip(".")


def is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def import_nodes(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Every import below `node`, at any depth, but for the body of `if TYPE_CHECKING`."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node
    children = node.orelse if isinstance(node, ast.If) and is_type_checking(node.test) else ast.iter_child_nodes(node)
    for child in children:
        yield from import_nodes(child)


def is_module(name: str) -> bool:
    return (PACKAGE / f"{name}.py").exists() or (PACKAGE / name).is_dir()


def targets(node: ast.Import | ast.ImportFrom, file: Path) -> Iterator[str]:
    """Dotted names under glassgrad that the statement reaches, without the leading `glassgrad`."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            root, _, rest = alias.name.partition(".")
            if root == "glassgrad":
                yield rest
        return
    module = node.module or ""
    if node.level:
        parents = file.relative_to(PACKAGE).parts[: -node.level]
        if node.level > len(file.relative_to(PACKAGE).parts):
            raise AssertionError(f"{file}:{node.lineno} climbs out of the package")
        base = ".".join([*parents, *([module] if module else [])])
    elif module == "glassgrad" or module.startswith("glassgrad."):
        base = module.removeprefix("glassgrad").lstrip(".")
    else:
        return
    if base:
        yield base
        return
    for alias in node.names:
        yield alias.name if is_module(alias.name) else ""


def imports_of(file: Path) -> list[Import]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return [
        Import(file, node.lineno, target.split(".")[0]) for node in import_nodes(tree) for target in targets(node, file)
    ]


def python_files(*folders: str) -> list[Path]:
    return [file for folder in folders for file in sorted((ROOT / folder).rglob("*.py")) if ".venv" not in file.parts]


def top_of(file: Path) -> str:
    first = file.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


LAYER_OF = {name: depth for depth, names in enumerate(LAYERS) for name in names}
SOURCES = python_files("src")
INNER = [file for file in SOURCES if file != PACKAGE / "__init__.py"]
IMPORTS = [entry for file in INNER for entry in imports_of(file)]


def test_every_module_has_a_layer() -> None:
    homeless = {top_of(file) for file in INNER} - set(LAYER_OF) - set(STANDALONE) - {"__main__"}
    assert not homeless, f"give these a layer in {Path(__file__).name}: {sorted(homeless)}"


def test_dependencies_point_down() -> None:
    climbing = [
        f"{entry} (layer {LAYER_OF[entry.top]}) from layer {LAYER_OF[top_of(entry.file)]}"
        for entry in IMPORTS
        if entry.top in LAYER_OF
        and top_of(entry.file) in LAYER_OF
        and LAYER_OF[entry.top] > LAYER_OF[top_of(entry.file)]
    ]
    assert not climbing, "\n".join(climbing)


def test_inner_modules_do_not_import_the_public_front() -> None:
    """`import glassgrad` inside the engine would hide a dependency on anything behind the lazy front."""
    train = LAYER_OF["train"]
    hidden = [
        str(entry)
        for entry in IMPORTS
        if entry.top == "" and LAYER_OF.get(top_of(entry.file), 0) < train and top_of(entry.file) != "__main__"
    ]
    assert not hidden, "import from the module that defines the name:\n" + "\n".join(hidden)


def test_doctor_never_imports_report() -> None:
    assert not [str(entry) for entry in IMPORTS if top_of(entry.file) == "doctor" and entry.top == "report"]


def test_nothing_imports_the_command_line() -> None:
    assert not [str(entry) for entry in IMPORTS if entry.top == "cli" and top_of(entry.file) not in {"cli", "__main__"}]


def test_standalone_modules_import_no_autograd() -> None:
    leaks = [
        str(entry)
        for entry in IMPORTS
        if top_of(entry.file) in STANDALONE
        and entry.top not in ALLOWED_FOR_STANDALONE
        and str(entry.file.relative_to(PACKAGE)) not in BRIDGES
    ]
    assert not leaks, "\n".join(leaks)


@pytest.mark.parametrize("name", STANDALONE)
def test_standalone_modules_load_no_autograd(name: str) -> None:
    if not is_module(name):
        pytest.skip(f"glassgrad.{name} is not part of this version")
    # The package's front loads the engine, so that it is stood in for by an empty one.
    program = (
        f"import sys, types; sys.modules['glassgrad'] = front = types.ModuleType('glassgrad');"
        f"front.__path__ = [{str(PACKAGE)!r}]; import glassgrad.{name};"
        f"print(*[m for m in {ENGINE!r} if m in sys.modules])"
    )
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert process.stdout.split() == []


def test_no_import_cycle_between_modules() -> None:
    """At import time only: a cycle through a function's body is a choice, a cycle at the top is an accident."""
    graph: dict[str, set[str]] = {}
    for file in INNER:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        top_level = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        reached = {unit_of(target.split(".")[0]) for node in top_level for target in targets(node, file)}
        unit = unit_of(top_of(file))
        graph.setdefault(unit, set()).update(reached - {unit, ""})
    assert not find_cycle(graph), " -> ".join(find_cycle(graph))


def unit_of(name: str) -> str:
    """The page and the tools behind it, cut apart only so that the page stays one page, are one unit."""
    return name.removesuffix("_tools")


def find_cycle(graph: dict[str, set[str]]) -> list[str]:
    done: set[str] = set()

    def walk(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for child in sorted(graph.get(name, ())):
            if cycle := walk(child, [*path, name]):
                return cycle
        done.add(name)
        return []

    for start in sorted(graph):
        if cycle := walk(start, []):
            return cycle
    return []


def function_lengths(file: Path) -> Iterator[tuple[str, int, int]]:
    """Name, line and length of every function, its docstring and decorators not counted."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if ast.get_docstring(node, clean=False) is not None:
            length -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
        yield node.name, node.lineno, length


def test_files_are_short() -> None:
    files = python_files("src", "tests", "benchmarks", "examples", "tools", "docs")
    lengths = {file.relative_to(ROOT): len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    assert len(lengths) > 10
    long = {str(file): length for file, length in lengths.items() if length > MAX_FILE}
    assert not long, f"over {MAX_FILE} lines, split them: {long}"


def test_functions_are_short() -> None:
    long = [
        f"{file.relative_to(ROOT)}:{line} {name} has {length} lines"
        for file in python_files("src", "tests", "benchmarks", "examples", "tools", "docs")
        for name, line, length in function_lengths(file)
        if length > MAX_FUNCTION
    ]
    assert not long, f"over {MAX_FUNCTION} lines:\n" + "\n".join(long)


# The checks above are only worth something if the reader of imports sees every form of import.


@pytest.mark.parametrize(
    ("where", "source", "expected"),
    [
        ("nn/linear.py", "from ..tensor import Tensor", ["tensor"]),
        ("nn/linear.py", "from . import init", ["nn"]),
        ("nn/linear.py", "from .. import tape, ops, no_such_module", ["tape", "ops", ""]),
        ("tape.py", "from glassgrad.ops.core import Primitive", ["ops"]),
        ("tape.py", "import glassgrad.nn.linear as linear, numpy", ["nn"]),
        ("tape.py", "import glassgrad", [""]),
        ("tape.py", "def f():\n    if True:\n        from .nn import Linear", ["nn"]),
        ("tape.py", "if TYPE_CHECKING:\n    from .nn import Linear\nelse:\n    from .optim import SGD", ["optim"]),
        ("tape.py", "import typing\nif typing.TYPE_CHECKING:\n    from .nn import Linear", []),
        ("tape.py", "import glassgradient, numpy", []),
    ],
)
def test_the_reader_sees_every_import(where: str, source: str, expected: list[str]) -> None:
    found = [
        target.split(".")[0] for node in import_nodes(ast.parse(source)) for target in targets(node, PACKAGE / where)
    ]
    assert found == expected


def test_the_reader_sees_a_cycle_and_a_long_function(tmp_path: Path) -> None:
    assert find_cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "b", "c", "a"]
    assert find_cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
    file = tmp_path / "long.py"
    file.write_text("def f():\n    '''Two\n    lines.'''\n" + "    x = 1\n" * 61)
    assert list(function_lengths(file)) == [("f", 1, 62)]
