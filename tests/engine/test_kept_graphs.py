"""A graph that is kept for a possible second walk, and freed afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.engine import tape
from glassgrad.engine.mode import MODE


def graph() -> tuple[Any, list[Any], list[Any]]:
    """Return a loss over ops of one, two and fused operands, its leaves, and the nodes that hold on to arrays."""
    x = gg.tensor([[0.5, -1.0], [2.0, 0.25]], dtype=gg.float64, requires_grad=True)
    w = gg.tensor([[1.0, 2.0], [-3.0, 0.5]], dtype=gg.float64, requires_grad=True)
    middle = gg.nn.functional.linear(x, w).tanh()
    loss = gg.nn.functional.softmax(middle * x, dim=1).square().sum()
    nodes, todo = [], [loss.node]
    while todo:
        node = todo.pop()
        nodes += [node] if node.name != "sum" else []  # a sum saves nothing that could be freed
        todo += [one for one in node.parents if hasattr(one, "parents")]
    return loss, [x, w], nodes


def walk(loss: Any, **options: Any) -> dict[Any, Any]:
    given: dict[str, Any] = {"retain_graph": False, "create_graph": False, **options}
    return tape.backward((loss.node,), (np.ones(()),), **given)


@pytest.fixture(params=["written out", "observed"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both walks: that of training, and the one which methods can look into."""
    if request.param == "observed":
        monkeypatch.setattr(MODE, "observer", tape.Observer())


@pytest.mark.usefixtures("way")
def test_a_kept_graph_can_be_walked_again_and_is_freed_after() -> None:
    loss, leaves, nodes = graph()
    shapes = [len(node.parents) for node in nodes]
    kept = tape.Kept()
    first = walk(loss, kept=kept)
    assert set(kept) == set(nodes)
    assert [len(node.parents) for node in nodes] == shapes
    second = walk(loss, retain_graph=True)
    for leaf in leaves:
        np.testing.assert_array_equal(first[leaf], second[leaf])
    kept.free()
    assert all(node.parents == () for node in nodes)
    assert all(node.saved is kept.freed for node in nodes)
    with pytest.raises(errors.AutogradError, match=r"test_kept_graphs.py"):
        walk(loss)


@pytest.mark.usefixtures("way")
def test_without_somebody_to_keep_it_a_graph_is_freed_on_the_way() -> None:
    loss, _, nodes = graph()
    walk(loss)
    assert all(node.parents == () for node in nodes)
    with pytest.raises(errors.AutogradError, match=r"test_kept_graphs.py"):
        walk(loss)


@pytest.mark.usefixtures("way")
def test_a_retained_graph_is_nobodys_to_free() -> None:
    loss, leaves, nodes = graph()
    kept = tape.Kept()
    first = walk(loss, kept=kept, retain_graph=True)
    assert all(node.parents for node in nodes)
    np.testing.assert_array_equal(walk(loss)[leaves[0]], first[leaves[0]])
