"""The text task: a character-level GPT that learns to continue a text."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.data import CharTokenizer, Examples, RandomBatches
from glassgrad.data.files import read_text
from glassgrad.data.text import EXPECTED, TextData, all_windows, some_windows
from glassgrad.tasks import options as shared
from glassgrad.tasks.drawing import SampleOptions, check_alphabet, check_known, sample_texts
from glassgrad.tasks.task import KEPT, CommandTask, Example, Prediction, TaskKind, likeliest, with_absolute_data
from glassgrad.train.config import Layer, check_divides, flag, option, resolve
from glassgrad.train.kept.samples import softmax, texts
from glassgrad.train.learners.learner import Learner, measure

TASK = "text"

SAMPLES, SAMPLE_LENGTH = 2, 400

_MEASURED = 200
"""Windows evaluated during training, evenly spread over the text; ten times as many at the end."""

_CHUNK = 4_096
"""Characters evaluated at once."""


@dataclass(frozen=True)
class TextConfig:
    """Every hyperparameter of `glassgrad train text`."""

    model: str = option("gpt", "which model to train", choices=("gpt",))
    data: str = option("", "text file in UTF-8; its last tenth is kept for validation", resumable=True)
    engine: str = shared.engine(("eager", "compiled"))
    dtype: str = shared.dtype()
    context: int = option(64, "context of the model in characters", low=1, high=10_000)
    width: int = option(128, "width of the model", low=1, high=100_000)
    heads: int = option(4, "heads of attention; they divide the width", low=1, high=1_000)
    layers: int = option(4, "transformer blocks", low=1, high=1_000)
    dropout: float = option(0.0, "probability of dropout", low=0, high=0.99)
    steps: int = option(5_000, "training steps", low=1, high=1e12, grows=True)
    batch: int = option(12, "windows of the text per step", low=1, high=1_000_000)
    rate: float = option(0.001, "highest learning rate of AdamW", above=0, high=1e6)
    final_rate: float = option(0.0001, "learning rate at the end", above=0, high=1e6)
    warm_up: float = option(0.02, "share of the steps for the warm-up of the rate", low=0, high=1)
    beta1: float = option(0.9, "decay of AdamW's mean of gradients", low=0, high=0.999999)
    beta2: float = option(0.99, "decay of AdamW's mean of squares", low=0, high=0.999999)
    weight_decay: float = option(0.1, "weight decay of AdamW", low=0, high=1e6)
    clip: float = option(1.0, "largest norm of the gradient; 0 for no limit", low=0, high=1e12)
    seed: int = shared.seed()
    device: str = shared.device()
    log_every: int = shared.log_every(50)
    eval_every: int = option(500, "steps between validations", low=1, high=1e12, resumable=True)
    save_every: float = shared.save_every()


def configure(layers: list[Layer]) -> TextConfig:
    """Merge layers. Raises `errors.InputError` naming the option, or the key and file, of an invalid value."""
    config = resolve(TextConfig, layers)
    check_divides("heads", config.heads, "width", config.width, layers)
    if not config.data:
        raise errors.TEXT_NOT_GIVEN(option=flag("data"))
    return config


def build_learner(config: TextConfig, tokens: int) -> Learner:
    """Build the model of a configuration with its initial weights, which depend only on the seed."""
    from glassgrad.tasks import learners

    return learners.text_learner(config, tokens)


class TextTask(CommandTask):
    """Data, model and optimizer of one configuration, with the functions that a training loop needs."""

    kind, what = TASK, "text"

    def __init__(self, config: TextConfig, data: TextData) -> None:
        super().__init__(config, build_learner(config, data.tokenizer.size))
        self.data = self.given = data
        self.steps, self.eval_every = config.steps, config.eval_every
        windows = all_windows(data.train, config.context)
        self.batch_at = RandomBatches(windows.inputs, windows.targets, config.batch, config.seed).at
        self._validation = some_windows(data.validation, config.context, _MEASURED)

    def _loss(self, windows: Examples) -> float:
        return measure(self.learner.logits, windows, max(_CHUNK // self.config.context, 1)).loss

    def evaluate(self) -> dict[str, float]:
        """Return the loss over windows of the validation text (nats per character)."""
        return {"loss": self._loss(self._validation)}

    def description(self) -> dict[str, Any]:
        """Return the description for rebuilding the model and reading its tokens."""
        alphabet = "".join(self.data.tokenizer.alphabet)
        return {**super().description(), "alphabet": alphabet, "beginning": self.data.beginning}

    def introduction(self) -> Iterator[str]:
        data = self.data
        yield f"text       {data.source}"
        yield f"characters {len(data.train):,} training / {len(data.validation):,} validation"
        yield f"model      {self.config.model}, {self.learner.parameters:,} parameters, {data.tokenizer.size} tokens"

    def adopt(self, description: Mapping[str, Any]) -> None:
        """Raise `errors.InputError` unless the text has the trained model's characters, in the same order."""
        check_alphabet(self.data.tokenizer, description["alphabet"], self.data.source)

    def assess(self) -> dict[str, float]:
        """Return the losses on both parts of the text."""
        parts = {"train_loss": self.data.train, "validation_loss": self.data.validation}
        most = 10 * _MEASURED
        return {key: self._loss(some_windows(part, self.config.context, most)) for key, part in parts.items()}

    def results(self, final: Mapping[str, float], run: Path) -> Iterator[str]:
        """Yield the final losses and generated texts."""
        yield f"train loss {final['train_loss']:.4f}   validation loss {final['validation_loss']:.4f}"
        for text in self._texts():
            yield f"\n{text}"

    def _texts(self) -> Iterator[str]:
        options = SampleOptions(count=SAMPLES, length=SAMPLE_LENGTH, temperature=0.8, seed=self.config.seed)
        return sample_texts(self.learner, self.description(), options)

    def samples(self) -> dict[str, Any]:
        """Return texts sampled from the model."""
        return texts("Samples from the model", self._texts())

    def farewell(self, run: Path) -> Iterator[str]:
        """Yield the command that draws more text."""
        yield f"more       glassgrad sample {shlex.quote(str(run))} --temperature 0.8 --length 1000"


def build(config: TextConfig) -> TextTask:
    """Read the text and build the task. Raises `errors.InputError`, whose messages show the given path."""
    return TextTask(with_absolute_data(config), TextData.read(config.data, config.context))


def restore(description: Mapping[str, Any]) -> Learner:
    """Build the learner of a trained model."""
    return build_learner(TextConfig(**description["config"]), len(description["alphabet"]))


def predict(learner: Learner, description: Mapping[str, Any], given: Sequence[str]) -> Iterator[Prediction]:
    """Yield how likely texts (or the texts in files) are, and their continuation. Raises `errors.InputError`."""
    tokenizer = CharTokenizer(description["alphabet"])
    found = [read_text(one, EXPECTED) if Path(one).is_file() else one for one in given]
    for text in found:
        check_known(tokenizer, text)
    context = description["config"]["context"]
    for source, text in zip(given, found, strict=True):
        tokens = np.array(tokenizer.encode(text), dtype=np.int64)
        losses, last = [], None
        for begin in range(0, len(tokens), context):
            probabilities = softmax(learner.logits(tokens[None, begin : begin + context])[0])
            targets = tokens[begin + 1 : begin + 1 + context]
            losses.append(-np.log(probabilities[np.arange(len(targets)), targets]))
            last = probabilities[-1]
        known = np.concatenate(losses)
        answer = f"{known.mean():.3f} nats per character" if len(known) else "one character alone"
        yield Prediction(source, answer, likeliest(last, [repr(one)[1:-1] for one in tokenizer.alphabet]), "next")


def example(description: Mapping[str, Any]) -> Example:
    """Return windows of the first character."""
    return Example(np.zeros((4, description["config"]["context"]), np.int64), {0: "batch", 1: "length"})


TEXT = TaskKind(
    TASK,
    f"Train a character-level GPT on the text in --data, then print text that it generates.\n\n{KEPT}",
    TextConfig,
    configure,
    build,
    axis="cross entropy, nats per character",
    restore=restore,
    predict=predict,
    example=example,
)
KINDS = (TEXT,)
