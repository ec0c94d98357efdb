"""The views of a run: lines, the live display, pictures and pages.

`display.py`, `live.py` and `progress.py` show a run in the terminal while it runs, `page_server.py` in a browser.
`run_data.py` reads a directory for the page of `run_page.py`, `run_list.py` for `glassgrad runs`, `diagnosis.py` for
the doctor, `notebook.py` for notebooks. `picture.py` and `figures.py` draw, `monitoring.py` records gradients,
`run_graph.py` draws a step.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import IO

from glassgrad.train.show.display import Display, PlainDisplay


def choose_display(on_closed: Callable[[], None] = lambda: None, output: IO[str] | None = None) -> Display:
    """Return the live display if the output is a terminal with a movable cursor, else plain lines."""
    output = output or sys.stdout
    if output.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown"):
        from glassgrad.train.show.live import LiveDisplay

        return LiveDisplay(output, on_closed)
    return PlainDisplay(output, on_closed)
