"""Distributions inside compiled steps and vmap, their checks, and float32."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.distributions import (
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    Gamma,
    Independent,
    MultivariateNormal,
    Normal,
    TanhTransform,
    TransformedDistribution,
    Uniform,
    kl_divergence,
)
from glassgrad.distributions.distribution import Distribution


def _normal(x):
    q = Normal(x, (x * x + 0.1).sqrt())
    return kl_divergence(q, Normal(0.0, 1.0)).sum() + q.rsample((2,)).square().mean()


def _squashed(x):
    policy = TransformedDistribution(Normal(x, 1.0), TanhTransform(cache_size=1))
    action = policy.rsample()
    return (policy.log_prob(action) + action).sum()


def _policy(x):
    policy = Categorical(logits=x)
    action = policy.sample()
    return (-policy.log_prob(action) * action.float()).mean() - 0.01 * policy.entropy().mean()


def _coin(x):
    coin = Independent(Bernoulli(logits=x), 1)
    return coin.log_prob(coin.sample()).sum()


def _vectors(x):
    return MultivariateNormal(x, scale_tril=gg.eye(3) * 0.5).rsample().square().sum()


def _gamma(x):
    return Gamma(x.exp(), 2.0).rsample().sum() + Dirichlet(x.exp()).rsample().square().sum()


@pytest.mark.parametrize("step", [_normal, _squashed, _policy, _coin, _vectors])
def test_compiled_steps_draw_what_eager_ones_draw(step) -> None:
    def run(call):
        gg.manual_seed(7)
        x = gg.tensor(np.linspace(-0.7, 0.9, 6, dtype=np.float32).reshape(2, 3), requires_grad=True)
        losses = []
        for _ in range(3):
            x.grad = None
            loss = call(x)
            losses.append(loss.item())
        return losses, x.grad.numpy().copy()

    def whole(x):
        loss = step(x)
        loss.backward()
        return loss.detach()

    expected = run(whole)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what draws with parameters that a step computes runs eagerly
        found = run(gg.compile(whole))
    assert len(set(expected[0])) > 1
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-4, atol=1e-6)


def test_gamma_draws_need_parameters_that_are_known() -> None:
    with pytest.warns(gg.errors.CompileWarning, match="a gamma sample"):
        assert gg.compile(_gamma)(gg.zeros(2, 3)).shape == ()


def test_vmap_over_parameters() -> None:
    x = gg.tensor([[0.1, 0.5], [1.0, 2.0]])
    found = gg.vmap(lambda loc: Normal(loc, 1.0).log_prob(gg.zeros(2)).sum())(x)
    np.testing.assert_allclose(found.numpy(), Normal(x, 1.0).log_prob(gg.zeros(2)).sum(1).numpy(), rtol=1e-6)
    drawn = gg.vmap(lambda loc: Normal(loc, 1.0).sample(), randomness="different")(gg.zeros(2, 2))
    assert len(set(drawn.flatten().tolist())) == 4


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: Normal(0.0, gg.tensor([1.0, -1.0])), r"scale does not satisfy x > 0 .*: at \[1\] it is -1"),
        (lambda: Bernoulli(1.5), "probs does not satisfy 0 <= x <= 1"),
        (Bernoulli, "exactly one of probs and logits"),
        (lambda: Categorical(gg.ones(2), gg.ones(2)), "exactly one of"),
        (lambda: Categorical(probs=gg.tensor([-1.0, 2.0])), "probs does not satisfy Simplex"),
        (lambda: Uniform(1.0, 0.0), "high does not satisfy x > 1"),
        (lambda: Normal(float("nan"), 1.0), "loc does not satisfy Real"),
        (lambda: MultivariateNormal(gg.zeros(2), -gg.eye(2)), "covariance_matrix does not satisfy PositiveDefinite"),
        (lambda: MultivariateNormal(gg.zeros(()), gg.eye(2)), "at least 1 dimension"),
        (lambda: Dirichlet(gg.ones(())), "at least 1 dimension"),
        (lambda: Normal(0.0, 1.0).log_prob(1.0), "expects a tensor, given float"),
        (lambda: Normal(gg.zeros(2), 1.0).log_prob(gg.zeros(3)), r"shape \(3,\) does not broadcast"),
        (lambda: Categorical(gg.ones(2)).log_prob(gg.tensor(2)), "outside of the support"),
        (lambda: Beta(1.0, 1.0).log_prob(gg.tensor(1.5)), "outside of the support"),
        (lambda: Categorical(gg.ones(2)).rsample(), "no rsample"),
        (lambda: kl_divergence(Normal(0.0, 1.0), Beta(1.0, 1.0)), "no formula for Normal and Beta"),
        (lambda: Gamma(1.0, 1.0).cdf(gg.tensor(1.0)), "Gamma has no cdf"),
        (lambda: gg.distributions.VonMises, "subclass Distribution"),
    ],
)
def test_mistakes_are_told(use, message: str) -> None:
    with pytest.raises((ValueError, TypeError, NotImplementedError, AttributeError), match=message):
        use()


def test_checks_can_be_left_out() -> None:
    assert Normal(0.0, -1.0, validate_args=False).scale.item() == -1
    Distribution.set_default_validate_args(False)
    try:
        assert Normal(0.0, -1.0).mean.item() == 0
    finally:
        Distribution.set_default_validate_args(True)


def test_copies_and_pictures() -> None:
    normal = Normal(gg.zeros(2), 1.0)
    for twin in (copy.deepcopy(normal), pickle.loads(pickle.dumps(normal))):  # noqa: S301 - our own
        assert twin.log_prob(gg.zeros(2)).tolist() == normal.log_prob(gg.zeros(2)).tolist()
    assert repr(Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"
    assert repr(normal) == "Normal(loc: (2,), scale: (2,))"
    assert normal.batch_shape.numel() == 2


def test_a_number_beside_a_tensor_takes_its_dtype() -> None:
    assert Normal(gg.zeros(2, dtype=gg.float64), 1.0).sample().dtype == gg.float64
    assert Normal(0.0, 1.0).sample().dtype == gg.float32
    assert Gamma(2.0, 1.0).sample((3,)).dtype == gg.float32
    assert Categorical(gg.ones(3)).sample().dtype == gg.int64
    assert Categorical(gg.ones(3)).sample(5).shape == (5,)


def test_infinity_is_no_whole_number() -> None:
    for value, whole in ((float("inf"), False), (float("nan"), False), (2.0, True), (2.5, False)):
        assert bool(gg.distributions.constraints.nonnegative_integer.check(gg.tensor(value))) is whole
        if not whole:
            with pytest.raises(gg.errors.ArgumentError, match="whole"):
                gg.distributions.Poisson(gg.tensor(1.0)).log_prob(gg.tensor(value))
