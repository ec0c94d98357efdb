"""The plan of minimal filtering: for which convolutions the saved products outweigh the transforms.

`winograd_plan.py` has the sizes, `winograd.py` and `winograd_weight.py` the code.
"""

from __future__ import annotations

import math
from functools import cached_property

from glassgrad.compile.llvm.convolutions.plan import ConvPlan
from glassgrad.compile.llvm.convolutions.windows import WIDEST, Helper, Shape
from glassgrad.compile.llvm.convolutions.winograd import WinogradWriter
from glassgrad.compile.llvm.convolutions.winograd_plan import Plan, WeightPlan, plan_of, weight_plan_of
from glassgrad.compile.llvm.convolutions.winograd_weight import WinogradWeightWriter
from glassgrad.compile.llvm.module.ir import Module

# From this many channels and outputs, and tiles, the transforms cost less than the saved products; the most transformed
# weights that fit in scratch memory; and the supported kernels and strides.
FILTERED_CHANNELS, FILTERED_TILES, _MOST_FILTERED = 12, 48, 1 << 18
_FILTERED = {((3, 3), (1, 1)), ((4, 4), (2, 2))}


class MinimalFiltering(ConvPlan):
    """Tiles of 2x2 outputs, which take fewer products."""

    name = "filtered"

    @staticmethod
    def applies(shape: Shape) -> bool:
        if shape.groups > 1 or shape.dilation != (1, 1) or (shape.kernel, shape.stride) not in _FILTERED:
            return False
        # A weight, or its gradient, is transformed once for all tiles of a share.
        tiles = shape.images // shape.parts * math.prod(-(-extent // 2) for extent in shape.out)
        borders = max(map(max, shape.padding)) <= 2
        few = shape.channels * shape.outputs <= _MOST_FILTERED and shape.size[1] <= WIDEST * shape.lanes
        return borders and few and min(shape.channels, shape.outputs) >= FILTERED_CHANNELS and tiles >= FILTERED_TILES

    @cached_property
    def sums(self) -> Plan:
        """The plan for results or gradients of the input."""
        return plan_of(self.shape, turned=self.shape.role == "input")

    @cached_property
    def weights(self) -> WeightPlan:
        """The plan for the gradient of the weight."""
        return weight_plan_of(self.shape, self.shape.parts)

    @property
    def images(self) -> int:
        return 1 if self.shape.role == "weight" else self.sums.blocks.images

    @property
    def scratch(self) -> int:
        return self.weights.scratch if self.shape.role == "weight" else self.sums.scratch

    def text(self, module: Module, helper: Helper) -> str:
        if self.shape.role == "weight":
            writer = WinogradWeightWriter(module, self.shape, helper)
            return writer.weight_text("NAME", self.weights, self.shape.parts)
        return WinogradWriter(module, self.shape, helper).sums_text("NAME", self.sums)
