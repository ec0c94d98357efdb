"""`torch.autograd`: backward, grad, custom functions, and PyTorch's checks of derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from glassgrad import verify
from glassgrad.engine import saved_tensors as graph
from glassgrad.engine.backward import Variable, backward, grad
from glassgrad.engine.function import Function, once_differentiable
from glassgrad.engine.mode import enable_grad, no_grad, set_grad_enabled
from glassgrad.engine.walks.anomaly import detect_anomaly, set_detect_anomaly
from glassgrad.errors.missing import getter, lister


class CheckOptions(TypedDict, total=False):
    """The options of `gradcheck`: four that have an effect, and PyTorch's others, which are ignored."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_undefined_grad: bool
    check_grad_dtypes: bool
    check_batched_grad: bool
    check_batched_forward_grad: bool
    check_forward_ad: bool
    check_backward_ad: bool
    fast_mode: bool
    masked: bool | None


def gradcheck(
    func: Callable[..., Any], inputs: Any, *, raise_exception: bool = True, **options: Unpack[CheckOptions]
) -> bool:
    """Check derivatives against finite differences, as in PyTorch; raise if they differ. See `verify.gradcheck`.

    Example:
        >>> import glassgrad as gg
        >>> x = gg.tensor([0.5, 1.0], dtype=gg.float64, requires_grad=True)
        >>> gg.autograd.gradcheck(lambda x: x.exp().sum(), (x,))
        True
    """
    return _checked(verify.gradcheck, func, inputs, raise_exception, options)


def gradgradcheck(
    func: Callable[..., Any], inputs: Any, *, raise_exception: bool = True, **options: Unpack[CheckOptions]
) -> bool:
    """Check second derivatives likewise. See `verify.gradgradcheck`.

    Example:
        >>> import glassgrad as gg
        >>> x = gg.tensor([0.5, 1.0], dtype=gg.float64, requires_grad=True)
        >>> gg.autograd.gradgradcheck(lambda x: x.exp().sum(), (x,))
        True
    """
    return _checked(verify.gradgradcheck, func, inputs, raise_exception, options)


def _checked(check: Any, func: Any, inputs: Any, raise_exception: bool, options: Mapping[str, Any]) -> bool:
    known = {key: value for key, value in options.items() if key in {"eps", "atol", "rtol", "nondet_tol"}}
    given = inputs if isinstance(inputs, tuple | list) else (inputs,)
    return bool(check(func, *given, raise_exception=raise_exception, **known))


# PyTorch's names that this library lacks, and their replacements.
_INSTEAD = {
    "profiler": "compiled.stats has the operations and bytes of a compiled function.",
}

if not TYPE_CHECKING:
    _absent = getter(__name__, _INSTEAD)

    def __getattr__(name: str) -> Any:
        """Load the module `functional` on first use."""
        return import_module("glassgrad.func.of_inputs") if name == "functional" else _absent(name)


__all__ = [
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "no_grad",
    "once_differentiable",
    "set_detect_anomaly",
    "set_grad_enabled",
]
__dir__ = lister(__name__)
