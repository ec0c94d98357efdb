"""Run the peers of a workload side by side: check that they compute the same, then time them in turn.

Peers take turns within every round, so that a machine that slows down for a minute slows all of them; the result is the
median over rounds. The report lists a peer that is not installed as missing, and one whose losses differ from the
reference's as disagreeing; the latter is not timed, because times of different computations cannot be compared.
"""

from __future__ import annotations

import json
import math
import os
import selectors
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import machine, quiet
from benchmarks.workload import Workload

ROOT = Path(__file__).resolve().parent.parent
START_LIMIT = 300.0  # seconds; torch.compile takes its time
PAUSE = 0.03  # lets the threads of the peer before stop spinning
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "GLASSGRAD_THREADS")


class PeerError(Exception):
    """The peer could not do a request; the text states the reason."""


class Peer:
    """A peer's process and its answers."""

    def __init__(self, module: str, mode: str, threads: int | None, cache: Path | None = None) -> None:
        # Ignore the shell's variables for threads: with them, one peer could run on one core and the others on all.
        environment = {name: value for name, value in os.environ.items() if name not in THREAD_VARIABLES}
        environment.setdefault("JAX_PLATFORMS", "cpu")
        if cache is not None:
            environment["GLASSGRAD_CACHE_DIR"] = str(cache)
        command = [sys.executable, "-m", "benchmarks.worker", module, mode]
        prepare = None
        if threads is not None:
            environment.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
            if hasattr(os, "sched_setaffinity"):
                # XLA sizes its pool by the available cores and has no other switch that always works.
                chosen = sorted(os.sched_getaffinity(0))[:threads]
                prepare = lambda: os.sched_setaffinity(0, chosen)  # noqa: E731 -- used once, right below
        self.complaints = tempfile.TemporaryFile("w+")  # noqa: SIM115 -- lives as long as the process
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.complaints,
            text=True,
            preexec_fn=prepare,  # noqa: PLW1509 -- nothing in this process has started a thread
        )

    def read(self, limit: float) -> dict[str, Any]:
        """Return the next answer; raise `PeerError` if the process ends, fails, or takes more than `limit` seconds."""
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(limit):
                raise PeerError(f"no answer within {limit:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            self.complaints.seek(0)
            raise PeerError(f"ended with status {self.process.wait()}: {self.complaints.read()[-2000:]}")
        reply: dict[str, Any] = json.loads(line)
        if "failed" in reply:
            raise PeerError(reply["failed"])
        return reply

    def ask(self, limit: float = START_LIMIT, **request: Any) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self.read(limit)

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()
        self.complaints.close()


@dataclass
class Outcome:
    """The outcome of one peer: seconds per step of each round, or the reason for their absence."""

    name: str
    rounds: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    first_step: float = math.nan
    compiling: float = math.nan  # the first step without imports, in a process that compiles ...
    compiled: float = math.nan  # ... and in the next one, which finds the machine code on the disk
    megabytes: float = math.nan
    others: float = math.nan  # cores' worth of work by other processes meanwhile
    work: dict[str, float] | None = None  # flops and bytes of a step
    excess: float = math.nan  # where peers are held to AVX2, the rate of a product over what that can do
    trouble: str = ""

    @property
    def median(self) -> float:
        """Seconds per step, the median over rounds."""
        return statistics.median(self.rounds) if self.rounds else math.nan

    @property
    def best(self) -> float:
        """Seconds per step in the quickest round."""
        return min(self.rounds, default=math.nan)


def disagreement(losses: Sequence[float], reference: Sequence[float], tolerance: float) -> str:
    """Return the place where two runs of the same training diverge, or '' if they agree."""
    for step, (mine, theirs) in enumerate(zip(losses, reference, strict=True)):
        if not (math.isfinite(mine) and abs(mine - theirs) <= tolerance * max(1.0, abs(theirs))):
            return f"loss {mine:.6f} at step {step + 1}, reference {theirs:.6f}"
    return ""


def matching(words: Sequence[str], peers: Iterable[str]) -> list[str]:
    """Return the peers whose names are among the words, or contain a word that is not itself a name, in any case.

    Raises:
        ValueError: a word matches no name; the text lists the names.
    """
    known = list(peers)
    chosen: set[str] = set()
    for word in words:
        fits = [name for name in known if name == word] or [name for name in known if word.lower() in name.lower()]
        if not fits:
            raise ValueError(f"no peer is called {word!r}; there are {', '.join(known)}")
        chosen.update(fits)
    return [name for name in known if name in chosen]


def left_of(deadline: float) -> float:
    """Return the seconds that a peer may take to start: the time left until `deadline`, at most `START_LIMIT`."""
    return max(0.0, min(START_LIMIT, deadline - time.monotonic()))


def start(
    workload: Workload, names: Sequence[str], threads: int | None, cache: Path, deadline: float = math.inf
) -> tuple[dict[str, Peer], dict[str, Outcome]]:
    """Start the named peers one after the other and take their first losses.

    Each gets a folder in `cache` for its machine code, so that it finds no earlier compiled code.
    """
    running: dict[str, Peer] = {}
    outcomes = {name: Outcome(name) for name in names}
    for number, name in enumerate(names):
        module, _, mode = workload.peers[name].partition(":")
        arguments = f"{workload.package}.{module}", mode, threads, cache / str(number)
        peer = Peer(*arguments)
        try:
            greeting = peer.read(left_of(deadline))
            if "missing" in greeting:
                raise PeerError(f"missing: {greeting['missing']}")  # noqa: TRY301 -- one way out for every trouble
            reply = peer.ask(left_of(deadline), do="losses", count=workload.check_steps)
            outcomes[name].losses = reply["losses"]
            outcomes[name].first_step = greeting["ready"] + reply["first"]
            if reply.get("stores"):
                outcomes[name].compiling = reply["first"]
                outcomes[name].compiled = again(Peer(*arguments))
            running[name] = peer
        except PeerError as error:
            outcomes[name].trouble = str(error)
            peer.close()
    return running, outcomes


def again(peer: Peer) -> float:
    """Seconds of the first step of a peer's second process."""
    try:
        peer.read(START_LIMIT)
        first: float = peer.ask(do="losses", count=1)["first"]
        return first
    finally:
        peer.close()


def reject_disagreeing(workload: Workload, running: dict[str, Peer], outcomes: dict[str, Outcome]) -> None:
    """Stop every peer whose losses differ from the reference's."""
    if not running:
        return
    # Without the reference, the first peer that runs replaces it: agreement among the others is still informative.
    reference = outcomes[workload.reference if workload.reference in running else next(iter(running))].losses
    for name in list(running):
        if found := disagreement(outcomes[name].losses, reference, workload.tolerance):
            outcomes[name].trouble = f"disagrees: {found}"
            running.pop(name).close()


def time_in_turn(
    running: dict[str, Peer], outcomes: dict[str, Outcome], seconds: float, rounds: int, deadline: float = math.inf
) -> None:
    """Time the peers round by round, in reverse order every other round; after `deadline` only the first round runs."""
    counts: dict[str, int] = {}
    watch = quiet.Watch(peer.process.pid for peer in running.values())

    def attempt(name: str, **request: Any) -> dict[str, Any]:
        try:
            return running[name].ask(**request)
        except PeerError as error:
            outcomes[name].trouble = str(error)
            outcomes[name].rounds.clear()
            running.pop(name).close()
            return {}

    for name in list(running):
        counts[name] = attempt(name, do="calibrate", seconds=seconds).get("count", 0)
    for index in range(rounds):
        if index and time.monotonic() > deadline:
            break
        for name in list(running)[:: 1 if index % 2 == 0 else -1]:
            time.sleep(PAUSE)
            reply = attempt(name, do="time", count=counts[name])
            if "seconds" in reply:
                outcomes[name].rounds.append(reply["seconds"])
    others = watch.others()
    for name in list(running):
        reply = attempt(name, do="peak")
        outcomes[name].megabytes = reply.get("megabytes", math.nan)
        outcomes[name].work = reply.get("work")
        outcomes[name].others = others
        if machine.held():
            outcomes[name].excess = attempt(name, do="excess").get("excess", math.nan)


def run(
    workload: Workload,
    names: Sequence[str] = (),
    *,
    rounds: int = 7,
    threads: int | None = None,
    seconds: float | None = None,
    within: float = math.inf,
) -> list[Outcome]:
    """Check and time the named peers (by default all; always the reference) and return their outcomes.

    `names` may be parts of names, as in `matching`. After `within` seconds, a peer that has not started is skipped, and
    no further round begins.
    """
    deadline = time.monotonic() + within
    chosen = matching([*names, workload.reference] if names else list(workload.peers), workload.peers)
    with tempfile.TemporaryDirectory() as cache:
        running, outcomes = start(workload, chosen, threads, Path(cache), deadline)
        try:
            reject_disagreeing(workload, running, outcomes)
            time_in_turn(running, outcomes, seconds or workload.seconds, rounds, deadline)
        finally:
            for peer in running.values():
                peer.close()
    return list(outcomes.values())
