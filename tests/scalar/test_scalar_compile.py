"""Compiled functions of Values: equal to the eager ones, in both engines, and much faster."""

from __future__ import annotations

import math
import random
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassgrad import errors, scalar
from glassgrad.scalar import MLP, Value, Vector, emit_llvm, tracing

ENGINES = ["llvm", "numpy"]


def eager(function, batch, parameters):
    """The same by Values, one sample after the other: results, and gradients of their mean."""
    for p in parameters:
        p.grad = 0.0
    rows = [
        [Vector(map(Value, part)) if np.ndim(part) else Value(part) for part in row] for row in zip(*batch, strict=True)
    ]
    results = [function(*row) for row in rows]
    (sum(results) * (1.0 / len(results))).backward()
    return [r.data for r in results], [p.grad for p in parameters]


def compiled_run(function, batch, parameters, engine):
    for p in parameters:
        p.grad = 0.0
    program = scalar.compile(function, engine=engine)
    mean = program.backward(*batch)
    results = program(*batch)
    assert mean == pytest.approx(results.mean())
    return results, [p.grad for p in parameters]


def assert_same(function, batch, parameters, engine, rel=1e-11):
    results, grads = compiled_run(function, batch, parameters, engine)
    expected_results, expected_grads = eager(function, batch, parameters)
    assert results.tolist() == pytest.approx(expected_results, rel=rel, abs=1e-13)
    assert grads == pytest.approx(expected_grads, rel=rel, abs=1e-13)


UNARY = {
    "neg": lambda x: -x,
    "abs": abs,
    "exp": lambda x: x.exp(),
    "log": lambda x: (x * x + 0.5).log(),
    "sin": lambda x: x.sin(),
    "cos": lambda x: x.cos(),
    "tanh": lambda x: x.tanh(),
    "sigmoid": lambda x: x.sigmoid(),
    "relu": lambda x: x.relu(),
    "power 0": lambda x: x**0 + x,
    "power 1": lambda x: x**1,
    "power 2": lambda x: x**2,
    "power 3": lambda x: x**3,
    "power 5": lambda x: x**5,
    "power -1": lambda x: (x * x + 1) ** -1,
    "power 0.5": lambda x: (x * x + 1) ** 0.5,
    "max number": lambda x: x.max(0.25),
    "power Value": lambda x: (x * x + 1) ** x,
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", UNARY)
def test_every_op(name, engine):
    """On inputs, on parameters, and on both mixed; 13 samples, so that the last block is not full."""
    w, b = Value(0.7), Value(-0.4)
    x = np.linspace(-2, 2, 13)
    function = UNARY[name]
    assert_same(lambda x: function(x * w + b) * function(b) + function(w), (x,), [w, b], engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("samples", [1, 2, 7, 8, 9, 16, 33])
def test_any_number_of_samples(samples, engine):
    w = Vector([Value(0.5), Value(-1.5), Value(2.0)])
    rng = np.random.default_rng(samples)
    x, y = rng.normal(size=(samples, 3)), rng.normal(size=samples)
    assert_same(lambda x, y: ((w @ x).max(y) - x[0] / (y * y + 1)) ** 2, (x, y), w, engine)


def test_ties_and_kinks_are_shared_alike():
    w = Value(1.0)
    for engine in ENGINES:
        assert_same(
            lambda x: (w * x).max(x) + (w * x - x).relu() + abs(w * x - x), (np.array([1.0, -2.0, 0.0]),), [w], engine
        )


STEPS = [
    lambda a, b, number: a + b,
    lambda a, b, number: a - b,
    lambda a, b, number: a * b,
    lambda a, b, number: a / (b * b + 1),
    lambda a, b, number: a.tanh(),
    lambda a, b, number: a * number,
    lambda a, b, number: number - a,
    lambda a, b, number: Vector([a, b]) @ [b, number],
    lambda a, b, number: a.max(b),
    lambda a, b, number: a.sigmoid(),
    lambda a, b, number: a.sin(),
    lambda a, b, number: (a * 0.1) ** 2,
]


def random_expression(seed, values):
    dice = random.Random(seed)
    pool = list(values)
    for _ in range(10):
        pool.append(dice.choice(STEPS)(dice.choice(pool), dice.choice(pool), dice.uniform(0.5, 1.5)))
    return sum(pool)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from(ENGINES))
def test_random_expressions(seed, engine):
    w = [Value(0.3), Value(-1.2)]
    x = np.random.default_rng(seed).normal(size=(11, 2))
    assert_same(lambda row: random_expression(seed, [*w, *row]), (x,), w, engine, rel=1e-8)


@pytest.mark.parametrize("engine", ENGINES)
def test_training_step_for_step(engine):
    """A compiled training run follows the eager one."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 2))
    y = np.sign(x[:, 0] * x[:, 1])

    def train(step):
        random.seed(3)
        model = MLP(2, [8, 1])

        def loss(row, label):
            return (1 - label * model(row)).relu() + 1e-3 * sum(p * p for p in model.parameters())

        run = step(loss, model.parameters())
        history = []
        for _ in range(10):
            model.zero_grad()
            history.append(run())
            for p in model.parameters():
                p.data -= 0.1 * p.grad
        return history

    def compiled_step(loss, _parameters):
        program = scalar.compile(loss, engine=engine)
        return lambda: program.backward(x, y)

    def eager_step(loss, parameters):
        return lambda: np.mean(eager(loss, (x, y), parameters)[0])

    assert train(compiled_step) == pytest.approx(train(eager_step), rel=1e-9)


def test_gradients_accumulate_and_sum_is_the_mean_times_n():
    w = Value(2.0)
    program = scalar.compile(lambda x: w * x)
    assert program.backward([1.0, 3.0]) == 4.0
    assert program.backward([1.0, 3.0], reduction="sum") == 8.0
    assert w.grad == 2.0 + 4.0
    assert program.parameters() == [w]


def test_an_expression_that_exists_already():
    x, y, w = Value(1.0), Value(2.0), Value(3.0)
    program = scalar.compile((w * x - y) ** 2, inputs=[x, y])
    assert program([0.0, 1.0, 2.0], [1.0, 1.0, 1.0]).tolist() == [1.0, 4.0, 25.0]
    program.backward([1.0], [0.0])
    assert w.grad == 6.0
    assert x.grad == y.grad == 0.0


@pytest.mark.parametrize("engine", ENGINES)
def test_results_that_need_no_input_or_no_gradient(engine):
    w = Value(3.0)
    assert scalar.compile(lambda x: w * w, engine=engine).backward([1.0, 2.0, 3.0]) == 9.0
    assert w.grad == pytest.approx(6.0)
    assert scalar.compile(lambda x: x * 2, engine=engine).backward([1.0, 2.0]) == 3.0
    assert scalar.compile(lambda x: x, engine=engine)([1.0, 2.0]).tolist() == [1.0, 2.0]
    assert scalar.compile(lambda: w * 2, engine=engine)().tolist() == [6.0]


@pytest.mark.parametrize("engine", ENGINES)
def test_ieee_numbers_instead_of_exceptions(engine):
    result = scalar.compile(lambda x: x.log(), engine=engine)([1.0, 0.0, -1.0])
    assert result[1] == -math.inf
    assert math.isnan(result[2])
    w = Value(1.0)
    scalar.compile(lambda x: w / x, engine=engine).backward([1.0, 0.0])  # the last block is not full
    assert w.grad == math.inf


def test_functions_that_look_at_numbers_are_refused():
    w = Value(1.0)
    for function in (
        lambda x: x if x > 0 else -x,
        lambda x: max(x, w),
        lambda x: x * w.data,
        lambda x: x * 2 if w < 2 else x,
        lambda x: x * (w == 1.0),
    ):
        with pytest.raises(errors.KindError, match=r"test_scalar_compile.py:\d+") as caught:
            scalar.compile(function)([1.0])
        assert f":{function.__code__.co_firstlineno}" in str(caught.value)
    assert w > 0  # the watch is over
    assert w.data == 1.0


def test_the_watch_is_on_one_thread_only():
    seen = []

    def other_thread():
        seen.append(Value(1.0) < Value(2.0) and Value(5.0).data == 5.0)

    def function(x):
        thread = threading.Thread(target=other_thread)
        thread.start()
        thread.join()
        return x * 2

    assert scalar.compile(function)([2.0]).tolist() == [4.0]
    assert seen == [True]


def test_messages():
    with pytest.raises(errors.KindError, match="returned Vector, expected one Value"):
        scalar.compile(lambda x: Vector([*x]))([[1.0, 2.0]])
    program = scalar.compile(lambda x, y: x * y)
    with pytest.raises(errors.ArgumentError, match="before the first call"):
        _ = program.source
    for batch in (([1.0], [1.0, 2.0]), (1.0, 2.0), ([], [])):
        with pytest.raises(errors.ShapeError, match="at least one sample"):
            program(*batch)
    with pytest.raises(errors.ArgumentError, match="'gpu'"):
        scalar.compile(lambda x: x, engine="gpu")
    with pytest.raises(errors.ArgumentError, match="'max'"):
        program.backward([1.0], [1.0], reduction="max")
    with pytest.raises(errors.ShapeError, match="1 inputs was called with 2 columns"):
        scalar.compile(Value(1.0) * 2, inputs=[Value(1.0)])([[1.0, 2.0]])


def test_source_is_a_program_that_runs():
    w, b = Value(3.0), Value(1.0)
    program = scalar.compile(lambda x: (w * x + b) ** 2)
    program([1.0, 2.0])
    names = {"np": np}
    exec(program.source, names)  # noqa: S102 - that it runs is under test
    result, grads = names["program"]([np.array([1.0, 2.0])], [3.0, 1.0], np.full(2, 0.5))
    assert result.tolist() == [16.0, 49.0]
    assert grads == [18.0, 11.0]
    assert "define void @step" in program.llvm


def test_without_llvmlite():
    code = (
        "import sys; sys.modules['llvmlite'] = None\n"
        "from glassgrad import scalar\n"
        "w = scalar.Value(3.0)\n"
        "f = scalar.compile(lambda x: w * x)\n"
        "print(f([1.0, 2.0]).tolist(), f.backward([1.0, 2.0]), w.grad, f.llvm)\n"
        "try: scalar.compile(lambda x: x, engine='llvm')([1.0])\n"
        "except ImportError: print('absent')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[3.0, 6.0] 4.5 1.5 None\nabsent\n"


def test_a_wide_network_compiles_in_parts():
    """More steps than one basic block should hold."""
    model = MLP(3, [24, 24, 1], act="tanh")
    x = np.random.default_rng(1).normal(size=(9, 3))
    program = tracing.trace(lambda row: model(row) ** 2, [x[0].tolist()])
    assert emit_llvm._Writer(program).text().count("\npart") > 10
    assert_same(lambda row: model(row) ** 2, (x,), model.parameters(), "llvm")


def test_a_step_takes_a_hundredth_of_micrograds_time():
    engine = pytest.importorskip("micrograd.engine", reason="micrograd is the peer of this test")
    nn = pytest.importorskip("micrograd.nn", reason="micrograd is the peer of this test")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    y = np.sign(x[:, 0])
    theirs, mine = nn.MLP(2, [16, 16, 1]), MLP(2, [16, 16, 1])
    program = scalar.compile(lambda row, label: (1 - label * mine(row)).relu())
    program(x, y)

    def their_step():
        scores = [theirs(list(map(engine.Value, row))) for row in x]
        loss = sum((1 + -label * score).relu() for label, score in zip(y, scores, strict=True)) * (1 / len(y))
        theirs.zero_grad()
        loss.backward()
        for p in theirs.parameters():
            p.data -= 0.1 * p.grad

    def my_step():
        mine.zero_grad()
        program.backward(x, y)
        for p in mine.parameters():
            p.data -= 0.1 * p.grad

    def seconds(step, repeats):
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            step()
            times.append(time.perf_counter() - start)
        return min(times)

    assert seconds(my_step, 20) < 0.01 * seconds(their_step, 2)
