"""`add_param_group` with a schedule attached: as in PyTorch if it works there, and consistently if not."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.optim import lr_scheduler, swa_utils
from tests.thinning import covering

from .test_schedules_against_torch import SCHEDULES, optimizer_of

torch = pytest.importorskip("torch", reason="PyTorch is the oracle of these tests")

Rates = list[list[float]]
# These take one number for each group, or functions: a list says nothing about a group that comes later.
ONE_BY_ONE = {"lambdas": "lr_lambda", "triangular2": "max_lr", "one cycle, linear": "max_lr"}
# The others of which PyTorch says that lengths differ, at once or when a cosine turns or a schedule begins.
ONLY_HERE = {
    "lambda", "multiplicative", "cosine", "cosine, odd", "restarts", "restarts, longer", "triangular", "range",
    "own scale", "one cycle", "sequential",
}  # fmt: skip  # a table


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's advice about the order of calls
        yield


def rates(library: Any, module: Any, name: str, when: int, count: int = 60, **options: Any) -> Rates:
    optimizer = optimizer_of(library)
    schedule = SCHEDULES[name](module, optimizer)
    found = []
    for step in range(count):
        if step == when:
            optimizer.add_param_group({"params": [library.zeros(4, requires_grad=True)], **options})
        groups = optimizer.param_groups
        found.append([*(g["lr"] for g in groups), *(g["momentum"] for g in groups), *schedule.get_last_lr()])
        optimizer.step()
        schedule.step()
    return found


NAMES = [*sorted(set(SCHEDULES) - set(ONE_BY_ONE) - ONLY_HERE), "cosine", "cosine, odd"]
WHEN = [0, 1, 9, 10, 11, 30]


@pytest.mark.parametrize(
    ("when", "name", "options"), [*covering(WHEN, NAMES, [{}]), *covering(WHEN[::-1], NAMES, [{"lr": 0.5}])]
)
def test_as_in_pytorch(name: str, when: int, options: dict[str, Any]) -> None:
    count = {"cosine": 30, "cosine, odd": 17}.get(name, 60)  # before they turn
    ours = rates(gg, lr_scheduler, name, when, count, **options)
    theirs = rates(torch, torch.optim.lr_scheduler, name, when, count, **options)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize("name", sorted(ONLY_HERE))
def test_where_pytorch_raises(name: str) -> None:
    """The list above is no longer than it has to be."""
    with pytest.raises((ValueError, KeyError, IndexError)):
        rates(torch, torch.optim.lr_scheduler, name, 5)
    assert len(rates(gg, lr_scheduler, name, 5)) == 60


@pytest.mark.parametrize("name", sorted(ONLY_HERE))
def test_a_new_group_goes_the_way_of_the_others(name: str) -> None:
    """One that is added before the first step, with the rate of the first group, has its rates from then on."""
    found = rates(gg, lr_scheduler, name, 0, initial_lr=0.1, lr=optimizer_first_rate(name))
    without = rates(gg, lr_scheduler, name, 1000)
    for row, plain in zip(found[1:], without[1:], strict=True):
        assert row[2] == pytest.approx(row[0], rel=1e-12)
        assert row[5] == pytest.approx(row[3], rel=1e-12)
        assert row[:2] == plain[:2], "the groups from before are not changed by it"


def optimizer_first_rate(name: str) -> float:
    optimizer = optimizer_of(gg)
    SCHEDULES[name](lr_scheduler, optimizer)
    return float(optimizer.param_groups[0]["lr"])


@pytest.mark.parametrize("name", sorted(ONLY_HERE))
def test_a_new_group_in_the_middle_has_its_own_base(name: str) -> None:
    found = np.array(rates(gg, lr_scheduler, name, 20, lr=0.05)[21:])
    assert found.shape[1] == 9
    assert np.isfinite(found).all()
    assert len(set(found[:, 2])) > 3, "its rate moves"


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_lists_say_nothing_about_a_new_group(name: str) -> None:
    with pytest.raises(ValueError, match=rf"(?s)a group was added.*{ONE_BY_ONE[name]} was given for 2 groups.*Next:"):
        rates(gg, lr_scheduler, name, 5)


@pytest.mark.parametrize("min_lr", [0.0, 0.03, [0.01, 0.02]])
def test_plateau(min_lr: Any) -> None:
    def made(library: Any, module: Any) -> Any:
        optimizer = optimizer_of(library)
        schedule = module.ReduceLROnPlateau(optimizer, patience=1, min_lr=min_lr)
        for step in range(12):
            if step == 4:
                optimizer.add_param_group({"params": [library.zeros(4, requires_grad=True)]})
            schedule.step(1.0)
        return [group["lr"] for group in optimizer.param_groups]

    if isinstance(min_lr, list):
        with pytest.raises(RuntimeError):
            made(torch, torch.optim.lr_scheduler)
        with pytest.raises(ValueError, match="min_lr was given for 2 groups"):
            made(gg, lr_scheduler)
        return
    np.testing.assert_allclose(made(gg, lr_scheduler), made(torch, torch.optim.lr_scheduler), rtol=1e-9)


def test_swa() -> None:
    optimizer = optimizer_of(gg)
    schedule = swa_utils.SWALR(optimizer, 0.5, anneal_epochs=4)
    optimizer.add_param_group({"params": [gg.zeros(4, requires_grad=True)], "lr": 0.1})
    for _ in range(6):
        schedule.step()
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.5] * 3)


@pytest.mark.parametrize("name", sorted(set(SCHEDULES) - set(ONE_BY_ONE)))
def test_a_schedule_with_a_new_group_is_stopped_and_goes_on(name: str) -> None:
    def made(saved: Any = None) -> tuple[Any, Any]:
        optimizer = optimizer_of(gg)
        schedule = SCHEDULES[name](lr_scheduler, optimizer)
        optimizer.add_param_group({"params": [gg.zeros(4, requires_grad=True)], "lr": 0.5})
        if saved is not None:
            optimizer.load_state_dict({"state": {}, "param_groups": saved[1]})
            schedule.load_state_dict(saved[0])
        return optimizer, schedule

    def go(optimizer: Any, schedule: Any, count: int) -> list[Any]:
        found = []
        for _ in range(count):
            schedule.step()
            found.append([group["lr"] for group in optimizer.param_groups])
        return found

    expected = go(*made(), 40)
    first = made()
    go(*first, 17)
    saved = json.loads(json.dumps([first[1].state_dict(), first[0].state_dict()["param_groups"]]))
    np.testing.assert_allclose(go(*made(saved), 23), expected[17:], rtol=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_compiled_step_trains_the_new_group(backend: str) -> None:
    def train(wrap: Callable[..., Any]) -> list[Any]:
        first, second = (gg.ones(3, requires_grad=True) for _ in range(2))
        optimizer = gg.optim.SGD([first], lr=0.1, momentum=0.9)
        schedule = lr_scheduler.LambdaLR(optimizer, lambda step: 0.9**step)

        @wrap
        def step() -> Any:
            optimizer.zero_grad()
            loss = ((first - 2) ** 2).sum() + ((second + 1) ** 2).sum()
            loss.backward()
            optimizer.step()
            return loss

        for turn in range(8):
            if turn == 3:
                optimizer.add_param_group({"params": [second], "lr": 0.05})
            step()
            schedule.step()
        return [first.tolist(), second.tolist()]

    compiled = train(lambda function: gg.compile(function, backend=backend))
    plain = train(lambda function: function)
    np.testing.assert_allclose(compiled, plain, rtol=1e-6)
    assert plain[1] != [1, 1, 1]
