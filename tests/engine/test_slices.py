"""Cotangents of slices accumulate in one array: against sums of whole arrays, and without such arrays."""

from __future__ import annotations

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.engine import tape
from glassgrad.ops import places
from glassgrad.ops.core import Custom
from glassgrad.ops.kernels import interleaved

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


# --- parts that lie in one array already ----------------------------------------------------------

COTANGENTS = np.random.default_rng(5).standard_normal((2, 3, 3, 2))


class Interleaved:
    """Three slices of x, used by an op that puts their cotangents into one array as x has them."""

    def __init__(self, places=(0, 1, 2)):
        self.whole = COTANGENTS.copy()
        self.parts = [self.whole.transpose(2, 0, 1, 3)[place] for place in places]
        self.arrived = None
        self.op = Custom(
            "three", lambda xp, q, k, v: q.sum() + k.sum() + v.sum(), register=False, takes_complex=True,
            joint_vjp=lambda g, needs, y, q, k, v: self.parts, saves=("x",),
        )  # fmt: skip  # a table
        self.look = Custom(
            "look", lambda xp, x: x + 0, vjp=(self._note,), jvp=(None,), register=False, takes_complex=True
        )

    def _note(self, g, y, x):
        self.arrived = g
        return g * 1

    def gradient(self, use):
        x = gg.from_numpy(np.arange(36.0).reshape(2, 3, 6)).requires_grad_()
        parts = self.look(x).unflatten(-1, (3, 2)).permute(2, 0, 1, 3)
        loss, wanted = use(parts)
        loss.backward()
        np.testing.assert_allclose(x.grad.numpy(), wanted.reshape(2, 3, 6), rtol=1e-13)
        np.testing.assert_array_equal(self.whole, COTANGENTS)  # what a rule has returned is not changed
        return np.shares_memory(self.arrived, self.whole)


def at_slice(number, value):
    array = np.zeros((2, 3, 3, 2))
    array[:, :, number] = value
    return array


def test_cotangents_that_lie_in_one_array_are_taken_as_it():
    case = Interleaved()
    assert case.gradient(lambda parts: (case.op(*parts), COTANGENTS))


def test_slices_in_another_order_or_beside_older_ones():
    case = Interleaved()

    def use(parts):
        k, v, q = parts[1], parts[2], parts[0]
        return case.op(q, k, v), COTANGENTS

    assert case.gradient(use)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_slice_that_is_used_twice_is_added(number):
    case = Interleaved()

    def use(parts):
        three = [*parts]
        return case.op(*three) + (3 * three[number]).sum(), COTANGENTS + at_slice(number, 3.0)

    assert not case.gradient(use)


def test_the_whole_that_is_used_beside_its_slices_is_added():
    for after in (False, True):
        case = Interleaved()

        def use(parts, after=after, case=case):
            first = None if after else parts.sum()
            loss = case.op(*parts)
            return loss + (parts.sum() if first is None else first), COTANGENTS + 1

        case.gradient(use)


def test_a_hook_sees_its_slice_and_may_replace_it():
    case = Interleaved()
    seen = []

    def use(parts):
        q, k, v = parts
        k.register_hook(lambda g: seen.append(g.numpy().copy()) or g * 2)
        return case.op(q, k, v), COTANGENTS + at_slice(1, COTANGENTS[:, :, 1])

    assert not case.gradient(use)
    np.testing.assert_array_equal(seen[0], COTANGENTS[:, :, 1])


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_gradient_that_is_kept_is_no_part_of_another(number):
    case = Interleaved()

    def use(parts):
        three = [*parts]
        three[number].retain_grad()
        return case.op(*three), COTANGENTS

    assert not case.gradient(use)


@pytest.mark.parametrize("places", [(1, 0, 2), (0, 0, 1), (2, 1, 0)])
def test_parts_at_other_places_are_added_to_theirs(places):
    case = Interleaved(places)
    wanted = np.stack([COTANGENTS[:, :, place] for place in places], axis=2)
    assert not case.gradient(lambda parts: (case.op(*parts), wanted))


def test_slices_that_overlap_are_added():
    x = gg.from_numpy(np.arange(4.0)).requires_grad_()
    whole = np.array([1.0, 2.0, 3.0, 4.0])
    two = Custom(
        "two", lambda xp, a, b: a.sum() + b.sum(), register=False, takes_complex=True,
        joint_vjp=lambda g, needs, y, a, b: [whole[:2], whole[1:3]], saves=("x",),
    )  # fmt: skip  # a table
    y = x * 1
    two(y[:2], y[1:3]).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1, 4, 3, 0])
    np.testing.assert_array_equal(whole, [1, 2, 3, 4])


def test_a_slice_that_is_asked_for_is_found_beside_its_whole():
    case = Interleaved()
    x = gg.from_numpy(np.arange(36.0).reshape(2, 3, 3, 2)).requires_grad_()
    parts = case.look(x).permute(2, 0, 1, 3)
    q, k, v = parts
    found = gg.autograd.grad(case.op(q, k, v), [k, x])
    np.testing.assert_array_equal(found[0].numpy(), COTANGENTS[:, :, 1])
    np.testing.assert_array_equal(found[1].numpy(), COTANGENTS)


def test_a_graph_that_is_kept_gives_the_same_again():
    case = Interleaved()
    x = gg.from_numpy(np.arange(36.0).reshape(2, 3, 3, 2)).requires_grad_()
    loss = case.op(*case.look(x).permute(2, 0, 1, 3))
    loss.backward(retain_graph=True)
    loss.backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * COTANGENTS)
    with pytest.raises(RuntimeError):
        loss.backward()


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_arrays_like_parts_are_parts_of_one(axis):
    parts = [np.moveaxis(np.zeros((2, 3, 4, 5)), axis, 0)[at] for at in range((2, 3, 4, 5)[axis])]
    whole = np.moveaxis(np.arange(120.0).reshape(2, 3, 4, 5), axis, 0)
    assert interleaved.empty_like(parts) is None  # each of them is of an array of its own
    made = interleaved.empty_like([*whole])
    for one, value in zip(made, whole, strict=True):
        one[...] = value
    np.testing.assert_array_equal(made[0].base, np.arange(120.0))


def test_no_parts_of_one_array():
    whole = np.zeros((4, 6))
    for parts in (
        [whole],
        [whole[0], whole[2]],  # a gap
        [whole[1], whole[0]],
        [whole[0], whole[0]],
        [whole[:2], whole[1:3]],  # an overlap
        [whole[:, :2], whole[:, 2:4]],  # two of three
        [whole[:2], whole[2:, :5]],
        [whole[:2], whole[2:, ::-1]],
        [whole[:2], whole[2:].view(np.int64)],
    ):
        assert interleaved.empty_like(parts) is None
    assert interleaved.distance(whole[:2], [interleaved.address(one) for one in (whole[:2], whole[2:])]) == 96
