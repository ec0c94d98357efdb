"""The interface of the plans: what a way to do a convolution says of itself, and the code that it writes."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from glassgrad.compile.llvm.convolutions.windows import Helper, Shape
from glassgrad.compile.llvm.module.ir import BITS, Module


class ConvPlan:
    """One way to do a convolution, or one of its transposes, of a shape that it applies to.

    Args:
        shape: the sizes, and the role: the result or which gradient.
    """

    name: ClassVar[str]

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    @staticmethod
    @abstractmethod
    def applies(shape: Shape) -> bool:
        """Tell whether the plan is written for this shape and role, and pays there."""

    @property
    def images(self) -> int:
        """Images of a unit of work, where units are images."""
        return 1

    @property
    def units(self) -> int:
        """Units of work: parts of the images for the gradient of the weight, images otherwise."""
        return self.shape.parts if self.shape.role == "weight" else self.shape.images // self.images

    @property
    def time(self) -> float:
        """Estimated nanoseconds of one thread."""
        return 200.0 + self.shape.flops / 80.0

    @property
    @abstractmethod
    def scratch(self) -> int:
        """Bytes of scratch memory of a share."""

    @abstractmethod
    def text(self, module: Module, helper: Helper) -> str:
        """Return the function NAME (first, second, result, scratch, lo, hi) that does the units [lo, hi).

        Args:
            module: the module it belongs to.
            helper: adds a function that a text calls NAME to the module and returns its name.
        """

    def bytes_of(self, elements: int) -> int:
        """Return the bytes of so many elements and of what vectors write beyond them."""
        return (elements + 64) * BITS[self.shape.kind] // 8
