"""Update rules as the functions that they are written out as, read line by line; and rules inside of compiled steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import optim
from glassgrad.engine.terms import Number, Term
from glassgrad.ops.elementwise import maximum, sqrt, where
from glassgrad.optim.equations import Direct
from glassgrad.optim.in_place import InPlace
from tests.optim.test_rules import CASES, give_gradients, large, made, rule_of, small


def shown(title: str, in_place: InPlace) -> str:
    return "\n".join([f"# {title}", "", *sorted(in_place.sources)])


def test_functions_of_optimizers(golden: Callable[[str, str], None]) -> None:
    """The richest options of each optimizer, for small and for large parameters."""
    texts = []
    for case in {case.name: case for case in sorted(CASES, key=lambda case: len(case.options))}.values():
        for sizes in (small, large):
            parameters, optimizer = made(case, sizes(case)[:1], np.float32)
            for at in range(2):
                give_gradients(parameters, at)
                optimizer.step()
            texts.append(shown(f"{case.id} {sizes.__name__}", optimizer._in_place))
    golden("optim/optimizers_in_place.txt", "\n".join(texts))


@pytest.mark.parametrize(("shape", "count"), [((3, 2), 12), ((), 4), ((100, 90), 12)], ids=str)
def test_functions_of_drawn_rules(shape: tuple[int, ...], count: int, golden: Callable[[str, str], None]) -> None:
    texts = []
    for seed in range(count):
        p, state, in_place = np.ones(shape), {}, InPlace()
        in_place.step(rule_of(seed), p, np.ones(shape), state, {"lr": 0.1, "swap": seed % 2 == 0}, "Drawn")
        texts.append(shown(f"rule {seed}", in_place))
    golden(f"optim/drawn_in_place_{'x'.join(map(str, shape)) or 'scalar'}.txt", "\n".join(texts))


# name -> rule
RULES: dict[str, Any] = {
    "a number of the state that is written, not read": lambda p, g, state, group: remember(state, p - group.lr * g),
    "a number first": lambda p, g, state, group: p - (group.lr - g) / (1 - p),
    "a number among truths": lambda p, g, state, group: where(p > 0, group.lr, g),
    "a choice by a count": lambda p, g, state, group: where(state.count() == 2, p * 3, p - g),
    "once and twice": lambda p, g, state, group: 1 * p + 2 * g - (0 - g) * group.lr,
    "powers": lambda p, g, state, group: p**2 - group.lr**2 * g**3,
    "names that are taken": lambda p, g, state, group: renamed(p, g, state),
    "a root of a large one": lambda p, g, state, group: maximum(p, sqrt(g * g + 1)) * (1 - group.lr),
    "options": lambda p, g, state, group: p - (group.on or 2) * group.pair[0] * g + group.count * group.pair[1],
}


def remember(state: Any, p: Any) -> Any:
    state.written = state.number("read", 0.5) + 1
    return p


def renamed(p: Any, g: Any, state: Any) -> Any:
    state.shape_ = state.like("sqrt", g) + g
    state.t1 = state.t1 + 2 * g
    state.lambda_ = getattr(state, "lambda") - g
    state.np = state.np + 1
    return p - state.shape_ * state.t1 + state.np


def options() -> dict[str, Any]:
    return {"lr": 0.1, "on": None, "pair": (0.3, 0.7), "count": 3}


@pytest.mark.parametrize("shape", [(3, 2), (100, 90)], ids=str)
@pytest.mark.parametrize("name", RULES)
def test_rules_agree(name: str, shape: tuple[int, ...]) -> None:
    """In place, by the equations, and by the equations in a compiled step, bit by bit."""
    rule, results, states = RULES[name], [], []
    for how in ("in place", "direct", "compiled"):
        rng = np.random.default_rng(3)
        p = gg.tensor(rng.normal(size=shape).astype(np.float32))
        state: dict[str, Any] = {}
        group, in_place = options(), InPlace()

        def step(g: Any, p: Any = p, state: Any = state, group: Any = group) -> None:
            Direct(p, g.array, state, group, owner="Own").step(rule)

        run = gg.compile(step, backend="numpy", strict=True) if how == "compiled" else step
        for at in range(3):
            group["lr"] = 0.1 / (at + 1)
            g = rng.normal(size=shape).astype(np.float32)
            if how == "in place":
                in_place.step(rule, p.array, g, state, group, "Own")
            else:
                run(gg.tensor(g))
        results.append(p.numpy())
        states.append({key: (value.dtype, value.numpy().tolist()) for key, value in state.items()})
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_allclose(results[0], results[2], rtol=1e-6)
    assert states[0] == states[1]
    assert states[0].keys() == states[2].keys()


def test_only_what_moves_is_an_input_of_a_compiled_step() -> None:
    w = gg.tensor([1.0, 2.0], requires_grad=True)
    optimizer = optim.SGD([w], lr=0.3125, momentum=0.875, weight_decay=0.125)

    def step(x: Any) -> None:
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()

    compiled = gg.compile(step, backend="numpy", strict=True)
    for at in range(3):
        optimizer.param_groups[0]["lr"] = 0.3125 + at
        compiled(gg.ones(2))
    text = str(compiled.source)
    assert compiled.traces == 1
    assert "def step(x, w, momentum_buffer, grad, lr, momentum):" in text
    assert "w * 0.125" in text


def test_a_loaded_state_of_another_shape_is_refused_by_the_equations() -> None:
    p = gg.tensor([1.0, 2.0])
    with pytest.raises(gg.errors.ArgumentError, match=r"mean has shape \(3,\), expected \(2,\)"):
        Direct(p, np.ones(2), {"mean": gg.zeros(3)}, {}, owner="Own").step(lambda p, g, state, group: p - state.mean)


def test_what_is_computed_at_once_stays_what_it_is() -> None:
    run = Direct(gg.tensor([1.0, 2.0]), np.ones(2, np.float32), {}, options(), owner="Own")
    assert 1 * run.p is run.p
    assert run.p * 1 is run.p
    assert (2 * run.p).what.tolist() == [2.0, 4.0]
    assert type(run.option("lr")) is Number
    assert run.option("on") is None
    assert run.option("count") == 3
    assert [type(one) for one in run.option("pair")] == [Number, Number]
    assert type(run.p > 1) is Term
    assert (run.p > 1).dtype == bool
    assert bool(run.option("lr") > 0.05)
    assert not run.option("lr") > 0.2
