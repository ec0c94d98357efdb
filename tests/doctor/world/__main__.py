"""Print what the doctor says to the programs: `python -m tests.doctor.world [WORDS] [--library ours]`."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.doctor.world import FAULTS, PROGRAMS, judged
from tests.doctor.world.program import HEADS


def main() -> None:
    """Run the programs whose names hold one of the words, each with its twin."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("words", nargs="*")
    options.add_argument("--library", choices=HEADS)
    options.add_argument("--variants", action="store_true", help="only the programs beside the first 28")
    given = options.parse_args()
    named = alarms = runs = 0
    for program in PROGRAMS[len(FAULTS) if given.variants else 0 :]:
        if given.words and not any(word in program.name for word in given.words):
            continue
        for library in [given.library] if given.library else HEADS:
            with tempfile.TemporaryDirectory() as folder:
                found, right, wrong = judged(program, library, Path(folder))
            runs, named, alarms = runs + 1, named + right, alarms + bool(wrong)
            print("named " if right else "MISSED", "ALARM" if wrong else "", program.name, f"({library})", flush=True)
            for one in [*(() if right else found[:4]), *wrong]:
                print(f"        {one} {one.where}")
    print(f"{named} of {runs} named with cause and line, {alarms} healthy twins with an alarm")


if __name__ == "__main__":
    main()
