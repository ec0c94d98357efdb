"""Shows nothing."""

from typing import Any


def display(*_arguments: Any, **_options: Any) -> None:
    """Show nothing."""


clear_output = set_matplotlib_formats = display


class HTML:
    """A piece of a page."""

    def __init__(self, *_arguments: Any, **_options: Any) -> None:
        pass


Image = Video = Audio = Markdown = Latex = SVG = HTML
