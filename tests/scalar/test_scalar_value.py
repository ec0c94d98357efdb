"""The module itself: every op against finite differences and PyTorch, the walk, and micrograd as a twin."""

from __future__ import annotations

import gc
import math
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassgrad import errors, scalar
from glassgrad.scalar import Value, Vector

# name -> (function of Values, the same on torch tensors or None where it is spelled alike, points)
OPS = {
    "add": (lambda a, b: a + b, None, [(1.5, -2.0)]),
    "sub": (lambda a, b: a - b, None, [(1.5, -2.0)]),
    "mul": (lambda a, b: a * b, None, [(1.5, -2.0), (0.0, 3.0)]),
    "div": (lambda a, b: a / b, None, [(1.5, -2.0), (0.0, 0.5)]),
    "pow": (lambda a, b: a**b, None, [(1.5, -2.0), (0.3, 2.5)]),
    "add number": (lambda a, b: (a + 3) + (2 + b), None, [(1.5, -2.0)]),
    "sub number": (lambda a, b: (a - 3) * (2 - b), None, [(1.5, -2.0)]),
    "mul number": (lambda a, b: (a * 3) * (2 * b), None, [(1.5, -2.0)]),
    "div number": (lambda a, b: (a / 3) * (2 / b), None, [(1.5, -2.0)]),
    "pow number": (lambda a, b: a**3 * b**-1, None, [(1.5, -2.0), (-1.5, 0.5)]),
    "number pow": (lambda a, b: 2**a + 0.5**b, None, [(1.5, -2.0)]),
    "neg": (lambda a, b: -a * -b, None, [(1.5, -2.0)]),
    "exp": (lambda a, b: (a * b).exp(), None, [(1.5, -2.0)]),
    "log": (lambda a, b: (a * a + b * b).log(), None, [(1.5, -2.0)]),
    "tanh": (lambda a, b: a.tanh() * b.tanh(), None, [(0.5, -2.0), (30.0, -30.0)]),
    "sigmoid": (lambda a, b: a.sigmoid() * b.sigmoid(), None, [(0.5, -2.0), (40.0, -40.0)]),
    "relu": (lambda a, b: a.relu() + b.relu(), None, [(1.5, -2.0)]),
    "sin": (lambda a, b: (a * b).sin(), None, [(1.5, -2.0)]),
    "cos": (lambda a, b: (a * b).cos(), None, [(1.5, -2.0)]),
    "abs": (lambda a, b: abs(a) * abs(b), None, [(1.5, -2.0)]),
    "max": (
        lambda a, b: a.max(b) * a,
        lambda torch, a, b: torch.maximum(a, b) * a,
        [(1.5, -2.0), (1.0, 2.0), (2.0, 2.0)],
    ),
    "max number": (
        lambda a, b: a.max(0.5) * b,
        lambda torch, a, b: torch.maximum(a, torch.tensor(0.5)) * b,
        [(1.5, -2.0)],
    ),
    "dot": (lambda a, b: Vector([a, b, a]) @ [b, 2.0, a], lambda torch, a, b: a * b + 2 * b + a * a, [(1.5, -2.0)]),
    "reuse": (lambda a, b: (a * b + a) * (a * b), None, [(1.5, -2.0)]),
}
CASES = [(name, *point) for name, (_, _, points) in OPS.items() for point in points]


def gradients(function, x, y):
    a, b = Value(x), Value(y)
    result = function(a, b)
    result.backward()
    return result.data, (a.grad, b.grad)


@pytest.mark.parametrize("name, x, y", [case for case in CASES if case != ("max", 2.0, 2.0)])  # there is its kink
def test_op_against_central_differences(name, x, y):
    function = OPS[name][0]
    _, grads = gradients(function, x, y)
    h = 1e-6

    def at(p, q):
        return function(Value(p), Value(q)).data

    numeric = ((at(x + h, y) - at(x - h, y)) / (2 * h), (at(x, y + h) - at(x, y - h)) / (2 * h))
    assert grads == pytest.approx(numeric, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("name, x, y", CASES)
def test_op_against_torch(name, x, y):
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle of this test")
    mine, theirs, _ = OPS[name]
    a, b = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (x, y))
    expected = theirs(torch, a, b) if theirs else mine(a, b)
    expected.backward()
    data, grads = gradients(mine, x, y)
    assert data == pytest.approx(expected.item(), rel=1e-13)
    assert grads == pytest.approx((a.grad.item(), b.grad.item()), rel=1e-12, abs=1e-300)


def test_slopes_at_the_edges():
    zero = Value(0.0)
    (abs(zero) + zero.relu() + zero**2 + zero**0).backward()
    assert zero.grad == 0.0
    root = Value(0.0)
    (root**0.5).backward()
    assert root.grad == math.inf
    assert Value(-800.0).sigmoid().data == 0.0  # 1/(1+exp(800)) would overflow
    assert Value(-2.0) ** Value(3.0) == -8.0
    with pytest.raises(ValueError, match="a value above 0 only"):
        Value(0.0).log()


def test_numpy_numbers_on_the_left():
    v = Value(3.0)
    for number in (np.float64(2.0), np.int64(2), np.float32(2.0)):
        for result, expected in ((number * v, 6.0), (number - v, -1.0), (number / v, 2 / 3), (number + v, 5.0)):
            assert type(result) is Value
            assert result.data == pytest.approx(expected)
    assert (Value(np.float32(0.5)) ** np.float64(2.0)).data == 0.25
    assert type(Value(np.float64(1.0)).data) is float


def test_comparison_is_by_number_and_membership_by_identity():
    a, b, c = Value(1.0), Value(2.0), Value(1.0)
    assert a < b <= 2 < Value(3)
    assert b > a >= 1.0
    assert a == c == 1 != b
    assert not a > np.float64(1.0)
    assert a != None  # noqa: E711 - the comparison itself is under test
    assert len({a, c}) == 2
    assert max([a, b, c]) is b


def test_dot_of_lists():
    w, x = Vector([Value(1.0), Value(2.0)]), [Value(3.0), Value(4.0)]
    for result in (w @ x, x @ w, w @ [3, 4], w @ np.array([3.0, 4.0]), np.array([3.0, 4.0]) @ w):
        assert result.data == 11.0
    (x @ w).backward()
    assert [v.grad for v in w] == [3.0, 4.0]
    assert [v.grad for v in x] == [1.0, 2.0]
    assert (w @ x)._prev == {*w, *x}
    with pytest.raises(errors.ShapeError, match="2 values and one with 3"):
        w @ [1, 2, 3]


def test_micrograd_style_attributes():
    a, b = Value(2.0, label="a"), Value(-3.0, (), "", "b")
    c = a * b
    assert (c.data, c.grad, c._op, c._prev, c.label) == (-6.0, 0, "*", {a, b}, "")
    assert repr(c) == "Value(data=-6.0, grad=0.0)"
    assert {v._op for v in (a + b, a.relu(), a**2, a.tanh())} == {"+", "ReLU", "**2", "tanh"}


def test_a_new_op_is_one_line_and_a_forgotten_slope_is_an_error():
    x = Value(0.7)
    cube = Value(x.data**3, (x,), "cube", slopes=(3 * x.data**2,))
    cube.backward()
    assert x.grad == pytest.approx(3 * 0.49)
    with pytest.raises(errors.ArgumentError, match="op 'cube' and 1 children, which has neither slopes"):
        Value(1.0, (x,), "cube").backward()


def test_two_results_over_one_shared_part():
    """Leaves accumulate over calls, as with two losses; what lies between must not be counted twice."""
    x = Value(3.0)
    shared = x * x
    first, second = shared * 2, shared * 5
    first.backward()
    second.backward()
    assert shared.grad == 5.0
    assert x.grad == 2 * 6 + 5 * 6


# --- depth and memory ---------------------------------------------------------------------------

DEEP = """
from glassgrad.scalar import Value
terms = [Value(1.0) for _ in range(100_000)]
total = sum(terms)
total.backward()
assert total.data == 100_000.0 and all(t.grad == 1.0 for t in terms)
del total
x = y = Value(1.0)
for _ in range(100_000):
    y = y * 1.00001
y.backward()
assert abs(x.grad - y.data) < 1e-9
del y
print("freed")
"""


@pytest.mark.slow
def test_a_hundred_thousand_terms_and_freeing_them():
    """In a process of its own: what could go wrong is an overflow of the C stack."""
    done = subprocess.run([sys.executable, "-c", DEEP], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "freed"), done.stderr


def test_no_reference_cycles():
    model = scalar.MLP(2, [4, 1], act="tanh")
    gc.collect()
    gc.disable()
    try:
        loss = (model([1.0, -1.0]) - 1) ** 2
        loss.backward()
        del loss
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_the_page_is_a_page():
    page, _, names = Path(scalar.__file__).read_text(encoding="utf-8").partition("\n\n\n__all__ = ")
    assert len(page.splitlines()) <= 200
    assert len(names.splitlines()) == 2  # what is public, and no more


# --- micrograd as a twin ------------------------------------------------------------------------


MICROGRAD_STEPS = [
    lambda a, b, number: a + b,
    lambda a, b, number: a * b,
    lambda a, b, number: a - b,
    lambda a, b, number: a.relu(),
    lambda a, b, number: a * number + 1,
    lambda a, b, number: number - a,
    lambda a, b, number: (a * 0.1) ** 3,
    lambda a, b, number: a / number,
    lambda a, b, number: number / (a * a + 1),
    lambda a, b, number: -a,
]


def random_program(seed, value_type):
    """The same random sequence of operations for any class with micrograd's API."""
    dice = random.Random(seed)
    leaves = [value_type(dice.uniform(-2, 2)) for _ in range(4)]
    pool = list(leaves)
    for _ in range(12):
        pool.append(dice.choice(MICROGRAD_STEPS)(dice.choice(pool), dice.choice(pool), dice.uniform(0.5, 2)))
    total = sum(pool)
    total.backward()
    return total.data, [leaf.grad for leaf in leaves]


@given(st.integers(0, 10**6))
def test_random_programs_against_micrograd(seed):
    engine = pytest.importorskip("micrograd.engine", reason="micrograd is the oracle of this test")
    data, grads = random_program(seed, Value)
    expected_data, expected_grads = random_program(seed, engine.Value)
    assert data == pytest.approx(expected_data, rel=1e-10, abs=1e-12)
    assert grads == pytest.approx(expected_grads, rel=1e-10, abs=1e-12)
