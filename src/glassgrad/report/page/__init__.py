"""The page about runs: one HTML file that needs nothing else, from data and a program built beforehand.

`page.js` and `page.css` are built from `web/`, by `npm run build` there; a test holds them against their sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from glassgrad.base.drawing.frame import framed_page

FOLDER = Path(__file__).parent


def html_page(title: str, data: Mapping[str, Any], *, live: bool = False) -> str:
    """Return a page about runs; one that is `live` may ask its server for more."""
    return framed_page(title, data, built("page.js"), built("page.css"), live=live)


@cache
def built(name: str) -> str:
    """Return a file of the page's program."""
    return (FOLDER / name).read_text(encoding="utf-8")


__all__ = ["html_page"]
