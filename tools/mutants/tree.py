"""A copy of the working tree in which mutants are tried, one after the other."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from tools.mutants.making import Mutant
from tools.mutants.pieces import PACKAGE, ROOT, Piece
from tools.mutants.running import FAILED, PASSED, WAIT, Reach, Runner, Tracer, Warm, in_child, limited


class Tree:
    """Tries mutants in a process that imported the package once, or in a new one where an import would differ."""

    def __init__(self, folder: Path, piece: Piece) -> None:
        self.folder, self.piece, self.log = folder, piece, folder / "log.txt"
        self.package = folder / PACKAGE
        self.link: Any = None
        self.reach = Reach()
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        for name in subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0"):
            if name and (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        for compiled in [*ROOT.glob("src/**/__pycache__"), *ROOT.glob("tests/**/__pycache__")]:
            shutil.copytree(compiled, folder / compiled.relative_to(ROOT), dirs_exist_ok=True)

    def start(self) -> Reach:
        """Run the tests on what is not mutated; ends the program where they fail."""
        context = multiprocessing.get_context("fork")
        self.link, other = context.Pipe()
        server = context.Process(target=self._serve, args=(other,), daemon=True)
        server.start()
        other.close()
        with contextlib.suppress(EOFError):
            self.reach = self.link.recv()
        if not self.reach or not self.reach.seconds:
            said = self.log.read_text(encoding="utf-8", errors="replace")[-3000:] if self.log.exists() else ""
            raise SystemExit(f"the tests fail without a mutant:\n{said}")
        for file in self.piece.files():  # two mutants of one second and one length would share it
            path = self.package / file
            for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
                stale.unlink()
        return self.reach

    def try_out(self, mutant: Mutant) -> str:
        """Return "killed", "timed out", "survived", "not reached", or "no mutant" where there is nothing to try."""
        self.link.send((mutant.file, mutant.source, mutant.text, mutant.span[0] + 1))
        outcome = str(self.link.recv())
        return self._imported_again(mutant) if outcome == "import again" else outcome

    def _imported_again(self, mutant: Mutant) -> str:
        """Try a mutant in a process that imports the changed file, the fastest tests first.

        The first file of the piece is tried alone before, as collecting the others takes seconds.
        """
        files = [one for one in self.piece.tests if one.endswith(".py")]
        path = self.package / mutant.file
        path.write_text(mutant.text, encoding="utf-8")
        try:
            ended = self._ended(files[:1])
            if ended == PASSED:
                ended = self._ended(files)
        finally:
            path.write_text(mutant.source, encoding="utf-8")
        return "timed out" if ended is None else "survived" if ended == PASSED else "killed"

    def _ended(self, files: Sequence[str]) -> int | None:
        """Import everything in a child and run the tests of some files; return how that ended."""
        seconds = {name: taken for name, taken in self.reach.seconds.items() if name.split("::")[0] in files}
        names = sorted(seconds, key=lambda name: seconds[name])
        others = [one for one in self.piece.tests if one.endswith(".py") and one not in files]

        def use(runner: Runner) -> None:
            runner.run(names, lambda name: limited(seconds[name]))

        return in_child(self.folder, lambda: self._pytest(use, without=others), 2 * WAIT + 20 * sum(seconds.values()))

    def _serve(self, link: Any) -> None:
        warm = Warm(link, self.folder, self.package, self.piece.files())
        tracer = Tracer(warm.files)

        def use(runner: Runner) -> None:
            sys.settrace(None)
            warm.serve(runner, tracer.places())

        with tracer:
            self._pytest(use, write_bytecode=True)

    def _pytest(
        self, use: Callable[[Runner], None], *, write_bytecode: bool = False, without: Collection[str] = ()
    ) -> None:
        """Collect the tests of the piece in the copy, but for those in some files, and hand them to `use`."""
        with (self.folder / "output.txt").open("w") as output:
            for stream in (1, 2):
                os.dup2(output.fileno(), stream)
        os.chdir(self.folder)
        sys.path[:0] = [str(self.folder / "src"), str(self.folder)]
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (sys.path[0], os.environ.get("PYTHONPATH"))))
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        os.environ["MUTANTS_LOG"] = str(self.log)
        sys.dont_write_bytecode = not write_bytecode
        quiet = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # hypothesis was imported before the fork
        used: list[Runner] = []

        def noted(runner: Runner) -> None:
            used.append(runner)
            use(runner)

        arguments = ["-n0", "-q", "-p", "no:cacheprovider", *quiet]
        arguments += [one for one in self.piece.tests if one not in without]
        status = pytest.main(arguments, plugins=[Runner(noted, self.piece.concerns)])
        if not used or status not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
            sys.exit(FAILED)
