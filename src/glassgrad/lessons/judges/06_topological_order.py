"""Judge a topological order, and gradients that are sent along it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from glassgrad.lessons.exercise import Answer, Names, Steps, Verdict
from glassgrad.lessons.hints import judged

STEPS = Steps()


def _diamond(node: Answer) -> list[Any]:
    """Return x, b of x, c of b, d of b and c, with slopes that distinguish all paths."""
    x = node("x")
    b = node("b", [x], [3.0])
    c = node("c", [b], [2.0])
    return [x, b, c, node("d", [b, c], [1.0, 5.0])]


def _square(node: Answer) -> list[Any]:
    """Return a, and c = a * a: the same node twice."""
    a = node("a")
    return [a, node("c", [a, a], [2.0, 2.0])]


def _fault(found: Any, nodes: list[Any]) -> Verdict:
    """Return what is wrong with an order of nodes, the last of which is the root."""
    if not isinstance(found, list):
        return f"order(root) is of type {type(found).__name__}, expected a list of nodes: is a `return` missing?"
    names = " ".join(map(str, found))
    missing = [str(node) for node in nodes if node not in found]
    if missing:
        return f"{names or 'an empty list'} lacks {', '.join(missing)}: the root and all that it was made from."
    if len(found) > len(nodes):
        return f"{names} has a node more than once. Remember which ones you have seen."
    if found[0] is nodes[0]:
        return f"{names} begins with what is oldest; the root comes first, and then what it was made from."
    for node in found:
        for arg in node.args:
            if found.index(arg) < found.index(node):
                return f"{names}: {arg} stands before {node}, which was made from it and has something to send to it."
    return None


@STEPS("a diamond", section="Sending at once is wrong")
def _order(order: Answer, given: Names) -> Iterator[Verdict]:
    for nodes in (_diamond(given["Node"]), _square(given["Node"])):
        yield _fault(order(nodes[-1]), nodes)
    node = given["Node"]
    x = node("x")  # a graph whose longer path is found after the shorter one
    b = node("b", [x], [1.0])
    c = node("c", [b], [1.0])
    e = node("e", [x, c, b], [1.0, 1.0, 1.0])
    yield _fault(order(e), [x, b, c, e])


@STEPS("a deep graph", section="Three ways to an order")
def _deep(order: Answer, given: Names) -> Verdict:
    nodes = [given["Node"]("0")]
    for number in range(1, 5000):
        nodes.append(given["Node"](str(number), [nodes[-1]], [1.0]))
    try:
        found = order(nodes[-1])
    except RecursionError:
        return "A chain of 5000 nodes is too deep for recursion. Keep a list of the nodes that you have yet to visit."
    return None if found == nodes[::-1] else "A chain of 5000 nodes comes out in another order than its own."


@STEPS("many paths", section="Three ways to an order")
def _paths(order: Answer, given: Names) -> Verdict:
    nodes = [given["Node"]("0")]
    for number in range(1, 60):  # 2**59 paths
        nodes.append(given["Node"](str(number), [nodes[-1], nodes[-1]], [1.0, 1.0]))
    found = order(nodes[-1])
    return None if found == nodes[::-1] else "60 nodes, each used twice by the next, come out in another order."


@STEPS("gradients", section="Sending at once is wrong")
def _gradients(gradients: Answer, given: Names) -> Iterator[Verdict]:
    for nodes, expected, known in (
        (
            _diamond(given["Node"]),
            [33.0, 11.0, 5.0, 1.0],
            (
                ([36.0, 11.0, 5.0, 1.0], "b has sent its gradient on before it was complete, and then once more."),
                ([3.0, 11.0, 5.0, 1.0], "b has sent its gradient on before it was complete: sort first, then send."),
                ([3.0, 1.0, 5.0, 1.0], "b hears from c and from d: what arrives is added."),
                ([30.0, 10.0, 5.0, 1.0], "b hears from c and from d: what arrives is added."),
                ([3.0, 3.0, 5.0, 1.0], "What is sent is the slope times the sender's own gradient."),
                ([0.0, 0.0, 0.0, 0.0], "Somebody has to begin: the slope of the root for itself is 1."),
            ),
        ),
        (_square(given["Node"]), [4.0, 1.0], (([2.0, 1.0], "a is used twice in a * a: both uses send, and add up."),)),
    ):
        found = gradients(nodes[-1])
        if not isinstance(found, dict) or any(node not in found for node in nodes):
            yield "gradients(root) has to be a dictionary with an entry for every node."
        names = ", ".join(map(str, nodes))
        yield judged([found[node] for node in nodes], expected, *known, what=f"the slopes of {names}")
