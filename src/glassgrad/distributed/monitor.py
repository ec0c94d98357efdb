"""Decide from the reports of all ranks whether one has died or hangs.

Rank 0 keeps the reports, which each rank sends twice a second. This file only decides; `guard` talks to the ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from glassgrad import errors

_LEFT = 2.0  # seconds that ranks may wait for a finished rank, since its report and theirs arrive independently
_MESSAGES = ("send", "recv")  # calls that match each other
_SLOW = 30.0  # seconds after which a message names, once per call, the ranks that others wait for


@dataclass
class Rank:
    """The last report of a rank.

    Attributes:
        name: rank, process and host, for messages.
        heard: the time of its last report.
        call: the collective in which it waits; empty if it does not wait.
        number: the number of waits it has begun; an equal number means the same wait.
        since: when that wait was first reported.
        idle: seconds in which it has neither computed, nor read or written a file, nor moved to another line.
        circling: seconds in which it has stayed in one call of one function, at only a few of its instructions.
        at: the present line of its main thread.
        left: its exit code, if it has finished; 0 also if the code is not known.
    """

    name: str
    heard: float
    call: str = ""
    number: int = 0
    since: float = 0.0
    idle: float = 0.0
    circling: float = 0.0
    at: str = ""
    left: int | None = None


class Monitor:
    """The ranks, as known to rank 0.

    Args:
        names: of each rank.
        patience: seconds of silence, or of doing nothing while others wait, after which a rank counts as hanging.
        now: the time, in seconds of any clock.
    """

    def __init__(self, names: Sequence[str], patience: float, now: float) -> None:
        self.ranks = [Rank(name, now) for name in names]
        self.patience = patience
        self._told: set[tuple[int, int]] = set()

    def hear(self, rank: int, state: dict[str, object], now: float) -> None:
        """Store the report of a rank."""
        known = self.ranks[rank]
        known.heard = now
        known.call, known.at = str(state["call"]), str(state["at"])
        known.idle, known.circling = float(str(state["idle"])), float(str(state["circling"]))
        number = int(str(state["number"]))
        if known.call and number != known.number:
            known.since = now
        known.number = number

    def leaves(self, rank: int, code: int) -> None:
        """Note that a rank has finished."""
        self.ranks[rank].left = code

    @property
    def over(self) -> bool:
        """Whether all ranks have finished."""
        return all(known.left is not None for known in self.ranks)

    def died(self, rank: int) -> str:
        """Return the message for a rank whose connection was lost."""
        return errors.RANK_DIED.text(rank=self.ranks[rank].name)

    def judge(self, now: float) -> tuple[str, int] | None:
        """Return a message about what is wrong and its exit code; None if nothing is wrong."""
        running = [known for known in self.ranks if known.left is None]
        for known in running:
            if now - known.heard > self.patience:
                return errors.RANK_SILENT.text(rank=known.name, seconds=now - known.heard, at=known.at), 1
        waiting = [known for known in running if known.call]
        if not waiting:
            return None
        longest = max(now - known.since for known in waiting)
        calls = self._calls(waiting)
        for known in self.ranks:
            if known.left is not None and longest > _LEFT:
                how = f" with exit code {known.left}" if known.left else ""
                return errors.RANK_LEFT.text(rank=known.name, how=how, calls=calls), known.left or 1
        for known in running:
            if known.call or longest <= self.patience:
                continue
            facts = {"rank": known.name, "at": known.at, "calls": calls}
            stays = known.circling > self.patience
            # A computing rank is idle at moments; in a sleeping rank another thread may have worked in between.
            if known.idle > self.patience / (2 if stays else 1):
                return errors.RANK_HANGS.text(seconds=known.idle, **facts), 1
            if stays:
                return errors.RANK_CIRCLES.text(seconds=known.circling, **facts), 1
        return self._locked(running, now)

    def _locked(self, running: Sequence[Rank], now: float) -> tuple[str, int] | None:
        """Return the message about ranks that wait in different calls, so none can finish."""
        calls = ["a message" if known.call in _MESSAGES else known.call for known in running]
        alike = len(set(calls)) == 1
        if len(running) < 2 or "" in calls or (alike and any(known.call != "recv" for known in running)):
            return None
        # Ranks in the same call may be moving much data over a slow network, while the others wait for them.
        limit = self.patience * (1 if len(set(calls)) == len(calls) else 3)
        waited = min(now - known.since for known in running)
        if waited <= limit:
            return None
        return errors.RANKS_LOCKED.text(seconds=waited, calls=self._calls(running)), 1

    def slow(self, now: float) -> str:
        """Return a message, once for each long wait, that names the ranks waited for; empty otherwise."""
        running = [(rank, known) for rank, known in enumerate(self.ranks) if known.left is None]
        late = [known for _, known in running if not known.call]
        long = [(rank, known) for rank, known in running if known.call and now - known.since > _SLOW]
        keys = {(rank, known.number) for rank, known in long}
        if not late or not long or keys & self._told:
            return ""
        self._told |= keys
        calls = self._calls([known for _, known in long])
        others = "; ".join(f"{known.name} is at {known.at}" for known in late[:4])
        return errors.RANK_SLOW.text(calls=calls, seconds=_SLOW, late=others)

    def _calls(self, waiting: Sequence[Rank]) -> str:
        shown = [f"{known.name.split(' (')[0]} in {known.call} at {known.at}" for known in waiting[:4]]
        more = len(waiting) - len(shown)
        return ", ".join(shown) + (f" and {more} more" if more else "")
