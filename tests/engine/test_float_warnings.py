"""NumPy's floating-point warnings name the user's line; a NaN from a branch that `where` did not take is recognised."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.engine.reports import float_warnings
from glassgrad.nn import functional as F


def told(function: Callable[[], Any], action: Any = "always") -> list[Any]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter(action)
        function()
    return found


OPS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "log": (lambda x: x.log(), "divide by zero encountered in log"),
    "sqrt": (lambda x: gg.sqrt(x - 1), "invalid value encountered in sqrt"),
    "divide": (lambda x: 1 / x, "divide by zero encountered in divide"),
    "exp": (lambda x: (x * 1e30).exp(), "overflow encountered in exp"),
}


@pytest.mark.parametrize("name", OPS)
def test_a_warning_names_the_line_of_the_op(name: str) -> None:
    f, words = OPS[name]
    found = told(lambda: f(gg.tensor([0.0, 4.0], requires_grad=True)))
    assert words in [str(one.message) for one in found]
    assert {(one.filename, one.lineno) for one in found} == {(__file__, f.__code__.co_firstlineno)}


def test_each_line_of_the_user_is_told_once() -> None:
    x = gg.tensor([0.0])

    def two_lines() -> None:
        for _ in range(3):
            x.log()
            x.log()

    found = told(two_lines, "default")
    assert len({one.lineno for one in found}) == len(found) == 2


def test_filters_and_errstate_are_the_users() -> None:
    x = gg.tensor([0.0])
    assert told(x.log, "ignore") == []
    with np.errstate(all="ignore"):
        assert told(x.log) == []
    with gg.doctor.allow_nonfinite():
        assert told(x.log) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="divide by zero"):
            x.log()


def test_numpy_s_own_warnings_stay_as_they_are() -> None:
    (found,) = told(lambda: np.log(np.zeros(1)))
    assert (found.filename, found.category) == (__file__, RuntimeWarning)


TRAPS: dict[str, Callable[[Any], Any]] = {
    "sqrt": lambda x: gg.where(x > 0, x.sqrt(), 0.0),
    "power": lambda x: gg.where(x > 0, x**0.5, 0.0),
    "divide": lambda x: gg.where(x > 0, x / x, 0.0),
    "masked_fill": lambda x: (x.log() * x).masked_fill(x <= 0, 0.0),
}


@pytest.mark.parametrize("name", TRAPS)
def test_a_hidden_branch_is_recognised_at_its_line_once(name: str) -> None:
    float_warnings.forget()
    f = TRAPS[name]

    def twice() -> None:
        for _ in range(2):
            x = gg.tensor([0.0, 4.0], requires_grad=True)
            f(x).sum().backward()
            assert np.isnan(x.grad.numpy()).tolist() == [True, False]

    (found,) = [one for one in told(twice) if one.category is errors.HiddenBranchWarning]
    assert (found.filename, found.lineno) == (__file__, f.__code__.co_firstlineno)
    assert "is NaN in 1 place, the first at [0]" in str(found.message)
    assert "safe_where(mask, f, x)" in str(found.message)


def test_a_filter_makes_an_error_of_a_hidden_branch_in_every_step() -> None:
    float_warnings.forget()
    for _ in range(2):
        x = gg.tensor([0.0, 4.0], requires_grad=True)
        loss = TRAPS["sqrt"](x).sum()
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            warnings.simplefilter("error", errors.HiddenBranchWarning)
            with pytest.raises(errors.HiddenBranchWarning, match="of sqrt"):
                loss.backward()


def test_loaded_again_it_shows_warnings_as_before() -> None:
    try:
        importlib.reload(float_warnings)
        importlib.reload(float_warnings)
        words = [
            str(one.message) for one in told(lambda: (warnings.warn("mine", stacklevel=1), gg.tensor([0.0]).log()))
        ]
    finally:
        importlib.reload(float_warnings)
    assert words == ["mine", "divide by zero encountered in log"]


def test_a_nan_of_another_kind_is_no_hidden_branch() -> None:
    def backward() -> None:
        x = gg.tensor([0.0, 4.0], requires_grad=True)
        x.sqrt().sum().backward()  # infinite, and meant

    assert [one.category for one in told(backward)] == [RuntimeWarning]


# Numbers that are far out, and results that are finite all the same.
FINE: dict[str, Callable[[Any], Any]] = {
    "sigmoid": F.sigmoid,
    "softplus": F.softplus,
    "gelu": F.gelu,
    "logsigmoid": F.logsigmoid,
    "log_softmax": lambda x: F.log_softmax(x, 0),
    "layer_norm of equals": lambda x: F.layer_norm(x * 0, (3,)),
    "normalize 0": lambda x: F.normalize(x * 0, dim=0),
    "norm of 0": lambda x: gg.linalg.norm(x * 0),
    "safe_where": lambda x: gg.safe_where(x > 0, gg.sqrt, x),
}


@pytest.mark.parametrize("name", FINE)
def test_there_is_no_false_warning(name: str) -> None:
    def both() -> None:
        x = gg.tensor([-1e4, 0.0, 1e4], requires_grad=True)
        FINE[name](x).sum().backward()
        assert np.isfinite(x.grad.numpy()).all()

    assert told(both) == []


@pytest.mark.parametrize("way", ["create_graph", "grad"])
def test_a_hidden_branch_is_told_in_walks_that_are_not_plain(way: str) -> None:
    w = gg.tensor([0.0, 1.0, 4.0], requires_grad=True)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if way == "create_graph":
            gg.where(w > 0, w.sqrt(), 0.0).sum().backward(create_graph=True)
        else:
            gg.autograd.grad(gg.where(w > 0, (2 * w).sqrt(), 0.0).sum(), w)
    (found,) = [one for one in told if one.category is gg.errors.HiddenBranchWarning]
    assert str(found.message).startswith("the gradient of sqrt")
    assert found.filename == __file__


# --- compiled steps -----------------------------------------------------------------------------------------------


def compiled(f: Callable[[Any], Any], backend: str) -> tuple[Any, Any]:
    """Return a compiled training step of f, and its weight."""
    w = gg.tensor([0.0, 4.0, 9.0], requires_grad=True)
    optimizer = gg.optim.SGD([w], lr=0.1)

    def step() -> Any:
        optimizer.zero_grad()
        loss = f(w).sum()
        loss.backward()
        optimizer.step()
        return loss

    return gg.compile(step, backend=backend), w


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("name", TRAPS)
def test_a_compiled_step_tells_of_a_hidden_branch_once(name: str, backend: str) -> None:
    if backend == "llvm":
        pytest.importorskip("llvmlite", reason="native code needs llvmlite")
    float_warnings.forget()
    step, w = compiled(TRAPS[name], backend)
    found = [one for one in told(lambda: [step() for _ in range(3)]) if one.category is errors.HiddenBranchWarning]
    assert [(one.filename, one.lineno) for one in found] == [(__file__, TRAPS[name].__code__.co_firstlineno)]
    assert "is NaN in " in str(found[0].message)
    assert "safe_where(mask, f, x)" in str(found[0].message)
    assert np.isnan(w.grad.numpy()).tolist() == [True, False, False]
    assert "isnan" not in str(step.source)


def test_a_filter_makes_an_error_of_it_there_and_errstate_silences_it() -> None:
    float_warnings.forget()
    step, _ = compiled(TRAPS["sqrt"], "auto")
    with np.errstate(all="ignore"):
        assert told(step) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.HiddenBranchWarning)
        with pytest.raises(errors.HiddenBranchWarning, match="of sqrt"):
            compiled(TRAPS["sqrt"], "auto")[0]()


QUIET: dict[str, tuple[Callable[[Any], Any], bool]] = {  # whether something is counted at all
    "safe_where": (lambda x: gg.safe_where(x > 0, gg.log, x), True),
    "another NaN": (lambda x: gg.where(x > 5, x, 0.0).sqrt(), False),
    "constants": (lambda x: gg.where(x > 0, x / 2 + x**2, 0.0), False),
    "eps": (lambda x: gg.where(x > 0, (x * x + 1e-5).rsqrt(), 0.0), False),
    "cross_entropy": (lambda x: F.cross_entropy(F.layer_norm(x * x, (3,))[None], gg.tensor([1])), False),
}


@pytest.mark.parametrize("name", QUIET)
def test_other_compiled_steps_count_nothing_or_find_nothing(name: str) -> None:
    f, counts = QUIET[name]
    step, _ = compiled(f, "auto")
    assert [one for one in told(step) if one.category is errors.HiddenBranchWarning] == []
    assert bool(step.capture.branches) == counts


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("inside", [True, False])
def test_a_backward_pass_from_a_compiled_result_tells_of_it_too(inside: bool, backend: str) -> None:
    if backend == "llvm":
        pytest.importorskip("llvmlite", reason="native code needs llvmlite")
    float_warnings.forget()
    w = gg.tensor([0.0, 4.0, 9.0], requires_grad=True)

    def root(x: Any) -> Any:
        y = x.sqrt()
        return gg.where(x > 0, y, 0.0) if inside else y

    line = root.__code__.co_firstlineno + 1
    f = gg.compile(root, backend=backend)

    def step() -> None:
        y = f(w)
        (y if inside else gg.where(w > 0, y, 0.0)).sum().backward()

    found = [one for one in told(lambda: [step() for _ in range(2)]) if one.category is errors.HiddenBranchWarning]
    assert [(one.filename, one.lineno) for one in found] == [(__file__, line)]
    assert str(found[0].message).startswith("the gradient of sqrt")
    assert "is NaN in 1 place:" in str(found[0].message)
    assert np.isnan(w.grad.numpy()).tolist() == [True, False, False]


def test_gradients_of_a_compiled_result_come_without_the_counts() -> None:
    x, w = gg.tensor([1.0, 4.0], requires_grad=True), gg.tensor([2.0, 3.0], requires_grad=True)
    f = gg.compile(lambda x, w: (gg.where(x > 2, (x * w).sqrt(), x), (x / w).log()))
    root, log = f(x, w)
    assert told((root.sum() + log.sum()).backward) == []
    expected_x = [1 + 1 / 1.0, 0.5 * 3 / 12**0.5 + 1 / 4.0]
    expected_w = [-1 / 2.0, 0.5 * 4 / 12**0.5 - 1 / 3.0]
    np.testing.assert_allclose(x.grad.numpy(), expected_x, rtol=1e-6)
    np.testing.assert_allclose(w.grad.numpy(), expected_w, rtol=1e-6)
