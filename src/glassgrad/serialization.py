"""`save` and `load`: tensors in a safetensors file, the structure around them as JSON in its header.

No pickle, so loading runs no code. A plain state dictionary is stored under its own names, in the format of PyTorch's
`safetensors.torch`; a nested object has its structure in the header.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.base.tables import pairs
from glassgrad.engine.tensor import Tensor, make
from glassgrad.engine.tensors import devices
from glassgrad.errors.missing import lister
from glassgrad.errors.packages import needed
from glassgrad.ops.narrow import bfloat16

_KEY = "glassgrad"
_ZIP = b"PK\x03\x04"  # the beginning of PyTorch's files; older ones are plain pickles
_MAGIC_AS_TEXT = b"L119547037146038801333356L"  # the beginning of PyTorch's oldest files
_DTYPES = pairs(
    """
    F64=<f8 F32=<f4 F16=<f2 I64=<i8 I32=<i4 I16=<i2 I8=i1 U64=<u8 U32=<u4 U16=<u2 U8=u1 BOOL=?
    C64=<c8 C128=<c16
    """
)


def save(obj: Any, f: Any, **_hints: object) -> None:
    """Write tensors, or dictionaries, lists and plain values that contain them, to a file.

    Args:
        obj: the data, such as ``model.state_dict()`` or ``{"model": ..., "optimizer": ..., "step": 7}``.
        f: a path, or a file opened for writing bytes. A file at a path is replaced atomically.
        _hints: PyTorch's options for pickling; ignored.

    Raises:
        KindError: a value that is neither a tensor nor plain data, with its place in `obj`.
        FileError: the file cannot be written, as on a full disk (an `OSError`). A previous file stays unchanged.

    Example:
        >>> import io, glassgrad as gg
        >>> file = io.BytesIO()
        >>> gg.save({"weights": gg.ones(2), "step": 3}, file)
        >>> _ = file.seek(0)
        >>> gg.load(file)
        {'weights': tensor([1., 1.]), 'step': 3}
    """
    content = _encoded(obj)
    write(f, content)


def write(f: Any, content: bytes) -> None:
    """Write bytes to an open file, or to a path, whose file is replaced atomically."""
    if hasattr(f, "write"):
        f.write(content)
        return
    try:
        _write(Path(f), content)
    except OSError as error:
        raise errors.CANNOT_WRITE(file=f, reason=error.strerror or error, where=provenance.here()) from error


def _encoded(obj: Any) -> bytes:
    with needed("safetensors", "files of weights"):
        from safetensors.numpy import save as encode

    if _is_flat(obj):
        return bytes(encode({name: _stored(value) for name, value in obj.items()}, metadata={"format": "pt"}))
    arrays: dict[str, Any] = {}
    try:
        structure = json.dumps(_taken_apart(obj, arrays, ""))
    except RecursionError:
        kind = f"{type(obj).__name__} that is nested too deeply, or holds itself"
        raise errors.CANNOT_SAVE(kind=kind, path="the object", where=provenance.here(1)) from None
    return bytes(encode(arrays, metadata={_KEY: structure}))


def _write(path: Path, content: bytes) -> None:
    """Write a temporary file and rename it; write directly if the path is not a regular file."""
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def load(f: Any, map_location: Any = None, *, weights_only: bool | None = None, **_hints: object) -> Any:
    """Read what `save` wrote, or the tensors of any safetensors file as a dictionary.

    Args:
        f: a path, or a file opened for reading bytes.
        map_location: accepted; tensors are always on the cpu.
        weights_only: accepted; loading never runs code.
        _hints: PyTorch's options for pickling; ignored.

    Raises:
        ArgumentError: the file is not a safetensors file, for example one of PyTorch's pickles.
    """
    if not callable(map_location) and not isinstance(map_location, dict):
        devices.check(map_location)
    name = getattr(f, "name", f if not hasattr(f, "read") else "the file")
    content = f.read() if hasattr(f, "read") else Path(f).read_bytes()
    if _is_pytorchs(content):
        raise errors.FOREIGN_PICKLE(file=name, where=provenance.here())
    try:
        arrays, structure = _decoded(content)
        if structure is None:
            return {key: make(array, None, False) for key, array in arrays.items()}
        return _put_together(structure, arrays)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        reason: object = f"{error} is not there" if isinstance(error, KeyError) else error
        if isinstance(error, RecursionError):
            reason = "its description is nested too deeply"
        raise errors.NOT_SAFETENSORS(file=name, reason=reason, where=provenance.here()) from None


def _is_safetensors(content: bytes) -> bool:
    """Tell whether a file begins like a safetensors file: the length of the header, then the header, a JSON object."""
    return content[8:9] == b"{" and 8 + int.from_bytes(content[:8], "little") <= len(content)


def _is_pytorchs(content: bytes) -> bool:
    """Tell whether a file is a pickle, in a zip archive or on its own.

    The length at the beginning of a safetensors file may look like either: one in 32 multiples of 8 has the low byte
    0x80. In a truncated safetensors file zeros follow that byte, where a pickle has its first instructions.
    """
    if _is_safetensors(content):
        return False
    if content.startswith(_ZIP):
        return _holds_a_pickle(content)
    if content.startswith(_MAGIC_AS_TEXT):
        return True
    begins = content[:1] == b"\x80" and content[1:2] in {b"\2", b"\3", b"\4", b"\5"}
    return begins and content[2:3] not in {b"", b"\0"} and content[3:8] != bytes(5)


def _holds_a_pickle(content: bytes) -> bool:
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            return any(name.endswith("data.pkl") for name in archive.namelist())
    except zipfile.BadZipFile:  # truncated
        return True


def _decoded(content: bytes) -> tuple[dict[str, Any], Any]:
    """Return the arrays of a file and the structure around them; None for the structure if there is none.

    Raises `ValueError` unless it is a complete safetensors file.
    """
    with needed("safetensors", "files of weights"):
        from safetensors import SafetensorError, deserialize

    if content.startswith(_ZIP) and not _is_safetensors(content):
        raise ValueError("it is a zip archive, such as numpy.savez writes")
    try:
        parts = deserialize(content)  # type: ignore[no-untyped-call]  # it is not annotated
    except SafetensorError as error:
        raise ValueError(error) from None
    arrays = {name: _array(part) for name, part in parts}
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return arrays, json.loads(header.get("__metadata__", {}).get(_KEY, "null"))


def _array(part: Mapping[str, Any]) -> np.ndarray:
    kind, shape, data = part["dtype"], part["shape"], part["data"]
    if kind == "BF16":
        return np.frombuffer(bytearray(data), "<u2").view(bfloat16()).reshape(shape)
    if kind not in _DTYPES:
        raise ValueError(f"it holds numbers of type {kind}, which NumPy lacks")
    return np.frombuffer(bytearray(data), _DTYPES[kind]).reshape(shape)


def _is_flat(obj: Any) -> bool:
    return (
        isinstance(obj, Mapping)
        and bool(obj)
        and all(isinstance(name, str) and isinstance(value, Tensor) for name, value in obj.items())
    )


def _stored(value: Any) -> np.ndarray:
    array = value.detach().array if isinstance(value, Tensor) else np.asarray(value)
    return np.asarray(array, order="C")


def _taken_apart(obj: Any, arrays: dict[str, Any], path: str) -> Any:
    """Return the structure of `obj` as JSON; tensors go to `arrays` under their path."""
    if obj is None or isinstance(obj, bool | int | float | str):
        return obj
    if isinstance(obj, np.generic):
        return obj.item()
    if isinstance(obj, Tensor | np.ndarray):
        name = path or "value"
        while name in arrays:  # {"a.b": ..., "a": {"b": ...}} has one path for two tensors
            name += "'"
        arrays[name] = _stored(obj)
        kind = "array" if isinstance(obj, np.ndarray) else "grad" if obj.requires_grad else "tensor"
        return {"is": kind, "name": name}
    if isinstance(obj, Mapping):
        keys = list(obj)
        for key in keys:
            if not isinstance(key, str | int | float | bool):
                raise errors.CANNOT_SAVE(kind=f"key of type {type(key).__name__}", path=path, where=provenance.here())
        parts = [[key, _taken_apart(obj[key], arrays, f"{path}.{key}" if path else str(key))] for key in keys]
        return {"is": "dict", "parts": parts}
    if isinstance(obj, list | tuple):
        parts = [_taken_apart(part, arrays, f"{path}.{at}" if path else str(at)) for at, part in enumerate(obj)]
        return {"is": "list" if isinstance(obj, list) else "tuple", "parts": parts}
    raise errors.CANNOT_SAVE(kind=type(obj).__name__, path=path or "the object", where=provenance.here())


def _put_together(structure: Any, arrays: Mapping[str, Any]) -> Any:
    if isinstance(structure, list):
        raise TypeError("its description holds a list without a kind")
    if not isinstance(structure, dict):
        return structure
    kind = structure["is"]
    if kind == "array":
        return arrays[structure["name"]]
    if kind in {"tensor", "grad"}:
        return make(arrays[structure["name"]], None, kind == "grad")
    if kind == "dict":
        return {key: _put_together(part, arrays) for key, part in structure["parts"]}
    if kind not in {"list", "tuple"}:
        raise ValueError(f"its description names an unknown {kind!r}")
    parts = [_put_together(part, arrays) for part in structure["parts"]]
    return parts if kind == "list" else tuple(parts)


__all__ = ["load", "save"]
__dir__ = lister(__name__)
