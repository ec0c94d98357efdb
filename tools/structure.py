"""Read the imports of the package, and draw them: `python tools/structure.py docs/images/structure.svg`.

Every form of import counts: at the top of a file, inside a function, and a module named in a string (for
`importlib.import_module` or `sys.modules`). Only imports under `if TYPE_CHECKING` do not count. `TOWER` defines which
part may import which; `tests/repo/test_layering.py` checks the source against it.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a program, this file finds its neighbours

from tools import sources
from tools.sources import ROOT, Source

PACKAGE = ROOT / "src" / "glassgrad"

# From the ground up. A file may import files of its own floor and of the floors before it. An entry stands for a module
# or a whole folder; the longest entry that matches a file decides.
TOWER: tuple[str, ...] = (
    "errors base _version",
    "ops.core ops.samples ops.complex_input ops.promotion ops.kernels",
    "ops",
    "linalg special",
    "engine.mode engine.node engine.views engine.writes engine.tree",
    "engine.tensors.devices engine.reports.absent engine.reports.printing",
    "engine.reports.notebook",
    "engine.tensor",
    "engine.tape engine.walks.plain_walk engine.walks.slices engine.walks.tangents engine.reports.op_errors",
    "engine",
    "compile.kept",
    "compile.ir",
    "compile.plan",
    "compile.llvm",
    "compile.numpy",
    "compile.native",
    "compile.front",
    "compile.source",
    "compile",
    "func verify explanation fft optimize",
    "autograd random checkpoint",
    "distributed.world distributed.waiting distributed.reductions distributed.calls distributed.primitives",
    "distributed.collectives distributed.messages distributed.buckets distributed.reducer distributed.sameness",
    "nn",
    "optim amp sparse distributions",
    "data doctor report models utils serialization",
    "distributed",
    "onnx sklearn",
    "train",
    "tasks",
    "compat lessons",
    "cli",
    "__main__",
)
# The parts beside the tower: they need only plain Python and NumPy, so that a reader can understand them by themselves.
APART = ("scalar", "manual")


@dataclass(frozen=True)
class Import:
    """One import: the dotted names of both files below `glassgrad`, its line, and its form."""

    importer: str
    target: str
    line: int
    form: str  # "top", "lazy" or "string"

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.target} ({self.form})"


def dotted(file: Path) -> str:
    """Return the name of a module below `glassgrad`; the name of the package itself is empty."""
    return ".".join(file.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__").rstrip(".")


@cache
def modules() -> dict[str, Path]:
    """Return every module of the package by its dotted name."""
    return {dotted(file): file for file in sources.python_files("src")}


@cache
def floor_of(name: str) -> int | None:
    """Return the floor of a module in the tower; None if it has no entry."""
    best, floor = -1, None
    for number, names in enumerate(TOWER):
        for entry in names.split():
            if (name == entry or name.startswith(entry + ".")) and len(entry) > best:
                best, floor = len(entry), number
    return floor


def imports_of(name: str, source: Source) -> list[Import]:
    """Return the imports of a module, each with the file that it reaches."""
    package = name if _is_package(name) else name.rpartition(".")[0]
    statements = [
        Import(name, target, node.lineno, form)
        for node, form in source.imports
        for target in _targets(node, package, modules())
    ]
    strings = [Import(name, target, line, "string") for target, line in source.modules if target in modules()]
    return [one for one in (*statements, *strings) if one.target != name]


@cache
def all_imports() -> list[Import]:
    """Return every import within the package."""
    return [one for name, file in modules().items() for one in imports_of(name, sources.source(file))]


def _is_package(name: str) -> bool:
    file = modules().get(name)
    return file is not None and file.name == "__init__.py"


def _targets(node: ast.Import | ast.ImportFrom, package: str, known: Mapping[str, object]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            root, _, rest = alias.name.partition(".")
            if root == "glassgrad":
                yield rest
        return
    base = node.module or ""
    if node.level:
        parents = package.split(".") if package else []
        if node.level - 1 > len(parents):
            raise ValueError(f"{package}:{node.lineno} climbs out of the package")
        base = ".".join([*parents[: len(parents) - node.level + 1], *([base] if base else [])])
    elif base == "glassgrad" or base.startswith("glassgrad."):
        base = base.removeprefix("glassgrad").lstrip(".")
    else:
        return
    for alias in node.names:
        inner = f"{base}.{alias.name}".lstrip(".")
        yield inner if inner in known else base


def circles(arrows: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the groups of names that reach one another (Tarjan 1972, strongly connected components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for target in sorted(arrows.get(name, ())):
            if target not in index:
                visit(target)
                low[name] = min(low[name], low[target])
            elif target in stack:
                low[name] = min(low[name], index[target])
        if low[name] == index[name]:
            at = stack.index(name)
            group = sorted(stack[at:])
            del stack[at:]
            if len(group) > 1:
                found.append(group)

    for name in sorted(arrows):
        if name not in index:
            visit(name)
    return sorted(found)


# --- the picture ----------------------------------------------------------------------------------

# The rooms from the roof to the ground, and the content of each room that is not the folder of its name.
ROWS: tuple[str, ...] = (
    "cli",
    "tasks",
    "compat lessons train report onnx sklearn",
    "utils models distributions",
    "names optim data doctor",
    "explanation nn",
    "verify compile.view compile.c distributed",
    "func compile",
    "manual compile.source",
    "compile.front compile.native",
    "compile.numpy compile.llvm",
    "compile.plan",
    "engine compile.ir compile.kept",
    "ops scalar drawing",
    "errors",
)
ROOMS = {
    **dict.fromkeys(
        "amp autograd checkpoint fft linalg optimize random serialization sparse special".split(),  # noqa: SIM905 - reads as a line
        "names",
    ),
    **dict.fromkeys(("base", "_version"), "errors"),
    "base.drawing": "drawing",
    "__main__": "cli",
}
WIDTH, ROW, BOX = 900, 58, 30


def room_of(name: str) -> str:
    """Return the room in which a file is drawn: its top folder, and one level more inside `compile`."""
    parts = name.split(".")
    if parts[0] == "compile" and len(parts) > 1 and _is_package(f"compile.{parts[1]}"):
        return f"compile.{parts[1]}"
    return ROOMS.get(".".join(parts[:2])) or ROOMS.get(parts[0], parts[0])


def arrows_between_rooms() -> dict[str, set[str]]:
    """Return the imports between rooms while they are loaded, without those that follow from other arrows."""
    arrows: dict[str, set[str]] = {}
    for one in all_imports():
        source, target = room_of(one.importer), room_of(one.target)
        if one.form == "top" and source and target and source != target:
            arrows.setdefault(source, set()).add(target)
    return {source: {t for t in targets if not _around(arrows, source, t)} for source, targets in arrows.items()}


def _around(arrows: Mapping[str, set[str]], source: str, target: str) -> bool:
    """Return whether a target is also reached through another one."""
    seen: set[str] = set()
    pending = [other for other in arrows[source] if other != target]
    while pending:
        name = pending.pop()
        if name == target:
            return True
        if name not in seen and name != source:
            seen.add(name)
            pending.extend(arrows.get(name, ()))
    return False


def picture() -> str:
    """Return the rooms and the imports between them as SVG."""
    arrows = arrows_between_rooms()
    places: dict[str, tuple[float, float, float]] = {}
    for level, row in enumerate(ROWS):
        names = row.split()
        for column, name in enumerate(names):
            width = 9.0 * len(name) + 26
            center = WIDTH * (2 * column + 1) / (2 * len(names))
            places[name] = (center - width / 2, 14.0 + level * ROW, width)
    drawn = [(s, t) for s, targets in sorted(arrows.items()) for t in sorted(targets)]
    missing = {room for pair in drawn for room in pair} - set(places)
    if missing:
        raise ValueError(f"give these a row in ROWS: {sorted(missing)}")
    lines = [_arrow(places[source], places[target]) for source, target in drawn]
    boxes = [_box(name, *place) for name, place in sorted(places.items())]
    height = ROW * len(ROWS)
    style = (
        "<style>rect{fill:#eef3fb;stroke:#4a6fa5}text{font:14px sans-serif;text-anchor:middle;fill:#1c2733}"
        "path{fill:none;stroke:#8aa0bd}</style>"
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
    return "\n".join([head, style, *lines, *boxes, "</svg>"]) + "\n"


def _arrow(source: tuple[float, float, float], target: tuple[float, float, float]) -> str:
    x, y = source[0] + source[2] / 2, source[1] + BOX
    u, v = target[0] + target[2] / 2, target[1]
    bend = (v - y) / 2
    return f'<path d="M{x:.0f} {y:.0f} C{x:.0f} {y + bend:.0f} {u:.0f} {v - bend:.0f} {u:.0f} {v:.0f}"/>'


def _box(name: str, x: float, y: float, width: float) -> str:
    rect = f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{BOX}" rx="5"/>'
    return f'{rect}<text x="{x + width / 2:.0f}" y="{y + 20:.0f}">{name}</text>'


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Draw which room of the package imports which.")
    parser.add_argument("file", type=Path, help="where to write the picture (SVG)")
    parser.parse_args().file.write_text(picture(), encoding="utf-8")
