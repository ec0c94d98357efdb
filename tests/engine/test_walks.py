"""The backward walk as it reads and as it is written out for training give the same bits; observers see all of it."""

from __future__ import annotations

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
