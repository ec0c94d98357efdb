"""How well a run did: the figures that the script prints, and how well the outputs fit the targets."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_HIGHER = re.compile(
    r"acc|correct|right|\bhits?\b|recall|precis|\bf1\b|\bauc\b|\bm?ap\b|\bm?iou\b|dice|bleu|reward|return|\br2\b|psnr|"
    r"ssim|corr|\bwins?\b|won|solved|explained|success|found|agree|solved|kept|score",
    re.IGNORECASE,
)
_LOWER = re.compile(
    r"loss|err|\b[rn]?m[sa]e\b|rms|nll|perplex|ppl|bits|\bkl\b|distance|\b[wc]er\b|wrong|deviation|\boff\b|cost|gap|miss",
    re.IGNORECASE,
)
_PART = re.compile(r"\bkl\b|\brecon|\brec\b", re.IGNORECASE)
"""Terms of a bound, of which one falls while the other rises."""
_HELD_OUT = re.compile(r"test|\bval(id\w*)?\b|held|eval|new|unseen|\bdev\b|true|clean|sampl", re.IGNORECASE)
_BASELINE = re.compile(r"chance|guess|baseline|best possible|of the mean|constant|lr\b|rate|entropy of", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?(?![\w])|\b(?:nan|inf)\b|(?<=-)inf\b")


@dataclass(frozen=True)
class Figure:
    """A figure of a run.

    Attributes:
        name: as the script prints it; `value`: the last one, `first` the first one.
        higher: whether a higher one is better.
        held_out: whether it is about examples that training has not seen.
        own: whether the script prints it; otherwise the doctor measured it.
    """

    name: str
    value: float
    higher: bool
    held_out: bool
    own: bool = True
    first: float = math.nan

    @property
    def of_loss(self) -> bool:
        """Whether it may be the value of the loss, whose scale a change may alter."""
        return self.own and not self.higher

    @property
    def is_share(self) -> bool:
        """Whether it is a share of what could be reached, up to 1."""
        return self.higher and (-0.05 <= self.value <= 1 or not self.own)

    @property
    def weight(self) -> int:
        """How much it tells of the result: of new examples, and as a share rather than a loss."""
        return 4 * self.held_out + 2 * self.higher + (not self.own)


def figures(printed: str, fits: Mapping[str, float]) -> dict[str, Figure]:
    r"""Return the figures of a run: the last ones printed under each name, and the fits of its trainings.

    Example:
        >>> found = figures("epoch 1 loss 0.9 accuracy 0.31\nepoch 2 loss 0.7 accuracy 0.55", {})
        >>> found["accuracy"].value, found["accuracy"].higher, "epoch" in found
        (0.55, True, False)
    """
    found: dict[str, Figure] = {}
    for line in printed.splitlines()[-400:]:
        for name, value in _pairs(line):
            higher = bool(_HIGHER.search(name))
            lower = bool(_LOWER.search(name)) or (bool(_PART.search(name)) and not higher)
            if (higher or lower) and not _BASELINE.search(name):
                first = found[name].first if name in found else value
                found[name] = Figure(name, value, higher and not lower, bool(_HELD_OUT.search(name)), first=first)
    _join_parts(found)
    for name, value in fits.items():
        found[name] = Figure(name, value, True, "without gradients" in name, own=False)
    return found


def _join_parts(found: dict[str, Figure]) -> None:
    """Replace the terms of a bound by their sum, or leave them out beside the whole loss."""
    for held_out in (False, True):
        same = [one for one in found.values() if one.held_out == held_out and not one.higher]
        terms = [one for one in same if _PART.search(one.name)]
        if len(same) < 2 or not terms:
            continue
        for one in terms:
            del found[one.name]
        if len(terms) == len(same):
            name = " and ".join(one.name for one in terms)
            value, first = sum(one.value for one in terms), sum(one.first for one in terms)
            found[name] = Figure(name, value, higher=False, held_out=held_out, first=first)


def _pairs(line: str) -> Iterator[tuple[str, float]]:
    """Yield the numbers of a line with the words before them."""
    at, before = 0, ""
    for match in _NUMBER.finditer(line):
        words = re.sub(r"[^A-Za-z0-9 ]+", " ", line[at : match.start()]).strip().lower()
        words = re.sub(r"\s+", " ", words)
        name = words or before
        before = name
        at = match.end()
        if name:
            value = float(match.group().replace("nan", "nan"))
            yield name, value / 100 if line[at : at + 1] == "%" or line[at : at + 2] == " %" else value


def gain(before: Figure, after: Figure | None) -> float:
    """Return how much better a figure is: 1 and more for a change that counts, 0 for none.

    A share must win a third of what is lacking to 1, and a tenth at least. An error must fall by 40 %, and by a
    tenth of its first value; one that is 0 from the first time on was not computed. Any other figure must rise by half
    of itself.
    """
    if after is None or not math.isfinite(after.value) or (not after.higher and after.value == after.first == 0):
        return 0.0
    if not math.isfinite(before.value):
        return 1.0 if not before.higher else 0.0
    moved = (after.value - before.value) * (1 if before.higher else -1)
    if (
        moved <= 0
        or (before.is_share and not after.is_share)
        or (not before.higher and after.value < 0 <= before.value)
    ):
        return 0.0
    if before.is_share and after.is_share:
        lacking = 1 - before.value
        return min(moved / 0.1, moved / max(lacking / 3, 1e-9))
    if not before.higher and before.value >= 0:
        fell = moved / max(0.4 * before.value, 1e-9)
        return min(fell, moved / (0.1 * before.first)) if before.first > before.value else fell
    return moved / max(0.5 * abs(before.value), 0.05)


def is_finished(found: Mapping[str, Figure]) -> bool:
    """Tell whether no change can make a run much better: its best figures are near 1."""
    shares = [one for one in found.values() if one.is_share]
    top = max((one.weight for one in shares), default=0)
    return bool(shares) and all(one.value > 0.97 for one in shares if one.weight == top)
