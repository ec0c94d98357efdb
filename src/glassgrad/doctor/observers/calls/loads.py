"""Remember the weights that were loaded into modules, to check whether they still hold when training begins."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from glassgrad.doctor import library
from glassgrad.doctor.library import Array, Module

_MOST, _NUMBERS, _LEAST = 24, 256, 24
"""The number of matrices to remember of a load, the elements to remember of each, and the fewest that suffice."""
_APART, _MOSTLY = 0.3, 0.6
"""The correlation with the loaded values below which a matrix was initialised again, and the share of such matrices."""


@dataclass(frozen=True)
class Load:
    """A load of weights: the module, the user's line, the loaded names, and some elements of each matrix."""

    module: weakref.ref[Module]
    where: str
    names: frozenset[str]
    numbers: dict[str, Array]


def noted(module: Module, where: str, missing: Collection[str] = ()) -> Load:
    """Remember the weights of a module right after a load that had none for the `missing` names."""
    names = frozenset(name for name, _ in module.named_parameters() if name not in missing)
    return Load(weakref.ref(module), where, names, {name: one for name, one in _some(module) if name in names})


def resting(loads: list[Load]) -> frozenset[int]:
    """Return the ids of the parameters that still have the weights that were loaded into them."""
    found: set[int] = set()
    for load in loads:
        module = load.module()
        if module is None:
            continue
        now = dict(_some(module))
        for name, one in module.named_parameters():
            known, loaded = load.numbers.get(name), name in load.names
            if loaded and (known is None or np.array_equal(known, now.get(name, known))):
                found.add(id(one))
    return frozenset(found)


def _some(module: Module) -> Iterator[tuple[str, Array]]:
    matrices = [(name, one) for name, one in module.named_parameters() if len(one.shape) > 1][:_MOST]
    for name, one in matrices:
        flat = library.values(one).reshape(-1)[:_NUMBERS]
        if flat.size >= _LEAST and flat.dtype.kind == "f":
            yield name, np.array(flat, np.float64)


def drawn_anew(model: Module, loads: list[Load]) -> tuple[str, int, int] | None:
    """Return the line of the last load after which most of the loaded matrices were initialised again.

    Also returns the number of these matrices, and of all remembered ones. None if there is no such load.
    """
    parts = {id(one) for one in model.modules()} if hasattr(model, "modules") else set()
    for load in reversed(loads):
        module = load.module()
        if module is None or id(module) not in parts:
            continue
        now = dict(_some(module))
        known = [(one, now[name]) for name, one in load.numbers.items() if name in now and now[name].shape == one.shape]
        anew = sum(_correlation(one, other) < _APART for one, other in known)
        return (load.where, anew, len(known)) if anew > 1 and anew > _MOSTLY * len(known) else None
    return None


def _correlation(one: Array, other: Array) -> float:
    one, other = one - one.mean(), other - other.mean()
    size = float(np.sqrt((one @ one) * (other @ other)))
    return float(one @ other) / size if size > 0 else 1.0
