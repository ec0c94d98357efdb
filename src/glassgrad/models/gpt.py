"""A character-level GPT with a key-value cache for sampling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from glassgrad import nn
from glassgrad.engine.mode import no_grad
from glassgrad.engine.random import Generator
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.tensors.creation import arange, from_numpy, zeros
from glassgrad.models import generation
from glassgrad.models.decoding import Loops
from glassgrad.models.places import first_seen
from glassgrad.nn import functional as F

Array = Any  # np.ndarray


class Memory:
    """The key-value cache of a block, with room for `context` places."""

    def __init__(self, context: int) -> None:
        self.length = 0
        self._context = context
        self._rooms: tuple[Array, Array] | None = None

    def places(self, count: int) -> Tensor:
        """Return the next `count` places."""
        return arange(self.length, self.length + count)

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Append keys and values (batch, heads, n, width / heads) of new places.

        Returns those of all places, and booleans (n, places) that say which of them a new one sees.
        """
        if self._rooms is None:
            batch, heads, _, width = keys.shape
            shape = (batch, heads, self._context, width)
            self._rooms = np.empty(shape, keys.dtype), np.empty(shape, keys.dtype)
        begin, self.length = self.length, self.length + keys.shape[2]
        for room, new in zip(self._rooms, (keys, values), strict=True):
            room[:, :, begin : self.length] = new.numpy()
        seen_keys, seen_values = (from_numpy(room[:, :, : self.length]) for room in self._rooms)
        seen = np.tri(keys.shape[2], self.length, self.length - keys.shape[2], dtype=bool)
        return seen_keys, seen_values, from_numpy(seen)

    def keep(self, rows: Array) -> None:
        """Keep only these rows of the sequences."""
        if self._rooms is not None:
            self._rooms = self._rooms[0][rows], self._rooms[1][rows]


class FixedMemory:
    """The key-value cache of a block in tensors that keep their shape, so that a compiled step can write to them.

    Several tokens at once must be the first ones of a text. A single token is at `place`, a tensor of one number, and
    sees all places up to it.
    """

    def __init__(self, shape: tuple[int, int, int, int], dtype: Any, place: Tensor) -> None:
        self.keys, self.values = zeros(*shape, dtype=dtype), zeros(*shape, dtype=dtype)
        self.place = place
        self.columns = arange(shape[2])

    def places(self, count: int) -> Tensor:
        """Return the places of the next `count` tokens."""
        return self.place if count == 1 else arange(count)

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Write keys and values (batch, heads, n, width / heads); return what to attend to, and the mask."""
        count = keys.shape[2]
        if count > 1:
            self.keys[:, :, :count] = keys
            self.values[:, :, :count] = values
            return keys, values, from_numpy(np.tri(count, dtype=bool))
        self.keys.index_copy_(2, self.place, keys)
        self.values.index_copy_(2, self.place, values)
        return self.keys, self.values, self.columns <= self.place


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

    def attend(self, x: Tensor, memory: Memory | FixedMemory | None = None) -> Tensor:
        """Return causal self-attention over the places of x and, if given, of `memory`."""
        batch, length, width = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        queries, keys, values = parts.permute(2, 0, 3, 1, 4)
        dropout = self.dropout if self.training else 0.0
        if memory is None:
            mixed = F.scaled_dot_product_attention(queries, keys, values, dropout_p=dropout, is_causal=True)
        else:
            keys, values, seen = memory.extend(keys, values)
            mixed = F.scaled_dot_product_attention(queries, keys, values, attn_mask=seen)
        taken: Tensor = self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return taken

    def forward(self, x: Tensor, memory: Memory | FixedMemory | None = None) -> Tensor:
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
        self.loops = Loops()
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

    def forward(self, tokens: Tensor, memories: Sequence[Memory | FixedMemory] | None = None) -> Tensor:
        logits: Tensor = self.head(self.norm(self.stream_of(tokens, memories)))
        return logits

    def stream_of(self, tokens: Tensor, memories: Sequence[Memory | FixedMemory] | None = None) -> Tensor:
        """Return the residual stream (batch, length, width) after the last block."""
        places = memories[0].places(tokens.shape[1]) if memories else arange(tokens.shape[1])
        x = self.tokens(tokens) + self.positions(places)
        if self.dropout:
            x = F.dropout(x, self.dropout, self.training)
        for place, block in enumerate(self.blocks):
            x = block(x, memories[place] if memories else None)
        return x

    def generate(
        self,
        idx: Any,
        max_new_tokens: int,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        *,
        do_sample: bool = True,
        seed: int | None = None,
        generator: Generator | None = None,
        eos: int | None = None,
        stop: Sequence[int] | Sequence[Sequence[int]] | None = None,
    ) -> Tensor:
        """Return the prompts followed by generated tokens, drawn one after the other.

        For 32 tokens or more, the step that reads a token and draws the next is compiled and runs many times in native
        code. Keys and values of read tokens are cached. If a text is longer than the context, the model sees it from
        `first_seen` on: the end of a prompt, and later half a context less whenever the context is full. The model is
        in evaluation mode during the call.

        Args:
            idx: tokens (length) of a prompt, or (rows, length) of several; a tensor, array or list of integers.
            max_new_tokens: the largest number of tokens to add.
            temperature: divides the logits; 0 takes the most likely token each time.
            top_k: draw from this many of the most likely tokens.
            top_p: draw from the most likely tokens whose probability together reaches this (Holtzman et al. 2020).
            do_sample: False takes the most likely token each time and ignores the temperature.
            seed: the same seed gives the same tokens.
            generator: the source of random numbers if there is no seed; by default `gg.manual_seed`'s generator.
            eos: a token that ends a text; it also fills the rest of the row.
            stop: a sequence of tokens that ends a text, or several. Without `eos`, zeros fill the rest of the row.

        Returns:
            int64 of shape (length + n), or (rows, length + n): n is less than `max_new_tokens` if all texts ended
            earlier.

        Raises:
            ArgumentError: an argument is out of range, prompts have different lengths, or there is no prompt.

        Example:
            >>> import glassgrad as gg
            >>> model = GPT(tokens=5, context=8, width=16, heads=2, layers=1)
            >>> model.generate([[0, 1], [2, 3]], 4, temperature=0.8, top_k=3, seed=1).shape
            (2, 6)
        """
        drawn: dict[str, Any] = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "do_sample": do_sample}
        drawn |= {"seed": seed, "generator": generator}
        asked = generation.requested(self, idx, max_new_tokens, eos=eos, stop=stop, **drawn)
        return generation.generate(self, asked)

    def stream(self, idx: Any, max_new_tokens: int, **options: Any) -> Iterator[Any]:
        """Yield the tokens that `generate` would add, one at a time; the arguments are the same.

        A prompt of shape (length) gives numbers, several give tensors (rows) of int64. Tokens come in small bunches, at
        most some fiftieths of a second apart, so an interrupt loses few tokens.

        Example:
            >>> model = GPT(tokens=5, context=8, width=16, heads=2, layers=1)
            >>> len(list(model.stream([0], 7, seed=1)))
            7
        """
        defaults: dict[str, Any] = {"temperature": 1.0, "do_sample": True}
        given = defaults | dict.fromkeys(("top_k", "top_p", "seed", "generator", "eos", "stop")) | options
        return generation.stream(self, generation.requested(self, idx, max_new_tokens, **given))

    def memories(self) -> list[Memory]:
        """Return an empty cache for each block, to pass to `forward` with successive tokens."""
        return [Memory(self.context) for _ in self.blocks]

    def fixed_memories(self, shape: tuple[int, int, int, int], place: Tensor) -> list[FixedMemory]:
        """Return a cache for each block that a compiled step can write to."""
        return [FixedMemory(shape, self.tokens.weight.dtype, place) for _ in self.blocks]

    def decoder(self) -> GPTDecoder:
        """Return a `glassgrad.data.generate.Decoder` of this model, which should be in evaluation mode."""
        return GPTDecoder(self)


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
