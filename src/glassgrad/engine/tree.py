"""Arguments and results with structure: nested tuples, lists and dictionaries, taken apart and put together."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

Path = tuple[Any, ...]


def map_tree(function: Callable[[Any, Path], Any], tree: Any, path: Path = ()) -> Any:
    """Return the tree with `function(leaf, path)` in place of every leaf."""
    if isinstance(tree, dict):
        return _like(tree, {key: map_tree(function, value, (*path, key)) for key, value in tree.items()})
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        parts = zip(tree._fields, tree, strict=True)
        return type(tree)(*[map_tree(function, value, (*path, name)) for name, value in parts])
    if isinstance(tree, list | tuple):
        return type(tree)([map_tree(function, value, (*path, at)) for at, value in enumerate(tree)])
    return function(tree, path)


def _like(original: dict[Any, Any], items: dict[Any, Any]) -> Any:
    if type(original) is dict:
        return items
    made = copy.copy(original)  # with all else that it has, such as what a defaultdict makes its values with
    made.update(items)
    return made


def leaves(tree: Any) -> list[Any]:
    """Return the leaves in order."""
    found: list[Any] = []

    def collect(leaf: Any, _path: Path) -> Any:
        found.append(leaf)
        return leaf

    map_tree(collect, tree)
    return found


def path_text(path: Path) -> str:
    """Write a path as it would be typed: ``[0]['loss']``."""
    return "".join(f"[{key!r}]" for key in path)
