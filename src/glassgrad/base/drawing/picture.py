"""The result of `draw`: text for a browser, a notebook or a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from functools import cached_property
from pathlib import Path as File
from typing import Any

from glassgrad import errors
from glassgrad.base.drawing import page
from glassgrad.base.drawing.graph import Graph, Path
from glassgrad.base.drawing.mermaid import mermaid
from glassgrad.base.drawing.neurons import neurons_svg
from glassgrad.base.drawing.scene import paths_of, scene
from glassgrad.base.drawing.svg import document


class Drawing:
    """A drawn graph.

    Attributes:
        graph: the data that is drawn; `graph.as_dict()` is JSON.
        opened: paths of the modules that are open.

    Example:
        >>> import glassgrad as gg
        >>> a = gg.tensor(2.0, requires_grad=True)
        >>> drawing = gg.draw(a * a)
        >>> drawing.svg.startswith("<svg"), drawing.mermaid.split()[0]
        (True, 'graph')
    """

    def __init__(self, graph: Graph, opened: Collection[Path] = ()) -> None:
        self.graph = graph
        self.opened = frozenset(opened)

    @cached_property
    def svg(self) -> str:
        """The picture as SVG, as a file or inside a page. Text shows more details on hover."""
        graph = self.graph
        if graph.columns:
            return neurons_svg(graph)
        parts: list[tuple[str, Any]] = [("", scene(graph, self.opened))]
        if graph.sweeps:
            parts = [(f"{sweep.title}: {sweep.cost}", scene(graph, self.opened, sweep)) for sweep in graph.sweeps]
        return document(parts, f"graph of {graph.name}, {len(graph.nodes)} values", graph.notes)

    @cached_property
    def html(self) -> str:
        """The picture as a standalone page. A click on a module, or Enter, opens or closes it."""
        scenes = {} if self.graph.columns or self.graph.sweeps else self._levels
        return page.document(self.graph.name, self.svg, scenes, self.opened, self.graph.notes)

    @property
    def _levels(self) -> dict[Path, Any]:
        paths = paths_of(self.graph)
        return {path: scene(self.graph, (), None, path) for path in [(), *paths]} if paths else {}

    @property
    def json(self) -> str:
        """The data as JSON."""
        return json.dumps(self.graph.as_dict(), allow_nan=False)

    @property
    def mermaid(self) -> str:
        """The whole graph in Mermaid's language, for Markdown, without modules."""
        return mermaid(self.graph)

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return page.framed(self.html) if paths_of(self.graph) and not self.graph.sweeps else self.svg

    def __repr__(self) -> str:
        return f"<drawing of {self.graph.name}: {len(self.graph.nodes)} values; .save('graph.svg') or .html, .json>"

    def save(self, path: str | File) -> None:
        """Write the drawing to a file in the format of its suffix: .svg, .html, .json, .mmd or .md (fenced Mermaid)."""
        path = File(path)
        writers: dict[str, Callable[[], str]] = {
            ".svg": lambda: self.svg,
            ".html": lambda: self.html,
            ".json": lambda: self.json,
            ".mmd": lambda: self.mermaid,
            ".md": lambda: f"```mermaid\n{self.mermaid}```\n",
        }
        if path.suffix not in writers:
            raise errors.DRAWING_SUFFIX(path=path, expected=", ".join(writers))
        path.write_text(writers[path.suffix](), encoding="utf-8", newline="\n")
