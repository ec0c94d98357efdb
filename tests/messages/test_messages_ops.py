"""Messages about ops, each from a typical situation: the given and the expected value, the place, the next step."""

from __future__ import annotations

import pkgutil
import re
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors


def message(kind: type[Exception], action: Callable[[], Any]) -> str:
    with pytest.raises(kind) as caught:
        action()
    assert isinstance(caught.value, errors.GlassgradError)
    text = str(caught.value)
    assert "test_messages_ops.py:" in text
    return text


def test_no_name_stands_for_two_messages() -> None:
    areas = [import_module(f"glassgrad.errors.{area.name}") for area in pkgutil.iter_modules(errors.__path__)]
    owned = Counter(name for area in areas for name, one in vars(area).items() if isinstance(one, errors.kinds.Message))
    assert len(owned) > 100
    assert [name for name, times in owned.items() if times > 1] == []


def test_shapes_that_do_not_broadcast() -> None:
    rows, weights = gg.ones(4, 3), gg.ones(4)
    text = message(ValueError, lambda: rows * weights)
    assert "rows has shape (4, 3), weights has shape (4,)" in text
    assert "dimension -1 has sizes 3 and 4; expected equal, or 1" in text
    assert "(4, 1) would fit: .unsqueeze(-1)" in text


def test_matrices_that_do_not_fit() -> None:
    x, w = gg.ones(5, 3), gg.ones(4, 3)
    text = message(ValueError, lambda: x @ w)
    assert "x has shape (5, 3), w has shape (4, 3)" in text
    assert "The inner sizes differ: 3 and 4." in text
    assert "transposed: .mT" in text


def test_pieces_that_do_not_join() -> None:
    left, right = gg.ones(2, 3), gg.ones(2, 2)
    text = message(ValueError, lambda: gg.cat([left, right]))
    assert "(2, 3)" in text
    assert "(2, 2)" in text


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (np.asarray, "converting to a NumPy array would drop the gradient"),
        (lambda loss: loss.numpy(), r"\.numpy\(\) would drop the gradient"),
        (lambda loss: np.array([1.0, 2.0]) + np.asarray(loss), "would drop the gradient"),
    ],
)
def test_asarray_on_a_tracked_tensor(call: Callable[[Any], Any], said: str) -> None:
    w = gg.ones(2, requires_grad=True)
    loss = w * 2
    text = message(TypeError, lambda: call(loss))
    assert re.search(said, text)
    assert "'loss' requires one" in text
    assert "loss.detach().numpy() if you need only the values" in text


def test_ndarray_and_tensor_work_together() -> None:
    w = gg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    table = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    (table + w).sum().backward()
    assert w.grad.tolist() == [2.0, 2.0, 2.0]
    row = gg.tensor(1)
    assert table[row].tolist() == [4.0, 5.0, 6.0]
    assert (table @ w).requires_grad


def test_a_tensor_of_numbers_is_no_index() -> None:
    values, weights = np.arange(3.0), gg.ones(2, requires_grad=True)
    with pytest.raises((IndexError, TypeError)):
        values[weights]
    text = message(IndexError, lambda: gg.from_numpy(values)[weights])
    assert "indices must be integers or booleans, given an array of dtype float32" in text
    assert ".long()" in text


def test_a_saved_value_that_was_overwritten_names_both_places() -> None:
    x = gg.ones(2, requires_grad=True)
    h = gg.tanh(x)
    h += 1
    text = message(RuntimeError, lambda: h.sum().backward())
    first, second = re.findall(r"test_messages_ops\.py:(\d+)", text)
    assert int(second) == int(first) + 1
    assert "'h' was saved by tanh at" in text
    assert "overwritten in place at" in text
    assert "write it out of place there (h = h + ...)" in text


def test_an_operand_that_was_overwritten_is_named() -> None:
    scale, x = gg.ones(2), gg.ones(2, requires_grad=True)
    y = x * scale
    scale[0] = 5.0
    text = message(RuntimeError, lambda: y.sum().backward())
    assert "'scale' was saved by multiply at" in text


def test_a_parameter_changed_in_place() -> None:
    w = gg.ones(2, requires_grad=True)

    def update() -> None:
        w.sub_(0.1)

    text = message(RuntimeError, update)
    assert "'w' is a leaf that requires a gradient" in text
    assert "with no_grad():" in text
    assert "w.clone()" in text

    def assign() -> None:
        w[0] = 0.0

    assert "'w' is a leaf" in message(RuntimeError, assign)

    def view() -> None:
        w[1:].zero_()

    assert "a view of a leaf that requires a gradient" in message(RuntimeError, view)


def test_in_place_results_that_do_not_fit() -> None:
    total = gg.zeros(2)
    text = message(ValueError, lambda: total.add_(gg.ones(3, 2)))
    assert "the result has shape (3, 2), but the tensor it overwrites has shape (2,)" in text
    assert "write y = x.add(...)" in text
    count = gg.tensor([1, 2])
    text = message(TypeError, lambda: count.div_(2))
    assert "a result of dtype float64 does not fit into a tensor of dtype int64" in text
    assert ".float()" in text


def test_a_gradient_written_into_integers() -> None:
    counts, w = gg.zeros(2, dtype=gg.int64), gg.ones(2, requires_grad=True)

    def write() -> None:
        counts[:] = w

    text = message(RuntimeError, write)
    assert "a tensor of dtype int64, which cannot keep one" in text
    assert ".detach()" in text


def test_memory_that_cannot_be_written() -> None:
    wide = gg.ones(1, 2).expand(3, 2)
    text = message(RuntimeError, lambda: wide.mul_(2))
    assert "several elements of an expanded tensor are one number in memory" in text
    assert ".clone()" in text
    frozen = np.ones(2)
    frozen.flags.writeable = False
    assert "it is read-only" in message(RuntimeError, lambda: gg.from_numpy(frozen).zero_())


def test_an_unknown_keyword() -> None:
    x = gg.ones(2, 2)
    text = message(TypeError, lambda: x.mean(dims=0, keepdimension=True))
    assert "mean() got an unexpected keyword 'keepdimension'" in text
    assert "did you mean 'keepdim'?" in text


def test_out_arguments() -> None:
    x, buffer = gg.ones(2, requires_grad=True), gg.zeros(2)
    for action in (lambda: gg.exp(x, out=buffer), lambda: np.exp(x, out=buffer.numpy())):
        text = message(TypeError, action)
        assert "(out=...) is not possible" in text
        assert "copy_(y)" in text


def test_numpy_functions_without_a_counterpart() -> None:
    x = gg.ones(2, requires_grad=True)
    text = message(TypeError, lambda: np.unwrap(x))
    assert "np.unwrap has no differentiable counterpart here" in text
    text = message(TypeError, lambda: np.add.reduceat(x, [0]))
    assert "np.add.reduceat on a tensor that requires a gradient" in text
    text = message(TypeError, lambda: np.std(x, keepdims=True, where=np.array([True, False])))
    assert "where" in text
    assert "keepdims" not in text


def test_sums_over_a_dimension_that_is_not_there() -> None:
    x = gg.ones(2, 3)
    text = message(IndexError, lambda: x.sum(dim=2))
    assert "dim 2 is out of range for 2 dimensions" in text
    assert "between -2 and 1" in text


def test_an_index_out_of_range() -> None:
    table = gg.ones(5, 2)
    text = message(IndexError, lambda: table[gg.tensor([1, 7])])
    assert "table has shape (5, 2)" in text
    assert "index 7 is out of bounds" in text


def test_needs_of_numbers_inside_vmap() -> None:
    text = message(errors.GlassgradError, lambda: gg.func.vmap(lambda x: x[x > 0])(gg.ones(2, 3)))
    assert "vmap" in text or "transformation" in text


def test_another_device() -> None:
    x = gg.ones(2)
    text = message(ValueError, lambda: x.to("cuda"))
    assert "device 'cuda' is not available" in text


def test_handing_a_tracked_tensor_to_another_library() -> None:
    x = gg.ones(2, requires_grad=True)
    text = message(TypeError, lambda: np.from_dlpack(x))
    assert "would drop the gradient" in text
    assert ".detach()" in text
    assert "from_dlpack expects an object with __dlpack__" in message(TypeError, lambda: gg.from_dlpack(3))


def test_operands_are_named_and_options_are_not() -> None:
    x, w, picks = gg.ones(3, 4), gg.ones(5, 3), gg.tensor([[9]])
    assert "failed on x has shape (3, 4) with shape=(5,)" in message(ValueError, lambda: x.reshape(5))
    assert "failed on x has shape (3, 4) with shape=(5,)" in message(ValueError, lambda: gg.reshape(x, (5,)))
    assert "x has shape (3, 4), w has shape (5, 3)" in message(ValueError, lambda: gg.nn.functional.linear(x, w))
    assert "x has shape (3, 4), w has shape (5, 3)" in message(ValueError, lambda: gg.cat([x, w], 1))
    assert "x has shape (3, 4), picks has shape (1, 1)" in message(IndexError, lambda: x.gather(1, picks))


def test_a_layer_that_does_not_fit_names_its_weights() -> None:
    layer = gg.nn.Linear(3, 4)
    text = message(ValueError, lambda: layer(gg.ones(2, 5)))
    assert "x has shape (2, 5), weight has shape (4, 3), bias has shape (4,)" in text
    assert "The last dimension of the input has 5 features; a weight of shape (4, 3) takes 3." in text


def test_an_index_that_the_table_does_not_have() -> None:
    table = gg.nn.Embedding(3, 2)
    text = message(IndexError, lambda: table(gg.tensor([[0, 1], [2, 7]])))
    assert "index 7 at position (1, 1) is out of range for a table of 3 rows" in text
    assert "at least 8 rows" in text


def test_backward_from_a_complex_number() -> None:
    re, im = gg.tensor(1.0, requires_grad=True), gg.tensor(2.0, requires_grad=True)
    z = gg.complex(re, im) * 1.0
    text = message(errors.AutogradError, z.backward)
    assert "needs a real number to minimise, given dtype complex64" in text
    assert ".abs()" in text
