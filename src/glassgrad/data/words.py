"""Word lists: one word per line, in any alphabet, in UTF-8.

Files come from spreadsheets, other systems and other languages, so byte order marks, Windows line ends, blank lines and
decomposed accents are normalised here, and any file that is not a word list is refused with a message that names it.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from glassgrad import errors
from glassgrad.data.files import read_text

EXPECTED = "a text file with one word per line"

LONGEST_LINE = 1_000
"""The longest line that is read as a word; a longer one is prose or a table, given by mistake."""


@dataclass(frozen=True)
class WordList:
    """Words in the order of their file; repeated words stay, because they show how common a word is.

    Example:
        >>> from glassgrad.data import WordList
        >>> len(WordList(("ada", "grace", "ada"), "names.txt").words)
        3
    """

    words: tuple[str, ...]
    source: str

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the words, which does not depend on the file's name or line ends."""
        return hashlib.sha256("\n".join(self.words).encode()).hexdigest()

    @cached_property
    def alphabet(self) -> tuple[str, ...]:
        """Every character that occurs, in code point order."""
        return tuple(sorted(set("".join(self.words))))

    @property
    def repeated(self) -> int:
        """The number of words that are copies of an earlier one."""
        return len(self.words) - len(set(self.words))

    @property
    def differ_in_case_only(self) -> int:
        """The number of distinct words that would become equal in lowercase."""
        distinct = set(self.words)
        return len(distinct) - len({word.lower() for word in distinct})

    def lowercase(self) -> WordList:
        """Return the list with every word in lowercase."""
        return WordList(tuple(word.lower() for word in self.words), self.source)


def shipped_words() -> Path:
    """Return the path of the word list that comes with the package (`wordlists/ORIGIN.md` names its source).

    Example:
        >>> from glassgrad.data import shipped_words
        >>> shipped_words().suffix
        '.txt'
    """
    return Path(__file__).parent / "wordlists" / "us_census_1990.txt"


def read_words(path: str | Path) -> WordList:
    """Read a word list: one word per line, UTF-8, any alphabet.

    Raises `errors.InputError` for a file that is missing, empty, not text, not UTF-8 or not a word list.

    Example:
        >>> read_words(shipped_words()).words[:3]
        ('aaron', 'abbey', 'abbie')
    """
    path = Path(path)
    words = tuple(_words(read_text(path, EXPECTED), path))
    if not words:
        raise errors.WORDS_EMPTY(path=path)
    return WordList(words, str(path))


def _words(text: str, path: Path) -> Iterator[str]:
    # str.splitlines would also split at characters that may be part of a word in some script.
    for number, line in enumerate(text.split("\n"), start=1):
        word = line.strip()
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
    # Joiners and other format characters (category Cf) are part of many scripts and are allowed.
    for character in word:
        if unicodedata.category(character) == "Cc":
            what = f"control character U+{ord(character):04X}"
            raise errors.FILE_BINARY(path=path, what=what, line=line, expected=EXPECTED)
