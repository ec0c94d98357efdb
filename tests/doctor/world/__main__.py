"""Print what the doctor says to the programs: `python -m tests.doctor.world [WORDS] [--library L]`."""

import argparse, sys, tempfile, time
from pathlib import Path
from glassgrad.doctor.script import run_script
from tests.doctor.world import PROGRAMS, judged

parser = argparse.ArgumentParser()
parser.add_argument("words", nargs="*")
parser.add_argument("-v", action="store_true")
parser.add_argument("--first", type=int, default=0); parser.add_argument("--library", default="torch,ours")
args = parser.parse_args()
for program in PROGRAMS[args.first:]:
    if args.words and not any(w in program.name for w in args.words):
        continue
    for library in args.library.split(","):
        began = time.time()
        with tempfile.TemporaryDirectory() as folder:
            found, wanted, wrong = judged(program, library, Path(folder))
        print(
            f"{'ok  ' if wanted else 'MISS'} {'quiet' if not wrong else 'ALARM'} {program.name} [{library}] {time.time() - began:.1f}s"
        )
        if not wanted or args.v:
            for one in found[:5]:
                print(f"        {one.severity}: {one.rule}: {one.what[:150]} @{one.where}")
        for one in wrong:
            print(f"     twin {one.severity}: {one.rule}: {one.what[:150]} @{one.where}")
        sys.stdout.flush()
