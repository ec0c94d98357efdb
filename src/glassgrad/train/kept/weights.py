"""Files of weights: written with a checksum, and loaded only if every name and shape matches the model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.train.kept.checkpoint import load_checkpoint, pack, save_checkpoint

Array = np.ndarray


def write_weights(path: Path, weights: Mapping[str, Array], description: dict[str, Any]) -> None:
    """Write weights under their names, readable by PyTorch, with a description. Raises `OSError`."""
    arrays: dict[str, Array] = {}
    for name, array in weights.items():
        pack(array, name, arrays)
    save_checkpoint(path, arrays, description)


def load_weights(model: Any, path: str | Path) -> dict[str, Any]:
    """Load a run's model.safetensors or one of the files in best/; return the description stored with it.

    Raises `errors.InputError` for a file that is missing, truncated, corrupt or not written by glassgrad. For weights
    of another model it names the missing and unexpected names and those of another shape; the model is then unchanged.

    Example:
        >>> import glassgrad as gg
        >>> from glassgrad.train import load_weights
        >>> model = gg.nn.Linear(2, 1)
        >>> description = load_weights(model, "runs/first/model.safetensors")  # doctest: +SKIP
    """
    arrays, description = load_checkpoint(Path(path))
    check_shapes(model, {name: list(array.shape) for name, array in arrays.items()}, Path(path))
    model.load_state_dict(arrays)
    return description


def shapes_of(model: Any) -> dict[str, list[int]]:
    """Return the shape of every parameter and buffer by its name."""
    return {name: list(value.shape) for name, value in model.state_dict().items()}


def check_shapes(model: Any, given: Mapping[str, list[int]], path: Path) -> None:
    """Raise `errors.InputError` unless the shapes in a file match the model."""
    own = shapes_of(model)
    missing = [name for name in own if name not in given]
    unexpected = sorted(name for name in given if name not in own)
    wrong = [
        f"{name} {tuple(given[name])} instead of {tuple(shape)}"
        for name, shape in own.items()
        if name in given and list(given[name]) != list(shape)
    ]
    if missing or unexpected or wrong:
        raise errors.CHECKPOINT_OTHER_MODEL(
            path=path,
            missing=f" Missing: {_some(missing)}." if missing else "",
            unexpected=f" Unexpected: {_some(unexpected)}." if unexpected else "",
            wrong=f" Wrong shape: {_some(wrong)}." if wrong else "",
        )


def _some(names: list[str], most: int = 8) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


__all__ = ["load_weights"]
