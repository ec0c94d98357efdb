"""The tape: order, accumulation, freeing, and PyTorch's rules for kept gradients."""

from __future__ import annotations

import gc
import threading
import tracemalloc
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.engine import tape
from glassgrad.engine.node import record
from glassgrad.ops.core import Custom


def test_a_node_on_several_paths_gets_the_sum() -> None:
    x = gg.tensor([2.0, 3.0], requires_grad=True)
    h = x * 2
    (h * h + h + 3 * h).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * (2 * 2 * np.array([2, 3]) + 4))


def test_gradients_accumulate_over_backward_calls() -> None:
    x = gg.tensor([1.0], requires_grad=True)
    for expected in (3.0, 6.0, 9.0):
        (3 * x).sum().backward()
        assert x.grad.item() == expected


def test_leaves_that_share_a_cotangent_do_not_share_memory() -> None:
    a = gg.zeros(3, requires_grad=True)
    b = gg.zeros(3, requires_grad=True)
    seed = gg.ones(3)
    (a + b).backward(seed)
    assert not np.shares_memory(a.grad.numpy(), b.grad.numpy())
    a.grad.array[...] = 7
    assert b.grad.tolist() == [1, 1, 1]
    assert seed.tolist() == [1, 1, 1]


def test_reshaped_leaves_do_not_share_memory() -> None:
    a = gg.zeros(4, requires_grad=True)
    b = gg.zeros(2, 2, requires_grad=True)
    (a.reshape(2, 2) + b).sum().backward()
    assert not np.shares_memory(a.grad.numpy(), b.grad.numpy())
    assert a.grad.numpy().flags.writeable


@pytest.mark.parametrize("length", [30_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_a_long_chain_of_ops_is_walked_and_freed(length: int) -> None:
    x = gg.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(length):
        y = y + 1e-6
    y.backward()
    assert x.grad.item() == 1
    y = x
    for _ in range(length):
        y = y + 1e-6
    del y  # freeing must not recurse


def test_the_graph_is_freed_as_the_walk_goes() -> None:
    x = gg.ones(10, requires_grad=True)
    h = x.exp()
    kept = weakref.ref(h.node)
    loss = (h * 2).sum()
    del h
    loss.backward()
    assert kept() is None


@pytest.mark.parametrize("steps", [1_000, pytest.param(5_000, marks=pytest.mark.slow)])
def test_no_reference_cycles_memory_is_flat_without_the_collector(steps: int) -> None:
    w = gg.randn(30, 30, requires_grad=True)

    def step() -> None:
        y = (gg.ones(4, 30) @ w).tanh()
        kept = y * 1
        kept.retain_grad()
        (kept.softmax(dim=-1) * y).sum().backward()
        w.grad = None

    gc.collect()
    gc.disable()
    try:
        tracemalloc.start()
        marks = []
        for _ in range(3):
            for _ in range(steps):
                step()
            marks.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
        gc.enable()
    # NumPy keeps some small buffers for reuse; an object left behind by each step would be 50 bytes and more.
    assert min(marks[1] - marks[0], marks[2] - marks[1]) < 20 * steps


def test_backward_twice_names_both_places() -> None:
    x = gg.ones(2, requires_grad=True)
    emb = x.exp()
    emb.sum().backward()
    built_and_freed = r"'emb' was built at .*test_tape.py:\d+.*freed by backward\(\) at .*test_tape.py:\d+"
    with pytest.raises(errors.AutogradError, match=built_and_freed):
        (emb * 2).sum().backward()


def test_retain_graph_allows_another_walk() -> None:
    x = gg.ones(2, requires_grad=True)
    y = x.exp().sum()
    y.backward(retain_graph=True)
    y.backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp([1, 1]), rtol=1e-6)


def test_create_graph_to_third_order() -> None:
    x = gg.tensor(2.0, dtype=gg.float64, requires_grad=True)
    y = x**4
    for expected in (32.0, 48.0, 48.0):
        (y,) = gg.autograd.grad(y, x, create_graph=True)
        assert y.item() == pytest.approx(expected)


def test_inputs_restricts_accumulation() -> None:
    a, b = gg.ones(2, requires_grad=True), gg.ones(2, requires_grad=True)
    h = a * b
    (h * 3).sum().backward(inputs=[a, h])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.NonLeafGradWarning)
        assert (a.grad.tolist(), b.grad, h.grad.tolist()) == ([3, 3], None, [3, 3])


def test_gradient_argument_is_the_cotangent() -> None:
    x = gg.ones(2, 2, requires_grad=True)
    (x * 2).backward(gg.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert x.grad.tolist() == [[2, 4], [6, 8]]
    with pytest.raises(errors.ShapeError, match="expected"):
        (x * 2).backward(gg.ones(3))


def test_backward_of_more_than_one_element_needs_a_gradient() -> None:
    with pytest.raises(errors.AutogradError, match=r"needs a tensor with one element.*\(3,\)"):
        gg.ones(3, requires_grad=True).exp().backward()


def test_grad_of_a_non_leaf_warns_with_its_place_and_retain_grad_keeps_it() -> None:
    x = gg.ones(2, requires_grad=True)
    h = x * 2
    place_and_cure = r"(?s)'h' is not a leaf.*multiply at .*test_tape.py.*retain_grad"
    with pytest.warns(errors.NonLeafGradWarning, match=place_and_cure):
        assert h.grad is None
    h.retain_grad()
    (h * 3).sum().backward()
    assert h.grad.tolist() == [3, 3]


def test_no_gradient_path_says_so() -> None:
    with pytest.raises(errors.AutogradError, match="no gradient can be computed"):
        gg.ones(1).sum().backward()


def test_hooks_replace_observe_and_can_be_removed() -> None:
    x = gg.ones(2, requires_grad=True)
    h = x * 1
    seen = []
    handle = h.register_hook(lambda g: seen.append(g.tolist()))
    h.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g + 1)
    (h * 2).sum().backward(retain_graph=True)
    assert (seen, x.grad.tolist()) == ([[2, 2]], [21, 21])
    handle.remove()
    handle.remove()
    x.grad = None
    (h * 2).sum().backward()
    assert len(seen) == 1


def test_no_grad_is_a_context_manager_a_decorator_and_per_thread() -> None:
    x = gg.ones(1, requires_grad=True)
    with gg.no_grad():
        assert not (x * 2).requires_grad
        with gg.enable_grad():
            assert (x * 2).requires_grad
        results = []
        thread = threading.Thread(target=lambda: results.append((x * 2).requires_grad))
        thread.start()
        thread.join()
        assert results == [True]
    assert (x * 2).requires_grad

    @gg.no_grad()
    def quiet() -> gg.Tensor:
        return x * 2

    @gg.no_grad
    def bare() -> gg.Tensor:
        return x * 2

    assert not quiet().requires_grad
    assert not bare().requires_grad
    assert gg.is_grad_enabled()


def test_no_grad_is_left_on_exceptions() -> None:
    with pytest.raises(KeyError), gg.no_grad():
        raise KeyError
    assert gg.is_grad_enabled()


def test_detach_item_tolist_numpy() -> None:
    x = gg.tensor([1.5, 2.5], requires_grad=True)
    assert not x.detach().requires_grad
    assert np.shares_memory(x.detach().numpy(), x.array)
    assert x.tolist() == [1.5, 2.5]
    assert x.sum().item() == 4
    with pytest.raises(errors.KindError, match="would drop the gradient"):
        x.numpy()
    with pytest.raises(errors.KindError, match="would drop the gradient"):
        np.asarray(x)


def test_grad_reports_unused_inputs() -> None:
    a, b = gg.ones(1, requires_grad=True), gg.ones(1, requires_grad=True)
    with pytest.raises(errors.AutogradError, match="input 1 of grad"):
        gg.autograd.grad((a * 2).sum(), [a, b])
    assert gg.autograd.grad((a * 2).sum(), [a, b], allow_unused=True)[1] is None


def test_integer_tensors_cannot_require_gradients() -> None:
    with pytest.raises(errors.AutogradError, match="int64"):
        gg.tensor([1, 2], requires_grad=True)


def test_integer_factors_leave_float32_gradients() -> None:
    x = gg.ones(3, requires_grad=True)
    (x * gg.arange(3)).sum().backward()
    assert x.grad.dtype == np.float32
    assert x.grad.tolist() == [0, 1, 2]


def test_a_parameter_updated_between_forward_and_backward_is_reported_with_both_lines() -> None:
    w = gg.ones(2, 2, requires_grad=True)
    optimizer = gg.optim.SGD([w], lr=0.1)
    x = gg.ones(2, 2, requires_grad=True)
    product = x @ w
    product.sum().backward(retain_graph=True)
    optimizer.step()
    both = r"'w' was saved by matmul at .*:\d+.*overwritten in place at .*:\d+"
    with pytest.raises(errors.AutogradError, match=both):
        product.sum().backward()


def test_no_gradient_path_names_the_exit_from_the_graph() -> None:
    w = gg.ones(2, requires_grad=True)
    loss = gg.tensor((w * 2).sum().item())
    with pytest.raises(errors.AutogradError) as caught:
        loss.backward()
    text = str(caught.value)
    assert "'loss' does not depend on any tensor with requires_grad=True" in text
    assert ".item(), " in text
    assert "loss = gg.tensor((w * 2).sum().item())" in text
    with gg.no_grad():
        silent = (w * 2).sum()
        with pytest.raises(errors.AutogradError, match="recording is off here"):
            silent.backward()


def test_who_waits_for_walks_hears_of_those_that_fill_grads_and_of_their_ends() -> None:
    heard: list[Any] = []

    def begin() -> Any:
        return lambda walk: heard.append("begins") or (heard.append if len(heard) < 3 else None)

    x = gg.ones(2, requires_grad=True)
    tape.BEFORE_WALK.append(begin)
    try:
        gg.autograd.grad((x * 2).sum(), x)
        assert heard == []
        for _ in range(2):
            (x * 2).sum().backward()
    finally:
        tape.BEFORE_WALK.remove(begin)
    (x * 2).sum().backward()
    assert [type(one) for one in heard] == [str, dict, str], "the second asked for no word of its end"
    assert list(heard[1]) == [x]


def test_a_walk_visits_a_node_that_was_put_between_two_others() -> None:
    order: list[str] = []
    x = gg.ones(2, requires_grad=True)
    y = x * 2
    z = y * 3
    y.register_hook(lambda g: order.append("y"))
    z.register_hook(lambda g: order.append("z"))
    visitor = Custom("between", lambda _xp: None, joint_vjp=lambda *_args: None, register=False)
    visitor.visit = lambda _walk, _node, _g: order.append("between")
    between = record(visitor, (), (), {}, np.zeros(()), (lambda: None).__code__, 0)

    def begin() -> Any:
        return lambda walk: walk.place(between, (y.node.seq + z.node.seq) / 2)

    tape.BEFORE_WALK.append(begin)
    try:
        z.sum().backward()
    finally:
        tape.BEFORE_WALK.remove(begin)
    assert order == ["z", "between", "y"]
    assert x.grad.tolist() == [6.0, 6.0]
