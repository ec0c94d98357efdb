"""The declaration of a workload: its peers, the tolerance of their losses, and its bars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

AVX2 = "AVX2"  # the end of the names of processors that have, or are held to, vectors of 32 bytes


@dataclass(frozen=True)
class Times:
    """Seconds of the peers of a workload: a step (median over rounds), and the first step of peers that compile."""

    steps: Mapping[str, float]
    first_steps: Mapping[str, float]


@dataclass(frozen=True)
class Bar:
    """`ours` takes at most `limit` of the time of the fastest of `theirs`; at most `narrow` of it without AVX-512."""

    ours: str
    theirs: tuple[str, ...]
    limit: float
    narrow: float | None = None

    def measured(self, times: Times) -> float | None:
        """Return our time over that of the fastest measured peer; None if there is nothing to compare."""
        theirs = [times.steps[name] for name in self.theirs if name in times.steps]
        return times.steps[self.ours] / min(theirs) if self.ours in times.steps and theirs else None

    def absent(self, times: Times) -> list[str]:
        """The peers that were not measured: one of them may be faster."""
        return [name for name in self.theirs if name not in times.steps]

    def limit_on(self, processor: str) -> float:
        """Return the limit on this kind of processor, which is given by its name in the tables."""
        return self.narrow if self.narrow is not None and processor.endswith(AVX2) else self.limit

    def __str__(self) -> str:
        peers = " / ".join(self.theirs)
        limit = f"{self.limit:g}" if self.narrow is None else f"{self.limit:g} ({self.narrow:g} with {AVX2})"
        return f"{self.ours} at most {limit} of {f'the faster of {peers}' if len(self.theirs) > 1 else peers}"


@dataclass(frozen=True)
class FirstStep:
    """The first step of `ours`, traced and compiled with nothing on the disk, takes at most `limit` seconds."""

    ours: str
    limit: float
    theirs: ClassVar[tuple[str, ...]] = ()

    def measured(self, times: Times) -> float | None:
        """Return its seconds; None if it was not measured."""
        return times.first_steps.get(self.ours)

    def absent(self, times: Times) -> list[str]:
        """Return no peers: nothing is compared."""
        return []

    def limit_on(self, processor: str) -> float:
        """Return the limit, which is the same on every processor."""
        return self.limit

    def __str__(self) -> str:
        return f"first step of {self.ours} at most {self.limit:g} s"


@dataclass(frozen=True)
class Workload:
    """One training step that every peer implements.

    A peer is a module of `package` with ``build(mode) -> run``; ``run(count)`` does `count` further steps, waits for
    them and returns the last loss as a float. `peers` maps the printed name to ``module`` or ``module:mode``.
    A `run` with an attribute ``chunk`` is timed in multiples of it. For a `run` with an attribute ``check``, which is
    also a run, the losses of ``check`` are compared: the same training without the random draws of each library.
    """

    key: str
    title: str
    package: str
    peers: Mapping[str, str]
    reference: str
    bars: tuple[Bar | FirstStep, ...] = ()
    check_steps: int = 10
    tolerance: float = 1e-3
    seconds: float = 0.5
    facts: Mapping[str, str] | None = None
