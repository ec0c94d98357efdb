"""Set up `.venv` for one purpose, and write its stamp: `bootstrap.py run|dev|docs|torch|bench|mutants|release`.

The Makefile calls this when a stamp is older than pyproject.toml or constraints.txt. It uses only the standard library,
because it runs before anything is installed. It handles three cases that a plain recipe would get wrong: two `make`s at
once (a file lock), an interrupted install (the stamp is written last, so the next run continues), and peers that are
not available for this machine (it names them and leaves them out; only benchmarks and comparisons need them).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
CONSTRAINTS = ROOT / "constraints.txt"
INPUTS = (ROOT / "pyproject.toml", CONSTRAINTS)
BACKEND = ("hatchling", "editables")
# The packages that `import torch` loads, without the CUDA packages that its metadata also requires.
TORCH_NEEDS = ("filelock", "fsspec", "jinja2", "networkx", "sympy", "typing-extensions", "setuptools")


def stamp_of(purpose: str) -> Path:
    """Return the file by whose age make decides whether `purpose` is set up."""
    return VENV / f".stamp-{purpose}"


def is_current(purpose: str) -> bool:
    """Return whether the stamp is younger than all its dependencies and was written for this folder."""
    stamp = stamp_of(purpose)
    if not stamp.exists() or not stamp.read_text().startswith(str(ROOT)):
        return False
    return all(stamp.stat().st_mtime >= source.stat().st_mtime for source in INPUTS)


@contextlib.contextmanager
def locked() -> Iterator[None]:
    """Let only one process at a time change `.venv`."""
    with (ROOT / ".venv.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another make is setting up .venv; waiting for it", flush=True)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def works(*arguments: str) -> bool:
    """Return whether the environment's Python can run this."""
    try:
        return subprocess.run([PYTHON, *arguments], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def make_venv() -> None:
    """Create the environment; recreate it if a moved folder, a removed Python or an interruption broke it."""
    if works("-m", "pip", "--version"):
        return
    print(f"creating .venv with Python {sys.version.split()[0]} ({sys.executable})", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=True)


def pip(*arguments: str, check: bool = True) -> bool:
    """Run pip with the pinned versions; show its errors and not its progress."""
    command = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", CONSTRAINTS, *arguments]
    process = subprocess.run(command, check=False, capture_output=True, text=True)
    if process.returncode == 0:
        return True
    if check:
        lines = [line for line in process.stderr.splitlines() if "WARNING" not in line]
        raise SystemExit("\n".join([*lines, f"pip could not install {' '.join(arguments)}; run make again to resume"]))
    return False


# The extras and groups of pyproject.toml for each purpose; the demo and the tests need the figures.
EXTRAS = {
    "run": ("pictures",),
    "dev": ("pictures", "dev"),
    "docs": ("docs",),
    "mutants": ("mutants",),
    "release": ("release",),
}


def lists() -> dict[str, list[str]]:
    """The packages of every extra and group."""
    pyproject = tomllib.loads(INPUTS[0].read_text())
    return {**pyproject["project"]["optional-dependencies"], **pyproject["dependency-groups"]}


def install_project(extras: tuple[str, ...]) -> None:
    """Install glassgrad itself, editable, with extras; without isolation, because its build backend is also pinned.

    A separate call installs its requirements first: a package without a wheel requires its own build backend.
    """
    print(f"installing glassgrad[{','.join(extras)}] into .venv (first time: a minute or two)", flush=True)
    project = tomllib.loads(INPUTS[0].read_text())["project"]
    pip(*project["dependencies"], *[one for extra in extras for one in lists()[extra]])
    pip(*BACKEND)
    pip("--no-build-isolation", "--no-deps", "-e", str(ROOT))


def torch_wheel(pin: str) -> str:
    """Return the file name that pip would install for `pin`, or '' if there is none; download only its metadata."""
    options = ["--quiet", "--dry-run", "--no-deps", "--ignore-installed", "--retries", "1", "--report", "-"]
    command = [PYTHON, "-m", "pip", "install", *options, pin]
    process = subprocess.run(command, check=False, capture_output=True, text=True)
    if process.returncode != 0:
        return ""
    report = json.loads(process.stdout[process.stdout.index("{") :])
    return str(report["install"][0]["download_info"]["url"]).rsplit("/", 1)[-1].replace("%2B", "+")


def install_torch() -> str:
    """Install PyTorch as the tests' oracle if a small build for CPUs is available; return one line about it."""
    pin = next(line for line in CONSTRAINTS.read_text().split() if line.startswith("torch=="))
    if works("-c", "import torch; torch.ones(1)"):
        return "PyTorch is there already"
    wheel = torch_wheel(pin)
    if not wheel:
        return f"{pin} cannot be had for this Python"
    if sys.platform == "linux" and "+cpu" not in wheel and os.environ.get("GLASSGRAD_TORCH") != "any":
        return f"{pin} would bring gigabytes of CUDA here; install its CPU build into .venv yourself to have it"
    print(f"installing {wheel} as the tests' oracle", flush=True)
    installed = pip("--no-deps", pin, check=False) and pip(*TORCH_NEEDS, check=False)
    if installed and works("-c", "import torch; torch.ones(1)"):
        return f"{wheel} works"
    subprocess.run([PYTHON, "-m", "pip", "uninstall", "--quiet", "--yes", "torch"], check=False)
    return f"{wheel} does not work here and was removed again"


def install_peers() -> str:
    """Install the libraries that benchmarks compare with: all in one call, or, if that fails, the available ones."""
    peers = [peer for peer in lists()["bench"] if re.split(r"[<>=!~ ]", peer)[0] != "torch"]
    print("installing the benchmarks' peers:", ", ".join(peers), flush=True)
    if pip(*peers, check=False):
        return "all peers installed"
    missing = [peer for peer in peers if not pip(peer, check=False)]
    return f"peers that cannot be had here: {', '.join(missing)}"


def set_up(purpose: str) -> None:
    """Bring one purpose up to date and stamp it."""
    make_venv()
    note = ""
    if purpose in EXTRAS:
        install_project(EXTRAS[purpose])
    elif purpose == "torch":
        note = install_torch()
        if not works("-c", "import torch"):
            note += "; comparisons with PyTorch will be skipped (try again: rm .venv/.stamp-torch)"
    else:
        note = install_peers()
    if note:
        print(note, flush=True)
    stamp_of(purpose).write_text(f"{ROOT}\n{note}\n")


def main() -> None:
    """Set up the purposes named on the command line, in order."""
    with locked():
        for purpose in sys.argv[1:]:
            if not is_current(purpose):
                set_up(purpose)


if __name__ == "__main__":
    main()
