"""Text data for next-token prediction: from a file to windows of tokens, with targets one place ahead."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from glassgrad import errors
from glassgrad.data.files import read_text
from glassgrad.data.names import LARGEST_ALPHABET, Examples
from glassgrad.data.tokenizer import CharTokenizer

Array = np.ndarray

EXPECTED = "a text file"

SHARE_ASIDE = 10
"""The last part of the text, one in this many characters, is for validation."""


@dataclass(frozen=True)
class TextData:
    """A text as uint16 tokens (characters,): the first nine tenths for training, the last tenth for validation."""

    tokenizer: CharTokenizer
    train: Array
    validation: Array
    source: str
    beginning: str

    @classmethod
    def read(cls, path: str | Path, context: int) -> TextData:
        """Read a text in UTF-8, any alphabet. Raises `errors.InputError` unless both parts have room for a window.

        Example:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     file = Path(folder) / "text.txt"
            ...     _ = file.write_text("to be or not to be, " * 10)
            ...     data = TextData.read(file, context=8)
            >>> len(data.train), len(data.validation), data.tokenizer.decode(data.train[:5])
            (180, 20, 'to be')
        """
        text = read_text(path, EXPECTED)
        if not text.strip():
            raise errors.TEXT_EMPTY(path=path, expected=EXPECTED)
        alphabet = sorted(set(text))
        if len(alphabet) > LARGEST_ALPHABET:
            raise errors.ALPHABET_TOO_LARGE(path=path, count=len(alphabet), limit=LARGEST_ALPHABET)
        least = SHARE_ASIDE * (context + 1)
        if len(text) < least:
            raise errors.TEXT_TOO_SHORT(path=path, count=len(text), least=least, context=context)
        tokenizer = CharTokenizer(alphabet, boundary=False)
        tokens = np.array(tokenizer.encode(text), dtype=np.uint16)
        cut = len(tokens) - len(tokens) // SHARE_ASIDE
        return cls(tokenizer, tokens[:cut], tokens[cut:], str(path), text[0])

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the decoded text, which does not depend on the file's name or line ends."""
        found = hashlib.sha256("".join(self.tokenizer.alphabet).encode())
        for part in (self.train, self.validation):
            found.update(part.tobytes())
        return found.hexdigest()


def all_windows(tokens: Array, context: int) -> Examples:
    """Return every window of a text, as views of it: inputs and targets (characters - context, context).

    Example:
        >>> windows = all_windows(np.arange(5), context=2)
        >>> windows.inputs.tolist(), windows.targets.tolist()
        ([[0, 1], [1, 2], [2, 3]], [[1, 2], [2, 3], [3, 4]])
    """
    view = np.lib.stride_tricks.sliding_window_view
    return Examples(view(tokens[:-1], context), view(tokens[1:], context))


def some_windows(tokens: Array, context: int, most: int) -> Examples:
    """Return at most `most` adjacent, evenly spread windows, as int64."""
    windows = all_windows(tokens, context)
    places = np.arange(0, len(windows), context)
    if len(places) > most:
        places = places[np.linspace(0, len(places) - 1, most).astype(np.int64)]
    return Examples(windows.inputs[places].astype(np.int64), windows.targets[places].astype(np.int64))
