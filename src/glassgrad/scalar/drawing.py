"""The graph of a Value as the data of a drawing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from glassgrad import errors
from glassgrad.scalar.networks import calls_of, graph_of_neurons, paths_of
from glassgrad.scalar.sweeps import slopes_of, sweeps_of
from glassgrad.scalar.trouble import user_frame

if TYPE_CHECKING:
    from glassgrad.base.drawing import Drawing, Node
    from glassgrad.scalar import Value

VIEWS = ("ops", "layers", "neurons", "sweeps")
_MOST = 1000  # entries of a list that are examined


def draw(value: Value, max_values: int = 200, view: str = "ops") -> Drawing:
    """Draw the graph that computed `value`, with data and grad of every value and the slopes on the edges.

    Inputs are on the left, the result is on the right. A value without a label gets the name of the caller's variable,
    a parameter that of its neuron. If the graph has more than `max_values` values, only those nearest to the result are
    drawn; dashed boxes mark where the graph continues.

    Args:
        value: the result.
        max_values: the largest number of boxes.
        view: "ops"; "layers", with the layers of networks among the caller's variables closed; "neurons", a network as
            circles joined by its weights; or "sweeps", the passes of forward mode beside that of reverse mode.

    Example:
        >>> from glassgrad.scalar import Value
        >>> a, b = Value(2.0), Value(-3.0)
        >>> loss = a * b
        >>> loss.backward()
        >>> [(node.name, node.value.text, node.gradient.text) for node in draw(loss).graph.nodes]
        [('a', '2', '-3'), ('b', '-3', '2'), ('loss', '-6', '1')]
    """
    frame = user_frame()
    return drawn(value, max_values, view, {**frame.f_globals, **frame.f_locals})


def html(value: Value) -> str:
    """Return the picture that a notebook shows."""
    return draw(value).svg


def drawn(value: Value, max_values: int, view: str, variables: Mapping[str, Any]) -> Drawing:
    """Draw a graph with the names of the given variables; see `draw`."""
    from glassgrad.base.drawing import Drawing, Edge, Graph

    if view not in VIEWS:
        raise errors.DRAW_VIEW(given=view, known=", ".join(VIEWS))
    names = _names(variables)
    values = _nearest(value, max_values)
    calls = calls_of(values, variables)
    if view == "neurons":
        return Drawing(graph_of_neurons(value.label or names.get(value, "y"), calls))
    index = {one: at for at, one in enumerate(values)}
    nodes = [_node(one, names, index) for one in values]
    nodes[index[value]].root = True
    edges = [
        Edge(index[arg], at, number=slope)
        for at, one in enumerate(values)
        for arg, slope in zip(one._args, slopes_of(one) if one._args else (), strict=True)
        if arg in index
    ]
    graph = Graph(nodes[index[value]].name or "a value", nodes, edges)
    if view == "sweeps":
        graph.sweeps = sweeps_of(value, values, graph)
        return Drawing(graph)
    for one, path in paths_of(calls).items():
        nodes[index[one]].module = path
        graph.modules |= {path[:1]: "Layer", path: "Neuron"}
    graph.place_leaves()
    return Drawing(graph, () if view == "layers" else graph.modules)


def _nearest(root: Value, count: int) -> list[Value]:
    """Return the values that are nearest to the result, the oldest first."""
    chosen, frontier = {root}, [root]
    while frontier and len(chosen) < count:
        found = [arg for value in frontier for arg in value._args]
        frontier = [arg for arg in dict.fromkeys(found) if arg not in chosen][: count - len(chosen)]
        chosen.update(frontier)
    return sorted(chosen, key=lambda value: value._seq)


def _names(variables: Mapping[str, Any]) -> dict[Value, str]:
    """Return the user's names of the Values, including those in lists and networks."""
    return {
        value: name
        for variable, thing in variables.items()
        if variable.isidentifier() and not variable.startswith("_")
        for name, value in names_within(variable, thing)
    }


def names_within(name: str, thing: Any) -> Iterator[tuple[str, Value]]:
    """Yield the Values in a variable, named as a user would write them: a Value, a list, a neuron, a network."""
    if hasattr(type(thing), "_slopes"):
        yield name, thing
    elif isinstance(thing, list | tuple) and len(thing) <= _MOST:
        for at, entry in enumerate(thing):
            yield from names_within(f"{name}[{at}]", entry)
    elif hasattr(thing, "parameters") and hasattr(thing, "__dict__") and not isinstance(thing, type):
        for key, entry in vars(thing).items():
            if key != "parts":  # another name for the parts of a layer
                yield from names_within(f"{name}.{key}", entry)


def _node(value: Value, names: Mapping[Value, str], index: Mapping[Value, int]) -> Node:
    from glassgrad.base.drawing import Node, numbers_of

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
