"""The checkers of packages: the project's metadata, the archives' metadata, and what the wheel holds."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

BINARY = {".so", ".pyd", ".dylib", ".dll"}


def run(wheel: Path, source: Path, tree: Path, say: Callable[[str], None]) -> None:
    """Run every checker, and end with its output if one objects.

    Args:
        wheel: the wheel.
        source: the source archive.
        tree: the commit that they were built from.
        say: prints a line of the report.
    """
    commands = {
        "validate-pyproject": [sys.executable, "-m", "validate_pyproject", str(tree / "pyproject.toml")],
        "twine check --strict": [sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(source)],
        # W004: lessons are programs whose names begin with a number, and nobody imports them.
        "check-wheel-contents": [sys.executable, "-m", "check_wheel_contents", "--ignore", "W004", str(wheel)],
    }
    for name, command in commands.items():
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        if process.returncode:
            raise SystemExit(f"{name} objects:\n{process.stdout}{process.stderr}")
        say(f"{name}: no objection")
    say(f"abi3audit: {_without_code(wheel)}")


def _without_code(wheel: Path) -> str:
    """Say why the checker of stable interfaces has nothing to do; end if the wheel brings compiled files."""
    with zipfile.ZipFile(wheel) as archive:
        compiled = [name for name in archive.namelist() if Path(name).suffix in BINARY]
    if compiled or not wheel.name.endswith("-py3-none-any.whl"):
        raise SystemExit(f"the wheel is to be pure Python, and holds {compiled or wheel.name}")
    return "does not apply, the wheel is pure Python"
