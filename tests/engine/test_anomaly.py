"""Anomaly mode names the op and the line of the first NaN, and changes nothing without one."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import autograd, errors, nn
from glassgrad.engine.mode import MODE, RECORDING
from glassgrad.engine.reports.nonfinite import ADVICE
from glassgrad.nn import functional as F
from glassgrad.ops.core import REGISTRY

HERE = Path(__file__).name


def leaf(*values: float) -> Any:
    return gg.tensor(list(values), requires_grad=True)


def huge_difference(x: Any) -> Any:
    h = (x * 1e20).exp()
    return h - h


# What is computed of x = (0, 4), the op that makes the NaN, and words of the message.
BAD: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "a branch not taken": (lambda x: gg.where(x > 0, x.sqrt(), 0.0), "sqrt", "branch that where did not take"),
    "log of softmax": (lambda x: F.softmax(x * 1000, 0) * F.softmax(x * 1000, 0).log(), "log", "log_softmax"),
    "0 / 0": (lambda x: x / x, "divide", r"x / \(y \+ eps\)"),
    "infinity less infinity": (huge_difference, "exp", "logsumexp"),
    "a NaN of the user's own": (lambda x: x * float("nan"), "multiply", "an operand is NaN itself"),
    "root of a negative number": (lambda x: (x - 5).sqrt(), "sqrt", "of x - 5 = -5.0"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("compiled", [False, True])
def test_op_line_and_advice_are_named(name: str, compiled: bool) -> None:
    f, op, words = BAD[name]

    def step(x: Any) -> None:
        f(x).sum().backward()

    run = gg.compile(step, backend="numpy") if compiled else step
    with (
        np.errstate(all="ignore"),
        autograd.detect_anomaly(),
        pytest.raises(errors.AutogradError, match=words) as info,
    ):
        run(leaf(0.0, 4.0))
    pass_ = "backward pass of" if name == "a branch not taken" else "loss of this backward pass is nan:"
    assert re.search(f"the {pass_} (an operand of )?{op} at [^ ]*{HERE}:", str(info.value))


def test_index_count_and_operands_are_those_of_the_first_nan() -> None:
    x = leaf(3.0, 0.0, 0.0)
    with np.errstate(all="ignore"), autograd.detect_anomaly(), pytest.raises(errors.AutogradError) as info:
        gg.where(x > 0, x.sqrt(), 0.0).sum().backward()
    text = str(info.value)
    assert "2 of 3 elements, the first at [1], where its operands are x = 0.0 and its cotangent is 0.0" in text


def test_a_loss_that_is_nan_without_help_of_an_op() -> None:
    x = leaf(1.0)
    with autograd.detect_anomaly(), pytest.raises(errors.AutogradError, match="the loss itself held a NaN"):
        (x * 2).backward(gg.tensor([float("nan")]))


def test_healthy_steps_give_the_same_bits() -> None:
    def gradients(check: bool) -> list[Any]:
        gg.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 2))
        x, y = gg.randn(6, 3), gg.tensor([0, 1, 0, 1, 1, 0])
        with autograd.set_detect_anomaly(check):
            F.cross_entropy(model(x), y).backward()
        return [p.grad.numpy() for p in model.parameters()]

    for plain, checked in zip(gradients(False), gradients(True), strict=True):
        np.testing.assert_array_equal(plain, checked)


def test_a_nan_that_no_gradient_reaches_is_no_error() -> None:
    x = leaf(-1.0, 4.0)
    with np.errstate(all="ignore"), autograd.detect_anomaly():
        hidden = x.detach().sqrt()
        (x * gg.where(hidden.isnan(), 0.0, hidden)).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0.0, 2.0])


def test_second_derivatives_are_looked_at() -> None:
    x = leaf(0.0)
    with np.errstate(all="ignore"), autograd.detect_anomaly():
        (first,) = autograd.grad((x**1.5).sum(), x, create_graph=True)
        loss = (first * x.sqrt() * 0).sum()
        with pytest.raises(errors.AutogradError, match=r"the backward pass of (power|sqrt|multiply)"):
            loss.backward()


def infinite_slope(x: Any) -> Any:
    return gg.where(x > 0, x.sqrt(), 0.0).sum()


def test_a_nan_that_is_meant_hides_no_other() -> None:
    with np.errstate(all="ignore"), autograd.detect_anomaly(allow=["sqrt"]):
        infinite_slope(leaf(0.0, 4.0)).backward()
        x = leaf(0.0, 4.0)
        other = gg.where(x > 0, x**0.5, 0.0).sum()
        with pytest.raises(errors.AutogradError, match="the backward pass of power"):
            other.backward()


def test_a_block_of_what_is_meant_can_be_entered_twice_and_very_often() -> None:
    meant = gg.doctor.allow_nonfinite()
    x = leaf(0.0, 4.0)
    with np.errstate(all="ignore"), autograd.detect_anomaly():
        with meant:
            loss = infinite_slope(x)
            with meant:
                loss = loss * 2
        for _ in range(300):
            with meant:
                loss = loss + 1
        loss.backward()
    assert np.isnan(x.grad.numpy()).tolist() == [True, False]


def test_the_mode_is_left_as_it_was_found() -> None:
    assert not gg.is_anomaly_enabled()
    with autograd.detect_anomaly():
        assert gg.is_anomaly_enabled()
        with autograd.set_detect_anomaly(False):
            assert not gg.is_anomaly_enabled()
        assert gg.is_anomaly_enabled()
        with autograd.detect_anomaly(check_nan=False):
            assert gg.is_anomaly_enabled()
    autograd.set_detect_anomaly(True)
    assert gg.is_anomaly_enabled()
    autograd.set_detect_anomaly(False)
    assert (MODE.flags, MODE.watchers, MODE.observer) == (RECORDING, (), None)


def test_advice_is_for_ops_that_exist() -> None:
    assert ADVICE.keys() <= REGISTRY.keys()


def test_the_same_program_raises_in_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch has the mode these names are from")
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    with pytest.warns(UserWarning, match="Anomaly Detection"), torch.autograd.detect_anomaly():  # noqa: SIM117 - the other warning is told inside of this one
        with pytest.warns(UserWarning, match="Sqrt"), pytest.raises(RuntimeError, match="SqrtBackward0"):
            torch.where(x > 0, x.sqrt(), 0.0).sum().backward()
