"""The page about runs: one self-contained HTML file made of data and a prebuilt program.

`npm run build` in `web/` builds `page.js` and `page.css`; a test compares them with their sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def html_page(title: str, data: Mapping[str, Any], *, live: bool = False) -> str:
    """Return a page about runs; a `live` one may request more from its server."""
    from glassgrad.base.drawing.frame import framed_page

    return framed_page(title, data, built("page.js"), built("page.css"), live=live)


@cache
def built(name: str) -> str:
    """Return a file of the page's program."""
    return (FOLDER / name).read_text(encoding="utf-8")


__all__ = ["html_page"]
