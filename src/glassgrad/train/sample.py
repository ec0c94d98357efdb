"""Words from a trained model: what `glassgrad sample` and the end of `glassgrad train names` print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .. import errors
from ..data import CharTokenizer
from ..data.generate import Decoder, WindowDecoder, generate_tokens
from ..data.tokenizer import BOUNDARY
from .checkpoint import load_checkpoint
from .learner import Learner
from .names import TASK, NamesConfig, build_learner
from .rundir import MODEL


def load_model(path: Path) -> tuple[Learner, dict[str, Any]]:
    """Return the model in a run directory or a model file, and the description stored with it.

    Raises `errors.InputError` when there is none, when it is damaged, or when it is not a model of names.
    """
    if not path.exists():
        raise errors.RUN_MISSING(path=path, reason="there is no such file or directory")
    file = path / MODEL if path.is_dir() else path
    if not file.is_file():
        raise errors.RUN_MISSING(path=path, reason=f"the directory has no {MODEL}")
    arrays, description = load_checkpoint(file)
    if description.get("task") != TASK:
        raise errors.RUN_DAMAGED(path=file, reason="it holds no model that `glassgrad sample` can draw from")
    try:
        learner = build_learner(NamesConfig(**description["config"]), len(description["alphabet"]) + 1)
        learner.load_weights(arrays)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        reason = f"this version of glassgrad cannot build its model ({' '.join(str(error).split())})"
        raise errors.RUN_DAMAGED(path=file, reason=reason) from None
    return learner, description


def sample_words(learner: Learner, description: Mapping[str, Any], count: int, seed: int) -> Iterator[str]:
    """Yield words drawn from a model; the same seed gives the same words."""
    tokenizer = CharTokenizer(description["alphabet"])
    # A model hardly ever writes twice the longest word it saw; one that never ends a word still has to stop.
    longest = 2 * description["longest"] + 2
    def decoder() -> Decoder:
        return WindowDecoder(learner.logits, description["config"]["context"])

    for tokens in generate_tokens(decoder, [BOUNDARY], count, seed, longest):
        yield tokenizer.decode(tokens)
