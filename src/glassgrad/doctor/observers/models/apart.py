"""Find forward passes in training mode whose outputs no backward pass uses, such as those of a validation."""

from __future__ import annotations

from collections import Counter

from glassgrad.doctor.run import Site, line_of

_FEW, _ROUNDS, _CALLS, _TOGETHER = 0.34, 8, 4, 2.0
"""The largest share of rounds in which such a line runs, and the fewest rounds, calls, and calls in a round."""


class Apart:
    """Counts the lines that call a model, by the rounds from one backward pass to the next.

    Example:
        >>> Apart().found()
        ('', 0)
    """

    def __init__(self) -> None:
        self._waiting: Counter[Site] = Counter()
        self._calls: Counter[Site] = Counter()
        self._seen: Counter[Site] = Counter()
        self._used: set[Site] = set()
        self._last: Site | None = None
        self._rounds = 0

    def entered(self, site: Site) -> None:
        """Record a forward pass in training mode with gradients."""
        self._waiting[site] += 1
        self._last = site

    def used(self) -> None:
        """Record a backward pass. The last call before it belongs to the training."""
        if self._last is not None:
            self._used.add(self._last)
            self._rounds += 1
            self._close()

    def _close(self) -> None:
        self._calls.update(self._waiting)
        self._seen.update(self._waiting.keys())
        self._waiting.clear()
        self._last = None

    def found(self) -> tuple[str, int]:
        """Return the line with the most calls that no backward pass uses, and their number; "" and 0 if none."""
        self._close()
        for site, calls in self._calls.most_common():
            rounds = self._seen[site]
            few = self._rounds >= _ROUNDS and rounds <= _FEW * self._rounds and calls >= max(_CALLS, _TOGETHER * rounds)
            if few and site not in self._used:
                return line_of(site), calls
        return "", 0
