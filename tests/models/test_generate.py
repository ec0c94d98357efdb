"""`GPT.generate` against a loop without a cache, which reads all tokens again for every token, eagerly."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.data.generate import Sampling
from glassgrad.models import GPT
from glassgrad.models.decoding import Loop
from glassgrad.models.places import first_seen

TOKENS, CONTEXT = 11, 12


@pytest.fixture(scope="module")
def model() -> Any:
    """A model with weights large enough that what it read long ago matters to what it says."""
    made = GPT(TOKENS, CONTEXT, width=16, heads=4, layers=2, dropout=0.2, generator=gg.Generator().manual_seed(3))
    for parameter in made.parameters():
        parameter.data.mul_(4.0 if parameter.ndim > 1 else 1.0)
    return made


def reread(model: Any, text: Any, count: int, sampling: Sampling, seed: int = 0) -> Any:
    """The oracle."""
    chances = gg.rand(count, len(text), generator=gg.Generator().manual_seed(seed), dtype=gg.float64).numpy()
    model.eval()
    for column in chances:
        seen = text[:, first_seen(text.shape[1], CONTEXT) :]
        with gg.no_grad():
            logits = model(gg.tensor(seen)).numpy()[:, -1].astype(np.float64)
        text = np.concatenate([text, sampling.choose(logits, column)[:, None]], axis=1)
    model.train()
    return text


PROMPTS = np.random.default_rng(5).integers(TOKENS, size=(3, 30))


@pytest.mark.parametrize("count", [20, 100])  # eager, and compiled, the rereading too
@pytest.mark.parametrize("length", [1, 5, 30])
def test_greedy_is_the_loop_that_rereads_everything(model: Any, length: int, count: int) -> None:
    prompt = PROMPTS[:, :length]
    found = model.generate(gg.tensor(prompt), count, do_sample=False)
    np.testing.assert_array_equal(found.numpy(), reread(model, prompt, count, Sampling(0.0)))
    assert model.training


@pytest.mark.parametrize(
    "sampling", [Sampling(), Sampling(0.7), Sampling(1.3, top_k=3), Sampling(0.9, top_p=0.6), Sampling(0.8, 5, 0.8)]
)
def test_drawing_in_native_code_is_drawing_with_numpy(model: Any, sampling: Sampling) -> None:
    options = {"temperature": sampling.temperature, "top_k": sampling.top_k or None, "top_p": sampling.top_p}
    found = model.generate(PROMPTS[:, :4], 60, seed=7, **options)
    np.testing.assert_array_equal(found.numpy(), reread(model, PROMPTS[:, :4], 60, sampling, seed=7))


def test_many_tokens_are_sorted_by_numpy(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Loop, "most_compared", 5)
    found = model.generate(PROMPTS[:, :4], 40, 0.9, top_k=4, seed=2)
    np.testing.assert_array_equal(found.numpy(), reread(model, PROMPTS[:, :4], 40, Sampling(0.9, 4), seed=2))


def test_the_step_runs_in_native_code_and_is_compiled_once(model: Any) -> None:
    for seed in (1, 2):
        model.generate([1, 2], 64, seed=seed)
    (loop,) = (one for one in model.loops._free if one.rows == 1)
    assert loop.compiled_step.repeatable() is not None
    assert loop.compiled_step.traces == 1
    assert not loop.compiled_step.refusals
    copies = [kernel for kernel in loop.compiled_step.program.explain() if kernel.ops == ("copy",)]
    assert sum(kernel.bytes for kernel in copies) < 100  # no cache is copied to write one place of it


def test_ties_are_broken_as_numpy_breaks_them() -> None:
    model = GPT(TOKENS, CONTEXT, width=16, heads=4, layers=1)
    loop = Loop(model, 200)
    logits = np.random.default_rng(0).integers(3, size=(200, TOKENS)).astype(np.float64)
    loop.chances.numpy()[:, 0] = chances = np.random.default_rng(1).random(200)
    loop.top_k.numpy()[...], loop.top_p.numpy()[...] = 4, 0.7
    found = loop.choice(gg.tensor(logits), ranked=True)
    np.testing.assert_array_equal(found.numpy(), Sampling(1.0, 4, 0.7).choose(logits, chances))


def test_a_seed_and_a_generator_decide(model: Any) -> None:
    prompt = [[1, 2], [3, 4]]
    first = model.generate(prompt, 40, seed=5)
    assert (model.generate(prompt, 40, seed=5) == first).all()
    assert not (model.generate(prompt, 40, seed=6) == first).all()
    assert (model.generate(prompt, 40, generator=gg.Generator().manual_seed(5)) == first).all()
    assert (model.generate(prompt, 50, seed=5)[:, :42] == first).all()
    gg.manual_seed(5)
    assert (model.generate(prompt, 40) == first).all()


def test_a_stream_hands_out_what_generate_returns(model: Any) -> None:
    whole = model.generate([1, 2, 3], 50, seed=1)
    assert list(model.stream([1, 2, 3], 50, seed=1)) == whole.tolist()[3:]
    several = list(model.stream([[1], [2]], 9, seed=1))
    assert gg.stack(several, 1).tolist() == model.generate([[1], [2]], 9, seed=1)[:, 1:].tolist()


def test_two_streams_of_one_model_do_not_meet(model: Any) -> None:
    expected = [model.generate([start], 40, seed=start).tolist()[1:] for start in (1, 2)]
    both = zip(*(model.stream([start], 40, seed=start) for start in (1, 2)), strict=True)
    assert [list(one) for one in zip(*both, strict=True)] == expected


def test_weights_that_change_are_seen(model: Any) -> None:
    other = copy.deepcopy(model)
    before = other.generate([1], 40, do_sample=False)
    with gg.no_grad():
        other.head.weight.mul_(-1.0)
    assert (other.generate([1], 40, do_sample=False) != before).any()
    np.testing.assert_array_equal(
        other.generate([[1]], 40, do_sample=False).numpy(), reread(other, np.array([[1]]), 40, Sampling(0.0))
    )
    assert (model.generate([1], 40, do_sample=False) == before).all()


def test_a_text_ends_at_its_end(model: Any) -> None:
    plain = model.generate([[1], [2], [3]], 40, seed=3).tolist()
    eos = plain[0][9]
    ended = model.generate([[1], [2], [3]], 40, seed=3, eos=eos).tolist()
    for whole, cut in zip(plain, ended, strict=True):
        at = whole.index(eos, 1) if eos in whole[1:] else len(whole)
        assert cut[: at + 1] == whole[: len(cut)][: at + 1]
        assert set(cut[at + 1 :]) <= {eos}
    assert len(ended[0]) == min(41, 1 + max((one.index(eos, 1) if eos in one[1:] else 40) for one in plain))
    stop = plain[0][5:7]
    stopped = model.generate([1], 40, seed=3, stop=[stop, [99]]).tolist()
    single = model.generate([1], 40, seed=3).tolist()
    at = next((n for n in range(2, 41) if single[n - 1 : n + 1] == stop), 40)
    assert stopped == single[: at + 1]


def test_nothing_wanted_is_the_prompt(model: Any) -> None:
    assert model.generate([4, 5], 0).tolist() == [4, 5]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"idx": [[1, 2], [3]]}, "different lengths"),
        ({"idx": []}, "length 1 or more"),
        ({"idx": [TOKENS]}, f"token {TOKENS}"),
        ({"idx": [0.5]}, "integers from 0 to 10"),
        ({"max_new_tokens": -1}, "max_new_tokens"),
        ({"temperature": float("nan")}, "temperature"),
        ({"top_k": 0}, "top_k"),
        ({"top_p": 1.5}, "top_p"),
        ({"eos": TOKENS}, "eos"),
        ({"stop": [[]]}, "stop"),
        ({"seed": 1, "generator": gg.Generator()}, "either a seed or a generator"),
    ],
)
def test_a_wrong_argument_is_named_before_anything_is_drawn(model: Any, arguments: Any, words: str) -> None:
    for method in (model.generate, model.stream):
        with pytest.raises(gg.errors.ArgumentError, match=words):
            method(**{"idx": [1], "max_new_tokens": 3} | arguments)


def test_a_model_that_has_generated_can_be_stored_and_copied(model: Any) -> None:
    model.generate([1], 40, seed=1)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301 - made here
    assert not again.loops._free
    assert again.generate([1], 40, seed=1).tolist() == model.generate([1], 40, seed=1).tolist()
    assert "loops" not in " ".join(model.state_dict())
