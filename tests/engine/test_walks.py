"""The readable backward walk and its version for training give the same bits; observers see the whole walk."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.engine import tape
from tests.fuzz.programs import leaves_of, loss_of, make


def graph_of(seed):
    program = make(seed)
    leaves = [gg.from_numpy(array).requires_grad_() for array in leaves_of(program)]
    return loss_of(program, gg, leaves), leaves


def walked(seed, run, observer=None):
    loss, leaves = graph_of(seed)
    walk = tape.Walk(False, False, observer=observer)
    with gg.no_grad():
        walk.seed(loss.node, np.ones(()))
        found = run(walk)
    return [found[leaf] for leaf in leaves]


@pytest.mark.parametrize("seed", range(40))
def test_the_walk_written_out_is_the_walk(seed):
    plain, readable = walked(seed, tape.run_plain), walked(seed, tape.Walk.run)
    for one, other in zip(plain, readable, strict=True):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("seed", range(10))
def test_an_observer_sees_every_rule_and_changes_nothing(seed):
    class Watching(tape.Observer):
        def __init__(self):
            self.entered, self.gone, self.sums = [], [], {}

        def rule(self, node, g, saved, position):
            if node not in self.entered:
                self.entered.append(node)

        def sent(self, target, c):
            total = np.asarray(tape.match_cotangent(c, target))
            self.sums[target] = self.sums.get(target, 0) + total

        def left(self, node):
            self.gone.append(node)

    watching = Watching()
    watched, alone = walked(seed, tape.Walk.run, watching), walked(seed, tape.Walk.run)
    assert all(one.tobytes() == other.tobytes() for one, other in zip(watched, alone, strict=True))
    assert watching.entered == watching.gone
    assert [node.seq for node in watching.gone] == sorted((node.seq for node in watching.gone), reverse=True)
    sums = [total for target, total in watching.sums.items() if not isinstance(target, tape.Node)]
    assert sums
    for total in sums:
        assert any(total.shape == g.shape and np.allclose(total, g) for g in watched)


def test_memory_is_freed_by_both():
    for run in (tape.run_plain, tape.Walk.run):
        x = gg.ones(3, requires_grad=True)
        y = (x.tanh() * 2.0).tanh().sum()
        middle = y.node.parents[0]
        walk = tape.Walk(False, False)
        with gg.no_grad():
            walk.seed(y.node, np.ones((), np.float32))
            run(walk)
        assert middle.parents == ()


def test_an_observer_hears_of_a_rule_once_and_of_several_one_by_one():
    class Listener(tape.Observer):
        def __init__(self):
            self.heard = []

        def rule(self, node, g, saved, position):
            self.heard.append((node.prim.name, position))

    x, y = (gg.randn(2, requires_grad=True) for _ in range(2))
    loss, listener = (x.exp() * y).sum(), Listener()
    walk = tape.Walk(False, False, observer=listener)
    with gg.no_grad():
        walk.seed(loss.node, np.ones((), np.float32))
        walk.run()
    names = [name for name, _ in listener.heard]
    assert [position for _, position in listener.heard] == [None, None, 0, 1, None], names


# --- from one tensor, without a walk object -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_backward_of_one_tensor_is_the_walk(seed):
    loss, leaves = graph_of(seed)
    loss.backward(gg.tensor(np.ones(loss.shape, loss.dtype)))
    for leaf, expected in zip(leaves, walked(seed, tape.Walk.run), strict=True):
        assert leaf.grad.numpy().dtype == expected.dtype
        assert leaf.grad.numpy().tobytes() == expected.tobytes()


def branches(x):
    y = x * 2
    return {
        "the same tensor twice": y * y,
        "a node that waits while an older one is met": (y * 3).exp() * (y + 1) + y,
        "a leaf beside a node": x * y,
        "broadcast to another shape": (y + gg.ones(4, 3)) * x,
        "several results": gg.max(y, dim=0).values * y.sort().values.sum(),
        "slices": y[1:] * y[:-1],
        "joint rules": gg.cat([y, x, y]).softmax(0),
    }


@pytest.mark.parametrize("name", list(branches(gg.ones(3))))
def test_nodes_that_wait_for_one_another(name):
    def gradient(run):
        x = gg.tensor([0.5, -1.0, 2.0], requires_grad=True)
        y = branches(x)[name]
        g = np.random.default_rng(1).normal(size=y.shape).astype(np.float32)
        if run is None:
            y.backward(gg.from_numpy(g))
            return x.grad.numpy()
        walk = tape.Walk(False, False)
        with gg.no_grad():
            walk.seed(y.node, g)
            return run(walk)[x]

    assert gradient(None).tobytes() == gradient(tape.run_plain).tobytes() == gradient(tape.Walk.run).tobytes()


def test_a_leaf_owns_its_gradient_also_where_the_cotangent_reaches_it():
    memory = np.arange(6, dtype=np.float32)
    for cotangent in (memory, memory[:], memory[::1].reshape(6)):
        x = gg.ones(6, requires_grad=True)
        z = gg.ones(2, 3, requires_grad=True)
        (x + z.reshape(6)).backward(gg.from_numpy(cotangent))
        for leaf in (x, z):
            assert not np.shares_memory(leaf.grad.numpy(), memory)
        assert not np.shares_memory(x.grad.numpy(), z.grad.numpy())
        x.grad.numpy()[:] = 9
        assert z.grad.numpy().ravel().tolist() == memory.tolist()


def test_complex_leaves_of_a_real_tensor_get_the_gradient_in_pytorchs_convention():
    z = gg.tensor([1.0 + 2.0j, -1.0 + 0.5j], requires_grad=True)
    (z.real * 2 + z.imag * 3).backward(gg.ones(2))
    assert z.grad.tolist() == [2 + 3j, 2 + 3j]


def test_a_second_backward_names_the_line_of_the_first():
    x = gg.ones(2, requires_grad=True)
    y = (x.exp() * x).sum()
    line = sys._getframe().f_lineno + 1
    y.backward()
    with pytest.raises(gg.errors.AutogradError, match=rf"freed by backward\(\) at \S*test_walks\.py:{line}:"):
        y.backward()


def test_a_graph_that_is_kept_is_walked_again():
    x = gg.tensor([1.0, 2.0], requires_grad=True)
    y = (x.exp() * x).sum()
    for times in (1, 2):
        y.backward(retain_graph=True)
        np.testing.assert_allclose(x.grad.numpy(), times * (1 + x.detach().numpy()) * np.exp([1, 2]), rtol=1e-6)


def test_hooks_see_and_replace_cotangents_and_may_walk_themselves():
    x = gg.tensor([1.0, 2.0], requires_grad=True)
    other = gg.tensor([3.0], requires_grad=True)
    seen = []

    def hook(g):
        seen.append(g.tolist())
        with gg.enable_grad():
            (other * 2).backward()
        return g * 10

    y = x * 2
    y.register_hook(hook)
    (y * 3).backward(gg.ones(2))
    assert seen == [[3.0, 3.0]]
    assert x.grad.tolist() == [60.0, 60.0]
    assert other.grad.tolist() == [2.0]
    assert gg.is_grad_enabled()


def test_recording_is_on_again_after_a_walk_that_fails():
    x = gg.ones(2, requires_grad=True)
    y = x * 2

    def fails(_):
        raise ZeroDivisionError

    y.register_hook(fails)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward()
    assert gg.is_grad_enabled()
