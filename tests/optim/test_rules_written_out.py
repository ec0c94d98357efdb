"""The functions generated from update rules, compared line by line; and rules inside compiled steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import optim
from glassgrad.engine.terms import Number, Term
from glassgrad.ops.elementwise import maximum, sinc, sqrt, where
from glassgrad.ops.reduce import sum_p
from glassgrad.optim.equations import Direct, begin
from glassgrad.optim.in_place import InPlace, as_number, is_small
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
    "what was assigned": lambda p, g, state, group: assigned(p, g, state),
    "a row for each": lambda p, g, state, group: p - state.like("row", sum_p(g, axis=(1,), keepdims=True)) - g,
    "how many rows": lambda p, g, state, group: p - g / p.shape[0],
    "a plain number": lambda p, g, state, group: p - np.float64(0.5) * g * -2.0 * (group.lr + 0),
    "no function of NumPy that takes out": lambda p, g, state, group: sinc(p - group.lr * g),
    "sums of sums": lambda p, g, state, group: p - over_rows(2.0 * (s := over_rows(g))) - s,
    "a value that is needed after the new one": lambda p, g, state, group: needed_later(p, g, state),
    "options": lambda p, g, state, group: p - (group.on or 2) * group.pair[0] * g + group.count * group.pair[1],
}


def over_rows(x: Any) -> Any:
    return sum_p(x, axis=(0,), keepdims=True)


def needed_later(p: Any, g: Any, state: Any) -> Any:
    doubled = 2.0 * p
    new = doubled + g
    state.row = over_rows(doubled)
    return new


def remember(state: Any, p: Any) -> Any:
    state.written = state.number("read", 0.5) + 1
    return p


def assigned(p: Any, g: Any, state: Any) -> Any:
    state.k = state.number("k", 1.0) + 1
    state.fresh = g * 2
    state.a = state.a + g
    return p - state.number("k") * state.fresh + state.a


def renamed(p: Any, g: Any, state: Any) -> Any:
    state.shape_ = state.like("sqrt", g) + g
    state.t1 = state.t1 + 2 * g
    state.lambda_ = getattr(state, "lambda") - g
    state.np = state.np + 1
    return p - state.shape_ * state.t1 + state.np


def options() -> dict[str, Any]:
    return {"lr": 0.1, "on": None, "pair": (0.3, 0.7), "count": 3}


def test_functions_of_rules(golden: Callable[[str, str], None]) -> None:
    texts = []
    for name, rule in RULES.items():
        for shape in ((3, 2), (100, 90)):
            in_place, p = InPlace(), np.full(shape, 0.5, np.float32)
            in_place.step(rule, p, p * 2, {}, options(), "Own")
            texts.append(shown(f"{name}, {shape}", in_place))
    golden("optim/rules_in_place.txt", "\n".join(texts))


@pytest.mark.parametrize("shape", [(3, 2), (100, 90)], ids=str)
@pytest.mark.parametrize("name", RULES)
def test_rules_agree(name: str, shape: tuple[int, ...]) -> None:
    """In place and by the equations, bit by bit, and by the equations in a compiled step."""
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
    np.testing.assert_allclose(results[0], results[2], rtol=1e-6, atol=1e-6 * np.abs(results[0]).max())  # sums differ
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


def test_a_choice_by_a_number_is_made_at_once() -> None:
    def rule(p: Any, g: Any, state: Any, group: Any) -> Any:
        return p - g if state.number("k", 2.0) > 1 else p + g

    for start, expected in ((2.0, 0.0), (1.0, 2.0), (0.5, 2.0)):
        p, state = gg.tensor([1.0]), {}
        begin(state, "k", (), np.dtype(float), start)
        assert state["k"].item() == start
        Direct(p, np.ones(1, np.float32), state, {}, owner="Own").step(rule)
        assert p.tolist() == [expected]


def test_what_begins_differently_is_traced_twice() -> None:
    results = []
    for compiled in (False, True):
        w = gg.tensor([1.0, 2.0], requires_grad=True)
        optimizer = optim.SGD([w], lr=0.1, momentum=0.9, dampening=0.3)

        def step(x: Any, w: Any = w, optimizer: Any = optimizer) -> None:
            optimizer.zero_grad()
            (w * x).sum().backward()
            optimizer.step()

        run = gg.compile(step, backend="numpy", strict=True) if compiled else step
        for at in range(3):
            run(gg.ones(2) + at)
        results.append(w.detach().numpy())
    np.testing.assert_allclose(results[1], results[0], rtol=1e-6)


def test_parameters_of_several_shapes() -> None:
    wide = {"sums of sums": 9000}
    for name in ("a row for each", "how many rows", "once and twice", *wide):
        results = []
        for direct in (False, True):
            in_place, states, width = InPlace(), [{}, {}, {}, {}, {}, {}], wide.get(name, 3)
            parameters = [gg.ones(rows, width) for rows in (1, 2, 4, 2, 4, 1)]
            for p, state, rows in zip(parameters, states, (1, 2, 4, 1, 1, 1), strict=True):
                g = np.full((rows, width) if name == "once and twice" else tuple(p.shape), 0.5, np.float32)
                if direct:
                    Direct(p, g, state, options(), owner="Own").step(RULES[name])
                else:
                    in_place.step(RULES[name], p.array, g, state, options(), "Own")
            results.append([p.tolist() for p in parameters])
        assert results[0] == results[1], name


def test_functions_are_kept_for_the_latest_courses() -> None:
    in_place, p = InPlace(), np.zeros(3)
    for count in range(20):
        in_place.step(lambda p, g, state, group: p + group.count, p, np.ones(3), {}, {"count": count}, "Own")
    assert p.tolist() == [190.0] * 3
    for count in (19, 18, 19, 17, 18):
        in_place.step(lambda p, g, state, group: p + group.count, p, np.ones(3), {}, {"count": count}, "Own")
    (steps,) = in_place.steps.values()
    assert len({str(step.__doc__) for step in steps}) == 16, "none is written out twice"
    assert len(steps) == len(in_place._general[True]) == 16
    assert in_place._general[True] == steps
    assert "!= 19:" in str(steps[0].__doc__)


def test_functions_of_scalars_serve_nobody_else() -> None:
    in_place = InPlace()
    for p in (np.ones(()), np.ones(3), np.ones((100, 90))):
        in_place.step(lambda p, g, state, group: p - g, p, np.ones(p.shape), {}, {}, "Own")
        assert not p.any()
    assert {small: len(steps) for small, steps in in_place._general.items()} == {True: 1, False: 1}
    assert [len(steps) for steps in in_place.steps.values()] == [1, 1, 1]
    assert len({id(step) for (step,) in in_place.steps.values()}) == 3


def test_scratch_memory_is_shared_and_grows() -> None:
    in_place = InPlace()
    (one,) = in_place.scratch(np.empty((2, 3)), 1)
    larger, other = in_place.scratch(np.empty((4, 5)), 2)
    (again,) = in_place.scratch(np.empty(6), 1)
    (single,) = in_place.scratch(np.empty(6, np.float32), 1)
    assert [array.shape for array in (one, larger, other, again)] == [(2, 3), (4, 5), (4, 5), (6,)]
    assert np.shares_memory(again, larger)
    assert not np.shares_memory(larger, other)
    assert single.dtype == np.float32


def test_small_parts() -> None:
    assert [is_small(np.empty(shape)) for shape in ((), 1, 8191, 8192)] == [False, True, True, False]
    assert [as_number(one) for one in (None, True, "2", (2.0,), [1])] == [None] * 5
    assert [repr(as_number(one)) for one in (2, np.float32(0.5))] == ["2.0", "0.5"]
    in_place, p = InPlace(), np.ones(3, ">f4")
    in_place.step(lambda p, g, state, group: p - g, p, np.full(3, 0.5, ">f4"), {}, {}, "Own")
    assert p.tolist() == [0.5] * 3
    assert "p.dtype is not swapped_float32" in in_place.sources[0]
