"""`glassgrad live`: serve the page of a run on the loopback address, with updates and a button to stop the run."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qs

from glassgrad import errors
from glassgrad.base.local_server import LocalHandler, LocalServer
from glassgrad.report.page import html_page
from glassgrad.train.kept import rundir
from glassgrad.train.kept.rundir import GRAPH
from glassgrad.train.show.run_data import run_data
from glassgrad.train.show.run_page import page_data

SECONDS = 2.0
"""The time between two requests of the page."""


class PageServer(LocalServer):
    """Serves the page of one run to this machine; `url` is its address, including the token.

    Raises `errors.InputError` if there is no run or the port is in use.
    """

    def __init__(self, run: Path, port: int = 0) -> None:
        run_data(run, after=0)  # refuse anything but a run before serving
        self.run = run
        super().__init__(_Handler, port)
        self.url = f"{self.address}{self.token}/"

    def page(self) -> str:
        """Return the page with all current data."""
        graph = GRAPH if (self.run / GRAPH).is_file() else ""
        data = page_data([{**run_data(self.run), "graph": graph}])
        return html_page(self.run.resolve().name, {**data, "live": {"seconds": SECONDS}}, live=True)

    def news(self, after: int, watched: tuple[int, int] | None) -> str:
        """Return the data after `after` records, the new samples of layers, and everything else that changes."""
        return json.dumps(run_data(self.run, after=after, watched=watched), allow_nan=False)


def _count(given: str) -> int | None:
    return int(given) if given.isascii() and given.isdigit() and len(given) < 12 else None


class _Handler(LocalHandler):
    server: PageServer

    def get(self) -> None:
        """Send the page, or the new data of the run."""
        place = self._place()
        if place == "":
            self._answer("text/html; charset=utf-8", self.server.page)
        elif place == "data":
            given = parse_qs(self.path.partition("?")[2])
            after, first, last = (_count(given.get(name, [""])[0]) for name in ("after", "first", "last"))
            watched = None if first is None or last is None else (first, last)
            self._answer("application/json", partial(self.server.news, after or 0, watched))
        elif place == GRAPH and (self.server.run / GRAPH).is_file():
            self._answer("text/html; charset=utf-8", partial((self.server.run / GRAPH).read_text, encoding="utf-8"))
        elif place is not None:
            self.refuse(HTTPStatus.NOT_FOUND)

    def post(self) -> None:
        """Ask the run to stop."""
        place = self._place()
        if place is None or self.given() is None:
            return
        if place != "stop":
            self.refuse(HTTPStatus.NOT_FOUND)
        else:
            self._answer("application/json", self._stop)

    def _stop(self) -> str:
        (self.server.run / rundir.STOP).touch()
        return "{}"

    def _place(self) -> str | None:
        """Return the path after the token; None if the request is refused."""
        if not self.is_for_here():
            self.refuse(HTTPStatus.FORBIDDEN)
            return None
        _, token, place, *_ = [*self.path.partition("?")[0].split("/", 2), "", ""]
        if not self.has_token(token):
            self.refuse(HTTPStatus.NOT_FOUND)
            return None
        return place

    def _answer(self, kind: str, make: Callable[[], str]) -> None:
        try:
            content = make().encode()
        except (OSError, errors.GlassgradError):
            self.refuse(HTTPStatus.SERVICE_UNAVAILABLE)
            return
        self.send(HTTPStatus.OK, kind, content)
