"""Check random programs until the time is over: `python -m tests.fuzz.night --minutes 60`.

Programs begin at a seed of the day, so that every night tries others; the report names the seeds, and
`python -m tests.fuzz.check SEED SEED+1` runs one of them again. Every tenth chunk checks autocast.
"""

from __future__ import annotations

import argparse
import sys
import time
from datetime import UTC, datetime

from tests.fuzz.test_programs import failures

CHUNK = 200
# Below lie the seeds of the suite; a night takes about 20,000.
FIRST, A_NIGHT = 100_000, 50_000


def seed_of(day: datetime) -> int:
    """Return the first seed of a night: nights do not overlap for a hundred years."""
    return FIRST + day.toordinal() % 40_000 * A_NIGHT


def search(first: int, minutes: float) -> tuple[int, list[str]]:
    """Check programs from a seed on; return how many were checked and what was found."""
    ends, at, found = time.monotonic() + 60 * minutes, first, []
    while at == first or time.monotonic() < ends:
        narrow = ["autocast"] if (at - first) // CHUNK % 10 == 9 else []
        wrong = failures(at, at + CHUNK, *narrow)
        for one in wrong:
            print(f"seeds {at} to {at + CHUNK} {' '.join(narrow)}:\n{one}\n", flush=True)
        found += wrong
        at += CHUNK
    return at - first, found


def main() -> None:
    """Search, and end with 1 if an interpreter disagreed or ended its process."""
    parser = argparse.ArgumentParser(description="Check random programs until the time is over.")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--first", type=int, default=seed_of(datetime.now(UTC)), help="the first seed")
    given = parser.parse_args()
    count, found = search(given.first, given.minutes)
    print(f"{count:,} programs from seed {given.first:,}: {len(found)} wrong")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
