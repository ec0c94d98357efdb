"""The limits of the house: the files in a folder, the names at the top, and the suppressed checks.

The limits fall with the source and never rise: if a count has fallen, lower its limit.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

from tests.repo.test_layering import found_circles
from tools.sources import comments, python_files, text_of
from tools.structure import PACKAGE

MOST_FILES = 20
MOST_FILES_OF_A_ROOM_OF_LLVM = 15
# Folders with more files: how many at most, and why.
FAMILIES: dict[str, tuple[int, str]] = {
    "errors": (25, "a file for each area of the messages"),
    "ops": (60, "a file for each family of primitives"),
    "optim": (27, "a file for each optimizer"),
}
# Files at the top that Python and the build read.
NOT_NAMES = {"__init__", "__main__", "_version"}
# The house wants 18. Of these, 11 are one-file namespaces with PyTorch's or SciPy's names: type checkers find
# `import glassgrad.fft` only where the file is, so a room with a finder would take their types away. `base`, `cli`,
# `engine`, `ops` and `tasks` are no names of users'.
MOST_NAMES = 36
MOST_CIRCLES, LONGEST_CIRCLE = 4, 3
# Comments that silence a tool, and annotations that are `Any`, in src.
MOST = {"fmt: skip": 3, "noqa": 71, "type: ignore": 39, "Any": 2253}


def folders() -> Counter[str]:
    """Count the Python files of each folder of the package."""
    return Counter(str(file.parent.relative_to(PACKAGE)) for file in python_files("src"))


def test_a_folder_has_few_files() -> None:
    crowded = {
        folder: count for folder, count in folders().items() if count > FAMILIES.get(folder, (MOST_FILES, ""))[0]
    }
    assert not crowded, f"make rooms of these: {crowded}"


def test_the_list_of_families_is_of_today() -> None:
    counts = folders()
    stale = {
        folder: counts[folder] for folder, (most, _) in FAMILIES.items() if not MOST_FILES < counts[folder] <= most
    }
    assert not stale, f"take these out or lower their limits: {stale}"
    assert all(reason for _, reason in FAMILIES.values())


def test_the_rooms_of_llvm_are_small() -> None:
    crowded = {
        folder: count
        for folder, count in folders().items()
        if folder.startswith("compile/llvm/") and count > MOST_FILES_OF_A_ROOM_OF_LLVM
    }
    assert not crowded


def top() -> set[str]:
    """Return the names at the top of the package."""
    found = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    return found - NOT_NAMES


def test_few_names_stand_at_the_top() -> None:
    assert len(top()) <= MOST_NAMES, sorted(top())


def test_private_helpers_live_in_a_room() -> None:
    assert [name for name in sorted(top()) if name.startswith("_")] == []


def test_circles_are_few_and_small() -> None:
    found = found_circles()
    assert len(found) <= MOST_CIRCLES, found
    assert max(map(len, found), default=0) <= LONGEST_CIRCLE, found


def annotations(tree: ast.AST) -> list[ast.expr]:
    """Return the annotations of a source."""
    found: list[ast.expr | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.append(node.returns)
        elif isinstance(node, ast.arg | ast.AnnAssign):
            found.append(node.annotation)
    return [one for one in found if one is not None]


def anys(text: str) -> int:
    """Count the annotations of a source that are `Any`."""
    return sum(isinstance(one, ast.Name) and one.id == "Any" for one in annotations(ast.parse(text)))


def silenced(text: str) -> Counter[str]:
    """Count the comments of a source that silence a tool."""
    kinds = (re.match(r"#\s*(fmt: skip|noqa|type: ignore)\b", comment) for _, comment in comments(text))
    return Counter(found[1] for found in kinds if found)


@cache
def debts() -> Counter[str]:
    """Count what is silenced in src, and `Any`."""
    found: Counter[str] = Counter()
    for file in (*python_files("src"), *sorted(Path(PACKAGE).rglob("*.pyi"))):
        found += silenced(text_of(file))
        if file.suffix == ".py":
            found["Any"] += anys(text_of(file))
    return found


def test_debts_only_fall() -> None:
    over = {kind: (debts()[kind], most) for kind, most in MOST.items() if debts()[kind] > most}
    assert not over, f"mend what they silence; do not raise the limits: {over}"


def test_the_counts_see_what_they_count() -> None:
    text = "def f(x: Any, *y: list[Any]) -> Any:\n    z: list[Any] = []  # noqa: F841 - a test\n    return cast(Any, z)"
    assert anys(text) == 2
    assert silenced(text) == {"noqa": 1}
    assert silenced("x = 1  # fmt: skip  # a table\ny = '# noqa'\nz = f()  # type: ignore[misc]  # a test\n") == {
        "fmt: skip": 1,
        "type: ignore": 1,
    }
