"""Errors of code that cannot be compiled: the op, the user's line, the origin of the value, and a remedy."""

from __future__ import annotations

import gc
import inspect
import math
import queue
import signal
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, nn, optim
from glassgrad.compile import api
from glassgrad.compile.front.state.grad_watch import GradWatch
from glassgrad.nn import functional as F


def compiled(function):
    return gg.compile(function, backend="numpy", strict=True)


def refused(function, *args):
    with pytest.raises(errors.GlassgradError) as caught:
        compiled(function)(*args)
    return str(caught.value)


X = gg.tensor([[1.0, -2.0], [3.0, 4.0]])


def branch(x):
    total = x.sum()
    if total > 0:
        return x
    return -x


def number(x):
    total = x.sum()
    return x * float(total)


def item(x):
    return [x.mean().item()]


def to_numpy(x):
    h = x * 2
    return h.numpy()


def mask(x):
    return x[x > 0]


def unique(x):
    return gg.unique(x)


def loop(x):
    while x.sum() < 10:
        x = x * 2
    return x


def index(x):
    rows = [10, 20, 30]
    return rows[x.argmax()]


def size(x):
    n = x.sum().long()
    return gg.zeros(n)


@pytest.mark.parametrize(
    ("function", "line", "advice"),
    [
        (branch, "if total > 0:", "where(condition, a, b)"),
        (number, "return x * float(total)", "float() on the result"),
        (item, "return [x.mean().item()]", ".item() on the result"),
        (to_numpy, "return h.numpy()", "do it outside"),
        (mask, "return x[x > 0]", "where(mask, x, 0)"),
        (unique, "return gg.unique(x)", "call it outside"),
        (loop, "while x.sum() < 10:", "where(condition, a, b)"),
        (index, "return rows[x.argmax()]", "index a tensor with it"),
        (size, "return gg.zeros(n)", "pass it as a Python int"),
    ],
)
def test_the_numbers_are_asked_for(function, line, advice):
    text = refused(function, X)
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    expected = next(at for at, one in enumerate(lines, 1) if one.strip() == line)
    assert f"test_failing_well.py:{expected}" in text
    assert advice in text


def test_the_origin_of_the_value_is_named():
    text = refused(branch, X)
    assert "'total'" in text or "computed at" in text
    assert "test_failing_well.py" in text
    assert "f32[]" in text or "bool[]" in text


def test_shapes_that_do_not_fit_name_the_variables():
    def run(x):
        weights = gg.ones(3, 2)
        return x @ weights

    text = refused(run, X)
    assert "x has shape (2, 2)" in text
    assert "weights has shape (3, 2)" in text


def test_a_shape_that_changes_in_the_middle():
    w = gg.ones(2)

    def run(x):
        w.data = x
        return w * 2

    text = refused(run, X)
    assert "w was float32[2] when the compiled function began and is float32[2, 2]" in text
    assert w.tolist() == [1.0, 1.0]


def test_traced_values_that_are_stored_away():
    class Keeper:
        def __init__(self, value=None):
            self.value = value

    log, hidden = [], queue.SimpleQueue()

    def attribute(x):
        doubled = x * 2
        log.append(Keeper(doubled))
        return doubled

    def queued(x):
        doubled = x * 2
        log.append(doubled)
        hidden.put(doubled)
        return doubled

    assert "it was stored in Keeper.value" in refused(attribute, X)
    assert "'doubled' outlives the compiled function" in refused(queued, X)
    assert log == []
    with pytest.raises(errors.CompileError, match="a finished trace of a compiled function"):
        hidden.get() + 1


def test_a_write_through_a_view_that_cannot_be_expressed():
    w = gg.ones(2)

    def run(x):
        wide = w.expand(2, 2)
        wide.add_(x)
        return w * 1

    assert "a compiled function cannot express" in refused(run, X)
    assert w.tolist() == [1.0, 1.0]


def test_overlapping_memory_that_is_written_to():
    base = gg.zeros(4)
    first, second = base[:3], base[1:]

    def run(x):
        first.add_(1)
        return second * 1

    text = refused(run, X)
    assert "lie in the same memory" in text
    assert base.tolist() == [0.0] * 4


def test_arrays_that_are_written_to_while_tracing():
    total, counts = np.zeros(2), [np.ones(2)]

    def run(x):
        y = x * 2
        total[0] += 1
        counts[0] *= 3
        return y

    text = refused(run, X)
    assert "writes to a NumPy array at" in text
    assert "test_failing_well.py" in text
    assert "keep the numbers in a tensor" in text
    total += 1
    assert total.tolist() == [1.0, 1.0]
    assert counts[0].tolist() == [1.0, 1.0]


def test_what_cannot_be_returned():
    assert "returned a generator" in refused(lambda x: (part for part in x), X)
    assert "returned a set at [0]['a']" in refused(lambda x: [{"a": {1}}], X)


def test_options_and_arguments_are_checked():
    with pytest.raises(errors.ArgumentError, match="backend='cuda' is not possible"):
        gg.compile(lambda x: x, backend="cuda")
    with pytest.raises(errors.KindError, match="expects a function, given int"):
        gg.compile(3)
    f = compiled(lambda x: x)
    with pytest.raises(errors.CompileError, match="does not exist before the first call"):
        _ = f.graph


def test_a_schedule_that_changes_an_option_inside():
    w = gg.ones(2, requires_grad=True)
    optimizer = optim.SGD([w], lr=0.5)

    def run():
        (w * w).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        optimizer.param_groups[0]["lr"] *= 0.9

    with pytest.raises(errors.CompileError, match=r"changed the option 'lr' from 0\.5 to 0\.45"):
        compiled(run)()
    assert optimizer.param_groups[0]["lr"] == 0.5
    assert w.tolist() == [1.0, 1.0]


# --- nothing is left half done --------------------------------------------------------------------


class BrokenError(Exception):
    pass


@pytest.mark.parametrize("problem", [BrokenError, KeyboardInterrupt, errors.CompileError, MemoryError])
@pytest.mark.parametrize("where", ["before backward", "after backward", "after the step"])
def test_nothing_changes_when_the_trace_fails(where, problem):
    model = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    labels = gg.tensor([0, 1])
    F.cross_entropy(model(X), labels).backward()
    grads = [p.grad for p in model.parameters()]
    values = [grad.array.copy() for grad in grads]
    before = {name: value.array.copy() for name, value in model.state_dict().items()}
    arrays = [value.array for value in model.parameters()]
    stream = gg.default_generator.get_state()
    fail = True

    def stop(now):
        if fail and now == where:
            raise problem

    def step(x):
        loss = F.cross_entropy(F.dropout(model(x), 0.3), labels)
        optimizer.zero_grad()
        stop("before backward")
        loss.backward()
        stop("after backward")
        optimizer.step()
        stop("after the step")
        return loss

    f = compiled(step)
    with pytest.raises(problem):
        f(X)
    for name, value in model.state_dict().items():
        assert type(value.array) is np.ndarray
        np.testing.assert_array_equal(value.array, before[name])
    assert all(p.array is array for p, array in zip(model.parameters(), arrays, strict=True))
    for p, grad, value in zip(model.parameters(), grads, values, strict=True):
        assert p.grad is grad
        np.testing.assert_array_equal(grad.array, value)
    assert gg.default_generator.get_state() == stream
    assert f.traces == 0
    assert all(type(one.array) is np.ndarray for state in optimizer.state.values() for one in state.values())
    fail = False
    assert np.isfinite(f(X).item())  # and the function works after all


@pytest.mark.parametrize("when", ["tracing", "compiling", "running"])
def test_an_optimizer_has_no_state_from_a_step_that_failed(when, monkeypatch):
    """The first step with momentum and dampening is another one than those that find a buffer."""
    weight = nn.Parameter(gg.ones(4, 3))
    optimizer = optim.SGD([weight], lr=0.1, momentum=0.9, dampening=0.5)

    def run(x, labels):
        loss = F.cross_entropy(x @ weight, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item() if when == "tracing" else loss

    step = gg.compile(run, backend="numpy", strict=True)
    good, bad = gg.tensor([0, 2]), gg.tensor([0, 3 if when == "running" else 1])
    with monkeypatch.context() as patch:
        if when == "compiling":
            patch.setattr(api.backends, "build", lambda *_: 1 / 0)
        with pytest.raises((errors.GlassgradError, IndexError)):
            step(gg.eye(4)[:2], bad)
    assert not optimizer.state
    assert weight.grad is None
    assert weight.tolist() == [[1.0] * 3] * 4
    when = "again"
    compiled = gg.compile(run, backend="numpy") if step.traces == 0 else step
    for _ in range(2):
        compiled(gg.eye(4)[:2], good)
    found = weight.tolist()
    weight.data = gg.ones(4, 3)
    optimizer.state.clear()
    for _ in range(2):
        run(gg.eye(4)[:2], good)
    np.testing.assert_allclose(found, weight.tolist(), rtol=1e-6)


class InterruptAt:
    """Ctrl-C at the n-th function that is entered or left while a function is traced, compiled and run.

    Generators are passed by: what is raised while Python closes one, as that of an `any` that has found its answer,
    comes to nobody.
    """

    def __init__(self, number):
        self.number, self.count = number, 0

    def __call__(self, frame, event, argument):
        self.count += 1
        if self.count >= self.number and not frame.f_code.co_flags & inspect.CO_GENERATOR:
            sys.setprofile(None)
            signal.raise_signal(signal.SIGINT)


def momentum_step():
    gg.manual_seed(1)
    weight, table = nn.Parameter(gg.ones(3)), np.arange(3.0, dtype=np.float32)
    optimizer = optim.SGD([weight], lr=0.1, momentum=0.9, dampening=0.5)

    def step(x):
        optimizer.zero_grad()
        loss = (F.dropout(weight, 0.5) * x * table).sum()
        loss.backward()
        optimizer.step()
        return loss

    def look():
        state = {name: value.tolist() for name, value in optimizer.state.get(weight, {}).items()}
        grad = None if weight.grad is None else weight.grad.tolist()
        return weight.tolist(), grad, state, gg.default_generator.get_state(), table.flags.writeable

    return gg.compile(step, backend="numpy"), look


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals need the main thread")
@pytest.mark.parametrize("moments", [5, pytest.param(20, marks=pytest.mark.slow)])
def test_ctrl_c_at_any_moment(moments):
    step, look = momentum_step()
    before = look()
    step(X[0, :1])
    after = look()
    step, look = momentum_step()
    gc.collect()  # the trace looks at every object there is
    whole = InterruptAt(math.inf)
    sys.setprofile(whole)
    step(X[0, :1])
    sys.setprofile(None)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupts = 0
    try:
        for number in [
            *range(5, whole.count, whole.count // moments),
            *range(whole.count - 800, whole.count, 1600 // moments),
        ]:
            step, look = momentum_step()
            assert look() == before
            try:
                sys.setprofile(InterruptAt(number))
                step(X[0, :1])
                sys.setprofile(None)
            except KeyboardInterrupt:
                interrupts += 1
            found = look()
            assert found in (before, after)
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
            assert step(X[0, :1]).item() is not None
    finally:
        signal.signal(signal.SIGINT, handler)
    assert interrupts > moments


def test_ctrl_c_while_gradients_are_put_back_waits_and_is_told(monkeypatch):
    original, calls = GradWatch.restore, []

    def interrupted_once(watch):
        calls.append(watch)
        if len(calls) == 1:
            raise KeyboardInterrupt
        original(watch)

    monkeypatch.setattr(GradWatch, "restore", interrupted_once)
    w = gg.ones(2, requires_grad=True)
    w.grad = gg.full((2,), 7.0)

    def run(x):
        w.grad = None
        (w * x).sum().backward()
        raise ValueError("stop")

    with pytest.raises(KeyboardInterrupt):
        compiled(run)(gg.ones(2))
    assert len(calls) == 2
    assert w.grad.tolist() == [7.0, 7.0]


def test_a_failing_program_leaves_state_as_it_was():
    w = gg.ones(2)
    table = gg.arange(3).float()

    def run(index):
        w.add_(1)
        return table[index]

    f = compiled(run)
    f(gg.tensor([0]))
    assert w.tolist() == [2.0, 2.0]
    with pytest.raises(IndexError):
        f(gg.tensor([5]))
    assert w.tolist() == [2.0, 2.0]


def test_saved_values_that_are_overwritten_before_backward():
    w = gg.ones(2, requires_grad=True)

    def run(x):
        h = w * x
        y = h.exp()
        with gg.no_grad():
            y.mul_(2)
        y.sum().backward()

    with pytest.raises(errors.GlassgradError, match="overwritten in place"):
        run(X)
    assert "overwritten in place" in refused(run, X)
    assert w.grad is None


def test_other_threads_are_not_traced():
    started, go_on = threading.Event(), threading.Event()

    def run(x):
        started.set()
        assert go_on.wait(5)
        return x + 1

    f = compiled(run)
    thread = threading.Thread(target=f, args=(X,))
    thread.start()
    assert started.wait(5)
    try:
        assert isinstance((X * 2).array, np.ndarray)
        assert (gg.rand(2) + 1).numpy().shape == (2,)
    finally:
        go_on.set()
        thread.join()
