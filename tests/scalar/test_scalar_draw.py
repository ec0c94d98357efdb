"""Pictures of a graph: well-formed, complete, without overlapping boxes."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.scalar import MLP, Value, draw

SVG = "{http://www.w3.org/2000/svg}"


def example():
    a, b, c = Value(2.0, label="a"), Value(-3.0, label="b"), Value(10.0, label="c < d & e")
    product = a * b
    product.label = "p"
    result = (product + c).tanh() + a * product
    result.backward()
    return result


def texts(svg):
    root = ET.fromstring(svg)  # noqa: S314 - our own text
    boxes = [box for box in root.iter(f"{SVG}g") if box.get("class")]
    return [tuple("".join(text.itertext()) for text in box.findall(f"{SVG}text")) for box in boxes]


def test_svg_shows_data_and_grad_of_every_value():
    boxes = texts(draw(example()).svg)
    assert len(boxes) == 8
    assert ("a", "= 2", "grad -12") in boxes
    assert ("p*", "= -6", "grad 2.001") in boxes
    assert any(box[0] == "c < d & e" for box in boxes)
    assert sorted(box[0] for box in boxes)[:2] == ["*", "+"]


def test_slopes_stand_on_the_edges():
    graph = draw(example()).graph
    into = {graph.nodes[e.tail].name: e.number for e in graph.edges if graph.nodes[e.head].name == "p"}
    assert into == {"a": -3.0, "b": 2.0}


def test_values_without_a_label_have_the_callers_names():
    x, w = Value(2.0), Value(3.0)
    product = x * w
    assert [node.name for node in draw(product).graph.nodes] == ["x", "w", "product"]
    assert gg.draw(product).graph.nodes[2].formula == "*(x, w)"


def test_parameters_have_the_names_of_their_neuron_and_constants_their_number():
    net = MLP(2, [2, 1])
    points = [Value(1.0), Value(2.0)]
    loss = (net(points) - 3.0) ** 2
    nodes = draw(loss).graph.nodes
    assert {"net.layers[0].neurons[1].w[0]", "net.layers[1].neurons[0].b", "points[1]"} <= {node.name for node in nodes}
    assert [node.value.text for node in nodes if node.kind == "constant"] == ["3"]


def test_mermaid_has_every_value_and_every_edge():
    lines = draw(example()).mermaid.splitlines()
    assert lines[0] == "graph LR"
    assert sum(":::" in line for line in lines) == 8
    assert sum("-->" in line for line in lines) == 9
    assert any("c &lt; d &amp; e" in line for line in lines)


def test_a_large_graph_is_cut_near_the_result():
    total = sum(Value(float(i)) for i in range(5000))
    picture = draw(total, max_values=50)
    assert picture.mermaid.count(":::cut") >= 1
    assert 40 <= len(texts(picture.svg)) <= 50
    assert picture.graph.nodes[-1].root
    assert "…" in picture.svg


def test_one_value_alone_and_repeated_arguments():
    assert texts(draw(Value(1.0)).svg) == [("value", "= 1", "grad 0")]
    x = Value(3.0)
    assert draw(x * x).mermaid.count('v0 -->|"3"| v1') == 2


def test_notebook_and_files(tmp_path):
    result = example()
    assert result._repr_html_() == draw(result)._repr_html_() == draw(result).svg
    for suffix, start in ((".svg", "<svg"), (".mmd", "graph LR"), (".md", "```mermaid")):
        draw(result).save(tmp_path / f"graph{suffix}")
        assert (tmp_path / f"graph{suffix}").read_text(encoding="utf-8").startswith(start)
    with pytest.raises(errors.ArgumentError, match=r"graph.png: its suffix"):
        draw(result).save(tmp_path / "graph.png")
