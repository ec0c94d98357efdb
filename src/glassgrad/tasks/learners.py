"""The engine's learners for the tasks: the model and optimizer of each configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from glassgrad import nn, optim
from glassgrad.engine.random import Generator, manual_seed
from glassgrad.models import GPT, Bigram, CharRNN, NamesMLP
from glassgrad.nn import functional as F
from glassgrad.tasks.classify import image_layers, mlp
from glassgrad.tasks.options import DTYPES
from glassgrad.train.learners.engine import EngineLearner, can_compile
from glassgrad.train.learners.learner import StepOptions

if TYPE_CHECKING:
    from glassgrad.tasks.images import ImagesConfig
    from glassgrad.tasks.names import NamesConfig
    from glassgrad.tasks.plane import PlaneConfig
    from glassgrad.tasks.text import TextConfig


def _loss(logits: Any, targets: Any) -> Any:
    """Mean cross entropy; for sequences, over all places whose target is not -100."""
    if logits.ndim > 2:
        logits, targets = logits.flatten(0, 1), targets.flatten()
    return F.cross_entropy(logits, targets)


def _learner(model: nn.Module, optimizer: Any, config: Any, clip: float = 0.0, dropout: float = 0.0) -> EngineLearner:
    """Build the learner of a configuration; the seed determines dropout."""
    if dropout:
        manual_seed(config.seed)
    dtype = "" if config.dtype == DTYPES[0] else config.dtype
    options = StepOptions(config.engine == "compiled" and can_compile(), max_norm=clip or None, dtype=dtype)
    return EngineLearner(model, optimizer, loss_fn=_loss, options=options, random=dropout > 0)


def names_learner(config: NamesConfig, tokens: int, longest: int) -> EngineLearner:
    """Return the model of a configuration with its initial weights, which depend only on the seed.

    `longest` is the length of the longest word, which sets a GPT's context.
    """
    model = _names_model(config, tokens, longest, Generator().manual_seed(config.seed))
    if config.model in {"mlp", "bigram"}:
        descent = optim.SGD(
            model.parameters(), lr=config.rate, momentum=config.momentum, weight_decay=config.weight_decay
        )
        return _learner(model, descent, config)
    optimizer = optim.AdamW(model.parameters(), lr=config.rate, weight_decay=config.weight_decay)
    return _learner(model, optimizer, config, config.clip, config.dropout)


def _names_model(config: NamesConfig, tokens: int, longest: int, generator: Generator) -> nn.Module:
    if config.model == "bigram":
        return Bigram(tokens, generator)
    if config.model == "mlp":
        return NamesMLP(tokens, config.context, config.embedding, config.hidden, config.norm_momentum, generator)
    if config.model == "gpt":
        return GPT(tokens, longest + 1, config.embedding, config.heads, config.layers, config.dropout, generator)
    return CharRNN(tokens, config.model, config.embedding, config.hidden, config.layers, config.dropout, generator)


def text_learner(config: TextConfig, tokens: int) -> EngineLearner:
    """Return the GPT of a configuration with its initial weights, which depend only on the seed."""
    generator = Generator().manual_seed(config.seed)
    model = GPT(tokens, config.context, config.width, config.heads, config.layers, config.dropout, generator)
    optimizer = optim.AdamW(
        model.parameters(), lr=config.rate, betas=(config.beta1, config.beta2), weight_decay=config.weight_decay
    )
    return _learner(model, optimizer, config, config.clip, config.dropout)


def plane_learner(config: PlaneConfig, classes: int) -> EngineLearner:
    """Return the model of a configuration for points in the plane; the caller loads its weights."""
    model = nn.Sequential(*mlp(nn, 2, config.hidden, config.layers, classes))
    return _learner(model, optim.SGD(model.parameters(), lr=config.rate, momentum=config.momentum), config)


def images_learner(config: ImagesConfig, size: tuple[int, int], classes: int) -> EngineLearner:
    """Return the model of a configuration; the caller loads its weights."""
    model = nn.Sequential(*image_layers(nn, config, size, classes))
    optimizer = optim.RMSprop(model.parameters(), lr=config.rate, alpha=config.alpha, momentum=config.momentum)
    return _learner(model, optimizer, config)
