"""A scene as self-contained SVG, in the colours of the reader's page, light or dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from glassgrad.base.drawing import layout
from glassgrad.base.drawing.boxes import LINE, PAD, Box
from glassgrad.base.drawing.scene import SIDE, TOP, Scene, Thing, Wire

MARGIN = 14.0
# The style of an SVG inside a page applies to the whole page, so every rule begins with a class of our own.
# A name, its colour on a light page, and on a dark one.
_COLOURS = (
    ("ink", "#1f2933", "#e4e7eb"),
    ("soft", "#616e7c", "#9aa5b1"),
    ("line", "#8795a1", "#7b8794"),
    ("page", "#ffffff", "#14191f"),
    ("op", "#ffffff", "#1f2933"),
    ("op-edge", "#627d98", "#829ab1"),
    ("leaf", "#e3f2e6", "#163a1f"),
    ("leaf-edge", "#3f9142", "#57ae5b"),
    ("par", "#dceefb", "#10314d"),
    ("par-edge", "#2680c2", "#47a3f3"),
    ("con", "#f0f0f0", "#2b3440"),
    ("con-edge", "#9aa5b1", "#7b8794"),
    ("res", "#fff3c4", "#4a3410"),
    ("res-edge", "#cb6e17", "#f0b429"),
    ("mod", "#f1edfb", "#2a2146"),
    ("mod-edge", "#7c5cc4", "#a98eea"),
    ("frame", "#faf8ff", "#1a1826"),
    ("forth", "#2680c2", "#47a3f3"),
    ("back", "#c8553d", "#f29b86"),
    ("halo", "#ffffff", "#14191f"),
)
LIGHT = {name: light for name, light, _dark in _COLOURS}
DARK = {name: dark for name, _light, dark in _COLOURS}
_RULES = (
    "text{font:11px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:var(--ink)}",
    ".first{font-weight:700}",
    ".title{font-weight:700;font-size:12px}",
    ".soft,.label{fill:var(--soft)}",
    ".label{font-size:10px;paint-order:stroke;stroke:var(--halo);stroke-width:3px}",
    ".wire{fill:none;stroke:var(--line);stroke-width:1.3}",
    ".wire.leaf{stroke-dasharray:3 2}",
    ".wire.tip{stroke-dasharray:none}",
    ".wire.forth{stroke:var(--forth);stroke-width:2}",
    ".wire.back{stroke:var(--back);stroke-width:2}",
    ".asleep{opacity:.35}",
    "rect,circle{fill:var(--op);stroke:var(--op-edge)}",
    ".input>rect{fill:var(--leaf);stroke:var(--leaf-edge)}",
    ".parameter>rect{fill:var(--par);stroke:var(--par-edge)}",
    ".constant>rect{fill:var(--con);stroke:var(--con-edge)}",
    ".result>rect,.update>rect{fill:var(--res);stroke:var(--res-edge)}",
    ".cut>rect{fill:var(--con);stroke:var(--con-edge);stroke-dasharray:4 3}",
    ".module>rect{fill:var(--mod);stroke:var(--mod-edge);stroke-width:2}",
    ".module.open>rect{fill:var(--frame);stroke-dasharray:5 3;stroke-width:1.3}",
    ".module[tabindex]{cursor:pointer}",
    ".port>rect{fill:none;stroke:none}",
    ".port>text{fill:var(--soft);font-style:italic}",
)
# Characters that a name may contain but XML forbids, even escaped.
_NOT_IN_XML = dict.fromkeys([*{*range(32)} - {9, 10, 13}, *range(0xD800, 0xE000), 0xFFFE, 0xFFFF], "\ufffd")


def style() -> str:
    """Return the CSS rules of a drawing, each below `.ggdraw`."""
    dark = ";".join(f"--{name}:{value}" for name, value in DARK.items())
    light = ";".join(f"--{name}:{value}" for name, value in LIGHT.items())
    rules = "".join(
        f"{','.join(f'.ggdraw {one}' for one in selector.split(','))}{{{body}"
        for selector, _, body in (rule.partition("{") for rule in _RULES)
    )
    return f".ggdraw{{{light}}}@media (prefers-color-scheme:dark){{.ggdraw{{{dark}}}}}{rules}"


def document(parts: Sequence[tuple[str, Scene]], title: str, notes: Iterable[str] = ()) -> str:
    """Return scenes stacked vertically, each with its heading, as one SVG."""
    body, width, y = [], 0.0, MARGIN
    for heading, scene in parts:
        if heading:
            body.append(f'<text class="title" x="{MARGIN:.0f}" y="{y + 12:.1f}">{escape(heading)}</text>')
            y += 26
        body.append(f'<g transform="translate({MARGIN:.0f},{y:.1f})">{contents(scene)}</g>')
        width = max(width, scene.width, 7.5 * len(heading))
        y += scene.height + MARGIN
    for note in notes:
        y += 14
        body.append(f'<text class="soft" x="{MARGIN:.0f}" y="{y:.1f}">{escape(note)}</text>')
        width = max(width, 6.8 * len(note))
    return wrapped("\n".join(body), width + 2 * MARGIN, y + MARGIN, title)


def wrapped(body: str, width: float, height: float, title: str) -> str:
    """Return an SVG element around a body."""
    made = (
        '<svg xmlns="http://www.w3.org/2000/svg" class="ggdraw" role="img" '
        f'aria-label="{escape(title)}" '
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">'
        f"<style>{style()}</style>"
        f'<rect width="100%" height="100%" style="fill:var(--page);stroke:none"/>\n{body}</svg>\n'
    )
    return made.translate(_NOT_IN_XML)


def contents(scene: Scene) -> str:
    """Return the edges and boxes of a scene."""
    return "\n".join([*map(wire, scene.wires), *map(_thing, scene.things)])


def wire(one: Wire) -> str:
    """Return an edge with its text."""
    title = f"<title>{escape(one.hint)}</title>" if one.hint else ""
    kind = f"wire {one.kind}".strip()
    x, y = one.points[-1]
    tip = f"M{x - 5:.1f},{y - 3:.1f}L{x:.1f},{y:.1f}L{x - 5:.1f},{y + 3:.1f}"
    parts = [
        f'<path class="{kind}" d="{curve(one.points)}">{title}</path>',
        f'<path class="{kind} tip" d="{tip}"/>',
    ]
    if one.label:
        asleep = " asleep" if one.kind == "asleep" else ""
        place = f'text-anchor="end" x="{x - 8:.1f}" y="{y - 4:.1f}"'
        parts.append(f'<text class="label{asleep}" {place}>{escape(one.label)}{title}</text>')
    return "".join(parts)


def curve(points: Sequence[layout.Point]) -> str:
    """Return the path of an edge: a line across each column, and a cubic, level at both ends, to the next."""
    (x, y), *rest = points
    out = [f"M{x:.1f},{y:.1f}"]
    for at, (to, height) in enumerate(rest):
        if at % 2 == 0:
            out.append(f"H{to:.1f}")
        else:
            middle = (x + to) / 2
            out.append(f"C{middle:.1f},{y:.1f} {middle:.1f},{height:.1f} {to:.1f},{height:.1f}")
        x, y = to, height
    return "".join(out)


def _thing(thing: Thing) -> str:
    place = f'transform="translate({thing.x:.1f},{thing.y:.1f})"'
    if thing.inside is None:
        return f'<g class="{thing.box.kind}" {place}>{inner(thing.box)}</g>'
    return (
        f'<g class="module open" {place}><title>{escape(thing.box.hint)}</title>'
        f'<rect width="{thing.width:.1f}" height="{thing.height:.1f}" rx="8"/>{frame_title(thing.box)}'
        f'<g transform="translate({SIDE:.0f},{TOP:.0f})">{contents(thing.inside)}</g></g>'
    )


def frame_title(box: Box) -> str:
    """Return the heading in the frame of an open module."""
    return _text(box.lines[0], PAD, 16, "first", box.lines[1] if len(box.lines) > 1 else "")


def inner(box: Box) -> str:
    """Return the rectangle and the lines of a box."""
    width, height = box.size
    title = f"<title>{escape(box.hint)}</title>" if box.hint else ""
    rectangle = f'{title}<rect width="{width:.1f}" height="{height:.1f}" rx="5"/>'
    if box.kind == "port":
        return rectangle + _text(box.lines[0], 2, 12)
    first = _text(box.lines[0], PAD, PAD + 8, "first", box.after)
    return rectangle + first + "".join(_text(line, PAD, PAD + 8 + at * LINE) for at, line in enumerate(box.lines) if at)


def _text(text: str, x: float, y: float, kind: str = "", after: str = "") -> str:
    name = f'<tspan class="{kind}">{escape(text)}</tspan>' if kind else escape(text)
    more = f'<tspan class="soft" dx="6">{escape(after)}</tspan>' if after else ""
    return f'<text x="{x:.0f}" y="{y:.0f}">{name}{more}</text>'
