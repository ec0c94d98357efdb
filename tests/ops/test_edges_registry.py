"""Edges of every elementwise primitive: its entry's `edge` numbers, values and gradients, against PyTorch.

0, -0.0, huge, tiny, infinite and NaN arguments, in every combination. Signs of zero and of infinity count.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.ops.core import REGISTRY, Elementwise
from glassgrad.ops.elementwise import EDGES
from glassgrad.ops.samples import reals
from tests.ops.cases import params_of
from tests.ops.twins import twin_of

torch = pytest.importorskip("torch", reason="PyTorch is the oracle at the edges")

NAN = "a NaN is not hidden: it comes out of the function, and so out of its derivative"


# Which of 0 and -0.0 these return is left open by IEEE 754 (fmax, fmin) or by nobody's formula (relu of -0.0).
ANY_ZERO = {"fmax", "fmin", "erfinv", "log_sigmoid", "relu", "elu", "remainder", "floor_divide", "lerp"}
# PyTorch has no derivative of these.
NO_GRADIENT = {
    "heaviside", "floor_divide", "betainc", "airy_slope", "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1",
    "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1",
}  # fmt: skip  # a table


# Nor of these in their first argument.
FIRST_WITHOUT = {"gammainc", "gammaincc", "zeta"}


class Different(NamedTuple):
    """Where we differ from PyTorch on purpose: in the value or a gradient, at which arguments, and why."""

    what: str
    at: Callable[..., Any]
    why: str


DIFFERENT = {
    "abs": Different("gradient", np.isnan, NAN),
    "sign": Different("value", np.isnan, NAN + ", as in NumPy"),
    "heaviside": Different("value", lambda a, b: np.isnan(a), NAN + ", as in NumPy"),
    "i1": Different("gradient", np.isnan, NAN),
    "i1e": Different("gradient", np.isnan, NAN),
    "elu": Different("gradient", np.isnan, NAN),
    "hardswish": Different("gradient", np.isnan, NAN),
    "copysign": Different("gradient", lambda a, b: np.isinf(a), "the slope is 1 or -1 everywhere; not inf / inf"),
    "hypot": Different("gradient", lambda a, b: (a == 0) & (b == 0), "the subgradient 0 at the tip, as of every norm"),
    "root": Different("gradient", lambda x: x == 0, "what norms are made of: 0 where they vanish, not inf"),
    "sinc": Different("gradient", lambda x: np.abs(x) == 1e-30, "the series -pi**2 x / 3; PyTorch's cancels to 0"),
    "polygamma": Different(
        "",
        lambda x: np.isinf(x) | (x == -1) | (x == -1000),
        "poles are infinite, PyTorch's merely huge; its slope at infinity is NaN, ours the limit 0",
    ),
    "logaddexp2": Different("value", lambda a, b: a == b, "exactly a + 1; PyTorch's is one rounding off"),
}


def entries() -> Iterator[Elementwise]:
    for prim in REGISTRY.values():
        if isinstance(prim, Elementwise) and prim.differentiable:
            yield prim


def arguments(prim: Elementwise) -> list[np.ndarray[Any, Any]]:
    """Return every combination of the edges, one column per argument."""
    edges = [(True, False) if domain.boolean else prim.edge or EDGES for domain in prim.samples]
    return [np.array(column) for column in zip(*itertools.product(*edges), strict=True)]


def ours(prim: Elementwise, xs: list[Any]) -> tuple[Any, list[Any]]:
    tensors = [gg.tensor(x, requires_grad=x.dtype.kind == "f") for x in xs]
    y = prim(*tensors, **params_of(prim))
    y.backward(gg.ones(*y.shape, dtype=gg.float64))
    return y.detach().numpy(), [
        np.zeros_like(x) if t.grad is None else t.grad.numpy() for t, x in zip(tensors, xs, strict=True)
    ]


def theirs(prim: Elementwise, xs: list[Any]) -> tuple[Any, list[Any]]:
    tensors = [torch.tensor(x, requires_grad=x.dtype.kind == "f") for x in xs]
    if prim.name in FIRST_WITHOUT:
        tensors[0].requires_grad_(False)
    y = twin_of(prim)(*tensors)
    if prim.name in NO_GRADIENT:
        return y.detach().numpy(), []
    y.backward(torch.ones_like(y))
    return y.detach().numpy(), [
        np.zeros_like(x) if t.grad is None else t.grad.numpy() for t, x in zip(tensors, xs, strict=True)
    ]


def same(a: Any, b: Any) -> Any:
    """Whether numbers agree."""
    return np.isclose(a, b, rtol=1e-9, atol=1e-300, equal_nan=True)


def other_zero(a: Any, b: Any) -> Any:
    """Whether one is 0 where the other is -0.0."""
    return (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))


@pytest.mark.parametrize("prim", list(entries()), ids=lambda prim: prim.name)
def test_edges(prim: Elementwise) -> None:
    xs = arguments(prim)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y, gradients = ours(prim, xs)
        y_expected, expected = theirs(prim, xs)
    known = DIFFERENT.get(prim.name)
    allowed = np.zeros(y.shape, bool) if known is None else known.at(*xs)
    wrong, needed = [], False
    compared = [("value", y, y_expected)]
    compared += [(f"gradient {at}", *pair) for at, pair in enumerate(zip(gradients, expected, strict=bool(expected)))]
    for what, a, b in compared:
        differs = ~same(a, b)
        if what == "value" and prim.name not in ANY_ZERO:
            differs |= other_zero(a, b)
        if known is not None and what.startswith(known.what):
            needed |= bool((differs & allowed).any())
            differs &= ~allowed
        wrong += [
            f"{prim.name} {what} at {tuple(float(x[place]) for x in xs)}: {a[place]}, PyTorch {b[place]}"
            for place in np.flatnonzero(differs)
        ]
    assert not wrong, "\n".join(wrong)
    assert known is None or needed, "the exception is not needed any more"


class TestTwins:
    """An op that PyTorch lacks is computed by the formula of its entry; one whose formula is words asks for a twin."""

    @staticmethod
    def made(formula: str) -> Elementwise:
        prim = Elementwise("unlisted", lambda xp, x: x, (None,), register=False)
        return prim.describe(formula, "none", reals(-3, 3))

    def test_a_formula_is_computed_with_functions_of_pytorch(self) -> None:
        x = torch.tensor([0.5, -2.0], dtype=torch.float64)
        assert torch.equal(twin_of(self.made("x**3 + tanh(x)"))(x), x**3 + torch.tanh(x))

    @pytest.mark.parametrize("formula", ["the cube of x", "cubed(x)"])
    def test_words_ask_for_an_entry(self, formula: str) -> None:
        with pytest.raises(LookupError, match=r"unlisted: PyTorch has no function .* add its counterpart to TWINS"):
            twin_of(self.made(formula))
