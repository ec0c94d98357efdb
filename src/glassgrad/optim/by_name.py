"""An optimizer by its name, for options of scripts and files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from glassgrad import errors
from glassgrad.optim.optimizer import Optimizer

_SHORT = {"momentum": ("SGD", {"momentum": 0.9})}  # names that are a class with an option


def get_optimizer(name: str, params: Iterable[Any], lr: float, **options: Any) -> Optimizer:
    """Return an optimizer by its name.

    Args:
        name: the name of its class in any case ("sgd", "rmsprop", "adamw"), or "momentum" for SGD with momentum 0.9.
        params: tensors or groups of them.
        lr: the rate.
        **options: further options of the class.

    Raises:
        ArgumentError: an unknown name, or options that the class refuses.

    Example:
        >>> import glassgrad as gg
        >>> weight = gg.zeros(2, requires_grad=True)
        >>> type(gg.optim.get_optimizer("rmsprop", [weight], 0.01, momentum=0.9)).__name__
        'RMSprop'
    """
    from glassgrad import optim

    title, extra = _SHORT.get(name.lower(), (name, {}))
    kinds = {one.lower(): kind for one in dir(optim) if _is_optimizer(kind := getattr(optim, one))}
    kind = kinds.get(title.lower())
    if kind is None:
        known = sorted({*kinds, *_SHORT})
        raise errors.OPTIMIZER_NAME(given=name, known=", ".join(known))
    made: Optimizer = kind(params, lr=lr, **{**extra, **options})
    return made


def _is_optimizer(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Optimizer) and kind is not Optimizer


__all__ = ["get_optimizer"]
