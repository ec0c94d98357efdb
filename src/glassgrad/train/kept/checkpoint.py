"""Checkpoints: arrays in a safetensors file, everything else as JSON in its header, both under one checksum.

It is one file, so a rename replaces it atomically; without pickle, so reading it runs no code. PyTorch's
`safetensors.torch.load_file` reads the arrays.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from glassgrad import errors
from glassgrad.data.atomic import write_atomically
from glassgrad.errors.packages import needed
from glassgrad.errors.runs import RUN_NEWER

Array = np.ndarray

_KEY = "glassgrad"
"""The only key of the header's metadata; safetensors would write two of them in random order."""

FORMAT = 1
"""The format of these files. A version reads those up to its own; raise it only where an older one would misread."""

_ENTRIES = {"format", "sha256", "rest"}

_DEEPEST = 150
"""The deepest nesting that is read: states have a dozen levels, and recursive code can handle this many."""


class Stateful(Protocol):
    """Anything that a checkpoint can store: modules, optimizers, schedules, generators."""

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to continue."""

    def load_state_dict(self, state: dict[str, Any], /) -> Any:
        """Load what `state_dict` returned."""


def save_checkpoint(path: Path, arrays: dict[str, Array], rest: dict[str, Any]) -> None:
    """Write arrays and the JSON-able `rest` to `path`, atomically. Raises `OSError`; an old file then stays whole."""
    with needed("safetensors", "checkpoints"):
        from safetensors.numpy import save

    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    rest = json.loads(json.dumps(rest))  # in the form that is read back: numeric keys become text, also for sorting
    entry = {"format": FORMAT, "sha256": _checksum(arrays, rest), "rest": rest}
    write_atomically(path, save(arrays, metadata={_KEY: json.dumps(entry)}))


def load_checkpoint(path: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    """Read what `save_checkpoint` wrote. Raises `errors.InputError` if it is missing, truncated or corrupt."""
    with needed("safetensors", "checkpoints"):
        from safetensors import SafetensorError
        from safetensors.numpy import load

    try:
        content = path.read_bytes()
    except OSError as error:
        raise errors.RUN_MISSING(path=path.parent, reason=f"{path.name} cannot be read ({error.strerror})") from None
    try:
        arrays = load(content)
        entry = json.loads(_metadata(content).get(_KEY, "null"))
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        if path.suffix != ".safetensors" and content[8:9] != b"{":  # the start of a safetensors header
            raise errors.RUN_FILE(path=path) from None
        raise errors.RUN_DAMAGED(path=path, reason=f"it is cut short or not a safetensors file ({error})") from None
    except RecursionError:
        raise errors.RUN_DAMAGED(path=path, reason="its description is nested too deeply") from None
    if not isinstance(entry, dict) or not isinstance(entry.get("rest"), dict):
        raise errors.RUN_FOREIGN(path=path)
    _check_format(path, entry)
    if _is_deeper(entry, _DEEPEST):
        raise errors.RUN_DAMAGED(path=path, reason="its description is nested too deeply")
    if entry.get("sha256") != _checksum(arrays, entry["rest"]):
        raise errors.RUN_DAMAGED(path=path, reason="its checksum does not match its content")
    rest: dict[str, Any] = entry["rest"]
    return arrays, rest


def _check_format(path: Path, entry: dict[str, Any]) -> None:
    given = entry.get("format", 1)  # 0.1 wrote no number
    if type(given) is not int or given < 1:
        raise errors.RUN_DAMAGED(path=path, reason="the number of its format is none")
    if given > FORMAT:
        raise RUN_NEWER(path=path, given=given, most=FORMAT)
    if unknown := set(entry) - _ENTRIES:  # such as a damaged word "format", which the checksum does not cover
        raise errors.RUN_DAMAGED(path=path, reason=f"it has an unknown entry {min(unknown)!r}")


def _metadata(content: bytes) -> dict[str, str]:
    # Eight bytes of length, little-endian, then a JSON header; NumPy's safetensors reader does not return this part.
    length = int.from_bytes(content[:8], "little")
    metadata: dict[str, str] = json.loads(content[8 : 8 + length]).get("__metadata__", {})
    return metadata


def _is_deeper(tree: Any, most: int) -> bool:
    """Tell whether lists and dictionaries are nested more than `most` levels deep, without recursion."""
    level = [tree]
    for _ in range(most):
        inner: list[Any] = []
        for one in level:
            if isinstance(one, dict | list):
                inner += one.values() if isinstance(one, dict) else one
        level = inner
    return bool(level)


def _checksum(arrays: dict[str, Array], rest: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"\n{name} {array.dtype} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def pack(tree: Any, name: str, arrays: dict[str, Array]) -> Any:
    """Turn nested dictionaries and lists of arrays into JSON; put the arrays into `arrays` under `name`.

    Example:
        >>> import numpy as np
        >>> arrays = {}
        >>> packed = pack({"state": {0: np.ones(2)}, "lr": 0.1}, "optimizer", arrays)
        >>> sorted(arrays)
        ['optimizer.state.0']
        >>> unpack(packed, arrays)["state"][0]
        array([1., 1.])
    """
    if isinstance(tree, dict):
        # Pairs instead of an object: optimizers number their parameters, and JSON has no integer keys.
        return {"pairs": [[key, pack(value, f"{name}.{key}", arrays)] for key, value in tree.items()]}
    if isinstance(tree, list | tuple):
        return [pack(value, f"{name}.{place}", arrays) for place, value in enumerate(tree)]
    if isinstance(tree, np.ndarray):
        arrays[name] = tree
        return {"array": name}
    if hasattr(tree, "detach"):
        arrays[name] = np.asarray(tree.detach().numpy())
        return {"tensor": name}
    return tree.item() if isinstance(tree, np.generic) else tree


def unpack(tree: Any, arrays: dict[str, Array]) -> Any:
    """Undo `pack`. Raises `KeyError`, `TypeError` or `ValueError` for anything not made by `pack`."""
    if isinstance(tree, list):
        return [unpack(value, arrays) for value in tree]
    if not isinstance(tree, dict):
        return tree
    if "pairs" in tree:
        return {key: unpack(value, arrays) for key, value in tree["pairs"]}
    if "tensor" in tree:
        from glassgrad.engine.tensors.creation import tensor

        return tensor(arrays[tree["tensor"]])
    return arrays[tree["array"]]
