"""The place of an op's call: exact lines and names, at negligible cost."""

from __future__ import annotations

import sys
import time
import timeit
from types import SimpleNamespace

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.base import provenance


def test_a_node_knows_file_line_source_variable_and_operands() -> None:
    a = gg.ones(2, requires_grad=True)
    b = gg.ones(2)
    product = a * b
    place = product.grad_fn.place
    assert place.file == __file__
    assert place.source == "product = a * b"
    assert place.variable == "product"
    assert place.operands == ("a", "b")
    assert repr(product.grad_fn).endswith(f"test_provenance.py:{place.line}: product = a * b>")


def test_the_right_op_of_several_on_one_line() -> None:
    a = gg.ones(2, requires_grad=True)
    y = (a + 1) * (a - 2)
    left, right = (parent.place.operands for parent in y.grad_fn.parents)
    assert (left, right) == (("a", "1"), ("a", "2"))


def test_layers_and_functions_point_at_the_users_line() -> None:
    layer = gg.nn.Linear(2, 2)
    hidden = layer(gg.ones(1, 2))
    assert hidden.grad_fn.place.source == "hidden = layer(gg.ones(1, 2))"
    loss = gg.nn.functional.cross_entropy(hidden, gg.tensor([0]))
    assert loss.grad_fn.place.variable == "loss"


def test_shape_errors_name_shapes_variables_and_line() -> None:
    weights, inputs = gg.ones(3, 4), gg.ones(5)
    with pytest.raises(errors.ShapeError) as caught:
        weights @ inputs
    text = str(caught.value)
    assert "test_provenance.py" in text
    assert "weights has shape (3, 4), inputs has shape (5,)" in text
    assert "inner sizes differ: 4 and 5" in text
    with pytest.raises(errors.ShapeError, match=r"dimension -1 has sizes 4 and 5"):
        weights + inputs


def test_broadcast_hint() -> None:
    scores, means = gg.ones(3, 4), gg.ones(3)
    with pytest.raises(errors.ShapeError, match=r"unsqueeze\(-1\)"):
        scores - means


def test_repr_of_tensors() -> None:
    assert repr(gg.tensor([1.0, 2.0])) == "tensor([1., 2.])"
    assert repr(gg.tensor([1.0], requires_grad=True)) == "tensor([1.], requires_grad=True)"
    assert "dtype=float64" in repr(gg.tensor(np.zeros(2)))
    assert "grad_fn=<exp at " in repr(gg.ones(1, requires_grad=True).exp())


def test_recording_a_place_costs_less_than_twenty_empty_calls() -> None:
    # The bar is 0.4 microseconds, twenty calls of an empty function on the machine where it was set; a ratio
    # holds on a busy or slower one as well.
    def record() -> None:
        frame = provenance.user_frame(0)
        assert frame.f_code is not None
        assert frame.f_lasti >= 0

    def empty() -> None:
        pass

    def seconds(function) -> float:
        return min(timeit.repeat(function, timer=time.thread_time, number=5_000, repeat=20))

    assert seconds(record) < 20 * seconds(empty)


def test_a_cell_of_a_notebook_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    file = "/ipykernel_1/2.py"
    names = {file: ("Cell", "In[7]")}
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=names.get))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    scope = {"gg": gg}
    with pytest.raises(gg.errors.ShapeError, match=r"^matmul at cell In\[7\]:2: shapes"):
        exec(compile("a = gg.ones(2, 3)\na @ a", file, "exec"), scope)  # noqa: S102 - a cell
    assert provenance.shorten("other.py") == "other.py"
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))  # imported by a script
    assert provenance.shorten(file) == file


def test_a_place_is_quoted_where_its_source_can_be_read() -> None:
    place = provenance.Place("a.py", 3, "x + 1", "f", None, ())
    assert place.quoted() == "a.py:3 (x + 1)"
    assert place._replace(source="").quoted() == "a.py:3"
