"""`glassgrad lesson --quiz` in a pipe."""

from __future__ import annotations

import io
import re


def test_it_asks_and_judges(glassgrad, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("a\nb\n"))
    result = glassgrad("lesson", "7", "--quiz")
    assert (result.code, result.err) == (0, "")
    assert result.out.count("Your answer (a-d, q to stop): ") == 2
    assert re.search(r"^[0-2] of 2 right", result.out, re.MULTILINE)


def test_it_stops_at_the_end_of_the_input_and_names_what_is_unknown(glassgrad, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    result = glassgrad("lesson", "--quiz", "--count", "3")
    assert (result.code, result.out.count("Your answer")) == (0, 1)
    assert result.out.endswith("Nothing was answered.\n")
    assert glassgrad("lesson", "99", "--quiz").code == 2


def test_options_that_do_not_go_with_it_are_refused(glassgrad):
    for arguments, words in (
        (("3", "--quiz", "--run"), "--quiz and --run cannot be given together"),
        (("3", "--count", "5"), "give --quiz as well"),
        (("--quiz", "--count", "0"), "invalid value for '--count': "),  # then the words of the installed typer
    ):
        result = glassgrad("lesson", *arguments)
        assert result.code == 2
        assert words in result.err + result.out
