"""Word lists: one word per line, in any alphabet, in UTF-8.

Files come from spreadsheets, other systems and other languages, so this is where a byte order mark, Windows line ends,
blank lines and decomposed accents are put right, and where everything that is no word list is turned down by name.
"""

from __future__ import annotations

import difflib
import hashlib
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .. import errors

LONGEST_LINE = 1_000
"""A longer line is prose or a table, not a word; reading it letter by letter would only hide the mistake."""


@dataclass(frozen=True)
class WordList:
    """Words in the order of their file; repeated words stay repeated, as they tell how common a word is."""

    words: tuple[str, ...]
    source: str

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the words themselves, so the same words in another file or with other line ends are the same."""
        return hashlib.sha256("\n".join(self.words).encode()).hexdigest()

    @cached_property
    def alphabet(self) -> tuple[str, ...]:
        """Every character that occurs, in code point order."""
        return tuple(sorted(set("".join(self.words))))

    @property
    def repeated(self) -> int:
        """How many words are copies of an earlier one."""
        return len(self.words) - len(set(self.words))

    @property
    def differ_in_case_only(self) -> int:
        """How many distinct words would fall together in lowercase."""
        distinct = set(self.words)
        return len(distinct) - len({word.lower() for word in distinct})

    def lowercase(self) -> WordList:
        """Return the list with every word in lowercase."""
        return WordList(tuple(word.lower() for word in self.words), self.source)


def shipped_words() -> Path:
    """Return the path of the word list that comes with the package (`wordlists/ORIGIN.md` says where it is from)."""
    return Path(__file__).parent / "wordlists" / "us_census_1990.txt"


def read_words(path: str | Path) -> WordList:
    """Read a word list: one word per line, UTF-8, any alphabet.

    Raises `errors.InputError` for a file that is missing, empty, not text, not UTF-8 or no word list.

    Example:
        >>> read_words(shipped_words()).words[:3]
        ('aaron', 'abbey', 'abbie')
    """
    path = Path(path)
    text = _decode(_read_bytes(path), path)
    words = tuple(_words(text, path))
    if not words:
        raise errors.WORDS_EMPTY(path=path)
    return WordList(words, str(path))


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise errors.WORDS_MISSING(path=path, nearest=_nearest_file(path)) from None
    except IsADirectoryError:
        raise errors.WORDS_DIRECTORY(path=path) from None
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        raise errors.WORDS_UNREADABLE(path=path, reason=getattr(error, "strerror", None) or error) from None


def _nearest_file(path: Path) -> str:
    try:
        neighbours = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    except OSError:
        return ""
    close = difflib.get_close_matches(path.name, neighbours, n=1, cutoff=0.75)
    return f" (did you mean {path.parent / close[0]}?)" if close else ""


def _decode(content: bytes, path: Path) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise errors.WORDS_UTF16(path=path)
    zero = content.find(b"\0")
    if zero >= 0:
        raise errors.WORDS_BINARY(path=path, what="a zero byte", line=content.count(b"\n", 0, zero) + 1)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise errors.WORDS_NOT_UTF8(path=path, byte=content[error.start], line=line) from None


def _words(text: str, path: Path) -> Iterator[str]:
    # Not str.splitlines: it also splits at characters that may stand inside a word of some script.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, line in enumerate(lines, start=1):
        # One letter must be one character whether the file spells é as one code point or as two.
        word = unicodedata.normalize("NFC", line.strip())
        if not word:
            continue
        if len(word) > LONGEST_LINE:
            raise errors.WORDS_LONG_LINE(path=path, line=number, length=len(word), limit=LONGEST_LINE)
        if "\t" in word:
            raise errors.WORDS_TAB(path=path, line=number)
        if not word.isprintable():
            _refuse_control_characters(word, path, number)
        yield word


def _refuse_control_characters(word: str, path: Path, line: int) -> None:
    # Joiners and other format characters (category Cf) are part of many scripts and pass.
    for character in word:
        if unicodedata.category(character) == "Cc":
            raise errors.WORDS_BINARY(path=path, what=f"control character U+{ord(character):04X}", line=line)
