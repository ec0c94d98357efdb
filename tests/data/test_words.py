"""Reading word lists: normalisation, and refused files with their messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from glassgrad.data import read_words, shipped_words
from glassgrad.errors import InputError


def read(folder: Path, content: bytes) -> tuple[str, ...]:
    file = folder / "words.txt"
    file.write_bytes(content)
    return read_words(file).words


@pytest.mark.parametrize(
    "content",
    [
        b"anna\nbert\n",
        b"anna\nbert",
        b"anna\r\nbert\r\n",
        b"anna\rbert\r",
        b"\xef\xbb\xbfanna\nbert\n",
        b"\n\n  anna \t\n\n   \nbert  \n\n",
    ],
    ids=["plain", "no-last-newline", "windows", "old-mac", "byte-order-mark", "blank-lines-and-spaces"],
)
def test_harmless_differences_do_not_matter(tmp_path: Path, content: bytes) -> None:
    assert read(tmp_path, content) == ("anna", "bert")


def test_any_alphabet_case_and_repetition_is_kept(tmp_path: Path) -> None:
    words = ("Анна", "ΝΊΚΗ", "明美", "नेहा", "Anna", "anna", "anna", "o'neil", "mary ann")
    assert read(tmp_path, "\n".join(words).encode()) == words


def test_letters_with_separate_accents_become_one_character(tmp_path: Path) -> None:
    assert read(tmp_path, "Rene\u0301e\n".encode()) == ("Ren\u00e9e",)


def test_line_separators_of_unicode_do_not_end_a_word(tmp_path: Path) -> None:
    assert read(tmp_path, "a\u2028b\nc\n".encode()) == ("a\u2028b", "c")


def test_counts_of_copies_and_of_words_that_differ_in_case(tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_text("Anna\nanna\nanna\nBert\n", encoding="utf-8")
    words = read_words(file)
    assert (words.repeated, words.differ_in_case_only) == (1, 1)
    assert words.lowercase().words == ("anna", "anna", "anna", "bert")
    assert words.alphabet == tuple("ABaenrt")


def test_digest_is_of_the_words_and_not_of_the_file(tmp_path: Path) -> None:
    for name, content in (("a", b"x\ny\n"), ("b", b"\xef\xbb\xbfx\r\n\r\ny"), ("c", b"y\nx\n")):
        (tmp_path / name).write_bytes(content)
    first, second, third = (read_words(tmp_path / name).digest for name in "abc")
    assert first == second != third


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no words"),
        (b" \n\r\n\t\n", "holds no words"),
        (b"\xef\xbb\xbf", "holds no words"),
        (b"anna\nb\0rt\n", "not a text file (a zero byte in line 2)"),
        (b"anna\n\x1b[31mbert\n", "not a text file (control character U+001B in line 2)"),
        ("anna\n".encode("utf-16"), "is UTF-16"),
        (b"anna\nren\xe9e\n", "not UTF-8 (byte 0xe9 in line 2)"),
        (b"anna\t12\nbert\t9\n", "line 1 of"),
        (b"x" * 1001, "has 1,001 characters"),
    ],
    ids=["empty", "blank", "only-mark", "zero-byte", "escape", "utf-16", "latin-1", "table", "prose"],
)
def test_what_is_no_word_list_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, content)
    assert message in str(caught.value)
    assert "words.txt" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_file_suggests_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("anna\n")
    with pytest.raises(InputError, match=r"no such file: .*nams\.txt \(did you mean .*names\.txt\?\)"):
        read_words(tmp_path / "nams.txt")
    with pytest.raises(InputError, match=r"no such file: .*nowhere/x\.txt; expected"):
        read_words(tmp_path / "nowhere" / "x.txt")


def test_directory_and_impossible_path(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a directory"):
        read_words(tmp_path)
    with pytest.raises(InputError, match="cannot read"):
        read_words("a\0b")


def test_the_shipped_list_is_what_its_origin_says() -> None:
    path = shipped_words()
    words = read_words(path).words
    assert len(words) == 5_163 == len(set(words))
    assert list(words) == sorted(words)
    assert set("".join(words)) == set("abcdefghijklmnopqrstuvwxyz")
    origin = (path.parent / "ORIGIN.md").read_text(encoding="utf-8")
    for fact in (path.name, "5,163", "1990 census", "public domain", "17 U.S.C. § 105"):
        assert fact in origin
