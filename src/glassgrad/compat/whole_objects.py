"""`torch.save(model, path)` of whole objects: a pickle, which `torch.load` reads only with `weights_only=False`.

`glassgrad.save` refuses objects, because reading them runs code. Programs that save their model whole still end well
under the name torch, and PyTorch's word for "I trust this file" reads it.
"""

from __future__ import annotations

import pickle
from io import BytesIO
from pathlib import Path

from glassgrad import errors, serialization
from glassgrad.base import provenance
from glassgrad.ops.core import Array

_MARK = b"glassgrad: whole objects, read with weights_only=False\n"


def save(obj: object, f: Array, **hints: object) -> None:
    """Write tensors and plain data as `glassgrad.save` does, and anything else as a pickle."""
    try:
        serialization.save(obj, f, **hints)  # refuses before it writes
    except errors.KindError:
        serialization.write(f, _MARK + pickle.dumps(obj))


def load(f: Array, map_location: Array = None, *, weights_only: bool | None = None, **hints: object) -> Array:
    """Read what `save` wrote; whole objects only with `weights_only=False`, because reading them may run any code.

    Raises:
        ArgumentError: the file holds whole objects, and `weights_only=False` is not given.
    """
    content = f.read() if hasattr(f, "read") else Path(f).read_bytes()
    if not content.startswith(_MARK):
        again: Array = BytesIO(content) if hasattr(f, "read") else f
        return serialization.load(again, map_location, weights_only=weights_only, **hints)
    if weights_only is not False:
        raise errors.WHOLE_OBJECTS(
            file=getattr(f, "name", "the file" if hasattr(f, "read") else f), where=provenance.here()
        )
    return pickle.loads(content[len(_MARK) :])  # noqa: S301 - the caller says that the file is trusted


__all__ = ["load", "save"]
