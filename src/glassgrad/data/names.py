"""The names data set: from a word list to arrays of (the last few characters, the next character)."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import errors
from .tokenizer import BOUNDARY, CharTokenizer
from .words import WordList

Array = Any

LEAST_WORDS = 10
"""From ten words on, an 80/10/10 split leaves no part empty."""

SPLIT_SEED = 42
"""The published experiment shuffles with `random.seed(42)`: the split is part of the data and not of a run's seed."""


@dataclass(frozen=True)
class Examples:
    """Inputs of shape (examples, context) and targets of shape (examples,), both int64."""

    inputs: Array
    targets: Array

    def __len__(self) -> int:
        return int(self.targets.shape[0])


@dataclass(frozen=True)
class NamesData:
    """A word list cut 80/10/10 into training, validation and test words, as examples of next-character prediction."""

    tokenizer: CharTokenizer
    train: Examples
    validation: Examples
    test: Examples
    longest: int
    words: WordList

    @classmethod
    def build(cls, words: WordList, context: int) -> NamesData:
        """Split, encode and window a word list; `context` is how many characters the model sees.

        Raises `errors.InputError` when there are too few words to split.
        """
        count = len(words.words)
        if count < LEAST_WORDS:
            raise errors.WORDS_TOO_FEW(
                path=words.source, count="one word" if count == 1 else f"{count} words", least=LEAST_WORDS
            )
        tokenizer = CharTokenizer(words.alphabet)
        train, validation, test = (_windows(part, tokenizer, context) for part in split_words(words.words))
        return cls(tokenizer, train, validation, test, max(map(len, words.words)), words)


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


def _windows(words: list[str], tokenizer: CharTokenizer, context: int) -> Examples:
    """Every position of every word, its end included, as one example: `context` tokens and the token that follows."""
    lengths = np.array([len(word) + 1 for word in words])  # the examples of each word
    padding = [BOUNDARY] * context
    flat = np.array(
        [token for word in words for token in (*padding, *tokenizer.encode(word), BOUNDARY)], dtype=np.int64
    )
    # In `flat` a word takes `context` places more than it has examples, so the k-th word is k * context places late.
    starts = np.arange(lengths.sum()) + context * np.repeat(np.arange(len(words)), lengths)
    inputs = np.lib.stride_tricks.sliding_window_view(flat, context)[starts]
    return Examples(np.ascontiguousarray(inputs), flat[starts + context])
