"""Small networks that nobody chose: programs drawn by seed, the same source in PyTorch and in glassgrad.

A seed gives a family, sizes, layers, an optimizer and batches. PyTorch eager, ours eager and ours compiled each run it
in a process of their own, from equal weights and on two threads; their losses have to agree before they are timed in
turn. Even seeds are there to build on. Odd seeds are kept aside: they show what a change does to programs that it was
not made for, and run with `--aside` only.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks import harness, quiet, results
from benchmarks.harness import Outcome
from benchmarks.wild.draw import STEPS
from benchmarks.wild.programs import Wild
from benchmarks.workload import Workload

TITLE = "Programs drawn by seed"
THEIRS, OURS = "PyTorch eager", ("glassgrad eager", "glassgrad compiled")
THREADS, WORST, SECONDS = 2, 10, 0.15
CENTS = (0.5, 0.9)
AHEAD = {"glassgrad eager": 1.0, "glassgrad compiled": 0.8}  # ratios above these are counted


def seeds(first: int, count: int, aside: bool) -> list[int]:
    """The even seeds from the first on, or the odd ones."""
    start = first + (first % 2 != int(aside))
    return list(range(start, start + 2 * count, 2))


def workload(seed: int) -> Workload:
    """One program and its three peers."""
    peers = {THEIRS: f"torch_peer:{seed}"}
    peers |= {name: f"glassgrad_peer:{how} {seed}" for name, how in zip(OURS, ("eager", "llvm"), strict=True)}
    return Workload(f"wild {seed}", "", __name__, peers, THEIRS, check_steps=STEPS + 1, seconds=SECONDS)


def ratio(ours: Outcome, theirs: Outcome) -> float:
    """The median over rounds of our time over theirs in the same round."""
    return statistics.median(mine / other for mine, other in zip(ours.rounds, theirs.rounds, strict=True))


def program(seed: int, rounds: int, threads: int | None) -> dict[str, Any]:
    """What came of one program."""
    outcomes = {one.name: one for one in harness.run(workload(seed), rounds=rounds, threads=threads or THREADS)}
    theirs = outcomes[THEIRS]
    timed = [one for one in outcomes.values() if one.rounds]
    return {
        "seed": seed,
        "text": Wild(seed).text,
        "seconds": {one.name: one.median for one in timed},
        "ratios": {name: ratio(outcomes[name], theirs) for name in OURS if theirs.rounds and outcomes[name].rounds},
        "troubles": {one.name: results.trouble_line(one) for one in outcomes.values() if one.trouble},
        "others": max((one.others for one in timed), default=0.0),
    }


def line(found: Mapping[str, Any]) -> str:
    """One program in one line."""
    ratios = ", ".join(f"{name.removeprefix('glassgrad ')} {value:.2f}" for name, value in found["ratios"].items())
    theirs = results.duration(found["seconds"][THEIRS]) if THEIRS in found["seconds"] else "–"
    troubles = "".join(f"; {name}: {text}" for name, text in found["troubles"].items())
    return f"{found['seed']:4d}  {theirs:>8}  {ratios}  {found['text']}{troubles}"


def spread(ratios: Sequence[float], ahead: float) -> list[str]:
    """Median, ninth tenth and worst of the ratios, and how many are above what is aimed at."""
    ordered = sorted(ratios)
    cents = [ordered[min(len(ordered) - 1, int(cent * len(ordered)))] for cent in CENTS]
    above = f"{sum(value > ahead for value in ordered)} above {ahead:g}"
    return [str(len(ordered)), *(f"{value:.2f}" for value in (*cents, ordered[-1])), above]


def summary(found: Sequence[Mapping[str, Any]]) -> str:
    """The spread of the ratios, the worst programs of each of our modes, and those that did not run or agree."""
    rows, worst = [], []
    for name in OURS:
        timed = sorted((one for one in found if name in one["ratios"]), key=lambda one: -one["ratios"][name])
        if timed:
            rows.append([name, *spread([one["ratios"][name] for one in timed], AHEAD[name])])
            lines = [f"- {one['ratios'][name]:.2f}: seed {one['seed']}, {one['text']}" for one in timed[:WORST]]
            worst.append("\n".join([f"{name}, the slowest beside PyTorch:", "", *lines]))
    head = ["time over PyTorch eager's", "programs", "median", "90th percentile", "worst", "behind"]
    table = results.markdown_table(head, rows)
    troubles = [
        f"- seed {one['seed']}, {name}: {text} ({one['text']})"
        for one in found
        for name, text in one["troubles"].items()
    ]
    return "\n\n".join(part for part in (table, *worst, "\n".join(troubles)) if part)


def measure(
    threads: int | None, rounds: int, *, seed: int = 0, count: int = 40, aside: bool = False
) -> tuple[str, str, dict[str, Any]]:
    """Title, text and raw numbers."""
    found = []
    for each in seeds(seed, count, aside):
        found.append(program(each, rounds, threads))
        print(line(found[-1]), flush=True)
    kept = "odd seeds, kept aside" if aside else "even seeds"
    text = f"{count} programs, {kept}, {threads or THREADS} threads."
    busy = quiet.verdict(max(one["others"] for one in found))
    title = f"{TITLE}, kept aside" if aside else TITLE
    return title, "\n\n".join([*filter(None, [busy]), text, summary(found)]), {"programs": found}
