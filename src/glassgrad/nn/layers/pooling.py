"""Pooling layers: the largest, the mean or another power of each window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from glassgrad.engine.tensor import Tensor, TensorLike
from glassgrad.nn.arguments import Ints, Sizes
from glassgrad.nn.functional import fractional
from glassgrad.nn.layers.conv import several
from glassgrad.nn.module import Module
from glassgrad.ops import pooling
from glassgrad.ops.core import Array, bad_option


class _MaxPool(Module):
    """Base of the max poolings."""

    operation: Callable[..., Array]
    _shown = "kernel_size={kernel_size}, stride={stride}, padding={padding}, dilation={dilation}, ceil_mode={ceil_mode}"

    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        dilation: Ints = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: TensorLike) -> Any:
        return self.operation(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )


class MaxPool1d(_MaxPool):
    """The largest number of each window of (N, C, L).

    Args:
        kernel_size, stride, padding, dilation: of the window; the stride is the window's size by default.
        return_indices: return the positions of the largest numbers as well.
        ceil_mode: keep a last window that reaches beyond the end.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.MaxPool1d(2)(gg.tensor([[[1.0, 3.0, 7.0, 5.0]]]))
        tensor([[[3., 7.]]])
    """

    operation = staticmethod(pooling.max_pool1d)


class MaxPool2d(_MaxPool):
    """The largest number of each window of (N, C, H, W); arguments as for `MaxPool1d`.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.MaxPool2d(3, stride=2, padding=1)(gg.zeros(1, 3, 8, 8)).shape
        (1, 3, 4, 4)
    """

    operation = staticmethod(pooling.max_pool2d)


class MaxPool3d(_MaxPool):
    """The largest number of each window of (N, C, D, H, W); arguments as for `MaxPool1d`.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.MaxPool3d(3, stride=2, padding=1)(gg.zeros(1, 3, 4, 8, 8)).shape
        (1, 3, 2, 4, 4)
    """

    operation = staticmethod(pooling.max_pool3d)


class _AvgPool(Module):
    """Base of the mean poolings; the function over one axis takes no divisor."""

    operation: Callable[..., Array]
    _shown = "kernel_size={kernel_size}, stride={stride}, padding={padding}"

    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: TensorLike) -> Tensor:
        options = () if self.divisor_override is None else (self.divisor_override,)
        return self.operation(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, *options
        )


class AvgPool1d(_AvgPool):
    """The mean of each window of (N, C, L).

    Args:
        kernel_size, stride, padding: of the window; the stride is the window's size by default.
        ceil_mode: keep a last window that reaches beyond the end.
        count_include_pad: whether the zeros of the border count.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.AvgPool1d(2)(gg.tensor([[[1.0, 3.0, 5.0, 7.0]]]))
        tensor([[[2., 6.]]])
    """

    operation = staticmethod(pooling.avg_pool1d)

    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        size = several(kernel_size, 1)
        steps = size if stride is None else several(stride, 1)
        super().__init__(size, steps, several(padding, 1), ceil_mode, count_include_pad)


class AvgPool2d(_AvgPool):
    """The mean of each window of (N, C, H, W); `divisor_override` replaces the count of numbers in it.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.AvgPool2d(2)(gg.zeros(1, 3, 8, 8)).shape
        (1, 3, 4, 4)
    """

    operation = staticmethod(pooling.avg_pool2d)


class AvgPool3d(_AvgPool):
    """The mean of each window of (N, C, D, H, W); `divisor_override` replaces the count of numbers in it.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.AvgPool3d(2)(gg.zeros(1, 3, 4, 8, 8)).shape
        (1, 3, 2, 4, 4)
    """

    operation = staticmethod(pooling.avg_pool3d)


class _PowerPool(Module):
    """Base of the power poolings."""

    operation: Callable[..., Array]
    _shown = "norm_type={norm_type}, kernel_size={kernel_size}, stride={stride}, ceil_mode={ceil_mode}"

    def __init__(
        self, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: TensorLike) -> Tensor:
        return self.operation(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(_PowerPool):
    """(sum of x**p)**(1/p) over each window of (N, C, L), p being `norm_type`.

    Args:
        norm_type: the power.
        kernel_size, stride: of the window; the stride is the window's size by default.
        ceil_mode: keep a last window that reaches beyond the end.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.LPPool1d(2, 2)(gg.tensor([[[3.0, 4.0]]]))
        tensor([[[5.]]])
    """

    operation = staticmethod(pooling.lp_pool1d)


class LPPool2d(_PowerPool):
    """(sum of x**p)**(1/p) over each window of (N, C, H, W); arguments as for `LPPool1d`.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.LPPool2d(2, 2)(gg.zeros(1, 3, 8, 8)).shape
        (1, 3, 4, 4)
    """

    operation = staticmethod(pooling.lp_pool2d)


class LPPool3d(_PowerPool):
    """(sum of x**p)**(1/p) over each window of (N, C, D, H, W); arguments as for `LPPool1d`.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.LPPool3d(2, 2)(gg.zeros(1, 3, 4, 8, 8)).shape
        (1, 3, 2, 4, 4)
    """

    operation = staticmethod(pooling.lp_pool3d)


class _FractionalMaxPool(Module):
    """Base of the poolings at random distances."""

    operation: Callable[..., Array]

    def __init__(
        self,
        kernel_size: Ints,
        output_size: Ints | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: TensorLike | None = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if (output_size is None) == (output_ratio is None):
            raise bad_option(name, "output_size", output_size, "either it or output_ratio")
        ratios = output_ratio if isinstance(output_ratio, Sequence) else (output_ratio,)
        if any(ratio is not None and not 0 < ratio < 1 for ratio in ratios):
            raise bad_option(name, "output_ratio", output_ratio, "numbers between 0 and 1")
        self.kernel_size, self.return_indices = kernel_size, return_indices
        self.output_size, self.output_ratio = output_size, output_ratio
        self._random_samples = _random_samples

    def forward(self, input: TensorLike) -> Array:
        return self.operation(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """The largest number of windows of (N, C, H, W) that lie at random distances (Graham 2014).

    Args:
        kernel_size: of the window.
        output_size: sizes of the result; or `output_ratio`, what share of those of the input they are.
        output_ratio: see `output_size`.
        return_indices: return the places of the largest as well.

    Raises:
        ArgumentError: not exactly one of the two sizes is given, or a ratio is not between 0 and 1.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.FractionalMaxPool2d(2, output_ratio=0.75)(gg.zeros(1, 3, 8, 8)).shape
        (1, 3, 6, 6)
    """

    operation = staticmethod(fractional.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPool):
    """The largest number of windows of (N, C, D, H, W) at random distances; arguments as for `FractionalMaxPool2d`.

    Raises:
        ArgumentError: not exactly one of the two sizes is given, or a ratio is not between 0 and 1.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.FractionalMaxPool3d(2, output_size=3)(gg.zeros(1, 3, 4, 8, 8)).shape
        (1, 3, 3, 3, 3)
    """

    operation = staticmethod(fractional.fractional_max_pool3d)


class _MaxUnpool(Module):
    """Base of the max unpoolings."""

    dims = 0
    operation: Callable[..., Array]
    _shown = "kernel_size={kernel_size}, stride={stride}, padding={padding}"

    def __init__(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0) -> None:
        super().__init__()
        self.kernel_size = several(kernel_size, self.dims)
        self.stride = self.kernel_size if stride is None else several(stride, self.dims)
        self.padding = several(padding, self.dims)

    def forward(self, input: TensorLike, indices: TensorLike, output_size: Sequence[int] | None = None) -> Tensor:
        return self.operation(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpool):
    """Zeros with the numbers of (N, C, L) where `MaxPool1d` found them, from the places that it returned.

    Args:
        kernel_size, stride, padding: those of the pooling.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.MaxUnpool1d(2)(gg.tensor([[[3.0, 7.0]]]), gg.tensor([[[1, 2]]]))
        tensor([[[0., 3., 7., 0.]]])
    """

    dims = 1
    operation = staticmethod(pooling.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """Zeros with the numbers of (N, C, H, W) where `MaxPool2d` found them; arguments as for `MaxUnpool1d`.

    Example:
        >>> import glassgrad as gg
        >>> y, places = gg.nn.MaxPool2d(2, return_indices=True)(gg.rand(1, 3, 8, 8))
        >>> gg.nn.MaxUnpool2d(2)(y, places).shape
        (1, 3, 8, 8)
    """

    dims = 2
    operation = staticmethod(pooling.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """Zeros with the numbers of (N, C, D, H, W) where `MaxPool3d` found them; arguments as for `MaxUnpool1d`.

    Example:
        >>> import glassgrad as gg
        >>> y, places = gg.nn.MaxPool3d(2, return_indices=True)(gg.rand(1, 3, 4, 8, 8))
        >>> gg.nn.MaxUnpool3d(2)(y, places).shape
        (1, 3, 4, 8, 8)
    """

    dims = 3
    operation = staticmethod(pooling.max_unpool3d)


class _Adaptive(Module):
    _shown = "output_size={output_size}"

    def __init__(self, output_size: Sizes) -> None:
        super().__init__()
        self.output_size = output_size


class _AdaptiveAvg(_Adaptive):
    operation: Callable[..., Array]

    def forward(self, input: TensorLike) -> Tensor:
        return self.operation(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvg):
    """The means of about equal parts of (N, C, L), as many as `output_size`.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.AdaptiveAvgPool1d(2)(gg.tensor([[[1.0, 3.0, 5.0, 7.0]]]))
        tensor([[[2., 6.]]])
    """

    operation = staticmethod(pooling.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvg):
    """The means of a grid of about equal parts of (N, C, H, W); None in `output_size` keeps an axis.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.AdaptiveAvgPool2d((None, 2))(gg.zeros(1, 3, 8, 8)).shape
        (1, 3, 8, 2)
    """

    operation = staticmethod(pooling.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvg):
    """The means of a grid of about equal parts of (N, C, D, H, W); None in `output_size` keeps an axis.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.AdaptiveAvgPool3d((None, 2, 2))(gg.zeros(1, 3, 4, 8, 8)).shape
        (1, 3, 4, 2, 2)
    """

    operation = staticmethod(pooling.adaptive_avg_pool3d)


class _AdaptiveMax(_Adaptive):
    operation: Callable[..., Array]

    def __init__(self, output_size: Sizes, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: TensorLike) -> Any:
        return self.operation(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMax):
    """The largest numbers of about equal parts of (N, C, L), as many as `output_size`.

    Args:
        output_size: how many parts.
        return_indices: return the positions of the largest numbers as well.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.AdaptiveMaxPool1d(2)(gg.tensor([[[1.0, 3.0, 5.0]]]))
        tensor([[[3., 5.]]])
    """

    operation = staticmethod(pooling.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMax):
    """The largest numbers of a grid of about equal parts of (N, C, H, W); arguments as for `AdaptiveMaxPool1d`.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.AdaptiveMaxPool2d((None, 3))(gg.zeros(1, 3, 8, 8)).shape
        (1, 3, 8, 3)
    """

    operation = staticmethod(pooling.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMax):
    """The largest numbers of a grid of about equal parts of (N, C, D, H, W); arguments as for `AdaptiveMaxPool1d`.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.AdaptiveMaxPool3d(3)(gg.zeros(1, 3, 4, 8, 8)).shape
        (1, 3, 3, 3, 3)
    """

    operation = staticmethod(pooling.adaptive_max_pool3d)


__all__ = ["AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d"]
__all__ += ["AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d"]
__all__ += ["FractionalMaxPool3d", "LPPool1d", "LPPool2d", "LPPool3d"]
__all__ += ["MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d"]
