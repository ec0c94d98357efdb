"""Drawing tokens: the choice of one against probabilities computed by hand, and caches against no cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.data.generate import Sampling, WindowDecoder, generate_tokens
from glassgrad.models import GPT, CharRNN
from glassgrad.models.gpt import first_seen
from tests.thinning import covering

TOKENS = 11
SHARES = np.array([0.05, 0.4, 0.1, 0.3, 0.15])


def drawn(sampling: Sampling, count: int = 20_000) -> Any:
    """How often each token is taken when the deciding numbers are spread evenly."""
    chances = (np.arange(count) + 0.5) / count
    tokens = sampling.choose(np.log(np.tile(SHARES, (count, 1))), chances)
    return np.bincount(tokens, minlength=len(SHARES)) / count


@pytest.mark.parametrize(
    ("sampling", "kept"),
    [
        (Sampling(), [0, 1, 2, 3, 4]),
        (Sampling(top_k=1), [1]),
        (Sampling(top_k=3), [1, 3, 4]),
        (Sampling(top_k=99), [0, 1, 2, 3, 4]),
        (Sampling(top_p=0.39), [1]),
        (Sampling(top_p=0.69), [1, 3]),
        (Sampling(top_p=0.71), [1, 3, 4]),
        (Sampling(top_k=2, top_p=0.9), [1, 3]),
    ],
    ids=str,
)
def test_what_is_left_to_draw_from_is_drawn_in_proportion(sampling: Sampling, kept: list[int]) -> None:
    expected = np.zeros(len(SHARES))
    expected[kept] = SHARES[kept] / SHARES[kept].sum()
    np.testing.assert_allclose(drawn(sampling), expected, atol=1e-3)


@pytest.mark.parametrize("temperature", [0.2, 0.5, 2.0, 100.0])
def test_temperature_is_a_power_of_the_probabilities(temperature: float) -> None:
    expected = SHARES ** (1 / temperature)
    np.testing.assert_allclose(drawn(Sampling(temperature)), expected / expected.sum(), atol=1e-3)


def test_temperature_zero_takes_the_most_likely_and_is_where_small_ones_lead() -> None:
    logits = np.random.default_rng(1).standard_normal((50, 7))
    chances = np.random.default_rng(2).random(50)
    for sampling in (Sampling(0.0), Sampling(1e-300), Sampling(1e-6, top_k=3), Sampling(0.0, top_k=2, top_p=0.5)):
        assert sampling.choose(logits, chances).tolist() == logits.argmax(axis=1).tolist()


def test_impossible_tokens_are_never_drawn() -> None:
    logits = np.array([[-np.inf, 0.0, -np.inf, 0.0]])
    found = {int(Sampling(top_k=3).choose(logits, np.array([chance]))[0]) for chance in (0.0, 0.3, 0.6, 1 - 2**-53)}
    assert found == {1, 3}


class Reread:
    """The oracle: reads all that is seen again for every token."""

    def __init__(self, logits: Callable[[Any], Any], context: int | None) -> None:
        self.logits, self.context = logits, context
        self.text = np.zeros((0, 0), np.int64)

    def read(self, tokens: Any) -> Any:
        self.text = np.concatenate([self.text, tokens], axis=1) if self.text.size else tokens
        first = first_seen(self.text.shape[1], self.context) if self.context else 0
        return self.logits(self.text[:, first:])

    def keep(self, rows: Any) -> None:
        self.text = self.text[rows]


def sharp(model: Any) -> Any:
    """A model with weights large enough that what it read long ago matters to what it says."""
    for parameter in model.parameters():
        parameter.data.mul_(4.0 if parameter.ndim > 1 else 1.0)
    return model.eval()


def gpt(context: int = 12) -> Any:
    generator = gg.Generator().manual_seed(3)
    return sharp(GPT(TOKENS, context, width=16, heads=4, layers=2, dropout=0.2, generator=generator))


def recurrent(cell: str, layers: int) -> Any:
    generator = gg.Generator().manual_seed(3)
    return sharp(CharRNN(TOKENS, cell, embedding=6, hidden=10, layers=layers, dropout=0.1, generator=generator))


MODELS = {
    "gpt": (gpt, 12),
    "gpt-context-1": (lambda: gpt(1), 1),
    "gpt-context-7": (lambda: gpt(7), 7),
    "rnn": (lambda: recurrent("rnn", 1), None),
    "lstm": (lambda: recurrent("lstm", 2), None),
    "gru": (lambda: recurrent("gru", 2), None),
}


@pytest.mark.parametrize(
    ("name", "sampling"), covering(list(MODELS), [Sampling(), Sampling(0.8, top_k=4), Sampling(0.0)]), ids=str
)
def test_what_is_kept_changes_nothing(name: str, sampling: Sampling) -> None:
    make, context = MODELS[name]
    model = make()

    def logits(tokens: Any) -> Any:
        with gg.no_grad():
            return model(gg.tensor(tokens)).numpy()[:, -1]

    # Ends are drawn now and then, so that sequences drop out; texts get several contexts long.
    for start, end in (([1], 0), ([2, 3, 4, 5, 6, 7, 8, 9, 10] * 2, None)):
        arguments = {"start": start, "count": 5, "seed": 8, "longest": 60, "end": end, "sampling": sampling}
        kept = list(generate_tokens(model.decoder, **arguments))
        assert kept == list(generate_tokens(lambda: Reread(logits, context), **arguments))
        assert [len(entry) for entry in kept] == [60] * 5 or end == 0


@pytest.mark.parametrize("name", MODELS)
def test_reading_at_once_and_one_by_one_gives_the_same_logits(name: str) -> None:
    model = MODELS[name][0]()
    tokens = np.random.default_rng(0).integers(TOKENS, size=(3, 40))
    single, several = model.decoder(), model.decoder()
    for place in range(0, 40, 2):
        single.read(tokens[:, place : place + 1])
        last = single.read(tokens[:, place + 1 : place + 2])
        np.testing.assert_allclose(several.read(tokens[:, place : place + 2]), last, atol=1e-5)


def test_a_text_longer_than_the_context_is_seen_from_a_first_place_that_moves_by_halves() -> None:
    for context in (1, 2, 7, 8, 64):
        places = [first_seen(length, context) for length in range(1, 300)]
        seen = [length - first for length, first in zip(range(1, 300), places, strict=True)]
        assert max(seen) == context
        assert min(seen[context:], default=1) > context - max(context // 2, 1) - 1
        assert len(set(places)) <= 2 + 299 // max(context // 2, 1)


def test_a_window_begins_filled_with_ends() -> None:
    seen = []

    def logits(window: Any) -> Any:
        seen.append(window.tolist())
        return np.log(np.tile(SHARES, (len(window), 1)))

    decoder = WindowDecoder(logits, context=3)
    decoder.read(np.array([[0, 4], [0, 5]]))
    decoder.keep(np.array([1]))
    decoder.read(np.array([[6]]))
    assert seen == [[[0, 0, 4], [0, 0, 5]], [[0, 5, 6]]]


def test_a_start_is_gone_on_from_and_not_returned() -> None:
    def logits(window: Any) -> Any:  # the token after n is n + 1, and after 4 the end
        scores = np.full((len(window), 5), -np.inf)
        scores[np.arange(len(window)), (window[:, -1] + 1) % 5] = 0.0
        return scores

    found = generate_tokens(lambda: WindowDecoder(logits, 2), [0, 1, 2], count=2, seed=0, longest=10)
    assert list(found) == [[3, 4], [3, 4]]
