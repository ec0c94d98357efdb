"""Run tests with other dependencies: `python3 tools/dependencies.py oldest|newest [arguments of pytest]`.

The environment lies in `build/oldest` or `build/newest`, and is made anew when pyproject.toml changes. "oldest" has the
least version that pyproject.toml allows of everything an installation has, and of the figures; "newest" what pip finds
today. What only the tests need is newest in both, as far as it works with the rest. Versions are printed first.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Of the group `dev`: what the suite cannot run without. Tests of the rest skip.
NEEDED = (
    *("pytest", "pytest-xdist", "hypothesis", "einops", "array-api-compat", "psutil", "cloudpickle", "packaging"),
    *("jedi", "hatchling", "scikit-learn"),
)
# Tests with printed output of other versions, or with tools that are not installed here.
LEFT_OUT = (
    "tests/docs/test_build.py",
    "tests/docs/test_site.py",
    "tests/repo/test_setup.py",
    "tests/repo/test_families.py",
)
# Old matplotlib and typer call what the pyparsing and click of today deprecate.
QUIET = ("-W", "ignore::DeprecationWarning", "-W", "ignore::PendingDeprecationWarning")


def runtime() -> list[str]:
    """Return what an installation with figures asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [*project["dependencies"], *project["optional-dependencies"]["pictures"]]


def pinned(requirement: str) -> str:
    """Return a requirement of its least version.

    Example:
        >>> pinned("numpy>=2.0")
        'numpy==2.0'
    """
    name, _, least = requirement.partition(">=")
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", name) or not re.fullmatch(r"[0-9.]+", least):
        raise SystemExit(f"{requirement!r} of pyproject.toml is to name a least version, and nothing else")
    return f"{name}=={least}"


def asked_for(which: str) -> list[str]:
    """Return what to install: least versions for "oldest", the requirements as they are for "newest"."""
    return [pinned(one) for one in runtime()] if which == "oldest" else runtime()


def environment(which: str) -> Path:
    """Make the environment, unless it is up to date; return its Python."""
    folder = ROOT / "build" / which
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    inputs = (*asked_for(which), *NEEDED, sys.version, str(folder))
    stamp, wanted = folder / "stamp", hashlib.sha256("\n".join(inputs).encode()).hexdigest()
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    print(f"making build/{which} with Python {sys.version.split()[0]}", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # One call: pip chooses versions of the tests' tools that go with the pinned ones.
    subprocess.run([*install, *asked_for(which), *NEEDED], check=True)
    subprocess.run([*install, "--no-deps", "-e", str(ROOT)], check=True)
    stamp.write_text(wanted, encoding="utf-8", newline="\n")
    return python


def versions(python: Path) -> str:
    """Return what the environment has of what an installation asks for."""
    names = [re.split(r"[<>=]", one)[0] for one in runtime()]
    code = f"import importlib.metadata as m; print(*[f'{{n}} {{m.version(n)}}' for n in {names!r}], sep=', ')"
    return subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    """Make the environment, print its versions, run the tests."""
    if len(sys.argv) < 2 or sys.argv[1] not in {"oldest", "newest"}:
        sys.exit("give oldest or newest, and then arguments of pytest")
    which, *rest = sys.argv[1:]
    python = environment(which)
    print(f"Python {sys.version.split()[0]} with {versions(python)}", flush=True)
    without = [] if any(".py" in word for word in rest) else [f"--ignore={path}" for path in LEFT_OUT]
    command = [str(python), "-m", "pytest", *QUIET, *without, *rest]
    sys.exit(subprocess.run(command, cwd=ROOT, check=False).returncode)


if __name__ == "__main__":
    main()
