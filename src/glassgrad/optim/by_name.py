"""An optimizer by its name, for options of scripts and files."""

from __future__ import annotations

from typing import Any

from glassgrad import errors
from glassgrad.optim.optimizer import Optimizer, Params

_SHORT: dict[str, tuple[str, dict[str, Any]]] = {
    "momentum": ("SGD", {"momentum": 0.9})
}  # names of a class with an option


def optimizer_names() -> list[str]:
    """Return the names that `get_optimizer` knows."""
    return sorted({*_kinds(), *_SHORT})


def kind_of(name: str) -> type[Optimizer]:
    """Return the class of a name. Raises `ArgumentError` for an unknown name."""
    kind = _kinds().get(_SHORT.get(name.lower(), (name,))[0].lower())
    if kind is None:
        raise errors.OPTIMIZER_NAME(given=name, known=", ".join(optimizer_names()))
    return kind


def get_optimizer(name: str, params: Params, lr: float | None = None, **options: Any) -> Optimizer:
    """Return an optimizer by its name.

    Args:
        name: the name of its class in any case ("sgd", "rmsprop", "adamw"), or "momentum" for SGD with momentum 0.9.
        params: tensors or groups of them.
        lr: the rate; None for the class's own default.
        **options: further options of the class.

    Raises:
        ArgumentError: an unknown name, or options that the class refuses.

    Example:
        >>> import glassgrad as gg
        >>> weight = gg.zeros(2, requires_grad=True)
        >>> type(gg.optim.get_optimizer("rmsprop", [weight], 0.01, momentum=0.9)).__name__
        'RMSprop'
    """
    kind: Any = kind_of(name)
    extra = _SHORT.get(name.lower(), ("", {}))[1]
    rate = {} if lr is None else {"lr": lr}
    made: Optimizer = kind(params, **{**rate, **extra, **options})
    return made


def _kinds() -> dict[str, type[Optimizer]]:
    from glassgrad import optim

    return {one.lower(): kind for one in dir(optim) if _is_optimizer(kind := getattr(optim, one))}


def _is_optimizer(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Optimizer) and kind is not Optimizer


__all__ = ["get_optimizer"]
