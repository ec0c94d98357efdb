"""Recordings of the playground that pages embed: a line `<!-- playground: EXAMPLE PANE -->` stands for one.

They are written when the site is built, and none is kept in the repository. Each is one file that needs no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from glassgrad.lessons.playground import gallery, saving
from glassgrad.lessons.playground.runner import Runner

FOLDER = "playgrounds"
_MARK = re.compile(r"^<!-- playground: (\w+) (\w+) -->$", re.MULTILINE)


def wanted(texts: Iterable[str]) -> list[str]:
    """Return the examples that some pages embed.

    Raises:
        ValueError: a page names a pane that the playground lacks.
    """
    found = [match for text in texts for match in _MARK.findall(text)]
    wrong = sorted({pane for _, pane in found} - set(saving.PANES))
    if wrong:
        raise ValueError(f"the playground has no pane {wrong[0]!r}; it has {', '.join(saving.PANES)}")
    return sorted({example for example, _ in found})


def embedded(name: str, text: str) -> str:
    """Return a page with a frame for each recording that it names."""
    up = "../" * name.count("/")

    def frame(match: re.Match[str]) -> str:
        example, pane = match.groups()
        title = str(gallery.example(example)["title"])
        place = f"{up}{FOLDER}/{example}.html#{pane}"
        return (
            f'```{{raw}} html\n<iframe class="playground" src="{place}" title="The playground: {title}" loading="lazy">'
            f'</iframe>\n<p class="playground-note">A recording: nothing runs here. <a href="{place}">Open it alone</a>'
            f", or type <code>glassgrad playground --example {example}</code> and change it.</p>\n```"
        )

    return _MARK.sub(frame, text)


def write(folder: Path, examples: Iterable[str]) -> None:
    """Run examples and write what their panes show, a file for each."""
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    with Runner(seconds=60.0) as runner:
        for example in examples:
            _, page = saving.exported(gallery.text_of(example), "html", runner)
            (folder / FOLDER / f"{example}.html").write_bytes(page)


__all__ = ["FOLDER", "embedded", "wanted", "write"]
