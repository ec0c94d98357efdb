"""The limits of schedules' options, from both sides, and their initial rates."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import glassgrad as gg
from glassgrad.optim import lr_scheduler as s

from .test_schedules_against_torch import SCHEDULES, optimizer_of

torch = pytest.importorskip("torch", reason="PyTorch is the oracle of these tests")

Make = Callable[[Any], Any]

REFUSED: dict[str, tuple[Make, str]] = {
    "too few milestones": (lambda o: s.SequentialLR(o, [s.StepLR(o, 3)], [5]), r"\b0, one fewer than schedules"),
    "another optimizer, one by one": (
        lambda o: s.SequentialLR(o, [s.StepLR(o, 3), s.StepLR(optimizer_of(gg), 3)], [5]), "SequentialLR.*optimizer"),
    "another optimizer, at once": (
        lambda o: s.ChainedScheduler([s.StepLR(o, 3), s.StepLR(optimizer_of(gg), 3)]), "ChainedScheduler.*optimizer"),
    "the optimizer is another": (
        lambda o: s.ChainedScheduler([s.StepLR(o, 3)], optimizer_of(gg)), "ChainedScheduler.*optimizer"),
    "no schedules": (lambda o: s.ChainedScheduler([]), "at least one"),
    "a factor below 0": (lambda o: s.ConstantLR(o, -0.1), "a number above 0 and up to 1"),
    "a factor above 1": (lambda o: s.ConstantLR(o, 1.1), "a number above 0 and up to 1"),
    "a start of 0": (lambda o: s.LinearLR(o, 0.0), "start_factor"),
    "a start above 1": (lambda o: s.LinearLR(o, 1.1), "start_factor"),
    "an end below 0": (lambda o: s.LinearLR(o, 0.5, -0.1), "end_factor"),
    "an end above 1": (lambda o: s.LinearLR(o, 0.5, 1.1), "end_factor"),
    "a period of 0": (lambda o: s.CosineAnnealingWarmRestarts(o, 0), "T_0"),
    "a period and a half": (lambda o: s.CosineAnnealingWarmRestarts(o, 1.5), "T_0"),
    "a period that shrinks": (lambda o: s.CosineAnnealingWarmRestarts(o, 3, 0), "T_mult"),
    "a warm-up below 0": (lambda o: s.WarmupCosineLR(o, -1, 5), "less than total_steps=5"),
    "a warm-up to the end": (lambda o: s.WarmupCosineLR(o, 5, 5), "less than total_steps=5"),
    "a mode": (lambda o: s.CyclicLR(o, 0.1, 0.2, mode="square"), "'triangular', 'triangular2' or 'exp_range'"),
    "rates for another number of groups": (lambda o: s.CyclicLR(o, 0.1, [0.2] * 3), "max_lr.*one number, or 2"),
    "no momentum": (
        lambda o: s.CyclicLR(gg.optim.Adagrad([gg.ones(1, requires_grad=True)]), 0.1, 0.2),
        "cycle_momentum=True.*Adagrad has no momentum"),
    "no steps": (lambda o: s.OneCycleLR(o, 0.1, total_steps=0), "at least 1"),
    "epochs alone": (lambda o: s.OneCycleLR(o, 0.1, epochs=3), "epochs and steps_per_epoch"),
    "steps of an epoch alone": (lambda o: s.OneCycleLR(o, 0.1, steps_per_epoch=3), "epochs and steps_per_epoch"),
    "a share below 0": (lambda o: s.OneCycleLR(o, 0.1, 9, pct_start=-0.1), "between 0 and 1"),
    "a share above 1": (lambda o: s.OneCycleLR(o, 0.1, 9, pct_start=1.1), "between 0 and 1"),
    "a strategy": (lambda o: s.OneCycleLR(o, 0.1, 9, anneal_strategy="sine"), "'cos' or 'linear'"),
    "a plateau's mode": (lambda o: s.ReduceLROnPlateau(o, "least"), "'min' or 'max'"),
    "a plateau's threshold": (lambda o: s.ReduceLROnPlateau(o, threshold_mode="none"), "'rel' or 'abs'"),
    "a factor of 1": (lambda o: s.ReduceLROnPlateau(o, factor=1.0), "a number below 1"),
    "lowest rates of other groups": (lambda o: s.ReduceLROnPlateau(o, min_lr=[0.1]), "one number, or 2"),
    "functions of other groups": (lambda o: s.LambdaLR(o, [len]), "1 functions.*one for each of 2 groups"),
}  # fmt: skip  # a table

TAKEN: list[Make] = [
    lambda o: s.ConstantLR(o, 1.0),
    lambda o: s.ConstantLR(o, 0.0),
    lambda o: s.LinearLR(o, 1.0, 0.0),
    lambda o: s.LinearLR(o, 0.5, 1.0),
    lambda o: s.CosineAnnealingWarmRestarts(o, 1.0, 1),
    lambda o: s.WarmupCosineLR(o, 0, 1),
    lambda o: s.CyclicLR(o, 0.1, 0.2, mode="any", scale_fn=lambda x: 1.0),
    lambda o: s.OneCycleLR(o, 0.1, 1),
    lambda o: s.OneCycleLR(o, 0.1, 9, pct_start=0.0),
    lambda o: s.OneCycleLR(o, 0.1, 9, pct_start=1.0),
    lambda o: s.ReduceLROnPlateau(o, factor=0.999),
    lambda o: s.SequentialLR(o, [s.StepLR(o, 3)], []),
    lambda o: s.ChainedScheduler([s.StepLR(o, 3)], o),
    lambda o: s.ChainedScheduler([s.StepLR(o, 3)]),
    lambda o: s.OneCycleLR(o, 0.1, 10, pct_start=0.1),
]


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    make, message = REFUSED[name]
    with pytest.raises((ValueError, TypeError), match=f"(?s){message}") as found:
        make(optimizer_of(gg))
    assert f"test_schedule_options.py:{make.__code__.co_firstlineno}" in str(found.value), "the user's line"


@pytest.mark.parametrize("number", range(len(TAKEN)))
def test_taken(number: int) -> None:
    optimizer = optimizer_of(gg)
    schedule = TAKEN[number](optimizer)
    assert all(math.isfinite(group["lr"]) for group in optimizer.param_groups)
    assert schedule.get_last_lr() == [group["lr"] for group in optimizer.param_groups]
    assert schedule.optimizer is optimizer
    schedule.step(*[1.0] * isinstance(schedule, s.ReduceLROnPlateau))
    assert schedule.get_last_lr() == [group["lr"] for group in optimizer.param_groups]


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("first", [1.0, math.inf, -math.inf, math.nan])
def test_a_plateau_counts_as_pytorchs_from_its_first_number_on(mode: str, first: float) -> None:
    options = {"mode": mode, "patience": 0, "cooldown": 2, "eps": 0.0}
    ours = s.ReduceLROnPlateau(optimizer_of(gg), **options)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer_of(torch), **options)
    for number in (None, first, 1.0, 1.0, 2.0, 0.5, 0.5, 0.5, 0.5):
        if number is not None:
            ours.step(number)
            theirs.step(number)
        for name in ("cooldown_counter", "num_bad_epochs", "last_epoch", "best"):
            assert getattr(ours, name) == pytest.approx(getattr(theirs, name), nan_ok=True), (name, number)
        assert ours.get_last_lr() == pytest.approx([group["lr"] for group in theirs.optimizer.param_groups])


def test_a_plateau_leaves_out_changes_as_small_as_its_eps() -> None:
    for least, changes in ((0.02 - 2**-10, False), (0.02 - 2**-9, True)):
        optimizer = gg.optim.SGD([gg.ones(1, requires_grad=True)], lr=0.02)
        schedule = s.ReduceLROnPlateau(optimizer, patience=0, min_lr=least, eps=0.02 - (0.02 - 2**-10))
        for _ in range(2):
            schedule.step(1.0)
        assert (optimizer.param_groups[0]["lr"] != 0.02) == changes
    schedule.step(1.0, epoch=40)
    assert schedule.last_epoch == 40


def test_one_step_up() -> None:
    optimizer = optimizer_of(gg)
    schedule = s.OneCycleLR(optimizer, 0.5, 10, pct_start=0.1)
    found = [schedule.get_last_lr()[0]]
    for _ in range(9):
        schedule.step()
        found.append(schedule.get_last_lr()[0])
    assert found[0] == 0.5
    assert found == sorted(found, reverse=True)
    assert found[-1] == pytest.approx(0.5 / 25 / 1e4)


def test_only_up() -> None:
    schedule = s.OneCycleLR(optimizer_of(gg), 0.5, 10, pct_start=1.0)
    for _ in range(9):
        schedule.step()
    assert schedule.get_last_lr() == [0.5, 0.5]


@pytest.mark.filterwarnings("ignore::glassgrad.errors.IdleStepWarning")  # rates alone are looked at
@pytest.mark.parametrize("strategy", ["cos", "linear"])
def test_the_step_after_the_last_one_goes_on_as_pytorchs(strategy: str) -> None:
    def last(library: Any, module: Any) -> list[float]:
        optimizer = optimizer_of(library)
        schedule = module.OneCycleLR(optimizer, 0.5, 5, anneal_strategy=strategy, final_div_factor=0.5)
        for _ in range(5):
            optimizer.step()
            schedule.step()
        return list(schedule.get_last_lr())

    assert last(gg, s) == pytest.approx(last(torch, torch.optim.lr_scheduler), rel=1e-9)


# --- what is kept ---------------------------------------------------------------------------------------------------


def test_the_base_class_leaves_the_rates_as_they_are() -> None:
    optimizer = optimizer_of(gg)
    schedule = s.LRScheduler(optimizer)
    schedule.step()
    schedule.step(7)
    assert [group["lr"] for group in optimizer.param_groups] == schedule.get_last_lr() == [0.1, 0.02]


def test_warm_up_and_cosine_begin_and_end_at_zero() -> None:
    schedule = s.WarmupCosineLR(optimizer_of(gg), 2, 4)
    assert schedule.get_last_lr() == [0.0, 0.0]
    for _ in range(4):
        schedule.step()
    assert schedule.get_last_lr() == pytest.approx([0.0, 0.0])


@pytest.mark.parametrize("name", SCHEDULES)
def test_steps_are_counted_from_the_rates_at_the_start(name: str) -> None:
    ours, theirs = optimizer_of(gg), optimizer_of(torch)
    schedule = SCHEDULES[name](s, ours)
    SCHEDULES[name](torch.optim.lr_scheduler, theirs)
    firsts = [[group["initial_lr"] for group in one.param_groups] for one in (ours, theirs)]
    assert firsts[0] == pytest.approx(firsts[1])
    if name == "chained":  # it has no number of its own
        return
    assert schedule.base_lrs == pytest.approx(firsts[1])
    assert schedule.is_initial
    for count in range(2, 5):
        schedule.step()
        assert schedule.state_dict()["_step_count"] == count
        assert not schedule.is_initial


@pytest.mark.filterwarnings("ignore::glassgrad.errors.IdleStepWarning")  # rates alone are looked at
def test_a_sequence_makes_its_first_step_once() -> None:
    def rates(library: Any, module: Any) -> list[float]:
        optimizer = optimizer_of(library)
        parts = [module.MultiplicativeLR(optimizer, lambda step: 0.5), module.ExponentialLR(optimizer, 0.9)]
        schedule = module.SequentialLR(optimizer, parts, [3])
        found = []
        for _ in range(6):
            found.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            schedule.step()
        return found

    assert rates(gg, s) == pytest.approx(rates(torch, torch.optim.lr_scheduler))


def test_a_group_that_joins_one_cycle_has_its_first_rate() -> None:
    optimizer = optimizer_of(gg)
    schedule = s.OneCycleLR(optimizer, 0.5, 10)
    optimizer.add_param_group({"params": [gg.zeros(4, requires_grad=True)], "lr": 0.7})
    schedule.step()
    assert optimizer.param_groups[2]["initial_lr"] == schedule.base_lrs[2] == 0.5 / 25


# --- subclasses, and steps inside of compiled functions -------------------------------------------------------------


def test_a_step_of_the_user_need_not_keep_the_rates() -> None:
    assert Halving(optimizer_of(gg)).get_last_lr() == []


def test_other_bases_hear_of_a_subclass() -> None:
    heard = []

    class Listed:
        def __init_subclass__(cls, **options: Any) -> None:
            heard.append((cls.__name__, options))

    class Mine(s.LRScheduler, Listed, label="mine"):
        pass

    assert heard == [(Mine.__name__, {"label": "mine"})]


class Halving(s.LRScheduler):
    """With a step of its own, as users' schedules have."""

    def step(self, epoch: int | None = None) -> None:
        self.last_epoch += 1
        for group in self.optimizer.param_groups:
            group["lr"] = 0.5**self.last_epoch


INSIDE: dict[str, Make] = {
    "its own step": Halving,
    "the step of the base": lambda o: s.LambdaLR(o, lambda step: 0.5**step),
    "a sequence": lambda o: s.SequentialLR(o, [s.LambdaLR(o, lambda step: 0.5**step)], []),
}


@pytest.mark.parametrize("name", INSIDE)
def test_a_compiled_function_makes_the_step_in_every_call(name: str) -> None:
    p = gg.ones(2, requires_grad=True)
    optimizer = gg.optim.SGD([p], lr=1.0)
    schedule = INSIDE[name](optimizer)

    @gg.compile(backend="numpy")
    def step() -> Any:
        optimizer.zero_grad()
        loss = p.sum()
        loss.backward()
        optimizer.step()
        schedule.step()
        return loss

    for count in range(1, 5):
        step()
        assert schedule.last_epoch == count
        assert optimizer.param_groups[0]["lr"] == 0.5**count
    assert p.tolist() == [1 - 1.875] * 2


def test_a_beta_that_goes_up_and_down_does_not_retrace_a_compiled_step() -> None:
    p = gg.ones(2, requires_grad=True)
    optimizer = gg.optim.Adam([p], lr=0.1)
    schedule = s.OneCycleLR(optimizer, 0.1, 10)

    @gg.compile(backend="numpy")
    def step() -> Any:
        optimizer.zero_grad()
        loss = p.square().sum()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(6):
        step()
        schedule.step()
    step.assert_max_traces(1)
