"""The installed package: the version in one place, complete archives, and each dependency only where it is needed."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import glassgrad as gg

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
REQUIRED = {re.split(r"[<>=]", one)[0]: one for one in PROJECT["dependencies"]}
HIDES = """
import importlib.abc, runpy, sys
class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
import importlib.util
look = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name.partition(".")[0] in {hidden!r} else look(name, *rest)
runpy.run_path({program!r}, run_name="__main__")
"""


def test_numpy_alone_trains_and_says_what_needs_more() -> None:
    hidden = {*REQUIRED, "matplotlib", "pygments"} - {"numpy"}
    program = str(ROOT / "tests" / "repo" / "numpy_alone.py")
    code = HIDES.format(hidden=hidden, program=program)
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert process.stdout == "NumPy alone trains\n", process.stderr


@pytest.mark.parametrize("package", ["typer", "matplotlib"])
def test_the_command_names_the_package_it_lacks(package: str, tmp_path: Path) -> None:
    """Without a way to draw, a training succeeds all the same."""
    program = tmp_path / "command.py"
    arguments = ["train", "xor", "--steps", "2", "--out", str(tmp_path / "run")]
    program.write_text(f"import sys\nfrom glassgrad.cli import run\nsys.exit(run({arguments!r}))\n")
    code = HIDES.format(hidden={package}, program=str(program))
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    if package == "typer":
        assert process.returncode == 1
        assert "the command glassgrad needs typer, which is not installed\nNext: pip install typer" in process.stderr
    else:
        assert process.returncode == 0, process.stderr
        assert "no picture: pictures need matplotlib" in process.stdout
        assert "pip install 'glassgrad[pictures]'" in process.stdout


def test_the_version_is_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    recipe = (ROOT / "conda" / "recipe.yaml").read_text()
    assert PROJECT["dynamic"] == ["version", "readme"]
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [gg.__version__]
    assert re.findall(r'^  version: "(.+)"$', recipe, re.MULTILINE) == [gg.__version__]


def test_the_conda_recipe_asks_for_what_the_package_asks_for() -> None:
    recipe = (ROOT / "conda" / "recipe.yaml").read_text()
    run = recipe.split("  run:\n")[1].split("  run_constraints:")[0]
    asked = {line.strip("- ").replace("-", "_").replace(" ", "") for line in run.splitlines() if "python" not in line}
    assert asked - {""} == set(REQUIRED.values())


def test_archives_hold_what_they_need(tmp_path: Path) -> None:
    """The source archive makes demo, tests and documentation; the wheel brings types, the page and the data."""
    build = f"from hatchling import build as b; b.build_sdist({str(tmp_path)!r}); b.build_wheel({str(tmp_path)!r})"
    process = subprocess.run([sys.executable, "-c", build], capture_output=True, text=True, cwd=ROOT, check=False)
    assert process.returncode == 0, process.stderr
    (archive,) = tmp_path.glob("*.tar.gz")
    assert archive.name == f"glassgrad-{gg.__version__}.tar.gz"
    with tarfile.open(archive) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    tracked = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=ROOT, check=False)
    if tracked.returncode == 0:  # a checkout, not an unpacked archive
        kept = [name for name in tracked.stdout.splitlines() if not name.startswith(".")]
        assert sorted(set(kept) - names) == []
    assert not [name for name in names if "node_modules" in name or name.endswith(".pyc")]
    (wheel,) = tmp_path.glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    package = ROOT / "src" / "glassgrad"
    own = {f"glassgrad/{path.relative_to(package).as_posix()}" for path in package.rglob("*") if path.is_file()}
    assert sorted({name for name in own if "__pycache__" not in name} - inside) == []
    assert not [name for name in inside if name.startswith(("tests", "tools", "docs"))]
    shown = zipfile.ZipFile(wheel).read(f"glassgrad-{gg.__version__}.dist-info/METADATA").decode().partition("\n\n")[2]
    assert shown.startswith("# glassgrad\n")
    assert "| learn how backpropagation works | seventeen lessons: `glassgrad lesson`, `glassgrad exercise` |" in shown
    assert re.findall(r"\]\((?!https?:)[^)]*\)", shown) == [], "they lead nowhere outside of the repository"
