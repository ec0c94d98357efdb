"""Load a state dictionary: compare names and shapes, and change nothing if they do not match."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.writes import MUTATIONS


class Incompatible(NamedTuple):
    """The result of `load_state_dict`: missing keys of the model, and unexpected keys of the state."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"Incompatible(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


def as_array(value: Any) -> np.ndarray:
    """Return the values of a Tensor, of a PyTorch tensor, or of an array."""
    if hasattr(value, "detach"):
        value = value.detach()
    return np.asarray(value)


def is_open(tensor: Tensor) -> bool:
    """Tell whether a tensor is that of a lazy layer before its first input: it takes values of any shape."""
    return tensor._extra is not None and "open" in tensor._extra


def fill(tensor: Tensor, array: np.ndarray) -> None:
    """Give the tensor of a lazy layer its values, and with them its shape."""
    tensor.array = array.astype(tensor.dtype)
    assert tensor._extra is not None  # it is open
    del tensor._extra["open"]


def load(model: str, own: Mapping[str, Tensor], given: Any, strict: bool, assign: bool) -> Incompatible:
    """Copy the given values into the tensors of the same names.

    Args:
        model: its name, for the message.
        own: the model's tensors by name.
        given: tensors (glassgrad's or PyTorch's) or arrays by name.
        strict: every name has to be on both sides.
        assign: use the given memory and dtype instead of copying.

    Raises:
        AutogradError: on missing or unexpected keys (if `strict`) or a wrong shape; nothing is changed then.
        KindError: `given` is not a dictionary.
    """
    if not isinstance(given, Mapping):
        advice = "\nNext: pass its state_dict()." if hasattr(given, "state_dict") else ""
        kind, where = type(given).__name__, provenance.here()
        raise errors.STATE_DICT_KIND(model=model, kind=kind, next=advice, where=where)
    missing = [key for key in own if key not in given]
    unexpected = [key for key in given if key not in own]
    arrays = {key: as_array(value) for key, value in given.items() if key in own}
    wrong = [
        f"{key}: {array.shape}, expected {tuple(own[key].shape)}"
        for key, array in arrays.items()
        if array.shape != tuple(own[key].shape) and not is_open(own[key])
    ]
    if wrong or (strict and (missing or unexpected)):
        raise errors.STATE_DICT_MISMATCH(
            model=model,
            missing="\n  missing: " + ", ".join(missing) if missing else "",
            unexpected="\n  unexpected: " + ", ".join(unexpected) if unexpected else "",
            wrong="\n  wrong shape: " + "; ".join(wrong) if wrong else "",
            next=_advice(own, given, bool(wrong)),
        )
    for key, array in arrays.items():
        if is_open(own[key]) and array.size:
            fill(own[key], array)
        elif assign:
            own[key].array = array
        else:
            np.copyto(own[key].array, array, casting="unsafe")
            MUTATIONS.record(own[key].array)
    return Incompatible(missing, unexpected)


def _advice(own: Mapping[str, Any], given: Mapping[str, Any], wrong: bool) -> str:
    """Advise on a state that does not fit: recognise wrappers and files of several states."""
    inside = [key for key, value in given.items() if isinstance(value, Mapping) and own.keys() & value.keys()]
    if inside:
        return f"pass what is under {inside[0]!r}"
    for key in given:
        prefix, _, rest = str(key).partition(".")
        if rest in own and key not in own:
            return f"take the prefix away: {{name.removeprefix({prefix + '.'!r}): value for name, value in ...}}"
    fits = "" if wrong else ", or pass strict=False to load what fits"
    return f"build the model with the same layers and sizes{fits}"
