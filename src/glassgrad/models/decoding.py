"""The generating loop: one compiled step reads a token, with cached keys and values, and draws the next one.

Everything that the step reads and writes, including the drawn tokens, is state in memory of fixed shape, so that native
code can run it many times without returning to Python.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from glassgrad.data.generate import Sampling
from glassgrad.engine.mode import no_grad
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.tensors.creation import arange, from_numpy, full, zeros
from glassgrad.models.places import first_seen
from glassgrad.nn.modes import evaluating
from glassgrad.ops import elementwise as ew

if TYPE_CHECKING:
    from glassgrad.compile.api import Compiled
    from glassgrad.models.gpt import GPT

Array = np.ndarray
Chances = Callable[[int], Array]

ROOM = 64
"""The largest number of tokens drawn before control returns to Python."""

_SECONDS = 0.02
"""The longest time of one call of native code: an interrupt and the next piece of text wait for its end."""

_WORTH_COMPILING = 32
"""The number of tokens from which compiling pays off."""

_REREADINGS = 8
"""The number of moves of the context from which compiling the second reading of its half pays off."""

_SMALL = 8 << 20
"""Bytes of weights below which starting a second thread costs more time than it saves."""

GREEDY, DRAWN, RANKED, SHOWN = "greedy", "drawn", "ranked", "shown"


class Loop:
    """Memory for generating several rows with a model, and the compiled programs that use it.

    Public attributes are the state of the step: the token to read and its position, the number of drawn tokens, the
    tokens themselves, and the random numbers and options that decide on them. Up to `most_compared` tokens, native code
    ranks each by comparing it with all others; beyond that NumPy sorts them.
    """

    most_compared = 1024

    def __init__(self, model: GPT, rows: int) -> None:
        from glassgrad.compile.api import compile  # imported here because training a model does not need it

        self.model, self.rows = model, rows
        weight = model.tokens.weight
        heads, context, width = model.blocks[0].heads, model.context, weight.shape[1]
        self.token, self.place, self.at = (zeros(*shape, dtype=np.int64) for shape in ((rows, 1), (1,), (1,)))
        self.memories = model.fixed_memories((rows, heads, context, width // heads), self.place)
        self.drawn = zeros(rows, ROOM, dtype=np.int64)
        self.chances = zeros(rows, ROOM, dtype=np.float64)
        self.temperature, self.top_p = full((), 1.0, dtype=np.float64), full((), 1.0, dtype=np.float64)
        self.top_k = full((), weight.shape[0], dtype=np.int64)
        self.order = arange(weight.shape[0])
        self.logits = zeros(rows, weight.shape[0], dtype=weight.dtype)
        size = sum(parameter.nbytes for parameter in model.parameters())
        threads = 1 if size < _SMALL else None
        self.size = 1  # tokens in the next piece; it grows while pieces are quick
        self.compiled_step: Compiled[..., None] = compile(self.step, threads=threads)
        self.compiled_reading: Compiled[..., None] = compile(self.reading, threads=threads)

    # --- compiled parts --------------------------------------------------------------------------------

    def step(self, how: str) -> None:
        """Read the current token and replace it by the next drawn one, or leave the choice to NumPy."""
        with no_grad():
            logits = self.model(self.token, self.memories)[:, -1]
            self.place.add_(1)
            if how == SHOWN:
                self.logits.copy_(logits)
                return
            found = logits.argmax(1) if how == GREEDY else self.choice(logits.double(), ranked=how == RANKED)
            self.drawn.index_copy_(1, self.at, found.unsqueeze(1))
            self.token.copy_(found.unsqueeze(1))
            self.at.add_(1)

    def choice(self, logits: Tensor, *, ranked: bool) -> Tensor:
        """`Sampling.choose` in operations that native code knows; equal logits rank in their order."""
        weights = ((logits - logits.amax(1, keepdim=True)) / self.temperature).exp()
        if ranked:
            mine, other = weights.unsqueeze(2), weights.unsqueeze(1)
            likelier = (other > mine) | ((other == mine) & (self.order < self.order.unsqueeze(1)))
            before = ew.where(likelier, other, 0.0).sum(2)
            kept = (before < self.top_p * weights.sum(1, keepdim=True)) & (likelier.sum(2) < self.top_k)
            weights = ew.where(kept, weights, 0.0)
        weights = weights.cumsum(1)
        chance = self.chances.index_select(1, self.at)
        return (weights <= chance * weights[:, -1:]).sum(1)

    def reading(self, tokens: Tensor) -> None:
        """Read the first tokens of a text."""
        with no_grad():
            self.model.stream_of(tokens, self.memories)

    # --- Python parts ----------------------------------------------------------------------------------

    def begin(self, text: Array, *, compiled: bool) -> None:
        """Take tokens (rows, n) as the whole text so far."""
        self.place.numpy()[...] = 0
        if text.shape[1] > 1:
            before = from_numpy(np.ascontiguousarray(text[:, :-1]))
            (self.compiled_reading if compiled else self.reading)(before)
        self.token.numpy()[...] = text[:, -1:]
        self.place.numpy()[...] = text.shape[1] - 1

    def turn(self, count: int, sampling: Sampling, chances: Chances, *, compiled: bool) -> Array:
        """Draw `count` tokens, for which there is room; return them, (rows, count)."""
        if sampling.temperature == 0:
            how = GREEDY
        else:
            self.chances.numpy()[:, :count] = chances(count)
            how = RANKED if sampling.top_k or sampling.top_p < 1 else DRAWN
        if how == RANKED and len(self.order) > self.most_compared:
            return self._sorted(count, sampling, compiled=compiled)
        self.temperature.numpy()[...] = sampling.temperature
        self.top_k.numpy()[...] = sampling.top_k or len(self.order)
        self.top_p.numpy()[...] = sampling.top_p if sampling.top_p < 1 else np.inf
        self.at.numpy()[...] = 0
        self._run(how, count, compiled=compiled)
        return self.drawn.numpy()[:, :count].copy()

    def _run(self, how: str, count: int, *, compiled: bool) -> None:
        step = self.compiled_step if compiled else self.step
        step(how)
        native = self.compiled_step.repeatable() if compiled else None
        if native is None:
            for _ in range(count - 1):
                step(how)
        elif count > 1:
            with native.lock:
                native.again(count - 1)

    def _sorted(self, count: int, sampling: Sampling, *, compiled: bool) -> Array:
        """Draw with NumPy's sorting, because there are too many tokens to compare all pairs."""
        step, drawn = self.compiled_step if compiled else self.step, np.empty((self.rows, count), np.int64)
        for at in range(count):
            step(SHOWN)
            drawn[:, at] = sampling.choose(self.logits.numpy().astype(np.float64), self.chances.numpy()[:, at])
            self.token.numpy()[...] = drawn[:, at : at + 1]
        return drawn


_LOCK = threading.Lock()
"""Held while a thread takes or returns a loop: several threads may generate with one model."""


class Loops:
    """The idle loops of a model. Copies of the model begin without any.

    The slot hides them from a compiled function that reads the model.
    """

    __slots__ = ("_free",)

    def __init__(self) -> None:
        self._free: list[Loop] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> Loops:
        return Loops()

    def __reduce__(self) -> tuple[Any, ...]:
        return Loops, ()

    def take(self, model: GPT, rows: int) -> Loop:
        """Return a loop for that many rows that no other thread uses."""
        with _LOCK:
            for loop in self._free:
                if loop.rows == rows and loop.logits.dtype == model.tokens.weight.dtype and loop.model is model:
                    self._free.remove(loop)
                    return loop
        return Loop(model, rows)

    def give_back(self, loop: Loop) -> None:
        """Keep a loop for reuse, and drop all but a few of the least recently used ones."""
        with _LOCK:
            self._free = [loop, *self._free[:3]]


def draw(model: GPT, text: Array, most: int, sampling: Sampling, chances: Chances) -> Iterator[Array]:
    """Yield pieces (rows, n) of the continuation of tokens (rows, length), `most` tokens in all.

    `chances(n)` returns the numbers (rows, n) in [0, 1) that decide on the next n tokens. Once a text is longer than
    the context, the model reads it again from `first_seen` on. Both the compiled code and the tokens depend only on the
    arguments, to the last bit of the logits.
    """
    context, rows, length = model.context, len(text), text.shape[1]
    compiled, end = most >= _WORTH_COMPILING, length + most
    moves = (end - context) // max(context // 2, 1)
    loop, known, modules = model.loops.take(model, rows), None, list(model.modules())
    try:
        while length < end:
            first = first_seen(length, context)
            began = time.perf_counter()
            count = min(loop.size, end - length, context - (length - first) + 1)
            training = any(module.training for module in modules)
            with evaluating(model) if training else contextlib.nullcontext():
                if first != known:
                    loop.begin(text[:, first - length :], compiled=known is not None and moves >= _REREADINGS)
                    known = first
                piece = loop.turn(count, sampling, chances, compiled=compiled)
            if count == loop.size and time.perf_counter() - began < _SECONDS / 2:
                loop.size = min(2 * loop.size, ROOM)
            text = np.concatenate([text, piece], axis=1)[:, -context:]
            length += count
            yield piece
    finally:
        model.loops.give_back(loop)
