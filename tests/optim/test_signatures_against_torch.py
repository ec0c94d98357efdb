"""Optimizers and schedules have PyTorch's options, in its order and with its defaults."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from glassgrad import optim
from glassgrad.optim import lr_scheduler, swa_utils

torch = pytest.importorskip("torch", reason="PyTorch is the oracle of these tests")

PLACES = {
    "optim": (optim, torch.optim),
    "optim.lr_scheduler": (lr_scheduler, torch.optim.lr_scheduler),
    "optim.swa_utils": (swa_utils, torch.optim.swa_utils),
}
CLASSES = [
    (place, name)
    for place, (ours, theirs) in PLACES.items()
    for name in ours.__all__
    if callable(getattr(ours, name)) and hasattr(theirs, name)
]


def options_of(kind: Any) -> dict[str, Any]:
    parameters = inspect.signature(kind).parameters.values()
    return {one.name: one.default for one in parameters if one.default is not inspect.Parameter.empty}


@pytest.mark.parametrize(("place", "name"), CLASSES)
def test_the_defaults_are_pytorchs(place: str, name: str) -> None:
    ours, theirs = (options_of(getattr(module, name)) for module in PLACES[place])
    shared = [option for option in ours if option in theirs]
    assert shared == [option for option in theirs if option in ours], "in another order"
    for option in shared:
        assert ours[option] == theirs[option] or {ours[option], theirs[option]} <= {None, False}, option


def test_most_classes_were_compared() -> None:
    assert len(CLASSES) > 25
