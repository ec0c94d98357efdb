"""Nested containers of tensors: flattened into a list of leaves and rebuilt.

Containers are lists, tuples, named tuples and dictionaries with their subclasses, nested in any way. Everything else is
a leaf; None is an empty container for `flatten` and its callers, and a leaf for `map_tree` and `every_leaf`.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from glassgrad import errors
from glassgrad.base import provenance

Path = tuple[Any, ...]
Nested = Any  # leaves, alone or in lists, tuples and dictionaries


class Tree(NamedTuple):
    """The structure of a container: its kind, its data besides the children, and their structures."""

    kind: Any
    keys: tuple[Any, ...]
    children: tuple[Tree, ...]

    def __repr__(self) -> str:
        if self is LEAF:
            return "*"
        if self is NOTHING:
            return "None"
        if self.keys:
            inside = ", ".join(f"{key}: {child!r}" for key, child in zip(self.keys, self.children, strict=False))
            return f"{{{inside}}}"
        inside = ", ".join(map(repr, self.children))
        return f"[{inside}]" if self.kind is list else f"({inside})"

    @property
    def leaves(self) -> int:
        """The number of leaves."""
        return 1 if self is LEAF else sum(child.leaves for child in self.children)


LEAF = Tree("leaf", (), ())
NOTHING = Tree("nothing", (), ())


def is_container(value: Nested) -> bool:
    """Tell whether a value is a container."""
    return isinstance(value, tuple | list | dict)


def _kind_of(value: Nested) -> Any:
    """Return what is needed to rebuild a container: its class, or an empty copy if the class is not enough.

    A defaultdict, for example, also has a function that makes its values.
    """
    if not isinstance(value, dict) or type(value) in (dict, OrderedDict):
        return type(value)
    empty = copy.copy(value)
    empty.clear()
    return empty


def _together(kind: Any, keys: Iterable[Any], parts: list[Any]) -> Nested:
    """Return the container of a kind with these parts."""
    if isinstance(kind, dict):
        made = copy.copy(kind)
        made.update(zip(keys, parts, strict=True))
        return made
    if issubclass(kind, dict):
        return kind(zip(keys, parts, strict=True))
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)


def flatten(value: Nested) -> tuple[list[Any], Tree]:
    """Return the leaves of a container, in order, and its structure."""
    leaves: list[Any] = []
    return leaves, _flatten(value, leaves)


def _flatten(value: Nested, leaves: list[Any]) -> Tree:
    if value is None:
        return NOTHING
    if not is_container(value):
        leaves.append(value)
        return LEAF
    keys, parts = (tuple(value), value.values()) if isinstance(value, dict) else ((), value)
    return Tree(_kind_of(value), keys, tuple(_flatten(part, leaves) for part in parts))


def unflatten(tree: Tree, leaves: Iterable[Any]) -> Nested:
    """Put leaves together in the structure `tree`."""
    return _unflatten(tree, iter(leaves))


def _unflatten(tree: Tree, leaves: Iterator[Any]) -> Nested:
    if tree is LEAF:
        return next(leaves)
    if tree is NOTHING:
        return None
    return _together(tree.kind, tree.keys, [_unflatten(child, leaves) for child in tree.children])


# --- with paths: None is a leaf here ---------------------------------------------------------------


def map_tree(function: Callable[[Any, Path], Any], value: Nested, path: Path = ()) -> Any:
    """Replace every leaf, None included, by `function(leaf, path)`."""
    if not is_container(value):
        return function(value, path)
    keys: Iterable[Any] = value if isinstance(value, dict) else getattr(value, "_fields", range(len(value)))
    parts = value.values() if isinstance(value, dict) else value
    mapped = [map_tree(function, part, (*path, key)) for key, part in zip(keys, parts, strict=True)]
    return _together(_kind_of(value), value, mapped)


def every_leaf(value: Nested) -> list[Any]:
    """Return the leaves in order, including None."""
    if not is_container(value):
        return [value]
    return [leaf for part in (value.values() if isinstance(value, dict) else value) for leaf in every_leaf(part)]


def path_text(path: Path) -> str:
    """Write a path as it would be typed: ``[0]['loss']``."""
    return "".join(f"[{key!r}]" for key in path)


# --- several trees of one structure ----------------------------------------------------------------


def tree_map(function: Callable[..., Any], value: Nested, *others: Any) -> Nested:
    """Apply a function to each leaf (and the leaves at the same places in `others`); keep the structure.

    Example:
        >>> import glassgrad as gg
        >>> gg.func.tree_map(lambda leaf: leaf + 1, {"a": 1, "b": [2, 3]})
        {'a': 2, 'b': [3, 4]}
    """
    leaves, tree = flatten(value)
    columns = [flatten_like(tree, other, "tree_map") for other in others]
    return unflatten(tree, [function(*row) for row in zip(leaves, *columns, strict=True)])


def flatten_like(tree: Tree, value: Nested, name: str) -> list[Any]:
    """Return the leaves of a value that must have the structure `tree`; dictionaries in the tree's key order."""
    leaves: list[Any] = []
    if not _follow(tree, value, leaves):
        raise errors.TREE_DIFFERS(name=name, given=flatten(value)[1], expected=tree, where=provenance.here())
    return leaves


def _follow(tree: Tree, value: Nested, leaves: list[Any]) -> bool:
    if tree is LEAF:
        leaves.append(value)
        return value is not None and not is_container(value)
    if tree is NOTHING:
        return value is None
    if not is_container(value) or len(value) != len(tree.children) or isinstance(value, dict) != bool(tree.keys):
        return not tree.children and is_container(value) and not value
    if isinstance(value, dict):
        if set(value) != set(tree.keys):
            return False
        value = [value[key] for key in tree.keys]
    return all(_follow(child, part, leaves) for child, part in zip(tree.children, value, strict=True))


def spread(prefix: Nested, tree: Tree, name: str) -> list[Any]:
    """Return one entry per leaf of `tree`: `prefix` has one entry per leaf or per container.

    None is an entry here, not an empty container, because axes may be None.
    """
    if tree is LEAF:
        if is_container(prefix):
            raise errors.TREE_DIFFERS(name=name, given=prefix, expected=tree, where=provenance.here())
        return [prefix]
    if not is_container(prefix):
        return [prefix] * tree.leaves
    if isinstance(prefix, dict):
        fits = set(prefix) == set(tree.keys)
        parts = [prefix[key] for key in tree.keys] if fits else []
    else:
        parts = list(prefix)
        fits = len(parts) == len(tree.children) and not tree.keys
    if not fits:
        raise errors.TREE_DIFFERS(name=name, given=prefix, expected=tree, where=provenance.here())
    return [entry for part, child in zip(parts, tree.children, strict=True) for entry in spread(part, child, name)]
