"""`bisect`: planted differences between two runs are named with op, line and numbers; equal runs are equal."""

from __future__ import annotations

import functools
import io
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.doctor import bisect
from glassgrad.nn import functional as F
from glassgrad.ops.core import REGISTRY

gg.manual_seed(2)
X = gg.randn(16, 6)
W = gg.randn(6, 5, requires_grad=True)
B = gg.randn(5, requires_grad=True)

MOMENTUM = functools.partial(gg.optim.SGD, momentum=0.9)


def stepping(
    change: Callable[[Any], Any] = lambda hidden: hidden,
    *,
    p: float = 0.0,
    extra: int = 0,
    make: Any = MOMENTUM,
    **options: float,
) -> Any:
    gg.manual_seed(1)
    model = gg.nn.Sequential(gg.nn.Linear(6, 5), gg.nn.BatchNorm1d(5), gg.nn.Linear(5, 1))
    optimizer = make(model.parameters(), **{"lr": 0.1, **options})

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        if extra:
            gg.rand(extra)
        loss = change(F.dropout(model(x), p)).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    step.model = model
    return step


def test_a_changed_constant_is_named_on_both_sides() -> None:
    def before(x: Any) -> Any:
        hidden = gg.tanh(x @ W)
        return (hidden * 0.5 + B).sum()

    def after(x: Any) -> Any:
        hidden = gg.tanh(x @ W)
        return (hidden * 0.25 + B).sum()

    out = io.StringIO()
    found = bisect(before, after, X, file=out)
    first = found.difference
    assert first is not None
    assert (first.phase, first.name, first.shapes[0]) == ("forward", "multiply", (16, 5))
    assert first.places is not None
    assert "hidden * 0.5" in first.places[0].source
    assert "hidden * 0.25" in first.places[1].source
    assert first.values[0] == pytest.approx(2 * first.values[1])
    assert "0.5 and 0.25" in first.cause
    assert "operand 2" in out.getvalue()
    assert found.parted is None


def test_a_weight_that_differs_is_named_by_its_path() -> None:
    models = [stepping().model.eval() for _ in range(2)]
    with gg.no_grad():
        models[1][2].weight.mul_(2.0)
    first = bisect(*models, X, report=False).difference
    assert first is not None
    assert "(Sequential.2.weight) differs" in first.cause


def test_ops_in_another_order_are_named_where_the_runs_part() -> None:
    found = bisect(lambda x: F.relu(x @ W + B).sum(), lambda x: (F.relu(x @ W) + B).sum(), X, report=False)
    assert not found.equal
    assert found.parted is not None
    assert {event.op for event in found.parted if event is not None} <= {"add", "relu"}
    assert "only one of the runs" in found.difference.cause


def test_ops_in_another_order_may_be_equal() -> None:
    found = bisect(lambda x: (x @ W * 2).sum(), lambda x: (x @ W).sum() * 2, X, report=False)
    assert found.equal
    assert found.parted is not None


def test_equal_steps_are_equal_and_leave_nothing() -> None:
    one, other = stepping(p=0.5), stepping(p=0.5)
    before = [value.numpy().tobytes() for value in one.model.state_dict().values()]
    state = gg.get_rng_state()
    found = bisect(one, other, X, report=False)
    assert found.equal
    assert found.parted is None
    assert found.compared > 20
    assert [value.numpy().tobytes() for value in one.model.state_dict().values()] == before
    assert all(parameter.grad is None for parameter in one.model.parameters())
    assert str(gg.get_rng_state()) == str(state)


def test_dropout_from_other_random_numbers_is_said_to_be_that() -> None:
    found = bisect(stepping(p=0.5), stepping(p=0.5, extra=3), X, report=False)
    assert found.difference is not None
    assert "random draws differ" in found.difference.cause


def test_a_wrong_rule_is_named_in_the_backward_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    tanh = REGISTRY["tanh"]
    step = stepping(gg.tanh)

    def wrong(x: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(tanh, "vjps", (lambda g, y, x: g * 1.5 * (1 - y * y),))
            return step(x)

    found = bisect(step, wrong, X, report=False)
    assert found.difference is not None
    assert (found.difference.phase, found.difference.name) == ("backward", "tanh")
    assert found.difference.relative == pytest.approx(1 / 3, abs=0.2)
    assert "operands agree" in found.difference.cause
    assert "a cotangent that tanh sends back" in str(found)


@pytest.mark.parametrize(
    ("made", "other", "op", "told"),
    [
        (gg.optim.SGD, {"lr": 0.2}, "multiply", "lr is 0.1 in a and 0.2 in b"),
        (gg.optim.Adam, {"eps": 0.1}, "add", "eps is 1e-08 in a and 0.1 in b"),
        (gg.optim.RMSprop, {"eps": 0.1}, "add", "eps is 1e-08 in a and 0.1 in b"),
        (gg.optim.AdamW, {"weight_decay": 0.5}, "multiply", "weight_decay is 0.01 in a and 0.5 in b"),
    ],
)
def test_another_option_of_an_optimizer_is_named_by_op_and_line(
    made: Any, other: dict[str, float], op: str, told: str
) -> None:
    steps = [stepping(make=made), stepping(make=made, **other)]
    weights = [[p.detach().numpy().tobytes() for p in step.model.parameters()] for step in steps]
    first = bisect(*steps, X, report=False).difference
    assert first is not None
    assert (first.phase, first.name) == ("update", op)
    assert "model" in first.cause
    assert f"glassgrad/optim/{made.__name__.lower().removesuffix('w')}.py:" in first.cause
    assert first.cause.endswith(told)
    assert first.places is not None
    assert {place.source for place in first.places} == {"optimizer.step()"}
    assert weights == [[p.detach().numpy().tobytes() for p in step.model.parameters()] for step in steps]


def test_rules_of_two_optimizers_are_told_apart() -> None:
    first = bisect(stepping(), stepping(make=gg.optim.Adam, lr=0.2), X, report=False).difference
    assert first is not None
    assert first.cause.endswith("the rules are of SGD and Adam")


def test_a_compiled_step_is_equal_to_the_eager_one() -> None:
    step = stepping()
    found = bisect(step, gg.compile(step, backend="numpy"), X, report=False)
    assert found.equal, str(found)


def test_a_wrong_program_is_named_by_its_first_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    from glassgrad.compile.numpy import templates, text

    monkeypatch.setitem(templates.TEMPLATES, "tanh", lambda instr, xs: text.call("np.sinh", *xs))
    step = stepping(gg.tanh)
    found = bisect(step, gg.compile(step, backend="numpy"), X, report=False)
    assert not found.equal
    assert "the first instruction that differs is tanh" in found.program.lower()
    assert "test_bisect.py" in found.program


def test_rtol_decides_what_is_rounding() -> None:
    one, other = (lambda x: (x * 1.0).sum()), (lambda x: (x * 1.00001).sum())
    assert bisect(one, other, X, report=False).equal
    assert not bisect(one, other, X, rtol=1e-6, report=False).equal


def test_runs_that_show_nothing_are_refused() -> None:
    with pytest.raises(gg.errors.KindError, match="nothing to compare"):
        bisect(lambda: None, lambda: None)


# --- beside PyTorch ---


def both(build: Callable[[Any], Any]) -> tuple[Any, Any]:
    torch = pytest.importorskip("torch", reason="runs of PyTorch are compared with ours")
    torch.manual_seed(0)
    theirs = build(torch)
    ours = build(gg)
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def small(lib: Any) -> Any:
    return lib.nn.Sequential(
        lib.nn.Conv2d(1, 4, 3),
        lib.nn.ReLU(),
        lib.nn.Flatten(),
        lib.nn.Linear(64, 5),
        lib.nn.Tanh(),
        lib.nn.Linear(5, 3),
    )


IMAGES = np.random.default_rng(0).normal(size=(8, 1, 6, 6)).astype(np.float32)
LABELS = np.arange(8) % 3


def learning(lib: Any, model: Any, rate: float = 0.01) -> Any:
    optimizer = lib.optim.Adam(model.parameters(), lr=rate)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = lib.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def test_a_step_of_pytorch_is_equal_to_ours_and_leaves_nothing() -> None:
    ours, theirs = both(small)
    torch = sys.modules["torch"]
    before = [value.numpy().tobytes() for value in theirs.state_dict().values()]
    state = torch.get_rng_state()
    found = bisect(learning(gg, ours), learning(torch, theirs), IMAGES, LABELS, report=False)
    assert found.equal, str(found)
    assert found.parted is None
    assert found.compared > 20  # results, their gradients, the loss, gradients and weights
    assert [value.numpy().tobytes() for value in theirs.state_dict().values()] == before
    assert [value.numpy().tobytes() for value in ours.state_dict().values()] == before
    assert all(parameter.grad is None for model in (ours, theirs) for parameter in model.parameters())
    assert torch.equal(torch.get_rng_state(), state)


def test_a_weight_that_differs_from_pytorchs_is_named_by_its_op() -> None:
    ours, theirs = both(small)
    with sys.modules["torch"].no_grad():
        theirs[3].weight[2, 3] += 0.1
    (first,) = [bisect(ours, theirs, IMAGES, report=False).difference]
    assert first is not None
    assert (first.phase, first.name, first.index[1]) == ("forward", "linear", 2)
    assert "operand 2" in first.cause


def test_another_constant_or_rate_than_pytorchs_is_named() -> None:
    ours, theirs = both(small)
    torch = sys.modules["torch"]
    found = bisect(lambda x: (gg.tanh(x) * 0.5).sum(), lambda x: (torch.tanh(x) * 0.25).sum(), IMAGES, report=False)
    assert found.difference is not None
    assert "0.5 and 0.25" in found.difference.cause
    found = bisect(learning(gg, ours), learning(torch, theirs, 0.02), IMAGES, LABELS, report=False)
    assert found.difference is not None
    assert found.difference.phase == "state"
    assert found.difference.name.endswith(("weight", "bias"))
    assert found.difference.cause == "the options of Adam differ: lr is 0.01 in a and 0.02 in b"
    assert found.difference.places is not None
    assert [place.source for place in found.difference.places] == ["optimizer.step()"] * 2


def test_an_attribute_named_as_a_global_says_nothing_about_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = both(small)
    torch = sys.modules["torch"]
    monkeypatch.setitem(globals(), "nn", gg.nn)
    found = bisect(ours, lambda x: torch.nn.functional.relu(theirs(x)) + 1, IMAGES, report=False)
    assert found.difference is not None


def test_a_gradient_that_differs_from_pytorchs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = both(small)
    torch = sys.modules["torch"]
    monkeypatch.setattr(REGISTRY["tanh"], "vjps", (lambda g, y, x: g * 1.5 * (1 - y * y),))
    found = bisect(learning(gg, ours), learning(torch, theirs), IMAGES, LABELS, report=False)
    assert found.difference is not None
    assert (found.difference.phase, found.difference.name) == ("arriving", "linear")
    assert "the gradient of the result of linear" in str(found)
