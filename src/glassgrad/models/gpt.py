"""A character-level GPT with a key-value cache for sampling."""

from __future__ import annotations

from typing import Any

import numpy as np

from glassgrad import nn, public  # noqa: F401 - importing public completes Tensor
from glassgrad.engine.creation import arange, from_numpy
from glassgrad.engine.mode import no_grad
from glassgrad.engine.random import Generator
from glassgrad.engine.tensor import Tensor
from glassgrad.nn import functional as F

Array = Any


class Memory:
    """The key-value cache of a block, with room for `context` places."""

    def __init__(self, context: int) -> None:
        self.length = 0
        self._context = context
        self._rooms: tuple[Array, Array] | None = None

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append keys and values (batch, heads, n, width / heads) of new places; return those of all places."""
        if self._rooms is None:
            batch, heads, _, width = keys.shape
            shape = (batch, heads, self._context, width)
            self._rooms = np.empty(shape, keys.dtype), np.empty(shape, keys.dtype)
        begin, self.length = self.length, self.length + keys.shape[2]
        for room, new in zip(self._rooms, (keys, values), strict=True):
            room[:, :, begin : self.length] = new.numpy()
        seen_keys, seen_values = (from_numpy(room[:, :, : self.length]) for room in self._rooms)
        return seen_keys, seen_values

    def keep(self, rows: Array) -> None:
        """Keep only these rows of the sequences."""
        if self._rooms is not None:
            self._rooms = self._rooms[0][rows], self._rooms[1][rows]


class Block(nn.Module):
    """Attention and an MLP of four times the width, each after a layer norm and added to the residual stream.

    Shapes: (batch, length, width) to the same.
    """

    def __init__(self, width: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def attend(self, x: Tensor, memory: Memory | None = None) -> Tensor:
        """Return causal self-attention over the places of x and, if given, of `memory`."""
        batch, length, width = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        queries, keys, values = parts.permute(2, 0, 3, 1, 4)
        dropout = self.dropout if self.training else 0.0
        if memory is None:
            mixed = F.scaled_dot_product_attention(queries, keys, values, dropout_p=dropout, is_causal=True)
        else:
            keys, values = memory.extend(keys, values)
            seen = np.tri(length, memory.length, memory.length - length, dtype=bool)
            mixed = F.scaled_dot_product_attention(queries, keys, values, attn_mask=from_numpy(seen))
        taken: Tensor = self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return taken

    def forward(self, x: Tensor, memory: Memory | None = None) -> Tensor:
        x = x + self._dropped(self.attend(self.norm1(x), memory))
        changed: Tensor = x + self._dropped(self.down(F.gelu(self.up(self.norm2(x)))))
        return changed

    def _dropped(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training) if self.dropout else x


class GPT(nn.Module):
    """Predicts the next token at every place of a sequence from the tokens up to there.

    Radford et al., "Language Models are Unsupervised Multitask Learners" (2019): learnt positions, layer norms before
    attention and MLP, GELU. The head is not tied to the embedding. With the defaults it has 818,176 parameters.

    Arguments: the number of tokens; the context length; the width of the residual stream; heads (a divisor of the
    width) and layers; the probability of dropout in training.

    Shapes: tokens (batch, length) of int64, length at most the context, to logits (batch, length, tokens).

    Example:
        >>> import glassgrad as gg
        >>> GPT(tokens=5, context=8, width=16, heads=2, layers=1)(gg.zeros(3, 8, dtype=gg.int64)).shape
        (3, 8, 5)
    """

    def __init__(
        self,
        tokens: int = 65,
        context: int = 64,
        width: int = 128,
        heads: int = 4,
        layers: int = 4,
        dropout: float = 0.0,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        self.context = context
        self.dropout = dropout
        self.tokens = nn.Embedding(tokens, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList([Block(width, heads, dropout) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, tokens, bias=False)
        self.reset_parameters(generator)

    def reset_parameters(self, generator: Generator | None = None) -> None:
        """Draw the weights with a standard deviation of 0.02, scaled down by depth where they add to the stream."""
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif "norm" in name:
                nn.init.ones_(parameter)
            else:
                into_stream = name.endswith(("out.weight", "down.weight"))
                spread = 0.02 / (2 * len(self.blocks)) ** 0.5 if into_stream else 0.02
                nn.init.normal_(parameter, std=spread, generator=generator)

    def forward(self, tokens: Tensor, memories: list[Memory] | None = None) -> Tensor:
        begin = memories[0].length if memories else 0
        x = self.tokens(tokens) + self.positions(arange(begin, begin + tokens.shape[1]))
        if self.dropout:
            x = F.dropout(x, self.dropout, self.training)
        for place, block in enumerate(self.blocks):
            x = block(x, memories[place] if memories else None)
        logits: Tensor = self.head(self.norm(x))
        return logits

    def memories(self) -> list[Memory]:
        """Return an empty cache for each block, to pass to `forward` with successive tokens."""
        return [Memory(self.context) for _ in self.blocks]

    def decoder(self) -> GPTDecoder:
        """Return a `glassgrad.data.generate.Decoder` of this model, which should be in evaluation mode."""
        return GPTDecoder(self)


def first_seen(length: int, context: int) -> int:
    """Return the first place of a text of that length that is still in the context.

    Positions count from this first place, so the cache becomes invalid whenever it moves. It therefore moves by half a
    context at once: on average three quarters of the context are used, and rereading costs one pass per context / 2
    tokens.

    Example:
        >>> [first_seen(length, 8) for length in (1, 8, 9, 12, 13)]
        [0, 0, 4, 4, 8]
    """
    half = max(context // 2, 1)
    return max(-(-(length - context) // half) * half, 0)


class GPTDecoder:
    """Reads each token once, with cached keys and values, until the context is full."""

    def __init__(self, model: GPT) -> None:
        self._model = model
        self._text: Array = None
        self._first = 0
        self._memories: list[Memory] = []

    def read(self, tokens: Array) -> Array:
        """Append tokens (sequences, n) and return the logits (sequences, tokens) of the token after them."""
        known = 0 if self._text is None else self._text.shape[1]
        self._text = tokens if self._text is None else np.concatenate([self._text, tokens], axis=1)
        first = first_seen(self._text.shape[1], self._model.context)
        if not self._memories or first != self._first:
            self._memories, self._first, known = self._model.memories(), first, first
        with no_grad():
            logits: Array = self._model(from_numpy(np.ascontiguousarray(self._text[:, known:])), self._memories).numpy()
        return logits[:, -1]

    def keep(self, rows: Array) -> None:
        """Keep only these rows of the sequences."""
        self._text = self._text[rows]
        for memory in self._memories:
            memory.keep(rows)
