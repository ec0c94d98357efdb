"""Tell whether a model has got other parameters since its training began, and where the training goes on with them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from types import FrameType

import numpy as np

from glassgrad.base import provenance
from glassgrad.doctor import library
from glassgrad.doctor.library import Module, Tensor


def grown(model: Module, known: Collection[int]) -> bool:
    """Tell whether a model has parameters that are not among the known ids."""
    return any(id(one) not in known for one in model.parameters())


def is_copied(stray: Tensor, named_ones: Iterable[tuple[str, Tensor]]) -> bool:
    """Tell whether a parameter is a copy of one of a model, as those of a target network are."""
    mine = (library.values(one) for _, one in named_ones if tuple(one.shape) == tuple(stray.shape))
    return any(np.array_equal(one, library.values(stray)) for one in mine)


def goes_on(frame: FrameType | None) -> str:
    """Return the user's line outside of all functions that led to a frame inside of one; else empty."""
    inside = frame is not None and frame.f_code.co_name != "<module>"
    while inside and frame is not None:
        if frame.f_code.co_name == "<module>" and not provenance.is_internal(frame.f_code.co_filename):
            return str(provenance.resolve(frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return ""
