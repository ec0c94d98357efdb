"""`glassgrad runs`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from glassgrad.train.show.run_list import Listed


class Sort(StrEnum):
    """The order of the runs."""

    changed = "changed"
    loss = "loss"
    findings = "findings"
    name = "name"


def runs(
    folder: Annotated[Path, typer.Argument(metavar="[FOLDER]", help="Where to look (default: runs).")] = Path("runs"),
    tag: Annotated[str, typer.Option("--tag", metavar="TEXT", help="Only runs started with this --tag.")] = "",
    sort: Annotated[
        Sort,
        typer.Option(
            "--sort",
            help="The order: latest, smallest loss, worst findings or name first.",
            show_default=False,
        ),
    ] = Sort.changed,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.", show_default=False)] = False,
) -> int:
    """List the runs below a folder: state, steps, loss, findings, tags."""
    from glassgrad.train.show.run_list import list_runs

    found = list_runs(folder, tag, sort.value)
    if as_json:
        print(json.dumps([one.plain() for one in found], indent=1))
    elif found:
        _print_table(found)
    else:
        print(f"no runs in {folder}" + (f" with the tag {tag}" if tag else ""))
    return 0


def _print_table(found: Sequence[Listed]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("run", "state", "step", "loss", "findings", "tags"):
        table.add_column(title, justify="right" if title in ("step", "loss") else "left", overflow="fold")
    for one in found:
        steps = f"{one.step:,}" + (f" / {one.steps:,}" if isinstance(one.steps, int) else "")
        loss = "" if one.loss != one.loss else f"{one.loss:.4f}"
        # Text, not markup: a folder may be called [bold].
        table.add_row(*map(Text, (str(one.path), one.state, steps, loss, one.found, ", ".join(one.tags))))
    Console(width=None if Console().is_terminal else 160).print(table)
