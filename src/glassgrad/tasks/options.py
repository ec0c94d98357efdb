"""Options that every `glassgrad train` command has: their help and bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from glassgrad import errors
from glassgrad.train.config import Layer, name_of, option
from glassgrad.train.learners.learner import ENGINES

DTYPES = ("float32", "bfloat16", "float64")


def engine(choices: Sequence[str] = ENGINES) -> str:
    """What computes the gradients; a resumed run may use another."""
    words = "what computes the gradients; compiled falls back to eager without llvmlite"
    return option("compiled", words, choices=tuple(choices), resumable=True)


def dtype() -> str:
    """The numbers to compute in; a resumed run keeps them."""
    words = (
        "dtype to compute in: bfloat16 rounds the inputs of products, which is faster on processors with bfloat16 "
        "products; float64 takes twice the memory"
    )
    return option("float32", words, choices=DTYPES)


def check_dtype(config: Any, layers: Sequence[Layer]) -> None:
    """Raise `errors.InputError` if hand-written layers get another dtype."""
    if config.engine == "manual" and config.dtype != DTYPES[0]:
        raise errors.CONFIG_DTYPE(name=name_of("dtype", layers), given=config.dtype)


def seed(of: str = "the initial weights and of the batches") -> int:
    """The seed of all random numbers."""
    return option(42, f"seed of {of}", low=0, high=2**63 - 1)


def device() -> str:
    """Where to compute."""
    return option("cpu", "where to compute", choices=("cpu",))


def log_every(default: int) -> int:
    """How often the metrics are recorded."""
    return option(default, "steps per line of metrics.jsonl", low=1, high=1e12, resumable=True)


def save_every() -> float:
    """How often a checkpoint is written."""
    return option(5.0, "seconds between checkpoints", above=0, high=1e9, resumable=True)
