"""The first number that is not finite: the finding names its op, line, operands and remedy, however the step runs."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import autograd, doctor, errors

HERE = Path(__file__).name
INF = float("inf")


def log_of_zero(lib: Any, h: Any) -> Any:
    return (h - h.detach()).relu().log().sum()  # birth


def log_of_a_negative_number(lib: Any, h: Any) -> Any:
    return (h - h.detach() - 1.0).log().sum()  # birth


def root_of_zero(lib: Any, h: Any) -> Any:
    d = h - h.detach()
    s = d.sqrt()  # birth
    return s.sum()


def norm_by_hand(lib: Any, h: Any) -> Any:
    d = h - h.detach()
    return ((d * d).sum(1)).sqrt().sum()  # birth


def divided_by_its_norm(lib: Any, h: Any) -> Any:
    d = h - h.detach()
    unit = d / d.norm()  # birth
    return unit.square().sum()


def division_by_zero(lib: Any, h: Any) -> Any:
    d = h - h.detach()
    q = h / d  # birth
    return q.tanh().sum()


def zero_to_a_negative_power(lib: Any, h: Any) -> Any:
    d = h - h.detach()
    return (d**-1.0).sum()  # birth


def zero_to_a_small_power(lib: Any, h: Any) -> Any:
    d = h - h.detach()
    return (d**0.5).sum()  # birth


def negative_base(lib: Any, h: Any) -> Any:
    d = h - h.detach() - 1.0
    return (d**0.5).mean()  # birth


def overflow(lib: Any, h: Any) -> Any:
    big = h * 0.0 + 1000.0
    e = big.exp()  # birth
    return (e / e.sum()).sum()


def masked_row(lib: Any, h: Any) -> Any:
    scores = h.masked_fill(h < INF, -INF)
    p = lib.softmax(scores, 1)  # birth
    return p.square().sum()


def zero_times_infinity(lib: Any, h: Any) -> Any:
    d = h - h.detach()
    return (d * INF).sum()  # birth


def angle_by_hand(lib: Any, h: Any) -> Any:
    d = h - h.detach()
    return (d / d).atan().sum()  # birth


def deviation_of_one(lib: Any, h: Any) -> Any:
    d = h[:1].std(0)  # birth
    return (h / d).sum()


class Birth(NamedTuple):
    """The op of a birth, the values at its first bad place, words of its remedy, and whether a rule makes it."""

    op: str
    values: str
    remedy: str
    backward: bool = False


BIRTHS: dict[Callable[[Any, Any], Any], Birth] = {
    log_of_zero: Birth("log", r"= 0\.0", "log(x.clamp(min=eps))"),
    log_of_a_negative_number: Birth("log", r"h - h.detach\(\) - 1\.0 = -1\.0", "log(x.clamp(min=eps))"),
    root_of_zero: Birth("sqrt", r"d = 0\.0 and its cotangent is 1", "sqrt(x.clamp(min=eps))", backward=True),
    norm_by_hand: Birth("sqrt", r" = 0\.0 and its cotangent is 1", "sqrt(x.sum() + eps)", backward=True),
    divided_by_its_norm: Birth("div", r"d = 0\.0, d\.norm\(\) = 0\.0", "F.normalize"),
    division_by_zero: Birth("div", r"h = -?\d\S*, d = 0\.0", "x / (y + eps)"),
    zero_to_a_negative_power: Birth("pow", r"d = 0\.0, -1\.0", "x.clamp(min=eps) ** y"),
    zero_to_a_small_power: Birth("pow", r"d = 0\.0, 0\.5 and its cotangent is 1", "x.clamp(min=eps) ** y", True),
    negative_base: Birth("pow", r"d = -1\.0, 0\.5", "x.clamp(min=eps) ** y"),
    overflow: Birth("exp", r"big = 1000\.0", "exp(x.clamp(max=80))"),
    masked_row: Birth("softmax", r"of -inf", "an open entry in each row"),
    zero_times_infinity: Birth("mul", r"d = 0\.0, INF = inf", "0 times infinity"),
    angle_by_hand: Birth("div", r"d = 0\.0", "x / (y + eps)"),
    deviation_of_one: Birth("std", "", "correction=0"),
}
RUNS = ("eager", "compiled", "vmapped", "pytorch")
LOST = {root_of_zero, norm_by_hand, zero_to_a_small_power, masked_row}
"""Births whose operands an eager tape does not keep: it keeps the root, and not what was subtracted."""


class Training:
    """A small net in a loop; its loss is computed in one of four ways."""

    def __init__(self, run: str, loss: Callable[[Any, Any], Any]) -> None:
        lib: Any = gg if run != "pytorch" else pytest.importorskip("torch", reason="the program is PyTorch's")
        layers = lib.nn
        lib.manual_seed(0)
        self.model = layers.Sequential(layers.Linear(3, 4), layers.Tanh(), layers.Linear(4, 2))
        self.optimizer = lib.optim.SGD(self.model.parameters(), lr=0.1)
        x = lib.randn(5, 3)

        def step(x: Any) -> Any:
            h = self.model(x)
            made = gg.vmap(lambda row: loss(gg, row[None]))(h).sum() if run == "vmapped" else loss(lib, h)
            self.optimizer.zero_grad()
            made.backward()
            self.optimizer.step()
            return made

        made = gg.compile(step, backend="numpy") if run == "compiled" else step
        self.step = lambda: made(x)

    def weights(self) -> list[Any]:
        return [p.detach().numpy().copy() for p in self.model.parameters()]

    def error(self, way: str) -> str:
        """Return the message of the step; empty if there is none."""
        watched = doctor.watch(self.model, self.optimizer, nan=True, report=False)
        try:
            with (
                warnings.catch_warnings(),
                np.errstate(all="ignore"),
                autograd.detect_anomaly() if way == "anomaly mode" else watched,
            ):
                warnings.simplefilter("ignore")  # PyTorch's, of the deviation of one
                self.step()
        except errors.AutogradError as error:
            return str(error)
        return ""


def line_of(birth: Callable[[Any, Any], Any]) -> int:
    lines, first = inspect.getsourcelines(birth)
    return first + next(at for at, line in enumerate(lines) if line.endswith("# birth\n"))


def check(text: str, birth: Callable[[Any, Any], Any], values: bool) -> None:
    op, numbers, remedy, backward = BIRTHS[birth]
    names = {"div": "div(ide)?", "pow": "pow(er)?", "mul": "mul(tiply)?"}.get(op, op)
    first = re.search(r"(?:: |is \S+: )((?:the backward pass of )?)(\w+)(?:, in \w+,)? at (\S+?):(\d+) ", text)
    assert first, text
    assert re.fullmatch(names, first[2]), text
    assert (first[1] != "", Path(first[3]).name, int(first[4])) == (backward, HERE, line_of(birth)), text
    assert remedy in text.partition("\nNext: ")[2], text
    if values:
        assert re.search(numbers, text), text


@pytest.mark.parametrize("birth", BIRTHS, ids=lambda birth: birth.__name__)
@pytest.mark.parametrize("run", RUNS)
def test_a_watched_loop_names_the_birth(run: str, birth: Callable[[Any, Any], Any]) -> None:
    training = Training(run, birth)
    before = training.weights()
    text = training.error("watch")
    check(text, birth, values=run in {"compiled", "pytorch"} or birth not in LOST)
    assert text.startswith("step 0: "), text
    for weights, now in zip(before, training.weights(), strict=True):
        np.testing.assert_array_equal(weights, now)


@pytest.mark.parametrize("birth", BIRTHS, ids=lambda birth: birth.__name__)
@pytest.mark.parametrize("run", RUNS[:3])
def test_anomaly_mode_names_the_birth(run: str, birth: Callable[[Any, Any], Any]) -> None:
    text = Training(run, birth).error("anomaly mode")
    check("error: " + text, birth, values=True)


# --- what is finite, or meant, is silent ---


def open_mask(lib: Any, h: Any) -> Any:
    return lib.softmax(h.masked_fill(h < h.amax(1, keepdim=True), -INF), 1).square().sum()


def angle_at_the_origin(lib: Any, h: Any) -> Any:
    d = h - h.detach()
    return lib.atan2(d, d).sum() + h.sum()


def norm_at_the_origin(lib: Any, h: Any) -> Any:
    return (h - h.detach()).norm() + h.sum()


def infinities_that_end(lib: Any, h: Any) -> Any:
    d = h - h.detach()
    return (1.0 / (1.0 + (h * 0.0 + 1000.0).exp().detach())).sum() + (d.detach().log().exp() * h).sum()


@pytest.mark.parametrize("loss", [open_mask, angle_at_the_origin, norm_at_the_origin, infinities_that_end])
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("way", ["watch", "anomaly mode"])
def test_infinities_that_reach_no_weight_are_silent(way: str, run: str, loss: Callable[[Any, Any], Any]) -> None:
    assert Training(run, loss).error(way) == ""


def test_an_infinite_gradient_of_a_leaf_is_named() -> None:
    w = gg.tensor([4.0, 0.0], requires_grad=True)
    with np.errstate(all="ignore"), autograd.detect_anomaly(), pytest.raises(errors.AutogradError) as info:
        w.sqrt().sum().backward()
    text = "the backward pass of sqrt at .* produces the first infinity: 1 of 2 elements, the first at "
    assert re.match(text + r"\[1\], where its operands are w = 0\.0 and its cotangent is 1\.0, so", str(info.value))


def test_infinities_of_both_signs_that_add_up_are_traced_to_the_first() -> None:
    x = gg.tensor([0.0], requires_grad=True)
    with np.errstate(all="ignore"), autograd.detect_anomaly():
        y = x * 1.0
        loss = (y.sqrt() - y.sqrt()).sum()
        with pytest.raises(errors.AutogradError, match=r"the backward pass of sqrt at .* the first infinity"):
            loss.backward()
