"""In-place update rules: the numbers of the rules' equations and of earlier versions, few calls and no arrays."""

from __future__ import annotations

import copy
import gc
import json
import random
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import optim
from glassgrad.engine.terms import Term
from glassgrad.ops.elementwise import abs as absolute
from glassgrad.ops.elementwise import maximum, minimum, sign, sqrt, where
from glassgrad.optim.equations import Direct
from glassgrad.optim.in_place import InPlace
from tests.optim.optimizer_cases import MUON, OPTIMIZERS, OURS, SPARSE, Case

CASES = [*OPTIMIZERS, *OURS, *MUON, *SPARSE]
GOLDEN = Path(__file__).parents[1] / "golden" / "optim" / "steps.json"


def made(case: Case, shapes: Any, dtype: Any) -> tuple[list[Any], Any]:
    rng = np.random.default_rng(1)
    parameters = [gg.tensor(rng.normal(size=shape).astype(dtype), requires_grad=True) for shape in shapes]
    return parameters, getattr(optim, case.name)(parameters, **case.options)


def give_gradients(parameters: list[Any], at: int) -> None:
    rng = np.random.default_rng(at + 10)
    for p in parameters:
        g = np.asarray(rng.normal(size=p.shape)).astype(p.dtype)
        if p.ndim > 1:
            g[0] = 0
        p.grad = gg.tensor(g)


def small(case: Case) -> Any:
    return [(3, 4), (4, 3)] if case.name == "Muon" else [(3, 4), (5,), (2, 3, 2)]


def large(case: Case) -> Any:
    return [(100, 90), (90, 100)] if case.name == "Muon" else [(100, 90)]


def everything(parameters: list[Any], optimizer: Any) -> list[tuple[str, bytes]]:
    """The parameters and the state, bit by bit."""
    found = [("p", p.detach().numpy().tobytes()) for p in parameters]
    for p in parameters:
        found += [(name, value.numpy().tobytes()) for name, value in optimizer.state[p].items()]
    return found


# --- the numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_numbers_are_those_of_earlier_versions(dtype: str) -> None:
    """A new case has no earlier version; all that was ever released is compared."""
    known = json.loads(GOLDEN.read_text(encoding="utf-8"))[dtype]
    compared = [case for case in CASES if case.id in known]
    assert known.keys() == {case.id for case in compared}
    for case in compared:
        parameters, optimizer = made(case, small(case), dtype)
        for at in range(8):
            give_gradients(parameters, at)
            optimizer.step()
        found = [*parameters[0].detach().numpy().flat, *parameters[1].detach().numpy().flat]
        tolerance = 1e-11 if dtype == "float64" else 1e-5
        np.testing.assert_allclose(found, known[case.id], rtol=tolerance, atol=tolerance, err_msg=case.id)


@pytest.mark.parametrize("sizes", [small, large, lambda case: [()]], ids=["small", "large", "scalar"])
@pytest.mark.parametrize("name", sorted({case.name for case in CASES}))
def test_in_place_is_what_the_equations_say(name: str, sizes: Any) -> None:
    """Each rule twice: written out, and as it stands, on new arrays for every result."""
    for case in [case for case in CASES if case.name == name]:
        if name == "Muon" and sizes not in (small, large):
            continue
        results = []
        for direct in (False, True):
            parameters, optimizer = made(case, sizes(case), np.float32)
            for at in range(7):
                give_gradients(parameters, at)
                if not direct:
                    optimizer.step()
                    continue
                for p in parameters:
                    Direct(p, p.grad.array, optimizer.state[p], optimizer.param_groups[0]).step(optimizer.update)
            results.append(everything(parameters, optimizer))
        if name == "Muon":  # the layout of a temporary array decides how a product is summed up
            for (_, one), (_, other) in zip(*results, strict=True):
                numbers = np.frombuffer(one, np.float32), np.frombuffer(other, np.float32)
                np.testing.assert_allclose(*numbers, rtol=2e-3, atol=1e-5)
        else:
            assert results[0] == results[1], case.id


def rule_of(seed: int) -> Any:
    """A rule of a dozen operators drawn at random, with assignments to its state in between."""

    def update(p: Any, g: Any, state: Any, group: Any) -> Any:
        rng = random.Random(seed)
        t = state.count()
        terms, numbers = [p, g, state.a, state.b, state.like("c", g)], [group.lr, 1 / t, 0.5, 2, 1]
        for _ in range(12):
            x, y, n = rng.choice(terms), rng.choice(terms), rng.choice(numbers)
            made = (
                lambda x=x, y=y, n=n: n * x + y,
                lambda x=x, y=y, n=n: x - n * y,
                lambda x=x: sign(x) + sqrt(absolute(x)),
                lambda x=x, n=n: (1 - n) * x,
                lambda x=x, y=y: minimum(maximum(x, -3.0), y),
                lambda x=x, y=y: where(x > 0, y, x),
                lambda x=x, y=y: where(t == 2, x, y),
                lambda x=x, n=n: x / (n + 2.0),
                lambda x=x: -(x**2) * 0.01,
            )
            terms.append(rng.choice(made)())
            if rng.random() < 0.3:
                setattr(state, rng.choice("abc"), rng.choice(terms))
        if group.swap:
            state.a, state.b = state.b, state.a
        return rng.choice(terms)

    return update


@pytest.mark.parametrize("shape", [(3, 2), (), (100, 90)], ids=str)
def test_any_rule_works_in_place(shape: tuple[int, ...]) -> None:
    for seed in range(60 if len(shape) == 2 and shape[0] == 3 else 12):
        group = {"lr": 0.1, "swap": seed % 2 == 0}
        results = []
        for direct in (False, True):
            rng = np.random.default_rng(seed)
            p, state, in_place = gg.tensor(rng.normal(size=shape), requires_grad=True), {}, InPlace()
            for _ in range(4):
                g = np.asarray(rng.normal(size=shape))
                before = g.copy()
                if direct:
                    Direct(p, g, state, group).step(rule_of(seed))
                else:
                    in_place.step(rule_of(seed), p.array, g, state, group, "Drawn")
                np.testing.assert_array_equal(g, before)
            results.append([p.array.tobytes(), *(state[name].array.tobytes() for name in ("step", "a", "b", "c"))])
        assert results[0] == results[1], f"rule {seed}\n" + "\n".join(in_place.sources)


# --- what it costs ----------------------------------------------------------------------------------

# Python calls for each small parameter and step: the function, and `where` has some.
CALLS = {"Rprop": 14, "Adafactor": 7, "Muon": 25, "SparseAdam": 15}
# How many arrays of the parameter's size a step of a large one may hold at once.
ARRAYS = {"Rprop": 5.5, "Adafactor": 2.5, "Muon": 7, "SparseAdam": 3.4}


def calls_of(optimizer: Any) -> int:
    count = 0

    def seen(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal count
        count += event == "call"

    gc.disable()  # a collection calls whatever other tests have left to be told of one
    sys.setprofile(seen)
    try:
        optimizer.step()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


@pytest.mark.usefixtures("before_bfloat16")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_step_makes_few_calls_and_no_arrays(case: Case) -> None:
    parameters, optimizer = made(case, small(case), np.float32)
    for at in range(7):
        give_gradients(parameters, at)
        optimizer.step()
    assert calls_of(optimizer) <= 5 + (1 + CALLS.get(case.name, 1)) * len(parameters)
    parameters, optimizer = made(case, large(case), np.float32)
    for at in range(9):
        give_gradients(parameters, at)
        optimizer.step()
    gc.collect()
    tracemalloc.start()
    try:
        optimizer.step()
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        optimizer.step()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (peak - before) / parameters[0].detach().numpy().nbytes <= ARRAYS.get(case.name, 0.2)


def test_a_rule_is_written_out_once_for_parameters_of_many_shapes() -> None:
    parameters, optimizer = made(Case("Adam", {"weight_decay": 0.1}), [(n,) for n in range(1, 6)], np.float32)
    for at in range(3):
        give_gradients(parameters, at)
        optimizer.step()
    (source,) = optimizer._in_place.sources
    assert "exp_avg *= betas_0" in source
    assert copy.deepcopy(optimizer)._in_place.sources == []


# --- what may change between steps --------------------------------------------------------------------


def test_options_count_from_the_next_step_on() -> None:
    """Numbers of other kinds, an option that is set later, None instead of a number."""
    results = []
    for direct in (False, True):
        parameters, optimizer = made(Case("Adafactor", {"lr": 0.1}), [(3, 4), (5,)], np.float32)
        (group,) = optimizer.param_groups
        changes = [
            {"lr": 1},
            {"lr": np.float64(0.01)},
            {"weight_decay": 0.1},
            {"eps": [1e-3, 1e-2]},
            {"maximize": True},
        ]
        for at, change in enumerate([{}, *changes, {"lr": np.float32(0.5)}, {"weight_decay": 0}]):
            group.update(change)
            give_gradients(parameters, at)
            if not direct:
                optimizer.step()
                continue
            given = {name: float(one) if isinstance(one, np.generic) else one for name, one in group.items()}
            for p in parameters:
                Direct(p, p.grad.array, optimizer.state[p], given).step(optimizer.update)
        results.append(everything(parameters, optimizer))
    assert results[0] == results[1]


def test_state_of_another_dtype_and_gradients_of_another_shape() -> None:
    w = gg.tensor(np.ones((2, 3), np.float32), requires_grad=True)
    optimizer = optim.Adam([w], lr=0.1)
    w.grad = gg.tensor([0.5, 1.0, -2.0])  # of a user; it broadcasts
    optimizer.step()
    np.testing.assert_allclose(w.detach().numpy(), [[0.9, 0.9, 1.1]] * 2, rtol=1e-6)
    w.grad = gg.ones(2, 3)
    optimizer.state[w]["exp_avg"] = gg.zeros(2, 3, dtype=gg.float64)
    optimizer.step()
    assert optimizer.state[w]["exp_avg"].dtype == np.float64
    np.testing.assert_allclose(optimizer.state[w]["exp_avg"].numpy(), 0.1)
    optimizer.state[w]["exp_avg"] = gg.zeros(3)
    with pytest.raises(gg.errors.ArgumentError, match=r"exp_avg has shape \(3,\), expected \(2, 3\)"):
        optimizer.step()


def test_the_array_of_a_parameter_stays_where_it_is() -> None:
    parameters, optimizer = made(Case("NAdam", {}), [(3, 4), (100, 90)], np.float32)
    arrays, states = [p.array for p in parameters], []
    for at in range(3):
        give_gradients(parameters, at)
        optimizer.step()
        states.append([optimizer.state[p]["exp_avg"].array for p in parameters])
    assert all(p.array is array for p, array in zip(parameters, arrays, strict=True))
    assert all(one is other for one, other in zip(states[0], states[2], strict=True))


def test_the_source_of_a_compiled_step_has_the_names_of_the_rule() -> None:
    w = gg.tensor([1.0, 2.0], requires_grad=True)
    optimizer = optim.Rprop([w])

    def step(x: Any) -> None:
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()

    compiled = gg.compile(step, backend="numpy")
    compiled(gg.ones(2))
    assert "kept = np.sign(" in str(compiled.source)
    assert "begun = np.where(" in str(compiled.source)


def test_a_rule_that_is_none_is_refused() -> None:
    rules = {
        "returned a NoneType": lambda p, g, state, group: None,
        "needs the values of an array at .*test_rules.py:": lambda p, g, state, group: p if g > 0 else p - g,
        "computes with a ndarray at .*test_rules.py": lambda p, g, state, group: p - np.ones(2) * g,
    }
    for message, rule in rules.items():
        with pytest.raises(gg.errors.GlassgradError, match=message):
            InPlace().step(rule, np.ones(2), np.ones(2), {}, {}, "Own")


def test_a_step_that_failed_can_be_made_again() -> None:
    w = gg.tensor([1.0, 2.0], requires_grad=True)
    optimizer = optim.Adam([w], lr=0.1)
    w.grad = gg.ones(2)
    optimizer.state[w]["exp_avg"] = gg.zeros(3)
    for _ in range(2):
        with pytest.raises(gg.errors.ArgumentError, match="exp_avg has shape"):
            optimizer.step()
    del optimizer.state[w]["exp_avg"]
    optimizer.step()
    np.testing.assert_allclose(w.detach().numpy(), [0.9, 1.9], rtol=1e-6)


def test_an_optimizer_of_the_users() -> None:
    class Signum(optim.Optimizer):
        def __init__(self, params: Any, lr: float = 0.5) -> None:
            super().__init__(params, {"lr": lr})

        def update(self, p: Any, g: Any, state: Any, group: Any) -> Any:
            state.mean = mean = np.float64(0.5) * state.mean + 0.5 * g
            return p - group.lr * gg.sign(mean)

    w = gg.tensor([3.0, -2.0], requires_grad=True)
    optimizer = Signum([w])

    def step() -> None:
        optimizer.zero_grad()
        (w**2).sum().backward()
        optimizer.step()

    step()
    assert w.tolist() == [2.5, -1.5]
    gg.compile(step)()
    assert w.tolist() == [2.0, -1.0]
    assert optimizer.state[w]["mean"].tolist() == [4.0, -2.5]
    assert w.dtype == np.float32


def test_terms_say_what_they_are() -> None:
    seen = []

    def update(p: Any, g: Any, _state: Any, _group: Any) -> Any:
        seen.append((type(p), p.shape, p.dtype, hash(g) == hash(g)))
        return p - g

    p = gg.tensor([1.0, 2.0], requires_grad=True)
    InPlace().step(update, p.array, np.ones(2, np.float32), {}, {}, "Plain")
    assert seen == [(Term, (2,), np.float32, True)]
    assert p.tolist() == [0.0, 1.0]


# --- inside vmap --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case", [Case("SGD", {"lr": 0.25}), Case("SGD", {"lr": 0.25, "momentum": 0.9}), Case("Adam", {"lr": 0.25})],
    ids=lambda case: case.id,
)  # fmt: skip  # a table
def test_parameters_of_each_example(case: Case) -> None:
    """An optimizer made inside vmap trains one parameter for each example."""

    def descended(x: Any) -> Any:
        w = (x * 1).detach().requires_grad_()
        optimizer = getattr(optim, case.name)([w], **case.options)
        for _ in range(3):
            optimizer.zero_grad()
            ((w - 1) ** 2).sum().backward()
            optimizer.step()
        return w.detach() * 1

    x = gg.tensor(np.arange(6.0).reshape(3, 2))
    expected = [descended(row).tolist() for row in x]
    np.testing.assert_allclose(gg.func.vmap(descended)(x).numpy(), expected, rtol=1e-12)


def test_a_parameter_that_all_examples_share_is_not_trained_by_each() -> None:
    w = gg.ones(2, requires_grad=True)
    optimizer = optim.SGD([w], lr=0.5, momentum=0.9)

    def step(x: Any) -> Any:
        w.grad = x
        optimizer.step()
        return x

    with pytest.raises(gg.errors.NoValueError, match="inside vmap"):
        gg.func.vmap(step)(gg.ones(3, 2))
    w.grad = None
    assert w.tolist() == [1, 1]
    assert all(value.tolist() == [0, 0] for value in optimizer.state[w].values())
