"""The models of `glassgrad train`, written in PyTorch's style.

Tokens go in, logits come out. `bigram.py`, `names_mlp.py`, `char_rnn.py` and `gpt.py` each hold one; `generate.py`
samples from any of them, `generation.py` and `decoding.py` are `GPT.generate` and its compiled loop.
"""

from __future__ import annotations

from glassgrad.errors.missing import lister
from glassgrad.models.bigram import Bigram
from glassgrad.models.char_rnn import CharRNN
from glassgrad.models.generate import generate
from glassgrad.models.gpt import GPT
from glassgrad.models.names_mlp import NamesMLP

__all__ = ["GPT", "Bigram", "CharRNN", "NamesMLP", "generate"]
__dir__ = lister(__name__)
