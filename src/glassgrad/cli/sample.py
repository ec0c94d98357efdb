"""`glassgrad sample`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def sample(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory, or a model.safetensors file.")],
    count: Annotated[int, typer.Option("-n", "--count", metavar="N", min=1, help="How many words to print.")] = 20,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="The same seed prints the same words.")] = 1,
) -> int:
    """Print words that a trained model makes up, one per line."""
    from ..train.sample import load_model, sample_words

    model, description = load_model(run)
    for word in sample_words(model, description, count, seed):
        print(word)
    return 0
