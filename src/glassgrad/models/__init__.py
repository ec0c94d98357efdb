"""Models that `glassgrad train` offers, written as anyone would write them for PyTorch."""

from __future__ import annotations

from .bigram import Bigram
from .char_rnn import CharRNN
from .generate import generate
from .gpt import GPT
from .names_mlp import NamesMLP

__all__ = ["GPT", "Bigram", "CharRNN", "NamesMLP", "generate"]
