"""The names task: its hyperparameters, models, data and schedules."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.data import CharTokenizer, Examples, NamesData, RandomBatches, WordList, read_words, shipped_words
from glassgrad.data.names import IGNORED, encoded
from glassgrad.tasks import options as shared
from glassgrad.tasks.drawing import SampleOptions, check_alphabet, check_known, sample_words
from glassgrad.tasks.task import (
    KEPT,
    CommandTask,
    Example,
    ModelKind,
    Prediction,
    TaskKind,
    learners_of,
    likeliest,
    resolve_for_model,
    with_absolute_data,
)
from glassgrad.train.config import Layer, check_divides, name_of, option
from glassgrad.train.kept.samples import softmax, texts
from glassgrad.train.learners.learner import Learner, measure

Array = np.ndarray

TASK = "names"

SAMPLES = 20

_CHUNK = 8_192
"""Characters evaluated at once."""


@dataclass(frozen=True)
class NamesConfig:
    """Every hyperparameter of `glassgrad train names`."""

    model: str = option("mlp", "which model to train", choices=("mlp", "rnn", "lstm", "gru", "gpt", "bigram"))
    data: str = option(
        "", "text file with one word per line; empty for the word list that comes with glassgrad", resumable=True
    )
    engine: str = shared.engine()
    dtype: str = shared.dtype()
    lowercase: bool = option(False, "put all words into lowercase first")
    context: int = option(3, "context of the mlp in characters", low=1, high=1_000)
    embedding: int = option(
        10, "numbers per character in the embedding (32 for rnn, lstm and gru, 64 for gpt)", low=1, high=100_000
    )
    hidden: int = option(200, "units of the hidden layer or the state", low=1, high=1_000_000)
    layers: int = option(1, "layers of rnn, lstm, gru and gpt (3 for gpt)", low=1, high=100)
    heads: int = option(4, "heads of attention of the gpt", low=1, high=1_000)
    dropout: float = option(0.2, "probability of dropout in rnn, lstm, gru and gpt", low=0, high=0.99)
    norm_momentum: float = option(0.01, "momentum of the running batch-norm statistics", above=0, high=1)
    steps: int = option(200_000, "training steps (8,000 for rnn, lstm, gru and gpt)", low=1, high=1e12, grows=True)
    batch: int = option(32, "examples per step, which are words for rnn, lstm, gru and gpt", low=1, high=1_000_000)
    rate: float = option(
        0.1, "highest learning rate: of SGD for mlp and bigram (10), of AdamW for the others (0.003)", above=0, high=1e6
    )
    final_rate: float = option(
        0.01,
        "learning rate after the drop (1 for bigram), or at the end of the others' cosine (0.0001)",
        above=0,
        high=1e6,
    )
    drop_at: float = option(0.5, "share of the steps after which the rate of mlp and bigram drops", low=0, high=1)
    warm_up: float = option(0.02, "share of the steps over which the others' rate rises", low=0, high=1)
    momentum: float = option(0.0, "momentum of SGD", low=0, high=1)
    weight_decay: float = option(0.0, "weight decay (0.01 for rnn, lstm, gru and gpt)", low=0, high=1e6)
    clip: float = option(
        1.0, "largest norm of the gradient of rnn, lstm, gru and gpt; 0 for no limit", low=0, high=1e12
    )
    seed: int = shared.seed()
    device: str = shared.device()
    log_every: int = shared.log_every(100)
    eval_every: int = option(
        10_000, "steps between validations (1,000 for rnn, lstm, gru and gpt)", low=1, high=1e12, resumable=True
    )
    save_every: float = shared.save_every()


@dataclass(frozen=True)
class NamesKind(ModelKind):
    """`whole`: trains on whole words, predicting the next token at each place, with AdamW and a cosine schedule."""

    batch_norm: bool = False
    whole: bool = False


_ONLY_WHOLE = ("layers", "heads", "dropout", "warm_up", "clip")
_NEVER_WHOLE = ("context", "norm_momentum", "momentum", "drop_at")
_WHOLE_DEFAULTS = {"steps": 8_000, "eval_every": 1_000, "rate": 0.003, "final_rate": 0.0001, "weight_decay": 0.01}
_RECURRENT = NamesKind(without=(*_NEVER_WHOLE, "heads"), defaults={**_WHOLE_DEFAULTS, "embedding": 32}, whole=True)

MODELS = {
    "mlp": NamesKind(without=_ONLY_WHOLE, batch_norm=True),
    "rnn": _RECURRENT,
    "lstm": _RECURRENT,
    "gru": _RECURRENT,
    "gpt": NamesKind(
        without=(*_NEVER_WHOLE, "hidden"), defaults={**_WHOLE_DEFAULTS, "embedding": 64, "layers": 3}, whole=True
    ),
    # About one example in thirty uses each row of the table, hence the large rates.
    "bigram": NamesKind(
        # A table lookup computes no product.
        without=("dtype", "context", "embedding", "hidden", "norm_momentum", *_ONLY_WHOLE),
        defaults={"context": 1, "rate": 10.0, "final_rate": 1.0},
    ),
}

BY_HAND = ("mlp", "bigram")
"""The models with a hand-written backward pass."""


def configure(layers: list[Layer]) -> NamesConfig:
    """Build a configuration from layers and check conditions on several values.

    Raises `errors.InputError` naming the option, or the key and file, of an invalid value.
    """
    config: NamesConfig = resolve_for_model(NamesConfig, layers, MODELS)
    kind, model = MODELS[config.model], config.model
    if kind.batch_norm and config.batch < 2:
        raise errors.CONFIG_BATCH_NORM(name=name_of("batch", layers), model=model, given=config.batch)
    if config.engine == "manual" and model not in BY_HAND:
        raise errors.CONFIG_ENGINE(name=name_of("engine", layers), model=model, known=" and ".join(BY_HAND))
    if model == "gpt":
        check_divides("heads", config.heads, "embedding", config.embedding, layers)
    return config


def load_words(config: NamesConfig) -> WordList:
    """Read the words a configuration asks for. Raises `errors.InputError`."""
    words = read_words(config.data or shipped_words())
    return words.lowercase() if config.lowercase else words


def build_learner(config: NamesConfig, tokens: int, longest: int) -> Learner:
    """Build the model of a configuration with its initial weights, which depend only on the seed.

    `tokens` is the number of tokens, `longest` the length of the longest word.
    """
    learner: Learner = learners_of(config.engine).names_learner(config, tokens, longest)
    return learner


class NamesTask(CommandTask):
    """Data, model and optimizer of one configuration, with the functions that a training loop needs."""

    config: NamesConfig
    kind, what = TASK, "words"

    def __init__(self, config: NamesConfig, words: WordList) -> None:
        self._whole = MODELS[config.model].whole
        self.data, self.given = NamesData.build(words, config.context, self._whole), words
        super().__init__(config, build_learner(config, self.data.tokenizer.size, self.data.longest))
        self.steps, self.eval_every = config.steps, config.eval_every
        train = self.data.train
        self.batch_at = RandomBatches(train.inputs, train.targets, config.batch, config.seed).at
        self._drop_step = int(config.steps * config.drop_at)

    def rate_at(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0."""
        config = self.config
        if self._whole:
            return super().rate_at(step)
        return config.rate if step < self._drop_step else config.final_rate

    def evaluate(self) -> dict[str, float]:
        """Return the loss over the validation words (nats per character)."""
        return {"loss": self._loss(self.data.validation)}

    def _loss(self, examples: Examples) -> float:
        chunk = max(_CHUNK // examples.inputs.shape[1], 1) if self._whole else _CHUNK
        return measure(self.learner.logits, examples, chunk).loss

    def description(self) -> dict[str, Any]:
        """Return the description for rebuilding the model and reading its tokens."""
        alphabet = "".join(self.data.tokenizer.alphabet)
        return {**super().description(), "alphabet": alphabet, "longest": self.data.longest}

    def introduction(self) -> Iterator[str]:
        data, words = self.data, self.data.words
        origin = "the list that comes with glassgrad (US Census 1990)" if not self.config.data else words.source
        distinct = f", {len(words.words) - words.repeated:,} of them different" if words.repeated else ""
        yield f"words      {len(words.words):,}{distinct}: {origin}"
        if words.differ_in_case_only:
            yield f"           {words.differ_in_case_only:,} differ from others in case only; --lowercase joins them"
        parts = f"{len(data.train):,} training / {len(data.validation):,} validation / {len(data.test):,} test"
        yield f"examples   {parts}{' words' if self._whole else ''}"
        yield f"model      {self.config.model}, {self.learner.parameters:,} parameters, {data.tokenizer.size} tokens"

    def adopt(self, description: Mapping[str, Any]) -> None:
        """Raise `errors.InputError` unless the words have the trained model's characters, in the same order."""
        check_alphabet(self.data.tokenizer, description["alphabet"], self.data.words.source)

    def assess(self) -> dict[str, float]:
        """Return the losses on the words of each part."""
        parts = {"train": self.data.train, "validation": self.data.validation, "test": self.data.test}
        return {f"{name}_loss": self._loss(part) for name, part in parts.items()}

    def settle(self) -> dict[str, float]:
        """Calibrate batch normalisation and return the final losses."""
        self.learner.calibrate(self.data.train.inputs)
        return self.assess()

    def results(self, final: Mapping[str, float], run: Path) -> Iterator[str]:
        """Yield the final losses and generated words."""
        losses = (f"{part} loss {final[f'{part}_loss']:.4f}" for part in ("train", "validation", "test"))
        yield "   ".join(losses) + "\n"
        for word in self._words():
            yield f"  {word}"

    def _words(self) -> Iterator[str]:
        return sample_words(self.learner, self.description(), SampleOptions(count=SAMPLES, seed=self.config.seed))

    def samples(self) -> dict[str, Any]:
        """Return words sampled from the model."""
        return texts("Samples from the model", self._words())

    def farewell(self, run: Path) -> Iterator[str]:
        """Yield the command that draws more words."""
        yield f"more       glassgrad sample {shlex.quote(str(run))} -n {SAMPLES}"


def build(config: NamesConfig) -> NamesTask:
    """Read the words and build the task. Raises `errors.InputError`, whose messages show the given path."""
    return NamesTask(with_absolute_data(config), load_words(config))


def restore(description: Mapping[str, Any]) -> Learner:
    """Build the learner of a trained model."""
    config = NamesConfig(**description["config"])
    return build_learner(config, len(description["alphabet"]) + 1, description["longest"])


def predict(learner: Learner, description: Mapping[str, Any], words: Sequence[str]) -> Iterator[Prediction]:
    """Yield the likelihood of each word, and the next characters. Raises `errors.InputError` before reading any."""
    config, longest = description["config"], description["longest"]
    tokenizer = CharTokenizer(description["alphabet"], boundary=True)
    whole = MODELS[config["model"]].whole
    for word in words:
        check_known(tokenizer, word)
        if whole and len(word) > longest:
            raise errors.WORD_TOO_LONG(word=word, length=len(word), limit=longest)
    labels = ["(end)", *description["alphabet"]]
    for word in words:
        examples = encoded([word], tokenizer, config.get("context", 1), longest + 1 if whole else 0)
        logits = learner.logits(examples.inputs)
        logits, targets = (logits[0], examples.targets[0]) if whole else (logits, examples.targets)
        counting = targets != IGNORED
        probabilities, targets = softmax(logits[counting]), targets[counting]
        loss = -float(np.log(probabilities[np.arange(len(targets)), targets]).mean())
        yield Prediction(word, f"{loss:.3f} nats per character", likeliest(probabilities[-1], labels), "next")


def example(description: Mapping[str, Any]) -> Example:
    """Return words of one letter, in the model's input form."""
    config, whole = description["config"], MODELS[description["config"]["model"]].whole
    tokenizer = CharTokenizer(description["alphabet"], boundary=True)
    words = [description["alphabet"][0]] * 4
    inputs = encoded(words, tokenizer, config.get("context", 1), description["longest"] + 1 if whole else 0).inputs
    return Example(inputs, {0: "batch", 1: "length"} if whole else {0: "batch"})


NAMES = TaskKind(
    TASK,
    f"Train a character model on names, then print names that it generates.\n\n{KEPT}",
    NamesConfig,
    configure,
    build,
    MODELS,
    axis="cross entropy, nats per character",
    restore=restore,
    predict=predict,
    example=example,
)
KINDS = (NAMES,)
