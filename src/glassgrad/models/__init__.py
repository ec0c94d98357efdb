"""Models that `glassgrad train` offers, written as anyone would write them for PyTorch."""

from __future__ import annotations

from .bigram import Bigram
from .generate import generate
from .names_mlp import NamesMLP

__all__ = ["Bigram", "NamesMLP", "generate"]
