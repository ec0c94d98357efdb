"""DLPack: exchange memory with other libraries without a copy."""

from __future__ import annotations

from typing import Any

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.memory.capsules import array_of, capsule_of
from glassgrad.engine.tensor import Tensor, make
from glassgrad.engine.tensors import devices
from glassgrad.engine.tensors.devices import Device
from glassgrad.ops.core import Array

_CPU = 1  # kDLCPU of the DLPack standard


def dlpack(x: Tensor, **how: object) -> Any:
    """Return a capsule of the tensor's memory: `Tensor.__dlpack__`."""
    if x._tracks:
        raise errors.DLPACK_TRACKED(where=provenance.here())
    if any(step < 0 for step in getattr(x.array, "strides", ())):
        raise errors.DLPACK_BACKWARDS(where=provenance.here())
    return capsule_of(x.array, how)


def dlpack_device(x: Tensor) -> tuple[int, int]:
    """Return the device of the memory: `Tensor.__dlpack_device__`."""
    place: tuple[int, int] = x.array.__dlpack_device__()
    return place


def from_dlpack(other: Array, *, device: Device = None, copy: bool | None = None) -> Tensor:
    """Return a Tensor that shares the memory of another library's array, which must be on the cpu.

    `device` may name the cpu. With `copy` the memory is copied; with `copy=False` it is never copied.

    Example:
        >>> import numpy as np, glassgrad as gg
        >>> a = np.zeros(2)
        >>> t = gg.from_dlpack(a)
        >>> a[0] = 5
        >>> t.tolist()
        [5.0, 0.0]
    """
    if not hasattr(other, "__dlpack__") or not hasattr(other, "__dlpack_device__"):
        raise errors.NO_SUCH_DLPACK(given=type(other).__name__, where=provenance.here())
    devices.check(device)
    kind, number = other.__dlpack_device__()
    if kind != _CPU:
        raise errors.NO_SUCH_DLPACK(given=f"one on device {int(kind)}:{number}", where=provenance.here())
    shared = array_of(other)
    return make(shared.copy() if copy else shared, None, False)
