"""A text as windows of tokens, and refused files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from glassgrad.data import CharTokenizer, NamesData, WordList
from glassgrad.data.names import IGNORED
from glassgrad.data.text import TextData, all_windows, some_windows
from glassgrad.errors import InputError


def read(folder: Path, content: bytes, context: int = 4) -> TextData:
    file = folder / "text.txt"
    file.write_bytes(content)
    return TextData.read(file, context)


def test_a_text_is_kept_whole_and_in_order(tmp_path: Path) -> None:
    text = "Äpfel und Birnen,\n\tund Nüsse; " * 10
    data = read(tmp_path, text.encode())
    tokens = np.concatenate([data.train, data.validation])
    assert data.tokenizer.decode(tokens.tolist()) == text
    assert len(data.validation) == len(text) // 10
    assert data.beginning == "Ä"
    assert data.tokenizer.size == len(set(text))


def test_line_ends_byte_order_marks_and_composed_accents_make_no_difference(tmp_path: Path) -> None:
    plain = "né à Orléans\n" * 20
    expected = read(tmp_path, plain.encode()).digest
    for other in (
        "\ufeff" + plain,
        plain.replace("\n", "\r\n"),
        plain.replace("\n", "\r"),
        plain.replace("é", "e\u0301"),
    ):
        assert read(tmp_path, other.encode()).digest == expected
    assert read(tmp_path, plain.replace("à", "a").encode()).digest != expected


def test_windows_hold_what_comes_next() -> None:
    tokens = np.arange(30, dtype=np.uint16)
    windows = all_windows(tokens, 7)
    assert windows.inputs.shape == windows.targets.shape == (23, 7)
    np.testing.assert_array_equal(windows.targets, windows.inputs + 1)
    assert len(np.unique(windows.inputs[:, 0])) == 23
    side_by_side = some_windows(tokens, 7, 100)
    assert side_by_side.inputs[:, 0].tolist() == [0, 7, 14, 21]
    few = some_windows(tokens, 7, 2)
    assert few.inputs[:, 0].tolist() == [0, 21]
    assert few.targets.dtype == np.int64


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no text"),
        (b" \n\t\n", "holds no text"),
        (b"\x7fELF\x02\x01\x01\0\0", "is not a text file (a zero byte in line 1)"),
        (b"caf\xe9 " * 50, "is not UTF-8 (byte 0xe9 in line 1)"),
        ("text".encode("utf-16"), "is UTF-16"),
        (b"too short a text", "holds 16 characters; at least 50 are needed for a context of 4"),
        ("".join(map(chr, range(0x4E00, 0x4E00 + 10_001))).encode(), "10,001 different characters, more than the 10,0"),
    ],
    ids=["empty", "blank", "elf", "latin-1", "utf-16", "short", "alphabet"],
)
def test_what_is_no_text_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, content)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_shortest_text_has_a_window_in_both_parts(tmp_path: Path) -> None:
    for context in (1, 4, 9):
        data = read(tmp_path, b"ab" * (5 * (context + 1)), context)
        assert len(all_windows(data.train, context)) > 0
        assert len(all_windows(data.validation, context)) == 1


def test_missing_files_and_directories_are_named(tmp_path: Path) -> None:
    (tmp_path / "novel.txt").write_text("x")
    with pytest.raises(InputError, match=r"no such file: .*nowel.txt \(did you mean .*novel.txt\?\)"):
        TextData.read(tmp_path / "nowel.txt", 4)
    with pytest.raises(InputError, match="is a directory; expected a text file"):
        TextData.read(tmp_path, 4)


def test_a_tokenizer_without_boundary_begins_at_zero() -> None:
    tokenizer = CharTokenizer("abc", boundary=False)
    assert (tokenizer.encode("cab"), tokenizer.decode([2, 0, 1]), tokenizer.size) == ([2, 0, 1], "cab", 3)


def test_whole_words_say_the_same_as_windows() -> None:
    words = WordList(("anna", "bo", "carl", "dorothea", "e", "fritz", "gerd", "hanna", "ida", "jo"), "test")
    context = 9
    windows, whole = (NamesData.build(words, context, kind) for kind in (False, True))
    for first, second in zip((windows.train, windows.test), (whole.train, whole.test), strict=True):
        counting = second.targets != IGNORED
        np.testing.assert_array_equal(second.targets[counting], first.targets)
        assert (counting.sum(axis=1) == 1 + (second.inputs != 0).sum(axis=1)).all()
        rows, places = np.nonzero(counting)
        for row, place, window in zip(rows, places, first.inputs, strict=True):
            seen = second.inputs[row, max(place + 1 - context, 0) : place + 1]
            assert window[context - len(seen) :].tolist() == seen.tolist()


def test_a_word_list_with_too_many_characters_is_turned_down() -> None:
    words = WordList(tuple(map(chr, range(0x4E00, 0x4E00 + 10_001))), "kanji.txt")
    with pytest.raises(InputError, match=r"kanji.txt has 10,001 different characters"):
        NamesData.build(words, 3)
