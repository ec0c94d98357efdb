"""Drawing sequences from a model of the next token, given as a function on arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = Any

_TOGETHER = 4096


def generate_tokens(
    logits: Callable[[Array], Array], context: int, count: int, seed: int, longest: int, end: int = 0
) -> Iterator[list[int]]:
    """Yield `count` token sequences, drawn one token at a time until `end` comes or `longest` tokens are there.

    `logits` maps tokens (batch, context) to logits (batch, tokens). The context begins filled with `end`, which is how
    a sequence begins. Sequence k depends on the seed and k, not on `count`.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    for begin in range(0, count, _TOGETHER):
        size = min(_TOGETHER, count - begin)
        # A row of chances per sequence, drawn row after row: a longer request begins with a shorter one's sequences.
        chances = generator.random((size, longest))
        yield from _draw(logits, np.full((size, context), end, dtype=np.int64), chances, end)


def _draw(logits: Callable[[Array], Array], window: Array, chances: Array, end: int) -> list[list[int]]:
    drawn: list[list[int]] = [[] for _ in chances]
    alive = np.arange(len(chances))
    for column in chances.T:
        tokens = _choose(np.asarray(logits(window[alive]), dtype=np.float64), column[alive])
        window[alive] = np.column_stack([window[alive, 1:], tokens])
        alive, tokens = alive[tokens != end], tokens[tokens != end]
        for row, token in zip(alive.tolist(), tokens.tolist(), strict=True):
            drawn[row].append(token)
        if not alive.size:
            break
    return drawn


def _choose(logits: Array, chances: Array) -> Array:
    """Pick from softmax(logits), one per row: the first token whose cumulative probability exceeds the row's chance."""
    weights = np.exp(logits - logits.max(axis=1, keepdims=True)).cumsum(axis=1)
    return (weights <= chances[:, None] * weights[:, -1:]).sum(axis=1)
