"""The idx format, in which MNIST is distributed: a big-endian header, then the numbers.

Bytes 0 and 1 are zero, byte 2 is the type of the numbers (8: unsigned bytes), byte 3 the number of axes; then follows
the length of each axis as four bytes. Files may be gzipped under any name.
"""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path

import numpy as np

from glassgrad import errors

Array = np.ndarray

_GZIP = b"\x1f\x8b"
_UNSIGNED_BYTES = 8


def read_idx(path: str | Path, axes: int) -> Array:
    """Read an array of uint8 with the given number of axes from an idx file, gzipped or not.

    Raises `errors.InputError` if it cannot be read, is too short or too long, or is not an idx file.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "labels"
        ...     _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]))
        ...     read_idx(path, 1)
        array([7, 8, 9], dtype=uint8)
    """
    path = Path(path)
    content = _content(path)
    expected = bytes([0, 0, _UNSIGNED_BYTES, axes])
    if content[:4] != expected:
        raise errors.IDX_FOREIGN(path=path, given=content[:4].hex(" ") or "nothing", expected=expected.hex(" "))
    begin = 4 + 4 * axes
    if len(content) < begin:
        raise errors.IDX_LENGTH(path=path, given=len(content), expected=f"a header of {begin}", fault="cut short")
    shape = tuple(int(size) for size in np.frombuffer(content, ">u4", axes, offset=4))
    wanted = begin + math.prod(shape)
    if len(content) != wanted:
        size = " x ".join(map(str, shape))
        fault = "cut short" if len(content) < wanted else "too long"
        raise errors.IDX_LENGTH(path=path, given=len(content), expected=f"{wanted:,} for {size}", fault=fault)
    return np.frombuffer(content, np.uint8, offset=begin).reshape(shape)


def read_pair(images: str | Path, labels: str | Path, classes: int = 10) -> tuple[Array, Array]:
    """Read images (n, h, w) of uint8 and their labels (n,), as int64. Raises `errors.InputError` if they do not match.

    A label that is not a class, or a file without images, is an error as well.
    """
    pictures, numbers = read_idx(images, 3), read_idx(labels, 1).astype(np.int64)
    if len(pictures) != len(numbers):
        raise errors.IDX_MISMATCH(images=images, count=len(pictures), labels=labels, other=len(numbers))
    if not pictures.size:
        raise errors.IDX_EMPTY(path=images)
    wrong = np.flatnonzero(numbers >= classes)
    if wrong.size:
        raise errors.IDX_LABEL(path=labels, given=numbers[wrong[0]], place=wrong[0], last=classes - 1)
    return pictures, numbers


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        raise errors.IDX_UNREADABLE(path=path, reason=getattr(error, "strerror", None) or error) from None
    if not content.startswith(_GZIP):
        return content
    try:
        return gzip.decompress(content)
    except EOFError:
        raise errors.IDX_GZIP(path=path, reason="it is cut short") from None
    except (OSError, zlib.error) as error:
        raise errors.IDX_GZIP(path=path, reason=error) from None
