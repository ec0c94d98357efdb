"""Trees: flattened containers are rebuilt, for all kinds of containers and both ways of walking."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassgrad.engine import tree


class Pair(NamedTuple):
    first: Any
    second: Any


class Config(dict):
    """A user's dictionary, which needs an argument and has an attribute."""

    def __init__(self, note: str) -> None:
        self.note = note


class Row(list):
    """A user's list."""


def config(items: dict[str, Any]) -> Config:
    made = Config("kept")
    made.update(items)
    return made


def inner(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.lists(children, max_size=3)
    maps = st.dictionaries(st.sampled_from("abc"), children, max_size=3)
    return st.one_of(
        lists, lists.map(tuple), lists.map(Row), st.builds(Pair, children, children), maps,
        maps.map(OrderedDict), maps.map(lambda items: defaultdict(list, items)), maps.map(config),
    )  # fmt: skip  # a table


TREES = st.recursive(st.one_of(st.none(), st.integers()), inner, max_leaves=8)


def kinds(value: Any) -> Any:
    """The containers, with what they have besides their parts."""
    if not isinstance(value, tuple | list | dict):
        return type(value)
    parts = [(key, kinds(part)) for key, part in value.items()] if isinstance(value, dict) else list(map(kinds, value))
    return type(value), getattr(value, "note", None), getattr(value, "default_factory", None), parts


@settings(max_examples=100, deadline=None)
@given(TREES)
def test_a_tree_comes_together_again(value: Any) -> None:
    leaves, structure = tree.flatten(value)
    mapped = tree.map_tree(lambda leaf, path: leaf, value)
    for made in (tree.unflatten(structure, leaves), tree.tree_map(lambda leaf: leaf, value), mapped):
        assert made == value
        assert kinds(made) == kinds(value)
    assert structure.leaves == len(leaves)
    assert tree.flatten_like(structure, value, "value") == leaves


@settings(max_examples=100, deadline=None)
@given(TREES)
def test_both_walks_meet_the_same_leaves_and_paths_lead_to_them(value: Any) -> None:
    met: list[tuple[Any, tree.Path]] = []
    tree.map_tree(lambda leaf, path: met.append((leaf, path)), value)
    assert [leaf for leaf, _ in met] == tree.every_leaf(value)
    assert [leaf for leaf, _ in met if leaf is not None] == tree.flatten(value)[0]
    for leaf, path in met:
        found = value
        for key in path:
            found = getattr(found, key) if isinstance(found, Pair) else found[key]
        assert found is leaf


@pytest.mark.parametrize("other", [[1], [1, [2]], {"a": 1}, 5, None])
def test_another_structure_is_told(other: Any) -> None:
    with pytest.raises(Exception, match="tree_map"):
        tree.tree_map(lambda one, two: one, [1, 2], other)


def test_an_empty_copy_keeps_no_leaf_alive() -> None:
    structure = tree.flatten(config({"a": object()}))[1]
    assert not structure.kind
    assert structure.kind.note == "kept"
