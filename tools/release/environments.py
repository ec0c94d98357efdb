"""Install the wheel under every Python that is found, and use it there: `smoke.py`, with and without llvmlite.

An environment lies in an empty folder and sees nothing of the checkout. Versions of dependencies are the newest pip
finds, as for a stranger who installs the package today.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.14t")
OPTIONAL = ("scipy", "llvmlite", "safetensors", "ml_dtypes", "tomli_w", "rich", "typer")
_ASK = """
import sys, sysconfig
print(f"{sys.version_info[0]}.{sys.version_info[1]}" + "t" * bool(sysconfig.get_config_var("Py_GIL_DISABLED")))
"""


class Setting(NamedTuple):
    """An installation to try: what is taken away, and the parts of `smoke.py` that run."""

    name: str
    removed: tuple[str, ...]
    parts: tuple[str, ...]


SETTINGS = (
    Setting("as installed", (), ("inventory", "library", "readme", "quickstart", "command")),
    Setting("without llvmlite", ("llvmlite",), ("library", "readme", "quickstart", "command")),
    Setting("NumPy alone", OPTIONAL, ("numpy_alone",)),
)


def use(
    wheel: Path, tree: Path, room: Path, versions: Sequence[str], say: Callable[[str], None]
) -> list[dict[str, Any]] | None:
    """Use the wheel under each version; return what the first environment holds, None if no Python was found."""
    parts = None
    pythons = {version: found(version) for version in versions}
    for version, python in pythons.items():
        if python is None:
            continue
        environment = room / f"python-{version}"
        try:
            inside = install(python, environment, wheel)
        except SystemExit as error:
            if not version.endswith("t"):
                raise
            # A free-threaded Python takes no wheel of the stable interface; a dependency may have no other one yet.
            say(f"Python {version}: not installed, {str(error).strip().splitlines()[-1]}")
            continue
        for setting in SETTINGS:
            if setting.removed:
                _run([inside, "-m", "pip", "uninstall", "--quiet", "--yes", *setting.removed], room)
            empty = room / f"empty {version} {setting.name}"
            empty.mkdir()
            output = {part: smoke(inside, part, tree, empty) for part in setting.parts}
            if parts is None and "inventory" in output:
                parts = json.loads(output["inventory"])
            told = [text.splitlines()[-1] for part, text in output.items() if part != "inventory"]
            say(f"Python {version}, {setting.name}: " + "; ".join(told))
        shutil.rmtree(environment)
    if missing := [version for version, python in pythons.items() if python is None]:
        say(
            f"NOT TRIED under Python {', '.join(missing)}: no such interpreter was found here. The workflow of the"
            " release tries them all before it publishes (docs/release.md)."
        )
    return parts


def found(version: str) -> str | None:
    """Return a Python of a version ("3.14t": free-threaded) that runs: by its name, or kept by pyenv or uv."""
    homes = [Path.home() / ".pyenv" / "versions", Path.home() / ".local" / "share" / "uv" / "python"]
    kept = [path for home in homes if home.is_dir() for path in sorted(home.glob("*/bin/python3"), reverse=True)]
    for candidate in (f"python{version}", sys.executable, *map(str, kept)):
        try:
            process = subprocess.run([candidate, "-c", _ASK], capture_output=True, text=True, check=False)
        except OSError:
            continue
        if process.returncode == 0 and process.stdout.strip() == version:
            return candidate
    return None


def install(python: str, environment: Path, wheel: Path) -> str:
    """Make an environment with the wheel in it; return its Python."""
    _run([python, "-m", "venv", str(environment)], environment.parent)
    inside = environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    _run(
        [str(inside), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)], environment.parent
    )
    return str(inside)


def smoke(python: str, part: str, tree: Path, folder: Path) -> str:
    """Run a part of `smoke.py` in a folder, and return what it prints; end with its output if it fails."""
    return _run([python, "-I", "-W", "error", str(HERE / "smoke.py"), part, str(tree)], folder)


def _run(command: Sequence[str], folder: Path) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GLASSGRAD"))}
    kept["GLASSGRAD_CACHE_DIR"] = str(folder / "cache")
    process = subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, check=False)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}\nfailed:\n{process.stdout[-3000:]}{process.stderr[-3000:]}")
    return process.stdout


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="glassgrad-use-") as room:
        if use(Path(sys.argv[1]).resolve(), HERE.parents[1], Path(room), sys.argv[2:] or VERSIONS, print) is None:
            sys.exit("no Python was found to install the wheel under")
