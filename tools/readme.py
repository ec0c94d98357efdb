"""The README for package indexes, on which links into the repository do not work.

`pyproject.toml` names this file as a hook of hatchling, which writes the text into the metadata of wheel and sdist.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_IMAGE = re.compile(r"^!\[[^\]]*\]\((?!\w+:)[^)]*\)\n\n?", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\((?!\w+:)[^)]*\)")


def alone(text: str) -> str:
    """Return Markdown without pictures from the repository, and with links into it replaced by their text."""
    return _LINK.sub(r"\1", _IMAGE.sub("", text))


class Readme(MetadataHookInterface):  # type: ignore[misc]  # hatchling is there while a package is built
    """Sets the field `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the README of the folder being built."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": alone(text)}
