"""Every schedule over 100 steps against PyTorch's, stopped and resumed, and under compilation."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.optim import lr_scheduler

torch = pytest.importorskip("torch", reason="PyTorch is the oracle of these tests")

Build = Callable[[Any, Any], Any]  # the module of schedules, an optimizer -> a schedule

SCHEDULES: dict[str, Build] = {
    "lambda": lambda s, o: s.LambdaLR(o, lambda step: 0.95**step),
    "lambdas": lambda s, o: s.LambdaLR(o, [lambda step: 1 / (1 + step), lambda step: 0.9**step]),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda step: 0.99 if step % 2 else 1.001),
    "step": lambda s, o: s.StepLR(o, 7, 0.5),
    "multi-step": lambda s, o: s.MultiStepLR(o, [30, 10, 10, 80], 0.3),
    "constant": lambda s, o: s.ConstantLR(o, 0.25, 13),
    "linear": lambda s, o: s.LinearLR(o, 0.1, 0.8, 37),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.97),
    "polynomial": lambda s, o: s.PolynomialLR(o, 60, 2.0),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 30, 1e-3),
    "cosine, odd": lambda s, o: s.CosineAnnealingLR(o, 17),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 11),
    "restarts, longer": lambda s, o: s.CosineAnnealingWarmRestarts(o, 5, 2, 1e-3),
    "triangular": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 10, 15),
    "triangular2": lambda s, o: s.CyclicLR(o, 0.01, [0.1, 0.2], 10, mode="triangular2", cycle_momentum=False),
    "range": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 10, mode="exp_range", gamma=0.99),
    "own scale": lambda s, o: s.CyclicLR(
        o, 0.01, 0.1, 9, scale_fn=lambda x: 1 / (5 ** (x * 0.001)), scale_mode="iterations"
    ),
    "one cycle": lambda s, o: s.OneCycleLR(o, 0.3, total_steps=101),
    "one cycle, linear": lambda s, o: s.OneCycleLR(
        o, [0.3, 0.2], epochs=10, steps_per_epoch=12, three_phase=True, anneal_strategy="linear", pct_start=0.4
    ),
    "sequential": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, 1.0, 10), s.CosineAnnealingLR(o, 40), s.ExponentialLR(o, 0.9)], [10, 50]
    ),
    "chained": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 20), s.ExponentialLR(o, 0.95)]),
}
OURS: dict[str, Build] = {
    "warm-up, cosine": lambda s, o: s.WarmupCosineLR(o, 10, 60, 1e-3, 0.1),
}  # without a twin in PyTorch
ALL = {**SCHEDULES, **OURS}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's advice about the order of calls
        yield


def optimizer_of(library: Any, kind: str = "SGD") -> Any:
    parameters = [library.zeros(2, requires_grad=True), library.zeros(3, requires_grad=True)]
    options = {"momentum": 0.9} if kind == "SGD" else {}
    groups = [{"params": [parameters[0]]}, {"params": [parameters[1]], "lr": 0.02}]
    return getattr(library.optim, kind)(groups, lr=0.1, **options)


def rates(schedule: Any, optimizer: Any, count: int) -> list[Any]:
    found = []
    for _ in range(count):
        group = optimizer.param_groups
        momentum = [one.get("momentum", one.get("betas")) for one in group]
        found.append([*(one["lr"] for one in group), *np.ravel(momentum), *schedule.get_last_lr()])
        optimizer.step()
        schedule.step()
    return found


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_hundred_steps(name: str, kind: str) -> None:
    ours, theirs = optimizer_of(gg, kind), optimizer_of(torch, kind)
    a = rates(SCHEDULES[name](lr_scheduler, ours), ours, 100)
    b = rates(SCHEDULES[name](torch.optim.lr_scheduler, theirs), theirs, 100)
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("name", ALL)
def test_a_stopped_schedule_goes_on(name: str) -> None:
    whole = optimizer_of(gg)
    expected = rates(ALL[name](lr_scheduler, whole), whole, 100)
    first = optimizer_of(gg)
    schedule = ALL[name](lr_scheduler, first)
    rates(schedule, first, 41)
    saved = json.loads(json.dumps({"schedule": schedule.state_dict(), "groups": first.state_dict()["param_groups"]}))
    second = optimizer_of(gg)
    again = ALL[name](lr_scheduler, second)
    second.load_state_dict({"state": {}, "param_groups": saved["groups"]})
    again.load_state_dict(saved["schedule"])
    np.testing.assert_allclose(rates(again, second, 59), expected[41:], rtol=1e-12)


# Each schedule's own edges, in both directions: the step before, the step itself and the one after.
JUMPS = [0, 1, 6, 7, 8, 9, 10, 11, 12, 13, 14, 29, 30, 31, 36, 37, 38, 59, 60, 61, 79, 80, 81, 99, 10, 0, 30, 80, 5, 17]


@pytest.mark.parametrize("name", [name for name in SCHEDULES if name not in {"sequential", "chained"}])
def test_jumps_to_a_step(name: str) -> None:
    ours, theirs = optimizer_of(gg), optimizer_of(torch)
    a, b = SCHEDULES[name](lr_scheduler, ours), SCHEDULES[name](torch.optim.lr_scheduler, theirs)
    for epoch in JUMPS:
        a.step(epoch)
        b.step(epoch)
        got, want = ([group["lr"] for group in one.param_groups] for one in (ours, theirs))
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-15, err_msg=str(epoch))
        assert a.get_last_lr() == got
    # A factor of 0 divides by 0 on the way back up; from an ordinary step both go on alike.
    np.testing.assert_allclose(rates(a, ours, 30), rates(b, theirs, 30), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("name", OURS)
def test_jumps_lead_to_where_steps_do(name: str) -> None:
    """The closed formula of a schedule that PyTorch lacks, next to its way step by step."""
    walked, jumped = optimizer_of(gg), optimizer_of(gg)
    expected = rates(OURS[name](lr_scheduler, walked), walked, 100)
    schedule = OURS[name](lr_scheduler, jumped)
    for epoch in JUMPS:
        schedule.step(epoch)
        got = [group["lr"] for group in jumped.param_groups]
        np.testing.assert_allclose(got, expected[epoch][:2], rtol=1e-9, atol=1e-15, err_msg=str(epoch))
    np.testing.assert_allclose(rates(schedule, jumped, 30), expected[JUMPS[-1] :][:30], rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("milestones", [[5], [5, 5], [9, 5], [9, 5, 5, 2], [0, 3], [3, 4], [1], []])
@pytest.mark.parametrize("jump", [False, True])
def test_milestones_hit_repeated_and_unsorted(milestones: list[int], jump: bool) -> None:
    optimizer, theirs = optimizer_of(gg), optimizer_of(torch)
    schedule = lr_scheduler.MultiStepLR(optimizer, milestones, 0.5)
    expected = torch.optim.lr_scheduler.MultiStepLR(theirs, milestones, 0.5)
    for step in range(1, 13):
        schedule.step(*[step] * jump)
        expected.step(*[step] * jump)
        by_hand = 0.1 * 0.5 ** sum(1 for one in milestones if (one > 0 or jump) and one <= step)
        assert schedule.get_last_lr()[0] == pytest.approx(expected.get_last_lr()[0], rel=1e-12)
        if 0 not in milestones or jump:
            assert schedule.get_last_lr()[0] == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize("milestones", [[3, 7], [1, 2], [4, 5]])
def test_schedules_change_at_their_milestones(milestones: list[int]) -> None:
    def made(module: Any, optimizer: Any) -> Any:
        first, second = module.ConstantLR(optimizer, 0.5, 2), module.StepLR(optimizer, 2, 0.1)
        third = module.MultiplicativeLR(optimizer, lambda step: 0.9 - step / 100)
        return module.SequentialLR(optimizer, [first, second, third], milestones)

    ours, theirs = optimizer_of(gg), optimizer_of(torch)
    a, b = made(lr_scheduler, ours), made(torch.optim.lr_scheduler, theirs)
    np.testing.assert_allclose(rates(a, ours, 14), rates(b, theirs, 14), rtol=1e-9)


RESUMED: dict[str, Callable[[Any, Any, int], Any]] = {
    "lambda": lambda s, o, last: s.LambdaLR(o, lambda step: 0.95**step, last),
    "multiplicative": lambda s, o, last: s.MultiplicativeLR(o, lambda step: 0.9, last),
    "step": lambda s, o, last: s.StepLR(o, 3, 0.5, last),
    "multi-step": lambda s, o, last: s.MultiStepLR(o, [6, 8], 0.5, last),
    "constant": lambda s, o, last: s.ConstantLR(o, 0.5, 8, last),
    "linear": lambda s, o, last: s.LinearLR(o, 0.1, 1.0, 9, last),
    "exponential": lambda s, o, last: s.ExponentialLR(o, 0.9, last),
    "polynomial": lambda s, o, last: s.PolynomialLR(o, 20, 2.0, last),
    "cosine": lambda s, o, last: s.CosineAnnealingLR(o, 9, 0.0, last),
    "restarts": lambda s, o, last: s.CosineAnnealingWarmRestarts(o, 7, 1, 0.0, last),
    "cycles": lambda s, o, last: s.CyclicLR(o, 0.01, 0.1, 4, last_epoch=last),
    "one cycle": lambda s, o, last: s.OneCycleLR(o, 0.3, total_steps=40, last_epoch=last),
}


@pytest.mark.parametrize("last", [0, 4, 5, 6, 7, 8, 9])
@pytest.mark.parametrize("name", RESUMED)
def test_taken_up_again_with_a_last_epoch(name: str, last: int) -> None:
    found = []
    for library, module in ((gg, lr_scheduler), (torch, torch.optim.lr_scheduler)):
        optimizer = optimizer_of(library)
        for group in optimizer.param_groups:
            group["initial_lr"] = group["lr"]
            if name == "one cycle":  # what PyTorch's keeps there
                group.update(initial_lr=0.012, max_lr=0.3, min_lr=1.2e-6, base_momentum=0.85, max_momentum=0.95)
        found.append(rates(RESUMED[name](module, optimizer, last), optimizer, 20))
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(
    "make",
    [
        lambda s, o: s.ConstantLR(o, 0.5, 1),
        lambda s, o: s.LinearLR(o, 0.5, 1.0, 1),
        lambda s, o: s.PolynomialLR(o, 1),
        lambda s, o: s.StepLR(o, 1),
        lambda s, o: s.CosineAnnealingLR(o, 1),
        lambda s, o: s.CosineAnnealingLR(o, 2),
        lambda s, o: s.CosineAnnealingWarmRestarts(o, 1),
        lambda s, o: s.CosineAnnealingWarmRestarts(o, 1, 2),
        lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 3),
        lambda s, o: s.CyclicLR(o, 0.1, 0.5, 1),
        lambda s, o: s.CyclicLR(o, 0.1, 0.5, 1, 2),
        lambda s, o: s.CyclicLR(o, 0.1, 0.5, 2, 1, mode="triangular2"),
        lambda s, o: s.OneCycleLR(o, 0.3, total_steps=20, pct_start=0.5),
        lambda s, o: s.OneCycleLR(o, 0.3, total_steps=20, pct_start=0.25, three_phase=True),
        lambda s, o: s.ExponentialLR(o, 1.0),
        lambda s, o: s.MultiStepLR(o, [1, 2, 3]),
    ],
)
def test_the_shortest_ones(make: Build) -> None:
    """Where every step is an edge, what is one step early or late shows at once."""
    ours, theirs = optimizer_of(gg), optimizer_of(torch)
    a, b = make(lr_scheduler, ours), make(torch.optim.lr_scheduler, theirs)
    np.testing.assert_allclose(rates(a, ours, 19), rates(b, theirs, 19), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"factor": 0.5, "patience": 2, "cooldown": 3},
        {"mode": "max", "patience": 1, "threshold": 0.1},
        {"threshold_mode": "abs", "threshold": 0.05, "patience": 0, "min_lr": [1e-3, 1e-4]},
    ],
)
def test_plateau(options: dict[str, Any]) -> None:
    numbers = [1 + math.cos(n / 5) / (1 + n) + 0.3 * math.sin(n) for n in range(100)]
    numbers[3], numbers[50] = math.inf, math.nan
    ours, theirs = optimizer_of(gg), optimizer_of(torch)
    a = lr_scheduler.ReduceLROnPlateau(ours, **options)
    b = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, **options)
    found = []
    for number in numbers:
        a.step(gg.tensor(number))
        b.step(torch.tensor(number))
        found.append(([g["lr"] for g in ours.param_groups], [g["lr"] for g in theirs.param_groups]))
        assert a.num_bad_epochs == b.num_bad_epochs
    np.testing.assert_allclose([x for x, _ in found], [y for _, y in found], rtol=1e-12)
    assert found[-1][0] != [0.1, 0.02]


@pytest.mark.parametrize("mode", ["min", "max"])
def test_plateau_at_a_number_that_stays_or_moves_by_the_threshold(mode: str) -> None:
    """What is exactly at the threshold is no improvement."""
    sign = 1 if mode == "min" else -1
    for numbers in ([2.0] * 12, [2.0 - 0.25 * n for n in range(12)]):
        ours, theirs = optimizer_of(gg), optimizer_of(torch)
        options = {"mode": mode, "threshold": 2.0 - numbers[1], "threshold_mode": "abs", "patience": 2}
        a = lr_scheduler.ReduceLROnPlateau(ours, **options)
        b = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, **options)
        counts = []
        for number in numbers:
            a.step(sign * number)
            b.step(sign * number)
            counts.append((a.num_bad_epochs, b.num_bad_epochs))
        assert [x for x, _ in counts] == [y for _, y in counts]
        assert max(counts) > (0, 0)


def test_warm_up_then_cosine_is_the_sequence_of_both() -> None:
    ours, theirs = optimizer_of(gg), optimizer_of(torch)
    schedule = lr_scheduler.WarmupCosineLR(ours, 10, 90, start_factor=0.1, eta_min=1e-3)
    s = torch.optim.lr_scheduler
    expected = s.SequentialLR(theirs, [s.LinearLR(theirs, 0.1, 1.0, 10), s.CosineAnnealingLR(theirs, 80, 1e-3)], [10])
    np.testing.assert_allclose(rates(schedule, ours, 90), rates(expected, theirs, 90), rtol=1e-9)
    for _ in range(5):
        schedule.step()
    assert schedule.get_last_lr() == [1e-3, 1e-3]


def test_a_rate_changed_by_hand_stays_changed() -> None:
    ours, theirs = optimizer_of(gg), optimizer_of(torch)
    a, b = lr_scheduler.ExponentialLR(ours, 0.9), torch.optim.lr_scheduler.ExponentialLR(theirs, 0.9)
    for _ in range(3):
        a.step()
        b.step()
    ours.param_groups[0]["lr"] = theirs.param_groups[0]["lr"] = 5.0
    assert rates(a, ours, 3)[-1][0] == pytest.approx(rates(b, theirs, 3)[-1][0])


@pytest.mark.parametrize("name", ["cosine", "step", "one cycle", *OURS])
def test_schedules_do_not_retrace_a_compiled_step(name: str) -> None:
    losses = []
    for compiled in (False, True):
        p = gg.ones(2, requires_grad=True)
        q = gg.ones(2, requires_grad=True)
        optimizer = gg.optim.SGD([{"params": [p]}, {"params": [q], "lr": 0.02}], lr=0.1, momentum=0.9)
        schedule = ALL[name](lr_scheduler, optimizer)

        def step(p: Any = p, q: Any = q, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = (p * p).sum() + (q * q).sum()
            loss.backward()
            optimizer.step()
            return loss

        run = gg.compile(step, backend="numpy") if compiled else step
        for _ in range(10):
            losses.append(run().item())
            schedule.step()
        if compiled:
            run.assert_max_traces(1)
    np.testing.assert_allclose(losses[10:], losses[:10], rtol=1e-6)


def test_every_schedule_is_tested() -> None:
    here = " ".join(str(build.__code__.co_names) for build in ALL.values())
    others = {"LRScheduler", "ReduceLROnPlateau"}
    assert {name for name in lr_scheduler.__all__ if name not in here} == others


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda o: lr_scheduler.StepLR("adam", 3), "expects an optimizer, given a str"),
        (lambda o: lr_scheduler.LambdaLR(o, [len]), "one for each of 2 groups"),
        (lambda o: lr_scheduler.OneCycleLR(o, 0.1), "total_steps"),
        (lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.StepLR(o, 3)], [5]), "one fewer than schedules"),
        (lambda o: lr_scheduler.ReduceLROnPlateau(o, "minimum"), "'min' or 'max'"),
        (lambda o: lr_scheduler.StepLR(o, 3, last_epoch=4), "no 'initial_lr'"),
        (lambda o: lr_scheduler.WarmupCosineLR(o, 10, 5), "less than total_steps=5"),
        (lambda o: lr_scheduler.LinearLR(o, 0.0), "start_factor"),
        (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 0), "T_0"),
    ],
)
def test_bad_input_is_named(make: Callable[[Any], Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make(optimizer_of(gg))


def test_a_schedule_that_is_over_says_so() -> None:
    schedule = lr_scheduler.OneCycleLR(optimizer_of(gg), 0.1, total_steps=3)
    for _ in range(3):
        schedule.step()
    with pytest.raises(ValueError, match="built for 3 steps"):
        schedule.step()
