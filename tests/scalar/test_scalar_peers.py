"""The scalar engine's errors, user-defined ops, and its functions under gradcheck, explain and draw."""

from __future__ import annotations

import math
import random
from xml.etree import ElementTree as ET

import pytest

import glassgrad as gg
from glassgrad import errors, scalar
from glassgrad.scalar import MLP, Value, draw
from glassgrad.verify import gradcheck


def cubed(a, b):
    product = a * b
    return (product + b**3).tanh()


@pytest.mark.parametrize(
    ("compute", "like", "words"),
    [
        (lambda x: x**-1, lambda: 0.0**-1, r"x \*\* -1\.0, where x = 0\.0"),
        (lambda x: Value(2.0, label="w") / x, lambda: 2.0 / 0.0, r"w / x, where w = 2\.0 and x = 0\.0"),
        (lambda x: x.log(), lambda: math.log(0.0), r"log\(x\), where x = 0\.0.*above 0 only"),
        (lambda x: (x + 1000).exp(), lambda: math.exp(1000.0), r"exp\(1000\.0\).*larger than any float"),
        (lambda x: (x - 8) ** 0.5, lambda: math.pow(-8.0, 0.5), r"\(-8\.0\) \*\* 0\.5"),
        (lambda x: (x + 1e200) ** 2, lambda: (1e200) ** 2, r"1e\+200 \*\* 2\.0.*larger"),
    ],
)
def test_errors_are_of_the_kind_that_floats_raise_and_name_op_value_and_line(compute, like, words):
    x = Value(0.0)
    with pytest.raises((ArithmeticError, ValueError)) as expected:
        like()
    with pytest.raises(expected.type, match=words) as raised:
        compute(x)
    assert isinstance(raised.value, errors.GlassgradError)
    assert f"{__file__}:{compute.__code__.co_firstlineno}:" in str(raised.value)


def square(a):
    out = Value(a.data**2, (a,), "square")

    def _backward():
        a.grad += 2 * a.data * out.grad

    out._backward = _backward
    return out


def test_an_op_may_have_a_backward_function():
    a = Value(3.0)
    result = square(a) * a + square(square(a))
    result.backward()
    assert a.grad == 3 * 9 + 4 * 27
    assert gradcheck(lambda a: square(a) * a, a).kind == "right"
    with pytest.raises(errors.ArgumentError, match=r"op 'odd' and 1 children, which has neither slopes"):
        (Value(1.0, (a,), "odd") * 2).backward()
    with pytest.raises(errors.ArgumentError, match="1 children and 2 slopes"):
        Value(1.0, (a,), "odd", slopes=(1.0, 2.0))


def test_gradcheck_of_functions_and_networks_of_values():
    assert gradcheck(cubed, Value(0.3), Value(0.5)).kind == "right"
    assert gradcheck(lambda x: x.relu(), Value(0.0)).kind == "kink here"
    found = gradcheck(lambda a: Value(a.data**2, (a,), "sq", slopes=(3 * a.data,)), Value(2.0))
    assert (found.kind, found.worst.analytic) == ("wrong", 6.0)
    net = MLP(2, [3, 2], act="tanh")
    net.parameters()[0].grad = 5.0
    found = gradcheck(net, [Value(1.0), Value(-2.0)])
    assert found.kind == "right"
    assert {"x[1]", "layers[1].neurons[0].w[2]"} <= {row.name for row in found.rows}
    assert net.parameters()[0].grad == 5.0


def test_explain_shows_names_lines_and_local_derivatives():
    a = Value(0.3)
    found = gg.explain(cubed, a, Value(0.5))
    rows = [(step.name, step.expression, step.source) for step in found.steps]
    assert rows[0] == ("product", "a * b", "product = a * b")
    assert [row[:2] for row in rows[1:]] == [("v1", "b ** 3"), ("v2", "product + v1"), ("cubed", "tanh(v2)")]
    x, y = gg.tensor(0.3, requires_grad=True), gg.tensor(0.5, requires_grad=True)
    cubed(x, y).backward()
    assert [float(g) for g in found.gradients.values()] == pytest.approx([x.grad.item(), y.grad.item()], rel=1e-6)
    assert a.grad == 0.0  # the caller's stay as they are
    assert "1 - cubed ** 2" in str(found)
    assert str(gg.explain(square, Value(1.5))).count("square(a)") == 1
    with pytest.raises(errors.KindError, match="expected one Value"):
        gg.explain(lambda a: [a, a], a)


def test_a_network_as_layers_as_neurons_and_as_ops():
    random.seed(1)
    net, x = MLP(2, [3, 1], act="tanh"), [Value(1.0), Value(-2.0)]
    result = net(x)
    result.backward()
    ops = draw(result).graph
    assert ops.modules[("net.layers[0]", "neurons[2]")] == "Neuron"
    made = [node for node in ops.nodes if node.module == ("net.layers[0]", "neurons[1]")]
    assert sorted(node.op for node in made if node.op) == ["+", "@", "tanh"]
    assert [node.name.rpartition(".")[2] for node in made if not node.op] == ["w[0]", "w[1]", "b"]
    shut = "".join(ET.fromstring(draw(result, view="layers").svg).itertext())  # noqa: S314 - our own text
    assert "net.layers[1]" in shut
    assert "neurons[0]" not in shut
    graph = gg.draw(net, x, view="neurons").graph
    assert [len(column) for column in graph.columns] == [2, 3, 1]
    weights = [edge.weight for edge in graph.edges]
    assert weights == [p.data for layer in net.layers for neuron in layer.neurons for p in neuron.w]
    hidden = [float(graph.nodes[at].value.text) for at in graph.columns[1]]
    assert hidden == pytest.approx([neuron(x).data for neuron in net.layers[0].neurons], rel=1e-2)
    alone = gg.draw(scalar.Neuron(2), x, view="neurons").graph
    assert [len(column) for column in alone.columns] == [2, 1]
    with pytest.raises(errors.ArgumentError, match="needs linear layers"):
        draw(x[0] * x[1], view="neurons")
    with pytest.raises(errors.ArgumentError, match="view='circles'"):
        draw(result, view="circles")


def test_forward_sweeps_stand_beside_the_reverse_one():
    a, b = Value(0.3), Value(0.5)
    graph = gg.draw(cubed, a, b, view="sweeps").graph
    back, by_a, by_b = graph.sweeps
    assert (back.backward, by_a.backward) == (True, False)
    cubed(a, b).backward()
    root = len(graph.nodes) - 1
    assert by_a.values[root] == f"d = {a.grad:.4g}"
    assert by_b.values[root] == f"d = {b.grad:.4g}"
    assert {f"d {graph.name} = {v.grad:.4g}" for v in (a, b)} <= set(back.values.values())


def test_missing_names_and_own_ops_under_compile():
    for name, advice in {"sqrt": r"x \*\* 0\.5", "item": r"x\.data", "tahn": "Nearest: tanh"}.items():
        with pytest.raises(errors.MissingError, match=advice):
            getattr(Value(2.0), name)
    with pytest.raises(errors.MissingError, match=r"scalar\.Value, one number"):
        scalar.Tensor  # noqa: B018 - it raises
    expression = Value(2.0, (leaf := Value(1.0),), "mine", slopes=(2.0,))
    with pytest.raises(errors.KindError, match="no rule for your own op 'mine'"):
        scalar.compile(expression, [leaf])([1.0])
