"""A drawing as one HTML file: the SVG, which also works without scripts, and a small script that toggles modules.

The script receives every level laid out with its modules closed. When the user opens a module, boxes to its right move
right, boxes below it move down, and the edges follow. The page needs no network.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from html import escape
from pathlib import Path as File
from typing import Any

from glassgrad.base.drawing.graph import Path
from glassgrad.base.drawing.scene import SIDE, TOP, Scene, Thing
from glassgrad.base.drawing.svg import MARGIN, frame_title, inner

_STYLE = (
    "html{color-scheme:light dark}body{margin:0;font:13px system-ui,sans-serif;background:#fff;color:#1f2933}"
    "@media (prefers-color-scheme:dark){body{background:#14191f;color:#e4e7eb}}"
    "nav{padding:8px 14px;display:flex;gap:8px;align-items:center;position:sticky;top:0;left:0}"
    "main{overflow:auto}button{font:inherit;padding:2px 10px}"
    "g.module[tabindex]:focus-visible>rect{stroke-width:4}"
)


def document(title: str, svg: str, scenes: Mapping[Path, Scene], opened: Collection[Path], notes: Iterable[str]) -> str:
    """Return a page with a drawing; with `scenes` (all its levels), modules can be opened."""
    head = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        "script-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
    )
    if not scenes:
        return f"{head}<body><main>{svg}</main></body></html>\n"
    levels = {_key(path): _level(scene) for path, scene in scenes.items()}
    data = {"levels": levels, "opened": [_key(path) for path in opened], "side": SIDE, "top": TOP, "margin": MARGIN}
    data["notes"] = list(notes)
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")  # no text ends the script element
    script = File(__file__).with_name("open.js").read_text(encoding="utf-8")
    buttons = (
        '<nav><button id="open">Open all</button><button id="shut">Shut all</button>'
        '<button id="smaller" aria-label="smaller">−</button><button id="larger" aria-label="larger">+</button></nav>'
    )
    return (
        f'{head}<body>{buttons}<main>{svg}</main><script type="application/json" id="levels">{text}</script>'
        f"<script>{script}</script></body></html>\n"
    )


def framed(html: str, height: int = 560) -> str:
    """Return a page in an iframe for a notebook; its script cannot access the notebook."""
    style = f"width:100%;height:{height}px;border:0;resize:vertical;overflow:auto"
    return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{escape(html)}"></iframe>'


def _key(path: Path) -> str:
    return json.dumps(path)


def _level(scene: Scene) -> dict[str, Any]:
    return {
        "w": _short(scene.width),
        "h": _short(scene.height),
        "things": [_of_thing(thing) for thing in scene.things],
        "wires": [
            {
                "p": [[_short(x), _short(y)] for x, y in wire.points],
                "kind": wire.kind,
                "label": wire.label,
                "hint": wire.hint,
                "tail": wire.tail,
                "head": wire.head,
                "node": wire.node,
            }
            for wire in scene.wires
        ],
    }


def _of_thing(thing: Thing) -> dict[str, Any]:
    found: dict[str, Any] = {
        "x": _short(thing.x),
        "y": _short(thing.y),
        "w": _short(thing.width),
        "h": _short(thing.height),
        "kind": thing.box.kind,
        "port": thing.port,
        "body": inner(thing.box),
    }
    if thing.module:
        found |= {"module": _key(thing.module), "title": frame_title(thing.box), "name": thing.box.hint}
    return found


def _short(number: float) -> float:
    return round(number, 1)
