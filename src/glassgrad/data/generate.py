"""Sampling sequences from a next-token model, given as an object that reads tokens and returns logits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

Array = Any  # np.ndarray

_TOGETHER = 4096


@dataclass(frozen=True)
class Sampling:
    """How the next token is drawn from softmax(logits / temperature).

    Arguments: `temperature`, where 0 always takes the most likely token; `top_k`, draw only from this many of the most
    likely tokens (0 for all; on ties the first ones); `top_p`, draw only from the most likely tokens whose joint
    probability reaches this share (Holtzman et al., "The Curious Case of Neural Text Degeneration", 2020).

    Example:
        >>> logits = np.log([[0.5, 0.3, 0.2]])
        >>> [int(Sampling(top_k=k).choose(logits, np.array([0.99]))[0]) for k in (1, 2, 3)]
        [0, 1, 2]
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0

    def choose(self, logits: Array, chances: Array) -> Array:
        """Return a token for each row of `logits` (n, tokens), given a uniform random number in [0, 1) per row.

        It is the first token whose cumulative probability exceeds the number.
        """
        if self.temperature == 0:
            return logits.argmax(axis=1)
        weights = np.exp((logits - logits.max(axis=1, keepdims=True)) / self.temperature)
        if self.top_k or self.top_p < 1:
            weights = np.where(self._kept(weights), weights, 0.0)
        weights = weights.cumsum(axis=1)
        return (weights <= chances[:, None] * weights[:, -1:]).sum(axis=1)

    def _kept(self, weights: Array) -> Array:
        order = np.argsort(-weights, axis=1, kind="stable")
        ranked = np.take_along_axis(weights, order, axis=1)
        # A token stays if those before it have not reached the share yet, so the most likely one always stays.
        before = ranked.cumsum(axis=1) - ranked
        kept = before < self.top_p * ranked.sum(axis=1, keepdims=True)
        if self.top_k:
            kept[:, self.top_k :] = False
        found = np.empty_like(kept)
        np.put_along_axis(found, order, kept, axis=1)
        return found


AS_IT_IS = Sampling()
"""Sampling from the model's unchanged probabilities."""


class Decoder(Protocol):
    """Several sequences of equal length, and a model's predictions of the next token of each."""

    def read(self, tokens: Array) -> Array:
        """Append tokens (sequences, n) and return the logits (sequences, tokens) of the token after them."""

    def keep(self, rows: Array) -> None:
        """Keep only these sequences."""


class WindowDecoder:
    """A decoder for a model with a context window of fixed length.

    `logits` maps tokens (sequences, context) to logits (sequences, tokens). The window initially holds `end`, the
    token that also marks the beginning of a sequence.
    """

    def __init__(self, logits: Callable[[Array], Array], context: int, end: int = 0) -> None:
        self._logits, self._context, self._end = logits, context, end
        self._window: Array = None

    def read(self, tokens: Array) -> Array:
        """Append tokens (sequences, n) and return the logits of the token after them."""
        if self._window is None:
            self._window = np.full((len(tokens), self._context), self._end, dtype=np.int64)
        self._window = np.concatenate([self._window, tokens], axis=1)[:, -self._context :]
        return self._logits(self._window)

    def keep(self, rows: Array) -> None:
        """Keep only these sequences."""
        self._window = self._window[rows]


def generate_tokens(
    decoder: Callable[[], Decoder],
    start: Sequence[int],
    count: int,
    seed: int | Sequence[int],
    longest: int,
    end: int | None = 0,
    sampling: Sampling = AS_IT_IS,
) -> Iterator[list[int]]:
    """Yield `count` token sequences, drawn one token at a time until `end` or until `longest` tokens are drawn.

    Every sequence continues the tokens `start`, at least one. Neither they nor `end` are returned; `end` may be None if
    there is no end token. `decoder` makes a new decoder. Sequence k depends on the seed and k, not on `count`.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    for begin in range(0, count, _TOGETHER):
        size = min(_TOGETHER, count - begin)
        # One row of random numbers per sequence: the first sequences are the same for any `count`.
        chances = generator.random((size, longest))
        yield from _draw(decoder(), np.tile(np.array(start, dtype=np.int64), (size, 1)), chances, end, sampling)


def _draw(decoder: Decoder, read: Array, chances: Array, end: int | None, sampling: Sampling) -> list[list[int]]:
    drawn: list[list[int]] = [[] for _ in chances]
    alive = np.arange(len(chances))
    for column in chances.T:
        tokens = sampling.choose(np.asarray(decoder.read(read), dtype=np.float64), column[alive])
        going_on = np.flatnonzero(tokens != end) if end is not None else np.arange(len(tokens))
        if len(going_on) < len(alive):
            alive, tokens = alive[going_on], tokens[going_on]
            if not alive.size:
                break
            decoder.keep(going_on)
        for row, token in zip(alive.tolist(), tokens.tolist(), strict=True):
            drawn[row].append(token)
        read = tokens[:, None]
    return drawn
