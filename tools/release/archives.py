"""Build wheel and source archive twice, under different circumstances, and compare the bytes.

Each build starts from its own copy of the commit, in a folder of another name, with other times of files, another mask,
time zone, language and seed of hashes. Equal bytes then mean that anybody who builds the commit gets this release.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Circumstances(NamedTuple):
    """What differs between two builds, and must not matter."""

    folder: str
    mask: int
    environment: dict[str, str]
    age: int  # seconds of the files, since 1970


CIRCUMSTANCES = (
    Circumstances("one", 0o022, {"TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "1"}, 1_600_000_000),
    Circumstances("another place", 0o077, {"TZ": "Asia/Tokyo", "LC_ALL": "C", "PYTHONHASHSEED": "2"}, 1_700_000_000),
)


class Built(NamedTuple):
    """Wheel and source archive, the copy of the commit they come from, and the time of the commit."""

    files: tuple[Path, Path]
    tree: Path
    seconds: int


def build_twice(commit: str, room: Path, say: Callable[[str], None]) -> Built:
    """Build a commit under both circumstances, and end unless the bytes are equal."""
    seconds = int(_git("show", "-s", "--format=%ct", commit))
    say(f"commit {_git('rev-parse', commit)} of {_git('show', '-s', '--format=%cI', commit)}")
    made = [_built(commit, room, seconds, one) for one in CIRCUMSTANCES]
    for first, second in zip(*(one.files for one in made), strict=True):
        if first.name != second.name or first.read_bytes() != second.read_bytes():
            raise SystemExit(f"two builds of {first.name} differ: {_difference(first, second)}")
        digest = hashlib.sha256(first.read_bytes()).hexdigest()
        say(f"built twice, equal bytes: {first.name}, {first.stat().st_size:,} bytes, sha256 {digest}")
    return made[0]


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _built(commit: str, room: Path, seconds: int, how: Circumstances) -> Built:
    tree = room / how.folder / "tree"
    tree.mkdir(parents=True)
    packed = room / how.folder / "commit.tar"
    subprocess.run(["git", "archive", "--format=tar", f"--output={packed}", commit], cwd=ROOT, check=True)
    with tarfile.open(packed) as archive:
        archive.extractall(tree, filter="data")
    for path in tree.rglob("*"):
        os.utime(path, (how.age, how.age))
    target = room / how.folder / "dist"
    # The backend is the one that constraints.txt pins, in the environment that runs this.
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target), str(tree)]
    environment = {**os.environ, **how.environment, "SOURCE_DATE_EPOCH": str(seconds)}
    process = subprocess.run(
        command, env=environment, umask=how.mask, capture_output=True, text=True, check=False, cwd=room
    )
    if process.returncode:
        raise SystemExit(f"the build failed:\n{process.stdout[-2000:]}{process.stderr[-2000:]}")
    (wheel,), (source,) = target.glob("*.whl"), target.glob("*.tar.gz")
    return Built((wheel, source), tree, seconds)


def _difference(first: Path, second: Path) -> str:
    """Return where two archives differ: the first byte, or their lengths."""
    one, other = first.read_bytes(), second.read_bytes()
    place = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return f"{len(one):,} and {len(other):,} bytes, the first difference at {place:,}"
