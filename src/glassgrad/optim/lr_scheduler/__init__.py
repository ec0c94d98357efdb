"""Schedules of the learning rate with PyTorch's names, and one that warms up and then follows a cosine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glassgrad.errors.missing import getter
from glassgrad.optim.lr_scheduler.base import LambdaLR, LRScheduler, MultiplicativeLR
from glassgrad.optim.lr_scheduler.composed import ChainedScheduler, SequentialLR
from glassgrad.optim.lr_scheduler.cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts, WarmupCosineLR
from glassgrad.optim.lr_scheduler.cyclic import CyclicLR, OneCycleLR
from glassgrad.optim.lr_scheduler.decay import (
    ConstantLR,
    ExponentialLR,
    LinearLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from glassgrad.optim.lr_scheduler.plateau import ReduceLROnPlateau

_LRScheduler = LRScheduler

if not TYPE_CHECKING:
    __getattr__ = getter(__name__)

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR", "WarmupCosineLR",
]  # fmt: skip  # a table
