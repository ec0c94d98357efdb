"""Pictures of a graph: well-formed, complete, without overlapping boxes."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from glassgrad import errors, scalar
from glassgrad.scalar import Value, draw
from glassgrad.scalar_tools import drawing

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
    return [tuple(text.text for text in box.findall(f"{SVG}text")) for box in root.findall(f"{SVG}g")]


def test_svg_shows_data_and_grad_of_every_value():
    boxes = texts(draw(example()).svg)
    assert len(boxes) == 8
    assert ("a", "data 2", "grad -12") in boxes
    assert ("p (*)", "data -6", "grad 2.003") in boxes or any(
        box[0] == "p (*)" and box[1] == "data -6" for box in boxes
    )
    assert any(box[0] == "c < d & e" for box in boxes)
    assert sorted(box[0] for box in boxes)[:2] == ["*", "+"]


def test_mermaid_has_every_value_and_every_edge():
    lines = draw(example()).mermaid.splitlines()
    assert lines[0] == "graph LR"
    assert sum(":::" in line for line in lines) == 8
    assert sum("-->" in line for line in lines) == 9
    assert any("c &lt; d &amp; e" in line for line in lines)


def test_boxes_do_not_overlap_and_edges_go_right():
    model = scalar.MLP(2, [4, 3, 1], act="tanh")
    graph = drawing._Graph.around(model([1.0, -1.0]), 1000)
    layout = drawing._lay_out(graph)
    for column in layout.columns:
        for upper, lower in pairwise(sorted(column, key=layout.centre.__getitem__)):
            gap = layout.centre[lower] - layout.centre[upper]
            assert gap >= (layout.height(upper) + layout.height(lower)) / 2
    for path in layout.paths:
        assert [layout.rank[p] for p in path] == list(range(layout.rank[path[0]], layout.rank[path[-1]] + 1))
    width, height = layout.size
    assert width > drawing.WIDTH
    assert all(0 < layout.centre[p] < height for p in layout.centre)


def test_a_large_graph_is_cut_near_the_result():
    total = sum(Value(float(i)) for i in range(5000))
    picture = draw(total, max_values=50)
    assert picture.mermaid.count(":::cut") >= 1
    assert 40 <= len(texts(picture.svg)) <= 50
    assert "…" in picture.svg


def test_one_value_alone_and_repeated_arguments():
    assert texts(draw(Value(1.0)).svg) == [("value", "data 1", "grad 0")]
    x = Value(3.0)
    assert draw(x * x).mermaid.count("v0 --> v1") == 2


def test_notebook_and_files(tmp_path):
    result = example()
    assert result._repr_html_() == draw(result)._repr_html_() == draw(result).svg
    for suffix, start in ((".svg", "<svg"), (".mmd", "graph LR"), (".md", "```mermaid")):
        draw(result).save(tmp_path / f"graph{suffix}")
        assert (tmp_path / f"graph{suffix}").read_text(encoding="utf-8").startswith(start)
    with pytest.raises(errors.ArgumentError, match=r"graph.png: its suffix"):
        draw(result).save(tmp_path / "graph.png")


def test_its_style_stays_inside():
    """A notebook puts the SVG into its page, so a rule for every <text> would change the page."""
    style = ET.fromstring(draw(example()).svg).find(f"{SVG}style").text  # noqa: S314 - a picture we drew
    assert all(rule.startswith(".ggvalues ") for rule in style.split("}") if rule)
