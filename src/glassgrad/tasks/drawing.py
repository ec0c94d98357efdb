"""Sampling words and texts from a character model, and its options."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.data import CharTokenizer
from glassgrad.data.generate import Decoder, Sampling, WindowDecoder, generate_tokens
from glassgrad.data.tokenizer import BOUNDARY
from glassgrad.train.config import option
from glassgrad.train.learners.learner import Learner

WORDS, TEXTS, LENGTH = 20, 1, 500
"""Default numbers of words and of texts, and the default length of a text in characters."""


@dataclass(frozen=True)
class SampleOptions:
    """The options of `glassgrad sample`. A count of 0 means the task's default."""

    count: int = option(0, "how many words or texts to print (20 words, 1 text if not given)", low=0, high=1e9)
    prompt: str = option("", "text at the beginning of each word or text")
    temperature: float = option(1.0, "0 always draws the most likely; above 1 favours the unlikely", low=0, high=1e6)
    top_k: int = option(0, "draw from this many of the most likely characters; 0 for all", low=0, high=1e9)
    top_p: float = option(1.0, "draw from the most likely, which have this probability together", above=0, high=1)
    length: int = option(LENGTH, "characters of each text", low=1, high=1e7)
    seed: int = option(1, "seed of the draws; the same seed prints the same", low=0, high=2**63 - 1)

    @property
    def sampling(self) -> Sampling:
        """The options for drawing one token."""
        return Sampling(self.temperature, self.top_k, self.top_p)


def sample_words(learner: Learner, description: Mapping[str, Any], options: SampleOptions) -> Iterator[str]:
    """Yield words drawn from a model; the same seed gives the same words."""
    tokenizer, begun = prompted(description, options, words=True)
    # Words hardly ever reach twice the length of the longest training word; the limit stops a model that never ends a
    # word.
    longest = 2 * description["longest"] + 2
    decoder = _decoder(learner, description["config"].get("context", 1))
    start, count = [BOUNDARY, *begun], options.count or WORDS
    for tokens in generate_tokens(decoder, start, count, options.seed, longest, BOUNDARY, options.sampling):
        yield tokenizer.decode([*begun, *tokens])


def sample_texts(learner: Learner, description: Mapping[str, Any], options: SampleOptions) -> Iterator[str]:
    """Yield texts drawn from a model; the same seed gives the same text, and a longer one begins with a shorter one."""
    for pieces in sample_pieces(learner, description, options):
        yield "".join(pieces)


def sample_pieces(learner: Learner, description: Mapping[str, Any], options: SampleOptions) -> Iterator[Iterator[str]]:
    """Yield each text as a stream of pieces."""
    tokenizer, begun = prompted(description, options, words=False)
    start = begun or tokenizer.encode("\n" if "\n" in description["alphabet"] else description["beginning"])
    for place in range(options.count or TEXTS):
        yield _pieces(learner, description, options, (tokenizer, begun, start, place))


def _pieces(
    learner: Learner,
    description: Mapping[str, Any],
    options: SampleOptions,
    text: tuple[CharTokenizer, list[int], list[int], int],
) -> Iterator[str]:
    from glassgrad.models.decoding import draw
    from glassgrad.models.gpt import GPT

    tokenizer, begun, start, place = text
    if begun:
        yield tokenizer.decode(begun)
    seed, model = [options.seed, place], learner.model
    if isinstance(model, GPT):
        generator = np.random.Generator(np.random.PCG64(seed))
        known = np.array([start], np.int64)
        for piece in draw(model, known, options.length, options.sampling, lambda n: generator.random((1, n))):
            yield tokenizer.decode(piece[0].tolist())
        return
    decoder = _decoder(learner, description["config"]["context"])
    (tokens,) = generate_tokens(decoder, start, 1, seed, options.length, None, options.sampling)
    yield tokenizer.decode(tokens)


def prompted(description: Mapping[str, Any], options: SampleOptions, *, words: bool) -> tuple[CharTokenizer, list[int]]:
    """Return the tokenizer of a model, and the tokens of the prompt."""
    tokenizer = CharTokenizer(description["alphabet"], boundary=words)
    try:
        return tokenizer, tokenizer.encode(unicodedata.normalize("NFC", options.prompt))
    except KeyError as error:
        raise errors.PROMPT_CHARACTER(character=error.args[0], alphabet=_shown(tokenizer)) from None


def check_known(tokenizer: CharTokenizer, text: str) -> None:
    """Raise `errors.InputError` unless `text` is non-empty and the model knows all its characters."""
    if not text:
        raise errors.PREDICT_EMPTY(given=text)
    try:
        tokenizer.encode(text)
    except KeyError as error:
        raise errors.PREDICT_CHARACTER(character=error.args[0], alphabet=_shown(tokenizer)) from None


def check_alphabet(tokenizer: CharTokenizer, alphabet: Sequence[str], source: object) -> None:
    """Raise `errors.InputError` unless the data have exactly the characters that a trained model knows."""
    if list(tokenizer.alphabet) != list(alphabet):
        raise errors.DATA_OTHER_ALPHABET(
            path=source, given=len(tokenizer.alphabet), expected=_shown(CharTokenizer(alphabet))
        )


def _shown(tokenizer: CharTokenizer) -> str:
    known = "".join(character for character in tokenizer.alphabet if character.isprintable())
    return known if len(known) <= 60 else f"{known[:60]}... ({len(known)} characters)"


def _decoder(learner: Learner, context: int) -> Callable[[], Decoder]:
    """Return a decoder factory: the model's own decoder, which reads each token once, or a window that is reread."""
    own: Callable[[], Decoder] | None = getattr(learner.model, "decoder", None)
    if own is None:
        return lambda: WindowDecoder(learner.logits, context)
    learner.model.eval()
    return own
