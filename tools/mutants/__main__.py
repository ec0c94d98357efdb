"""Change the core in small ways, and check that its tests notice: `python -m tools.mutants cache [--every 10]`.

Each mutant (`making.py`) of a piece (`pieces.py`) is tried in a copy of the tree, in a child forked from a process
that has imported everything and collected the tests: the changed functions get their new code there, and the child runs
the tests that reach the changed lines (`running.py`). A mutant is killed if one of them fails or does not end.

Results are kept in build/mutants under a hash of the changed function, so that an interrupted run continues, and
a function that has changed is tried again. `--survivors` tries survivors again, after tests were added.
explained.toml explains survivors whose change has no visible effect. The command fails while others survive. It always
tries first the mistakes of planted.toml, which no operator makes.

left.toml, which is part of the tree, lists the remaining survivors: `--left` tries only these, and `--keep-left` writes
the list of those that still survive.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tools.mutants import left
from tools.mutants.making import Mutant, explained, fits, identities, identity, of_piece, patterns, planted
from tools.mutants.pieces import PIECES, ROOT
from tools.mutants.tree import Tree

RESULTS = ROOT / "build" / "mutants"
ALIVE = ("survived", "not reached")
# Imported before the fork: slow, and none of ours.
HEAVY = (
    "numpy",
    "scipy.optimize",
    "scipy.special",
    "scipy.signal",
    "llvmlite.binding",
    "hypothesis.extra.numpy",
    "torch",
    "torch.testing._internal.common_methods_invocations",
    "torch._dynamo",  # which the first step of an optimizer of PyTorch's would load in every child
)


def _kept(path: Path) -> dict[str, str]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {entry["key"]: entry["outcome"] for entry in map(json.loads, lines)}


def run(name: str, options: argparse.Namespace) -> int:
    """Try the mutants of one piece and print the table; return how many survived unexplained."""
    kept_in = RESULTS / f"{name}.jsonl"
    first, made = planted(name), of_piece(name)
    chosen = [one for one in made if not options.files or one.file in options.files]
    if options.left:
        known = {identity(entry) for entry in left.read()}
        chosen = [one for one in chosen if known & identities(one)]
    # The order is that of a seed, so that a run that is stopped early has seen a sample.
    wanted = [*first, *random.Random(options.seed).sample(chosen, len(chosen))[:: options.every]]
    kept = _kept(kept_in)
    redo = {None, *ALIVE} if options.survivors or options.left else {None}
    todo = [one for one in wanted if kept.get(one.key) in redo]
    print(f"{name}: {len(made)} mutants and {len(first)} planted, {len(wanted)} chosen, {len(todo)} to try", flush=True)
    if todo:
        kept_in.parent.mkdir(parents=True, exist_ok=True)
        kept.update(_tried(name, todo, kept_in, options.minutes))
    tried = [one for one in wanted if one.key in kept]
    unexplained = _table(name, len(first) + len(made), tried, kept)
    if options.keep_left:
        left.keep(made, tried, unexplained)
    return len(unexplained)


def _tried(name: str, todo: Sequence[Mutant], kept_in: Path, minutes: float) -> dict[str, str]:
    """Try mutants and return the outcomes by their keys."""
    outcomes: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, kept_in.open("a", encoding="utf-8") as file:
        tree = Tree(Path(folder), PIECES[name])
        reach = tree.start()
        print(f"{len(reach.seconds)} tests take {sum(reach.seconds.values()):.1f} s", flush=True)
        begin = time.monotonic()
        for mutant in todo:
            if time.monotonic() > begin + 60 * minutes:
                print(f"{minutes:g} minutes are over; the next run goes on from here")
                break
            outcome = outcomes[mutant.key] = tree.try_out(mutant)
            file.write(json.dumps({"key": mutant.key, "outcome": outcome, "file": mutant.file}) + "\n")
            file.flush()
            if outcome in ALIVE:
                print(mutant, flush=True)
                if mutant in planted(name):
                    raise SystemExit(f"{name}: a planted mistake {outcome}, so nothing is seen of any other")
        print(f"{len(outcomes)} tried in {time.monotonic() - begin:.0f} s", flush=True)
    return outcomes


def _table(name: str, made: int, tried: Sequence[Mutant], kept: dict[str, str]) -> list[Mutant]:
    """Print what became of the mutants; return those that survived and are not explained."""
    reasons = {identity(entry) for entry in explained()}
    survivors = [mutant for mutant in tried if kept[mutant.key] in ALIVE]
    unexplained = [
        mutant
        for mutant in survivors
        if not reasons & identities(mutant) and not any(fits(entry, mutant) for entry in patterns())
    ]
    for mutant in sorted(unexplained, key=lambda mutant: (mutant.file, mutant.span)):
        print(f"{mutant}{' (no test runs it)' if kept[mutant.key] == 'not reached' else ''}")
    for file in sorted({mutant.file for mutant in tried}):
        _count(file, [mutant for mutant in tried if mutant.file == file], kept, unexplained)
    print(f"{name}: {made} made, {len(tried)} tried, {len(unexplained)} left")
    return unexplained


def _count(file: str, tried: Sequence[Mutant], kept: dict[str, str], unexplained: Sequence[Mutant]) -> None:
    """Print the row of a file as docs/adr/021 has it, but for mutants that are no code."""
    counts = Counter(kept[mutant.key] for mutant in tried)
    waiting = sum(mutant.file == file for mutant in unexplained)
    alive = sum(counts[outcome] for outcome in ALIVE)
    killed = counts["killed"] + counts["timed out"]
    print(f"{file}: {alive + killed} tried, {killed} killed, {alive - waiting} explained, {waiting} left")


def main() -> int:
    """Try the pieces named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pieces", nargs="*", help=", ".join(PIECES))
    parser.add_argument("--every", type=int, default=1, metavar="K", help="try one of K mutants")
    parser.add_argument("--seed", type=int, default=0, help="which of them, and in which order")
    parser.add_argument("--minutes", type=float, default=1e6, help="stop a piece after so long; it can be continued")
    parser.add_argument("--files", nargs="+", metavar="FILE", help="only those of these files, as in ops/sort.py")
    parser.add_argument("--survivors", action="store_true", help="try survivors again")
    parser.add_argument("--left", action="store_true", help="try those of left.toml again, and only those")
    parser.add_argument("--keep-left", action="store_true", help="write into left.toml what is left of those tried")
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
