"""What a workload declares: its peers, what their losses must agree to, and the bars it is held to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Bar:
    """`ours` takes at most `limit` of the time of the fastest of `theirs`."""

    ours: str
    theirs: tuple[str, ...]
    limit: float

    def ratio(self, medians: Mapping[str, float]) -> float | None:
        """Return our time over that of the fastest peer that was measured; None where there is nothing to compare."""
        theirs = [medians[name] for name in self.theirs if name in medians]
        return medians[self.ours] / min(theirs) if self.ours in medians and theirs else None

    def __str__(self) -> str:
        peers = " / ".join(self.theirs)
        return f"{self.ours} at most {self.limit:g} of {f'the faster of {peers}' if len(self.theirs) > 1 else peers}"


@dataclass(frozen=True)
class Workload:
    """One training step that every peer implements.

    A peer is a module of `package` with ``build(mode) -> run``; ``run(count)`` does `count` further steps, waits for
    them and returns the last loss as a float. `peers` maps the printed name to ``module`` or ``module:mode``.
    A `run` with an attribute ``chunk`` is timed in multiples of it.
    """

    key: str
    title: str
    package: str
    peers: Mapping[str, str]
    reference: str
    bars: tuple[Bar, ...] = ()
    check_steps: int = 10
    tolerance: float = 1e-3
    seconds: float = 0.5
    facts: Mapping[str, str] | None = None
