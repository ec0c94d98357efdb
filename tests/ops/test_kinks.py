"""Derivatives at the kinks of piecewise functions: eager, native and NumPy programs, against PyTorch.

The points lie on every border that a default or a test here names. A test checks that no activation or loss of
`nn.functional` and no elementwise primitive is left out.
"""

from __future__ import annotations

import inspect
import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.nn.functional import activation as functional_activation
from glassgrad.nn.functional import losses as functional_losses
from tests.ops.against_torch import torch
from tests.ops.cases import params_of
from tests.ops.test_edges_registry import arguments, entries

POINTS = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 3.0, -3.0, 6.0, 2.0, -2.0, 20.0, 1.5])
ONES = np.ones(len(POINTS))
PAIRS = [side.reshape(-1) for side in np.meshgrid([0.0, 1.0, -1.0, 0.5, 2.0], [0.0, 1.0, -1.0, 0.5, 2.0])]

Case = Callable[..., Any]


def named(lib: Any, name: str) -> Any:
    for holder in (lib.nn.functional, lib, lib.Tensor):
        if hasattr(holder, name):
            return getattr(holder, name)
    raise LookupError(name)


def column(lib: Any, x: Any) -> Any:
    return x.reshape(-1, 1)


ACTIVATIONS: dict[str, tuple[dict[str, Any], ...]] = {
    "celu": ({}, {"alpha": 2.0}, {"alpha": 0.5}),
    "elu": ({}, {"alpha": 2.0}),
    "gelu": ({}, {"approximate": "tanh"}),
    "hardshrink": ({}, {"lambd": 1.0}),
    "hardsigmoid": ({},),
    "hardswish": ({},),
    "hardtanh": ({}, {"min_val": -0.5, "max_val": 2.0}),
    "leaky_relu": ({}, {"negative_slope": 0.2}),
    "logsigmoid": ({},),
    "mish": ({},),
    "relu": ({},),
    "relu6": ({},),
    "rrelu": ({"lower": 0.2, "upper": 0.2},),
    "selu": ({},),
    "silu": ({},),
    "softplus": ({}, {"beta": 2.0, "threshold": 1.0}),
    "softshrink": ({}, {"lambd": 1.0}),
    "softsign": ({},),
    "tanhshrink": ({},),
    "threshold": ({"threshold": 0.5, "value": 7.0}, {"threshold": 0.0, "value": 0.0}),
    "abs": ({},),
    "sign": ({},),
    "clamp": ({"min": -1.0, "max": 1.0}, {"min": 0.5}, {"max": 0.5}, {"min": 0.0, "max": 0.0}),
    "trunc": ({},),
    "frac": ({},),
    "ceil": ({},),
    "floor": ({},),
    "round": ({},),
    "nan_to_num": ({},),
    "sinc": ({},),
}

# Against zeros, so that the points are the differences.
LOSSES: dict[str, tuple[dict[str, Any], ...]] = {
    "l1_loss": ({},),
    "smooth_l1_loss": ({}, {"beta": 0.0}, {"beta": 2.0}),
    "huber_loss": ({}, {"delta": 2.0}),
    "mse_loss": ({},),
}

OTHERS: dict[str, Case] = {
    "prelu": lambda T, x: T.nn.functional.prelu(x, T.tensor(np.array([0.25]))),
    "clamp between tensors": lambda T, x: x.clamp(T.tensor(np.array([-1.0])), T.tensor(np.array([0.5]))),
    "fmod": lambda T, x: x.fmod(1.0),
    "remainder": lambda T, x: T.remainder(x, 0.5),
    "norm of zeros": lambda T, x: (x * 0).norm(),
    "norm 2": lambda T, x: column(T, x).norm(dim=1),
    "norm 1": lambda T, x: column(T, x).norm(p=1, dim=1),
    "norm 3": lambda T, x: column(T, x).norm(p=3, dim=1),
    "norm 1/2": lambda T, x: column(T, x).norm(p=0.5, dim=1),
    "norm inf": lambda T, x: x.norm(p=math.inf),
    "normalize": lambda T, x: T.nn.functional.normalize(column(T, x)),
    "maximum of 0": lambda T, x: T.maximum(x, T.zeros_like(x)),
    "0 maximum of": lambda T, x: T.maximum(T.zeros_like(x), x),
    "powers": lambda T, x: x**1.0 + x**0.0 + x**2 + x.abs() ** 1.5,
    "sqrt of a square": lambda T, x: (x * x).sqrt(),
    "amax": lambda T, x: x.abs().amax(),
    "amin": lambda T, x: x.abs().amin(),
    "max": lambda T, x: x.abs().max(),
    "min": lambda T, x: x.abs().min(),
    "max of a dim": lambda T, x: T.stack([x, -x]).max(0)[0],
    "min of a dim": lambda T, x: T.stack([x, x]).min(0)[0],
    "median": lambda T, x: x.abs().median(),
    "cummax": lambda T, x: x.abs().cummax(0)[0],
    "cummin": lambda T, x: x.abs().cummin(0)[0],
    "stable sort": lambda T, x: x.abs().sort(stable=True)[0],
    "prod": lambda T, x: x.prod(),
    "cumprod": lambda T, x: x.cumprod(0),
    "std of zeros": lambda T, x: (x * 0).std(),
    "xlogy": lambda T, x: T.xlogy(x.abs(), x.abs()),
    "max_pool1d": lambda T, x: T.nn.functional.max_pool1d(T.stack([x.abs(), x.abs() * 0]).reshape(1, 2, -1), 3),
    "max_pool2d": lambda T, x: T.nn.functional.max_pool2d((x * 0).reshape(1, 1, 1, -1).expand(1, 1, 3, 13), 2),
    "logit": lambda T, x: T.logit(x.abs() / 4, eps=0.25),
    "dist": lambda T, x: T.dist(x, x.detach() * 1.0),
    "cdist": lambda T, x: T.cdist(column(T, x), column(T, x)),
    "acos of clamp": lambda T, x: x.clamp(-0.5, 0.5).acos(),
    "copysign": lambda T, x: T.copysign(x, T.tensor(np.array([-1.0]))),
    "gumbel_softmax": lambda T, x: T.nn.functional.softmax(x, 0),
    "glu": lambda T, x: T.nn.functional.glu(T.cat([x, x])),
    "hinge_embedding_loss": lambda T, x: T.nn.functional.hinge_embedding_loss(x, T.tensor(-ONES), reduction="none"),
    "margin_ranking_loss": lambda T, x: T.nn.functional.margin_ranking_loss(
        x, x.detach() * 0, T.tensor(ONES), margin=1.0, reduction="none"
    ),
    "multi_margin_loss": lambda T, x: T.nn.functional.multi_margin_loss(
        x.reshape(1, -1), T.tensor(np.array([2])), reduction="none"
    ),
    "multi_margin_loss, squared": lambda T, x: T.nn.functional.multi_margin_loss(
        x.reshape(1, -1), T.tensor(np.array([2])), p=2, reduction="none"
    ),
    "multilabel_margin_loss": lambda T, x: T.nn.functional.multilabel_margin_loss(
        x.reshape(1, -1), T.tensor(np.array([[2, 3] + [-1] * 11])), reduction="none"
    ),
    "triplet_margin_loss": lambda T, x: T.nn.functional.triplet_margin_loss(
        column(T, x), column(T, x.detach()) * 1, column(T, x.detach()) * 1 + 1.0, reduction="none"
    ),
    "triplet_margin_with_distance_loss": lambda T, x: T.nn.functional.triplet_margin_with_distance_loss(
        column(T, x), column(T, x.detach()) * 1, column(T, x.detach()) * 1 + 1.0, reduction="none"
    ),
    "cosine_embedding_loss": lambda T, x: T.nn.functional.cosine_embedding_loss(
        column(T, x), column(T, x.detach()) * 0 + 1.0, T.tensor(-ONES), margin=0.0, reduction="none"
    ),
    "pairwise_distance": lambda T, x: T.nn.functional.pairwise_distance(column(T, x), column(T, x.detach()) * 1.0),
    "poisson_nll_loss": lambda T, x: T.nn.functional.poisson_nll_loss(x, x.detach().abs(), reduction="none", full=True),
    "gaussian_nll_loss": lambda T, x: T.nn.functional.gaussian_nll_loss(x, x.detach() * 0, x.abs(), reduction="none"),
    "kl_div": lambda T, x: T.nn.functional.kl_div(x, x.detach().abs(), reduction="none"),
    "binary_cross_entropy": lambda T, x: T.nn.functional.binary_cross_entropy(
        x.abs() / 20, x.detach() * 0 + 0.5, reduction="none"
    ),
}

TWO: dict[str, Case] = {
    **{
        name: (lambda T, x, y, name=name: getattr(T, name)(x, y))
        for name in ("maximum", "minimum", "fmax", "fmin", "fmod", "remainder", "logaddexp", "copysign", "xlogy", "div")
    },
    "where": lambda T, x, y: T.where(x > y, x, y),
    "clamp between tensors": lambda T, x, y: T.clamp(x, y, y + 1),
    "l1_loss": lambda T, x, y: T.nn.functional.l1_loss(x, y),
    "atan2": lambda T, x, y: T.atan2(x, y + 3),
}

# Smooth, or made of what is in the tables.
SMOOTH = {
    "binary_cross_entropy_with_logits", "cosine_similarity", "cross_entropy", "ctc_loss", "gumbel_softmax",
    "linear_cross_entropy", "log_softmax", "multilabel_soft_margin_loss", "nll_loss", "normalize", "one_hot",
    "reduce_loss", "sigmoid", "soft_margin_loss", "softmax", "softmin", "tanh",
}  # fmt: skip  # a table


def cases() -> Iterator[tuple[str, Case, list[Any]]]:
    for name, options in ACTIVATIONS.items():
        for number, kwargs in enumerate(options):
            yield (f"{name} {number}", lambda T, x, name=name, kwargs=kwargs: named(T, name)(x, **kwargs), [POINTS])
    for name, options in LOSSES.items():
        for number, kwargs in enumerate(options):
            yield (
                f"{name} {number}",
                lambda T, x, name=name, kwargs=kwargs: named(T, name)(x, x.detach() * 0, reduction="none", **kwargs),
                [POINTS],
            )
    for name, case in OTHERS.items():
        yield name, case, [POINTS]
    for name, case in TWO.items():
        yield f"{name} of two", case, PAIRS


CASES = {name: (case, arrays) for name, case, arrays in cases()}


def gradients(lib: Any, case: Case, arrays: list[Any], backend: str = "") -> list[Any]:
    """Return the value and the gradients of a sum with weights that differ from place to place."""
    leaves = [lib.tensor(array, requires_grad=True) for array in arrays]

    def step(*leaves: Any) -> Any:
        y = case(lib, *leaves)
        count = math.prod(y.shape)
        (y * lib.tensor(np.cos(np.arange(float(count))).reshape(tuple(y.shape)))).sum().backward()
        return y.detach()

    y = (gg.compile(step, backend=backend) if backend else step)(*leaves)
    parts = [y, *(leaf.detach() * 0 if leaf.grad is None else leaf.grad for leaf in leaves)]
    return [part.numpy(force=True) for part in parts]


AT_ONCE = 8


@pytest.mark.parametrize("backend", ["", "llvm", "numpy"])
@pytest.mark.parametrize("first", range(0, len(CASES), AT_ONCE))
def test_derivatives_at_kinks_are_pytorchs(first: int, backend: str) -> None:
    """Some cases in one step, since compiling takes a hundred times as long as the rest."""
    names = list(CASES)[first : first + AT_ONCE]
    counts = [len(CASES[name][1]) for name in names]

    def case(lib: Any, *leaves: Any) -> Any:
        left = iter(leaves)
        given = [list(itertools.islice(left, count)) for count in counts]
        return lib.cat([CASES[name][0](lib, *one).reshape(-1) for name, one in zip(names, given, strict=True)])

    arrays = [array for name in names for array in CASES[name][1]]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found, expected = gradients(gg, case, arrays, backend), gradients(torch, case, arrays)
    of = ["values", *(name for name, count in zip(names, counts, strict=True) for _ in range(count))]
    for name, mine, theirs in zip(of, found, expected, strict=True):
        # PyTorch's hardsigmoid and gaussian_nll_loss have constants of single precision; a wrong side is far more.
        np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-9, err_msg=name)


def test_no_activation_and_no_loss_is_left_out() -> None:
    tried = {name.split(",")[0] for name in (*ACTIVATIONS, *LOSSES, *OTHERS, *TWO)} | SMOOTH
    for module in (functional_activation, functional_losses):
        names = {name for name in module.__all__ if inspect.isfunction(getattr(module, name)) and name[-1] != "_"}
        assert names - tried == set()


# Where engines round on different sides of a pole or of a jump, or draw the line between signs of zero elsewhere.
POLES = {"tan", "digamma", "polygamma", "gammaln"}


EDGED = [prim for prim in entries() if prim.name not in POLES and all(x.dtype.kind == "f" for x in arguments(prim))]


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("first", range(0, len(EDGED), AT_ONCE))
def test_compiled_derivatives_at_the_edges_are_the_eager_ones(first: int, backend: str) -> None:
    """Some ops in one step, since compiling takes a hundred times as long as the rest."""
    prims = EDGED[first : first + AT_ONCE]
    counts = [len(arguments(prim)) for prim in prims]

    def case(_lib: Any, *leaves: Any) -> Any:
        left = iter(leaves)
        given = [list(itertools.islice(left, count)) for count in counts]
        return gg.cat([prim(*one, **params_of(prim)) for prim, one in zip(prims, given, strict=True)])

    xs = [x for prim in prims for x in arguments(prim)]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found, expected = gradients(gg, case, xs, backend), gradients(gg, case, xs)
    names = ["values", *(prim.name for prim, count in zip(prims, counts, strict=True) for _ in range(count))]
    for name, mine, eager in zip(names, found, expected, strict=True):
        np.testing.assert_allclose(mine, eager, rtol=1e-9, atol=1e-300, err_msg=name)
