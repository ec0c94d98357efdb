"""Layers that take the number of their inputs from the first input, and are ordinary layers afterwards.

Before the first input their parameters are empty. They stay the same objects, so an optimizer may be made first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.mode import MODE, TRACING
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.tensors.devices import Device, DType
from glassgrad.nn.arguments import Ints
from glassgrad.nn.layers.conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from glassgrad.nn.layers.linear import Linear
from glassgrad.nn.layers.norm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from glassgrad.nn.module import Module
from glassgrad.nn.state import fill, is_open
from glassgrad.ops.core import Array, bad_option


class _AnyLayer(Module):
    """The layer that a lazy layer also inherits from, as type checkers see it."""

    if TYPE_CHECKING:

        def __init__(self, *args: Any, **options: Any) -> None: ...

        def reset_parameters(self) -> None: ...


class _Lazy(_AnyLayer):
    """Base of lazy layers: the first input gives the attribute `counts`; the layer then becomes its last base class."""

    counts: ClassVar[str] = "in_channels"

    def has_uninitialized_params(self) -> bool:
        """Tell whether no input has been seen yet."""
        return any(is_open(tensor) for tensor in self._tensors().values())

    def _tensors(self) -> dict[str, Tensor]:
        found = {name: getattr(self, name, None) for name in ("weight", "bias", "running_mean", "running_var")}
        return {name: tensor for name, tensor in found.items() if tensor is not None}

    def _open(self) -> None:
        """Let the tensors take the shape of what is loaded into them."""
        for tensor in self._tensors().values():
            tensor._extra = {**(tensor._extra or {}), "open": True}

    def reset_parameters(self) -> None:
        """Draw new weights, once the layer has any."""
        if not self.has_uninitialized_params():
            super().reset_parameters()

    def _shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a parameter now that the count is known."""
        raise NotImplementedError  # each lazy layer knows its parameters

    def _axis(self, ndim: int) -> int:
        """Return the input dimension whose size is the count. Raises `ArgumentError` for a wrong number of axes."""
        if ndim < 2:
            raise self._refusal(ndim, "at least 2")
        return 1

    def _refusal(self, ndim: int, expected: str) -> Exception:
        return bad_option(type(self).__name__, "input", f"a tensor of {ndim} dimensions", expected)

    def initialize_parameters(self, input: Array) -> None:
        """Take the count from an input, and draw the parameters."""
        tensors = self._tensors()
        count = int(input.shape[self._axis(len(input.shape))])
        setattr(self, self.counts, count)
        loaded = [name for name, tensor in tensors.items() if not is_open(tensor)]
        try:
            shapes = {name: self._shape(name) for name in tensors}
            if any(tuple(tensors[name].shape) != shapes[name] for name in loaded):
                expected = "the number of inputs of the loaded weights"
                raise bad_option(type(self).__name__, "input", f"{self.counts}={count}", expected)
        except errors.GlassgradError:
            setattr(self, self.counts, 0)  # reset, because the next input may fit
            raise
        values = {name: tensors[name].array for name in loaded}
        for name in shapes.keys() - loaded:
            fill(tensors[name], np.zeros(shapes[name]))
        self.__class__ = type(self).__bases__[-1]
        if len(loaded) < len(tensors):
            for name in loaded:
                tensors[name].array = values[name].copy()
            self.reset_parameters()
            for name in loaded:
                tensors[name].array = values[name]

    def forward(self, input: Array, *args: Any, **kwargs: Any) -> Any:
        if MODE.flags & TRACING:
            raise errors.LAZY_TRACED(layer=type(self).__name__, where=provenance.here())
        self.initialize_parameters(input)
        return self.forward(input, *args, **kwargs)


class LazyLinear(_Lazy, Linear):
    """`Linear` whose `in_features` is the last dimension of the first input.

    Example:
        >>> import glassgrad as gg
        >>> layer = gg.nn.LazyLinear(2)
        >>> layer(gg.zeros(4, 3)).shape, layer
        ((4, 2), Linear(in_features=3, out_features=2, bias=True))
    """

    counts = "in_features"

    def __init__(self, out_features: int, bias: bool = True, device: Device = None, dtype: DType = None) -> None:
        super().__init__(0, out_features, bias, device, dtype)
        self._open()

    def _axis(self, ndim: int) -> int:
        if ndim < 1:
            raise self._refusal(ndim, "at least 1")
        return ndim - 1

    def _shape(self, name: str) -> tuple[int, ...]:
        return (self.out_features, self.in_features) if name == "weight" else (self.out_features,)


class _LazyConv(_Lazy):
    """Base of lazy convolutions."""

    def __init__(
        self,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints | str = 0,
        dilation: Ints = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        super().__init__(
            0, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype
        )
        self._open()

    def _axis(self, ndim: int) -> int:
        if ndim not in {self.dims + 1, self.dims + 2}:
            raise self._refusal(ndim, f"{self.dims + 2}, or {self.dims + 1} for one example")
        return ndim - self.dims - 1

    def _shape(self, name: str) -> tuple[int, ...]:
        if name == "bias":
            return (self.out_channels,)
        self._check()
        counts = (self.in_channels, self.out_channels)
        first, second = counts if self.turned else counts[::-1]
        return (first, second // self.groups, *self.kernel_size)


class LazyConv1d(_LazyConv, Conv1d):
    """`Conv1d` whose `in_channels` are those of the first input.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.LazyConv1d(4, 3)(gg.zeros(1, 2, 8)).shape
        (1, 4, 6)
    """


class LazyConv2d(_LazyConv, Conv2d):
    """`Conv2d` whose `in_channels` are those of the first input.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.LazyConv2d(4, 3)(gg.zeros(1, 2, 8, 8)).shape
        (1, 4, 6, 6)
    """


class LazyConv3d(_LazyConv, Conv3d):
    """`Conv3d` whose `in_channels` are those of the first input.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.LazyConv3d(4, 3)(gg.zeros(1, 2, 8, 8, 8)).shape
        (1, 4, 6, 6, 6)
    """


class _LazyConvTranspose(_LazyConv):
    """Base of lazy transposed convolutions, whose options have another order."""

    def __init__(
        self,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Ints = 1,
        padding_mode: str = "zeros",
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        options = output_padding, groups, bias, dilation, padding_mode, device, dtype
        super(_LazyConv, self).__init__(0, out_channels, kernel_size, stride, padding, *options)
        self._open()


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """`ConvTranspose1d` whose `in_channels` are those of the first input.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.LazyConvTranspose1d(4, 3)(gg.zeros(1, 2, 8)).shape
        (1, 4, 10)
    """


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """`ConvTranspose2d` whose `in_channels` are those of the first input.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.LazyConvTranspose2d(4, 3)(gg.zeros(1, 2, 8, 8)).shape
        (1, 4, 10, 10)
    """


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """`ConvTranspose3d` whose `in_channels` are those of the first input.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.LazyConvTranspose3d(4, 3)(gg.zeros(1, 2, 8, 8, 8)).shape
        (1, 4, 10, 10, 10)
    """


class _LazyNorm(_Lazy):
    """Base of lazy batch norms."""

    counts = "num_features"

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device = None,
        dtype: DType = None,
        *,
        bias: bool = True,
    ) -> None:
        options = eps, momentum, affine, track_running_stats, device, dtype
        super().__init__(0, *options, bias=bias)
        self._open()

    def _shape(self, name: str) -> tuple[int, ...]:
        return (self.num_features,)


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """`BatchNorm1d` whose `num_features` are the channels of the first input.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.LazyBatchNorm1d()(gg.zeros(4, 2, 8)).shape
        (4, 2, 8)
    """


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """`BatchNorm2d` whose `num_features` are the channels of the first input.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.LazyBatchNorm2d()(gg.zeros(4, 2, 8, 8)).shape
        (4, 2, 8, 8)
    """


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """`BatchNorm3d` whose `num_features` are the channels of the first input.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.LazyBatchNorm3d()(gg.zeros(4, 2, 8, 8, 8)).shape
        (4, 2, 8, 8, 8)
    """


__all__ = ["LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d"]
__all__ += ["LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d", "LazyLinear"]
