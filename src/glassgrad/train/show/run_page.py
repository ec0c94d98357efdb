"""`glassgrad report`: runs as one self-contained HTML file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from glassgrad import errors
from glassgrad._version import __version__
from glassgrad.data.atomic import write_atomically
from glassgrad.report.page import html_page
from glassgrad.train.kept.rundir import GRAPH, REPORT
from glassgrad.train.show.run_data import run_data


def write_report(*runs: str | Path, path: str | Path | None = None) -> Path:
    """Write one HTML file about runs, using only their directories: findings first, then curves and layers.

    The file needs no network and no server; it overlays the curves of several runs.

    Args:
        runs: run directories.
        path: the file to write; by default report.html in the directory of a single run, or in the current one for
            several.

    Returns:
        The path of the file.

    Raises:
        errors.InputError: a directory without a run, no runs at all, or a file that cannot be written.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> _ = Path(folder, "metrics.jsonl").write_text('{"event": "train", "step": 1, "loss": 2.5}')
        >>> write_report(folder).name
        'report.html'
    """
    if not runs:
        raise errors.REPORT_NO_RUNS(owner="write_report")
    target = Path(path) if path is not None else (Path(runs[0]) / REPORT if len(runs) == 1 else Path(REPORT))
    content = report_html([Path(run) for run in runs], target.parent).encode()
    try:
        write_atomically(target, content)
    except OSError as error:
        raise errors.REPORT_NOT_WRITTEN(path=target, reason=error.strerror or error) from None
    return target


def report_html(runs: Sequence[Path], folder: Path) -> str:
    """Return the page about runs for a folder. Raises `errors.InputError` if there is none."""
    return html_page(_title(runs), page_data([{**run_data(run), "graph": _link(run, folder)} for run in runs]))


def _link(run: Path, folder: Path) -> str:
    """Return the address of the graph of a step, relative to a folder; empty if there is none."""
    if not (run / GRAPH).is_file():
        return ""
    try:
        return quote(Path(os.path.relpath(run / GRAPH, folder)).as_posix())
    except ValueError:  # another drive on Windows
        return (run / GRAPH).resolve().as_uri()


def page_data(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the data of the page: the runs, each with a unique name."""
    names = [run["name"] for run in runs]
    for run in runs:
        if names.count(run["name"]) > 1:
            run["name"] = run["path"]
    return {
        "format": 1,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": __version__,
        "runs": runs,
    }


def _title(runs: Sequence[Path]) -> str:
    names = [run.resolve().name for run in runs]
    return (
        names[0] if len(names) == 1 else f"{len(names)} runs: {', '.join(names[:4])}{' ...' if len(names) > 4 else ''}"
    )


__all__ = ["write_report"]
