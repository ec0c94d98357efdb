"""The reader of sources for the tests of this folder: it finds the same comments as Python's tokenizer."""

from __future__ import annotations

import io
import tokenize

import pytest

from tools.sources import comments, python_files, text_of


def by_tokens(text: str) -> list[tuple[int, str]]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]


@pytest.mark.parametrize(
    "text",
    [
        "x = 1  # one\n\n# two",
        "x = '# no'  # yes\ny = \"it's # no\"  # it's\n",
        "x = '''\n# no\n''' # yes\ny = r'\\'  # no end'\n",
        'def f():\n    """A # no.\n\n    \'# no "\' # no\n    """  # yes\n',
        "x = 'a\\\n# no'  # yes\n# last",
        'x = \'\'  # yes\ny = """"# no""" # yes\n',
        'x = f\'{y!r} # no\'  # noqa: A\nz = rb"\\"# no"',
    ],
)
def test_comments_are_told_from_strings(text: str) -> None:
    assert list(comments(text)) == by_tokens(text)


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["src", "tests", "tools"])
def test_comments_are_those_of_the_tokenizer(folder: str) -> None:
    for file in python_files(folder):
        assert list(comments(text_of(file))) == by_tokens(text_of(file)), file
