"""Drawing sequences from a model of the next token."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import public  # noqa: F401 - importing public completes Tensor
from ..creation import tensor
from ..data.generate import generate_tokens
from ..tape import no_grad

Array = Any


def generate(model: Any, context: int, count: int, seed: int, longest: int, end: int = 0) -> Iterator[list[int]]:
    """Yield `count` token sequences, drawn one token at a time until `end` comes or `longest` tokens are there.

    `model` maps tokens (batch, context) to logits (batch, tokens); it is put into evaluation mode. The context begins
    filled with `end`, which is how a sequence begins. Sequence k depends on the seed and k, not on `count`.
    """
    model.eval()

    def logits(tokens: Array) -> Array:
        with no_grad():
            return model(tensor(tokens)).numpy()

    yield from generate_tokens(logits, context, count, seed, longest, end)
