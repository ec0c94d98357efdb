"""Devices by name. Only the CPU computes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from glassgrad import errors
from glassgrad.base import provenance

Made = ParamSpec("Made")
Result = TypeVar("Result")

# Kinds of devices that programs name. All can be compared; tensors live on the first.
_KINDS = ("cpu", "cuda", "mps", "xpu", "xla", "hip", "hpu", "mtia", "vulkan", "meta", "ipu", "privateuseone")


# The number of processes of one program that share this process's cores; `distributed.init_process_group` sets it.
sharers = 1


class device:  # noqa: N801 - PyTorch's name
    """The name of a device. Only "cpu" computes; other names can be created and compared.

    Args:
        type: "cpu", "cuda", "cuda:1", ...
        index: the number of the device, if it is not in the name.

    Raises:
        ArgumentError: no kind of device has this name.

    Example:
        >>> import glassgrad as gg
        >>> gg.device("cpu"), gg.ones(2).device == gg.device("cuda")
        (device(type='cpu'), False)
    """

    def __init__(self, type: Any = "cpu", index: int | None = None) -> None:
        kind, _, number = ("cuda", ":", type) if isinstance(type, int) else str(type).partition(":")
        if kind not in _KINDS or not str(number or 0).isdecimal():
            raise errors.UNKNOWN_DEVICE(given=type, kinds=", ".join(_KINDS), where=provenance.here())
        self.type = kind
        self.index = int(number) if number != "" else index

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, device):
            return self.type == other.type and (self.type == "cpu" or self.index == other.index)
        return isinstance(other, str) and (other == str(self) or (self.type == other.partition(":")[0] == "cpu"))

    def __hash__(self) -> int:
        return hash("cpu" if self.type == "cpu" else str(self))

    def __enter__(self) -> Self:
        check(self)
        return self

    def __exit__(self, *_exception: object) -> None:
        return None


# Annotations of device arguments, where None is the cpu, and of dtype arguments, where None is the default.
Device: TypeAlias = device | str | int | None
DType: TypeAlias = DTypeLike | None


def check(name: object) -> None:
    """Raise unless `name` is the cpu."""
    if name is not None and str(name).partition(":")[0] != "cpu":
        raise errors.NO_SUCH_DEVICE(given=str(name), where=provenance.here())


def wanted_dtype(targets: Iterable[Any], dtype: Any, device: Any) -> Any:
    """Return the dtype that a call of `to` requests, also by a tensor among its arguments; check the device."""
    for target in targets:
        if hasattr(target, "_tracks"):  # a tensor
            dtype = target.dtype
        elif is_dtype(target):
            dtype = target
        elif not isinstance(target, bool):
            device = target
    check(device)
    return dtype


def on_the_processor(maker: Callable[Made, Result]) -> Callable[Made, Result]:
    """Let a function that makes tensors accept PyTorch's memory options if they ask for the existing behaviour.

    That is ``layout=torch.strided``, ``pin_memory=False``, and a contiguous `memory_format` or that of the input.
    """

    @functools.wraps(maker)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs and not _ABOUT_MEMORY.keys().isdisjoint(kwargs):
            for name in _ABOUT_MEMORY.keys() & kwargs.keys():
                given = kwargs.pop(name)
                if given not in _ABOUT_MEMORY[name]:
                    expected = " or ".join(map(repr, _ABOUT_MEMORY[name][1:]))
                    owner, where = maker.__name__, provenance.here()
                    raise errors.BAD_OPTION(owner=owner, name=name, given=given, expected=expected, where=where)
        return maker(*args, **kwargs)

    return call


_ABOUT_MEMORY: dict[str, tuple[Any, ...]] = {
    "layout": (None, "strided"),
    "pin_memory": (None, False),
    "memory_format": (None, "contiguous", "preserve"),
}


def is_dtype(value: object) -> bool:
    """Tell whether an argument of `.to()` is a dtype rather than a device."""
    return isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic | float | int))
