"""`torch.amp` on the CPU: `autocast` leaves dtypes unchanged, `GradScaler` scales losses.

There are no half-precision kernels here, so a block under `autocast` computes in float32, which is at least as exact.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from glassgrad.engine import devices
from glassgrad.engine.writes import MUTATIONS
from glassgrad.errors.missing import getter, lister


class autocast:  # noqa: N801 - PyTorch's name
    """A context manager and decorator that changes nothing: everything stays in its own dtype.

    Example:
        >>> import glassgrad as gg
        >>> with gg.autocast("cpu"):
        ...     (gg.ones(2) * 2).dtype
        dtype('float32')
    """

    def __init__(
        self, device_type: Any = "cpu", dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        self.enabled = enabled
        if enabled and isinstance(device_type, str):
            devices.check(device_type)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        return None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapped


SCALERS: weakref.WeakSet[GradScaler] = weakref.WeakSet()
"""All scalers there are: while one is at work, gradients that are not finite are a part of it."""


class GradScaler:
    """Scales the loss so that small gradients survive in half precision, and unscales the gradients.

    A step whose gradients are not finite is skipped and the scale lowered; after `growth_interval` good ones it
    grows (Micikevicius et al. 2018).

    Example:
        >>> import glassgrad as gg
        >>> w = gg.tensor([3.0], requires_grad=True)
        >>> optimizer, scaler = gg.optim.SGD([w], lr=0.5), gg.amp.GradScaler(init_scale=1024.0)
        >>> scaler.scale((w**2).sum()).backward()
        >>> scaler.step(optimizer)  # divides the gradients first
        >>> scaler.update()
        >>> w.detach()
        tensor([0.])
    """

    def __init__(
        self,
        device: Any = "cpu",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._scale = init_scale
        self.growth_factor = growth_factor
        self.backoff_factor = backoff_factor
        self.growth_interval = growth_interval
        self.enabled = enabled
        self._good = 0
        SCALERS.add(self)
        self._found: bool | None = None  # whether the current gradients are not finite; None: not unscaled yet

    def is_enabled(self) -> bool:
        """Tell whether losses are scaled."""
        return self.enabled

    def get_scale(self) -> float:
        """Return the factor."""
        return self._scale if self.enabled else 1.0

    def scale(self, outputs: Any) -> Any:
        """Return a loss, or several, times the factor."""
        if not self.enabled:
            return outputs
        if isinstance(outputs, list | tuple):
            return type(outputs)(self.scale(one) for one in outputs)
        return outputs * self._scale

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer by the factor, so that they can be clipped."""
        if not self.enabled or self._found is not None:
            return
        self._found = False
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter._grad is not None:
                    array = parameter._grad.array
                    array *= array.dtype.type(1 / self._scale)
                    MUTATIONS.record(array)
                    self._found = self._found or not bool(np.isfinite(array).all())

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Step, unless a gradient is not finite."""
        if not self.enabled:
            return optimizer.step(*args, **kwargs)
        self.unscale_(optimizer)
        return None if self._found else optimizer.step(*args, **kwargs)

    def update(self, new_scale: float | None = None) -> None:
        """Adapt the factor after a step."""
        if not self.enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif self._found:
            self._scale *= self.backoff_factor
            self._good = 0
        else:
            self._good += 1
            if self._good == self.growth_interval:
                self._scale *= self.growth_factor
                self._good = 0
        self._found = None

    def note(self, overflowed: bool) -> None:
        """Adapt the factor after a step for which the caller has checked whether gradients overflowed."""
        self._found = overflowed
        self.update()

    def state_dict(self) -> dict[str, Any]:
        """Return factor and counter."""
        return {"scale": self._scale, "_growth_tracker": self._good} if self.enabled else {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state from `state_dict()`."""
        if self.enabled and state_dict:
            self._scale, self._good = float(state_dict["scale"]), int(state_dict["_growth_tracker"])


# PyTorch's names that this library lacks, and what to use in their place.
_INSTEAD = {
    "custom_fwd": "write the function as it is: nothing changes its dtype.",
    "custom_bwd": "write the function as it is: nothing changes its dtype.",
}

if not TYPE_CHECKING:
    __getattr__ = getter(__name__, _INSTEAD)

__all__ = ["GradScaler", "autocast"]
__dir__ = lister(__name__)
