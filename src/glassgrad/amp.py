"""`torch.amp` on the CPU: `autocast` lets products run in bfloat16, `GradScaler` scales losses.

`engine/autocasting.py` lists the ops that run in each dtype, following PyTorch's lists.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.mode import AUTOCAST, MODE
from glassgrad.engine.reports.nonfinite import SCALERS
from glassgrad.engine.tensors import devices
from glassgrad.engine.tensors.devices import Device, DType
from glassgrad.engine.writes import MUTATIONS
from glassgrad.errors.missing import getter, lister
from glassgrad.ops import narrow


class autocast:  # noqa: N801 - PyTorch's name
    """A context manager and decorator under which products run in bfloat16, with float32 sums.

    Matrix products, linear layers, convolutions, attention and recurrent layers round their inputs to bfloat16 and
    return bfloat16; losses and factorisations run in float32; other ops keep the dtype of their inputs. Weights, their
    gradients and the optimizer stay in float32, and the loss needs no scaling (see the guide on precision). Keep the
    backward pass and the optimizer outside of the block, as in PyTorch.

    It speeds up compiled steps on processors with AVX512-BF16. On others everything stays in float32, with one warning.

    Args:
        device_type: the device; there is only "cpu".
        dtype: bfloat16, the default; under float16, everything stays in float32, which is at least as exact.
        enabled: False switches the block off, also inside of another one.
        cache_enabled: accepted; a compiled step rounds each weight once.

    Example:
        >>> import glassgrad as gg
        >>> layer = gg.nn.Linear(3, 2)
        >>> with gg.autocast("cpu", dtype=gg.bfloat16):
        ...     y = layer(gg.ones(1, 3))
        >>> (y * y).sum().backward()
        >>> layer.weight.grad.dtype
        dtype('float32')
    """

    def __init__(
        self,
        device_type: Any = "cpu",
        dtype: DType = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        self.enabled = enabled
        if enabled and isinstance(device_type, str):
            devices.check(device_type)
        self.dtype = dtype
        self._before: list[int] = []

    def __enter__(self) -> Self:
        self._before.append(MODE.flags)
        narrows = self.enabled and (self.dtype is None or is_narrow_dtype(self.dtype)) and _has_units()
        MODE.flags = MODE.flags | AUTOCAST if narrows else MODE.flags & ~AUTOCAST
        return self

    def __exit__(self, *_exception: object) -> None:
        MODE.flags = MODE.flags & ~AUTOCAST | self._before.pop() & AUTOCAST

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: object, **kwargs: object) -> Any:
            with autocast("cpu", self.dtype, self.enabled):  # threads may run it at once
                return function(*args, **kwargs)

        return wrapped


def is_autocast_enabled(_device_type: object = "cpu") -> bool:
    """Tell whether products run in bfloat16 in this thread."""
    return bool(MODE.flags & AUTOCAST)


def is_narrow_dtype(dtype: DType) -> bool:
    """Tell whether an argument means bfloat16: the dtype or its name."""
    return str(dtype).rpartition(".")[2] == "bfloat16"


def _has_units() -> bool:
    """Tell whether the processor multiplies bfloat16; warn once if it does not."""
    if not processor_multiplies():
        _notice()
        return False
    narrow.bfloat16()
    return True


@functools.cache
def processor_multiplies() -> bool:
    """Tell whether native code can be compiled here and the processor multiplies bfloat16."""
    try:
        from glassgrad.compile.llvm.module.target import host

        return host().has_bfloat
    except (ImportError, OSError, RuntimeError):  # no LLVM here
        return False


@functools.cache
def _notice() -> None:
    text = errors.NO_BFLOAT_UNITS.text(where=provenance.here(2))
    warnings.warn(text, errors.PrecisionWarning, stacklevel=provenance.stack_level())


class GradScaler:
    """Scales the loss so that small gradients survive in half precision, and unscales the gradients.

    A step whose gradients are not finite is skipped and the scale lowered; after `growth_interval` good steps the scale
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
        device: Device = "cpu",
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
        self._found: dict[int, bool] = {}  # whether gradients are not finite, by optimizer that was unscaled

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
        if not self.enabled or id(optimizer) in self._found:
            return
        bad = False
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter._grad is not None:
                    array = parameter._grad.array
                    array *= array.dtype.type(1 / self._scale)
                    MUTATIONS.record(array)
                    bad = bad or not bool(np.isfinite(array).all())
        self._found[id(optimizer)] = bad

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Step, unless a gradient is not finite."""
        if not self.enabled:
            return optimizer.step(*args, **kwargs)
        self.unscale_(optimizer)
        return None if self._found[id(optimizer)] else optimizer.step(*args, **kwargs)

    def update(self, new_scale: float | None = None) -> None:
        """Adapt the factor after a step."""
        if not self.enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif any(self._found.values()):
            self._scale *= self.backoff_factor
            self._good = 0
        else:
            self._good += 1
            if self._good == self.growth_interval:
                self._scale *= self.growth_factor
                self._good = 0
        self._found.clear()

    def note(self, overflowed: bool) -> None:
        """Adapt the factor after a step for which the caller has checked whether gradients overflowed."""
        self._found[0] = overflowed
        self.update()

    def state_dict(self) -> dict[str, Any]:
        """Return the factor and the counter of good steps."""
        return {"scale": self._scale, "_growth_tracker": self._good} if self.enabled else {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state from `state_dict()`."""
        if self.enabled and state_dict:
            self._scale, self._good = float(state_dict["scale"]), int(state_dict["_growth_tracker"])


# PyTorch's names that this library lacks, and their replacements.
_INSTEAD = {
    "custom_fwd": "leave the decorator out: nothing changes the dtype of the function.",
    "custom_bwd": "leave the decorator out: nothing changes the dtype of the function.",
}

if not TYPE_CHECKING:
    __getattr__ = getter(__name__, _INSTEAD)

__all__ = ["GradScaler", "autocast"]
__dir__ = lister(__name__)
