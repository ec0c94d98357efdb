"""`generate` and `stream` of a model: check the arguments, and find where each text ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from glassgrad.data.generate import Sampling
from glassgrad.engine.random import Generator, rand
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.tensors.creation import from_numpy
from glassgrad.models.decoding import Chances, draw
from glassgrad.ops.core import bad_option

if TYPE_CHECKING:
    from glassgrad.models.gpt import GPT

Array = np.ndarray


@dataclass(frozen=True)
class Request:
    """A checked request to generate text.

    Attributes:
        text: the prompts, (rows, length) of int64.
        most: the largest number of tokens to add to each.
        ends: token sequences, each of which ends a text.
        fill: the token that pads a text that ended earlier than others.
        single: whether one prompt was given, without a dimension for rows.
    """

    text: Array
    most: int
    sampling: Sampling
    chances: Chances
    ends: tuple[tuple[int, ...], ...]
    fill: int
    single: bool


def requested(
    model: GPT,
    idx: Any,
    max_new_tokens: int,
    *,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    do_sample: bool,
    seed: int | None,
    generator: Generator | None,
    eos: int | None,
    stop: Sequence[int] | Sequence[Sequence[int]] | None,
) -> Request:
    """Check the arguments of `GPT.generate`. Raises `ArgumentError` naming the first that is wrong."""
    owner = f"{type(model).__name__}.generate"
    tokens = model.tokens.weight.shape[0]
    text, single = _prompts(owner, idx, tokens)
    if max_new_tokens < 0:
        raise bad_option(owner, "max_new_tokens", max_new_tokens, "a number of tokens, 0 or more")
    if not 0 <= temperature < np.inf:
        raise bad_option(owner, "temperature", temperature, "a finite number, 0 or more")
    if top_k is not None and top_k < 1:
        raise bad_option(owner, "top_k", top_k, "a number of tokens, 1 or more, or None for all")
    if top_p is not None and not 0 < top_p <= 1:
        raise bad_option(owner, "top_p", top_p, "a probability above 0 and up to 1, or None for all tokens")
    if seed is not None and generator is not None:
        raise bad_option(owner, "seed", seed, "either a seed or a generator, not both")
    if eos is not None and not 0 <= eos < tokens:
        raise bad_option(owner, "eos", eos, f"a token, 0 to {tokens - 1}, or None")
    sampling = Sampling(temperature if do_sample else 0.0, top_k or 0, 1.0 if top_p is None else top_p)
    if seed is not None:
        generator = Generator().manual_seed(seed)
    ends = (*_stops(owner, stop), *(((eos,),) if eos is not None else ()))
    return Request(
        text, max_new_tokens, sampling, _chances(len(text), generator), ends, 0 if eos is None else eos, single
    )


def _prompts(owner: str, idx: Any, tokens: int) -> tuple[Array, bool]:
    expected = f"tokens, integers from 0 to {tokens - 1}: (length) of one prompt or (rows, length), length 1 or more"
    try:
        given = np.asarray(idx.numpy() if isinstance(idx, Tensor) else idx)
    except ValueError:
        raise bad_option(owner, "idx", "sequences of different lengths", expected) from None
    if given.dtype.kind not in "iu" or given.ndim not in {1, 2} or not given.size:
        raise bad_option(owner, "idx", f"{given.dtype}{list(given.shape)}", expected)
    if given.min() < 0 or given.max() >= tokens:
        raise bad_option(owner, "idx", f"token {given.min() if given.min() < 0 else given.max()}", expected)
    return given.astype(np.int64).reshape(-1, given.shape[-1]), given.ndim == 1


def _stops(owner: str, stop: Any) -> tuple[tuple[int, ...], ...]:
    if stop is None:
        return ()
    several = [stop] if all(isinstance(one, int | np.integer) for one in stop) else stop
    if not all(len(one) for one in several):
        raise bad_option(owner, "stop", stop, "a sequence of tokens, or several, none of them empty")
    return tuple(tuple(int(token) for token in one) for one in several)


def _chances(rows: int, generator: Generator | None) -> Chances:
    """Return a source of the numbers that decide on tokens, drawn position by position."""
    return lambda count: rand(count, rows, generator=generator, dtype=np.float64).numpy().T


class Endings:
    """Tracks which texts have ended, and cuts the pieces accordingly."""

    def __init__(self, request: Request) -> None:
        self.request = request
        rows = len(request.text)
        self.done = np.zeros(rows, np.bool_)
        longest = max((len(one) for one in request.ends), default=0)
        self.tail = np.full((rows, longest), -1, np.int64)  # the latest generated tokens; the prompt does not count

    def column(self, tokens: Array) -> Array:
        """Return the tokens (rows) for the user: the drawn ones, or `fill` where a text had already ended."""
        found = np.where(self.done, self.request.fill, tokens)
        if self.request.ends:
            self.tail = np.concatenate([self.tail, found[:, None]], axis=1)[:, 1:]
            for one in self.request.ends:
                self.done |= (self.tail[:, -len(one) :] == one).all(axis=1)
        return found


def columns(model: GPT, request: Request) -> Iterator[Array]:
    """Yield the next token of every row, (rows) of int64, until all texts have ended or are long enough."""
    if not request.most:
        return
    endings = Endings(request)
    for piece in draw(model, request.text, request.most, request.sampling, request.chances):
        for tokens in piece.T:
            yield endings.column(tokens)
            if endings.done.all():
                return


def stream(model: GPT, request: Request) -> Iterator[Any]:
    """Yield what `GPT.stream` yields."""
    for tokens in columns(model, request):
        yield int(tokens[0]) if request.single else from_numpy(tokens)


def generate(model: GPT, request: Request) -> Tensor:
    """Return what `GPT.generate` returns."""
    found = [column[:, None] for column in columns(model, request)]
    whole = np.concatenate([request.text, *found], axis=1)
    return from_numpy(whole[0] if request.single else whole)
