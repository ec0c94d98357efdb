"""`python -m benchmarks all`, or some of w1-w13, names, overhead, ops, wild, doctor-world and others: run, print."""

from __future__ import annotations

import argparse
import math
import shlex
import sys
from typing import Any

from benchmarks import (
    doctor_world,
    exported,
    generation,
    gpt2,
    harness,
    isa,
    names,
    nan_checks,
    op_overhead,
    ops,
    picture,
    playground,
    quiet,
    results,
    trainer,
    watching,
    wild,
)
from benchmarks.workload import Workload
from benchmarks.workloads import WORKLOADS

OTHERS = {
    "c": exported,
    "names": names,
    "overhead": op_overhead,
    "ops": ops,
    "trainer": trainer,
    "doctor": watching,
    "doctor-world": doctor_world,
    "nan": nan_checks,
    "generate": generation,
    "gpt2": gpt2,
    "wild": wild,
    "playground": playground,
}


HALVED = frozenset({"wild", "doctor-world"})
"""Those with a half that is kept aside."""
UNTIMED = frozenset({"doctor-world"})
"""Those that measure no time, and are left out of `all`."""


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "what", nargs="*", default=["all"], metavar="WHAT", help=", ".join(["all", *WORKLOADS, *OTHERS])
    )
    parser.add_argument("--peers", help="only these, by printed names or parts of them (torch.compile,jax), by commas")
    parser.add_argument(
        "--within", type=float, default=math.inf, help="end a workload, or ops, after about this many seconds"
    )
    parser.add_argument("--rounds", type=int, default=7, help="the number of turns of each peer (default 7)")
    parser.add_argument("--seconds", type=float, help="the length of a turn; doctor-world: the time for changes")
    parser.add_argument("--threads", type=int, help="threads of every peer (default: each peer's own choice)")
    parser.add_argument("--isa", choices=["avx2"], help="limit every peer to these instructions, by its own switch")
    parser.add_argument("--write", action="store_true", help="put the result into benchmarks/RESULTS.md")
    parser.add_argument("--wait", type=float, default=0.0, help="wait up to this many seconds for a quiet machine")
    parser.add_argument(
        "--busy", action="store_true", help="write even if other processes used the machine during the run"
    )
    parser.add_argument("--seed", type=int, default=0, help="wild: the first seed (default 0)")
    parser.add_argument("--count", type=int, default=40, help="wild: the number of programs (default 40)")
    parser.add_argument(
        "--aside",
        action="store_true",
        help="wild: the odd seeds, held out; doctor-world: the half kept aside; without it what may guide the work",
    )
    parser.add_argument("--words", nargs="*", default=[], help="doctor-world: programs whose names hold one of these")
    options = parser.parse_args()
    known = {"all", *WORKLOADS, *OTHERS}
    if unknown := [name for name in options.what if name not in known]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    if "all" in options.what:
        options.what = [one for one in (*WORKLOADS, *OTHERS) if one not in UNTIMED]
    options.peers = [name.strip() for name in options.peers.split(",")] if options.peers else []
    for name in options.what:
        try:
            known_peers = (
                WORKLOADS[name].peers if name in WORKLOADS else ops.LIBRARIES if name == "ops" else options.peers
            )
            harness.matching(options.peers, known_peers)
        except ValueError as error:
            parser.error(f"{name}: {error}")
    return options


def may_write(options: argparse.Namespace, text: str) -> bool:
    """Return whether to keep a result: not if a peer exceeds its limit, and on a busy machine only on request."""
    if options.write and quiet.MARK in text and not options.busy:
        print("not written, because the machine was busy; --busy writes it anyway", file=sys.stderr)
        return False
    if options.write and isa.MARK in text:
        print("not written, because a peer is not limited to AVX2", file=sys.stderr)
        return False
    return bool(options.write)


def measure(workload: Workload, options: argparse.Namespace, command: str) -> bool:
    """Run one workload; returns whether every peer of ours was timed."""
    print(f"\n{workload.title}", flush=True)
    outcomes = harness.run(
        workload,
        options.peers,
        rounds=options.rounds,
        threads=options.threads,
        seconds=options.seconds,
        within=options.within,
    )
    for outcome in outcomes:
        if len(outcome.trouble.splitlines()) > 1:
            print(f"--- {outcome.name}\n{outcome.trouble}", file=sys.stderr)
    text = results.section(workload, outcomes, command)
    print(text, flush=True)
    if may_write(options, text):
        results.write_section(workload.key, workload.title, text)
        results.record_outcomes(workload, outcomes)
    ours = [outcome for outcome in outcomes if outcome.name.startswith("glassgrad")]
    return all(outcome.rounds or outcome.trouble.startswith("missing: ") for outcome in ours)


def own_options(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """The options that only this measurement has."""
    if name == "ops":
        return {"chosen": options.peers, "within": options.within}
    if name == "doctor-world":
        return {"aside": options.aside, "words": options.words, "seconds": options.seconds or 0, "peers": options.peers}
    if name == "wild":
        return {"seed": options.seed, "count": options.count, "aside": options.aside}
    return {}


def main() -> int:
    """Run the requested measurements; return 1 if one of our peers failed or disagreed."""
    options = arguments()
    if options.isa:
        isa.hold(sys.argv[1:])
    named = ("isa", "threads", "seconds")
    extra = "".join(f" --{name} {getattr(options, name)}" for name in named if getattr(options, name))
    if options.peers:
        extra += f" --peers {shlex.quote(','.join(options.peers))}"
    fine = True
    for name in options.what:
        quiet.wait_for_quiet(options.wait)
        aside = " --aside" if name in HALVED and options.aside else ""
        command = f"python -m benchmarks {name}{extra}{aside}"
        if name in WORKLOADS:
            fine &= measure(WORKLOADS[name], options, command)
        else:
            title, text, data = OTHERS[name].measure(
                threads=options.threads, rounds=options.rounds, **own_options(name, options)
            )
            print(f"\n{title}\n{text}", flush=True)
            if options.write and name == "doctor-world":
                doctor_world.write(text, command, options.aside)
            elif may_write(options, text):
                key = f"{name}{aside.replace(' --', '-')}"  # the two halves of the seeds stand beside each other
                results.write_section(key, title, f"Command: `{command}`\n\n{text}\n\n{results.machine_lines()}")
                results.record(key, data)
    if options.write and not UNTIMED.issuperset(options.what):
        results.write_bars()
        results.write_summary()
    if options.write and (path := picture.draw()):
        print(f"wrote {results.RESULTS} and {path}")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
