"""Random programs of views, reads and in-place writes, also run by PyTorch.

Compared are: after every statement whether it was refused; at the end all values, whether the backward pass is refused,
and the gradients. PyTorch counts writes to a whole tensor, and we record the written memory. If PyTorch refuses a
backward pass and we do not, the gradients are compared with central differences instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import glassgrad as gg
from glassgrad.ops.index import getitem_p
from tests.ops.against_torch import torch


class Statement(NamedTuple):
    """What is done (a number into the tables below), to which tensors, and with which of the keys or ops."""

    kind: int
    target: int
    other: int
    detail: int


pytestmark = pytest.mark.filterwarnings("ignore:Use of .* on expanded tensors")  # by PyTorch

statements = st.builds(Statement, *[st.integers(0, 10_000)] * 4)
programs = st.lists(statements, min_size=1, max_size=15)

LEAVES = (np.linspace(-1.2, 1.3, 12).reshape(3, 4), np.linspace(0.43, -0.71, 4))
PLAIN = np.linspace(-0.5, 0.5, 12).reshape(3, 4)

KEYS: tuple[Any, ...] = (
    0, -1, slice(1, None), slice(None, None, 2), (slice(None), 1), (..., 0), None, (slice(None), slice(1, 3)), ...,
    [0, 1], (slice(None), [1, 0]), ([0, 1], [1, 0]), "mask", (None, 0), (0, ..., [0, 1]),
)  # fmt: skip  # a table
VIEWS: tuple[Callable[[Any], Any], ...] = (
    *(lambda x, key=key: x[key] for key in KEYS[:9]),
    lambda x: x.transpose(0, -1),
    lambda x: x.unsqueeze(1),
    lambda x: x.reshape(-1) if x.shape in {(3, 4), (12,)} else x[...],
    lambda x: x.view(2, -1) if tuple(x.shape) == (12,) else x.view(x.shape),
    lambda x: x.unsqueeze(0).expand(2, *x.shape),
    lambda x: x.diagonal(1) if x.ndim > 1 else x[...],
    lambda x: x.diagonal(0, -1, 0) if x.ndim > 2 else x[...],
    lambda x: x.unfold(-1, 2, 1) if x.ndim and x.shape[-1] > 2 else x[...],
)
READS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda x, y: x.tanh(),
    lambda x, y: x * y,
    lambda x, y: x + y,
    lambda x, y: x.sin() * 0.5,
    lambda x, y: x.sum(),
    lambda x, y: (x * x).sum(-1) if x.ndim else x * x,
    lambda x, y: x.clone(),
    lambda x, y: x.sigmoid() - y,
)
WRITES: tuple[Callable[[Any, Any], Any], ...] = (
    lambda x, y: x.mul_(0.5),
    lambda x, y: x.add_(y),
    lambda x, y: x.mul_(y),
    lambda x, y: x.tanh_(),
    lambda x, y: x.sigmoid_(),
    lambda x, y: x.sub_(y, alpha=0.5),
    lambda x, y: x.copy_(y),
    lambda x, y: x.zero_(),
    lambda x, y: x.neg_(),
    lambda x, y: x.clamp_(-0.4, 0.4),
    lambda x, y: x.fill_(0.25),
    lambda x, y: x.square_(),
)


OVERLAP = "refer to a single memory location"
EXPANDED = "cannot write to this memory"


class Machine:
    """One library running a program."""

    def __init__(self, lib: Any, leaves: Sequence[Any], track: bool = True, given: Any = None) -> None:
        self.lib = lib
        self.leaves = given or [lib.tensor(np.array(leaf), requires_grad=track) for leaf in leaves]
        a, b = self.leaves
        self.pool = [a * 1, b * 1, lib.tensor(PLAIN.copy()), a, b]

    def operand(self, statement: Statement, shape: Any) -> Any:
        """Return another tensor of the pool that broadcasts to a shape, or a number."""
        y = self.pool[statement.other % len(self.pool)]
        try:
            fits = np.broadcast_shapes(tuple(y.shape), tuple(shape)) == tuple(shape)
        except ValueError:
            fits = False
        return y if fits else 0.75

    def run(self, statement: Statement) -> str:
        """Execute a statement; return why the library refused it, or nothing."""
        x = self.pool[statement.target % len(self.pool)]
        _ = x.grad_fn  # PyTorch brings a view up to date when this is asked, and takes it for a leaf before
        y = self.operand(statement, x.shape)
        try:
            made = self.execute(statement, x, y)
        except (RuntimeError, IndexError, ValueError) as error:
            return str(error) or "refused"
        if made is not None:
            self.pool.append(made)
        return ""

    def execute(self, statement: Statement, x: Any, y: Any) -> Any:
        kind, detail = statement.kind % 8, statement.detail
        if kind in {0, 1}:
            return VIEWS[detail % len(VIEWS)](x)
        if kind == 2:
            return READS[detail % len(READS)](x, y)
        if kind in {3, 4, 5}:
            write = WRITES[detail % len(WRITES)]
            if not hasattr(y, "shape") and write is WRITES[6]:
                write = WRITES[10]
            write(x, y)
            return None
        if kind == 6:
            key = KEYS[detail % len(KEYS)]
            key = self.lib.tensor(np.arange(x.shape[0]) % 2 == 0) if key == "mask" else key
            x[key] = self.operand(statement, x[key].shape)
            return None
        with self.lib.no_grad():
            WRITES[detail % 5](x, y)
        return None

    def loss(self) -> Any:
        """Sum all there is in the end, with weights that differ from place to place."""
        total: Any = 0.0
        for number, x in enumerate(self.pool):
            weights = np.cos(np.arange(x.numel() if hasattr(x, "numel") else 1) + number).reshape(tuple(x.shape))
            total = total + (x * self.lib.tensor(weights)).sum()
        return total


def gradients(machine: Machine) -> list[Any] | None:
    """Return the gradients of the leaves, or None if the backward pass is refused."""
    loss = machine.loss()
    try:
        loss.backward()
    except RuntimeError:
        return None
    return [np.zeros(leaf.shape) if leaf.grad is None else leaf.grad.numpy() for leaf in machine.leaves]


def differences(program: list[Statement]) -> list[Any]:
    """Return central differences of the loss, from runs without a tape."""
    step = 1e-6

    def value(leaves: Sequence[Any]) -> float:
        with gg.no_grad():
            machine = Machine(gg, leaves, track=False)
            for statement in program:
                machine.run(statement)
            return float(machine.loss())

    found = []
    for number, leaf in enumerate(LEAVES):
        slopes = np.zeros(leaf.size)
        for place in range(leaf.size):
            sides = []
            for sign in (1, -1):
                leaves = [part.copy() for part in LEAVES]
                leaves[number].reshape(-1)[place] += sign * step
                sides.append(value(leaves))
            slopes[place] = (sides[0] - sides[1]) / (2 * step)
        found.append(slopes.reshape(leaf.shape))
    return found


def check(program: list[Statement]) -> str:
    """Compare the two libraries on a program; return how it ended."""
    ours, theirs = Machine(gg, LEAVES), Machine(torch, LEAVES)
    done = []
    for number, statement in enumerate(program):
        there = theirs.run(statement)
        if OVERLAP in there:
            break  # NumPy makes the copy that PyTorch asks for
        here = ours.run(statement)
        if EXPANDED in here:
            return "expanded"  # PyTorch refuses some of these writes at once, others in the backward pass
        assert bool(here) == bool(there), f"statement {number}, {statement}: {here or 'we took it'}, {there or 'taken'}"
        if not here:
            done.append(statement)
    for x, expected in zip(ours.pool, theirs.pool, strict=True):
        np.testing.assert_allclose(x.detach().numpy(), expected.detach().numpy(), rtol=1e-12, atol=1e-12)
        assert x.requires_grad == expected.requires_grad
    return compare_gradients(gradients(ours), gradients(theirs), done)


def compare_gradients(found: list[Any] | None, expected: list[Any] | None, done: list[Statement]) -> str:
    if expected is not None:
        assert found is not None, "we refuse the backward pass, PyTorch does not"
        for g, g_expected in zip(found, expected, strict=True):
            np.testing.assert_allclose(g, g_expected, rtol=1e-10, atol=1e-12)
        return "agrees"
    if found is None:
        return "refused"
    if any(statement.kind % 8 == 7 for statement in done):
        return "differs"  # writes that the tape does not see are not in the gradient either
    for g, g_expected in zip(found, differences(done), strict=True):
        np.testing.assert_allclose(g, g_expected, rtol=1e-5, atol=1e-7)
    return "finer"


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(programs)
def test_programs_of_writes_in_place_agree_with_pytorch(program: list[Statement]) -> None:
    check(program)


def test_the_programs_end_in_every_way() -> None:
    rng = np.random.default_rng(0)
    ends = {check([Statement(*map(int, rng.integers(0, 10_000, 4))) for _ in range(12)]) for _ in range(150)}
    assert ends == {"agrees", "refused", "finer", "differs", "expanded"}


def test_a_planted_mistake_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    # A base whose place on the tape is as if nothing had been written to its view.
    monkeypatch.setattr(getitem_p, "write_back", lambda x, view, assign, *, spec: x * 1)
    program = [Statement(0, 0, 0, 0), Statement(0, 0, 0, 0), Statement(3, 5, 0, 0), Statement(2, 6, 0, 0)]
    with pytest.raises(AssertionError):
        check(program)


@pytest.mark.parametrize("write", [lambda s: s.fill_(2.0), lambda s: s.zero_(), lambda s: s.copy_(gg.tensor(2.0))])
def test_a_sum_can_be_overwritten(write: Callable[[Any], Any]) -> None:
    x = gg.ones(3, requires_grad=True)
    total = x.sum()
    write(total)
    (total * 3 + x.sum()).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1.0, 1.0, 1.0]
