"""The frame of every page of the library: one HTML file that runs only its own program."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping
from typing import Any

_FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div id="page"><noscript>This page is drawn with JavaScript, which is turned off here.</noscript></div>
<script type="application/json" id="data">{data}</script>
<script>{program}</script>
</body>
</html>
"""


def framed_page(
    title: str, data: Mapping[str, Any], program: str, style: str, *, live: bool = False, styles: bool = False
) -> str:
    """Return a page about data, which must be representable in JSON.

    The data cannot inject HTML: `<`, `>` and `&` are written as JSON escapes, and the content security policy allows
    only the page's own program and style, by their hashes. It forbids all requests, except those of a `live` page to
    its own server. With `styles`, the program may add styles of its own, as an editor does.
    """
    allowed = "'unsafe-inline'" if styles else f"'{_hash(style)}'"
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"script-src '{_hash(program)}'; style-src {allowed}" + ("; connect-src 'self'" if live else "")
    )
    return _FRAME.format(
        policy=policy, title=html.escape(_told(title)), style=style, data=escaped(data), program=program
    )


def _told(name: str) -> str:
    """Return a name as valid Unicode; a file name need not be."""
    return name.encode(errors="replace").decode()


def escaped(data: Any) -> str:
    """Return data as JSON that is safe in a script element, whatever it contains.

    Example:
        >>> "<" in escaped({"name": "</script>"})
        False
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
