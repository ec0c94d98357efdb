"""`examine_data`: faults of a data set, found before training."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, TextIO

import numpy as np

from glassgrad.doctor import library, rules
from glassgrad.doctor.facts import Facts, Finding
from glassgrad.doctor.library import Array
from glassgrad.doctor.reports.wording import lines


@dataclass(frozen=True)
class DataExamination:
    """The findings about a data set.

    Attributes:
        inputs: facts about the inputs of training.
        constant: the number of the `features` that have the same value in all examples.
        scales: the smallest and the largest standard deviation of the features that vary.
        duplicates: training examples that repeat an earlier one.
        contradictions: inputs that occur with several targets.
        in_both: held-out examples whose inputs are also in the training set, out of `held_out`.
        classes: the number of examples of the rarest and the most common class; (0, 0) if targets are not classes.
        unseen: classes of the held-out examples that the training set lacks.
        findings: those of the rules, errors first.

    Example:
        >>> import glassgrad as gg
        >>> found = gg.doctor.examine_data((gg.ones(6, 2), gg.tensor([0, 1, 0, 1, 0, 1])), report=False)
        >>> [one.rule for one in found.findings]
        ['inputs constant', 'examples twice', 'examples twice']
    """

    inputs: tuple[Facts, ...]
    features: int
    constant: int
    scales: tuple[float, float]
    duplicates: int
    contradictions: int
    in_both: int
    held_out: int
    classes: tuple[int, int]
    unseen: tuple[int, ...]
    targets: None = None
    findings: tuple[Finding, ...] = ()

    @property
    def healthy(self) -> bool:
        """Whether there are no errors or warnings."""
        return all(finding.severity == "info" for finding in self.findings)

    def __str__(self) -> str:
        return "\n".join(lines(self.findings))


def examine_data(
    train: Any, held_out: Any = None, *, report: bool = True, file: TextIO | None = None
) -> DataExamination:
    """Examine data sets before a model is trained on them: `(inputs, targets)` for training, and held-out ones.

    It looks for NaN, scales far from 1, constant features, duplicate or contradicting examples, training examples among
    the held-out ones, and classes that the training set lacks.

    Args:
        train: arrays or tensors; the first axis indexes the examples.
        held_out: the same for validation or test examples.
        report: print the findings, to `file` or standard output.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> inputs, targets = rng.normal(size=(100, 5)), rng.integers(0, 3, 100)
        >>> found = examine_data((inputs[:80], targets[:80]), (inputs[60:], targets[60:]), report=False)
        >>> found.in_both, [finding.rule for finding in found.findings]
        (20, ['examples in both splits'])
    """
    inputs, targets = (_array(part) for part in train)
    assert inputs is not None
    flat = inputs.reshape(len(inputs), -1)
    keys = _keys(flat)
    known: dict[bytes, set[Any]] = {}
    for key, target in zip(keys, _targets(targets, len(flat)), strict=True):
        known.setdefault(key, set()).add(target)
    others = _array(held_out[0]) if held_out is not None else None
    theirs = _keys(others.reshape(len(others), -1).astype(flat.dtype)) if others is not None else []
    with np.errstate(all="ignore"):
        spread = flat.astype(np.float64).std(0) if flat.dtype.kind == "f" else np.ones(1)
    varying = spread[spread > 0]
    found = DataExamination(
        inputs=(Facts.of("input", inputs),) if inputs.dtype.kind == "f" else (),
        features=flat.shape[1],
        constant=int((spread == 0).sum()),
        scales=(float(varying.min()), float(varying.max())) if varying.size else (1.0, 1.0),
        duplicates=len(keys) - len(known),
        contradictions=sum(len(answers) > 1 for answers in known.values()),
        in_both=sum(key in known for key in theirs),
        held_out=len(theirs),
        classes=_balance(targets),
        unseen=_unseen(targets, _array(held_out[1]) if held_out is not None else None),
    )
    found = DataExamination(**{**vars(found), "findings": rules.apply(rules.DATA_RULES, found)})
    if report:
        print(found, file=file or sys.stdout)
    return found


def _array(part: Any) -> Array | None:
    if part is None or isinstance(part, np.ndarray):
        return part
    return library.numbers(part) if library.is_tensor(part) else np.asarray(part)


def _keys(flat: Array) -> list[bytes]:
    return [row.tobytes() for row in np.ascontiguousarray(flat)]


def _targets(targets: Array | None, count: int) -> list[Any]:
    """Return a comparable value for each target; real-valued targets would always differ slightly."""
    if targets is None or targets.dtype.kind not in "iub" or targets.ndim != 1:
        return [0] * count
    listed: list[Any] = targets.tolist()
    return listed


def _balance(targets: Array | None) -> tuple[int, int]:
    if targets is None or targets.dtype.kind not in "iub" or targets.ndim != 1:
        return 0, 0
    counts = np.unique(targets, return_counts=True)[1]
    return int(counts.min()), int(counts.max())


def _unseen(train: Array | None, held_out: Array | None) -> tuple[int, ...]:
    if train is None or held_out is None or train.dtype.kind not in "iub" or train.ndim != 1:
        return ()
    return tuple(int(one) for one in np.setdiff1d(held_out, train))


__all__ = ["DataExamination", "examine_data"]
