"""Optimizers. p is a parameter, g its gradient, and every line is one equation of the method.

Updates are in place, so that every holder of a parameter's array sees them.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from glassgrad import errors
from glassgrad.manual.protocols import Array, Parameter

AT_LEAST_0 = "a number of at least 0"


class _Optimizer(ABC):
    # The arrays kept for each parameter, with PyTorch's names for them.
    slots: ClassVar[dict[str, str]] = {}

    def __init__(self, parameters: Iterable[Parameter], lr: float, **limits: tuple[Any, bool, str]) -> None:
        self.parameters = list(parameters)
        name = type(self).__name__
        if not self.parameters:
            raise errors.MANUAL_NO_PARAMETERS(optimizer=name)
        for option, (given, fits, expected) in {"lr": (lr, lr >= 0, "a rate of at least 0"), **limits}.items():
            if not fits:
                raise errors.MANUAL_OPTION(layer=name, name=option, given=given, expected=expected)
        # Schedules of `glassgrad.optim.lr_scheduler` set the rate in this form.
        self.param_groups: list[dict[str, Any]] = [{"params": self.parameters, "lr": lr}]

    @property
    def lr(self) -> float:
        rate: float = self.param_groups[0]["lr"]
        return rate

    @lr.setter
    def lr(self, rate: float) -> None:
        self.param_groups[0]["lr"] = rate

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    def step(self) -> None:
        """Update every parameter that has a gradient; warns if none has."""
        idle = True
        for number, parameter in enumerate(self.parameters):
            if parameter.grad is not None:
                self.update(number, parameter.data, parameter.grad)
                idle = False
        if idle:
            text = errors.MANUAL_NO_GRADIENTS.text(optimizer=type(self).__name__, count=len(self.parameters))
            warnings.warn(text, errors.IdleStepWarning, stacklevel=2)

    @abstractmethod
    def update(self, number: int, p: Array, g: Array) -> None:
        """Update the array p, the `number`th parameter, in place."""

    def like_parameters(self) -> list[Array]:
        return [np.zeros_like(parameter.data) for parameter in self.parameters]

    def held(self) -> dict[str, list[Array]]:
        """Return the arrays of all parameters by PyTorch's name for them."""
        return {name: arrays for own, name in self.slots.items() if (arrays := getattr(self, own))}

    def state_dict(self) -> dict[str, Any]:
        """Return the state in PyTorch's layout: arrays of each parameter by its position, and the rate."""
        places = range(len(self.parameters))
        state = {place: {name: arrays[place] for name, arrays in self.held().items()} for place in places}
        return {"state": state, "param_groups": [{**self.param_groups[0], "params": list(places)}]}

    def load_state_dict(self, state: Mapping[str, Any], /) -> None:
        """Take over a state, also one of `glassgrad.optim` or PyTorch; a parameter without one starts with zeros."""
        given = [state["state"].get(place, {}) for place in range(len(self.parameters))]
        found = {name: [_array(entry.get(name)) for entry in given] for name in self.held()}
        for name, arrays in found.items():
            for place, (array, own) in enumerate(zip(arrays, self.held()[name], strict=True)):
                if array is not None and array.shape != own.shape:
                    raise errors.MANUAL_OPTIMIZER_STATE(
                        optimizer=type(self).__name__, place=place, name=name, given=array.shape, expected=own.shape
                    )
        for name, arrays in found.items():
            for array, own in zip(arrays, self.held()[name], strict=True):
                own[...] = 0 if array is None else array
        group = state["param_groups"][0]
        self.param_groups[0].update({name: group[name] for name in ("lr", "initial_lr") if name in group})

    def __repr__(self) -> str:
        return f"{type(self).__name__}(lr={self.lr:g}, {len(self.parameters)} parameters)"


def _array(value: Any) -> Array | None:
    return None if value is None else np.asarray(value.detach() if hasattr(value, "detach") else value)


class SGD(_Optimizer):
    """p ← p - lr g.

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> p = manual.Parameter(np.array([1.0, -1.0]))
        >>> p.grad = np.array([2.0, 0.0])
        >>> manual.SGD([p], lr=0.1).step()
        >>> p.data.round(4)
        array([ 0.8, -1. ])
    """

    def __init__(self, parameters: Iterable[Parameter], lr: float = 1e-3) -> None:
        super().__init__(parameters, lr)

    def update(self, number: int, p: Array, g: Array) -> None:
        p -= self.lr * g


class SGDMomentum(_Optimizer):
    """v ← momentum v + g;  p ← p - lr v. The first step has v = g, as in PyTorch.

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> p = manual.Parameter(np.array([1.0, -1.0]))
        >>> p.grad = np.array([2.0, 0.0])
        >>> manual.SGDMomentum([p], lr=0.1).step()
        >>> p.data.round(4)
        array([ 0.8, -1. ])
    """

    slots: ClassVar[dict[str, str]] = {"velocity": "momentum_buffer"}

    def __init__(self, parameters: Iterable[Parameter], lr: float = 1e-3, momentum: float = 0.9) -> None:
        super().__init__(parameters, lr, momentum=(momentum, momentum >= 0, AT_LEAST_0))
        self.momentum = momentum
        self.velocity = self.like_parameters()

    def update(self, number: int, p: Array, g: Array) -> None:
        v = self.velocity[number]
        v *= self.momentum
        v += g
        p -= self.lr * v


class RMSprop(_Optimizer):
    """s ← alpha s + (1 - alpha) g²;  step = g / (sqrt(s) + eps);  with momentum v ← momentum v + step.

    p ← p - lr v, or p - lr step without momentum. Source: Hinton's lecture 6e (2012), the variant of PyTorch.

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> p = manual.Parameter(np.array([1.0, -1.0]))
        >>> p.grad = np.array([2.0, 0.0])
        >>> manual.RMSprop([p], lr=0.1).step()
        >>> p.data.round(4)
        array([ 0., -1.])
    """

    slots: ClassVar[dict[str, str]] = {"square": "square_avg", "velocity": "momentum_buffer"}

    def __init__(
        self,
        parameters: Iterable[Parameter],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        momentum: float = 0.0,
    ) -> None:
        super().__init__(
            parameters,
            lr,
            alpha=(alpha, alpha >= 0, AT_LEAST_0),
            eps=(eps, eps >= 0, AT_LEAST_0),
            momentum=(momentum, momentum >= 0, AT_LEAST_0),
        )
        self.alpha, self.eps, self.momentum = alpha, eps, momentum
        self.square = self.like_parameters()
        self.velocity = self.like_parameters() if momentum else []

    def update(self, number: int, p: Array, g: Array) -> None:
        s = self.square[number]
        s *= self.alpha
        s += (1 - self.alpha) * g * g
        step = g / (np.sqrt(s) + self.eps)
        if self.momentum:
            v = self.velocity[number]
            v *= self.momentum
            v += step
            step = v
        p -= self.lr * step


class Adam(_Optimizer):
    """m ← b1 m + (1 - b1) g;  s ← b2 s + (1 - b2) g²;  p ← p - lr m̂ / (sqrt(ŝ) + eps).

    m̂ = m / (1 - b1^t) and ŝ = s / (1 - b2^t) undo that both started at 0, at the t-th update. Weight decay adds
    weight_decay · p to g first. Source: Kingma, Ba, "Adam" (2015), algorithm 1.

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> p = manual.Parameter(np.array([1.0, -1.0]))
        >>> p.grad = np.array([2.0, 0.0])
        >>> manual.Adam([p], lr=0.1).step()
        >>> p.data.round(4)
        array([ 0.9, -1. ])
    """

    slots: ClassVar[dict[str, str]] = {"mean": "exp_avg", "square": "exp_avg_sq", "updates": "step"}

    def __init__(
        self,
        parameters: Iterable[Parameter],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        inside = all(0 <= beta < 1 for beta in betas)
        super().__init__(
            parameters,
            lr,
            betas=(betas, inside, "two numbers in [0, 1)"),
            eps=(eps, eps >= 0, AT_LEAST_0),
            weight_decay=(weight_decay, weight_decay >= 0, AT_LEAST_0),
        )
        self.betas, self.eps, self.weight_decay = betas, eps, weight_decay
        self.mean, self.square = self.like_parameters(), self.like_parameters()
        # t, per parameter: it does not advance without a gradient
        self.updates = [np.zeros((), np.int64) for _ in self.parameters]

    def update(self, number: int, p: Array, g: Array) -> None:
        m, s, (b1, b2) = self.mean[number], self.square[number], self.betas
        self.updates[number] += 1
        t = int(self.updates[number])
        if self.weight_decay:
            g = g + self.weight_decay * p
        m *= b1
        m += (1 - b1) * g
        s *= b2
        s += (1 - b2) * g * g
        p -= (self.lr / (1 - b1**t)) * m / (np.sqrt(s / (1 - b2**t)) + self.eps)


BY_NAME: dict[str, type[_Optimizer]] = {
    "sgd": SGD,
    "momentum": SGDMomentum,
    "sgdmomentum": SGDMomentum,
    "rmsprop": RMSprop,
    "adam": Adam,
}


def kind_of(name: str) -> type[_Optimizer]:
    """Return the optimizer class with this name. Raises `ArgumentError` for an unknown name."""
    kind = BY_NAME.get(name.lower())
    if kind is None:
        raise errors.OPTIMIZER_NAME(given=name, known=", ".join(sorted({*BY_NAME} - {"sgdmomentum"})))
    return kind


def get_optimizer(name: str, parameters: Iterable[Parameter], lr: float | None = None, **options: Any) -> _Optimizer:
    """Return an optimizer by its name: "sgd", "momentum", "rmsprop" or "adam".

    Args:
        name: the name, in any case.
        parameters: the parameters to update.
        lr: the rate; None for the class's own default.
        **options: further options of its class; "sgd" with a momentum is "momentum".

    Raises:
        ArgumentError: an unknown name.

    Example:
        >>> from glassgrad import manual
        >>> get_optimizer("rmsprop", manual.Linear(3, 2).parameters(), 0.01, alpha=0.9)
        RMSprop(lr=0.01, 2 parameters)
    """
    kind: Any = kind_of(name)
    if kind is SGD and options.get("momentum") is not None:
        kind = SGDMomentum
    made: _Optimizer = kind(parameters, **({} if lr is None else {"lr": lr}), **options)
    return made
