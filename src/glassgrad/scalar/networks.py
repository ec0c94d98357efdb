"""Find the neuron and the layer that made each value of a graph, by its parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from glassgrad import errors

if TYPE_CHECKING:
    from glassgrad.base.drawing import Graph
    from glassgrad.scalar import Value

Path = tuple[str, ...]
_MOST = 10
"""The largest number of neurons that are drawn for a layer."""


@dataclass
class Call:
    """A neuron's part of a graph: its layer, its number there, its weights, and the values that it made."""

    layer: str
    number: int
    neuron: Any
    made: list[Value]

    @property
    def inputs(self) -> Sequence[Value]:
        """The values that are multiplied by its weights."""
        arguments = self.made[0]._args
        weights = set(self.neuron.w)
        half = len(arguments) // 2
        return arguments[half:] if arguments[0] in weights else arguments[:half]

    @property
    def result(self) -> Value:
        return self.made[-1]


def neurons_of(variables: Mapping[str, Any]) -> Iterator[tuple[str, int, Any]]:
    """Yield layer, number and neuron of the networks among a user's variables; a single neuron is a layer of one."""
    for name, thing in variables.items():
        if name.isidentifier() and not name.startswith("_") and not isinstance(thing, type):
            yield from _within(name, thing, ("", 0))


def _within(name: str, thing: Any, place: tuple[str, int]) -> Iterator[tuple[str, int, Any]]:
    if hasattr(thing, "w") and hasattr(thing, "b") and hasattr(thing, "parameters"):
        yield place[0] or name, place[1], thing
    elif hasattr(thing, "parameters") and hasattr(thing, "__dict__"):
        for key, entry in vars(thing).items():
            if key != "parts" and isinstance(entry, list | tuple):  # `parts` is another name for its components
                for at, part in enumerate(entry):
                    inside = f"{name}.{key}[{at}]"
                    yield from _within(inside, part, (name, at))


def calls_of(values: Sequence[Value], variables: Mapping[str, Any]) -> list[Call]:
    """Return the calls of neurons in a graph, the oldest first: w @ x, + b, and the activation."""
    neurons = {neuron.b: (layer, number, neuron) for layer, number, neuron in neurons_of(variables)}
    readers: dict[Value, list[Value]] = {}
    for value in values:
        for arg in value._args:
            readers.setdefault(arg, []).append(value)
    found = []
    for value in values:
        bias = next((arg for arg in value._args if arg in neurons), None) if value._op == "+" else None
        if bias is None:
            continue
        layer, number, neuron = neurons[bias]
        product = next((arg for arg in value._args if arg._op == "@" and set(neuron.w) & set(arg._args)), None)
        if product is None:
            continue
        made = [product, value]
        if getattr(neuron, "act", "linear") != "linear" and readers.get(value):
            made.append(readers[value][0])
        found.append(Call(layer, number, neuron, made))
    return found


def paths_of(calls: Sequence[Call]) -> dict[Value, Path]:
    """Return the modules in which each value was made, outermost first; a second call gets a name of its own."""
    found: dict[Value, Path] = {}
    counts: dict[tuple[str, int], int] = {}
    for call in calls:
        key = call.layer, call.number
        counts[key] = counts.get(key, 0) + 1
        again = "" if counts[key] == 1 else f", call {counts[key]}"
        for value in call.made:
            found[value] = (f"{call.layer}{again}", f"neurons[{call.number}]")
    return found


def graph_of_neurons(name: str, calls: Sequence[Call]) -> Graph:
    """Return the neurons of the latest call of a network, in columns. Raise if there is none."""
    from glassgrad.base.drawing import Edge, Graph, Node, Numbers

    latest: dict[str, dict[int, Call]] = {}
    for call in calls:
        latest.setdefault(call.layer, {})[call.number] = call
    if not latest:
        raise errors.DRAW_NO_NEURONS(name=name)
    graph = Graph(name, [], [])
    at: dict[Value, int] = {}

    def add(values: Sequence[Value], title: str, op: str) -> None:
        column = []
        for number, value in enumerate(values[:_MOST]):
            shown = title if len(values) == 1 else f"{title}[{number}]"
            node = Node("neuron", op, shown, value=Numbers(f"{value.data:.3g}"), gradient=Numbers(f"{value.grad:.3g}"))
            at[value] = len(graph.nodes)
            column.append(at[value])
            graph.nodes.append(node)
        graph.columns.append(column)

    layers = [[found[number] for number in sorted(found)] for found in latest.values()]
    add(layers[0][0].inputs, "x", "")
    for number, layer in enumerate(layers, start=1):
        title = name if number == len(layers) else f"h{number}"
        add([call.result for call in layer], title, getattr(layer[0].neuron, "act", ""))
        graph.edges += [
            Edge(at[tail], at[call.result], weight=weight.data)
            for call in layer[:_MOST]
            for tail, weight in zip(call.inputs, call.neuron.w, strict=True)
            if tail in at
        ]
    graph.notes += [
        "Numbers are those of the latest call.",
        "An edge is as wide as its weight, blue above 0 and red below.",
    ]
    large = [str(len(layer)) for layer in layers if len(layer) > _MOST]
    if large:
        graph.notes.append(f"Of layers of {', '.join(large)} neurons {_MOST} are drawn.")
    return graph
