"""The names task: its hyperparameters, its models, and everything they are put together from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import Generator, errors, from_numpy, nn, no_grad, optim
from ..data import Examples, NamesData, RandomBatches, WordList, read_words, shipped_words
from ..models import Bigram, NamesMLP
from ..nn import functional as F
from .config import Layer, option, resolve, rules

Array = Any

TASK = "names"


@dataclass(frozen=True)
class NamesConfig:
    """Every hyperparameter of `glassgrad train names`."""

    model: str = option("mlp", "which model to train", choices=("mlp", "bigram"))
    data: str = option(
        "", "text file with one word per line; empty for the word list that comes with glassgrad", resumable=True
    )
    lowercase: bool = option(False, "put all words into lowercase first")
    context: int = option(3, "how many characters the model looks back", low=1, high=1_000)
    embedding: int = option(10, "numbers per character in the embedding", low=1, high=100_000)
    hidden: int = option(200, "units of the hidden layer", low=1, high=1_000_000)
    norm_momentum: float = option(0.01, "how fast the running batch-norm statistics move", above=0, high=1)
    steps: int = option(200_000, "training steps", low=1, high=1e12)
    batch: int = option(32, "examples per step", low=1, high=1_000_000)
    rate: float = option(0.1, "learning rate of SGD", above=0, high=1e6)
    final_rate: float = option(0.01, "learning rate after the drop", above=0, high=1e6)
    drop_at: float = option(0.5, "share of the steps after which the rate drops", low=0, high=1)
    momentum: float = option(0.0, "momentum of SGD", low=0, high=1)
    weight_decay: float = option(0.0, "weight decay of SGD", low=0, high=1e6)
    seed: int = option(42, "seed of the initial weights and of the batches", low=0, high=2**63 - 1)
    device: str = option("cpu", "where to compute", choices=("cpu",))
    log_every: int = option(100, "steps per line of metrics.jsonl", low=1, high=1e12, resumable=True)
    eval_every: int = option(10_000, "steps between validations", low=1, high=1e12, resumable=True)
    save_every: float = option(5.0, "seconds between checkpoints", above=0, high=1e9, resumable=True)


@dataclass(frozen=True)
class ModelKind:
    """A model on offer: how to build it, the hyperparameters it does not have, and defaults that suit it better."""

    build: Callable[[NamesConfig, int, Generator], nn.Module]
    without: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    batch_norm: bool = False


MODELS = {
    "mlp": ModelKind(
        lambda config, tokens, generator: NamesMLP(
            tokens, config.context, config.embedding, config.hidden, config.norm_momentum, generator
        ),
        batch_norm=True,
    ),
    # A row of the table is touched by one example in about thirty, hence the large rates.
    "bigram": ModelKind(
        lambda config, tokens, generator: Bigram(tokens, generator),
        without=("context", "embedding", "hidden", "norm_momentum"),
        defaults={"context": 1, "rate": 10.0, "final_rate": 1.0},
    ),
}


def configure(layers: list[Layer]) -> NamesConfig:
    """Put layers together into a configuration and check what depends on several values.

    Raises `errors.InputError` naming the option or the key and file of a value that cannot be used.
    """
    model = resolve(NamesConfig, [_only(layer, "model") for layer in layers]).model
    kind = MODELS[model]
    config = resolve(NamesConfig, [Layer(kind.defaults, str), *layers])
    for layer in layers:
        for key in layer.values:
            if key in kind.without:
                raise errors.CONFIG_NO_EFFECT(name=layer.name(key), model=model)
    if kind.batch_norm and config.batch < 2:
        name = next(layer.name("batch") for layer in reversed(layers) if "batch" in layer.values)
        raise errors.CONFIG_BATCH_NORM(name=name, model=model, given=config.batch)
    return config


def _only(layer: Layer, key: str) -> Layer:
    return Layer({key: layer.values[key]} if key in layer.values else {}, layer.name)


def load_words(config: NamesConfig) -> WordList:
    """Read the words a configuration asks for. Raises `errors.InputError`."""
    words = read_words(config.data or shipped_words())
    return words.lowercase() if config.lowercase else words


def build_model(config: NamesConfig, tokens: int) -> nn.Module:
    """Build the model of a configuration with its initial weights, which depend on the seed alone."""
    return MODELS[config.model].build(config, tokens, Generator().manual_seed(config.seed))


class NamesTask:
    """Data, model and optimizer of one configuration, and the functions that a training loop needs of them."""

    def __init__(self, config: NamesConfig, words: WordList) -> None:
        self.config = config
        self.data = NamesData.build(words, config.context)
        self.model = build_model(config, self.data.tokenizer.size)
        self.optimizer = optim.SGD(
            self.model.parameters(), lr=config.rate, momentum=config.momentum, weight_decay=config.weight_decay
        )
        train = self.data.train
        self.batches = RandomBatches(train.inputs, train.targets, config.batch, config.seed)
        self._drop_step = int(config.steps * config.drop_at)

    def step(self, inputs: Array, targets: Array) -> Any:
        """Make one training step and return the loss. This is the function to compile."""
        loss = F.cross_entropy(self.model(from_numpy(inputs)), from_numpy(targets))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss

    def rate_at(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0."""
        return self.config.rate if step < self._drop_step else self.config.final_rate

    def set_rate(self, rate: float) -> None:
        """Set the learning rate of the steps to come."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def validation_loss(self) -> float:
        """Return the loss over the validation words and leave the model in training mode."""
        loss = mean_loss(self.model, self.data.validation)
        self.model.train()
        return loss

    @property
    def parameters(self) -> int:
        """The number of trained numbers."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def description(self) -> dict[str, Any]:
        """Return what has to stand beside the weights to rebuild the model and read its tokens."""
        return {
            "task": TASK,
            "config": self._settled(),
            "alphabet": "".join(self.data.tokenizer.alphabet),
            "longest": self.data.longest,
        }

    def facts(self) -> dict[str, Any]:
        """Return what must be the same for a resumed run to be the same run."""
        return {"config": self._settled(), "words": self.data.words.digest}

    def _settled(self) -> dict[str, Any]:
        """The hyperparameters that decide what comes out; where the words lie and how often to save do not."""
        return {key: getattr(self.config, key) for key, (_, rule) in rules(NamesConfig).items() if not rule.resumable}


def mean_loss(model: nn.Module, examples: Examples, chunk: int = 8_192) -> float:
    """Return the mean cross entropy (nats per character) over examples; puts the model into evaluation mode."""
    model.eval()
    total = 0.0
    with no_grad():
        for begin in range(0, len(examples), chunk):
            targets = examples.targets[begin : begin + chunk]
            logits = model(from_numpy(examples.inputs[begin : begin + chunk]))
            total += float(F.cross_entropy(logits, from_numpy(targets))) * len(targets)
    return total / len(examples)


def default_data_folder(layer: Layer, folder: Path) -> Layer:
    """Return a configuration file's layer with a relative `data` made relative to the folder of the file."""
    data = layer.values.get("data")
    if not isinstance(data, str) or not data:
        return layer
    return Layer({**layer.values, "data": str(folder / data)}, layer.name)
