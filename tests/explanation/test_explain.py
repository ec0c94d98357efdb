"""`explain`: worked examples with known numbers, and every step against the engine's own gradients."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, nn
from glassgrad.explanation import explain
from glassgrad.ops import formulas


def f(x, y):
    return 3 * x**2 + x * y + 5 * y**2


def square(x, w, b):
    return (x * w + b) ** 2


def loss(x, w, b):
    z = x @ w + b
    h = z.tanh()
    return (h * h).sum()


RNG = np.random.default_rng(0)
ARRAYS = {"x": RNG.normal(size=(4, 3)), "w": RNG.normal(size=(3, 2)), "b": RNG.normal(size=2)}


def test_the_textbook_example():
    """f = 3x² + xy + 5y² at (2, 3): f = 63, its gradient is (6x + y, x + 10y) = (15, 32)."""
    explanation = explain(f, 2.0, 3.0)
    assert [(s.name, s.expression, float(s.value)) for s in explanation.steps] == [
        ("v1", "x ** 2", 4),
        ("v2", "3 * v1", 12),
        ("v3", "x * y", 6),
        ("v4", "v2 + v3", 18),
        ("v5", "y ** 2", 9),
        ("v6", "5 * v5", 45),
        ("f", "v4 + v6", 63),
    ]
    edges = {(s.name, e.name): (e.local, e.number, float(e.sent)) for s in explanation.steps for e in s.edges}
    assert edges["v1", "x"] == ("2 * x", 4.0, 12.0)
    assert edges["v3", "y"] == ("x", 2.0, 2.0)
    assert edges["v5", "y"] == ("2 * y", 6.0, 30.0)
    assert {name: float(g) for name, g in explanation.gradients.items()} == {"x": 15.0, "y": 32.0}
    assert [s.line for s in explanation.steps] == [f.__code__.co_firstlineno + 1] * 7
    assert explanation.steps[0].source == "return 3 * x**2 + x * y + 5 * y**2"


def test_forward_mode_of_the_textbook_example():
    steps = {step.name: step.tangents for step in explain(f, 2.0, 3.0).steps}
    assert steps["v3"] == {"x": 3.0, "y": 2.0}
    assert steps["v4"] == {"x": 15.0, "y": 2.0}
    assert steps["v6"] == {"y": 30.0}
    assert steps["f"] == {"x": 15.0, "y": 32.0}


def test_the_cost_of_both_modes_is_counted():
    """Ten edges; six on paths from x (v1 v2 v3 v4 v4 f), six on paths from y (v3 v4 f v5 v6 f)."""
    record = explain(f, 2.0, 3.0).record
    assert record.reverse_products == 10
    assert {entry.name: entry.products for entry in record.inputs} == {"x": 6, "y": 6}
    assert (record.forward_sweeps, record.forward_products) == (2, 12)


def test_a_squared_line():
    explanation = explain(square, 2.0, -3.0, 1.0)
    assert [s.expression for s in explanation.steps] == ["x * w", "v1 + b", "v2 ** 2"]
    assert [float(s.cotangent) for s in explanation.steps] == [-10.0, -10.0, 1.0]
    assert {name: float(g) for name, g in explanation.gradients.items()} == {"x": 30.0, "w": -20.0, "b": -10.0}


def test_arrays_show_shapes_and_the_users_names():
    explanation = explain(loss, **ARRAYS)
    assert [(s.name, s.op) for s in explanation.steps] == [
        ("v1", "matmul"),
        ("z", "add"),
        ("h", "tanh"),
        ("v2", "multiply"),
        ("loss", "sum"),
    ]
    leaves = {name: gg.tensor(value, requires_grad=True) for name, value in ARRAYS.items()}
    loss(**leaves).backward()
    for name, leaf in leaves.items():
        np.testing.assert_allclose(explanation.gradients[name], leaf.grad.numpy())
    locals_ = {(s.name, e.name): e.local for s in explanation.steps for e in s.edges}
    assert locals_["v1", "x"] == "g @ w.T"
    assert locals_["v1", "w"] == "x.T @ g"
    assert locals_["h", "z"] == "1 - h ** 2"
    assert explanation.record.forward_sweeps == 12 + 6 + 2
    assert explanation.steps[0].tangents is None
    first = explanation.steps[0].value
    assert f"[[{first[0, 0]:.3g}, {first[0, 1]:.3g}], [" in str(explanation)  # eight numbers are written out
    large = str(explain(lambda x: (x * 2).sum(), np.arange(12.0).reshape(4, 3)))
    assert "float64 (4, 3) mean 11 std 6.9 [0 .. 4; 18 .. 22]" in large
    assert "Forward mode of" not in str(explanation)


def test_what_arrives_at_a_step_is_the_sum_of_what_was_sent():
    explanation = explain(loss, **ARRAYS)
    received = {}
    for step in explanation.steps:
        for edge in step.edges:
            received[edge.name] = received.get(edge.name, 0) + edge.sent
    for step in explanation.steps[:-1]:
        np.testing.assert_allclose(received[step.name], step.cotangent)


def test_parameters_of_modules_have_their_names():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))

    def mean_square(model, x):
        return (model(x) ** 2).mean()

    x = gg.randn(5, 3)
    explanation = explain(mean_square, model, x)
    assert {"x", "model.0.weight", "model.0.bias", "model.2.weight", "model.2.bias"} == explanation.gradients.keys()
    (model(x) ** 2).mean().backward()
    for name, parameter in model.named_parameters():
        np.testing.assert_allclose(explanation.gradients[f"model.{name}"], parameter.grad.numpy(), rtol=1e-5)
    assert not x.requires_grad  # the caller's tensor is left alone


def test_second_derivatives_can_be_explained_too():
    def slope(x):
        x = x * 1
        (g,) = gg.autograd.grad(x**3, x, create_graph=True)
        return g

    explanation = explain(slope, 2.0)
    assert float(explanation.steps[-1].value) == 12.0  # 3x²
    assert float(explanation.gradients["x"]) == 12.0  # 6x


def test_a_variable_assigned_again_gets_a_number():
    def loop(x):
        for _ in range(3):
            x = x * 2
        return x

    assert [s.name for s in explain(loop, 1.0).steps] == ["x_2", "x_3", "x_4"]


def test_text_markdown_and_html_have_the_same_cells():
    explanation = explain(square, 2.0, -3.0, 1.0)
    text, markdown = str(explanation), explanation.markdown()
    assert repr(explanation) == text
    for cell in ("x * w", "v1 + b", "v2 ** 2", "2 * v2", "-10"):
        assert cell in text
        assert f"`{cell}`" in markdown
    assert next(line.count("|") for line in markdown.splitlines() if line.startswith("| `v1`")) == 6

    cells = []

    class Reader(HTMLParser):
        def handle_data(self, data):
            cells.append(data)

    Reader().feed(explanation._repr_html_())
    assert {"x * w", "v2 ** 2", "2 * v2", "-10", "Forward of "} <= set(cells)
    assert text.splitlines()[-1] in cells


def test_latex_is_balanced_and_has_the_numbers():
    latex = explain(f, 2.0, 3.0).latex()
    assert latex.count("{") == latex.count("}")
    assert latex.count(r"\begin{align*}") == latex.count(r"\end{align*}") == 3
    assert r"v_{1} &= x^{2} &&= 4 \\" in latex
    assert r"\frac{\partial f}{\partial x} &= 15 \\" in latex
    assert r"\left(2 \cdot x\right) = 3 \cdot 4 = 12" in latex


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("1 / (1 + exp(-x))", r"\frac{1}{1 + \exp\left(-x\right)}"),
        ("(a + b) * c", r"\left(a + b\right) \cdot c"),
        ("a - (b - c)", r"a - \left(b - c\right)"),
        ("(a * b) ** 2", r"\left(a \cdot b\right)^{2}"),
        ("sqrt(x)", r"\sqrt{x}"),
        ("abs(x)", r"\left|x\right|"),
        ("g @ w.T", r"g \, w^{\top}"),
        ("v12", "v_{12}"),
        ("hidden", r"\mathit{hidden}"),
        ("softmax(x) - 1", r"\operatorname{softmax}\left(x\right) - 1"),
        ("sum over them", r"\text{sum over them}"),
    ],
)
def test_formulas_in_latex(formula, expected):
    assert formulas.latex(formula) == expected


def test_every_primitive_with_a_formula_can_be_shown():
    """No entry of the table breaks the formatting, whatever its formula says."""
    from glassgrad.ops.core import REGISTRY

    for prim in REGISTRY.values():
        count = getattr(prim, "arity", 2)
        arguments = ["left", "right", "third", "fourth"][:count]
        text = formulas.expression(prim, arguments, {})
        assert text
        assert formulas.latex(text)
        for position in range(count):
            assert formulas.latex(formulas.derivative(prim, position, arguments, "out")) is not None
    assert formulas.expression(REGISTRY["divide"], ["left", "right"], {}) == "left / right"
    assert formulas.derivative(REGISTRY["tanh"], 0, ["left"], "out") == "1 - out ** 2"
    assert formulas.derivative(REGISTRY["power"], 0, ["x", "1"], "y") == "x ** 0"
    assert re.fullmatch(
        r"sum\(x, axis=\(0,\)\)", formulas.expression(REGISTRY["sum"], ["x"], {"axis": (0,), "keepdims": False})
    )


def test_messages():
    with pytest.raises(errors.ArgumentError, match=r"returned shape \(2,\)"):
        explain(lambda x: x * 2, np.ones(2))
    with pytest.raises(errors.ArgumentError, match="returned int"):
        explain(lambda x: 3, 1.0)
