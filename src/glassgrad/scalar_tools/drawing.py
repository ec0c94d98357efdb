"""The graph of a Value as the data of a drawing."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from glassgrad.drawing import Drawing, Node
    from glassgrad.scalar import Value

_PACKAGE = str(Path(__file__).parents[1])
_MOST = 1000  # entries of a list that are looked at


def draw(value: Value, max_values: int = 200) -> Drawing:
    """Draw the graph that computed `value`, with data and grad of every value and the slopes on the edges.

    Inputs are on the left, the result is on the right. A value without a label has the name of the caller's
    variable. If the graph has more than `max_values` values, those nearest to the result are drawn, and dashed
    boxes mark where it continues.

        >>> from glassgrad.scalar import Value
        >>> a, b = Value(2.0), Value(-3.0)
        >>> loss = a * b
        >>> loss.backward()
        >>> [(node.name, node.value.text, node.gradient.text) for node in draw(loss).graph.nodes]
        [('a', '2', '-3'), ('b', '-3', '2'), ('loss', '-6', '1')]
    """
    from glassgrad.drawing import Drawing, Edge, Graph

    values = _nearest(value, max_values)
    index = {value: at for at, value in enumerate(values)}
    names = _names(type(value))
    nodes = [_node(one, names, index) for one in values]
    nodes[index[value]].root = True
    edges = [
        Edge(index[arg], at, number=slope)
        for at, one in enumerate(values)
        for arg, slope in zip(one._args, one._slopes, strict=True)
        if arg in index
    ]
    return Drawing(Graph(nodes[index[value]].name or "a value", nodes, edges))


def _nearest(root: Value, count: int) -> list[Value]:
    """Return the values that are nearest to the result, the oldest first."""
    chosen, frontier = {root}, [root]
    while frontier and len(chosen) < count:
        found = [arg for value in frontier for arg in value._args]
        frontier = [arg for arg in dict.fromkeys(found) if arg not in chosen][: count - len(chosen)]
        chosen.update(frontier)
    return sorted(chosen, key=lambda value: value._seq)


def _names(kind: type[Value]) -> dict[Value, str]:
    """Return what the nearest frame outside of the package calls its Values, those in lists and networks too."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    variables = {**frame.f_globals, **frame.f_locals}
    return {
        value: name
        for variable, thing in variables.items()
        if variable.isidentifier() and not variable.startswith("_")
        for name, value in _within(variable, thing, kind)
    }


def _within(name: str, thing: Any, kind: type[Value]) -> Iterator[tuple[str, Value]]:
    """Yield the Values in a variable as a user would write them: a Value, a list, a neuron, a network."""
    if isinstance(thing, kind):
        yield name, thing
    elif isinstance(thing, list | tuple) and len(thing) <= _MOST:
        for at, entry in enumerate(thing):
            yield from _within(f"{name}[{at}]", entry, kind)
    elif hasattr(thing, "parameters") and hasattr(thing, "__dict__") and not isinstance(thing, type):
        for key, entry in vars(thing).items():
            if key != "parts":  # another name for what a layer is made of
                yield from _within(f"{name}.{key}", entry, kind)


def _node(value: Value, names: Mapping[Value, str], index: Mapping[Value, int]) -> Node:
    from glassgrad.drawing import Node, numbers_of

    name = value.label or names.get(value, "")
    formula = f"{value._op}({_listed(value._args, names)})" if value._op else ""
    made = Node("op", value._op, name, formula, value=numbers_of(value.data), gradient=numbers_of(value.grad))
    if any(arg not in index for arg in value._args):
        made.kind = "cut"
    elif not value._args:
        made.kind = "parameter" if "." in name else "input" if name or len(index) == 1 else "constant"
        made.name = name or ("value" if len(index) == 1 else "")
    return made


def _listed(values: Sequence[Value], names: Mapping[Value, str]) -> str:
    return ", ".join(value.label or names.get(value) or f"{value.data:.4g}" for value in values)
