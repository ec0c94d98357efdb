"""`draw`: the data, the places of the boxes, and the text, for each kind of object that can be drawn."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, nn
from glassgrad.base.drawing import graph as data
from glassgrad.base.drawing import layout, scene
from glassgrad.cli import run

SVG = "{http://www.w3.org/2000/svg}"


def quadratic(x, y):
    return 3 * x**2 + x * y + 5 * y**2


class Twice(nn.Module):
    """A block with a module that is called twice, and an op of its own in between."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.Tanh())

    def forward(self, x):
        return self.inner(self.inner(x) * 2.0)


def by_name(drawing):
    return {node.name: node for node in drawing.graph.nodes if node.name}


def well_formed(text):
    root = ET.fromstring(text)  # noqa: S314 - a picture we drew
    assert root.tag == f"{SVG}svg"
    return root


# --- a tensor ---------------------------------------------------------------------------------------


def test_a_tensor_shows_the_names_values_and_derivatives_of_the_users_code():
    a = gg.tensor(2.0, requires_grad=True)
    b = gg.tensor(-3.0, requires_grad=True)
    product = a * b
    loss = (product + 10).tanh() * 0.5
    drawing = gg.draw(loss)
    nodes = by_name(drawing)
    assert {"a", "b", "product", "loss"} <= set(nodes)
    assert (nodes["a"].kind, nodes["a"].value.text, nodes["product"].value.text) == ("input", "2", "-6")
    assert nodes["product"].formula == "a * b"
    assert nodes["product"].source == "product = a * b"
    assert nodes["product"].where.endswith(f"test_draw.py:{product.node.place.line}")
    assert [node.value.text for node in drawing.graph.nodes if node.kind == "constant"] == ["10", "0.5"]
    into = {
        drawing.graph.nodes[e.tail].name: e
        for e in drawing.graph.edges
        if drawing.graph.nodes[e.head].name == "product"
    }
    assert {name: (edge.local, edge.number) for name, edge in into.items()} == {"a": ("b", -3.0), "b": ("a", 2.0)}
    loss.backward()
    assert float(nodes["a"].gradient.text) == pytest.approx(float(a.grad), rel=1e-3)


def test_drawing_a_tensor_leaves_its_graph_and_its_hooks_alone():
    x = gg.tensor([1.0, 2.0], requires_grad=True)
    seen = []
    y = x * x
    y.register_hook(lambda g: seen.append(1))
    loss = y.sum()
    gg.draw(loss)
    assert (x.grad, seen) == (None, [])
    loss.backward()
    assert x.grad.tolist() == [2.0, 4.0]
    assert seen == [1]


def test_values_that_no_op_saved_are_computed_from_those_that_were():
    x = gg.tensor([1.0, 2.0], requires_grad=True)
    total = ((x + 1.0) + 2.0).sum()  # addition saves nothing
    assert [node.value.text for node in gg.draw(total).graph.nodes if node.op] == ["[2, 3]", "[4, 5]", "9"]


def test_parameters_of_a_model_in_the_callers_frame_have_their_names():
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    inputs = gg.ones(4, 2)
    loss = model(inputs).mean()
    nodes = by_name(gg.draw(loss))
    assert {"model.0.weight", "model.2.bias", "inputs", "loss"} <= set(nodes)
    assert nodes["model.0.weight"].kind == "parameter"


# --- a function, a module ---------------------------------------------------------------------------


def test_a_function_has_its_arguments_and_their_gradients():
    nodes = by_name(gg.draw(quadratic, 2.0, 3.0))
    assert (nodes["x"].gradient.text, nodes["y"].gradient.text, nodes["quadratic"].value.text) == ("15", "32", "63")
    assert nodes["quadratic"].root


def test_modules_are_boxes_and_a_second_call_is_a_box_of_its_own():
    drawing = gg.draw(Twice(), gg.ones(2, 4))
    paths = set(drawing.graph.modules)
    assert {("inner",), ("inner, call 2",), ("inner", "0"), ("inner, call 2", "1")} <= paths
    weights = [node for node in drawing.graph.nodes if node.kind == "parameter" and node.shape == (4, 4)]
    assert [node.module for node in weights] == [()], "what both calls read belongs to neither"
    assert "2 ops" in gg.draw(Twice(), gg.ones(2, 4), view="layers").svg


def test_drawing_leaves_a_module_as_it_was():
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))
    gg.manual_seed(3)
    first = gg.rand(1).item()
    gg.manual_seed(3)
    before = {name: value.numpy().copy() for name, value in model.state_dict().items()}
    gg.draw(model, gg.randn(4, 3, generator=gg.Generator().manual_seed(1)))
    assert all(np.array_equal(before[name], value.numpy()) for name, value in model.state_dict().items())
    assert gg.rand(1).item() == first
    assert all(module._hooks is None for module in model.modules())


def test_a_step_that_is_drawn_with_inputs_is_undone():
    weight = gg.tensor([1.0, 2.0], requires_grad=True)
    optimizer = gg.optim.SGD([weight], lr=0.1, momentum=0.9)

    def step(x):
        loss = (weight * x).sum()
        loss.backward()
        optimizer.step()
        return loss

    drawing = gg.draw(step, gg.ones(2))
    assert drawing.graph.notes == ["No gradients: a backward() inside it has freed the graph."]
    assert (weight.tolist(), weight.grad) == ([1.0, 2.0], None)
    step(gg.ones(2))
    assert np.allclose(weight.tolist(), [0.9, 1.9]), "no momentum is left of the step that was drawn"


def test_the_variable_of_a_drawing_is_not_that_of_the_last_op():
    picture = gg.draw(nn.Linear(2, 2), gg.ones(1, 2))
    assert [node.name for node in picture.graph.nodes if node.root] == ["result"]


def test_depth_and_opened_decide_what_is_open():
    model = nn.Sequential(nn.Sequential(nn.Linear(2, 2), nn.Tanh()), nn.Linear(2, 1))
    x = gg.ones(1, 2)
    assert gg.draw(model, x, depth=0).opened == frozenset()
    assert gg.draw(model, x, depth=0, opened=["0.1"]).opened == {("0",), ("0", "1")}
    assert gg.draw(model, x, depth=1).opened == {("0",), ("1",)}
    assert len(gg.draw(model, x).opened) == 4


def test_neurons_carry_the_numbers_of_the_first_example():
    gg.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    x = gg.tensor([[1.0, -1.0], [5.0, 5.0]])
    drawing = gg.draw(lambda x: model(x).sum(), x, view="neurons")
    graph = drawing.graph
    assert [len(column) for column in graph.columns] == [2, 3, 1]
    hidden = model[1](model[0](x))[0]
    assert [float(graph.nodes[at].value.text) for at in graph.columns[1]] == pytest.approx(hidden.tolist(), rel=0.01)
    weights = np.array([edge.weight for edge in graph.edges if edge.head in graph.columns[1]]).reshape(3, 2)
    assert np.allclose(weights, model[0].weight.detach().numpy())
    assert len(well_formed(drawing.svg).findall(f".//{SVG}circle")) == 6


def test_sweeps_put_forward_mode_beside_reverse_mode():
    graph = gg.draw(quadratic, 2.0, 3.0, view="sweeps").graph
    reverse, from_x, from_y = graph.sweeps
    assert "10 products" in reverse.cost
    assert "6 products" in from_x.cost
    last = next(at for at, node in enumerate(graph.nodes) if node.root)
    assert (from_x.values[last], from_y.values[last]) == ("d = 15", "d = 32")
    names = {graph.nodes[at].name: text for at, text in reverse.values.items()}
    assert (names["x"], names["y"]) == ("d quadratic = 15", "d quadratic = 32")
    x = next(at for at, node in enumerate(graph.nodes) if node.name == "x")
    assert x not in from_y.values


def test_a_compiled_step_is_drawn_by_the_users_lines():
    weight = gg.tensor([1.0, 2.0], requires_grad=True)
    optimizer = gg.optim.SGD([weight], lr=0.1)

    @gg.compile(backend="numpy")
    def step(x):
        optimizer.zero_grad()
        loss = (weight * x).sum()
        loss.backward()
        optimizer.step()
        return loss

    with pytest.raises(errors.CompileError, match="before the first call"):
        gg.draw(step)
    step(gg.ones(2))
    graph = gg.draw(step).graph
    titles = {path[0] for path in graph.modules}
    assert {"loss = (weight * x).sum()", "optimizer.step()"} <= titles
    assert "weight" in {node.name for node in graph.nodes if node.kind == "update"}
    well_formed(gg.draw(step, view="layers").svg)


# --- where the boxes stand ----------------------------------------------------------------------------


def chain(count):
    return [(at, at + 1) for at in range(count - 1)] + [(at, at + 3) for at in range(0, count - 3, 3)]


@pytest.mark.parametrize(
    "edges", [[(0, 1)], [(0, 2), (1, 2), (0, 3), (2, 3)], chain(30), [(0, at) for at in range(1, 9)]]
)
def test_boxes_do_not_overlap_and_edges_go_right(edges):
    count = max(max(edge) for edge in edges) + 1
    sizes = [(60.0 + 7 * (at % 5), 20.0 + 30 * (at % 3)) for at in range(count)]
    found = layout.arrange(sizes, edges)
    for (one, (w1, h1)), (other, (w2, h2)) in combinations(zip(found.corners, sizes, strict=True), 2):
        apart_x = one[0] + w1 <= other[0] + 1e-6 or other[0] + w2 <= one[0] + 1e-6
        apart_y = one[1] + h1 <= other[1] + 1e-6 or other[1] + h2 <= one[1] + 1e-6
        assert apart_x or apart_y
    for (tail, head), route in zip(edges, found.routes, strict=True):
        xs = [x for x, _ in route]
        assert xs == sorted(xs)
        assert xs[0] == pytest.approx(found.corners[tail][0] + sizes[tail][0])
        assert xs[-1] == pytest.approx(found.corners[head][0])
    assert all(0 <= y <= found.height and 0 <= x <= found.width for x, y in found.corners)


def test_a_graph_without_edges_is_a_column():
    found = layout.arrange([(10.0, 10.0)] * 3, [])
    assert len({y for _, y in found.corners}) == 3


def test_a_leaf_that_is_read_far_apart_is_drawn_again():
    def f(x, w):
        for _ in range(12):
            x = (x * w).tanh()
        return x

    drawn = scene.scene(gg.draw(f, 1.0, 2.0).graph)
    assert sum(thing.box.lines[0] == "w" for thing in drawn.things) > 2


# --- text ---------------------------------------------------------------------------------------------


def test_what_users_write_is_escaped():
    class Evil(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.add_module("<script>alert(1)</script>", nn.Linear(2, 2))
            self.register_parameter('"><img src=x onerror=alert(2)>', nn.Parameter(gg.ones(2)))

        def forward(self, x):
            return next(self.children())(x) * next(p for p in self.parameters() if p.ndim == 1)

    drawing = gg.draw(Evil(), gg.ones(1, 2))
    for text in (drawing.svg, drawing.html, drawing._repr_html_()):
        assert "<script>alert" not in text
        assert "<img" not in text
    assert "&lt;script&gt;alert(1)" in drawing.svg
    well_formed(drawing.svg)


def test_a_page_asks_for_nothing_from_outside():
    html = gg.draw(Twice(), gg.ones(1, 4)).html
    outside = re.findall(r"""(?:src|href)\s*=|url\(|@import|https?://(?!www\.w3\.org/2000/svg)""", html)
    assert outside == []
    assert "default-src 'none'" in html
    assert 'id="levels"' in html
    levels = json.loads(re.search(r'id="levels">(.*?)</script>', html)[1])["levels"]
    assert {"[]", '["inner"]', '["inner", "0"]'} <= set(levels)


def test_the_style_stays_inside_and_knows_the_dark():
    style = well_formed(gg.draw(quadratic, 1.0, 2.0).svg).find(f"{SVG}style").text
    assert "prefers-color-scheme:dark" in style
    selectors = re.findall(r"[^{};]+(?=\{)", style)
    assert all(one.startswith(".ggdraw") for selector in selectors for one in selector.split(",") if "@" not in one)


def test_files_notebooks_and_json(tmp_path):
    drawing = gg.draw(quadratic, 2.0, 3.0)
    for suffix, start in ((".svg", "<svg"), (".html", "<!DOCTYPE html>"), (".json", "{")):
        drawing.save(tmp_path / f"graph{suffix}")
        assert (tmp_path / f"graph{suffix}").read_text(encoding="utf-8").startswith(start)
    with pytest.raises(errors.ArgumentError, match=r"graph.png: its suffix"):
        drawing.save(tmp_path / "graph.png")
    assert json.loads(drawing.json)["nodes"][0]["name"] == "x"
    assert drawing._repr_html_() == drawing._repr_svg_() == drawing.svg
    assert gg.draw(Twice(), gg.ones(1, 4))._repr_html_().startswith('<iframe sandbox="allow-scripts"')


def test_numbers_are_short():
    assert data.numbers_of(np.float32(0.1)).short == "0.1"
    assert data.numbers_of(np.arange(6)).short == "0 to 5"
    found = data.numbers_of(np.array([3.0, 4.0, np.nan, 0.0, 0.0]))
    assert (found.norm, found.nonfinite, found.short) == (5.0, 1, "norm 5, 1 NaN or inf")
    assert data.numbers_of(np.full(9, np.nan)).nonfinite == 9
    assert data.numbers_of(None) is None


# --- what cannot be drawn -----------------------------------------------------------------------------


def freed():
    x = gg.tensor([1.0], requires_grad=True)
    y = (x * x).sum()
    y.backward()
    return y


def long(x):
    for _ in range(400):
        x = x.sin()
    return x


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gg.draw(gg.tensor(1.0)), "has no graph"),
        (lambda: gg.draw(freed()), r"freed by backward\(\)"),
        (lambda: gg.draw(3), "given int"),
        (lambda: gg.draw(lambda x: 1, 2.0), "returned int"),
        (lambda: gg.draw(quadratic, 1.0, 2.0, view="opz"), "expected one of: ops"),
        (lambda: gg.draw(quadratic, 1.0, 2.0, view="neurons"), "needs linear layers"),
        (lambda: gg.draw(lambda x: x * 2, gg.ones(2), view="sweeps"), "one number"),
        (lambda: gg.draw(gg.ones(1, requires_grad=True) * 2, view="sweeps"), "which a tensor does not name"),
        (lambda: gg.draw(Twice(), gg.ones(1, 4), opened=["iner"]), "nearest: inner"),
        (lambda: gg.draw(long, 1.0, max_nodes=300), r"401 boxes to draw, more than max_nodes=300.*\n.*max_nodes=401"),
    ],
)
def test_errors_say_what_to_do(call, message):
    with pytest.raises(errors.GlassgradError, match=message) as found:
        call()
    assert str(found.value).startswith("draw: ")


@pytest.mark.slow
class Unbound:
    """As a web framework's request is outside of one."""

    def __getattr__(self, name):
        raise RuntimeError(f"unbound: {name}")


class Shy:
    @property
    def __class__(self):
        raise RuntimeError("unbound")


def test_proxies_around_the_drawing_are_left_alone():
    request, session, x = Unbound(), Shy(), gg.tensor(2.0, requires_grad=True)

    def twice(x):
        return x * 2 if request is not session else x

    assert len(gg.draw(x * 3).graph.nodes) == 3
    assert len(gg.draw(twice, 2.0).graph.nodes) == 3


def test_modules_of_pytorch_around_the_drawing_are_left_alone():
    class Theirs:
        """What a module and an optimizer of PyTorch look like."""

        register_forward_hook = add_param_group = named_buffers = named_modules = __call__ = lambda self, *_: []

        def named_parameters(self):
            return [("weight", np.ones(2))]

    Theirs.__module__ = "torch.nn.modules.module"
    theirs, x = Theirs(), gg.tensor(2.0, requires_grad=True)
    assert len(gg.draw(x * 3).graph.nodes) == 3
    assert len(gg.draw(lambda x: x * 2 if theirs else x, 2.0).graph.nodes) == 3
    with pytest.raises(errors.KindError, match=r"given torch\.nn\.modules\.module\..*Theirs, expected"):
        gg.draw(theirs, 2.0)


NUMBERS = {
    "infinite": lambda x: (x * np.inf) * 2,
    "complex": lambda x: (x * (1 + 2j)).abs(),
    "near the largest": lambda x: (x * np.full(8, 1e300)).sum() * 1e-300,
    "several results": lambda x: gg.linalg.svd(x * np.eye(3) + 1)[1].sum(),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_any_kind_are_drawn_and_said_in_json(name):
    with np.errstate(invalid="ignore"):
        drawing = gg.draw(NUMBERS[name], 3.0)
        well_formed(drawing.svg)
        json.loads(drawing.json, parse_constant=pytest.fail)
        if name != "several results":
            assert NUMBERS[name].__name__ in str(gg.explain(NUMBERS[name], 3.0))


def test_names_that_xml_cannot_say_are_drawn():
    model = nn.Sequential()
    model.add_module("a\x01b", nn.Linear(2, 1))
    assert "a\ufffdb" in "".join(well_formed(gg.draw(model, np.ones((1, 2))).svg).itertext())


def test_mermaid_reads_quotes_and_signs_as_they_are():
    weights = {'it"s #1': gg.tensor(2.0, requires_grad=True)}
    assert "v0[\"weights['it#quot;s #35;1']<br/>" in gg.draw(weights['it"s #1'] * 2).mermaid


def test_two_thousand_boxes_do_not_hang():
    def f(x, w):
        total = x
        for _ in range(500):
            x = (x * w).tanh() + 0.1
            total = total + x
        return total

    drawing = gg.draw(f, 0.5, 1.1, max_nodes=10_000)
    assert len(drawing.graph.nodes) > 2000
    well_formed(drawing.svg)


def test_the_command_writes_svg_and_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "line.py"
    file.write_text("def square(x, w, b):\n    return (x * w + b) ** 2\n", encoding="utf-8")
    command = ["explain", f"{file}:square", "x=2.0", "w=-3.0", "b=1.0", "--format"]
    assert run([*command, "svg"]) == 0
    assert "= -5" in "".join(well_formed(capsys.readouterr().out).itertext())
    assert run([*command, "html"]) == 0
    assert capsys.readouterr().out.startswith("<!doctype html>")
