"""Resizing, and moving numbers between channels, windows and pixels."""

from __future__ import annotations

from glassgrad.engine.tensor import Tensor, TensorLike
from glassgrad.nn.arguments import Ints
from glassgrad.nn.functional.conv import fold, unfold
from glassgrad.nn.module import Module
from glassgrad.ops.resize import interpolate, pixel_shuffle, pixel_unshuffle

Factor = float | tuple[float, ...] | list[float] | None


class _Upsample(Module):
    """Base of the resizing layers."""

    def __init__(
        self,
        size: Ints | None = None,
        scale_factor: Factor = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size = size
        self.scale_factor = (
            tuple(map(float, scale_factor))
            if isinstance(scale_factor, tuple | list)
            else float(scale_factor)
            if scale_factor
            else None
        )
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: TensorLike) -> Tensor:
        return interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        how = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{how}, mode={self.mode!r}"


class Upsample(_Upsample):
    """Resizes (N, C, L) or (N, C, H, W) to `size` or by `scale_factor`; `mode` as in `F.interpolate`.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.Upsample(scale_factor=2)(gg.tensor([[[1.0, 3.0]]]))
        tensor([[[1., 1., 3., 3.]]])
    """


class UpsamplingNearest2d(_Upsample):
    """Resizes (N, C, H, W) by repeating pixels.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.UpsamplingNearest2d(scale_factor=2)(gg.zeros(1, 3, 4, 4)).shape
        (1, 3, 8, 8)
    """

    def __init__(self, size: Ints | None = None, scale_factor: Factor = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(_Upsample):
    """Resizes (N, C, H, W) by linear interpolation between the corners.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.UpsamplingBilinear2d(scale_factor=2)(gg.zeros(1, 3, 4, 4)).shape
        (1, 3, 8, 8)
    """

    def __init__(self, size: Ints | None = None, scale_factor: Factor = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class PixelShuffle(Module):
    """(..., C r r, H, W) to (..., C, H r, W r) (Shi et al. 2016).

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.PixelShuffle(2)(gg.zeros(1, 12, 4, 4)).shape
        (1, 3, 8, 8)
    """

    _shown = "upscale_factor={upscale_factor}"

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: TensorLike) -> Tensor:
        return pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Module):
    """(..., C, H r, W r) to (..., C r r, H, W): the inverse of `PixelShuffle`.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.PixelUnshuffle(2)(gg.zeros(1, 3, 8, 8)).shape
        (1, 12, 4, 4)
    """

    _shown = "downscale_factor={downscale_factor}"

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: TensorLike) -> Tensor:
        return pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(Module):
    """Interleaves the channels of (N, C, ...) from `groups` groups (Zhang et al. 2018).

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.ChannelShuffle(2)(gg.arange(4.0).reshape(1, 4, 1, 1)).flatten()
        tensor([0., 2., 1., 3.])
    """

    _shown = "groups={groups}"

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        batch, channels, *rest = input.shape
        split = input.reshape(batch, self.groups, channels // self.groups, *rest)
        return split.transpose(1, 2).reshape(batch, channels, *rest)


class Unfold(Module):
    """Every window of (N, C, H, W) as a column: (N, C kh kw, positions).

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.Unfold(kernel_size=2, stride=2)(gg.zeros(1, 3, 4, 4)).shape
        (1, 12, 4)
    """

    _shown = "kernel_size={kernel_size}, dilation={dilation}, padding={padding}, stride={stride}"

    def __init__(self, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: TensorLike) -> Tensor:
        return unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(Module):
    """Adds columns (N, C kh kw, positions) at the windows of an image of `output_size`.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.Fold(output_size=(4, 4), kernel_size=2, stride=2)(gg.zeros(1, 12, 4)).shape
        (1, 3, 4, 4)
    """

    _shown = (
        "output_size={output_size}, kernel_size={kernel_size}, dilation={dilation}, padding={padding}, stride={stride}"
    )

    def __init__(
        self, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: TensorLike) -> Tensor:
        return fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


__all__ = ["ChannelShuffle", "Fold", "PixelShuffle", "PixelUnshuffle", "Unfold", "Upsample", "UpsamplingBilinear2d"]
__all__ += ["UpsamplingNearest2d"]
