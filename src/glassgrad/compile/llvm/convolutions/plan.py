"""The interface of the plans: facts about one algorithm for a convolution, and its code."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from glassgrad.compile.llvm.convolutions.windows import Helper, Shape
from glassgrad.compile.llvm.module.ir import BITS, Module


class ConvPlan:
    """One algorithm for a convolution or one of its transposes, for a shape that it applies to.

    Args:
        shape: the sizes and the role: the result, or which gradient.
    """

    name: ClassVar[str]

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    @staticmethod
    @abstractmethod
    def applies(shape: Shape) -> bool:
        """Tell whether the plan supports this shape and role, and is worthwhile."""

    @property
    def images(self) -> int:
        """Images per unit of work, if units are images."""
        return 1

    @property
    def units(self) -> int:
        """Units of work: parts of the images for the gradient of the weight, images otherwise."""
        return self.shape.parts if self.shape.role == "weight" else self.shape.images // self.images

    @property
    def time(self) -> float:
        """Estimated time of one thread in nanoseconds."""
        return 200.0 + self.shape.flops / 80.0

    @property
    @abstractmethod
    def scratch(self) -> int:
        """Bytes of scratch memory of a share."""

    @abstractmethod
    def text(self, module: Module, helper: Helper) -> str:
        """Return the function NAME (first, second, result, scratch, lo, hi) that computes the units [lo, hi).

        Args:
            module: the module it belongs to.
            helper: adds a function that a text calls NAME to the module and returns its name.
        """

    def bytes_of(self, elements: int) -> int:
        """Return the bytes of `elements` and of the excess that vectors write beyond them."""
        return (elements + 64) * BITS[self.shape.kind] // 8
