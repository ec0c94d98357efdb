"""A step that cannot be compiled runs eagerly, with one warning; its state equals that of eager mode."""

from __future__ import annotations

import gc
import random
import warnings
import weakref

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, nn, optim
from glassgrad.compile import backends
from glassgrad.compile.ir import passes
from glassgrad.compile.llvm.module.target import host, parsed
from glassgrad.nn import functional as F

BACKENDS = ["numpy", "llvm"]
X = gg.tensor([[1.0, -2.0], [3.0, 4.0]])


def item(x):
    return x * x.sum().item()


def branch(x):
    return x if x.sum() > 0 else -x


def mask(x):
    return x[x > 0]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", [item, branch, mask])
def test_one_warning_names_the_line_and_the_reason(function, backend):
    run = gg.compile(function, backend=backend)
    with pytest.warns(errors.CompileWarning) as told:
        first = run(X)
    assert first.tolist() == function(X).tolist()
    assert run(X + 1).tolist() == function(X + 1).tolist()  # a second warning would be an error here
    assert run(X[:1]).tolist() == function(X[:1]).tolist()
    (warning,) = told
    text = str(warning.message)
    assert "cannot be compiled and runs eagerly" in text
    assert "test_running_eagerly.py:" in text
    assert "strict=True" in text
    assert warning.filename == __file__
    assert run.traces == 0
    assert len(run.refusals) == 2  # calls of two shapes
    with pytest.raises(errors.CompileError, match="runs eagerly, because"):
        _ = run.graph


@pytest.mark.parametrize("error", [KeyError("x"), ZeroDivisionError("y"), AssertionError(), IndexError("z")])
@pytest.mark.parametrize("stage", ["passes", "build"])
def test_a_failure_of_the_compiler_is_no_error(stage, error, monkeypatch):
    def fail(*_, **__):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(*((passes, "run") if stage == "passes" else (backends, "build")), fail)
        run = gg.compile(lambda x: x * 2, backend="numpy")
        with pytest.warns(errors.CompileWarning, match=type(error).__name__):
            assert run(X).tolist() == (X * 2).tolist()
        with pytest.raises(errors.CompileError, match="the compiler failed at"):
            gg.compile(lambda x: x * 2, backend="numpy", strict=True)(X)


def test_a_failure_names_op_and_line(monkeypatch):
    from glassgrad.compile.numpy import templates

    def fail(instr, operands):
        raise LookupError("nothing there")

    monkeypatch.setitem(templates.TEMPLATES, "tanh", fail)
    run = gg.compile(lambda x: x.tanh() * 2, backend="numpy")
    with pytest.warns(errors.CompileWarning, match=r"failed at tanh at .*test_running_eagerly.py:\d+ \(LookupError"):
        assert run(X).tolist() == (X.tanh() * 2).tolist()


def momentum_step():
    gg.manual_seed(5)
    model = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2))
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, dampening=0.5)
    seen = []

    def step(x, labels):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        seen.append(random.random())
        return loss

    def look():
        state = [model.state_dict(), *(dict(one) for one in optimizer.state.values())]
        arrays = [value.numpy().tolist() for part in state for value in part.values() if isinstance(value, gg.Tensor)]
        return arrays, gg.default_generator.get_state(), random.getstate(), list(seen)

    return step, look


@pytest.mark.parametrize("fails_in", ["tracing", "passes", "planning", "running"])
def test_the_state_is_that_of_eager_mode(fails_in, monkeypatch):
    labels = gg.tensor([0, 1])
    results = []
    for compiled in (False, True):
        random.seed(3)
        step, look = momentum_step()
        with monkeypatch.context() as patch:
            if compiled:
                refuse(patch, fails_in)
                step = gg.compile(step, backend="llvm" if fails_in == "planning" else "numpy")
                with pytest.warns(errors.CompileWarning):
                    step(X, labels)
                step(X, labels)
            else:
                step(X, labels)
                step(X, labels)
        results.append(look())
    assert results[0] == results[1]


def refuse(patch, where):
    """Let compiling fail at a stage. Drawing from Python's own stream makes tracing fail by itself."""
    from glassgrad.compile import stages
    from glassgrad.compile.front import checks
    from glassgrad.compile.numpy.program import NumpyStep

    def fail(*_, **__):
        return next(iter(()))

    if where != "tracing":
        patch.setattr(checks, "check_streams", lambda streams: None)
        patch.setattr(
            *{"passes": (passes, "run"), "planning": (stages, "make_plan"), "running": (NumpyStep, "__call__")}[where],
            fail,
        )


def test_streams_are_drawn_from_as_in_eager_mode():
    own = np.random.default_rng(0)

    def run(x):
        return x + own.normal() + np.random.rand() + random.random()  # noqa: NPY002 - old streams

    found = []
    for function in (run, gg.compile(run, backend="numpy")):
        own = np.random.default_rng(0)
        np.random.seed(0)  # noqa: NPY002 - as above
        random.seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", errors.CompileWarning)
            found.append([function(X).tolist() for _ in range(3)])
    assert found[0] == found[1]


def test_attributes_are_what_they_were_before_the_eager_run():
    class Cell:
        def __init__(self):
            self.h = gg.ones(2)
            self.steps = 0
            self.log = [gg.zeros(2)]

        def __call__(self, x):
            self.steps += 1
            self.log[0] = self.log[0] + x.sum(0)
            self.h = self.h * x.sum(0)
            return self.h * float(self.h.sum())

    eager, other = Cell(), Cell()
    run = gg.compile(other, backend="numpy")
    for _ in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", errors.CompileWarning)
            assert run(X).tolist() == eager(X).tolist()
    assert other.h.tolist() == eager.h.tolist()
    assert other.log[0].tolist() == eager.log[0].tolist()
    assert other.steps == eager.steps == 3


class OwnError(Exception):
    pass


@pytest.mark.parametrize(
    ("function", "error", "match"),
    [
        (lambda x: x @ gg.ones(3, 2), errors.ShapeError, "x has shape"),
        (lambda x: {}[x.shape], KeyError, None),
        (lambda x: list(x.shape)[7], IndexError, None),
        (lambda x: (_ for _ in ()).throw(OwnError("mine")), OwnError, "mine"),
        (lambda x: 1 / 0, ZeroDivisionError, None),
        (lambda x: gg.gather(x, 0, gg.full((1, 2), 9)), IndexError, None),
        (lambda x: x.no_such_method(), AttributeError, "no_such_method"),
    ],
)
def test_errors_of_the_users_own_are_raised_as_in_eager_mode(function, error, match):
    for run in (function, gg.compile(function, backend="numpy")):
        with pytest.raises(error, match=match):
            run(X)


def test_a_refused_trace_is_let_go():
    big = []

    def run(x):
        y = x * 2
        big.append(weakref.ref(y))
        return y * y.sum().item()

    gc.collect()
    gc.disable()
    try:
        for strict in (False, True):
            with pytest.raises((errors.CompileError, errors.CompileWarning)):  # warnings are errors here
                gg.compile(run, backend="numpy", strict=strict)(X)
        kept, big = list(big), []
    finally:
        gc.enable()
    assert len(kept) == 0 or all(ref() is None for ref in kept)


def test_after_many_kinds_of_calls_none_is_traced_any_more():
    traced = []

    def run(x, factor):
        traced.append(type(x.array))
        return x * (factor if x.sum() > 0 else -factor)

    step = gg.compile(run, backend="numpy")
    with pytest.warns(errors.CompileWarning):
        step(X, 0)
    for factor in range(1, 20):
        assert step(X, factor).tolist() == (X * factor).tolist()
    assert sum(kind is not np.ndarray for kind in traced) <= 10


def test_a_compiled_function_goes_on_beside_refused_calls():
    def run(x):
        return x * 2 if x.ndim == 1 else x * float(x.sum())

    step = gg.compile(run, backend="numpy")
    assert step(gg.ones(2)).tolist() == [2, 2]
    with pytest.warns(errors.CompileWarning):
        step(X)
    assert step(gg.ones(2)).tolist() == [2, 2]
    assert step.traces == 1
    assert step(X).tolist() == run(X).tolist()


@pytest.mark.parametrize("backend", BACKENDS)
def test_memory_that_is_written_to_under_another_name(backend):
    weight = gg.ones(3)

    def step(x):
        weight.mul_(2)
        return x * 1

    run = gg.compile(step, backend=backend)
    assert run(gg.zeros(3)).tolist() == [0, 0, 0]
    with pytest.warns(errors.CompileWarning, match="lie in the same memory"):
        assert run(weight.detach()).tolist() == [4, 4, 4]
    assert run(weight.detach()).tolist() == [8, 8, 8]
    assert run(gg.zeros(3)).tolist() == [0, 0, 0]
    assert weight.tolist() == [16, 16, 16]


BROKEN = """
define void @step(ptr %a, i1 %go) {
entry:
  br i1 %go, label %then, label %after
then:
  %x = load float, ptr %a
  br label %after
after:
  store float %x, ptr %a
  ret void
}
"""


def test_a_module_that_is_not_well_formed_never_reaches_llvms_passes(monkeypatch):
    with pytest.raises(RuntimeError, match="does not dominate all uses"):
        parsed(BROKEN)
    with pytest.raises(RuntimeError, match="does not dominate all uses"):
        host().compile(BROKEN)
    with pytest.raises(RuntimeError, match="parsing error"):
        host().compile("define nothing")
    from glassgrad.compile.llvm.module.step import StepModule

    monkeypatch.setattr(StepModule, "emit", lambda *_: BROKEN)
    run = gg.compile(lambda x: x.sin() + 0.123, backend="llvm")
    with pytest.warns(errors.CompileWarning, match="dominate"):
        assert run(X).tolist() == (X.sin() + 0.123).tolist()


def test_a_function_that_leads_to_a_whole_library_runs_eagerly_and_says_so() -> None:
    space = {}
    many = "".join(f"def f{at}(x):\n    return f{at + 1}(x) if x is None else x\n" for at in range(4200))
    exec(compile(many + "def f4200(x):\n    return x\n", "/somewhere/algebra.py", "exec"), space)  # noqa: S102 - a library
    step = gg.compile(lambda x: space["f0"](x) * 2, backend="numpy")
    with pytest.warns(errors.CompileWarning, match=r"more than 4096 functions, most of them in .*algebra\.py"):
        assert step(gg.ones(2)).tolist() == [2.0, 2.0]
    assert len(step.refusals) == 1
