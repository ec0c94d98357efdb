"""Read arrays from NumPy's files, whose reader raises many kinds of errors for a damaged file."""

from __future__ import annotations

import io
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

# The errors that changed bytes led to: in the archive's directory (encrypted, another method), in the compressed data,
# in the text that describes an array (not Python, a shape too large for any memory).
_ARCHIVE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError)
_TEXT = (SyntaxError, tokenize.TokenError, MemoryError, OverflowError)
_DAMAGED = (*_ARCHIVE, *_TEXT, ValueError, KeyError, TypeError, AttributeError, IndexError)


def read_arrays(path: Path) -> dict[str, Any] | np.ndarray:
    """Return the arrays of an npz file by their names, or the array of an npy file.

    Raises `OSError` if there is no such file, and `ValueError` for a damaged or incomplete one.
    """
    content = path.read_bytes()
    try:
        found = np.load(io.BytesIO(content), allow_pickle=False)
        if isinstance(found, np.ndarray):
            return found
        with found:
            return {name: found[name] for name in found.files}
    except (OSError, *_DAMAGED) as error:
        raise ValueError(f"it is damaged, or no file of NumPy's ({' '.join(str(error).split())})") from None


__all__ = ["read_arrays"]
