"""Change the core in small ways, and see whether its tests notice: `python tools/mutants.py cache [--every 10]`.

cosmic-ray makes the changes; two kinds are added here (a dropped statement, a result replaced by None). Each mutant is
tried in a copy of the tree, in a child forked from a process that has imported everything but glassgrad: those imports
would be most of a short test run. A mutant is killed when a test of its piece fails or does not end.

Results are kept in build/mutants under a hash of the mutated file, so that an interrupted run goes on where it was and
a changed file is tried anew. `--survivors` tries survivors again, after tests were added. A survivor whose change
nobody can see is explained in tools/mutants_explained.toml. The command fails while others survive. The mistakes of
tools/mutants_planted.toml, which no operator makes, are always tried first.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import hashlib
import importlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "src/glassgrad"
RESULTS = ROOT / "build" / "mutants"
EXPLAINED = ROOT / "tools" / "mutants_explained.toml"
PLANTED = ROOT / "tools" / "mutants_planted.toml"


@dataclass(frozen=True)
class Piece:
    """Files whose mutants are tried together, as patterns under the package, and pytest's arguments for their tests."""

    sources: tuple[str, ...]
    tests: tuple[str, ...]


# The tests are the few fast ones that are about these files; what only the whole suite would notice counts as survived.
PIECES = {
    "tape": Piece(
        ("engine/tape.py", "engine/plain_walk.py"),
        (
            "tests/engine/test_walk_options.py",
            "tests/engine/test_walking_again.py",
            "tests/engine/test_walks.py",
            "tests/engine/test_complex_gradients.py",
            "tests/func/test_saving.py",
            "tests/func/test_vmap.py",
            "tests/engine/test_tape.py",
            *("-k", "not 200000 and not memory_is_flat"),
        ),
    ),
    "rules": Piece(("ops/elementwise.py", "ops/reduce.py", "ops/shape.py"), ("tests/ops/test_primitives.py",)),
    "fusion": Piece(
        ("compile/plan/fusion.py",),
        ("tests/compile/llvm/test_fused_loops.py", "tests/compile/ir/test_golden_graphs.py"),
    ),
    "guards": Piece(
        ("compile/front/guards.py", "compile/front/edges.py"),
        ("tests/compile/front/test_guards.py", "tests/compile/front/test_state_and_guards.py"),
    ),
    "optimizers": Piece(
        ("optim/*.py",),
        (
            "tests/optim/test_optimizers_against_torch.py",
            "tests/optim/test_groups_added_later.py",
            "tests/optim/test_averages_and_accumulation.py",
        ),
    ),
    "checkpoint": Piece(
        ("train/kept/keeping.py", "train/kept/checkpoint.py"),
        (
            "tests/train/test_checkpoint_parts.py",
            "tests/train/test_checkpoint_file.py",
            "tests/train/test_checkpoint_mismatch.py",
        ),
    ),
    "cache": Piece(
        ("compile/native/cache.py", "compile/native/cache_entry.py", "compile/native/private.py"),
        (
            "tests/compile/native/test_cache_trust.py",
            "tests/compile/native/test_native_cache.py",
            *("-k", "not hash_seeds and not many_writers"),
        ),
    ),
    "schedules": Piece(("optim/lr_scheduler/*.py",), ("tests/optim/test_schedules_against_torch.py",)),
}

# Of cosmic-ray's operators those whose mutants are plausible mistakes: `<` for `<=` and `*` for `/`, but no `<<`.
OPERATORS = re.compile(
    r"core/(AddNot|NumberReplacer|ReplaceAndWithOr|ReplaceOrWithAnd|ReplaceTrueWithFalse|ReplaceFalseWithTrue"
    r"|ReplaceBreakWithContinue|ReplaceContinueWithBreak|ZeroIterationForLoop|ReplaceUnaryOperator_Delete_\w+"
    r"|ReplaceBinaryOperator_(Add_Sub|Sub_Add|Mul_Div|Div_Mul|FloorDiv_Mul|Mod_Mul|Pow_Mul)"
    r"|ReplaceComparisonOperator_(Eq_NotEq|NotEq_Eq|Lt_LtE|LtE_Lt|Gt_GtE|GtE_Gt|Is_IsNot|IsNot_Is|Lt_Gt|Gt_Lt))"
)
# Imported before the fork: slow, and none of ours.
HEAVY = (
    "numpy",
    "scipy.optimize",
    "scipy.special",
    "scipy.signal",
    "llvmlite.binding",
    "hypothesis.extra.numpy",
    "torch",
)


@dataclass(frozen=True)
class Mutant:
    """One change of a file; its text is made when it is needed, which takes a tenth of a second."""

    file: str  # relative to the package
    source: str
    operator: Any
    occurrence: int
    line: int

    @property
    def key(self) -> str:
        """What its result is kept by."""
        told = (self.file, self.source, type(self.operator).__name__, str(self.occurrence))
        return hashlib.sha256("\n".join(told).encode()).hexdigest()

    def text(self) -> str | None:
        """Return the changed file; None where the change is none, or no Python."""
        from cosmic_ray.mutating import mutate_code

        text = mutate_code(self.source, self.operator, self.occurrence)
        with contextlib.suppress(SyntaxError):
            if text is not None and text != self.source:
                compile(text, self.file, "exec")
                return text
        return None

    def lines(self) -> tuple[str, str]:
        """Return the lines that differ, before and after, each with single spaces."""
        text = self.text() or ""
        diff = list(difflib.unified_diff(self.source.splitlines(), text.splitlines(), n=0, lineterm=""))[3:]
        was, becomes = (" ".join(" ".join(line[1:].split()) for line in diff if line[0] == sign) for sign in "-+")
        return was, becomes

    def __str__(self) -> str:
        was, becomes = self.lines()
        return f"  {self.file}:{self.line}\n    - {was}\n    + {becomes}"


@dataclass(frozen=True)
class Planted(Mutant):
    """A mistake that somebody thought of: one text in place of another that occurs once."""

    was: str
    becomes: str

    @property
    def key(self) -> str:
        return hashlib.sha256(f"{self.file}\n{self.source}\n{self.was}\n{self.becomes}".encode()).hexdigest()

    def text(self) -> str:
        if self.source.count(self.was) != 1:
            raise SystemExit(f"{PLANTED.name}: {self.file} does not hold exactly once: {self.was}")
        return self.source.replace(self.was, self.becomes)


def planted(name: str) -> list[Mutant]:
    """Return the planted mistakes of a piece."""
    found: list[Mutant] = []
    for entry in tomllib.loads(PLANTED.read_text(encoding="utf-8"))["mutant"]:
        if entry["piece"] == name:
            source = (ROOT / PACKAGE / entry["file"]).read_text(encoding="utf-8")
            line = source[: source.find(entry["was"])].count("\n") + 1
            found.append(Planted(entry["file"], source, None, 0, line, entry["was"], entry["becomes"]))
    return found


def _operators() -> list[Any]:
    """Return the operators that mutants are made with."""
    import cosmic_ray.plugins
    from cosmic_ray.operators.operator import Operator
    from parso.python.tree import Keyword

    class DropStatement(Operator):
        def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
            if node.type in {"expr_stmt", "atom_expr", "del_stmt", "raise_stmt"} and node.parent.type == "simple_stmt":
                yield node.start_pos, node.end_pos

        def mutate(self, node: Any, index: int) -> Any:
            return Keyword("pass", node.start_pos, node.get_first_leaf().prefix)

        @classmethod
        def examples(cls) -> tuple[()]:
            return ()

    class ReturnNone(DropStatement):
        def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
            if node.type == "return_stmt" and node.children[1].get_code().strip() != "None":
                yield node.start_pos, node.end_pos

        def mutate(self, node: Any, index: int) -> Any:
            return Keyword("return None", node.start_pos, node.get_first_leaf().prefix)

    names = sorted(name for name in cosmic_ray.plugins.operator_names() if OPERATORS.fullmatch(name))
    return [*(cosmic_ray.plugins.get_operator(name)() for name in names), DropStatement(), ReturnNone()]


def mutants_of(file: str) -> list[Mutant]:
    """Return the mutants of a file."""
    from cosmic_ray.ast import ast_nodes, get_ast

    source = (ROOT / PACKAGE / file).read_text(encoding="utf-8")
    nodes = list(ast_nodes(get_ast(source)))
    return [
        Mutant(file, source, operator, occurrence, start[0])
        for operator in _operators()
        for occurrence, (start, _) in enumerate(place for node in nodes for place in operator.mutation_positions(node))
    ]


class Tree:
    """A copy of the working tree in which mutants are tried, one after the other."""

    def __init__(self, folder: Path, piece: Piece, files: list[str]) -> None:
        self.folder, self.piece, self.log = folder, piece, folder / "log.txt"
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        for name in subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0"):
            if name and (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        for compiled in [*ROOT.glob("src/**/__pycache__"), *ROOT.glob("tests/**/__pycache__")]:
            shutil.copytree(compiled, folder / compiled.relative_to(ROOT), dirs_exist_ok=True)
        self.files = [folder / PACKAGE / file for file in files]

    def baseline(self) -> float:
        """Run the tests on what is not mutated; return the seconds they took. Ends the program where they fail."""
        begin = time.monotonic()
        if self._tests(600.0, write_bytecode=True) != "survived":
            raise SystemExit(f"the tests fail without a mutant:\n{self.log.read_text(errors='replace')[-3000:]}")
        for path in self.files:  # two mutants of one second and one length would share it
            for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
                stale.unlink()
        return time.monotonic() - begin

    def try_out(self, mutant: Mutant, seconds: float) -> str:
        """Return "killed", "timed out", "survived", or "no mutant" where there is nothing to try."""
        text = mutant.text()
        if text is None:
            return "no mutant"
        path = self.folder / PACKAGE / mutant.file
        before = path.read_text(encoding="utf-8")
        path.write_text(text, encoding="utf-8")
        try:
            return self._tests(seconds, write_bytecode=False)
        finally:
            path.write_text(before, encoding="utf-8")

    def _tests(self, seconds: float, *, write_bytecode: bool) -> str:
        child = os.fork()
        if child == 0:
            self._child(write_bytecode=write_bytecode)
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                done, status = os.waitpid(child, os.WNOHANG)
                if done:
                    return "survived" if status == 0 else "killed"
                time.sleep(0.02)
            return "timed out"
        finally:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):  # and the processes that it started
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)

    def _child(self, *, write_bytecode: bool) -> None:
        """Run the tests and end the process."""
        status = 70
        try:
            os.setpgid(0, 0)
            handle = os.open(self.log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
            for stream in (1, 2):
                os.dup2(handle, stream)
            os.chdir(self.folder)
            sys.dont_write_bytecode = not write_bytecode
            sys.path[:0] = [str(self.folder / "src"), str(self.folder)]
            os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (sys.path[0], os.environ.get("PYTHONPATH"))))
            if not write_bytecode:
                os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
            # Code that another mutant left must not be run.
            os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(dir=self.folder)
            pytest = importlib.import_module("pytest")
            quiet = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # hypothesis was imported before the fork
            arguments = ["-x", "-n0", "-q", "-p", "no:cacheprovider", *quiet, *self.piece.tests]
            status = int(pytest.main(arguments))
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)


def files_of(piece: Piece) -> list[str]:
    """Return the files of a piece, relative to the package."""
    base = ROOT / PACKAGE
    return sorted({path.relative_to(base).as_posix() for one in piece.sources for path in base.glob(one)})


def explained() -> list[dict[str, str]]:
    """Return the explained mutants: `file`, the line as it `was`, what it `becomes`, and the `reason`."""
    return tomllib.loads(EXPLAINED.read_text(encoding="utf-8")).get("mutant", [])


def _kept(path: Path) -> dict[str, str]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {entry["key"]: entry["outcome"] for entry in map(json.loads, lines)}


def run(name: str, options: argparse.Namespace) -> int:
    """Try the mutants of one piece and print the table; return how many survived unexplained."""
    piece, kept_in = PIECES[name], RESULTS / f"{name}.jsonl"
    files = files_of(piece)
    first, made = planted(name), [mutant for file in files for mutant in mutants_of(file)]
    # The order is that of a seed, so that a run that is stopped early has seen a sample.
    wanted = [*first, *random.Random(options.seed).sample(made, len(made))[:: options.every]]
    kept = _kept(kept_in)
    redo = {"survived"} if options.survivors else set()
    todo = [one for one in wanted if kept.get(one.key) in {None, *redo}]
    print(f"{name}: {len(made)} mutants and {len(first)} planted, {len(wanted)} chosen, {len(todo)} to try", flush=True)
    kept_in.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, kept_in.open("a", encoding="utf-8") as file:
        tree = Tree(Path(folder), piece, files)
        seconds = max(20.0, 4 * tree.baseline()) if todo else 0.0
        end = time.monotonic() + 60 * options.minutes
        for mutant in todo:
            if time.monotonic() > end:
                print(f"{options.minutes:g} minutes are over; the next run goes on from here")
                break
            kept[mutant.key] = tree.try_out(mutant, seconds)
            file.write(json.dumps({"key": mutant.key, "outcome": kept[mutant.key], "file": mutant.file}) + "\n")
            file.flush()
            if kept[mutant.key] == "survived":
                print(mutant, flush=True)
    return _table(name, [*first, *made], [one for one in wanted if one.key in kept], kept)


def _table(name: str, made: list[Mutant], tried: list[Mutant], kept: dict[str, str]) -> int:
    """Print what became of the mutants; return how many survived and are not explained."""
    reasons = {(entry["file"], entry["was"], entry["becomes"]) for entry in explained()}
    survivors = [mutant for mutant in tried if kept[mutant.key] == "survived"]
    left = [mutant for mutant in survivors if (mutant.file, *mutant.lines()) not in reasons]
    counts = Counter(kept[mutant.key] for mutant in tried)
    said = ", ".join(f"{counts[outcome]} {outcome}" for outcome in ("killed", "timed out", "survived"))
    real = len(tried) - counts["no mutant"]
    print(f"{name}: {len(made)} made, {real} tried: {said}, of which {counts['survived'] - len(left)} explained")
    for mutant in left:
        print(mutant)
    return len(left)


def main() -> int:
    """Try the pieces named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pieces", nargs="*", help=", ".join(PIECES))
    parser.add_argument("--every", type=int, default=1, metavar="K", help="try one of K mutants")
    parser.add_argument("--seed", type=int, default=0, help="which of them, and in which order")
    parser.add_argument("--minutes", type=float, default=1e6, help="stop a piece after so long; it can be continued")
    parser.add_argument("--survivors", action="store_true", help="try survivors again")
    options = parser.parse_args()
    if unknown := set(options.pieces) - set(PIECES):
        parser.error(f"no piece {', '.join(unknown)}; there are {', '.join(PIECES)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the child and the copy of the tree go too
    for name in HEAVY:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    return min(1, sum(run(name, options) for name in options.pieces or PIECES))


if __name__ == "__main__":
    sys.exit(main())
