"""`glassgrad live`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def live(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")],
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65_535, help="Where to serve it (default: a free port).")
    ] = 0,
) -> int:
    """Show the page of a run while it trains, only on this machine, with a button that stops the run cleanly."""
    from glassgrad.train.show.page_server import PageServer

    with PageServer(run, port) as server:
        print(
            f"{server.url}\nonly this machine can open it, and only with the whole address; Ctrl-C ends it", flush=True
        )
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0
