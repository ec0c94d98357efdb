"""From words to examples, against a plain loop."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from glassgrad.data import CharTokenizer, NamesData, WordList, read_words
from glassgrad.errors import InputError


def by_hand(words: list[str], context: int) -> tuple[list[list[int]], list[int]]:
    """Oracle: slide a window over every word, one character at a time."""
    number = {character: place + 1 for place, character in enumerate(sorted(set("".join(words))))}
    inputs, targets = [], []
    for word in words:
        window = [0] * context
        for token in [*(number[character] for character in word), 0]:
            inputs.append(list(window))
            targets.append(token)
            window = [*window[1:], token]
    return inputs, targets


@pytest.mark.parametrize("context", [1, 3, 8])
def test_windows_are_those_of_the_plain_loop(context: int) -> None:
    words = ["ab", "c", "abcabcabcabc", "ba", "x.y", "é", "cc", "a", "bcb", "aaa"]
    data = NamesData.build(WordList(tuple(words), "test"), context)
    random.Random(42).shuffle(words)
    all_inputs, all_targets = by_hand(words, context)
    parts = (data.train, data.validation, data.test)
    assert np.concatenate([part.inputs for part in parts]).tolist() == all_inputs
    assert np.concatenate([part.targets for part in parts]).tolist() == all_targets
    assert len(data.train) == sum(len(word) + 1 for word in words[:8])
    assert data.train.inputs.dtype == data.train.targets.dtype == np.int64
    assert data.longest == 12


def test_the_reference_list_gives_the_published_numbers_of_examples(data_dir: Path) -> None:
    data = NamesData.build(read_words(data_dir / "names.txt"), context=3)
    assert (len(data.train), len(data.validation), len(data.test)) == (182_625, 22_655, 22_866)
    assert data.tokenizer.size == 27


def test_splitting_leaves_the_global_random_state_alone() -> None:
    random.seed(5)
    expected = random.random()
    random.seed(5)
    NamesData.build(WordList(tuple("abcdefghij"), "test"), 3)
    assert random.random() == expected


@pytest.mark.parametrize(("count", "said"), [(1, "one word;"), (9, "9 words;")])
def test_too_few_words_to_split(count: int, said: str) -> None:
    with pytest.raises(InputError, match=f"few.txt holds {said} at least 10"):
        NamesData.build(WordList(tuple("abcdefghi"[:count]), "few.txt"), 3)


def test_ten_words_leave_no_part_empty() -> None:
    data = NamesData.build(WordList(tuple("abcdefghij"), "test"), 3)
    assert [len(part) for part in (data.train, data.validation, data.test)] == [16, 2, 2]


def test_tokenizer_returns_what_it_was_given() -> None:
    tokenizer = CharTokenizer("abcé.")
    assert tokenizer.decode(tokenizer.encode("é.cab")) == "é.cab"
    assert tokenizer.decode([0, 1, 0, 2, 0]) == "ab"
    assert tokenizer.size == 6
    with pytest.raises(KeyError):
        tokenizer.encode("z")
