"""Users' text files: found, decoded and normalised, or rejected with a message that names the file."""

from __future__ import annotations

import difflib
import unicodedata
from pathlib import Path

from glassgrad import errors


def read_text(path: str | Path, expected: str) -> str:
    """Read a text file in UTF-8: without a byte order mark, lines ending in a newline, accents composed (NFC).

    `expected` says what the file should be, for the messages. Raises `errors.InputError` for a file that is missing,
    not text or not UTF-8.
    """
    path = Path(path)
    text = _decode(_read_bytes(path, expected), path, expected)
    # é must be one character whether the file has it as one code point or as two.
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))


def no_directory(path: Path) -> str:
    """Say why a path is no directory."""
    return "it is a file" if path.exists() else "there is no such directory"


def _read_bytes(path: Path, expected: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise errors.FILE_MISSING(path=path, nearest=_nearest_file(path), expected=expected) from None
    except IsADirectoryError:
        raise errors.FILE_DIRECTORY(path=path, expected=expected) from None
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        raise errors.FILE_UNREADABLE(path=path, reason=getattr(error, "strerror", None) or error) from None


def _nearest_file(path: Path) -> str:
    try:
        neighbours = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    except OSError:
        return ""
    close = difflib.get_close_matches(path.name, neighbours, n=1, cutoff=0.75)
    return f" (did you mean {path.parent / close[0]}?)" if close else ""


def _decode(content: bytes, path: Path, expected: str) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise errors.FILE_UTF16(path=path)
    zero = content.find(b"\0")
    if zero >= 0:
        line = content.count(b"\n", 0, zero) + 1
        raise errors.FILE_BINARY(path=path, what="a zero byte", line=line, expected=expected)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise errors.FILE_NOT_UTF8(path=path, byte=content[error.start], line=line) from None
