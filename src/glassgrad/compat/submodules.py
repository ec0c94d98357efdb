"""PyTorch's submodules as attributes: `torch.distributions.normal.Normal` without an import of its own.

Our packages have other files, or none, for these names. An import finds them in `HOMES`; an attribute is lent to the
package (`errors.missing.lent`) while glassgrad stands in for PyTorch.
"""

from __future__ import annotations

import importlib
from typing import Any

from glassgrad.base.tables import words
from glassgrad.compat.named_only import _GRAPH, _refused
from glassgrad.compat.namespaces import HOMES, Namespace, no
from glassgrad.engine.protocols import from_dlpack
from glassgrad.engine.random import Generator
from glassgrad.engine.tensor import Handle

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
        found[f"_size_{count}_t"] = int | tuple[(int,) * count]
        found[f"_size_{count}_opt_t"] = int | tuple[(int | None,) * count]
        found[f"_ratio_{count}_t"] = float | tuple[(float,) * count]
    return found


def _to_dlpack(tensor: Any) -> Any:
    """Return the capsule of a tensor's memory."""
    return tensor.__dlpack__()


HOMES.update(
    {
        "_C": Namespace("_C", {"Generator": Generator, **_refused("_C", "Value Graph Node", _GRAPH)}),
        "functional": Namespace("functional", {}, "glassgrad"),
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


def lend(package: str, name: str) -> Any:
    """Return the submodule that PyTorch has in a package under this name; None where it has none."""
    if (package, name) not in _LENT:
        return None
    return importlib.import_module(f"torch{package.removeprefix('glassgrad')}.{name}")


__all__ = ["lend"]
