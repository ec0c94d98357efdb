"""Characters to numbers and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

BOUNDARY = 0
"""The token before the first and after the last character of a word. It is no character, so a word may hold any."""


class CharTokenizer:
    """One token per character: 0 is the boundary of a word, 1 and up are the characters in the order given.

    Example:
        >>> tokenizer = CharTokenizer("abc")
        >>> tokenizer.encode("cab"), tokenizer.decode([3, 1, 2]), tokenizer.size
        ([3, 1, 2], 'cab', 4)
    """

    def __init__(self, alphabet: Iterable[str]) -> None:
        self.alphabet: tuple[str, ...] = tuple(alphabet)
        self._number = {character: number for number, character in enumerate(self.alphabet, start=1)}

    @property
    def size(self) -> int:
        """The number of tokens, the boundary included."""
        return len(self.alphabet) + 1

    def encode(self, word: str) -> list[int]:
        """Return the tokens of a word. Raises `KeyError` for a character outside the alphabet."""
        return [self._number[character] for character in word]

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the word that tokens stand for; boundaries are left out."""
        return "".join(self.alphabet[token - 1] for token in tokens if token != BOUNDARY)
