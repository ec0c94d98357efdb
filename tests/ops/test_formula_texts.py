"""The text formulas and derivatives of the table, evaluated: they equal the forwards and the rules."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.special

import glassgrad as gg
import glassgrad.engine.public
from glassgrad.ops import formulas
from glassgrad.ops.core import REGISTRY, Elementwise
from tests.ops.cases import params_of

# What the texts call functions, by implementations that are not ours.
FUNCTIONS = {
    **{name: getattr(np, name) for name in (
        "exp", "log", "log2", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan",
        "arcsinh", "arccosh", "arctanh", "floor", "trunc", "sign", "isfinite", "pi",
    )},
    **{name: getattr(scipy.special, name) for name in ("digamma", "polygamma", "erf", "erfc", "ndtr", "i0e", "i1e")},
    "zeta": scipy.special.zeta,
    "sigmoid": scipy.special.expit, "softplus": lambda x: np.logaddexp(0, x), "Phi": scipy.special.ndtr,
    "Gamma": scipy.special.gamma, "B": scipy.special.beta, "I0": scipy.special.i0, "I1": scipy.special.i1,
    "J0": scipy.special.j0, "J1": scipy.special.j1, "Y0": scipy.special.y0, "Y1": scipy.special.y1,
    "K0": scipy.special.k0, "K1": scipy.special.k1, "Ai": lambda x: scipy.special.airy(x)[0],
    "Ai_slope": lambda x: scipy.special.airy(x)[1],
}  # fmt: skip  # a table
ENTRIES = [prim for prim in REGISTRY.values() if isinstance(prim, Elementwise) and prim.samples]
# Formulas in words.
WORDS = {
    "copysign", "fmax", "fmin", "heaviside", "atan2", "floor", "ceil", "trunc", "round", "nan_to_num", "nextafter",
    "erf", "erfinv", "ndtr", "log_ndtr", "ndtri", "digamma", "polygamma", "i0", "i1", "gammainc", "gammaincc",
    "betainc", "airy_ai", "airy_slope", "gelu", "xlogy", "xlog1py", "bessel_j0", "bessel_j1", "bessel_y0",
    "zeta", "bessel_y1", "modified_bessel_k0", "modified_bessel_k1",
}  # fmt: skip  # a table


def drawn(prim):
    rng = np.random.default_rng(5)
    return [domain.draw(rng, (12,), np.float64) for domain in prim.samples]


def parts_of(text):
    """A text, and the names that it defines behind commas, as in `u * x, u = tanh(x)`."""
    text, *named = re.split(r", (?=\w = )", re.sub(r"\|([\w()]+)\|", r"abs(\1)", text.replace("'(", "_slope(")))
    return text.partition(";")[0], [one.split(" = ") for one in named]


def evaluated(text, named, prim, columns):
    """The value of a text at each of the points."""
    found = []
    for point in zip(*columns.values(), strict=True):
        names = {**FUNCTIONS, **params_of(prim), **dict(zip(columns, point, strict=True))}
        for name, value in named:
            names[name] = eval(value, names)  # noqa: S307 - a text of the table
        found.append(float(eval(text, names)))  # noqa: S307 - a text of the table
    return found


def columns_of(prim, args):
    return dict(zip(formulas._argument_names(prim, len(args)), (x.tolist() for x in args), strict=True))


@pytest.mark.parametrize("prim", ENTRIES, ids=lambda prim: prim.name)
def test_derivatives_are_those_of_the_rules(prim):
    args, params = drawn(prim), params_of(prim)
    y = prim.compute(tuple(args), params)
    text, named = parts_of(prim.derivative)
    named = [*parts_of(prim.formula)[1], *named]
    texts = formulas._split(text) if text != "none" else ["none"] * prim.arity
    for text, rule in zip(texts, prim.vjps, strict=True):
        assert (text in {"none", "-"}) == (rule is None)
        if rule is not None:
            want = np.broadcast_to(rule(np.ones_like(y), y, *args, **params), y.shape)
            found = evaluated(text, named, prim, {**columns_of(prim, args), "y": y.tolist()})
            np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("prim", [prim for prim in ENTRIES if prim.name not in WORDS], ids=lambda prim: prim.name)
def test_formulas_are_those_of_the_forwards(prim):
    args = drawn(prim)
    found = evaluated(*parts_of(prim.formula), prim, columns_of(prim, args))
    np.testing.assert_allclose(found, prim.compute(tuple(args), params_of(prim)), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", sorted(WORDS))
def test_words_are_no_formulas(name):
    prim = REGISTRY[name]
    columns = {letter: [0.5] for letter in formulas._argument_names(prim, prim.arity)}
    with pytest.raises((SyntaxError, NameError, TypeError)):
        evaluated(*parts_of(prim.formula), prim, columns)


# Ops of whole arrays whose derivatives are expressions: the letters of their arguments, and options. Texts without g
# are its factors. What other ops state is in words.
ARRAYS = {
    "matmul": ("ab", {}), "softmax": ("x", {"axis": 1}), "log_softmax": ("x", {"axis": 1}), "linear": ("xwb", {}),
    "logsumexp": ("x", {"axis": (1,), "keepdims": True}), "mse_loss": ("xt", {"reduction": "none"}),
    "binary_cross_entropy": ("xt", {"reduction": "none"}),
}  # fmt: skip  # a table
SHAPES = {"matmul": [(3, 4), (4, 2)], "linear": [(3, 4), (2, 4), (2,)]}


@pytest.mark.parametrize("name", ARRAYS)
def test_derivatives_of_whole_arrays_are_those_of_the_rules(name):
    prim, (letters, params) = REGISTRY[name], ARRAYS[name]
    rng = np.random.default_rng(5)
    args = [rng.uniform(0.2, 0.8, shape) for shape in SHAPES.get(name, [(3, 4)] * len(letters))]
    leaves = [gg.tensor(x, requires_grad=True) for x in args]
    y = prim(*leaves, **params)
    g = rng.uniform(-1, 1, y.shape)
    y.backward(gg.tensor(g))
    names = {"g": g, "y": y.detach().numpy(), "log": np.log, **dict(zip(letters, args, strict=True))}
    names |= {f"{letter}T": names[letter].T for letter in {*letters, "g"}}
    names["softmax"] = lambda x: scipy.special.softmax(x, axis=1)
    names["sum"] = (lambda x: x.sum(0)) if name == "linear" else lambda x: x.sum(1, keepdims=True)
    for text, leaf in zip(formulas._split(prim.derivative), leaves, strict=True):
        want = eval(text, names)  # noqa: S307 - a text of the table
        np.testing.assert_allclose(leaf.grad.numpy(), want if re.search(r"\bg", text) else g * want, rtol=1e-9)
