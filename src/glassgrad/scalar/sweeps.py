"""Slopes of any op, and sweeps of both modes over a graph of Values, without changing its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from glassgrad import errors

if TYPE_CHECKING:
    from glassgrad.base.drawing import Graph, Sweep
    from glassgrad.scalar import Value

_MOST = 4
"""The largest number of forward-mode sweeps that are drawn; further inputs are only counted."""


def slopes_of(value: Value) -> Sequence[float]:
    """Return the slopes of an op; with its own `_backward`, what that adds for a gradient of 1."""
    if value._backward is None:
        if len(value._slopes) != len(value._args):
            raise errors.SCALAR_NO_SLOPES(op=value._op, children=len(value._args))
        return value._slopes
    different = list(dict.fromkeys(value._args))
    before = [(one, one.grad) for one in (value, *different)]
    try:
        value.grad = 1.0
        for arg in different:
            arg.grad = 0.0
        value._backward()
        # The sum of both slopes of an argument given twice goes to its first place.
        found = {arg: arg.grad for arg in different}
        return [found.pop(arg, 0.0) for arg in value._args]
    finally:
        for one, grad in before:
            one.grad = grad


def backward_of(root: Value, values: Sequence[Value]) -> dict[Value, float]:
    """Return d(root)/d(value) for every value, oldest first in `values`: one sweep of reverse mode."""
    found = dict.fromkeys(values, 0.0)
    found[root] = 1.0
    for value in reversed(values):
        for arg, slope in zip(value._args, slopes_of(value) if value._args else (), strict=True):
            if arg in found:
                found[arg] += found[value] * slope
    return found


def forward_of(source: Value, values: Sequence[Value]) -> tuple[dict[Value, float], int]:
    """Return d(value)/d(source) for every value that depends on it, and the count of products: one forward sweep."""
    found, products = {source: 1.0}, 0
    for value in values:
        pairs = [
            (arg, slope)
            for arg, slope in zip(value._args, slopes_of(value) if value._args else (), strict=True)
            if arg in found
        ]
        if pairs:
            products += len(pairs)
            found[value] = sum(found[arg] * slope for arg, slope in pairs)
    return found, products


def sweeps_of(root: Value, values: Sequence[Value], graph: Graph) -> list[Sweep]:
    """Return the sweep of reverse mode, and those of forward mode from each input, with values in the graph's order."""
    from glassgrad.base.drawing import Sweep

    at = {value: number for number, value in enumerate(values)}
    leaves = [value for value in values if graph.nodes[at[value]].kind in {"input", "parameter"}]
    products = sum(len(value._args) for value in values)
    name = graph.name
    back = {at[value]: f"d {name} = {number:.4g}" for value, number in backward_of(root, values).items()}
    found = [
        Sweep(
            f"Reverse mode: the derivative of {name} by every value",
            f"1 sweep, {products:,} products, for all {len(leaves)} inputs",
            back,
            backward=True,
        )
    ]
    for leaf in leaves[:_MOST]:
        tangents, products = forward_of(leaf, values)
        title = f"Forward mode: the derivative of every value by {graph.nodes[at[leaf]].name}"
        texts = {at[value]: f"d = {number:.4g}" for value, number in tangents.items()}
        found.append(Sweep(title, f"1 sweep, {products:,} products", texts))
    if len(leaves) > _MOST:
        graph.notes.append(f"Sweeps are drawn from {_MOST} of {len(leaves)} inputs.")
    return found
