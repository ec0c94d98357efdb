"""The library where Linux's own things are missing: macOS and Windows as far as one process can pretend them.

docs/install.md tells what was run on which system, and what was only read.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.systems import pretend

ROOT = Path(__file__).resolve().parents[2]
# Processes that are started anew need the system itself, so pretending Windows has no workers.
PARTS = {
    "macos": ["compiled", "files", "trainer", "command", "workers", "watched"],
    "windows": ["compiled", "files", "trainer", "command", "watched"],
}
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what is taken away is Linux's")


def started(system: str, program: Path, *arguments: str, cache: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
        "GLASSGRAD_CACHE_DIR": str(cache),
    }
    command = [sys.executable, "-m", "tests.systems.pretend", system, str(program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)


def works(system: str, parts: list[str], folder: Path) -> None:
    """Run parts twice: the second process finds the native code of the first."""
    for again in ("first", "second"):
        (folder / again).mkdir()
        done = started(system, Path(__file__).with_name("work.py"), str(folder / again), *parts, cache=folder / "cache")
        assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
        assert [line for line in done.stdout.splitlines() if line.startswith("works: ")] == [
            f"works: {one}" for one in parts
        ]
    assert list((folder / "cache" / "native").glob("*.native"))


@pytest.mark.parametrize("system", pretend.SYSTEMS)
def test_native_code_and_files(system: str, tmp_path: Path) -> None:
    works(system, ["compiled", "files"], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("system", pretend.SYSTEMS)
def test_a_days_work(system: str, tmp_path: Path) -> None:
    works(system, PARTS[system], tmp_path)


@pytest.mark.parametrize("system", pretend.SYSTEMS)
def test_what_is_pretended_is_seen(system: str, tmp_path: Path) -> None:
    """Otherwise the tests above would say nothing."""
    program = tmp_path / "look.py"
    program.write_text(
        "import os, sys, platform\n"
        "from pathlib import Path\n"
        "print(sys.platform, platform.system(), hasattr(os, 'sched_getaffinity'), Path('/proc/meminfo').exists())\n"
        "from glassgrad.compile.llvm.module import support\n"
        "text = support.support_text()\n"
        "print('usleep' in text, 'SwitchToThread' in text, '@syscall' in text)\n"
        "a = Path(sys.argv[1]); (a / 'x').write_text('1\\n'); (a / 'y').write_text('2\\n')\n"
        "with open(a / 'x') as file:\n"
        "    try:\n"
        "        (a / 'y').replace(a / 'x'); print('replaced')\n"
        "    except PermissionError:\n"
        "        print('refused')\n"
        "try:\n"
        "    import fcntl; print('fcntl')\n"
        "except ImportError:\n"
        "    print('no fcntl')\n",
        encoding="utf-8",
    )
    done = started(system, program, str(tmp_path), cache=tmp_path / "cache")
    wanted = {
        "macos": ["darwin Darwin False False", "True False False", "replaced", "fcntl"],
        "windows": ["win32 Windows False False", "False True False", "refused", "no fcntl"],
    }
    assert done.stdout.splitlines() == wanted[system], done.stderr


# --- consoles ---------------------------------------------------------------------------------------

SHOWN = """
import glassgrad as gg, sys
from glassgrad import nn
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
x = gg.ones(2, 3)
print(model)
print(nn.summary(model, (2, 3)))
print(gg.explain(lambda x: model(x).sum(), x))
print(gg.draw(lambda x: model(x).sum(), x))
step = gg.compile(lambda x: model(x).tanh().sum(), backend="numpy")
step(x)
print(step.source)
print(step.graph)
print(gg.verify.gradcheck(lambda x: x.tanh(), x.double()))
gg.doctor.examine(model, (x, gg.tensor([0, 1])), nn.functional.cross_entropy, seconds=0.2)
print("all shown")
"""


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "cp437"])
def test_what_is_printed_can_be_printed(encoding: str, tmp_path: Path) -> None:
    """A program that prints what we return does not end by the code page of its console."""
    program = tmp_path / "shown.py"
    program.write_text(SHOWN, encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "dumb"}
    done = subprocess.run([sys.executable, str(program)], capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    assert done.stdout.decode(encoding).splitlines()[-1] == "all shown"


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["info"], ["train", "moons", "--steps", "20", "--run-dir", "run"], ["lesson"], ["explain", "--help"]],
    ids=" ".join,
)
def test_commands_on_a_console_of_windows(arguments: list[str], tmp_path: Path) -> None:
    environment = {
        **os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0", "LC_ALL": "C", "TERM": "dumb",
        "PYTHONPATH": os.pathsep.join(sys.path), "GLASSGRAD_CACHE_DIR": str(tmp_path / "cache"), "MPLBACKEND": "Agg",
    }  # fmt: skip  # a table
    command = [sys.executable, "-m", "glassgrad", *arguments]
    done = subprocess.run(command, capture_output=True, env=environment, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr.decode("cp1252")[-2000:]
    assert len(done.stdout.decode("cp1252")) > 100
    assert b"Traceback" not in done.stderr
