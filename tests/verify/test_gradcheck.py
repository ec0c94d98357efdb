"""Every verdict of gradcheck, in a situation that really produces it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors, manual, nn
from glassgrad.ops.core import Custom, Elementwise
from glassgrad.verify import gradcheck, gradgradcheck

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4))


def planted(derivative: Any) -> Any:
    """Return exp with a derivative of the test's choice: a function ``(y, x)``."""
    return Elementwise("exp_planted", "exp", (derivative,), saves=("x", "y"), register=False)


class Wrong(gg.autograd.Function):
    """sin with the derivative of cos."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return -g * x.sin()


# --- right ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.tanh(),
        lambda x: (x @ x.mT).logsumexp(dim=0).prod(),
        lambda x: (x.sum(dim=0), {"norm": (x * x).sum().sqrt()}),
        lambda x: x.softmax(dim=-1)[1],
        lambda x: 3.0 * x.detach() + x,
        lambda x: (x * 0).sum(),
    ],
)
def test_right(fn: Any) -> None:
    wanted = "wrong" if fn.__code__.co_names == ("detach",) else "right"
    verdict = gradcheck(fn, X)
    assert verdict.kind == wanted, str(verdict)
    assert bool(verdict) == (wanted == "right")


def test_a_right_verdict_names_the_largest_error() -> None:
    verdict = gradcheck(lambda a, b: a.tanh() @ b, X, RNG.normal(size=(4, 2)))
    assert [(row.name, row.shape, row.checked, row.disagree) for row in verdict.rows] == [
        ("a", (3, 4), 12, 0),
        ("b", (4, 2), 8, 0),
    ]
    assert verdict.worst is not None
    assert 0 < verdict.worst.absolute <= max(row.absolute for row in verdict.rows) < 1e-8
    assert "right" in str(verdict)
    assert "largest error at" in str(verdict)


def test_only_what_requires_a_gradient_is_varied_if_anything_does() -> None:
    a, b = gg.tensor(X, requires_grad=True), gg.tensor(X)
    assert [row.name for row in gradcheck(lambda a, b: a * b, a, b).rows] == ["a"]
    assert [row.name for row in gradcheck(lambda a, b: a * b, b, b).rows] == ["a", "b"]


def test_containers_integers_numbers_and_the_tuple_of_pytorch() -> None:
    labels = np.array([0, 3, 1])
    verdict = gradcheck(
        lambda parts, labels: -parts["x"].log_softmax(dim=1)[[0, 1, 2], labels] * parts["w"][0],
        {"x": X, "w": [np.array(2.0)]},
        labels,
    )
    assert verdict.kind == "right", str(verdict)
    assert [row.shape for row in verdict.rows] == [(3, 4), ()]
    assert gradcheck(lambda x: x * x, 3.0).rows[0].shape == ()
    assert gradcheck(lambda a, b: a * b, (X, X)).kind == "right"


def test_shapes_empty_scalar_and_many() -> None:
    assert gradcheck(lambda x: x.exp(), np.zeros((0, 3))).kind == "right"
    assert gradcheck(lambda x: x.exp(), np.array(0.3)).kind == "right"
    assert gradcheck(lambda x: (x.tanh() * x).sum(dim=0), RNG.normal(size=(40, 30)), samples=20).kind == "right"


def test_inputs_are_left_alone() -> None:
    x = gg.tensor(X.astype(np.float32), requires_grad=True)
    before = x.numpy().copy() if not x.requires_grad else x.detach().numpy().copy()
    gradcheck(lambda x: x.exp().sum(), x)
    np.testing.assert_array_equal(x.detach().numpy(), before)
    assert x.grad is None
    assert x.dtype == np.float32


# --- wrong ----------------------------------------------------------------------------------------


def test_wrong_function_names_the_worst_entry_and_both_values() -> None:
    verdict = gradcheck(lambda x: Wrong.apply(x) * gg.tensor([[1.0], [10.0], [1.0]], dtype=gg.float64), X)
    assert verdict.kind == "wrong"
    assert not verdict
    off = np.abs(np.cos(X) + np.sin(X)) * np.array([[1.0], [10.0], [1.0]])
    allowed = 1e-5 + 1e-3 * np.abs(np.cos(X)) * np.array([[1.0], [10.0], [1.0]])
    place = np.unravel_index(np.argmax(off / allowed), off.shape)
    worst = verdict.worst
    assert worst is not None
    assert worst.position == tuple(place)
    assert worst.output == (0, tuple(place))
    scale = 10.0 if place[0] == 1 else 1.0
    assert worst.analytic == pytest.approx(-np.sin(X[place]) * scale)
    assert worst.numeric == pytest.approx(np.cos(X[place]) * scale, rel=1e-6)
    text = str(verdict)
    assert f"x[{place[0]}, {place[1]}]" in text
    assert f"{worst.analytic:.10g}" in text
    assert f"{worst.numeric:.10g}" in text


@pytest.mark.parametrize(
    ("derivative", "said"),
    [
        (lambda y, x: -y, "all by the sign"),
        (lambda y, x: 2 * y, "all by the factor 2"),
        (lambda y, x: 1.01 * y, "all by the factor 1.01"),
        (lambda y, x: 0 * y, "the rule gives no gradient"),
        (lambda y, x: y + 0.01, "12 of 144 comparisons disagree"),
        (lambda y, x: y * np.nan, "the rule gives NaN"),
        (lambda y, x: gg.where(x > 1, 2 * y, y), f"{int((X > 1).sum())} of 144 comparisons disagree"),
    ],
)
def test_wrong_rules_planted_on_purpose(derivative: Any, said: str) -> None:
    prim = planted(derivative)
    verdict = gradcheck(prim, X)
    assert verdict.kind == "wrong", str(verdict)
    assert said in str(verdict)


def test_one_wrong_entry_among_many_is_found_by_halving() -> None:
    place = (31, 17)
    hidden = np.zeros((40, 30))
    hidden[place] = 1.0
    rule = lambda g, y, x: g * (1 - y * y + hidden)
    rule = lambda g, y, x: g * (1 - y * y + hidden)
    prim = Custom("tanh_planted", "tanh", vjp=(rule,), jvp=(None,), saves=("x", "y"), register=False)
    verdict = gradcheck(lambda x: prim(x).sum(), RNG.normal(size=(40, 30)), samples=10)
    assert verdict.kind == "wrong"
    assert verdict.worst is not None
    assert verdict.worst.position == place


def test_the_wrong_result_of_many_is_named() -> None:
    prim = planted(lambda y, x: y)

    def forty(x: Any) -> Any:
        wrong = planted(lambda y, x: 3 * y)
        return gg.cat([prim(x).reshape(-1), prim(x).reshape(-1), wrong(x[2, 1:2]), prim(x).reshape(-1)[:8]])

    verdict = gradcheck(forty, X)
    assert verdict.kind == "wrong"
    assert verdict.worst is not None
    assert (verdict.worst.position, verdict.worst.output) == ((2, 1), (0, (24,)))


def test_a_missing_gradient_path_is_wrong_not_an_error() -> None:
    verdict = gradcheck(lambda x: x.detach() * 2, X)
    assert verdict.kind == "wrong"
    assert "no gradient" in str(verdict)


def test_a_kink_does_not_excuse_a_rule_outside_of_both_slopes() -> None:
    prim = Elementwise(
        "relu_planted", lambda xp, x: xp.maximum(x, 0), (lambda y, x: 5.0 * (x >= 0),), saves="x", register=False
    )
    verdict = gradcheck(prim, np.array([0.0, -1.0]))
    assert verdict.kind == "wrong"
    assert "outside of its two slopes" in str(verdict)


def test_a_wrong_entry_outweighs_a_kink_beside_it() -> None:
    verdict = gradcheck(lambda x, y: x.relu().sum() + Wrong.apply(y).sum(), np.zeros(3), X)
    assert verdict.kind == "wrong"
    assert verdict.worst is not None
    assert verdict.worst.name == "y"


def test_raise_exception() -> None:
    with pytest.raises(errors.GradcheckError, match=r"(?s)wrong.*analytic.*numeric.*test_gradcheck\.py:\d+"):
        gradcheck(Wrong.apply, X, raise_exception=True)
    assert gradcheck(lambda x: x.exp(), X, raise_exception=True)


def test_tolerances_and_step_are_the_callers() -> None:
    prim = planted(lambda y, x: 1.01 * y)
    assert gradcheck(prim, X, rtol=0.02).kind == "right"
    assert gradcheck(prim, X, atol=0.5).kind == "right"
    # With a step this long the curvature of exp is taken for a mistake of its rule.
    assert gradcheck(lambda x: x.exp(), X, eps=1.0).kind != "right"


# --- float32 noise --------------------------------------------------------------------------------


def test_ordinary_float32_is_right() -> None:
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))
    assert model[0].weight.dtype == np.float32
    assert gradcheck(model, gg.tensor(X.astype(np.float32))).kind == "right"
    assert gradcheck(lambda x: (x.exp() / x.exp().sum(dim=1, keepdim=True)).log(), X.astype(np.float32)).kind == "right"


def cancelling(x: Any) -> Any:
    """The variance by E[x**2] - E[x]**2, of numbers far from 0."""
    x = x + 1000.0
    return (x * x).mean() - x.mean() ** 2


def test_float32_noise_of_a_right_rule() -> None:
    verdict = gradcheck(cancelling, X.astype(np.float32))
    assert verdict.kind == "float32 noise", str(verdict)
    assert verdict
    assert verdict.worst is not None
    assert "float32" in verdict.why
    assert gradcheck(cancelling, X).kind == "right"


def test_float32_overflow_in_the_rule_is_noise() -> None:
    def f(x: Any) -> Any:
        return (x + 89.0).exp().sum().log()

    verdict = gradcheck(f, X.astype(np.float32))
    assert verdict.kind == "float32 noise"
    assert gradcheck(f, X).kind == "right"


def test_a_function_that_computes_in_float32_whatever_it_is_given() -> None:
    def f(x: Any) -> Any:
        return (x.astype(np.float32).exp().sum() + 1e7).astype(np.float64)

    verdict = gradcheck(f, X)
    assert verdict.kind == "float32 noise", str(verdict)
    assert "rounding errors alone change" in str(verdict)
    assert gradcheck(lambda x: x.astype(np.float32).exp().sum(), X).kind == "right"


def test_wrong_in_float32_is_still_wrong() -> None:
    assert gradcheck(Wrong.apply, X.astype(np.float32)).kind == "wrong"
    prim = planted(lambda y, x: 1.3 * y)
    assert gradcheck(lambda x: prim(x.astype(np.float32)).sum(), X).kind == "wrong"


# --- kinks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fn", "x", "place"),
    [
        (lambda x: x.relu(), [1.0, 0.0], (1,)),
        (abs, [0.0, 2.0], (0,)),
        (lambda x: x.clip(-1, 1).sum(), [1.0, 0.5, -3.0], (0,)),
        (lambda x: x.max(), [1.0, 3.0, 3.0], (1,)),
        (lambda x: x.sqrt(), [2.0, 0.0], (1,)),
        (lambda x: x.log(), [2.0, 0.0], (1,)),
        (lambda x: x.floor() * 0 + abs(x - 2), [1.5, 2.0], (1,)),
    ],
)
def test_kinks(fn: Any, x: list[float], place: tuple[int, ...]) -> None:
    verdict = gradcheck(fn, np.array(x))
    assert verdict.kind == "kink here", str(verdict)
    assert not verdict
    assert verdict.worst is not None
    assert verdict.worst.position == place
    assert "another" in str(verdict)


def test_both_slopes_of_a_kink_are_shown() -> None:
    verdict = gradcheck(lambda x: gg.where(x > 0, 3 * x, -2 * x), np.array([0.0]))
    assert verdict.worst is not None
    assert (verdict.worst.left, verdict.worst.right) == pytest.approx((-2.0, 3.0))
    assert "from the left -2, from the right 3" in str(verdict)


def test_beside_a_kink_is_right() -> None:
    near = np.array([1e-4, -1e-4, 3e-7, 1e-5])
    assert gradcheck(lambda x: x.relu(), near).kind == "right"
    assert gradcheck(lambda x: x.log(), np.array([1e-9, 1e-4, 3.0])).kind == "right"


def test_strong_curvature_is_not_a_kink() -> None:
    assert gradcheck(lambda x: (1000 * x).sin() + (x / 1e-3).tanh(), np.array([0.0, 1e-4, 0.3])).kind == "right"


# --- nondeterminism -------------------------------------------------------------------------------


class Dropping(nn.Module):
    def forward(self, x: Any) -> Any:
        return nn.functional.dropout(x, 0.5, self.training)


def test_dropout_is_nondeterministic() -> None:
    verdict = gradcheck(lambda x: nn.functional.dropout(x, 0.5), X)
    assert verdict.kind == "nondeterministic"
    assert not verdict
    assert verdict.worst is not None
    assert verdict.worst.analytic != verdict.worst.numeric
    assert "two runs" in str(verdict)
    assert gradcheck(nn.Sequential(nn.Linear(4, 4), Dropping()), X).kind == "nondeterministic"


def test_a_gradient_may_be_nondeterministic_alone() -> None:
    rng = np.random.default_rng(0)
    prim = planted(lambda y, x: y * (1 + 0.1 * rng.random()))
    verdict = gradcheck(prim, X)
    assert verdict.kind == "nondeterministic"
    assert verdict.worst is not None
    assert verdict.worst.name == "the gradient of input 0"
    assert gradcheck(prim, X, nondet_tol=100.0).kind == "wrong"


def test_dropout_that_is_off_is_right() -> None:
    model = nn.Sequential(nn.Linear(4, 4), Dropping())
    assert gradcheck(model.eval(), X).kind == "right"


# --- modules --------------------------------------------------------------------------------------


def test_modules_are_checked_with_all_their_parameters_and_left_alone() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Tanh())
    before = {name: tensor.numpy().copy() for name, tensor in model.state_dict().items()}
    verdict = gradcheck(model, gg.tensor(X.astype(np.float32)))
    assert verdict.kind == "right", str(verdict)
    assert [row.name for row in verdict.rows][1:] == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert verdict.rows[0].shape == X.shape
    for name, tensor in model.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), before[name])
        assert tensor.dtype == before[name].dtype


def test_a_wrong_module_names_the_parameter() -> None:
    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(4, 2)
            self.factor = nn.Parameter(np.array([1.5, -0.5]))

        def forward(self, x: Any) -> Any:
            return self.inner(x) * Wrong.apply(self.factor)

    verdict = gradcheck(Scale(), X)
    assert verdict.kind == "wrong"
    assert verdict.worst is not None
    assert verdict.worst.name == "factor"
    assert [row.name for row in verdict.rows if row.disagree] == ["factor"]


def test_a_parameter_used_twice_gets_both_shares() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(4, 4)
            self.b = nn.Linear(4, 4)
            self.b.weight = self.a.weight

        def forward(self, x: Any) -> Any:
            return self.b(self.a(x).tanh())

    verdict = gradcheck(Tied(), X)
    assert verdict.kind == "right", str(verdict)
    assert [row.name for row in verdict.rows] == ["x", "a.weight", "a.bias", "b.bias"]


# --- second order ---------------------------------------------------------------------------------


def test_gradgradcheck() -> None:
    assert gradgradcheck(lambda x: (x.tanh() * x).sum(dim=0), X).kind == "right"
    assert gradgradcheck(nn.Linear(4, 2), X).kind == "right"
    assert gradgradcheck(lambda x: x.sum(), X).kind == "right"
    verdict = gradgradcheck(lambda x: x.exp(), X)
    assert [row.name for row in verdict.rows] == ["x", "cotangent of result 0"]


def test_gradgradcheck_sees_a_rule_that_is_right_only_once() -> None:
    # The derivative is right as a number and hides from the second pass that it depends on x.
    prim = Elementwise(
        "exp_planted",
        "exp",
        (lambda y, x: gg.exp(x.detach() if isinstance(x, gg.Tensor) else x),),
        saves=("x", "y"),
        register=False,
    )
    assert gradcheck(prim, X).kind == "right"
    verdict = gradgradcheck(prim, X)
    assert verdict.kind == "wrong"
    assert verdict.worst is not None
    assert verdict.worst.variable == 0
    assert "gradgradcheck" in str(verdict)


def test_gradgradcheck_kinks_and_layers() -> None:
    assert gradgradcheck(lambda x: x.relu() ** 2, np.array([0.0, 1.0])).kind == "kink here"
    with pytest.raises(errors.KindError, match="cannot be differentiated again"):
        gradgradcheck(manual.Linear(4, 2), X)


# --- messages -------------------------------------------------------------------------------------


def test_messages_of_what_cannot_be_checked() -> None:
    with pytest.raises(errors.KindError, match=r"(?s)nothing to vary.*\.double\(\)"):
        gradcheck(lambda x: x, np.arange(3))
    with pytest.raises(errors.KindError, match=r"(?s)returned float, expected glassgrad Tensors.*end the graph"):
        gradcheck(lambda x: x.sum().item(), gg.tensor(X))
    with pytest.raises(errors.KindError, match="integers or booleans only"):
        gradcheck(lambda x: x.argmax(), X)
