"""The names data set: from a word list to arrays of (the last few characters, the next character)."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from glassgrad import errors
from glassgrad.data.tokenizer import BOUNDARY, CharTokenizer
from glassgrad.data.words import WordList

Array = np.ndarray

LEAST_WORDS = 10
"""With at least ten words, an 80/10/10 split leaves no part empty."""

SPLIT_SEED = 42
"""The published experiment shuffles with `random.seed(42)`: the split belongs to the data, not to a run's seed."""


IGNORED = -100
"""The target of a position that the loss ignores; it is the default `ignore_index` of `F.cross_entropy`."""

LARGEST_ALPHABET = 10_000
"""More characters than any script in daily use has; a file with more characters is not text."""


@dataclass(frozen=True)
class Examples:
    """Inputs of shape (examples, context) and targets of shape (examples,), both int64.

    For whole sequences, targets are (examples, context) as well, with `IGNORED` where there is nothing to predict.

    Example:
        >>> import numpy as np
        >>> from glassgrad.data import Examples
        >>> Examples(np.zeros((5, 3), np.int64), np.zeros(5, np.int64)).inputs.shape
        (5, 3)
    """

    inputs: Array
    targets: Array

    def __len__(self) -> int:
        return int(self.targets.shape[0])

    def __getitem__(self, place: int) -> tuple[Array, Array]:
        """Return one example, so that a `DataLoader` takes the whole as a data set."""
        return self.inputs[place], self.targets[place]


@dataclass(frozen=True)
class NamesData:
    """A word list cut 80/10/10 into training, validation and test words, as examples of next-character prediction.

    Example:
        >>> from glassgrad.data import NamesData, read_words, shipped_words
        >>> names = NamesData.build(read_words(shipped_words()), context=3)
        >>> names.train.inputs.shape[1], names.tokenizer.decode(names.tokenizer.encode("ava"))
        (3, 'ava')
    """

    tokenizer: CharTokenizer
    train: Examples
    validation: Examples
    test: Examples
    longest: int
    words: WordList

    @classmethod
    def build(cls, words: WordList, context: int, whole: bool = False) -> NamesData:
        """Split and encode a word list.

        Every character is an example with the `context` characters before it as input; with `whole`, every word is
        one example. Raises `errors.InputError` if there are too few words to split.
        """
        count = len(words.words)
        if count < LEAST_WORDS:
            raise errors.WORDS_TOO_FEW(
                path=words.source, count="one word" if count == 1 else f"{count} words", least=LEAST_WORDS
            )
        if len(words.alphabet) > LARGEST_ALPHABET:
            raise errors.ALPHABET_TOO_LARGE(path=words.source, count=len(words.alphabet), limit=LARGEST_ALPHABET)
        tokenizer = CharTokenizer(words.alphabet)
        longest = max(map(len, words.words))
        train, validation, test = (
            encoded(part, tokenizer, context, longest + 1 if whole else 0) for part in split_words(words.words)
        )
        return cls(tokenizer, train, validation, test, longest, words)


def split_words(words: tuple[str, ...], seed: int = SPLIT_SEED) -> tuple[list[str], list[str], list[str]]:
    """Shuffle words and cut them into 80 % training, 10 % validation and 10 % test.

    Example:
        >>> [len(part) for part in split_words(tuple("abcdefghij"))]
        [8, 1, 1]
    """
    shuffled = list(words)
    random.Random(seed).shuffle(shuffled)
    first, second = int(0.8 * len(shuffled)), int(0.9 * len(shuffled))
    return shuffled[:first], shuffled[first:second], shuffled[second:]


def encoded(words: list[str], tokenizer: CharTokenizer, context: int, length: int = 0) -> Examples:
    """Return words as examples: every place with the `context` characters before it, or whole words of `length` places.

    Raises `KeyError` with the first character that the tokenizer does not know.
    """
    return _sequences(words, tokenizer, length) if length else _windows(words, tokenizer, context)


def _windows(words: list[str], tokenizer: CharTokenizer, context: int) -> Examples:
    """One example for every position of every word, its end included: `context` tokens and the token that follows."""
    lengths = np.array([len(word) + 1 for word in words])  # the examples of each word
    padding = [BOUNDARY] * context
    flat = np.array(
        [token for word in words for token in (*padding, *tokenizer.encode(word), BOUNDARY)], dtype=np.int64
    )
    # In `flat` a word takes `context` more places than it has examples, which shifts the k-th word by k * context.
    starts = np.arange(lengths.sum()) + context * np.repeat(np.arange(len(words)), lengths)
    inputs = np.lib.stride_tricks.sliding_window_view(flat, context)[starts]
    return Examples(np.ascontiguousarray(inputs), flat[starts + context])


def _sequences(words: list[str], tokenizer: CharTokenizer, length: int) -> Examples:
    """One example of `length` places for every word: the boundary and its characters, and the token after each."""
    inputs = np.full((len(words), length), BOUNDARY, dtype=np.int64)
    targets = np.full((len(words), length), IGNORED, dtype=np.int64)
    for row, word in enumerate(words):
        tokens = tokenizer.encode(word)
        inputs[row, 1 : len(word) + 1] = tokens
        targets[row, : len(word) + 1] = [*tokens, BOUNDARY]
    return Examples(inputs, targets)
