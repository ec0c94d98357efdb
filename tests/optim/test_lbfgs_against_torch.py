"""L-BFGS against PyTorch's: every point at which the closure is called, and the state; its line search by itself."""

from __future__ import annotations

import importlib
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import optim
from glassgrad.optim.lbfgs import Point, Search, cubic

torch = pytest.importorskip("torch", reason="PyTorch is the oracle of these tests")

# --- the line search --------------------------------------------------------------------------------

Function = Callable[[float], tuple[float, float]]


def drawn(seed: int) -> Function:
    """Draw a function of one number that falls at 0: with several valleys, kinks, cliffs, or none at all."""
    rng = random.Random(seed)
    terms: list[Function] = []
    for _ in range(rng.choice((1, 2, 3))):
        a, c, w = rng.uniform(0.1, 2), rng.uniform(-1, 4), rng.uniform(0.5, 6)
        terms.append(
            rng.choice(
                (
                    lambda t, a=a, c=c, w=w: (a * math.cos(w * t + c), -a * w * math.sin(w * t + c)),
                    lambda t, a=a, c=c: (a * abs(t - c), math.copysign(a, t - c)),
                    lambda t, a=a, c=c: (a * (t - c) ** 2, 2 * a * (t - c)),
                    lambda t, a=a, c=c: (a * math.exp(min(t - c, 30.0)), a * math.exp(min(t - c, 30.0))),
                    lambda t, a=a: (-a * t, -a),
                    lambda t, a=a, c=c: (a if t > c else 0.0, 0.0),
                    lambda t, a=a, c=c: (-a * math.log(c - t), a / (c - t)) if t < c else (math.nan, math.nan),
                    lambda t, a=a, c=c: (math.sqrt((t - c) ** 2 + a), (t - c) / math.sqrt((t - c) ** 2 + a)),
                )
            )
        )
    turned = 1 if sum(term(0.0)[1] for term in terms) < 0 else -1
    found = lambda t: [sum(parts) for parts in zip(*(term(turned * t) for term in terms), strict=True)]
    return lambda t: (found(t)[0], turned * found(t)[1])


def scripted(seed: int) -> Function:
    """Draw few different losses and slopes, so that many are equal to others, or at the edge of the conditions."""
    rng, known = random.Random(seed), {0.0: (1.0, -1.0)}

    def function(t: float) -> tuple[float, float]:
        if t not in known:
            known[t] = rng.choice((-1.0, 0.0, 0.5, 1.0, 1.0 + 1e-4 * t * -1.0)), rng.choice((-2, -1, -0.9, 0.5, 0.9, 1))
        return known[t]

    return function


def at_the_margin() -> Function:
    """The first trial lies at the margin of the bracket to the digit, and the second one near the same end."""
    return lambda t: {0.0: (0.0, -3.0), 10.0: (970.0, 297.0), 1.0: (500.0, 1000.0)}.get(t, (400.0 + t, 900.0))


def searched(function: Function, length: float, size: float, allowed: int) -> tuple[list[float], list[float]]:
    """Return the steps that are looked at, and the step, loss, gradient and count that are found."""
    seen = []

    def at(step: float) -> Point:
        seen.append(step)
        loss, slope = function(step)
        return Point(step, loss, np.array([slope / size]), slope / size * size)

    loss, slope = function(0.0)
    search = Search(at, Point(0.0, loss, np.array([slope / size]), slope / size * size), size, allowed)
    found = search.run(length)
    return seen, [found.step, found.loss, float(found.gradient[0]), search.evaluations]


def searched_by_torch(function: Function, length: float, size: float, allowed: int) -> tuple[list[float], list[float]]:
    seen = []

    def at(_x: Any, step: Any, _d: Any) -> tuple[float, Any]:
        seen.append(float(step))
        loss, slope = function(float(step))
        return loss, torch.tensor([slope / size], dtype=torch.float64)

    loss, slope = function(0.0)
    d, g = (torch.tensor([one], dtype=torch.float64) for one in (size, slope / size))
    new, g, step, count = importlib.import_module("torch.optim.lbfgs")._strong_wolfe(
        at, None, length, d, loss, g, g.dot(d), max_ls=allowed
    )
    return seen, [float(step), float(new), float(g[0]), count]


def searches() -> Iterator[tuple[str, Function, float, float, int]]:
    """Yield names, functions, first steps, sizes of the direction, and how many rounds are allowed."""
    for seed in range(400):
        rng = random.Random(seed)
        options = rng.choice((0.01, 0.3, 1.0, 4.0)), rng.choice((1e-9, 1e-7, 0.5, 3.0))
        yield f"drawn {seed}", drawn(seed), *options, rng.choice((0, 1, 2, 3, 5, 12, 25))
        yield f"scripted {seed}", scripted(seed), rng.choice((0.5, 1.0)), rng.choice((1e-9, 1.0)), rng.randrange(6)
    yield "at the margin", at_the_margin(), 10.0, 1.0, 4


def test_the_line_search_takes_the_steps_of_pytorchs() -> None:
    compared = 0
    for name, function, *options in searches():
        if function(0.0)[1] < 0:
            ours, theirs = searched(function, *options), searched_by_torch(function, *options)
            if np.isnan(theirs[0]).any():  # PyTorch divides 0 by 0 where the cubic is a line
                assert not np.isnan(ours[0]).any()
                continue
            for mine, other in zip(ours, theirs, strict=True):
                np.testing.assert_allclose(mine, other, rtol=1e-9, err_msg=name)
            compared += 1
    assert compared > 700


def test_the_cubic_of_a_line_has_its_minimum_at_a_bound() -> None:
    for slope, expected in ((-1.0, 3.0), (1.0, 2.0), (0.0, 2.0)):
        a, b = (Point(step, slope * step, np.ones(1), slope) for step in (0.0, 1.0))
        assert cubic(a, b, 2.0, 3.0) == cubic(b, a, 2.0, 3.0) == expected


def test_a_trial_at_an_end_of_the_bracket_is_moved_inwards() -> None:
    for slope, expected in ((-1.0, 0.9), (1.0, 0.1)):
        ends = [Point(step, slope * step, np.ones(1), slope) for step in (0.0, 1.0)]
        search = Search(lambda step: Point(step, 0.0, np.ones(1), 0.0), ends[0], 1.0, 9)
        for stuck in (False, True):
            assert search._trial(ends[0], ends[1], stuck) == (pytest.approx(expected), False)


# --- steps ------------------------------------------------------------------------------------------


def rosenbrock(p: Any, *_rest: Any) -> Any:
    return ((1 - p[:-1]) ** 2).sum() + 100 * ((p[1:] - p[:-1] ** 2) ** 2).sum()


def quartic(p: Any, *_rest: Any) -> Any:
    return ((p - 1) ** 4).sum() + (p * p).sum() * 0.1


def bowl(p: Any, *_rest: Any) -> Any:
    return ((p - 3) ** 2).sum()


def kinks(p: Any, *_rest: Any) -> Any:
    return abs(p - 0.3).sum()


def slope(p: Any, *_rest: Any) -> Any:
    return (p * 2.0).sum()


def level(p: Any, *_rest: Any) -> Any:
    return p.sum()


def half(p: Any, *_rest: Any) -> Any:
    return p[1] * 0.5


def several(p: Any, q: Any, _unused: Any, r: Any) -> Any:
    return ((p[:2] * q - 1) ** 2).sum() + ((q.sum() - p * r) ** 4).sum()


WOLFE = {"line_search_fn": "strong_wolfe"}
# name -> the loss and the options
CASES: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "plain": (quartic, {"lr": 0.5, "max_iter": 4}),
    "one iteration": (quartic, {"lr": 0.3, "max_iter": 1}),
    "short memory": (quartic, {"lr": 0.5, "max_iter": 5, "history_size": 2}),
    "wolfe": (quartic, {**WOLFE, "max_iter": 6}),
    "wolfe, hard": (rosenbrock, {**WOLFE, "max_iter": 10}),
    "wolfe, short": (rosenbrock, {**WOLFE, "max_iter": 8, "history_size": 3, "lr": 0.5}),
    "few evaluations": (rosenbrock, {**WOLFE, "max_iter": 10, "max_eval": 7}),
    "few evaluations, plain": (quartic, {"lr": 0.1, "max_eval": 3}),
    "one evaluation": (quartic, {**WOLFE, "max_eval": 1}),
    "by default": (bowl, {}),
    "wolfe, by default": (bowl, WOLFE),
    "coarse in gradients": (quartic, {"lr": 0.2, "max_iter": 30, "tolerance_grad": 0.5}),
    "coarse in changes": (quartic, {"lr": 0.2, "max_iter": 30, "tolerance_change": 1e-2}),
    "wolfe, coarse in changes": (quartic, {**WOLFE, "max_iter": 30, "tolerance_change": 1e-2}),
    "no curvature": (slope, {"max_iter": 3}),
    "wolfe, no curvature": (slope, {**WOLFE, "max_iter": 3}),
    "kinks": (kinks, {"lr": 0.1, "max_iter": 6}),
    "wolfe, kinks": (kinks, {**WOLFE, "max_iter": 6}),
    "several": (several, {"lr": 0.1, "max_iter": 5}),
    "wolfe, several": (several, {**WOLFE, "max_iter": 5}),
    "slopes at the tolerance": (level, {"tolerance_change": 4.0}),
    "gradients at the tolerance": (level, {"tolerance_grad": 1.0}),
    "steps at the tolerance": (level, {"tolerance_change": 0.25, "max_iter": 3}),
    "changes at the tolerance": (half, {"tolerance_change": 0.25, "max_iter": 3}),
    "at rest": (slope, {"lr": 0.0, "max_iter": 3}),
}


def run(library: Any, function: Callable[..., Any], options: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """Return where the closure was called, and the parameters, losses and states after each of a few steps."""
    starts = (np.array([-1.2, 1.0, 0.5, 2.0]), np.array([[0.5], [2.0]]), np.ones(3), np.array(1.5))
    parameters = [library.tensor(start, requires_grad=True) for start in starts]
    optimizer = library.optim.LBFGS(parameters, **options)
    seen: list[Any] = []
    after: list[Any] = []

    def closure() -> Any:
        seen.append(np.concatenate([p.detach().numpy().reshape(-1) for p in parameters]))
        optimizer.zero_grad()
        loss = function(*parameters)
        loss.backward()
        return loss

    for _ in range(4):
        with library.no_grad():
            loss = optimizer.step(closure)
        state = dict(optimizer.state[parameters[0]])
        state.pop("al", None)  # intermediate results of PyTorch's
        after.append({name: plain(value) for name, value in {"loss": loss, "p": parameters[0], **state}.items()})
    return seen, after


def plain(value: Any) -> Any:
    """Return a copy of a number, an array or a list of them in NumPy."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    return np.asarray(value.detach() if hasattr(value, "detach") else value).copy()


@pytest.mark.parametrize(("function", "options"), CASES.values(), ids=CASES)
def test_steps_are_those_of_pytorchs(function: Callable[..., Any], options: dict[str, Any]) -> None:
    ours, theirs = run(gg, function, options), run(torch, function, options)
    assert len(ours[0]) == len(theirs[0])
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-5, atol=1e-7)
    for one, other in zip(ours[1], theirs[1], strict=True):
        assert one.keys() == other.keys()
        for name, value in other.items():
            np.testing.assert_allclose(one[name], value, rtol=1e-5, atol=1e-7, err_msg=name)


def test_what_hardly_curves_is_not_remembered() -> None:
    optimizer = optim.LBFGS([gg.ones(1, requires_grad=True)])
    memory: dict[str, Any] = {"old_dirs": [], "old_stps": [], "ro": [], "H_diag": 1.0}
    optimizer._remember(memory, np.array([1e-10]), np.array([1.0]))
    assert memory == {"old_dirs": [], "old_stps": [], "ro": [], "H_diag": 1.0}
    optimizer._remember(memory, np.array([2e-10]), np.array([1.0]))
    assert memory["ro"] == [5e9]
