"""`glassgrad lint`."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer


class Format(StrEnum):
    """How the findings are written."""

    text = "text"
    json = "json"
    github = "github"


def lint(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="SCRIPT.py|NOTEBOOK.ipynb|FOLDER...", help="What to read.")
    ] = None,
    select: Annotated[
        list[str] | None, typer.Option("--select", metavar="NAMES", help="Apply these rules only, with commas.")
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option("--ignore", metavar="NAMES", help="Leave these rules out, with commas.")
    ] = None,
    style: Annotated[Format, typer.Option("--format", help="How to write the findings.")] = Format.text,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules, and exit.")] = False,
) -> int:
    """Find faults of training scripts in their source, of PyTorch and of glassgrad; nothing is imported or run.

    The exit code is 0 if nothing is found, 1 for findings, and 2 for what cannot be read.
    """
    from glassgrad import errors
    from glassgrad.doctor.reading import lint as reading
    from glassgrad.doctor.reading import listing

    if rules:
        print("\n".join(listing.rules()))
        return 0
    if not paths:
        raise errors.LINT_NOTHING(example="train.py")
    found = reading.lint(paths, _names(select), _names(ignore))
    lines = list(listing.FORMATS[style.value](found))
    if lines:
        print("\n".join(lines))
    for one in found.unreadable if style is Format.text else ():
        print(one, file=sys.stderr)
    return found.code


def _names(given: list[str] | None) -> list[str]:
    return [name.strip() for text in given or [] for name in text.split(",") if name.strip()]
