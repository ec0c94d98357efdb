"""How well suspects point at the faults of the building half: `python -m tests.doctor.world.suspicion [TITLE ...]`.

For each suspect: the faulty programs in which it shows the line of the fault, those in which it shows only other lines,
and the healthy programs in which it shows a line. Then the share of programs whose line is among the first two.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator

from glassgrad.doctor.reading.program import Program
from glassgrad.doctor.reading.source import Script, parsed
from glassgrad.doctor.reading.suspects import MOST, places
from tests.doctor.world import PROGRAMS, building


def scripts() -> Iterator[tuple[str, str, set[int], str]]:
    """Yield the name, the faulty script, the lines of its fault, and the healthy script of every program."""
    for one in (*PROGRAMS, *building.PROGRAMS):
        text, lines = one.faulty("torch")
        yield one.name, text, lines, one.healthy("torch")


def seen(text: str) -> list[tuple[str, int, tuple[int, ...]]]:
    """Return the suspects of a script: title, weight and lines, the heaviest first."""
    script = parsed("script.py", text)
    assert isinstance(script, Script), script
    return [(one.title, one.words.weight, lines) for one, lines, _ in places(Program(script.tree))]


def main() -> None:
    hits, misses, healthy, weights = Counter[str](), Counter[str](), Counter[str](), {}
    named = total = 0
    wanted = sys.argv[1:]
    for name, text, faulty, twin in scripts():
        found = seen(text)
        for title, weight, lines in found:
            (hits if faulty & set(lines) else misses)[title] += 1
            weights[title] = weight
            if title in wanted:
                print("HIT " if faulty & set(lines) else "other", name, lines, "fault", sorted(faulty))
        for title, weight, lines in seen(twin):
            healthy[title] += 1
            weights[title] = weight
            if title in wanted:
                print("HEALTHY", name, lines)
        named += any(faulty & set(lines[:1]) for _, _, lines in found[:MOST])
        total += 1
    for title, weight in sorted(weights.items(), key=lambda row: -row[1]):
        print(f"{weight} {hits[title]:4} {misses[title]:4} {healthy[title]:4}  {title}")
    print(f"{named} of {total} programs have a line of the fault among the first {MOST}")


if __name__ == "__main__":
    main()
