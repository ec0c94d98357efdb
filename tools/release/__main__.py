"""Make a release in `dist/`: `python -m tools.release`; docs/release.md explains each step."""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.release import archives, checks, environments, sbom  # noqa: E402 - found by the line above

DIST = ROOT / "dist"


def main() -> None:
    """Build, check, install, use, list; end with 1 at the first step that fails."""
    parser = argparse.ArgumentParser(prog="make release", description="Make a release in dist/.")
    parser.add_argument(
        "--python", default=",".join(environments.VERSIONS), help="versions to install under, by commas"
    )
    parser.add_argument("--dirty", action="store_true", help="build the last commit though the tree has changes")
    parser.add_argument("--commit", default="HEAD", help="what to build")
    given = parser.parse_args()
    began = time.monotonic()
    check_tree(given.dirty)
    shutil.rmtree(DIST, ignore_errors=True)
    report = Report()
    with tempfile.TemporaryDirectory(prefix="glassgrad-release-") as folder:
        room = Path(folder)
        built = archives.build_twice(given.commit, room, report.say)
        DIST.mkdir()
        for archive in built.files:
            shutil.copy2(archive, DIST)
        wheel, source = (DIST / archive.name for archive in built.files)
        checks.run(wheel, source, built.tree, report.say)
        parts = environments.use(wheel, built.tree, room, given.python.split(","), report.say)
        if parts is None:
            raise SystemExit("no Python was found to install the wheel under: nothing of it was used")
        bill = sbom.write(DIST, wheel, source, parts, built.seconds)
        report.say(f"bill of materials: {bill.name}, {len(parts)} packages")
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in sorted(DIST.iterdir())]
    (DIST / "SHA256SUMS").write_text("\n".join(sums) + "\n", encoding="utf-8")
    report.say(f"SHA256SUMS: {len(sums)} files")
    print(f"dist/ is ready after {time.monotonic() - began:.0f} s; nothing was published (docs/release.md, step 6)")
    (DIST / "release.txt").write_text("\n".join(report.lines) + "\n", encoding="utf-8")


class Report:
    """Prints what was done, and keeps it for dist/release.txt."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        """Print a line and keep it."""
        self.lines.append(line)
        print(line, flush=True)


def check_tree(dirty: bool) -> None:
    """End unless everything is committed: a release is built from a commit, not from what lies about."""
    found = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode:
        raise SystemExit("a release is built from a commit, and this is no checkout of git")
    if found.stdout and not dirty:
        raise SystemExit(f"these changes are not committed:\n{found.stdout}Commit them, or build without: --dirty")


if __name__ == "__main__":
    main()
