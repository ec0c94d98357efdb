"""Cotangents of slices meet in one array: against sums of whole arrays, and without any such array."""

from __future__ import annotations

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.engine import tape
from glassgrad.ops import places

SHAPE = (4, 4, 5)
# Every kind of entry; some overlap, some repeat.
INDICES = [
    [0, 1, 2, 3],
    [0, 0, -1],
    [np.s_[1:3], np.s_[:, 2], np.s_[::2, None, 1]],
    [np.s_[..., ::-1], np.s_[2, 1, 3], ...],
    [np.s_[1:1], np.s_[:, :2]],
    [2, np.s_[[0, 0, 3]], np.s_[1:]],  # an array of indices among slices
]


def gradient_of(indices, prepare, weights):
    x = gg.from_numpy(np.arange(80.0).reshape(SHAPE)).requires_grad_()
    y = prepare(x)
    loss = sum((y[index] * gg.from_numpy(w)).sum() for index, w in zip(indices, weights, strict=True))
    loss.backward()
    return x.grad.numpy()


@pytest.mark.parametrize("indices", INDICES)
@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_gradients_of_slices_are_added_at_their_places(indices, axes):
    rng = np.random.default_rng(3)
    shown = np.zeros(SHAPE).transpose(axes)
    weights = [rng.standard_normal(shown[index].shape) for index in indices]
    expected = np.zeros(SHAPE)
    for index, w in zip(indices, weights, strict=True):
        np.add.at(expected.transpose(axes), index, 2 * w)
    found = gradient_of(indices, lambda x: (x * 2).permute(*axes), weights)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_a_part_beside_the_whole_and_a_leaf():
    x = gg.from_numpy(np.arange(6.0)).requires_grad_()
    y = x * 1
    (y[:2].sum() + (y * y).sum() + y[1:].sum() + x[3:].sum()).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1, 4, 5, 8, 10, 12])


def test_the_cotangent_that_was_given_stays_as_it_is():
    x = gg.from_numpy(np.ones(4)).requires_grad_()
    y = x * 1
    given = gg.from_numpy(np.ones(4))
    gg.autograd.backward([y, y[:2]], [given, gg.from_numpy(np.ones(2))])
    np.testing.assert_array_equal(x.grad.numpy(), [2, 2, 1, 1])
    np.testing.assert_array_equal(given.numpy(), np.ones(4))


def test_slices_can_be_differentiated_twice():
    x = gg.from_numpy(np.array([1.0, 2.0, 3.0])).requires_grad_()
    y = x * x
    (first,) = gg.autograd.grad((y[:2] * y[1:]).sum(), [x], create_graph=True)
    np.testing.assert_allclose(first.detach().numpy(), [8, 4 + 36, 24])
    (second,) = gg.autograd.grad(first.sum(), [x])
    np.testing.assert_allclose(second.numpy(), [8 + 8, 8 + 2 + 18 + 24, 24 + 8])


def test_an_observer_is_told_of_whole_cotangents():
    class Sent(tape.Observer):
        def __init__(self):
            self.total = {}

        def sent(self, target, c):
            self.total[target] = self.total.get(target, 0) + c

    x = gg.from_numpy(np.arange(6.0)).requires_grad_()
    y = x * 3
    loss = (y[:2].sum() + y[4:].sum()) * 1
    watching = Sent()
    walk = tape.Walk(False, False, observer=watching)
    walk.seed(loss.node, np.ones(()))
    walk.run()
    np.testing.assert_array_equal(watching.total[y.node], [1, 1, 0, 0, 1, 1])


def test_many_slices_make_no_array_each(monkeypatch):
    """A loop over a sequence: no zeros of its whole length for every step."""
    made = []
    plain = places.add_at

    def counting(*args):
        made.append(args)
        return plain(*args)

    for module in (places, gg.ops.index):
        monkeypatch.setattr(module, "add_at", counting)
    x = gg.from_numpy(np.ones((50, 2))).requires_grad_()
    y = x * 2
    sum(part.sum() for part in y).backward()
    assert not made
    np.testing.assert_array_equal(x.grad.numpy(), np.full((50, 2), 2.0))


def test_memory_of_a_permuted_tensor_keeps_its_order():
    """So that the view below it, a reshape say, needs no copy of its cotangent."""
    seen = []
    x = gg.from_numpy(np.ones((4, 6))).requires_grad_()
    y = (x * 1).view(4, 3, 2)
    y.register_hook(lambda g: seen.append(g.numpy()))
    a, b, c = y.permute(1, 0, 2)
    (a * 1 + b * 2 + c * 3).sum().backward()
    assert seen[0].flags.c_contiguous
    np.testing.assert_array_equal(x.grad.numpy(), np.repeat([[1, 1, 2, 2, 3, 3]], 4, axis=0))
