"""Densities, moments, divergences and their gradients equal PyTorch's in float64; samples are distributed correctly."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import distributions

from .cases import CASES, Case

torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
ALL = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
NOTES = ("mean", "variance", "stddev", "mode", "entropy", "batch_shape", "event_shape", "perplexity")


def both(case: Case) -> tuple[Any, Any, dict[str, Any], dict[str, Any]]:
    ours = {key: gg.tensor(value, requires_grad=True) for key, value in case.parameters.items()}
    theirs = {key: torch.tensor(value, requires_grad=True) for key, value in case.parameters.items()}
    return case.make(distributions, ours), case.make(torch.distributions, theirs), ours, theirs


def compare(found: Any, expected: Any, ours: dict[str, Any], theirs: dict[str, Any], rtol: float = 1e-7) -> None:
    """Compare values, and the gradients of their weighted sum."""
    assert tuple(found.shape) == tuple(expected.shape)
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=rtol, atol=1e-9)
    if not expected.requires_grad or not torch.isfinite(expected).all():
        return
    weights = np.cos(np.arange(expected.numel())).reshape(expected.shape)
    g = torch.autograd.grad((expected * torch.tensor(weights)).sum(), list(theirs.values()), allow_unused=True)
    f = gg.autograd.grad((found * gg.tensor(weights)).sum(), list(ours.values()), allow_unused=True)
    for key, a, b in zip(ours, f, g, strict=True):
        left = np.zeros(ours[key].shape) if a is None else a.numpy()
        right = np.zeros(ours[key].shape) if b is None else b.numpy()
        np.testing.assert_allclose(left, right, rtol=1e-6, atol=1e-9, err_msg=key)


@ALL
def test_log_prob(case: Case) -> None:
    mine, other, ours, theirs = both(case)
    x, y = gg.tensor(case.values), torch.tensor(case.values)
    if case.values.dtype.kind == "f" and mine.support is not None and not mine.support.is_discrete:
        ours["value"] = x = x.requires_grad_()
        theirs["value"] = y = y.requires_grad_()
    compare(mine.log_prob(x), other.log_prob(y), ours, theirs)
    more = np.stack([case.values, case.values[::-1]]) if case.name != "Pareto" else case.values[None]
    wide = mine.log_prob(gg.tensor(more))
    assert tuple(wide.shape) == (len(more), *mine.batch_shape)
    if not mine.arg_constraints.get("loc", None):
        np.testing.assert_allclose(wide[0].detach().numpy(), mine.log_prob(x).detach().numpy(), rtol=1e-12)


@ALL
@pytest.mark.parametrize("note", NOTES)
def test_notes(case: Case, note: str) -> None:
    mine, other, ours, theirs = both(case)
    if note == "mode" and case.name in {"Weibull", "Beta"}:  # PyTorch's are NaN, and the wrong one of two corners
        return
    try:
        expected = getattr(other, note)
        expected = expected() if callable(expected) and not isinstance(expected, torch.Size) else expected
    except NotImplementedError:
        return
    found = getattr(mine, note)
    if isinstance(expected, torch.Size):
        assert tuple(found) == tuple(expected)
        return
    compare(found() if callable(found) else found, expected, ours, theirs)


@ALL
def test_distribution_functions(case: Case) -> None:
    for name, values in (("cdf", case.values), ("icdf", np.array([0.15, 0.5, 0.83]))):
        mine, other, ours, theirs = both(case)
        try:
            found, expected = getattr(mine, name)(gg.tensor(values)), getattr(other, name)(torch.tensor(values))
        except NotImplementedError:
            continue
        compare(found, expected, ours, theirs)


@ALL
def test_expand_and_enumerate(case: Case) -> None:
    mine, other, ours, theirs = both(case)
    wide, expected = mine.expand((2, *mine.batch_shape)), other.expand((2, *other.batch_shape))
    assert tuple(wide.batch_shape) == tuple(expected.batch_shape)
    compare(wide.log_prob(gg.tensor(case.values)), expected.log_prob(torch.tensor(case.values)), ours, theirs)
    assert tuple(wide.sample((3,)).shape) == tuple(expected.sample((3,)).shape)
    assert mine.has_enumerate_support == other.has_enumerate_support
    if mine.has_enumerate_support:
        for whole in (True, False):
            listed = mine.enumerate_support(expand=whole)
            np.testing.assert_array_equal(listed.numpy(), other.enumerate_support(expand=whole).detach().numpy())


@ALL
def test_samples(case: Case) -> None:
    """Shape, no gradient, support, and the mean within five standard errors."""
    gg.manual_seed(3)
    mine, other, _, _ = both(case)
    drawn = mine.sample((4000,))
    assert tuple(drawn.shape) == (4000, *mine.batch_shape, *mine.event_shape)
    assert not drawn.requires_grad
    assert mine.sample().shape == mine.batch_shape + mine.event_shape
    mine.log_prob(drawn)  # raises for a value outside of the support
    assert mine.has_rsample == other.has_rsample
    try:
        mean, spread = mine.mean.detach().numpy(), mine.stddev.detach().numpy()
    except NotImplementedError:
        mean, spread = other.sample((4000,)).numpy().mean(0), drawn.numpy().std(0) * 1.5
    known = np.isfinite(mean) & np.isfinite(spread)
    error = np.abs(drawn.numpy().mean(0) - mean)
    assert (error[known] <= 5 * spread[known] / np.sqrt(4000) + 1e-12).all()


@ALL
def test_samples_follow_the_distribution_function(case: Case) -> None:
    """Kolmogorov and Smirnov's test against PyTorch's samples, one coordinate at a time."""
    gg.manual_seed(5)
    torch.manual_seed(5)
    mine, other, _, _ = both(case)
    from scipy import stats  # takes a second, in each worker that collects this file

    drawn = mine.sample((1500,)).numpy().reshape(1500, -1).astype(float)
    reference = other.sample((1500,)).numpy().reshape(1500, -1).astype(float)
    for ours, theirs in zip(drawn.T, reference.T, strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # equal values are counted exactly, others by the limit
            assert stats.ks_2samp(ours, theirs).pvalue > 1e-4


REPARAMETRISED = [case for case in CASES if case.name.split(":")[0] != "OneHotCategoricalStraightThrough"]


@pytest.mark.parametrize("case", REPARAMETRISED, ids=lambda case: case.name)
def test_rsample_gradients(case: Case) -> None:
    """The mean gradient of samples is the gradient of the mean of a smooth function, as PyTorch estimates it."""
    mine, other, ours, theirs = both(case)
    if not other.has_rsample:
        with pytest.raises(NotImplementedError):
            mine.rsample()
        return
    gg.manual_seed(1)
    torch.manual_seed(1)
    count = 20_000
    x, y = mine.rsample((count,)), other.rsample((count,))
    f = gg.autograd.grad(x.tanh().mean(0).sum(), list(ours.values()))
    g = torch.autograd.grad(y.tanh().mean(0).sum(), list(theirs.values()))
    for key, a, b in zip(ours, f, g, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=0.04, err_msg=key)


@pytest.mark.parametrize("name", ["Gamma", "InverseGamma", "Chi2"])
def test_implicit_gradients_are_those_of_the_quantile(name: str) -> None:
    from scipy.special import gammaincinv

    from glassgrad.distributions.gammas import log_gamma_slope

    for a in (0.02, 0.3, 1.0, 4.0, 80.0, 3000.0):
        for u in (1e-6, 0.02, 0.5, 0.97, 1 - 1e-6):
            x = gammaincinv(a, u)
            if x < 1e-250:
                continue
            h = 1e-4 * a
            values = [np.log(gammaincinv(a + k * h, u)) for k in (-2, -1, 1, 2)]
            slope = (8 * (values[2] - values[1]) - (values[3] - values[0])) / (12 * h)
            np.testing.assert_allclose(log_gamma_slope(a, np.log(x)), slope, rtol=3e-4, err_msg=f"{a}, {u}")
    a = np.array([0.001, 0.5, 7.0])
    case = next(case for case in CASES if case.name == name)
    shape = gg.tensor(a, requires_grad=True)
    parameters = {key: gg.tensor(1.0, dtype=gg.float64) for key in case.parameters}
    parameters[next(iter(parameters))] = shape
    x = getattr(distributions, name)(**parameters).rsample()
    (g,) = gg.autograd.grad(x.sum(), shape, create_graph=True)
    assert np.isfinite(g.detach().numpy()).all()
    with pytest.raises(RuntimeError, match="once"):
        gg.autograd.grad(g.sum(), shape)


# --- divergences ------------------------------------------------------------------------------------


def other_parameters(case: Case) -> dict[str, np.ndarray]:
    keep = {"total_count", "precision_matrix"}
    shifted = {}
    for key, value in case.parameters.items():
        if key in keep:
            shifted[key] = value
        elif key == "probs" and value.ndim == 2:
            shifted[key] = value[:, ::-1].copy()
        elif key == "probs":
            shifted[key] = value * 0.8
        elif key in {"low", "high"}:
            shifted[key] = value + (1 if key == "high" else -1)
        else:
            shifted[key] = value * 1.1
    return shifted


PAIRS = [(left, left) for left in CASES if left.name != "Mixture"] + [
    (left, right)
    for left, right in itertools.permutations(CASES, 2)
    if (left.name, right.name) in {("Exponential", "Gamma"), ("Uniform", "Normal"), ("Normal", "Laplace")}
]


@pytest.mark.parametrize(("left", "right"), PAIRS, ids=lambda case: case.name)
def test_divergences(left: Case, right: Case) -> None:
    mine, other, ours, theirs = both(left)
    values = other_parameters(right)
    second = {f"q.{key}": gg.tensor(value, requires_grad=True) for key, value in values.items()}
    reference = {f"q.{key}": torch.tensor(value, requires_grad=True) for key, value in values.items()}
    q = right.make(distributions, {key[2:]: value for key, value in second.items()})
    r = right.make(torch.distributions, {key[2:]: value for key, value in reference.items()})
    try:
        expected = torch.distributions.kl_divergence(other, r)
    except NotImplementedError:
        with pytest.raises(NotImplementedError, match="kl_divergence knows no formula"):
            distributions.kl_divergence(mine, q)
        return
    if left.name in {"Pareto", "HalfCauchy"}:
        with pytest.raises(NotImplementedError):
            distributions.kl_divergence(mine, q)
        return
    compare(distributions.kl_divergence(mine, q), expected, ours | second, theirs | reference)


def test_divergences_where_something_is_impossible() -> None:
    for build in (
        lambda d, t: (d.Bernoulli(t.tensor([0.0, 1.0, 0.5])), d.Bernoulli(t.tensor([0.5, 1.0, 0.0]))),
        lambda d, t: (d.Categorical(t.tensor([0.0, 1.0])), d.Categorical(t.tensor([0.5, 0.5]))),
        lambda d, t: (d.Categorical(t.tensor([0.5, 0.5])), d.Categorical(t.tensor([0.0, 1.0]))),
        lambda d, t: (d.Uniform(0.0, 2.0), d.Uniform(t.tensor([0.0, 1.0]), 3.0)),
    ):
        found = distributions.kl_divergence(*build(distributions, gg)).numpy()
        np.testing.assert_allclose(found, torch.distributions.kl_divergence(*build(torch.distributions, torch)).numpy())
