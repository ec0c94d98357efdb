"""Sampling sequences from a next-token model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from glassgrad.data.generate import AS_IT_IS, Sampling, WindowDecoder, generate_tokens
from glassgrad.engine.mode import no_grad
from glassgrad.engine.tensors.creation import tensor
from glassgrad.nn.modes import evaluating

Array = Any  # np.ndarray


def generate(
    model: Any,
    context: int,
    count: int,
    seed: int,
    longest: int,
    end: int = 0,
    prompt: Sequence[int] = (),
    sampling: Sampling = AS_IT_IS,
) -> Iterator[list[int]]:
    """Yield `count` token sequences, drawn one token at a time until `end` or until `longest` tokens are drawn.

    `model` has a method `decoder`, as `GPT` and `CharRNN` do, or maps tokens (batch, context) to logits
    (batch, tokens), with the context initially filled with `end`. It is in evaluation mode during sampling, and in its
    previous mode afterwards. Sequences begin with `end` and the tokens of `prompt`. Sequence k depends on the seed
    and k, not on `count`.

    Example:
        >>> import glassgrad as gg
        >>> from glassgrad.models import GPT, generate
        >>> model = GPT(tokens=10, context=8, width=16, heads=2, layers=1)
        >>> [len(text) <= 4 for text in generate(model, 8, count=2, seed=0, longest=4)]
        [True, True]
    """

    def logits(tokens: Array) -> Array:
        with no_grad():
            return model(tensor(tokens)).numpy()

    decoder = getattr(model, "decoder", None) or (lambda: WindowDecoder(logits, context, end))
    with evaluating(model):
        yield from generate_tokens(decoder, [end, *prompt], count, seed, longest, end, sampling)
