"""Words and texts from a trained model: what `glassgrad sample` prints, and `glassgrad train` at its end."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glassgrad import errors
from glassgrad.data import CharTokenizer
from glassgrad.data.generate import Decoder, Sampling, WindowDecoder, generate_tokens
from glassgrad.data.tokenizer import BOUNDARY
from glassgrad.tasks import names, text
from glassgrad.train.config import command_line, flag, option, resolve
from glassgrad.train.kept.checkpoint import load_checkpoint
from glassgrad.train.kept.rundir import MODEL
from glassgrad.train.learner import Learner

WORDS, TEXTS, LENGTH = 20, 1, 500
"""How many words, or texts of how many characters, are drawn if nothing is said."""


@dataclass(frozen=True)
class SampleOptions:
    """How to draw: the options of `glassgrad sample`. A count of 0 is the task's own."""

    count: int = option(0, "how many words or texts to print (20 words, 1 text if not given)", low=0, high=1e9)
    prompt: str = option("", "what each of them begins with")
    temperature: float = option(1.0, "0 for the most likely each time; above 1 for the unlikely", low=0, high=1e6)
    top_k: int = option(0, "draw from this many of the most likely characters; 0 for all", low=0, high=1e9)
    top_p: float = option(1.0, "draw from the most likely with this probability together", above=0, high=1)
    length: int = option(LENGTH, "characters of each text", low=1, high=1e7)
    seed: int = option(1, "the same seed prints the same", low=0, high=2**63 - 1)

    @property
    def sampling(self) -> Sampling:
        """The part that concerns one token."""
        return Sampling(self.temperature, self.top_k, self.top_p)


def sample_options(given: Mapping[str, Any]) -> SampleOptions:
    """Return the options with defaults for those given as None. Raises `errors.InputError` naming a wrong one."""
    return resolve(SampleOptions, [command_line(given)])


def load_model(path: Path) -> tuple[Learner, dict[str, Any]]:
    """Return the model in a run directory or a model file, and the description stored with it.

    Raises `errors.InputError` when there is none, when it is damaged, or when it is no model of characters.
    """
    if not path.exists():
        raise errors.RUN_MISSING(path=path, reason="there is no such file or directory")
    file = path / MODEL if path.is_dir() else path
    if not file.is_file():
        raise errors.RUN_MISSING(path=path, reason=f"the directory has no {MODEL}")
    arrays, description = load_checkpoint(file)
    if str(description.get("task")) not in _BUILDERS:
        raise errors.SAMPLE_OTHER_MODEL(path=file, what=_what(description), known=" and ".join(_BUILDERS))
    try:
        learner = _BUILDERS[description["task"]](description)
        learner.load_weights(arrays)
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError, OverflowError, MemoryError) as error:
        raise errors.SAMPLE_CANNOT_BUILD(path=file, reason=" ".join(str(error).split())) from None
    return learner, description


def _what(description: Mapping[str, Any]) -> str:
    """Say what a whole file holds that is no model of characters."""
    task = description.get("task")
    if isinstance(task, str):
        return f"a model of the task {task!r}"
    return "a checkpoint to go on from" if "parts" in description else "weights of a model of your own"


def _names_learner(description: Mapping[str, Any]) -> Learner:
    config = names.NamesConfig(**description["config"])
    return names.build_learner(config, len(description["alphabet"]) + 1, description["longest"])


def _text_learner(description: Mapping[str, Any]) -> Learner:
    return text.build_learner(text.TextConfig(**description["config"]), len(description["alphabet"]))


_BUILDERS: dict[str, Callable[[Mapping[str, Any]], Learner]] = {names.TASK: _names_learner, text.TASK: _text_learner}


def sample(learner: Learner, description: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[str]:
    """Yield what `glassgrad sample` prints, line by line. Raises `errors.InputError` before anything is drawn."""
    options = sample_options(given)
    _prompt(description, options)
    if description["task"] == names.TASK:
        if given.get("length") is not None:
            raise errors.SAMPLE_NO_EFFECT(name=flag("length"), task="names, whose words end by themselves")
        yield from sample_words(learner, description, options)
        return
    for place, one in enumerate(sample_texts(learner, description, options)):
        if place:
            yield f"{'':-<40}"
        yield one


def sample_words(learner: Learner, description: Mapping[str, Any], options: SampleOptions) -> Iterator[str]:
    """Yield words drawn from a model; the same seed gives the same words."""
    tokenizer, begun = _prompt(description, options)
    # A model hardly ever writes twice the longest word it saw; one that never ends a word still has to stop.
    longest = 2 * description["longest"] + 2
    decoder = _decoder(learner, description["config"].get("context", 1))
    start, count = [BOUNDARY, *begun], options.count or WORDS
    for tokens in generate_tokens(decoder, start, count, options.seed, longest, BOUNDARY, options.sampling):
        yield tokenizer.decode([*begun, *tokens])


def sample_texts(learner: Learner, description: Mapping[str, Any], options: SampleOptions) -> Iterator[str]:
    """Yield texts drawn from a model; the same seed gives the same, and a longer one begins with a shorter one."""
    tokenizer, begun = _prompt(description, options)
    start = begun or tokenizer.encode("\n" if "\n" in description["alphabet"] else description["beginning"])
    decoder = _decoder(learner, description["config"]["context"])
    for place in range(options.count or TEXTS):
        seed = [options.seed, place]
        (tokens,) = generate_tokens(decoder, start, 1, seed, options.length, None, options.sampling)
        yield tokenizer.decode([*begun, *tokens])


def _prompt(description: Mapping[str, Any], options: SampleOptions) -> tuple[CharTokenizer, list[int]]:
    """Return the tokenizer of a model, and the tokens of the prompt."""
    tokenizer = CharTokenizer(description["alphabet"], boundary=description["task"] == names.TASK)
    try:
        return tokenizer, tokenizer.encode(unicodedata.normalize("NFC", options.prompt))
    except KeyError as error:
        known = "".join(character for character in tokenizer.alphabet if character.isprintable())
        shown = known if len(known) <= 60 else f"{known[:60]}... ({len(known)} characters)"
        raise errors.PROMPT_CHARACTER(character=error.args[0], alphabet=shown) from None


def _decoder(learner: Learner, context: int) -> Callable[[], Decoder]:
    """Return what makes a decoder: the model's own, which reads each token once, or a window that is read anew."""
    own: Callable[[], Decoder] | None = getattr(learner.model, "decoder", None)
    if own is None:
        return lambda: WindowDecoder(learner.logits, context)
    learner.model.eval()
    return own
