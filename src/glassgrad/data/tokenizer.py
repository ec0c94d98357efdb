"""Characters to numbers and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

BOUNDARY = 0
"""The token before the first and after the last character of a word. It stands for no character."""


class CharTokenizer:
    """One token per character: 0 is the boundary of a word, 1 and up are the characters in the order given.

    Without a boundary, as for running text, the characters begin at 0.

    Example:
        >>> tokenizer = CharTokenizer("abc")
        >>> tokenizer.encode("cab"), tokenizer.decode([3, 1, 2]), tokenizer.size
        ([3, 1, 2], 'cab', 4)
    """

    def __init__(self, alphabet: Iterable[str], boundary: bool = True) -> None:
        self.alphabet: tuple[str, ...] = tuple(alphabet)
        self._first = 1 if boundary else 0
        self._number = {character: number for number, character in enumerate(self.alphabet, start=self._first)}

    @property
    def size(self) -> int:
        """The number of tokens, the boundary included."""
        return len(self.alphabet) + self._first

    def encode(self, word: str) -> list[int]:
        """Return the tokens of a word. Raises `KeyError` for a character outside the alphabet."""
        return [self._number[character] for character in word]

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the word that tokens represent; boundaries are left out."""
        return "".join(self.alphabet[token - self._first] for token in tokens if token >= self._first)
