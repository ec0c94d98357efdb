"""Every option of every optimizer, changed between two compiled calls: the next call agrees with eager mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import optim
from tests.optim.optimizer_cases import MUON, OPTIMIZERS, OURS, Case

# Without options, and with some: an option may be read only where another one is set.
ALL = [*OPTIMIZERS, *OURS, *MUON]
CASES = {case.name: case for case in ALL[::-1]} | {
    case.id: case for case in ALL if {"weight_decay", "momentum", "centered"} & case.options.keys()
}
UNUSED = {"initial_accumulator_value"}  # read when the optimizer is made, and never again


def changed(value: Any) -> Any:
    """Return another possible value of an option."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case float():
            return 0.25 if value == 0 else value * 0.5
        case tuple():
            return tuple(changed(part) if part is not None else None for part in value)
        case "original":
            return "match_rms_adamw"
        case "match_rms_adamw" | None:
            return "original"
    raise AssertionError(f"no other value known for {value!r}")


def options() -> list[Any]:
    found = []
    for case in CASES.values():
        made = optimizer_of(case, parameters_of(case))
        for name, value in made.param_groups[0].items():
            numbers = isinstance(value, bool | int | float | tuple) or name == "adjust_lr_fn"
            if numbers and name not in UNUSED:
                found.append(pytest.param(case, name, id=f"{case.id}-{name}"))
    return found


def parameters_of(case: Case) -> list[Any]:
    rng = np.random.default_rng(1)
    shapes = ((3, 4), (4, 3)) if case.name == "Muon" else ((3, 2), (2,))
    return [gg.tensor(rng.normal(size=shape).astype(np.float32), requires_grad=True) for shape in shapes]


def optimizer_of(case: Case, parameters: list[Any]) -> Any:
    return getattr(optim, case.name)(parameters, **case.options)


@pytest.mark.parametrize(("case", "name"), options())
def test_a_changed_option_counts_from_the_next_call_on(case: Case, name: str) -> None:
    results = []
    for compiled in (False, True):
        parameters = parameters_of(case)
        optimizer = optimizer_of(case, parameters)

        def step(parameters: list[Any] = parameters, optimizer: Any = optimizer) -> None:
            optimizer.zero_grad()
            sum((p**2).sum() for p in parameters).backward()
            optimizer.step()

        run: Any = gg.compile(step, backend="numpy") if compiled else step
        for at in range(6):
            if at == 3:
                for group in optimizer.param_groups:
                    group[name] = changed(group[name])
            run()
        results.append([p.detach().numpy() for p in parameters])
    for eager, found in zip(*results, strict=True):
        np.testing.assert_allclose(found, eager, rtol=2e-5, atol=1e-6)
