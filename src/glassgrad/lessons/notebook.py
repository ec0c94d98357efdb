"""Lessons and exercises as notebooks.

A notebook is JSON, and version 4.5 of its format needs very little for cells without outputs. This module writes it
directly, because the `nbformat` library depends on a dozen packages, mostly for validation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from glassgrad.lessons.program import PROSE, Cell

__all__ = ["notebook"]


def notebook(cells: Iterable[Cell]) -> str:
    """Return a notebook of format 4.5.

    Example:
        >>> json.loads(notebook([Cell("prose", "# Title", 1), Cell("code", "1 + 1", 2)]))["cells"][1]["source"]
        ['1 + 1']
    """
    document = {
        "cells": [_cell(number, cell) for number, cell in enumerate(cells)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _cell(number: int, cell: Cell) -> dict[str, Any]:
    text = cell.text if cell.kind == PROSE else cell.code
    source = text.splitlines(keepends=True)
    common: dict[str, Any] = {"id": f"cell-{number}", "metadata": {}, "source": source}
    if cell.kind == PROSE:
        return {"cell_type": "markdown", **common}
    return {"cell_type": "code", "execution_count": None, "outputs": [], **common}
