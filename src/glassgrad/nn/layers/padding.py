"""Borders around signals and images: of zeros, of a number, mirrored, repeated, or from the other side."""

from __future__ import annotations

from glassgrad.engine.tensor import Tensor, TensorLike
from glassgrad.nn.arguments import Ints
from glassgrad.nn.module import Module
from glassgrad.ops.arrange import pad


class _Padding(Module):
    """Base of the paddings: `padding` is one number, or two for each dimension, the last dimension first."""

    dims = 0
    mode = "constant"
    _shown = "{padding}"

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self.dims) if isinstance(padding, int) else tuple(padding)

    def forward(self, input: TensorLike) -> Tensor:
        return pad(input, self.padding, mode=self.mode)


class _Constant(_Padding):
    _shown = "padding={padding}, value={value}"

    def __init__(self, padding: Ints, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: TensorLike) -> Tensor:
        return pad(input, self.padding, value=self.value)


class ConstantPad1d(_Constant):
    """A border of `value` around (..., L).

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.ConstantPad1d((2, 1), 9.0)(gg.tensor([[1.0, 2.0, 3.0]]))
        tensor([[9., 9., 1., 2., 3., 9.]])
    """

    dims = 1


class ConstantPad2d(_Constant):
    """A border of `value` around (..., H, W).

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.ConstantPad2d((1, 1, 2, 2), 9.0)(gg.zeros(1, 3, 4, 4)).shape
        (1, 3, 8, 6)
    """

    dims = 2


class ZeroPad1d(_Padding):
    """A border of zeros around (..., L).

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.ZeroPad1d(1)(gg.tensor([[1.0, 2.0, 3.0]]))
        tensor([[0., 1., 2., 3., 0.]])
    """

    dims = 1


class ZeroPad2d(_Padding):
    """A border of zeros around (..., H, W).

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.ZeroPad2d(1)(gg.zeros(1, 3, 4, 4)).shape
        (1, 3, 6, 6)
    """

    dims = 2


class ReflectionPad1d(_Padding):
    """A border that mirrors (..., L) without repeating its ends.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.ReflectionPad1d(2)(gg.tensor([[1.0, 2.0, 3.0]]))
        tensor([[3., 2., 1., 2., 3., 2., 1.]])
    """

    dims = 1
    mode = "reflect"


class ReflectionPad2d(_Padding):
    """A border that mirrors (..., H, W) without repeating its edges.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.ReflectionPad2d(1)(gg.zeros(1, 3, 4, 4)).shape
        (1, 3, 6, 6)
    """

    dims = 2
    mode = "reflect"


class ReplicationPad1d(_Padding):
    """A border that repeats the ends of (..., L).

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.ReplicationPad1d(2)(gg.tensor([[1.0, 2.0, 3.0]]))
        tensor([[1., 1., 1., 2., 3., 3., 3.]])
    """

    dims = 1
    mode = "replicate"


class ReplicationPad2d(_Padding):
    """A border that repeats the edges of (..., H, W).

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.ReplicationPad2d(1)(gg.zeros(1, 3, 4, 4)).shape
        (1, 3, 6, 6)
    """

    dims = 2
    mode = "replicate"


class CircularPad1d(_Padding):
    """A border that continues (..., L) from its other end.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.CircularPad1d(1)(gg.tensor([[1.0, 2.0, 3.0]]))
        tensor([[3., 1., 2., 3., 1.]])
    """

    dims = 1
    mode = "circular"


class CircularPad2d(_Padding):
    """A border that continues (..., H, W) from the other side.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.CircularPad2d(1)(gg.zeros(1, 3, 4, 4)).shape
        (1, 3, 6, 6)
    """

    dims = 2
    mode = "circular"


class ConstantPad3d(_Constant):
    """A border of `value` around (..., D, H, W).

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.ConstantPad3d(1, 9.0)(gg.zeros(1, 3, 4, 4, 4)).shape
        (1, 3, 6, 6, 6)
    """

    dims = 3


class ZeroPad3d(_Padding):
    """A border of zeros around (..., D, H, W).

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.ZeroPad3d((1, 1, 2, 2, 0, 0))(gg.zeros(1, 3, 4, 4, 4)).shape
        (1, 3, 4, 8, 6)
    """

    dims = 3


class CircularPad3d(_Padding):
    """A border that continues (..., D, H, W) from the other side.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.CircularPad3d(1)(gg.zeros(1, 3, 4, 4, 4)).shape
        (1, 3, 6, 6, 6)
    """

    dims = 3
    mode = "circular"


class ReflectionPad3d(_Padding):
    """A border that mirrors (..., D, H, W) without repeating its faces.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.ReflectionPad3d(1)(gg.zeros(1, 3, 4, 4, 4)).shape
        (1, 3, 6, 6, 6)
    """

    dims = 3
    mode = "reflect"


class ReplicationPad3d(_Padding):
    """A border that repeats the faces of (..., D, H, W).

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.ReplicationPad3d(1)(gg.zeros(1, 3, 4, 4, 4)).shape
        (1, 3, 6, 6, 6)
    """

    dims = 3
    mode = "replicate"


__all__ = ["CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d"]
__all__ += ["ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d"]
__all__ += ["ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d"]
