"""PyTorch's submodules as attributes: `torch.distributions.normal.Normal` without an import of its own.

Our packages have other files, or none, for these names. An import finds them in `HOMES`; an attribute is lent to the
package (`errors.missing.lent`) while glassgrad stands in for PyTorch.
"""

from __future__ import annotations

import importlib
from functools import cached_property
from types import GenericAlias
from typing import Any

from glassgrad.base.tables import words
from glassgrad.compat.named_only import _GRAPH, _refused
from glassgrad.compat.namespaces import HOMES, Namespace, no
from glassgrad.engine.function import Context
from glassgrad.engine.protocols import from_dlpack
from glassgrad.engine.random import Generator
from glassgrad.engine.tensor import Handle
from glassgrad.ops.core import Array
from glassgrad.ops.narrow import finfo

_ATTRIBUTES = {
    "amp": "autocast_mode grad_scaler",
    "distributions": "bernoulli beta binomial categorical cauchy chi2 continuous_bernoulli dirichlet exp_family "
    "exponential fishersnedecor gamma generalized_pareto geometric gumbel half_cauchy half_normal independent "
    "inverse_gamma kumaraswamy laplace lkj_cholesky log_normal logistic_normal lowrank_multivariate_normal "
    "mixture_same_family multinomial multivariate_normal negative_binomial normal one_hot_categorical pareto poisson "
    "relaxed_bernoulli relaxed_categorical studentT transformed_distribution uniform utils von_mises weibull wishart",
    "nn.utils": "convert_parameters init stateless",
    "optim": "adadelta adagrad adam adamax adamw asgd lbfgs nadam optimizer radam rmsprop rprop sgd sparse_adam",
}
_LENT = frozenset((f"glassgrad.{package}", name) for package, names in _ATTRIBUTES.items() for name in words(names))

# --- small modules --------------------------------------------------------------------------------

_REDUCTIONS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def _get_enum(reduction: str) -> int:
    """Return the number that PyTorch gives a reduction of a loss."""
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _REDUCTIONS[reduction]


def _legacy_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """Return the reduction that two older arguments of a loss mean."""
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def _legacy_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    return _get_enum(_legacy_string(size_average, reduce))


def _common_types() -> dict[str, Any]:
    """Return PyTorch's annotations of sizes: a number, or as many as there are dimensions."""
    found: dict[str, Any] = {"_size_any_t": int | tuple[int, ...], "_ratio_any_t": float | tuple[float, ...]}
    for count in range(1, 7):
        found[f"_size_{count}_t"] = int | GenericAlias(tuple, (int,) * count)
        found[f"_size_{count}_opt_t"] = int | GenericAlias(tuple, (int | None,) * count)
        found[f"_ratio_{count}_t"] = float | GenericAlias(tuple, (float,) * count)
    return found


def _to_dlpack(tensor: Array) -> Array:
    """Return the capsule of a tensor's memory."""
    return tensor.__dlpack__()


def _sum_rightmost(value: Array, dim: int) -> Array:
    """Return the sums over the last `dim` dimensions."""
    return value.reshape((*value.shape[:-dim], -1)).sum(-1) if dim else value


def _broadcast_all(*values: Array) -> Array:
    """Return numbers and tensors as tensors of one shape."""
    return importlib.import_module("glassgrad.distributions.distribution").spread(*values)


def _clamp_probs(probs: Array) -> Array:
    """Return probabilities that are neither 0 nor 1."""
    eps = float(finfo(probs.dtype).eps)
    return probs.clamp(eps, 1 - eps)


def _probs_to_logits(probs: Array, is_binary: bool = False) -> Array:
    """Return the logarithms of probabilities, or of their odds."""
    inside = _clamp_probs(probs)
    return inside.log() - (-inside).log1p() if is_binary else inside.log()


def _logits_to_probs(logits: Array, is_binary: bool = False) -> Array:
    """Return probabilities from their logarithms up to a constant, or from those of their odds."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


_OF_DISTRIBUTIONS = {
    "_sum_rightmost": _sum_rightmost,
    "broadcast_all": _broadcast_all,
    "clamp_probs": _clamp_probs,
    "lazy_property": cached_property,
    "logits_to_probs": _logits_to_probs,
    "probs_to_logits": _probs_to_logits,
}

HOMES.update(
    {
        "_C": Namespace("_C", {"Generator": Generator, **_refused("_C", "Value Graph Node", _GRAPH)}),
        "functional": Namespace("functional", {}, "glassgrad"),
        "autograd.function": Namespace("autograd.function", {"FunctionCtx": Context}, "glassgrad.autograd"),
        "distributions.utils": Namespace("distributions.utils", _OF_DISTRIBUTIONS, "glassgrad.distributions"),
        "nn._reduction": Namespace(
            "nn._reduction",
            {"get_enum": _get_enum, "legacy_get_string": _legacy_string, "legacy_get_enum": _legacy_enum},
        ),
        "nn.common_types": Namespace("nn.common_types", _common_types()),
        "nn.utils.init": "nn.init",
        "utils.dlpack": Namespace("utils.dlpack", {"from_dlpack": from_dlpack, "to_dlpack": _to_dlpack}),
        "utils.hooks": Namespace("utils.hooks", {"RemovableHandle": Handle}),
        "autograd.anomaly_mode": Namespace("autograd.anomaly_mode", {}, "glassgrad.autograd"),
        "overrides": Namespace("overrides", dict.fromkeys(("has_torch_function", "has_torch_function_unary"), no)),
    }
)


def lend(package: str, name: str) -> object:
    """Return the submodule that PyTorch has in a package under this name; None where it has none."""
    if (package, name) not in _LENT:
        return None
    return importlib.import_module(f"torch{package.removeprefix('glassgrad')}.{name}")


__all__ = ["lend"]
